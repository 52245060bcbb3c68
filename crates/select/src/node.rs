//! The parts of the graph: nodes, their meaning, edges, and the numbers that identify them all. `world`
//! builds it.

use std::fmt;
use std::rc::Rc;

use mu_manifest::reference::PackageId;

use crate::positions::PositionSet;
use crate::releases::Position;

/// A node of the graph; cheap to copy and to compare.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Node(pub(super) u32);

impl Node {
    /// The node of all requirements from outside.
    pub(super) const GRAPH_ROOT: Self = Self(0);
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "node {}", self.0)
    }
}

/// A package, by its place in the list of packages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct PackageIndex(pub(super) usize);

/// A requirement, by its place in the list of requirements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct RequirementIndex(pub(super) usize);

/// A capability, by its place in the list of capabilities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct CapabilityIndex(pub(super) usize);

/// Versions of a package of which at most one is chosen: all of them, or those with one major if the settings
/// allow several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct MajorLine {
    pub(super) place: PackageIndex,
    /// 0 if it is all versions.
    pub(super) major: u64,
}

impl MajorLine {
    /// All lines that a package can have.
    pub(super) fn all_of(place: PackageIndex) -> std::ops::RangeInclusive<Self> {
        Self { place, major: 0 }..=Self { place, major: u64::MAX }
    }
}

/// What a node represents.
///
/// Four ideas are behind the twelve kinds: *versions* of something, of which one is chosen; a *choice*, whose candidates each
/// lead to one alternative; an *exclusion*, which two things cannot both hold in the same way; and a *namer*, without which
/// something may not be there. A node is only in a solution if an edge of a chosen candidate leads to it.
///
/// | kind | its candidates | the edges of a candidate |
/// | --- | --- | --- |
/// | `Root` | 0 | to everything that the roots require, and what they provide or forbid |
/// | `Versions` | the package's versions, all or of one major | one for each requirement, capability and conflict of the version |
/// | `MajorChoice` | the majors within a set of versions | to the `Versions` of that major |
/// | `ReplacementChoice` | 0 the package, then its replacements | to the versions of that one, and, of a replacement, to its `Occupant` and `PackageRequirer` |
/// | `ProviderChoice` | the packages that provide a capability | to the versions of that package which do, and to its `PackageRequirer` |
/// | `EdgeChoice` | places in a list of edges | that edge |
/// | `SlotChoice` | the slots there are | to that `ProviderSlot`, held by the package |
/// | `ProviderSlot` | packages | none: two packages cannot hold one slot |
/// | `Occupant` | 0 the package, 1 nothing, then its replacements | none: two cannot take one place |
/// | `Opponent` | 0 it is chosen, 1 it is not | none: what conflicts with it wants 1, what is chosen says 0 |
/// | `RevisionNamer` | nodes that name a revision | to the candidates of that node which do |
/// | `PackageRequirer` | nodes that require a package | to the candidates of that node which do |
///
/// Take `a`, which requires the capability `c/v1/N`, and `b` and `d`, which both provide it; `b` conflicts with `d`:
///
/// ```text
/// Root 0 ──> Versions(a) 1.0.0 ──> ProviderChoice(c/v1/N) {b, d}: b ──> Versions(b) 2.0.0 ──> ProviderChoice(c/v1/N) {b}
///                                                                                         ──> Opponent(d) {1}
/// ```
///
/// If the root requires `d`, too, its version wants `ProviderChoice(c/v1/N) {d}` and `Opponent(d) {0}`, which nothing meets
/// together with `b`: the search goes back to the choice of the provider.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum NodeKind {
    /// All requirements from outside; has one candidate, 0.
    Root,
    /// A package, or the versions of it with one major.
    Versions(MajorLine),
    /// The major that meets a requirement. Its candidates are the majors, ascending.
    MajorChoice(PackageIndex, PositionSet),
    /// What names a revision. Its candidates are the nodes that do.
    RevisionNamer(PackageIndex, Position),
    /// What requires a package. Its candidates are the nodes that do.
    PackageRequirer(PackageIndex),
    /// Which of a few slots a package takes that is there only for what it provides. Its candidates are the
    /// slots.
    SlotChoice(PackageIndex),
    /// One of the slots for packages that are there only for what they provide. Its candidates are packages.
    ProviderSlot(Position),
    /// What provides a capability. Its candidates are the possible providers.
    ProviderChoice(CapabilityIndex),
    /// How a requirement on a replaceable package is met: 0 by the package itself, and from 1 on by its
    /// replacements.
    ReplacementChoice(RequirementIndex),
    /// What takes the place of a replaceable package: 0 the package itself, 1 nothing, because nothing
    /// requires it, and from 2 on its replacements.
    Occupant(PackageId),
    /// Whether a package or a capability that others conflict with is chosen: 0 it is, 1 it is not.
    Opponent(Rc<str>),
    /// Which of several edges is followed. Its candidates are their places in a list.
    EdgeChoice,
}

/// From a candidate to what it needs: some candidate of `node` within `set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) node: Node,
    pub(super) set: PositionSet,
}
