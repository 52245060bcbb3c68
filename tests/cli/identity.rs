//! What is installed is what was chosen: archives, index lines and locks that contradict each other.

use std::fs;

use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, Chart, Charts, Nginx, OciServer, tar_gz};
use serde_json::{Value, json};

use crate::support::{Package, Sandbox};

/// The trees in the store.
fn stored(sandbox: &Sandbox) -> usize {
    fs::read_dir(sandbox.path("cache/store/trees")).map_or(0, Iterator::count)
}

/// Replaces a text that must be in a file of the workspace.
fn change(sandbox: &Sandbox, path: &str, before: &str, after: &str) {
    let text = sandbox.read(path);
    assert!(text.contains(before), "{text}");
    sandbox.write(path, &text.replace(before, after));
}

/// Forgets everything but the store.
fn forget(sandbox: &Sandbox, paths: &[&str]) {
    for path in paths {
        let path = sandbox.path(path);
        let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        gone.expect("was there");
    }
}

#[test]
fn what_an_index_line_lies_about_is_not_installed() {
    let package = || {
        let vpc = json!({"ref": "aws/vpc#^1", "prerelease": true});
        Package::new("aws/ec2", "1.0.0")
            .key("dependencies", json!([vpc]))
            .key("constraints", json!({"os": "linux"}))
    };
    for (key, lie, expected) in [
        (
            "dependencies",
            json!([]),
            "`dependencies`: only the manifest has `aws/vpc#^1 prerelease: true`",
        ),
        ("dependencies", Value::Null, "`dependencies`: only the manifest has"),
        ("constraints", Value::Null, "`constraints`: only the manifest has `os: linux`"),
        ("provides", json!(["net/v1/Network"]), "`provides`: only the line has `net/v1/Network`"),
        ("replaces", json!(["aws/old"]), "`replaces`: only the line has `aws/old`"),
    ] {
        let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
        sandbox.publish(&[Package::new("aws/vpc", "1.0.0"), package().lies(key, lie)]);
        let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains(expected), "{message}");
        assert_eq!(error["details"]["key"], key);
        assert!(!sandbox.has("work/Mu.lock") && !sandbox.has("work/.mu/packs/hub.mu.com"));
        assert!(stored(&sandbox) <= 1, "at most `aws/vpc` is kept");
    }
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.publish(&[Package::new("aws/vpc", "1.0.0"), package()]);
    sandbox.mu(&["get"]).ok();
}

#[test]
fn an_archive_of_another_version_is_not_installed() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0").lies("version", json!("2.0.0"))]);
    let (before, after) =
        (sandbox.hub().archive("aws/ec2", "1.0.0"), sandbox.hub().archive("aws/ec2", "2.0.0"));
    fs::rename(before, after).expect("is ours");
    let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("`hub.mu.com/aws/ec2` 2.0.0 holds version 1.0.0"), "{message}");
    assert_eq!(stored(&sandbox), 0);
}

#[test]
fn what_is_in_the_store_already_is_compared_with_its_line_too() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0"), Package::new("evil/x", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    let index = sandbox.hub().index("aws/ec2");
    let line = fs::read_to_string(&index).expect("was published");
    let lie = line.replacen('{', "{\"dependencies\":[\"evil/x\"],", 1);
    fs::write(&index, lie).expect("is ours");
    forget(&sandbox, &["work/Mu.lock", "work/.mu/packs", "cache/index"]);
    let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
    assert_eq!(error["details"]["line"], json!(["evil/x"]));
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com"));
    // The tree itself may be used by others.
    fs::write(&index, line).expect("is ours");
    forget(&sandbox, &["cache/index"]);
    let answer = sandbox.mu(&["get", "--json"]).ok().json();
    assert_eq!((&answer["fetched"], &answer["reused"]), (&json!(0), &json!(1)));
}

#[test]
fn a_lock_does_not_lead_to_the_content_of_another_package_or_version() {
    for (name, version, said) in [
        ("evil/ec2", "1.0.0", "contains a package named `evil/ec2`"),
        ("aws/ec2", "0.9.0", "is 1.0.0, but its manifest says 0.9.0"),
    ] {
        let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
        sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
        let digest = |id: &str| {
            let lock = sandbox.lock();
            let packages = lock["packages"].as_array().expect("is a list").clone();
            let found = packages.into_iter().find(|package| package["id"] == *id);
            found.expect("is locked")["digest"].as_str().expect("is text").to_owned()
        };
        sandbox.mu(&["get"]).ok();
        let good = digest("hub.mu.com/aws/ec2");
        let lock = sandbox.read("Mu.lock");
        sandbox.hub().release(name, version);
        sandbox.asks_for(&[&format!("{name}#{version}")]);
        sandbox.mu(&["get"]).ok();
        let evil = digest(&format!("hub.mu.com/{name}"));
        sandbox.asks_for(&["aws/ec2"]);
        sandbox.write("Mu.lock", &lock);
        change(&sandbox, "Mu.lock", &good, &evil);
        forget(&sandbox, &["work/.mu/packs"]);
        for flags in [&[][..], &["--locked"], &["--frozen"]] {
            let error = sandbox.mu(&[&["get", "--json"], flags].concat()).fails_with("integrity");
            let message = error["message"].as_str().expect("is text");
            assert!(message.contains(said), "{message}");
            assert!(!sandbox.has("work/.mu/packs/hub.mu.com"));
        }
    }
}

