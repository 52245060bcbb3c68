//! `mu status`, `mu list`, `mu verify` and `mu which`: the state of the workspace and its packs, and the folder of each.

use anstyle::Style;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context, Packages, Stop};
use crate::ops::explain::carried::Inside;
use crate::ops::status::{Member, Placed, Status, status};
use crate::ops::verify::{
    Listed, SignerCount, TrustProblem, TrustReport, list, verify, verify_store, verify_trust,
};
use crate::ops::which::{All, element, which, which_all};
use crate::ops::{Code, CommandError, Events as _, OperationScope, Session, Warning, verify};
use crate::reference::PackageId;
use crate::report::{BAD, FAINT, GOOD, NOTICE, PLAIN, STRONG, Table, count};
use crate::search::{Candidate, Found, State};
use crate::{formats, fs};

#[derive(Debug, Args)]
#[command(after_help = "\
Contacts no registry and changes nothing.

Examples:
  mu status
  mu status --json")]
pub(crate) struct StatusArguments {}

pub(crate) fn run(context: &Context, _arguments: &StatusArguments) -> CommandExit {
    let session = context.open(OperationScope::Workspace)?;
    context.answer(&status(&session)?, |status| print(context, status))
}

/// The packages of the workspace, and which of them others use.
fn members(context: &Context, status: &Status) -> Table {
    let rows = status.members.iter().map(|member| {
        let placed = status.placed.iter().filter(|placed| is_at(member, placed));
        // By the id: a package that is used under another one is called there what its own manifest says.
        let notes = placed.map(|Placed { id, .. }| match id.as_str().ends_with(&member.name) {
            true => "used by others here".to_owned(),
            false => format!("used by others here as {}", context.short(id.as_str())),
        });
        let not_read = member.not_read.iter().map(|name| format!("`{name}` is not read"));
        let notes: Vec<String> = notes.chain(not_read).collect();
        let [name, version] = name_cells(context, &member.name, member.version.as_deref());
        [name, version, (FAINT, member.path.clone()), (NOTICE, notes.join(", "))]
    });
    Table::with_rows(["package", "version", "folder", "note"], rows).without_empty_columns()
}

/// A package of the workspace, and its version.
fn name_cells(context: &Context, name: &str, version: Option<&str>) -> [(Style, String); 2] {
    [(STRONG, context.short(name).into_owned()), (PLAIN, version.unwrap_or("-").to_owned())]
}

/// Whether a package that is used from the workspace is this one.
fn is_at(member: &Member, placed: &Placed) -> bool {
    member.path == if placed.path.is_empty() { "." } else { &placed.path }
}

/// What to do if the workspace's only manifest is not read because of its name.
fn rename(status: &Status) -> Option<String> {
    let (name, right) = status.misspelt.as_ref()?;
    Some(format!("rename `{name}` to `{right}`"))
}

