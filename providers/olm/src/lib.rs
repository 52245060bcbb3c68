//! Catalogs of operators for the Operator Lifecycle Manager: in a folder, in a file, on a web server, in a container image.
//!
//! `catalogs.rs` reads a catalog once a run, if it has changed, and remembers it package by package; what its documents say is in
//! `mu-formats`. The files of an operator are those of its bundle: from the image that the catalog names, which
//! `mu-provider-oci` reads, or without one the resources in the catalog itself.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
#![deny(clippy::indexing_slicing)]

mod catalogs;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use mu_archive::Catalog;
use mu_archive::remembered::Part;
use mu_formats::olm;
use mu_provider::catalog::{CatalogLine, Hits, Query};
use mu_provider::http::Http;
use mu_provider::{
    ErrorKind, Facts, Found, FoundEvidence, LineTrust, Listing, Location, PlaceKind, Progress,
    Provider, ProviderError, Release, TreeWriter, json_lines,
};
use mu_provider_oci::{ImageName, OciProvider, restore_image};

use crate::catalogs::{Catalogs, Head, OperatorCatalog, path_of};

/// The folders of a bundle.
const FOLDERS: [&str; 2] = ["manifests", "metadata"];

/// Serves operators from catalogs.
///
/// It asks for each catalog once, so a new one is needed for a fresh look.
#[derive(Debug)]
pub struct OlmProvider {
    oci: Arc<OciProvider>,
    catalogs: Catalogs,
}

impl OlmProvider {
    /// A provider that has not asked for any catalog yet. `oci` reads images of bundles and catalogs; what is read of catalogs is
    /// kept in the folder `catalogs`, which is made when it is needed.
    pub fn new(http: Arc<Http>, oci: Arc<OciProvider>, catalogs: impl Into<PathBuf>) -> Self {
        Self { catalogs: Catalogs::new(http, Arc::clone(&oci), catalogs.into()), oci }
    }

