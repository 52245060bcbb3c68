//! Charts in OCI registries, as `helm push` puts them there.

use std::fs;
use std::time::Duration;

use mu_testing::oci::Behaviour;
use mu_testing::{
    Artifact, Chart, Charts, DockerRegistry, Nginx, OciServer, digest_of, pull, tree,
};

use serde_json::{Value, json};

use super::support::{Hub, Sandbox};

const INDEX_TAG: &str = "sha256-eba1582f16a4f7dba39359c71460b353a642c47048b6532d6d37b704ddb3f5a3";

/// A sandbox, and a registry with `stack`, which needs `common`, and `web`, which needs it too.
struct Registry {
    sandbox: Sandbox,
    server: DockerRegistry,
}

/// Pushes a chart as `charts/NAME`.
fn push(host: &str, name: &str, version: &str, chart: &Chart) -> String {
    Artifact::chart(chart).push(host, &format!("charts/{name}"), &version.replace('+', "_"))
}

fn stack(host: &str, version: &str) -> Chart {
    let chart = Chart::new("stack", version).lines("kubeVersion: '>=1.25.0-0'\nappVersion: v2\n");
    chart.needs("common", "^2.0.0", &format!("oci://{host}/charts"))
}

impl Registry {
    fn new() -> Self {
        let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
        let host = server.host();
        sandbox.replace(&host, "[HOST]");
        for version in ["1.0.0", "1.1.0+b7", "2.0.0-rc.1"] {
            push(&host, "stack", version, &stack(&host, version));
        }
        for version in ["1.9.0", "2.0.0", "2.1.0", "3.0.0"] {
            let chart = Chart::new("common", version).lines("type: library\n");
            push(&host, "common", version, &chart);
        }
        let web = Chart::new("web", "0.3.0").lines("description: serves\n");
        let web = web.needs("common", "2.x.x", &format!("oci://{host}/charts/"));
        push(&host, "web", "0.3.0", &web);
        Self { sandbox, server }
    }

    fn host(&self) -> String {
        self.server.host()
    }

    fn chart(&self, rest: &str) -> String {
        format!("oci://{}/charts/{rest}", self.host())
    }

    fn id(&self, rest: &str) -> String {
        format!("{}/charts/{rest}", self.host())
    }

    fn pack(&self, name: &str) -> String {
        format!("work/.mu/packs/{}/charts/{name}", self.host().replace(':', "+"))
    }
}

/// As on another machine.
fn forget(sandbox: &Sandbox) {
    for folder in ["cache", "work/.mu/packs"] {
        let _ = fs::remove_dir_all(sandbox.path(folder));
    }
}

