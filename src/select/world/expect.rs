//! Hints to the universe, so that what comes next is there when it is asked for. They change no answer.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::World;
use crate::index::Candidate;
use crate::index::releases::{Position, Releases};
use crate::reference::PackageId;

impl World<'_> {
    /// Hints to the universe which packages come next, in the order in which they will be wanted.
    pub(in crate::select) fn expect<'r>(&self, ids: impl Iterator<Item = &'r PackageId>) {
        if self.universe.is_at_hand() {
            return;
        }
        let overrides = &self.request.settings.overrides;
        let places = ids.filter(|&id| !self.places.contains_key(id));
        let actual = places.map(|id| overrides.get(id).map_or(id, |instead| &instead.id));
        let mut met = FxHashSet::default();
        let ids: Vec<PackageId> = actual.filter(|&id| met.insert(id)).cloned().collect();
        if !ids.is_empty() {
            self.universe.expect(&ids);
        }
    }

    /// Hints to the universe which requirements come next.
    pub(in crate::select) fn expect_requirements(&self, candidates: &[(usize, Position)]) {
        self.universe.expect_requirements(&self.releases_among(candidates.iter().copied()));
    }

    /// Hints to the universe what was chosen; of what the lock holds, or what is installed, all is known.
    pub(in crate::select) fn expect_chosen(&self, chosen: impl Iterator<Item = (usize, Position)>) {
        let new = chosen.filter(|&(place, position)| {
            let package = &self.packages[place];
            let installed = self.request.installed.get(package.id());
            !package.is_locked(position)
                && (installed.is_none() || installed.cloned() != package.version(position))
        });
        self.universe.expect_chosen(&self.releases_among(new));
    }

    fn releases_among(
        &self,
        candidates: impl Iterator<Item = (usize, Position)>,
    ) -> Vec<(Arc<Releases>, Position)> {
        let releases = candidates.filter_map(|(place, position)| {
            let package = &self.packages[place];
            matches!(package.candidate(position), Candidate::Release(_))
                .then(|| (Arc::clone(package.releases()), position))
        });
        releases.collect()
    }
}
