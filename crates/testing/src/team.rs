//! The team of `testdata/team`: its workspace, and the places that it takes packages from, made of the files there.
//!
//! The charts become a repository in a folder; KCL modules and packages of Crossplane go into a registry; a hub and a catalog of
//! operators are used as they are.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::files::{hex, tar_gz, tree, write};
use super::registry::Artifact;

/// The registry that the files of the demo name.
pub const REGISTRY: &str = "localhost:5000";

fn files() -> PathBuf {
    super::file("../../testdata/team")
}

/// Puts the team's workspace into `workspace`, and what others have published beside it, into `published` and into the registry at
/// `host`.
pub fn publish(workspace: &Path, host: &str) {
    for (path, (_, content)) in tree(&files().join("workspace")) {
        let text = String::from_utf8(content).expect("is text");
        write(workspace, &path, text.replace(REGISTRY, host));
    }
    let published = workspace.with_file_name("published");
    for kind in ["hub", "catalog"] {
        for (path, (_, content)) in tree(&files().join("published").join(kind)) {
            write(&published.join(kind), &path, content);
        }
    }
    charts(&published.join("charts"));
    for (name, folder) in folders("modules") {
        let (name, version) = name.rsplit_once('-').expect("is NAME-VERSION");
        let text = |(path, (_, content))| (path, String::from_utf8(content).expect("is text"));
        let texts: Vec<(String, String)> = tree(&folder).into_iter().map(text).collect();
        let texts: Vec<(&str, &str)> =
            texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let module = Artifact::module(name, version, &texts, true);
        module.push(host, &format!("kcl-lang/{name}"), version);
    }
    for (name, folder) in folders("xpkgs") {
        let (name, tag) = name.rsplit_once('-').expect("is NAME-TAG");
        let text = fs::read_to_string(folder.join("package.yaml")).expect("is there");
        Artifact::package(&text).push(host, &format!("xpkg/acme/{name}"), tag);
    }
}

/// The folders of a kind of published packages, by name.
fn folders(kind: &str) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(files().join("published").join(kind)).expect("is there");
    let mut folders: Vec<(String, PathBuf)> = entries
        .map(|entry| {
            let entry = entry.expect("can be read");
            (entry.file_name().into_string().expect("is UTF-8"), entry.path())
        })
        .collect();
    folders.sort();
    folders
}

/// Packs the charts, and writes the index, as `helm package` and `helm repo index` do.
fn charts(repository: &Path) {
    let mut entries = json!({});
    for (file, folder) in folders("charts") {
        let manifest = fs::read_to_string(folder.join("Chart.yaml")).expect("is there");
        let mut entry: Value = serde_yaml::from_str(&manifest).expect("is YAML");
        let name = entry["name"].as_str().expect("is text").to_owned();
        let inside = tree(&folder).into_iter();
        let archive = tar_gz(inside.map(|(path, content)| (format!("{name}/{path}"), content)));
        entry["digest"] = json!(hex(&archive));
        entry["urls"] = json!([format!("{file}.tgz")]);
        write(repository, &format!("{file}.tgz"), archive);
        let list = &mut entries[&name];
        match list.as_array_mut() {
            Some(list) => list.insert(0, entry),
            None => *list = json!([entry]),
        }
    }
    // JSON is YAML, too.
    let index = json!({"apiVersion": "v1", "entries": entries});
    write(repository, "index.yaml", index.to_string());
}
