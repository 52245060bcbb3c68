//! Which versions there could be. `outdated`: which packages could move, how far within the requirements, and what exists beyond
//! them. `resolve`: what would be chosen with other requirements, and with `--compare` what each strategy would choose, side by
//! side. Nothing is written.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use mu_provider::Commit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::index::releases::Releases;
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest;
use crate::ops::apply::element::find_element_package;
use crate::ops::apply::fetch::archive_urls;
use crate::ops::apply::outcome::version_with_content;
use crate::ops::explain::unserved::not_asked_for;
use crate::ops::explain::{places, unavailable_error};
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::{WhatIf, facts, supposed_installations, supposed_mu};
use crate::ops::requirements::{Requirements, check_chosen};
use crate::ops::session::disk::local_folder;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::locked::{PackageName, Purpose, version_of};
use crate::ops::solve::asking::{self, newest, obstacle, requirers_of_locked, resolve_newest};
use crate::ops::solve::copies::archive_now;
use crate::ops::solve::question::{Question, request, without_packages};
use crate::ops::solve::{copies, names, resolve, resolve_from};
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{ArtifactDigest, PackageId, Reference};
use crate::select::{
    InstalledVersion, Obstacle, RequirementByRequirer, SelectionRequest, Update, incompatibilities,
};
use crate::workspace::{ExclusionSetting, Resolution};

/// A package that could move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outdated {
    /// The package.
    pub id: PackageId,
    /// Its version now.
    pub current: String,
    /// The newest that the requirements allow.
    pub allowed: String,
    /// The newest release of all.
    pub newest: String,
    /// Whether a manifest or the command line requires it.
    pub direct: bool,
    /// What keeps it from being the newest, if anything: `~1.5 by acmecorp/elk`.
    pub held_back_by: Vec<String>,
    /// The package that took its place, if its index says so.
    pub moved_to: Option<String>,
    /// The reason why its version was withdrawn, if it was; empty if none was given.
    pub yanked: Option<String>,
    /// What its authors say about its version, if they no longer look after it; empty if they say nothing.
    pub deprecated: Option<String>,
    /// Why its version cannot be used here any more, if it cannot: `needs kubernetes >=1.28, but it is 1.24`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<String>,
    /// Why it is at its version if nothing holds it back.
    #[serde(skip)]
    pub stays: Stays,
}

/// Why a package is at a version that nothing holds it back at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// `Mu.lock` has it.
    Locked,
    /// It is supposed to be installed.
    Installed,
    /// Nothing requires more.
    Unasked,
}

