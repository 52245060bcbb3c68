//! How the entries of lists and maps are laid out: on separate lines, and in brackets (YAML's on one line or several, and all of
//! JSON's).

use super::{Collection, FileSyntax, NewEntry, Patch, is_flow_node, is_list_node};
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

impl<'d> Patch<'d> {
    pub(super) fn push_to_flow(
        &mut self,
        collection: Collection<'d>,
        new: &NewEntry,
    ) -> Result<(), SourceError> {
        let node = collection.node;
        if node.is_null_node() {
            let Some(entry) = collection.key else {
                return Err(self.document.not_understood(node.span()));
            };
            let colon = self.document.after_colon(entry)?;
            let text = self.in_brackets(new);
            self.replace(colon..node.span.end.max(colon), format!(" {text}"));
            return Ok(());
        }
        if collection.len() == 0
            && self.document.format == FileSyntax::Json
            && collection.key.is_some()
        {
            let text = self.in_brackets(new);
            self.replace(node.span(), text);
            return Ok(());
        }
        let entry = self.entry_text(new, self.manner(true, collection.style()));
        self.push_rendered(collection, &entry)
    }

    /// Puts an entry, already as text, before the closing bracket, on a separate line if the last one has
    /// one.
    pub(super) fn push_rendered(
        &mut self,
        collection: Collection<'d>,
        entry: &str,
    ) -> Result<(), SourceError> {
        let document = self.document;
        let node = collection.node;
        let Some(last) = collection.len().checked_sub(1).map(|last| collection.span(last)) else {
            self.insert(node.span.start + 1, entry);
            return Ok(());
        };
        let bracket = node.span.end - 1;
        let comma = document.comma_between(last.end, bracket);
        let has_line = document.line_start(last.start) > node.span.start
            && document.indent_at(last.start).is_ok();
        let bracket_has_line = document.line_start(bracket) > last.end;
        let separator = match document.indent_at(last.start) {
            Ok(indent) if has_line => format!("{}{indent}", document.line_ending()),
            _ => " ".to_owned(),
        };
        match comma {
            Some(comma) if has_line && bracket_has_line => {
                self.insert(document.line_end(comma), format!("{separator}{entry},"));
            }
            Some(comma) => self.insert(comma + 1, format!("{separator}{entry},")),
            None if has_line && bracket_has_line => {
                self.insert(last.end, ",");
                self.insert(document.line_end(last.end), format!("{separator}{entry}"));
            }
            None => self.insert(last.end, format!(",{separator}{entry}")),
        }
        Ok(())
    }

    pub(super) fn take_from_flow(&mut self, collection: Collection<'d>, index: usize) {
        let document = self.document;
        let node = collection.node;
        let span = collection.span(index);
        let inside = node.span.start + 1..node.span.end - 1;
        if collection.len() == 1 && document.comments_in(inside.clone()).next().is_none() {
            self.replace(inside, "");
            return;
        }
        let is_last = index + 1 == collection.len();
        let next = if is_last { inside.end } else { collection.span(index + 1).start };
        let comma = document.comma_between(span.end, next);
        let mut end = comma.map_or(span.end, |comma| comma + 1);
        let line_start = document.line_start(span.start);
        let starts_line = line_start > node.span.start && document.indent_at(span.start).is_ok();
        let behind = document.comment_after(end).map_or(end, |comment| comment.end);
        let ends_line = document.text[behind..document.line_end(behind)].trim().is_empty();
        let has_lines = starts_line && ends_line;
        if has_lines {
            let lines = line_start..document.line_end(behind);
            self.replace(document.whole_lines(lines), "");
        } else {
            let rest = &document.text[end..next];
            if comma.is_some() {
                end += rest.len() - rest.trim_start_matches([' ', '\t']).len();
            }
            self.replace(span.start..end, "");
        }
        if is_last && comma.is_none() && index > 0 {
            // The comma before it would now be right before the bracket.
            let previous = collection.span(index - 1).end;
            if let Some(comma) = document.comma_between(previous, span.start) {
                let has_comments = document.comments_in(comma..span.start).next().is_some();
                let keeps_rest = has_lines || has_comments;
                self.replace(comma..if keeps_rest { comma + 1 } else { span.start }, "");
            }
        }
    }

    /// A list or map of one entry in brackets; in JSON with several lines, on separate lines.
    pub(super) fn in_brackets(&self, new: &NewEntry) -> String {
        let (open, close) = if new.key.is_none() { ('[', ']') } else { ('{', '}') };
        let entry = self.entry_text(new, self.manner(true, ScalarNotation::Plain));
        let step = self.document.bracket_step();
        if self.document.format == FileSyntax::Yaml || step.is_empty() {
            return format!("{open}{entry}{close}");
        }
        let ending = self.document.line_ending();
        format!("{open}{ending}{step}{step}{entry}{ending}{step}{close}")
    }
}
