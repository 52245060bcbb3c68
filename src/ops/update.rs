//! `update` moves versions, up or down, within the requirements of the manifests; `upgrade` moves dependencies to their newest
//! releases, and raises the requirements.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::index::Requirement;
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest;
use crate::ops::apply::draft::ManifestDraft;
use crate::ops::apply::rewrite::{self, ManifestDependency, NewVersion};
use crate::ops::apply::transaction::Transaction;
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::names::id_in;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::supposed_installations;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::locked::{PackageName, find_used};
use crate::ops::solve::asking::{self, refuse_frozen, rewrites};
use crate::ops::solve::question::{Narrowing, Question, without_packages};
use crate::ops::solve::record::Resolved;
use crate::ops::solve::{names, resolve};
use crate::ops::{Code, CommandError, Outcome, Session, Warning};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{Change, Move, Selection, Update, spec_beginning_at};

/// Moves everything to the newest versions that fit, or only the named packages (`PKG` or `PKG#VERSION`).
/// Step-by-step upgrades start at the locked version, or at the supposed installation.
pub fn update(
    session: &Session,
    request: &UpdateRequest,
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let installed = supposed_installations(session, &request.installed)?;
    let mut draft = ManifestDraft::new(session)?;
    draft.installed = installed;
    let targets = match request.narrowing.is_empty() {
        true if request.packages.is_empty() => Vec::new(),
        true => targets(session, &*draft.in_use(session)?, &request.packages)?,
        false => narrowed(session, &mut draft, request, true)?.0,
    };
    run(session, &Requester::Update, targets, dry_run, draft)
}

/// What to move, and how far.
#[derive(Debug, Clone, Default)]
pub struct UpdateRequest {
    /// The packages, with or without the version to move to; none means all.
    pub packages: Vec<String>,
    /// What their new versions must be.
    pub narrowing: Narrowing,
    /// The supposed installation, `ID#VERSION`.
    pub installed: Vec<String>,
}

/// A package that moves.
struct Target {
    id: PackageId,
    /// The version that it moves to, if one was chosen already.
    version: Option<Version>,
    /// The package, and the version to move to unless it is the newest.
    reference: Reference,
}

/// What each argument names, which is in use.
fn targets(
    session: &Session,
    in_use: &Lockfile,
    texts: &[String],
) -> Result<Vec<Target>, CommandError> {
    let target = |text: &String| {
        let (name, version) = PackageName::with_version(text)?;
        let id = find_used(session, in_use, &name)?;
        let reference = name.reference().with_version(version);
        Ok(Target { id, version: None, reference })
    };
    texts.iter().map(target).collect()
}

/// The newest version of each package that satisfies the conditions and its argument, and, if `within` is set, what roots
/// require; and what is in use. Without a lock, packages are those that manifests require.
fn narrowed(
    session: &Session,
    draft: &mut ManifestDraft,
    request: &UpdateRequest,
    within: bool,
) -> Result<(Vec<Target>, Arc<Lockfile>), CommandError> {
    if request.packages.is_empty() {
        return Err(without_packages("mu update ops/kafka --app-version 2.3"));
    }
    let requirements = draft.collect_drafted(session)?;
    requirements.declare(session);
    let in_use = draft.in_use(session)?;
    let target = |text: &String| {
        let (name, version) = PackageName::with_version(text)?;
        let id = find_required(session, &in_use, &name)?;
        let own = Requirement::new(id.clone(), version.unwrap_or(VersionSpec::Latest));
        refuse_unordered(&name, &own.spec)?;
        let asked = requirements.asked.iter().map(|asked| &asked.requirement);
        let asked = asked.filter(|asked| within && asked.id == id);
        let all: Vec<&Requirement> = asked.chain([&own]).collect();
        let version = request.narrowing.newest(session, &id, &all)?;
        let reference = name.reference().with_version(Some(VersionSpec::exactly(&version)));
        Ok(Target { id, version: Some(version), reference })
    };
    let targets: Result<_, CommandError> = request.packages.iter().map(target).collect();
    Ok((targets?, in_use))
}

