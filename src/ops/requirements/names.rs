//! What partly qualified names in the workspace's own manifests mean: the missing parts come from the package
//! that declares them, as everywhere.
//!
//! A name of one segment means the declaring package's namespace first, and no namespace if there is no such
//! package. The workspace, the lock, or earlier requests of this run know whether there is one; nothing here
//! sends a request.

use std::collections::BTreeSet;

use mu_formats::crossplane;

use crate::formats;
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::Requirement;
use crate::ops::requirements::requester::Requester;
use crate::ops::session::locked;
use crate::ops::session::locked::{locally_called, locked_as_called, package_of_element};
use crate::ops::{Code, CommandError, Session};
use crate::reference::{Defaults, PackageId, Reference};
use crate::workspace::{Member, Settings, Workspace};

/// What a partly qualified name may mean.
#[derive(Debug)]
pub(crate) struct Meant {
    /// The package that comes first.
    pub(crate) first: PackageId,
    /// The package that is meant if the first does not exist, if that could be another one.
    pub(crate) otherwise: Option<PackageId>,
}

/// What `reference`, which does not name a folder, may mean in the manifest of `member`.
pub(crate) fn meant(member: &Member, reference: &Reference) -> Meant {
    let first = reference.id(&member.defaults);
    if member.defaults.namespace.is_none() || !reference.is_single_name() {
        return Meant { first, otherwise: None };
    }
    let otherwise = reference.id(&Defaults { namespace: None, ..member.defaults.clone() });
    Meant { otherwise: Some(otherwise).filter(|otherwise| *otherwise != first), first }
}

/// The id that `reference` means in the manifest of `member`; for an unknown name, the first possibility.
pub(crate) fn id_in(session: &Session, member: &Member, reference: &Reference) -> PackageId {
    if reference.local().is_some() {
        let (places, workspace) = (&session.places, &session.workspace);
        return places.id_of(reference, &session.reference_defaults(), &member.folder, workspace);
    }
    session.places.own_name(written_id(session, member, reference))
}

/// The id as written, whatever the name of the workspace's package there.
pub(crate) fn written_id(session: &Session, member: &Member, reference: &Reference) -> PackageId {
    let Meant { first, otherwise } = meant(member, reference);
    match otherwise {
        Some(otherwise)
            if is_known_to_exist(session, member, &first, &otherwise) == Some(false) =>
        {
            otherwise
        }
        _ => first,
    }
}

/// Checks that a reference in the manifest of `member` says where its package is, if that is the manifest of a tool that knows no
/// registry by itself: mu's own would have other packages of that name, or none.
pub(crate) fn check_place(
    workspace: &Workspace,
    member: &Member,
    reference: &Reference,
    id: &PackageId,
) -> Result<(), CommandError> {
    let is_open = reference.base().is_none() && reference.local().is_none();
    let is_known =
        || workspace.member(id).is_some() || workspace.settings.overrides.contains_key(id);
    if !is_open || !is_nowhere(&workspace.settings, id) || is_known() {
        return Ok(());
    }
    let format = formats::format_of_manifest(&member.manifest_path);
    if format.is_none_or(|format| format.name != crossplane::FORMAT.name) {
        return Ok(());
    }
    let (path, name) = (member.manifest_path.display(), reference.name().as_str());
    let message = format!("`{path}` requires `{name}` and does not say in which registry it is");
    Err(CommandError::new(Code::Manifest, message).hint(crossplane::hint_of_registry(name)))
}

/// Whether a package is searched at the default base only because nothing says where it is.
pub(crate) fn is_nowhere(settings: &Settings, id: &PackageId) -> bool {
    let mut registries = settings.registries.iter();
    id.base() == Defaults::default().base
        && !registries.any(|registry| id.as_str().starts_with(&registry.prefix))
}

