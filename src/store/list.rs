//! The list of a stored tree: what linking needs, so that no folder is walked.
//!
//! After a line with the format's version, one with the package's own name and version, and one with the size
//! of every entry come exactly the lines of the content digest ([`Tree::lines`]). So a list is checked by
//! hashing it directly.

use std::fmt::Write as _;

use mu_provider::{Digest, Entry, Tree};

const HEADER: &str = "mu-tree 3";

/// The text of a tree's list, and the tree's digest. `called` is the package's own name and version, without
/// a line feed.
pub(super) fn print(tree: &Tree, called: &str) -> (String, Digest) {
    // Few sizes have more than seven digits.
    let lines: usize = tree.entries().iter().map(|entry| Tree::LINE + entry.path.len() + 8).sum();
    let mut text = String::with_capacity(HEADER.len() + called.len() + lines + 3);
    for line in [HEADER, called] {
        text.push_str(line);
        text.push('\n');
    }
    for entry in tree.entries() {
        write!(text, "{} ", entry.size).expect("a string takes everything");
    }
    text.push('\n');
    let start = text.len();
    tree.lines(&mut text);
    let digest = Digest::of_lines(&text[start..]);
    (text, digest)
}

/// The tree in the list of the tree with this digest, and its package's own name and version; `None` if the
/// text is not that list.
pub(super) fn parse<'text>(text: &'text str, digest: &Digest) -> Option<(Tree, &'text str)> {
    let (called, rest) = text.strip_prefix(HEADER)?.strip_prefix('\n')?.split_once('\n')?;
    let (sizes, lines) = rest.split_once('\n')?;
    if Digest::of_lines(lines) != *digest {
        return None;
    }
    let mut sizes = sizes.split_terminator(' ');
    let entries: Option<Vec<Entry>> = lines
        .split_terminator('\n')
        .map(|line| Entry::from_line(line, sizes.next()?.parse().ok()?))
        .collect();
    let entries = entries.filter(|_| sizes.next().is_none())?;
    Some((Tree::new(entries), called))
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
            for called in ["", "aws/ec2 1.0.0"] {
                let (text, digest) = print(&tree, called);
                assert_eq!(digest, tree.digest());
                assert_eq!(parse(&text, &digest), Some((tree.clone(), called)), "{text}");
            }
        }
    }

    #[test]
    fn a_list_that_was_changed_is_none() {
        let tree = Tree::new(vec![entry("a", Mode::File, 1), entry("b", Mode::File, 2)]);
        let (text, digest) = print(&tree, "aws/ec2 1.0.0");
        for changed in [
            text.replace("mu-tree 3", "mu-tree 2"),
            text.replace("aws/ec2 1.0.0\n", ""),
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
