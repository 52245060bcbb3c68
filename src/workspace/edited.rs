//! Members that are not where references lead, and are found there all the same: packages that mu has made editable,
//! and packages behind links inside the workspace.
//!
//! The disk is asked only where there is an edit, or a link that a reference could go through.

use std::path::{Path, PathBuf};

use mu_formats::helm::HelmRepositoryAliases;

use super::edits::{Edit, RecordedEdits, State};
use super::left_out::LeftOutReason;
use super::members::place;
use super::{Member, Workspace, WorkspaceError, in_base};
use crate::formats;
use crate::fs;
use crate::manifest::Warning;
use crate::reference::{PackageId, Version};

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
            self.warnings.push(Warning::new(&folder, None, message));
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
    place(root, &fs::canonicalize(link).ok().filter(|target| target.is_dir())?)
}
