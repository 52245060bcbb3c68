//! `patch`: a working copy of an installed package, and what was changed there as a file of the workspace.
//!
//! `solve::patches` and `apply::patched` use that file afterwards, in every `mu get`.

use std::path::{Path, PathBuf};

use mu_provider::{Digest, Folder, InnerPath, Kind, OwnPath};
use mu_provider_git::patch::{Draft, DraftError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::fs;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::draft::ManifestDraft;
use crate::ops::apply::fetch::bring_locked;
use crate::ops::apply::patched::{Changes, changes, file_of};
use crate::ops::apply::transaction::Transaction;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::session::installed::folder_of;
use crate::ops::session::locked::{PackageName, find_locked};
use crate::ops::session::places::folder_for_people;
use crate::ops::solve::patches::{is_in_folder, is_of_versions, patch_of, read};
use crate::ops::{Code, CommandError, Outcome, Session, Warning};
use crate::reference::{PackageId, Reference, Version};
use crate::store::Stored;
use crate::workspace::PatchFile;
use crate::workspace::edit::{remove_patch, set_patch};

/// The folder of working copies, below the root.
const DRAFTS: OwnPath = InnerPath::own(".mu/patch");

/// The folder of patches, below the root.
const PATCHES: OwnPath = InnerPath::own("patches");

/// A working copy that was made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkingCopy {
    /// The package.
    pub id: PackageId,
    /// Its version.
    pub version: String,
    /// The folder to change files in.
    pub folder: String,
}

/// The patches of the workspace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Patches {
    /// The patches, in the order of the settings.
    pub patches: Vec<Listed>,
    /// The working copies that are being changed.
    pub drafts: Vec<WorkingCopy>,
}

/// A patch of the settings.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    /// The package and versions that it is for, as they are written.
    pub key: String,
    /// The file, relative to the workspace's root.
    #[schemars(with = "String")]
    pub file: InnerPath,
    /// The version that it is applied to; none if no package in use is of those versions.
    pub version: Option<String>,
    /// Whether that version is installed with the patch as it is now.
    pub applied: bool,
}

/// Makes a working copy of a locked package, with the patch that it already has; or finds the one that is there.
pub fn begin(session: &Session, reference: &str) -> Result<WorkingCopy, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let package = locked(session, &lock, reference)?;
    let id = &package.id;
    if is_in_folder(package) {
        let place = &package.source.place;
        let message = format!("`{id}` comes from the folder `{place}`, and is not patched");
        return Err(CommandError::new(Code::Usage, message).hint("change its files there"));
    }
    let root = session.workspace.opened()?;
    let place = DRAFTS.join(&file_name(id, "")?);
    let folder = root.path().join(&place);
    let copy = WorkingCopy {
        id: id.clone(),
        version: package.version.clone(),
        folder: folder.display().to_string(),
    };
    // A copy that is there is used again, if it is of what is locked: nobody's changes are written over.
    if root.look_at(&place)?.is_some() {
        root.inner(&place)?;
        let draft = Draft::open(&folder).map_err(failed)?;
        let message = draft.message().map_err(failed)?;
        described(&lock, &message, &folder)?;
        return Ok(copy);
    }
    let _store = session.use_store()?;
    let stored = bring_locked(session, package)?;
    let patch = patch_of(session, package)?;
    let patched = match patch {
        Some(patch) => changes(session, package, patch, &read(session, patch)?.0, &stored)?,
        None => Vec::new(),
    };
    // First this, so that Git never sees the files of a working copy.
    root.write(
        &InnerPath::own(".mu/patch/.gitignore").into(),
        b"# Working copies of `mu patch`.\n*\n",
    )?;
    // Until all of it is there, it has another name.
    let new = DRAFTS.join(&name(&format!(".new-{}", std::process::id()))?);
    root.remove(&new)?;
    let made = make(session, package, &stored, &patched, &root.make_inner(&new)?);
    let made = made.and_then(|()| Ok(root.move_inside(&new, &place)?));
    if made.is_err() {
        // What is left now does no harm.
        let _ = root.remove(&new);
    }
    made?;
    Ok(copy)
}

