//! The command line: one file for each command, or for a few that belong together, which parses, calls one operation, and prints the answer.

#[cfg(feature = "git")]
mod affected;
mod audit;
mod change;
mod commands;
mod complete;
mod config;
mod context;
mod diff;
#[cfg(feature = "git")]
mod edit;
mod get;
mod global;
mod graph;
mod help;
#[cfg(feature = "publish")]
mod hub;
#[cfg(feature = "publish")]
mod hub_token;
mod login;
mod machine;
mod manifest;
#[cfg(feature = "hub")]
mod pack;
#[cfg(feature = "exec")]
mod plugin;
#[cfg(feature = "publish")]
mod publish;
mod schema;
mod search;
mod status;
mod trust;
mod update;
mod vendor;

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, LazyLock};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand as _};
use mu_provider::{threads, without_secrets};
use serde_json::{Value, json};

use crate::cli::commands::Command;
use crate::cli::context::{CommandExit, Context, OwnOptions, Server, Stop};
use crate::cli::global::{Global, words};
use crate::cli::help::{Globals, shaped};
use crate::env::{Environment, EnvironmentError};
use crate::manifest::source::nearest;
use crate::ops::build::confine;
use crate::ops::session::disk::{not_a_folder, with_hint};
use crate::ops::{Code, CommandError};
use crate::report::{ColorChoice, Shell, ShellOptions};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "mu",
    version = VERSION.as_str(),
    about = "A package manager for infrastructure modules, configuration, schemas, charts and templates",
    after_help = EXAMPLES,
    max_term_width = 100,
    disable_help_subcommand = true,
    subcommand_required = false,
)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  mu init acme/web                     start a package in this folder
  mu add 'aws/ec2#^1.0'                add a dependency, and install it
  mu add 'https://github.com/acme/logs.git#v2.1.0'
  mu get                               install what Mu.yaml and Mu.lock require
  mu which aws/ec2                     show the folder of a package
  mu update                            move to newer versions that Mu.yaml allows";

/// The version, with the commit that this mu was built from, if `MU_COMMIT` was set for the build.
static VERSION: LazyLock<String> = LazyLock::new(|| match option_env!("MU_COMMIT") {
    Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
    None => env!("CARGO_PKG_VERSION").to_owned(),
});

/// The stack of a command, in bytes.
const STACK: usize = 8 << 20;

/// Runs the program with the arguments of a process; returns its exit status.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run_as(arguments.into_iter().collect(), Server::default())
}

/// As [`run`], with a server of hubs: `mu hub serve` serves one here, instead of running the program that has a server.
#[cfg(feature = "publish")]
pub fn run_with_server(
    arguments: impl IntoIterator<Item = OsString>,
    serve: crate::ops::hub::Serve,
) -> u8 {
    run_as(arguments.into_iter().collect(), Some(serve))
}

/// This program, as it was started.
struct Program<'a> {
    #[cfg_attr(not(feature = "publish"), expect(dead_code, reason = "no other program is run"))]
    arguments: &'a [OsString],
    server: Server,
}

fn run_as(arguments: Vec<OsString>, server: Server) -> u8 {
    if let Some(status) = confine::run_confined_build(&arguments) {
        return status;
    }
    threads::with_stack(STACK, || run_here(&arguments, server))
}

fn run_here(arguments: &[OsString], server: Server) -> u8 {
    let environment = Environment::from_process();
    let color = global::color_of(arguments, environment.as_ref().ok());
    if let Some(text) = help::asked_for(arguments) {
        return help(text, arguments, color);
    }
    let cli = match parse(arguments, clap_color(color)) {
        Ok(cli) => cli,
        Err(error) => return refused(error, arguments, color),
    };
    let options = cli.global.shell_options(environment.as_ref().ok());
    let shell = Arc::new(Shell::new(options));
    let ending = start(cli, environment, &shell, Program { arguments, server });
    let status = end(ending, &shell);
    shell.end();
    status
}

/// The program with every command described, as its help shows it.
pub fn program() -> clap::Command {
    help::shaped(Cli::command(), Globals::Shown, clap::ColorChoice::Never)
}

