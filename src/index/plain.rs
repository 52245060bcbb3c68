//! References that were parsed before: most packages need the same few packages, in the same few ranges.
//!
//! Their requirements are created once, and shared. Only plain references are cached: a name, with or without a base, that
//! means its id. One of a single segment does not if the package that has it stands in a namespace, which it means first. Any
//! other reference, and any invalid one, is parsed separately.
//!
//! [`AskedCommits`] has the requirements of packages, as far as they decide whether a registry must be asked. A commit never changes: if a package is only required at full commits, and those are on this machine, no
//! list of versions is needed. The provider knows whether they are. The same holds for digests.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::reference::{Base, PackageId, Reference, VersionSpec};
use crate::select::Requirement;
use mu_provider::Reach;
use mu_provider::threads::lock;

/// Longer references are not cached.
const LONGEST: usize = 1_000;

/// The plain references of this run.
#[derive(Debug, Default)]
pub(super) struct PlainReferences(Mutex<Met>);

#[derive(Debug, Default)]
struct Met {
    /// By the base that they leave out, and the part before the version: places in `packages`; `None` if it
    /// is not plain.
    places: FxHashMap<Base, FxHashMap<Box<str>, Option<usize>>>,
    packages: Vec<Package>,
    specs: Specs,
    /// The requirement of a package, by its place and that of a specification.
    requirements: FxHashMap<(usize, usize), Arc<Requirement>>,
}

#[derive(Debug)]
struct Package {
    id: PackageId,
    /// Whether it was recorded that versions of it are wanted.
    is_wanted: bool,
}

#[derive(Debug, Default)]
struct Specs {
    places: FxHashMap<Box<str>, usize>,
    all: Vec<VersionSpec>,
}

impl PlainReferences {
    /// The requirements of references, each split where its version starts, of a package with this base, which stands in a
    /// namespace or not; `None` if one of them is not plain, or means a package that has another name here.
    pub(super) fn requirements(
        &self,
        (base, has_namespace): (&Base, bool),
        references: &[(&str, Option<&str>)],
        commits: &AskedCommits,
        has_other_name: impl Fn(&PackageId) -> bool,
    ) -> Option<Arc<[Arc<Requirement>]>> {
        let mut met = lock(&self.0);
        let Met { places, packages, specs, requirements } = &mut *met;
        let places = match places.get_mut(base) {
            Some(places) => places,
            None => places.entry(base.clone()).or_default(),
        };
        let mut all = Vec::with_capacity(references.len());
        for &(place, version) in references {
            if has_namespace && !place.contains('/') {
                return None;
            }
            let spec = specs.place(version.unwrap_or(VersionSpec::Latest.as_str()))?;
            let package = match places.get(place) {
                Some(&known) => known?,
                None => {
                    let id = plain(base, place).filter(|id| !has_other_name(id));
                    places.insert(place.into(), id.as_ref().map(|_| packages.len()));
                    packages.push(Package { id: id?, is_wanted: false });
                    packages.len() - 1
                }
            };
            let requirement = match requirements.entry((package, spec)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let spec = specs.all.get(spec)?;
                    unknown.insert(packages.get_mut(package)?.requirement(spec, commits))
                }
            };
            all.push(Arc::clone(requirement));
        }
        Some(all.into())
    }
}

impl Package {
    /// The requirement of this form, after recording that it exists.
    fn requirement(&mut self, spec: &VersionSpec, commits: &AskedCommits) -> Arc<Requirement> {
        let is_commit = matches!(spec, VersionSpec::Commit(_) | VersionSpec::Digest(_));
        if !self.is_wanted || is_commit {
            commits.note(&self.id, spec);
            self.is_wanted |= !is_commit;
        }
        Arc::new(Requirement::new(self.id.clone(), spec.clone()))
    }
}

impl Specs {
    /// The place of this text; `None` if it is not valid.
    fn place(&mut self, text: &str) -> Option<usize> {
        if let Some(&known) = self.places.get(text) {
            return Some(known);
        }
        self.all.push(VersionSpec::parse(text).ok().filter(|_| text.len() < LONGEST)?);
        self.places.insert(text.into(), self.all.len() - 1);
        Some(self.all.len() - 1)
    }
}

