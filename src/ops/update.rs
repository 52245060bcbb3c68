//! `update`: moves versions, up or down, within the requirements of the manifests.

use std::collections::BTreeMap;

use crate::index::Requirement;
use crate::lock::LockedPackage;
use crate::manifest;
use crate::ops::apply::dependencies::{self, NewVersion, beginning_with};
use crate::ops::apply::plan::Plan;
use crate::ops::requirements::Asked;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::installed;
use crate::ops::session::error::quoted;
use crate::ops::session::locked::find_used;
use crate::ops::solve::narrowed::{Narrowing, pin, without_packages};
use crate::ops::solve::planning::{refuse_frozen, rewrites};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{Move, Selection, Update};

/// Moves everything to the newest versions that fit, or only the named packages (`PKG` or `PKG#VERSION`).
/// Step-by-step upgrades start at the locked version, or at the supposed installation.
///
/// # Errors
///
/// When one of them is not locked, and for all that [`install`](crate::ops::apply::install::install) fails for.
pub fn update(
    session: &Session,
    request: &UpdateRequest,
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let installed = installed(session, &request.installed)?;
    let mut plan = Plan { installed, ..Plan::new(session)? };
    let texts = match request.narrowing.is_empty() {
        true => request.packages.clone(),
        false => {
            let targets = narrowed(session, &mut plan, request, true)?;
            targets.into_iter().map(|target| target.text).collect()
        }
    };
    run(session, &Requester::Update, &texts, dry_run, plan)
}

/// What to move, and how far.
#[derive(Debug, Clone, Default)]
pub struct UpdateRequest {
    /// The packages, with or without the version to move to; none means all.
    pub packages: Vec<String>,
    /// What their new versions must be.
    pub narrowing: Narrowing,
    /// The supposed installation, `ID#VERSION`.
    pub installed: Vec<String>,
}

/// A package that moves, and the version that it moves to.
struct Target {
    id: PackageId,
    version: Version,
    /// Both as a reference.
    text: String,
}

/// The newest version of each package that satisfies the conditions and its reference, and, if `within` is set, what roots
/// require.
fn narrowed(
    session: &Session,
    plan: &mut Plan,
    request: &UpdateRequest,
    within: bool,
) -> Result<Vec<Target>, CommandError> {
    if request.packages.is_empty() {
        return Err(without_packages("mu update ops/kafka --app-version 2.3"));
    }
    let requirements = plan.collect(session, &plan.extra.clone())?;
    requirements.declare(session);
    let known = plan.in_use(session)?;
    let target = |text: &String| {
        let reference = Reference::parse(text)?;
        let id = find_used(session, &known, &reference)?;
        let own = Requirement::new(id.clone(), reference.spec());
        let asked = requirements.asked.iter().map(|asked| &asked.requirement);
        let asked = asked.filter(|asked| within && asked.id == id);
        let all: Vec<&Requirement> = asked.chain([&own]).collect();
        let version = request.narrowing.newest(session, &id, &all)?;
        let text = reference.with_version(Some(pin(&version)?)).to_string();
        Ok(Target { id, version, text })
    };
    request.packages.iter().map(target).collect()
}

/// Moves packages to the newest version that satisfies the conditions, and changes the requirements in the
/// workspace's manifests accordingly.
///
/// # Errors
///
/// As [`update`].
pub fn upgrade_within(
    session: &Session,
    request: &UpdateRequest,
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let mut plan = Plan::new(session)?;
    let targets = narrowed(session, &mut plan, request, false)?;
    let wanted = targets.iter().map(|target| (target.id.clone(), target.version.clone())).collect();
    retarget(session, &mut plan, &wanted, true)?;
    let texts: Vec<String> = targets.into_iter().map(|target| target.text).collect();
    run(session, &Requester::Update, &texts, dry_run, plan)
}

