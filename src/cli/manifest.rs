//! `mu init`, `mu import`, `mu version`, `mu pin` and `mu unpin`: a new Mu.yaml, also of what another tool lists (which says
//! line by line what became what, and what could not), and the versions in one.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::change;
use crate::cli::context::{CommandExit, Context, Stop};
use crate::ops::import::{ImportRequest, Imported, LeftBehind, TakenOver, import};
use crate::ops::init::{InitRequest, init};
use crate::ops::pin::{self, OwnVersion, PinRequest, VersionRequest, missing_version, version};
use crate::ops::{Events as _, OperationScope, View};
use crate::report::{FAINT, GOOD, NOTICE, printable};

#[derive(Debug, Args)]
#[command(after_help = "\
Without an argument, prints the version in Mu.yaml. `mu --version` prints that of mu, and `mu versions REF` those of a \
published package.

Examples:
  mu version
  mu version patch
  mu version 2.0.0-rc.1 -p acme/web")]
pub(crate) struct VersionArguments {
    /// What to raise, or the new version
    #[arg(value_name = "patch|minor|major|VERSION")]
    change: Option<String>,
    /// The package: its name or folder [default: the one in this folder]
    #[arg(short, long)]
    package: Option<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `mu version` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The package's name.
    name: String,
    /// Its manifest.
    file: String,
    /// The version before; none if the manifest had none.
    from: Option<String>,
    /// The version now; the same if it was not changed.
    to: Option<String>,
}

pub(crate) fn run(context: &Context, arguments: VersionArguments) -> CommandExit {
    let VersionArguments { change, package, dry_run } = arguments;
    let is_asked = change.is_none();
    let is_written = !is_asked && !dry_run;
    let _lock = is_written.then(|| context.keep_others_away(false)).transpose()?;
    let session = context.open_in(OperationScope::Workspace, View::Around(package.clone()))?;
    let request = VersionRequest { package, change, dry_run };
    let OwnVersion { name, file, from, to } = version(&session, &request)?;
    if to.is_none() {
        return Err(missing_version(&session, &file, "").into());
    }
    let place = context.path_for_people(&file);
    let answer = Answer { name, file: file.display().to_string(), from, to };
    let would = if dry_run { "would write " } else { "" };
    context.answer(&answer, |Answer { name, from, to, .. }| {
        let to = to.as_deref().unwrap_or_default();
        let name = context.short(name);
        match from {
            _ if is_asked => context.line(to),
            Some(from) if from == to => context.line(&format!("{name} is already {to}")),
            Some(from) => context.line(&format!("{would}{name} {from} → {to} in {place}")),
            None => context.line(&format!("{would}{name} {to} in {place}")),
        }
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
A comment after each entry keeps what was there, and `mu unpin` restores it. Where no comment can be (in Mu.json, \
and lists in brackets), mu says what it cannot restore. A Git package without a version tag is \
pinned to its commit; with --commits, every Git package is.

Examples:
  mu pin
  mu pin aws/ec2
  mu pin 'aws/ec2#1.1.0'               to this version, which is installed then
  mu pin --commits")]
pub(crate) struct PinArguments {
    /// The packages to pin, and to which version [default: all, to the version in use]
    #[arg(value_name = "PKG[#VERSION]")]
    packages: Vec<String>,
    /// Pin Git packages to their commit, not their version
    #[arg(long)]
    commits: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Restores what `mu pin` replaced, if its comment is still there. A pin without such a comment is changed only if PKG \
names it: 1.2.0 becomes ^1.2.0.

Examples:
  mu unpin
  mu unpin aws/ec2")]
pub(crate) struct UnpinArguments {
    /// The packages to unpin [default: all that `mu pin` pinned]
    #[arg(value_name = "PKG")]
    packages: Vec<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run_pin(context: &Context, arguments: PinArguments) -> CommandExit {
    let PinArguments { packages, commits, dry_run } = arguments;
    let session = context.open_for(OperationScope::Workspace, dry_run)?;
    change::print_outcome(context, &pin::pin(&session, &PinRequest { packages, commits, dry_run })?)
}

pub(crate) fn run_unpin(context: &Context, arguments: UnpinArguments) -> CommandExit {
    let UnpinArguments { packages, dry_run } = arguments;
    let session = context.open_for(OperationScope::Workspace, dry_run)?;
    let request = PinRequest { packages, commits: false, dry_run };
    change::print_outcome(context, &pin::unpin(&session, &request)?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu init                              a package named after this folder
  mu init acme/web
  mu init --workspace --namespace acme
  mu init acme/web --workspace         both")]
pub(crate) struct InitArguments {
    /// The package's name [default: this folder's path in the workspace, or its name]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Start a workspace
    #[arg(long)]
    workspace: bool,
    /// What names in the workspace start with, and folders leave out: NAME or BASE/NAME
    #[arg(long, value_name = "NS", requires = "workspace")]
    namespace: Option<String>,
}

/// What `mu init` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Created {
    /// The files that were written.
    files: Vec<String>,
    /// Files of other tools in the folder, whose dependencies `mu import` takes over; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    importable: Vec<String>,
    /// The manifest of another tool that makes the folder a package already, so that no file was written; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    already: Option<String>,
}

pub(crate) fn run_init(context: &Context, arguments: InitArguments) -> CommandExit {
    let InitArguments { name, workspace, namespace } = arguments;
    let begun = init(&context.environment, &InitRequest { name, workspace, namespace })?;
    if let Some(warning) = &begun.warning {
        context.shell.warning(warning);
    }
    let files = begun.files;
    if context.shell.is_json() {
        let files = files.iter().map(|file| file.display().to_string()).collect();
        let already = begun.already.map(|path| path.display().to_string());
        return context.json(&Created { files, importable: begun.importable, already });
    }
    for file in &files {
        context.line(&format!("wrote {}", context.path_for_people(file)))?;
    }
    if let Some(path) = &begun.already {
        let path = context.path_for_people(path);
        context.line(&format!(
            "{path} makes this folder a package already, which mu uses as it is: nothing was written"
        ))?;
    }
    // What comes next depends on whose manifest makes the folder a package, and on whether the workspace counts that.
    match (&begun.already, &begun.lacks) {
        (_, Some(command)) => {
            let next = format!("next: `{command}` makes it a package of this workspace");
            context.shell.status(&next);
        }
        (Some(_), None) => context.shell.status(
            "next: `mu get` installs its dependencies, `mu add REF` adds one, `mu init NAME` creates a Mu.yaml in its place",
        ),
        (None, None) => context.shell.status(match begun.is_package {
            true => "next: `mu add REF` adds a dependency, `mu get` installs",
            false => "next: `mu init` in a folder for each package",
        }),
    }
    if !begun.importable.is_empty() {
        let list = if begun.importable.len() == 1 { "lists" } else { "list" };
        let files = begun.importable.join("`, `");
        context
            .shell
            .status(&format!("`{files}` {list} dependencies too: `mu import` takes them over"));
    }
    Ok(0)
}

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

pub(crate) fn run_import(context: &Context, arguments: ImportArguments) -> CommandExit {
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