/// The package that a plain reference names.
fn plain(base: &Base, place: &str) -> Option<PackageId> {
    let reference = Reference::parse(place).ok().filter(|_| place.len() < LONGEST)?;
    let says_more = reference.protocol().is_some()
        || reference.user().is_some()
        || reference.local().is_some()
        || reference.path() != reference.name().as_str();
    // A place near to this machine is checked before it counts.
    let is_near =
        || reference.base().is_some_and(|base| Reach::of_host(base.host_port()) != Reach::Network);
    (!says_more && !is_near())
        .then(|| PackageId::new(reference.base().unwrap_or(base), reference.name()))
}

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
    pub(super) fn only_commits(&self, id: &PackageId) -> Option<Vec<String>> {
        let wanted = lock(&self.0);
        wanted.get(id)?.as_ref().map(|commits| commits.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_references_are_what_they_are_read_as() {
        let base = PackageId::parse("acme.co/a/b").expect("is an id").base();
        let known = PlainReferences::default();
        for (place, expected, in_namespace) in [
            ("aws/ec2", Some("acme.co/aws/ec2"), Some("acme.co/aws/ec2")),
            ("hub.mu.com/ec2", Some("hub.mu.com/ec2"), Some("hub.mu.com/ec2")),
            ("ec2", Some("acme.co/ec2"), None),
            ("./ec2", None, None),
            ("https://acme.co/aws/ec2", None, None),
            ("git@acme.co:aws/ec2", None, None),
            ("git@acme.co:ec2", None, None),
            ("ec2.git", None, None),
            ("aws/ec2.git", None, None),
            ("aws//ec2", None, None),
        ] {
            for (version, has_namespace) in
                [(Some("^1.2"), false), (None, false), (Some("^1.2"), true), (None, true)]
            {
                let (wanted, place) = (AskedCommits::default(), (place, version));
                let found =
                    known.requirements((&base, has_namespace), &[place], &wanted, |_| false);
                let id = |found: Arc<[Arc<Requirement>]>| found[0].id.to_string();
                let expected = if has_namespace { in_namespace } else { expected };
                assert_eq!(found.map(id).as_deref(), expected, "{place:?} {has_namespace}");
            }
        }
        assert_eq!(
            known.requirements(
                (&base, true),
                &[("aws/ec2", Some("^"))],
                &AskedCommits::default(),
                |_| false
            ),
            None
        );
    }

    #[test]
    fn what_is_wanted_of_a_package_is_noted() {
        let base = Base::default();
        let (known, wanted) = (PlainReferences::default(), AskedCommits::default());
        let commit = "a".repeat(40);
        let id = PackageId::parse("hub.mu.com/aws/ec2").expect("is an id");
        known
            .requirements((&base, true), &[("aws/ec2", Some(&commit))], &wanted, |_| false)
            .expect("is plain");
        assert_eq!(wanted.only_commits(&id), Some(vec![commit]));
        known
            .requirements((&base, true), &[("aws/ec2", Some("^1"))], &wanted, |_| false)
            .expect("is plain");
        assert_eq!(wanted.only_commits(&id), None);
    }

    #[test]
    fn commits_are_alone_until_anything_else_is_asked() {
        let wanted = AskedCommits::default();
        let id = PackageId::parse("example.com/a").expect("is an id");
        let note = |text: &str| wanted.note(&id, &VersionSpec::parse(text).expect("is a version"));
        assert_eq!(wanted.only_commits(&id), None);
        let (one, two) = ("a".repeat(40), "b".repeat(40));
        note(&one);
        note(&two.to_ascii_uppercase());
        assert_eq!(wanted.only_commits(&id), Some(vec![one.clone(), two]));
        note("aaaaaaa");
        assert_eq!(wanted.only_commits(&id), None);
        note(&one);
        assert_eq!(wanted.only_commits(&id), None);
    }
}
