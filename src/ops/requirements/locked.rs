//! What requirements need of the lock: that there is one.

use crate::ops::requirements::Requirements;
use crate::ops::{Code, CommandError, Session};

/// Checks that there is a lock, if anything is required.
///
/// # Errors
///
/// When there is none, which leaves a command that only reads the lock without an answer.
pub(crate) fn check_chosen(
    session: &Session,
    requirements: &Requirements,
) -> Result<(), CommandError> {
    if requirements.asked.is_empty() || session.lockfile()?.is_some() {
        return Ok(());
    }
    Err(CommandError::new(Code::LockOutdated, "there is no Mu.lock yet")
        .hint("run `mu get`, which chooses versions and writes Mu.lock"))
}
