//! Which versions an installed one can be upgraded to, if a package's versions say what they can follow.
//!
//! A version can follow another if it replaces or skips it, or its range of skipped versions contains it.
//! Steps only use versions that could themselves be installed.

use std::collections::VecDeque;

use mu_manifest::reference::Version;
use pubgrub::VersionSet;
use rustc_hash::FxHashMap;

use crate::filters::Rejection;
use crate::positions::PositionSet;
use crate::releases::{Position, Releases, Upgrade};

/// The versions that upgrades reach from the installed one.
#[derive(Debug)]
pub(super) struct Upgrades {
    installed: Vec<Version>,
    /// The channels that steps may be of; `None` if all count.
    channels: Option<Vec<String>>,
    /// The reachable versions, and the installed one.
    pub(super) reachable: PositionSet,
    /// The version before each reachable one; `None` is the installed version.
    steps: FxHashMap<Position, Option<Position>>,
}

impl Upgrades {
    /// Follows upgrades from the installed version over `allowed` versions, in some channels or in all; `None` if
    /// nothing is installed, or if the package has no `upgrade` entries.
    pub(super) fn from(
        releases: &Releases,
        allowed: &PositionSet,
        installed: &[&Version],
        channels: Option<Vec<String>>,
    ) -> Option<Self> {
        let all = releases.all_details();
        let mut edges: Vec<(Position, &Upgrade)> = all
            .flat_map(|(position, details)| details.upgrade.iter().map(move |one| (position, one)))
            .collect();
        if edges.is_empty() || installed.is_empty() {
            return None;
        }
        // Steps of an OLM catalog, for example, are those of one channel: a version may follow another one in `fast`
        // only.
        edges.retain(|(_, upgrade)| is_in(upgrade, channels.as_deref()));
        let installed: Vec<Version> =
            installed.iter().map(|version| as_listed(releases, version)).collect();
        let mut steps: FxHashMap<Position, Option<Position>> = FxHashMap::default();
        let mut queue: VecDeque<(Version, Option<Position>)> =
            installed.iter().map(|version| (version.clone(), None)).collect();
        // Breadth first, so that `steps` has a shortest way to each version. It is a tree: each version has the step
        // before it, and the first of a way has none.
        //
        //     installed 1.0 ──> 1.1 ──> 1.3      steps: 1.1 → None, 1.2 → None, 1.3 → 1.1
        //                   └─> 1.2
        //
        while let Some((version, from)) = queue.pop_front() {
            for &(position, upgrade) in &edges {
                let leads = follows(upgrade, &version) && allowed.holds(position);
                if leads && !steps.contains_key(&position) {
                    steps.insert(position, from);
                    queue.push_back((releases.version(position), Some(position)));
                }
            }
        }
        // To stay is always possible, even if a rule now excludes the installed version as a step.
        let stays = installed.iter().filter_map(|version| releases.position_of_version(version));
        let reachable = steps
            .keys()
            .copied()
            .chain(stays)
            .fold(PositionSet::empty(), |set, at| set.union(&PositionSet::singleton(at)));
        Some(Self { installed, channels, reachable, steps })
    }

    /// The versions that are one upgrade away, and the installed one.
    pub(super) fn next(&self) -> PositionSet {
        let far = self.steps.iter().filter(|(_, before)| before.is_some());
        self.reachable.without(&far.map(|(position, _)| *position).collect())
    }

    /// The versions between the installed one and the one at `position`.
    pub(super) fn way(&self, releases: &Releases, position: Position) -> Vec<Version> {
        let mut way = Vec::new();
        let mut at = self.steps.get(&position).copied().flatten();
        // From the version back to the installed one. Ends: each step was reached before the one that it leads to.
        while let Some(step) = at {
            way.push(releases.version(step));
            at = self.steps.get(&step).copied().flatten();
        }
        way.reverse();
        way
    }

