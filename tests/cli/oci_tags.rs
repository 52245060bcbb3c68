//! Tags in OCI registries that are no versions: `#edge` is what the tag leads to, and the lock has its digest.

use std::fs;

use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, Chart, DockerRegistry, OciServer, hex, pull, push_manifest, tree};
use serde_json::Value;

use super::oci::{offer, sandbox};
use super::support::Sandbox;

/// The folder with the packs of a registry.
fn packs(sandbox: &Sandbox, host: &str) -> std::path::PathBuf {
    sandbox.path(&format!("work/.mu/packs/{}", host.replace(':', "+")))
}

fn digest(artifact: &Artifact) -> String {
    format!("sha256:{}", hex(artifact.manifest().to_string().as_bytes()))
}

fn module(text: &str) -> Artifact {
    let manifest = "[package]\nname = \"hello\"\nversion = \"0.1.0\"\n";
    Artifact::module("hello", "0.1.0", &[("kcl.mod", manifest), ("main.k", text)], true)
}

/// Removes what this machine knows, so that only Mu.lock is left.
fn forget(sandbox: &Sandbox) {
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
}

#[test]
fn a_tag_is_locked_by_its_digest_and_moves_with_update() {
    let server = DockerRegistry::start();
    let host = server.host();
    let chart = |text: &str| Chart::new("web", "1.0.0").file("values.yaml", text);
    let meta = |name: &str| {
        format!(
            "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {{name: {name}}}\n"
        )
    };
    let repositories = ["acme/provider-aws", "charts/web", "kcl-lang/hello"];
    let artifacts = |text: &str| {
        let chart = Artifact::chart(&chart(&format!("a: {text}\n")));
        [Artifact::package(&meta(text)), chart, module(&format!("a = {text}\n"))]
    };
    let push = |artifacts: &[Artifact; 3], tags: [&str; 3]| {
        for ((artifact, repository), tag) in artifacts.iter().zip(repositories).zip(tags) {
            artifact.push(&host, repository, tag);
        }
    };
    push(&artifacts("1"), ["v1.0.0", "1.0.0", "0.1.0"]);
    push(&artifacts("2"), ["edge"; 3]);
    let mut sandbox = Sandbox::new();
    sandbox.replace(&host, "[HOST]");
    let references = repositories.map(|repository| format!("oci://{host}/{repository}#edge"));
    sandbox.asks_for(&references.each_ref().map(String::as_str));
    sandbox.mu(&["get"]).ok();
    let locked = |sandbox: &Sandbox| -> Vec<String> {
        let lock = sandbox.lock();
        let packages = lock["packages"].as_array().expect("is a list");
        let of = |package: &Value| {
            assert_eq!(package["ref"], "edge", "{package}");
            assert!(package["commit"].is_null(), "{package}");
            package["artifact"].as_str().unwrap_or_default().to_owned()
        };
        packages.iter().map(of).collect()
    };
    assert_eq!(locked(&sandbox), artifacts("2").each_ref().map(digest));
    // Nothing inside a package of Crossplane says its version.
    let ids = [("0.0.0", 0), ("1.0.0", 1), ("0.1.0", 2)];
    let ids = ids.map(|(version, at)| format!("{host}/{} {version}", repositories[at]));
    assert_eq!(sandbox.locked(), ids);
    let installed = || tree(&packs(&sandbox, &host));
    assert_eq!(tree(&packs(&sandbox, &host).join("charts/web")), chart("a: 2\n").files());
    let files = installed();
    // A lock is enough, and it stays where it is.
    let lock = sandbox.read("Mu.lock");
    push(&artifacts("3"), ["edge"; 3]);
    forget(&sandbox);
    let before = server.log().len();
    sandbox.mu(&["get", "--locked"]).ok();
    let log = server.log().split_off(before);
    assert!(log.len() == 3 && log.iter().all(|line| line.contains("/blobs/")), "{log:#?}");
    assert_eq!(installed(), files);
    for command in [&["get"][..], &["verify"], &["list"], &["why", "web"]] {
        sandbox.mu(command).ok();
    }
    assert_eq!(sandbox.read("Mu.lock"), lock);
    // Only `mu update` follows the tag.
    let [_, old, _] = artifacts("2").map(|artifact| digest(&artifact)[..19].to_owned());
    let [_, new, _] = artifacts("3").map(|artifact| digest(&artifact)[..19].to_owned());
    sandbox.mu(&["outdated"]).says(&[&format!("1.0.0 ({old})"), &format!("1.0.0 ({new})")]);
    sandbox.mu(&["update"]).ok().says(&[&format!("1.0.0 ({old}) → 1.0.0 ({new})")]);
    assert_eq!(locked(&sandbox), artifacts("3").each_ref().map(digest));
    assert_eq!(tree(&packs(&sandbox, &host).join("charts/web")), chart("a: 3\n").files());
    sandbox.mu(&["outdated"]).ok();
    sandbox.mu(&["list"]).ok().says(&[&format!("1.0.0 ({new})")]);
    // A mirror has the same tags.
    let other = DockerRegistry::start();
    let to = format!("oci://{}/copies", other.host());
    sandbox.mu(&["mirror", "--lock", "--to", &to]).ok();
    sandbox.write(".mu/workspace.yaml", &format!("registries: {{{host}/: {to}/}}\n"));
    forget(&sandbox);
    let before = server.log().len();
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["update"]).ok().says(&["up to date"]);
    assert_eq!(server.log().len(), before, "only the mirror was asked");
    assert_eq!(locked(&sandbox), artifacts("3").each_ref().map(digest));
    // A pin does not move any more.
    sandbox.mu(&["pin", &format!("{host}/charts/web")]).ok();
    let pinned = digest(&artifacts("3")[1]);
    assert!(sandbox.read("Mu.yaml").contains(&format!("oci://{host}/charts/web#{pinned}")));
}

