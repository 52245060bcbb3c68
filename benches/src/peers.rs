//! The same data in the form for other tools: a simple index and wheels for uv, a registry for bun.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flate2::Crc;
use serde_json::json;
use sha2::{Digest as _, Sha256, Sha512};

use crate::graph::{self, Package};
use crate::hub::{Content, archive, hex, write};

/// A package's name as Python writes it.
pub(crate) fn python_name(name: &str) -> String {
    name.replace('/', "-")
}

/// Writes the graph as a simple index with separate metadata files.
pub(crate) fn write_simple(folder: &Path, packages: &[Package]) {
    for package in packages {
        let name = python_name(&package.name);
        let mut files = Vec::new();
        for version in &package.versions {
            let number = graph::text(version.number);
            let mut metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n");
            for dependency in &version.dependencies {
                metadata.push_str(&format!(
                    "Requires-Dist: {} >={},<{}\n",
                    python_name(&packages[dependency.package].name),
                    graph::text(dependency.least),
                    graph::text(dependency.before),
                ));
            }
            let wheel = format!("{}-{number}-py3-none-any.whl", name.replace('-', "_"));
            let digest = hex(&Sha256::digest(metadata.as_bytes()));
            files.push(json!({
                "filename": wheel,
                "url": format!("../../files/{wheel}"),
                "hashes": {"sha256": digest},
                "core-metadata": {"sha256": digest},
                "requires-python": ">=3.8",
            }));
            write(&folder.join(format!("files/{wheel}.metadata")), metadata.as_bytes());
        }
        let page = json!({"meta": {"api-version": "1.1"}, "name": name, "files": files});
        write(&folder.join(format!("simple/{name}/index.json")), page.to_string().as_bytes());
    }
}

/// Writes what can be installed as wheels.
pub(crate) fn write_wheels(folder: &Path, contents: &[Content]) {
    for content in contents {
        let name = python_name(&content.name);
        let module = name.replace('-', "_");
        let information = format!("{module}-1.0.0.dist-info");
        let mut files: Vec<(String, Vec<u8>)> = content
            .files
            .iter()
            .map(|(path, content)| (format!("{module}/{path}"), content.clone()))
            .collect();
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n");
        let wheel = "Wheel-Version: 1.0\nGenerator: mu\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        files.push((format!("{information}/METADATA"), metadata.clone().into_bytes()));
        files.push((format!("{information}/WHEEL"), wheel.as_bytes().to_vec()));
        let mut record = String::new();
        for (path, content) in &files {
            let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(content));
            record.push_str(&format!("{path},sha256={digest},{}\n", content.len()));
        }
        record.push_str(&format!("{information}/RECORD,,\n"));
        files.push((format!("{information}/RECORD"), record.into_bytes()));
        let bytes = zip(&files);
        let file = format!("{module}-1.0.0-py3-none-any.whl");
        let page = json!({"meta": {"api-version": "1.1"}, "name": name, "files": [{
            "filename": file,
            "url": format!("../../files/{file}"),
            "hashes": {"sha256": hex(&Sha256::digest(&bytes))},
            "core-metadata": {"sha256": hex(&Sha256::digest(metadata.as_bytes()))},
        }]});
        write(&folder.join(format!("files/{file}")), &bytes);
        write(&folder.join(format!("files/{file}.metadata")), metadata.as_bytes());
        write(&folder.join(format!("simple/{name}/index.json")), page.to_string().as_bytes());
    }
}

/// A zip with uncompressed files.
fn zip(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (path, content) in files {
        let mut crc = Crc::new();
        crc.update(content);
        let size = u32::try_from(content.len()).expect("files are small");
        // Times are the first of January 1980.
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 33, 0];
        common.extend_from_slice(&crc.sum().to_le_bytes());
        common.extend_from_slice(&size.to_le_bytes());
        common.extend_from_slice(&size.to_le_bytes());
        common.extend_from_slice(&(path.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        directory.extend_from_slice(b"PK\x01\x02\x14\x03");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 6]);
        directory.extend_from_slice(&(0o100_644_u32 << 16).to_le_bytes());
        directory.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        directory.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(b"PK\x03\x04");
        bytes.extend_from_slice(&common);
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(content);
    }
    let start = bytes.len() as u32;
    bytes.extend_from_slice(&directory);
    let count = (files.len() as u16).to_le_bytes();
    bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    bytes.extend_from_slice(&count);
    bytes.extend_from_slice(&count);
    bytes.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&start.to_le_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes
}

/// A package's name as npm writes it.
pub(crate) fn npm_name(name: &str) -> String {
    name.replace('/', "-")
}

/// Writes the installable packages as an npm registry below `folder`, which is served at `url`.
pub(crate) fn write_npm(folder: &Path, url: &str, contents: &[Content]) {
    for content in contents {
        let name = npm_name(&content.name);
        let mut files = content.files.clone();
        let manifest = json!({"name": name, "version": "1.0.0"}).to_string();
        files.push(("package.json".to_owned(), manifest.into_bytes()));
        let archive = archive(&files, "package/");
        let tarball = format!("{name}-1.0.0.tgz");
        let document = json!({
            "name": name,
            "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": {
                "name": name,
                "version": "1.0.0",
                "dist": {
                    "tarball": format!("{url}npm-files/{tarball}"),
                    "integrity": format!("sha512-{}", STANDARD.encode(Sha512::digest(&archive))),
                },
            }},
        });
        write(&folder.join(format!("npm/{name}")), document.to_string().as_bytes());
        write(&folder.join(format!("npm-files/{tarball}")), &archive);
    }
}
