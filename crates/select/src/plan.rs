//! What a command wants to move, and how that changes the requirements. Plain data; a strategy works it out.

use mu_manifest::reference::{PackageId, Version, VersionSpec};

use crate::universe::Requirement;
use crate::{Demand, Demanded, RootOrPackage, RootRequirer, Selection, SelectionRequest};

/// What a command wants to do with versions that are already chosen.
#[derive(Debug, Clone, Copy)]
pub enum Move<'a> {
    /// Nothing moves: requirements are raised to the chosen versions. What nothing needs any more stays.
    Tidy,
    /// Nothing moves, and what nothing needs any more is dropped.
    Clear,
    /// Every package moves to its newest version within what is required, until nothing is left to move.
    Everything,
    /// These packages move, one after the other, to the newest versions that their requirements allow, as far
    /// as their needs break no bound.
    Raise(&'a [PackageId]),
    /// A package moves to the lowest version that this accepts, up or down.
    To(&'a PackageId, &'a VersionSpec),
}

/// The requirements and the selection after a move.
#[derive(Debug, Clone)]
pub struct Change {
    /// The selection afterwards.
    pub selection: Selection,
    /// What each root must require, in the order of the request but without its lists of indirect
    /// dependencies; `None` if it must require nothing.
    pub asked: Vec<Vec<Option<Requirement>>>,
    /// The fewest additional requirements that give this selection.
    pub indirect: Vec<Requirement>,
    /// What else the move of one package lowered or dropped.
    pub lowered: Vec<Lowered>,
    /// Whether more may be able to move, because what held it back is gone.
    pub(super) may_go_on: bool,
    /// The request that [`Self::selection`] answers.
    pub(super) request: SelectionRequest,
}

impl Change {
    /// The request of manifests with these changes: the roots that are not lists of indirect dependencies, and
    /// after them one that is.
    pub(crate) fn rewritten_request(&self, request: &SelectionRequest) -> SelectionRequest {
        // `asked` has an entry for each root that is no list, and these come first. So `zip` leaves the old lists out,
        // and the new list takes their place.
        let own = request.roots.iter().zip(&self.asked).map(|(root, asked)| RootRequirer {
            by: root.by.clone(),
            requirements: asked.iter().flatten().cloned().collect(),
        });
        let list = RootRequirer { by: IN_USE.to_owned(), requirements: self.indirect.clone() };
        SelectionRequest { roots: own.chain([list]).collect(), indirect: 1, ..request.clone() }
    }

    /// The answer to a request that differs from [`Self::request`] only in who lists what is required indirectly; `None` if
    /// more differs. Neither has a lock.
    pub(super) fn answer(&self, request: &SelectionRequest) -> Option<Selection> {
        // The manifests that were written are read again, and what they ask for is compared with what was selected for.
        // The rest of a request stays the same within a command. Who lists an indirect dependency does not, but is told
        // as its requirer.
        let is_alike = self.request.update == request.update
            && self.request.installed == request.installed
            && self.request.local == request.local;
        if !is_alike || parts(&self.request) != parts(request) {
            return None;
        }
        let lists = &request.roots[request.roots.len() - request.indirect..];
        let mut selection = self.selection.clone();
        let packages = selection.packages.iter_mut().map(|one| (&one.id, &mut one.requested));
        let replaced = selection.replaced.iter_mut().map(|one| (&one.id, &mut one.requested));
        for (id, requested) in packages.chain(replaced) {
            let in_use = |demand: &&mut Demand| matches!(&demand.by, RootOrPackage::Root(by) if by == IN_USE);
            for demand in requested.iter_mut().filter(in_use) {
                // In several majors, a package is in several lists.
                // The list that says exactly this, or, if none does, one that has the package.
                let says_it = |one: &Requirement| match &demand.what {
                    Demanded::Version { spec, .. } => *one.to_string() == **spec,
                    Demanded::Capability(_) => false,
                };
                let lists_it =
                    |root: &&RootRequirer| root.requirements.iter().any(|one| one.id == *id);
                let says = |root: &&RootRequirer| {
                    root.requirements.iter().any(|one| one.id == *id && says_it(one))
                };
                let list = lists.iter().find(says).or_else(|| lists.iter().find(lists_it))?;
                demand.by = RootOrPackage::Root(list.by.clone());
            }
            requested.sort();
        }
        Some(selection)
    }

