//! What the versions of a package say in its listing of capabilities and of other packages.

use std::collections::BTreeMap;

use crate::index::releases::{Position, Releases};
use crate::reference::PackageId;
use crate::select::positions::PositionSet;

/// The listing of a package.
pub(in crate::select) struct Listing<'c> {
    pub(super) releases: &'c Releases,
    /// The candidates that no rule excludes.
    pub(in crate::select) allowed: &'c PositionSet,
    /// The channel that counts if none is requested.
    pub(super) default: Option<&'c String>,
}

impl Listing<'_> {
    /// The capabilities that versions provide: in which versions, and in which versions of the default
    /// channel if those are fewer.
    /// `stated` are those that all of its versions provide besides.
    pub(in crate::select) fn provided(
        &self,
        stated: &[String],
    ) -> Vec<(String, PositionSet, Option<PositionSet>)> {
        let mut provided: BTreeMap<&str, Vec<Position>> = BTreeMap::new();
        let detailed = self.releases.all_details();
        for (position, details) in detailed.filter(|(position, _)| self.allowed.holds(*position)) {
            for capability in &details.provides {
                provided.entry(capability).or_default().push(position);
            }
        }
        // All of its versions provide it, also those that do not say so themselves.
        for capability in stated {
            provided.insert(capability, self.allowed.iter().collect());
        }
        let is_preferred = |position: &Position| {
            let details = self.releases.details(*position);
            let channels = details.map(|details| &details.channels);
            channels.zip(self.default).is_some_and(|(channels, default)| channels.contains(default))
        };
        let sets = provided.into_iter().map(|(capability, positions)| {
            let preferred: PositionSet = positions.iter().copied().filter(is_preferred).collect();
            let versions: PositionSet = positions.into_iter().collect();
            let is_part = !preferred.is_empty() && preferred != versions;
            (capability.to_owned(), versions, is_part.then_some(preferred))
        });
        sets.collect()
    }

    /// The packages that versions replace, and in which versions.
    pub(in crate::select) fn replaced(&self) -> Vec<(PackageId, PositionSet)> {
        let mut replaced: BTreeMap<&PackageId, Vec<Position>> = BTreeMap::new();
        for (position, details) in self.releases.all_details() {
            if !details.replaces.is_empty() && self.allowed.holds(position) {
                for id in &details.replaces {
                    replaced.entry(id).or_default().push(position);
                }
            }
        }
        let sets = replaced.into_iter();
        sets.map(|(id, positions)| (id.clone(), positions.into_iter().collect())).collect()
    }

    /// What some versions conflict with: package ids and capabilities.
    pub(in crate::select) fn opponents(&self) -> Vec<String> {
        let all = self.releases.all_details().flat_map(|(_, details)| &details.conflicts);
        all.cloned().collect()
    }

    /// Whether any version declares that the package has moved.
    pub(in crate::select) fn has_moved(&self) -> bool {
        self.releases.all_details().any(|(_, details)| details.moved_to.is_some())
    }
}
