//! Checks that every crate can be published as in `docs/releasing.md`, except for the upload.

use std::process::Command;

use serde_json::Value;

use super::{read, root};

/// The keys that crates.io and its users need.
const SAID: [&str; 6] =
    ["description", "license", "readme", "keywords", "categories", "rust_version"];

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").expect("cargo runs the tests");
    let run = Command::new(cargo).args(arguments).current_dir(root()).output();
    let run = run.expect("can be run");
    assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("is text")
}

/// The crates of this repository, and whether each is published.
fn crates() -> Vec<(Value, bool)> {
    let arguments = ["metadata", "--format-version=1", "--no-deps", "--offline"];
    let metadata: Value = serde_json::from_str(&cargo(&arguments)).expect("is JSON");
    let packages = metadata["packages"].as_array().expect("is a list");
    packages.iter().map(|package| (package.clone(), package["publish"].is_null())).collect()
}

#[test]
fn every_crate_that_is_published_says_what_it_is_and_needs_only_such() {
    let crates = crates();
    let name = |package: &Value| package["name"].as_str().expect("is text").to_owned();
    let published: Vec<String> =
        crates.iter().filter(|(_, is)| *is).map(|(package, _)| name(package)).collect();
    assert!(published.len() > 5, "{published:?}");
    let guide = read("docs/releasing.md");
    for (package, _) in crates.iter().filter(|(_, is_published)| *is_published) {
        let own = name(package);
        assert!(guide.contains(&format!("`{own}`")), "docs/releasing.md does not name {own}");
        for key in SAID {
            let value = &package[key];
            let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            assert!(!is_empty, "{own} has no {key}");
        }
        for needed in package["dependencies"].as_array().expect("is a list") {
            let is_own = needed["path"].is_string();
            let is_for_tests = needed["kind"] == "dev" && needed["req"] == "*";
            if !is_own || is_for_tests {
                continue;
            }
            let needed_name = name(needed);
            assert!(published.contains(&needed_name), "{own} needs {needed_name}");
            let expected = format!("^{}", package["version"].as_str().expect("is text"));
            assert_eq!(needed["req"], expected.as_str(), "{own} needs another {needed_name}");
        }
    }
}

#[test]
fn every_crate_can_be_packaged() {
    let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/package");
    let mut arguments = vec!["package", "--workspace", "--no-verify", "--offline", "--allow-dirty"];
    arguments.extend(["--quiet", "--target-dir", target]);
    let crates = crates();
    for (package, is_published) in &crates {
        if !is_published {
            arguments.extend(["--exclude", package["name"].as_str().expect("is text")]);
        }
    }
    cargo(&arguments);
    for (package, is_published) in &crates {
        let (name, version) = (&package["name"], &package["version"]);
        let (name, version) = (name.as_str().expect("is text"), version.as_str().expect("is text"));
        let file = format!("{target}/package/{name}-{version}.crate");
        assert_eq!(std::path::Path::new(&file).exists(), *is_published, "{file}");
    }
}
