//! Repositories with an `index.yaml`, on a web server or in a folder, and archives at the URLs in it: those of Helm charts, and
//! those of KUDO operators.
//!
//! `repository.rs` reads an index once in a run, if it has changed, and stores it package by package. `mu-formats` interprets
//! charts and operators, and the hub's provider downloads and unpacks archives. An index may list charts in OCI registries,
//! which another provider downloads.
//!
//! The index of operators does not say what an operator depends on. So the archives of the versions that are looked at are
//! downloaded while versions are chosen: the `operator.yaml` in each is stored by the digest of the archive, and the archive
//! itself is kept until its files are needed. Archives of operators have no folder at their top.
//!
//! [`pack`] makes the archive of a chart, as `helm package` would. The caller decides which files belong to it.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
#![deny(clippy::indexing_slicing)]

mod repository;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};

use mu_archive::document::{PROV_ENDING, evidence_beside, statement_beside};
use mu_archive::remembered::{AskedOnce, digest};
use mu_archive::{ArchiveLayout, ArchiveWriter, Archives, Catalog as _, Held, Looked, Packing};
use mu_formats::helm::{FORMAT, HelmRepositoryAliases, tell_links};
use mu_formats::kudo::{self, OPERATOR};
use mu_provider::catalog::{Hits, Query};
use mu_provider::fs::{self, AtPath as _, FileError};
use mu_provider::http::Http;
use mu_provider::publishable::LONGEST_PROVENANCE;
use mu_provider::threads::lock;
use mu_provider::{
    Account, ErrorKind, Facts, FoundEvidence, FoundPiece, LineTrust, Listing, Location, Progress,
    Provider, ProviderError, Release, SafeUrl, Soon, TreeWriter, none_if, with_causes,
};
use mu_trust::Evidence;
use percent_encoding::percent_decode_str;

use crate::repository::{CHARTS, Kind, OPERATORS, Repository};

/// The largest archive of a chart, in bytes. Helm itself refuses archives of more than a hundred megabytes
/// when unpacked.
const LARGEST_CHART: u64 = 1 << 30;

/// The largest archive of an operator, in bytes: a few templates.
const LARGEST_OPERATOR: u64 = 64 << 20;

/// The settings of the provider.
#[derive(Debug, Clone)]
pub struct RepositoryOptions {
    /// The client, which also knows whether mu is offline.
    pub http: Arc<Http>,
    /// A folder for the stored indexes and `operator.yaml`s; created when needed.
    pub indexes: PathBuf,
    /// A folder for incomplete downloads; created when needed.
    pub downloads: PathBuf,
}

/// Serves charts, or operators, from repositories.
///
/// It requests each index once, so create a new one to look again.
#[derive(Debug)]
pub struct RepositoryProvider {
    kind: &'static Kind,
    http: Arc<Http>,
    /// The folder of stored indexes.
    folder: PathBuf,
    aliases: Option<PathBuf>,
    /// The short names of repositories, once they were read, and their digest.
    named: OnceLock<(HelmRepositoryAliases, String)>,
    asked: AskedOnce<Repository>,
    archives: Archives,
    /// Downloads charts that an index places in an OCI registry.
    oci: Option<Arc<dyn Provider>>,
    /// What is known about operators, if it serves these.
    operators: Option<Operators>,
}

impl RepositoryProvider {
    /// Serves charts of Helm, and has not contacted any repository yet. `oci` downloads charts that an index places in an OCI
    /// registry; `aliases` is Helm's `repositories.yaml`, if there is one: the short names of repositories.
    pub fn charts(
        options: RepositoryOptions,
        oci: Option<Arc<dyn Provider>>,
        aliases: Option<PathBuf>,
    ) -> Self {
        Self { oci, aliases, ..Self::new(&CHARTS, options, LARGEST_CHART) }
    }

    /// Serves operators of KUDO, and has not contacted any repository yet.
    pub fn operators(options: RepositoryOptions) -> Self {
        let operators = Some(Operators::new(options.indexes.join("operators")));
        Self { operators, ..Self::new(&OPERATORS, options, LARGEST_OPERATOR) }
    }

    fn new(kind: &'static Kind, options: RepositoryOptions, largest: u64) -> Self {
        let RepositoryOptions { http, indexes, downloads } = options;
        Self {
            kind,
            archives: Archives::new(Arc::clone(&http), downloads, largest),
            http,
            folder: indexes,
            aliases: None,
            named: OnceLock::new(),
            asked: AskedOnce::default(),
            oci: None,
            operators: None,
        }
    }

