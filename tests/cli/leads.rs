//! What a package of the network names: it leads to the network, and never to this machine; what the settings name leads anywhere.
//!
//! The registries are reached through a proxy, so that they have names of the network.

use std::fs;

use mu_testing::http::{Reply, Seen, TestServer};
use serde_json::json;

use crate::support::git::Origin;
use crate::support::{Package, Sandbox};

/// A proxy behind which everything answers as `respond` says, by host and path.
fn network(
    sandbox: &mut Sandbox,
    respond: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> TestServer {
    let server = TestServer::start(move |seen: &Seen, _| {
        let place = seen.path.strip_prefix("http://").unwrap_or(&seen.path);
        respond(place).map_or_else(|| Reply::status(404), Reply::body)
    });
    sandbox.set("http_proxy", &server.url(""));
    sandbox.set("no_proxy", "127.0.0.1,localhost");
    server
}

/// A hub at `h.example/`, reached at `hub.example`, whose package `a/b` has more keys in its line.
fn hub(sandbox: &mut Sandbox, more: serde_json::Value) -> TestServer {
    let mut line = json!({
        "name": "a/b",
        "version": "1.0.0",
        "digest": format!("h1:{}", "A".repeat(43)),
        "archive": format!("sha256:{}", "0".repeat(64)),
        "urls": ["packs/x.tgz"],
    });
    let more = more.as_object().expect("is a map").clone();
    line.as_object_mut().expect("is a map").extend(more);
    network(sandbox, move |place| match place {
        "hub.example/hub.json" => {
            Some(json!({"hub": 1, "index": "index/", "packs": "packs/"}).to_string())
        }
        "hub.example/index/a/b.jsonl" => Some(format!("{line}\n")),
        _ => None,
    })
}

const HUB: &str =
    "registries: {h.example/: {provider: hub, url: \"http://hub.example/\", insecure: true}}\n";

/// A server of this machine that must not be asked.
fn inner() -> TestServer {
    TestServer::start(|_, _| Reply::status(404))
}

#[test]
fn a_package_of_a_hub_depends_on_nothing_of_this_machine() {
    let inner = inner();
    let host = inner.host();
    let port = host.rsplit(':').next().expect("has a port").to_owned();
    for dependency in [
        format!("oci://{host}/x"),
        format!("http://{host}/x/y"),
        format!("https://{host}/x/y"),
        format!("http://{host}/x.tgz"),
        format!("git+http://{host}/x"),
        format!("helm+http://{host}/x"),
        format!("kudo+http://{host}/x"),
        format!("olm+http://{host}/x"),
        format!("{host}/x/y"),
        format!("http://localhost:{port}/x/y"),
        format!("http://127.1:{port}/x/y"),
        "git@127.0.0.1:x/y".to_owned(),
        "https://10.0.0.5/x/y".to_owned(),
    ] {
        let mut sandbox = Sandbox::with_dependencies(&["h.example/a/b"]);
        let proxy = hub(&mut sandbox, json!({"dependencies": [dependency]}));
        sandbox.write(".mu/workspace.yaml", HUB);
        let run = sandbox.mu(&["get", "--json"]);
        run.fails_with("untrusted");
        assert!(!proxy.seen().is_empty(), "{dependency}");
        assert_eq!(inner.requests(), [""; 0], "{dependency}");
        let said = sandbox.mu(&["get"]).fails();
        said.says(&["is refused", "h.example/a/b", "`registries` or `overrides`"]);
    }
}

#[test]
fn a_package_of_a_hub_depends_on_no_repository_or_registry_in_a_folder() {
    let mut sandbox = Sandbox::with_dependencies(&["h.example/a/b"]);
    let origin = Origin::new("private");
    origin.commit(&[("Mu.yaml", "name: private\nversion: 1.0.0\n"), ("secret", "TOP SECRET")]);
    let folder = origin.folder().display().to_string();
    for scheme in ["git+file", "helm+file", "kudo+file", "olm+file"] {
        let dependency = format!("{scheme}://{folder}");
        let _proxy = hub(&mut sandbox, json!({"dependencies": [dependency]}));
        sandbox.write(".mu/workspace.yaml", HUB);
        sandbox.mu(&["get", "--refresh"]).fails().says(&["the files of this machine"]);
        // Nor does one of a hub that is itself in a folder: its packages are those of others.
        sandbox.publish(&[Package::new("acme/b", "1.0.0").needs(&dependency)]);
        sandbox.write(".mu/workspace.yaml", "");
        sandbox.asks_for(&["acme/b"]);
        sandbox.mu(&["get"]).fails().says(&["the files of this machine"]);
        fs::remove_dir_all(sandbox.path("hub")).expect("can be removed");
        sandbox.hub();
        sandbox.asks_for(&["h.example/a/b"]);
    }
    // The workspace itself may.
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.asks_for(&[&format!("git+file://{folder}")]);
    sandbox.mu(&["get"]).ok();
}

#[test]
fn an_override_or_a_registry_of_the_settings_leads_a_dependency_to_this_machine() {
    let mut sandbox = Sandbox::with_dependencies(&["h.example/a/b"]);
    sandbox.place("work/x", &Package::new("x/y", "1.0.0"));
    let _proxy = hub(&mut sandbox, json!({"dependencies": ["https://127.0.0.1:1/x/y"]}));
    // The archive of `a/b` itself is not there, so only the choice is made.
    for settings in [
        "overrides: {\"127.0.0.1:1/x/y\": ./x}\n",
        "  \"127.0.0.1:1/\": {provider: hub, url: ../hub}\n",
    ] {
        let text = match settings.starts_with(' ') {
            true => format!(
                "registries:\n  h.example/: {{provider: hub, url: \"http://hub.example/\", insecure: true}}\n{settings}"
            ),
            false => format!("{HUB}{settings}"),
        };
        sandbox.write(".mu/workspace.yaml", &text);
        sandbox.publish(&[Package::new("x/y", "1.0.0")]);
        sandbox.mu(&["resolve"]).ok().says(&["x/y"]);
    }
}

#[test]
fn packages_of_a_hub_on_this_machine_depend_on_others_there() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("acme/b", "1.0.0"),
        Package::new("acme/c", "1.0.0").needs("acme/b"),
    ]);
    let folder = sandbox.path("hub");
    let server = TestServer::start(move |seen, _| {
        let file = folder.join(seen.path.trim_start_matches('/'));
        fs::read(file).map_or_else(|_| Reply::status(404), Reply::body)
    });
    let host = server.host();
    sandbox.publish(&[Package::new("acme/a", "1.0.0").needs(&format!("http://{host}/acme/c"))]);
    sandbox.asks_for(&[&format!("http://{host}/acme/a")]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked().len(), 3, "{:?}", sandbox.locked());
    sandbox.mu(&["get", "--frozen"]).ok();
    sandbox.mu(&["outdated"]).ok();
}

