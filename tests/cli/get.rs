//! `get`, `remove`, and what `--dry-run` does not touch.

use std::fs;

use serde_json::json;

use crate::support::{Nginx, Package, Sandbox};

fn published() -> [Package; 4] {
    [
        Package::new("aws/ec2", "1.0.6"),
        Package::new("aws/ec2", "1.2.0").needs("aws/vpc#^1"),
        Package::new("aws/vpc", "1.1.0"),
        Package::new("aws/s3", "2.0.0"),
    ]
}

#[test]
fn a_first_get_shows_what_it_did() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0.6"]);
    sandbox.publish(&published());
    let run = sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    + aws/ec2 1.2.0
    + aws/vpc 1.1.0
    installed 2 packages (2 downloaded, 0 from cache)
    [exit 0]
    ");
    let again = sandbox.mu(&["get"]).ok();
    insta::assert_snapshot!(again.shown(), @"
    $ mu get
    up to date (2 packages)
    [exit 0]
    ");
    let mut sandbox = sandbox;
    let locked = sandbox.lock()["packages"][0].clone();
    for (key, shown) in [("digest", "[DIGEST]"), ("archive", "[ARCHIVE]")] {
        sandbox.replace(locked[key].as_str().expect("is text"), shown);
    }
    let json = sandbox.mu(&["get", "--json"]).ok().json();
    let keys: Vec<&String> = json.as_object().expect("is an object").keys().collect();
    assert_eq!(
        keys,
        ["resolution", "packages", "requirements", "changes", "replaced", "fetched", "reused"]
    );
    assert_eq!(
        json["packages"][1],
        json!({
            "id": "hub.mu.com/aws/ec2",
            "version": "1.2.0",
            "source": "hub+file://[DIR]/hub/",
            "commit": null,
            "digest": "[DIGEST]",
            "archive": "[ARCHIVE]",
            "url": "file://[DIR]/hub/packs/aws/ec2/ec2-1.2.0.tgz",
            "requested": [{"by": "acme/web", "spec": "^1.0.6"}],
            "dependencies": ["hub.mu.com/aws/vpc"],
            "direct": true,
            "path": "[DIR]/work/.mu/packs/hub.mu.com/aws/ec2",
        })
    );
    // What others need is installed first.
    assert_eq!(json["packages"][0]["id"], "hub.mu.com/aws/vpc");
    assert_eq!(json["packages"][0]["direct"], false);
    assert_eq!(json["requirements"], json!(["hub.mu.com/aws/ec2#^1.0.6"]));
    assert_eq!((&json["fetched"], &json["reused"]), (&json!(0), &json!(2)));
}

#[test]
fn a_dry_run_writes_nothing() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#1.0.6"]);
    sandbox.publish(&published());
    let before = sandbox.state();
    let untouched = |arguments: &[&str], before: &std::collections::BTreeMap<_, _>| {
        let run = sandbox.mu(arguments).ok();
        let after = sandbox.state();
        let names = |state: &std::collections::BTreeMap<String, _>| {
            state.keys().cloned().collect::<Vec<String>>()
        };
        assert_eq!(names(&after), names(before), "{}", run.shown());
        assert!(after == *before, "{}", run.shown());
        run
    };
    let run = untouched(&["get", "--dry-run"], &before);
    insta::assert_snapshot!(run.shown(), @"
    $ mu get --dry-run
    + aws/ec2 1.0.6
    1 package would be in use; nothing was written
    [exit 0]
    ");
    untouched(&["get", "aws/s3", "--dry-run"], &before);
    untouched(&["get", "-g", "aws/s3", "--dry-run"], &before);
    untouched(&["add", "aws/s3", "--dry-run"], &before);
    assert!(!sandbox.has("cache/store/trees"), "nothing is fetched for it either");
    sandbox.mu(&["get"]).ok();
    let before = sandbox.state();
    untouched(&["remove", "aws/ec2", "--dry-run"], &before);
    untouched(&["unpin", "--dry-run"], &before);
    untouched(&["update", "--dry-run"], &before);
    sandbox.mu(&["unpin", "aws/ec2"]).ok();
    let before = sandbox.state();
    untouched(&["update", "--dry-run"], &before).says(&["1.0.6", "1.2.0"]);
    untouched(&["get", "-u", "--dry-run"], &before).says(&["1.2.0"]);
    untouched(&["pin", "--dry-run"], &before);
    untouched(&["resolve", "--with", "aws/s3"], &before);
    for question in ["list", "tree", "outdated", "status", "verify", "doctor"] {
        untouched(&[question], &before);
    }
}

