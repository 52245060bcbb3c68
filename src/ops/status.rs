//! `status`: how the workspace stands, without asking anybody.

use std::path::PathBuf;

use crate::ops::explain::other_places;
use crate::ops::requirements::Requirements;
use crate::ops::session::installed_packs::{named, wanted};
use crate::ops::{CommandError, Session};
use crate::packs::Wanted;

/// How a workspace stands.
#[derive(Debug, Clone)]
pub struct Status {
    /// Its root folder.
    pub root: PathBuf,
    /// Its own packages: name, version and folder.
    pub members: Vec<(String, Option<String>, String)>,
    /// Whether there is a lock.
    pub has_lock: bool,
    /// How the lock differs from what is asked for, a line each.
    pub differences: Vec<String>,
    /// Packages in the lock.
    pub locked: usize,
    /// Locked packages that are not installed as the lock says.
    pub missing: Vec<String>,
    /// Packages that are used from the workspace instead of a registry: id and folder.
    pub placed: Vec<(String, String)>,
}

/// Looks at the workspace.
///
/// # Errors
///
/// When lock or state cannot be read.
pub fn status(session: &Session) -> Result<Status, CommandError> {
    let lock = session.lockfile()?;
    let has_lock = lock.is_some();
    let lock = lock.unwrap_or_default();
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    let differences = requirements.differences(session, &lock);
    let packs = session.packs();
    let locked: Vec<Wanted> = wanted(&lock).map(|(_, wanted)| wanted).collect();
    let state = packs.recognized(|| named(&lock))?;
    let missing = packs.missing(&state, &locked).into_iter();
    let missing = missing.map(|wanted| format!("{} {}", wanted.id, wanted.version)).collect();
    for warning in other_places::left_out(session, &lock) {
        session.events.warning(&warning);
    }
    let mut placed: Vec<(String, String)> = requirements
        .asked
        .iter()
        .filter_map(|asked| {
            let local = requirements.local(session, &asked.requirement.id)?;
            Some((asked.requirement.id.to_string(), local.place.clone()))
        })
        .chain(
            lock.packages
                .iter()
                .filter(|package| package.source.is_workspace())
                .map(|package| (package.id.to_string(), package.source.place.clone())),
        )
        .collect();
    placed.sort();
    placed.dedup();
    let members = session.workspace.members.iter().map(|member| {
        let version = member.manifest.version.as_ref().map(ToString::to_string);
        let place = if member.place.is_empty() { ".".to_owned() } else { member.place.clone() };
        (member.manifest.name.to_string(), version, place)
    });
    Ok(Status {
        root: session.workspace.root.clone(),
        members: members.collect(),
        has_lock,
        differences,
        locked: lock.packages.iter().filter(|package| !package.source.is_workspace()).count(),
        missing,
        placed,
    })
}
