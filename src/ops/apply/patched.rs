//! Patched packages: makes the trees in the store that are content with a patch.
//!
//! `solve::patches` knows which patch is for which package. The content itself was fetched and checked before.

use std::path::Path;
use std::sync::Arc;

use mu_provider::{Digest, ErrorKind, Mode, ProviderError, TreeWriter};

#[cfg(feature = "git")]
use crate::formats;
use crate::fs::{self, FileError};
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::solve::patches::{self, patch_of, patch_path};
use crate::ops::solve::record::Resolved;
use crate::ops::{Code, CommandError, Session};
use crate::store::{Stored, TreeStoreError};
use crate::workspace::PatchFile;

/// Whether the result of a patch is not known yet.
pub(crate) fn is_unknown(lock: &Lockfile) -> bool {
    !lock.packages.iter().all(LockedPackage::is_patched_as_locked)
}

/// Whether the result of a patch is not in the store.
pub(crate) fn is_patch_result_missing(session: &Session, lock: &Lockfile) -> bool {
    let mut patched = lock.packages.iter().filter_map(|package| package.patched);
    patched.any(|digest| !session.store.contains(&digest))
}

/// Applies the patches whose results are not in the store.
pub(crate) fn apply_patches(
    session: &Session,
    resolved: &mut Resolved,
) -> Result<(), CommandError> {
    for index in 0..resolved.lock.packages.len() {
        let package = &resolved.lock.packages[index];
        let is_there = package.patched.is_some_and(|digest| session.store.contains(&digest));
        let is_left_out = package.patched.is_some() && resolved.left_out.contains(&index);
        if package.patch.is_none() || is_there || is_left_out {
            continue;
        }
        let stored = one(session, package)?;
        // A lock without the result gets it here. One that has it was compared with it, in `one`.
        if package.patched != Some(stored.digest) {
            Arc::make_mut(&mut resolved.lock).packages[index].patched = Some(stored.digest);
        }
    }
    Ok(())
}

fn one(session: &Session, package: &LockedPackage) -> Result<Stored, CommandError> {
    let LockedPackage { id, version, .. } = package;
    let Some(patch) = patch_of(session, package)? else {
        let message = format!("Mu.lock has a patch of `{id}` {version}, and the settings do not");
        return Err(CommandError::new(Code::LockOutdated, message)
            .hint("run `mu get` without --frozen, and commit Mu.lock"));
    };
    // :read: Two digests: that of the patch, so that everybody applies the same text, and below that of the result, so
    // that everybody gets the same files, whatever their Git makes of it.
    let (text, digest) = patches::read(session, patch)?;
    if package.patch != Some(digest) {
        let message = format!(
            "`{}` is not the patch that Mu.lock names",
            patch_path(session, patch).display()
        );
        return Err(CommandError::new(Code::LockOutdated, message)
            .hint("run `mu get` without --frozen, and commit Mu.lock"));
    }
    // `fetch` has brought it a moment ago.
    let original = package.digest.map(|digest| session.store.find(&digest)).transpose()?.flatten();
    let original = original
        .ok_or_else(|| TreeStoreError::Corrupt { path: session.store.folder().to_owned() })?;
    let changes = changes(session, package, patch, &text, &original)?;
    let filled = session.store.add(package.patched.as_ref(), |tree| {
        fill(session, tree, &original, &changes)?;
        Ok(original.called.to_string())
    });
    filled.map_err(|error| match error {
        TreeStoreError::Mismatch { expected, actual } => {
            differs(package, patch, &expected, &actual)
        }
        error => CommandError::from(error).while_doing(format!("cannot patch `{id}` {version}")),
    })
}

/// What a patch makes of each file that it names.
pub(crate) type Changes = Vec<(String, Option<(Mode, Vec<u8>)>)>;

