//! `remove`: drops packages from manifests (or from what `mu get` was given), the lock and the packs.

use std::collections::BTreeSet;

use crate::manifest::edit::Section;
use crate::ops::apply::plan::Plan;
use crate::ops::explain::not_asked_for::{needed, not_asked_for};
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::names::id_in;
use crate::ops::requirements::without;
use crate::ops::session::locked::find_locked;
use crate::ops::session::member;
use crate::ops::{CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference};
use crate::select::Move;

/// Removes what `texts` name: references, ids, or the local names of dependencies.
///
/// Looks in the manifest around the current folder, or in all of them where that is in none; and in
/// what `mu get` was given.
///
/// # Errors
///
/// When nothing asks for one of them, and for all that [`crate::ops::apply::install::install`] fails for.
pub fn remove(
    session: &mut Session,
    texts: &[String],
    dry_run: bool,
) -> Result<Outcome, CommandError> {
    let previous = session.lockfile()?.unwrap_or_default();
    let mut extra = previous.extra.clone();
    let mut editing = Editing::default();
    let mut discarded = BTreeSet::new();
    let targets: Vec<usize> = match member::around(session)? {
        Some(index) => vec![index],
        None => (0..session.workspace.members.len()).collect(),
    };
    for text in texts {
        let reference = Reference::parse(text)?;
        let id = find_locked(session, &previous, &reference)
            .unwrap_or_else(|_| session.id_of(&reference));
        let mut was_there = false;
        for &index in &targets {
            for section in [Section::Dependencies, Section::DevDependencies] {
                // A folder may be named in several ways.
                while let Some(reference) = find(session, index, section, text, &id)?
                    && editing
                        .change(session, index, |editor| editor.remove(section, &reference))?
                {
                    was_there = true;
                }
            }
        }
        let rest = without(session, &extra, &id);
        was_there |= rest.len() < extra.len();
        extra = rest;
        was_there |= previous.replacement(&id).is_some_and(|replaced| replaced.kept.is_some());
        discarded.insert(id.clone());
        if !was_there {
            return Err(not_asked_for(session, text, &id, &extra));
        }
    }
    let removed = discarded.clone();
    let plan = Plan { editing, extra, discarded, ..Plan::default() };
    let outcome = plan.carry_out(session, Move::Clear, dry_run)?;
    for package in removed.iter().filter_map(|id| outcome.lock.find(id).next()) {
        if let Some(needed) = needed(package) {
            session.events.warning(&format!("`{}` stays, because {needed}", package.id));
        }
    }
    Ok(outcome)
}

/// The reference of the dependency that `text` means: by its local name, or by the package it names.
fn find(
    session: &Session,
    index: usize,
    section: Section,
    text: &str,
    wanted: &PackageId,
) -> Result<Option<Reference>, CommandError> {
    let member = &session.workspace.members[index];
    let dependencies = match section {
        Section::Dependencies => &member.manifest.dependencies,
        Section::DevDependencies => &member.manifest.dev_dependencies,
    };
    Ok(dependencies
        .iter()
        .find(|dependency| {
            let id = id_in(session, member, &dependency.reference);
            dependency.alias.as_deref() == Some(text) || id == *wanted
        })
        .map(|dependency| dependency.reference.clone()))
}
