//! The requirements from outside, and how a search is limited to some of them, or to something else.

use std::borrow::Cow;

use pubgrub::VersionSet;

use super::World;
use crate::RootRequirer;
use crate::namers::{Namer, Topic};
use crate::node::{Edge, Node, NodeKind};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::Unavailable;

impl World<'_> {
    /// Changes the requirements from outside; everything that was read stays.
    pub(crate) fn ask(&mut self, roots: Vec<RootRequirer>) {
        // If the old roots named a revision, edges say that it needs no other namer. That may be wrong now.
        if self.namers.forget(Node::GRAPH_ROOT) {
            self.edges.clear();
        }
        self.roots = Cow::Owned(roots);
        self.narrowed_root = None;
        self.raised.clear();
    }

    /// Whether something outside the graph requires the package of `node`.
    pub(crate) fn is_directly_required(&self, node: Node) -> bool {
        self.place(node).is_some_and(|place| self.direct.contains(&self.package(place).id))
    }

    /// What the root needs, narrowed or not.
    pub(super) fn edges_of_root(&mut self) -> Result<Vec<Edge>, Unavailable> {
        if let Some(edges) = self.narrowed_root.clone() {
            // Nothing else has to require what the root was narrowed to.
            for edge in &edges {
                if self.notes_askers
                    && let Some(place) = self.place(edge.node)
                {
                    self.note_namer(Topic::Package(place), Namer::by_name(Node::GRAPH_ROOT), 0);
                }
            }
            return Ok(edges);
        }
        let roots = self.roots.clone();
        let required = roots.iter().flat_map(|root| &root.requirements);
        // First requirements, then capabilities, then conflicts, each sorted: the order in which members are read
        // changes nothing.
        let required = required.map(|requirement| self.packages.need_for(requirement)).collect();
        let mut edges = self.edges_of(required, Node::GRAPH_ROOT, 0)?;
        edges.extend(self.edges_of_own()?);
        edges.extend(self.presence().edges_apart_of_own());
        Ok(edges)
    }

    /// Everything that the root needs; forgets what it was narrowed to.
    pub(crate) fn root_edges(&mut self) -> Result<Vec<Edge>, Unavailable> {
        self.narrowed_root = None;
        self.edges_of_root()
    }

    /// Makes the root need some of what it needs, and nothing else.
    pub(crate) fn narrow_root(&mut self, edges: Vec<Edge>) {
        // A package that the root no longer leads to is not required by it, so it may be needed only for what it
        // provides. Revisions that the root named stay named: a narrowed root chooses among what the whole root allows.
        let places = edges.iter().filter_map(|edge| self.place(edge.node)).collect();
        if self.namers.forget_packages_but(Node::GRAPH_ROOT, &places) {
            self.edges.clear();
        }
        self.narrowed_root = Some(edges);
    }

    /// Makes the root need one of several edges, in addition to what it was narrowed to.
    pub(crate) fn demand_one_of(&mut self, edges: Vec<Edge>) {
        let set = PositionSet::position_range(0, edges.len() as Position);
        let node = self.node(NodeKind::EdgeChoice);
        // What was narrowed, and one of these: `Root` → `EdgeChoice {0, 1}`, whose candidate 0 → the first edge, 1 →
        // the second. The search decides these nodes first (`Turn::Raised`): otherwise it would build a whole answer
        // before it notices that nothing is raised in it.
        self.raised = edges.iter().map(|edge| (edge.node, edge.set.clone())).collect();
        self.one_of = edges;
        self.narrowed_root.get_or_insert_default().push(Edge { node, set });
    }

    /// Whether `set` is what one of the edges that the root needs leaves of `node`, or the choice among them.
    pub(crate) fn is_raised(&self, node: Node, set: &PositionSet) -> bool {
        *self.kind(node) == NodeKind::EdgeChoice
            || self.raised.get(&node).is_some_and(|raised| set.subset_of(raised))
    }
}