#[test]
fn a_tag_and_a_digest_are_shown_before_anything_requires_them() {
    let server = DockerRegistry::start();
    let host = server.host();
    let [first, second] = ["1", "2"].map(|text| {
        Artifact::chart(&Chart::new("web", "1.0.0").file("values.yaml", &format!("a: {text}\n")))
    });
    first.push(&host, "charts/web", "1.0.0");
    second.push(&host, "charts/web", "edge");
    let sandbox = Sandbox::new();
    let place = format!("oci://{host}/charts/web");
    for name in ["edge", &digest(&second)] {
        let reference = format!("{place}#{name}");
        let info = sandbox.mu(&["info", &reference, "--json"]).ok().json();
        assert_eq!(info["format"], "helm", "{name}: {info}");
        sandbox.mu(&["diff", &place, &reference]).says(&["+a: 2"]);
    }
    let missing = format!("{place}#nothing");
    sandbox.mu(&["info", &missing]).fails().says(&["has no version nothing"]);
}

#[test]
fn a_tag_beside_a_version_is_that_version() {
    let server = DockerRegistry::start();
    let host = server.host();
    let chart = Artifact::chart(&Chart::new("web", "1.0.0"));
    chart.push(&host, "charts/web", "1.0.0");
    chart.push(&host, "charts/web", "stable");
    let sandbox = Sandbox::new();
    sandbox.asks_for(&[&format!("oci://{host}/charts/web#stable")]);
    sandbox.mu(&["get"]).ok();
    let locked = sandbox.lock()["packages"][0].clone();
    assert!(locked["artifact"].is_null() && locked["ref"] == "stable", "{locked}");
    forget(&sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
    // With other content it is not, although the version inside is the same.
    Artifact::chart(&Chart::new("web", "1.0.0").file("a", "b")).push(&host, "charts/web", "stable");
    sandbox.mu(&["update"]).ok();
    assert!(!sandbox.lock()["packages"][0]["artifact"].is_null());
}

#[test]
fn a_tag_with_fewer_numbers_hides_no_version() {
    let server = DockerRegistry::start();
    let host = server.host();
    for (version, tag) in [("1.4.0", "1.4.0"), ("1.4.7", "1.4.7"), ("1.4.7", "1.4")] {
        Artifact::chart(&Chart::new("web", version)).push(&host, "charts/web", tag);
    }
    Artifact::chart(&Chart::new("web", "1.5")).push(&host, "charts/web", "1.5");
    let mut sandbox = Sandbox::new();
    sandbox.replace(&host, "[HOST]");
    let place = format!("{{url: \"oci://{host}/charts\", versions: lenient}}");
    sandbox.write(".mu/workspace.yaml", &format!("registries: {{{host}/charts/: {place}}}\n"));
    for (asked, chosen) in [("1.4.0", "1.4.0"), ("~1.4", "1.4.7"), ("^1", "1.5")] {
        let reference = format!("oci://{host}/charts/web#{asked}");
        sandbox.mu(&["resolve", &reference]).ok().says(&[&format!("[HOST]/charts/web {chosen}\n")]);
    }
}

#[test]
fn where_no_tag_is_a_version_the_tags_are_named() {
    let server = DockerRegistry::start();
    let host = server.host();
    let chart = Artifact::chart(&Chart::new("web", "1.0.0-main.3"));
    for tag in ["latest", "0ddba11", "main"] {
        chart.push(&host, "charts/web", tag);
    }
    chart.push(&host, "charts/last", "latest");
    let mut sandbox = Sandbox::new();
    sandbox.replace(&host, "[HOST]");
    let tags = "none of its tags is a version: `0ddba11`, `latest`, `main`; a reference can name one, as in `#main`";
    let place = format!("oci://{host}/charts/web");
    sandbox.mu(&["get", &place]).fails().says(&["left out: ", tags]);
    sandbox.mu(&["versions", &place]).ok().says(&[tags]);
    let last = format!("oci://{host}/charts/last");
    let digest = "a version: `latest`; a reference can name the digest of one, `#sha256:…`";
    sandbox.mu(&["get", &last]).fails().says(&[digest]);
    // What is said works, and says nothing of the others.
    for (reference, got) in [
        (format!("{place}#main"), "+ [HOST]/charts/web 1.0.0-main.3"),
        (format!("{last}#{}", self::digest(&chart)), "+ [HOST]/charts/last 1.0.0-main.3"),
    ] {
        let run = sandbox.mu(&["get", &reference]).ok();
        run.says(&[got]).does_not_say(&["what is not a version"]);
    }
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn packages_of_mu_have_such_tags_too() {
    let server = DockerRegistry::start();
    let host = server.host();
    let sandbox = sandbox(&host);
    offer(&sandbox);
    // What a pipeline has pushed beside the versions, named by a branch and by a commit.
    let manifest = pull(&host, "acme/web/proxy/manifests/2.1.0-rc.1_b7").expect("was published");
    let mut manifest: Value = serde_json::from_slice(&manifest).expect("is JSON");
    manifest["annotations"]["org.opencontainers.image.revision"] = "0ddba11".into();
    let expected = format!("sha256:{}", hex(manifest.to_string().as_bytes()));
    for tag in ["edge", "0ddba11"] {
        push_manifest(&host, "acme/web/proxy", tag, &manifest);
        sandbox.asks_for(&[&format!("web/proxy#{tag}")]);
        sandbox.mu(&["get"]).ok();
        assert_eq!(
            sandbox.locked(),
            ["hub.mu.com/web/log 1.1.0", "hub.mu.com/web/proxy 2.1.0-rc.1+b7"]
        );
        let lock = sandbox.lock();
        assert_eq!(
            [&lock["packages"][1]["ref"], &lock["packages"][1]["artifact"]],
            [tag, &*expected]
        );
        forget(&sandbox);
        let before = server.log().len();
        sandbox.mu(&["get", "--locked"]).ok();
        let log = server.log().split_off(before);
        assert!(log.len() == 2 && log.iter().all(|line| line.contains("/blobs/")), "{log:#?}");
        sandbox.mu(&["update"]).ok().says(&["up to date"]);
    }
    sandbox.mu(&["get", "web/proxy#egde"]).fails().says(&["web/proxy has no tag egde"]);
}

#[test]
fn a_repository_without_tags_is_told_from_none() {
    for (null_tags, said) in [(true, "tags/list, which has no tags, so no versions"), (false, "")] {
        let registry = OciServer::start(Behaviour { null_tags, ..Behaviour::default() });
        let mut sandbox = Sandbox::new();
        sandbox.replace(&registry.host(), "[HOST]");
        let run = sandbox.mu(&["get", &format!("oci://{}/acme/web", registry.host())]).fails();
        run.says(&["package not found: `[HOST]/acme/web`", said]);
    }
}
