//! The requirements of packages, as far as they decide whether a registry must be asked.
//!
//! A commit never changes: if a package is only required at full commits, and those are on this machine, no
//! list of versions is needed. The provider knows whether they are. The same holds for digests.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rustc_hash::FxHashMap;

use crate::reference::{PackageId, VersionSpec};
use mu_provider::threads::lock;

/// The commits that are required of each package; `None` if something is that only a list of versions can answer.
#[derive(Debug, Default)]
pub(super) struct AskedCommits(Mutex<FxHashMap<PackageId, Option<BTreeSet<String>>>>);

impl AskedCommits {
    /// Records that `spec` is required of `id`.
    pub(super) fn note(&self, id: &PackageId, spec: &VersionSpec) {
        let mut wanted = lock(&self.0);
        let asked = wanted.entry(id.clone()).or_insert_with(|| Some(BTreeSet::new()));
        let commit = match spec {
            VersionSpec::Commit(commit) if commit.is_full() => commit.as_str().to_ascii_lowercase(),
            VersionSpec::Digest(digest) => digest.as_str().to_owned(),
            _ => return *asked = None,
        };
        if let Some(commits) = asked {
            commits.insert(commit);
        }
    }

    /// The commits that are required of `id`, if nothing else is.
    pub(super) fn alone(&self, id: &PackageId) -> Option<Vec<String>> {
        let wanted = lock(&self.0);
        wanted.get(id)?.as_ref().map(|commits| commits.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_alone_until_anything_else_is_asked() {
        let wanted = AskedCommits::default();
        let id = PackageId::parse("example.com/a").expect("is an id");
        let note = |text: &str| wanted.note(&id, &VersionSpec::parse(text).expect("is a version"));
        assert_eq!(wanted.alone(&id), None);
        let (one, two) = ("a".repeat(40), "b".repeat(40));
        note(&one);
        note(&two.to_ascii_uppercase());
        assert_eq!(wanted.alone(&id), Some(vec![one.clone(), two]));
        note("aaaaaaa");
        assert_eq!(wanted.alone(&id), None);
        note(&one);
        assert_eq!(wanted.alone(&id), None);
    }
}
