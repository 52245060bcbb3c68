//! The graph of what is installed: the workspace's packages, and their dependencies in the lock. `tree` is it as trees in
//! which the dependencies of a package are shown once.
//!
//! Built from manifests and lock alone; no registry is contacted, but by `audit`.

#[cfg(feature = "git")]
pub mod affected;
pub mod audit;
mod inventory;
pub mod sbom;
pub mod why;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::inventory::{
    Images, LicensedPackage, Licenses, Undeclared, UsedImage, images, licenses,
};
use crate::lock::{Lockfile, Requested};
use crate::ops::explain::carried::{CarriedVersions, Inside, carried};
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Requirements, check_chosen};
use crate::ops::session::locked::{PackageName, Purpose, find_used, target, version_of};
use crate::ops::{CommandError, Session, Warning};
use crate::reference::{PackageId, Version};
use crate::workspace::Member;

/// A package of the workspace, the command line, or a locked package.
pub type Node = usize;

/// What one node requires of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The required node.
    pub to: Node,
    /// The spec.
    pub spec: String,
}

/// One node.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Vertex {
    /// The display name: a package's id, the path of its folder, or the name in a manifest of the workspace.
    pub name: String,
    /// The id, if it is a package.
    pub id: Option<PackageId>,
    /// The version, if it has one.
    pub version: Option<String>,
    /// Whether it is one of the workspace's own, or the command line.
    #[serde(rename = "root")]
    pub is_root: bool,
    /// What it requires, sorted by name.
    #[serde(skip)]
    pub edges: Vec<Edge>,
}

/// The whole graph; roots come first.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// The nodes.
    pub vertices: Vec<Vertex>,
}

impl Graph {
    /// The graph of a session.
    pub fn load(session: &Session) -> Result<(Self, Arc<Lockfile>), CommandError> {
        let lock = session.lockfile()?.unwrap_or_default();
        let requirements = Requirements::collect(session, lock.extra.clone())?;
        if check_chosen(session, &requirements).is_err() {
            session.events.warning(&Warning::NoLock);
        }
        Ok((Self::new(session, &lock, &requirements), lock))
    }

    /// The graph of what a lock has for these requirements.
    fn new(session: &Session, lock: &Lockfile, requirements: &Requirements) -> Self {
        let mut graph = Self::default();
        let mut by_id: HashMap<PackageId, Vec<Node>> = HashMap::new();
        let mut add = |name: String, id: Option<&PackageId>, version, is_root| {
            let (id, edges) = (id.cloned(), Vec::new());
            graph.vertices.push(Vertex { name, id, version, is_root, edges });
            graph.vertices.len() - 1
        };
        // The numbers of nodes, from which all else follows:
        //
        //     0 … m-1   the members, in the order of the workspace
        //     m         the command line, if an earlier `mu get REF` asked for anything
        //     behind    the locked packages, in the order of the lock
        //
        for member in &session.workspace.members {
            let version = member.manifest.version.as_ref().map(ToString::to_string);
            let node = add(member.manifest.name.to_string(), Some(&member.id), version, true);
            by_id.entry(member.id.clone()).or_default().push(node);
        }
        if !lock.extra.is_empty() {
            add(Requester::CommandLine.to_string(), None, None, true);
        }
        for package in lock.packages.iter().filter(|package| package.source.is_workspace_folder()) {
            let is_it = |member: &Member| member.place == package.source.place;
            // A folder of the workspace is locked under the name that references have for it, which may not be its own.
            // Both names lead to the one node.
            if let Some(node) = session.workspace.members.iter().position(is_it)
                && session.workspace.members[node].id != package.id
            {
                by_id.entry(package.id.clone()).or_default().push(node);
            }
        }
        // A folder is called as Mu.lock calls it.
        for package in lock.packages.iter().filter(|package| !package.source.is_workspace_folder())
        {
            let version = Some(version_of(package));
            let folder = session.shown.folder(&package.id);
            let name = folder.unwrap_or_else(|| package.id.to_string());
            let node = add(name, Some(&package.id), version, false);
            by_id.entry(package.id.clone()).or_default().push(node);
        }
        graph.connect(session, lock, requirements, &by_id);
        graph
    }

