//! `diff`: what changed between two versions of a package, to read before an update. The versions are fetched into the store,
//! and nothing is installed.

mod trees;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::trees::{Content, FileChange, Kind};

use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::source::Document;
use crate::manifest::{JSON_NAME, YAML_NAME};
use crate::ops::apply::fetch::bring_locked;
use crate::ops::lookup::chosen::fetched;
use crate::ops::lookup::chosen::published;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Outcome, Session};
use crate::reference::{PackageId, Version};
use crate::store::Stored;

/// One of the two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Side {
    /// The package.
    pub id: PackageId,
    /// Its version.
    pub version: String,
    /// Its commit (Git).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The digest of its content.
    pub digest: String,
}

/// A package in two versions, and how they differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The version before; `null` if the package is new.
    pub from: Option<Side>,
    /// The version after; `null` if the package is no longer used.
    pub to: Option<Side>,
    /// The keys of the manifest whose values differ, in the order of the alphabet.
    pub manifest: Vec<String>,
    /// The files that differ: the manifest first, then by path.
    pub files: Vec<FileChange>,
}

/// A version whose content is in the store.
struct Fetched {
    side: Side,
    stored: Stored,
}

/// Compares the version that `from` names with the one that `to` names: `PKG#VERSION`, or only `#VERSION` for the same package.
/// Without `to`, compares the locked version with the one that `from` names, which is the newest if it names none, or the tip of the
/// branch that is locked.
///
/// # Errors
///
/// When there is no such version, when without `to` the package is not locked, and when one cannot be fetched.
pub fn diff(session: &Session, from: &str, to: Option<&str>) -> Result<Difference, CommandError> {
    let _store = session.use_store()?;
    let (from, to) = match to {
        Some(to) => {
            let package = from.split('#').next().unwrap_or_default();
            let to = if to.starts_with('#') { format!("{package}{to}") } else { to.to_owned() };
            (of_registry(session, from)?, of_registry(session, &to)?)
        }
        None => {
            // The newer one first, because it says which package is meant; the lock then has the older one.
            let to = of_registry(session, &followed(session, from)?)?;
            (of_lock(session, &to.side.id, from)?, to)
        }
    };
    session.save_index();
    compare(Some(&from), Some(&to))
}

/// A reference, with the branch that is locked for its package, if it names no version.
fn followed(session: &Session, text: &str) -> Result<String, CommandError> {
    if text.contains('#') {
        return Ok(text.to_owned());
    }
    let id = published(session, text)?.id;
    let lock = session.lockfile()?.unwrap_or_default();
    let package = lock.find(lock.used_for(&id)).last().filter(|package| package.commit.is_some());
    // A branch goes on, and its tip is what an update would bring. A tag stays what it is.
    let is_tag = |name: &&str| Version::parse_lenient(name.trim_start_matches('v')).is_ok();
    let branch = package.and_then(|package| package.reference.as_deref());
    let branch = branch.filter(|name| !is_tag(name));
    Ok(branch.map_or_else(|| text.to_owned(), |branch| format!("{text}#{branch}")))
}

/// How the packages differ that a run moves from the lock `before` to what it has chosen.
///
/// # Errors
///
/// When a version cannot be fetched.
pub fn of_moves(
    session: &Session,
    before: &Lockfile,
    outcome: &Outcome,
) -> Result<Vec<Difference>, CommandError> {
    let _store = session.use_store()?;
    let is_fetched = |package: &&LockedPackage| {
        !package.source.is_workspace_folder() && !package.source.is_placed_pack()
    };
    let mut all = Vec::new();
    for change in &outcome.changes {
        // `majors: many` can have several versions; the change that names the version names the entry.
        let one = |lock: &Lockfile, version: &Option<String>| {
            let version = version.as_deref()?.split(' ').next()?;
            let mut found = lock.find(&change.id).filter(|one| one.version == version);
            found.next().filter(is_fetched).map(|package| locked(session, package))
        };
        let from = one(before, &change.from).transpose()?;
        let to = one(&outcome.lock, &change.to).transpose()?;
        if from.is_some() || to.is_some() {
            all.push(compare(from.as_ref(), to.as_ref())?);
        }
    }
    Ok(all)
}

/// The version that a reference names in its registry.
fn of_registry(session: &Session, text: &str) -> Result<Fetched, CommandError> {
    let (id, release, stored) = fetched(session, text)?;
    let commit = release.revision().map(str::to_owned);
    let digest = stored.digest.to_string();
    Ok(Fetched { side: Side { id, version: release.version.clone(), commit, digest }, stored })
}

/// The locked version of a package.
fn of_lock(session: &Session, id: &PackageId, text: &str) -> Result<Fetched, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let message = match lock.find(lock.used_for(id)).last() {
        Some(package)
            if !package.source.is_workspace_folder() && !package.source.is_placed_pack() =>
        {
            return locked(session, package);
        }
        Some(_) => format!(
            "`{id}` is used from a folder of the workspace, so there is no fetched version to compare with"
        ),
        None => format!("`{id}` is not in Mu.lock, so there is no version to compare with"),
    };
    let hint = format!("name both versions: `mu diff {} '#VERSION'`", quoted_for_shell(text));
    Err(CommandError::new(Code::NotFound, message).hint(hint))
}

fn locked(session: &Session, package: &LockedPackage) -> Result<Fetched, CommandError> {
    let stored = bring_locked(session, package)?;
    let LockedPackage { id, version, commit, .. } = package.clone();
    let (commit, digest) = (commit.map(|commit| commit.to_string()), stored.digest.to_string());
    Ok(Fetched { side: Side { id, version, commit, digest }, stored })
}

fn compare(from: Option<&Fetched>, to: Option<&Fetched>) -> Result<Difference, CommandError> {
    let (manifest, files) = match (from, to) {
        (Some(Fetched { stored: before, .. }), Some(Fetched { stored: after, .. })) => {
            (changed_keys(before, after), trees::compare(before, after)?)
        }
        // Nobody reads a whole package line by line as a change.
        _ => (Vec::new(), Vec::new()),
    };
    let [from, to] = [from, to].map(|side| side.map(|side| side.side.clone()));
    Ok(Difference { from, to, manifest, files })
}

/// The keys of the manifest whose text differs. A manifest that cannot be read has none.
fn changed_keys(before: &Stored, after: &Stored) -> Vec<String> {
    let [before, after] = [before, after].map(keys);
    let mut changed: Vec<String> = before
        .iter()
        .filter(|pair| !after.contains(pair))
        .chain(after.iter().filter(|pair| !before.contains(pair)))
        .map(|(key, _)| key.clone())
        .collect();
    changed.sort();
    changed.dedup();
    changed
}

/// The keys of a tree's manifest, with their values as they are written.
fn keys(stored: &Stored) -> Vec<(String, String)> {
    let read = |name: &str| {
        let path = stored.folder.join(name);
        let text = crate::fs::read_text_if_there(&path).ok()??;
        let document = Document::read(&path, &text).ok()?;
        let words = |value: &str| value.split_whitespace().collect::<Vec<_>>().join(" ");
        let entries = document.root_value().entries().ok()?;
        let pairs =
            entries.map(|(key, value)| (key.as_str().to_owned(), words(&text[value.span()])));
        Some(pairs.collect())
    };
    [YAML_NAME, JSON_NAME].iter().find_map(|name| read(name)).unwrap_or_default()
}
