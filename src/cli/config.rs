//! `mu config` and `mu env`.

use anstyle::Style;
use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::config::{Setting, named, set, setting, settings, variables};
use crate::report::{FAINT, STRONG, Table};

/// Show and change settings, and where each comes from
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Settings are in .mu/workspace.yaml and ~/.mu/config.yaml; the first takes precedence, key by key. `mu registry` sets \
registries.

Examples:
  mu config list
  mu config get resolution
  mu config set resolution minimal
  mu config set -g minimumReleaseAge '3 days'")]
pub(crate) enum Command {
    /// List each setting, its value, and where it comes from
    #[command(visible_alias = "ls")]
    List,
    /// Print the value of a setting
    #[command(after_help = "\
Examples:
  mu config get resolution
  mu config get runtime.kubernetes
  mu config get registries")]
    Get {
        /// The setting, as `mu config list` shows it
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Set a setting in .mu/workspace.yaml
    #[command(after_help = "\
Examples:
  mu config set resolution minimal
  mu config set runtime.kubernetes 1.29.2
  mu config set -g link copy")]
    Set {
        /// The setting, such as `resolution` or `runtime.kubernetes`
        #[arg(value_name = "KEY")]
        key: String,
        /// Its value
        #[arg(value_name = "VALUE")]
        value: String,
        /// Set it in ~/.mu/config.yaml, for every workspace
        #[arg(short, long)]
        global: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu env
  mu env MU_CACHE_DIR
  mu env --json")]
pub(crate) struct EnvironmentArguments {
    /// Print only the values of these, a line each
    #[arg(value_name = "VARIABLE")]
    names: Vec<String>,
}

/// What `mu config list`, `mu config get` and `mu env` answer.
#[derive(Serialize, JsonSchema)]
pub(super) struct Settings {
    /// The settings or variables.
    settings: Vec<Setting>,
}

/// What `mu config set` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Wrote {
    /// The settings that were written.
    file: String,
}

pub(crate) fn run(context: &Context, command: &Command) -> Ending {
    // What is said in a workspace that is not trusted may be what makes it so.
    let scope = match command {
        Command::Set { global: true, .. } => Scope::Global,
        _ => Scope::Workspace,
    };
    let session = context.open_settings_of(scope)?;
    match command {
        Command::List => list(context, settings(&session)?),
        Command::Get { key } => {
            let found = Settings { settings: setting(&session, key)? };
            context.answer(&found, |found| match found.settings.as_slice() {
                [one] if one.key == *key => context.line(&one.value),
                several => several.iter().try_for_each(|setting| {
                    context.line(&format!("{}: {}", setting.key, setting.value))
                }),
            })
        }
        Command::Set { key, value, global } => {
            let file = set(&session, key, value, *global)?;
            let wrote = Wrote { file: file.display().to_string() };
            context.answer(&wrote, |_| context.line(&format!("wrote {}", context.shown(&file))))
        }
    }
}

pub(crate) fn environment(context: &Context, arguments: &EnvironmentArguments) -> Ending {
    if arguments.names.is_empty() {
        return list(context, variables(&context.environment));
    }
    let found = Settings { settings: named(&context.environment, &arguments.names)? };
    context.answer(&found, |found| {
        found.settings.iter().try_for_each(|setting| context.line(&setting.value))
    })
}

fn list(context: &Context, settings: Vec<Setting>) -> Ending {
    if context.shell.is_json() {
        return context.json(&Settings { settings });
    }
    let mut table = Table::new(&["name", "value", "from"]);
    for Setting { key, value, from } in settings {
        let from = context.shown(from.as_ref());
        table.row([(STRONG, key), (Style::new(), value), (FAINT, from)]);
    }
    context.table(&table, "nothing is set")?;
    Ok(0)
}
