//! Where nodes and edges go in a picture: layers from the left to the right.
//!
//! The method is that of K. Sugiyama, S. Tagawa and M. Toda, "Methods for Visual Understanding of
//! Hierarchical System Structures" (1981): break cycles, put each node into a layer, order the layers so that
//! few edges cross, then place. Labels are nodes of the layers in between, as in E. Gansner et al., "A
//! Technique for Drawing Directed Graphs" (1993), so that nothing is drawn over anything else.
//!
//! Libraries with the same method were considered. `rust-sugiyama` places nodes only, without labels and
//! routes, and needs petgraph; `layout-rs` also draws; `dagre` does what is needed here, with many times the
//! code.

mod layers;
mod order;
mod place;

use self::layers::Layered;
pub(super) use self::layers::pieces;

/// How large something is, in pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Size {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A place, in pixels from the upper left corner.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// An edge that is to be drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: Size,
}

/// The route of an edge.
#[derive(Debug, Clone, Default)]
pub(super) struct Way {
    /// From one node to the other. Every second stretch, from the first on, is a bend.
    pub(super) points: Vec<Point>,
    /// The centre of its label.
    pub(super) label: Point,
    /// Whether it leads back to the left, as one edge of each cycle does.
    pub(super) is_back: bool,
}

/// A picture's measures.
#[derive(Debug, Clone, Default)]
pub(super) struct Layout {
    pub(super) size: Size,
    /// The middle of the left side of each node.
    pub(super) nodes: Vec<Point>,
    /// The route of each edge; an edge from a node to itself has no points.
    pub(super) ways: Vec<Way>,
}

/// Space around the picture.
const MARGIN: f64 = 16.0;

/// Space between two layers, in which edges bend.
const BEND: f64 = 28.0;

/// Lays out nodes of these sizes. Earlier nodes come first if nothing else decides.
pub(super) fn layout(sizes: &[Size], edges: &[Edge]) -> Layout {
    let layered = Layered::new(sizes, edges);
    let layers = order::ordered(&layered);
    let centres = place::centres(&layered, &layers);
    let (lefts, widths, width) = columns(&layered, &layers);
    let top = layered.all().map(|at| centres[at] - layered.sizes[at].height / 2.0);
    let shift = MARGIN - top.fold(f64::INFINITY, f64::min);
    let bottom = layered.all().map(|at| centres[at] + layered.sizes[at].height / 2.0);
    let bottom = bottom.fold(0.0, f64::max);
    let left_of = |at: usize| Point { x: lefts[layered.layer[at]], y: centres[at] + shift };
    let right_of = |at: usize| {
        let width = if at < sizes.len() { sizes[at].width } else { widths[layered.layer[at]] };
        let left = left_of(at);
        Point { x: left.x + width, ..left }
    };
    let ways = layered.chains.iter().map(|chain| {
        let Some((&first, rest)) = chain.nodes.split_first() else { return Way::default() };
        let mut points = vec![right_of(first)];
        for &at in rest {
            points.push(left_of(at));
            points.push(right_of(at));
        }
        // The edge ends at the last node, and does not pass it.
        points.pop();
        if chain.is_back {
            points.reverse();
        }
        let label = left_of(chain.label);
        let middle = widths[layered.layer[chain.label]] / 2.0;
        Way { points, label: Point { x: label.x + middle, ..label }, is_back: chain.is_back }
    });
    Layout {
        size: Size { width: width + MARGIN, height: bottom + shift + MARGIN },
        ways: ways.collect(),
        nodes: (0..sizes.len()).map(left_of).collect(),
    }
}

/// Where each layer begins, how wide it is, and where the last one ends.
fn columns(layered: &Layered, layers: &[Vec<usize>]) -> (Vec<f64>, Vec<f64>, f64) {
    let widest =
        |layer: &Vec<usize>| layer.iter().map(|&at| layered.sizes[at].width).fold(0.0, f64::max);
    let widths: Vec<f64> = layers.iter().map(widest).collect();
    let mut lefts = Vec::with_capacity(layers.len());
    let mut end = MARGIN;
    for (number, width) in widths.iter().enumerate() {
        if number > 0 {
            end += BEND;
        }
        lefts.push(end);
        end += width;
    }
    (lefts, widths, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Size = Size { width: 80.0, height: 40.0 };

    fn laid_out(count: usize, edges: &[(usize, usize)]) -> Layout {
        let label = Size { width: 30.0, height: 14.0 };
        let edges: Vec<Edge> = edges.iter().map(|&(from, to)| Edge { from, to, label }).collect();
        layout(&vec![BOX; count], &edges)
    }

    #[test]
    fn edges_lead_to_the_right_but_for_one_of_each_cycle() {
        let layout = laid_out(4, &[(0, 1), (1, 2), (2, 0), (0, 2), (3, 3)]);
        assert!(layout.nodes[0].x < layout.nodes[1].x && layout.nodes[1].x < layout.nodes[2].x);
        let back: Vec<bool> = layout.ways.iter().map(|way| way.is_back).collect();
        assert_eq!(back, [false, false, true, false, false]);
        let way = &layout.ways[2].points;
        assert!(way[0].x > way[way.len() - 1].x);
        assert_eq!(layout.ways[4].points, []);
    }

    #[test]
    fn nothing_overlaps_and_all_is_inside() {
        // A tangle: each of 40 nodes asks for four others.
        let edges: Vec<(usize, usize)> = (0..40)
            .flat_map(|from| [1, 5, 11, 17].map(|step| (from, (from * 7 + step) % 40)))
            .collect();
        let layout = laid_out(40, &edges);
        for (one, a) in layout.nodes.iter().enumerate() {
            assert!(a.y - 20.0 >= MARGIN - 0.01 && a.y + 20.0 <= layout.size.height, "{one}");
            assert!(a.x >= MARGIN && a.x + 80.0 <= layout.size.width, "{one}");
            for b in &layout.nodes[one + 1..] {
                assert!((a.y - b.y).abs() >= 40.0 || (a.x - b.x).abs() >= 80.0, "{a:?} {b:?}");
            }
        }
        let labels: Vec<Point> =
            layout.ways.iter().filter(|way| !way.points.is_empty()).map(|way| way.label).collect();
        for (one, a) in labels.iter().enumerate() {
            for b in &labels[one + 1..] {
                assert!((a.y - b.y).abs() >= 13.9 || (a.x - b.x).abs() >= 30.0, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_tree_is_drawn_without_crossings() {
        let layout = laid_out(7, &[(0, 2), (0, 1), (1, 5), (2, 3), (1, 6), (2, 4)]);
        let y = |node: usize| layout.nodes[node].y;
        // If one of the two is above the other, so are the nodes that belong to it.
        let is_above = y(1) < y(2);
        for (own, other) in [(5, 3), (5, 4), (6, 3), (6, 4)] {
            assert_eq!(y(own) < y(other), is_above);
        }
    }

    #[test]
    fn nothing_has_a_size_too() {
        assert!(layout(&[], &[]).size.width > 0.0);
    }
}
