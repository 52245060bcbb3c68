//! The story of minimal version selection in a `kcl.mod`, with modules in Docker's registry: the build list, all upgrades, one upgrade, one
//! downgrade, and the shortest list of requirements after each.

use mu_testing::{Artifact, DockerRegistry};

use crate::support::Sandbox;

/// Each module with its versions, and what they need.
const MODULES: &str = "
    b 1.1: d 1.1
    b 1.2: d 1.3
    c 1.1:
    c 1.2: d 1.4
    c 1.3: f 1.1
    d 1.1: e 1.1
    d 1.2: e 1.1
    d 1.3: e 1.2
    d 1.4: e 1.2
    e 1.1:
    e 1.2:
    e 1.3:
    f 1.1: g 1.1
    g 1.1: f 1.1
";

fn module(name: &str, version: &str, dependencies: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"{version}\"\n\n[dependencies]\n{dependencies}"
    )
}

/// The module `app`, which needs `b` 1.2 and `c` 1.2.
fn app() -> (Sandbox, DockerRegistry) {
    let (sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    for line in MODULES.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (package, needs) = line.split_once(':').expect("has a colon");
        let (name, version) = package.split_once(' ').expect("has a version");
        let needs = needs.trim().split_once(' ');
        let needs = needs.map(|(name, least)| format!("{name} = \"{least}\"\n"));
        let text = module(name, version, &needs.unwrap_or_default());
        let artifact = Artifact::module(name, version, &[("kcl.mod", &*text)], true);
        artifact.push(&host, &format!("kcl-lang/{name}"), version);
    }
    sandbox.write(
        ".mu/workspace.yaml",
        &format!(
            "resolution: minimal\nregistries: {{ghcr.io/kcl-lang/: \"oci://{host}/kcl-lang\"}}\n"
        ),
    );
    sandbox.write("kcl.mod", &module("app", "0.1.0", "b = \"1.2\"\nc = \"1.2\"\n"));
    sandbox.mu(&["get"]).ok();
    (sandbox, server)
}

/// What is locked, such as `b 1.2`, and what the `kcl.mod` asks for.
fn state(sandbox: &Sandbox) -> (String, String) {
    let locked = sandbox.locked().into_iter();
    let locked = locked.map(|package| package.replace("ghcr.io/kcl-lang/", ""));
    let text = sandbox.read("kcl.mod");
    let asked = text.split("[dependencies]\n").nth(1).unwrap_or_default();
    (locked.collect::<Vec<_>>().join(", "), asked.trim_end().replace('\n', ", "))
}

/// Checks the selection and the manifest, and that the manifest alone leads to the same selection.
#[track_caller]
fn check(sandbox: &Sandbox, locked: &str, asked: &str) {
    assert_eq!(state(sandbox), (locked.to_owned(), asked.to_owned()));
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.mu(&["get"]).ok();
    assert_eq!(state(sandbox), (locked.to_owned(), asked.to_owned()), "without the lock");
}

const BEGIN: (&str, &str) = ("b 1.2, c 1.2, d 1.4, e 1.2", "b = \"1.2\", c = \"1.2\"");

#[test]
fn a_build_list_has_the_highest_of_the_least_versions() {
    let (sandbox, server) = app();
    check(&sandbox, BEGIN.0, BEGIN.1);
    sandbox
        .mu(&["why", "d"])
        .ok()
        .says(&["^1.3 by ghcr.io/kcl-lang/b", "^1.4 by ghcr.io/kcl-lang/c"]);
    // Another workspace downloads nothing again, nor does this one when it goes back.
    let blobs = || server.log().iter().filter(|line| line.contains("/blobs/sha256:")).count();
    let before = blobs();
    sandbox.mu(&["upgrade", "c#1.3"]).ok();
    let with_others = blobs();
    sandbox.mu(&["downgrade", "c#1.2"]).ok();
    sandbox.mu(&["upgrade", "c#1.3"]).ok();
    assert_eq!((before, blobs()), (before, with_others));
}

#[test]
fn everything_is_upgraded() {
    let (sandbox, _server) = app();
    sandbox.mu(&["update"]).ok();
    check(
        &sandbox,
        "b 1.2, c 1.3, d 1.4, e 1.3, f 1.1, g 1.1",
        "b = \"1.2\", c = \"1.3\", d = \"1.4\" # indirect, e = \"1.3\" # indirect",
    );
}

#[test]
fn one_module_is_upgraded_to_a_version_and_lowers_nothing() {
    let (sandbox, _server) = app();
    sandbox.mu(&["upgrade", "c#1.3"]).ok();
    check(
        &sandbox,
        "b 1.2, c 1.3, d 1.4, e 1.2, f 1.1, g 1.1",
        "b = \"1.2\", c = \"1.3\", d = \"1.4\" # indirect",
    );
}

#[test]
fn one_module_is_downgraded_and_what_needs_more_goes_down_with_it() {
    let (sandbox, _server) = app();
    sandbox.mu(&["downgrade", "d#1.2"]).ok().says(&["b 1.2 → 1.1", "c 1.2 → 1.1"]);
    check(
        &sandbox,
        "b 1.1, c 1.1, d 1.2, e 1.2",
        "b = \"1.1\", c = \"1.1\", d = \"1.2\" # indirect, e = \"1.2\" # indirect",
    );
    // Back again.
    sandbox.mu(&["upgrade", "b#1.2"]).ok();
    sandbox.mu(&["upgrade", "c#1.2"]).ok();
    check(&sandbox, BEGIN.0, BEGIN.1);
}
