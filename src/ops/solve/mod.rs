//! From requirements to a lock: which versions are chosen, and how they are recorded. The lock stays unchanged if it still fits,
//! and else changes as little as possible.
//!
//! Nothing is fetched or written here; new entries have a digest only if an index gave it.

pub mod asking;
pub(crate) mod copies;
mod locked_universe;
pub(crate) mod names;
pub(crate) mod patches;
pub mod question;
pub(crate) mod record;
pub(crate) mod trusted;
mod unstated;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::index::{Requirement as IndexRequirement, Universe};
use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::ops::explain::places;
use crate::ops::requirements::overtaken::{self, LockDifference};
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::session::shown::{count, lines};
use crate::ops::solve::asking::{ask_apart, ask_with_news, error_with_ways_out, select};
use crate::ops::solve::copies::copies_in_lock;
use crate::ops::solve::locked_universe::{LockedUniverse, is_of_version_tag};
use crate::ops::solve::patches::{overridden, unused_settings};
use crate::ops::solve::question::{Question, request};
use crate::ops::solve::record::{Resolved, lock_from_selection, unsatisfied};
use crate::ops::solve::unstated::Adopted;
use crate::ops::{Code, CommandError, Session, Stage};
use crate::reference::{PackageId, VersionSpec};
use crate::select::{Chosen, Failure, Selection, SelectionRequest, Update};

/// How often listings may turn out to be wrong before mu gives up. Each time, one version is known better than before, so an honest
/// registry needs as many rounds as it lists versions wrongly that are chosen; a hundred is a registry that changes while it is
/// asked.
const MOST_CORRECTIONS: usize = 100;

/// Finds the lock that answers the question.
pub fn resolve(session: &Session, question: &Question) -> Result<Resolved, CommandError> {
    let previous = session.lockfile()?;
    if session.options.frozen {
        let lock = previous.ok_or_else(|| {
            CommandError::new(Code::LockOutdated, "there is no Mu.lock to use with --frozen")
                .hint("run `mu get` once without --frozen and commit Mu.lock")
        })?;
        return Ok(Resolved::keeping_lock(lock));
    }
    let mut resolved = resolve_from(session, question, previous.unwrap_or_default())?;
    // Patches come last: they belong to packages of the new lock, and choose nothing.
    let differences = patches::record_patches(session, &mut resolved, None)?;
    if session.options.locked && !differences.is_empty() {
        return Err(outdated(session, &differences, false)?);
    }
    Ok(resolved)
}

/// Finds the lock that answers the question, as if `previous` were the lock on disk.
pub fn resolve_from(
    session: &Session,
    question: &Question,
    previous: Arc<Lockfile>,
) -> Result<Resolved, CommandError> {
    let requirements = &question.requirements;
    places::check(session, &requirements.changed)?;
    let differences = requirements.differences(session, &previous);
    let is_known = differences.is_empty();
    let previous = without_displaced(previous, &differences);
    let solver = Solver { session, question, requirements, previous, is_known };
    if let Some(lock) = solver.lock_as_it_is() {
        return Ok(lock);
    }
    // This is known before anything is asked, so that `--locked` in CI fails at once, and says which requirement was
    // forgotten.
    if session.options.locked && !is_known && question.update == Update::Nothing {
        return Err(outdated(session, &differences, solver.is_by_command())?);
    }
    session.events.progress(Stage::Resolving, 0, 0);
    let mut resolved = solver.solve()?;
    resolved.keep_built();
    resolved.warnings.extend(overridden(&resolved.lock));
    resolved.warnings.extend(unused_settings(session, &resolved.lock));
    // What the user removed must not come back in its old version when its replacement goes.
    if !question.discarded.is_empty() {
        for replaced in &mut Arc::make_mut(&mut resolved.lock).replaced {
            if question.discarded.contains(&replaced.id) {
                replaced.kept = None;
            }
        }
    }
    if session.options.locked && !resolved.is_lock_current() {
        // With the minimal strategy, a lower version that was published since moves a package without a request.
        let moved = overtaken::moved(&solver.previous, &resolved.lock);
        let differences =
            if moved.is_empty() { vec![LockDifference::NewerRequested] } else { moved };
        let is_by_command = question.update != Update::Nothing || solver.is_by_command();
        return Err(outdated(session, &differences, is_by_command)?);
    }
    Ok(resolved)
}

