//! The part of `Mu.lock` about one package: the exact versions that it was built with.

use std::collections::BTreeSet;

use crate::lock::{FILE_NAME, Lockfile};
use crate::manifest::edit::Section;
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
    let lacking = match cut(session, lock, member)? {
        Part::Nothing => return Ok(None),
        Part::Whole(part) => return Ok(Some(part)),
        Part::Lacks(id) => id,
    };
    let unknown = || {
        format!(
            "`{FILE_NAME}` does not name the version of `{lacking}` that `{}` uses",
            member.manifest.name
        )
    };
    let requirements = names::collect(session, lock.extra.clone())?;
    let resolved = resolve(session, &requirements, Update::Nothing)
        .map_err(|error| error.while_doing(unknown()))?;
    session.save_index();
    match cut(session, &resolved.lock, member)? {
        Part::Nothing => Ok(None),
        Part::Whole(part) => Ok(Some(part)),
        Part::Lacks(_) => {
            let error = CommandError::new(Code::LockOutdated, unknown());
            Err(error.hint("run `mu get` first"))
        }
    }
}

/// What a lock says about a package's dependencies.
enum Part {
    /// The package has none.
    Nothing,
    /// Everything that it depends on.
    Whole(Lockfile),
    /// The lock does not name the version of this one.
    Lacks(PackageId),
}

/// Cuts `lock` down to what `member` depends on.
///
/// # Errors
///
/// When a reference in the lock cannot be read.
fn cut(session: &Session, lock: &Lockfile, member: &Member) -> Result<Part, CommandError> {
    if member.manifest.dependencies.is_empty() {
        return Ok(Part::Nothing);
    }
    let own = Requester::of(member);
    let requirements = names::collect(session, Vec::new())?;
    let mut direct = BTreeSet::new();
    for asked in requirements.asked.iter().filter(|asked| asked.by == own) {
        let id = &asked.requirement.id;
        let requested = asked.requested();
        let is_locked = lock.find(id).any(|locked| locked.requested.contains(&requested))
            || lock.replacement(id).is_some_and(|one| one.requested.contains(&requested));
        let is_direct = matches!(asked.line, Some((_, Section::Dependencies)));
        if is_direct && !is_locked {
            return Ok(Part::Lacks(id.clone()));
        }
        direct.extend(Some(id.clone()).filter(|_| is_direct));
    }
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
    let members = session.workspace.members.iter().filter(|other| reached.contains(&other.id));
    let mut askers: BTreeSet<String> =
        members.map(|other| Requester::of(other).to_string()).collect();
    askers.insert(own.to_string());
    askers.extend(reached.iter().map(ToString::to_string));
    let mut replaced = lock.replaced.clone();
    replaced.retain(|replaced| reached.contains(&replaced.id));
    replaced.iter_mut().for_each(|replaced| replaced.kept = None);
    let requested = packages.iter_mut().map(|package| &mut package.requested);
    for requested in requested.chain(replaced.iter_mut().map(|one| &mut one.requested)) {
        requested.retain(|requested| askers.contains(&*requested.by));
    }
    let resolution = lock.resolution.clone();
    Ok(Part::Whole(Lockfile { resolution, packages, replaced, extra: Vec::new() }))
}
