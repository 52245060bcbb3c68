//! Which packages of a lock the settings patch: what the lock says of that follows the settings and the patches' files.
//!
//! Nothing is applied here; `apply::patched` does that, once the content is there.
//!
//! And which packages of `overrides` in the settings do not satisfy what packages require. An override counts all the
//! same; mu says at every run that it goes against a requirement.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use mu_provider::{ArchiveDigest, PlaceKind};
use sha2::{Digest as _, Sha256};

use crate::contents::recorded::as_recorded;
use crate::index::Requirement;
use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::ops::requirements::overtaken::LockDifference;
use crate::ops::requirements::requester::Requester;
use crate::ops::solve::is_locked_as;
use crate::ops::solve::record::Resolved;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::{Base, VersionSpec};
use crate::workspace::PatchFile;

/// The patch of the settings for a locked package, if there is one. An exact version wins over a range. Packages in folders of
/// this machine are not patched: their files are changed in place.
pub(crate) fn patch_of<'s>(
    session: &'s Session,
    package: &LockedPackage,
) -> Result<Option<&'s PatchFile>, CommandError> {
    if is_in_folder(package) {
        return Ok(None);
    }
    let accepts = |patch: &&PatchFile| {
        patch.id == package.id && is_of_versions(package, patch.versions.as_ref())
    };
    let is_exact = |patch: &PatchFile| {
        matches!(patch.versions, Some(VersionSpec::Pin(_) | VersionSpec::Commit(_)))
    };
    // A patch for `a#1.2.0` counts before one for `a#^1`, so that one version can be patched differently.
    let mut fitting: Vec<&PatchFile> =
        session.workspace.settings.patches.iter().filter(accepts).collect();
    if fitting.iter().any(|patch| is_exact(patch)) {
        fitting.retain(|patch| is_exact(patch));
    }
    match fitting[..] {
        [] => Ok(None),
        [patch] => Ok(Some(patch)),
        [first, second, ..] => {
            let message = format!(
                "two patches are for `{}` {}: `{}` and `{}`",
                package.id, package.version, first.key, second.key
            );
            Err(CommandError::new(Code::Workspace, message).hint(
                "remove one of them from `patches` in `.mu/workspace.yaml`, or narrow its range",
            ))
        }
    }
}

/// Whether a locked package is of these versions; `None` means all.
pub(crate) fn is_of_versions(package: &LockedPackage, versions: Option<&VersionSpec>) -> bool {
    match versions {
        None => true,
        Some(VersionSpec::Commit(commit)) => {
            package.commit.as_ref().is_some_and(|own| commit.matches(own))
        }
        Some(spec) => package.parsed_version().is_some_and(|version| spec.accepts(&version, true)),
    }
}

/// Where the file of a patch is.
pub(crate) fn patch_path(session: &Session, patch: &PatchFile) -> PathBuf {
    session.workspace.root.join(&patch.file)
}

/// The content of a patch, and its digest.
pub(crate) fn read(
    session: &Session,
    patch: &PatchFile,
) -> Result<(Vec<u8>, ArchiveDigest), CommandError> {
    let path = patch_path(session, patch);
    let Some(content) = session.workspace.opened()?.read(&patch.file)? else {
        let message = format!("the patch for `{}` is not there: `{}`", patch.key, path.display());
        return Err(CommandError::new(Code::NotFound, message).hint(format!(
            "restore the file, or remove the line `{}` from `patches` in `.mu/workspace.yaml`",
            patch.key
        )));
    };
    let recorded = as_recorded(&path, content, &session.environment);
    let content = recorded.map_err(|error| CommandError::from_error(Code::Io, error))?;
    let digest = ArchiveDigest::from_bytes(Sha256::digest(&content).into());
    Ok((content, digest))
}

