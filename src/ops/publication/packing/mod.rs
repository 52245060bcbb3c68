//! Creates the archive of a package, with the same bytes from the same files on every machine.
//!
//! [`contents`](crate::contents) chooses the files, `archive.rs` writes and reads back. The archive also has the part
//! of `Mu.lock` about its package, with the exact versions that it was built with. This file warns of what is packed,
//! or not, and was probably not intended. It refuses files that contain secrets, by their names, because a publication
//! can never be undone. Contents are not read. If a name only looks like a secret, its author needs `--force`.

mod archive;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[cfg(feature = "publish")]
use mu_provider::Mode;
use mu_provider::{LONGEST_LFS_POINTER, and_more, is_lfs_pointer, publishable};
use mu_provider_hub::wire;

use crate::contents::{self, Content, Kind, Owned, PackageItem};
use crate::lock::{FILE_NAME, Lockfile};
use crate::manifest::edit::{Editor, Section};
use crate::manifest::{FileWarning, Globs, JSON_NAME, Manifest, YAML_NAME, error_at_readme};
use crate::ops::requirements::Requirements;
use crate::ops::requirements::editing::{locked_for, pin_of};
use crate::ops::requirements::names::id_in;
use crate::ops::requirements::requester::Requester;
use crate::ops::solve::question::Question;
use crate::ops::solve::{names, resolve};
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::PackageId;
#[cfg(feature = "publish")]
use crate::store::Stored;
use crate::workspace::Member;

pub use self::archive::PackedArchive;

/// How an archive is made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Making<'a> {
    /// Whether files that look like secrets are packed too.
    pub(super) force: bool,
    /// Whether dependencies are written with their locked versions.
    pub(super) pinned: bool,
    /// A file that is left out.
    pub(super) not: Option<&'a Path>,
    /// Whether it is only a warning if the versions that it was built with cannot be chosen here.
    pub(super) may_lack_versions: bool,
}

/// A package that was packed.
#[derive(Debug)]
pub struct Packed {
    /// Its manifest, as it is in the archive.
    pub manifest: Manifest,
    /// The archive.
    pub archive: PackedArchive,
    /// Where it was written.
    pub path: Option<PathBuf>,
}

/// Refuses a package of another ecosystem, whose own tools pack and publish it, whatever it lacks for mu.
pub(super) fn refuse_foreign(member: &Member) -> Result<(), CommandError> {
    let path = &member.manifest_path;
    let Some(format) = crate::formats::format_of_manifest(path) else { return Ok(()) };
    let (path, name) = (path.display(), format.name);
    let text = format!(
        "`{path}` is the manifest of a package of the format `{name}`, which mu does not pack"
    );
    Err(CommandError::new(Code::Manifest, text).hint(format.packed_by))
}

/// Creates the archive of the member at `index`, with the part of `lock` about its dependencies.
pub(super) fn make(
    session: &Session,
    index: usize,
    lock: &Lockfile,
    making: Making<'_>,
) -> Result<Packed, CommandError> {
    let member = &session.workspace.members[index];
    refuse_foreign(member)?;
    let mut warnings = Vec::new();
    // The files. Never among them: clones of other packages, the cache, and an archive that is about to be written
    // there.
    let mut others = folders_of_this_machine(session);
    others.extend(making.not.map(Path::to_owned));
    let mut items = own_content(session, member, &others, &mut warnings)?;
    refuse_secrets(&items, making.force, &mut warnings)?;
    refuse_pointers(&items, making.force, &mut warnings)?;
    let mut manifest = member.manifest.clone();
    // The versions that it was built with go along, as a part of the lock. For whoever requires the package, they are
    // no requirement.
    let part = match cut_or_resolve(session, lock, member) {
        Err(error) if making.may_lack_versions && !making.pinned => {
            warnings.push(Warning::WithoutExactVersions { why: error.error.to_string() });
            None
        }
        part => part?,
    };
    if making.pinned {
        let text = pinned(session, index, part.as_ref().unwrap_or(lock))?;
        (manifest, _) = Manifest::parse(&member.manifest_path, &text)?;
        let name = member.manifest_path.file_name().and_then(|name| name.to_str());
        let own = items.iter_mut().find(|item| Some(item.path.as_str()) == name);
        own.expect("the manifest is always packed").content = Content::Text(text);
    }
    if let Some(part) = part {
        // The items are sorted, so that the same files make the same bytes.
        let at = items.partition_point(|item| item.path.as_bytes() < FILE_NAME.as_bytes());
        let content = Content::Text(part.print());
        items.insert(at, PackageItem { path: FILE_NAME.to_owned(), content });
    }
    // Of the manifest that is packed, which may be the pinned one.
    check_limits(&manifest)?;
    let archive = PackedArchive::make(session, &archive_file_name(&manifest)?, &items)?;
    for warning in warnings {
        session.events.warning(&warning);
    }
    Ok(Packed { manifest, archive, path: None })
}

