//! `upgrade`: moves dependencies to their newest releases, and raises the requirements of the manifests.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::lock::Lockfile;
use crate::ops::apply::dependencies::{self, ManifestDependency, NewVersion};
use crate::ops::apply::draft::ManifestDraft;
use crate::ops::apply::transaction::Transaction;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::editing::Editing;
use crate::ops::session::named::PackageName;
use crate::ops::solve::names;
use crate::ops::solve::planning::{self, refuse_frozen, rewrites};
use crate::ops::solve::question::Question;
use crate::ops::solve::record::Resolved;
use crate::ops::solve::solver::resolve;
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{Change, Move, Update, spec_beginning_at};

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
            dependencies::change(session, &mut draft.editing, names, |dependency| {
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
        dependencies::suppose(session, &mut opened, names, |dependency| {
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
            let change = planning::plan(session, &question, Move::Raise(&ids))?;
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
    dependencies::suppose(session, &mut Editing::default(), names, |dependency| {
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
        let file = file.strip_prefix(&session.workspace.root).unwrap_or(file).display();
        let mut beside = requirements.asked.iter().filter(|other| {
            other.requirement.id == *by && other.line.is_some_and(|(index, _)| index == member)
        });
        let to_do = if beside.next().is_some() {
            "remove this requirement".to_owned()
        } else {
            format!("write `{}#{spec}` there instead", session.short_name(by))
        };
        session.events.warning(&format!(
            "`{file}` requires `{}`, but `{by}` is used in its place: to upgrade further, {to_do}",
            asked.reference
        ));
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
