//! The tree of a YAML or JSON file in which every key and value knows its place.
//!
//! Scalars keep their text as it was written, so that `1.10` stays `1.10`. The reader of a key decides what a
//! scalar means.

use std::borrow::Cow;
use std::ops::Range;

/// A value and its bytes.
#[derive(Debug, Clone)]
pub struct Node<'t> {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind<'t>,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(crate) enum Kind<'t> {
    Scalar { text: Cow<'t, str>, style: ScalarNotation },
    List { items: Vec<Node<'t>>, flow: bool },
    Table { entries: Vec<Entry<'t>>, flow: bool },
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'t> {
    pub(crate) key: Cow<'t, str>,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node<'t>,
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarNotation {
    /// Without quotes; in JSON a number, `true`, `false` or `null`.
    Plain,
    SingleQuoted,
    /// In double quotes; every JSON string.
    DoubleQuoted,
    /// A YAML block, `|` or `>`.
    Block,
}

impl<'t> Node<'t> {
    /// The bytes of the value in the file.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Whether the value is empty, `~` or `null`.
    pub fn is_null_node(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, style: ScalarNotation::Plain }
            if matches!(&**text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Describes the value here, for messages.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar { .. } if self.is_null_node() => "nothing",
            Kind::Scalar { text, style: ScalarNotation::Plain } if is_bool(text) => "true or false",
            Kind::Scalar { text, style: ScalarNotation::Plain } if is_number(text) => "a number",
            Kind::Scalar { .. } => "text",
            Kind::List { .. } => "a list",
            Kind::Table { .. } => "a map",
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry<'t>> {
        match &self.kind {
            Kind::Table { entries, .. } => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Whether both mean the same, regardless of where and how they are written.
    pub(crate) fn means(&self, other: &Node<'_>) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Scalar { text, .. }, Kind::Scalar { text: other_text, .. }) => {
                text == other_text && self.describe() == other.describe()
            }
            (Kind::List { items, .. }, Kind::List { items: others, .. }) => {
                items.len() == others.len()
                    && items.iter().zip(others).all(|(item, other)| item.means(other))
            }
            (Kind::Table { entries, .. }, Kind::Table { entries: others, .. }) => {
                entries.len() == others.len()
                    && entries.iter().zip(others).all(|(entry, other)| {
                        entry.key == other.key && entry.value.means(&other.value)
                    })
            }
            _ => false,
        }
    }

    /// How much a copy is, in nodes: those from here down, and one more for each hundred bytes of text.
    pub(crate) fn size(&self) -> usize {
        1 + match &self.kind {
            Kind::Scalar { text, .. } => text.len() / 100,
            Kind::List { items, .. } => items.iter().map(Node::size).sum(),
            Kind::Table { entries, .. } => entries.iter().map(|entry| entry.value.size()).sum(),
        }
    }

    /// How many levels there are from here down.
    pub(crate) fn depth(&self) -> usize {
        1 + match &self.kind {
            Kind::Scalar { .. } => 0,
            Kind::List { items, .. } => items.iter().map(Node::depth).max().unwrap_or(0),
            Kind::Table { entries, .. } => {
                entries.iter().map(|entry| entry.value.depth()).max().unwrap_or(0)
            }
        }
    }
}

pub(crate) fn is_bool(text: &str) -> bool {
    matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE")
}

/// Whether YAML reads an unquoted `text` as a number.
pub(crate) fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let radix = |prefix: &str, radix: u32| {
        unsigned
            .strip_prefix(prefix)
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)))
    };
    if radix("0x", 16) || radix("0o", 8) || matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    matches!(text, ".nan" | ".NaN" | ".NAN")
        || (unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && unsigned.parse::<f64>().is_ok())
}