/// Makes a working copy in an empty folder.
fn make(
    session: &Session,
    package: &LockedPackage,
    stored: &Stored,
    patched: &Changes,
    staging: &Folder,
) -> Result<(), CommandError> {
    let id = &package.id;
    let files = stored.tree.entries().iter().map(|entry| {
        let file = file_of(session, stored, &entry.path)?;
        Ok((entry.path.clone(), file))
    });
    // The package is the first commit, and an earlier patch lies on it as changes. So what Git says has changed is all
    // of the patch, and not what was added to it.
    write(staging, &files.collect::<Result<Changes, CommandError>>()?)?;
    let digest = stored.digest;
    Draft::create(staging.path(), &format!("{id} {}\n\n{digest}\n", package.version))
        .map_err(failed)?;
    write(staging, patched)
}

/// A patch that was saved.
#[derive(Debug)]
pub struct Saved {
    /// The package and versions that it is for.
    pub key: String,
    /// The file, relative to the workspace's root.
    pub file: InnerPath,
    /// What installing it changed.
    pub outcome: Outcome,
}

/// The folder of a working copy: the folder itself, or that of the package whose name `copy` is.
fn working_copy(session: &Session, copy: &str) -> Result<PathBuf, CommandError> {
    let folder = crate::env::absolute(&session.environment.current, copy.as_ref());
    if fs::exists(&folder)? {
        return Ok(folder);
    }
    let lock = session.lockfile()?.unwrap_or_default();
    match locked(session, &lock, copy) {
        Ok(package) => {
            let place = DRAFTS.join(&file_name(&package.id, "")?);
            let folder = session.workspace.opened()?.path().join(place);
            if fs::exists(&folder)? {
                return Ok(folder);
            }
            let name = session.short_name(&package.id);
            let message = format!("there is no working copy of `{name}`");
            Err(CommandError::new(Code::NotFound, message)
                .hint(format!("`mu patch {}` makes one", quoted_for_shell(&name))))
        }
        Err(error) if error.code == Code::Usage => Err(error),
        // It was meant as a folder, which the error is about.
        Err(_) => Ok(folder),
    }
}

/// Writes what was changed in a working copy, given by its folder or its package, into a file of the workspace, names that in the
/// settings, and installs the package with it.
pub fn save(session: Session, copy: &str) -> Result<Saved, CommandError> {
    let folder = working_copy(&session, copy)?;
    let root = session.workspace.opened()?;
    if let Ok(inside) = folder.strip_prefix(root.path().join(DRAFTS.as_str())) {
        // Nothing is read through a link there.
        root.inner(&DRAFTS.join(&name(&inside.to_string_lossy())?))?;
    }
    let draft = Draft::open(&folder).map_err(failed)?;
    let message = draft.message().map_err(failed)?;
    let lock = session.lockfile()?.unwrap_or_default();
    let package = described(&lock, &message, &folder)?;
    let (text, left_out) = draft.patch().map_err(failed)?;
    if !left_out.is_empty() {
        session.events.warning(&Warning::PatchWithout { files: left_out });
    }
    if text.is_empty() {
        let message = format!("nothing was changed in `{}`", folder.display());
        return Err(CommandError::new(Code::NotFound, message)
            .hint("change files there, and run this command again"));
    }
    let _store = session.use_store()?;
    let stored = bring_locked(&session, package)?;
    let file = PATCHES.join(&file_name(&package.id, &format!("@{}.patch", package.version))?);
    let before = patch_of(&session, package)?.cloned();
    let key =
        before.as_ref().map_or_else(|| key_of(&session, package), |before| before.key.clone());
    let reference = Reference::parse(&key)?;
    let versions = reference.version().cloned();
    let patch =
        PatchFile { key: key.clone(), id: package.id.clone(), versions, file: file.clone() };
    // Tried on the package before anything is written.
    changes(&session, package, &patch, &text, &stored)?;
    let (path, settings) = settings(&session)?;
    let settings = set_patch(&path, &settings, &key, file.as_str())?;
    // The patch before the settings that name it: a run that is killed in between leaves a file that nobody uses.
    session.workspace.opened()?.write(&file, &text)?;
    fs::write_through_links(&path, settings.as_bytes())?;
    // From here on, the settings are as they are now on disk.
    let session = session.with_settings(|settings| {
        settings.patches.retain(|other| other.key != key);
        settings.patches.push(patch);
    });
    if let Some(before) = before {
        remove_unused(&session, &before)?;
    }
    let outcome = install(&session).map_err(|error| {
        error
            .hint(format!("the patch was saved as `{file}`; `mu get` installs the package with it"))
    })?;
    Ok(Saved { key, file, outcome })
}

