//! `mu resolve`.

use std::fmt::Write as _;

use anstyle::Style;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::change;
use crate::cli::context::{CommandExit, Context};
use crate::cli::get::NarrowingArguments;
use crate::lock::Requested;
use crate::ops::requirements::supposition::WhatIf;
use crate::ops::session::locked::version_of;
use crate::ops::what_if::what_if;
use crate::ops::what_if::{Comparison, Row, compare};
use crate::ops::{CommandError, OperationScope, Outcome};
use crate::report::{FAINT, Failure, NOTICE, STRONG, Table, count};

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

pub(crate) fn run(context: &Context, arguments: ResolveArguments) -> CommandExit {
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
    let ending = show(context, &outcome, arguments.explain, with_what);
    // The process ends now, which gives back its memory at once. Piece by piece, that takes a fifteenth of the
    // instructions of a warm run with minimal selection.
    std::mem::forget((session, outcome));
    ending
}

/// What would be in use, and how that differs from what it is compared with.
fn show(context: &Context, outcome: &Outcome, explains: bool, with_what: &str) -> CommandExit {
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
    let mut lines = String::new();
    let explain = |lines: &mut String, requested: &[Requested]| {
        for Requested { spec, by, .. } in requested.iter().filter(|_| explains) {
            let line = format!("  {faint}{spec} by {by}{faint:#}\n");
            lines.push_str(&context.short(&line));
        }
    };
    for package in &outcome.lock.packages {
        let (name, version) = (context.name(&package.id), version_of(package));
        // Writing to a text cannot fail.
        let _ = writeln!(lines, "{strong}{name}{strong:#} {version}");
        explain(&mut lines, &package.requested);
    }
    for replaced in &outcome.lock.replaced {
        let (name, by) = (context.name(&replaced.id), context.name(&replaced.by));
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
    let mut table = Table::new(&["package", "highest", "minimal"]);
    for row in &rows {
        let differs = if row.highest == row.minimal { Style::new() } else { NOTICE };
        let text = |version: &Option<String>| version.clone().unwrap_or_else(|| "-".to_owned());
        let (highest, minimal) = (text(&row.highest), text(&row.minimal));
        table.row([
            (STRONG, context.name(&row.id).into_owned()),
            (differs, highest),
            (differs, minimal),
        ]);
    }
    context.print_table(&table)?;
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
