//! Ways out of conflicts of the minimal strategy, which come from broken bounds: raising a package further up
//! often brings wider bounds.

use mu_manifest::reference::{PackageId, VersionSpec};
use pubgrub::VersionSet as _;

use crate::SelectionRequest;
use crate::conflict::{Ask, Conflict, Fact, Requirer, WayOut};
use crate::minimal::build::{BuildList, lowest_candidate};
use crate::minimal::requirements::spec_with_minimum;
use crate::node::PackageIndex;
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::Verdict;
use crate::trial::Trial;
use crate::universe::{Requirement, Unavailable};
use crate::ways_out::asks::Goal;
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
