//! Requirements that name a candidate: a commit, a tag, a branch, the tip, a digest.
//!
//! Named revisions are created here. What the lock holds for a name also counts as named by it, so that a
//! branch stays where it was locked.

use mu_manifest::reference::VersionSpec;
use pubgrub::VersionSet;

use super::{Candidates, Inquiry};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::{Requirement, Revision, Unavailable, Untagged};

impl Candidates {
    /// The candidates that `spec` names one by one; `None` if it is about versions.
    pub(super) fn named_by(
        &mut self,
        inquiry: Inquiry<'_>,
        spec: &VersionSpec,
    ) -> Result<Option<PositionSet>, Unavailable> {
        if self.speaks_of_versions(spec) {
            return Ok(None);
        }
        let is_repository = self.releases.has_commits();
        // A locked candidate needs no request, unless the name is a tag.
        let locked = match spec {
            VersionSpec::Digest(digest) => {
                self.locked_at(Some(digest.as_str()), |known| known == digest.as_str())
            }
            VersionSpec::Commit(commit) if self.releases.has_revisions() => {
                self.locked_at(spec.as_tag(), |known| commit.matches(known))
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
        let set = named.union(&self.locked_at(spec.as_tag(), |_| false));
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
        spec.as_tag().filter(|_| !self.speaks_of_versions(spec)).map(ToOwned::to_owned)
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
