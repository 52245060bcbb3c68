//! Packages that arguments name: a version there is used, or refused with the command that uses it.

use crate::support::git::{HttpServer, Origin, git};
use crate::support::{Package, Sandbox};

/// What a command does with a version after a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// It uses it.
    Used,
    /// It refuses it.
    Refused,
    /// What it takes is not a package, or not with a `#`.
    NoPackage,
}

use Version::{NoPackage, Refused, Used};

/// The arguments of commands that are named like packages, and what becomes of a version there.
const ARGUMENTS: &[(&str, &str, Version)] = &[
    ("affected", "since", NoPackage),
    ("get", "references", Used),
    ("get", "package", Refused),
    ("add", "references", Used),
    ("add", "package", Refused),
    ("add", "alias", NoPackage),
    ("remove", "references", Refused),
    ("remove", "package", Refused),
    ("update", "packages", Used),
    ("update", "installed", Used),
    ("upgrade", "packages", Used),
    ("downgrade", "packages", Used),
    ("pin", "packages", Used),
    ("unpin", "packages", Refused),
    ("patch", "reference", Used),
    ("patch", "drop", Used),
    ("patch", "save", Used),
    ("edit", "references", Refused),
    ("edit", "branch", NoPackage),
    ("edit", "restore", NoPackage),
    ("resolve", "references", Used),
    ("resolve", "with", Used),
    ("resolve", "without", Refused),
    ("resolve", "installed", Used),
    ("resolve", "exclude", Used),
    ("what-if", "references", Used),
    ("what-if", "with", Used),
    ("what-if", "without", Refused),
    ("what-if", "installed", Used),
    ("what-if", "exclude", Used),
    ("which", "reference", Used),
    ("env", "names", NoPackage),
    ("tree", "name", Refused),
    ("tree", "package", Refused),
    ("tree", "invert", Refused),
    ("why", "package", Refused),
    ("diff", "from", Used),
    ("diff", "to", Used),
    ("info", "reference", Used),
    ("versions", "reference", Used),
    ("outdated", "installed", Used),
    ("verify", "packages", Refused),
    ("build", "packages", Refused),
    ("vendor", "packages", Refused),
    ("version", "package", Refused),
    ("pack", "package", Refused),
    ("pack", "named", Refused),
    ("publish", "package", Refused),
    ("publish", "named", Refused),
    ("publish", "moved_to", Refused),
    ("yank", "reference", Used),
    ("deprecate", "reference", Used),
    ("tag", "reference", Used),
    ("tag", "tag", NoPackage),
    ("mirror", "references", Used),
    ("mirror", "namespace", NoPackage),
    ("import", "package", Refused),
    ("init", "name", NoPackage),
    ("init", "namespace", NoPackage),
];

/// The words in the names of values that are packages.
const WORDS: [&str; 6] = ["PKG", "REF", "ID", "PACKAGE", "NAME", "NAMESPACE"];

/// `COMMAND ARGUMENT`, of every argument that could be a package, with the flag that it needs.
fn arguments() -> Vec<(String, String, Option<String>)> {
    let mut found = Vec::new();
    for command in mu::cli::program().get_subcommands().filter(|one| !one.has_subcommands()) {
        for argument in command.get_arguments() {
            let values = argument.get_value_names().unwrap_or_default().iter();
            let is_package = values
                .flat_map(|value| value.split(|letter: char| !letter.is_ascii_uppercase()))
                .any(|word| WORDS.contains(&word));
            let is_global = argument.get_help_heading().is_some();
            if is_package && !is_global && !argument.is_hide_set() {
                let flag = argument.get_long().map(|flag| format!("--{flag}"));
                found.push((command.get_name().to_owned(), argument.get_id().to_string(), flag));
            }
        }
    }
    found
}

#[test]
fn no_command_drops_a_version_in_silence() {
    let sandbox = Sandbox::with_dependencies(&["a/x#^1.1"]);
    sandbox.publish(&[Package::new("a/x", "1.1.0"), Package::new("a/x", "1.2.0")]);
    sandbox.mu(&["get"]).ok();
    let before = sandbox.state();
    let all = arguments();
    assert!(all.len() > 30, "the commands are looked through: {all:?}");
    for (command, argument, flag) in all {
        let is_it = |known: &&(&str, &str, Version)| known.0 == command && known.1 == argument;
        let Some((.., version)) = ARGUMENTS.iter().find(is_it) else {
            panic!("say in ARGUMENTS what `mu {command}` does with a version in `{argument}`");
        };
        if *version != Refused {
            continue;
        }
        let name = match (&*command, &*argument) {
            (_, "package" | "named") if command != "why" => "acme/web#9.0.0",
            _ => "a/x#9.0.0",
        };
        let mut line = vec![&*command];
        match (&*command, &*argument) {
            ("get", _) => line.extend(["--save", "a/x"]),
            ("add" | "remove", "package") => line.push("a/x"),
            ("version", _) => line.push("patch"),
            ("vendor", _) => line.extend(["--for", "helm"]),
            ("publish", "moved_to") => line.extend(["--to", "../hub"]),
            _ => {}
        }
        line.extend(flag.as_deref());
        line.push(name);
        let run = sandbox.mu(&line);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&["9.0.0"]);
        assert_eq!(sandbox.state(), before, "{line:?}");
    }
}

