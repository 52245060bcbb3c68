//! What is wrong with locked packages: versions that their hub has withdrawn, and advisories in feeds of every kind, which are read whole
//! or are an error.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use mu_testing::{Artifact, Chart, Charts, Nginx, ZipEntry, gzip, tar_gz, write, zip};
use serde_json::{Value, json};

use super::trust::Registry;
use crate::support::git::{HttpServer, Origin};
use crate::support::{Package, Sandbox};

/// The lines that name a feed, in the settings of the workspace.
const FOLDER: &str = "advisories: [./advisories]\n";

/// An advisory about versions of `aws/ec2` below 1.2.0.
fn advisory(id: &str) -> String {
    json!({
        "schema_version": "1.7.0",
        "id": id,
        "modified": "2026-01-01T00:00:00Z",
        "summary": "the port is open",
        "affected": [{
            "package": { "ecosystem": "mu", "name": "hub.mu.com/aws/ec2" },
            "ranges": [{ "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": "1.2.0" }] }],
        }],
    })
    .to_string()
}

/// A workspace that has `aws/ec2` 1.1.0, and a feed in a folder with this advisory.
fn workspace(id: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/ec2 1.0.0:\naws/ec2 1.1.0:\naws/log 1.0.0:");
    sandbox.asks_for(&["aws/ec2#^1", "aws/log"]);
    sandbox.mu(&["get"]).ok();
    sandbox.write(&format!("advisories/2026/{id}.json"), &advisory(id));
    sandbox.write(".mu/workspace.yaml", FOLDER);
    sandbox
}

fn findings(sandbox: &Sandbox) -> Value {
    sandbox.mu(&["audit", "--json"]).fails_with("untrusted")["details"]["findings"].clone()
}

#[test]
fn without_a_feed_it_says_so_and_looks_for_what_was_withdrawn() {
    let sandbox = workspace("ACME-1");
    sandbox.write(".mu/workspace.yaml", "");
    sandbox.mu(&["audit"]).ok().says(&[
        "no feed: the settings name none under `advisories`",
        "`mu images` lists what scanners know",
        "2 packages: nothing was withdrawn",
    ]);
    assert_eq!(
        sandbox.mu(&["audit", "--json"]).ok().json(),
        json!({ "findings": [], "feeds": [] })
    );
    sandbox.write(".mu/workspace.yaml", "advisories: [hub]\n");
    sandbox.mu(&["audit"]).ok().says(&["no feed: hubs have no advisories of their own yet"]);
    // What the hub says now, whatever it said when it was locked.
    sandbox.mu(&["yank", "aws/ec2#1.1.0", "--reason", "loses data", "--to", "../hub"]).ok();
    sandbox.mu(&["audit"]).fails().says(&[
        "yanked",
        "the version was withdrawn: loses data",
        "1 finding about 1 package",
    ]);
    let found = findings(&sandbox);
    assert_eq!(found[0]["id"], "yanked:hub.mu.com/aws/ec2");
    assert_eq!((&found[0]["fixed"], &found[0]["version"]), (&Value::Null, &json!("1.1.0")));
}

#[test]
fn what_its_registry_has_changed_is_found() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    write(&sandbox.path("home/.mu"), "config.yaml", "");
    registry.push("web", "1.0.0");
    sandbox.asks_for(&[&registry.chart("web#^1")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["audit"]).ok();
    let other = Chart::new("web", "1.0.0").file("values.yaml", "a: other\n");
    Artifact::chart(&other).push(&registry.host(), "charts/web", "1.0.0");
    let found = findings(sandbox);
    assert_eq!(found[0]["id"], "changed:[HOST]/charts/web", "{found}");
    assert!(found[0]["why"].as_str().is_some_and(|why| why.contains("and Mu.lock has")), "{found}");
    sandbox.mu(&["audit", "--offline"]).ok();
}