/// The package that is in use for the one that a name means, or that a manifest requires by it.
fn find_required(
    session: &Session,
    known: &Lockfile,
    name: &PackageName,
) -> Result<PackageId, CommandError> {
    let found = find_used(session, known, name);
    match found {
        Err(error) if error.code == Code::NotFound => {
            let named = rewrite::named(session, std::slice::from_ref(name))?;
            required_by(session, name.text(), &named).ok_or(error)
        }
        found => found,
    }
}

/// The package among `named`, or with this local name, that a manifest of the workspace requires.
fn required_by(session: &Session, alias: &str, named: &[PackageId]) -> Option<PackageId> {
    session.workspace.members.iter().find_map(|member| {
        let manifest = &member.manifest;
        let mut entries = manifest.all_dependencies();
        entries.find_map(|entry| {
            let id = id_in(session, member, &entry.reference);
            (entry.alias.as_deref() == Some(alias) || named.contains(&id)).then_some(id)
        })
    })
}

/// Refuses what is not about versions: nothing says whether a branch or a commit is newer.
fn refuse_unordered(name: &PackageName, spec: &VersionSpec) -> Result<(), CommandError> {
    if matches!(spec, VersionSpec::Latest | VersionSpec::Pin(_) | VersionSpec::Range(_)) {
        return Ok(());
    }
    let whole = name.reference().with_version(Some(spec.clone()));
    let message = format!("`{spec}` is not a version, so `{}` cannot move up to it", name.text());
    let add = format!("`mu add {}` requires exactly that", quoted_for_shell(whole.as_str()));
    Err(CommandError::new(Code::Usage, message).hint(add))
}

/// Moves packages to the newest version that satisfies the conditions and the argument, and changes the requirements in the
/// workspace's manifests accordingly.
pub fn upgrade_within(
    session: &Session,
    request: &UpdateRequest,
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let mut draft = ManifestDraft::new(session)?;
    let (targets, in_use) = narrowed(session, &mut draft, request, false)?;
    // Who names an app version may want an older one; who names a version wants to move up.
    let named = targets.iter().zip(&request.packages).filter(|(_, text)| text.contains('#'));
    for (Target { id, version, .. }, text) in named {
        let now = in_use.find(id).last().and_then(LockedPackage::parsed_version);
        if let (Some(now), Some(to)) = (now, version)
            && *to < now
        {
            let message = format!("`{id}` is at {now}, and {to} is older");
            let down = format!("`mu downgrade {}` moves there", quoted_for_shell(text));
            return Err(CommandError::new(Code::Usage, message).hint(down));
        }
    }
    // A move begins at what is required now, so that nothing is lowered, and rewrites it itself.
    let moves_all = !rewrites(session, session.strategy());
    retarget(session, &mut draft, &wanted(&targets), moves_all)?;
    run(session, &Requester::Update, targets, dry_run, draft)
}

/// The versions that were chosen for packages.
fn wanted(targets: &[Target]) -> BTreeMap<PackageId, Version> {
    let wanted = targets.iter().filter_map(|one| Some((one.id.clone(), one.version.clone()?)));
    wanted.collect()
}

/// Moves versions for `command`.
fn run(
    session: &Session,
    command: &Requester,
    targets: Vec<Target>,
    dry_run: bool,
    mut draft: ManifestDraft,
) -> Result<Outcome, CommandError> {
    refuse_frozen(session)?;
    if targets.is_empty() {
        draft.move_everything(session)?;
        return Transaction::new(session, draft, Update::Everything)?.run(session, dry_run);
    }
    // Those without a version go as far as they can, one after the other. Those with one come last, so that nothing
    // moves them again; if they cannot all be met, `check_met` says so.
    let mut newest = Vec::new();
    let mut wishes: Vec<Asked> = Vec::new();
    for Target { id, reference, .. } in targets {
        match reference.version() {
            Some(_) => {
                let wish = manifest::Requirement::new(reference);
                wishes.push(Asked::new(command, id, &wish, &session.environment.current));
            }
            None => newest.push(id),
        }
    }
    let ids = newest.iter().chain(wishes.iter().map(|wish| &wish.requirement.id));
    let update = Update::Packages(ids.cloned().collect());
    if !newest.is_empty() {
        draft.move_versions(session, &update, None, Move::Raise(&newest))?;
    }
    let mut change = None;
    for wish in &wishes {
        let Requirement { id, spec, .. } = &wish.requirement;
        change = draft.move_versions(session, &update, Some(wish), Move::To(id, spec))?;
    }
    if let Some(change) = change {
        check_met(&change.selection, &wishes)?;
        wishes.clear();
    }
    // What no move has written into a manifest, only the lock keeps.
    Transaction::new(session, draft, update)?.requiring(wishes).run(session, dry_run)
}

