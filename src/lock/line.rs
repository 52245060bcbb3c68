//! One line of a lock, as mu writes it: a key with a text or a list of texts; and how each type of an entry's values becomes
//! such a text, and is read of it.
//!
//! Any other form is not read here, even if it is the same YAML. Which values there are is declared in `entry.rs`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use mu_provider::{ArchiveDigest, Commit, Digest, SafeUrl};
use rustc_hash::FxHashMap;

use crate::env::absolute;
use crate::lock::entry::{Requested, Source};
use crate::manifest::Versioning;
use crate::reference::{Base, PackageId};

/// Adds a line to the text of a lock.
pub(super) fn print(text: &mut String, indent: &str, key: &str, value: &str) {
    for part in [indent, key, ": ", value, "\n"] {
        text.push_str(part);
    }
}

/// The items of a list on one line; `None` if there are none.
pub(super) fn print_list(items: &[String]) -> Option<String> {
    let items: Vec<String> = items.iter().map(|item| print_text(item)).collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
}

/// A YAML scalar: plain if every YAML reader reads it as exactly this string, else double-quoted.
pub(super) fn print_text(value: &str) -> String {
    let safe =
        |character: char| character.is_ascii_alphanumeric() || "/.+-_:#^~@".contains(character);
    // A leading letter and a slash or two digits' dots keep it from being a number, date or word.
    let plain = value.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '.')
        && value.chars().all(safe)
        && !value.ends_with(':')
        && (value.contains('/') || value.starts_with("workspace+") || is_version_or_digest(value));
    if plain {
        return value.to_owned();
    }
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            _ if is_odd(character) => {
                quoted.push_str(&format!("\\U{:08X}", u32::from(character)));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character breaks a line for some reader, or is not text.
pub(super) fn is_odd(character: char) -> bool {
    let is_odd =
        matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    is_odd || character.is_control()
}

fn is_version_or_digest(value: &str) -> bool {
    value.starts_with("h1:")
        || value.starts_with("sha256:")
        || matches!(value, "highest" | "minimal" | "composite")
        || (value.matches('.').count() >= 2
            && value.starts_with(|first: char| first.is_ascii_digit()))
        || (value.len() == 40 && value.contains(|c: char| c.is_ascii_lowercase() && c != 'e'))
}

/// The key of a line without its indent, and its value.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    // A key is a few bytes, which a loop passes faster than a search for a character begins.
    let (key, value) = line.split_at_checked(line.bytes().position(|byte| byte == b':')?)?;
    let value = value.strip_prefix(':')?;
    let value = if value.is_empty() { value } else { value.strip_prefix(' ')? };
    let is_key = key.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_key && !value.starts_with(' ')).then_some((key, value))
}

/// The items of a list on one line, each in one of the two forms of [`read_text`].
pub(super) fn read_list(text: &str) -> Option<Vec<String>> {
    let mut rest = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut items = Vec::new();
    while !rest.is_empty() {
        let end = match rest.strip_prefix('"') {
            Some(quoted) => quoted.find('"')? + 2,
            None => rest.find(", ").unwrap_or(rest.len()),
        };
        let (item, others) = rest.split_at_checked(end)?;
        items.push(read_text(item)?);
        rest = others;
        if !rest.is_empty() {
            rest = rest.strip_prefix(", ").filter(|rest| !rest.is_empty())?;
        }
    }
    Some(items)
}

/// The value of a scalar in one of the two forms that mu writes without surprises.
pub(super) fn read_text(text: &str) -> Option<String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let inner = quoted.strip_suffix('"')?;
        let is_special = |character| matches!(character, '\\' | '"') || is_odd(character);
        return (!inner.contains(is_special)).then(|| inner.to_owned());
    }
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '.')
        && !text.bytes().any(is_special)
        // It would be a key, or nothing.
        && !text.ends_with(':')
        && !text.eq_ignore_ascii_case("null");
    is_plain.then(|| text.to_owned())
}

