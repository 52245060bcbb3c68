//! `pin` and `unpin`: writes the locked versions into manifests as pins, and undoes that.
//!
//! A comment after the entry keeps what was written before, so that `unpin` can restore it:
//! `- acme/utils#1.5.2 # pinned from ~1.5`. If there can be no comment, `pin` says what `unpin` will not know; `unpin` of a named
//! package requires what is compatible with the pin.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::index::{Candidate, Revision, Universe as _};
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::dependencies::{self, Dependency, NewVersion, Unnoted};
use crate::ops::apply::plan::Plan;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::pins::{NOTHING, locked_for, pin_of};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Version, VersionSpec};
use crate::select::Move;

/// What to pin, and how.
#[derive(Debug, Clone, Default)]
pub struct PinRequest {
    /// Packages; none means every dependency.
    pub packages: Vec<String>,
    /// Whether Git packages are pinned to their commit instead of their version.
    pub commits: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// Pins dependencies to their locked versions.
///
/// # Errors
///
/// When a package is not a dependency or not locked, and whenever [`crate::ops::apply::install::install`] fails.
pub fn pin(session: &Session, request: &PinRequest) -> Result<Outcome, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let branches = branches(session, &lock)?;
    change(session, request, |dependency| {
        if dependency.reference.spec().is_pinned() && !branches.contains(&dependency.id) {
            return Ok(None);
        }
        if lock.replacement(&dependency.id).is_some() {
            // Its replacement has no such version.
            return Ok(None);
        }
        let Some(package) = locked_for(&lock, &dependency.id, &dependency.reference) else {
            return Err(CommandError::new(
                Code::NotFound,
                format!(
                    "`{}` is not in Mu.lock, so there is no version to pin it to",
                    dependency.id
                ),
            )
            .hint("run `mu get` first"));
        };
        if package.source.is_own() {
            return Ok(None);
        }
        let pin = pin_of(package, request.commits)?;
        let before = dependency.reference.version_text().unwrap_or(NOTHING).to_owned();
        Ok(Some(NewVersion { version: Some(pin), note: Some(before) }))
    })
}

/// The locked packages that follow a branch, which looks like a tag, or a tag of an OCI registry, which can move.
///
/// If the repository cannot be reached, a name counts as a tag.
fn branches(session: &Session, lock: &Lockfile) -> Result<BTreeSet<PackageId>, CommandError> {
    let named = |package: &&LockedPackage| package.commit.is_some() && package.reference.is_some();
    let named: Vec<&LockedPackage> = lock.packages.iter().filter(named).collect();
    if !named.is_empty() {
        Requirements::collect(session, lock.extra.clone())?.declare(session);
    }
    let is_branch = |package: &LockedPackage| -> Option<bool> {
        let name = VersionSpec::parse(package.reference.as_deref()?).ok()?;
        let index = session.index();
        let releases = index.listed(&package.id).ok()?;
        let Revision::Untagged(revision) = index.revision(&releases, &name).ok()?? else {
            return None;
        };
        let (_, release) = index.release(&package.id, Candidate::Revision(&revision)).ok()?;
        Some(release.reference.as_ref()?.starts_with("refs/heads/"))
    };
    let moving = lock.packages.iter().filter(|package| package.artifact.is_some());
    let following =
        named.into_iter().filter(|package| is_branch(package) == Some(true)).chain(moving);
    Ok(following.map(|package| package.id.clone()).collect())
}

/// Undoes [`pin`]; other pins are changed only if they are named.
///
/// # Errors
///
/// When a package is not a dependency, and whenever [`crate::ops::apply::install::install`] fails.
pub fn unpin(session: &Session, request: &PinRequest) -> Result<Outcome, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let strategy = session.strategy();
    let left = RefCell::new(BTreeSet::new());
    let outcome = change(session, request, |dependency| {
        let spec = dependency.reference.spec();
        if !spec.is_pinned() {
            return Ok(None);
        }
        if dependency.note.is_none() && !dependency.is_named {
            // Its author meant it.
            left.borrow_mut().insert(dependency.reference.with_version(None).to_string());
            return Ok(None);
        }
        let mut version = match &dependency.note {
            Some(before) if before == NOTHING => None,
            Some(before) => Some(VersionSpec::parse(before)?),
            None => compatible(dependency, &lock)?,
        };
        if let VersionSpec::Pin(pin) = spec {
            let pinned = Version::parse(&pin.version().to_string())?;
            version = strategy.unpinned(version, &pinned);
        }
        Ok(Some(NewVersion { version, note: None }))
    })?;
    let left = left.into_inner();
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(String::as_str).collect();
        session.events.warning(&format!(
            "kept these pins, because no note of `mu pin` says what was there before: `{}`; `mu unpin {}` turns them into ranges",
            names.join("`, `"),
            names.join(" ")
        ));
    }
    Ok(outcome)
}

fn change(
    session: &Session,
    request: &PinRequest,
    decide: impl Fn(&Dependency) -> Result<Option<NewVersion>, CommandError>,
) -> Result<Outcome, CommandError> {
    let mut plan = Plan::new(session)?;
    let unnoted = dependencies::change(session, &mut plan.editing, &request.packages, decide)?;
    warn_of_lost(session, &unnoted);
    plan.carry_out(session, Move::Tidy, request.dry_run)
}

/// Warns of entries that nobody can take back to what they were.
fn warn_of_lost(session: &Session, unnoted: &[Unnoted]) {
    if unnoted.is_empty() {
        return;
    }
    let lost = unnoted.iter().map(|entry| {
        let path = &session.workspace.members[entry.member].manifest_path;
        let path = path.strip_prefix(&session.workspace.root).unwrap_or(path);
        let name = &entry.name;
        match &*entry.before {
            NOTHING => format!("`{name}` without a version in {}", path.display()),
            before => format!("`{name} {before}` in {}", path.display()),
        }
    });
    let lost: Vec<String> = lost.collect();
    session.events.warning(&format!(
        "there is no place for a note of what was there before, so `mu unpin` cannot restore it: {}",
        lost.join(", ")
    ));
}

/// The versions that are compatible with a pin whose earlier requirement is unknown.
fn compatible(
    dependency: &Dependency,
    lock: &Lockfile,
) -> Result<Option<VersionSpec>, CommandError> {
    let version = match dependency.reference.spec() {
        VersionSpec::Pin(pin) => Some(pin.version().to_string()),
        _ => locked_for(lock, &dependency.id, &dependency.reference)
            .filter(|package| package.has_version())
            .map(|package| package.version.clone()),
    };
    Ok(match version {
        Some(version) => Some(VersionSpec::parse(&format!("^{version}"))?),
        None => None,
    })
}
