//! A Git repository with a history, and `git http-backend` behind a small web server.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::measure::run;
use crate::random::Random;

const COMMITS: usize = 2_000;
const TAGS: usize = 200;
const FILES: usize = 400;
/// 2,000 of them are 50 MB.
const BYTES_OF_CHANGE: usize = 25_000;

/// The requested tag.
pub(crate) const TAG: &str = "v0.150.0";

/// Makes the bare repository `folder`.
pub(crate) fn make(folder: &Path) {
    run(Command::new("git").args(["init", "-q", "--bare", "-b", "main"]).arg(folder));
    let mut import = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("git can be started");
    let mut input = std::io::BufWriter::new(import.stdin.take().expect("is piped"));
    write_history(&mut input).expect("git reads it");
    drop(input);
    assert!(import.wait().expect("git ends").success(), "git fast-import failed");
}

fn write_history(out: &mut impl Write) -> std::io::Result<()> {
    let mut random = Random::new(5);
    for commit in 0..COMMITS {
        let time = 1_600_000_000 + commit * 3_600;
        writeln!(out, "commit refs/heads/main\nmark :{}", commit + 1)?;
        writeln!(out, "committer A <a@example.com> {time} +0000\ndata 1\nc")?;
        if commit == 0 {
            let manifest = b"name: bench/repository\n";
            writeln!(out, "M 100644 inline Mu.yaml\ndata {}", manifest.len())?;
            out.write_all(manifest)?;
        }
        let file = commit % FILES;
        writeln!(out, "M 100644 inline part-{:02}/file-{file:03}", file % 20)?;
        writeln!(out, "data {BYTES_OF_CHANGE}")?;
        out.write_all(&random.bytes(BYTES_OF_CHANGE))?;
        writeln!(out)?;
        if (commit + 1) % (COMMITS / TAGS) == 0 {
            let number = (commit + 1) / (COMMITS / TAGS);
            writeln!(out, "reset refs/tags/v0.{number}.0\nfrom :{}\n", commit + 1)?;
        }
    }
    Ok(())
}

/// A web server that runs `git http-backend` for every request.
pub(crate) struct Backend {
    pub(crate) port: u16,
    requests: Arc<AtomicU64>,
}

impl Backend {
    /// Serves the repositories below `root`, for as long as the program runs.
    pub(crate) fn serve(root: &Path) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
        let port = listener.local_addr().expect("is bound").port();
        let requests = Arc::new(AtomicU64::new(0));
        let (counted, root) = (Arc::clone(&requests), root.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (counted, root) = (Arc::clone(&counted), root.clone());
                std::thread::spawn(move || {
                    // Clients may close the connection.
                    let _ = answer_all(&stream, &root, &counted);
                });
            }
        });
        Self { port, requests }
    }

    /// How many requests there were.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

fn answer_all(stream: &TcpStream, root: &Path, counted: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        counted.fetch_add(1, Ordering::Relaxed);
        let header = |wanted: &str| {
            head.iter().skip(1).find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
            })
        };
        if header("expect").is_some() {
            (&mut &*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = match header("content-length") {
            Some(length) => {
                let mut body = vec![0; length.parse().unwrap_or(0)];
                reader.read_exact(&mut body)?;
                body
            }
            None if header("transfer-encoding").is_some() => read_chunks(&mut reader)?,
            None => Vec::new(),
        };
        let mut words = head.first().map(String::as_str).unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or("/"));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut command = Command::new("git");
        command
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REQUEST_METHOD", method)
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
            .env("CONTENT_LENGTH", body.len().to_string())
            .env("HTTP_CONTENT_ENCODING", header("content-encoding").unwrap_or_default())
            .env("HTTP_GIT_PROTOCOL", header("git-protocol").unwrap_or_default());
        answer(stream, command, &body)?;
    }
}

/// Passes on the program's output while it is written.
fn answer(mut stream: &TcpStream, mut command: Command, body: &[u8]) -> std::io::Result<()> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut input = child.stdin.take().expect("is piped");
    // A program that refuses the request does not read it.
    let _ = input.write_all(body);
    drop(input);
    let mut output = BufReader::with_capacity(64 << 10, child.stdout.take().expect("is piped"));
    let (mut status, mut headers) = ("200 OK".to_owned(), String::new());
    loop {
        let mut line = String::new();
        if output.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        match line.split_once(": ") {
            Some(("Status", text)) => status = text.trim().to_owned(),
            _ => headers.push_str(&line),
        }
    }
    let head = format!("HTTP/1.1 {status}\r\n{headers}Transfer-Encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    loop {
        let bytes = output.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk)?;
        let count = bytes.len();
        output.consume(count);
    }
    stream.write_all(b"0\r\n\r\n")?;
    child.wait().map(drop)
}

fn read_chunks(reader: &mut impl std::io::BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..])?;
        reader.read_line(&mut line)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// The size of everything in a folder, in bytes.
pub(crate) fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
