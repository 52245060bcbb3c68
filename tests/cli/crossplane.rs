//! Packages of Crossplane: in OCI registries, and a `crossplane.yaml` as a workspace.

use std::fs;

use mu_testing::{Artifact, DockerRegistry, push_blob, push_manifest, tree};
use serde_json::json;

use super::support::Sandbox;

/// The head of a `package.yaml` or `crossplane.yaml`; `spec` is indented by two.
fn meta(kind: &str, name: &str, spec: &str) -> String {
    let spec = if spec.is_empty() { String::new() } else { format!("spec:\n{spec}") };
    format!(
        "apiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{spec}"
    )
}

/// A custom resource that a package brings.
fn resource(group: &str, kind: &str) -> String {
    format!(
        "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  group: {group}\n  names: {{kind: {kind}}}\n  versions: [{{name: v1, served: true}}]\n"
    )
}

/// A sandbox without a workspace, and a registry with a configuration and two providers.
fn registry() -> (Sandbox, DockerRegistry) {
    let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    for version in ["v1.0.0", "v1.2.0", "v2.0.0-rc.1"] {
        let text = meta("Provider", "provider-aws", "  crossplane:\n    version: '>=v1.14.0'\n");
        let text = format!("{text}{}", resource("ec2.aws.example", "Instance"));
        Artifact::package(&text).push(&host, "acme/provider-aws", version);
    }
    Artifact::package(&meta("Function", "function-kcl", "")).push(
        &host,
        "acme/function-kcl",
        "v0.9.0",
    );
    let rival =
        format!("{}{}", meta("Provider", "rival", ""), resource("ec2.aws.example", "Instance"));
    Artifact::package(&rival).push(&host, "acme/provider-rival", "v1.0.0");
    // The one for this platform is in an index, as `docker buildx` makes it; names without a host are in the same registry.
    let needs = "  dependsOn:\n    - provider: acme/provider-aws\n      version: '>=v1.0.0'\n    - function: acme/function-kcl\n      version: v0.9.0\n";
    let network = Artifact::package(&meta("Configuration", "network", needs));
    network.push(&host, "acme/network", "build");
    let other = Artifact::package(&meta("Configuration", "wrong", ""));
    other.push(&host, "acme/network", "build-arm");
    let entry = |artifact: &Artifact, architecture: &str| {
        let bytes = artifact.manifest().to_string();
        json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": format!("sha256:{}", mu_testing::hex(bytes.as_bytes())), "size": bytes.len(),
            "platform": {"os": "linux", "architecture": architecture},
        })
    };
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry(&other, "arm64"), entry(&network, "amd64")],
    });
    push_manifest(&host, "acme/network", "v0.3.0", &index);
    push_blob(&host, "acme/network", b"unused");
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    (sandbox, server)
}

