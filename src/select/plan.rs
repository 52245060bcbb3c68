//! What a command wants to move, and what that makes of the requirements. Plain data; a strategy works it out.

use crate::index::Requirement;
use crate::reference::{PackageId, VersionSpec};
use crate::select::{Request, Root, Selection};

/// What a command wants of versions that are chosen already.
#[derive(Debug, Clone, Copy)]
pub enum Move<'a> {
    /// Nothing moves: requirements come to begin at what is chosen. What nothing leads to any more stays.
    Tidy,
    /// Nothing moves, and what nothing leads to any more goes.
    Clear,
    /// Every package moves to its newest version within what is asked for, until nothing is left to move.
    Everything,
    /// These packages move, one after the other, to their newest versions within what is asked for, as far as their needs
    /// break no bound.
    Raise(&'a [PackageId]),
    /// A package moves to the lowest version that this accepts, up or down.
    To(&'a PackageId, &'a VersionSpec),
}

/// What a move makes of the requirements, and of the selection.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The selection afterwards.
    pub selection: Selection,
    /// What each root must ask for, in the order of the request but without its lists of what others need; `None`
    /// where it must ask for nothing.
    pub asked: Vec<Vec<Option<Requirement>>>,
    /// The fewest requirements besides that give this selection.
    pub indirect: Vec<Requirement>,
    /// What the move of one package lowered or dropped besides it.
    pub lowered: Vec<Lowered>,
    /// Whether there may be more to move, because what held it back is not there any more.
    pub(super) may_go_on: bool,
}

impl Change {
    /// The request that manifests make which were changed like this.
    pub(in crate::select) fn rewritten(&self, request: &Request) -> Request {
        let roots = rewritten(&request.roots, &self.asked, &self.indirect);
        Request { roots, indirect: 1, ..request.clone() }
    }

    /// What both come to, the other one behind this one.
    pub(super) fn then(self, next: Self) -> Self {
        let asked = self.asked.into_iter().zip(next.asked).map(|(asked, next)| {
            let mut next = next.into_iter();
            asked.into_iter().map(|asked| asked.and_then(|_| next.next().flatten())).collect()
        });
        Self { asked: asked.collect(), ..next }
    }
}

/// Who asks, in messages, for versions that no requirement needs and that stay all the same.
const IN_USE: &str = "what is in use";

/// The roots that ask for this, and behind them one that lists what others need.
pub(super) fn rewritten(
    roots: &[Root],
    asked: &[Vec<Option<Requirement>>],
    indirect: &[Requirement],
) -> Vec<Root> {
    let own = roots.iter().zip(asked).map(|(root, asked)| Root {
        by: root.by.clone(),
        requirements: asked.iter().flatten().cloned().collect(),
    });
    let list = Root { by: IN_USE.to_owned(), requirements: indirect.to_vec() };
    own.chain([list]).collect()
}

/// A package that a downgrade lowered or dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// The package.
    pub id: PackageId,
    /// The version it had.
    pub from: String,
    /// The version it has now; `None` if it was dropped.
    pub to: Option<String>,
    /// Why the old version could not stay; `None` where nothing needs the package any more.
    pub because: Option<Because>,
}

/// Why a version could not stay in a downgrade.
#[derive(Debug, Clone, PartialEq)]
pub enum Because {
    /// It needs at least this version of a package.
    Needs(PackageId, String),
    /// It asks for this, and something else is in use of that package.
    Asks(Requirement),
    /// Somebody who stays, by the name for people, asks for this of its package.
    Asked(String, Requirement),
    /// It requires or provides this capability.
    Capability(String),
    /// It may not be chosen beside this package, or this one not beside it.
    Conflicts(PackageId),
}
