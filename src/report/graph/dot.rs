//! The graph for Graphviz, in its language DOT.

use crate::ops::graph::Graph;
use crate::report::graph::{lines, texts};

/// The graph in DOT: `mu graph --format dot | dot -Tpng`.
pub fn dot(graph: &Graph) -> String {
    let mut text = String::from(
        "digraph dependencies {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"monospace\"];\n  \
         edge [fontname=\"monospace\", fontsize=11];\n",
    );
    for (node, vertex) in graph.vertices.iter().enumerate() {
        let (name, version) = texts(vertex);
        let label = match version {
            Some(version) => format!("{}\\n{}", escaped(&name), escaped(&version)),
            None => escaped(&name),
        };
        let own = if vertex.is_root { ", style=\"rounded,bold\"" } else { "" };
        text.push_str(&format!("  n{node} [label=\"{label}\"{own}];\n"));
    }
    for line in lines(graph) {
        let label = escaped(&line.label);
        text.push_str(&format!("  n{} -> n{} [label=\"{label}\"];\n", line.from, line.to));
    }
    text.push_str("}\n");
    text
}

/// Text between quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
