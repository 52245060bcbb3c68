//! What a command line names: packages, with or without a version, the package of the lock that a reference means, and the
//! manifest that a command edits.
//!
//! Whoever wants the package of an argument has to say what becomes of a version after it: [`PackageName::without_version`]
//! refuses one, with the command that takes it, and [`PackageName::with_version`] hands it over. So no command drops one in
//! silence. The manifest is that of the package with the given name, id or folder, or of the one around the current folder.
//!
//! The lock of a session is read once, with the current versions of the workspace's own packages from their manifests.
//! [`find_locked`] finds the package that a reference means in it, and [`version_of`] is how its version is shown. What is to be
//! locked is not decided here, and nothing is looked up in a registry.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mu_provider::threads;

use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::source::nearest;
use crate::manifest::{Manifest, Requirement};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::installed::folder_of;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::{ArtifactDigest, PackageId, Reference, VersionSpec};
use crate::workspace::{Member, Workspace};

/// The package that is used for the one that a name means, as [`find_locked`] finds it.
pub fn find_used(
    session: &Session,
    lock: &Lockfile,
    name: &PackageName,
) -> Result<PackageId, CommandError> {
    let id = find_locked(session, lock, name)?;
    let used = lock.used_for(&id).clone();
    if used != id {
        session.events.warning(&Warning::ReplacedName { id, by: used.clone() });
    }
    Ok(used)
}

/// The locked package that a name means: by its id, or by the end of it that no other has.
pub fn find_locked(
    session: &Session,
    lock: &Lockfile,
    name: &PackageName,
) -> Result<PackageId, CommandError> {
    let reference = name.reference();
    if let Some(id) = locked_as_called(session, lock, reference)? {
        return Ok(id);
    }
    // `acme/net/subnet` may be the element `subnet` of the package `acme/net`.
    if let Some(id) = package_of_element(session, lock, reference) {
        return Ok(id);
    }
    let (id, name) = (session.id_of_argument(reference), reference.name().as_str());
    let error = CommandError::new(Code::NotFound, format!("`{id}` is not installed here"));
    // Their common prefix before the name does not matter.
    let ids = || lock.packages.iter().map(|package| &package.id);
    let like = nearest(id.name_str(), ids().map(PackageId::name_str));
    let like = like.and_then(|name| ids().find(|id| id.name_str() == name));
    let like = like.or_else(|| {
        let near = nearest(name, ids().map(last_name))?;
        ids().find(|id| last_name(id) == near)
    });
    Err(match like {
        Some(id) => error.hint(format!("did you mean `{id}`?")),
        None => error.hint("`mu list` shows what is installed"),
    })
}

/// The locked package that is called so. All commands that take the name of a package in use ask this; `None` if none is, and an error
/// if several may be.
pub(crate) fn locked_as_called(
    session: &Session,
    lock: &Lockfile,
    reference: &Reference,
) -> Result<Option<PackageId>, CommandError> {
    if let Some(id) = locked_as_written(session, lock, reference) {
        return Ok(Some(id));
    }
    if reference.base().is_some() {
        return Ok(None);
    }
    let name = reference.name().as_str();
    let mut meant = locally_called(session, lock, name);
    if meant.is_empty() {
        // By the end of the name.
        let locked = lock.packages.iter().map(|package| &package.id);
        let replaced = lock.replaced.iter().map(|replaced| &replaced.id);
        meant = locked.chain(replaced).filter(|id| ends_in(id, name)).cloned().collect();
    }
    // Several majors of a package follow each other, and are one answer.
    meant.dedup();
    match &meant[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => Err(ambiguous(name, several)),
    }
}

/// The locked package with the id that a reference says as it is written.
fn locked_as_written(
    session: &Session,
    lock: &Lockfile,
    reference: &Reference,
) -> Option<PackageId> {
    let id = session.id_of_argument(reference);
    // Also a package that was replaced, because people still use its name.
    if lock.find(&id).next().is_some() || lock.replacement(&id).is_some() {
        return Some(id);
    }
    // `localhost/…`, as files have packages on this machine, cannot be read as base and name; mu prints `../…`, seen from the lock.
    let is_printed = |package: &&LockedPackage| {
        reference.base().is_none() && package.id.as_str() == reference.name().as_str()
            || reference
                .local()
                .is_some_and(|folder| session.shown.folder(&package.id).as_deref() == Some(folder))
    };
    lock.packages.iter().find(is_printed).map(|package| package.id.clone())
}

