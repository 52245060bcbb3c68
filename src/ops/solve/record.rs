//! Turns a selection into a lock: old entries for what did not move, new ones for what did.
//!
//! [`Resolved`] is the result of resolving: a lock, and what is known about its new entries. Nothing is chosen or
//! written to disk here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mu_provider::threads::at_once;
use mu_provider::{DigestError, ErrorKind, PlaceKind, ProviderError, Release, secrets_in};
use rustc_hash::FxHashMap;

use crate::index::releases::Position;
use crate::index::{Candidate, Requirement, Route, moved_to};
use crate::lock::{LockedPackage, Lockfile, ReplacedPackage, Requested, Source};
use crate::manifest::edit::Section;
use crate::ops::explain::unavailable_error;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, Requirements, is_overridden_alike};
use crate::ops::session::installed::PacksHere;
use crate::ops::session::source::source_beside;
use crate::ops::solve::copies::{called_otherwise, copy_warnings, is_copy, is_replaceable, moved};
use crate::ops::solve::trusted;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{
    Chosen, Demand, Demanded, Replaced, RootOrPackage, Selection, SelectionWarning, Update,
};

/// Turns a selection into a lock. It keeps the old entries of packages that did not move, and uses entries of
/// `other`. `update` says which versions may move. `None` if a version turned out to differ from its listing, or if a rule does not
/// accept it: then versions must be chosen again.
pub(crate) fn lock_from_selection(
    session: &Session,
    requirements: &Requirements,
    previous: Arc<Lockfile>,
    other: &Lockfile,
    selection: &Selection,
    update: &Update,
) -> Result<Option<Resolved>, CommandError> {
    let moves = *update != Update::Nothing;
    let overrides = &session.workspace.settings.overrides;
    // The packages are in the order of the selection, and stay so: `releases`, `copies` and `add_manifests` go by the
    // place.
    let mut lock = Lockfile {
        resolution: requirements.resolution.as_str().to_owned(),
        packages: Vec::with_capacity(selection.packages.len()),
        replaced: replaced(&previous, selection),
        extra: requirements.extra.clone(),
        doubled: Vec::new(),
        is_merge: false,
    };
    let mut releases = FxHashMap::default();
    let kept = |chosen: &Chosen| {
        let mut known = previous.find(&chosen.id).chain(other.find(&chosen.id));
        known.find(|package| {
            // What a pack of this machine contains, and whether a registry has the package now, was just
            // looked up.
            let is_asked =
                moves && package.source.is_pack() && session.index().has_answered(chosen.source());
            let stays = is_same(package, chosen) || is_copy(session.index(), package, chosen);
            !is_asked && stays && is_overridden_alike(session, package)
        })
    };
    // An entry that is kept costs no request, and says of the content what it said when it was fetched.
    let mut kept: Vec<Option<&LockedPackage>> = selection.packages.iter().map(kept).collect();
    // What a version that stays is like was said when it came.
    let stays = |id: &PackageId| {
        let mut all = selection.packages.iter().zip(&kept).filter(|(chosen, _)| chosen.id == *id);
        !moves && all.all(|(_, kept)| kept.is_some())
    };
    let is_said = |warning: &&SelectionWarning| match warning {
        SelectionWarning::Deprecated { id, .. } => !stays(id),
        _ => true,
    };
    let said = selection.warnings.iter().filter(is_said);
    let mut warnings: Vec<Warning> =
        said.map(|warning| of_selection(requirements, warning.clone())).collect();
    // Who names a package to update wants what its place has now, also under the version that is locked.
    let may_renew = |chosen: &Chosen, kept: Option<&LockedPackage>| {
        let is_named = matches!(update, Update::Packages(ids) if ids.contains(&chosen.id));
        is_named
            && !session.options.offline
            && kept.is_some_and(|kept| is_replaceable(session.index(), kept))
    };
    let asked = selection.packages.iter().zip(&kept);
    let asked = asked.filter(|(chosen, kept)| kept.is_none() || may_renew(chosen, **kept));
    let lines = asked.filter_map(|(chosen, _)| match chosen.as_candidate()? {
        Candidate::Release(position) => Some((chosen.source().clone(), position)),
        Candidate::Revision(_) => None,
    });
    let lines: Vec<(PackageId, Position)> = lines.collect();
    // Before the first entry is made: a listing that is only a hint may be wrong about what was chosen, and then
    // nothing of this selection counts.
    if !confirm(session, &lines)? {
        return Ok(None);
    }
    for (chosen, kept) in selection.packages.iter().zip(&mut kept) {
        let is_renewed = may_renew(chosen, *kept)
            && kept.is_some_and(|kept| has_other_archive(session, chosen, kept));
        if is_renewed {
            *kept = None;
        }
    }
    // A locked version that stays is asked about before it is installed, and never moves because of that.
    let is_new = |at: usize, chosen: &Chosen| kept[at].is_none() || update.moves(&chosen.id);
    let accepted = trusted::accept(session, selection, &previous, &is_new)?;
    let Some(mut signers) = accepted else { return Ok(None) };
    warnings.extend(trusted::passed_over_versions(session, selection));
    for (chosen, kept) in selection.packages.iter().zip(kept) {
        let accepted = signers.remove(&lock.packages.len()).unwrap_or_default();
        warnings.extend(accepted.objections.into_iter().map(Warning::Objection));
        let mut package = match kept {
            Some(package) => package.clone(),
            None if chosen.is_local() => local_entry(session, requirements, chosen),
            None => {
                let candidate = chosen.as_candidate();
                let candidate = candidate.expect("what is not the workspace's own is a candidate");
                let found = session.index().release(chosen.source(), candidate);
                let (route, release) = found.map_err(|error| unavailable_error(session, error))?;
                let mut package = new_entry(session, requirements, chosen, (&route, &release))?;
                if package.source.is_outside_folder() {
                    // The package counts as unchanged until it is read again.
                    let before = previous.find(&chosen.id).next();
                    package.digest = before.and_then(|before| before.digest);
                }
                if package.source.is_placed_pack() {
                    let (id, version) = (package.id.clone(), package.version.clone());
                    let place = package.source.place.clone();
                    warnings.push(Warning::PlacedPack { id, version, place });
                }
                warnings.extend(called_otherwise(&package, &release));
                if let Some(to) = moved_to(&chosen.id, &release) {
                    warnings.push(moved(chosen, to));
                }
                releases.insert(lock.packages.len(), (route, release));
                package
            }
        };
        // If only the lock was asked, it knows nothing more about it.
        if chosen.channel.is_some() {
            package.channel = chosen.channel.clone();
        }
        package.reference =
            chosen.requested.iter().find_map(Demand::reference).map(ToOwned::to_owned);
        if !chosen.is_local() {
            package.facts = chosen.facts.clone();
        }
        // What was signed by nobody whom a rule names keeps what its entry says.
        if !accepted.signed_by.is_empty() {
            package.signed_by = accepted.signed_by;
        }
        // Who requires it is new in every lock, also for entries that are kept.
        package.requested = requests(&chosen.requested, overrides.get(&chosen.id));
        package.dependencies = dependencies(session, requirements, selection, chosen);
        lock.packages.push(package);
    }
    note_beside(&mut lock);
    warnings.extend(copy_warnings(session, &previous, &lock, selection));
    let ways = selection.packages.iter().filter(|chosen| !chosen.way.is_empty());
    let ways = ways
        .map(|chosen| (chosen.id.clone(), chosen.way.iter().map(ToString::to_string).collect()))
        .collect();
    // A lock that stays must stay byte for byte, so nothing is added to it.
    if lock != *previous {
        add_manifests(session, selection, &mut lock);
    }
    let left_out = BTreeSet::new();
    Ok(Some(Resolved { lock: lock.into(), previous, releases, left_out, warnings, ways }))
}

