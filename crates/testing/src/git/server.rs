//! Servers: `git http-backend` behind a small web server, `git daemon`, and a stand-in for `ssh`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::variables;
use crate::http::{Reply, Seen, TestServer};
use crate::listener::Listener;

/// A web server that runs `git http-backend` for every request.
#[derive(Debug)]
pub struct HttpServer {
    server: TestServer,
}

impl HttpServer {
    /// Serves the repositories below `root`.
    pub fn start(root: &Path) -> Self {
        Self::with(root, |_| None)
    }

    /// Serves only version 0 of the protocol, as old servers do.
    pub fn start_old(root: &Path) -> Self {
        let root = root.to_owned();
        let server = TestServer::start(move |request, _| {
            let mut request = request.clone();
            request.headers.retain(|(name, _)| name != "git-protocol");
            backend(&root, &request)
        });
        Self { server }
    }

    /// Serves the repositories below `root`, except for requests that `first` answers.
    pub fn with(
        root: &Path,
        first: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let root = root.to_owned();
        let server = TestServer::start(move |request, _| {
            first(request).unwrap_or_else(|| backend(&root, request))
        });
        Self { server }
    }

    /// Serves the repositories below `root`, with answers that `change` may send otherwise.
    pub fn answering(root: &Path, change: impl Fn(Reply) -> Reply + Send + Sync + 'static) -> Self {
        let root = root.to_owned();
        Self { server: TestServer::start(move |request, _| change(backend(&root, request))) }
    }

    /// The server's URL.
    pub fn root(&self) -> String {
        format!("http://{}/", self.server.host())
    }

    /// Host and port.
    pub fn host(&self) -> String {
        self.server.host()
    }

    /// Refuses all connections from now on, as if the server was not there.
    #[cfg(unix)]
    pub fn refuse(&self) {
        self.server.refuse();
    }

    /// `METHOD PATH` of every request so far.
    pub fn requests(&self) -> Vec<String> {
        self.server.requests()
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }
}

fn backend(root: &Path, request: &Seen) -> Reply {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let path = path.replace("%20", " ");
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
    // A server that refuses the request does not read it.
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
#[derive(Debug)]
pub struct Daemon {
    listener: Listener,
}

impl Daemon {
    /// Serves the repositories below `root`.
    pub fn start(root: &Path) -> Self {
        let root = root.to_owned();
        let listener = Listener::inetd(move || {
            let mut command = Command::new("git");
            command
                .args(["daemon", "--inetd", "--export-all", "--informative-errors"])
                .arg(format!("--base-path={}", root.display()))
                .env_clear()
                .envs(variables(&root));
            command
        });
        Self { listener }
    }

    /// The server's URL.
    pub fn root(&self) -> String {
        format!("git://{}/", self.listener.address())
    }

    /// Refuses all connections from now on, as if the server was not there.
    #[cfg(unix)]
    pub fn refuse(&self) {
        self.listener.refuse();
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.listener.connections()
    }
}

/// A program named `ssh` that runs the command here, with `root` as the root folder, and `home` in it as the home folder of whoever
/// connects. It writes its arguments to the file beside it.
pub fn fake_ssh(folder: &Path, root: &Path) -> (String, PathBuf) {
    let (program, log) = (folder.join("ssh"), folder.join("ssh.log"));
    let script = format!(
        "#!/bin/sh\necho \"$GIT_PROTOCOL $@\" >> '{log}'\nfor command; do :; done\n\
         case $command in \"git-upload-pack '/\"*) at='';; \"git-upload-pack '\"[a-z]*) at=/home/;;\n\
         *) echo 'strange command' >&2; exit 1;; esac\n\
         path=${{command#\"git-upload-pack '\"}}\nexec git upload-pack '{root}'$at\"${{path%\"'\"}}\"\n",
        log = log.display(),
        root = root.display(),
    );
    fs::write(&program, script).expect("can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).expect("can be made executable");
    (program.to_str().expect("temporary folders are UTF-8").to_owned(), log)
}
