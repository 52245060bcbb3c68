//! Where the workspace starts, and the Git repository around it.
//!
//! Checks a few names in each folder on the way up; lists nothing, reads nothing.

use std::path::{Path, PathBuf};

use crate::formats;
use crate::fs;

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

/// The root of the Git repository that `folder` is in, if it is in one. Its `.git` may be a file or a link, too.
pub(crate) fn repository_around(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| fs::symlink_metadata(&folder.join(".git")).is_ok())
}

/// The folder that contains the outermost `.mu` folder around `start`.
fn outside(start: &Path) -> &Path {
    let is_mu = |folder: &&Path| folder.file_name().is_some_and(|name| name == MU_FOLDER);
    start.ancestors().filter(is_mu).last().and_then(Path::parent).unwrap_or(start)
}
