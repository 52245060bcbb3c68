//! What the author of a chart has signed goes with it wherever it is copied to, and what comes out of a hub into an OCI registry
//! is again an artifact of its own tool. The real Helm pulls and verifies it.

use std::fs;
use std::path::Path;

use mu_testing::{Artifact, DockerRegistry, Signer, pull};
use serde_json::{Value, json};

use crate::support::{Chart, Charts, Helm, Nginx, Package, Sandbox, Served, hex, tree};

/// The media type of the layer with a provenance, as Helm has it.
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// Leads the packages of each of these hosts to a mirror.
fn lead(sandbox: &Sandbox, hosts: &[&str], to: &str) {
    let led: Vec<String> = hosts.iter().map(|host| format!("\"{host}/\": {to}")).collect();
    sandbox.write(".mu/workspace.yaml", &format!("registries: {{{}}}\n", led.join(", ")));
}

/// The only file of a folder whose path ends like this.
fn file(folder: &Path, end: &str) -> Vec<u8> {
    let mut found = tree(folder).into_iter().filter(|(path, _)| path.ends_with(end));
    let (_, (_, bytes)) = found.next().unwrap_or_else(|| panic!("{end} is missing"));
    bytes
}

/// Copies what the lock names, three packages.
fn mirror(sandbox: &Sandbox, to: &str) {
    sandbox.mu(&["mirror", "--lock", "--to", to]).ok().says(&["3"]);
}

fn manifest(host: &str, repository: &str, tag: &str) -> Value {
    let manifest = pull(host, &format!("{repository}/manifests/{tag}"));
    serde_json::from_slice(&manifest.expect("is there")).expect("is JSON")
}

/// Has both Helms pull a chart of an OCI registry, and verify it; it has these bytes and this provenance.
fn helm_verifies(
    sandbox: &Sandbox,
    place: &str,
    chart: (&str, &str),
    signer: &Signer,
    expected: [&[u8]; 2],
) {
    let (name, version) = chart;
    for helm in Helm::all() {
        let into = sandbox.path("pulled");
        let _ = fs::remove_dir_all(&into);
        fs::create_dir(&into).expect("can be made");
        let home = sandbox.path("helm");
        let (at, folder) = (format!("oci://{place}/{name}"), into.display().to_string());
        let pull =
            ["pull", &at, "--version", version, "--plain-http", "--prov", "--destination", &folder];
        helm.run(&home, &pull).expect("Helm takes it");
        let archive = into.join(format!("{name}-{version}.tgz"));
        let provenance = into.join(format!("{name}-{version}.tgz.prov"));
        let found = [archive.as_path(), &provenance].map(|path| fs::read(path).expect("is there"));
        assert!(found[0] == expected[0] && found[1] == expected[1], "{helm:?} {name}");
        let keyring = signer.keyring().display().to_string();
        let verify = ["verify", &archive.display().to_string(), "--keyring", &keyring];
        helm.run(&home, &verify).expect("Helm verifies it");
    }
}

