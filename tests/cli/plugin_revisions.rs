//! Commits, branches and tags of a plugin's packages, with a plugin that serves Git repositories of this machine.

use std::fs;

use mu_testing::git::Origin;

use crate::plugins::install;
use crate::support::Sandbox;

/// Lists the tags of a repository as versions, and its branches `main` and `next`. It knows everything else if asked, unless
/// the variable `MU_PLUGIN_RESOLVES` says that it cannot be asked.
const PROGRAM: &str = r#"#!/usr/bin/python3
import json, os, subprocess, sys
ROOT = os.environ["MU_PLUGIN_ROOT"]
def git(name, *arguments):
    return subprocess.run(["git", "-C", os.path.join(ROOT, name), *arguments], capture_output=True, text=True)
def line(name, revision, **more):
    commit = git(name, "rev-parse", "--verify", "--end-of-options", revision + "^{commit}").stdout.strip()
    return {"commit": commit, "locator": commit[::-1], **more} if commit else None
def initialize(asked):
    return {"protocol": 1, "name": "repo", "version": "1", "schemes": ["repo"],
        "capabilities": {"manifest": True, "resolve": os.environ["MU_PLUGIN_RESOLVES"] == "yes"}}
def versions(asked):
    name = asked["packages"][0]["name"]
    tags = git(name, "tag", "--list", "v*").stdout.split()
    lines = [line(name, tag, version=tag[1:], ref="refs/tags/" + tag) for tag in tags]
    lines += [line(name, "main", ref="refs/heads/main", tip=True), line(name, "next", tags=["next"])]
    lines = [one for one in lines if one]
    return {"packages": [{"lines": lines, "maxAge": 0} if lines else {"absent": True}]}
def resolve(asked):
    return line(asked["name"], asked["revision"])
def manifest(asked):
    found = git(asked["name"], "show", asked["line"]["commit"] + ":Mu.yaml")
    return {"name": "Mu.yaml", "text": found.stdout} if found.returncode == 0 else None
def fetch(asked):
    commit = asked["line"]["locator"][::-1]
    git(asked["name"], "archive", "--format=tar.gz", "--output", asked["into"] + "/a.tgz", commit)
    return {"archive": "a.tgz"}
for text in sys.stdin:
    message = json.loads(text)
    with open(ROOT + "/asked", "a") as file:
        file.write(message["method"] + "\n")
    if message["method"] == "shutdown":
        break
    result = globals()[message["method"]](message["params"])
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A sandbox with the plugin, and a repository `tools/lamp`.
fn with_repository() -> (Sandbox, Origin) {
    let mut sandbox = Sandbox::new();
    sandbox.set("PATH", "/usr/bin:/bin");
    install(&sandbox, "home/.mu/plugins/mu-provider-repo", PROGRAM);
    let origin = Origin::new("tools/lamp");
    sandbox.set("MU_PLUGIN_ROOT", origin.root().to_str().expect("is UTF-8"));
    sandbox.set("MU_PLUGIN_RESOLVES", "yes");
    (sandbox, origin)
}

fn release(origin: &Origin, version: &str, said: &str) -> String {
    let manifest = format!("name: tools/lamp\nversion: {version}\n");
    origin.commit(&[("Mu.yaml", &manifest), ("said.txt", said)])
}

/// How often the plugin was asked this.
fn asked(origin: &Origin, method: &str) -> usize {
    let all = fs::read_to_string(origin.root().join("asked")).expect("it was started");
    all.lines().filter(|line| *line == method).count()
}

fn forget(sandbox: &Sandbox) {
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
}

const LAMP: &str = "repo://repos.example/tools/lamp";

const SAID: &str = ".mu/packs/repos.example/tools/lamp/said.txt";

