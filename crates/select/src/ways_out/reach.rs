//! What requirements could be relaxed to: one alone, or several of a conflict at once, with those that then
//! prevent a solution.

use std::collections::BTreeSet;

use mu_manifest::reference::{PackageId, VersionSpec};
use pubgrub::VersionSet as _;

use crate::conflict::Ask;
use crate::node::{Node, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::{Proof, Verdict};
use crate::trial::Trial;
use crate::universe::{Requirement, Unavailable};
use crate::ways_out::asks::Goal;
use crate::ways_out::{WISHES, others};
use crate::world::World;
use crate::{RootRequirer, clash, core};

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