    /// Writes the files of a bundle from its image; `false` if no image is named.
    fn fetch_image(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<bool, ProviderError> {
        let Some(named) = release.urls.first().and_then(|url| url.strip_prefix("oci://")) else {
            return Ok(false);
        };
        let name = ImageName::parse(named, location)?;
        if release.archive.is_some() && name.digest() != release.archive.as_deref() {
            let text = format!(
                "the bundle of `{}` {} is an image that is not named by its digest",
                location.describe(),
                release.version
            );
            return Err(ProviderError::new(ErrorKind::Integrity, text));
        }
        self.oci.image(&name, progress)?.unpack(FOLDERS.map(str::to_owned), tree)?;
        let [manifests, _] = FOLDERS;
        if !tree.has_in(manifests) {
            let (operator, version) = (location.describe(), release.full_version());
            let text = format!("there are no files of `{operator}` {version}");
            return Err(ProviderError::new(ErrorKind::NotFound, text).because(format!(
                "its image `{named}` has nothing in `/{manifests}`, where OLM looks for them"
            )));
        }
        Ok(true)
    }

    /// Writes the resources of a bundle that are in the catalog; `false` if there are none.
    fn fetch_resources(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<bool, ProviderError> {
        let Some(bundle) = &release.locator else { return Ok(false) };
        let resources = self.catalogs.bundle_resources(location, bundle, progress)?;
        if resources.is_empty() {
            return Ok(false);
        }
        let mut names = BTreeSet::new();
        for (name, resource) in &resources {
            let own = name.clone().filter(|name| names.insert(name.clone()));
            let name = own.unwrap_or_else(|| olm::file_name(resource, &mut names));
            tree.file_in_memory(format!("manifests/{name}").as_bytes(), false, resource)?;
        }
        let annotations = olm::annotations(release);
        tree.file_in_memory(b"metadata/annotations.yaml", false, annotations.as_bytes())?;
        Ok(true)
    }
}

impl Catalog for OlmProvider {
    type Of = Head;

    fn index(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<OperatorCatalog>>, ProviderError> {
        self.catalogs.get(location, progress)
    }

    fn tried(
        &self,
        location: &Location,
        index: Option<&OperatorCatalog>,
    ) -> Result<String, ProviderError> {
        let root = &location.root;
        let Some(index) = index else {
            return Ok(match root.scheme() {
                "file" => format!("{root}; there is no catalog `{}`", path_of(root)?.display()),
                _ => root.to_string(),
            });
        };
        let broken = index.of.unreadable_documents().map(|broken| format!("; {broken}"));
        let broken = broken.unwrap_or_default();
        Ok(format!("{root}, which lists no operator `{}`{broken}", location.path))
    }

    fn no_registry(&self, location: &Location) -> Result<String, ProviderError> {
        Ok(format!("there is no catalog: `{}` does not exist", location.root))
    }

    fn is_line_of(&self, line: &Release, release: &Release) -> bool {
        match (&release.locator, &release.archive) {
            (Some(bundle), _) => line.locator.as_ref() == Some(bundle),
            (None, Some(archive)) => line.archive.as_ref() == Some(archive),
            (None, None) => line.full_version() == release.full_version(),
        }
    }

    fn line(&self, query: &Query, name: &str, part: Part<'_>) -> Option<CatalogLine> {
        let releases: Vec<Release> = part.releases().collect();
        let best = olm::best_release(&releases)?;
        // The name of a bundle finds its package.
        let bundles = releases.iter().filter_map(|release| release.locator.as_deref());
        let bundles = bundles.filter(|name| query.has_word(name)).map(str::to_owned);
        Some(CatalogLine {
            name: name.to_owned(),
            latest: best.full_version(),
            description: best.description.clone(),
            keywords: best.keywords.iter().cloned().chain(bundles).collect(),
            provides: best.provides.clone(),
            deprecated: best.deprecated.clone(),
            ..CatalogLine::default()
        })
    }
}

impl Provider for OlmProvider {
    fn name(&self) -> &str {
        olm::NAME
    }

    fn facts(&self) -> Facts {
        Facts {
            place: "a catalog of operators",
            places_are_flat: true,
            kind: PlaceKind::OperatorCatalog,
            lines: LineTrust::Complete,
            archives_are_content: true,
            ..Facts::default()
        }
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        self.probe_index(location)
    }

    fn is_unchanged(&self, location: &Location, validator: &str, progress: &dyn Progress) -> bool {
        self.is_part_unchanged(location, validator, progress)
    }

    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        self.list_part(location, validator, progress)
    }

    fn providers(
        &self,
        location: &Location,
        capability: &str,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let catalog = self.catalogs.get(location, progress)?;
        let names = catalog.as_ref().and_then(|catalog| catalog.of.kinds.get(capability));
        let Some((catalog, names)) = catalog.as_ref().zip(names) else {
            return Ok(Listing::absent(vec![location.root.to_string()]));
        };
        let max_age = catalog.max_age;
        let now = names.join(" ");
        if validator == Some(&now) {
            return Ok(Listing::Unchanged { max_age, validator: None });
        }
        let release = |name: &String| Release { name: name.clone(), ..Release::default() };
        let lines = json_lines(names.iter().map(release));
        Ok(Listing::Found(Found::new(location, lines, Some(now), max_age)))
    }

    fn capabilities(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<BTreeSet<String>>, ProviderError> {
        let catalog = self.catalogs.get(location, progress)?;
        Ok(catalog.map(|catalog| catalog.of.kinds.keys().cloned().collect()))
    }

    fn search(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        self.search_index(location, query, progress)
    }

    fn evidence(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<FoundEvidence, ProviderError> {
        let image =
            |release: &Release| Some(release.urls.first()?.strip_prefix("oci://")?.to_owned());
        // What is in the catalog itself is signed by nobody.
        let named = match image(release) {
            Some(named) => Some(named),
            None => self.listed(location, release, progress)?.as_ref().and_then(image),
        };
        let Some(named) = named else { return Ok(FoundEvidence::default()) };
        self.oci.evidence_of_image(&ImageName::parse(&named, location)?, progress)
    }

    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        if self.fetch_image(location, release, tree, progress)? {
            return Ok(());
        }
        // A lock that was written from another place says little.
        let listed = self.listed(location, release, progress)?;
        let listed = listed.unwrap_or_else(|| release.clone());
        if self.fetch_image(location, &listed, tree, progress)?
            || self.fetch_resources(location, &listed, tree, progress)?
        {
            return Ok(());
        }
        let text =
            format!("there are no files of `{}` {}", location.describe(), release.full_version());
        Err(ProviderError::new(ErrorKind::NotFound, text).because(format!(
            "the catalog `{}` names no image of it, and has none of its resources",
            location.root
        )))
    }

    fn restore(
        &self,
        _location: &Location,
        release: &Release,
        preserved: &[u8],
        tree: &mut TreeWriter,
        _progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let image = release.archive.as_deref().unwrap_or_default();
        restore_image(preserved, image, FOLDERS.map(str::to_owned), tree)
    }
}
