//! The layout of JSON answers: two spaces a level, as [`serde_json::ser::PrettyFormatter`] writes it, but the start of a line at once
//! instead of level by level. An answer has up to a hundred thousand lines.
//!
//! It does not decide what an answer says: see [`crate::cli`].

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// A value as JSON on several lines.
pub(super) fn indented_json<T: Serialize>(value: &T) -> io::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Indented::default()))?;
    String::from_utf8(text).map_err(io::Error::other)
}

/// What separates two values, and the spaces of the deepest level that is written at once.
const LINE: &[u8] = b",\n                                ";

#[derive(Default)]
struct Indented {
    depth: usize,
    /// Whether the innermost list or object has a value.
    has_value: bool,
}

impl Indented {
    /// Starts a line for a value.
    fn line<W: Write + ?Sized>(&self, writer: &mut W, is_first: bool) -> io::Result<()> {
        let end = 2 + 2 * self.depth;
        let at_once = end.min(LINE.len());
        writer.write_all(&LINE[usize::from(is_first)..at_once])?;
        (at_once..end).try_for_each(|_| writer.write_all(b" "))
    }

    fn open<W: Write + ?Sized>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(bracket)
    }

    fn close<W: Write + ?Sized>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.line(writer, true)?;
        }
        writer.write_all(bracket)
    }
}

impl Formatter for Indented {
    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.line(writer, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.line(writer, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        // Deeper than one piece of spaces.
        leaf.prop_recursive(24, 128, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(".*", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_what_serde_json_writes(value in value()) {
            let theirs = serde_json::to_string_pretty(&value).expect("is JSON");
            prop_assert_eq!(indented_json(&value).expect("is JSON"), theirs);
        }
    }

    #[test]
    fn a_level_may_be_deeper_than_the_spaces_that_are_written_at_once() {
        let mut value = Value::from(1);
        for _ in 0..40 {
            value = Value::from(vec![value, Value::Array(Vec::new())]);
        }
        let theirs = serde_json::to_string_pretty(&value).expect("is JSON");
        assert_eq!(indented_json(&value).expect("is JSON"), theirs);
    }
}
