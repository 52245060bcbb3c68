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
        PackageId::parse(&[&alias.to, rest].concat()).unwrap_or(id)
    }

    /// The reference that leads to what `id` means: without a protocol, unless the alias has one.
    pub fn reference(&self, id: &PackageId) -> Option<Reference> {
        let (alias, rest) = self.of(id.as_str())?;
        let protocol = alias.protocol.as_deref().map(|protocol| format!("{protocol}://"));
        Reference::parse(&[&protocol.unwrap_or_default(), &*alias.to, rest].concat()).ok()
    }

    /// The other ids of a package, which do not count.
    pub fn others(&self, id: &PackageId) -> Vec<String> {
        let other = |alias: &Alias| {
            let rest = id.as_str().strip_prefix(&alias.to)?;
            Some([&alias.from, rest].concat())
        };
        self.0.iter().filter_map(other).collect()
    }

    fn of<'a>(&'a self, id: &'a str) -> Option<(&'a Alias, &'a str)> {
        self.0.iter().find_map(|alias| {
            let rest = id.strip_prefix(&alias.from)?;
            (!rest.is_empty()).then_some((alias, rest))
        })
    }
}
