//! Reads YAML text into a tree. Only this file uses the YAML crate.
//!
//! It reads the parser's events instead of using serde, because only events keep a scalar's text as written
//! (`1.10` is not a float here), the place of every key, and comments.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use serde_yaml::granit_parser::{
    self as yaml, Event, Parser, ScalarStyle, Span, StrInput, StructureStyle,
};

use super::{Entry, Fault, Kind, MAX_COPIED_NODES, MAX_DEPTH, Node, Parsed, ScalarNotation};

/// Reads `text`; `is_laid_out` says that it is read to change its layout.
pub(super) fn parse(text: &str, is_laid_out: bool) -> Result<Parsed<'_>, Fault> {
    let options = yaml::options! {
        max_buffered_comment_events: usize::MAX,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let (anchors, comments) = (HashMap::new(), Vec::new());
    let mut reader =
        Reader { text, parser, anchors, copied: 0, comments, merges: None, is_laid_out };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            _ if root.is_some() => {
                return Err(Fault::new(bytes(&span), "a second document starts here")
                    .help("keep one document per file, and remove the `---` before this line"));
            }
            event => root = Some(reader.node(event, &span, 0)?),
        }
    }
    let nothing = || Node {
        span: 0..0,
        kind: Kind::Scalar { text: Cow::Borrowed(""), style: ScalarNotation::Plain },
    };
    let (comments, merges) = (reader.comments, reader.merges);
    Ok(Parsed { root: root.unwrap_or_else(nothing), comments, merges })
}

struct Reader<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    /// The value of each anchor, once it is complete.
    anchors: HashMap<usize, Node<'t>>,
    /// Nodes that aliases have copied so far.
    copied: usize,
    comments: Vec<Range<usize>>,
    /// The first merge key (`<<`), for those who do not take any.
    merges: Option<Fault>,
    /// Whether a list or map that an alias repeats has the place of the alias, so that whatever it is in has its own one.
    is_laid_out: bool,
}

impl<'t> Reader<'t> {
    /// The next event that is not a comment. Comments are collected.
    fn next(&mut self) -> Result<(Event<'t>, Span), Fault> {
        loop {
            let Some(event) = self.parser.next_event() else {
                let end = self.text.len();
                return Err(Fault::new(end..end, "the file ends too early"));
            };
            match event.map_err(|error| syntax_error(self.text, &error))? {
                (Event::Comment(..), span) => self.comments.push(bytes(&span)),
                event => return Ok(event),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: &Span, depth: usize) -> Result<Node<'t>, Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::too_deep(bytes(span)));
        }
        let (kind, anchor, span) = match event {
            Event::Alias(id) => return self.alias(id, span, depth),
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.as_deref(), span)?;
                // The parser reports `~` for an empty value.
                let text =
                    if span.is_empty() && style == ScalarStyle::Plain { "".into() } else { text };
                (Kind::Scalar { text, style: style_of(style) }, anchor, self.trimmed(bytes(span)))
            }
            Event::SequenceStart(style, anchor, tag) => {
                refuse_tag(tag.as_deref(), span)?;
                let (items, end) = self.items(depth)?;
                let flow = style == StructureStyle::Flow;
                let last = items.last().map(|item| item.span.end);
                (Kind::List { items, flow }, anchor, collection_span(span, flow, end, last))
            }
            Event::MappingStart(style, anchor, tag) => {
                refuse_tag(tag.as_deref(), span)?;
                let (entries, end) = self.entries(depth)?;
                let flow = style == StructureStyle::Flow;
                let last = entries.last().map(|entry| entry.value.span.end);
                (Kind::Table { entries, flow }, anchor, collection_span(span, flow, end, last))
            }
            _ => return Err(Fault::new(bytes(span), "expected a value")),
        };
        let node = Node { span, kind };
        if anchor != 0 {
            let kept = copy(&mut self.copied, &node, node.span())?;
            self.anchors.insert(anchor, kept);
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, span: &Span, depth: usize) -> Result<Node<'t>, Fault> {
        let Some(node) = self.anchors.get(&id) else {
            return Err(Fault::new(bytes(span), "an alias inside its own anchor"));
        };
        if depth + node.depth() > MAX_DEPTH {
            return Err(Fault::too_deep(bytes(span)));
        }
        let node = copy(&mut self.copied, node, bytes(span))?;
        let is_text = matches!(node.kind, Kind::Scalar { .. });
        let span = if self.is_laid_out && !is_text { bytes(span) } else { node.span.clone() };
        Ok(Node { span, ..node })
    }

    /// The items of a list that has begun, and where its end is.
    fn items(&mut self, depth: usize) -> Result<(Vec<Node<'t>>, usize), Fault> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok((items, bytes(&span).end));
            }
            items.push(self.node(event, &span, depth + 1)?);
        }
    }

    /// The entries of a map that has begun, and where its end is.
    fn entries(&mut self, depth: usize) -> Result<(Vec<Entry<'t>>, usize), Fault> {
        let mut entries: Vec<Entry<'t>> = Vec::new();
        let mut seen = super::SeenKeys::default();
        loop {
            let (event, span) = self.next()?;
            let (key, key_span) = match event {
                Event::MappingEnd => return Ok((entries, bytes(&span).end)),
                Event::Scalar(key, style, _, tag) => {
                    refuse_tag(tag.as_deref(), &span)?;
                    if style == ScalarStyle::Plain && key == "<<" {
                        self.merges.get_or_insert_with(|| {
                            let message = "merge keys (`<<`) are not supported here";
                            Fault::new(bytes(&span), message).help("write the keys out")
                        });
                    }
                    (key, self.trimmed(bytes(&span)))
                }
                _ => return Err(Fault::new(bytes(&span), "a key must be text")),
            };
            seen.insert(&key, &key_span)?;
            let (event, span) = self.next()?;
            let mut value = self.node(event, &span, depth + 1)?;
            if value.span.is_empty() {
                // The parser puts a missing value where the next token is; people look after the key.
                value.span = key_span.end..key_span.end;
            }
            entries.push(Entry { key, key_span, value });
        }
    }

    /// The span without the white space that the parser includes in a scalar.
    fn trimmed(&self, span: Range<usize>) -> Range<usize> {
        let trimmed = self.text[span.clone()].trim_end().len();
        span.start..span.start + trimmed
    }
}

