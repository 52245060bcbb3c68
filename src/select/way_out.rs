//! What a user can do about a conflict, as data. `ways_out` finds it; which command or edit does it is not known here.

use crate::index::Requirement;
use crate::reference::PackageId;

/// Something that the user can do about a conflict.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum WayOut {
    /// Ask for something else; several of these together where one is not enough.
    Ask(Vec<Ask>),
    /// Pin a version although it was withdrawn.
    Withdrawn(Vec<Ask>),
    /// Say that a fact of the runtime is another one: the fact, and what it should be.
    Runtime(String, String),
    /// Ask no more for a package.
    GiveUp(PackageId),
    /// Take versions of a package out of what the settings exclude.
    Include(PackageId),
    /// Let versions in however young they are.
    AnyAge,
    /// Use a package itself, not what the settings override it by.
    NoOverride(PackageId),
    /// Let only this package replace that one: the second takes the place of the first, or, if both are one, nothing does.
    Replace(PackageId, PackageId),
    /// Use one version of a package, whatever is asked of it.
    Override(PackageId, String),
    /// Forget which version is installed, so that upgrades need not follow each other from there.
    Forget(PackageId, String),
    /// Choose by the other strategy: highest.
    Highest,
    /// Choose by the other strategy: minimal.
    Minimal,
    /// Do all of these, where none is enough alone.
    Together(Vec<WayOut>),
}

/// What a root should ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The root, by its name for people.
    pub by: String,
    /// What it asks for now; `None` if it asks nothing of the package.
    pub from: Option<Requirement>,
    /// What to ask instead.
    pub to: Requirement,
    /// The version that is chosen then.
    pub version: String,
}
