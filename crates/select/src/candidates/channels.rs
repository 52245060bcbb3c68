//! Channels: which one counts if none is requested, and the order of versions that follows from it.
//!
//! This does not decide which versions a requirement with a channel accepts. If no version has a channel or
//! is deprecated, nothing here costs anything.

use pubgrub::VersionSet;

use super::{Candidates, Known};
use crate::filters::Passed;
use crate::positions::PositionSet;
use crate::releases::{Details, Position, Releases};

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
