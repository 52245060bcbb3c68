//! Versions that leave numbers out, `1.28`, where the registry or the package says `versions: lenient`.

use serde_json::{Value, json};

use crate::support::git::{HttpServer, Origin};
use crate::support::{Package, Sandbox, Served, write};

fn versions(json: &Value) -> Vec<String> {
    let versions = json["versions"].as_array().expect("is a list").iter();
    versions.map(|one| one["version"].as_str().expect("is text").to_owned()).collect()
}

/// A hub with versions of two numbers; whether their lines say so themselves.
fn sandbox(says_so: bool) -> Sandbox {
    let sandbox = Sandbox::new();
    let package = |version: &str| {
        let package = Package::new("k8s/kubectl", version);
        if says_so { package.key("versions", json!("lenient")) } else { package }
    };
    sandbox.publish(&["1.9", "1.28", "1.30-rc.1", "1.28.3"].map(package));
    sandbox
}

#[test]
fn a_registry_or_a_package_may_have_versions_of_two_numbers() {
    for says_so in [true, false] {
        let sandbox = sandbox(says_so);
        if !says_so {
            let json = sandbox.mu(&["versions", "k8s/kubectl", "--json"]).ok().json();
            assert_eq!(versions(&json), ["1.28.3"], "elsewhere they are not versions");
            let hub = format!("file://{}/", sandbox.path("hub").display());
            let settings =
                format!("registries:\n  hub.mu.com/: {{url: \"{hub}\", versions: lenient}}\n");
            sandbox.write(".mu/workspace.yaml", &settings);
        }
        let json = sandbox.mu(&["versions", "k8s/kubectl", "--json"]).ok().json();
        assert_eq!(versions(&json), ["1.9", "1.28", "1.28.3", "1.30-rc.1"], "{says_so}");
        let json = sandbox.mu(&["versions", "k8s/kubectl#^1.9 <1.28.1", "--json"]).ok().json();
        assert_eq!(versions(&json), ["1.9", "1.28"]);
        for (asked, chosen) in
            [("^1.9", "1.28.3"), ("<1.28.3", "1.28"), ("1.9", "1.9"), ("1.28.0", "1.28")]
        {
            let reference = format!("k8s/kubectl#{asked}");
            let run = sandbox.mu(&["get", &reference]).ok();
            assert_eq!(sandbox.lock()["packages"][0]["version"], chosen, "{}", run.shown());
            // Locked versions are found again, and installed ones match.
            sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
            sandbox.mu(&["verify"]).ok();
        }
    }
}