/// Finds the packages that could move: the locked ones, or those of a supposed installation, as
/// [`WhatIf::installed`](crate::ops::requirements::supposition::WhatIf::installed) has them.
pub fn outdated(session: &Session, supposed: &[String]) -> Result<Vec<Outdated>, CommandError> {
    let mut lock = session.lockfile()?.unwrap_or_default();
    let mut requirements = names::collect_looked_up(session, lock.extra.clone())?;
    if supposed.is_empty() {
        check_chosen(session, &requirements)?;
    } else {
        // The supposed installation is what is in use now. What of it nothing requires is asked for, or it would be
        // left out.
        requirements.installed = supposed_installations(session, supposed)?;
        lock = Arc::new(Lockfile::default());
        let packages = &mut Arc::make_mut(&mut lock).packages;
        for (id, installed) in requirements.installed.clone() {
            packages.push(LockedPackage::supposed(&id, &installed.version));
            let is_asked = requirements.asked.iter().any(|asked| asked.requirement.id == id);
            let written = session.index().written(&id).unwrap_or_else(|| id.to_string());
            if !is_asked {
                let any = manifest::Requirement::new(Reference::parse(&written)?);
                requirements.suppose(session, &Requester::Question, &any);
            }
        }
    }
    check_known(session, &lock)?;
    let requirements = Rc::new(requirements);
    let newest_lock = match resolve_newest(session, &requirements) {
        Ok(resolved) => resolved.lock,
        // `mu update` says why nothing can move, for example because a package pins a yanked version.
        Err(error) if error.code == Code::NoSolution => lock.clone(),
        Err(error) if error.code == Code::NotFound => {
            newest_of_others(session, &requirements, &lock)?.ok_or(error)?
        }
        Err(error) => return Err(error),
    };
    let request = request(session, &requirements, &lock, Update::Everything);
    let roots: BTreeSet<&str> = requirements.asked.iter().map(|asked| asked.by.as_str()).collect();
    // The manifests' requirements as written, not as an update would change them.
    let asking_for = |package: &LockedPackage| {
        if Requester::override_of(package).is_some() {
            return requirers_of_locked(package);
        }
        let asked = requirements.asked.iter().filter(|asked| asked.requirement.id == package.id);
        let own = asked.filter(|asked| !asked.indirect);
        let own = own.map(|asked| (asked.by.to_string(), asked.requirement.clone()));
        let others =
            requirers_of_locked(package).into_iter().filter(|(by, _)| !roots.contains(by.as_str()));
        own.chain(others).collect::<Vec<RequirementByRequirer>>()
    };
    // Three versions of each: `current` is locked, `allowed` is where `mu update` would go, and `newest` is what there
    // is.
    let mut found = Vec::new();
    for package in lock.packages.iter().filter(|package| !package.source.is_authored_folder()) {
        let releases = session
            .index()
            .listed_releases(&package.id)
            .map_err(|error| unavailable_error(session, error))?;
        let now = successor(&newest_lock, package);
        let newest = newest(&releases, package.parsed_version().as_ref());
        let newest = newest.map(|version| version.to_string());
        let shown = |commit: Option<&Commit>, version: &str| match commit {
            Some(commit) if version == LockedPackage::NO_VERSION => commit.short().to_owned(),
            _ => version.to_owned(),
        };
        let is_other_archive = now.is_some_and(|now| {
            now.artifact != package.artifact
                || (package.source.is_url_archive() && now.archive != package.archive)
        });
        // A branch may have moved on without another version in its manifest.
        let is_other_commit = package.commit.is_some()
            && now
                .is_some_and(|now| now.version == package.version && now.commit != package.commit);
        let shown_with_content = |package: &LockedPackage| match package.revision() {
            _ if is_other_commit && package.version != LockedPackage::NO_VERSION => {
                version_with_content(package)
            }
            Some(digest) if is_other_archive => {
                format!("{} ({})", package.version, ArtifactDigest::shortened(&digest))
            }
            _ => shown(package.commit.as_ref(), &package.version),
        };
        let mut current = shown_with_content(package);
        let mut allowed = now.map_or_else(|| current.clone(), shown_with_content);
        // What was put in the place of a version moves only where it is named.
        let is_unmoved = now.is_some_and(|now| now.version == package.version);
        let replaced = archive_now(session, package).filter(|_| is_unmoved);
        let replaced = replaced.filter(|archive| Some(*archive) != package.archive);
        if let (Some(archive), Some(locked)) = (replaced, package.archive) {
            let [locked, now] = [locked, archive].map(|one| one.to_string());
            current = format!("{} ({})", package.version, ArtifactDigest::shortened(&locked));
            allowed = format!("{} ({})", package.version, ArtifactDigest::shortened(&now));
        }
        let newest = newest
            .filter(|_| !is_other_archive && !is_other_commit && replaced.is_none())
            .unwrap_or_else(|| allowed.clone());
        let moved_to = moved_to(&releases);
        let details = package.parsed_version();
        let details =
            details.and_then(|version| releases.details(releases.position_of_version(&version)?));
        let yanked = details.and_then(|details| details.yanked.clone());
        let deprecated = details.and_then(|details| details.deprecated.clone());
        let own = request.settings.mu_version.as_ref();
        let unusable = details.into_iter().flat_map(|details| {
            incompatibilities(details, &request.settings.runtime, own).map(|one| one.of_one())
        });
        let gone = releases.tried().map(|_| "is not at its registry any more".to_owned());
        let unusable: Vec<String> = unusable.chain(gone).collect();
        let is_newest = current == allowed && current == newest;
        let is_fine =
            moved_to.is_none() && yanked.is_none() && deprecated.is_none() && unusable.is_empty();
        if is_newest && is_fine {
            continue;
        }
        let held_back_by = if replaced.is_some() {
            let name = quoted_for_shell(&session.short_name(&package.id));
            vec![format!("only `mu update {name}` takes what was put in its place")]
        } else if allowed == newest {
            Vec::new()
        } else {
            let package = now.unwrap_or(package);
            obstacles(session, &request, package, &asking_for(package), &newest)
        };
        found.push(Outdated {
            id: package.id.clone(),
            direct: package.requested.iter().any(|requested| roots.contains(&*requested.by)),
            current,
            allowed,
            newest,
            held_back_by,
            moved_to,
            yanked,
            deprecated,
            unusable,
            stays: match session.strategy().follows_lock() {
                _ if !supposed.is_empty() => Stays::Installed,
                true => Stays::Locked,
                false => Stays::Unasked,
            },
        });
    }
    session.save_index();
    Ok(found)
}