#[test]
fn a_reference_stays_until_it_is_removed() {
    let sandbox = Sandbox::new();
    sandbox.publish(&published());
    sandbox.mu(&["get", "aws/ec2#^1", "aws/s3"]).ok();
    assert_eq!(sandbox.lock()["extra"], json!(["aws/ec2#^1", "aws/s3"]));
    // A plain `get`, even without any manifest, keeps it.
    sandbox.mu(&["get"]).ok().says(&["3 packages"]);
    let run = sandbox.mu(&["remove", "aws/ec2"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu remove aws/ec2
    - aws/ec2 1.2.0
    - aws/vpc 1.1.0
    up to date (1 package)
    [exit 0]
    ");
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/s3 2.0.0"]);
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/vpc"));
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2"));
    sandbox.mu(&["remove", "aws/ec2"]).fails();
    sandbox.mu(&["rm", "aws/s3"]).ok();
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com"), "no empty folder is left");
}

#[test]
fn save_writes_the_manifest() {
    let sandbox = Sandbox::with_dependencies(&[]);
    sandbox.publish(&published());
    sandbox.mu(&["get", "--save", "aws/ec2"]).ok();
    let expected = "name: acme/web\nversion: 0.1.0\ndependencies:\n  - aws/ec2#^1.2.0\n";
    assert_eq!(sandbox.read("Mu.yaml"), expected);
    assert_eq!(sandbox.lock()["extra"], json!(null));
    sandbox.mu(&["get", "-s", "aws/s3#2.0.0"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), format!("{expected}  - aws/s3#2.0.0\n"));
}

#[test]
fn update_goes_with_get() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["get"]).ok();
    sandbox.hub().release("aws/ec2", "1.4.0");
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.0.0"], "the lock holds");
    sandbox.mu(&["get", "-u"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.4.0"]);
}

#[test]
fn an_element_installs_its_package() {
    let sandbox = Sandbox::new();
    let exports = "exports:\n  VM: {kind: class, path: vm.ts}\n";
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0").manifest(exports).file("vm.ts", "")]);
    sandbox.mu(&["get", "https://hub.mu.com/aws/ec2/VM#^1"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.0.0"]);
    let run = sandbox.mu(&["which", "aws/ec2/VM"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/.mu/packs/hub.mu.com/aws/ec2/vm.ts  class\n");
}

#[test]
fn nothing_to_install_says_how_to_begin() {
    let sandbox = Sandbox::new();
    let run = sandbox.mu(&["get"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    error: there is no Mu.yaml in `[DIR]/work` or below it, and no Mu.lock

    hint: `mu init` creates a package here, and `mu get REF` installs packages without one
    [exit 1]
    ");
}

#[test]
fn narrowing_flags_choose_among_versions() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.0").key("channels", json!(["stable"])),
        Package::new("aws/ec2", "1.1.0").key("channels", json!(["fast"])),
        Package::new("aws/ec2", "1.2.0-rc.1"),
        Package::new("elk", "1.0.0").key("appVersion", json!("8.10.0")),
        Package::new("elk", "1.1.0").key("appVersion", json!("8.11.0")),
    ]);
    sandbox.mu(&["get", "aws/ec2", "--channel", "stable"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.0.0"]);
    sandbox.mu(&["get", "-u", "aws/ec2", "--pre"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.2.0-rc.1"]);
    sandbox.mu(&["get", "elk", "--app-version", "8.10"]).ok();
    assert_eq!(sandbox.locked()[1], "hub.mu.com/elk 1.0.0");
    // The conditions are remembered.
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.locked()[1], "hub.mu.com/elk 1.0.0");
}

#[test]
fn a_get_that_fails_leaves_the_folder_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["get", "nothing/here"]).fails();
    assert!(sandbox.has("work/.mu"), "an empty `.mu` marks the root of a workspace");
    assert!(!sandbox.has("work/.mu/packs"));
    std::fs::create_dir(sandbox.path("bare")).expect("can be made");
    std::fs::write(sandbox.path("bare/Mu.yaml"), "name: acme/bare\n").expect("can be written");
    sandbox.mu_in("bare", &["get", "nothing/here"]).fails();
    assert!(!sandbox.has("bare/.mu"));
}

#[test]
fn the_home_folder_is_no_workspace_for_the_global_packs() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    sandbox.mu(&["get", "--global", "aws/ec2"]).ok();
    let before = sandbox.state();
    for folder in ["home", "home/.mu", "home/.mu/packs/hub.mu.com/aws/ec2"] {
        sandbox.mu_in(folder, &["get", "aws/ec2", "--json"]).fails_with("usage");
    }
    assert!(sandbox.state() == before);
    sandbox.mu_in("home", &["get", "--global", "aws/ec2"]).ok().says(&["up to date ("]);
}

#[test]
fn hints_about_global_packs_are_commands_for_them() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    sandbox
        .mu(&["list", "-g"])
        .ok()
        .says(&["nothing is installed globally", "`mu get --global REF`"]);
    for arguments in [&["get", "-g"][..], &["remove", "-g", "aws/none"]] {
        let sandbox = Sandbox::new();
        sandbox.mu(arguments).fails().says(&["no global packages", "`mu get --global REF`"]);
    }
    let run = sandbox.mu(&["get", "-g", "aws/ec2#^2"]).fails();
    run.says(&["`mu get --global 'aws/ec2#^1.0.0'`"]);
}

#[test]
fn inside_a_pack_is_inside_the_workspace() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")]);
    sandbox.mu(&["get", "aws/ec2"]).ok();
    let run = sandbox.mu_in("work/.mu/packs/hub.mu.com/aws/ec2", &["get"]).ok();
    run.says(&["up to date (1 package)"]);
}

#[test]
fn who_needs_a_package_that_moved_is_named() {
    let sandbox = Sandbox::with_dependencies(&["acme/app"]);
    sandbox.publish(&[
        Package::new("acme/app", "1.0.0").needs("old/kafka"),
        Package::new("old/kafka", "1.0.0").key("movedTo", "hub.mu.com/ops/kafka".into()),
    ]);
    sandbox.mu(&["get"]).ok().says(&[
        "`old/kafka`, needed by `acme/app`, has moved to `ops/kafka`",
        "where its new versions will be\n",
    ]);
}

#[test]
fn a_package_that_moved_says_where_to() {
    let sandbox = Sandbox::with_dependencies(&["old/kafka"]);
    let moved = Package::new("old/kafka", "1.0.0").key("movedTo", "hub.mu.com/ops/kafka".into());
    sandbox.hub().publish(&moved);
    sandbox
        .mu(&["get"])
        .ok()
        .says(&["`old/kafka` has moved to `ops/kafka`", "depend on that instead\n"]);
    sandbox.mu(&["get"]).ok().does_not_say(&["has moved"]);
    let outdated = sandbox.mu(&["outdated", "--json"]).ok().json();
    assert_eq!(outdated["packages"][0]["movedTo"], "hub.mu.com/ops/kafka");
    // Other reasons for holding it back are reported too.
    sandbox
        .hub()
        .publish(&Package::new("old/kafka", "2.0.0").key("movedTo", "hub.mu.com/ops/kafka".into()));
    let outdated = |because: &str| {
        let line = format!("{because}, moved to ops/kafka");
        sandbox.mu(&["outdated"]).ok().says(&[&line]);
    };
    outdated("only Mu.lock");
    sandbox.write("Mu.yaml", "name: acme/web\ndependencies: [old/kafka#^1]\n");
    sandbox.mu(&["get"]).ok();
    outdated("^1 by acme/web");
}

#[test]
fn an_element_that_is_not_exported_is_told_with_those_that_are() {
    let sandbox = Sandbox::new();
    let exports = "exports:\n  VM: {kind: class, path: vm.ts}\n";
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0").manifest(exports)]);
    for command in ["get", "info"] {
        let run = sandbox.mu(&[command, "aws/ec2/VN"]).fails();
        run.says(&["`aws/ec2` is a package, but exports no `VN`: it exports `VM`"]);
    }
}

#[test]
fn archives_in_an_unusual_place_are_looked_for_in_the_usual_one_for_few_packages() {
    let names: Vec<String> = (0..60).map(|number| format!("many/n{number}")).collect();
    let sandbox = Sandbox::with_dependencies(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in &names {
        sandbox.hub().release(name, "1.0.0");
    }
    let hub = sandbox.path("hub");
    fs::rename(hub.join("packs"), hub.join("archives")).expect("can be moved");
    let file = json!({ "hub": 1, "index": "index/", "packs": "archives/" });
    fs::write(hub.join("hub.json"), file.to_string()).expect("can be written");
    let nginx = Nginx::serve(&hub, "");
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.mu(&["get"]).ok();
    for folder in ["cache", "work/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("can be removed");
    }
    let before = nginx.log().len();
    sandbox.mu(&["get"]).ok().says(&["installed 60 packages (60 downloaded"]);
    let asked = &nginx.log()[before..];
    let wrong = asked.iter().filter(|line| line.contains("/packs/")).count();
    assert!(wrong <= 16, "{wrong} of {}: {asked:?}", asked.len());
    assert_eq!(asked.len(), wrong + names.len() + 1, "and `hub.json` once: {asked:?}");
}

#[test]
fn what_only_development_needs_is_left_out_on_request() {
    let sandbox = Sandbox::new();
    sandbox.offer(
        "aws/ec2 1.0.0: aws/vpc#^1
         aws/vpc 1.0.0:
         test/run 1.0.0: aws/vpc#^1 test/report#^1
         test/report 1.0.0:",
    );
    sandbox.write(
        "Mu.yaml",
        "name: acme/web\ndependencies: [aws/ec2#^1]\ndevDependencies: [test/run#^1]\n",
    );
    let packs = || -> Vec<&str> {
        let all = ["aws/ec2", "aws/vpc", "test/run", "test/report"];
        let is_there =
            |name: &&str| sandbox.has(&format!("work/.mu/packs/hub.mu.com/{name}/Mu.yaml"));
        all.into_iter().filter(is_there).collect()
    };
    let run = sandbox.mu(&["get", "--no-dev"]).ok();
    run.says(&[
        "installed 2 packages (2 downloaded, 0 from cache); 2 are left out, which only devDependencies need",
    ]);
    assert_eq!(packs(), ["aws/ec2", "aws/vpc"]);
    // The lock is the same, and complete.
    assert_eq!(sandbox.locked().len(), 4);
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["verify"]).ok();
    let answer = sandbox.mu(&["get", "--locked", "--no-dev", "--json"]).ok().json();
    let without: Vec<&str> = answer["packages"]
        .as_array()
        .expect("is a list")
        .iter()
        .filter(|package| package["path"].is_null())
        .map(|package| package["id"].as_str().expect("is text"))
        .collect();
    assert_eq!(without, ["hub.mu.com/test/report", "hub.mu.com/test/run"]);
    // The next run without the flag installs the rest, and one with it removes that again.
    sandbox.mu(&["get"]).ok();
    assert_eq!(packs().len(), 4);
    sandbox.mu(&["get", "--no-dev"]).ok();
    assert_eq!(packs(), ["aws/ec2", "aws/vpc"]);
    assert_eq!(sandbox.read("Mu.lock"), lock);
    // Packages that both need stay: a second manifest may need what the first only uses for development.
    sandbox.write("b/Mu.yaml", "name: acme/b\ndependencies: [test/run#^1]\n");
    sandbox.mu(&["get", "--no-dev"]).ok();
    assert_eq!(packs().len(), 4);
}

#[test]
fn the_workspace_is_not_installed_into_its_own_packs() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "no package");
    let before = sandbox.state();
    for folder in [".", "./", "..", "../work"] {
        let error =
            sandbox.mu(&["get", folder, "--json"]).fails_with("usage")["message"].to_string();
        assert!(error.contains("this workspace, and has no Mu.yaml"), "{error}");
    }
    assert!(sandbox.state() == before);
    sandbox.mu(&["init", "acme/web"]).ok();
    sandbox.mu(&["get", "."]).ok();
}
