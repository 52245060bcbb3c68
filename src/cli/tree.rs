//! `mu tree`.

use std::collections::HashSet;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::{Context, Ending, Stop};
use crate::ops::Scope;
use crate::ops::graph::{Edge, Graph, Node};
use crate::ops::update::find_used;
use crate::reference::Reference;
use crate::report::{FAINT, STRONG};

#[derive(Debug, Args)]
#[command(after_help = "\
A package that was shown above already is marked (*) and not shown again; one that is inside itself is \
marked (cycle).

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
        let trees: Vec<Value> = roots
            .iter()
            .map(|root| to_json(&graph, &edges, *root, depth, &mut Vec::new()))
            .collect();
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

fn to_json(
    graph: &Graph,
    edges: &[Vec<Edge>],
    node: Node,
    depth: usize,
    path: &mut Vec<Node>,
) -> Value {
    let vertex = &graph.vertices[node];
    let in_cycle = path.contains(&node);
    let below: Vec<Value> = if in_cycle || path.len() >= depth {
        Vec::new()
    } else {
        path.push(node);
        let below = edges[node]
            .iter()
            .map(|edge| {
                let mut value = to_json(graph, edges, edge.to, depth, path);
                value["spec"] = json!(edge.spec);
                value
            })
            .collect();
        path.pop();
        below
    };
    json!({
        "name": vertex.name,
        "id": vertex.id.as_ref().map(ToString::to_string),
        "version": vertex.version,
        "cycle": in_cycle,
        "dependencies": below,
    })
}