#[test]
fn a_lenient_version_is_pinned_and_raised_by_all_its_numbers() {
    let sandbox = sandbox(true);
    sandbox
        .write("Mu.yaml", "name: acme/web\nversion: 0.1.0\ndependencies:\n  - k8s/kubectl#~1.9\n");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["pin"]).ok();
    assert!(sandbox.read("Mu.yaml").contains("k8s/kubectl#1.9.0"), "{}", sandbox.read("Mu.yaml"));
    sandbox.mu(&["unpin"]).ok();
    sandbox.mu(&["upgrade"]).ok().says(&["1.9 → 1.28.3"]);
    assert!(sandbox.read("Mu.yaml").contains("k8s/kubectl#~1.28"), "{}", sandbox.read("Mu.yaml"));
    sandbox.mu(&["update", "k8s/kubectl#1.28.0"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.28");
}

#[test]
fn a_version_with_more_zeros_is_asked_for_as_it_is_shown() {
    let sandbox = Sandbox::new();
    let package =
        |version: &str| Package::new("k8s/kubectl", version).key("versions", json!("lenient"));
    sandbox.publish(&["2024.01.02", "2024.01.03"].map(package));
    for reference in ["k8s/kubectl#2024.01.02", "k8s/kubectl#2024.1.2"] {
        sandbox.mu(&["get", reference]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["version"], "2024.01.02", "{reference}");
        sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
        sandbox.mu(&["info", reference]).ok().says(&["2024.01.02"]);
        sandbox.mu(&["remove", "k8s/kubectl"]).ok();
    }
}

#[test]
fn the_minimal_strategy_begins_at_lenient_versions() {
    let mut sandbox = sandbox(true);
    sandbox.set("MU_RESOLUTION", "minimal");
    sandbox
        .write("Mu.yaml", "name: acme/web\nversion: 0.1.0\ndependencies:\n  - k8s/kubectl#^1.9\n");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.9");
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.28.3");
}

#[test]
fn a_package_with_lenient_versions_is_published_as_it_is_written() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../own"]).ok();
    sandbox.write("Mu.yaml", "name: acme/tool\nversion: 1.28\n");
    let run = sandbox.mu(&["pack"]).fails();
    run.says(&["Mu.yaml:2", "write `1.28.0`", "`versions: lenient`"]);
    let manifest =
        |version: &str| format!("name: acme/tool\nversion: {version}\nversions: lenient\n");
    sandbox.write("Mu.yaml", &manifest("1.9"));
    sandbox.mu(&["publish", "--to", "../own"]).ok().says(&["acme/tool 1.9"]);
    sandbox.mu(&["version", "minor"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), manifest("\"1.10\""));
    sandbox.mu(&["publish", "--to", "../own"]).ok();
    assert!(sandbox.has("own/packs/acme/tool/tool-1.10.tgz"));
    // It is one version, however it is written.
    sandbox.write("Mu.yaml", &format!("{}description: other\n", manifest("1.10.0")));
    sandbox.mu(&["publish", "--to", "../own"]).fails().says(&["1.10"]);
    sandbox.mu(&["hub", "check", "../own"]).ok();
    std::fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours");
    sandbox.hub_is_at(&format!("file://{}/", sandbox.path("own").display()));
    let json = sandbox.mu(&["search", "tool", "--json"]).ok().json();
    assert_eq!(json["packages"][0]["latest"], "1.10");
    sandbox.mu(&["get", "acme/tool"]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.10");
    sandbox.mu(&["yank", "acme/tool#1.10", "--to", "../own", "--reason", "broken"]).ok();
    let json = sandbox.mu(&["versions", "acme/tool", "--json"]).ok().json();
    assert_eq!(json["versions"][1]["yanked"], "broken");
}

#[test]
fn a_server_changes_a_lenient_version_however_it_is_written() {
    let mut sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let add = ["hub", "token", "add", "../srv", "ada", "--namespace", "acme", "--json"];
    let token = sandbox.mu(&add).ok().json()["token"].as_str().expect("is text").to_owned();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.set_token(&served.address.to_string(), &token);
    sandbox.write("Mu.yaml", "name: acme/tool\nversion: 1.28\nversions: lenient\n");
    let to = ["--to", &served.url()];
    sandbox.mu(&[&["publish"], &to[..]].concat()).ok().says(&["acme/tool 1.28"]);
    let yank = ["yank", "acme/tool#1.28.0", "--reason", "broken"];
    sandbox.mu(&[&yank, &to[..]].concat()).ok();
    sandbox.mu(&[&["tag", "acme/tool#1.28.0", "edge"], &to[..]].concat()).ok();
    let index = served.ask("GET", "/index/acme/tool.jsonl", &[], &[]).is(200).json();
    assert_eq!((&index["yanked"], &index["tags"]), (&json!("broken"), &json!(["edge"])));
    let other = ["yank", "acme/tool#1.29", "--reason", "broken"];
    let run = sandbox.mu(&[&other, &to[..]].concat()).fails();
    run.says(&["has no acme/tool 1.29", "`mu versions acme/tool`"]);
}

#[test]
fn versions_of_repositories_print_as_they_are_tagged() {
    let origin = Origin::new("ops/kafka.git");
    for tag in ["1.9", "v1.28"] {
        let version = tag.trim_start_matches('v');
        origin.commit(&[("Mu.yaml", &format!("name: ops/kafka\nversion: {version}\n"))]);
        origin.git(&["tag", tag]);
    }
    let server = HttpServer::start(origin.root());
    let sandbox = Sandbox::new();
    let host = server.host();
    let url = server.root();
    let settings =
        format!("registries:\n  {host}/: {{provider: git, url: \"{url}\", versions: lenient}}\n");
    write(&sandbox.path("work"), ".mu/workspace.yaml", settings);
    let reference = format!("{url}ops/kafka.git");
    let json = sandbox.mu(&["versions", &reference, "--json"]).ok().json();
    assert_eq!(versions(&json), ["1.9", "1.28"]);
    sandbox.mu(&["get", &format!("{reference}#^1.9")]).ok();
    assert_eq!(sandbox.lock()["packages"][0]["version"], "1.28");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn every_way_to_a_repository_heeds_what_the_settings_say_of_its_versions() {
    let origin = Origin::new("ops/kafka.git");
    for tag in ["1.9", "1.28"] {
        origin.commit(&[("Mu.yaml", "name: ops/kafka\n"), ("mark", tag)]);
        origin.git(&["tag", tag]);
    }
    let server = HttpServer::start(origin.root());
    let (host, folder) = (server.host(), origin.root().display().to_string());
    let sandbox = Sandbox::new();
    // No URL: the reference says where the repository is, and the settings how to read its versions.
    let settings = format!(
        "registries:\n  {host}/: {{provider: git, versions: lenient}}\n  localhost/: {{provider: git, versions: lenient}}\n"
    );
    sandbox.write(".mu/workspace.yaml", &settings);
    for reference in
        [format!("git+http://{host}/ops/kafka.git"), format!("git+file://{folder}/ops/kafka.git")]
    {
        let json = sandbox.mu(&["versions", &reference, "--json"]).ok().json();
        assert_eq!(versions(&json), ["1.9", "1.28"], "{reference}");
        sandbox.mu(&["get", &format!("{reference}#^1.9")]).ok();
        assert_eq!(sandbox.lock()["packages"][0]["version"], "1.28", "{reference}");
        sandbox.mu(&["get", "--locked"]).ok();
        sandbox.mu(&["remove", &reference]).ok();
    }
}