#[test]
fn an_index_of_charts_names_no_registry_of_this_machine() {
    let inner = inner();
    let url = format!("oci://{}/charts/x:1.0.0", inner.host());
    let mut sandbox = Sandbox::with_dependencies(&["c.example/x"]);
    let index = json!({"apiVersion": "v1", "entries": {"x": [
        {"apiVersion": "v2", "name": "x", "version": "1.0.0", "urls": [url], "digest": "0".repeat(64)}
    ]}});
    let _proxy = network(&mut sandbox, move |place| {
        (place == "charts.example/index.yaml").then(|| index.to_string())
    });
    sandbox.write(
        ".mu/workspace.yaml",
        "registries: {c.example/: {provider: helm, url: \"http://charts.example/\", insecure: true}}\n",
    );
    sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    assert_eq!(inner.requests(), [""; 0]);
}

#[test]
fn a_catalog_of_operators_names_no_image_of_this_machine() {
    let inner = inner();
    let image = format!("{}/bundle@sha256:{}", inner.host(), "0".repeat(64));
    let mut sandbox = Sandbox::with_dependencies(&["o.example/x"]);
    let catalog = [
        json!({"schema": "olm.package", "name": "x", "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": "x", "name": "stable", "entries": [{"name": "x.v1.0.0"}]}),
        json!({"schema": "olm.bundle", "package": "x", "name": "x.v1.0.0", "image": image, "properties": [
            {"type": "olm.package", "value": {"packageName": "x", "version": "1.0.0"}}
        ]}),
    ];
    let text: String = catalog.iter().map(|document| format!("{document}\n")).collect();
    let _proxy = network(&mut sandbox, move |place| {
        place.starts_with("catalog.example/").then(|| text.clone())
    });
    sandbox.write(
        ".mu/workspace.yaml",
        "registries: {o.example/: {provider: olm, url: \"http://catalog.example/\", insecure: true}}\n",
    );
    sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    assert_eq!(inner.requests(), [""; 0]);
}

#[test]
fn mu_edit_clones_no_repository_of_this_machine_that_a_package_names() {
    let inner = inner();
    let mut sandbox = Sandbox::with_dependencies(&["h.example/a/b"]);
    let package =
        Package::new("a/b", "1.0.0").key("repository", json!(format!("http://{}/x", inner.host())));
    sandbox.publish(&[package]);
    let folder = sandbox.path("hub");
    let server = TestServer::start(move |seen, _| {
        let place = seen.path.strip_prefix("http://hub.example/").unwrap_or_default();
        fs::read(folder.join(place)).map_or_else(|_| Reply::status(404), Reply::body)
    });
    sandbox.set("http_proxy", &server.url(""));
    sandbox.set("no_proxy", "127.0.0.1");
    sandbox.write(".mu/workspace.yaml", HUB);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["edit", "h.example/a/b", "--json"]);
    run.fails_with("untrusted");
    assert_eq!(inner.requests(), [""; 0]);
}
