//! The manifests, and what `mu get` was given, as a command would leave them; in memory, until a
//! [`Transaction`](super::transaction::Transaction) writes them.
//!
//! With a strategy that does not follow the lock, the manifests are the state, and every command leaves them
//! tidy: direct requirements start at the chosen version, and indirect ones are listed if the selection would
//! be lower without them. The lock is derived from them, and adds nothing.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::index::Requirement;
use crate::lock::Lockfile;
use crate::ops::apply::rewrite::{List, write_requirements};
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::solve::asking::{self, rewrites};
use crate::ops::solve::question::Question;
use crate::ops::solve::{is_settled, names, resolve};
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, VersionSpec};
use crate::select::{
    CandidateOfLock, Change, Chosen, InstalledVersion, Lowered, Move, Origin, Update,
    spec_beginning_at,
};

/// Changes of manifests and of what `mu get` was given, that nobody has written yet.
///
/// A verb fills it in one of two ways, or in both, and then asks what versions that leads to:
///
/// ```text
///         ┌─ editing, extra: the verb changes manifests ─────┐
///   new ──┤                                                  ├─ [tidy] ─> ask ─> Transaction::run
///         └─ move_versions, add_move: a strategy moves, and ─┘
///            says what the manifests have to require for it
/// ```
///
/// [`collect_drafted`](Self::collect_drafted) says at any time what the manifests require by then; it is cheap while nothing has changed.
#[derive(Debug, Default)]
pub(crate) struct ManifestDraft {
    /// The manifests that it changes.
    pub(crate) editing: Editing,
    /// What `mu get` was given.
    pub(crate) extra: Vec<String>,
    /// The supposed installation, if it differs from the lock: what moves begins there.
    pub(crate) installed: BTreeMap<PackageId, InstalledVersion>,
    /// What another tool has in use of what the manifests will require.
    pub(crate) adopted: Vec<CandidateOfLock>,
    /// What else was lowered or dropped.
    pub(super) lowered: Vec<Lowered>,
    /// The last move, as the manifests have it now.
    change: Option<Rc<Change>>,
    /// What was collected last, after so many changes of manifests.
    collected: Option<(usize, Rc<Requirements>)>,
}

impl ManifestDraft {
    /// A draft that changes nothing yet.
    pub(crate) fn new(session: &Session) -> Result<Self, CommandError> {
        // What earlier `mu get REF` runs were given is in no manifest. A draft that began without it would drop it from
        // the lock.
        Ok(Self::with_references(session.lockfile()?.unwrap_or_default().extra.clone()))
    }

    /// A draft that changes no manifest yet, where `mu get` was given this.
    pub(crate) fn with_references(extra: Vec<String>) -> Self {
        Self { extra, ..Self::default() }
    }

    /// The requirements as the draft leaves them; collected anew only after a change.
    pub(crate) fn collect_drafted(
        &mut self,
        session: &Session,
    ) -> Result<Rc<Requirements>, CommandError> {
        let extra = std::mem::take(&mut self.extra);
        let collected = self.collect_with(session, &extra);
        self.extra = extra;
        collected
    }

