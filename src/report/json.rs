//! The JSON document of a command, as `--json` prints it: its answer and the warnings, two spaces a level.
//!
//! It does not decide what an answer has: each command's own type in [`crate::ops`] does.

use std::collections::BTreeSet;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// The one JSON document of a command: its answer, and the warnings.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a, A> {
    #[serde(flatten)]
    pub(super) answer: &'a A,
    /// The warnings, if there are any.
    #[serde(skip_serializing_if = "is_empty")]
    pub(super) warnings: &'a BTreeSet<String>,
}

fn is_empty(warnings: &&BTreeSet<String>) -> bool {
    warnings.is_empty()
}

impl<A: Serialize> Document<'_, A> {
    /// The document's text, with a line end behind it. JSON escapes control characters, so a terminal shows it as it is.
    pub(super) fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = Text(Vec::new());
        self.serialize(&mut Serializer::with_formatter(&mut text, Indented::default()))?;
        text.0.push(b'\n');
        Ok(text.0)
    }
}

/// A text that grows. A single byte, as each quotation mark is, is not worth a call.
struct Text(Vec<u8>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes {
            [byte] => self.0.push(*byte),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What stands between two values: a comma, a line end and the spaces of 32 levels.
const BREAK: &[u8; 66] = b",\n                                                                ";

/// The layout of `serde_json`'s own `PrettyFormatter`, which writes the spaces of a line level by level. An answer may
/// have 100,000 lines, and then that takes a quarter of the writing.
#[derive(Default)]
struct Indented {
    level: usize,
    /// Whether the array or object that ends next has values.
    has_values: bool,
}

impl Indented {
    fn open<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level += 1;
        self.has_values = false;
        writer.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level -= 1;
        if self.has_values {
            self.line(writer, true)?;
        }
        writer.write_all(bracket)
    }

    /// Begins a line; behind a comma if it is not the `first` of its array or object.
    fn line<W: ?Sized + Write>(&self, writer: &mut W, first: bool) -> io::Result<()> {
        let end = (2 + 2 * self.level).min(BREAK.len());
        writer.write_all(&BREAK[usize::from(first)..end])?;
        (BREAK.len() / 2..=self.level).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Indented {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.line(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_values = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.line(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_values = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn documents_are_laid_out_as_serde_json_does() {
        let mut deep = json!(["control \u{1b}[31m, delete \u{7f}, quote \", é"]);
        for level in 0..40 {
            deep = if level % 2 == 0 {
                json!({"in": deep, "none": {}})
            } else {
                json!([[], deep, level])
            };
        }
        let warnings = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
        for (answer, warnings) in [
            (json!({}), BTreeSet::new()),
            (json!({"packages": [], "place": null, "number": 1.5}), BTreeSet::new()),
            (json!({"deep": deep}), warnings),
        ] {
            let document = Document { answer: &answer, warnings: &warnings };
            let expected = serde_json::to_string_pretty(&document).expect("serialises") + "\n";
            let text = String::from_utf8(document.text().expect("serialises")).expect("is UTF-8");
            assert_eq!(text, expected);
            assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
