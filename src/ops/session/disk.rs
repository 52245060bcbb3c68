//! Errors of the disk: a path that should be a folder and is not, with what is there; and hints where a disk is full, read-only, or not for
//! this user.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use mu_provider::causes;

use super::error::{Code, CommandError};
use crate::fs::{self, FileError};
use crate::manifest::source::nearest;
use crate::ops::Session;
use crate::ops::session::error::quoted_for_shell;
use crate::reference::Reference;
use crate::workspace::root::is_bare_repository;

/// More folders than this are not listed.
const LISTED: usize = 8;

/// The folder of this machine that a reference of the command line names.
pub(crate) fn local_folder(session: &Session, path: &str) -> Result<PathBuf, CommandError> {
    let folder = crate::env::absolute(&session.environment.current, path.as_ref());
    if !folder.is_dir() {
        return Err(not_a_folder(&folder));
    }
    session.folders.name(&folder);
    Ok(folder)
}

/// The error of a path that should be a folder, but is not.
pub(crate) fn not_a_folder(folder: &Path) -> CommandError {
    let shown = folder.display();
    if folder.is_file() {
        let error = CommandError::new(Code::NotFound, format!("`{shown}` is a file, not a folder"));
        let is_manifest = folder.file_stem().is_some_and(|stem| stem == "Mu");
        return match folder.parent().filter(|_| is_manifest) {
            Some(parent) => {
                error.hint(format!("name the folder that it is in: `{}`", parent.display()))
            }
            None => error.hint(
                "a package is a folder: name one, or a package of a registry, such as `aws/ec2`",
            ),
        };
    }
    let error = CommandError::new(Code::NotFound, format!("there is no folder `{shown}`"));
    // Its branches have folders, but the disk does not.
    error.hint(match folder.ancestors().skip(1).find(|at| is_bare_repository(at)) {
        Some(repository) => format!(
            "`{}` is a Git repository; to use a folder in it, write `git+file://{shown}`",
            repository.display()
        ),
        None => what_is_there(folder),
    })
}

/// The folder that was probably meant, or those beside it.
fn what_is_there(folder: &Path) -> String {
    // The first folder on the way that is not there: the one that was misspelt.
    let missing = folder.ancestors().take_while(|at| !at.is_dir()).last();
    let parts = missing.and_then(|at| Some((at, at.parent()?, at.file_name()?)));
    let Some((missing, above, name)) = parts else {
        return "expected the path of a folder".to_owned();
    };
    let mut names: Vec<String> = fs::entries(above)
        .unwrap_or_default()
        .into_iter()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    if let Some(hint) = with_mark(&name.to_string_lossy(), &names) {
        return hint;
    }
    let near = nearest(&name.to_string_lossy(), names.iter().map(String::as_str));
    if let Some(near) = near {
        let near = above.join(near);
        let whole = folder.strip_prefix(missing).map(|rest| near.join(rest));
        let meant = whole.ok().filter(|whole| whole.is_dir()).unwrap_or(near);
        return format!("did you mean `{}`?", meant.display());
    }
    let above = above.display();
    let listed: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    match &listed[..] {
        [] => format!("`{above}` contains no folders"),
        [one] => format!("`{above}` has one folder: {one}"),
        _ => {
            let more = if names.len() > LISTED { ", …" } else { "" };
            format!("the folders in `{above}` are: {}{more}", listed.join(", "))
        }
    }
}

/// Why a folder is not found whose name has a `#`, of which `name` is what stands before it, if it is one of `names`.
fn with_mark(name: &str, names: &[String]) -> Option<String> {
    let is_it =
        |folder: &&String| folder.strip_prefix(name).is_some_and(|rest| rest.starts_with('#'));
    let folder = names.iter().find(is_it)?;
    Some(format!(
        "a reference cannot name the folder `{folder}`, because `#` begins a version: rename it"
    ))
}

/// Why the folder that a reference names from `from` is not found, if it is one whose name has a `#`.
pub(crate) fn folder_with_mark(from: &Path, reference: &Reference) -> Option<String> {
    let folder = crate::env::absolute(from, reference.local()?.as_ref());
    let (above, name) = (folder.parent()?, folder.file_name()?.to_string_lossy());
    let entries = fs::entries(above).unwrap_or_default().into_iter();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    with_mark(&name, &names.collect::<Vec<_>>())
}

