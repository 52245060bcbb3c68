//! The part of `Mu.lock` about one package: the exact versions that it was built with.

use std::collections::BTreeSet;

use crate::lock::{FILE_NAME, Lockfile};
use crate::manifest::edit::Section;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::requester::Requester;
use crate::ops::solve::names;
use crate::ops::solve::resolve::resolve;
use crate::ops::{Code, CommandError, Session};
use crate::reference::PackageId;
use crate::select::Update;
use crate::workspace::Member;

/// The part of `lock` about the dependencies of `member`; if it is incomplete, versions are chosen as `mu get`
/// would, and nothing is written. `None` if the package has no dependencies.
///
/// # Errors
///
/// When a reference in the lock cannot be read, or versions must be chosen and cannot be.
pub(super) fn cut_or_resolve(
    session: &Session,
    lock: &Lockfile,
    member: &Member,
) -> Result<Option<Lockfile>, CommandError> {
    if member.manifest.dependencies.is_empty() {
        return Ok(None);
    }
    // Without what `mu get` was given: no manifest requires it.
    let required = names::collect_looked_up(session, Vec::new())?;
    let lacking = match cut(session, &required, lock, member) {
        Ok(part) => return Ok(Some(part)),
        Err(lacking) => lacking,
    };
    let unknown = || {
        format!(
            "`{FILE_NAME}` does not name the version of `{lacking}` that `{}` uses",
            member.manifest.name
        )
    };
    let requirements = names::collect_looked_up(session, lock.extra.clone())?;
    let resolved = resolve(session, &requirements, Update::Nothing)
        .map_err(|error| error.while_doing(unknown()))?;
    session.save_index();
    cut(session, &required, &resolved.lock, member)
        .map(Some)
        .map_err(|_| CommandError::new(Code::LockOutdated, unknown()).hint("run `mu get` first"))
}

/// Cuts `lock` down to what `member` depends on; `requirements` are those of the manifests.
///
/// # Errors
///
/// A dependency whose version the lock does not name.
fn cut(
    session: &Session,
    requirements: &Requirements,
    lock: &Lockfile,
    member: &Member,
) -> Result<Lockfile, PackageId> {
    let own = Requester::from_member(member);
    // First, the direct dependencies. Each must be locked for exactly this requirement, or the lock is older than the
    // manifest.
    let mut direct = BTreeSet::new();
    for asked in requirements.asked.iter().filter(|asked| asked.by == own) {
        let id = &asked.requirement.id;
        let requested = asked.requested();
        let is_locked = lock.find(id).any(|locked| locked.requested.contains(&requested))
            || lock.replacement(id).is_some_and(|one| one.requested.contains(&requested));
        let is_direct = matches!(asked.line, Some((_, Section::Dependencies)));
        if is_direct && !is_locked {
            return Err(id.clone());
        }
        direct.extend(Some(id.clone()).filter(|_| is_direct));
    }
    // Then, everything that these need.
    let mut reached = BTreeSet::new();
    let mut open: Vec<PackageId> = direct.into_iter().collect();
    while let Some(id) = open.pop() {
        if reached.insert(id.clone()) {
            open.extend(lock.find(&id).flat_map(|package| package.dependencies.iter().cloned()));
            open.extend(lock.replacement(&id).map(|replaced| replaced.by.clone()));
        }
    }
    let mut packages = lock.packages.clone();
    packages.retain(|package| reached.contains(&package.id));
    // Folders of this machine are nobody else's business; others find a package by its id.
    for package in &mut packages {
        if package.source.place.starts_with("file:") {
            package.source.place = format!("https://{}", package.id.base());
        }
        package.url = package.url.take().filter(|url| !url.starts_with("file:"));
    }
    // Last, who requires it: other members of the workspace mean nothing to others, so what they ask for goes.
    let members = session.workspace.members.iter().filter(|other| reached.contains(&other.id));
    let mut askers: BTreeSet<String> =
        members.map(|other| Requester::from_member(other).to_string()).collect();
    askers.insert(own.to_string());
    askers.extend(reached.iter().map(ToString::to_string));
    let mut replaced = lock.replaced.clone();
    replaced.retain(|replaced| reached.contains(&replaced.id));
    // The pack of a replaced package stays on this machine.
    replaced.iter_mut().for_each(|replaced| replaced.kept = None);
    let requested = packages.iter_mut().map(|package| &mut package.requested);
    for requested in requested.chain(replaced.iter_mut().map(|one| &mut one.requested)) {
        requested.retain(|requested| askers.contains(&*requested.by));
    }
    let resolution = lock.resolution.clone();
    Ok(Lockfile { resolution, packages, replaced, ..Lockfile::default() })
}
