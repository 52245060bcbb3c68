//! Carries out what a command has drafted: selects, installs, and writes manifests and lock, or only says what that would do.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::formats;
use crate::index::Requirement;
use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::manifest;
use crate::manifest::edit::Section;
use crate::ops::apply::draft::ManifestDraft;
use crate::ops::apply::install;
use crate::ops::apply::kinds::{check_kinds, describe};
use crate::ops::apply::written::{Written, differences, note_newer, unchanged_entries};
use crate::ops::requirements::editing::{Editing, compatible_with_locked, pin_of, with_protocol};
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::solve::asking::wish;
use crate::ops::solve::question::Question;
use crate::ops::solve::record::{Resolved, restate_lock};
use crate::ops::solve::{is_locked_as, resolve};
use crate::ops::{Code, CommandError, Outcome, Session, Warning};
use crate::reference::{PackageId, VersionSpec};
use crate::select::{Move, Update};
use crate::workspace::Majors;

/// A draft, and what it asks; with it everything is known that a command is about to do.
///
/// ```text
///   run ─> resolve, unless foreseen ─> [reword] ─> finish ─> install
/// ```
///
/// - [`run`](Self::run) selects. After that, only dependencies that were added without a version still change in the manifests: they
///   get the one that was selected. `reword` puts these words into the lock, without a second selection if they accept nothing else.
/// - `finish` only compares, warns, installs and writes.
#[derive(Debug)]
pub(crate) struct Transaction {
    draft: ManifestDraft,
    question: Question,
    /// What a manifest will require, in the chosen version.
    adding: Option<Adding>,
    /// Packages whose requirements the command chooses itself, and whose newer releases are reported if not
    /// taken.
    says_newer: Option<BTreeSet<PackageId>>,
    /// What was chosen already, and the requirements that it was chosen for.
    foreseen: Option<(Rc<Requirements>, Resolved)>,
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

impl Transaction {
    /// What the draft leads to, with these versions moved.
    pub(crate) fn new(
        session: &Session,
        mut draft: ManifestDraft,
        update: Update,
    ) -> Result<Self, CommandError> {
        let question = draft.final_question(session, update)?;
        Ok(Self { draft, question, adding: None, says_newer: None, foreseen: None })
    }

    /// What the draft leads to once its manifests are tidy, with nothing moved.
    pub(crate) fn tidied(
        session: &Session,
        mut draft: ManifestDraft,
    ) -> Result<Self, CommandError> {
        draft.tidy(session, Move::Tidy)?;
        Self::new(session, draft, Update::Nothing)
    }

    /// Also removes these packages completely, although something else took their place.
    #[must_use]
    pub(crate) fn discarding(mut self, packages: BTreeSet<PackageId>) -> Self {
        self.question.discarded = packages;
        self
    }

    /// Also requires this, for this run alone.
    #[must_use]
    pub(crate) fn requiring(mut self, mut asked: Vec<Asked>) -> Self {
        if !asked.is_empty() {
            Rc::make_mut(&mut self.question.requirements).asked.append(&mut asked);
        }
        self
    }

    /// Also writes these dependencies of `by`, in the versions that will be chosen for them.
    #[must_use]
    pub(crate) fn writing_chosen(self, session: &Session, adding: Adding, by: &Requester) -> Self {
        let open = &adding.dependencies;
        let ids = open.iter().map(|open| session.id_of_argument(&open.reference)).collect();
        // Of several majors, the list has already said which one is meant: a wish for any beside it could lead to another one.
        let line = Some((adding.member, adding.section));
        let has_many = session.workspace.settings.majors == Majors::Many;
        let listed = self.question.requirements.asked.iter();
        let listed = listed.filter(|asked| has_many && asked.line == line);
        let listed: BTreeSet<&PackageId> = listed.map(|asked| &asked.requirement.id).collect();
        let wishes = open.iter().map(|open| wish(session, open, by));
        let wishes = wishes.filter(|wish| !listed.contains(&wish.requirement.id)).collect();
        Self { adding: Some(adding), ..self.requiring(wishes).telling_newer(ids) }
    }

    /// Reports what is newer than the chosen versions of these packages, whose requirements the command chooses itself.
    #[must_use]
    pub(crate) fn telling_newer(self, packages: BTreeSet<PackageId>) -> Self {
        Self { says_newer: Some(packages), ..self }
    }

    /// Says that versions were chosen already, for `before`: they hold if what is asked now accepts nothing else.
    #[must_use]
    pub(crate) fn foreseen(self, before: Rc<Requirements>, chosen: Resolved) -> Self {
        Self { foreseen: Some((before, chosen)), ..self }
    }

