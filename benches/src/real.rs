//! A real graph: what Cargo's registry says of the packages that some large projects lead to.
//!
//! Cargo chooses versions for these projects, each alone, and then its cache has one index file for each package that it looked at. A
//! crate may be chosen once for each of its compatible classes (`0.8`, `1`), so each class becomes a package of its own, `rand-0.8`.
//! Features are left out: only dependencies that are always needed count. Nothing of it is kept in the repository.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use semver::{Comparator, Op, VersionReq};
use serde_json::Value;

use crate::graph::{self, Dependency, Package, Version};
use crate::hard;
use crate::hub::write;

/// Large projects of different kinds, by the names of their crates.
const PROJECTS: [&str; 55] = [
    "actix-web",
    "alloy",
    "arrow-flight",
    "atuin",
    "aws-config",
    "aws-sdk-ec2",
    "bevy",
    "burn",
    "candle-core",
    "cargo",
    "cranelift",
    "datafusion",
    "deno",
    "diesel_cli",
    "dioxus",
    "eframe",
    "egui",
    "gitoxide",
    "helix-term",
    "iced",
    "jj-cli",
    "kube",
    "lance",
    "leptos",
    "libp2p",
    "meilisearch-sdk",
    "napi",
    "near-sdk",
    "nu",
    "opentelemetry-otlp",
    "poem",
    "polars",
    "polkadot-sdk",
    "pyo3",
    "ratatui",
    "rocket",
    "rustls",
    "rustpython",
    "salvo",
    "sea-orm",
    "slint",
    "solana-client",
    "sqlx-cli",
    "starship",
    "sui-sdk",
    "surrealdb",
    "swc",
    "tauri",
    "tonic",
    "tract-onnx",
    "uv",
    "vector",
    "wasmtime-cli",
    "wgpu",
    "zed",
];

/// How many packages a workspace needs at most.
const ROOTS: usize = 300;

/// The first bytes of a file of Cargo's cache: its own version, and that of the index.
const HEAD: usize = 5;

/// The number of a version, without a label.
type Number = [u32; 3];

/// The compatible class of a version: the numbers up to the first one that is not zero.
type Class = Vec<u32>;

/// The graph, for which Cargo asks its registry unless `folder` has the answers already.
pub(crate) fn make(folder: &Path) -> Vec<Package> {
    for project in PROJECTS {
        let place = folder.join("projects").join(project);
        if !place.join("Cargo.lock").exists() {
            choose(&place, project, &folder.join("cargo"));
        }
    }
    let mut files = BTreeMap::new();
    for registry in fs::read_dir(folder.join("cargo/registry/index")).into_iter().flatten() {
        read_folder(&registry.expect("can be read").path().join(".cache"), &mut files);
    }
    let mut packages = self::packages(&files);
    // Exact requirements keep many packages apart, as Cargo does not choose one version of each.
    for index in hard::together(&packages, &graph::order(&packages), ROOTS) {
        packages[index].is_root = true;
    }
    packages
}

/// Lets Cargo choose versions for a project. One for which there are none counts, too: its packages were looked at.
fn choose(place: &Path, project: &str, home: &Path) {
    eprintln!("Cargo chooses versions for {project}");
    let manifest = format!(
        "[package]\nname = \"root\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [workspace]\n[dependencies]\n{project} = \"*\"\n"
    );
    write(&place.join("Cargo.toml"), manifest.as_bytes());
    write(&place.join("src/lib.rs"), b"");
    let mut cargo = Command::new("cargo");
    cargo.args(["generate-lockfile", "--quiet"]).current_dir(place).env("CARGO_HOME", home);
    let status = cargo.stdin(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = status.expect("cargo can be started").success();
    if !is_there {
        write(&place.join("Cargo.lock"), b"");
    }
}

/// The lines of all index files below `folder`, by the names of the crates.
fn read_folder(folder: &Path, files: &mut BTreeMap<String, Vec<Value>>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("can be read").path();
        if path.is_dir() {
            read_folder(&path, files);
            continue;
        }
        let bytes = fs::read(&path).expect("can be read");
        // What Cargo knows of the answer, and then a version and its line in turns, each with a zero behind it.
        let parts: Vec<&[u8]> =
            bytes.get(HEAD..).unwrap_or_default().split(|byte| *byte == 0).collect();
        let lines = parts.iter().skip(2).step_by(2);
        let lines: Vec<Value> =
            lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let name = lines.first().and_then(|line| line["name"].as_str().map(str::to_owned));
        files.extend(name.map(|name| (name, lines)));
    }
}

/// The version of a line, unless it is withdrawn or a prerelease.
fn number(line: &Value) -> Option<Number> {
    let version = semver::Version::parse(line["vers"].as_str()?).ok()?;
    let is_usable = line["yanked"] == false && version.pre.is_empty();
    let numbers = [version.major, version.minor, version.patch];
    let [major, minor, patch] = numbers.map(|number| u32::try_from(number).ok());
    is_usable.then_some([major?, minor?, patch?])
}

