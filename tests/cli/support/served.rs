//! A hub on `mu hub serve`, and a client that sends exactly the given bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::Sandbox;

/// A running server; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    process: Child,
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Served {
    /// Serves `place`, with more arguments.
    pub(crate) fn start(sandbox: &Sandbox, place: &str, more: &[&str]) -> Self {
        Self::try_start(Self::command(sandbox, place, more))
            .unwrap_or_else(|said| panic!("the server does not start: {said}"))
    }

    /// A `mu` that is ready to serve `place`.
    pub(crate) fn command(sandbox: &Sandbox, place: &str, more: &[&str]) -> Command {
        let arguments = ["hub", "serve", place, "--listen", "127.0.0.1:0"];
        sandbox.command(&[&arguments[..], more].concat())
    }

    /// Starts a server; fails with its output if it prints no address.
    pub(crate) fn try_start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("mu runs");
        let mut said = BufReader::new(process.stderr.take().expect("is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("is text");
        let address = line.trim().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let Ok(address) = address.parse() else {
            let _ = said.read_to_string(&mut line);
            // Nobody needs it any more.
            let _ = process.kill();
            let _ = process.wait();
            return Err(line);
        };
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(process.stdout.take().expect("is piped")).lines();
        let kept = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| kept.lock().expect("is whole").push(line));
        });
        Ok(Self { process, address, log, reader: Some(reader) })
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The URL of the hub.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Sends a request and reads the answer.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        self.try_ask(method, path, headers, body).expect("the server answers")
    }

    /// Like [`Served::ask`]; fails if the server does not answer.
    pub(crate) fn try_ask(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        Self::try_ask_at(self.address, method, path, headers, body)
    }

    /// The same for any server at an address.
    pub(crate) fn try_ask_at(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("transfer-encoding")) {
            request.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        headers.iter().for_each(|header| request.push_str(&format!("{header}\r\n")));
        request.push_str("\r\n");
        let mut stream = TcpStream::connect(address)?;
        // A server that refuses may answer before it has read everything.
        let sent = stream.write_all(request.as_bytes()).and_then(|()| stream.write_all(body));
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        match Answer::parse(&bytes) {
            Some(answer) => Ok(answer),
            None => {
                Err(sent.err().or(read.err()).unwrap_or(std::io::ErrorKind::UnexpectedEof.into()))
            }
        }
    }

    /// Publishes an archive with a token; returns the status.
    pub(crate) fn put(&self, token: &str, package: &str, archive: &[u8]) -> Answer {
        let bearer = format!("authorization: Bearer {token}");
        self.ask("PUT", &format!("/api/v1/packages/{package}"), &[&bearer], archive)
    }

    /// Changes a version with a token.
    pub(crate) fn patch(&self, token: &str, package: &str, change: &str) -> Answer {
        let bearer = format!("authorization: Bearer {token}");
        self.ask("PATCH", &format!("/api/v1/packages/{package}"), &[&bearer], change.as_bytes())
    }

    /// Ends the server as the system would, and returns its exit status and log.
    #[cfg(unix)]
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<String>) {
        let id = self.process.id().to_string();
        let killed = std::process::Command::new("kill").args(["-TERM", &id]).status();
        assert!(killed.expect("there is kill").success());
        let status = self.process.wait().expect("is a child");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the log was read");
        }
        let log = std::mem::take(&mut *self.log.lock().expect("is whole"));
        (status.code(), log)
    }

    /// Kills the server in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("is a child");
        self.process.wait().expect("is a child");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self { status, head, body: bytes[end + 4..].to_vec() })
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("is JSON")
    }

    /// Checks the status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.text());
        self
    }
}
