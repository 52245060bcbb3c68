//! Capabilities that the settings say there are, compared with a lock.
//!
//! A lock has what packages declare themselves. What the settings add is applied whenever versions are chosen.

use std::collections::{BTreeMap, BTreeSet};

use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::ops::Session;
use crate::reference::PackageId;
use crate::select::OwnCapabilities;

/// Where the capabilities of locked packages do not fit what the settings say of them, one line each.
pub(super) fn stated(session: &Session, own: &OwnCapabilities, lock: &Lockfile) -> Vec<String> {
    let settings = &session.workspace.settings;
    let of = |package: &LockedPackage| settings.provided.get(&package.id).into_iter().flatten();
    let mut providers: BTreeMap<&str, BTreeSet<&PackageId>> = BTreeMap::new();
    for package in &lock.packages {
        for name in package.provides.iter().chain(of(package)) {
            providers.entry(name).or_default().insert(&package.id);
        }
    }
    let mut differences = Vec::new();
    for name in lock.packages.iter().flat_map(of) {
        if let Some(both) = providers.get(&**name).filter(|both| both.len() > 1) {
            let both: Vec<String> = both.iter().map(|id| id.to_string()).collect();
            differences.push(format!("{} provide {name} now", both.join(" and ")));
        }
    }
    for package in &lock.packages {
        for name in &package.requires {
            let is_met = providers.contains_key(&**name)
                || own.provides.contains_key(name)
                || settings.runtime_provides.contains(name);
            if !is_met {
                differences.push(format!("{} requires {name}, which nothing provides", package.id));
            }
        }
        let brought = package.requested.iter().filter_map(Requested::capability);
        for name in brought.filter(|name| settings.runtime_provides.iter().any(|one| one == name)) {
            differences.push(format!("the runtime provides {name} now"));
        }
    }
    differences.sort();
    differences.dedup();
    differences
}
