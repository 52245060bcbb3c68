//! Lists and maps whose entries are on separate lines.

use super::{Collection, NewEntry, Patch, is_flow_node, is_list_node};
use crate::source::SourceError;
use crate::source::node::ScalarNotation;
use crate::source::render::render_key;

impl<'d> Patch<'d> {
    /// Puts a line behind the last entry's.
    pub(super) fn push_to_block(
        &mut self,
        collection: Collection<'d>,
        new: &NewEntry,
    ) -> Result<(), SourceError> {
        let first = collection.span(0).start;
        let indent = if is_list_node(collection.node) {
            format!("{}- ", self.document.indent_at(self.document.dash_before(first)?)?)
        } else {
            self.document.column_at(first)
        };
        let entry = self.entry_text(new, self.manner(false, collection.style()));
        let last = collection.span(collection.len() - 1);
        let line = self.line(&indent, &entry);
        self.insert(self.document.line_end(last.end), line);
        Ok(())
    }

    /// Whether an empty list or map in brackets can become lines: only directly below its own key.
    pub(super) fn can_open(&self, collection: Collection<'d>) -> bool {
        let has_comments = self.document.comments_in(collection.node.span()).next().is_some();
        collection.key.is_some() && collection.len() == 0 && !has_comments
    }

    /// Writes the first entry on the line below a key that has no value, `[]` or `{}`.
    pub(super) fn open_block(
        &mut self,
        collection: Collection<'d>,
        new: &NewEntry,
    ) -> Result<(), SourceError> {
        let end = self.clear_value(collection)?;
        let prefix = self.line_prefix(collection, new.key.is_none())?;
        let entry = self.entry_text(new, self.manner(false, ScalarNotation::Plain));
        let line = self.line(&prefix, &entry);
        self.insert(self.document.line_end(end), line);
        Ok(())
    }

    /// An entry below what comes before it. If it has several lines, they are aligned with its first
    /// character.
    fn line(&self, prefix: &str, entry: &str) -> String {
        let ending = self.document.line_ending();
        let next = format!("{ending}{}", " ".repeat(prefix.chars().count()));
        format!("{ending}{prefix}{}", entry.replace('\n', &next))
    }

    /// Writes a key and its first entry at the end of the file.
    pub(super) fn append_block(&mut self, key: &str, indent: &str, new: &NewEntry) {
        let text = self.document.text;
        let ending = self.document.line_ending();
        let is_list = new.key.is_none();
        let step = self.document.usual_step(is_list);
        let dash = if is_list { "- " } else { "" };
        let key = render_key(key, self.manner(false, ScalarNotation::Plain));
        let entry = self.entry_text(new, self.manner(false, ScalarNotation::Plain));
        let line = self.line(&format!("{indent}{step}{dash}"), &entry);
        let lines = format!("{indent}{key}:{line}");
        // A line of `...` ends the document. Nothing can follow it.
        let content = self.document.node().span.end;
        match text[content..].find("\n...") {
            Some(at) => {
                self.insert(self.document.line_end(content + at), format!("{ending}{lines}"))
            }
            None if text.is_empty() || text.ends_with('\n') => {
                self.insert(text.len(), format!("{lines}{ending}"));
            }
            None => self.insert(text.len(), format!("{ending}{lines}")),
        }
    }

    pub(super) fn take_from_block(
        &mut self,
        collection: Collection<'d>,
        index: usize,
    ) -> Result<(), SourceError> {
        let span = collection.span(index);
        let is_list = is_list_node(collection.node);
        let start = if is_list { self.document.dash_before(span.start)? } else { span.start };
        self.document.indent_at(start)?;
        let line_start = self.document.line_start(start);
        let lines = line_start..self.document.line_end(span.end);
        self.replace(self.document.whole_lines(lines), "");
        if collection.len() > 1 {
            return Ok(());
        }
        let Some(entry) = collection.key else { return Err(self.document.not_understood(span)) };
        let colon = self.document.after_colon(entry)?;
        self.insert(colon, if is_list { " []" } else { " {}" });
        Ok(())
    }

    /// Rewrites a list or map in brackets as lines, if that loses nothing.
    pub(crate) fn unfold(&mut self, collection: Collection<'d>) -> Result<(), SourceError> {
        let node = collection.node;
        let spans: Vec<_> = (0..collection.len()).map(|index| collection.span(index)).collect();
        let text = self.document.text;
        let has_lines = spans.iter().any(|span| text[span.clone()].contains('\n'));
        let has_comments = self.document.comments_in(node.span()).next().is_some();
        if !is_flow_node(node) || collection.in_flow || has_lines || has_comments {
            return Err(self.document.not_understood(node.span()));
        }
        let prefix = self.line_prefix(collection, is_list_node(node))?;
        let mut lines = String::new();
        for span in spans {
            lines.push_str(self.document.line_ending());
            lines.push_str(&prefix);
            lines.push_str(&text[span]);
        }
        let end = self.clear_value(collection)?;
        self.insert(self.document.line_end(end), lines);
        Ok(())
    }

    /// Removes the value of the key of a list or map; returns where it ended.
    fn clear_value(&mut self, collection: Collection<'d>) -> Result<usize, SourceError> {
        let node = collection.node;
        let Some(entry) = collection.key else {
            return Err(self.document.not_understood(node.span()));
        };
        let colon = self.document.after_colon(entry)?;
        let end = node.span.end.max(colon);
        self.replace(colon..end, "");
        Ok(end)
    }

    /// How a line below the key of a list or map begins.
    fn line_prefix(&self, collection: Collection<'d>, list: bool) -> Result<String, SourceError> {
        let Some(entry) = collection.key else {
            return Err(self.document.not_understood(collection.node.span()));
        };
        let indent = self.document.indent_at(entry.key_span.start)?;
        let step = self.document.usual_step(list);
        Ok(format!("{indent}{step}{}", if list { "- " } else { "" }))
    }
}
