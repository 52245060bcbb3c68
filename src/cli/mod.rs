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
mod import;
mod info;
mod inventory;
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
mod usage;
mod vendor;

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, LazyLock};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand as _};
use mu_provider::threads;

use crate::cli::commands::Command;
use crate::cli::context::{CommandExit, Context, OwnOptions, Server, Stop};
use crate::cli::global::{Global, words};
use crate::cli::help::{Globals, shaped};
use crate::env::{Environment, EnvironmentError};
use crate::ops::build::confine;
use crate::ops::session::disk::{not_a_folder, with_hint};
use crate::ops::{Code, CommandError};
use crate::report::{ColorChoice, Shell};

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
        return usage::help(text, arguments, color);
    }
    let cli = match parse(arguments, clap_color(color)) {
        Ok(cli) => cli,
        Err(error) => return usage::refused(error, arguments, color),
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
            shell.json(&usage::help_answer(&help.to_string())).map_err(Stop::Closed)?;
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
    command.run(&context, Cli::command).map_err(|stop| match stop {
        Stop::Failed(error) => Stop::from(with_hint(*error, &context.environment.cache)),
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
}
