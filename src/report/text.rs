//! Small texts: counts, sizes, and foreign text made safe for a terminal.

use std::borrow::Cow;

use mu_provider::brief;

pub use crate::ops::session::words::count;

/// No line of this many bytes has a part that is too long.
const LONGEST_LINE: usize = 400;

/// Foreign text as a terminal may show it: control characters are escaped, line breaks stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_harmful = |character: char| {
        (character.is_control() && character != '\n' && character != '\t')
            || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_harmful(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Each line of a report, as [`brief`] as a person reads it: a report may have any number of lines.
pub(super) fn brief_lines(text: &str) -> Cow<'_, str> {
    let is_short =
        text.len() <= LONGEST_LINE || text.lines().all(|line| line.len() <= LONGEST_LINE);
    match is_short {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.lines().map(brief).collect::<Vec<_>>().join("\n")),
    }
}

/// Foreign text, safe and on one line.
pub(super) fn one_line(text: &str) -> String {
    printable(&brief(text)).replace(['\n', '\t'], " ")
}

/// Whether a stream without styles shows a text unchanged.
pub(super) fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| (byte >= b' ' && byte != 0x7f) || byte == b'\n' || byte == b'\t';
    text.bytes().all(is_plain)
}

/// Bytes for people: `12 B`, `3.4 KiB`, `5.6 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // What would be rounded to 1024.0 is one of the next unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_and_never_obeys() {
        assert_eq!(printable("plain\nlines"), "plain\nlines");
        assert_eq!(printable("a\u{1b}[31mb\u{202e}"), "a\\u{1b}[31mb\\u{202e}");
        let breaks_and_marks = "\u{61c}\u{2028}\u{2029}\u{feff}";
        assert_eq!(printable(breaks_and_marks), "\\u{61c}\\u{2028}\\u{2029}\\u{feff}");
    }

    #[test]
    fn counts_and_sizes() {
        assert_eq!(
            (count(1, "package"), count(0, "package")),
            ("1 package".into(), "0 packages".into())
        );
        assert_eq!(
            (size(1023), size(1536), size(5 << 30)),
            ("1023 B".into(), "1.5 KiB".into(), "5.0 GiB".into())
        );
        assert_eq!(
            (size((1 << 20) - 1), size((1 << 30) - 1), size(u64::MAX)),
            ("1.0 MiB".into(), "1.0 GiB".into(), "16777216.0 TiB".into())
        );
    }
}
