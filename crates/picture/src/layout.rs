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
//!
//! Ordering sweeps back and forth: it moves each thing to the mean place of its neighbours, and keeps the best of all sweeps. The vertical
//! place of each thing is then as near as possible to the mean of its neighbours, in that order, with space in between.

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
    let layers = ordered(&layered);
    let centres = centres(&layered, &layers);
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

/// How many times to sweep; more sweeps hardly help.
const ORDERING_SWEEPS: usize = 24;

/// What is in each layer, from top to bottom.
fn ordered(layered: &Layered) -> Vec<Vec<usize>> {
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); layered.count];
    for at in layered.all() {
        layers[layered.layer[at]].push(at);
    }
    let mut place = vec![0; layered.sizes.len()];
    settle(&layers, &mut place);
    let mut best = layers.clone();
    let mut fewest = crossings(layered, &layers, &place);
    for sweep in 0..ORDERING_SWEEPS {
        if fewest == 0 {
            break;
        }
        let forth = sweep % 2 == 0;
        for step in 0..layers.len() {
            let number = if forth { step } else { layers.len() - 1 - step };
            let joined = if forth { &layered.before } else { &layered.behind };
            sort(&mut layers[number], joined, &mut place);
        }
        let now = crossings(layered, &layers, &place);
        if now < fewest {
            fewest = now;
            best.clone_from(&layers);
        }
    }
    best
}

fn settle(layers: &[Vec<usize>], place: &mut [usize]) {
    for layer in layers {
        for (index, &at) in layer.iter().enumerate() {
            place[at] = index;
        }
    }
}

/// Sorts a layer by the mean place of each thing's neighbours. A thing without neighbours stays where it is.
fn sort(layer: &mut Vec<usize>, joined: &[Vec<usize>], place: &mut [usize]) {
    let mean = |at: usize| {
        let others = &joined[at];
        if others.is_empty() {
            return place[at] as f64;
        }
        others.iter().map(|&other| place[other] as f64).sum::<f64>() / others.len() as f64
    };
    let mut keyed: Vec<(f64, usize)> = layer.iter().map(|&at| (mean(at), at)).collect();
    keyed.sort_by(|(left, _), (right, _)| left.total_cmp(right));
    *layer = keyed.into_iter().map(|(_, at)| at).collect();
    for (index, &at) in layer.iter().enumerate() {
        place[at] = index;
    }
}

/// How many edges cross.
fn crossings(layered: &Layered, layers: &[Vec<usize>], place: &[usize]) -> usize {
    layers.iter().map(|layer| crossings_behind(layered, layer, place)).sum()
}

/// How many edges cross between a layer and the next, counted with a tree of sums: W. Barth, M. Jünger and P.
/// Mutzel, "Simple and Efficient Bilayer Cross Counting" (2002).
fn crossings_behind(layered: &Layered, layer: &[usize], place: &[usize]) -> usize {
    let mut ends = Vec::new();
    for &at in layer {
        let start = ends.len();
        ends.extend(layered.behind[at].iter().map(|&other| place[other]));
        ends[start..].sort_unstable();
    }
    let mut sums = vec![0; ends.iter().max().map_or(0, |last| last + 2)];
    let mut crossings = 0;
    for (count, &end) in ends.iter().enumerate() {
        // Earlier edges that end at or above this one do not cross it.
        let mut index = end + 1;
        let mut not_crossing = 0;
        while index > 0 {
            not_crossing += sums[index];
            index &= index - 1;
        }
        crossings += count - not_crossing;
        let mut index = end + 1;
        while index < sums.len() {
            sums[index] += 1;
            index += index & index.wrapping_neg();
        }
    }
    crossings
}

/// After this many sweeps, the eye sees no difference.
const PLACING_SWEEPS: usize = 12;

/// Space between two nodes, one below the other.
const BETWEEN_NODES: f64 = 18.0;

/// Space between anything else.
const BETWEEN_OTHERS: f64 = 6.0;

/// How much more an edge is straightened between two of its own pieces than at a node.
const STRAIGHT: f64 = 4.0;

