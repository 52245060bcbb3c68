//! A running `mu hub serve`, and requests to a server without a client.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A running server; it is killed when this is dropped.
pub(crate) struct Served {
    process: Child,
    pub(crate) port: u16,
}

impl Served {
    /// Serves the hub in `folder`; its access log goes to a file, as nginx's does.
    pub(crate) fn start(mu: &Path, folder: &Path, log: &Path) -> Self {
        let log = File::create(log).expect("can be written");
        let mut process = Command::new(mu)
            .args(["hub", "serve"])
            .arg(folder)
            .args(["--listen", "127.0.0.1:0", "--changes-per-minute", "1000000"])
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::piped())
            .spawn()
            .expect("mu can be started");
        let mut said = BufReader::new(process.stderr.take().expect("is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("is text");
        let port =
            line.trim().trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("the server does not start: {line}"));
        // The rest of its output is read too, so that it never blocks.
        std::thread::spawn(move || said.lines().count());
        Self { process, port }
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// The memory that it has now, in MiB, where the system says.
    pub(crate) fn memory(&self) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1_024.0)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // If it has ended already, that is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How long a question takes on a connection of its own, in milliseconds, and its answer.
pub(crate) fn ask(port: u16, path: &str) -> (f64, String) {
    let start = Instant::now();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    let time = start.elapsed().as_secs_f64() * 1_000.0;
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer:.200}");
    (time, answer)
}
