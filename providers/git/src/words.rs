//! Makes text from a server or repository safe to show.
//!
//! The result is one line: a second line could look like one of mu's.

/// How many characters are shown.
const LONGEST: usize = 400;

/// The first few hundred characters as one line, with characters that could control a terminal escaped.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::new();
    for line in lines(&text) {
        let left = LONGEST.saturating_sub(shown.chars().count());
        if left == 0 {
            break;
        }
        shown.push_str(if shown.is_empty() { "" } else { "; " });
        shown.extend(line.chars().take(left).flat_map(escaped));
    }
    shown
}

/// The last lines as one line, as many as fit into a few hundred characters, escaped in the same way.
pub(crate) fn printable_end(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<String> =
        lines(&text).map(|line| line.chars().flat_map(escaped).collect()).collect();
    let mut room = LONGEST;
    let fits = |line: &&String| {
        let left = room.checked_sub(line.chars().count());
        room = left.unwrap_or_default();
        left.is_some()
    };
    match (lines.iter().rev().take_while(fits).count(), lines.last()) {
        (0, Some(last)) => last.chars().skip(last.chars().count() - LONGEST).collect(),
        (count, _) => {
            let last: Vec<String> = lines.iter().rev().take(count).rev().cloned().collect();
            last.join("; ")
        }
    }
}

/// The lines that are not empty.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let breaks = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    text.split(breaks).map(str::trim).filter(|line| !line.is_empty())
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let escape = is_harmful(character).then(|| character.escape_unicode());
    escape.into_iter().flatten().chain((!is_harmful(character)).then_some(character))
}

/// Whether a character could move a terminal's cursor, hide something, or reorder a line.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_line() {
        assert_eq!(printable(b" no\nhint: run `x`\r\n\n"), "no; hint: run `x`");
        assert_eq!(
            printable("a\u{2028}b\u{61c}c\u{feff}d\u{202e}\x1b[m".as_bytes()),
            "a; b\\u{61c}c\\u{feff}d\\u{202e}\\u{1b}[m"
        );
        assert_eq!(printable(&[b'x'; LONGEST + 9]).len(), LONGEST);
    }

    #[test]
    fn the_end_of_long_words_is_whole_lines() {
        assert_eq!(printable_end(b"one\r\ntwo\x1b\n"), "one; two\\u{1b}");
        let long = format!("{}\nlast line\n", "x".repeat(LONGEST));
        assert_eq!(printable_end(long.as_bytes()), "last line");
        assert_eq!(printable_end("é".repeat(LONGEST + 1).as_bytes()), "é".repeat(LONGEST));
        assert_eq!(printable_end(b""), "");
    }
}