/// The lock without what is required from another kind of place now: it would still be the same package by its id.
fn without_displaced(mut lock: Arc<Lockfile>, differences: &[LockDifference]) -> Arc<Lockfile> {
    for difference in differences {
        if let LockDifference::OtherPlace { id, .. } = difference {
            Arc::make_mut(&mut lock).packages.retain(|package| package.id != *id);
        }
    }
    lock
}

/// The error of a lock that may not change; `is_by_command` says that `mu get` alone would not do what is wanted.
fn outdated(
    session: &Session,
    differences: &[LockDifference],
    is_by_command: bool,
) -> Result<CommandError, CommandError> {
    let message = match session.lockfile()? {
        Some(_) => {
            "Mu.lock does not fit the manifests and settings, and --locked forbids changing it"
        }
        None => "there is no Mu.lock yet, and --locked forbids writing one",
    };
    let message = format!("{message}{}", lines(differences, 5));
    let command = if is_by_command { "this command" } else { "`mu get`" };
    Ok(CommandError::new(Code::LockOutdated, message)
        .hint(format!("run {command} without --locked, and commit Mu.lock"))
        .with_details(serde_json::json!({ "differences": differences })))
}

/// The lock that `requirements` need, if the packages of `previous` have all that the `request` with it needs; sends no request
/// about any of these.
pub(crate) fn resolve_from_previous(
    session: &Session,
    requirements: &Requirements,
    previous: &Arc<Lockfile>,
    request: &mut SelectionRequest,
) -> Result<Option<Resolved>, CommandError> {
    let mut choose = |known: &Lockfile| {
        let held = LockedUniverse::new(session, known);
        select(session, requirements.choosing_strategy(), &held, request).ok()
    };
    let Some(mut selection) = choose(previous) else { return Ok(None) };
    let is_new = |chosen: &Chosen| previous.find(&chosen.id).next().is_none();
    // A lock of an older mu may not say what its packages conflict with. As long as nothing new comes beside them, that
    // does not matter; else it is looked up, and versions are chosen once more.
    if selection.packages.iter().any(is_new)
        && let Some(known) = unstated::with_learned_conflicts(session, previous)
    {
        let Some(informed) = choose(&known) else { return Ok(None) };
        selection = informed;
    }
    let nothing = Lockfile::default();
    let stays = &Update::Nothing;
    lock_from_selection(session, requirements, Arc::clone(previous), &nothing, &selection, stays)
}

/// The steps from a question to a lock, beside a lock of before.
///
/// ```text
///   lock_as_it_is ── the lock was made for this: nothing is asked
///        │ no
///   solve ── planned ── a move has selected already
///        │      │ no
///        └── round, until no listing turns out to be wrong
/// ```
struct Solver<'s> {
    session: &'s Session,
    question: &'s Question,
    requirements: &'s Requirements,
    previous: Arc<Lockfile>,
    /// Whether the lock was made for the same requirements.
    is_known: bool,
}

