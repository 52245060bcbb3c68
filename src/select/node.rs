//! The parts of the graph: nodes, what they stand for, edges, and the numbers that all of it goes by. `world` builds it.

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

/// A package, by its place among those that were met.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Place(pub(super) usize);

/// A requirement, by its place among those that were met.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Need(pub(super) usize);

/// A capability, by its place among those that were met.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Capability(pub(super) usize);

/// A package that others replace, by its place among those that were met.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Role(pub(super) usize);

/// Something that others may not be chosen beside, by its place among those that were met.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Opponent(pub(super) usize);

/// Versions of a package of which at most one is chosen: all of them, or those with one major where the settings allow
/// several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Line {
    pub(super) place: Place,
    /// 0 where it is all versions.
    pub(super) major: u64,
}

impl Line {
    /// All lines that a package can have.
    pub(super) fn all_of(place: Place) -> std::ops::RangeInclusive<Self> {
        Self { place, major: 0 }..=Self { place, major: u64::MAX }
    }
}

/// What a node stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    /// All that is asked from outside; has one candidate, 0.
    Root,
    /// A package, or the versions of it with one major.
    Line(Line),
    /// Which major a requirement is met by. Its candidates are the majors, ascending.
    Majors(Place, PositionSet),
    /// Who names a revision. Its candidates are those who do.
    Named(Place, Position),
    /// Who asks for a package. Its candidates are those who do.
    Requested(Place),
    /// Who provides a capability. Its candidates are those who can.
    Provided(Capability),
    /// How a requirement on a package that others replace is met: 0 by the package itself, and from 1 on by those who
    /// replace it.
    Met(Need),
    /// Who has the place of a package that others replace: 0 itself, 1 nobody, for nobody asks for it, and from 2 on
    /// those who replace it.
    Role(Role),
    /// Whether something is there that others may not be chosen beside: 0 it is, 1 it is not.
    Apart(Opponent),
    /// Which one of several edges is followed. Its candidates are their places in a list.
    OneOf,
}

/// From a candidate to what it needs: some candidate of `node` within `set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) node: Node,
    pub(super) set: PositionSet,
}
