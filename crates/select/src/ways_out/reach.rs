//! What requirements could be relaxed to: one alone, or several of a conflict at once, with those that then prevent a solution;
//! and from a version that would work to what the roots should require, written like their current requirements.

use std::collections::BTreeSet;

use mu_manifest::reference::{PackageId, VersionSpec};
use pubgrub::VersionSet as _;

use crate::clash::{self, three_numbers};
use crate::conflict::Ask;
use crate::minimal::build::{compatible, spec_with_minimum};
use crate::node::{Node, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::{Proof, Verdict};
use crate::trial::Trial;
use crate::universe::{Requirement, Unavailable};
use crate::ways_out::{WISHES, others};
use crate::world::World;
use crate::{RootRequirer, SelectionRequest, core};

/// How often more requirements are relaxed.
const TOGETHER: usize = 4;
/// How many facts are examined to find what else prevents a solution.
const EFFORT: usize = 20_000;

/// The candidates of the package of a wish.
pub(super) struct WishCandidates<'w> {
    pub(super) wish: &'w Requirement,
    pub(super) place: PackageIndex,
    /// What the wish would accept if its version did not matter.
    pub(super) all: PositionSet,
    /// What the wish accepts.
    pub(super) now: PositionSet,
}

impl<'w> WishCandidates<'w> {
    pub(super) fn from_wish(
        wish: &'w Requirement,
        world: &mut World<'_>,
    ) -> Result<Self, Unavailable> {
        let any = Requirement { spec: VersionSpec::Latest, ..wish.clone() };
        let (place, now) = world.accepted(wish)?;
        let (_, all) = world.accepted(&any)?;
        Ok(Self { wish, place, all, now })
    }

    /// The releases above everything that is accepted now.
    pub(super) fn releases_above(&self, world: &World<'_>) -> PositionSet {
        let releases = world.package(self.place).releases.len();
        // Revisions are not above anything.
        let above = PositionSet::position_range(self.end(world), releases);
        self.all.without(&self.now).intersection(&above)
    }

    /// The versions below the last one that is accepted now, without those that are accepted.
    pub(super) fn versions_below(&self, world: &World<'_>) -> PositionSet {
        let below = PositionSet::position_range(0, self.end(world));
        self.all.without(&self.now).intersection(&below)
    }

    /// The position after everything that is required, even if nothing there matches.
    fn end(&self, world: &World<'_>) -> Position {
        if let Some(last) = self.now.highest_position() {
            return last + 1;
        }
        clash::position_behind(world.package(self.place), &self.wish.spec).unwrap_or(0)
    }
}

/// What roots should require instead of `wishes`, and of others if it takes those; nothing if that does not help.
pub(super) fn asks_together(
    trial: &mut Trial<'_>,
    wishes: &[Requirement],
    only_raise: bool,
) -> Result<Vec<Ask>, Unavailable> {
    // The wishes are relaxed, and a search tells which other requirements are then in the way; those are relaxed as
    // well. Ends after TOGETHER rounds: what takes more is no advice that anybody follows.
    let mut open: Vec<Requirement> = wishes.to_vec();
    for _ in 0..TOGETHER {
        let relaxed = Relaxed::of(&open, only_raise, &mut trial.world)?;
        let proof = match relaxed.search(trial)? {
            Verdict::Chosen(_) => return relaxed.narrow(trial),
            Verdict::Refuted(proof) => proof,
            Verdict::GivenUp => return Ok(Vec::new()),
        };
        let more = relaxed.more(&proof, &trial.world);
        if more.is_empty() || open.len() + more.len() > WISHES {
            return Ok(Vec::new());
        }
        open.extend(more);
    }
    Ok(Vec::new())
}

/// Requirements of which each may be met by anything that it reaches.
struct Relaxed<'w> {
    reaches: Vec<WishCandidates<'w>>,
    /// What roots require of other packages.
    roots: Vec<RootRequirer>,
}