/// Checks that later moves did not undo earlier ones.
fn check_met(selection: &Selection, wishes: &[Asked]) -> Result<(), CommandError> {
    for wish in wishes {
        let (id, to) = (&wish.requirement.id, &wish.requirement.spec);
        let now = selection.find(id);
        let version = now.and_then(|chosen| chosen.version.as_ref());
        let is_there = version.is_none_or(|version| to.accepts(version, true));
        if now.is_none() || !is_there {
            let message = format!(
                "`{id}` cannot be at {to} together with everything else that was requested"
            );
            return Err(CommandError::new(Code::NoSolution, message)
                .hint("move one package at a time, and check what each move does to the others"));
        }
    }
    Ok(())
}

/// Makes the requirements in the workspace's manifests start at these versions; a range keeps its form.
/// Requirements that accept them already stay, unless `moves_all` is set.
fn retarget(
    session: &Session,
    draft: &mut ManifestDraft,
    wanted: &BTreeMap<PackageId, Version>,
    moves_all: bool,
) -> Result<(), CommandError> {
    rewrite::change(session, &mut draft.editing, &[], |dependency| {
        let spec = dependency.reference.spec();
        let is_ordered = matches!(spec, VersionSpec::Range(_) | VersionSpec::Pin(_));
        let version = wanted.get(&dependency.id).filter(|_| is_ordered);
        let version = version.filter(|version| moves_all || !spec.accepts(version, false));
        Ok(version.map(|version| NewVersion {
            version: Some(dependency.moved_to(version)),
            note: dependency.note.clone(),
        }))
    })?;
    Ok(())
}

/// Moves packages to older versions, and lowers requirements of the workspace's manifests that forbid them.
pub fn downgrade(
    session: &Session,
    texts: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let mut draft = ManifestDraft::new(session)?;
    let in_use = draft.in_use(session)?;
    let mut targets = targets(session, &in_use, texts)?;
    let requirements = draft.collect_drafted(session)?;
    requirements.declare(session);
    for (Target { id, version, reference }, text) in targets.iter_mut().zip(texts) {
        let spec = reference.spec();
        if !matches!(spec, VersionSpec::Pin(_) | VersionSpec::Range(_)) {
            continue;
        }
        // What is not listed is refused below, with the versions that there are.
        let own = Requirement::new(id.clone(), spec);
        let Ok(to) = Narrowing::default().newest(session, id, &[&own]) else {
            continue;
        };
        *reference = reference.with_version(Some(VersionSpec::exactly(&to)));
        let locked = in_use.find(id).last();
        let now = locked.and_then(LockedPackage::parsed_version);
        if let Some(now) = now.filter(|now| *now < to) {
            let message = format!("`{id}` is at {now}, and {to} is newer");
            let asked = locked.into_iter().flat_map(|package| &package.requested);
            let asked = asked.filter_map(|one| Requirement::parse(id.clone(), &one.spec));
            let is_allowed = asked.into_iter().all(|one| one.spec.accepts(&to, true));
            let hint = match is_allowed {
                true => format!("`mu update {}` moves there", quoted_for_shell(text)),
                false => format!(
                    "`mu why {}` shows what keeps it from there",
                    quoted_for_shell(&session.short_name(id))
                ),
            };
            return Err(CommandError::new(Code::Usage, message).hint(hint));
        }
        *version = Some(to);
    }
    // A move lowers the requirements by itself.
    if !rewrites(session, session.strategy()) {
        retarget(session, &mut draft, &wanted(&targets), false)?;
    }
    run(session, &Requester::Downgrade, targets, dry_run, draft)
}