#[test]
fn charts_in_a_registry_are_packages_as_they_are() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    sandbox.asks_for(&[&registry.chart("stack#^1"), &registry.chart("web")]);
    insta::assert_snapshot!(sandbox.mu(&["get"]).ok().shown(), @"
    $ mu get
    + [HOST]/charts/common 2.1.0
    + [HOST]/charts/stack 1.1.0+b7
    + [HOST]/charts/web 0.3.0
    installed 3 packages (3 downloaded, 0 from cache)
    [exit 0]
    ");
    // Byte for byte, without the folder in the archive, and without any file of mu's.
    let pack = registry.pack("stack");
    assert_eq!(tree(&sandbox.path(&pack)), stack(&host, "1.1.0+b7").files());
    let lock = sandbox.lock();
    let packages = lock["packages"].as_array().expect("is a list");
    let locked = packages.iter().find(|package| package["id"] == *registry.id("stack"));
    let locked = locked.expect("is locked");
    assert_eq!(locked["source"], *format!("oci+https://{host}/"));
    assert_eq!(locked["digest"], *digest_of(&sandbox.path(&pack)));
    let archive = mu_testing::hex(&stack(&host, "1.1.0+b7").archive());
    assert_eq!(locked["archive"], *format!("sha256:{archive}"));
    sandbox.mu(&["verify"]).ok();
    // From a lock: one request for each.
    forget(sandbox);
    let before = registry.server.log().len();
    sandbox.mu(&["get", "--locked"]).ok();
    let log = registry.server.log().split_off(before);
    assert_eq!(log.len(), 3, "{log:#?}");
    assert!(log.iter().all(|line| line.contains("/blobs/sha256:")), "{log:#?}");
    assert_eq!(sandbox.lock(), lock);
    // A mirror behind a setting has no lock that says what its blobs are.
    for (name, version) in [("stack", "1.1.0+b7"), ("common", "2.1.0")] {
        let chart = match name {
            "stack" => stack(&host, version),
            _ => Chart::new(name, version).lines("type: library\n"),
        };
        let tag = version.replace('+', "_");
        Artifact::chart(&chart).push(&host, &format!("mirror/{name}"), &tag);
    }
    let web = Chart::new("web", "0.3.0").lines("description: serves\n");
    let web = web.needs("common", "2.x.x", &format!("oci://{host}/charts/"));
    Artifact::chart(&web).push(&host, "mirror/web", "0.3.0");
    let settings = format!("registries: {{\"{host}/charts/\": \"oci://{host}/mirror\"}}\n");
    sandbox.write(".mu/workspace.yaml", &settings);
    forget(sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn questions_about_them_are_answered() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    sandbox.asks_for(&[&registry.chart("stack#1.0.0"), &registry.chart("web")]);
    sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(sandbox.mu(&["tree"]).ok().shown(), @"
    $ mu tree
    acme/web 0.1.0
    ├── [HOST]/charts/stack 1.0.0 [required: 1.0.0]
    │   └── [HOST]/charts/common 2.1.0 [required: ^2.0.0]
    └── [HOST]/charts/web 0.3.0 [required: any version]
        └── [HOST]/charts/common 2.1.0 [required: 2.x.x]
    [exit 0]
    ");
    let outdated = sandbox.mu(&["outdated"]).ok();
    outdated.says(&["[HOST]/charts/stack", "^2.0.0 by [HOST]/charts/stack"]);
    let versions = sandbox.mu(&["versions", &registry.chart("stack")]).ok();
    versions.says(&["1.0.0", "1.1.0+b7", "2.0.0-rc.1"]);
    let info = sandbox.mu(&["info", &registry.chart("stack")]).ok();
    info.says(&[
        "[HOST]/charts/stack 1.1.0+b7",
        "kubernetes >=1.25.0-0",
        "oci://[HOST]/charts/common#^2.0.0",
    ]);
    let old = ["resolve", &registry.chart("stack"), "--runtime", "kubernetes=1.24.9"];
    sandbox.mu(&old).fails().says(&["kubernetes >=1.25.0-0"]);
    // A conflict between two charts that both carry copies.
    sandbox.asks_for(&[&registry.chart("stack#1.0.0"), &registry.chart("common#1.9.0")]);
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["no version of [HOST]/charts/common is both 1.9.0 and ^2.0.0", "bundled"]);
}

#[test]
fn a_registry_in_the_settings_may_name_its_provider_beside_its_url() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    for place in [
        format!("\"helm+oci://{host}/charts\""),
        format!("{{provider: helm, url: \"oci://{host}/charts\"}}"),
        format!("{{provider: oci, url: \"oci://{host}/charts\"}}"),
    ] {
        let text = format!("registries:\n  charts.example/: {place}\n");
        sandbox.write(".mu/workspace.yaml", &text);
        sandbox.mu(&["resolve", "charts.example/common", "--refresh"]).ok().says(&["common 3.0.0"]);
    }
}

#[test]
fn helm_finds_a_chart_in_its_lock_by_the_tag_that_the_dependency_names() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    push(&host, "common", "v3.2.0", &Chart::new("common", "3.2.0"));
    let chart = Chart::new("shop", "0.1.0");
    let chart = chart.needs("common", "v3.2.0", &format!("oci://{host}/charts"));
    sandbox.write("Chart.yaml", &chart.manifest());
    sandbox.mu(&["vendor", "--for", "helm"]).ok().says(&["+ charts/common-v3.2.0.tgz"]);
    assert!(sandbox.read("Chart.lock").contains("version: v3.2.0\n"));
    sandbox.mu(&["vendor", "--for", "helm", "--check"]).ok();
}

#[test]
fn a_newer_version_that_cannot_be_used_is_told_with_the_reason() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    push(&host, "common", "3.1.0", &Chart::new("common", "3.0.0"));
    sandbox.asks_for(&[&registry.chart("common")]);
    sandbox.mu(&["get"]).ok().says(&["common 3.0.0"]);
    let reason = "cannot be used: its tag is `3.1.0`, and it says that it is 3.0.0";
    let outdated = sandbox.mu(&["outdated"]);
    outdated.says(&[&format!("3.1.0 {reason}")]).does_not_say(&["with the rest"]);
    sandbox.mu(&["why", &registry.chart("common")]).ok().says(&[reason]);
}