/// The folders that are never packed: clones of other packages, the cache, and mu's own folder.
pub(super) fn folders_of_this_machine(session: &Session) -> Vec<PathBuf> {
    let mut others = session.folders_of_edits();
    others.extend([session.environment.cache.clone(), session.environment.mu_home.clone()]);
    others
}

/// The folder of `member`, without `others`.
pub(super) fn source_of<'a>(
    member: &'a Member,
    owned: &'a Owned,
    others: &'a [PathBuf],
) -> contents::Source<'a> {
    let (folder, manifest) = (&*member.folder, &member.manifest);
    let file = member.manifest_path.strip_prefix(folder).ok().and_then(Path::to_str);
    let kind = Kind::Own { manifest, file: file.unwrap_or_default() };
    contents::Source { folder, kind, owned, others }
}

/// The files of `member`, without its lock; `others` are left out.
fn own_content(
    session: &Session,
    member: &Member,
    others: &[PathBuf],
    warnings: &mut Vec<Warning>,
) -> Result<Vec<PackageItem>, CommandError> {
    let owned = &Owned::around(&member.folder, &session.environment)?;
    let source = source_of(member, owned, others);
    let mut in_files = Vec::new();
    let chosen = contents::choose_contents(&source, &session.environment, &mut in_files)?;
    warnings.extend(in_files.into_iter().map(Warning::File));
    warn(member, &chosen, warnings);
    Ok(chosen)
}

/// Packs a tree of the store as it is; errors call it `name`.
#[cfg(feature = "publish")]
pub(super) fn archive_of(
    session: &Session,
    name: &str,
    stored: &Stored,
) -> Result<PackedArchive, CommandError> {
    let items = stored.tree.entries().iter().map(|entry| {
        let place = stored.folder.join(&entry.path);
        let content = match entry.mode {
            Mode::Symlink => {
                let target = crate::fs::read_link(&place)?;
                Content::Link(target.to_string_lossy().into_owned())
            }
            mode => {
                let executable = mode == Mode::Executable;
                Content::File { place, executable, recorded: None }
            }
        };
        Ok(PackageItem { path: entry.path.clone(), content })
    });
    let items: Vec<PackageItem> = items.collect::<Result<_, CommandError>>()?;
    PackedArchive::make(session, name, &items)
}

/// Refuses a manifest that is larger than hubs accept.
fn check_limits(manifest: &Manifest) -> Result<(), CommandError> {
    publishable::check_line(&manifest.index_line()).map_err(|exceeded| {
        let name = &manifest.name;
        let message = format!("hubs do not accept the manifest of `{name}`: {exceeded}");
        CommandError::new(Code::Manifest, message)
            .hint("shorten it; longer texts belong in the readme")
    })
}

