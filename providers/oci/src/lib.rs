//! OCI registries: packages of mu beside container images, in a registry that a team already has.
//!
//! A repository is a package, and a tag is a version. `registry.rs` sends requests, `repository.rs` reads tags, manifests
//! and lists of referrers, `listing.rs` turns them into index lines, and `said.rs` reads one manifest. `search.rs` searches names. [`wire`] describes
//! the formats. The hub's provider downloads and unpacks archives.
//!
//! The list of referrers of one constant is the package's index, so that not every version has to be requested. It is only
//! a hint: before mu uses a version, the version's manifest decides.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
// Data from a registry must not lead to an index out of bounds.
#![deny(clippy::indexing_slicing)]

mod account;
mod auth;
mod evidence;
mod foreign;
mod image;
mod kept;
pub mod listing;
mod registry;
mod repository;
mod said;
pub mod wire;
mod writer;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mu_archive::{ArchiveLayout, Archives, Scratch, unpack_with};
use mu_provider::catalog::{CatalogLine, Hits, Query};
use mu_provider::http::Http;
use mu_provider::publishable::LONGEST_PROVENANCE;
use mu_provider::threads::lock;
use mu_provider::{
    Account, ErrorKind, Facts, Found, FoundEvidence, LineTrust, Listing, Location, PlaceKind,
    Progress, Provider, ProviderError, Release, SafeUrl, Silent, TreeWriter, json_lines, none_if,
};

pub use crate::auth::Stores;
use crate::auth::{RegistryTokens, RepositoryGuard};
use crate::foreign::InspectedLayers;
pub use crate::foreign::{Marked, marked};
pub use crate::image::{Image, ImageName, restore_image};
pub use crate::kept::Kept;
use crate::listing::Known;

pub use crate::kept::WithoutLists;
use crate::registry::{Call, Registry, To};
use crate::repository::RegistryRepository;
use crate::said::Said;
pub use crate::said::read;
pub use crate::writer::{ForeignArtifact, PushOutcome, Writer};

/// The largest archive that is accepted, in bytes.
const LARGEST_ARCHIVE: u64 = 4 << 30;

/// The longest answer of a registry about itself, in bytes.
const LONGEST_GREETING: u64 = 64 << 10;

/// Serves packages from OCI registries. It requests each manifest once, so create a new one to look again.
#[derive(Debug)]
pub struct OciProvider {
    http: Arc<Http>,
    archives: Archives,
    keys: Arc<RegistryTokens>,
    without_lists: Arc<WithoutLists>,
    /// By host and port, and whether plain http is fine.
    registries: Mutex<HashMap<(String, bool), Arc<Registry>>>,
    /// The content of manifests, by repository and tag.
    said: Mutex<HashMap<(String, String), Arc<Said>>>,
    layers: Mutex<InspectedLayers>,
    kept: Kept,
}

impl OciProvider {
    /// A provider that has not contacted any registry yet.
    pub fn new(options: OciOptions) -> Self {
        let OciOptions { http, downloads, stores, without_lists, kept } = options;
        Self {
            keys: Arc::new(RegistryTokens::new(Arc::clone(&http), stores)),
            archives: Archives::new(Arc::clone(&http), downloads, LARGEST_ARCHIVE),
            http,
            without_lists: Arc::new(without_lists),
            registries: Mutex::default(),
            said: Mutex::default(),
            layers: Mutex::default(),
            kept,
        }
    }

    fn registry(&self, location: &Location) -> Arc<Registry> {
        let key = (location.root.host_and_port(), location.insecure);
        let mut registries = lock(&self.registries);
        let registry = registries.entry(key).or_insert_with(|| {
            let known = Arc::clone(&self.without_lists);
            Arc::new(Registry::new(&self.http, known, &location.root, location.insecure))
        });
        Arc::clone(registry)
    }

    /// What writes to the repository of a package.
    ///
    /// # Errors
    ///
    /// When no registry can have a repository of that name.
    pub fn writer(&self, location: &Location) -> Result<Writer, ProviderError> {
        let repository = self.repository(location, true, &Silent).ok_or_else(|| {
            let text = format!("nothing can be published at `{}`: {NAMES}", location.describe());
            ProviderError::new(ErrorKind::Refused, text)
        })?;
        let place = format!("{}/{}", repository.registry.host, repository.name);
        Ok(Writer { repository, place })
    }