#[test]
fn an_index_may_name_charts_in_a_registry() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    fs::create_dir_all(sandbox.path("www")).expect("can be made");
    let mut charts = Charts::new(&sandbox.path("www"));
    let listed = |chart: Chart, name: &str, tag: &str| {
        chart.listed(&format!("urls:\n- oci://{host}/charts/{name}:{tag}\n"))
    };
    charts.add(&listed(stack(&host, "1.0.0"), "stack", "1.0.0"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let reference = format!("helm+http://{}/stack", nginx.host());
    fs::remove_file(sandbox.path("www/stack-1.0.0.tgz")).expect("is there");
    sandbox.asks_for(&[&reference]);
    sandbox.mu(&["get"]).ok();
    let pack = format!("work/.mu/packs/{}/stack", nginx.host().replace(':', "+"));
    assert_eq!(tree(&sandbox.path(&pack)), stack(&host, "1.0.0").files());
    assert!(sandbox.locked().contains(&registry.id("common 2.1.0")), "{:?}", sandbox.locked());
    // From a lock, the index is not requested, and the blob is known.
    forget(sandbox);
    let (before, asked) = (registry.server.log().len(), nginx.log().len());
    sandbox.mu(&["get", "--locked"]).ok();
    let log = registry.server.log().split_off(before);
    assert_eq!((log.len(), nginx.log().len()), (2, asked), "{log:#?}");
    // The content of the tag differs from the index.
    let other = Chart::new("stack", "1.2.0").lines("description: another\n");
    charts.add_with(&listed(stack(&host, "1.2.0"), "stack", "1.2.0"), &other.archive());
    push(&host, "stack", "1.2.0", &stack(&host, "1.2.0"));
    sandbox.asks_for(&[&format!("{reference}#1.2.0")]);
    let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
    assert!(error.to_string().contains("is not the one that was expected"), "{error}");
}

#[test]
fn an_index_may_name_a_chart_whose_tag_has_no_plus() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    let chart = stack(&host, "1.1.0+b7");
    for (number, tag) in [":1.1.0_b7", ":1.1.0+b7", ""].into_iter().enumerate() {
        let folder = sandbox.path(&format!("index{number}"));
        let mut charts = Charts::new(&folder);
        let urls = format!("urls: ['oci://{host}/charts/stack{tag}']\n");
        charts.add(&chart.clone().listed(&urls));
        fs::remove_file(folder.join("stack-1.1.0+b7.tgz")).expect("is there");
        sandbox.asks_for(&[&format!("helm+file://{}/stack#1.1.0+b7", folder.display())]);
        sandbox.mu(&["get"]).ok();
        let expected = mu_testing::hex(&chart.archive());
        assert!(sandbox.read("Mu.lock").contains(&format!("archive: sha256:{expected}")), "{tag}");
        forget(sandbox);
        sandbox.mu(&["get", "--locked"]).ok();
    }
}

#[test]
fn charts_that_lie_are_refused() {
    let mut sandbox = Sandbox::new();
    let server = OciServer::start(Behaviour::default());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    let refused = |chart: Artifact, code: &str, reason: &str| {
        chart.push(&host, "charts/web", "1.0.0");
        sandbox.asks_for(&[&format!("oci://{host}/charts/web")]);
        forget(&sandbox);
        let error = sandbox.mu(&["get", "--json"]).fails_with(code);
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        let installed = sandbox.path("work/.mu/packs").read_dir();
        let installed = installed.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let installed: Vec<_> =
            installed.filter(|name| !name.to_string_lossy().starts_with('.')).collect();
        assert!(installed.is_empty(), "{installed:?}");
    };
    let config = "application/vnd.cncf.helm.config.v1+json";
    let content = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    let honest = Chart::new("web", "1.0.0");
    let needy = honest.clone().needs("common", "^1", &format!("oci://{host}/charts"));
    let said = br#"{"apiVersion":"v2","name":"web","version":"1.0.0"}"#;
    // The archive differs from the data that the version was chosen by.
    let hiding = Artifact::new(config, said).layer(content, &needy.archive(), &[]);
    refused(hiding, "integrity", "`dependencies`");
    let other = Chart::new("web", "1.0.1").archive();
    refused(Artifact::new(config, said).layer(content, &other, &[]), "integrity", "1.0.1");
    // The tag differs from the version in the chart.
    let tagged = br#"{"apiVersion":"v2","name":"web","version":"2.0.0"}"#;
    let wrong = Artifact::new(config, tagged).layer(content, &honest.archive(), &[]);
    refused(wrong, "no-solution", "its tag is `1.0.0`, and it says that it is 2.0.0");
    refused(Artifact::new(config, said), "no-solution", "a chart without an archive");
    refused(
        Artifact::new(config, b"{").layer(content, &honest.archive(), &[]),
        "no-solution",
        "1.0.0",
    );
    let two = br#"{"apiVersion":"v2","name":"web","version":"1.0.0","dependencies":[{"name":"a","version":"newest","repository":"oci://x.example/y"}]}"#;
    let unread = Artifact::new(config, two).layer(content, &honest.archive(), &[]);
    refused(unread, "no-solution", "the range `newest` of the dependency `a`");
    // Blobs that differ from the manifest.
    let chart = Artifact::chart(&honest);
    chart.push(&host, "charts/web", "1.0.0");
    let digest = |part: &str| {
        let manifest = chart.manifest();
        manifest.pointer(part).and_then(|digest| digest.as_str()).expect("is there").to_owned()
    };
    for part in ["/config/digest", "/layers/0/digest"] {
        let right = match part {
            "/config/digest" => br#"{"apiVersion":"v2","name":"web","version":"1.0.0"}"#.to_vec(),
            _ => honest.archive(),
        };
        server.spoil(&digest(part), b"{}");
        sandbox.asks_for(&[&format!("oci://{host}/charts/web")]);
        forget(&sandbox);
        let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
        assert!(error.to_string().contains("expected"), "{error}");
        server.spoil(&digest(part), &right);
    }
    // Wrong sizes.
    for (part, size) in [("/config", 1), ("/config", 1_u64 << 40), ("/layers/0", 1)] {
        let mut manifest = chart.manifest();
        manifest.pointer_mut(part).expect("is there")["size"] = size.into();
        server.manifest("charts/web", "1.0.0", &manifest);
        forget(&sandbox);
        sandbox.mu(&["get"]).fails().says(&["bytes"]);
    }
    // An archive with a trick.
    let links = [("web/in".to_owned(), ('l', b"/etc".to_vec()))];
    let own = honest.files().into_iter().map(|(path, file)| (format!("web/{path}"), file));
    let archive = mu_testing::tar_gz(own.chain(links));
    refused(Artifact::new(config, said).layer(content, &archive, &[]), "integrity", "is refused");
}