impl<'w> Relaxed<'w> {
    fn of(
        wishes: &'w [Requirement],
        only_raise: bool,
        world: &mut World<'_>,
    ) -> Result<Self, Unavailable> {
        let mut reaches = Vec::new();
        for wish in wishes {
            let mut reach = WishCandidates::from_wish(wish, world)?;
            let all = if only_raise { &reach.releases_above(world) } else { &reach.all };
            reach.all = all.union(&reach.now);
            reaches.push(reach);
        }
        let ids: BTreeSet<&PackageId> = wishes.iter().map(|wish| &wish.id).collect();
        Ok(Self { reaches, roots: others(world.request(), &ids) })
    }

    fn search(&self, trial: &mut Trial<'_>) -> Result<Verdict, Unavailable> {
        let sets: Vec<_> =
            self.reaches.iter().map(|reach| (reach.place, reach.all.clone())).collect();
        trial.search(self.roots.clone(), &sets)
    }

    /// The requirements of roots on other packages that a refutation names, one for each package.
    fn more(&self, proof: &Proof, world: &World<'_>) -> Vec<Requirement> {
        let groups = core::smallest(proof, EFFORT);
        let mut more = Vec::new();
        for link in
            groups.iter().map(|group| &group[0]).filter(|link| link.from == Node::GRAPH_ROOT)
        {
            let Some(place) = world.place(link.to) else { continue };
            let id = &world.package(place).id;
            let mut asked = self.roots.iter().flat_map(|root| &root.requirements);
            more.extend(asked.find(|one| one.id == *id).cloned());
        }
        more
    }

    /// Relaxes only those requirements that must be relaxed.
    fn narrow(mut self, trial: &mut Trial<'_>) -> Result<Vec<Ask>, Unavailable> {
        // One after the other is put back to what it accepts now. If the rest still fits, it stays as the user wrote
        // it.
        for index in 0..self.reaches.len() {
            let now = self.reaches[index].now.clone();
            let is_any = !now.is_empty();
            let wide = std::mem::replace(&mut self.reaches[index].all, now);
            if !is_any || !matches!(self.search(trial)?, Verdict::Chosen(_)) {
                self.reaches[index].all = wide;
            }
        }
        let Verdict::Chosen(choices) = self.search(trial)? else { return Ok(Vec::new()) };
        let mut asks = Vec::new();
        for WishCandidates { wish, place, all, .. } in self.reaches {
            let chosen = trial.chosen_in(&choices, place, &all)?;
            let Some(position) = chosen else { return Ok(Vec::new()) };
            let goal = Goal { wish, place, position };
            // Two wishes on one package lead to the same change.
            for ask in goal.needed_asks(&mut trial.world)?.unwrap_or_default() {
                if !asks.iter().any(|known: &Ask| (&known.by, &known.from) == (&ask.by, &ask.from))
                {
                    asks.push(ask);
                }
            }
        }
        Ok(asks)
    }
}

/// A candidate that should be chosen.
pub(super) struct Goal<'w> {
    /// What it is chosen instead of, or as; narrows it in other ways than its version.
    pub(super) wish: &'w Requirement,
    pub(super) place: PackageIndex,
    pub(super) position: Position,
}

