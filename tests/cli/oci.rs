//! Packages of mu in OCI registries: Docker's own, and one in memory with what Docker's lacks.

use std::fs;

use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, Chart, DockerRegistry, OciServer, digest_of, tree};
use serde_json::{Value, json};

use super::support::{Run, Sandbox};

/// A sandbox whose `hub.mu.com/` is in the registry at `host`, below `acme`.
pub(super) fn sandbox(host: &str) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.hub_is_at(&format!("oci://{host}/acme"));
    sandbox.replace(host, "[HOST]");
    sandbox
}

/// Publishes a version from a folder of its own; `more` are lines of the manifest.
fn publish(sandbox: &Sandbox, name: &str, version: &str, more: &str) -> Run {
    let folder = format!("author/{name}/{version}");
    let manifest =
        format!("name: {name}\nversion: {version}\ndescription: d\nlicense: MIT\n{more}");
    mu_testing::write(sandbox.root(), &format!("{folder}/Mu.yaml"), manifest);
    mu_testing::write(sandbox.root(), &format!("{folder}/.mu/workspace.yaml"), "");
    sandbox.mu_in(&folder, &["publish"])
}

/// Three packages that depend on each other.
pub(super) fn offer(sandbox: &Sandbox) {
    publish(sandbox, "web/log", "1.0.0", "").ok();
    publish(sandbox, "web/log", "1.1.0", "").ok();
    publish(sandbox, "web/proxy", "2.0.0", "dependencies: [web/log#^1]\n").ok();
    publish(sandbox, "web/proxy", "2.1.0-rc.1+b7", "dependencies: [web/log#^1.1]\n").ok();
}

#[test]
fn a_web_page_in_place_of_a_registry_is_called_one() {
    let page = "<!doctype html><title>Please sign in</title>";
    let server =
        mu_testing::http::TestServer::start(move |_, _| mu_testing::http::Reply::body(page));
    let reference = format!("oci://{}/acme/web", server.host());
    Sandbox::new().mu(&["get", &reference]).fails().says(&[
        "did not answer as an OCI registry does",
        "the answer is a web page",
        "a login page",
    ]);
}

#[test]
fn a_version_that_only_its_dependencies_changed_is_there_already() {
    let registry = DockerRegistry::start();
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    publish(&sandbox, "web/log", "1.2.0", "").ok();
    let needs = "dependencies: [web/log#^1]\n";
    let run = publish(&sandbox, "web/proxy", "2.0.0", needs).ok();
    run.says(&["web/proxy 2.0.0 is already in", "packed with other versions in its Mu.lock"]);
    publish(&sandbox, "web/proxy", "2.0.0", "dependencies: [web/log#^1.2]\n")
        .fails()
        .says(&["with different content"]);
}

#[test]
fn packages_in_dockers_registry_are_published_resolved_locked_and_got_from_the_lock() {
    let registry = DockerRegistry::start();
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    publish(&sandbox, "web/log", "1.1.0", "").ok().says(&["already"]);
    publish(&sandbox, "web/log", "1.1.0", "keywords: [x]\n")
        .fails()
        .says(&["with different content"]);
    sandbox.asks_for(&["web/proxy#^2"]);
    sandbox.mu(&["get"]).ok().says(&["web/log 1.1.0", "web/proxy 2.0.0"]);
    let lock = sandbox.lock();
    let proxy = &lock["packages"][1];
    assert_eq!(proxy["source"], *format!("oci+https://{}/acme/", registry.host()));
    assert_eq!(proxy["digest"], *digest_of(&sandbox.path("work/.mu/packs/hub.mu.com/web/proxy")));
    assert!(proxy["archive"].as_str().is_some_and(|text| text.starts_with("sha256:")), "{lock}");
    sandbox.mu(&["versions", "web/proxy"]).ok().says(&["2.0.0", "2.1.0-rc.1+b7"]);
    sandbox.mu(&["info", "web/proxy"]).ok().says(&["web/log#^1", "MIT"]);
    // From a lock: one request for each package.
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    let before = registry.log().len();
    sandbox.mu(&["get", "--locked"]).ok();
    let log = registry.log();
    let [first, second] = &log[before..] else { panic!("{log:#?}") };
    assert!(first.contains("GET /v2/acme/web/") && first.contains("/blobs/sha256:"), "{first}");
    assert!(second.contains("/blobs/sha256:"), "{second}");
    // The reference alone is enough.
    let named = Sandbox::new();
    named.asks_for(&[&format!("oci://{}/acme/web/log#^1", registry.host())]);
    named.mu(&["get"]).ok();
    assert_eq!(named.locked(), [format!("{}/acme/web/log 1.1.0", registry.host())]);
    named.mu(&["get", "--locked"]).ok().says(&["up to date"]);
}

