//! Help: `mu` without a command, and every `--help` with its examples.

use crate::support::{Run, Sandbox};

/// The commands that a help lists.
pub(crate) fn commands(help: &str) -> Vec<String> {
    const TITLES: [&str; 7] =
        ["Start:", "Versions:", "Inspect:", "Publish:", "Maintain:", "Others:", "Commands:"];
    let mut title = "";
    let mut found = Vec::new();
    for line in help.lines() {
        if !line.starts_with(' ') {
            title = line;
        } else if TITLES.contains(&title) && !line.starts_with("   ") {
            found.extend(line.split_whitespace().next().map(str::to_owned));
        }
    }
    found
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
    // The help of the command above explains a subcommand of two words.
    assert!(is_shown || path.len() > 1, "`mu {name} --help` has no example:\n{}", run.stdout);
    let long = run.stdout.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None, "`mu {name} --help` is wider than a page");
    assert_eq!(run.stderr, "");
    // The short form leaves out the global options; examples come before options in both.
    arguments.pop();
    arguments.push("-h");
    let short = sandbox.mu(&arguments).ok().does_not_say(&["--offline"]);
    short.says(&["\n`mu --help` lists the options that every command takes.\n"]);
    assert!(run.stdout.contains("--offline"), "`mu {name} --help`");
    let place = |part: &str| run.stdout.find(part);
    assert!(place("Examples:") < place("Options:"), "`mu {name} --help`:\n{}", run.stdout);
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
        "plugin",
        "plugin list",
        "plugin check",
        "plugin run",
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
    run.says(&[
        "Examples:",
        "mu init acme/web",
        "mu add 'aws/ec2#^1.0'",
        "Start:",
        "Maintain:",
        "mu help files",
    ])
    .does_not_say(&["Others:", "--offline"]);
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
    // Nothing is near, and nothing is said instead.
    let run = sandbox.mu(&["test"]);
    let said = "error: unrecognized subcommand 'test'\n\nUsage: mu [OPTIONS] [COMMAND]\n\n";
    assert!(run.stderr.starts_with(said), "{}", run.shown());
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

#[test]
fn an_option_is_answered_with_the_nearest_one_of_its_command() {
    let sandbox = Sandbox::new();
    for (arguments, meant) in [
        (&["add", "--dve", "a/x"][..], "'--dev'"),
        (&["cache", "prune", "--dyr-run"], "'--dry-run'"),
        (&["get", "--ofline"], "'--offline'"),
    ] {
        let run = sandbox.mu(arguments);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&[meant]).does_not_say(&["as a value"]);
    }
    let run = sandbox.mu(&["add", "--purple", "a/x"]).does_not_say(&["tip:"]);
    assert_eq!(run.status, 2, "{}", run.shown());
}

#[test]
fn topics_are_pages_of_their_own() {
    let sandbox = Sandbox::new();
    for (topic, part) in [
        ("references", "[PROTOCOL][BASE/]NAME[#VERSION]"),
        ("versions", "^1.0.6 "),
        ("files", "Mu.lock "),
        ("environment", "MU_TOKEN_<HOST> "),
    ] {
        let run = sandbox.mu(&["help", topic]).ok().says(&[part]);
        assert!(run.stdout.lines().all(|line| line.chars().count() <= 100), "{topic}");
        let json = sandbox.mu(&["--json", "help", topic]).ok().stdout;
        let json: serde_json::Value = serde_json::from_str(&json).expect("is JSON");
        assert_eq!(json["help"], run.stdout.trim_end());
    }
    for arguments in [&["--json", "help"][..], &["--json", "help", "get"], &["--json"]] {
        let text = sandbox.mu(arguments).ok().stdout;
        let json: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
        assert!(json["help"].as_str().is_some_and(|text| text.contains("mu")), "{text}");
    }
    // As behind a command, further words are passed over.
    sandbox.mu(&["help", "references", "x"]).ok().says(&["[PROTOCOL][BASE/]NAME[#VERSION]"]);
    let text = sandbox.mu(&["--json", "--version"]).ok().stdout;
    let json: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn words_of_other_tools_are_known() {
    let sandbox = Sandbox::new();
    for (word, tip) in [
        ("new", "mu init"),
        ("sync", "mu get"),
        ("ci", "mu get --locked"),
        ("show", "mu info"),
        ("uninstall", "mu remove"),
        ("repo", "mu registry add PREFIX"),
        ("pull", "mu get REF"),
        ("push", "mu publish"),
        ("template", "mu vendor --for helm"),
        ("dependency", "mu update"),
        ("clean", "mu cache clean"),
        ("depends", "mu why PKG"),
        ("run", "mu which"),
    ] {
        let run = sandbox.mu(&[word]);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&["tip: ", &format!("`{tip}")]);
    }
}

#[test]
fn help_is_coloured_where_that_is_asked_for() {
    let mut sandbox = Sandbox::new();
    let is_coloured =
        |sandbox: &Sandbox, arguments: &[&str]| sandbox.mu(arguments).stdout.contains('\u{1b}');
    assert!(!is_coloured(&sandbox, &["get", "--help"]));
    assert!(is_coloured(&sandbox, &["get", "--help", "--color", "always"]));
    sandbox.set("FORCE_COLOR", "1");
    for arguments in [&["get", "--help"][..], &["--help"], &[]] {
        assert!(is_coloured(&sandbox, arguments), "{arguments:?}");
    }
    sandbox.set("NO_COLOR", "1");
    assert!(!is_coloured(&sandbox, &["get", "--help"]));
}

#[test]
fn manual_pages_say_how_a_command_is_called() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["man", "--into", "man"]).ok();
    let page = sandbox.read("man/mu-get.1");
    assert!(page.contains(".SH SYNOPSIS\nmu get [OPTIONS] [REF]...\n"), "{page}");
    sandbox.mu(&["man"]).ok().says(&[".SH SYNOPSIS\nmu [OPTIONS] [COMMAND]\n"]);
}
