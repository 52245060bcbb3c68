//! One package as a run knows it: its releases, and what was looked up about them.

mod manifest;
pub(super) mod requirements;
mod revision;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

use mu_provider::threads::lock;
use mu_provider::{Dates, Found, Location, PlaceKind, Release};
use rustc_hash::FxHashMap;
use serde::de::Error as _;

use self::requirements::LookedUpRequirements;
use self::revision::LookedUpRevision;
use crate::index::cache::{Fetched, LineSpan, LineTable, Listing, ListingLines, Record};
use crate::index::error::PackageError;
use crate::index::routes::Route;
use crate::index::run::PackageSurroundings;
use crate::index::wire::{self, LeftOut};
use crate::reference::{Aliases, PackageId, Version};
use crate::select::Candidate;
use crate::select::releases::{Details, Position, Releases};

pub(super) use self::manifest::with_manifest;

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
        releases.is_ageless = route.provider.facts().kind == PlaceKind::Folder
            || matches!(origin, Origin::Packs | Origin::Installed);
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
        let zero = || semver::Version::new(0, 0, 0).into();
        head.version = wire::version_label(Some(&version.unwrap_or_else(zero)));
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
    let are_all = releases.has_only_prereleases();
    if releases.versions().any(|version| version.is_prerelease()) {
        let format = wire::format_of_listing(listing);
        releases.counts_prereleases = are_all && format.is_some();
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
