//! `outdated`: which packages could move, how far within the requirements, and what exists beyond them.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use mu_provider::Commit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::index::releases::Releases;
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest;
use crate::ops::explain::failure::unavailable_error;
use crate::ops::requirements::check_chosen;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::supposed_installations;
use crate::ops::session::locked::version_of;
use crate::ops::solve::asking::{newest, obstacle, requirers_of_locked};
use crate::ops::solve::names;
use crate::ops::solve::planning::resolve_newest;
use crate::ops::solve::question::request;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{ArtifactDigest, PackageId, Reference};
use crate::select::{Obstacle, RequirementByRequirer, SelectionRequest, Update, incompatibilities};

/// A package that could move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outdated {
    /// The package.
    pub id: PackageId,
    /// Its version now.
    pub current: String,
    /// The newest that the requirements allow.
    pub allowed: String,
    /// The newest release of all.
    pub newest: String,
    /// Whether a manifest or the command line requires it.
    pub direct: bool,
    /// What keeps it from being the newest, if anything: `~1.5 by acmecorp/elk`.
    pub held_back_by: Vec<String>,
    /// The package that took its place, if its index says so.
    pub moved_to: Option<String>,
    /// The reason why its version was withdrawn, if it was; empty if none was given.
    pub yanked: Option<String>,
    /// What its authors say about its version, if they no longer look after it; empty if they say nothing.
    pub deprecated: Option<String>,
    /// Why its version cannot be used here any more, if it cannot: `needs kubernetes >=1.28, but it is 1.24`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<String>,
    /// Whether only `Mu.lock` holds it back; otherwise nothing requires more than its version.
    #[serde(skip)]
    pub only_locked: bool,
}

/// Finds the packages that could move: the locked ones, or those of a supposed installation, as
/// [`WhatIf::installed`](crate::ops::requirements::supposition::WhatIf::installed) has them.
pub fn outdated(session: &Session, supposed: &[String]) -> Result<Vec<Outdated>, CommandError> {
    let mut lock = session.lockfile()?.unwrap_or_default();
    let mut requirements = names::collect_looked_up(session, lock.extra.clone())?;
    if supposed.is_empty() {
        check_chosen(session, &requirements)?;
    } else {
        // The supposed installation is what is in use now. What of it nothing requires is asked for, or it would be
        // left out.
        requirements.installed = supposed_installations(session, supposed)?;
        lock = Arc::new(Lockfile::default());
        let packages = &mut Arc::make_mut(&mut lock).packages;
        for (id, installed) in requirements.installed.clone() {
            packages.push(LockedPackage::supposed(&id, &installed.version));
            let is_asked = requirements.asked.iter().any(|asked| asked.requirement.id == id);
            let written = session.index().written(&id).unwrap_or_else(|| id.to_string());
            if !is_asked {
                let any = manifest::Requirement::new(Reference::parse(&written)?);
                requirements.suppose(session, &Requester::Question, &any);
            }
        }
    }
    check_known(session, &lock)?;
    let requirements = Rc::new(requirements);
    let newest_lock = match resolve_newest(session, &requirements) {
        Ok(resolved) => resolved.lock,
        // `mu update` says why nothing can move, for example because a package pins a yanked version.
        Err(error) if error.code == Code::NoSolution => lock.clone(),
        Err(error) => return Err(error),
    };
    let request = request(session, &requirements, &lock, Update::Everything);
    let roots: BTreeSet<&str> = requirements.asked.iter().map(|asked| asked.by.as_str()).collect();
    // The manifests' requirements as written, not as an update would change them.
    let asking_for = |package: &LockedPackage| {
        let asked = requirements.asked.iter().filter(|asked| asked.requirement.id == package.id);
        let own = asked.filter(|asked| !asked.indirect);
        let own = own.map(|asked| (asked.by.to_string(), asked.requirement.clone()));
        let others =
            requirers_of_locked(package).into_iter().filter(|(by, _)| !roots.contains(by.as_str()));
        own.chain(others).collect::<Vec<RequirementByRequirer>>()
    };
    // Three versions of each: `current` is locked, `allowed` is where `mu update` would go, and `newest` is what there
    // is.
    let mut found = Vec::new();
    for package in lock.packages.iter().filter(|package| !package.source.is_authored_folder()) {
        let releases = session
            .index()
            .listed_releases(&package.id)
            .map_err(|error| unavailable_error(session, error))?;
        let now = successor(&newest_lock, package);
        let newest = newest(&releases, package.parsed_version().as_ref());
        let newest = newest.map(|version| version.to_string());
        let shown = |commit: Option<&Commit>, version: &str| match commit {
            Some(commit) if version == LockedPackage::NO_VERSION => commit.short().to_owned(),
            _ => version.to_owned(),
        };
        let is_other_archive = now.is_some_and(|now| {
            now.artifact != package.artifact
                || (package.source.is_url_archive() && now.archive != package.archive)
        });
        // A branch may have moved on without another version in its manifest.
        let is_other_commit = package.commit.is_some()
            && now
                .is_some_and(|now| now.version == package.version && now.commit != package.commit);
        let shown_with_content = |package: &LockedPackage| match package.revision() {
            _ if is_other_commit && package.version != LockedPackage::NO_VERSION => {
                version_of(package)
            }
            Some(digest) if is_other_archive => {
                format!("{} ({})", package.version, ArtifactDigest::shortened(&digest))
            }
            _ => shown(package.commit.as_ref(), &package.version),
        };
        let current = shown_with_content(package);
        let allowed = now.map_or_else(|| current.clone(), shown_with_content);
        let newest = newest
            .filter(|_| !is_other_archive && !is_other_commit)
            .unwrap_or_else(|| allowed.clone());
        let moved_to = moved_to(&releases);
        let details = package.parsed_version();
        let details =
            details.and_then(|version| releases.details(releases.position_of_version(&version)?));
        let yanked = details.and_then(|details| details.yanked.clone());
        let deprecated = details.and_then(|details| details.deprecated.clone());
        let own = request.settings.mu_version.as_ref();
        let unusable = details.into_iter().flat_map(|details| {
            incompatibilities(details, &request.settings.runtime, own).map(|one| one.of_one())
        });
        let unusable: Vec<String> = unusable.collect();
        let is_newest = current == allowed && current == newest;
        let is_fine =
            moved_to.is_none() && yanked.is_none() && deprecated.is_none() && unusable.is_empty();
        if is_newest && is_fine {
            continue;
        }
        let held_back_by = if allowed == newest {
            Vec::new()
        } else {
            let package = now.unwrap_or(package);
            obstacles(session, &request, package, &asking_for(package), &newest)
        };
        found.push(Outdated {
            id: package.id.clone(),
            direct: package.requested.iter().any(|requested| roots.contains(&*requested.by)),
            current,
            allowed,
            newest,
            held_back_by,
            moved_to,
            yanked,
            deprecated,
            unusable,
            only_locked: session.strategy().follows_lock(),
        });
    }
    session.save_index();
    Ok(found)
}

