//! Writes the requirements after a move into the manifests, and into what `mu get` was given.
//!
//! A workspace has one selection, so its manifests are one list. A direct requirement stays on its line. An
//! indirect one goes into the manifest whose dependencies lead to its package: where it already is, else into
//! the first one, ordinary dependencies before dev ones. If only `mu get REF` leads to it, it goes into the
//! lock.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::Requirement;
use crate::manifest;
use crate::manifest::edit::Section;
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::names::in_full;
use crate::ops::requirements::{Asked, Requirements, print_extra};
use crate::ops::{CommandError, Session};
use crate::reference::{PackageId, Reference};
use crate::select::{Asker, Change, Demanded, Selection};
use crate::workspace::Member;

/// A list of requirements: of a manifest, or (`None`) of what `mu get` was given.
pub(crate) type List = Option<(usize, Section)>;

/// Writes the `requirements` after `change` into the lists that `is_written` accepts; returns the new list of what `mu get` was
/// given.
///
/// # Errors
///
/// When a manifest cannot be changed.
pub(crate) fn rewrite(
    session: &Session,
    editing: &mut Editing,
    requirements: &Requirements,
    change: &Change,
    is_written: impl Fn(List) -> bool,
) -> Result<Vec<String>, CommandError> {
    let mut extra = Vec::new();
    let own = requirements.grouped(false);
    for (group, asked) in own.iter().zip(&change.asked) {
        for (old, new) in group.iter().zip(asked) {
            if is_written(old.line) {
                let new = new.as_ref();
                write(session, editing, &mut extra, old, new)?;
            }
        }
    }
    let listed: Vec<&Asked> = requirements.grouped(true).into_iter().flatten().collect();
    let mut kept: BTreeSet<&PackageId> = BTreeSet::new();
    let mut new = Vec::new();
    for requirement in &change.indirect {
        let leading = leading(session, requirements, &change.selection, &requirement.id);
        let fits = |asked: &&&Asked| {
            let is_led_to = leading.is_empty() || leading.contains(&asked.line);
            asked.requirement.id == requirement.id && is_led_to && is_written(asked.line)
        };
        match listed.iter().find(fits) {
            Some(old) if kept.insert(&old.requirement.id) => {
                write(session, editing, &mut extra, old, Some(requirement))?;
            }
            Some(_) => {}
            None => {
                let in_manifests = leading.iter().copied().find(|list| is_written(*list));
                let any = own.iter().flatten().map(|asked| asked.line);
                let list = in_manifests.or_else(|| any.clone().find(|list| is_written(*list)));
                new.push((list.unwrap_or_default(), requirement));
            }
        }
    }
    for old in listed.iter().filter(|old| is_written(old.line)) {
        if !kept.contains(&old.requirement.id) {
            write(session, editing, &mut extra, old, None)?;
        }
    }
    for (list, requirement) in new {
        let member = list.map(|(member, _)| &session.workspace.members[member]);
        let reference = reference_to(session, member, &requirement.id);
        let reference = reference.with_version(Some(requirement.spec.clone()));
        let entry =
            manifest::Requirement { indirect: true, ..manifest::Requirement::new(reference) };
        match list {
            Some((member, section)) => {
                editing.change(session, member, |editor| editor.add(section, &entry))?;
            }
            None => extra.push(print_extra(&entry)),
        }
    }
    extra.sort();
    extra.dedup();
    Ok(extra)
}

/// Gives a line its new requirement, or removes it.
fn write(
    session: &Session,
    editing: &mut Editing,
    extra: &mut Vec<String>,
    old: &Asked,
    new: Option<&Requirement>,
) -> Result<(), CommandError> {
    let version = match new {
        Some(new) if new.spec == old.requirement.spec => old.reference.version().cloned(),
        Some(new) => Some(new.spec.clone()),
        None => None,
    };
    let Some((member, section)) = old.line else {
        if new.is_some() {
            extra.push(print_extra(&manifest::Requirement {
                channel: old.requirement.channel.clone(),
                app_version: old.requirement.app_version.clone(),
                prerelease: old.requirement.prerelease,
                indirect: old.indirect,
                ..manifest::Requirement::new(old.reference.with_version(version))
            }));
        }
        return Ok(());
    };
    if new.is_none() {
        editing.change(session, member, |editor| editor.remove(section, &old.reference))?;
    } else if version.as_ref() != old.reference.version() {
        editing.change(session, member, |editor| {
            editor.set_version(section, &old.reference, version)
        })?;
    }
    Ok(())
}

/// The lists whose own requirements lead to a package, or whose manifests require a capability that it
/// provides; dev dependencies last.
fn leading(
    session: &Session,
    requirements: &Requirements,
    selection: &Selection,
    id: &PackageId,
) -> Vec<List> {
    let mut askers: BTreeMap<&PackageId, Vec<&PackageId>> = BTreeMap::new();
    let mut requiring: BTreeMap<&PackageId, Vec<&str>> = BTreeMap::new();
    for chosen in &selection.packages {
        for demand in &chosen.requested {
            match &demand.by {
                Asker::Package(by) => askers.entry(&chosen.id).or_default().push(by),
                Asker::Root(by) if matches!(demand.what, Demanded::Capability(_)) => {
                    requiring.entry(&chosen.id).or_default().push(by);
                }
                Asker::Root(_) => {}
            }
        }
    }
    let mut above: BTreeSet<&PackageId> = BTreeSet::from([id]);
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        for &by in askers.get(id).into_iter().flatten() {
            if above.insert(by) {
                open.push(by);
            }
        }
    }
    let own = requirements.asked.iter().filter(|asked| !asked.indirect);
    let mut lists: Vec<List> =
        own.filter(|asked| above.contains(&asked.requirement.id)).map(|asked| asked.line).collect();
    let requiring: BTreeSet<&str> =
        above.iter().filter_map(|id| requiring.get(id)).flatten().copied().collect();
    let members = session.workspace.members.iter().enumerate();
    let members = members.filter(|(_, member)| requiring.contains(member.manifest.name.as_str()));
    lists.extend(members.map(|(index, _)| Some((index, Section::Dependencies))));
    lists.sort_by_key(|list| match list {
        Some((member, Section::Dependencies)) => (0, *member),
        Some((member, Section::DevDependencies)) => (1, *member),
        None => (2, 0),
    });
    lists.dedup();
    lists
}

/// How the manifest of `member`, or the lock, can name a package that nothing there names yet.
fn reference_to(session: &Session, member: Option<&Member>, id: &PackageId) -> Reference {
    let defaults = session.defaults();
    let leads = |text: &str| {
        let reference = Reference::parse(text).ok()?;
        let from = &session.workspace.root;
        let leads = session.places.id_of(&reference, &defaults, from, &session.workspace) == *id;
        leads.then_some(reference)
    };
    let written = session.index().written(id);
    let short = match member {
        Some(member) => in_full(session, member, id),
        None => session.short_name(id).to_owned(),
    };
    let texts = written.into_iter().chain([short, id.to_string()]);
    let mut references = texts.filter_map(|text| leads(&text));
    references.next().unwrap_or_else(|| {
        let name = Reference::parse(id.as_str());
        name.expect("an id is a reference")
    })
}
