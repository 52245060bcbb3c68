//! `mu version`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::ops::version::{OwnVersion, VersionRequest, version};
use crate::ops::{Code, CommandError, Scope};

#[derive(Debug, Args)]
#[command(after_help = "\
Without an argument, prints the version in Mu.yaml. `mu --version` prints that of mu, and `mu versions REF` those of a \
published package.

Examples:
  mu version
  mu version patch
  mu version 2.0.0-rc.1 -p acme/web")]
pub(crate) struct Arguments {
    /// What to raise, or the new version
    #[arg(value_name = "patch|minor|major|VERSION")]
    change: Option<String>,
    /// The package: its name or folder [default: the one in this folder]
    #[arg(short, long)]
    package: Option<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `mu version` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The package's name.
    name: String,
    /// Its manifest.
    file: String,
    /// The version before; none if the manifest had none.
    from: Option<String>,
    /// The version now; the same if it was not changed.
    to: Option<String>,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { change, package, dry_run } = arguments;
    let is_asked = change.is_none();
    let session =
        context.open_for_manifest(Scope::Workspace, package.as_deref(), is_asked || dry_run)?;
    let request = VersionRequest { package, change, dry_run };
    let OwnVersion { name, file, from, to } = version(&session, &request)?;
    if to.is_none() {
        let message = format!("`{}` has no `version`", file.display());
        return Err(CommandError::new(Code::Manifest, message)
            .hint("set one: `mu version 0.1.0`")
            .into());
    }
    let place = context.shown(&file);
    let answer = Answer { name, file: file.display().to_string(), from, to };
    let would = if dry_run { "would write " } else { "" };
    context.answer(&answer, |Answer { name, from, to, .. }| {
        let to = to.as_deref().unwrap_or_default();
        let name = context.short(name);
        match from {
            _ if is_asked => context.line(to),
            Some(from) if from == to => context.line(&format!("{name} is already {to}")),
            Some(from) => context.line(&format!("{would}{name} {from} → {to} in {place}")),
            None => context.line(&format!("{would}{name} {to} in {place}")),
        }
    })
}
