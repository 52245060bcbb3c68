//! What a lock has and cannot keep: because the settings, the runtime or the workspace's own packages have
//! changed, or because a merge joined what does not belong together. Which requirements it lacks is not here.
//!
//! Among these are capabilities that the settings say there are. A lock has what packages declare themselves. What the settings add is applied whenever versions are chosen.
//!
//! And what requirements need of the lock: that there is one. [`LockDifference`] has all differences, those that `mod.rs` and
//! `ops::solve` find, too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use crate::index::releases::Details;
use crate::lock::{LockedPackage, Lockfile, ReplacedPackage, Requested};
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Protocol, Version};
use crate::select::{Local, OwnCapabilities, Rejection, incompatibilities};
use crate::workspace::Majors;

/// Something because of which a lock is not up to date.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is")]
pub enum LockDifference {
    #[error("{} {}requires {}{}", .requested.by, no_longer(.is_new), of_what(.id.as_ref()), .requested.spec)]
    Requirement { id: Option<PackageId>, requested: Requested, is_new: bool },
    #[error("the lock was written with the strategy `{locked}`, but `{now}` is in use now")]
    Strategy { locked: String, now: &'static str },
    #[error("it has both sides of a merge in it")]
    Merge,
    #[error("the entry of {0} is in the lock twice")]
    Doubled(PackageId),
    #[error("{id} is locked in {} and in {}", .versions[0], .versions[1])]
    Twice { id: PackageId, versions: [String; 2] },
    #[error("{0} is now in the workspace")]
    InWorkspace(PackageId),
    #[error("{0} is no longer in the workspace")]
    NotInWorkspace(PackageId),
    #[error("{id} {version} {}", .why.of_one())]
    Unusable { id: PackageId, version: String, why: Rejection },
    #[error("{by} uses the {id} that it carries inside now")]
    Bundled { by: PackageId, id: PackageId },
    #[error("`aliases` in the settings make {id} the package {counted}")]
    Aliased { id: PackageId, counted: PackageId },
    #[error("{by} no longer replaces {id}")]
    NotReplaced { id: PackageId, by: PackageId },
    #[error("{by} of the workspace replaces {id}")]
    ReplacedByOwn { id: PackageId, by: PackageId },
    #[error("{by} may replace {id} now")]
    Replaceable { id: PackageId, by: PackageId },
    // Both by their ids, locked ones with their versions, or what is meant in the workspace.
    #[error("{by} conflicts with {with}")]
    Opposed { by: String, with: String },
    #[error("{} provide {capability} now", .by.join(" and "))]
    ProvidedTwice { capability: String, by: Vec<String> },
    #[error("{id} requires {capability}, which nothing provides")]
    Unprovided { capability: String, id: PackageId },
    #[error("the runtime provides {0} now")]
    InRuntime(String),
    #[error("the settings patch {0}, and Mu.lock does not have that")]
    PatchNotLocked(PackageId),
    #[error("Mu.lock has a patch of {0}, and the settings do not")]
    PatchNotSet(PackageId),
    #[error("the patch of {0} has changed")]
    PatchChanged(PackageId),
    #[error("{id} is {} now", of_kind(.is_folder))]
    OtherPlace { id: PackageId, is_folder: bool },
    #[error("{}", of_move(.id, .from.as_deref(), .to.as_deref()))]
    Moved { id: PackageId, from: Option<String>, to: Option<String> },
    #[error("newer versions were requested")]
    NewerRequested,
}

fn no_longer(is_new: &bool) -> &'static str {
    if *is_new { "" } else { "no longer " }
}

fn of_kind(is_folder: &bool) -> &'static str {
    if *is_folder { "required as a folder" } else { "no longer required as a folder" }
}

fn of_move(id: &PackageId, from: Option<&str>, to: Option<&str>) -> String {
    match (from, to) {
        (Some(from), Some(to)) => format!("{id} would be {to} instead of {from}"),
        (None, Some(to)) => format!("{id} {to} would be added"),
        (from, None) => format!("{id} {} would not be in use any more", from.unwrap_or_default()),
    }
}

