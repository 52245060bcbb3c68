//! Helm chart repositories: an `index.yaml` on a web server or in a folder, and archives at the URLs in it.
//!
//! `repository.rs` reads an index once in a run, if it has changed, and stores it chart by chart. `mu-formats`
//! interprets charts, and the hub's provider downloads and unpacks archives. An index may list charts in OCI
//! registries, which another provider downloads.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
#![deny(clippy::indexing_slicing)]

mod pack;
mod repository;

use std::path::PathBuf;
use std::sync::Arc;

use mu_formats::helm::FORMAT;
use mu_provider::catalog::{Hits, Query};
use mu_provider::http::Http;
use mu_provider::{
    ErrorKind, Found, Listing, Location, ManifestFile, Progress, Provider, ProviderError, Release,
    SafeUrl, Silent, Soon, TreeWriter,
};
use mu_provider_hub::archive::Layout;
use mu_provider_hub::{Archives, Place};

pub use crate::pack::pack;
use crate::repository::{Repositories, Repository};

/// How many places of an archive are tried.
const MOST_PLACES: usize = 8;

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
    http: Arc<Http>,
    repositories: Repositories,
    archives: Archives,
    oci: Option<Arc<dyn Provider>>,
}

impl HelmProvider {
    /// A provider that has not contacted any repository yet.
    pub fn new(options: HelmOptions) -> Self {
        let HelmOptions { http, indexes, downloads, oci, repositories } = options;
        Self {
            repositories: Repositories::new(Arc::clone(&http), indexes, repositories),
            archives: Archives::new(Arc::clone(&http), downloads, LARGEST_ARCHIVE),
            http,
            oci,
        }
    }

    /// Fetches the archive from the first of `urls` that has it; returns `None` if none has.
    fn fetch_first(
        &self,
        location: &Location,
        release: &Release,
        urls: &[String],
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<Option<()>, ProviderError> {
        let root = location.root.as_folder();
        for url in urls.iter().take(MOST_PLACES) {
            let unpacked = match url.strip_prefix("oci://") {
                Some(place) => self.fetch_artifact(location, release, place, tree, progress),
                None => {
                    let url = Archives::place(&root, url)?;
                    let place = Place { url, insecure: location.insecure, guard: None };
                    self.archives.unpack(&place, release, Layout::InFolder, tree, progress)
                }
            };
            match unpacked {
                Ok(()) => return Ok(Some(())),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
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
        let (path, tag) = match path.rsplit_once(':') {
            Some((path, tag)) => (path, tag.to_owned()),
            None => (path, release.version.replace('+', "_")),
        };
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

    /// The index entry of a release of which a lock has only little.
    fn listed(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Release>, ProviderError> {
        let Some(repository) = self.repositories.get(location, progress)? else { return Ok(None) };
        let Some(chart) = repository.chart(&location.path) else { return Ok(None) };
        let lines = chart.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut listed = lines.filter_map(|line| serde_json::from_slice::<Release>(line).ok());
        Ok(listed.find(|listed| match &release.archive {
            Some(archive) => listed.archive.as_ref() == Some(archive),
            None => listed.version.trim_start_matches('v') == release.version,
        }))
    }
}

impl Provider for HelmProvider {
    fn name(&self) -> &str {
        "helm"
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        match self.repositories.get(location, &Silent) {
            Ok(repository) => Ok(repository.is_some()),
            Err(error) if error.kind() == ErrorKind::Protocol => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn places_are_flat(&self) -> bool {
        true
    }

    fn carries_copies(&self, _location: &Location) -> bool {
        true
    }

    fn lines_are_complete(&self) -> bool {
        true
    }

    fn names_are_binding(&self) -> bool {
        true
    }

    fn soon(&self, location: &Location, what: Soon<'_>) {
        let Soon::Fetch(release) = what else { return };
        let Some(url) = release.urls.first().filter(|url| !url.starts_with("oci://")) else {
            return;
        };
        if let Ok(place) = Archives::place(&location.root.as_folder(), url)
            && place.scheme() != "file"
        {
            self.http.get(&place).insecure(location.insecure).ahead();
        }
    }

    fn is_unchanged(&self, location: &Location, validator: &str, progress: &dyn Progress) -> bool {
        // The code that really needs the repository reports the error.
        let repository = self.repositories.get(location, progress).ok().flatten();
        let chart = repository.as_ref().and_then(|repository| repository.chart(&location.path));
        chart.is_some_and(|chart| chart.digest == validator)
    }

    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let url = Repository::url(location)?;
        let Some(repository) = self.repositories.get(location, progress)? else {
            return Ok(Listing::Absent { tried: vec![url.to_string()] });
        };
        let Some(chart) = repository.chart(&location.path) else {
            let tried = format!("{url}, which lists no chart `{}`", location.path);
            return Ok(Listing::Absent { tried: vec![tried] });
        };
        let max_age = repository.max_age;
        if validator == Some(chart.digest) {
            return Ok(Listing::Unchanged { max_age, validator: None });
        }
        Ok(Listing::Found(Found {
            lines: chart.lines.to_vec(),
            validator: Some(chart.digest.to_owned()),
            max_age,
            // Helm accepts `v1.2` as a version.
            location: Location { lenient: true, ..location.clone() },
            leads_to: Vec::new(),
        }))
    }

    fn resolve(
        &self,
        location: &Location,
        revision: &str,
        _progress: &dyn Progress,
    ) -> Result<Release, ProviderError> {
        let text = format!(
            "there is no commit `{revision}` of `{}`: a chart repository has no commits",
            location.describe()
        );
        Err(ProviderError::new(ErrorKind::NotFound, text))
    }

    fn manifest(
        &self,
        _location: &Location,
        _release: &Release,
        _progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, ProviderError> {
        // The index has the dependencies of a chart. A chart without any there carries everything inside.
        Ok(None)
    }

    fn archive(&self, location: &Location, release: &Release) -> Option<SafeUrl> {
        Archives::place(&location.root.as_folder(), release.urls.first()?).ok()
    }

    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        if self.fetch_first(location, release, &release.urls, tree, progress)?.is_some() {
            return Ok(());
        }
        // It may have moved since it was locked, or the lock does not have its URL.
        let listed = self.listed(location, release, progress)?.unwrap_or_default();
        let others: Vec<String> =
            listed.urls.into_iter().filter(|url| !release.urls.contains(url)).collect();
        if self.fetch_first(location, release, &others, tree, progress)?.is_some() {
            return Ok(());
        }
        let tried: Vec<String> =
            release.urls.iter().chain(&others).map(|url| format!("`{url}`")).collect();
        let text = format!("there is no archive of `{}` {}", location.describe(), release.version);
        let error = ProviderError::new(ErrorKind::NotFound, text);
        Err(match tried.is_empty() {
            true => error,
            false => error.because(format!("mu looked for it at {}", tried.join(" and "))),
        })
    }

    fn search(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        let url = Repository::url(location)?;
        let Some(repository) = self.repositories.get(location, progress)? else {
            let text = format!("there is no chart repository: `{url}` does not exist");
            return Err(ProviderError::new(ErrorKind::NotFound, text));
        };
        let hits = query.search(&*repository.catalog()).expect("it is in memory");
        Ok(Some(hits))
    }
}
