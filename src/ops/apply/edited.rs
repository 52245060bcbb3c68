//! Installs what this machine uses while packages are edited, and keeps Mu.lock as it is for everyone else.
//!
//! Mu.lock is chosen without the edits. What is installed is chosen with them, from Mu.lock and from what the edits added and
//! moved before; it is written to `.mu/edits.lock`. A package that the edits do not move keeps the version of Mu.lock.

use std::rc::Rc;
use std::sync::Arc;

use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::fetch;
use crate::ops::apply::outcome::{EditInUse, lock_changes};
use crate::ops::apply::{
    answer, check_held, examine, make_packs, patched, record, would_be, write,
};
use crate::ops::explain::places;
use crate::ops::requirements::editing::FileEdit;
use crate::ops::requirements::{self, Requirements};
use crate::ops::session::installed::{named, needed_packs};
use crate::ops::solve::question::{Question, request};
use crate::ops::solve::record::Resolved;
use crate::ops::solve::{names, patches, resolve_from, resolve_from_previous};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::packs::WantedPack;
use crate::reference::PackageId;
use crate::select::Update;

/// Does what [`install`](super::install) does, in a workspace with packages that only this machine uses; `session` leaves these out.
pub(super) fn install_edited(
    session: &Session,
    requirements: &Requirements,
    mut resolved: Resolved,
    edits: &[FileEdit],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    // The team's view comes first: what would be refused for everybody is refused here, too, and Mu.lock gets the
    // digests that everybody needs, also of packages that an edit hides here.
    let unagreed = examine(session, requirements, &resolved, dry_run)?;
    let known = Lockfile::read_edits(&session.workspace.root)?;
    let previous = known.clone().or_else(|| Some(Lockfile::clone(&resolved.previous)));
    if !dry_run {
        complete(session, requirements, &mut resolved)?;
        check_held(session, &resolved)?;
    }
    // From here on, the view of this machine. Its first run begins at Mu.lock, later ones at `.mu/edits.lock`.
    let before = previous.clone().unwrap_or_default();
    let here = session.with_edits(requirements.changed.iter(), previous);
    let (needs, mut used) =
        with_edits(&here, &resolved.lock, known.as_ref()).map_err(|error| blame(session, error))?;
    examine(&here, &needs, &used, dry_run)?;
    let team = lock_changes(&resolved.previous, &resolved.lock);
    let mut outcome = if dry_run {
        would_be(&here, &needs, used, edits, unagreed)?
    } else {
        if session.options.no_dev {
            used.left_out = requirements::development_only(&needs, &used.lock);
        }
        // Vendored packs are committed, so those of Mu.lock stay.
        let is_vendored = session.packs().is_vendored();
        let also = if is_vendored { named(&resolved.lock) } else { Vec::new() };
        check_vendored(session, &also, &used.lock)?;
        // As without edits: packs, locks, manifests. A run that is killed between the two locks leaves an old
        // `.mu/edits.lock`, which the next one derives anew from Mu.lock.
        let made = make_packs(&here, &needs, &mut used, &also)?;
        record(session, requirements, &mut resolved)?;
        if known.as_ref() != Some(&*used.lock) {
            here.write_lockfile(&used.lock)?;
        }
        let edited = write(edits)?;
        session.save_index();
        here.save_index();
        answer(&here, &needs, used, made, edited)?
    };
    // The edit's name already says that only its place differs.
    let is_same = |id: &PackageId| {
        let now = outcome.lock.find(id).last().map(|package| &package.version);
        now == before.find(id).last().map(|package| &package.version)
    };
    let edits = edits_in_use(&here);
    let same: Vec<&EditInUse> = edits.iter().filter(|edit| is_same(&edit.id)).collect();
    outcome.changes.retain(|change| !same.iter().any(|edit| edit.id == change.id));
    // Only now: what has changed for everyone is told of an edited package, too.
    Ok(Outcome { edits, ..with_changes(outcome, team) })
}

/// Checks that what this machine uses is what the `vendored` packs are, which everybody gets: a pack's folder has room for one.
fn check_vendored(
    session: &Session,
    vendored: &[WantedPack],
    used: &Lockfile,
) -> Result<(), CommandError> {
    let differs = needed_packs(used).find_map(|(_, used)| {
        let is_other = |pack: &&WantedPack| pack.place == used.place && pack.digest != used.digest;
        vendored.iter().find(is_other).map(|pack| (pack, used))
    });
    let Some((pack, used)) = differs else { return Ok(()) };
    let folder = session.packs().pack_path(&pack.place);
    let message = format!(
        "the pack in `{}` is vendored: it is {}, as Mu.lock has it, and what only this machine uses ({}) needs {}",
        folder.display(),
        pack.version,
        session.names_of_edits(),
        used.version
    );
    Err(CommandError::new(Code::Conflict, message).hint(
        "`mu vendor --undo` takes packs out of what is committed, until that is committed, too",
    ))
}

