//! What vendored packs bring with them besides their files: what vouches for packages under rules, and the archives that it speaks of,
//! so that a machine without cache and network can verify both.
//!
//! All of it is in the packs folder, and committed. It proves itself by its digests and signatures, and is trusted no more than what a
//! registry sends. Whether the rules accept it is decided in `trust`, and what becomes of an archive in `signed.rs`.

use std::collections::{BTreeMap, BTreeSet};

use mu_provider::{Folder, InnerPath, Kind, lines_to_text};
use mu_trust::EvidenceLine;

use crate::fs::FileError;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::error::{content_differs, not_fetched};
use crate::ops::apply::fetch::route::{
    LockedRoots, LockedRoute, locked_by_digest, used_instead, way_of,
};
use crate::ops::apply::fetch::signed::{as_ruled, ids_under_rules};
use crate::ops::explain::unserved::with_requirer;
use crate::ops::session::events::Work;
use crate::ops::{CommandError, Session};
use crate::reference::PackageId;
use crate::trust::{VENDORED_ARCHIVES, VENDORED_FILE};

/// A package under rules whose evidence and archive can be kept.
struct Vouched<'l> {
    package: &'l LockedPackage,
    source: PackageId,
    stood_for: Vec<PackageId>,
    way: LockedRoute,
}

/// Writes what vouches for the locked packages under rules beside the vendored packs. Of packages that only the rules of somebody else
/// speak of, what is there stays. With `archives`, or where there are some, it does the same for archives.
pub(crate) fn keep_vouchers(
    session: &Session,
    lock: &Lockfile,
    archives: bool,
) -> Result<(), CommandError> {
    let root = session.workspace.opened()?;
    let file = InnerPath::own(VENDORED_FILE).into();
    let keeps_archives = archives || root.look_at(&VENDORED_ARCHIVES.into())? == Some(Kind::Folder);
    let vouched = vouched(session, lock)?;
    // The file, sorted, so that two branches merge.
    let mut lines: BTreeMap<(String, String), Vec<EvidenceLine>> = BTreeMap::new();
    // Lines about what is no longer locked go. Lines about the rest stay, because the rules of a colleague may have asked for them.
    let locked: BTreeSet<(String, String)> = (lock.packages.iter())
        .map(|package| (used_instead(session, &package.id).to_string(), package.version.clone()))
        .collect();
    for line in session.trust.vendored_lines() {
        if let Some(package) = line.package.clone().filter(|package| locked.contains(package)) {
            lines.entry(package).or_default().push(line);
        }
    }
    for one in &vouched {
        let key = (one.source.to_string(), one.package.version.clone());
        match one.evidence(session) {
            Ok(found) => {
                // What a place has now takes the place of what it had before.
                let found = found
                    .into_iter()
                    .map(|line| EvidenceLine { package: Some(key.clone()), ..line });
                let found: Vec<EvidenceLine> = found.collect();
                if !found.is_empty() {
                    lines.insert(key, found);
                }
            }
            Err(error) => session.events.warning(&format!(
                "what vouches for {} {} is not kept in `{VENDORED_FILE}`: {}",
                one.package.id,
                one.package.version,
                mu_provider::with_causes(&*error.error)
            )),
        }
    }
    let text = lines_to_text(lines.into_values().flatten());
    match text.is_empty() {
        true => remove_file(&root, &file)?,
        false => root.write(&file, text.as_bytes())?,
    }
    match keeps_archives {
        true => keep_archives(session, &root, lock, &vouched, archives),
        false => Ok(()),
    }
}

/// Removes all of it.
pub(crate) fn drop_vouchers(root: &Folder) -> Result<(), FileError> {
    remove_file(root, &InnerPath::own(VENDORED_FILE).into())?;
    match root.look_at(&VENDORED_ARCHIVES.into())? {
        Some(_) => root.remove(&VENDORED_ARCHIVES.into()),
        None => Ok(()),
    }
}

fn remove_file(root: &Folder, file: &InnerPath) -> Result<(), FileError> {
    match root.look_at(file)? {
        Some(_) => root.remove_file(file),
        None => Ok(()),
    }
}

/// The locked packages that rules speak of.
fn vouched<'l>(session: &Session, lock: &'l Lockfile) -> Result<Vec<Vouched<'l>>, CommandError> {
    let (roots, mut found) = (LockedRoots::default(), Vec::new());
    if session.trust.is_empty() {
        return Ok(found);
    }
    for package in &lock.packages {
        let Some((source, stood_for)) = ids_under_rules(session, lock, package) else { continue };
        let way = way_of(session, package, &roots)?;
        if !session.trust.rules_about(&way.route, &source, &stood_for).is_empty() {
            found.push(Vouched { package, source, stood_for, way });
        }
    }
    Ok(found)
}

