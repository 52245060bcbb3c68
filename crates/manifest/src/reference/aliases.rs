//! Packages that are known under two ids, and which of the two counts. Applied where a reference becomes an id.

use std::sync::Arc;

use super::{PackageId, Reference};

/// Prefixes of ids that mean others; by default none. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Aliases(Arc<[Alias]>);

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
        Self(aliases.into())
    }

    /// Whether there are no aliases.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The id that counts: another one, if an alias covers `id`.
    pub fn counted(&self, id: PackageId) -> PackageId {
        let Some((alias, rest)) = self.of(id.as_str()) else { return id };
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
        let other = |alias: &Alias| {
            let rest = rest(&alias.to, id.as_str())?;
            Some([&alias.from, rest].concat().trim_end_matches('/').to_owned())
        };
        self.0.iter().filter_map(other).collect()
    }

    fn of<'a>(&'a self, id: &'a str) -> Option<(&'a Alias, &'a str)> {
        // A base alone is no package, so it cannot stand for one.
        let fits = |alias: &Alias, rest: &str| {
            !rest.is_empty() || alias.to.trim_end_matches('/').contains('/')
        };
        let mut found = self.0.iter().filter_map(|alias| Some((alias, rest(&alias.from, id)?)));
        found.find(|(alias, rest)| fits(alias, rest))
    }
}

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
        let old = PackageId::parse("a.co/old/lib").expect("is an id");
        let reference = aliases.reference(&old).expect("leads there");
        assert_eq!(reference.as_str(), "a.co/new/lib");
    }
}