#[test]
fn what_its_registry_does_not_have_any_more_is_gone() {
    let sandbox = workspace("ACME-1");
    sandbox.write(".mu/workspace.yaml", "");
    let index = sandbox.path("hub/index/aws/ec2.jsonl");
    let index = if index.exists() {
        index
    } else {
        let found = walkdir::WalkDir::new(sandbox.path("hub/index")).into_iter().flatten();
        found
            .map(|one| one.path().to_owned())
            .find(|path| path.to_string_lossy().contains("ec2"))
            .expect("is there")
    };
    let text = fs::read_to_string(&index).expect("is there");
    let kept = text.lines().filter(|line| !line.contains("\"1.1.0\""));
    fs::write(&index, kept.map(|line| format!("{line}\n")).collect::<String>()).expect("can be");
    let found = findings(&sandbox);
    assert_eq!(found[0]["id"], "gone:hub.mu.com/aws/ec2", "{found}");
    fs::remove_file(&index).expect("is there");
    let found = findings(&sandbox);
    assert_eq!(found[0]["id"], "gone:hub.mu.com/aws/ec2", "{found}");
}

#[test]
fn advisories_in_a_folder_are_matched_by_ecosystem_and_purl() {
    let sandbox = workspace("ACME-1");
    let found = findings(&sandbox);
    let expected = json!([{
        "package": "hub.mu.com/aws/ec2",
        "version": "1.1.0",
        "id": "ACME-1",
        "fixed": "1.2.0",
        "why": "the port is open",
        "feed": "advisories",
    }]);
    assert_eq!(found, expected);
    // As the bill of materials names it.
    let bill: Value = serde_json::from_str(&sandbox.mu(&["sbom"]).ok().stdout).expect("is JSON");
    let purl = bill["components"].as_array().expect("is a list").iter();
    let mut purl = purl.filter_map(|one| one["purl"].as_str()).filter(|purl| purl.contains("log"));
    let by_purl = json!({
        "id": "ACME-2",
        "affected": [{ "package": { "purl": purl.next().expect("is there") }, "versions": ["1.0.0"] }],
    });
    sandbox.write("advisories/ACME-2.json", &by_purl.to_string());
    let found = findings(&sandbox);
    assert_eq!(found[1]["id"], "ACME-2");
    assert_eq!(found[1]["package"], "hub.mu.com/aws/log");
    // One that was withdrawn is none.
    let withdrawn =
        by_purl.to_string().replacen('{', "{\"withdrawn\":\"2026-01-02T00:00:00Z\",", 1);
    sandbox.write("advisories/ACME-2.json", &withdrawn);
    assert_eq!(findings(&sandbox).as_array().map(Vec::len), Some(1));
}

