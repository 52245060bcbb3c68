//! Packs that are in place though the state does not know them: those of a checkout.
//!
//! They are hashed, and used as they are if they are the right ones. Nothing that a person put there is
//! overwritten.

use std::collections::HashSet;
use std::path::PathBuf;

use mu_provider::{Digest, Tree};

use crate::manifest::{Manifest, YAML_NAME};
use crate::packs::hash::{HashError, hash_folder};
use crate::packs::install::{Wanted, first_from, from, holds};
use crate::packs::state::{Pack, State};
use crate::packs::vendored::Record;
use crate::packs::{PacksError, PacksFolder, has_manifest, is_below};

/// Takes note of wanted packs that are in place, and are the right ones.
///
/// # Errors
///
/// When something else is where a pack belongs.
pub(super) fn adopt(
    packs: &PacksFolder,
    state: &mut State,
    wanted: &[Wanted],
) -> Result<(), PacksError> {
    if !packs.is_vendored() {
        let mut above = (PathBuf::new(), false);
        return wanted.iter().try_for_each(|pack| {
            // Packs come sorted, and most share the folder above them, which is looked at once.
            let path = packs.pack_path(&pack.place);
            let parent = path.parent().unwrap_or(packs.path());
            if parent.as_os_str() != above.0.as_os_str() {
                above = (parent.to_owned(), parent.exists());
            }
            if above.1 { adopt_one(packs, state, pack, wanted) } else { Ok(()) }
        });
    }
    let record = packs.record()?;
    wanted.iter().try_for_each(|pack| adopt_vendored(packs, state, pack, wanted, &record))
}

impl PacksFolder {
    /// Takes note of vendored packs that a checkout brought; `locked` is what the lock beside them names.
    ///
    /// The caller holds the packs folder's lock.
    ///
    /// # Errors
    ///
    /// When something else is where a pack belongs, or state or record cannot be read or written.
    pub fn adopt_vendored(&self, locked: &[Wanted]) -> Result<(), PacksError> {
        let mut state = self.state()?;
        let known = state.packs.clone();
        adopt(self, &mut state, locked)?;
        if state.packs == known { Ok(()) } else { Ok(self.write_state(&state)?) }
    }
}

/// Takes note of a vendored pack. What a checkout brought counts more than what the state remembers of
/// an earlier one.
fn adopt_vendored(
    packs: &PacksFolder,
    state: &mut State,
    pack: &Wanted,
    wanted: &[Wanted],
    record: &Record,
) -> Result<(), PacksError> {
    let known = state.packs.get(&pack.place);
    let path = packs.pack_path(&pack.place);
    if state.pending.contains(&pack.place)
        || known.is_some_and(|known| known.digest == pack.digest)
        || !has_manifest(&path)
    {
        return Ok(());
    }
    let partial = record.partial(&pack.place, &pack.digest);
    let expected = partial.unwrap_or(pack.digest);
    let others = wanted.iter().map(|other| &other.place);
    let found = packs.digest_of(&pack.place, others, &expected);
    if found.is_ok_and(|digest| digest == expected) {
        state.packs.insert(pack.place.clone(), installed(pack, partial));
    } else if known.is_none() {
        return Err(PacksError::InTheWay { path, digest: pack.digest });
    }
    Ok(())
}

fn installed(pack: &Wanted, partial: Option<Digest>) -> Pack {
    Pack { id: pack.id.clone(), version: pack.version.clone(), digest: pack.digest, partial }
}

/// Takes note of a pack that is in place though the state does not know it, if it is the right one.
///
/// So a packs folder that came with a checkout is used as it is, and nothing that a person put there
/// is overwritten.
fn adopt_one(
    packs: &PacksFolder,
    state: &mut State,
    pack: &Wanted,
    wanted: &[Wanted],
) -> Result<(), PacksError> {
    if state.packs.contains_key(&pack.place) || state.pending.contains(&pack.place) {
        return Ok(());
    }
    // A folder inside a pack of mu's own makes room for the pack that belongs there.
    let mut around = pack.place.match_indices('/').map(|(end, _)| &pack.place[..end]);
    if around.any(|place| state.packs.contains_key(place) || state.pending.contains(place)) {
        return Ok(());
    }
    let path = packs.pack_path(&pack.place);
    let Ok(mut entries) = std::fs::read_dir(&path) else {
        return Ok(());
    };
    let is_only_parent = |entry: &std::fs::DirEntry| {
        let Ok(name) = entry.file_name().into_string() else { return false };
        let place = format!("{}/{name}", pack.place);
        holds(|place| first_from(wanted, place), &place)
            || holds(|at| Some(state.packs.range::<str, _>(from(at)).next()?.0.as_str()), &place)
            || holds(|at| Some(state.pending.range::<str, _>(from(at)).next()?.as_str()), &place)
    };
    if entries.all(|entry| entry.is_ok_and(|entry| is_only_parent(&entry))) {
        return Ok(());
    }
    let found = packs.digest_of(&pack.place, state.packs.keys(), &pack.digest);
    if found.is_ok_and(|digest| digest == pack.digest) {
        state.packs.insert(pack.place.clone(), installed(pack, None));
        return Ok(());
    }
    Err(PacksError::InTheWay { path, digest: pack.digest })
}

impl PacksFolder {
    /// The digest of the pack at `place`, without those of the packs at `others` that are inside it;
    /// `expected` if it can be that.
    ///
    /// A manifest that mu generated is no part of the package, so it is left out where that leads to
    /// what is expected.
    ///
    /// # Errors
    ///
    /// When something in it cannot be read.
    pub fn digest_of(
        &self,
        place: &str,
        others: impl IntoIterator<Item = impl AsRef<str>>,
        expected: &Digest,
    ) -> Result<Digest, HashError> {
        let folder = self.pack_path(place);
        let others = others.into_iter();
        let skip: HashSet<PathBuf> = others
            .filter(|other| is_below(other.as_ref(), place))
            .map(|other| self.pack_path(other.as_ref()))
            .collect();
        let tree = hash_folder(&folder, &skip)?;
        let digest = tree.digest();
        let head = if digest == *expected { Ok(None) } else { Manifest::load_head(&folder) };
        if !head.is_ok_and(|head| head.is_some_and(|head| head.generated)) {
            return Ok(digest);
        }
        let own = tree.entries().iter().filter(|entry| entry.path != YAML_NAME);
        Ok(Tree::new(own.cloned().collect()).digest())
    }
}
