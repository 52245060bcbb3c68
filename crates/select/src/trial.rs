//! Tries whether other requirements could be met: one world, searched again and again, in a bounded number of
//! steps.
//!
//! Later trials use what earlier ones read, so they read little that is new; and they first try what an earlier
//! answer chose, so they hardly ever have to look for what fits together again.

use mu_manifest::reference::PackageId;
use rustc_hash::FxHashMap;

use crate::minimal::build::BuildList;
use crate::minimal::{self, check, providers, replaced};
use crate::node::{MajorLine, NodeKind, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::{self, Choices, Verdict};
use crate::universe::{Requirement, Unavailable, Universe};
use crate::world::{World, look_ahead};
use crate::{Conflict, Failure, Majors, RootRequirer, SelectionRequest, diagnose};

/// The steps that all trials may take together: some eight times as many as the first answer needs in a graph of
/// a thousand packages, many of whose newest versions conflict.
const STEPS: usize = 200_000;
/// One search may take this fraction (1/n) of the remaining steps.
const SHARE: usize = 3;

/// A world to try things in.
pub(super) struct Trial<'a> {
    pub(super) world: World<'a>,
    steps: usize,
    /// How many versions were read to find what to try.
    cost: usize,
    /// Whether it uses the minimal strategy.
    pub(super) is_minimal: bool,
}

impl<'a> Trial<'a> {
    /// A world as the default strategy sees it.
    pub(super) fn new(
        universe: &'a dyn Universe,
        request: &'a SelectionRequest,
        cost: usize,
    ) -> Self {
        Self::within(World::new(universe, request), cost, false)
    }

    /// A world as the minimal strategy sees it; `request` has no lock.
    pub(super) fn minimal(
        universe: &'a dyn Universe,
        request: &'a SelectionRequest,
        cost: usize,
    ) -> Self {
        Self::within(World::new(universe, request).without_narrowing_upgrades(), cost, true)
    }

    fn within(mut world: World<'a>, cost: usize, is_minimal: bool) -> Self {
        let steps = STEPS + 2 * cost;
        world.budget.lower_limit(steps);
        Self { world, steps, cost, is_minimal }
    }