/// Adds a hint to an error that comes from a disk that cannot be written; mu's home and its cache are the folders that it can have
/// elsewhere.
pub(crate) fn with_hint(error: CommandError, [mu_home, cache]: [&Path; 2]) -> CommandError {
    let mut is_in_cache = false;
    let (mut refusal, mut path, mut is_removal, mut is_new) = (None, None, false, false);
    for current in causes(&*error.error) {
        is_in_cache |= current.to_string().contains(&*cache.to_string_lossy());
        let kind = current.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        refusal = refusal.or(kind);
        let file = current.downcast_ref::<FileError>();
        path = path.or_else(|| file.map(FileError::path));
        is_removal |= file.is_some_and(FileError::is_of_removal);
        is_new |= file.is_some_and(FileError::is_of_making);
    }
    // A folder that the cache would be in, such as one of a home that cannot be written.
    let is_around = path.is_some_and(|path| cache.starts_with(path) && path.parent().is_some());
    is_in_cache |= is_around;
    let other_folder = "MU_CACHE_DIR names another folder for the cache";
    match refusal {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) if is_in_cache => error
            .hint("free some space and run the command again: what was fetched completely is not fetched again")
            .hint(format!(
                "`mu cache prune` removes what no workspace uses from the cache, and {other_folder}"
            )),
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            let disk = path.map(|path| format!("the disk of `{}`", path.display()));
            let disk = disk.as_deref().unwrap_or("the disk");
            error.hint(format!("free some space on {disk}, and run the command again"))
        }
        Some(ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
            if is_in_cache && !is_removal =>
        {
            let error = error.hint(format!("the cache has to be writable: {other_folder}"));
            match cache.join("store").is_dir() {
                true => error
                    .hint("`--store-readonly` installs what is in it, and writes nothing there"),
                false => error,
            }
        }
        Some(ErrorKind::NotADirectory | ErrorKind::AlreadyExists) => {
            let folders = [
                (cache, other_folder),
                (mu_home, "MU_HOME names another folder for settings and global packs"),
            ];
            let is_named = |file: &Path| {
                let file = file.to_string_lossy();
                causes(&*error.error).any(|current| current.to_string().contains(&*file))
            };
            let hints = folders.into_iter().filter_map(|(folder, way)| {
                let file = folder.ancestors().find(|at| at.exists()).filter(|at| !at.is_dir())?;
                let file = is_named(file).then(|| file.display())?;
                Some(format!("`{file}` is a file, not a folder: {way}"))
            });
            let mut hints: Vec<String> = hints.collect();
            // A folder that a command was given, such as one for a hub, or one on the way to a pack.
            let named = path.filter(|_| hints.is_empty());
            let around = named.and_then(|path| path.ancestors().find(|at| at.exists()));
            hints.extend(around.filter(|there| !there.is_dir()).map(|there| {
                let file = there.display();
                match is_new {
                    true => format!("`{file}` is a file, not a folder: name another place"),
                    false => format!("`{file}` is a file, not a folder: move it away, or delete it"),
                }
            }));
            hints.into_iter().fold(error, CommandError::hint)
        }
        // No folder can be made below such a place, as below `/proc`.
        Some(ErrorKind::NotFound) if is_around => {
            error.hint(format!("nothing can be made there: {other_folder}"))
        }
        Some(ErrorKind::ReadOnlyFilesystem) => {
            error.hint("this file system is read-only: work in a copy on another one")
        }
        Some(ErrorKind::PermissionDenied) if let Some(hub) = path.and_then(hub_around) => {
            let hub = quoted_for_shell(&hub.to_string_lossy());
            let hint = format!(
                "whoever owns the hub can let a group publish there: `chgrp -R GROUP {hub}`, `chmod -R g+rwX {hub}`, and `find {hub} -type d -exec chmod g+s {{}} +`"
            );
            error.hint(hint)
        }
        Some(ErrorKind::PermissionDenied) if let Some(path) = path => {
            // What could not be made is not there, and what is around it decides.
            // So does it for what is to be removed.
            let around = path.ancestors().skip(usize::from(is_removal));
            let there = around.into_iter().find(|at| at.exists());
            let path = quoted_for_shell(&there.unwrap_or(path).to_string_lossy());
            let hint = format!(
                "the user that runs mu lacks this permission: `ls -ld {path}` shows who has it"
            );
            error.hint(hint)
        }
        _ => error,
    }
}

