//! What mu reads of a foreign text: declarations of keys, how many values a text may have, and what becomes of keys that are not
//! declared.
//!
//! Each format declares all of its keys in one place: those that mu reads, and those without a meaning for mu. The latter are
//! passed over while they are parsed: no value is made of them, so they take no memory. What is made is counted, because a byte
//! of text can become fifty bytes of values.
//!
//! A key that is not declared is one that the format does not have: most are misspelt, and the tool of the format passes over
//! them without a word. Where an author works on a manifest, each is an error. In what was fetched, one makes a version unusable
//! if it is probably a misspelt key that selection needs; the others are only shown.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use mu_manifest::source::nearest;
use toml_edit::TableLike;

use crate::node::Fault;

/// What is read of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A text. Of a list or map, only that it is one.
    Text,
    /// A list, and this of each of its values.
    List(&'static Shape),
    /// A map with these keys.
    Map(Keys),
    /// As [`Self::Map`], and the case of its keys does not count: so does Go read JSON, which it makes of YAML first.
    Folded(Keys),
    /// A map of which these keys have a meaning here, and others may be there.
    Open(Keys),
    /// As [`Self::Open`], and all keys that begin with this are the format's own.
    Prefixed(&'static str, Keys),
    /// As [`Self::Map`], with a `type` and a `value`. The keys of the value are known only if it is of one of these types.
    Typed(&'static [&'static str], Keys),
    /// A map whose keys are names, and this under each.
    Each(&'static Shape),
    /// What is only shown to people.
    Shown(&'static Shape),
    /// What the format knows, and has no meaning for mu.
    Unused,
    /// What the format does not have, and published files do: they can be used, and it is told.
    Noted,
    /// What is declared there, so that it can hold itself.
    As(&'static Shape),
    /// All of it: for maps whose keys are not known beforehand.
    All,
}

/// The keys of a map, and what is read under each.
pub(crate) type Keys = &'static [(&'static str, Shape)];

/// The shape of a text that is only shown.
pub(crate) const SHOWN: Shape = Shape::Shown(&Shape::Text);

/// The shape of a list of texts.
pub(crate) const TEXTS: Shape = Shape::List(&Shape::Text);

impl Shape {
    /// What is read under a key.
    pub(crate) fn under<'k>(&'static self, key: Cow<'k, str>) -> Under<'k> {
        let (keys, is_folded) = match self {
            Self::Map(keys) | Self::Open(keys) => (keys, false),
            Self::Prefixed(_, keys) | Self::Typed(_, keys) => (keys, false),
            Self::Folded(keys) => (keys, true),
            Self::As(shape) | Self::Shown(shape) => return shape.under(key),
            Self::All => return Under::Read(key, self),
            Self::Each(shape) => return Under::Read(key, shape),
            Self::Text | Self::List(_) | Self::Unused | Self::Noted => return Under::Nothing,
        };
        let found = keys.iter().find(|(known, _)| *known == key);
        let folded = || keys.iter().find(|(known, _)| known.eq_ignore_ascii_case(&key));
        match found.or_else(|| is_folded.then(folded).flatten()) {
            Some((_, Self::Unused)) => Under::Nothing,
            Some((_, Self::Noted)) => Under::Unknown(key, keys),
            Some((known, shape)) => Under::Read(Cow::Borrowed(*known), shape),
            None if self.is_free(&key) => Under::Nothing,
            None => Under::Unknown(key, keys),
        }
    }

    /// Whether any other key may be there.
    fn is_free(&self, key: &str) -> bool {
        match self {
            Self::Open(_) => true,
            Self::Prefixed(own, _) => !key.starts_with(own),
            _ => false,
        }
    }

    /// Whether a key is declared.
    pub(crate) fn declares(&self, key: &str) -> bool {
        match self {
            Self::Map(keys) | Self::Open(keys) => keys.iter().any(|(known, _)| *known == key),
            _ => false,
        }
    }

    /// Whether a key is declared to be read.
    pub(crate) fn reads(&'static self, key: &str) -> bool {
        matches!(self.under(Cow::Borrowed(key)), Under::Read(..))
    }

    /// What is read of each value of a list.
    pub(crate) fn inside(&'static self) -> Option<&'static Self> {
        match self {
            Self::List(shape) => Some(shape),
            Self::As(shape) | Self::Shown(shape) => shape.inside(),
            Self::All => Some(self),
            Self::Text
            | Self::Map(_)
            | Self::Folded(_)
            | Self::Open(_)
            | Self::Prefixed(..)
            | Self::Typed(..)
            | Self::Each(_)
            | Self::Unused
            | Self::Noted => None,
        }
    }
}

/// What is read under a key.
pub(crate) enum Under<'k> {
    /// This, and the key as it is declared.
    Read(Cow<'k, str>, &'static Shape),
    /// Nothing.
    Nothing,
    /// The map has no such key, but these.
    Unknown(Cow<'k, str>, Keys),
}

/// The most values that one document may have.
const MOST_OF_DOCUMENT: usize = 4_000_000;

/// The most values that a catalog or an index may have, in all of its documents.
const MOST: usize = 16_000_000;

/// How many values may still be made.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    /// Of this document, and of any.
    document: [usize; 2],
    /// Of all documents together, as above, with those of which nothing is made.
    whole: [usize; 2],
}

impl Default for Values {
    fn default() -> Self {
        Self::at_most(MOST_OF_DOCUMENT, MOST)
    }
}

impl Values {
    pub(crate) fn at_most(document: usize, whole: usize) -> Self {
        Self { document: [document; 2], whole: [whole; 2] }
    }

    /// Begins with the next document.
    pub(crate) fn next_document(&mut self) {
        let [left, most] = &mut self.document;
        *left = *most;
    }

    /// Counts one value, which begins at these bytes.
    pub(crate) fn count(&mut self, span: &Range<usize>) -> Result<(), Fault> {
        take(&mut self.document, "a document", span)?;
        self.pass(span)
    }

    /// Counts one value of which nothing is made.
    pub(crate) fn pass(&mut self, span: &Range<usize>) -> Result<(), Fault> {
        take(&mut self.whole, "it", span)
    }

    /// What there is too much of, if nothing more can be read.
    pub(crate) fn exceeded_limit(&self) -> Option<String> {
        let [left, most] = self.whole;
        (left == 0).then(|| format!("more than {} values", grouped(most)))
    }
}

/// Takes one value from those that are left.
fn take([left, most]: &mut [usize; 2], what: &str, span: &Range<usize>) -> Result<(), Fault> {
    match left.checked_sub(1) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => {
            let reason = format!("{what} has more than {} values", grouped(*most));
            Err(Fault::excess(span.clone(), reason))
        }
    }
}

