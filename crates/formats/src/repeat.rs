//! What Go's readers take, and the parser alone does not: what YAML can repeat, values with names (`&…`), which aliases (`*…`) and
//! merge keys (`<<`) name; and quoted texts whose lines begin anywhere ([`Indented`]).
//!
//! The events of such values are kept, and played again where they are named. How much is kept and how much is repeated
//! is limited, because a few lines of nested aliases mean millions of values.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde_yaml::granit_parser as yaml;
use serde_yaml::granit_parser::{BufferedInput, Event, ParseResult, Parser};

use crate::node::Fault;
use crate::shape::grouped;

/// How many values of a text may have names: the parser remembers each.
const MOST_NAMED: usize = 100_000;

/// How many events are kept of the values of a document that can be repeated.
const MOST_KEPT: usize = 200_000;

/// How much can be repeated in a text: events, and bytes of their texts.
const MOST_REPEATED: usize = 16 << 20;

/// An event of the parser, and its bytes.
pub(crate) type Found<'t> = (Event<'t>, Range<usize>);

/// The values of a text that can be repeated, and those that are being repeated.
pub(crate) struct Repeats<'t> {
    kept: Vec<Found<'t>>,
    /// Where the events of each named value are among those kept, by the number of its anchor. One is there once it is complete,
    /// so no value can repeat itself.
    places: HashMap<usize, Range<usize>>,
    /// The values that are being kept: the anchor of each, where it begins, and how deep it is.
    open: Vec<(usize, usize, usize)>,
    /// How deep the value is that is being kept.
    depth: usize,
    /// Whether the next value is kept, also without a name.
    keeps_next: bool,
    /// How many values have names.
    named: usize,
    /// How much can still be repeated.
    left: usize,
    /// What is left of the values that are being repeated, the innermost last.
    playing: Vec<Range<usize>>,
}

impl Default for Repeats<'_> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            places: HashMap::new(),
            open: Vec::new(),
            depth: 0,
            keeps_next: false,
            named: 0,
            left: MOST_REPEATED,
            playing: Vec::new(),
        }
    }
}

impl<'t> Repeats<'t> {
    /// Begins with the next document: it cannot name values of this one.
    pub(crate) fn begin_next_document(&mut self) {
        let (named, left) = (self.named, self.left);
        *self = Self { named, left, ..Self::default() };
    }

    /// Keeps an event of the parser if something may repeat it.
    pub(crate) fn note(&mut self, event: &Event<'t>, span: &Range<usize>) -> Result<(), Fault> {
        let anchor = event.anchor_id();
        if anchor.is_some() {
            self.named += 1;
            if self.named > MOST_NAMED {
                let most = grouped(MOST_NAMED);
                let reason = format!("it has more than {most} values with names (`&…`)");
                return Err(Fault::excess(span.clone(), reason));
            }
        }
        let keeps = std::mem::take(&mut self.keeps_next);
        if anchor.is_none() && self.open.is_empty() && !keeps {
            return Ok(());
        }
        let begin = self.kept.len();
        if begin < MOST_KEPT {
            self.kept.push((event.clone(), span.clone()));
        }
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if anchor.is_some() || keeps {
                    self.open.push((anchor.unwrap_or_default(), begin, self.depth));
                }
                self.depth += 1;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.depth = self.depth.saturating_sub(1);
                let ends = self.open.pop_if(|(_, _, depth)| *depth == self.depth);
                if let Some((anchor, begin, _)) = ends {
                    self.complete(anchor, begin);
                }
            }
            _ => {
                if let Some(anchor) = anchor {
                    self.complete(anchor, begin);
                }
            }
        }
        Ok(())
    }

    fn complete(&mut self, anchor: usize, begin: usize) {
        // If not all of it was kept, nothing can repeat it.
        if self.kept.len() < MOST_KEPT {
            self.places.insert(anchor, begin..self.kept.len());
        }
    }

    /// The next event of what is being repeated.
    pub(crate) fn next(&mut self) -> Result<Option<Found<'t>>, Fault> {
        let Some(at) = self.playing.last_mut().and_then(Iterator::next) else { return Ok(None) };
        // Afterwards, the innermost one is that of the next event.
        self.playing.pop_if(|rest| Range::is_empty(rest));
        let Some((event, span)) = self.kept.get(at).cloned() else { return Ok(None) };
        let length = if let Event::Scalar(text, ..) = &event { text.len() } else { 0 };
        match self.left.checked_sub(length + 1) {
            Some(left) => self.left = left,
            None => return Err(Fault::excess(span, "its aliases (`*…`) repeat too much")),
        }
        Ok(Some((event, span)))
    }

    /// Has the value that an alias names follow.
    pub(crate) fn repeat(&mut self, anchor: usize, span: &Range<usize>) -> Result<(), Fault> {
        let place = self.place(anchor, span)?;
        self.playing.push(place);
        Ok(())
    }

    fn place(&self, anchor: usize, span: &Range<usize>) -> Result<Range<usize>, Fault> {
        self.places.get(&anchor).cloned().ok_or_else(|| {
            let most = grouped(MOST_KEPT);
            let reason = format!(
                "this alias (`*…`) names a value that it is itself in, or one behind more than {most} others"
            );
            Fault::new(span.clone(), reason)
        })
    }

    /// How many values are being repeated, one inside of the other.
    pub(crate) fn repeat_depth(&self) -> usize {
        self.playing.len()
    }

    /// Where the next event is among those kept. The value that it begins is kept from there on.
    pub(crate) fn keep_next(&mut self) -> usize {
        match self.playing.last() {
            Some(rest) => rest.start,
            None => {
                self.keeps_next = true;
                self.kept.len()
            }
        }
    }

    /// Has the entries of maps follow: the value of a merge key, which was kept from `begin` on. As for Go's readers, it is a map or
    /// a list of maps, of which the first counts most.
    pub(crate) fn merge(&mut self, begin: usize, span: &Range<usize>) -> Result<(), Fault> {
        let wrong =
            || Fault::new(span.clone(), "a merge key (`<<`) takes a map, or a list of maps");
        let (end, items) = match self.kept.get(begin) {
            Some((Event::SequenceStart(..), _)) => (None, begin + 1),
            _ => (Some(begin), begin),
        };
        let mut at = items;
        loop {
            let map = match self.kept.get(at) {
                Some((Event::Alias(anchor), span)) => {
                    let place = self.place(*anchor, &span.clone())?;
                    at += 1;
                    place
                }
                Some((Event::MappingStart(..), _)) => {
                    let map = at..self.end(at).ok_or_else(wrong)?;
                    at = map.end;
                    map
                }
                Some((Event::SequenceEnd, _)) if end.is_none() => return Ok(()),
                _ => return Err(wrong()),
            };
            if !matches!(self.kept.get(map.start), Some((Event::MappingStart(..), _))) {
                return Err(wrong());
            }
            // The last one is played first, so that those before it overwrite it.
            let entries = map.start + 1..map.end - 1;
            self.playing.extend((!entries.is_empty()).then_some(entries));
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Where the list or map ends that begins at a place.
    fn end(&self, begin: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, (event, _)) in self.kept.iter().enumerate().skip(begin) {
            match event {
                Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
                Event::SequenceEnd | Event::MappingEnd => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return Some(at + 1);
            }
        }
        None
    }
}