#[test]
fn a_version_in_an_argument_is_refused_with_the_command_that_uses_it() {
    let sandbox = Sandbox::with_dependencies(&["a/x#^1.1"]);
    sandbox.publish(&[Package::new("a/x", "1.1.0")]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["remove", "a/x#1.1.0"]);
    insta::assert_snapshot!(run.shown(), @"
    $ mu remove a/x#1.1.0
    error: `a/x#1.1.0` names the version 1.1.0, but `mu remove` removes a package in whatever version it is

    hint: `mu remove a/x` removes it
    hint: `mu update 'a/x#1.1.0'` moves it to that version
    [exit 2]
    ");
    sandbox.mu(&["why", "a/x#1.1.0"]).says(&["`mu why a/x`", "mu resolve --with 'a/x#1.1.0'"]);
    sandbox.mu(&["tree", "-i", "a/x#1.1.0"]).says(&["`mu tree --invert a/x`"]);
    sandbox.mu(&["resolve", "--without", "a/x#1"]).says(&["--exclude 'a/x#1'"]);
    sandbox.mu(&["unpin", "a/x#1.1.0"]).says(&["`mu pin 'a/x#1.1.0'`"]);
}

/// `a/x` 1.0.0 to 1.4.0 and 2.0.0, required as `^1.1` and locked at 1.2.0.
fn sandbox(resolution: &str) -> Sandbox {
    let mut sandbox = Sandbox::with_dependencies(&["a/x#^1.1"]);
    sandbox.set("MU_RESOLUTION", resolution);
    for version in ["1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "2.0.0"] {
        sandbox.publish(&[Package::new("a/x", version)]);
    }
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["update", "a/x#1.2.0"]).ok();
    sandbox
}

fn is_at(sandbox: &Sandbox, version: &str, written: &str) {
    assert_eq!(sandbox.locked(), [format!("hub.mu.com/a/x {version}")]);
    let text = sandbox.read("Mu.yaml");
    assert!(text.ends_with(&format!("  - a/x#{written}\n")), "{text}");
    sandbox.mu(&["get", "--locked"]).ok();
}

#[test]
fn an_upgrade_to_a_version_goes_there() {
    for (resolution, written) in [("highest", "^1.3"), ("minimal", "^1.3.0")] {
        let sandbox = sandbox(resolution);
        sandbox.mu(&["upgrade", "a/x#1.3.0"]).ok();
        is_at(&sandbox, "1.3.0", written);
        sandbox.mu(&["upgrade", "x#2"]).ok();
        is_at(&sandbox, "2.0.0", if resolution == "highest" { "^2.0" } else { "^2.0.0" });
        let before = sandbox.state();
        sandbox.mu(&["upgrade", "a/x#9.0.0", "--json"]).fails_with("not-found");
        let run = sandbox.mu(&["upgrade", "a/x#1.4.0"]);
        run.says(&["is at 2.0.0, and 1.4.0 is older", "mu downgrade 'a/x#1.4.0'"]);
        sandbox.mu(&["upgrade", "a/x#main", "--json"]).fails_with("usage");
        assert_eq!(sandbox.state(), before);
    }
}

#[test]
fn a_pin_to_a_version_goes_there() {
    for resolution in ["highest", "minimal"] {
        let sandbox = sandbox(resolution);
        let before =
            sandbox.read("Mu.yaml").lines().last().unwrap_or_default().replace("  - a/x#", "");
        sandbox.mu(&["pin", "a/x#1.1.0"]).ok();
        is_at(&sandbox, "1.1.0", &format!("1.1.0 # pinned from {before}"));
        sandbox.mu(&["pin", "a/x#1.4"]).ok();
        is_at(&sandbox, "1.4.0", &format!("1.4.0 # pinned from {before}"));
        let state = sandbox.state();
        sandbox.mu(&["pin", "a/x#9.0.0", "--json"]).fails_with("not-found");
        assert_eq!(sandbox.state(), state);
        sandbox.mu(&["unpin"]).ok();
        let written = if resolution == "highest" { before } else { "^1.4.0".to_owned() };
        is_at(&sandbox, "1.4.0", &written);
    }
}

