//! What other tools have packed, in a mirror that is a hub: their archives are there byte for byte.

use std::fs;

use mu_testing::{Artifact, DockerRegistry, pull};
use serde_json::{Value, json};

use super::support::{Chart, Charts, Hub, Nginx, Sandbox, Served, tree};

/// The layer of an artifact that has the package.
fn layer(host: &str, repository: &str, tag: &str) -> Vec<u8> {
    let manifest = pull(host, &format!("{repository}/manifests/{tag}")).expect("is there");
    let manifest: Value = serde_json::from_slice(&manifest).expect("is JSON");
    let layers = manifest["layers"].as_array().expect("is a list");
    let is_base = |layer: &&Value| layer["annotations"]["io.crossplane.xpkg"] == "base";
    let layer = layers.iter().find(is_base).or(layers.first()).expect("has one");
    let digest = layer["digest"].as_str().expect("has one");
    pull(host, &format!("{repository}/blobs/{digest}")).expect("is there")
}

/// The archive of the only version of a package in a hub, and its line.
fn archive(sandbox: &Sandbox, hub: &str, name: &str) -> (Vec<u8>, Value) {
    let index = fs::read_to_string(sandbox.path(&format!("{hub}/index/{name}.jsonl")));
    let index = index.expect("is there");
    let line: Value = serde_json::from_str(index.trim()).expect("is one line");
    let digest = line["archive"].as_str().expect("is said").to_owned();
    let found = tree(&sandbox.path(hub)).into_values();
    let found = found.filter(|(kind, _)| *kind != 'd').map(|(_, bytes)| bytes);
    let mut found = found.filter(|bytes| format!("sha256:{}", mu_testing::hex(bytes)) == digest);
    (found.next().expect("is there"), line)
}

