//! Changes that commands make to a manifest. They keep a person's layout: comments, order, quotes and line
//! endings.
//!
//! An [`Editor`] holds the text of one manifest. After every change, it reads the text again and compares it
//! with what was intended. If the text means anything else, the change is an error, and the text stays as it
//! was. So it would be safe to let a library change the text; `source/layout` says why none does.

mod dialect;
mod entry;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::schema::File;
use super::source::layout::{self, Collection, Patch};
use super::source::{Document, SourceError, TextProblem};
use super::{Manifest, Requirement};
use crate::reference::{Defaults, Reference, VersionSpec};

pub use self::dialect::{Change, Dialect, Known, Placed};
pub use self::entry::is_indirect_comment;
pub use super::source::layout::EditError;
use crate::requirement;

/// One of the two lists of dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Section {
    /// `dependencies`.
    Dependencies,
    /// `devDependencies`.
    DevDependencies,
}

impl Section {
    /// Its key in the manifest.
    pub fn key(self) -> &'static str {
        match self {
            Self::Dependencies => File::dependencies,
            Self::DevDependencies => File::dev_dependencies,
        }
    }

    /// The other list.
    pub fn other(self) -> Self {
        match self {
            Self::Dependencies => Self::DevDependencies,
            Self::DevDependencies => Self::Dependencies,
        }
    }

    /// The dependencies of this section in a manifest.
    pub fn of(self, manifest: &Manifest) -> &[Requirement] {
        match self {
            Self::Dependencies => &manifest.dependencies,
            Self::DevDependencies => &manifest.dev_dependencies,
        }
    }
}

/// Changes the dependencies in the text of one manifest.
#[derive(Debug, Clone)]
pub struct Editor {
    path: PathBuf,
    text: String,
    defaults: Defaults,
    dialect: Option<Arc<dyn Dialect>>,
}

impl Editor {
    /// Creates an editor for `text`, the content of the manifest at `path`. `defaults` decide whether two
    /// references name the same package, however they are written.
    pub fn new(path: &Path, text: impl Into<String>, defaults: &Defaults) -> Self {
        let (path, text) = (path.to_owned(), text.into());
        Self { path, text, defaults: defaults.clone(), dialect: None }
    }

    /// This editor, for a manifest of another ecosystem, which writes dependencies in `dialect`.
    #[must_use]
    pub fn in_dialect(self, dialect: Arc<dyn Dialect>) -> Self {
        Self { dialect: Some(dialect), ..self }
    }

    /// The manifest's text with the changes made so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The manifest's text with all changes.
    pub fn into_text(self) -> String {
        self.text
    }

    /// The dependencies in a section as they are now.
    ///
    /// # Errors
    ///
    /// When the section is wrong.
    pub fn requirements(&self, section: Section) -> Result<Vec<Requirement>, EditError> {
        let Some(dialect) = &self.dialect else {
            let document = Document::read(&self.path, &self.text)?;
            return Ok(requirements(&document, section)?);
        };
        if section == Section::DevDependencies {
            return Ok(Vec::new());
        }
        let placed = dialect.requirements(&self.path, &self.text)?;
        Ok(placed.into_iter().map(|placed| placed.requirement).collect())
    }

    /// Adds a dependency. If the package is already listed, its entry gets the new version, the mark, and the
    /// other keys of the new one. Returns whether anything changed.
    ///
    /// # Errors
    ///
    /// When the manifest is wrong, or cannot be changed safely.
    pub fn add(&mut self, section: Section, new: &Requirement) -> Result<bool, EditError> {
        if let Some(dialect) = self.dialect.clone() {
            let checked = dialect.check(&self.path, &self.text, Some(new));
            checked.map_err(|problem| self.edit_error(problem))?;
        }
        // Of several entries, that without an alias is meant where no alias is named.
        let named = |entry: &Requirement| entry.alias.is_some() && self.dialect.is_some();
        let Some((index, old)) = self.find_by(section, &new.reference, named)? else {
            return self.append(section, new);
        };
        let reference = old.reference.with_version(new.reference.version().cloned());
        let wanted = Requirement { reference, ..joined(&old, new) };
        self.rewrite(section, index, &old, &wanted)
    }

