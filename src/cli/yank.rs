//! `mu yank`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::ops::yank::{Marked, YankRequest, yank};
use crate::report::printable;

#[derive(Debug, Args)]
#[command(after_help = "\
A yanked version is no longer chosen, but stays in use where a lock names it. Nothing is deleted.

Examples:
  mu yank 'acme/web#1.2.0' --reason 'loses data'
  mu yank 'acme/web#1.2.0' --undo")]
pub(crate) struct Arguments {
    /// The package and its version
    reference: String,
    /// Undo the yank
    #[arg(long, conflicts_with = "reason")]
    undo: bool,
    /// Why; shown to those who use the version
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// Where it is: a hub's folder, bucket (s3://, gs:// or az://BUCKET/PREFIX) or URL, or an OCI registry (oci://HOST/REPOSITORY) [default: where the reference leads]
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `mu yank` answers.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    /// The package's name at the hub.
    name: String,
    /// The version.
    version: String,
    /// The hub.
    place: String,
    /// Whether the version is withdrawn now.
    yanked: bool,
    /// Whether this is new.
    changed: bool,
    /// Whether this was a dry run.
    dry_run: bool,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { reference, undo, reason, to, dry_run } = arguments;
    let session = context.open_to_ask()?;
    let request = YankRequest { reference, reason, undo, to, dry_run };
    let Marked { name, version, place, changed } = yank(&session, &request)?;
    let yanked = !undo;
    let answer = Answer { name, version, place, yanked, changed, dry_run };
    context.answer(&answer, |Answer { name, version, place, yanked, changed, dry_run }| {
        let what = match (yanked, changed) {
            (true, true) if *dry_run => "would yank",
            (false, true) if *dry_run => "would no longer be yanked:",
            (true, true) => "yanked",
            (false, true) => "no longer yanked:",
            (true, false) => "already yanked, nothing to do:",
            (false, false) => "not yanked, nothing to do:",
        };
        let name = context.short(name);
        context.line(&format!("{what} {name} {version} in {}", printable(place)))
    })
}
