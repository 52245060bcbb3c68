//! Names of packages: slash-separated segments that are safe as folders on any file system.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::error::{Fault, ReferenceError};

const SEGMENT_START: &str = "a name that begins with a letter, a digit or `_`";
const SEGMENT_REST: &str = "a letter, a digit, `_`, `.`, `-`, `/`, `#` or the end";
const NAME_REST: &str = "a letter, a digit, `_`, `.`, `-`, `/` or the end";
/// Expected where other tools write `NAME@VERSION`.
const VERSION_MARK: &str = "`#` before a version";
const NO_SPACE: &str = "no space before `#` or at the end";
const SLASH: &str = "`/` between the parts of a name";
const ONE_NAME: &str = "one name: separate several names with spaces instead of commas";
const NO_HOME: &str =
    "a name, or a folder's whole path: only a shell knows `~`, and only outside of quotes";
const SEGMENT_LENGTH: &str = "a segment of at most 128 characters";
const MAX_SEGMENT: usize = 128;
/// The length of a byte that is written as `_7f`.
const ESCAPE: usize = 3;
const GIT_MARK: &str = ".git";
/// What the names of archives end with.
const ARCHIVES: [&str; 12] = [
    ".tgz", ".tar.gz", ".tar", ".zip", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst",
    ".tar.lz", ".7z",
];

/// The part of a reference after its base, `aws/ec2`, without `.git` marks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// Reads a name; `.git` marks are left out of it.
    ///
    /// # Errors
    ///
    /// When a segment has a character that names cannot have.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Self::from_path(text).map_err(|fault| {
            // The parts that can follow a name in a reference cannot follow it here.
            let fault = fault.expecting(SEGMENT_REST, NAME_REST);
            ReferenceError::new("package name", text, fault)
        })
    }

    /// Whether a text is a name.
    pub fn is_valid(text: &str) -> bool {
        check_segments(text).is_ok()
    }

    /// Whether it is called like an archive, also one that is compressed in a way which mu does not read, so that it is one unless something says what else it is.
    pub fn is_archive(&self) -> bool {
        let name = self.0.to_ascii_lowercase();
        ARCHIVES.iter().any(|end| name.ends_with(end))
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts between the slashes, first to last.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// All but the last segment, if there is more than one.
    pub fn namespace(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(namespace, _)| Self(namespace.into()))
    }

    /// The last segment.
    pub fn leaf(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, leaf)| leaf)
    }

    /// The rest after the segments of `prefix`, if this name begins with them and is longer.
    pub fn strip_prefix(&self, prefix: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&*prefix.0)?.strip_prefix('/')?;
        Some(Self(rest.into()))
    }

    /// This name with the segments of `other` after it.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        Self(format!("{self}/{other}").into())
    }

    /// What is at the relative path `folder`, seen from here; `None` above the first segment, or where no name could be.
    pub fn at_relative_path(&self, folder: &str) -> Option<Self> {
        let mut segments: Vec<&str> = self.segments().collect();
        for segment in folder.split('/') {
            match segment {
                "" | "." => {}
                ".." => drop(segments.pop()?),
                name => segments.push(name),
            }
        }
        Self::parse(&segments.join("/")).ok().filter(|_| !folder.starts_with('/'))
    }

    pub(super) fn from_path(path: &str) -> Result<Self, Fault> {
        Ok(Self(without_git_marks(path)?.into()))
    }

    /// A name for the path of a URL, which may have escapes (`%20`) and home folders (`~ada`). They are written as in the names of folders;
    /// `~` alone, the home folder of whoever connects, is left out.
    pub(super) fn from_url(path: &str) -> Result<Self, Fault> {
        if !path.contains(['%', '~']) {
            return Self::from_path(path);
        }
        let mut name = String::with_capacity(path.len());
        let mut start = 0;
        for segment in path.split('/') {
            let end = start + segment.len();
            let is_home = start == 0 && segment == "~" && end < path.len();
            if !is_home {
                if !name.is_empty() {
                    name.push('/');
                }
                push_escaped(&mut name, segment).map_err(|fault| fault.shifted(start))?;
            }
            start = end + 1;
        }
        // A fault is reported where the text has it, so only what cannot be seen there is left.
        check_segments(&name).map_err(|fault| Fault::new(path.len(), fault.expected()))?;
        Ok(Self(without_marks(&name).into()))
    }

    /// A name for a folder of this machine, whose path may hold anything. A character that names cannot have
    /// is written as `_` and two hexadecimal digits a byte, the rest of a segment that is too long follows
    /// `_/`, and `.` and `..` are left out.
    pub(super) fn from_folder(path: &str) -> Self {
        let mut name = String::with_capacity(path.len());
        for segment in path.split('/').filter(|segment| !matches!(*segment, "" | "." | "..")) {
            if !name.is_empty() {
                name.push('/');
            }
            push_segment(&mut name, segment);
        }
        if name.is_empty() {
            name.push('_');
        }
        Self(name.into())
    }
}

