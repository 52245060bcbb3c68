//! Locked packages that only `devDependencies` need. `mu get --no-dev` installs only the others; the lock has
//! all of them.

use std::collections::BTreeSet;

use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::manifest::edit::Section;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, Requirements};
use crate::reference::PackageId;

/// The packages that only `devDependencies` need, by their places in `lock.packages`. A package that replaced
/// another one counts as needed.
pub(crate) fn development_only(requirements: &Requirements, lock: &Lockfile) -> BTreeSet<usize> {
    let mut needed: BTreeSet<&PackageId> =
        lock.replaced.iter().map(|replaced| &replaced.by).collect();
    let is_dev = |asked: &Asked| matches!(asked.line, Some((_, Section::DevDependencies)));
    let roots: BTreeSet<&str> = requirements.asked.iter().map(|asked| asked.by.as_str()).collect();
    let is_by_need = |package: &LockedPackage, requested: &Requested, needed: &BTreeSet<_>| {
        if Requester::is_override(requested) {
            return false;
        }
        if let Ok(by) = PackageId::parse(&requested.by)
            && lock.find(&by).next().is_some_and(|by| !by.source.is_workspace_folder())
        {
            return needed.contains(&by);
        }
        // A requirement that is on no package in particular comes from a manifest as a whole.
        if requested.capability().is_some() || !roots.contains(&*requested.by) {
            return true;
        }
        let mut asked = requirements.asked.iter();
        asked.any(|asked| {
            !is_dev(asked) && asked.requirement.id == package.id && asked.requested() == *requested
        })
    };
    loop {
        let before = needed.len();
        for package in &lock.packages {
            let mut requested = package.requested.iter();
            if requested.any(|requested| is_by_need(package, requested, &needed)) {
                needed.insert(&package.id);
            }
        }
        if needed.len() == before {
            break;
        }
    }
    let packages = lock.packages.iter().enumerate();
    let others = packages.filter(|(_, package)| {
        !package.source.is_workspace_folder() && !needed.contains(&package.id)
    });
    others.map(|(index, _)| index).collect()
}
