//! Rules hold away from where packages come from: from vendored packs on a machine without cache and network, and whatever a checkout
//! says about who has signed.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_testing::{Chart, hex, pull};
use serde_json::{Value, json};

use super::git_signatures::Author;
use super::support::git::{HttpServer, Origin, git};
use super::support::{Sandbox, write};
use super::trust::{Key, Registry, SIGNED, identity, tag_of};

/// The file of evidence beside vendored packs.
const VENDORED: &str = ".mu/packs/evidence.jsonl";

/// The lines of a file of evidence.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
}

/// A registry with a signed chart, a signed package of mu, and one that is not signed.
fn signed() -> Registry {
    let registry = Registry::new();
    let (sandbox, key) = (&registry.sandbox, &registry.key);
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, key);
    registry.put_bundle("charts/web", &digest, &key.bundle(&digest, SIGNED));
    registry.push("web", "1.1.0");
    let digest = publish(sandbox, &registry.host(), "log", "1.0.0");
    registry.sign("charts/log", &digest, key);
    registry
}

/// Publishes a package of mu; returns the digest of its manifest.
fn publish(sandbox: &Sandbox, host: &str, name: &str, version: &str) -> String {
    let folder = format!("author/{name}/{version}");
    let manifest = format!("name: {name}\nversion: {version}\ndescription: d\nlicense: MIT\n");
    write(sandbox.root(), &format!("{folder}/Mu.yaml"), manifest);
    write(sandbox.root(), &format!("{folder}/.mu/workspace.yaml"), "");
    sandbox.mu_in(&folder, &["publish", "--to", &format!("oci://{host}/charts")]).ok();
    let manifest = pull(host, &format!("charts/{name}/manifests/{version}")).expect("is there");
    format!("sha256:{}", hex(&manifest))
}