#[test]
fn a_mirror_has_the_manifests_blobs_and_tags_of_the_original() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    sandbox.asks_for(&[&registry.chart("stack#^1")]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.lock();
    let other = DockerRegistry::start();
    let place = format!("oci://{}/copies", other.host());
    sandbox.mu(&["mirror", "--lock", "--to", &place]).ok().says(&["2"]);
    for (name, tag) in [("stack", "1.1.0_b7"), ("common", "2.1.0")] {
        let here = pull(&host, &format!("charts/{name}/manifests/{tag}")).expect("is there");
        let there = pull(&other.host(), &format!("copies/charts/{name}/manifests/{tag}"));
        assert_eq!(there.as_ref(), Some(&here), "{name}");
        let manifest: serde_json::Value = serde_json::from_slice(&here).expect("is JSON");
        for part in ["/config/digest", "/layers/0/digest"] {
            let digest = manifest.pointer(part).and_then(|one| one.as_str()).expect("is there");
            let here = pull(&host, &format!("charts/{name}/blobs/{digest}"));
            let there = pull(&other.host(), &format!("copies/charts/{name}/blobs/{digest}"));
            assert!(here.is_some() && here == there, "{name} {part}");
        }
    }
    let again = sandbox.mu(&["mirror", "--lock", "--to", &place, "--json"]).ok().json();
    assert_eq!(
        (&again["copied"], &again["present"]),
        (&serde_json::json!([]), &serde_json::json!(2))
    );
    // The lock holds with the mirror, and a new selection finds its index.
    let settings = format!("registries: {{\"{host}/\": \"{place}\"}}\n");
    sandbox.write(".mu/workspace.yaml", &settings);
    forget(sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.lock(), lock);
    sandbox.write("Mu.lock", "version: 1\npackages: []\n");
    forget(sandbox);
    let before = other.log().len();
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), [registry.id("common 2.1.0"), registry.id("stack 1.1.0+b7")]);
    // Tags and index of each, then manifest, config and archive of what was chosen.
    let log = other.log().split_off(before);
    assert_eq!(log.len(), 10, "{log:#?}");
    // Something else under the same tag is not overwritten.
    push(
        &host,
        "common",
        "2.1.0",
        &Chart::new("common", "2.1.0").lines("home: https://a.example\n"),
    );
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.write("Mu.lock", "version: 1\npackages: []\n");
    forget(sandbox);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["mirror", "--lock", "--to", &place, "--json"]).fails_with("conflict");
    assert!(run.to_string().contains("common 2.1.0"), "{run}");
}

/// Pushes something that belongs to `subject`, with this text, by `tag`; returns the digest of its manifest.
fn attach(host: &str, repository: &str, tag: &str, subject: Option<&Value>, text: &str) -> String {
    let blob = |text: &str| {
        let digest = mu_testing::push_blob(host, repository, text.as_bytes());
        json!({ "mediaType": "application/octet-stream", "digest": digest, "size": text.len() })
    };
    let mut manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "artifactType": "application/vnd.example.statement",
        "config": blob("{}"),
        "layers": [blob(text)],
    });
    if let Some(subject) = subject {
        manifest["subject"] = subject.clone();
    }
    mu_testing::push_manifest(host, repository, tag, &manifest)
}

