//! Tokens in the keyring of the operating system: Keychain, Credential Manager, Secret Service.
//!
//! A missing or locked keyring is not an error here: then the file is used.

use keyring::Entry;
use mu_provider::http::Secret;

/// The purpose of the entries, as the keyring shows it.
const SERVICE: &str = "mu";

/// The token for a host.
pub(super) fn find(host: &str) -> Option<Secret> {
    Entry::new(SERVICE, host).ok()?.get_password().ok().map(Secret::new)
}

/// Stores the token for a host.
///
/// # Errors
///
/// When there is no keyring, or it refuses.
pub(super) fn store(host: &str, token: &Secret) -> keyring::Result<()> {
    Entry::new(SERVICE, host)?.set_password(token.expose())
}

/// Removes the token for a host; returns whether there was one.
pub(super) fn remove(host: &str) -> bool {
    Entry::new(SERVICE, host).is_ok_and(|entry| entry.delete_credential().is_ok())
}
