//! How a change of versions is printed: one line a package, and a summary.

use crate::cli::{Context, Ending};
use crate::ops::{Change, Outcome};
use crate::report::{BAD, FAINT, GOOD, NOTICE, count};

/// Prints the answer of a command that chooses versions.
pub(crate) fn print(context: &Context, outcome: &Outcome) -> Ending {
    if context.shell.is_json() {
        context.json(&outcome.to_json())?;
        return Ok(0);
    }
    for change in &outcome.changes {
        let is_here = outcome.lock.find(&change.id).any(|package| package.source.is_workspace());
        let mark = if is_here { " (workspace)" } else { "" };
        context.line(&format!("{}{FAINT}{mark}{FAINT:#}", line(change)))?;
    }
    for path in &outcome.edited {
        let shown = path.strip_prefix(&context.environment.current).unwrap_or(path);
        context.shell.status(&format!("wrote {}", shown.display()));
    }
    context.shell.status(&summary(outcome));
    Ok(0)
}

/// `+ id 1.0.0`, `- id 1.0.0`, `~ id 1.0.0 → 1.1.0`.
fn line(change: &Change) -> String {
    let id = &change.id;
    match (&change.from, &change.to) {
        (None, Some(to)) => format!("{GOOD}+{GOOD:#} {id} {to}"),
        (Some(from), None) => format!("{BAD}-{BAD:#} {id} {FAINT}{from}{FAINT:#}"),
        (Some(from), Some(to)) => {
            format!("{NOTICE}~{NOTICE:#} {id} {FAINT}{from} →{FAINT:#} {to}")
        }
        (None, None) => format!("  {id}"),
    }
}

fn summary(outcome: &Outcome) -> String {
    let packages = outcome.lock.packages.iter().filter(|package| !package.source.is_workspace());
    let total = packages.count();
    if outcome.dry_run {
        return format!("{} would be in use; nothing was written", count(total, "package"));
    }
    if outcome.changes.is_empty() && outcome.installed == 0 {
        let rest = if outcome.edited.is_empty() { ", nothing to do" } else { "" };
        return format!("{} in use{rest}", count(total, "package"));
    }
    let counts = outcome.counts;
    format!(
        "{} in use ({} fetched, {} already on this machine)",
        count(total, "package"),
        counts.fetched,
        counts.reused
    )
}
