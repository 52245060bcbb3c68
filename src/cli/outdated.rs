//! `mu outdated`.

use anstyle::Style;
use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::outdated::outdated;
use crate::report::{FAINT, GOOD, NOTICE, STRONG, Table};

/// Show which packages have newer versions
#[derive(Debug, Args)]
#[command(after_help = "\
`allowed` is the newest that fits what is asked for: `mu update` moves there. `newest` is the newest \
release there is.

Examples:
  mu outdated
  mu outdated --json")]
pub(crate) struct Arguments {
    /// Look at the global packs
    #[arg(short, long)]
    global: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let scope = if arguments.global { Scope::Global } else { Scope::Workspace };
    let session = context.open(scope)?;
    let found = outdated(&session)?;
    if context.shell.is_json() {
        let packages: Vec<_> = found
            .iter()
            .map(|package| {
                json!({
                    "id": package.id.to_string(),
                    "current": package.current,
                    "allowed": package.allowed,
                    "newest": package.newest,
                    "direct": package.direct,
                    "heldBackBy": package.held_back_by,
                    "movedTo": package.moved_to,
                })
            })
            .collect();
        context.json(&json!({ "packages": packages }))?;
        return Ok(0);
    }
    if found.is_empty() {
        context.shell.status("everything is at its newest version");
        return Ok(0);
    }
    let mut table = Table::new(&["package", "current", "allowed", "newest", "held back by"]);
    for package in &found {
        let moves = if package.allowed == package.current { Style::new() } else { GOOD };
        let beyond = if package.newest == package.allowed { Style::new() } else { NOTICE };
        let mut held = package.held_back_by.join(", ");
        if let Some(moved_to) = &package.moved_to {
            held = format!("moved to {moved_to}");
        }
        table.row([
            (STRONG, package.id.to_string()),
            (Style::new(), package.current.clone()),
            (moves, package.allowed.clone()),
            (beyond, package.newest.clone()),
            (FAINT, held),
        ]);
    }
    context.print(&table.render())?;
    Ok(0)
}