/// The middle of each, in pixels downwards from somewhere.
fn centres(layered: &Layered, layers: &[Vec<usize>]) -> Vec<f64> {
    let mut centres = vec![0.0; layered.sizes.len()];
    for layer in layers {
        let gaps = gaps(layered, layer);
        for (&at, gap) in layer.iter().zip(gaps) {
            centres[at] = gap;
        }
    }
    for sweep in 0..PLACING_SWEEPS {
        let forth = sweep % 2 == 0;
        for step in 0..layers.len() {
            let layer = &layers[if forth { step } else { layers.len() - 1 - step }];
            let is_last = sweep + 2 >= PLACING_SWEEPS;
            let wishes: Vec<f64> =
                layer.iter().map(|&at| wish(layered, at, &centres, forth, is_last)).collect();
            for (&at, centre) in layer.iter().zip(fitted(&wishes, &gaps(layered, layer))) {
                centres[at] = centre;
            }
        }
    }
    centres
}

/// How far each of a layer is at least below the first.
fn gaps(layered: &Layered, layer: &[usize]) -> Vec<f64> {
    let mut gaps = Vec::with_capacity(layer.len());
    let mut end = 0.0;
    for (index, &at) in layer.iter().enumerate() {
        if let Some(&above) = index.checked_sub(1).and_then(|index| layer.get(index)) {
            let both = layered.is_node(above) && layered.is_node(at);
            let space = if both { BETWEEN_NODES } else { BETWEEN_OTHERS };
            end += (layered.sizes[above].height + layered.sizes[at].height) / 2.0 + space;
        }
        gaps.push(end);
    }
    gaps
}

/// The place that it would have if it were alone.
fn wish(layered: &Layered, at: usize, centres: &[f64], forth: bool, both_sides: bool) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    let sides = [(&layered.before[at], forth), (&layered.behind[at], !forth)];
    for (joined, is_asked) in sides {
        if !is_asked && !both_sides {
            continue;
        }
        for &other in joined {
            let is_own = !layered.is_node(at) && !layered.is_node(other);
            let weight = if is_own { STRAIGHT } else { 1.0 };
            sum += weight * centres[other];
            weights += weight;
        }
    }
    if weights == 0.0 { centres[at] } else { sum / weights }
}

