//! `remove`: drops packages from manifests (or from what `mu get` was given), the lock and the packs.

use std::collections::BTreeSet;

use crate::ops::apply::plan::Plan;
use crate::ops::explain::not_asked_for::{not_asked_for, still_required_by};
use crate::ops::requirements::editing::{Editing, refuse_several};
use crate::ops::requirements::references_without;
use crate::ops::session::locked::find_locked;
use crate::ops::session::member;
use crate::ops::session::named::{PackageName, Purpose};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::PackageId;
use crate::select::Move;

/// What to remove, and from where.
#[derive(Debug, Clone, Default)]
pub struct RemoveRequest {
    /// References, ids, or the local names of dependencies.
    pub references: Vec<String>,
    /// The package of the workspace whose manifest is edited; `None` means the one around the current folder.
    pub package: Option<String>,
    /// Whether all manifests of the workspace are edited.
    pub all: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// Removes packages from the manifest around the current folder, or from all manifests if there is none; and
/// from what `mu get` was given.
///
/// Several manifests are edited only if requested.
///
/// # Errors
///
/// When nothing requires one of them, or several packages do and it is not clear which is meant, and as
/// [`crate::ops::apply::install::install`].
pub fn remove(session: &Session, request: &RemoveRequest) -> Result<Outcome, CommandError> {
    let (texts, dry_run) = (&request.references, request.dry_run);
    let previous = session.lockfile()?.unwrap_or_default();
    let mut extra = previous.extra.clone();
    let mut editing = Editing::default();
    let mut discarded = BTreeSet::new();
    let everywhere: Vec<usize> = (0..session.workspace.members.len()).collect();
    let named = request.package.as_deref();
    let targets = match named {
        Some(_) => vec![member::target(session, named, "mu remove REF -p PACKAGE")?],
        None if request.all => everywhere,
        None => member::around(session)?.map_or(everywhere, |index| vec![index]),
    };
    for text in texts {
        let name = PackageName::without_version(text, Purpose::Remove)?;
        let found = find_locked(session, &previous, &name);
        let id = found
            .as_ref()
            .map_or_else(|_| session.id_of_argument(name.reference()), PackageId::clone);
        if !request.all {
            refuse_several(session, &editing.changed, &targets, text, &id)?;
        }
        let mut was_there = editing.leave(session, &targets, text, &id)?;
        let rest = references_without(session, &extra, &id);
        was_there |= rest.len() < extra.len();
        extra = rest;
        was_there |= previous.replacement(&id).is_some_and(|replaced| replaced.kept.is_some());
        discarded.insert(id.clone());
        if !was_there {
            // The beginning of a name is missing, and there are several.
            if let Err(error) = found
                && error.code == Code::Usage
            {
                return Err(error);
            }
            return Err(not_asked_for(session, text, &id, &extra));
        }
    }
    let removed = discarded.clone();
    let plan = Plan { editing, extra, discarded, ..Plan::default() };
    let outcome = plan.carry_out(session, Move::Clear, dry_run)?;
    for package in removed.iter().filter_map(|id| outcome.lock.find(id).next()) {
        if let Some(needed) = still_required_by(package) {
            session.events.warning(&format!("`{}` stays, because {needed}", package.id));
        }
    }
    Ok(outcome)
}