#[test]
fn what_is_in_use_has_a_short_name_in_every_question() {
    let sandbox = Sandbox::with_dependencies(&["far/off/redis#1.0.0"]);
    sandbox
        .publish(&[Package::new("far/off/redis", "1.0.0"), Package::new("far/off/redis", "1.1.0")]);
    sandbox.mu(&["get"]).ok();
    let before = sandbox.state();
    for question in [
        &["info", "redis"][..],
        &["which", "redis"],
        &["diff", "redis", "redis#1.1.0"],
        &["why", "redis"],
        &["tree", "-i", "redis"],
    ] {
        sandbox.mu(question).ok().says(&["far/off/redis"]);
    }
    sandbox.mu(&["update", "redis", "--dry-run"]).ok();
    sandbox.mu(&["versions", "redis"]).ok().says(&["1.0.0", "in Mu.lock", "1.1.0"]);
    sandbox.mu(&["verify", "redis"]).ok().says(&["1 pack verified"]);
    sandbox.mu(&["add", "redis#^1", "--dry-run"]).ok().says(&["far/off/redis"]);
    sandbox.mu(&["verify", "redi"]).fails().says(&["did you mean `far/off/redis`?"]);
    assert_eq!(sandbox.state(), before);
}

#[test]
fn a_dependency_is_found_by_its_local_name() {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("far/off/redis", "1.0.0"),
        Package::new("far/off/redis", "1.1.0"),
        Package::new("near/cache", "1.0.0"),
    ]);
    for (name, list, needs) in [
        ("a", "dependencies", "store: far/off/redis#1.0.0"),
        ("b", "devDependencies", "other: near/cache"),
        ("c", "dependencies", "cache: far/off/redis"),
        ("d", "dependencies", "both: far/off/redis"),
        ("e", "dependencies", "both: near/cache"),
    ] {
        let manifest = format!("name: acme/{name}\nversion: 1.0.0\n{list}: {{{needs}}}\n");
        sandbox.write(&format!("{name}/Mu.yaml"), &manifest);
    }
    sandbox.mu(&["get"]).ok();
    let before = sandbox.state();
    for question in ["why", "which", "info", "tree"] {
        sandbox.mu(&[question, "store"]).ok().says(&["far/off/redis"]);
        sandbox.mu(&[question, "other"]).ok().says(&["near/cache"]);
        // What the manifests call so comes before what ends so.
        sandbox.mu(&[question, "cache"]).ok().says(&["far/off/redis"]);
        let run = sandbox.mu(&[question, "both"]);
        assert_eq!(run.status, 2, "{question}");
        run.says(&["`both` could be `far/off/redis` or `near/cache`"]);
    }
    for change in ["update", "upgrade", "pin", "verify"] {
        let dry: &[&str] = if change == "verify" { &[] } else { &["--dry-run"] };
        sandbox.mu(&[&[change, "store"], dry].concat()).ok();
    }
    assert_eq!(sandbox.state(), before);
    // A change is made to the entries that are called so, whatever else leads to that package, or ends so.
    sandbox.mu(&["pin", "cache"]).ok();
    assert!(sandbox.read("b/Mu.yaml").contains("{other: near/cache}"));
    sandbox.mu(&["remove", "cache"]).ok().says(&["removed far/off/redis from acme/c"]);
    assert_eq!(
        sandbox.read("a/Mu.yaml"),
        "name: acme/a\nversion: 1.0.0\ndependencies: {store: far/off/redis#1.0.0}\n"
    );
}

