//! `tag`: adds a tag to a published version.

use crate::ops::publication::lines::Mark;
use crate::ops::publication::marked::{Marked, named};
use crate::ops::{CommandError, Session};

/// The version to tag.
#[derive(Debug, Clone, Default)]
pub struct TagRequest {
    /// A reference with a version.
    pub reference: String,
    /// The tag.
    pub tag: String,
    /// Whether it is removed.
    pub undo: bool,
    /// The hub; `None` means the one that the reference leads to.
    pub to: Option<String>,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// Adds a tag to a version, or removes it. A tag on another version of the package moves.
///
/// # Errors
///
/// When there is no such version, or the hub refuses.
pub fn tag(session: &Session, request: &TagRequest) -> Result<Marked, CommandError> {
    let named = named(session, &request.reference, request.to.as_deref())?;
    let tag = &*request.tag;
    let mark = if request.undo { Mark::NoTag(tag) } else { Mark::Tag(tag) };
    Marked::new(named, mark, request.dry_run)
}
