//! `verify`: hashes what is installed (or the store) again, and compares it with the lock.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mu_provider::threads::{at_once, into_inner, lock};
use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::LockedPackage;
use crate::ops::apply::development;
use crate::ops::apply::fetch::{check_installed, content_fault, placed_fault, placed_folder};
use crate::ops::requirements::{Requirements, check_chosen};
use crate::ops::session::installed_packs::needed_packs;
use crate::ops::session::locked::find_used;
use crate::ops::session::named::{PackageName, Purpose};
use crate::ops::session::words;
use crate::ops::{CommandError, Session, Stage};
use crate::packs::{WantedPack, hash_folder};
use crate::reference::PackageId;

/// The problem with one pack or stored tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Fault {
    /// The package's id and version, or the tree's digest.
    pub what: String,
    /// Its folder.
    #[serde(rename = "path", serialize_with = "words::path")]
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
}

/// Checks the packs of the named packages, or every pack that the lock names.
///
/// # Errors
///
/// When there is no lock although something is required, the lock or the state cannot be read, or a named package is not in use.
pub fn verify(session: &Session, names: &[String]) -> Result<Report, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let meant = names.iter().map(|text| {
        find_used(session, &lock, &PackageName::without_version(text, Purpose::Verify)?)
    });
    let meant: BTreeSet<PackageId> = meant.collect::<Result<_, _>>()?;
    let is_meant = |package: &LockedPackage| meant.is_empty() || meant.contains(&package.id);
    let packs = session.packs();
    let state = packs.state();
    let record = packs.record()?;
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    check_chosen(session, &requirements)?;
    let for_development = development::development_only(&requirements, &lock);
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
    Ok(report)
}

/// Checks every tree in the store.
///
/// # Errors
///
/// When the store cannot be read.
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
    Report { checked: items.len(), faults }
}
