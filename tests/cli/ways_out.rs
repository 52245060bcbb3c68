//! Conflicts and their ways out: each is pasted into a shell, and works.

use serde_json::{Value, json};

use crate::support::{Package, Run, Sandbox};

/// Runs a failing command, and tries each way out in a separate sandbox; the result must stay stable.
#[track_caller]
pub(crate) fn told(make: impl Fn() -> Sandbox, arguments: &[&str]) -> Run {
    told_in(&shells()[..1], make, arguments)
}

/// The same, in these shells.
#[track_caller]
pub(crate) fn told_in(shells: &[&str], make: impl Fn() -> Sandbox, arguments: &[&str]) -> Run {
    let sandbox = make();
    let run = sandbox.mu(arguments).fails();
    let mut with_json = arguments.to_vec();
    with_json.push("--json");
    let error = sandbox.mu(&with_json).error();
    let ways = error["details"]["waysOut"].as_array().expect("is a list").clone();
    assert!(ways.len() <= 3, "{ways:?}");
    for way in &ways {
        let text = way["text"].as_str().expect("is text").replace("hub.mu.com/", "");
        assert!(run.shown().contains(&text), "{text}");
        for shell in shells {
            take(&make(), shell, way, arguments);
        }
    }
    assert!(run.shown().lines().count() < 24, "it fits a screen");
    run
}

/// The shells that commands are pasted into; zsh where it is installed.
pub(crate) fn shells() -> &'static [&'static str] {
    let path = std::env::var_os("PATH").expect("is set");
    if std::env::split_paths(&path).any(|folder| folder.join("zsh").is_file()) {
        &["bash", "zsh"]
    } else {
        &["bash"]
    }
}

/// Pastes the commands of a way out into a shell, or makes its edit; afterwards everything must fit, and stay
/// so.
#[track_caller]
fn take(sandbox: &Sandbox, shell: &str, way: &Value, failed: &[&str]) {
    let commands = way["commands"].as_array().expect("is a list");
    let commands: Vec<&str> = commands.iter().map(|one| one.as_str().expect("is text")).collect();
    if commands.is_empty() {
        edit(sandbox, way);
        sandbox.mu(failed).ok();
        return;
    }
    for step in way["steps"].as_array().into_iter().flatten() {
        if step["commands"].as_array().is_some_and(Vec::is_empty) {
            edit(sandbox, step);
        }
    }
    sandbox.shell(shell, &commands.join(" && ")).ok();
    // A question changes nothing, and a strategy for one command is not kept.
    let is_question = failed.contains(&"resolve");
    let is_strategy = ["highest", "minimal"].iter().any(|kind| way["kind"] == **kind);
    if !is_question && !is_strategy && !failed.contains(&"--resolution") {
        sandbox.mu(&["get"]).ok();
    }
}

/// Makes the edit of the settings in a way out.
fn edit(sandbox: &Sandbox, way: &Value) {
    for step in way["steps"].as_array().into_iter().flatten() {
        edit(sandbox, step);
    }
    let settings = match way["kind"].as_str() {
        Some("override") => {
            format!("overrides:\n  {}\n", way["line"].as_str().expect("is text"))
        }
        Some("runtime") => format!("runtime:\n  {}\n", way["line"].as_str().expect("is text")),
        Some("many-majors") => format!("{}\n", way["line"].as_str().expect("is text")),
        Some("include" | "no-override" | "together") => String::new(),
        other => panic!("{other:?} has no commands"),
    };
    sandbox.write(way["file"].as_str().unwrap_or(".mu/workspace.yaml"), &settings);
}

/// The output without ages, which change every day.
pub(crate) fn ageless(run: &Run) -> String {
    let (before, rest) = run.shown().split_once("was published ").expect("tells an age");
    let (_, after) = rest.split_once(" ago").expect("tells an age");
    format!("{before}was published [AGE] ago{after}")
}

/// `aws/app` 1 needs `aws/vpc` 2, an older one needed 1.
fn conflicting(dependencies: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(dependencies);
    sandbox.offer(
        "aws/app 0.9.0: aws/vpc#^1
         aws/app 1.0.0: aws/vpc#^2
         aws/vpc 1.0.0:
         aws/vpc 1.4.0:
         aws/vpc 2.0.0:
         aws/vpc 2.3.0:",
    );
    sandbox
}

/// The same, installed.
fn installed(dependencies: &[&str]) -> Sandbox {
    let sandbox = conflicting(dependencies);
    sandbox.mu(&["get"]).ok();
    sandbox
}

