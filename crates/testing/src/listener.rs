//! A port of this machine that answers until a test ends: the base of all servers of this crate.

#[cfg(unix)]
use std::net::Shutdown;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::reserved_port::ReservedPort;

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
