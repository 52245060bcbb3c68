//! A universe in memory that counts requests, and short ways to write its parts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use mu_manifest::reference::{Defaults, PackageId, Reference, Version, VersionSpec};

use crate::releases::{Details, Entry, Position, Releases};
use crate::universe::{
    Candidate, GraphLevel, Requirement, Revision, Unavailable, Universe, Untagged,
};

/// A package id; without a base it is at `hub.mu.com`.
pub(super) fn id(text: &str) -> PackageId {
    reference(text).id(&Defaults::default())
}

/// A requirement, as `name#spec`.
pub(super) fn requirement(text: &str) -> Requirement {
    let reference = reference(text);
    Requirement::new(reference.id(&Defaults::default()), reference.spec())
}

pub(super) fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn version(text: &str) -> Version {
    Version::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn composite(text: &str) -> Version {
    Version::parse_composite(text).unwrap_or_else(|error| panic!("{error}"))
}

/// One package of a [`Memory`].
#[derive(Debug, Default)]
pub(super) struct Package {
    pub(super) versions: Vec<(Entry, Vec<Requirement>)>,
    pub(super) revisions: BTreeMap<String, (Untagged, Vec<Requirement>)>,
    /// Tags and branches, and `tip`: to a commit.
    pub(super) names: BTreeMap<String, String>,
    pub(super) is_repository: bool,
}

/// Packages in memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    packages: BTreeMap<PackageId, (Arc<Releases>, Package)>,
    /// Capability → the packages that registries list.
    listed: BTreeMap<String, Vec<PackageId>>,
    /// Whether all answers are available at once.
    pub(super) is_at_hand: bool,
    pub(super) asked: Mutex<Asked>,
}

/// The requests to a [`Memory`].
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) versions: BTreeSet<(PackageId, Position)>,
    /// The packages of each hint that held something new.
    pub(super) waves: Vec<BTreeSet<PackageId>>,
    /// Packages that were required without a hint before.
    pub(super) unexpected: BTreeSet<PackageId>,
}

impl Memory {
    pub(super) fn add(&mut self, id: PackageId, mut package: Package) {
        package.versions.sort_by(|one, two| one.0.version.cmp(&two.0.version));
        let entries = package.versions.iter().map(|(entry, _)| entry.clone()).collect();
        let releases = if package.is_repository {
            Releases::repository(id.clone(), entries)
        } else {
            Releases::registry(id.clone(), entries)
        };
        self.packages.insert(id, (Arc::new(releases), package));
    }

    /// Adds a version of a package in a hub, with what it requires.
    pub(super) fn release(
        &mut self,
        package: &str,
        number: &str,
        needs: Vec<Requirement>,
        is_yanked: bool,
    ) {
        let id = id(package);
        let mut package = self.packages.remove(&id).map(|(_, package)| package).unwrap_or_default();
        let yanked = Details { yanked: Some(String::new()), ..Details::default() };
        let details = is_yanked.then(|| Arc::new(yanked));
        package.versions.push((Entry { details, ..Entry::from(version(number)) }, needs));
        self.add(id, package);
    }

    /// Adds a package in a hub: its versions, and what they require.
    pub(super) fn hub(&mut self, package: &str, versions: Vec<(String, Vec<Requirement>)>) {
        let versions =
            versions.into_iter().map(|(number, needs)| (Entry::from(version(&number)), needs));
        let versions = versions.collect();
        self.add(id(package), Package { versions, ..Package::default() });
    }

    /// Lists packages as providers of a capability, each in its registry.
    pub(super) fn list(&mut self, capability: &str, packages: Vec<PackageId>) {
        self.listed.insert(capability.to_owned(), packages);
    }

    /// How many versions' requirements were required.
    pub(super) fn versions_read(&self) -> usize {
        self.log().versions.len()
    }

    pub(super) fn package(&self, id: &PackageId) -> Option<&Package> {
        self.packages.get(id).map(|(_, package)| package)
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Asked> {
        self.asked.lock().expect("no test panics while it holds the lock")
    }
}

fn shared(requirements: &[Requirement]) -> Arc<[Arc<Requirement>]> {
    requirements.iter().cloned().map(Arc::new).collect()
}

impl Universe for Memory {
    fn releases(&self, id: &PackageId) -> Result<Arc<Releases>, Unavailable> {
        let mut asked = self.log();
        if !self.is_at_hand && !asked.waves.iter().any(|wave| wave.contains(id)) {
            asked.unexpected.insert(id.clone());
        }
        Ok(match self.packages.get(id) {
            Some((releases, _)) => Arc::clone(releases),
            None => Arc::new(Releases::absent(id.clone(), vec![format!("https://{id}")])),
        })
    }

    fn revision(
        &self,
        releases: &Releases,
        name: &VersionSpec,
    ) -> Result<Option<Revision>, Unavailable> {
        let Some(package) = self.package(releases.id()) else { return Ok(None) };
        let text = name.as_tag().map_or_else(|| name.to_string(), ToOwned::to_owned);
        if !package.is_repository {
            let tagged = (0..releases.len()).find(|&position| {
                releases.details(position).is_some_and(|details| details.tags.contains(&text))
            });
            return Ok(tagged.map(Revision::Release));
        }
        let commit = match (package.names.get(&text), name) {
            (Some(commit), _) => Some(commit.as_str()),
            (None, VersionSpec::Commit(commit)) => {
                let tagged = (0..releases.len()).filter_map(|at| releases.commit(at));
                let mut known = tagged
                    .map(|commit| &**commit)
                    .chain(package.revisions.keys().map(String::as_str));
                known.rfind(|known| commit.matches(known))
            }
            (None, _) => None,
        };
        Ok(commit.map(|commit| match releases.at_commit(commit) {
            Some(position) => Revision::Release(position),
            None => Revision::Untagged(package.revisions[commit].0.clone()),
        }))
    }

    fn requirements(
        &self,
        releases: &Releases,
        candidate: Candidate<'_>,
    ) -> Result<Arc<[Arc<Requirement>]>, Unavailable> {
        let package = self.package(releases.id()).expect("has releases");
        Ok(match candidate {
            Candidate::Release(position) => {
                self.log().versions.insert((releases.id().clone(), position));
                shared(&package.versions[position as usize].1)
            }
            Candidate::Revision(revision) => shared(&package.revisions[&*revision.commit].1),
        })
    }

    fn providing(
        &self,
        capability: &str,
        near: &PackageId,
    ) -> Result<Arc<[PackageId]>, Unavailable> {
        let listed = self.listed.get(capability).into_iter().flatten();
        Ok(listed.filter(|id| id.base() == near.base()).cloned().collect())
    }

    fn expect(&self, level: GraphLevel<'_>) {
        let GraphLevel::Releases(ids) = level else { return };
        let mut asked = self.log();
        let known: BTreeSet<_> = asked.waves.iter().flatten().cloned().collect();
        let new: BTreeSet<_> = ids.iter().filter(|id| !known.contains(id)).cloned().collect();
        if !new.is_empty() {
            asked.waves.push(new);
        }
    }

    fn similar(&self, id: &PackageId) -> Vec<PackageId> {
        let alike = |known: &&PackageId| known.name().leaf().get(..2) == id.name().leaf().get(..2);
        self.packages.keys().filter(alike).cloned().collect()
    }
}
