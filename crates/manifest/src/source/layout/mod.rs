//! Changes to a file's text that leave everything else as a person wrote it.
//!
//! This adds, removes and changes entries of lists and maps at their places in the text: on lines and in brackets
//! (`entries.rs`), in YAML and JSON. Each change is checked for what it has lost: comments, or the content of other keys. The
//! caller checks whether the result means what was intended. A layout that mu does not understand is an error; mu never guesses.
//!
//! `yaml-edit` 0.3 was considered: it does not edit JSON, and where a list in brackets has several lines, it writes a new entry
//! at the start of a line.

pub(crate) mod entries;

use std::ops::Range;
use std::path::{Path, PathBuf};

use self::entries::is_flow_node;
use super::layout::entries::{Manner, New, render_key, render_text};
use super::{Document, Entry, FileSyntax, Kind, Node, ScalarNotation, SourceError};
use crate::source::TextProblem;

/// Changes to one document, by places in its text as it was read.
#[derive(Debug)]
pub struct Patch<'d> {
    document: &'d Document<'d>,
    splices: Vec<(Range<usize>, String)>,
}

/// A new entry for a list, or with a key for a map.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// Its key, in a map.
    pub key: Option<String>,
    /// Its value.
    pub value: New,
}

/// A list or map in a document.
#[derive(Debug, Clone, Copy)]
pub struct Collection<'d> {
    node: &'d Node<'d>,
    /// Its key in the outermost map; `None` if it is deeper inside.
    key: Option<&'d Entry<'d>>,
    /// Whether it is inside brackets.
    in_flow: bool,
}

impl<'d> Collection<'d> {
    /// The list or map under `key` of the outermost map, if the document has that key.
    pub fn find(document: &'d Document<'d>, key: &str) -> Option<Self> {
        let entry = document.node().entry(key)?;
        Some(Self { node: &entry.value, key: Some(entry), in_flow: is_flow_node(document.node()) })
    }

    /// The outermost map.
    pub(crate) fn outermost(document: &'d Document<'d>) -> Self {
        Self { node: document.node(), key: None, in_flow: false }
    }

    /// The list or map that is entry `index` of this one.
    pub fn nested_collection(self, index: usize) -> Self {
        Self {
            node: self.value(index),
            key: None,
            in_flow: self.in_flow || is_flow_node(self.node),
        }
    }

    /// The list or map under a key of this one.
    pub fn nested_at_key(self, key: &str) -> Option<Self> {
        let index = self.entries().iter().position(|entry| entry.key == key)?;
        Some(self.nested_collection(index))
    }

    /// The value of entry `index`.
    #[expect(
        clippy::indexing_slicing,
        reason = "whoever has the number of an entry has it of this one"
    )]
    pub(crate) fn value(self, index: usize) -> &'d Node<'d> {
        match &self.node.kind {
            Kind::List { items, .. } => &items[index],
            Kind::Table { entries, .. } => &entries[index].value,
            Kind::Scalar { .. } => self.node,
        }
    }

    /// The text of entry `index`, if it is not a list or map.
    pub(crate) fn text(self, index: usize) -> Option<&'d str> {
        match &self.value(index).kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether this is a map with a value for `key`.
    pub(crate) fn has(self, key: &str) -> bool {
        self.node.entry(key).is_some_and(|entry| !entry.value.is_null_node())
    }

    /// Whether this is a map.
    pub fn is_map_collection(self) -> bool {
        matches!(self.node.kind, Kind::Table { .. })
    }

    /// Whether its entries are inside brackets.
    pub fn is_flow(self) -> bool {
        self.in_flow || is_flow_node(self.node)
    }

    /// Whether a new entry would be on a separate line, where a comment can follow.
    pub(crate) fn takes_comments(self) -> bool {
        !self.in_flow && (!is_flow_node(self.node) || self.len() == 0)
    }

    pub(crate) fn len(self) -> usize {
        match &self.node.kind {
            Kind::List { items, .. } => items.len(),
            Kind::Table { entries, .. } => entries.len(),
            Kind::Scalar { .. } => 0,
        }
    }

    fn entries(self) -> &'d [Entry<'d>] {
        match &self.node.kind {
            Kind::Table { entries, .. } => entries,
            _ => &[],
        }
    }

    /// The bytes of entry `index`: of its value in a list, from its key on in a map.
    fn span(self, index: usize) -> Range<usize> {
        let value = self.value(index).span();
        match self.entries().get(index) {
            Some(entry) => entry.key_span.start..value.end.max(entry.key_span.end),
            None => value,
        }
    }

    /// The quotes that the last text in it has.
    fn style(self) -> ScalarNotation {
        let style = |index| match &self.value(index).kind {
            Kind::Scalar { style, .. } => Some(*style),
            _ => None,
        };
        (0..self.len()).rev().find_map(style).unwrap_or(ScalarNotation::Plain)
    }
}

