//! The errors about content that is not what was expected, or that did not arrive. Nothing is fetched or compared here.

use mu_provider::{ArchiveDigest, Digest};

use crate::lock::LockedPackage;
use crate::ops::{Code, CommandError};
use crate::store::TreeStoreError;

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

/// The error about an archive of which Mu.lock has another digest than its registry.
pub(super) fn archive_differs(
    package: &LockedPackage,
    locked: &ArchiveDigest,
    listed: &str,
) -> CommandError {
    let LockedPackage { id, version, source, .. } = package;
    let message = format!(
        "Mu.lock and the registry differ about the archive of `{id} {version}`: expected {locked}, as Mu.lock has it, but `{source}` lists {listed}"
    );
    CommandError::new(Code::Integrity, message)
        .hint("if Mu.lock was edited or merged by hand, restore it, or take `archive` out of this entry: its `digest` says what the content has to be")
        .hint("otherwise, ask those who run the registry why the archive was replaced")
        .with_details(serde_json::json!({
            "id": id.to_string(),
            "version": version,
            "expected": locked.to_string(),
            "actual": listed,
            "from": source.to_string(),
        }))
}

/// The error about a folder that differs from a lock that must not change; `change` says in what, if that is known.
pub(crate) fn folder_has_changed(package: &LockedPackage, change: Option<String>) -> CommandError {
    let LockedPackage { id, source, .. } = package;
    let change = change.map(|change| format!(": {change}")).unwrap_or_default();
    // A package without a base is called by its folder.
    let called = match id.to_string() == source.place {
        true => String::new(),
        false => format!(", which is `{id}`,"),
    };
    let message = format!(
        "the folder `{}`{called} has changed since Mu.lock was written{change}",
        source.place
    );
    CommandError::new(Code::LockOutdated, message)
        .hint("run `mu get` without --locked and --frozen, and commit Mu.lock")
        .with_details(serde_json::json!({ "id": id.to_string(), "folder": source.place }))
}

/// The error of a package that could not be fetched.
pub(super) fn not_fetched(error: TreeStoreError, what: &str) -> CommandError {
    let error = CommandError::from(error).while_doing(format!("cannot fetch `{what}`"));
    if error.code != Code::Network || !error.hints.is_empty() {
        return error;
    }
    error
        .hint("run the command again later: what has arrived is not fetched again")
        .hint("`mu doctor` checks registries, the proxy and certificates")
}
