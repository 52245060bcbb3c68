//! Rules hold away from where packages come from: from mirrors of each kind, from vendored packs on a machine without cache and network,
//! and whatever a checkout says about who has signed.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_testing::{Chart, DockerRegistry, Signer, hex, pull};
use serde_json::{Value, json};

use super::git_signatures::{self, Author};
use super::support::git::{HttpServer, Origin, git};
use super::support::{Sandbox, Served, write};
use super::trust::{Key, Registry, SIGNED, forget, identity, tag_of, user_says};

/// The file of evidence beside vendored packs.
const VENDORED: &str = ".mu/packs/evidence.jsonl";

/// Leads the packages of a host to a mirror.
pub(super) fn lead(sandbox: &Sandbox, host: &str, to: &str) {
    sandbox.write(".mu/workspace.yaml", &format!("registries: {{\"{host}/\": {to}}}\n"));
}

/// The lines of a file of evidence.
pub(super) fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect()
}

/// A registry with a signed chart, a signed package of mu, and one that is not signed.
pub(super) fn signed() -> Registry {
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

#[test]
fn what_is_signed_in_a_registry_is_signed_in_each_mirror_of_it() {
    let mut registry = signed();
    let (second, direct) = (DockerRegistry::start(), DockerRegistry::start());
    for (host, by) in [(second.host(), "[SECOND]"), (direct.host(), "[DIRECT]")] {
        registry.sandbox.replace(&host, by);
    }
    let sandbox = &registry.sandbox;
    sandbox.asks_for(&[&registry.chart("web#^1"), &registry.chart("log#^1")]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token = sandbox.mu(&["hub", "token", "add", "../srv", "m", "--namespace", "*"]).ok();
    let served = Served::start(sandbox, "../srv", &[]);
    let mut sandbox = registry.sandbox;
    sandbox.set_token(&served.address.to_string(), token.stdout.trim());
    for to in ["../folder", &served.url(), &format!("oci://{}", direct.host())] {
        sandbox.mu(&["mirror", "--lock", "--to", to]).ok().does_not_say(&["warning"]);
    }
    // Complete in themselves, and the same in each hub.
    let path = "signatures/charts/web/web-1.0.0.jsonl";
    let found = lines(&sandbox.path(&format!("folder/{path}")));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|line| line.get("cosign").is_some()), "{found:?}");
    assert!(found.iter().any(|line| line.get("bundle").is_some()), "{found:?}");
    let manifest = pull(&registry.server.host(), "charts/web/manifests/1.0.0").expect("is there");
    assert!(found.iter().all(|line| line["manifests"] == json!([STANDARD.encode(&manifest)])));
    let same = [format!("folder/{path}"), format!("srv/{path}")];
    let same = same.map(|path| fs::read(sandbox.path(&path)).expect("is there"));
    assert_eq!(same[0], same[1]);
    served.ask("GET", &format!("/{path}"), &[], &[]).is(200);
    sandbox.mu(&["hub", "check", "../folder"]).ok().does_not_say(&["leftover"]);
    // What came since is copied by the next run, and nothing twice.
    let host = registry.server.host();
    sandbox.mu(&["mirror", "--lock", "--to", "../folder"]).ok();
    assert_eq!(lines(&sandbox.path(&format!("folder/{path}"))).len(), 2);
    // From the folder into another registry, where the artifacts are others.
    lead(&sandbox, &host, "../folder");
    forget(&sandbox);
    sandbox.mu(&["mirror", "--lock", "--to", &format!("oci://{}", second.host())]).ok();
    drop(registry.server);
    // A copy of all that the folder has, and a hub that brings what it is asked for.
    sandbox.mu(&["hub", "init", "../copy"]).ok();
    sandbox.mu(&["mirror", "--all", "--from", "../folder", "--to", "../copy"]).ok();
    sandbox.mu(&["hub", "init", "../own"]).ok();
    let brings = Served::start(&sandbox, "../own", &["--upstream", &served.url()]);
    let mirrors = [
        "../folder".to_owned(),
        served.url(),
        "../copy".to_owned(),
        brings.url(),
        format!("{{provider: oci, url: \"http://{}/\"}}", second.host()),
        format!("{{provider: oci, url: \"http://{}/\"}}", direct.host()),
    ];
    for mirror in mirrors {
        lead(&sandbox, &host, &mirror);
        forget(&sandbox);
        sandbox.write("Mu.lock", &lock);
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["verify"]).ok().says(&["2 packages signed by key:sha256:"]);
        sandbox.mu(&["verify", "--trust"]).ok().says(&["2 packages verified"]);
        // Chosen anew, the same version is accepted, and the one without a signature is not there.
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        forget(&sandbox);
        sandbox.mu(&["get"]).ok().says(&["web 1.0.0"]);
        assert_eq!(sandbox.lock()["packages"][1]["signedBy"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_mirror_without_the_evidence_is_no_way_around_a_rule() {
    let registry = signed();
    let sandbox = &registry.sandbox;
    sandbox.asks_for(&[&registry.chart("web#^1")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    sandbox.mu(&["mirror", "--lock", "--to", "../folder"]).ok();
    lead(sandbox, &registry.host(), "../folder");
    let file = sandbox.path("folder/signatures/charts/web/web-1.0.0.jsonl");
    let good = fs::read_to_string(&file).expect("is there");
    // None; then lines of which none is worth anything, with a good one among them.
    fs::remove_file(&file).expect("is ours");
    forget(sandbox);
    sandbox.mu(&["get", "--locked"]).fails().says(&["no signature (looked at", "rule `"]);
    let stranger = Key::usual(sandbox, "stranger");
    let (payload, signature) = stranger.cosign(&format!("sha256:{}", "0".repeat(64)));
    let line = json!({"cosign": {"payload": STANDARD.encode(payload), "signature": signature}});
    fs::write(&file, format!("{line}\nno JSON\n{{\"other\": 1}}\n")).expect("is ours");
    forget(sandbox);
    sandbox.mu(&["get", "--locked", "--json"]).fails_with("untrusted");
    let junk = "no JSON\n".repeat(40);
    fs::write(&file, format!("{junk}{line}\n{good}")).expect("is ours");
    forget(sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["hub", "check", "../folder"]).fails().says(&["line 1 is not evidence"]);
}

#[test]
fn a_repacked_archive_is_refused_as_that() {
    let registry = signed();
    let sandbox = &registry.sandbox;
    sandbox.asks_for(&[&registry.chart("web#^1")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    sandbox.mu(&["mirror", "--lock", "--to", "../folder"]).ok();
    // The same files, packed by somebody else: without a rule that is enough.
    let archive = sandbox.path("folder/packs/charts/web/web-1.0.0.tgz");
    let before = fs::read(&archive).expect("is there");
    let chart = Chart::new("web", "1.0.0").file("values.yaml", "a: 1\n");
    let mut tar = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&before[..]), &mut tar)
        .expect("is gzip");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut packed, &tar).expect("is in memory");
    let packed = packed.finish().expect("is in memory");
    assert!(packed != before && chart.archive() == before);
    fs::write(&archive, &packed).expect("is ours");
    let index = sandbox.path("folder/index/charts/web.jsonl");
    let text = fs::read_to_string(&index).expect("is there");
    let [old, new] = [&before, &packed].map(|bytes| format!("sha256:{}", hex(bytes)));
    let text = text.replace(&old, &new);
    let size = format!("\"size\":{}", before.len());
    fs::write(&index, text.replace(&size, &format!("\"size\":{}", packed.len()))).expect("is ours");
    lead(sandbox, &registry.host(), "../folder");
    forget(sandbox);
    sandbox.mu(&["get", "--locked", "--json"]).fails_with("untrusted");
    forget(sandbox);
    sandbox.mu(&["get", "--locked"]).fails().says(&["web 1.0.0", &old, &new]);
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.mu(&["get"]).fails().says(&["does not have its archive"]);
    fs::write(sandbox.path("home/.mu/config.yaml"), "").expect("is ours");
    sandbox.mu(&["get"]).ok();
}

/// As on another machine, to which only the checkout was carried.
pub(super) fn carry(sandbox: &Sandbox) {
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

#[test]
fn a_signed_chart_of_a_repository_is_one_in_a_hub_and_in_a_registry() {
    let signer = Signer::new();
    let mut repository = super::chart_signatures::Repository::new(&[&signer]);
    let chart = Chart::new("web", "1.0.0");
    let made = signer.provenance(&chart.manifest(), "web-1.0.0.tgz", &chart.archive());
    repository.add(&chart, "web-1.0.0.tgz", &made);
    let sandbox = &repository.sandbox;
    let registry = DockerRegistry::start();
    sandbox.asks_for(&[&repository.chart("web#^1")]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    sandbox.mu(&["mirror", "--lock", "--to", "../folder"]).ok();
    let found = lines(&sandbox.path("folder/signatures/stable/web/web-1.0.0.jsonl"));
    assert_eq!(found, [json!({"prov": String::from_utf8(made).expect("is text")})]);
    lead(sandbox, &repository.nginx.host(), "../folder");
    forget(sandbox);
    sandbox.mu(&["mirror", "--lock", "--to", &format!("oci://{}", registry.host())]).ok();
    let there = format!("{{provider: oci, url: \"http://{}/\"}}", registry.host());
    for mirror in ["../folder", &there] {
        lead(sandbox, &repository.nginx.host(), mirror);
        let _ = fs::remove_dir_all(sandbox.path("cache"));
        let _ = fs::remove_dir_all(sandbox.path("work/.mu/packs"));
        sandbox.write("Mu.lock", &lock);
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["verify"]).ok().says(&["1 package signed by pgp:"]);
    }
}

#[test]
fn the_copy_of_a_repository_is_not_what_was_signed_and_mu_says_it() {
    let sandbox = Sandbox::new();
    let ada = Author::ssh(&sandbox, "ada", &["-t", "ed25519"]);
    let origin = Origin::new("web.git");
    origin.commit(&[("Mu.yaml", "name: web\n")]);
    ada.git(&origin, &["tag", "-s", "-m", "a release", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    user_says(&sandbox, &git_signatures::rule(&ada));
    sandbox.asks_for(&[&format!("{}web.git#^1", server.root())]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../folder"]).ok();
    run.says(&["is packed anew, and signatures in Git do not speak of the copy", "mu trust allow"]);
    let id = sandbox.lock()["packages"][0]["id"].as_str().expect("is a text").to_owned();
    let host = id.split('/').next().expect("has a host").to_owned();
    lead(&sandbox, &host, "../folder");
    for part in ["cache", "work/.mu/packs"] {
        let _ = fs::remove_dir_all(sandbox.path(part));
    }
    let run = sandbox.mu(&["get", "--locked"]).fails();
    run.says(&["it is a copy of the commit", "signatures in Git do not speak of copies"]);
    // The way out that was printed.
    sandbox.mu(&["trust", "allow", &format!("{id}#1.0.0"), "--yes"]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
}
