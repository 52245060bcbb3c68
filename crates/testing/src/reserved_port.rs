//! A port that no other test gets, for a server that a test starts, or for one that is not there.
//!
//! A port that was found to be free and given back may belong to another test's server a moment later, and
//! Linux gives back the port that it chose for a socket as soon as that stops listening. So a socket that
//! never listens keeps the port. This serves nothing.

use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

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
