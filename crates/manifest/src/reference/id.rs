//! The identity of a package: base and name, without protocol and version; and packages that are known under two ids, and which
//! of the two counts. Aliases are applied where a reference becomes an id.
//!
//! A [`Name`] is slash-separated segments that are safe as folders on any file system.

use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::error::{Fault, ReferenceError};
use super::protocol::{self, Protocol};
use super::{Base, Reference};

/// Base and name of a package, `hub.mu.com/aws/ec2`. Cheap to clone.
///
/// The base of a text ends at its first slash, so the text alone identifies the package.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema)]
#[schemars(inline)]
pub struct PackageId(Arc<str>);

impl Serialize for PackageId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Whether a name means something else without a base: one of one segment means a package's own namespace first,
/// and the first segment of another may look like a host.
pub fn needs_base(name: &str) -> bool {
    name.bytes().find(|byte| matches!(byte, b'/' | b'.')) != Some(b'/')
}

impl PackageId {
    /// The id of the package that is called `name` at `base`.
    pub fn new(base: &Base, name: &Name) -> Self {
        Self([base.as_str(), name.as_str()].concat().into())
    }

    /// Reads an id as it prints: a base, always, and a name.
    ///
    /// # Errors
    ///
    /// When the text is not a base and name.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Self::from_text(text).map_err(|fault| ReferenceError::new("package id", text, fault))
    }

    /// The id of the package in a folder of this machine, made from the folder's absolute path.
    pub fn local(folder: &Path) -> Self {
        let mut path = String::new();
        for component in folder.components() {
            if let Component::Normal(segment) = component {
                path.push('/');
                path.push_str(&segment.to_string_lossy());
            }
        }
        Self::new(&Base::localhost(), &Name::from_folder(&path))
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The base.
    pub fn base(&self) -> Base {
        protocol::base_from_trusted(&self.0[..self.name_start()])
    }

    /// The text of the base, which ends in a slash.
    pub fn base_str(&self) -> &str {
        &self.0[..self.name_start()]
    }

    /// The name.
    pub fn name(&self) -> Name {
        name_from_trusted(self.name_str())
    }

    /// The text of the name.
    pub fn name_str(&self) -> &str {
        &self.0[self.name_start()..]
    }

    /// The last part of the name.
    pub fn leaf(&self) -> &str {
        let slash = self.0.bytes().rposition(|byte| byte == b'/');
        &self.0[slash.map_or(0, |slash| slash + 1)..]
    }

    /// The shortest name that means this package wherever `base` is the default: without the base, unless the
    /// rest [needs one](needs_base).
    pub fn short(&self, base: &Base) -> &str {
        let name = self.0.strip_prefix(base.as_str());
        name.filter(|name| !needs_base(name)).unwrap_or(self.as_str())
    }

    fn name_start(&self) -> usize {
        let slash = self.0.bytes().position(|byte| byte == b'/');
        slash.expect("an id is made of a base, which ends in a slash, and a name") + 1
    }

    fn from_text(text: &str) -> Result<Self, Fault> {
        let Some((authority, path)) = text.split_once('/') else {
            return Err(Fault::new(text.len(), "`/` and a name after the base"));
        };
        let host = protocol::normal_host(authority, &Protocol::Https)?;
        let name = without_git_marks(path).map_err(|fault| fault.shifted(authority.len() + 1))?;
        // Locks and caches are full of ids as they print.
        if host == authority && name == path {
            return Ok(Self(text.into()));
        }
        Ok(Self([&*host, "/", &*name].concat().into()))
    }
}

impl From<PackageId> for String {
    fn from(id: PackageId) -> Self {
        id.0.as_ref().to_owned()
    }
}

/// The whole id, shared with it.
impl From<&PackageId> for Arc<str> {
    fn from(id: &PackageId) -> Self {
        Self::clone(&id.0)
    }
}

impl fmt::Display for PackageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// Prefixes of ids that mean others; by default none. Cheap to clone; all clones know together which of them were of use.
#[derive(Debug, Clone, Default)]
pub struct Aliases(Arc<[(Alias, AtomicBool)]>);

/// A prefix that means another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The start of ids that do not count, such as `charts.bitnami.com/bitnami/`.
    pub from: String,
    /// The start that they have instead, such as `registry-1.docker.io/bitnamicharts/`.
    pub to: String,
    /// How packages are reached there, such as `oci`, where the ids do not say it.
    pub protocol: Option<String>,
}

impl Aliases {
    /// Aliases, of which the longest prefix counts. Each prefix ends with a slash.
    pub fn new(mut aliases: Vec<Alias>) -> Self {
        aliases.sort_by(|left, right| {
            right.from.len().cmp(&left.from.len()).then_with(|| left.from.cmp(&right.from))
        });
        Self(aliases.into_iter().map(|alias| (alias, AtomicBool::new(false))).collect())
    }

