//! Repairs everything that can be derived from the index and the archives, and removes files that nobody
//! reads.
//!
//! People may have changed index files by hand, so this makes readers ask for every index file again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Check, Finding};
use crate::HubError;
use crate::closures;
use crate::derived;
use crate::file::{CATALOG_FILE, FileMeta, closure_file};
use crate::log::{self, BrokenOff, Marker};
use crate::names;
use crate::root::Root;

/// How old an archive without a line has to be, in a bucket, before nobody can be about to publish it.
const ORPHAN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

impl Check<'_> {
    pub(super) async fn repair(
        &mut self,
        pending: BrokenOff,
        orphans: &[FileMeta],
    ) -> Result<(), HubError> {
        let files = &self.writer.files;
        let marker = Marker::set(files, "").await?;
        let now = files.head(&marker.path).await?.map(|meta| meta.modified);
        let mut kept = BTreeSet::new();
        for meta in orphans {
            let age = now.map(|now| now.duration_since(meta.modified).unwrap_or_default());
            if files.is_folder() || age.is_some_and(|age| age >= ORPHAN_AFTER) {
                files.remove(&meta.path).await?;
            } else {
                kept.insert(meta.path.clone());
            }
        }
        for meta in files.list("capabilities/").await? {
            self.rewrite_capability(&meta.path).await?;
        }
        self.rewrite_closures().await?;
        let mut all: BTreeSet<String> = std::mem::take(&mut self.wrong);
        all.extend(self.behind.iter().cloned());
        if self.lacks_catalog {
            all.extend(self.dependencies.iter().flat_map(BTreeMap::keys).cloned());
        }
        let mut names = Vec::new();
        for name in all.into_iter().filter(|name| !self.broken.contains(name)) {
            if names::check_name(&name).is_ok() && self.is_there(&name).await? {
                names.push(name);
            }
        }
        if !self.root.counts_on() {
            self.writer.count_anew().await?;
        }
        // This comes first, so that the snapshot is not older than the gap in the log.
        let generation = log::begin_anew(files, &Root::read(files).await?).await?;
        self.writer.advance(generation, None, None).await?;
        self.writer.complete(&names, self.broken.is_empty()).await?;
        pending.clear(files).await?;
        marker.clear(files).await?;
        for finding in &mut self.report.findings {
            finding.is_repaired = finding.can_be_repaired && !kept.contains(&finding.path);
        }
        Ok(())
    }

    /// Marks the findings that a repair puts right.
    pub(super) fn mark_repairable(&mut self) {
        let (packs, index) = (self.root.packs_folder(), self.root.index_folder());
        let can_be_repaired = |finding: &Finding| {
            !self.lasting.contains(&finding.path)
                && !finding.path.starts_with(&index)
                && (finding.is_leftover || !finding.path.starts_with(&packs))
                && (self.broken.is_empty() || finding.path != CATALOG_FILE)
        };
        for finding in &mut self.report.findings {
            finding.can_be_repaired = can_be_repaired(finding);
        }
    }

    /// Writes the current closures of all packages, whether or not the hub had any before.
    async fn rewrite_closures(&self) -> Result<(), HubError> {
        let files = &self.writer.files;
        let mut root = self.root.clone();
        root.keep_closures();
        let folder = root.closures_folder().expect("they are kept");
        let dependencies = self.dependencies.as_ref().expect("a repair collects them");
        for meta in files.list(&folder).await? {
            let path = meta.path.as_str();
            let name = path.strip_prefix(&folder).and_then(|path| path.strip_suffix(".json"));
            if !name.is_some_and(|name| dependencies.contains_key(name)) {
                files.remove(path).await?;
            }
        }
        for (name, closure) in closures::exact(dependencies) {
            let file = closures::file(&closure);
            let path = closure_file(&folder, &name);
            files
                .change(&path, async |bytes| Ok(((bytes != Some(&file)).then(|| file.clone()), ())))
                .await?;
        }
        self.writer.change_root(Root::keep_closures).await
    }

    /// Removes from a capability's file what the index does not contain. What is missing is added with its
    /// package.
    async fn rewrite_capability(&self, path: &str) -> Result<(), HubError> {
        let capability =
            path.strip_prefix("capabilities/").and_then(|path| path.strip_suffix(".json"));
        let Some(capability) = capability else { return Ok(()) };
        let packages = self.capabilities.get(capability).cloned().unwrap_or_default();
        let file = derived::capability_file(&packages);
        self.writer
            .files
            .change(path, async |bytes| {
                Ok(((bytes != Some(&file) && self.broken.is_empty()).then(|| file.clone()), ()))
            })
            .await
    }
}
