//! Packages to publish, and what a reader sees of a hub afterwards.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use mu_hub::Publication;
use serde_json::{Map, Value, json};

/// An archive of files.
pub(crate) fn archive(files: &[(&str, &str)]) -> Bytes {
    let files = files.iter();
    let files = files.map(|(path, text)| ((*path).to_owned(), ('f', text.as_bytes().to_vec())));
    mu_testing::tar_gz(files).into()
}

/// A package with only a manifest and a file with `content`.
pub(crate) fn publication(name: &str, version: &str, content: &str) -> Publication {
    with_keys(name, version, content, json!({}))
}

/// Keys of an index line that no manifest has.
const ADDED: [&str; 6] = ["published", "tags", "urls", "digest", "archive", "yanked"];

/// The same, with more keys in its manifest and its index line.
pub(crate) fn with_keys(name: &str, version: &str, content: &str, keys: Value) -> Publication {
    let mut line = Map::new();
    line.insert("name".to_owned(), name.into());
    line.insert("version".to_owned(), version.into());
    line.extend(keys.as_object().expect("is an object").clone());
    let said = line.iter().filter(|(key, _)| !ADDED.contains(&key.as_str()));
    let manifest: String = said.map(|(key, value)| format!("{key}: {value}\n")).collect();
    let archive = archive(&[("Mu.yaml", &manifest), ("content.txt", content)]);
    Publication { line, archive }
}

/// The lines of an index file in a folder.
pub(crate) fn lines(folder: &Path, name: &str) -> Vec<Map<String, Value>> {
    let text =
        std::fs::read_to_string(folder.join(format!("index/{name}.jsonl"))).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("is a line")).collect()
}

/// `hub.json` of a folder.
pub(crate) fn hub_file(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("hub.json")).expect("is there");
    serde_json::from_str(&text).expect("is JSON")
}

/// Name → latest version, according to the catalog.
pub(crate) fn catalog(folder: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder.join("catalog.jsonl")).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("is a line"));
    lines
        .map(|line| {
            let text = |key: &str| line[key].as_str().expect("is text").to_owned();
            (text("name"), text("latest"))
        })
        .collect()
}

/// The names in the log, a line each.
pub(crate) fn log(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("log/000000.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
