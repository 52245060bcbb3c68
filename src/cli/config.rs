//! `mu config`, `mu env` and `mu registry`: the settings.

use std::path::Path;

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::ops::config::{
    Setting, add, all_settings, environment_variables, named, remove, set, setting, take_out,
};
use crate::ops::{OperationScope, Session};
use crate::report::{FAINT, PLAIN, STRONG, Table};
use crate::workspace;
use crate::workspace::edit::NewRegistry;

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
pub(crate) enum ConfigCommand {
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
  mu config set overrides.aws/ec2 ../ec2
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
    /// Take a setting out of .mu/workspace.yaml
    #[command(after_help = "\
Examples:
  mu config unset resolution
  mu config unset overrides.aws/ec2
  mu config unset -g link")]
    Unset {
        /// The setting, as `mu config list` shows it
        #[arg(value_name = "KEY")]
        key: String,
        /// Take it out of ~/.mu/config.yaml
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

/// What `mu config set` and `mu config unset` answer.
#[derive(Serialize, JsonSchema)]
pub(super) struct Wrote {
    /// The settings that were written.
    file: String,
}

pub(crate) fn run(context: &Context, command: &ConfigCommand) -> CommandExit {
    // What is said in a workspace that is not trusted may be what makes it so.
    let scope = match command {
        ConfigCommand::Set { global: true, .. } | ConfigCommand::Unset { global: true, .. } => {
            OperationScope::Global
        }
        _ => OperationScope::Workspace,
    };
    let _lock = match command {
        ConfigCommand::Set { global, .. } | ConfigCommand::Unset { global, .. } => {
            Some(context.keep_others_away(*global)?)
        }
        ConfigCommand::List | ConfigCommand::Get { .. } => None,
    };
    let session = context.open_settings_of(scope)?;
    match command {
        ConfigCommand::List => list(context, all_settings(&session)?),
        ConfigCommand::Get { key } => {
            let found = Settings { settings: setting(&session, key)? };
            context.answer(&found, |found| match found.settings.as_slice() {
                [one] if one.key == *key => context.line(&one.value),
                several => several.iter().try_for_each(|setting| {
                    context.line(&format!("{}: {}", setting.key, setting.value))
                }),
            })
        }
        ConfigCommand::Set { key, value, global } => {
            wrote(context, &set(&session, key, value, *global)?)
        }
        ConfigCommand::Unset { key, global } => wrote(context, &take_out(&session, key, *global)?),
    }
}

fn wrote(context: &Context, file: &Path) -> CommandExit {
    let wrote = Wrote { file: file.display().to_string() };
    context.answer(&wrote, |_| context.line(&format!("wrote {}", context.path_for_people(file))))
}

pub(crate) fn run_environment(context: &Context, arguments: &EnvironmentArguments) -> CommandExit {
    if arguments.names.is_empty() {
        return list(context, environment_variables(&context.environment));
    }
    let found = Settings { settings: named(&context.environment, &arguments.names)? };
    context.answer(&found, |found| {
        found.settings.iter().try_for_each(|setting| context.line(&setting.value))
    })
}

fn list(context: &Context, settings: Vec<Setting>) -> CommandExit {
    context.answer(&Settings { settings }, |found| {
        let rows = found.settings.iter().map(|Setting { key, value, from }| {
            let from = context.path_for_people(from.as_ref());
            [(STRONG, key.clone()), (PLAIN, value.clone()), (FAINT, from)]
        });
        context.table(&Table::with_rows(["name", "value", "from"], rows), "nothing is set")
    })
}

/// Manage registries: where packages come from
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  mu registry list
  mu registry add hub.mu.com/ https://hub.internal.acme.co/mu/
  mu registry add git.acme.co/ --provider git
  mu registry remove git.acme.co/")]
pub(crate) enum RegistryCommand {
    /// List registries, and where each is set
    #[command(visible_alias = "ls")]
    List,
    /// Set where the packages below a base or a namespace come from
    #[command(after_help = "\
Writes .mu/workspace.yaml. The registry with the longest prefix of a package's id is used. A package keeps its \
id wherever it comes from.

Examples:
  mu registry add hub.mu.com/ https://hub.internal.acme.co/mu/
  mu registry add hub.mu.com/acme/ ./hub
  mu registry add hub.mu.com/secret/ https://private.acme.co/ --no-strip
  mu registry add git.acme.co/ --provider git --lenient")]
    Add {
        /// What the ids of its packages start with: BASE/ or BASE/NAMESPACE/
        #[arg(value_name = "PREFIX")]
        prefix: String,
        /// Where it is: a URL, or a folder
        #[arg(value_name = "URL", required_unless_present = "provider")]
        url: Option<String>,
        /// Which provider serves it: hub, git, helm, kudo, oci, olm, path, or a plugin
        #[arg(long, value_name = "NAME")]
        provider: Option<String>,
        /// Allow plain http:// to it
        #[arg(long)]
        insecure: bool,
        /// Read tags such as v1 and 1.28 as versions
        #[arg(long)]
        lenient: bool,
        /// Names are whole there: they include the segments in PREFIX
        #[arg(long)]
        no_strip: bool,
        /// Set it in ~/.mu/config.yaml, for every workspace
        #[arg(short, long)]
        global: bool,
    },
    /// Remove a registry
    #[command(
        visible_alias = "rm",
        after_help = "\
Examples:
  mu registry remove git.acme.co/"
    )]
    Remove {
        /// The prefix, as `mu registry list` shows it
        #[arg(value_name = "PREFIX")]
        prefix: String,
        /// Remove it from ~/.mu/config.yaml
        #[arg(short, long)]
        global: bool,
    },
}

