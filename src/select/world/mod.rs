//! The graph as strategies walk it: nodes, their candidates, and the edges that requirements become.
//!
//! Grows as it is asked; whatever was found out stays, so that a second search over the same world reads nothing.
//! Nodes that stand for no package (the root, one major of a package, the choice among majors, a capability) make every
//! rule an edge from a candidate to a set of candidates; a strategy needs to know of no rule.

mod asked;
mod budget;
mod capabilities;
mod expect;
mod explore;
mod replacements;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use pubgrub::VersionSet;
use rustc_hash::FxHashMap;

use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable, Universe};
use crate::reference::{PackageId, Version};
use crate::select::candidates::{Candidates, Inquiry};
use crate::select::effort::{Effort, STEPS};
use crate::select::namers::{Namers, Topic, Way};
use crate::select::node::{Edge, Kind, Node};
use crate::select::positions::PositionSet;
use crate::select::{Locked, Majors, Request, Root, Statistics};

use self::asked::Asked;
pub(super) use self::asked::{Ask, AskSet};
use self::capabilities::Capabilities;
pub(super) use self::capabilities::Provider;
use self::replacements::Replacements;

/// Capability → who requires it: the name for people, and the id.
pub(super) type OwnRequires = BTreeMap<String, BTreeMap<String, PackageId>>;

/// The graph, as far as it was walked.
pub(super) struct World<'a> {
    universe: &'a dyn Universe,
    request: &'a Request,
    roots: Cow<'a, [Root]>,
    own_requires: Cow<'a, OwnRequires>,
    locked: BTreeMap<&'a PackageId, Vec<&'a Locked>>,
    direct: BTreeSet<&'a PackageId>,
    kinds: Vec<Kind>,
    nodes: FxHashMap<Kind, Node>,
    /// The nodes of each package that candidates are chosen at.
    lines: FxHashMap<usize, Vec<Node>>,
    packages: Vec<Candidates>,
    places: FxHashMap<PackageId, usize>,
    asked: Asked,
    edges: FxHashMap<(Node, Position), Rc<[Edge]>>,
    namers: Namers,
    /// Whether it is noted of every package who asks for it; most searches never need to know.
    notes_askers: bool,
    capabilities: Capabilities,
    replacements: Replacements,
    is_explored: bool,
    is_outdated: bool,
    narrows_upgrades: bool,
    effort: Effort,
    most_steps: usize,
    /// How often something was tried in vain because of the package at a place.
    tried: FxHashMap<usize, usize>,
    /// If given, all that the root needs.
    narrowed_root: Option<Vec<Edge>>,
    /// The edges of which one is followed, if the root needs that.
    one_of: Vec<Edge>,
    /// The same by node.
    raised: FxHashMap<Node, PositionSet>,
}

impl<'a> World<'a> {
    pub(super) fn new(universe: &'a dyn Universe, request: &'a Request) -> Self {
        let mut locked: BTreeMap<&PackageId, Vec<&Locked>> = BTreeMap::new();
        for entry in &request.locked {
            locked.entry(&entry.id).or_default().push(entry);
        }
        let required = request.roots.iter().flat_map(|root| &root.requirements);
        Self {
            universe,
            request,
            roots: Cow::Borrowed(&request.roots),
            own_requires: Cow::Borrowed(&request.own.requires),
            locked,
            direct: required.map(|requirement| &requirement.id).collect(),
            kinds: vec![Kind::Root],
            nodes: FxHashMap::from_iter([(Kind::Root, Node::ROOT)]),
            lines: FxHashMap::default(),
            packages: Vec::new(),
            places: FxHashMap::default(),
            asked: Asked::default(),
            edges: FxHashMap::default(),
            namers: Namers::default(),
            notes_askers: false,
            capabilities: Capabilities::default(),
            replacements: Replacements::default(),
            is_explored: false,
            is_outdated: false,
            narrows_upgrades: true,
            effort: Effort::default(),
            tried: FxHashMap::default(),
            most_steps: request.settings.patience.unwrap_or(STEPS),
            narrowed_root: None,
            one_of: Vec::new(),
            raised: FxHashMap::default(),
        }
    }

