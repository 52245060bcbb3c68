//! Downgrades: lowers or drops whatever does not go with the lower version, and nothing else.
//!
//! This is Go's algorithm: a version that needs a version above the limit is excluded, and so is whatever
//! needs it. Each package of the build list goes to its next lower version that is not excluded, or is
//! dropped. A lower version may bring a package that was not there, but no package is raised. Because
//! requirements have upper bounds here, versions that break a bound are excluded too, one after the other,
//! until everything fits.

use std::collections::BTreeMap;

use mu_manifest::reference::PackageId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::conflict::{Conflict, Fact, Requirer};
use crate::minimal::build::{BuildList, By, Pick, is_higher, required};
use crate::minimal::check::{self, Flaw};
use crate::minimal::moves::{Idle, draft, selected};
use crate::minimal::{providers, replaced};
use crate::node::MajorLine;
use crate::releases::Position;
use crate::universe::{Unavailable, Universe};
use crate::world::World;
use crate::{
    Because, Change, Chosen, Demanded, Failure, Lowered, Origin, RootOrPackage, Selection,
};

/// Lowers `target` to its position, and everything that must be lowered with it.
///
/// # Errors
///
/// When the target conflicts with itself or with what stays, or something could not be looked up.
pub(super) fn lower_version(
    universe: &dyn Universe,
    world: &mut World<'_>,
    list: &BTreeMap<MajorLine, Position>,
    target: Pick,
) -> Result<Change, Failure> {
    let mut search = Downgrade::new(world, list, target)?;
    // Lower everything to what is not excluded, look at the result, exclude one more version that spoils it, and begin again.
    // This ends: each round but the last excludes a version that was not excluded before (`may_go`), and there are only as many
    // as the packages of the list have.
    loop {
        let kept = search.lower_all(world)?;
        let lowered = search.lowered(world, &kept);
        let draft = draft(world, kept, lowered, Idle::GoesBut(target.line))?;
        world.ask(draft.rewritten_request(world.request()).roots);
        let built = replaced::build(world, &[])?;
        if let Some(flaw) = check::flaw(world, &built)?
            && search.drop_for_flaw(world, &built, flaw)
        {
            continue;
        }
        let result = selected(draft, universe, world.request());
        let is_mended = match &result {
            Err(Failure::Conflict(conflict)) => search.drop_for_capability(world, &built, conflict),
            Err(Failure::Unavailable(_) | Failure::Unfinished(_)) => false,
            Ok(change) => search.drop_for_risen_provider(world, &built, &change.selection),
        };
        if !is_mended {
            return result;
        }
    }
}

/// Why a version is excluded.
#[derive(Debug, Clone)]
enum Reason {
    Needs(Pick),
    Told(Because),
}

#[derive(Debug)]
struct Downgrade<'l> {
    list: &'l BTreeMap<MajorLine, Position>,
    /// For each package that was there, the version that it must not exceed.
    most: BTreeMap<MajorLine, Position>,
    added: FxHashSet<Pick>,
    excluded: FxHashSet<Pick>,
    dependents: FxHashMap<Pick, Vec<Pick>>,
    because: FxHashMap<Pick, Reason>,
    target: MajorLine,
    /// The target and its dependencies, which stay at their versions.
    fixed: FxHashSet<MajorLine>,
    /// The build list before, with all providers that it needs, if everything fit. Without it, something was wrong already: then
    /// only what this downgrade has moved is blamed for a flaw ([`Self::is_suspect`]), so that it does not go on to drop what has
    /// nothing to do with it.
    before: Option<BTreeMap<MajorLine, Position>>,
}

impl<'l> Downgrade<'l> {
    fn new(
        world: &mut World<'_>,
        list: &'l BTreeMap<MajorLine, Position>,
        target: Pick,
    ) -> Result<Self, Failure> {
        // Before anything is changed: the world is asked for other roots from the first round on.
        let before = providers::try_complete_providers(world, &[])?.map(|list| list.positions());
        let mut most = list.clone();
        most.insert(target.line, target.position);
        let mut fixed = FxHashSet::from_iter([target.line]);
        // The target brings its dependencies, which stay with it.
        let mut seen = FxHashSet::from_iter([target]);
        let mut open = vec![target];
        while let Some(pick) = open.pop() {
            for lowest in required(world, pick)? {
                if !list.contains_key(&lowest.line) && seen.insert(lowest) {
                    fixed.insert(lowest.line);
                    open.push(lowest);
                }
            }
        }
        Ok(Self {
            list,
            most,
            added: FxHashSet::default(),
            excluded: FxHashSet::default(),
            dependents: FxHashMap::default(),
            because: FxHashMap::default(),
            target: target.line,
            fixed,
            before,
        })
    }

