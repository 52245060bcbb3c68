//! `mu update`, `mu upgrade`, `mu downgrade` and `mu outdated`: other versions than those of the lock; and `mu resolve`, which only says which
//! ones would be chosen.

use std::fmt::Write as _;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::change::{self, Answer};
use crate::cli::context::{CommandExit, Context, Stop};
use crate::cli::diff;
use crate::cli::get::NarrowingArguments;
use crate::cli::search::with_reason;
use crate::lock::Requested;
use crate::ops::diff::{Changelog, CommitTitle, Difference, changelog, of_moves, up_to};
use crate::ops::get::check_not_empty;
use crate::ops::outdated::{Comparison, Outdated, Row, Stays, compare, outdated, what_if};
use crate::ops::requirements::supposition::WhatIf;
use crate::ops::session::locked::{PackageName, version_of};
use crate::ops::update::{UpdateRequest, update, upgrade};
use crate::ops::{Code, CommandError, OperationScope, Outcome, Session, update};
use crate::report::{FAINT, Failure, GOOD, NOTICE, PLAIN, STRONG, Table, count, printable};

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
  mu update --changelog --dry-run      what their authors say has changed
  mu update --installed 'ops/kafka#1.0.0' --dry-run")]
pub(crate) struct UpdateArguments {
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
    /// Also show what the changelogs of the packages have more than before, or the commits in between
    #[arg(long)]
    changelog: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    narrowing: NarrowingArguments,
}

pub(crate) fn run(context: &Context, arguments: UpdateArguments) -> CommandExit {
    let UpdateArguments { packages, global, installed, diff, changelog: tells, dry_run, narrowing } =
        arguments;
    let session = context.open_for(OperationScope::from_global_flag(global), dry_run)?;
    let is_supposed = dry_run && !installed.is_empty();
    let has_any = if packages.is_empty() { check_not_empty(&session) } else { Ok(()) };
    let is_elsewhere = is_supposed && has_any.is_err();
    if !is_elsewhere {
        has_any?;
    }
    let narrowing = narrowing.into_operation();
    let request = UpdateRequest { packages, narrowing, installed };
    let before = session.lockfile()?.unwrap_or_default();
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
    let moves = if tells { of_moves(&session, &before, &outcome)? } else { Vec::new() };
    let changelogs = moves.iter().filter_map(|one| changelog(&session, one));
    let changelogs: Vec<Changelog> = changelogs.collect();
    change::note_apps(context, &outcome);
    if context.shell.is_json() {
        let mut answer = Answer::new(&outcome);
        (answer.diffs, answer.changelogs) = (&diffs, &changelogs);
        return context.json(&answer);
    }
    for one in &changelogs {
        print_changelog(context, one)?;
        context.line("")?;
    }
    change::print_outcome(context, &outcome)
}

/// The most commits that are printed of a package.
const MOST_PRINTED: usize = 20;

/// Prints what the authors of a package say has changed.
fn print_changelog(context: &Context, changelog: &Changelog) -> Result<(), Stop> {
    let Changelog { id, from, to, file, text, commits } = changelog;
    let strong = context.shell.style(STRONG);
    let name = context.name(id);
    let title = printable(&format!("{name} {from} → {to}")).into_owned();
    let place = match (file, commits.len()) {
        (Some(file), _) => format!(": {}", printable(file)),
        (None, 0) => ": its authors say nothing that mu can read".to_owned(),
        (None, number) => {
            let more = if changelog.is_cut() { " or more" } else { "" };
            format!(": {}{more} in its repository", count(number, "commit"))
        }
    };
    context.line(&format!("{strong}{title}{strong:#}{place}"))?;
    for line in text.lines() {
        context.line(format!("  {}", printable(line)).trim_end())?;
    }
    for CommitTitle { commit, title } in commits.iter().take(MOST_PRINTED) {
        let short = commit.get(..7).unwrap_or(commit);
        context.line(&format!("  {FAINT}{short}{FAINT:#} {}", printable(title)))?;
    }
    match commits.len().checked_sub(MOST_PRINTED) {
        Some(more) if more > 0 => context.line(&format!("  and {more} more")),
        _ => Ok(()),
    }
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
        diff::print_difference(context, difference, false)?;
    }
    let asks = !diffs.is_empty() && !dry_run && !context.options()?.yes;
    if asks && context.shell.can_ask() && !session.events.confirm("Update these packages?") {
        let message = "nothing was updated, as you answered";
        return Err(CommandError::new(Code::Conflict, message).into());
    }
    Ok(diffs)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Ranges in Mu.yaml are raised to the versions that were chosen, and keep their form: ~1.5 becomes ~2.1. \
