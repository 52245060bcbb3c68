//! Packages that are known under two ids, and which of the two counts. Applied where a reference becomes an id.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{PackageId, Reference};

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