#[test]
fn packages_in_a_registry_are_resolved_and_installed() {
    let (sandbox, server) = registry();
    let host = server.host();
    let spec = format!(
        "  dependsOn:\n    # What teams stand on.\n    - configuration: {host}/acme/network\n      version: \">=v0.1.0\"\n"
    );
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", &spec));
    insta::assert_snapshot!(sandbox.mu(&["get"]).ok().shown(), @"
    $ mu get
    + [HOST]/acme/function-kcl 0.9.0
    + [HOST]/acme/network 0.3.0
    + [HOST]/acme/provider-aws 1.2.0
    installed 3 packages (3 downloaded, 0 from cache)
    [exit 0]
    ");
    sandbox.mu(&["tree"]).ok().says(&[
        "[HOST]/acme/network 0.3.0 [required: >=v0.1.0]",
        "[HOST]/acme/function-kcl 0.9.0 [required: v0.9.0]",
    ]);
    // Its tag is `v1.2.0`, which a lock does not say: the digest names it.
    let bill = sandbox.mu(&["sbom"]).ok();
    bill.says(&["pkg:oci/provider-aws@sha256%3A"]).does_not_say(&["tag="]);
    // Nothing inside says the version, so that is what mu adds; the digest is of the rest.
    let pack = format!("work/.mu/packs/{}/acme/provider-aws", host.replace(':', "+"));
    let files = tree(&sandbox.path(&pack));
    assert_eq!(files.keys().collect::<Vec<_>>(), ["Mu.yaml", "package.yaml"]);
    let own = String::from_utf8(files["Mu.yaml"].1.clone()).expect("is text");
    assert!(own.contains("version: \"1.2.0\"") && own.contains("x-generated: true"), "{own}");
    let lock = sandbox.lock();
    let locked = lock["packages"].as_array().expect("is a list").iter();
    let locked = locked.last().expect("is there").clone();
    fs::create_dir_all(sandbox.path("bare")).expect("can be made");
    fs::write(sandbox.path("bare/package.yaml"), &files["package.yaml"].1).expect("can be written");
    assert_eq!(locked["digest"], *mu_testing::digest_of(&sandbox.path("bare")));
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["info", &format!("oci://{host}/acme/provider-aws")]).ok().says(&[
        "crossplane",
        "ec2.aws.example/v1/Instance",
        "crossplane >=v1.14.0",
    ]);
    // From a lock, one request for each, and nothing of the runtime.
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    let before = server.log().len();
    sandbox.mu(&["get", "--locked"]).ok();
    let log = server.log().split_off(before);
    assert_eq!(log.len(), 3, "{log:#?}");
    assert!(log.iter().all(|line| line.contains("/blobs/sha256:")), "{log:#?}");
    // Two packages that bring the same kind cannot be in one control plane.
    let rival =
        format!("{spec}    - provider: {host}/acme/provider-rival\n      version: v1.0.0\n");
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", &rival));
    sandbox.mu(&["get"]).fails().says(&["ec2.aws.example/v1/Instance"]);
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", &spec));
    let old = ["resolve", "--runtime", "crossplane=1.13.0"];
    sandbox.mu(&old).fails().says(&["crossplane >=v1.14.0"]);
}

#[test]
fn a_name_without_a_registry_is_looked_up_nowhere() {
    let sandbox = Sandbox::new();
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    fs::remove_file(sandbox.path("home/.mu/config.yaml")).expect("is ours");
    let needs = "  dependsOn:\n    - provider: acme/provider-aws\n      version: '>=v1.0.0'\n";
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", needs));
    sandbox.mu(&["get"]).fails().says(&[
        "requires `acme/provider-aws` and does not say in which registry it is",
        "Crossplane has no registry of its own since 2.0",
        "write `xpkg.upbound.io/acme/provider-aws`, or another registry",
    ]);
    // The settings can say it, and then it is looked up there.
    let (sandbox, server) = registry();
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", needs));
    let host = server.host();
    sandbox.write(
        ".mu/workspace.yaml",
        &format!("base: {host}/\nregistries: {{{host}/: oci://{host}}}\n"),
    );
    sandbox.mu(&["get"]).ok().says(&["acme/provider-aws 1.2.0"]);
    // Crossplane takes no dependency without a version, although one of a fetched package may be read so.
    let needs = format!("  dependsOn:\n    - provider: {host}/acme/provider-aws\n");
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", &needs));
    sandbox.mu(&["get"]).fails().says(&[
        "/acme/provider-aws` has no `version`, and Crossplane installs none without: write `version: \">=v0.0.0\"` beside it for any",
        "crossplane.yaml:7",
    ]);
}

#[test]
fn its_own_tool_publishes_it_whatever_it_lacks() {
    let sandbox = Sandbox::new();
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", ""));
    for command in [&["pack"][..], &["publish", "--to", "../hub"]] {
        let run = sandbox.mu(command).fails().does_not_say(&["version"]);
        run.says(&["`crossplane`, which mu does not pack", "`crossplane xpkg push` publishes it"]);
    }
}

