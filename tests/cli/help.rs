//! What teaches: `mu` alone, and every `--help` with its examples.

use crate::support::{Run, Sandbox};

/// The commands that a help lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    list.take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

fn check(sandbox: &Sandbox, path: &[&str], seen: &mut Vec<String>) {
    let mut arguments = path.to_vec();
    arguments.push("--help");
    let run: Run = sandbox.mu(&arguments).ok();
    let name = path.join(" ");
    let example = format!("  mu {name}");
    let examples = run.stdout.split_once("Examples:\n").map(|(_, examples)| examples);
    let is_shown = examples.is_some_and(|examples| {
        examples.lines().any(|line| {
            // The first of a command's names, or another one of them.
            line.starts_with(example.trim_end())
                || line.starts_with("  mu ")
                || line.contains("mu ")
        })
    });
    // A subcommand of two words is taught by the help of the command above it.
    assert!(is_shown || path.len() > 1, "`mu {name} --help` has no example:\n{}", run.stdout);
    let long = run.stdout.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None, "`mu {name} --help` is wider than a page");
    assert_eq!(run.stderr, "");
    // Neither spreads options over several lines each.
    arguments.pop();
    arguments.push("-h");
    assert_eq!(sandbox.mu(&arguments).ok().stdout, run.stdout, "`mu {name} -h`");
    for command in commands(&run.stdout) {
        let mut deeper = path.to_vec();
        deeper.push(&command);
        check(sandbox, &deeper, seen);
    }
    seen.push(name);
}

#[test]
fn every_command_has_examples() {
    let mut seen = Vec::new();
    check(&Sandbox::new(), &[], &mut seen);
    for command in [
        "init",
        "get",
        "add",
        "remove",
        "update",
        "pin",
        "unpin",
        "resolve",
        "which",
        "list",
        "tree",
        "graph",
        "why",
        "outdated",
        "status",
        "search",
        "info",
        "versions",
        "verify",
        "registry",
        "registry list",
        "registry add",
        "registry remove",
        "cache",
        "cache dir",
        "cache size",
        "cache prune",
        "cache clean",
        "doctor",
        "completions",
        "man",
        "schema",
    ] {
        assert!(seen.iter().any(|name| name == command), "`{command}` is not listed: {seen:?}");
    }
}

#[test]
fn mu_alone_teaches() {
    let run = Sandbox::new().mu(&[]).ok();
    let first: Vec<&str> = run.stdout.lines().take(3).collect();
    assert_eq!(
        first[0],
        "A package manager for infrastructure modules, configuration, schemas, charts and templates"
    );
    run.says(&["Examples:", "mu init acme/web", "mu add aws/ec2#^1.0", "Commands:"]);
}

#[test]
fn aliases_are_the_same_commands() {
    let sandbox = Sandbox::new();
    for (alias, command) in
        [("install", "get"), ("i", "get"), ("rm", "remove"), ("up", "update"), ("ls", "list")]
    {
        let help = sandbox.mu(&[alias, "--help"]).ok().stdout;
        assert_eq!(help, sandbox.mu(&[command, "--help"]).ok().stdout, "{alias}");
    }
}

#[test]
fn what_if_explains() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.mu(&["what-if"]).ok().says(&["^1 by acme/web"]);
}

#[test]
fn the_version_is_told() {
    let run = Sandbox::new().mu(&["--version"]).ok();
    assert_eq!(run.stdout, format!("mu {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["gett"][..],
        &["get", "--nonsense"],
        &["which"],
        &["add"],
        &["remove"],
        &["get", "--locked", "--frozen"],
        &["get", "-g", "--save", "x"],
        &["-q", "-v", "list"],
        &["--resolution", "lowest", "get"],
        &["--color", "blue", "list"],
        &["--jobs", "0", "list"],
        &["tree", "--depth", "deep"],
        &["schema", "nothing"],
        &["init", "--namespace", "x"],
    ] {
        let run = sandbox.mu(arguments);
        assert_eq!((run.status, &*run.stdout), (2, ""), "{}", run.shown());
        assert!(run.stderr.starts_with("error: "), "{}", run.shown());
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        let error = sandbox.mu(&arguments).fails_with("usage");
        assert!(!error["message"].as_str().expect("is text").is_empty());
    }
    let run = sandbox.mu(&["gett"]);
    run.says(&["unrecognized subcommand 'gett'", "get"]);
}

#[test]
fn a_misspelt_command_is_known_by_its_letters() {
    let sandbox = Sandbox::new();
    for (misspelt, meant) in
        [("gte", "get"), ("instal", "install"), ("updaet", "update"), ("lsit", "list")]
    {
        let run = sandbox.mu(&[misspelt]);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&[&format!("'{meant}'")]);
    }
}
