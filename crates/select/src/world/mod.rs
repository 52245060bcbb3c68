//! The graph as strategies walk it: nodes, their candidates, and the edges that requirements become.
//!
//! It grows on demand and forgets nothing, so a second search over the same world reads nothing. Nodes that are not packages (the
//! root, one major of a package, the choice among majors, a capability) turn every rule into an edge from a candidate to a set of
//! candidates, so strategies need to know no rules. The root has the requirements from outside; a search can be limited to some
//! of them, or to something else. What is known of packages is [`Packages`].

mod capabilities;
mod explore;
mod nodes;
mod packages;
mod providing;
pub(super) mod stand_ins;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use mu_manifest::reference::{PackageId, VersionSpec};
use pubgrub::VersionSet;
use rustc_hash::FxHashMap;

use crate::candidates::Candidates;
use crate::effort::{NAMED, STEPS, Unfinished};
use crate::namers::{Namer, Namers, Topic};
use crate::node::{Edge, MajorLine, Node, NodeKind, PackageIndex, RequirementIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::universe::{Requirement, Unavailable, Universe};
use crate::{Majors, RootRequirer, SelectionRequest};

use self::capabilities::Replacements;
pub(super) use self::capabilities::{CapabilityProvider, ChosenPackage};
pub(super) use self::explore::{explore, look_ahead};
use self::nodes::Nodes;
pub(super) use self::nodes::RequirementSet;
pub(super) use self::packages::Packages;
use self::providing::Presence;
pub(super) use self::providing::is_opponent;
pub(super) use crate::effort::Budget;

/// Capability → what requires it: the display name, and the id.
pub(super) type OwnRequires = BTreeMap<String, BTreeMap<String, PackageId>>;

/// The part of the graph that was walked.
pub(super) struct World<'a> {
    pub(super) packages: Packages<'a>,
    pub(super) budget: Budget,
    nodes: Nodes,
    /// The needs of candidates that do not change during a search.
    edges: FxHashMap<(Node, Position), Rc<[Edge]>>,
    namers: Namers,
    /// Whether the requirers of every package are recorded; most searches never need them.
    notes_askers: bool,
    is_explored: bool,
    /// The roots and their requirements; [`World::ask`] changes them.
    pub(super) roots: Cow<'a, [RootRequirer]>,
    /// The capabilities that the workspace's own packages require, and which of them do.
    pub(super) own_requires: Cow<'a, OwnRequires>,
    /// The requirements from outside, of any root.
    direct: BTreeSet<&'a PackageId>,
    /// If given, everything that the root needs.
    narrowed_root: Option<Vec<Edge>>,
    /// The edges of which one is followed, if the root needs that.
    one_of: Vec<Edge>,
    /// The sets of the edges in `one_of`, by the node that they lead to.
    raised: FxHashMap<Node, PositionSet>,
    /// How many packages may be there only for what they provide, if that is limited.
    pub(super) slots: Option<Position>,
    /// The requirements that were followed ahead of a search.
    pub(super) met_ahead: RequirementSet,
}

impl<'a> World<'a> {
    pub(super) fn new(universe: &'a dyn Universe, request: &'a SelectionRequest) -> Self {
        let required = request.roots.iter().flat_map(|root| &root.requirements);
        Self {
            packages: Packages::new(universe, request),
            budget: Budget::new(request.settings.patience.unwrap_or(STEPS)),
            nodes: Nodes::new(request.settings.majors),
            edges: FxHashMap::default(),
            namers: Namers::default(),
            notes_askers: false,
            is_explored: false,
            roots: Cow::Borrowed(&request.roots),
            own_requires: Cow::Borrowed(&request.own.requires),
            direct: required.map(|requirement| &requirement.id).collect(),
            narrowed_root: None,
            one_of: Vec::new(),
            raised: FxHashMap::default(),
            slots: None,
            met_ahead: RequirementSet::default(),
        }
    }

    /// Keeps versions that cannot be reached by an upgrade, and replaced packages, for a strategy that checks
    /// these at the end.
    pub(super) fn without_narrowing_upgrades(mut self) -> Self {
        self.packages.narrows_upgrades = false;
        self.packages.replacements = Replacements::fixed();
        self
    }

