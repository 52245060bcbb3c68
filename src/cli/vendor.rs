//! `mu vendor`.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::change;
use crate::cli::context::{CommandExit, Context, Stop};
use crate::ops::get::check_not_empty;
use crate::ops::vendor::cluster::{subscribe, vendor_for_crossplane};
use crate::ops::vendor::kcl::{self, Differing, VendoredModule, vendor_for_kcl};
use crate::ops::vendor::{
    CHARTS_FOLDER, Carried, VendorMode, VendoredChart, WrittenFiles, cluster, stop_vendoring,
    vendor, vendor_for_helm,
};
use crate::ops::{Code, CommandError, OperationScope, Outcome, Session};
use crate::report::count;

#[derive(Debug, Args)]
#[command(after_help = "\
Turns packs into plain files in .mu/packs that are committed with the workspace: a checkout then needs neither network nor cache. Every later command that installs keeps them that way, and `mu verify` \
compares them with Mu.lock.

With --for helm, the dependencies of the workspace's charts go to where Helm looks for them: into `charts/`, as published archives, with a `Chart.lock` that `helm dependency build` accepts. The versions are those in Mu.lock.

With --for kcl, the modules that the workspace's KCL modules need go into `vendor/`, with a `kcl.mod.lock`.

With --for crossplane, each package of Crossplane gets a resource in `crossplane/`, at exactly the version in Mu.lock.

With --for olm, each operator gets a subscription in `olm/`, at exactly the version in Mu.lock.

