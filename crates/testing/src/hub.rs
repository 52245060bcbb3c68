//! A static hub in a folder, which any web server can serve.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::files::{digest_of, hex, tar_gz, tree, write};

/// A hub in a folder.
#[derive(Debug, Clone)]
pub struct Hub {
    folder: PathBuf,
}

/// The keys that both an index line and a manifest have.
const IN_MANIFEST: [&str; 13] = [
    "dependencies",
    "provides",
    "requires",
    "replaces",
    "constraints",
    "channels",
    "defaultChannel",
    "upgrade",
    "apiVersion",
    "muVersion",
    "appVersion",
    "versioning",
    "versions",
];

/// A version of a package that is about to be published.
#[derive(Debug, Clone)]
pub struct Package {
    name: String,
    version: String,
    dependencies: Vec<String>,
    has_manifest: bool,
    manifest: String,
    files: Vec<(String, String)>,
    line: Value,
    /// What the index line has instead of these.
    lies: Value,
}

impl Package {
    /// `NAME VERSION`, with only a manifest.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            dependencies: Vec::new(),
            has_manifest: true,
            manifest: String::new(),
            files: Vec::new(),
            line: json!({}),
            lies: json!({}),
        }
    }

    /// The same package at another version.
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    /// Adds a dependency.
    pub fn needs(mut self, reference: &str) -> Self {
        self.dependencies.push(reference.to_owned());
        self
    }

    /// Adds a file; see [`write()`].
    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.files.push((path.to_owned(), content.to_owned()));
        self
    }

    /// Leaves out the manifest.
    pub fn without_manifest(mut self) -> Self {
        self.has_manifest = false;
        self
    }

    /// Adds lines to the manifest.
    pub fn manifest(mut self, lines: &str) -> Self {
        self.manifest.push_str(lines);
        self
    }

    /// Sets a key of the index line and, if a manifest has this key, of the manifest too.
    pub fn key(mut self, key: &str, value: Value) -> Self {
        self.line[key] = value;
        self
    }

    /// Sets a key only in the index line; `null` removes it.
    pub fn lies(mut self, key: &str, value: Value) -> Self {
        self.lies[key] = value;
        self
    }

    /// Writes the package's files into a folder.
    pub fn write_into(&self, folder: &Path) {
        // For a composite version, both the manifest and the line have the revision.
        let version = self.line.get("version").and_then(Value::as_str).unwrap_or(&self.version);
        let mut manifest = format!("name: {}\nversion: {version}\n", self.name);
        if !self.dependencies.is_empty() && self.line.get("dependencies").is_none() {
            manifest.push_str("dependencies:\n");
            for dependency in &self.dependencies {
                manifest.push_str(&format!("  - {dependency}\n"));
            }
        }
        for key in IN_MANIFEST {
            let is_written = self.manifest.lines().any(|line| line.starts_with(&format!("{key}:")));
            if let Some(value) = self.line.get(key).filter(|_| !is_written) {
                manifest.push_str(&format!("{key}: {value}\n"));
            }
        }
        manifest.push_str(&self.manifest);
        if self.has_manifest {
            write(folder, "Mu.yaml", manifest);
        }
        for (path, content) in &self.files {
            write(folder, path, content);
        }
    }
}

impl Hub {
    /// A hub without packages.
    pub fn new(folder: &Path) -> Self {
        write(folder, "hub.json", r#"{"hub": 1}"#);
        Self { folder: folder.to_owned() }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The archive of `NAME` `VERSION`.
    pub fn archive(&self, name: &str, version: &str) -> PathBuf {
        let leaf = name.rsplit('/').next().expect("a name has a segment");
        self.folder.join(format!("packs/{name}/{leaf}-{version}.tgz"))
    }

    /// The index of a package.
    pub fn index(&self, name: &str) -> PathBuf {
        self.folder.join(format!("index/{name}.jsonl"))
    }

    /// Changes one byte of a file.
    pub fn flip(&self, file: &Path) {
        let mut bytes = fs::read(file).expect("is there");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, bytes).expect("is ours");
    }

    /// Publishes a version without dependencies.
    pub fn release(&self, name: &str, version: &str) {
        self.publish(&Package::new(name, version));
    }

    /// Publishes a version; returns its digest.
    pub fn publish(&self, package: &Package) -> String {
        let folder = tempfile::tempdir().expect("there is room");
        package.write_into(folder.path());
        let digest = digest_of(folder.path());
        let archive = tar_gz(tree(folder.path()));
        let mut line = json!({
            "name": package.name,
            "version": package.version,
            "digest": digest,
            "archive": format!("sha256:{}", hex(&archive)),
            "size": archive.len(),
        });
        if !package.dependencies.is_empty() {
            line["dependencies"] = json!(package.dependencies);
        }
        for (key, value) in package.line.as_object().expect("is an object") {
            line[key] = value.clone();
        }
        for (key, value) in package.lies.as_object().expect("is an object") {
            match value {
                Value::Null => drop(line.as_object_mut().expect("is one").remove(key)),
                value => line[key] = value.clone(),
            }
        }
        let place = self.archive(&package.name, &package.version);
        write(Path::new("/"), place.to_str().expect("is UTF-8"), archive);
        let index = self.index(&package.name);
        fs::create_dir_all(index.parent().expect("is below the hub")).expect("can be made");
        let mut file = fs::File::options().create(true).append(true).open(index).expect("is ours");
        writeln!(file, "{line}").expect("can be written");
        digest
    }
}
