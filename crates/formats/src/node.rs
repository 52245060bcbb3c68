//! A value of YAML or JSON that others wrote, with the place of each value in it, and the error that points there: why mu cannot
//! use a foreign manifest.
//!
//! It has the keys that its [`Shape`] declares. `reader` makes values of YAML and of JSON.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use mu_manifest::source::{SourceError, line_at_offset, printable};
use mu_provider::publishable::LONGEST_DESCRIPTION;
use mu_provider::{Maintainer, brief};

use crate::shape::Shape;

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
    List(Box<[Node<'t>]>),
    /// The declared keys that are there, and what declares them.
    Map(Box<[Entry<'t>]>, &'static Shape),
}

#[derive(Debug, Clone)]
pub(crate) struct Entry<'t> {
    pub(crate) key: Cow<'t, str>,
    pub(crate) span: Range<usize>,
    pub(crate) value: Node<'t>,
}

/// How many entries of a list that is only for people are kept.
pub(crate) const MOST_SAID: usize = 100;

/// What is where nothing is written.
pub(crate) static NOTHING: Node<'static> = Node { span: 0..0, kind: Kind::Null };

/// What is read of a person.
pub(crate) const PERSON: Shape =
    Shape::Folded(&[("name", Shape::Text), ("email", Shape::Text), ("url", Shape::Unused)]);

/// What is read of people.
pub(crate) const PEOPLE: Shape = Shape::Shown(&Shape::List(&PERSON));

/// The entries of a map while it is read.
pub(crate) struct MapEntries<'t> {
    all: Vec<Entry<'t>>,
    shape: &'static Shape,
    /// The places of those that come from merged maps.
    merged: Vec<usize>,
}

impl<'t> MapEntries<'t> {
    pub(crate) fn new(shape: &'static Shape) -> Self {
        Self { all: Vec::new(), shape, merged: Vec::new() }
    }

    /// Adds an entry. If a key is written more than once, the first and the last count: no more are needed to see it. A merged one
    /// overwrites what is there, and what follows overwrites it.
    pub(crate) fn add(&mut self, entry: Entry<'t>, is_merged: bool) {
        if matches!(self.shape, Shape::All) {
            // The last of each key is looked for at the end.
            self.merged.extend(is_merged.then_some(self.all.len()));
            self.all.push(entry);
            return;
        }
        let same = |(at, other): (usize, &Entry<'t>)| (other.key == entry.key).then_some(at);
        let mut same = self.all.iter().enumerate().filter_map(same);
        let (first, second) = (same.next(), same.next());
        let is_overwritten = |at: &usize| is_merged || self.merged.contains(at);
        let at = second.or(first.filter(is_overwritten));
        let at = at.unwrap_or(self.all.len());
        self.merged.retain(|merged| *merged != at);
        self.merged.extend(is_merged.then_some(at));
        match self.all.get_mut(at) {
            Some(there) => *there = entry,
            None => self.all.push(entry),
        }
    }

    pub(crate) fn finish(mut self) -> Kind<'t> {
        if matches!(self.shape, Shape::All) && !self.merged.is_empty() {
            let mut seen = HashSet::new();
            let all = self.all.iter().rev().map(|entry| seen.insert(entry.key.clone()));
            let mut is_last: Vec<bool> = all.collect();
            self.all.retain(|_| is_last.pop().unwrap_or(true));
        }
        Kind::Map(self.all.into(), self.shape)
    }
}

impl Kind<'_> {
    /// Whether the keys in it are known: in a map with a `type`, that says which they are.
    pub(crate) fn is_of_known_type(&self) -> bool {
        let Self::Map(entries, Shape::Typed(types, _)) = self else { return true };
        let kind = entries.iter().rfind(|entry| entry.key == "type");
        kind.and_then(|kind| kind.value.scalar()).is_none_or(|kind| types.contains(&kind))
    }
}

impl<'t> Node<'t> {
    pub(crate) fn fault(&self, reason: impl AsRef<str>) -> Fault {
        Fault::new(self.span.clone(), reason)
    }

