//! `status`: the state of the workspace, without any request.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::formats;
use crate::lock::LockedPackage;
use crate::ops::apply::fetch::placed_fault;
use crate::ops::explain::places;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::overtaken::LockDifference;
use crate::ops::session::installed::{named, needed_packs};
use crate::ops::session::opening::warn_of_redirected_bases;
use crate::ops::session::shown;
use crate::ops::solve::copies::copies_in_lock;
use crate::ops::{CommandError, Session};
use crate::packs::WantedPack;
use crate::reference::PackageId;

/// The state of a workspace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Its root folder.
    #[serde(serialize_with = "shown::path")]
    #[schemars(with = "String")]
    pub root: PathBuf,
    /// Its own packages.
    pub members: Vec<Member>,
    /// The state of its lock.
    pub lock: LockStatus,
    /// Locked packages that are not installed as the lock says.
    pub missing: Vec<String>,
    /// Packages that are used from the workspace instead of a registry.
    pub placed: Vec<Placed>,
    /// What `mu get` was given without `--save`, which Mu.lock keeps until `mu remove`.
    pub extra: Vec<String>,
    /// Whether the lock matches the manifests, and all of it is installed.
    pub up_to_date: bool,
    /// If there are no packages because a manifest has a wrong name: that name, and the right one.
    #[serde(skip)]
    pub misspelt: Option<(String, &'static str)>,
}

/// A package of the workspace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Its folder, relative to the root.
    pub path: String,
    /// Other manifests in its folder, which are not read.
    #[serde(rename = "notRead", skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<&'static str>,
}

/// The state of a lock.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LockStatus {
    /// Whether there is one.
    pub exists: bool,
    /// The number of its packages that are not the workspace's own.
    pub packages: usize,
    /// How it differs from the requirements, a line each.
    #[schemars(with = "Vec<String>")]
    pub differences: Vec<LockDifference>,
}

/// A package that is used from the workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Placed {
    /// The package.
    pub id: PackageId,
    /// Its folder, relative to the root; empty for the root itself.
    pub path: String,
}

/// Examines the workspace.
pub fn status(session: &Session) -> Result<Status, CommandError> {
    let lock = session.lockfile()?;
    let exists = lock.is_some();
    let lock = lock.unwrap_or_default();
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    let differences = requirements.differences(session, &lock);
    let packs = session.packs();
    let locked: Vec<WantedPack> = needed_packs(&lock).map(|(_, wanted)| wanted).collect();
    let state = packs.recognized(|| named(&lock))?;
    let missing = packs.missing(&state, &locked).into_iter();
    let mut missing: Vec<String> =
        missing.map(|wanted| format!("{} {}", wanted.id, wanted.version)).collect();
    for package in lock.packages.iter().filter(|package| package.source.is_placed_pack()) {
        if placed_fault(session, package)?.is_some() {
            missing.push(format!("{} {}", package.id, package.version));
        }
    }
    let own = places::warnings(session, &requirements, &lock);
    let apart = places::warnings_of_conflicts(session);
    warn_of_redirected_bases(session);
    let copies = copies_in_lock(session, &lock);
    let left_out = places::left_out(session, &lock);
    for warning in left_out.into_iter().chain(own).chain(apart).chain(copies) {
        session.events.warning(&warning);
    }
    // What the manifests require now, and what the lock has and is still there: after a change of one, they differ.
    let is_here = |package: &&LockedPackage| {
        package.source.is_workspace_folder()
            && requirements.local_package(session, &package.id).is_some()
    };
    let mut placed: Vec<Placed> =
        requirements
            .asked
            .iter()
            .filter_map(|asked| {
                let id = asked.requirement.id.clone();
                let path = requirements.local_package(session, &id)?.place.clone();
                Some(Placed { id, path })
            })
            .chain(lock.packages.iter().filter(is_here).map(|package| Placed {
                id: package.id.clone(),
                path: package.source.place.clone(),
            }))
            .collect();
    placed.sort();
    placed.dedup();
    let members = session.workspace.members.iter().map(|member| Member {
        name: member.manifest.name.to_string(),
        version: member.manifest.version.as_ref().map(ToString::to_string),
        path: if member.place.is_empty() { ".".to_owned() } else { member.place.clone() },
        not_read: formats::not_read(&member.manifest_path),
    });
    let up_to_date = differences.is_empty() && missing.is_empty();
    let own = lock.packages.iter().filter(|package| package.source.is_workspace_folder()).count();
    Ok(Status {
        root: session.workspace.root.clone(),
        members: members.collect(),
        lock: LockStatus { exists, packages: lock.packages.len() - own, differences },
        missing,
        placed,
        extra: lock.extra.clone(),
        up_to_date,
        misspelt: session
            .workspace
            .only_misspelt()
            .map(|(_, name, right)| (name.to_owned(), right)),
    })
}
