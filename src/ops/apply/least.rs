//! Commands by the minimal strategy: the manifests are the state, so whatever changes versions changes them.
//!
//! Every command leaves the manifests tidy: own requirements begin at what is chosen, and what only others need is listed
//! where the selection would come out lower without. The lock is made from them, and adds nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::index::{self, Universe};
use crate::lock::Lockfile;
use crate::manifest;
use crate::ops::apply::install::install;
use crate::ops::apply::rewrite::{Lists, rewrite};
use crate::ops::explain::failure::failed;
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::solve::resolve::{ask, ask_installed_too, is_settled, request, resolve};
use crate::ops::solve::resolved::Resolved;
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, VersionSpec};
use crate::select::{
    COMMAND, Change, Fact, Failure, Lowered, Minimal, Move, Request, Requirer, Root, Strategy as _,
    Update,
};
use crate::workspace::Resolution;

/// What becomes of lines that nothing leads to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// They stay.
    Stay,
    /// They go.
    Go,
}

/// What a command is about to do: manifests that it changes, what `mu get` was given, and what a downgrade lowered.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The manifests.
    pub(crate) editing: Editing,
    /// What `mu get` was given.
    pub(crate) extra: Vec<String>,
    /// Packages of which nothing stays behind, though something else took their place.
    pub(crate) discarded: BTreeSet<PackageId>,
    /// What was lowered or dropped besides what was asked for.
    pub(crate) lowered: Vec<Lowered>,
}

/// Whether the minimal strategy is in force, and may change anything.
pub(crate) fn is_in_force(session: &Session) -> bool {
    is_free(session, session.resolution())
}

/// The same of a strategy that need not be the session's.
pub(crate) fn is_free(session: &Session, resolution: Resolution) -> bool {
    let is_held = session.options.frozen || session.options.locked;
    resolution == Resolution::Minimal && !is_held
}

/// Carries out a change of manifests and of what `mu get` was given, in the strategy that is in force.
///
/// # Errors
///
/// When versions do not fit together, and for all that [`install`] fails for.
pub(crate) fn carry_out(
    session: &mut Session,
    mut plan: Plan,
    update: Update,
    idle: Idle,
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    if is_in_force(session) {
        tidy(session, &mut plan, idle)?;
    }
    conclude(session, plan, update, dry_run)
}

/// Carries out a change as it stands.
pub(crate) fn conclude(
    session: &Session,
    plan: Plan,
    update: Update,
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let mut requirements = Requirements::collect(session, plan.extra)?;
    requirements.discarded = plan.discarded;
    let outcome = install(session, &requirements, update, &plan.editing.into_edits(), dry_run)?;
    Ok(Outcome { lowered: plan.lowered, ..outcome })
}

/// Makes the manifests say what their own requirements come to; what `mu get` was given has no say in that.
pub(crate) fn tidy(session: &mut Session, plan: &mut Plan, idle: Idle) -> Result<(), CommandError> {
    let all = Requirements::collect(session, plan.extra.clone())?;
    let lock = session.lockfile()?.unwrap_or_default();
    let is_known = all.differences(session, &lock).is_empty();
    if is_known && idle == Idle::Stay && is_settled(session, &all, &lock) {
        return Ok(());
    }
    let listing = |universe: &dyn Universe, request: &Request| match idle {
        Idle::Stay => planned(universe, request, Move::Tidy),
        Idle::Go => planned(universe, request, Move::Clear),
    };
    let own = Requirements::collect(session, Vec::new())?;
    let change = match question(session, &own, &Update::Nothing, listing) {
        // The lock knows what this came to.
        Err(error) if error.code == Code::Offline && is_known => return Ok(()),
        result => result?,
    };
    rewrite(session, &mut plan.editing, &own, &change, Lists::Manifests)?;
    if !plan.extra.is_empty() {
        let all = Requirements::collect(session, std::mem::take(&mut plan.extra))?;
        let change = question(session, &all, &Update::Nothing, listing)?;
        plan.extra = rewrite(session, &mut plan.editing, &all, &change, Lists::CommandLine)?;
    }
    Ok(())
}

