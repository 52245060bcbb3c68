//! Ways out that one strategy alone has. Conflicts of the minimal strategy come from broken bounds: raising a package further up
//! often brings wider bounds. A search of the other one may have been stopped: then, there is the other strategy, and pins of
//! the packages that the search came back to most often, which leave less to choose. Each was tried, in fewer steps than the
//! search was stopped after.

use mu_manifest::reference::{PackageId, VersionSpec};
use pubgrub::VersionSet as _;

use crate::SelectionRequest;
use crate::conflict::{Ask, Conflict, Fact, Requirer, WayOut};
use crate::effort::Unfinished;
use crate::minimal::build::{BuildList, lowest_candidate, spec_with_minimum};
use crate::minimal::without_lock;
use crate::node::PackageIndex;
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::Verdict;
use crate::trial::Trial;
use crate::universe::{Requirement, Unavailable, Universe};
use crate::ways_out::reach::{Goal, with};
use crate::ways_out::{Finder, wishes};

/// How many versions of a package are tried, from the next one up.
const TRIES: usize = 6;

impl Finder<'_> {
    /// `original` is the request with its lock, which the other strategy uses.
    pub(super) fn look_minimal(&mut self, original: &SelectionRequest) -> Result<(), Unavailable> {
        let wishes = wishes(self.request, self.conflict);
        for wish in &wishes {
            self.loosen(wish)?;
        }
        self.use_copies()?;
        self.provide()?;
        // The other strategy knows versions that fit together. Raising what clashes towards these is likely to help,
        // where trying one version after the other would take long.
        let cost = self.conflict.statistics.versions_read;
        let mut other = Trial::new(self.trial.world.universe(), original, cost);
        // The versions of the other strategy are targets for what is raised.
        let newest = match other.search(original.roots.clone(), &[])? {
            Verdict::Chosen(choices) => Some(choices),
            Verdict::Refuted(_) | Verdict::GivenUp => None,
        };
        let (list, _) = self.trial.build(self.request.roots.clone())?;
        let mut stuck = Vec::new();
        // Not only requirements of the user: a package that clashes in the middle of the graph can be raised by
        // requiring it.
        for id in named(self.conflict) {
            if self.is_done() {
                return Ok(());
            }
            let target = match &newest {
                Some(choices) => {
                    let any = Requirement::new(id.clone(), VersionSpec::Latest);
                    other.chosen(choices, &any)?.map(|(_, position)| position)
                }
                None => None,
            };
            let mut asked = wishes.iter().filter(|wish| wish.id == id).peekable();
            if asked.peek().is_none() {
                self.raise_lowest(&list, &id, None, target)?;
            }
            for wish in asked {
                if !self.is_done() && !self.raise_lowest(&list, &id, Some(wish), target)? {
                    stuck.push(wish);
                }
            }
        }
        if newest.is_some() {
            self.add(WayOut::Highest);
        }
        self.look_further(&wishes, stuck)
    }

    /// Tries to raise the lowest version of a package: to the next ones, then to `target`.
    fn raise_lowest(
        &mut self,
        list: &BuildList,
        id: &PackageId,
        wish: Option<&Requirement>,
        target: Option<Position>,
    ) -> Result<bool, Unavailable> {
        // All versions that the wish would accept if its version did not matter.
        let any = Requirement::new(id.clone(), VersionSpec::Latest);
        let any =
            wish.map_or(any, |wish| Requirement { spec: VersionSpec::Latest, ..wish.clone() });
        let (place, all) = self.trial.world.accepted(&any)?;
        let lowest = match wish {
            Some(wish) => {
                lowest_candidate(&mut self.trial.world, wish)?.map(|(_, position)| position)
            }
            None => all.lowest_position(),
        };
        // If the list has a version of the same line, that one counts.
        let built = |at| list.position(self.trial.world.line(place, at)).unwrap_or(at);
        let lowest = lowest.map(built);
        let Some(lowest) = lowest else {
            return match wish {
                Some(wish) => self.raise(wish),
                None => Ok(false),
            };
        };
        let above = all.intersection(&PositionSet::position_range(lowest + 1, Position::MAX));
        let mut tried: Vec<Position> = Vec::new();
        if let Some(wish) = wish
            && !self.trial.world.accepted(wish)?.1.holds(lowest)
        {
            // The minimum that others need may be all that is missing.
            tried.extend(Some(lowest).filter(|lowest| all.holds(*lowest)));
        }
        // The next versions first, because the minimal strategy is chosen by those who want to move little.
        tried.extend(above.iter().take(TRIES));
        tried.extend(target.filter(|target| above.holds(*target) && !tried.contains(target)));
        for position in tried {
            let asks = match wish {
                Some(wish) => Goal { wish, place, position }.lowest_asks(&mut self.trial.world)?,
                None => vec![self.new_ask(id, place, position)],
            };
            if self.propose(asks)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Requires a candidate as the minimum of a package that no root requires.
    fn new_ask(&self, id: &PackageId, place: PackageIndex, position: Position) -> Ask {
        let package = self.trial.world.package(place);
        let to = Requirement::new(id.clone(), spec_with_minimum(package, position, None));
        let by = self.request.roots.first().map(|root| root.by.clone()).unwrap_or_default();
        Ask { by, from: None, to, version: package.candidate_label(position) }
    }
}

/// The packages of the conflict, in the order of its lines; what clashes first.
fn named(conflict: &Conflict) -> Vec<PackageId> {
    let mut ids: Vec<PackageId> = Vec::new();
    let clashing = conflict.clashes.iter().map(|clash| &clash.id);
    let named = conflict.facts.iter().filter_map(|fact| match fact {
        Fact::Requires { by: Requirer::Package(by, _), .. }
        | Fact::RequiresCapability { by: Requirer::Package(by, _), .. }
        | Fact::Provides { by: Requirer::Package(by, _), .. } => Some(by),
        _ => None,
    });
    for id in clashing.chain(named) {
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    ids
}

/// All trials together may take this fraction (1/n) of the steps of the search.
const SHARE: usize = 8;

/// The ways on from a search of the default strategy.
pub(super) fn on_from_highest(
    universe: &dyn Universe,
    request: &SelectionRequest,
    unfinished: &Unfinished,
) -> Vec<WayOut> {
    let stripped = without_lock(request);
    let mut minimal = Trial::minimal(universe, &stripped, unfinished.steps / SHARE);
    // The minimal strategy does not search, so it most often has an answer. Its versions then serve as pins for the
    // search.
    let list = match minimal.build(stripped.roots.clone()) {
        Ok((list, None)) => Some(list),
        // If something cannot be looked up, no way on can be proposed from it.
        Ok((_, Some(_))) | Err(_) => None,
    };
    let pins = pins(universe, request, unfinished, list.as_ref().map(|list| (&minimal, list)));
    let way = list.as_ref().map(|_| WayOut::Minimal);
    pins.ok().flatten().into_iter().chain(way).collect()
}

/// The ways on from the minimal strategy's search for providers.
pub(super) fn on_from_minimal(
    universe: &dyn Universe,
    request: &SelectionRequest,
    unfinished: &Unfinished,
) -> Vec<WayOut> {
    let mut trial = Trial::new(universe, request, unfinished.steps / SHARE);
    match trial.search(request.roots.clone(), &[]) {
        Ok(Verdict::Chosen(_)) => vec![WayOut::Highest],
        Ok(Verdict::Refuted(_) | Verdict::GivenUp) | Err(_) => Vec::new(),
    }
}

/// The fewest pins with which the search finishes, of the first packages that it came back to: at the
/// versions of the other strategy if it has an answer, else at their newest versions.
fn pins(
    universe: &dyn Universe,
    request: &SelectionRequest,
    unfinished: &Unfinished,
    minimal: Option<(&Trial<'_>, &BuildList)>,
) -> Result<Option<WayOut>, Unavailable> {
    let mut trial = Trial::new(universe, request, unfinished.steps / SHARE);
    let mut asks: Vec<Ask> = Vec::new();
    // The package that the search came back to most often comes first. Each pin leaves less to choose, and they are
    // added until the search finishes.
    for id in &unfinished.packages {
        let version = match minimal {
            Some((minimal, list)) => minimal.built_of(list, id),
            None => newest(&mut trial, request, id)?,
        };
        let Some(version) = version else { continue };
        let Ok(spec) = VersionSpec::parse(&version) else { continue };
        let mut asked = Vec::new();
        for root in &request.roots {
            for from in root.requirements.iter().filter(|one| one.id == *id) {
                let to = Requirement { spec: spec.clone(), ..from.clone() };
                let (by, from, version) = (root.by.clone(), Some(from.clone()), version.clone());
                asked.push(Ask { by, from, to, version });
            }
        }
        // No root requires it: then the first one begins to.
        if asked.is_empty() {
            let Some(root) = request.roots.first() else { return Ok(None) };
            let (by, to) = (root.by.clone(), Requirement::new(id.clone(), spec));
            asked.push(Ask { by, from: None, to, version });
        }
        asks.extend(asked);
        if let Verdict::Chosen(_) = trial.search(with(request, &asks), &[])? {
            return Ok(Some(WayOut::Ask(asks)));
        }
    }
    Ok(None)
}

/// The newest version of a package that all requirements from outside accept.
fn newest(
    trial: &mut Trial<'_>,
    request: &SelectionRequest,
    id: &PackageId,
) -> Result<Option<String>, Unavailable> {
    let any = Requirement::new(id.clone(), VersionSpec::Latest);
    let (place, mut set) = trial.world.accepted(&any)?;
    for requirement in request.roots.iter().flat_map(|root| &root.requirements) {
        if requirement.id == *id {
            let (_, accepted) = trial.world.accepted(requirement)?;
            set = set.intersection(&accepted);
        }
    }
    let package = trial.world.package(place);
    Ok(package.newest(&set).map(|position| package.candidate_label(position)))
}
