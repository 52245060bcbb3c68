//! `mu update`.

use clap::Args;

use crate::cli::change::{self, Answer};
use crate::cli::context::{Context, Ending, Stop};
use crate::cli::diff;
use crate::cli::get::Narrowing;
use crate::ops::diff::{Difference, of_moves};
use crate::ops::get::check_not_empty;
use crate::ops::requirements::supposition::WhatIf;
use crate::ops::update::{UpdateRequest, update};
use crate::ops::what_if::what_if;
use crate::ops::{Code, CommandError, Scope, Session};

#[derive(Debug, Args)]
#[command(after_help = "\
Without PKG, everything moves to the newest versions that fit together. With PKG, that package moves, and others only as far as necessary. Mu.yaml does not change, only Mu.lock does. To move beyond what Mu.yaml allows, use `mu upgrade`.

With the minimal strategy, Mu.yaml says what is in use, so moves are written there: dependencies start at their \
new version, and packages that only others need are listed with `# indirect` where necessary. A move down lowers \
or drops whatever needs a newer version, and says why; it raises nothing.

Examples:
  mu update
  mu update aws/ec2
  mu update 'aws/ec2#1.1.0'            to this version, up or down
  mu update ops/kafka --app-version 2.3
  mu update --diff                     first show what changed in the packages
  mu update --installed 'ops/kafka#1.0.0' --dry-run")]
pub(crate) struct Arguments {
    /// The packages to move, and to which version
    #[arg(value_name = "PKG[#VERSION]")]
    packages: Vec<String>,
    /// Move the global packs
    #[arg(short, long)]
    global: bool,
    /// Assume that this version is installed, or what a file lists; step-by-step upgrades start there
    #[arg(long, value_name = "ID#V|FILE")]
    installed: Vec<String>,
    /// First show what changed in the content of everything that moves (see `mu diff`)
    #[arg(long)]
    diff: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    narrowing: Narrowing,
}

pub(crate) fn run(context: &Context, arguments: Arguments) -> Ending {
    let Arguments { packages, global, installed, diff, dry_run, narrowing } = arguments;
    let session = context.open_for(Scope::of(global), dry_run)?;
    let is_supposed = dry_run && !installed.is_empty();
    let has_any = if packages.is_empty() { check_not_empty(&session) } else { Ok(()) };
    let is_elsewhere = is_supposed && has_any.is_err();
    if !is_elsewhere {
        has_any?;
    }
    let narrowing = narrowing.into_operation();
    let request = UpdateRequest { packages, narrowing, installed };
    let diffs = if diff { show(context, &session, &request, dry_run)? } else { Vec::new() };
    // What is supposed to be installed need not be in use here.
    let updated = if is_elsewhere { None } else { Some(update(&session, &request, dry_run)) };
    let outcome = match updated {
        Some(Err(error)) if !is_supposed || error.code != Code::NotFound => {
            return Err(error.into());
        }
        Some(Ok(outcome)) => outcome,
        _ => what_if(&session, &elsewhere(request))?,
    };
    change::note_apps(context, &outcome);
    if context.shell.is_json() {
        let mut answer = Answer::new(&outcome);
        answer.diffs = &diffs;
        return context.json(&answer);
    }
    change::print(context, &outcome)
}

/// The question for packages that nothing here requires.
fn elsewhere(request: UpdateRequest) -> WhatIf {
    let UpdateRequest { packages, narrowing, installed } = request;
    let references = packages;
    WhatIf { references, narrowing, installed, takes_steps: true, ..WhatIf::default() }
}

/// Shows what the update would change in the content of packages, and on a terminal asks whether to do it.
fn show(
    context: &Context,
    session: &Session,
    request: &UpdateRequest,
    dry_run: bool,
) -> Result<Vec<Difference>, Stop> {
    let before = session.lockfile()?.unwrap_or_default();
    let outcome = update(session, request, true)?;
    let diffs = of_moves(session, &before, &outcome)?;
    if context.shell.is_json() {
        return Ok(diffs);
    }
    for (number, difference) in diffs.iter().enumerate() {
        if number > 0 {
            context.line("")?;
        }
        diff::print(context, difference, false)?;
    }
    let asks = !diffs.is_empty() && !dry_run && !session.options.yes;
    if asks && context.shell.can_ask() && !session.events.confirm("Update these packages?") {
        let message = "nothing was updated, as you answered";
        return Err(CommandError::new(Code::Conflict, message).into());
    }
    Ok(diffs)
}
