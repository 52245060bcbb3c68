//! `tree`: what depends on what, as trees in which the dependencies of a package are shown once.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::ops::explain::carried::{CarriedVersions, Inside, carried};
use crate::ops::graph::{Edge, Graph, Node};
use crate::ops::session::locked::find_used;
use crate::ops::session::named::{PackageName, Purpose, target};
use crate::ops::{CommandError, Session};

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
    use crate::ops::graph::Vertex;

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
