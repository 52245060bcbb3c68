//! Writes hubs: one with the index of a large graph, one with archives to install.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::graph::{self, Dependency, Package};
use crate::random::Random;

/// How many packages are small, of how many files each.
pub(crate) const SMALL: usize = 300;
const FILES_OF_SMALL: usize = 20;
/// How many there are to grow to.
pub(crate) const MANY: usize = 2_000;
/// How many are large, of how many files and bytes each.
pub(crate) const LARGE: usize = 3;
const FILES_OF_LARGE: usize = 1_200;
const BYTES_OF_LARGE: usize = 20 << 20;

/// Something to install.
pub(crate) struct Content {
    /// `small/pack-001`.
    pub(crate) name: String,
    /// Paths and contents, sorted.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// The names of the first `count` small packages.
pub(crate) fn small_names(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("small/pack-{number:03}")).collect()
}

/// The packages to install, small ones first.
pub(crate) fn contents() -> Vec<Content> {
    let mut random = Random::new(3);
    let small = small_names(MANY).into_iter().map(|name| (name, FILES_OF_SMALL));
    let large = (1..=LARGE).map(|number| (format!("large/pack-{number:03}"), FILES_OF_LARGE));
    small
        .chain(large)
        .map(|(name, count)| {
            let mut files: Vec<(String, Vec<u8>)> = (1..count)
                .map(|number| {
                    let size = if count == FILES_OF_LARGE {
                        BYTES_OF_LARGE / count
                    } else {
                        200 + random.below(3_800)
                    };
                    // What is large is mostly data that hardly compresses.
                    let content = if count == FILES_OF_LARGE && number % 4 != 0 {
                        random.bytes(size)
                    } else {
                        random.text(size)
                    };
                    (format!("src/part-{:02}/file-{number:04}.yaml", number % (count / 7)), content)
                })
                .collect();
            let manifest = format!("name: {name}\nversion: 1.0.0\ndescription: A pack\n");
            files.push(("Mu.yaml".to_owned(), manifest.into_bytes()));
            files.sort();
            Content { name, files }
        })
        .collect()
}

/// A gzip'd tar of `files`, below `prefix`.
pub(crate) fn archive(files: &[(String, Vec<u8>)], prefix: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::new(6)));
    for (path, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, format!("{prefix}{path}"), content.as_slice())
            .expect("memory takes everything");
    }
    builder.into_inner().and_then(GzEncoder::finish).expect("memory takes everything")
}

/// Writes the hub of what can be installed.
pub(crate) fn write_installable(folder: &Path, contents: &[Content]) {
    write(&folder.join("hub.json"), br#"{"hub":1,"index":"index/","packs":"packs/"}"#);
    for content in contents {
        let archive = archive(&content.files, "");
        let line = json!({
            "name": content.name,
            "version": "1.0.0",
            "digest": digest(&content.files),
            "archive": format!("sha256:{}", hex(&Sha256::digest(&archive))),
            "size": archive.len(),
        });
        write(
            &folder.join(format!("index/{}.jsonl", content.name)),
            format!("{line}\n").as_bytes(),
        );
        let leaf = content.name.rsplit('/').next().unwrap_or_default();
        write(&folder.join(format!("packs/{}/{leaf}-1.0.0.tgz", content.name)), &archive);
    }
}

/// Writes the hub of the graph: its index, without archives.
pub(crate) fn write_graph(folder: &Path, packages: &[Package]) {
    write_index(folder, packages, |dependency| range(dependency.least, dependency.before));
}

/// The same without upper bounds, so that minimal selection has an answer.
pub(crate) fn write_open_graph(folder: &Path, packages: &[Package]) {
    write_index(folder, packages, |dependency| format!(">={}", graph::text(dependency.least)));
}

fn write_index(folder: &Path, packages: &[Package], range: impl Fn(&Dependency) -> String) {
    // Every package is a change, in the order of the graph.
    let generation = packages.len();
    let file = json!({
        "hub": 1, "index": "index/", "packs": "packs/", "generation": generation, "log": "log/",
    });
    write(&folder.join("hub.json"), file.to_string().as_bytes());
    for (number, names) in packages.chunks(1_000).enumerate() {
        let lines: String = names.iter().map(|package| format!("{}\n", package.name)).collect();
        write(&folder.join(format!("log/{number:06}.txt")), lines.as_bytes());
    }
    let mut random = Random::new(4);
    for package in packages {
        let mut lines = String::new();
        for version in &package.versions {
            let dependencies: Vec<String> = version
                .dependencies
                .iter()
                .map(|dependency| {
                    let name = &packages[dependency.package].name;
                    format!("{name}#{}", range(dependency))
                })
                .collect();
            let day = version.published / 24;
            let line = json!({
                "name": package.name,
                "version": graph::text(version.number),
                "digest": format!("h1:{}", URL_SAFE_NO_PAD.encode(random.bytes(32))),
                "archive": format!("sha256:{}", hex(&random.bytes(32))),
                "size": 1_000 + random.below(100_000),
                "dependencies": dependencies,
                "published": format!(
                    "{}-{:02}-{:02}T{:02}:00:00Z",
                    2016 + day / 336, 1 + day / 28 % 12, 1 + day % 28, version.published % 24
                ),
                "description": "A package of the generated graph",
            });
            lines.push_str(&format!("{line}\n"));
        }
        write(&folder.join(format!("index/{}.jsonl", package.name)), lines.as_bytes());
    }
}

fn range(least: [u32; 3], before: [u32; 3]) -> String {
    let compatible = match least {
        [0, minor, _] if minor > 0 => [0, minor + 1, 0],
        [major, _, _] => [major + 1, 0, 0],
    };
    if before == compatible {
        format!("^{}", graph::text(least))
    } else {
        format!(">={} <{}", graph::text(least), graph::text(before))
    }
}

/// The content digest of files that are neither executable nor links.
pub(crate) fn digest(files: &[(String, Vec<u8>)]) -> String {
    let mut hash = Sha256::new();
    for (path, content) in files {
        hash.update(format!("f {}  {path}\n", hex(&Sha256::digest(content))));
    }
    format!("h1:{}", URL_SAFE_NO_PAD.encode(hash.finalize()))
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file, and the folders above it.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("files are in folders")).expect("can be made");
    fs::write(path, bytes).expect("can be written");
}