#[test]
fn requirements_to_relax_come_newer_first() {
    let run = told(|| conflicting(&["aws/app#^1", "aws/vpc#~1.4"]), &["get"]);
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    error: no versions fit together
      acme/web requires aws/app ^1
      aws/app 1.0.0 requires aws/vpc ^2
      acme/web requires aws/vpc ~1.4
      no version of aws/vpc is both ^2 and ~1.4

    hint: in acme/web, require aws/vpc ~2.3.0 instead of ~1.4: `mu add 'aws/vpc#~2.3.0'`
    hint: in acme/web, require aws/app ^0.9.0 instead of ^1: `mu add 'aws/app#^0.9.0'`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
    let sandbox = conflicting(&["aws/app#^1", "aws/vpc#^1"]);
    let details = &sandbox.mu(&["get", "--json"]).fails_with("no-solution")["details"];
    assert_eq!(
        details["waysOut"][0],
        json!({
            "kind": "require",
            "text": "in acme/web, require aws/vpc ^2.3.0 instead of ^1: `mu add 'aws/vpc#^2.3.0'`",
            "commands": ["mu add 'aws/vpc#^2.3.0'"],
            "changes": [{
                "by": "acme/web",
                "id": "hub.mu.com/aws/vpc",
                "from": "^1",
                "to": "^2.3.0",
                "version": "2.3.0",
            }],
        })
    );
}

