//! Requirers that are not packages of the lock, and how locks and messages write them and what they require.
//!
//! [`Requester`] is such a requirer, with its name. [`print_extra`] and [`parse_extra`] write and read the references
//! of `mu get` in a lock's `extra`: a reference, and its conditions on versions. What is required is collected
//! elsewhere.

use std::fmt;

use crate::index::Requirement;
use crate::lock::{LockedPackage, Requested};
use crate::manifest;
use crate::reference::{Defaults, PackageId, Reference, ReferenceError, VersionSpec};
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

    /// The override that chose a locked package, if one did.
    pub(crate) fn override_of(package: &LockedPackage) -> Option<&Requested> {
        package.requested.iter().find(|requested| Self::is_override(requested))
    }
}

impl fmt::Display for Requester {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a dependency requires of the package `id`.
pub(crate) fn requirement(id: PackageId, dependency: &manifest::Requirement) -> Requirement {
    Requirement {
        prerelease: dependency.prerelease,
        channel: dependency.channel.clone(),
        app_version: dependency.app_version.clone(),
        ..Requirement::new(id, dependency.reference.spec())
    }
}

/// A reference of the command line with its conditions on versions, as in `extra` of a lock.
pub fn print_extra(dependency: &manifest::Requirement) -> String {
    let id = PackageId::new(&Defaults::default().base, dependency.reference.name());
    let narrowing = narrowing(requirement(id, dependency));
    let mark = if dependency.indirect { INDIRECT } else { "" };
    format!("{}{narrowing}{mark}", dependency.reference)
}

/// What narrows a requirement in addition to its version, in its own words.
pub(crate) fn narrowing(requirement: Requirement) -> String {
    let any = Requirement { spec: VersionSpec::Latest, ..requirement }.to_string();
    any.strip_prefix(&VersionSpec::Latest.to_string()).unwrap_or_default().to_owned()
}

/// The mark after an entry of a lock's `extra` that is an indirect dependency.
const INDIRECT: &str = " # indirect";

/// Reads an entry of a lock's `extra`.
pub fn parse_extra(text: &str) -> Result<manifest::Requirement, ReferenceError> {
    let (text, indirect) = match text.strip_suffix(INDIRECT) {
        Some(text) => (text, true),
        None => (text, false),
    };
    let words = [" of app version ", " in channel ", " with prereleases"];
    let end = words.iter().filter_map(|word| text.find(word)).min().unwrap_or(text.len());
    let reference = Reference::parse(&text[..end])?;
    let id = PackageId::new(&Defaults::default().base, reference.name());
    let latest = VersionSpec::Latest.to_string();
    let narrowed = Requirement::parse(id, &format!("{latest}{}", &text[end..]));
    let mut dependency =
        manifest::Requirement { indirect, ..manifest::Requirement::new(reference) };
    if let Some(narrowed) = narrowed {
        dependency.prerelease = narrowed.prerelease;
        dependency.channel = narrowed.channel;
        dependency.app_version = narrowed.app_version;
    }
    Ok(dependency)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_keeps_what_narrows_a_reference() {
        for text in [
            "aws/vpc#^2",
            "aws/vpc",
            "aws/vpc#>=1 <2 in channel fast",
            "aws/vpc of app version 2.3 in channel stable with prereleases",
            "aws/vpc#>=1.2.0 # indirect",
        ] {
            let parsed = parse_extra(text).expect("is a reference");
            assert_eq!(print_extra(&parsed), text);
        }
        let parsed =
            parse_extra("aws/vpc#^2 in channel fast with prereleases").expect("is a reference");
        assert_eq!((parsed.channel.as_deref(), parsed.prerelease), (Some("fast"), true));
    }
}