    /// Gives the entry that `known` finds another reference, which may lead to its package by another way; the entry keeps its
    /// place, its name and the other keys. Returns whether anything changed; what is not listed is not added.
    ///
    /// # Errors
    ///
    /// When the manifest is wrong, is in a format of others, or cannot be changed safely.
    pub fn lead_elsewhere(
        &mut self,
        section: Section,
        known: &Reference,
        new: &Requirement,
    ) -> Result<bool, EditError> {
        let Some((index, old)) = self.find(section, known)? else { return Ok(false) };
        if self.dialect.is_some() {
            let known = known.with_version(None);
            let what = TextProblem::new(format!("it lists the package already, as `{known}`"));
            let what = what.help("remove that entry first: another place may need other keys");
            return Err(self.edit_error(what).in_line(old.line));
        }
        let wanted = Requirement { reference: new.reference.clone(), ..joined(&old, new) };
        self.rewrite(section, index, &old, &wanted)
    }

    /// Adds a dependency under its alias, or gives the entry with that alias its version. Returns whether anything changed.
    ///
    /// # Errors
    ///
    /// When the entry with the alias is for another package, the manifest has no place for one, or it cannot be changed safely.
    pub fn add_named(&mut self, section: Section, new: &Requirement) -> Result<bool, EditError> {
        let known = self.requirements(section)?;
        let Some(index) = known.iter().position(|known| known.alias == new.alias) else {
            if let Some(dialect) = self.dialect.clone() {
                let checked = dialect.check(&self.path, &self.text, Some(new));
                checked.map_err(|problem| self.edit_error(problem))?;
            }
            return self.append(section, new);
        };
        let Some(old) = known.get(index).map(|known| &known.reference) else { return Ok(false) };
        let alias = new.alias.as_deref().unwrap_or_default();
        if !self.is_same_package(old, &new.reference) {
            let other = old.with_version(None);
            let what = TextProblem::new(format!("`{alias}` is the alias of `{other}` already"));
            return Err(self.edit_error(what));
        }
        self.set_version_at(section, index, new.reference.version().cloned())
    }

    /// Makes a package's entry equal to `wanted`. Returns whether anything changed; a package that is not
    /// listed is not added.
    ///
    /// # Errors
    ///
    /// When the manifest is wrong, or cannot be changed safely.
    pub fn set(&mut self, section: Section, wanted: &Requirement) -> Result<bool, EditError> {
        let Some((index, mut old)) = self.find(section, &wanted.reference)? else {
            return Ok(false);
        };
        let reference = old.reference.with_version(wanted.reference.version().cloned());
        let wanted = Requirement { alias: old.alias.clone(), reference, ..wanted.clone() };
        let mut changed = false;
        if old.channel.is_some() && wanted.channel.is_none() {
            // If there are two keys, each is removed separately.
            let less = Requirement { channel: None, ..old.clone() };
            changed = self.rewrite(section, index, &old, &less)?;
            old = less;
        }
        Ok(self.rewrite(section, index, &old, &wanted)? || changed)
    }

    /// Gives a package's entry another version, or removes its version. Returns whether anything changed; a
    /// package that is not listed is not added.
    ///
    /// # Errors
    ///
    /// When the manifest is wrong, or cannot be changed safely.
    pub fn set_version(
        &mut self,
        section: Section,
        package: &Reference,
        version: Option<VersionSpec>,
    ) -> Result<bool, EditError> {
        let Some((index, _)) = self.find(section, package)? else { return Ok(false) };
        self.set_version_at(section, index, version)
    }