    fn connect(
        &mut self,
        session: &Session,
        lock: &Lockfile,
        requirements: &Requirements,
        by_id: &HashMap<PackageId, Vec<Node>>,
    ) {
        // Roots come first, as they were collected.
        let members = session.workspace.members.iter().map(Requester::from_member);
        let roots = members.chain([Requester::CommandLine]).zip(self.roots());
        let roots: BTreeMap<Requester, Node> = roots.collect();
        // What the workspace requires is taken from its manifests, which may be newer than the lock; what packages
        // require of each other, from the lock. A set, because a manifest may say the same in two lists.
        let mut edges: BTreeSet<(Node, Node, String)> = BTreeSet::new();
        for asked in &requirements.asked {
            let Some(from) = roots.get(&asked.by) else { continue };
            let id = &asked.requirement.id;
            // A package of the workspace wins over a locked one, and what is replaced is drawn as its replacement: `^1
            // as acme/old`.
            let local = requirements.local_package(session, id).and_then(|local| {
                let members = &session.workspace.members;
                members.iter().position(|member| member.folder == local.folder)
            });
            // If there are several majors, the requested one.
            let fits = |node: &&Node| {
                let version = self.vertices[**node].version.as_deref();
                let version = version.and_then(|version| Version::parse(version).ok());
                version.is_some_and(|version| asked.requirement.spec.accepts(&version, true))
            };
            let locked = by_id.get(id).map_or(&[][..], Vec::as_slice);
            let locked = || locked.iter().rev().find(fits).or_else(|| locked.last()).copied();
            let to = local.or_else(locked);
            let asked = asked.requirement.to_string();
            if let Some(to) = to {
                edges.insert((*from, to, asked));
            } else if let Some(replaced) = lock.replacement(id) {
                let to = by_id.get(&replaced.by).and_then(|nodes| nodes.last().copied());
                edges.extend(to.map(|to| (*from, to, format!("{asked} as {id}"))));
            }
        }
        for package in &lock.packages {
            let nodes = by_id.get(&package.id).map_or(&[][..], Vec::as_slice);
            let version = Some(version_of(package));
            let is_it = |node: &&Node| self.vertices[**node].version == version;
            let Some(&to) = nodes.iter().find(is_it).or(nodes.last()) else { continue };
            let own = package.requested.iter().map(|one| (one, one.spec.to_string()));
            // Requirements on a package that it replaces apply to it.
            let replaced = lock.replaced.iter().filter(|replaced| replaced.by == package.id);
            let instead = replaced.flat_map(|replaced| {
                let spec = |one: &Requested| format!("{} as {}", one.spec, replaced.id);
                replaced.requested.iter().map(move |one| (one, spec(one)))
            });
            for (requested, spec) in own.chain(instead) {
                let from = PackageId::parse(&requested.by)
                    .ok()
                    .and_then(|id| by_id.get(&id)?.last().copied());
                // A member's requirements are there from its manifest already.
                if let Some(from) =
                    from.filter(|_| !roots.contains_key(&Requester::from_name(&requested.by)))
                {
                    edges.insert((from, to, spec));
                }
            }
        }
        for (from, to, spec) in edges {
            self.vertices[from].edges.push(Edge { to, spec });
        }
        // By id, though a folder is shown by its path: the order must not depend on where it lies.
        let sorted_by = |vertex: &Vertex| match &vertex.id {
            Some(id) if !vertex.is_root => id.to_string(),
            _ => vertex.name.clone(),
        };
        let names: Vec<String> = self.vertices.iter().map(sorted_by).collect();
        for vertex in &mut self.vertices {
            vertex.edges.sort_by(|left, right| names[left.to].cmp(&names[right.to]));
        }
    }

    /// The nodes that no package of the workspace needs: where drawing starts.
    pub fn roots(&self) -> impl Iterator<Item = Node> {
        (0..self.vertices.len()).filter(|node| self.vertices[*node].is_root)
    }

    /// The nodes that are at most `depth` steps from a root, and their edges.
    #[must_use]
    pub fn within(&self, depth: usize) -> Self {
        let mut places: Vec<Option<Node>> = vec![None; self.vertices.len()];
        let mut wave: Vec<Node> = self.roots().collect();
        let mut is_kept = vec![false; self.vertices.len()];
        // One step from the roots in each round. A node is kept the first time, which is on a shortest way.
        for _ in 0..=depth {
            wave.retain(|&node| !std::mem::replace(&mut is_kept[node], true));
            let next = wave.iter().flat_map(|&node| self.vertices[node].edges.iter());
            wave = next.map(|edge| edge.to).filter(|&to| !is_kept[to]).collect();
            if wave.is_empty() {
                break;
            }
        }
        let kept: Vec<Node> = (0..self.vertices.len()).filter(|&node| is_kept[node]).collect();
        for (place, &node) in kept.iter().enumerate() {
            // The numbers change, because nodes are left out; edges to those that are gone go as well.
            places[node] = Some(place);
        }
        let vertices = kept.iter().map(|&node| {
            let mut vertex = self.vertices[node].clone();
            vertex.edges.retain_mut(|edge| places[edge.to].map(|to| edge.to = to).is_some());
            vertex
        });
        Self { vertices: vertices.collect() }
    }

    /// The nodes of a package.
    pub fn find(&self, id: &PackageId) -> Vec<Node> {
        (0..self.vertices.len())
            .filter(|node| self.vertices[*node].id.as_ref() == Some(id))
            .collect()
    }