#[test]
fn a_branch_and_the_tip_are_locked_and_move_only_when_updated() {
    for name in ["main", "tip", "refs/heads/main"] {
        let (sandbox, origin) = with_repository();
        release(&origin, "1.0.0", "one\n");
        origin.git(&["tag", "v1.0.0"]);
        let first = release(&origin, "1.1.0-dev", "two\n");
        sandbox.asks_for(&[&format!("{LAMP}#{name}")]);
        sandbox.mu(&["get"]).ok().says(&["+ repos.example/tools/lamp"]);
        assert_eq!(sandbox.read(SAID), "two\n", "{name}");
        let lamp = &sandbox.lock()["packages"][0];
        assert_eq!(lamp["version"], "1.1.0-dev", "{name}");
        assert_eq!(lamp["commit"], *first, "{name}");
        assert_eq!(lamp["locator"], *first.chars().rev().collect::<String>());
        assert_eq!(asked(&origin, "resolve"), 0, "the listing has it");
        let second = release(&origin, "1.1.0-dev", "three\n");
        forget(&sandbox);
        sandbox.mu(&["get", "--locked"]).ok();
        assert_eq!(sandbox.read(SAID), "two\n", "{name}");
        assert_eq!(asked(&origin, "versions"), 1, "the lock has everything");
        sandbox.mu(&["verify"]).ok();
        sandbox.mu(&["update"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["commit"], *second, "{name}");
        assert_eq!(sandbox.read(SAID), "three\n", "{name}");
    }
}

#[test]
fn what_the_listing_does_not_have_is_asked_for() {
    let (sandbox, origin) = with_repository();
    release(&origin, "1.0.0", "one\n");
    origin.git(&["tag", "v1.0.0"]);
    let hidden = release(&origin, "1.0.1-dev", "hidden\n");
    origin.git(&["branch", "side"]);
    release(&origin, "1.1.0", "two\n");
    for name in [&hidden[..8], &hidden, "side"] {
        let reference = format!("{LAMP}#{name}");
        sandbox.mu(&["get", &reference]).ok().says(&["repos.example/tools/lamp", &hidden[..7]]);
        assert_eq!(sandbox.read(SAID), "hidden\n", "{name}");
        assert_eq!(sandbox.lock()["packages"][0]["commit"], *hidden, "{name}");
        let before = asked(&origin, "resolve");
        assert!(before > 0, "{name}");
        forget(&sandbox);
        sandbox.mu(&["get", "--locked"]).ok();
        assert_eq!(sandbox.read(SAID), "hidden\n", "{name}");
        assert_eq!(asked(&origin, "resolve"), before, "the lock has it: {name}");
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    }
    let check = sandbox.mu(&["plugin", "check", "repo", LAMP]).ok();
    check.says(&["✓ lists the package: 2 releases", "✓ fetches 1.0.0 from what a lock keeps"]);
    sandbox.mu(&["info", &format!("{LAMP}#side")]).ok().says(&["1.0.1-dev"]);
    let missing = format!("{LAMP}#nowhere");
    sandbox.mu(&["get", &missing]).fails().says(&["repos.example/tools/lamp has no tag nowhere"]);
}

#[test]
fn a_commit_of_a_version_is_that_version() {
    let (mut sandbox, origin) = with_repository();
    let tagged = release(&origin, "1.0.0", "one\n");
    origin.git(&["tag", "v1.0.0"]);
    origin.git(&["branch", "next"]);
    release(&origin, "1.1.0-dev", "two\n");
    sandbox.set("MU_PLUGIN_RESOLVES", "no");
    for name in [&tagged[..7], &tagged, "v1.0.0", "next", "1.0.0"] {
        sandbox.asks_for(&[&format!("{LAMP}#{name}")]);
        sandbox.mu(&["get"]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["version"], "1.0.0", "{name}");
        assert_eq!(sandbox.read(SAID), "one\n", "{name}");
    }
    sandbox.asks_for(&[&format!("{LAMP}#side")]);
    sandbox.mu(&["get"]).fails();
    assert_eq!(asked(&origin, "resolve"), 0, "it cannot be asked");
}

#[test]
fn a_wrong_answer_about_a_revision_is_the_fault_of_the_plugin() {
    for (said, expected) in [
        (
            "{\"commit\": \"main\"}",
            "gave a wrong commit: `main` is not a commit: expected 40 or 64 hexadecimal digits",
        ),
        ("{\"locator\": \"x\"}", "gave a release with neither a version nor a commit"),
        ("{\"version\": 1.0}", "gave a release a version that is not text"),
        ("{\"commit\": \"0\" * 40}", "with another commit"),
        ("7", "answered `resolve` in a way that mu cannot read"),
    ] {
        let (sandbox, origin) = with_repository();
        release(&origin, "1.0.0", "one\n");
        let wrong = PROGRAM.replace(
            "return line(asked[\"name\"], asked[\"revision\"])",
            &format!("return {said}"),
        );
        install(&sandbox, "home/.mu/plugins/mu-provider-repo", wrong);
        let error = sandbox
            .mu(&["get", &format!("{LAMP}#{}", "1".repeat(40)), "--json"])
            .fails_with("plugin");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}
