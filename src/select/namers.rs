//! Who names what, where something may be chosen only together with one of those who name it: a revision without a version
//! tag, and a package that could stand for something without being asked for.

use std::collections::{BTreeMap, BTreeSet};

use pubgrub::VersionSet;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::releases::Position;
use crate::select::node::{Capability, Edge, Node, Place};
use crate::select::positions::PositionSet;

/// What is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    /// A revision of a package.
    Revision(Place, Position),
    /// A package.
    Package(Place),
}

/// Who names something, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Namer {
    node: Node,
    /// The capability that it requires, if it does not name anything by its name.
    capability: Option<Capability>,
}

impl Namer {
    /// Someone who names something by its name.
    pub(super) fn by_name(node: Node) -> Self {
        Self { node, capability: None }
    }

    /// Someone who requires a capability that what is named provides.
    pub(super) fn by_capability(node: Node, capability: Capability) -> Self {
        Self { node, capability: Some(capability) }
    }
}

/// Who names what.
#[derive(Debug, Default)]
pub(super) struct Namers {
    /// Which candidates of those who name it do so.
    known: FxHashMap<Topic, BTreeMap<Namer, PositionSet>>,
    handed_out: FxHashSet<Topic>,
}

impl Namers {
    /// Remembers that a candidate of `by` names something; says whether that comes too late for someone who asked.
    pub(super) fn note(&mut self, topic: Topic, by: Namer, candidate: Position) -> bool {
        let known = self.known.entry(topic).or_default().entry(by).or_default();
        if known.holds(candidate) {
            return false;
        }
        *known = known.union(&PositionSet::singleton(candidate));
        self.handed_out.contains(&topic)
    }

    /// One position for each who names something; `None` if the root does, for then nothing more is needed.
    pub(super) fn of(&mut self, topic: Topic) -> Option<PositionSet> {
        self.handed_out.insert(topic);
        let namers = self.known.get(&topic);
        let root = Namer::by_name(Node::ROOT);
        let is_named_by_root = namers.is_some_and(|namers| namers.contains_key(&root));
        let count = namers.map_or(0, BTreeMap::len) as Position;
        (!is_named_by_root).then(|| PositionSet::between(0, count))
    }

    /// The edge to one of those who name something, and the capability by which it does.
    pub(super) fn edge_to_namer(
        &self,
        topic: Topic,
        namer: Position,
    ) -> Option<(Edge, Option<Capability>)> {
        let (namer, set) = self.known.get(&topic)?.iter().nth(namer as usize)?;
        Some((Edge { node: namer.node, set: set.clone() }, namer.capability))
    }

    /// Forgets what `by` named, and who was told of it; says whether it had named anything.
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

    /// Forgets the packages that `by` named by their names, except for some; says whether there were others.
    pub(super) fn forget_packages_but(&mut self, by: Node, places: &BTreeSet<Place>) -> bool {
        let mut forgot = false;
        for (topic, namers) in &mut self.known {
            let Topic::Package(place) = topic else { continue };
            forgot |= !places.contains(place) && namers.remove(&Namer::by_name(by)).is_some();
        }
        if forgot {
            self.handed_out.clear();
        }
        forgot
    }

    /// Begins anew: nobody asked yet.
    pub(super) fn forget_what_was_handed_out(&mut self) {
        self.handed_out.clear();
    }
}
