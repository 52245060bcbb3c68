//! Packages that are pinned to a digest: in OCI registries, and where that is not possible.

use std::fs;

use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, Chart, DockerRegistry, OciServer, Package, hex, tree};

use super::oci::{offer, sandbox};
use super::support::Sandbox;

/// A registry with packages, and the digest of `web/log` 1.0.0, which no tag leads to any more.
fn registry() -> (OciServer, String) {
    let registry = OciServer::start(Behaviour::default());
    offer(&sandbox(&registry.host()));
    let manifest = registry.tagged("acme/web/log", "1.0.0").expect("was published");
    let digest = registry.manifest("acme/web/log", "1.0.0", &manifest);
    registry.untag("acme/web/log", "1.0.0");
    (registry, digest)
}

#[test]
fn a_digest_is_resolved_locked_and_got_from_the_lock() {
    let (registry, digest) = registry();
    let mut sandbox = Sandbox::new();
    let id = format!("{}/acme/web/log", registry.host());
    sandbox.replace(&registry.host(), "[HOST]");
    sandbox.replace(&digest, "[DIGEST]");
    let before = registry.requests().len();
    sandbox.write("Mu.yaml", "name: acme/app\nversion: 1.0.0\n");
    let added = sandbox.mu(&["add", &format!("oci://{id}#{digest}")]).ok();
    added.says(&["added oci://[HOST]/acme/web/log [DIGEST] to acme/app (Mu.yaml)"]);
    let requests = registry.requests().split_off(before);
    // Tags do not matter.
    assert_eq!(requests.len(), 2, "{requests:#?}");
    assert!(sandbox.read("Mu.yaml").contains(&format!("oci://{id}#{digest}")));
    assert_eq!(sandbox.locked(), [format!("{id} 1.0.0")]);
    let locked = sandbox.lock()["packages"][0].clone();
    assert_eq!(locked["ref"], *digest);
    assert!(locked["commit"].is_null(), "{locked}");
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox.mu(&["why", &id]).ok().says(&["[DIGEST]"]);
    for command in [&["update"][..], &["outdated"], &["verify"], &["list"]] {
        sandbox.mu(command).ok();
    }
    assert_eq!(sandbox.lock()["packages"][0], locked);
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    let before = registry.requests().len();
    sandbox.mu(&["get", "--locked"]).ok();
    let requests = registry.requests().split_off(before);
    assert!(matches!(&requests[..], [one] if one.contains("/blobs/")), "{requests:#?}");
    // One of its versions has another digest.
    let other = [&*format!("oci://{id}#1.1.0")];
    sandbox.mu(&["get", other[0]]).fails().says(&["[DIGEST]"]);
}

#[test]
fn what_does_not_have_the_digest_is_refused() {
    let (registry, digest) = registry();
    let mut sandbox = Sandbox::new();
    let id = format!("{}/acme/web/log", registry.host());
    sandbox.replace(&registry.host(), "[HOST]");
    sandbox.asks_for(&[&format!("oci://{id}#{digest}")]);
    registry.spoil_manifest("acme/web/log", &digest, b"{}");
    let run = sandbox.mu(&["get", "--json"]).fails();
    run.fails_with("integrity");
    run.says(&[&digest, "is not the one that was expected"]);
    let unknown = format!("sha256:{}", hex(b"unknown"));
    sandbox.asks_for(&[&format!("oci://{id}#{unknown}")]);
    sandbox.replace(&unknown, "[UNKNOWN]");
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no version of [HOST]/acme/web/log meets the requirements
      acme/web requires [HOST]/acme/web/log [UNKNOWN]
      [HOST]/acme/web/log has no content with the digest [UNKNOWN]
        looked at oci+https://[HOST]/

    hint: `mu versions oci://[HOST]/acme/web/log` lists the versions that there are
    [exit 1]
    ");
    assert!(!sandbox.has("work/Mu.lock"));
}

#[test]
fn a_mirror_has_the_same_digest() {
    let (registry, digest) = registry();
    let other = OciServer::start(Behaviour::default());
    let mut sandbox = Sandbox::new();
    let id = format!("{}/acme/web/log", registry.host());
    sandbox.replace(&registry.host(), "[HOST]");
    let reference = format!("oci://{id}#{digest}");
    let to = format!("oci://{}/copies", other.host());
    sandbox.mu(&["mirror", &reference, "--to", &to]).ok();
    sandbox.asks_for(&[&reference]);
    sandbox.write(".mu/workspace.yaml", &format!("registries: {{{}/: {to}/}}\n", registry.host()));
    let before = registry.requests().len();
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), [format!("{id} 1.0.0")]);
    assert_eq!(registry.requests().len(), before, "only the mirror was asked");
}

