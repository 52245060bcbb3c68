//! Members that a sparse checkout leaves out: only their manifests are known.

use std::path::Path;

use mu_formats::Reading;
use mu_formats::helm::Aliases;

use super::{Workspace, WorkspaceError};
use crate::formats;
use crate::manifest::{Loaded, Manifest};

impl Workspace {
    /// Adds the member whose manifest has this path and text in the checkout, and is left out of it. What is no member is passed over.
    ///
    /// # Errors
    ///
    /// When the manifest is wrong, or another member is the same package.
    pub(crate) fn add_left_out(
        &mut self,
        path: &str,
        text: &str,
        aliases: &dyn Fn() -> Aliases,
    ) -> Result<(), WorkspaceError> {
        let path = self.root.join(path);
        let Some(folder) = formats::folder_of(&path) else { return Ok(()) };
        let Some(place) = folder.strip_prefix(&self.root).ok().and_then(Path::to_str) else {
            return Ok(());
        };
        let format = formats::format_of(&path);
        let is_meant = format.is_none_or(|format| self.settings.formats.contains(&format.name));
        if !self.patterns.may_be_member(place) || !is_meant {
            return Ok(());
        }
        let place = place.to_owned();
        let (manifest, warnings) = match format {
            None => Manifest::parse(&path, text)?,
            Some(format) => {
                let aliases = aliases();
                let around =
                    Reading { is_own: true, aliases: Some(&aliases), ..Reading::default() };
                (formats::parse(format, &path, text, None, &around)?, Vec::new())
            }
        };
        let text = text.to_owned();
        self.add_loaded(place, Loaded { manifest, path, text, warnings }, true)?;
        self.members.sort_by(|left, right| left.place.cmp(&right.place));
        self.refuse_repeated()
    }
}
