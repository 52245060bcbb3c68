//! YAML and JSON that others wrote, value by value, with the place of each.
//!
//! This reader is more forgiving than the one for mu's own files: keys that nobody reads may hold anything.
//! Aliases of short texts are followed; those of lists and maps are not, so that nothing large can be repeated.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use mu_provider::Maintainer;
use serde_yaml::granit_parser::{self as yaml, Event, Parser, ScalarStyle, Span, StrInput};

use crate::error::Fault;

/// How deep lists and maps may be nested.
const MAX_DEPTH: usize = 64;

/// A value and its bytes; for a list or map, those of its start.
#[derive(Debug, Clone)]
pub(crate) struct Node<'t> {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind<'t>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind<'t> {
    Null,
    Scalar(Cow<'t, str>),
    List(Vec<Node<'t>>),
    Map(Vec<Entry<'t>>),
    /// An alias that is not followed.
    Alias,
}

/// A key of a map, and its bytes.
pub(crate) type Key<'t> = (Cow<'t, str>, Range<usize>);

#[derive(Debug, Clone)]
pub(crate) struct Entry<'t> {
    pub(crate) key: Cow<'t, str>,
    pub(crate) span: Range<usize>,
    pub(crate) value: Node<'t>,
}

/// Reads the first document of a text.
pub(crate) fn read(text: &str) -> Result<Node<'_>, Fault> {
    let mut reader = Reader::new(text);
    match reader.first()? {
        Some((event, span)) => reader.node(event, span),
        None => Ok(Node { span: 0..0, kind: Kind::Null }),
    }
}

/// Reads every document of a text, and hands it to `take`.
///
/// # Errors
///
/// When a document cannot be read: where it begins, and why.
pub(crate) fn documents<'t>(
    text: &'t str,
    mut take: impl FnMut(Node<'t>),
) -> Result<(), (usize, Fault)> {
    let mut reader = Reader::new(text);
    let mut begin = 0;
    loop {
        match reader.next().map_err(|fault| (begin, fault))? {
            (Event::DocumentStart(..), span) => begin = span.start,
            (Event::DocumentEnd, span) => begin = span.end,
            (Event::StreamStart, _) => {}
            (Event::StreamEnd, _) => return Ok(()),
            (event, span) => take(reader.node(event, span).map_err(|fault| (begin, fault))?),
        }
    }
}

impl<'t> Node<'t> {
    pub(crate) fn fault(&self, reason: impl AsRef<str>) -> Fault {
        Fault::new(self.span.clone(), reason)
    }

    /// The value of a key; a missing key and `null` are the same.
    pub(crate) fn get(&self, key: &str) -> Result<Option<&Node<'t>>, Fault> {
        let Kind::Map(entries) = &self.kind else { return Ok(None) };
        let mut found = entries.iter().filter(|entry| entry.key == key);
        let first = found.next();
        if let Some(second) = found.next() {
            return Err(Fault::new(second.span.clone(), format!("`{key}` appears twice")));
        }
        let value = first.map(|entry| &entry.value);
        Ok(value.filter(|value| !matches!(value.kind, Kind::Null)))
    }

    /// The text of a key, whether it is written as text, a number or a truth value; a missing and an empty
    /// one are the same.
    pub(crate) fn text(&self, key: &str) -> Result<Option<(&str, &Node<'t>)>, Fault> {
        let Some(node) = self.get(key)? else { return Ok(None) };
        match &node.kind {
            Kind::Scalar(text) => {
                let text = text.trim();
                Ok((!text.is_empty()).then_some((text, node)))
            }
            Kind::Alias => Err(node.not_followed(key)),
            _ => Err(node.fault(format!("`{key}` must be text"))),
        }
    }

    /// The text of a key that is only for people: one that makes no sense is left out.
    pub(crate) fn said(&self, key: &str) -> Option<String> {
        Some(self.text(key).ok()??.0.to_owned())
    }

    /// The people in the list behind `maintainers`.
    pub(crate) fn maintainers(&self) -> Vec<Maintainer> {
        let listed = self.list("maintainers").unwrap_or_default().iter();
        let person = |node: &Node<'t>| {
            Some(Maintainer::Person { name: node.said("name")?, email: node.said("email") })
        };
        listed.filter_map(person).collect()
    }

    /// Whether a key is `true`.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, Fault> {
        match self.text(key)? {
            None => Ok(false),
            Some(("true" | "True" | "TRUE", _)) => Ok(true),
            Some(("false" | "False" | "FALSE", _)) => Ok(false),
            Some((_, node)) => Err(node.fault(format!("`{key}` must be true or false"))),
        }
    }

    /// The values of a list behind a key.
    pub(crate) fn list(&self, key: &str) -> Result<&[Node<'t>], Fault> {
        let Some(node) = self.get(key)? else { return Ok(&[]) };
        match &node.kind {
            Kind::List(items) => Ok(items),
            Kind::Alias => Err(node.not_followed(key)),
            _ => Err(node.fault(format!("`{key}` must be a list"))),
        }
    }

    fn not_followed(&self, key: &str) -> Fault {
        self.fault(format!(
            "`{key}` is an alias (`*…`), which mu follows only to a text of at most {LONGEST_REPEATED} bytes"
        ))
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.kind, Kind::Map(_))
    }

    /// The scalar's text.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }
}

