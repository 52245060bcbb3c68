//! Tokens in the keyring of the operating system: Keychain, Credential Manager, Secret Service.
//!
//! A missing or locked keyring is not an error here: then the file is used. So it is where the system starts no more threads, for
//! which the client of the Secret Service would wait for ever.

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
pub(super) fn find(host: &str) -> Option<Secret> {
    entry(host).ok()?.get_password().ok().map(Secret::new)
}

/// Stores the token for a host.
///
/// # Errors
///
/// When there is no keyring, or it refuses.
pub(super) fn store(host: &str, token: &Secret) -> Result<()> {
    entry(host)?.set_password(token.expose())
}

/// Removes the token for a host; returns whether there was one.
pub(super) fn remove(host: &str) -> bool {
    entry(host).is_ok_and(|entry| entry.delete_credential().is_ok())
}
