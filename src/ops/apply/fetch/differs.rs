//! The errors about content that is not what was expected.

use mu_provider::Digest;

use crate::lock::LockedPackage;
use crate::ops::{Code, CommandError};

/// The error about content that differs from what `said_by` says.
pub(super) fn content_differs(
    package: &LockedPackage,
    [expected, actual]: [&Digest; 2],
    said_by: &str,
    place: &str,
) -> CommandError {
    let LockedPackage { id, version, .. } = package;
    CommandError::new(
        Code::Integrity,
        format!(
            "the content of `{id} {version}` is not what {said_by} says: expected {expected}, got {actual}, \
             from {place}"
        ),
    )
    .hint("nothing was installed; ask its publisher why the content changed")
    .with_details(serde_json::json!({
        "id": id.to_string(),
        "version": version,
        "expected": expected.to_string(),
        "actual": actual.to_string(),
        "from": place,
    }))
}

/// The error about a folder that differs from a lock that must not change.
pub(super) fn folder_has_changed() -> CommandError {
    CommandError::new(
        Code::LockOutdated,
        "a folder outside the workspace has changed since Mu.lock was written",
    )
    .hint("run `mu get` without --locked and --frozen, and commit Mu.lock")
}