/// A reference of the command line as the manifest of `member` means it: formats may have a place for packages that are named
/// by one word alone.
pub(crate) fn as_in(session: &Session, member: &Member, reference: &Reference) -> Reference {
    let format = formats::format_of_manifest(&member.manifest_path);
    let place = format.and_then(|format| format.place_of_word);
    let is_word = reference.is_single_name() && reference.protocol().is_none();
    let is_own = || session.places.member_of(&session.id_of_argument(reference)).is_some();
    let Some(place) = place.filter(|_| is_word && !is_own()) else { return reference.clone() };
    let full = Reference::parse(&place(reference.name().as_str()));
    full.map_or_else(|_| reference.clone(), |full| full.with_version(reference.version().cloned()))
}

/// A reference of the command line, as it is meant here: what is in use comes first. A name of one segment means what a manifest here
/// calls so, what it means in a manifest here, if that is locked and nothing else is meant by it, or the only locked package whose name ends so. If the manifest
/// around the current folder has a place for names of one segment, they mean that.
pub(crate) fn as_here(session: &Session, reference: Reference) -> Reference {
    if !reference.is_single_name() || reference.protocol().is_some() {
        return reference;
    }
    let around = locked::around(session).ok().flatten();
    if let Some(around) = around {
        let there = as_in(session, &session.workspace.members[around], &reference);
        if there.base().is_some() {
            return there;
        }
    }
    let Some(lock) = session.lockfile().ok().flatten() else { return reference };
    let own = session.id_of_argument(&reference);
    let is_locked = lock.find(&own).next().is_some() || lock.replacement(&own).is_some();
    if session.places.member_of(&own).is_some() || is_locked {
        return reference;
    }
    let leaf = reference.name().as_str();
    let called = || BTreeSet::from_iter(locally_called(session, &lock, leaf));
    let written = || {
        let members = session.workspace.members.iter();
        let ids = members.map(|member| written_id(session, member, &reference));
        BTreeSet::from_iter(ids.filter(|id| lock.find(id).next().is_some()))
    };
    let ends_so = || {
        let others = lock.packages.iter().filter(|package| !package.source.is_workspace_folder());
        let ids = others.map(|package| &package.id);
        BTreeSet::from_iter(ids.filter(|id| id.name().leaf() == leaf).cloned())
    };
    let ways: [&dyn Fn() -> BTreeSet<PackageId>; 3] = [&called, &written, &ends_so];
    let meant = ways.iter().map(|way| way()).find(|meant| !meant.is_empty()).unwrap_or_default();
    let [id] = &Vec::from_iter(meant)[..] else { return reference };
    in_use(session, id, &reference)
}

/// The package that a reference of the command line means here, which may name one of its elements.
pub(crate) fn package_here(
    session: &Session,
    reference: Reference,
) -> Result<Reference, CommandError> {
    let reference = in_use_here(session, reference)?;
    let found = element_here(session, &reference);
    Ok(found.unwrap_or(reference))
}

/// A reference of the command line, as the package in use that it names by the whole of its name or the end of it, if there is one. What
/// is new here is not named so: `mu add acme/web` means that package, whatever else ends in it.
pub(crate) fn in_use_here(
    session: &Session,
    reference: Reference,
) -> Result<Reference, CommandError> {
    let reference = as_here(session, reference);
    if reference.base().is_some() || reference.protocol().is_some() {
        return Ok(reference);
    }
    if let Some(repository) = repository_in_folder(session, &reference) {
        return Ok(repository);
    }
    let own = session.id_of_argument(&reference);
    let Some(lock) = session.lockfile()? else { return Ok(reference) };
    if session.places.member_of(&own).is_some() || lock.replacement(&own).is_some() {
        return Ok(reference);
    }
    let Some(id) = locked_as_called(session, &lock, &reference)? else { return Ok(reference) };
    // A repository in a folder is printed as that folder, which need not be a package itself.
    let is_folder = |package: &LockedPackage| package.source.is_authored_folder();
    let is_itself = match reference.local() {
        Some(_) => lock.find(&id).all(is_folder),
        None => id == own,
    };
    if is_itself {
        return Ok(reference);
    }
    // The manifest that requires it says where it is.
    for member in &session.workspace.members {
        let manifest = &member.manifest;
        for entry in manifest.all_dependencies() {
            if id_in(session, member, &entry.reference) == id {
                let anywhere = entry.reference.with_version(None);
                session.index().declare(&id, &anywhere, &member.folder);
            }
        }
    }
    Ok(in_use(session, &id, &reference))
}