#[test]
fn a_signed_chart_stays_one_wherever_it_is_copied_to() {
    let (mut sandbox, signer) = (Sandbox::new(), Signer::new());
    let (registry, other) = (DockerRegistry::start(), DockerRegistry::start());
    let (host, there) = (registry.host(), other.host());
    // One is in a chart repository, and one in an OCI registry, to which Helm pushes it.
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    for (at, to) in
        [(nginx.host(), "[CHARTS]"), (host.clone(), "[REGISTRY]"), (there.clone(), "[OTHER]")]
    {
        sandbox.replace(&at, to);
    }
    let sign =
        |chart: &Chart, file: &str| signer.provenance(&chart.manifest(), file, &chart.archive());
    let web = Chart::new("web", "0.3.0").lines("appVersion: 1.10.2\n");
    charts.add(&web);
    let web_signed = sign(&web, "web-0.3.0.tgz");
    fs::write(sandbox.path("www/stable/web-0.3.0.tgz.prov"), &web_signed).expect("is ours");
    let queue = Chart::new("queue", "2.1.0");
    let queue_signed = sign(&queue, "queue-2.1.0.tgz");
    fs::write(sandbox.path("queue-2.1.0.tgz"), queue.archive()).expect("is ours");
    fs::write(sandbox.path("queue-2.1.0.tgz.prov"), &queue_signed).expect("is ours");
    let [helm, _] = Helm::all();
    let archive = sandbox.path("queue-2.1.0.tgz").display().to_string();
    let push = ["push", &archive, &format!("oci://{host}/acme"), "--plain-http"];
    helm.run(&sandbox.path("helm"), &push).expect("Helm pushes it");
    // An index may place a chart in an OCI registry.
    let placed = format!("urls: ['oci://{host}/acme/queue:2.1.0']\n");
    charts.add(&Chart::new("queue", "2.1.0").listed(&placed));
    sandbox.asks_for(&[
        &format!("helm+{}#^0.3", nginx.url("stable/web")),
        &format!("helm+{}#^2", nginx.url("stable/queue")),
        &format!("oci://{host}/acme/queue#^2"),
    ]);
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.lock();
    let signed = [
        ("stable/web/web-1.10.2-0.3.0.tgz", &web_signed),
        ("stable/queue/queue-2.1.0.tgz", &queue_signed),
        ("acme/queue/queue-2.1.0.tgz", &queue_signed),
    ];
    let has_all = |sandbox: &Sandbox, hub: &str| {
        for (archive, expected) in signed {
            let found = file(&sandbox.path(hub), &format!("{archive}.prov"));
            assert!(found == *expected, "{hub} {archive}");
        }
        sandbox.mu(&["hub", "check", &format!("../{hub}")]).ok().does_not_say(&["leftover"]);
    };
    sandbox.mu(&["hub", "init", "../folder"]).ok();
    mirror(&sandbox, "../folder");
    has_all(&sandbox, "folder");
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token = sandbox.mu(&["hub", "token", "add", "../srv", "m", "--namespace", "*"]).ok();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.set_token(&served.address.to_string(), token.stdout.trim());
    mirror(&sandbox, &served.url());
    has_all(&sandbox, "srv");
    for (archive, expected) in signed {
        let found = served.ask("GET", &format!("/packs/{archive}.prov"), &[], &[]).is(200);
        assert!(found.body == *expected, "{archive}");
    }
    // What an interrupted run has not copied, the next one does.
    let lost = sandbox.path("folder/packs/stable/web/web-1.10.2-0.3.0.tgz.prov");
    fs::remove_file(&lost).expect("is there");
    let again =
        sandbox.mu(&["mirror", "--lock", "--to", "../folder", "--dry-run", "--json"]).ok().json();
    assert_eq!((&again["present"], lost.exists()), (&json!(3), false));
    mirror(&sandbox, "../folder");
    has_all(&sandbox, "folder");
    // Straight from there into a registry, and from the hub into another one, each as Helm would have pushed it.
    let hosts = [nginx.host(), host.clone()];
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    mirror(&sandbox, &format!("oci://{there}/direct"));
    drop((nginx, registry));
    lead(&sandbox, &hosts, &served.url());
    sandbox.mu(&["hub", "init", "../second"]).ok();
    mirror(&sandbox, "../second");
    has_all(&sandbox, "second");
    lead(&sandbox, &hosts, "../second");
    mirror(&sandbox, &format!("oci://{there}/copies"));
    for place in ["direct", "copies"] {
        let both = [
            (format!("{place}/stable"), ("web", "0.3.0"), web.archive(), &web_signed),
            (format!("{place}/stable"), ("queue", "2.1.0"), queue.archive(), &queue_signed),
            (format!("{place}/acme"), ("queue", "2.1.0"), queue.archive(), &queue_signed),
        ];
        for (place, (name, version), archive, provenance) in both {
            let expected = [&archive[..], provenance];
            helm_verifies(
                &sandbox,
                &format!("{there}/{place}"),
                (name, version),
                &signer,
                expected,
            );
            let found = manifest(&there, &format!("{place}/{name}"), version);
            assert_eq!(found["config"]["mediaType"], "application/vnd.cncf.helm.config.v1+json");
            // Helm sorts them by their digests.
            let layers = found["layers"].as_array().expect("is a list");
            let has = |key: &str, value: &str| layers.iter().any(|layer| layer[key] == *value);
            assert!(layers.len() == 2 && has("mediaType", PROVENANCE), "{found}");
            assert!(has("digest", &format!("sha256:{}", hex(&archive))), "{found}");
        }
    }
    // The lock holds with it.
    lead(&sandbox, &hosts, &format!("oci://{there}/copies"));
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is ours");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.lock(), lock);
    // What is there without a provenance stays, and that is said.
    let plain = format!("{there}/plain/stable");
    for chart in [("web", "0.3.0"), ("queue", "2.1.0")] {
        let (name, version) = chart;
        let content = if name == "web" { web.archive() } else { queue.archive() };
        let file = sandbox.path(&format!("bare-{name}-{version}.tgz"));
        fs::write(&file, content).expect("is ours");
        helm.run(
            &sandbox.path("helm"),
            &["push", &file.display().to_string(), &format!("oci://{plain}"), "--plain-http"],
        )
        .expect("Helm pushes it");
    }
    lead(&sandbox, &hosts, "../second");
    let run = sandbox.mu(&["mirror", "--lock", "--to", &format!("oci://{there}/plain")]).ok();
    run.says(&["stable/web 0.3.0 is already in", "without its provenance"]);
}

