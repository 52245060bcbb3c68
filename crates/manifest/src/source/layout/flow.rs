//! Lists and maps in brackets: YAML's on one line or several, and all of JSON's.

use super::{Collection, FileSyntax, NewEntry, Patch};
use crate::source::SourceError;
use crate::source::node::ScalarNotation;

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