    /// Adds that the passwords count which the user has given to Helm: they are looked for by the server of a repository.
    fn with_helms_way(&self, location: &Location, error: ProviderError) -> ProviderError {
        let Ok(url) = self.url(location) else { return error };
        // What an index lists may be on another server, which has its own hints.
        let host = url.as_url().host_str().unwrap_or_default();
        let is_here = error.hints().iter().any(|hint| hint.contains(host));
        let is_for_charts = self.operators.is_none() && url.is_confidential();
        if error.kind() != ErrorKind::Auth || !is_here || !is_for_charts {
            return error;
        }
        let root = location.root.with_trailing_slash();
        error.hint(format!(
            "mu also finds what `helm repo add NAME {root} --username USER` has stored"
        ))
    }

    /// The chart at `HOST/REPOSITORY:TAG` in an OCI registry, and the provider that serves it.
    fn artifact(
        &self,
        location: &Location,
        release: &Release,
        place: &str,
    ) -> Result<(&dyn Provider, Location, Release), ProviderError> {
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
        let root = location.root.leads_to(root)?;
        let artifact = Release {
            version: release.version.clone(),
            digest: release.digest.clone(),
            archive: release.archive.clone(),
            reference: Some(tag),
            locator: Some(FORMAT.name.to_owned()),
            ..Release::default()
        };
        // If the index may use plain http, that does not hold for other servers.
        Ok((&**oci, Location::new(root, path), artifact))
    }
}

impl Provider for RepositoryProvider {
    fn name(&self) -> &str {
        self.kind.name
    }

    fn facts(&self) -> Facts {
        let are_charts = self.operators.is_none();
        Facts {
            place: self.kind.place,
            places_are_flat: true,
            // A chart without dependencies in the index carries everything inside.
            lines: if are_charts { LineTrust::Complete } else { LineTrust::Hint },
            names_are_binding: true,
            lines_are_binding: true,
            archives_are_content: true,
            ..Facts::default()
        }
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        self.probe_index(location)
    }

    fn carries_copies(&self, _location: &Location) -> bool {
        self.operators.is_none()
    }

    fn soon(&self, location: &Location, what: Soon<'_>) {
        let Soon::Fetch(release) = what else { return };
        if self.operators.as_ref().is_some_and(|operators| operators.has(release)) {
            return;
        }
        // What is in an OCI registry is not on a web server.
        let url = release.urls.first().filter(|url| !url.starts_with("oci://"));
        let place = url.and_then(|url| Archives::place(location, url).ok());
        if let Some(place) = place.filter(|place| place.url.scheme() != "file") {
            self.http.get(&place.url).insecure(place.insecure).ahead();
        }
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
        // Helm and KUDO accept `v1.2` as a version.
        self.list_part(&Location { lenient: true, ..location.clone() }, validator, progress)
            .map_err(|error| self.with_helms_way(location, error))
    }

