//! `why`: what asked for a package, and what stands between its version and newer ones.
//!
//! The lock answers the first half; for the second, registries are asked. Without them the first half still holds.

use crate::index::{Requirement, Unavailable};
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::requirements::{OVERRIDES, Requirements};
use crate::ops::solve::ceiling::{asking, look};
use crate::ops::solve::resolve::request;
use crate::ops::{CommandError, Session};
use crate::reference::PackageId;
use crate::select::{Newer, Update};
use crate::workspace::Resolution;

/// Why a package has its version.
#[derive(Debug, Clone)]
pub struct Reasons {
    /// The package, as the lock has it.
    pub package: LockedPackage,
    /// For each that asks, in the order of the lock: the lowest version that is meant, if there is one.
    pub least: Vec<Option<String>>,
    /// What stands against newer versions.
    pub newer: Vec<Newer>,
    /// Why nothing can be said of newer versions, if nothing can.
    pub unknown: Option<String>,
}

/// Finds out why a locked package has its version; several if several majors of it are locked.
///
/// # Errors
///
/// When the workspace's own requirements cannot be read.
pub fn why(
    session: &Session,
    lock: &Lockfile,
    id: &PackageId,
) -> Result<Vec<Reasons>, CommandError> {
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    requirements.declare(session);
    let request = request(session, &requirements, lock, Update::Nothing);
    let tries = session.resolution() == Resolution::Highest;
    let packages = lock.find(id).map(|package| {
        let mut reasons = Reasons {
            package: package.clone(),
            least: vec![None; package.requested.len()],
            newer: Vec::new(),
            unknown: None,
        };
        if package.source.is_workspace() || package.source.is_folder() {
            return reasons;
        }
        let asking = asking(package);
        let found = look(session, &request, |ceiling| {
            let mut least = Vec::new();
            for requested in &package.requested {
                let requirement = Requirement::parse(id.clone(), &requested.spec);
                least.push(match requirement.filter(|_| &*requested.by != OVERRIDES) {
                    Some(requirement) => ceiling.least(&requirement)?,
                    None => None,
                });
            }
            let newer = match package.parsed_version() {
                Some(version) => ceiling.newer(id, &version, &asking, tries)?,
                None => Some(Vec::new()),
            };
            Ok((least, newer))
        });
        match found {
            Ok((least, Some(newer))) => (reasons.least, reasons.newer) = (least, newer),
            Ok((_, None)) => {
                reasons.unknown = Some(format!("{} lists no `{id}` any more", package.source));
            }
            Err(error) => reasons.unknown = Some(describe(&error)),
        }
        reasons
    });
    let packages = packages.collect();
    session.save_index();
    Ok(packages)
}

/// An error with all its causes, in one line.
fn describe(error: &Unavailable) -> String {
    let mut text = error.to_string();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error.source);
    while let Some(current) = cause {
        let message = current.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = current.source();
    }
    text
}
