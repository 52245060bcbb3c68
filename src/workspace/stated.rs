//! What the settings state: facts of the runtime, and what packages do not say of themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::schema::{File, PackageTable};
use crate::manifest::source::{SourceError, Table, Text, Value};
use crate::manifest::{Capability, unversioned};
use crate::reference::{Defaults, PackageId, Reference};

/// The key of the runtime that has capabilities, not a fact.
const PROVIDES: &str = "provides";

/// What a file states of a package.
#[derive(Debug)]
pub(super) struct Stated {
    package: Reference,
    provides: Option<Vec<String>>,
    replaces: Option<Vec<Reference>>,
}

/// What all packages provide and replace, as files state it; of two files that name a package, the later counts.
pub(super) fn joined(
    files: [(Vec<Stated>, &Defaults); 2],
) -> (BTreeMap<PackageId, Vec<String>>, BTreeMap<PackageId, BTreeSet<PackageId>>) {
    let (mut provided, mut replaced) = (BTreeMap::new(), BTreeMap::new());
    for (all, defaults) in files {
        for Stated { package, provides, replaces } in all {
            let id = package.id(defaults);
            provided.extend(provides.map(|provides| (id.clone(), provides)));
            let ids = |old: Vec<Reference>| old.iter().map(|old| old.id(defaults)).collect();
            replaced.extend(replaces.map(|old| (id, ids(old))));
        }
    }
    (provided, replaced)
}

/// Reads what is stated of packages.
pub(super) fn packages(table: Table<'_>) -> Result<Vec<Stated>, SourceError> {
    table.entries(File::packages, |(key, value)| {
        let package = key.parse(unversioned)?;
        let table = value.table(PackageTable::KEYS)?;
        let provides = table.get(PackageTable::provides).map(capabilities).transpose()?;
        let replaces = table.get(PackageTable::replaces).map(names).transpose()?;
        Ok(Stated { package, provides, replaces })
    })
}

fn names(value: Value<'_>) -> Result<Vec<Reference>, SourceError> {
    value.list()?.map(|one| one.text()?.parse(unversioned)).collect()
}

fn capabilities(value: Value<'_>) -> Result<Vec<String>, SourceError> {
    let read = |one: Value<'_>| Ok(one.text()?.parse(Capability::parse)?.to_string());
    value.list()?.map(read).collect()
}

/// Reads the facts of the runtime.
pub(super) fn runtime(table: Table<'_>) -> Result<BTreeMap<String, String>, SourceError> {
    let fact = |(key, value): (Text<'_>, Value<'_>)| {
        let word = match key.as_str() {
            PROVIDES => None,
            _ => Some(value.word()?.as_str().to_owned()),
        };
        Ok(word.map(|word| (key.as_str().to_owned(), word)))
    };
    let facts: Vec<_> = table.entries(File::runtime, fact)?;
    Ok(facts.into_iter().flatten().collect())
}

/// Reads the capabilities that the runtime has, if the file says so.
pub(super) fn runtime_provides(table: Table<'_>) -> Result<Option<Vec<String>>, SourceError> {
    let read = |(key, value): (Text<'_>, Value<'_>)| match key.as_str() {
        PROVIDES => capabilities(value).map(Some),
        _ => Ok(None),
    };
    let all: Vec<_> = table.entries(File::runtime, read)?;
    Ok(all.into_iter().flatten().next())
}
