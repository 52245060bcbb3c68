//! `yank`: withdraws a published version, or undoes that.
//!
//! A yanked version stays in use where it is locked, and is otherwise no longer chosen.

use mu_provider::NO_REASON;

use crate::ops::publication::lines::Mark;
pub use crate::ops::publication::marked::Marked;
use crate::ops::publication::marked::named;
use crate::ops::{CommandError, Session};

/// The version to withdraw.
#[derive(Debug, Clone, Default)]
pub struct YankRequest {
    /// A reference with a version.
    pub reference: String,
    /// Why.
    pub reason: Option<String>,
    /// Whether to undo a withdrawal.
    pub undo: bool,
    /// The hub; `None` means the one that the reference leads to.
    pub to: Option<String>,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// Withdraws a version, or undoes that.
///
/// # Errors
///
/// When there is no such version, or the hub refuses.
pub fn yank(session: &Session, request: &YankRequest) -> Result<Marked, CommandError> {
    let (target, name, version) = named(session, &request.reference, request.to.as_deref())?;
    let given = request.reason.as_deref().filter(|reason| !reason.is_empty());
    let reason = (!request.undo).then(|| given.unwrap_or(NO_REASON));
    // Without a reason, the one of an earlier withdrawal stays.
    if !request.undo && given.is_none() && target.is_yanked(&name, &version)? {
        return Ok(Marked { name, version, place: target.name, changed: false });
    }
    Marked::new((target, name, version), Mark::Yanked(reason), request.dry_run)
}