/// The fewest requirements that lead to what these do, as `ID#SPEC`; `None` if they are that already, or if another
/// strategy is in force.
pub(crate) fn listed(
    session: &Session,
    requirements: &Requirements,
) -> Result<Option<Vec<String>>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let is_known = requirements.differences(session, &lock).is_empty();
    if !is_free(session, requirements.resolution)
        || (is_known && is_settled(session, requirements, &lock))
    {
        return Ok(None);
    }
    let change = match question(session, requirements, &Update::Nothing, |universe, request| {
        planned(universe, request, Move::Tidy)
    }) {
        Err(error) if error.code == Code::Offline => return Ok(None),
        result => result?,
    };
    let own = change.asked.iter().flatten().flatten();
    let mut listed: Vec<String> =
        own.chain(&change.indirect).map(|one| format!("{}#{}", one.id, one.spec)).collect();
    listed.sort();
    listed.dedup();
    Ok(Some(listed))
}

/// What the newest versions come to that these requirements allow, in the strategy that is in force.
///
/// # Errors
///
/// When the requirements cannot be met, or a registry cannot be asked.
pub(crate) fn resolve_newest(
    session: &Session,
    requirements: &Requirements,
) -> Result<Resolved, CommandError> {
    if !is_in_force(session) {
        return resolve(session, requirements, Update::Everything);
    }
    let change = question(session, requirements, &Update::Everything, |universe, request| {
        planned(universe, request, Move::Everything)
    })?;
    let mut asked: Vec<Asked> = Vec::new();
    for (group, new) in requirements.grouped(false).into_iter().zip(&change.asked) {
        let pairs = group.into_iter().zip(new.iter().cloned());
        asked.extend(
            pairs.filter_map(|(old, new)| Some(Asked { requirement: new?, ..old.clone() })),
        );
    }
    let Some(first) = asked.first().cloned() else {
        return resolve(session, requirements, Update::Everything);
    };
    asked.extend(change.indirect.into_iter().map(|requirement| Asked {
        requirement,
        indirect: true,
        ..first.clone()
    }));
    let newest = Requirements { asked, ..requirements.clone() };
    resolve(session, &newest, Update::Everything)
}

/// Moves versions, to what `wish` asks for if it asks for one version, and writes what that makes of the requirements into
/// the plan.
pub(crate) fn step(
    session: &mut Session,
    plan: &mut Plan,
    update: &Update,
    wish: Option<&Asked>,
    moves: impl Fn(&dyn Universe, &Request) -> Result<Change, Failure>,
) -> Result<Change, CommandError> {
    let requirements = Requirements::collect(session, std::mem::take(&mut plan.extra))?;
    let change = wishing(session, &requirements, update, wish, moves)?;
    plan.extra = rewrite(session, &mut plan.editing, &requirements, &change, Lists::All)?;
    plan.lowered.extend(change.lowered.iter().cloned());
    Ok(change)
}

/// The newest version that a requirement accepts and that fits what else is asked for, as the least; `None` if it is
/// no release.
pub(crate) fn newest(
    session: &Session,
    requirements: &Requirements,
    wish: &Asked,
) -> Result<Option<VersionSpec>, CommandError> {
    wishing(session, requirements, &Update::Nothing, Some(wish), |universe, request| {
        Minimal.beginning(universe, request, &wish.requirement)
    })
}

/// Moves everything to the newest that is asked for, by the minimal strategy.
pub(crate) fn update_everything(
    session: &mut Session,
    plan: &mut Plan,
) -> Result<(), CommandError> {
    tidy(session, plan, Idle::Go)?;
    step(session, plan, &Update::Everything, None, |universe, request| {
        planned(universe, request, Move::Everything)
    })?;
    Ok(())
}