/// Has the versions with one major of a package name each other.
fn note_beside(lock: &mut Lockfile) {
    // They come sorted by id, and in most locks each is there once.
    let is_once = lock.packages.windows(2).all(|pair| pair[0].id != pair[1].id);
    if is_once {
        lock.packages.iter_mut().for_each(|package| package.beside.clear());
        return;
    }
    // `beside` is for several versions of one major, as a chart has under two aliases. Two majors need no such note.
    let key = |package: &LockedPackage| (package.id.clone(), package.locked_major());
    let mut versions: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for package in &lock.packages {
        versions.entry(key(package)).or_default().push(package.version.clone());
    }
    versions.retain(|_, versions| versions.len() > 1);
    for package in &mut lock.packages {
        let beside = versions.get(&key(package)).into_iter().flatten();
        package.beside = beside.filter(|other| **other != package.version).cloned().collect();
        package.beside.sort();
    }
}

/// Adds the digests of manifests to entries of an older mu, as far as this run has read them anyway.
fn add_manifests(session: &Session, selection: &Selection, lock: &mut Lockfile) {
    for (package, chosen) in lock.packages.iter_mut().zip(&selection.packages) {
        let (None, Some(archive)) = (package.manifest, package.archive) else { continue };
        let provider = session.index().providers().get(&package.source.provider);
        if !provider.is_ok_and(|provider| provider.facts().kind == PlaceKind::OciRegistry) {
            continue;
        }
        let Some(candidate) = chosen.as_candidate() else { continue };
        if !session.index().has_answered(chosen.source()) {
            continue;
        }
        // Remembered, so this asks nobody.
        let Ok((_, release)) = session.index().release(chosen.source(), candidate) else {
            continue;
        };
        let Some(manifest) = &release.manifest else { continue };
        // A tag may have been moved since. Only the manifest of the locked archive belongs here.
        let is_it = release.archive.as_ref().and_then(|text| text.parse().ok()) == Some(archive);
        package.manifest = if is_it { manifest.parse().ok() } else { None };
    }
}

