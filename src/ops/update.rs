//! `update`: moves versions, up or down, within the requirements of the manifests.

use std::collections::BTreeMap;

use crate::index::Requirement;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::dependencies::{self, Meant, NewVersion, beginning_with};
use crate::ops::apply::plan::Plan;
use crate::ops::requirements::Asked;
use crate::ops::requirements::pins::MARK;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::installed;
use crate::ops::session::error::quoted;
use crate::ops::session::locked::{find_locked, find_used};
use crate::ops::solve::planning::{in_use, rewrites};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{Move, Selection, Update};

/// Moves everything to the newest that fits, or only what `texts` name (`PKG` or `PKG#VERSION`). Upgrades that go step by
/// step begin at what is locked, or at what is supposed to be installed, `ID#VERSION`.
///
/// # Errors
///
/// When one of them is not locked, and for all that [`install`](crate::ops::apply::install::install) fails for.
pub fn update(
    session: &mut Session,
    texts: &[String],
    supposed: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let plan = Plan { installed: installed(session, supposed)?, ..Plan::new(session)? };
    run(session, &Requester::Update, texts, dry_run, plan)
}

/// Moves versions for `command`.
fn run(
    session: &mut Session,
    command: &Requester,
    texts: &[String],
    dry_run: bool,
    mut plan: Plan,
) -> Result<Outcome, CommandError> {
    if texts.is_empty() {
        plan.move_everything(session)?;
        return plan.conclude(session, Update::Everything, dry_run);
    }
    let known = in_use(session, &plan.extra)?;
    let mut newest = Vec::new();
    let mut wishes: Vec<Asked> = Vec::new();
    for text in texts {
        let reference = Reference::parse(text)?;
        let id = find_used(session, &known, &reference)?;
        match reference.version() {
            Some(_) => wishes.push(wish(session, command, id, reference)),
            None => newest.push(id),
        }
    }
    let ids = newest.iter().chain(wishes.iter().map(|wish| &wish.requirement.id));
    let update = Update::Packages(ids.cloned().collect());
    if !newest.is_empty() {
        plan.step(session, &update, None, Move::Raise(&newest))?;
    }
    let mut selection = None;
    for wish in &wishes {
        let Requirement { id, spec, .. } = &wish.requirement;
        selection = plan.step(session, &update, Some(wish), Move::To(id, spec))?;
    }
    match selection {
        Some(selection) => check_met(&selection, &wishes)?,
        // No manifest requires them: only the lock keeps them.
        None => plan.once = wishes,
    }
    plan.conclude(session, update, dry_run)
}

/// Checks that later moves did not undo earlier ones.
fn check_met(selection: &Selection, wishes: &[Asked]) -> Result<(), CommandError> {
    for wish in wishes {
        let (id, to) = (&wish.requirement.id, &wish.requirement.spec);
        let now = selection.find(id);
        let version = now.and_then(|chosen| chosen.version.as_ref());
        let is_there = version.is_none_or(|version| to.accepts(version, true));
        if now.is_none() || !is_there {
            let message = format!(
                "`{id}` cannot be at {to} together with everything else that was requested"
            );
            return Err(CommandError::new(Code::NoSolution, message)
                .hint("move one package at a time, and check what each move does to the others"));
        }
    }
    Ok(())
}

/// The request in `PKG#VERSION` on the command line.
fn wish(session: &Session, command: &Requester, id: PackageId, reference: Reference) -> Asked {
    Asked {
        by: command.clone(),
        requirement: Requirement::new(id, reference.spec()),
        reference,
        from: session.environment.current.clone(),
        line: None,
        indirect: false,
    }
}

/// Lowers requirements of the workspace's manifests that forbid the versions that `texts` name; a range keeps
/// its form.
fn lower(
    session: &mut Session,
    plan: &mut Plan,
    known: &Lockfile,
    texts: &[String],
) -> Result<(), CommandError> {
    let mut wanted: BTreeMap<PackageId, Version> = BTreeMap::new();
    for text in texts {
        let reference = Reference::parse(text)?;
        if let Some(VersionSpec::Pin(pin)) = reference.version() {
            let version = Version::parse(&pin.version().to_string())?;
            let id = find_locked(session, known, &reference)?;
            wanted.insert(known.used_for(&id).clone(), version);
        }
    }
    let meant = Meant { names: &[], mark: MARK };
    dependencies::change(session, &mut plan.editing, &meant, |dependency| {
        let reference = &dependency.reference;
        let is_ordered =
            matches!(reference.version(), Some(VersionSpec::Range(_) | VersionSpec::Pin(_)));
        let version = wanted.get(&dependency.id).filter(|_| is_ordered);
        let (Some(version), Some(written)) = (version, reference.version_text()) else {
            return Ok(None);
        };
        if reference.spec().accepts(version, true) {
            return Ok(None);
        }
        let lowered = VersionSpec::parse(&beginning_with(written, &version.to_string()))?;
        Ok(Some(NewVersion { version: Some(lowered), note: dependency.note.clone() }))
    })
}

/// Moves packages to older versions, and lowers requirements of the workspace's manifests that forbid them.
///
/// # Errors
///
/// When one of the versions is newer than what is in use, and for all that [`update`] fails for.
pub fn downgrade(
    session: &mut Session,
    texts: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let known = in_use(session, &lock.extra)?;
    for text in texts {
        let reference = Reference::parse(text)?;
        let id = find_used(session, &known, &reference)?;
        let now = known.find(&id).last().and_then(LockedPackage::parsed_version);
        if let (Some(VersionSpec::Pin(pin)), Some(now)) = (reference.version(), now)
            && now < Version::parse(&pin.version().to_string())?
        {
            let message = format!("`{id}` is at {now}, and {pin} is newer");
            return Err(CommandError::new(Code::Usage, message)
                .hint(format!("`mu update {}` moves there", quoted(reference.as_str()))));
        }
    }
    let mut plan = Plan::new(session)?;
    if !rewrites(session, session.strategy()) {
        lower(session, &mut plan, &known, texts)?;
    }
    run(session, &Requester::Downgrade, texts, dry_run, plan)
}
