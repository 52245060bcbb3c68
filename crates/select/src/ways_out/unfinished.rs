//! Ways on after a stopped search: the other strategy, and pins of the packages that the search came back to
//! most often, which leave less to choose. Each was tried, in fewer steps than the search was stopped after.

use mu_manifest::reference::{PackageId, VersionSpec};
use pubgrub::VersionSet as _;

use crate::SelectionRequest;
use crate::conflict::{Ask, WayOut};
use crate::effort::Unfinished;
use crate::minimal::build::BuildList;
use crate::minimal::select::without_lock;
use crate::search::Verdict;
use crate::trial::Trial;
use crate::universe::{Requirement, Unavailable, Universe};
use crate::ways_out::asks::with;

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