/// The usual name of a package's archive.
pub(super) fn archive_file_name(manifest: &Manifest) -> Result<String, CommandError> {
    if manifest.version.is_none() {
        let message =
            format!("the manifest of `{}` has no `version`, which an archive needs", manifest.name);
        return Err(
            CommandError::new(Code::Manifest, message).hint("add a line such as `version: 0.1.0`")
        );
    }
    let path = wire::archive_path(manifest.name.name().as_str(), &manifest.to_release());
    Ok(path.rsplit('/').next().unwrap_or(&path).to_owned())
}

/// Refuses files that look like secrets, also where a link calls them otherwise.
fn refuse_secrets(
    items: &[PackageItem],
    force: bool,
    warnings: &mut Vec<Warning>,
) -> Result<(), CommandError> {
    let is_secret = |item: &&PackageItem| {
        let real = match &item.content {
            Content::File { place, .. } => crate::fs::canonicalize(place).ok(),
            _ => None,
        };
        looks_secret(&item.path) || real.is_some_and(|real| looks_secret(&real.to_string_lossy()))
    };
    let found: Vec<&str> = items.iter().filter(is_secret).map(|item| &*item.path).collect();
    if found.is_empty() {
        return Ok(());
    }
    if force {
        let files = found.into_iter().map(str::to_owned).collect();
        warnings.push(Warning::SecretsPacked { files });
        return Ok(());
    }
    let names = format!("`{}`", found.join("`, `"));
    let message = format!("the archive would contain what looks like a secret: {names}");
    Err(CommandError::new(Code::Untrusted, message)
        .hint("exclude it with a line in `.muignore`")
        .hint("if it contains nothing secret, use `--force`")
        .with_details(serde_json::json!({ "files": found })))
}

/// Refuses what Git has in place of files in Git LFS, as it is in a checkout without them: nobody who gets the package could use it.
fn refuse_pointers(
    items: &[PackageItem],
    force: bool,
    warnings: &mut Vec<Warning>,
) -> Result<(), CommandError> {
    let mut found = Vec::new();
    for item in items {
        let Content::File { place, recorded: None, .. } = &item.content else { continue };
        if crate::fs::metadata(place)?.len() < LONGEST_LFS_POINTER
            && is_lfs_pointer(&crate::fs::read(place)?)
        {
            found.push((&*item.path, place));
        }
    }
    let Some(((first, _), others)) = found.split_first() else { return Ok(()) };
    if force {
        let message = "only the Git LFS pointer is there, not the file";
        warnings.extend(
            found.iter().map(|(_, place)| Warning::File(FileWarning::new(place, None, message))),
        );
        return Ok(());
    }
    let others = and_more(others.len());
    let message = format!("of `{first}`{others}, only the Git LFS pointer is there, not the file");
    let files: Vec<&str> = found.iter().map(|(path, _)| *path).collect();
    Err(CommandError::new(Code::Integrity, message)
        .hint("`git lfs pull` gets the files")
        .hint("if pointers are what the package is to have, use `--force`")
        .with_details(serde_json::json!({ "files": files })))
}

/// The text of a member's manifest that requires exactly the locked versions.
fn pinned(session: &Session, index: usize, lock: &Lockfile) -> Result<String, CommandError> {
    let member = &session.workspace.members[index];
    let text = crate::fs::read_text(&member.manifest_path)?;
    let mut editor = Editor::new(&member.manifest_path, text, &member.defaults);
    for dependency in &member.manifest.dependencies {
        let reference = &dependency.reference;
        if reference.local().is_some() {
            continue;
        }
        let id = id_in(session, member, reference);
        if let Some(replaced) = lock.replacement(&id) {
            let message = format!(
                "`{id}` was replaced by `{}`: there is no version to pin it to",
                replaced.by
            );
            return Err(CommandError::new(Code::Conflict, message)
                .hint(format!("depend on `{}` instead", replaced.by)));
        }
        let Some(package) = locked_for(lock, &id, reference) else {
            let message =
                format!("`{id}` is not in {FILE_NAME}, so there is no version to pin it to");
            return Err(CommandError::new(Code::LockOutdated, message).hint("run `mu get` first"));
        };
        let pin = pin_of(session, package, false)?;
        editor.set_version(Section::Dependencies, reference, Some(pin))?;
    }
    Ok(editor.into_text())
}