#[test]
fn a_mirror_has_what_belongs_to_an_artifact() {
    let registry = Registry::new();
    let (sandbox, host) = (&registry.sandbox, registry.host());
    let signed =
        push(&host, "common", "2.1.0", &Chart::new("common", "2.1.0").lines("type: library\n"));
    let tag = signed.replace(':', "-");
    for end in ["sig", "att", "sbom"] {
        attach(&host, "charts/common", &format!("{tag}.{end}"), None, end);
    }
    let manifest = pull(&host, "charts/common/manifests/2.1.0").expect("is there");
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let subject = json!({ "mediaType": kind, "digest": signed, "size": manifest.len() });
    // As clients list referrers where the registry does not.
    let bundle = attach(&host, "charts/common", "bundle", Some(&subject), "a bundle");
    let size = pull(&host, "charts/common/manifests/bundle").expect("is there").len();
    let entry = json!({ "mediaType": kind, "digest": bundle, "size": size, "artifactType": "application/vnd.example.statement" });
    let list = json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry] });
    mu_testing::push_manifest(&host, "charts/common", &tag, &list);
    sandbox.asks_for(&[&registry.chart("common#2.1.0")]);
    sandbox.mu(&["get"]).ok();

    let (other, lists) = (
        DockerRegistry::start(),
        OciServer::start(Behaviour { referrers: true, ..Behaviour::default() }),
    );
    for there in [other.host(), lists.host()] {
        sandbox.mu(&["mirror", "--lock", "--to", &format!("oci://{there}/copies")]).ok();
        let repository = "copies/charts/common";
        for reference in ["sig", "att", "sbom"]
            .map(|end| format!("{tag}.{end}"))
            .into_iter()
            .chain([bundle.clone()])
        {
            let copy =
                pull(&there, &format!("{repository}/manifests/{reference}")).expect("is copied");
            assert_eq!(
                Some(&copy),
                pull(&host, &format!("charts/common/manifests/{reference}")).as_ref()
            );
            let copy: Value = serde_json::from_slice(&copy).expect("is JSON");
            let blob = copy["layers"][0]["digest"].as_str().expect("is there");
            assert!(pull(&there, &format!("{repository}/blobs/{blob}")).is_some());
        }
    }
    let listed = pull(&other.host(), &format!("copies/charts/common/manifests/{tag}"));
    let listed: Value = serde_json::from_slice(&listed.expect("is listed")).expect("is JSON");
    assert_eq!(listed["manifests"][0]["digest"], *bundle);
    let listed = pull(&lists.host(), &format!("copies/charts/common/referrers/{signed}"));
    assert!(String::from_utf8_lossy(&listed.expect("is listed")).contains(&bundle));
}

