//! The folders that packs are in, each opened once for all of its packs, and never through a symbolic link.

use std::io::ErrorKind;

use mu_provider::Folder;

use crate::packs::error::PacksError;
use crate::packs::folder::PacksFolder;

/// Opens the folders around packs. The last one is kept, so sorted places open each folder once.
pub(super) struct Folders<'packs> {
    packs: &'packs PacksFolder,
    /// The packs folder: not opened yet, absent, or open.
    base: Option<Option<Folder>>,
    /// The last folder below it that was opened; `None` if it does not exist.
    last: Option<(String, Option<Folder>)>,
}

impl<'packs> Folders<'packs> {
    pub(super) fn of(packs: &'packs PacksFolder) -> Self {
        Self { packs, base: None, last: None }
    }

    /// The folder of the pack at `place`, and the pack's name in it; `None` if there is no such folder.
    ///
    /// # Errors
    ///
    /// When a part of the path is a link, or cannot be opened.
    pub(super) fn at<'place>(
        &mut self,
        place: &'place str,
    ) -> Result<Option<(&Folder, &'place str)>, PacksError> {
        let (above, leaf) = split(place);
        if self.last.as_ref().is_none_or(|(last, _)| last != above) {
            let folder = self.open(above)?;
            self.last = Some((above.to_owned(), folder));
        }
        let folder = self.last.as_ref().and_then(|(_, folder)| folder.as_ref());
        Ok(folder.map(|folder| (folder, leaf)))
    }

    /// As [`Folders::at`], but creates the folder if necessary.
    ///
    /// # Errors
    ///
    /// When a part of the path is a link, or cannot be created.
    pub(super) fn make_at<'place>(
        &mut self,
        place: &'place str,
    ) -> Result<(&Folder, &'place str), PacksError> {
        let (above, leaf) = split(place);
        let is_there = matches!(&self.last, Some((last, Some(_))) if last == above);
        if !is_there {
            let base = match self.base.take().flatten() {
                Some(base) => base,
                None => self.packs.make()?,
            };
            let made = base.open_or_make(above);
            self.base = Some(Some(base));
            let folder = made.map_err(|error| self.packs.not_opened(above, error))?;
            self.last = Some((above.to_owned(), Some(folder)));
        }
        let folder = self.last.as_ref().and_then(|(_, folder)| folder.as_ref());
        Ok((folder.expect("it was opened just now"), leaf))
    }

    fn open(&mut self, above: &str) -> Result<Option<Folder>, PacksError> {
        if self.base.is_none() {
            self.base = Some(self.packs.open()?);
        }
        let Some(base) = self.base.as_ref().and_then(Option::as_ref) else { return Ok(None) };
        match base.open_folder(above) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.packs.not_opened(above, error)),
        }
    }
}

/// A place's folder, and the name in it. Every place has both: a base and a name.
fn split(place: &str) -> (&str, &str) {
    place.rsplit_once('/').unwrap_or((".", place))
}
