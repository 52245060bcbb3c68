//! The order in which packages were requested, and what they require: for explaining why a package was
//! requested.
//!
//! Sends no request.

use super::Package;
use crate::index::run::Surroundings;
use crate::reference::PackageId;
use mu_provider::threads::lock;

impl Package {
    /// The package that was requested after `order` - 1 others.
    pub(in crate::index) fn at_turn(self, order: usize) -> Self {
        Self { order, ..self }
    }

    /// Its number in the order in which packages were requested in this run.
    pub(in crate::index) fn order(&self) -> usize {
        self.order
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
}
