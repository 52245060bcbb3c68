//! What packages can be instead of others: the possible providers of each capability, with the preferred one, and what replaces
//! what, in which versions.
//!
//! A package that is not listed as a provider counts only if a chosen package requires it. A replacement counts only if
//! something requires it; nothing is installed only because it would replace something. What this means for the graph is in
//! [`super::providing`] and [`super::stand_ins`].

use std::collections::{BTreeMap, BTreeSet};

use mu_manifest::reference::PackageId;
use pubgrub::VersionSet;
use rustc_hash::FxHashMap;

use super::packages::Packages;
use crate::OwnCapabilities;
use crate::node::{CapabilityIndex, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Requirement;

/// All known capabilities.
#[derive(Debug, Default)]
pub(crate) struct Capabilities {
    known: Vec<Providers>,
    by_name: FxHashMap<Box<str>, CapabilityIndex>,
}

/// A capability, and its possible providers.
#[derive(Debug)]
struct Providers {
    name: Box<str>,
    /// Candidates of its node.
    all: Vec<CapabilityProvider>,
    /// The packages that registries list, each with its place in their order.
    listed: FxHashMap<PackageId, usize>,
    /// Whether something requires it.
    is_required: bool,
    /// Whether the number of providers was given to a caller.
    is_handed_out: bool,
}

/// A possible provider of a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CapabilityProvider {
    /// A package of the workspace.
    Local(PackageId),
    /// A package, in some of its versions. A package with versions outside its default channel is listed
    /// twice, the second time with only the versions inside it.
    Package(PackageIndex, PositionSet),
}

impl CapabilityProvider {
    /// The package, unless it is the workspace's own.
    pub(crate) fn package(&self) -> Option<(PackageIndex, &PositionSet)> {
        match self {
            Self::Local(_) => None,
            Self::Package(place, versions) => Some((*place, versions)),
        }
    }
}

/// A package that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ChosenPackage {
    /// A package of the workspace.
    Local(PackageId),
    /// A version of a package.
    Candidate(PackageIndex, Position),
}

/// The rank of a provider; the lowest comes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'r> {
    is_fetched: bool,
    is_unlocked: bool,
    listed: usize,
    id: &'r PackageId,
    /// Its place among the providers, where versions in the default channel come before all.
    index: usize,
}

impl Capabilities {
    /// The capability of a name, if it is known.
    pub(crate) fn find(&self, name: &str) -> Option<CapabilityIndex> {
        self.by_name.get(name).copied()
    }

    /// The capability of a name, which is created if it is not known; the workspace's own providers come
    /// first.
    pub(super) fn find_or_add(&mut self, own: &OwnCapabilities, name: &str) -> CapabilityIndex {
        if let Some(known) = self.find(name) {
            return known;
        }
        let capability = CapabilityIndex(self.known.len());
        // The positions of this node are indices into `all`, so it only ever grows at its end.
        let own = own.provides.get(name).into_iter().flatten();
        self.known.push(Providers {
            name: name.into(),
            all: own.cloned().map(CapabilityProvider::Local).collect(),
            listed: FxHashMap::default(),
            is_required: false,
            is_handed_out: false,
        });
        self.by_name.insert(name.into(), capability);
        capability
    }

    /// The name of a capability.
    pub(crate) fn name(&self, CapabilityIndex(index): CapabilityIndex) -> &str {
        &self.known[index].name
    }

    /// The possible providers of a capability.
    pub(crate) fn providers(
        &self,
        CapabilityIndex(index): CapabilityIndex,
    ) -> &[CapabilityProvider] {
        &self.known[index].all
    }

    /// Returns all possible providers of a capability, as candidates of its node.
    pub(super) fn hand_out(&mut self, CapabilityIndex(index): CapabilityIndex) -> PositionSet {
        let known = &mut self.known[index];
        known.is_handed_out = true;
        PositionSet::position_range(0, known.all.len() as Position)
    }

    /// Whether anything known requires a capability.
    pub(crate) fn is_any_required(&self) -> bool {
        self.known.iter().any(|known| known.is_required)
    }