/// Offline, checks that something was learned about each package before: choosing would make do with what is installed.
fn check_known(session: &Session, lock: &Lockfile) -> Result<(), CommandError> {
    if !session.options.offline {
        return Ok(());
    }
    for package in lock.packages.iter().filter(|package| !package.source.is_authored_folder()) {
        session
            .index()
            .listed_releases(&package.id)
            .map_err(|error| unavailable_error(session, error))?;
    }
    Ok(())
}

/// What keeps a package from being at `newest`, in a few words.
fn obstacles(
    session: &Session,
    request: &SelectionRequest,
    package: &LockedPackage,
    asking: &[RequirementByRequirer],
    newest: &str,
) -> Vec<String> {
    let Some(first) = obstacle(session, request, package, asking, newest) else {
        return Vec::new();
    };
    match &first.obstacle {
        Obstacle::Asked(asked) => {
            asked.iter().map(|(by, asked)| format!("{asked} by {by}")).collect()
        }
        Obstacle::Nothing => vec![format!("{newest} would fit by itself")],
        Obstacle::Unknown => vec![format!("{newest} may fit: that was not tried to the end")],
        Obstacle::NotAsked => vec![format!("nothing requires {newest}")],
        _ => Some(first.in_short(&session.reference_defaults().base))
            .filter(|text| !text.is_empty())
            .into_iter()
            .collect(),
    }
}

/// The entry for `package` in `lock`: of several majors, its own.
fn successor<'lock>(
    lock: &'lock Lockfile,
    package: &LockedPackage,
) -> Option<&'lock LockedPackage> {
    let major = |package: &LockedPackage| package.parsed_version().map(|version| version.major());
    let same = lock.find(&package.id).find(|other| major(other) == major(package));
    same.or_else(|| lock.find(&package.id).last())
}

fn moved_to(releases: &Releases) -> Option<String> {
    let last = releases.len().checked_sub(1)?;
    releases.details(last)?.moved_to.as_ref().map(ToString::to_string)
}