/// The comment behind entry `index`, from its `#` to the end of its line.
pub(crate) fn trailing_comment<'d>(
    document: &'d Document<'d>,
    collection: Collection<'d>,
    index: usize,
) -> Option<&'d str> {
    let span = document.comment_after(collection.span(index).end)?;
    Some(document.text[span].trim_end())
}

impl<'d> Patch<'d> {
    fn new(document: &'d Document<'d>) -> Self {
        Self { document, splices: Vec::new() }
    }

    fn changed_text(&self) -> String {
        let mut splices: Vec<_> = self.splices.iter().collect();
        splices.sort_by_key(|(range, _)| (range.start, range.end));
        let text = self.document.text;
        let mut changed = String::with_capacity(text.len() + 64);
        let mut at = 0;
        for (range, new) in splices {
            changed.push_str(&text[at..range.start.max(at)]);
            changed.push_str(new);
            at = range.end.max(at);
        }
        changed.push_str(&text[at..]);
        changed
    }

    /// Puts one more entry at the end of the list or map under `key` of the outermost map, which may not be there
    /// yet.
    ///
    /// # Errors
    ///
    /// When its layout is not understood.
    pub fn add(&mut self, key: &str, new: &NewEntry) -> Result<(), SourceError> {
        match Collection::find(self.document, key) {
            Some(collection) => self.push(collection, new),
            None => self.push_collection(key, new),
        }
    }

    /// Puts one more entry at the end of a list or map.
    fn push(&mut self, collection: Collection<'d>, new: &NewEntry) -> Result<(), SourceError> {
        let node = collection.node;
        if let (Kind::Scalar { .. }, false) = (&node.kind, node.is_null_node()) {
            return Err(self.document.not_understood(node.span()));
        }
        if collection.in_flow || (is_flow_node(node) && !self.can_open(collection)) {
            return self.push_to_flow(collection, new);
        }
        if collection.len() == 0 {
            return self.open_block(collection, new);
        }
        self.push_to_block(collection, new)
    }

    /// Adds a new key with a list or map of one entry at the end of the outermost map.
    fn push_collection(&mut self, key: &str, new: &NewEntry) -> Result<(), SourceError> {
        let root = self.document.node();
        match &root.kind {
            Kind::Table { flow: true, .. } => {
                let text = self.in_brackets(new);
                let entry = format!(
                    "{}: {text}",
                    render_key(key, self.manner(true, ScalarNotation::Plain))
                );
                self.push_rendered(Collection { node: root, key: None, in_flow: true }, &entry)
            }
            Kind::Table { entries, .. } => {
                let first = entries.first().map_or(root.span.start, |entry| entry.key_span.start);
                let indent = self.document.indent_at(first)?;
                self.append_block(key, indent, new);
                Ok(())
            }
            _ if root.is_null_node() => {
                self.append_block(key, "", new);
                Ok(())
            }
            _ => Err(self.document.not_understood(root.span())),
        }
    }

    /// Removes an entry from a list or map; an empty one stays as `[]` or `{}`.
    ///
    /// # Errors
    ///
    /// When its layout is not understood.
    pub fn take(&mut self, collection: Collection<'d>, index: usize) -> Result<(), SourceError> {
        if is_flow_node(collection.node) {
            self.take_from_flow(collection, index);
            return Ok(());
        }
        self.take_from_block(collection, index)
    }