#[test]
fn packages_of_repositories_and_registries_are_matched_by_commit_and_purl() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    write(&sandbox.path("home/.mu"), "config.yaml", "");
    registry.push("web", "1.0.0");
    registry.push("db", "1.0.0");
    let mut origin = Origin::new("acme/infra.git");
    let before = origin.commit(&[("Mu.yaml", "name: infra\n")]);
    let commit = origin.release("v1.0.0");
    origin.add("acme/net.git");
    let other = origin.release("v1.0.0");
    let server = HttpServer::start(origin.root());
    let settings = |feed: &str| {
        let place = format!("github.com/: {{provider: git, url: \"{}\"}}", server.root());
        sandbox.write(".mu/workspace.yaml", &format!("registries: {{{place}}}\n{feed}"));
    };
    settings("");
    sandbox.asks_for(&[
        &registry.chart("web#^1"),
        &registry.chart("db#^1"),
        "github.com/acme/net#^1",
        &format!("{}acme/infra.git#^1", server.root()),
    ]);
    sandbox.mu(&["get"]).ok();
    settings(FOLDER);
    let commits = |id: &str, introduced: &str| {
        let repository = format!("{}acme/infra.git", server.root());
        let events = [json!({ "introduced": introduced })];
        json!({ "id": id, "affected": [{
            "ranges": [{ "type": "GIT", "repo": repository, "events": events }],
        }] })
    };
    let purl = |id: &str, purl: &str, versions: &[&str]| json!({ "id": id, "affected": [{ "package": { "purl": purl }, "versions": versions }] });
    let place = format!("{}%2Fcharts%2Fweb", registry.host().replace(':', "%3A"));
    for (id, advisory) in [
        ("GIT-1", commits("GIT-1", &commit)),
        // Whether it comes after that one, the history would say, and nobody reads it.
        ("GIT-2", commits("GIT-2", &before)),
        ("HUB-1", purl("HUB-1", "pkg:github/acme/net", &["1.0.0"])),
        ("HUB-2", purl("HUB-2", &format!("pkg:github/acme/net@{other}"), &["2.0.0"])),
        ("OCI-1", purl("OCI-1", &format!("pkg:oci/web?repository_url={place}"), &["1.0.0"])),
        // The name alone says too little, and another repository is another package.
        ("OCI-2", purl("OCI-2", "pkg:oci/db?repository_url=ghcr.io%2Facme%2Fdb", &["1.0.0"])),
    ] {
        sandbox.write(&format!("advisories/{id}.json"), &advisory.to_string());
    }
    let found = sandbox.mu(&["audit", "--json"]).fails_with("untrusted")["details"].clone();
    let ids = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.map(|one| one["id"].as_str().expect("is text").to_owned()).collect()
    };
    let mut findings = ids(&found["findings"]);
    findings.sort();
    assert_eq!(findings, ["GIT-1", "HUB-1", "OCI-1"], "{found:#}");
    assert_eq!(ids(&found["undecided"]), ["GIT-2"], "{found:#}");
    // As the bill of materials names them.
    let bill: Value = serde_json::from_str(&sandbox.mu(&["sbom"]).ok().stdout).expect("is JSON");
    let purls = bill["components"].as_array().expect("is a list").iter();
    let purls = purls.filter_map(|one| one["purl"].as_str());
    for text in purls.filter(|purl| purl.contains("/db") || purl.contains("net")) {
        sandbox.write("advisories/OCI-2.json", &purl("OCI-2", text, &["1.0.0"]).to_string());
        let found = findings_of(sandbox);
        assert!(found.iter().any(|id| id == "OCI-2"), "{text}: {found:?}");
    }
}

/// The ids of what is found.
fn findings_of(sandbox: &Sandbox) -> Vec<String> {
    let found = findings(sandbox);
    let list = found.as_array().expect("is a list").iter();
    list.map(|one| one["id"].as_str().expect("is text").to_owned()).collect()
}

#[test]
fn each_place_is_asked_for_one_listing() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    write(&sandbox.path("home/.mu"), "config.yaml", "");
    registry.push("web", "1.0.0");
    sandbox.offer("aws/ec2 1.0.0:\naws/ec2 1.1.0:\naws/log 1.0.0:");
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    charts.add(&Chart::new("db", "1.0.0"));
    let tool = "name: acme/tool\nversion: 1.2.0\n".as_bytes().to_vec();
    let archive = tar_gz([("tool/Mu.yaml".to_owned(), ('f', tool))]);
    write(&sandbox.path("www"), "dl/tool-1.2.tgz", &archive);
    let origin = Origin::new("acme/infra.git");
    origin.release("v1.0.0");
    let server = HttpServer::start(origin.root());
    let (hub, www) =
        (Nginx::serve(&sandbox.path("hub"), ""), Nginx::serve(&sandbox.path("www"), ""));
    sandbox.hub_is_at(&hub.url(""));
    sandbox.asks_for(&[
        "aws/ec2#^1",
        "aws/log",
        &registry.chart("web#^1"),
        &format!("helm+{}#^1", www.url("stable/db")),
        &www.url("dl/tool-1.2.tgz"),
        &format!("{}acme/infra.git#^1", server.root()),
    ]);
    sandbox.mu(&["get"]).ok();
    let before = [registry.server.log().len(), hub.log().len(), www.log().len()];
    let asked = server.requests().len();
    sandbox.mu(&["audit"]).ok();
    let logs = [registry.server.log(), hub.log(), www.log()];
    let [registry, hub, www] = [0, 1, 2].map(|at| logs[at][before[at]..].to_vec());
    let git = server.requests().split_off(asked);
    let count = |log: &[String], part: &str| log.iter().filter(|line| line.contains(part)).count();
    for (log, part) in [
        (&registry, "/tags/list"),
        (&hub, "ec2"),
        (&hub, "log"),
        (&hub, "hub.json"),
        (&www, "index.yaml"),
        (&www, "tool-1.2.tgz"),
        (&git, "info/refs"),
    ] {
        assert_eq!(count(log, part), 1, "{part}: {log:#?}");
    }
}

