//! Locked packages that come from packs on this machine: those that no registry has, and those that somebody
//! has put into the workspace.

use std::collections::HashSet;
use std::path::PathBuf;

use mu_provider::{Digest, Tree};

use crate::lock::{LockedPackage, Lockfile, Source};
use crate::ops::session::installed_packs::place;
use crate::ops::{Code, CommandError, Session};
use crate::packs::{HashError, hash_folder};

/// The folder of a package that somebody has put into the workspace, whether or not it exists.
///
/// # Errors
///
/// When the lock names another folder than the one where mu looks for the package.
pub(crate) fn placed_folder(
    session: &Session,
    package: &LockedPackage,
) -> Result<PathBuf, CommandError> {
    let folder = crate::env::absolute(session.lock_folder(), package.source.place.as_ref());
    let places = session.places.search().package_places(&package.id);
    // These two are the workspace's packs folder, with the base and without it. A lock in a checkout could name any
    // other folder.
    if places[2..4].iter().any(|place| place.folder == folder) {
        return Ok(folder);
    }
    let message = format!(
        "Mu.lock takes `{}` from `{}`, which is not where packs of that name are",
        package.id,
        folder.display()
    );
    Err(CommandError::new(Code::Integrity, message).hint("restore Mu.lock from version control"))
}

/// The problem with a package that somebody has put into the workspace, if it does not match the lock.
///
/// # Errors
///
/// As [`placed_folder`].
pub(crate) fn placed_fault(
    session: &Session,
    package: &LockedPackage,
) -> Result<Option<String>, CommandError> {
    let folder = placed_folder(session, package)?;
    let Some(digest) = package.digest else { return Ok(None) };
    // A link would lead to whatever the checkout wants to be taken for the package.
    if !folder.is_dir() || session.places.search().link_on_the_way(&folder).is_some() {
        return Ok(Some("it is not there".to_owned()));
    }
    let found = hash_folder(&folder, &HashSet::new());
    Ok(content_fault(&digest, found.map(|tree| tree.digest())))
}

/// The files that a locked package had, if they are on this machine: in the store, or where it is installed.
pub(super) fn tree_of(
    session: &Session,
    lock: &Lockfile,
    index: usize,
    digest: &Digest,
) -> Option<Tree> {
    if let Some(stored) = session.store.find(digest).ok().flatten() {
        return Some(Tree::clone(&stored.tree));
    }
    let pack = session.packs().pack_path(&place(lock, index));
    hash_folder(&pack, &HashSet::new()).ok().filter(|tree| tree.digest() == *digest)
}

/// The problem with content that is not the expected one, or cannot be read.
pub(crate) fn content_fault(expected: &Digest, found: Result<Digest, HashError>) -> Option<String> {
    match found {
        Ok(digest) if digest == *expected => None,
        Ok(digest) => Some(format!("its content changed: expected {expected}, got {digest}")),
        Err(error) => Some(error.to_string()),
    }
}

/// Checks that packages that somebody has put into the workspace match the lock.
///
/// # Errors
///
/// When something is not there, or has other content.
pub(crate) fn check_placed(session: &Session, lock: &Lockfile) -> Result<(), CommandError> {
    for package in lock.packages.iter().filter(|package| package.source.is_placed_pack()) {
        if let Some(fault) = placed_fault(session, package)? {
            let folder = placed_folder(session, package)?;
            let LockedPackage { id, version, .. } = package;
            let is_missing = !folder.is_dir();
            let code = if is_missing { Code::NotFound } else { Code::Integrity };
            let message = format!(
                "Mu.lock takes `{id}` {version} from `{}`, where somebody has put it: {fault}",
                folder.display()
            );
            let name = session.short_name(id);
            return Err(CommandError::new(code, message)
                .hint("mu does not install what is put there by hand: copy the folder from where it is whole")
                .hint(format!("`mu update {name}` locks what is there now, or what a registry has")));
        }
    }
    Ok(())
}

/// The error about a package that no registry had, and that no pack of this machine matches.
pub(super) fn missing(session: &Session, package: &LockedPackage) -> CommandError {
    let LockedPackage { id, version, source, .. } = package;
    let [_, user, runtime] = &session.places.search().packs;
    // Mu.lock says `global/…` or `muroot/…`, and never a path, so that it is the same on every machine.
    let (whose, folder) = match source.place.strip_prefix(Source::IN_RUNTIME) {
        Some(place) => ("the runtime", runtime.join(place)),
        None => {
            let place = source.place.strip_prefix(Source::USER_PLACE_PREFIX).unwrap_or_default();
            ("the user", user.join(place))
        }
    };
    let expected = package.digest.map(|digest| digest.to_string()).unwrap_or_default();
    let found = folder.is_dir().then(|| hash_folder(&folder, &HashSet::new()).ok()).flatten();
    let (code, what) = match found {
        Some(tree) => {
            let what =
                format!("other content is there: expected {expected}, got {}", tree.digest());
            (Code::Integrity, what)
        }
        None => (Code::NotFound, "it is not there".to_owned()),
    };
    let message = format!(
        "`{id}` {version} is locked from the packs of {whose}, in `{}`: {what}",
        folder.display()
    );
    let name = session.short_name(id);
    CommandError::new(code, message)
        .hint(
            "no registry had it when it was locked: put the package there that it was locked with",
        )
        .hint(format!("`mu update {name}` locks what is there now, or what a registry has by now"))
}