/// Asks the places themselves about versions whose listings are only hints or leave out digests, all at once. Returns whether each
/// version is what it was chosen as.
fn confirm(session: &Session, chosen: &[(PackageId, Position)]) -> Result<bool, CommandError> {
    let is_told = AtomicBool::new(true);
    let index = session.index();
    let hints = index.unconfirmed(chosen);
    // A package is listed again by one small request; what a registry is asked otherwise may be more than it likes at once.
    let are_lists = hints.iter().all(|(id, position)| index.leaves_out_digests(id, *position));
    let jobs = if are_lists { session.listing_jobs() } else { session.network_jobs() };
    at_once(jobs, &hints, |(id, position)| {
        let confirmed = index.confirm(id, *position);
        let confirmed = confirmed.map_err(|error| unavailable_error(session, error))?;
        // All are asked, also after one was wrong, so that the next selection knows all of it.
        is_told.fetch_and(confirmed, Ordering::Relaxed);
        Ok::<(), CommandError>(())
    })?;
    Ok(is_told.into_inner())
}

/// Updates the requirements in a lock from `before` to `after`: the same packages, required with other words.
/// A frozen lock does not change.
pub(crate) fn restate_lock(
    session: &Session,
    resolved: &mut Resolved,
    before: &Requirements,
    after: &Requirements,
) {
    if session.options.frozen {
        return;
    }
    let lock = Arc::make_mut(&mut resolved.lock);
    // First what is no longer said goes, then what is new comes: the same words may be in both, from different lines.
    for old in before.asked.iter().filter(|old| !after.asked.contains(old)) {
        let (id, requested) = (&old.requirement.id, old.requested());
        // Another line may require the same, in the same words.
        let is_same = |new: &Asked| new.requirement.id == *id && new.requested() == requested;
        if after.asked.iter().any(is_same) {
            continue;
        }
        for package in lock.packages.iter_mut().filter(|package| package.id == *id) {
            package.requested.retain(|one| *one != requested);
        }
        for replaced in lock.replaced.iter_mut().filter(|replaced| replaced.id == *id) {
            replaced.requested.retain(|one| *one != requested);
        }
    }
    for new in after.asked.iter().filter(|new| !before.asked.contains(new)) {
        let id = &new.requirement.id;
        // Of several majors the highest, as the commands that write requirements do.
        let package = lock.packages.iter_mut().rev().find(|package| package.id == *id);
        let requested = package.map(|package| &mut package.requested).or_else(|| {
            let replaced = lock.replaced.iter_mut().find(|replaced| replaced.id == *id);
            replaced.map(|replaced| &mut replaced.requested)
        });
        if let Some(requested) = requested {
            requested.push(new.requested());
            in_order(requested);
        }
    }
}

