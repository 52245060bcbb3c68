//! The documents of a catalog, one after the other: JSON values in a row, or YAML documents. After one that cannot be read, reading
//! goes on with the next.
//!
//! YAML is read as JSON whose numbers and truth values are texts: nobody here needs to tell them apart.

use serde_json::{Map, Value};

use crate::error::{Fault, FormatError};
use crate::node::{self, Kind, Node};

/// Hands every document of `text`, the content of `file`, to `take`.
pub(super) fn read(file: &str, text: &str, take: &mut dyn FnMut(Value)) -> Result<(), FormatError> {
    let mut first = None;
    each(text, take, &mut |_, fault| {
        first.get_or_insert(fault);
    });
    first.map_or(Ok(()), |fault| Err(FormatError::new(file, text, fault)))
}

/// Hands every document of `text` to `take`, and the text of each that cannot be read to `broken`, with the reason.
pub(super) fn each(text: &str, take: &mut dyn FnMut(Value), broken: &mut dyn FnMut(&str, Fault)) {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_json = bare.trim_start().starts_with('{');
    let mut rest = bare;
    loop {
        let read = match is_json {
            true => json(rest, take),
            false => node::documents(rest, |node| take(value(node))),
        };
        let Err((begin, mut fault)) = read else { return };
        let before = text.len() - rest.len();
        fault.span = fault.span.start + before..fault.span.end + before;
        let from = rest.get(begin..).unwrap_or_default().trim_start();
        let document = from.get(..next(from, is_json)).unwrap_or(from);
        if is_json || document.is_empty() || !is_bare(document) {
            broken(document, fault);
        }
        rest = from.get(document.len()..).unwrap_or_default();
    }
}

/// Where the next document begins, as tools write it: at a line `---`, or at a brace that begins a line.
fn next(text: &str, is_json: bool) -> usize {
    let mark = if is_json { "\n{" } else { "\n---" };
    let is_mark = |at: &usize| {
        let behind = text.get(at + mark.len()..).unwrap_or_default();
        is_json || behind.is_empty() || behind.starts_with(char::is_whitespace)
    };
    let at = text.match_indices(mark).map(|(at, _)| at).find(is_mark);
    at.map_or(text.len(), |at| at + 1)
}

/// Whether a text of YAML has no document, but only comments and directives.
fn is_bare(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.starts_with(['#', '%']))
}

fn json(text: &str, take: &mut dyn FnMut(Value)) -> Result<(), (usize, Fault)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let begin = stream.byte_offset();
        match stream.next() {
            None => return Ok(()),
            Some(Ok(value)) => take(value),
            Some(Err(error)) => {
                let before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
                let line: usize = before.map(str::len).sum();
                let at = (line + error.column().saturating_sub(1)).min(text.len());
                return Err((begin, Fault::new(at..at, format!("this is not JSON: {error}"))));
            }
        }
    }
}

/// The package that a document which cannot be read is about, as far as its text says so.
pub(super) fn named(document: &str) -> Option<&str> {
    let own = || values(document, "name").next();
    let is_package = || values(document, "schema").any(|schema| schema == "olm.package");
    values(document, "package").next().or_else(|| own().filter(|_| is_package()))
}

/// The plain values of a key, wherever it is in a document.
fn values<'t>(document: &'t str, key: &str) -> impl Iterator<Item = &'t str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    document.match_indices(key).filter_map(move |(at, _)| {
        let (before, from) = document.split_at_checked(at)?;
        let behind = from.get(key.len()..)?;
        let behind = behind.strip_prefix(['"', '\'']).unwrap_or(behind).trim_start();
        let value = behind.strip_prefix(':')?.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|letter| !is_plain(letter)).unwrap_or(value.len());
        let is_key = !before.ends_with(is_plain) && end > 0;
        value.get(..end).filter(|_| is_key)
    })
}

fn value(node: Node<'_>) -> Value {
    match node.kind {
        Kind::Null | Kind::Alias => Value::Null,
        Kind::Scalar(text) => Value::String(text.into_owned()),
        Kind::List(items) => Value::Array(items.into_iter().map(value).collect()),
        Kind::Map(entries) => {
            let pairs =
                entries.into_iter().map(|entry| (entry.key.into_owned(), value(entry.value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

/// The text under a key, whether it is written as text, a number or a truth value; a missing and an empty one are the same.
pub(super) fn text(value: &Value, key: &str) -> Option<String> {
    word(value.get(key)?)
}

/// A text, a number or a truth value as text.
pub(super) fn word(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// The values of the list under a key; none if there is no list.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts of the list under a key.
pub(super) fn texts(value: &Value, key: &str) -> Vec<String> {
    list(value, key).iter().filter_map(word).collect()
}
