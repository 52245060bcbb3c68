//! The graph as a picture that stands for itself: readable in light and dark, and to screen readers.
//!
//! How it is drawn is [`mu_picture`]'s.

use mu_picture::{Edge, Node, Picture, Style};

use crate::ops::graph::Graph;
use crate::report::graph::{lines, texts};

/// The graph as SVG.
pub fn svg(graph: &Graph) -> String {
    let node = |vertex| {
        let (name, version) = texts(vertex);
        Node { name, version, is_own: vertex.is_root }
    };
    let edges = lines(graph).into_iter();
    let edges = edges.map(|line| Edge { from: line.from, to: line.to, label: line.label });
    let mut picture = Picture {
        title: "Dependency graph".to_owned(),
        nodes: graph.vertices.iter().map(node).collect(),
        edges: edges.collect(),
        ..Picture::default()
    };
    picture.description = description(&picture);
    mu_picture::svg(&picture, Style::Own)
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
