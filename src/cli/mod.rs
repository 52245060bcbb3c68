//! The command line: one file for each command, or for a few that belong together, which parses, calls one operation, and prints the answer.

mod change;
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
mod info;
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
mod update;
mod usage;
mod vendor;

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, LazyLock};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use mu_provider::threads;

use crate::cli::context::{CommandExit, Context, Server, Stop};
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

// Each command is described only when its help is needed.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Start a package (Mu.yaml) or a workspace (.mu/workspace.yaml)
    Init(manifest::InitArguments),
    /// Install the workspace's dependencies, or other packages
    #[command(visible_aliases = ["install", "i"])]
    Get(get::GetArguments),
    /// Add dependencies to Mu.yaml, and install them
    Add(get::AddArguments),
    /// Remove dependencies from Mu.yaml, Mu.lock and the packs
    #[command(visible_alias = "rm")]
    Remove(get::RemoveArguments),
    /// Move to newer versions that Mu.yaml allows
    #[command(visible_alias = "up")]
    Update(update::UpdateArguments),
    /// Move to the newest releases, and raise the requirements in Mu.yaml
    Upgrade(update::UpgradeArguments),
    /// Move a package to an older version
    Downgrade(update::DowngradeArguments),
    /// Write the locked versions into Mu.yaml as pins
    Pin(manifest::PinArguments),
    /// Remove pins
    Unpin(manifest::UnpinArguments),
    /// Change files of a package before it is installed
    #[cfg(feature = "git")]
    Patch(edit::PatchArguments),
    /// Work on a package that the workspace uses, in a clone of its repository
    #[cfg(feature = "git")]
    Edit(edit::EditArguments),
    /// Show which versions would be chosen, and change nothing
    Resolve(update::ResolveArguments),
    /// Show which versions would be chosen, and what requires them: `mu resolve --explain`
    #[command(name = "what-if")]
    WhatIf(update::ResolveArguments),
    /// Show the folder that a reference points to
    Which(status::WhichArguments),
    /// List what is installed
    #[command(visible_alias = "ls")]
    List(status::ListArguments),
    /// Show the dependency tree
    Tree(graph::TreeArguments),
    /// Draw the dependency graph
    Graph(graph::GraphArguments),
    /// Show why a package is installed, and why this version
    Why(graph::WhyArguments),
    /// Show which packages have newer versions
    Outdated(update::OutdatedArguments),
    /// Show what changed between two versions of a package
    Diff(diff::DiffArguments),
    /// Show the state of the workspace: its packages, lock and packs
    Status(status::StatusArguments),
    /// Search all registries for packages
    Search(search::SearchArguments),
    /// Show what a package is and how to install it
    Info(info::InfoArguments),
    /// List the versions of a package
    Versions(search::VersionsArguments),
    /// Hash the installed packages again, and compare them with Mu.lock
    Verify(status::VerifyArguments),
    /// Fill the store with what Mu.lock names, and install nothing
    Fetch(machine::FetchArguments),
    /// Run the builds of trusted packages, and install the results
    Build(get::BuildArguments),
    /// Keep packs in the workspace as files to commit
    Vendor(vendor::VendorArguments),
    /// Show or raise the version in Mu.yaml
    Version(manifest::VersionArguments),
    /// Create the archive of a package
    #[cfg(feature = "hub")]
    Pack(pack::PackArguments),
    /// Pack a package and publish it
    #[cfg(feature = "publish")]
    Publish(publish::PublishArguments),
    /// Withdraw a published version
    #[cfg(feature = "publish")]
    Yank(publish::YankArguments),
    /// Tag a published version
    #[cfg(feature = "publish")]
    Tag(publish::TagArguments),
    /// Copy packages into another hub or registry
    #[cfg(feature = "publish")]
    Mirror(publish::MirrorArguments),
    /// Store a token for a registry's host
    Login(login::LoginArguments),
    /// Remove the token for a registry's host
    Logout(login::LogoutArguments),
    /// Show whose the token for a registry's host is, and what it allows
    #[command(name = "whoami")]
    WhoAmI(login::WhoAmIArguments),
    #[command(subcommand)]
    Registry(config::RegistryCommand),
    #[cfg(feature = "publish")]
    #[command(subcommand)]
    Hub(hub::HubCommand),
    #[command(subcommand)]
    Cache(machine::CacheCommand),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Show folders and variables, and where each comes from
    Env(config::EnvironmentArguments),
    #[cfg(feature = "exec")]
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Check the setup of this machine, and contact each registry
    Doctor(machine::DoctorArguments),
    /// Print the names that can follow what was typed
    #[command(name = "__complete", hide = true)]
    Complete(complete::CompleteArguments),
    /// Print completions for a shell
    Completions(complete::CompletionsArguments),
    /// Print the manual page, or write a page for each command
    Man(complete::ManArguments),
    /// Print the JSON schema of a file, or of a command's answer
    Schema(schema::SchemaArguments),
}

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
    global.refresh |= asks_registries(&command);
    let context = Context { environment, global, shell: Arc::clone(shell), server: program.server };
    carry_out(&context, command).map_err(|stop| match stop {
        Stop::Failed(error) => Stop::from(with_hint(*error, &context.environment.cache)),
        closed @ Stop::Closed(_) => closed,
    })
}

