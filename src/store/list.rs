//! The list of a stored tree: what linking needs, so that no folder is walked.
//!
//! After a line with the format's version and one with the size of every entry come the very lines that the content
//! digest is over ([`Tree::lines`]). So a list is checked by hashing it as it lies.

use std::fmt::Write as _;

use mu_provider::{Digest, Entry, Tree};

const HEADER: &str = "mu-tree 2";

/// The text of a tree's list, and the tree's digest.
pub(super) fn print(tree: &Tree) -> (String, Digest) {
    // Few sizes have more than seven digits.
    let lines: usize = tree.entries().iter().map(|entry| Tree::LINE + entry.path.len() + 8).sum();
    let mut text = String::with_capacity(HEADER.len() + lines + 2);
    text.push_str(HEADER);
    text.push('\n');
    for entry in tree.entries() {
        write!(text, "{} ", entry.size).expect("a string takes everything");
    }
    text.push('\n');
    let start = text.len();
    tree.lines(&mut text);
    let digest = Digest::of_lines(&text[start..]);
    (text, digest)
}

/// The tree of the list of the tree with this digest; `None` if the text is not that.
pub(super) fn parse(text: &str, digest: &Digest) -> Option<Tree> {
    let (sizes, lines) = text.strip_prefix(HEADER)?.strip_prefix('\n')?.split_once('\n')?;
    if Digest::of_lines(lines) != *digest {
        return None;
    }
    let mut sizes = sizes.split_terminator(' ');
    let entries: Option<Vec<Entry>> = lines
        .split_terminator('\n')
        .map(|line| Entry::from_line(line, sizes.next()?.parse().ok()?))
        .collect();
    entries.filter(|_| sizes.next().is_none()).map(Tree::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_provider::Mode;

    fn entry(path: &str, mode: Mode, size: u64) -> Entry {
        let sha256 = mu_provider::FileDigest::from_bytes([7; 32]);
        Entry { path: path.to_owned(), mode, sha256, size }
    }

    #[test]
    fn what_was_printed_reads_back() {
        let entries = [
            entry("a b  c", Mode::File, 0),
            entry("d/é", Mode::Executable, u64::MAX),
            entry("e", Mode::Symlink, 1),
        ];
        for count in 0..=entries.len() {
            let tree = Tree::new(entries[..count].to_vec());
            let (text, digest) = print(&tree);
            assert_eq!(digest, tree.digest());
            assert_eq!(parse(&text, &digest), Some(tree), "{text}");
        }
    }

    #[test]
    fn a_list_that_was_changed_is_none() {
        let tree = Tree::new(vec![entry("a", Mode::File, 1), entry("b", Mode::File, 2)]);
        let (text, digest) = print(&tree);
        for changed in [
            text.replace("mu-tree 2", "mu-tree 1"),
            text.replace("  a", "  c"),
            text.replace("1 2", "1"),
            text.replace("1 2", "1 2 3"),
            text.replace("1 2", "1 x"),
            text[..text.len() - 1].to_owned(),
            text.lines().next().expect("has lines").to_owned(),
            String::new(),
        ] {
            assert_eq!(parse(&changed, &digest), None, "{changed}");
        }
    }
}
