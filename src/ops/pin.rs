//! `pin`, `unpin` and `version`: edits of the versions in manifests.
//!
//! `pin` writes the locked versions into manifests as pins, and `unpin` undoes that. A comment after the entry keeps
//! what was written before, so that `unpin` can restore it: `- acme/utils#1.5.2 # pinned from ~1.5`. If there can be no
//! comment, `pin` says what `unpin` will not know; `unpin` of a named package requires what is compatible with the pin.
//!
//! `version` shows or changes the version of a package itself in its manifest, and keeps its layout.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::index::Requirement;
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::Versions;
use crate::ops::apply::draft::ManifestDraft;
use crate::ops::apply::rewrite::{self, ManifestDependency, NewVersion, Unnoted};
use crate::ops::apply::transaction::Transaction;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::editing::{
    NO_VERSION_TEXT, compatible_with_locked, follows_branch, locked_for, pin_of,
};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::locked;
use crate::ops::session::locked::{PackageName, Purpose};
use crate::ops::solve::question::Narrowing;
use crate::ops::{Code, CommandError, Outcome, Session, Warning};
use crate::reference::{PackageId, Version, VersionSpec};
use crate::{formats, fs};

/// What to pin, and how.
#[derive(Debug, Clone, Default)]
pub struct PinRequest {
    /// Packages, and the version to pin each to, if not the locked one; none means every dependency.
    pub packages: Vec<String>,
    /// Whether Git packages are pinned to their commit instead of their version.
    pub commits: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// Pins dependencies to their locked versions.
pub fn pin(session: &Session, request: &PinRequest) -> Result<Outcome, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let branches = branches(session, &lock)?;
    let named = request.packages.iter().map(|text| PackageName::with_version(text));
    let (names, versions): (Vec<PackageName>, Vec<Option<VersionSpec>>) =
        named.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    // The note keeps what was there before the first pin: pinning twice must not lose it.
    let before = |dependency: &ManifestDependency| {
        let written = || dependency.reference.version_text().unwrap_or(NO_VERSION_TEXT).to_owned();
        Some(dependency.note.clone().unwrap_or_else(written))
    };
    if !versions.iter().all(Option::is_none) {
        Requirements::collect(session, lock.extra.clone())?.declare(session);
    }
    change(session, &names, request.dry_run, |dependency| {
        if let Some(wanted) = dependency.by.and_then(|by| versions[by].as_ref()) {
            let version = Some(named_pin(session, dependency, wanted)?);
            return Ok(Some(NewVersion { version, note: before(dependency) }));
        }
        // It is exact already, unless it is the name of a branch, which only looks like that of a tag.
        if dependency.reference.spec().is_pinned() && !branches.contains(&dependency.id) {
            return Ok(None);
        }
        if lock.replacement(&dependency.id).is_some() {
            // Its replacement has no such version.
            return Ok(None);
        }
        let Some(package) = locked_for(&lock, &dependency.id, &dependency.reference) else {
            return Err(CommandError::new(
                Code::NotFound,
                format!(
                    "`{}` is not in Mu.lock, so there is no version to pin it to",
                    dependency.id
                ),
            )
            .hint("run `mu get` first"));
        };
        // A folder is used as it is, whatever its version.
        if package.source.is_authored_folder() {
            return Ok(None);
        }
        let pin = pin_of(session, package, request.commits)?;
        Ok(Some(NewVersion { version: Some(pin), note: before(dependency) }))
    })
}

/// The pin to what an argument names, a version or a commit.
fn named_pin(
    session: &Session,
    dependency: &ManifestDependency,
    wanted: &VersionSpec,
) -> Result<VersionSpec, CommandError> {
    let id = &dependency.id;
    if session.places.member_of(id).is_some() {
        let message = format!("`{id}` is a package of this workspace, which is used as it is");
        return Err(CommandError::new(Code::Usage, message));
    }
    match wanted {
        VersionSpec::Tip => {
            let message = format!("`tip` is what `{id}` is at any time, and cannot be pinned");
            let name = quoted_for_shell(&session.short_name(id));
            Err(CommandError::new(Code::Usage, message)
                .hint(format!("`mu pin {name}` pins what Mu.lock has")))
        }
        VersionSpec::Latest | VersionSpec::Pin(_) | VersionSpec::Range(_) => {
            let own = Requirement::new(id.clone(), wanted.clone());
            let version = Narrowing::default().newest(session, id, &[&own])?;
            Ok(VersionSpec::exactly(&version))
        }
        VersionSpec::Commit(_) | VersionSpec::Tag(_) | VersionSpec::Digest(_) => Ok(wanted.clone()),
    }
}