#[test]
fn modules_and_packages_come_out_of_a_hub_as_what_their_tools_push() {
    let (mut sandbox, registry, other) =
        (Sandbox::new(), DockerRegistry::start(), DockerRegistry::start());
    let (host, there) = (registry.host(), other.host());
    sandbox.replace(&host, "[REGISTRY]");
    sandbox.replace(&there, "[OTHER]");
    for (name, version, is_compressed) in [("lib", "0.4.0", true), ("plain", "1.2", false)] {
        let module = format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\n");
        let files = [("kcl.mod", &*module), ("main.k", "a = 1\n")];
        let artifact = Artifact::module(name, version, &files, is_compressed);
        artifact.push(&host, &format!("acme/{name}"), version);
    }
    for (name, kind) in [("fn", "Function"), ("net", "Configuration")] {
        let meta = format!(
            "apiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n"
        );
        Artifact::package(&meta).push(&host, &format!("acme/{name}"), "v1.0.0");
    }
    let names = ["lib", "plain", "fn", "net"];
    let references = names.map(|name| format!("oci://{host}/acme/{name}"));
    sandbox.asks_for(&references.each_ref().map(String::as_str));
    sandbox.mu(&["get"]).ok();
    let packs = tree(&sandbox.path("work/.mu/packs"));
    sandbox.mu(&["hub", "init", "../hub"]).ok();
    sandbox.mu(&["mirror", "--lock", "--to", "../hub"]).ok().says(&["4 versions copied"]);
    let original = |name: &str, tag: &str| manifest(&host, &format!("acme/{name}"), tag);
    let layers = [
        ("lib", "0.4.0", original("lib", "0.4.0")["layers"][0].clone()),
        ("plain", "1.2", original("plain", "1.2")["layers"][0].clone()),
        ("fn", "v1.0.0", original("fn", "v1.0.0")["layers"][1].clone()),
        ("net", "v1.0.0", original("net", "v1.0.0")["layers"][1].clone()),
    ];
    drop(registry);
    lead(&sandbox, &[&host], "../hub");
    let place = format!("oci://{there}/copies");
    let run = sandbox.mu(&["mirror", "--lock", "--to", &place]).ok();
    run.says(&[
        "4 versions copied",
        "acme/fn 1.0.0 comes from a hub",
        "the image that runs it is not copied",
    ])
    .does_not_say(&["acme/net 1.0.0 comes"]);
    for (name, tag, layer) in layers {
        let found = manifest(&there, &format!("copies/acme/{name}"), tag);
        assert_eq!(found["layers"].as_array().map(Vec::len), Some(1), "{name}");
        for key in ["mediaType", "digest", "size"] {
            assert_eq!(found["layers"][0][key], layer[key], "{name}");
        }
        assert_eq!(found["annotations"].get("com.mu.release"), None, "{name}");
    }
    let module = manifest(&there, "copies/acme/plain", "1.2");
    let said = |key: &str| module["annotations"][format!("org.kcllang.package.{key}")].clone();
    assert_eq!([said("name"), said("version")], ["plain", "1.2"]);
    assert_eq!(
        module["layers"][0]["annotations"]["org.opencontainers.image.title"],
        "plain_1.2.tar"
    );
    let package = manifest(&there, "copies/acme/fn", "v1.0.0");
    assert_eq!(package["layers"][0]["annotations"]["io.crossplane.xpkg"], "base");
    let again = sandbox.mu(&["mirror", "--lock", "--to", &place, "--json"]).ok().json();
    assert_eq!((&again["copied"], &again["present"]), (&json!([]), &json!(4)));
    // They are packages for everybody, and the lock holds with them.
    for name in names {
        sandbox.mu(&["info", &format!("{place}/acme/{name}")]).ok();
    }
    lead(&sandbox, &[&host], &place);
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("is ours");
    }
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(tree(&sandbox.path("work/.mu/packs")), packs);
}