/// Reports what was probably not intended.
fn warn(member: &Member, chosen: &[PackageItem], warnings: &mut Vec<Warning>) {
    for pattern in member.manifest.files.patterns().filter(|pattern| !pattern.starts_with('!')) {
        let Ok(globs) = Globs::parse([pattern]) else { continue };
        if !chosen.iter().any(|chosen| globs.covers(&chosen.path)) {
            warnings.push(Warning::PatternIdle { pattern: pattern.to_owned() });
        }
    }
    if let Some(readme) = &member.manifest.readme
        && !chosen.iter().any(|chosen| chosen.path == readme.as_str())
    {
        let text = crate::fs::read_text(&member.manifest_path).ok();
        let message = format!("there is no file `{readme}`, which `readme` names");
        let error = text.and_then(|text| error_at_readme(&member.manifest_path, &text, &message));
        let line = error.map(|error| error.line());
        warnings.push(Warning::File(FileWarning::new(&member.manifest_path, line, message)));
    }
    for chosen in chosen {
        let (folder, name) = chosen.path.rsplit_once('/').unwrap_or(("", &chosen.path));
        if !folder.is_empty() && (name == YAML_NAME || name == JSON_NAME) {
            warnings.push(Warning::PackageInside { folder: folder.to_owned() });
        }
    }
}

/// Names of files.
const NAMES: &[&str] = &[
    ".dockercfg",
    ".env",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".terraformrc",
    ".vault-token",
    ".yarnrc",
    ".yarnrc.yml",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_rsa",
    "kubeconfig",
    "terraform.tfstate",
    "terraform.tfstate.backup",
];