#[test]
fn commands_edit_a_package() {
    let (sandbox, server) = registry();
    let host = server.host();
    let head =
        meta("Configuration", "platform", "  crossplane:\n    version: \">=v1.14.0\" # ours\n");
    sandbox.write("crossplane.yaml", &head);
    sandbox
        .mu(&["add", &format!("oci://{host}/acme/provider-aws#~1.0.0")])
        .ok()
        .says(&["(crossplane.yaml)"]);
    let with = |version: &str, more: &str| {
        let list = format!(
            "spec:\n  dependsOn:\n    - provider: {host}/acme/provider-aws\n      version: \"{version}\"\n{more}"
        );
        head.replace("spec:\n", &list)
    };
    assert_eq!(sandbox.read("crossplane.yaml"), with("~1.0.0", ""));
    sandbox.mu(&["upgrade"]).ok();
    assert_eq!(sandbox.read("crossplane.yaml"), with("~1.2.0", ""));
    sandbox.mu(&["add", &format!("oci://{host}/acme/function-kcl")]).ok();
    let more = format!("    - function: {host}/acme/function-kcl\n      version: \"^0.9.0\"\n");
    assert_eq!(sandbox.read("crossplane.yaml"), with("~1.2.0", &more));
    // A comment keeps what was there.
    let provider = format!("{host}/acme/provider-aws");
    sandbox.mu(&["pin", &provider]).ok().does_not_say(&["cannot restore"]);
    let pinned = with("1.2.0", &more).replace("\"1.2.0\"", "\"1.2.0\" # pinned from ~1.2.0");
    assert_eq!(sandbox.read("crossplane.yaml"), pinned);
    sandbox.mu(&["unpin"]).ok();
    assert_eq!(sandbox.read("crossplane.yaml"), with("~1.2.0", &more));
    // In brackets, there is no place for it, so the range is said once.
    let brackets =
        format!("spec: {{dependsOn: [{{provider: {provider}, version: \"~1.2.0\"}}]}}\n");
    let text = meta("Configuration", "platform", "");
    sandbox.write("crossplane.yaml", &format!("{text}{brackets}"));
    sandbox.mu(&["pin"]).ok().says(&[
        "so `mu unpin` cannot restore it: `oci://[HOST]/acme/provider-aws ~1.2.0` in crossplane.yaml",
    ]);
    sandbox.mu(&["unpin"]).ok().says(&[
        "kept these pins",
        "`mu unpin oci://[HOST]/acme/provider-aws` turns them into ranges",
    ]);
    sandbox.write("crossplane.yaml", &with("~1.2.0", &more));
    sandbox.mu(&["remove", &format!("{host}/acme/function-kcl")]).ok();
    sandbox.mu(&["remove", &format!("{host}/acme/provider-aws")]).ok();
    assert_eq!(sandbox.read("crossplane.yaml"), head);
    for arguments in [&["version", "1.0.0"][..], &["version", "minor"], &["version"]] {
        let run = sandbox.mu(arguments).fails();
        run.says(&["this manifest has no version"]).does_not_say(&["set one"]);
    }
}

#[test]
fn files_of_other_tools_make_no_package() {
    let (sandbox, _server) = registry();
    sandbox.write("package.yaml", "name: of-hpack\nversion: 0.1.0\n");
    sandbox.write("deep/crossplane.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\n");
    sandbox.mu_in("work/deep", &["status"]).ok().does_not_say(&["of-hpack", "not a package"]);
}