/// The versions that are in only one of two locks.
pub(crate) fn moved(before: &Lockfile, after: &Lockfile) -> Vec<LockDifference> {
    let versions = |lock: &Lockfile| {
        let mut versions: BTreeMap<PackageId, BTreeSet<String>> = BTreeMap::new();
        for package in &lock.packages {
            versions.entry(package.id.clone()).or_default().insert(package.version.clone());
        }
        versions
    };
    let (before, after) = (versions(before), versions(after));
    let ids: BTreeSet<&PackageId> = before.keys().chain(after.keys()).collect();
    let differing = ids.into_iter().filter(|id| before.get(id) != after.get(id));
    let listed = |versions: Option<&BTreeSet<String>>| {
        versions.map(|versions| versions.iter().cloned().collect::<Vec<_>>().join(" and "))
    };
    let differences = differing.map(|id| {
        let [from, to] = [&before, &after].map(|lock| listed(lock.get(id)));
        LockDifference::Moved { id: id.clone(), from, to }
    });
    differences.collect()
}

/// The package that is required, before its versions; without one, what is required is a capability.
fn of_what(id: Option<&PackageId>) -> String {
    id.map_or_else(|| "the ".to_owned(), |id| format!("{id} "))
}

impl Serialize for LockDifference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What is locked as required by a chart that uses its own copy of it.
pub(super) fn bundled(session: &Session, lock: &Lockfile) -> Vec<LockDifference> {
    let settings = &session.workspace.settings.bundled;
    let locked = lock.packages.iter().filter(|_| !settings.is_empty());
    let pairs = locked.flat_map(|package| package.dependencies.iter().map(|id| (&package.id, id)));
    let is_own = |(by, id): &(&PackageId, &PackageId)| {
        settings.iter().any(|one| one.by == **by && one.id.as_ref().is_none_or(|only| only == *id))
    };
    pairs
        .filter(is_own)
        .map(|(by, id)| LockDifference::Bundled { by: by.clone(), id: id.clone() })
        .collect()
}

/// What is locked as a folder and now required from a repository at the same path, or the other way round: both have one id, and are
/// not the same. Where requirers say different things, either is right.
pub(super) fn otherwise_placed(
    session: &Session,
    asked: &[Asked],
    lock: &Lockfile,
) -> Vec<LockDifference> {
    let is_folder = |asked: &Asked| asked.reference.local().is_some();
    let is_file = |asked: &Asked| asked.reference.protocol().is_some_and(Protocol::is_file);
    let mut places: BTreeMap<&PackageId, BTreeSet<bool>> = BTreeMap::new();
    for asked in asked.iter().filter(|asked| is_folder(asked) || is_file(asked)) {
        places.entry(&asked.requirement.id).or_default().insert(is_folder(asked));
    }
    let differs = |(id, said): (&PackageId, BTreeSet<bool>)| {
        let is_folder = said.contains(&true);
        let is_own = session.workspace.settings.overrides.contains_key(id) || session.is_edited(id);
        let is_other = |package: &LockedPackage| {
            if is_folder {
                !package.source.is_authored_folder()
            } else {
                package.source.is_outside_folder()
            }
        };
        let is_there = said.len() > 1 || is_own || !lock.find(id).any(is_other);
        (!is_there).then(|| LockDifference::OtherPlace { id: id.clone(), is_folder })
    };
    places.into_iter().filter_map(differs).collect()
}

/// The packages that are locked under an id that means another one now.
pub(super) fn aliased(session: &Session, lock: &Lockfile) -> Vec<LockDifference> {
    let aliases = &session.workspace.settings.aliases;
    let locked = lock.packages.iter().filter(|_| !aliases.is_empty()).map(|package| &package.id);
    // An alias was added since: what is locked under the old id would be a second copy of the package.
    let counted = locked.map(|id| (id, aliases.counted(id.clone())));
    counted
        .filter(|(id, counted)| *id != counted)
        .map(|(id, counted)| LockDifference::Aliased { id: id.clone(), counted })
        .collect()
}

