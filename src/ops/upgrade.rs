//! `upgrade`: moves dependencies to their newest releases, and raises the requirements of the manifests.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::index::Requirement;
use crate::lock::Lockfile;
use crate::ops::apply::dependencies::{self, ManifestDependency, NewVersion};
use crate::ops::apply::plan::Plan;
use crate::ops::requirements::editing::Editing;
use crate::ops::session::named::PackageName;
use crate::ops::solve::names;
use crate::ops::solve::planning::{self, refuse_frozen, rewrites};
use crate::ops::solve::resolve::{is_locked_as, resolve};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{Move, Update, spec_beginning_at};

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
    if rewrites(session, session.strategy()) {
        return upgrade_by_plan(session, names, dry_run);
    }
    let known = session.lockfile()?.unwrap_or_default();
    let extra = known.extra.clone();
    // First with open ends, to learn how far everything can move together: one after the other, each could take what the next one
    // needs. Nothing moves down (`begins_here`), unless what is in use cannot be used any more: then there is no solution, and the
    // same is asked once more with ends that are open below, too. A package that turns out to be replaced keeps its requirement,
    // because that cannot name versions of the replacement; so it is asked again without it, at most once for each dependency.
    let (mut replaced, mut begins_here) = (BTreeMap::new(), true);
    let (mut resolved, opened, open) = loop {
        let open = RefCell::new(BTreeSet::new());
        let mut opened = Editing::default();
        dependencies::suppose(session, &mut opened, names, |dependency| {
            let is_own = session.places.member_of(&dependency.id).is_some();
            if !dependency.moves() || is_own || replaced.contains_key(&dependency.id) {
                return None;
            }
            open.borrow_mut().insert(dependency.id.clone());
            let current = version_in(&known, &dependency.id).filter(|_| begins_here);
            Some(current.as_ref().map(VersionSpec::at_least))
        })?;
        let open = open.into_inner();
        let requirements =
            names::collect_changed_looked_up(session, &opened.changed, extra.clone())?;
        let resolved = resolve(session, &requirements, Update::Packages(open.clone()));
        let resolved = match resolved {
            Err(error) if error.code == Code::NoSolution && begins_here => {
                begins_here = false;
                continue;
            }
            resolved => resolved?,
        };
        let pairs = resolved.lock.replaced.iter().map(|replaced| (&replaced.id, &replaced.by));
        if !keep(&mut replaced, &open, pairs) {
            break (resolved, requirements, open);
        }
    };
    tell(session, names, &replaced)?;
    // Then the bounds that lead there.
    let newest = Arc::clone(&resolved.lock);
    let mut editing = Editing::default();
    dependencies::change(session, &mut editing, names, |dependency| {
        let is_open = dependency.moves() && open.contains(&dependency.id);
        let version = version_in(&newest, &dependency.id).filter(|_| is_open);
        let version = version.map(|version| dependency.moved_to(&version));
        Ok(version
            .map(|version| NewVersion { version: Some(version), note: dependency.note.clone() }))
    })?;
    let mut plan = Plan { editing, extra, says_newer: Some(open.clone()), ..Plan::default() };
    let update = Update::Packages(open);
    let written = plan.restate(session, &opened, &mut resolved, &update, |written| {
        let mut new = written.asked.iter().filter(|asked| !opened.asked.contains(asked));
        new.all(|asked| {
            let Requirement { id, spec, .. } = &asked.requirement;
            let mut chosen = newest.find(id);
            let is_met = chosen.next().is_some_and(|package| is_locked_as(package, spec));
            is_met && chosen.next().is_none()
        })
    })?;
    plan.finish(session, &written, resolved, &update, dry_run)
}

/// Upgrades if moves rewrite requirements: each goes to its newest release, and its needs follow only as far
/// as necessary.
fn upgrade_by_plan(
    session: &Session,
    names: &[PackageName],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let mut plan = Plan::new(session)?;
    let known = plan.in_use(session)?;
    // First with open ends, to learn how far each can move.
    let mut replaced = BTreeMap::new();
    let named = RefCell::new(BTreeSet::new());
    let (mut change, open) = loop {
        let open = RefCell::new(BTreeSet::new());
        let mut opened = Editing::default();
        dependencies::suppose(session, &mut opened, names, |dependency| {
            if dependency.by.is_some() {
                named.borrow_mut().insert(dependency.id.clone());
            }
            let is_open = dependency.moves() && !replaced.contains_key(&dependency.id);
            let current = version_in(&known, &dependency.id).filter(|_| is_open)?;
            open.borrow_mut().insert(dependency.id.clone());
            Some(Some(VersionSpec::at_least(&current)))
        })?;
        let open = open.into_inner();
        let ids: Vec<PackageId> = open.iter().cloned().collect();
        let requirements =
            names::collect_changed_looked_up(session, &opened.changed, plan.extra.clone())?;
        let nothing = Update::Nothing;
        let change = planning::plan(session, &requirements, &nothing, None, Move::Raise(&ids))?;
        let change = change.expect("moves rewrite requirements here");
        let pairs = change.selection.replaced.iter().map(|replaced| (&replaced.id, &replaced.by));
        if !keep(&mut replaced, &open, pairs) {
            break (change, open);
        }
    };
    tell(session, names, &replaced)?;
    // Then starting there; what others needed before does not move.
    let requirements = plan.collect_planned(session, &plan.extra.clone())?;
    for (group, asked) in requirements.by_requirer(false).into_iter().zip(&mut change.asked) {
        for (old, new) in group.into_iter().zip(asked) {
            let id = &old.requirement.id;
            let moves = is_moved(&old.reference, named.borrow().contains(id));
            let chosen = change.selection.find(id).filter(|_| moves && open.contains(id));
            let chosen = chosen.and_then(|chosen| chosen.version.as_ref());
            let (Some(chosen), Some(new)) = (chosen, new) else { continue };
            let is_above = version_in(&known, id).is_some_and(|known| known != *chosen);
            new.spec = if is_above {
                spec_beginning_at(old.reference.version(), chosen)
            } else {
                old.requirement.spec.clone()
            };
        }
    }
    plan.says_newer = Some(open.clone());
    plan.add_move(session, &requirements, change)?;
    plan.conclude(session, Update::Packages(open), dry_run)
}

/// Records replaced packages with their replacements; returns whether any of them is `open`, which must not
/// be.
fn keep<'p>(
    replaced: &mut BTreeMap<PackageId, PackageId>,
    open: &BTreeSet<PackageId>,
    pairs: impl Iterator<Item = (&'p PackageId, &'p PackageId)>,
) -> bool {
    let mut was_open = false;
    for (id, by) in pairs {
        replaced.insert(id.clone(), by.clone());
        was_open |= open.contains(id);
    }
    was_open
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
