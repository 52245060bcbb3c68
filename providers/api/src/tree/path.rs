//! Which paths may be in a package, and which paths are the same on some file system. Of paths that others wrote, for places
//! below a folder, only a check makes an [`InnerPath`], and [`Folder`](super::Folder) opens it without following links.
//!
//! Nothing here uses a disk.

use std::fmt;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::Limits;
use crate::TreeError;

/// The path as text, without a slash at its end, if it may be in a package.
///
/// A name that one system cannot store is refused on all systems, so that a lock works everywhere. Names of
/// devices are the exception: many repositories have a folder `aux` or a file `aux.c`, and these are a
/// problem only on Windows.
pub(super) fn check<'path>(path: &'path [u8], limits: &Limits) -> Result<&'path str, TreeError> {
    let refuse = |reason| TreeError::Path { path: escape(&String::from_utf8_lossy(path)), reason };
    check_length(path, limits)?;
    let path = std::str::from_utf8(path).map_err(|_| refuse("it is not UTF-8"))?;
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.starts_with('/') {
        return Err(refuse("it is an absolute path"));
    }
    // Nearly all paths are ASCII, which needs no decoding.
    let is_odd_byte = |byte: u8| ODD.get(usize::from(byte)).is_some_and(|is_odd| *is_odd);
    if path.bytes().any(is_odd_byte) || !path.is_ascii() && path.chars().any(is_invisible) {
        return Err(refuse(why_odd(path)));
    }
    let mut depth = 0;
    for segment in segments(path) {
        depth += 1;
        match segment {
            "" | "." => return Err(refuse("it has an empty or `.` segment")),
            ".." => return Err(refuse("it points out of the package")),
            _ if segment.len() > 255 => {
                return Err(refuse("a segment is longer than 255 bytes"));
            }
            _ if is_reserved(segment) => {
                return Err(refuse("a package may not contain `.git` or `.mu` folders"));
            }
            _ if matches!(segment.as_bytes(), [.., b'.' | b' ']) => {
                return Err(refuse("Windows drops the dot or space at the end of a name"));
            }
            _ if cfg!(windows) && is_device(segment) => {
                return Err(refuse("it is the name of a device on Windows"));
            }
            _ => {}
        }
    }
    if depth > limits.depth {
        return Err(too_much("depth", limits.depth, path.as_bytes()));
    }
    Ok(path)
}

/// How many bytes of a path over a limit are named.
const NAMED: usize = 100;

/// The error about a path that has too much of something.
fn too_much(what: &'static str, limit: usize, path: &[u8]) -> TreeError {
    let start = path.get(..NAMED).unwrap_or(path);
    let start = escape(&String::from_utf8_lossy(start));
    TreeError::PathLimit { what, start, limit: limit as u64 }
}

/// Checks how long a path is, in bytes.
pub(super) fn check_length(path: &[u8], limits: &Limits) -> Result<(), TreeError> {
    if path.len() > limits.path { Err(too_much("length", limits.path, path)) } else { Ok(()) }
}

/// ASCII characters that no path may have: those that control a terminal, and those with a meaning on
/// Windows.
#[expect(clippy::indexing_slicing, reason = "it is computed while the program is built")]
const ODD: [bool; 128] = {
    let mut odd = [false; 128];
    let mut byte = 0;
    while byte < 128 {
        odd[byte] = (byte as u8).is_ascii_control()
            || matches!(byte as u8, b'\\' | b'<' | b'>' | b':' | b'"' | b'|' | b'?' | b'*');
        byte += 1;
    }
    odd
};

/// Why a path with an odd character is refused.
fn why_odd(path: &str) -> &'static str {
    if path.contains('\\') || path.contains(char::is_control) {
        return "it contains a backslash or a control character";
    }
    if path.contains(is_invisible) {
        return "it contains a character that reverses text or breaks its line, so that it looks like another path";
    }
    if path.contains(':') {
        return "it contains a colon, which Windows does not allow in names";
    }
    "Windows does not allow names with one of `<>\"|?*`"
}

