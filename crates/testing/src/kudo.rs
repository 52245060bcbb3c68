//! A repository of KUDO operators in a folder: archives as `kubectl kudo package create` makes them, and an index as
//! `kubectl kudo repo index` writes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::files::{hex, tar_gz, write};

/// A version of an operator.
#[derive(Debug, Clone)]
pub struct KudoOperator {
    name: String,
    version: String,
    app: Option<String>,
    api: String,
    lines: String,
    tasks: String,
}

impl KudoOperator {
    /// `NAME VERSION`, which installs nothing else.
    pub fn new(name: &str, version: &str) -> Self {
        let tasks =
            "- name: app\n  kind: Apply\n  spec:\n    resources:\n    - map.yaml\n".to_owned();
        let (name, version) = (name.to_owned(), version.to_owned());
        let api = "kudo.dev/v1beta1".to_owned();
        Self { name, version, app: None, api, lines: String::new(), tasks }
    }

    /// With the version of its application.
    pub fn app(mut self, app: &str) -> Self {
        self.app = Some(app.to_owned());
        self
    }

    /// With another `apiVersion` than that of all KUDO's releases.
    pub fn api(mut self, api: &str) -> Self {
        api.clone_into(&mut self.api);
        self
    }

    /// Adds lines to its `operator.yaml`.
    pub fn lines(mut self, lines: &str) -> Self {
        self.lines.push_str(lines);
        self
    }

    /// Adds a task that installs another operator, by its `spec` in one line.
    pub fn installs(mut self, spec: &str) -> Self {
        let task = format!("- name: other\n  kind: KudoOperator\n  spec: {{{spec}}}\n");
        self.tasks.push_str(&task);
        self
    }

    fn head(&self) -> String {
        let app = self.app.as_ref().map(|app| format!("appVersion: \"{app}\"\n"));
        let (name, version) = (&self.name, &self.version);
        format!("{}name: {name}\noperatorVersion: \"{version}\"\n", app.unwrap_or_default())
    }

    /// Its `operator.yaml`.
    pub fn manifest(&self) -> String {
        let Self { api, lines, tasks, .. } = self;
        let plans = "plans:\n  deploy:\n    strategy: serial\n    phases: []\n";
        format!("apiVersion: {api}\n{}{lines}tasks:\n{tasks}{plans}", self.head())
    }

    /// Its files.
    pub fn files(&self) -> BTreeMap<String, (char, Vec<u8>)> {
        let files = [
            ("operator.yaml", self.manifest()),
            ("params.yaml", "apiVersion: kudo.dev/v1beta1\nparameters: []\n".to_owned()),
            ("templates/map.yaml", "apiVersion: v1\nkind: ConfigMap\n".to_owned()),
        ];
        files.map(|(path, text)| (path.to_owned(), ('f', text.into_bytes()))).into()
    }

    /// Its archive, which has no folder at its top.
    pub fn archive(&self) -> Vec<u8> {
        tar_gz(self.files())
    }

    /// The name of its archive.
    pub fn file(&self) -> String {
        match &self.app {
            Some(app) => format!("{}-{app}_{}.tgz", self.name, self.version),
            None => format!("{}-{}.tgz", self.name, self.version),
        }
    }
}

/// A repository in a folder.
#[derive(Debug)]
pub struct KudoRepository {
    folder: PathBuf,
    /// What the URLs of its archives begin with.
    url: String,
    entries: BTreeMap<String, Vec<String>>,
}

impl KudoRepository {
    /// A repository without operators; the URLs in its index begin with `url`.
    pub fn new(folder: &Path, url: &str) -> Self {
        let (folder, url) = (folder.to_owned(), url.to_owned());
        let repository = Self { folder, url, entries: BTreeMap::new() };
        repository.write_index();
        repository
    }

    /// Adds a version.
    pub fn add(&mut self, operator: &KudoOperator) {
        self.add_with(operator, &operator.archive());
    }

    /// Adds a version with another archive than its own.
    pub fn add_with(&mut self, operator: &KudoOperator, archive: &[u8]) {
        let file = operator.file();
        write(&self.folder, &file, archive);
        let urls = format!("urls:\n- {}{file}\n", self.url);
        let entry = format!("{}digest: {}\n{urls}", operator.head(), hex(archive));
        // The newest comes first.
        self.entries.entry(operator.name.clone()).or_default().insert(0, entry);
        self.write_index();
    }

    fn write_index(&self) {
        let mut text = "apiVersion: v1\nentries:".to_owned();
        text.push_str(if self.entries.is_empty() { " {}\n" } else { "\n" });
        for (name, entries) in &self.entries {
            text.push_str(&format!("  {name}:\n"));
            for entry in entries {
                for (number, line) in entry.lines().enumerate() {
                    text.push_str(if number == 0 { "  - " } else { "    " });
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        text.push_str("generated: \"2020-09-01T10:11:12Z\"\n");
        write(&self.folder, "index.yaml", text);
    }
}
