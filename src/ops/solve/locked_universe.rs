//! The universe as the lock knows it: for every locked package the one locked version, and for all others
//! what the index has.
//!
//! A selection that succeeds here keeps every locked version, and sends no request about any of them. A
//! failure proves nothing; the caller then asks the index about everything.

use std::collections::HashMap;
use std::sync::Arc;

use mu_provider::PlaceKind;

use crate::index::releases::{Details, Entry, Releases};
use crate::index::{Candidate, GraphLevel, Requirement, Revision, Unavailable, Universe, Untagged};
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::Session;
use crate::ops::requirements::is_overridden_alike;
use crate::reference::{PackageId, VersionSpec};

/// The lock in front of the index.
pub(crate) struct LockedUniverse<'a> {
    index: &'a dyn Universe,
    packages: Arc<HashMap<PackageId, Held<'a>>>,
    /// A replaced package: none of its versions can be used.
    replaced: Arc<HashMap<PackageId, Arc<Releases>>>,
}

/// A package that stays where it is.
#[derive(Debug)]
struct Held<'a> {
    package: &'a LockedPackage,
    releases: Arc<Releases>,
    requirements: Arc<[Arc<Requirement>]>,
}

impl<'a> LockedUniverse<'a> {
    pub(crate) fn new(session: &'a Session, lock: &'a Lockfile) -> Self {
        let packages = held(session, lock, &|_| true);
        // An empty package in its place: then only the replacement meets what is required, as when the lock was made.
        let ids = lock.replaced.iter().map(|replaced| replaced.id.clone());
        let replaced = ids.filter(|id| !packages.contains_key(id)).map(|id| {
            let nothing = Releases::registry(id.clone(), Vec::new());
            (id, Arc::new(nothing))
        });
        let replaced = Arc::new(replaced.collect());
        Self { index: session.index(), replaced, packages: packages.into() }
    }

    /// Only these locked packages; `None` if there are none.
    pub(crate) fn of_some(
        session: &'a Session,
        lock: &'a Lockfile,
        is_held: &dyn Fn(&LockedPackage) -> bool,
    ) -> Option<Self> {
        let packages = Arc::new(held(session, lock, is_held));
        let is_empty = packages.is_empty();
        (!is_empty).then(|| Self { index: session.index(), replaced: Arc::default(), packages })
    }

    /// These packages in front of another universe.
    pub(crate) fn before<'b>(&self, universe: &'b dyn Universe) -> LockedUniverse<'b>
    where
        'a: 'b,
    {
        let (packages, replaced) = (Arc::clone(&self.packages), Arc::clone(&self.replaced));
        LockedUniverse { index: universe, packages, replaced }
    }

    /// Whether the index need not be asked about a package.
    fn has(&self, id: &PackageId) -> bool {
        self.packages.contains_key(id) || self.replaced.contains_key(id)
    }
}

/// The packages of a lock that stay where they are, as far as `is_held`.
fn held<'a>(
    session: &Session,
    lock: &'a Lockfile,
    is_held: &dyn Fn(&LockedPackage) -> bool,
) -> HashMap<PackageId, Held<'a>> {
    let mut packages = HashMap::new();
    let current = lock.packages.iter().filter(|package| is_overridden_alike(session, package));
    // What is used instead of another package is chosen under that name, too, which has no entry yet: the index says what its versions
    // are there, and so it has to say it here.
    let overrides = session.workspace.settings.overrides.iter();
    let defaults = session.reference_defaults();
    let instead = overrides.map(|(id, reference)| (id, reference.id(&defaults)));
    let instead: Vec<PackageId> =
        instead.filter(|(id, instead)| *id != instead).map(|(_, instead)| instead).collect();
    let current = current.filter(|package| !instead.contains(&package.id));
    for package in current.filter(|package| is_held(package)) {
        // A folder's manifest may have changed; reading it needs no network.
        let is_folder = package.source.is_outside_folder();
        // Of a package in two versions, requirements in the lock do not say which of the two they were met by.
        let is_alone = lock.find(&package.id).count() == 1;
        if package.source.is_workspace_folder() || is_folder || !is_alone {
            continue;
        }
        // What the lock does not know completely, the index is asked about.
        let Some(requirements) = requirements(lock, package) else {
            continue;
        };
        let releases = Arc::new(releases(session, package));
        packages.insert(package.id.clone(), Held { package, releases, requirements });
    }
    packages
}