/// Beyond ASCII: control characters, line breaks, and characters that override the direction of text, but not
/// the marks that languages and emoji need inside words.
fn is_invisible(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The parts of a path between its slashes. They are short, so looking at each byte is fastest.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.bytes().position(|byte| byte == b'/');
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// The folder that contains the file or folder at `path`, unless that is the tree itself.
pub(super) fn parent(path: &str) -> Option<&str> {
    path.bytes().rposition(|byte| byte == b'/').map(|end| &path[..end])
}

/// The target of the link at `path`, if it is inside the package.
///
/// `..` is accepted only at the beginning: later in the path, another link could change its meaning.
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
    let is_relative = !target.starts_with('/') && !target.split('/').any(is_drive);
    if !is_relative || target.contains('\\') || target.contains(is_invisible) {
        return Err(refuse("its target is not a relative path"));
    }
    // Only at its beginning may a target climb, and not above the package: behind a folder, `..` would lead out of whatever that
    // folder is a link to, which nobody can tell from the text.
    let depth = path.matches('/').count();
    let mut climbed = 0;
    let mut descending = false;
    for segment in target.split('/') {
        match segment {
            ".." if descending => {
                return Err(refuse("`..` is allowed only at the beginning of its target"));
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
        // First to upper case, then to lower case: this maps `ß`, final sigma and similar letters to one
        // form.
        let visible = path.chars().filter(|character| !is_ignorable(*character));
        visible.nfc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
    }
}

/// Whether some file system treats a segment as the folder `.git` or `.mu`.
///
/// This follows Git's own list: HFS+ ignores some code points; NTFS has short names, and ignores trailing
/// dots and spaces and what follows a colon.
fn is_reserved(segment: &str) -> bool {
    // Nearly all segments are ASCII. An ASCII segment is not reserved unless it begins with a dot or is a
    // short name.
    if segment.is_ascii() && !segment.starts_with('.') && !segment.bytes().any(|byte| byte == b'~')
    {
        return false;
    }
    let folded = fold(segment);
    let stem = folded.split(':').next().unwrap_or_default();
    let stem = stem.trim_end_matches(['.', ' ']);
    let short = stem.strip_prefix("git~").or_else(|| stem.strip_prefix("mu~"));
    let is_short = short.is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']));
    is_short || matches!(stem, ".git" | ".mu")
}

/// Whether Windows treats a segment as a device, whatever follows a dot.
fn is_device(segment: &str) -> bool {
    let stem = segment.split('.').next().unwrap_or_default().trim_end_matches(' ');
    let stem = stem.to_ascii_lowercase();
    let numbered = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    let is_port = |number: &str| {
        matches!(number, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
    };
    numbered.is_some_and(is_port)
        || matches!(&*stem, "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
}

/// `C:` and its like, which are absolute on Windows.
fn is_drive(segment: &str) -> bool {
    matches!(segment.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// Code points that HFS+ leaves out when it compares names.
fn is_ignorable(character: char) -> bool {
    matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// The path of an entry, as messages show it: escaped, and not longer than they can be.
pub fn shown_path(path: &[u8]) -> String {
    escape(&String::from_utf8_lossy(path))
}

/// Escapes hostile text, so that a terminal shows it and does not interpret it.
pub(super) fn escape(text: &str) -> String {
    text.chars()
        .flat_map(|character| {
            if is_invisible(character) || is_ignorable(character) || character == '\u{61c}' {
                character.escape_unicode().collect::<Vec<_>>()
            } else {
                vec![character]
            }
        })
        .take(200)
        .collect()
}

/// A path below some folder, with slashes: it is relative, has no `..`, no empty part and no control character, and nothing that one
/// system takes for another path. No part of it is `.git` or `.mu`, unless mu itself put that there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct InnerPath(String);

impl InnerPath {
    /// Checks a path that somebody wrote.
    ///
    /// # Errors
    ///
    /// When a package could not have a file with this path.
    pub fn parse(text: &str) -> Result<Self, TreeError> {
        // A slash at the end says the same.
        let checked = check(text.as_bytes(), &Limits::default())?;
        Ok(Self(checked.to_owned()))
    }

    /// Checks the name of one file or folder.
    ///
    /// # Errors
    ///
    /// When a package could not have a file with this name, or it is a path of several parts.
    pub fn name(text: &str) -> Result<Self, TreeError> {
        let name = Self::parse(text)?;
        if text.contains('/') {
            let reason = "it is a path, and not a name";
            return Err(TreeError::Path { path: escape(text), reason });
        }
        Ok(name)
    }

    /// A path of mu's own, which nobody else has written: it is in the program's text.
    pub const fn own(text: &'static str) -> OwnPath {
        OwnPath(text)
    }

    /// The path of something in the folder with this path.
    pub fn join(&self, inside: &Self) -> Self {
        Self(format!("{}/{}", self.0, inside.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of what it leads to.
    pub fn leaf(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The folder around it; `None` for what is directly in the folder that the path is for.
    pub fn parent(&self) -> Option<Self> {
        parent(&self.0).map(|parent| Self(parent.to_owned()))
    }

    /// The path of what is called `name` beside it.
    ///
    /// # Errors
    ///
    /// As [`InnerPath::name`].
    pub fn beside(&self, name: &str) -> Result<Self, TreeError> {
        let name = Self::name(name)?;
        Ok(self.parent().map_or_else(|| name.clone(), |parent| parent.join(&name)))
    }

    /// Whether a package may have a link at this path with this target: it leads to something inside.
    pub fn may_lead_to(&self, target: &str) -> bool {
        check_target(&self.0, target.as_bytes(), &Limits::default()).is_ok()
    }

    /// Whether it is the other path, or leads to something below that.
    pub fn is_in(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(&other.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// A path that is written in mu's own text, such as `.mu/edit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnPath(&'static str);

impl OwnPath {
    /// The path as text.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// The path of something in the folder with this path.
    pub fn join(self, inside: &InnerPath) -> InnerPath {
        InnerPath(format!("{}/{}", self.0, inside.0))
    }
}

impl From<OwnPath> for InnerPath {
    fn from(path: OwnPath) -> Self {
        Self(path.0.to_owned())
    }
}

impl fmt::Display for InnerPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl AsRef<Path> for InnerPath {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl PartialEq<str> for InnerPath {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl<'de> Deserialize<'de> for InnerPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_system_may_mistake_is_refused_with_its_reason() {
        for (path, why) in [
            ("MU~1/x", "`.mu`"),
            ("git~2", "`.git`"),
            ("Mu~9.", "`.mu`"),
            (".m\u{200d}u/x", "`.mu`"),
            ("a.", "dot or space"),
            ("a /b", "dot or space"),
            ("...", "dot or space"),
            ("a?", "Windows does not allow"),
            ("a*b", "Windows does not allow"),
            ("a/2026-01-01T10:00", "Windows does not allow"),
            ("a|\"<>", "Windows does not allow"),
            ("C:/x", "a colon"),
            ("a/c:", "a colon"),
            ("a\u{202e}gpj.exe", "reverses text"),
            ("a\u{2066}b", "reverses text"),
            ("a\u{2028}b", "breaks its line"),
            ("a\u{85}b", "control character"),
        ] {
            let error = check(path.as_bytes(), &Limits::default()).expect_err(path);
            let error = error.to_string();
            assert!(error.contains(why), "{error}");
            assert!(!error.contains(is_invisible), "{error}");
        }
        for target in ["C:/x", "c:", "../C:/x", "a\u{202e}b"] {
            check_target("a/b", target.as_bytes(), &Limits::default()).expect_err(target);
        }
    }

    #[test]
    fn names_of_the_real_world_are_accepted() {
        for path in [
            "drivers/gpu/drm/nouveau/nvkm/subdev/i2c/aux.c",
            "con/nul.txt",
            ".gitignore",
            ".github/workflows/ci.yml",
            "git~",
            "mu~backup",
            "mutex.rs",
            "[...slug].tsx",
            "\u{1f468}\u{200d}\u{1f469}.png",
            "\u{645}\u{6cc}\u{200c}\u{62e}.md",
            "a b (1) #2 {x} $y 'z' `w` ~!@%^&=+,;.txt",
        ] {
            let checked = check(path.as_bytes(), &Limits::default());
            let is_device = cfg!(windows) && path.split('/').any(is_device);
            assert_eq!(checked.is_ok(), !is_device, "{path}");
        }
    }

    #[test]
    fn devices_are_known_by_their_stem() {
        for name in ["con", "AUX", "aux.c", "nul.tar.gz", "COM1", "lpt9.log", "com\u{b9}", "Prn .x"]
        {
            assert!(is_device(name), "{name}");
        }
        for name in ["console", "com", "com0", "com10", "auxiliary.c", "a.con", "null"] {
            assert!(!is_device(name), "{name}");
        }
    }

    #[test]
    fn what_hfs_ignores_tells_no_names_apart() {
        assert_eq!(fold("a"), fold("a\u{200c}"));
        assert_eq!(fold("E\u{301}\u{feff}"), fold("\u{e9}"));
        assert_eq!(fold("a\u{200d}/b"), "a/b");
    }

    #[test]
    fn only_paths_that_stay_below_a_folder_are_made() {
        for text in ["a", "a/b", "a b/c+d@1.0.0", "charts/x-1.0.0.tgz", ".github/x", "a/", "ä"] {
            let path = InnerPath::parse(text).expect(text);
            assert_eq!(path.as_str(), text.trim_end_matches('/'));
        }
        for text in [
            "",
            "/",
            "/a",
            ".",
            "..",
            "./a",
            "a/.",
            "a/..",
            "../a",
            "a/../b",
            "a//b",
            "a\\b",
            "\\a",
            "C:/a",
            "a\0b",
            "a\nb",
            "a\u{1b}[31m",
            ".git",
            "a/.git/config",
            ".mu",
            ".mu/packs",
            ".GIT/x",
            "a\u{202e}b",
        ] {
            assert!(InnerPath::parse(text).is_err(), "{text:?}");
        }
        assert!(InnerPath::name("a").is_ok());
        for text in ["a/b", "a/", "/a", "", ".."] {
            assert!(InnerPath::name(text).is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<InnerPath>("\"../a\"").is_err());
    }

    #[test]
    fn paths_are_put_together_and_taken_apart() {
        let path = InnerPath::parse("a/b/c").expect("is one");
        assert_eq!(path.parent().expect("has one").as_str(), "a/b");
        assert_eq!((path.leaf(), InnerPath::parse("a").expect("is one").parent()), ("c", None));
        assert_eq!(path.beside(".mu-c").expect("is a name").as_str(), "a/b/.mu-c");
        assert!(path.beside("..").is_err() && path.beside("x/y").is_err());
        let edits = InnerPath::own(".mu/edit");
        assert_eq!(edits.join(&path).as_str(), ".mu/edit/a/b/c");
        assert!(path.is_in(&InnerPath::parse("a/b").expect("is one")) && path.is_in(&path));
        assert!(!path.is_in(&InnerPath::parse("a/b/c/d").expect("is one")));
        assert!(
            !path.is_in(&InnerPath::parse("a/b/").expect("is one").beside("bb").expect("is one"))
        );
    }
}