/// What `mu registry add` and `mu registry remove` answer.
#[derive(Serialize, JsonSchema)]
pub(super) struct WroteRegistry {
    /// The settings that were written.
    file: String,
    /// What was set for the prefix before, in words.
    replaced: Option<String>,
}

/// The text for a registry without its own URL.
const AT_BASE: &str = "at the base";

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
    /// Where they are; none if the prefix says it.
    url: Option<String>,
    /// The configured provider; none if it is detected.
    provider: &'a Option<String>,
    /// Whether names there leave out the segments of the prefix.
    strip: bool,
    /// Whether plain http to another machine is allowed.
    insecure: bool,
    /// Whether tags such as `v1` and `1.28` are versions.
    lenient: bool,
    /// The file that sets it.
    file: String,
}

pub(crate) fn run_registry(context: &Context, command: RegistryCommand) -> CommandExit {
    let _lock = match &command {
        RegistryCommand::Add { global, .. } | RegistryCommand::Remove { global, .. } => {
            Some(context.keep_others_away(*global)?)
        }
        RegistryCommand::List => None,
    };
    let session = context.open_settings_session()?;
    match command {
        RegistryCommand::List => list_registries(context, &session),
        RegistryCommand::Add { prefix, url, provider, insecure, lenient, no_strip, global } => {
            let insecure = insecure || context.global.allow_insecure;
            let new = NewRegistry { provider, url, insecure, lenient, no_strip, tokens_at: None };
            let added = add(&session, &prefix, &new, global)?;
            let wrote = WroteRegistry {
                file: added.file.display().to_string(),
                replaced: added.before.as_ref().map(described),
            };
            context.answer(&wrote, |wrote| {
                if let Some(before) = &wrote.replaced {
                    let (prefix, now) = (&added.now.prefix, described(&added.now));
                    context.line(&format!("{prefix}: {before} → {now}"))?;
                }
                context.line(&format!("wrote {}", wrote.file))
            })
        }
        RegistryCommand::Remove { prefix, global } => {
            let file = remove(&session, &prefix, global)?;
            let wrote = WroteRegistry { file: file.display().to_string(), replaced: None };
            context.answer(&wrote, |wrote| context.line(&format!("wrote {}", wrote.file)))
        }
    }
}

/// A registry's place and its other settings, in a line.
fn described(registry: &workspace::ConfiguredRegistry) -> String {
    let url = registry.url.as_ref().map_or_else(|| AT_BASE.to_owned(), ToString::to_string);
    let provider = registry.provider.as_ref().map(|provider| format!("provider {provider}"));
    let more = [
        provider,
        registry.insecure.then(|| "insecure".to_owned()),
        registry.lenient.then(|| "lenient versions".to_owned()),
        (!registry.strip).then(|| "names whole".to_owned()),
    ];
    let parts: Vec<String> = std::iter::once(url).chain(more.into_iter().flatten()).collect();
    parts.join(", ")
}

fn list_registries(context: &Context, session: &Session) -> CommandExit {
    let registries = &session.workspace.settings.registries;
    let listed = registries.iter().map(|registry| Registry {
        prefix: &registry.prefix,
        url: registry.url.as_ref().map(ToString::to_string),
        provider: &registry.provider,
        strip: registry.strip,
        insecure: registry.insecure,
        lenient: registry.lenient,
        file: registry.defined_in.display().to_string(),
    });
    let default = session.workspace.settings.base.as_str();
    let answer = Registries { default, registries: listed.collect() };
    context.answer(&answer, |answer| {
        let rows = registries.iter().zip(&answer.registries).map(|(registry, listed)| {
            let provider = match session.index().provider_of(registry) {
                Ok(provider) => provider,
                Err(_) => format!("{} (unknown)", registry.provider.as_deref().unwrap_or_default()),
            };
            let left_out = match registry.left_out() {
                "" if registry.strip => "",
                "" => "nothing",
                left_out => left_out,
            };
            [
                (STRONG, registry.prefix.clone()),
                (PLAIN, listed.url.as_deref().unwrap_or(AT_BASE).to_owned()),
                (PLAIN, provider),
                (PLAIN, left_out.to_owned()),
                (FAINT, listed.file.clone()),
            ]
        });
        let heading = ["prefix", "where", "provider", "names leave out", "set in"];
        let none = "no registries are set: every base is contacted directly";
        context.table(&Table::with_rows(heading, rows), none)
    })
}
