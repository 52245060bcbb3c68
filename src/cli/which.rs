//! `mu which`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::context::{CommandExit, Context};
use crate::formats;
use crate::fs;
use crate::ops::which::{All, element, which, which_all};
use crate::ops::{Events as _, OperationScope, Session};
use crate::reference::PackageId;
use crate::report::{FAINT, GOOD, NOTICE};
use crate::search::{Candidate, Found, State};

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
pub(super) struct Looked {
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

pub(crate) fn run(context: &Context, arguments: &WhichArguments) -> CommandExit {
    let session = context.open(OperationScope::Workspace)?;
    if arguments.all {
        return all(context, &session, &arguments.reference);
    }
    let found = which(&session, &arguments.reference)?;
    warn(context, &found);
    let element = element(&found)?;
    let file = element.as_ref().and_then(|element| element.file.as_ref());
    if let Some(file) = file.filter(|file| fs::metadata(file).is_err()) {
        context.shell.warning(&format!("there is no file `{}`", file.display()));
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
        context.shell.warning(&note.to_string());
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
