//! What mu puts into OCI registries, as another tool sees it: skopeo checks and copies it, and mu finds the copies.

use std::fs;
use std::process::Command;

use mu_testing::{Artifact, Chart, DockerRegistry, hex};
use serde_json::Value;

use super::oci;
use super::support::Sandbox;

/// Runs skopeo, which has to succeed; what it printed.
fn skopeo(sandbox: &Sandbox, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new(mu_testing::program("skopeo"));
    command.arg("--insecure-policy").args(arguments);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", sandbox.path("home"));
    let output = command.output().expect("`.ci/setup` installs skopeo");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "skopeo {arguments:?}: {said}");
    output.stdout
}

/// The tags of a repository.
fn tags(sandbox: &Sandbox, repository: &str) -> Vec<String> {
    let listed =
        skopeo(sandbox, &["list-tags", "--tls-verify=false", &format!("docker://{repository}")]);
    let listed: Value = serde_json::from_slice(&listed).expect("is JSON");
    let tags = listed["Tags"].as_array().expect("is a list").iter();
    tags.map(|tag| tag.as_str().expect("is text").to_owned()).collect()
}

/// The digest of the manifest of an image, which skopeo reads.
fn manifest(sandbox: &Sandbox, image: &str) -> String {
    let image = format!("docker://{image}");
    let raw = skopeo(sandbox, &["inspect", "--raw", "--tls-verify=false", &image]);
    format!("sha256:{}", hex(&raw))
}

/// Copies an image, with everything that it has, as it is.
fn copy(sandbox: &Sandbox, from: &str, to: &str) {
    let (from, to) = (format!("docker://{from}"), format!("docker://{to}"));
    let as_it_is =
        ["--all", "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false"];
    skopeo(sandbox, &[&["copy"], &as_it_is[..], &[&from, &to]].concat());
}

#[test]
fn what_mu_publishes_is_copied_and_used_from_the_copy() {
    let (registry, other) = (DockerRegistry::start(), DockerRegistry::start());
    let (host, elsewhere) = (registry.host(), other.host());
    let mut sandbox = oci::sandbox(&host);
    sandbox.replace(&elsewhere, "[OTHER]");
    oci::offer(&sandbox);
    sandbox.asks_for(&["web/proxy#^2"]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.lock();
    for package in lock["packages"].as_array().expect("is a list") {
        let name = package["id"].as_str().and_then(|id| id.strip_prefix("hub.mu.com/"));
        let name = name.expect("is in the hub");
        let version = package["version"].as_str().expect("is text");
        let repository = format!("{host}/acme/{name}");
        assert_eq!(manifest(&sandbox, &format!("{repository}:{version}")), package["manifest"]);
        let tags = tags(&sandbox, &repository);
        assert!(tags.iter().any(|tag| tag == version), "{tags:?}");
        // It writes a list of manifests anew, without what it does not know, so mu's list stays behind.
        for tag in tags.iter().filter(|tag| !tag.starts_with("sha256-")) {
            let to = format!("{elsewhere}/copy/{name}:{tag}");
            copy(&sandbox, &format!("{repository}:{tag}"), &to);
        }
    }
    sandbox.hub_is_at(&format!("oci://{elsewhere}/copy"));
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.mu(&["get"]).ok();
    let again = sandbox.lock();
    for (one, two) in lock["packages"].as_array().into_iter().zip(again["packages"].as_array()) {
        let content = |packages: &[Value]| -> Vec<Value> {
            let keys = ["version", "digest", "archive", "manifest"];
            packages.iter().flat_map(|package| keys.map(|key| package[key].clone())).collect()
        };
        assert_eq!(content(one), content(two));
    }
}

#[test]
fn what_mu_mirrors_of_other_tools_stays_what_it_was() {
    let (registry, other) = (DockerRegistry::start(), DockerRegistry::start());
    let (host, elsewhere) = (registry.host(), other.host());
    let mut sandbox = Sandbox::new();
    sandbox.replace(&host, "[HOST]");
    sandbox.replace(&elsewhere, "[OTHER]");
    let chart = Chart::new("queue", "2.1.0").file("templates/a.yaml", "kind: A\n");
    Artifact::chart(&chart).push(&host, "acme/queue", "2.1.0");
    let files = [("kcl.mod", "[package]\nname = \"lib\"\nversion = \"0.4.0\"\n")];
    Artifact::module("lib", "0.4.0", &files, true).push(&host, "acme/lib", "0.4.0");
    let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: fn\n";
    Artifact::package(meta).push(&host, "acme/fn", "v1.0.0");
    let all = [("queue", "2.1.0"), ("lib", "0.4.0"), ("fn", "v1.0.0")];
    let references = all.map(|(name, _)| format!("oci://{host}/acme/{name}"));
    sandbox.asks_for(&references.each_ref().map(String::as_str));
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["mirror", "--lock", "--to", &format!("oci://{elsewhere}/mirror")]).ok();
    for (name, tag) in all {
        let (from, to) =
            (format!("{host}/acme/{name}:{tag}"), format!("{elsewhere}/mirror/acme/{name}:{tag}"));
        assert_eq!(manifest(&sandbox, &from), manifest(&sandbox, &to), "{name}");
        // It reads every blob, and compares it with its digest.
        let folder = format!("dir:{}", sandbox.path(name).display());
        let image = format!("docker://{to}");
        skopeo(&sandbox, &["copy", "--src-tls-verify=false", &image, &folder]);
    }
}
