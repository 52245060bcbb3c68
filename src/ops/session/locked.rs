//! Which locked package a reference of the command line means, and how its version is shown.

use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::Manifest;
use crate::manifest::source::nearest;
use crate::ops::session::installed_packs::folder_of;
use crate::ops::session::named::PackageName;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{ArtifactDigest, PackageId, Reference};

/// The package that is used for the one that a name means, as [`find_locked`] finds it.
///
/// # Errors
///
/// When it means no package, or several.
pub fn find_used(
    session: &Session,
    lock: &Lockfile,
    name: &PackageName,
) -> Result<PackageId, CommandError> {
    let id = find_locked(session, lock, name)?;
    let used = lock.used_for(&id);
    if *used != id {
        session.events.warning(&format!("`{id}` was replaced by `{used}`, which is shown instead"));
    }
    Ok(used.clone())
}

/// The locked package that a name means: by its id, or by the end of it that no other has.
///
/// # Errors
///
/// When it means no package, or several.
pub fn find_locked(
    session: &Session,
    lock: &Lockfile,
    name: &PackageName,
) -> Result<PackageId, CommandError> {
    let reference = name.reference();
    let id = session.id_of_argument(reference);
    // As it is written; also a package that was replaced, because people still use its name.
    if lock.find(&id).next().is_some() || lock.replacement(&id).is_some() {
        return Ok(id);
    }
    let name = reference.name().as_str();
    // `localhost/…`, as files have packages on this machine, cannot be read as base and name; mu prints `../…`, seen from the lock.
    let is_printed = |package: &&LockedPackage| {
        package.id.as_str() == name
            || reference
                .local()
                .is_some_and(|folder| session.shown.folder(&package.id).as_deref() == Some(folder))
    };
    let printed = lock.packages.iter().find(is_printed);
    if let Some(package) = printed.filter(|_| reference.base().is_none()) {
        return Ok(package.id.clone());
    }
    // By the end of the name. Several majors of a package follow each other, and are one answer.
    let mut meant: Vec<&PackageId> = lock
        .packages
        .iter()
        .map(|package| &package.id)
        .chain(lock.replaced.iter().map(|replaced| &replaced.id))
        .filter(|id| {
            reference.base().is_none()
                && (id.name_str() == name || id.name_str().ends_with(&format!("/{name}")))
        })
        .collect();
    meant.dedup();
    // `acme/net/subnet` may be the element `subnet` of the package `acme/net`.
    if meant.is_empty()
        && let Some(id) = package_of_element(session, lock, reference)
    {
        return Ok(id);
    }
    match &meant[..] {
        [one] => Ok((*one).clone()),
        [] => {
            let error = CommandError::new(Code::NotFound, format!("`{id}` is not installed here"));
            // Their common prefix before the name does not matter.
            let ids = || lock.packages.iter().map(|package| &package.id);
            let like = nearest(id.name_str(), ids().map(PackageId::name_str));
            let like = like.and_then(|name| ids().find(|id| id.name_str() == name));
            let like = like.or_else(|| {
                let near = nearest(name, ids().map(last_name))?;
                ids().find(|id| last_name(id) == near)
            });
            Err(match like {
                Some(id) => error.hint(format!("did you mean `{id}`?")),
                None => error.hint("`mu list` shows what is installed"),
            })
        }
        several => Err(ambiguous(name, several)),
    }
}

fn last_name(id: &PackageId) -> &str {
    id.name_str().rsplit('/').next().unwrap_or_default()
}

/// The locked package whose element a reference names, as the installed version exports it.
pub(crate) fn package_of_element(
    session: &Session,
    lock: &Lockfile,
    reference: &Reference,
) -> Option<PackageId> {
    let whole = session.id_of_argument(reference);
    let mut place = whole.as_str();
    while let Some((shorter, _)) = place.rsplit_once('/') {
        place = shorter;
        let Ok(id) = PackageId::parse(place) else { break };
        if lock.find(&id).next().is_none() {
            continue;
        }
        // The longest prefix that is locked decides: a shorter one would be another package.
        let element = whole.as_str().get(place.len() + 1..)?;
        let exports = exports_here(session, &id)?;
        return exports.iter().any(|export| export == element).then_some(id);
    }
    None
}

/// What the installed version of a package exports; `None` if it is not installed.
pub(crate) fn exports_here(session: &Session, id: &PackageId) -> Option<Vec<String>> {
    let folder = session.packs().pack_path(&folder_of(id));
    Some(Manifest::load_head(&folder).ok()??.exports)
}

/// The error about a name that several packages have.
pub(crate) fn ambiguous(
    name: &str,
    ids: impl IntoIterator<Item = impl std::fmt::Display>,
) -> CommandError {
    let ids: Vec<String> = ids.into_iter().map(|id| format!("`{id}`")).collect();
    CommandError::new(Code::Usage, format!("`{name}` could be {}", ids.join(" or ")))
        .hint("name one of them in full")
}

/// A locked package's version for people: with its commit if the version says nothing, and with its channel.
pub fn version_of(package: &LockedPackage) -> String {
    let commit = package.commit.as_ref();
    let commit = commit.filter(|_| !package.is_versioned() || package.reference.is_some());
    let commit = commit.map(|commit| commit.get(..7).unwrap_or(commit));
    let artifact = package.artifact.map(|digest| digest.to_string());
    let commit = commit.or(artifact.as_deref().map(ArtifactDigest::shortened));
    let details: Vec<&str> = commit.into_iter().chain(package.channel.as_deref()).collect();
    match details.is_empty() {
        true => package.version.clone(),
        false => format!("{} ({})", package.version, details.join(", ")),
    }
}