    /// Writes another text in place of the value of entry `index`, in the same quotes.
    ///
    /// # Errors
    ///
    /// When the value is not a text on one line.
    pub fn replace_text(
        &mut self,
        collection: Collection<'d>,
        index: usize,
        text: &str,
    ) -> Result<(), SourceError> {
        let node = collection.value(index);
        match node.kind {
            Kind::Scalar { style, .. }
                if style != ScalarNotation::Block && !node.span.is_empty() =>
            {
                let rendered = render_text(text, self.manner(collection.is_flow(), style));
                self.replace(node.span(), rendered);
                Ok(())
            }
            _ => Err(self.document.not_understood(collection.span(index))),
        }
    }

    /// Writes another value in place of that of entry `index`.
    pub fn replace_value(&mut self, collection: Collection<'d>, index: usize, new: &New) {
        let rendered = new.render(self.manner(collection.is_flow(), ScalarNotation::Plain));
        self.replace(collection.value(index).span(), rendered);
    }

    /// Sets a key of a map: replaces its value, or adds an entry.
    ///
    /// # Errors
    ///
    /// When its layout is not understood.
    pub fn set(&mut self, table: Collection<'d>, key: &str, value: New) -> Result<(), SourceError> {
        let found = table.entries().iter().enumerate().find(|(_, entry)| entry.key == key);
        match (found, &value) {
            (Some((index, _)), New::Text(text)) if !table.value(index).is_null_node() => {
                self.replace_text(table, index, text)
            }
            (Some((_, entry)), _) => {
                let colon = self.document.after_colon(entry)?;
                let rendered = value.render(self.manner(table.is_flow(), ScalarNotation::Plain));
                self.replace(colon..entry.value.span.end.max(colon), format!(" {rendered}"));
                Ok(())
            }
            (None, _) => {
                let new = NewEntry { key: Some(key.to_owned()), value };
                self.push(table, &new)
            }
        }
    }

    /// Takes a key out of a map, if it is there.
    ///
    /// # Errors
    ///
    /// When its layout is not understood.
    pub fn unset(&mut self, table: Collection<'d>, key: &str) -> Result<(), SourceError> {
        match table.entries().iter().position(|entry| entry.key == key) {
            Some(index) => self.take(table, index),
            None => Ok(()),
        }
    }

    /// Takes a key out of the outermost map, if it is there.
    ///
    /// # Errors
    ///
    /// When its layout is not understood.
    pub fn take_key(&mut self, key: &str) -> Result<(), SourceError> {
        self.unset(Collection::outermost(self.document), key)
    }

    /// Writes the comment after entry `index`, which ends its line. Empty text removes the comment.
    pub(crate) fn set_comment(&mut self, collection: Collection<'d>, index: usize, words: &str) {
        let text = self.document.text;
        let end = collection.span(index).end;
        match (self.document.comment_after(end), words) {
            (None, "") => {}
            (None, words) => self.insert(end, format!(" # {words}")),
            (Some(comment), words) => {
                let end = comment.start + text[comment.clone()].trim_end().len();
                let start = match words {
                    "" => text[..comment.start].trim_end_matches([' ', '\t']).len(),
                    _ => comment.start,
                };
                let written = if words.is_empty() { String::new() } else { format!("# {words}") };
                if text[start..end] != written {
                    self.replace(start..end, written);
                }
            }
        }
    }

    /// The document as it was read.
    pub(crate) fn original_document(&self) -> &'d Document<'d> {
        self.document
    }

    fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.splices.push((range, text.into()));
    }

    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    fn manner(&self, flow: bool, style: ScalarNotation) -> Manner {
        Manner { format: self.document.format, flow, style }
    }

    /// An entry's text on one line, with its key if it has one.
    fn entry_text(&self, new: &NewEntry, manner: Manner) -> String {
        let value = new.value.render(manner);
        match &new.key {
            Some(key) => format!("{}: {value}", render_key(key, manner)),
            None => value,
        }
    }
}

/// Why a manifest could not be changed; its text is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The manifest is wrong, or has a layout that mu does not understand.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The manifest cannot have the change, whatever is written in it.
    #[error("cannot change `{}`: {message}", .path.display())]
    Refused {
        /// The manifest.
        path: PathBuf,
        /// Why.
        message: String,
        /// What the user can do.
        help: Option<String>,
    },
    /// The changed text would not have meant what was intended.
    #[error("cannot change {}`{}` without changing other parts of it; the file was not changed", in_line(.line), .path.display())]
    Unsafe {
        /// The manifest.
        path: PathBuf,
        /// The line of what was to be changed, counted from 1, if it is known.
        line: Option<usize>,
    },
}