fn class([major, minor, patch]: Number) -> Class {
    match (major, minor) {
        (0, 0) => vec![0, 0, patch],
        (0, _) => vec![0, minor],
        _ => vec![major],
    }
}

/// The packages of the graph, each with the versions of one class, ascending.
fn packages(files: &BTreeMap<String, Vec<Value>>) -> Vec<Package> {
    let mut lines: BTreeMap<(&str, Class), BTreeMap<Number, &Value>> = BTreeMap::new();
    for (name, all) in files {
        for line in all {
            let Some(number) = number(line) else { continue };
            lines.entry((name, class(number))).or_default().insert(number, line);
        }
    }
    // Where each class of a crate is, and the numbers of its versions.
    let mut classes: BTreeMap<&str, Vec<(usize, Vec<Number>)>> = BTreeMap::new();
    for (index, ((name, _), versions)) in lines.iter().enumerate() {
        classes.entry(name).or_default().push((index, versions.keys().copied().collect()));
    }
    let packages = lines.iter().map(|((name, class), versions)| Package {
        name: package_name(name, class),
        versions: (0..)
            .zip(versions)
            .map(|(hour, (number, line))| Version {
                number: *number,
                published: hour,
                dependencies: dependencies(line, &classes),
            })
            .collect(),
        is_root: false,
    });
    packages.collect()
}

/// `rand-0.8`, as mu, Python and Go can write it.
fn package_name(name: &str, class: &Class) -> String {
    let class: Vec<String> = class.iter().map(u32::to_string).collect();
    format!("{}-v{}", name.to_ascii_lowercase().replace('_', "-"), class.join("-"))
}

/// What a version always needs, as far as Cargo looked at it: of each crate, one class.
fn dependencies(
    line: &Value,
    classes: &BTreeMap<&str, Vec<(usize, Vec<Number>)>>,
) -> Vec<Dependency> {
    let all = line["deps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found: BTreeMap<usize, Dependency> = BTreeMap::new();
    for dependency in all {
        let name = dependency["package"].as_str().or(dependency["name"].as_str());
        let is_needed = dependency["optional"] == false && dependency["kind"] != "dev";
        let range = || bounds(dependency["req"].as_str()?);
        let (Some(name), true, Some(range)) = (name, is_needed, range()) else { continue };
        let known = classes.get(name).into_iter().flatten().rev();
        // The highest class with a version that fits: a package is chosen once.
        let fits = |numbers: &[Number]| numbers.iter().any(|number| range.contains(number));
        let Some((package, numbers)) = known.into_iter().find(|(_, numbers)| fits(numbers)) else {
            continue;
        };
        let within = after_class(numbers.first().copied().unwrap_or_default());
        let (least, before) = (range.start, range.end.min(within));
        let needed =
            found.entry(*package).or_insert(Dependency { package: *package, least, before });
        (needed.least, needed.before) = (needed.least.max(least), needed.before.min(before));
    }
    found.into_values().filter(|dependency| dependency.least < dependency.before).collect()
}

/// The first version after the class of a version.
fn after_class([major, minor, patch]: Number) -> Number {
    match (major, minor) {
        (0, 0) => [0, 0, patch + 1],
        (0, _) => [0, minor + 1, 0],
        _ => [major + 1, 0, 0],
    }
}

/// The versions that a requirement accepts.
fn bounds(text: &str) -> Option<Range<Number>> {
    let wanted = VersionReq::parse(text).ok()?;
    let mut range = [0, 0, 0]..[u32::MAX; 3];
    for one in &wanted.comparators {
        let other = bounds_of(one)?;
        range = range.start.max(other.start)..range.end.min(other.end);
    }
    Some(range)
}

fn bounds_of(one: &Comparator) -> Option<Range<Number>> {
    let number = |number: u64| u32::try_from(number).ok().filter(|number| *number < u32::MAX);
    let major = number(one.major)?;
    let minor = one.minor.and_then(number);
    let patch = one.patch.and_then(number);
    let least = [major, minor.unwrap_or(0), patch.unwrap_or(0)];
    // The first version that has other numbers, as far as they are written.
    let after = match (minor, patch) {
        (None, _) => [major + 1, 0, 0],
        (Some(minor), None) => [major, minor + 1, 0],
        (Some(minor), Some(patch)) => [major, minor, patch + 1],
    };
    let compatible = match (major, minor, patch) {
        (0, Some(0), Some(_)) => after,
        (0, Some(minor), _) => [0, minor + 1, 0],
        _ => [major + 1, 0, 0],
    };
    let tilde = match minor {
        Some(minor) => [major, minor + 1, 0],
        None => [major + 1, 0, 0],
    };
    Some(match one.op {
        Op::Exact | Op::Wildcard => least..after,
        Op::Caret => least..compatible,
        Op::Tilde => least..tilde,
        Op::Greater => after..[u32::MAX; 3],
        Op::GreaterEq => least..[u32::MAX; 3],
        Op::Less => [0; 3]..least,
        Op::LessEq => [0; 3]..after,
        _ => return None,
    })
}
