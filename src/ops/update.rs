//! `update`: moves locked versions, up or down, within what the manifests ask for.

use std::collections::BTreeSet;

use crate::index::Requirement;
use crate::lock::Lockfile;
use crate::ops::get::id_of;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::sync::sync;
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference};
use crate::select::Update;

/// Who asks for the version in `mu update PKG#VERSION`; never recorded in a lock.
pub const UPDATE: &str = "mu update";

/// Moves everything to the newest that fits, or only what `texts` name (`PKG` or `PKG#VERSION`).
///
/// # Errors
///
/// When one of them is not locked, and for all that [`sync`] fails for.
pub fn update(
    session: &mut Session,
    texts: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let previous = session.lockfile()?.unwrap_or_default();
    let mut requirements = Requirements::collect(session, previous.extra.clone())?;
    let mut moving = BTreeSet::new();
    for text in texts {
        let reference = Reference::parse(text)?;
        let id = find_locked(session, &previous, &reference)?;
        if reference.version().is_some() {
            requirements.asked.push(Asked {
                by: UPDATE.to_owned(),
                requirement: Requirement::new(id.clone(), reference.spec()),
                reference,
                from: session.environment.current.clone(),
            });
        }
        moving.insert(id);
    }
    let update = if texts.is_empty() { Update::Everything } else { Update::Packages(moving) };
    sync(session, &requirements, update, &[], dry_run)
}

/// The locked package that a reference means: by its id, or by a name that only one has.
///
/// # Errors
///
/// When none is meant, or several are.
pub fn find_locked(
    session: &Session,
    lock: &Lockfile,
    reference: &Reference,
) -> Result<PackageId, CommandError> {
    let id = id_of(session, reference);
    if lock.find(&id).next().is_some() {
        return Ok(id);
    }
    let name = reference.name().as_str();
    // `localhost/…`, as mu prints what is on this machine, does not read as base and name.
    let printed = lock.packages.iter().find(|package| package.id.as_str() == name);
    if let Some(package) = printed.filter(|_| reference.base().is_none()) {
        return Ok(package.id.clone());
    }
    let mut meant: Vec<&PackageId> = lock
        .packages
        .iter()
        .map(|package| &package.id)
        .filter(|id| {
            reference.base().is_none()
                && (id.name_str() == name || id.name_str().ends_with(&format!("/{name}")))
        })
        .collect();
    meant.dedup();
    match &meant[..] {
        [one] => Ok((*one).clone()),
        [] => {
            let error = CommandError::new(Code::NotFound, format!("`{id}` is not installed here"));
            let names: Vec<&str> =
                lock.packages.iter().map(|package| package.id.as_str()).collect();
            Err(match crate::manifest::source::nearest(id.as_str(), names) {
                Some(name) => error.hint(format!("did you mean `{name}`?")),
                None => error.hint("`mu list` shows what is"),
            })
        }
        several => {
            let names: Vec<String> = several.iter().map(|id| format!("`{id}`")).collect();
            Err(CommandError::new(Code::Usage, format!("`{name}` could be {}", names.join(" or "))))
        }
    }
}
