//! Hostile content, through the whole program: refused with the code `integrity`, nothing written
//! outside, nothing kept.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use mu_provider::conformance::{HostileTree, Item, hostile_trees};
use serde_json::json;

use crate::support::{Package, Sandbox, hex, tree};

/// An entry of a tar, as no library would write it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: u8,
    pub(crate) mode: u32,
    pub(crate) content: Vec<u8>,
    pub(crate) target: &'static str,
}

impl Entry {
    /// A file.
    pub(crate) fn file(path: &[u8], content: &[u8]) -> Self {
        let (path, content) = (path.to_vec(), content.to_vec());
        Self { path, kind: b'0', mode: 0o644, content, target: "" }
    }
}

/// The entries of a tree.
pub(crate) fn entries(hostile: &HostileTree) -> Vec<Entry> {
    let entry = |(path, item): &(Vec<u8>, Item)| match item {
        Item::File(content) => Entry::file(path, content.as_bytes()),
        Item::Link(target) => Entry { kind: b'2', target, ..Entry::file(path, b"") },
    };
    hostile.items.iter().map(entry).collect()
}

/// A tar of entries.
pub(crate) fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Entry { path, kind, mode, content, target } in entries {
        let mut header = [0_u8; 512];
        header[..path.len()].copy_from_slice(path);
        header[100..108].copy_from_slice(format!("{mode:07o}\0").as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[148..156].copy_from_slice(b"        ");
        header[156] = *kind;
        header[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend_from_slice(&[0; 1024]);
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("goes to memory");
    encoder.finish().expect("goes to memory")
}

/// An archive of every hostile tree, with its problem.
pub(crate) fn archives() -> Vec<(String, Vec<u8>)> {
    hostile_trees()
        .iter()
        .map(|hostile| (hostile.name.to_string(), gzip(&tar(&entries(hostile)))))
        .collect()
}

/// Puts an archive in the place of the published one, with an index line that agrees with it.
fn publish_archive(sandbox: &Sandbox, name: &str, archive: &[u8]) {
    let hub = sandbox.hub();
    let place = hub.archive(name, "1.0.0");
    fs::create_dir_all(place.parent().expect("is below the hub")).expect("can be made");
    fs::write(&place, archive).expect("can be written");
    let line = json!({
        "name": name, "version": "1.0.0", "size": archive.len(),
        "archive": format!("sha256:{}", hex(archive)),
    });
    let index = hub.index(name);
    fs::create_dir_all(index.parent().expect("is below the hub")).expect("can be made");
    fs::write(index, format!("{line}\n")).expect("can be written");
}

/// Everything outside the cache and the packs' own folder for notes.
pub(crate) fn outside(sandbox: &Sandbox) -> Vec<String> {
    let files = tree(sandbox.root());
    let own = |path: &String| path.starts_with("work/.mu/packs/.mu/");
    files.into_keys().filter(|path| !path.starts_with("cache/") && !own(path)).collect()
}

/// Files in the store, without its locks.
pub(crate) fn stored(sandbox: &Sandbox) -> Vec<String> {
    let store = sandbox.path("cache/store");
    if !store.exists() {
        return Vec::new();
    }
    tree(&store)
        .into_keys()
        .filter(|path| Path::new(path).file_name() != Some("lock".as_ref()))
        .collect()
}

#[test]
fn every_hostile_tree_is_refused_and_leaves_nothing() {
    for hostile in hostile_trees() {
        let sandbox = Sandbox::new();
        publish_archive(&sandbox, "hostile/package", &gzip(&tar(&entries(&hostile))));
        let before = outside(&sandbox);
        let error = sandbox.mu(&["get", "hostile/package", "--json"]).fails_with("integrity");
        let message = error["message"].as_str().expect("is text");
        assert!(!message.contains('\u{1b}'), "{}: {message:?}", hostile.name);
        assert_eq!(outside(&sandbox), before, "{}", hostile.name);
        assert_eq!(stored(&sandbox), Vec::<String>::new(), "{}", hostile.name);
        assert!(!Path::new("/tmp/mu-hostile").exists(), "{}", hostile.name);
    }
}

#[test]
fn an_archive_that_is_not_the_indexs_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0"), Package::new("aws/vpc", "1.0.0")]);
    let other = fs::read(sandbox.hub().archive("aws/vpc", "1.0.0")).expect("was published");
    fs::write(sandbox.hub().archive("aws/ec2", "1.0.0"), other).expect("can be written");
    let error = sandbox.mu(&["get", "aws/ec2", "--json"]).fails_with("integrity");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("aws/ec2/ec2-1.0.0.tgz"), "{message}");
    assert_eq!(stored(&sandbox), Vec::<String>::new());
}

#[test]
fn content_that_is_not_the_locks_is_refused() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    // The hub publishes other content under the same version, index and all.
    fs::remove_file(sandbox.hub().index("aws/ec2")).expect("was published");
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0").file("new.txt", "other")]);
    for part in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(part)).expect("can be removed");
    }
    let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("expected sha256:") || message.contains("expected h1:"), "{message}");
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com"));
    assert_eq!(stored(&sandbox), Vec::<String>::new());
}

#[test]
fn a_package_that_calls_itself_otherwise_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0")]);
    let archive = fs::read(sandbox.hub().archive("aws/vpc", "1.0.0")).expect("was published");
    publish_archive(&sandbox, "aws/ec2", &archive);
    let error = sandbox.mu(&["get", "aws/ec2", "--json"]).fails_with("integrity");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("contains a package named `aws/vpc`"), "{message}");
    assert_eq!(stored(&sandbox), Vec::<String>::new());
}
