//! Cycles broken, nodes in layers, and long edges in pieces from one layer to the next.

use super::{Edge, Size};

/// A graph in layers. The nodes of the picture come first, then the labels and bends of edges.
#[derive(Debug)]
pub(super) struct Layered {
    /// How large each is.
    pub(super) sizes: Vec<Size>,
    /// The layer of each; those of nodes are even, those of labels odd.
    pub(super) layer: Vec<usize>,
    /// How many layers there are.
    pub(super) count: usize,
    /// What each is joined to in the layer before.
    pub(super) before: Vec<Vec<usize>>,
    /// What each is joined to in the layer behind.
    pub(super) behind: Vec<Vec<usize>>,
    /// The pieces of each edge.
    pub(super) chains: Vec<Chain>,
    nodes: usize,
}

/// What an edge passes, from the left to the right.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Its left node, its bends and label, and its right node; empty if it leads from a node to itself.
    pub(super) nodes: Vec<usize>,
    /// Which of the nodes is its label.
    pub(super) label: usize,
    /// Whether it leads to the left.
    pub(super) is_back: bool,
}

/// How high a place is that an edge passes.
const BEND_HEIGHT: f64 = 6.0;

impl Layered {
    pub(super) fn new(sizes: &[Size], edges: &[Edge]) -> Self {
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
    pub(super) fn all(&self) -> std::ops::Range<usize> {
        0..self.sizes.len()
    }

    /// Whether it is a node of the picture.
    pub(super) fn is_node(&self, at: usize) -> bool {
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
pub(crate) fn count_layout_pieces(nodes: usize, edges: &[Edge]) -> usize {
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