    /// Whether a package provides anything that is required.
    pub(crate) fn is_provider(&self, of: PackageIndex) -> bool {
        let required = self.known.iter().filter(|known| known.is_required);
        let mut providers =
            required.flat_map(|known| &known.all).filter_map(CapabilityProvider::package);
        providers.any(|(place, _)| place == of)
    }

    /// Whether something requires a capability.
    pub(super) fn is_required(&self, CapabilityIndex(index): CapabilityIndex) -> bool {
        self.known[index].is_required
    }

    /// Notes that something requires a capability, for which a registry lists these packages; returns whether
    /// nothing required it before.
    pub(super) fn note_required(
        &mut self,
        CapabilityIndex(index): CapabilityIndex,
        listed: Vec<PackageId>,
    ) -> bool {
        let known = &mut self.known[index];
        // The same package may be listed by several registries; the first place that it was given counts.
        for id in listed {
            let next = known.listed.len();
            known.listed.entry(id).or_insert(next);
        }
        !std::mem::replace(&mut known.is_required, true)
    }

    /// Notes that some versions of a package provide a capability; returns whether that is too late for an
    /// answer that was given.
    pub(super) fn add_provider(
        &mut self,
        own: &OwnCapabilities,
        name: &str,
        place: PackageIndex,
        versions: PositionSet,
    ) -> bool {
        let CapabilityIndex(index) = self.find_or_add(own, name);
        let known = &mut self.known[index];
        // Before it was handed out, nobody has seen a set that lacks this position.
        known.all.push(CapabilityProvider::Package(place, versions));
        known.is_handed_out
    }

    /// Notes that one version, whose manifest was just read, provides a capability; returns whether that is
    /// too late for an answer that was given.
    pub(super) fn note_provided(
        &mut self,
        own: &OwnCapabilities,
        name: &str,
        place: PackageIndex,
        position: Position,
    ) -> bool {
        let CapabilityIndex(index) = self.find_or_add(own, name);
        // Of a package that is there twice, this is the entry of its default channel.
        let known = self.known[index].all.iter_mut().find_map(|provider| match provider {
            CapabilityProvider::Package(own, versions) if *own == place => Some(versions),
            _ => None,
        });
        let one = PositionSet::singleton(position);
        match known {
            Some(versions) if versions.holds(position) => false,
            // Always too late: what chose this provider was led to a set of its versions that lacks this one, whether
            // or not the number of providers was handed out.
            Some(versions) => {
                *versions = versions.union(&one);
                true
            }
            None => self.add_provider(own, name, place, one),
        }
    }

    /// The provider among chosen candidates: the workspace's own comes last, because it is there whether it
    /// is needed or not.
    pub(crate) fn chosen(
        &self,
        name: &str,
        chosen: &dyn Fn(PackageIndex, &PositionSet) -> Option<Position>,
    ) -> Option<ChosenPackage> {
        let providers = self.providers(self.find(name)?);
        let mut packages = providers.iter().rev().filter_map(CapabilityProvider::package);
        let package = packages.find_map(|(place, versions)| {
            Some(ChosenPackage::Candidate(place, chosen(place, versions)?))
        });
        package.or_else(|| {
            providers.iter().find_map(|provider| match provider {
                CapabilityProvider::Local(id) => Some(ChosenPackage::Local(id.clone())),
                CapabilityProvider::Package(..) => None,
            })
        })
    }
}

