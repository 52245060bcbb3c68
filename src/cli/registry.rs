//! `mu registry`.

use anstyle::Style;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::registry::{add, remove};
use crate::report::{FAINT, STRONG, Table};
use crate::workspace::edit::NewRegistry;

/// Say where packages really come from
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  mu registry list
  mu registry add hub.mu.com/ https://hub.internal.acme.co/mu/
  mu registry add git.acme.co/ --provider git
  mu registry remove git.acme.co/")]
pub(crate) enum Command {
    /// List registries, and where each is set
    List,
    /// Set where the packages below a base or a namespace come from
    Add(AddArguments),
    /// Take a registry away
    Remove(RemoveArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Writes .mu/workspace.yaml. The longest prefix of a package's id counts, and a package keeps its id wherever it \
comes from.

Examples:
  mu registry add hub.mu.com/ https://hub.internal.acme.co/mu/
  mu registry add hub.mu.com/acme/ ./hub
  mu registry add git.acme.co/ --provider git --lenient")]
pub(crate) struct AddArguments {
    /// What the ids of its packages begin with: BASE/ or BASE/NAMESPACE/
    #[arg(value_name = "PREFIX")]
    prefix: String,
    /// Where it is: a URL, or a folder
    #[arg(value_name = "URL", required_unless_present = "provider")]
    url: Option<String>,
    /// Which provider serves it: hub, git
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Allow plain http:// to it
    #[arg(long)]
    insecure: bool,
    /// Tags such as v1 and 1.28 are versions
    #[arg(long)]
    lenient: bool,
    /// Set it in ~/.mu/config.yaml, for every workspace
    #[arg(short, long)]
    global: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu registry remove git.acme.co/")]
pub(crate) struct RemoveArguments {
    /// The prefix, as `mu registry list` shows it
    #[arg(value_name = "PREFIX")]
    prefix: String,
    /// Take it out of ~/.mu/config.yaml
    #[arg(short, long)]
    global: bool,
}

pub(crate) fn run(context: &Context, command: &Command) -> Ending {
    match command {
        Command::List => list(context),
        Command::Add(arguments) => {
            let session = context.open_settings()?;
            let file = add(
                &session,
                &arguments.prefix,
                &NewRegistry {
                    url: arguments.url.clone(),
                    provider: arguments.provider.clone(),
                    insecure: arguments.insecure || context.global.allow_insecure,
                    lenient: arguments.lenient,
                },
                arguments.global,
            )?;
            changed(context, &file)
        }
        Command::Remove(arguments) => {
            let session = context.open_settings()?;
            let file = remove(&session, &arguments.prefix, arguments.global)?;
            changed(context, &file)
        }
    }
}

fn changed(context: &Context, file: &std::path::Path) -> Ending {
    if context.shell.is_json() {
        context.json(&json!({ "file": file.display().to_string() }))?;
    } else {
        context.line(&format!("wrote {}", file.display()))?;
    }
    Ok(0)
}

fn list(context: &Context) -> Ending {
    let session = context.open_settings()?;
    let registries = &session.workspace.settings.registries;
    if context.shell.is_json() {
        let registries: Vec<_> = registries
            .iter()
            .map(|registry| {
                json!({
                    "prefix": registry.prefix,
                    "url": registry.url.as_ref().map(ToString::to_string),
                    "provider": registry.provider,
                    "insecure": registry.insecure,
                    "lenient": registry.lenient,
                    "file": registry.defined_in.display().to_string(),
                })
            })
            .collect();
        context.json(&json!({
            "default": session.workspace.settings.base.to_string(),
            "registries": registries,
        }))?;
        return Ok(0);
    }
    let mut table = Table::new(&["prefix", "where", "provider", "set in"]);
    for registry in registries {
        let url =
            registry.url.as_ref().map_or_else(|| "at the base".to_owned(), ToString::to_string);
        table.row([
            (STRONG, registry.prefix.clone()),
            (Style::new(), url),
            (Style::new(), registry.provider.clone().unwrap_or_else(|| "by its URL".to_owned())),
            (FAINT, registry.defined_in.display().to_string()),
        ]);
    }
    if table.is_empty() {
        context.shell.status("no registries are set: every base is asked itself");
        return Ok(0);
    }
    context.print(&table.render())?;
    Ok(0)
}
