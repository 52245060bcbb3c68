//! Why a package is not at a newer version: which requirement, rule or dependency prevents each one.
//!
//! Requirements and rules are looked up; only versions that neither prevents are tried.

use mu_manifest::reference::{PackageId, Version, VersionSpec};
use pubgrub::VersionSet as _;

use crate::clash::FoldedVersions;
use crate::conflict::{Conflict, Fact, Requirer};
use crate::filters::Rejection;
use crate::minimal::build::lowest_candidate;
use crate::node::PackageIndex;
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::Verdict;
use crate::trial::Trial;
use crate::universe::{Requirement, Unavailable, Universe};
use crate::{Passed, RootRequirer, SelectionRequest, Strategy, diagnose};

/// Versions above the chosen one, and what prevents them.
#[derive(Debug, Clone, PartialEq)]
pub struct Newer {
    /// The versions.
    pub versions: FoldedVersions,
    /// The newest of them.
    pub newest: String,
    /// What prevents them.
    pub obstacle: Obstacle,
}

/// What prevents a version.
#[derive(Debug, Clone, PartialEq)]
pub enum Obstacle {
    /// A rule excludes it.
    Rule(Rejection),
    /// Others come before it: those of another channel, or those that are not deprecated.
    Passed(Passed),
    /// These requirements do not accept it: what requires the package, and the spec.
    Asked(Vec<(String, String)>),
    /// Its dependencies or dependents do not fit with the rest.
    Conflict(Box<Conflict>),
    /// Nothing prevents it: it would fit.
    Nothing,
    /// Nothing requires it, and the strategy moves nothing without a requirement.
    NotAsked,
    /// It was not tried, or that took too long.
    Unknown,
}

/// The display name of something that requires the package, and the spec.
pub type RequirementByRequirer = (String, Requirement);

/// One world in which many packages can be examined.
pub struct Ceiling<'a> {
    trial: Trial<'a>,
    request: &'a SelectionRequest,
    /// Whether versions that no requirement prevents are tried.
    tries: bool,
}

impl<'a> Ceiling<'a> {
    /// Examines what `strategy` could choose for a request.
    pub fn new(
        universe: &'a dyn Universe,
        request: &'a SelectionRequest,
        strategy: &dyn Strategy,
    ) -> Self {
        Self { trial: Trial::new(universe, request, 0), request, tries: strategy.follows_lock() }
    }

    /// The lowest version that a requirement accepts.
    ///
    /// # Errors
    ///
    /// When it could not be looked up.
    pub fn lowest_version(
        &mut self,
        requirement: &Requirement,
    ) -> Result<Option<String>, Unavailable> {
        let found = lowest_candidate(&mut self.trial.world, requirement)?;
        Ok(found.map(|(place, position)| self.trial.world.package(place).candidate_label(position)))
    }

    /// What prevents each release of `id` above `current`, the newest first. Prereleases count only if `current` is one.
    /// `None` if the package does not exist.
    ///
    /// # Errors
    ///
    /// When it could not be looked up.
    pub fn newer(
        &mut self,
        id: &PackageId,
        current: &Version,
        asking: &[RequirementByRequirer],
    ) -> Result<Option<Vec<Newer>>, Unavailable> {
        let any = Requirement::new(id.clone(), VersionSpec::Latest);
        let (place, _) = self.trial.world.accepted(&any)?;
        if self.trial.world.package(place).releases.tried().is_some() {
            return Ok(None);
        }
        // What each requirement would take if no rule excluded it. So a version that both a rule and a requirement
        // prevent is told as one that the requirement prevents: lifting the rule would not help.
        let mut accepted = Vec::new();
        for (by, requirement) in asking {
            let matching = self.trial.world.packages.matching(place, requirement)?;
            accepted.push((by.clone(), requirement.to_string(), matching));
        }
        let package = self.trial.world.package(place);
        let releases = &package.releases;
        let above = (0..releases.len()).filter(|&at| {
            let version = releases.version(at);
            version > *current && (current.is_prerelease() || releases.is_offered(at))
        });
        // Each version above gets the first obstacle that stands in its way, the cheap ones first: a requirement that does not accept
        // it, a rule of the settings, a channel that passes it over. Versions with the same obstacle are one row of the answer.
        let open = if self.tries { Obstacle::Unknown } else { Obstacle::NotAsked };
        let mut found: Vec<(Obstacle, Vec<Position>)> = Vec::new();
        let own = releases.position_of_version(current);
        for position in above {
            let against = accepted.iter().filter(|(_, _, set)| !set.holds(position));
            let against: Vec<_> =
                against.map(|(by, asked, _)| (by.clone(), asked.clone())).collect();
            let rule = || package.rejection(&self.request.settings, position).map(Obstacle::Rule);
            let passed = || package.passed(position, own?).map(Obstacle::Passed);
            let obstacle = match against.is_empty() {
                true => rule().or_else(passed).unwrap_or_else(|| open.clone()),
                false => Obstacle::Asked(against),
            };
            match found.iter_mut().find(|(known, _)| *known == obstacle) {
                Some((_, positions)) => positions.push(position),
                None => found.push((obstacle, vec![position])),
            }
        }
        // For what nothing of that stops, only a search knows. It is tried for the newest of these alone: it is the one that the
        // user asks about, and each search may take as long as a whole `mu update`.
        let open = found.iter_mut().find(|(obstacle, _)| *obstacle == Obstacle::Unknown);
        if let Some((obstacle, positions)) = open
            && let Some(&newest) = positions.last()
        {
            *obstacle = self.try_it(id, place, newest)?;
        }
        found.sort_by_key(|(_, positions)| std::cmp::Reverse(positions.last().copied()));
        let package = self.trial.world.package(place);
        let newer = found.into_iter();
        let newer = newer.map(|(obstacle, positions)| Newer {
            newest: positions.last().map(|&at| package.candidate_label(at)).unwrap_or_default(),
            versions: FoldedVersions::fold_candidates(package, &positions.into_iter().collect()),
            obstacle,
        });
        Ok(Some(newer.collect()))
    }

    /// The result of choosing one version.
    fn try_it(
        &mut self,
        id: &PackageId,
        place: PackageIndex,
        position: Position,
    ) -> Result<Obstacle, Unavailable> {
        let roots: Vec<RootRequirer> = self.request.roots.clone();
        let one = PositionSet::singleton(position);
        let proof = match self.trial.search(roots, &[(place, one)])? {
            Verdict::Chosen(_) => return Ok(Obstacle::Nothing),
            Verdict::Refuted(proof) => proof,
            Verdict::GivenUp => return Ok(Obstacle::Unknown),
        };
        // Of some, only the search has read that they cannot be used at all.
        let package = self.trial.world.package(place);
        if let Some(rule) = package.rejection(&self.request.settings, position) {
            return Ok(Obstacle::Rule(rule));
        }
        let mut conflict = diagnose::conflict(&mut self.trial.world, &proof)?;
        // No manifest requires this choice.
        conflict.facts.retain(|fact| match fact {
            Fact::Requires { by: Requirer::Roots(names), id: of, .. } => {
                !names.is_empty() || of != id
            }
            _ => true,
        });
        Ok(Obstacle::Conflict(Box::new(conflict)))
    }
}

impl std::fmt::Debug for Ceiling<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ceiling").finish_non_exhaustive()
    }
}
