//! Repositories with an `index.yaml`, on a web server or in a folder, and archives at the URLs in it: those of Helm charts, and
//! those of KUDO operators.
//!
//! `repository.rs` reads an index once in a run, if it has changed, and stores it package by package. `mu-formats`
//! interprets charts and operators, and the hub's provider downloads and unpacks archives. An index may list charts in OCI
//! registries, which another provider downloads. `operators.rs` has what is different about operators.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
#![deny(clippy::indexing_slicing)]

mod operators;
mod pack;
mod repository;

use std::path::PathBuf;
use std::sync::Arc;

use mu_formats::helm::FORMAT;
use mu_provider::catalog::{Hits, Query};
use mu_provider::http::Http;
use mu_provider::{
    ErrorKind, Facts, Listing, Location, Progress, Provider, ProviderError, Release, SafeUrl, Soon,
    TreeWriter,
};
use mu_provider_hub::Archives;
use mu_provider_hub::archive::Layout;

pub use crate::operators::{KudoOptions, KudoProvider};
pub use crate::pack::pack;
use crate::repository::{CHARTS, Repositories};

/// The largest archive of a chart, in bytes. Helm itself refuses archives of more than a hundred megabytes
/// when unpacked.
const LARGEST_ARCHIVE: u64 = 1 << 30;

/// The settings of the provider.
#[derive(Debug, Clone)]
pub struct HelmOptions {
    /// The client, which also knows whether mu is offline.
    pub http: Arc<Http>,
    /// A folder for the stored indexes; created when needed.
    pub indexes: PathBuf,
    /// A folder for incomplete downloads; created when needed.
    pub downloads: PathBuf,
    /// Downloads charts that an index places in an OCI registry.
    pub oci: Option<Arc<dyn Provider>>,
    /// Helm's `repositories.yaml`, if there is one: the short names of repositories.
    pub repositories: Option<PathBuf>,
}

/// Serves charts from repositories.
///
/// It requests each index once, so create a new one to look again.
#[derive(Debug)]
pub struct HelmProvider {
    repositories: Repositories,
    archives: Archives,
    oci: Option<Arc<dyn Provider>>,
}

impl HelmProvider {
    /// A provider that has not contacted any repository yet.
    pub fn new(options: HelmOptions) -> Self {
        let HelmOptions { http, indexes, downloads, oci, repositories } = options;
        Self {
            repositories: Repositories::new(&CHARTS, Arc::clone(&http), indexes, repositories),
            archives: Archives::new(http, downloads, LARGEST_ARCHIVE),
            oci,
        }
    }

    /// Fetches from `HOST/REPOSITORY:TAG` in an OCI registry.
    fn fetch_artifact(
        &self,
        location: &Location,
        release: &Release,
        place: &str,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let refused = |why: &str| {
            let what = format!("`{}` {}", location.describe(), release.version);
            let text = format!("the archive of {what} is at `oci://{place}`, {why}");
            ProviderError::new(ErrorKind::Protocol, text)
        };
        let oci = self.oci.as_ref();
        let oci = oci.ok_or_else(|| refused("and this mu was built without OCI registries"))?;
        let (host, path) = place.split_once('/').unwrap_or((place, ""));
        let (path, tag) = path.rsplit_once(':').unwrap_or((path, &release.version));
        // Some write the version itself; a tag has no `+`.
        let tag = tag.replace('+', "_");
        let root = SafeUrl::parse(&format!("https://{host}/"));
        let root = root.map_err(|_| refused("which is not a place in an OCI registry"))?;
        let artifact = Release {
            version: release.version.clone(),
            digest: release.digest.clone(),
            archive: release.archive.clone(),
            reference: Some(tag),
            locator: Some(FORMAT.name.to_owned()),
            ..Release::default()
        };
        // If the index may use plain http, that does not hold for other servers.
        oci.fetch(&Location::new(root, path), &artifact, tree, progress)
    }
}

impl Provider for HelmProvider {
    fn name(&self) -> &str {
        "helm"
    }

    fn facts(&self) -> Facts {
        Facts {
            place: "a chart repository",
            places_are_flat: true,
            // A chart without dependencies in the index carries everything inside.
            lines_are_complete: true,
            names_are_binding: true,
            lines_are_binding: true,
            ..Facts::default()
        }
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        self.repositories.probe(location)
    }

    fn carries_copies(&self, _location: &Location) -> bool {
        true
    }

    fn soon(&self, location: &Location, what: Soon<'_>) {
        if let Soon::Fetch(release) = what {
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
        self.repositories.first(location, release, progress, |url| {
            let unpacked = match url.strip_prefix("oci://") {
                Some(place) => self.fetch_artifact(location, release, place, tree, progress),
                None => {
                    let place = Archives::place(location, url)?;
                    self.archives.unpack(&place, release, Layout::InFolder, tree, progress)
                }
            };
            match unpacked {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                unpacked => unpacked.map(Some),
            }
        })
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
