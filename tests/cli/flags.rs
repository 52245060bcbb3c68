//! The flags that every command takes, and the variables with the same meaning.

use serde_json::json;

use crate::support::{Nginx, Package, Sandbox};
use crate::ways_out::ageless;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    let published = |version: &str, date: &str| {
        Package::new("aws/ec2", version).key("published", json!(format!("{date}T12:00:00Z")))
    };
    sandbox.publish(&[
        published("1.0.0", "2024-01-01"),
        published("1.1.0", "2024-06-01"),
        published("1.2.0", "2025-01-01"),
    ]);
    sandbox
}

#[test]
fn another_folder_is_worked_in() {
    let sandbox = sandbox();
    sandbox.mu_in("home", &["-C", "../work", "get"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2"));
    let run = sandbox.mu_in("home", &["which", "aws/ec2", "-C", "../work"]).ok();
    assert_eq!(run.stdout, "[DIR]/work/.mu/packs/hub.mu.com/aws/ec2\n");
    // Below the root it is the same workspace.
    std::fs::create_dir_all(sandbox.path("work/deep/er")).expect("can be made");
    sandbox.mu_in("work/deep/er", &["verify"]).ok().says(&["1 pack verified"]);
}

#[test]
fn offline_takes_what_is_here() {
    let mut sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get", "--offline"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2"));
    sandbox.hub_is_at("https://hub.invalid/");
    sandbox.set("MU_OFFLINE", "1");
    let run = sandbox.mu(&["get", "aws/s3"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get aws/s3
    error: could not look up `aws/s3`
      caused by: `https://hub.invalid/hub.json` was not requested: mu is offline

    hint: run the command once with MU_OFFLINE unset, so that mu can look up `aws/s3`
    [exit 1]
    ");
}

#[test]
fn offline_nothing_is_called_the_newest_that_was_never_looked_up() {
    let sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["outdated", "--offline"]).ok().says(&["everything is at its newest version"]);
    sandbox.mu(&["update", "--offline"]).ok().does_not_say(&["warning"]);
    sandbox.hub_is_at("https://hub.invalid/");
    let run = sandbox.mu(&["outdated", "--offline", "--json"]);
    assert!(run.fails_with("offline").to_string().contains("aws/ec2"));
    for arguments in [&["update"][..], &["update", "aws/ec2"], &["get", "--update"]] {
        let run = sandbox.mu(&[arguments, &["--offline"]].concat()).ok();
        run.says(&["warning: newer versions of `aws/ec2` are not known: mu is offline"]);
    }
    sandbox.mu(&["get", "--offline"]).ok().does_not_say(&["warning"]);
}

#[test]
fn locked_refuses_and_says_what_differs() {
    let sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["get", "--locked"]).ok();
    sandbox.hub().release("aws/s3", "1.0.0");
    sandbox.asks_for(&["aws/ec2#^1.1", "aws/s3"]);
    let before = sandbox.state();
    let run = sandbox.mu(&["get", "--locked"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu get --locked
    error: Mu.lock does not fit the manifests and settings, and --locked forbids changing it
      acme/web requires aws/ec2 ^1.1
      acme/web requires aws/s3 latest
      acme/web no longer requires aws/ec2 ^1

    hint: run `mu get` without --locked, and commit Mu.lock
    [exit 1]
    ");
    sandbox.mu(&["update", "--locked"]).fails();
    sandbox.mu(&["get", "--locked", "aws/s3"]).fails();
    assert!(sandbox.state() == before);
}

#[test]
fn frozen_does_not_look_at_manifests() {
    let sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    sandbox.asks_for(&["aws/nothing"]);
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get", "--frozen"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/ec2"));
    assert_eq!(sandbox.read("Mu.lock"), lock);
}

#[test]
fn frozen_refuses_a_reference_that_is_not_locked() {
    let sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    sandbox.hub().release("aws/s3", "1.0.0");
    for reference in ["aws/s3", "aws/ec2#2.0.0", "aws/ec2#^1.9"] {
        let error = sandbox.mu(&["get", reference, "--frozen", "--json"]);
        let error = error.fails_with("lock-outdated").to_string();
        assert!(error.contains(&format!("`{reference}` cannot be installed: Mu.lock")), "{error}");
    }
    for moving in ["update", "update aws/ec2#1.0.0", "downgrade aws/ec2#1.0.0", "upgrade", "get -u"]
    {
        let arguments: Vec<&str> = moving.split(' ').chain(["--frozen", "--json"]).collect();
        let error = sandbox.mu(&arguments).fails_with("usage");
        assert!(error["message"].to_string().contains("no version can move"), "{error}");
    }
    for reference in ["aws/ec2", "aws/ec2#^1", "aws/ec2#1.2.0"] {
        sandbox.mu(&["get", reference, "--frozen"]).ok();
    }
}