#[test]
fn a_package_that_was_copied_to_another_name_has_its_old_one() {
    let sandbox = Sandbox::with_dependencies(&["internal/ec2"]);
    let ec2 = Package::new("aws/ec2", "1.0.0")
        .needs("aws/vpc#^1")
        .lies("name", json!("internal/ec2"))
        .lies("dependencies", json!(["internal/vpc#^1"]))
        .lies("urls", json!(["packs/aws/ec2/ec2-1.0.0.tgz"]));
    let place = |package: Package| {
        let _ = fs::remove_file(sandbox.hub().index("internal/ec2"));
        sandbox.publish(&[package]);
        let index = sandbox.hub().index("internal/ec2");
        fs::rename(sandbox.hub().index("aws/ec2"), index).expect("was published");
    };
    sandbox.publish(&[Package::new("internal/vpc", "1.0.0")]);
    place(ec2.clone());
    sandbox.mu(&["get"]).fails().says(&["contains a package named `aws/ec2`"]);
    forget(&sandbox, &["cache"]);
    place(ec2.lies("origin", json!("aws/ec2")));
    sandbox.mu(&["get"]).ok();
    // The lock does not have this.
    forget(&sandbox, &["cache", "work/.mu/packs"]);
    sandbox.mu(&["get", "--frozen"]).ok();
    sandbox.mu(&["verify"]).ok();
}

#[test]
fn a_lock_alone_takes_no_folder_for_a_package_of_a_hub() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    sandbox.mu(&["get"]).ok();
    sandbox.place("private", &Package::new("aws/ec2", "1.0.0"));
    let lock = sandbox.read("Mu.lock");
    let source = lock.lines().find(|line| line.contains("source:")).expect("has one").to_owned();
    sandbox.write("Mu.lock", &lock.replace(&source, "  source: path+../private"));
    forget(&sandbox, &["work/.mu/packs"]);
    let run = sandbox.mu(&["get", "--frozen", "--json"]);
    let error = run.fails_with("integrity");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains("no override in the settings does"), "{message}");
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com"));
    // The settings can allow it, with the user's consent.
    sandbox.trusts_folder("private");
    sandbox.write(".mu/workspace.yaml", "overrides: {hub.mu.com/aws/ec2: ../private}\n");
    sandbox.mu(&["get"]).ok();
    forget(&sandbox, &["work/.mu/packs"]);
    sandbox.mu(&["get", "--frozen"]).ok();
}

#[test]
fn a_folder_that_has_changed_is_not_installed_where_the_lock_must_not_change() {
    let sandbox = Sandbox::with_dependencies(&["../beside"]);
    sandbox.trusts_folder("beside");
    sandbox.place("beside", &Package::new("acme/beside", "1.0.0").file("a.txt", "one"));
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let packs = || crate::support::tree(&sandbox.path("work/.mu/packs"));
    let before = packs();
    sandbox.place("beside", &Package::new("acme/beside", "1.0.0").file("a.txt", "two"));
    for flag in ["--locked", "--frozen"] {
        let error = sandbox.mu(&["get", flag, "--json"]).fails_with("lock-outdated");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains("has changed since Mu.lock was written"), "{message}");
        assert!(packs() == before && sandbox.read("Mu.lock") == lock, "nothing has changed");
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["get", "--frozen"]).ok();
    // A lock without the digest of a folder guarantees nothing.
    let lock = sandbox.read("Mu.lock");
    let without: Vec<&str> = lock.lines().filter(|line| !line.contains("digest:")).collect();
    sandbox.write("Mu.lock", &(without.join("\n") + "\n"));
    sandbox.mu(&["get", "--frozen", "--json"]).fails_with("lock-outdated");
}

#[test]
fn what_has_the_name_of_a_manifest_and_is_no_file_is_refused() {
    for path in ["Mu.yaml/inside.txt", "Mu.json"] {
        let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
        let content = if path == "Mu.json" { "-> elsewhere.json" } else { "text" };
        sandbox.publish(&[Package::new("aws/ec2", "1.0.0").without_manifest().file(path, content)]);
        let error = sandbox.mu(&["get", "--json"]).fails_with("integrity");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains("that is not a file"), "{message}");
        assert_eq!(stored(&sandbox), 0);
    }
}

/// Expects that a package is refused because its archive has no manifest.
#[track_caller]
fn lacks_a_manifest(sandbox: &Sandbox, reference: &str, name: &str) {
    let error = sandbox.mu(&["get", reference, "--json"]).fails_with("integrity");
    let message = error["message"].as_str().expect("is text");
    assert!(message.contains(&format!("has no `{name}`")), "{message}");
    assert!(!sandbox.has("work/Mu.lock"), "nothing is locked");
    assert_eq!(stored(sandbox), 0);
}

#[test]
fn an_archive_without_the_manifest_of_its_line_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0").without_manifest().file("a.txt", "text")]);
    lacks_a_manifest(&sandbox, "aws/ec2", "Mu.yaml");

    let web = Chart::new("web", "1.0.0");
    let archive = tar_gz([("web/values.yaml".to_owned(), ('f', b"a: 1\n".to_vec()))]);
    let mut charts = Charts::new(&sandbox.path("www"));
    charts.add_with(&web, &archive);
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    lacks_a_manifest(&sandbox, &format!("helm+{}", nginx.url("web")), "Chart.yaml");

    let registry = OciServer::start(Behaviour::default());
    let config = br#"{"apiVersion":"v2","name":"web","version":"1.0.0"}"#;
    Artifact::new("application/vnd.cncf.helm.config.v1+json", config)
        .layer("application/vnd.cncf.helm.chart.content.v1.tar+gzip", &archive, &[])
        .push(&registry.host(), "acme/web", "1.0.0");
    lacks_a_manifest(&sandbox, &format!("oci://{}/acme/web", registry.host()), "Chart.yaml");
}
