//! Hints for a failing disk: it is full, read-only, or not for this user.

use std::io::ErrorKind;
use std::path::Path;

use mu_provider::causes;

use crate::fs::FileError;
use crate::ops::CommandError;
use crate::ops::session::error::quoted;

/// Adds a hint to an error that comes from a disk that cannot be written; `cache` is the folder that mu can
/// have elsewhere.
pub(crate) fn with_hint(error: CommandError, cache: &Path) -> CommandError {
    let mut is_in_cache = false;
    let (mut refusal, mut path) = (None, None);
    for current in causes(&*error.error) {
        is_in_cache |= current.to_string().contains(&*cache.to_string_lossy());
        let kind = current.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        refusal = refusal.or(kind);
        path = path.or_else(|| current.downcast_ref().map(FileError::path));
    }
    // A folder that the cache would be in, such as one of a home that cannot be written.
    let is_around = path.is_some_and(|path| cache.starts_with(path) && path.parent().is_some());
    is_in_cache |= is_around;
    let other_folder = "MU_CACHE_DIR names another folder for the cache";
    match refusal {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            let error = error.hint(
                "free some space and run the command again: what was fetched completely is not fetched again",
            );
            if !is_in_cache {
                return error;
            }
            error.hint(format!(
                "`mu cache prune` removes what no workspace uses from the cache, and {other_folder}"
            ))
        }
        Some(ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) if is_in_cache => {
            let error = error.hint(format!("the cache has to be writable: {other_folder}"));
            match cache.join("store").is_dir() {
                true => error
                    .hint("`--store-readonly` installs what is in it, and writes nothing there"),
                false => error,
            }
        }
        Some(ErrorKind::ReadOnlyFilesystem) => {
            error.hint("this file system is read-only: work in a copy on another one")
        }
        Some(ErrorKind::PermissionDenied) if let Some(path) = path => {
            let path = quoted(&path.to_string_lossy());
            let hint = format!(
                "the user that runs mu lacks this permission: `ls -ld {path}` shows who has it"
            );
            error.hint(hint)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Code;

    fn check(kind: ErrorKind, path: &str, hints: &[&str]) {
        let error = CommandError::from_error(Code::Io, std::io::Error::from(kind))
            .while_doing(format!("cannot write `{path}`"));
        let found = with_hint(error, Path::new("/c")).hints;
        assert_eq!(found.len(), hints.len(), "{kind}: {found:?}");
        for (found, part) in found.iter().zip(hints) {
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn what_helps_depends_on_what_is_full() {
        check(ErrorKind::StorageFull, "/c/store/x", &["free some space", "MU_CACHE_DIR"]);
        check(ErrorKind::QuotaExceeded, "/w/Mu.lock", &["free some space"]);
        check(ErrorKind::PermissionDenied, "/c/store", &["MU_CACHE_DIR"]);
        check(ErrorKind::ReadOnlyFilesystem, "/w/Mu.lock", &["work in a copy"]);
        let error = FileError::new("read", "/w/a b", ErrorKind::PermissionDenied.into());
        let hints = with_hint(CommandError::from(error), Path::new("/c")).hints;
        assert_eq!(
            hints,
            ["the user that runs mu lacks this permission: `ls -ld '/w/a b'` shows who has it"]
        );
        check(ErrorKind::NotFound, "/c/store", &[]);
        // The cache is to be made in a home that cannot be written.
        let error =
            FileError::new("make the folder", "/h/.cache", ErrorKind::PermissionDenied.into());
        let hints = with_hint(CommandError::from(error), Path::new("/h/.cache/mu")).hints;
        assert_eq!(
            hints,
            ["the cache has to be writable: MU_CACHE_DIR names another folder for the cache"]
        );
    }
}