Pins move only if they are named; tags, branches and commits stay. To stay within what Mu.yaml allows, use `mu update`. With the minimal strategy, whole versions are written: ~1.5 becomes ~2.1.3.

Examples:
  mu upgrade
  mu upgrade aws/ec2
  mu upgrade 'aws/ec2#2.1.0'           to this version, not to the newest
  mu upgrade ops/kafka --app-version 3
  mu upgrade --dry-run")]
pub(crate) struct UpgradeArguments {
    /// The packages to upgrade, and to which version [default: every range, to the newest]
    #[arg(value_name = "PKG[#VERSION]")]
    packages: Vec<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    narrowing: NarrowingArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The same as `mu update PKG#VERSION`, for older versions only; a range in Mu.yaml that forbids the version is lowered: \
~2.0.0 becomes ~1.0.6. With the minimal strategy, a package that needs \
more than that version goes to its next lower version that does not, or is dropped; each is listed with its \
reason.

Examples:
  mu downgrade 'aws/ec2#1.0.6'")]
pub(crate) struct DowngradeArguments {
    /// The packages to move, and to which version
    #[arg(value_name = "PKG#VERSION", required = true)]
    packages: Vec<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run_upgrade(context: &Context, arguments: UpgradeArguments) -> CommandExit {
    let UpgradeArguments { packages, dry_run, narrowing } = arguments;
    let session = context.open_for(OperationScope::Workspace, dry_run)?;
    if packages.is_empty() {
        check_not_empty(&session)?;
    }
    let narrowing = narrowing.into_operation();
    let names = packages.iter().map(|text| PackageName::with_version(text));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let names_versions = names.iter().any(|(_, version)| version.is_some());
    let outcome = if narrowing.is_empty() && !names_versions {
        let names: Vec<PackageName> = names.into_iter().map(|(name, _)| name).collect();
        upgrade(&session, &names, dry_run)?
    } else {
        let request = UpdateRequest { packages, narrowing, ..UpdateRequest::default() };
        update::upgrade_within(&session, &request, dry_run)?
    };
    change::note_apps(context, &outcome);
    change::print_outcome(context, &outcome)
}

pub(crate) fn run_downgrade(context: &Context, arguments: &DowngradeArguments) -> CommandExit {
    for package in &arguments.packages {
        if !package.contains('#') {
            let message =
                format!("`mu downgrade` needs the version to move to: `{package}#VERSION`");
            let hint = format!("`mu versions {package}` lists the versions that there are");
            return Err(CommandError::new(Code::Usage, message).hint(hint).into());
        }
    }
    let session = context.open_for(OperationScope::Workspace, arguments.dry_run)?;
    change::print_outcome(
        context,
        &update::downgrade(&session, &arguments.packages, arguments.dry_run)?,
    )
}

#[derive(Debug, Args)]
#[command(after_help = "\
`allowed` is the newest version that the requirements allow: `mu update` moves there. `newest` is the newest \
release. A package that only Mu.lock holds back just needs `mu update`. Versions that were yanked after they \
were locked are shown here; `mu get` does not ask registries about locked packages. Sorted by id, the base first.

Examples:
  mu outdated
  mu outdated --json
  mu outdated --changelog              what the authors of each say has changed
  mu outdated --installed 'ops/kafka#1.0.0@stable'")]
pub(crate) struct OutdatedArguments {
    /// Look at the global packs
    #[arg(short, long)]
    global: bool,
    /// Look at this version instead of what is locked: ID#VERSION, or ID#VERSION@CHANNEL, or a file with a list of them
    #[arg(long, value_name = "ID#V|FILE")]
    installed: Vec<String>,
    /// Also show what the changelog of each package has more in its newest version, or the commits in between
    #[arg(long, conflicts_with = "installed")]
    changelog: bool,
}

/// What `mu outdated` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct OutdatedPackages {
    /// The packages.
    packages: Vec<Outdated>,
    /// With `--changelog`, what the authors of the packages say has changed up to the newest version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changelogs: Vec<Changelog>,
}

pub(crate) fn run_outdated(context: &Context, arguments: &OutdatedArguments) -> CommandExit {
    let scope = OperationScope::from_global_flag(arguments.global);
    let session = context.open(scope)?;
    if arguments.installed.is_empty() {
        check_not_empty(&session)?;
    }
    let packages = outdated(&session, &arguments.installed)?;
    let moving = packages.iter().filter(|one| arguments.changelog && one.current != one.newest);
    let changelogs = moving.map(|one| up_to(&session, &one.id, &one.newest));
    let changelogs = changelogs.collect::<Result<Vec<_>, _>>()?;
    let changelogs = changelogs.into_iter().flatten().collect();
    let found = OutdatedPackages { packages, changelogs };
    context.answer(&found, |found| {
        let rows = found.packages.iter().map(|package| {
            let moves = if package.allowed == package.current { PLAIN } else { GOOD };
            let beyond = if package.newest == package.allowed { PLAIN } else { NOTICE };
            [
                (STRONG, context.name(&package.id).into_owned()),
                (PLAIN, package.current.clone()),
                (moves, package.allowed.clone()),
                (beyond, package.newest.clone()),
                (FAINT, context.short(&note(package)).into_owned()),
            ]
        });
        let heading = ["package", "current", "allowed", "newest", "note"];
        context.table(&Table::with_rows(heading, rows), "everything is at its newest version")?;
        for changelog in &found.changelogs {
            context.line("")?;
            print_changelog(context, changelog)?;
        }
        Ok(())
    })
}

/// What prevents newer versions of a package, and where it has moved.
fn note(package: &Outdated) -> String {
    let mut reasons = package.held_back_by.clone();
    if reasons.is_empty() && package.allowed != package.current {
        let reason = match package.stays {
            Stays::Locked => "only Mu.lock",
            Stays::Installed => "only what is installed",
            Stays::Unasked => "nothing requires more",
        };
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

#[derive(Debug, Args)]
#[command(after_help = "\
REFs replace the workspace's requirements; --with and --without add to them and remove from them. \
--compare shows what each strategy would choose. With --installed, the answer is the best version that upgrades \
from there lead to; of a package named without a version, the best that is one upgrade away.

Examples:
  mu resolve
  mu resolve 'aws/ec2#^1' aws/vpc
  mu resolve --with 'aws/ec2#^2' --explain
  mu resolve --compare
  mu what-if --without hub.mu.com/aws/vpc")]
pub(crate) struct ResolveArguments {
    /// What to require, instead of the workspace's requirements
    #[arg(value_name = "REF")]
    references: Vec<String>,
    /// Require this too
    #[arg(long, value_name = "REF")]
    with: Vec<String>,
    /// Do not require this
    #[arg(long, value_name = "ID")]
    without: Vec<String>,
    /// Assume that this version is installed: ID#VERSION, or ID#VERSION@CHANNEL, or a file with a list of them
    #[arg(long, value_name = "ID#V|FILE")]
    installed: Vec<String>,
    /// Assume this fact about the runtime
    #[arg(long, value_name = "K=V")]
    runtime: Vec<String>,
    /// Assume this version of mu
    #[arg(long, value_name = "VERSION")]
    mu_version: Option<String>,
    /// Never choose this
    #[arg(long, value_name = "REF")]
    exclude: Vec<String>,
    /// Also show what requires each version
    #[arg(long)]
    pub(super) explain: bool,
    /// Show what each strategy would choose, side by side
    #[arg(long, conflicts_with = "explain")]
    compare: bool,
    #[command(flatten)]
    narrowing: NarrowingArguments,
}

/// What `mu resolve --compare` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Compared<'a> {
    /// With the highest strategy.
    highest: Side<'a>,
    /// With the minimal strategy.
    minimal: Side<'a>,
    /// Every package that either chooses.
    packages: &'a [Row],
}

/// What one strategy would choose, or why it fails.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Side<'a> {
    /// What it would choose.
    Chosen(change::Answer<'a>),
    /// Why nothing fits together.
    Failed(Failure<'a>),
}

impl<'a> Side<'a> {
    fn new(outcome: &'a Result<Outcome, CommandError>) -> Self {
        match outcome {
            Ok(outcome) => Self::Chosen(change::Answer::new(outcome)),
            Err(error) => Self::Failed(Failure::new(error)),
        }
    }
}

/// `mu what-if`: as `mu resolve --explain`.
pub(crate) fn run_what_if(context: &Context, arguments: ResolveArguments) -> CommandExit {
    run_resolve(context, ResolveArguments { explain: true, ..arguments })
}

pub(crate) fn run_resolve(context: &Context, arguments: ResolveArguments) -> CommandExit {
    let session = context.open(OperationScope::Workspace)?;
    let request = WhatIf {
        references: arguments.references,
        with: arguments.with,
        without: arguments.without,
        installed: arguments.installed,
        runtime: arguments.runtime,
        mu_version: arguments.mu_version,
        exclude: arguments.exclude,
        narrowing: arguments.narrowing.into_operation(),
        takes_steps: false,
        resolution: None,
        tidies: context.shell.is_json(),
    };
    if arguments.compare {
        return beside(context, &compare(&session, &request)?);
    }
    let with_what = match request.installed.is_empty() {
        true => "Mu.lock",
        false => "what is installed",
    };
    let outcome = what_if(&session, &request)?;
    let ending = show_supposed(context, &outcome, arguments.explain, with_what);
    // The process ends now, which gives back its memory at once. Piece by piece, that takes a fifteenth of the
    // instructions of a warm run with minimal selection.
    std::mem::forget((session, outcome));
    ending
}

/// What would be in use, and how that differs from what it is compared with.
fn show_supposed(
    context: &Context,
    outcome: &Outcome,
    explains: bool,
    with_what: &str,
) -> CommandExit {
    if context.shell.is_json() {
        return change::print_outcome(context, outcome);
    }
    context.print(&chosen(context, outcome, explains))?;
    if !outcome.changes.is_empty() && !outcome.lock.packages.is_empty() {
        context.line("")?;
        context.line(&format!("{FAINT}compared with {with_what}:{FAINT:#}"))?;
    }
    change::print_outcome(context, outcome)
}

/// A line for each chosen package, and below it its requirements, if `--explain` is given.
fn chosen(context: &Context, outcome: &Outcome, explains: bool) -> String {
    let (strong, faint) = (context.shell.style(STRONG), context.shell.style(FAINT));
    let [begin, end] = [strong.render().to_string(), strong.render_reset().to_string()];
    let mut lines = String::new();
    let explain = |lines: &mut String, requested: &[Requested]| {
        for Requested { spec, by, .. } in requested.iter().filter(|_| explains) {
            let line = format!("  {faint}{spec} by {by}{faint:#}\n");
            lines.push_str(&context.short(&line));
        }
    };
    for package in &outcome.lock.packages {
        let (name, version) = (context.name(&package.id), version_of(package));
        lines.extend([&*begin, &*name, &*end, " ", &*version, "\n"]);
        explain(&mut lines, &package.requested);
    }
    for replaced in &outcome.lock.replaced {
        let (name, by) = (context.name(&replaced.id), context.name(&replaced.by));
        // Writing to a text cannot fail.
        let _ = writeln!(lines, "{faint}{name} is replaced by {by}{faint:#}");
        explain(&mut lines, &replaced.requested);
    }
    lines
}

/// Prints both selections, package by package, and the errors.
fn beside(context: &Context, comparison: &Comparison) -> CommandExit {
    let rows = comparison.rows();
    if context.shell.is_json() {
        let (highest, minimal) = (Side::new(&comparison.highest), Side::new(&comparison.minimal));
        return context.json(&Compared { highest, minimal, packages: &rows });
    }
    let cells = rows.iter().map(|row| {
        let style = if row.highest == row.minimal { PLAIN } else { NOTICE };
        let [highest, minimal] = [&row.highest, &row.minimal]
            .map(|version| (style, version.as_deref().unwrap_or("-").to_owned()));
        [(STRONG, context.name(&row.id).into_owned()), highest, minimal]
    });
    context.print_table(&Table::with_rows(["package", "highest", "minimal"], cells))?;
    for (name, outcome) in [("highest", &comparison.highest), ("minimal", &comparison.minimal)] {
        if let Err(error) = outcome {
            context.line("")?;
            context.line(&context.short(&format!("{name}: {error}")))?;
            return Ok(0);
        }
    }
    let count_differing = rows.iter().filter(|row| row.highest != row.minimal).count();
    let differ = if count_differing == 1 { "differs" } else { "differ" };
    context.shell.status(&format!("{} {differ}", count(count_differing, "package")));
    Ok(0)
}