fn clap_color(color: ColorChoice) -> clap::ColorChoice {
    match color {
        ColorChoice::Auto => clap::ColorChoice::Auto,
        ColorChoice::Always | ColorChoice::AlwaysAnsi => clap::ColorChoice::Always,
        ColorChoice::Never => clap::ColorChoice::Never,
    }
}

/// Prints how a command ended; returns the exit status.
fn end(ending: CommandExit, shell: &Shell) -> u8 {
    match ending {
        Ok(status) => status,
        Err(Stop::Failed(error)) => {
            shell.error(&error);
            error.code.exit_status()
        }
        // If a reader such as `head` has seen enough, that is not a failure.
        Err(Stop::Closed(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(Stop::Closed(error)) => {
            shell.error(
                &CommandError::from_error(Code::Io, error).while_doing("cannot print the answer"),
            );
            1
        }
    }
}

fn start(
    cli: Cli,
    environment: Result<Environment, EnvironmentError>,
    shell: &Arc<Shell>,
    program: Program<'_>,
) -> CommandExit {
    let Some(command) = cli.command else {
        let always = clap::ColorChoice::Always;
        let help = help::shaped(Cli::command(), Globals::Named, always).render_help();
        if shell.is_json() {
            shell.json(&help_answer(&help.to_string())).map_err(Stop::Closed)?;
        } else {
            shell.print(&help.ansi().to_string()).map_err(Stop::Closed)?;
        }
        return Ok(0);
    };
    let environment = environment.map_err(|error| CommandError::from_error(Code::Io, error))?;
    #[cfg(feature = "publish")]
    if program.server.is_none() && matches!(command, Command::Hub(hub::HubCommand::Serve(_))) {
        return hub::run_server(&environment, program.arguments);
    }
    let environment = match &cli.global.directory {
        Some(folder) => environment.started_in(folder),
        None => environment,
    };
    if !environment.current.is_dir() {
        let error = not_a_folder(&environment.current);
        return Err(CommandError { code: Code::Io, ..error }.into());
    }
    let mut global = cli.global;
    global.refresh |= command.asks_registries();
    let (shell, server, own) = (Arc::clone(shell), program.server, OwnOptions::default());
    let context = Context { environment, global, shell, server, own };
    // Every command can meet a disk that refuses, and what helps is said here for all of them.
    command.run(&context, Cli::command).map_err(|stop| match stop {
        Stop::Failed(error) => Stop::from(with_hint(
            *error,
            [&context.environment.mu_home, &context.environment.cache],
        )),
        closed @ Stop::Closed(_) => closed,
    })
}

/// Reads a command line.
///
/// Every command takes the global options, and clap copies them into each command, which takes longer than everything else in a fast
/// command. So the arguments are first parsed by a program that only has the command that they seem to name.
///
/// A command line that the program with one command cannot parse is parsed again by the whole program, which
/// has the best errors.
fn parse(arguments: &[OsString], color: clap::ColorChoice) -> Result<Cli, clap::Error> {
    let program = global::global_program().version(VERSION.as_str());
    let first = words(arguments, &program).nth(1);
    if let Some((first, _)) = first
        && let (before, [help, asked @ ..]) = arguments.split_at(first)
        && help == "help"
    {
        // `mu help get` works as in other tools.
        let flag = OsString::from("--help");
        return parse(&[before, asked, &[flag]].concat(), color);
    }
    let matches = narrow(program, first.map(|(_, name)| name)).try_get_matches_from(arguments);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => whole(arguments, color),
        answer => answer,
    }
}

/// Reads a command line with every command described.
fn whole(arguments: &[OsString], color: clap::ColorChoice) -> Result<Cli, clap::Error> {
    let is_short = arguments.iter().any(|argument| argument == "-h");
    let globals = if is_short { Globals::Named } else { Globals::Shown };
    let mut program = shaped(Cli::command(), globals, color);
    let matches = program.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// The program with only one command, if there is one of this name.
fn narrow(program: clap::Command, name: Option<&OsStr>) -> clap::Command {
    let all = || Command::augment_subcommands(clap::Command::new("mu"));
    program.subcommands(name.and_then(|name| all().find_subcommand(name).cloned()))
}

/// Handles a command line that clap refused, or `--help` and `--version`; returns the exit status.
fn refused(mut error: clap::Error, arguments: &[OsString], color: ColorChoice) -> u8 {
    suggest(&mut error, arguments);
    let is_json = is_json(arguments);
    if error.kind() == ErrorKind::DisplayVersion && is_json {
        let shell = Shell::new(ShellOptions { json: true, color, ..Default::default() });
        return printed(shell.json(&json!({ "version": *VERSION })), &shell);
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
    // What was typed at the wrong place may be a URL with a password, which the shell hides.
    let plain = error.render().to_string();
    if without_secrets(&plain) == plain {
        // If the stream is closed, nobody reads an error either.
        let _ = error.print();
    } else {
        Shell::new(ShellOptions { color, ..Default::default() }).status_in_full(plain.trim_end());
    }
    Code::Usage.exit_status()
}

/// The exit status after an answer was printed, or could not be.
fn printed(result: std::io::Result<()>, shell: &Shell) -> u8 {
    end(result.map(|()| 0).map_err(Stop::Closed), shell)
}

/// What `--help` answers under `--json`.
fn help_answer(text: &str) -> Value {
    json!({ "help": text.trim_end() })
}

/// Prints a text that helps; returns the exit status.
fn help(text: &str, arguments: &[OsString], color: ColorChoice) -> u8 {
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
    (
        &["sync", "download", "restore", "tidy", "mod"],
        "`mu get` installs what Mu.yaml and Mu.lock require",
    ),
    (&["ci"], "`mu get --locked` installs exactly what Mu.lock names"),
    (&["lock"], "`mu get` writes Mu.lock, and `mu update` moves it to newer versions"),
    (&["show", "view"], "`mu info REF` shows a package"),
    (&["uninstall", "un", "delete"], "`mu remove REF` removes a dependency"),
    (&["repo", "remote", "tap"], "`mu registry add PREFIX URL` says where packages come from"),
    (&["pull"], "`mu get REF` installs a package, and `mu fetch` downloads what Mu.lock names"),
    (&["push", "upload"], "`mu publish` publishes a package, also in OCI registries"),
    (&["template", "render"], "`mu vendor --for helm` writes what `helm template` reads"),
    (
        &["dependency", "dependencies", "dep", "deps"],
        "`mu update` moves dependencies, `mu get` installs them, and `mu vendor` keeps them as files to commit",
    ),
    (&["clean", "clear"], "`mu cache clean` removes what was downloaded"),
    (
        &["prune", "cleanup", "purge", "gc", "autoremove"],
        "`mu get` removes packs that nothing requires any more, and `mu cache prune` what no workspace uses",
    ),
    (&["freeze"], "`mu list` shows the versions in use, and `mu pin` writes them into Mu.yaml"),
    (
        &["check", "lint", "validate"],
        "`mu status` reads the manifests and Mu.lock, and `mu verify` compares the packs with it",
    ),
    (
        &["workspace", "workspaces", "ws"],
        "`mu init --workspace` starts a workspace, and `mu status` shows it",
    ),
    (&["depends", "rdeps"], "`mu why PKG` says who requires a package, and `mu tree` shows all"),
    (
        &["migrate"],
        "`mu import` takes over what other tools list; `mu get` reads the manifests of Helm, KCL and Crossplane as they are",
    ),
    (&["license", "licences"], "`mu licenses` lists the licences of packages, and checks them"),
    (&["bom", "cyclonedx", "spdx"], "`mu sbom` writes a bill of materials"),
    (&["self", "self-update"], "mu is updated in the way in which it was installed"),
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

/// Options of other tools, the commands of mu that are given them (all, if none is named), and what does the same.
const OPTIONS: &[(&[&str], &[&str], &str)] = &[
    (
        &["--all", "-a"],
        &["get", "fetch", "update", "upgrade", "outdated", "pin", "unpin"],
        "without the name of a package, all are meant",
    ),
    (
        &["--save-dev", "-D"],
        &["get", "add"],
        "`mu add REF --dev` writes into the `devDependencies` of Mu.yaml",
    ),
    (
        &["--production", "--prod", "--omit"],
        &["get"],
        "`--no-dev` leaves out what only devDependencies need",
    ),
    (&["--frozen-lockfile", "--immutable"], &[], "`--locked` fails if Mu.lock would change"),
    (
        &["--git", "--path", "--url"],
        &["get", "add"],
        "where a package is stands in its reference: `https://HOST/OWNER/REPOSITORY.git`, `../FOLDER`",
    ),
    (
        &["--tag", "--branch", "--rev", "--ref"],
        &["get", "add", "update", "info"],
        "a tag, branch or commit is written after the package: `PACKAGE#NAME`",
    ),
    (
        &["--global", "-g"],
        &["add", "upgrade", "downgrade", "tree", "why", "status", "info"],
        "`mu get --global REF` installs for all workspaces, `mu update --global` updates, and `mu list --global` shows that",
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
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        suggest_option(error, None, arguments);
        return;
    }
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && option.starts_with('-')
    {
        let tip = elsewhere(option, arguments);
        let near = if tip.is_none() { near_option(option, arguments) } else { None };
        // Nothing that begins with a dash is a value in mu.
        error.remove(ContextKind::Suggested);
        if let Some(tip) = tip {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        suggest_option(error, near, arguments);
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
fn built_program() -> clap::Command {
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

/// Suggests this option, or none. Clap's own guesses are far away, and its usage names the guess.
fn suggest_option(error: &mut clap::Error, option: Option<String>, arguments: &[OsString]) {
    let own = error.remove(ContextKind::SuggestedArg);
    let option = option.map(ContextValue::String);
    if own != option {
        let usage = command_in(&mut built_program(), arguments).render_usage();
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    if let Some(option) = option {
        error.insert(ContextKind::SuggestedArg, option);
    }
}

/// What the command in a command line has for an option of other tools.
fn elsewhere(option: &str, arguments: &[OsString]) -> Option<&'static str> {
    let mut program = built_program();
    let command = command_in(&mut program, arguments).get_name().to_owned();
    let mut all = OPTIONS.iter().filter(|(options, ..)| options.contains(&option));
    let of_command = |commands: &[&str]| commands.is_empty() || commands.contains(&&*command);
    all.find(|(_, commands, _)| of_command(commands)).map(|(.., tip)| *tip)
}

/// The option of the command in a command line that begins as this one does, or that is spelt like it, with its dashes.
fn near_option(option: &str, arguments: &[OsString]) -> Option<String> {
    let (word, mut program) = (option.strip_prefix("--")?, built_program());
    let own = program.clone();
    let command = command_in(&mut program, arguments);
    let all = command.get_arguments().chain(own.get_arguments());
    let names = all.filter(|one| !one.is_hide_set()).filter_map(clap::Arg::get_long);
    let names: Vec<&str> = names.collect();
    let begun = names.iter().copied().find(|name| {
        let goes_on = word.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        goes_on || (!word.is_empty() && name.starts_with(word))
    });
    begun.or_else(|| nearest(word, names)).map(|name| format!("--{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOR: clap::ColorChoice = clap::ColorChoice::Never;

    /// Checks that the fast way and the complete way give the same result.
    fn check(line: &str) {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (short, long) = (parse(&arguments, COLOR), whole(&arguments, COLOR));
        match (short, long) {
            (Ok(short), Ok(long)) => {
                assert_eq!(format!("{short:?}"), format!("{long:?}"), "{line}")
            }
            (Err(short), Err(long)) => assert_eq!(short.to_string(), long.to_string(), "{line}"),
            (short, long) => panic!("{line}: {short:?} and {long:?}"),
        }
    }

    #[test]
    fn one_command_is_read_as_by_the_whole_program() {
        for line in [
            "mu",
            "mu --offline",
            "mu --version",
            "mu -V",
            "mu --help",
            "mu get",
            "mu i aws/ec2 -s --json",
            "mu --json -C get get list",
            "mu -C list get -q",
            "mu --color always which aws/ec2 --all",
            "mu --jobs 0 get",
            "mu get --locked --frozen",
            "mu get --help",
            "mu get --version",
            "mu get --with x",
            "mu gte",
            "mu registry",
            "mu registry list -q",
            "mu registry add --help",
            "mu what-if --with a/b",
            "mu add",
            "mu -- get",
        ] {
            check(line);
        }
    }

    #[test]
    fn help_can_be_asked_for_by_a_word() {
        for (word, flag) in [
            ("mu help", "mu --help"),
            ("mu help get", "mu get --help"),
            ("mu help hub serve", "mu hub serve --help"),
            ("mu --json help get", "mu --json get --help"),
            ("mu -C help help get", "mu -C help get --help"),
            ("mu help gte", "mu gte --help"),
        ] {
            let answer = |line: &str| {
                let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
                parse(&arguments, COLOR).expect_err("tells help, or an error").to_string()
            };
            assert_eq!(answer(word), answer(flag));
        }
    }

    #[test]
    fn what_is_read_first_describes_one_command() {
        for (line, expected) in [
            ("mu -q ls", vec!["list"]),
            ("mu --resolution minimal ls", vec!["list"]),
            ("mu -qC get ls", vec!["list"]),
            ("mu -C/get --color=never ls get", vec!["list"]),
            ("mu -C/srv/C ls get", vec!["list"]),
            ("mu -q", vec![]),
            ("mu -C get", vec![]),
        ] {
            let arguments: Vec<&str> = line.split(' ').collect();
            let program = global::global_program();
            let first = words(&arguments, &program).nth(1);
            let program = narrow(program.clone(), first.map(|(_, name)| name));
            let commands = program.get_subcommands().map(clap::Command::get_name);
            assert_eq!(commands.collect::<Vec<_>>(), expected, "{line}");
        }
    }

    fn check_refusal(arguments: &[&str], message: &str, hints: &[&str]) {
        let words: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let mut error = parse(&words, COLOR).expect_err("is refused");
        suggest(&mut error, &words);
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
        check_refusal(
            &["mu", "schema", "x"],
            "invalid value 'x' for '<WHAT>' [possible values: manifest, workspace, lock, answer]",
            &["see `mu --help`"],
        );
        check_refusal(
            &["mu", "add", "--dev"],
            "the following required arguments were not provided: <REF>...",
            &["see `mu add --help`"],
        );
        check_refusal(
            &["mu", "get", "--sve"],
            "unexpected argument '--sve' found",
            &["a similar argument exists: '--save'", "see `mu get --help`"],
        );
        check_refusal(
            &["mu", "get", "--save-dev"],
            "unexpected argument '--save-dev' found",
            &[
                "`mu add REF --dev` writes into the `devDependencies` of Mu.yaml",
                "see `mu get --help`",
            ],
        );
        // The nearest option by its letters would be `--allow-insecure`.
        check_refusal(
            &["mu", "update", "--all"],
            "unexpected argument '--all' found",
            &["without the name of a package, all are meant", "see `mu update --help`"],
        );
        // Clap would have it passed as a value.
        check_refusal(
            &["mu", "get", "-r", "x"],
            "unexpected argument '-r' found",
            &["see `mu get --help`"],
        );
        // Clap would say `--resolution`.
        check_refusal(
            &["mu", "get", "--productive"],
            "unexpected argument '--productive' found",
            &["see `mu get --help`"],
        );
    }

    #[test]
    fn options_of_other_tools_are_none_of_the_command() {
        let mut program = built_program();
        for (options, commands, _) in OPTIONS {
            for command in *commands {
                let command = program.find_subcommand_mut(command).expect("is a command");
                for option in *options {
                    let has = command.get_arguments().any(|one| {
                        option.strip_prefix("--").is_some_and(|name| one.get_long() == Some(name))
                            || one.get_short().is_some_and(|short| **option == format!("-{short}"))
                    });
                    assert!(!has, "`{}` has `{option}`", command.get_name());
                }
            }
        }
    }
}