#[test]
fn a_feed_that_cannot_be_read_is_an_error_and_never_nothing_found() {
    let sandbox = workspace("ACME-1");
    sandbox.mu(&["update", "aws/ec2"]).ok();
    sandbox.write("advisories/ACME-9.json", "{\"id\": 1");
    let error = sandbox.mu(&["audit", "--json"]).fails_with("manifest");
    assert!(error.to_string().contains("ACME-9.json"), "{error}");
    // What the others say is there all the same.
    assert_eq!(error["details"]["findings"][0]["id"], Value::Null);
    fs::remove_file(sandbox.path("work/advisories/ACME-9.json")).expect("is there");
    std::os::unix::fs::symlink("/etc/hostname", sandbox.path("work/advisories/a.json"))
        .expect("can be made");
    let error = sandbox.mu(&["audit", "--json"]).fails_with("untrusted");
    assert!(error.to_string().contains("is a link"), "{error}");
    fs::remove_dir_all(sandbox.path("work/advisories")).expect("is there");
    let error = sandbox.mu(&["audit", "--json"]).fails_with("io");
    assert!(error.to_string().contains("cannot read the advisories in `advisories`"), "{error}");
    for (settings, part) in [
        ("advisories: [http://acme.example/all.zip]\n", "advisories come by https"),
        ("advisories: [https://acme.example/]\n", "the ending of this URL"),
        ("advisories: [../elsewhere]\n", "not a folder below the workspace's root"),
        ("audit: {ignore: {A: soon}}\n", "does not say until when"),
        ("audit: {ignore: {A: until 2026-12-31}}\n", "gives no reason"),
    ] {
        sandbox.write(".mu/workspace.yaml", settings);
        sandbox.mu(&["audit"]).fails().says(&[part]);
    }
}

