//! Closures: for each package, the names of all packages that any of its versions can lead to. They are for
//! readers that ask for everything at once, instead of step by step.
//!
//! They are hints. A closure is right when its package is published. If a dependency later needs more, the
//! closures of its dependents do not change; only a repair rewrites all of them. A hub keeps closures if its
//! `hub.json` names their folder.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use mu_provider_hub::wire::{ClosureFile, LARGEST_CLOSURE};

use crate::HubError;
use crate::derived;
use crate::files::Files;
use crate::lines::Lines;
use crate::names;
use crate::root::Root;

/// Files that are read at once.
const AT_ONCE: usize = 32;

/// The names that one dependency can mean in this hub, in order of preference.
pub(crate) type Meaning = Vec<String>;

/// The names that a package's versions depend on, as far as they can be in the same hub.
pub(crate) fn dependencies(lines: &Lines) -> BTreeSet<Meaning> {
    let mut found = BTreeSet::new();
    for line in lines.iter() {
        found.extend(line.references().filter_map(|reference| meaning(&reference, line.name())));
    }
    found
}

/// The names that a reference of the package `of` can have in their hub; `None` if it leads elsewhere.
///
/// A hub does not know its own base, so a name with a base counts too.
fn meaning(reference: &str, of: &str) -> Option<Meaning> {
    let place = reference.split('#').next().unwrap_or_default();
    let has_protocol = place.contains("://");
    let place = ["https://", "http://"]
        .iter()
        .find_map(|protocol| place.strip_prefix(protocol))
        .or((!has_protocol).then_some(place))?;
    let (first, rest) = place.split_once('/').unwrap_or((place, ""));
    let is_folder = matches!(first, "" | "." | "..");
    if is_folder || first.contains('@') {
        return None;
    }
    let has_base = has_protocol || (first.contains(['.', ':']) && !rest.is_empty());
    let name = if has_base { rest } else { place };
    names::check_name(name).ok()?;
    let mut meaning = Vec::new();
    if !has_base
        && !name.contains('/')
        && let Some((namespace, _)) = of.rsplit_once('/')
    {
        meaning.push(format!("{namespace}/{name}"));
    }
    meaning.push(name.to_owned());
    Some(meaning)
}

/// Writes the closure of a package: its old closure, its dependencies, and their closures.
pub(crate) async fn write(files: &Files, root: &Root, name: &str) -> Result<(), HubError> {
    let Some(path) = root.closure(name) else { return Ok(()) };
    let wanted = dependencies(&derived::index(files, root, name).await?);
    let mut found = futures_util::stream::iter(wanted)
        .map(|meaning| find(files, root, meaning))
        .buffered(AT_ONCE);
    // Many dependencies with large closures have most names in common.
    let (mut near, mut far) = (BTreeSet::new(), BTreeSet::new());
    while let Some(below) = found.try_next().await? {
        let Some((name, closure)) = below else { continue };
        insert(&mut near, &name);
        closure.iter().for_each(|name| insert(&mut far, name));
    }
    files
        .change(&path, async |bytes| {
            let known = bytes.and_then(|bytes| parse(bytes));
            let mut all: BTreeSet<String> = known.iter().flatten().cloned().collect();
            // If there is not enough room, the nearest packages are the most useful ones.
            near.iter().chain(&far).for_each(|name| insert(&mut all, name));
            all.remove(name);
            let is_same = known.is_some_and(|known| known == all);
            Ok(((!is_same).then(|| file(&all)), ()))
        })
        .await
}

/// Finds the first package of a meaning that exists, and its closure.
async fn find(
    files: &Files,
    root: &Root,
    meaning: Meaning,
) -> Result<Option<(String, BTreeSet<String>)>, HubError> {
    for name in meaning {
        let Some(path) = root.closure(&name) else { return Ok(None) };
        let read = files.read(&path).await?;
        if read.is_some() || files.head(&root.index(&name)).await?.is_some() {
            let closure = read.and_then(|read| parse(&read.bytes)).unwrap_or_default();
            return Ok(Some((name, closure)));
        }
    }
    Ok(None)
}