/// Appends a segment of a URL's path.
fn push_escaped(name: &mut String, segment: &str) -> Result<(), Fault> {
    let plain = |part: &str, at: usize| match part {
        "" => Ok(()),
        part => {
            // A letter in front makes what follows no beginning.
            let shifted = if at == 0 { part.to_owned() } else { format!("a{part}") };
            let back = usize::from(at > 0);
            check_segments(&shifted)
                .map_err(|fault| Fault::new(fault.at() - back + at, fault.expected()))
        }
    };
    let (mut at, mut rest) = (0, segment);
    while let Some(special) = rest.find(['%', '~']) {
        plain(&rest[..special], at)?;
        name.push_str(&rest[..special]);
        at += special;
        rest = &rest[special..];
        let byte = match rest.as_bytes() {
            [b'~', ..] => Some((b'~', 1)),
            [b'%', high, low, ..] => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16);
                let byte = digit(high).zip(digit(low)).map(|(high, low)| high * 16 + low);
                let byte = byte.and_then(|byte| u8::try_from(byte).ok());
                // What needs no escape has none, so that no `..` is hidden.
                let is_special =
                    |byte: &u8| !byte.is_ascii_control() && *byte != b'/' && !fits(*byte, false);
                byte.filter(is_special).map(|byte| (byte, 3))
            }
            _ => None,
        };
        let Some((byte, length)) = byte else {
            return Err(Fault::new(
                at,
                "two hexadecimal digits after `%`, of a character that names can have",
            ));
        };
        name.push_str(&format!("_{byte:02x}"));
        at += length;
        rest = &rest[length..];
    }
    plain(rest, at)?;
    name.push_str(rest);
    if segment.is_empty() { Err(Fault::new(0, SEGMENT_START)) } else { Ok(()) }
}

fn push_segment(name: &mut String, segment: &str) {
    let segment = match segment.trim_end_matches(GIT_MARK) {
        // A folder called `.git` has no name before the mark.
        "" => GIT_MARK,
        unmarked => unmarked,
    };
    let mut start = name.len();
    for byte in segment.bytes() {
        if name.len() - start + ESCAPE >= MAX_SEGMENT {
            name.push_str("_/");
            start = name.len();
        }
        if fits(byte, name.len() == start) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("_{byte:02x}"));
        }
    }
}

fn fits(byte: u8, is_first: bool) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || (!is_first && matches!(byte, b'.' | b'-'))
}

fn check_segments(path: &str) -> Result<(), Fault> {
    let mut start = 0;
    for (at, byte) in path.bytes().enumerate() {
        if at > start && byte == b'/' {
            start = at + 1;
        } else if !fits(byte, at == start) {
            let expected = match (at == start, byte) {
                (true, b'~') if at == 0 => NO_HOME,
                (true, _) => SEGMENT_START,
                (false, b'\\') => SLASH,
                (false, b',') => ONE_NAME,
                (false, b'@') => VERSION_MARK,
                (false, b':')
                    if start > 0 && path[at + 1..].starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    VERSION_MARK
                }
                (false, b' ') if path[at..].trim_start().is_empty() => NO_SPACE,
                (false, _) => SEGMENT_REST,
            };
            return Err(Fault::new(at, expected));
        } else if at - start == MAX_SEGMENT {
            return Err(Fault::new(at, SEGMENT_LENGTH));
        }
    }
    if start == path.len() {
        return Err(Fault::new(start, SEGMENT_START));
    }
    Ok(())
}

/// A name without `.git` marks.
pub(super) fn without_git_marks(path: &str) -> Result<Cow<'_, str>, Fault> {
    check_segments(path)?;
    Ok(without_marks(path))
}

fn without_marks(path: &str) -> Cow<'_, str> {
    // Most names have no point.
    if !path.contains('.') || !path.contains(GIT_MARK) {
        return Cow::Borrowed(path);
    }
    let segments: Vec<_> =
        path.split('/').map(|segment| segment.trim_end_matches(GIT_MARK)).collect();
    Cow::Owned(segments.join("/"))
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// A name whose text is known to be valid.
pub(super) fn name_from_trusted(text: &str) -> Name {
    Name(text.into())
}
