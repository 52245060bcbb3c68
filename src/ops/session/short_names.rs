//! The short names of chart repositories (`repository: "@stable"`) in the workspace's own manifests: as the user gave them to Helm, or else as
//! Mu.lock has the chart, so that a machine without Helm's settings installs what is locked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use mu_formats::helm::Aliases;

use super::Session;
use crate::env::Environment;
use crate::formats;
use crate::lock::{LockedPackage, Lockfile};

impl Session {
    /// The short names that the workspace's own manifests may use.
    pub(crate) fn short_names(&self) -> &Aliases {
        self.short_names.get_or_init(|| short_names(&self.workspace.root, &self.environment))
    }
}

/// Those of the user, and what the lock in `root` has, which is read when one is missing.
pub(super) fn short_names(root: &Path, environment: &Environment) -> Aliases {
    let root = root.to_owned();
    let locked = OnceLock::new();
    formats::helms_aliases(environment).or_of_chart(move |chart| {
        let locked: &BTreeMap<String, Option<String>> = locked.get_or_init(|| {
            let lock = Lockfile::read(&root).ok().flatten();
            lock.map(|lock| repositories(&lock.packages)).unwrap_or_default()
        });
        locked.get(chart).cloned().flatten()
    })
}

/// The repositories of the charts that the workspace's own packages require, by the name of the chart; nothing for one that comes
/// from two.
fn repositories(packages: &[LockedPackage]) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    for package in packages.iter().filter(|package| is_required_here(package, packages)) {
        let Some(url) = repository(package) else { continue };
        let entry = found.entry(package.id.name().leaf().to_owned());
        // A chart in several versions is there several times.
        let one = |known: &mut Option<String>| *known = known.take().filter(|other| *other == url);
        entry.and_modify(one).or_insert_with(|| Some(url.clone()));
    }
    found
}

/// Whether something else than a locked package requires one.
fn is_required_here(package: &LockedPackage, packages: &[LockedPackage]) -> bool {
    let is_other =
        |by: &str| packages.iter().any(|other| !other.source.is_own() && other.id.as_str() == by);
    package.requested.iter().any(|requested| !is_other(&requested.by))
}

/// The URL of the repository that a chart is in.
fn repository(package: &LockedPackage) -> Option<String> {
    let (id, source) = (package.id.as_str(), &package.source);
    let (place, _) = id.rsplit_once('/')?;
    let scheme = match &*source.provider {
        "oci" => "oci",
        "helm" if source.place.starts_with("http://") => "http",
        "helm" => "https",
        _ => return None,
    };
    Some(format!("{scheme}://{place}"))
}