/// Warnings, repeated at every run, about the workspace's packages that do not satisfy the requirements in a
/// lock.
pub(crate) fn unsatisfied(
    session: &Session,
    requirements: &Requirements,
    lock: &Lockfile,
) -> Vec<Warning> {
    let own = lock.packages.iter().filter(|package| package.source.is_workspace_folder());
    let warnings = own.flat_map(|package| {
        let local = requirements.local_package(session, &package.id);
        let version = local.and_then(|local| local.version.clone());
        let asked = package.requested.iter().filter(|requested| !Requester::is_override(requested));
        asked.filter_map(move |requested| {
            let spec = VersionSpec::parse(&requested.spec).ok()?;
            let is_fine = matches!(spec, VersionSpec::Latest | VersionSpec::Tip)
                || version.as_ref().is_some_and(|version| spec.accepts(version, true));
            let warning = SelectionWarning::LocalDoesNotSatisfy {
                id: package.id.clone(),
                version: version.clone(),
                by: RootOrPackage::Root(requested.by.to_string()),
                requirement: Requirement::new(package.id.clone(), spec),
            };
            (!is_fine).then(|| of_selection(requirements, warning))
        })
    });
    warnings.collect()
}

/// The requirers of a package and their requirements; `overridden` is the override in the settings.
fn requests(demands: &[Demand], overridden: Option<&Reference>) -> Vec<Requested> {
    let requested = demands.iter().map(requested);
    let mut requested: Vec<Requested> =
        requested.filter(|one| !Requester::is_called_as_move(&one.by)).collect();
    requested.extend(overridden.map(|reference| {
        let (spec, by) = (reference.as_str().into(), Requester::Override.as_str().into());
        Requested { spec, by }
    }));
    in_order(&mut requested);
    requested
}

fn in_order(requested: &mut Vec<Requested>) {
    requested.sort_by(|left, right| (&left.by, &left.spec).cmp(&(&right.by, &right.spec)));
    requested.dedup();
}

/// The dependencies of a chosen package, by the names that it uses.
fn dependencies(
    session: &Session,
    requirements: &Requirements,
    selection: &Selection,
    chosen: &Chosen,
) -> Vec<PackageId> {
    let mut dependencies = selected_dependencies(selection, chosen);
    if chosen.is_local() {
        let is_there = |id: &PackageId| selection.find(id).is_some();
        dependencies.extend(needs(session, requirements, &chosen.id).filter(is_there));
    }
    dependencies.sort();
    dependencies.dedup();
    dependencies
}

/// The dependencies of a chosen package as far as the selection knows: a replacement may have another name.
fn selected_dependencies(selection: &Selection, chosen: &Chosen) -> Vec<PackageId> {
    let by = RootOrPackage::Package(chosen.id.clone());
    let asks = |requested: &[Demand]| requested.iter().any(|demand| demand.by == by);
    let replaced: Vec<&Replaced> =
        selection.replaced.iter().filter(|replaced| asks(&replaced.requested)).collect();
    // `app` requires `a`, which `b` replaces: the lock lists `a`. It lists `b` as well only if `app` also requires `b`
    // by its own name.
    let is_meant = |dependency: &&Chosen| {
        !replaced.iter().any(|one| one.by == dependency.id) || asks(&dependency.requested)
    };
    let own = selection.dependencies(chosen).filter(is_meant);
    let mut all: Vec<PackageId> = own.map(|dependency| dependency.id.clone()).collect();
    all.extend(replaced.iter().map(|replaced| replaced.id.clone()));
    all
}

