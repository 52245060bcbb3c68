//! `pack`: writes the archive of a package into a file.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::contents::GZIP;
use crate::ops::publication::packing::{Making, archive_file_name, make, refuse_foreign};
use crate::ops::session::locked;
use crate::ops::{Code, CommandError, Session};

pub use crate::ops::publication::packing::{Packed, PackedArchive};

/// What is packed, and how.
#[derive(Debug, Clone, Default)]
pub struct PackRequest {
    /// The package; `None` means the one around the current folder.
    pub package: Option<String>,
    /// The archive's file, or the folder for it; `None` means the current folder.
    pub output: Option<PathBuf>,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// Whether files that look like secrets are packed too.
    pub force: bool,
    /// Whether dependencies are written with their locked versions.
    pub pinned: bool,
}

/// Packs a package of the workspace.
pub fn pack(session: &Session, request: &PackRequest) -> Result<Packed, CommandError> {
    let index = locked::target(session, request.package.as_deref(), "mu pack PACKAGE")?;
    refuse_foreign(&session.workspace.members[index])?;
    let lock = session.lockfile()?.unwrap_or_default();
    let file_name = archive_file_name(&session.workspace.members[index].manifest)?;
    let path = output(session, request.output.as_deref(), &file_name);
    if !request.dry_run {
        replaces_nothing_else(&path)?;
    }
    let (force, pinned, not) = (request.force, request.pinned, Some(&*path));
    let making = Making { force, pinned, not, may_lack_versions: false };
    let mut packed = make(session, index, &lock, making)?;
    if !request.dry_run {
        packed.archive.save(&path)?;
        packed.path = Some(path);
    }
    Ok(packed)
}

fn output(session: &Session, output: Option<&Path>, file_name: &str) -> PathBuf {
    let current = &session.environment.current;
    let Some(output) = output else { return current.join(file_name) };
    let path = crate::env::absolute(current, output);
    let is_folder = path.is_dir() || output.to_string_lossy().ends_with('/');
    if is_folder { path.join(file_name) } else { path }
}

/// Refuses to overwrite what is not an archive: it may be somebody's only copy, or a device.
fn replaces_nothing_else(path: &Path) -> Result<(), CommandError> {
    let found = crate::fs::symlink_metadata(path).map(|found| found.file_type()).ok();
    // Whoever opens a pipe waits for the other end.
    if found.is_some_and(|found| !found.is_file() && !found.is_dir() && !found.is_symlink()) {
        let message =
            format!("`{}` is not a regular file, so `mu pack` does not replace it", path.display());
        return Err(CommandError::new(Code::Usage, message)
            .hint("`mu pack --dry-run` shows what would be packed, and writes nothing"));
    }
    if path.is_symlink() {
        let message =
            format!("`{}` is a symbolic link, and mu does not write through links", path.display());
        return Err(CommandError::new(Code::Usage, message)
            .hint("name another file with `--output`, or remove the link"));
    }
    let mut beginning = [0; 2];
    let read = crate::fs::open(path).ok().and_then(|mut file| file.read_exact(&mut beginning).ok());
    if path.is_file() && (read.is_none() || beginning != GZIP) {
        let message = format!("`{}` already exists, and is not an archive", path.display());
        return Err(CommandError::new(Code::Usage, message)
            .hint("name another file with `--output`, or remove this one"));
    }
    Ok(())
}
