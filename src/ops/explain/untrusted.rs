//! The errors about versions that the rules of the settings do not accept: what was looked at, which rule, and a way out that works
//! when it is pasted.

use crate::lock::LockedPackage;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::shown::count;
use crate::ops::{Code, CommandError, Session};
use crate::reference::PackageId;
use crate::select::{Conflict, Rejection};
use crate::trust::{MOST_REFUSED, Refused, RefusedVersion};

/// How many versions are named.
const MOST_NAMED: usize = 5;

/// The error of a conflict that there is because versions were refused; `None` if there would be one without.
pub(crate) fn of_conflict(session: &Session, conflict: &Conflict) -> Option<CommandError> {
    let rejections = conflict.clashes.iter().flat_map(|clash| &clash.rejected);
    // What is refused is what the package comes from, which an override may have put in its place.
    let id = rejections.into_iter().find_map(|(reason, _)| match reason {
        Rejection::Broken(why) => session.trust.refused_because(why),
        _ => None,
    })?;
    Some(no_version(session, &id, &session.trust.refused_versions(&id)))
}

/// The error about a package of which no version is accepted.
pub(crate) fn no_version(
    session: &Session,
    id: &PackageId,
    refused: &[RefusedVersion],
) -> CommandError {
    let all = match refused.len() > MOST_REFUSED {
        true => format!("none of {} versions of `{id}` that were looked at", refused.len()),
        false => format!("no version of `{id}` that fits"),
    };
    let mut text = format!("{all} is signed as your rules ask");
    for RefusedVersion { version, refused } in refused.iter().take(MOST_NAMED) {
        text.push_str(&format!("\n  {version}: {}", refused.why));
    }
    if refused.len() > MOST_NAMED {
        let more = count(refused.len() - MOST_NAMED, "more version");
        text.push_str(&format!("\n  and {more}"));
    }
    // Most often it is one rule for all of them.
    let mut rules: Vec<&str> = refused.iter().map(|one| &*one.refused.rule).collect();
    rules.dedup();
    for rule in rules {
        text.push_str(&format!("\n{rule}"));
    }
    // The way out is about the first one, which selection wanted most.
    let versions: Vec<&str> = refused.iter().map(|one| &*one.version).collect();
    let error = CommandError::new(Code::Untrusted, text)
        .with_details(serde_json::json!({ "id": id.to_string(), "versions": versions }));
    match refused.first() {
        Some(first) => error.hint(allowing(session, id, &first.version)),
        None => error,
    }
}

/// The error about a version that the lock names.
pub(crate) fn locked(
    session: &Session,
    package: &LockedPackage,
    refused: &Refused,
) -> CommandError {
    let LockedPackage { id, version, .. } = package;
    let text = format!(
        "`{id}` {version}, which Mu.lock names, is not signed as your rules ask: {}\n{}",
        refused.why, refused.rule
    );
    let name = session.short_name(id);
    CommandError::new(Code::Untrusted, text)
        .hint(format!(
            "`mu update {}` moves to a version that they accept",
            quoted_for_shell(&name)
        ))
        .hint(allowing(session, id, version))
        .with_details(serde_json::json!({ "id": id.to_string(), "versions": [version] }))
}

/// The error about a revision that is asked for by its digest, so that there is no other one.
pub(crate) fn revision(
    session: &Session,
    id: &PackageId,
    what: &str,
    refused: &Refused,
) -> CommandError {
    // `mu trust allow` is for versions, and this has none.
    let name = session.short_name(id);
    let text = format!(
        "`{name}` at {what} is not signed as your rules ask: {}\n{}",
        refused.why, refused.rule
    );
    CommandError::new(Code::Untrusted, text)
        .with_details(serde_json::json!({ "id": id.to_string(), "versions": [what] }))
}

/// How to accept a version as it is.
fn allowing(session: &Session, id: &PackageId, version: &str) -> String {
    let name = format!("{}#{version}", session.short_name(id));
    format!("to accept exactly this content: mu trust allow {}", quoted_for_shell(&name))
}