/// The places nearest to the wishes (by least squares) that keep the gaps. Things that would be too close
/// move as a block: the pooling of adjacent violators.
fn fitted(wishes: &[f64], gaps: &[f64]) -> Vec<f64> {
    // For each block, the sum of its members' wishes without the gaps, and the number of members.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (wish, gap) in wishes.iter().zip(gaps) {
        let mut block = (wish - gap, 1);
        while let Some(&(sum, count)) = blocks.last() {
            if sum / count as f64 <= block.0 / block.1 as f64 {
                break;
            }
            block = (block.0 + sum, block.1 + count);
            blocks.pop();
        }
        blocks.push(block);
    }
    let starts =
        blocks.iter().flat_map(|&(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    starts.zip(gaps).map(|(start, gap)| start + gap).collect()
}

/// A graph in layers. The nodes of the picture come first, then the labels and bends of edges.
#[derive(Debug)]
struct Layered {
    /// How large each is.
    sizes: Vec<Size>,
    /// The layer of each; those of nodes are even, those of labels odd.
    layer: Vec<usize>,
    /// How many layers there are.
    count: usize,
    /// What each is joined to in the layer before.
    before: Vec<Vec<usize>>,
    /// What each is joined to in the layer behind.
    behind: Vec<Vec<usize>>,
    /// The pieces of each edge.
    chains: Vec<Chain>,
    nodes: usize,
}

/// What an edge passes, from the left to the right.
#[derive(Debug, Default)]
struct Chain {
    /// Its left node, its bends and label, and its right node; empty if it leads from a node to itself.
    nodes: Vec<usize>,
    /// Which of the nodes is its label.
    label: usize,
    /// Whether it leads to the left.
    is_back: bool,
}

/// How high a place is that an edge passes.
const BEND_HEIGHT: f64 = 6.0;

impl Layered {
    fn new(sizes: &[Size], edges: &[Edge]) -> Self {
        let (back, order) = back_edges(sizes.len(), edges);
        let layer = longest_paths(sizes.len(), edges, &back, &order);
        let count = layer.iter().max().map_or(0, |last| last + 1);
        let mut layered = Self {
            before: vec![Vec::new(); sizes.len()],
            behind: vec![Vec::new(); sizes.len()],
            sizes: sizes.to_vec(),
            layer,
            count,
            chains: Vec::with_capacity(edges.len()),
            nodes: sizes.len(),
        };
        for (edge, is_back) in edges.iter().zip(back) {
            let chain = layered.chain(edge, is_back);
            layered.chains.push(chain);
        }
        layered
    }

    /// All there is: nodes, labels and bends.
    fn all(&self) -> std::ops::Range<usize> {
        0..self.sizes.len()
    }

    /// Whether it is a node of the picture.
    fn is_node(&self, at: usize) -> bool {
        at < self.nodes
    }

    fn chain(&mut self, edge: &Edge, is_back: bool) -> Chain {
        if edge.from == edge.to {
            return Chain::default();
        }
        let (left, right) = if is_back { (edge.to, edge.from) } else { (edge.from, edge.to) };
        let mut chain = Chain { nodes: vec![left], label: 0, is_back };
        let inner = self.layer[left] + 1..self.layer[right];
        // The label is next to the requiring node.
        let labelled = if is_back { inner.end - 1 } else { inner.start };
        for layer in inner {
            let bend = Size { width: 0.0, height: BEND_HEIGHT };
            let at = self.sizes.len();
            if layer == labelled {
                chain.label = at;
            }
            self.sizes.push(if layer == labelled { edge.label } else { bend });
            self.layer.push(layer);
            self.before.push(Vec::new());
            self.behind.push(Vec::new());
            chain.nodes.push(at);
        }
        chain.nodes.push(right);
        for pair in chain.nodes.windows(2) {
            self.behind[pair[0]].push(pair[1]);
            self.before[pair[1]].push(pair[0]);
        }
        chain
    }
}

/// How many nodes, labels and bends there would be. The cost of a layout grows a little faster than this number.
pub(super) fn count_layout_pieces(nodes: usize, edges: &[Edge]) -> usize {
    let (back, order) = back_edges(nodes, edges);
    let layer = longest_paths(nodes, edges, &back, &order);
    let passed = |edge: &Edge| layer[edge.from].abs_diff(layer[edge.to]).saturating_sub(1);
    nodes + edges.iter().map(passed).sum::<usize>()
}

/// The edges that close a cycle if you walk from the first node on, and the nodes in an order in which all
/// other edges lead from an earlier to a later one.
fn back_edges(nodes: usize, edges: &[Edge]) -> (Vec<bool>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Open,
        Done,
    }
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (number, edge) in edges.iter().enumerate() {
        outgoing[edge.from].push(number);
    }
    let mut seen = vec![Seen::Not; nodes];
    let mut back = vec![false; edges.len()];
    let mut done = Vec::with_capacity(nodes);
    for start in 0..nodes {
        if seen[start] != Seen::Not {
            continue;
        }
        seen[start] = Seen::Open;
        let mut open = vec![(start, 0)];
        while let Some((node, next)) = open.last_mut() {
            let Some(&number) = outgoing[*node].get(*next) else {
                seen[*node] = Seen::Done;
                done.push(*node);
                open.pop();
                continue;
            };
            *next += 1;
            let to = edges[number].to;
            match seen[to] {
                Seen::Open => back[number] = true,
                Seen::Done => {}
                Seen::Not => {
                    seen[to] = Seen::Open;
                    open.push((to, 0));
                }
            }
        }
    }
    done.reverse();
    (back, done)
}

/// The layer of each node: twice the length of the longest path to it.
fn longest_paths(nodes: usize, edges: &[Edge], back: &[bool], order: &[usize]) -> Vec<usize> {
    let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (edge, is_back) in edges.iter().zip(back) {
        match is_back {
            _ if edge.from == edge.to => {}
            false => incoming[edge.to].push(edge.from),
            true => incoming[edge.from].push(edge.to),
        }
    }
    let mut layer = vec![0; nodes];
    for &node in order {
        layer[node] = incoming[node].iter().map(|&from| layer[from] + 2).max().unwrap_or(0);
    }
    layer
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

    #[test]
    fn what_stands_too_near_is_moved_as_a_block() {
        assert_eq!(fitted(&[0.0, 100.0], &[0.0, 10.0]), [0.0, 100.0]);
        assert_eq!(fitted(&[50.0, 50.0, 50.0], &[0.0, 10.0, 20.0]), [40.0, 50.0, 60.0]);
        assert_eq!(fitted(&[9.0, 0.0, 100.0], &[0.0, 10.0, 20.0]), [-0.5, 9.5, 100.0]);
    }
}
