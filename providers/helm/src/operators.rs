//! Repositories of KUDO operators: what is different from those of charts.
//!
//! Their index does not say what an operator depends on. So the archives of the versions that are looked at are downloaded while
//! versions are chosen: the `operator.yaml` in each is stored by the digest of the archive, and the archive itself is kept until
//! its files are needed. Archives have no folder at their top.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mu_formats::kudo::{self, OPERATOR};
use mu_provider::catalog::{Hits, Query};
use mu_provider::fs;
use mu_provider::http::Http;
use mu_provider::threads::lock;
use mu_provider::{
    ErrorKind, Facts, Listing, Location, Progress, Provider, ProviderError, Release, SafeUrl, Soon,
    TreeWriter,
};
use mu_provider_hub::remembered::digest;
use mu_provider_hub::{Archives, Held, Looked, Packing};

use crate::repository::{OPERATORS, Repositories};

/// The largest archive of an operator, in bytes: a few templates.
const LARGEST_ARCHIVE: u64 = 64 << 20;

/// How many bytes of archives are kept until they are unpacked.
const MOST_KEPT: u64 = 64 << 20;

/// The settings of the provider.
#[derive(Debug, Clone)]
pub struct KudoOptions {
    /// The client, which also knows whether mu is offline.
    pub http: Arc<Http>,
    /// A folder for the stored indexes and `operator.yaml`s; created when needed.
    pub indexes: PathBuf,
    /// A folder for incomplete downloads; created when needed.
    pub downloads: PathBuf,
}

/// Serves KUDO operators from repositories.
///
/// It requests each index once, so create a new one to look again.
#[derive(Debug)]
pub struct KudoProvider {
    repositories: Repositories,
    archives: Archives,
    texts: PathBuf,
    kept: Mutex<Kept>,
}

/// Archives that were looked into, by their digests.
#[derive(Debug, Default)]
struct Kept {
    archives: HashMap<String, Held>,
    bytes: u64,
}

impl Kept {
    fn keep(&mut self, held: Held) {
        if self.bytes.saturating_add(held.size) <= MOST_KEPT {
            self.bytes += held.size;
            self.archives.insert(held.digest.to_string(), held);
        }
    }

    fn take(&mut self, digest: Option<&str>) -> Option<Held> {
        let held = self.archives.remove(digest?)?;
        self.bytes -= held.size;
        Some(held)
    }
}

impl KudoProvider {
    /// A provider that has not contacted any repository yet.
    pub fn new(options: KudoOptions) -> Self {
        let KudoOptions { http, indexes, downloads } = options;
        Self {
            texts: indexes.join("operators"),
            repositories: Repositories::new(&OPERATORS, Arc::clone(&http), indexes, None),
            archives: Archives::new(http, downloads, LARGEST_ARCHIVE),
            kept: Mutex::default(),
        }
    }

    /// Downloads the archive from the first of its URLs that has it, or of those that the index has now.
    fn archive_of(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Held, ProviderError> {
        self.repositories.first(location, release, progress, |url| {
            let place = Archives::place(location, url)?;
            let wanted = |path: &str| path == OPERATOR;
            let looked =
                self.archives.look(&place, Packing::Tar, release, None, &wanted, progress)?;
            Ok(match looked {
                Looked::Held(held) => Some(*held),
                Looked::Absent | Looked::Unchanged { .. } => None,
            })
        })
    }

    /// The text of the `operator.yaml` in the archive of a release.
    fn text(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<String, ProviderError> {
        let stored =
            |archive: &str| self.texts.join(format!("{}.yaml", digest(archive.as_bytes())));
        let stored = release.archive.as_deref().map(stored);
        if let Some(stored) = &stored
            && let Ok(Some(text)) = fs::read_text_if_there(stored)
        {
            return Ok(text);
        }
        let mut held = self.archive_of(location, release, progress)?;
        let text = held.files.remove(OPERATOR).and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.filter(|text| kudo::is_operator(text)).ok_or_else(|| {
            let version = release.full_version();
            let what = format!("the archive of `{}` {version}", location.describe());
            let text = format!("{what} has no `{OPERATOR}` of an operator at its top");
            ProviderError::new(ErrorKind::Manifest, text)
        })?;
        if let Some(stored) = &stored {
            // It only saves a download: without it, mu goes on.
            let _ = fs::create_folder(&self.texts)
                .and_then(|()| fs::write_atomic(stored, text.as_bytes()));
        }
        lock(&self.kept).keep(held);
        Ok(text)
    }
}

impl Provider for KudoProvider {
    fn name(&self) -> &str {
        "kudo"
    }

    fn facts(&self) -> Facts {
        Facts {
            place: "a repository of KUDO operators",
            places_are_flat: true,
            names_are_binding: true,
            lines_are_hints: true,
            lines_are_binding: true,
            ..Facts::default()
        }
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        self.repositories.probe(location)
    }

    fn soon(&self, location: &Location, what: Soon<'_>) {
        if let Soon::Fetch(release) = what
            && release
                .archive
                .as_ref()
                .is_none_or(|archive| !lock(&self.kept).archives.contains_key(archive))
        {
            self.repositories.fetch_ahead(location, release);
        }
    }

    fn is_unchanged(&self, location: &Location, validator: &str, progress: &dyn Progress) -> bool {
        self.repositories.is_unchanged(location, validator, progress)
    }

    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        self.repositories.list(location, validator, progress)
    }

    fn confirm(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Release>, ProviderError> {
        if release.unusable.is_some() || release.dependencies.is_some() {
            return Ok(None);
        }
        match self.text(location, release, progress) {
            Ok(text) => Ok(Some(kudo::completed(release, &text))),
            // Other versions may be better.
            Err(error) if matches!(error.kind(), ErrorKind::Manifest | ErrorKind::NotFound) => {
                Ok(Some(Release { unusable: Some(error.to_string()), ..release.clone() }))
            }
            Err(error) => Err(error),
        }
    }

    fn archive(&self, location: &Location, release: &Release) -> Option<SafeUrl> {
        Archives::place(location, release.urls.first()?).ok().map(|place| place.url)
    }

    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let kept = lock(&self.kept).take(release.archive.as_deref());
        match kept {
            Some(held) => held.unpack(tree),
            None => self.archive_of(location, release, progress)?.unpack(tree),
        }
    }

    fn search(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        self.repositories.search(location, query, progress)
    }
}
