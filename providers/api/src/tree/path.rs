//! Which paths may be in a package, and which of them are one path on some file system.
//!
//! Nothing here touches a disk.

use unicode_normalization::UnicodeNormalization as _;

use super::{Limits, TreeError};

/// The path as text, without the slash at its end, if it may be in a package.
pub(super) fn check<'path>(path: &'path [u8], limits: &Limits) -> Result<&'path str, TreeError> {
    let refuse = |reason| TreeError::Path { path: escape(&String::from_utf8_lossy(path)), reason };
    if path.len() > limits.path {
        return Err(TreeError::Limit { what: "the length of a path", limit: limits.path as u64 });
    }
    let path = std::str::from_utf8(path).map_err(|_| refuse("it is not UTF-8"))?;
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.starts_with('/') {
        return Err(refuse("it is an absolute path"));
    }
    let is_odd = |character: char| character == '\\' || character.is_control();
    // Nearly all paths are ASCII, which needs no decoding.
    let is_ascii = path.is_ascii();
    if is_ascii && path.bytes().any(|byte| is_odd(byte.into()))
        || !is_ascii && path.chars().any(is_odd)
    {
        return Err(refuse("it holds a backslash or a control character"));
    }
    let mut depth = 0;
    for segment in segments(path) {
        depth += 1;
        match segment {
            "" | "." => return Err(refuse("it has an empty or `.` segment")),
            ".." => return Err(refuse("it leaves the package")),
            _ if segment.len() > 255 => {
                return Err(refuse("a segment is longer than 255 bytes"));
            }
            _ if is_drive(segment) => return Err(refuse("it names a drive")),
            _ if is_reserved(segment) => {
                return Err(refuse("`.git` and `.mu` folders may not be in a package"));
            }
            _ => {}
        }
    }
    if depth > limits.depth {
        return Err(TreeError::Limit { what: "the depth of a path", limit: limits.depth as u64 });
    }
    Ok(path)
}

/// The parts of a path between its slashes. They are short, so that looking at each byte is the quickest.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.bytes().position(|byte| byte == b'/');
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// The folder that the file or folder at `path` is in, if that is not the tree itself.
pub(super) fn parent(path: &str) -> Option<&str> {
    path.bytes().rposition(|byte| byte == b'/').map(|end| &path[..end])
}

/// The target of the link at `path`, if it is inside the package.
///
/// `..` is accepted at its beginning only: further inside, another link could change what it means.
pub(super) fn check_target<'target>(
    path: &str,
    target: &'target [u8],
    limits: &Limits,
) -> Result<&'target str, TreeError> {
    let refuse = |reason| TreeError::Link {
        path: escape(path),
        target: escape(&String::from_utf8_lossy(target)),
        reason,
    };
    let target = std::str::from_utf8(target).map_err(|_| refuse("its target is not UTF-8"))?;
    if target.is_empty() || target.len() > limits.path {
        return Err(refuse("its target is empty or too long"));
    }
    if target.starts_with('/') || target.contains('\\') || target.chars().any(char::is_control) {
        return Err(refuse("its target is not a relative path"));
    }
    let depth = path.matches('/').count();
    let mut climbed = 0;
    let mut descending = false;
    for segment in target.split('/') {
        match segment {
            ".." if descending => {
                return Err(refuse("`..` may stand only at the beginning of its target"));
            }
            ".." => climbed += 1,
            "" | "." => {}
            _ => {
                descending = true;
                if is_reserved(segment) {
                    return Err(refuse("its target is in a reserved folder"));
                }
            }
        }
    }
    if climbed > depth {
        return Err(refuse("its target is outside the package"));
    }
    Ok(target)
}

/// The form in which case-insensitive, normalising file systems compare names.
pub(super) fn fold(path: &str) -> String {
    if path.is_ascii() {
        path.to_ascii_lowercase()
    } else {
        // Upper, then lower: maps `ß`, final sigma and their like to one form.
        path.nfc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
    }
}

/// Whether a segment is, on some file system, the folder `.git` or `.mu`.
///
/// Git's own list is followed: HFS+ ignores some code points, NTFS has short names and ignores
/// trailing dots and spaces and what follows a colon.
fn is_reserved(segment: &str) -> bool {
    // Nearly all segments are ASCII, and none of those is reserved that begins otherwise.
    if segment.is_ascii() && !segment.starts_with(['.', 'g', 'G']) {
        return false;
    }
    let visible: String = segment.chars().filter(|character| !is_ignorable(*character)).collect();
    let folded = fold(&visible);
    let stem = folded.split(':').next().unwrap_or_default();
    let stem = stem.trim_end_matches(['.', ' ']);
    matches!(stem, ".git" | ".mu" | "git~1")
}

/// `C:` and its like, which are absolute on Windows.
fn is_drive(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    bytes.len() >= 2 && bytes[1] == b':' && bytes[0].is_ascii_alphabetic()
}

/// Code points that HFS+ leaves out when it compares names.
fn is_ignorable(character: char) -> bool {
    matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Hostile text, so that a terminal shows it and does not obey it.
pub(super) fn escape(text: &str) -> String {
    text.chars()
        .flat_map(|character| {
            if character.is_control() || is_ignorable(character) {
                character.escape_unicode().collect::<Vec<_>>()
            } else {
                vec![character]
            }
        })
        .take(200)
        .collect()
}
