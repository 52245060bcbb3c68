//! The folders that packs are in, each opened once for all of its packs, and never through a symbolic link.

use std::io::ErrorKind;

use mu_provider::{Folder, Kind};
use rustc_hash::FxHashSet;

use crate::packs::error::PacksError;
use crate::packs::folder::PacksFolder;

/// After how many looks into a folder it is listed instead: a listing takes some five system calls.
const LISTED_AFTER: u32 = 5;

/// Opens the folders around packs. The last one is kept, so sorted places open each folder once.
pub(super) struct Folders<'packs> {
    packs: &'packs PacksFolder,
    /// The packs folder: not opened yet, absent, or open.
    base: Option<Option<Folder>>,
    last: Option<Last>,
}

/// The last folder below the packs folder that was opened.
struct Last {
    above: String,
    /// `None` if it does not exist.
    folder: Option<Folder>,
    looks: u32,
    /// Folders in it, once it is listed.
    listed: FxHashSet<String>,
}

impl Last {
    fn new(above: &str, folder: Option<Folder>) -> Self {
        Self { above: above.to_owned(), folder, looks: 0, listed: FxHashSet::default() }
    }

    /// The kind of what is at `leaf`. What the listing does not name as it is spelled here is looked at: file
    /// systems can hide kinds, and find a name by another spelling.
    fn kind(&mut self, leaf: &str) -> Option<Kind> {
        let folder = self.folder.as_ref()?;
        if self.looks == LISTED_AFTER {
            self.listed = folder.folders().unwrap_or_default().into_iter().collect();
        }
        self.looks = self.looks.saturating_add(1);
        if self.listed.contains(leaf) { Some(Kind::Folder) } else { folder.kind(leaf) }
    }
}

impl<'packs> Folders<'packs> {
    pub(super) fn around_packs(packs: &'packs PacksFolder) -> Self {
        Self { packs, base: None, last: None }
    }

    /// The folder of the pack at `place`, and the pack's name in it; `None` if there is no such folder.
    ///
    /// # Errors
    ///
    /// When a part of the path is a link, or cannot be opened.
    pub(super) fn folder_at<'place>(
        &mut self,
        place: &'place str,
    ) -> Result<Option<(&Folder, &'place str)>, PacksError> {
        let (above, leaf) = split(place);
        Ok(self.last(above)?.folder.as_ref().map(|folder| (folder, leaf)))
    }

    /// The kind of what is at `place`, if anything; a symbolic link is not followed.
    ///
    /// # Errors
    ///
    /// As [`Folders::at`].
    pub(super) fn kind(&mut self, place: &str) -> Result<Option<Kind>, PacksError> {
        let (above, leaf) = split(place);
        Ok(self.last(above)?.kind(leaf))
    }

    fn last(&mut self, above: &str) -> Result<&mut Last, PacksError> {
        if self.last.as_ref().is_none_or(|last| last.above != above) {
            let folder = self.open(above)?;
            self.last = Some(Last::new(above, folder));
        }
        Ok(self.last.as_mut().expect("it was set just now"))
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
        let is_there = |last: &Last| last.above == above && last.folder.is_some();
        if !self.last.as_ref().is_some_and(is_there) {
            let base = match self.base.take().flatten() {
                Some(base) => base,
                None => self.packs.make()?,
            };
            let made = base.open_or_make(above);
            self.base = Some(Some(base));
            let folder = made.map_err(|error| self.packs.not_opened(above, error))?;
            self.last = Some(Last::new(above, Some(folder)));
        }
        let folder = self.last.as_ref().and_then(|last| last.folder.as_ref());
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