/// The replaced packages, with their earlier locked versions.
fn replaced(previous: &Lockfile, selection: &Selection) -> Vec<ReplacedPackage> {
    let replaced = selection.replaced.iter().map(|replaced| {
        let Replaced { id, by, requested } = replaced;
        let requested = requests(requested, None);
        // The version that was in use is kept, so that the package comes back in it when its replacement goes.
        let active = previous.find(id).last().filter(|package| package.digest.is_some());
        let kept = active.map(|package| {
            let requested = Vec::new();
            Box::new(LockedPackage { requested, ..package.clone() })
        });
        let before = || previous.replacement(id).and_then(|before| before.kept.clone());
        let (id, by) = (id.clone(), by.clone());
        ReplacedPackage { id, by, requested, kept: kept.or_else(before) }
    });
    replaced.collect()
}

/// The dependencies of a package of the workspace, from its manifest.
fn needs(
    session: &Session,
    requirements: &Requirements,
    id: &PackageId,
) -> impl Iterator<Item = PackageId> {
    let member = session.workspace.members.iter().position(|member| member.id == *id);
    let line = member.map(|member| (member, Section::Dependencies));
    let needs = requirements.asked.iter().filter(move |asked| line.is_some() && asked.line == line);
    needs.map(|asked| asked.requirement.id.clone())
}

fn requested(demand: &Demand) -> Requested {
    let by = match &demand.by {
        RootOrPackage::Root(name) => name.as_str().into(),
        RootOrPackage::Package(id) => id.into(),
    };
    match &demand.what {
        Demanded::Version { spec, .. } => Requested { spec: Arc::clone(spec), by },
        Demanded::Capability(capability) => Requested::for_capability(capability, by),
    }
}

/// Whether the lock's entry matches the new choice.
fn is_same(package: &LockedPackage, chosen: &Chosen) -> bool {
    if chosen.is_local() || package.source.is_workspace_folder() {
        return false;
    }
    // A folder's content may have changed under the same version.
    if package.source.is_outside_folder() {
        return false;
    }
    let same_commit = package.revision().as_deref() == chosen.commit.as_deref();
    let version = chosen.version.as_ref();
    same_commit && (version.is_none() || package.parsed_version().as_ref() == version)
}

/// Whether the place of a chosen package has another archive than the locked one; asks nobody.
fn has_other_archive(session: &Session, chosen: &Chosen, locked: &LockedPackage) -> bool {
    let Some(candidate) = chosen.as_candidate() else { return false };
    if !session.index().has_answered(chosen.source()) {
        return false;
    }
    let Ok((_, release)) = session.index().release(chosen.source(), candidate) else {
        return false;
    };
    let now = release.archive.as_ref().and_then(|text| text.parse().ok());
    now.is_some() && now != locked.archive
}

fn local_entry(session: &Session, requirements: &Requirements, chosen: &Chosen) -> LockedPackage {
    let place = requirements
        .local_package(session, &chosen.id)
        // A package that provides a capability is used wherever it is.
        .or_else(|| session.places.member_called(&chosen.id, &session.workspace))
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
    version.map_or_else(|| LockedPackage::NO_VERSION.to_owned(), ToString::to_string)
}