    /// The value of a key; a missing key and `null` are the same.
    pub(crate) fn get(&self, key: &str) -> Result<Option<&Node<'t>>, Fault> {
        let Kind::Map(entries, shape) = &self.kind else { return Ok(None) };
        debug_assert!(shape.reads(key), "`{key}` is read, and not declared");
        let mut found = entries.iter().filter(|entry| entry.key == key);
        let first = found.next();
        if let Some(second) = found.next() {
            return Err(Fault::new(second.span.clone(), format!("`{key}` appears twice")));
        }
        let value = first.map(|entry| &entry.value);
        Ok(value.filter(|value| !matches!(value.kind, Kind::Null)))
    }

    /// The last value of a key, whatever it is; [`NOTHING`] if it is not there.
    pub(crate) fn last(&self, key: &str) -> &Node<'t> {
        self.written(key).unwrap_or(&NOTHING)
    }

    /// The last value of a key, if the key is there.
    pub(crate) fn written(&self, key: &str) -> Option<&Node<'t>> {
        let Kind::Map(entries, shape) = &self.kind else { return None };
        debug_assert!(shape.reads(key), "`{key}` is read, and not declared");
        entries.iter().rfind(|entry| entry.key == key).map(|entry| &entry.value)
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
            _ => Err(node.fault(format!("`{key}` must be text"))),
        }
    }

    /// The text of a key that is only for people: one that makes no sense is left out, and of a long one its end.
    pub(crate) fn text_for_people(&self, key: &str) -> Option<String> {
        Some(short(self.text(key).ok()??.0))
    }

    /// The first texts in the list behind a key that is only for people.
    pub(crate) fn words(&self, key: &str) -> Vec<String> {
        let listed = self.list(key).unwrap_or_default().iter();
        listed.filter_map(Node::scalar).take(MOST_SAID).map(short).collect()
    }

    /// The people in the list behind `maintainers`.
    pub(crate) fn maintainers(&self) -> Vec<Maintainer> {
        let listed = self.list("maintainers").unwrap_or_default().iter().take(MOST_SAID);
        let person = |node: &Node<'t>| {
            Some(Maintainer::Person {
                name: node.text_for_people("name")?,
                email: node.text_for_people("email"),
            })
        };
        listed.filter_map(person).collect()
    }

    /// Whether a key is `true`, as YAML 1.1 writes it, which is what the tools of these formats read.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, Fault> {
        const YES: [&str; 11] =
            ["true", "True", "TRUE", "yes", "Yes", "YES", "y", "Y", "on", "On", "ON"];
        const NO: [&str; 11] =
            ["false", "False", "FALSE", "no", "No", "NO", "n", "N", "off", "Off", "OFF"];
        match self.text(key)? {
            None => Ok(false),
            Some((text, _)) if YES.contains(&text) => Ok(true),
            Some((text, _)) if NO.contains(&text) => Ok(false),
            Some((_, node)) => Err(node.fault(format!("`{key}` must be true or false"))),
        }
    }

    /// The values of a list behind a key.
    pub(crate) fn list(&self, key: &str) -> Result<&[Node<'t>], Fault> {
        let Some(node) = self.get(key)? else { return Ok(&[]) };
        match &node.kind {
            Kind::List(items) => Ok(items),
            _ => Err(node.fault(format!("`{key}` must be a list"))),
        }
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.kind, Kind::Map(..))
    }

    /// The scalar's text.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }
}

/// The beginning of a text that is only for people. Most are short, and an index has many thousands.
fn short(text: &str) -> String {
    let end = match text.len() <= LONGEST_DESCRIPTION {
        true => None,
        false => text.char_indices().nth(LONGEST_DESCRIPTION),
    };
    end.map_or(text, |(end, _)| &text[..end]).to_owned()
}

/// A foreign manifest that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {reason}")]
pub struct FormatError {
    /// The name of the file inside the package.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character in that line, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub reason: String,
    /// The bytes of the file that it is about.
    pub span: Range<usize>,
    /// Whether it has too much of something, of whatever kind it is.
    pub is_excess: bool,
}

impl FormatError {
    pub(crate) fn new(file: &str, text: &str, fault: Fault) -> Self {
        let start = text.floor_char_boundary(fault.span.start);
        let span = start..text.ceil_char_boundary(fault.span.end.max(start));
        let before = text.get(..span.start).unwrap_or_default();
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let column = 1 + before.get(begin..).unwrap_or_default().chars().count();
        Self {
            file: file.to_owned(),
            line: line_at_offset(text, span.start),
            column,
            reason: fault.reason,
            span,
            is_excess: fault.is_excess,
        }
    }

    /// This error, pointing into `text`, which was read from `path`.
    pub fn in_text(&self, path: &Path, text: &str) -> SourceError {
        SourceError::new(path, text, self.span.clone(), self.reason.clone())
    }
}

/// A mistake, before it is known which file it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) reason: String,
    pub(crate) is_excess: bool,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, reason: impl AsRef<str>) -> Self {
        let reason = printable(&brief(reason.as_ref())).into_owned();
        Self { span, reason, is_excess: false }
    }

    /// That there is too much of something.
    pub(crate) fn excess(span: Range<usize>, reason: impl AsRef<str>) -> Self {
        Self { is_excess: true, ..Self::new(span, reason) }
    }
}
