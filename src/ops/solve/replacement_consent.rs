//! Whether a package may replace another one: its own manifest is not enough.
//!
//! The owner of the old package has agreed if the new one is in the same namespace, or if the old index says
//! that it has moved; the user agrees by a setting, by an earlier `Mu.lock`, or by an answer now. Packages of
//! the workspace need no consent.

use std::collections::BTreeSet;

use crate::index::Universe as _;
use crate::lock::{Lockfile, ReplacedPackage};
use crate::ops::solve::resolved::Resolved;
use crate::ops::{Code, CommandError, OperationScope, Session};
use crate::reference::PackageId;

/// Checks that somebody has agreed to each new replacement; `before` is the lock, which records earlier
/// consent. A dry run only reports how to agree, and returns the replacements without consent.
///
/// # Errors
///
/// When consent is needed and missing.
pub(crate) fn check(
    session: &Session,
    before: &Lockfile,
    resolved: &Resolved,
    dry_run: bool,
) -> Result<BTreeSet<PackageId>, CommandError> {
    let mut missing = BTreeSet::new();
    for replaced in &resolved.lock.replaced {
        if is_agreed(session, before, &resolved.lock, replaced) {
            continue;
        }
        let ReplacedPackage { id, by, .. } = replaced;
        let text = format!("`{by}` would take the place of `{id}`");
        if dry_run && session.options.yes {
            continue;
        }
        if dry_run {
            session.events.warning(&format!(
                "{text}, and nobody has agreed to that yet: to agree, add `allowReplaces: {{{id}: {by}}}` to {}, or \
                 install it with `--yes`",
                settings_file(session)
            ));
            missing.insert(id.clone());
            continue;
        }
        let is_answered = session.options.yes || {
            let who = asking(replaced);
            session
                .events
                .confirm(&format!("{text}, which {who}\n{}\nAllow it?", reasons(replaced)))
        };
        if !is_answered {
            return Err(refused(session, replaced, &text));
        }
    }
    Ok(missing)
}

/// The file that consent can be written into.
fn settings_file(session: &Session) -> &'static str {
    match session.scope {
        OperationScope::Workspace => "`.mu/workspace.yaml`",
        OperationScope::Global => "`~/.mu/config.yaml`",
    }
}

fn is_agreed(
    session: &Session,
    previous: &Lockfile,
    lock: &Lockfile,
    replaced: &ReplacedPackage,
) -> bool {
    let ReplacedPackage { id, by, .. } = replaced;
    // Each of these is enough. The last one may read an index, so it comes last.
    let is_known = previous.replacement(id).is_some_and(|before| before.by == *by);
    let is_own = lock.find(by).any(|package| package.source.is_workspace_folder());
    let settings = &session.workspace.settings;
    let is_allowed = settings.allow_replaces.get(id) == Some(by) || settings.lets_replace(by, id);
    is_known || is_own || is_allowed || have_one_owner(id, by) || has_moved(session, id, by)
}

/// Whether two packages are in one namespace of one registry. Names without a namespace have no common owner.
fn have_one_owner(one: &PackageId, other: &PackageId) -> bool {
    let namespace = one.name().namespace();
    one.base() == other.base() && namespace.is_some() && namespace == other.name().namespace()
}

/// Whether the index of `id` says that it has moved to `by`. An index that cannot be read does not.
fn has_moved(session: &Session, id: &PackageId, by: &PackageId) -> bool {
    let Ok(releases) = session.index().releases(id) else { return false };
    releases.all_details().any(|(_, details)| details.moved_to.as_ref() == Some(by))
}

/// `acme/shop and hub.mu.com/web require`.
fn asking(replaced: &ReplacedPackage) -> String {
    let mut names: Vec<&str> = replaced.requested.iter().map(|requested| &*requested.by).collect();
    names.sort_unstable();
    names.dedup();
    match names[..] {
        [] => "nothing requires".to_owned(),
        [one] => format!("{one} requires"),
        [one, other] => format!("{one} and {other} require"),
        [one, ..] => format!("{one} and {} others require", names.len() - 1),
    }
}

/// Why consent is needed.
fn reasons(ReplacedPackage { id, by, .. }: &ReplacedPackage) -> String {
    format!(
        "  the manifest of `{by}` says that it replaces `{id}`\n  \
         the index of `{id}` does not say that it has moved there, and the two are not in one namespace"
    )
}

fn refused(session: &Session, replaced: &ReplacedPackage, text: &str) -> CommandError {
    let ReplacedPackage { id, by, .. } = replaced;
    let file = settings_file(session);
    let who = asking(replaced);
    let message =
        format!("{text}, which {who}, and nobody has agreed to it\n{}", reasons(replaced));
    CommandError::new(Code::Untrusted, message)
        .hint(format!("to agree, add this to {file}: `allowReplaces: {{{id}: {by}}}`"))
        .hint("to agree this time, run the command again with `--yes`; Mu.lock remembers it")
        .hint(format!(
            "to use both, each under its own name, put this there: `allowReplaces: {{{id}: {id}}}`"
        ))
        .with_details(serde_json::json!({ "id": id.to_string(), "by": by.to_string() }))
}
