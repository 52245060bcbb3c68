//! Finds what would help against a conflict, by trying: other requirements, fewer rules, the other strategy;
//! and if nothing helps alone, a rule and one thing more.
//!
//! Candidates are tried in the order of how much they change for the user, and the search ends with the third
//! that works. All trials share one bounded number of steps, so a hard conflict is reported with fewer ways
//! out, not later.

mod of_strategies;
mod reach;
mod rules;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use mu_manifest::reference::{PackageId, VersionSpec};
use pubgrub::VersionSet;

use crate::candidates::Candidates;
use crate::conflict::{Ask, Conflict, Fact, Requirer, WayOut};
use crate::minimal::without_lock;
use crate::node::PackageIndex;
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::Verdict;
use crate::trial::Trial;
use crate::universe::{Requirement, Unavailable, Universe};
use crate::{Failure, RootRequirer, SelectionRequest, clash};

use self::reach::{Goal, WishCandidates, with};
use self::rules::taking;

/// The most ways out that are searched.
const MOST: usize = 3;
/// The most requirements of the user that are tried one by one.
const WISHES: usize = 8;
/// The most requests that are tried in separate worlds.
const TRIALS: usize = 40;

/// The ways out of a conflict of the default strategy.
pub(super) fn of_highest(
    universe: &dyn Universe,
    request: &SelectionRequest,
    failure: &Failure,
) -> Vec<WayOut> {
    match failure {
        Failure::Conflict(conflict) => {
            let trial = Trial::new(universe, request, conflict.statistics.versions_read);
            let mut finder = Finder::new(request, conflict, trial);
            // If something cannot be looked up, no way out can be proposed from it.
            let _ = finder.look();
            fewest_first(finder.ways)
        }
        Failure::Unfinished(unfinished) => {
            of_strategies::on_from_highest(universe, request, unfinished)
        }
        Failure::Unavailable(_) => Vec::new(),
    }
}

/// The ways out of a conflict of the minimal strategy.
pub(super) fn of_minimal(
    universe: &dyn Universe,
    original: &SelectionRequest,
    failure: &Failure,
) -> Vec<WayOut> {
    match failure {
        Failure::Conflict(conflict) => {
            let request = without_lock(original);
            let trial = Trial::minimal(universe, &request, conflict.statistics.versions_read);
            let mut finder = Finder::new(&request, conflict, trial);
            let _ = finder.look_minimal(original);
            fewest_first(finder.ways)
        }
        Failure::Unfinished(unfinished) => {
            of_strategies::on_from_minimal(universe, original, unfinished)
        }
        Failure::Unavailable(_) => Vec::new(),
    }
}

struct Finder<'a> {
    request: &'a SelectionRequest,
    conflict: &'a Conflict,
    trial: Trial<'a>,
    /// Whether this searches what else is needed after a rule was lifted.
    is_second_step: bool,
    ways: Vec<WayOut>,
    /// How many more requests may be tried in separate worlds.
    trials: usize,
}

impl<'a> Finder<'a> {
    fn new(request: &'a SelectionRequest, conflict: &'a Conflict, trial: Trial<'a>) -> Self {
        let ways = Vec::new();
        Self { request, conflict, trial, is_second_step: false, ways, trials: TRIALS }
    }

    /// Looks for single changes that help.
    fn look_once(&mut self) -> Result<(), Unavailable> {
        if self.trial.is_minimal { self.look_minimal(self.request) } else { self.look() }
    }

    fn look(&mut self) -> Result<(), Unavailable> {
        let wishes = wishes(self.request, self.conflict);
        let mut stuck = Vec::new();
        // From what changes least to what changes most. `wishes` are requirements of the user that the conflict names;
        // `stuck` are those that cannot be met by a newer version either, and are lowered at last.
        self.use_copies()?;
        self.take_places()?;
        for wish in &wishes {
            self.loosen(wish)?;
        }
        self.provide()?;
        for wish in &wishes {
            if !self.is_done() && !self.raise(wish)? {
                stuck.push(wish);
            }
        }
        self.look_further(&wishes, stuck)
    }

