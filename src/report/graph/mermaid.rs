//! The graph for Mermaid, which many Markdown viewers draw.

use crate::ops::graph::Graph;
use crate::report::graph::{lines, texts};

/// The graph as a Mermaid flowchart.
pub fn mermaid(graph: &Graph) -> String {
    let mut text = String::from("flowchart LR\n");
    for (node, vertex) in graph.vertices.iter().enumerate() {
        let (name, version) = texts(vertex);
        let label = match version {
            Some(version) => format!("{}<br/>{}", escaped(&name), escaped(&version)),
            None => escaped(&name),
        };
        let own = if vertex.is_root { ":::own" } else { "" };
        text.push_str(&format!("  n{node}[\"{label}\"]{own}\n"));
    }
    for line in lines(graph) {
        let label = escaped(&line.label);
        text.push_str(&format!("  n{} -->|\"{label}\"| n{}\n", line.from, line.to));
    }
    text.push_str("  classDef own font-weight:bold\n");
    text
}

/// Text between quotes: special characters are written by their number.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '|' | ';' => {
                escaped.push_str(&format!("#{};", u32::from(character)));
            }
            other => escaped.push(other),
        }
    }
    escaped
}