#[test]
fn packages_become_resources_at_the_versions_of_the_lock() {
    let (sandbox, server) = registry();
    let host = server.host();
    let needs = |version: &str| {
        let spec = format!(
            "  dependsOn:\n    - configuration: {host}/acme/network\n      version: \"{version}\"\n"
        );
        meta("Configuration", "platform", &spec)
    };
    sandbox.write("crossplane.yaml", &needs(">=v0.1.0"));
    sandbox.mu(&["vendor", "--for", "crossplane", "--dry-run"]).ok().says(&["nothing was written"]);
    assert!(!sandbox.has("work/crossplane"));
    insta::assert_snapshot!(sandbox.mu(&["vendor", "--for", "crossplane"]).ok().shown(), @"
    $ mu vendor --for crossplane
    + [HOST]/acme/function-kcl 0.9.0
    + [HOST]/acme/network 0.3.0
    + [HOST]/acme/provider-aws 1.2.0
    + crossplane/acme-function-kcl.yaml ([HOST]/acme/function-kcl:v0.9.0)
    + crossplane/acme-network.yaml ([HOST]/acme/network:v0.3.0)
    + crossplane/acme-provider-aws.yaml ([HOST]/acme/provider-aws:v1.2.0)
    installed 3 packages (3 downloaded, 0 from cache)
    3 packages in crossplane; next: `kubectl apply -f crossplane/`
    [exit 0]
    ");
    let expected = |kind: &str, name: &str, tagged: &str| {
        format!(
            "# Written by `mu vendor --for crossplane`; do not edit.\napiVersion: pkg.crossplane.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n  package: \"{host}/{tagged}\"\n  # Mu.lock has the dependencies, too.\n  skipDependencyResolution: true\n"
        )
    };
    let provider = expected("Provider", "acme-provider-aws", "acme/provider-aws:v1.2.0");
    assert_eq!(sandbox.read("crossplane/acme-provider-aws.yaml"), provider);
    let network = expected("Configuration", "acme-network", "acme/network:v0.3.0");
    assert_eq!(sandbox.read("crossplane/acme-network.yaml"), network);
    // From a lock alone it is the same, and again there is nothing to do.
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is there");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox
        .mu(&["vendor", "--for", "crossplane"])
        .ok()
        .says(&["3 packages in crossplane: up to date"]);
    // Functions were in beta before Crossplane 1.17.
    sandbox.write(".mu/workspace.yaml", "runtime: {crossplane: 1.16.0}\n");
    sandbox
        .mu(&["vendor", "--for", "crossplane"])
        .ok()
        .says(&["+ crossplane/acme-function-kcl.yaml"]);
    assert!(
        sandbox.read("crossplane/acme-function-kcl.yaml").contains("pkg.crossplane.io/v1beta1")
    );
    // It removes files of packages that are no longer locked, but no file of somebody else.
    sandbox.write("crossplane/own.yaml", "kind: Namespace\n");
    let spec =
        format!("  dependsOn:\n    - provider: {host}/acme/provider-aws\n      version: v1.0.0\n");
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", &spec));
    let json = sandbox.mu(&["vendor", "--for", "crossplane", "--json"]).ok().json();
    let removed = ["crossplane/acme-function-kcl.yaml", "crossplane/acme-network.yaml"];
    assert_eq!(json["removed"], json!(removed));
    assert_eq!(json["resources"][0]["package"], "[HOST]/acme/provider-aws:v1.0.0");
    assert_eq!(json["resources"][0]["kind"], "Provider");
    assert!(sandbox.has("work/crossplane/own.yaml"));
    sandbox.write("crossplane/acme-provider-aws.yaml", "kind: Namespace\n");
    sandbox.mu(&["vendor", "--for", "crossplane"]).fails().says(&["was not written by mu"]);
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", ""));
    sandbox.mu(&["vendor", "--for", "crossplane"]).fails().says(&["has no package of Crossplane"]);
}

/// The media type of the config of an image.
const IMAGE: &str = "application/vnd.oci.image.config.v1+json";

/// The media type of a layer.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

#[test]
fn images_without_annotations_are_packages_by_their_labels_or_their_only_layer() {
    let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    let layer = |name: &str, text: &str| {
        mu_testing::tar_gz([(name.to_owned(), ('f', text.as_bytes().to_vec()))])
    };
    let package = layer("package.yaml", &meta("Function", "labelled", ""));
    let runtime = layer("bin/function", "elf");
    let label = format!("io.crossplane.xpkg:sha256:{}", mu_testing::hex(&package));
    let config = json!({"config": {"Labels": {label: "base"}}}).to_string();
    let labelled = Artifact::new(IMAGE, config.as_bytes());
    let labelled = labelled.layer(LAYER, &runtime, &[]).layer(LAYER, &package, &[]);
    labelled.push(&host, "acme/labelled", "v1.0.0");
    let squashed = layer("package.yaml", &meta("Function", "squashed", ""));
    Artifact::new(IMAGE, b"{}").layer(LAYER, &squashed, &[]).push(&host, "acme/squashed", "v1.0.0");
    // Images of something else, one of which has such a file.
    Artifact::new(IMAGE, b"{}").layer(LAYER, &runtime, &[]).push(&host, "acme/other", "v1.0.0");
    let named = layer("package.yaml", "a: 1\n");
    Artifact::new(IMAGE, b"{}").layer(LAYER, &named, &[]).push(&host, "acme/named", "v1.0.0");
    for name in ["labelled", "squashed"] {
        let before = server.log().len();
        sandbox.mu(&["get", &format!("oci://{host}/acme/{name}#^1")]).ok();
        let layers = |line: &&String| line.contains("/blobs/") && line.contains("GET");
        let asked = server.log().split_off(before).iter().filter(layers).count();
        // The config, and the layer once, to choose and to install.
        assert_eq!(asked, 2, "{name}");
        let pack = format!(".mu/packs/{}/acme/{name}/package.yaml", host.replace(':', "+"));
        assert!(sandbox.read(&pack).contains(name), "{name}");
    }
    for name in ["other", "named"] {
        let run = sandbox.mu(&["get", &format!("oci://{host}/acme/{name}#^1")]).fails();
        run.says(&[IMAGE]);
    }
}

#[test]
fn where_nothing_marks_a_layer_the_last_one_with_a_package_counts() {
    let (mut sandbox, server) = (Sandbox::new(), DockerRegistry::start());
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    let layer = |name: &str, text: &str| {
        mu_testing::tar_gz([(name.to_owned(), ('f', text.as_bytes().to_vec()))])
    };
    let package = |name: &str| layer("package.yaml", &meta("Function", name, ""));
    let runtime = layer("bin/function", "elf");
    let push = |name: &str, layers: &[&[u8]]| {
        let image = Artifact::new(IMAGE, b"{}");
        let image = layers.iter().fold(image, |image, layer| image.layer(LAYER, layer, &[]));
        image.push(&host, &format!("acme/{name}"), "v1.0.0");
        image
    };
    push("built", &[&package("old"), &runtime, &package("new"), &layer("etc/a", "b")]);
    sandbox.mu(&["get", &format!("oci://{host}/acme/built#^1")]).ok();
    let pack = format!(".mu/packs/{}/acme/built", host.replace(':', "+"));
    assert!(sandbox.read(&format!("{pack}/package.yaml")).contains("name: new"));
    assert!(!sandbox.has(&format!("{pack}/etc/a")));
    // What a later layer has removed is not there.
    push("removed", &[&package("old"), &layer(".wh.package.yaml", "")]);
    push("emptied", &[&package("old"), &layer(".wh..wh..opq", ""), &runtime]);
    push("program", &[&runtime, &layer("bin/other", "elf")]);
    for name in ["removed", "emptied", "program"] {
        sandbox.mu(&["get", &format!("oci://{host}/acme/{name}#^1")]).fails().says(&[IMAGE]);
    }
    let large = push("large", &[&runtime, &package("large")]);
    let server = mu_testing::OciServer::start(Default::default());
    let mut manifest = large.manifest();
    manifest["layers"][0]["size"] = (65_u64 << 20).into();
    server.blob(b"{}");
    server.manifest("acme/large", "v1.0.0", &manifest);
    let before = server.requests().len();
    let reference = format!("oci://{}/acme/large#^1", server.host());
    sandbox.mu(&["get", &reference]).fails().says(&["an image of 2 layers", "too large"]);
    let asked = server.requests().split_off(before);
    // The config has the same bytes as the others, which were read before.
    assert_eq!(asked.iter().filter(|line| line.contains("/blobs/")).count(), 0, "{asked:#?}");
}

#[test]
fn a_mirror_has_the_images_of_all_platforms() {
    let (sandbox, server) = registry();
    let other = DockerRegistry::start();
    let place = format!("oci://{}/copies", other.host());
    let reference = format!("oci://{}/acme/network#0.3.0", server.host());
    sandbox.mu(&["mirror", &reference, "--no-deps", "--to", &place]).ok();
    let tagged = |host: &str, path: &str| {
        mu_testing::pull(host, &format!("{path}acme/network/manifests/v0.3.0"))
    };
    let index = tagged(&server.host(), "").expect("is there");
    assert_eq!(tagged(&other.host(), "copies/").as_ref(), Some(&index));
    let index: serde_json::Value = serde_json::from_slice(&index).expect("is JSON");
    for entry in index["manifests"].as_array().expect("is a list") {
        let digest = entry["digest"].as_str().expect("is text");
        let of = |host: &str, path: &str| {
            let path = format!("{path}acme/network/manifests/{digest}");
            mu_testing::pull(host, &path).expect("is there")
        };
        assert_eq!(of(&server.host(), ""), of(&other.host(), "copies/"));
    }
}

#[test]
fn what_has_only_prereleases_is_chosen_without_asking_for_them() {
    let (sandbox, server) = registry();
    let host = server.host();
    for version in ["v0.1.0-rc.1", "v0.1.0-rc.2"] {
        let text = meta("Function", "function-new", "");
        Artifact::package(&text).push(&host, "acme/function-new", version);
    }
    let spec =
        format!("  dependsOn:\n    - function: {host}/acme/function-new\n      version: \"<v1\"\n");
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", &spec));
    sandbox.mu(&["get"]).ok().says(&["acme/function-new 0.1.0-rc.2"]);
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    // Remembered, it is the same.
    sandbox.mu(&["resolve", "--offline"]).ok().says(&["0.1.0-rc.2"]);
    let text = meta("Function", "function-new", "");
    Artifact::package(&text).push(&host, "acme/function-new", "v0.1.0");
    sandbox.mu(&["update"]).ok().says(&["0.1.0-rc.2 → 0.1.0"]);
}

#[test]
fn an_xpkg_by_digest_or_tag_provides_its_kinds() {
    let (sandbox, server) = registry();
    let host = server.host();
    let package = format!("{}{}", meta("Provider", "disk", ""), resource("disk.example", "Disk"));
    let artifact = Artifact::package(&package);
    let digest = artifact.push(&host, "acme/provider-disk", "edge");
    sandbox.write("Mu.yaml", "name: acme/web\nrequires: [disk.example/v1/Disk]\n");
    for revision in ["edge", &digest] {
        sandbox.mu(&["add", &format!("oci://{host}/acme/provider-disk#{revision}")]).ok();
        sandbox.mu(&["get", "--locked"]).ok();
        assert!(sandbox.read("Mu.lock").contains("provides: [disk.example/v1/Disk]"));
        let bill = sandbox.mu(&["sbom"]).ok();
        match revision == "edge" {
            true => bill.says(&["&tag=edge\""]),
            false => bill.does_not_say(&["tag="]),
        };
        let images = sandbox.mu(&["images"]).ok();
        images.says(&["provider-disk"]).does_not_say(&[":sha256:"]);
        sandbox.write("Mu.yaml", "name: acme/web\nrequires: [disk.example/v1/Disk]\n");
    }
}

#[test]
fn what_is_locked_is_asked_where_the_lock_says() {
    let (sandbox, server) = registry();
    let host = server.host();
    sandbox.mu(&["get", &format!("oci://{host}/acme/network")]).ok();
    sandbox.mu(&["get", &format!("{host}/acme/provider-aws")]).ok();
    sandbox
        .mu(&["update", &format!("{host}/acme/provider-aws#1.0.0")])
        .ok()
        .says(&["1.2.0 → 1.0.0"]);
    sandbox.mu(&["why", &format!("{host}/acme/function-kcl")]).ok();
    sandbox.write("crossplane.yaml", &meta("Configuration", "platform", ""));
    sandbox.mu(&["add", &format!("{host}/acme/function-kcl")]).ok();
    assert!(sandbox.read("crossplane.yaml").contains("function: "));
    // A registry of the settings comes first.
    let settings = format!("registries: {{\"{host}/acme/\": \"oci://{host}/nowhere\"}}\n");
    sandbox.write(".mu/workspace.yaml", &settings);
    sandbox.mu(&["versions", &format!("{host}/acme/function-kcl")]).fails().says(&["nowhere"]);
}