    /// Tries bigger changes, or those further from the user's intent: fewer rules, older versions of what is
    /// `stuck`, several requirements at once, a version against its requirements.
    fn look_further(
        &mut self,
        wishes: &[Requirement],
        stuck: Vec<&Requirement>,
    ) -> Result<(), Unavailable> {
        let is_raised = stuck.len() < wishes.len();
        // The order is the policy: a rule that the user set before an older version, an older version before forgetting
        // what is installed. Each step does nothing once there are enough ways out.
        self.lift_rules(false)?;
        for wish in stuck {
            if !self.is_done() {
                self.lower(wish)?;
            }
        }
        self.lift_rules(true)?;
        self.try_dropping(wishes)?;
        // No single requirement was enough, so several are raised at once.
        if !is_raised && !self.is_done() {
            self.relax(wishes, true)?;
        }
        // Nothing helped at all: now they may be raised or lowered, each as it comes.
        if self.ways.is_empty() && !self.is_second_step {
            self.relax(wishes, false)?;
        }
        self.allow_majors()?;
        self.look_for_pairs()?;
        self.take_withdrawn(wishes)?;
        if self.is_second_step { Ok(()) } else { self.force() }
    }

    fn is_done(&self) -> bool {
        self.ways.len() >= MOST
    }

    /// Adds a way out, unless it is known already.
    fn add(&mut self, way_out: WayOut) {
        if !self.is_done() && !self.ways.contains(&way_out) {
            self.ways.push(way_out);
        }
    }

    /// Tries prereleases and other channels, if those are missing.
    fn loosen(&mut self, wish: &Requirement) -> Result<(), Unavailable> {
        if !self.conflict.clashes.iter().any(|clash| clash.id == wish.id) {
            return Ok(());
        }
        let (_, now) = self.trial.world.accepted(wish)?;
        // One thing at a time, so that the answer names what was missing: `a ^1` fails, and with prereleases it does
        // not.
        let looser = [
            Requirement { prerelease: true, ..wish.clone() },
            Requirement { channel: None, ..wish.clone() },
            Requirement { app_version: None, ..wish.clone() },
        ];
        for looser in looser.into_iter().filter(|looser| looser != wish) {
            let (place, all) = self.trial.world.accepted(&looser)?;
            // Only what the looser form adds: the rest was found not to fit.
            let set = all.without(&now);
            if self.is_done() || set.is_empty() {
                continue;
            }
            let Some(position) = self.try_set(wish, place, &set)? else { continue };
            let goal = Goal { wish: &looser, place, position };
            if let Some(asks) = goal.needed_asks(&mut self.trial.world)? {
                self.propose(asks)?;
            }
        }
        Ok(())
    }

    /// Tries newer versions than the wish accepts: those of the next major first.
    fn raise(&mut self, wish: &Requirement) -> Result<bool, Unavailable> {
        let reach = WishCandidates::from_wish(wish, &mut self.trial.world)?;
        let above = reach.releases_above(&self.trial.world);
        let WishCandidates { place, all, now, .. } = reach;
        // `1.28.0.0` is no version, and `1.28.0` is there: most likely that is meant.
        if let Some(meant) = meant(self.trial.world.package(place), wish)
            && self.try_asking(wish, place, &PositionSet::singleton(meant))?
        {
            return Ok(true);
        }
        let next = above.lowest_position();
        for position in nearest(self.trial.world.package(place), wish, &all, &now, next) {
            if self.try_asking(wish, place, &PositionSet::singleton(position))? {
                return Ok(true);
            }
        }
        let Some(next) = next else { return Ok(false) };
        let package = self.trial.world.package(place);
        let major = package.major(next);
        // A name is not near any version.
        let is_far = above == all;
        // A step to the next major is less to adapt to than one to the newest. Only if nothing of it fits are those
        // behind it tried.
        let is_near = |&at: &Position| is_far || package.major(at) == major;
        let near: PositionSet = above.iter().filter(is_near).collect();
        if self.try_asking(wish, place, &near)? {
            return Ok(true);
        }
        let far = above.without(&near);
        Ok(!far.is_empty() && self.try_asking(wish, place, &far)?)
    }