#[test]
fn a_pin_is_taken_back() {
    let make = || {
        let sandbox = conflicting(&["aws/vpc#>=1 <3"]);
        sandbox.hub().publish(&Package::new("aws/old", "1.0.0").needs("aws/vpc#^1"));
        sandbox.mu(&["get"]).ok();
        sandbox.mu(&["pin", "aws/vpc"]).ok();
        sandbox
    };
    insta::assert_snapshot!(told(make, &["add", "aws/old"]).shown(), @"
    $ mu add aws/old
    error: no versions fit together
      acme/web requires aws/old
      aws/old 1.0.0 requires aws/vpc ^1
      acme/web requires aws/vpc 2.3.0
      no version of aws/vpc is both ^1 and 2.3.0

    hint: unpin aws/vpc: `mu unpin aws/vpc && mu add aws/old`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
}

#[test]
fn the_package_and_the_section_are_named() {
    let make = || {
        let sandbox = conflicting(&[]);
        sandbox.write("api/Mu.yaml", "name: acme/api\ndependencies: [\"aws/app#^1\"]\n");
        sandbox.write("site/Mu.yaml", "name: acme/site\ndevDependencies: [\"aws/vpc#^1\"]\n");
        sandbox
    };
    let run = told(make, &["get"]);
    insta::assert_snapshot!(run.shown(), @"
    $ mu get
    error: no versions fit together
      acme/api requires aws/app ^1
      aws/app 1.0.0 requires aws/vpc ^2
      acme/site requires aws/vpc ^1
      no version of aws/vpc is both ^2 and ^1

    hint: in acme/site, require aws/vpc ^2.3.0 instead of ^1: `mu add -p acme/site --dev 'aws/vpc#^2.3.0'`
    hint: in acme/api, require aws/app ^0.9.0 instead of ^1: `mu add -p acme/api 'aws/app#^0.9.0'`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
}

#[test]
fn versions_that_rules_took_out_are_let_in() {
    let excluded = || {
        let sandbox = conflicting(&["aws/vpc#^2"]);
        sandbox.write(".mu/workspace.yaml", "exclude: [\"aws/vpc#^2\"]\n");
        sandbox
    };
    insta::assert_snapshot!(told(excluded, &["get"]).shown(), @"
    $ mu get
    error: no version of aws/vpc can be used
      acme/web requires aws/vpc ^2
      no version of aws/vpc is ^2
        aws/vpc 2.0.0 and 2.3.0 are excluded
        aws/vpc has 1.0.0 and 1.4.0

    hint: take `aws/vpc#^2` out of `exclude` in `.mu/workspace.yaml:1`
    hint: in acme/web, require aws/vpc ^1.4.0 instead of ^2: `mu add 'aws/vpc#^1.4.0'`
    [exit 1]
    ");
    let young = || {
        let sandbox = Sandbox::with_dependencies(&["aws/new#^1"]);
        let package = Package::new("aws/new", "1.0.0");
        sandbox.publish(&[package.key("published", json!("2026-11-20T00:00:00Z"))]);
        sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 20000 days\n");
        sandbox
    };
    insta::assert_snapshot!(ageless(&told(young, &["get"])), @"
    $ mu get
    error: no version of aws/new can be used
      acme/web requires aws/new ^1
      no version of aws/new is ^1
        aws/new 1.0.0 is too new
        1.0.0 was published [AGE] ago; `minimumReleaseAge: 20000 days` (.mu/workspace.yaml:1) allows it from 2081-08-23 on

    hint: allow versions of any age: `mu get --exclude-newer 0`
    [exit 1]
    ");
    let run = told(young, &["get", "aws/new"]);
    run.says(&["`mu get aws/new --exclude-newer 0`\n"]);
    let late = || {
        let sandbox = young();
        sandbox.write(".mu/workspace.yaml", "");
        sandbox
    };
    let run = told(late, &["get", "--exclude-newer", "2026-11-01"]);
    insta::assert_snapshot!(ageless(&run), @"
    $ mu get --exclude-newer 2026-11-01
    error: no version of aws/new can be used
      acme/web requires aws/new ^1
      no version of aws/new is ^1
        aws/new 1.0.0 is too new
        1.0.0 was published [AGE] ago; `--exclude-newer` excludes versions newer than 2026-11-01

    hint: allow versions of any age: `mu get --exclude-newer 0`
    [exit 1]
    ");
    let early = || {
        let sandbox = conflicting(&["aws/vpc#^3"]);
        sandbox.hub().release("aws/vpc", "3.0.0-rc.1");
        sandbox
    };
    insta::assert_snapshot!(told(early, &["get"]).shown(), @"
    $ mu get
    error: no version of aws/vpc meets the requirements
      acme/web requires aws/vpc ^3
      no version of aws/vpc is ^3
        aws/vpc has 1.0.0 to 3.0.0-rc.1 (5 versions); nearest: 3.0.0-rc.1
        looked at hub+file://[DIR]/hub/

    hint: in acme/web, require aws/vpc ^3 with prereleases instead of ^3: `mu add 'aws/vpc#^3' --pre`
    hint: in acme/web, require aws/vpc ^2.3.0 instead of ^3: `mu add 'aws/vpc#^2.3.0'`
    [exit 1]
    ");
    let channel = || {
        let sandbox = Sandbox::new();
        sandbox.publish(&[
            Package::new("ops/kafka", "3.0.0").key("channels", json!(["stable", "fast"])),
            Package::new("ops/kafka", "3.1.0").key("channels", json!(["fast"])),
        ]);
        sandbox.write(
            "Mu.yaml",
            "name: acme/web\ndependencies:\n  - {ref: \"ops/kafka#~3.1\", channel: stable}\n",
        );
        sandbox
    };
    insta::assert_snapshot!(told(channel, &["get"]).shown(), @"
    $ mu get
    error: no version of ops/kafka meets the requirements
      acme/web requires ops/kafka ~3.1 in channel stable
      no version of ops/kafka is ~3.1 in channel stable
        ops/kafka has 3.0.0 in channel stable and 3.0.0 and 3.1.0 in channel fast
        looked at hub+file://[DIR]/hub/

    hint: in acme/web, require ops/kafka ~3.1 in channel fast instead of ~3.1 in channel stable: `mu add 'ops/kafka#~3.1' --channel fast`
    hint: in acme/web, require ops/kafka ~3.0.0 in channel stable instead of ~3.1 in channel stable: `mu add 'ops/kafka#~3.0.0' --channel stable`
    [exit 1]
    ");
}

#[test]
fn settings_that_override_are_told() {
    let make = || {
        let sandbox = conflicting(&["aws/app#^1"]);
        let settings = "overrides:\n  aws/vpc: \"hub.mu.com/aws/vpc#^9\"\n";
        sandbox.write(".mu/workspace.yaml", settings);
        sandbox
    };
    insta::assert_snapshot!(told(make, &["get"]).shown(), @"
    $ mu get
    error: no version of aws/vpc meets the requirements
      acme/web requires aws/app ^1
      aws/app 1.0.0 requires aws/vpc ^2
      the settings override aws/vpc with aws/vpc ^9
      no version of aws/vpc is ^9
        aws/vpc has 1.0.0 to 2.3.0 (4 versions)
        looked at hub+file://[DIR]/hub/

    hint: take `aws/vpc` out of `overrides` in `.mu/workspace.yaml:2`
    [exit 1]
    ");
    // With both strategies, also if it is what the overridden version needs.
    for resolution in ["highest", "minimal"] {
        let mut sandbox = Sandbox::with_dependencies(&["aws/one#^2", "aws/two#^1"]);
        sandbox.set("MU_RESOLUTION", resolution);
        sandbox.offer(
            "aws/one 1.0.0: aws/vpc#^1
             aws/one 2.0.0: aws/vpc#^2
             aws/two 1.0.0: aws/vpc#^2
             aws/vpc 1.0.0:
             aws/vpc 2.0.0:",
        );
        sandbox.write(".mu/workspace.yaml", "overrides:\n  aws/one: 1.0.0\n");
        sandbox.mu(&["get"]).fails().says(&[
            "the settings override aws/one with aws/one 1.0.0",
            "take `aws/one` out of `overrides` in `.mu/workspace.yaml:2`",
        ]);
    }
    // Nobody here requires what other people's packages disagree about.
    let make = || {
        let sandbox = Sandbox::with_dependencies(&["aws/one#^1", "aws/two#^1"]);
        sandbox.offer(
            "aws/one 1.0.0: aws/vpc#^1
             aws/two 1.0.0: aws/vpc#^2
             aws/vpc 1.0.0:
             aws/vpc 2.0.0:",
        );
        sandbox
    };
    insta::assert_snapshot!(told(make, &["get"]).shown(), @"
    $ mu get
    error: no versions fit together
      acme/web requires aws/one ^1
      aws/one 1.0.0 requires aws/vpc ^1
      acme/web requires aws/two ^1
      aws/two 1.0.0 requires aws/vpc ^2
      no version of aws/vpc is both ^1 and ^2

    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
}

#[test]
fn several_requirements_are_relaxed_together() {
    let make = || {
        let sandbox = conflicting(&["aws/app#^1", "aws/vpc#^1", "aws/log#^1", "aws/net#^1"]);
        sandbox.offer(
            "aws/log 1.0.0: aws/net#^2
             aws/net 1.0.0:
             aws/net 2.0.0:",
        );
        sandbox
    };
    insta::assert_snapshot!(told(make, &["get"]).shown(), @"
    $ mu get
    error: no versions fit together
      acme/web requires aws/app ^1
      aws/app 1.0.0 requires aws/vpc ^2
      acme/web requires aws/vpc ^1
      no version of aws/vpc is both ^2 and ^1

    hint: in acme/web, require aws/vpc ^2.3.0 instead of ^1, and aws/net ^2.0.0 instead of ^1: `mu add 'aws/vpc#^2.3.0' 'aws/net#^2.0.0'`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
}

#[test]
fn what_a_command_asks_for_is_relaxed_too() {
    let make = || installed(&["aws/vpc#^1"]);
    insta::assert_snapshot!(told(make, &["get", "aws/app#^1"]).shown(), @"
    $ mu get aws/app#^1
    error: no versions fit together
      mu get requires aws/app ^1
      aws/app 1.0.0 requires aws/vpc ^2
      acme/web requires aws/vpc ^1
      no version of aws/vpc is both ^2 and ^1

    hint: in acme/web, require aws/vpc ^2.3.0 instead of ^1: `mu add 'aws/vpc#^2.3.0' && mu get 'aws/app#^1'`
    hint: ask `mu get` for aws/app ^0.9.0 instead of ^1: `mu get 'aws/app#^0.9.0'`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
    insta::assert_snapshot!(told(make, &["update", "aws/vpc#2.0.0"]).shown(), @"
    $ mu update aws/vpc#2.0.0
    error: no versions fit together
      mu update requires aws/vpc 2.0.0
      acme/web requires aws/vpc ^1
      no version of aws/vpc is both 2.0.0 and ^1

    hint: in acme/web, require aws/vpc ^2.0.0 instead of ^1: `mu add 'aws/vpc#^2.0.0' && mu update 'aws/vpc#2.0.0'`
    [exit 1]
    ");
    insta::assert_snapshot!(told(make, &["add", "aws/app#^1"]).shown(), @"
    $ mu add aws/app#^1
    error: no versions fit together
      acme/web requires aws/app ^1
      aws/app 1.0.0 requires aws/vpc ^2
      acme/web requires aws/vpc ^1
      no version of aws/vpc is both ^2 and ^1

    hint: in acme/web, require aws/vpc ^2.3.0 instead of ^1: `mu add 'aws/vpc#^2.3.0' 'aws/app#^1'`
    hint: in acme/web, require aws/app ^0.9.0 instead of ^1: `mu add 'aws/app#^0.9.0'`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
    insta::assert_snapshot!(told(make, &["add", "aws/app#^2"]).shown(), @"
    $ mu add aws/app#^2
    error: no version of aws/app meets the requirements
      acme/web requires aws/app ^2
      no version of aws/app is ^2
        aws/app has 0.9.0 and 1.0.0
        looked at hub+file://[DIR]/hub/

    hint: in acme/web, require aws/app ^0.9.0 instead of ^2: `mu add 'aws/app#^0.9.0'`
    [exit 1]
    ");
}

#[test]
fn ways_out_of_the_minimal_strategy_raise_what_brings_wider_bounds() {
    let make = || {
        let sandbox = Sandbox::with_dependencies(&["aws/app#^1", "aws/log#^1"]);
        sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
        sandbox.offer(
            "aws/app 1.0.0: aws/net#1
             aws/app 1.5.0: aws/net#>=1
             aws/log 1.0.0: aws/net#>=2
             aws/net 1.0.0:
             aws/net 2.0.0:",
        );
        sandbox
    };
    insta::assert_snapshot!(told(make, &["get"]).shown(), @"
    $ mu get
    error: no versions fit together
      acme/web requires aws/log ^1
      aws/log 1.0.0 requires aws/net >=2
      acme/web requires aws/app ^1
      aws/app 1.0.0 requires aws/net 1
      at least aws/net 2.0.0 is needed, which is not 1

    hint: in acme/web, require aws/app ^1.5.0 instead of ^1: `mu add 'aws/app#^1.5.0'`
    hint: versions fit together with the highest strategy: `mu get --resolution highest`
    hint: use several majors of aws/net side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
}

#[test]
fn a_pin_of_a_version_that_is_not_there_gives_way_to_another_one() {
    let make = || {
        let sandbox = conflicting(&["aws/vpc#>=1"]);
        sandbox.publish(&[Package::new("aws/vpc", "2.5.0")]);
        sandbox.mu(&["get"]).ok();
        sandbox
    };
    let run = told(make, &["get", "aws/vpc#2.4.0"]);
    run.says(&[
        "hint: ask `mu get` for aws/vpc 2.5.0 instead of 2.4.0: `mu get 'aws/vpc#2.5.0'`\n",
    ]);
}

#[test]
fn what_is_only_supposed_is_supposed_otherwise() {
    let make = || installed(&["aws/vpc#^1"]);
    insta::assert_snapshot!(told(make, &["resolve", "--with", "aws/app#^1"]).shown(), @"
    $ mu resolve --with aws/app#^1
    error: no versions fit together
      mu resolve --with requires aws/app ^1
      aws/app 1.0.0 requires aws/vpc ^2
      acme/web requires aws/vpc ^1
      no version of aws/vpc is both ^2 and ^1

    hint: in acme/web, require aws/vpc ^2.3.0 instead of ^1: `mu resolve --with 'aws/app#^1' --with 'aws/vpc#^2.3.0'`
    hint: ask `mu resolve --with` for aws/app ^0.9.0 instead of ^1: `mu resolve --with 'aws/app#^0.9.0'`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
    let arguments = ["resolve", "aws/app#^1", "aws/vpc#^1", "--exclude", "aws/app#0.9.0"];
    insta::assert_snapshot!(told(make, &arguments).shown(), @"
    $ mu resolve aws/app#^1 aws/vpc#^1 --exclude aws/app#0.9.0
    error: no versions fit together
      mu resolve requires aws/app ^1
      aws/app 1.0.0 requires aws/vpc ^2
      mu resolve requires aws/vpc ^1
      no version of aws/vpc is both ^2 and ^1

    hint: ask `mu resolve` for aws/vpc ^2.3.0 instead of ^1: `mu resolve 'aws/app#^1' 'aws/vpc#^2.3.0' --exclude 'aws/app#0.9.0'`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
    let arguments = ["resolve", "aws/app#1.0.0", "--exclude", "aws/app#>=1.0.0"];
    insta::assert_snapshot!(told(make, &arguments).shown(), @"
    $ mu resolve aws/app#1.0.0 --exclude aws/app#>=1.0.0
    error: no version of aws/app can be used
      mu resolve requires aws/app 1.0.0
      no version of aws/app is 1.0.0
        aws/app 1.0.0 is excluded
        aws/app has 0.9.0

    hint: stop excluding aws/app: `mu resolve 'aws/app#1.0.0'`
    hint: ask `mu resolve` for aws/app 0.9.0 instead of 1.0.0: `mu resolve 'aws/app#0.9.0' --exclude 'aws/app#>=1.0.0'`
    [exit 1]
    ");
    let arguments = ["resolve", "--with", "aws/app#^1", "--resolution", "minimal"];
    insta::assert_snapshot!(told(make, &arguments).shown(), @"
    $ mu resolve --with aws/app#^1 --resolution minimal
    error: no versions fit together
      mu resolve --with requires aws/app ^1
      aws/app 1.0.0 requires aws/vpc ^2
      acme/web requires aws/vpc ^1
      at least aws/vpc 2.0.0 is needed, which is not ^1

    hint: in acme/web, require aws/vpc ^2.0.0 instead of ^1: `mu resolve --with 'aws/app#^1' --with 'aws/vpc#^2.0.0' --resolution minimal`
    hint: ask `mu resolve --with` for aws/app ^0.9.0 instead of ^1: `mu resolve --with 'aws/app#^0.9.0' --resolution minimal`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
}

/// The hints of a failing command with both strategies: `highest`, then `minimal`.
#[track_caller]
fn hints(dependencies: &[&str], arguments: &[&str], highest: &[&str], minimal: &[&str]) {
    for (strategy, expected) in [("highest", highest), ("minimal", minimal)] {
        let make = || {
            let mut sandbox = conflicting(dependencies);
            sandbox.set("MU_RESOLUTION", strategy);
            sandbox.mu(&["get"]).ok();
            sandbox
        };
        let run = told(make, arguments);
        let hints: Vec<_> =
            run.shown().lines().filter_map(|line| line.trim().strip_prefix("hint: ")).collect();
        assert_eq!(hints, expected, "{strategy}");
    }
}

#[test]
fn what_the_command_asks_for_is_what_the_manifest_should_ask_for() {
    hints(
        &["aws/vpc#^1"],
        &["get", "aws/vpc#^2"],
        &[
            "in acme/web, require aws/vpc ^2 instead of ^1: `mu add 'aws/vpc#^2'`",
            "ask `mu get` for aws/vpc ^1 instead of ^2: `mu get 'aws/vpc#^1'`",
        ],
        &["in acme/web, require aws/vpc ^2 instead of ^1: `mu add 'aws/vpc#^2'`"],
    );
    let pinned = "in acme/web, require aws/vpc ^2.0.0 instead of ^1: `mu add 'aws/vpc#^2.0.0' && mu get 'aws/vpc#2.0.0'`";
    let both = "in acme/web, require aws/vpc ^2.3.0 instead of ^1, and ask `mu get` for aws/vpc 2.3.0 instead of 2.0.0: \
                `mu add 'aws/vpc#^2.3.0' && mu get 'aws/vpc#2.3.0'`";
    hints(&["aws/vpc#^1"], &["get", "aws/vpc#2.0.0"], &[pinned, both], &[pinned, both]);
    let updated = "in acme/web, require aws/vpc ^2.0.0 instead of ^1: `mu add 'aws/vpc#^2.0.0' && mu update 'aws/vpc#2.0.0'`";
    hints(&["aws/vpc#^1"], &["update", "aws/vpc#2.0.0"], &[updated], &[updated]);
}

#[test]
fn several_old_requirements_are_raised_where_one_is_not_enough() {
    let ways = [
        "ask `mu get` for aws/app ^0.9.0 instead of ^1: `mu get 'aws/app#^0.9.0'`",
        "in acme/web, require aws/app ^1 instead of ^0.9.0, and aws/vpc ^2.3.0 instead of ^1: \
         `mu add 'aws/app#^1' 'aws/vpc#^2.3.0'`",
    ];
    hints(&["aws/app#^0.9.0", "aws/vpc#^1"], &["get", "aws/app#^1"], &ways, &ways);
}

#[test]
fn what_the_command_was_to_change_is_still_changed() {
    let ways = [
        "in acme/web, require aws/vpc ^2.3.0 instead of ^1: `mu add 'aws/vpc#^2.3.0' 'aws/app#^1'`",
        "in acme/web, require aws/app ^0.9.0 instead of ^1: `mu add 'aws/app#^0.9.0'`",
        "use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`",
    ];
    let least = [
        "in acme/web, require aws/vpc ^2.0.0 instead of ^1: `mu add 'aws/vpc#^2.0.0' 'aws/app#^1'`",
        ways[1],
        ways[2],
    ];
    hints(&["aws/app#^0.9.0", "aws/vpc#^1"], &["add", "aws/app#^1"], &ways, &least);
}

#[test]
fn a_downgrade_is_called_so() {
    let make = || installed(&["aws/app#^1"]);
    told(make, &["downgrade", "aws/vpc#1.4.0"]).says(&[
        "mu downgrade requires aws/vpc 1.4.0",
        "`mu add 'aws/app#^0.9.0' && mu downgrade 'aws/vpc#1.4.0'`",
    ]);
}

#[test]
fn workspace_packages_are_brought_to_ask_for_the_same() {
    let make = || {
        let sandbox = conflicting(&["aws/vpc#^1"]);
        sandbox.write("api/Mu.yaml", "name: acme/api\ndependencies: [\"aws/vpc#^2\"]\n");
        sandbox
    };
    told(make, &["get"]).says(&[
        "hint: in acme/web, require aws/vpc ^2 instead of ^1: `mu add -p acme/web 'aws/vpc#^2'`\n",
        "hint: in acme/api, require aws/vpc ^1 instead of ^2: `mu add -p acme/api 'aws/vpc#^1'`\n",
    ]);
}

#[test]
fn flags_on_which_it_depends_what_fits_are_repeated() {
    let make = || conflicting(&["aws/app#^1", "aws/vpc#^1"]);
    let flags = ["--resolution", "minimal", "--exclude-newer", "0"];
    let with = |arguments: &[&'static str]| [arguments, &flags].concat();
    told(make, &with(&["get"])).says(&[
        "`mu add 'aws/vpc#^2.0.0' --resolution minimal --exclude-newer 0`",
        "`mu add 'aws/app#^0.9.0' --resolution minimal --exclude-newer 0`",
    ]);
    told(make, &with(&["resolve"]))
        .says(&["`mu resolve --with 'aws/vpc#^2.0.0' --resolution minimal --exclude-newer 0`"]);
    let make = || installed(&["aws/vpc#^1"]);
    told(make, &with(&["add", "aws/app#^1"]))
        .says(&["`mu add 'aws/vpc#^2.0.0' 'aws/app#^1' --resolution minimal --exclude-newer 0`"]);
    told(make, &with(&["update", "aws/vpc#2.0.0"]))
        .says(&["`mu add 'aws/vpc#^2.0.0' --resolution minimal --exclude-newer 0 && \
         mu update 'aws/vpc#2.0.0' --resolution minimal --exclude-newer 0`"]);
    // Only the other strategy finds something.
    let bounded = || {
        let sandbox = Sandbox::with_dependencies(&["aws/app#^1", "aws/log#^1"]);
        sandbox.offer(
            "aws/app 1.0.0: aws/net#1
             aws/app 1.5.0: aws/net#>=1
             aws/log 1.0.0: aws/net#>=2
             aws/net 1.0.0:
             aws/net 2.0.0:",
        );
        sandbox
    };
    told(bounded, &with(&["get"])).says(&["`mu get --resolution highest --exclude-newer 0`"]);
    // A way out for another folder is run there.
    let elsewhere = || {
        let sandbox = conflicting(&[]);
        let manifest = "name: acme/site\ndependencies: [\"aws/app#^1\", \"aws/vpc#^1\"]\n";
        sandbox.write("site/Mu.yaml", manifest);
        std::fs::remove_file(sandbox.path("work/Mu.yaml")).expect("is ours");
        sandbox
    };
    told(elsewhere, &["-C", "site", "get"]).says(&["`mu add 'aws/vpc#^2.3.0' -C site`"]);
}

#[test]
fn what_is_asked_now_is_told_apart_from_what_is_listed() {
    let make = || {
        let sandbox = installed(&["aws/vpc#^1"]);
        sandbox
            .write("Mu.yaml", "name: acme/web\ndependencies: [\"aws/vpc#^1\", \"aws/app#^1\"]\n");
        sandbox
    };
    told(make, &["add", "aws/app"]).says(&["  acme/web requires aws/app ^1\n"]);
    let all = || {
        let sandbox = make();
        sandbox.write(
            "Mu.yaml",
            "name: acme/web\ndependencies: [\"aws/vpc#^1\", \"aws/app#>=0.9\"]\n",
        );
        sandbox.hub().publish(&Package::new("aws/app", "1.1.0").needs("aws/vpc#^2"));
        sandbox
    };
    let pinned = || {
        let sandbox = all();
        let excluded = "exclude: [\"aws/app#0.9.0\"]\n";
        sandbox.write(".mu/workspace.yaml", excluded);
        sandbox
    };
    insta::assert_snapshot!(told(pinned, &["add", "aws/app"]).shown(), @"
    $ mu add aws/app
    error: no versions fit together
      acme/web requires aws/app >=0.9
      mu add requires aws/app
      aws/app 1.0.0 and 1.1.0 require aws/vpc ^2
      acme/web requires aws/vpc ^1
      no version of aws/vpc is both ^2 and ^1

    hint: in acme/web, require aws/vpc ^2.3.0 instead of ^1: `mu add 'aws/vpc#^2.3.0' aws/app`
    hint: use several majors of aws/vpc side by side: write `majors: many` in `.mu/workspace.yaml`
    [exit 1]
    ");
    told(all, &["add", "aws/app", "--channel", "fast"])
        .says(&["  acme/web requires aws/app >=0.9 in channel fast\n"]);
    // A given version replaces the listed one.
    let run = all().mu(&["add", "aws/vpc", "aws/app#0.9.0"]).ok();
    run.says(&["→ 0.9.0 in Mu.yaml"]);
    told(all, &["add", "aws/vpc", "aws/app#^1"]).says(&["  acme/web requires aws/app ^1\n"]);
}

#[test]
fn two_rules_are_lifted_together_where_neither_is_enough() {
    // The only version in the channel is excluded.
    let excluded = || {
        let sandbox = Sandbox::new();
        sandbox.publish(&[
            Package::new("ops/kafka", "3.1.0").key("channels", json!(["fast"])),
            Package::new("ops/zoo", "1.0.0").needs("ops/base"),
            Package::new("ops/base", "1.0.0"),
        ]);
        sandbox.write(
            "Mu.yaml",
            "name: acme/web\ndependencies:\n  - {ref: \"ops/kafka#~3.1\", channel: stable}\n  - ops/zoo\n",
        );
        sandbox.write(".mu/workspace.yaml", "exclude: [ops/kafka]\n");
        sandbox
    };
    insta::assert_snapshot!(told(excluded, &["get"]).shown(), @"
    $ mu get
    error: no version of ops/kafka can be used
      acme/web requires ops/kafka ~3.1 in channel stable
      no version of ops/kafka is ~3.1 in channel stable
        ops/kafka 3.1.0 is excluded

    hint: take `ops/kafka` out of `exclude` in `.mu/workspace.yaml:1`, and in acme/web, require ops/kafka ~3.1 in channel fast instead of ~3.1 in channel stable: `mu add 'ops/kafka#~3.1' --channel fast`
    [exit 1]
    ");
    let both = || {
        let sandbox = excluded();
        sandbox.write("Mu.yaml", "name: acme/web\ndependencies: [ops/zoo]\n");
        sandbox.write(".mu/workspace.yaml", "exclude: [ops/zoo, ops/base]\n");
        sandbox
    };
    insta::assert_snapshot!(told(both, &["get"]).shown(), @"
    $ mu get
    error: no version of ops/zoo can be used
      acme/web requires ops/zoo
      no version of ops/zoo can be used
        ops/zoo 1.0.0 is excluded

    hint: take `ops/zoo` out of `exclude` in `.mu/workspace.yaml:1`, and take `ops/base` out of `exclude` in `.mu/workspace.yaml:1`
    [exit 1]
    ");
    let young = || {
        let sandbox = excluded();
        let young = Package::new("ops/young", "2.0.0");
        sandbox.publish(&[young.key("published", json!("2026-11-20T00:00:00Z"))]);
        sandbox.write("Mu.yaml", "name: acme/web\ndependencies: [\"ops/young#^1\"]\n");
        sandbox.write(".mu/workspace.yaml", "minimumReleaseAge: 20000 days\n");
        sandbox
    };
    insta::assert_snapshot!(ageless(&told(young, &["get"])), @"
    $ mu get
    error: no version of ops/young can be used
      acme/web requires ops/young ^1
      no version of ops/young is ^1
        ops/young 2.0.0 is too new
        2.0.0 was published [AGE] ago; `minimumReleaseAge: 20000 days` (.mu/workspace.yaml:1) allows it from 2081-08-23 on

    hint: allow versions of any age, and in acme/web, require ops/young ^2.0.0 instead of ^1: `mu add 'ops/young#^2.0.0' --exclude-newer 0`
    [exit 1]
    ");
    told(both, &["get", "--resolution", "minimal"]).says(&["take `ops/base` out of `exclude`"]);
}

#[test]
fn a_yanked_version_is_offered_where_nothing_else_helps() {
    let make = || {
        let sandbox = Sandbox::with_dependencies(&["aws/lib#^1.1"]);
        let lib = Package::new("aws/lib", "1.1.5").key("yanked", json!("loses data"));
        sandbox.publish(&[Package::new("aws/app", "1.0.0").needs("aws/lib#^1.1"), lib]);
        sandbox
    };
    for strategy in ["highest", "minimal"] {
        let told = told(make, &["get", "--resolution", strategy]);
        let hint = "in acme/web, require aws/lib 1.1.5 instead of ^1.1, although it is yanked";
        told.says(&["aws/lib 1.1.5 is yanked: loses data", hint]);
    }
}

#[test]
fn two_majors_may_be_used_side_by_side() {
    let make = || {
        let sandbox = conflicting(&["aws/app#^1", "aws/old#^1"]);
        sandbox.offer("aws/old 1.0.0: aws/vpc#^1\naws/app 1.1.0: aws/vpc#^2");
        sandbox
    };
    let hint = "hint: use several majors of aws/vpc side by side: write `majors: many` in \
                `.mu/workspace.yaml`";
    for strategy in ["highest", "minimal"] {
        told(make, &["get", "--resolution", strategy]).says(&[hint]);
    }
    let set = || {
        let sandbox = make();
        sandbox.write(".mu/workspace.yaml", "# rules\nmajors: one\n");
        sandbox
    };
    told(set, &["get"]).says(&["change `majors` to `majors: many` in `.mu/workspace.yaml:2`"]);
    // One major of it has no version that does, so this is no way out.
    let make = || {
        let sandbox = Sandbox::with_dependencies(&["aws/a", "aws/b"]);
        sandbox.offer("aws/a 1.0.0: aws/vpc#~1.0\naws/b 1.0.0: aws/vpc#~1.1");
        sandbox.offer("aws/vpc 1.0.0:\naws/vpc 1.1.0:\naws/vpc 2.0.0:");
        sandbox
    };
    told(make, &["get"]).does_not_say(&["majors"]);
}

#[test]
fn a_version_that_does_not_exist_is_answered_with_the_nearest_one() {
    for strategy in ["highest", "minimal"] {
        let mut sandbox = Sandbox::new();
        sandbox.set("MU_RESOLUTION", strategy);
        sandbox.offer("aws/x 1.2.0:\naws/x 1.3.0:\naws/x 2.0.0:\naws/x 2.0.5:");
        for (missing, meant) in
            [("1.3.7", "1.3.0"), ("1.1.0", "1.2.0"), ("2.0.3", "2.0.5"), ("3.0.0", "2.0.5")]
        {
            let run = sandbox.mu(&["get", &format!("aws/x#{missing}")]).fails();
            let hint = format!("`mu get 'aws/x#{meant}'`");
            let hints = run.stderr.lines().filter(|line| line.starts_with("hint: "));
            assert_eq!(
                hints.filter(|line| line.contains("mu get 'aws/x#")).count(),
                1,
                "{}",
                run.shown()
            );
            run.says(&[&hint]);
        }
    }
}

#[test]
fn of_a_range_without_a_usable_version_the_same_major_is_nearer_than_another() {
    let make = || {
        let sandbox = Sandbox::with_dependencies(&["aws/x#1.2"]);
        sandbox.offer("aws/x 1.1.0:\naws/x 2.0.0:");
        sandbox.publish(&[Package::new("aws/x", "1.2.0").key("yanked", json!("loses data"))]);
        sandbox
    };
    let run = told(make, &["get"]);
    let first = run.stderr.lines().find(|line| line.starts_with("hint: "));
    assert!(first.is_some_and(|hint| hint.contains("1.1.0 instead of 1.2")), "{}", run.shown());
}
