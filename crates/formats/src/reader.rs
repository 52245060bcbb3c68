//! Reads YAML and JSON that others wrote, value by value.
//!
//! This reader is more forgiving than the one for mu's own files: keys that nobody reads may hold anything. It follows aliases
//! (`*…`) and merge keys (`<<`) as Go's readers do, which Helm, Crossplane and OLM read with; see `repeat`. As for them, the next
//! lines of a quoted text may begin anywhere, which YAML forbids; see [`Indented`]. Of JSON, it does not tell numbers and truth
//! values from texts: nobody here needs to.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_yaml::granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, Span, StrInput};

use crate::node::{self, Entry, Fault, Kind, MapEntries, Node};
use crate::repeat::{Found, Indented, MAX_DEPTH, Repeats, parser_options};
use crate::shape::{Shape, Under, Unknown, Values};

/// What Git writes before, between and after the sides of a merge that is not finished.
const MERGE_MARKS: [&str; 3] = ["<<<<<<< ", "=======", ">>>>>>> "];

/// Reads what `shape` declares of the first document of a text.
pub(crate) fn read<'t>(text: &'t str, shape: &'static Shape) -> Result<Node<'t>, Fault> {
    read_all(text, shape).map(|(node, _)| node)
}

/// As [`read`], with the keys that the format does not have.
pub(crate) fn read_all<'t>(
    text: &'t str,
    shape: &'static Shape,
) -> Result<(Node<'t>, Unknown), Fault> {
    let mut reader = Reader::new(text);
    let node = match reader.first()? {
        Some((event, span)) => reader.node(event, span, shape)?,
        None => node::NOTHING.clone(),
    };
    Ok((node, reader.unknown))
}

/// Reads what `shape` declares of every document of a text, and hands it to `take`, with the keys that the format does not have.
///
/// # Errors
///
/// When a document cannot be read: where it begins, and why.
pub(crate) fn documents<'t>(
    text: &'t str,
    shape: &'static Shape,
    values: &mut Values,
    take: &mut dyn FnMut(Node<'t>, Unknown),
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
                    Ok(node) => take(node, std::mem::take(&mut reader.unknown)),
                    Err(fault) => break Err(fault),
                }
            }
        }
    };
    *values = reader.values;
    read.map_err(|fault| (begin, fault))
}

/// A map that is being read: how many values were being repeated where it began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level(usize);

/// A key of a map.
pub(crate) struct Key<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) span: Range<usize>,
    /// Whether it comes from another map, by a merge key.
    is_merged: bool,
}