/// The locked packages that manifests of the workspace call so, as a local name of theirs.
pub(crate) fn locally_called(session: &Session, lock: &Lockfile, name: &str) -> Vec<PackageId> {
    let mut meant = Vec::new();
    for member in &session.workspace.members {
        let (manifest, places) = (&member.manifest, &session.places);
        let all = manifest.all_dependencies();
        for Requirement { reference, .. } in all.filter(|one| one.alias.as_deref() == Some(name)) {
            let found = match reference.local() {
                Some(_) => {
                    let defaults = session.reference_defaults();
                    let id = places.id_of(reference, &defaults, &member.folder, &session.workspace);
                    lock.find(&id).next().map(|package| package.id.clone())
                }
                None => locked_as_written(session, lock, &reference.with_version(None)),
            };
            meant.extend(found);
        }
    }
    meant.sort();
    meant
}

/// Whether the name of a package is this one, or ends in it: `aws/ec2` in `ec2`, but not in `c2`.
pub(crate) fn ends_in(id: &PackageId, end: &str) -> bool {
    let before = id.name_str().strip_suffix(end);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

fn last_name(id: &PackageId) -> &str {
    id.name_str().rsplit('/').next().unwrap_or_default()
}

/// The locked package whose element a reference names, as the installed version exports it.
pub(crate) fn package_of_element(
    session: &Session,
    lock: &Lockfile,
    reference: &Reference,
) -> Option<PackageId> {
    let whole = session.id_of_argument(reference);
    let mut place = whole.as_str();
    while let Some((shorter, _)) = place.rsplit_once('/') {
        place = shorter;
        let Ok(id) = PackageId::parse(place) else { break };
        if lock.find(&id).next().is_none() {
            continue;
        }
        // The longest prefix that is locked decides: a shorter one would be another package.
        let element = whole.as_str().get(place.len() + 1..)?;
        let exports = exports_here(session, &id)?;
        return exports.iter().any(|export| export == element).then_some(id);
    }
    None
}

/// What the installed version of a package exports; `None` if it is not installed.
pub(crate) fn exports_here(session: &Session, id: &PackageId) -> Option<Vec<String>> {
    let folder = session.packs().pack_path(&folder_of(id));
    Some(Manifest::load_head(&folder).ok()??.exports)
}

/// The error about a name that several packages have.
pub(crate) fn ambiguous(
    name: &str,
    ids: impl IntoIterator<Item = impl std::fmt::Display>,
) -> CommandError {
    let ids: Vec<String> = ids.into_iter().map(|id| format!("`{id}`")).collect();
    CommandError::new(Code::Usage, format!("`{name}` could be {}", ids.join(" or ")))
        .hint("name one of them in full")
}

/// A locked package's version for people: with its commit if the version says nothing, and with its channel.
pub fn version_of(package: &LockedPackage) -> String {
    let commit = package.commit.as_ref();
    let commit = commit.filter(|_| !package.is_versioned() || package.reference.is_some());
    let commit = commit.map(|commit| commit.get(..7).unwrap_or(commit));
    let artifact = package.artifact.map(|digest| digest.to_string());
    let commit = commit.or(artifact.as_deref().map(ArtifactDigest::shortened));
    let details: Vec<&str> = commit.into_iter().chain(package.channel.as_deref()).collect();
    match details.is_empty() {
        true => package.version.clone(),
        false => format!("{} ({})", package.version, details.join(", ")),
    }
}

impl Session {
    /// The lock on disk, or `None`; read once, and again after it was written. The versions of the
    /// workspace's own packages come from their manifests. While packages are edited, it is the lock of these.
    pub fn lockfile(&self) -> Result<Option<Arc<Lockfile>>, CommandError> {
        let mut known = threads::lock(&self.lockfile);
        if let Some(lockfile) = &*known {
            return Ok(lockfile.clone());
        }
        let edits = match self.locks_edits() {
            true => Lockfile::read_edits(&self.workspace.root)?,
            false => None,
        };
        let lockfile = match edits {
            Some(lock) => Some(lock),
            None => match Lockfile::read(self.lock_folder()) {
                Ok(lock) => lock,
                // Only a conflict of a merge is mended. Of everything else, the first error is told.
                Err(error) => Some(merged_lock(self)?.ok_or(error)?),
            },
        };
        let lockfile = lockfile.map(|lock| self.up_to_date(lock));
        *known = Some(lockfile.clone());
        Ok(lockfile)
    }

    /// The lock as it was read, with the current versions of the workspace's own packages.
    pub(super) fn up_to_date(&self, mut lock: Lockfile) -> Arc<Lockfile> {
        for package in
            lock.packages.iter_mut().filter(|package| package.source.is_workspace_folder())
        {
            let local = self.places.member_of(&package.id);
            let local = local.or_else(|| self.places.member_called(&package.id, &self.workspace));
            let Some(version) = local.and_then(|local| local.version.as_ref()) else { continue };
            let version = version.to_string();
            if package.version != version {
                package.version = version;
                self.lock_lags.store(true, Ordering::Relaxed);
            }
        }
        Arc::new(lock)
    }

    /// Whether the lock on disk has other versions of the workspace's own packages than their manifests.
    pub(crate) fn lock_lags(&self) -> bool {
        self.lock_lags.load(Ordering::Relaxed)
    }

    /// Writes the lock.
    pub(crate) fn write_lockfile(&self, lockfile: &Lockfile) -> Result<(), CommandError> {
        *threads::lock(&self.lockfile) = None;
        if self.locks_edits() {
            self.ignore_edits(None)?;
            return Ok(lockfile.write_edits(&self.workspace.root)?);
        }
        Ok(lockfile.write(self.lock_folder())?)
    }
}

/// The lock that both sides of a merge make together, for a command that then writes it.
fn merged_lock(session: &Session) -> Result<Option<Lockfile>, CommandError> {
    if session.lock.is_none() || session.options.locked || session.options.frozen {
        return Ok(None);
    }
    let fits = |package: &LockedPackage| is_accepted_by_members(session, package);
    let Some(merged) = Lockfile::read_merge(session.lock_folder(), &fits)? else {
        return Ok(None);
    };
    let settled: Vec<String> = (merged.settled.iter())
        .map(|(id, version)| format!("{} {version}", session.short_name(id)))
        .collect();
    let settled = match settled.is_empty() {
        true => String::new(),
        false => format!(", of two versions the higher that fits: {}", settled.join(", ")),
    };
    session.events.note(&match merged.is_marked {
        true => {
            format!("Mu.lock was in a merge conflict: its entries are those of both sides{settled}")
        }
        false => format!("Mu.lock had the entries of both sides of a merge{settled}"),
    });
    Ok(Some(merged.lock))
}

/// Whether the manifests of the workspace accept a locked version.
fn is_accepted_by_members(session: &Session, package: &LockedPackage) -> bool {
    let Some(version) = package.parsed_version() else { return true };
    session.workspace.members.iter().all(|member| {
        let manifest = &member.manifest;
        let mut entries = manifest.all_dependencies();
        entries.all(|entry| {
            let reference = &entry.reference;
            let (defaults, from) = (&member.defaults, &member.folder);
            let id = session.places.id_of(reference, defaults, from, &session.workspace);
            id != package.id || reference.spec().accepts(&version, true)
        })
    })
}

/// A package as a command line names it, without a version.
#[derive(Debug, Clone)]
pub struct PackageName {
    text: String,
    reference: Reference,
}

/// What a package is named for by an argument that has no place for a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// `mu remove`.
    Remove,
    /// `mu why`.
    Why,
    /// `mu tree`.
    Tree,
    /// `mu tree --invert`.
    Invert,
    /// `mu resolve --without`.
    Without,
    /// `mu unpin`.
    Unpin,
    /// `mu build`.
    Build,
    /// `mu verify`.
    Verify,
    /// `mu edit`.
    Edit,
    /// `mu edit --done`.
    Done,
    /// A package of the workspace, whose version is in its manifest.
    Member,
}