    /// Whether there are no aliases.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The id that counts: another one, if an alias covers `id`.
    pub fn counted(&self, id: PackageId) -> PackageId {
        let Some((alias, rest)) = self.of(id.as_str()) else { return id };
        if let Some((_, is_used)) = self.0.iter().find(|(one, _)| one == alias) {
            is_used.store(true, Ordering::Relaxed);
        }
        PackageId::parse([&alias.to, rest].concat().trim_end_matches('/')).unwrap_or(id)
    }

    /// The reference that leads to what `id` means: without a protocol, unless the alias has one.
    pub fn reference(&self, id: &PackageId) -> Option<Reference> {
        let (alias, rest) = self.of(id.as_str())?;
        let protocol = alias.protocol.as_deref().map(|protocol| format!("{protocol}://"));
        let text = [&protocol.unwrap_or_default(), &*alias.to, rest].concat();
        Reference::parse(text.trim_end_matches('/')).ok()
    }

    /// The other ids of a package, which do not count.
    pub fn others(&self, id: &PackageId) -> Vec<String> {
        let other = |(alias, _): &(Alias, AtomicBool)| {
            let rest = rest(&alias.to, id.as_str())?;
            Some([&alias.from, rest].concat().trim_end_matches('/').to_owned())
        };
        self.0.iter().filter_map(other).filter(|other| other != id.as_str()).collect()
    }

    /// Whether an alias says that a package is meant as it is.
    pub fn keeps(&self, id: &PackageId) -> bool {
        self.of(id.as_str()).is_some_and(|(alias, _)| alias.from == alias.to)
    }

    /// All of them; the longest prefix comes first.
    pub fn iter(&self) -> impl Iterator<Item = &Alias> {
        self.0.iter().map(|(alias, _)| alias)
    }

    /// The aliases by which no id was counted so far.
    pub fn unused(&self) -> impl Iterator<Item = &Alias> {
        let unused = self.0.iter().filter(|(_, is_used)| !is_used.load(Ordering::Relaxed));
        unused.map(|(alias, _)| alias)
    }

    fn of<'a>(&'a self, id: &'a str) -> Option<(&'a Alias, &'a str)> {
        // A base alone is no package, so it cannot stand for one.
        let fits = |alias: &Alias, rest: &str| {
            !rest.is_empty() || alias.to.trim_end_matches('/').contains('/')
        };
        let mut found =
            self.0.iter().filter_map(|(alias, _)| Some((alias, rest(&alias.from, id)?)));
        found.find(|(alias, rest)| fits(alias, rest))
    }
}

impl PartialEq for Aliases {
    fn eq(&self, other: &Self) -> bool {
        let own = self.0.iter().map(|(alias, _)| alias);
        own.eq(other.0.iter().map(|(alias, _)| alias))
    }
}

impl Eq for Aliases {}

/// What comes in an id after a prefix, which may also be the id of one package, with a slash.
fn rest<'a>(prefix: &str, id: &'a str) -> Option<&'a str> {
    match id.strip_prefix(prefix) {
        None if prefix.strip_suffix('/') == Some(id) => Some(""),
        rest => rest.filter(|rest| !rest.is_empty()),
    }
}

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
fn without_git_marks(path: &str) -> Result<Cow<'_, str>, Fault> {
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
fn name_from_trusted(text: &str) -> Name {
    Name(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_for_one_package_too() {
        let alias = |from: &str, to: &str| Alias {
            from: from.to_owned(),
            to: to.to_owned(),
            protocol: None,
        };
        let aliases =
            Aliases::new(vec![alias("a.co/old/lib/", "a.co/new/lib/"), alias("b.co/", "c.co/x/")]);
        let counted =
            |id: &str| aliases.counted(PackageId::parse(id).expect("is an id")).to_string();
        assert_eq!(counted("a.co/old/lib"), "a.co/new/lib");
        assert_eq!(counted("a.co/old/lib/part"), "a.co/new/lib/part");
        assert_eq!(counted("a.co/old/library"), "a.co/old/library");
        assert_eq!(counted("b.co/y"), "c.co/x/y");
        let new = PackageId::parse("a.co/new/lib").expect("is an id");
        assert_eq!(aliases.others(&new), ["a.co/old/lib"]);
        let unused: Vec<&str> = aliases.unused().map(|alias| &*alias.from).collect();
        assert_eq!(unused, [""; 0]);
        let old = PackageId::parse("a.co/old/lib").expect("is an id");
        let reference = aliases.reference(&old).expect("leads there");
        assert_eq!(reference.as_str(), "a.co/new/lib");
    }
}
