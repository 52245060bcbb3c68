//! Packages that replace others: what replaces what, in which versions.
//!
//! A replacement counts only if something requires it; nothing is installed only because it would replace
//! something. What that means for the graph is in [`super::stand_ins`].

use std::collections::BTreeMap;

use mu_manifest::reference::PackageId;
use pubgrub::VersionSet;
use rustc_hash::FxHashMap;

use crate::node::PackageIndex;
use crate::positions::PositionSet;
use crate::universe::Requirement;

/// All known replacements.
#[derive(Debug, Default)]
pub(crate) struct Replacements {
    /// Who replaces each replaceable package.
    known: FxHashMap<PackageId, Vec<Replacer>>,
    /// The replacements, for a strategy that does not search.
    pub(crate) fixed: Option<BTreeMap<PackageId, PackageId>>,
}

/// A package that replaces another one, in some of its versions.
#[derive(Debug)]
pub(super) struct Replacer {
    pub(super) place: PackageIndex,
    pub(super) versions: PositionSet,
}

impl Replacements {
    /// No replacements, for a strategy that does not search, but sets the replacements itself.
    pub(super) fn fixed() -> Self {
        Self { fixed: Some(BTreeMap::new()), ..Self::default() }
    }

    /// Whether a strategy sets the replacements.
    pub(super) fn are_fixed(&self) -> bool {
        self.fixed.is_some()
    }

    /// Sets the replacements; returns whether they are new.
    pub(super) fn fix(&mut self, stand_ins: BTreeMap<PackageId, PackageId>) -> bool {
        let is_new = self.fixed.as_ref() != Some(&stand_ins);
        self.fixed = Some(stand_ins);
        is_new
    }

    /// The requirement on the replacement of what a requirement names.
    pub(super) fn instead(&self, requirement: &Requirement) -> Option<Requirement> {
        let stand_ins = self.fixed.as_ref().filter(|fixed| !fixed.is_empty())?;
        // Once is enough: what is itself replaced replaces nothing, so there are no chains.
        let by = stand_ins.get(&requirement.id)?;
        Some(Requirement { id: by.clone(), ..requirement.clone() })
    }

    /// Whether nothing replaces anything.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Who replaces a package; `None` if nothing does.
    pub(super) fn replacers(&self, id: &PackageId) -> Option<&[Replacer]> {
        self.known.get(id).map(Vec::as_slice)
    }

    /// Notes that some versions of a package replace another one; returns whether that is new.
    pub(super) fn add(
        &mut self,
        id: &PackageId,
        place: PackageIndex,
        versions: PositionSet,
    ) -> bool {
        let by = self.known.entry(id.clone()).or_default();
        match by.iter_mut().find(|replacer| replacer.place == place) {
            // A replacement keeps its index: positions of `ReplacementChoice` and `Occupant` are counted from it.
            Some(replacer) if versions.subset_of(&replacer.versions) => return false,
            Some(replacer) => replacer.versions = replacer.versions.union(&versions),
            None => by.push(Replacer { place, versions }),
        }
        true
    }
}
