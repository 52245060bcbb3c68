//! One package as a run knows it: its releases, what was looked up about them, and what its manifests say that its lines lack.

pub(super) mod requirements;
mod revision;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use mu_formats::{Reading, helm};
use mu_provider::threads::lock;
use mu_provider::{
    Dates, Dependency, DetailedDependency, ErrorKind, Found, Location, ManifestFile, PlaceKind,
    Progress, Release,
};
use rustc_hash::FxHashMap;
use serde::de::Error as _;

use self::requirements::LookedUpRequirements;
use self::revision::LookedUpRevision;
use crate::formats;
use crate::index::cache::{Fetched, LineSpan, LineTable, Listing, ListingLines, Record};
use crate::index::error::PackageError;
use crate::index::routes::Route;
use crate::index::run::PackageSurroundings;
use crate::index::wire::{self, LeftOut};
use crate::manifest::{Manifest, Outline};
use crate::reference::{Aliases, PackageId, Version};
use crate::select::Candidate;
use crate::select::releases::{ChosenFacts, Details, Position, Releases};

/// A package and what was looked up about it in this run.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) releases: Arc<Releases>,
    pub(super) route: Arc<Route>,
    /// `None` if there is no such package.
    lines: Option<ListingLines>,
    table: LineTable,
    pub(super) origin: Origin,
    requirements: Mutex<FxHashMap<Position, Arc<OnceLock<LookedUpRequirements>>>>,
    /// Additional data from the manifests that were read.
    declared: Mutex<HashMap<Position, Arc<Details>>>,
    untagged: Mutex<HashMap<String, Arc<LookedUpRevision>>>,
    /// Lines that were read.
    read: Mutex<FxHashMap<Position, Arc<Release>>>,
    /// Its number in the order in which packages were requested in this run.
    pub(super) order: usize,
}

/// Where the versions of a package are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Its registry was asked in this run.
    Asked,
    /// No request was sent, because the required commits are on this machine; there may be more versions.
    Recalled,
    /// No request was sent, because the last answer is recent; its registry may know more by now.
    Remembered,
    /// The versions are packs of this machine.
    Packs,
    /// Its registry cannot be asked, and nothing but what is installed is known.
    Installed,
}

impl Package {
    pub(super) fn new(id: &PackageId, mut route: Route, record: Record, origin: Origin) -> Self {
        let (mut releases, lines, table) = match record.listing {
            None => (Releases::absent(id.clone(), record.tried), None, LineTable::default()),
            Some(mut listing) => {
                let releases = releases(id, &mut listing, &route);
                let has_revisions = route.provider.facts().has_revisions;
                let releases = if has_revisions { releases.with_revisions() } else { releases };
                route.location = Location { dates: route.location.dates, ..listing.location };
                (releases, Some(listing.lines), listing.table)
            }
        };
        // A folder has one version, whose age only its author knows.
        releases.is_folder = route.provider.facts().kind == PlaceKind::Folder;
        releases.is_ageless =
            releases.is_folder || matches!(origin, Origin::Packs | Origin::Installed);
        Self {
            releases: Arc::new(releases),
            route: Arc::new(route),
            lines,
            table,
            origin,
            requirements: Mutex::default(),
            declared: Mutex::default(),
            untagged: Mutex::default(),
            read: Mutex::default(),
            order: 0,
        }
    }

    /// This package, whose details name packages by the ids that count.
    pub(super) fn counted(mut self, aliases: &Aliases) -> Self {
        if !aliases.is_empty() {
            self.releases = Arc::new(Arc::unwrap_or_clone(self.releases).counted(aliases));
        }
        self
    }

