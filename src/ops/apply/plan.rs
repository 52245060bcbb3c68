//! What a command is about to change, and how this is carried out.
//!
//! With a strategy that does not follow the lock, the manifests are the state, and every command leaves them
//! tidy: direct requirements start at the chosen version, and indirect ones are listed if the selection would
//! be lower without them. The lock is derived from them, and adds nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::index::Requirement;
use crate::lock::{Lockfile, Requested};
use crate::manifest;
use crate::manifest::edit::Section;
use crate::ops::apply::install::install;
use crate::ops::apply::kinds::{check_kinds, describe};
use crate::ops::apply::rewrite::{List, write_requirements};
use crate::ops::apply::written::{Written, differences, note_newer, unchanged_entries};
use crate::ops::requirements::editing::{Editing, compatible_with_locked, pin_of};
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::solve::names;
use crate::ops::solve::planning::{self, rewrites};
use crate::ops::solve::record::{Resolved, restate_lock};
use crate::ops::solve::resolve::{is_settled, resolve};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, VersionSpec};
use crate::select::{
    Change, Chosen, InstalledVersion, Lowered, Move, Origin, Update, spec_beginning_at,
};

/// What a command is about to do.
///
/// A verb fills it in one of two ways, or in both, and ends it once:
///
/// ```text
///         ┌─ editing, extra, adding: the verb changes manifests ──┐
///   new ──┤                                                       ├─ [tidy] ─> conclude ─> [restate] ─> finish ─> install
///         └─ step, take: a strategy moves versions, and says ─────┘
///            what the manifests have to require for it
/// ```
///
/// - [`collect`](Self::collect) says at any time what the manifests require by then; it is cheap while nothing has changed.
/// - [`carry_out`](Self::carry_out) is `tidy` and `conclude`. Only a strategy whose state is the manifests has anything to tidy.
/// - [`conclude`](Self::conclude) selects. From there on the manifests are final, but for dependencies that were added without
///   a version: these get the one that was selected, and [`restate`](Self::restate) puts the new words into the lock, without
///   a second selection if they accept nothing else. It empties `once`, `adding`, `discarded` and `change`.
/// - [`finish`](Self::finish) only compares, warns, installs and writes.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The manifests that it changes.
    pub(crate) editing: Editing,
    /// What `mu get` was given.
    pub(crate) extra: Vec<String>,
    /// Additional requirements for this run only.
    pub(crate) once: Vec<Asked>,
    /// What a manifest will require, in the chosen version.
    pub(crate) adding: Option<Adding>,
    /// Packages that are removed completely, although something else took their place.
    pub(crate) discarded: BTreeSet<PackageId>,
    /// Packages whose requirements the command chooses itself, and whose newer releases are reported if not
    /// taken.
    pub(crate) says_newer: Option<BTreeSet<PackageId>>,
    /// What else was lowered or dropped.
    pub(crate) lowered: Vec<Lowered>,
    /// The supposed installation, if it differs from the lock.
    pub(crate) installed: BTreeMap<PackageId, InstalledVersion>,
    /// What [`Self::collect`] returned last, after so many changes of manifests.
    pub(crate) collected: Option<(usize, Rc<Requirements>)>,
    /// The last move, as the manifests have it now.
    pub(crate) change: Option<Rc<Change>>,
    /// What [`Self::in_use`] returned.
    pub(crate) in_use: Option<Arc<Lockfile>>,
}

/// Dependencies that a manifest will require, still without a version.
#[derive(Debug)]
pub(crate) struct Adding {
    /// The place of the package in the workspace's members.
    pub(crate) member: usize,
    /// The list of its manifest.
    pub(crate) section: Section,
    /// The dependencies, as they were given.
    pub(crate) dependencies: Vec<manifest::Requirement>,
}

impl Plan {
    /// A plan that changes nothing yet.
    pub(crate) fn new(session: &Session) -> Result<Self, CommandError> {
        // What earlier `mu get REF` runs were given is in no manifest. A plan that began without it would drop it from
        // the lock.
        let extra = session.lockfile()?.unwrap_or_default().extra.clone();
        Ok(Self { extra, ..Self::default() })
    }

    /// The requirements of the manifests as the plan leaves them, and `extra`; collected anew only after a change.
    pub(crate) fn collect_planned(
        &mut self,
        session: &Session,
        extra: &[String],
    ) -> Result<Rc<Requirements>, CommandError> {
        let changes = self.editing.changes;
        let is_current =
            |known: &(usize, Rc<Requirements>)| known.0 == changes && known.1.extra == extra;
        let known = match self.collected.take().filter(is_current) {
            Some(known) => known,
            None => {
                let changed = &self.editing.changed;
                let all = names::collect_changed_looked_up(session, changed, extra.to_vec())?;
                (changes, Rc::new(all))
            }
        };
        Ok(Rc::clone(&self.collected.insert(known).1))
    }

