//! One package as a run knows it: its releases, and what was found out about them.

mod held;
mod mistake;
mod order;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use mu_provider::{Dependency, DetailedDependency, ManifestFile, Release};
use rustc_hash::FxHashMap;
use serde::de::Error as _;

use self::held::{Held, One};
use self::mistake::About;
use crate::guard::lock;
use crate::index::cache::{Heads, Lines, Listing, Record, Table};
use crate::index::error::PackageError;
use crate::index::releases::{Details, Position, Releases};
use crate::index::routes::Route;
use crate::index::sibling::sibling;
use crate::index::universe::{Candidate, Requirement, Revision, Untagged};
use crate::index::{Shared, wire};
use crate::manifest::{Manifest, Outline};
use crate::reference::{Defaults, PackageId, Version, VersionSpec};

type Requirements = Result<Arc<[Arc<Requirement>]>, Arc<PackageError>>;

/// A package and what was found out about it in this run.
#[derive(Debug)]
pub(super) struct Package {
    releases: Arc<Releases>,
    route: Arc<Route>,
    /// `None` if there is no such package.
    lines: Option<Lines>,
    held: Held,
    /// Whether nobody was asked, because the commits that are asked for are on this machine.
    is_recalled: bool,
    requirements: Mutex<FxHashMap<Position, Arc<OnceLock<Requirements>>>>,
    /// What manifests say besides, of the versions whose manifests were read and say something.
    declared: Mutex<HashMap<Position, Arc<Details>>>,
    untagged: Mutex<HashMap<String, Arc<Looked>>>,
    /// Lines that were read.
    read: Mutex<Vec<(Position, Arc<Release>)>>,
    /// How many packages of this run were asked for before it, and itself.
    order: usize,
}

/// A revision without a version tag that was looked into.
#[derive(Debug)]
struct Looked {
    untagged: Untagged,
    dependencies: Vec<Dependency>,
    release: Release,
    requirements: OnceLock<Requirements>,
}

/// What the manifest of a release says, as far as selection needs it.
#[derive(Debug, Default)]
struct Seen {
    version: Option<Version>,
    details: Option<Arc<Details>>,
    dependencies: Vec<Dependency>,
}

impl Package {
    pub(super) fn new(id: &PackageId, mut route: Route, record: Record) -> Self {
        let (releases, lines, held) = match record.listing {
            None => (Releases::absent(id.clone(), record.tried), None, Held::Each(Vec::new())),
            Some(Listing { location, heads, lines }) => {
                let dated = route.location.dated;
                route.location = location;
                let (releases, held) = match heads {
                    Heads::Table(mut table) => {
                        let releases = plain(id, &mut table, &lines, dated);
                        (releases, Held::Table(table))
                    }
                    Heads::Each(heads) => {
                        let entries = wire::entries(id, &heads, &lines, dated);
                        let is_repository = route.provider.is_repository();
                        let of =
                            if is_repository { Releases::repository } else { Releases::registry };
                        let held = heads.into_iter().map(One::from).collect();
                        (of(id.clone(), entries), Held::Each(held))
                    }
                };
                (releases, Some(lines), held)
            }
        };
        // A folder has one version, and it is whoever wrote it who knows how old that is.
        let releases = if route.provider.is_folder() { releases.ageless() } else { releases };
        Self {
            releases: Arc::new(releases),
            route: Arc::new(route),
            lines,
            held,
            is_recalled: false,
            requirements: Mutex::default(),
            declared: Mutex::default(),
            untagged: Mutex::default(),
            read: Mutex::default(),
            order: 0,
        }
    }

    /// The package as far as it is known without asking anybody.
    pub(super) fn recalled(id: &PackageId, route: Route, record: Record) -> Self {
        Self { is_recalled: true, ..Self::new(id, route, record) }
    }

    /// The package as far as it is installed.
    pub(super) fn installed(id: &PackageId, route: Route, record: Record) -> Self {
        let mut package = Self::new(id, route, record);
        package.releases = Arc::new(Arc::unwrap_or_clone(package.releases).ageless());
        package
    }

    /// Whether nobody was asked, so that there may be more versions by now.
    pub(super) fn is_recalled(&self) -> bool {
        self.is_recalled
    }

    /// Whether what its versions require can be told without asking anybody.
    pub(super) fn is_complete(&self) -> bool {
        self.route.provider.lines_are_complete()
    }

