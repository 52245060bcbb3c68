//! Repositories on this machine: read with `git upload-pack` if Git is installed, and otherwise with libgit2,
//! like bundles.

use std::io;
use std::path::Path;

use mu_provider::{ErrorKind, ProviderError};

use super::pipe::{self, Ending};
use super::session::{Session, describe, not_a_repository};
use super::{bundle, without_git};
use crate::programs::GitPrograms;
use crate::remote_url::RemoteUrl;
use crate::wire::WireError;

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

/// Whether a folder looks like a repository, bare or with a working tree.
fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists()
        || (folder.join("HEAD").is_file() && folder.join("objects").is_dir())
}

fn explain(remote: &RemoteUrl, ending: Ending) -> ProviderError {
    let Ending { words, error, .. } = ending;
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