#[test]
fn a_mirror_has_the_provenance_of_a_chart() {
    let sandbox = Sandbox::new();
    let mut charts = Charts::new(&sandbox.path("www"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    for name in ["signed", "unsigned"] {
        charts.add(&Chart::new(name, "1.0.0").lines("type: application\n"));
    }
    let text = "-----BEGIN PGP SIGNED MESSAGE-----\nnot looked at\n";
    fs::write(sandbox.path("www/signed-1.0.0.tgz.prov"), text).expect("can be written");
    let reference = |name: &str| format!("helm+http://{}/{name}", nginx.host());
    sandbox.asks_for(&[&reference("signed"), &reference("unsigned")]);
    sandbox.mu(&["get"]).ok();
    let other = DockerRegistry::start();
    sandbox.mu(&["mirror", "--lock", "--to", &format!("oci://{}/copies", other.host())]).ok();
    for (name, layers) in [("signed", 2), ("unsigned", 1)] {
        let repository = format!("copies/{name}");
        let manifest = pull(&other.host(), &format!("{repository}/manifests/1.0.0"));
        let manifest: Value =
            serde_json::from_slice(&manifest.expect("is there")).expect("is JSON");
        let all = manifest["layers"].as_array().expect("is a list");
        assert_eq!(all.len(), layers, "{manifest}");
        if let Some(layer) = all.get(1) {
            assert_eq!(layer["mediaType"], "application/vnd.cncf.helm.chart.provenance.v1.prov");
            let digest = layer["digest"].as_str().expect("has a digest");
            let content = pull(&other.host(), &format!("{repository}/blobs/{digest}"));
            assert_eq!(content.as_deref(), Some(text.as_bytes()));
        }
        // It is a chart for everybody.
        sandbox
            .mu(&["info", &format!("oci://{}/{repository}", other.host())])
            .ok()
            .says(&["1.0.0"]);
    }
}

#[test]
fn charts_of_a_repository_are_mirrored_as_helm_pushes_them() {
    let sandbox = Sandbox::new();
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let repository = format!("http://{}/stable", nginx.host());
    let common = Chart::new("common", "2.1.0+b7").lines("type: library\nappVersion: 1.10\n");
    // As `jetstack` and others number their charts.
    let web = Chart::new("web", "v0.3.0").lines("description: serves\nhome: https://a.example\n");
    let web = web.needs("common", "2.x.x", &repository);
    charts.add(&common);
    charts.add(&web);
    sandbox.asks_for(&[&format!("helm+{repository}/web")]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.lock();
    let other = DockerRegistry::start();
    let place = format!("oci://{}/copies", other.host());
    sandbox.mu(&["mirror", "--lock", "--to", &place]).ok().says(&["2"]);
    for (chart, name, tag) in [(&common, "common", "2.1.0_b7"), (&web, "web", "v0.3.0")] {
        let repository = format!("copies/stable/{name}");
        let manifest = pull(&other.host(), &format!("{repository}/manifests/{tag}"));
        let manifest: Value =
            serde_json::from_slice(&manifest.expect("is there")).expect("is JSON");
        let content = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().expect("has a digest");
            pull(&other.host(), &format!("{repository}/blobs/{digest}")).expect("is there")
        };
        assert_eq!(manifest["config"]["mediaType"], "application/vnd.cncf.helm.config.v1+json");
        let config: Value = serde_json::from_slice(&content(&manifest["config"])).expect("is JSON");
        let version = tag.replace('_', "+");
        assert_eq!([&config["name"], &config["version"]], [name, &version]);
        assert!(config["appVersion"].is_null() || config["appVersion"] == "1.1", "{config}");
        let [layer] = manifest["layers"].as_array().expect("is a list").as_slice() else {
            panic!("{manifest}")
        };
        assert_eq!(layer["mediaType"], "application/vnd.cncf.helm.chart.content.v1.tar+gzip");
        assert_eq!(content(layer), chart.archive());
        let said = &manifest["annotations"];
        assert_eq!(said["org.opencontainers.image.version"], *version);
        assert!(manifest["artifactType"].is_null() && said["com.mu.release"].is_null());
    }
    let again = sandbox.mu(&["mirror", "--lock", "--to", &place, "--json"]).ok().json();
    assert_eq!((&again["copied"], &again["present"]), (&json!([]), &json!(2)));
    // The lock holds with the mirror.
    let settings = format!("registries: {{\"{}/\": \"{place}\"}}\n", nginx.host());
    sandbox.write(".mu/workspace.yaml", &settings);
    forget(&sandbox);
    drop(nginx);
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.lock(), lock);
    // And the copy is a chart for everybody.
    let named = Sandbox::new();
    named.asks_for(&[&format!("{place}/stable/web#^0")]);
    named.write(".mu/workspace.yaml", &settings);
    named.mu(&["get"]).ok();
    let digests = |lock: &Value| {
        let packages = lock["packages"].as_array().expect("is a list").iter();
        let mut all: Vec<_> = packages
            .map(|package| (package["digest"].to_string(), package["archive"].to_string()))
            .collect();
        all.sort();
        all
    };
    assert_eq!(digests(&named.lock()), digests(&lock));
}

#[test]
fn a_hub_has_charts_of_a_registry_by_their_own_names() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    sandbox.asks_for(&[&registry.chart("web")]);
    sandbox.mu(&["get"]).ok();
    Hub::new(&sandbox.path("mirror"));
    let run = sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).ok();
    run.says(&["charts/web 0.3.0", "charts/common 2.1.0"]);
    sandbox.mu(&["hub", "check", "../mirror"]).ok();
    sandbox
        .write(".mu/workspace.yaml", &format!("registries: {{{}/: ../mirror}}\n", registry.host()));
    forget(sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn a_format_before_oci_says_nothing_more() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let reference = format!("helm+{}", registry.chart("web"));
    sandbox.mu(&["resolve", &reference]).ok().says(&["charts/web 0.3.0"]);
    let place =
        format!("registries: {{charts.example/: \"helm+oci://{}/charts\"}}\n", registry.host());
    sandbox.write(".mu/workspace.yaml", &place);
    sandbox.mu(&["resolve", "charts.example/web"]).ok().says(&["charts.example/web 0.3.0"]);
}

