//! How answers and messages write what mu keeps in another form: names of packages, and small texts and values.
//!
//! [`PackageNaming`] has the names for people: without the default base, and a folder by its path. Answers and messages
//! contain whole ids, which files and `--json` keep. The base is removed when they are printed, so that a package
//! always has the same name. It stays if the rest would mean something else: before a name of one segment, which would
//! mean a package's own namespace first, before a name that looks as if it began with a host, and in URLs, folders and
//! prefixes. The id of a folder is its absolute path on this machine; it is shown as the path from the workspace, as
//! Mu.lock has it and as a person writes it.
//!
//! For people there are also counts and lists. For programs, there is the form of values in JSON answers where it
//! differs from serde's. Nothing is printed here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::reference::{Base, Name, PackageId, needs_base};
use crate::workspace::Workspace;

/// How packages are called here.
#[derive(Debug, Clone)]
pub struct PackageNaming {
    base: Base,
    /// What the ids of folders on this machine begin with.
    machine: Base,
    /// The id that the folder with Mu.lock would have.
    root: PackageId,
    /// The names of the workspace's own packages, as their manifests say them.
    own: BTreeMap<PackageId, String>,
}

impl PackageNaming {
    /// The names beside the lock in `folder`, with this default base.
    pub fn new(base: &Base, folder: &Path) -> Self {
        let (base, root) = (base.clone(), PackageId::local(folder));
        Self { base, machine: Base::localhost(), root, own: BTreeMap::new() }
    }

    /// The names in a workspace whose lock is in `folder`.
    pub(crate) fn in_workspace(workspace: &Workspace, folder: &Path) -> Self {
        let own = workspace.members.iter();
        let own = own.map(|member| (member.id.clone(), member.manifest.name.to_string()));
        Self { own: own.collect(), ..Self::new(&workspace.settings.base, folder) }
    }

    /// The name of a package where it stands for itself, as in a table: that of a package of the workspace is what its manifest says.
    pub fn name<'i>(&'i self, id: &'i PackageId) -> Cow<'i, str> {
        match self.own.get(id) {
            Some(name) => Cow::Borrowed(name),
            None => self.reference(id),
        }
    }

    /// The name of a package as a command takes it.
    pub fn reference<'i>(&self, id: &'i PackageId) -> Cow<'i, str> {
        match self.folder(id) {
            Some(folder) => Cow::Owned(folder),
            None => Cow::Borrowed(id.short(&self.base)),
        }
    }

    /// The path of a package in a folder of this machine, from here; `None` for any other package.
    pub fn folder(&self, id: &PackageId) -> Option<String> {
        let name = id.as_str().strip_prefix(self.machine.as_str())?;
        path_from(self.root.name_str(), name)
    }

    /// A text with the names of packages.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let [base, machine] = [&self.base, &self.machine].map(Base::as_str);
        // Most texts name no folder, and are only searched for the default base.
        match text.contains(machine) {
            true => match folders(text, machine, self.root.name_str()) {
                Some(shown) => Cow::Owned(short(&shown, base).into_owned()),
                None => short(text, base),
            },
            false => short(text, base),
        }
    }
}

/// A text with the names of folders as paths; `None` if there is none.
fn folders(text: &str, machine: &str, root: &str) -> Option<String> {
    let mut shown = String::new();
    // How much of the text is in `shown` already.
    let mut kept = 0;
    for (at, _) in text.match_indices(machine) {
        let start = at + machine.len();
        // A name may be the end of a sentence.
        let name = name_at(&text[start..]).trim_end_matches('.');
        let end = start + name.len();
        let (before, after) = (&text[..at], &text[end..]);
        // Settings have prefixes of ids as they are, and the ids of packages as keys.
        let is_key = after.starts_with(':') && before.ends_with(['`', '{']);
        let is_prefix = name.is_empty() || name.ends_with('/') || after.starts_with(['=', '*']);
        if !is_beginning(before) || is_key || is_prefix || is_in_settings(before) {
            continue;
        }
        if let Some(path) = path_from(root, name) {
            shown.push_str(&text[kept..at]);
            shown.push_str(&path);
            kept = end;
        }
    }
    (kept > 0).then(|| shown + &text[kept..])
}

/// The path of a folder from another one, both by their names in ids; the absolute path of one that is far away, if it is there: a
/// server may have the name of this machine, too.
fn path_from(root: &str, name: &str) -> Option<String> {
    // What begins in the same folder of the machine (`/home`) is near enough to be shown as seen from here.
    let first = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    if first(root) == first(name) {
        let relative = relative_folder(name_parts(root), name_parts(name));
        let is_path = relative.starts_with('.');
        return Some(if is_path { relative } else { format!("./{relative}") });
    }
    let path = format!("/{}", name_parts(name).collect::<Vec<_>>().join("/"));
    Path::new("/").join(first(name)).is_dir().then_some(path)
}

