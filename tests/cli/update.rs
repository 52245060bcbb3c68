//! `update`: everything, one package, one package to a version up or down.

use serde_json::json;

use crate::support::git::{HttpServer, Origin};
use crate::support::{Chart, Charts, Nginx, Package, Sandbox};

/// A workspace that is locked to the first of three versions each.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0", "aws/s3#~2.0"]);
    for (name, version) in [("aws/ec2", "1.0.0"), ("aws/s3", "2.0.0")] {
        sandbox.hub().release(name, version);
    }
    sandbox.mu(&["get"]).ok();
    for (name, version) in [
        ("aws/ec2", "1.1.0"),
        ("aws/ec2", "1.2.0"),
        ("aws/ec2", "2.0.0"),
        ("aws/s3", "2.0.5"),
        ("aws/s3", "2.1.0"),
    ] {
        sandbox.hub().release(name, version);
    }
    sandbox
}

#[test]
fn everything_moves_within_what_is_asked_for() {
    let sandbox = sandbox();
    let manifest = sandbox.read("Mu.yaml");
    let run = sandbox.mu(&["update"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu update
    ~ aws/ec2 1.0.0 → 1.2.0
    ~ aws/s3 2.0.0 → 2.0.5
    installed 2 packages (2 downloaded, 0 from cache)
    [exit 0]
    ");
    assert_eq!(sandbox.read("Mu.yaml"), manifest);
    let run = sandbox.mu(&["up", "--json"]).ok();
    assert_eq!(run.json()["changes"], json!([]));
}

#[test]
fn one_package_moves_alone() {
    let sandbox = sandbox();
    let run = sandbox.mu(&["update", "aws/ec2", "--json"]).ok();
    let change = json!([{"id": "hub.mu.com/aws/ec2", "from": "1.0.0", "to": "1.2.0"}]);
    assert_eq!(run.json()["changes"], change);
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.2.0", "hub.mu.com/aws/s3 2.0.0"]);
    // The last segment is enough where only one package has it.
    sandbox.mu(&["update", "s3"]).ok();
    assert_eq!(sandbox.locked()[1], "hub.mu.com/aws/s3 2.0.5");
}

#[test]
fn a_package_moves_to_a_version_up_and_down() {
    let sandbox = sandbox();
    sandbox.mu(&["update", "aws/ec2#1.2.0"]).ok();
    assert_eq!(sandbox.locked()[0], "hub.mu.com/aws/ec2 1.2.0");
    let run = sandbox.mu(&["update", "aws/ec2#1.1.0"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu update aws/ec2#1.1.0
    ~ aws/ec2 1.2.0 → 1.1.0
    installed 1 package (1 downloaded, 0 from cache), 2 in all
    [exit 0]
    ");
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.1.0", "hub.mu.com/aws/s3 2.0.0"]);
    let text = std::fs::read_to_string(sandbox.path("work/.mu/packs/hub.mu.com/aws/ec2/Mu.yaml"));
    assert!(text.expect("is installed").contains("version: 1.1.0"));
    assert!(!sandbox.read("Mu.lock").contains("mu update"), "who moved it is not recorded");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked()[0], "hub.mu.com/aws/ec2 1.1.0", "and it stays there");
}

#[test]
fn out_of_range_is_explained() {
    let sandbox = sandbox();
    let before = sandbox.state();
    let run = sandbox.mu(&["update", "aws/ec2#2.0.0"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu update aws/ec2#2.0.0
    error: no versions fit together
      mu update requires aws/ec2 2.0.0
      acme/web requires aws/ec2 ^1.0
      no version of aws/ec2 is both 2.0.0 and ^1.0

    hint: in acme/web, require aws/ec2 ^2.0.0 instead of ^1.0: `mu add 'aws/ec2#^2.0.0' && mu update 'aws/ec2#2.0.0'`
    [exit 1]
    ");
    assert!(sandbox.state() == before);
}

#[test]
fn a_package_does_not_move_to_a_version_beside_all_that_is_required() {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/ec2 1.0.0:\n aws/ec2 2.0.0:");
    sandbox.write(".mu/workspace.yaml", "majors: many\n");
    sandbox.write("Mu.yaml", "name: acme/web\n");
    sandbox.mu(&["get", "aws/ec2#^1"]).ok();
    let before = sandbox.state();
    for command in
        [&["upgrade", "--pre", "aws/ec2", "--json"][..], &["update", "aws/ec2#2.0.0", "--json"]]
    {
        let run = sandbox.mu(command).fails_with("no-solution");
        assert!(run["help"].to_string().contains("`mu get 'aws/ec2#^2.0.0'`"), "{run}");
    }
    assert_eq!(sandbox.state(), before);
    sandbox.mu(&["get", "aws/ec2#^2.0.0"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 2.0.0"]);
}

/// A version that only its own dependencies require is required by nothing.
#[test]
fn a_package_does_not_move_to_a_version_in_a_circle_that_nothing_requires() {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/ec2 1.0.0:\naws/ec2 2.0.0: aws/log#^1\naws/log 1.0.0: aws/ec2#^2");
    sandbox.write(".mu/workspace.yaml", "majors: many\n");
    sandbox.write("Mu.yaml", "name: acme/web\n");
    sandbox.mu(&["get", "aws/ec2#^1"]).ok();
    let before = sandbox.state();
    let run = sandbox.mu(&["upgrade", "--pre", "aws/ec2", "--json"]).fails_with("no-solution");
    let message = run["message"].as_str().expect("is text");
    assert!(message.ends_with("it is required as `^1` by `mu get`"), "{run}");
    assert_eq!(sandbox.state(), before);
    // What the workspace requires leads into the circle.
    sandbox.mu(&["get", "aws/log"]).ok();
    sandbox.mu(&["update", "aws/ec2#2.0.0"]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
}

/// An open requirement that a locked major meets is not moved to the one that joins it: not in this run, and not in the next.
#[test]
fn a_requirement_stays_with_its_major_when_another_one_joins() {
    let sandbox = Sandbox::new();
    sandbox.offer("aws/app 1.0.0: aws/ec2#>=1.0\naws/ec2 1.0.0:");
    sandbox.write(".mu/workspace.yaml", "majors: many\n");
    sandbox.write("Mu.yaml", "name: acme/web\ndependencies: [aws/app]\n");
    sandbox.mu(&["get"]).ok();
    sandbox.offer("aws/ec2 2.0.0:");
    sandbox.write("api/Mu.yaml", "name: acme/api\ndependencies: [\"aws/ec2#^2\"]\n");
    sandbox.mu(&["get", "--refresh"]).ok();
    let both = ["hub.mu.com/aws/app 1.0.0", "hub.mu.com/aws/ec2 1.0.0", "hub.mu.com/aws/ec2 2.0.0"];
    assert_eq!(sandbox.locked(), both);
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.mu(&["get"]).ok().says(&["up to date"]);
    assert_eq!(sandbox.locked(), both);
    // `mu update` moves it.
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/app 1.0.0", "hub.mu.com/aws/ec2 2.0.0"]);
}

#[test]
fn what_is_not_installed_cannot_move() {
    let run = sandbox().mu(&["update", "aws/ec3"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu update aws/ec3
    error: `aws/ec3` is not installed here

    hint: did you mean `aws/ec2`?
    [exit 1]
    ");
}

#[test]
fn what_an_update_forces_is_listed() {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1", "aws/vpc#>=1 <3"]);
    sandbox.publish(&[
        Package::new("aws/app", "1.0.0").needs("aws/vpc#^1"),
        Package::new("aws/vpc", "1.0.0"),
        Package::new("aws/vpc", "2.0.0"),
    ]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/app 1.0.0", "hub.mu.com/aws/vpc 1.0.0"]);
    sandbox.publish(&[Package::new("aws/app", "1.1.0").needs("aws/vpc#^2")]);
    let run = sandbox.mu(&["update", "aws/app"]).ok();
    run.says(&["aws/app", "1.1.0", "aws/vpc", "2.0.0"]);
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/app 1.1.0", "hub.mu.com/aws/vpc 2.0.0"]);
}

#[test]
fn global_packs_move_too() {
    let sandbox = Sandbox::new();
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["get", "-g", "aws/ec2"]).ok();
    sandbox.hub().release("aws/ec2", "1.1.0");
    sandbox.mu(&["update", "-g"]).ok().says(&["1.1.0"]);
    sandbox.mu(&["list", "-g"]).ok().says(&["1.1.0"]);
}

#[test]
fn yanked_versions_are_not_chosen_but_kept() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.hub().release("aws/ec2", "1.1.0");
    sandbox.mu(&["get"]).ok();
    let index = sandbox.hub().index("aws/ec2");
    let text = std::fs::read_to_string(&index).expect("is there");
    let text = text.replace("\"1.1.0\",", "\"1.1.0\",\"yanked\":\"broken\",");
    std::fs::write(&index, text).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.1.0"], "what is locked stays");
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.0.0"]);
}

#[test]
fn what_nothing_would_require_any_more_is_not_moved_to() {
    let sandbox = Sandbox::with_dependencies(&["x/a#^1"]);
    sandbox.offer(
        "x/a 1.0.0:
         x/a 1.1.0: x/b#^1
         x/b 1.0.0:
         x/b 1.1.0:
         x/b 2.0.0:",
    );
    sandbox.mu(&["get"]).ok();
    let state = sandbox.state();
    // Only `x/a` 1.0.0 goes with it, which needs no `x/b`: the next run would drop that.
    insta::assert_snapshot!(sandbox.mu(&["update", "x/b#2.0.0"]).fails().shown(), @"
    $ mu update x/b#2.0.0
    error: nothing requires `x/b` 2.0.0, so it would go with the next run: it is required as `^1` by `x/a` now

    hint: `mu add 'x/b#^2.0.0'` has the manifest require it
    [exit 1]
    ");
    assert!(sandbox.state() == state, "nothing has changed");
    sandbox.mu(&["update", "x/b#1.0.0"]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
}

/// A repository with a tag, and a workspace that has locked it beside a package of the hub, of which there is a newer version.
fn beside_a_repository(strategy: &str) -> (Origin, HttpServer, Sandbox) {
    let origin = Origin::new("lib.git");
    origin.commit(&[("Mu.yaml", "name: lib\n")]);
    origin.git(&["tag", "v1.1.0"]);
    let server = HttpServer::start(origin.root());
    let lib = format!("git+{}lib.git#^1.1", server.root());
    let sandbox = Sandbox::with_dependencies(&[&lib, "aws/ec2#^1.0"]);
    let settings = sandbox.read(".mu/workspace.yaml");
    sandbox.write(".mu/workspace.yaml", &format!("{settings}resolution: {strategy}\n"));
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["get"]).ok();
    sandbox.hub().release("aws/ec2", "1.1.0");
    (origin, server, sandbox)
}

/// The commit that the lock has.
fn commit(sandbox: &Sandbox) -> String {
    let lock = sandbox.lock();
    let mut all = lock["packages"].as_array().expect("is a list").iter();
    let found = all.find_map(|package| package["commit"].as_str());
    found.expect("one has a commit").to_owned()
}

#[test]
fn a_tag_that_was_moved_moves_what_is_updated_and_nothing_else() {
    for strategy in ["highest", "minimal"] {
        let commands = [
            &["update", "aws/ec2"][..],
            &["update", "aws/ec2#1.1.0"],
            &["upgrade", "aws/ec2"],
            &["add", "aws/ec2#1.1.0"],
        ];
        for command in commands {
            let (origin, server, sandbox) = beside_a_repository(strategy);
            let locked = commit(&sandbox);
            origin.commit(&[("Mu.yaml", "name: lib\ndependencies: ['hub.mu.com/evil/x#^1']\n")]);
            origin.git(&["tag", "--force", "v1.1.0"]);
            sandbox.hub().release("evil/x", "1.0.0");
            sandbox.mu(&[&["--refresh"], command].concat()).ok().does_not_say(&["lib", "evil"]);
            assert_eq!(commit(&sandbox), locked, "{strategy} {command:?}");
            // What the moved tag would have brought is not in use.
            assert_eq!(sandbox.locked().len(), 2, "{:?}", sandbox.locked());
            sandbox.mu(&["get", "--locked"]).ok();
            let id = format!("{}/lib", server.host());
            sandbox.mu(&["--refresh", "update", &id]).ok().says(&["evil/x 1.0.0"]);
            assert_ne!(commit(&sandbox), locked, "{strategy}");
        }
        // A changed line of another package.
        let (origin, _server, sandbox) = beside_a_repository(strategy);
        let locked = commit(&sandbox);
        origin.commit(&[("file", "more")]);
        origin.git(&["tag", "--force", "v1.1.0"]);
        sandbox.write("Mu.yaml", &sandbox.read("Mu.yaml").replace("ec2#^1.0", "ec2#^1.1"));
        sandbox.mu(&["--refresh", "get"]).ok();
        assert_eq!(commit(&sandbox), locked, "{strategy}");
    }
}

#[test]
fn a_tag_that_was_moved_is_outdated() {
    let (origin, server, sandbox) = beside_a_repository("highest");
    sandbox.mu(&["update"]).ok();
    let id = format!("{}/lib", server.host());
    sandbox.mu(&["--refresh", "outdated"]).ok().says(&["everything is at its newest version"]);
    let locked = commit(&sandbox);
    origin.commit(&[("main.tf", "two")]);
    origin.git(&["tag", "--force", "v1.1.0"]);
    let now = origin.git(&["rev-parse", "HEAD"]);
    let answer = sandbox.mu(&["--refresh", "outdated", "--json"]).ok().json();
    let [found] = &answer["packages"].as_array().expect("is a list")[..] else {
        panic!("{answer}")
    };
    assert_eq!(found["id"], json!(id));
    assert_eq!(found["current"], format!("1.1.0 ({})", &locked[..7]));
    assert_eq!(found["allowed"], format!("1.1.0 ({})", &now[..7]));
    sandbox.mu(&["--refresh", "update"]).ok().says(&[&format!("1.1.0 ({})", &now[..7])]);
    sandbox.mu(&["--refresh", "outdated"]).ok().says(&["everything is at its newest version"]);
}

#[test]
fn a_version_that_was_taken_back_stays_unless_its_package_is_updated() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("www/charts");
    std::fs::create_dir_all(&folder).expect("can be made");
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    let offer = |versions: &[&str]| {
        let mut charts = Charts::new(&folder);
        versions.iter().for_each(|version| charts.add(&Chart::new("web", version)));
    };
    offer(&["1.0.0", "1.1.0"]);
    sandbox.asks_for(&[&format!("helm+{}/web#^1.0", nginx.url("charts")), "aws/ec2#^1.0"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["get"]).ok();
    let [_, web] = &sandbox.locked()[..] else { panic!("{:?}", sandbox.locked()) };
    assert!(web.ends_with("charts/web 1.1.0"), "{web}");
    offer(&["1.0.0"]);
    sandbox.hub().release("aws/ec2", "1.1.0");
    sandbox.mu(&["--refresh", "update", "aws/ec2"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.1.0", web]);
    sandbox.mu(&["get", "--locked"]).ok();
    // Also where nothing else would do.
    sandbox.write("Mu.yaml", &sandbox.read("Mu.yaml").replace("web#^1.0", "web#1.1.0"));
    sandbox.mu(&["--refresh", "get"]).ok();
    sandbox.mu(&["--refresh", "update", "aws/ec2"]).ok();
    assert_eq!(sandbox.locked()[1], *web);
    sandbox.mu(&["--refresh", "update", "web"]).fails().says(&["no version of", "web"]);
    sandbox.write("Mu.yaml", &sandbox.read("Mu.yaml").replace("web#1.1.0", "web#^1.0"));
    sandbox.mu(&["--refresh", "update", "web"]).ok().says(&["1.1.0 → 1.0.0"]);
}

#[test]
fn who_names_a_chart_gets_what_its_repository_has_now_under_the_same_version() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("www/charts");
    std::fs::create_dir_all(&folder).expect("can be made");
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    Charts::new(&folder).add(&Chart::new("web", "1.0.0"));
    sandbox.asks_for(&[&format!("helm+{}/web#^1.0", nginx.url("charts"))]);
    sandbox.mu(&["get"]).ok();
    let before = sandbox.read("Mu.lock");
    Charts::new(&folder).add(&Chart::new("web", "1.0.0").lines("description: another one\n"));
    sandbox.mu(&["--refresh", "update"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), before);
    let outdated = sandbox.mu(&["--refresh", "outdated"]).ok();
    outdated.says(&["1.0.0 (sha256:", "takes what was put in its place"]);
    sandbox.mu(&["verify", "--trust"]).fails().says(&["its archive is", "mu update PKG"]);
    sandbox.mu(&["update", "web", "--offline"]).ok();
    assert_eq!(sandbox.read("Mu.lock"), before);
    sandbox.mu(&["--refresh", "update", "web"]).ok().says(&["web 1.0.0"]);
    sandbox.mu(&["--refresh", "outdated"]).ok().says(&["everything is at its newest version"]);
    sandbox.mu(&["verify", "--trust"]).ok();
    sandbox.mu(&["verify"]).ok();
    std::fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn a_version_that_an_override_forbids_is_refused() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.offer("aws/ec2 1.0.0:\naws/ec2 1.1.0:\naws/ec2 1.2.0:");
    sandbox.write(".mu/workspace.yaml", "overrides: {hub.mu.com/aws/ec2: \"aws/ec2#<1.2\"}\n");
    sandbox.mu(&["get"]).ok().says(&["aws/ec2 1.1.0"]);
    let lock = sandbox.read("Mu.lock");
    for [command, version] in [["update", "1.2.0"], ["upgrade", "1.2.0"], ["downgrade", "1.0.0"]] {
        let run = sandbox.mu(&[command, &format!("aws/ec2#{version}")]).fails();
        run.says(&[&format!(
            "cannot be at {version}: `overrides` in the settings say `aws/ec2#<1.2`"
        )]);
    }
    assert_eq!(sandbox.read("Mu.lock"), lock);
    sandbox.mu(&["update", "aws/ec2#1.1.0"]).ok().says(&["up to date"]);
    sandbox.mu(&["update", "aws/ec2"]).ok().says(&["up to date"]);
}