#[test]
fn archives_of_other_tools_go_into_a_hub_byte_for_byte() {
    let mut sandbox = Sandbox::new();
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let web = Chart::new("web", "0.3.0").file("templates/a.yaml", "kind: A\n");
    charts.add(&web);
    // What `helm package --sign` writes beside it.
    fs::write(sandbox.path("www/stable/web-0.3.0.tgz.prov"), "signed: web\n").expect("is ours");
    let registry = DockerRegistry::start();
    let host = registry.host();
    for (at, to) in [(nginx.host(), "[CHARTS]"), (host.clone(), "[REGISTRY]")] {
        sandbox.replace(&at, to);
    }
    let queue = Chart::new("queue", "2.1.0").file("templates/a.yaml", "kind: A\n");
    Artifact::chart(&queue).push(&host, "acme/queue", "2.1.0");
    let module = "[package]\nname = \"lib\"\nversion = \"0.4.0\"\n";
    for (name, is_compressed) in [("lib", true), ("plain", false)] {
        let text = module.replace("lib", name);
        let files = [("kcl.mod", &*text), ("main.k", "a = 1\n")];
        let artifact = Artifact::module(name, "0.4.0", &files, is_compressed);
        artifact.push(&host, &format!("acme/{name}"), "0.4.0");
    }
    let meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: fn\n";
    Artifact::package(meta).push(&host, "acme/fn", "v1.0.0");
    let oci = |name: &str| format!("oci://{host}/acme/{name}");
    let references = [
        format!("helm+{}#^0.3", nginx.url("stable/web")),
        oci("queue"),
        oci("lib"),
        oci("plain"),
        oci("fn"),
    ];
    let references: Vec<&str> = references.iter().map(String::as_str).collect();
    sandbox.asks_for(&references);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let packs = tree(&sandbox.path("work/.mu/packs"));
    let expected = [
        ("stable/web", web.archive(), "in-folder"),
        ("acme/queue", queue.archive(), "in-folder"),
        ("acme/lib", layer(&host, "acme/lib", "0.4.0"), "layer"),
        ("acme/plain", layer(&host, "acme/plain", "0.4.0"), "layer"),
        ("acme/fn", layer(&host, "acme/fn", "v1.0.0"), "layer"),
    ];
    let is_there = |sandbox: &Sandbox, hub: &str| {
        for (name, bytes, locator) in &expected {
            let (found, line) = archive(sandbox, hub, name);
            assert!(found == *bytes, "{hub}: {name}");
            assert_eq!(line["locator"], *locator, "{hub}: {name}");
        }
        sandbox.mu(&["hub", "check", &format!("../{hub}")]).ok();
    };
    // A folder, a server, and a mirror of a mirror.
    Hub::new(&sandbox.path("mirror"));
    sandbox.mu(&["mirror", "--lock", "--to", "../mirror"]).ok().says(&["5"]);
    is_there(&sandbox, "mirror");
    let again = sandbox.mu(&["mirror", "--lock", "--to", "../mirror", "--json"]).ok().json();
    assert_eq!((&again["copied"], &again["present"]), (&json!([]), &json!(5)));
    sandbox.mu(&["hub", "init", "../server"]).ok();
    let token = sandbox.mu(&["hub", "token", "add", "../server", "m", "--namespace", "*"]).ok();
    let served = Served::start(&sandbox, "../server", &[]);
    sandbox.set_token(&served.address.to_string(), token.stdout.trim());
    sandbox.mu(&["mirror", "--lock", "--to", &served.url()]).ok().says(&["5"]);
    is_there(&sandbox, "server");
    drop((nginx, registry));
    let settings = |to: &str| {
        let prefixes = [references[0].trim_start_matches("helm+http://"), &host];
        let bases = prefixes.map(|prefix| prefix.split('/').next().unwrap_or_default().to_owned());
        format!("registries: {{\"{}/\": {to}, \"{}/\": {to}}}\n", bases[0], bases[1])
    };
    let forget = || {
        for folder in ["cache", "work/.mu/packs"] {
            fs::remove_dir_all(sandbox.path(folder)).expect("is ours");
        }
    };
    sandbox.write(".mu/workspace.yaml", &settings("../mirror"));
    sandbox.mu(&["hub", "init", "../second"]).ok();
    sandbox.mu(&["mirror", "--lock", "--to", "../second"]).ok().says(&["5"]);
    is_there(&sandbox, "second");
    for hub in ["mirror", "second"] {
        let mut files = tree(&sandbox.path(hub)).into_iter();
        let beside = files.find(|(path, _)| path.ends_with("web-0.3.0.tgz.prov"));
        assert_eq!(beside.expect("is there").1.1, b"signed: web\n", "{hub}");
    }
    // The lock holds with each of them, and without a lock they are found.
    for to in ["../mirror", "../second", &served.url()] {
        sandbox.write(".mu/workspace.yaml", &settings(to));
        forget();
        sandbox.mu(&["get", "--locked"]).ok();
        assert_eq!(sandbox.read("Mu.lock"), lock);
        assert_eq!(tree(&sandbox.path("work/.mu/packs")), packs);
        sandbox.mu(&["verify"]).ok();
    }
    // So it does with a registry that has what the hub has.
    let other = DockerRegistry::start();
    let place = format!("oci://{}/copies", other.host());
    sandbox.write(".mu/workspace.yaml", &settings("../mirror"));
    sandbox.mu(&["mirror", "--lock", "--to", &place]).ok().says(&["5"]);
    sandbox.write(".mu/workspace.yaml", &settings(&place));
    forget();
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(tree(&sandbox.path("work/.mu/packs")), packs);
    sandbox.write(".mu/workspace.yaml", &settings("../mirror"));
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    forget();
    sandbox.mu(&["get"]).ok();
    assert_eq!(tree(&sandbox.path("work/.mu/packs")), packs);
    // A lock of the mirror says all that a new machine needs.
    forget();
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(tree(&sandbox.path("work/.mu/packs")), packs);
}