/// The locked packages that follow a branch, which looks like a tag, or a tag of an OCI registry, which can move.
///
/// If the repository cannot be reached, a name counts as a tag.
fn branches(session: &Session, lock: &Lockfile) -> Result<BTreeSet<PackageId>, CommandError> {
    let named = |package: &&LockedPackage| package.commit.is_some() && package.reference.is_some();
    let named: Vec<&LockedPackage> = lock.packages.iter().filter(named).collect();
    if !named.is_empty() {
        Requirements::collect(session, lock.extra.clone())?.declare(session);
    }
    let moving = lock.packages.iter().filter(|package| package.artifact.is_some());
    let is_branch = |package: &&LockedPackage| follows_branch(session, package) == Some(true);
    let following = named.into_iter().filter(is_branch).chain(moving);
    Ok(following.map(|package| package.id.clone()).collect())
}

/// Undoes [`pin`]; other pins are changed only if they are named.
pub fn unpin(session: &Session, request: &PinRequest) -> Result<Outcome, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let strategy = session.strategy();
    let left = RefCell::new(BTreeSet::new());
    let names = PackageName::all_alone(&request.packages, Purpose::Unpin)?;
    let outcome = change(session, &names, request.dry_run, |dependency| {
        let spec = dependency.reference.spec();
        // Not every format has pins: `mu pin` then wrote the lowest version, and the note.
        if !spec.is_pinned() && dependency.note.is_none() {
            return Ok(None);
        }
        if dependency.note.is_none() && dependency.by.is_none() {
            // Its author meant it.
            left.borrow_mut().insert(dependency.reference.with_version(None).to_string());
            return Ok(None);
        }
        let mut version = match &dependency.note {
            Some(before) if before == NO_VERSION_TEXT => None,
            Some(before) => Some(VersionSpec::parse(before)?),
            None => compatible(session, dependency, &lock),
        };
        if let VersionSpec::Pin(pin) = spec {
            let pinned = Version::parse(&pin.version().to_string())?;
            version = strategy.unpinned(version, &pinned);
        }
        Ok(Some(NewVersion { version, note: None }))
    })?;
    let left = left.into_inner();
    if !left.is_empty() {
        session.events.warning(&Warning::PinsKept { names: left.into_iter().collect() });
    }
    Ok(outcome)
}

fn change(
    session: &Session,
    names: &[PackageName],
    dry_run: bool,
    decide: impl Fn(&ManifestDependency) -> Result<Option<NewVersion>, CommandError>,
) -> Result<Outcome, CommandError> {
    let mut draft = ManifestDraft::new(session)?;
    let unnoted = rewrite::change(session, &mut draft.editing, names, decide)?;
    warn_of_lost(session, &unnoted);
    Transaction::tidied(session, draft)?.run(session, dry_run)
}

/// Warns of entries that nobody can take back to what they were.
fn warn_of_lost(session: &Session, unnoted: &[Unnoted]) {
    if unnoted.is_empty() {
        return;
    }
    let entries = unnoted.iter().map(|entry| {
        let path = &session.workspace.members[entry.member].manifest_path;
        let path = path.strip_prefix(&session.workspace.root).unwrap_or(path);
        let before = (entry.before != NO_VERSION_TEXT).then(|| entry.before.clone());
        (entry.name.clone(), before, path.to_owned())
    });
    session.events.warning(&Warning::PinsWithoutNote { entries: entries.collect() });
}

/// The versions that are compatible with a pin whose earlier requirement is unknown; `None` if no version leads there.
fn compatible(
    session: &Session,
    dependency: &ManifestDependency,
    lock: &Lockfile,
) -> Option<VersionSpec> {
    match dependency.reference.spec() {
        VersionSpec::Pin(pin) => {
            let version = Version::parse_lenient(pin.published()).ok()?;
            Some(VersionSpec::compatible_with(&version))
        }
        _ => {
            let package = locked_for(lock, &dependency.id, &dependency.reference)?;
            compatible_with_locked(session, package)
        }
    }
}

