//! Packs that are in place although the state does not know them.
//!
//! They are hashed, and used if they are the right ones. Nothing that a user put there is overwritten.
//!
//! Which files may be executed, where the file system does not tell: on mounts of WSL, SMB and FAT, every file may be.
//!
//! Nothing is trusted here: these are guesses, of which one counts only if it has the expected digest.

use std::collections::HashSet;
use std::fs::DirEntry;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use mu_provider::{Digest, Entry, Folder, Kind, Mode, Tree};

use crate::fs;
use crate::manifest::{Manifest, YAML_NAME};
use crate::packs::files::PartialPacks;
use crate::packs::recognize::{HashError, hash_folder};
use crate::packs::state::{
    Pack, State, WantedPack, first_from, folders_above, from, holds, is_below,
};
use crate::packs::{Folders, PacksError, PacksFolder};
use crate::store::trees_in;

/// The version of the package that belongs into a pack which has this content, if it was published.
pub type VersionOfContent<'known> = dyn Fn(&WantedPack, &Digest) -> Option<String> + 'known;

/// Records wanted packs that are in place, and are the right ones, or other versions that were published.
pub(super) fn adopt(
    packs: &PacksFolder,
    state: &mut State,
    wanted: &[WantedPack],
    published: &VersionOfContent<'_>,
) -> Result<(), PacksError> {
    let mut folders = Folders::around_packs(packs);
    let record = packs.record()?;
    let mut in_the_way: Option<PacksError> = None;
    for pack in wanted {
        let Some(place) = folders.folder_at(&pack.place)? else { continue };
        let adopted = adopt_one(packs, state, pack, wanted, &record, published, place);
        match (adopted, &mut in_the_way) {
            (Ok(()), _) => {}
            (Err(PacksError::InTheWay { path, .. }), Some(PacksError::InTheWay { others, .. })) => {
                others.push(path);
            }
            (Err(first @ PacksError::InTheWay { .. }), None) => in_the_way = Some(first),
            (Err(error), _) => return Err(error),
        }
    }
    in_the_way.map_or(Ok(()), Err)
}

/// Records a pack that is in place although the state does not know it, if it is the right one.
///
/// So a packs folder from a checkout is used, and nothing that a user put there is overwritten.
fn adopt_one(
    packs: &PacksFolder,
    state: &mut State,
    pack: &WantedPack,
    wanted: &[WantedPack],
    record: &PartialPacks,
    published: &VersionOfContent<'_>,
    (folder, leaf): (&Folder, &str),
) -> Result<(), PacksError> {
    let is_known = state.packs.contains_key(&pack.place) || state.pending.contains(&pack.place);
    if is_known || is_inside(state, &pack.place) {
        return Ok(());
    }
    let path = packs.pack_path(&pack.place);
    if folder.kind(leaf) == Some(Kind::Symlink) {
        // A link into the store is mu's own, and is created again.
        let is_own = fs::read_link(&path).is_ok_and(|to| to.starts_with(trees_in(&packs.cache)));
        return if is_own { Ok(()) } else { Err(PacksError::Link { path }) };
    }
    let Ok(entries) = fs::entries(&path) else { return Ok(()) };
    let is_only_parent = |entry: &DirEntry| {
        let Ok(name) = entry.file_name().into_string() else { return false };
        let place = format!("{}/{name}", pack.place);
        holds(|place| first_from(wanted, place), &place)
            || holds(|at| Some(state.packs.range::<str, _>(from(at)).next()?.0.as_str()), &place)
            || holds(|at| Some(state.pending.range::<str, _>(from(at)).next()?.as_str()), &place)
    };
    if entries.iter().all(is_only_parent) {
        return Ok(());
    }
    let others = wanted.iter().map(|other| &other.place).chain(state.packs.keys());
    let places: Vec<&str> = wanted.iter().map(|other| &*other.place).collect();
    let others: Vec<&String> = others.collect();
    let mut found = None;
    for digest in pack.possible_digests() {
        let omitted = record.omitted_parts(&pack.place, &digest, &places);
        let is = packs.digest_of(&pack.place, &others, &omitted, &digest);
        if is.as_ref().is_ok_and(|is| *is == digest) {
            let adopted = Pack { digest, ..Pack::new(pack, omitted) };
            state.packs.insert(pack.place.clone(), adopted);
            return Ok(());
        }
        found = found.or(is.ok());
    }
    match found.and_then(|digest| Some((digest, published(pack, &digest)?))) {
        Some((digest, version)) => {
            let found = Pack { id: pack.id.clone(), version, digest, omitted: Vec::new() };
            state.packs.insert(pack.place.clone(), found);
            Ok(())
        }
        None if packs.is_vendored() => {
            Err(PacksError::Changed { path, digest: pack.digest, found })
        }
        None => Err(PacksError::InTheWay { path, digest: pack.digest, others: Vec::new() }),
    }
}