fn releases(session: &Session, package: &LockedPackage) -> Releases {
    let id = package.id.clone();
    // A package has one candidate here. If it was chosen for its version, that is a release; if for a branch or a
    // commit, there is no release, and the revision appears only when somebody names it, as with the index.
    let is_untagged = package.revision().is_some() && !is_of_version_tag(package);
    let entries = match package.parsed_version().filter(|_| !is_untagged) {
        Some(version) => {
            let details = details(package);
            let commit = package.revision().map(|commit| Arc::from(&*commit));
            vec![Entry { commit, details: Some(Arc::new(details)), ..Entry::from(version) }]
        }
        None => Vec::new(),
    };
    let provider = session.index().providers().get(&package.source.provider);
    match provider {
        Ok(provider) if provider.facts().kind == PlaceKind::Repository => {
            Releases::repository(id, entries)
        }
        Ok(provider) if provider.facts().has_revisions => {
            Releases::registry(id, entries).with_revisions()
        }
        _ => Releases::registry(id, entries),
    }
}

/// What the lock knows about a package in addition to its version. What it does not have is what selection reads only to choose
/// among versions: [`crate::manifest::facts`].
fn details(package: &LockedPackage) -> Details {
    // Without a rest, so that whatever selection learns to read has its place here.
    Details {
        app_version: package.app_version.clone(),
        channels: package.channel.clone().into_iter().collect(),
        tags: package.reference.clone().into_iter().collect(),
        facts: package.facts.clone(),
        api_version: None,
        broken: None,
        default_channel: None,
        deprecated: None,
        moved_to: None,
        origin: None,
        upgrade: Vec::new(),
        yanked: None,
    }
}

/// Whether the commit was chosen for the version of its tag: no requirement named anything else. What is at the URL of an archive
/// is its only version, even where its digest was named.
pub(super) fn is_of_version_tag(package: &LockedPackage) -> bool {
    package.source.is_url_archive()
        || package.requested.iter().all(|requested| {
            matches!(
                VersionSpec::parse(&requested.spec),
                Ok(VersionSpec::Latest | VersionSpec::Pin(_) | VersionSpec::Range(_))
            )
        }) && package.is_versioned()
}

/// The requirements of a locked package, as recorded at the packages that it requires.
fn requirements(lock: &Lockfile, package: &LockedPackage) -> Option<Arc<[Arc<Requirement>]>> {
    let mut requirements = Vec::with_capacity(package.dependencies.len());
    for id in &package.dependencies {
        let replaced = lock.replacement(id).into_iter().flat_map(|one| &one.requested);
        let requested: Vec<_> = lock
            .find(id)
            .flat_map(|dependency| &dependency.requested)
            .chain(replaced)
            .filter(|requested| &*requested.by == package.id.as_str())
            .collect();
        // The dependency is there and nobody says why: a lock that was edited, or merged by hand.
        if requested.is_empty() {
            return None;
        }
        // Capabilities are in the details; they are no requirements on a package.
        for requested in requested {
            if requested.capability().is_none() {
                let requirement = Requirement::parse(id.clone(), &requested.spec)?;
                requirements.push(Arc::new(requirement));
            }
        }
    }
    Some(Arc::from(requirements))
}

