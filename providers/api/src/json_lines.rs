//! JSON lines: how listings, catalogs and indexes are written, one object a line; and how many values a text of JSON has, before
//! anything is made of it: two bytes of text can become a hundred of memory.
//!
//! Blank lines count for nothing. A line that cannot be read spoils no other; the caller says whether it may be passed over.

use std::fmt;
use std::iter;

use memchr::memchr;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes each value as one line.
pub fn json_lines<Line: Serialize>(lines: impl IntoIterator<Item = Line>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut bytes, &line).expect("texts and numbers can be printed");
        bytes.push(b'\n');
    }
    bytes
}

/// All lines, without their ends, which are looked for many bytes at once: a server searches megabytes of lines for each question.
pub fn split_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = memchr(b'\n', text) else { return Some(text) };
        rest = Some(&text[end + 1..]);
        Some(&text[..end])
    })
}

/// The lines that are not blank, with their numbers counted from 1.
pub fn numbered_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = split_lines(bytes).enumerate();
    lines.filter(|(_, line)| !line.trim_ascii().is_empty()).map(|(index, line)| (index + 1, line))
}

/// Reads each line that is not blank. `flatten` the result where lines that cannot be read are passed over.
pub fn read_json_lines<'bytes, Line: DeserializeOwned>(
    bytes: &'bytes [u8],
) -> impl Iterator<Item = Result<Line, JsonLineError<'bytes>>> + use<'bytes, Line> {
    numbered_lines(bytes).map(|(number, line)| {
        serde_json::from_slice(line).map_err(|reason| JsonLineError { number, line, reason })
    })
}

/// A line that cannot be read.
#[derive(Debug)]
pub struct JsonLineError<'bytes> {
    /// Which one, counted from 1.
    pub number: usize,
    /// The line.
    pub line: &'bytes [u8],
    /// Why not.
    pub reason: serde_json::Error,
}

impl fmt::Display for JsonLineError<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.number, self.reason)
    }
}

/// The most values that one document may have.
pub const MOST_VALUES: usize = 4_000_000;

/// Whether JSON has no more than `most` values, keys included. It counts what separates them, and also takes what is no JSON.
pub fn has_few_values(json: &[u8], most: usize) -> bool {
    let (mut count, mut is_text, mut is_escaped) = (1_usize, false, false);
    for byte in json {
        match (byte, is_text) {
            _ if is_escaped => is_escaped = false,
            (b'\\', true) => is_escaped = true,
            (b'"', _) => is_text = !is_text,
            (b',' | b':' | b'[' | b'{', false) => count += 1,
            _ => {}
        }
    }
    count <= most
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_was_written_reads_back_and_blank_lines_count_for_nothing() {
        let values = [json!({"name": "a"}), json!({"name": "b\n"})];
        let text = json_lines(&values);
        assert_eq!(text, b"{\"name\":\"a\"}\n{\"name\":\"b\\n\"}\n");
        let spread = [b"\n \r\n", &*text, b"\n"].concat();
        let read: Result<Vec<Value>, _> = read_json_lines(&spread).collect();
        assert_eq!(read.expect("can be read"), values);
        let numbers: Vec<usize> = numbered_lines(&spread).map(|(number, _)| number).collect();
        assert_eq!(numbers, [3, 4]);
    }

    #[test]
    fn a_broken_line_is_named_and_spoils_no_other() {
        let text = b"{\"a\":1}\nx\n{\"a\":2}";
        let wrong: Vec<String> = read_json_lines::<Value>(text)
            .filter_map(Result::err)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(wrong, ["line 2: expected value at line 1 column 1"]);
        assert_eq!(read_json_lines::<Value>(text).flatten().count(), 2);
    }

    #[test]
    fn separators_count_unless_they_are_in_a_text() {
        for (json, count) in [
            ("", 1),
            ("[0,0,0]", 4),
            (r#"{"a": [1], "b": {}}"#, 7),
            (r#""a,b:[{\",,""#, 1),
            (r#"["\\",1]"#, 3),
        ] {
            let has_few = |most| has_few_values(json.as_bytes(), most);
            assert!(has_few(count) && !has_few(count - 1), "{json}");
        }
    }
}
