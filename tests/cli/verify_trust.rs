//! `mu verify --trust`: what registries say of locked packages now. A moved tag, another archive, an edited entry and what is gone are
//! found, whether or not a rule speaks of the package.

use std::fs;

use mu_testing::{Artifact, Chart, Charts, Signer};
use serde_json::{Value, json};

use super::git_signatures::{Author, rule};
use super::support::git::{HttpServer, Origin};
use super::support::{Nginx, Package, Sandbox, write};
use super::trust::{Registry, forget, identity};

/// The problems that `mu verify --trust` finds, without the ids: code and text.
fn problems(sandbox: &Sandbox) -> Vec<[String; 2]> {
    let run = sandbox.mu(&["verify", "--trust", "--json"]);
    let found = run.json();
    let text = |one: &Value, key: &str| one[key].as_str().expect("is a text").to_owned();
    let all = found["problems"].as_array().expect("is a list").iter();
    let all: Vec<[String; 2]> = all.map(|one| [text(one, "code"), text(one, "why")]).collect();
    // The command fails exactly if there are some.
    match all.is_empty() {
        true => drop(run.ok()),
        false => drop(run.fails()),
    }
    all
}

/// Checks that there is one problem: its code, and parts of what it says.
fn has_problem(sandbox: &Sandbox, code: &str, parts: &[&str]) {
    let found = problems(sandbox);
    let [[found_code, why]] = &found[..] else { panic!("{found:?}") };
    assert_eq!(found_code, code, "{why}");
    for part in parts {
        assert!(why.contains(part), "{why} does not say {part}");
    }
}

#[test]
fn a_moved_tag_and_an_edited_entry_are_found_in_oci_registries() {
    let registry = Registry::new();
    let (sandbox, key) = (&registry.sandbox, &registry.key);
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, key);
    sandbox.asks_for(&[&registry.chart("web#^1")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify", "--trust"]).ok().says(&["1 package verified"]);
    let found = sandbox.mu(&["verify", "--trust", "--json"]).ok().json();
    assert_eq!(found, json!({"checked": 1, "problems": []}));
    // What is known of packages on this machine says nothing of registries, and changes nothing.
    sandbox.mu(&["verify", "--trust", "--offline", "--json"]).fails_with("offline");
    let lock = sandbox.read("Mu.lock");
    // The digest of the content: the lock was edited, and so was what is installed, or it was not.
    let of = |key: &str| sandbox.lock()["packages"][0][key].as_str().expect("is there").to_owned();
    let content = of("digest");
    let other = content.replace(&content[3..9], "AAAAAA");
    sandbox.write("Mu.lock", &lock.replace(&content, &other));
    has_problem(sandbox, "untrusted", &["its content is", &other]);
    // The same on a machine that has never seen it.
    forget(sandbox);
    has_problem(sandbox, "untrusted", &["its content is", &content]);
    // Who has signed it.
    let other = identity(key).replace(&identity(key)[11..17], "abcdef");
    sandbox.write("Mu.lock", &lock.replace(&identity(key), &other));
    has_problem(sandbox, "untrusted", &["says that", "signed it"]);
    let run = sandbox.mu(&["verify", "--trust"]).fails();
    run.says(&["untrusted", "web 1.0.0", "1 of 1 package failed"]);
    // An archive of another version.
    sandbox.write("Mu.lock", &lock);
    let chart = Chart::new("web", "1.0.0").file("values.yaml", "a: 2\n");
    let moved = Artifact::chart(&chart).push(&registry.host(), "charts/web", "1.0.0");
    has_problem(sandbox, "untrusted", &[&moved, &digest]);
    // Signing the other one changes nothing about that.
    registry.sign("charts/web", &moved, key);
    has_problem(sandbox, "untrusted", &["what its tag leads to"]);
    assert_eq!(sandbox.read("Mu.lock"), lock);
    // Who names the package takes what is there now.
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), lock);
    sandbox.mu(&["update", "web"]).ok().says(&["web 1.0.0"]);
    sandbox.mu(&["verify", "--trust"]).ok();
    // Nobody is there.
    let Registry { sandbox, server, .. } = registry;
    drop(server);
    has_problem(&sandbox, "network", &[]);
}

#[test]
fn evidence_that_is_gone_is_found() {
    let registry = Registry::new();
    let sandbox = &registry.sandbox;
    let digest = registry.push("web", "1.0.0");
    registry.sign("charts/web", &digest, &registry.key);
    sandbox.asks_for(&[&registry.chart("web#^1")]);
    sandbox.mu(&["get"]).ok();
    // Somebody has put another one in its place: what this machine has accepted before does not count.
    let stranger = super::trust::Key::usual(sandbox, "stranger");
    registry.sign("charts/web", &digest, &stranger);
    has_problem(sandbox, "untrusted", &["no signature by team", "rule `"]);
    sandbox.mu(&["verify"]).ok().says(&["1 package signed by key:sha256:"]);
}

