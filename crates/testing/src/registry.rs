//! Docker's own registry, Debian's `docker-registry`, which stores OCI images and has no referrers API; and artifacts like those
//! of other ecosystems' tools, which are pushed into any OCI registry.
//!
//! `oci` has a registry that misbehaves on command.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::charts::Chart;
use super::files::{gzip, hex, tar};
use super::listener::ReservedPort;

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
        let mut process = Command::new(crate::program("docker-registry"))
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

/// An artifact to push.
#[derive(Debug, Clone)]
pub struct Artifact {
    config: (String, Vec<u8>),
    layers: Vec<(String, Vec<u8>, Map<String, Value>)>,
    annotations: BTreeMap<String, String>,
}

impl Artifact {
    /// With this config, and nothing else yet.
    pub fn new(config_type: &str, config: &[u8]) -> Self {
        let config = (config_type.to_owned(), config.to_vec());
        Self { config, layers: Vec::new(), annotations: BTreeMap::new() }
    }

    /// A chart, as `helm push` has it.
    pub fn chart(chart: &Chart) -> Self {
        let config: Value = serde_yaml::from_str(&chart.manifest()).expect("is YAML");
        Self::new("application/vnd.cncf.helm.config.v1+json", config.to_string().as_bytes()).layer(
            "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            &chart.archive(),
            &[],
        )
    }

    /// A KCL module with these files, like that of `kcl mod push`, compressed or not.
    pub fn module(name: &str, version: &str, files: &[(&str, &str)], compressed: bool) -> Self {
        let layer = tar(files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), ('f', text.as_bytes().to_vec()))));
        let (kind, layer) = match compressed {
            true => ("application/vnd.oci.image.layer.v1.tar+gzip", gzip(&layer)),
            false => ("application/vnd.oci.image.layer.v1.tar", layer),
        };
        Self::new("application/vnd.oci.image.config.v1+json", b"{}")
            .layer(kind, &layer, &[])
            .says("org.kcllang.package.name", name)
            .says("org.kcllang.package.version", version)
    }

    /// A package of Crossplane with this `package.yaml`, as `crossplane xpkg push` has it, beside the layer of its runtime.
    pub fn package(text: &str) -> Self {
        let file = |path: &str, text: &str| (path.to_owned(), ('f', text.as_bytes().to_vec()));
        let runtime = gzip(&tar([file("usr/bin/provider", text)]));
        let base = gzip(&tar([file("package.yaml", text)]));
        let kind = "application/vnd.oci.image.layer.v1.tar+gzip";
        Self::new("application/vnd.oci.image.config.v1+json", b"{\"os\":\"linux\"}")
            .layer(kind, &runtime, &[])
            .layer(kind, &base, &[("io.crossplane.xpkg", "base")])
    }

    /// Adds a layer with annotations.
    pub fn layer(mut self, media_type: &str, bytes: &[u8], said: &[(&str, &str)]) -> Self {
        let said = said.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        self.layers.push((media_type.to_owned(), bytes.to_vec(), said));
        self
    }

    /// Adds an annotation.
    pub fn says(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Its manifest.
    pub fn manifest(&self) -> Value {
        let descriptor = |media_type: &str, bytes: &[u8]| json!({"mediaType": media_type, "digest": format!("sha256:{}", hex(bytes)), "size": bytes.len()});
        let layers = self.layers.iter().map(|(media_type, bytes, said)| {
            let mut layer = descriptor(media_type, bytes);
            if !said.is_empty() {
                layer["annotations"] = Value::Object(said.clone());
            }
            layer
        });
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor(&self.config.0, &self.config.1),
            "layers": layers.collect::<Vec<_>>(),
        });
        if !self.annotations.is_empty() {
            manifest["annotations"] = json!(self.annotations);
        }
        manifest
    }

    /// Pushes it; returns the digest of its manifest.
    pub fn push(&self, host: &str, repository: &str, tag: &str) -> String {
        let layers = self.layers.iter().map(|(_, bytes, _)| bytes);
        for blob in layers.chain([&self.config.1]) {
            push_blob(host, repository, blob);
        }
        push_manifest(host, repository, tag, &self.manifest())
    }
}

/// Pushes a blob; returns its digest.
pub fn push_blob(host: &str, repository: &str, bytes: &[u8]) -> String {
    let digest = format!("sha256:{}", hex(bytes));
    let (status, head, _) =
        request(host, "POST", &format!("/v2/{repository}/blobs/uploads/"), "", b"");
    assert_eq!(status, 202, "{head}");
    let place = header(&head, "location").expect("a registry says where a blob goes");
    let path =
        place.split_once("://").map_or(place, |(_, rest)| &rest[rest.find('/').unwrap_or(0)..]);
    let and = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{and}digest={}", digest.replace(':', "%3A"));
    let (status, head, _) = request(host, "PUT", &path, "application/octet-stream", bytes);
    assert_eq!(status, 201, "{head}");
    digest
}

/// Pushes a manifest; returns its digest.
pub fn push_manifest(host: &str, repository: &str, tag: &str, manifest: &Value) -> String {
    let bytes = manifest.to_string().into_bytes();
    let media_type = manifest["mediaType"].as_str().unwrap_or_default();
    let path = format!("/v2/{repository}/manifests/{tag}");
    let (status, head, _) = request(host, "PUT", &path, media_type, &bytes);
    assert_eq!(status, 201, "{head}");
    format!("sha256:{}", hex(&bytes))
}

/// A client's answer for a path below `/v2/`, with the digest that the registry states; `None` if it does not
/// exist.
pub fn pull(host: &str, path: &str) -> Option<Vec<u8>> {
    let (status, _, body) = request(host, "GET", &format!("/v2/{path}"), "", b"");
    (status == 200).then_some(body)
}

fn request(
    host: &str,
    method: &str,
    path: &str,
    kind: &str,
    body: &[u8],
) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(host).expect("the registry listens");
    let accept =
        "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, */*";
    let head = format!(
        "{method} {path} HTTP/1.0\r\nhost: {host}\r\naccept: {accept}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("takes a request");
    stream.write_all(body).expect("takes a request");
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).expect("answers") > 2 {}
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let mut answer = Vec::new();
    match header(&head, "content-length").and_then(|text| text.parse().ok()) {
        Some(length) => {
            answer.resize(length, 0);
            reader.read_exact(&mut answer).expect("answers");
        }
        None => drop(reader.read_to_end(&mut answer).expect("answers")),
    }
    (status, head, answer)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
