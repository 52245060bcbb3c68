//! `mu versions`, and which version app versions and beginnings of versions lead to.

use serde_json::{Value, json};

use mu_testing::{Artifact, Bundle, Chart, Charts, DockerRegistry, Operators};

use crate::support::git::{HttpServer, Origin};
use crate::support::{Package, Sandbox};

/// The operator for Kafka: app version and revision are one version.
const COMPOSITE: [&str; 8] = [
    "2.3.0-1.0.0",
    "2.3.0-1.1.0",
    "2.3.0-1.1.1",
    "2.3.1-1.2.0",
    "3.0.0-1.0.0",
    "3.0.0-1.1.0",
    "3.0.1-1.1.0",
    "3.1.1-1.0.0",
];

/// The same operator with its own versions, in the order of their publication: version, app version.
const SINGLE: [(&str, &str); 9] = [
    ("1.0.0", "2.3.0"),
    ("2.0.0", "3.0.0"),
    ("2.1.0", "3.0.0"),
    ("1.1.0", "2.3.0"),
    ("1.1.1", "2.3.1"),
    ("2.2.0", "3.0.0"),
    ("1.2.0", "2.3.1"),
    ("2.2.1", "3.0.0"),
    ("1.2.1", "2.3.1"),
];

fn composite() -> Sandbox {
    let sandbox = Sandbox::new();
    for version in COMPOSITE {
        let (app, revision) = version.split_once('-').expect("is composite");
        // The archive is named by both, as the layout of hubs says.
        let package = Package::new("ops/kafka", version)
            .key("version", json!(revision))
            .key("appVersion", json!(app))
            .key("versioning", json!("composite"));
        sandbox.publish(&[package]);
    }
    sandbox
}

fn single() -> Sandbox {
    let sandbox = Sandbox::new();
    for (version, app) in SINGLE {
        sandbox.publish(&[Package::new("ops/kafka", version).key("appVersion", json!(app))]);
    }
    sandbox
}

fn shown(json: &Value) -> Vec<String> {
    let versions = json["versions"].as_array().expect("is a list");
    versions
        .iter()
        .map(|version| version["version"].as_str().expect("is text").to_owned())
        .collect()
}

/// What `mu versions` shows last, and what `mu resolve` and `mu get` choose.
#[track_caller]
fn leads_to(sandbox: &Sandbox, app: &str, version: &str, expected: &str) {
    let mut filters = vec!["versions", "ops/kafka", "--json"];
    if !app.is_empty() {
        filters.extend(["--app-version", app]);
    }
    if !version.is_empty() {
        filters.extend(["--version", version]);
    }
    let listed = shown(&sandbox.mu(&filters).ok().json());
    assert_eq!(listed.last().map(String::as_str), Some(expected), "{filters:?}");
    let reference =
        if version.is_empty() { "ops/kafka".to_owned() } else { format!("ops/kafka#{version}") };
    for command in ["resolve", "get"] {
        let mut arguments = vec![command, &reference, "--json"];
        if !app.is_empty() {
            arguments.extend(["--app-version", app]);
        }
        let json = sandbox.mu(&arguments).ok().json();
        assert_eq!(json["packages"][0]["version"], expected, "{arguments:?}");
    }
    sandbox.mu(&["remove", "ops/kafka"]).ok();
}

