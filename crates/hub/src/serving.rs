//! How a hub is served: what the program `mu` reads from its command line, and the server in `mu-hub-server` does.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Takes a line of the access log, which is a JSON object.
pub type WriteLog = Arc<dyn Fn(&str) + Send + Sync>;

/// How a hub is served.
#[derive(Clone)]
pub struct Serving {
    /// The address to listen at; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The files with certificate chain and private key, in PEM; without them, the server uses plain HTTP.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// What references to the hub's packages begin with, such as `hub.acme.co/`; without it, pages show the
    /// host that the browser asked for.
    pub base: Option<String>,
    /// The largest archive that is taken, in bytes.
    pub largest_archive: u64,
    /// How many files and links an archive that is taken may have.
    pub most_entries: usize,
    /// How many changes one client address may make in a minute.
    pub changes_per_minute: u32,
    /// How many requests one client address may make in a second; 0 for any number.
    pub requests_per_second: u32,
    /// Whether reading needs a token, too.
    pub private: bool,
    /// Whether everyone may read the counters; otherwise only programs on this machine may.
    pub public_metrics: bool,
    /// Where the access log goes.
    pub log: WriteLog,
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Serving").field("listen", &self.listen).finish_non_exhaustive()
    }
}
