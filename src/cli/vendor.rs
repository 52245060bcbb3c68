//! `mu vendor`.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::change;
use crate::cli::context::{Context, Ending, Stop};
use crate::ops::get::check_not_empty;
use crate::ops::subscriptions::{FOLDER, subscribe};
use crate::ops::vendor::{Carried, VendoredChart, stop_vendoring, vendor, vendor_for_helm};
use crate::ops::{Scope, Session};
use crate::report::count;

#[derive(Debug, Args)]
#[command(after_help = "\
Turns packs into plain files in .mu/packs that are committed with the workspace: a checkout then needs neither network nor cache. Every later command that installs keeps them that way, and `mu verify` \
compares them with Mu.lock.

With --for helm, the dependencies of the workspace's charts go to where Helm looks for them: into `charts/`, as published archives, with a `Chart.lock` that `helm dependency build` accepts. The versions are those in Mu.lock.

With --for olm, each operator gets a subscription in `olm/`, at exactly the version in Mu.lock.

Examples:
  mu vendor
  mu vendor --for helm                 charts/*.tgz and Chart.lock, beside Chart.yaml
  mu vendor --for olm                  olm/NAME.yaml for each operator
  git add .mu/packs Mu.lock
  mu vendor --undo                     stop committing packs")]
pub(crate) struct Arguments {
    /// Show what would be in use, and write nothing
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// Write files for this tool, instead of packs
    #[arg(long = "for", value_enum, value_name = "TOOL", conflicts_with = "undo")]
    tool: Option<Tool>,
    /// Stop vendoring
    #[arg(long)]
    undo: bool,
}

/// A tool of another ecosystem, whose files can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    Helm,
    Olm,
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
    if arguments.tool == Some(Tool::Helm) {
        let (outcome, vendored) = vendor_for_helm(&session, arguments.dry_run)?;
        if !context.shell.is_json() {
            change::print(context, &outcome)?;
        }
        let dry_run = arguments.dry_run;
        return context.answer(&vendored, |vendored| {
            vendored.charts.iter().try_for_each(|chart| print_chart(context, chart, dry_run))
        });
    }
    if arguments.tool == Some(Tool::Olm) {
        return vendor_for_olm(context, &session, arguments.dry_run);
    }
    let outcome = vendor(&session, arguments.dry_run)?;
    let ending = change::print(context, &outcome)?;
    if !arguments.dry_run {
        context.shell.status("vendored in .mu/packs; next: `git add .mu/packs Mu.lock`");
    }
    Ok(ending)
}

/// Prints how one chart's `charts/` and `Chart.lock` changed.
fn print_chart(context: &Context, chart: &VendoredChart, dry_run: bool) -> Result<(), Stop> {
    let VendoredChart { name, folder, lock_changed, archives, removed, carried } = chart;
    let prefix = if folder == "." { "charts".to_owned() } else { format!("{folder}/charts") };
    let mut lines = String::new();
    for archive in archives.iter().filter(|archive| archive.changed) {
        lines.push_str(&format!("+ {prefix}/{}\n", archive.file));
    }
    for file in removed {
        lines.push_str(&format!("- {prefix}/{file}\n"));
    }
    context.print(&lines)?;
    for Carried { inside, name, version, locked } in carried {
        context.shell.status(&format!(
            "note: Helm uses {name} {version} from inside {inside}; Mu.lock has {locked}"
        ));
    }
    let what = format!("{} in {prefix}", count(archives.len(), "chart"));
    let lock = format!("the lock of {name}");
    context.shell.status(&match (lines.is_empty() && !lock_changed, dry_run) {
        (true, _) => format!("{what} and {lock} are up to date"),
        (false, true) => format!("{what} and {lock} would fit Mu.lock; nothing was written"),
        (false, false) => {
            format!("{what} and {lock} fit Mu.lock; commit them, or run `helm package`")
        }
    });
    Ok(())
}

/// Writes subscriptions, and says which have changed.
fn vendor_for_olm(context: &Context, session: &Session, dry_run: bool) -> Ending {
    let (outcome, subscribed) = subscribe(session, dry_run)?;
    if !context.shell.is_json() {
        change::print(context, &outcome)?;
    }
    context.answer(&subscribed, |subscribed| {
        let mut lines = String::new();
        for one in subscribed.subscriptions.iter().filter(|one| one.changed) {
            lines.push_str(&format!("+ {} ({} in {})\n", one.file, one.bundle, one.channel));
        }
        for file in &subscribed.removed {
            lines.push_str(&format!("- {file}\n"));
        }
        context.print(&lines)?;
        let what = count(subscribed.subscriptions.len(), "subscription");
        context.shell.status(&match (lines.is_empty(), dry_run) {
            (true, _) => format!("{what} in {FOLDER}: up to date"),
            (false, true) => format!("{what} in {FOLDER}: nothing was written"),
            (false, false) => {
                format!("{what} in {FOLDER}; next: `kubectl apply -f {FOLDER}/`")
            }
        });
        Ok(())
    })
}