#[test]
fn files_on_web_servers_are_read_in_each_form_and_asked_for_again_only_if_they_changed() {
    let sandbox = workspace("ACME-1");
    let line = advisory("ACME-1");
    let pretty: Value = serde_json::from_str(&line).expect("is JSON");
    let other =
        json!({ "id": "ACME-2", "affected": [{ "package": { "ecosystem": "npm", "name": "x" } }] });
    let lines = format!("{line}\n\n{other}\n");
    let entry = |name: &str, text: String| ZipEntry::new(name, 'f', text);
    let archive = zip(&[
        entry("ACME-1.json", format!("{pretty:#}")),
        entry("b/ACME-2.json", other.to_string()),
    ]);
    for (name, bytes) in [
        ("a.jsonl", lines.clone().into_bytes()),
        ("a.jsonl.gz", gzip(lines.as_bytes())),
        ("all.zip", archive),
    ] {
        let www = sandbox.path("www");
        write(&www, name, &bytes);
        let nginx = Nginx::serve(&www, "");
        let settings =
            |url: &str| sandbox.write(".mu/workspace.yaml", &format!("advisories: ['{url}']\n"));
        settings(&nginx.url(name));
        // Nothing was fetched yet.
        let error = sandbox.mu(&["audit", "--offline", "--json"]).fails_with("offline");
        assert!(error.to_string().contains("not on this machine"), "{error}");
        let look = || {
            let before = nginx.log().len();
            let error = sandbox.mu(&["audit", "--json"]).fails_with("untrusted");
            assert_eq!(error["details"]["findings"][0]["id"], "ACME-1");
            assert_eq!(error["details"]["feeds"][0]["advisories"], 2);
            nginx.log().split_off(before)
        };
        look();
        let log = look();
        assert!(log.len() == 1 && log[0].ends_with(" 304"), "{log:?}");
        let log = nginx.log();
        // The list of packages is nowhere in it.
        assert!(log.iter().all(|line| !line.contains("ec2")), "{log:?}");
        sandbox.mu(&["audit", "--offline"]).fails().says(&["ACME-1", "mu is offline"]);
        drop(nginx);
        // What is not there now is an error, although it was read before.
        let error = sandbox.mu(&["audit", "--json"]).fails_with("network");
        assert!(error.to_string().contains("cannot read the advisories at"), "{error}");
        let nginx = Nginx::serve(&www, "");
        settings(&nginx.url(&format!("no-{name}")));
        sandbox.mu(&["audit", "--json"]).fails_with("not-found");
        write(&www, name, &bytes[..bytes.len() / 2]);
        settings(&nginx.url(name));
        sandbox.mu(&["audit"]).fails().says(&["cannot read the advisories at", "cannot be read"]);
    }
}

#[test]
fn an_ignore_counts_until_its_day_is_over_and_says_why() {
    let sandbox = workspace("ACME-1");
    let ignores = |text: &str| {
        sandbox.write(".mu/workspace.yaml", &format!("{FOLDER}audit: {{ignore: {text}}}\n"))
    };
    ignores("{ACME-1: 'until 9999-12-31, we do not use that port'}");
    sandbox
        .mu(&["audit"])
        .ok()
        .says(&["ignored until 9999-12-31: ACME-1", "we do not use that port"]);
    let ignored = sandbox.mu(&["audit", "--json"]).ok().json()["ignored"][0].clone();
    assert_eq!((&ignored["id"], &ignored["until"]), (&json!("ACME-1"), &json!("9999-12-31")));
    ignores("{ACME-1: 'until 2020-01-01, we do not use that port'}");
    sandbox
        .mu(&["audit"])
        .fails()
        .says(&["ACME-1", "it was ignored until 2020-01-01: we do not use that port"]);
    // What a registry says goes by an id, too.
    sandbox.mu(&["yank", "aws/ec2#1.1.0", "--to", "../hub"]).ok();
    ignores("{ACME-1: 'until 9999-12-31, a', 'yanked:hub.mu.com/aws/ec2': 'until 9999-12-31, b'}");
    sandbox.mu(&["audit"]).ok();
}

#[test]
fn what_a_feed_of_the_users_calls_malicious_no_workspace_silences() {
    let sandbox = workspace("MAL-2026-1");
    let ignores = "audit: {ignore: {MAL-2026-1: 'until 9999-12-31, ours'}}\n";
    sandbox.write(".mu/workspace.yaml", &format!("{FOLDER}{ignores}"));
    sandbox.mu(&["audit"]).ok();
    sandbox.mu(&["get"]).ok();
    let config = sandbox.path("home/.mu/config.yaml");
    let mine = fs::read_to_string(&config).expect("is there");
    let folder = sandbox.path("work/advisories").display().to_string();
    let with_feed = format!("{mine}advisories: ['{folder}']\n");
    fs::write(&config, &with_feed).expect("can be written");
    sandbox
        .mu(&["audit"])
        .fails()
        .says(&["MAL-2026-1", "cannot silence what a feed of yours calls malicious"]);
    sandbox.mu(&["get"]).fails().says(&["malicious"]);
    // The user may.
    fs::write(&config, format!("{with_feed}{ignores}")).expect("can be written");
    sandbox.mu(&["audit"]).ok();
    sandbox.mu(&["get"]).ok();
}

