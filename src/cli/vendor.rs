//! `mu vendor`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::change;
use crate::cli::context::{Context, Ending};
use crate::ops::Scope;
use crate::ops::get::check_not_empty;
use crate::ops::vendor::{stop_vendoring, vendor};

#[derive(Debug, Args)]
#[command(after_help = "\
Turns packs into plain files in .mu/packs that are committed with the workspace: a checkout then needs neither network nor cache. Every later command that installs keeps them that way, and `mu verify` \
compares them with Mu.lock.

Examples:
  mu vendor
  git add .mu/packs Mu.lock
  mu vendor --undo                     stop committing packs")]
pub(crate) struct Arguments {
    /// Show what would be in use, and write nothing
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// Stop vendoring
    #[arg(long)]
    undo: bool,
}

/// What `mu vendor --undo` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Undone {
    /// Whether packs are vendored: `false`.
    vendored: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open_for(Scope::Workspace, arguments.dry_run)?;
    if arguments.undo {
        let was_vendored = session.packs().is_vendored();
        stop_vendoring(&session)?;
        return context.answer(&Undone { vendored: false }, |_| {
            if was_vendored {
                context.shell.status("packs are no longer vendored; Git ignores them from now on");
                context.shell.status("next: `git rm -r --cached .mu/packs`");
            } else {
                context.shell.status("packs are not vendored, nothing to do");
            }
            Ok(())
        });
    }
    check_not_empty(&session)?;
    let outcome = vendor(&session, arguments.dry_run)?;
    let ending = change::print(context, &outcome)?;
    if !arguments.dry_run {
        context.shell.status("vendored in .mu/packs; next: `git add .mu/packs Mu.lock`");
    }
    Ok(ending)
}
