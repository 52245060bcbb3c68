//! Who names which revision, so that a revision without a version tag is chosen only together with one of them.

use std::collections::BTreeMap;

use pubgrub::VersionSet;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::releases::Position;
use crate::select::node::{Edge, Node};
use crate::select::positions::PositionSet;

/// A revision: its package's place, and its position there.
type Revision = (usize, Position);

/// Who names which revision.
#[derive(Debug, Default)]
pub(super) struct Namers {
    /// Nodes, and which of their candidates.
    known: FxHashMap<Revision, BTreeMap<Node, PositionSet>>,
    handed_out: FxHashSet<Revision>,
}

impl Namers {
    /// Remembers that a candidate of `by` names a revision; says whether that comes too late for someone who asked.
    pub(super) fn note(
        &mut self,
        place: usize,
        revision: Position,
        by: Node,
        candidate: Position,
    ) -> bool {
        let namers = self.known.entry((place, revision)).or_default();
        let known = namers.entry(by).or_default();
        let is_new = !known.holds(candidate);
        *known = known.union(&PositionSet::singleton(candidate));
        is_new && self.handed_out.contains(&(place, revision))
    }

    /// One position for each who names a revision; `None` if the root does, for then nothing more is needed.
    pub(super) fn of(&mut self, place: usize, revision: Position) -> Option<PositionSet> {
        self.handed_out.insert((place, revision));
        let namers = self.known.get(&(place, revision));
        let is_named_by_root = namers.is_some_and(|namers| namers.contains_key(&Node::ROOT));
        let count = namers.map_or(0, BTreeMap::len) as Position;
        (!is_named_by_root).then(|| PositionSet::between(0, count))
    }

    /// The edge to one of those who name a revision.
    pub(super) fn edge_to_namer(
        &self,
        place: usize,
        revision: Position,
        namer: Position,
    ) -> Option<Edge> {
        let (&node, set) = self.known.get(&(place, revision))?.iter().nth(namer as usize)?;
        Some(Edge { node, set: set.clone() })
    }

    /// Forgets what `by` named, and who was told of it; says whether it had named anything.
    pub(super) fn forget(&mut self, by: Node) -> bool {
        let mut named = false;
        for namers in self.known.values_mut() {
            named |= namers.remove(&by).is_some();
        }
        if named {
            self.handed_out.clear();
        }
        named
    }

    /// Begins anew: nobody asked yet.
    pub(super) fn forget_what_was_handed_out(&mut self) {
        self.handed_out.clear();
    }
}
