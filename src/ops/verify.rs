//! What is installed: `list` shows the packages of the lock and whether they are installed, or those of the workspace itself; `verify` hashes
//! what is installed (or the store) again, and compares it with the lock, or asks the registries what they say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mu_provider::threads::{at_once, into_inner, lock};
use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::{LockedPackage, Lockfile, Source};
use crate::ops::apply::fetch::{
    ListedBy, check_installed, content_fault, placed_fault, placed_folder, problems_now,
    signers_here,
};
use crate::ops::explain::carried::{Inside, carried};
use crate::ops::requirements::{self, Requirements, check_chosen};
use crate::ops::session::installed::{folder_of, named, needed_packs};
use crate::ops::session::locked::{PackageName, Purpose, find_used, version_of};
use crate::ops::session::shown;
use crate::ops::{Code, CommandError, Session, Stage};
use crate::packs::{WantedPack, hash_folder};
use crate::reference::PackageId;

pub use crate::ops::apply::fetch::TrustProblem;

/// The problem with one pack or stored tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Fault {
    /// The package's id and version, or the tree's digest.
    pub what: String,
    /// Its folder.
    #[serde(rename = "path", serialize_with = "shown::path")]
    #[schemars(with = "String")]
    pub folder: std::path::PathBuf,
    /// What is wrong.
    pub problem: String,
}

/// What verifying found.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Report {
    /// The number of packs or trees that were checked.
    pub checked: usize,
    /// Those with problems, sorted.
    pub faults: Vec<Fault>,
    /// Who signed the locked packages that rules speak of, as this machine has verified it before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<SignerCount>,
    /// The packages that rules speak of, and of which this machine has verified nothing yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<PackageId>,
}

/// Somebody who signed packages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignerCount {
    /// Who.
    pub identity: String,
    /// How many of the packages.
    pub packages: usize,
}

/// Checks the packs of the named packages, or every pack that the lock names.
pub fn verify(session: &Session, names: &[String]) -> Result<Report, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let meant = meant(session, &lock, names)?;
    let is_meant = |package: &LockedPackage| meant.is_empty() || meant.contains(&package.id);
    let packs = session.packs();
    let state = packs.state();
    let record = packs.record()?;
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    check_chosen(session, &requirements)?;
    let for_development = requirements::development_only(&requirements, &lock);
    // Packages that only development needs may not be installed.
    let is_left_out = |(index, wanted): &(usize, WantedPack)| {
        for_development.contains(index) && !packs.pack_path(&wanted.place).exists()
    };
    let all: Vec<_> = needed_packs(&lock).filter(|wanted| !is_left_out(wanted)).collect();
    let asked: Vec<&str> = all.iter().map(|(_, wanted)| &*wanted.place).collect();
    let places: BTreeSet<&str> = all
        .iter()
        .map(|(_, wanted)| &wanted.place)
        .chain(state.packs.keys())
        .map(|place| &**place)
        .collect();
    let checked = needed_packs(&lock).filter(|wanted| !is_left_out(wanted));
    let checked = checked.filter(|(index, _)| lock.packages.get(*index).is_some_and(is_meant));
    let checked: Vec<_> = checked.collect();
    let mut placed = 0;
    let mut faults = Vec::new();
    let placed_here = lock.packages.iter().filter(|package| package.source.is_placed_pack());
    for package in placed_here.filter(|package| is_meant(package)) {
        let folder = placed_folder(session, package)?;
        let what = format!("{} {}", package.id, package.version);
        let problem = placed_fault(session, package)?;
        faults.extend(problem.map(|problem| Fault { what, folder, problem }));
        placed += 1;
    }
    let mut report = check_all(session, &checked, |(index, wanted)| {
        let folder = packs.pack_path(&wanted.place);
        let problem = if !folder.exists() {
            Some("it is not installed".to_owned())
        } else if !folder.is_dir() {
            Some("a file is in its place".to_owned())
        } else {
            // What a pack leaves out for packs inside it is no fault, and neither is what was built of it in its place.
            // If the content is right, its label may still be wrong.
            let omitted = packs.omitted(&state, &record, wanted, &asked);
            let found = packs.digest_of(&wanted.place, &places, &omitted, &wanted.digest);
            let is_built = found.as_ref().is_ok_and(|found| wanted.accepts(found));
            let fault = if is_built { None } else { content_fault(&wanted.digest, found) };
            fault.or_else(|| {
                let package = &lock.packages[*index];
                let known = state.packs.get(&wanted.place);
                let other = known.filter(|pack| pack.version != wanted.version);
                match (check_installed(session, package, &folder), other) {
                    (Err(error), _) => Some(error.error.to_string()),
                    (Ok(()), Some(other)) => Some(format!(
                        "Mu.lock says that it is {}, but {} was installed",
                        wanted.version, other.version
                    )),
                    (Ok(()), None) => None,
                }
            })
        };
        problem.map(|problem| Fault {
            what: format!("{} {}", wanted.id, wanted.version),
            folder,
            problem,
        })
    });
    report.checked += placed;
    report.faults.extend(faults);
    report.faults.sort();
    // What is wrong with the files comes first: rules speak of what the lock says, not of what somebody has made of it.
    if report.faults.is_empty() {
        let here = signers_here(session, &lock, &is_meant)?;
        let signers = here.by_signer.into_iter();
        report.signers =
            signers.map(|(identity, packages)| SignerCount { identity, packages }).collect();
        report.unverified = here.unknown;
    }
    Ok(report)
}