impl EditError {
    /// A change that the manifest at `path` cannot have.
    pub fn refused(path: &Path, problem: TextProblem) -> Self {
        let TextProblem { message, help, .. } = problem;
        Self::Refused { path: path.to_owned(), message, help }
    }

    /// A change after which the file at `path` would not mean what was intended.
    pub fn unsafe_at(path: &Path) -> Self {
        Self::Unsafe { path: path.to_owned(), line: None }
    }

    /// This error, about the entry in a line, which is closer than what the error knew; 0 is none.
    #[must_use]
    pub(crate) fn in_line(self, number: usize) -> Self {
        match self {
            Self::Unsafe { path, line } => {
                Self::Unsafe { path, line: (number > 0).then_some(number).or(line) }
            }
            other => other,
        }
    }
}

fn in_line(line: &Option<usize>) -> String {
    line.map(|line| format!("line {line} of ")).unwrap_or_default()
}

impl<'d> Patch<'d> {
    /// The text with all changes. It is an error if it is no longer well formed, has other content under a key
    /// other than `key`, or lacks a comment that no change was about.
    fn apply(&self, key: &str) -> Result<String, EditError> {
        self.checked(key).ok_or_else(|| {
            let first = self.splices.first().map(|(range, _)| self.document.line_of(range.start));
            EditError::unsafe_at(self.document.path).in_line(first.unwrap_or_default())
        })
    }

    fn checked(&self, key: &str) -> Option<String> {
        let changed = self.changed_text();
        let after = Document::laid_out(self.document.path, &changed).ok()?;
        let mut left: Vec<&str> = after.comments().collect();
        for comment in self.untouched_comments() {
            let place = left.iter().position(|other| *other == comment)?;
            left.swap_remove(place);
        }
        self.document.differs_only_in(key, &after).then_some(changed)
    }

    /// The comments that none of the changes touches.
    fn untouched_comments(&self) -> Vec<&'d str> {
        let document = self.document;
        let untouched = document.comments.iter().filter(|span| {
            let meets =
                |range: &std::ops::Range<usize>| range.start < span.end && span.start < range.end;
            !self.splices.iter().any(|(range, _)| meets(range))
        });
        untouched.map(|span| document.text[span.clone()].trim_end()).collect()
    }
}

impl Document<'_> {
    /// Whether another text of the same file has the same content under every outermost key but one.
    fn differs_only_in(&self, key: &str, other: &Document<'_>) -> bool {
        let (left, right) = (self.others(key), other.others(key));
        let same = |(left, right): (&&Entry<'_>, &&Entry<'_>)| {
            left.key == right.key && left.value.means(&right.value)
        };
        left.len() == right.len() && left.iter().zip(&right).all(same)
    }

    fn others(&self, key: &str) -> Vec<&Entry<'_>> {
        match &self.root.kind {
            Kind::Table { entries, .. } => {
                entries.iter().filter(|entry| entry.key != key).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The text of the file at `path` after a change under `key`.
///
/// # Errors
///
/// When the change itself fails, or would have lost something.
pub fn change(
    path: &Path,
    text: &str,
    key: &str,
    change: impl for<'d> FnOnce(&mut Patch<'d>, Option<Collection<'d>>) -> Result<(), SourceError>,
) -> Result<String, EditError> {
    let document = Document::laid_out(path, text)?;
    let mut patch = Patch::new(&document);
    change(&mut patch, Collection::find(&document, key))?;
    patch.apply(key)
}

/// The text of the file at `path` with `value` under `key` of the outermost map: it replaces what is there, or
/// becomes a new entry.
///
/// # Errors
///
/// As [`change`].
pub fn set(path: &Path, text: &str, key: &str, value: New) -> Result<String, EditError> {
    let document = Document::laid_out(path, text)?;
    let mut patch = Patch::new(&document);
    if document.node().is_null_node() {
        let rendered = value.render(patch.manner(false, ScalarNotation::Plain));
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        patch.insert(text.len(), format!("{end}{key}: {rendered}\n"));
    } else {
        patch.set(Collection::outermost(&document), key, value)?;
    }
    patch.apply(key)
}
