//! Two copies of one package, such as an original and its mirrored copy. mu warns about them, because nothing
//! else would show that they are one package.

use mu_provider::Digest;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::lock::{LockedPackage, Lockfile};
use crate::select::Selection;

/// A warning for each package that is in use twice, with two ids. The lock's packages are those of the selection, in its order.
pub(crate) fn copies(lock: &Lockfile, selection: &Selection) -> Vec<String> {
    let packages = lock.packages.iter().zip(&selection.packages);
    let fetched = packages.filter(|(package, _)| package.digest.is_some());
    told(fetched.map(|(package, chosen)| (package, chosen.copy_of.as_deref())).collect())
}

/// A warning for each package that is locked twice, with two ids and the same content.
pub(crate) fn copies_in_lock(lock: &Lockfile) -> Vec<String> {
    let fetched = lock.packages.iter().filter(|package| package.digest.is_some());
    told(fetched.map(|package| (package, None)).collect())
}

fn told(fetched: Vec<Fetched<'_>>) -> Vec<String> {
    let suspects = suspects(&fetched);
    let mut found = Vec::new();
    for (at, (copy, of)) in suspects.iter().enumerate() {
        for (other_at, (other, other_of)) in suspects.iter().enumerate() {
            let is_copied = *of == Some(other.id.name_str()) && copy.id != other.id;
            // Of two equal ones, each pair is reported once.
            let is_twin = at < other_at
                && copy.id != other.id
                && *other_of != Some(copy.id.name_str())
                && (of.is_some() && of == other_of || has_same_content(copy, other));
            if is_copied || is_twin {
                found.push(tell(copy, other));
            }
        }
    }
    found
}

/// A package, and the name of the one that it is a copy of.
type Fetched<'lock> = (&'lock LockedPackage, Option<&'lock str>);

/// The few packages that may be in use twice: comparing each with each other one takes too long.
fn suspects<'lock>(fetched: &[Fetched<'lock>]) -> Vec<Fetched<'lock>> {
    let copied: FxHashSet<&str> = fetched.iter().filter_map(|(_, of)| *of).collect();
    let mut times: FxHashMap<Option<Digest>, usize> = FxHashMap::default();
    for (package, _) in fetched {
        *times.entry(package.digest).or_default() += 1;
    }
    let is_one = |(package, of): &&Fetched<'lock>| {
        let is_copied = || !copied.is_empty() && copied.contains(package.id.name_str());
        of.is_some() || times[&package.digest] > 1 || is_copied()
    };
    fetched.iter().filter(is_one).copied().collect()
}

/// Whether two packages of the same last name have the same files.
fn has_same_content(one: &LockedPackage, other: &LockedPackage) -> bool {
    one.digest == other.digest && one.id.name().leaf() == other.id.name().leaf()
}

fn tell(copy: &LockedPackage, original: &LockedPackage) -> String {
    let askers = |package: &LockedPackage| {
        let mut by: Vec<String> =
            package.requested.iter().map(|requested| format!("`{}`", requested.by)).collect();
        by.dedup();
        match &by[..] {
            [first, second, _, ..] => format!("{first}, {second} and {} others", by.len() - 2),
            several => several.join(" and "),
        }
    };
    let (first, second) = (askers(copy), askers(original));
    let what_to_do = match first == second {
        true => format!("{first} requires both: remove one of the two requirements"),
        false => format!(
            "to have only one, let {first}, which requires the first, and {second}, which requires the second, require \
             the same one"
        ),
    };
    format!(
        "`{}` {} and `{}` {} are copies of one package, and both are in use: {what_to_do}",
        copy.id, copy.version, original.id, original.version,
    )
}