/// As on another machine, to which only the checkout was carried.
fn carry(sandbox: &Sandbox) {
    let work = sandbox.path("work");
    git(&work, &["init", "--quiet", "."]);
    git(&work, &["add", "."]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    git(&work, &[&who[..], &["commit", "--quiet", "--message", "vendored"]].concat());
    let clone = sandbox.path("clone");
    let paths = [work.to_str().expect("is UTF-8"), clone.to_str().expect("is UTF-8")];
    git(&work, &[&["clone", "--quiet"][..], &paths[..]].concat());
    for part in ["work", "cache"] {
        let _ = fs::remove_dir_all(sandbox.path(part));
    }
    fs::rename(clone, work).expect("is ours");
}

#[test]
fn vendored_packs_are_verified_without_cache_and_network() {
    let registry = signed();
    let sandbox = &registry.sandbox;
    let ada = Author::ssh(sandbox, "ada", &["-t", "ed25519"]);
    let origin = Origin::new("tool.git");
    origin.commit(&[("Mu.yaml", "name: tool\n"), ("bin/run.sh", "#!/bin/sh\n")]);
    ada.git(&origin, &["tag", "-s", "-m", "a release", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let (team, host) = (registry.key.public.display(), registry.host());
    let text = format!(
        "trust:\n  signers:\n    team: {team}\n    ada: {}  packages: {{\"{host}/charts/*\": {{signedBy: [team]}}, \"*\": {{signedBy: [ada]}}}}\n",
        ada.public
    );
    write(&sandbox.path("home/.mu"), "config.yaml", text);
    sandbox.asks_for(&[
        &registry.chart("web#^1"),
        &registry.chart("log#^1"),
        &format!("{}tool.git#^1", server.root()),
    ]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["vendor"]).ok();
    let found = lines(&sandbox.path(&format!("work/{VENDORED}")));
    let kinds: Vec<&str> = ["bundle", "cosign", "git"]
        .into_iter()
        .filter(|kind| found.iter().any(|line| line.get(*kind).is_some()))
        .collect();
    assert_eq!(kinds, ["bundle", "cosign", "git"], "{found:?}");
    assert!(found.iter().all(|line| line["id"].is_string() && line["version"] == "1.0.0"));
    // The same once more is the same file.
    let before = sandbox.read(VENDORED);
    sandbox.mu(&["vendor"]).ok();
    assert_eq!(sandbox.read(VENDORED), before);
    // Files alone are not what was signed.
    let work = sandbox.path("work");
    let kept = sandbox.path("kept");
    std::process::Command::new("cp").arg("-a").args([&work, &kept]).status().expect("copies");
    carry(sandbox);
    let run = sandbox.mu(&["get", "--offline", "--locked", "--json"]);
    run.fails_with("offline");
    let run = sandbox.mu(&["get", "--offline", "--locked"]).fails();
    run.says(&["mu vendor --archives"]);
    // With the archives, they are.
    fs::remove_dir_all(&work).expect("is ours");
    fs::rename(&kept, &work).expect("is ours");
    sandbox.mu(&["vendor", "--archives"]).ok();
    let archives = fs::read_dir(work.join(".mu/packs/.mu/archives")).expect("is there");
    assert_eq!(archives.count(), 3);
    let Registry { sandbox, server: docker, .. } = registry;
    drop((server, docker));
    carry(&sandbox);
    sandbox.mu(&["get", "--offline", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok().says(&["2 packages signed by key:", "1 package signed by ssh:"]);
    // Once verified, an archive is not read again.
    fs::remove_dir_all(work.join(".mu/packs/.mu/archives")).expect("is there");
    sandbox.mu(&["get", "--offline", "--locked"]).ok();
    sandbox.mu(&["vendor", "--undo"]).ok();
    assert!(!sandbox.has(VENDORED));
}

#[test]
fn what_a_checkout_says_about_signatures_is_no_proof() {
    let registry = signed();
    let sandbox = &registry.sandbox;
    sandbox.asks_for(&[&registry.chart("web#1.0.0")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["vendor", "--archives"]).ok();
    let (lock, good) = (sandbox.read("Mu.lock"), sandbox.read(VENDORED));
    let entry = sandbox.lock()["packages"][0].clone();
    let of = |key: &str| entry[key].as_str().expect("is there").to_owned();
    let archive = sandbox.path(&format!("work/.mu/packs/.mu/archives/{}", tag_of(&of("archive"))));
    let right = fs::read(&archive).expect("is there");
    let fresh = || {
        fs::remove_dir_all(sandbox.path("cache")).expect("is there");
        sandbox.write("Mu.lock", &lock);
        sandbox.write(VENDORED, &good);
        fs::write(&archive, &right).expect("is ours");
    };
    let offline = ["get", "--offline", "--locked", "--json"];
    fresh();
    sandbox.mu(&offline).ok();
    // The evidence of a stranger, under the same names.
    let stranger = Key::usual(sandbox, "stranger");
    let (payload, signature) = stranger.cosign(&of("manifest"));
    let mut line: Value =
        serde_json::from_str(good.lines().next().expect("has one")).expect("is JSON");
    let keys: Vec<String> = line.as_object().expect("is a map").keys().cloned().collect();
    for key in keys.iter().filter(|key| ["cosign", "bundle"].contains(&key.as_str())) {
        line.as_object_mut().expect("is a map").shift_remove(key);
    }
    line["cosign"] = json!({"payload": STANDARD.encode(payload), "signature": signature});
    fresh();
    sandbox.write(VENDORED, &format!("{line}\n"));
    sandbox.mu(&offline).fails_with("untrusted");
    // Where its registry can be asked, it is, and lies hide nothing. What cannot be read is told.
    sandbox.write(VENDORED, &format!("{line}\nno JSON\n"));
    let run = sandbox.mu(&["get", "--locked"]).ok();
    run.says(&["line 2 of `.mu/packs/evidence.jsonl` was skipped"]);
    // A good signature in front of another archive: that of a version which nobody has signed.
    let other = Chart::new("web", "1.1.0").file("values.yaml", "a: 1\n").archive();
    fresh();
    sandbox.write("Mu.lock", &lock.replace(&of("archive"), &format!("sha256:{}", hex(&other))));
    sandbox.mu(&offline).fails_with("untrusted");
    fresh();
    fs::write(&archive, &other).expect("is ours");
    let run = sandbox.mu(&["get", "--offline", "--locked"]).fails();
    run.says(&["the vendored archive of", "is not used"]);
    // Other content than the archive has.
    let content = of("digest");
    let text = lock.replace(&content, &content.replace(&content[3..9], "AAAAAA"));
    fresh();
    sandbox.write("Mu.lock", &text);
    let error = sandbox.mu(&offline);
    error.fails_with("untrusted");
    // None at all.
    fresh();
    sandbox.write(VENDORED, "");
    let run = sandbox.mu(&["get", "--offline", "--locked"]).fails();
    run.says(&["cannot find out who signed", "rule `"]);
    sandbox.mu(&offline).fails_with("offline");
    assert!(!sandbox.read("Mu.lock").contains(&identity(&stranger)));
}
