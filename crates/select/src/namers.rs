//! Tracks what names what, for things that may be chosen only together with something that names them: a
//! revision without a version tag, and a package that could replace something without being required.

use std::collections::{BTreeMap, BTreeSet};

use pubgrub::VersionSet;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::node::{CapabilityIndex, Edge, Node, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;

/// What is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    /// A revision of a package.
    Revision(PackageIndex, Position),
    /// A package.
    Package(PackageIndex),
}

/// Something that names a revision or a package, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Namer {
    node: Node,
    /// The capability that it requires, if it does not use a name.
    capability: Option<CapabilityIndex>,
}

impl Namer {
    /// Something that uses the name.
    pub(super) fn by_name(node: Node) -> Self {
        Self { node, capability: None }
    }

    /// Something that requires a capability that the named package provides.
    pub(super) fn by_capability(node: Node, capability: CapabilityIndex) -> Self {
        Self { node, capability: Some(capability) }
    }
}

/// Who names what.
///
/// An answer ([`Namers::of`]) is a set of positions: one for each node that is known to name the topic at that time. If another
/// node turns out to name it afterwards, an edge with that answer lacks a position, so the answer was given too early. Such a
/// search starts again with what is known by then ([`search::solve`](super::search::solve)). That ends, because names are only
/// added while it goes on, and there are only as many as candidates that were read: a search that reads nothing new is given no
/// new name. Only a change of what the root requires takes names away, between searches.
#[derive(Debug, Default)]
pub(super) struct Namers {
    /// The candidates that name it.
    known: FxHashMap<Topic, BTreeMap<Namer, PositionSet>>,
    /// What answers were given about.
    pub(super) handed_out: FxHashSet<Topic>,
}

impl Namers {
    /// Remembers that a candidate of `by` names something; returns whether that is too late for an answer
    /// that was given.
    pub(super) fn note(&mut self, topic: Topic, by: Namer, candidate: Position) -> bool {
        let known = self.known.entry(topic).or_default().entry(by).or_default();
        if known.holds(candidate) {
            return false;
        }
        // A further candidate of a node that is known makes no new position. But the edge to that node lacks the
        // candidate, so it is too late for that as well.
        *known = known.union(&PositionSet::singleton(candidate));
        self.handed_out.contains(&topic)
    }

    /// Remembers that a candidate of `by` names some revisions of a package; returns whether that is too late
    /// for an answer that was given.
    pub(super) fn note_all(
        &mut self,
        place: PackageIndex,
        revisions: impl Iterator<Item = Position>,
        by: Namer,
        candidate: Position,
    ) -> bool {
        let mut is_late = false;
        for revision in revisions {
            is_late |= self.note(Topic::Revision(place, revision), by, candidate);
        }
        is_late
    }

    /// One position for each node that names something; `None` if the root does, because nothing more is
    /// needed then.
    pub(super) fn named_positions(&mut self, topic: Topic) -> Option<PositionSet> {
        self.handed_out.insert(topic);
        let namers = self.known.get(&topic);
        let root = Namer::by_name(Node::GRAPH_ROOT);
        let is_named_by_root = namers.is_some_and(|namers| namers.contains_key(&root));
        // The position of a namer is its place in the map. That may change while namers are added, and then the answer
        // was given too early in any case.
        let count = namers.map_or(0, BTreeMap::len) as Position;
        (!is_named_by_root).then(|| PositionSet::position_range(0, count))
    }

    /// The edge to a node that names something, and the capability by which it does.
    pub(super) fn edge_to_namer(
        &self,
        topic: Topic,
        namer: Position,
    ) -> Option<(Edge, Option<CapabilityIndex>)> {
        let (namer, set) = self.known.get(&topic)?.iter().nth(namer as usize)?;
        Some((Edge { node: namer.node, set: set.clone() }, namer.capability))
    }

    /// Forgets what `by` named, and the answers about it; returns whether it had named anything.
    pub(super) fn forget(&mut self, by: Node) -> bool {
        let mut named = false;
        for namers in self.known.values_mut() {
            let before = namers.len();
            namers.retain(|namer, _| namer.node != by);
            named |= namers.len() < before;
        }
        if named {
            self.handed_out.clear();
        }
        named
    }

    /// Forgets the packages that `by` named by name, except for some; returns whether there were others.
    pub(super) fn forget_packages_but(
        &mut self,
        by: Node,
        places: &BTreeSet<PackageIndex>,
    ) -> bool {
        let mut forgot = false;
        for (topic, namers) in &mut self.known {
            let Topic::Package(place) = topic else { continue };
            // What it requires by a capability stays: only names were narrowed.
            forgot |= !places.contains(place) && namers.remove(&Namer::by_name(by)).is_some();
        }
        if forgot {
            self.handed_out.clear();
        }
        forgot
    }
}
