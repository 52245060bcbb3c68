//! The numbers of the graph: of all nodes, by what they represent, and of requirements, in the order in which they are found. The
//! candidates that a requirement accepts are computed once.
//!
//! The same few requirements occur again and again, and comparing them means comparing texts; so the graph uses numbers.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Majors;
use crate::candidates::Candidates;
use crate::node::{Edge, MajorLine, Node, NodeKind, PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Requirement;

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

/// A set of requirements.
#[derive(Debug, Default)]
pub(crate) struct RequirementSet(Vec<bool>);

impl RequirementSet {
    /// Inserts a requirement; returns whether it is new.
    pub(crate) fn insert(&mut self, RequirementIndex(number): RequirementIndex) -> bool {
        if self.0.len() <= number {
            self.0.resize(number + 1, false);
        }
        !std::mem::replace(&mut self.0[number], true)
    }
}

/// All known requirements, and which version has which.
#[derive(Debug, Default)]
pub(super) struct KnownRequirements {
    numbers: FxHashMap<Arc<Requirement>, RequirementIndex>,
    /// The numbers by the address of requirements in memory; most requirements are shared by everything that
    /// has the same.
    by_address: FxHashMap<usize, RequirementIndex>,
    pub(super) met: Vec<Met>,
    /// What versions require, if that was read.
    pub(super) by_version: FxHashMap<(PackageIndex, Position), Rc<[RequirementIndex]>>,
}

/// A requirement, and what is known about it.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) requirement: Arc<Requirement>,
    /// Whether the workspace itself has the package.
    pub(super) is_own: bool,
    pub(super) meaning: Option<RequirementMeaning>,
}

/// What a requirement means in the known world.
#[derive(Debug)]
pub(super) struct RequirementMeaning {
    pub(super) place: PackageIndex,
    pub(super) accepted: PositionSet,
    /// The lowest accepted candidate for the minimal strategy, if that was computed.
    pub(super) lowest: Option<Option<Position>>,
}

impl KnownRequirements {
    /// The number of a requirement, if it is known.
    pub(super) fn find(&self, requirement: &Requirement) -> Option<RequirementIndex> {
        self.numbers.get(requirement).copied()
    }

    /// The number of a requirement that may be shared, if it is known.
    pub(super) fn find_shared(&self, requirement: &Arc<Requirement>) -> Option<RequirementIndex> {
        // An address stands for one requirement as long as the world lives: `met` holds every requirement whose address
        // is a key here, so none is freed and its address given to another one. A copy at another address costs a
        // comparison of texts.
        let address = Arc::as_ptr(requirement).addr();
        self.by_address.get(&address).copied().or_else(|| self.find(requirement))
    }

    /// Gives a new requirement its number; `is_own` says whether the workspace itself has the package.
    pub(super) fn add(&mut self, requirement: Arc<Requirement>, is_own: bool) -> RequirementIndex {
        let need = RequirementIndex(self.met.len());
        self.numbers.insert(Arc::clone(&requirement), need);
        self.by_address.insert(Arc::as_ptr(&requirement).addr(), need);
        self.met.push(Met { requirement, is_own, meaning: None });
        need
    }

    /// Forgets what requirements mean, because the candidates have changed.
    pub(super) fn forget_meanings(&mut self) {
        // The numbers stay, because edges and nodes (`ReplacementChoice`) hold them.
        self.met.iter_mut().for_each(|met| met.meaning = None);
    }
}
