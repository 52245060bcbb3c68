//! From a version that would work to what the roots should require, written like their current requirements.

use mu_manifest::reference::VersionSpec;
use pubgrub::VersionSet as _;

use crate::clash::three_numbers;
use crate::conflict::Ask;
use crate::minimal::requirements::{compatible, spec_with_minimum};
use crate::node::PackageIndex;
use crate::releases::Position;
use crate::universe::{Requirement, Unavailable};
use crate::world::World;
use crate::{RootRequirer, SelectionRequest};

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
