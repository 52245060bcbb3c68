//! Packages of Crossplane that move to another organization or registry, in a real registry: the metadata says it, or the settings do.

use std::fs;

use mu_testing::{Artifact, DockerRegistry};

use serde_json::{Value, json};

use crate::support::Sandbox;

/// A `package.yaml` with a custom resource.
fn package(name: &str, spec: &str, group: &str, kind: &str) -> String {
    format!(
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: {name}\nspec:\n  controller: {{}}\n{spec}---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  group: {group}\n  names: {{kind: {kind}}}\n  versions: [{{name: v1beta1, served: true}}]\n"
    )
}

const OLD: &str = "xpkg.upbound.io/upbound/provider-family-aws";
const NEW: &str = "xpkg.upbound.io/crossplane-contrib/provider-family-aws";
const S3: &str = "oci://xpkg.upbound.io/upbound/provider-aws-s3";
const EC2: &str = "oci://xpkg.upbound.io/crossplane-contrib/provider-aws-ec2";

/// The family of AWS providers has moved: one provider needs it under its old name, another one under its new name, and both bring the
/// same kind. The new one says that it replaces the old one, or does not.
fn family(says_so: bool) -> (Sandbox, DockerRegistry) {
    let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    let needs = |id: &str, version: &str| {
        format!("  dependsOn:\n  - provider: {id}\n    version: '{version}'\n")
    };
    let replaces = if says_so { format!("  replaces:\n  - {OLD}\n") } else { String::new() };
    let shared = ("aws.upbound.io", "ProviderConfig");
    let (old_needs, new_needs) = (needs(OLD, ">= v1.0"), needs(NEW, ">= v1.16.0"));
    for (repository, version, spec, (group, kind)) in [
        ("upbound/provider-family-aws", "v1.15.0", "", shared),
        ("crossplane-contrib/provider-family-aws", "v1.17.0", &*replaces, shared),
        ("upbound/provider-aws-s3", "v1.15.0", &old_needs, ("s3.aws.upbound.io", "Bucket")),
        (
            "crossplane-contrib/provider-aws-ec2",
            "v1.16.0",
            &new_needs,
            ("ec2.aws.upbound.io", "VPC"),
        ),
    ] {
        let name = repository.rsplit('/').next().expect("has one");
        let text = package(name, spec, group, kind);
        Artifact::package(&text).push(&host, repository, version);
    }
    sandbox.write(".mu/workspace.yaml", &settings(&host, ""));
    (sandbox, server)
}

fn settings(host: &str, more: &str) -> String {
    format!("registries:\n  xpkg.upbound.io/: oci://{host}/\n{more}")
}

/// Both providers are installed with one family, also from the lock alone, and the lock says whom it stands for.
fn is_moved(sandbox: &Sandbox) {
    let chosen = [
        "xpkg.upbound.io/crossplane-contrib/provider-aws-ec2 1.16.0".to_owned(),
        format!("{NEW} 1.17.0"),
        "xpkg.upbound.io/upbound/provider-aws-s3 1.15.0".to_owned(),
    ];
    let mut listed = sandbox.mu(&["list", "--json"]).ok().json()["packages"].clone();
    let listed = listed.as_array_mut().expect("is a list");
    let replaced: Vec<_> = listed.extract_if(.., |one| !one["replacedBy"].is_null()).collect();
    assert_eq!(replaced.len(), 1);
    assert_eq!((&replaced[0]["id"], &replaced[0]["replacedBy"]), (&json!(OLD), &json!(NEW)));
    let text = |value: &Value| value.as_str().expect("is text").to_owned();
    let locked: Vec<_> = listed
        .iter()
        .map(|one| format!("{} {}", text(&one["id"]), text(&one["version"])))
        .collect();
    assert_eq!(locked, chosen);
    sandbox.mu(&["get"]).ok().says(&["up to date (3 packages)"]);
    sandbox.mu(&["which", OLD]).ok().says(&["crossplane-contrib/provider-family-aws"]);
    for gone in ["work/.mu/packs", "cache"] {
        fs::remove_dir_all(sandbox.path(gone)).expect("is there");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["vendor", "--for", "crossplane"]).ok();
    let text = sandbox.read("crossplane/crossplane-contrib-provider-family-aws.yaml");
    assert!(text.contains(&format!("{NEW}:v1.17.0")), "{text}");
    assert!(!sandbox.path("work/crossplane/upbound-provider-family-aws.yaml").exists());
}

