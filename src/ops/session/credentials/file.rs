//! Where tokens are stored: in the keyring of the operating system, or else in `~/.mu/credentials.json`, a file that only its owner can read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mu_provider::http::Secret;
use serde::{Deserialize, Serialize};

use crate::fs::{self, Lock, Sharing};
use crate::ops::{Code, CommandError};

/// The newest format this program writes and reads.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct CredentialsFile {
    version: u32,
    /// Tokens by host, with the port if it is not the default one.
    tokens: BTreeMap<String, String>,
}

/// Where the file is.
pub(super) fn path(home: &Path) -> PathBuf {
    home.join("credentials.json")
}

/// The stored tokens by host.
///
/// # Errors
///
/// When the file cannot be read, or a newer mu wrote it. It never counts as empty, because the next change
/// would then lose its content.
pub(super) fn read(home: &Path) -> Result<BTreeMap<String, Secret>, CommandError> {
    let path = path(home);
    let Some(text) = fs::read_text_if_there(&path)? else { return Ok(BTreeMap::new()) };
    // The parser's own message could quote a token.
    let file = serde_json::from_str::<CredentialsFile>(&text).ok();
    let Some(file) = file.filter(|file| file.version <= FORMAT) else {
        let message = format!("`{}` is damaged, or was written by a newer mu", path.display());
        return Err(
            CommandError::new(Code::Workspace, message).hint("remove it, and run `mu login` again")
        );
    };
    Ok(file.tokens.into_iter().map(|(host, token)| (host, Secret::new(token))).collect())
}

/// Changes the stored tokens with `change`, which returns whether it changed anything.
///
/// # Errors
///
/// When the file cannot be read or written.
pub(super) fn change(
    home: &Path,
    change: impl FnOnce(&mut BTreeMap<String, Secret>) -> bool,
) -> Result<(), CommandError> {
    fs::create_private_folder(home, crate::env::IN_HOME)?;
    // Without it, of two `mu login` at once, the later one would write back the tokens that it has read before.
    let _lock = Lock::acquire(&home.join("credentials.lock"), Sharing::Exclusive, &mut || {})?;
    let mut tokens = read(home)?;
    if !change(&mut tokens) {
        return Ok(());
    }
    let path = path(home);
    if tokens.is_empty() {
        return Ok(fs::remove_file(&path)?);
    }
    let tokens =
        tokens.into_iter().map(|(host, token)| (host, token.expose().to_owned())).collect();
    let file = CredentialsFile { version: FORMAT, tokens };
    let mut text =
        serde_json::to_string_pretty(&file).expect("strings and numbers always serialise");
    text.push('\n');
    Ok(fs::write_private(&path, text.as_bytes())?)
}

/// Whether other users of this machine can read the file.
#[cfg(unix)]
pub(super) fn is_readable_by_others(home: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(&path(home)).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

/// Whether other users of this machine can read the file.
#[cfg(not(unix))]
pub(super) fn is_readable_by_others(_home: &Path) -> bool {
    false
}

/// Tokens in the keyring of the operating system: Keychain, Credential Manager, Secret Service.
///
/// A missing or locked keyring is not an error here: then the file is used. So it is where the system starts no more threads, for
/// which the client of the Secret Service would wait for ever.
#[cfg(feature = "keyring")]
pub(super) mod keyring {
    use std::sync::{Arc, Mutex};

    use keyring::{Entry, Error, Result};
    use mu_provider::http::Secret;
    use mu_provider::threads::{lock, start};

    /// The purpose of the entries, as the keyring shows it.
    const SERVICE: &str = "mu";

    /// So many threads the client of the Secret Service may start; it waits or panics without them.
    const THREADS: usize = 4;

    /// The entry for a host.
    fn entry(host: &str) -> Result<Entry> {
        let gate = Arc::new(Mutex::new(()));
        let closed = lock(&gate);
        let threads = (0..THREADS).map(|_| {
            let gate = Arc::clone(&gate);
            start(move || drop(lock(&gate)))
        });
        let started: Vec<_> = threads.collect();
        drop(closed);
        for thread in started {
            let thread = thread.map_err(|error| Error::PlatformFailure(error.into()))?;
            // It has only waited.
            let _ = thread.join();
        }
        Entry::new(SERVICE, host)
    }

    /// The token for a host.
    pub(in crate::ops::session::credentials) fn find(host: &str) -> Option<Secret> {
        entry(host).ok()?.get_password().ok().map(Secret::new)
    }

    /// Stores the token for a host.
    ///
    /// # Errors
    ///
    /// When there is no keyring, or it refuses.
    pub(in crate::ops::session::credentials) fn store(host: &str, token: &Secret) -> Result<()> {
        entry(host)?.set_password(token.expose())
    }

    /// Removes the token for a host; returns whether there was one.
    pub(in crate::ops::session::credentials) fn remove(host: &str) -> bool {
        entry(host).is_ok_and(|entry| entry.delete_credential().is_ok())
    }
}
