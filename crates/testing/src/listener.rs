//! Ports of this machine: one that answers until a test ends, the base of all servers of this crate, and one that no other test
//! gets, for a server that a test starts, or for one that is not there.
//!
//! A port that was found to be free and given back may belong to another test's server a moment later, and Linux gives back the
//! port that it chose for a socket as soon as that stops listening. So a socket that never listens keeps the port. Nothing here
//! knows what is said over a connection.

#[cfg(unix)]
use std::net::Shutdown;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use socket2::{Domain, Socket, Type};

/// A free port. A thread serves each of its connections, until this is dropped.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    #[cfg(unix)]
    socket: TcpListener,
    stopped: Arc<AtomicBool>,
    /// Keeps the port if the socket stops listening.
    _reserved: Option<ReservedPort>,
}

impl Listener {
    /// Serves each connection by calling `serve`.
    pub fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let reserved = cfg!(target_os = "linux").then(ReservedPort::take);
        let port = reserved.as_ref().map_or(0, ReservedPort::port);
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let started = Self {
            address,
            connections: Arc::default(),
            #[cfg(unix)]
            socket: listener.try_clone().expect("can be shared"),
            stopped: Arc::default(),
            _reserved: reserved,
        };
        let connections = Arc::clone(&started.connections);
        let stopped = Arc::clone(&started.stopped);
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { return };
                connections.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream));
            }
        });
        started
    }

    /// Starts a program for each connection, as its standard input and output, like `inetd`.
    #[cfg(unix)]
    pub(crate) fn inetd(
        program: impl Fn() -> std::process::Command + Send + Sync + 'static,
    ) -> Self {
        use std::process::Stdio;

        Self::start(move |stream| {
            let input = std::os::fd::OwnedFd::from(stream);
            let output = input.try_clone().expect("can be shared");
            let mut command = program();
            command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::null());
            let status = command.status();
            status.expect("these tests need git and sshd: `.ci/setup` installs them");
        })
    }

    /// Refuses all connections from now on. The port stays taken, so no other test's server answers at it.
    #[cfg(unix)]
    pub(crate) fn refuse(&self) {
        let stopped = socket2::SockRef::from(&self.socket).shutdown(Shutdown::Both);
        stopped.expect("a socket can stop listening");
    }

    /// Host and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections. If it has gone already, that is fine.
        let _ = TcpStream::connect(self.address);
    }
}

/// A port of this machine that refuses all connections, and that nobody else gets, until this is dropped.
///
/// On Linux, a program that is told the port can listen there meanwhile.
#[derive(Debug)]
pub struct ReservedPort {
    address: SocketAddr,
    _socket: Socket,
}

impl ReservedPort {
    /// Takes a free port.
    pub fn take() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("there are sockets");
        if cfg!(target_os = "linux") {
            // With it, a server may listen where this socket is bound; servers set it, too.
            socket.set_reuse_address(true).expect("can be set");
        }
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).expect("there is a free port");
        let address = socket.local_addr().expect("a bound socket has an address");
        Self { address: address.as_socket().expect("is one of the internet"), _socket: socket }
    }

    /// Its host and port.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The URL of a path there.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}