#[test]
fn a_package_that_says_what_it_replaces_takes_its_place_with_consent() {
    let (sandbox, server) = family(true);
    sandbox.mu(&["info", NEW]).ok().says(&["replaces", "upbound/provider-family-aws"]);
    let wanted = [S3, EC2];
    let refused = sandbox.mu(&[&["get"], &wanted[..]].concat()).fails();
    let line = format!("allowReplaces: {{{OLD}: {NEW}}}");
    refused.says(&[&format!("`{NEW}` would take the place of `{OLD}`"), &line, "--yes"]);
    assert!(!sandbox.path("work/Mu.lock").exists());
    sandbox.mu(&[&["resolve"], &wanted[..]].concat()).ok().says(&["nobody has agreed"]);
    sandbox.write(".mu/workspace.yaml", &settings(&server.host(), &line));
    sandbox.mu(&[&["get"], &wanted[..]].concat()).ok();
    is_moved(&sandbox);
    let (sandbox, _server) = family(true);
    sandbox.mu(&[&["get", "--yes"], &wanted[..]].concat()).ok();
    is_moved(&sandbox);
}

#[test]
fn the_settings_can_say_what_a_package_replaces() {
    let (sandbox, server) = family(false);
    let wanted = [S3, EC2];
    let run = sandbox.mu(&[&["get"], &wanted[..]].concat()).fails();
    let line = format!("{NEW}: {{replaces: [{OLD}]}}");
    run.says(&[
        "only one package at a time can provide aws.upbound.io/v1beta1/ProviderConfig",
        &format!("write `{line}` under `packages` in `.mu/workspace.yaml`"),
    ]);
    // What it says works when it is pasted.
    let host = server.host();
    sandbox.write(".mu/workspace.yaml", &settings(&host, &format!("packages:\n  {line}\n")));
    sandbox.mu(&[&["get"], &wanted[..]].concat()).ok();
    is_moved(&sandbox);
    // It is a setting, and no fact of the package: without it, the lock does not hold.
    sandbox.write(".mu/workspace.yaml", &settings(&host, ""));
    sandbox.mu(&["get", "--locked"]).fails().says(&[&format!("{NEW} no longer replaces {OLD}")]);
    for (wrong, expected) in [("[a b]", "`a b`"), ("['a#^1']", "no version belongs here")] {
        let more = format!("packages:\n  {NEW}: {{replaces: {wrong}}}\n");
        sandbox.write(".mu/workspace.yaml", &settings(&host, &more));
        sandbox.mu(&["get"]).fails().says(&[".mu/workspace.yaml:4:", expected]);
    }
}

#[test]
fn a_package_that_is_pinned_by_its_digest_is_known_as_the_version_of_its_tag() {
    let (sandbox, server) = family(false);
    let host = server.host();
    let text = package("provider-family-aws", "", "aws.upbound.io", "ProviderConfig");
    let digest = Artifact::package(&text).push(&host, "upbound/provider-family-aws", "v1.16.0");
    let newer = text.replace("controller: {}", "controller: {image: a}");
    Artifact::package(&newer).push(&host, "upbound/provider-family-aws", "v1.18.0");
    let conf = format!(
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {{name: platform}}\nspec:\n  dependsOn:\n  - provider: {OLD}\n    version: {digest}\n  - provider: xpkg.upbound.io/upbound/provider-aws-s3\n    version: v1.15.0\n"
    );
    sandbox.write("crossplane.yaml", &conf);
    // The range of another package holds for it.
    sandbox.mu(&["get"]).ok().says(&[&format!("+ {OLD} 1.16.0")]);
    assert!(sandbox.read("Mu.lock").contains(&digest));
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["update"]).ok();
    assert!(sandbox.locked().contains(&format!("{OLD} 1.16.0")));
}
