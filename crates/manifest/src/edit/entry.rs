//! One dependency as it is written: alone or in its long form, in a list or a map.

use crate::Requirement;
use crate::reference::Reference;
use crate::requirement::{INDIRECT_KEY, is_version_alone};
use crate::schema::LongDependency;
use crate::source::SourceError;
use crate::source::layout::{Collection, NewEntry, Patch};
use crate::source::render::New;

/// The version to write if only a version is possible and none is required.
const ANY_VERSION: &str = "latest";

/// A dependency as a new entry of a list.
pub(super) fn in_list(new: &Requirement) -> NewEntry {
    let reference = (LongDependency::r#ref, New::Text(new.reference.to_string()));
    NewEntry { key: None, value: value(new, reference) }
}

/// A dependency as a new entry of a map: the name with a version, or a local name with a reference.
pub(super) fn in_map(new: &Requirement, others: &[Requirement]) -> NewEntry {
    let reference = &new.reference;
    let place = reference.with_version(None);
    let is_plain = reference.protocol().is_none() && reference.local().is_none();
    let is_free = |key: &str| others.iter().all(|other| other.alias.as_deref() != Some(key));
    let key = match &new.alias {
        Some(alias) => alias.clone(),
        None if is_plain => place.to_string(),
        None => {
            let leaf = reference.name().leaf();
            let name = if is_free(leaf) { leaf } else { reference.name().as_str() };
            name.to_owned()
        }
    };
    let version = reference.version_text().unwrap_or(ANY_VERSION);
    let said = if key == place.as_str() && is_version_alone(version) {
        (LongDependency::version, New::Text(version.to_owned()))
    } else {
        (LongDependency::r#ref, New::Text(map_reference(reference)))
    };
    NewEntry { key: Some(key), value: value(new, said) }
}

/// Changes the entry at `index` to what is wanted, except for the mark.
pub(super) fn rewrite<'d>(
    patch: &mut Patch<'d>,
    collection: Collection<'d>,
    index: usize,
    old: &Requirement,
    wanted: &Requirement,
) -> Result<(), SourceError> {
    let table = collection.nested_collection(index);
    if table.is_map_collection() {
        return rewrite_long(patch, table, old, wanted);
    }
    let in_map = collection.is_map_collection();
    let by_version = in_map && collection.text(index).is_some_and(is_version_alone);
    let version = wanted.reference.version_text().unwrap_or(ANY_VERSION);
    let said = if by_version && is_version_alone(version) {
        (LongDependency::version, version.to_owned())
    } else if in_map {
        (LongDependency::r#ref, map_reference(&wanted.reference))
    } else {
        (LongDependency::r#ref, wanted.reference.to_string())
    };
    match value(wanted, (said.0, New::Text(said.1))) {
        New::Text(text) => patch.replace_text(collection, index, &text),
        value => {
            patch.replace_value(collection, index, &value);
            Ok(())
        }
    }
}

fn rewrite_long<'d>(
    patch: &mut Patch<'d>,
    table: Collection<'d>,
    old: &Requirement,
    wanted: &Requirement,
) -> Result<(), SourceError> {
    if old.reference != wanted.reference {
        if table.has(LongDependency::version) {
            let version = wanted.reference.version_text().unwrap_or(ANY_VERSION);
            patch.set(table, LongDependency::version, New::Text(version.to_owned()))?;
        } else {
            patch.set(table, LongDependency::r#ref, New::Text(wanted.reference.to_string()))?;
        }
    }
    let texts = [
        (LongDependency::channel, &old.channel, &wanted.channel),
        (LongDependency::app_version, &old.app_version, &wanted.app_version),
    ];
    for (key, _, wanted) in texts.into_iter().filter(|(_, old, wanted)| old != wanted) {
        match wanted {
            Some(text) => patch.set(table, key, New::Text(text.clone()))?,
            None => patch.unset(table, key)?,
        }
    }
    if old.prerelease != wanted.prerelease {
        patch.set(table, LongDependency::prerelease, New::Flag(wanted.prerelease))?;
    }
    Ok(())
}

/// Marks an entry by a key of its long form.
pub(super) fn mark_by_key<'d>(
    patch: &mut Patch<'d>,
    collection: Collection<'d>,
    index: usize,
) -> Result<(), SourceError> {
    let table = collection.nested_collection(index);
    if table.is_map_collection() {
        return patch.set(table, INDIRECT_KEY, New::Flag(true));
    }
    let text = collection.text(index).unwrap_or_default().to_owned();
    let by_version = collection.is_map_collection() && is_version_alone(&text);
    let key = if by_version { LongDependency::version } else { LongDependency::r#ref };
    let long = New::Table(vec![(key, New::Text(text)), (INDIRECT_KEY, New::Flag(true))]);
    patch.replace_value(collection, index, &long);
    Ok(())
}

/// The short form if there is only the reference or version, and otherwise the long form.
fn value(requirement: &Requirement, said: (&'static str, New)) -> New {
    let mut pairs = vec![said];
    let text = |key, text: &Option<String>| Some((key, New::Text(text.clone()?)));
    pairs.extend(text(LongDependency::channel, &requirement.channel));
    pairs.extend(text(LongDependency::app_version, &requirement.app_version));
    pairs.extend(requirement.prerelease.then_some((LongDependency::prerelease, New::Flag(true))));
    match pairs.len() {
        1 => pairs.remove(0).1,
        _ => New::Table(pairs),
    }
}

/// A reference for the map form, where a bare word would be a version.
fn map_reference(reference: &Reference) -> String {
    let text = reference.to_string();
    if is_version_alone(&text) { format!("{text}#{ANY_VERSION}") } else { text }
}
