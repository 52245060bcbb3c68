//! `resolve`: what would be chosen with other requirements, and with `--compare` what each strategy would choose, side by side. It writes
//! nothing.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::{LockedPackage, Lockfile};
use crate::manifest;
use crate::ops::apply::element::find_element_package;
use crate::ops::apply::fetch::archive_urls;
use crate::ops::explain::places;
use crate::ops::explain::unserved::not_asked_for;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::{WhatIf, facts, supposed_installations, supposed_mu};
use crate::ops::session::disk::local_folder;
use crate::ops::session::locked::version_of;
use crate::ops::session::named::{PackageName, Purpose};
use crate::ops::solve::narrowed::without_packages;
use crate::ops::solve::question::Question;
use crate::ops::solve::solver::resolve_from;
use crate::ops::solve::{copies, names, planning};
use crate::ops::{CommandError, Outcome, Session};
use crate::reference::{PackageId, Reference};
use crate::select::{InstalledVersion, Update};
use crate::workspace::{ExclusionSetting, Resolution};

/// Chooses versions under the suppositions.
pub fn what_if(session: &Session, request: &WhatIf) -> Result<Outcome, CommandError> {
    let mut notes = Vec::new();
    let result = answer(session, request, &mut notes);
    result.map_err(|error| notes.into_iter().fold(error, CommandError::hint))
}

/// Answers the question. If that fails, adds notes about references to elements.
fn answer(
    session: &Session,
    request: &WhatIf,
    notes: &mut Vec<String>,
) -> Result<Outcome, CommandError> {
    // Without references, the conditions would be about nothing.
    let WhatIf { with, narrowing, .. } = request;
    let mut references = request.references.clone();
    if !narrowing.is_empty() && references.is_empty() && with.is_empty() {
        return Err(without_packages("mu resolve ops/kafka --app-version 2.3"));
    }
    let previous = session.lockfile()?.unwrap_or_default();
    let mut requirements = Rc::new(with_assumptions(session, request, &previous)?);
    let mut supposed_lock = previous.clone();
    for (id, installed) in &requirements.installed {
        suppose_installed(&mut Arc::make_mut(&mut supposed_lock).packages, id, installed);
    }
    // Where nothing is required, the question is about what is installed.
    if references.is_empty() && with.is_empty() && requirements.asked.is_empty() {
        let written = |id| session.index().written(id).unwrap_or_else(|| id.to_string());
        references.extend(requirements.installed.keys().map(written));
    }
    // Each reference is asked about with the requirements that were there before the question, so that the order of
    // references changes nothing; all of them are supposed at the end.
    let mut asked = Vec::new();
    let given = references.iter().map(|text| (Requester::Question, text));
    for (by, text) in given.chain(with.iter().map(|text| (Requester::QuestionToo, text))) {
        let mut reference = Reference::parse(text)?;
        match reference.local() {
            Some(folder) => drop(local_folder(session, folder)?),
            None => reference = find_element_package(session, None, &reference, notes)?,
        }
        let id = session.id_of_argument(&reference);
        session.index().ask_about(&id);
        let is_open = reference.version().is_none()
            && reference.local().is_none()
            && session.places.member_of(&id).is_none();
        let dependency = manifest::Requirement {
            channel: narrowing.channel.clone(),
            app_version: narrowing.app_version.clone(),
            prerelease: narrowing.prereleases,
            ..manifest::Requirement::new(reference)
        };
        let dependency = narrowing.at_revision(session, dependency)?;
        // With a version, or a revision that led to one, the user has said how far to go: then the best version one
        // step away is not preferred.
        let is_open = is_open && dependency.reference.version().is_none();
        let mut begun = None;
        if requirements.installed.contains_key(&id) {
            let installed = &mut Rc::make_mut(&mut requirements).installed;
            installed.entry(id.clone()).and_modify(|one| one.is_next_wanted &= is_open);
        }
        if is_open {
            session.index().declare(&id, &dependency.reference, &session.environment.current);
            begun = planning::dependency_with_beginning(session, &requirements, &dependency, &by)?;
        }
        asked.push((by, begun.unwrap_or(dependency)));
    }
    for (by, dependency) in &asked {
        Rc::make_mut(&mut requirements).suppose(session, by, dependency);
    }
    // References without the workspace's requirements are answered as if only the supposed installation
    // existed.
    let mut base = supposed_lock.clone();
    if !references.is_empty() {
        let is_supposed = |id: &PackageId| requirements.installed.contains_key(id);
        let packages = supposed_lock.packages.iter().filter(|package| is_supposed(&package.id));
        base = Arc::new(Lockfile { packages: packages.cloned().collect(), ..Lockfile::default() });
    }
    // What is installed is where upgrades begin, and nothing that stays.
    let update = match requirements.installed.is_empty() {
        true => Update::Nothing,
        false => Update::Packages(requirements.installed.keys().cloned().collect()),
    };
    let question = Question::new(Rc::clone(&requirements), update);
    let resolved = resolve_from(session, &question, base)?;
    let unagreed = copies::check(session, &previous, &resolved, true)?;
    let left_out = places::left_out(session, &resolved.lock);
    for warning in resolved.warnings.iter().chain(&left_out) {
        session.events.warning(warning);
    }
    session.save_index();
    let outcome = Outcome::new(resolved.lock, &supposed_lock, &requirements);
    let outcome = outcome.by_way_of(&resolved.ways);
    // What the minimal strategy would write, which takes another selection.
    let listed =
        if request.tidies { planning::fewest_requirements(session, &requirements)? } else { None };
    let requirements = listed.unwrap_or(outcome.requirements);
    let archives = archive_urls(session, &outcome.lock);
    Ok(Outcome { dry_run: true, requirements, unagreed, archives, ..outcome })
}

