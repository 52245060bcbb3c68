//! Servers: `git http-backend` behind a small web server, `git daemon`, and a stand-in for `ssh`.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mu_provider::conformance::server::{Reply, Seen, TestServer};

use super::variables;

/// A web server that runs `git http-backend` for every request.
pub(crate) struct HttpServer {
    server: TestServer,
}

impl HttpServer {
    /// Serves the repositories below `root`.
    pub(crate) fn start(root: &Path) -> Self {
        Self::with(root, |_| None)
    }

    /// Serves only version 0 of the protocol, as old servers do.
    pub(crate) fn start_old(root: &Path) -> Self {
        let root = root.to_owned();
        let server = TestServer::start(move |request, _| {
            let mut request = request.clone();
            request.headers.retain(|(name, _)| name != "git-protocol");
            backend(&root, &request)
        });
        Self { server }
    }

    /// Says nothing more after some bytes of the first answer that is posted for.
    pub(crate) fn start_stalling(root: &Path, bytes: usize) -> Self {
        let root = root.to_owned();
        let posts = AtomicUsize::new(0);
        let server = TestServer::start(move |request, _| {
            let reply = backend(&root, request);
            let is_first = request.method == "POST" && posts.fetch_add(1, Ordering::SeqCst) == 0;
            if is_first { reply.silent_after(bytes) } else { reply }
        });
        Self { server }
    }

    /// Serves the repositories below `root`, but for requests that `first` answers.
    pub(crate) fn with(
        root: &Path,
        first: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let root = root.to_owned();
        let server = TestServer::start(move |request, _| {
            first(request).unwrap_or_else(|| backend(&root, request))
        });
        Self { server }
    }

    /// The server's URL.
    pub(crate) fn root(&self) -> String {
        format!("http://{}/", self.server.host())
    }

    pub(crate) fn host(&self) -> String {
        self.server.host()
    }

    /// `METHOD PATH` of every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.server.requests()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }
}

fn backend(root: &Path, request: &Seen) -> Reply {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let header = |name| request.header(name).unwrap_or_default();
    let mut child = Command::new("git")
        .arg("http-backend")
        .env_clear()
        .envs(variables(root))
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("these tests need git: install it, on Debian with `apt-get install git`");
    let mut input = child.stdin.take().expect("is piped");
    // One that refuses the request does not read it.
    let _ = input.write_all(&request.body);
    drop(input);
    let output = child.wait_with_output().expect("git ends").stdout;
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let mut reply = Reply::body(output.get(end + 4..).unwrap_or_default());
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        match name {
            "Status" => reply = Reply::status(value[..3].parse().expect("is a status")),
            _ => reply = reply.header(name, value),
        }
    }
    reply
}

/// `git daemon` on a free port.
pub(crate) struct Daemon {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
}

impl Daemon {
    /// Serves the repositories below `root`.
    pub(crate) fn start(root: &Path) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
        let address = listener.local_addr().expect("is bound");
        let daemon = Self { address, connections: Arc::default(), stopped: Arc::default() };
        let (connections, stopped) = (Arc::clone(&daemon.connections), Arc::clone(&daemon.stopped));
        let root = root.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                connections.fetch_add(1, Ordering::SeqCst);
                let input = OwnedFd::from(stream.expect("connects"));
                let output = input.try_clone().expect("can be shared");
                let mut child = Command::new("git")
                    .args(["daemon", "--inetd", "--export-all", "--informative-errors"])
                    .arg(format!("--base-path={}", root.display()))
                    .env_clear()
                    .envs(variables(&root))
                    .stdin(Stdio::from(input))
                    .stdout(Stdio::from(output))
                    .stderr(Stdio::null())
                    .spawn()
                    .expect(
                        "these tests need git: install it, on Debian with `apt-get install git`",
                    );
                std::thread::spawn(move || child.wait());
            }
        });
        daemon
    }

    pub(crate) fn root(&self) -> String {
        format!("git://{}/", self.address)
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

/// A program that is called like `ssh` and runs the command here, with `root` as the root folder. It
/// writes its arguments to the file beside it.
pub(crate) fn fake_ssh(folder: &Path, root: &Path) -> (String, PathBuf) {
    let (program, log) = (folder.join("ssh"), folder.join("ssh.log"));
    let script = format!(
        "#!/bin/sh\necho \"$GIT_PROTOCOL $@\" >> '{log}'\nfor command; do :; done\n\
         case $command in \"git-upload-pack '/\"*) ;; *) echo 'strange command' >&2; exit 1;; esac\n\
         path=${{command#\"git-upload-pack '\"}}\nexec git upload-pack '{root}'\"${{path%\"'\"}}\"\n",
        log = log.display(),
        root = root.display(),
    );
    fs::write(&program, script).expect("can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).expect("can be made executable");
    (program.to_str().expect("temporary folders are UTF-8").to_owned(), log)
}