const INDEX_TAG: &str = "sha256-eba1582f16a4f7dba39359c71460b353a642c47048b6532d6d37b704ddb3f5a3";

/// The entries of the index that has a tag, changed; and put back.
fn change_index(registry: &OciServer, repository: &str, change: impl FnOnce(&mut Vec<Value>)) {
    let mut index = registry.tagged(repository, INDEX_TAG).expect("has an index");
    change(index["manifests"].as_array_mut().expect("is a list"));
    registry.manifest(repository, INDEX_TAG, &index);
}

fn is_of(entry: &Value, version: &str) -> bool {
    let line = entry["annotations"]["com.mu.release"].as_str().unwrap_or_default();
    line.contains(&format!("\"version\":\"{version}\""))
}

#[test]
fn a_cold_resolve_asks_as_often_for_one_version_as_for_many() {
    let asked = |behaviour: Behaviour, more: usize| {
        let registry = OciServer::start(behaviour);
        let sandbox = sandbox(&registry.host());
        offer(&sandbox);
        for (repository, name) in [("acme/web/log", "web/log"), ("acme/web/proxy", "web/proxy")] {
            let mut entries = Vec::new();
            for number in 0..more {
                let version = format!("0.1.{number}");
                let line = json!({"name": name, "version": version, "dependencies": []});
                let manifest = json!({
                    "schemaVersion": 2,
                    "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "artifactType": "application/vnd.mu.package.v1",
                    "subject": {"digest": INDEX_TAG.replace('-', ":"), "size": 425},
                    "annotations": {"com.mu.release": line.to_string()},
                });
                registry.manifest(repository, &version, &manifest);
                let mut entry = manifest.clone();
                entry["digest"] = format!("sha256:{number:064}").into();
                entry["size"] = 7.into();
                entries.push(entry);
            }
            if registry.tagged(repository, INDEX_TAG).is_some() {
                change_index(&registry, repository, |known| known.extend(entries));
            }
        }
        sandbox.asks_for(&["web/proxy#^2"]);
        fs::remove_dir_all(sandbox.path("cache")).expect("is there");
        let before = registry.requests().len();
        sandbox.mu(&["get"]).ok();
        let requests = registry.requests().split_off(before);
        let lock = sandbox.locked();
        assert_eq!(lock, ["hub.mu.com/web/log 1.1.0", "hub.mu.com/web/proxy 2.0.0"]);
        requests
    };
    // Tags, index, the manifest of the chosen version, and its archive: for two packages.
    let (few, many) = (asked(Behaviour::default(), 2), asked(Behaviour::default(), 398));
    assert_eq!((few.len(), many.len()), (8, 8), "{few:#?} {many:#?}");
    let keeping = || Behaviour { referrers: true, ..Behaviour::default() };
    let (few, many) = (asked(keeping(), 2), asked(keeping(), 398));
    assert_eq!((few.len(), many.len()), (10, 10), "{few:#?} {many:#?}");
}