#[test]
fn a_hub_takes_a_provenance_for_the_archive_of_a_chart_alone() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let token = |name: &str, of: &str| {
        let run = sandbox.mu(&["hub", "token", "add", "../srv", name, "--namespace", of]).ok();
        run.stdout.trim().to_owned()
    };
    let (ada, eve) = (token("ada", "acme"), token("eve", "other"));
    let served = Served::start(&sandbox, "../srv", &[]);
    let put = |token: &str, package: &str, kind: &str, body: &[u8]| {
        let headers = [format!("authorization: Bearer {token}"), format!("content-type: {kind}")];
        let headers = headers.each_ref().map(String::as_str);
        served.ask("PUT", &format!("/api/v1/packages/{package}"), &headers, body)
    };
    let web = Chart::new("web", "1.0.0");
    let line = json!({"name": "acme/web", "version": "1.0.0", "origin": "web", "format": "helm", "locator": "in-folder"});
    let body = [line.to_string().as_bytes(), b"\n", &web.archive()].concat();
    put(&ada, "acme/web/1.0.0", "application/vnd.mu.copy", &body).is(201);
    sandbox.hub().publish(&Package::new("acme/own", "1.0.0"));
    let own = fs::read(sandbox.hub().archive("acme/own", "1.0.0")).expect("is there");
    served.put(&ada, "acme/own/1.0.0", &own).is(201);
    let at = "/packs/acme/web/web-1.0.0.tgz.prov";
    served.ask("GET", at, &[], &[]).is(404);
    put(&eve, "acme/web/1.0.0", PROVENANCE, b"signed").is(403);
    put("nobody", "acme/web/1.0.0", PROVENANCE, b"signed").is(401);
    put(&ada, "acme/web/2.0.0", PROVENANCE, b"signed").is(404);
    let refused = put(&ada, "acme/own/1.0.0", PROVENANCE, b"signed").is(422);
    assert!(refused.text().contains("its archive is one of mu's own"), "{}", refused.text());
    put(&ada, "acme/web/1.0.0", PROVENANCE, &vec![b'a'; (1 << 20) + 1]).is(413);
    served.ask("GET", at, &[], &[]).is(404);
    put(&ada, "acme/web/1.0.0", PROVENANCE, b"signed").is(201);
    put(&ada, "acme/web/1.0.0", PROVENANCE, b"signed").is(200);
    put(&ada, "acme/web/1.0.0", PROVENANCE, b"other").is(409);
    assert_eq!(served.ask("GET", at, &[], &[]).is(200).body, b"signed");
    // One whose archive is gone is left over.
    fs::write(sandbox.path("srv/packs/acme/web/web-0.9.0.tgz.prov"), "x").expect("is ours");
    let check = sandbox.mu(&["hub", "check", "../srv", "--repair"]).ok();
    check.says(&["web-0.9.0.tgz.prov", "no version uses it"]);
    assert!(!sandbox.path("srv/packs/acme/web/web-0.9.0.tgz.prov").exists());
    assert_eq!(served.ask("GET", at, &[], &[]).is(200).body, b"signed");
}