#[test]
fn kafka_with_composite_versions() {
    let sandbox = composite();
    for (app, version, expected) in [
        ("", "", "3.1.1-1.0.0"),
        ("2.3.0", "", "2.3.0-1.1.1"),
        ("3.0.0", "", "3.0.0-1.1.0"),
        ("", "3.0.0-1.0.0", "3.0.0-1.0.0"),
        ("", "3", "3.1.1-1.0.0"),
        ("", "2.3", "2.3.1-1.2.0"),
        ("", "2.3.1", "2.3.1-1.2.0"),
    ] {
        leads_to(&sandbox, app, version, expected);
    }
    let run = sandbox.mu(&["versions", "ops/kafka", "--app-version", "2.3"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu versions ops/kafka --app-version 2.3
    version      app version
    2.3.0-1.0.0  2.3.0
    2.3.0-1.1.0  2.3.0
    2.3.0-1.1.1  2.3.0
    2.3.1-1.2.0  2.3.1
    [exit 0]
    ");
}

#[test]
fn kafka_with_versions_of_its_own() {
    let sandbox = single();
    for (app, version, expected) in [
        ("", "", "2.2.1"),
        ("2.3.0", "", "1.1.0"),
        ("3.0.0", "", "2.2.1"),
        ("", "2.2.0", "2.2.0"),
        ("3.0.0", "2.2.0", "2.2.0"),
        ("3", "", "2.2.1"),
        ("2.3", "", "1.2.1"),
        ("2.3.1", "", "1.2.1"),
    ] {
        leads_to(&sandbox, app, version, expected);
    }
    let run = sandbox.mu(&["versions", "ops/kafka"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu versions ops/kafka
    version  app version
    1.0.0    2.3.0
    1.1.0    2.3.0
    1.1.1    2.3.1
    1.2.0    2.3.1
    1.2.1    2.3.1
    2.0.0    3.0.0
    2.1.0    3.0.0
    2.2.0    3.0.0
    2.2.1    3.0.0
    [exit 0]
    ");
}

#[test]
fn versions_with_all_that_is_known_of_them() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("aws/ec2", "1.10.0")
            .key("channels", json!(["stable", "fast"]))
            .key("tags", json!(["lts"]))
            .key("published", json!("2025-06-11T12:00:00Z"))
            .key("muVersion", json!(">=0.1"))
            .key("apiVersion", json!("mu/v1")),
        Package::new("aws/ec2", "1.2.0").key("yanked", json!("\u{1b}[31mloses data")),
        Package::new("aws/ec2", "2.0.0-beta.1").key("channels", json!(["fast"])),
        Package::new("aws/ec2", "2.0.0")
            .key("muVersion", json!(">=9"))
            .key("apiVersion", json!("mu/v2")),
    ]);
    sandbox.mu(&["get", "aws/ec2"]).ok();
    let run = sandbox.mu(&["versions", "aws/ec2"]).ok();
    insta::assert_snapshot!(run.shown(), @r"
    $ mu versions aws/ec2
    version       published   channels      note
    1.2.0                                   yanked: \u{1b}[31mloses data
    1.10.0        2025-06-11  stable, fast  tagged lts; in Mu.lock
    2.0.0-beta.1              fast          prerelease
    2.0.0                                   needs the manifest format mu/v2; needs mu >=9
    [exit 0]
    ");
    let json = sandbox.mu(&["versions", "aws/ec2", "--json"]).ok().json();
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).expect("prints"), @r#"
    {
      "id": "hub.mu.com/aws/ec2",
      "source": "hub+file://[DIR]/hub/",
      "versions": [
        {
          "version": "1.2.0",
          "appVersion": null,
          "prerelease": false,
          "channels": [],
          "tags": [],
          "yanked": "\u001b[31mloses data",
          "deprecated": false,
          "published": null,
          "commit": null,
          "apiVersion": null,
          "muVersion": null,
          "usable": true,
          "reasons": [],
          "movedTo": null,
          "locked": false
        },
        {
          "version": "1.10.0",
          "appVersion": null,
          "prerelease": false,
          "channels": [
            "stable",
            "fast"
          ],
          "tags": [
            "lts"
          ],
          "yanked": false,
          "deprecated": false,
          "published": "2025-06-11T12:00:00Z",
          "commit": null,
          "apiVersion": "mu/v1",
          "muVersion": ">=0.1",
          "usable": true,
          "reasons": [],
          "movedTo": null,
          "locked": true
        },
        {
          "version": "2.0.0-beta.1",
          "appVersion": null,
          "prerelease": true,
          "channels": [
            "fast"
          ],
          "tags": [],
          "yanked": false,
          "deprecated": false,
          "published": null,
          "commit": null,
          "apiVersion": null,
          "muVersion": null,
          "usable": true,
          "reasons": [],
          "movedTo": null,
          "locked": false
        },
        {
          "version": "2.0.0",
          "appVersion": null,
          "prerelease": false,
          "channels": [],
          "tags": [],
          "yanked": false,
          "deprecated": false,
          "published": null,
          "commit": null,
          "apiVersion": "mu/v2",
          "muVersion": ">=9",
          "usable": false,
          "reasons": [
            "needs the manifest format mu/v2",
            "needs mu >=9"
          ],
          "movedTo": null,
          "locked": false
        }
      ],
      "total": 4
    }
    "#);
    for (arguments, expected) in [
        (&["--channel", "fast"][..], &["1.10.0", "2.0.0-beta.1"][..]),
        (&["--mu-version", "0.1.0"], &["1.2.0", "1.10.0", "2.0.0-beta.1"]),
        (&["--api-version", "mu/v2"], &["2.0.0"]),
        (&["--api-version", "mu/v1"], &["1.2.0", "1.10.0", "2.0.0-beta.1"]),
        (&["--version", "1"], &["1.2.0", "1.10.0"]),
        (&["--version", "1."], &["1.2.0", "1.10.0"]),
        (&["--version", "1", "--channel", "fast"], &["1.10.0"]),
        (&["--app-version", "1"], &[]),
    ] {
        let mut all = vec!["versions", "aws/ec2", "--json"];
        all.extend(arguments);
        assert_eq!(shown(&sandbox.mu(&all).ok().json()), expected, "{arguments:?}");
    }
    let ranged = sandbox.mu(&["versions", "aws/ec2#^1.3", "--json"]).ok().json();
    assert_eq!(shown(&ranged), ["1.10.0"]);
    let tagged = sandbox.mu(&["versions", "aws/ec2#lts", "--json"]).ok().json();
    assert_eq!(shown(&tagged), ["1.10.0"]);
    let run = sandbox.mu(&["versions", "aws/ec2", "--version", "7"]).ok();
    assert_eq!(run.stdout, "");
    run.says(&["none of the 4 versions of `aws/ec2` matches"]);
}

#[test]
fn app_versions_that_are_no_numbers_are_words() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("os/debian", "1.0.0").key("appVersion", json!("Bookworm 12")),
        Package::new("os/debian", "1.1.0").key("appVersion", json!("12")),
        Package::new("os/debian", "1.2.0").key("appVersion", json!("12.4")),
    ]);
    for (app, expected) in [("12", "1.1.0"), ("Bookworm 12", "1.0.0"), ("12.4", "1.2.0")] {
        let json =
            sandbox.mu(&["versions", "os/debian", "--app-version", app, "--json"]).ok().json();
        assert_eq!(shown(&json), [expected], "{app}");
        let json =
            sandbox.mu(&["resolve", "os/debian", "--app-version", app, "--json"]).ok().json();
        assert_eq!(json["packages"][0]["version"], expected, "{app}");
    }
    sandbox.mu(&["resolve", "os/debian", "--app-version", "Bookworm"]).fails();
}

