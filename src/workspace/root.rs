//! The root of a workspace: where it starts, the Git repository around it, whether mu may read and write there, and
//! which programs mu runs.
//!
//! The search checks a few names in each folder on the way up; it lists nothing, reads nothing.
//!
//! Anyone may have made a checkout. Nothing below `.mu` is reached through a symbolic link, because the link's author
//! would decide what is written, replaced and removed; and what mu reads there is a regular file, so that no pipe or
//! device makes it wait. mu runs no program that the checkout around the current folder brings. A folder of another
//! user is a workspace only if the settings of this user say so: its owner decides which registries are contacted and
//! what is used instead of what. Packs have their own check, at each folder in their path, when they are read or
//! changed.

use std::path::{Path, PathBuf};

use mu_provider::Programs;

use crate::env::Environment;
use crate::{formats, fs};

/// Why a folder is refused as a workspace.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// Something is a symbolic link that must not be one.
    #[error(
        "`{}` is a symbolic link, and mu follows no links there: it could lead to files outside the workspace",
        path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Something is a pipe, a device, or a folder instead of a file.
    #[error("`{}` is not a {wanted}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// What belongs there.
        wanted: &'static str,
    },
    /// The workspace, or a file that makes the folder one, belongs to another user.
    #[error("`{}` belongs to another user, who could make mu run with settings of their choice", path.display())]
    Owner {
        /// The workspace's root.
        root: PathBuf,
        /// What belongs to another user.
        path: PathBuf,
    },
}

/// What mu reads or writes by name in a workspace's root, and whether it is a folder.
const KNOWN: [(&str, bool); 12] = [
    (".mu", true),
    (".mu/manifest.schema.json", false),
    (".mu/workspace.schema.json", false),
    (".mu/workspace.yaml", false),
    (".mu/packs", true),
    (".mu/packs/.gitattributes", false),
    (".mu/packs/.gitignore", false),
    (".mu/packs/vendored.json", false),
    (".mu/packs/.mu", true),
    (".mu/packs/.mu/lock", false),
    (".mu/packs/.mu/partial.json", false),
    ("Mu.lock", false),
];

/// What edits leave in a workspace's root. Most workspaces have none of it, so it is checked only where it is used.
const OF_EDITS: [(&str, bool); 4] = [
    (".mu/edits.json", false),
    (".mu/edits.lock", false),
    (".mu/edit", true),
    (".mu/edit/trash", true),
];

/// Refuses a root in which a known file or folder is a link, or of the wrong kind.
pub(super) fn refuse_links(root: &Path) -> Result<(), ForeignError> {
    refuse(root, &KNOWN)
}

/// Refuses a root in which a file or folder of edits is a link, or of the wrong kind.
pub(crate) fn refuse_links_of_edits(root: &Path) -> Result<(), ForeignError> {
    refuse(root, &OF_EDITS)
}