/// A copy of an anchor's value. It is an error if the file needs too many: a few lines of nested aliases mean
/// millions of values.
fn copy<'t>(copied: &mut usize, node: &Node<'t>, span: Range<usize>) -> Result<Node<'t>, Fault> {
    *copied += node.size();
    if *copied > MAX_COPIED_NODES {
        return Err(Fault::new(span, "anchors and aliases repeat too much"));
    }
    Ok(node.clone())
}

fn refuse_tag(tag: Option<&yaml::Tag>, span: &Span) -> Result<(), Fault> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => {
            let place = span.tag_span().map_or_else(|| bytes(span), |tag| bytes(&tag));
            Err(Fault::new(place, format!("the tag `{}` has no meaning here", tag.original())))
        }
        _ => Ok(()),
    }
}

fn collection_span(start: &Span, flow: bool, end: usize, last: Option<usize>) -> Range<usize> {
    let start = bytes(start).start;
    let end = if flow { end } else { last.unwrap_or(start) };
    start..end.max(start)
}

fn style_of(style: ScalarStyle) -> ScalarNotation {
    match style {
        ScalarStyle::Plain => ScalarNotation::Plain,
        ScalarStyle::SingleQuoted => ScalarNotation::SingleQuoted,
        ScalarStyle::DoubleQuoted => ScalarNotation::DoubleQuoted,
        ScalarStyle::Literal | ScalarStyle::Folded => ScalarNotation::Block,
    }
}

/// The bytes of a parser's span. The parser always knows them for text in memory.
fn bytes(span: &Span) -> Range<usize> {
    let start = span.start.byte_offset().unwrap_or_default();
    start..span.end.byte_offset().unwrap_or(start)
}