/// Reads values one after the other.
pub(crate) struct Reader<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    /// What is read in its place, if the text has quoted texts that YAML forbids.
    indented: Option<Box<Indented>>,
    /// How many events the parser has given, and where the last one ends.
    given: (usize, usize),
    repeats: Repeats<'t>,
    /// How many lists and maps the value is in that is being read.
    depth: usize,
    pub(crate) values: Values,
    /// The keys that the format does not have.
    pub(crate) unknown: Unknown,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let parser = Parser::new_from_str_with_options(text, parser_options());
        let (repeats, values) = (Repeats::default(), Values::default());
        let (indented, given, unknown) = (None, (0, 0), Unknown::default());
        Self { text, parser, indented, given, repeats, depth: 0, values, unknown }
    }

    /// The first event of the first document.
    pub(crate) fn first(&mut self) -> Result<Option<Found<'t>>, Fault> {
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

    /// The next event that is not a comment. Aliases are not followed.
    pub(crate) fn next(&mut self) -> Result<Found<'t>, Fault> {
        if let Some(found) = self.repeats.next()? {
            return Ok(found);
        }
        loop {
            let event = match &mut self.indented {
                None => self.parser.next_event(),
                Some(indented) => indented.next_event(),
            };
            let Some(event) = event else {
                let end = self.text.len();
                return Err(Fault::new(end..end, "the file ends too early"));
            };
            match event {
                Ok((event, span)) => {
                    let span = self.bytes(&span);
                    self.given = (self.given.0 + 1, span.end);
                    match event {
                        Event::Comment(..) => continue,
                        Event::DocumentStart(..) => self.repeats.begin_next_document(),
                        _ => self.repeats.note(&event, &span)?,
                    }
                    return Ok((event, span));
                }
                Err(error) => {
                    let at = self.place(error.marker()).unwrap_or(self.text.len());
                    if *error.kind() == ErrorKind::InvalidQuotedScalarIndent && self.indent(at) {
                        continue;
                    }
                    let line = self.text.get(..at).and_then(|before| before.rfind('\n'));
                    let line = self.text.get(line.map_or(0, |end| end + 1)..).unwrap_or_default();
                    let reason = match MERGE_MARKS.iter().any(|mark| line.starts_with(mark)) {
                        true => "a merge has left its marks here".to_owned(),
                        false => format!("this is not YAML: {}", error.info()),
                    };
                    return Err(Fault::new(at..at + 1, reason));
                }
            }
        }
    }

    /// Reads on as if the lines of the quoted text at `at` were indented as YAML wants it; `false` if they cannot be.
    fn indent(&mut self, at: usize) -> bool {
        let last = self.indented.take();
        self.indented = Indented::read_again(self.text, last, self.given, at).map(Box::new);
        self.indented.is_some()
    }

    /// Where a place of the parser is in the text.
    fn place(&self, marker: &Marker) -> Option<usize> {
        match &self.indented {
            // The parser always knows it for text in memory.
            None => marker.byte_offset(),
            Some(indented) => indented.place_of_character(marker.index()),
        }
    }

    /// The bytes of a parser's span.
    fn bytes(&self, span: &Span) -> Range<usize> {
        let start = self.place(&span.start).unwrap_or_default();
        start..self.place(&span.end).unwrap_or(start)
    }

    /// The event that the next value begins with, or an end. What an alias names follows as if it were written there.
    pub(crate) fn value(&mut self) -> Result<Found<'t>, Fault> {
        let (event, span) = self.next()?;
        self.followed(event, span)
    }

    fn followed(&mut self, event: Event<'t>, span: Range<usize>) -> Result<Found<'t>, Fault> {
        match event {
            Event::Alias(anchor) => {
                self.repeats.repeat(anchor, &span)?;
                Ok((self.next()?.0, span))
            }
            event => Ok((event, span)),
        }
    }

    /// What `shape` declares of the value that begins with an event.
    pub(crate) fn node(
        &mut self,
        event: Event<'t>,
        span: Range<usize>,
        shape: &'static Shape,
    ) -> Result<Node<'t>, Fault> {
        self.values.count(&span)?;
        // Also aliases can nest values: the parser does not see how deep.
        if self.depth > MAX_DEPTH {
            return Err(Fault::new(
                span,
                format!("it is nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        self.depth += 1;
        let kind = match event {
            Event::Alias(anchor) => {
                self.repeats.repeat(anchor, &span)?;
                let (event, named) = self.next()?;
                self.depth -= 1;
                let node = self.node(event, named, shape)?;
                // An edit changes the alias, and not what it names. Where all is read, how a text is written counts.
                let span = if matches!(shape, Shape::All) { node.span.clone() } else { span };
                return Ok(Node { span, ..node });
            }
            Event::Scalar(text, style, ..) => scalar(text, style),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match (self.next()?, shape.inside()) {
                        ((Event::SequenceEnd, _), _) => break Kind::List(items.into()),
                        ((event, span), Some(inside)) => {
                            items.push(self.node(event, span, inside)?);
                        }
                        ((event, span), None) => drop(self.pass_over(event, span)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut entries = MapEntries::new(shape);
                let known = self.unknown.len();
                let level = self.level();
                while let Some(Key { text: key, span, is_merged }) = self.key(level)? {
                    let (event, begin) = self.next()?;
                    match shape.under(key) {
                        Under::Read(key, under) => {
                            self.values.count(&span)?;
                            let value = self.node(event, begin, under)?;
                            entries.add(Entry { key, span, value }, is_merged);
                        }
                        Under::Nothing => drop(self.pass_over(event, begin)?),
                        Under::Unknown(key, keys) => {
                            // What has a name is there for its aliases.
                            if event.anchor_id().is_none() {
                                self.unknown.add(&key, span, keys);
                            }
                            self.pass_over(event, begin)?;
                        }
                    }
                }
                let map = entries.finish();
                if !map.is_of_known_type() {
                    self.unknown.forget_after(known);
                }
                map
            }
            _ => return Err(Fault::new(span, "expected a value")),
        };
        self.depth -= 1;
        Ok(Node { span, kind })
    }

    /// Passes over the value that begins with an event, and makes nothing of it. What has a name there can be named elsewhere.
    /// It counts for the whole text, because also this takes time. Returns how many values it was.
    pub(crate) fn pass_over(
        &mut self,
        mut event: Event<'t>,
        mut span: Range<usize>,
    ) -> Result<usize, Fault> {
        let (mut depth, mut count) = (0_usize, 0);
        loop {
            match &event {
                Event::SequenceEnd | Event::MappingEnd => depth = depth.saturating_sub(1),
                Event::Scalar(..) | Event::Alias(_) => {
                    self.values.pass(&span)?;
                    count += 1;
                }
                Event::SequenceStart(..) | Event::MappingStart(..) => {
                    self.values.pass(&span)?;
                    (depth, count) = (depth + 1, count + 1);
                }
                _ => return Err(Fault::new(span, "expected a value")),
            }
            if depth == 0 {
                return Ok(count);
            }
            (event, span) = self.next()?;
        }
    }

    /// The map whose beginning was read last.
    pub(crate) fn level(&self) -> Level {
        Level(self.repeats.repeat_depth())
    }

    /// The next key of a map; `None` at its end. The keys of a merged map follow in place of the merge key, so that of two
    /// equal ones the last counts, as it does for Helm.
    pub(crate) fn key(&mut self, level: Level) -> Result<Option<Key<'t>>, Fault> {
        loop {
            let (event, span) = self.next()?;
            let is_alias = matches!(event, Event::Alias(_));
            match self.followed(event, span)? {
                (Event::MappingEnd, _) => return Ok(None),
                (Event::Scalar(key, ScalarStyle::Plain, ..), span) if key == "<<" && !is_alias => {
                    let begin = self.repeats.keep_next();
                    let (event, value) = self.next()?;
                    self.pass_over(event, value)?;
                    self.repeats.merge(begin, &span)?;
                }
                (Event::Scalar(text, ..), span) => {
                    let is_merged = self.repeats.repeat_depth() > level.0;
                    return Ok(Some(Key { text, span, is_merged }));
                }
                (_, span) => return Err(Fault::new(span, "a key must be text")),
            }
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

/// A value of JSON.
pub(crate) struct JsonValue<'t> {
    pub(crate) node: Node<'t>,
    /// How many bytes it has.
    pub(crate) length: usize,
    /// The keys that the format does not have.
    pub(crate) unknown: Unknown,
}

/// Reads what `shape` declares of the JSON that a text begins with.
pub(crate) fn read_json<'t>(
    text: &'t str,
    shape: &'static Shape,
    values: &mut Values,
) -> Result<JsonValue<'t>, Fault> {
    let mut from = serde_json::Deserializer::from_str(text);
    let (mut excess, mut unknown) = (None, Unknown::default());
    let value = Value { shape, values, excess: &mut excess, unknown: &mut unknown };
    match value.deserialize(&mut from) {
        Ok(kind) => {
            let length = from.into_iter::<IgnoredAny>().byte_offset();
            unknown.find_places(text);
            Ok(JsonValue { node: Node { span: 0..0, kind }, length, unknown })
        }
        Err(error) => {
            let before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
            let line: usize = before.map(str::len).sum();
            let at = (line + error.column().saturating_sub(1)).min(text.len());
            Err(match excess {
                Some(fault) => Fault { span: at..at, ..fault },
                None => Fault::new(at..at, format!("this is not JSON: {error}")),
            })
        }
    }
}

/// A value that is read.
struct Value<'v> {
    shape: &'static Shape,
    values: &'v mut Values,
    /// Set if there are too many.
    excess: &'v mut Option<Fault>,
    unknown: &'v mut Unknown,
}

impl Value<'_> {
    fn count<E: Error>(&mut self) -> Result<(), E> {
        self.values.count(&(0..0)).map_err(|fault| {
            let error = E::custom(&fault.reason);
            *self.excess = Some(fault);
            error
        })
    }

    /// What is read inside of it.
    fn inner(&mut self, shape: &'static Shape) -> Value<'_> {
        Value { shape, values: self.values, excess: self.excess, unknown: self.unknown }
    }
}

impl<'t> DeserializeSeed<'t> for Value<'_> {
    type Value = Kind<'t>;

    fn deserialize<D: Deserializer<'t>>(mut self, from: D) -> Result<Kind<'t>, D::Error> {
        self.count()?;
        from.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Value<'_> {
    type Value = Kind<'t>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Kind<'t>, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(Cow::Borrowed(if value { "true" } else { "false" })))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(value.to_string().into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(value.to_string().into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Kind<'t>, E> {
        let number = Number::from_f64(value);
        Ok(number.map_or(Kind::Null, |number| Kind::Scalar(number.to_string().into())))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'t str) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut from: A) -> Result<Kind<'t>, A::Error> {
        let mut items = Vec::new();
        let Some(inside) = self.shape.inside() else {
            while from.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Kind::List(items.into()));
        };
        while let Some(kind) = from.next_element_seed(self.inner(inside))? {
            items.push(Node { span: 0..0, kind });
        }
        Ok(Kind::List(items.into()))
    }

    fn visit_map<A: MapAccess<'t>>(mut self, mut from: A) -> Result<Kind<'t>, A::Error> {
        let shape = self.shape;
        let mut entries = MapEntries::new(shape);
        let known = self.unknown.len();
        while let Some(key) = from.next_key_seed(KeyText)? {
            let (key, under) = match shape.under(key) {
                Under::Read(key, under) => (key, under),
                passed => {
                    if let Under::Unknown(key, keys) = passed {
                        self.unknown.add(&key, 0..0, keys);
                    }
                    from.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            self.count()?;
            let value = Node { span: 0..0, kind: from.next_value_seed(self.inner(under))? };
            entries.add(Entry { key, span: 0..0, value }, false);
        }
        let map = entries.finish();
        if !map.is_of_known_type() {
            self.unknown.forget_after(known);
        }
        Ok(map)
    }
}

/// The text of a key, which is copied only if it has escapes.
struct KeyText;

impl<'t> DeserializeSeed<'t> for KeyText {
    type Value = Cow<'t, str>;

    fn deserialize<D: Deserializer<'t>>(self, from: D) -> Result<Cow<'t, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'t> Visitor<'t> for KeyText {
    type Value = Cow<'t, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'t str) -> Result<Cow<'t, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Cow<'t, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}
