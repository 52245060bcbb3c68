//! `mu affected`: the packages of the workspace that a branch affects, for people and for the matrix of a CI.

use clap::Args;

use crate::cli::context::{CommandExit, Context};
use crate::ops::affected::{Affected, AffectedMember, affected};
use crate::ops::{Change, OperationScope, View};
use crate::report::{FAINT, NOTICE, STRONG, Table, count};

#[derive(Debug, Args)]
#[command(after_help = "\
A package is affected if a file of its own has changed, an entry of Mu.lock that it needs, or a package of the workspace that it needs; both also through other packages. A change of `.mu/workspace.yaml` affects all.

The checkout, with what is not committed yet, is compared with the last commit that it has in common with REF, so what others did on that branch meanwhile does not count. Files that Git ignores do not count either.

Examples:
  mu affected --since origin/main
  mu affected --since v1.2.0
  mu affected --since origin/main --json | jq -c '[.packages[].path]'      the matrix of a CI")]
pub(crate) struct AffectedArguments {
    /// A branch, tag or commit
    #[arg(long, value_name = "REF")]
    since: String,
}

pub(crate) fn run(context: &Context, arguments: &AffectedArguments) -> CommandExit {
    let session = context.open_in(OperationScope::Workspace, View::Team)?;
    context.answer(&affected(&session, &arguments.since)?, |answer| {
        let empty = format!("no package is affected since {}", answer.since);
        if answer.settings {
            context
                .shell
                .status("the settings of the workspace have changed: all packages are affected");
        }
        context.table(&table(context, answer), &empty)
    })
}

fn table(context: &Context, answer: &Affected) -> Table {
    let mut table = Table::new(&["package", "folder", "because of"]);
    for member in &answer.packages {
        table.row([
            (STRONG, context.short(&member.name).into_owned()),
            (FAINT, member.path.clone()),
            (NOTICE, reasons(context, member).join(", ")),
        ]);
    }
    table
}

/// How many of each kind are named.
const MOST_NAMED: usize = 3;

/// What affects a package, in words.
fn reasons(context: &Context, member: &AffectedMember) -> Vec<String> {
    let mut reasons = Vec::new();
    match &member.files[..] {
        [] => {}
        [one] if one == "." => reasons.push("its submodule".to_owned()),
        [one] => reasons.push(one.clone()),
        several => reasons.push(count(several.len(), "file")),
    }
    let changes: Vec<String> = member.changes.iter().map(|one| in_words(context, one)).collect();
    let members = member.members.iter().map(|name| context.short(name).into_owned());
    for all in [members.collect::<Vec<_>>(), changes] {
        reasons.extend(all.iter().take(MOST_NAMED).cloned());
        if let Some(more) = all.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            reasons.push(format!("and {more} more"));
        }
    }
    reasons
}

fn in_words(context: &Context, change: &Change) -> String {
    let name = context.name(&change.id);
    match change.before_and_after() {
        (Some(from), Some(to)) if from != to => format!("{name} {from} → {to}"),
        (None, Some(to)) => format!("{name} {to}"),
        _ => name.into_owned(),
    }
}