impl Universe for LockedUniverse<'_> {
    fn releases(&self, id: &PackageId) -> Result<Arc<Releases>, Unavailable> {
        let held = self.packages.get(id).map(|held| &held.releases);
        match held.or_else(|| self.replaced.get(id)) {
            Some(releases) => Ok(Arc::clone(releases)),
            None => self.index.releases(id),
        }
    }

    fn revision(
        &self,
        releases: &Releases,
        name: &VersionSpec,
    ) -> Result<Option<Revision>, Unavailable> {
        let Some(held) = self.packages.get(releases.id()) else {
            if self.replaced.contains_key(releases.id()) {
                return Ok(None);
            }
            return self.index.revision(releases, name);
        };
        let package = held.package;
        // Does the name lead to the locked commit? The lock knows for which name that was chosen. Any other name would
        // have to be asked about, so here it leads nowhere, and the selection fails.
        let names_it = match name {
            VersionSpec::Commit(commit) => {
                commit.names(package.commit.as_deref(), package.reference.as_deref())
            }
            VersionSpec::Digest(digest) => package.revision().as_deref() == Some(digest.as_str()),
            VersionSpec::Tag(tag) => package.reference.as_deref() == Some(tag.as_str()),
            VersionSpec::Tip | VersionSpec::Latest => {
                let asked = name.to_string();
                package.requested.iter().any(|requested| *requested.spec == asked)
            }
            _ => false,
        };
        if !names_it {
            return Ok(None);
        }
        if !held.releases.is_empty() {
            return Ok(Some(Revision::Release(0)));
        }
        Ok(package.revision().map(|commit| {
            Revision::Untagged(Untagged {
                commit: Arc::from(&*commit),
                version: package.parsed_version(),
                details: Some(Arc::new(details(package))),
            })
        }))
    }

    fn requirements(
        &self,
        releases: &Releases,
        candidate: Candidate<'_>,
    ) -> Result<Arc<[Arc<Requirement>]>, Unavailable> {
        match self.packages.get(releases.id()) {
            Some(held) => Ok(Arc::clone(&held.requirements)),
            None => self.index.requirements(releases, candidate),
        }
    }

    fn providing(
        &self,
        capability: &str,
        near: &PackageId,
    ) -> Result<Arc<[PackageId]>, Unavailable> {
        let held = self.packages.values().map(|held| held.package);
        // A locked provider is enough. If none is locked, something new is required, and the registry has to list its
        // providers.
        let mut locked: Vec<&LockedPackage> = held
            .filter(|package| package.facts.provides.iter().any(|one| one == capability))
            .collect();
        if locked.is_empty() {
            return self.index.providing(capability, near);
        }
        locked.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(locked.into_iter().map(|package| package.id.clone()).collect())
    }

    fn declared(
        &self,
        id: &PackageId,
        candidate: Candidate<'_>,
    ) -> Result<Option<Arc<Details>>, Unavailable> {
        match self.packages.get(id) {
            Some(_) => Ok(None),
            None => self.index.declared(id, candidate),
        }
    }

    fn carries_copy(&self, by: &PackageId, version: &str, of: &PackageId) -> bool {
        self.index.carries_copy(by, version, of)
    }

    fn expect(&self, level: GraphLevel<'_>) {
        match level {
            GraphLevel::Releases(ids) => {
                let unknown = ids.iter().filter(|id| !self.has(id)).cloned();
                self.index.expect(GraphLevel::Releases(&unknown.collect::<Vec<_>>()));
            }
            GraphLevel::Requirements(versions) => {
                let unknown = versions.iter().filter(|(releases, _)| !self.has(releases.id()));
                self.index.expect(GraphLevel::Requirements(&unknown.cloned().collect::<Vec<_>>()));
            }
            GraphLevel::Chosen(versions) => {
                let unknown = versions.iter().filter(|(releases, _)| !self.has(releases.id()));
                self.index.expect(GraphLevel::Chosen(&unknown.cloned().collect::<Vec<_>>()));
            }
        }
    }
}
