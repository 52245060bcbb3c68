//! Reads YAML that others wrote, value by value.
//!
//! This reader is more forgiving than the one for mu's own files: keys that nobody reads may hold anything.
//! Aliases of short texts are followed; those of lists and maps are not, so that nothing large can be repeated.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use serde_yaml::granit_parser::{self as yaml, Event, Parser, ScalarStyle, Span, StrInput};

use crate::error::Fault;
use crate::node::{self, Entry, Key, Kind, Node};
use crate::shape::{Shape, Values, grouped};

/// How deep lists and maps may be nested.
const MAX_DEPTH: usize = 64;

/// How many values of a text may have names (`&…`): the parser remembers each.
const MOST_ANCHORS: usize = 100_000;

/// Reads what `shape` declares of the first document of a text.
pub(crate) fn read<'t>(text: &'t str, shape: &'static Shape) -> Result<Node<'t>, Fault> {
    let mut reader = Reader::new(text);
    match reader.first()? {
        Some((event, span)) => reader.node(event, span, shape),
        None => Ok(node::NOTHING.clone()),
    }
}

/// Reads what `shape` declares of every document of a text, and hands it to `take`.
///
/// # Errors
///
/// When a document cannot be read: where it begins, and why.
pub(crate) fn documents<'t>(
    text: &'t str,
    shape: &'static Shape,
    values: &mut Values,
    take: &mut dyn FnMut(Node<'t>),
) -> Result<(), (usize, Fault)> {
    let mut reader = Reader { values: values.clone(), ..Reader::new(text) };
    let mut begin = 0;
    let read = loop {
        match reader.next() {
            Err(fault) => break Err(fault),
            Ok((Event::DocumentStart(..), span)) => begin = span.start,
            Ok((Event::DocumentEnd, span)) => begin = span.end,
            Ok((Event::StreamStart, _)) => {}
            Ok((Event::StreamEnd, _)) => break Ok(()),
            Ok((event, span)) => {
                reader.values.next_document();
                match reader.node(event, span, shape) {
                    Ok(node) => take(node),
                    Err(fault) => break Err(fault),
                }
            }
        }
    };
    *values = reader.values;
    read.map_err(|fault| (begin, fault))
}

/// The longest text that an alias can repeat, in bytes.
pub(crate) const LONGEST_REPEATED: usize = 1_000;

/// How many bytes all aliases of a text can repeat.
const MOST_REPEATED: usize = 1 << 20;

/// Reads values one after the other.
pub(crate) struct Reader<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    /// The short texts that aliases can name, by the numbers of their anchors.
    anchors: HashMap<usize, Kind<'t>>,
    /// How many values have names.
    named: usize,
    /// How many bytes aliases may still repeat.
    left: usize,
    pub(crate) values: Values,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let options = yaml::options! {
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        let parser = Parser::new_from_str_with_options(text, options);
        Self {
            text,
            parser,
            anchors: HashMap::new(),
            named: 0,
            left: MOST_REPEATED,
            values: Values::default(),
        }
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
    pub(crate) fn document(&mut self, shape: &'static Shape) -> Result<Option<Node<'t>>, Fault> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok(None),
                (event, span) => {
                    self.values.next_document();
                    return self.node(event, span, shape).map(Some);
                }
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

    /// What `shape` declares of the value that begins with an event. The parser itself limits how deep values can be nested.
    pub(crate) fn node(
        &mut self,
        event: Event<'t>,
        span: Range<usize>,
        shape: &'static Shape,
    ) -> Result<Node<'t>, Fault> {
        self.values.count(&span)?;
        self.note_anchor(&event, &span)?;
        let kind = match event {
            Event::Alias(anchor) => self.repeated(anchor).unwrap_or(Kind::Alias),
            Event::Scalar(text, style, ..) => scalar(text, style),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match (self.next()?, shape.inside()) {
                        ((Event::SequenceEnd, _), _) => break Kind::List(items.into()),
                        ((event, span), Some(inside)) => {
                            items.push(self.node(event, span, inside)?);
                        }
                        ((event, span), None) => self.pass_over(event, span)?,
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut entries = Vec::new();
                while let Some((key, span)) = self.key()? {
                    let (event, begin) = self.next()?;
                    match shape.under(&key) {
                        Some(under) => {
                            self.values.count(&span)?;
                            let value = self.node(event, begin, under)?;
                            node::add(&mut entries, Entry { key, span, value }, shape);
                        }
                        None => self.pass_over(event, begin)?,
                    }
                }
                Kind::Map(entries.into(), shape)
            }
            _ => return Err(Fault::new(span, "expected a value")),
        };
        Ok(Node { span, kind })
    }

    /// Passes over the value that begins with an event, and makes nothing of it. What has a name there can be named elsewhere.
    /// It counts for the whole text, because also this takes time.
    pub(crate) fn pass_over(
        &mut self,
        mut event: Event<'t>,
        mut span: Range<usize>,
    ) -> Result<(), Fault> {
        let mut depth = 0_usize;
        loop {
            match &event {
                Event::SequenceEnd | Event::MappingEnd => depth = depth.saturating_sub(1),
                Event::Scalar(..) | Event::Alias(_) => self.values.pass(&span)?,
                Event::SequenceStart(..) | Event::MappingStart(..) => {
                    self.values.pass(&span)?;
                    depth += 1;
                }
                _ => return Err(Fault::new(span, "expected a value")),
            }
            self.note_anchor(&event, &span)?;
            if depth == 0 {
                return Ok(());
            }
            (event, span) = self.next()?;
        }
    }

    /// Remembers a value that has a name, if aliases can repeat it.
    fn note_anchor(&mut self, event: &Event<'t>, span: &Range<usize>) -> Result<(), Fault> {
        let (Event::Scalar(_, _, anchor, ..)
        | Event::SequenceStart(_, anchor, ..)
        | Event::MappingStart(_, anchor, ..)) = event
        else {
            return Ok(());
        };
        if *anchor == 0 {
            return Ok(());
        }
        self.named += 1;
        if self.named > MOST_ANCHORS {
            let reason =
                format!("it has more than {} values with names (`&…`)", grouped(MOST_ANCHORS));
            return Err(Fault::excess(span.clone(), reason));
        }
        if let Event::Scalar(text, style, ..) = event
            && text.len() <= LONGEST_REPEATED
        {
            self.anchors.insert(*anchor, scalar(text.clone(), *style));
        }
        Ok(())
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

/// Whether a plain scalar is no value.
pub(crate) fn is_nothing(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// What a scalar is.
fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Kind<'_> {
    match style == ScalarStyle::Plain {
        true if is_nothing(&text) => Kind::Null,
        true => Kind::Scalar(number(text)),
        false => Kind::Scalar(text),
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
