//! `mu tag`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::tag::{TagRequest, tag};
use crate::ops::yank::Marked;
use crate::report::printable;

#[derive(Debug, Args)]
#[command(after_help = "\
A tag names at most one version of a package; if it named another one, it moves. References use it like a \
version: acme/web#beta.

Examples:
  mu tag 'acme/web#1.2.0' beta
  mu tag 'acme/web#1.2.0' beta --undo")]
pub(crate) struct Arguments {
    /// The package and its version
    reference: String,
    /// The tag
    tag: String,
    /// Remove the tag
    #[arg(long)]
    undo: bool,
    /// Where it is: a hub's folder, bucket (s3://, gs:// or az://BUCKET/PREFIX) or URL, or an OCI registry (oci://HOST/REPOSITORY) [default: where the reference leads]
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `mu tag` answers.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    /// The package's name at the hub.
    name: String,
    /// The version.
    version: String,
    /// The hub.
    place: String,
    /// The tag.
    tag: String,
    /// Whether the version has it now.
    tagged: bool,
    /// Whether this is new.
    changed: bool,
    /// Whether this was a dry run.
    dry_run: bool,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { reference, undo, to, dry_run, .. } = arguments;
    let session = context.open(Scope::Workspace)?;
    let request = TagRequest { reference, tag: arguments.tag, undo, to, dry_run };
    let Marked { name, version, place, changed } = tag(&session, &request)?;
    let (tag, tagged) = (request.tag, !undo);
    let answer = Answer { name, version, place, tag, tagged, changed, dry_run };
    context.answer(&answer, |Answer { name, version, place, tag, tagged, changed, dry_run }| {
        let what = match (tagged, changed) {
            (true, true) if *dry_run => "would tag",
            (false, true) if *dry_run => "would untag",
            (true, true) => "tagged",
            (false, true) => "untagged",
            (_, false) => "nothing to do for",
        };
        let name = context.short(name);
        context.line(&format!("{what} {name} {version}: {tag} in {}", printable(place)))
    })
}
