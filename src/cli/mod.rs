//! The command line: one file for each command, which parses, calls one operation, and prints the answer.

mod add;
mod build;
mod cache;
mod change;
mod complete;
mod completions;
mod config;
mod context;
mod diff;
mod doctor;
#[cfg(feature = "git")]
mod edit;
mod fetch;
mod filter;
mod get;
mod global;
mod graph;
#[cfg(feature = "publish")]
mod hub;
mod info;
mod init;
mod list;
mod login;
#[cfg(feature = "publish")]
mod mirror;
mod outdated;
#[cfg(feature = "hub")]
mod pack;
mod parse;
#[cfg(feature = "git")]
mod patch;
mod pin;
#[cfg(feature = "exec")]
mod plugin;
#[cfg(feature = "publish")]
mod publish;
mod registry;
mod remove;
mod resolve;
mod schema;
mod search;
mod shape;
mod status;
#[cfg(feature = "publish")]
mod tag;
mod topics;
mod tree;
mod update;
mod upgrade;
mod usage;
mod vendor;
mod verify;
mod version;
mod versions;
mod which;
mod why;
#[cfg(feature = "publish")]
mod yank;

use std::ffi::OsString;
use std::sync::{Arc, LazyLock};

use clap::{CommandFactory as _, Parser, Subcommand};
use mu_provider::threads;

use crate::cli::context::{Context, Ending, Server, Stop};
use crate::cli::global::Global;
use crate::cli::shape::Globals;
use crate::env::{Environment, EnvironmentError};
use crate::ops::build::confine;
use crate::ops::explain::disk::with_hint;
use crate::ops::session::no_folder::no_folder;
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
    Init(init::Arguments),
    /// Install the workspace's dependencies, or other packages
    #[command(visible_aliases = ["install", "i"])]
    Get(get::Arguments),
    /// Add dependencies to Mu.yaml, and install them
    Add(add::Arguments),
    /// Remove dependencies from Mu.yaml, Mu.lock and the packs
    #[command(visible_alias = "rm")]
    Remove(remove::Arguments),
    /// Move to newer versions that Mu.yaml allows
    #[command(visible_alias = "up")]
    Update(update::Arguments),
    /// Move to the newest releases, and raise the requirements in Mu.yaml
    Upgrade(upgrade::Arguments),
    /// Move a package to an older version
    Downgrade(upgrade::DowngradeArguments),
    /// Write the locked versions into Mu.yaml as pins
    Pin(pin::PinArguments),
    /// Remove pins
    Unpin(pin::UnpinArguments),
    /// Change files of a package before it is installed
    #[cfg(feature = "git")]
    Patch(patch::Arguments),
    /// Work on a package that the workspace uses, in a clone of its repository
    #[cfg(feature = "git")]
    Edit(edit::Arguments),
    /// Show which versions would be chosen, and change nothing
    Resolve(resolve::Arguments),
    /// Show which versions would be chosen, and what requires them: `mu resolve --explain`
    #[command(name = "what-if")]
    WhatIf(resolve::Arguments),
    /// Show the folder that a reference points to
    Which(which::Arguments),
    /// List what is installed
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Show the dependency tree
    Tree(tree::Arguments),
    /// Draw the dependency graph
    Graph(graph::Arguments),
    /// Show why a package is installed, and why this version
    Why(why::Arguments),
    /// Show which packages have newer versions
    Outdated(outdated::Arguments),
    /// Show what changed between two versions of a package
    Diff(diff::Arguments),
    /// Show the state of the workspace: its packages, lock and packs
    Status(status::Arguments),
    /// Search all registries for packages
    Search(search::Arguments),
    /// Show what a package is and how to install it
    Info(info::Arguments),
    /// List the versions of a package
    Versions(versions::Arguments),
    /// Hash the installed packages again, and compare them with Mu.lock
    Verify(verify::Arguments),
    /// Fill the store with what Mu.lock names, and install nothing
    Fetch(fetch::Arguments),
    /// Run the builds of trusted packages, and install the results
    Build(build::Arguments),
    /// Keep packs in the workspace as files to commit
    Vendor(vendor::Arguments),
    /// Show or raise the version in Mu.yaml
    Version(version::Arguments),
    /// Create the archive of a package
    #[cfg(feature = "hub")]
    Pack(pack::Arguments),
    /// Pack a package and publish it
    #[cfg(feature = "publish")]
    Publish(publish::Arguments),
    /// Withdraw a published version
    #[cfg(feature = "publish")]
    Yank(yank::Arguments),
    /// Tag a published version
    #[cfg(feature = "publish")]
    Tag(tag::Arguments),
    /// Copy packages into another hub or registry
    #[cfg(feature = "publish")]
    Mirror(mirror::Arguments),
    /// Store a token for a registry's host
    Login(login::Arguments),
    /// Remove the token for a registry's host
    Logout(login::LogoutArguments),
    /// Show whose the token for a registry's host is, and what it allows
    #[command(name = "whoami")]
    WhoAmI(login::WhoAmIArguments),
    #[command(subcommand)]
    Registry(registry::Command),
    #[cfg(feature = "publish")]
    #[command(subcommand)]
    Hub(hub::Command),
    #[command(subcommand)]
    Cache(cache::Command),
    #[command(subcommand)]
    Config(config::Command),
    /// Show folders and variables, and where each comes from
    Env(config::EnvironmentArguments),
    #[cfg(feature = "exec")]
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Check the setup of this machine, and contact each registry
    Doctor(doctor::Arguments),
    /// Print the names that can follow what was typed
    #[command(name = "__complete", hide = true)]
    Complete(complete::Arguments),
    /// Print completions for a shell
    Completions(completions::Arguments),
    /// Print the manual page, or write a page for each command
    Man(completions::ManArguments),
    /// Print the JSON schema of a file, or of a command's answer
    Schema(schema::Arguments),
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
    if let Some(status) = confine::asked_for(&arguments) {
        return status;
    }
    threads::with_stack(STACK, || run_here(&arguments, server))
}