/// A request about a package's version.
#[derive(Debug, Clone, Default)]
pub struct VersionRequest {
    /// The package; `None` means the one around the current folder.
    pub package: Option<String>,
    /// `patch`, `minor`, `major` or a version; `None` only shows the one there is.
    pub change: Option<String>,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// The version of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnVersion {
    /// The package's name.
    pub name: String,
    /// Its manifest.
    pub file: PathBuf,
    /// The version before; none if the manifest had none.
    pub from: Option<String>,
    /// The version now.
    pub to: Option<String>,
}

/// Shows the version of a package of the workspace, or changes it.
pub fn version(session: &Session, request: &VersionRequest) -> Result<OwnVersion, CommandError> {
    let package = request.package.as_deref();
    let index = locked::target(session, package, "mu version patch -p PACKAGE")?;
    let member = &session.workspace.members[index];
    let current = member.manifest.version.as_ref();
    let found = OwnVersion {
        name: member.manifest.name.to_string(),
        file: member.manifest_path.clone(),
        from: current.map(ToString::to_string),
        to: current.map(ToString::to_string),
    };
    let Some(change) = &request.change else { return Ok(found) };
    // Of a composite version, the manifest's `version` is the second part.
    let app = current.and_then(Version::app);
    let second = member.manifest.written_version.as_deref().filter(|_| app.is_some());
    let second = second.map(Version::parse).transpose()?;
    let own = second.as_ref().or(current);
    let wanted = match change.as_str() {
        "patch" | "minor" | "major" => raised(session, own, change, &found)?,
        text if member.manifest.versions == Versions::Lenient => Version::parse_lenient(text)?,
        text => Version::parse(text).map_err(|error| {
            CommandError::from(error)
                .while_doing(format!("cannot set the version to `{text}`"))
                .hint("write `patch`, `minor`, `major`, or a version such as 1.2.0")
        })?,
    };
    let written = wanted.to_string();
    let to = match app {
        Some(app) => Version::composite(app, &written)?.to_string(),
        None => written.clone(),
    };
    if !request.dry_run && found.from.as_ref() != Some(&to) {
        let text = fs::read_text(&found.file)?;
        let text =
            formats::manifest_with_version(&found.file, &text, &written, session.short_names())?;
        // What an edit of the text has made is read again before it is written.
        formats::parse_own(&found.file, &text, session.short_names())?;
        fs::write_through_links(&found.file, text.as_bytes())?;
    }
    Ok(OwnVersion { to: Some(to), ..found })
}

/// The error about a manifest that has no version. Some have no place for one, and say where it is instead.
pub fn missing_version(session: &Session, file: &Path, what: &str) -> CommandError {
    let place = || -> Result<String, CommandError> {
        let text = fs::read_text(file)?;
        Ok(formats::manifest_with_version(file, &text, "0.1.0", session.short_names())?)
    };
    place().err().unwrap_or_else(|| {
        let message = format!("`{}` has no `version`{what}", file.display());
        CommandError::new(Code::Manifest, message).hint("set one: `mu version 0.1.0`")
    })
}

/// The next version. A prerelease of it becomes that version, as in npm.
fn raised(
    session: &Session,
    current: Option<&Version>,
    part: &str,
    found: &OwnVersion,
) -> Result<Version, CommandError> {
    let written = current.map(ToString::to_string).unwrap_or_default();
    let Some(current) = current.and_then(Version::as_semver) else {
        return Err(missing_version(session, &found.file, " that can be raised"));
    };
    let (major, minor, patch) = (current.major, current.minor, current.patch);
    let is_released = current.pre.is_empty();
    // Raised by `major`, `2.0.0-rc.1` is 2.0.0, and `2.1.0-rc.1` is 3.0.0.
    let (major, minor, patch) = match part {
        "major" if is_released || minor > 0 || patch > 0 => (major + 1, 0, 0),
        "major" => (major, 0, 0),
        "minor" if is_released || patch > 0 => (major, minor + 1, 0),
        "minor" => (major, minor, 0),
        _ if is_released => (major, minor, patch + 1),
        _ => (major, minor, patch),
    };
    // `1.28` becomes `1.29`: missing numbers stay missing if they are zero.
    let written = written.split('.').count().min(3);
    let mut text = format!("{major}.{minor}.{patch}");
    for _ in written..3 {
        text = text.strip_suffix(".0").map(str::to_owned).unwrap_or(text);
    }
    Ok(Version::parse_lenient(&text)?)
}
