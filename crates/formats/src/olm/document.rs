//! The documents of a catalog, one after the other: JSON values in a row, or YAML documents.
//!
//! YAML is read as JSON whose numbers and truth values are texts: nobody here needs to tell them apart.

use serde_json::{Map, Value};

use crate::error::{Fault, FormatError};
use crate::node::{self, Kind, Node};

/// Hands every document of `text`, the content of `file`, to `take`.
pub(super) fn read(file: &str, text: &str, take: &mut dyn FnMut(Value)) -> Result<(), FormatError> {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read = match bare.trim_start().starts_with('{') {
        true => json(bare, take),
        false => node::documents(bare, |node| take(value(node))),
    };
    read.map_err(|mut fault| {
        let mark = text.len() - bare.len();
        fault.span = fault.span.start + mark..fault.span.end + mark;
        FormatError::new(file, text, fault)
    })
}

fn json(text: &str, take: &mut dyn FnMut(Value)) -> Result<(), Fault> {
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value {
            Ok(value) => take(value),
            Err(error) => {
                let before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
                let line: usize = before.map(str::len).sum();
                let at = (line + error.column().saturating_sub(1)).min(text.len());
                return Err(Fault::new(at..at, format!("this is not JSON: {error}")));
            }
        }
    }
    Ok(())
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
