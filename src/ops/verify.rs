//! `verify`: hashes what is installed (or the store) again, and compares it with the lock.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use mu_provider::threads::{at_once, into_inner, lock};
use schemars::JsonSchema;
use serde::Serialize;

use crate::ops::apply::development;
use crate::ops::apply::fetch::{check_installed, content_fault, placed_fault, placed_folder};
use crate::ops::requirements::{Requirements, check_chosen};
use crate::ops::session::installed_packs::wanted;
use crate::ops::session::json;
use crate::ops::{CommandError, Session, Stage};
use crate::packs::{WantedPack, hash_folder};

/// The problem with one pack or stored tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Fault {
    /// The package's id and version, or the tree's digest.
    pub what: String,
    /// Its folder.
    #[serde(rename = "path", serialize_with = "json::path")]
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

/// Checks every pack that the lock names.
///
/// # Errors
///
/// When there is no lock although something is required, or the lock or the state cannot be read.
pub fn verify(session: &Session) -> Result<Report, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let packs = session.packs();
    let state = packs.state();
    let record = packs.record()?;
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    check_chosen(session, &requirements)?;
    let for_development = development::only(&requirements, &lock);
    // Packages that only development needs may not be installed.
    let is_left_out = |(index, wanted): &(usize, WantedPack)| {
        for_development.contains(index) && !packs.pack_path(&wanted.place).exists()
    };
    let wanted: Vec<_> = wanted(&lock).filter(|wanted| !is_left_out(wanted)).collect();
    let asked: Vec<&str> = wanted.iter().map(|(_, wanted)| &*wanted.place).collect();
    let places: BTreeSet<&str> = wanted
        .iter()
        .map(|(_, wanted)| &wanted.place)
        .chain(state.packs.keys())
        .map(|place| &**place)
        .collect();
    let mut placed = 0;
    let mut faults = Vec::new();
    for package in lock.packages.iter().filter(|package| package.source.is_placed()) {
        let folder = placed_folder(session, package)?;
        let what = format!("{} {}", package.id, package.version);
        let problem = placed_fault(session, package)?;
        faults.extend(problem.map(|problem| Fault { what, folder, problem }));
        placed += 1;
    }
    let mut report = check_all(session, &wanted, |(index, wanted)| {
        let folder = packs.pack_path(&wanted.place);
        let problem = if !folder.exists() {
            Some("it is not installed".to_owned())
        } else {
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