    /// This package with other knowledge of its versions, and all that was looked up about it.
    pub(super) fn with_releases(&self, releases: Releases) -> Self {
        Self {
            releases: Arc::new(releases),
            route: Arc::clone(&self.route),
            lines: self.lines.clone(),
            table: self.table.clone(),
            origin: self.origin,
            requirements: Mutex::new(lock(&self.requirements).clone()),
            declared: Mutex::new(lock(&self.declared).clone()),
            untagged: Mutex::new(lock(&self.untagged).clone()),
            read: Mutex::new(lock(&self.read).clone()),
            order: self.order,
        }
    }

    /// Whether the requirements of its versions are known without a request.
    pub(super) fn has_known_requirements(&self) -> bool {
        self.route.provider.facts().lines.is_complete()
    }

    /// The package in a folder on this machine, whose version only its manifest knows.
    pub(super) fn in_folder(
        around: &dyn PackageSurroundings,
        id: &PackageId,
        route: Route,
        found: &Found,
    ) -> Result<Self, PackageError> {
        let now = around.run().options.now;
        let mut fetched = wire::fetched(found)?;
        let record = wire::learned(now, found, &fetched).record;
        let package = Self::new(id, route, record, Origin::Asked);
        let [Fetched { head, .. }] = &mut *fetched else { return Ok(package) };
        if !head.version.is_empty() {
            return Ok(package);
        }
        let manifest = package.manifests(around).read(&Release::default())?;
        let version = manifest.and_then(|manifest| manifest.version);
        let version = version.unwrap_or_else(|| semver::Version::new(0, 0, 0).into());
        head.version = wire::version_label(Some(&version));
        head.composite = version.app().is_some();
        let record = wire::learned(now, found, &fetched).record;
        Ok(Self::new(id, Arc::unwrap_or_clone(package.route), record, Origin::Asked))
    }

    pub(super) fn id(&self) -> &PackageId {
        self.releases.id()
    }

    /// Where a candidate is, and what is known about it.
    pub(super) fn release(
        &self,
        candidate: Candidate<'_>,
    ) -> Result<(Arc<Route>, Arc<Release>), Arc<PackageError>> {
        let release = match candidate {
            Candidate::Release(position) => match self.known_line(position) {
                Some(release) => release,
                None => {
                    let release = Arc::new(self.line(position)?);
                    lock(&self.read).insert(position, Arc::clone(&release));
                    release
                }
            },
            Candidate::Revision(untagged) => {
                let known = lock(&self.untagged).get(&*untagged.commit).cloned();
                let bare = || Release::at(&untagged.commit);
                Arc::new(known.map_or_else(bare, |looked| looked.release.clone()))
            }
        };
        Ok((Arc::clone(&self.route), release))
    }

    /// A line that was read before.
    pub(super) fn known_line(&self, position: Position) -> Option<Arc<Release>> {
        lock(&self.read).get(&position).map(Arc::clone)
    }

    /// Whether the line of a version lacks its digests.
    pub(super) fn is_short(&self, position: Position) -> bool {
        // A line that cannot be read is an error for whoever needs it.
        self.release(Candidate::Release(position)).is_ok_and(|(_, line)| line.short)
    }

    fn line(&self, position: Position) -> Result<Release, PackageError> {
        self.read(position).map_err(|source| PackageError::Line {
            id: self.id().clone(),
            version: self.label(position),
            source,
        })
    }

    fn read(&self, position: Position) -> Result<Release, serde_json::Error> {
        let place = self.place_of_line(position);
        let (lines, line) =
            place.ok_or_else(|| serde_json::Error::custom("there is no such line"))?;
        wire::release(lines, line)
    }

    /// The lines, and where this one is among them.
    pub(super) fn place_of_line(&self, position: Position) -> Option<(&ListingLines, LineSpan)> {
        let lines = self.lines.as_ref()?;
        Some((lines, self.table.line(lines, position as usize)?))
    }

