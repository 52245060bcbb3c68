//! Two copies of one package, such as an original and its mirrored copy. mu warns about them, because nothing
//! else would show that they are one package.

use crate::lock::{LockedPackage, Lockfile};
use crate::select::Selection;

/// A warning for each package that is in use twice, with two ids.
pub(crate) fn copies(lock: &Lockfile, selection: &Selection) -> Vec<String> {
    let origin = |package: &LockedPackage| {
        let chosen = selection.packages.iter().find(|chosen| {
            let version = chosen.version.as_ref().map(ToString::to_string);
            chosen.id == package.id && version.as_deref() == Some(&package.version)
        });
        chosen.and_then(|chosen| chosen.copy_of.clone())
    };
    let fetched = lock.packages.iter().filter(|package| package.digest.is_some());
    let fetched: Vec<(&LockedPackage, Option<String>)> =
        fetched.map(|package| (package, origin(package))).collect();
    let mut found = Vec::new();
    for (at, (copy, of)) in fetched.iter().enumerate() {
        for (other_at, (other, other_of)) in fetched.iter().enumerate() {
            let is_copied = of.as_deref() == Some(other.id.name_str()) && copy.id != other.id;
            // Of two equal ones, each pair is reported once.
            let is_twin = at < other_at
                && copy.id != other.id
                && other_of.as_deref() != Some(copy.id.name_str())
                && (of.is_some() && of == other_of || has_same_content(copy, other));
            if is_copied || is_twin {
                found.push(tell(copy, other));
            }
        }
    }
    found
}

/// Whether two packages of the same last name have the same files.
fn has_same_content(one: &LockedPackage, other: &LockedPackage) -> bool {
    let leaf =
        |package: &LockedPackage| package.id.name_str().rsplit('/').next().map(str::to_owned);
    one.digest == other.digest && leaf(one) == leaf(other)
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