    fn confirm(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Release>, ProviderError> {
        let Some(operators) = &self.operators else { return Ok(None) };
        if release.unusable.is_some() || release.dependencies.is_some() {
            return Ok(None);
        }
        match self.text(operators, location, release, progress) {
            Ok(text) => Ok(Some(kudo::completed(release, &text))),
            // Other versions may be better.
            Err(error) if matches!(error.kind(), ErrorKind::Manifest | ErrorKind::NotFound) => {
                Ok(Some(Release { unusable: Some(with_causes(&error)), ..release.clone() }))
            }
            Err(error) => Err(error),
        }
    }

    fn archive(&self, location: &Location, release: &Release) -> Option<String> {
        Archives::place(location, release.urls.first()?).ok().map(|place| place.url.to_string())
    }

    fn provenance(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        if self.operators.is_some() {
            return Ok(None);
        }
        for url in self.places(location, release, progress)? {
            let found = match url.strip_prefix("oci://") {
                Some(place) => {
                    let (oci, place, artifact) = self.artifact(location, release, place)?;
                    oci.provenance(&place, &artifact, progress)?
                }
                None => {
                    let place = Archives::place(location, &url)?;
                    statement_beside(&[place.url], &self.http, location, true, progress)?
                }
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn evidence(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<FoundEvidence, ProviderError> {
        let subject = release.archive.clone().unwrap_or_default();
        let mut found = FoundEvidence { subject, ..FoundEvidence::default() };
        if self.operators.is_some() {
            return Ok(found);
        }
        // What is signed is the archive itself, under the name that it has there. All places count: one may have an old statement.
        for url in self.places(location, release, progress)? {
            if let Some(place) = url.strip_prefix("oci://") {
                let (oci, place, artifact) = self.artifact(location, release, place)?;
                return oci.evidence(&place, &artifact, progress);
            }
            let url = Archives::place(location, &url)?.url;
            let place = format!("{url}{PROV_ENDING}");
            let last = url.as_url().path().rsplit('/').next().unwrap_or_default();
            let name = percent_decode_str(last).decode_utf8_lossy().into_owned();
            let file = (PROV_ENDING, LONGEST_PROVENANCE);
            let evidence = match evidence_beside(&url, file, &self.http, location, progress)? {
                Ok(None) => None,
                Ok(Some(bytes)) => Some(match String::from_utf8(bytes) {
                    Ok(text) => Ok(Evidence::Prov(text)),
                    Err(_) => Err("it is not text".to_owned()),
                }),
                Err(error) => Some(Err(found.withheld.insert(error).to_string())),
            };
            let archive = Some(name);
            let manifests = Vec::new();
            let place_of = place.clone();
            let piece = |evidence| FoundPiece { place: place_of, evidence, manifests, archive };
            found.pieces.extend(evidence.map(piece));
            found.looked_at.push(place);
        }
        Ok(found)
    }

    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        if let Some(operators) = &self.operators {
            return match operators.take(release) {
                Some(held) => held.unpack_and_keep(tree),
                None => self.operator(location, release, progress)?.unpack_and_keep(tree),
            };
        }
        self.first(location, release, progress, |url| {
            let unpacked = match url.strip_prefix("oci://") {
                Some(place) => {
                    let (oci, place, artifact) = self.artifact(location, release, place)?;
                    oci.fetch(&place, &artifact, tree, progress)
                }
                None => {
                    let place = Archives::place(location, url)?;
                    let layout = ArchiveLayout::InFolder;
                    let unpacked = self.archives.unpack(&place, release, layout, tree, progress);
                    unpacked.inspect(|()| tell_links(tree, &place.url, progress))
                }
            };
            none_if(unpacked, ErrorKind::NotFound)
        })
        .map_err(|error| self.with_helms_way(location, error))
    }

    fn restore(
        &self,
        _location: &Location,
        release: &Release,
        preserved: &[u8],
        tree: &mut TreeWriter,
        _progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        // Repositories of charts have them in a folder, and those of operators at the top.
        let layout = match self.operators {
            Some(_) => ArchiveLayout::Files,
            None => ArchiveLayout::InFolder,
        };
        self.archives.restore_archive(preserved, release, layout, tree)
    }

    fn search(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        self.search_index(location, query, progress)
            .map_err(|error| self.with_helms_way(location, error))
    }

    fn account(
        &self,
        location: &Location,
        _progress: &dyn Progress,
    ) -> Result<Option<Account>, ProviderError> {
        let url = self.url(location)?;
        if url.scheme() == "file" {
            return Ok(None);
        }
        let user = self.http.user_let_in(&url, location.insecure)?;
        Ok(user.map(Account::of_user))
    }
}

/// What is in a file of an archive.
#[derive(Debug, Clone)]
pub enum Content {
    /// What is in this file.
    OnDisk(PathBuf),
    /// What was made, such as the archive of a chart inside.
    Made(Rc<[u8]>),
}

/// Packs a chart called `name` from its files, by their paths in it, with slashes. The same files give the
/// same bytes.
///
/// # Errors
///
/// When a file cannot be read.
pub fn pack(name: &str, files: &BTreeMap<String, Content>) -> Result<Vec<u8>, FileError> {
    let mut writer = ArchiveWriter::new(Vec::new());
    for (path, content) in files {
        let path = format!("{name}/{path}");
        match content {
            Content::OnDisk(place) => {
                let file = fs::open(place)?;
                let size = file.metadata().at("read", place)?.len();
                writer.file(&path, false, size, io::BufReader::new(file)).at("pack", place)?;
            }
            Content::Made(bytes) => {
                let written = writer.file(&path, false, bytes.len() as u64, &**bytes);
                written.at("pack", Path::new(&path))?;
            }
        }
    }
    writer.finish().at("pack", Path::new(name))
}

/// How many bytes of archives are kept until they are unpacked.
const MOST_KEPT: u64 = 64 << 20;

/// What is known about operators.
#[derive(Debug)]
pub(crate) struct Operators {
    /// A folder for their `operator.yaml`s.
    texts: PathBuf,
    kept: Mutex<Kept>,
}

impl Operators {
    pub(crate) fn new(texts: PathBuf) -> Self {
        Self { texts, kept: Mutex::default() }
    }

    /// Whether the archive of a release is kept.
    pub(crate) fn has(&self, release: &Release) -> bool {
        let archive = release.archive.as_ref();
        archive.is_some_and(|archive| lock(&self.kept).archives.contains_key(archive))
    }

    /// The archive of a release, if it is kept.
    pub(crate) fn take(&self, release: &Release) -> Option<Held> {
        lock(&self.kept).take(release.archive.as_deref())
    }
}

/// Archives that were looked into, by their digests.
#[derive(Debug, Default)]
struct Kept {
    archives: HashMap<String, Held>,
    bytes: u64,
}

impl Kept {
    fn keep(&mut self, held: Held) {
        let is_small = self.bytes.saturating_add(held.size) <= MOST_KEPT;
        // Two threads may look into the same archive at once.
        if is_small && let Entry::Vacant(entry) = self.archives.entry(held.digest.to_string()) {
            self.bytes += held.size;
            entry.insert(held);
        }
    }

    fn take(&mut self, digest: Option<&str>) -> Option<Held> {
        let held = self.archives.remove(digest?)?;
        self.bytes -= held.size;
        Some(held)
    }
}

impl RepositoryProvider {
    /// Downloads the archive from the first of its URLs that has it, or of those that the index has now.
    pub(crate) fn operator(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Held, ProviderError> {
        self.first(location, release, progress, |url| {
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
    pub(crate) fn text(
        &self,
        operators: &Operators,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<String, ProviderError> {
        let stored =
            |archive: &str| operators.texts.join(format!("{}.yaml", digest(archive.as_bytes())));
        let stored = release.archive.as_deref().map(stored);
        if let Some(stored) = &stored
            && let Ok(Some(text)) = fs::read_text_if_there(stored)
        {
            return Ok(text);
        }
        let mut held = self.operator(location, release, progress)?;
        let text = held.files.remove(OPERATOR).and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.filter(|text| kudo::is_operator(text)).ok_or_else(|| {
            let version = release.full_version();
            let what = format!("the archive of `{}` {version}", location.describe());
            let text = format!("{what} has no `{OPERATOR}` of an operator at its top");
            ProviderError::new(ErrorKind::Manifest, text)
        })?;
        if let Some(stored) = &stored {
            // It only saves a download: without it, mu goes on.
            let _ = fs::create_folder(&operators.texts)
                .and_then(|()| fs::write_atomic(stored, text.as_bytes()));
        }
        lock(&operators.kept).keep(held);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use mu_archive::Place;
    use mu_provider::http::{Http, HttpOptions};
    use mu_provider::{SafeUrl, Silent};
    use mu_testing::{KudoOperator, KudoRepository};

    use super::*;

    #[test]
    fn an_archive_that_two_threads_look_into_counts_once() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let operator = KudoOperator::new("kafka", "1.3.0");
        KudoRepository::new(folder.path(), "").add(&operator);
        let http = Http::new(HttpOptions::default());
        let archives = Archives::new(http, folder.path().join("downloads"), 1 << 20);
        let url = format!("file://{}/{}", folder.path().display(), operator.file());
        let url = SafeUrl::parse(&url).expect("is a URL");
        let place = Place { url, insecure: false, guard: None };
        let (release, wanted) = (Release::default(), |path: &str| path == OPERATOR);
        let look = || match archives.look(&place, Packing::Tar, &release, None, &wanted, &Silent) {
            Ok(Looked::Held(held)) => *held,
            other => panic!("it is there: {other:?}"),
        };
        let mut kept = Kept::default();
        let held = look();
        let (size, digest) = (held.size, held.digest.to_string());
        kept.keep(held);
        kept.keep(look());
        assert_eq!(kept.bytes, size);
        assert!(kept.take(Some(&digest)).is_some());
        assert_eq!(kept.bytes, 0);
    }
}