    /// The repository of a package; `None` if registries cannot have one with that name.
    fn repository<'call>(
        &self,
        location: &Location,
        writes: bool,
        progress: &'call dyn Progress,
    ) -> Option<RegistryRepository<'call>> {
        let (name, registry) = (repository::name_of(location)?, self.registry(location));
        let guard = RepositoryGuard {
            keys: Arc::clone(&self.keys),
            host: registry.host.clone(),
            repository: name.clone(),
            writes,
        };
        Some(RegistryRepository { registry, name, guard: Some(Arc::new(guard)), progress })
    }

    /// The repository of a package, or an error if registries cannot have one with that name.
    pub(crate) fn existing<'call>(
        &self,
        location: &Location,
        progress: &'call dyn Progress,
    ) -> Result<RegistryRepository<'call>, ProviderError> {
        self.repository(location, false, progress).ok_or_else(|| {
            let text = format!("there is no `{}`: {}", location.describe(), NAMES);
            ProviderError::new(ErrorKind::NotFound, text)
        })
    }

    /// Unpacks the archive of a release with a known digest; returns `false` if the registry has no such blob.
    fn unpack(
        &self,
        repository: &RegistryRepository<'_>,
        release: &Release,
        tree: &mut TreeWriter,
    ) -> Result<bool, ProviderError> {
        let Some(archive) = &release.archive else { return Ok(false) };
        let layout = foreign::layout_for_format(release.locator.as_deref());
        if let Some(layer) = lock(&self.layers).get(archive) {
            let unpacked = unpack_with(&Scratch::default(), &layer, layout, tree);
            if layout.is_kept(tree) {
                tree.archive = Some(layer.to_vec());
            }
            return unpacked
                .map(|()| true)
                .map_err(|error| error.at(&repository.place(&format!("blobs/{archive}"))));
        }
        let unpacked = repository.registry.by_scheme(|scheme| {
            let place = repository.blob_at(scheme, archive)?;
            self.archives.unpack(&place, release, layout, tree, repository.progress)
        });
        let is_there = none_if(unpacked, ErrorKind::NotFound)?.is_some();
        if layout == ArchiveLayout::InFolder {
            let place = repository.place(&format!("blobs/{archive}"));
            mu_formats::helm::tell_links(tree, &place, repository.progress);
        }
        Ok(is_there)
    }
}

/// What repositories are called, for messages.
const NAMES: &str = "a repository's name in an OCI registry has only lower-case letters, digits, and `.`, `_`, `-` between them";

impl Provider for OciProvider {
    fn name(&self) -> &str {
        "oci"
    }

    fn facts(&self) -> Facts {
        Facts {
            place: "an OCI registry",
            kind: PlaceKind::OciRegistry,
            lines_are_binding: true,
            // What matters of a manifest is in its annotations.
            lines: LineTrust::Hint,
            has_digests: true,
            archives_are_content: true,
            ..Facts::default()
        }
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        let call = Call { allow: vec![401], ..Call::get(LONGEST_GREETING, None) };
        let answer = self.registry(location).ask(To::Path("v2/"), &call, &Silent);
        Ok(none_if(answer, ErrorKind::Protocol)?.is_some_and(|answer| {
            !answer.is_absent() && (answer.api.is_some() || answer.bytes.trim_ascii() == b"{}")
        }))
    }

    fn recall(
        &self,
        location: &Location,
        revisions: &[String],
        _progress: &dyn Progress,
    ) -> Option<Found> {
        // What has a digest is found by it alone, whatever tags there are.
        let only_digests = revisions.iter().all(|text| wire::is_digest(text));
        (only_digests && repository::name_of(location).is_some())
            .then(|| Found::new(location, Vec::new(), None, None))
    }