    /// Tries older versions than the wish accepts.
    fn lower(&mut self, wish: &Requirement) -> Result<bool, Unavailable> {
        let reach = WishCandidates::from_wish(wish, &mut self.trial.world)?;
        let (place, below) = (reach.place, reach.versions_below(&self.trial.world));
        // If the wish accepts nothing, the version just below it may be a typing error away. Otherwise the newest older
        // one that fits is found by one search.
        let nearest =
            below.highest_position().filter(|_| reach.now.is_empty()).map(PositionSet::singleton);
        if let Some(nearest) = nearest
            && self.try_asking(wish, place, &nearest)?
        {
            return Ok(true);
        }
        Ok(!below.is_empty() && self.try_asking(wish, place, &below)?)
    }

    /// Tries to choose something of `set`, and proposes to require it if that works.
    fn try_asking(
        &mut self,
        wish: &Requirement,
        place: PackageIndex,
        set: &PositionSet,
    ) -> Result<bool, Unavailable> {
        let Some(position) = self.try_set(wish, place, set)? else { return Ok(false) };
        match (Goal { wish, place, position }).needed_asks(&mut self.trial.world)? {
            Some(asks) => self.propose(asks),
            None => Ok(false),
        }
    }

    /// The candidate within `set` that is chosen without the wish; if that does not help, without any
    /// requirement of its package.
    fn try_set(
        &mut self,
        wish: &Requirement,
        place: PackageIndex,
        set: &PositionSet,
    ) -> Result<Option<Position>, Unavailable> {
        let mut roots = self.request.roots.clone();
        let (_, now) = self.trial.world.accepted(wish)?;
        let mut asks_more = false;
        // All roots that ask for the same as the wish are left out with it. Others on the same package stay at first:
        // perhaps they accept the new version.
        for root in &mut roots {
            let mut kept = Vec::new();
            for requirement in std::mem::take(&mut root.requirements) {
                let is_on_it = requirement.id == wish.id;
                if is_on_it && self.trial.world.accepted(&requirement)?.1 == now {
                    continue;
                }
                asks_more |= is_on_it;
                kept.push(requirement);
            }
            root.requirements = kept;
        }
        let set = [(place, set.clone())];
        if let Verdict::Chosen(choices) = self.trial.search(roots, &set)? {
            return self.trial.chosen_in(&choices, place, &set[0].1);
        }
        if !asks_more {
            return Ok(None);
        }
        // They do not. Then all of them have to change, and `Goal` says how each.
        let roots = others(self.request, &BTreeSet::from([&wish.id]));
        let Verdict::Chosen(choices) = self.trial.search(roots, &set)? else { return Ok(None) };
        self.trial.chosen_in(&choices, place, &set[0].1)
    }

    /// Adds requirements as a way out, if they work; returns whether they do.
    fn propose(&mut self, asks: Vec<Ask>) -> Result<bool, Unavailable> {
        if self.trial.is_minimal && self.trial.build(with(self.request, &asks))?.1.is_some() {
            return Ok(false);
        }
        let way_out = WayOut::Ask(asks);
        // The world of the trials knows providers and replacements that a fresh run may never meet. So a new world has
        // the last word, if there are any.
        let may_have_met = !self.trial.is_minimal && self.trial.world.packages.may_have_met();
        if may_have_met && !self.holds(&taking(self.request, &way_out))? {
            return Ok(false);
        }
        self.add(way_out);
        Ok(true)
    }

    /// Tries to relax several requirements at once.
    fn relax(&mut self, wishes: &[Requirement], only_raise: bool) -> Result<(), Unavailable> {
        let asks = reach::asks_together(&mut self.trial, wishes, only_raise)?;
        if !asks.is_empty() {
            self.propose(asks)?;
        }
        Ok(())
    }
}

/// The ways out; those that change fewer requirements come before those that change more.
fn fewest_first(mut ways: Vec<WayOut>) -> Vec<WayOut> {
    let number = |way: &WayOut| match way {
        WayOut::Ask(asks) => Some(asks.len()),
        _ => None,
    };
    let mut sorted: Vec<WayOut> =
        ways.iter().filter(|way| number(way).is_some()).cloned().collect();
    sorted.sort_by_key(number);
    // Ways of other kinds stay where they are; only those that change requirements are sorted among themselves.
    let places = ways.iter_mut().filter(|way| number(way).is_some());
    for (place, way) in places.zip(sorted) {
        *place = way;
    }
    ways
}

