//! How the entries of lists and maps are laid out: on separate lines, and in brackets (YAML's on one line or several, and all of
//! JSON's); and how a new one is written.
//!
//! Where lines, indentation, dashes, colons and commas are in a text is only asked here: nothing is changed, and if an answer is
//! not certain, it is an error.
//!
//! A new value is quoted only if the format demands it, or as its neighbours are. To find out whether a text needs quotes, this
//! reads the text back; there are no separate rules.

use std::ops::Range;
use std::path::Path;

use super::{Collection, FileSyntax, NewEntry, Patch};
use crate::source::{Document, Entry, Kind, Node, ScalarNotation, SourceError, is_bool, is_number};

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
        let line = line(self.document.line_ending(last.end), &indent, &entry);
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
        let line = line(self.document.line_ending(end), &prefix, &entry);
        self.insert(self.document.line_end(end), line);
        Ok(())
    }

    /// Writes a key and its first entry at the end of the file.
    pub(super) fn append_block(&mut self, key: &str, indent: &str, new: &NewEntry) {
        let text = self.document.text;
        let ending = self.document.line_ending(text.len());
        let is_list = new.key.is_none();
        let step = self.document.usual_step(is_list);
        let dash = if is_list { "- " } else { "" };
        let key = render_key(key, self.manner(false, ScalarNotation::Plain));
        let entry = self.entry_text(new, self.manner(false, ScalarNotation::Plain));
        let line = line(ending, &format!("{indent}{step}{dash}"), &entry);
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
        let end = self.clear_value(collection)?;
        let mut lines = String::new();
        for span in spans {
            lines.push_str(self.document.line_ending(end));
            lines.push_str(&prefix);
            lines.push_str(&text[span]);
        }
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
            Ok(indent) if has_line => format!("{}{indent}", document.line_ending(last.end)),
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
        let ending = self.document.line_ending(0);
        format!("{open}{ending}{step}{step}{entry}{ending}{step}{close}")
    }
}

/// An entry below what comes before it, whose line has this ending. If the entry has several lines, they are aligned with its first
/// character.
fn line(ending: &str, prefix: &str, entry: &str) -> String {
    let next = format!("{ending}{}", " ".repeat(prefix.chars().count()));
    format!("{ending}{prefix}{}", entry.replace('\n', &next))
}

/// The indentation of a list or map below its key, if the file shows no other.
const STEP: &str = "  ";

pub(super) fn is_flow_node(node: &Node<'_>) -> bool {
    matches!(node.kind, Kind::List { flow: true, .. } | Kind::Table { flow: true, .. })
}

