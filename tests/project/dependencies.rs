//! What the crates may depend on: nothing that is only for tests, and only those foreign crates that
//! `deny.toml` allows.
//!
//! `cargo deny check` reads the same file, and also checks advisories, for which it needs the network.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use super::{files, read, root};

/// What only tests, fuzz targets and benches use.
const FOR_TESTS: [&str; 2] = ["crates/testing/", "fuzz/"];

/// The entries in the sections of a manifest with the crate's own dependencies.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut is_counted = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_counted = line.contains("dependencies") && !line.contains("dev-dependencies");
        } else if is_counted && line.contains('=') {
            found.push(line);
        }
    }
    found
}

#[test]
fn the_product_depends_on_nothing_that_is_there_for_tests() {
    let mut crates = 0;
    for path in files("").into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let path = path.to_str().expect("paths of the repository are UTF-8");
        if FOR_TESTS.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        crates += 1;
        let manifest = read(path);
        let own = manifest.split("[workspace.dependencies]").next().unwrap_or_default();
        let package = manifest.split("\n[package]").last().unwrap_or(own);
        for line in dependencies(package) {
            let is_for_tests = line.starts_with("mu-testing") || line.contains("conformance");
            assert!(!is_for_tests, "{path} depends on what is for tests: {line}");
        }
    }
    assert!(crates > 5, "{crates} crates");
}

/// The words in quotes in a list of `deny.toml`, or after each `key` in it.
fn denied(text: &str, list: &str, key: &str) -> BTreeSet<String> {
    let list = text.split(&format!("\n{list} = [")).nth(1).expect("deny.toml has the list");
    let list = list.split("\n]").next().expect("a list has an end");
    let entries = list.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let entries = entries.filter_map(|line| line.split_once(&format!("{key}\"")));
    entries.filter_map(|(_, rest)| Some(rest.split_once('"')?.0.to_owned())).collect()
}

/// Whether an expression of licences (`MIT OR (Apache-2.0 AND ISC)`) can be met by what is allowed.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    any(&mut rest, allowed)
}

fn any(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut is_met = all(rest, allowed);
    while let ["OR", after @ ..] = *rest {
        *rest = after;
        is_met |= all(rest, allowed);
    }
    is_met
}

fn all(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut is_met = one(rest, allowed);
    while let ["AND", after @ ..] = *rest {
        *rest = after;
        is_met &= one(rest, allowed);
    }
    is_met
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    match *rest {
        ["(", after @ ..] => {
            *rest = after;
            let is_met = any(rest, allowed);
            *rest = rest.get(1..).unwrap_or_default();
            is_met
        }
        [licence, "WITH", exception, after @ ..] => {
            *rest = after;
            allowed.contains(&format!("{licence} WITH {exception}"))
        }
        [licence, after @ ..] => {
            *rest = after;
            allowed.contains(*licence)
        }
        [] => false,
    }
}

#[test]
fn expressions_of_licences_are_read() {
    let allowed = ["MIT", "ISC", "A WITH B"].map(str::to_owned).into();
    for good in ["MIT", "GPL OR MIT", "GPL/MIT", "MIT AND (GPL OR ISC)", "A WITH B AND MIT"] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["GPL", "MIT AND GPL", "(MIT OR ISC) AND GPL", "A", "A WITH C", ""] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}

#[test]
fn every_dependency_is_one_that_deny_toml_lets_in() {
    let rules = read("deny.toml");
    let (licences, banned) = (denied(&rules, "allow", ""), denied(&rules, "deny", "crate = "));
    assert!(licences.contains("MIT") && banned.contains("openssl-sys"), "{licences:?} {banned:?}");
    for line in read("Cargo.lock").lines() {
        if let Some(name) = line.strip_prefix("name = ") {
            assert!(!banned.contains(name.trim_matches('"')), "Cargo.lock has {name}");
        }
        if let Some(source) = line.strip_prefix("source = ") {
            let expected = "\"registry+https://github.com/rust-lang/crates.io-index\"";
            assert_eq!(source, expected, "deny.toml lets in no other source");
        }
    }
    let cargo = std::env::var("CARGO").expect("cargo runs the tests");
    let said = |command: &mut Command| {
        let output = command.current_dir(root()).output().expect("can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("is text")
    };
    let version = said(Command::new("rustc").arg("-vV"));
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("has a host");
    let metadata = said(Command::new(cargo).args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--offline",
        "--filter-platform",
        host,
    ]));
    let metadata: Value = serde_json::from_str(&metadata).expect("is JSON");
    let packages = metadata["packages"].as_array().expect("is a list");
    assert!(packages.len() > 100, "{} packages", packages.len());
    for package in packages {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_allowed(licence, &licences), "{} has the licence `{licence}`", package["name"]);
    }
}