/// Moves versions for `command`.
fn run(
    session: &Session,
    command: &Requester,
    texts: &[String],
    dry_run: bool,
    mut plan: Plan,
) -> Result<Outcome, CommandError> {
    refuse_frozen(session)?;
    if texts.is_empty() {
        plan.move_everything(session)?;
        return plan.conclude(session, Update::Everything, dry_run);
    }
    let known = plan.in_use(session)?;
    let mut newest = Vec::new();
    let mut wishes: Vec<Asked> = Vec::new();
    for text in texts {
        let reference = Reference::parse(text)?;
        let id = find_used(session, &known, &reference)?;
        match reference.version() {
            Some(_) => {
                let wish = manifest::Requirement::new(reference);
                wishes.push(Asked::new(command, id, &wish, &session.environment.current));
            }
            None => newest.push(id),
        }
    }
    let ids = newest.iter().chain(wishes.iter().map(|wish| &wish.requirement.id));
    let update = Update::Packages(ids.cloned().collect());
    if !newest.is_empty() {
        plan.step(session, &update, None, Move::Raise(&newest))?;
    }
    let mut change = None;
    for wish in &wishes {
        let Requirement { id, spec, .. } = &wish.requirement;
        change = plan.step(session, &update, Some(wish), Move::To(id, spec))?;
    }
    match change {
        Some(change) => check_met(&change.selection, &wishes)?,
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

/// Makes the requirements in the workspace's manifests start at these versions; a range keeps its form.
/// Requirements that accept them already stay, unless `moves_all` is set.
fn retarget(
    session: &Session,
    plan: &mut Plan,
    wanted: &BTreeMap<PackageId, Version>,
    moves_all: bool,
) -> Result<(), CommandError> {
    dependencies::change(session, &mut plan.editing, &[], |dependency| {
        let reference = &dependency.reference;
        let is_ordered =
            matches!(reference.version(), Some(VersionSpec::Range(_) | VersionSpec::Pin(_)));
        let version = wanted.get(&dependency.id).filter(|_| is_ordered);
        let (Some(version), Some(written)) = (version, reference.version_text()) else {
            return Ok(None);
        };
        if !moves_all && reference.spec().accepts(version, true) {
            return Ok(None);
        }
        let lowered = VersionSpec::parse(&beginning_with(written, &version.to_string()))?;
        Ok(Some(NewVersion { version: Some(lowered), note: dependency.note.clone() }))
    })?;
    Ok(())
}

/// Moves packages to older versions, and lowers requirements of the workspace's manifests that forbid them.
///
/// # Errors
///
/// When one of the versions is newer than the one in use, and for all that [`update`] fails for.
pub fn downgrade(
    session: &Session,
    texts: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let mut plan = Plan::new(session)?;
    let known = plan.in_use(session)?;
    let mut wanted = BTreeMap::new();
    for text in texts {
        let reference = Reference::parse(text)?;
        let id = find_used(session, &known, &reference)?;
        let Some(VersionSpec::Pin(pin)) = reference.version() else { continue };
        let version = Version::parse(&pin.version().to_string())?;
        let locked = known.find(&id).last();
        let now = locked.and_then(LockedPackage::parsed_version);
        if let Some(now) = now.filter(|now| *now < version) {
            let message = format!("`{id}` is at {now}, and {pin} is newer");
            let asked = locked.into_iter().flat_map(|package| &package.requested);
            let asked = asked.filter_map(|one| Requirement::parse(id.clone(), &one.spec));
            let is_allowed = asked.into_iter().all(|one| one.spec.accepts(&version, true));
            let hint = match is_allowed {
                true => format!("`mu update {}` moves there", quoted(reference.as_str())),
                false => format!(
                    "`mu why {}` shows what keeps it from there",
                    quoted(session.short_name(&id))
                ),
            };
            return Err(CommandError::new(Code::Usage, message).hint(hint));
        }
        wanted.insert(id, version);
    }
    if !rewrites(session, session.strategy()) {
        retarget(session, &mut plan, &wanted, false)?;
    }
    run(session, &Requester::Downgrade, texts, dry_run, plan)
}