/// The packages that only this machine uses, for its user.
pub(super) fn edits_in_use(session: &Session) -> Vec<EditInUse> {
    let used = session.edited.iter().filter(|edited| edited.is_used);
    let used = used.map(|edited| EditInUse {
        id: edited.id.clone(),
        folder: edited.member.place.clone(),
        ahead: edited.ahead(&session.environment, &session.workspace.root),
    });
    used.collect()
}

/// Finds the digests that Mu.lock lacks, also of patched packages. They belong to everyone, although an edit may be used here instead.
fn complete(
    session: &Session,
    requirements: &Requirements,
    resolved: &mut Resolved,
) -> Result<(), CommandError> {
    let is_open = |package: &LockedPackage| {
        package.source.is_outside_folder()
            || package.digest.is_none() && !package.source.is_workspace_folder()
            || !package.is_patched_as_locked()
    };
    if !resolved.lock.packages.iter().any(is_open) {
        return Ok(());
    }
    requirements.declare(session);
    let _store = session.use_store()?;
    fetch(session, resolved)?;
    patched::apply_patches(session, resolved)
}

/// What this machine uses: the packages of `team`, and what the edits add and move. `known` is what it used before.
fn with_edits(
    here: &Session,
    team: &Arc<Lockfile>,
    known: Option<&Lockfile>,
) -> Result<(Rc<Requirements>, Resolved), CommandError> {
    let needs = Rc::new(names::collect_looked_up(here, team.extra.clone())?);
    let question = Question::without_moves(Rc::clone(&needs));
    let before = here.lockfile()?.unwrap_or_default();
    // Mu.lock may be another one than last time, such as after a change of branch: so what only this machine has is added to it.
    let added = overlaid(team, known, false);
    // If the lock holds as it is, nothing moves. First without what edits had moved before (an edit required `db ^2`,
    // and Mu.lock has 1.9), so that a move that is no longer needed ends; then with it; and only then are versions
    // chosen.
    let resolved = if needs.choosing_strategy().follows_lock() {
        let moved = overlaid(team, known, true);
        places::check(here, &needs.changed)?;
        needs.declare(here);
        let hold = |lock: &Arc<Lockfile>| {
            resolve_from_previous(
                here,
                &needs,
                lock,
                &mut request(here, &needs, lock, Update::Nothing),
            )
        };
        let mut held = hold(&added)?;
        if held.is_none() && moved != added {
            held = hold(&moved)?;
        }
        match held {
            Some(held) => held,
            None => resolve_from(here, &question, moved)?,
        }
    } else {
        // With the minimal strategy, no lock is followed: the manifests are the state, those of the edits among them. The lock only
        // says where upgrades go from.
        resolve_from(here, &question, added)?
    };
    let mut resolved = Resolved { previous: before, ..resolved };
    // A patch that is not used is told of Mu.lock.
    let warnings = resolved.warnings.clone();
    // What this machine used before may be older than a patch of Mu.lock.
    patches::record_patches(here, &mut resolved, Some(team))?;
    Ok((needs, Resolved { warnings, ..resolved }))
}

/// The packages of `team`, those that only `known` has, and, if `moves` is set, those that it has in other versions.
fn overlaid(team: &Arc<Lockfile>, known: Option<&Lockfile>, moves: bool) -> Arc<Lockfile> {
    let Some(known) = known else { return Arc::clone(team) };
    let others = known.packages.iter().filter(|package| !package.source.is_workspace_folder());
    // All versions of a package come from one side. A package that the team has replaced is not brought back.
    let is_other = |package: &&LockedPackage| match team.find(&package.id).next() {
        None => team.replacement(&package.id).is_none(),
        Some(_) => {
            moves
                && !team
                    .find(&package.id)
                    .any(|same| same.version == package.version && same.commit == package.commit)
        }
    };
    let others: Vec<&LockedPackage> = others.filter(is_other).collect();
    if others.is_empty() {
        return Arc::clone(team);
    }
    let mut lock = Lockfile::clone(team);
    lock.packages.retain(|package| !others.iter().any(|other| other.id == package.id));
    lock.packages.extend(others.into_iter().cloned());
    lock.packages
        .sort_by(|left, right| (&left.id, &left.version).cmp(&(&right.id, &right.version)));
    Arc::new(lock)
}

/// Adds what has changed for everyone to what has changed here.
fn with_changes(mut outcome: Outcome, team: Vec<crate::ops::Change>) -> Outcome {
    let new = team
        .into_iter()
        .filter(|change| !outcome.changes.iter().any(|known| known.id == change.id));
    let new: Vec<_> = new.collect();
    outcome.changes.extend(new);
    outcome.changes.sort();
    outcome
}

/// Adds that an edit plays a part in a failure.
fn blame(session: &Session, error: CommandError) -> CommandError {
    if !matches!(error.code, Code::NoSolution | Code::NotFound | Code::Manifest | Code::Offline) {
        return error;
    }
    error.hint(format!(
        "without what is edited here, Mu.lock would do: {}",
        session.names_of_edits()
    ))
}
