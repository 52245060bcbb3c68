//! What a lock has although the settings have changed: charts that now use the copies inside them, and ids that now mean
//! other packages.

use crate::lock::Lockfile;
use crate::ops::Session;
use crate::reference::PackageId;

/// What is locked as required by a chart that uses its own copy of it, one line each.
pub(super) fn bundled(session: &Session, lock: &Lockfile) -> Vec<String> {
    let settings = &session.workspace.settings.bundled;
    let locked = lock.packages.iter().filter(|_| !settings.is_empty());
    let pairs = locked.flat_map(|package| package.dependencies.iter().map(|id| (&package.id, id)));
    let is_own = |(by, id): &(&PackageId, &PackageId)| {
        settings.iter().any(|one| one.by == **by && one.id.as_ref().is_none_or(|only| only == *id))
    };
    pairs
        .filter(is_own)
        .map(|(by, id)| format!("{by} uses the {id} that it carries inside now"))
        .collect()
}

/// The packages that are locked under an id that means another one now, one line each.
pub(super) fn aliased(session: &Session, lock: &Lockfile) -> Vec<String> {
    let aliases = &session.workspace.settings.aliases;
    let locked = lock.packages.iter().filter(|_| !aliases.is_empty()).map(|package| &package.id);
    let counted = locked.map(|id| (id, aliases.counted(id.clone())));
    counted
        .filter(|(id, counted)| *id != counted)
        .map(|(id, counted)| format!("`aliases` in the settings make {id} the package {counted}"))
        .collect()
}