/// Wherever it is from: the name that `mu why` takes, every other command takes, too.
#[test]
fn a_package_of_another_base_is_found_by_its_name_without_the_base() {
    let origin = Origin::new("net/vpc.git");
    origin.commit(&[("main.tf", "vpc\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let server = HttpServer::start(origin.root());
    let whole = format!("{}/net/vpc", server.host());
    let sandbox = Sandbox::with_dependencies(&[&format!("git+{}net/vpc.git#^1", server.root())]);
    sandbox.mu(&["get"]).ok();
    let before = sandbox.state();
    for question in [
        &["why"][..],
        &["which"],
        &["which", "--all"],
        &["info"],
        &["versions"],
        &["tree"],
        &["tree", "-i"],
        &["diff"],
        &["trust", "show"],
    ] {
        for name in ["net/vpc", "vpc"] {
            let shown = match question[0] {
                "which" => "net/vpc",
                "versions" => "in Mu.lock",
                _ => &whole,
            };
            sandbox.mu(&[question, &[name]].concat()).ok().says(&[shown]);
        }
    }
    sandbox.mu(&["verify", "net/vpc"]).ok().says(&["1 pack verified"]);
    for change in [&["update"][..], &["upgrade"], &["pin"], &["remove"]] {
        sandbox.mu(&[change, &["net/vpc", "--dry-run"]].concat()).ok();
    }
    // What is added is what the name says, whatever ends in it.
    sandbox.mu(&["add", "net/vpc", "--dry-run"]).fails().says(&["not found: `net/vpc`"]);
    assert_eq!(sandbox.state(), before);
    // A name that several have is as little enough as for `mu why`.
    sandbox.publish(&[Package::new("acme/net/vpc", "2.0.0")]);
    sandbox.mu(&["add", "acme/net/vpc"]).ok();
    for question in ["why", "which", "info"] {
        let run = sandbox.mu(&[question, "net/vpc"]);
        assert_eq!(run.status, 2, "{question}");
        run.says(&["`net/vpc` could be", &whole, "`acme/net/vpc`"]);
    }
    // A repository in a folder is called by the path that answers show.
    let folder = sandbox.path("repository");
    std::fs::create_dir(&folder).expect("can be made");
    git(&folder, &["init", "--quiet", "--initial-branch=main"]);
    mu_testing::write(&folder, "main.tf", "one\n");
    git(&folder, &["add", "--all"]);
    git(&folder, &["commit", "--quiet", "--message", "one"]);
    sandbox.asks_for(&[&format!("git+file://{}", folder.display())]);
    sandbox.mu(&["get"]).ok();
    for question in ["why", "which", "info"] {
        sandbox.mu(&[question, "../repository"]).ok().says(&["repository"]);
    }
    // Where a side of the comparison has no version, its commit is shown.
    let first = git(&folder, &["rev-parse", "--short=7", "HEAD"]);
    mu_testing::write(&folder, "main.tf", "two\n");
    git(&folder, &["commit", "--quiet", "--all", "--message", "two"]);
    let second = git(&folder, &["rev-parse", "--short=7", "HEAD"]);
    let title = format!("../repository {first} -> ../repository {second}");
    sandbox.mu(&["diff", "../repository"]).ok().says(&[&title]);
    let sides = sandbox.mu(&["diff", "../repository", "--json"]).ok().json();
    assert_eq!(
        (&sides["from"]["version"], &sides["to"]["version"]),
        (&"0.0.0".into(), &"0.0.0".into())
    );
}

#[test]
fn an_element_is_that_of_the_version_in_use() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    let exports = |name: &str| format!("exports:\n  {name}: {{kind: class, path: main.ts}}\n");
    sandbox.publish(&[
        Package::new("aws/ec2", "1.0.6").manifest(&exports("VM")).file("main.ts", ""),
        Package::new("aws/ec2", "2.0.0").manifest(&exports("Machine")).file("main.ts", ""),
    ]);
    sandbox.mu(&["get"]).ok();
    for question in ["info", "versions", "why", "which"] {
        sandbox.mu(&[question, "aws/ec2/VM"]).ok().says(&["aws/ec2"]);
        sandbox.mu(&[question, "aws/ec2/Machine"]).fails();
    }
    sandbox.mu(&["resolve", "aws/ec2/VM#^1"]).ok().says(&["aws/ec2 1.0.6"]);
    sandbox.mu(&["info", "aws/ec2"]).ok().says(&["exports", "VM (1.0.6)"]);
    let json = sandbox.mu(&["info", "aws/ec2", "--json"]).ok().json();
    assert_eq!(json["exports"], serde_json::json!({"version": "1.0.6", "names": ["VM"]}));
    // Also where it is not installed, the version in the lock counts.
    std::fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["info", "aws/ec2/VM"]).ok().says(&["aws/ec2"]);
}

#[test]
fn a_version_in_other_words_gets_the_right_ones() {
    let sandbox = sandbox("highest");
    sandbox.mu(&["resolve", "a/x#!=1.1.0"]).fails().says(&["`--exclude`", "`exclude`"]);
    let run = sandbox.mu(&["get", "a/x", "--version", "1.0.0"]);
    run.says(&["error: ", "`PACKAGE#1.0.0`", "Usage: mu get [OPTIONS] [REF]...\n"])
        .does_not_say(&["--app-version"]);
}

#[test]
fn who_names_a_package_twice_removes_it_once() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1.0", "net/vpc#^1.0"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.hub().release("net/vpc", "1.0.0");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["remove", "aws/ec2", "ec2"]).ok().says(&["removed aws/ec2"]);
    assert_eq!(sandbox.locked(), ["hub.mu.com/net/vpc 1.0.0"]);
}
