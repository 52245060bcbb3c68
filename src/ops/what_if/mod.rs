//! `resolve`: what would be chosen if other things were asked for. Writes nothing.

pub mod compare;

use std::sync::Arc;

use crate::lock::{LockedPackage, Lockfile, Source};
use crate::manifest;
use crate::ops::explain::not_asked_for::not_asked_for;
use crate::ops::explain::other_places;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::WhatIf;
use crate::ops::solve::resolve::resolve_from;
use crate::ops::solve::{names, planning};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::Update;
use crate::workspace::Exclusion;

/// Chooses versions under the suppositions.
///
/// # Errors
///
/// When a supposition cannot be read, nothing asks for what is left out, or no versions fit together.
pub fn what_if(session: &Session, request: &WhatIf) -> Result<Outcome, CommandError> {
    let previous = session.lockfile()?.unwrap_or_default();
    let mut requirements = supposed(session, request, &previous)?;
    let mut supposed = previous.clone();
    for (id, version) in &requirements.installed {
        suppose_installed(&mut Arc::make_mut(&mut supposed).packages, id, version);
    }
    let base = requirements.clone();
    let given = request.references.iter().map(|text| (Requester::Question, text));
    for (by, text) in given.chain(request.with.iter().map(|text| (Requester::QuestionToo, text))) {
        let reference = Reference::parse(text)?;
        let id = session.id_of(&reference);
        let is_open = reference.version().is_none()
            && reference.local().is_none()
            && session.places.member_of(&id).is_none();
        let dependency = manifest::Requirement {
            channel: request.channel.clone(),
            app_version: request.app_version.clone(),
            prerelease: request.prereleases,
            ..manifest::Requirement::new(reference)
        };
        let mut begun = None;
        if is_open {
            session.index().declare(&id, &dependency.reference, &session.environment.current);
            begun = planning::beginning(session, &base, &dependency, &by)?;
        }
        requirements.suppose(session, &by, begun.as_ref().unwrap_or(&dependency));
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
    let listed = if request.tidies { planning::listed(session, &requirements)? } else { None };
    let requirements = listed.unwrap_or(outcome.requirements);
    Ok(Outcome { dry_run: true, requirements, ..outcome })
}

/// What is asked for besides the references that were given, and under which circumstances.
fn supposed(
    session: &Session,
    request: &WhatIf,
    previous: &Lockfile,
) -> Result<Requirements, CommandError> {
    let mut requirements = if request.references.is_empty() {
        names::collect(session, previous.extra.clone())?
    } else {
        Requirements::none(session)
    };
    for text in &request.installed {
        let reference = Reference::parse(text)?;
        let Some(VersionSpec::Pin(pin)) = reference.version() else {
            return Err(CommandError::new(
                Code::Usage,
                format!("--installed takes ID#VERSION with one version, not `{text}`"),
            ));
        };
        let version = Version::parse(&pin.version().to_string())?;
        requirements.installed.insert(session.id_of(&reference), version);
    }
    for text in &request.runtime {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            CommandError::new(Code::Usage, format!("--runtime takes NAME=VALUE, not `{text}`"))
        })?;
        requirements.runtime.insert(name.to_owned(), value.to_owned());
    }
    for text in &request.exclude {
        let reference = Reference::parse(text)?;
        let id = session.id_of(&reference);
        requirements.exclude.push(Exclusion { id, versions: reference.version().cloned() });
    }
    for text in &request.with {
        requirements.drop_package(session, &session.id_of(&Reference::parse(text)?));
    }
    for text in &request.without {
        let id = session.id_of(&Reference::parse(text)?);
        if !requirements.drop_package(session, &id) {
            return Err(not_asked_for(session, text, &id, &requirements.extra));
        }
    }
    requirements.resolution = request.resolution.unwrap_or(requirements.resolution);
    requirements.question = Some(Box::new(request.clone()));
    Ok(requirements)
}

fn suppose_installed(packages: &mut Vec<LockedPackage>, id: &PackageId, version: &Version) {
    packages.retain(|package| package.id != *id);
    let source = Source::new("hub", "supposed");
    packages.push(LockedPackage::new(id.clone(), version.to_string(), source));
    packages.sort_by(|left, right| left.id.cmp(&right.id));
}
