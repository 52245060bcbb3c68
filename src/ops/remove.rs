//! `remove`: drops packages from manifests (or from what `mu get` was given), the lock and the packs.

use std::collections::BTreeSet;

use crate::lock::LockedPackage;
use crate::manifest::edit::Section;
use crate::ops::get::id_of;
use crate::ops::least::{Idle, Plan, carry_out};
use crate::ops::member::{self, Editing};
use crate::ops::requirements::without;
use crate::ops::update::find_locked;
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference};
use crate::select::Update;

/// Removes what `texts` name: references, ids, or the local names of dependencies.
///
/// Looks in the manifest around the current folder, or in all of them where that is in none; and in
/// what `mu get` was given.
///
/// # Errors
///
/// When nothing asks for one of them, and for all that [`crate::ops::sync::sync`] fails for.
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
            .unwrap_or_else(|_| id_of(session, &reference));
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
    let outcome = carry_out(session, plan, Update::Nothing, Idle::Go, dry_run)?;
    for package in removed.iter().filter_map(|id| outcome.lock.find(id).next()) {
        if let Some(needed) = needed(package) {
            session.events.warning(&format!("`{}` stays, because {needed}", package.id));
        }
    }
    Ok(outcome)
}

/// Who still asks for a package, as a sentence.
fn needed(package: &LockedPackage) -> Option<String> {
    let by: Vec<String> =
        package.requested.iter().map(|requested| format!("`{}`", requested.by)).collect();
    match &by[..] {
        [] => None,
        [one] => Some(format!("{one} needs it")),
        [most @ .., last] => Some(format!("{} and {last} need it", most.join(", "))),
    }
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
    let defaults = session.defaults();
    Ok(dependencies
        .iter()
        .find(|dependency| {
            let id = session.places.id_of(
                &dependency.reference,
                &defaults,
                &member.folder,
                &session.workspace,
            );
            dependency.alias.as_deref() == Some(text) || id == *wanted
        })
        .map(|dependency| dependency.reference.clone()))
}

/// That nothing asks for what `text` names, and what is meant instead, perhaps.
pub(super) fn not_asked_for(
    session: &Session,
    text: &str,
    id: &PackageId,
    extra: &[String],
) -> CommandError {
    let error = CommandError::new(Code::NotFound, format!("nothing here asks for `{text}`"));
    let locked = session.lockfile().ok().flatten().unwrap_or_default();
    if let Some(package) = locked.find(id).next() {
        return match needed(package) {
            Some(needed) => error.hint(format!("it is installed because {needed}")),
            None => error,
        };
    }
    if let Some(replaced) = locked.replacement(id) {
        return error.hint(format!("`{}` is used for it, and nothing is left of it", replaced.by));
    }
    let known: Vec<String> = session
        .workspace
        .members
        .iter()
        .flat_map(|member| {
            member.manifest.dependencies.iter().chain(&member.manifest.dev_dependencies)
        })
        .map(|dependency| dependency.reference.to_string())
        .chain(extra.iter().cloned())
        .collect();
    let names = known.iter().map(|text| text.split('#').next().unwrap_or(text));
    match crate::manifest::source::nearest(text, names) {
        Some(name) => error.hint(format!("did you mean `{name}`?")),
        None => error,
    }
}