/// The locked versions that cannot be used in this runtime, or by this mu (or the supposed one), as far as the
/// lock knows what they need.
pub(super) fn unusable(
    runtime: &BTreeMap<String, String>,
    mu_version: Option<&Version>,
    lock: &Lockfile,
) -> Vec<LockDifference> {
    let is_demanding = |package: &&LockedPackage| {
        package.facts.mu_version.is_some()
            || !(runtime.is_empty() || package.facts.constraints.is_empty())
    };
    let mu = mu_version.cloned().or_else(|| Version::parse(env!("CARGO_PKG_VERSION")).ok());
    let reasons = lock.packages.iter().filter(is_demanding).flat_map(|package| {
        let details = Details::from(package.facts.clone());
        let reasons: Vec<_> = incompatibilities(&details, runtime, mu.as_ref()).collect();
        reasons.into_iter().map(move |why| {
            let (id, version) = (package.id.clone(), package.version.clone());
            LockDifference::Unusable { id, version, why }
        })
    });
    reasons.collect()
}

/// What the lock has more than once: entries that a merge has doubled, and majors of which the settings allow one, and
/// no chart lists several `apart`.
pub(super) fn repeated(
    session: &Session,
    lock: &Lockfile,
    apart: &dyn Fn() -> BTreeSet<PackageId>,
) -> Vec<LockDifference> {
    let doubled = lock.doubled.iter().cloned().map(LockDifference::Doubled);
    let is_single = session.workspace.settings.majors == Majors::One;
    // Packages are sorted by id, so two versions of one are neighbours. Those that belong together name each other
    // (`beside`).
    let twice = lock.packages.windows(2).filter_map(|two| match two {
        [one, other] if is_single && one.id == other.id && !one.beside.contains(&other.version) => {
            Some((one, other))
        }
        _ => None,
    });
    let mut twice: Vec<_> = twice.collect();
    if !twice.is_empty() {
        let apart = apart();
        twice.retain(|(one, _)| !apart.contains(&one.id));
    }
    let several = twice.into_iter().map(|(one, other)| {
        let versions = [one, other].map(|package| package.version.clone());
        LockDifference::Twice { id: one.id.clone(), versions }
    });
    let merge = lock.is_merge.then_some(LockDifference::Merge);
    merge.into_iter().chain(doubled).chain(several).collect()
}

/// The differences between the allowed replacements and those in `lock`.
pub(super) fn replacements(
    session: &Session,
    own: &BTreeMap<PackageId, (PackageId, Local)>,
    lock: &Lockfile,
) -> Vec<LockDifference> {
    let settings = &session.workspace.settings;
    let mut differences = Vec::new();
    let pair = |id: &PackageId, by: &PackageId| (id.clone(), by.clone());
    // First the replacements in the lock that do not hold any more, then those of the workspace that it lacks, and at
    // last locked packages that others in the lock may now replace.
    for ReplacedPackage { id, by, .. } in &lock.replaced {
        let is_own = lock.find(by).any(|package| package.source.is_workspace_folder());
        let is_refused = settings.allow_replaces.get(id).is_some_and(|only| only != by)
            || settings.overrides.contains_key(id)
            || session.places.member_of(id).is_some()
            || lock.find(by).all(|by| !is_own && !by.facts.replaces.contains(id))
                && !settings.lets_replace(by, id);
        if is_refused || (is_own && !own.contains_key(id)) {
            let (id, by) = pair(id, by);
            differences.push(LockDifference::NotReplaced { id, by });
        }
    }
    for (id, (by, _)) in own {
        let other = lock.replacement(id).is_some_and(|replaced| replaced.by != *by);
        if other || lock.find(id).next().is_some() {
            let (id, by) = pair(id, by);
            differences.push(LockDifference::ReplacedByOwn { id, by });
        }
    }
    for by in &lock.packages {
        let stated = settings.stated_replaces.get(&by.id).into_iter().flatten();
        for id in by.facts.replaces.iter().chain(stated) {
            let may = settings.allow_replaces.get(id) == Some(&by.id)
                || settings.lets_replace(&by.id, id);
            if may && lock.find(id).next().is_some() {
                let (id, by) = pair(id, &by.id);
                differences.push(LockDifference::Replaceable { id, by });
            }
        }
    }
    differences
}

