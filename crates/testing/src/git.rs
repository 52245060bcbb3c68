//! The real Git: repositories that `git` created, and servers that run it (`git http-backend` behind a small web server, `git
//! daemon`, and a stand-in for `ssh`).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::http::{Reply, Seen, TestServer};
use crate::listener::Listener;

/// A format of repositories: how one begins, and what is done once there is a commit.
pub type RepositoryFormat =
    (&'static str, &'static [&'static str], &'static [&'static [&'static str]]);

/// The usual format, and those that libgit2 does not read. The sparse checkout has the folders
/// that the tests look at, and leaves others out.
pub const REPOSITORY_FORMATS: [RepositoryFormat; 6] = [
    ("as usual", &[], &[]),
    ("references in tables", &["--ref-format=reftable"], &[]),
    ("SHA-256", &["--object-format=sha256"], &[]),
    (
        "a partial clone",
        &[],
        &[
            &["config", "core.repositoryformatversion", "1"],
            &["config", "extensions.partialClone", "origin"],
        ],
    ),
    (
        "a sparse index",
        &[],
        &[&[
            "sparse-checkout",
            "set",
            "--cone",
            "--sparse-index",
            ".mu",
            "acme/lib",
            "acme/web",
            "assumed",
            "aws",
            "lib",
        ]],
    ),
    ("a split index", &[], &[&["update-index", "--split-index"]]),
];

/// The environment of every `git` in the tests, with only the tests' own configuration.
pub fn variables(home: &Path) -> BTreeMap<String, String> {
    let path = std::env::var("PATH").expect("the tests find git on the path");
    let home = home.to_str().expect("temporary folders are UTF-8").to_owned();
    [
        ("PATH", path),
        ("HOME", home),
        ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Runs `git` in a folder and returns what it prints.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    git_with_input(folder, arguments, b"")
}

/// Runs `git` in a folder with something on its standard input.
pub fn git_with_input(folder: &Path, arguments: &[&str], input: &[u8]) -> String {
    let mut command = Command::new(crate::program("git"));
    command.args(arguments).current_dir(folder).env_clear().envs(variables(folder));
    command.env("GIT_ALLOW_PROTOCOL", "file");
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Ada")
            .env(format!("GIT_{role}_EMAIL"), "ada@example.com")
            .env(format!("GIT_{role}_DATE"), "2026-01-01T00:00:00Z");
    }
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("these tests need git: install it, on Debian with `apt-get install git`");
    std::io::Write::write_all(&mut child.stdin.take().expect("is piped"), input)
        .expect("git reads");
    let output = child.wait_with_output().expect("git ends");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {words}");
    String::from_utf8(output.stdout).expect("git prints text").trim().to_owned()
}

/// A folder with repositories, which servers can serve.
#[derive(Debug)]
pub struct Origin {
    root: TempDir,
    folder: PathBuf,
}

impl Origin {
    /// A folder with one empty repository, `name`, whose branch is `main`.
    pub fn new(name: &str) -> Self {
        let root = tempfile::tempdir().expect("there is room");
        let mut origin = Self { folder: root.path().to_owned(), root };
        origin.add(name);
        origin
    }

    /// Creates another repository in the same folder, and switches to it.
    pub fn add(&mut self, name: &str) {
        self.folder = self.root.path().join(name);
        fs::create_dir_all(&self.folder).expect("the folder can be made");
        git(&self.folder, &["init", "--quiet", "--initial-branch=main", "."]);
        // As on hosts that allow everything, so that version 0 and partial fetches can be tested.
        git(&self.folder, &["config", "uploadpack.allowFilter", "true"]);
    }

    /// The folder around the repositories.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The repository's own folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `git` in the repository and returns what it prints.
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.folder, arguments)
    }

    /// Writes files and commits them; a content that begins with `-> ` makes a link.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, content) in files {
            let path = self.folder.join(path);
            fs::create_dir_all(path.parent().expect("is below the folder")).expect("can be made");
            match content.strip_prefix("-> ") {
                Some(target) => std::os::unix::fs::symlink(target, path).expect("can be made"),
                None => fs::write(path, content).expect("can be written"),
            }
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Commits a manifest of this version and tags it.
    pub fn release(&self, tag: &str) -> String {
        let commit = self.commit(&[("Mu.yaml", &format!("name: a/b\n# for {tag}\n"))]);
        self.git(&["tag", tag]);
        commit
    }

    /// Commits a tree that Git itself would refuse, made of raw entries.
    pub fn commit_raw(&self, tree: &[u8]) -> String {
        let tree = self.object("tree", tree);
        let commit = self.git(&["commit-tree", &tree, "-m", "hostile"]);
        self.git(&["update-ref", "refs/heads/hostile", &commit]);
        commit
    }

    /// Writes an object without looking at it.
    pub fn object(&self, kind: &str, data: &[u8]) -> String {
        let arguments = ["hash-object", "--literally", "-w", "--stdin", "-t", kind];
        git_with_input(&self.folder, &arguments, data)
    }

    /// A tree with these entries, in this order; the last is the name of the object.
    pub fn tree(&self, entries: &[(&str, &[u8], &str)]) -> Vec<u8> {
        let mut data = Vec::new();
        for (mode, name, oid) in entries {
            data.extend_from_slice(mode.as_bytes());
            data.push(b' ');
            data.extend_from_slice(name);
            data.push(0);
            data.extend(oid.as_bytes().chunks(2).map(|pair| {
                let pair = std::str::from_utf8(pair).expect("is hex");
                u8::from_str_radix(pair, 16).expect("is hex")
            }));
        }
        data
    }
}

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
    let mut child = Command::new(crate::program("git"))
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
            let mut command = Command::new(crate::program("git"));
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