    /// The new version of each package of the list; packages that are not in it are dropped.
    fn lower_all(
        &mut self,
        world: &mut World<'_>,
    ) -> Result<BTreeMap<MajorLine, Position>, Unavailable> {
        let mut kept = BTreeMap::new();
        for (&line, &chosen) in self.list {
            let mut pick = Pick { line, position: chosen };
            self.add(world, pick)?;
            while self.excluded.contains(&pick) {
                let Some(lower) = self.lower(world, pick) else { break };
                pick.position = lower;
                self.add(world, pick)?;
            }
            if !self.excluded.contains(&pick) {
                kept.insert(line, pick.position);
            }
        }
        Ok(kept)
    }

    /// Checks a version and everything that it needs, and excludes what cannot stay.
    fn add(&mut self, world: &mut World<'_>, pick: Pick) -> Result<(), Unavailable> {
        let mut open = vec![pick];
        while let Some(pick) = open.pop() {
            if !self.added.insert(pick) {
                continue;
            }
            let Pick { line, position } = pick;
            let most = self.most.get(&line);
            if most.is_some_and(|&most| is_higher(world.package(line.place), position, most)) {
                self.exclude(pick);
                continue;
            }
            let required = required(world, pick)?;
            if world.package(line.place).is_refused(position) {
                self.exclude(pick);
                continue;
            }
            for needed in required {
                self.dependents.entry(needed).or_default().push(pick);
                if self.excluded.contains(&needed) {
                    self.because.entry(pick).or_insert(Reason::Needs(needed));
                    self.exclude(pick);
                }
                open.push(needed);
            }
        }
        Ok(())
    }

    fn exclude(&mut self, pick: Pick) {
        let mut open = vec![pick];
        while let Some(pick) = open.pop() {
            if !self.excluded.insert(pick) {
                continue;
            }
            for &dependent in self.dependents.get(&pick).into_iter().flatten() {
                self.because.entry(dependent).or_insert(Reason::Needs(pick));
                open.push(dependent);
            }
        }
    }

    /// The next lower candidate that is a release and not above the limit.
    fn lower(&self, world: &World<'_>, pick: Pick) -> Option<Position> {
        let Pick { line: MajorLine { place, .. }, position } = pick;
        let package = world.package(place);
        let limit = match self.most.get(&pick.line) {
            // A version that the command names may be yanked.
            Some(&most) if pick.line == self.target && is_higher(package, position, most) => {
                return Some(most);
            }
            Some(&most) if is_higher(package, position, most) => most + 1,
            _ => position.min(package.releases.len()),
        };
        let lower = package.allowed.last_below(limit)?;
        (world.line(place, lower) == pick.line).then_some(lower)
    }

    /// Excludes a version that causes this flaw; returns whether there was one to exclude.
    ///
    /// A package with an unmet requirement goes, unless it must stay; then the package that it requires goes.
    fn drop_for_flaw(&mut self, world: &World<'_>, built: &BuildList, flaw: Flaw) -> bool {
        let (by, requirement, of) = match flaw {
            Flaw::Unmet(by, requirement) => (by, requirement, None),
            Flaw::Broken(by, requirement, line) => (by, requirement, Some(line)),
            // No lower version can be reached by an upgrade.
            Flaw::Refused(..) => return false,
        };
        let of = of.and_then(|line| Some(Pick { line, position: built.position(line)? }));
        let (asker, name) = match by {
            By::Visit(visit) => {
                let line = built.chosen.iter().find(|&(_, &chosen)| chosen == visit);
                let asker =
                    line.map(|(&line, _)| Pick { line, position: built.visits[visit].position });
                (asker, asker.map(|asker| name(world, asker)))
            }
            By::Root(root) => (None, Some(world.roots[root].by.clone())),
            By::Command | By::Capability(_) => (None, None),
        };
        if !asker.into_iter().chain(of).any(|pick| self.is_suspect(pick)) {
            return false;
        }
        match (asker, of) {
            (Some(asker), _) if self.may_go(asker) => {
                self.drop(asker, Because::Asks(requirement));
            }
            (_, Some(of)) if self.may_go(of) => {
                self.drop(of, Because::Asked(name.unwrap_or_default(), requirement));
            }
            _ => return false,
        }
        true
    }