/// Removes the patches of packages from the settings, with their files, and installs the packages as they are published.
pub fn drop(session: Session, references: &[String]) -> Result<Outcome, CommandError> {
    let (path, mut text) = settings(&session)?;
    let mut dropped = Vec::new();
    for reference in references {
        let (name, version) = PackageName::with_version(reference)?;
        let reference = name.reference().with_version(version);
        let lock = session.lockfile()?.unwrap_or_default();
        let id = find_locked(&session, &lock, &name)
            .unwrap_or_else(|_| session.id_of_argument(&reference));
        let is_meant = |patch: &&PatchFile| {
            let version = reference.version();
            patch.id == id && (version.is_none() || version == patch.versions.as_ref())
        };
        let patches = &session.workspace.settings.patches;
        let meant: Vec<PatchFile> = patches.iter().filter(is_meant).cloned().collect();
        if meant.is_empty() {
            let message = format!("`{reference}` is not patched");
            return Err(
                CommandError::new(Code::NotFound, message).hint("`mu patch` lists the patches")
            );
        }
        for patch in meant {
            if let Some(changed) = remove_patch(&path, &text, &patch.key)? {
                text = changed;
            }
            dropped.push(patch);
        }
    }
    let session = session.with_settings(|settings| {
        settings.patches.retain(|patch| !dropped.contains(patch));
    });
    // The files go last, so that a patch is not lost where its package cannot be installed without it, and the settings never name
    // one that is gone.
    let outcome = install(&session)?;
    fs::write_through_links(&path, text.as_bytes())?;
    for patch in &dropped {
        remove_unused(&session, patch)?;
    }
    Ok(outcome)
}

/// Installs as the settings are now.
fn install(session: &Session) -> Result<Outcome, CommandError> {
    Transaction::tidied(session, ManifestDraft::new(session)?)?.run(session, false)
}

/// The patches and the working copies.
pub fn list(session: &Session) -> Result<Patches, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let mut patches = Vec::new();
    for patch in &session.workspace.settings.patches {
        // Of several majors that it is for, the highest is told.
        let mut package = None;
        for locked in lock.find(&patch.id) {
            if patch_of(session, locked)? == Some(patch) {
                package = Some(locked);
            }
        }
        let now = read(session, patch)?.1;
        patches.push(Listed {
            key: patch.key.clone(),
            file: patch.file.clone(),
            version: package.map(|package| package.version.clone()),
            applied: package
                .is_some_and(|package| package.patch == Some(now) && package.patched.is_some()),
        });
    }
    // A folder there that is no working copy of mu's is passed over.
    let mut found = Vec::new();
    let root = session.workspace.opened()?;
    let drafts = match root.look_at(&DRAFTS.into())? {
        None => Vec::new(),
        Some(_) => root.inner(&DRAFTS.into())?.entries()?,
    };
    for (name, _) in drafts.into_iter().filter(|(_, kind)| *kind == Kind::Folder) {
        let folder = root.path().join(DRAFTS.as_str()).join(name);
        let Ok(draft) = Draft::open(&folder) else { continue };
        let message = draft.message().map_err(failed)?;
        if let Some((id, version, _)) = read_message(&message) {
            found.push(WorkingCopy {
                id,
                version: version.to_owned(),
                folder: folder.display().to_string(),
            });
        }
    }
    found.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok(Patches { patches, drafts: found })
}

/// The locked package that a reference names; of several majors, the highest that fits.
fn locked<'l>(
    session: &Session,
    lock: &'l Lockfile,
    text: &str,
) -> Result<&'l LockedPackage, CommandError> {
    let (name, version) = PackageName::with_version(text)?;
    let reference = name.reference().with_version(version);
    let id = match find_locked(session, lock, &name) {
        Err(error) if error.code == Code::Usage => return Err(error),
        found => found.unwrap_or_else(|_| session.id_of_argument(&reference)),
    };
    let used = lock.used_for(&id);
    let fits = |package: &&LockedPackage| is_of_versions(package, reference.version());
    if let Some(package) = lock.find(used).filter(fits).last() {
        return Ok(package);
    }
    let versions: Vec<&str> = lock.find(used).map(|package| package.version.as_str()).collect();
    let name = session.short_name(used);
    if let Some(own) = session.workspace.member(used).filter(|_| versions.is_empty()) {
        let place = folder_for_people(&own.place);
        let message = format!("`{used}` is a package of this workspace, and needs no patch");
        return Err(
            CommandError::new(Code::Usage, message).hint(format!("change its files in `{place}`"))
        );
    }
    Err(if versions.is_empty() {
        let message = format!("`{used}` is not in Mu.lock");
        // Without its scheme, it may be another package, or none.
        let whole = reference.with_version(None);
        let added = match reference.protocol() {
            Some(_) => quoted_for_shell(whole.as_str()),
            None => name.into_owned(),
        };
        CommandError::new(Code::NotFound, message)
            .hint(format!("install it first: `mu add {added}`"))
    } else {
        let versions = versions.join(" and ");
        let message = format!("`{reference}` is not in Mu.lock, which has `{used}` {versions}");
        CommandError::new(Code::NotFound, message)
            .hint(format!("`mu update {}` installs it first", quoted_for_shell(reference.as_str())))
    })
}