    /// Why the version at `position` cannot be reached; `None` if it can. `unusable` says why a version can
    /// never be a step.
    pub(super) fn refusal(
        &self,
        releases: &Releases,
        position: Position,
        unusable: impl Fn(Position) -> Option<Rejection>,
    ) -> Option<Rejection> {
        if self.reachable.holds(position) || position >= releases.len() {
            return None;
        }
        let installed: Vec<String> = self.installed.iter().map(ToString::to_string).collect();
        let upgrades = releases.details(position).map(|details| &details.upgrade[..]);
        // Perhaps there is a way over a version that is yanked or excluded. If it is named, the user knows what to
        // change.
        let missing = self
            .missing(releases, position)
            .and_then(|step| Some((releases.version(step).to_string(), Box::new(unusable(step)?))));
        Some(Rejection::NoUpgrade {
            from: installed.join(" or "),
            follows: self.describe(upgrades.unwrap_or_default()),
            missing,
        })
    }

    /// The last unusable version on the shortest way to the one at `position`, over all published versions.
    fn missing(&self, releases: &Releases, position: Position) -> Option<Position> {
        let follow = |at: Position, version: &Version| {
            let details = releases.details(at);
            let mut upgrades = details.into_iter().flat_map(|details| &details.upgrade);
            upgrades.any(|one| is_in(one, self.channels.as_deref()) && follows(one, version))
        };
        let mut seen = PositionSet::singleton(position);
        let mut queue = VecDeque::from([(position, None)]);
        // Backwards from the version that is wanted, over all that were published. `missing` is the version on the way
        // so far that is nearest to the installed one and not reachable.
        while let Some((at, missing)) = queue.pop_front() {
            let is_start = self.installed.iter().any(|version| follow(at, version));
            if is_start || self.reachable.holds(at) {
                return missing;
            }
            for before in (0..releases.len()).filter(|&one| follow(at, &releases.version(one))) {
                if !seen.holds(before) {
                    seen = seen.union(&PositionSet::singleton(before));
                    let missing = if self.reachable.holds(before) { missing } else { Some(before) };
                    queue.push_back((before, missing));
                }
            }
        }
        None
    }

    /// The versions that a version can follow: `1.3.2, 1.3.0 or >=1.0.0 <1.3.0`; with the channel, if it is
    /// possible only in another one.
    fn describe(&self, upgrades: &[Upgrade]) -> String {
        let mut all: Vec<String> = Vec::new();
        let channels = self.channels.as_deref();
        let in_channel = upgrades.iter().filter(|one| is_in(one, channels));
        let others = upgrades.iter().filter(|one| !is_in(one, channels));
        for upgrade in in_channel.chain(others) {
            let versions = upgrade.replaces.iter().chain(&upgrade.skips).map(ToString::to_string);
            let range = upgrade.skip_range.as_ref().map(ToString::to_string);
            let other_channel = upgrade.channel.as_ref().filter(|_| !is_in(upgrade, channels));
            let place = other_channel.map(|channel| format!(" in channel {channel}"));
            let place = place.unwrap_or_default();
            all.extend(versions.chain(range).map(|text| format!("{text}{place}")));
        }
        match all.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, first)) => format!("{} or {last}", first.join(", ")),
            None => String::new(),
        }
    }
}

/// Whether a step is in one of some channels; every step is in `None`.
fn is_in(upgrade: &Upgrade, channels: Option<&[String]>) -> bool {
    let channel = upgrade.channel.as_ref();
    channels.is_none_or(|channels| channel.is_none_or(|channel| channels.contains(channel)))
}

/// A version as a package lists it: only the package knows whether `2.3.0-1.0.0` is a composite version.
fn as_listed(releases: &Releases, version: &Version) -> Version {
    let composite = Version::parse_composite(&version.to_string()).ok();
    let is_composite = || releases.versions().any(|listed| listed.app().is_some());
    match composite {
        Some(composite) if version.app().is_none() && is_composite() => composite,
        _ => version.clone(),
    }
}

fn follows(upgrade: &Upgrade, version: &Version) -> bool {
    // The three forms that OLM has: `replaces`, `skips` and `skipRange`.
    upgrade.replaces.as_ref() == Some(version)
        || upgrade.skips.contains(version)
        || upgrade.skip_range.as_ref().is_some_and(|range| range.accepts(version, true))
}
