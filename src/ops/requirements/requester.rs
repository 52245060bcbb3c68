//! Who asks for packages without being a package of the lock, and what locks and messages call them.

use std::fmt;

use crate::lock::Requested;
use crate::workspace::Member;

/// Who asks for something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requester {
    /// A package of the workspace, by what locks call it.
    Member(String),
    /// What `mu get REF` was given.
    CommandLine,
    /// The settings' `overrides`.
    Override,
    /// `mu update PKG#VERSION`; never recorded in a lock.
    Update,
    /// `mu downgrade PKG#VERSION`; never recorded in a lock.
    Downgrade,
    /// The references that stand in a question instead of the workspace's own requirements.
    Question,
    /// The references that are added to the workspace's own requirements in a question.
    QuestionToo,
    /// `mu mirror`.
    Mirror,
}

/// What locks and messages call those that are no packages; a name of a package has no spaces.
const TEXTS: &[(Requester, &str)] = &[
    (Requester::CommandLine, "mu get"),
    (Requester::Override, OVERRIDES),
    (Requester::Update, "mu update"),
    (Requester::Downgrade, "mu downgrade"),
    (Requester::Question, "mu resolve"),
    (Requester::QuestionToo, "mu resolve --with"),
    (Requester::Mirror, "mu mirror"),
];

/// What locks call the settings' `overrides`.
const OVERRIDES: &str = "overrides";

impl Requester {
    /// A package of the workspace: by the name in its manifest, or by its id if something else is called so.
    pub fn of(member: &Member) -> Self {
        let name = member.manifest.name.as_str();
        Self::Member(if name == OVERRIDES { member.id.to_string() } else { name.to_owned() })
    }

    /// The one that locks and messages call so; whoever has no name there is a package.
    pub fn called(text: &str) -> Self {
        let known = TEXTS.iter().find(|(_, known)| *known == text);
        known.map_or_else(|| Self::Member(text.to_owned()), |(requester, _)| requester.clone())
    }

    /// What locks and messages call it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Member(text) => text,
            other => TEXTS.iter().find(|(known, _)| known == other).map_or("", |(_, text)| text),
        }
    }

    /// Whether it is a command that asks only this once, for a package that others ask for too.
    pub fn is_move(&self) -> bool {
        matches!(self, Self::Update | Self::Downgrade)
    }

    /// Whether the settings asked for a locked package, instead of what others asked.
    pub fn is_override(requested: &Requested) -> bool {
        &*requested.by == OVERRIDES
    }
}

impl fmt::Display for Requester {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
