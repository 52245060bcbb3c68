//! Bases without packs. Their packs are built below one folder, and moved into place by one rename for all of
//! them: each rename of a folder from one parent to another blocks all others.

use std::collections::BTreeSet;

use mu_provider::Folder;

use crate::fs::{self, AtPath as _};
use crate::packs::error::PacksError;
use crate::packs::folder::PacksFolder;
use crate::packs::wanted::WantedPack;

/// The bases that do not exist yet, such as `hub.mu.com`.
#[derive(Debug)]
pub(super) struct NewBases {
    bases: BTreeSet<String>,
}

/// The folder in staging where they are built.
const NEW: &str = "new";

impl NewBases {
    /// Finds the bases of `install` that `packs` has no folder for.
    pub(super) fn find(packs: &PacksFolder, install: &[WantedPack]) -> Self {
        let bases: BTreeSet<&str> =
            install.iter().filter_map(|wanted| base(&wanted.place)).collect();
        let is_new = |base: &&str| fs::symlink_metadata(&packs.pack_path(base)).is_err();
        Self { bases: bases.into_iter().filter(is_new).map(str::to_owned).collect() }
    }

    /// Where in staging the pack at `place`, which has this number, is built.
    pub(super) fn staged(&self, place: &str, number: usize) -> String {
        if self.holds(place) { [NEW, "/", place].concat() } else { number.to_string() }
    }

    /// Whether the pack at `place` comes with its base.
    pub(super) fn holds(&self, place: &str) -> bool {
        base(place).is_some_and(|base| self.bases.contains(base))
    }

    /// Moves all bases from staging into place, each as a whole.
    pub(super) fn move_to(&self, packs: &PacksFolder, staging: &Folder) -> Result<(), PacksError> {
        let target = packs.make()?;
        for base in &self.bases {
            let moved = staging.rename(&[NEW, "/", base].concat(), &target, base);
            moved.at("move into place", &packs.pack_path(base))?;
        }
        Ok(())
    }
}

/// The first part of a place.
fn base(place: &str) -> Option<&str> {
    place.split_once('/').map(|(base, _)| base)
}