impl Packages<'_> {
    /// The provider of a capability within `set` to try first: the workspace's own, then locked ones, then in
    /// the order in which registries list them, with versions in the default channel before others.
    pub(crate) fn preferred_provider(
        &self,
        CapabilityIndex(index): CapabilityIndex,
        set: &PositionSet,
    ) -> Option<Position> {
        let known = &self.capabilities.known[index];
        // A set that the search made by complement goes on to the end of all numbers; there is nothing behind the last
        // provider.
        let within = set.iter().take_while(|&index| (index as usize) < known.all.len());
        within.min_by_key(|&index| self.rank(known, index as usize))
    }

    /// The possible providers of a capability, the preferred first, and whether a registry lists them.
    pub(crate) fn ranked_providers(&self, name: &str) -> Vec<(&CapabilityProvider, bool)> {
        let Some(CapabilityIndex(index)) = self.capabilities.find(name) else { return Vec::new() };
        let known = &self.capabilities.known[index];
        let mut ranks: Vec<Rank<'_>> =
            (0..known.all.len()).map(|index| self.rank(known, index)).collect();
        ranks.sort_unstable();
        let ranked = ranks.into_iter();
        ranked.map(|rank| (&known.all[rank.index], rank.listed != usize::MAX)).collect()
    }

    /// How many packages are needed at the fewest to provide all of `required`, in addition to the
    /// workspace's own and those in `is_there`, as far as this can be computed without trying.
    pub(crate) fn fewest_providers(
        &self,
        mut required: BTreeSet<String>,
        is_there: impl Fn(PackageIndex) -> bool,
    ) -> usize {
        let mut missing: Vec<BTreeSet<PackageIndex>> = Vec::new();
        let mut open: Vec<String> = required.iter().cloned().collect();
        // First the capabilities that surely have to be provided: those that are required, and, as long as these have
        // no provider yet, what each version of each of their providers requires in turn. Ends, because each name is
        // opened once (`required.insert`).
        while let Some(name) = open.pop() {
            let ranked = self.ranked_providers(&name);
            let mut places = BTreeSet::new();
            let is_met = ranked.iter().any(|(provider, _)| match provider {
                CapabilityProvider::Local(_) => true,
                CapabilityProvider::Package(place, _) => {
                    places.insert(*place);
                    is_there(*place)
                }
            });
            if !is_met {
                missing.push(places);
                let more = self.required_by_all(&ranked);
                open.extend(
                    more.into_iter().filter(|more| required.insert((*more).clone())).cloned(),
                );
            }
        }
        // If no package provides two of these capabilities, each needs its own provider.
        // Then a lower bound of how many packages that takes. Of three capabilities with the providers `b`, `b` or `d`,
        // and `e` or `f`, the first and the last have none in common: it takes two packages, and the second capability
        // may share `b`. Few providers first, since small sets overlap less, which gives a higher bound.
        missing.sort_by_key(BTreeSet::len);
        let mut taken: BTreeSet<PackageIndex> = BTreeSet::new();
        let mut count = 0;
        for places in missing {
            if places.is_disjoint(&taken) {
                count += 1;
                taken.extend(places);
            }
        }
        count
    }

    /// What every version of every provider requires in turn, as far as it was read.
    fn required_by_all(&self, providers: &[(&CapabilityProvider, bool)]) -> Vec<&String> {
        let versions = providers.iter().filter_map(|(provider, _)| provider.package());
        let mut required = versions.flat_map(|(place, versions)| {
            let package = self.get(place);
            let required =
                |position| package.details(position).map_or(&[][..], |one| &one.facts.requires);
            versions.iter().map(required)
        });
        let mut common: Vec<&String> = required.next().into_iter().flatten().collect();
        // One version after the other, until nothing is left that all of them require: most often that is soon.
        while !common.is_empty()
            && let Some(other) = required.next()
        {
            common.retain(|name| other.contains(name));
        }
        common.retain(|name| !self.request.settings.capabilities.runtime.contains(*name));
        common
    }

    fn rank<'r>(&'r self, known: &'r Providers, index: usize) -> Rank<'r> {
        match &known.all[index] {
            CapabilityProvider::Local(id) => {
                Rank { is_fetched: false, is_unlocked: false, listed: 0, id, index }
            }
            CapabilityProvider::Package(place, versions) => {
                let package = self.get(*place);
                Rank {
                    // The order of the fields is the order of the preferences. A locked provider comes before what
                    // registries say, so that an update of something else does not exchange it.
                    is_fetched: true,
                    is_unlocked: package.kept(versions).is_none(),
                    listed: known.listed.get(&package.id).copied().unwrap_or(usize::MAX),
                    id: &package.id,
                    index,
                }
            }
        }
    }
}

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
