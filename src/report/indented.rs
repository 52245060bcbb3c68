//! JSON with an indentation, as `serde_json` prints it: an answer with thousands of packages has a hundred thousand lines.
//!
//! `serde_json` writes a comma, a line end and each step of an indentation one by one. Here they are one text.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// What stands between two values: the end of a line, and the indentation of the next one.
const BETWEEN: &[u8] = b",\n                                                                ";

/// How deep values may stand that one text indents: half of its spaces.
const DEEPEST: usize = (BETWEEN.len() - 2) / 2;

/// The indented JSON of a value.
///
/// # Errors
///
/// Those of the value's own `Serialize`.
pub(super) fn json<V: Serialize>(value: &V) -> serde_json::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Indented::default()))?;
    Ok(String::from_utf8(text).expect("JSON is text"))
}

/// Where the printer is.
#[derive(Default)]
struct Indented {
    /// How many lists and objects are open.
    depth: usize,
    /// Whether the one that ends next has a value.
    has_value: bool,
}

impl Indented {
    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.new_line(out, true)?;
        }
        // What was open around it has this one.
        self.has_value = true;
        out.write_all(bracket)
    }

    /// Begins a line; without a comma if nothing stands before it.
    fn new_line<W: ?Sized + Write>(&self, out: &mut W, is_first: bool) -> io::Result<()> {
        let at_once = self.depth.min(DEEPEST);
        out.write_all(&BETWEEN[usize::from(is_first)..2 + 2 * at_once])?;
        (at_once..self.depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Indented {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        self.has_value = true;
        self.new_line(out, is_first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        self.has_value = true;
        self.new_line(out, is_first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    /// Values of every kind, some of them deeper than one text indents.
    fn values() -> impl Strategy<Value = Value> {
        let leaves = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        let nested = leaves.prop_recursive(6, 64, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        });
        (nested, 0_usize..40).prop_map(|(value, deeper)| {
            (0..deeper).fold(value, |value, _| Value::from(vec![value, Value::from(1)]))
        })
    }

    proptest! {
        #[test]
        fn it_is_the_text_of_serde_json(value in values()) {
            prop_assert_eq!(super::json(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap());
        }
    }
}
