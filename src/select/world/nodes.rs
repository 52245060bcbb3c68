//! All nodes, by what they represent.

use rustc_hash::FxHashMap;

use crate::select::node::{Kind, Line, Node, Place};

/// All nodes; the first is the root.
#[derive(Debug)]
pub(super) struct Nodes {
    kinds: Vec<Kind>,
    by_kind: FxHashMap<Kind, Node>,
    /// The nodes of each package at which its candidates are chosen.
    of_packages: FxHashMap<Place, Vec<Node>>,
}

impl Nodes {
    /// Only the root.
    pub(super) fn new() -> Self {
        Self {
            kinds: vec![Kind::Root],
            by_kind: FxHashMap::from_iter([(Kind::Root, Node::ROOT)]),
            of_packages: FxHashMap::default(),
        }
    }

    /// What a node represents.
    pub(super) fn kind(&self, node: Node) -> &Kind {
        &self.kinds[node.0 as usize]
    }

    /// The node that represents something; a new one if there is none yet.
    pub(super) fn node(&mut self, kind: Kind) -> Node {
        if let Some(&node) = self.by_kind.get(&kind) {
            return node;
        }
        let node = Node(u32::try_from(self.kinds.len()).expect("nobody has so many packages"));
        if let Kind::Line(Line { place, .. }) = kind {
            self.of_packages.entry(place).or_default().push(node);
        }
        self.kinds.push(kind.clone());
        self.by_kind.insert(kind, node);
        node
    }

    /// The nodes of a package at which its candidates are chosen.
    pub(super) fn of_package(&self, place: Place) -> impl Iterator<Item = Node> {
        self.of_packages.get(&place).into_iter().flatten().copied()
    }
}
