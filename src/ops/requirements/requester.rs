//! Requirers that are not packages of the lock, and their names in locks and messages.

use std::fmt;

use crate::lock::Requested;
use crate::workspace::Member;

/// A requirer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requester {
    /// A package of the workspace, by its name in locks.
    Member(String),
    /// What `mu get REF` was given.
    CommandLine,
    /// The settings' `overrides`.
    Override,
    /// `mu update PKG#VERSION`; never recorded in a lock.
    Update,
    /// `mu downgrade PKG#VERSION`; never recorded in a lock.
    Downgrade,
    /// The references of a what-if question that replace the workspace's own requirements.
    Question,
    /// The references of a what-if question that are added to the workspace's own requirements.
    QuestionToo,
    /// `mu mirror`.
    Mirror,
}

/// The names of requirers that are not packages; a package's name has no spaces.
const TEXTS: &[(Requester, &str)] = &[
    (Requester::CommandLine, "mu get"),
    (Requester::Override, OVERRIDES),
    (Requester::Update, "mu update"),
    (Requester::Downgrade, "mu downgrade"),
    (Requester::Question, "mu resolve"),
    (Requester::QuestionToo, "mu resolve --with"),
    (Requester::Mirror, "mu mirror"),
];

/// The name of the settings' `overrides` in locks.
const OVERRIDES: &str = "overrides";

impl Requester {
    /// A package of the workspace: by the name in its manifest, or by its id if that name is taken.
    pub fn from_member(member: &Member) -> Self {
        let name = member.manifest.name.as_str();
        Self::Member(if name == OVERRIDES { member.id.to_string() } else { name.to_owned() })
    }

    /// The requirer with this name in locks and messages; any other name is a package.
    pub fn from_name(text: &str) -> Self {
        let known = TEXTS.iter().find(|(_, known)| *known == text);
        known.map_or_else(|| Self::Member(text.to_owned()), |(requester, _)| requester.clone())
    }

    /// Its name in locks and messages.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Member(text) => text,
            other => TEXTS.iter().find(|(known, _)| known == other).map_or("", |(_, text)| text),
        }
    }

    /// Whether it is a command that requires a package only for this run, in addition to other requirers.
    pub fn is_move(&self) -> bool {
        matches!(self, Self::Update | Self::Downgrade)
    }

    /// Whether the text in a lock or message is the name of a command for which [`Self::is_move`] holds.
    pub fn is_called_as_move(text: &str) -> bool {
        TEXTS.iter().any(|(requester, known)| requester.is_move() && *known == text)
    }

    /// Whether an override chose a locked package, instead of its other requirements.
    pub fn is_override(requested: &Requested) -> bool {
        &*requested.by == OVERRIDES
    }
}

impl fmt::Display for Requester {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