fn refuse(root: &Path, known: &[(&str, bool)]) -> Result<(), ForeignError> {
    for (name, is_folder) in known.iter().copied() {
        let path = root.join(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_symlink() {
            return Err(ForeignError::Link { path });
        }
        let fits = if is_folder { metadata.is_dir() } else { metadata.is_file() };
        if !fits {
            let wanted = if is_folder { "folder" } else { "regular file" };
            return Err(ForeignError::Kind { path, wanted });
        }
    }
    Ok(())
}

/// Refuses a root that belongs to none of `users`, or in which something that makes it a workspace does.
/// Files of the superuser are always accepted.
#[cfg(unix)]
pub(super) fn refuse_other_owners(root: &Path, users: &[u32]) -> Result<(), ForeignError> {
    use std::os::unix::fs::MetadataExt as _;
    let workspace_file = Path::new(MU_FOLDER).join(WORKSPACE_FILE);
    let inside = [Path::new(""), Path::new(MU_FOLDER), &workspace_file, Path::new(LOCK_FILE)];
    let manifests = crate::formats::manifest_names().map(|name| root.join(name));
    for path in inside.map(|inside| root.join(inside)).into_iter().chain(manifests) {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.uid() != 0 && !users.contains(&metadata.uid()) {
            return Err(ForeignError::Owner { root: root.to_owned(), path });
        }
    }
    Ok(())
}

/// On systems without numeric owners, all files count as this user's.
#[cfg(not(unix))]
pub(super) fn refuse_other_owners(_root: &Path, _users: &[u32]) -> Result<(), ForeignError> {
    Ok(())
}

/// Whether anyone can put files into `folder`, as into the folder for temporary files: what is below it may
/// have any author.
#[cfg(unix)]
pub(crate) fn is_shared(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    const STICKY_AND_FOR_ALL: u32 = 0o1002;
    let mode = fs::metadata(folder).map_or(0, |metadata| metadata.mode());
    mode & STICKY_AND_FOR_ALL == STICKY_AND_FOR_ALL
}

#[cfg(not(unix))]
pub(crate) fn is_shared(_folder: &Path) -> bool {
    false
}

/// The programs of this machine. The workspace around the current folder counts for global commands, too.
pub(crate) fn programs(environment: &Environment) -> Programs {
    let Environment { current, home, mu_home, mu_root, variables, .. } = environment.clone();
    Programs::new(&variables, move || brought(&current, &home, &mu_home, &mu_root))
}

/// What reads the Git repositories of this machine.
#[cfg(feature = "git")]
pub(crate) fn local_git(environment: &Environment) -> mu_provider_git::LocalGit {
    let own = environment.cache.join("git");
    mu_provider_git::LocalGit::new(&programs(environment), &own)
}

/// What Git keeps for mu about the workspace at `root` under this name. What cannot be read is none.
pub(super) fn noted_by_git(root: &Path, name: &str) -> Option<String> {
    #[cfg(feature = "git")]
    let text = mu_provider_git::noted_in_checkout(root, name).ok().flatten();
    #[cfg(not(feature = "git"))]
    let text = Some((root, name)).and(None);
    text
}

/// Has Git keep a text, or none. It only helps when a file of mu is lost, so no command fails because of it.
pub(super) fn note_by_git(root: &Path, name: &str, text: Option<&str>) {
    #[cfg(feature = "git")]
    let _ = mu_provider_git::note_in_checkout(root, name, text);
    #[cfg(not(feature = "git"))]
    let _ = (root, name, text);
}

/// The folders whose content is not the user's own.
fn brought(current: &Path, home: &Path, mu_home: &Path, mu_root: &Path) -> Vec<PathBuf> {
    let workspace = root_around(current, home, mu_home);
    // The folders beside the workspace in its repository have the same author.
    let is_repository = |folder: &&Path| fs::exists(&folder.join(".git")).unwrap_or(true);
    let start = workspace.as_deref().unwrap_or(current);
    let repository = start.ancestors().find(is_repository).map(Path::to_owned);
    // What is around the home folder, such as a repository of its settings, is the user's own.
    let brought = [workspace, repository]
        .into_iter()
        .flatten()
        .map(|folder| if home.starts_with(&folder) { folder.join(MU_FOLDER) } else { folder });
    brought.chain([mu_root.to_owned(), mu_home.join("packs")]).collect()
}

/// The folder at a workspace's root that makes it one.
pub const MU_FOLDER: &str = ".mu";
/// The file in [`MU_FOLDER`] with the workspace's settings.
pub const WORKSPACE_FILE: &str = "workspace.yaml";
/// The file in a workspace's root, and in mu's home, that says which versions are used.
pub const LOCK_FILE: &str = "Mu.lock";
/// The file in mu's home with settings for every workspace.
pub const CONFIG_FILE: &str = "config.yaml";

/// The root of the workspace that the folder `start` is in.
///
/// It is the nearest ancestor with `.mu/workspace.yaml`; else the nearest with a `.mu` folder, where
/// that of `home` and `mu_home` itself do not count; else the folder of the nearest manifest; else `start`.
/// From inside a `.mu` folder, such as from a pack, it is looked for from outside.
pub fn find_root(start: &Path, home: &Path, mu_home: &Path) -> PathBuf {
    root_around(start, home, mu_home).unwrap_or_else(|| outside(start).to_owned())
}

/// The root of the workspace that the folder `start` is in, if it is in one.
pub fn root_around(start: &Path, home: &Path, mu_home: &Path) -> Option<PathBuf> {
    let start = outside(start);
    let mut marked = None;
    let mut packaged = None;
    for folder in start.ancestors() {
        let mu_folder = folder.join(MU_FOLDER);
        if mu_folder.is_dir() {
            if mu_folder.join(WORKSPACE_FILE).is_file() {
                return Some(folder.to_owned());
            }
            if marked.is_none() && folder != home && mu_folder != mu_home {
                marked = Some(folder);
            }
        }
        let is_package = || matches!(formats::locate_manifest(folder), Ok(Some(_)) | Err(_));
        if marked.is_none() && packaged.is_none() && is_package() {
            packaged = Some(folder);
        }
    }
    marked.or(packaged).map(Path::to_owned)
}

/// Whether a folder is a repository of Git without a checkout, which has these two in its root.
pub(crate) fn is_bare_repository(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir()
}

/// The root of the Git repository that `folder` is in, if it is in one. Its `.git` may be a file or a link, too.
pub(crate) fn repository_around(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| fs::symlink_metadata(&folder.join(".git")).is_ok())
}

