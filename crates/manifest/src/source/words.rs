//! Words in messages: hostile text made printable, and the nearest known word for a misspelt one.
//!
//! This file does not know files or positions.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::reference::is_harmful;

/// Escapes characters that could control a terminal or reorder a line: control, zero-width and bidirectional
/// ones.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            character if is_harmful(character) => {
                write!(escaped, "\\u{{{:x}}}", u32::from(character)).expect("a String takes all");
            }
            character => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// The known word that `word` was most likely meant to be, if one is near enough.
///
/// Case, `-` and `_` do not count, so `Dependencies` and `dev-dependencies` match.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = folded(word);
    // Longer words would take long to compare, and are not close to any.
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    known
        .into_iter()
        .map(|candidate| (distance(&word, &folded(candidate)), candidate))
        .filter(|(distance, candidate)| {
            *distance <= (candidate.len().min(word.len()) / 3).max(1)
                || begin_alike(&word, &folded(candidate))
        })
        .filter(|(distance, candidate)| *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether two words are the same except for their endings: `registry` and `registries`.
fn begin_alike(left: &[char], right: &[char]) -> bool {
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    same >= 5 && same + 1 >= left.len().min(right.len())
}

fn folded(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// The number of edits that turn one word into the other; swapping two neighbours counts as one.
#[expect(
    clippy::indexing_slicing,
    reason = "the table has a row and a column more than the words have characters"
)]
fn distance(left: &[char], right: &[char]) -> usize {
    let width = right.len() + 1;
    let mut rows = vec![0; (left.len() + 1) * width];
    for (index, cell) in rows.iter_mut().take(width).enumerate() {
        *cell = index;
    }
    for (i, a) in left.iter().enumerate() {
        let row = (i + 1) * width;
        rows[row] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let changed = rows[row - width + j] + usize::from(a != b);
            let mut least = changed.min(rows[row + j] + 1).min(rows[row - width + j + 1] + 1);
            let swapped = i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b;
            if swapped {
                least = least.min(rows[row - 2 * width + j - 1] + 1);
            }
            rows[row + j + 1] = least;
        }
    }
    rows[rows.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_only_what_could_do_harm() {
        assert_eq!(printable("héllo `x`"), "héllo `x`");
        assert_eq!(printable("a\u{1b}[31m\u{202e}b\n"), "a\\u{1b}[31m\\u{202e}b\\n");
    }

    #[test]
    fn finds_the_word_that_was_meant() {
        let known = ["dependencies", "devDependencies", "name", "base", "version", "registries"];
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(nearest(word, known), expected, "{word}")
        };
        check("Dependencies", Some("dependencies"));
        check("dev-dependencies", Some("devDependencies"));
        check("dependecies", Some("dependencies"));
        check("nmae", Some("name"));
        check("verison", Some("version"));
        check("registry", Some("registries"));
        check("depends", Some("dependencies"));
        check("scripts", None);
        check("", None);
        check("x", None);
    }
}