fn is_list_node(node: &Node<'_>) -> bool {
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
    fn whole_lines(&self, range: Range<usize>) -> Range<usize> {
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

    /// The ending of the line that byte `at` is in, as files can have both; of the line before, if it has none.
    fn line_ending(&self, at: usize) -> &'static str {
        let own = self.text[at..].find('\n').map(|newline| at + newline);
        match own.or_else(|| self.text.rfind('\n')) {
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
    fn column_at(&self, start: usize) -> String {
        let before = self.text[self.line_start(start)..start].trim_start_matches('\u{feff}');
        before.chars().map(|character| if character == '\t' { '\t' } else { ' ' }).collect()
    }

    /// The place of the dash before a list's entry.
    fn dash_before(&self, start: usize) -> Result<usize, SourceError> {
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
    fn comma_between(&self, start: usize, end: usize) -> Option<usize> {
        let is_comment = |at: usize| self.comments_in(start..end).any(|span| span.contains(&at));
        let commas = self.text[start..end].match_indices(',').map(|(at, _)| start + at);
        commas.into_iter().find(|at| !is_comment(*at))
    }

    /// The comments that begin in a stretch of the text.
    fn comments_in(&self, range: Range<usize>) -> impl Iterator<Item = &Range<usize>> {
        let first = self.comments.partition_point(|span| span.start < range.start);
        self.comments.iter().skip(first).take_while(move |span| span.start < range.end)
    }

    /// How far this file indents lists, or maps, below their keys.
    fn usual_step(&self, list: bool) -> String {
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
    fn bracket_step(&self) -> &'t str {
        let Kind::Table { entries, .. } = &self.root.kind else { return "" };
        let first = entries.first().map_or(0, |entry| entry.key_span.start);
        let line_start = self.line_start(first);
        let indent = if line_start > 0 { self.indent_at(first) } else { Ok("") };
        indent.unwrap_or_default()
    }
}

/// A value that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum New {
    /// A text.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// A list of texts on one line.
    List(Vec<String>),
    /// A map on one line.
    Table(Vec<(&'static str, New)>),
    /// A map, with each key on a separate line if possible.
    Lines(Vec<(&'static str, New)>),
}

/// How and where a value is to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) format: FileSyntax,
    /// Whether it is inside brackets, where more characters need quotes.
    pub(crate) flow: bool,
    /// The quotes that its neighbours have.
    pub(crate) style: ScalarNotation,
}

impl New {
    /// The value on one line, except for [`New::Lines`], whose lines are not indented.
    pub(crate) fn render(&self, manner: Manner) -> String {
        match self {
            Self::Text(text) => render_text(text, manner),
            Self::Flag(flag) => flag.to_string(),
            Self::List(texts) => {
                let inside = Manner { flow: true, style: ScalarNotation::Plain, ..manner };
                let texts = texts.iter().map(|text| render_text(text, inside));
                format!("[{}]", texts.collect::<Vec<_>>().join(", "))
            }
            Self::Table(pairs) | Self::Lines(pairs) => {
                let can_break = !manner.flow && manner.format == FileSyntax::Yaml;
                let flow = !(can_break && matches!(self, Self::Lines(_)));
                let inside = Manner { flow, style: ScalarNotation::Plain, ..manner };
                let pairs = pairs.iter().map(|(key, value)| {
                    format!("{}: {}", render_key(key, inside), value.render(inside))
                });
                let pairs: Vec<String> = pairs.collect();
                if flow { format!("{{{}}}", pairs.join(", ")) } else { pairs.join("\n") }
            }
        }
    }
}

/// A text as a value.
pub(crate) fn render_text(text: &str, manner: Manner) -> String {
    let fits_single = !text.contains(|character: char| character.is_control());
    match (manner.format, manner.style) {
        (FileSyntax::Yaml, ScalarNotation::SingleQuoted) if fits_single => {
            format!("'{}'", text.replace('\'', "''"))
        }
        (FileSyntax::Yaml, ScalarNotation::Plain | ScalarNotation::Block)
            if reads_back(text, manner.flow) =>
        {
            text.to_owned()
        }
        _ => quoted(text),
    }
}

/// A text as a key.
pub(crate) fn render_key(text: &str, manner: Manner) -> String {
    let plain = manner.format == FileSyntax::Yaml && reads_back(text, true);
    if plain { text.to_owned() } else { quoted(text) }
}

/// Whether this and any other YAML reader reads an unquoted text as the same text.
fn reads_back(text: &str, flow: bool) -> bool {
    let other_meaning = is_number(text)
        || is_bool(text)
        || matches!(
            &*text.to_ascii_lowercase(),
            "" | "~" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if other_meaning || text.contains(|character: char| character.is_control()) {
        return false;
    }
    let line = if flow { format!("[{text}]") } else { format!("- {text}") };
    let Ok(document) = Document::read(Path::new(""), &line) else { return false };
    let is_it = |item: &Node<'_>| matches!(&item.kind, Kind::Scalar { text: read, style: ScalarNotation::Plain } if read == text);
    match &document.node().kind {
        Kind::List { items, .. } => matches!(items.as_slice(), [item] if is_it(item)),
        _ => false,
    }
}

/// A text in double quotes, as YAML and JSON both read it.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, block: &str, flow: &str) {
        let manner = Manner {
            format: FileSyntax::Yaml,
            flow: false,
            style: crate::source::ScalarNotation::Plain,
        };
        assert_eq!(render_text(text, manner), block);
        assert_eq!(render_text(text, Manner { flow: true, ..manner }), flow);
        assert_eq!(render_text(text, Manner { format: FileSyntax::Json, ..manner }), quoted(text));
    }

    #[test]
    fn quotes_stand_only_where_they_must() {
        check("aws#^1.0.6", "aws#^1.0.6", "aws#^1.0.6");
        check(
            "https://hub.mu.com/aws#^1",
            "https://hub.mu.com/aws#^1",
            "https://hub.mu.com/aws#^1",
        );
        check("a#>1, <=3", "a#>1, <=3", "\"a#>1, <=3\"");
        check("a #b", "\"a #b\"", "\"a #b\"");
        check("^1.0", "^1.0", "^1.0");
        check("~1.5", "~1.5", "~1.5");
        check(">=1.2 <2", "\">=1.2 <2\"", "\">=1.2 <2\"");
        check("*", "\"*\"", "\"*\"");
        check("1.2", "\"1.2\"", "\"1.2\"");
        check("1.2.3", "1.2.3", "1.2.3");
        check("no", "\"no\"", "\"no\"");
        check("", "\"\"", "\"\"");
        check("a\tb", "\"a\\tb\"", "\"a\\tb\"");
        check("./x", "./x", "./x");
    }

    #[test]
    fn neighbours_set_the_style() {
        let manner = Manner {
            format: FileSyntax::Yaml,
            flow: false,
            style: crate::source::ScalarNotation::SingleQuoted,
        };
        assert_eq!(render_text("it's", manner), "'it''s'");
        assert_eq!(
            render_text(
                "a",
                Manner { style: crate::source::ScalarNotation::DoubleQuoted, ..manner }
            ),
            "\"a\""
        );
        let table =
            New::Table(vec![("ref", New::Text("a#1".into())), ("prerelease", New::Flag(true))]);
        assert_eq!(table.render(manner), "{ref: a#1, prerelease: true}");
        let json = Manner { format: FileSyntax::Json, ..manner };
        assert_eq!(table.render(json), "{\"ref\": \"a#1\", \"prerelease\": true}");
    }
}
