//! Repositories on this machine: read with `git upload-pack` if Git is installed, and otherwise with libgit2,
//! like bundles.

use std::io;
use std::path::{Path, PathBuf};

use mu_provider::{ErrorKind, ProviderError};

use super::pipe::{self, Ending};
use super::session::{Session, describe, not_a_repository};
use super::{bundle, without_git};
use crate::programs::GitPrograms;
use crate::remote_url::RemoteUrl;
use crate::stand_in::Place;
use crate::wire::WireError;
use crate::words::printable;

/// Begins a conversation with a repository of this machine.
pub(super) fn open(
    remote: &RemoteUrl,
    programs: &GitPrograms,
) -> Result<Box<dyn Session>, ProviderError> {
    let path = remote.folder().ok_or_else(|| not_a_repository(remote))?;
    if bundle::is_bundle(&path) {
        return without_git::open_bundle(remote, &path);
    }
    let folder = Some(path).filter(|folder| is_repository(folder));
    let folder = folder.ok_or_else(|| not_a_repository(remote))?;
    let opened = programs.git().and_then(|mut command| {
        // A reader who can read everything may also request commits without files.
        command
            .args(["-c", "uploadpack.allowFilter=true", "upload-pack", "--"])
            .arg(&folder)
            .env("GIT_PROTOCOL", "version=2");
        // A partial clone fetches what it lacks from where its configuration says, which mu does not let it. If that is a
        // repository on this machine, its objects are here.
        if let Some(objects) = promised(&folder) {
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        }
        pipe::open(remote, command, explain)
    });
    match opened {
        Ok(session) => session,
        Err(error) if error.kind() == io::ErrorKind::NotFound => without_git::open(remote, &folder),
        Err(error) => {
            Err(ProviderError::new(ErrorKind::Io, format!("cannot run `git` to read `{remote}`"))
                .because(error))
        }
    }
}

/// The objects of the repository on this machine that a partial clone in a folder was made from.
fn promised(folder: &Path) -> Option<PathBuf> {
    let place = Place::of(folder)?;
    let url = place.promisor()?;
    let other = PathBuf::from(url.strip_prefix("file://").unwrap_or(&url));
    let other = Place::of(&other).filter(|_| other.is_absolute())?;
    Some(other.common.join("objects"))
}

/// Whether a folder looks like a repository, bare or with a working tree.
fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists()
        || (folder.join("HEAD").is_file() && folder.join("objects").is_dir())
}

fn explain(remote: &RemoteUrl, ending: Ending) -> ProviderError {
    let Ending { words, error, .. } = ending;
    let place = remote.folder().and_then(|folder| Place::of(&folder));
    let lacks = error.to_string().contains("repository corruption");
    if let Some(url) = place.filter(|_| lacks).and_then(|place| place.promisor()) {
        let url = mu_provider::place_without_secrets(&url);
        let text = format!("the Git repository `{remote}` is a partial clone, which lacks files");
        return ProviderError::new(ErrorKind::Io, text).because(error).hint(format!(
            "name the repository that it was cloned from: `{}`",
            printable(url.as_bytes())
        ));
    }
    if !matches!(error, WireError::Cut | WireError::Io(_)) {
        return describe(remote, error);
    }
    if words.contains("dubious ownership") {
        let text = format!("the Git repository `{remote}` belongs to another user");
        return ProviderError::new(ErrorKind::Refused, text)
            .because(words)
            .hint("to trust it, `git config --global --add safe.directory` its folder");
    }
    let reason = if words.is_empty() { error.to_string() } else { words };
    ProviderError::new(ErrorKind::Io, format!("cannot read the Git repository `{remote}`"))
        .because(reason)
}
