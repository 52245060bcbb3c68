//! What a user can do about a conflict, as data. `ways_out` finds it; the command or edit for it is chosen
//! elsewhere.

use mu_manifest::reference::PackageId;

use crate::universe::Requirement;

/// Something that the user can do about a conflict.
#[derive(Debug, Clone, PartialEq)]
pub enum WayOut {
    /// Require something else; several of these together if one is not enough.
    Ask(Vec<Ask>),
    /// Pin a withdrawn version.
    Withdrawn(Vec<Ask>),
    /// Change a fact of the runtime: the fact, and its new value.
    Runtime(String, String),
    /// Drop the requirement of a package.
    GiveUp(PackageId),
    /// Stop excluding versions of a package in the settings.
    Include(PackageId),
    /// Allow versions of any age.
    AnyAge,
    /// Let a package use the copy that it carries inside of another one: the second.
    Bundle(PackageId, PackageId),
    /// Use a package itself, not what the settings override it by.
    NoOverride(PackageId),
    /// Let only this package replace that one: the second replaces the first, or, if both are the same,
    /// nothing does.
    Replace(PackageId, PackageId),
    /// Say in the settings that a package replaces another one: the first replaces the second.
    TakePlace(PackageId, PackageId),
    /// Let packages be chosen once for each major version; of this one, two majors clash.
    ManyMajors(PackageId),
    /// Use one version of a package, whatever is required of it.
    Override(PackageId, String),
    /// Forget which version is installed, so that upgrades need not follow each other from there.
    Forget(PackageId, String),
    /// Choose with the other strategy: highest.
    Highest,
    /// Choose with the other strategy: minimal.
    Minimal,
    /// Do all of these, because none is enough alone.
    Together(Vec<WayOut>),
}

/// What a root should require.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The root, by its name for people.
    pub by: String,
    /// What it requires now; `None` if it does not require the package.
    pub from: Option<Requirement>,
    /// What to require instead.
    pub to: Requirement,
    /// The version that is chosen then.
    pub version: String,
}
