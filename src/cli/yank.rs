//! `mu yank`.

use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::yank::{YankRequest, yank};
use crate::report::printable;

#[derive(Debug, Args)]
#[command(after_help = "\
A yanked version is not chosen any more, but stays where a lock names it. Nothing is deleted.

Examples:
  mu yank acme/web#1.2.0 --reason 'loses data'
  mu yank acme/web#1.2.0 --undo")]
pub(crate) struct Arguments {
    /// The package and its version
    reference: String,
    /// Take it back
    #[arg(long, conflicts_with = "reason")]
    undo: bool,
    /// Why; shown to whoever is affected
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// The hub: a folder, s3://, gs:// or az://BUCKET/PREFIX, or a server's URL; left out, where the package's base leads
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let request = YankRequest {
        reference: arguments.reference.clone(),
        reason: arguments.reason.clone(),
        undo: arguments.undo,
        to: arguments.to.clone(),
    };
    let marked = yank(&session, &request)?;
    if context.shell.is_json() {
        context.json(&json!({
            "name": marked.name,
            "version": marked.version,
            "place": marked.place,
            "yanked": !arguments.undo,
            "changed": marked.changed,
        }))?;
        return Ok(0);
    }
    let what = match (arguments.undo, marked.changed) {
        (false, true) => "yanked",
        (true, true) => "no longer yanked:",
        (false, false) => "already yanked:",
        (true, false) => "not yanked, nothing to do:",
    };
    let place = printable(&marked.place);
    context.line(&format!("{what} {} {} in {place}", marked.name, marked.version))?;
    Ok(0)
}
