//! `update`: moves versions, up or down, within what the manifests ask for.

use std::collections::BTreeSet;

use crate::index::Requirement;
use crate::lock::LockedPackage;
use crate::ops::apply::install::install;
use crate::ops::apply::least::{self, Plan, conclude, current, step, update_everything};
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::session::locked::find_used;
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{Move, Update};

/// Moves everything to the newest that fits, or only what `texts` name (`PKG` or `PKG#VERSION`).
///
/// # Errors
///
/// When one of them is not locked, and for all that [`install`] fails for.
pub fn update(
    session: &mut Session,
    texts: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    run(session, &Requester::Update, texts, dry_run)
}

/// Moves versions because `command` says so.
fn run(
    session: &mut Session,
    command: &Requester,
    texts: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    if least::is_in_force(session) {
        return update_least(session, command, texts, dry_run);
    }
    let previous = session.lockfile()?.unwrap_or_default();
    let mut requirements = Requirements::collect(session, previous.extra.clone())?;
    let mut moving = BTreeSet::new();
    for text in texts {
        let reference = Reference::parse(text)?;
        let id = find_used(session, &previous, &reference)?;
        if reference.version().is_some() {
            requirements.asked.push(wish(session, command, id.clone(), reference));
        }
        moving.insert(id);
    }
    let update = if texts.is_empty() { Update::Everything } else { Update::Packages(moving) };
    install(session, &requirements, update, &[], dry_run)
}

/// What `PKG#VERSION` on the command line asks for.
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

/// The same by the minimal strategy: what moves is what the manifests ask for.
fn update_least(
    session: &mut Session,
    command: &Requester,
    texts: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let mut plan =
        Plan { extra: session.lockfile()?.unwrap_or_default().extra.clone(), ..Plan::default() };
    if texts.is_empty() {
        update_everything(session, &mut plan)?;
        return conclude(session, plan, Update::Everything, dry_run);
    }
    let known = current(session, &plan.extra)?;
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
        step(session, &mut plan, &update, None, |universe, request| {
            least::planned(universe, request, Move::Raise(&newest))
        })?;
    }
    let mut selection = None;
    for wish in &wishes {
        let Requirement { id, spec, .. } = &wish.requirement;
        let change = step(session, &mut plan, &update, Some(wish), |universe, request| {
            least::planned(universe, request, Move::To(id, spec))
        })?;
        selection = Some(change.selection);
    }
    for wish in &wishes {
        let (id, to) = (&wish.requirement.id, &wish.requirement.spec);
        let now = selection.as_ref().and_then(|selection| selection.find(id));
        let version = now.and_then(|chosen| chosen.version.as_ref());
        let is_there = version.is_none_or(|version| to.accepts(version, true));
        if now.is_none() || !is_there {
            let message = format!("`{id}` cannot be at {to} together with what else was asked for");
            return Err(CommandError::new(Code::NoSolution, message).hint(
                "move one package at a time, and look at what each move does to the others",
            ));
        }
    }
    conclude(session, plan, update, dry_run)
}

/// Moves packages to older versions.
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
    let known = if least::is_in_force(session) { current(session, &lock.extra)? } else { lock };
    for text in texts {
        let reference = Reference::parse(text)?;
        let id = find_used(session, &known, &reference)?;
        let now = known.find(&id).last().and_then(LockedPackage::parsed_version);
        if let (Some(VersionSpec::Pin(pin)), Some(now)) = (reference.version(), now)
            && now < Version::parse(&pin.version().to_string())?
        {
            let message = format!("`{id}` is at {now}, and {pin} is newer");
            return Err(CommandError::new(Code::Usage, message)
                .hint(format!("`mu update {reference}` moves there")));
        }
    }
    run(session, &Requester::Downgrade, texts, dry_run)
}
