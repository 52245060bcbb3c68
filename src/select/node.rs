//! The parts of the graph: nodes, their meaning, edges, and the numbers that identify them all. `world`
//! builds it.

use std::fmt;
use std::rc::Rc;

use crate::index::releases::Position;
use crate::reference::PackageId;
use crate::select::positions::PositionSet;

/// A node of the graph; cheap to copy and to compare.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Node(pub(super) u32);

impl Node {
    /// The node of all requirements from outside.
    pub(super) const ROOT: Self = Self(0);
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "node {}", self.0)
    }
}

/// A package, by its place in the list of packages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Place(pub(super) usize);

/// A requirement, by its place in the list of requirements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Need(pub(super) usize);

/// A capability, by its place in the list of capabilities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Capability(pub(super) usize);

/// Versions of a package of which at most one is chosen: all of them, or those with one major if the settings
/// allow several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Line {
    pub(super) place: Place,
    /// 0 if it is all versions.
    pub(super) major: u64,
}

impl Line {
    /// All lines that a package can have.
    pub(super) fn all_of(place: Place) -> std::ops::RangeInclusive<Self> {
        Self { place, major: 0 }..=Self { place, major: u64::MAX }
    }
}

/// What a node represents.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    /// All requirements from outside; has one candidate, 0.
    Root,
    /// A package, or the versions of it with one major.
    Line(Line),
    /// The major that meets a requirement. Its candidates are the majors, ascending.
    Majors(Place, PositionSet),
    /// What names a revision. Its candidates are the nodes that do.
    Named(Place, Position),
    /// What requires a package. Its candidates are the nodes that do.
    Requested(Place),
    /// Which of a few slots a package takes that is there only for what it provides. Its candidates are the
    /// slots.
    Brought(Place),
    /// One of the slots for packages that are there only for what they provide. Its candidates are packages.
    Slot(Position),
    /// What provides a capability. Its candidates are the possible providers.
    Provided(Capability),
    /// How a requirement on a replaceable package is met: 0 by the package itself, and from 1 on by its
    /// replacements.
    Met(Need),
    /// What takes the place of a replaceable package: 0 the package itself, 1 nothing, because nothing
    /// requires it, and from 2 on its replacements.
    Role(PackageId),
    /// Whether a package or a capability that others conflict with is chosen: 0 it is, 1 it is not.
    Apart(Rc<str>),
    /// Which of several edges is followed. Its candidates are their places in a list.
    OneOf,
}

/// From a candidate to what it needs: some candidate of `node` within `set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) node: Node,
    pub(super) set: PositionSet,
}