    /// The lines that are not listed, because they say no version.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        if self.route.provider.facts().kind == PlaceKind::Repository {
            // Its tags and branches are found by their names.
            return Vec::new();
        }
        let lines = (self.releases.len() as usize..self.table.len()).filter_map(|at| {
            let release = self.read(at as Position).ok()?;
            wire::left_out(&release)
        });
        lines.collect()
    }

    /// The folders of a repository that have version tags of their own: `net/vpc` of `net/vpc/v1.2.0`.
    pub(super) fn folders_with_tags(&self) -> BTreeSet<String> {
        if self.route.provider.facts().kind != PlaceKind::Repository {
            return BTreeSet::new();
        }
        let lines = (self.releases.len() as usize..self.table.len())
            .filter_map(|at| self.read(at as Position).ok());
        let tags = lines.flat_map(|release| release.tags);
        let folder = |tag: String| {
            let (folder, version) = tag.rsplit_once('/')?;
            Version::parse(version).is_ok().then(|| folder.to_owned())
        };
        tags.filter_map(folder).collect()
    }

    /// The version at `position`, for messages; empty for a tag or branch that is not a version.
    fn label(&self, position: Position) -> String {
        if position < self.releases.len() {
            self.releases.version(position).to_string()
        } else {
            String::new()
        }
    }
}

/// Turns a listing into releases.
fn releases(id: &PackageId, listing: &mut Listing, route: &Route) -> Releases {
    let dated = route.location.dates != Dates::Ignored;
    if listing.table.has_plain_versions() && route.provider.facts().kind != PlaceKind::Repository {
        return plain(id, listing, dated);
    }
    let of = if route.provider.facts().kind == PlaceKind::Repository {
        Releases::repository
    } else {
        Releases::registry
    };
    let mut releases = of(id.clone(), wire::entries(id, listing, dated));
    if releases.versions().any(|version| version.is_prerelease()) {
        let format = wire::format_of_listing(listing);
        releases.counts_prereleases = format.is_some() && releases.offers_only_prereleases();
        // All requirements of bundles accept prereleases.
        releases.puts_releases_first = format.as_deref() == Some(mu_formats::olm::NAME);
    }
    releases
}

/// Turns a table of plain versions into releases.
fn plain(id: &PackageId, Listing { table, lines, .. }: &mut Listing, dated: bool) -> Releases {
    let numbers = std::mem::take(&mut table.numbers);
    let dates = if dated { 0..table.len() } else { 0..0 };
    let published = dates.filter_map(|at| Some((at as Position, table.published(lines, at)?)));
    let details = table.detailed.iter().map(|&(position, line)| {
        let details = wire::details_at(id, lines, line);
        (position, Arc::new(details))
    });
    Releases::plain(id.clone(), numbers, published, details.collect(), table.has_all_needs)
}

/// The data of a release's manifest that selection needs.
#[derive(Debug, Default)]
struct ReleaseManifestData {
    version: Option<Version>,
    details: Option<Arc<Details>>,
    dependencies: Vec<Dependency>,
}

/// Reads the manifests of a package.
pub(in crate::index) struct Manifests<'p> {
    id: &'p PackageId,
    route: &'p Route,
    around: &'p dyn PackageSurroundings,
}