impl Vouched<'_> {
    /// What vouches for it.
    fn evidence(&self, session: &Session) -> Result<Vec<EvidenceLine>, CommandError> {
        let Self { package, source, stood_for, way } = self;
        let release = locked_by_digest(session, package, way)?;
        let candidate = as_ruled(package, (source, stood_for.clone()), &way.route, &release);
        let progress = Work::begin(&session.events, format!("{} {}", package.id, package.version));
        Ok(session.trust.known_evidence_of(&candidate, &progress)?.to_lines())
    }

    /// All that its content can be made of again; `None` if there is no such thing.
    fn preserve(&self, session: &Session) -> Result<Option<Vec<u8>>, CommandError> {
        let Self { package, way, .. } = self;
        let release = locked_by_digest(session, package, way)?;
        let what = format!("{} {}", package.id, package.version);
        let progress = Work::begin(&session.events, what.as_str());
        let (provider, location) = (&way.route.provider, &way.route.location);
        let _store = session.use_store()?;
        // The content is compared with the lock before anything is kept of it.
        let mut preserved = None;
        let tree = session.store.inspect(|tree| {
            preserved = provider.preserve(location, &release, tree, &progress)?;
            Ok(())
        });
        let found = tree
            .map_err(|error| with_requirer(session, &package.id, not_fetched(error, &what)))?
            .digest();
        match package.digest.filter(|expected| *expected != found) {
            Some(expected) => {
                let place = location.describe();
                Err(content_differs(package, [&expected, &found], "Mu.lock", &place))
            }
            None => Ok(preserved),
        }
    }
}

/// The name of what a locked package can be made of again.
fn archive_name(package: &LockedPackage) -> Option<InnerPath> {
    let name = match (&package.commit, package.archive) {
        (Some(commit), _) => format!("{commit}.pack"),
        (None, Some(archive)) => archive.to_string().replace(':', "-"),
        (None, None) => return None,
    };
    // A commit has more than one package.
    let folder = package.folder.as_deref().filter(|_| package.commit.is_some());
    let name = match folder {
        Some(folder) => format!("{}+{name}", folder.replace('/', "+")),
        None => name,
    };
    InnerPath::name(&name).ok()
}

/// Brings the archives of packages under rules that are not there, and removes those that no package of the lock has.
fn keep_archives(
    session: &Session,
    root: &Folder,
    lock: &Lockfile,
    vouched: &[Vouched<'_>],
    is_asked_for: bool,
) -> Result<(), CommandError> {
    let folder = root.make_inner(&VENDORED_ARCHIVES.into())?;
    let present: BTreeSet<String> = folder.entries()?.into_iter().map(|(name, _)| name).collect();
    for one in vouched {
        let Some(name) = archive_name(one.package) else { continue };
        // Its name is its digest, so what is there is the right one, or is found out when it is read.
        if present.contains(&name.to_string()) {
            continue;
        }
        match one.preserve(session) {
            Ok(Some(bytes)) => folder.write(&name, &bytes)?,
            Ok(None) => session.events.warning(&format!(
                "{} {} is made of no single archive, so none is kept: without its registry, the rules cannot be asked about it",
                one.package.id, one.package.version
            )),
            // What was asked for was another thing, and is done.
            Err(error) if !is_asked_for => session.events.warning(&format!(
                "the archive of {} {} is not kept: {}",
                one.package.id,
                one.package.version,
                mu_provider::with_causes(&*error.error)
            )),
            Err(error) => return Err(error),
        }
    }
    let named: BTreeSet<String> =
        lock.packages.iter().filter_map(archive_name).map(|name| name.to_string()).collect();
    for other in present.iter().filter(|name| !named.contains(*name)) {
        if let Ok(name) = InnerPath::name(other) {
            folder.remove(&name)?;
        }
    }
    Ok(())
}

/// What a locked package can be made of again, if the packs folder has that.
pub(super) fn kept_archive(session: &Session, package: &LockedPackage) -> Option<Vec<u8>> {
    let path = InnerPath::from(VENDORED_ARCHIVES).join(&archive_name(package)?);
    match session.workspace.opened().and_then(|root| root.read(&path)) {
        Ok(found) => found,
        Err(error) => {
            session
                .events
                .warning(&format!("`{path}` is not read: {}", mu_provider::with_causes(&error)));
            None
        }
    }
}