fn print(context: &Context, status: &Status) -> Result<(), Stop> {
    context.line(&format!("workspace {STRONG}{}{STRONG:#}", status.root.display()))?;
    if !status.members.is_empty() {
        context.print_table(&members(context, status))?;
    }
    let is_member = |placed: &&Placed| status.members.iter().any(|member| is_at(member, placed));
    for Placed { id, path } in status.placed.iter().filter(|placed| !is_member(placed)) {
        let path = if path.is_empty() { "." } else { path };
        context.line(&format!(
            "{NOTICE}used from the workspace{NOTICE:#}: {} {FAINT}(in `{path}`){FAINT:#}",
            context.name(id)
        ))?;
    }
    for reference in &status.extra {
        context.line(&format!(
            "{NOTICE}installed by `mu get`{NOTICE:#}: {} {FAINT}(stays in Mu.lock until `mu remove`){FAINT:#}",
            context.short(reference)
        ))?;
    }
    if status.members.is_empty() && !status.lock.exists {
        context.line("there is no package here")?;
        if let Some(rename) = rename(status) {
            context.shell.status(&rename);
            return Ok(());
        }
        context
            .shell
            .status("`mu init` creates one, and `mu get REF` installs packages without one");
        return Ok(());
    }
    let outdated =
        if status.lock.exists { "Mu.lock is out of date" } else { "there is no Mu.lock yet" };
    let differences: Vec<String> =
        status.lock.differences.iter().map(ToString::to_string).collect();
    let lists = [(outdated, &differences), ("not installed", &status.missing)];
    for (heading, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        context.line(&format!("{BAD}{heading}{BAD:#}:"))?;
        for line in list {
            context.line(&format!("  {}", context.short(line)))?;
        }
    }
    if !status.up_to_date {
        context.shell.status(&rename(status).unwrap_or_else(|| "run `mu get`".to_owned()));
        return Ok(());
    }
    let count = count(status.lock.packages, "package");
    context.line(&format!("{GOOD}up to date{GOOD:#}: {count} locked and installed"))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Sorted by id, the base first, as in Mu.lock. The workspace's own packages are sorted by folder.

Examples:
  mu list
  mu list --global
  mu list --workspace                  the packages of this workspace itself")]
pub(crate) struct ListArguments {
    /// List the global packs
    #[arg(short, long)]
    global: bool,
    /// List the packages of the workspace itself
    #[arg(long, conflicts_with = "global")]
    workspace: bool,
}

pub(crate) fn run_list(context: &Context, arguments: &ListArguments) -> CommandExit {
    let scope = OperationScope::from_global_flag(arguments.global);
    let session = context.open(scope)?;
    if arguments.workspace {
        let members = Packages { packages: verify::members(&session) };
        let empty = "this workspace has no packages of its own; `mu init NAME` creates one";
        return context.answer(&members, |members| {
            let rows = members.packages.iter().map(|member| {
                let [name, version] = name_cells(context, &member.name, member.version.as_deref());
                [name, version, (FAINT, member.place.clone())]
            });
            context.table(&Table::with_rows(["package", "version", "folder"], rows), empty)
        });
    }
    let (place, get) = match scope {
        OperationScope::Workspace => ("here", "mu get"),
        OperationScope::Global => ("globally", "mu get --global"),
    };
    let empty = format!("nothing is installed {place}; `{get} REF` installs something");
    let installed = Packages { packages: list(&session)? };
    context.answer(&installed, |installed| {
        context.table(&table(context, &installed.packages, get), &empty)
    })
}

/// The installed packages; `get` is the command that installs missing ones.
fn table(context: &Context, packages: &[Listed], get: &str) -> Table {
    let rows = packages.iter().map(|package| {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let id = context.name(&package.id).into_owned();
        let version = or_none(package.label.clone());
        let source = or_none(package.source.as_ref().map(ToString::to_string));
        match &package.replaced_by {
            Some(by) => [
                (FAINT, id),
                (FAINT, version),
                (FAINT, source),
                (FAINT, format!("replaced by {}", context.name(by))),
            ],
            None => {
                let (style, state) = match package.installed {
                    true => (NOTICE, lines(&package.helm)),
                    false => (BAD, format!("not installed, run `{get}`")),
                };
                [(STRONG, id), (PLAIN, version), (FAINT, source), (style, state)]
            }
        }
    });
    Table::with_rows(["package", "version", "from", "note"], rows).without_empty_columns()
}

/// What Helm uses otherwise than Mu.lock says.
fn lines(helm: &[Inside]) -> String {
    helm.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu verify
  mu verify aws/ec2
  mu verify --global
  mu verify --store                    every tree in the store of this machine
  mu verify --trust                    ask the registries: is each locked package still what they have?")]
pub(crate) struct VerifyArguments {
    /// Check only these packages
    #[arg(value_name = "PKG", conflicts_with = "store")]
    packages: Vec<String>,
    /// Check the store instead of the packs
    #[arg(long)]
    store: bool,
    /// Ask the registries of what Mu.lock names: whether each package is what they have now, and signed as the rules ask
    #[arg(long, conflicts_with = "store")]
    trust: bool,
    /// Check the global packs
    #[arg(short, long, conflicts_with = "store")]
    global: bool,
}

pub(crate) fn run_verify(context: &Context, arguments: &VerifyArguments) -> CommandExit {
    let scope = OperationScope::from_global_flag(arguments.global);
    let session = context.open(scope)?;
    if arguments.trust {
        return show_trust(context, &verify_trust(&session, &arguments.packages)?);
    }
    let report = match arguments.store {
        true => verify_store(&session)?,
        false => verify(&session, &arguments.packages)?,
    };
    let noun = if arguments.store { "tree" } else { "pack" };
    // The hint is the one that helps with all faults, if there is one.
    if !report.faults.is_empty() {
        let mut message = format!(
            "{} of {} failed verification",
            report.faults.len(),
            count(report.checked, noun)
        );
        for fault in &report.faults {
            message.push_str(&format!(
                "\n  {} at `{}`: {}",
                fault.what,
                fault.folder.display(),
                fault.problem
            ));
        }
        let hint = if arguments.store {
            "`mu cache clean` empties the store; packs are fetched again when they are needed"
        } else if report.faults.iter().all(|fault| fault.problem.contains("Mu.lock:")) {
            "Mu.lock was edited or merged wrongly: restore it from version control"
        } else if report.faults.iter().all(|fault| !fault.folder.exists()) {
            "`mu get` installs what is missing"
        } else if report.faults.iter().all(|fault| fault.folder.exists() && !fault.folder.is_dir())
        {
            "delete the file and run `mu get` to install the pack again"
        } else {
            "delete the folder and run `mu get` to install the pack again"
        };
        return Err(CommandError::new(Code::Integrity, message)
            .hint(hint)
            .with_details(&report)
            .into());
    }
    context.answer(&report, |report| {
        context.line(&format!("{} verified", count(report.checked, noun)))?;
        for SignerCount { identity, packages } in &report.signers {
            context.line(&format!("{} signed by {identity}", count(*packages, "package")))?;
        }
        match report.unverified.len() {
            0 => Ok(()),
            number => {
                let packages = count(number, "package");
                context.line(&format!(
                    "{NOTICE}who signed {packages} is not known on this machine: `mu get` looks{NOTICE:#}"
                ))
            }
        }
    })
}

/// Says which locked packages are no longer what their registries have; the command fails if there are some.
fn show_trust(context: &Context, report: &TrustReport) -> CommandExit {
    context.answer(report, |report| {
        for TrustProblem { id, version, code, why } in &report.problems {
            let name = context.name(id);
            context.line(&format!("{BAD}{code}{BAD:#} {name} {version}: {why}"))?;
        }
        let checked = count(report.checked, "package");
        match report.problems.len() {
            0 => context.line(&format!("{checked} verified: each is what its registry has")),
            number => {
                context.line(&format!("{number} of {checked} failed verification"))?;
                context.shell.status(
                    "restore Mu.lock if it was edited; `mu update PKG` takes what a registry has now",
                );
                Ok(())
            }
        }
    })?;
    Ok(u8::from(!report.problems.is_empty()))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Looks in eight places, in order: the workspace (twice), its .mu/packs (twice), ~/.mu/packs (twice) \
and $MUROOT/lib/packs (twice). A package in the workspace always wins; elsewhere the version must fit. For an element, prints its file and kind.

Examples:
  mu which aws/ec2
  mu which 'aws/ec2#^1.0' --all
  mu which aws/ec2/VM
  cd \"$(mu which aws/ec2)\"")]
pub(crate) struct WhichArguments {
    /// The reference
    #[arg(value_name = "REF")]
    reference: String,
    /// Show all eight places, and what was found there
    #[arg(long)]
    all: bool,
}

/// What `mu which` answers: where the reference leads.
#[derive(Serialize, JsonSchema)]
pub(super) struct Place {
    /// The package.
    id: PackageId,
    /// Its folder; of an element, the file that has it.
    path: String,
    /// The folder of the package.
    folder: String,
    /// Which of the eight places it is; none for a folder that the reference itself names.
    place: Option<u8>,
    /// The package's version, if it is known.
    version: Option<String>,
    /// The exported element, if the reference names one.
    element: Option<String>,
    /// What that element is: `module`, `class`, `function` or `variable`, if the manifest says so.
    kind: Option<&'static str>,
}

/// What `mu which --all` answers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Places {
    /// The eight places, in order.
    places: Vec<Looked>,
}