    /// As [`Self::set_version`], for a version at which the entry has to begin. Where its range says that prereleases are wanted, it
    /// would begin at one, so it no longer says that.
    ///
    /// # Errors
    ///
    /// As [`Self::set_version`].
    pub fn set_start(
        &mut self,
        section: Section,
        package: &Reference,
        version: Option<VersionSpec>,
    ) -> Result<bool, EditError> {
        let Some((index, old)) = self.find(section, package)? else { return Ok(false) };
        let prerelease = old.prerelease && self.dialect.is_none();
        let reference = old.reference.with_version(version);
        let wanted = Requirement { reference, prerelease, ..old.clone() };
        self.rewrite(section, index, &old, &wanted)
    }

    /// As [`Self::set_version`], for the entry with the number `index` in its section: a chart may list a package several times.
    ///
    /// # Errors
    ///
    /// As [`Self::set_version`], and when the entry is in another file.
    pub fn set_version_at(
        &mut self,
        section: Section,
        index: usize,
        version: Option<VersionSpec>,
    ) -> Result<bool, EditError> {
        let Some(old) = self.requirements(section)?.into_iter().nth(index) else {
            self.check_dialect()?;
            return Ok(false);
        };
        let wanted = Requirement { reference: old.reference.with_version(version), ..old.clone() };
        self.rewrite(section, index, &old, &wanted)
    }

    /// Removes a package's entry. Returns whether it was there.
    ///
    /// # Errors
    ///
    /// When the manifest is wrong, or cannot be changed safely.
    pub fn remove(&mut self, section: Section, package: &Reference) -> Result<bool, EditError> {
        let Some((index, _)) = self.find(section, package)? else { return Ok(false) };
        let mut expected = self.requirements(section)?;
        let line = expected.remove(index).line;
        let removed = self.take(section, index, &expected);
        removed.map_err(|error| error.in_line(line))
    }

    /// Removes the entry with the number `index`; `expected` are the others.
    fn take(
        &mut self,
        section: Section,
        index: usize,
        expected: &[Requirement],
    ) -> Result<bool, EditError> {
        let place = self.place(index)?;
        if let Some(dialect) = &self.dialect
            && let Some(text) = self.changed_by(&**dialect, &Change::Remove { index: place })?
        {
            return self.accept(section, text, expected);
        }
        let text = step(&self.path, &self.text, section, |patch, collection| {
            patch.take(collection, place)
        })?;
        self.accept(section, text, expected)
    }

    /// The entry for a package, with its place in the section: of several, the one with the same version.
    fn find(
        &self,
        section: Section,
        package: &Reference,
    ) -> Result<Option<(usize, Requirement)>, EditError> {
        self.find_by(section, package, |_| false)
    }

    /// As [`Self::find`]; entries that are `last` come after all others.
    fn find_by(
        &self,
        section: Section,
        package: &Reference,
        last: impl Fn(&Requirement) -> bool,
    ) -> Result<Option<(usize, Requirement)>, EditError> {
        let requirements = self.requirements(section)?.into_iter().enumerate();
        let entries =
            requirements.filter(|(_, entry)| self.is_same_package(&entry.reference, package));
        let found = entries
            .min_by_key(|(_, entry)| (last(entry), entry.reference.version() != package.version()));
        if found.is_none() && section == Section::Dependencies {
            self.check_dialect()?;
        }
        Ok(found)
    }

    fn is_same_package(&self, left: &Reference, right: &Reference) -> bool {
        match (left.local(), right.local()) {
            (Some(_), Some(_)) => Requirement::package_key(left) == Requirement::package_key(right),
            (None, None) => left.id(&self.defaults) == right.id(&self.defaults),
            _ => false,
        }
    }