/// The requirements of roots that the conflict names, first those on a package of which no version is left.
fn wishes(request: &SelectionRequest, conflict: &Conflict) -> Vec<Requirement> {
    let mut wishes: Vec<Requirement> = Vec::new();
    for fact in &conflict.facts {
        let Fact::Requires { by: Requirer::Roots(names), id, asked } = fact else { continue };
        let roots = request.roots.iter().filter(|root| names.contains(&root.by));
        for requirement in roots.flat_map(|root| &root.requirements) {
            let is_named = requirement.id == *id && asked.contains(&requirement.to_string());
            if is_named && !wishes.contains(requirement) {
                wishes.push(requirement.clone());
            }
        }
    }
    let clashing = |id: &PackageId| conflict.clashes.iter().any(|clash| clash.id == *id);
    wishes.sort_by_key(|wish| !clashing(&wish.id));
    wishes.truncate(WISHES);
    wishes
}

/// The requirements of the roots, except on some packages.
fn others(request: &SelectionRequest, without: &BTreeSet<&PackageId>) -> Vec<RootRequirer> {
    let mut roots = request.roots.clone();
    for root in &mut roots {
        root.requirements.retain(|requirement| !without.contains(&requirement.id));
    }
    roots
}

/// Whether the version that is required exactly is there, whether it can be used or not.
fn exists(package: &Candidates, wish: &Requirement) -> bool {
    let VersionSpec::Pin(pin) = &wish.spec else { return false };
    package.releases.position_of_version(&pin.version().clone().into()).is_some()
}

/// What is next to a wish that accepts nothing, and is more likely meant than the newest. Of a range, that is what is just below it in
/// its major, if what is `next` above it is in another one, which is further away.
fn nearest(
    package: &Candidates,
    wish: &Requirement,
    all: &PositionSet,
    now: &PositionSet,
    next: Option<Position>,
) -> Vec<Position> {
    if !now.is_empty() {
        return Vec::new();
    }
    // `a ^1.4` is required, and there are 1.3.9 and 2.0.0: the version just below is nearer than the next major.
    let below = all.last_below(next.unwrap_or(Position::MAX));
    if matches!(wish.spec, VersionSpec::Pin(_)) {
        // One that exists and cannot be used has other ways out, which come before lower versions.
        let below = below.filter(|_| !exists(package, wish));
        let mut near: Vec<Position> = next.into_iter().chain(below).collect();
        // Of two, the one with more of the same numbers; then the higher one.
        near.sort_by_key(|at| Reverse(same_numbers(package, wish, *at)));
        return near;
    }
    let named =
        clash::named_first(&wish.spec).filter(|_| matches!(wish.spec, VersionSpec::Range(_)));
    let is_of_major = |at: Position| {
        let version = package.version(at);
        named.as_ref().zip(version).is_some_and(|(named, one)| named.major() == one.major())
    };
    let is_far = next.is_some_and(|next| !is_of_major(next));
    below.filter(|at| is_far && is_of_major(*at)).into_iter().collect()
}

/// How many numbers of a version, from the first one, are those of the version that is required.
fn same_numbers(package: &Candidates, wish: &Requirement, position: Position) -> usize {
    let VersionSpec::Pin(pin) = &wish.spec else { return 0 };
    let numbers = |version: &semver::Version| [version.major, version.minor, version.patch];
    let Some(version) = package.version(position) else { return 0 };
    let Some(version) = version.as_semver().map(numbers) else { return 0 };
    let wanted = numbers(pin.version());
    version.iter().zip(wanted).take_while(|(one, other)| **one == *other).count()
}

/// The version that is meant by a text with more numbers than a version has.
fn meant(package: &Candidates, wish: &Requirement) -> Option<Position> {
    let three = clash::three_numbers(wish.spec.as_str())?;
    let position = clash::position_behind(package, &wish.spec)?.checked_sub(1)?;
    (package.candidate_label(position) == three).then_some(position)
}