    /// The package in a folder on this machine, whose version only its manifest knows.
    pub(super) fn in_folder(
        shared: &Shared,
        id: &PackageId,
        route: Route,
        mut record: Record,
    ) -> Result<Self, PackageError> {
        let mut package = Self::new(id, route, record.clone());
        if let Some(listing) = &mut record.listing
            && let Heads::Each(heads) = &mut listing.heads
            && let [head] = &mut **heads
            && head.version.is_empty()
        {
            let manifest = package.manifest(shared, &Release::default())?;
            let version = manifest.and_then(|manifest| manifest.version);
            head.version = wire::label(Some(&version.unwrap_or_else(zero)));
            package = Self::new(id, Arc::unwrap_or_clone(package.route), record);
        }
        Ok(package)
    }

    pub(super) fn releases(&self) -> &Arc<Releases> {
        &self.releases
    }

    pub(super) fn route(&self) -> &Arc<Route> {
        &self.route
    }

    pub(super) fn id(&self) -> &PackageId {
        self.releases.id()
    }

    /// The folder of a package that is one on this machine.
    fn folder(&self) -> Option<PathBuf> {
        self.route
            .provider
            .is_folder()
            .then(|| self.route.location.root.as_url().to_file_path().ok())
            .flatten()
    }

    /// Where a candidate is, and what is known of it.
    pub(super) fn release(
        &self,
        candidate: Candidate<'_>,
    ) -> Result<(Arc<Route>, Arc<Release>), Arc<PackageError>> {
        let release = match candidate {
            Candidate::Release(position) => match self.known_line(position) {
                Some(release) => release,
                None => {
                    let release = Arc::new(self.line(position)?);
                    lock(&self.read).push((position, Arc::clone(&release)));
                    release
                }
            },
            Candidate::Revision(untagged) => {
                let known = lock(&self.untagged).get(&*untagged.commit).cloned();
                let bare =
                    || Release { commit: Some(untagged.commit.to_string()), ..Release::default() };
                Arc::new(known.map_or_else(bare, |looked| looked.release.clone()))
            }
        };
        Ok((Arc::clone(&self.route), release))
    }

    /// Whether somebody asked for a line before.
    pub(super) fn has_read(&self, position: Position) -> bool {
        self.known_line(position).is_some()
    }

    fn known_line(&self, position: Position) -> Option<Arc<Release>> {
        let read = lock(&self.read);
        read.iter().find(|(at, _)| *at == position).map(|(_, release)| Arc::clone(release))
    }

    fn line(&self, position: Position) -> Result<Release, PackageError> {
        self.read(position).map_err(|source| PackageError::Line {
            id: self.id().clone(),
            version: self.label(position),
            source,
        })
    }

    fn read(&self, position: Position) -> Result<Release, serde_json::Error> {
        let place =
            || Some((self.lines.as_ref()?, self.held.line(self.lines.as_ref()?, position)?));
        let (lines, line) =
            place().ok_or_else(|| serde_json::Error::custom("there is no such line"))?;
        wire::release(lines, line)
    }

    /// The version at `position`, for messages; empty for a tag or branch that is none.
    fn label(&self, position: Position) -> String {
        if position < self.releases.len() {
            self.releases.version(position).to_string()
        } else {
            String::new()
        }
    }