    /// What is in use before the plan changes anything: the lock, or the result of the manifests if moves rewrite those, unless
    /// they contradict themselves.
    pub(crate) fn in_use(&mut self, session: &Session) -> Result<Arc<Lockfile>, CommandError> {
        if !rewrites(session, session.strategy()) {
            return Ok(session.lockfile()?.unwrap_or_default());
        }
        // Only the state before the plan is meant, so the first answer stays, whatever the plan changes afterwards.
        if let Some(known) = &self.in_use {
            return Ok(Arc::clone(known));
        }
        let requirements = self.collect_planned(session, &self.extra.clone())?;
        let known = match resolve(session, &requirements, Update::Nothing) {
            Ok(resolved) => resolved.lock,
            // Two people pinned the same package differently, and their branches were merged: such manifests have no
            // result, and the lock has what is in use. Everything else (a registry that is down) is an error.
            Err(error) => match session.lockfile()? {
                Some(lock) if error.code == Code::NoSolution => lock,
                _ => return Err(error),
            },
        };
        Ok(Arc::clone(self.in_use.insert(known)))
    }

    /// Tidies the manifests, if their requirements are the state, and carries the plan out; `to` is
    /// [`Move::Tidy`] or [`Move::Clear`].
    pub(crate) fn carry_out(
        mut self,
        session: &Session,
        to: Move<'_>,
        dry_run: bool,
    ) -> Result<Outcome, CommandError> {
        self.tidy(session, to)?;
        // What the clearing took away may have to be said after all, beside what `mu get` was given. The next run says it; this
        // one has to leave the same.
        if matches!(to, Move::Clear) {
            self.tidy(session, Move::Tidy)?;
        }
        self.conclude(session, Update::Nothing, dry_run)
    }

    /// Moves everything to the newest versions that are allowed, if that changes requirements.
    pub(crate) fn move_everything(&mut self, session: &Session) -> Result<(), CommandError> {
        self.tidy(session, Move::Clear)?;
        // The move has to begin at the fewest requirements: a line that nothing needs any more would hold its package
        // back, or keep it.
        self.move_versions(session, &Update::Everything, None, Move::Everything)?;
        Ok(())
    }

    /// Moves versions, to what `wish` requests if there is one, and adds the new requirements to the plan.
    /// Returns the move; `None` if requirements do not change.
    pub(crate) fn move_versions(
        &mut self,
        session: &Session,
        update: &Update,
        wish: Option<&Asked>,
        to: Move<'_>,
    ) -> Result<Option<Rc<Change>>, CommandError> {
        let mut requirements =
            Rc::unwrap_or_clone(self.collect_planned(session, &self.extra.clone())?);
        requirements.installed.clone_from(&self.installed);
        let change = planning::plan(session, &requirements, update, wish, to)?;
        let Some(change) = change else { return Ok(None) };
        self.add_move(session, &requirements, change).map(Some)
    }

    /// Adds the requirements after a move to the plan.
    pub(crate) fn add_move(
        &mut self,
        session: &Session,
        requirements: &Requirements,
        change: Change,
    ) -> Result<Rc<Change>, CommandError> {
        // `settle` judges the manifests as `rewrite` has left them, so it comes second.
        self.extra =
            write_requirements(session, &mut self.editing, requirements, &change, |_| true)?;
        self.lowered.extend(change.lowered.iter().cloned());
        let change = Rc::new(change);
        self.change = Some(Rc::clone(&change));
        self.settle(session, requirements, &change)?;
        Ok(change)
    }