fn new_entry(
    session: &Session,
    requirements: &Requirements,
    chosen: &Chosen,
    (route, release): (&Route, &Release),
) -> Result<LockedPackage, CommandError> {
    let version = version_text(chosen.version.as_ref());
    let is_pack = session.index().has_pack_versions(chosen.source());
    let pack =
        is_pack.then(|| PacksHere::new(session).pack_source(chosen.source(), &version)).flatten();
    let source = pack.unwrap_or_else(|| source_beside(session, &requirements.changed, route));
    let mut package = LockedPackage::new(chosen.id.clone(), version, source);
    package.from = (chosen.source() != &chosen.id).then(|| chosen.source().clone());
    package.folder = route.location.folder.clone().filter(|folder| !folder.is_empty());
    // What is no commit is the digest of an artifact or an archive.
    package.commit = chosen.commit.as_deref().and_then(|revision| revision.parse().ok());
    // The archive by URL is its own revision, and a pinned digest is what was asked for.
    let is_pinned =
        || chosen.requested.iter().find_map(Demand::reference) == chosen.commit.as_deref();
    if let (Some(revision), None, false) =
        (&chosen.commit, &package.commit, package.source.is_url_archive() || is_pinned())
    {
        package.artifact = revision.parse().ok();
    }
    package.is_composite = chosen.version.as_ref().is_some_and(|version| version.app().is_some());
    package.app_version = release.app_version.clone().filter(|_| !package.is_composite);
    // The lock is shared, so URLs with possible secrets stay out of it. The index has them, if they are
    // useful.
    let is_fine = |url: &&String| !url.contains('@') || secrets_in(url).is_empty();
    package.channel = chosen.channel.clone();
    package.url = release.urls.first().filter(is_fine).cloned();
    package.locator.clone_from(&release.locator);
    let wrong = |what: &str, error: DigestError| {
        let (id, version) = (&chosen.id, version_text(chosen.version.as_ref()));
        let text = format!("the index of `{id}` has {what} of {version} that cannot be read");
        CommandError::from_error(
            Code::Integrity,
            ProviderError::new(ErrorKind::Integrity, text).because(error),
        )
    };
    if let Some(text) = &release.digest {
        package.digest = Some(text.parse().map_err(|error| wrong("a digest", error))?);
    }
    if let Some(text) = &release.archive {
        package.archive = Some(text.parse().map_err(|error| wrong("an archive's digest", error))?);
    }
    if let Some(text) = &release.manifest {
        package.manifest = Some(text.parse().map_err(|error| wrong("a manifest's digest", error))?);
    }
    Ok(package)
}

/// What selection warns of, with who requires exactly a version that was yanked.
fn of_selection(requirements: &Requirements, warning: SelectionWarning) -> Warning {
    let mut pinned_by = None;
    if let SelectionWarning::Yanked { id, version: Some(version), .. } = &warning {
        let mut asked = requirements.asked.iter().filter(|asked| asked.requirement.id == *id);
        let pin = asked.find(|asked| {
            let spec = &asked.requirement.spec;
            matches!(spec, VersionSpec::Pin(_)) && spec.has_lower_bound_at(version)
        });
        pinned_by = pin.map(|pin| pin.by.to_string());
    }
    Warning::Selection { warning, pinned_by }
}

/// A lock that fits the requirements, and how to fetch its new packages.
#[derive(Debug, Default)]
pub struct Resolved {
    /// The lock as it should be.
    pub lock: Arc<Lockfile>,
    /// The previous lock.
    pub previous: Arc<Lockfile>,
    /// The routes of the packages that were looked up in this run, by their place in `lock.packages`.
    pub releases: FxHashMap<usize, (Arc<Route>, Arc<Release>)>,
    /// The packages that are locked and not installed, by their place in `lock.packages`.
    pub left_out: BTreeSet<usize>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
    /// The versions that packages move through, step by step.
    pub ways: BTreeMap<PackageId, Vec<String>>,
}

impl Resolved {
    /// The lock as it is.
    pub fn keeping_lock(lock: Arc<Lockfile>) -> Self {
        Self { previous: Arc::clone(&lock), lock, ..Self::default() }
    }

    /// Whether the lock on disk is already the right one.
    pub fn is_lock_current(&self) -> bool {
        self.lock == self.previous || self.lock.is_empty() && self.previous.is_empty()
    }

    /// What was built of a package stays known as long as its content stays.
    pub(super) fn keep_built(&mut self) {
        let is_built = |package: &LockedPackage| package.built.is_some();
        if !self.previous.packages.iter().any(is_built) {
            return;
        }
        for package in &mut Arc::make_mut(&mut self.lock).packages {
            let mut before = self.previous.find(&package.id);
            let is_it = |before: &&LockedPackage| {
                let is_same = package.digest.is_none() || before.digest == package.digest;
                let is_same = is_same && before.patch == package.patch;
                before.version == package.version
                    && before.revision() == package.revision()
                    && is_same
            };
            package.built = before.find(is_it).and_then(|before| before.built);
        }
    }
}