/// A folder as seen from another one, both by the names on the way to them.
pub(crate) fn relative_folder(
    from: impl IntoIterator<Item = String>,
    to: impl IntoIterator<Item = String>,
) -> String {
    let [from, to]: [Vec<String>; 2] = [from.into_iter().collect(), to.into_iter().collect()];
    let common = from.iter().zip(&to).take_while(|(left, right)| left == right).count();
    let up = std::iter::repeat_n("..", from.len() - common);
    let parts: Vec<&str> = up.chain(to[common..].iter().map(String::as_str)).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

/// The folders of a path, as they are called on this machine.
fn name_parts(name: &str) -> impl Iterator<Item = String> {
    name.split('/').map(unescaped)
}

/// The folder that a segment of an id stands for: what ids cannot have is written there as `_` and two digits.
fn unescaped(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    // `_2emy_20shop` is `.my shop`. Only what an id has to write so is read back: a folder may really be called
    // `my_ab`.
    while let [byte, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let escaped =
            digit(0).zip(digit(1)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        let needs_escape = |byte: &u8| match byte {
            b'.' | b'-' => bytes.is_empty(),
            b'_' | b'/' => false,
            other => !other.is_ascii_alphanumeric() && !other.is_ascii_control(),
        };
        match escaped.filter(|_| *byte == b'_').filter(needs_escape) {
            Some(meant) => {
                bytes.push(meant);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    // What is no text was not escaped.
    String::from_utf8(bytes).unwrap_or_else(|_| segment.to_owned())
}

/// What could be a name at the start of a text.
fn name_at(text: &str) -> &str {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/');
    let end = text.bytes().position(|byte| !is_part(byte)).unwrap_or(text.len());
    &text[..end]
}

/// A text without the default base before names.
fn short<'t>(text: &'t str, base: &str) -> Cow<'t, str> {
    if text.len() < base.len() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let mut kept = 0;
    for (at, _) in text.match_indices(base) {
        let name = at + base.len();
        let before = &text[..at];
        if is_beginning(before) && !is_in_settings(before) && is_plain_name(&text[name..]) {
            shown.push_str(&text[kept..at]);
            kept = name;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[kept..]);
    Cow::Owned(shown)
}

/// Whether a word begins after this text, which may end with a style.
fn is_beginning(text: &str) -> bool {
    // `ESC[1m` in front of a name makes it bold, and is no part of a word.
    let is_style = |codes: &str| codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
    let mut text = text;
    while let Some((before, codes)) =
        text.strip_suffix('m').and_then(|text| text.rsplit_once("\u{1b}["))
        && is_style(codes)
    {
        text = before;
    }
    // After one of these, it is the rest of something else: of a path (`.mu/packs/hub.mu.com/…`), of a URL, or of
    // another host (`my.hub.mu.com`).
    let goes_on = |last: char| {
        let is_part = matches!(last, '_' | '.' | '-' | '/' | ':' | '@' | '+' | '%' | '~' | '\\');
        is_part || last.is_alphanumeric()
    };
    !text.ends_with(goes_on)
}

/// Whether what follows is to be written into settings under a key that knows no base: of `trust` in the user's own file, whose base
/// may be another one, and of `aliases`.
fn is_in_settings(text: &str) -> bool {
    let is_inside =
        |key: &str| text.rsplit_once(key).is_some_and(|(_, inside)| !inside.contains('}'));
    is_inside("trust: {") || is_inside("aliases: {")
}

/// Whether a text begins with a name that means the same without a base.
fn is_plain_name(text: &str) -> bool {
    let name = name_at(text);
    let rest = &text[name.len()..];
    let is_file = name.ends_with("/Mu.yaml") || name.ends_with("/Mu.json");
    // After a name, `=` and `*` mean that it is a prefix.
    let is_prefix = rest.starts_with(['=', '*']);
    !needs_base(name) && !is_file && !is_prefix && Name::is_valid(name)
}

/// An indented line for each text; of many, only for the first `most`, and how many more there are.
pub(crate) fn lines(texts: &[impl fmt::Display], most: usize) -> String {
    let mut lines: String = texts.iter().take(most).map(|text| format!("\n  {text}")).collect();
    if texts.len() > most {
        lines.push_str(&format!("\n  and {} more", texts.len() - most));
    }
    lines
}

/// `1 package`, `2 packages`.
pub fn count(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Writes a path as text, with a mark in place of what is not UTF-8.
pub(crate) fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Writes a path as [`path`] does, or `null`.
pub(crate) fn optional_path<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(serializer)
}

/// Writes why a version was withdrawn: the reason, or `false` for a version that was not.
pub(crate) fn yanked<S: Serializer>(
    reason: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match reason {
        Some(reason) => serializer.serialize_str(reason),
        None => serializer.serialize_bool(false),
    }
}

/// The schema of what [`yanked`] writes.
pub(crate) fn yanked_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "const": false }, { "type": "string" }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let here = PackageNaming::new(&Base::default(), Path::new("/home/ada/work/here"));
        assert_eq!(here.text(text), expected, "{text}");
    }

    #[test]
    fn the_default_base_is_left_out() {
        check("hub.mu.com/aws/ec2", "aws/ec2");
        check("`hub.mu.com/aws/ec2#^1` and hub.mu.com/aws/vpc.", "`aws/ec2#^1` and aws/vpc.");
        check("mu add 'hub.mu.com/aws/ec2#^1'", "mu add 'aws/ec2#^1'");
        check("\u{1b}[1mhub.mu.com/aws/ec2\u{1b}[0m 1.0.0", "\u{1b}[1maws/ec2\u{1b}[0m 1.0.0");
        let other = Base::parse("acme.co").expect("is a base");
        let here = PackageNaming::new(&other, Path::new("/"));
        assert_eq!(here.text("acme.co/a/b hub.mu.com/a/b"), "a/b hub.mu.com/a/b");
    }

    #[test]
    fn a_folder_is_called_by_its_path_from_here() {
        check("localhost/home/ada/work/shop", "../shop");
        check(
            "`localhost/home/ada/shop#^1` and localhost/home/ada/work.",
            "`../../shop#^1` and ...",
        );
        check("localhost/home/ada/work/here/lib 1.0.0", "./lib 1.0.0");
        check("localhost/home/ada/work/here", ".");
        check("localhost/home/ada/work/_2emy_20shop/my_ab", "../.my shop/my_ab");
        check("`\u{1b}[1mlocalhost/home/ada/work/shop\u{1b}[0m", "`\u{1b}[1m../shop\u{1b}[0m");
        check("localhost/home/ada/work/shop: it is broken", "../shop: it is broken");
        check("hub.mu.com/a/b, localhost/home/ada/x", "a/b, ../../x");
        check("localhost/usr/lib", "/usr/lib");
        let here = PackageNaming::new(&Base::default(), Path::new("/home/ada/work/here"));
        let folder = PackageId::local(Path::new("/home/ada/work/shop"));
        assert_eq!(here.name(&folder), "../shop");
        assert_eq!(here.folder(&folder).as_deref(), Some("../shop"));
        let other = PackageId::parse("hub.mu.com/aws/ec2").expect("is an id");
        assert_eq!((here.name(&other), here.folder(&other)), ("aws/ec2".into(), None));
        let cart = PackageId::parse("hub.mu.com/cart").expect("is an id");
        let own = BTreeMap::from([(cart.clone(), "cart".to_owned())]);
        let here = PackageNaming { own, ..here };
        assert_eq!((&*here.name(&cart), &*here.reference(&cart)), ("cart", "hub.mu.com/cart"));
    }

    #[test]
    fn what_is_no_folder_of_this_machine_stays() {
        for text in [
            "localhost/no-such-folder/a",
            "localhost:8080/home/ada/work/shop",
            "https://localhost/home/ada/work/shop",
            ".mu/packs/localhost/home/ada/work/shop",
            "localhost/home/ada/: ../hub",
            "the registry `localhost/` is",
            "--registry localhost/home/ada=../hub",
            "aliases: {localhost/home/ada/shop: acme/shop}",
            "write `localhost/home/ada/shop: {replaces: [acme/shop]}` under `packages`",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn it_stays_where_the_rest_would_mean_something_else() {
        for text in [
            "hub.mu.com/aws",
            "hub.mu.com/git.acme.co/aws",
            "hub.mu.com/",
            "hub.mu.com/acme/: ../hub",
            "hub.mu.com/acme/*",
            "--registry hub.mu.com/acme/x=../hub",
            "https://hub.mu.com/aws/ec2",
            ".mu/packs/hub.mu.com/aws/ec2",
            "hub+https://hub.mu.com/",
            "wrote hub.mu.com/aws/ec2/Mu.yaml",
            "my.hub.mu.com/aws/ec2",
            "hub.mu.com/aws/../x",
            "trust: {build: [hub.mu.com/aws/ec2, hub.mu.com/aws/vpc]}",
        ] {
            check(text, text);
        }
    }
}