#[test]
fn conditions_on_versions_need_packages() {
    let sandbox = sandbox();
    for command in ["get", "resolve", "update"] {
        for condition in [&["--channel", "stable"][..], &["--app-version", "2"], &["--pre"]] {
            let run = sandbox.mu(&[&[command], condition, &["--json"]].concat());
            let help = run.fails_with("usage")["help"].to_string();
            assert!(help.contains(&format!("`mu {command} ops/kafka --app")), "{help}");
        }
    }
    sandbox.mu(&["resolve", "--with", "aws/ec2#^1", "--pre"]).ok();
}

#[test]
fn newer_versions_are_passed_over() {
    let chosen = |arguments: &[&str]| {
        let sandbox = sandbox();
        let run = sandbox.mu(arguments).ok();
        let first = sandbox.locked().remove(0);
        (first.trim_start_matches("hub.mu.com/aws/ec2 ").to_owned(), run)
    };
    assert_eq!(chosen(&["get"]).0, "1.2.0");
    assert_eq!(chosen(&["get", "--exclude-newer", "2024-06-30"]).0, "1.1.0");
    assert_eq!(chosen(&["get", "--exclude-newer", "2024-03-01T00:00:00Z"]).0, "1.0.0");
    assert_eq!(chosen(&["get", "--exclude-newer", "3 days"]).0, "1.2.0");
    let sandbox = sandbox();
    let run = sandbox.mu(&["get", "--exclude-newer", "2023-01-01"]).fails();
    insta::assert_snapshot!(ageless(&run), @"
    $ mu get --exclude-newer 2023-01-01
    error: no version of aws/ec2 can be used
      acme/web requires aws/ec2 ^1
      no version of aws/ec2 is ^1
        aws/ec2 1.0.0 to 1.2.0 (3 versions) are too new
        1.0.0 was published [AGE] ago; `--exclude-newer` excludes versions newer than 2023-01-01

    hint: allow versions of any age: `mu get --exclude-newer 0`
    [exit 1]
    ");
}

#[test]
fn young_versions_are_passed_over_by_the_settings() {
    let sandbox = sandbox();
    sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 3 days\n");
    let future = json!("2999-01-01T00:00:00Z");
    sandbox.publish(&[Package::new("aws/ec2", "1.3.0").key("published", future)]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.2.0"]);
}

#[test]
fn a_version_of_unknown_age_is_too_young() {
    let sandbox = sandbox();
    sandbox.publish(&[
        Package::new("aws/ec2", "1.3.0"),
        Package::new("aws/ec2", "1.4.0").key("published", json!("lately")),
    ]);
    for strategy in ["highest", "minimal"] {
        for (limit, flags) in [("3 days", &[][..]), ("0", &["--exclude-newer", "2025-06-01"])] {
            sandbox.write(".mu/workspace.yaml", &format!("minimumReleaseAge: {limit}\n"));
            let asked = ["resolve", "aws/ec2#^1.1", "--resolution", strategy];
            let chosen = sandbox.mu(&[&asked, flags].concat()).ok();
            let expected = if strategy == "highest" { "1.2.0" } else { "1.1.0" };
            chosen.says(&[&format!("aws/ec2 {expected}\n")]);
        }
    }
    sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 3 days\n");
    sandbox.asks_for(&["aws/ec2#^1.3"]);
    insta::assert_snapshot!(sandbox.mu(&["get"]).fails().shown(), @"
    $ mu get
    error: no version of aws/ec2 can be used
      acme/web requires aws/ec2 ^1.3
      no version of aws/ec2 is ^1.3
        aws/ec2 1.3.0 and 1.4.0 may be too new: the registry does not say when they were published
        aws/ec2 has 1.0.0 to 1.2.0 (3 versions); nearest: 1.2.0

    hint: allow versions of any age: `mu get --exclude-newer 0`
    hint: in acme/web, require aws/ec2 ^1.2.0 instead of ^1.3: `mu add 'aws/ec2#^1.2.0'`
    [exit 1]
    ");
    sandbox.mu(&["get", "--exclude-newer", "0"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.4.0"]);
    // Locked versions stay, and what is held back is reported with its reason.
    sandbox.mu(&["get"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.4.0"]);
}

#[test]
fn a_folder_is_of_no_age() {
    let sandbox = Sandbox::with_dependencies(&["../beside"]);
    sandbox.trusts_folder("beside");
    sandbox.place("beside", &Package::new("acme/beside", "1.0.0"));
    sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 3 days\n");
    sandbox.mu(&["get"]).ok();
}

#[test]
fn the_strategy_is_one_of_two_words() {
    let mut sandbox = sandbox();
    sandbox.mu(&["get", "--resolution", "highest"]).ok();
    assert_eq!(sandbox.lock()["resolution"], "highest");
    sandbox.set("MU_RESOLUTION", "lowest");
    sandbox.mu(&["get", "--json"]).fails_with("usage");
    sandbox.mu(&["get", "--resolution", "highest"]).ok();
}

#[test]
fn quiet_and_verbose() {
    let sandbox = sandbox();
    let quiet = sandbox.mu(&["get", "-q"]).ok();
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("", ""));
    // The result of a dry run is an answer.
    let asked = sandbox.mu(&["update", "aws/ec2#1.1.0", "--dry-run", "-q"]).ok();
    assert_eq!((&*asked.stdout, &*asked.stderr), ("~ aws/ec2 1.2.0 → 1.1.0\n", ""));
    // Errors are always printed.
    assert!(!sandbox.mu(&["get", "-q", "aws/nothing"]).fails().stderr.is_empty());
    sandbox.mu(&["update", "-v"]).ok();
    // Progress is for terminals.
    let run = sandbox.mu(&["get", "--no-progress"]).ok();
    assert_eq!(run.stderr, sandbox.mu(&["get"]).ok().stderr);
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let mut sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    let escapes = |sandbox: &Sandbox, arguments: &[&str]| {
        let run = sandbox.mu(arguments);
        run.stdout.contains('\u{1b}') || run.stderr.contains('\u{1b}')
    };
    assert!(!escapes(&sandbox, &["list"]));
    assert!(escapes(&sandbox, &["list", "--color", "always"]));
    assert!(!escapes(&sandbox, &["list", "--color", "never"]));
    assert!(escapes(&sandbox, &["why", "nothing", "--color", "always"]));
    sandbox.set("CLICOLOR_FORCE", "1");
    assert!(escapes(&sandbox, &["list"]));
    sandbox.set("NO_COLOR", "1");
    assert!(!escapes(&sandbox, &["list"]));
    assert!(!escapes(&sandbox, &["why", "nothing"]));
    assert!(!escapes(&sandbox, &["list", "--json", "--color", "always"]), "JSON is for programs");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let sandbox = sandbox();
    sandbox.mu(&["get"]).ok();
    for arguments in [
        &["list"][..],
        &["tree"],
        &["get"],
        &["list", "--json"],
        &["--help"],
        &[],
        &["status"],
        &["completions", "bash"],
        &["man"],
        &["schema", "lock"],
    ] {
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        let mut command = sandbox.command(arguments);
        command.stdout(writer);
        let run = sandbox.run(arguments, command).ok();
        assert!(!run.stderr.contains("error") && !run.stderr.contains("panic"), "{}", run.shown());
    }
    let (reader, writer) = std::io::pipe().expect("there are pipes");
    drop(reader);
    let mut command = sandbox.command(&["which", "nothing"]);
    command.stderr(writer);
    sandbox.run(&["which", "nothing"], command).fails();
}

#[test]
fn one_job_is_enough() {
    let sandbox = sandbox();
    sandbox.mu(&["get", "--jobs", "1"]).ok();
    sandbox.mu(&["verify", "--jobs", "1"]).ok();
}

#[test]
fn a_lock_that_answers_needs_no_registry_whatever_may_be_asked() {
    let sandbox = Sandbox::with_dependencies(&["aws/app#^1"]);
    sandbox.offer("aws/app 1.0.0: aws/lib#^1\n aws/lib 1.0.0:");
    let nginx = Nginx::serve(sandbox.hub().folder(), "");
    sandbox.hub_is_at(&nginx.url(""));
    sandbox.mu(&["get"]).ok();
    let before = nginx.log().len();
    let run = sandbox.mu(&["resolve", "--only", "private.example/", "--json"]).ok().json();
    assert_eq!(run["changes"], serde_json::json!([]));
    assert_eq!(run["packages"].as_array().map(Vec::len), Some(2));
    assert_eq!(nginx.log().len(), before);
}