/// Whether a value without quotes must not contain a byte. As a table, because every byte of every lock is looked up.
#[expect(clippy::indexing_slicing, reason = "the table has a place for every byte")]
const SPECIAL: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < 256 {
        let letter = byte as u8;
        table[byte] = !letter.is_ascii_graphic()
            || matches!(letter, b'"' | b'\'' | b'[' | b']' | b'{' | b'}' | b',' | b'&' | b'*')
            || matches!(letter, b'!' | b'|' | b'>' | b'%' | b'`');
        byte += 1;
    }
    table
};

#[expect(clippy::indexing_slicing, reason = "the table has a place for every byte")]
fn is_special(byte: u8) -> bool {
    SPECIAL[usize::from(byte)]
}

/// The ids in a lock, each read once: most packages are named again by those that depend on them.
pub(super) struct Ids<'lock> {
    /// Where the lock is.
    folder: &'lock Path,
    known: FxHashMap<String, PackageId>,
}

impl<'lock> Ids<'lock> {
    pub(super) fn new(folder: &'lock Path) -> Self {
        Self { folder, known: FxHashMap::default() }
    }

    /// The id that a text is; the error is the text.
    pub(super) fn read(&mut self, text: String) -> Result<PackageId, String> {
        if let Some(known) = self.known.get(&text) {
            return Ok(known.clone());
        }
        match read_id(self.folder, &text) {
            Some(id) => Ok(self.known.entry(text).or_insert(id).clone()),
            None => Err(text),
        }
    }
}

/// The id of a package in the lock in `folder`: a folder is named by its source.
pub(super) fn read_id(folder: &Path, text: &str) -> Option<PackageId> {
    match Source::parse(text).filter(Source::is_outside_folder) {
        Some(source) => Some(PackageId::local(&absolute(folder, Path::new(&source.place)))),
        None => PackageId::parse(text).ok(),
    }
}

/// The names of packages in the file: their id, or, for a folder, their source, which does not depend on
/// where the workspace is on this machine. A folder that is used instead of a package keeps the package's id.
pub(super) struct Names<'lock>(HashMap<&'lock str, String>);

impl<'lock> Names<'lock> {
    /// Of these packages and their sources.
    pub(super) fn new(packages: impl Iterator<Item = (&'lock PackageId, &'lock Source)>) -> Self {
        let is_folder = |(id, source): &(&PackageId, &Source)| {
            source.is_outside_folder() && id.base() == Base::localhost()
        };
        let folders = packages.filter(is_folder);
        Self(folders.map(|(id, source)| (id.as_str(), source.to_string())).collect())
    }

    pub(super) fn name(&self, text: &str) -> String {
        self.0.get(text).cloned().unwrap_or_else(|| text.to_owned())
    }
}

/// Whether a place is a URL with a possible secret, which no lock may contain: a lock is shown and shared.
fn holds_secret(place: &str) -> bool {
    place.contains('@') && SafeUrl::parse(place).is_ok_and(|url| url.may_hold_secret())
}

/// The type of a value in a lock.
pub(super) trait Locked: Sized {
    /// The type in which the value is written.
    type Wire;

