//! Invalid command lines: what is wrong with them, for people and for programs.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::{Value, json};

use crate::cli::context::Stop;
use crate::cli::global;
use crate::cli::{Cli, end};
use crate::manifest::source::nearest;
use crate::ops::{Code, CommandError};
use crate::report::{ColorChoice, Shell, ShellOptions};

/// Handles a command line that clap refused, or `--help` and `--version`; returns the exit status.
pub(super) fn refused(mut error: clap::Error, arguments: &[OsString], color: ColorChoice) -> u8 {
    suggest(&mut error, arguments);
    let is_json = is_json(arguments);
    if error.kind() == ErrorKind::DisplayVersion && is_json {
        let shell = Shell::new(ShellOptions { json: true, color, ..Default::default() });
        return printed(shell.json(&json!({ "version": *crate::cli::VERSION })), &shell);
    }
    if !error.use_stderr() {
        let text = error.render();
        let text = if is_json { text.to_string() } else { text.ansi().to_string() };
        return help(&text, arguments, color);
    }
    if is_json {
        let shell = Shell::new(ShellOptions { json: true, ..Default::default() });
        shell.error(&for_programs(&error.to_string()));
        return Code::Usage.exit_status();
    }
    // If the stream is closed, nobody reads an error either.
    let _ = error.print();
    Code::Usage.exit_status()
}

/// The exit status after an answer was printed, or could not be.
fn printed(result: std::io::Result<()>, shell: &Shell) -> u8 {
    end(result.map(|()| 0).map_err(Stop::Closed), shell)
}

/// What `--help` answers under `--json`.
pub(super) fn help_answer(text: &str) -> Value {
    json!({ "help": text.trim_end() })
}

/// Prints a text that helps; returns the exit status.
pub(super) fn help(text: &str, arguments: &[OsString], color: ColorChoice) -> u8 {
    let json = is_json(arguments);
    let shell = Shell::new(ShellOptions { json, color, ..Default::default() });
    let result = if json { shell.json(&help_answer(text)) } else { shell.print(text) };
    printed(result, &shell)
}

fn is_json(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument == "--json")
}

/// Clap's text, without its styles.
fn for_programs(text: &str) -> CommandError {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let (mut message, mut hints, mut command) = (vec![first], Vec::new(), "mu".to_owned());
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            let words = usage.split(' ').take_while(|word| !word.starts_with(['[', '<', '-']));
            command = words.collect::<Vec<_>>().join(" ");
        } else if let Some(tip) = line.strip_prefix("tip: ") {
            hints.push(tip.to_owned());
        } else if !line.starts_with("For more information") {
            message.push(line.to_owned());
        }
    }
    let error = CommandError::new(Code::Usage, message.join(" "));
    let error = hints.into_iter().fold(error, CommandError::hint);
    error.hint(format!("see `{command} --help`"))
}

/// Commands of other tools, and the commands of mu that do the same.
const WORDS: &[(&[&str], &str)] = &[
    (&["new", "create"], "`mu init` starts a package"),
    (&["sync", "download", "restore"], "`mu get` installs what Mu.yaml and Mu.lock require"),
    (&["ci"], "`mu get --locked` installs exactly what Mu.lock names"),
    (&["lock"], "`mu get` writes Mu.lock, and `mu update` moves it to newer versions"),
    (&["show", "view"], "`mu info REF` shows a package"),
    (&["uninstall", "un", "delete"], "`mu remove REF` removes a dependency"),
    (&["repo", "remote"], "`mu registry add PREFIX URL` says where packages come from"),
    (&["pull"], "`mu get REF` installs a package, and `mu fetch` downloads what Mu.lock names"),
    (&["push", "upload"], "`mu publish` publishes a package, also in OCI registries"),
    (&["template", "render"], "`mu vendor --for helm` writes what `helm template` reads"),
    (
        &["dependency", "dependencies", "dep", "deps"],
        "`mu update` moves dependencies, `mu get` installs them, and `mu vendor` keeps them as files to commit",
    ),
    (&["clean", "clear"], "`mu cache clean` removes what was downloaded"),
    (&["depends", "rdeps"], "`mu why PKG` says who requires a package, and `mu tree` shows all"),
    (
        &["migrate"],
        "`mu import` takes over what other tools list; `mu get` reads the manifests of Helm, KCL and Crossplane as they are",
    ),
    (&["license", "licences"], "`mu licenses` lists the licences of packages, and checks them"),
    (&["bom", "cyclonedx", "spdx"], "`mu sbom` writes a bill of materials"),
    (&["self"], "mu is updated in the way in which it was installed"),
    (&["bump"], "`mu version patch` raises the version in Mu.yaml"),
    (
        &["run", "exec", "dlx", "x"],
        "mu does not run programs; `mu which REF` prints the folder of a package",
    ),
    #[cfg(feature = "git")]
    (
        &["link"],
        "`mu edit REF` clones the repository of a package into the workspace, where it takes the package's place",
    ),
    #[cfg(not(feature = "git"))]
    (
        &["edit", "link", "patch"],
        "this mu has no such command; a folder in the workspace with the package's name takes its place: `git clone URL NAME`",
    ),
];