    /// Leaves versions in that cannot be upgraded to, and what is replaced, for a strategy that looks at that at the end.
    pub(super) fn without_narrowing_upgrades(mut self) -> Self {
        self.narrows_upgrades = false;
        self.replacements = Replacements::fixed();
        self
    }

    pub(super) fn universe(&self) -> &'a dyn Universe {
        self.universe
    }

    pub(super) fn request(&self) -> &'a Request {
        self.request
    }

    /// Who asks for what from outside.
    pub(super) fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Which capabilities the workspace's own packages require, and who does.
    pub(super) fn own_requires(&self) -> &OwnRequires {
        &self.own_requires
    }

    /// Makes the workspace's own packages require other capabilities.
    pub(super) fn require_of_own(&mut self, required: OwnRequires) {
        self.own_requires = Cow::Owned(required);
    }

    /// Makes other things be asked for from outside; all that was found out stays.
    pub(super) fn ask(&mut self, roots: Vec<Root>) {
        if self.namers.forget(Node::ROOT) {
            self.edges.clear();
        }
        self.roots = Cow::Owned(roots);
        self.narrowed_root = None;
        self.raised.clear();
    }

    fn inquiry(&self) -> Inquiry<'a> {
        Inquiry { universe: self.universe, settings: &self.request.settings }
    }

    pub(super) fn kind(&self, node: Node) -> &Kind {
        &self.kinds[node.0 as usize]
    }

    /// The candidates at a place that a [`Kind`] names.
    pub(super) fn package(&self, place: usize) -> &Candidates {
        &self.packages[place]
    }

    /// All packages that were read.
    pub(super) fn packages(&self) -> &[Candidates] {
        &self.packages
    }

    /// The place of the package that `node` is about; the root is about none.
    pub(super) fn place(&self, node: Node) -> Option<usize> {
        match self.kind(node) {
            Kind::Root | Kind::OneOf | Kind::Capability(_) | Kind::Role(_) => None,
            Kind::Met(index) => self.place_of_met(*index),
            Kind::Package(place)
            | Kind::Line(place, _)
            | Kind::Majors(place, _)
            | Kind::Named(place, _)
            | Kind::Wanted(place) => Some(*place),
        }
    }

    /// Whether something outside the graph asks for the package that `node` is about.
    pub(super) fn is_direct(&self, node: Node) -> bool {
        self.place(node).is_some_and(|place| self.direct.contains(self.packages[place].id()))
    }

    pub(super) fn statistics(&self) -> Statistics {
        Statistics { packages_read: self.packages.len(), versions_read: self.versions_read() }
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
        let edges: Rc<[Edge]> = self.find_edges(node, position)?.into();
        if matches!(self.kind(node), Kind::Package(_) | Kind::Line(..) | Kind::Majors(..)) {
            self.edges.insert((node, position), Rc::clone(&edges));
        }
        Ok(edges)
    }

    /// All edges that were found so far, but for those from the root.
    pub(super) fn known_edges(&self) -> impl Iterator<Item = (Node, Position, &[Edge])> {
        self.edges.iter().map(|(&(node, position), edges)| (node, position, &**edges))
    }

    fn find_edges(&mut self, node: Node, position: Position) -> Result<Vec<Edge>, Unavailable> {
        match self.kind(node).clone() {
            Kind::Root => {
                if let Some(edges) = self.narrowed_root.clone() {
                    self.note_asked_by_root(&edges);
                    return Ok(edges);
                }
                let roots = self.roots.clone();
                let required = roots.iter().flat_map(|root| &root.requirements);
                let required = required.map(|requirement| self.ask_for(requirement)).collect();
                let mut edges = self.edges_of(required, node, position)?;
                edges.extend(self.edges_of_own()?);
                Ok(edges)
            }
            Kind::Package(place) | Kind::Line(place, _) => {
                let required = self.asks_of(place, position)?.to_vec();
                let mut edges = self.edges_of(required, node, position)?;
                edges.extend(self.naming_edge(place, position));
                edges.extend(self.edges_of_capabilities(place, node, position)?);
                edges.extend(self.edges_of_roles(place, position)?);
                Ok(edges)
            }
            Kind::Majors(place, set) => Ok(vec![self.choice_edge(place, &set, position)]),
            Kind::Named(place, revision) => {
                let topic = Topic::Revision(place, revision);
                Ok(self
                    .namers
                    .edge_to_namer(topic, position)
                    .map(|found| found.0)
                    .into_iter()
                    .collect())
            }
            Kind::Wanted(place) => Ok(self.edges_of_asker(place, position)),
            Kind::Capability(capability) => Ok(self.edges_of_provider(capability, position)),
            Kind::Met(index) => self.edges_of_way(node, index, position),
            Kind::Role(_) => Ok(Vec::new()),
            Kind::OneOf => Ok(vec![self.one_of[position as usize].clone()]),
        }
    }

    /// What the root needs, narrowed or not.
    pub(super) fn root_edges(&mut self) -> Result<Vec<Edge>, Unavailable> {
        self.narrowed_root = None;
        self.find_edges(Node::ROOT, 0)
    }

    /// Makes the root need some of what it needs, and nothing else.
    pub(super) fn narrow_root(&mut self, edges: Vec<Edge>) {
        let places = edges.iter().filter_map(|edge| self.place(edge.node)).collect();
        if self.namers.forget_packages_but(Node::ROOT, &places) {
            self.edges.clear();
        }
        self.narrowed_root = Some(edges);
    }

    /// Notes that nobody else has to ask for what the root was narrowed to.
    fn note_asked_by_root(&mut self, edges: &[Edge]) {
        if !self.notes_askers {
            return;
        }
        for edge in edges {
            if let Some(place) = self.place(edge.node) {
                let way = (Node::ROOT, None);
                self.is_outdated |= self.namers.note(Topic::Package(place), way, 0);
            }
        }
    }

    /// Makes the root need one of several edges, besides what it was narrowed to.
    pub(super) fn demand_one_of(&mut self, edges: Vec<Edge>) {
        let set = PositionSet::between(0, edges.len() as Position);
        let node = self.node(Kind::OneOf);
        self.raised = edges.iter().map(|edge| (edge.node, edge.set.clone())).collect();
        self.one_of = edges;
        self.narrowed_root.get_or_insert_default().push(Edge { node, set });
    }

    /// Whether `set` is what one of the edges that the root demands leaves of `node`, or the choice among them.
    pub(super) fn is_raised(&self, node: Node, set: &PositionSet) -> bool {
        *self.kind(node) == Kind::OneOf
            || self.raised.get(&node).is_some_and(|raised| set.subset_of(raised))
    }

    /// A revision is there only if something that is chosen names it; nothing more is needed if the root does.
    fn naming_edge(&mut self, place: usize, position: Position) -> Option<Edge> {
        self.packages[place].revision(position)?;
        let set = self.namers.of(Topic::Revision(place, position))?;
        Some(Edge { node: self.node(Kind::Named(place, position)), set })
    }

    /// Asks the universe what a candidate requires, and what else its manifest says.
    fn read_requirements(
        &mut self,
        place: usize,
        position: Position,
    ) -> Result<Arc<[Arc<Requirement>]>, Unavailable> {
        let package = &mut self.packages[place];
        let (releases, candidate) = (package.releases(), package.candidate(position));
        let required = self.universe.requirements(releases, candidate)?;
        if releases.is_told() {
            return Ok(required);
        }
        let declared = self.universe.declared(releases, candidate)?;
        if let Some(details) = declared
            && package.declare(&self.request.settings, position, details)
        {
            self.is_outdated = true;
            self.asked.forget_answers();
        }
        Ok(required)
    }

    /// All that is required at a node, as it was written.
    pub(super) fn required_by(
        &mut self,
        node: Node,
        position: Position,
    ) -> Result<Vec<Arc<Requirement>>, Unavailable> {
        Ok(match *self.kind(node) {
            Kind::Package(place) | Kind::Line(place, _) => self.requirements(place, position)?,
            Kind::Majors(..)
            | Kind::Named(..)
            | Kind::Wanted(_)
            | Kind::Capability(_)
            | Kind::Role(_) => Vec::new(),
            Kind::Met(index) => vec![Arc::new(self.met(index).clone())],
            Kind::Root | Kind::OneOf => {
                let requirements = self.roots.iter().flat_map(|root| &root.requirements);
                requirements.cloned().map(Arc::new).collect()
            }
        })
    }

    /// The candidates that match a requirement, with those that the filters took out.
    pub(super) fn matching(
        &mut self,
        place: usize,
        requirement: &Requirement,
    ) -> Result<PositionSet, Unavailable> {
        let inquiry = self.inquiry();
        let matching = self.packages[place].matching(inquiry, requirement)?;
        self.note_outdated(place);
        Ok(matching)
    }

    /// Edges in an order that does not depend on the order in which requirements are written.
    fn edges_of(
        &mut self,
        mut required: Vec<Ask>,
        by: Node,
        position: Position,
    ) -> Result<Vec<Edge>, Unavailable> {
        required.sort_unstable_by(|&one, &two| self.requirement(one).cmp(self.requirement(two)));
        self.expect(required.iter().map(|&ask| &self.requirement(ask).id));
        let (mut edges, request) = (Vec::with_capacity(required.len()), self.request);
        for ask in required {
            if self.is_own(ask) {
                let own = request.own_package(&self.requirement(ask).id);
                edges.extend(own.into_iter().flat_map(|(own, _)| self.edges_of_local(own)));
                continue;
            }
            let (place, set) = self.answer(ask)?;
            let set = set.clone();
            if self.notes_askers && self.place(by) != Some(place) {
                self.is_outdated |= self.namers.note(Topic::Package(place), (by, None), position);
            }
            if let Some(edge) = self.edge_to_ways_for(ask) {
                edges.push(edge);
                continue;
            }
            if self.packages[place].is_named_by(self.requirement(ask)) {
                self.note_named(place, &set, (by, None), position);
            }
            let mut edge = self.edge_to(place, set);
            // A package may need itself; another version of itself it can never have.
            if edge.node == by {
                if edge.set.holds(position) {
                    continue;
                }
                edge.set = PositionSet::default();
            }
            edges.push(edge);
        }
        edges.sort_by_key(|edge| edge.node);
        edges.dedup();
        Ok(edges)
    }

    /// Notes that `by` names the revisions in `set`.
    fn note_named(&mut self, place: usize, set: &PositionSet, by: Way, position: Position) {
        let package = &self.packages[place];
        for revision in set.iter().filter(|&named| package.revision(named).is_some()) {
            self.is_outdated |= self.namers.note(Topic::Revision(place, revision), by, position);
        }
    }

    /// The place of the package that a requirement asks for, or of what stands for it, and the candidates that it accepts.
    pub(super) fn accepted(
        &mut self,
        requirement: &Requirement,
    ) -> Result<(usize, PositionSet), Unavailable> {
        let ask = self.ask_for(requirement);
        let (place, set) = self.answer(ask)?;
        Ok((place, set.clone()))
    }

    /// The edge that a requirement becomes; none if the workspace itself has the package.
    pub(super) fn edge(&mut self, requirement: &Requirement) -> Result<Option<Edge>, Unavailable> {
        let ask = self.ask_for(requirement);
        self.edge_for(ask)
    }

    /// The same of a requirement that has a number.
    pub(super) fn edge_for(&mut self, ask: Ask) -> Result<Option<Edge>, Unavailable> {
        if self.is_own(ask) {
            return Ok(None);
        }
        let (place, set) = self.answer(ask)?;
        let set = set.clone();
        Ok(Some(match self.edge_to_ways_for(ask) {
            Some(edge) => edge,
            None => self.edge_to(place, set),
        }))
    }

    /// The edge to some candidates of a package.
    pub(super) fn edge_to(&mut self, place: usize, set: PositionSet) -> Edge {
        if self.request.settings.majors == Majors::One {
            return Edge { node: self.node(Kind::Package(place)), set };
        }
        let majors = self.majors(place, &set);
        match majors.as_slice() {
            [] => Edge { node: self.node(Kind::Line(place, 0)), set },
            [major] => Edge { node: self.node(Kind::Line(place, *major)), set },
            several => {
                let all = PositionSet::between(0, several.len() as Position);
                Edge { node: self.node(Kind::Majors(place, set)), set: all }
            }
        }
    }

    /// The candidates that an edge ends at: those of one major, if it goes by way of a choice among majors.
    pub(super) fn choice_edge(
        &mut self,
        place: usize,
        set: &PositionSet,
        choice: Position,
    ) -> Edge {
        let major = self.majors(place, set)[choice as usize];
        let package = &self.packages[place];
        let set = set.iter().filter(|&position| package.major(position) == major).collect();
        Edge { node: self.node(Kind::Line(place, major)), set }
    }

    /// The candidate that an edge leads to by `choices`: its package's place, and its position.
    pub(super) fn reached(
        &mut self,
        mut edge: Edge,
        choices: &dyn Fn(Node) -> Option<Position>,
    ) -> Result<Option<(usize, Position)>, Unavailable> {
        loop {
            let choice = choices(edge.node);
            if let Kind::Met(index) = *self.kind(edge.node) {
                // What was met only after the choice was made replaces nothing in it.
                edge = self.edge_of_way(index, choice.unwrap_or(0))?;
                continue;
            }
            let Some(choice) = choice else { return Ok(None) };
            edge = match self.kind(edge.node).clone() {
                Kind::Majors(place, set) => self.choice_edge(place, &set, choice),
                _ => return Ok(self.place(edge.node).map(|place| (place, choice))),
            };
        }
    }

    /// The majors of the candidates in `set`, ascending.
    pub(super) fn majors(&self, place: usize, set: &PositionSet) -> Vec<u64> {
        let package = &self.packages[place];
        let majors: BTreeSet<u64> = set.iter().map(|position| package.major(position)).collect();
        majors.into_iter().collect()
    }

    /// The place of a package, whose releases are read if they were not yet.
    fn find(&mut self, id: &PackageId) -> Result<usize, Unavailable> {
        if let Some(&place) = self.places.get(id) {
            return Ok(place);
        }
        let request = self.request;
        let locked = self.locked.get(id).map(Vec::as_slice).unwrap_or_default();
        let installed: Vec<&Version> = match request.installed.get(id) {
            Some(version) => vec![version],
            None => locked.iter().filter_map(|locked| locked.version.as_ref()).collect(),
        };
        let kept: Vec<&Locked> =
            locked.iter().copied().filter(|_| !request.update.moves(id)).collect();
        let mut package = Candidates::gather(self.inquiry(), id, &kept, &installed)?;
        if self.narrows_upgrades {
            package.narrow_upgrades();
        }
        let place = self.packages.len();
        self.packages.push(package);
        self.places.insert(id.clone(), place);
        self.note_provided(place);
        self.note_replaced(place);
        Ok(place)
    }

    /// What the node of a package stands for, of which there may be one for each major.
    pub(super) fn line(&self, place: usize, major: u64) -> Kind {
        match self.request.settings.majors {
            Majors::One => Kind::Package(place),
            Majors::Many => Kind::Line(place, major),
        }
    }

    /// That node.
    pub(super) fn line_node(&mut self, place: usize, major: u64) -> Node {
        self.node(self.line(place, major))
    }

    /// The nodes of a package that candidates of it are chosen at.
    pub(super) fn nodes_of(&self, place: usize) -> impl Iterator<Item = Node> {
        self.lines.get(&place).into_iter().flatten().copied()
    }

    /// The node that stands for something.
    pub(super) fn node(&mut self, kind: Kind) -> Node {
        if let Some(&node) = self.nodes.get(&kind) {
            return node;
        }
        let node = Node(u32::try_from(self.kinds.len()).expect("nobody has so many packages"));
        if let Kind::Package(place) | Kind::Line(place, _) = kind {
            self.lines.entry(place).or_default().push(node);
        }
        self.kinds.push(kind.clone());
        self.nodes.insert(kind, node);
        node
    }

    /// Whether edges that were handed out miss a revision, or who names it. Asking forgets it.
    pub(super) fn take_outdated(&mut self) -> bool {
        let is_outdated = std::mem::take(&mut self.is_outdated);
        if is_outdated {
            self.namers.forget_what_was_handed_out();
            self.edges.clear();
        }
        is_outdated
    }
}
