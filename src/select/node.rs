//! The parts of the graph: nodes, what they stand for, and edges. `world` builds it.

use std::fmt;

use crate::index::releases::Position;
use crate::select::positions::PositionSet;

/// A node of the graph; cheap to copy and to compare.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Node(pub(super) u32);

impl Node {
    /// All that is asked from outside.
    pub(super) const ROOT: Self = Self(0);
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "node {}", self.0)
    }
}

/// What a node stands for. A `usize` is a package's place in the world.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    /// All that is asked from outside; has one candidate, 0.
    Root,
    /// A package.
    Package(usize),
    /// The versions of a package with one major.
    Line(usize, u64),
    /// Which major a requirement is met by. Its candidates are the majors, ascending.
    Majors(usize, PositionSet),
    /// That something names a revision. Its candidates are those who do.
    Named(usize, Position),
    /// That something asks for a package. Its candidates are those who do.
    Wanted(usize),
    /// Who provides a capability, by the capability's place. Its candidates are those who can.
    Capability(usize),
    /// How a requirement on a package that others replace is met, by the requirement's place: 0 by the package itself,
    /// and from 1 on by those who replace it.
    Met(usize),
    /// Who has the place of a package that others replace, by the place of that package among them: 0 itself, 1 nobody,
    /// for nobody asks for it, and from 2 on those who replace it.
    Role(usize),
    /// That one of several edges is followed. Its candidates are their places in a list.
    OneOf,
}

/// From a candidate to what it needs: some candidate of `node` within `set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) node: Node,
    pub(super) set: PositionSet,
}