impl Solver<'_> {
    /// The quick way, which most runs take: the lock was made for these requirements, and nothing in it can have changed since. Folders
    /// outside of the workspace can, and so can what a question supposes.
    fn lock_as_it_is(&self) -> Option<Resolved> {
        let Self { session, question, requirements, previous, .. } = self;
        let is_outside = |package: &LockedPackage| package.source.is_outside_folder();
        let is_fine = self.is_known
            && question.update == Update::Nothing
            && question.discarded.is_empty()
            && !previous.packages.iter().any(is_outside)
            && !question.supposes_more_than_a_lock()
            && !question.excludes_locked(previous)
            && is_settled(session, requirements, previous);
        if !is_fine {
            return None;
        }
        // Warnings that are repeated at every run are made from the lock alone. The lock stays as it is, except for the
        // order and wording of what `mu get` was given.
        let mut warnings = unsatisfied(session, requirements, previous);
        warnings.extend(overridden(previous));
        warnings.extend(unused_settings(session, previous));
        warnings.extend(copies_in_lock(session, previous));
        let mut resolved = Resolved::keeping_lock(Arc::clone(previous));
        if resolved.lock.extra != requirements.extra {
            Arc::make_mut(&mut resolved.lock).extra.clone_from(&requirements.extra);
        }
        Some(Resolved { warnings, ..resolved })
    }

    /// Whether the command itself requires something else than the manifests and the lock on disk.
    fn is_by_command(&self) -> bool {
        let requirements = self.requirements;
        // Not in a manifest, not a line of a list, and not from an earlier `mu get REF`: so it is from this command line.
        let is_new = |asked: &Asked| {
            asked.line.is_none() && !asked.indirect && asked.by != Requester::CommandLine
        };
        requirements.changed.iter().next().is_some()
            || requirements.extra != self.previous.extra
            || requirements.asked.iter().any(is_new)
    }

    /// Selects what the last move has selected, or else in rounds. Each round but the last has found a listing wrong about a version.
    /// The index then knows better, so the next round does not choose it for the same reason.
    fn solve(&self) -> Result<Resolved, CommandError> {
        if let Some(resolved) = self.planned()? {
            return Ok(resolved);
        }
        for _ in 0..MOST_CORRECTIONS {
            if let Some(resolved) = self.round()? {
                return Ok(resolved);
            }
        }
        let message = format!(
            "{MOST_CORRECTIONS} times in a row, versions were chosen that turned out to be something else than their registry lists"
        );
        Err(CommandError::new(Code::Integrity, message)
            .hint("whoever runs the registry must mend its index, or publish again"))
    }

    /// The lock with what the last move selected for these requirements; `None` if they are not those of a move, or if they must be
    /// looked at once more.
    fn planned(&self) -> Result<Option<Resolved>, CommandError> {
        let Self { session, question, requirements, previous, .. } = self;
        let Some(change) = &question.change else { return Ok(None) };
        // What is installed may have been asked, too, and an archive stays as it is locked.
        let has_archives = previous.packages.iter().any(|package| package.source.is_url_archive());
        if session.options.offline || has_archives || !self.denied(&question.update).is_empty() {
            return Ok(None);
        }
        requirements.declare(session);
        let request = request(session, requirements, previous, question.update.clone());
        let Some(selection) = requirements.choosing_strategy().planned(change, &request) else {
            return Ok(None);
        };
        self.record(&selection, &Lockfile::default(), &request.update)
    }

    /// Runs selection once, based on listings; `None` if a listing was wrong, which is recorded.
    ///
    /// Versions come from four sources, each asked only if those before it do not do:
    ///
    /// 1. the lock alone ([`resolve_from_previous`]): what it has is enough, and no registry is asked about it;
    /// 2. the lock for archives by URL that stay ([`LockedUniverse::before`]), the registries for all else;
    /// 3. the registries, and once more with the newest news, if what they answered from memory leads to no solution
    ///    ([`ask_with_news`], [`ask_apart`]);
    /// 4. packs of this machine, if a registry cannot be reached.
    fn round(&self) -> Result<Option<Resolved>, CommandError> {
        let Self { session, question, requirements, previous, .. } = self;
        requirements.declare(session);
        let strategy = requirements.choosing_strategy();
        let follows_lock = strategy.follows_lock();
        // The selection of another strategy is not kept.
        let is_other = is_of_another_strategy(requirements, previous);
        let update = match follows_lock && is_other {
            true => Update::Everything,
            false => question.update.clone(),
        };
        let mut request = request(session, requirements, previous, update);
        let stays = request.update == Update::Nothing;
        // Whoever begins to use mu in a chart keeps the versions of `Chart.lock`, as far as they fit.
        let is_first = follows_lock && stays && session.lockfile()?.is_none();
        let adopted = if is_first { Adopted::find(session)? } else { Adopted::default() };
        request.locked.extend(adopted.locked());
        request.locked.extend(question.adopted.iter().cloned());
        let may_hold = follows_lock && stays && !question.supposes_more_than_a_lock();
        if may_hold
            && !previous.packages.is_empty()
            && let Some(held) =
                resolve_from_previous(session, requirements, previous, &mut request)?
        {
            return Ok(Some(held));
        }
        let failed = |request: &SelectionRequest, failure: Failure| {
            error_with_ways_out(session, requirements, strategy, request, failure)
        };
        // What is at the URL of an archive may have changed; only an update of it looks.
        let update = request.update.clone();
        let stays_put = |package: &LockedPackage| {
            let asked = requirements.asked.iter().map(|asked| &asked.requirement);
            let mut asked = asked.filter(|asked| asked.id == package.id);
            package.source.is_url_archive()
                && !update.moves(&package.id)
                && asked.all(|asked| fits(package, &asked.spec))
        };
        let archives = LockedUniverse::of_some(session, previous, &stays_put);
        let choose = |universe: &dyn Universe, request: &SelectionRequest| match &archives {
            Some(archives) => strategy.select(&archives.before(universe), request),
            None => strategy.select(universe, request),
        };
        // With the minimal strategy and a lock for the same requirements, the selection only confirms the lock. So without
        // the network the lock will do, and installed packs are not looked at.
        let first = if !follows_lock && stays && self.is_known {
            match ask_with_news(session, &mut request, |request| choose(session.index(), request)) {
                Ok(selection) => Ok((selection, Lockfile::default())),
                Err(failure) => {
                    let error = failed(&request, failure);
                    // Without the network, only the lock has the result.
                    if error.code == Code::Offline {
                        return Ok(Some(Resolved::keeping_lock(Arc::clone(previous))));
                    }
                    Err(error)
                }
            }
        } else {
            let apart = || requirements.listed_apart(session);
            ask_apart(session, &mut request, &apart, &failed, &choose)
        };
        if first.is_ok() && lacks_locked(session, previous) {
            return Ok(None);
        }
        // A registry that takes a locked version back, or has other content for it now, moves nothing that the command does not
        // move: what the lock has of it is enough.
        let denied = self.denied(&update);
        let is_held = |package: &LockedPackage| stays_put(package) || denied.contains(&package.id);
        let held = match is_moved(&first, &denied) {
            true => LockedUniverse::of_some(session, previous, &is_held),
            false => None,
        };
        let again = held.map(|held| {
            let held = held.before(session.index());
            select(session, strategy, &held, &mut request)
        });
        let (selection, user) = match again {
            Some(Ok(selection)) => (selection, Lockfile::default()),
            Some(Err(_)) | None => first?,
        };
        let recorded = self.record(&selection, &user, &update)?;
        if recorded.is_some() {
            adopted.say(session, &selection);
        }
        Ok(recorded)
    }

    /// The packages that `update` does not move, and of which a registry that was asked has the locked version no more, or with
    /// another commit. A strategy that does not follow the lock chooses among what there is, so there only the commit counts.
    fn denied(&self, update: &Update) -> BTreeSet<PackageId> {
        let Self { session, requirements, previous, .. } = self;
        let index = session.index();
        let follows_lock = requirements.choosing_strategy().follows_lock();
        let is_denied = |package: &&LockedPackage| {
            let place = package.from.as_ref().unwrap_or(&package.id);
            let source = &package.source;
            let is_chosen_by_version = !source.is_pack() && !source.is_url_archive();
            let is_asked = is_chosen_by_version && is_of_version_tag(package);
            if !is_asked || update.moves(&package.id) || !index.has_answered(place) {
                return false;
            }
            let (Ok(releases), Some(version)) = (index.releases(place), package.parsed_version())
            else {
                return false;
            };
            match releases.position_of_version(&version) {
                Some(at) => match (releases.commit(at), package.revision()) {
                    (Some(now), Some(locked)) => **now != *locked,
                    _ => false,
                },
                None => follows_lock,
            }
        };
        let denied = previous.packages.iter().filter(is_denied);
        denied.map(|package| package.id.clone()).collect()
    }

    /// The lock with a selection; `None` if something newer is to be looked at first. `update` says which versions may move, and
    /// `user` has what is installed for the user, if that was looked at.
    fn record(
        &self,
        selection: &Selection,
        user: &Lockfile,
        update: &Update,
    ) -> Result<Option<Resolved>, CommandError> {
        let Self { session, requirements, previous, .. } = self;
        // A colleague has locked a version that is newer than what this machine remembers of the registry. The selection did
        // not know it, so all is chosen again.
        if lacks_locked(session, previous) {
            return Ok(None);
        }
        tell_cost(session, selection);
        lock_from_selection(session, requirements, Arc::clone(previous), user, selection, update)
    }
}