impl Purpose {
    /// What the argument is for, and what to run instead: first without the version, then with it. `{name}` stands for the
    /// package, and `{version}` for the package with the version.
    fn words(self) -> (&'static str, &'static [&'static str]) {
        const ASK: &str =
            "`mu resolve --with {version} --explain` shows what that version would change";
        // Where some command takes the version, it is the second one. Where none does, the person wants to know what that
        // version would change.
        match self {
            Self::Remove => (
                "`mu remove` removes a package in whatever version it is",
                &[
                    "`mu remove {name}` removes it",
                    "`mu update {version}` moves it to that version",
                ],
            ),
            Self::Why => (
                "`mu why` is about the version that is in use",
                &["`mu why {name}` explains that one", ASK],
            ),
            Self::Tree => (
                "`mu tree` is about the version that is in use",
                &["`mu tree {name}` shows what that one needs", ASK],
            ),
            Self::Invert => (
                "`mu tree --invert` is about the version that is in use",
                &["`mu tree --invert {name}` shows what needs that one", ASK],
            ),
            Self::Without => (
                "`--without` leaves a package out in every version",
                &[
                    "`mu resolve --without {name}` does",
                    "`mu resolve --exclude {version}` leaves out that version",
                ],
            ),
            Self::Unpin => (
                "`mu unpin` restores what was there before the pin",
                &["`mu unpin {name}` does", "`mu pin {version}` pins that version"],
            ),
            Self::Build => (
                "`mu build` builds the version that is in use",
                &["`mu build {name}` does", "`mu update {version}` moves to that version first"],
            ),
            Self::Verify => (
                "`mu verify` checks the version that is in use",
                &["`mu verify {name}` does", "`mu update {version}` moves to that version first"],
            ),
            Self::Edit => (
                "`mu edit` begins with the version that is in use",
                &["`mu edit {name}` does", "`mu update {version}` moves to that version first"],
            ),
            Self::Done => (
                "`mu edit --done` ends the edit of a package, whatever its version",
                &["`mu edit --done {name}` does"],
            ),
            Self::Member => (
                "a package of the workspace has one version, the one in its manifest",
                &["name it alone: {name}"],
            ),
        }
    }
}

impl PackageName {
    /// Reads an argument that has no place for a version.
    pub fn without_version(text: &str, purpose: Purpose) -> Result<Self, CommandError> {
        let (name, version) = Self::with_version(text)?;
        let Some(version) = version else { return Ok(name) };
        let (reason, instead) = purpose.words();
        let message = format!("`{text}` names the version {version}, but {reason}");
        let (alone, whole) = (quoted_for_shell(name.reference.as_str()), quoted_for_shell(text));
        let hints =
            instead.iter().map(|hint| hint.replace("{name}", &alone).replace("{version}", &whole));
        Err(hints.fold(CommandError::new(Code::Usage, message), CommandError::hint))
    }

