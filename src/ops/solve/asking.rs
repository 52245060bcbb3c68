//! Asking selection a question, and asking it again when what was not known before turns up: packages of the workspace,
//! newer answers of registries, packs that are installed.
//!
//! It is also asked what prevents newer versions of a locked package (`obstacle`), and whether the commands of a way
//! out lead out, before they are printed. Selection has found that other requirements would fit together. A command
//! edits the text of a file, and what is then read there may be something else: a manifest may list a package twice,
//! and its format may not be able to say what was asked for. So the edits are made in memory, and what they leave is
//! selected for, unless it is exactly what selection had found. No lock is made here.

use std::collections::BTreeSet;

use crate::index::releases::Releases;
use crate::index::{Requirement, Unavailable, Universe};
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::requirements::Requirements;
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::CommandChange;
use crate::ops::solve::locked_universe::LockedUniverse;
use crate::ops::solve::{names, question};
use crate::ops::{Code, CommandError, Session, explain};
use crate::reference::{PackageId, Version};
use crate::select::{
    Ask, Ceiling, Failure, Local, Newer, RequirementByRequirer, Selection, SelectionRequest,
    Settings, Strategy, WayOut,
};

/// Selects, and selects again if a fetched package requires one of the workspace's own, or versions of a
/// package of which only commits were listed before.
pub(crate) fn select(
    session: &Session,
    strategy: &dyn Strategy,
    universe: &dyn Universe,
    request: &mut SelectionRequest,
) -> Result<Selection, Failure> {
    let selection = ask(session, request, |request| strategy.select(universe, request));
    session.index().forget_guesses();
    selection
}

/// As [`ask`]; if versions conflict according to recent answers, asks the registries before it says so.
pub(crate) fn ask_with_news<T>(
    session: &Session,
    request: &mut SelectionRequest,
    question: impl Fn(&SelectionRequest) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match ask(session, request, &question) {
        Err(Failure::Conflict(_)) if session.index().ask_again() => ask(session, request, question),
        result => result,
    }
}

/// Asks a question, and asks it again if a fetched package requires one of the workspace's own.
fn ask<T, E>(
    session: &Session,
    request: &mut SelectionRequest,
    mut question: impl FnMut(&SelectionRequest) -> Result<T, E>,
) -> Result<T, E> {
    loop {
        // Ends: each round but the last has met a package of the workspace that was not known, or has had an answer
        // forgotten that was only recalled.
        let result = question(request);
        let known = request.local.len();
        for id in session.index().take_met_local() {
            let version = session.places.member_of(&id).and_then(|member| member.version.clone());
            request.local.entry(id).or_insert(Local { version });
        }
        let has_met = request.local.len() > known;
        let has_forgotten = session.index().forget_recalled();
        if !has_met && !has_forgotten {
            return result;
        }
    }
}

/// As [`ask_installed_too`]; if no versions fit together, the packages that a chart lists `apart` may have several versions, each
/// under its alias.
pub(crate) fn ask_apart<T>(
    session: &Session,
    request: &mut SelectionRequest,
    apart: &dyn Fn() -> BTreeSet<PackageId>,
    failed: &dyn Fn(&SelectionRequest, Failure) -> CommandError,
    question: &impl Fn(&dyn Universe, &SelectionRequest) -> Result<T, Failure>,
) -> Result<(T, Lockfile), CommandError> {
    let error = match ask_installed_too(session, request, failed, question) {
        Err(error) if error.code == Code::NoSolution => error,
        result => return result,
    };
    // One version for all comes first; several are tried only because one does not work, and the error is about the
    // first try.
    request.settings.side_by_side = apart();
    if request.settings.side_by_side.is_empty() {
        return Err(error);
    }
    ask_installed_too(session, request, failed, question).map_err(|_| error)
}

