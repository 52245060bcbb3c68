//! From requirements to a lock: as it is if it still fits, else with as few changes as possible.
//!
//! Nothing is fetched or written here; a lock's new entries know their digest only where an index
//! told it.

use std::collections::{BTreeMap, HashMap};

use mu_provider::Release;

use crate::index::{Route, Unavailable, Universe};
use crate::lock::{LockedPackage, Lockfile, Requested, Source};
use crate::ops::locked_universe::LockedUniverse;
use crate::ops::requirements::{OVERRIDES, Requirements, overrides};
use crate::ops::update::UPDATE;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Version};
use crate::select::{
    Asker, Chosen, Conflict, Exclusion, Failure, Highest, Local, Locked, Majors, Override, Request,
    Selection, Settings, Strategy, Update, Warning,
};
use crate::workspace::{Cutoff, Resolution};

/// A lock that fits the requirements, and how to fetch what is new in it.
#[derive(Debug, Default)]
pub struct Resolved {
    /// The lock as it should be.
    pub lock: Lockfile,
    /// The lock as it was.
    pub previous: Lockfile,
    /// Where the packages are that were asked for in this run, by their place in `lock.packages`.
    pub releases: HashMap<usize, (Route, Release)>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl Resolved {
    /// Whether the lock on disk is already the right one.
    pub fn is_unchanged(&self) -> bool {
        self.lock == self.previous
    }
}

/// Finds the lock that `requirements` need.
///
/// # Errors
///
/// When no versions fit together, when a registry cannot be asked, or when the lock would change and
/// must not.
pub fn resolve(
    session: &Session,
    requirements: &Requirements,
    update: Update,
) -> Result<Resolved, CommandError> {
    let previous = session.lockfile()?;
    if session.options.frozen {
        let lock = previous.ok_or_else(|| {
            CommandError::new(Code::LockOutdated, "there is no Mu.lock to use with --frozen")
                .hint("run `mu get` once without --frozen and commit Mu.lock")
        })?;
        return Ok(Resolved { previous: lock.clone(), lock, ..Resolved::default() });
    }
    resolve_from(session, requirements, update, previous.unwrap_or_default())
}

/// Finds the lock that `requirements` need, as if `previous` were the lock on disk.
///
/// # Errors
///
/// As [`resolve`].
pub fn resolve_from(
    session: &Session,
    requirements: &Requirements,
    update: Update,
    previous: Lockfile,
) -> Result<Resolved, CommandError> {
    let differences = requirements.differences(session, &previous);
    let has_folders = previous.packages.iter().any(|package| package.source.is_folder());
    let is_fine = differences.is_empty() && !has_folders && !has_excluded(session, &previous);
    if is_fine && update == Update::Nothing {
        let lock = Lockfile { extra: requirements.extra.clone(), ..previous.clone() };
        return Ok(Resolved { lock, previous, ..Resolved::default() });
    }
    if session.options.locked && !differences.is_empty() && update == Update::Nothing {
        return Err(outdated(&differences));
    }
    let resolved = choose(session, requirements, previous, update)?;
    if session.options.locked && !resolved.is_unchanged() {
        return Err(outdated(&["newer versions were asked for".to_owned()]));
    }
    Ok(resolved)
}

fn outdated(differences: &[String]) -> CommandError {
    let mut message =
        "Mu.lock does not fit the manifests, and --locked forbids to change it".to_owned();
    for difference in differences.iter().take(5) {
        message.push_str(&format!("\n  {difference}"));
    }
    if differences.len() > 5 {
        message.push_str(&format!("\n  and {} more", differences.len() - 5));
    }
    CommandError::new(Code::LockOutdated, message)
        .hint("run `mu get` without --locked, and commit Mu.lock")
        .with_details(serde_json::json!({ "differences": differences }))
}

/// Whether the settings exclude something that is locked.
fn has_excluded(session: &Session, lock: &Lockfile) -> bool {
    exclusions(session).iter().any(|exclusion| {
        lock.find(&exclusion.id).any(|package| {
            let version = parse_version(package);
            exclusion.spec.as_ref().is_none_or(|spec| {
                version.as_ref().is_some_and(|version| spec.accepts(version, true))
            })
        })
    })
}

/// Asks selection: first with everything that is locked held fast and nothing asked about it, then,
/// if that leads nowhere or more is wanted, with everything free to move.
fn choose(
    session: &Session,
    requirements: &Requirements,
    previous: Lockfile,
    update: Update,
) -> Result<Resolved, CommandError> {
    requirements.declare(session);
    let mut request = request(session, requirements, &previous, update);
    let strategy = strategy(session.resolution())?;
    if request.update == Update::Nothing && !previous.packages.is_empty() {
        let held = LockedUniverse::new(session.index(), &previous);
        if let Ok(selection) = select(session, &*strategy, &held, &mut request) {
            let nothing = Lockfile::default();
            return record(session, requirements, previous, &nothing, &selection);
        }
    }
    let selection = match select(session, &*strategy, session.index(), &mut request) {
        Ok(selection) => selection,
        Err(failure) => {
            let error = failed(session, &request, failure);
            if error.code != Code::Offline {
                return Err(error);
            }
            // Without the network, what is installed for the user is all there is besides the cache.
            let user = Lockfile::read(&session.environment.mu_home)?.unwrap_or_default();
            let held = LockedUniverse::new(session.index(), &user);
            let selection = select(session, &*strategy, &held, &mut request).map_err(|_| error)?;
            return record(session, requirements, previous, &user, &selection);
        }
    };
    let cost = selection.statistics;
    session.events.detail(&format!(
        "chose among {} packages, and looked at what {} versions need",
        cost.packages_read, cost.versions_read
    ));
    record(session, requirements, previous, &Lockfile::default(), &selection)
}

/// Selects, and again where a fetched package turned out to ask for one of the workspace's own.
pub fn select(
    session: &Session,
    strategy: &dyn Strategy,
    universe: &dyn Universe,
    request: &mut Request,
) -> Result<Selection, Failure> {
    loop {
        let result = strategy.select(universe, request);
        let met = session.index().take_met_local();
        let known = request.local.len();
        for id in met {
            let version = session.places.member_of(&id).and_then(|member| member.version.clone());
            request.local.entry(id).or_insert(Local { version });
        }
        if request.local.len() == known {
            return result;
        }
    }
}

fn strategy(resolution: Resolution) -> Result<Box<dyn Strategy>, CommandError> {
    match resolution {
        Resolution::Highest => Ok(Box::new(Highest)),
        Resolution::Minimal => {
            Err(CommandError::new(Code::Usage, "this mu does not know the strategy `minimal` yet")
                .hint("use `resolution: highest`, or leave the setting out"))
        }
    }
}

/// The question to selection.
pub fn request(
    session: &Session,
    requirements: &Requirements,
    previous: &Lockfile,
    update: Update,
) -> Request {
    let settings = &session.workspace.settings;
    let defaults = session.defaults();
    let root = &session.workspace.root;
    let mut local: BTreeMap<PackageId, Local> = requirements.by_folder.clone();
    for asked in &requirements.asked {
        if let Some(member) = session.places.member_of(&asked.requirement.id) {
            local.insert(asked.requirement.id.clone(), Local { version: member.version.clone() });
        }
    }
    let overrides = overrides(session)
        .into_iter()
        .map(|(id, reference)| {
            let instead = session.places.id_of(&reference, &defaults, root, &session.workspace);
            session.index().declare(&instead, &reference, root);
            (id, Override { id: instead, spec: reference.spec() })
        })
        .collect();
    let locked = previous
        .packages
        .iter()
        .filter(|package| !package.source.is_workspace())
        .map(|package| Locked {
            id: package.id.clone(),
            version: parse_version(package),
            commit: package.commit.clone(),
            reference: package.reference.clone(),
            dependencies: package.dependencies.clone(),
        })
        .collect();
    let now = session.environment.now;
    let youngest = settings
        .minimum_release_age
        .filter(|cutoff| *cutoff != Cutoff::Age(0))
        .map(|cutoff| cutoff.moment(now));
    Request {
        roots: requirements.roots(),
        locked,
        update,
        local,
        settings: Settings {
            exclude: exclusions(session),
            overrides,
            majors: match settings.majors {
                crate::workspace::Majors::One => Majors::One,
                crate::workspace::Majors::Many => Majors::Many,
            },
            published_before: session.options.published_before.or(youngest),
            prereleases: session.options.prereleases,
            runtime: settings.runtime.clone(),
            mu_version: Version::parse(env!("CARGO_PKG_VERSION")).ok(),
            base: defaults.base.clone(),
        },
    }
}

fn exclusions(session: &Session) -> Vec<Exclusion> {
    let exclusions = session.workspace.settings.exclude.iter();
    exclusions
        .map(|exclusion| Exclusion { id: exclusion.id.clone(), spec: exclusion.versions.clone() })
        .collect()
}

/// The version of a locked package, as selection compares it.
pub fn parse_version(package: &LockedPackage) -> Option<Version> {
    if package.is_composite {
        Version::parse_composite(&package.version).ok()
    } else {
        Version::parse_lenient(&package.version).ok()
    }
}

/// Turns a selection into a lock, keeping the old entries of what did not move, and taking over those
/// that `other` knows.
fn record(
    session: &Session,
    requirements: &Requirements,
    previous: Lockfile,
    other: &Lockfile,
    selection: &Selection,
) -> Result<Resolved, CommandError> {
    let overrides: HashMap<PackageId, String> =
        overrides(session).into_iter().map(|(id, reference)| (id, reference.to_string())).collect();
    let mut lock = Lockfile {
        resolution: session.resolution().as_str().to_owned(),
        packages: Vec::with_capacity(selection.packages.len()),
        extra: requirements.extra.clone(),
    };
    let mut releases = HashMap::new();
    for chosen in &selection.packages {
        let mut requested: Vec<Requested> = chosen
            .requested
            .iter()
            .map(|demand| Requested { spec: demand.asked.clone(), by: asker(&demand.by) })
            .filter(|requested| requested.by != UPDATE)
            .collect();
        if let Some(text) = overrides.get(&chosen.id) {
            requested.push(Requested { spec: text.clone(), by: OVERRIDES.to_owned() });
        }
        requested.sort_by(|left, right| (&left.by, &left.spec).cmp(&(&right.by, &right.spec)));
        requested.dedup();
        let mut dependencies: Vec<PackageId> =
            selection.dependencies(chosen).map(|dependency| dependency.id.clone()).collect();
        dependencies.dedup();
        let mut known = previous.find(&chosen.id).chain(other.find(&chosen.id));
        let kept = known.find(|package| is_same(package, chosen));
        let mut package = match kept {
            Some(package) => package.clone(),
            None if chosen.is_local() => local_entry(session, requirements, chosen),
            None => {
                let (route, release) = release_of(session, chosen)?;
                let mut package = new_entry(session, chosen, &route, &release)?;
                if package.source.is_folder() {
                    // Taken for unchanged until it is read again.
                    let before = previous.find(&chosen.id).next();
                    package.digest = before.and_then(|before| before.digest);
                }
                releases.insert(lock.packages.len(), (route, release));
                package
            }
        };
        package.reference = chosen.requested.iter().find_map(|demand| demand.reference.clone());
        package.requested = requested;
        package.dependencies = dependencies;
        lock.packages.push(package);
    }
    let warnings = selection.warnings.iter().map(describe).collect();
    Ok(Resolved { lock, previous, releases, warnings })
}

fn asker(by: &Asker) -> String {
    match by {
        Asker::Root(name) => name.clone(),
        Asker::Package(id) => id.to_string(),
    }
}

/// Whether the lock's entry is what was chosen again.
fn is_same(package: &LockedPackage, chosen: &Chosen) -> bool {
    if chosen.is_local() || package.source.is_workspace() {
        return false;
    }
    // A folder's content may have changed under the same version.
    if package.source.is_folder() {
        return false;
    }
    let same_commit = package.commit.as_deref() == chosen.commit.as_deref();
    let version = chosen.version.as_ref();
    same_commit && (version.is_none() || parse_version(package).as_ref() == version)
}

fn local_entry(session: &Session, requirements: &Requirements, chosen: &Chosen) -> LockedPackage {
    let place = requirements
        .local(session, &chosen.id)
        .map(|package| package.place.clone())
        .unwrap_or_default();
    let place = if place.is_empty() { ".".to_owned() } else { place };
    LockedPackage::new(
        chosen.id.clone(),
        version_text(chosen.version.as_ref()),
        Source::new(Source::WORKSPACE, place),
    )
}

fn version_text(version: Option<&Version>) -> String {
    version.map_or_else(|| "0.0.0".to_owned(), ToString::to_string)
}

/// Where what was chosen is.
fn release_of(session: &Session, chosen: &Chosen) -> Result<(Route, Release), CommandError> {
    let candidate = chosen.candidate().expect("what is not the workspace's own is a candidate");
    session.index().release(chosen.source(), candidate).map_err(|error| unavailable(session, error))
}

fn new_entry(
    session: &Session,
    chosen: &Chosen,
    route: &Route,
    release: &Release,
) -> Result<LockedPackage, CommandError> {
    let provider = route.provider.name();
    let place = if provider == "path" {
        let folder = route.location.root.as_url().to_file_path().unwrap_or_default();
        relative(&session.lock_folder(), &folder)
    } else {
        route.location.root.to_string()
    };
    let version = version_text(chosen.version.as_ref());
    let mut package = LockedPackage::new(chosen.id.clone(), version, Source::new(provider, place));
    package.folder = route.location.folder.clone().filter(|folder| !folder.is_empty());
    package.commit = chosen.commit.as_deref().map(str::to_owned);
    package.is_composite = release.versioning.as_deref() == Some("composite");
    package.app_version = release.app_version.clone().filter(|_| !package.is_composite);
    package.url = release.urls.first().cloned();
    let wrong = |what: &str, text: &str| {
        CommandError::new(
            Code::Integrity,
            format!("the index of `{}` says {what} `{text}`, which is none", chosen.id),
        )
    };
    if let Some(text) = &release.digest {
        package.digest = Some(text.parse().map_err(|_| wrong("the digest is", text))?);
    }
    if let Some(text) = &release.archive {
        package.archive = Some(text.parse().map_err(|_| wrong("the archive's digest is", text))?);
    }
    Ok(package)
}

/// `folder` as seen from `from`, with `/` between names.
pub fn relative(from: &std::path::Path, folder: &std::path::Path) -> String {
    let from: Vec<_> = from.components().collect();
    let to: Vec<_> = folder.components().collect();
    let common = from.iter().zip(&to).take_while(|(left, right)| left == right).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - common);
    let down = to[common..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let parts: Vec<String> = up.chain(down).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

fn describe(warning: &Warning) -> String {
    match warning {
        Warning::LocalDoesNotSatisfy { id, version, by, requirement } => {
            let version = version.as_ref().map_or_else(
                || "without a version".to_owned(),
                |version| format!("at version {version}"),
            );
            format!(
                "`{id}` is used from the workspace {version}, though {} asks for {requirement}",
                asker(by)
            )
        }
        Warning::Yanked { id, version, reason } => {
            let version = version_text(version.as_ref());
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            format!("`{id}` {version} was yanked{reason}; it stays because Mu.lock names it")
        }
    }
}

/// The error of a selection that failed.
pub fn failed(session: &Session, request: &Request, failure: Failure) -> CommandError {
    match failure {
        Failure::Unavailable(error) => unavailable(session, error),
        Failure::Conflict(conflict) => {
            let missing = is_missing(&conflict);
            let code = if missing { Code::NotFound } else { Code::NoSolution };
            let headline = match (missing, &conflict.clashes[..]) {
                (true, [clash]) if clash.tried.is_some() => "a package was not found",
                (true, _) => "no version was found that is what was asked for",
                (false, _) => "no versions fit together",
            };
            let text = conflict.to_string();
            let lines: Vec<&str> = text.lines().collect();
            let by: Vec<&str> = request.roots.iter().map(|root| root.by.as_str()).collect();
            let mut error = CommandError::new(code, format!("{headline}\n{}", indent(&lines)))
                .with_details(serde_json::json!({ "explanation": lines, "roots": by }));
            for clash in conflict.clashes.iter().filter(|clash| clash.tried.is_some()) {
                if let Some(member) = session.workspace.member(&clash.id) {
                    error = error.hint(misplaced(&clash.id, &member.place));
                }
            }
            if !missing && session.options.published_before.is_some() {
                error = error.hint("versions newer than --exclude-newer were passed over");
            }
            error
        }
    }
}

/// What to do about a package of the workspace that is not where references to it lead.
fn misplaced(id: &PackageId, place: &str) -> String {
    let here = if place.is_empty() { "." } else { place };
    format!(
        "the package in `{here}` calls itself `{id}`, but packages are found by their place: move it to \
         `{}`, or set `namespace` in `.mu/workspace.yaml`",
        id.name_str()
    )
}

/// Whether the conflict is only that something asked for does not exist.
fn is_missing(conflict: &Conflict) -> bool {
    !conflict.clashes.is_empty()
        && conflict.clashes.iter().all(|clash| {
            clash.tried.is_some() || (clash.asked.len() == 1 && clash.rejected.is_empty())
        })
}

fn indent(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// The error of something that could not be found out.
pub fn unavailable(session: &Session, error: Unavailable) -> CommandError {
    let provider = crate::index::provider_error(&error);
    let (code, mut hints) = match provider {
        Some(provider) => {
            let converted = crate::ops::error::code_of(provider.kind());
            (converted, provider.hints().to_vec())
        }
        None => (Code::Manifest, Vec::new()),
    };
    if code == Code::Network && !session.options.offline {
        hints.push("`--offline` uses only what is already on this machine".to_owned());
    }
    let mut command = CommandError::from_error(code, error);
    command.hints = hints;
    command
}

/// The references of `extra` without those that ask for `id`.
pub fn without(session: &Session, extra: &[String], id: &PackageId) -> Vec<String> {
    let defaults = session.defaults();
    extra
        .iter()
        .filter(|text| {
            crate::reference::Reference::parse(text).map_or(true, |reference| {
                session.places.id_of(
                    &reference,
                    &defaults,
                    &session.lock_folder(),
                    &session.workspace,
                ) != *id
            })
        })
        .cloned()
        .collect()
}
