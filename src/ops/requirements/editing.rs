//! Edits of manifests that are written only after everything else has succeeded.

use std::path::PathBuf;

use crate::formats;
use crate::manifest::Manifest;
use crate::manifest::edit::{EditError, Editor, Section};
use crate::ops::session::changed_manifests::ChangedManifests;
use crate::ops::{CommandError, Session};
use crate::reference::VersionSpec;

/// A file and its new content, to be written after everything else has succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file.
    pub path: PathBuf,
    /// Its new text.
    pub text: String,
}

/// Changes of manifests that are not on disk yet. The session keeps its manifests as they were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Editing {
    /// The edits, to be written at the end.
    pub(crate) edits: Vec<Edit>,
    /// The manifests that were changed.
    pub(crate) changed: ChangedManifests,
    /// How often a manifest was changed: what was collected before the last change is outdated.
    pub(crate) changes: usize,
}

impl Editing {
    /// Changes the text of a member's manifest; returns whether anything changed.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or the change cannot be made in it.
    pub(crate) fn change(
        &mut self,
        session: &Session,
        index: usize,
        change: impl FnOnce(&mut Editor) -> Result<bool, EditError>,
    ) -> Result<bool, CommandError> {
        let mut editor = self.editor(session, index)?;
        if !change(&mut editor)? {
            return Ok(false);
        }
        let text = editor.into_text();
        let path = formats::lists_dependencies(&session.workspace.members[index].manifest_path);
        let manifest = formats::parse_own(&path, &text, session.short_names())?;
        self.set(index, manifest);
        match self.edits.iter_mut().find(|edit| edit.path == path) {
            Some(edit) => edit.text = text,
            None => self.edits.push(Edit { path, text }),
        }
        Ok(true)
    }

    /// An editor of a member's manifest as it is after the changes so far.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub(crate) fn editor(&self, session: &Session, index: usize) -> Result<Editor, CommandError> {
        let member = &session.workspace.members[index];
        let path = formats::lists_dependencies(&member.manifest_path);
        let text = match self.edits.iter().find(|edit| edit.path == path) {
            Some(edit) => edit.text.clone(),
            None => formats::dependencies_text(&path)?,
        };
        Ok(formats::editor(&path, text, &member.defaults, session.short_names()))
    }

    /// Supposes another version for an entry of a member's manifest, whether or not its format can say that: nothing of it is
    /// written.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub(crate) fn suppose(
        &mut self,
        session: &Session,
        (index, section): (usize, Section),
        number: usize,
        version: Option<VersionSpec>,
    ) -> Result<(), CommandError> {
        let editor = self.editor(session, index)?;
        let mut manifest = self.changed.manifest(&session.workspace, index).clone();
        let entries = match section {
            Section::Dependencies => &mut manifest.dependencies,
            Section::DevDependencies => &mut manifest.dev_dependencies,
        };
        if let Some(entry) = entries.get_mut(number) {
            entry.reference = entry.reference.with_version(version);
            entry.prerelease = editor.takes_prereleases(entry);
        }
        self.set(index, manifest);
        Ok(())
    }

    fn set(&mut self, index: usize, manifest: Manifest) {
        self.changed.set(index, manifest);
        self.changes += 1;
    }
}