/// Suggests the command with the nearest spelling; clap's own measure takes `gte` for `tree`.
fn suggest(error: &mut clap::Error, arguments: &[OsString]) {
    let is_one =
        |words: &[&str]| arguments.iter().any(|argument| words.iter().any(|word| argument == word));
    if error.kind() == ErrorKind::MissingRequiredArgument
        && is_one(&["get", "install", "i"])
        && is_one(&["-p", "--package"])
    {
        let tip = "`-p` says which package's Mu.yaml `--save` writes; `mu get` alone installs what all packages \
                   of the workspace need";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    // Other tools have an option for what comes after the `#` here.
    if error.kind() == ErrorKind::UnknownArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(argument)) if argument == "--version")
    {
        let version = arguments.iter().skip_while(|argument| *argument != "--version").nth(1);
        let version = version.and_then(|version| version.to_str()).unwrap_or("1.2.0");
        let tip = format!("a version is written after the package: `PACKAGE#{version}`");
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        // Clap's own names the option that it would have suggested.
        let usage = command_in(&mut program(), arguments).render_usage();
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        return;
    }
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && option.starts_with("--")
        && error.get(ContextKind::SuggestedArg).is_none()
    {
        let near = near_option(option, arguments);
        // Nothing that begins with a dash is a value in mu.
        error.remove(ContextKind::Suggested);
        if let Some(near) = near {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(near));
        }
        return;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let program = global::global_program();
    if global::words(arguments, &program).nth(1).is_none_or(|(_, first)| first != word.as_str()) {
        return;
    }
    let meant = WORDS.iter().find(|(words, _)| words.contains(&word.as_str()));
    if let Some((_, tip)) = meant {
        error.remove(ContextKind::SuggestedSubcommand);
        let tips = ContextValue::StyledStrs(vec![(*tip).into()]);
        error.insert(ContextKind::Suggested, tips);
        return;
    }
    let program = Cli::command();
    let names = program
        .get_subcommands()
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_all_aliases()));
    let nearest = nearest(word, names).map(str::to_owned);
    // Clap's own guesses are far away, and a list of tips without one is an empty line.
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Suggested);
    if let Some(name) = nearest {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name]));
    }
}

/// mu and its commands, with all that each takes.
fn program() -> clap::Command {
    let mut program = Cli::command();
    program.build();
    program
}

/// The command in a command line.
fn command_in<'p>(program: &'p mut clap::Command, arguments: &[OsString]) -> &'p mut clap::Command {
    let mut command = program;
    for (_, word) in global::words(arguments, &global::global_program()).skip(1) {
        match word.to_str().filter(|word| command.find_subcommand(word).is_some()) {
            Some(word) => {
                command = command.find_subcommand_mut(word).expect("was found a moment ago");
            }
            None => break,
        }
    }
    command
}

/// The option of the command in a command line that is spelt like this one, with its dashes.
fn near_option(option: &str, arguments: &[OsString]) -> Option<String> {
    let (word, mut program) = (option.strip_prefix("--")?, program());
    let own = program.clone();
    let command = command_in(&mut program, arguments);
    let all = command.get_arguments().chain(own.get_arguments());
    let names = all.filter(|one| !one.is_hide_set()).filter_map(clap::Arg::get_long);
    nearest(word, names).map(|name| format!("--{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], message: &str, hints: &[&str]) {
        let Err(error) = <Cli as clap::Parser>::try_parse_from(arguments) else {
            panic!("{arguments:?} is refused");
        };
        let error = for_programs(&error.to_string());
        assert_eq!(error.to_string(), message);
        assert_eq!(error.hints, hints);
    }

    #[test]
    fn words_of_other_tools_are_no_commands() {
        let program = Cli::command();
        for command in program.get_subcommands() {
            for name in std::iter::once(command.get_name()).chain(command.get_all_aliases()) {
                let is_listed = WORDS.iter().any(|(words, _)| words.contains(&name));
                assert!(!is_listed, "mu has `{name}`, so nobody sees its tip");
            }
        }
    }

    #[test]
    fn programs_get_all_that_people_get() {
        check(
            &["mu", "schema", "x"],
            "invalid value 'x' for '<WHAT>' [possible values: manifest, workspace, lock, answer]",
            &["see `mu --help`"],
        );
        check(
            &["mu", "add", "--dev"],
            "the following required arguments were not provided: <REF>...",
            &["see `mu add --help`"],
        );
        check(
            &["mu", "get", "--sve"],
            "unexpected argument '--sve' found",
            &["a similar argument exists: '--save'", "see `mu get --help`"],
        );
    }
}
