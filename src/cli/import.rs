//! `mu import`: takes over what another tool lists, and says line by line what became what, and what could not.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::change;
use crate::cli::context::{CommandExit, Context, Stop};
use crate::ops::OperationScope;
use crate::ops::import::{ImportRequest, Imported, LeftBehind, TakenOver, import};
use crate::report::{FAINT, GOOD, NOTICE, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Reads .gitmodules, vendir.yml, jsonnetfile.json and helmfile.yaml with their locks, and the modules of Terraform (*.tf, and what `terraform init` has put into .terraform/modules). A Chart.yaml or kcl.mod is a package already: of these, the versions in Chart.lock or kcl.mod.lock are kept. A go.mod is only read if it is named.

What they list is added to Mu.yaml, which is created if there is none, and Mu.lock has the versions in use: the commits of submodules and locks, and the versions of charts. Nothing else is changed, so the other tool goes on working until you remove its files.

Examples:
  mu import --dry-run                  what would become what, in this folder
  mu import
  mu import vendir.yml
  mu import releases/helmfile.yaml -p acme/platform")]
pub(crate) struct ImportArguments {
    /// The file to read, or the folder with all such files [default: this folder]
    #[arg(value_name = "FILE|FOLDER")]
    place: Option<String>,
    /// The package that gets the dependencies: its name or folder [default: the one in this folder, or a new one]
    #[arg(short, long)]
    package: Option<String>,
    /// Add them to `devDependencies`
    #[arg(long)]
    dev: bool,
    /// Show what would become what, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `mu import` answers.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Takeover<'a> {
    /// What became a dependency, in the order of the files.
    imported: &'a [TakenOver],
    /// What did not, and why.
    left: &'a [LeftBehind],
    /// The versions that were chosen, as `mu get` answers.
    chosen: change::Answer<'a>,
}

pub(crate) fn run(context: &Context, arguments: ImportArguments) -> CommandExit {
    let ImportArguments { place, package, dev, dry_run } = arguments;
    let session =
        context.open_for_manifest(OperationScope::Workspace, package.as_deref(), dry_run)?;
    let request = ImportRequest { place, package, dev, dry_run };
    let imported = import(session, &request)?;
    if context.shell.is_json() {
        let Imported { taken, left, outcome } = &imported;
        let chosen = change::Answer::new(outcome);
        return context.json(&Takeover { imported: taken, left, chosen });
    }
    // What could not be taken over is part of the answer, whatever else is quiet.
    for one in &imported.taken {
        print_taken(context, one)?;
    }
    for one in &imported.left {
        let LeftBehind { file, line, called, reason } = one;
        let place = place_of(file, *line);
        let (called, reason) = (printable(called), printable(reason));
        context.line(&format!(
            "{NOTICE}left{NOTICE:#} {called} {FAINT}({place}){FAINT:#}: {reason}"
        ))?;
    }
    change::print_outcome(context, &imported.outcome)
}

fn print_taken(context: &Context, one: &TakenOver) -> Result<(), Stop> {
    let TakenOver { file, line, called, reference, version, was_in_use, left_out, .. } = one;
    let place = place_of(file, *line);
    let is_new = if *was_in_use { "" } else { ", the newest that fits" };
    let without = match left_out.is_empty() {
        true => String::new(),
        false => format!("; without `{}`", left_out.join("`, `")),
    };
    context.line(&format!(
        "{GOOD}imported{GOOD:#} {} {FAINT}({place}){FAINT:#} as {}: {version}{is_new}{without}",
        printable(called),
        printable(reference),
    ))
}

/// Where something is listed.
fn place_of(file: &str, line: usize) -> String {
    match line {
        0 => format!("the lock of {file}"),
        line => format!("{file}:{line}"),
    }
}
