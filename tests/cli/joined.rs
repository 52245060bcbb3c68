//! What a checkout's settings cannot take from its user: the user's rules about versions and builds hold in it, and places that it
//! leads elsewhere are told.

use std::fs;

use serde_json::json;

use crate::support::{Hub, Package, Sandbox, write};

/// Adds lines to `~/.mu/config.yaml`.
fn user_says(sandbox: &Sandbox, lines: &str) {
    let text = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    write(&sandbox.path("home/.mu"), "config.yaml", format!("{text}{lines}"));
}

/// A package with an old version 1.0.0, and one of today.
fn aging(sandbox: &Sandbox, name: &str) {
    let at = |seconds: i64| jiff::Timestamp::from_second(seconds).expect("is a time").to_string();
    let now = jiff::Timestamp::now().as_second();
    sandbox.publish(&[
        Package::new(name, "1.0.0").lies("published", json!(at(now - 400 * 86_400))),
        Package::new(name, "1.1.0").lies("published", json!(at(now - 20 * 86_400))),
        Package::new(name, "1.2.0").lies("published", json!(at(now - 3_600))),
    ]);
}

#[test]
fn a_workspace_lengthens_the_users_minimum_age_and_never_shortens_it() {
    for (user, workspace, expected) in [
        ("", "", "1.2.0"),
        ("30 days", "", "1.0.0"),
        ("30 days", "0", "1.0.0"),
        ("30 days", "1 day", "1.0.0"),
        ("1 day", "30 days", "1.0.0"),
        ("1 day", "", "1.1.0"),
        ("", "30 days", "1.0.0"),
        // A date against an age: which one is stricter depends on today.
        ("30 days", "2999-01-01", "1.0.0"),
        ("2020-01-01T00:00:00Z", "1 day", ""),
    ] {
        let sandbox = Sandbox::with_dependencies(&["acme/c"]);
        aging(&sandbox, "acme/c");
        let line = |age: &str| match age {
            "" => String::new(),
            age => format!("minimumReleaseAge: {age}\n"),
        };
        user_says(&sandbox, &line(user));
        sandbox.write(".mu/workspace.yaml", &line(workspace));
        let run = sandbox.mu(&["get"]);
        match expected {
            "" => drop(run.fails()),
            version => {
                run.ok();
                assert_eq!(
                    sandbox.locked(),
                    [format!("hub.mu.com/acme/c {version}")],
                    "{user} {workspace}"
                );
            }
        }
    }
}

#[test]
fn the_rule_of_the_file_that_decides_is_named() {
    let sandbox = Sandbox::with_dependencies(&["acme/c#^1.2"]);
    aging(&sandbox, "acme/c");
    user_says(&sandbox, "minimumReleaseAge: 30 days\n");
    sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 1 day\n");
    sandbox.mu(&["get"]).fails().says(&["minimumReleaseAge: 30 days", "home/.mu/config.yaml:3"]);
}

#[test]
fn a_workspace_excludes_more_and_never_less() {
    let sandbox = Sandbox::with_dependencies(&["acme/c"]);
    aging(&sandbox, "acme/c");
    // A short name of the user has the user's base, whatever base the workspace has.
    user_says(&sandbox, "exclude: [\"acme/c#1.2.0\"]\n");
    for settings in ["", "exclude: []\n", "exclude: [\"acme/d\"]\n"] {
        sandbox.write(".mu/workspace.yaml", settings);
        sandbox.mu(&["update"]).ok();
        assert_eq!(sandbox.locked(), ["hub.mu.com/acme/c 1.1.0"], "{settings}");
    }
    sandbox.asks_for(&["hub.mu.com/acme/c"]);
    sandbox.write(".mu/workspace.yaml", "base: evil.example/\n");
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/acme/c 1.1.0"]);
    sandbox.write(".mu/workspace.yaml", "exclude: [\"hub.mu.com/acme/c#1.1.0\"]\n");
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/acme/c 1.0.0"]);
}

/// A package with a build, in the hub in a folder.
fn buildable(folder: &std::path::Path) {
    let build = "build: {command: [sh, -c, \"echo ran > out\"], outputs: [out]}\n";
    Hub::new(folder).publish(&Package::new("acme/b", "1.0.0").manifest(build));
}

