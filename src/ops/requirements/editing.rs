//! Edits of manifests that are written only after everything else has succeeded.

use std::path::PathBuf;

use crate::formats;
use crate::fs;
use crate::manifest::edit::{EditError, Editor};
use crate::ops::session::changed_manifests::ChangedManifests;
use crate::ops::{CommandError, Session};

/// A file and its new content, to be written after everything else has succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file.
    pub path: PathBuf,
    /// Its new text.
    pub text: String,
}

/// Changes of manifests that are not on disk yet. The session keeps its manifests as they were read.
#[derive(Debug, Default)]
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
        let member = &session.workspace.members[index];
        let defaults = &member.defaults;
        let path: PathBuf = member.manifest_path.clone();
        let known = self.edits.iter().position(|edit| edit.path == path);
        let text = match known {
            Some(known) => self.edits[known].text.clone(),
            None => fs::read_text(&path)?,
        };
        let environment = &session.environment;
        let mut editor = formats::editor(&path, text, defaults, environment);
        if !change(&mut editor)? {
            return Ok(false);
        }
        let text = editor.into_text();
        let manifest = formats::parse_own(&path, &text, environment)?;
        self.changed.set(index, manifest);
        self.changes += 1;
        match known {
            Some(known) => self.edits[known].text = text,
            None => self.edits.push(Edit { path, text }),
        }
        Ok(true)
    }
}
