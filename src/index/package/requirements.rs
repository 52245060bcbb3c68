//! What the versions and revisions of a package require.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_provider::{Dependency, Release};

use super::Package;
use super::mistake::About;
use crate::index::error::PackageError;
use crate::index::releases::{Details, Position};
use crate::index::run::Surroundings;
use crate::index::sibling::sibling;
use crate::index::universe::{Candidate, Requirement};
use crate::index::wire;
use crate::reference::{Defaults, PackageId, VersionSpec};
use mu_provider::threads::lock;

/// What one of them requires, once that was looked up.
pub(super) type Requirements = Result<Arc<[Arc<Requirement>]>, Arc<PackageError>>;

impl Package {
    /// What a candidate requires.
    pub(in crate::index) fn requirements(
        &self,
        around: &dyn Surroundings,
        candidate: Candidate<'_>,
    ) -> Requirements {
        match candidate {
            Candidate::Release(position) => match self.plain(around, position) {
                // Computing it is as fast as caching it.
                Some(plain) => Ok(plain),
                None => {
                    let of_line = || self.of_line(around, position).map_err(Arc::new);
                    // A second thread waits for the first.
                    let slot = Arc::clone(lock(&self.requirements).entry(position).or_default());
                    slot.get_or_init(of_line).clone()
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
                        self.settle(around, about, &looked.dependencies).map_err(Arc::new)
                    })
                    .clone()
            }
        }
    }

    /// What a version requires, from its line or its manifest.
    fn of_line(
        &self,
        around: &dyn Surroundings,
        position: Position,
    ) -> Result<Arc<[Arc<Requirement>]>, PackageError> {
        let release = self.line(position)?;
        let dependencies = match release.dependencies.clone() {
            Some(dependencies) => dependencies,
            None => {
                let seen = self.seen(around, &release)?.unwrap_or_default();
                let details = seen.details.filter(|details| **details != Details::default());
                lock(&self.declared).extend(details.map(|details| (position, details)));
                seen.dependencies
            }
        };
        let version = self.releases.version(position).to_string();
        let about = About { version: &version, release: &release, line: Some(position) };
        self.settle(around, about, &dependencies)
    }

    /// The packages that its versions require, as far as known without a request. If only their lines tell,
    /// at most `left` versions are parsed, and subtracted from it.
    pub(in crate::index) fn known_requirements(
        &self,
        around: &dyn Surroundings,
        left: &mut u32,
    ) -> Vec<PackageId> {
        let slots: Vec<_> = lock(&self.requirements).values().cloned().collect();
        let settled = slots.iter().filter_map(|slot| slot.get()?.as_ref().ok().cloned());
        let looked_into = self.releases.len().min(*left);
        *left -= looked_into;
        let newest_first = (0..self.releases.len()).rev().take(looked_into as usize);
        let plain = newest_first.filter_map(|position| self.plain(around, position));
        let mut ids = Vec::new();
        for requirements in settled.chain(plain) {
            ids.extend(requirements.iter().map(|requirement| requirement.id.clone()));
        }
        ids
    }

    /// What a version requires, if that is known without its line, and its references mean nothing but their
    /// ids.
    pub(super) fn plain(
        &self,
        around: &dyn Surroundings,
        position: Position,
    ) -> Option<Arc<[Arc<Requirement>]>> {
        let lines = self.lines.as_ref()?;
        let references = self.table.needs(lines, position as usize)?;
        let has_aliases = !around.run().options.defaults.aliases.is_empty();
        if has_aliases
            || around.run().routes.hints.of(self.id()).is_some()
            || self.folder().is_some()
        {
            return None;
        }
        let own = around.run().options.instead_of.get(self.id()).unwrap_or(self.id());
        let base = own.base();
        // A folder of the workspace is one package, whatever name a reference uses.
        let options = &around.run().options;
        let has_other_name =
            |id: &PackageId| (options.is_local)(id) && (options.own_name)(id.clone()) != *id;
        let commits = &around.run().commits;
        around.run().plain.requirements(&base, &references, commits, has_other_name)
    }

    /// What this package's dependencies leave out: an override fills in what the original package would, and
    /// a package in a folder what the name in its manifest says, because nothing else could come from a
    /// folder.
    fn defaults(
        &self,
        around: &dyn Surroundings,
        release: &Release,
    ) -> Result<Defaults, PackageError> {
        let options = &around.run().options;
        let inherited = |id: &PackageId| {
            let aliases = options.defaults.aliases.clone();
            Defaults { aliases, ..wire::inherited(id) }
        };
        if let Some(other) = options.instead_of.get(self.id()) {
            return Ok(inherited(other));
        }
        if self.folder().is_none() {
            return Ok(inherited(self.id()));
        }
        let manifest = self.manifest(around, release)?;
        let own = manifest.map(|manifest| manifest.name.id(&options.defaults));
        Ok(own.map_or_else(|| options.defaults.clone(), |own| inherited(&own)))
    }

    /// Turns dependencies as they are written into requirements of packages.
    pub(super) fn settle(
        &self,
        around: &dyn Surroundings,
        about: About<'_>,
        dependencies: &[Dependency],
    ) -> Result<Arc<[Arc<Requirement>]>, PackageError> {
        let mut requirements = Vec::with_capacity(dependencies.len());
        let defaults = self.defaults(around, about.release)?;
        for dependency in dependencies {
            let mut declared = wire::declared(&defaults, dependency)
                .map_err(|source| self.no_reference(around, about, dependency, source))?;
            let commit = about.release.commit.as_deref();
            if let (Some(folder), Some(commit)) = (declared.reference.local(), commit) {
                let Some(beside) = self.beside(around, folder, commit) else {
                    return Err(self.no_folder(around, about, dependency, folder));
                };
                // A written version must also be that of the commit.
                if declared.reference.version().is_some() {
                    declared.requirement.id = beside.id.clone();
                    requirements.push(Arc::new(declared.requirement));
                }
                requirements.push(Arc::new(beside));
                continue;
            }
            let options = &around.run().options;
            if declared.reference.base().is_none() && declared.reference.local().is_none() {
                around.run().routes.hints.inherit(&declared.requirement.id, self.id());
                if let Some(fallback) = &declared.fallback {
                    around.run().routes.hints.inherit(fallback, self.id());
                }
            }
            if let Some(fallback) = declared.fallback
                && !(options.is_local)(&declared.requirement.id)
                && !around.is_there(&declared.requirement.id)?
            {
                declared.requirement.id = fallback;
            }
            if declared.reference.local().is_none() && (options.is_local)(&declared.requirement.id)
            {
                // A folder of the workspace is one package, whatever name a reference uses.
                declared.requirement.id = (options.own_name)(declared.requirement.id);
            }
            let from = match (declared.reference.local(), self.folder()) {
                (Some(folder), None) => {
                    return Err(self.no_folder(around, about, dependency, folder));
                }
                (Some(folder), Some(from)) => {
                    let folder = crate::env::absolute(&from, Path::new(folder));
                    declared.requirement.id = PackageId::local(&folder);
                    from
                }
                (None, _) => PathBuf::new(),
            };
            around.run().declare(&declared.requirement.id, &declared.reference, &from);
            requirements.push(Arc::new(declared.requirement));
        }
        Ok(Arc::from(requirements))
    }

    /// What a local folder in the manifest of a commit means: the package there, of the same commit; `None`
    /// if it is not in the repository.
    fn beside(&self, around: &dyn Surroundings, folder: &str, commit: &str) -> Option<Requirement> {
        let own = self.route.location.folder.as_deref().unwrap_or_default();
        let spec = VersionSpec::parse(commit).ok()?;
        let id = sibling(self.id(), own, folder)?;
        around.run().routes.hints.inherit(&id, self.id());
        around.run().commits.note(&id, &spec);
        Some(Requirement::new(id, spec))
    }
}