/// How deep lists and maps may be nested.
pub(crate) const MAX_DEPTH: usize = 64;

/// How texts are parsed.
pub(crate) fn parser_options() -> yaml::Options {
    yaml::options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    }
}

/// How many characters are read again, because each quoted text that YAML forbids is found only by reading up to it.
const MOST_READ_AGAIN: usize = 16 << 20;

/// How long a text may be that is read again, in bytes with the spaces that it gets: each takes twelve bytes of memory, and short
/// lines get many spaces.
const MOST_INDENTED: usize = 2 << 20;

/// The longest indentation that lines get.
const MOST_SPACES: usize = 200;

/// A text as Go's readers take it: they let the next lines of a quoted text begin anywhere, and YAML only further in than its key.
/// It is read with more spaces there, which mean nothing.
pub(crate) struct Indented {
    parser: Parser<'static, BufferedInput<std::vec::IntoIter<char>>>,
    /// Where each character is in the text, and where that ends.
    places: Vec<usize>,
    /// The lines that are indented, by where they begin, and by how many spaces.
    lines: BTreeMap<usize, usize>,
    /// How many characters can still be read again.
    left: usize,
}

impl Indented {
    /// Reads `text` again with the lines of the quoted text at `at` indented, too, from behind what was `given` of it already: so many
    /// events, of which the last one ends there. `None` if they cannot be.
    pub(crate) fn read_again(
        text: &str,
        last: Option<Box<Self>>,
        (given, end): (usize, usize),
        at: usize,
    ) -> Option<Self> {
        let (quoted, spaces) = quoted_lines(text, end, at)?;
        let (mut lines, left) =
            last.map_or_else(|| (BTreeMap::new(), MOST_READ_AGAIN), |last| (last.lines, last.left));
        lines.extend(quoted.into_iter().map(|line| (line, spaces)));
        let length = text.len() + lines.values().sum::<usize>();
        let left = left.checked_sub(length).filter(|_| length <= MOST_INDENTED)?;
        let (mut characters, mut places) =
            (Vec::with_capacity(length), Vec::with_capacity(length + 1));
        for (at, character) in text.char_indices() {
            let spaces = lines.get(&at).copied().unwrap_or_default();
            characters.extend(std::iter::repeat_n(' ', spaces).chain([character]));
            places.extend(std::iter::repeat_n(at, spaces + 1));
        }
        places.push(text.len());
        let mut parser =
            Parser::new_from_iter_with_options(characters.into_iter(), parser_options());
        (0..given).for_each(|_| drop(parser.next_event()));
        Some(Self { parser, places, lines, left })
    }

    pub(crate) fn next_event(&mut self) -> Option<ParseResult<'static>> {
        self.parser.next_event()
    }

    /// Where the parser's character `index` is in the text.
    pub(crate) fn place_of_character(&self, index: usize) -> Option<usize> {
        self.places.get(index).copied()
    }
}