Examples:
  mu vendor
  mu vendor --for helm                 charts/*.tgz and Chart.lock, beside Chart.yaml
  mu vendor --for kcl                  vendor/ and kcl.mod.lock, beside kcl.mod
  mu vendor --for crossplane           crossplane/NAME.yaml for each package
  mu vendor --for olm                  olm/NAME.yaml for each operator
  git add .mu/packs Mu.lock
  mu vendor --for helm -p shop         only those of the chart `shop`
  mu vendor --for helm --unify         also of charts inside of charts, only the versions in Mu.lock
  mu vendor --for helm --check         in CI: do charts/ and Chart.lock follow from Mu.lock?
  mu vendor --archives                 keep signed archives, too, for machines without a network
  mu vendor --undo                     stop committing packs")]
pub(crate) struct VendorArguments {
    /// Show what would be in use, and write nothing
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// Write nothing; if what is there for the tool would change, list it and exit with 1
    #[arg(long)]
    check: bool,
    /// Write files for this tool, instead of packs
    #[arg(long = "for", value_enum, value_name = "TOOL", conflicts_with = "undo")]
    tool: Option<Tool>,
    /// Have the charts inside of archives follow from Mu.lock, too: archives with others are made again
    #[arg(long, requires = "tool")]
    unify: bool,
    /// Write only the files of this chart or KCL module of the workspace
    #[arg(short, long = "package", value_name = "PACKAGE", requires = "tool")]
    packages: Vec<String>,
    /// Keep the archives of packages under rules, too, so that a checkout can verify them without a network
    #[arg(long, conflicts_with_all = ["tool", "undo", "dry_run"])]
    archives: bool,
    /// Stop vendoring
    #[arg(long)]
    undo: bool,
}

/// A tool of another ecosystem, whose files can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tool {
    Helm,
    Kcl,
    Crossplane,
    Olm,
    /// KUDO, for which there is nothing to write.
    #[value(hide = true)]
    Kudo,
}

/// What `mu vendor --undo` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Undone {
    /// Whether packs are vendored: `false`.
    vendored: bool,
}

pub(crate) fn run(context: &Context, arguments: &VendorArguments) -> CommandExit {
    if arguments.check && arguments.tool.is_none() {
        let message = "`--check` is for the files that `--for` writes";
        return Err(CommandError::new(Code::Usage, message)
            .hint("`mu verify` compares the packs in .mu/packs with Mu.lock")
            .into());
    }
    let dry_run = arguments.dry_run || arguments.check;
    let session = context.open_for(OperationScope::Workspace, dry_run)?;
    session.refuse_edits("mu does not write files to commit")?;
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
    let packages = &arguments.packages;
    if !packages.is_empty() && !matches!(arguments.tool, Some(Tool::Helm | Tool::Kcl)) {
        let message = "`--package` is for the files of one chart or KCL module";
        return Err(CommandError::new(Code::Usage, message)
            .hint("the resources for a cluster are those of the whole workspace")
            .into());
    }
    if arguments.unify && !matches!(arguments.tool, Some(Tool::Helm)) {
        let message = "`--unify` is for the archives of charts";
        return Err(CommandError::new(Code::Usage, message)
            .hint("`mu vendor --for helm --unify` makes them")
            .into());
    }
    let mode = match arguments {
        VendorArguments { check: true, .. } => VendorMode::Check,
        VendorArguments { dry_run: true, .. } => VendorMode::Plan,
        _ => VendorMode::Write,
    };
    match arguments.tool {
        Some(Tool::Helm) => answer(
            context,
            mode,
            &vendor_for_helm(&session, packages, mode, arguments.unify)?,
            |vendored| {
                vendored.charts.iter().try_for_each(|chart| print_chart(context, chart, dry_run))
            },
        ),
        Some(Tool::Kcl) => {
            answer(context, mode, &vendor_for_kcl(&session, packages, mode)?, |vendored| {
                vendored
                    .modules
                    .iter()
                    .try_for_each(|module| print_module(context, module, dry_run))
            })
        }
        Some(Tool::Crossplane) => {
            answer(context, mode, &vendor_for_crossplane(&session, mode)?, |written| {
                let changed = written.resources.iter().filter(|one| one.changed);
                let changed = changed.map(|one| format!("{} ({})", one.file, one.package));
                let is_same = !print_changes(context, changed, written.removed.iter().cloned())?;
                let what = count(written.resources.len(), "package");
                say_what_next(context, &what, cluster::FOLDER, is_same, dry_run);
                Ok(())
            })
        }
        Some(Tool::Olm) => answer(context, mode, &subscribe(&session, mode)?, |subscribed| {
            let changed = subscribed.subscriptions.iter().filter(|one| one.changed);
            let changed =
                changed.map(|one| format!("{} ({} in {})", one.file, one.bundle, one.channel));
            let is_same = !print_changes(context, changed, subscribed.removed.iter().cloned())?;
            let what = count(subscribed.subscriptions.len(), "subscription");
            say_what_next(context, &what, cluster::OLM_FOLDER, is_same, dry_run);
            Ok(())
        }),
        Some(Tool::Kudo) => Err(nothing_for_kudo().into()),
        None => vendor_packs(context, &session, dry_run, arguments.archives),
    }
}

fn nothing_for_kudo() -> CommandError {
    let text = "KUDO has no files that pin operators, so there is nothing to write for it";
    CommandError::new(Code::NotFound, text).hint(
        "`mu vendor` makes the packs files to commit; `kubectl kudo install` takes the folder of one",
    )
}

fn vendor_packs(
    context: &Context,
    session: &Session,
    dry_run: bool,
    archives: bool,
) -> CommandExit {
    let outcome = vendor(session, dry_run, archives)?;
    let ending = change::print_outcome(context, &outcome)?;
    if !dry_run {
        context.shell.status("vendored in .mu/packs; next: `git add .mu/packs Mu.lock`");
    }
    Ok(ending)
}

/// Prints what is in use, and the files of another tool.
fn answer<A: WrittenFiles + Serialize + JsonSchema>(
    context: &Context,
    mode: VendorMode,
    (outcome, written): &(Outcome, A),
    print: impl FnOnce(&A) -> Result<(), Stop>,
) -> CommandExit {
    if !context.shell.is_json() {
        change::print_outcome(context, outcome)?;
    }
    let ending = context.answer(written, print)?;
    let is_same = outcome.changes.is_empty() && written.is_unchanged();
    if mode != VendorMode::Check || is_same {
        return Ok(ending);
    }
    context.shell.status(
        "these files do not follow from Mu.lock; run the command without --check, and commit them",
    );
    Ok(1)
}

/// Prints how one chart's `charts/` and `Chart.lock` changed.
fn print_chart(context: &Context, chart: &VendoredChart, dry_run: bool) -> Result<(), Stop> {
    let VendoredChart { name, folder, lock, lock_changed, archives, removed, carried } = chart;
    let prefix =
        if folder == "." { CHARTS_FOLDER.to_owned() } else { format!("{folder}/{CHARTS_FOLDER}") };
    let changed = archives.iter().filter(|archive| archive.changed);
    let changed = changed.map(|archive| format!("{prefix}/{}", archive.file));
    let removed = removed.iter().map(|file| format!("{prefix}/{file}"));
    let is_same = !print_changes(context, changed, removed)? && !lock_changed;
    print_lock(context, folder, lock, *lock_changed && dry_run)?;
    for Carried { inside, name, version, locked } in carried {
        context.shell.status(&format!(
            "note: Helm uses {name} {version} from inside {inside}; Mu.lock has {locked}"
        ));
    }
    let archives = count(archives.len(), "archive");
    let what = format!("{prefix}/ ({archives}) and {lock} of {name}");
    say_fit(context, &what, is_same, dry_run, "run `helm package`");
    Ok(())
}

/// Prints how one module's `vendor` and `kcl.mod.lock` changed.
fn print_module(context: &Context, module: &VendoredModule, dry_run: bool) -> Result<(), Stop> {
    let VendoredModule { name, folder, lock_changed, folders, removed, differing } = module;
    let prefix = if folder == "." { "vendor".to_owned() } else { format!("{folder}/vendor") };
    let changed = folders.iter().filter(|one| one.changed);
    let changed = changed.map(|one| format!("{prefix}/{}", one.folder));
    let removed = removed.iter().map(|one| format!("{prefix}/{one}"));
    let is_same = !print_changes(context, changed, removed)? && !lock_changed;
    print_lock(context, folder, kcl::LOCK_NAME, *lock_changed && dry_run)?;
    for Differing { by, own, name, named, locked } in differing {
        let next = if *own { "; `mu pin` writes that into kcl.mod, which KCL goes by" } else { "" };
        context.shell.status(&format!(
            "note: the kcl.mod of {by} names {name} {named}; Mu.lock has {locked}{next}"
        ));
    }
    let folders = count(folders.len(), "module");
    let what = format!("{prefix}/ ({folders}) and {} of {name}", kcl::LOCK_NAME);
    say_fit(context, &what, is_same, dry_run, "use `kcl run --vendor`");
    Ok(())
}

/// Prints which files have changed, and which were removed; returns whether there are any.
fn print_changes(
    context: &Context,
    changed: impl Iterator<Item = String>,
    removed: impl Iterator<Item = String>,
) -> Result<bool, Stop> {
    let mut lines: String = changed.map(|file| format!("+ {file}\n")).collect();
    lines.extend(removed.map(|file| format!("- {file}\n")));
    context.print(&lines)?;
    Ok(!lines.is_empty())
}

/// Prints that the lock of a tool would change.
fn print_lock(context: &Context, folder: &str, name: &str, changes: bool) -> Result<(), Stop> {
    match (changes, folder) {
        (false, _) => Ok(()),
        (true, ".") => context.line(&format!("~ {name}")),
        (true, folder) => context.line(&format!("~ {folder}/{name}")),
    }
}

/// Says whether files fit Mu.lock, and what to do with them.
fn say_fit(context: &Context, what: &str, is_same: bool, dry_run: bool, next: &str) {
    context.shell.status(&match (is_same, dry_run) {
        (true, _) => format!("{what} are up to date"),
        (false, true) => format!("{what} would fit Mu.lock; nothing was written"),
        (false, false) => format!("{what} fit Mu.lock; commit them, or {next}"),
    });
}

/// Says what to do with resources for a cluster.
fn say_what_next(context: &Context, what: &str, folder: &str, is_same: bool, dry_run: bool) {
    context.shell.status(&match (is_same, dry_run) {
        (true, _) => format!("{what} in {folder}: up to date"),
        (false, true) => format!("{what} in {folder}: nothing was written"),
        (false, false) => format!("{what} in {folder}; next: `kubectl apply -f {folder}/`"),
    });
}