/// A number with commas: `16,000,000`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Kind, Node};
    use crate::reader;

    static SHAPE: Shape = Shape::Map(&[("name", Shape::Text), ("words", TEXTS)]);

    /// The same of a text of JSON, read as YAML and as JSON.
    fn both(text: &str, values: &Values) -> [Result<String, Fault>; 2] {
        let shown = |node: &Node<'_>| format!("{:?}", without_spans(node));
        let mut found = None;
        let mut take = |node: Node<'_>, _| found = Some(shown(&node));
        let mut left = values.clone();
        let yaml =
            reader::documents(text, &SHAPE, &mut left, &mut take).map_err(|(_, fault)| fault);
        let yaml = yaml.map(|()| found.unwrap_or_default());
        let json =
            reader::read_json(text, &SHAPE, &mut values.clone()).map(|read| shown(&read.node));
        [yaml, json]
    }

    fn without_spans(node: &Node<'_>) -> Vec<String> {
        match &node.kind {
            Kind::Map(entries, _) => entries
                .iter()
                .flat_map(|one| [vec![one.key.to_string()], without_spans(&one.value)].concat())
                .collect(),
            Kind::List(items) => items.iter().flat_map(without_spans).collect(),
            Kind::Scalar(text) => vec![text.to_string()],
            Kind::Null => vec!["-".to_owned()],
        }
    }

    #[test]
    fn only_what_is_declared_is_made_and_counted() {
        let text = r#"{"x": [1, {"name": "no"}, [2]], "name": "web", "words": ["a", "b"], "y": {"z": {}}}"#;
        let expected = r#"["name", "web", "words", "a", "b"]"#;
        for found in both(text, &Values::at_most(7, 20)) {
            assert_eq!(found.expect("is read"), expected);
        }
        for values in [Values::at_most(6, 20), Values::at_most(20, 6)] {
            for fault in both(text, &values).map(|found| found.expect_err("is too much")) {
                assert!(fault.is_excess && fault.reason.ends_with("has more than 6 values"));
            }
        }
        // A list or map where a text is expected has nothing in it.
        for found in both(r#"{"name": [1, 2], "words": [[3], {"a": 4}]}"#, &Values::at_most(7, 20))
        {
            assert_eq!(found.expect("is read"), r#"["name", "words"]"#);
        }
    }

    #[test]
    fn a_key_a_thousand_times_is_there_twice() {
        let text = format!("{{{}\"name\": \"last\"}}", "\"name\": \"a\", ".repeat(1_000));
        for found in both(&text, &Values::default()) {
            assert_eq!(found.expect("is read"), r#"["name", "a", "name", "last"]"#);
        }
    }

    #[test]
    fn values_with_names_are_counted_because_the_parser_remembers_them() {
        let text = "- &a x\n".repeat(100_001);
        let fault = reader::read(&text, &SHAPE).expect_err("is too much");
        assert_eq!(fault.reason, "it has more than 100,000 values with names (`&…`)");
        let text = "x: {y: &v 1.2.0}\nname: *v\n";
        assert_eq!(without_spans(&reader::read(text, &SHAPE).expect("is read")), ["name", "1.2.0"]);
    }

    #[test]
    fn numbers_have_commas() {
        let all = [(0, "0"), (999, "999"), (1_000, "1,000"), (16_000_000, "16,000,000")];
        for (number, text) in all {
            assert_eq!(grouped(number), text);
        }
    }
}
