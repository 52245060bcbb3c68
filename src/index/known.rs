//! References that were read before: most packages need the same few packages, in the same few ranges.
//!
//! Only plain references are remembered: a name of several segments, with or without a base, which lead where their id
//! leads. Whatever says more, or makes no sense, is left to whoever reads references one by one.

use std::sync::Mutex;

use rustc_hash::FxHashMap;

use crate::guard::lock;
use crate::index::universe::Requirement;
use crate::index::wanted::Wanted;
use crate::reference::{Base, PackageId, Reference, VersionSpec};

/// Longer references are not remembered.
const LONGEST: usize = 1_000;

/// The plain references that were met in this run.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Met>);

#[derive(Debug, Default)]
struct Met {
    /// By the base that they leave out, and what stands before the version; `None` for what is not plain.
    packages: FxHashMap<Base, FxHashMap<Box<str>, Option<Package>>>,
    specs: FxHashMap<Box<str>, VersionSpec>,
}

#[derive(Debug)]
struct Package {
    id: PackageId,
    /// Whether it was said that versions of it are wanted.
    is_wanted: bool,
}

impl Known {
    /// What references ask for, each split where its version begins; `None` if one of them is not plain.
    pub(super) fn requirements(
        &self,
        base: &Base,
        references: &[(&str, Option<&str>)],
        wanted: &Wanted,
    ) -> Option<Vec<Requirement>> {
        let mut met = lock(&self.0);
        let Met { packages, specs } = &mut *met;
        if !packages.contains_key(base) {
            packages.insert(base.clone(), FxHashMap::default());
        }
        let packages = packages.get_mut(base)?;
        let mut requirements = Vec::with_capacity(references.len());
        for &(place, version) in references {
            let spec = match version {
                Some(text) => spec(specs, text)?,
                None => VersionSpec::Latest,
            };
            let package = package(packages, base, place)?;
            if !package.is_wanted || matches!(spec, VersionSpec::Commit(_)) {
                wanted.note(&package.id, &spec);
                package.is_wanted |= !matches!(spec, VersionSpec::Commit(_));
            }
            requirements.push(Requirement::new(package.id.clone(), spec));
        }
        Some(requirements)
    }
}

fn spec(specs: &mut FxHashMap<Box<str>, VersionSpec>, text: &str) -> Option<VersionSpec> {
    if let Some(known) = specs.get(text) {
        return Some(known.clone());
    }
    let spec = VersionSpec::parse(text).ok().filter(|_| text.len() < LONGEST)?;
    specs.insert(text.into(), spec.clone());
    Some(spec)
}

fn package<'p>(
    packages: &'p mut FxHashMap<Box<str>, Option<Package>>,
    base: &Base,
    place: &str,
) -> Option<&'p mut Package> {
    if !packages.contains_key(place) {
        let id = plain(base, place);
        let package = id.map(|id| Package { id, is_wanted: false });
        packages.insert(place.into(), package);
    }
    packages.get_mut(place)?.as_mut()
}

/// The package that a plain reference names.
fn plain(base: &Base, place: &str) -> Option<PackageId> {
    let reference = Reference::parse(place).ok().filter(|_| place.len() < LONGEST)?;
    let says_more = reference.protocol().is_some()
        || reference.user().is_some()
        || reference.local().is_some()
        || reference.path() != reference.name().as_str();
    let inherits = reference.base().is_none() && reference.name().namespace().is_none();
    let base = reference.base().unwrap_or(base);
    (!says_more && !inherits).then(|| PackageId::new(base, reference.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_references_are_what_they_are_read_as() {
        let base = PackageId::parse("acme.co/a/b").expect("is an id").base();
        let known = Known::default();
        for (place, expected) in [
            ("aws/ec2", Some("acme.co/aws/ec2")),
            ("hub.mu.com/ec2", Some("hub.mu.com/ec2")),
            ("ec2", None),
            ("./ec2", None),
            ("https://acme.co/aws/ec2", None),
            ("git@acme.co:aws/ec2", None),
            ("aws/ec2.git", None),
            ("aws//ec2", None),
        ] {
            for version in [Some("^1.2"), None] {
                let wanted = Wanted::default();
                let found = known.requirements(&base, &[(place, version)], &wanted);
                let id = |found: Vec<Requirement>| found[0].id.to_string();
                assert_eq!(found.map(id).as_deref(), expected, "{place}");
            }
        }
        assert_eq!(known.requirements(&base, &[("aws/ec2", Some("^"))], &Wanted::default()), None);
    }

    #[test]
    fn what_is_wanted_of_a_package_is_noted() {
        let base = Base::default();
        let (known, wanted) = (Known::default(), Wanted::default());
        let commit = "a".repeat(40);
        let id = PackageId::parse("hub.mu.com/aws/ec2").expect("is an id");
        known.requirements(&base, &[("aws/ec2", Some(&commit))], &wanted).expect("is plain");
        assert_eq!(wanted.commits_alone(&id), Some(vec![commit]));
        known.requirements(&base, &[("aws/ec2", Some("^1"))], &wanted).expect("is plain");
        assert_eq!(wanted.commits_alone(&id), None);
    }
}