    /// The requirements of the manifests as the draft leaves them, and `extra`.
    fn collect_with(
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

    /// What the draft asks in the end: the manifests as it leaves them, and the move that led there.
    pub(super) fn final_question(
        &mut self,
        session: &Session,
        update: Update,
    ) -> Result<Question, CommandError> {
        let question = self.question(session, update)?;
        // The question is often changed for this run. Then nobody else may have it, or it would be copied.
        self.collected = None;
        Ok(Question { change: self.change.take(), ..question })
    }

    /// The question for what the draft requires.
    pub(crate) fn question(
        &mut self,
        session: &Session,
        update: Update,
    ) -> Result<Question, CommandError> {
        let mut question = Question::new(self.collect_drafted(session)?, update);
        if !self.installed.is_empty() {
            Rc::make_mut(&mut question.requirements).installed.clone_from(&self.installed);
        }
        question.adopted.clone_from(&self.adopted);
        Ok(question)
    }

    /// What is in use as the draft has it: the lock, or the result of the manifests if moves rewrite those, unless they contradict
    /// themselves. A verb asks before it changes anything.
    pub(crate) fn in_use(&mut self, session: &Session) -> Result<Arc<Lockfile>, CommandError> {
        if !rewrites(session, session.strategy()) {
            return Ok(session.lockfile()?.unwrap_or_default());
        }
        let requirements = self.collect_drafted(session)?;
        match resolve(session, &Question::without_moves(requirements)) {
            Ok(resolved) => Ok(resolved.lock),
            // Two people pinned the same package differently, and their branches were merged: such manifests have no
            // result, and the lock has what is in use. Everything else (a registry that is down) is an error.
            Err(error) => match session.lockfile()? {
                Some(lock) if error.code == Code::NoSolution => Ok(lock),
                _ => Err(error),
            },
        }
    }

    /// Moves everything to the newest versions that are allowed, if that changes requirements.
    pub(crate) fn move_everything(&mut self, session: &Session) -> Result<(), CommandError> {
        self.tidy(session, Move::Clear)?;
        // The move has to begin at the fewest requirements: a line that nothing needs any more would hold its package
        // back, or keep it.
        self.move_versions(session, &Update::Everything, None, Move::Everything)?;
        Ok(())
    }

    /// Moves versions, to what `wish` requests if there is one, and adds the new requirements to the draft.
    /// Returns the move; `None` if requirements do not change.
    pub(crate) fn move_versions(
        &mut self,
        session: &Session,
        update: &Update,
        wish: Option<&Asked>,
        to: Move<'_>,
    ) -> Result<Option<Rc<Change>>, CommandError> {
        let question = self.question(session, update.clone())?;
        let question = Question { wish: wish.cloned(), ..question };
        let Some(change) = asking::plan(session, &question, to)? else { return Ok(None) };
        self.add_move(session, &question.requirements, change).map(Some)
    }

    /// Adds the requirements after a move to the draft.
    pub(crate) fn add_move(
        &mut self,
        session: &Session,
        requirements: &Requirements,
        change: Change,
    ) -> Result<Rc<Change>, CommandError> {
        // `settle` judges the manifests as `write_requirements` has left them, so it comes second.
        self.extra =
            write_requirements(session, &mut self.editing, requirements, &change, |_| true)?;
        self.lowered.extend(change.lowered.iter().cloned());
        let change = Rc::new(change);
        self.change = Some(Rc::clone(&change));
        self.settle(session, requirements, &change)?;
        Ok(change)
    }

    /// Tidies the manifests after packages were removed from them.
    pub(crate) fn tidy_after_removal(&mut self, session: &Session) -> Result<(), CommandError> {
        self.tidy(session, Move::Clear)?;
        // What the clearing took away may have to be said after all, beside what `mu get` was given. The next run says it; this
        // one has to leave the same.
        self.tidy(session, Move::Tidy)
    }

    /// Makes the manifests match the result of their own requirements, without what `mu get` was given.
    pub(crate) fn tidy(&mut self, session: &Session, to: Move<'_>) -> Result<(), CommandError> {
        if !rewrites(session, session.strategy()) {
            return Ok(());
        }
        // `all` leads to what is in use, `own` to what the manifests say alone. The head of `rewrite` says why these
        // are two results.
        let all = self.collect_drafted(session)?;
        let lock = session.lockfile()?.unwrap_or_default();
        let is_known = all.differences(session, &lock).is_empty();
        // The usual run ends here, without a selection: the lock knows these requirements, and proves that they are
        // tidy. `Move::Clear` also looks for lines that nothing needs any more, which the lock cannot tell.
        if is_known && matches!(to, Move::Tidy) && is_settled(session, &all, &lock) {
            return Ok(());
        }
        let own = self.collect_with(session, &[])?;
        let change = match asking::plan(session, &Question::without_moves(Rc::clone(&own)), to) {
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
    fn settle(
        &mut self,
        session: &Session,
        before: &Requirements,
        moved: &Change,
    ) -> Result<(), CommandError> {
        let own = self.collect_with(session, &[])?;
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
            match asking::plan(session, &supposed, Move::Clear) {
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
            let all = self.collect_drafted(session)?;
            let supposed = supposing(&all, lines);
            let Some(whole) = asking::plan(session, &supposed, to)? else { break };
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

/// The question about requirements with additional lines.
fn supposing(requirements: &Rc<Requirements>, lines: &[Asked]) -> Question {
    let mut question = Question::without_moves(Rc::clone(requirements));
    if !lines.is_empty() {
        Rc::make_mut(&mut question.requirements).asked.extend(lines.iter().cloned());
    }
    question
}