    /// The nodes of the package that references to `id` lead to: a folder of the workspace can have a manifest with another name.
    pub fn nodes_of(&self, session: &Session, id: &PackageId) -> Vec<Node> {
        // The workspace's packages are the first nodes.
        let own = session.places.member_of(id).and_then(|found| {
            let mut members = session.workspace.members.iter();
            members.position(|member| member.folder == found.folder)
        });
        own.map_or_else(|| self.find(id), |node| vec![node])
    }

    /// The nodes of packages that are in use in several versions.
    pub fn duplicates(&self) -> Vec<Node> {
        let id = |node: Node| self.vertices[node].id.as_ref();
        let is_one = |node: &Node| {
            let mut others = (0..self.vertices.len()).filter(|other| other != node);
            id(*node).is_some() && others.any(|other| id(other) == id(*node))
        };
        let mut found: Vec<Node> = (0..self.vertices.len()).filter(is_one).collect();
        found.sort_by_key(|node| (id(*node), *node));
        found
    }

    /// The requirers of each node, as reversed edges.
    pub fn inverted(&self) -> Vec<Vec<Edge>> {
        let mut inverted: Vec<Vec<Edge>> = vec![Vec::new(); self.vertices.len()];
        for (from, vertex) in self.vertices.iter().enumerate() {
            for edge in &vertex.edges {
                inverted[edge.to].push(Edge { to: from, spec: edge.spec.clone() });
            }
        }
        inverted
    }

    /// Every way from a root to `target`, shortest first; at most `limit`, and whether that is all.
    pub fn paths_to(&self, target: Node, limit: usize) -> (Vec<Vec<Node>>, bool) {
        let mut inverted = self.inverted();
        for edges in &mut inverted {
            // Two requirements of the same package are one path.
            edges.dedup_by_key(|edge| edge.to);
        }
        let mut found = Vec::new();
        let mut is_complete = true;
        // Breadth first, from the target upwards. A path never meets a node twice, so this ends; and since there may be
        // exponentially many, no more than `limit` are open.
        let mut open = VecDeque::from([vec![target]]);
        while let Some(path) = open.pop_front() {
            let last = *path.last().expect("a path has at least its target");
            if self.vertices[last].is_root && (path.len() > 1 || inverted[last].is_empty()) {
                if found.len() == limit {
                    return (found, false);
                }
                found.push(path.iter().rev().copied().collect());
                continue;
            }
            for edge in &inverted[last] {
                if path.contains(&edge.to) {
                    continue;
                }
                // Each of these leads to a root, except for those that are only part of a cycle.
                if open.len() > limit {
                    is_complete = false;
                    break;
                }
                let mut longer = path.clone();
                longer.push(edge.to);
                open.push_back(longer);
            }
        }
        (found, is_complete)
    }

    /// Everything that `from` requires of `to`, in words.
    pub fn spec(&self, from: Node, to: Node) -> String {
        let edges = self.vertices[from].edges.iter().filter(|edge| edge.to == to);
        let asked: Vec<&str> = edges.map(|edge| edge.spec.as_str()).collect();
        asked.join(" and ")
    }
}

/// A package, and what it depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tree {
    /// The display name: a package's id, the path of its folder, or the name in a manifest of the workspace.
    pub name: String,
    /// The id, if it is a package.
    pub id: Option<String>,
    /// The version, if it has one.
    pub version: Option<String>,
    /// Whether it is inside itself, so that nothing is shown below it.
    pub cycle: bool,
    /// Whether its dependencies were shown before.
    pub repeated: bool,
    /// Other versions of a chart that Helm uses, because other charts carry them inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<Inside>,
    /// What it depends on; upside down, what depends on it.
    pub dependencies: Vec<Tree>,
    /// What the package above requires of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// Whether it is one of the workspace's own, or the command line.
    #[serde(skip)]
    pub is_root: bool,
}

/// Which trees are shown.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// Below the workspace's own packages, and what `mu get` was given.
    #[default]
    Workspace,
    /// Below this package of the workspace.
    Member(String),
    /// Below this package, which may be any that is in use.
    Package(String),
    /// Upside down: what needs this package.
    Inverted(String),
    /// Upside down: what needs each version of the packages that are in use in several.
    Duplicates,
}