/// Endings of names.
const ENDINGS: &[&str] =
    &[".jks", ".kdb", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx", ".pkcs12", ".ppk"];

/// The last parts of paths.
const PATHS: &[&str] = &[
    ".aws/config",
    ".aws/credentials",
    ".azure/accesstokens.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud/application_default_credentials.json",
    ".docker/config.json",
    ".gem/credentials",
    ".kube/config",
    ".m2/settings.xml",
    "private/tokens.json",
];

/// Folders whose whole content counts.
const FOLDERS: &[&str] = &[".ssh", ".gnupg"];

/// Endings of `.env.…` files that contain examples.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist", "defaults", "schema"];

/// Whether a file with this path probably contains a secret; `path` has slashes.
fn looks_secret(path: &str) -> bool {
    let path = path.to_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    // `.env.production` has secrets; `.env.example` and `.env.local.sample` show how to write one.
    let is_environment = name
        .strip_prefix(".env.")
        .is_some_and(|rest| !EXAMPLES.contains(&rest.rsplit('.').next().unwrap_or(rest)));
    let is_path = |known: &&str| {
        path.strip_suffix(*known).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    NAMES.contains(&name)
        || is_environment
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || PATHS.iter().any(is_path)
        || folders.split('/').any(|folder| FOLDERS.contains(&folder))
}

/// The part of `lock` about the dependencies of `member`; if it is incomplete, versions are chosen as `mu get`
/// would, and nothing is written. `None` if the package has no dependencies.
fn cut_or_resolve(
    session: &Session,
    lock: &Lockfile,
    member: &Member,
) -> Result<Option<Lockfile>, CommandError> {
    if member.manifest.dependencies.is_empty() {
        return Ok(None);
    }
    // Without what `mu get` was given: no manifest requires it.
    let required = names::collect_looked_up(session, Vec::new())?;
    let lacking = match cut(session, &required, lock, member) {
        Ok(part) => return Ok(Some(part)),
        Err(lacking) => lacking,
    };
    let unknown = || {
        format!(
            "`{FILE_NAME}` does not name the version of `{lacking}` that `{}` uses",
            member.manifest.name
        )
    };
    let requirements = names::collect_looked_up(session, lock.extra.clone())?;
    let resolved = resolve(session, &Question::without_moves(requirements))
        .map_err(|error| error.while_doing(unknown()))?;
    session.save_index();
    cut(session, &required, &resolved.lock, member)
        .map(Some)
        .map_err(|_| CommandError::new(Code::LockOutdated, unknown()).hint("run `mu get` first"))
}

/// Cuts `lock` down to what `member` depends on; `requirements` are those of the manifests.
fn cut(
    session: &Session,
    requirements: &Requirements,
    lock: &Lockfile,
    member: &Member,
) -> Result<Lockfile, PackageId> {
    let own = Requester::from_member(member);
    // First, the direct dependencies. Each must be locked for exactly this requirement, or the lock is older than the
    // manifest.
    let mut direct = BTreeSet::new();
    for asked in requirements.asked.iter().filter(|asked| asked.by == own) {
        let id = &asked.requirement.id;
        let requested = asked.requested();
        let is_locked = lock.find(id).any(|locked| locked.requested.contains(&requested))
            || lock.replacement(id).is_some_and(|one| one.requested.contains(&requested));
        let is_direct = matches!(asked.line, Some((_, Section::Dependencies)));
        if is_direct && !is_locked {
            return Err(id.clone());
        }
        direct.extend(Some(id.clone()).filter(|_| is_direct));
    }
    // Then, everything that these need.
    let mut reached = BTreeSet::new();
    let mut open: Vec<PackageId> = direct.into_iter().collect();
    while let Some(id) = open.pop() {
        if reached.insert(id.clone()) {
            open.extend(lock.find(&id).flat_map(|package| package.dependencies.iter().cloned()));
            open.extend(lock.replacement(&id).map(|replaced| replaced.by.clone()));
        }
    }
    let mut packages = lock.packages.clone();
    packages.retain(|package| reached.contains(&package.id));
    // Folders of this machine are nobody else's business; others find a package by its id.
    for package in &mut packages {
        if package.source.place.starts_with("file:") {
            package.source.place = format!("https://{}", package.id.base());
        }
        package.url = package.url.take().filter(|url| !url.starts_with("file:"));
    }
    // Last, who requires it: other members of the workspace mean nothing to others, so what they ask for goes.
    let members = session.workspace.members.iter().filter(|other| reached.contains(&other.id));
    let mut askers: BTreeSet<String> =
        members.map(|other| Requester::from_member(other).to_string()).collect();
    askers.insert(own.to_string());
    askers.extend(reached.iter().map(ToString::to_string));
    let mut replaced = lock.replaced.clone();
    replaced.retain(|replaced| reached.contains(&replaced.id));
    // The pack of a replaced package stays on this machine.
    replaced.iter_mut().for_each(|replaced| replaced.kept = None);
    let requested = packages.iter_mut().map(|package| &mut package.requested);
    for requested in requested.chain(replaced.iter_mut().map(|one| &mut one.requested)) {
        requested.retain(|requested| askers.contains(&*requested.by));
    }
    let resolution = lock.resolution.clone();
    Ok(Lockfile { resolution, packages, replaced, ..Lockfile::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_their_names() {
        for (path, expected) in [
            (".env", true),
            ("a/.ENV", true),
            (".env.production", true),
            (".env.example", false),
            (".env.local.sample", false),
            (".environment", false),
            ("keys/server.pem", true),
            ("keys/id_rsa", true),
            ("keys/id_rsa.pub", false),
            ("home/.aws/credentials", true),
            ("x.aws/credentials", false),
            ("credentials", false),
            (".ssh/anything", true),
            ("hub/private/tokens.json", true),
            ("tokens.json", false),
            (".npmrc", true),
            ("docs/keys.md", false),
            ("monkey", false),
        ] {
            assert_eq!(looks_secret(path), expected, "{path}");
        }
    }
}