/// The additional requirements and assumptions, besides the given references.
fn with_assumptions(
    session: &Session,
    request: &WhatIf,
    previous: &Lockfile,
) -> Result<Requirements, CommandError> {
    let mut requirements = if request.references.is_empty() {
        names::collect_looked_up(session, previous.extra.clone())?
    } else {
        Requirements::none(session)
    };
    requirements.installed = supposed_installations(session, &request.installed)?;
    // A version says how far to go.
    let ranges: BTreeSet<&PackageId> = requirements
        .asked
        .iter()
        .filter(|asked| asked.reference.version().is_some())
        .map(|asked| &asked.requirement.id)
        .collect();
    for (id, installed) in &mut requirements.installed {
        installed.is_next_wanted = !request.takes_steps && !ranges.contains(id);
    }
    requirements.runtime.extend(facts(&request.runtime)?);
    requirements.mu_version = supposed_mu(request.mu_version.as_deref())?;
    for text in &request.exclude {
        let reference = Reference::parse(text)?;
        let id = session.id_of_argument(&reference);
        requirements.exclude.push(ExclusionSetting { id, versions: reference.version().cloned() });
    }
    for text in &request.with {
        requirements.drop_package(session, &session.id_of_argument(&Reference::parse(text)?));
    }
    for text in &request.without {
        let id = session
            .id_of_argument(PackageName::without_version(text, Purpose::Without)?.reference());
        if !requirements.drop_package(session, &id) {
            return Err(not_asked_for(session, text, &id, &requirements.extra));
        }
    }
    requirements.resolution = request.resolution.unwrap_or(requirements.resolution);
    requirements.question = Some(Box::new(request.clone()));
    Ok(requirements)
}

fn suppose_installed(
    packages: &mut Vec<LockedPackage>,
    id: &PackageId,
    installed: &InstalledVersion,
) {
    packages.retain(|package| package.id != *id);
    let mut package = LockedPackage::supposed(id, &installed.version);
    package.channel = installed.channel.clone();
    packages.push(package);
    packages.sort_by(|left, right| left.id.cmp(&right.id));
}

/// What both strategies choose.
#[derive(Debug)]
pub struct Comparison {
    /// The result of the highest strategy.
    pub highest: Result<Outcome, CommandError>,
    /// The result of the minimal strategy.
    pub minimal: Result<Outcome, CommandError>,
}

/// One package, and its version with each strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Row {
    /// The package.
    pub id: PackageId,
    /// Its version, or several with commas between; `None` if it is not chosen.
    pub highest: Option<String>,
    /// The same with the minimal strategy.
    pub minimal: Option<String>,
}

/// Chooses versions with both strategies, under the same assumptions.
pub fn compare(session: &Session, request: &WhatIf) -> Result<Comparison, CommandError> {
    let by =
        |resolution| what_if(session, &WhatIf { resolution: Some(resolution), ..request.clone() });
    let (highest, minimal) = (by(Resolution::Highest), by(Resolution::Minimal));
    match (highest, minimal, session.resolution()) {
        (Err(error), Err(_), Resolution::Highest) | (Err(_), Err(error), Resolution::Minimal) => {
            Err(error)
        }
        (highest, minimal, _) => Ok(Comparison { highest, minimal }),
    }
}

impl Comparison {
    /// Every package that either chooses, by id.
    pub fn rows(&self) -> Vec<Row> {
        let outcomes = [self.highest.as_ref().ok(), self.minimal.as_ref().ok()];
        let packages = outcomes.into_iter().flatten().flat_map(|outcome| &outcome.lock.packages);
        let ids: BTreeSet<&PackageId> = packages.map(|package| &package.id).collect();
        let version = |outcome: &Result<Outcome, CommandError>, id: &PackageId| {
            let versions: Vec<String> =
                outcome.as_ref().ok()?.lock.find(id).map(version_of).collect();
            (!versions.is_empty()).then(|| versions.join(", "))
        };
        ids.into_iter()
            .map(|id| Row {
                highest: version(&self.highest, id),
                minimal: version(&self.minimal, id),
                id: id.clone(),
            })
            .collect()
    }
}
