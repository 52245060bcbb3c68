//! Manifests of other ecosystems, which write dependencies differently: as a list of maps under
//! `dependencies`.
//!
//! The dialect decides what an entry means. This file puts the entry in its place, and changes nothing else.

use std::fmt;
use std::path::Path;

use super::entry::with_note;
use super::{EditError, Editor, Section, step};
use crate::Requirement;
use crate::reference::VersionSpec;
use crate::requirement::INDIRECT;
use crate::source::layout::{self, NewEntry};
use crate::source::{New, SourceError, TextProblem};

/// How the manifests of another ecosystem write dependencies.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// The dependencies of the manifest at `path`.
    ///
    /// # Errors
    ///
    /// When the text is not such a manifest.
    fn requirements(&self, path: &Path, text: &str) -> Result<Vec<Placed>, SourceError>;

    /// Checks that the dependencies are in the manifest itself, so that they can be changed there. `new` is
    /// the dependency to add.
    ///
    /// # Errors
    ///
    /// When they are in another file.
    fn check(&self, path: &Path, text: &str, new: Option<&Requirement>) -> Result<(), TextProblem>;

    /// A new entry, and the requirement that it will be read as.
    ///
    /// # Errors
    ///
    /// When the format cannot express it.
    fn entry(&self, new: &Requirement) -> Result<(New, Requirement), TextProblem>;

    /// The requirement that `wanted` will be read as: some formats cannot express all of it.
    fn read_as(&self, wanted: &Requirement) -> Requirement {
        // No format has a mark for it.
        Requirement { indirect: false, ..wanted.clone() }
    }

    /// Whether entries are a YAML list `dependencies`, so that mu knows where the comments after them are. Otherwise
    /// [`Dialect::change`] makes all changes, and [`Dialect::comment_at`] says where comments are.
    fn is_list(&self) -> bool {
        true
    }

    /// Where the comment after an entry is, or could be, for formats whose entries are not a YAML list `dependencies`: behind
    /// everything else in a line. `None` if there is no such place.
    fn comment_at(&self, _text: &str, _index: usize) -> Option<usize> {
        None
    }

    /// The text after a change, for formats whose entries are not a YAML list `dependencies`. The editor reads the new text
    /// again, and checks that it means what was intended.
    fn change(&self, _text: &str, _change: &Change<'_>) -> Option<Result<String, TextProblem>> {
        None
    }

    /// The value of an entry's `version`.
    ///
    /// # Errors
    ///
    /// When the format cannot express it.
    fn version(&self, wanted: &Requirement) -> Result<String, TextProblem>;

    /// What a requirement becomes here of which only the lowest version matters.
    fn least(&self, spec: &VersionSpec) -> VersionSpec {
        spec.clone()
    }

    /// Whether a comment can mark an entry that only other packages need. Elsewhere, the tools of the ecosystem would use it as
    /// one that the author wants.
    fn marks_indirect(&self) -> bool {
        false
    }

    /// Whether entries say more of a package than its name and its version: see [`Known`].
    fn is_described(&self) -> bool {
        false
    }

    /// What an entry is read as once it says what is known of its package.
    fn read_once_described(&self, entry: &Requirement, _known: &Known) -> Requirement {
        entry.clone()
    }
}

/// What is known of a package once its version was chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The name of its version's tag.
    pub tag: Option<String>,
    /// Whether what it requires is a branch, and not a tag of that name.
    pub is_branch: bool,
    /// Which of the kinds of packages of its ecosystem it is.
    pub kind: Option<String>,
    /// Git: the name in its own manifest, and its folder in the repository.
    pub in_repository: Option<(String, String)>,
}

/// A change to a manifest. Places are those of [`Placed`].
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Adds an entry at the end.
    Add(&'a Requirement),
    /// Gives an entry another version.
    Set {
        /// The place of the entry.
        index: usize,
        /// What it says afterwards.
        wanted: &'a Requirement,
    },
    /// Has an entry say what is known of its package, and require the same.
    Describe {
        /// The place of the entry.
        index: usize,
        /// What is known.
        known: &'a Known,
    },
    /// Removes an entry.
    Remove {
        /// The place of the entry.
        index: usize,
    },
    /// Gives the package itself another version.
    Version(&'a str),
}

/// A dependency, and its place among the entries of the list. Not every entry has to be a dependency.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The place in the list, counted from 0.
    pub index: usize,
    /// What it says.
    pub requirement: Requirement,
}

impl Editor {
    /// The place in the list of the dependency with the number `index` in its section.
    pub(super) fn place(&self, index: usize) -> Result<usize, EditError> {
        let Some(dialect) = &self.dialect else { return Ok(index) };
        let placed = dialect.requirements(&self.path, &self.text)?;
        Ok(placed.get(index).map_or(index, |placed| placed.index))
    }