    /// Carries the plan out without changing it first.
    pub(crate) fn conclude(
        mut self,
        session: &Session,
        update: Update,
        dry_run: bool,
    ) -> Result<Outcome, CommandError> {
        // What is asked: the manifests as the plan leaves them, and what holds for this run alone. `resolve` is handed
        // all of it as one value, so what the plan had of it is taken out.
        let requirements = self.collect_planned(session, &self.extra.clone())?;
        self.collected = None;
        let mut requirements = Rc::unwrap_or_clone(requirements);
        requirements.discarded = std::mem::take(&mut self.discarded);
        requirements.installed.clone_from(&self.installed);
        requirements.asked.append(&mut self.once);
        requirements.change = self.change.take();
        // Where nothing was ever chosen, there is nothing that a frozen lock could hold.
        let only_edits = session.options.frozen
            && (self.adding.is_some() || self.editing.changes > 0)
            && session.lockfile()?.is_none();
        let mut resolved = match only_edits {
            true => Resolved::default(),
            false => resolve(session, &requirements, update.clone())?,
        };
        // Refused while everything on disk is as before.
        check_required(&requirements, &resolved)?;
        // `mu add db` was selected as if any version would do. The manifest gets the one that was found, as a lower
        // bound. In most cases, that changes nothing of the selection, and `restate` only puts the new words into the
        // lock.
        if let Some(adding) = self.adding.take() {
            adding.write(session, &mut self.editing, &resolved.lock)?;
            let before = std::mem::take(&mut requirements);
            requirements = self.restate(session, &before, &mut resolved, &update, |written| {
                // Else the manifest's earlier requirement no longer applies.
                let mut in_manifests = before.asked.iter().filter(|asked| asked.line.is_some());
                in_manifests.all(|asked| written.asked.contains(asked))
            })?;
        }
        self.finish(session, &requirements, resolved, &update, dry_run)
    }

    /// The requirements of the manifests as they are now, and the lock for them: what was resolved for `before`, with the new
    /// words, if `is_met` says that these accept nothing else; else it is resolved again.
    pub(crate) fn restate(
        &mut self,
        session: &Session,
        before: &Requirements,
        resolved: &mut Resolved,
        update: &Update,
        is_met: impl FnOnce(&Requirements) -> bool,
    ) -> Result<Requirements, CommandError> {
        let written = Rc::unwrap_or_clone(self.collect_planned(session, &self.extra.clone())?);
        let written = Requirements { discarded: before.discarded.clone(), ..written };
        match is_met(&written) {
            true => restate_lock(session, resolved, before, &written),
            false => *resolved = resolve(session, &written, update.clone())?,
        }
        Ok(written)
    }

    /// Installs what was resolved for the requirements of the manifests as they are now, and writes these.
    pub(crate) fn finish(
        mut self,
        session: &Session,
        requirements: &Requirements,
        resolved: Resolved,
        update: &Update,
        dry_run: bool,
    ) -> Result<Outcome, CommandError> {
        // What can still refuse comes before `install`, which is the first to change something, and writes the
        // manifests last. So a run that ends in between leaves the old manifests, and the same command finishes it.
        warn_of_unasked(session, update, &resolved.lock);
        check_kinds(session, &self.editing.changed, &resolved)?;
        describe(session, &mut self.editing, &resolved)?;
        let members = &session.workspace.members;
        let changed = self.editing.changed.iter();
        let mut written: Vec<Written> =
            changed.flat_map(|(at, new)| differences(session, &members[at], new)).collect();
        // Only for what the command chose itself (`mu add`, `mu upgrade`) it is news that there is something newer.
        // Entries that stay as they are take part, because that they stay is what the user wants explained.
        if let Some(open) = &self.says_newer {
            written.extend(unchanged_entries(session, &self.editing.changed, open, &written));
            note_newer(session, requirements, &resolved.lock, open, &mut written);
            written.retain(|one| one.is_change() || one.newer.is_some());
        }
        let edits = self.editing.edits;
        let ways = resolved.ways.clone();
        let mut outcome = install(session, requirements, resolved, &edits, dry_run)?;
        // `mu update --installed 'ops/kafka#1.0.0'` asks how to get from there to here. The lock had something else, so
        // changes are told of the supposed versions, with the steps in between.
        if !self.installed.is_empty() {
            outcome.suppose_installed(&self.installed);
            outcome = outcome.by_way_of(&ways);
        }
        Ok(Outcome { lowered: self.lowered, written, ..outcome })
    }
}