fn syntax_error(text: &str, error: &yaml::ScanError) -> Fault {
    let at = error.marker().byte_offset().unwrap_or(text.len());
    if *error.kind() == yaml::ErrorKind::RecursionLimitExceeded {
        return Fault::too_deep(at..at + 1);
    }
    let rest = &text[at.min(text.len())..];
    if let Some(quote) = open_quote(text, at).filter(|_| error.info().contains("quoted scalar")) {
        let help = match text.as_bytes().get(quote) {
            Some(b'"') => "end the text with `\"`",
            _ => "end the text with `'`; an apostrophe in it is written twice",
        };
        return Fault::new(quote..quote + 1, "the quote that opens here is not closed").help(help);
    }
    if let Some(fault) = deeper(text, at).filter(|_| error.info().contains("mapping values")) {
        return fault;
    }
    if error.info().contains("unknown anchor") {
        return Fault::new(
            at..at + 1,
            "this is not YAML: `*` refers to an anchor that is not there",
        )
        .help("put quotes around a text that begins with `*`");
    }
    let control = rest.chars().next().filter(|first| first.is_control() && !first.is_whitespace());
    if let Some(control) = control.filter(|_| error.info().contains("unexpected character")) {
        let message =
            format!("this is not YAML: it has the control character U+{:04X}", u32::from(control));
        return Fault::new(at..at + control.len_utf8(), message).help("delete that character");
    }
    let is_tab = error.info().contains("tab");
    let message = match is_tab {
        true => TAB.to_owned(),
        false => format!("this is not YAML: {}", error.info()),
    };
    if rest.starts_with('\t') || text[..at.min(text.len())].ends_with('\t') {
        return Fault::new(at..at + 1, message).help(NO_TABS);
    }
    // The parser points at the value before.
    let indents = rest.match_indices('\n').map(|(line, _)| {
        let indent = rest[line + 1..].len() - rest[line + 1..].trim_start_matches(' ').len();
        line + 1 + indent
    });
    match indents.into_iter().find(|tab| is_tab && rest[*tab..].starts_with('\t')) {
        Some(tab) => {
            let tab = at + tab;
            Fault::new(tab..tab + 1, TAB).help(NO_TABS)
        }
        None => {
            let fault = Fault::new(at..at + 1, message);
            let is_cut_off = rest.lines().next().is_some_and(|line| line.contains(" #"));
            match rest.as_bytes().first() {
                Some(b'[' | b'{') if is_cut_off => fault.help(COMMENT),
                Some(b'[') if error.info().contains("unclosed") => fault.help("close it with `]`"),
                Some(b'{') if error.info().contains("unclosed") => fault.help("close it with `}`"),
                _ => match quoted_line(text, at) {
                    Some(line) => fault.help(format!("put quotes around the text: `{line}`")),
                    None => fault,
                },
            }
        }
    }
}

/// The line around `at` with quotes around its value, if that is text which YAML takes for something else without them.
fn quoted_line(text: &str, at: usize) -> Option<String> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..)?.lines().next()?;
    let line = line.split(" #").next().unwrap_or(line).trim();
    let (before, value) = match line.split_once(": ") {
        Some((key, value)) => (format!("{key}: "), value.trim_start()),
        None => ("- ".to_owned(), line.strip_prefix("- ")?.trim_start()),
    };
    let is_meant_as_text = value.starts_with(['>', '*', '@', '%', '&', '!', '|', '`'])
        || value.contains(": ") && !value.starts_with(['"', '\'', '[', '{']);
    is_meant_as_text.then(|| match value.contains(['"', '\\']) {
        true => format!("{before}'{}'", value.replace('\'', "''")),
        false => format!("{before}\"{value}\""),
    })
}

/// Where a quote opens before `end` that is not closed on the same line.
fn open_quote(text: &str, end: usize) -> Option<usize> {
    let mut start = 0;
    for line in text[..end.min(text.len())].split_inclusive('\n') {
        let mut open: Option<(usize, char)> = None;
        for (at, character) in line.char_indices() {
            let begins = line[..at].ends_with([' ', '[', '{', ',', ':']) || at == 0;
            match open {
                None if character == '#' && line[..at].ends_with(' ') => break,
                None if begins && matches!(character, '"' | '\'') => open = Some((at, character)),
                Some((_, quote)) if quote == character && !line[..at].ends_with('\\') => {
                    open = None
                }
                _ => {}
            }
        }
        if let Some((at, _)) = open {
            return Some(start + at);
        }
        start += line.len();
    }
    None
}

/// The fault if the line around `at` is indented deeper than the line before it, which already has a value.
fn deeper(text: &str, at: usize) -> Option<Fault> {
    let at = at.min(text.len());
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next()?;
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut before = text[..start].lines().enumerate().collect::<Vec<_>>().into_iter().rev();
    let (number, above) =
        before.find(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))?;
    let has_value = above.split_once(": ").is_some_and(|(_, value)| !value.trim().is_empty());
    (indent(line) > indent(above) && has_value).then(|| {
        let number = number + 1;
        let message =
            format!("this line is indented deeper than line {number}, which has a value already");
        Fault::new(start + indent(line)..start + indent(line) + 1, message)
            .help("start it in the same column")
    })
}

const COMMENT: &str =
    "a `#` after a space starts a comment, and a quote in a comment closes nothing";

const TAB: &str = "this is not YAML: a tab cannot indent";

const NO_TABS: &str = "indent with spaces; YAML does not allow tabs there";
