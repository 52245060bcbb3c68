//! Who may open the private files in a hub's folder: the lock of its writers, and its tokens.
//!
//! Whoever can open a file can lock it and keep every writer waiting. So only those who may write into the
//! hub's folder can open it. Systems without Unix's modes have their own rules.

use std::fs::{File, OpenOptions};
use std::path::Path;

use mu_provider::fs::{self, FileError};

/// The folder of what only the hub's owner reads.
const FOLDER: &str = "private";

/// Opens the file at `path`, in the hub's `folder`, to be locked.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn open_lock(folder: &Path, path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = fs::open_with(path, &options)?;
    restrict(folder, path, 0o777);
    Ok(file)
}

/// Creates the private folder in the hub's `folder`, before anything is written into it.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn make(folder: &Path) -> Result<(), FileError> {
    fs::create_private_folder(&folder.join(FOLDER), &[])?;
    keep(folder);
    Ok(())
}

/// Restricts the private folder in the hub's `folder`, and all files in it. The folder need not exist.
pub(crate) fn keep(folder: &Path) {
    let private = folder.join(FOLDER);
    restrict(folder, &private, 0o770);
    for entry in fs::entries(&private).unwrap_or_default() {
        restrict(folder, &entry.path(), 0o770);
    }
}

/// Allows those who may write into the hub's `folder` to open what is at `path`, with at most the modes
/// `most`. Files of other users stay as they are.
#[cfg(unix)]
fn restrict(folder: &Path, path: &Path, most: u32) {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};

    let (Ok(hub), Ok(own)) = (fs::metadata(folder), fs::symlink_metadata(path)) else { return };
    if own.is_symlink() {
        return;
    }
    // Gives files of an administrator to the user that serves the hub. Nobody else can change the owner.
    if (own.uid(), own.gid()) != (hub.uid(), hub.gid()) && own.uid() == 0 {
        let _ = lchown(path, Some(hub.uid()), Some(hub.gid()));
    }
    let writers = (hub.mode() & 0o222 | 0o200) & most;
    let mode = writers | writers << 1 | if own.is_dir() { writers >> 1 } else { 0 };
    if own.mode() & 0o777 != mode {
        let special = own.mode() & 0o7000;
        let _ = fs::set_permissions(path, Permissions::from_mode(special | mode));
    }
}

#[cfg(not(unix))]
fn restrict(_: &Path, _: &Path, _: u32) {}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("is there").permissions().mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("is ours");
    }

    #[test]
    fn only_who_may_write_the_hub_opens_its_lock_and_its_tokens() {
        let folder = tempfile::tempdir().expect("there is room");
        let (hub, lock) = (folder.path(), folder.path().join("hub.lock"));
        let (private, tokens) = (hub.join("private"), hub.join("private/tokens.json"));
        fs::create_dir(&private).expect("is ours");
        fs::write(&tokens, "{}").expect("is ours");
        fs::write(&lock, "").expect("is ours");
        for (hub_mode, lock_mode, private_mode, tokens_mode) in [
            (0o755, 0o600, 0o700, 0o600),
            (0o775, 0o660, 0o770, 0o660),
            (0o777, 0o666, 0o770, 0o660),
            (0o500, 0o600, 0o700, 0o600),
        ] {
            set(hub, hub_mode);
            // As they were created earlier, and with a umask that lets everyone in.
            for (path, mode) in [(&lock, 0o644), (&private, 0o755), (&tokens, 0o666)] {
                set(path, mode);
            }
            drop(open_lock(hub, &lock).expect("is ours"));
            make(hub).expect("is ours");
            let found = (mode(&lock), mode(&private), mode(&tokens));
            assert_eq!(found, (lock_mode, private_mode, tokens_mode), "{hub_mode:o}");
        }
        set(hub, 0o700);
    }
}