/// The repository on this machine that a manifest here requires, if a reference is the folder by which mu prints it: it need not be
/// locked yet.
fn repository_in_folder(session: &Session, reference: &Reference) -> Option<Reference> {
    let folder = reference.local()?;
    for member in &session.workspace.members {
        let all = member.manifest.all_dependencies();
        for Requirement { reference: required, .. } in all {
            if required.local().is_some() {
                continue;
            }
            let id = id_in(session, member, required);
            if session.shown.folder(&id).as_deref() == Some(folder) {
                session.index().declare(&id, &required.with_version(None), &member.folder);
                return Some(required.with_version(reference.version().cloned()));
            }
        }
    }
    None
}

/// The package in use that exports what a reference names, if it is one and nothing in use has that name.
fn element_here(session: &Session, reference: &Reference) -> Option<Reference> {
    if reference.local().is_some() || reference.protocol().is_some() {
        return None;
    }
    let lock = session.lockfile().ok().flatten()?;
    let own = session.id_of_argument(reference);
    if session.places.member_of(&own).is_some() || lock.find(&own).next().is_some() {
        return None;
    }
    let id = package_of_element(session, &lock, reference)?;
    Some(in_use(session, &id, reference))
}

/// The reference to a package that is in use, with the version that another one names.
fn in_use(session: &Session, id: &PackageId, named: &Reference) -> Reference {
    let written = session.index().written(id).unwrap_or_else(|| id.to_string());
    let full = Reference::parse(&written);
    full.map_or(named.clone(), |full| full.with_version(named.version().cloned()))
}

/// Whether the package `first` exists, without which `otherwise` is meant; `None` if that is not known yet.
pub(crate) fn is_known_to_exist(
    session: &Session,
    member: &Member,
    first: &PackageId,
    otherwise: &PackageId,
) -> Option<bool> {
    if session.places.member_of(first).is_some() {
        return Some(true);
    }
    // From what costs nothing to what proves less: the workspace, what this run has asked, and the lock. If the
    // manifest's package is locked by its other meaning, the first one was not there when that was written.
    if let Some(known) = session.known_names().get(first) {
        return Some(*known);
    }
    // The code that needs the lock reports that it cannot be read.
    let lock = session.lockfile().ok().flatten()?;
    if lock.find(first).next().is_some() || lock.replacement(first).is_some() {
        return Some(true);
    }
    // The package in its folder may be named otherwise, and is locked by its own name.
    let otherwise = session.places.own_name(otherwise.clone());
    is_asked_by(&lock, &otherwise, Requester::from_member(member).as_str()).then_some(false)
}

fn is_asked_by(lock: &Lockfile, id: &PackageId, by: &str) -> bool {
    let locked = lock.find(id).flat_map(|package| &package.requested);
    let replaced = lock.replacement(id).into_iter().flat_map(|replaced| &replaced.requested);
    locked.chain(replaced).any(|requested| &*requested.by == by)
}

/// The unambiguous name of a package in the manifest of `member`: with the base if that is not the
/// workspace's, or if a name of one segment would mean the namespace of `member` first.
pub(crate) fn unambiguous_name(session: &Session, member: &Member, id: &PackageId) -> String {
    let base = session.reference_defaults().base;
    let is_near = id.base() == base && member.id.base() == base;
    let is_whole = id.name_str().contains('/') || member.defaults.namespace.is_none();
    let text = if is_near && is_whole { id.name_str() } else { id.as_str() };
    text.to_owned()
}
