//! Which of a package's versions comes before which: channels, of which one counts if none is requested; and upgrades, if
//! versions say what they can follow.
//!
//! This does not decide which versions a requirement with a channel accepts. If no version has a channel or is deprecated,
//! nothing here costs anything.
//!
//! A version can follow another if it replaces or skips it, or its range of skipped versions contains it. Steps only use
//! versions that could themselves be installed.

use std::collections::VecDeque;

use mu_manifest::reference::Version;
use pubgrub::VersionSet;
use rustc_hash::FxHashMap;

use super::{Candidates, Known};
use crate::filters::{Passed, Rejection};
use crate::positions::PositionSet;
use crate::releases::{Details, Position, Releases, Upgrade};

/// What channels mean for the candidates of a package.
#[derive(Debug, Default)]
pub(crate) struct Preference {
    /// How many releases there are.
    length: Position,
    /// The channel whose versions come first, if none is requested.
    pub(super) first: Option<String>,
    /// The channels that are requested from outside.
    asked: Vec<String>,
    /// The releases, the preferred ones first; empty if all are alike.
    order: Vec<PositionSet>,
}

impl Preference {
    /// What decides besides the versions; if prereleases are wanted, they are as good as releases.
    pub(super) fn from_releases(
        releases: &Releases,
        known: &Known<'_>,
        wants_prereleases: bool,
    ) -> Self {
        let asked: Vec<String> = known.channels.iter().map(|&one| one.to_owned()).collect();
        let length = releases.len();
        let default = || releases.default_channel().map(ToOwned::to_owned);
        let first = if asked.is_empty() { known.channel.clone().or_else(default) } else { None };
        if releases.all_details().next().is_none() {
            return Self { length, first, asked, order: Vec::new() };
        }
        // Each rule parts all sets in two, so what comes first counts most. With 1.0 and 1.1 in the channel `stable`,
        // 1.1 deprecated, and releases before prereleases:
        //
        //     by channel         {1.0 1.1} {2.0-rc 2.0}
        //     by deprecation     {1.0} {1.1} {2.0-rc 2.0}
        //     by prerelease      {1.0} {1.1} {2.0} {2.0-rc}
        //
        // So 1.0 is tried first, and 2.0-rc last.
        let all = PositionSet::position_range(0, length);
        let chosen = |is_meant: &dyn Fn(&Details) -> bool| -> PositionSet {
            let meant = releases.all_details().filter(|(_, details)| is_meant(details));
            meant.map(|(position, _)| position).collect()
        };
        let deprecated = chosen(&|details| details.deprecated.is_some());
        let in_channel = match &first {
            Some(first) => chosen(&|details| details.channels.contains(first)),
            None => all.clone(),
        };
        let prereleases = match releases.puts_releases_first && !wants_prereleases {
            true => all.iter().filter(|at| releases.version(*at).is_prerelease()).collect(),
            false => PositionSet::default(),
        };
        // The channel counts before the deprecation: no channel is left because the authors advise against its versions.
        let mut order = vec![in_channel.clone(), all.without(&in_channel)];
        for last in [deprecated, prereleases] {
            let parted = |these: PositionSet| [these.without(&last), these.intersection(&last)];
            order = order.into_iter().flat_map(parted).collect();
        }
        order.retain(|set| !set.is_empty());
        // One set orders nothing. It is left out, so that `is_any` is `false` and nothing below costs anything.
        if order.len() < 2 {
            order.clear();
        }
        Self { length, first, asked, order }
    }

    /// The channels whose upgrade steps count: the requested ones, or that of the installed version. `None` if the steps of
    /// all count.
    pub(super) fn of_upgrades(&self, known: &Known<'_>) -> Option<Vec<String>> {
        match self.asked.is_empty() {
            false => Some(self.asked.clone()),
            true => known.channel.clone().map(|channel| vec![channel]),
        }
    }

    /// Prefers some releases to all others.
    pub(super) fn put_first(&mut self, first: &PositionSet) {
        // An empty order stands for one set of all.
        if self.order.is_empty() {
            self.order.push(PositionSet::position_range(0, self.length));
        }
        let rest = self.order.iter().map(|these| these.without(first));
        let all = self.order.iter().map(|these| these.intersection(first)).chain(rest);
        let order: Vec<PositionSet> = all.filter(|set| !set.is_empty()).collect();
        self.order = if order.len() < 2 { Vec::new() } else { order };
    }

    /// Whether anything but their versions decides between releases.
    pub(crate) fn is_any(&self) -> bool {
        !self.order.is_empty()
    }

    /// The newest of the preferred releases within `set`.
    pub(super) fn newest(&self, set: &PositionSet) -> Option<Position> {
        let order = self.order.iter();
        let mut preferred =
            order.filter_map(|these| set.intersection(these).last_below(self.length));
        preferred.next().or_else(|| set.last_below(self.length))
    }

    /// The releases within `set`, the preferred ones first.
    pub(crate) fn preferred_first(&self, set: &PositionSet) -> Vec<Position> {
        let releases = set.intersection(&PositionSet::position_range(0, self.length));
        if self.order.is_empty() {
            return releases.iter().rev().collect();
        }
        let order = self.order.iter();
        order
            .flat_map(|these| releases.intersection(these).iter().rev().collect::<Vec<_>>())
            .collect()
    }

    /// The releases within `set` that are preferred to the one at `current`.
    pub(crate) fn preferred_to(&self, set: &PositionSet, current: Position) -> PositionSet {
        let above = PositionSet::position_range(current + 1, self.length);
        let mut preferred = PositionSet::default();
        // What comes before the set of the current version is preferred whatever its version is; within that set, what
        // is higher.
        for these in &self.order {
            if these.holds(current) {
                return preferred.union(&these.intersection(&above)).intersection(set);
            }
            preferred = preferred.union(these);
        }
        set.intersection(&above)
    }
}

impl Candidates {
    /// The channel to show for the candidate at `position`: a requested one, or else the one that comes
    /// first, or else the first that it is in.
    pub(crate) fn shown_channel(&self, position: Position) -> Option<String> {
        let channels = &self.details(position)?.channels;
        let Preference { first, asked, .. } = &self.preference;
        let mut meant = asked.iter().chain(first).filter(|one| channels.contains(one));
        meant.next().or_else(|| channels.first()).cloned()
    }

    /// Why the release at `current` is preferred to the newer one at `position`.
    pub(crate) fn passed(&self, position: Position, current: Position) -> Option<Passed> {
        // The reason is that of the first rule which parts the two, in the order in which `Preference::of` applies
        // them.
        let place = |at: Position| self.preference.order.iter().position(|these| these.holds(at));
        if place(position) <= place(current) {
            return None;
        }
        let is_in = |at: Position, channel: &String| {
            self.details(at).is_some_and(|details| details.channels.contains(channel))
        };
        Some(match &self.preference.first {
            Some(first) if is_in(current, first) && !is_in(position, first) => {
                Passed::Channel(first.clone())
            }
            _ if self.details(position).is_some_and(|details| details.deprecated.is_some()) => {
                Passed::Deprecated
            }
            _ => Passed::Prerelease,
        })
    }
}

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
