//! When a package was asked for, and what leads on from it: for whoever tells why it was asked for at all.
//!
//! Asks nobody.

use super::Package;
use crate::index::run::Surroundings;
use crate::reference::PackageId;
use mu_provider::threads::lock;

impl Package {
    /// The same as the package that was asked for after `order` - 1 others.
    pub(in crate::index) fn at_turn(self, order: usize) -> Self {
        Self { order, ..self }
    }

    /// How many packages of this run were asked for before it, and itself.
    pub(in crate::index) fn order(&self) -> usize {
        self.order
    }

    /// The packages that its versions require, as far as that can be told without asking anybody. Of versions whose lines
    /// tell it no more than `left` are looked into, and taken from that.
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
