//! Packages of `overrides` in the settings that do not satisfy what packages require. An override counts all the
//! same; mu says at every run that it goes against a requirement.

use crate::index::Requirement;
use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::ops::requirements::requester::Requester;
use crate::ops::solve::resolve::is_locked_as;

/// A warning for each overridden package in a lock that does not satisfy everything that is required of it.
pub(super) fn overridden(lock: &Lockfile) -> Vec<String> {
    let is_overridden = |package: &&LockedPackage| {
        // Packages of the workspace are reported as such.
        !package.source.is_workspace() && package.requested.iter().any(Requester::is_override)
    };
    let overridden = lock.packages.iter().filter(is_overridden);
    overridden.filter_map(warning).collect()
}

fn warning(package: &LockedPackage) -> Option<String> {
    let broken = package.requested.iter().filter(|requested| !is_satisfied(package, requested));
    let broken: Vec<String> =
        broken.map(|requested| format!("{} requires {}", requested.by, requested.spec)).collect();
    let (id, version) = (&package.id, &package.version);
    (!broken.is_empty()).then(|| {
        let broken = broken.join(", and ");
        format!(
            "`{id}` {version} is used because of `overrides` in the settings, although {broken}"
        )
    })
}

/// Whether a locked package is what was required of it.
fn is_satisfied(package: &LockedPackage, requested: &Requested) -> bool {
    let requirement = Requirement::parse(package.id.clone(), &requested.spec);
    let Some(Requirement { spec, .. }) = requirement else { return true };
    Requester::is_override(requested)
        || requested.capability().is_some()
        // Nothing says what it is.
        || !package.has_version()
        || package.reference.as_deref() == Some(spec.as_str())
        || is_locked_as(package, &spec)
}