/// The folder of the hub that a path is in, if it is in one.
fn hub_around(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| folder.join("hub.json").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Code;

    fn check(kind: ErrorKind, path: &str, hints: &[&str]) {
        let error = CommandError::from_error(Code::Io, std::io::Error::from(kind))
            .while_doing(format!("cannot write `{path}`"));
        let found = with_hint(error, [Path::new("/h"), Path::new("/c")]).hints;
        assert_eq!(found.len(), hints.len(), "{kind}: {found:?}");
        for (found, part) in found.iter().zip(hints) {
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn what_helps_depends_on_what_is_full() {
        check(ErrorKind::StorageFull, "/c/store/x", &["free some space", "MU_CACHE_DIR"]);
        check(ErrorKind::QuotaExceeded, "/w/Mu.lock", &["free some space on the disk, and run"]);
        let error = FileError::new("write", "/w/Mu.lock", ErrorKind::StorageFull.into());
        let hints = with_hint(CommandError::from(error), [Path::new("/h"), Path::new("/c")]).hints;
        assert_eq!(
            hints,
            ["free some space on the disk of `/w/Mu.lock`, and run the command again"]
        );
        check(ErrorKind::PermissionDenied, "/c/store", &["MU_CACHE_DIR"]);
        check(ErrorKind::ReadOnlyFilesystem, "/w/Mu.lock", &["work in a copy"]);
        // Who empties the cache has no use for another one.
        let error = FileError::new("remove", "/c/store/trees", ErrorKind::PermissionDenied.into());
        let hints = with_hint(CommandError::from(error), [Path::new("/h"), Path::new("/c")]).hints;
        assert_eq!(
            hints,
            ["the user that runs mu lacks this permission: `ls -ld /` shows who has it"]
        );
        // What is not there yet lacks nothing: the folder in which it cannot be made does.
        let around = tempfile::tempdir().expect("can be made");
        let there = around.path().join("a b");
        fs::create_folder(&there).expect("can be made");
        for path in [there.clone(), there.join(".mu/packs")] {
            let error = FileError::new("open", path, ErrorKind::PermissionDenied.into());
            let error = CommandError::from(error);
            let hints = with_hint(error, [Path::new("/h"), Path::new("/c")]).hints;
            let there = there.display();
            assert_eq!(
                hints,
                [format!(
                    "the user that runs mu lacks this permission: `ls -ld '{there}'` shows who has it"
                )]
            );
        }
        let hub = tempfile::tempdir().expect("can be made");
        fs::write_atomic(&hub.path().join("hub.json"), b"{}").expect("can be written");
        let error = |path: &str| {
            let path = hub.path().join(path);
            let error = FileError::new("write", path, ErrorKind::PermissionDenied.into());
            #[cfg(feature = "publish")]
            let error = mu_hub::HubError::from(error);
            with_hint(CommandError::from(error), [Path::new("/h"), Path::new("/c")]).hints
        };
        for path in ["hub.lock", "packs/acme/x/x-1.0.0.tgz"] {
            let hints = error(path);
            let expected =
                format!("let a group publish there: `chgrp -R GROUP {}`", hub.path().display());
            assert!(hints.len() == 1 && hints[0].contains(&expected), "{hints:?}");
        }
        check(ErrorKind::NotFound, "/c/store", &[]);
        let error = FileError::new("make the folder", "/proc/mu", ErrorKind::NotFound.into());
        let cache = Path::new("/proc/mu/cache");
        let hints = with_hint(CommandError::from(error), [Path::new("/h"), cache]).hints;
        assert_eq!(
            hints,
            ["nothing can be made there: MU_CACHE_DIR names another folder for the cache"]
        );
        // A file is where a folder has to be.
        let file = hub.path().join("hub.json");
        let hints = |path: PathBuf, folders: [&Path; 2]| {
            let error = FileError::new("make the folder", path, ErrorKind::NotADirectory.into());
            with_hint(CommandError::from(error), folders).hints
        };
        let (home, cache) = (file.join(".mu"), file.join(".cache/mu"));
        let found = hints(cache.join("git"), [&home, &cache]);
        let of_cache = format!(
            "`{}` is a file, not a folder: MU_CACHE_DIR names another folder for the cache",
            file.display()
        );
        assert!(found.len() == 2 && found[0] == of_cache, "{found:?}");
        assert_eq!(hints(cache.join("git"), [Path::new("/h"), &cache]), [of_cache]);
        assert_eq!(hints("/elsewhere/x".into(), [&home, &cache]), [""; 0]);
        // The cache is to be made in a home that cannot be written.
        let error =
            FileError::new("make the folder", "/h/.cache", ErrorKind::PermissionDenied.into());
        let hints =
            with_hint(CommandError::from(error), [Path::new("/h/.mu"), Path::new("/h/.cache/mu")])
                .hints;
        assert_eq!(
            hints,
            ["the cache has to be writable: MU_CACHE_DIR names another folder for the cache"]
        );
    }
}
