//! `upgrade`: moves dependencies to their newest releases, raising what the manifests ask for.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::lock::Lockfile;
use crate::ops::dependencies::{self, Dependency, Meant, NewVersion};
use crate::ops::least::{self, Idle, Plan, carry_out};
use crate::ops::member::Editing;
use crate::ops::pin::MARK;
use crate::ops::requirements::Requirements;
use crate::ops::resolve::resolve;
use crate::ops::sync::sync;
use crate::ops::update::current;
use crate::ops::{CommandError, Outcome, Session};
use crate::reference::{PackageId, Version, VersionSpec};
use crate::select::{Minimal, Update, beginning_at};

/// Upgrades the packages in `names`, or every dependency that asks for a range.
///
/// Pins move only if they are named; tags, branches and commits never do. A range keeps its form:
/// `~1.5` becomes `~2.1`, `^1.0.6` becomes `^2.1.0`, `1.x` becomes `2.x`.
///
/// # Errors
///
/// When a name is of no dependency, no versions fit together, and for all that [`sync`] fails for.
pub fn upgrade(
    session: &mut Session,
    names: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    if least::is_in_force(session) {
        return upgrade_least(session, names, dry_run);
    }
    let extra = session.lockfile()?.unwrap_or_default().extra;
    let meant = Meant { names, mark: MARK };
    let members = session.workspace.members.clone();
    // First without bounds, to learn how far everything can go together.
    let open = RefCell::new(BTreeSet::new());
    dependencies::change(session, &mut Editing::default(), &meant, |dependency| {
        if !moves(dependency) {
            return Ok(None);
        }
        open.borrow_mut().insert(dependency.id.clone());
        Ok(Some(NewVersion { version: None, note: dependency.note.clone() }))
    })?;
    let open = open.into_inner();
    let requirements = Requirements::collect(session, extra.clone())?;
    let newest = resolve(session, &requirements, Update::Packages(open.clone()))?.lock;
    // Then with the bounds that lead there.
    session.workspace.members = members;
    let mut editing = Editing::default();
    dependencies::change(session, &mut editing, &meant, |dependency| {
        let version = version_in(&newest, &dependency.id).filter(|_| open.contains(&dependency.id));
        let (Some(version), Some(written)) = (version, dependency.reference.version_text()) else {
            return Ok(None);
        };
        let version = VersionSpec::parse(&raised(written, version))?;
        Ok(Some(NewVersion { version: Some(version), note: dependency.note.clone() }))
    })?;
    let requirements = Requirements::collect(session, extra)?;
    sync(session, &requirements, Update::Packages(open), &editing.into_edits(), dry_run)
}

/// The same by the minimal strategy: each goes to its newest release, and what they need follows only as far as it must.
fn upgrade_least(
    session: &mut Session,
    names: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let extra = session.lockfile()?.unwrap_or_default().extra;
    let meant = Meant { names, mark: MARK };
    let members = session.workspace.members.clone();
    let known = current(session, &extra)?;
    // First with open ends, to learn how far each can go.
    let open = RefCell::new(BTreeSet::new());
    dependencies::change(session, &mut Editing::default(), &meant, |dependency| {
        let current = version_in(&known, &dependency.id).filter(|_| moves(dependency));
        let Some(current) = current else { return Ok(None) };
        open.borrow_mut().insert(dependency.id.clone());
        let version = Some(VersionSpec::parse(&format!(">={current}"))?);
        Ok(Some(NewVersion { version, note: dependency.note.clone() }))
    })?;
    let open: Vec<PackageId> = open.into_inner().into_iter().collect();
    let requirements = Requirements::collect(session, extra.clone())?;
    let change = least::question(session, &requirements, &Update::Nothing, |universe, request| {
        Minimal.raise(universe, request, &open)
    })?;
    // Then with what begins there.
    session.workspace.members = members;
    let mut plan = Plan { extra, ..Plan::default() };
    dependencies::change(session, &mut plan.editing, &meant, |dependency| {
        let chosen = change.selection.find(&dependency.id);
        let newest = chosen.and_then(|chosen| chosen.version.as_ref());
        let is_open = open.contains(&dependency.id);
        let is_above = |newest: &&Version| {
            version_in(&known, &dependency.id).is_some_and(|known| known != newest.to_string())
        };
        let Some(newest) = newest.filter(|_| is_open).filter(is_above) else { return Ok(None) };
        let version = Some(beginning_at(dependency.reference.version(), newest));
        Ok(Some(NewVersion { version, note: dependency.note.clone() }))
    })?;
    let update = Update::Packages(open.into_iter().collect());
    carry_out(session, plan, update, Idle::Go, dry_run)
}

/// Whether a dependency is upgraded.
fn moves(dependency: &Dependency) -> bool {
    match dependency.reference.version() {
        Some(VersionSpec::Range(_)) => true,
        Some(VersionSpec::Pin(_)) => dependency.is_named,
        _ => false,
    }
}

fn version_in<'lock>(lock: &'lock Lockfile, id: &PackageId) -> Option<&'lock str> {
    let package = lock.find(id).last()?;
    (!package.source.is_workspace()).then_some(&*package.version)
}

/// What was `written`, with `version` as its least and with as many numbers as before; what is no simple
/// range becomes `^VERSION`.
fn raised(written: &str, version: &str) -> String {
    let written = written.trim();
    let operator_end = written.find(|character: char| !"^~>=v ".contains(character));
    let (operator, rest) = written.split_at(operator_end.unwrap_or(written.len()));
    let is_simple = !rest.is_empty() && !rest.contains([' ', ',', '|', '<', '>']);
    if !is_simple || version.contains(['-', '+']) {
        return format!("^{version}");
    }
    let given: Vec<&str> = rest.split('.').collect();
    let numbers: Vec<&str> = version.split('.').collect();
    let raised: Vec<&str> = given
        .iter()
        .zip(&numbers)
        .map(|(given, number)| if matches!(*given, "x" | "X" | "*") { given } else { number })
        .copied()
        .collect();
    format!("{operator}{}", raised.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_keeps_its_form() {
        for (written, version, expected) in [
            ("^1.0.6", "2.1.3", "^2.1.3"),
            ("~1.5", "2.1.3", "~2.1"),
            ("^1", "2.1.3", "^2"),
            ("1.x", "2.1.3", "2.x"),
            ("1.2.*", "2.1.3", "2.1.*"),
            (">=1.2", "2.1.3", ">=2.1"),
            ("1.2.3", "2.1.3", "2.1.3"),
            (">=1 <2", "2.1.3", "^2.1.3"),
            ("^1 || ^3", "4.0.0", "^4.0.0"),
            ("~1.5", "2.0.0-rc.1", "^2.0.0-rc.1"),
        ] {
            assert_eq!(raised(written, version), expected, "{written}");
        }
    }
}
