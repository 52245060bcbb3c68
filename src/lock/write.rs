//! Prints a lock: sorted, one field per line, and the same bytes for the same selection.

use std::collections::HashMap;
use std::sync::Arc;

use crate::lock::entry::WirePackage;
use crate::lock::read::WireLock;
use crate::lock::{FORMAT, LockedPackage, Lockfile, ReplacedPackage, Requested, Source, line};
use crate::manifest::Versioning;
use crate::reference::Base;

const HEADER: &str = "\
# Written by mu; do not edit. It holds the version, source and content of every package that this
# workspace uses, so that `mu get` gives everyone the same. Commit it.
";

const EDITS_HEADER: &str = "\
# Written by mu; do not edit or commit. It holds what this machine uses while packages are edited
# here: Mu.lock, with what the edits add and move. mu names them when it installs.
";

impl Lockfile {
    /// The text of the lock of edits.
    pub(super) fn print_edits(&self) -> String {
        self.print().replacen(HEADER, EDITS_HEADER, 1)
    }

    /// The text of the lock.
    pub fn print(&self) -> String {
        let mut text = String::from(HEADER);
        line::print(&mut text, "", WireLock::version, &FORMAT.to_string());
        line::print(&mut text, "", WireLock::resolution, &line::print_text(&self.resolution));
        let is_empty = self.packages.is_empty() && self.replaced.is_empty();
        text.push_str(WireLock::packages);
        text.push_str(if is_empty { ": []\n" } else { ":\n" });
        let names = Names::of(self);
        let mut replaced = self.replaced.iter().peekable();
        for package in &self.packages {
            while let Some(before) = replaced.next_if(|replaced| replaced.id < package.id) {
                replaced_entry(self, before, &names).print(&mut text);
            }
            entry(package, &names).print(&mut text);
        }
        for last in replaced {
            replaced_entry(self, last, &names).print(&mut text);
        }
        if let Some(extra) = line::print_list(&self.extra) {
            line::print(&mut text, "", WireLock::extra, &extra);
        }
        text
    }
}

/// The names of packages in the file: their id, or, for a folder, their source, which does not depend on
/// where the workspace is on this machine. A folder that is used instead of a package keeps the package's id.
pub(super) struct Names<'lock>(HashMap<&'lock str, String>);

impl<'lock> Names<'lock> {
    fn of(lock: &'lock Lockfile) -> Self {
        let is_folder = |package: &&LockedPackage| {
            package.source.is_outside_folder() && package.id.base() == Base::localhost()
        };
        let folders = lock.packages.iter().filter(is_folder);
        Self(folders.map(|package| (package.id.as_str(), package.source.to_string())).collect())
    }

    pub(super) fn name(&self, text: &str) -> String {
        self.0.get(text).cloned().unwrap_or_else(|| text.to_owned())
    }
}

/// The entry of a package.
fn entry(package: &LockedPackage, names: &Names<'_>) -> WirePackage {
    let requested = |requested: &Requested| {
        let by = names.name(&requested.by).into();
        Requested { by, spec: Arc::clone(&requested.spec) }.to_string()
    };
    let entry = WirePackage {
        id: names.name(package.id.as_str()),
        version: package.version.clone(),
        beside: package.beside.clone(),
        versioning: package.is_composite.then(|| Versioning::Composite.as_str().to_owned()),
        app_version: package.app_version.clone(),
        channel: package.channel.clone(),
        source: package.source.to_string(),
        folder: package.folder.clone(),
        commit: package.commit.clone(),
        reference: package.reference.clone(),
        artifact: package.artifact.map(|digest| digest.to_string()),
        digest: package.digest.map(|digest| digest.to_string()),
        built: package.built.map(|digest| digest.to_string()),
        archive: package.archive.map(|digest| digest.to_string()),
        manifest: package.manifest.map(|digest| digest.to_string()),
        patch: package.patch.map(|digest| digest.to_string()),
        patched: package.patched.map(|digest| digest.to_string()),
        url: package.url.clone(),
        locator: package.locator.clone(),
        requested: package.requested.iter().map(requested).collect(),
        dependencies: (package.dependencies.iter()).map(|id| names.name(id.as_str())).collect(),
        ..WirePackage::default()
    };
    entry.with_facts(&package.facts, names)
}

/// The earlier entry of a replaced package; if it never was locked, the replacement's version and source.
fn replaced_entry(lock: &Lockfile, replaced: &ReplacedPackage, names: &Names<'_>) -> WirePackage {
    let mut package = match &replaced.kept {
        Some(kept) => (**kept).clone(),
        None => {
            let by = lock.find(&replaced.by).last();
            let version = by.map_or(LockedPackage::NO_VERSION, |by| &by.version).to_owned();
            let nowhere = || Source::new(Source::WORKSPACE, ".");
            let source = by.map_or_else(nowhere, |by| by.source.clone());
            let is_composite = by.is_some_and(|by| by.is_composite);
            let id = replaced.id.clone();
            LockedPackage { is_composite, ..LockedPackage::new(id, version, source) }
        }
    };
    package.requested.clone_from(&replaced.requested);
    WirePackage { replaced_by: Some(names.name(replaced.by.as_str())), ..entry(&package, names) }
}