/// The newest versions of what is not gone from its registry, beside what is; `None` if nothing is gone.
fn newest_of_others(
    session: &Session,
    requirements: &Rc<Requirements>,
    lock: &Arc<Lockfile>,
) -> Result<Option<Arc<Lockfile>>, CommandError> {
    let is_there = |package: &&LockedPackage| {
        let releases = session.index().listed_releases(&package.id);
        package.source.is_authored_folder() || releases.is_ok_and(|all| all.tried().is_none())
    };
    let there: BTreeSet<PackageId> =
        lock.packages.iter().filter(is_there).map(|package| package.id.clone()).collect();
    if lock.packages.iter().all(|package| there.contains(&package.id)) {
        return Ok(None);
    }
    let question = Question::new(Rc::clone(requirements), Update::Packages(there));
    match resolve(session, &question) {
        Ok(resolved) => Ok(Some(resolved.lock)),
        Err(error) if matches!(error.code, Code::NoSolution | Code::NotFound) => {
            Ok(Some(Arc::clone(lock)))
        }
        Err(error) => Err(error),
    }
}

/// Offline, checks that something was learned about each package before: choosing would make do with what is installed.
fn check_known(session: &Session, lock: &Lockfile) -> Result<(), CommandError> {
    if !session.options.offline {
        return Ok(());
    }
    for package in lock.packages.iter().filter(|package| !package.source.is_authored_folder()) {
        session
            .index()
            .listed_releases(&package.id)
            .map_err(|error| unavailable_error(session, error))?;
    }
    Ok(())
}

/// What keeps a package from being at `newest`, in a few words.
fn obstacles(
    session: &Session,
    request: &SelectionRequest,
    package: &LockedPackage,
    asking: &[RequirementByRequirer],
    newest: &str,
) -> Vec<String> {
    let Some(first) = obstacle(session, request, package, asking, newest) else {
        return Vec::new();
    };
    match &first.obstacle {
        Obstacle::Asked(asked) => {
            asked.iter().map(|(by, asked)| format!("{asked} by {by}")).collect()
        }
        Obstacle::Nothing => vec![format!("{newest} would fit by itself")],
        Obstacle::Unknown => vec![format!("{newest} may fit: that was not tried to the end")],
        Obstacle::NotAsked => vec![format!("nothing requires {newest}")],
        _ => Some(first.in_short(&session.reference_defaults().base))
            .filter(|text| !text.is_empty())
            .into_iter()
            .collect(),
    }
}

/// The entry for `package` in `lock`: of several majors, its own.
fn successor<'lock>(
    lock: &'lock Lockfile,
    package: &LockedPackage,
) -> Option<&'lock LockedPackage> {
    let major = |package: &LockedPackage| package.parsed_version().map(|version| version.major());
    let same = lock.find(&package.id).find(|other| major(other) == major(package));
    same.or_else(|| lock.find(&package.id).last())
}

fn moved_to(releases: &Releases) -> Option<String> {
    let last = releases.len().checked_sub(1)?;
    releases.details(last)?.moved_to.as_ref().map(ToString::to_string)
}

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
            begun = asking::dependency_with_beginning(session, &requirements, &dependency, &by)?;
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
        if request.tidies { asking::fewest_requirements(session, &requirements)? } else { None };
    let requirements = listed.unwrap_or(outcome.requirements);
    let archives = archive_urls(session, &outcome.lock, &resolved.releases);
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
