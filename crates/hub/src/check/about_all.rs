//! Compares the files about all packages, the catalog and the snapshot, with the index: of their lines, only hashes are kept while the
//! packages are looked at, one after another.

use std::collections::{BTreeSet, HashMap};

use mu_provider_hub::wire::SNAPSHOT_FILE;
use sha2::{Digest as _, Sha256};

use super::Check;
use crate::HubError;
use crate::derived;
use crate::file::CATALOG_FILE;
use crate::lines::PublishedLine;
use crate::log;
use crate::snapshot;

/// What a derived file says.
#[derive(Default)]
pub(super) struct SaidLines {
    /// The hash of each of its lines, and whether the index was found to say the same.
    lines: HashMap<[u8; 16], bool>,
    /// Packages about which the index says something else.
    wrong: BTreeSet<String>,
}

impl SaidLines {
    fn add(&mut self, line: &str) {
        self.lines.insert(Self::hash(line), false);
    }

    fn hash(line: &str) -> [u8; 16] {
        let hash = Sha256::digest(line);
        *hash.first_chunk().expect("has 32 bytes")
    }

    /// Compares it with a line about a package according to the index.
    pub(super) fn compare(&mut self, name: &str, line: &str) {
        match self.lines.get_mut(&Self::hash(line)) {
            Some(is_found) => *is_found = true,
            None => drop(self.wrong.insert(name.to_owned())),
        }
    }

    /// Whether the index does not say this line of the file.
    fn is_wrong(&self, line: &str) -> bool {
        self.lines.get(&Self::hash(line)) == Some(&false)
    }
}

impl Check<'_> {
    /// Reads what the catalog says.
    pub(super) async fn read_catalog(&mut self) -> Result<(), HubError> {
        let files = &self.writer.files;
        let size = match files.head(CATALOG_FILE).await {
            Err(HubError::Broken { .. }) => None,
            meta => meta?.map(|meta| meta.size),
        };
        let is_too_large = self.root.is_too_large_for_a_catalog();
        if is_too_large || size.is_some_and(|size| size > files.longest_catalog) {
            // Only the hub's server searches it.
            if size.is_some() {
                let what = "the hub is too large for one, so nobody keeps it up to date";
                self.leftover(CATALOG_FILE, what);
            }
            return Ok(());
        }
        self.lacks_catalog = self.root.catalog().is_none();
        if size.is_none() && self.lacks_catalog {
            return Ok(());
        }
        let mut said = SaidLines::default();
        let read = self.each_line_of_catalog(|_, line| said.add(line)).await?;
        self.catalog = read.map(|()| said);
        if self.catalog.is_none() {
            (self.lacks_catalog, self.has_unreadable_catalog) = (true, true);
            self.problem(CATALOG_FILE, "it cannot be read");
        }
        Ok(())
    }

    /// Reads the catalog; `None` if it is broken.
    async fn each_line_of_catalog(
        &self,
        mut take: impl FnMut(&str, &str),
    ) -> Result<Option<()>, HubError> {
        let Some(read) = self.read(CATALOG_FILE).await? else { return Ok(Some(())) };
        let Ok(text) = std::str::from_utf8(&read.bytes) else { return Ok(None) };
        let mut lines = text.lines();
        Ok(lines.try_for_each(|line| {
            let (name, line) = derived::parse_catalog_line(line)?;
            take(&name, &line);
            Some(())
        }))
    }

    /// Reports what the catalog says and the index does not, or the other way round.
    pub(super) async fn catalog(&mut self) -> Result<(), HubError> {
        let Some(mut said) = self.catalog.take() else {
            if self.lacks_catalog && !self.has_unreadable_catalog && self.report.versions > 0 {
                self.leftover(CATALOG_FILE, "there is none yet, so searching finds nothing");
            }
            return Ok(());
        };
        let mut wrong = std::mem::take(&mut said.wrong);
        // What has become unreadable meanwhile was readable a moment ago.
        let note = |name: &str, line: &str| {
            if said.is_wrong(line) {
                wrong.insert(name.to_owned());
            }
        };
        self.each_line_of_catalog(note).await?;
        self.derived(CATALOG_FILE, wrong);
        Ok(())
    }

    /// Reads what the snapshot says.
    pub(super) async fn read_snapshot(&mut self) -> Result<(), HubError> {
        let files = &self.writer.files;
        if self.root.snapshot_progress().is_none() {
            return Ok(());
        }
        let Some(snapshot) = snapshot::read(files).await? else {
            self.problem(SNAPSHOT_FILE, "it cannot be read, or its digests differ");
            return Ok(());
        };
        let generation = self.root.generation().max(snapshot.generation);
        let newer = log::names(files, &self.root, snapshot.generation, generation).await?;
        let Some(newer) = newer else { return Ok(()) };
        // What has changed since may differ.
        self.newer = newer.into_iter().collect();
        let mut said = SaidLines::default();
        snapshot.snapshot_lines().flatten().for_each(|line| said.add(&line));
        self.snapshot = Some((snapshot, said));
        Ok(())
    }

    /// Reports what the snapshot says and the index does not, or the other way round.
    pub(super) fn snapshot(&mut self) {
        let Some((snapshot, mut said)) = self.snapshot.take() else { return };
        let mut wrong = std::mem::take(&mut said.wrong);
        let lines = snapshot.snapshot_lines().flatten().filter(|line| said.is_wrong(line));
        wrong
            .extend(lines.filter_map(|line| Some(PublishedLine::parse(&line).ok()?.name().into())));
        wrong.retain(|name| !self.newer.contains(name));
        self.derived(SNAPSHOT_FILE, wrong);
    }
}