    pub(super) fn append_in(
        &mut self,
        dialect: &dyn Dialect,
        section: Section,
        new: &Requirement,
    ) -> Result<bool, EditError> {
        if section == Section::DevDependencies {
            let what = TextProblem::new("this manifest knows no dependencies for development");
            return Err(self.edit_error(what));
        }
        let mut expected = self.requirements(section)?;
        let (value, read) = dialect.entry(new).map_err(|problem| self.edit_error(problem))?;
        let entry = NewEntry { key: None, value };
        if let Some(mut text) = self.changed_by(dialect, &Change::Add(new))? {
            if new.indirect && dialect.marks_indirect() {
                let last = dialect.requirements(&self.path, &text)?.pop();
                text =
                    last.and_then(|last| marked(dialect, &text, last.index, true)).unwrap_or(text);
            }
            expected.push(read);
            return self.accept(section, text, &expected);
        }
        let key = section.key();
        let text = layout::change(&self.path, &self.text, key, |patch, _| patch.add(key, &entry))?;
        expected.push(read);
        self.accept(section, text, &expected)
    }

    /// Gives the entry with the number `index` its new version. Nothing else about it can change.
    pub(super) fn rewrite_in_dialect(
        &mut self,
        section: Section,
        index: usize,
        mut expected: Vec<Requirement>,
    ) -> Result<bool, EditError> {
        let (Some(dialect), Some(wanted)) = (self.dialect.clone(), expected.get_mut(index)) else {
            return Ok(false);
        };
        let version = dialect.version(wanted).map_err(|problem| self.edit_error(problem))?;
        let place = self.place(index)?;
        let changed = self.changed_by(&*dialect, &Change::Set { index: place, wanted })?;
        *wanted = dialect.read_as(wanted);
        if let Some(mut text) = changed {
            if dialect.marks_indirect() {
                text = marked(&*dialect, &text, place, wanted.indirect).unwrap_or(text);
            }
            return self.accept(section, text, &expected);
        }
        let text = step(&self.path, &self.text, section, |patch, collection| {
            patch.set(collection.nested_collection(place), "version", New::Text(version))
        })?;
        self.accept(section, text, &expected)
    }

    /// Has the entry with the number `index` in its section say what is known of its package. Returns whether anything changed.
    ///
    /// # Errors
    ///
    /// When the manifest is wrong, or cannot be changed safely.
    pub fn describe(
        &mut self,
        section: Section,
        index: usize,
        known: &Known,
    ) -> Result<bool, EditError> {
        let Some(dialect) = self.dialect.clone() else { return Ok(false) };
        let mut expected = self.requirements(section)?;
        if let Some(entry) = expected.get_mut(index) {
            *entry = dialect.read_once_described(entry, known);
        }
        let index = self.place(index)?;
        match self.changed_by(&*dialect, &Change::Describe { index, known })? {
            Some(text) => self.accept(section, text, &expected),
            None => Ok(false),
        }
    }

    /// Whether `wanted` accepts prereleases here: in some formats, its range alone says that.
    pub fn takes_prereleases(&self, wanted: &Requirement) -> bool {
        let read = self.dialect.as_ref().map(|dialect| dialect.read_as(wanted));
        read.map_or(wanted.prerelease, |read| read.prerelease)
    }

    /// What a requirement becomes here of which only the lowest version matters.
    pub fn least(&self, spec: &VersionSpec) -> VersionSpec {
        self.dialect.as_ref().map_or_else(|| spec.clone(), |dialect| dialect.least(spec))
    }

    /// Whether this manifest can say a dependency that it does not have yet, and where that is [`indirect`](Requirement::indirect),
    /// also say that.
    pub fn takes(&self, section: Section, new: &Requirement) -> bool {
        let Some(dialect) = &self.dialect else { return true };
        (!new.indirect || dialect.marks_indirect()) && self.clone().add(section, new).is_ok()
    }

    /// The text after a change that the dialect makes itself.
    pub(super) fn changed_by(
        &self,
        dialect: &dyn Dialect,
        change: &Change<'_>,
    ) -> Result<Option<String>, EditError> {
        let changed = dialect.change(&self.text, change).transpose();
        changed.map_err(|problem| self.edit_error(problem))
    }

    /// The dialect, if its entries are not a YAML list `dependencies`.
    pub(super) fn other_dialect(&self) -> Option<&dyn Dialect> {
        self.dialect.as_deref().filter(|dialect| !dialect.is_list())
    }

    /// Refuses to change dependencies that are in another file.
    pub(super) fn check_dialect(&self) -> Result<(), EditError> {
        let Some(dialect) = &self.dialect else { return Ok(()) };
        dialect.check(&self.path, &self.text, None).map_err(|problem| self.edit_error(problem))
    }

    pub(super) fn edit_error(&self, problem: TextProblem) -> EditError {
        EditError::refused(&self.path, problem)
    }
}

/// The text with the mark of an entry set or removed; `None` if nothing changes.
fn marked(dialect: &dyn Dialect, text: &str, index: usize, on: bool) -> Option<String> {
    let at = dialect.comment_at(text, index)?;
    with_note(text, at, INDIRECT, on.then_some(""))
}