#[test]
fn tags_of_repositories_are_compared_and_branches_may_move() {
    let sandbox = Sandbox::new();
    let ada = Author::ssh(&sandbox, "ada", &["-t", "ed25519"]);
    let (web, log) = (Origin::new("web.git"), Origin::new("log.git"));
    for (origin, name) in [(&web, "web"), (&log, "log")] {
        origin.commit(&[("Mu.yaml", &format!("name: {name}\n"))]);
        ada.git(origin, &["tag", "-s", "-m", "a release", "v1.0.0"]);
    }
    log.commit(&[("more", "of it\n")]);
    let [first, second] = [&web, &log].map(|origin| HttpServer::start(origin.root()));
    write(
        &sandbox.path("home/.mu"),
        "config.yaml",
        rule(&ada).replace("\"*\"", "nobody.example/*"),
    );
    sandbox.asks_for(&[
        &format!("{}web.git#^1", first.root()),
        &format!("{}log.git#main", second.root()),
    ]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify", "--trust"]).ok().says(&["2 packages verified"]);
    log.commit(&[("more", "again\n")]);
    sandbox.mu(&["verify", "--trust"]).ok();
    let commit = web.commit(&[("more", "of it\n")]);
    web.git(&["tag", "-f", "-a", "-m", "again", "v1.0.0"]);
    has_problem(&sandbox, "untrusted", &["the commit of the tag `v1.0.0`", &commit]);
    web.git(&["tag", "-d", "v1.0.0"]);
    web.git(&["tag", "v0.9.0"]);
    has_problem(&sandbox, "not-found", &["has no tag of it"]);
}

#[test]
fn archives_of_chart_repositories_and_lines_of_hubs_are_compared() {
    let sandbox = Sandbox::new();
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    charts.add(&Chart::new("web", "1.0.0"));
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0"), Package::new("aws/s3", "1.0.0")]);
    let chart = format!("helm+{}", nginx.url("stable/web#^1"));
    sandbox.asks_for(&[&chart, "aws/ec2", "aws/s3"]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify", "--trust"]).ok().says(&["3 packages verified"]);
    sandbox.mu(&["verify", "--trust", "aws/ec2"]).ok().says(&["1 package verified"]);
    // Another archive under the same version.
    let other = Chart::new("web", "1.0.0").file("values.yaml", "a: 2\n");
    let other = other.listed("home: https://web.example/\n");
    let mut again = Charts::new(&sandbox.path("www/stable"));
    again.add(&other);
    has_problem(&sandbox, "untrusted", &["its archive is"]);
    let mut again = Charts::new(&sandbox.path("www/stable"));
    again.add(&Chart::new("web", "20.0.0"));
    has_problem(&sandbox, "not-found", &["does not have it"]);
    let mut again = Charts::new(&sandbox.path("www/stable"));
    again.add(&Chart::new("web", "1.0.0"));
    // A hub that says something else of a version that it has published.
    let line = sandbox.path("hub/index/aws/ec2.jsonl");
    let text = fs::read_to_string(&line).expect("is there");
    let digest = sandbox.lock()["packages"].as_array().expect("is a list")[0]["digest"].clone();
    let digest = digest.as_str().expect("is a text").to_owned();
    let other = digest.replace(&digest[3..9], "AAAAAA");
    fs::write(&line, text.replace(&digest, &other)).expect("is ours");
    let found = problems(&sandbox);
    assert!(found.len() == 1 && found[0][0] == "untrusted", "{found:?}");
    fs::remove_file(&line).expect("is ours");
    has_problem(&sandbox, "not-found", &[]);
}

#[test]
fn the_statement_of_a_chart_must_still_be_there() {
    let signer = Signer::new();
    let mut repository = super::chart_signatures::Repository::new(&[&signer]);
    let chart = Chart::new("web", "1.0.0");
    let made = signer.provenance(&chart.manifest(), "web-1.0.0.tgz", &chart.archive());
    repository.add(&chart, "web-1.0.0.tgz", &made);
    let sandbox = &repository.sandbox;
    sandbox.asks_for(&[&repository.chart("web#^1")]);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify", "--trust"]).ok();
    fs::remove_file(sandbox.path("www/stable/web-1.0.0.tgz.prov")).expect("is there");
    has_problem(sandbox, "untrusted", &["no signature (looked at"]);
}

#[test]
fn without_a_lock_there_is_nothing_that_could_be_verified() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    for arguments in [&["verify", "--json"][..], &["verify", "--trust", "--json"]] {
        sandbox.mu(arguments).fails_with("lock-outdated");
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["verify", "--trust"]).ok().says(&["1 package verified"]);
}
