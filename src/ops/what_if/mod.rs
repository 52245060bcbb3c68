//! `resolve`: what would be chosen if other things were asked for. Writes nothing.

pub mod compare;

use std::sync::Arc;

use crate::lock::{LockedPackage, Source};
use crate::manifest;
use crate::ops::apply::least::{self, with_newest};
use crate::ops::explain::not_asked_for::not_asked_for;
use crate::ops::explain::other_places;
use crate::ops::requirements::supposition::{REFERENCE, WITH, WhatIf};
use crate::ops::requirements::{Requirements, without};
use crate::ops::solve::resolve::resolve_from;
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::Update;
use crate::workspace::Exclusion;

/// Chooses versions under the suppositions.
///
/// # Errors
///
/// When a supposition cannot be read, nothing asks for what is left out, or no versions fit together.
pub fn what_if(session: &mut Session, request: &WhatIf) -> Result<Outcome, CommandError> {
    let previous = session.lockfile()?.unwrap_or_default();
    let mut supposed = previous.clone();
    for text in &request.installed {
        suppose_installed(session, &mut Arc::make_mut(&mut supposed).packages, text)?;
    }
    for text in &request.runtime {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            CommandError::new(Code::Usage, format!("--runtime takes NAME=VALUE, not `{text}`"))
        })?;
        session.workspace.settings.runtime.insert(name.to_owned(), value.to_owned());
    }
    for text in &request.exclude {
        let reference = Reference::parse(text)?;
        let id = session.id_of(&reference);
        let versions = reference.version().cloned();
        session.workspace.settings.exclude.push(Exclusion { id, versions });
    }
    let mut extra = previous.extra.clone();
    if !request.references.is_empty() {
        session.workspace.members.clear();
        extra.clear();
    }
    let mut supposed_too = Vec::new();
    let given = request.references.iter().map(|text| (REFERENCE, text));
    for (by, text) in given.chain(request.with.iter().map(|text| (WITH, text))) {
        let reference = Reference::parse(text)?;
        let id = session.id_of(&reference);
        extra = without(session, &extra, &id);
        if request.with.contains(text) {
            drop_requirements(session, &id);
        }
        supposed_too.push((by, id, reference));
    }
    for text in &request.without {
        let id = session.id_of(&Reference::parse(text)?);
        let rest = without(session, &extra, &id);
        if !drop_requirements(session, &id) && rest.len() == extra.len() {
            return Err(not_asked_for(session, text, &id, &extra));
        }
        extra = rest;
    }
    let mut requirements = Requirements::collect(session, extra.clone())?;
    requirements.question = Some(Box::new(request.clone()));
    for (by, id, reference) in supposed_too {
        let is_open = reference.version().is_none()
            && reference.local().is_none()
            && session.places.member_of(&id).is_none();
        let mut dependency = manifest::Requirement {
            channel: request.channel.clone(),
            app_version: request.app_version.clone(),
            prerelease: request.prereleases,
            ..manifest::Requirement::new(reference)
        };
        if is_open && least::is_in_force(session) {
            session.index().declare(&id, &dependency.reference, &session.environment.current);
            dependency = with_newest(session, &extra, dependency, by)?;
        }
        requirements.suppose(session, by, &dependency);
    }
    // References that stand alone are answered as if nothing were installed.
    let base = if request.references.is_empty() { supposed.clone() } else { Default::default() };
    let resolved = resolve_from(session, &requirements, Update::Nothing, base)?;
    let left_out = other_places::left_out(session, &resolved.lock);
    for warning in resolved.warnings.iter().chain(&left_out) {
        session.events.warning(warning);
    }
    session.save_index();
    let outcome = Outcome::new(resolved.lock, &supposed, &requirements);
    let outcome = outcome.by_way_of(&resolved.ways);
    let listed = if request.tidies { least::listed(session, &requirements)? } else { None };
    let requirements = listed.unwrap_or(outcome.requirements);
    Ok(Outcome { dry_run: true, requirements, ..outcome })
}

/// Takes a package out of what the manifests ask for, as far as this run goes; says whether it was there.
fn drop_requirements(session: &mut Session, id: &PackageId) -> bool {
    let defaults = session.defaults();
    let mut was_there = false;
    for member in &mut session.workspace.members {
        let mut keep = |dependency: &manifest::Requirement| {
            let is_it =
                dependency.reference.local().is_none() && dependency.reference.id(&defaults) == *id;
            was_there |= is_it;
            !is_it
        };
        member.manifest.dependencies.retain(&mut keep);
        member.manifest.dev_dependencies.retain(&mut keep);
    }
    was_there
}

fn suppose_installed(
    session: &mut Session,
    packages: &mut Vec<LockedPackage>,
    text: &str,
) -> Result<(), CommandError> {
    let reference = Reference::parse(text)?;
    let id = session.id_of(&reference);
    let Some(VersionSpec::Pin(pin)) = reference.version() else {
        return Err(CommandError::new(
            Code::Usage,
            format!("--installed takes ID#VERSION with one version, not `{text}`"),
        ));
    };
    let version = pin.version().to_string();
    session.options.installed.insert(id.clone(), Version::parse(&version)?);
    packages.retain(|package| package.id != id);
    packages.push(LockedPackage::new(id, version, Source::new("hub", "supposed")));
    packages.sort_by(|left, right| left.id.cmp(&right.id));
    Ok(())
}
