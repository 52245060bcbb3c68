//! How a lock differs from what is required now, as data, each with its one line for people and programs.
//!
//! Which differences there are is found out in `mod.rs` and `overtaken.rs`, and those of patches in `ops::solve`.

use serde::{Serialize, Serializer};

use crate::lock::Requested;
use crate::reference::PackageId;
use crate::select::Rejection;

/// Something because of which a lock is not up to date.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is")]
pub enum LockDifference {
    #[error("{} {}requires {}{}", .requested.by, no_longer(.is_new), of_what(.id.as_ref()), .requested.spec)]
    Requirement { id: Option<PackageId>, requested: Requested, is_new: bool },
    #[error("the lock was written with the strategy `{locked}`, but `{now}` is in use now")]
    Strategy { locked: String, now: &'static str },
    #[error("it has both sides of a merge in it")]
    Merge,
    #[error("the entry of {0} is in the lock twice")]
    Doubled(PackageId),
    #[error("{id} is locked in {} and in {}", .versions[0], .versions[1])]
    Twice { id: PackageId, versions: [String; 2] },
    #[error("{0} is now in the workspace")]
    InWorkspace(PackageId),
    #[error("{0} is no longer in the workspace")]
    NotInWorkspace(PackageId),
    #[error("{id} {version} {}", .why.of_one())]
    Unusable { id: PackageId, version: String, why: Rejection },
    #[error("{by} uses the {id} that it carries inside now")]
    Bundled { by: PackageId, id: PackageId },
    #[error("`aliases` in the settings make {id} the package {counted}")]
    Aliased { id: PackageId, counted: PackageId },
    #[error("{by} no longer replaces {id}")]
    NotReplaced { id: PackageId, by: PackageId },
    #[error("{by} of the workspace replaces {id}")]
    ReplacedByOwn { id: PackageId, by: PackageId },
    #[error("{by} may replace {id} now")]
    Replaceable { id: PackageId, by: PackageId },
    // Both by their ids, locked ones with their versions, or what is meant in the workspace.
    #[error("{by} conflicts with {with}")]
    Opposed { by: String, with: String },
    #[error("{} provide {capability} now", .by.join(" and "))]
    ProvidedTwice { capability: String, by: Vec<String> },
    #[error("{id} requires {capability}, which nothing provides")]
    Unprovided { capability: String, id: PackageId },
    #[error("the runtime provides {0} now")]
    InRuntime(String),
    #[error("the settings patch {0}, and Mu.lock does not have that")]
    PatchNotLocked(PackageId),
    #[error("Mu.lock has a patch of {0}, and the settings do not")]
    PatchNotSet(PackageId),
    #[error("the patch of {0} has changed")]
    PatchChanged(PackageId),
    #[error("newer versions were requested")]
    NewerRequested,
}

fn no_longer(is_new: &bool) -> &'static str {
    if *is_new { "" } else { "no longer " }
}

/// The package that is required, before its versions; without one, what is required is a capability.
fn of_what(id: Option<&PackageId>) -> String {
    id.map_or_else(|| "the ".to_owned(), |id| format!("{id} "))
}

impl Serialize for LockDifference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