    /// Carries it out.
    pub(crate) fn run(mut self, session: &Session, dry_run: bool) -> Result<Outcome, CommandError> {
        // Where nothing was ever chosen, there is nothing that a frozen lock could hold.
        let only_edits = session.options.frozen
            && (self.adding.is_some() || self.draft.editing.changes > 0)
            && session.lockfile()?.is_none();
        let mut resolved = match self.foreseen.take() {
            Some((before, chosen)) => {
                let is_met = accepts_only(&self.question.requirements, &before, &chosen.lock);
                self.reword(session, &before, chosen, is_met)?
            }
            None if only_edits => Resolved::default(),
            None => resolve(session, &self.question)?,
        };
        // Refused while everything on disk is as before.
        check_required(&self.question.requirements, &resolved)?;
        check_overridden(session, &self.question.requirements, &resolved.lock)?;
        // `mu add db` was selected as if any version would do. The manifest gets the one that was found, as a lower
        // bound. In most cases, that changes nothing of the selection.
        if let Some(adding) = self.adding.take() {
            adding.write(session, &mut self.draft.editing, &resolved.lock)?;
            let before = self.ask_again(session)?;
            // Else the manifest's earlier requirement no longer applies.
            let (wishes, mut in_manifests): (Vec<_>, Vec<_>) =
                before.asked.iter().partition(|asked| asked.line.is_none());
            let written = &self.question.requirements;
            in_manifests.retain(|asked| !written.asked.contains(asked));
            // Of several majors, one may have been chosen for the wish alone.
            let mut ids = wishes.iter().map(|wish| &wish.requirement.id);
            let is_met =
                in_manifests.is_empty() && ids.all(|id| resolved.lock.find(id).nth(1).is_none());
            resolved = self.reword(session, &before, resolved, is_met)?;
        }
        warn_of_unasked(session, &self.question.update, &resolved.lock);
        check_kinds(session, &self.draft.editing.changed, &resolved)?;
        // What is known of a chosen version says the same in other words, such as the name of its tag.
        if describe(session, &mut self.draft.editing, &resolved)? {
            let before = self.ask_again(session)?;
            resolved = self.reword(session, &before, resolved, true)?;
        }
        self.finish(session, resolved, dry_run)
    }

    /// Asks what the manifests say now; returns what was asked before.
    fn ask_again(&mut self, session: &Session) -> Result<Rc<Requirements>, CommandError> {
        let update = self.question.update.clone();
        let question = self.draft.final_question(session, update)?;
        let before = std::mem::replace(&mut self.question, question);
        self.question.discarded = before.discarded;
        Ok(before.requirements)
    }

    /// The lock for what is asked now: what was chosen for the requirements `before`, in the new words, if `is_met` says that these
    /// accept nothing else; else versions are chosen again.
    fn reword(
        &self,
        session: &Session,
        before: &Requirements,
        mut chosen: Resolved,
        is_met: bool,
    ) -> Result<Resolved, CommandError> {
        if !is_met {
            return resolve(session, &self.question);
        }
        restate_lock(session, &mut chosen, before, &self.question.requirements);
        Ok(chosen)
    }