/// Runs selection; offline, the installed packs are added to what the cache has. Also returns the lock of
/// what is installed for the user, if that was needed.
fn ask_installed_too<T>(
    session: &Session,
    request: &mut SelectionRequest,
    failed: &dyn Fn(&SelectionRequest, Failure) -> CommandError,
    question: impl Fn(&dyn Universe, &SelectionRequest) -> Result<T, Failure>,
) -> Result<(T, Lockfile), CommandError> {
    let error = match ask_with_news(session, request, |request| question(session.index(), request))
    {
        Ok(answer) => return Ok((answer, Lockfile::default())),
        Err(failure) => failed(request, failure),
    };
    if error.code != Code::Offline {
        return Err(error);
    }
    // Offline, and something is missing in the cache. The packs of the user and of the runtime may have it, though they
    // may be any version.
    session.index().use_installed();
    let user = Lockfile::read(&session.environment.mu_home)?.unwrap_or_default();
    let held = LockedUniverse::new(session, &user);
    match ask(session, request, |request| question(&held, request)) {
        Ok(answer) => Ok((answer, user)),
        Err(failure) => {
            let last = failed(request, failure);
            // The error about what is missing here too, or else the first one.
            Err(if last.code == Code::Offline { last } else { error })
        }
    }
}

/// The most steps of a search that tries a way out.
const PATIENCE: usize = 20_000;

/// The error of a failed selection, with ways out of it that were tried.
pub(crate) fn error_with_ways_out(
    session: &Session,
    requirements: &Requirements,
    strategy: &dyn Strategy,
    request: &SelectionRequest,
    failure: Failure,
) -> CommandError {
    let leads_out = |way_out: &WayOut, steps: &[CommandChange]| {
        leads_out(session, requirements, strategy, request, way_out, steps)
    };
    explain::selection_error(session, requirements, strategy, request, failure, &leads_out)
}

/// Whether versions fit together after these changes of files. What cannot be found out now is not held against a way out.
fn leads_out(
    session: &Session,
    requirements: &Requirements,
    strategy: &dyn Strategy,
    request: &SelectionRequest,
    way_out: &WayOut,
    steps: &[CommandChange],
) -> bool {
    let Ok(lock) = session.lockfile() else { return true };
    let lock = lock.unwrap_or_default();
    // What the commands would write is written into texts in memory, read again as a manifest, and compared with what
    // selection meant.
    let (mut editing, mut extra) = (Editing::default(), lock.extra.clone());
    for step in steps {
        if let Err(error) = step.make_change(session, &mut editing, &mut extra) {
            session.events.detail(&|| format!("a way out cannot be taken: {error}"));
            return false;
        }
    }
    let Some(wanted) = wanted(requirements, way_out) else { return true };
    let after = match names::collect_changed_looked_up(session, &editing.changed, extra) {
        Ok(after) => after,
        Err(error) => return is_unknown(&error),
    };
    // Most often the files then say exactly what was tried, and no second search is needed.
    if in_short(after.asked.iter().map(|asked| (asked.by.as_str(), &asked.requirement)))
        == in_short(wanted.iter().map(|(by, requirement)| (&**by, requirement)))
    {
        return true;
    }
    // It is something else: the same question once more, about what the files would say.
    let again = question::request(session, &after, &lock, request.update.clone());
    let settings = Settings {
        side_by_side: again.settings.side_by_side.clone(),
        wanted_prereleases: again.settings.wanted_prereleases.clone(),
        patience: Some(PATIENCE),
        ..request.settings.clone()
    };
    let installed = request.installed.clone();
    let mut again = SelectionRequest { settings, installed, ..again };
    let fits = |request: &mut SelectionRequest| {
        let selection = select(session, strategy, session.index(), request);
        !matches!(selection, Err(Failure::Conflict(_)))
    };
    if fits(&mut again) {
        return true;
    }
    // A chart that lists a package twice has now two versions of it, which mu allows where one does not work.
    again.settings.side_by_side = after.listed_apart(session);
    !again.settings.side_by_side.is_empty() && fits(&mut again)
}

