//! One dependency as it is written: alone or in its long form, in a list or a map; with the comment after it, as far as mu uses
//! it: that only other packages need the entry, or what it was before.
//!
//! A comment is a list of notes, separated by semicolons; a person's own notes stay. The mark of an indirect entry can also be a
//! key, for entries that cannot have a comment.

use std::path::Path;

use super::{EditError, Editor, Section, step};
use crate::Requirement;
use crate::reference::Reference;
use crate::requirement::{INDIRECT, INDIRECT_KEY, is_version_alone};
use crate::schema::LongDependency;
use crate::source::layout::{Collection, NewEntry, Patch};
use crate::source::{Document, New, SourceError, layout};

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
    let is_there = is_same_place(old, wanted);
    let by_version = is_there && in_map && collection.text(index).is_some_and(is_version_alone);
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
        if table.has(LongDependency::version) && !is_same_place(old, wanted) {
            patch.unset(table, LongDependency::version)?;
            patch.set(table, LongDependency::r#ref, New::Text(wanted.reference.to_string()))?;
        } else if table.has(LongDependency::version) {
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

/// Whether two entries lead to their package by the same words.
fn is_same_place(left: &Requirement, right: &Requirement) -> bool {
    left.reference.with_version(None) == right.reference.with_version(None)
}

/// Marks an entry by a key of its long form.
fn mark_by_key<'d>(
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

impl Editor {
    /// The rest of the note that begins with `about`, such as `pinned from`, in the comment after a package's
    /// entry.
    ///
    /// # Errors
    ///
    /// When the section is wrong.
    pub fn note(
        &self,
        section: Section,
        package: &Reference,
        about: &str,
    ) -> Result<Option<String>, EditError> {
        let Some((index, _)) = self.find(section, package)? else { return Ok(None) };
        self.note_at(section, index, about)
    }

    /// As [`Self::note`], of the entry with the number `index` in its section.
    ///
    /// # Errors
    ///
    /// As [`Self::note`].
    pub fn note_at(
        &self,
        section: Section,
        index: usize,
        about: &str,
    ) -> Result<Option<String>, EditError> {
        let index = self.place(index)?;
        let document;
        let comment = if let Some(dialect) = self.other_dialect() {
            dialect.comment_at(&self.text, index).map(|at| rest_of_line(&self.text, at))
        } else {
            document = Document::laid_out(&self.path, &self.text)?;
            let collection = Collection::find(&document, section.key());
            collection.and_then(|collection| layout::trailing_comment(&document, collection, index))
        };
        let mut notes = comment.into_iter().flat_map(notes);
        Ok(notes.find_map(|note| after(note, about)).map(str::to_owned))
    }

    /// Sets or removes the note `about` in the comment after the entry with the number `index` in its section. Returns whether the
    /// note is there now: entries in JSON, and entries among others in brackets, cannot have one.
    ///
    /// # Errors
    ///
    /// When the manifest is wrong, or cannot be changed safely.
    pub fn set_note_at(
        &mut self,
        section: Section,
        index: usize,
        about: &str,
        note: Option<&str>,
    ) -> Result<bool, EditError> {
        let expected = self.requirements(section)?;
        if index >= expected.len() {
            return Ok(false);
        }
        let index = self.place(index)?;
        if let Some(dialect) = self.other_dialect() {
            let Some(at) = dialect.comment_at(&self.text, index) else { return Ok(false) };
            if let Some(text) = with_note(&self.text, at, about, note) {
                self.accept(section, text, &expected)?;
            }
            return Ok(true);
        }
        let mut can_stand = false;
        let text = step(&self.path, &self.text, section, |patch, collection| {
            can_stand = collection.takes_comments()
                || layout::trailing_comment(patch.original_document(), collection, index).is_some();
            if can_stand {
                set(patch, collection, index, about, note);
            }
            Ok(())
        })?;
        self.accept(section, text, &expected)?;
        Ok(can_stand)
    }
}

/// The text with the mark of entry `index` set or removed.
pub(super) fn mark(
    path: &Path,
    text: &str,
    section: Section,
    index: usize,
    on: bool,
) -> Result<String, EditError> {
    if !on {
        return step(path, text, section, |patch, collection| {
            if collection.nested_collection(index).is_map_collection() {
                patch.unset(collection.nested_collection(index), INDIRECT_KEY)?;
            }
            set(patch, collection, index, INDIRECT, None);
            Ok(())
        });
    }
    let opened = opened(path, text, section)?;
    step(path, opened.as_deref().unwrap_or(text), section, |patch, collection| {
        if !collection.takes_comments() {
            return mark_by_key(patch, collection, index);
        }
        set(patch, collection, index, INDIRECT, Some(""));
        Ok(())
    })
}

/// The text with a section that is in brackets on one line rewritten as lines, if possible.
fn opened(path: &Path, text: &str, section: Section) -> Result<Option<String>, EditError> {
    let opened = step(path, text, section, |patch, collection| {
        if collection.takes_comments() { Ok(()) } else { patch.unfold(collection) }
    });
    match opened {
        Ok(text) => Ok(Some(text)),
        // Then the mark must be a key.
        Err(EditError::Source(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Rewrites one note of a comment. The mark comes before all others, any other note right after it.
fn set<'d>(
    patch: &mut Patch<'d>,
    collection: Collection<'d>,
    index: usize,
    about: &str,
    note: Option<&str>,
) {
    let comment = layout::trailing_comment(patch.original_document(), collection, index);
    if let Some(comment) = renewed(comment, about, note) {
        patch.set_comment(collection, index, &comment);
    }
}

/// The text with one note of the comment at `at` rewritten; `None` if nothing changes.
pub(super) fn with_note(text: &str, at: usize, about: &str, note: Option<&str>) -> Option<String> {
    let old = rest_of_line(text, at);
    let comment = renewed(Some(old), about, note)?;
    let (before, after) = (text.get(..at)?, text.get(at + old.len()..)?);
    Some(match comment.is_empty() {
        true => format!("{before}{after}"),
        false => format!("{before} # {comment}{after}"),
    })
}

fn rest_of_line(text: &str, at: usize) -> &str {
    text.get(at..).and_then(|text| text.lines().next()).unwrap_or_default()
}

/// A comment with one note of it rewritten; `None` if nothing changes.
fn renewed(comment: Option<&str>, about: &str, note: Option<&str>) -> Option<String> {
    let present: Vec<&str> = comment.into_iter().flat_map(notes).collect();
    let is_other = |other: &&str| after(other, about).is_none();
    if note.is_none() && present.iter().all(is_other) {
        return None;
    }
    let mut kept: Vec<String> = present.into_iter().filter(is_other).map(str::to_owned).collect();
    if let Some(note) = note {
        let is_marked = kept.first().is_some_and(|first| first == INDIRECT);
        let place = usize::from(is_marked);
        kept.insert(place, format!("{about} {note}").trim_end().to_owned());
    }
    Some(kept.join("; "))
}

/// Whether a comment, with its `#`, marks an entry that only other packages need.
pub fn is_indirect_comment(comment: &str) -> bool {
    comment.trim_start().starts_with('#')
        && notes(comment).any(|note| after(note, INDIRECT).is_some())
}

fn notes(comment: &str) -> impl Iterator<Item = &str> {
    let words = comment.trim_start().trim_start_matches('#');
    words.split(';').map(str::trim).filter(|note| !note.is_empty())
}

/// The rest of a note that starts with `about`. The mark has no rest.
fn after<'n>(note: &'n str, about: &str) -> Option<&'n str> {
    let rest = note.strip_prefix(about)?;
    let is_about_it = rest.is_empty() || (rest.starts_with(' ') && about != INDIRECT);
    is_about_it.then(|| rest.trim())
}
