//! The package that a reference of the command line names in its registry, for questions about packages that
//! need not be installed.

use std::sync::Arc;

use crate::index::Universe as _;
use crate::index::releases::Releases;
use crate::ops::apply::element::find_package;
use crate::ops::explain::failure::{self, unavailable};
use crate::ops::explain::{other_places, own_packages};
use crate::ops::requirements::Requirements;
use crate::ops::requirements::names::package_here;
use crate::ops::session::no_folder::local_folder;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Reference};

/// A package, and its versions in its registry.
pub(super) struct Published {
    pub(super) reference: Reference,
    pub(super) id: PackageId,
    pub(super) releases: Arc<Releases>,
}

/// Asks the registry of the package that `text` names, directly or by one of its elements.
///
/// # Errors
///
/// When the reference cannot be read, or the registry cannot be reached or has no such package.
pub(super) fn published(session: &Session, text: &str) -> Result<Published, CommandError> {
    let mut notes = Vec::new();
    // What a word means here comes first (the lock, the manifest around the current folder), then what the registry has
    // by that name.
    let reference = package_here(session, Reference::parse(text)?);
    if reference.protocol().is_none() && reference.local().is_none() {
        declare_as_here(session, &session.id_of(&reference))?;
    }
    let reference = match reference.local() {
        Some(folder) => {
            local_folder(session, folder)?;
            reference
        }
        None => find_package(session, None, &reference, &mut notes)?,
    };
    let id = session.id_of(&reference);
    let index = session.index();
    index.declare(&id, &reference, &session.environment.current);
    let releases = index.published(&id).map_err(|error| unavailable(session, error))?;
    match releases.tried() {
        None => Ok(Published { reference, id, releases }),
        Some(tried) => {
            let error = absent(session, &id, tried);
            Err(notes.into_iter().fold(error, CommandError::hint))
        }
    }
}

/// Tells the index how this workspace reaches a package: a manifest may say more about that than its id.
fn declare_as_here(session: &Session, id: &PackageId) -> Result<(), CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    for asked in requirements.asked.iter().filter(|asked| asked.requirement.id == *id) {
        session.index().declare(id, &asked.reference.with_version(None), &asked.from);
    }
    Ok(())
}

/// The error about a package that its registry does not have.
fn absent(session: &Session, id: &PackageId, tried: &[String]) -> CommandError {
    let mut message = format!("there is no package `{id}`");
    for place in tried {
        message.push_str(&format!("\n  looked at {place}"));
    }
    let mut error = CommandError::new(Code::NotFound, message)
        .with_details(serde_json::json!({ "id": id.to_string(), "tried": tried }));
    if let Some(member) = session.places.member_of(id) {
        let place = own_packages::shown(&member.place);
        error = error.hint(format!("the workspace has it in `{place}`; it is not published"));
    }
    let similar = session.index().similar(id);
    let similar = similar.into_iter().map(|other| format!("did you mean `{other}`?"));
    let hints = other_places::installed(session, id).into_iter();
    let hints = hints.chain(other_places::stripped(session, id)).chain(similar);
    hints.fold(error, CommandError::hint).hint(failure::absent(session, id))
}
