//! `mu outdated`.

use anstyle::Style;
use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::Scope;
use crate::ops::outdated::{Outdated, outdated};
use crate::report::{FAINT, GOOD, NOTICE, STRONG, Table};
use crate::workspace::Resolution;

#[derive(Debug, Args)]
#[command(after_help = "\
`allowed` is the newest that fits what is asked for: `mu update` moves there. `newest` is the newest \
release there is. A package that is held back by Mu.lock alone only waits for `mu update`. A version that was \
yanked since it was locked is told here; `mu get` asks no registry about what is locked.

Examples:
  mu outdated
  mu outdated --json")]
pub(crate) struct Arguments {
    /// Look at the global packs
    #[arg(short, long)]
    global: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let scope = Scope::of(arguments.global);
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
                    "yanked": package.yanked,
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
    let is_minimal = session.resolution() == Resolution::Minimal;
    let mut table = Table::new(&["package", "current", "allowed", "newest", "held back by"]);
    for package in &found {
        let moves = if package.allowed == package.current { Style::new() } else { GOOD };
        let beyond = if package.newest == package.allowed { Style::new() } else { NOTICE };
        let held = held_back_by(package, is_minimal);
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

/// What keeps a package from being newer, and where it has moved.
fn held_back_by(package: &Outdated, is_minimal: bool) -> String {
    let mut reasons = package.held_back_by.clone();
    if reasons.is_empty() && package.allowed != package.current {
        let reason = if is_minimal { "nothing asks for more" } else { "only Mu.lock" };
        reasons.push(reason.to_owned());
    }
    let yanked = package.yanked.as_ref().map(|reason| match reason.as_str() {
        "" => format!("{} is yanked", package.current),
        reason => format!("{} is yanked: {reason}", package.current),
    });
    reasons.extend(yanked);
    reasons.extend(package.moved_to.iter().map(|to| format!("moved to {to}")));
    if reasons.is_empty() {
        return "could not be found out".to_owned();
    }
    reasons.join(", ")
}
