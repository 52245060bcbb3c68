//! Lines, indentation, dashes, colons and commas: the positions in a file's text.
//!
//! This file only answers questions; it changes nothing. If an answer is not certain, it is an error.

use std::ops::Range;

use crate::source::node::{Entry, Kind, Node};
use crate::source::{Document, SourceError};

/// The indentation of a list or map below its key, if the file shows no other.
const STEP: &str = "  ";

pub(super) fn is_flow_node(node: &Node<'_>) -> bool {
    matches!(node.kind, Kind::List { flow: true, .. } | Kind::Table { flow: true, .. })
}

pub(super) fn is_list_node(node: &Node<'_>) -> bool {
    matches!(node.kind, Kind::List { .. })
}

impl<'t> Document<'t> {
    /// An error that says that mu would have to guess.
    pub(crate) fn not_understood(&self, span: Range<usize>) -> SourceError {
        self.error(span, "mu cannot change this layout without changing more than that")
            .help("make the change by hand, or put each entry on a line of its own")
    }

    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The end of the line that byte `at` is in, before its line ending.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let end = self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline);
        if self.text[at..end].ends_with('\r') { end - 1 } else { end }
    }

    /// Lines with one of the line endings around them, so that no empty line is left.
    pub(super) fn whole_lines(&self, range: Range<usize>) -> Range<usize> {
        let Range { start, end } = range;
        if self.text[end..].starts_with("\r\n") {
            return start..end + 2;
        }
        if self.text[end..].starts_with('\n') {
            return start..end + 1;
        }
        let before = &self.text[..start];
        let before = before.strip_suffix('\n').unwrap_or(before);
        let before = before.strip_suffix('\r').unwrap_or(before);
        before.len()..end
    }

    /// The line ending of the first line.
    pub(super) fn line_ending(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }

    /// The text before byte `start` on its line, which must be white space.
    pub(super) fn indent_at(&self, start: usize) -> Result<&'t str, SourceError> {
        let before = self.text[self.line_start(start)..start].trim_start_matches('\u{feff}');
        let is_indent = before.trim().is_empty();
        if is_indent { Ok(before) } else { Err(self.not_understood(start..start + 1)) }
    }

    /// White space as wide as the text before byte `start` on its line.
    pub(super) fn column_at(&self, start: usize) -> String {
        let before = self.text[self.line_start(start)..start].trim_start_matches('\u{feff}');
        before.chars().map(|character| if character == '\t' { '\t' } else { ' ' }).collect()
    }

    /// The place of the dash before a list's entry.
    pub(super) fn dash_before(&self, start: usize) -> Result<usize, SourceError> {
        let before = self.text[..start].trim_end();
        let is_dash = before.ends_with('-');
        if is_dash { Ok(before.len() - 1) } else { Err(self.not_understood(start..start + 1)) }
    }

    /// The place right behind a key's colon.
    pub(super) fn after_colon(&self, entry: &Entry<'_>) -> Result<usize, SourceError> {
        let rest = &self.text[entry.key_span.end..];
        let spaces = rest.len() - rest.trim_start().len();
        if rest[spaces..].starts_with(':') {
            return Ok(entry.key_span.end + spaces + 1);
        }
        Err(self.not_understood(entry.key_span.clone()))
    }

    /// The first comma between two places that is in no comment.
    pub(super) fn comma_between(&self, start: usize, end: usize) -> Option<usize> {
        let is_comment = |at: usize| self.comments_in(start..end).any(|span| span.contains(&at));
        let commas = self.text[start..end].match_indices(',').map(|(at, _)| start + at);
        commas.into_iter().find(|at| !is_comment(*at))
    }

    /// The comments that begin in a stretch of the text.
    pub(super) fn comments_in(&self, range: Range<usize>) -> impl Iterator<Item = &Range<usize>> {
        let first = self.comments.partition_point(|span| span.start < range.start);
        self.comments.iter().skip(first).take_while(move |span| span.start < range.end)
    }

    /// How far this file indents lists, or maps, below their keys.
    pub(super) fn usual_step(&self, list: bool) -> String {
        let Kind::Table { entries, .. } = &self.root.kind else { return STEP.to_owned() };
        let step = |entry: &Entry<'_>| {
            let start = match &entry.value.kind {
                Kind::List { items, flow: false } if list => {
                    self.dash_before(items.first()?.span.start).ok()?
                }
                Kind::Table { entries, flow: false } if !list => entries.first()?.key_span.start,
                _ => return None,
            };
            let outer = self.indent_at(entry.key_span.start).ok()?;
            self.indent_at(start).ok()?.strip_prefix(outer).map(str::to_owned)
        };
        entries.iter().find_map(step).unwrap_or_else(|| STEP.to_owned())
    }

    /// How far the outermost keys are indented in a file in brackets; nothing if it is one line.
    pub(super) fn bracket_step(&self) -> &'t str {
        let Kind::Table { entries, .. } = &self.root.kind else { return "" };
        let first = entries.first().map_or(0, |entry| entry.key_span.start);
        let line_start = self.line_start(first);
        let indent = if line_start > 0 { self.indent_at(first) } else { Ok("") };
        indent.unwrap_or_default()
    }
}