impl Manifests<'_> {
    /// The manifest of a release, if its place can show it without a fetch of the whole package.
    pub(in crate::index) fn read(
        &self,
        release: &Release,
    ) -> Result<Option<Manifest>, PackageError> {
        let progress = self.around.run().start_lookup(self.id);
        let file = self.file(release, &*progress)?;
        file.map(|file| self.parse(release, &file)).transpose()
    }

    /// The file of a release's manifest, if that is text.
    fn file(
        &self,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, PackageError> {
        let file = self.route.provider.manifest(&self.route.location, release, progress)?;
        Ok(file.filter(|file| formats::is_manifest_text(&file.name, &file.text)))
    }

    fn parse(&self, release: &Release, file: &ManifestFile) -> Result<Manifest, PackageError> {
        let version = match (&release.version, release.revision()) {
            (version, Some(revision)) if version.is_empty() => revision.to_owned(),
            (version, _) => version.clone(),
        };
        let path = self.route.manifest_path(file);
        let read = match formats::format_of_manifest(&path) {
            Some(format) => {
                let beside = file.beside.iter().cloned();
                // Only charts have short names for repositories.
                let is_chart = format.name == helm::FORMAT.name;
                let aliases = is_chart.then(|| (self.around.run().options.helms_aliases)());
                let is_folder = self.route.provider.facts().kind == PlaceKind::Folder;
                let aliases = aliases.as_ref();
                let reading = Reading { is_folder, is_source: true, aliases, ..Reading::default() };
                formats::parse(format, &path, &file.text, beside, &reading)
            }
            None => Manifest::parse_published(&path, &file.text),
        };
        read.map_err(|source| match &*version {
            "" => PackageError::ManifestInFolder { id: self.id.clone(), source },
            _ => PackageError::Manifest { id: self.id.clone(), version, source },
        })
    }

    /// The data of a release's manifest that selection needs. If another mu is needed to read it, only that
    /// is returned.
    fn seen(&self, release: &Release) -> Result<Option<ReleaseManifestData>, PackageError> {
        let progress = self.around.run().start_lookup(self.id);
        let Route { provider, location, .. } = self.route;
        let aliases = &self.around.run().options.defaults.aliases;
        let of_line = |details: Details, dependencies: Vec<Dependency>| {
            // What a version that cannot be used depends on may lead nowhere, such as a folder of its author's.
            let dependencies = if details.broken.is_none() { dependencies } else { Vec::new() };
            let details = Some(Arc::new(details.counted(aliases)));
            Ok(Some(ReleaseManifestData { version: None, details, dependencies }))
        };
        // The place itself knows more than a listing of hints.
        if let Some(own) = provider.confirm(location, release, &*progress)? {
            let details = wire::details(self.id, &own);
            return of_line(details, own.dependencies.unwrap_or_default());
        }
        if let (Some(dependencies), true) = (&release.dependencies, provider.facts().has_revisions)
        {
            return of_line(wire::details(self.id, release), dependencies.clone());
        }
        let broken = |reason: String| {
            let details = Details { broken: Some(reason), ..Details::default() };
            Ok(Some(ReleaseManifestData {
                details: Some(Arc::new(details)),
                ..ReleaseManifestData::default()
            }))
        };
        let file = match self.file(release, &*progress) {
            // A version that is none, such as a tag that leads to no commit, keeps no other one from being used.
            Err(PackageError::Provider(error)) if error.kind() == ErrorKind::Manifest => {
                return broken(error.to_string());
            }
            file => file?,
        };
        let Some(file) = file else { return Ok(None) };
        let manifest = match self.parse(release, &file) {
            Ok(manifest) => manifest,
            Err(error) => {
                let shown = self.route.manifest_path(&file);
                let is_own = formats::format_of_manifest(&shown).is_none();
                // A manifest that this mu cannot read may still say which mu can.
                let known = is_own.then(|| Outline::parse(&shown, &file.text).ok()).flatten();
                let details = match known.filter(Outline::is_of_another_mu) {
                    Some(Outline { api_version, mu_version, .. }) => {
                        let facts = ChosenFacts { mu_version, ..ChosenFacts::default() };
                        Details { api_version, facts, ..Details::default() }
                    }
                    None => match &error {
                        // What the tools of another ecosystem refuse is one version, not the package.
                        PackageError::Manifest { source, .. } if !is_own => {
                            let place = format!("{}:{}", source.path().display(), source.line());
                            let reason = format!("{place}: {}", source.message());
                            Details { broken: Some(reason), ..Details::default() }
                        }
                        _ => return Err(error),
                    },
                };
                return Ok(Some(ReleaseManifestData {
                    details: Some(Arc::new(details)),
                    ..ReleaseManifestData::default()
                }));
            }
        };
        Ok(Some(ReleaseManifestData {
            version: manifest.version.clone(),
            details: Some(Arc::new(self.details(&manifest).counted(aliases))),
            dependencies: dependencies(&manifest),
        }))
    }

    /// The data of a manifest that matters to users of the package.
    fn details(&self, manifest: &Manifest) -> Details {
        Details {
            app_version: manifest.app_version.clone(),
            api_version: manifest.api_version.clone(),
            facts: wire::chosen_facts(self.id, &manifest.to_release()),
            ..Details::default()
        }
    }
}