/// Whether a command is about what registries have now, so that no answer is recent enough.
fn asks_registries(command: &Command) -> bool {
    match command {
        Command::Get(arguments) => arguments.update,
        Command::Update(_)
        | Command::Upgrade(_)
        | Command::Downgrade(_)
        | Command::Outdated(_)
        | Command::Versions(_)
        | Command::Diff(_)
        | Command::Info(_) => true,
        #[cfg(feature = "publish")]
        Command::Publish(_) | Command::Mirror(_) => true,
        _ => false,
    }
}

fn carry_out(context: &Context, command: Command) -> CommandExit {
    match command {
        Command::Init(arguments) => manifest::run_init(context, arguments),
        Command::Get(arguments) => get::run(context, arguments),
        Command::Add(arguments) => get::run_add(context, arguments),
        Command::Remove(arguments) => get::run_remove(context, arguments),
        Command::Update(arguments) => update::run(context, arguments),
        Command::Upgrade(arguments) => update::run_upgrade(context, arguments),
        Command::Downgrade(arguments) => update::run_downgrade(context, &arguments),
        Command::Pin(arguments) => manifest::run_pin(context, arguments),
        Command::Unpin(arguments) => manifest::run_unpin(context, arguments),
        #[cfg(feature = "git")]
        Command::Patch(arguments) => edit::run_patch(context, &arguments),
        #[cfg(feature = "git")]
        Command::Edit(arguments) => edit::run(context, arguments),
        Command::Resolve(arguments) => update::run_resolve(context, arguments),
        Command::WhatIf(mut arguments) => {
            arguments.explain = true;
            update::run_resolve(context, arguments)
        }
        Command::Which(arguments) => status::run_which(context, &arguments),
        Command::List(arguments) => status::run_list(context, &arguments),
        Command::Tree(arguments) => graph::run_tree(context, &arguments),
        Command::Graph(arguments) => graph::run(context, &arguments),
        Command::Why(arguments) => graph::run_why(context, &arguments),
        Command::Outdated(arguments) => update::run_outdated(context, &arguments),
        Command::Diff(arguments) => diff::run(context, &arguments),
        Command::Status(arguments) => status::run(context, &arguments),
        Command::Search(arguments) => search::run(context, arguments),
        Command::Info(arguments) => info::run(context, &arguments),
        Command::Versions(arguments) => search::run_versions(context, arguments),
        Command::Verify(arguments) => status::run_verify(context, &arguments),
        Command::Fetch(arguments) => machine::run_fetch(context, &arguments),
        Command::Build(arguments) => get::run_build(context, arguments),
        Command::Vendor(arguments) => vendor::run(context, &arguments),
        Command::Version(arguments) => manifest::run(context, arguments),
        #[cfg(feature = "hub")]
        Command::Pack(arguments) => pack::run(context, arguments),
        #[cfg(feature = "publish")]
        Command::Publish(arguments) => publish::run(context, arguments),
        #[cfg(feature = "publish")]
        Command::Yank(arguments) => publish::run_yank(context, arguments),
        #[cfg(feature = "publish")]
        Command::Tag(arguments) => publish::run_tag(context, arguments),
        #[cfg(feature = "publish")]
        Command::Mirror(arguments) => publish::run_mirror(context, arguments),
        Command::Login(arguments) => login::run(context, &arguments),
        Command::Logout(arguments) => login::run_logout(context, &arguments),
        Command::WhoAmI(arguments) => login::run_whoami(context, &arguments),
        Command::Registry(command) => config::run_registry(context, command),
        #[cfg(feature = "publish")]
        Command::Hub(command) => hub::run(context, command),
        Command::Cache(command) => machine::run(context, &command),
        Command::Config(command) => config::run(context, &command),
        Command::Env(arguments) => config::run_environment(context, &arguments),
        #[cfg(feature = "exec")]
        Command::Plugin(command) => plugin::run(context, &command),
        Command::Doctor(arguments) => machine::run_doctor(context, &arguments),
        Command::Complete(arguments) => complete::run(context, &arguments, Cli::command),
        Command::Completions(arguments) => {
            complete::run_completions(context, &arguments, &mut Cli::command())
        }
        Command::Man(arguments) => complete::man(context, &arguments, Cli::command()),
        Command::Schema(arguments) => schema::run(context, &arguments),
    }
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
