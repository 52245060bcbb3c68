//! `mu search`: static hubs by their catalog, servers by their search, several registries at once.

use serde_json::{Value, json};

use mu_testing::http::{Reply, TestServer};

use crate::support::{Hub, Nginx, Package, Sandbox, write};

/// Writes the catalog of a hub.
fn catalog(hub: &Hub, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    write(hub.folder(), "catalog.jsonl", text);
}

fn ids(json: &Value) -> Vec<String> {
    let packages = json["packages"].as_array().expect("is a list");
    packages.iter().map(|package| package["id"].as_str().expect("is text").to_owned()).collect()
}

/// `hub.mu.com/` and `acme.example/`, and a part of the first that another folder serves.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let (acme, internal) = (Hub::new(&sandbox.path("acme")), Hub::new(&sandbox.path("internal")));
    sandbox.write(
        ".mu/workspace.yaml",
        "registries:\n  acme.example/: ../acme\n  hub.mu.com/internal/: ../internal\n  git.example/: {provider: git}\n",
    );
    catalog(
        &sandbox.hub(),
        &[
            json!({"name": "ops/kafka-exporter", "latest": "0.3.0", "keywords": ["metrics"]}),
            json!({"name": "ops/kafka", "latest": "2.2.1", "appVersion": "3.0.0",
                   "description": "Streams\n of \u{1b}[31mevents", "keywords": ["queue"]}),
            json!({"name": "old/kafka", "latest": "1.0.0", "movedTo": "ops/kafka"}),
            json!({"name": "internal/kafka", "latest": "6.6.6"}),
            json!({"name": "../kafka", "latest": "6.6.6"}),
        ],
    );
    catalog(
        &acme,
        &[
            json!({"name": "kafka", "latest": "9.0.0"}),
            json!({"name": "web/proxy", "latest": "1.0.0"}),
        ],
    );
    catalog(&internal, &[json!({"name": "kafka", "latest": "7.0.0"})]);
    sandbox
}

