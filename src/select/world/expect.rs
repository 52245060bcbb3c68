//! Hints to the universe, so that the next packages are there when they are needed. Hints change no answer.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Packages;
use crate::index::releases::{Position, Releases};
use crate::index::{Candidate, Level};
use crate::reference::PackageId;
use crate::select::node::PackageIndex;

impl Packages<'_> {
    /// Tells the universe which packages come next, in the order in which they will be needed.
    pub(in crate::select) fn expect<'r>(&self, ids: impl Iterator<Item = &'r PackageId>) {
        let overrides = &self.request.settings.overrides;
        let places = ids.filter(|&id| self.place(id).is_none());
        let actual = places.map(|id| overrides.get(id).map_or(id, |instead| &instead.id));
        let mut met = FxHashSet::default();
        let ids: Vec<PackageId> = actual.filter(|&id| met.insert(id)).cloned().collect();
        if !ids.is_empty() {
            self.universe.expect(Level::Releases(&ids));
        }
    }

    /// Tells the universe which requirements come next.
    pub(in crate::select) fn expect_requirements(&self, candidates: &[(PackageIndex, Position)]) {
        self.universe.expect(Level::Requirements(&self.releases(candidates.iter().copied())));
    }

    /// Tells the universe what was chosen. Of what the lock has, everything is known.
    pub(in crate::select) fn expect_chosen(
        &self,
        chosen: impl Iterator<Item = (PackageIndex, Position)>,
    ) {
        let new = chosen.filter(|&(place, position)| !self.get(place).is_locked(position));
        self.universe.expect(Level::Chosen(&self.releases(new)));
    }

    fn releases(
        &self,
        candidates: impl Iterator<Item = (PackageIndex, Position)>,
    ) -> Vec<(Arc<Releases>, Position)> {
        let releases = candidates.filter_map(|(place, position)| {
            let package = self.get(place);
            matches!(package.candidate(position), Candidate::Release(_))
                .then(|| (Arc::clone(&package.releases), position))
        });
        releases.collect()
    }
}