/// The locked package that a working copy is of.
fn described<'l>(
    lock: &'l Lockfile,
    message: &str,
    folder: &Path,
) -> Result<&'l LockedPackage, CommandError> {
    let Some((id, version, digest)) = read_message(message) else {
        return Err(failed(DraftError::Not(folder.to_owned())));
    };
    // By its content: changes to another content under the same version would be changes to something else.
    let found = lock.find(&id).find(|package| package.digest == Some(digest));
    found.ok_or_else(|| {
        let message = format!(
            "`{}` is a copy of `{id}` {version}, which Mu.lock no longer has",
            folder.display()
        );
        CommandError::new(Code::Conflict, message)
            .hint(format!("`mu update '{id}#{version}'` goes back to that version"))
            .hint(format!(
                "`git -C {} diff` shows what was changed",
                quoted_for_shell(&folder.to_string_lossy())
            ))
    })
}

/// The package, version and content that the first commit of a working copy names.
fn read_message(message: &str) -> Option<(PackageId, &str, Digest)> {
    let mut lines = message.lines();
    let (id, version) = lines.next()?.split_once(' ')?;
    let digest = lines.nth(1)?.parse().ok()?;
    Some((PackageId::parse(id).ok()?, version, digest))
}

/// What a new patch is for: the versions that share the first two numbers with the one it was made for, and are not lower.
fn key_of(session: &Session, package: &LockedPackage) -> String {
    // The id of a package on this machine, `localhost/…`, is read as a name below the default base.
    let own = package.id.to_string();
    let is_read = |reference: Reference| session.id_of_argument(&reference) == package.id;
    let id = match Reference::parse(&own).is_ok_and(is_read) {
        true => own,
        false => session.index().written(&package.id).unwrap_or(own),
    };
    let version = package.parsed_version().filter(|version| {
        !package.is_composite && !version.is_prerelease() && package.is_versioned()
    });
    match (version.as_ref().and_then(Version::as_semver), &package.commit) {
        (Some(version), _) => format!("{id}#^{}.{}", version.major, version.minor),
        (None, Some(commit)) => format!("{id}#{commit}"),
        (None, None) => format!("{id}#{}", package.version),
    }
}

/// The name of the file or folder of a package: its id, with `+` for `/`, and this end.
fn file_name(id: &PackageId, end: &str) -> Result<InnerPath, CommandError> {
    name(&format!("{}{end}", folder_of(id).replace('/', "+")))
}

fn name(text: &str) -> Result<InnerPath, CommandError> {
    InnerPath::name(text).map_err(|error| CommandError::from_error(Code::Reference, error))
}

/// The settings' file and its text.
fn settings(session: &Session) -> Result<(PathBuf, String), CommandError> {
    let path = session.settings_file(false);
    let text = fs::read_text_if_there(&path)?.unwrap_or_default();
    Ok((path, text))
}

/// Removes the file of a patch, unless another patch has the same.
fn remove_unused(session: &Session, patch: &PatchFile) -> Result<(), CommandError> {
    let mut others = session.workspace.settings.patches.iter();
    if others.any(|other| other.file == patch.file) {
        return Ok(());
    }
    Ok(session.workspace.opened()?.remove_file(&patch.file)?)
}

/// Writes files that a person may change.
fn write(folder: &Folder, files: &Changes) -> Result<(), CommandError> {
    for (path, file) in files {
        let path = InnerPath::parse(path)
            .map_err(|error| CommandError::from_error(Code::Integrity, error))?;
        match file {
            Some((mode, content)) => folder.put(&path, *mode, content)?,
            None => folder.remove_file(&path)?,
        }
    }
    Ok(())
}

fn failed(error: DraftError) -> CommandError {
    match error {
        DraftError::Not(_) => CommandError::from_error(Code::NotFound, error)
            .hint("`mu patch REF` makes a working copy, and says where it is"),
        _ => CommandError::from_error(Code::Io, error),
    }
}
