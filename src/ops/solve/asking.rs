//! Asking selection a question, and asking it again when what was not known before turns up: packages of the workspace, newer
//! answers of registries, packs that are installed.

use std::collections::BTreeSet;

use crate::index::Universe;
use crate::lock::Lockfile;
use crate::ops::solve::locked_universe::LockedUniverse;
use crate::ops::{Code, CommandError, Session};
use crate::reference::PackageId;
use crate::select::{Failure, Local, Request, Selection, Strategy};

/// Selects, and selects again if a fetched package requires one of the workspace's own, or versions of a
/// package of which only commits were listed before.
pub(crate) fn select(
    session: &Session,
    strategy: &dyn Strategy,
    universe: &dyn Universe,
    request: &mut Request,
) -> Result<Selection, Failure> {
    let selection = ask(session, request, |request| strategy.select(universe, request));
    session.index().forget_guesses();
    selection
}

/// As [`ask`]; if versions conflict according to recent answers, asks the registries before it says so.
pub(crate) fn ask_with_news<T>(
    session: &Session,
    request: &mut Request,
    question: impl Fn(&Request) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match ask(session, request, &question) {
        Err(Failure::Conflict(_)) if session.index().ask_again() => ask(session, request, question),
        result => result,
    }
}

/// Runs selection, and runs it again if a fetched package requires one of the workspace's own.
fn ask<T>(
    session: &Session,
    request: &mut Request,
    question: impl Fn(&Request) -> Result<T, Failure>,
) -> Result<T, Failure> {
    loop {
        let result = question(request);
        let has_met = meet(session, request);
        let has_forgotten = session.index().forget_recalled();
        if !has_met && !has_forgotten {
            return result;
        }
    }
}

/// Adds the packages of the workspace that fetched packages turned out to require; returns whether any is new.
pub(crate) fn meet(session: &Session, request: &mut Request) -> bool {
    let known = request.local.len();
    for id in session.index().take_met_local() {
        let version = session.places.member_of(&id).and_then(|member| member.version.clone());
        request.local.entry(id).or_insert(Local { version });
    }
    request.local.len() > known
}

/// As [`ask_installed_too`]; if no versions fit together, the packages that a chart lists `apart` may have several versions, each
/// under its alias.
pub(crate) fn ask_apart<T>(
    session: &Session,
    request: &mut Request,
    apart: &dyn Fn() -> BTreeSet<PackageId>,
    failed: &dyn Fn(&Request, Failure) -> CommandError,
    question: &impl Fn(&dyn Universe, &Request) -> Result<T, Failure>,
) -> Result<(T, Lockfile), CommandError> {
    let error = match ask_installed_too(session, request, failed, question) {
        Err(error) if error.code == Code::NoSolution => error,
        result => return result,
    };
    request.settings.side_by_side = apart();
    if request.settings.side_by_side.is_empty() {
        return Err(error);
    }
    ask_installed_too(session, request, failed, question).map_err(|_| error)
}

/// Runs selection; offline, the installed packs are added to what the cache has. Also returns the lock of
/// what is installed for the user, if that was needed.
pub(crate) fn ask_installed_too<T>(
    session: &Session,
    request: &mut Request,
    failed: &dyn Fn(&Request, Failure) -> CommandError,
    question: impl Fn(&dyn Universe, &Request) -> Result<T, Failure>,
) -> Result<(T, Lockfile), CommandError> {
    let error = match ask_with_news(session, request, |request| question(session.index(), request))
    {
        Ok(answer) => return Ok((answer, Lockfile::default())),
        Err(failure) => failed(request, failure),
    };
    if error.code != Code::Offline {
        return Err(error);
    }
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