/// What is in use according to the manifests, or to the lock where they contradict themselves.
pub(crate) fn current(session: &Session, extra: &[String]) -> Result<Arc<Lockfile>, CommandError> {
    let requirements = Requirements::collect(session, extra.to_vec())?;
    match resolve(session, &requirements, Update::Nothing) {
        Ok(resolved) => Ok(resolved.lock),
        Err(error) => match session.lockfile()? {
            Some(lock) if error.code == Code::NoSolution => Ok(lock),
            _ => Err(error),
        },
    }
}

/// A dependency that begins at the newest version that fits.
pub(crate) fn with_newest(
    session: &Session,
    requirements: &Requirements,
    dependency: manifest::Requirement,
    by: &Requester,
) -> Result<manifest::Requirement, CommandError> {
    let id = session.id_of(&dependency.reference);
    let requirement = index::Requirement {
        prerelease: dependency.prerelease,
        channel: dependency.channel.clone(),
        app_version: dependency.app_version.clone(),
        ..index::Requirement::new(id, VersionSpec::Latest)
    };
    let wish = Asked {
        by: by.clone(),
        reference: dependency.reference.clone(),
        from: session.environment.current.clone(),
        requirement,
        line: None,
        indirect: false,
    };
    let version = newest(session, requirements, &wish)?;
    let reference = dependency.reference.with_version(version);
    Ok(manifest::Requirement { reference, ..dependency })
}

/// What a move makes of the requirements.
pub(crate) fn planned(
    universe: &dyn Universe,
    request: &Request,
    to: Move<'_>,
) -> Result<Change, Failure> {
    Ok(Minimal.plan(universe, request, to)?.expect("the minimal strategy always plans"))
}

/// Asks the minimal strategy about requirements.
pub(crate) fn question<T>(
    session: &Session,
    requirements: &Requirements,
    update: &Update,
    question: impl Fn(&dyn Universe, &Request) -> Result<T, Failure>,
) -> Result<T, CommandError> {
    wishing(session, requirements, update, None, question)
}

/// Asks the minimal strategy about requirements; a failure speaks of the wish, too.
fn wishing<T>(
    session: &Session,
    requirements: &Requirements,
    update: &Update,
    wish: Option<&Asked>,
    question: impl Fn(&dyn Universe, &Request) -> Result<T, Failure>,
) -> Result<T, CommandError> {
    requirements.declare(session);
    let previous = session.lockfile()?.unwrap_or_default();
    let mut request = request(session, requirements, &previous, update.clone());
    let told = |request: &Request, mut failure: Failure| {
        let (mut request, mut requirements) = (request.clone(), requirements.clone());
        if let Some(wish) = wish {
            name_command(&mut failure, wish);
            requirements.asked.push(wish.clone());
            let wish =
                Root { by: wish.by.to_string(), requirements: vec![wish.requirement.clone()] };
            request.roots.insert(request.roots.len() - request.indirect, wish);
        }
        failed(session, &requirements, &Minimal, &request, failure)
    };
    let is_known = requirements.differences(session, &previous).is_empty();
    if is_known && wish.is_none() && *update == Update::Nothing {
        // Without the network the lock knows what this came to, and what is installed does not.
        let result = ask(session, &mut request, |request| question(session.index(), request));
        return result.map_err(|failure| told(&request, failure));
    }
    ask_installed_too(session, &mut request, &told, question).map(|(answer, _)| answer)
}

/// Says in the facts of a conflict which command it is that wants something, and what it was given.
fn name_command(failure: &mut Failure, wish: &Asked) {
    let Failure::Conflict(conflict) = failure else { return };
    for fact in &mut conflict.facts {
        let Fact::Requires { by: Requirer::Roots(names), id, asked } = fact else { continue };
        if *id == wish.requirement.id && names.iter().any(|name| name == COMMAND) {
            *asked = vec![wish.requirement.to_string()];
        }
        for known in names.iter_mut().filter(|known| *known == COMMAND) {
            wish.by.as_str().clone_into(known);
        }
    }
}