/// Checks that what a command moved a package to is required by something that stays. Where a package may have several majors, the
/// move may be met by one beside the others, which the next run would drop.
fn check_required(requirements: &Requirements, resolved: &Resolved) -> Result<(), CommandError> {
    let moved = requirements.asked.iter().filter(|asked| asked.by.is_move());
    for Asked { requirement: Requirement { id, .. }, reference, .. } in moved {
        let all = || resolved.lock.find(id).filter(|package| !package.source.is_workspace_folder());
        let Some(alone) = all().find(|package| package.requested.is_empty()) else { continue };
        let listed = |asked: &mut dyn Iterator<Item = &Requested>| -> Vec<String> {
            asked.map(|one| format!("`{}` by `{}`", one.spec, one.by)).collect()
        };
        let asked = listed(&mut all().flat_map(|package| &package.requested));
        // Whoever requires it may have moved to a version that does not.
        let before = resolved.previous.find(id).flat_map(|package| &package.requested);
        let (asked, when) = match asked.is_empty() {
            true => (listed(&mut { before }), " now"),
            false => (asked, ""),
        };
        if asked.is_empty() {
            continue;
        }
        let version = &alone.version;
        let message = format!(
            "nothing requires `{id}` {version}, so it would go with the next run: it is required as {}{when}",
            asked.join(", ")
        );
        let version = alone.parsed_version().as_ref().map(VersionSpec::compatible_with);
        let wanted = reference.with_version(version);
        let required = quoted_for_shell(wanted.as_str());
        let mut error = CommandError::new(Code::NoSolution, message);
        if when.is_empty() {
            let get = format!("`mu get {required}` requires it instead of what `mu get` was given");
            error = error.hint(get);
        }
        return Err(error.hint(format!("`mu add {required}` has the manifest require it")));
    }
    Ok(())
}

/// Names the packages that were to move, and whose registries were not asked, so that they could not.
fn warn_of_unasked(session: &Session, update: &Update, lock: &Lockfile) {
    let is_stuck = |id: &&PackageId| update.moves(id) && session.index().is_unasked(id);
    let ids = lock.packages.iter().map(|package| &package.id).filter(is_stuck);
    let ids: Vec<String> = ids.map(|id| format!("`{id}`")).collect();
    if !ids.is_empty() {
        session
            .events
            .warning(&format!("newer versions of {} are not known: mu is offline", ids.join(", ")));
    }
}

impl Adding {
    /// Writes the dependencies as compatible with their locked versions; without a version if that is not a
    /// release.
    fn write(
        self,
        session: &Session,
        editing: &mut Editing,
        lock: &Lockfile,
    ) -> Result<(), CommandError> {
        let Self { member, section, dependencies } = self;
        for dependency in dependencies {
            let id = session.id_of_argument(&dependency.reference);
            let package = lock.find(&id).last();
            let version = package.and_then(|package| compatible_with_locked(session, package));
            let reference = dependency.reference.with_version(version);
            let compatible = manifest::Requirement { reference, ..dependency.clone() };
            let exactly = package.map(|package| pin_of(session, package, false)).transpose()?;
            let editor = editing.member_editor(session, member)?;
            let takes = |one: &manifest::Requirement| editor.takes(section, one);
            // Some formats name only single versions of what is in Git.
            let exact = manifest::Requirement {
                reference: dependency.reference.with_version(exactly),
                ..dependency
            };
            let is_exact = !takes(&compatible) && takes(&exact);
            let dependency = if is_exact { exact } else { compatible };
            editing.write_dependency(session, member, section, dependency)?;
        }
        Ok(())
    }
}

impl Plan {
    /// Makes the manifests match the result of their own requirements, without what `mu get` was given.
    pub(super) fn tidy(&mut self, session: &Session, to: Move<'_>) -> Result<(), CommandError> {
        if !rewrites(session, session.strategy()) {
            return Ok(());
        }
        // `all` leads to what is in use, `own` to what the manifests say alone. The head of `rewrite` says why these
        // are two results.
        let all = self.collect_planned(session, &self.extra.clone())?;
        let lock = session.lockfile()?.unwrap_or_default();
        let is_known = all.differences(session, &lock).is_empty();
        // The usual run ends here, without a selection: the lock knows these requirements, and proves that they are
        // tidy. `Move::Clear` also looks for lines that nothing needs any more, which the lock cannot tell.
        if is_known && matches!(to, Move::Tidy) && is_settled(session, &all, &lock) {
            return Ok(());
        }
        let own = self.collect_planned(session, &[])?;
        let change = match planning::plan(session, &own, &Update::Nothing, None, to) {
            // The lock has the result.
            Err(error) if error.code == Code::Offline && is_known => return Ok(()),
            // What `mu get` was given may have moved a package along its upgrade graph, from where the manifests alone do not lead
            // back. They stay as they are; if nothing fits together with it, the selection of all says so.
            Err(error) if error.code == Code::NoSolution && !self.extra.is_empty() => {
                return Ok(());
            }
            result => result?,
        };
        match change {
            Some(change) => self.write_apart(session, &own, change, to, &[]),
            None => Ok(()),
        }
    }