/// What a patch changes in a package.
#[cfg(feature = "git")]
pub(crate) fn changes(
    session: &Session,
    package: &LockedPackage,
    patch: &PatchFile,
    text: &[u8],
    original: &Stored,
) -> Result<Changes, CommandError> {
    use mu_provider_git::patch::{PatchError, apply};

    let changes = apply(text, &|path| file_of(session, original, path)).map_err(|error| {
        let path = patch_path(session, patch);
        let LockedPackage { id, version, .. } = package;
        let message = format!("the patch `{}` does not apply to `{id}` {version}: {error}", path.display());
        let name = session.short_name(id);
        let failed = CommandError::new(Code::Conflict, message);
        match error {
            PatchError::Read(error) => CommandError::from(error),
            PatchError::Outside(_) | PatchError::Unreadable(_) | PatchError::Empty => {
                failed.hint(format!("mend it, or drop it with `mu patch --drop {name}`"))
            }
            _ => failed
                .hint(format!(
                    "`mu patch --drop {name}` drops it; then `mu patch {name}` begins a new one for this version"
                ))
                .hint(format!("`mu update '{name}#VERSION'` goes back to a version that it is for")),
        }
    })?;
    // What a package requires was read from its registry.
    if let Some((path, _)) =
        changes.iter().find(|(path, _)| formats::manifest_names().any(|name| name == path))
    {
        let message = format!(
            "the patch `{}` changes the manifest `{path}` of `{}`; its dependencies would not follow",
            patch_path(session, patch).display(),
            package.id
        );
        let name = session.short_name(&package.id);
        return Err(CommandError::new(Code::Conflict, message)
            .hint(format!("`mu edit {name}` works on the package itself, its manifest included")));
    }
    Ok(changes)
}

#[cfg(not(feature = "git"))]
pub(crate) fn changes(
    _: &Session,
    package: &LockedPackage,
    _: &PatchFile,
    _: &[u8],
    _: &Stored,
) -> Result<Changes, CommandError> {
    let message = format!(
        "`{}` is patched, and this mu was built without Git, which patches need",
        package.id
    );
    Err(CommandError::new(Code::Usage, message))
}

/// A file of a tree in the store, if it is what was checked.
pub(crate) fn file_of(
    session: &Session,
    stored: &Stored,
    path: &str,
) -> Result<Option<(Mode, Vec<u8>)>, ProviderError> {
    let entries = stored.tree.entries();
    let Ok(found) = entries.binary_search_by(|entry| entry.path.as_bytes().cmp(path.as_bytes()))
    else {
        return Ok(None);
    };
    let entry = &entries[found];
    // The tree was checked when it came, perhaps weeks ago. What a patch is applied to is read again, so it is hashed
    // again.
    let file = session.store.tree_path(&stored.digest).join(path);
    let content = content(&file, entry.mode)?;
    if sha256(&content) != entry.sha256 {
        let message = format!("`{}` in the store was changed after it was checked", file.display());
        return Err(
            ProviderError::new(ErrorKind::Io, message).hint("`mu cache clean` empties the store")
        );
    }
    Ok(Some((entry.mode, content)))
}

fn sha256(content: &[u8]) -> mu_provider::FileDigest {
    use sha2::{Digest as _, Sha256};
    mu_provider::FileDigest::from_bytes(Sha256::digest(content).into())
}

/// The content of a file, or the target of a link.
pub(crate) fn content(path: &Path, mode: Mode) -> Result<Vec<u8>, FileError> {
    match mode {
        Mode::Symlink => Ok(fs::read_link(path)?.into_os_string().into_encoded_bytes()),
        Mode::File | Mode::Executable => fs::read(path),
    }
}

/// Writes a package with what a patch changes in it.
fn fill(
    session: &Session,
    tree: &mut TreeWriter,
    original: &Stored,
    changes: &Changes,
) -> Result<(), ProviderError> {
    // What the patch leaves alone comes from the package, everything else from the patch. A file that it deletes has no
    // content there.
    let is_changed = |path: &str| changes.iter().any(|(changed, _)| changed == path);
    for entry in original.tree.entries().iter().filter(|entry| !is_changed(&entry.path)) {
        if let Some((mode, content)) = file_of(session, original, &entry.path)? {
            write(tree, &entry.path, mode, &content)?;
        }
    }
    for (path, file) in changes {
        if let Some((mode, content)) = file {
            write(tree, path, *mode, content)?;
        }
    }
    Ok(())
}

fn write(
    tree: &mut TreeWriter,
    path: &str,
    mode: Mode,
    content: &[u8],
) -> Result<(), ProviderError> {
    let path = path.as_bytes();
    match mode {
        Mode::Symlink => tree.symlink(path, content)?,
        Mode::File | Mode::Executable => {
            tree.file_in_memory(path, mode == Mode::Executable, content)?
        }
    }
    Ok(())
}

fn differs(
    package: &LockedPackage,
    patch: &PatchFile,
    expected: &Digest,
    actual: &Digest,
) -> CommandError {
    let LockedPackage { id, version, .. } = package;
    let message = format!(
        "`{id}` {version} with the patch `{}` is not what Mu.lock says: expected {expected}, got {actual}",
        patch.file
    );
    CommandError::new(Code::Integrity, message)
        .hint("restore Mu.lock and the patch from version control")
}
