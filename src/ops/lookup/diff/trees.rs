//! Two trees of the store, compared file by file. Files that nobody can read as text, or that are very long, are only named.

use schemars::JsonSchema;
use serde::Serialize;

use mu_provider::{Entry, Mode};

use crate::formats::manifest_names;
use crate::ops::CommandError;
use crate::ops::apply::patched::content;
use crate::ops::lookup::diff::lines;
use crate::store::Stored;

/// Longer files are not compared line by line.
const MOST_BYTES: u64 = 1 << 20;

/// How many bytes of a file are searched for a zero, which no text has. Git does the same.
const BINARY_WITHIN: usize = 8000;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// Its content or mode differs.
    Changed,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// Its path in the package.
    pub path: String,
    /// What happened to it.
    pub kind: Kind,
    /// Its mode before, as Git writes it: `100644`, `100755` (executable), `120000` (a link, whose content is its target).
    pub from_mode: Option<&'static str>,
    /// Its mode after.
    pub to_mode: Option<&'static str>,
    /// Its bytes before.
    pub from_size: Option<u64>,
    /// Its bytes after.
    pub to_size: Option<u64>,
    /// What its content is.
    pub content: Content,
    /// The number of new lines, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// The number of lines that are gone, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
    /// The hunks of a unified diff, with three lines of context, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks: Option<String>,
}

/// The content of a file that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// It is the same: only the mode differs.
    Same,
    /// It is text.
    Text,
    /// It is not text.
    Binary,
    /// It is too long to be compared line by line.
    Long,
}

/// The files that differ: manifests first, then by path.
///
/// # Errors
///
/// When a file cannot be read.
pub(super) fn compare(before: &Stored, after: &Stored) -> Result<Vec<FileChange>, CommandError> {
    let (mut old, mut new) = (before.tree.entries(), after.tree.entries());
    let mut changes = Vec::new();
    // Both lists are sorted by path and walked side by side: the lower of their first paths comes next, from one of
    // them or from both. Ends, because each round takes at least one entry.
    while let Some(path) = old.first().into_iter().chain(new.first()).map(|one| &one.path).min() {
        let (was, is) = (take(&mut old, path), take(&mut new, path));
        let is_same =
            was.zip(is).is_some_and(|(was, is)| was.sha256 == is.sha256 && was.mode == is.mode);
        if !is_same {
            changes.push(change(was.map(|was| (before, was)), is.map(|is| (after, is)))?);
        }
    }
    // The sort keeps the order of the others.
    changes.sort_by_key(|change| !manifest_names().any(|name| name == change.path));
    Ok(changes)
}

/// Takes the entry with this path, if it is the first.
fn take<'tree>(entries: &mut &'tree [Entry], path: &str) -> Option<&'tree Entry> {
    let (first, rest) = entries.split_first().filter(|(first, _)| first.path == path)?;
    *entries = rest;
    Some(first)
}

fn change(
    was: Option<(&Stored, &Entry)>,
    is: Option<(&Stored, &Entry)>,
) -> Result<FileChange, CommandError> {
    let [old, new] = [was, is].map(|side| side.map(|(_, entry)| entry));
    let either = new.or(old).expect("one of them is there");
    let kind = match (old, new) {
        (None, _) => Kind::Added,
        (_, None) => Kind::Removed,
        _ => Kind::Changed,
    };
    let sides = [old, new];
    let is_same = old.zip(new).is_some_and(|(old, new)| old.sha256 == new.sha256);
    let (content, compared) = if is_same {
        (Content::Same, None)
    // Sizes and digests are in the trees, so files are read only if they are compared line by line.
    } else if sides.iter().flatten().any(|entry| entry.size > MOST_BYTES) {
        (Content::Long, None)
    } else {
        let (before, after) = (read(was)?, read(is)?);
        match is_binary(&before) || is_binary(&after) {
            true => (Content::Binary, None),
            false => (Content::Text, Some(lines::compare(&before, &after))),
        }
    };
    let [from_mode, to_mode] = sides.map(|side| side.map(|entry| mode(entry.mode)));
    let [from_size, to_size] = sides.map(|side| side.map(|entry| entry.size));
    Ok(FileChange {
        path: either.path.clone(),
        kind,
        from_mode,
        to_mode,
        from_size,
        to_size,
        content,
        added: compared.as_ref().map(|compared| compared.added),
        removed: compared.as_ref().map(|compared| compared.removed),
        hunks: compared.map(|compared| compared.hunks),
    })
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(BINARY_WITHIN).any(|byte| *byte == 0)
}

/// The content of a file, or the target of a link.
fn read(side: Option<(&Stored, &Entry)>) -> Result<Vec<u8>, CommandError> {
    let Some((stored, entry)) = side else { return Ok(Vec::new()) };
    Ok(content(&stored.folder.join(&entry.path), entry.mode)?)
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::File => "100644",
        Mode::Executable => "100755",
        Mode::Symlink => "120000",
    }
}
