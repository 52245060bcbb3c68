//! The requirements of packages, as far as they decide whether a registry must be asked.
//!
//! A commit never changes: if a package is only required at full commits, and those are on this machine, no
//! list of versions is needed. The provider knows whether they are. The same holds for digests.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rustc_hash::FxHashMap;

use crate::reference::{PackageId, VersionSpec};
use mu_provider::threads::lock;

/// What is required of each package.
#[derive(Debug, Default)]
pub(super) struct AskedCommits(Mutex<FxHashMap<PackageId, Commits>>);

#[derive(Debug)]
enum Commits {
    /// These commits, and nothing else.
    These(BTreeSet<String>),
    /// Something that only a list of versions can answer.
    AndMore,
}

impl AskedCommits {
    /// Records that `spec` is required of `id`.
    pub(super) fn note(&self, id: &PackageId, spec: &VersionSpec) {
        let mut wanted = lock(&self.0);
        let asked = wanted.entry(id.clone()).or_insert_with(|| Commits::These(BTreeSet::new()));
        match (spec, asked) {
            (VersionSpec::Commit(commit), asked) if commit.is_full() => {
                if let Commits::These(commits) = asked {
                    commits.insert(commit.as_str().to_ascii_lowercase());
                }
            }
            (VersionSpec::Digest(digest), asked) => {
                if let Commits::These(commits) = asked {
                    commits.insert(digest.as_str().to_owned());
                }
            }
            (_, asked) => *asked = Commits::AndMore,
        }
    }

    /// The commits that are required of `id`, if nothing else is.
    pub(super) fn alone(&self, id: &PackageId) -> Option<Vec<String>> {
        match lock(&self.0).get(id)? {
            Commits::These(commits) => Some(commits.iter().cloned().collect()),
            Commits::AndMore => None,
        }
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