    /// Reads several arguments that have no place for a version.
    pub fn all_alone(texts: &[String], purpose: Purpose) -> Result<Vec<Self>, CommandError> {
        texts.iter().map(|text| Self::without_version(text, purpose)).collect()
    }

    /// Reads an argument whose version, if it has one, the caller uses.
    pub fn with_version(text: &str) -> Result<(Self, Option<VersionSpec>), CommandError> {
        let whole = Reference::parse(text)?;
        let reference = whole.with_version(None);
        let text = text.split('#').next().unwrap_or(text).to_owned();
        Ok((Self { text, reference }, whole.version().cloned()))
    }

    /// The package, as a reference.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The text, which may be the local name of a dependency.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The place in the workspace's members of the package called `name` (by name, id or folder), or of
/// the one around the current folder. `example` is how the command names one, for hints.
pub(crate) fn target(
    session: &Session,
    name: Option<&str>,
    example: &str,
) -> Result<usize, CommandError> {
    let members = &session.workspace.members;
    if let Some(name) = name {
        // A path comes first, because a shell completes it: `lib` is the folder here, even if a package elsewhere is
        // called so.
        let folder = crate::env::absolute(&session.environment.current, Path::new(name));
        let is_there = |member: &Member| member.folder == folder || member.place == name;
        if let Some(found) = members.iter().position(is_there) {
            return Ok(found);
        }
        // A name with a version is refused with what to write instead. What is no reference at all gets the list of
        // names.
        let named = match PackageName::without_version(name, Purpose::Member) {
            Err(error) if error.code == Code::Usage => return Err(error),
            named => named.ok(),
        };
        let id = named.map(|named| named.reference().id(&session.reference_defaults()));
        return members.iter().position(|member| Some(&member.id) == id.as_ref()).ok_or_else(
            || {
                let message = format!("`{name}` is not a package of this workspace");
                CommandError::new(Code::NotFound, message)
                    .hint(format!("its packages are: {}", names(session)))
            },
        );
    }
    match (around(session)?, members.len()) {
        (Some(index), _) => Ok(index),
        (None, 1) => Ok(0),
        (None, 0) => Err(CommandError::new(
            Code::NotFound,
            format!("there is no package in `{}`", session.workspace.root.display()),
        )
        .hint("`mu init NAME` creates a package here")),
        (None, _) => Err(CommandError::new(
            Code::Usage,
            format!(
                "`{}` has several packages, and this folder is in none of them",
                session.workspace.root.display()
            ),
        )
        .hint(format!("name one, as in `{example}`: {}", names(session)))),
    }
}

/// The place in the workspace's members of the package around the current folder.
pub(crate) fn around(session: &Session) -> Result<Option<usize>, CommandError> {
    let Workspace { root, members, .. } = &session.workspace;
    let inside = session.environment.current.ancestors().take_while(|at| at.starts_with(root));
    for folder in inside {
        if let Some(index) = members.iter().position(|member| member.folder == folder) {
            return Ok(Some(index));
        }
        if let Ok(Some(path)) = Manifest::locate(folder) {
            return Err(left_out(&path, session));
        }
    }
    Ok(None)
}

fn left_out(path: &Path, session: &Session) -> CommandError {
    let message = format!("`{}` is not a package of this workspace", path.display());
    let error = CommandError::new(Code::Workspace, message);
    let why = path.parent().and_then(|folder| session.workspace.left_out.reason_left_out(folder));
    match why {
        Some(why) => error.hint(why.to_string()),
        None => error.hint("hidden folders are not searched for packages"),
    }
}

fn names(session: &Session) -> String {
    let names: Vec<String> = session
        .workspace
        .members
        .iter()
        .map(|member| format!("`{}`", member.manifest.name))
        .collect();
    names.join(", ")
}
