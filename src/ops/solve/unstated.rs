//! What Mu.lock does not state although it could be known: what the lock of another tool has, and what packages conflict with.
//!
//! The lock of another tool counts where there is no Mu.lock yet: whoever begins to use mu for a chart or a KCL module gets the
//! versions that were in use before, if they fit.
//!
//! This is looked at once. Afterwards only Mu.lock counts, and `mu vendor` writes the other lock.
//!
//! What its packages conflict with, a lock does not say if it is older than the key. It is looked up when something new is selected beside them: in the content of a package, if that is in the store, else in its
//! registry. Nothing here fails: what cannot be asked stays unknown, as it was when the lock was written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mu_formats::{FormatError, helm, kcl};

use crate::index::releases::{Details, Releases};
use crate::index::{Candidate, Revision, Unavailable, Universe as _, details};
use crate::lock::{FILE_NAME, LockedPackage, Lockfile};
use crate::manifest::Manifest;
use crate::ops::requirements::names::id_in;
use crate::ops::session::shown::count;
use crate::ops::{CommandError, Session, Warning};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{CandidateOfLock, Chosen, Origin, Selection};
use crate::workspace::Member;
use crate::{formats, fs};

/// The packages that locks of other tools have.
#[derive(Debug, Default)]
pub(super) struct Adopted {
    /// The version of each package, and the lock that has it.
    versions: BTreeMap<PackageId, (Version, &'static str)>,
}

impl Adopted {
    /// What there is beside the manifests of the workspace.
    pub(super) fn find(session: &Session) -> Result<Self, CommandError> {
        let mut adopted = Self::default();
        for member in &session.workspace.members {
            let format =
                formats::format_of_manifest(&member.manifest_path).map(|format| format.name);
            let (lock, found) = if format == Some(helm::FORMAT.name) {
                of_chart(session, member)?
            } else if format == Some(kcl::FORMAT.name) {
                (kcl::LOCK, of_module(member)?)
            } else {
                continue;
            };
            for (reference, version) in found {
                // The lock of another tool may name versions that mu does not know as such. They are left to selection.
                let Ok(version) = Version::parse_lenient(&version) else { continue };
                let id = id_in(session, member, &reference);
                // If two members have locked the same chart differently, the first one counts, as mu has one version.
                adopted.versions.entry(id).or_insert((version, lock));
            }
        }
        Ok(adopted)
    }

    /// The packages, as selection knows those of a lock.
    pub(super) fn locked(&self) -> impl Iterator<Item = CandidateOfLock> {
        self.versions.iter().map(|(id, (version, _))| CandidateOfLock {
            id: id.clone(),
            version: Some(version.clone()),
            commit: None,
            reference: None,
            dependencies: Vec::new(),
            requested: Vec::new(),
        })
    }

