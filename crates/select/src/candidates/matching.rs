//! Which candidates a requirement accepts.

use std::sync::Arc;

use mu_manifest::reference::{AppVersioning, Version, VersionSpec};
use pubgrub::VersionSet;

use super::{Candidates, Inquiry};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::{Requirement, Unavailable};

impl Candidates {
    /// The candidates that `requirement` accepts.
    pub(crate) fn accepted_positions(
        &mut self,
        inquiry: Inquiry<'_>,
        requirement: &Arc<Requirement>,
    ) -> Result<PositionSet, Unavailable> {
        if let Some(set) = self.sets.get(requirement) {
            return Ok(set.clone());
        }
        let set = self.matching_candidates(inquiry, requirement)?.intersection(&self.allowed);
        self.sets.insert(Arc::clone(requirement), set.clone());
        Ok(set)
    }

    /// The candidates that `requirement` accepts, including those that the filters exclude.
    pub(crate) fn matching_candidates(
        &mut self,
        inquiry: Inquiry<'_>,
        requirement: &Requirement,
    ) -> Result<PositionSet, Unavailable> {
        // An override says which versions to use whatever is required, so its spec takes the place of the required one.
        // A channel or app version that is required still counts.
        let instead = self.instead.as_ref().map(|instead| instead.spec.clone());
        let prereleases = requirement.prerelease
            || inquiry.settings.prereleases
            || instead.is_some()
            || self.releases.counts_prereleases;
        let spec = instead.as_ref().unwrap_or(&requirement.spec);
        // Whoever gives the URL of an archive means what is in it.
        let prereleases =
            prereleases || *spec == VersionSpec::Latest && self.releases.is_single_archive();
        let named = self.named_by(inquiry, spec)?;
        let mut set = match named {
            Some(set) => set,
            None => self.in_range(spec, prereleases),
        };
        if requirement.channel.is_some() || requirement.app_version.is_some() {
            let apps = self.releases.app_versioning();
            let is_narrowed = |position: &Position| self.is_narrowed(*position, requirement, apps);
            set = set.iter().filter(is_narrowed).collect();
        }
        Ok(set)
    }

    /// Whether a spec about versions accepts the revision at `position`.
    ///
    /// Only something that names the revision makes it a candidate, so a prerelease version is no obstacle.
    pub(super) fn reaches(&self, spec: &VersionSpec, position: Position) -> bool {
        let is_accepted =
            || self.version(position).is_some_and(|version| accepts(spec, &version, true));
        match spec {
            VersionSpec::Latest | VersionSpec::Tip => true,
            VersionSpec::Range(_) | VersionSpec::Commit(_) => is_accepted(),
            VersionSpec::Pin(_) => self.is_locked(position) && is_accepted(),
            VersionSpec::Tag(_) | VersionSpec::Digest(_) => false,
        }
    }

    /// The candidates whose version `spec` accepts.
    fn in_range(&self, spec: &VersionSpec, prereleases: bool) -> PositionSet {
        let length = self.releases.len();
        let version = |at: usize| self.releases.version(at as Position);
        // Versions are sorted, so most ranges are one interval, and its ends are found by binary search: `^1` in a
        // thousand versions takes twenty comparisons. Not with prereleases among them, some of which a range skips.
        let span = match spec {
            VersionSpec::Range(range) if self.releases.is_plain => {
                range.span(length as usize, version)
            }
            _ => None,
        };
        let releases = match span {
            Some(span) => PositionSet::position_range(span.start as Position, span.end as Position),
            None => {
                let is_accepted =
                    |at: &Position| accepts(spec, &self.releases.version(*at), prereleases);
                (0..length).filter(is_accepted).collect()
            }
        };
        if self.revisions.is_empty() {
            return releases;
        }
        let revisions = (length..).take(self.revisions.len());
        let reached: PositionSet = revisions.filter(|&at| self.reaches(spec, at)).collect();
        releases.union(&reached)
    }

    /// Whether the candidate at `position` has the required channel and app version.
    fn is_narrowed(
        &self,
        position: Position,
        requirement: &Requirement,
        apps: AppVersioning,
    ) -> bool {
        let details = self.details(position);
        let in_channel = requirement.channel.as_ref().is_none_or(|channel| {
            details.is_some_and(|details| details.channels.contains(channel))
        });
        let of_app = requirement.app_version.as_ref().is_none_or(|wanted| {
            let stated = details.and_then(|details| details.app_version.as_deref());
            let version = self.version(position);
            let actual = version.as_ref().and_then(Version::app).or(stated);
            actual.is_some_and(|actual| apps.accepts(wanted, actual))
        });
        in_channel && of_app
    }
}

/// Whether a spec accepts a version; digits that may be a commit are a range of versions, too.
fn accepts(spec: &VersionSpec, version: &Version, prereleases: bool) -> bool {
    match spec {
        VersionSpec::Commit(commit) => {
            commit.as_range().is_some_and(|range| range.matches(version, prereleases))
        }
        _ => spec.accepts(version, prereleases),
    }
}