impl Package {
    /// What reads its manifests.
    pub(in crate::index) fn manifests<'p>(
        &'p self,
        around: &'p dyn PackageSurroundings,
    ) -> Manifests<'p> {
        Manifests { id: self.id(), route: &self.route, around }
    }

    /// This package, as its format wants it. In a repository only a manifest says what the format is, and it
    /// is read only if all versions are prereleases: those of another ecosystem are chosen as releases are.
    pub(in crate::index) fn by_format(mut self, around: &dyn PackageSurroundings) -> Self {
        let releases = &self.releases;
        if releases.has_commits() && !releases.is_empty() && releases.has_only_prereleases() {
            let newest = self.line(releases.len() - 1).ok();
            let (provider, location) = (&self.route.provider, &self.route.location);
            let progress = around.run().start_lookup(self.id());
            // What cannot be read now is reported once it is needed.
            let file =
                newest.and_then(|line| provider.manifest(location, &line, &*progress).ok()?);
            if file.is_some_and(|file| {
                formats::format_of_manifest(&self.route.manifest_path(&file)).is_some()
            }) {
                Arc::make_mut(&mut self.releases).counts_prereleases = true;
            }
        }
        self
    }

    /// The data of a version's manifest, if it was read and has more than the listing.
    pub(in crate::index) fn declared(
        &self,
        around: &dyn PackageSurroundings,
        candidate: Candidate<'_>,
    ) -> Result<Option<Arc<Details>>, Arc<PackageError>> {
        let Candidate::Release(position) = candidate else { return Ok(None) };
        if self.has_known_requirements() || self.releases.details(position).is_some() {
            return Ok(None);
        }
        self.requirements(around, candidate)?;
        Ok(lock(&self.declared).get(&position).cloned())
    }
}

/// A line with what the manifest in its archive says. If another mu is needed to read that, only this is known.
pub(super) fn with_manifest(
    id: &PackageId,
    line: Release,
    location: &Location,
    file: &ManifestFile,
) -> Result<Release, PackageError> {
    let path = PathBuf::from(format!("{}/{}", location.describe(), file.name));
    let said = match Manifest::parse_published(&path, &file.text) {
        Ok(manifest) => manifest.to_release(),
        Err(source) => {
            let known = Outline::parse(&path, &file.text).ok().filter(Outline::is_of_another_mu);
            let Some(Outline { api_version, mu_version, .. }) = known else {
                return Err(PackageError::ManifestInFolder { id: id.clone(), source });
            };
            return Ok(Release { api_version, mu_version, ..line });
        }
    };
    Ok(Release {
        name: line.name,
        version: if said.version.is_empty() { line.version } else { said.version.clone() },
        archive: line.archive,
        commit: line.commit,
        artifact: line.artifact,
        size: line.size,
        ..said
    })
}

/// A manifest's dependencies in the form of an index line.
fn dependencies(manifest: &Manifest) -> Vec<Dependency> {
    manifest
        .dependencies
        .iter()
        .map(|dependency| {
            Dependency::Detailed(Box::new(DetailedDependency {
                reference: dependency.reference.to_string(),
                channel: dependency.channel.clone(),
                app_version: dependency.app_version.clone(),
                prerelease: dependency.prerelease,
            }))
        })
        .collect()
}
