//! Asking selection a question, and asking it again when what was not known before turns up: packages of the workspace,
//! newer answers of registries, packs that are installed.
//!
//! It is also asked what prevents newer versions of a locked package (`obstacle`), and whether the commands of a way
//! out lead out, before they are printed. Selection has found that other requirements would fit together. A command
//! edits the text of a file, and what is then read there may be something else: a manifest may list a package twice,
//! and its format may not be able to say what was asked for. So the edits are made in memory, and what they leave is
//! selected for, unless it is exactly what selection had found. No lock is made here.
//!
//! And the strategy is asked how a move changes the requirements. One that follows the lock does not change them, nor does any
//! if nothing may change: then all of these return nothing, and send no request.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::index::releases::Releases;
use crate::index::{Requirement, Unavailable, Universe};
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest;
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::CommandChange;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::solve::locked_universe::LockedUniverse;
use crate::ops::solve::question::{self, Question, request};
use crate::ops::solve::record::Resolved;
use crate::ops::solve::{is_settled, names, resolve, trusted};
use crate::ops::{Code, CommandError, Session, explain};
use crate::reference::{PackageId, Version};
use crate::select::{
    Ask, Ceiling, Change, Chosen, Fact, Failure, Local, Move, Newer, RequirementByRequirer,
    Requirer, RootRequirer, Selection, SelectionRequest, Settings, Strategy, Update, WayOut,
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

/// The requirers of a locked package, and their requirements: where the settings override it, their `overrides` alone, because then
/// nothing else counts.
pub(crate) fn requirers_of_locked(package: &LockedPackage) -> Vec<RequirementByRequirer> {
    let requires =
        |by: &str, spec: &str| Some((by.to_owned(), Requirement::parse(package.id.clone(), spec)?));
    if let Some(instead) = Requester::override_of(package) {
        // Of another place, every version counts that is there.
        let version = instead.spec.split_once('#').map(|(_, version)| version);
        let versions = version.filter(|_| package.from.is_none());
        return versions.and_then(|spec| requires(&instead.by, spec)).into_iter().collect();
    }
    let requested = package.requested.iter();
    requested.filter_map(|requested| requires(&requested.by, &requested.spec)).collect()
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
    let newest = positions
        .find(|&position| !is_yanked(position) && (counts_all || releases.is_offered(position)));
    let newest = newest.map(|position| releases.version(position));
    newest.filter(|newest| current.is_none_or(|current| newest >= current))
}

/// Whether moves rewrite requirements: with a strategy that does not follow the lock, if anything may change.
pub(crate) fn rewrites(session: &Session, strategy: &dyn Strategy) -> bool {
    let is_held = session.options.frozen || session.options.locked;
    !strategy.follows_lock() && !is_held
}

/// The requirements after a move; `None` if they do not change.
pub(crate) fn plan(
    session: &Session,
    question: &Question,
    to: Move<'_>,
) -> Result<Option<Change>, CommandError> {
    let strategy = question.requirements.choosing_strategy();
    let previous = session.lockfile()?.unwrap_or_default();
    // What stays as it is locked is asked about before it is installed.
    let is_new = |_: usize, chosen: &Chosen| {
        let mut locked = previous.find(&chosen.id);
        question.update.moves(&chosen.id)
            || !locked.any(|one| one.parsed_version() == chosen.version)
    };
    // Ends: each round but the last has taken a version from the candidates, and only so many of a package are.
    loop {
        let change = ask_strategy(session, question, |universe, request| {
            strategy.plan(universe, request, to)
        })?;
        let Some(change) = change else { return Ok(None) };
        if trusted::accept(session, &change.selection, &previous, &is_new)?.is_some() {
            return Ok(Some(change));
        }
    }
}

/// A dependency that starts at the newest version that fits the other requirements, if requirements must name
/// a start; `by` is the package that will depend on it.
pub(crate) fn dependency_with_beginning(
    session: &Session,
    requirements: &Rc<Requirements>,
    dependency: &manifest::Requirement,
    by: &Requester,
) -> Result<Option<manifest::Requirement>, CommandError> {
    let strategy = requirements.choosing_strategy();
    if !rewrites(session, strategy) {
        return Ok(None);
    }
    let wish = wish(session, dependency, by);
    let wanted = wish.requirement.clone();
    let question =
        Question { wish: Some(wish), ..Question::without_moves(Rc::clone(requirements)) };
    // Ends as the loop of `plan` does.
    let version = loop {
        let version = ask_strategy(session, &question, |universe, request| {
            strategy.beginning(universe, request, &wanted)
        })?;
        if trusted::accepts_beginning(session, &wanted.id, version.as_ref())? {
            break version;
        }
    };
    let reference = dependency.reference.with_version(version);
    Ok(Some(manifest::Requirement { reference, ..dependency.clone() }))
}

/// A dependency that is not in a manifest yet, as a requirement of `by`.
pub(crate) fn wish(session: &Session, dependency: &manifest::Requirement, by: &Requester) -> Asked {
    Asked::new(
        by,
        session.id_of_argument(&dependency.reference),
        dependency,
        &session.environment.current,
    )
}

/// Refuses to move versions if the lock is used as it is.
pub(crate) fn refuse_frozen(session: &Session) -> Result<(), CommandError> {
    if !session.options.frozen {
        return Ok(());
    }
    let message = "--frozen uses Mu.lock as it is, so that no version can move";
    Err(CommandError::new(Code::Usage, message).hint("run this command without --frozen"))
}

/// The fewest requirements with the same result as these, as `ID#SPEC`; `None` if these are already the
/// fewest, or do not change.
pub(crate) fn fewest_requirements(
    session: &Session,
    requirements: &Rc<Requirements>,
) -> Result<Option<Vec<String>>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let is_known = requirements.differences(session, &lock).is_empty();
    if is_known && is_settled(session, requirements, &lock) {
        return Ok(None);
    }
    // Without the network, the question is answered all the same; only this part of the answer is left out.
    let change = match plan(session, &Question::without_moves(Rc::clone(requirements)), Move::Tidy)
    {
        Err(error) if error.code == Code::Offline => return Ok(None),
        result => result?,
    };
    Ok(change.map(|change| {
        let own = change.asked.iter().flatten().flatten();
        let mut listed: Vec<String> =
            own.chain(&change.indirect).map(|one| format!("{}#{}", one.id, one.spec)).collect();
        listed.sort();
        listed.dedup();
        listed
    }))
}

