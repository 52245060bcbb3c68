//! What is known about packages: their candidates, and what their versions require, provide and replace.
//!
//! Nothing is forgotten. New knowledge may contradict earlier answers, such as the possible providers of a
//! capability; then [`Packages::is_outdated`] says so, and the caller starts again.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use mu_manifest::reference::{PackageId, Version, VersionSpec};
use pubgrub::VersionSet;
use rustc_hash::{FxHashMap, FxHashSet};

use super::capabilities::{Capabilities, Replacements};
use super::nodes::{KnownRequirements, RequirementMeaning};
use crate::candidates::{Candidates, Inquiry, Known};
use crate::node::{PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::{ChosenFacts, Details, Position};
use crate::universe::{Requirement, Unavailable, Universe};
use crate::{Bundled, CandidateOfLock, SelectionRequest, Statistics};

/// The known packages.
pub(crate) struct Packages<'a> {
    pub(super) universe: &'a dyn Universe,
    pub(crate) request: &'a SelectionRequest,
    locked: BTreeMap<&'a PackageId, Vec<&'a CandidateOfLock>>,
    /// The requirements of roots that accept only one version.
    pins: BTreeMap<&'a PackageId, Vec<&'a VersionSpec>>,
    /// The channels that roots request.
    channels: BTreeMap<&'a PackageId, Vec<&'a str>>,
    /// Whether versions that cannot be reached by an upgrade are excluded.
    pub(super) narrows_upgrades: bool,
    /// All packages that were read.
    pub(crate) known: Vec<Candidates>,
    places: FxHashMap<PackageId, PackageIndex>,
    pub(super) needs: KnownRequirements,
    pub(crate) capabilities: Capabilities,
    pub(crate) replacements: Replacements,
    /// The package ids and capabilities that something conflicts with.
    pub(super) opponents: FxHashSet<Rc<str>>,
    /// The releases to try first, as [`Self::suggest`] was given them last.
    pub(crate) suggested: FxHashMap<PackageId, Vec<Position>>,
    /// Whether an answer that was given is no longer true.
    pub(super) is_outdated: bool,
}

impl<'a> Packages<'a> {
    pub(super) fn new(universe: &'a dyn Universe, request: &'a SelectionRequest) -> Self {
        let mut locked: BTreeMap<&PackageId, Vec<&CandidateOfLock>> = BTreeMap::new();
        for entry in &request.locked {
            locked.entry(&entry.id).or_default().push(entry);
        }
        let mut pins: BTreeMap<&PackageId, Vec<&VersionSpec>> = BTreeMap::new();
        let mut channels: BTreeMap<&PackageId, Vec<&str>> = BTreeMap::new();
        // Only what roots say counts for these two. A pin of theirs lets a withdrawn version in, and a channel of
        // theirs takes precedence over the default one. A package in the graph has no such say about others.
        for asked in request.roots.iter().flat_map(|root| &root.requirements) {
            if matches!(asked.spec, VersionSpec::Pin(_)) {
                pins.entry(&asked.id).or_default().push(&asked.spec);
            }
            if let Some(channel) = &asked.channel {
                channels.entry(&asked.id).or_default().push(channel);
            }
        }
        Self {
            universe,
            request,
            locked,
            pins,
            channels,
            narrows_upgrades: true,
            known: Vec::new(),
            places: FxHashMap::default(),
            needs: KnownRequirements::default(),
            capabilities: Capabilities::default(),
            replacements: Replacements::default(),
            opponents: FxHashSet::default(),
            suggested: FxHashMap::default(),
            is_outdated: false,
        }
    }

    /// The candidates of a package.
    pub(crate) fn get(&self, PackageIndex(index): PackageIndex) -> &Candidates {
        &self.known[index]
    }

    /// Whether what is chosen may depend on what was read before: a provider or a replacement that only another search
    /// has met is not looked for again.
    pub(crate) fn may_have_met(&self) -> bool {
        self.capabilities.is_any_required() || !self.replacements.is_empty()
    }

    /// Sets which releases are tried first, before the newest ones: those of an answer to a similar request.
    /// They decide how soon an answer is found, never whether.
    pub(crate) fn suggest(&mut self, suggested: FxHashMap<PackageId, Vec<Position>>) {
        // A package that is read later gets its suggestion in `find`.
        for package in &mut self.known {
            package.suggest_releases(
                suggested.get(&package.id).map(Vec::as_slice).unwrap_or_default(),
            );
        }
        self.suggested = suggested;
    }