/// The trees that `roots` names, at most `depth` levels deep.
pub fn dependency_trees(
    session: &Session,
    roots: &Roots,
    depth: usize,
) -> Result<Vec<Tree>, CommandError> {
    let (graph, lock) = Graph::load(session)?;
    let in_use = |text: &str, purpose: Purpose| -> Result<Vec<Node>, CommandError> {
        let name = PackageName::without_version(text, purpose)?;
        // A package of exactly this name, or else one in use that the name can stand for.
        let own = graph.find(&session.id_of_argument(name.reference()));
        match own.is_empty() {
            true => Ok(graph.nodes_of(session, &find_used(session, &lock, &name)?)),
            false => Ok(own),
        }
    };
    let is_inverted = matches!(roots, Roots::Inverted(_) | Roots::Duplicates);
    let roots = match roots {
        Roots::Workspace => graph.roots().collect(),
        Roots::Member(name) => {
            let member = target(session, Some(name), "mu tree -p")?;
            graph.find(&session.workspace.members[member].id)
        }
        Roots::Package(text) => in_use(text, Purpose::Tree)?,
        Roots::Inverted(text) => in_use(text, Purpose::Invert)?,
        Roots::Duplicates => graph.duplicates(),
    };
    let edges = match is_inverted {
        true => graph.inverted(),
        false => graph.vertices.iter().map(|vertex| vertex.edges.clone()).collect(),
    };
    let mut walk = Walk { carried: carried(session, &lock), ..Walk::new(&graph, &edges, depth) };
    Ok(roots.into_iter().map(|root| walk.tree(root, None)).collect())
}

struct Walk<'graph> {
    graph: &'graph Graph,
    edges: &'graph [Vec<Edge>],
    depth: usize,
    seen: HashSet<Node>,
    path: Vec<Node>,
    carried: CarriedVersions,
}

impl<'graph> Walk<'graph> {
    fn new(graph: &'graph Graph, edges: &'graph [Vec<Edge>], depth: usize) -> Self {
        let (seen, path, carried) = (HashSet::new(), Vec::new(), CarriedVersions::new());
        Self { graph, edges, depth, seen, path, carried }
    }

    fn tree(&mut self, node: Node, spec: Option<&str>) -> Tree {
        let vertex = &self.graph.vertices[node];
        let edges = &self.edges[node];
        let cycle = self.path.contains(&node);
        let is_cut = cycle || self.path.len() >= self.depth || edges.is_empty();
        // A node whose dependencies are shown is `seen`; one at which the tree is cut is not, since it may be shown in
        // full elsewhere. A root is always shown in full, also if it was below another one before.
        let repeated = !is_cut && !self.seen.insert(node) && !self.path.is_empty();
        let mut dependencies = Vec::new();
        if !is_cut && !repeated {
            self.path.push(node);
            dependencies.extend(edges.iter().map(|edge| self.tree(edge.to, Some(&edge.spec))));
            self.path.pop();
        }
        let carried = vertex.id.as_ref().and_then(|id| self.carried.get(id));
        Tree {
            name: vertex.name.clone(),
            id: vertex.id.as_ref().map(ToString::to_string),
            version: vertex.version.clone(),
            cycle,
            repeated,
            helm: carried.into_iter().flatten().cloned().collect(),
            dependencies,
            spec: spec.map(str::to_owned),
            is_root: vertex.is_root,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root above layers of two packages, each of which needs both of the next.
    fn layered(layers: usize) -> Graph {
        let count = 1 + 2 * layers;
        let below = |node: usize| match node {
            0 => vec![1, 2],
            _ => {
                (0..2).map(|side| (node - 1) / 2 * 2 + 3 + side).filter(|to| *to < count).collect()
            }
        };
        let edges = |node| below(node).into_iter().map(|to| Edge { to, spec: "^1".to_owned() });
        let vertices = (0..count).map(|node| Vertex {
            name: format!("p{node}"),
            id: None,
            version: Some("1.0.0".to_owned()),
            is_root: node == 0,
            edges: edges(node).collect(),
        });
        Graph { vertices: vertices.collect() }
    }

    fn count(tree: &Tree, is_counted: fn(&Tree) -> bool) -> usize {
        usize::from(is_counted(tree))
            + tree.dependencies.iter().map(|tree| count(tree, is_counted)).sum::<usize>()
    }

    #[test]
    fn what_is_below_a_package_is_told_once() {
        let graph = layered(64);
        let edges: Vec<Vec<Edge>> = graph.vertices.iter().map(|one| one.edges.clone()).collect();
        let tree = Walk::new(&graph, &edges, usize::MAX).tree(0, None);
        // Each arrow is shown once: four from each layer, and two from the root. The last packages need
        // nothing.
        assert_eq!(count(&tree, |_| true), 1 + 2 + 63 * 4);
        assert_eq!(count(&tree, |tree| tree.repeated), 62 * 2);
        assert_eq!(tree.dependencies[0].dependencies[0].spec.as_deref(), Some("^1"));
        let inverted = Walk::new(&graph, &graph.inverted(), usize::MAX).tree(128, None);
        let all = count(&inverted, |_| true);
        assert!(all <= 1 + 2 + 63 * 4 + 2, "{all}");
        assert_eq!(count(&Walk::new(&graph, &edges, 2).tree(0, None), |_| true), 1 + 2 + 4);
    }
}