#[test]
fn a_registry_that_keeps_the_list_itself_needs_no_tag_for_it() {
    let registry = OciServer::start(Behaviour { referrers: true, page: 1, ..Behaviour::default() });
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    assert_eq!(registry.tagged("acme/web/log", INDEX_TAG), None);
    sandbox.asks_for(&["web/proxy"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.1.0", "hub.mu.com/web/proxy 2.0.0"]);
    sandbox.mu(&["yank", "web/log#1.1.0", "--reason", "loses lines"]).ok();
    sandbox.mu(&["versions", "web/log"]).ok().says(&["loses lines"]);
    assert_eq!(registry.tagged("acme/web/log", INDEX_TAG), None);
}

#[test]
fn a_registry_without_lists_of_referrers_is_asked_for_one_once_a_day() {
    let registry = OciServer::start(Behaviour::default());
    let host = registry.host();
    let sandbox = sandbox(&host);
    let asked = |name: &str| {
        let repository = format!("charts/{name}");
        Artifact::chart(&Chart::new(name, "1.0.0")).push(&host, &repository, "1.0.0");
        let before = registry.requests().len();
        sandbox.mu(&["versions", &format!("oci://{host}/{repository}")]).ok().says(&["1.0.0"]);
        let requests = registry.requests().split_off(before);
        requests.iter().filter(|line| line.contains("/referrers/")).count()
    };
    assert_eq!(["web", "api", "log"].map(asked), [1, 0, 0]);
    let files = tree(&sandbox.path("cache/registries"));
    let file = sandbox.path("cache/registries").join(files.keys().next().expect("is remembered"));
    let since = fs::read_to_string(&file).expect("is text");
    let since: i64 = since.trim().parse().expect("is a time");
    let ago = |seconds: i64| fs::write(&file, format!("{}\n", since - seconds)).expect("is ours");
    // A day later it is asked again, and also by a clock that went back.
    ago(86_500);
    assert_eq!(["a", "b"].map(asked), [1, 0]);
    ago(-1_000);
    assert_eq!(["c", "d"].map(asked), [1, 0]);
    fs::write(&file, "soon").expect("is ours");
    assert_eq!(["e", "f"].map(asked), [1, 0]);
    // A registry may learn it. That is seen the next day, or when something is published.
    registry.behave(|behaviour| behaviour.referrers = true);
    assert_eq!(asked("g"), 0);
    offer(&sandbox);
    assert!(!file.exists());
    assert_eq!(["h", "i"].map(asked), [1, 1]);
}

#[test]
fn a_page_for_people_is_no_list() {
    let registry = OciServer::start(Behaviour { false_referrers: true, ..Behaviour::default() });
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    change_index(&registry, "acme/web/log", Vec::clear);
    sandbox.asks_for(&["web/proxy"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.1.0", "hub.mu.com/web/proxy 2.0.0"]);
}

#[test]
fn the_index_is_a_hint_and_the_manifest_of_a_version_has_the_last_word() {
    let registry = OciServer::start(Behaviour::default());
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    publish(&sandbox, "web/proxy", "2.2.0", "dependencies: [web/log#~1.0]\n").ok();
    sandbox.asks_for(&["web/proxy#^2"]);
    let expected = ["hub.mu.com/web/log 1.0.0", "hub.mu.com/web/proxy 2.2.0"];
    // An entry that is lost.
    change_index(&registry, "acme/web/proxy", |entries| {
        entries.retain(|entry| !is_of(entry, "2.2.0"));
    });
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), expected);
    // An entry that lies causes a second round.
    let again = self::sandbox(&registry.host());
    again.asks_for(&["web/proxy#^2"]);
    let line = json!({"name": "web/proxy", "version": "2.2.0", "dependencies": ["web/absent#^9"]});
    change_index(&registry, "acme/web/proxy", |entries| {
        entries.push(json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": format!("sha256:{:064}", 1), "size": 7,
            "annotations": {"com.mu.release": line.to_string()},
        }));
    });
    let line = json!({"name": "web/log", "version": "1.0.0", "dependencies": ["web/proxy#^1"]});
    change_index(&registry, "acme/web/log", |entries| {
        entries.retain(|entry| !is_of(entry, "1.0.0"));
        entries.push(json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": format!("sha256:{:064}", 2), "size": 7,
            "annotations": {"com.mu.release": line.to_string()},
        }));
    });
    again.asks_for(&["web/log#1.0.0"]);
    let run = again.mu(&["get"]);
    // The entry's version cannot be had, so nothing was confirmed.
    run.fails().says(&["web/proxy"]);
    let line = json!({"name": "web/log", "version": "1.0.0", "dependencies": ["web/proxy#^2"]});
    change_index(&registry, "acme/web/log", |entries| {
        entries.pop();
        entries.push(json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": format!("sha256:{:064}", 3), "size": 7,
            "annotations": {"com.mu.release": line.to_string()},
        }));
    });
    fs::remove_dir_all(again.path("cache")).expect("is there");
    again.mu(&["get"]).ok();
    assert_eq!(again.locked(), ["hub.mu.com/web/log 1.0.0"]);
    // The next publisher repairs the index.
    publish(&again, "web/proxy", "2.3.0", "").ok();
    // Removing a tag withdraws its version, whatever the index says.
    registry.untag("acme/web/proxy", "2.3.0");
    again.mu(&["versions", "web/proxy"]).ok().does_not_say(&["2.3.0"]);
}