/// One of the eight places.
#[derive(Serialize, JsonSchema)]
struct Looked {
    /// Its number.
    place: u8,
    /// The folder.
    path: String,
    /// What was found there.
    state: Looks,
    /// Why an existing package does not satisfy the reference.
    why: Option<String>,
    /// Other manifests in that folder, which are not read.
    #[serde(rename = "notRead", skip_serializing_if = "Vec::is_empty")]
    not_read: Vec<&'static str>,
    /// Whether `mu edit` has put it there; otherwise left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edit: bool,
}

/// What was found at a place.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Looks {
    /// A package that satisfies the reference.
    Hit,
    /// No package.
    Miss,
    /// A package that does not satisfy the reference.
    #[serde(rename = "passed over")]
    PassedOver,
}

pub(crate) fn run_which(context: &Context, arguments: &WhichArguments) -> CommandExit {
    let session = context.open(OperationScope::Workspace)?;
    if arguments.all {
        return all(context, &session, &arguments.reference);
    }
    let found = which(&session, &arguments.reference)?;
    warn(context, &found);
    let element = element(&found)?;
    let file = element.as_ref().and_then(|element| element.file.as_ref());
    if let Some(file) = file.filter(|file| fs::metadata(file).is_err()) {
        context.shell.warning(&Warning::NoFile { path: file.clone() });
    }
    let folder = found.place.folder.display().to_string();
    let place = Place {
        id: found.id,
        path: file.map_or_else(|| folder.clone(), |file| file.display().to_string()),
        folder,
        kind: element.and_then(|element| element.kind),
        place: (found.place.number > 0).then_some(found.place.number),
        version: found.hit.version.as_ref().map(ToString::to_string),
        element: found.element,
    };
    context.answer(&place, |place| match place.kind {
        Some(kind) => context.line(&format!("{}  {FAINT}{kind}{FAINT:#}", place.path)),
        None => context.line(&place.path),
    })
}

