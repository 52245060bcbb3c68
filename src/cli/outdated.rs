//! `mu outdated`.

use anstyle::Style;
use clap::Args;

use crate::cli::context::{Context, Ending, Packages};
use crate::cli::info::with_reason;
use crate::ops::Scope;
use crate::ops::get::check_not_empty;
use crate::ops::outdated::{Outdated, outdated};
use crate::report::{FAINT, GOOD, NOTICE, STRONG, Table};

#[derive(Debug, Args)]
#[command(after_help = "\
`allowed` is the newest version that the requirements allow: `mu update` moves there. `newest` is the newest \
release. A package that only Mu.lock holds back just needs `mu update`. Versions that were yanked after they \
were locked are shown here; `mu get` does not ask registries about locked packages. Sorted by id, the base first.

Examples:
  mu outdated
  mu outdated --json
  mu outdated --installed 'ops/kafka#1.0.0@stable'")]
pub(crate) struct Arguments {
    /// Look at the global packs
    #[arg(short, long)]
    global: bool,
    /// Look at this version instead of what is locked: ID#VERSION, or ID#VERSION@CHANNEL, or a file with a list of them
    #[arg(long, value_name = "ID#V|FILE")]
    installed: Vec<String>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let scope = Scope::of(arguments.global);
    let session = context.open(scope)?;
    if arguments.installed.is_empty() {
        check_not_empty(&session)?;
    }
    let found = Packages { packages: outdated(&session, &arguments.installed)? };
    context.answer(&found, |found| {
        let mut table = Table::new(&["package", "current", "allowed", "newest", "note"]);
        for package in &found.packages {
            let moves = if package.allowed == package.current { Style::new() } else { GOOD };
            let beyond = if package.newest == package.allowed { Style::new() } else { NOTICE };
            table.row([
                (STRONG, context.name(&package.id).into_owned()),
                (Style::new(), package.current.clone()),
                (moves, package.allowed.clone()),
                (beyond, package.newest.clone()),
                (FAINT, context.short(&note(package)).into_owned()),
            ]);
        }
        context.table(&table, "everything is at its newest version")
    })
}

/// What prevents newer versions of a package, and where it has moved.
fn note(package: &Outdated) -> String {
    let mut reasons = package.held_back_by.clone();
    if reasons.is_empty() && package.allowed != package.current {
        let reason = if package.only_locked { "only Mu.lock" } else { "nothing requires more" };
        reasons.push(reason.to_owned());
    }
    for (what, reason) in [("yanked", &package.yanked), ("deprecated", &package.deprecated)] {
        let marks = reason.as_ref().map(|reason| with_reason(what, reason));
        reasons.extend(marks.map(|mark| format!("{} is {mark}", package.current)));
    }
    reasons.extend(package.unusable.iter().map(|reason| format!("{} {reason}", package.current)));
    reasons.extend(package.moved_to.iter().map(|to| format!("moved to {to}")));
    if reasons.is_empty() {
        return "not known".to_owned();
    }
    reasons.join(", ")
}