/// Whether a selection has one of these packages; also if there is none, since it may be the reason.
fn is_moved(
    selection: &Result<(Selection, Lockfile), CommandError>,
    ids: &BTreeSet<PackageId>,
) -> bool {
    match selection {
        Ok((selection, _)) => ids.iter().any(|id| selection.find(id).is_some()),
        Err(error) => matches!(error.code, Code::NoSolution | Code::NotFound) && !ids.is_empty(),
    }
}

/// Whether a registry may have published what another machine locked a moment ago, so that it is to be asked again.
fn lacks_locked(session: &Session, previous: &Lockfile) -> bool {
    let lacks = |package: &LockedPackage| {
        let version = package.parsed_version();
        version.is_some_and(|version| session.index().is_outdated(&package.id, &version))
    };
    previous.packages.iter().any(lacks) && session.index().ask_again()
}

fn tell_cost(session: &Session, selection: &Selection) {
    let cost = selection.statistics;
    session.events.detail(&|| {
        let packages = count(cost.packages_read, "package");
        let versions = match cost.versions_read {
            1 => "1 version needs".to_owned(),
            several => format!("{several} versions need"),
        };
        format!("chose among {packages}, and looked at what {versions}")
    });
}

fn is_of_another_strategy(requirements: &Requirements, lock: &Lockfile) -> bool {
    !lock.resolution.is_empty() && lock.resolution != requirements.resolution.as_str()
}