#[test]
fn a_manifest_can_require_only_packages_of_its_kind() {
    let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    push(&host, "web", "1.0.0", &Chart::new("web", "1.0.0"));
    let module = "[package]\nname = \"k8s\"\nversion = \"1.0.0\"\n";
    Artifact::module("k8s", "1.0.0", &[("kcl.mod", module)], true).push(&host, "kcl/k8s", "1.0.0");
    let kind = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\n";
    let provider = format!("{kind}metadata: {{name: provider-aws}}\n");
    Artifact::package(&provider).push(&host, "acme/provider-aws", "v1.0.0");
    sandbox.write("lib/Mu.yaml", "name: acme/lib\nversion: 1.0.0\n");
    sandbox.mu(&["publish", "lib", "--to", &format!("oci://{host}/mu")]).ok();
    fs::remove_dir_all(sandbox.path("work")).expect("is there");
    let all = ["charts/web", "kcl/k8s", "acme/provider-aws", "mu/acme/lib"];
    let manifests = [
        ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n".to_owned(), all[0]),
        ("kcl.mod", module.replace("k8s", "shop"), all[1]),
        ("crossplane.yaml", provider.replace("provider-aws", "shop"), all[2]),
    ];
    for (name, text, right) in manifests {
        sandbox.write(name, &text);
        for other in all.into_iter().filter(|other| *other != right) {
            for version in ["", "#1.0.0"] {
                let error =
                    sandbox.mu(&["add", &format!("oci://{host}/{other}{version}"), "--json"]);
                let error = error.fails_with("manifest").to_string();
                assert!(error.contains("can require only"), "{error}");
                assert_eq!(
                    (sandbox.read(name), sandbox.path("work/Mu.lock").exists()),
                    (text.clone(), false)
                );
            }
            // A locked package is no better.
            sandbox.mu(&["get", &format!("oci://{host}/{other}")]).ok();
            sandbox
                .mu(&["add", &format!("oci://{host}/{other}")])
                .fails()
                .says(&["can require only"]);
            assert_eq!(sandbox.read(name), text);
            sandbox.mu(&["remove", &format!("oci://{host}/{other}")]).ok();
            let _ = fs::remove_file(sandbox.path("work/Mu.lock"));
        }
        sandbox.mu(&["get", &format!("oci://{host}/{right}")]).ok();
        sandbox.mu(&["add", &format!("oci://{host}/{right}")]).ok();
        if name == "Chart.yaml" {
            sandbox.write(name, &text);
            let run = sandbox.mu(&["add", &format!("oci://{host}/kcl/k8s")]).fails();
            run.says(&[
                "Chart.yaml` can require only charts, and `oci://[HOST]/kcl/k8s` is a KCL module",
            ]);
            // Somebody wrote it there by hand.
            sandbox.write(name, &format!("{text}dependencies:\n- {{name: k8s, version: ^1, repository: 'oci://{host}/kcl'}}\n"));
            let run = sandbox.mu(&["vendor", "--for", "helm"]).fails();
            run.says(&[
                "is not a chart called `k8s`",
                "Helm installs nothing but charts: remove `k8s` from the dependencies",
            ])
            .does_not_say(&["override"]);
        }
        fs::remove_dir_all(sandbox.path("work")).expect("is there");
    }
}