fn warn(context: &Context, found: &Found) {
    for note in &found.notes {
        context.shell.warning(&Warning::Found(note.clone()));
    }
}

fn all(context: &Context, session: &Session, reference: &str) -> CommandExit {
    let All { candidates, found } = which_all(session, reference)?;
    if let Ok(found) = &found {
        warn(context, found);
    }
    let answer =
        Places { places: candidates.iter().map(|candidate| looked(session, candidate)).collect() };
    context.answer(&answer, |answer| {
        for Looked { place, path, state, why, not_read, edit } in &answer.places {
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            let not_read: String =
                not_read.iter().map(|name| format!(" (`{name}` is not read)")).collect();
            let state = match state {
                Looks::Hit if *edit => format!("{GOOD}hit{GOOD:#} (mu edit)"),
                Looks::Hit => format!("{GOOD}hit{GOOD:#}"),
                Looks::Miss => format!("{FAINT}miss{FAINT:#}"),
                Looks::PassedOver => format!("{NOTICE}passed over{NOTICE:#}"),
            };
            context.line(&format!("{place}  {path}  {state}{}{not_read}", context.short(&why)))?;
        }
        Ok(())
    })?;
    found?;
    Ok(0)
}

fn looked(session: &Session, candidate: &Candidate) -> Looked {
    let folder = &candidate.place.folder;
    let mut edits = session.workspace.edits.iter();
    let edit = edits.any(|edit| session.workspace.root.join(&edit.folder) == *folder);
    let (state, why) = match &candidate.state {
        State::Hit(_) => (Looks::Hit, None),
        State::Miss => (Looks::Miss, None),
        State::PassedOver(reason) => (Looks::PassedOver, Some(reason.to_string())),
    };
    let path = candidate.place.folder.display().to_string();
    let manifest = formats::locate_manifest(folder).ok().flatten();
    let not_read = manifest.map(|manifest| formats::not_read(&manifest)).unwrap_or_default();
    Looked { place: candidate.place.number, path, state, why, not_read, edit }
}
