//! Prints a lock: sorted, one field per line, and the same bytes for the same selection.

use crate::lock::entry::WirePackage;
use crate::lock::read::WireLock;
use crate::lock::value::Names;
use crate::lock::{FORMAT, LockedPackage, Lockfile, ReplacedPackage, Source, line};

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
        let names = Names::new(self.packages.iter().map(|package| (&package.id, &package.source)));
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

/// The entry of a package.
fn entry(package: &LockedPackage, names: &Names<'_>) -> WirePackage {
    let mut entry = WirePackage::new(package, names);
    // A text that may be the id of a folder.
    entry.conflicts.iter_mut().for_each(|text| *text = names.name(text));
    entry
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
