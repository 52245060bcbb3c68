//! Docker's own registry, Debian's `docker-registry`: it stores OCI images, and has no referrers API.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tempfile::TempDir;

use super::reserved_port::ReservedPort;

/// A running registry, empty at first; it stops when it is dropped.
#[derive(Debug)]
pub struct DockerRegistry {
    process: Child,
    folder: TempDir,
    port: ReservedPort,
    said: Arc<(Mutex<Vec<String>>, Condvar)>,
}

impl DockerRegistry {
    /// Starts a registry on a free port of this machine.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts one that lets in only the user `ada` with the password `hunter2`.
    pub fn guarded() -> Self {
        Self::start_with("auth: {htpasswd: {realm: tests, path: FOLDER/users}}\n")
    }

    /// Starts one with more lines of configuration.
    fn start_with(more: &str) -> Self {
        /// What `htpasswd -B` writes.
        const USERS: &str = "ada:$2b$05$abcdefghijklmnopqrstuuoXuKqgZXLiJqzfmMXDDhSFPIvxV7t8.\n";
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let port = ReservedPort::take();
        let data = folder.path().join("data");
        let configuration = format!(
            "version: 0.1\nlog: {{level: info, accesslog: {{disabled: false}}}}\nstorage:\n  filesystem: {{rootdirectory: {}}}\n  delete: {{enabled: true}}\nhttp: {{addr: '{}', secret: tests}}\n",
            data.display(),
            port.host()
        );
        let file = folder.path().join("config.yml");
        let more = more.replace("FOLDER", &folder.path().display().to_string());
        fs::write(&file, configuration + &more).expect("can be written");
        fs::write(folder.path().join("users"), USERS).expect("can be written");
        let mut process = Command::new(find())
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("docker-registry can be started");
        let stderr = process.stderr.take().expect("is piped");
        let stdout = process.stdout.take().expect("is piped");
        let mut lines = BufReader::new(stderr).lines();
        let listens =
            lines.by_ref().map_while(Result::ok).any(|line| line.contains("listening on"));
        assert!(listens, "docker-registry does not start");
        // The rest of its output is read too, so that it never blocks.
        std::thread::spawn(move || lines.count());
        let said = Arc::<(Mutex<Vec<String>>, Condvar)>::default();
        let log = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let (lines, is_new) = &*log;
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                is_new.notify_all();
            }
        });
        Self { process, folder, port, said }
    }

    /// Host and port.
    pub fn host(&self) -> String {
        self.port.host()
    }

    /// The folder where it stores its data.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("data/docker/registry/v2")
    }

    /// Its log of the requests so far.
    pub fn log(&self) -> Vec<String> {
        const MARK: &str = "/v2/?mark=";
        // It says something of a request a while after it was answered: a request of our own comes behind the others.
        let (lines, is_new) = &*self.said;
        let lock = || lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = format!("{MARK}{} ", lock().len());
        let mut stream = TcpStream::connect(self.host()).expect("the registry runs");
        stream.write_all(format!("GET {mark}HTTP/1.0\r\n\r\n").as_bytes()).expect("is sent");
        stream.read_to_end(&mut Vec::new()).expect("is answered");
        let is_there = |lines: &mut Vec<String>| !lines.iter().any(|line| line.contains(&mark));
        let lines = is_new.wait_while(lock(), is_there).unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| !line.contains(MARK)).cloned().collect()
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        // If it has ended already, that is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn find() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("docker-registry"))
        .find(|file| file.is_file())
        .expect("these tests need docker-registry: install it, on Debian with `apt-get install docker-registry`")
}
