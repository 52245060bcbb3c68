//! `mu tree`.

use std::collections::HashSet;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::{Context, Ending, Stop};
use crate::ops::Scope;
use crate::ops::graph::{Edge, Graph, Node};
use crate::ops::session::locked::find_used;
use crate::reference::Reference;
use crate::report::{FAINT, STRONG};

#[derive(Debug, Args)]
#[command(after_help = "\
What is below a package is shown once: where the package comes again, it is marked (*); one that is inside itself is \
marked (cycle). With --json these are `repeated` and `cycle`.

Examples:
  mu tree
  mu tree --depth 1
  mu tree --invert aws/vpc             who needs it")]
pub(crate) struct Arguments {
    /// Show what needs this package, upside down
    #[arg(short, long, value_name = "PKG")]
    invert: Option<String>,
    /// Show no more than N levels
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
}

struct Drawing<'graph> {
    graph: &'graph Graph,
    edges: Vec<Vec<Edge>>,
    depth: usize,
    shown: HashSet<Node>,
    text: String,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let session = context.open(Scope::Workspace)?;
    let (graph, lock) = Graph::load(&session)?;
    let (roots, edges) = match &arguments.invert {
        Some(text) => {
            let reference = Reference::parse(text).map_err(crate::ops::CommandError::from)?;
            let id = find_used(&session, &lock, &reference)?;
            (graph.find(&id), graph.inverted())
        }
        None => {
            let edges = graph.vertices.iter().map(|vertex| vertex.edges.clone()).collect();
            (graph.roots().collect(), edges)
        }
    };
    let depth = arguments.depth.unwrap_or(usize::MAX);
    if context.shell.is_json() {
        let (told, path) = (HashSet::new(), Vec::new());
        let mut telling = Telling { graph: &graph, edges: &edges, depth, told, path };
        let trees: Vec<Value> = roots.into_iter().map(|root| telling.tell(root)).collect();
        context.json(&json!({ "roots": trees }))?;
        return Ok(0);
    }
    let mut drawing =
        Drawing { graph: &graph, edges, depth, shown: HashSet::new(), text: String::new() };
    for root in roots {
        drawing.text.push_str(&format!("{}\n", drawing.name(root)));
        drawing.shown.insert(root);
        drawing.below(root, "", &mut vec![root]);
    }
    if drawing.text.is_empty() {
        context.shell.status("nothing is installed here");
        return Ok(0);
    }
    let text = std::mem::take(&mut drawing.text);
    context.print(&text).map_err(|stop: Stop| stop)?;
    Ok(0)
}

impl Drawing<'_> {
    fn name(&self, node: Node) -> String {
        let vertex = &self.graph.vertices[node];
        let style = if vertex.is_root { STRONG } else { anstyle::Style::new() };
        match &vertex.version {
            Some(version) => format!("{style}{}{style:#} {version}", vertex.name),
            None => format!("{style}{}{style:#}", vertex.name),
        }
    }

    fn below(&mut self, node: Node, indent: &str, path: &mut Vec<Node>) {
        if path.len() > self.depth {
            return;
        }
        let edges = self.edges[node].clone();
        for (index, edge) in edges.iter().enumerate() {
            let is_last = index + 1 == edges.len();
            let branch = if is_last { "└── " } else { "├── " };
            let in_cycle = path.contains(&edge.to);
            let again =
                !in_cycle && self.shown.contains(&edge.to) && !self.edges[edge.to].is_empty();
            let mark = match (in_cycle, again) {
                (true, _) => " (cycle)",
                (_, true) => " (*)",
                _ => "",
            };
            let name = self.name(edge.to);
            let spec = &edge.spec;
            self.text.push_str(&format!(
                "{FAINT}{indent}{branch}{FAINT:#}{name} {FAINT}{spec}{mark}{FAINT:#}\n"
            ));
            if in_cycle || again {
                continue;
            }
            self.shown.insert(edge.to);
            let deeper = format!("{indent}{}", if is_last { "    " } else { "│   " });
            path.push(edge.to);
            self.below(edge.to, &deeper, path);
            path.pop();
        }
    }
}

/// The same as one JSON value for each root, in which what is below a package is told once.
struct Telling<'graph> {
    graph: &'graph Graph,
    edges: &'graph [Vec<Edge>],
    depth: usize,
    told: HashSet<Node>,
    path: Vec<Node>,
}

impl Telling<'_> {
    fn tell(&mut self, node: Node) -> Value {
        let vertex = &self.graph.vertices[node];
        let in_cycle = self.path.contains(&node);
        let is_cut = in_cycle || self.path.len() >= self.depth || self.edges[node].is_empty();
        let is_repeated = !is_cut && !self.told.insert(node) && !self.path.is_empty();
        let mut below: Vec<Value> = Vec::new();
        if !is_cut && !is_repeated {
            self.path.push(node);
            for edge in &self.edges[node] {
                let mut value = self.tell(edge.to);
                value["spec"] = json!(edge.spec);
                below.push(value);
            }
            self.path.pop();
        }
        json!({
            "name": vertex.name,
            "id": vertex.id.as_ref().map(ToString::to_string),
            "version": vertex.version,
            "cycle": in_cycle,
            "repeated": is_repeated,
            "dependencies": below,
        })
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

    fn told(graph: &Graph, edges: &[Vec<Edge>], root: Node, depth: usize) -> Value {
        Telling { graph, edges, depth, told: HashSet::new(), path: Vec::new() }.tell(root)
    }

    fn count(value: &Value, marked: &str) -> usize {
        let below = value["dependencies"].as_array().expect("is a list");
        usize::from(marked.is_empty() || value[marked] == true)
            + below.iter().map(|value| count(value, marked)).sum::<usize>()
    }

    #[test]
    fn json_tells_what_is_below_a_package_once() {
        let graph = layered(64);
        let edges: Vec<Vec<Edge>> = graph.vertices.iter().map(|one| one.edges.clone()).collect();
        let value = told(&graph, &edges, 0, usize::MAX);
        // Each arrow is told once: four from each layer, and two from the root. The last packages need nothing.
        assert_eq!(count(&value, ""), 1 + 2 + 63 * 4);
        assert_eq!(count(&value, "repeated"), 62 * 2);
        assert_eq!(value["dependencies"][0]["dependencies"][0]["spec"], "^1");
        let inverted = told(&graph, &graph.inverted(), 128, usize::MAX);
        assert!(count(&inverted, "") <= 1 + 2 + 63 * 4 + 2, "{}", count(&inverted, ""));
        assert_eq!(count(&told(&graph, &edges, 0, 2), ""), 1 + 2 + 4);
    }
}