/// The newest versions that these requirements allow.
pub(crate) fn resolve_newest(
    session: &Session,
    requirements: &Rc<Requirements>,
) -> Result<Resolved, CommandError> {
    let mut question = Question::new(Rc::clone(requirements), Update::Everything);
    let Some(change) = plan(session, &question, Move::Everything)? else {
        return resolve(session, &question);
    };
    // The move answers in the order of the question: `change.asked[i][j]` is what the requirement `grouped[i][j]` becomes. Those
    // that it drops are not asked any more, and what it has to list in addition comes behind the first of them, whose requirer does
    // not matter: nothing of this is written.
    let mut asked: Vec<Asked> = Vec::new();
    for (group, new) in requirements.by_requirer(false).into_iter().zip(&change.asked) {
        let pairs = group.into_iter().zip(new.iter().cloned());
        asked.extend(
            pairs.filter_map(|(old, new)| Some(Asked { requirement: new?, ..old.clone() })),
        );
    }
    if let Some(first) = asked.first().cloned() {
        asked.extend(change.indirect.iter().map(|one| first.with_indirect(one.clone())));
        Rc::make_mut(&mut question.requirements).asked = asked;
        question.change = Some(Rc::new(change));
    }
    resolve(session, &question)
}

/// Asks a strategy about requirements that its moves rewrite.
fn ask_strategy<T>(
    session: &Session,
    question: &Question,
    answer: impl Fn(&dyn Universe, &SelectionRequest) -> Result<Option<T>, Failure>,
) -> Result<Option<T>, CommandError> {
    let Question { requirements, update, wish, .. } = question;
    let strategy = requirements.choosing_strategy();
    if !rewrites(session, strategy) {
        return Ok(None);
    }
    requirements.declare(session);
    let previous = session.lockfile()?.unwrap_or_default();
    let mut request = request(session, requirements, &previous, update.clone());
    // In the search the wish was no requirement of anybody. In the explanation it is one of the command, between the
    // manifests and their lists of indirect dependencies.
    let explained = |request: &SelectionRequest, mut failure: Failure| {
        let (mut request, mut requirements) = (request.clone(), Requirements::clone(requirements));
        if let Some(wish) = wish {
            name_command(&mut failure, wish);
            requirements.asked.push(wish.clone());
            let wish = RootRequirer {
                by: wish.by.to_string(),
                requirements: vec![wish.requirement.clone()],
            };
            request.roots.insert(request.roots.len() - request.indirect, wish);
        }
        error_with_ways_out(session, &requirements, strategy, &request, failure)
    };
    let is_known = requirements.differences(session, &previous).is_empty();
    if is_known && wish.is_none() && *update == Update::Nothing {
        // Without the network, the lock has the result, and the installed packs do not.
        let result =
            ask_with_news(session, &mut request, |request| answer(session.index(), request));
        return result.map_err(|failure| explained(&request, failure));
    }
    let apart = || requirements.listed_apart(session);
    ask_apart(session, &mut request, &apart, &explained, &answer).map(|(answer, _)| answer)
}

/// Puts the command and its arguments into the facts of a conflict.
fn name_command(failure: &mut Failure, wish: &Asked) {
    let Failure::Conflict(conflict) = failure else { return };
    for fact in &mut conflict.facts {
        let Fact::Requires { by: Requirer::Roots(names), id, asked } = fact else { continue };
        if *id == wish.requirement.id && names.iter().any(|name| name == Requirer::COMMAND) {
            *asked = vec![wish.requirement.to_string()];
        }
        for known in names.iter_mut().filter(|known| *known == Requirer::COMMAND) {
            wish.by.as_str().clone_into(known);
        }
    }
}