#[test]
fn every_registry_is_asked_and_the_exact_name_comes_first() {
    let sandbox = sandbox();
    let run = sandbox.mu(&["search", "kafka"]).ok();
    insta::assert_snapshot!(run.shown(), @r"
    $ mu search kafka
    package             newest  app version  note                description
    acme.example/kafka  9.0.0
    internal/kafka      7.0.0
    ops/kafka           2.2.1   3.0.0                            Streams of \u{1b}[31mevents
    old/kafka           1.0.0                moved to ops/kafka
    ops/kafka-exporter  0.3.0
    [exit 0]
    ");
    let json = sandbox.mu(&["search", "kafka", "--json"]).ok().json();
    assert_eq!(
        json["packages"][2],
        json!({
            "id": "hub.mu.com/ops/kafka",
            "name": "ops/kafka",
            "latest": "2.2.1",
            "appVersion": "3.0.0",
            "description": "Streams\n of \u{1b}[31mevents",
            "keywords": ["queue"],
            "movedTo": null,
            "yanked": false,
            "deprecated": false,
            "source": "hub+file://[DIR]/hub/",
            "locked": null,
        })
    );
    for words in [
        &["ops/kafka"][..],
        &["hub.mu.com/ops/kafka#^2"],
        &["https://hub.mu.com/ops/kafka"],
        &["Queue"],
    ] {
        let mut arguments = vec!["search", "--json"];
        arguments.extend(words);
        assert_eq!(
            ids(&sandbox.mu(&arguments).ok().json())[0],
            "hub.mu.com/ops/kafka",
            "{words:?}"
        );
    }
    let run = sandbox.mu(&["search", "kafka", "--limit", "1"]).ok();
    run.says(&["acme.example/kafka", "and 4 more; `--limit` shows more of them"]);
    let run = sandbox.mu(&["search", "nonsense"]).ok();
    assert_eq!(run.stdout, "");
    run.says(&["found nothing for `nonsense`"]);
}

#[test]
fn what_nobody_should_start_to_use_is_marked() {
    let sandbox = Sandbox::with_dependencies(&[]);
    for name in ["ops/kafka", "ops/queue"] {
        sandbox.write("Mu.yaml", &format!("name: {name}\nversion: 1.0.0\n"));
        sandbox.mu(&["publish", "--to", "../hub"]).ok();
    }
    sandbox.mu(&["yank", "ops/queue#1.0.0", "--reason", "loses events", "--to", "../hub"]).ok();
    let catalog = sandbox.path("hub/catalog.jsonl");
    let lines = std::fs::read_to_string(&catalog).expect("can be read");
    let old = "\"latest\":\"1.0.0\"}";
    assert!(lines.contains(old), "{lines}");
    let deprecated = "\"latest\":\"1.0.0\",\"deprecated\":true}";
    std::fs::write(&catalog, lines.replace(old, deprecated)).expect("can be written");
    insta::assert_snapshot!(sandbox.mu(&["search", "ops"]).ok().shown(), @"
    $ mu search ops
    package    newest  note
    ops/kafka  1.0.0   deprecated
    ops/queue  1.0.0   yanked: loses events
    [exit 0]
    ");
    let json = sandbox.mu(&["search", "ops", "--json"]).ok().json();
    let happened =
        |at: usize| [&json["packages"][at]["yanked"], &json["packages"][at]["deprecated"]];
    assert_eq!(happened(0), [&json!(false), &json!("")]);
    assert_eq!(happened(1), [&json!("loses events"), &json!(false)]);
}

#[test]
fn filters_look_at_the_versions() {
    let sandbox = sandbox();
    sandbox.publish(&[
        Package::new("ops/kafka", "1.1.0").key("appVersion", json!("2.3.0")),
        Package::new("ops/kafka", "2.2.1").key("appVersion", json!("3.0.0")),
        Package::new("ops/kafka-exporter", "0.3.0").key("channels", json!(["fast"])),
    ]);
    Hub::new(&sandbox.path("acme")).release("kafka", "9.0.0");
    Hub::new(&sandbox.path("internal")).release("kafka", "7.0.0");
    let json = sandbox.mu(&["search", "kafka", "--app-version", "2.3", "--json"]).ok().json();
    assert_eq!(ids(&json), ["hub.mu.com/ops/kafka"]);
    assert_eq!(
        (&json["packages"][0]["latest"], &json["packages"][0]["appVersion"]),
        (&json!("1.1.0"), &json!("2.3.0"))
    );
    assert_eq!(json["total"], 1);
    for (filter, expected) in [
        (&["--channel", "fast"], &["hub.mu.com/ops/kafka-exporter"][..]),
        (&["--version", "7"], &["hub.mu.com/internal/kafka"]),
        (&["--version", "5"], &[]),
    ] {
        let mut arguments = vec!["search", "kafka", "--json"];
        arguments.extend(filter);
        assert_eq!(ids(&sandbox.mu(&arguments).ok().json()), expected, "{filter:?}");
    }
    sandbox.mu(&["search", "kafka", "--version", ">>1", "--json"]).fails_with("usage");
}

#[test]
fn a_registry_that_fails_is_a_warning_if_another_answers() {
    let sandbox = sandbox();
    std::fs::remove_file(sandbox.path("acme/catalog.jsonl")).expect("was there");
    let run = sandbox.mu(&["search", "kafka"]).ok();
    let said = &run.stderr;
    let told =
        "warning: `acme.example/` is left out: the hub at `file://[DIR]/acme/` cannot be searched";
    assert!(said.contains(told), "{said}");
    run.says(&["internal/kafka"]);
    std::fs::remove_file(sandbox.path("hub/catalog.jsonl")).expect("was there");
    std::fs::remove_file(sandbox.path("internal/catalog.jsonl")).expect("was there");
    let run = sandbox.mu(&["search", "kafka"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu search kafka
    error: the hub at `file://[DIR]/hub/` cannot be searched: there is no `file://[DIR]/hub/catalog.jsonl`

    hint: another registry failed too: the hub at `file://[DIR]/acme/` cannot be searched: there is no `file://[DIR]/acme/catalog.jsonl`
    hint: another registry failed too: the hub at `file://[DIR]/internal/` cannot be searched: there is no `file://[DIR]/internal/catalog.jsonl`
    [exit 1]
    ");
    sandbox.mu(&["search", "kafka", "--json"]).fails_with("not-found");
    // One that refuses says more: a token may be all that is missing.
    let server = TestServer::start(|_, _| Reply::status(401));
    let settings = format!("registries:\n  acme.example/: \"{}\"\n", server.url(""));
    sandbox.write(".mu/workspace.yaml", &settings);
    let error = sandbox.mu(&["search", "kafka", "--json"]).fails_with("auth");
    assert!(error["help"].to_string().contains("mu login"), "{error}");
    // A catalog that everyone may read says nothing of versions.
    let server = TestServer::start(|seen, _| match seen.path.as_str() {
        "/hub.json" => Reply::body("{\"hub\": 1}"),
        "/catalog.jsonl" => Reply::body("{\"name\": \"ops/kafka\", \"latest\": \"1.0.0\"}\n"),
        _ => Reply::status(401),
    });
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.hub_is_at(&server.url(""));
    sandbox.mu(&["search", "kafka"]).ok();
    sandbox.mu(&["search", "kafka", "--channel", "stable", "--json"]).fails_with("auth");
}

#[test]
fn a_catalog_on_the_web_is_kept_and_asked_for_again_only_if_it_changed() {
    let sandbox = sandbox();
    let nginx = Nginx::serve(&sandbox.path("hub"), "");
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.mu(&["search", "kafka", "--offline", "--json"]).fails_with("offline");
    let expected = ["hub.mu.com/ops/kafka", "hub.mu.com/internal/kafka"];
    let requests = |sandbox: &Sandbox, expected: &[&str]| {
        let before = nginx.log().len();
        sandbox.mu(&["search", "kafka"]).ok().says(&["ops/kafka"]);
        assert_eq!(nginx.log()[before..], *expected);
    };
    let hub = "GET /hub.json HTTP/1.1 304";
    requests(&sandbox, &["GET /hub.json HTTP/1.1 200", "GET /catalog.jsonl HTTP/1.1 200"]);
    requests(&sandbox, &[hub, "GET /catalog.jsonl HTTP/1.1 304"]);
    let json = sandbox.mu(&["search", "kafka", "--offline", "--json"]).ok().json();
    assert_eq!(ids(&json)[..1], expected[..1]);
    // A catalog that does not match the data beside it is downloaded again.
    let kept = sandbox.path("cache/catalogs");
    for file in std::fs::read_dir(kept).expect("is there").flatten() {
        if file.path().extension().is_some_and(|ending| ending == "jsonl") {
            std::fs::write(file.path(), "{}").expect("is ours");
        }
    }
    requests(&sandbox, &[hub, "GET /catalog.jsonl HTTP/1.1 200"]);
    write(&sandbox.path("hub"), "hub.json", r#"{"hub": 1, "generation": 7}"#);
    catalog(&sandbox.hub(), &[json!({"name": "ops/kafka", "latest": "3.0.0"})]);
    write(&sandbox.path("hub"), "hub.json", r#"{"hub": 1, "generation": 7}"#);
    requests(&sandbox, &["GET /hub.json HTTP/1.1 200", "GET /catalog.jsonl HTTP/1.1 200"]);
    requests(&sandbox, &[hub]);
    sandbox.mu(&["cache", "clean"]).ok();
    assert!(!sandbox.has("cache/catalogs"));
}

#[test]
fn a_server_searches_itself() {
    let sandbox = sandbox();
    let answer = json!({"packages": [
        {"name": "ops/strimzi", "latest": "0.40.0", "description": "Speaks of it in its readme"},
        {"name": "ops/kafka", "latest": "2.2.1"},
    ], "total": 12});
    let location = format!(
        "location /api/v1/search {{ default_type application/json; return 200 '{answer}'; }}
         location /broken/search {{ return 200 'hello'; }}"
    );
    let nginx = Nginx::serve(&sandbox.path("hub"), &location);
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.write(".mu/workspace.yaml", "");
    write(&sandbox.path("hub"), "hub.json", r#"{"hub": 1, "api": "api/v1/"}"#);
    let json = sandbox.mu(&["search", "kafka", "--json"]).ok().json();
    assert_eq!(ids(&json), ["hub.mu.com/ops/kafka", "hub.mu.com/ops/strimzi"]);
    assert_eq!(json["total"], 12);
    // A server that accepts changes but does not search has its catalog.
    write(&sandbox.path("hub"), "hub.json", r#"{"hub": 1, "api": "none/"}"#);
    let json = sandbox.mu(&["search", "exporter", "--json"]).ok().json();
    assert_eq!(ids(&json), ["hub.mu.com/ops/kafka-exporter"]);
    // So has one with an unreadable answer.
    write(&sandbox.path("hub"), "hub.json", r#"{"hub": 1, "api": "long/"}"#);
    write(&sandbox.path("hub"), "long/search", " ".repeat((16 << 20) + 1));
    let json = sandbox.mu(&["search", "exporter", "--json"]).ok().json();
    assert_eq!(ids(&json), ["hub.mu.com/ops/kafka-exporter"]);
    write(&sandbox.path("hub"), "hub.json", r#"{"hub": 1, "api": "broken/"}"#);
    sandbox.mu(&["search", "kafka", "--json"]).fails_with("network");
}

#[test]
fn a_line_of_a_catalog_that_is_too_long_hides_no_other_package() {
    let sandbox = Sandbox::new();
    let long = "kafka ".repeat(150 << 10);
    catalog(
        &sandbox.hub(),
        &[
            json!({"name": "evil/one", "latest": "1.0.0", "description": long}),
            json!({"name": "evil/two", "latest": "1.0.0", "description": long}),
            json!({"name": "ops/kafka", "latest": "1.0.0"}),
        ],
    );
    let run = sandbox.mu(&["search", "kafka"]).ok();
    run.says(&["of `hub.mu.com/` has lines that describe no package, or are longer than 65536 bytes, which were skipped (2)"]);
    assert_eq!(
        ids(&sandbox.mu(&["search", "kafka", "--json"]).ok().json()),
        ["hub.mu.com/ops/kafka"]
    );
}

#[test]
fn capabilities_of_a_hub_that_was_never_asked_are_not_known_offline() {
    let sandbox = Sandbox::new();
    sandbox.hub_is_at("https://hub.acme.example/");
    let error = sandbox.mu(&["search", "--provides", "--offline", "--json"]).fails_with("offline");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("catalog of `https://hub.acme.example/`"), "{message}");
}

#[test]
fn who_provides_a_capability_and_which_there_are() {
    let package = |name: &str, version: &str, provides: &str| {
        format!("name: {name}\nversion: {version}\ndescription: Machines\nprovides: [{provides}]\n")
    };
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../own"]).ok();
    for manifest in [
        package("aws/ec2", "1.0.0", "compute.mu.com/v1/VM, net.mu.com/v1/Port"),
        package("aws/ec2", "1.1.0", "compute.mu.com/v1/VM"),
        package("gcp/vm", "2.0.0", "compute.mu.com/v1/VM"),
    ] {
        sandbox.write("Mu.yaml", &manifest);
        sandbox.mu(&["publish", "--to", "../own"]).ok();
    }
    std::fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours");
    let nginx = Nginx::serve(&sandbox.path("own"), "");
    for place in [format!("file://{}/", sandbox.path("own").display()), nginx.url("")] {
        sandbox.hub_is_at(&place);
        let run = sandbox.mu(&["search", "--provides", "compute.mu.com/v1/VM"]).ok();
        let expected =
            "package  newest  description\naws/ec2  1.1.0   Machines\ngcp/vm   2.0.0   Machines\n";
        assert_eq!(run.stdout, expected, "{place}");
        let ports = ["search", "--provides", "net.mu.com/v1/Port", "--json"];
        let json = sandbox.mu(&ports).ok().json();
        assert_eq!(json["packages"][0]["latest"], "1.0.0", "the newest version that provides it");
        let json = sandbox.mu(&["search", "--provides", "--json"]).ok().json();
        let expected: &[&str] = match place.starts_with("file:") {
            true => &["compute.mu.com/v1/VM", "net.mu.com/v1/Port"],
            // A catalog only has newest versions.
            false => &["compute.mu.com/v1/VM"],
        };
        assert_eq!(json["capabilities"], json!(expected), "{place}");
    }
    let run = sandbox.mu(&["search", "compute.mu.com/v1/VM"]).ok();
    run.says(&["`mu search --provides compute.mu.com/v1/VM`"]);
    sandbox.mu(&["search", "--provides", "a.b/v1/None"]).ok().says(&["no package provides"]);
    sandbox.mu(&["search", "--provides", "VM", "--json"]).fails_with("usage");
}
