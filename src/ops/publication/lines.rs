//! Index lines as they are in files, including unknown keys: which are copies of each other, and what may
//! change in them.

use std::collections::BTreeSet;
use std::fmt::Display;

use mu_hub::{HubError, Notice};
use mu_provider::{NO_REASON, Yanked};
use serde_json::{Map, Value};

use crate::reference::Version;

/// An index line.
pub(super) type IndexLine = Map<String, Value>;

/// What can change of a published version.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark<'a> {
    /// Why this is said against it; `None` if it is not.
    Notice(Notice, Option<&'a str>),
    /// A tag that it has.
    Tag(&'a str),
    /// A tag that it does not have.
    NoTag(&'a str),
    /// The package that took the place of its package, if one did.
    Moved(Option<&'a str>),
}

impl Mark<'_> {
    /// Whether hubs accept it.
    pub(super) fn check(self) -> Result<(), HubError> {
        match self {
            Self::Notice(_, reason) => reason.map_or(Ok(()), mu_hub::check_reason),
            Self::Tag(tag) | Self::NoTag(tag) => mu_hub::check_tag(tag),
            Self::Moved(_) => Ok(()),
        }
    }

    /// Whether a version has it already.
    pub(super) fn is_on(self, line: &IndexLine) -> bool {
        match self {
            Self::Notice(notice, reason) => {
                let reason = reason.map(|reason| Yanked::Reason(reason.to_owned()));
                reason_of(line, notice) == reason.and_then(|reason| reason.reason())
            }
            Self::Tag(tag) => version_tags(line).contains(tag),
            Self::NoTag(tag) => !version_tags(line).contains(tag),
            Self::Moved(to) => line.get("movedTo").and_then(Value::as_str) == to,
        }
    }
}

/// The version that a line is about, as references name it.
pub(super) fn line_version(line: &Map<String, Value>) -> String {
    let text = |key: &str| line.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("versioning") {
        "composite" => format!("{}-{}", text("appVersion"), text("version")),
        _ => text("version").to_owned(),
    }
}

/// Whether a line is about this version. With lenient versions, `1.28` and `1.28.0` are the same.
pub(super) fn is_version(line: &IndexLine, version: &str) -> bool {
    let own = line_version(line);
    let is_lenient = line.get("versions").is_some_and(|versions| versions == "lenient");
    let number = |text: &str| Version::parse_lenient(text).ok();
    own == version || is_lenient && number(&own).is_some() && number(&own) == number(version)
}

/// The line with the same version and the same archive; if the place's index has no archives, with the same
/// content.
pub(super) fn copy_of<'l>(line: &IndexLine, there: &'l [IndexLine]) -> Option<&'l IndexLine> {
    let version = line_version(line);
    let copy = there.iter().find(|copy| line_version(copy) == version)?;
    let key = if copy.contains_key("archive") { "archive" } else { "digest" };
    copy.get(key).filter(|same| line.get(key) == Some(same)).map(|_| copy)
}

/// Turns a line of a foreign hub into one that mu's hubs accept: the reason of a notice must be one line
/// of text, and `movedTo` a package. Returns why it was not acceptable.
pub(super) fn tidied(name: &str, line: &mut IndexLine) -> Option<HubError> {
    for notice in Notice::ALL {
        if let Some(reason) = reason_of(line, notice) {
            let reason = if reason.is_empty() { NO_REASON } else { &*reason };
            line.insert(notice.key().to_owned(), reason.replace(char::is_control, " ").into());
        }
    }
    let to = line.get("movedTo").and_then(Value::as_str)?;
    let error = mu_hub::check_moved_to(name, to).err()?;
    line.shift_remove("movedTo");
    Some(error)
}

/// The line of a version among those of its package at `place`.
pub(super) fn existing_line(
    lines: Vec<IndexLine>,
    place: &impl Display,
    name: &str,
    version: &str,
) -> Result<IndexLine, HubError> {
    let is_empty = lines.is_empty();
    lines.into_iter().find(|line| is_version(line, version)).ok_or_else(|| {
        let package = if is_empty { name.to_owned() } else { format!("{name} {version}") };
        HubError::NotFound { place: place.to_string(), package }
    })
}

/// Why something is said against a version, if it is.
pub(crate) fn reason_of(line: &IndexLine, notice: Notice) -> Option<String> {
    let said = line.get(notice.key()).cloned().unwrap_or_default();
    serde_json::from_value(said).ok().and_then(|said: Yanked| said.reason())
}

/// The tags of a version.
pub(crate) fn version_tags(line: &IndexLine) -> BTreeSet<&str> {
    let tags = line.get("tags").and_then(Value::as_array);
    tags.into_iter().flatten().filter_map(Value::as_str).collect()
}