/// Whether a lock that fits the requirements proves by itself that it has the right versions. With a strategy that follows the
/// lock, it does. Otherwise they must be the lowest: each is the start of some requirement, and each requirement of a root
/// starts at the locked version.
pub fn is_settled(session: &Session, requirements: &Requirements, lock: &Lockfile) -> bool {
    if requirements.choosing_strategy().follows_lock() {
        return true;
    }
    // What the lock cannot prove: which versions a rule hides from one machine and not from another. Then they are
    // chosen once more.
    let settings = &session.workspace.settings;
    let is_filtered = !requirements.runtime.is_empty()
        || !settings.release_ages.is_empty()
        || session.options.published_before.is_some()
        || session.options.prereleases
        || settings.overrides.keys().any(|id| lock.find(id).next().is_some())
        || !lock.replaced.is_empty();
    let is_other = is_of_another_strategy(requirements, lock) || lock.resolution.is_empty();
    if is_filtered || is_other {
        return false;
    }
    // `a` is locked at 1.4. That is right if somebody requires `a` from 1.4 on, and no root from less: a root's line
    // would have been raised. A package in the graph may require `a ^1.2`; for that, 1.4 is above its start.
    let roots: BTreeSet<&str> = requirements.asked.iter().map(|asked| asked.by.as_str()).collect();
    let mut fetched = lock.packages.iter().filter(|package| !package.source.is_workspace_folder());
    fetched.all(|package| {
        let begins = |one: &Requested| begins_at(package, &one.spec) == Some(true);
        let is_fine = |one: &Requested| match begins_at(package, &one.spec) {
            Some(begins) => begins || !roots.contains(&*one.by),
            None => one.capability().is_some(),
        };
        package.requested.iter().any(begins) && package.requested.iter().all(is_fine)
    })
}

/// Whether a locked archive is what `spec` requires.
fn fits(package: &LockedPackage, spec: &VersionSpec) -> bool {
    match spec {
        VersionSpec::Latest | VersionSpec::Tip => true,
        VersionSpec::Digest(digest) => package.revision().as_deref() == Some(digest.as_str()),
        spec => package.parsed_version().is_some_and(|version| spec.accepts(&version, true)),
    }
}

/// Whether a locked package is what `spec` requires, as far as these two tell.
pub(crate) fn is_locked_as(package: &LockedPackage, spec: &VersionSpec) -> bool {
    matches!(spec, VersionSpec::Latest | VersionSpec::Tip)
        || begins_at(package, &spec.to_string()).is_some()
}

/// Whether `spec` starts at the locked version, as far as these two tell; `None` if it does not accept that
/// version.
fn begins_at(package: &LockedPackage, spec: &str) -> Option<bool> {
    let asked = IndexRequirement::parse(package.id.clone(), spec)?;
    match (&asked.spec, package.revision().as_deref()) {
        // What names content either is it or is not; it has no start below.
        (VersionSpec::Digest(wanted), found) => (found == Some(wanted.as_str())).then_some(true),
        (VersionSpec::Commit(wanted), Some(commit)) => {
            wanted.names(Some(commit), package.reference.as_deref()).then_some(true)
        }
        (VersionSpec::Tag(tag), _) => {
            (package.reference.as_deref() == Some(tag.as_str())).then_some(true)
        }
        (spec, _) => {
            let version = package.parsed_version()?;
            spec.accepts(&version, true).then(|| spec.has_lower_bound_at(&version))
        }
    }
}