    /// Installs what was chosen for the manifests as they are now, and writes these.
    fn finish(
        self,
        session: &Session,
        resolved: Resolved,
        dry_run: bool,
    ) -> Result<Outcome, CommandError> {
        let Self { draft, question: Question { requirements, .. }, says_newer, .. } = self;
        // What can still refuse comes before `install`, which is the first to change something, and writes the
        // manifests last. So a run that ends in between leaves the old manifests, and the same command finishes it.
        let members = &session.workspace.members;
        let changed = draft.editing.changed.iter();
        let mut written: Vec<Written> =
            changed.flat_map(|(at, new)| differences(session, &members[at], new)).collect();
        // Only for what the command chose itself (`mu add`, `mu upgrade`) it is news that there is something newer.
        // Entries that stay as they are take part, because that they stay is what the user wants explained.
        if let Some(open) = &says_newer {
            written.extend(unchanged_entries(session, &draft.editing.changed, open, &written));
            note_newer(session, &requirements, &resolved.lock, open, &mut written);
            written.retain(|one| one.is_change() || one.newer.is_some());
        }
        let ways = resolved.ways.clone();
        let mut outcome = install(session, &requirements, resolved, &draft.editing.edits, dry_run)?;
        // `mu update --installed 'ops/kafka#1.0.0'` asks how to get from there to here. The lock had something else, so
        // changes are told of the supposed versions, with the steps in between.
        if !requirements.installed.is_empty() {
            outcome.suppose_installed(&requirements.installed);
            outcome = outcome.by_way_of(&ways);
        }
        Ok(Outcome { lowered: draft.lowered, written, ..outcome })
    }
}

/// Whether requirements that are new since `before` accept nothing but what the lock has.
fn accepts_only(now: &Requirements, before: &Requirements, lock: &Lockfile) -> bool {
    let mut new = now.asked.iter().filter(|asked| !before.asked.contains(asked));
    new.all(|asked| {
        let Requirement { id, spec, .. } = &asked.requirement;
        let mut chosen = lock.find(id);
        let is_met = chosen.next().is_some_and(|package| is_locked_as(package, spec));
        is_met && chosen.next().is_none()
    })
}

/// Checks that something which stays requires the version that a command moved a package to. With several majors, that version can
/// stand beside the others in this run alone: nothing requires it, and the next run would drop it.
fn check_required(requirements: &Requirements, resolved: &Resolved) -> Result<(), CommandError> {
    let moved = requirements.asked.iter().filter(|asked| asked.by.is_move());
    let lock = &resolved.lock;
    let mut required = None;
    for Asked { requirement: Requirement { id, .. }, reference, .. } in moved {
        let all = || lock.find(id).filter(|package| !package.source.is_workspace_folder());
        let required = required.get_or_insert_with(|| required_packages(lock));
        let is_required = |package: &&LockedPackage| {
            required.contains(&(package.id.as_str(), package.version.as_str()))
        };
        let Some(alone) = all().find(|package| !is_required(package)) else { continue };
        let listed = |asked: &mut dyn Iterator<Item = &Requested>| -> Vec<String> {
            asked.map(|one| format!("`{}` by `{}`", one.spec, one.by)).collect()
        };
        let mut asked = all().filter(is_required).flat_map(|package| &package.requested);
        let asked = listed(&mut asked);
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

/// Checks that a package is at the version that a command moves it to, and not where an override holds it: an override is in the place
/// of all that is required, the move included.
fn check_overridden(
    session: &Session,
    requirements: &Requirements,
    lock: &Lockfile,
) -> Result<(), CommandError> {
    let overrides = &session.workspace.settings.overrides;
    for Asked { requirement: Requirement { id, spec, .. }, .. } in
        requirements.asked.iter().filter(|asked| asked.by.is_move())
    {
        let Some(instead) = overrides.get(id) else { continue };
        let mut locked = lock.find(id).peekable();
        if locked.peek().is_some() && !locked.any(|package| is_locked_as(package, spec)) {
            let message = format!(
                "`{id}` cannot be at {spec}: `overrides` in the settings say `{instead}` for it"
            );
            return Err(CommandError::new(Code::Conflict, message)
                .hint("`mu config list` shows what is set, and where"));
        }
    }
    Ok(())
}

/// The packages of a lock that the workspace needs, with their versions: those that it requires itself, and what these lead to.
/// Packages that only require each other are not among them.
fn required_packages(lock: &Lockfile) -> BTreeSet<(&str, &str)> {
    let mut by_requirer: BTreeMap<&str, Vec<(&LockedPackage, &Requested)>> = BTreeMap::new();
    for package in &lock.packages {
        for one in &package.requested {
            by_requirer.entry(&one.by).or_default().push((package, one));
        }
    }
    let is_locked = |by: &str| {
        let by = PackageId::parse(by).ok();
        by.is_some_and(|by| lock.find(&by).any(|by| !by.source.is_workspace_folder()))
    };
    let is_root = |package: &&LockedPackage| {
        let mut replaced = lock.replaced.iter().map(|replaced| &replaced.by);
        package.source.is_workspace_folder()
            || package.requested.iter().any(|one| !is_locked(&one.by))
            || replaced.any(|by| *by == package.id)
    };
    let mut open: Vec<&LockedPackage> = lock.packages.iter().filter(is_root).collect();
    let mut required = BTreeSet::new();
    // Ends: what a package needs is added once, when the package itself is.
    while let Some(package) = open.pop() {
        if !required.insert((package.id.as_str(), package.version.as_str())) {
            continue;
        }
        // Requirers are named without a version: of several, the one that lists the package as a dependency is meant.
        let is_alone = lock.find(&package.id).nth(1).is_none();
        let depends_on =
            |id: &PackageId| package.dependencies.iter().any(|needed| lock.used_for(needed) == id);
        let needed = by_requirer.get(package.id.as_str()).into_iter().flatten();
        let needed = needed.filter(|(needed, one)| {
            is_alone || one.capability().is_some() || depends_on(&needed.id)
        });
        open.extend(needed.map(|(needed, _)| *needed));
    }
    required
}

/// Names the packages that were to move, and whose registries were not asked, so that they could not.
fn warn_of_unasked(session: &Session, update: &Update, lock: &Lockfile) {
    let is_stuck = |id: &&PackageId| update.moves(id) && session.index().is_unasked(id);
    let ids = lock.packages.iter().map(|package| &package.id).filter(is_stuck);
    let ids: Vec<PackageId> = ids.cloned().collect();
    if !ids.is_empty() {
        session.events.warning(&Warning::NewerUnknown { ids });
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
        let by = Requester::from_member(&session.workspace.members[member]);
        let manifest = &session.workspace.members[member].manifest_path;
        let is_foreign = formats::format_of_manifest(manifest).is_some();
        for mut dependency in dependencies {
            let id = session.id_of_argument(&dependency.reference);
            if is_foreign {
                dependency.reference = with_protocol(session, &id, dependency.reference);
            }
            // Other packages of the workspace may require other majors.
            let is_own = |package: &&LockedPackage| {
                package.requested.iter().any(|one| *one.by == *by.as_str())
            };
            let package = lock.find(&id).filter(is_own).last().or_else(|| lock.find(&id).last());
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
