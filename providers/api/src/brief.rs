//! How much of a message is shown: what others wrote may be of any length, and a person reads no more than a screen.

use std::borrow::Cow;

/// The longest part that a message quotes, and the longest word in it, in characters.
const LONGEST_PART: usize = 400;

/// The longest message, in characters.
const LONGEST_MESSAGE: usize = 4_000;

/// How many lines a message has at most.
const MOST_LINES: usize = 80;

/// A message of bounded length. The middle is left out of each long part in back-ticks and of each long word, of many lines, and then
/// of the message itself.
pub fn brief(text: &str) -> Cow<'_, str> {
    // What is shorter has no long part.
    if text.len() <= LONGEST_PART {
        return Cow::Borrowed(text);
    }
    let mut parts = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number > 0 {
            parts.push('`');
        }
        match number % 2 {
            1 => parts.push_str(&without_middle(part, LONGEST_PART)),
            _ => part.split_inclusive(char::is_whitespace).for_each(|word| {
                parts.push_str(&without_middle(word, LONGEST_PART));
            }),
        }
    }
    let lines: Vec<&str> = parts.lines().collect();
    if lines.len() > MOST_LINES {
        let (begin, rest) = lines.split_at(MOST_LINES * 3 / 4);
        let (left_out, end) = rest.split_at(rest.len() - MOST_LINES / 4);
        let left_out = format!("… {} more lines …", left_out.len());
        parts = [begin, &[&left_out], end].concat().join("\n");
    }
    Cow::Owned(without_middle(&parts, LONGEST_MESSAGE).into_owned())
}

/// A text of at most about `most` characters: three quarters of them from its beginning, the others from its end.
fn without_middle(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let mut begin = text.char_indices().map(|(at, _)| at).skip(most * 3 / 4);
    let mut end = text.char_indices().map(|(at, _)| at).rev().skip(most / 4 - 1);
    match (begin.next(), end.next()) {
        (Some(begin), Some(end)) if begin < end => {
            let (begin, end) = (text.get(..begin), text.get(end..));
            Cow::Owned(format!("{} … {}", begin.unwrap_or_default(), end.unwrap_or_default()))
        }
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_reads_stays_as_it_is() {
        for text in ["", "cannot read `x`", &"a word of `many` ".repeat(200)] {
            assert_eq!(brief(text), text);
        }
    }

    #[test]
    fn long_parts_words_and_lists_are_cut_in_their_middle() {
        let range = (0..20_000).map(|n| format!(">=1.{n}.0")).collect::<Vec<_>>().join(" || ");
        let text = format!("the range `{range}` of `web` has too many parts");
        let cut = brief(&text);
        assert!(cut.starts_with("the range `>=1.0.0 || ") && cut.contains(" … "), "{cut}");
        assert!(cut.ends_with(">=1.19999.0` of `web` has too many parts"), "{cut}");
        assert!(cut.chars().count() < 500, "{}", cut.chars().count());
        let word = brief(&"ä".repeat(900_000)).into_owned();
        assert!(word.chars().count() <= LONGEST_PART + 3, "{}", word.chars().count());
        let names: Vec<String> = (0..40_000).map(|n| format!("`web/{n}`")).collect();
        let list = brief(&names.join(", ")).into_owned();
        assert!(list.chars().count() <= LONGEST_MESSAGE + 3 && list.ends_with("`web/39999`"));
        let lines = brief(&names.join("\n")).into_owned();
        assert_eq!(lines.lines().count(), MOST_LINES + 1);
        assert!(lines.contains("… 39920 more lines …") && lines.ends_with("`web/39999`"));
    }
}
