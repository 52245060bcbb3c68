//! Finds what a packs folder contains by hashing: if the state is not known, and always for vendored packs.
//!
//! The state is unknown in a checkout, in a folder that was moved or copied, and after the cache was cleaned.
//! Vendored packs change with the checkout, so earlier results about them prove nothing.

use mu_provider::Kind;

use crate::formats::manifest_names;
use crate::packs::error::PacksError;
use crate::packs::folder::PacksFolder;
use crate::packs::folders::Folders;
use crate::packs::state::{Pack, State};
use crate::packs::vendored::is_for_git;
use crate::packs::wanted::WantedPack;
use crate::workspace::Link;

impl PacksFolder {
    /// Whether every pack in `wanted` is here as the state says, and nothing else is.
    ///
    /// Reads one or two files of each pack and hashes nothing.
    pub fn is_current(&self, state: &State, wanted: &[WantedPack]) -> bool {
        let mut folders = Folders::around_packs(self);
        state.pending.is_empty()
            && state.packs.len() == wanted.len()
            && wanted.iter().all(|wanted| self.is_installed(state, wanted, &mut folders))
    }

    /// The packs of `wanted` that are not here as the state says.
    pub fn missing<'wanted>(
        &self,
        state: &State,
        wanted: &'wanted [WantedPack],
    ) -> Vec<&'wanted WantedPack> {
        let mut folders = Folders::around_packs(self);
        wanted.iter().filter(|wanted| !self.is_installed(state, wanted, &mut folders)).collect()
    }

    /// Whether one pack is here as the state says. A pack that cannot be read is not.
    fn is_installed(&self, state: &State, wanted: &WantedPack, folders: &mut Folders<'_>) -> bool {
        !state.pending.contains(&wanted.place)
            && state.packs.get(&wanted.place).is_some_and(|pack| {
                // What is no longer vendored is whole again.
                let is_whole = || !pack.omitted.iter().any(is_for_git);
                wanted.accepts(&pack.digest)
                    && pack.version == wanted.version
                    && (is_whole() || self.is_vendored())
            })
            && match folders.kind(&wanted.place) {
                Ok(Some(Kind::Folder)) => has_manifest(folders, &wanted.place),
                Ok(Some(Kind::Symlink)) => {
                    wanted.possible_digests().any(|digest| self.is_stored(&wanted.place, &digest))
                }
                _ => false,
            }
    }

    /// What is installed here; `locked` returns what the lock beside these packs names, if that is needed.
    ///
    /// # Errors
    ///
    /// When state or record cannot be read, or the path of a pack contains a link.
    pub fn recognized(
        &self,
        locked: impl FnOnce() -> Vec<WantedPack>,
    ) -> Result<State, PacksError> {
        Ok(self.find_state(locked)?.0)
    }

    /// The state, and whether it is new.
    fn find_state(
        &self,
        locked: impl FnOnce() -> Vec<WantedPack>,
    ) -> Result<(State, bool), PacksError> {
        let is_vendored = self.is_vendored();
        let mut state = match self.known_state() {
            Some(state) if !is_vendored => return Ok((state, false)),
            known => known.unwrap_or_default(),
        };
        let (before, locked) = (state.packs.clone(), locked());
        let record = self.record()?;
        let places: Vec<&str> = locked.iter().map(|pack| &*pack.place).collect();
        let mut folders = Folders::around_packs(self);
        // Whether all that is found is a link to the store, and something is.
        let mut are_links = None;
        for pack in &locked {
            let kind = folders.kind(&pack.place)?;
            if state.pending.contains(&pack.place) {
                continue;
            }
            let found = pack.possible_digests().find_map(|digest| {
                let omitted = record.omitted_parts(&pack.place, &digest, &places);
                let is_it = || {
                    let found = self.digest_of(&pack.place, &places, &omitted, &digest);
                    found.is_ok_and(|found| found == digest)
                };
                let is_there = match kind {
                    Some(Kind::Folder) => is_it(),
                    // Trees in the store were hashed.
                    Some(Kind::Symlink) => !is_vendored && self.is_stored(&pack.place, &digest),
                    _ => false,
                };
                is_there.then(|| Pack { digest, ..Pack::new(pack, omitted) })
            });
            if let Some(found) = found {
                are_links = Some(kind == Some(Kind::Symlink) && are_links.unwrap_or(true));
                state.packs.insert(pack.place.clone(), found);
            } else if state.packs.get(&pack.place).is_some_and(|one| pack.accepts(&one.digest)) {
                state.packs.remove(&pack.place);
            }
        }
        if are_links == Some(true) {
            state.link.get_or_insert(Link::Symlink);
        }
        let is_news = state.packs != before;
        Ok((state, is_news))
    }

    /// Records what [`PacksFolder::recognized`] finds, and returns whether that was new.
    ///
    /// Does nothing if the state is known and packs are not vendored. The caller holds the packs folder's
    /// lock.
    ///
    /// # Errors
    ///
    /// As [`PacksFolder::recognized`], and when the state cannot be written.
    pub fn recognize(
        &self,
        locked: impl FnOnce() -> Vec<WantedPack>,
    ) -> Result<(State, bool), PacksError> {
        let (state, is_news) = self.find_state(locked)?;
        if is_news {
            self.write_state(&state)?;
        }
        Ok((state, is_news))
    }
}

fn has_manifest(folders: &mut Folders<'_>, place: &str) -> bool {
    let Ok(Some((folder, leaf))) = folders.folder_at(place) else { return false };
    manifest_names().any(|name| folder.kind(&[leaf, "/", name].concat()).is_some())
}