    /// Makes the manifests lead to the versions of a move by themselves, where it has moved what `mu get` was given, too. They
    /// keep the lines that they had `before`; if these do not fit together any more, they say what the move has chosen.
    pub(super) fn settle(
        &mut self,
        session: &Session,
        before: &Requirements,
        moved: &Change,
    ) -> Result<(), CommandError> {
        let own = self.collect_planned(session, &[])?;
        // Some line has to lend its requirer to the lines that are supposed below. Without any, nothing is required.
        let first = own.asked.first().or(before.asked.first());
        let Some(first) = first.filter(|_| !self.extra.is_empty()) else { return Ok(()) };
        let line = |requirement: Requirement| first.with_indirect(requirement);
        // Who lists these makes no difference to what is chosen.
        // `all`: each chosen release, as a line that begins at it. With these, the manifests alone lead to the same
        // versions.
        let chosen = moved.selection.packages.iter();
        let chosen = chosen.filter(|one| matches!(one.origin, Origin::Release(_)));
        let all: Vec<(&Chosen, Asked)> = chosen
            .filter_map(|one| {
                let spec = spec_beginning_at(None, one.version.as_ref()?);
                Some((one, line(Requirement::new(one.id.clone(), spec))))
            })
            .collect();
        // `kept`: the indirect lines of before. One that still accepts what was chosen stays as it is written, and
        // another one begins at the new version. This changes fewer lines of the files than `all`, so it is tried
        // first.
        let listed = before.asked.iter().filter(|asked| asked.indirect && asked.line.is_some());
        let kept = listed.filter_map(|asked| {
            let spec: &VersionSpec = &asked.requirement.spec;
            let mut same = all.iter().filter(|(one, _)| one.id == asked.requirement.id);
            let accepts = |one: &Chosen| {
                one.version.as_ref().is_some_and(|version| spec.accepts(version, true))
            };
            match same.clone().any(|(one, _)| accepts(one)) {
                true => Some(line(asked.requirement.clone())),
                false => same.next().map(|(_, now)| now.clone()),
            }
        });
        let kept: Vec<Asked> = kept.collect();
        let all: Vec<Asked> = all.into_iter().map(|(_, asked)| asked).collect();
        for lines in [&kept, &all] {
            let supposed = supposing(&own, lines);
            match planning::plan(session, &supposed, &Update::Nothing, None, Move::Clear) {
                Err(error) if error.code == Code::NoSolution => {}
                Err(error) => return Err(error),
                Ok(None) => return Ok(()),
                Ok(Some(change)) => {
                    return self.write_apart(session, &own, change, Move::Tidy, &all);
                }
            }
        }
        // Neither fits together: the manifests stay as the move has written them.
        Ok(())
    }

    /// Writes the requirements of the manifests alone, which are `own` before the `change`, into these, and what then is left to be
    /// said into what `mu get` was given. Both together may suppose these `lines`.
    fn write_apart(
        &mut self,
        session: &Session,
        own: &Requirements,
        mut change: Change,
        to: Move<'_>,
        lines: &[Asked],
    ) -> Result<(), CommandError> {
        let before = (self.editing.clone(), self.extra.clone());
        loop {
            // A round ends the loop, or it drops at least one requirement of `change.indirect`. None is ever added, so
            // the loop ends.
            let in_manifests = |list: List| list.is_some();
            // What no manifest can say, the lock says.
            self.extra.extend(write_requirements(
                session,
                &mut self.editing,
                own,
                &change,
                in_manifests,
            )?);
            if self.extra.is_empty() {
                break;
            }
            // With what `mu get` was given, some of the lines may not be needed. That result is what the next run
            // finds, so it decides.
            let all = self.collect_planned(session, &self.extra.clone())?;
            let supposed = supposing(&all, lines);
            let whole = planning::plan(session, &supposed, &Update::Nothing, None, to)?;
            let Some(whole) = whole else { break };
            let known = change.indirect.len();
            change.indirect.retain(|one| whole.selection.find(&one.id).is_some());
            if change.indirect.len() == known {
                let on_command_line = |list: List| list.is_none();
                self.extra =
                    write_requirements(session, &mut self.editing, &all, &whole, on_command_line)?;
                change = whole;
                break;
            }
            // What `mu get` was given provides what something else provides for the manifests alone: that is not listed.
            (self.editing, self.extra) = before.clone();
            self.collected = None;
        }
        self.change = Some(Rc::new(change));
        Ok(())
    }
}

/// Requirements with additional lines.
fn supposing(requirements: &Requirements, lines: &[Asked]) -> Requirements {
    let mut supposed = requirements.clone();
    supposed.asked.extend(lines.iter().cloned());
    supposed
}
