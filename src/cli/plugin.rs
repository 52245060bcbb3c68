//! `mu plugin`.

use std::path::PathBuf;

use clap::Subcommand;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::ops::plugin::{self, Check, CheckRequest, Plugin};
use crate::ops::{Code, CommandError};
use crate::report::{BAD, GOOD, PLAIN, STRONG, Table, count, printable};

/// List provider plugins, and check what they do
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A plugin is a program `mu-provider-X`. It serves references such as X://HOST/NAME, and registries with `provider: X`. mu \
looks for it under `plugins` in ~/.mu/config.yaml, in ~/.mu/plugins, and on PATH.

Examples:
  mu plugin list
  mu plugin check shelf shelf://books.example/tools/lamp
  mu plugin check ./mu-provider-shelf --replay records
  mu plugin run shelf versions books.example/tools/lamp")]
pub(crate) enum PluginCommand {
    /// List the plugins on this machine
    List,
    /// Check that a plugin does what the protocol says
    #[command(after_help = "\
Examples:
  mu plugin check shelf
  mu plugin check shelf shelf://books.example/tools/lamp      also with this package
  mu plugin check shelf --base books.example/ --name tools/lamp
  mu plugin check ./mu-provider-shelf --replay records")]
    Check {
        /// The plugin's name, or the path of its program
        #[arg(value_name = "NAME|PROGRAM")]
        plugin: String,
        /// A package of the plugin to try it with
        #[arg(value_name = "REF", conflicts_with = "base")]
        reference: Option<String>,
        /// The base of a package to try it with, such as `HOST/`
        #[arg(long, requires = "name")]
        base: Option<String>,
        /// The name of that package
        #[arg(long, requires = "base")]
        name: Option<String>,
        /// Ask again what the records in DIR have, and compare the answers; MU_PLUGIN_DEBUG=DIR writes records
        #[arg(long, value_name = "DIR")]
        replay: Option<PathBuf>,
    },
    /// Ask a plugin one question, and print its answer
    #[command(after_help = "\
Examples:
  mu plugin run shelf versions books.example/tools/lamp
  mu plugin run shelf search '{\"base\": \"books.example/\", \"words\": \"lamp\", \"limit\": 3}'")]
    Run {
        /// The plugin's name
        #[arg(value_name = "NAME")]
        name: String,
        /// The method, such as `versions`
        #[arg(value_name = "METHOD")]
        method: String,
        /// What the method takes: a package, or JSON
        #[arg(value_name = "REF|JSON", default_value = "{}")]
        params: String,
    },
}

/// What `mu plugin list` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    /// The plugins, by name.
    plugins: Vec<Plugin>,
}

/// The answer of `mu plugin check`; if a check fails, the `details` of the error.
#[derive(Serialize, JsonSchema)]
pub(super) struct Checked {
    /// The checks, in this order.
    checks: Vec<Check>,
}

/// What `mu plugin run` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Said {
    /// What the plugin said.
    result: serde_json::Value,
}

pub(crate) fn run(context: &Context, command: &PluginCommand) -> CommandExit {
    let session = context.open_asking_session()?;
    match command {
        PluginCommand::List => {
            let listed = Listed { plugins: plugin::list(&session) };
            context.answer(&listed, |Listed { plugins }| {
                let rows = plugins.iter().map(|plugin| {
                    [
                        (STRONG, plugin.name.clone()),
                        (PLAIN, plugin.version.clone().unwrap_or_default()),
                        (PLAIN, plugin.path.clone()),
                        (BAD, plugin.problem.clone().unwrap_or_default()),
                    ]
                });
                let folder = session.environment.mu_home.join("plugins");
                let none = format!("no plugins in {}, and none on PATH", folder.display());
                context.table(
                    &Table::with_rows(["plugin", "version", "program", "problem"], rows),
                    &none,
                )
            })
        }
        PluginCommand::Check { plugin, reference, base, name, replay } => {
            let named = base.as_ref().zip(name.as_ref());
            let named = named.map(|(base, name)| format!("{}/{name}", base.trim_end_matches('/')));
            let request = CheckRequest {
                plugin: plugin.clone(),
                reference: reference.clone().or(named),
                records: replay.clone(),
            };
            let checked = Checked { checks: plugin::check(session, &request)? };
            let failed = checked.checks.iter().filter(|check| !check.ok).count();
            let failure = (failed > 0).then(|| {
                let checks = count(failed, "check");
                let message = format!(
                    "the plugin `{plugin}` does not do what the protocol says: {checks} failed"
                );
                CommandError::new(Code::Plugin, message)
            });
            context.answer_checks(&checked, failure, |checked| {
                checked.checks.iter().try_for_each(|Check { what, found, ok }| {
                    let mark =
                        if *ok { format!("{GOOD}✓{GOOD:#}") } else { format!("{BAD}✗{BAD:#}") };
                    context.line(&format!("{mark} {what}: {}", printable(found)))
                })
            })
        }
        PluginCommand::Run { name, method, params } => {
            let said = Said { result: plugin::run(&session, name, method, params)? };
            context.answer(&said, |said| context.line(&printable(&format!("{:#}", said.result))))
        }
    }
}