    /// Both plans in one, this one first.
    pub(super) fn then(self, next: Self) -> Self {
        let asked = self.asked.into_iter().zip(next.asked).map(|(asked, next)| {
            // The second plan began with what the first had left: it has no entry for what the first one dropped
            // (`None`), so an entry is taken only where there is one.
            let mut next = next.into_iter();
            asked.into_iter().map(|asked| asked.and_then(|_| next.next().flatten())).collect()
        });
        Self { asked: asked.collect(), ..next }
    }
}

/// What roots require, sorted.
fn required(roots: &[RootRequirer]) -> Vec<&Requirement> {
    let mut all: Vec<_> = roots.iter().flat_map(|root| &root.requirements).collect();
    all.sort();
    all
}

/// What each root requires itself, and what all lists of indirect dependencies have together.
fn parts(request: &SelectionRequest) -> (Vec<(&str, Vec<&Requirement>)>, Vec<&Requirement>) {
    let (own, lists) = request.roots.split_at(request.roots.len() - request.indirect);
    let own = own.iter().filter(|root| !root.requirements.is_empty());
    let own = own.map(|root| (root.by.as_str(), required(std::slice::from_ref(root))));
    (own.collect(), required(lists))
}

/// The requirer, in messages, of versions that no requirement needs but that stay.
const IN_USE: &str = "what is in use";

/// A package that a downgrade lowered or dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// The package.
    pub id: PackageId,
    /// The version it had.
    pub from: String,
    /// The version it has now; `None` if it was dropped.
    pub to: Option<String>,
    /// Why the old version could not stay; `None` if nothing needs the package any more.
    pub because: Option<Because>,
}

/// Why a version could not stay in a downgrade.
#[derive(Debug, Clone, PartialEq)]
pub enum Because {
    /// It needs at least this version of a package.
    Needs(PackageId, String),
    /// It requires this, but another version of that package is in use.
    Asks(Requirement),
    /// Something that stays, by its display name, requires this of its package.
    Asked(String, Requirement),
    /// It requires or provides this capability.
    Capability(String),
    /// It conflicts with this package, or this package with it.
    Conflicts(PackageId),
}

/// A specification that starts at `version` and otherwise says what `before` said; without `before`, that
/// version or later.
///
/// Only a pin has no room for other versions, and a composite version can be named only as a whole, so that
/// its revision counts.
pub fn spec_beginning_at(before: Option<&VersionSpec>, version: &Version) -> VersionSpec {
    match before {
        // A pin stays a pin, and what names content becomes one. A range keeps its form, and anything else gets a lower
        // bound.
        Some(pin @ VersionSpec::Pin(_)) => pin.moved_to(version),
        Some(VersionSpec::Commit(_) | VersionSpec::Digest(_)) => VersionSpec::exactly(version),
        _ if version.as_semver().is_none() => VersionSpec::exactly(version),
        Some(VersionSpec::Range(range)) => VersionSpec::Range(range.beginning_at(version)),
        _ => VersionSpec::at_least(version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_bound_looks_like_the_old_one() {
        let check = |before: &str, version: &str, expected: &str| {
            let before = VersionSpec::parse(before).expect("is a version");
            let version = Version::parse_lenient(version).expect("is a version");
            assert_eq!(spec_beginning_at(Some(&before), &version).as_str(), expected);
        };
        check("^1.2", "1.5.0", "^1.5.0");
        check("1.2.0", "1.5.0", "1.5.0");
        check("=1.2.0", "1.5.0", "=1.5.0");
        check(">=1.2 <2", "1.5.0", ">=1.5.0 <2");
        check("latest", "1.5.0", ">=1.5.0");
        check("tip", "1.5.0", ">=1.5.0");
    }

    #[test]
    fn a_new_bound_has_the_version_as_it_was_published() {
        let version = Version::parse_lenient("1.29").expect("is a version");
        let before = VersionSpec::parse("^1.27").expect("is a version");
        assert_eq!(spec_beginning_at(Some(&before), &version).as_str(), "^1.29");
        assert_eq!(spec_beginning_at(None, &version).as_str(), ">=1.29");
    }
}
