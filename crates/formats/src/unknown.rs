//! Keys that a format does not have: most are misspelt, and the tool of the format passes over them without a word.
//!
//! Where an author works on a manifest, each is an error. In what was fetched, one makes a version unusable if it is probably a
//! misspelt key that selection needs; the others are only shown.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use mu_manifest::source::nearest;
use toml_edit::TableLike;

use crate::error::Fault;
use crate::shape::{Keys, Shape, Under};

/// How many are kept of a document.
const MOST_KEPT: usize = 20;

/// What a key may begin with that means nothing to any tool.
const OF_AUTHORS: &str = "x-";

/// Leaves out what is told twice, and what is too much to tell.
pub(crate) fn told_once(written: &mut Vec<String>) {
    let mut seen = HashSet::new();
    written.retain(|key| seen.insert(key.clone()));
    written.truncate(MOST_KEPT);
}

/// The keys of a document that its format does not have.
#[derive(Debug, Default)]
pub(crate) struct Unknown(Vec<Key>);

#[derive(Debug)]
struct Key {
    written: String,
    span: Range<usize>,
    /// The key that was probably meant.
    meant: Option<&'static str>,
    /// Whether selection depends on that one.
    decides: bool,
}

impl Unknown {
    /// The keys of a table of TOML, and of the tables in it, that `shape` does not declare.
    pub(crate) fn in_table(table: &dyn TableLike, shape: &'static Shape) -> Self {
        let mut unknown = Self::default();
        unknown.add_table(table, shape);
        unknown
    }

    fn add_table(&mut self, table: &dyn TableLike, shape: &'static Shape) {
        for (key, item) in table.iter() {
            match (shape.under(Cow::Borrowed(key)), item.as_table_like()) {
                (Under::Unknown(key, keys), _) => {
                    let at = table.key(&key).and_then(toml_edit::Key::span).or(item.span());
                    self.add(&key, at.unwrap_or(0..0), keys);
                }
                (Under::Read(_, under), Some(inner)) => self.add_table(inner, under),
                _ => {}
            }
        }
    }

    /// Adds a key of a map that has only `keys`.
    pub(crate) fn add(&mut self, written: &str, span: Range<usize>, keys: Keys) {
        if written.starts_with(OF_AUTHORS) || self.0.len() >= MOST_KEPT {
            return;
        }
        let own = || keys.iter().filter(|(_, shape)| !matches!(shape, Shape::Noted));
        let meant = nearest(written, own().map(|(key, _)| *key));
        let shape = own().find(|(key, _)| Some(*key) == meant).map(|(_, shape)| shape);
        let is_noted = own().count() < keys.len()
            && keys.iter().any(|(key, shape)| *key == written && matches!(shape, Shape::Noted));
        let decides = shape.is_some_and(|shape| !matches!(shape, Shape::Shown(_) | Shape::Unused))
            && !is_noted;
        self.0.push(Key { written: written.to_owned(), span, meant, decides });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Looks in a text of JSON where they are, which its reader does not know.
    pub(crate) fn find_places(&mut self, text: &str) {
        for key in &mut self.0 {
            let quoted = format!("\"{}\"", key.written);
            if let Some(at) = text.find(&quoted) {
                key.span = at..at + quoted.len();
            }
        }
    }

    /// Forgets those that came after the first `length` ones.
    pub(crate) fn forget_after(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// Refuses the first key where the author works on the manifest (`is_own`), and elsewhere the first one that selection may need.
    /// Returns the others, as they are written.
    pub(crate) fn check(self, is_own: bool) -> Result<Vec<String>, Fault> {
        match self.0.iter().find(|key| is_own || key.decides) {
            None => Ok(self.0.into_iter().map(|key| key.written).collect()),
            Some(key) => {
                let instead = match key.meant {
                    Some(meant) => format!("; did you mean `{meant}`?"),
                    None => String::new(),
                };
                let reason = format!("unknown key `{}`{instead}", key.written);
                Err(Fault::new(key.span.clone(), reason))
            }
        }
    }
}