#[test]
fn a_malicious_version_is_no_candidate_and_a_locked_one_an_error_with_a_way_out() {
    let sandbox = workspace("MAL-2026-1");
    sandbox.offer("aws/ec2 1.2.0:");
    let error = sandbox.mu(&["get", "--json"]).fails_with("untrusted");
    assert!(error.to_string().contains("MAL-2026-1 of `advisories`: the port is open"), "{error}");
    sandbox.mu(&["get", "--frozen"]).fails().says(&["which Mu.lock names, is malicious"]);
    sandbox.mu(&["get"]).fails().says(&["`mu update aws/ec2` moves to a version"]);
    sandbox.mu(&["update", "aws/ec2"]).ok().says(&["1.2.0"]);
    sandbox.mu(&["get"]).ok();
    // A new one, which is newest.
    let newest = json!({ "id": "MAL-2026-2", "affected": [{
        "package": { "ecosystem": "mu", "name": "hub.mu.com/aws/ec2" }, "versions": ["1.3.0"] }] });
    sandbox.write("advisories/MAL-2026-2.json", &newest.to_string());
    sandbox.offer("aws/ec2 1.3.0:");
    for command in ["update", "upgrade"] {
        sandbox.mu(&[command, "aws/ec2"]).ok().says(&["1.3.0 is passed over: MAL-2026-2"]);
        assert!(sandbox.locked().contains(&"hub.mu.com/aws/ec2 1.2.0".to_owned()));
    }
    // Of the rest, nothing is left.
    let none = workspace("MAL-2026-1");
    fs::remove_file(none.path("work/Mu.lock")).expect("is there");
    none.mu(&["get"]).fails().says(&["cannot be used: MAL-2026-1 of `advisories`"]);
}

#[test]
fn get_goes_by_what_was_fetched_and_asks_no_feed() {
    let sandbox = workspace("MAL-2026-1");
    let www = sandbox.path("www");
    write(&www, "a.jsonl", advisory("MAL-2026-1"));
    let nginx = Nginx::serve(&www, "");
    sandbox.write(".mu/workspace.yaml", &format!("advisories: ['{}']\n", nginx.url("a.jsonl")));
    sandbox.mu(&["get"]).ok();
    assert_eq!(nginx.log(), Vec::<String>::new());
    sandbox.mu(&["audit"]).fails().says(&["MAL-2026-1"]);
    let asked = nginx.log().len();
    sandbox.mu(&["get"]).fails().says(&["is malicious"]);
    assert_eq!(nginx.log().len(), asked);
}

#[test]
fn a_fix_moves_what_may_move_and_says_what_may_not() {
    let sandbox = workspace("ACME-1");
    sandbox.offer("aws/ec2 1.2.0:");
    sandbox.mu(&["audit", "--fix"]).ok().says(&["moved", "1.1.0 → 1.2.0"]);
    assert!(sandbox.locked().contains(&"hub.mu.com/aws/ec2 1.2.0".to_owned()));
    sandbox.asks_for(&["aws/ec2#~1.1", "aws/log"]);
    sandbox.mu(&["get"]).ok();
    let answer = sandbox.mu(&["audit", "--fix", "--json"]).fails_with("untrusted");
    let unmended = &answer["details"]["unmended"][0];
    assert_eq!(unmended["id"], "ACME-1");
    assert!(
        unmended["why"].as_str().is_some_and(|why| why.contains("`mu upgrade aws/ec2`")),
        "{unmended}"
    );
    sandbox
        .mu(&["audit", "--fix"])
        .fails()
        .says(&["not mended", "1.1.0 is the newest that is allowed"]);
}

