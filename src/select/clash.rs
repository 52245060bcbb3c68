//! What there is to say of a package of which no version is left: what it has, and what the rules took out.

use std::collections::BTreeMap;

use pubgrub::VersionSet;

use crate::index::releases::Position;
use crate::select::candidates::Candidates;
use crate::select::conflict::Clash;
use crate::select::filters::Rejection;
use crate::select::fold::Versions;
use crate::select::positions::PositionSet;
use crate::select::world::World;

/// Describes the package at `place`, of which `asked` leaves nothing; `wanted` is what would do if no rule took anything
/// out.
pub(super) fn describe(
    world: &World<'_>,
    place: usize,
    asked: Vec<Vec<String>>,
    wanted: &PositionSet,
) -> Clash {
    let package = world.package(place);
    let releases = package.releases();
    let available = package.allowed().intersection(&PositionSet::between(0, releases.len()));
    let all = PositionSet::between(0, package.count());
    let barred = wanted.without(package.allowed()).intersection(&all);
    let tried = releases.tried().map(<[String]>::to_vec);
    let mut prereleases = available.iter().map(|at| releases.version(at).is_prerelease());
    Clash {
        id: package.id().clone(),
        asked,
        needed: None,
        similar: tried.iter().flat_map(|_| world.universe().similar(package.id())).collect(),
        tried,
        available: Versions::fold(package, &available),
        only_prereleases: prereleases.all(|is_prerelease| is_prerelease),
        rejected: rejections(world, package, &barred),
    }
}

/// Why versions are no candidates, those with the same reason together.
fn rejections(
    world: &World<'_>,
    package: &Candidates,
    barred: &PositionSet,
) -> Vec<(Rejection, Versions)> {
    let mut by_reason: BTreeMap<Rejection, Vec<Position>> = BTreeMap::new();
    for position in barred.iter() {
        if let Some(rejection) = package.rejection(&world.request().settings, position) {
            by_reason.entry(rejection).or_default().push(position);
        }
    }
    by_reason
        .into_iter()
        .map(|(rejection, positions)| {
            (rejection, Versions::fold(package, &positions.into_iter().collect()))
        })
        .collect()
}