    fn carries_copies(&self, location: &Location) -> bool {
        let Some(repository) = self.repository(location, false, &Silent) else { return false };
        let (place, said) = (repository.place(""), lock(&self.said));
        let mut here = said.iter().filter(|((at, _), _)| *at == place).map(|(_, said)| said);
        here.any(|said| {
            let format = said.release.as_ref().ok().and_then(|own| own.format.as_deref());
            format == Some(mu_formats::helm::FORMAT.name)
        })
    }

    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let Some(repository) = self.repository(location, false, progress) else {
            let tried = format!("{}, which is not there: {NAMES}", location.describe());
            return Ok(Listing::absent(vec![tried]));
        };
        let known: Option<Known> = validator.and_then(|text| serde_json::from_str(text).ok());
        let etag = known.as_ref().and_then(|known| known.etag.as_deref());
        let had_index = known.as_ref().is_none_or(|known| known.index.is_some());
        let Some((tags, tagged)) = repository.tags_and_index(etag, had_index)? else {
            return Ok(Listing::absent(vec![repository.place("tags/list")]));
        };
        // Some registries say the same of each path, and of a repository whose tags were all deleted.
        if tags.is_empty() {
            let tried =
                format!("{}, which has no tags, so no versions", repository.place("tags/list"));
            return Ok(Listing::absent(vec![tried]));
        }
        let found = repository.entries(&tags, tagged, known.as_ref())?;
        let Some((entries, now)) = found else {
            return Ok(Listing::Unchanged { max_age: None, validator: None });
        };
        let format = match entries.is_empty() {
            true => repository.format_of(&tags)?,
            false => None,
        };
        let mut releases = entries.releases(&location.path, &tags);
        for release in &mut releases {
            if let Some(format) = format {
                release.versions = format.lenient.then(|| "lenient".to_owned());
                release.format = Some(format.name.to_owned());
            }
            if release.format.is_some() {
                // Other ecosystems have names of their own, which say nothing here.
                release.name.clone_from(&location.path);
            }
        }
        if releases.is_empty() {
            let line = |reason| Release { unusable: Some(reason), ..Release::default() };
            releases.extend(listing::without_versions(&tags).map(line));
        }
        let validator = serde_json::to_string(&now).expect("a few texts can be printed");
        Ok(Listing::Found(Found::new(location, json_lines(releases), Some(validator), None)))
    }

    fn resolve(
        &self,
        location: &Location,
        revision: &str,
        progress: &dyn Progress,
    ) -> Result<Release, ProviderError> {
        let repository = self.existing(location, progress)?;
        let absent = |why: String| {
            let text = format!("there is no tag `{revision}` of `{}`", location.describe());
            ProviderError::new(ErrorKind::NotFound, text).because(why)
        };
        let is_digest = wire::is_digest(revision);
        if !wire::is_tag(revision) && !is_digest {
            return Err(absent("no tag looks like that".to_owned()));
        }
        let place = repository.place(&format!("manifests/{revision}"));
        match self.said_by(&repository, revision)? {
            None => Err(absent(format!("there is no `{place}`"))),
            // Nothing else is meant by a digest.
            Some(said) if is_digest => {
                let reference = Some(revision.to_owned());
                let found = said.named(&location.path).map_err(|reason| {
                    let text = format!("`{place}` is not a package: {reason}");
                    ProviderError::new(ErrorKind::Integrity, text)
                })?;
                let version = match foreign::is_versioned_by_tag(&found) {
                    true => repository.version_at(revision)?.unwrap_or(found.version),
                    false => found.version,
                };
                Ok(Release { reference, version, ..found })
            }
            Some(said) => {
                let found = said.named(&location.path).map_err(absent)?;
                let version =
                    none_if(self.manifest_content(&repository, &found), ErrorKind::NotFound)?;
                let is_version = version.is_some_and(|(version, _)| version.digest == said.digest);
                // A tag can move, so anything but a version is known by its digest.
                let digest = (!is_version).then(|| said.digest.clone());
                Ok(Release { artifact: digest.clone(), reference: digest, ..found })
            }
        }
    }

    fn confirm(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Release>, ProviderError> {
        let repository = self.existing(location, progress)?;
        let named = match self.manifest_content(&repository, release) {
            Ok((said, _)) => said.named(&location.path),
            // What is gone of one version keeps no other one from being used.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(format!("it is listed, but {error}"))
            }
            Err(error) => return Err(error),
        };
        // Later events are not part of it.
        let listed = || release.clone();
        Ok(Some(match named {
            Ok(own) => Release {
                yanked: listed().yanked,
                tags: listed().tags,
                moved_to: listed().moved_to,
                reference: listed().reference,
                ..own
            },
            Err(reason) => {
                Release { unusable: Some(reason), dependencies: Some(Vec::new()), ..listed() }
            }
        }))
    }

    fn search(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        let Some(names) = self.names(location, progress) else { return Ok(None) };
        let line = |name| CatalogLine { name, ..CatalogLine::default() };
        let lines = json_lines(names.into_iter().map(line));
        Ok(Some(query.search(&*lines).expect("it is in memory")))
    }

    fn account(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Account>, ProviderError> {
        self.account_of_registry(location, progress)
    }

    fn archive(&self, location: &Location, release: &Release) -> Option<String> {
        let archive = release.archive.as_ref()?;
        let place = self.repository(location, false, &Silent)?.place(&format!("blobs/{archive}"));
        SafeUrl::parse(&place).ok().map(|url| url.to_string())
    }

    fn provenance(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        let repository = self.existing(location, progress)?;
        for tag in wire::tags_of(release) {
            let Some(bytes) = repository.manifest(&tag)? else { continue };
            let manifests = repository.candidates(&bytes)?;
            return match foreign::provenance_layer(&manifests, release.archive.as_deref()) {
                Some(layer) => repository.blob(layer, LONGEST_PROVENANCE).map(Some),
                None => Ok(None),
            };
        }
        Ok(None)
    }

    fn evidence(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<FoundEvidence, ProviderError> {
        self.evidence_of(&self.existing(location, progress)?, release)
    }

    fn restore(
        &self,
        _location: &Location,
        release: &Release,
        preserved: &[u8],
        tree: &mut TreeWriter,
        _progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let layout = foreign::layout_for_format(release.locator.as_deref());
        self.archives.restore_archive(preserved, release, layout, tree)
    }

    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let repository = self.existing(location, progress)?;
        if self.unpack(&repository, release, tree)? {
            return Ok(());
        }
        // The registry has it under another name now, or a lock does not have its name.
        let (said, place) = self.manifest_content(&repository, release)?;
        let own = said.release.clone().map_err(|reason| {
            let text = format!("`{place}` contains no package: {reason}");
            ProviderError::new(ErrorKind::Integrity, text)
        })?;
        // If nothing names the content, the digest of the archive does, or that of the whole artifact.
        if let (Some(expected), None) = (&release.archive, &release.digest)
            && own.archive.as_ref() != Some(expected)
            && said.digest != *expected
        {
            let text = format!(
                "the archive of `{}` {} at `{place}` is not the one that was expected: expected {expected}, got {}",
                location.describe(),
                release.full_version(),
                own.archive.unwrap_or_default()
            );
            return Err(ProviderError::new(ErrorKind::Integrity, text));
        }
        if own.archive != release.archive && self.unpack(&repository, &own, tree)? {
            return Ok(());
        }
        let archive = own.archive.unwrap_or_default();
        let text = format!(
            "there is no archive of `{}` {} at `{}`",
            location.describe(),
            release.full_version(),
            repository.place(&format!("blobs/{archive}"))
        );
        Err(ProviderError::new(ErrorKind::NotFound, text).because(format!("`{place}` names it")))
    }
}

/// The settings of the provider.
#[derive(Debug, Clone)]
pub struct OciOptions {
    /// The client, which also knows whether mu is offline.
    pub http: Arc<Http>,
    /// A folder for incomplete downloads; created when needed.
    pub downloads: PathBuf,
    /// Where to look for passwords, besides mu's own.
    pub stores: Stores,
    /// What earlier runs have learned about registries.
    pub without_lists: WithoutLists,
    /// What earlier runs have read of blobs.
    pub kept: Kept,
}

impl OciOptions {
    /// Creates options without passwords of other tools, and without anything from earlier runs.
    pub fn new(http: Arc<Http>, downloads: impl Into<PathBuf>) -> Self {
        let (stores, without_lists) = (Stores::default(), WithoutLists::default());
        let (downloads, kept) = (downloads.into(), Kept::default());
        Self { http, downloads, stores, without_lists, kept }
    }
}