#[test]
fn trust_in_builds_is_read_with_the_users_base_and_registries() {
    for (trust, dependency, settings, says) in [
        // A short name of the user means the user's base.
        (
            "acme/*",
            "acme/b",
            "base: evil.example/\nregistries: {evil.example/: ../evil}\n",
            "trust: {build: [evil.example/acme/b]}",
        ),
        // The user's file names the base, and the checkout leads it elsewhere.
        (
            "hub.mu.com/acme/*",
            "acme/b",
            "registries: {hub.mu.com/: ../evil}\n",
            "leads `hub.mu.com/` to",
        ),
        (
            "acme/*",
            "acme/b",
            "registries: {hub.mu.com/acme/: {url: ../evil, strip: false}}\n",
            "leads `hub.mu.com/acme/` to",
        ),
        (
            "acme/*",
            "acme/b",
            "overrides: {acme/b: evil.example/acme/b}\nregistries: {evil.example/: ../evil}\n",
            "`overrides` of this workspace",
        ),
        // The default leads to the network.
        (
            "acme.example/acme/*",
            "acme.example/acme/b",
            "registries: {acme.example/: ../evil}\n",
            "leads `acme.example/` to",
        ),
        // The checkout adds to the user's trust nothing that the user's file does not have.
        (
            "other/*",
            "acme/b",
            "trust: {build: [\"*\", \"acme/*\"]}\n",
            "trust: {build: [hub.mu.com/acme/b]}",
        ),
    ] {
        let sandbox = Sandbox::with_dependencies(&[dependency]);
        buildable(&sandbox.path("hub"));
        buildable(&sandbox.path("evil"));
        user_says(&sandbox, &format!("trust: {{build: [\"{trust}\"]}}\n"));
        sandbox.write(".mu/workspace.yaml", settings);
        sandbox.mu(&["get"]).ok();
        let run = sandbox.mu(&["build", "--yes"]).fails();
        run.says(&["is not trusted", says]);
    }
}

#[test]
fn a_base_that_a_checkout_leads_elsewhere_is_told_once() {
    let sandbox = Sandbox::with_dependencies(&["acme/b"]);
    buildable(&sandbox.path("hub"));
    buildable(&sandbox.path("evil"));
    sandbox.mu(&["get"]).ok().does_not_say(&[" here: "]);
    sandbox.write(".mu/workspace.yaml", "registries: {hub.mu.com/: ../evil}\n");
    let told = ["`hub.mu.com/` is at `file://[DIR]/evil/` here: .mu/workspace.yaml says so"];
    sandbox.mu(&["get"]).ok().says(&told);
    sandbox.mu(&["get"]).ok().does_not_say(&told);
    sandbox.mu(&["status"]).ok().says(&told);
    // Another checkout is another one, and so is another place.
    sandbox.write(
        ".mu/workspace.yaml",
        "registries: {hub.mu.com/: ../hub, hub.mu.com/acme/: {url: ../evil, strip: false}}\n",
    );
    sandbox.mu(&["get"]).ok().says(&["`hub.mu.com/acme/` is at "]).does_not_say(&told);
}

#[test]
fn what_a_team_does_in_an_ordinary_way_is_not_told() {
    for settings in [
        "",
        // The same place as the user's.
        "registries: {hub.mu.com/: ../hub}\n",
        // A base of its own.
        "registries: {team.example/: ../evil, github.com/acme/: ../repositories}\n",
        "base: team.example/\nregistries: {team.example/: ../evil}\n",
        // A setting without a place.
        "registries: {hub.mu.com/: {versions: lenient, url: ../hub}}\n",
    ] {
        let sandbox = Sandbox::with_dependencies(&["hub.mu.com/acme/b"]);
        buildable(&sandbox.path("hub"));
        sandbox.write(".mu/workspace.yaml", settings);
        sandbox.mu(&["get"]).ok().does_not_say(&[" here: "]);
        sandbox.mu(&["status"]).ok().does_not_say(&[" here: "]);
    }
}
