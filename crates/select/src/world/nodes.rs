//! All nodes, by what they represent.

use rustc_hash::FxHashMap;

use crate::Majors;
use crate::candidates::Candidates;
use crate::node::{Edge, MajorLine, Node, NodeKind, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;

/// All nodes; the first is the root.
#[derive(Debug)]
pub(super) struct Nodes {
    /// How many majors of a package may be chosen: they decide which lines it has.
    pub(super) majors: Majors,
    kinds: Vec<NodeKind>,
    by_kind: FxHashMap<NodeKind, Node>,
    /// The nodes of each package at which its candidates are chosen.
    of_packages: FxHashMap<PackageIndex, Vec<Node>>,
}

impl Nodes {
    /// Creates the nodes of a world that has only the root.
    pub(super) fn new(majors: Majors) -> Self {
        Self {
            majors,
            kinds: vec![NodeKind::Root],
            by_kind: FxHashMap::from_iter([(NodeKind::Root, Node::GRAPH_ROOT)]),
            of_packages: FxHashMap::default(),
        }
    }

    /// What a node represents.
    pub(super) fn kind(&self, node: Node) -> &NodeKind {
        &self.kinds[node.0 as usize]
    }

    /// The node that represents something; a new one if there is none yet.
    pub(super) fn node(&mut self, kind: NodeKind) -> Node {
        if let Some(&node) = self.by_kind.get(&kind) {
            return node;
        }
        let node = Node(u32::try_from(self.kinds.len()).expect("nobody has so many packages"));
        if let NodeKind::Versions(MajorLine { place, .. }) = kind {
            self.of_packages.entry(place).or_default().push(node);
        }
        self.kinds.push(kind.clone());
        self.by_kind.insert(kind, node);
        node
    }

    /// The nodes of a package at which its candidates are chosen.
    pub(super) fn of_package(&self, place: PackageIndex) -> impl Iterator<Item = Node> {
        self.of_packages.get(&place).into_iter().flatten().copied()
    }

    /// The edge to some candidates of the package at `place`.
    pub(super) fn edge_to_candidates(
        &mut self,
        place: PackageIndex,
        package: &Candidates,
        set: PositionSet,
    ) -> Edge {
        // With one version of a package, all its versions are one line, numbered 0, and every requirement leads there.
        // With several:
        //
        //     a ^1          ──> Versions(a, major 1) {…}
        //     a >=1 <3      ──> MajorChoice(a, {…}) {0, 1} ── 0 ──> Versions(a, major 1) {…}
        //                                                  └─ 1 ──> Versions(a, major 2) {…}
        //
        // So requirements that lead to different lines never meet, and each may have its own version.
        let majors = match self.majors {
            Majors::One if !package.is_side_by_side => Vec::new(),
            _ => package.majors(&set),
        };
        if majors.len() > 1 {
            let all = PositionSet::position_range(0, majors.len() as Position);
            return Edge { node: self.node(NodeKind::MajorChoice(place, set)), set: all };
        }
        // A requirement that nothing meets leads to line 0 with an empty set: it fails there, whatever else leads
        // there.
        let major = majors.first().copied().unwrap_or_default();
        Edge { node: self.node(NodeKind::Versions(MajorLine { place, major })), set }
    }

    /// The edge to the candidates of one major of the package at `place`, by the choice among the majors of `set`.
    pub(super) fn choice_edge(
        &mut self,
        place: PackageIndex,
        package: &Candidates,
        set: &PositionSet,
        choice: Position,
    ) -> Edge {
        let major = package.majors(set)[choice as usize];
        let set = set.iter().filter(|&position| package.major(position) == major).collect();
        Edge { node: self.node(NodeKind::Versions(MajorLine { place, major })), set }
    }
}