    pub(super) fn universe(&self) -> &'a dyn Universe {
        self.packages.universe
    }

    pub(super) fn request(&self) -> &'a SelectionRequest {
        self.packages.request
    }

    /// The candidates of a package.
    pub(super) fn package(&self, place: PackageIndex) -> &Candidates {
        self.packages.get(place)
    }

    /// The requirement with a number.
    pub(super) fn requirement(&self, need: RequirementIndex) -> &Arc<Requirement> {
        self.packages.requirement(need)
    }

    /// The package that a requirement names, or the override of it, and the candidates that the requirement
    /// accepts.
    pub(super) fn accepted(
        &mut self,
        requirement: &Requirement,
    ) -> Result<(PackageIndex, PositionSet), Unavailable> {
        self.packages.find_accepted(requirement)
    }

    pub(super) fn kind(&self, node: Node) -> &NodeKind {
        self.nodes.kind(node)
    }

    /// The node that represents something.
    pub(super) fn node(&mut self, kind: NodeKind) -> Node {
        self.nodes.node(kind)
    }

    /// The nodes of a package at which its candidates are chosen.
    pub(super) fn nodes_of_package(&self, place: PackageIndex) -> impl Iterator<Item = Node> {
        self.nodes.of_package(place)
    }

    /// The package that a node is about; `None` for the root.
    pub(super) fn place(&self, node: Node) -> Option<PackageIndex> {
        match self.kind(node) {
            NodeKind::Root
            | NodeKind::EdgeChoice
            | NodeKind::ProviderChoice(_)
            | NodeKind::Occupant(_)
            | NodeKind::Opponent(_)
            | NodeKind::SlotChoice(_)
            | NodeKind::ProviderSlot(_) => None,
            NodeKind::ReplacementChoice(need) => self.packages.place(&self.requirement(*need).id),
            NodeKind::Versions(MajorLine { place, .. })
            | NodeKind::MajorChoice(place, _)
            | NodeKind::RevisionNamer(place, _)
            | NodeKind::PackageRequirer(place) => Some(*place),
        }
    }

    /// What the candidate at `position` of `node` needs, by node.
    pub(super) fn edges(
        &mut self,
        node: Node,
        position: Position,
    ) -> Result<Rc<[Edge]>, Unavailable> {
        if let Some(edges) = self.edges.get(&(node, position)) {
            return Ok(Rc::clone(edges));
        }
        // Only edges of packages are worth keeping: they cost a look into a manifest. Those of the root change with
        // what is asked, and those of namers, requirers and providers grow whenever one more of them becomes known.
        // What is kept may become outdated as well; then `take_outdated` drops all of it.
        let edges: Rc<[Edge]> = self.find_edges(node, position)?.into();
        if matches!(self.kind(node), NodeKind::Versions(_) | NodeKind::MajorChoice(..)) {
            self.edges.insert((node, position), Rc::clone(&edges));
        }
        Ok(edges)
    }

    /// All edges that were found so far, except those from the root.
    pub(super) fn known_edges(&self) -> impl Iterator<Item = (Node, Position, &[Edge])> {
        self.edges.iter().map(|(&(node, position), edges)| (node, position, &**edges))
    }

    fn find_edges(&mut self, node: Node, position: Position) -> Result<Vec<Edge>, Unavailable> {
        match self.kind(node).clone() {
            NodeKind::Root => self.edges_of_root(),
            NodeKind::Versions(MajorLine { place, .. }) => {
                // The requirements come first: reading them reads the manifest, which may rule the version out, and
                // which says what a version in a repository provides, replaces and conflicts with. Each of these calls
                // may find that an earlier answer is outdated. None looks at that: the search does, once it has all
                // edges, and starts again.
                let required = self.packages.needs_of(place, position)?.to_vec();
                let mut edges = self.edges_of(required, node, position)?;
                edges.extend(self.naming_edge(place, position));
                edges.extend(self.edges_of_capabilities(place, node, position)?);
                let mut presence = self.presence();
                edges.extend(presence.edges_of_roles(place, position)?);
                edges.extend(presence.edges_apart(place, position)?);
                Ok(edges)
            }
            NodeKind::MajorChoice(place, set) => {
                let package = self.packages.get(place);
                Ok(vec![self.nodes.choice_edge(place, package, &set, position)])
            }
            NodeKind::RevisionNamer(place, revision) => {
                let topic = Topic::Revision(place, revision);
                let found = self.namers.edge_to_namer(topic, position);
                Ok(found.map(|(edge, _)| edge).into_iter().collect())
            }
            NodeKind::PackageRequirer(place) => Ok(self.edges_of_asker(place, position)),
            NodeKind::ProviderChoice(capability) => {
                Ok(self.edges_of_provider(capability, position))
            }
            NodeKind::ReplacementChoice(need) => self.edges_of_way(node, need, position),
            NodeKind::SlotChoice(PackageIndex(taker)) => {
                // The number of the package is its position in the slot. So two packages that want the same slot
                // contradict each other: `ProviderSlot(0) {3}` and `ProviderSlot(0) {7}` have nothing in common.
                let set = PositionSet::singleton(taker as Position);
                Ok(vec![Edge { node: self.node(NodeKind::ProviderSlot(position)), set }])
            }
            // These need nothing. They are only there so that the sets of all who lead to them are intersected.
            NodeKind::Occupant(_) | NodeKind::Opponent(_) | NodeKind::ProviderSlot(_) => {
                Ok(Vec::new())
            }
            NodeKind::EdgeChoice => Ok(vec![self.one_of[position as usize].clone()]),
        }
    }

    /// A revision is available only if a chosen package names it, and a yanked version that is not locked
    /// only if the root names it. If the root does, nothing more is needed.
    fn naming_edge(&mut self, place: PackageIndex, position: Position) -> Option<Edge> {
        let package = self.package(place);
        if package.revision(position).is_none() && !package.is_only_pinned(position) {
            return None;
        }
        let set = self.namers.named_positions(Topic::Revision(place, position))?;
        Some(Edge { node: self.node(NodeKind::RevisionNamer(place, position)), set })
    }

    /// Sorts edges, so that the order of written requirements does not matter.
    fn edges_of(
        &mut self,
        mut required: Vec<RequirementIndex>,
        by: Node,
        position: Position,
    ) -> Result<Vec<Edge>, Unavailable> {
        // The order of edges decides which packages are read first, and which of several conflicts is found. It must
        // not be the order in which somebody wrote a manifest.
        required.sort_unstable_by(|&one, &two| self.requirement(one).cmp(self.requirement(two)));
        self.packages.expect(required.iter().map(|&need| &self.requirement(need).id));
        let (mut edges, request) = (Vec::with_capacity(required.len()), self.request());
        for need in required {
            if self.packages.is_resolved_to_own(need) {
                // A package of the workspace needs no candidate. But it is then the provider of what it provides: `a`
                // requires the member `m`, which provides `c/v1/N`, and so no other package may provide that.
                let own = request.own_package(&self.requirement(need).id);
                edges.extend(
                    own.into_iter().flat_map(|(own, _)| self.presence().edges_of_local(own)),
                );
                continue;
            }
            let (place, set) = self.packages.meaning(need)?;
            let set = set.clone();
            // That a package requires itself is no reason for it to be there.
            if self.notes_askers && self.place(by) != Some(place) {
                self.note_namer(Topic::Package(place), Namer::by_name(by), position);
            }
            // A root that names a withdrawn version exactly allows it.
            if by == Node::GRAPH_ROOT && matches!(self.requirement(need).spec, VersionSpec::Pin(_))
            {
                let pinned = set.iter().filter(|&at| self.packages.get(place).is_only_pinned(at));
                let root = Namer::by_name(Node::GRAPH_ROOT);
                self.packages.is_outdated |= self.namers.note_all(place, pinned, root, 0);
            }
            // If others can replace the package, each way to meet the requirement leads on from a node of its own, and
            // revisions are named from there (`edges_of_way`): a replacement names none.
            if let Some(edge) = self.edge_to_ways(need) {
                edges.push(edge);
                continue;
            }
            // A range may happen to hold the version of a revision. That does not name it.
            if self.package(place).is_named_by(self.requirement(need)) {
                self.note_named(place, &set, Namer::by_name(by), position);
            }
            let mut edge = self.edge_to(place, set);
            // A package may need itself, but never another version of itself.
            if edge.node == by {
                if edge.set.holds(position) {
                    continue;
                }
                edge.set = PositionSet::default();
            }
            edges.push(edge);
        }
        // Requirements that mean the same become one edge: `a ^1` and `a >=1 <2`, as they stand in two lists of one
        // manifest. An equal one that is not adjacent stays, which costs a little time and changes nothing.
        edges.sort_by_key(|edge| edge.node);
        edges.dedup();
        Ok(edges)
    }

    /// Notes that a candidate of `by` names something.
    fn note_namer(&mut self, topic: Topic, by: Namer, candidate: Position) {
        self.packages.is_outdated |= self.namers.note(topic, by, candidate);
    }

    /// Notes that a candidate of `by` names the revisions in `set`.
    fn note_named(
        &mut self,
        place: PackageIndex,
        set: &PositionSet,
        by: Namer,
        candidate: Position,
    ) {
        let package = self.packages.get(place);
        let revisions = set.iter().filter(|&at| package.revision(at).is_some());
        self.packages.is_outdated |= self.namers.note_all(place, revisions, by, candidate);
    }

    /// The edge for a requirement; `None` if the workspace itself has the package.
    pub(super) fn edge(&mut self, requirement: &Requirement) -> Result<Option<Edge>, Unavailable> {
        let need = self.packages.need_for(requirement);
        self.edge_for(need)
    }

    /// The edge for the requirement with this number; `None` if the workspace itself has the package.
    pub(super) fn edge_for(&mut self, need: RequirementIndex) -> Result<Option<Edge>, Unavailable> {
        if self.packages.is_resolved_to_own(need) {
            return Ok(None);
        }
        let (place, set) = self.packages.meaning(need)?;
        let set = set.clone();
        Ok(Some(match self.edge_to_ways(need) {
            Some(edge) => edge,
            None => self.edge_to(place, set),
        }))
    }

    /// The edge to some candidates of a package.
    pub(super) fn edge_to(&mut self, place: PackageIndex, set: PositionSet) -> Edge {
        self.nodes.edge_to_candidates(place, self.packages.get(place), set)
    }

    /// What is there once something is chosen.
    fn presence(&mut self) -> Presence<'_, 'a> {
        Presence { packages: &mut self.packages, nodes: &mut self.nodes }
    }

    /// The candidate that an edge leads to by `choices`.
    pub(super) fn reached(
        &mut self,
        mut edge: Edge,
        choices: &dyn Fn(Node) -> Option<Position>,
    ) -> Result<Option<(PackageIndex, Position)>, Unavailable> {
        // Ends: a way leads to versions or to a choice of majors, and a choice of majors leads to versions.
        loop {
            let choice = choices(edge.node);
            if let NodeKind::ReplacementChoice(need) = *self.kind(edge.node) {
                // A replacement that became known only after the choice changes nothing in it.
                edge = self.edge_of_way(need, choice.unwrap_or(0))?;
                continue;
            }
            let Some(choice) = choice else { return Ok(None) };
            edge = match self.kind(edge.node).clone() {
                NodeKind::MajorChoice(place, set) => {
                    self.nodes.choice_edge(place, self.packages.get(place), &set, choice)
                }
                _ => return Ok(self.place(edge.node).map(|place| (place, choice))),
            };
        }
    }

    /// How many majors of a package may be chosen.
    pub(super) fn allowed_majors(&self) -> Majors {
        self.nodes.majors
    }

    /// Changes how many majors of a package may be chosen; everything that was read stays.
    pub(super) fn change_majors_limit(&mut self, majors: Majors) {
        self.nodes.majors = majors;
        self.edges.clear();
    }

    /// The line of a candidate.
    pub(super) fn line(&self, place: PackageIndex, position: Position) -> MajorLine {
        let package = self.package(place);
        match self.nodes.majors {
            Majors::One if !package.is_side_by_side => MajorLine { place, major: 0 },
            _ => MajorLine { place, major: package.major(position) },
        }
    }

    /// Whether edges that were handed out lack a revision, or what names it. The call resets this.
    pub(super) fn take_outdated(&mut self) -> bool {
        // Kept edges may hold answers that are too short now. Without them, every answer is asked for again, so nothing
        // that is noted from here on is too late for one.
        let is_outdated = std::mem::take(&mut self.packages.is_outdated);
        if is_outdated {
            self.namers.handed_out.clear();
            self.edges.clear();
        }
        is_outdated
    }
}

/// Describes a search that took too many steps.
pub(super) fn unfinished(world: &World<'_>) -> Unfinished {
    let returns = world.budget.returns(|node| world.place(node)).into_iter();
    let mut packages: Vec<_> =
        returns.map(|(count, place)| (count, &world.package(place).id)).collect();
    packages.sort_unstable();
    let others = packages.len().saturating_sub(NAMED);
    let packages = packages.into_iter().take(NAMED).map(|(_, id)| id.clone()).collect();
    let base = world.request().settings.base.clone();
    Unfinished { steps: world.budget.most, packages, others, base }
}

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
    fn edges_of_root(&mut self) -> Result<Vec<Edge>, Unavailable> {
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