/// The folder that contains the outermost `.mu` folder around `start`.
fn outside(start: &Path) -> &Path {
    let is_mu = |folder: &&Path| folder.file_name().is_some_and(|name| name == MU_FOLDER);
    start.ancestors().filter(is_mu).last().and_then(Path::parent).unwrap_or(start)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn workspace() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary folder");
        for (name, is_folder) in KNOWN {
            let path = root.path().join(name);
            let made = if is_folder { fs::create_dir(path) } else { fs::write(path, "") };
            made.expect("makes");
        }
        root
    }

    #[test]
    fn each_known_file_and_folder_is_refused_as_a_link_and_as_something_else() {
        for (name, is_folder) in KNOWN {
            let root = workspace();
            refuse_links(root.path()).expect("nothing is a link");
            let path = root.path().join(name);
            let aside = root.path().join("aside");
            fs::rename(&path, &aside).expect("moves");
            refuse_links(root.path()).expect("nothing need be there");
            symlink(&aside, &path).expect("links");
            let error = refuse_links(root.path()).expect_err(name);
            assert!(
                matches!(&error, ForeignError::Link { path: link } if *link == path),
                "{error}"
            );
            fs::remove_file(&path).expect("removes");
            symlink("nowhere", &path).expect("links");
            assert!(matches!(refuse_links(root.path()), Err(ForeignError::Link { .. })), "{name}");
            fs::remove_file(&path).expect("removes");
            if is_folder {
                fs::write(&path, "").expect("writes");
            } else {
                fs::create_dir(&path).expect("makes");
            }
            let error = refuse_links(root.path()).expect_err(name);
            assert!(matches!(error, ForeignError::Kind { .. }), "{error}");
        }
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let root = workspace();
        let owner = fs::metadata(root.path()).expect("is there").uid();
        refuse_other_owners(root.path(), &[owner]).expect("is one's own");
        // The superuser's files are accepted for everyone, so the owner is compared if it is another user.
        if owner != 0 {
            refuse_other_owners(root.path(), &[owner + 1]).expect_err("is another's");
            return;
        }
        for name in ["", ".mu", ".mu/workspace.yaml", "Mu.lock"] {
            let path = root.path().join(name);
            std::os::unix::fs::chown(&path, Some(4711), None).expect("the superuser gives away");
            let error = refuse_other_owners(root.path(), &[0]).expect_err(name);
            assert!(matches!(error, ForeignError::Owner { .. }), "{error}");
            refuse_other_owners(root.path(), &[4711]).expect("is one's own");
            std::os::unix::fs::chown(&path, Some(0), None).expect("the superuser takes back");
        }
    }

    #[test]
    fn folders_for_temporary_files_are_shared() {
        let root = tempfile::tempdir().expect("a temporary folder");
        for (mode, shared) in [(0o1777, true), (0o777, false), (0o755, false), (0o1755, false)] {
            fs::set_permissions(root.path(), fs::Permissions::from_mode(mode)).expect("sets");
            assert_eq!(is_shared(root.path()), shared, "{mode:o}");
        }
    }
}