/// Upgrades the packages in `names`, or every dependency with a range.
///
/// Pins move only if they are named; tags, branches and commits never do. A range keeps its form: `~1.5`
/// becomes `~2.1`, `^1.0.6` becomes `^2.1.0`, `1.x` becomes `2.x`. Requirements on replaced packages stay,
/// because they cannot name versions of the replacement; a warning says what to write instead.
pub fn upgrade(
    session: &Session,
    names: &[PackageName],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    refuse_frozen(session)?;
    let mut draft = ManifestDraft::new(session)?;
    let in_use = draft.in_use(session)?;
    // First with open ends, to learn how far everything can move together: one after the other, each could take what the next one
    // needs. Then the bounds that lead there.
    let OpenEnds { furthest, open, replaced } = open_ends(session, &draft, names, &in_use)?;
    tell(session, names, &replaced)?;
    let update = Update::Packages(open.clone());
    let transaction = match furthest {
        Furthest::Lock(opened, resolved) => {
            rewrite::change(session, &mut draft.editing, names, |dependency| {
                let is_open = dependency.moves() && open.contains(&dependency.id);
                let version = version_in(&resolved.lock, &dependency.id).filter(|_| is_open);
                Ok(version.map(|version| NewVersion {
                    version: Some(dependency.moved_to(&version)),
                    note: dependency.note.clone(),
                }))
            })?;
            Transaction::new(session, draft, update)?.foreseen(opened, *resolved)
        }
        Furthest::Move(mut change) => {
            let requirements = draft.collect_drafted(session)?;
            begin_there(&mut change, &requirements, &in_use, &open, !names.is_empty());
            draft.add_move(session, &requirements, *change)?;
            Transaction::new(session, draft, update)?
        }
    };
    transaction.telling_newer(open).run(session, dry_run)
}

/// Dependencies whose ends were opened, to learn how far they move.
struct OpenEnds {
    furthest: Furthest,
    /// Those that were open.
    open: BTreeSet<PackageId>,
    /// Packages that turned out to be replaced, and by what.
    replaced: BTreeMap<PackageId, PackageId>,
}

/// How far dependencies with open ends move.
enum Furthest {
    /// To the versions of this lock, which was chosen for these requirements.
    Lock(Rc<Requirements>, Box<Resolved>),
    /// As this move has it: each to its newest release, and its needs only as far as necessary.
    Move(Box<Change>),
}

/// Opens the ends of the dependencies, and looks how far they move.
///
/// Nothing moves down (`begins_here`), unless what is in use cannot be used any more: then there is no solution, and the same is asked
/// once more with ends that are open below, too. A package that turns out to be replaced keeps its requirement, because that cannot
/// name versions of the replacement; so it is asked again without it, at most once for each dependency.
fn open_ends(
    session: &Session,
    draft: &ManifestDraft,
    names: &[PackageName],
    in_use: &Lockfile,
) -> Result<OpenEnds, CommandError> {
    let rewrites = rewrites(session, session.strategy());
    let (mut replaced, mut begins_here) = (BTreeMap::new(), true);
    loop {
        let open = RefCell::new(BTreeSet::new());
        let mut opened = Editing::default();
        rewrite::suppose(session, &mut opened, names, |dependency| {
            let is_own = session.places.member_of(&dependency.id).is_some();
            if !dependency.moves() || is_own || replaced.contains_key(&dependency.id) {
                return None;
            }
            let current = version_in(in_use, &dependency.id);
            // A move raises what is chosen already.
            if rewrites && current.is_none() {
                return None;
            }
            open.borrow_mut().insert(dependency.id.clone());
            Some(current.as_ref().filter(|_| begins_here).map(VersionSpec::at_least))
        })?;
        let open = open.into_inner();
        let requirements =
            names::collect_changed_looked_up(session, &opened.changed, draft.extra.clone())?;
        let question = Question::without_moves(requirements);
        let furthest = if rewrites {
            let ids: Vec<PackageId> = open.iter().cloned().collect();
            let change = asking::plan(session, &question, Move::Raise(&ids))?;
            Furthest::Move(Box::new(change.expect("moves rewrite requirements here")))
        } else {
            let question = Question { update: Update::Packages(open.clone()), ..question };
            match resolve(session, &question) {
                Err(error) if error.code == Code::NoSolution && begins_here => {
                    begins_here = false;
                    continue;
                }
                resolved => Furthest::Lock(question.requirements, Box::new(resolved?)),
            }
        };
        let new: Vec<(&PackageId, &PackageId)> = match &furthest {
            Furthest::Lock(_, resolved) => {
                resolved.lock.replaced.iter().map(|replaced| (&replaced.id, &replaced.by)).collect()
            }
            Furthest::Move(change) => {
                let all = change.selection.replaced.iter();
                all.map(|replaced| (&replaced.id, &replaced.by)).collect()
            }
        };
        let was_open = new.iter().any(|(id, _)| open.contains(id));
        replaced.extend(new.into_iter().map(|(id, by)| (id.clone(), by.clone())));
        if !was_open {
            return Ok(OpenEnds { furthest, open, replaced });
        }
    }
}

