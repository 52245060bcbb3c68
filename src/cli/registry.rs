//! `mu registry`.

use anstyle::Style;
use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::ops::registry::{add, remove};
use crate::report::{FAINT, STRONG, Table};
use crate::workspace::edit::NewRegistry;

/// Manage registries: where packages come from
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
    /// Remove a registry
    Remove(RemoveArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Writes .mu/workspace.yaml. The registry with the longest prefix of a package's id is used. A package keeps its \
id wherever it comes from.

Examples:
  mu registry add hub.mu.com/ https://hub.internal.acme.co/mu/
  mu registry add hub.mu.com/acme/ ./hub
  mu registry add git.acme.co/ --provider git --lenient")]
pub(crate) struct AddArguments {
    /// What the ids of its packages start with: BASE/ or BASE/NAMESPACE/
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
    /// Read tags such as v1 and 1.28 as versions
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
    /// Remove it from ~/.mu/config.yaml
    #[arg(short, long)]
    global: bool,
}

/// What `mu registry add` and `mu registry remove` answer.
#[derive(Serialize, JsonSchema)]
pub(super) struct Wrote {
    /// The settings that were written.
    file: String,
}

/// What `mu registry list` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Registries<'a> {
    /// The base of references without one.
    default: &'a str,
    /// The registries, in the order of their prefixes.
    registries: Vec<Registry<'a>>,
}

/// Where the packages below a prefix come from.
#[derive(Serialize, JsonSchema)]
struct Registry<'a> {
    /// What their ids begin with.
    prefix: &'a str,
    /// Where they are; none for where the prefix says.
    url: Option<String>,
    /// The provider; none if that is found out.
    provider: &'a Option<String>,
    /// Whether plain http to another machine is allowed.
    insecure: bool,
    /// Whether tags such as `v1` and `1.28` are versions.
    lenient: bool,
    /// The settings that say so.
    file: String,
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
    let wrote = Wrote { file: file.display().to_string() };
    context.answer(&wrote, |wrote| context.line(&format!("wrote {}", wrote.file)))
}

fn list(context: &Context) -> Ending {
    let session = context.open_settings()?;
    let registries = &session.workspace.settings.registries;
    if context.shell.is_json() {
        let registries = registries.iter().map(|registry| Registry {
            prefix: &registry.prefix,
            url: registry.url.as_ref().map(ToString::to_string),
            provider: &registry.provider,
            insecure: registry.insecure,
            lenient: registry.lenient,
            file: registry.defined_in.display().to_string(),
        });
        let default = session.workspace.settings.base.as_str();
        return context.json(&Registries { default, registries: registries.collect() });
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
    context.table(&table, "no registries are set: every base is contacted directly")?;
    Ok(0)
}
