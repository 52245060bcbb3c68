//! `which`: the folder that a reference points to.

use std::path::PathBuf;

use crate::manifest::{ExportKind, ExportedElement, Manifest};
use crate::ops::explain::places;
use crate::ops::explain::places::misplaced;
use crate::ops::requirements::names::in_use_here;
use crate::ops::session::disk::local_folder;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::installed::search_path;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::Reference;
use crate::search::{Candidate, Found, Note, Query, SearchError};

/// The eight places that a reference may point to, and which one it does.
#[derive(Debug)]
pub struct All {
    /// The places, in order; those of the package, if the reference names an element of it.
    pub candidates: Vec<Candidate>,
    /// What [`which`] finds.
    pub found: Result<Found, CommandError>,
}

/// Finds the package (or the element) that a reference names.
pub fn which(session: &Session, text: &str) -> Result<Found, CommandError> {
    let reference = in_use_here(session, Reference::parse(text)?)?;
    find(session, &reference, &wanted_by(session, &reference))?.map_err(|error| {
        let hints = if reference.local().is_some() { Vec::new() } else { error.search_hints() };
        with_hints(missing(session, &reference, error), hints)
    })
}

/// The eight places that a reference may point to, and which one it does.
pub fn which_all(session: &Session, text: &str) -> Result<All, CommandError> {
    let reference = in_use_here(session, Reference::parse(text)?)?;
    let mut wanted = wanted_by(session, &reference);
    let found = find(session, &reference, &wanted)?;
    if let Ok(found) = &found
        && found.element.is_some()
    {
        wanted.id = found.id.clone();
    }
    let candidates = search_path(session)?.candidates(&wanted).map_err(CommandError::from)?;
    // The places were already reported.
    let found = found.map_err(|error| {
        let hints = error.hints_besides_places();
        with_hints(missing(session, &reference, error), hints)
    });
    Ok(All { candidates, found })
}

/// An element of a package that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Its name, `VM` of `aws/ec2/VM`.
    pub name: String,
    /// Its kind: a class, a function and so on, if the manifest says so.
    pub kind: Option<&'static str>,
    /// Its file, if the manifest names one.
    pub file: Option<PathBuf>,
}

/// The requested element, as the manifest of its package describes it.
pub fn element(found: &Found) -> Result<Option<Element>, CommandError> {
    let Some(name) = &found.element else { return Ok(None) };
    let folder = &found.place.folder;
    let manifest = Manifest::load(folder)?.map(|loaded| loaded.manifest);
    let export = manifest.and_then(|manifest| manifest.exports.get(name).cloned());
    let ExportedElement { kind, path } = export.unwrap_or_default();
    Ok(Some(Element {
        name: name.clone(),
        kind: kind.map(ExportKind::as_str),
        file: path.map(|path| folder.join(path)),
    }))
}

fn find(
    session: &Session,
    reference: &Reference,
    wanted: &Query,
) -> Result<Result<Found, SearchError>, CommandError> {
    // A folder is the package in it, wherever its name leads. What replaces a package comes before the eight places,
    // where a pack of the replaced one may still be.
    if let Some(found) = member_at(session, reference, wanted)? {
        return Ok(Ok(found));
    }
    if let Some(found) = replacing_member(session, wanted)? {
        return Ok(Ok(found));
    }
    let found = search_path(session)?.find(wanted);
    if let Ok(found) = &found
        // What the settings use instead is where it should be.
        && !session.workspace.settings.overrides.contains_key(&found.id)
        && let Some(misplacement) = places::misplacement(session, &found.id)
    {
        session.events.warning(&Warning::Misplaced(misplacement));
    }
    Ok(found)
}

/// The error about a reference that points to nothing, with hints.
fn missing(session: &Session, reference: &Reference, error: SearchError) -> CommandError {
    let SearchError::NotFound { id, .. } = &error else {
        return CommandError::from_error(Code::NotFound, error);
    };
    let get = format!("`mu get {}`", quoted_for_shell(reference.as_str()));
    if let Some(folder) = reference.local() {
        if let Err(error) = local_folder(session, folder) {
            return error;
        }
        let message = format!("`{reference}` is not installed here");
        return CommandError::new(Code::NotFound, message).hint(format!("{get} installs it"));
    }
    let misplaced_hint = session.workspace.member(id);
    let misplaced_hint = misplaced_hint.map(|member| misplaced(session, member).to_string());
    let error = CommandError::from_error(Code::NotFound, error);
    match misplaced_hint {
        Some(hint) => error.hint(hint),
        None => error.hint(format!("{get} asks registries for it")),
    }
}

fn with_hints(mut error: CommandError, mut first: Vec<String>) -> CommandError {
    first.append(&mut error.hints);
    error.hints = first;
    error
}

/// The workspace's package in the folder that a local reference names, wherever its name would point.
fn member_at(
    session: &Session,
    reference: &Reference,
    wanted: &Query,
) -> Result<Option<Found>, CommandError> {
    let Some(folder) = reference.local() else { return Ok(None) };
    let folder = crate::env::absolute(&session.environment.current, folder.as_ref());
    let search = session.places.search();
    match session.workspace.members.iter().find(|member| member.folder == folder) {
        Some(_) => Ok(search.find_at(wanted, &folder)?),
        None => Ok(None),
    }
}

/// The workspace's package that replaces the wanted one, wherever its name would point.
fn replacing_member(session: &Session, wanted: &Query) -> Result<Option<Found>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let Some(replaced) = lock.replacement(&wanted.id) else { return Ok(None) };
    let Some(member) = session.workspace.member(&replaced.by) else { return Ok(None) };
    let instead = Query { id: replaced.by.clone(), ..wanted.clone() };
    let found = session.places.search().find_at(&instead, &member.folder)?;
    Ok(found.map(|mut found| {
        let (id, by) = (replaced.id.clone(), replaced.by.clone());
        found.notes.insert(0, Note::Replaced { id, by });
        found
    }))
}

fn wanted_by(session: &Session, reference: &Reference) -> Query {
    let mut wanted = Query::new(reference, &session.reference_defaults());
    wanted.id = session.id_of_argument(reference);
    wanted
}
