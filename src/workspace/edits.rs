//! Members that are not where references lead, and are found there all the same: packages that mu has made editable,
//! and packages behind links inside the workspace.
//!
//! Which packages are editable is in `.mu/edits.json`, which Git ignores. The file says where each clone belongs;
//! whether it is there, or in the trash, is what the disk says. So the file is right whenever a run ends between a
//! change of the file and a move of the folder. It is read like everything that a checkout may bring: nothing in it
//! leads out of the workspace. Git keeps a note of it, which counts when the file is gone.
//!
//! The disk is asked only where there is an edit, or a link that a reference could go through. [`crate::ops`] makes and
//! ends edits.

use std::path::{Path, PathBuf};

use mu_formats::helm::HelmRepositoryAliases;
use mu_provider::{Commit, Folder, InnerPath, Kind, OwnPath, TreeError};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::members::{LeftOutReason, place_below};
use super::root::{ForeignError, MU_FOLDER};
use super::{Member, Workspace, WorkspaceError, in_base, root};
use crate::formats;
use crate::fs::{self, FileError};
use crate::manifest::FileWarning;
use crate::reference::{PackageId, Version};

/// The file, in `.mu`.
pub const EDITS_FILE: &str = "edits.json";

/// The lock of what the edits add and move, in `.mu`.
pub const EDITS_LOCK: &str = "edits.lock";

/// The folder of clones that no reference leads to, and of the trash.
pub const EDIT_FOLDER: OwnPath = InnerPath::own(".mu/edit");

/// The folder of clones whose edit has ended.
pub const TRASH: OwnPath = InnerPath::own(".mu/edit/trash");

/// All edits, as the file has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEdits {
    /// The edits, in the order in which they were made.
    pub edits: Vec<Edit>,
}

/// One package that is being edited, or was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The package.
    pub id: String,
    /// Its folder, relative to the workspace's root.
    #[serde(deserialize_with = "read_place")]
    pub folder: InnerPath,
    /// The root of its clone, relative to the workspace's root.
    #[serde(deserialize_with = "read_place")]
    pub clone: InnerPath,
    /// The version that was locked.
    pub version: String,
    /// The branch that was made.
    pub branch: String,
    /// The commit that it began at.
    pub commit: Commit,
    /// Where it was cloned from; nothing for a repository that was made from a pack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether its manifest had another version where it began. Then a tag is its version, whatever the manifest says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tagged: bool,
    /// Whether the folder stays and is not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Its name in the trash, if it is there or about to be.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_name")]
    pub trash: Option<InnerPath>,
    /// When it was put into the trash, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trashed: Option<i64>,
}

/// What has become of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its package is used from its folder.
    InUse,
    /// Its folder is there, and not used.
    Kept,
    /// Its folder is in the trash.
    InTrash,
    /// Its folder is gone.
    Missing,
}

impl Edit {
    /// Its package.
    pub fn package(&self) -> Option<PackageId> {
        PackageId::parse(&self.id).ok()
    }

    /// What the disk says of it.
    pub fn state_on_disk(&self, root: &Path) -> State {
        let opened = Folder::at(root);
        // What is behind a link is nobody's edit.
        let is_there = |path: &InnerPath| {
            let opened = opened.as_ref();
            opened.is_ok_and(|root| matches!(root.look_at(path), Ok(Some(Kind::Folder))))
        };
        match &self.trash {
            Some(name) if is_there(&TRASH.join(name)) => State::InTrash,
            _ if !is_there(&self.clone) => State::Missing,
            _ if self.kept => State::Kept,
            _ => State::InUse,
        }
    }
}

/// Checks where a clone is, or is to be: nowhere in what belongs to Git or mu, except for [`EDIT_FOLDER`].
pub fn place(text: &str) -> Result<InnerPath, TreeError> {
    let own = text.strip_prefix(EDIT_FOLDER.as_str()).and_then(|rest| rest.strip_prefix('/'));
    own.map_or_else(
        || InnerPath::parse(text),
        |rest| Ok(EDIT_FOLDER.join(&InnerPath::parse(rest)?)),
    )
}