impl Goal<'_> {
    /// What roots should require so that the candidate can be chosen. `None` if they accept it already, or
    /// nothing that they could require would.
    pub(super) fn needed_asks(
        &self,
        world: &mut World<'_>,
    ) -> Result<Option<Vec<Ask>>, Unavailable> {
        let mut asks = Vec::new();
        for root in &world.request().roots {
            for requirement in root.requirements.iter().filter(|one| one.id == self.wish.id) {
                let (_, accepted) = world.accepted(requirement)?;
                if accepted.holds(self.position) {
                    continue;
                }
                let to = self.accepting(requirement, world)?;
                let Some(to) = to else { return Ok(None) };
                let version = world.package(self.place).candidate_label(self.position);
                let from = Some(requirement.clone());
                let ask = Ask { by: root.by.clone(), from, to, version };
                // A package may be in two lists of one manifest.
                if !asks.contains(&ask) {
                    asks.push(ask);
                }
            }
        }
        Ok(Some(asks).filter(|asks| !asks.is_empty()))
    }

    /// What a root should require so that the candidate is the lowest version.
    pub(super) fn lowest_asks(&self, world: &mut World<'_>) -> Result<Vec<Ask>, Unavailable> {
        if let Some(asks) = self.needed_asks(world)? {
            return Ok(asks);
        }
        let package = world.package(self.place);
        let spec = spec_with_minimum(package, self.position, Some(&self.wish.spec));
        let mut roots = world.request().roots.iter();
        let asker = roots.find(|root| root.requirements.contains(self.wish));
        let by = asker.map(|root| root.by.clone()).unwrap_or_default();
        let to = Requirement { spec, ..self.wish.clone() };
        let (from, version) = (Some(self.wish.clone()), package.candidate_label(self.position));
        Ok(vec![Ask { by, from, to, version }])
    }

    /// A requirement that accepts the candidate: as close as possible to the current one. Nothing accepts a
    /// candidate whose manifest rules it out, which may be read only after it was proposed.
    fn accepting(
        &self,
        now: &Requirement,
        world: &mut World<'_>,
    ) -> Result<Option<Requirement>, Unavailable> {
        let (package, position) = (world.package(self.place), self.position);
        let pin =
            VersionSpec::parse(&package.candidate_label(position)).unwrap_or(VersionSpec::Latest);
        // If a requirement is nearly an exact version, the suggestion is one too.
        let like = match three_numbers(now.spec.as_str()) {
            Some(three) if three == pin.as_str() => pin.clone(),
            // A tag says nothing about versions; those that fit the one that is there are the usual choice.
            _ if matches!(now.spec, VersionSpec::Tag(_)) => compatible(package, position),
            _ => spec_with_minimum(package, position, Some(&now.spec)),
        };
        // A command can name another channel, but not remove the current one.
        let narrowed = Requirement {
            spec: now.spec.clone(),
            channel: now.channel.as_ref().and(package.channel(position)),
            app_version: now.app_version.as_ref().and(package.candidate_app_version(position)),
            ..self.wish.clone()
        };
        let mut last = Requirement::new(now.id.clone(), pin.clone());
        last.prerelease = true;
        let looser = [
            Requirement { prerelease: now.prerelease, ..narrowed.clone() },
            narrowed.clone(),
            Requirement { prerelease: true, ..now.clone() },
        ];
        let others = ranges_against(now, world)?;
        let others = others.into_iter().map(|spec| Requirement { spec, ..now.clone() });
        let nearest = [
            Requirement { spec: like.clone(), ..now.clone() },
            Requirement { spec: like, ..narrowed.clone() },
            Requirement { spec: pin, ..narrowed },
        ];
        // From what is closest to the current requirement to the bare version. The first that accepts the candidate is
        // the one: a user who wrote `^1` in a channel gets `^2` in that channel, if this is enough.
        for candidate in looser.into_iter().chain(others).chain(nearest).chain([last]) {
            if world.accepted(&candidate)?.1.holds(position) {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }
}

/// The ranges that other roots require of the same package, and that do not overlap the current one: a root
/// that requires the same as they do agrees with them for good.
fn ranges_against(
    now: &Requirement,
    world: &mut World<'_>,
) -> Result<Vec<VersionSpec>, Unavailable> {
    let (_, accepted) = world.accepted(now)?;
    let mut ranges = Vec::new();
    if accepted.is_empty() {
        return Ok(ranges);
    }
    for other in world.request().roots.iter().flat_map(|root| &root.requirements) {
        let is_range = matches!(other.spec, VersionSpec::Range(_));
        if other.id == now.id && is_range && world.accepted(other)?.1.is_disjoint(&accepted) {
            ranges.push(other.spec.clone());
        }
    }
    Ok(ranges)
}

/// The roots of a request, with other requirements.
pub(super) fn with(request: &SelectionRequest, asks: &[Ask]) -> Vec<RootRequirer> {
    let mut roots = request.roots.clone();
    for ask in asks {
        // Who asks for nothing yet begins to: the command, or a manifest without dependencies.
        let Some(root) = roots.iter_mut().find(|root| root.by == ask.by) else {
            roots.push(RootRequirer { by: ask.by.clone(), requirements: vec![ask.to.clone()] });
            continue;
        };
        let is_meant = |one: &Requirement| Some(one) == ask.from.as_ref();
        if !root.requirements.iter().any(is_meant) {
            root.requirements.push(ask.to.clone());
        }
        for requirement in root.requirements.iter_mut().filter(|one| is_meant(one)) {
            *requirement = ask.to.clone();
        }
    }
    roots
}
