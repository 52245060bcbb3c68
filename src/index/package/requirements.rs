//! What the versions and revisions of a package require.

use std::sync::Arc;

use super::Package;
use super::dependent::Dependent;
use crate::index::error::PackageError;
use crate::index::run::PackageSurroundings;
use crate::reference::PackageId;
use crate::select::releases::{Details, Position};
use crate::select::{Candidate, Requirement};
use mu_provider::threads::lock;

/// What a version requires, once that was looked up.
pub(super) type LookedUpRequirements = Result<Arc<[Arc<Requirement>]>, Arc<PackageError>>;

impl Package {
    /// What a candidate requires.
    pub(in crate::index) fn requirements(
        &self,
        around: &dyn PackageSurroundings,
        candidate: Candidate<'_>,
    ) -> LookedUpRequirements {
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
                        let dependent =
                            Dependent { package: self, around, version, release, line: None };
                        dependent.settle(&looked.dependencies).map_err(Arc::new)
                    })
                    .clone()
            }
        }
    }

    /// What a version requires, from its line or its manifest.
    fn of_line(
        &self,
        around: &dyn PackageSurroundings,
        position: Position,
    ) -> Result<Arc<[Arc<Requirement>]>, PackageError> {
        let release = self.line(position)?;
        let dependencies = match release.dependencies.clone() {
            Some(dependencies) => dependencies,
            None => {
                let seen = self.manifests(around).seen(&release)?.unwrap_or_default();
                let details = seen.details.filter(|details| **details != Details::default());
                lock(&self.declared).extend(details.map(|details| (position, details)));
                seen.dependencies
            }
        };
        let (version, line) = (self.releases.version(position).to_string(), Some(position));
        let (version, release) = (&*version, &release);
        Dependent { package: self, around, version, release, line }.settle(&dependencies)
    }

    /// The packages that its versions require, as far as known without a request. If only their lines tell,
    /// at most `left` versions are parsed, and subtracted from it.
    pub(in crate::index) fn known_requirements(
        &self,
        around: &dyn PackageSurroundings,
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
        around: &dyn PackageSurroundings,
        position: Position,
    ) -> Option<Arc<[Arc<Requirement>]>> {
        let lines = self.lines.as_ref()?;
        let references = self.table.needs(lines, position as usize)?;
        let has_aliases = !around.run().options.defaults.aliases.is_empty();
        if has_aliases
            || around.run().routes.hints.hint_for(self.id()).is_some()
            || self.route.folder().is_some()
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
}