fn run_here(arguments: &[OsString], server: Server) -> u8 {
    let environment = Environment::from_process();
    let color = global::color_of(arguments, environment.as_ref().ok());
    if let Some(text) = topics::asked_for(arguments) {
        return usage::help(text, arguments, color);
    }
    let cli = match parse::parse(arguments, clap_color(color)) {
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
    shape::shaped(Cli::command(), Globals::Shown, clap::ColorChoice::Never)
}

fn clap_color(color: ColorChoice) -> clap::ColorChoice {
    match color {
        ColorChoice::Auto => clap::ColorChoice::Auto,
        ColorChoice::Always | ColorChoice::AlwaysAnsi => clap::ColorChoice::Always,
        ColorChoice::Never => clap::ColorChoice::Never,
    }
}

/// Prints how a command ended; returns the exit status.
fn end(ending: Ending, shell: &Shell) -> u8 {
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
) -> Ending {
    let Some(command) = cli.command else {
        let always = clap::ColorChoice::Always;
        let help = shape::shaped(Cli::command(), Globals::Named, always).render_help();
        if shell.is_json() {
            shell.json(&usage::help_answer(&help.to_string())).map_err(Stop::Closed)?;
        } else {
            shell.print(&help.ansi().to_string()).map_err(Stop::Closed)?;
        }
        return Ok(0);
    };
    let environment = environment.map_err(|error| CommandError::from_error(Code::Io, error))?;
    #[cfg(feature = "publish")]
    if program.server.is_none() && matches!(command, Command::Hub(hub::Command::Serve(_))) {
        return hub::run_server(&environment, program.arguments);
    }
    let environment = match &cli.global.directory {
        Some(folder) => environment.started_in(folder),
        None => environment,
    };
    if !environment.current.is_dir() {
        let error = no_folder(&environment.current);
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

fn carry_out(context: &Context, command: Command) -> Ending {
    match command {
        Command::Init(arguments) => init::run(context, arguments),
        Command::Get(arguments) => get::run(context, arguments),
        Command::Add(arguments) => add::run(context, arguments),
        Command::Remove(arguments) => remove::run(context, arguments),
        Command::Update(arguments) => update::run(context, arguments),
        Command::Upgrade(arguments) => upgrade::run(context, arguments),
        Command::Downgrade(arguments) => upgrade::downgrade(context, &arguments),
        Command::Pin(arguments) => pin::pin(context, arguments),
        Command::Unpin(arguments) => pin::unpin(context, arguments),
        #[cfg(feature = "git")]
        Command::Patch(arguments) => patch::run(context, &arguments),
        #[cfg(feature = "git")]
        Command::Edit(arguments) => edit::run(context, arguments),
        Command::Resolve(arguments) => resolve::run(context, arguments),
        Command::WhatIf(mut arguments) => {
            arguments.explain = true;
            resolve::run(context, arguments)
        }
        Command::Which(arguments) => which::run(context, &arguments),
        Command::List(arguments) => list::run(context, &arguments),
        Command::Tree(arguments) => tree::run(context, &arguments),
        Command::Graph(arguments) => graph::run(context, &arguments),
        Command::Why(arguments) => why::run(context, &arguments),
        Command::Outdated(arguments) => outdated::run(context, &arguments),
        Command::Diff(arguments) => diff::run(context, &arguments),
        Command::Status(arguments) => status::run(context, &arguments),
        Command::Search(arguments) => search::run(context, arguments),
        Command::Info(arguments) => info::run(context, &arguments),
        Command::Versions(arguments) => versions::run(context, arguments),
        Command::Verify(arguments) => verify::run(context, &arguments),
        Command::Fetch(arguments) => fetch::run(context, &arguments),
        Command::Build(arguments) => build::run(context, arguments),
        Command::Vendor(arguments) => vendor::run(context, &arguments),
        Command::Version(arguments) => version::run(context, arguments),
        #[cfg(feature = "hub")]
        Command::Pack(arguments) => pack::run(context, arguments),
        #[cfg(feature = "publish")]
        Command::Publish(arguments) => publish::run(context, arguments),
        #[cfg(feature = "publish")]
        Command::Yank(arguments) => yank::run(context, arguments),
        #[cfg(feature = "publish")]
        Command::Tag(arguments) => tag::run(context, arguments),
        #[cfg(feature = "publish")]
        Command::Mirror(arguments) => mirror::run(context, arguments),
        Command::Login(arguments) => login::run(context, &arguments),
        Command::Logout(arguments) => login::run_logout(context, &arguments),
        Command::WhoAmI(arguments) => login::run_whoami(context, &arguments),
        Command::Registry(command) => registry::run(context, command),
        #[cfg(feature = "publish")]
        Command::Hub(command) => hub::run(context, command),
        Command::Cache(command) => cache::run(context, &command),
        Command::Config(command) => config::run(context, &command),
        Command::Env(arguments) => config::environment(context, &arguments),
        #[cfg(feature = "exec")]
        Command::Plugin(command) => plugin::run(context, &command),
        Command::Doctor(arguments) => doctor::run(context, &arguments),
        Command::Complete(arguments) => complete::run(context, &arguments, Cli::command),
        Command::Completions(arguments) => {
            completions::run(context, &arguments, &mut Cli::command())
        }
        Command::Man(arguments) => completions::man(context, &arguments, Cli::command()),
        Command::Schema(arguments) => schema::run(context, &arguments),
    }
}