/// Has the requirements of a move start where it led to; what others needed before does not move.
fn begin_there(
    change: &mut Change,
    requirements: &Requirements,
    in_use: &Lockfile,
    open: &BTreeSet<PackageId>,
    are_named: bool,
) {
    for (group, asked) in requirements.by_requirer(false).into_iter().zip(&mut change.asked) {
        for (old, new) in group.into_iter().zip(asked) {
            let id = &old.requirement.id;
            let moves = open.contains(id) && is_moved(&old.reference, are_named);
            let chosen = change.selection.find(id).filter(|_| moves);
            let chosen = chosen.and_then(|chosen| chosen.version.as_ref());
            let (Some(chosen), Some(new)) = (chosen, new) else { continue };
            let is_above = version_in(in_use, id).is_some_and(|known| known != *chosen);
            new.spec = if is_above {
                spec_beginning_at(old.reference.version(), chosen)
            } else {
                old.requirement.spec.clone()
            };
        }
    }
}

/// Warns that ranges of replaced packages do not change, and says what to write instead.
fn tell(
    session: &Session,
    names: &[PackageName],
    replaced: &BTreeMap<PackageId, PackageId>,
) -> Result<(), CommandError> {
    if replaced.is_empty() {
        return Ok(());
    }
    // Which entries the names mean; nothing is changed.
    let upgraded = RefCell::new(BTreeSet::new());
    rewrite::suppose(session, &mut Editing::default(), names, |dependency| {
        upgraded.borrow_mut().insert(dependency.id.clone());
        None
    })?;
    let upgraded = upgraded.into_inner();
    let requirements = names::collect_looked_up(session, Vec::new())?;
    for asked in &requirements.asked {
        let (id, spec) = (&asked.requirement.id, &asked.requirement.spec);
        let (Some((member, _)), Some(by)) = (asked.line, replaced.get(id)) else { continue };
        let is_meant = upgraded.contains(id) || upgraded.contains(by);
        if !is_meant || !matches!(spec, VersionSpec::Range(_) | VersionSpec::Pin(_)) {
            continue;
        }
        let file = &session.workspace.members[member].manifest_path;
        let file = file.strip_prefix(&session.workspace.root).unwrap_or(file).to_owned();
        let mut beside = requirements.asked.iter().filter(|other| {
            other.requirement.id == *by && other.line.is_some_and(|(index, _)| index == member)
        });
        let spec = beside.next().is_none().then(|| spec.clone());
        let (reference, by) = (asked.reference.clone(), by.clone());
        session.events.warning(&Warning::ReplacedRange { file, reference, by, spec });
    }
    Ok(())
}

impl ManifestDependency {
    /// Whether it is upgraded.
    fn moves(&self) -> bool {
        is_moved(&self.reference, self.by.is_some())
    }
}

/// Whether a requirement is upgraded: a range, or a pin that is named. A folder has one version, whatever is required of it.
fn is_moved(reference: &Reference, is_named: bool) -> bool {
    match reference.version().filter(|_| reference.local().is_none()) {
        Some(VersionSpec::Range(_)) => true,
        Some(VersionSpec::Pin(_)) => is_named,
        _ => false,
    }
}

fn version_in(lock: &Lockfile, id: &PackageId) -> Option<Version> {
    let package = lock.find(id).last()?;
    package.parsed_version().filter(|_| !package.source.is_workspace_folder())
}
