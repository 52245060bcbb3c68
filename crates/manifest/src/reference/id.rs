//! The identity of a package: base and name, without protocol and version; and packages that are known under two ids, and which
//! of the two counts. Aliases are applied where a reference becomes an id.

use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::Serialize;

use super::error::{Fault, ReferenceError};
use super::protocol::Protocol;
use super::{Base, Name, Reference, name, protocol};

/// Base and name of a package, `hub.mu.com/aws/ec2`. Cheap to clone.
///
/// The base of a text ends at its first slash, so the text alone identifies the package.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(inline)]
pub struct PackageId(Arc<str>);

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
        name::name_from_trusted(self.name_str())
    }

    /// The text of the name.
    pub fn name_str(&self) -> &str {
        &self.0[self.name_start()..]
    }

    /// The shortest name that means this package wherever `base` is the default: without the base, unless the
    /// rest [needs one](needs_base).
    pub fn short(&self, base: &Base) -> &str {
        let name = self.0.strip_prefix(base.as_str());
        name.filter(|name| !needs_base(name)).unwrap_or(self.as_str())
    }

    fn name_start(&self) -> usize {
        self.0.find('/').expect("an id is made of a base, which ends in a slash, and a name") + 1
    }

    fn from_text(text: &str) -> Result<Self, Fault> {
        let Some((authority, path)) = text.split_once('/') else {
            return Err(Fault::new(text.len(), "`/` and a name after the base"));
        };
        let host = protocol::normal_host(authority, &Protocol::Https)?;
        let name =
            name::without_git_marks(path).map_err(|fault| fault.shifted(authority.len() + 1))?;
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
