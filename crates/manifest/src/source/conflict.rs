//! Files with both sides of a merge conflict in them.
//!
//! The markers are looked for only if a file cannot be read. So they cost nothing otherwise, and a text that
//! merely contains such a line is not refused.

use std::ops::Range;
use std::path::Path;

use super::SourceError;

/// What to do about a conflict in a file that people write.
const HELP: &str =
    "keep the right lines, and delete the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`";

/// The error for a file with a merge conflict; `None` if there is none.
pub fn conflict(path: &Path, text: &str) -> Option<SourceError> {
    let (begin, end) = (marker(text, "<<<<<<<"), marker(text, ">>>>>>>"));
    let message = "this file has an unresolved merge conflict";
    let error = |span| SourceError::new(path, text, span, message).help(HELP);
    match (begin, end) {
        (Some(begin), Some(end)) => Some(error(begin).related(end, "to here")),
        (begin, end) => begin.or(end).map(error),
    }
}

/// The text with our side of each conflict, and with their side; `None` if there is no conflict, or one that does not end.
pub fn without_conflicts(text: &str) -> Option<[String; 2]> {
    let [mut ours, mut theirs] = [String::new(), String::new()];
    // Which side the lines belong to: both, ours, the common one, theirs.
    let (mut side, mut conflicts) = (0, 0);
    for line in text.split_inclusive('\n') {
        let is = |mark: &str| {
            let rest = line.strip_prefix(mark);
            rest.is_some_and(|rest| rest.chars().next().is_none_or(char::is_whitespace))
        };
        side = match side {
            0 if is("<<<<<<<") => 1,
            1 if is("|||||||") => 2,
            1 | 2 if is("=======") => 3,
            3 if is(">>>>>>>") => {
                conflicts += 1;
                0
            }
            _ => {
                if matches!(side, 0 | 1) {
                    ours.push_str(line);
                }
                if matches!(side, 0 | 3) {
                    theirs.push_str(line);
                }
                continue;
            }
        };
    }
    (side == 0 && conflicts > 0).then_some([ours, theirs])
}

/// The first line that consists of `mark`, or begins with `mark` and a space.
fn marker(text: &str, mark: &str) -> Option<Range<usize>> {
    let mut places = text.match_indices(mark).map(|(place, _)| place..place + mark.len());
    places.find(|place| {
        let is_first = place.start == 0 || text[..place.start].ends_with('\n');
        is_first && text[place.end..].chars().next().is_none_or(char::is_whitespace)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;

    fn check(name: &str, text: &str, expected: Option<usize>) {
        let error = Document::read(Path::new(name), text).err();
        let line = error.filter(|error| error.help_text() == Some(HELP)).map(|error| error.line());
        assert_eq!(line, expected, "{text}");
    }

    #[test]
    fn finds_what_a_merge_left() {
        let both = |head: &str, rest: &str| {
            format!("{head}<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n{rest}")
        };
        check("Mu.yaml", &both("", ""), Some(1));
        check("Mu.yaml", &both("name: a/b\nlist:\n- x\n", "- y\n"), Some(4));
        check(
            "Mu.yaml",
            "a: 1\r\n<<<<<<< HEAD\r\nb: 1\r\n||||||| base\r\n=======\r\n>>>>>>> x\r\n",
            Some(2),
        );
        check("Mu.yaml", "a: [\n<<<<<<<\n1\n=======\n", Some(2));
        check("Mu.yaml", "a: 1\n>>>>>>> x\n", Some(2));
        check("Mu.json", "{\n<<<<<<< HEAD\n\"a\": 1\n=======\n\"a\": 2\n>>>>>>> x\n}\n", Some(2));
    }

    #[test]
    fn leaves_other_texts_and_mistakes_alone() {
        check("Mu.yaml", "a: |\n  <<<<<<< HEAD\n  =======\n  >>>>>>> x\n", None);
        check("Mu.yaml", "a: [\n<<<<<<<<<\n >>>>>>> x\n=======\n", None);
        check("Mu.yaml", "a: [\n", None);
    }
}