    /// Excludes a version that requires a capability without a provider, provides one that has two, or
    /// conflicts with another version; returns whether there was one to exclude. If there are several, one
    /// that was lowered goes first.
    fn drop_for_capability(
        &mut self,
        world: &World<'_>,
        built: &BuildList,
        conflict: &Conflict,
    ) -> bool {
        let [clash, ..] = &conflict.capabilities[..] else {
            let involved = check::involved(conflict);
            let because = |id: &PackageId| {
                let other = involved.iter().find(|other| *other != id).unwrap_or(id);
                Because::Conflicts(other.clone())
            };
            return self.drop_one_of(world, built, involved.iter(), &because);
        };
        let involved = conflict.facts.iter().filter_map(|fact| match fact {
            Fact::RequiresCapability { by: Requirer::Package(id, _), capability }
            | Fact::Provides { by: Requirer::Package(id, _), capability }
                if *capability == clash.capability =>
            {
                Some(id)
            }
            _ => None,
        });
        let because = |_: &PackageId| Because::Capability(clash.capability.clone());
        self.drop_one_of(world, built, involved, &because)
    }

    /// Excludes a version that requires a capability whose provider came in above the limit because others
    /// went; returns whether there was one to exclude.
    fn drop_for_risen_provider(
        &mut self,
        world: &World<'_>,
        built: &BuildList,
        selection: &Selection,
    ) -> bool {
        let Some(mut most) = self.before.clone() else { return false };
        most.extend(&self.most);
        let is_above = |chosen: &Chosen| {
            let Origin::Release(position) = chosen.origin else { return false };
            let mut own = most.iter().filter(|(line, _)| world.package(line.place).id == chosen.id);
            let was_there = own.clone().next().is_some();
            was_there
                && own.all(|(line, &most)| is_higher(world.package(line.place), position, most))
        };
        for chosen in selection.packages.iter().filter(|chosen| is_above(chosen)) {
            for demand in &chosen.requested {
                if let Demanded::Capability(capability) = &demand.what
                    && let RootOrPackage::Package(by) = &demand.by
                    && self.drop_one_of(world, built, [by].into_iter(), &|_| {
                        Because::Capability(capability.clone())
                    })
                {
                    return true;
                }
            }
        }
        false
    }

    /// Excludes the chosen version of one of these packages, if one may be excluded.
    fn drop_one_of<'i>(
        &mut self,
        world: &World<'_>,
        built: &BuildList,
        ids: impl Iterator<Item = &'i PackageId>,
        because: &dyn Fn(&PackageId) -> Because,
    ) -> bool {
        let picks = ids.filter_map(|id| {
            let is_it = |line: &MajorLine| world.package(line.place).id == *id;
            let (&line, _) = built.chosen.iter().find(|(line, _)| is_it(line))?;
            Some(Pick { line, position: built.position(line)? })
        });
        let mut picks: Vec<Pick> =
            picks.filter(|&one| self.may_go(one) && self.is_suspect(one)).collect();
        picks.sort_by_key(|&pick| !self.is_moved(pick));
        let Some(&pick) = picks.first() else { return false };
        self.drop(pick, because(&world.package(pick.line.place).id));
        true
    }

    /// Whether a version of the list may be excluded to make room.
    fn may_go(&self, pick: Pick) -> bool {
        !self.fixed.contains(&pick.line) && !self.excluded.contains(&pick)
    }

    fn is_moved(&self, pick: Pick) -> bool {
        self.list.get(&pick.line) != Some(&pick.position)
    }

    /// Whether this downgrade may have caused a flaw that did not exist before.
    fn is_suspect(&self, pick: Pick) -> bool {
        self.before.is_some() || self.is_moved(pick)
    }

    fn drop(&mut self, pick: Pick, because: Because) {
        self.because.entry(pick).or_insert(Reason::Told(because));
        self.exclude(pick);
    }

    /// What is lowered or dropped, except the target.
    fn lowered(&self, world: &World<'_>, kept: &BTreeMap<MajorLine, Position>) -> Vec<Lowered> {
        let label = |line: MajorLine, at| world.package(line.place).candidate_label(at);
        let mut lowered = Vec::new();
        for (&line, &from) in self.list {
            let to = kept.get(&line);
            if line == self.target || to == Some(&from) {
                continue;
            }
            let because =
                self.because.get(&Pick { line, position: from }).map(|reason| match reason {
                    Reason::Told(because) => because.clone(),
                    Reason::Needs(needed) => Because::Needs(
                        world.package(needed.line.place).id.clone(),
                        label(needed.line, needed.position),
                    ),
                });
            lowered.push(Lowered {
                id: world.package(line.place).id.clone(),
                from: label(line, from),
                to: to.map(|&to| label(line, to)),
                because,
            });
        }
        lowered
    }
}

/// A version as text.
fn name(world: &World<'_>, pick: Pick) -> String {
    let package = world.package(pick.line.place);
    format!("{} {}", package.id, package.candidate_label(pick.position))
}
