//! Two texts, compared line by line, as a unified diff prints them. The algorithm is Git's histogram diff, from `imara-diff`,
//! whose time has a limit even for texts that were made to be slow.

use std::fmt::Write as _;

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};

/// How many unchanged lines are shown around a change.
const CONTEXT: u32 = 3;

/// How two texts differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compared {
    /// The number of new lines.
    pub(super) added: usize,
    /// The number of lines that are gone.
    pub(super) removed: usize,
    /// The hunks of a unified diff.
    pub(super) hunks: String,
}

/// Compares two texts. Bytes that are not UTF-8 are replaced.
pub(super) fn compare(before: &[u8], after: &[u8]) -> Compared {
    let input = InternedInput::new(byte_lines(before), byte_lines(after));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let changes: Vec<Hunk> = diff.hunks().collect();
    let mut hunks = String::new();
    let mut rest = changes.as_slice();
    while !rest.is_empty() {
        // Changes whose context touches are one hunk.
        let is_apart = |pair: &[Hunk]| pair[1].before.start - pair[0].before.end > 2 * CONTEXT;
        let end = rest.windows(2).position(is_apart).map_or(rest.len(), |last| last + 1);
        let (together, others) = rest.split_at(end);
        print(&input, together, &mut hunks);
        rest = others;
    }
    let (added, removed) = (diff.count_additions(), diff.count_removals());
    Compared { added: added as usize, removed: removed as usize, hunks }
}

/// Prints changes with the lines around them.
fn print(input: &InternedInput<&[u8]>, changes: &[Hunk], text: &mut String) {
    let [first, last] = [changes.first(), changes.last()].map(|one| one.expect("is not empty"));
    let above = first.before.start.min(CONTEXT);
    let length = u32::try_from(input.before.len()).expect("a file is not that long");
    let below = (length - last.before.end).min(CONTEXT);
    let (start, end) = (first.before.start - above, last.before.end + below);
    let new_start = first.after.start - above;
    let range = |start: u32, lines: u32| match lines {
        // An empty range names the line before it.
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        lines => format!("{},{lines}", start + 1),
    };
    let old = range(start, end - start);
    let new = range(new_start, last.after.end + below - new_start);
    writeln!(text, "@@ -{old} +{new} @@").expect("a string takes everything");
    let mut at = start;
    for change in changes {
        lines(input, &input.before[at as usize..change.before.start as usize], ' ', text);
        let range = |range: &std::ops::Range<u32>| range.start as usize..range.end as usize;
        lines(input, &input.before[range(&change.before)], '-', text);
        lines(input, &input.after[range(&change.after)], '+', text);
        at = change.before.end;
    }
    lines(input, &input.before[at as usize..end as usize], ' ', text);
}

fn lines(input: &InternedInput<&[u8]>, tokens: &[Token], sign: char, text: &mut String) {
    for token in tokens {
        let line = String::from_utf8_lossy(input.interner[*token]);
        text.push(sign);
        text.push_str(&line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(changes: &[(usize, &str)]) -> String {
        let line = |number: usize| {
            let changed = changes.iter().find(|(at, _)| *at == number);
            changed.map_or_else(|| format!("{number}\n"), |(_, text)| (*text).to_owned())
        };
        (1..=20).map(line).collect()
    }

    #[test]
    fn prints_hunks_as_diff_does() {
        let before = numbers(&[]);
        let after = numbers(&[(2, "two\n"), (8, "8\nnew\n"), (20, "20")]);
        let compared = compare(before.as_bytes(), after.as_bytes());
        let hunks = "@@ -1,11 +1,12 @@\n 1\n-2\n+two\n 3\n 4\n 5\n 6\n 7\n 8\n+new\n 9\n 10\n 11\n\
            @@ -17,4 +18,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n";
        assert_eq!(compared, Compared { added: 3, removed: 2, hunks: hunks.to_owned() });
        assert_eq!(compare(b"", b"a\n").hunks, "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(compare(b"a\nb\n", b"").hunks, "@@ -1,2 +0,0 @@\n-a\n-b\n");
        assert_eq!(compare(b"a\n", b"a\n").hunks, "");
    }
}