#[test]
fn an_indirect_chart_of_a_repository_stays_there_beside_one_of_a_registry() {
    let registry = Registry::new();
    let (mut sandbox, host) = (registry.sandbox, registry.server.host());
    let mut charts = Charts::new(&sandbox.path("www"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    sandbox.replace(&nginx.host(), "[CHARTS]");
    let url = nginx.url("");
    charts.add(&Chart::new("db", "1.0.0"));
    charts.add(&Chart::new("db", "1.4.0").needs("log", "^1.0.0", &url));
    charts.add(&Chart::new("log", "1.0.0"));
    charts.add(&Chart::new("log", "1.2.0"));
    sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
    sandbox.write("Chart.yaml", "apiVersion: v2\nname: app\nversion: 0.1.0\n");
    sandbox.mu(&["add", &format!("oci://{host}/charts/common#^2.0.0")]).ok();
    sandbox.mu(&["add", &format!("helm+http://{}/db#^1.0.0", nginx.host())]).ok();
    sandbox.mu(&["update"]).ok().says(&["log 1.2.0"]);
    let extra = format!("helm+http://{}/log#>=1.2.0 # indirect", nginx.host());
    assert_eq!(sandbox.lock()["extra"], json!([extra]));
    forget(&sandbox);
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["verify"]).ok();
}

/// Of each request, what it is about: the rest is names and digests.
fn kinds(requests: &[String]) -> Vec<String> {
    let kind = |line: &String| match line.split_once("charts/").map_or("", |(_, path)| path) {
        path if path.contains("/tags/list") => "tags",
        path if path.contains("/manifests/sha256-") => "index",
        path if path.contains("/manifests/") => "manifest",
        path if path.contains("/blobs/") => "blob",
        path if path.contains("/referrers/") => "referrers",
        _ => "other",
    };
    let mut kinds: Vec<String> = requests.iter().map(|line| kind(line).to_owned()).collect();
    kinds.sort_unstable();
    kinds
}

#[test]
fn ten_thousand_tags_are_read_page_by_page_and_only_the_chosen_version_is_looked_at() {
    let registry = OciServer::start(Behaviour { page: 1_000, ..Behaviour::default() });
    let host = registry.host();
    push(&host, "many", "1.0.0", &Chart::new("many", "1.0.0"));
    let manifest = registry.tagged("charts/many", "1.0.0").expect("was pushed");
    for number in 0..9_999 {
        let tag = format!("0.{}.{}", number / 100, number % 100);
        registry.manifest("charts/many", &tag, &manifest);
    }
    let sandbox = Sandbox::with_dependencies(&[&format!("oci://{host}/charts/many")]);
    let asked = |arguments: &[&str]| {
        let before = registry.requests().len();
        sandbox.mu(arguments).ok();
        kinds(&registry.requests()[before..])
    };
    let pages = |more: &[&str]| {
        let mut all: Vec<String> = more.iter().map(|kind| (*kind).to_owned()).collect();
        all.extend(std::iter::repeat_n("tags".to_owned(), 10));
        all
    };
    // The chart's configuration, and its archive.
    assert_eq!(asked(&["get"]), pages(&["blob", "blob", "index", "manifest", "referrers"]));
    assert_eq!(sandbox.locked(), [format!("{host}/charts/many 1.0.0")]);
    // The tags are kept with the answer. When they are asked for again, nobody asks for an index that is not among them.
    assert_eq!(asked(&["resolve"]), [""; 0]);
    assert_eq!(asked(&["update"]), pages(&["manifest"]));
}

#[test]
fn charts_that_had_no_index_are_asked_for_none_until_their_tags_have_one() {
    let registry = OciServer::start(Behaviour::default());
    let host = registry.host();
    let names: Vec<String> = (0..30).map(|number| format!("c{number}")).collect();
    let references: Vec<String> =
        names.iter().map(|name| format!("oci://{host}/charts/{name}")).collect();
    for name in &names {
        push(&host, name, "1.0.0", &Chart::new(name, "1.0.0"));
    }
    let sandbox =
        Sandbox::with_dependencies(&references.iter().map(String::as_str).collect::<Vec<_>>());
    let asked = |arguments: &[&str]| {
        let before = registry.requests().len();
        sandbox.mu(arguments).ok();
        let kinds = kinds(&registry.requests()[before..]);
        ["tags", "index", "manifest", "blob"]
            .map(|kind| kinds.iter().filter(|known| *known == kind).count())
    };
    assert_eq!(asked(&["get"]), [30, 30, 30, 60]);
    assert_eq!(asked(&["update"]), [30, 0, 30, 0]);
    // An index that somebody has put there since counts.
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []});
    registry.manifest("charts/c7", INDEX_TAG, &index);
    assert_eq!(asked(&["update"]), [30, 1, 30, 0]);
}

#[test]
fn a_registry_that_limits_requests_is_asked_no_faster_than_it_allows() {
    let registry = OciServer::start(Behaviour::default());
    let host = registry.host();
    let names: Vec<String> = (0..60).map(|number| format!("c{number}")).collect();
    for name in &names {
        push(&host, name, "1.0.0", &Chart::new(name, "1.0.0"));
    }
    registry.behave(|behaviour| behaviour.a_second = Some(100.0));
    let references: Vec<String> =
        names.iter().map(|name| format!("oci://{host}/charts/{name}")).collect();
    let sandbox =
        Sandbox::with_dependencies(&references.iter().map(String::as_str).collect::<Vec<_>>());
    let before = registry.asked().len();
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked().len(), names.len());
    let asked = registry.asked().split_off(before);
    let (refused, answered): (Vec<_>, Vec<_>) = asked.iter().partition(|(_, refused)| *refused);
    // Without a limit there are five requests a chart, and some to find out what the registry keeps. Those that may be for nothing are not
    // sent to a registry that has refused one.
    assert!((240..=360).contains(&answered.len()), "{} were answered", answered.len());
    // At the beginning, 50 come at once, and more until the first refusal is read. Afterwards they are as far apart as the registry wants it.
    let (first, _) = refused.first().expect("more come at once than it allows");
    let pause = asked.iter().filter(|(at, _)| at > first && *at - *first < Duration::from_secs(1));
    assert!(pause.clone().count() <= 120, "{} came although a pause was asked for", pause.count());
    println!("{} were answered, {} refused", answered.len(), refused.len());
    assert!(refused.len() <= 120, "{} of {} were refused", refused.len(), asked.len());
}