    /// The value that was written; the error is the text that is wrong.
    fn read(written: Self::Wire, ids: &mut Ids<'_>) -> Result<Self, String>;

    /// The value as it is written.
    fn written(&self, names: &Names<'_>) -> Self::Wire;
}

impl Locked for String {
    type Wire = Self;

    fn read(written: Self, _ids: &mut Ids<'_>) -> Result<Self, String> {
        Ok(written)
    }

    fn written(&self, _names: &Names<'_>) -> Self {
        self.clone()
    }
}

impl Locked for PackageId {
    type Wire = String;

    fn read(written: String, ids: &mut Ids<'_>) -> Result<Self, String> {
        ids.read(written)
    }

    fn written(&self, names: &Names<'_>) -> String {
        names.name(self.as_str())
    }
}

impl Locked for Source {
    type Wire = String;

    fn read(written: String, _ids: &mut Ids<'_>) -> Result<Self, String> {
        Self::parse(&written).filter(|source| !holds_secret(&source.place)).ok_or(written)
    }

    fn written(&self, _names: &Names<'_>) -> String {
        self.to_string()
    }
}

impl Locked for Requested {
    type Wire = String;

    fn read(written: String, ids: &mut Ids<'_>) -> Result<Self, String> {
        let Some(mut requested) = Self::parse(&written) else { return Err(written) };
        if is_folder(&requested.by) {
            requested.by = Arc::from(&read_id(ids.folder, &requested.by).ok_or(written)?);
        }
        Ok(requested)
    }

    fn written(&self, names: &Names<'_>) -> String {
        Self { by: names.name(&self.by).into(), spec: Arc::clone(&self.spec) }.to_string()
    }
}

macro_rules! digests {
    ($($kind:ty)*) => {
        $(impl Locked for $kind {
            type Wire = String;

            fn read(written: String, _ids: &mut Ids<'_>) -> Result<Self, String> {
                written.parse().map_err(|_| written)
            }

            fn written(&self, _names: &Names<'_>) -> String {
                self.to_string()
            }
        })*
    };
}

digests! { Digest ArchiveDigest }

impl<T: Locked<Wire = String>> Locked for Option<T> {
    type Wire = Option<String>;

    fn read(written: Option<String>, ids: &mut Ids<'_>) -> Result<Self, String> {
        written.map(|text| T::read(text, ids)).transpose()
    }

    fn written(&self, names: &Names<'_>) -> Option<String> {
        self.as_ref().map(|value| value.written(names))
    }
}

impl<T: Locked<Wire = String>> Locked for Vec<T> {
    type Wire = Vec<String>;

    fn read(written: Vec<String>, ids: &mut Ids<'_>) -> Result<Self, String> {
        written.into_iter().map(|text| T::read(text, ids)).collect()
    }

    fn written(&self, names: &Names<'_>) -> Vec<String> {
        self.iter().map(|value| value.written(names)).collect()
    }
}

/// Read where it is written, so that an error has its place.
impl Locked for Option<Commit> {
    type Wire = Self;

    fn read(written: Self, _ids: &mut Ids<'_>) -> Result<Self, String> {
        Ok(written)
    }

    fn written(&self, _names: &Names<'_>) -> Self {
        self.clone()
    }
}

/// Whether a version is composite.
impl Locked for bool {
    type Wire = Option<String>;

    fn read(written: Option<String>, _ids: &mut Ids<'_>) -> Result<Self, String> {
        Ok(written.as_deref() == Some(Versioning::Composite.as_str()))
    }

    fn written(&self, _names: &Names<'_>) -> Option<String> {
        self.then(|| Versioning::Composite.as_str().to_owned())
    }
}

/// `FACT RANGE`.
impl Locked for BTreeMap<String, String> {
    type Wire = Vec<String>;

    fn read(written: Vec<String>, _ids: &mut Ids<'_>) -> Result<Self, String> {
        let split = |text: String| match text.split_once(' ') {
            Some((fact, wanted)) => Ok((fact.to_owned(), wanted.to_owned())),
            None => Err(text),
        };
        written.into_iter().map(split).collect()
    }

    fn written(&self, _names: &Names<'_>) -> Vec<String> {
        self.iter().map(|(fact, wanted)| format!("{fact} {wanted}")).collect()
    }
}

/// What a package conflicts with, in the lock in `folder`: a package, which may be a folder, or a capability.
pub(super) fn read_conflict(folder: &Path, text: &mut String) {
    if let Some(id) = is_folder(text).then(|| read_id(folder, text)).flatten() {
        *text = id.to_string();
    }
}

/// Whether a lock names a folder outside the workspace so.
fn is_folder(text: &str) -> bool {
    Source::parse(text).is_some_and(|source| source.is_outside_folder())
}
