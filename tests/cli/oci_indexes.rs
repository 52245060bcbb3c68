//! Tags of OCI registries that lead to an index of several manifests: which of them is the package.

use mu_testing::{Artifact, Chart, DockerRegistry, hex, push_manifest};
use serde_json::{Value, json};

use crate::support::Sandbox;

/// A registry, and a sandbox in which it is called `[HOST]`.
fn registry() -> (Sandbox, DockerRegistry) {
    let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    sandbox.replace(&server.host(), "[HOST]");
    (sandbox, server)
}

/// An image of a program, or a statement about one.
fn image(config: &[u8]) -> Artifact {
    let layer = "application/vnd.oci.image.layer.v1.tar+gzip";
    Artifact::new("application/vnd.oci.image.config.v1+json", config).layer(layer, config, &[])
}

/// Pushes artifacts and an index of them, with what its entries say besides.
fn push(host: &str, repository: &str, tag: &str, entries: &[(&Artifact, Value)]) {
    let mut manifests = Vec::new();
    for (number, (artifact, said)) in entries.iter().enumerate() {
        artifact.push(host, repository, &format!("part-{number}"));
        let bytes = artifact.manifest().to_string();
        let mut entry = json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": format!("sha256:{}", hex(bytes.as_bytes())),
            "size": bytes.len(),
        });
        let entry_keys = entry.as_object_mut().expect("is a map");
        entry_keys.extend(said.as_object().expect("is a map").clone());
        manifests.push(entry);
    }
    let index = "application/vnd.oci.image.index.v1+json";
    let index = json!({"schemaVersion": 2, "mediaType": index, "manifests": manifests});
    push_manifest(host, repository, tag, &index);
}

fn platform(architecture: &str) -> Value {
    json!({"platform": {"os": "linux", "architecture": architecture}})
}

#[test]
fn a_chart_beside_its_image_is_the_package() {
    let (sandbox, server) = registry();
    let host = server.host();
    let statement = json!({
        "platform": {"os": "unknown", "architecture": "unknown"},
        "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
    });
    let chart = |version: &str| Artifact::chart(&Chart::new("agent", version));
    let typed = json!({"artifactType": "application/vnd.cncf.helm.config.v1+json"});
    for (version, said) in [("0.8.0", json!({})), ("0.8.1", typed)] {
        let (chart, amd, arm) = (chart(version), image(b"{\"a\":1}"), image(b"{\"a\":2}"));
        let about = image(b"{\"about\":1}");
        push(
            &host,
            "acme/agent",
            version,
            &[
                (&about, statement.clone()),
                (&arm, platform("arm64")),
                (&amd, platform("amd64")),
                (&chart, said),
            ],
        );
    }
    let reference = format!("oci://{host}/acme/agent");
    for version in ["0.8.0", "0.8.1"] {
        sandbox
            .mu(&["get", &format!("{reference}#{version}")])
            .ok()
            .says(&["[HOST]/acme/agent", version]);
        let pack = format!("work/.mu/packs/{}/acme/agent", host.replace(':', "+"));
        assert!(sandbox.path(&format!("{pack}/Chart.yaml")).exists());
    }
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn of_several_packages_the_one_with_the_name_is_meant() {
    let (sandbox, server) = registry();
    let host = server.host();
    let chart = |name: &str, version: &str, text: &str| {
        Artifact::chart(&Chart::new(name, version).lines(&format!("description: {text}\n")))
    };
    let (agent, common) = (chart("agent", "1.0.0", "one"), chart("common", "1.0.0", "one"));
    push(&host, "acme/agent", "1.0.0", &[(&common, json!({})), (&agent, json!({}))]);
    let reference = format!("oci://{host}/acme/agent");
    sandbox.mu(&["info", &reference]).ok().says(&["one"]).does_not_say(&["calls itself"]);
    sandbox.mu(&["get", &reference]).ok().does_not_say(&["calls itself"]);
    // Where nothing tells two apart, both are named, wherever they stand.
    let (agent, other) = (chart("agent", "1.0.1", "one"), chart("agent", "1.0.1", "two"));
    let mut named: Vec<String> = Vec::new();
    for entries in [[&agent, &other], [&other, &agent]] {
        push(&host, "acme/agent", "1.0.1", &entries.map(|entry| (entry, json!({}))));
        let run = sandbox.mu(&["resolve", &format!("{reference}#1.0.1"), "--refresh"]).fails();
        let run = run.says(&["an index of several packages that could be meant", "`agent` (helm"]);
        for artifact in [&agent, &other] {
            let digest = hex(artifact.manifest().to_string().as_bytes());
            assert!(run.shown().contains(&digest), "{}", run.shown());
            named.push(digest);
        }
    }
    let pinned = format!("{reference}#sha256:{}", named[1]);
    sandbox.mu(&["get", &pinned]).ok().says(&["[HOST]/acme/agent"]);
}

#[test]
fn a_chart_with_another_name_than_its_repository_is_told_when_it_is_chosen() {
    let (sandbox, server) = registry();
    let host = server.host();
    Artifact::chart(&Chart::new("alpha", "0.1.0")).push(&host, "t/beta", "0.1.0");
    let reference = format!("oci://{host}/t/beta");
    let told = "`[HOST]/t/beta` 0.1.0 is a chart that calls itself `alpha`";
    sandbox.mu(&["resolve", &reference]).ok().says(&[told]);
    sandbox.mu(&["get", &reference]).ok().says(&[told, "Helm does not find it"]);
    // What is locked was told.
    sandbox.mu(&["get"]).ok().does_not_say(&["alpha"]);
}