fn read_place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<InnerPath, D::Error> {
    let text = String::deserialize(deserializer)?;
    place(&text).map_err(|error| D::Error::custom(format!("it leads nowhere here: {error}")))
}

fn read_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<InnerPath>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    let name = text.map(|text| InnerPath::name(&text)).transpose();
    name.map_err(|error| D::Error::custom(format!("it leads nowhere here: {error}")))
}

/// Why the edits cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EditsError {
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something is a link that must not be one.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// The text is not what mu writes.
    #[error("`{}` is not a list of edits: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl RecordedEdits {
    /// The edits of the workspace at `root`.
    pub fn read(root: &Path) -> Result<Self, EditsError> {
        let path = root.join(MU_FOLDER).join(EDITS_FILE);
        if fs::metadata_if_there(&path)?.is_none() {
            return Ok(Self::noted(root));
        }
        root::refuse_links_of_edits(root)?;
        Self::parse(&path, &fs::read_text(&path)?)
    }

    /// The edits as Git's note has them, after `git clean -x` has removed the file: it leaves clones alone. Those whose clones are gone
    /// have ended, and a note that cannot be read is none.
    fn noted(root: &Path) -> Self {
        let text = root::noted_by_git(root, EDITS_FILE);
        let noted = text.and_then(|text| Self::parse(&root.join(MU_FOLDER), &text).ok());
        let mut noted = noted.unwrap_or_default();
        if !noted.edits.is_empty() && root::refuse_links_of_edits(root).is_err() {
            return Self::default();
        }
        noted.edits.retain(|edit| edit.state_on_disk(root) != State::Missing);
        noted
    }

    fn parse(path: &Path, text: &str) -> Result<Self, EditsError> {
        let damaged = |why: String| EditsError::Damaged { path: path.to_owned(), why };
        let edits: Self = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        match edits
            .edits
            .iter()
            .find(|edit| !edit.folder.is_in(&edit.clone) || edit.package().is_none())
        {
            Some(edit) => Err(damaged(format!("the entry of `{}` leads nowhere here", edit.id))),
            None => Ok(edits),
        }
    }

    /// Writes them, and notes them where `git clean` does not reach.
    pub fn write(&self, root: &Path) -> Result<(), FileError> {
        let (opened, file) = (Folder::at(root)?, InnerPath::own(".mu/edits.json").into());
        let text = (!self.edits.is_empty())
            .then(|| serde_json::to_string_pretty(self).expect("texts always serialise") + "\n");
        match &text {
            Some(text) => opened.write(&file, text.as_bytes())?,
            None => opened.remove_file(&file)?,
        }
        root::note_by_git(root, EDITS_FILE, text.as_deref());
        Ok(())
    }
}

impl Workspace {
    /// The edit whose clone a folder is in.
    pub fn edit_around(&self, folder: &Path) -> Option<&Edit> {
        self.edits.iter().find(|edit| folder.starts_with(self.root.join(&edit.clone)))
    }

    /// Adds the packages of edits that are in use, wherever their folders are, and drops those of edits that have ended.
    pub(super) fn add_edits(
        &mut self,
        aliases: &dyn Fn() -> HelmRepositoryAliases,
    ) -> Result<(), WorkspaceError> {
        let RecordedEdits { edits } = RecordedEdits::read(&self.root)?;
        for edit in edits {
            match edit.state_on_disk(&self.root) {
                State::InUse => self.add_edit(edit, aliases)?,
                State::Kept => {
                    let clone = self.root.join(&edit.clone);
                    self.members.retain(|member| !member.folder.starts_with(&clone));
                    self.left_out_mut().note_folder_tree(&clone, LeftOutReason::Ended);
                }
                State::InTrash | State::Missing => {}
            }
        }
        let is_edit = |member: &Member| {
            self.edits.iter().any(|edit| member.folder == self.root.join(&edit.folder))
        };
        let is_used = |member: &Member| {
            self.edit_around(&member.folder).is_none()
                || is_edit(member)
                || self.is_place_of_package(&member.id, &member.place)
        };
        let used: Vec<bool> = self.members.iter().map(is_used).collect();
        let mut used = used.into_iter();
        self.members.retain(|_| used.next().unwrap_or(true));
        self.members.sort_by(|left, right| left.place.cmp(&right.place));
        Ok(())
    }

