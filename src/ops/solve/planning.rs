//! How moves change requirements, with the strategy in effect.
//!
//! A strategy that follows the lock does not change requirements, nor does any strategy if nothing may
//! change: then all of these return nothing, and send no request.

use std::rc::Rc;

use crate::index::Universe;
use crate::manifest;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::solve::asking::{ask_apart, ask_with_news, error_with_ways_out};
use crate::ops::solve::question::{Question, request};
use crate::ops::solve::record::Resolved;
use crate::ops::solve::{is_settled, resolve, trusted};
use crate::ops::{Code, CommandError, Session};
use crate::select::{
    Change, Chosen, Fact, Failure, Move, Requirer, RootRequirer, SelectionRequest, Strategy, Update,
};

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
        let change =
            ask(session, question, |universe, request| strategy.plan(universe, request, to))?;
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
        let version = ask(session, &question, |universe, request| {
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
fn ask<T>(
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
