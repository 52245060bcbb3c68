//! A Helm chart repository in a folder: archives as `helm package` makes them, and an index as `helm repo index`
//! writes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::files::{hex, tar_gz, write};

/// A version of a chart that is about to be put into a repository.
#[derive(Debug, Clone)]
pub struct Chart {
    name: String,
    version: String,
    /// The rest of its `Chart.yaml`.
    lines: String,
    files: Vec<(String, String)>,
    /// Lines that only the index has.
    entry: String,
}

impl Chart {
    /// `NAME VERSION`, with one template.
    pub fn new(name: &str, version: &str) -> Self {
        let template =
            format!("kind: ConfigMap\nmetadata:\n  name: {{{{ .Release.Name }}}}-{name}\n");
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            lines: String::new(),
            files: vec![("templates/map.yaml".to_owned(), template)],
            entry: String::new(),
        }
    }

    /// Adds lines to its `Chart.yaml`, which the index has, too.
    pub fn lines(mut self, lines: &str) -> Self {
        self.lines.push_str(lines);
        self
    }

    /// Adds a dependency on a chart of a repository, with a copy inside the archive.
    pub fn needs(mut self, name: &str, range: &str, repository: &str) -> Self {
        if !self.lines.contains("dependencies:\n") {
            self.lines.push_str("dependencies:\n");
        }
        self.lines.push_str(&format!(
            "- name: {name}\n  repository: {repository}\n  version: {range:?}\n"
        ));
        let inside = format!("apiVersion: v2\nname: {name}\nversion: 0.0.1\n");
        self.file(&format!("charts/{name}/Chart.yaml"), &inside)
    }

    /// Adds a file.
    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.files.push((path.to_owned(), content.to_owned()));
        self
    }

    /// Adds lines to its entry in the index that `Chart.yaml` does not have.
    pub fn listed(mut self, lines: &str) -> Self {
        self.entry.push_str(lines);
        self
    }

    /// Its `Chart.yaml`.
    pub fn manifest(&self) -> String {
        format!("apiVersion: v2\nname: {}\nversion: {}\n{}", self.name, self.version, self.lines)
    }

    /// Its files, inside of its folder.
    pub fn files(&self) -> BTreeMap<String, (char, Vec<u8>)> {
        let manifest = [("Chart.yaml".to_owned(), self.manifest())];
        let files = manifest.iter().chain(&self.files);
        files.map(|(path, text)| (path.clone(), ('f', text.clone().into_bytes()))).collect()
    }

    /// Its archive.
    pub fn archive(&self) -> Vec<u8> {
        tar_gz(self.files().into_iter().map(|(path, file)| (format!("{}/{path}", self.name), file)))
    }
}

/// A repository in a folder.
#[derive(Debug)]
pub struct Charts {
    folder: PathBuf,
    entries: BTreeMap<String, Vec<String>>,
}

impl Charts {
    /// A repository without charts.
    pub fn new(folder: &Path) -> Self {
        let charts = Self { folder: folder.to_owned(), entries: BTreeMap::new() };
        charts.write_index();
        charts
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a version with this archive to the repository.
    pub fn add(&mut self, chart: &Chart) {
        self.add_with(chart, &chart.archive());
    }

    /// Puts a version into it with another archive than its own.
    pub fn add_with(&mut self, chart: &Chart, archive: &[u8]) {
        let file = format!("{}-{}.tgz", chart.name, chart.version);
        write(&self.folder, &file, archive);
        let mut entry = chart.manifest();
        if !chart.entry.contains("digest:") {
            entry.push_str(&format!("digest: {}\n", hex(archive)));
        }
        if !chart.entry.contains("urls:") {
            entry.push_str(&format!("urls:\n- {file}\n"));
        }
        entry.push_str(&chart.entry);
        // The newest comes first, as in Helm.
        self.entries.entry(chart.name.clone()).or_default().insert(0, entry);
        self.write_index();
    }

    /// Replaces its index.
    pub fn index(&self, text: &str) {
        write(&self.folder, "index.yaml", text);
    }

    /// The text of its index.
    pub fn text(&self) -> String {
        fs::read_to_string(self.folder.join("index.yaml")).expect("is there")
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
        text.push_str("generated: \"2026-03-01T10:11:12Z\"\n");
        self.index(&text);
    }
}