#[test]
fn packages_of_crossplane_are_pinned_by_what_depends_on_them() {
    let server = DockerRegistry::start();
    let host = server.host();
    let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: aws}\n";
    let provider = Artifact::package(meta);
    provider.push(&host, "acme/provider-aws", "v1.0.0");
    let digest = format!("sha256:{}", hex(provider.manifest().to_string().as_bytes()));
    let sandbox = Sandbox::new();
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    let spec = format!(
        "spec:\n  dependsOn:\n    - provider: {host}/acme/provider-aws\n      version: {digest}\n"
    );
    let own = meta.replace("Provider", "Configuration").replace("aws", "own");
    sandbox.write("crossplane.yaml", &format!("{own}{spec}"));
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["ref"], *digest);
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn charts_and_modules_are_pinned_to_digests() {
    let server = DockerRegistry::start();
    let host = server.host();
    let (chart, later) = (Chart::new("web", "1.0.0"), Chart::new("web", "1.0.0").file("b", "c"));
    let module = |text: &str| {
        let manifest = "[package]\nname = \"hello\"\nversion = \"0.1.0\"\n";
        Artifact::module("hello", "0.1.0", &[("kcl.mod", manifest), ("main.k", text)], true)
    };
    let push = |artifact: Artifact, repository: &str, tag: &str| {
        artifact.push(&host, repository, tag);
        format!("sha256:{}", hex(artifact.manifest().to_string().as_bytes()))
    };
    let pinned = [
        push(Artifact::chart(&chart), "charts/web", "1.0.0"),
        push(module("a = 1\n"), "kcl-lang/hello", "0.1.0"),
    ];
    // The tags go on to something else.
    push(Artifact::chart(&later), "charts/web", "1.0.0");
    push(module("a = 2\n"), "kcl-lang/hello", "0.1.0");
    let sandbox = Sandbox::new();
    let references = [
        format!("oci://{host}/charts/web#{}", pinned[0]),
        format!("oci://{host}/kcl-lang/hello#{}", pinned[1]),
    ];
    sandbox.asks_for(&[&references[0], &references[1]]);
    sandbox.mu(&["get"]).ok();
    let ids = [format!("{host}/charts/web 1.0.0"), format!("{host}/kcl-lang/hello 0.1.0")];
    assert_eq!(sandbox.locked(), ids);
    let packs = format!("work/.mu/packs/{}", host.replace(':', "+"));
    assert_eq!(tree(&sandbox.path(&format!("{packs}/charts/web"))), chart.files());
    let text = fs::read_to_string(sandbox.path(&format!("{packs}/kcl-lang/hello/main.k")));
    assert_eq!(text.expect("is there"), "a = 1\n");
    let lock = sandbox.lock();
    for (package, digest) in lock["packages"].as_array().expect("is a list").iter().zip(&pinned) {
        assert_eq!(package["ref"], **digest);
    }
    for command in [&["verify"][..], &["update"], &["outdated"], &["get", "--locked"]] {
        sandbox.mu(command).ok();
    }
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.lock(), lock);
    assert_eq!(tree(&sandbox.path(&format!("{packs}/charts/web"))), chart.files());
}

#[test]
fn other_places_have_no_digests_and_wrong_ones_are_pointed_at() {
    let mut sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("web/log", "1.0.0")]);
    let digest = format!("sha256:{}", hex(b"anything"));
    sandbox.replace(&digest, "[DIGEST]");
    sandbox.mu(&["get", &format!("web/log#{digest}")]).fails().says(&[
        "`web/log` cannot be pinned to `[DIGEST]`: only artifacts in OCI registries and archives by URL can be",
        "hint: pin its version, such as `web/log#1.0.0`; Mu.lock has the digest of its content",
    ]);
    insta::assert_snapshot!(sandbox.mu(&["get", "web/log#sha256:0123456789abcdefg"]).fails().shown(), @"
    $ mu get web/log#sha256:0123456789abcdefg
    error: `web/log#sha256:0123456789abcdefg` is not a valid reference
      web/log#sha256:0123456789abcdefg
                                     ^ expected 64 lower-case hexadecimal digits after `sha256:`, found `g`
    [exit 1]
    ");
}