#[test]
fn what_is_not_there_is_said_with_where_it_was_looked_for() {
    let sandbox = Sandbox::new();
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["versions", "aws/ec2"]).ok();
    let run = sandbox.mu(&["versions", "aws/ec3"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu versions aws/ec3
    error: there is no package `aws/ec3`
      looked at file://[DIR]/hub/hub.json
      looked at file://[DIR]/hub/index/aws/ec3.jsonl

    hint: did you mean `aws/ec2`?
    hint: `mu search ec3` looks for packages by words
    [exit 1]
    ");
    sandbox.mu(&["versions", "aws/ec3", "--json"]).fails_with("not-found");
    sandbox.mu(&["versions", "aws/ec2", "--version", ">>1", "--json"]).fails_with("usage");
    sandbox.mu(&["versions", "aws/ec2", "--mu-version", "new", "--json"]).fails_with("usage");
    sandbox.place("work/acme/web", &Package::new("acme/web", "0.1.0"));
    sandbox.mu(&["versions", "acme/web"]).fails().says(&["the workspace has it in `acme/web`"]);
}

#[test]
fn a_repository_has_the_versions_of_its_tags_and_what_their_manifests_say() {
    let origin = Origin::new("ops/kafka.git");
    for (tag, manifest) in [
        ("v1.0.0", "appVersion: 2.3.0\nchannels: [stable]\n"),
        ("v1.1.0", "appVersion: 2.30.0\n"),
        ("v1.2.0", "appVersion: 2.3.1\nmuVersion: \">=9\"\n"),
        ("v1.3.0", "colour: [\n"),
    ] {
        origin.commit(&[("Mu.yaml", &format!("name: ops/kafka\n{manifest}"))]);
        origin.git(&["tag", tag]);
    }
    let server = HttpServer::start(origin.root());
    let mut sandbox = Sandbox::new();
    sandbox.replace(&server.host(), "HOST");
    let reference = format!("git+{}ops/kafka.git", server.root());
    let run = sandbox.mu(&["versions", &reference]).ok();
    insta::assert_snapshot!(format!("{}{}", run.stdout, run.stderr), @"
    version  app version  published   commit   channels  note
    1.0.0    2.3.0        2026-01-01  70ff94b  stable
    1.1.0    2.30.0       2026-01-01  22e7424
    1.2.0    2.3.1        2026-01-01  7ba1026            needs mu >=9
    1.3.0                 2026-01-01  6e1762f
    warning: the manifest of `HOST/ops/kafka` 1.3.0 cannot be read, so only its version is shown
    ");
    let json = sandbox.mu(&["versions", &reference, "--app-version", "2.3", "--json"]).ok().json();
    assert_eq!(shown(&json), ["1.0.0", "1.2.0"]);
    let json = sandbox.mu(&["versions", &reference, "--channel", "stable", "--json"]).ok().json();
    assert_eq!(shown(&json), ["1.0.0"]);
}

#[test]
fn a_folder_has_the_version_of_its_manifest() {
    let sandbox = Sandbox::new();
    let package = Package::new("ops/kafka", "1.0.0").manifest("appVersion: 2.3.0\n");
    sandbox.place("beside", &package);
    let run = sandbox.mu(&["versions", "../beside"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu versions ../beside
    version  app version
    1.0.0    2.3.0
    [exit 0]
    ");
    sandbox.mu(&["versions", "../nowhere"]).fails().says(&["there is no folder `[DIR]/nowhere`"]);
}

#[test]
fn a_revision_narrows_wherever_an_app_version_does() {
    for (sandbox, chosen) in [(composite(), "2.3.0-1.1.0"), (single(), "1.1.0")] {
        let of = ["--app-version", "2.3.0", "--revision", "1.1.0"];
        let listed = sandbox.mu(&[&["versions", "ops/kafka", "--json"][..], &of].concat());
        assert_eq!(shown(&listed.ok().json()), [chosen]);
        for command in ["resolve", "get"] {
            let json = sandbox.mu(&[&[command, "ops/kafka", "--json"][..], &of].concat());
            assert_eq!(json.ok().json()["packages"][0]["version"], chosen, "{command}");
        }
        let none = ["get", "ops/kafka", "--app-version", "2.3.0", "--revision", "9"];
        let run = sandbox.mu(&none).fails();
        run.says(&["has no version of app version 2.3.0 and of revision 9", "mu versions"]);
        let wrong = ["resolve", "ops/kafka", "--revision", "beta1", "--json"];
        sandbox.mu(&wrong).fails_with("usage");
    }
}

#[test]
fn an_update_leaves_an_app_versions_line_not_unsaid_and_can_stay_in_it() {
    let sandbox = single();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 0.1.0\ndependencies:\n  - ops/kafka#>=1\n");
    sandbox.mu(&["get", "ops/kafka#1.1.0"]).ok();
    sandbox.mu(&["remove", "ops/kafka"]).ok();
    sandbox
        .write("Mu.yaml", "name: acme/web\nversion: 0.1.0\ndependencies:\n  - ops/kafka#1.1.0\n");
    sandbox.mu(&["get"]).ok();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 0.1.0\ndependencies:\n  - ops/kafka#>=1\n");
    let stays = sandbox.mu(&["update", "ops/kafka", "--app-version", "2.3"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.2.1", "{}", stays.shown());
    assert!(!stays.stderr.contains("instead of"), "{}", stays.shown());
    insta::assert_snapshot!(sandbox.mu(&["update"]).ok().shown(), @"
    $ mu update
    ~ ops/kafka 1.2.1 → 2.2.1
    note: ops/kafka packages 3.0.0 instead of 2.3.1: `mu update ops/kafka --app-version 2.3` stays with that
    installed 1 package (1 downloaded, 0 from cache)
    [exit 0]
    ");
    let back = sandbox.mu(&["update", "ops/kafka", "--app-version", "2.3", "--json"]).ok().json();
    assert_eq!(back["packages"][0]["version"], "1.2.1");
    let moved = json!([{ "id": "hub.mu.com/ops/kafka", "from": "3.0.0", "to": "2.3.1" }]);
    assert_eq!(back["appMoves"], moved);
    sandbox.mu(&["update", "--app-version", "2.3", "--json"]).fails_with("usage");
}

#[test]
fn an_upgrade_goes_to_an_app_version_and_raises_the_bound() {
    for resolution in ["highest", "minimal"] {
        let mut sandbox = single();
        sandbox.set("MU_RESOLUTION", resolution);
        let manifest = "name: acme/web\nversion: 0.1.0\ndependencies:\n  - ops/kafka#^1.0.0\n";
        sandbox.write("Mu.yaml", manifest);
        sandbox.mu(&["get"]).ok();
        let to = ["upgrade", "ops/kafka", "--app-version", "3.0", "--revision", "2.1"];
        let run = sandbox.mu(&to).ok();
        assert_eq!(sandbox.lock()["packages"][0]["version"], "2.1.0", "{}", run.shown());
        let written = sandbox.read("Mu.yaml");
        assert!(written.contains("ops/kafka#^2.1.0"), "{resolution}: {written}");
    }
}

#[test]
fn entries_whose_version_is_not_one_are_told_with_the_reason() {
    let mut sandbox = Sandbox::new();
    // A repository of charts.
    let mut charts = Charts::new(&sandbox.path("charts"));
    charts.add(&Chart::new("web", "0.4.1"));
    let odd = "  web:\n  - {name: web, version: 0.4.1, urls: [web-0.4.1.tgz]}\n  - {name: web, version: banana, urls: [a.tgz]}\n  - {name: web, version: [a], urls: [a.tgz]}\n  - {name: web, urls: [a.tgz]}\n  only:\n  - {name: only, version: 1.2.3.4, urls: [a.tgz]}\n";
    charts.index(&format!("apiVersion: v1\nentries:\n{odd}"));
    // A catalog of operators.
    let mut operators = Operators::new(&sandbox.path("catalog"));
    operators.package("web", "stable");
    operators.bundle(&Bundle::new("web", "1.0.0"));
    operators.bundle(&Bundle::new("web", "later"));
    operators.channel("web", "stable", &[json!("web.v1.0.0"), json!("web.vlater")]);
    operators.add("web", json!({"schema": "olm.bundle", "package": "web", "name": "nameless"}));
    // A registry with tags.
    let server = DockerRegistry::start();
    sandbox.replace(&server.host(), "[HOST]");
    for tag in ["1.0.0", "1.28", "1.2.3.4", "edge"] {
        Artifact::chart(&Chart::new("web", "1.0.0")).push(&server.host(), "acme/web", tag);
    }
    // A hub.
    sandbox.hub().release("acme/web", "1.0.0");
    let file = sandbox.path("hub/index/acme/web.jsonl");
    let lines = std::fs::read_to_string(&file).expect("is there");
    let odd = lines.replace(r#""version":"1.0.0""#, r#""version":"newest""#);
    std::fs::write(&file, lines + &odd).expect("can be written");
    sandbox.write(
        ".mu/workspace.yaml",
        "registries:\n  charts.example/: {provider: helm, url: ../charts}\n  operators.example/: {provider: olm, url: ../catalog}\n",
    );
    let missing = "line 7 of the index has an entry without `version`";
    let registry = format!("oci://{}/acme/web", server.host());
    for (package, listed, reasons) in [
        (
            "charts.example/web",
            &["0.4.1"][..],
            &["`banana` is not a version", "`version` must be text", missing][..],
        ),
        ("charts.example/only", &[], &["`1.2.3.4` is not a version"]),
        (
            "operators.example/web",
            &["1.0.0"],
            &["`later` is not a version", "nothing says the version of `nameless`"],
        ),
        (
            &registry,
            &["1.0.0"],
            &[
                "`1.2.3.4` is not a version",
                "`1.28` is not a version; `versions: lenient` in the registry's settings makes it one",
            ],
        ),
        ("acme/web", &["1.0.0"], &["`newest` is not a version"]),
    ] {
        let json = sandbox.mu(&["versions", package, "--json"]).ok().json();
        assert_eq!(shown(&json), listed, "{json}");
        let left_out = json["leftOut"].as_array().unwrap_or_else(|| panic!("{json}"));
        let told: Vec<&str> =
            left_out.iter().map(|one| one["reason"].as_str().expect("is text")).collect();
        assert_eq!(told, reasons, "{json}");
        let words = reasons.join("; ");
        sandbox.mu(&["versions", package]).ok().says(&[&format!("left out: {words}")]);
        let run = sandbox.mu(&["get", &format!("{package}#^9")]).fails();
        run.says(&[&format!("    left out: {words}")]);
        let run = sandbox.mu(&["info", package]);
        match listed {
            [] => run.fails().says(&["says which entries of its registry are not versions"]),
            _ => run.ok().says(&[&format!("left out     {words}")]),
        };
    }
    // Where nothing is left out, nothing is said.
    sandbox.hub().release("acme/plain", "1.0.0");
    sandbox.mu(&["versions", "acme/plain"]).ok().does_not_say(&["left out"]);
    let json = sandbox.mu(&["versions", "acme/plain", "--json"]).ok().json();
    assert!(json.get("leftOut").is_none(), "{json}");
}
