//! The dependency graph as text for other programs (for Graphviz, in its language DOT, and for Mermaid, which many Markdown viewers draw),
//! or as a stand-alone picture: readable in light and dark mode, and by screen readers.
//!
//! The same graph gives the same bytes. [`crate::ops::graph`] builds the graph, and [`mu_picture`] draws the picture.

use std::collections::BTreeMap;

use mu_picture::{Edge, Picture, Style};

use crate::ops::graph::{Graph, Node, Vertex};
use crate::report::table::one_line;

/// A line between each pair of nodes, for everything that one requires of the other, in the order of their nodes.
fn lines(graph: &Graph) -> Vec<Edge> {
    let mut labels: BTreeMap<(Node, Node), Vec<String>> = BTreeMap::new();
    for (from, vertex) in graph.vertices.iter().enumerate() {
        for edge in &vertex.edges {
            let label = one_line(&edge.spec);
            let known = labels.entry((from, edge.to)).or_default();
            if !known.contains(&label) {
                known.push(label);
            }
        }
    }
    let line = |((from, to), labels): (_, Vec<String>)| Edge { from, to, label: labels.join(", ") };
    labels.into_iter().map(line).collect()
}

/// A node's name and version, as they are shown.
fn texts(vertex: &Vertex) -> (String, Option<String>) {
    (one_line(&vertex.name), vertex.version.as_deref().map(one_line))
}

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

/// The graph as a Mermaid flowchart.
pub fn mermaid(graph: &Graph) -> String {
    let mut text = String::from("flowchart LR\n");
    for (node, vertex) in graph.vertices.iter().enumerate() {
        let (name, version) = texts(vertex);
        let label = match version {
            Some(version) => {
                format!("{}<br/>{}", escaped_for_mermaid(&name), escaped_for_mermaid(&version))
            }
            None => escaped_for_mermaid(&name),
        };
        let own = if vertex.is_root { ":::own" } else { "" };
        text.push_str(&format!("  n{node}[\"{label}\"]{own}\n"));
    }
    for line in lines(graph) {
        let label = escaped_for_mermaid(&line.label);
        text.push_str(&format!("  n{} -->|\"{label}\"| n{}\n", line.from, line.to));
    }
    text.push_str("  classDef own font-weight:bold\n");
    text
}

/// Text between quotes: special characters are written by their number.
fn escaped_for_mermaid(plain: &str) -> String {
    let mut text = String::with_capacity(plain.len());
    for character in plain.chars() {
        match character {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '|' | ';' => {
                text.push_str(&format!("#{};", u32::from(character)));
            }
            other => text.push(other),
        }
    }
    text
}

/// The most boxes, labels and bends of a picture: a larger one has some megabytes, and nobody can read it.
pub const MOST_PIECES: usize = 50_000;

/// The graph as SVG.
pub fn graph_as_svg(graph: &Graph) -> Result<String, usize> {
    let node = |vertex| {
        let (name, version) = texts(vertex);
        mu_picture::Node { name, version, is_own: vertex.is_root }
    };
    let mut picture = Picture {
        title: "Dependency graph".to_owned(),
        nodes: graph.vertices.iter().map(node).collect(),
        edges: lines(graph),
        ..Picture::default()
    };
    let pieces = mu_picture::pieces(&picture);
    if pieces > MOST_PIECES {
        return Err(pieces);
    }
    picture.description = description(&picture);
    Ok(mu_picture::svg(&picture, Style::Own))
}

fn description(picture: &Picture) -> String {
    let own = picture.nodes.iter().filter(|node| node.is_own).count();
    match picture.nodes.len() {
        0 => "There is no package in this workspace, and nothing is installed.".to_owned(),
        all => format!(
            "{all} packages, {own} of them the workspace's own, and {} requirements. Each arrow leads from a package to \
             one that it needs.",
            picture.edges.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::graph::Edge;

    /// Nodes by name (those with a `!` are the workspace's own), and edges by place.
    fn graph(names: &[&str], edges: &[(Node, Node, &str)]) -> Graph {
        let vertices = names.iter().enumerate().map(|(node, name)| Vertex {
            name: name.trim_end_matches('!').to_owned(),
            id: None,
            version: Some(format!("1.{node}.0")),
            is_root: name.ends_with('!'),
            edges: edges
                .iter()
                .filter(|(from, ..)| *from == node)
                .map(|(_, to, spec)| Edge { to: *to, spec: (*spec).to_owned() })
                .collect(),
        });
        Graph { vertices: vertices.collect() }
    }

    /// A cycle, two requirements on one package, and names that must be escaped everywhere.
    fn hostile() -> Graph {
        graph(
            &["acme/web!", "a\"b\\<c>&`|", "ops/x"],
            &[
                (0, 1, ">=1 <2"),
                (1, 2, "^1"),
                (2, 1, "\u{1b}[31m~1"),
                (0, 2, "1.x"),
                (0, 2, "^1"),
                (2, 2, "*"),
            ],
        )
    }

    #[test]
    fn for_graphviz() {
        insta::assert_snapshot!(dot(&hostile()), @r#"
        digraph dependencies {
          rankdir=LR;
          node [shape=box, style=rounded, fontname="monospace"];
          edge [fontname="monospace", fontsize=11];
          n0 [label="acme/web\n1.0.0", style="rounded,bold"];
          n1 [label="a\"b\\<c>&`|\n1.1.0"];
          n2 [label="ops/x\n1.2.0"];
          n0 -> n1 [label=">=1 <2"];
          n0 -> n2 [label="1.x, ^1"];
          n1 -> n2 [label="^1"];
          n2 -> n1 [label="\\u{1b}[31m~1"];
          n2 -> n2 [label="*"];
        }
        "#);
    }

    #[test]
    fn for_mermaid() {
        insta::assert_snapshot!(mermaid(&hostile()), @r##"
        flowchart LR
          n0["acme/web<br/>1.0.0"]:::own
          n1["a#34;b#92;#60;c#62;#38;#96;#124;<br/>1.1.0"]
          n2["ops/x<br/>1.2.0"]
          n0 -->|"#62;=1 #60;2"| n1
          n0 -->|"1.x, ^1"| n2
          n1 -->|"^1"| n2
          n2 -->|"#92;u{1b}[31m~1"| n1
          n2 -->|"*"| n2
          classDef own font-weight:bold
        "##);
    }

    #[test]
    fn as_a_picture() {
        let picture = graph_as_svg(&hostile()).expect("is small");
        for part in [
            "<title>acme/web 1.0.0</title>",
            ">a&quot;b\\&lt;c&gt;&amp;`|</text>",
            "<title>acme/web needs ops/x 1.x, ^1</title>",
            ">\\u{1b}[31m~1</text>",
            "aria-labelledby=\"graph-title graph-description\"",
            "prefers-color-scheme:dark",
        ] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
        assert_eq!(picture.matches("<g class=\"edge").count(), 5, "{picture}");
        assert_eq!(picture.matches("<g class=\"edge back\"").count(), 1, "{picture}");
        assert_eq!(picture.matches("<g ").count(), picture.matches("</g>").count());
        let is_hostile = |character: char| character.is_control() && character != '\n';
        assert!(!picture.contains(is_hostile) && !picture.contains("<c>"), "{picture}");
    }

    #[test]
    fn an_empty_graph_is_a_picture_too() {
        let graph = Graph::default();
        let picture = graph_as_svg(&graph).expect("is small");
        assert!(picture.contains("nothing is installed"), "{picture}");
        assert!(dot(&graph).ends_with("}\n"));
        assert!(mermaid(&graph).starts_with("flowchart"));
    }
}