/// What the registries say of locked packages now.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct TrustReport {
    /// The number of packages that were asked about.
    pub checked: usize,
    /// Those that are not what the lock says, or about which that cannot be found out; sorted.
    pub problems: Vec<TrustProblem>,
}

/// Asks the registries of the named packages, or of all that the lock names, whether each is what the lock says.
pub fn verify_trust(session: &Session, names: &[String]) -> Result<TrustReport, CommandError> {
    if session.options.offline {
        let text = "`mu verify --trust` asks the registries, and `--offline` forbids it";
        return Err(CommandError::new(Code::Offline, text)
            .hint("`mu verify` goes by what is on this machine"));
    }
    let lock = session.lockfile()?.unwrap_or_default();
    let meant = meant(session, &lock, names)?;
    let is_meant = |package: &LockedPackage| meant.is_empty() || meant.contains(&package.id);
    // References in manifests may say more about the place of a package than its id.
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    check_chosen(session, &requirements)?;
    requirements.declare(session);
    let (checked, problems) = problems_now(session, &lock, ListedBy::Place, &is_meant)?;
    Ok(TrustReport { checked, problems })
}

/// The packages of the lock that names on the command line mean.
fn meant(
    session: &Session,
    lock: &Lockfile,
    names: &[String],
) -> Result<BTreeSet<PackageId>, CommandError> {
    let find = |text: &String| {
        find_used(session, lock, &PackageName::without_version(text, Purpose::Verify)?)
    };
    names.iter().map(find).collect()
}

/// Checks every tree in the store.
pub fn verify_store(session: &Session) -> Result<Report, CommandError> {
    let _store = session.use_store()?;
    let digests = session.store.digests()?;
    Ok(check_all(session, &digests, |digest| {
        let folder = session.store.tree_path(digest);
        let found = hash_folder(&folder, &std::collections::HashSet::new());
        let problem = content_fault(digest, found.map(|tree| tree.digest()));
        problem.map(|problem| Fault { what: digest.to_string(), folder, problem })
    }))
}

fn check_all<T: Sync>(
    session: &Session,
    items: &[T],
    check: impl Fn(&T) -> Option<Fault> + Sync,
) -> Report {
    let faults = Mutex::new(Vec::new());
    let checked = AtomicUsize::new(0);
    let Ok(()) = at_once(session.disk_jobs(items.len()), items, |item| {
        let fault = check(item);
        lock(&faults).extend(fault);
        let done = checked.fetch_add(1, Ordering::Relaxed) + 1;
        session.events.progress(Stage::Verifying, done, items.len());
        Ok::<_, Infallible>(())
    });
    let mut faults = into_inner(faults);
    faults.sort();
    Report { checked: items.len(), faults, ..Report::default() }
}