    fn append(&mut self, section: Section, new: &Requirement) -> Result<bool, EditError> {
        if let Some(dialect) = self.dialect.clone() {
            return self.append_in(&*dialect, section, new);
        }
        let mut expected = self.requirements(section)?;
        let mut key = None;
        let list = section.key();
        let mut text = layout::change(&self.path, &self.text, list, |patch, collection| {
            let entry = match collection {
                Some(collection) if collection.is_map_collection() => entry::in_map(new, &expected),
                _ => entry::in_list(new),
            };
            key.clone_from(&entry.key);
            patch.add(list, &entry)
        })?;
        if new.indirect {
            text = entry::mark(&self.path, &text, section, expected.len(), true)?;
        }
        expected.push(Requirement { alias: key, ..new.clone() });
        self.accept(section, text, &expected)
    }

    /// Changes an entry to what is wanted.
    fn rewrite(
        &mut self,
        section: Section,
        index: usize,
        old: &Requirement,
        wanted: &Requirement,
    ) -> Result<bool, EditError> {
        let mut expected = self.requirements(section)?;
        if let Some(entry) = expected.get_mut(index) {
            entry.clone_from(wanted);
        }
        if self.dialect.is_some() {
            let changed = self.rewrite_in_dialect(section, index, expected);
            return changed.map_err(|error| error.in_line(old.line));
        }
        let mut text = self.text.clone();
        let unmarked = Requirement { indirect: old.indirect, ..wanted.clone() };
        if !says_the_same(old, &unmarked) {
            text = step(&self.path, &text, section, |patch, collection| {
                entry::rewrite(patch, collection, index, old, wanted)
            })?;
        }
        if old.indirect != wanted.indirect {
            text = entry::mark(&self.path, &text, section, index, wanted.indirect)?;
        }
        self.accept(section, text, &expected).map_err(|error| error.in_line(old.line))
    }

    /// Accepts the changed text if it means what was intended.
    fn accept(
        &mut self,
        section: Section,
        text: String,
        expected: &[Requirement],
    ) -> Result<bool, EditError> {
        let found = Self { text: text.clone(), ..self.clone() }.requirements(section);
        if !found.is_ok_and(|found| are_the_same(&found, expected)) {
            return Err(EditError::unsafe_at(&self.path));
        }
        let changed = text != self.text;
        self.text = text;
        Ok(changed)
    }
}

/// An entry with what a new one for its package says besides the reference.
fn joined(old: &Requirement, new: &Requirement) -> Requirement {
    Requirement {
        channel: new.channel.clone().or_else(|| old.channel.clone()),
        app_version: new.app_version.clone().or_else(|| old.app_version.clone()),
        prerelease: new.prerelease || old.prerelease,
        indirect: new.indirect,
        ..old.clone()
    }
}

/// The text after a change to a section; the same text if the section is not there.
fn step(
    path: &Path,
    text: &str,
    section: Section,
    change: impl for<'d> FnOnce(&mut Patch<'d>, Collection<'d>) -> Result<(), SourceError>,
) -> Result<String, EditError> {
    layout::change(path, text, section.key(), |patch, collection| {
        collection.map_or(Ok(()), |collection| change(patch, collection))
    })
}

/// The dependencies in a document.
fn requirements(
    document: &Document<'_>,
    section: Section,
) -> Result<Vec<Requirement>, SourceError> {
    let root = document.root_value();
    if root.is_null() {
        return Ok(Vec::new());
    }
    let found = root.entries()?.find(|(key, _)| key.as_str() == section.key());
    match found {
        Some((_, value)) if !value.is_null() => requirement::read(value, &mut Vec::new()),
        _ => Ok(Vec::new()),
    }
}

/// Whether two entries require the same, regardless of their lines.
fn says_the_same(left: &Requirement, right: &Requirement) -> bool {
    let without_version = |entry: &Requirement| {
        let reference = entry.reference.with_version(None);
        Requirement { reference, line: 0, ..entry.clone() }
    };
    without_version(left) == without_version(right)
        && left.reference.spec() == right.reference.spec()
}

/// Whether a section contains what is expected.
fn are_the_same(found: &[Requirement], expected: &[Requirement]) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| says_the_same(found, expected))
}