/// Whether a place is inside one of mu's own packs, which makes room for the pack that belongs there.
fn is_inside(state: &State, place: &str) -> bool {
    folders_above(place)
        .any(|place| state.packs.contains_key(place) || state.pending.contains(place))
}

/// Refuses a file where a pack is to be made: only a user can have put it there.
pub(super) fn refuse_files(
    packs: &PacksFolder,
    state: &State,
    changed: &[&WantedPack],
) -> Result<(), PacksError> {
    let mut folders = Folders::around_packs(packs);
    for WantedPack { place, .. } in changed {
        let kind = folders.kind(place)?;
        if matches!(kind, Some(Kind::File | Kind::Other)) && !is_inside(state, place) {
            return Err(PacksError::NoFolder { path: packs.pack_path(place) });
        }
    }
    Ok(())
}

impl PacksFolder {
    /// The digest of the pack at `place`, without the packs at `others` that are inside it, and with what it
    /// leaves out for them; `expected` if it can be that.
    ///
    /// A manifest that mu generated is not part of the package, so it is left out if that leads to the
    /// expected digest. On a file system where every file may be executed, it does not count which ones may.
    pub fn digest_of(
        &self,
        place: &str,
        others: impl IntoIterator<Item = impl AsRef<str>>,
        omitted: &[Entry],
        expected: &Digest,
    ) -> Result<Digest, HashError> {
        let folder = self.pack_path(place);
        let tree = self.tree_of_pack(place, others)?;
        let whole = |entries: Vec<Entry>| Tree::new([entries, omitted.to_vec()].concat()).digest();
        let digest = whole(tree.entries().to_vec());
        if digest == *expected {
            return Ok(digest);
        }
        let head = Manifest::load_head(&folder);
        let is_generated = head.is_ok_and(|head| head.is_some_and(|head| head.generated));
        let is_own = |entry: &&Entry| !is_generated || entry.path != YAML_NAME;
        let own: Vec<Entry> = tree.entries().iter().filter(is_own).cloned().collect();
        let digest = whole(own.clone());
        let as_elsewhere = elsewhere(&folder, &own).into_iter().map(whole);
        Ok(as_elsewhere.into_iter().find(|digest| digest == expected).unwrap_or(digest))
    }

    /// The files of the pack at `place`, without the packs at `others` that are inside it.
    pub(super) fn tree_of_pack(
        &self,
        place: &str,
        others: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Tree, HashError> {
        let others = others.into_iter();
        let skip: HashSet<PathBuf> = others
            .filter(|other| is_below(other.as_ref(), place))
            .map(|other| self.pack_path(other.as_ref()))
            .collect();
        hash_folder(&self.pack_path(place), &skip)
    }
}

/// The entries of a folder as they may be on another file system, if every file in it is executable here: only programs are, as
/// far as their first bytes tell, or no file is.
fn elsewhere(folder: &Path, entries: &[Entry]) -> Vec<Vec<Entry>> {
    let mut files = entries.iter().filter(|entry| entry.mode != Mode::Symlink).peekable();
    if files.peek().is_none() || !files.all(|entry| entry.mode == Mode::Executable) {
        return Vec::new();
    }
    let with = |is_program: &dyn Fn(&Entry) -> bool| {
        let entries = entries.iter().cloned().map(|entry| match entry.mode {
            Mode::Executable if !is_program(&entry) => Entry { mode: Mode::File, ..entry },
            _ => entry,
        });
        entries.collect()
    };
    vec![with(&|entry| begins_program(&folder.join(&entry.path))), with(&|_| false)]
}

/// Whether a file begins like a script or a program of Linux.
fn begins_program(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::open(path).map(|file| file.take(4).read_to_end(&mut start));
    read.is_ok_and(|read| read.is_ok()) && (start.starts_with(b"#!") || start == b"\x7fELF")
}

#[cfg(all(test, unix))]
mod tests {
    use std::collections::HashSet;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::packs::hash_folder;

    fn entries(folder: &Path) -> Vec<Entry> {
        let tree = hash_folder(folder, &HashSet::new()).expect("can be read");
        tree.entries().to_vec()
    }

    #[test]
    fn what_is_executable_everywhere_may_be_so_only_where_it_is_a_program() {
        let around = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str, mode: u32| {
            let path = around.path().join(name);
            std::fs::write(&path, text).expect("writes");
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("is ours");
        };
        write("Mu.yaml", "name: a/b\n", 0o644);
        write("run.sh", "#!/bin/sh\n", 0o755);
        let real = entries(around.path());
        assert!(elsewhere(around.path(), &real).is_empty(), "the file system tells");
        write("Mu.yaml", "name: a/b\n", 0o755);
        let here = entries(around.path());
        assert_ne!(here, real);
        assert_eq!(elsewhere(around.path(), &here)[0], real);
        let none = &elsewhere(around.path(), &here)[1];
        assert!(none.iter().all(|entry| entry.mode == Mode::File));
    }
}