fn insert(all: &mut BTreeSet<String>, name: &str) {
    if all.len() < LARGEST_CLOSURE {
        all.insert(name.to_owned());
    }
}

/// The closures of all packages, given the dependencies of each. They are exact, except for those that would
/// be too large.
pub(crate) fn exact(
    packages: &BTreeMap<String, BTreeSet<Meaning>>,
) -> BTreeMap<String, BTreeSet<String>> {
    let names: Vec<&String> = packages.keys().collect();
    let place = |name: &String| names.binary_search(&name).ok();
    let below: Vec<Vec<usize>> = packages
        .values()
        .map(|meanings| meanings.iter().filter_map(|one| one.iter().find_map(place)).collect())
        .collect();
    let closure = |start: usize| {
        let (mut seen, mut found) = (HashSet::from([start]), vec![start]);
        let mut next = 0;
        // The nearest packages come first.
        while let Some(at) = found.get(next).copied() {
            next += 1;
            for other in &below[at] {
                if found.len() <= LARGEST_CLOSURE && seen.insert(*other) {
                    found.push(*other);
                }
            }
        }
        found[1..].iter().map(|place| names[*place].clone()).collect()
    };
    names.iter().enumerate().map(|(start, name)| ((*name).clone(), closure(start))).collect()
}

/// The file of a closure.
pub(crate) fn file(packages: &BTreeSet<String>) -> Bytes {
    let file = ClosureFile { packages: packages.iter().cloned().collect() };
    let mut text = serde_json::to_string(&file).expect("a list of texts can be printed");
    text.push('\n');
    text.into()
}

/// The names in the file of a closure; `None` if it is not a closure.
pub(crate) fn parse(bytes: &[u8]) -> Option<BTreeSet<String>> {
    let file: ClosureFile = serde_json::from_slice(bytes).ok()?;
    let are_names = file.packages.iter().all(|name| names::check_name(name).is_ok());
    (are_names && file.packages.len() <= LARGEST_CLOSURE)
        .then(|| file.packages.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_means_what_it_means_to_readers() {
        for (reference, expected) in [
            ("acme/utils#^1.0", &["acme/utils"][..]),
            ("utils", &["ns/deep/utils", "utils"]),
            ("hub.mu.com/utils#1", &["utils"]),
            ("https://hub.mu.com/acme/utils", &["acme/utils"]),
            ("http://localhost:8080/a", &["a"]),
            ("a.b", &["ns/deep/a.b", "a.b"]),
            ("git+https://github.com/a/b", &[]),
            ("https://github.com/a/b.git", &[]),
            ("git@host:org/repo", &[]),
            ("./x", &[]),
            ("../x", &[]),
            ("/srv/x", &[]),
            ("file:///srv/x", &[]),
            ("", &[]),
            ("#1", &[]),
        ] {
            let found = meaning(reference, "ns/deep/of").unwrap_or_default();
            assert_eq!(found, expected, "{reference}");
        }
        assert_eq!(meaning("utils", "of"), Some(vec!["utils".to_owned()]));
    }

    #[test]
    fn exact_closures_go_round_circles_and_take_what_is_there() {
        let package = |needs: &[&[&str]]| -> BTreeSet<Meaning> {
            needs.iter().map(|one| one.iter().map(|name| (*name).to_owned()).collect()).collect()
        };
        let packages = BTreeMap::from([
            ("a".to_owned(), package(&[&["b"], &["away"]])),
            ("b".to_owned(), package(&[&["ns/c", "c"]])),
            ("c".to_owned(), package(&[&["a"], &["d"]])),
            ("d".to_owned(), package(&[])),
        ]);
        let exact = exact(&packages);
        let found = |name: &str| exact[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(found("a"), ["b", "c", "d"]);
        assert_eq!(found("b"), ["a", "c", "d"]);
        assert_eq!(found("c"), ["a", "b", "d"]);
        assert!(found("d").is_empty());
    }
}