/// Where the lines behind the first one begin of the quoted text that goes on at `at`, and how far they have to be indented. What was
/// read last ends at `end`. `None` if it is not clear where the quoted text begins and ends.
fn quoted_lines(text: &str, end: usize, at: usize) -> Option<(Vec<usize>, usize)> {
    let mut between = text.get(end..at)?;
    // What may stand between a key, or the last value, and a quoted text: indicators, names, tags and comments.
    let quote = loop {
        between = between.trim_start();
        let passed = match between.chars().next()? {
            quote @ ('"' | '\'') => break quote,
            '#' => between.find('\n')?,
            '&' | '!' => between.find(char::is_whitespace)?,
            ':' | '-' | '?' => 1,
            _ => return None,
        };
        between = between.get(passed..)?;
    };
    let begin = at - between.len();
    let inside = text.get(begin + 1..)?;
    let (mut length, mut rest) = (0, inside);
    loop {
        let next = rest.find([quote, '\\'])?;
        let passed = match rest.get(next..)?.as_bytes() {
            [b'\\', ..] if quote == '"' => 1 + rest.get(next + 1..)?.chars().next()?.len_utf8(),
            [b'\'', b'\'', ..] if quote == '\'' => 2,
            [b'\\', ..] => 1,
            _ => break length += next,
        };
        length += next + passed;
        rest = rest.get(next + passed..)?;
    }
    let inside = inside.get(..length)?;
    let lines: Vec<usize> = inside.match_indices('\n').map(|(line, _)| begin + line + 2).collect();
    let ends_all = |line: &&usize| {
        text.get(**line..).is_some_and(|line| line.starts_with("---") || line.starts_with("..."))
    };
    let line = text.get(..begin)?.rsplit('\n').next()?;
    let spaces = line.chars().count() + 1;
    (spaces <= MOST_SPACES && !lines.iter().any(|line| ends_all(&line))).then_some((lines, spaces))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader;
    use crate::shape::Shape;

    static SHAPE: Shape = Shape::All;

    /// Reads a text in which each of twenty values, from `begin` on, is `step` with ten of the one before it, and the last is in `end`.
    #[track_caller]
    fn is_refused(begin: &str, step: &str, end: &str) {
        let mut text = begin.to_owned();
        for number in 1..=20 {
            let named = step.replace('*', &format!("*a{}", number - 1));
            text.push_str(&format!("x{number}: {{a{number}: &a{number} {named}}}\n"));
        }
        text.push_str(&end.replace('*', "*a20"));
        let fault = reader::read(&text, &SHAPE).expect_err("is too much");
        assert!(fault.is_excess || fault.reason.contains("levels deep"), "{}", fault.reason);
    }

    #[test]
    fn no_large_list_is_made_of_a_few_lines() {
        is_refused("a0: &a0 [x]\n", "[*, *, *, *, *, *, *, *, *, *]", "all: *\n");
    }

    #[test]
    fn no_large_map_is_merged_of_a_few_lines() {
        is_refused("a0: &a0 {x: y}\n", "{<<: [*, *, *, *, *, *, *, *, *, *]}", "<<: *\n");
    }

    #[test]
    fn nor_is_one_without_keys() {
        is_refused("a0: &a0 {}\n", "{<<: [*, *, *, *, *, *, *, *, *, *]}", "<<: *\n");
    }

    #[test]
    fn nothing_deep_is_made_of_a_few_lines() {
        let mut text = "a0: &a0 [x]\n".to_owned();
        for number in 1..=10_000 {
            text.push_str(&format!("a{number}: &a{number} [*a{}]\n", number - 1));
        }
        let fault = reader::read(&text, &SHAPE).expect_err("is too deep");
        assert_eq!(fault.reason, "it is nested more than 64 levels deep");
    }

    #[test]
    fn what_is_too_long_to_be_kept_is_only_refused_where_it_is_named() {
        let long = "x, ".repeat(MOST_KEPT);
        let text = format!("a: &a [{long}]\nb: c\n");
        assert!(reader::read(&text, &Shape::Text).is_ok());
        static LIST: Shape = Shape::Map(&[("b", Shape::List(&Shape::Text))]);
        let unread = format!("{text}c: *a\n");
        assert!(reader::read(&unread, &LIST).is_ok(), "nobody reads it");
        let text = text.replace("b: c", "b: *a");
        let fault = reader::read(&text, &LIST).expect_err("is not kept");
        assert!(fault.reason.starts_with("this alias (`*…`) names"), "{}", fault.reason);
    }

    #[test]
    fn documents_do_not_name_values_of_others() {
        let text = "a: &a [x]\nb: *a\n---\nb: *a\n";
        let mut read = 0;
        let mut take = |_: crate::node::Node<'_>, _| read += 1;
        let mut values = crate::shape::Values::default();
        let read_all = reader::documents(text, &SHAPE, &mut values, &mut take);
        assert!(read_all.is_err());
        assert_eq!(read, 1);
    }
}
