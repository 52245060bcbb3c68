//! The list of a stored tree: what linking needs, so that no folder is walked.
//!
//! One line an entry, `MODE SHA256HEX SIZE PATH`, after a line with the format's version. The
//! content digest can be computed from it again.

use std::fmt::Write as _;

use mu_provider::{Entry, Mode, Tree};

const HEADER: &str = "mu-tree 1";

/// Bytes that lines seldom exceed.
const USUAL_LINE: usize = 128;

/// The text of a tree's list.
pub(super) fn print(tree: &Tree) -> String {
    let mut text = String::with_capacity(HEADER.len() + 1 + tree.entries().len() * USUAL_LINE);
    text.push_str(HEADER);
    text.push('\n');
    for entry in tree.entries() {
        text.push(entry.mode.letter());
        text.push(' ');
        entry.sha256.push_to(&mut text);
        writeln!(text, " {} {}", entry.size, entry.path).expect("a string takes everything");
    }
    text
}

/// The tree of a list; `None` if the text is not one.
pub(super) fn parse(text: &str) -> Option<Tree> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    if lines.next()? != HEADER {
        return None;
    }
    lines.map(parse_entry).collect::<Option<Vec<_>>>().map(Tree::new)
}

fn parse_entry(line: &str) -> Option<Entry> {
    let mut fields = line.splitn(4, ' ');
    let mode = match fields.next()? {
        "f" => Mode::File,
        "x" => Mode::Executable,
        "l" => Mode::Symlink,
        _ => return None,
    };
    Some(Entry {
        mode,
        sha256: fields.next()?.parse().ok()?,
        size: fields.next()?.parse().ok()?,
        path: fields.next()?.to_owned(),
    })
}