    /// What a commit, tag, branch or `tip` names.
    pub(super) fn revision(
        &self,
        shared: &Shared,
        name: &VersionSpec,
    ) -> Result<Option<Revision>, PackageError> {
        if self.lines.is_none() {
            return Ok(None);
        }
        if !self.releases.is_repository() {
            return Ok(self.in_registry(name).map(Revision::Release));
        }
        let text = match name {
            VersionSpec::Tip => None,
            other => Some(other.to_string()),
        };
        let is_full_commit = matches!(name, VersionSpec::Commit(commit) if commit.is_full());
        if !is_full_commit && let Some(release) = self.named(text.as_deref())? {
            return self.look_at(shared, release).map(Some);
        }
        let VersionSpec::Commit(commit) = name else {
            return Ok(None);
        };
        if let Some(position) = self.releases.at_commit(commit.as_str()) {
            return Ok(Some(Revision::Release(position)));
        }
        if let Some(looked) = lock(&self.untagged).get(commit.as_str()) {
            return Ok(Some(Revision::Untagged(looked.untagged.clone())));
        }
        let progress = &*shared.options.progress;
        match self.route.provider.resolve(&self.route.location, commit.as_str(), progress) {
            Ok(release) => self.look_at(shared, release).map(Some),
            Err(error) if error.kind() == mu_provider::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A hub's tag, or its highest version.
    fn in_registry(&self, name: &VersionSpec) -> Option<Position> {
        let mut newest_first = (0..self.releases.len()).rev();
        let details = |position: Position| self.releases.details(position);
        match name {
            VersionSpec::Tip => newest_first
                .find(|position| details(*position).is_none_or(|details| details.yanked.is_none())),
            other => {
                let text = other.to_string();
                newest_first.find(|position| {
                    details(*position).is_some_and(|details| details.tags.contains(&text))
                })
            }
        }
    }

    /// The line of a tag or branch called `name`, or of the default branch.
    fn named(&self, name: Option<&str>) -> Result<Option<Release>, PackageError> {
        for position in 0..self.held.len() as Position {
            let release = self.line(position)?;
            let matches = match name {
                None => release.tip,
                Some(name) => release.tags.iter().any(|tag| tag == name),
            };
            if matches {
                return Ok(Some(release));
            }
        }
        Ok(None)
    }

    /// Turns a release that was found by name into what selection knows.
    fn look_at(&self, shared: &Shared, release: Release) -> Result<Revision, PackageError> {
        let commit = release.commit.clone().unwrap_or_default();
        if let Some(position) = self.releases.at_commit(&commit) {
            return Ok(Revision::Release(position));
        }
        if let Some(looked) = lock(&self.untagged).get(&commit) {
            return Ok(Revision::Untagged(looked.untagged.clone()));
        }
        let seen = self.seen(shared, &release)?.unwrap_or_default();
        let (version, details, dependencies) = (seen.version, seen.details, seen.dependencies);
        let untagged = Untagged { commit: Arc::from(commit.as_str()), version, details };
        let looked = Looked {
            untagged: untagged.clone(),
            dependencies,
            release,
            requirements: OnceLock::new(),
        };
        lock(&self.untagged).insert(commit, Arc::new(looked));
        Ok(Revision::Untagged(untagged))
    }

    /// The manifest of a release, if its place can show it without being fetched whole.
    pub(super) fn manifest(
        &self,
        shared: &Shared,
        release: &Release,
    ) -> Result<Option<Manifest>, PackageError> {
        let progress = &*shared.options.progress;
        let file = self.route.provider.manifest(&self.route.location, release, progress)?;
        let Some(file) = file else {
            return Ok(None);
        };
        self.parse(release, &file).map(Some)
    }

    fn parse(&self, release: &Release, file: &ManifestFile) -> Result<Manifest, PackageError> {
        let version = match (&release.version, &release.commit) {
            (version, Some(commit)) if version.is_empty() => commit.clone(),
            (version, _) => version.clone(),
        };
        Manifest::parse(&self.shown(file), &file.text).map(|(manifest, _)| manifest).map_err(
            |source| match &*version {
                "" => PackageError::ManifestInFolder { id: self.id().clone(), source },
                _ => PackageError::Manifest { id: self.id().clone(), version, source },
            },
        )
    }

    /// Where a manifest is, for messages.
    fn shown(&self, file: &ManifestFile) -> PathBuf {
        match self.folder() {
            Some(folder) => folder.join(&file.name),
            None => PathBuf::from(format!("{}/{}", self.route.location.describe(), file.name)),
        }
    }

    /// What the manifest of a release says, as far as selection needs it. Of one that another mu may have to read, that
    /// is all that is said.
    fn seen(&self, shared: &Shared, release: &Release) -> Result<Option<Seen>, PackageError> {
        let progress = &*shared.options.progress;
        let file = self.route.provider.manifest(&self.route.location, release, progress)?;
        let Some(file) = file else { return Ok(None) };
        let manifest = match self.parse(release, &file) {
            Ok(manifest) => manifest,
            Err(error) => {
                let known = Outline::parse(&self.shown(&file), &file.text).ok();
                let Some(known) = known.filter(Outline::is_of_another_mu) else {
                    return Err(error);
                };
                let Outline { api_version, mu_version, .. } = known;
                let details = Details { api_version, mu_version, ..Details::default() };
                return Ok(Some(Seen { details: Some(Arc::new(details)), ..Seen::default() }));
            }
        };
        Ok(Some(Seen {
            version: manifest.version.clone(),
            details: Some(Arc::new(self.details(&manifest))),
            dependencies: dependencies(&manifest),
        }))
    }

    /// What a candidate requires.
    pub(super) fn requirements(&self, shared: &Shared, candidate: Candidate<'_>) -> Requirements {
        match candidate {
            Candidate::Release(position) => match self.plain(shared, position) {
                // Told as fast as it could be remembered.
                Some(plain) => Ok(plain),
                None => {
                    let of_line = || self.of_line(shared, position).map_err(Arc::new);
                    self.slot(position).get_or_init(of_line).clone()
                }
            },
            Candidate::Revision(untagged) => {
                let looked = lock(&self.untagged).get(&*untagged.commit).cloned();
                let Some(looked) = looked else {
                    return Ok(Arc::from([]));
                };
                looked
                    .requirements
                    .get_or_init(|| {
                        let (version, release) = (&*untagged.commit, &looked.release);
                        let about = About { version, release, line: None };
                        self.settle(shared, about, &looked.dependencies).map_err(Arc::new)
                    })
                    .clone()
            }
        }
    }

    /// What a version requires, by its line or its manifest.
    fn of_line(
        &self,
        shared: &Shared,
        position: Position,
    ) -> Result<Arc<[Arc<Requirement>]>, PackageError> {
        let release = self.line(position)?;
        let dependencies = match release.dependencies.clone() {
            Some(dependencies) => dependencies,
            None => {
                let seen = self.seen(shared, &release)?.unwrap_or_default();
                self.note_declared(position, seen.details);
                seen.dependencies
            }
        };
        let version = self.releases.version(position).to_string();
        let about = About { version: &version, release: &release, line: Some(position) };
        self.settle(shared, about, &dependencies)
    }

    /// Where it is noted what a version requires; whoever asks second waits for the first.
    fn slot(&self, position: Position) -> Arc<OnceLock<Requirements>> {
        Arc::clone(lock(&self.requirements).entry(position).or_default())
    }

    /// What a version requires, if that is told without its line, and leads nowhere but where ids lead.
    fn plain(&self, shared: &Shared, position: Position) -> Option<Arc<[Arc<Requirement>]>> {
        let lines = self.lines.as_ref()?;
        let references = lines.needs(&self.held.needs(lines, position)?)?;
        if shared.routes.has_hint(self.id()) || self.folder().is_some() {
            return None;
        }
        let own = shared.options.instead_of.get(self.id()).unwrap_or(self.id());
        let base = own.base();
        shared.known.requirements(&base, &references, &shared.wanted)
    }

    /// What the manifest of a version says of it, if it was read, and says what the listing does not.
    pub(super) fn declared(
        &self,
        shared: &Shared,
        candidate: Candidate<'_>,
    ) -> Result<Option<Arc<Details>>, Arc<PackageError>> {
        let Candidate::Release(position) = candidate else { return Ok(None) };
        if self.is_complete() || self.releases.details(position).is_some() {
            return Ok(None);
        }
        self.requirements(shared, candidate)?;
        Ok(lock(&self.declared).get(&position).cloned())
    }

    fn note_declared(&self, position: Position, details: Option<Arc<Details>>) {
        let details = details.filter(|details| **details != Details::default());
        lock(&self.declared).extend(details.map(|details| (position, details)));
    }

    /// What a manifest says of its package, as far as it counts for those who use it.
    fn details(&self, manifest: &Manifest) -> Details {
        let defaults = wire::inherited(self.id());
        Details {
            app_version: manifest.app_version.clone(),
            api_version: manifest.api_version.clone(),
            mu_version: manifest.mu_version.as_ref().map(ToString::to_string),
            constraints: (manifest.constraints.iter())
                .map(|(fact, constraint)| (fact.clone(), constraint.to_string()))
                .collect(),
            provides: manifest.provides.iter().map(ToString::to_string).collect(),
            requires: manifest.requires.iter().map(ToString::to_string).collect(),
            replaces: manifest.replaces.iter().map(|reference| reference.id(&defaults)).collect(),
            ..Details::default()
        }
    }

    /// What this package's dependencies leave out: a package that stands instead of another means what
    /// that one would, and a folder is no registry that anything else could come from.
    fn defaults(&self, shared: &Shared) -> Defaults {
        let options = &shared.options;
        match options.instead_of.get(self.id()) {
            Some(other) => wire::inherited(other),
            None if self.folder().is_some() => options.defaults.clone(),
            None => wire::inherited(self.id()),
        }
    }

    /// Turns dependencies as they are written into requirements of packages.
    fn settle(
        &self,
        shared: &Shared,
        about: About<'_>,
        dependencies: &[Dependency],
    ) -> Result<Arc<[Arc<Requirement>]>, PackageError> {
        let mut requirements = Vec::with_capacity(dependencies.len());
        let defaults = self.defaults(shared);
        for dependency in dependencies {
            let mut declared = wire::declared(&defaults, dependency)
                .map_err(|source| self.no_reference(shared, about, dependency, source))?;
            let commit = about.release.commit.as_deref();
            if let (Some(folder), Some(commit)) = (declared.reference.local(), commit) {
                let Some(beside) = self.beside(shared, folder, commit) else {
                    return Err(self.no_folder(shared, about, dependency, folder));
                };
                // A version that was written has to be that of the commit too.
                if declared.reference.version().is_some() {
                    declared.requirement.id = beside.id.clone();
                    requirements.push(Arc::new(declared.requirement));
                }
                requirements.push(Arc::new(beside));
                continue;
            }
            let options = &shared.options;
            if declared.reference.base().is_none() && declared.reference.local().is_none() {
                shared.routes.inherit(&declared.requirement.id, self.id());
                if let Some(fallback) = &declared.fallback {
                    shared.routes.inherit(fallback, self.id());
                }
            }
            if let Some(fallback) = declared.fallback
                && !(options.is_local)(&declared.requirement.id)
                && shared.package(&declared.requirement.id)?.releases().tried().is_some()
            {
                declared.requirement.id = fallback;
            }
            let from = match (declared.reference.local(), self.folder()) {
                (Some(folder), None) => {
                    return Err(self.no_folder(shared, about, dependency, folder));
                }
                (Some(folder), Some(from)) => {
                    let folder = crate::env::absolute(&from, Path::new(folder));
                    declared.requirement.id = PackageId::local(&folder);
                    from
                }
                (None, _) => PathBuf::new(),
            };
            shared.declare(&declared.requirement.id, &declared.reference, &from);
            requirements.push(Arc::new(declared.requirement));
        }
        Ok(Arc::from(requirements))
    }

    /// What a local folder in the manifest of a commit asks for: the package there, of the same commit; `None` if it
    /// is not in the repository.
    fn beside(&self, shared: &Shared, folder: &str, commit: &str) -> Option<Requirement> {
        let own = self.route.location.folder.as_deref().unwrap_or_default();
        let spec = VersionSpec::parse(commit).ok()?;
        let id = sibling(self.id(), own, folder)?;
        shared.declare_beside(&id, self.id(), &spec);
        Some(Requirement::new(id, spec))
    }
}

/// The releases that a table of plain versions is.
fn plain(id: &PackageId, table: &mut Table, lines: &Lines, dated: bool) -> Releases {
    let versions = std::mem::take(&mut table.versions);
    let dates = if dated { 0..table.count } else { 0..0 };
    let published = dates.filter_map(|at| Some((at as Position, table.published(lines, at)?)));
    let details = table.detailed.iter().map(|&(position, line)| {
        let details = wire::details_at(id, lines, line);
        (position, Arc::new(details))
    });
    Releases::plain(id.clone(), versions, published, details.collect(), table.is_told)
}

/// The version of a folder whose manifest says none.
fn zero() -> Version {
    semver::Version::new(0, 0, 0).into()
}

/// A manifest's dependencies in the form of an index line.
fn dependencies(manifest: &Manifest) -> Vec<Dependency> {
    manifest
        .dependencies
        .iter()
        .map(|dependency| {
            Dependency::Detailed(DetailedDependency {
                reference: dependency.reference.to_string(),
                channel: dependency.channel.clone(),
                app_version: dependency.app_version.clone(),
                prerelease: dependency.prerelease,
            })
        })
        .collect()
}
