//! `mu tag`.

use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::tag::{TagRequest, tag};
use crate::report::printable;

#[derive(Debug, Args)]
#[command(after_help = "\
A tag is on one version of a package at most: one that was on another moves. References name it as they \
name versions: acme/web#beta.

Examples:
  mu tag acme/web#1.2.0 beta
  mu tag acme/web#1.2.0 beta --undo")]
pub(crate) struct Arguments {
    /// The package and its version
    reference: String,
    /// The tag
    tag: String,
    /// Take it away
    #[arg(long)]
    undo: bool,
    /// The hub: a folder, s3://, gs:// or az://BUCKET/PREFIX, or a server's URL; left out, where the package's base leads
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let request = TagRequest {
        reference: arguments.reference.clone(),
        tag: arguments.tag.clone(),
        undo: arguments.undo,
        to: arguments.to.clone(),
    };
    let marked = tag(&session, &request)?;
    if context.shell.is_json() {
        context.json(&json!({
            "name": marked.name,
            "version": marked.version,
            "place": marked.place,
            "tag": arguments.tag,
            "tagged": !arguments.undo,
            "changed": marked.changed,
        }))?;
        return Ok(0);
    }
    let what = match (arguments.undo, marked.changed) {
        (false, true) => "tagged",
        (true, true) => "took the tag from",
        (_, false) => "nothing to do for",
    };
    let place = printable(&marked.place);
    let (name, version, tag) = (&marked.name, &marked.version, &arguments.tag);
    context.line(&format!("{what} {name} {version}: {tag} in {place}"))?;
    Ok(0)
}
