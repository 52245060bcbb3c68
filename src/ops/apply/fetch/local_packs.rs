//! Packs that are already on this machine and may have the content that a lock names.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use mu_provider::{Digest, Entry, Mode, ProviderError, TreeWriter};

use crate::formats;
use crate::fs;
use crate::lock::LockedPackage;
use crate::manifest::YAML_NAME;
use crate::ops::Session;
use crate::ops::apply::fetch::route::used_instead;
use crate::packs::hash_folder;
use crate::search::{FirstNames, Place};
use crate::store::Stored;

/// The packs of this machine, by their first names.
#[derive(Debug)]
pub(super) struct LocalPacks {
    pub(super) first_names: FirstNames,
}

impl LocalPacks {
    /// Reads the packs folders.
    pub(super) fn find(session: &Session) -> Self {
        Self { first_names: FirstNames::read(&session.places.search().packs) }
    }

    /// Copies a pack of this machine into the store, if it has exactly the wanted content.
    pub(super) fn take_back(
        &self,
        session: &Session,
        package: &LockedPackage,
        digest: &Digest,
    ) -> Option<Stored> {
        // The replacement of an overridden package has its own name among packs.
        let ids = BTreeSet::from([package.id.clone(), used_instead(session, &package.id)]);
        let search = session.places.search();
        let ids = ids.iter().filter(|id| self.first_names.may_hold(id));
        // The first two places are folders of the workspace itself: members, and not packs.
        let places: Vec<Place> =
            ids.flat_map(|id| search.package_places(id).into_iter().skip(2)).collect();
        // No other file counts as the manifest of a pack: a link could point anywhere.
        let has_link = |folder: &Path| folder.join(YAML_NAME).is_symlink();
        let packs = places.iter().filter(|place| place.folder.is_dir());
        for place in packs.filter(|place| !has_link(&place.folder)) {
            let Ok(Some(head)) = formats::load_package_head(&place.folder) else {
                continue;
            };
            // The version is cheap to read, and hashing is not.
            let same_version =
                head.version.is_some_and(|version| version.to_string() == package.version);
            if !same_version {
                continue;
            }
            let mut skip = HashSet::new();
            // The package has no manifest: mu has made this one for the pack, so the digest of the package is without
            // it.
            if head.generated {
                skip.insert(place.folder.join(YAML_NAME));
            }
            let Ok(tree) = hash_folder(&place.folder, &skip) else {
                continue;
            };
            if tree.digest() == *digest {
                // It is hashed again while it is copied: anybody may change a pack meanwhile.
                let stored = session.store.add(Some(digest), |writer| {
                    for entry in tree.entries() {
                        add_entry(writer, &place.folder.join(&entry.path), entry)?;
                    }
                    Ok(String::new())
                });
                if let Ok(stored) = stored {
                    return Some(stored);
                }
            }
        }
        None
    }
}

/// Whether the store has a package that cannot be fetched again; it is taken from its own pack, if that is
/// intact.
pub(crate) fn has_or_takes_back(session: &Session, package: &LockedPackage) -> bool {
    package.digest.is_some_and(|digest| {
        session.store.contains(&digest)
            || LocalPacks::find(session).take_back(session, package, &digest).is_some()
    })
}

/// Copies a package of the store into a folder, whose files can then be changed.
#[cfg(feature = "git")]
pub(crate) fn copy_writable(stored: &Stored, folder: &Path) -> Result<(), fs::FileError> {
    for entry in stored.tree.entries() {
        let (from, to) = (stored.folder.join(&entry.path), folder.join(&entry.path));
        fs::create_folder(to.parent().unwrap_or(folder))?;
        if entry.mode == Mode::Symlink {
            fs::symlink_file(&fs::read_link(&from)?, &to)?;
            continue;
        }
        fs::copy(&from, &to)?;
        crate::packs::make_writable(&to, entry.mode)?;
    }
    Ok(())
}

/// Adds the file or link at `path` to a tree of the store, as the entry.
pub(crate) fn add_entry(
    writer: &mut TreeWriter,
    path: &Path,
    entry: &Entry,
) -> Result<(), ProviderError> {
    if entry.mode == Mode::Symlink {
        let target = fs::read_link(path)?;
        writer.symlink(entry.path.as_bytes(), target.to_string_lossy().as_bytes())?;
    } else {
        let mut file = fs::open(path)?;
        writer.file(entry.path.as_bytes(), entry.mode == Mode::Executable, &mut file)?;
    }
    Ok(())
}