#[test]
fn an_image_beside_the_versions_is_passed_over() {
    let registry = OciServer::start(Behaviour::default());
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    let image = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "sha256:1", "size": 1},
        "layers": [],
    });
    registry.manifest("acme/web/log", "1.9.0", &image);
    registry.manifest("acme/web/log", "latest", &image);
    sandbox.asks_for(&["web/log#^1"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.1.0"]);
    let pinned = sandbox.mu(&["resolve", "web/log#1.9.0"]).fails();
    pinned.says(&["application/vnd.oci.image.config.v1+json"]);
    // Nothing replaces it.
    publish(&sandbox, "web/log", "1.9.0", "").fails().says(&["already exists"]);
    publish(&sandbox, "web/log", "1.2.0", "").ok();
}

#[test]
fn yanks_tags_and_moves_are_events() {
    let registry = DockerRegistry::start();
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    sandbox.mu(&["yank", "web/log#1.1.0", "--reason", "loses lines"]).ok();
    sandbox.mu(&["yank", "web/log#1.1.0", "--reason", "loses lines"]).ok().says(&["already"]);
    sandbox.asks_for(&["web/log"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.0.0"]);
    sandbox.mu(&["yank", "web/log#1.1.0", "--undo"]).ok();
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.1.0"]);
    sandbox.mu(&["deprecate", "web/log#1.1.0", "--reason", "too slow"]).ok();
    sandbox.mu(&["versions", "web/log"]).ok().says(&["deprecated: too slow"]);
    sandbox.mu(&["deprecate", "web/log#1.1.0", "--undo"]).ok();
    sandbox.mu(&["versions", "web/log"]).ok().does_not_say(&["deprecated"]);
    sandbox.mu(&["tag", "web/log#1.0.0", "stable"]).ok();
    sandbox.mu(&["resolve", "web/log#stable"]).ok().says(&["1.0.0"]);
    sandbox.mu(&["tag", "web/log#1.1.0", "stable"]).ok();
    sandbox.mu(&["update"]).ok();
    sandbox.mu(&["resolve", "web/log#stable"]).ok().says(&["1.1.0"]);
    sandbox.mu(&["tag", "web/log#1.1.0", "stable", "--undo"]).ok();
    sandbox.mu(&["update"]).ok();
    sandbox.mu(&["resolve", "web/log#stable"]).fails();
    sandbox.mu(&["yank", "web/log#9.9.9"]).fails().says(&["9.9.9"]);
}

#[test]
fn yank_and_tag_use_the_place_that_the_reference_states() {
    let registry = DockerRegistry::start();
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    let stated = format!("oci://{}/acme/web/log#1.1.0", registry.host());
    sandbox.mu(&["yank", &stated, "--dry-run"]).ok().says(&["acme/web/log 1.1.0 in oci://[HOST]"]);
    sandbox.mu(&["yank", &stated]).ok();
    sandbox.mu(&["resolve", "web/log"]).ok().says(&["1.0.0"]);
    sandbox.mu(&["yank", &stated, "--undo"]).ok();
    sandbox.mu(&["tag", &stated, "stable"]).ok();
    sandbox.mu(&["resolve", "web/log#stable"]).ok().says(&["1.1.0"]);
    for (reference, place) in [
        ("helm+http://127.0.0.1:9/charts/web#1.0.0", "in a chart repository"),
        ("olm+https://127.0.0.1:9/catalog/web#1.0.0", "in a catalog of operators"),
        ("git+https://127.0.0.1:9/acme/web#1.0.0", "in a Git repository"),
        ("ssh://127.0.0.1:9/acme/web#1.0.0", "in a Git repository"),
        ("shelf://127.0.0.1:9/acme/web#1.0.0", "not in a hub or an OCI registry"),
        ("kudo+http://127.0.0.1:9/acme/web#1.0.0", "in a repository of KUDO operators"),
        ("./web#1.0.0", "in a folder"),
    ] {
        for command in [&["yank", reference][..], &["tag", reference, "stable"]] {
            let error =
                sandbox.mu(&[command, &["--json"]].concat()).fails_with("usage").to_string();
            assert!(error.contains(&format!("is {place}")), "{error}");
        }
    }
}

#[test]
fn tags_of_other_tools_name_versions() {
    let registry = OciServer::start(Behaviour::default());
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    let manifest = registry.tagged("acme/web/log", "1.0.0").expect("is there");
    registry.manifest("acme/web/log", "edge", &manifest);
    sandbox.asks_for(&["web/log#edge"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.0.0"]);
    sandbox.mu(&["resolve", "web/log#absent"]).fails();
}

#[test]
fn twenty_publishers_at_once_lose_nothing() {
    let registry = DockerRegistry::start();
    let sandbox = sandbox(&registry.host());
    std::thread::scope(|scope| {
        for number in 0..20 {
            let sandbox = &sandbox;
            scope.spawn(move || publish(sandbox, "web/log", &format!("1.{number}.0"), "").ok());
        }
    });
    let versions = sandbox.mu(&["versions", "web/log", "-v"]).ok();
    let all: Vec<String> = (0..20).map(|number| format!("1.{number}.0")).collect();
    let versions = versions.says(&all.iter().map(String::as_str).collect::<Vec<_>>());
    sandbox.asks_for(&["web/log#^1"]);
    let get = sandbox.mu(&["get", "-v"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/web/log 1.19.0"]);
    // Each is in the index, so no manifest had to be requested for it: only tags and index twice, the
    // manifest and the archive. The registry writes its own log too late to be counted.
    let said = [versions.stderr, get.stderr].concat();
    let requests: Vec<&str> = said.lines().filter(|line| line.starts_with("GET http")).collect();
    assert!((4..=6).contains(&requests.len()), "{requests:#?}");
}

#[test]
fn registries_that_lie_are_refused() {
    let registry = OciServer::start(Behaviour::default());
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    sandbox.asks_for(&["web/log#^1"]);
    let manifest = registry.tagged("acme/web/log", "1.1.0").expect("is there");
    let archive = manifest["layers"][0]["digest"].as_str().expect("is text").to_owned();
    let refused = |code: &str, reason: &str| {
        let error = sandbox.mu(&["get", "--json"]).fails_with(code);
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        assert!(!sandbox.has("work/.mu/packs/hub.mu.com"), "something was installed");
        let _ = fs::remove_dir_all(sandbox.path("cache"));
    };
    registry.behave(|behaviour| behaviour.lying_digest = Some(format!("sha256:{:064}", 7)));
    refused("integrity", "is not the one that was expected");
    registry.behave(|behaviour| behaviour.lying_digest = None);
    registry.spoil(&archive, b"something else");
    refused("integrity", "archive");
    let mut longer = manifest.clone();
    longer["layers"][0]["size"] = 7.into();
    registry.manifest("acme/web/log", "1.1.0", &longer);
    refused("integrity", "archive");
    // An archive whose content differs from its manifest.
    let other = registry.tagged("acme/web/log", "1.0.0").expect("is there");
    let mut swapped = manifest.clone();
    swapped["layers"] = other["layers"].clone();
    registry.manifest("acme/web/log", "1.1.0", &swapped);
    refused("integrity", "1.1.0");
    registry.behave(|behaviour| behaviour.endless = true);
    refused("network", "the list of tags");
}

#[test]
fn blobs_may_be_on_another_server() {
    let registry = OciServer::start(Behaviour::default());
    let sandbox = sandbox(&registry.host());
    offer(&sandbox);
    let manifest = registry.tagged("acme/web/log", "1.1.0").expect("is there");
    let store = OciServer::start(Behaviour::default());
    let digest = manifest["layers"][0]["digest"].as_str().expect("is text");
    let blob = fetch_blob(&registry, digest);
    assert_eq!(store.blob(&blob), digest);
    let elsewhere = format!("http://{}/v2/any/blobs/", store.host());
    registry.behave(|behaviour| behaviour.blobs_at = Some(elsewhere));
    sandbox.asks_for(&["web/log#^1"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(store.requests(), [format!("GET /v2/any/blobs/{digest}")]);
}

/// A blob, as it was pushed.
pub(super) fn fetch_blob(registry: &OciServer, digest: &str) -> Vec<u8> {
    let pushed = registry.seen().into_iter().filter(|seen| seen.method == "PUT");
    let body = pushed.map(|seen| seen.body);
    body.into_iter()
        .find(|body| format!("sha256:{}", mu_testing::hex(body)) == digest)
        .expect("was pushed")
}

#[test]
fn a_hub_is_mirrored_into_a_registry() {
    let registry = DockerRegistry::start();
    let mut sandbox = Sandbox::new();
    sandbox.replace(&registry.host(), "[HOST]");
    sandbox.offer("web/log 1.0.0:\n web/log 1.1.0:\n web/proxy 2.0.0: web/log#^1");
    sandbox.asks_for(&["web/proxy"]);
    sandbox.mu(&["get"]).ok();
    let place = format!("oci://{}/mirror", registry.host());
    sandbox.mu(&["mirror", "--lock", "--to", &place]).ok().says(&["2"]);
    let before = sandbox.lock();
    let again = sandbox.mu(&["mirror", "--lock", "--to", &place, "--json"]).ok();
    assert_eq!(
        (again.json()["copied"].clone(), again.json()["present"].clone()),
        (json!([]), json!(2))
    );
    sandbox.hub_is_at(&place);
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.lock(), before);
    sandbox.mu(&["verify"]).ok();
    // And back into a hub, under the names that they have inside.
    sandbox.hub_is_at(&format!("{place}/web"));
    sandbox
        .write(".mu/workspace.yaml", &format!("registries: {{hub.mu.com/web/: '{place}/web'}}\n"));
    sandbox.mu(&["hub", "init", "../second"]).ok();
    sandbox.mu(&["mirror", "--lock", "--to", "../second"]).ok().says(&["2"]);
    sandbox.write(".mu/workspace.yaml", "registries: {hub.mu.com/web/: ../second}\n");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn names_that_no_registry_has_are_said() {
    let registry = OciServer::start(Behaviour::default());
    let sandbox = sandbox(&registry.host());
    publish(&sandbox, "web/Log", "1.0.0", "").fails().says(&["lower-case"]);
    sandbox.mu(&["get", "web/Log"]).fails().says(&["lower-case"]);
    assert!(!registry.requests().iter().any(|request| request.contains("Log")));
}

#[test]
fn plain_http_is_for_this_machine_alone() {
    let sandbox = Sandbox::new();
    sandbox
        .write(".mu/workspace.yaml", "registries: {hub.mu.com/: \"oci://registry.invalid/x\"}\n");
    let refused = sandbox.mu(&["get", "web/log"]).fails();
    refused.says(&["https://registry.invalid/"]).does_not_say(&["http://registry.invalid/"]);
    let sandbox = self::sandbox("127.0.0.1:1");
    let offline = sandbox.mu(&["get", "web/log", "--offline", "--json"]).fails_with("offline");
    assert!(offline.to_string().contains("web/log"), "{offline}");
}

#[test]
fn a_registry_of_plain_http_needs_the_line_that_the_error_has() {
    let registry = DockerRegistry::start();
    // It is this machine, too, but not by a name that allows plain http.
    let host = registry.host().replace("127.0.0.1", "0.0.0.0");
    Artifact::chart(&Chart::new("web", "1.0.0")).push(&registry.host(), "charts/web", "1.0.0");
    let pasted = |sandbox: &Sandbox, reference: &str| {
        let refused = sandbox.mu(&["get", reference]).fails();
        let refused = refused.says(&["does not speak TLS"]).does_not_say(&["write `http://"]);
        let text = &refused.stderr;
        let (_, line) = text.split_once("write into `.mu/workspace.yaml`: ").expect("has a line");
        sandbox.write(".mu/workspace.yaml", line.lines().next().expect("is a line"));
        sandbox.mu(&["get", reference]).ok();
    };
    let sandbox = Sandbox::new();
    pasted(&sandbox, &format!("oci://{host}/charts/web#^1"));
    assert_eq!(sandbox.locked(), [format!("{host}/charts/web 1.0.0")]);
    // A registry of the settings stays where it is.
    let sandbox = Sandbox::new();
    let place = format!("registries: {{charts.example/: \"oci://{host}/charts/\"}}\n");
    sandbox.write(".mu/workspace.yaml", &place);
    pasted(&sandbox, "charts.example/web");
    assert_eq!(sandbox.locked(), ["charts.example/web 1.0.0"]);
    // Elsewhere, too, nobody is told to write `http://`.
    let to = format!("oci://{host}/mirror");
    let refused = sandbox.mu(&["mirror", "--lock", "--to", &to]).fails();
    refused.says(&["`--allow-insecure` for one command"]).does_not_say(&["write `http://"]);
    sandbox.mu(&["mirror", "--lock", "--to", &to, "--allow-insecure"]).ok();
}

#[test]
fn the_names_of_repositories_are_searched_where_they_are_listed() {
    let docker = DockerRegistry::start();
    let paged = OciServer::start(Behaviour { catalog: true, page: 1, ..Behaviour::default() });
    for host in [docker.host(), paged.host()] {
        let sandbox = sandbox(&host);
        offer(&sandbox);
        let found = sandbox.mu(&["search", "proxy", "--json"]).ok().json();
        let ids: Vec<&Value> =
            found["packages"].as_array().expect("is a list").iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, ["hub.mu.com/web/proxy"], "{host}");
    }
    // A registry that refuses is asked once, and not spoken of.
    let closed = OciServer::start(Behaviour::default());
    let sandbox = sandbox(&closed.host());
    offer(&sandbox);
    let before = closed.requests().len();
    let run = sandbox.mu(&["search", "proxy"]);
    run.does_not_say(&["_catalog", "401"]);
    let asked = closed.requests().split_off(before);
    assert_eq!(asked, ["GET /v2/_catalog?n=1000"]);
    sandbox.mu(&["-v", "search", "proxy"]).says(&["_catalog", "401 Unauthorized"]);
}

#[test]
fn packages_that_name_each_other_by_their_place_in_a_registry_are_published_without_settings() {
    let registry = DockerRegistry::start();
    let host = registry.host();
    let place = format!("oci://{host}/mu");
    let mut sandbox = Sandbox::new();
    sandbox.replace(&host, "[HOST]");
    sandbox.write(".mu/workspace.yaml", "");
    let head = |name: &str| format!("name: {name}\nversion: 1.0.0\ndescription: d\nlicense: MIT\n");
    // Names without a base, and references to where the packages will be.
    sandbox.write("acme/log/Mu.yaml", &head("acme/log"));
    let needs = format!("dependencies: [\"{place}/acme/log#^1\"]\n");
    sandbox.write("acme/proxy/Mu.yaml", &format!("{}{needs}", head("acme/proxy")));
    let publish = ["publish", "--all", "--to", &place];
    sandbox.mu(&[&publish[..], &["--dry-run"]].concat()).ok();
    sandbox.mu(&publish).ok();
    // Whole names, and references by a part of them.
    let base = format!("{host}/mu/team");
    sandbox.write("acme/log/Mu.yaml", &head(&format!("{base}/log")));
    let needs = "dependencies: [log#^1]\n";
    sandbox.write("acme/proxy/Mu.yaml", &format!("{}{needs}", head(&format!("{base}/proxy"))));
    sandbox.mu(&[&publish[..], &["--dry-run"]].concat()).ok();
    sandbox.mu(&publish).ok();
    // They are where their names say.
    for name in ["acme/proxy", "team/proxy"] {
        let reader = format!("reader/{name}");
        mu_testing::write(sandbox.root(), &format!("{reader}/.mu/workspace.yaml"), "");
        let run = sandbox.mu_in(&reader, &["get", &format!("{place}/{name}#^1")]);
        run.ok().says(&["log 1.0.0"]);
    }
    // What is not there is missed.
    let needs = format!("dependencies: [\"{place}/acme/log#^2\"]\n");
    sandbox.write("acme/proxy/Mu.yaml", &format!("{}{needs}", head("acme/late")));
    sandbox.mu(&publish).fails().says(&["no version of [HOST]/mu/acme/log is ^2"]);
}