/// What is required after a way out, as selection has found it; `None` if it changes more than requirements.
fn wanted(requirements: &Requirements, way_out: &WayOut) -> Option<Vec<(String, Requirement)>> {
    let all = requirements.asked.iter();
    let all = all.map(|asked| (asked.by.to_string(), asked.requirement.clone()));
    Some(match way_out {
        WayOut::Ask(asks) | WayOut::Withdrawn(asks) => {
            let change = |(by, now): (String, Requirement)| {
                let is_it = |ask: &&Ask| ask.by == by && ask.from.as_ref() == Some(&now);
                let to = asks.iter().find(is_it).map(|ask| ask.to.clone());
                (by, to.unwrap_or(now))
            };
            let new = asks.iter().filter(|ask| ask.from.is_none());
            all.map(change).chain(new.map(|ask| (ask.by.clone(), ask.to.clone()))).collect()
        }
        WayOut::GiveUp(id) => all.filter(|(_, requirement)| requirement.id != *id).collect(),
        _ => return None,
    })
}

/// Requirements in a form that can be compared, whatever their order is.
fn in_short<'r>(all: impl Iterator<Item = (&'r str, &'r Requirement)>) -> BTreeSet<String> {
    all.map(|(by, requirement)| format!("{by} {} {requirement}", requirement.id)).collect()
}

/// Whether an error only says that something is not known now.
fn is_unknown(error: &CommandError) -> bool {
    matches!(error.code, Code::Offline | Code::Network | Code::Auth)
}

/// The requirers of a locked package, and their requirements.
pub(crate) fn requirers_of_locked(package: &LockedPackage) -> Vec<RequirementByRequirer> {
    let requested = package.requested.iter().filter(|requested| !Requester::is_override(requested));
    requested
        .filter_map(|requested| {
            let requirement = Requirement::parse(package.id.clone(), &requested.spec)?;
            Some((requested.by.to_string(), requirement))
        })
        .collect()
}

/// Looks at what could be chosen, and again as [`ask`] does.
pub(crate) fn ask_ceiling<T>(
    session: &Session,
    request: &SelectionRequest,
    strategy: &dyn Strategy,
    mut look: impl FnMut(&mut Ceiling<'_>) -> Result<T, Unavailable>,
) -> Result<T, Unavailable> {
    let mut request = request.clone();
    ask(session, &mut request, |request| {
        look(&mut Ceiling::new(session.index(), request, strategy))
    })
}

/// The first thing that prevents `newest` as the version of a package; `None` if that cannot be found out.
pub(crate) fn obstacle(
    session: &Session,
    request: &SelectionRequest,
    package: &LockedPackage,
    asking: &[RequirementByRequirer],
    newest: &str,
) -> Option<Newer> {
    let version = package.parsed_version()?;
    let newer = ask_ceiling(session, request, session.strategy(), |ceiling| {
        ceiling.newer(&package.id, &version, asking)
    });
    // If it cannot be found out now, it was not an obstacle a moment ago.
    let mut newer = newer.ok().flatten().unwrap_or_default();
    let first = newer.iter().position(|newer| newer.newest == newest).unwrap_or_default();
    (first < newer.len()).then(|| newer.swap_remove(first))
}

/// The newest version that was not withdrawn, and that is not older than `current`: a release, or whatever there is if all are
/// prereleases, or if `current` is one.
pub(crate) fn newest(releases: &Releases, current: Option<&Version>) -> Option<Version> {
    let is_yanked =
        |position| releases.details(position).is_some_and(|details| details.yanked.is_some());
    let counts_all = releases.has_only_prereleases() || current.is_some_and(Version::is_prerelease);
    let mut positions = (0..releases.len()).rev();
    let newest = positions.find(|&position| {
        !is_yanked(position) && (counts_all || !releases.version(position).is_prerelease())
    });
    let newest = newest.map(|position| releases.version(position));
    newest.filter(|newest| current.is_none_or(|current| newest >= current))
}