    /// A separate world, to try another request with the same strategy and the steps that are left.
    pub(super) fn trial_of_request<'r>(&self, request: &'r SelectionRequest) -> Trial<'r>
    where
        'a: 'r,
    {
        let universe = self.world.universe();
        let new = if self.is_minimal { Trial::minimal } else { Trial::new };
        let mut trial = new(universe, request, self.cost);
        trial.steps = self.steps;
        // What was chosen here may have been found only thanks to what this world has read.
        if !self.world.packages.may_have_met() {
            trial.world.packages.suggest(self.world.packages.suggested.clone());
        }
        trial
    }

    /// Leaves this trial no more steps than a trial [`Self::of`] `other` has.
    pub(super) fn share_steps_of(&mut self, other: &Trial<'_>) {
        self.steps = self.steps.min(other.steps);
    }

    /// Whether the requirements of the request can be met; `false` if it takes too long to tell.
    pub(super) fn holds(&mut self) -> Result<bool, Unavailable> {
        let roots = self.world.request().roots.clone();
        Ok(match self.is_minimal {
            true => self.build(roots)?.1.is_none(),
            false => matches!(self.search(roots, &[])?, Verdict::Chosen(_)),
        })
    }

    /// Whether the requirements of the request can be met with other `majors`; `None` if what was read before
    /// may change the answer.
    pub(super) fn holds_with(&mut self, majors: Majors) -> Result<Option<bool>, Unavailable> {
        if self.world.packages.may_have_met() {
            return Ok(None);
        }
        // Edges depend on how many majors there may be, and are made again; what was read is not.
        let before = self.world.allowed_majors();
        self.world.change_majors_limit(majors);
        let holds = self.holds()?;
        self.world.change_majors_limit(before);
        Ok(Some(holds))
    }

    /// Searches for the newest versions that meet `roots` and are in all of `sets`.
    pub(super) fn search(
        &mut self,
        roots: Vec<RootRequirer>,
        sets: &[(PackageIndex, PositionSet)],
    ) -> Result<Verdict, Unavailable> {
        // Ends: each round but the last takes versions out of `sets`, and none comes back.
        let mut sets = sets.to_vec();
        loop {
            self.leave_out_refused(&mut sets);
            let verdict = self.search_in(roots.clone(), &sets)?;
            // The search may have read the manifest that rules out what it chose.
            if !self.leave_out_refused(&mut sets) {
                return Ok(verdict);
            }
        }
    }

    /// Removes the versions that their manifests rule out, as far as they were read; returns whether there were any.
    fn leave_out_refused(&self, sets: &mut [(PackageIndex, PositionSet)]) -> bool {
        let mut were_any = false;
        for (place, set) in sets {
            let refused = self.world.package(*place).refused_in(set);
            were_any |= !refused.is_empty();
            *set = set.without(&refused);
        }
        were_any
    }

    fn search_in(
        &mut self,
        roots: Vec<RootRequirer>,
        sets: &[(PackageIndex, PositionSet)],
    ) -> Result<Verdict, Unavailable> {
        let world = &mut self.world;
        world.ask(roots);
        look_ahead(world)?;
        if !sets.is_empty() {
            let mut edges = world.root_edges()?;
            edges.extend(sets.iter().map(|(place, set)| world.edge_to(*place, set.clone())));
            // The root needs all that it needs, and in addition something of each set.
            world.narrow_root(edges);
        }
        // What is asked for is that the newest of the set is found, not what an earlier trial had.
        for (place, _) in sets {
            world.packages.known[place.0].suggest_releases(&[]);
        }
        let before = world.budget.search_steps();
        // A fraction of what is left: a search without an end costs a third, and those after it still have steps.
        let answer = search::solve(world, self.steps / SHARE)?;
        self.steps = self.steps.saturating_sub(world.budget.search_steps() - before);
        if let Verdict::Chosen(choices) = &answer {
            self.suggest(choices);
        }
        Ok(answer)
    }

    /// Has later searches first try the releases that were chosen, unless another way to them could lead elsewhere.
    fn suggest(&mut self, choices: &Choices) {
        let mut suggested: FxHashMap<PackageId, Vec<Position>> = FxHashMap::default();
        if self.world.packages.may_have_met() {
            return self.world.packages.suggest(suggested);
        }
        for (&node, &position) in choices.iter() {
            let NodeKind::Versions(MajorLine { place, .. }) = self.world.kind(node) else {
                continue;
            };
            let package = self.world.package(*place);
            // The number of a revision is that of this world: in another one it may be another revision.
            if position < package.releases.len() {
                suggested.entry(package.id.clone()).or_default().push(position);
            }
        }
        self.world.packages.suggest(suggested);
    }

    /// The lowest versions that `roots` need, and what prevents them, if something does.
    pub(super) fn build(
        &mut self,
        roots: Vec<RootRequirer>,
    ) -> Result<(BuildList, Option<Conflict>), Unavailable> {
        self.world.ask(roots);
        // Without steps, nothing is known to help; a conflict about nothing says so.
        if self.steps == 0 {
            return Ok((BuildList::default(), Some(Conflict::default())));
        }
        let list = replaced::build(&mut self.world, &[])?;
        self.steps = self.steps.saturating_sub(list.visits.len());
        if let Some(conflict) = check::first_violation(&mut self.world, &list)? {
            return Ok((list, Some(conflict)));
        }
        match providers::complete_providers(&mut self.world, &[]) {
            Ok(list) => Ok((list, None)),
            Err(Failure::Conflict(conflict)) => Ok((list, Some(*conflict))),
            Err(Failure::Unfinished(_)) => {
                self.steps = 0;
                Ok((list, Some(Conflict::default())))
            }
            Err(Failure::Unavailable(error)) => Err(error),
        }
    }

    /// Why the requirements of the request cannot be met; `None` if they can, or if it takes too long to
    /// tell.
    pub(super) fn conflict(&mut self) -> Result<Option<Conflict>, Unavailable> {
        let roots = self.world.request().roots.clone();
        if self.is_minimal {
            return match self.build(roots)?.1 {
                Some(conflict) if self.steps > 0 => {
                    minimal::smallest_conflict(&mut self.world, conflict).map(Some)
                }
                _ => Ok(None),
            };
        }
        Ok(match self.search(roots, &[])? {
            Verdict::Refuted(proof) => Some(diagnose::conflict(&mut self.world, &proof)?),
            Verdict::Chosen(_) | Verdict::GivenUp => None,
        })
    }

    /// The candidate that a search chose for `requirement`.
    pub(super) fn chosen(
        &mut self,
        choices: &Choices,
        requirement: &Requirement,
    ) -> Result<Option<(PackageIndex, Position)>, Unavailable> {
        let Some(edge) = self.world.edge(requirement)? else { return Ok(None) };
        self.world.reached(edge, &|node| choices.get(&node).copied())
    }

    /// The candidate within `set` that a search chose for the package at `place`.
    pub(super) fn chosen_in(
        &mut self,
        choices: &Choices,
        place: PackageIndex,
        set: &PositionSet,
    ) -> Result<Option<Position>, Unavailable> {
        let edge = self.world.edge_to(place, set.clone());
        let reached = self.world.reached(edge, &|node| choices.get(&node).copied())?;
        Ok(reached.map(|(_, position)| position))
    }

    /// The version that a build list has of a package, the highest if there are several.
    pub(super) fn built_of(&self, list: &BuildList, id: &PackageId) -> Option<String> {
        let mut chosen = list.positions().into_iter().rev();
        let (line, position) = chosen.find(|(line, _)| self.world.package(line.place).id == *id)?;
        Some(self.world.package(line.place).candidate_label(position))
    }
}