/// A package of the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The package.
    pub id: PackageId,
    /// Its version; for a replaced package, that of the pack that is still there.
    pub version: Option<String>,
    /// The channel that it was chosen from, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Where it comes from.
    pub source: Option<Source>,
    /// Its commit (Git).
    pub commit: Option<String>,
    /// Whether it is installed as the lock says.
    pub installed: bool,
    /// The folder of its pack; none for a package of the workspace.
    #[serde(serialize_with = "shown::optional_path")]
    #[schemars(with = "Option<String>")]
    pub path: Option<PathBuf>,
    /// The package that is used in its place.
    pub replaced_by: Option<PackageId>,
    /// Other versions of a chart that Helm uses, because other charts carry them inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<Inside>,
    /// Its version for people, with the commit if the version alone says nothing.
    #[serde(skip)]
    pub label: Option<String>,
}

/// A package of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Member {
    /// The package.
    pub id: PackageId,
    /// The name in its manifest.
    pub name: String,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Its folder.
    #[serde(serialize_with = "shown::path")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Its folder relative to the root; `.` for the root itself.
    #[serde(skip)]
    pub place: String,
}

/// Lists the packages of the lock, followed by replaced packages.
pub fn list(session: &Session) -> Result<Vec<Listed>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let packs = session.packs();
    let (indices, wanted): (Vec<usize>, Vec<WantedPack>) = needed_packs(&lock).unzip();
    let state = packs.recognized(|| named(&lock))?;
    let missing: BTreeSet<&str> =
        packs.missing(&state, &wanted).into_iter().map(|wanted| &*wanted.place).collect();
    let wanted: BTreeMap<usize, &WantedPack> = indices.into_iter().zip(&wanted).collect();
    let packages = lock.packages.iter().enumerate().map(|(index, package)| {
        let pack = wanted.get(&index);
        let is_installed = |pack: &&WantedPack| !missing.contains(&*pack.place);
        let placed = package.source.is_placed_pack().then(|| placed_folder(session, package).ok());
        let placed = placed.flatten().filter(|folder| folder.is_dir());
        let is_here = package.source.is_workspace_folder() || placed.is_some();
        Listed {
            installed: pack.map_or(is_here, is_installed),
            path: pack.map(|pack| packs.pack_path(&pack.place)).or(placed),
            ..Listed::new(&package.id, Some(package))
        }
    });
    // Its version is that of the pack, so without the pack it has none.
    let replaced = lock.replaced.iter().map(|replaced| {
        let kept = replaced.kept.as_deref();
        let path = kept.map(|kept| packs.pack_path(&folder_of(&kept.id)));
        let path = path.filter(|path| path.exists());
        let kept = kept.filter(|_| path.is_some());
        Listed {
            installed: path.is_some(),
            path,
            replaced_by: Some(replaced.by.clone()),
            ..Listed::new(&replaced.id, kept)
        }
    });
    let mut carried = carried(session, &lock);
    let with_carried = |listed: Listed| {
        let helm = carried.remove(&listed.id).into_iter().flatten().collect();
        Listed { helm, ..listed }
    };
    Ok(packages.chain(replaced).map(with_carried).collect())
}

impl Listed {
    fn new(id: &PackageId, package: Option<&LockedPackage>) -> Self {
        Self {
            id: id.clone(),
            version: package.map(|package| package.version.clone()),
            channel: package.and_then(|package| package.channel.clone()),
            source: package.map(|package| package.source.clone()),
            commit: package.and_then(|package| Some(package.commit.as_ref()?.to_string())),
            installed: false,
            path: None,
            replaced_by: None,
            helm: Vec::new(),
            label: package.map(version_of),
        }
    }
}

/// Lists the packages of the workspace itself.
pub fn members(session: &Session) -> Vec<Member> {
    let members = session.workspace.members.iter().map(|member| Member {
        id: member.id.clone(),
        name: member.manifest.name.to_string(),
        version: member.manifest.version.as_ref().map(ToString::to_string),
        path: member.folder.clone(),
        place: if member.place.is_empty() { ".".to_owned() } else { member.place.clone() },
    });
    members.collect()
}