    /// The place of a package, if it was read.
    pub(crate) fn place(&self, id: &PackageId) -> Option<PackageIndex> {
        self.places.get(id).copied()
    }

    /// How much was read.
    pub(crate) fn statistics(&self) -> Statistics {
        let versions_read = self.needs.by_version.len();
        Statistics { packages_read: self.known.len(), versions_read }
    }

    fn inquiry(&self) -> Inquiry<'a> {
        Inquiry { universe: self.universe, settings: &self.request.settings }
    }

    /// The place of a package; reads its releases if necessary.
    pub(super) fn find(&mut self, id: &PackageId) -> Result<PackageIndex, Unavailable> {
        if let Some(&place) = self.places.get(id) {
            return Ok(place);
        }
        let request = self.request;
        let locked = self.locked.get(id).map(Vec::as_slice).unwrap_or_default();
        // What is said to be installed counts instead of the lock.
        let given = request.installed.get(id);
        let installed: Vec<&Version> = match given {
            Some(installed) => vec![&installed.version],
            None => locked.iter().filter_map(|locked| locked.version.as_ref()).collect(),
        };
        // What the user wants to move is not kept. It still counts as installed, because upgrades start there.
        let kept: Vec<&CandidateOfLock> =
            locked.iter().copied().filter(|_| !request.update.moves(id)).collect();
        let known = Known {
            kept: &kept,
            installed: &installed,
            channel: given.and_then(|installed| installed.channel.clone()),
            is_next_wanted: given.is_some_and(|installed| installed.is_next_wanted),
            pins: self.pins.get(id).map(Vec::as_slice).unwrap_or_default(),
            channels: self.channels.get(id).map(Vec::as_slice).unwrap_or_default(),
        };
        let mut package = Candidates::gather(self.inquiry(), id, &known)?;
        package.is_side_by_side = request.settings.side_by_side.contains(id);
        if self.narrows_upgrades {
            package.narrow_upgrades();
        }
        if let Some(releases) = self.suggested.get(id) {
            package.suggest_releases(releases);
        }
        // From here on the package has a place, but `known` does not hold it yet: nothing before the `push` below may
        // call `get` with it.
        let place = PackageIndex(self.known.len());
        self.places.insert(id.clone(), place);
        let listing = package.registry_listing();
        // Answers about capabilities and replacements that were given before may lack this package.
        for (name, versions, preferred) in
            listing.provided_capabilities(request.settings.capabilities.stated_capabilities(id))
        {
            // A package whose default channel has only some of the versions is noted twice, first with those: the place
            // among the providers is the last thing that ranks them, so its versions in the channel are tried before
            // the others.
            for versions in preferred.into_iter().chain([versions]) {
                self.is_outdated |=
                    self.capabilities.add_provider(&request.own, &name, place, versions);
            }
        }
        // The minimal strategy finds out itself what replaces what, from the versions that it chose.
        if !self.replacements.are_fixed() {
            let stated = request.settings.stated_replaces(id).cloned();
            let stated = stated.map(|replaced| (replaced, listing.allowed.clone()));
            for (replaced, versions) in listing.replaced().into_iter().chain(stated) {
                if may_replace(request, id, &replaced) {
                    self.note_replacer(&replaced, place, versions);
                }
            }
        }
        // Opponents are noted for all versions at once, chosen or not. If they were found one by one with the versions,
        // edges of packages that were visited before would lack `Opponent`, and the search would start again each time.
        let opponents = listing.opponents();
        self.known.push(package);
        for opponent in opponents {
            self.note_opponent(&opponent);
        }
        Ok(place)
    }

    /// Notes that some versions of a package replace another package.
    pub(super) fn note_replacer(
        &mut self,
        id: &PackageId,
        place: PackageIndex,
        versions: PositionSet,
    ) {
        let is_new = self.replacements.add(id, place, versions);
        // Earlier requirements treated it as a package that nothing replaces.
        self.is_outdated |= is_new && self.places.contains_key(id);
    }

    /// The number of a requirement.
    pub(crate) fn need_for(&mut self, requirement: &Requirement) -> RequirementIndex {
        match self.needs.find(requirement) {
            Some(known) => known,
            None => self.add_need(Arc::new(requirement.clone())),
        }
    }

    fn add_need(&mut self, requirement: Arc<Requirement>) -> RequirementIndex {
        let is_own = self.request.is_own(&requirement.id);
        self.needs.add(requirement, is_own)
    }

    /// The requirement with a number.
    pub(crate) fn requirement(&self, need: RequirementIndex) -> &Arc<Requirement> {
        &self.needs.met[need.0].requirement
    }

    /// Whether the required package resolves to one of the workspace itself.
    pub(crate) fn is_resolved_to_own(&self, need: RequirementIndex) -> bool {
        self.needs.met[need.0].is_own
    }

    /// The numbers of a version's requirements.
    pub(crate) fn needs_of(
        &mut self,
        place: PackageIndex,
        position: Position,
    ) -> Result<Rc<[RequirementIndex]>, Unavailable> {
        if let Some(known) = self.needs.by_version.get(&(place, position)) {
            return Ok(Rc::clone(known));
        }
        let requirements = self.read_requirements(place, position)?;
        // Most versions of a package share their requirements in memory, so nearly all of these are found by their
        // address.
        let needs = requirements.iter().map(|requirement| {
            let known = self.needs.find_shared(requirement);
            known.unwrap_or_else(|| self.add_need(Arc::clone(requirement)))
        });
        let needs: Rc<[RequirementIndex]> = needs.collect();
        self.needs.by_version.insert((place, position), Rc::clone(&needs));
        Ok(needs)
    }

    /// What a version requires.
    pub(crate) fn requirements(
        &mut self,
        place: PackageIndex,
        position: Position,
    ) -> Result<Vec<Arc<Requirement>>, Unavailable> {
        let needs = self.needs_of(place, position)?;
        Ok(needs.iter().map(|&need| Arc::clone(self.requirement(need))).collect())
    }

    /// Asks the universe what a version requires, and what else its manifest says.
    fn read_requirements(
        &mut self,
        PackageIndex(index): PackageIndex,
        position: Position,
    ) -> Result<Arc<[Arc<Requirement>]>, Unavailable> {
        let package = &self.known[index];
        let (releases, candidate) = (&package.releases, package.candidate(position));
        let mut required = self.universe.requirements(releases, candidate)?;
        // A chart that uses the copy of `redis` that it carries inside does not need the package `redis`, whatever it
        // says.
        let bundled = &self.request.settings.bundled;
        if bundled.iter().any(|one| one.by == package.id) {
            let others =
                required.iter().filter(|one| !Bundled::holds(bundled, &package.id, &one.id));
            required = others.cloned().collect();
        }
        // The listing of a repository has only tags. So it may turn out only now that the version needs `mu ^9`, when
        // sets that hold it were handed out: they are computed again, and the search starts again without the version.
        if let Some(details) = self.declared(PackageIndex(index), position)?
            && self.known[index].declare(&self.request.settings, position, details)
        {
            self.is_outdated = true;
            self.needs.forget_meanings();
        }
        Ok(required)
    }

    /// What the manifest of a version says besides its listing, unless the listing says everything.
    fn declared(
        &self,
        place: PackageIndex,
        position: Position,
    ) -> Result<Option<Arc<Details>>, Unavailable> {
        let package = self.get(place);
        let releases = &package.releases;
        if releases.is_complete {
            return Ok(None);
        }
        self.universe.declared(releases.id(), package.candidate(position))
    }

    /// The package that a requirement names, or the override of it, and the candidates that the requirement
    /// accepts.
    pub(crate) fn meaning(
        &mut self,
        need: RequirementIndex,
    ) -> Result<(PackageIndex, &PositionSet), Unavailable> {
        if self.needs.met[need.0].meaning.is_none() {
            let requirement = Arc::clone(self.requirement(need));
            // With the minimal strategy, a requirement on `a` means one on `b` while `b` stands in for `a`, with the
            // same range. The number stays that of the requirement on `a`, so messages show what was written.
            let requirement =
                self.replacements.instead(&requirement).map(Arc::new).unwrap_or(requirement);
            let place = self.find(&requirement.id)?;
            let inquiry = self.inquiry();
            let accepted = self.known[place.0].accepted_positions(inquiry, &requirement)?;
            self.note_named(place);
            self.needs.met[need.0].meaning =
                Some(RequirementMeaning { place, accepted, lowest: None });
        }
        let meaning = self.needs.met[need.0].meaning.as_ref().expect("was just found out");
        Ok((meaning.place, &meaning.accepted))
    }

    /// The package that a requirement names, or the override of it, and the candidates that the requirement
    /// accepts, whether or not the requirement has a number yet.
    pub(crate) fn find_accepted(
        &mut self,
        requirement: &Requirement,
    ) -> Result<(PackageIndex, PositionSet), Unavailable> {
        let need = self.need_for(requirement);
        let (place, set) = self.meaning(need)?;
        Ok((place, set.clone()))
    }

    /// The package that a requirement names, and the lowest candidate that it accepts; `find` is called once.
    pub(crate) fn lowest(
        &mut self,
        need: RequirementIndex,
        find: impl FnOnce(
            &mut Self,
            &Requirement,
            PackageIndex,
        ) -> Result<Option<Position>, Unavailable>,
    ) -> Result<(PackageIndex, Option<Position>), Unavailable> {
        let (place, _) = self.meaning(need)?;
        let known = self.needs.met[need.0].meaning.as_ref().and_then(|meaning| meaning.lowest);
        if let Some(known) = known {
            return Ok((place, known));
        }
        let requirement = Arc::clone(self.requirement(need));
        let lowest = find(self, &requirement, place)?;
        let takes_lowest = self.replacements.are_fixed();
        if let Some(meaning) = &mut self.needs.met[need.0].meaning {
            // It may be withdrawn, and then only this requirement allows it.
            if let Some(lowest) =
                lowest.filter(|&lowest| takes_lowest && !meaning.accepted.holds(lowest))
            {
                meaning.accepted = meaning.accepted.union(&PositionSet::singleton(lowest));
            }
            meaning.lowest = Some(lowest);
        }
        Ok((place, lowest))
    }

    /// The candidates that match a requirement, including those that the filters exclude.
    pub(crate) fn matching(
        &mut self,
        place: PackageIndex,
        requirement: &Requirement,
    ) -> Result<PositionSet, Unavailable> {
        let inquiry = self.inquiry();
        let matching = self.known[place.0].matching_candidates(inquiry, requirement)?;
        self.note_named(place);
        Ok(matching)
    }

    /// Checks whether a revision of a package was named that earlier sets lack, and notes what its revisions provide: no listing
    /// says it.
    fn note_named(&mut self, place: PackageIndex) {
        let PackageIndex(index) = place;
        // A branch was just resolved to a commit whose version is 1.4.0. Requirements `^1` that were examined before
        // did not accept it; they do now, and so they are examined again.
        if self.known[index].take_outdated_sets() {
            self.is_outdated = true;
            self.needs.forget_meanings();
        }
        // The positions behind the releases are the revisions.
        for position in self.known[index].releases.len()..self.known[index].count() {
            if !self.known[index].allowed.holds(position) {
                continue;
            }
            let details = self.known[index].details(position);
            let provides =
                details.map(|details| details.facts.provides.clone()).unwrap_or_default();
            self.note_all_provided(&provides, place, position);
        }
    }

    /// The capabilities that a version provides, and those that it requires of others, with what the settings say.
    pub(crate) fn capabilities_of(
        &mut self,
        place: PackageIndex,
        position: Position,
    ) -> Result<(Vec<String>, Vec<String>), Unavailable> {
        let (mut provides, mut requires) = self.declared_capabilities(place, position)?;
        let stated = &self.request.settings.capabilities;
        for name in stated.stated_capabilities(&self.known[place.0].id) {
            if !provides.contains(name) {
                let own = &self.request.own;
                self.is_outdated |= self.capabilities.note_provided(own, name, place, position);
                provides.push(name.clone());
            }
        }
        // What the user's cluster has anyway, nothing needs to provide.
        requires.retain(|name| !stated.runtime.contains(name));
        Ok((provides, requires))
    }

    /// The capabilities that a version says it provides, and those that it says it requires.
    fn declared_capabilities(
        &mut self,
        place: PackageIndex,
        position: Position,
    ) -> Result<(Vec<String>, Vec<String>), Unavailable> {
        let package = self.get(place);
        if let Some(details) = package.details(position) {
            return Ok((details.facts.provides.clone(), details.facts.requires.clone()));
        }
        let declared = self.declared(place, position)?;
        let Some(declared) = declared else { return Ok((Vec::new(), Vec::new())) };
        let ChosenFacts { provides, requires, .. } = &declared.facts;
        self.note_all_provided(provides, place, position);
        Ok((provides.clone(), requires.clone()))
    }

    fn note_all_provided(&mut self, provides: &[String], place: PackageIndex, position: Position) {
        let own = &self.request.own;
        for name in provides {
            self.is_outdated |= self.capabilities.note_provided(own, name, place, position);
        }
    }

    /// Sets the replacements, for a strategy that does not search.
    pub(crate) fn replace(&mut self, stand_ins: BTreeMap<PackageId, PackageId>) {
        if self.replacements.fix(stand_ins) {
            self.needs.forget_meanings();
        }
    }

    /// What `read` finds in the facts of a version, or in its manifest, where the listing does not say everything.
    fn said<T: Default>(
        &self,
        place: PackageIndex,
        position: Position,
        read: impl Fn(&ChosenFacts) -> T,
    ) -> Result<T, Unavailable> {
        let package = self.get(place);
        if let Some(details) = package.details(position) {
            return Ok(read(&details.facts));
        }
        let declared = self.declared(place, position)?;
        Ok(declared.map(|declared| read(&declared.facts)).unwrap_or_default())
    }

    /// What a version says of itself, as a lock keeps it. What the settings say besides is not the package's, and not in it.
    pub(crate) fn chosen_facts(
        &self,
        place: PackageIndex,
        position: Position,
    ) -> Result<ChosenFacts, Unavailable> {
        let facts = self.said(place, position, ChosenFacts::clone)?;
        Ok(ChosenFacts { conflicts: self.conflicts_of(place, position)?, ..facts })
    }

    /// The packages that a version replaces: those that it says, and those that the settings say.
    pub(crate) fn replaced_by(
        &self,
        place: PackageIndex,
        position: Position,
    ) -> Result<Vec<PackageId>, Unavailable> {
        let by = &self.get(place).id;
        let mut replaced = self.said(place, position, |facts| facts.replaces.clone())?;
        for id in self.request.settings.stated_replaces(by) {
            if !replaced.contains(id) {
                replaced.push(id.clone());
            }
        }
        replaced.retain(|id| may_replace(self.request, by, id));
        Ok(replaced)
    }

    /// Notes that something conflicts with a package or a capability.
    pub(super) fn note_opponent(&mut self, name: &str) -> Rc<str> {
        if let Some(known) = self.opponents.get(name) {
            return Rc::clone(known);
        }
        // Earlier edges did not yet say that something is it or provides it.
        // A name is that of a package or of a capability; only who has that name knows which, so both are looked for.
        let is_met = PackageId::parse(name).is_ok_and(|id| self.place(&id).is_some());
        self.is_outdated |= is_met || self.capabilities.find(name).is_some();
        let name: Rc<str> = name.into();
        self.opponents.insert(Rc::clone(&name));
        name
    }

    /// What a version conflicts with: package ids, and capabilities. It never conflicts with itself.
    pub(crate) fn conflicts_of(
        &self,
        place: PackageIndex,
        position: Position,
    ) -> Result<Vec<String>, Unavailable> {
        // Packages that provide `c/v1/N` and conflict with it mean all others that provide it: a usual way to be the
        // only one.
        let own = self.get(place).id.as_str();
        self.said(place, position, |facts| {
            let mut others = facts.conflicts.clone();
            others.retain(|name| name != own && !facts.provides.contains(name));
            others
        })
    }

    /// Whether the workspace itself has a package of this id, or one that provides this capability.
    pub(crate) fn is_in_workspace(&self, name: &str) -> bool {
        let SelectionRequest { own, local, .. } = self.request;
        let is_own = |id: &PackageId| own.packages.contains(id) || local.contains_key(id);
        own.provides.get(name).is_some_and(|by| by.iter().any(is_own))
            || PackageId::parse(name).is_ok_and(|id| is_own(&id))
    }
}

/// Whether `by` can replace `id` at all: not for the workspace's own packages, nor if the settings forbid it.
fn may_replace(request: &SelectionRequest, by: &PackageId, id: &PackageId) -> bool {
    let settings = &request.settings;
    // For the last condition: if the settings say that `b` replaces `a`, nothing else does. If they say that `a`
    // replaces `a`, nothing does.
    by != id
        && !request.is_own(id)
        && !settings.overrides.contains_key(id)
        && settings.replacements.get(id).is_none_or(|only| only == by)
}