    fn add_edit(
        &mut self,
        edit: Edit,
        aliases: &dyn Fn() -> HelmRepositoryAliases,
    ) -> Result<(), WorkspaceError> {
        let folder = self.root.join(&edit.folder);
        // A clone may have a link on the way to its package.
        let is_there = self.opened().is_ok_and(|root| root.inner(&edit.folder).is_ok());
        let path = if is_there { formats::locate_manifest(&folder)? } else { None };
        let (Some(id), Some(path)) = (edit.package(), path) else {
            let message = format!("`{}` is not used from here: there is no manifest", edit.id);
            self.warnings.push(FileWarning::new(&folder, None, message));
            return Ok(());
        };
        if !self.members.iter().any(|member| member.folder == folder) {
            self.add_member(edit.folder.to_string(), path, aliases)?;
        }
        let at = (!self.is_place_of_package(&id, edit.folder.as_str())).then(|| in_base(&id));
        let defaults = self.defaults_in(&id);
        for member in self.members.iter_mut().filter(|member| member.folder == folder) {
            // It is what it was fetched as: in Git, the name in a manifest is only a name.
            member.id = id.clone();
            member.defaults.clone_from(&defaults);
            if edit.tagged || member.manifest.version.is_none() {
                member.manifest.version = Version::parse(&edit.version).ok();
            }
            member.found_at.clone_from(&at);
        }
        self.left_out_mut().include_folder(&folder);
        self.edits.push(edit);
        Ok(())
    }

    /// Lets members be found behind links inside the workspace, if references lead through these.
    pub(super) fn follow_links(&mut self, links: &[(String, PathBuf)]) {
        let Ok(root) = fs::canonicalize(&self.root) else { return };
        for (place, link) in links {
            let is_through = |member: &Member| {
                let wanted = [&in_base(&member.id), self.unprefixed(&member.id)];
                wanted.iter().any(|wanted| below(wanted, place).is_some())
            };
            if !self.members.iter().any(is_through) {
                continue;
            }
            let Some(target) = inside(&root, link) else { continue };
            for index in 0..self.members.len() {
                let member = &self.members[index];
                let Some(rest) = below(&member.place, &target) else { continue };
                let at = [place.as_str(), rest].join("/");
                let at = at.trim_end_matches('/').to_owned();
                if !self.is_place_of_package(&member.id, member.found_at())
                    && self.is_place_of_package(&member.id, &at)
                {
                    let folder = self.root.join(&at);
                    self.left_out_mut().include_folder(&folder);
                    self.members[index].found_at = Some(at);
                }
            }
        }
    }

    /// Whether references to a package lead to `place`.
    pub(super) fn is_place_of_package(&self, id: &PackageId, place: &str) -> bool {
        place == in_base(id) || place == self.unprefixed(id)
    }

    /// Takes packages out of the workspace, and returns them.
    pub(crate) fn set_aside(&mut self, is_aside: &dyn Fn(&Member) -> bool) -> Vec<Member> {
        let members = std::mem::take(&mut self.members);
        let (aside, own) = members.into_iter().partition(is_aside);
        self.members = own;
        aside
    }
}

/// The rest of `place` below the folder `above`; empty for that folder itself.
fn below<'p>(place: &'p str, above: &str) -> Option<&'p str> {
    if above.is_empty() {
        return Some(place);
    }
    let rest = place.strip_prefix(above)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// The place in the workspace of the folder that a link leads to; `None` if it leads elsewhere.
fn inside(root: &Path, link: &Path) -> Option<String> {
    place_below(root, &fs::canonicalize(link).ok().filter(|target| target.is_dir())?)
}
