//! The graph as a stand-alone picture: readable in light and dark mode, and by screen readers.
//!
//! [`mu_picture`] draws it.

use mu_picture::{Node, Picture, Style};

use crate::ops::graph::Graph;
use crate::report::graph::{lines, texts};

/// The most boxes, labels and bends of a picture: a larger one has some megabytes, and nobody can read it.
pub const MOST_PIECES: usize = 50_000;

/// The graph as SVG.
///
/// # Errors
///
/// The number of boxes, labels and bends, if it is more than [`MOST_PIECES`].
pub fn svg(graph: &Graph) -> Result<String, usize> {
    let node = |vertex| {
        let (name, version) = texts(vertex);
        Node { name, version, is_own: vertex.is_root }
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