#[test]
fn what_cannot_be_compared_is_told_and_is_no_finding() {
    let sandbox = workspace("ACME-1");
    let odd = json!({ "id": "ACME-1", "affected": [{ "package": { "ecosystem": "mu", "name": "hub.mu.com/aws/ec2" } }] });
    sandbox.write("advisories/2026/ACME-1.json", &odd.to_string());
    let answer = sandbox.mu(&["audit", "--json"]).ok().json();
    assert_eq!(answer["undecided"][0]["id"], "ACME-1");
    sandbox
        .mu(&["audit"])
        .ok()
        .says(&["not known whether this is about", "does not say which versions"]);
}

#[test]
fn sarif_fits_the_published_schema_and_points_into_the_lock() {
    let sandbox = workspace("ACME-1");
    sandbox.mu(&["yank", "aws/log#1.0.0", "--to", "../hub"]).ok();
    let text = sandbox.mu(&["audit", "--sarif"]).fails().stdout;
    let mut validator = Command::new("/usr/bin/python3")
        .arg(mu_testing::file("../../testdata/schemas/validate.py"))
        .arg("sarif-2.1.0.schema.json")
        .env("PYTHONWARNINGS", "ignore")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`.ci/setup` brings Python and jsonschema");
    validator.stdin.take().expect("is piped").write_all(text.as_bytes()).expect("it reads");
    let output = validator.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stdout));
    let log: Value = serde_json::from_str(&text).expect("is JSON");
    let results = log["runs"][0]["results"].as_array().expect("is a list");
    assert_eq!(results.len(), 2);
    let lock = sandbox.read("Mu.lock");
    for (result, name) in results.iter().zip(["aws/ec2", "aws/log"]) {
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "Mu.lock");
        let line = place["region"]["startLine"].as_u64().expect("is a number");
        let line = lock.lines().nth(line as usize - 1).expect("is there");
        assert!(line.contains(&format!("hub.mu.com/{name}")), "{line}");
        let rule = result["ruleIndex"].as_u64().expect("is a number") as usize;
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
    }
}

#[test]
fn an_audit_is_about_the_lock_that_fits_the_manifests() {
    let sandbox = workspace("ACME-1");
    sandbox.asks_for(&["aws/ec2#^2"]);
    sandbox.mu(&["audit", "--json"]).fails_with("lock-outdated");
}

/// A package that nobody knows is not fetched, and neither is one that only its folder has.
#[test]
fn packages_that_are_not_on_this_machine_are_audited_all_the_same() {
    let sandbox = workspace("ACME-1");
    sandbox.publish(&[Package::new("aws/ec2", "1.1.1")]);
    sandbox.mu(&["cache", "clean", "--yes"]).ok();
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    assert_eq!(findings(&sandbox)[0]["id"], "ACME-1");
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com"));
}

#[test]
fn a_tag_and_a_repository_that_are_gone_are_found() {
    let sandbox = Sandbox::new();
    let origin = Origin::new("web.git");
    origin.commit(&[("Mu.yaml", "name: web\n")]);
    origin.git(&["tag", "v1.0.0"]);
    origin.commit(&[("more", "of it\n")]);
    origin.git(&["tag", "v1.1.0"]);
    sandbox.asks_for(&[&format!("git+file://{}#^1", origin.folder().display())]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["audit"]).ok();
    origin.git(&["tag", "-d", "v1.1.0"]);
    let gone = || {
        let found = findings(&sandbox);
        let [only] = &found.as_array().expect("is a list")[..] else { panic!("{found}") };
        assert!(only["id"].as_str().is_some_and(|id| id.starts_with("gone:")), "{found}");
        only["why"].as_str().expect("is text").to_owned()
    };
    assert!(gone().contains("has no tag of it"));
    fs::remove_dir_all(origin.folder()).expect("is ours");
    assert!(gone().contains("there is no repository"));
}