/// The longest text that an alias can repeat, in bytes.
const LONGEST_REPEATED: usize = 1_000;

/// How many bytes all aliases of a text can repeat.
const MOST_REPEATED: usize = 1 << 20;

/// Reads values one after the other.
pub(crate) struct Reader<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    /// The short texts that aliases can name, by the numbers of their anchors.
    anchors: HashMap<usize, Kind<'t>>,
    /// How many bytes aliases may still repeat.
    left: usize,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let options = yaml::options! {
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        let parser = Parser::new_from_str_with_options(text, options);
        Self { text, parser, anchors: HashMap::new(), left: MOST_REPEATED }
    }

    /// The first event of the first document.
    pub(crate) fn first(&mut self) -> Result<Option<(Event<'t>, Range<usize>)>, Fault> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(None),
                found => return Ok(Some(found)),
            }
        }
    }

    /// The next document; `None` at the end of the text.
    pub(crate) fn document(&mut self) -> Result<Option<Node<'t>>, Fault> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok(None),
                (event, span) => return self.node(event, span).map(Some),
            }
        }
    }

    /// The next event that is not a comment.
    pub(crate) fn next(&mut self) -> Result<(Event<'t>, Range<usize>), Fault> {
        loop {
            let Some(event) = self.parser.next_event() else {
                let end = self.text.len();
                return Err(Fault::new(end..end, "the file ends too early"));
            };
            match event {
                Ok((Event::Comment(..), _)) => {}
                Ok((event, span)) => return Ok((event, bytes(&span))),
                Err(error) => {
                    let at = error.marker().byte_offset().unwrap_or(self.text.len());
                    let reason = format!("this is not YAML: {}", error.info());
                    return Err(Fault::new(at..at + 1, reason));
                }
            }
        }
    }

    /// The value that begins with an event. The parser itself limits how deep values can be nested.
    pub(crate) fn node(&mut self, event: Event<'t>, span: Range<usize>) -> Result<Node<'t>, Fault> {
        let kind = match event {
            Event::Alias(anchor) => self.repeated(anchor).unwrap_or(Kind::Alias),
            Event::Scalar(text, style, anchor, ..) => {
                let is_plain = style == ScalarStyle::Plain;
                let is_nothing = || matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let is_short = text.len() <= LONGEST_REPEATED;
                let kind = match is_plain {
                    true if is_nothing() => Kind::Null,
                    true => Kind::Scalar(number(text)),
                    false => Kind::Scalar(text),
                };
                if anchor != 0 && is_short {
                    self.anchors.insert(anchor, kind.clone());
                }
                kind
            }
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break Kind::List(items),
                        (event, span) => items.push(self.node(event, span)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut entries = Vec::new();
                while let Some((key, span)) = self.key()? {
                    let (event, begin) = self.next()?;
                    let value = self.node(event, begin)?;
                    entries.push(Entry { key, span, value });
                }
                Kind::Map(entries)
            }
            _ => return Err(Fault::new(span, "expected a value")),
        };
        Ok(Node { span, kind })
    }

    /// The short text that an alias names.
    fn repeated(&mut self, anchor: usize) -> Option<Kind<'t>> {
        let kind = self.anchors.get(&anchor)?;
        let length = if let Kind::Scalar(text) = kind { text.len() } else { 0 };
        self.left = self.left.checked_sub(length)?;
        Some(kind.clone())
    }

    /// The next key of the map that is being read; `None` at its end.
    pub(crate) fn key(&mut self) -> Result<Option<Key<'t>>, Fault> {
        match self.next()? {
            (Event::MappingEnd, _) => Ok(None),
            (Event::Scalar(key, ..), span) => Ok(Some((key, span))),
            (_, span) => Err(Fault::new(span, "a key must be text")),
        }
    }
}

/// A scalar as Helm reads it: an unquoted `1.10` is the number 1.1.
fn number(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = text.len() < 16
        && text
            .split_once('.')
            .is_some_and(|(whole, part)| !whole.is_empty() && is_digits(whole) && is_digits(part));
    match text.parse::<f64>() {
        Ok(number) if is_number => Cow::Owned(number.to_string()),
        _ => text,
    }
}

/// The bytes of a parser's span. The parser always knows them for text in memory.
fn bytes(span: &Span) -> Range<usize> {
    let start = span.start.byte_offset().unwrap_or_default();
    start..span.end.byte_offset().unwrap_or(start)
}