/// The packages that must not be used together: what the workspace's or the locked packages conflict with.
pub(super) fn opposed(
    session: &Session,
    own: &OwnCapabilities,
    lock: &Lockfile,
) -> Vec<LockDifference> {
    let stated = &session.workspace.settings.provided;
    let is_called = |package: &LockedPackage, name: &String| {
        let stated = stated.get(&package.id);
        package.id.as_str() == name
            || package.facts.provides.contains(name)
            || stated.is_some_and(|stated| stated.contains(name))
    };
    let is_own = |name: &String| {
        // One that only this machine has is there once something needs it.
        let is_there = |id: &PackageId| {
            let mut locked = lock.find(id);
            own.packages.contains(id) || locked.any(|package| package.source.is_workspace_folder())
        };
        own.provides.get(name).is_some_and(|by| by.iter().any(is_there))
            || PackageId::parse(name).is_ok_and(|id| is_there(&id))
    };
    let others = || lock.packages.iter().filter(|package| !package.source.is_workspace_folder());
    let mut differences = Vec::new();
    for (name, by) in &own.conflicts {
        for other in others().filter(|other| is_called(other, name)) {
            let by: Vec<&str> = by.iter().map(PackageId::as_str).collect();
            let (by, with) = (by.join(", "), other.id.to_string());
            differences.push(LockDifference::Opposed { by, with });
        }
    }
    // What `package` says that it conflicts with, or what is in the workspace by that name. It may provide a capability
    // itself that it conflicts with: it means the others.
    for package in others() {
        let LockedPackage { id, version, .. } = package;
        for name in package.facts.conflicts.iter().filter(|name| !is_called(package, name)) {
            let opponents = others().filter(|other| is_called(other, name));
            let opponents = opponents.map(|other| format!("{} {}", other.id, other.version));
            let in_workspace = is_own(name).then(|| format!("{name} of the workspace"));
            let by = format!("{id} {version}");
            let opposed = |with| LockDifference::Opposed { by: by.clone(), with };
            differences.extend(opponents.chain(in_workspace).map(opposed));
        }
    }
    differences
}

/// Where the capabilities of locked packages do not fit what the settings say of them.
pub(super) fn unfit_stated_capabilities(
    session: &Session,
    own: &OwnCapabilities,
    lock: &Lockfile,
) -> Vec<LockDifference> {
    let settings = &session.workspace.settings;
    let of = |package: &LockedPackage| settings.provided.get(&package.id).into_iter().flatten();
    let mut providers: BTreeMap<&str, BTreeSet<&PackageId>> = BTreeMap::new();
    for package in &lock.packages {
        for name in package.facts.provides.iter().chain(of(package)) {
            providers.entry(name).or_default().insert(&package.id);
        }
    }
    let mut differences = Vec::new();
    for name in lock.packages.iter().flat_map(of) {
        if let Some(both) = providers.get(&**name).filter(|both| both.len() > 1) {
            let (capability, by) = (name.clone(), both.iter().map(|id| id.to_string()).collect());
            differences.push(LockDifference::ProvidedTwice { capability, by });
        }
    }
    for package in &lock.packages {
        for name in &package.facts.requires {
            let is_met = providers.contains_key(&**name)
                || own.provides.contains_key(name)
                || settings.runtime_provides.contains(name);
            if !is_met {
                let (capability, id) = (name.clone(), package.id.clone());
                differences.push(LockDifference::Unprovided { capability, id });
            }
        }
        let brought = package.requested.iter().filter_map(Requested::capability);
        for name in brought.filter(|name| settings.runtime_provides.iter().any(|one| one == name)) {
            differences.push(LockDifference::InRuntime(name.to_owned()));
        }
    }
    differences.sort_by_cached_key(ToString::to_string);
    differences.dedup();
    differences
}

/// Checks that there is a lock, if anything is required.
pub(crate) fn check_chosen(
    session: &Session,
    requirements: &Requirements,
) -> Result<(), CommandError> {
    if requirements.asked.is_empty() || session.lockfile()?.is_some() {
        return Ok(());
    }
    Err(CommandError::new(Code::LockOutdated, "there is no Mu.lock yet")
        .hint("run `mu get`, which chooses versions and writes Mu.lock"))
}