    /// Says how many of them were chosen, and which were not.
    pub(super) fn say(&self, session: &Session, selection: &Selection) {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        let mut apart: BTreeMap<&'static str, Vec<_>> = BTreeMap::new();
        for (id, (version, lock)) in &self.versions {
            // What the workspace has itself is used whatever a lock says.
            let is_it = |chosen: &&Chosen| chosen.id == *id && chosen.origin != Origin::Local;
            let mut chosen = selection.packages.iter().filter(is_it);
            // Under several aliases, a chart can be chosen in several versions.
            if chosen.clone().any(|chosen| chosen.version.as_ref() == Some(version)) {
                *taken.entry(lock).or_default() += 1;
            } else if let Some(other) = chosen.next().and_then(|chosen| chosen.version.as_ref()) {
                let versions = (id.clone(), version.clone(), other.clone());
                apart.entry(*lock).or_default().push(versions);
            }
        }
        for (file, apart) in apart {
            session.events.warning(&Warning::OtherLock { file, apart });
        }
        for (lock, number) in taken {
            let versions = count(number, "version");
            session.events.note(&format!(
                "kept {versions} of {lock}, because there was no Mu.lock yet; `mu update` takes newer ones"
            ));
        }
    }
}

/// The packages that a lock has, with their versions.
type Found = Vec<(Reference, String)>;

/// What the lock of a chart has, and its name.
fn of_chart(session: &Session, member: &Member) -> Result<(&'static str, Found), CommandError> {
    let needs = formats::helms_needs(&member.manifest_path, session.short_names(), true);
    let Ok(helm::Needs { needs, lock }) = needs else { return Ok(("", Vec::new())) };
    let path = member.folder.join(lock);
    let read = |text: &str| helm::locked(lock, text);
    let locked = read_lock(&path, "`helm dependency update`", read)?;
    let found = needs.into_iter().enumerate().filter_map(|(at, need)| {
        let reference = need.requirement?.reference;
        // One chart can be there several times, in the order of the manifest.
        let is_it = |(name, _): &&(String, String)| *name == need.name;
        let same = locked.get(at).filter(is_it).or_else(|| locked.iter().find(is_it));
        Some((reference, same?.1.clone()))
    });
    Ok((lock, found.collect()))
}

/// What the lock of a KCL module has.
fn of_module(member: &Member) -> Result<Found, CommandError> {
    let path = member.folder.join(kcl::LOCK);
    let locked = read_lock(&path, "`kcl mod update`", kcl::locked)?;
    let parsed =
        |(place, version): (String, String)| Some((Reference::parse(&place).ok()?, version));
    Ok(locked.into_iter().filter_map(parsed).collect())
}

/// What a lock has, which `written_by` writes; nothing if it is not there.
fn read_lock(
    path: &Path,
    written_by: &str,
    read: impl Fn(&str) -> Result<Vec<(String, String)>, FormatError>,
) -> Result<Vec<(String, String)>, CommandError> {
    let Some(text) = fs::read_text_if_there(path).ok().flatten() else { return Ok(Vec::new()) };
    read(&text).map_err(|error| {
        CommandError::from(error.in_text(path, &text)).hint(format!(
            "mu keeps the versions in it, because there is no {FILE_NAME} yet; {written_by} writes it anew, and without it mu chooses the versions"
        ))
    })
}

/// The lock with what its packages turn out to conflict with; `None` if that is nothing more.
pub(super) fn with_learned_conflicts(session: &Session, lock: &Lockfile) -> Option<Lockfile> {
    let settings = &session.workspace.settings;
    let is_open = |package: &LockedPackage| {
        // The content of what is used instead of a package is not its own.
        package.facts.conflicts.is_empty()
            && !package.source.is_authored_folder()
            && !settings.overrides.contains_key(&package.id)
    };
    let (mut found, mut to_ask) = (Vec::new(), Vec::new());
    // The store first: what is installed needs no request.
    for (at, package) in lock.packages.iter().enumerate().filter(|(_, one)| is_open(one)) {
        match in_store(session, package) {
            Some(details) => found.push((at, details.facts.conflicts)),
            None => to_ask.push((at, package)),
        }
    }
    if !session.options.offline {
        let ids: Vec<_> = to_ask.iter().map(|(_, package)| package.id.clone()).collect();
        session.index().ask_for_releases(&ids);
        let mut unknown = Vec::new();
        for (at, package) in to_ask {
            match in_registry(session, package) {
                Ok(conflicts) => found.push((at, conflicts)),
                Err(_) => unknown.push(package.id.clone()),
            }
        }
        if !unknown.is_empty() {
            session.events.warning(&Warning::ConflictsUnknown { ids: unknown });
        }
    }
    found.retain(|(_, conflicts)| !conflicts.is_empty());
    (!found.is_empty()).then(|| {
        let mut lock = lock.clone();
        for (at, conflicts) in found {
            if let Some(package) = lock.packages.get_mut(at) {
                package.facts.conflicts = conflicts;
            }
        }
        lock
    })
}

/// What the content of a package says, if that is in the store with a manifest.
fn in_store(session: &Session, package: &LockedPackage) -> Option<Details> {
    let digest = package.digest.filter(|digest| session.store.contains(digest))?;
    let folder = session.store.tree_path(&digest);
    match Manifest::load_published(&folder).ok()? {
        Some(manifest) => {
            let said = details(&package.id, &manifest.to_release());
            Some(said.counted(&session.workspace.settings.aliases))
        }
        // The manifests of other ecosystems have no such fact. Without any, the registry may have it.
        None => formats::locate_manifest(&folder).ok()?.map(|_| Details::default()),
    }
}

/// What the registry of a package says.
fn in_registry(session: &Session, package: &LockedPackage) -> Result<Vec<String>, Unavailable> {
    let index = session.index();
    let releases: Arc<Releases> = index.releases(&package.id)?;
    let version =
        package.parsed_version().and_then(|version| releases.position_of_version(&version));
    let commit = package.commit.as_deref();
    // A locked commit decides, because a version tag may have been moved to another one.
    let position = match commit {
        Some(commit) => releases.at_commit(commit),
        None => version,
    };
    let declared = match (position, commit) {
        (Some(position), _) => match releases.details(position) {
            Some(known) => return Ok(known.facts.conflicts.clone()),
            None => index.declared(&package.id, Candidate::Release(position))?,
        },
        (None, Some(commit)) => {
            let name = VersionSpec::parse(commit).ok();
            let found = name.map(|name| index.revision(&releases, &name)).transpose()?.flatten();
            match found {
                Some(Revision::Untagged(untagged)) => untagged.details,
                _ => None,
            }
        }
        (None, None) => None,
    };
    Ok(declared.map(|details| details.facts.conflicts.clone()).unwrap_or_default())
}
