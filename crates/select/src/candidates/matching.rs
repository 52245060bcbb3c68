//! Which candidates a requirement accepts: by their versions, or by a name (a commit, a tag, a branch, the tip, a digest).
//!
//! Named revisions are created here. What the lock holds for a name also counts as named by it, so that a branch stays where it
//! was locked.

use std::sync::Arc;

use mu_manifest::reference::{AppVersioning, CommitDigits, Version, VersionSpec};
use pubgrub::VersionSet;

use super::{Candidates, Inquiry};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::{Requirement, Revision, Unavailable, Untagged};

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
        // Whoever gives a folder, or the URL of an archive, means what is in it.
        let prereleases =
            prereleases || *spec == VersionSpec::Latest && self.releases.has_one_content();
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

impl Candidates {
    /// The candidates that `spec` names one by one; `None` if it is about versions.
    fn named_by(
        &mut self,
        inquiry: Inquiry<'_>,
        spec: &VersionSpec,
    ) -> Result<Option<PositionSet>, Unavailable> {
        if self.speaks_of_versions(spec) {
            return Ok(None);
        }
        let is_repository = self.releases.has_commits();
        // What was locked for the tip has no name, and all digits of a commit are one, so that they are not taken for the tip.
        let chosen_by = match spec {
            VersionSpec::Commit(commit) => Some(commit.as_str()),
            other => other.as_tag(),
        };
        // A locked candidate needs no request, unless the name is a tag.
        let locked = match spec {
            VersionSpec::Digest(digest) => {
                self.locked_at(chosen_by, |known| known == digest.as_str())
            }
            VersionSpec::Commit(commit) if self.releases.has_revisions() => {
                self.locked_at(chosen_by, |known| commit.matches(known))
            }
            _ => PositionSet::default(),
        };
        if !locked.is_empty() {
            return Ok(Some(locked));
        }
        // A repository without releases: `latest` can only mean its tip.
        let name = if *spec == VersionSpec::Latest { &VersionSpec::Tip } else { spec };
        let named: PositionSet = self.name(inquiry, name)?.into_iter().collect();
        // The branch has moved on since it was locked: both commits are accepted, and the search keeps the locked one.
        // After `mu update` nothing is kept, and only the new one is left.
        let set = named.union(&self.locked_at(chosen_by, |_| false));
        // In a registry, what is no tag may still be a version: `1234567` is examined as a range then.
        Ok(Some(set).filter(|set| is_repository || !set.is_empty()))
    }

    /// The locked candidates that were locked for a tag or branch, or whose commit matches. Without a name,
    /// those that were locked for the tip.
    fn locked_at(&self, name: Option<&str>, commit: impl Fn(&str) -> bool) -> PositionSet {
        let mut positions: Vec<Position> = self
            .locked
            .iter()
            .filter(|locked| {
                // What was locked for a plain version has no name either, so without a name only a revision was locked
                // for the tip.
                let is_for_name = locked.reference.as_deref() == name
                    && (name.is_some() || self.revision(locked.position).is_some());
                is_for_name
                    || self.candidate_commit(locked.position).is_some_and(|known| commit(known))
            })
            .map(|locked| locked.position)
            .collect();
        positions.sort_unstable();
        positions.dedup();
        positions.into_iter().collect()
    }

    /// Whether a requirement, whose candidates are known, names them one by one.
    pub(crate) fn is_named_by(&self, requirement: &Requirement) -> bool {
        !self.revisions.is_empty() && !self.speaks_of_versions(self.actual_spec(requirement))
    }

    /// The tag or branch by which a requirement names its candidate.
    pub(crate) fn reference(&self, requirement: &Requirement) -> Option<String> {
        let spec = self.actual_spec(requirement);
        let name = match spec {
            VersionSpec::Commit(commit) if commit.is_full() => {
                Some(commit.as_str()).filter(|_| self.leads_elsewhere(commit))
            }
            _ => spec.as_tag(),
        };
        name.filter(|_| !self.speaks_of_versions(spec)).map(ToOwned::to_owned)
    }

    /// Whether these digits lead to a commit with others: they are those of a tag's own object.
    fn leads_elsewhere(&self, digits: &CommitDigits) -> bool {
        let found = self.named.get(digits.as_str()).copied().flatten();
        let found = found.and_then(|position| self.candidate_commit(position));
        let is_locked = |reference: &str| reference == digits.as_str();
        found.is_some_and(|commit| !digits.matches(commit))
            || self.locked.iter().any(|one| one.reference.as_deref().is_some_and(is_locked))
    }

    /// The spec that counts for a requirement: an override takes precedence.
    fn actual_spec<'s>(&'s self, requirement: &'s Requirement) -> &'s VersionSpec {
        self.instead.as_ref().map_or(&requirement.spec, |instead| &instead.spec)
    }

    /// Whether a spec is about versions here, not about names.
    fn speaks_of_versions(&self, spec: &VersionSpec) -> bool {
        let has_revisions = self.releases.has_revisions();
        match spec {
            VersionSpec::Tip => !has_revisions,
            VersionSpec::Latest => !has_revisions || !self.releases.is_empty(),
            // `1.28` may be a plain tag if no version starts with it.
            VersionSpec::Range(_) => {
                let mut versions = self.releases.versions();
                spec.as_tag().is_none() || versions.any(|version| spec.accepts(&version, true))
            }
            VersionSpec::Pin(_) => true,
            VersionSpec::Commit(_) | VersionSpec::Tag(_) | VersionSpec::Digest(_) => false,
        }
    }

    /// The candidate that a commit, tag, branch or `tip` names; a new one if it is not a release.
    pub(super) fn name(
        &mut self,
        inquiry: Inquiry<'_>,
        name: &VersionSpec,
    ) -> Result<Option<Position>, Unavailable> {
        let key = name.as_str();
        if let Some(&known) = self.named.get(key) {
            return Ok(known);
        }
        let position = match inquiry.universe.revision(&self.releases, name)? {
            None => None,
            Some(Revision::Release(position)) => Some(position),
            Some(Revision::Untagged(revision)) => Some(self.add(inquiry, revision)),
        };
        self.named.insert(key.into(), position);
        Ok(position)
    }

    fn add(&mut self, inquiry: Inquiry<'_>, revision: Untagged) -> Position {
        let same = |known: &Untagged| known.commit == revision.commit;
        // The same commit has one position, whatever names it: a release, a revision that another name led to, or a new
        // one at the end.
        if let Some(release) = self.releases.at_commit(&revision.commit) {
            return release;
        }
        let length = self.releases.len();
        if let Some(index) = self.revisions.iter().position(same) {
            return length + index as Position;
        }
        let position = length + self.revisions.len() as Position;
        self.revisions.push(revision);
        if self.rejection(inquiry.settings, position).is_none() {
            self.allowed = self.allowed.union(&PositionSet::singleton(position));
        }
        // Sets that were handed out stay valid if they do not include it.
        let mut handed_out = std::mem::take(&mut self.sets);
        let before = handed_out.len();
        handed_out.retain(|requirement, _| !self.reaches(&requirement.spec, position));
        self.is_outdated |= handed_out.len() < before;
        self.sets = handed_out;
        position
    }

    /// Whether sets that were handed out lack a revision that was named since. The call resets this.
    pub(crate) fn take_outdated_sets(&mut self) -> bool {
        std::mem::take(&mut self.is_outdated)
    }
}