/// Writes into the lock which patches apply to its packages. What they make of the content is known from the lock before, or from
/// `also`. Returns how that differs from before.
pub(crate) fn record_patches(
    session: &Session,
    resolved: &mut Resolved,
    also: Option<&Lockfile>,
) -> Result<Vec<LockDifference>, CommandError> {
    let patches = &session.workspace.settings.patches;
    let mut differences = Vec::new();
    if patches.is_empty() && resolved.lock.packages.iter().all(|package| package.patch.is_none()) {
        return Ok(differences);
    }
    let mut used = BTreeSet::new();
    for index in 0..resolved.lock.packages.len() {
        let package = &resolved.lock.packages[index];
        let found = patch_of(session, package)?;
        used.extend(found.map(|patch| &patch.key));
        let patch = found.map(|patch| read(session, patch)).transpose()?.map(|(_, digest)| digest);
        // The digest of the patched content stays known if neither the patch nor what it applies to has changed.
        let is_same = |before: &&LockedPackage| {
            before.patch == patch
                && before.digest == package.digest
                && before.version == package.version
        };
        let known = [Some(&*resolved.previous), also].into_iter().flatten();
        let same = known.flat_map(|lock| lock.find(&package.id)).filter(is_same);
        let patched = patch.and_then(|_| { same }.find_map(|before| before.patched));
        if (package.patch, package.patched) == (patch, patched) {
            continue;
        }
        if package.patch != patch {
            let id = package.id.clone();
            differences.push(match (package.patch, patch) {
                (None, _) => LockDifference::PatchNotLocked(id),
                (_, None) => LockDifference::PatchNotSet(id),
                _ => LockDifference::PatchChanged(id),
            });
        }
        let package = &mut Arc::make_mut(&mut resolved.lock).packages[index];
        (package.patch, package.patched) = (patch, patched);
        // It was built of other content.
        package.built = None;
    }
    let unused = patches.iter().filter(|patch| !used.contains(&patch.key));
    resolved.warnings.extend(unused.map(|patch| {
        let is_in_folder = resolved.lock.find(&patch.id).any(is_in_folder);
        Warning::UnusedPatch { key: patch.key.clone(), is_in_folder }
    }));
    Ok(differences)
}

/// Whether the files of a package are in a folder of this machine, where a person can change them.
pub(crate) fn is_in_folder(package: &LockedPackage) -> bool {
    package.source.is_authored_folder() || package.source.is_pack()
}

/// The warnings about settings that have no effect on a lock.
pub(super) fn unused_settings(session: &Session, lock: &Lockfile) -> Vec<Warning> {
    let mut warnings = unused_overrides(session, lock);
    warnings.extend(idle_registries(session, lock));
    warnings
}

/// A warning for each override of the workspace that stands for no package in a lock. What the user overrides is for every workspace.
fn unused_overrides(session: &Session, lock: &Lockfile) -> Vec<Warning> {
    if session.options.locked || session.options.frozen {
        // Nothing is chosen, so nobody can mean to change what is.
        return Vec::new();
    }
    let own = session.workspace.settings.overrides_here.iter();
    let unused = own.filter(|id| lock.find(id).next().is_none() && lock.replacement(id).is_none());
    unused.map(|id| Warning::UnusedOverride { id: id.clone() }).collect()
}

/// A warning for each registry that would have a locked package which is reached on this machine, by its path, whatever registries say.
fn idle_registries(session: &Session, lock: &Lockfile) -> Vec<Warning> {
    let of_paths = Base::localhost();
    let registries = session.workspace.settings.registries.iter();
    let of_paths = registries.filter(|registry| registry.prefix.starts_with(of_paths.as_str()));
    let by_path = |package: &LockedPackage| {
        let provider = session.index().providers().get(&package.source.provider);
        provider.is_ok_and(|provider| {
            matches!(provider.facts().kind, PlaceKind::Repository | PlaceKind::Folder)
        })
    };
    let idle = of_paths.filter_map(|registry| {
        let mut packages = lock.packages.iter();
        let is_idle = |one: &&LockedPackage| registry.rest_of(&one.id).is_some() && by_path(one);
        let id = packages.find(is_idle)?.id.clone();
        Some(Warning::IdleRegistry { prefix: registry.prefix.clone(), id })
    });
    idle.collect()
}

/// A warning for each overridden package in a lock that does not satisfy everything that is required of it.
pub(super) fn overridden(lock: &Lockfile) -> Vec<Warning> {
    let is_overridden = |package: &&LockedPackage| {
        // Packages of the workspace are reported as such.
        !package.source.is_workspace_folder() && Requester::override_of(package).is_some()
    };
    let overridden = lock.packages.iter().filter(is_overridden);
    let warning = |package: &LockedPackage| {
        let broken = package.requested.iter().filter(|requested| !is_satisfied(package, requested));
        let broken: Vec<Requested> = broken.cloned().collect();
        let (id, version) = (package.id.clone(), package.version.clone());
        (!broken.is_empty()).then_some(Warning::Overridden { id, version, broken })
    };
    overridden.filter_map(warning).collect()
}

/// Whether a locked package is what was required of it.
fn is_satisfied(package: &LockedPackage, requested: &Requested) -> bool {
    let requirement = Requirement::parse(package.id.clone(), &requested.spec);
    let Some(Requirement { spec, .. }) = requirement else { return true };
    Requester::is_override(requested)
        || requested.capability().is_some()
        // Nothing says what it is.
        || !package.is_versioned()
        || package.reference.as_deref() == Some(spec.as_str())
        || is_locked_as(package, &spec)
}
