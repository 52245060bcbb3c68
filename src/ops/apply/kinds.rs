//! What the tools of other ecosystems need of a change that mu makes: the right kind of package in their manifests, and
//! no files of mu in charts.
//!
//! Manifests of other ecosystems require packages of their own kind, with what their tools need to know of each:
//! [`check_kinds`] and [`describe`]. What a package is, is known once its version was chosen, and nothing was written
//! by then.
//!
//! [`missing`] and [`add`] are about the `.helmignore` of a chart that is the root of a workspace. `helm package` and
//! `helm install` take everything along that lies in a chart's folder and is not named there, so mu names its own
//! files. Lines that are there stay.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_formats::{FORMATS, Format, HelmRepositoryAliases, kcl};
use mu_provider::{Folder, InnerPath, OwnPath, Release};

use crate::contents::rules::Rules;
use crate::index::Candidate;
use crate::index::releases::Position;
use crate::lock::LockedPackage;
use crate::manifest::edit::{Known, Section};
use crate::ops::requirements::editing::{Editing, follows_branch};
use crate::ops::requirements::names::id_in;
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::solve::record::Resolved;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Protocol, Reference, VersionSpec};
use crate::workspace::{LOCK_FILE, MU_FOLDER, Member};
use crate::{formats, fs};

/// Checks what a command adds to manifests of other ecosystems, and what KCL modules need from Git repositories. What could not be
/// looked up is not refused.
pub(crate) fn check_kinds(
    session: &Session,
    changed: &ChangedManifests,
    resolved: &Resolved,
) -> Result<(), CommandError> {
    // First, what the command adds. Of an operator in a `Chart.yaml`, Helm would say only much later that it is no
    // chart.
    for (index, manifest) in changed.iter() {
        let member = &session.workspace.members[index];
        let Some(format) = formats::format_of_manifest(&member.manifest_path) else { continue };
        let before = member.manifest.dependencies.iter().map(|one| &one.reference);
        let before: Vec<PackageId> = before.map(|one| id_in(session, member, one)).collect();
        for added in &manifest.dependencies {
            let id = id_in(session, member, &added.reference);
            // What was there before is not looked up.
            if before.contains(&id) {
                continue;
            }
            let Some(found) = kind(session, resolved, &id) else { continue };
            if found.as_deref() != Some(format.name) {
                return Err(refused(format, member, &added.reference, found.as_deref()));
            }
        }
    }
    // Then, what KCL modules require from Git, whether the command has added it or a person has written it.
    for (index, member) in session.workspace.members.iter().enumerate() {
        let format = formats::format_of_manifest(&member.manifest_path);
        let Some(format) = format.filter(|format| format.name == kcl::FORMAT.name) else {
            continue;
        };
        let manifest = changed.manifest(&session.workspace, index);
        let is_git = |reference: &Reference| reference.protocol().is_some_and(Protocol::is_git);
        for one in manifest.dependencies.iter().filter(|one| is_git(&one.reference)) {
            // A repository can be anything. What was chosen before was looked at then.
            let id = id_in(session, member, &one.reference);
            if is_new(resolved, &id)
                && let Some(found) = kind(session, resolved, &id)
                && found.as_deref() != Some(format.name)
            {
                return Err(refused(format, member, &one.reference, found.as_deref()));
            }
        }
        check_modules(session, member, resolved)?;
    }
    Ok(())
}

/// Checks that each artifact that a KCL module requires is the module that its entry names. KCL also takes a module inside another
/// module's artifact; mu has no place for that, and would install the outer one.
fn check_modules(
    session: &Session,
    member: &Member,
    resolved: &Resolved,
) -> Result<(), CommandError> {
    for need in formats::kcls_needs(&member.manifest_path, true)? {
        let Some(wanted) = need.package.filter(|_| need.git.is_none()) else { continue };
        let id = id_in(session, member, &need.reference);
        let there = resolved.lock.packages.iter().rfind(|one| one.id == id);
        let Some(package) = there.filter(|_| is_new(resolved, &id)) else { continue };
        let name = release_of(session, package).map(|(_, release)| release.name.clone());
        let name = name.filter(|name| !name.is_empty() && *name != wanted);
        let Some(name) = name else { continue };
        let path = member.manifest_path.display();
        let place = need.reference.with_version(None);
        let message = format!(
            "`{path}` requires the module `{wanted}` of `{place}`, and the module there is `{name}`"
        );
        return Err(CommandError::new(Code::Manifest, message).hint(format!(
            "mu takes the module at the top of an artifact, and none inside of it: write `package = \"{name}\"`, or publish `{wanted}` by itself"
        )));
    }
    Ok(())
}

/// Whether a version of a package was chosen now.
fn is_new(resolved: &Resolved, id: &PackageId) -> bool {
    let mut all = resolved.lock.packages.iter().enumerate();
    all.any(|(place, one)| one.id == *id && resolved.releases.contains_key(&place))
}

/// Has what a command adds to manifests of other ecosystems, or moves there, say what is known of the chosen packages, such as
/// the tags of their versions. What could not be looked up stays as it was written. Returns whether a manifest requires something in
/// other words now.
pub(crate) fn describe(
    session: &Session,
    editing: &mut Editing,
    resolved: &Resolved,
) -> Result<bool, CommandError> {
    let mut is_reworded = false;
    let changed = editing.changed.clone();
    for (index, manifest) in changed.iter() {
        let member = &session.workspace.members[index];
        let format = formats::format_of_manifest(&member.manifest_path);
        let dialect = format.map(|format| (format.dialect)(&HelmRepositoryAliases::default()));
        if !dialect.is_some_and(|dialect| dialect.is_described()) {
            continue;
        }
        for (number, entry) in manifest.dependencies.iter().enumerate() {
            let mut before = member.manifest.dependencies.iter();
            if before.any(|before| before.reference == entry.reference) {
                continue;
            }
            let id = id_in(session, member, &entry.reference);
            let is_branch = matches!(entry.reference.version(), Some(VersionSpec::Tag(_)))
                && resolved.lock.find(&id).last().and_then(|one| follows_branch(session, one))
                    == Some(true);
            let release = chosen(session, resolved, &id);
            if release.is_none() && !is_branch {
                continue;
            }
            let tag = release.as_ref().map(|release| {
                let reference = release.reference.as_deref();
                let tag = reference.map(|name| name.strip_prefix("refs/tags/").unwrap_or(name));
                // Where the tag is not known, it is the version. Tags of OCI registries cannot have a `+`; Helm and
                // others write `_` in its place.
                tag.map_or_else(|| release.version.replace('+', "_"), str::to_owned)
            });
            let known = Known {
                tag,
                is_branch,
                kind: release.and_then(|release| release.kind.clone()),
                in_repository: in_repository(session, resolved, &id),
            };
            editing.change(session, index, |editor| {
                editor.describe(Section::Dependencies, number, &known)
            })?;
            let now = editing.changed.manifest(&session.workspace, index);
            let now = now.dependencies.get(number);
            is_reworded |= now.is_none_or(|now| now.reference != entry.reference);
        }
    }
    Ok(is_reworded)
}

/// What the place of the chosen version of a package says of it; `None` if that is not known.
fn chosen(session: &Session, resolved: &Resolved, id: &PackageId) -> Option<Arc<Release>> {
    let mut all = resolved.lock.packages.iter().enumerate().filter(|(_, one)| one.id == *id);
    let (place, package) = all.next_back()?;
    let new = resolved.releases.get(&place).map(|(_, release)| Arc::clone(release));
    new.or_else(|| Some(release_of(session, package)?.1))
}

/// The name that the manifest of a package in a Git repository says, and its folder there, if it has one.
fn in_repository(
    session: &Session,
    resolved: &Resolved,
    id: &PackageId,
) -> Option<(String, String)> {
    let package = resolved.lock.packages.iter().rfind(|one| one.id == *id)?;
    let folder = package.folder.clone().filter(|folder| !folder.is_empty())?;
    let manifest = release_of(session, package).and_then(|(position, _)| {
        session.index().manifest(id, Candidate::Release(position)).ok().flatten()
    });
    let named = manifest.map(|manifest| manifest.name.name().leaf().to_owned());
    let named = named.unwrap_or_else(|| folder.rsplit('/').next().unwrap_or(&folder).to_owned());
    Some((named, folder))
}

/// The error about a package of another kind in the manifest of `member`, or on its way there.
fn refused(
    format: &Format,
    member: &Member,
    reference: &Reference,
    found: Option<&str>,
) -> CommandError {
    let found = FORMATS.iter().find(|format| Some(format.name) == found);
    let is = found.map_or("not one".to_owned(), |found| format!("a {}", found.kind));
    let is_written = member.manifest.dependencies.iter().any(|one| one.reference == *reference);
    let reference = reference.with_version(None);
    let (path, kind) = (member.manifest_path.display(), format.kind);
    let message = format!("`{path}` can require only {kind}s, and `{reference}` is {is}");
    let get = format!("mu get {}", quoted_for_shell(reference.as_str()));
    let command = match is_written {
        true => format!("mu remove {} && {get}", quoted_for_shell(reference.as_str())),
        false => get,
    };
    let hint = format!("`{command}` installs it without writing it into {}", format.manifest);
    CommandError::new(Code::Manifest, message).hint(hint)
}

/// The format of the version of a package that was chosen, `Some(None)` if it is mu's own; `None` if that is not known.
fn kind(session: &Session, resolved: &Resolved, id: &PackageId) -> Option<Option<String>> {
    // Of several majors, the highest: it comes last.
    let mut all = resolved.lock.packages.iter().enumerate().filter(|(_, one)| one.id == *id);
    let (place, package) = all.next_back()?;
    if package.source.is_workspace_folder() {
        return Some(session.workspace.member(id)?.manifest.format.clone());
    }
    let known = resolved.releases.get(&place).map(|(_, release)| release.format.clone());
    match known.flatten() {
        None => listed(session, package),
        known => Some(known),
    }
}

/// The format of the version of a locked package, as its place says.
fn listed(session: &Session, package: &LockedPackage) -> Option<Option<String>> {
    let (position, release) = release_of(session, package)?;
    if release.format.is_some() {
        return Some(release.format.clone());
    }
    let manifest = session.index().manifest(&package.id, Candidate::Release(position)).ok()?;
    Some(manifest.and_then(|manifest| manifest.format))
}

/// The version of a locked package among those that its place has, and what that says of it.
fn release_of(session: &Session, package: &LockedPackage) -> Option<(Position, Arc<Release>)> {
    let index = session.index();
    let releases = index.published(&package.id).ok()?;
    let position = match &package.commit {
        Some(commit) => releases.at_commit(commit),
        None => releases.position_of_version(&package.parsed_version()?),
    }?;
    let (_, release) = index.release_in_full(&package.id, Candidate::Release(position)).ok()?;
    Some((position, release))
}

/// The file, beside `Chart.yaml`.
const FILE: OwnPath = InnerPath::own(".helmignore");

/// The line above mu's own.
const WHY: &str = "# Files of mu, which are not a part of the chart.";

/// The lines that are missing in the `.helmignore` of the chart at `root`; none if there is no chart.
pub(crate) fn missing(root: &Path) -> Result<Vec<String>, CommandError> {
    use mu_formats::helm;

    if !formats::is_manifest(&helm::FORMAT, &root.join(helm::CHART)) {
        return Ok(Vec::new());
    }
    let rules = Rules::read_helmignore(root, &mut Vec::new())?;
    let own =
        [(MU_FOLDER, true, format!("{MU_FOLDER}/")), (LOCK_FILE, false, LOCK_FILE.to_owned())];
    let missing = own
        .into_iter()
        .filter(|(name, is_folder, _)| !rules.leave_out(&root.join(name), *is_folder));
    Ok(missing.map(|(_, _, line)| line).collect())
}

/// Adds the lines that are missing; returns the file, if it has changed. A `.helmignore` that is a link is left alone.
pub(crate) fn add(root: &Path) -> Result<Option<PathBuf>, CommandError> {
    let missing = missing(root)?;
    let is_link = fs::symlink_metadata(&root.join(FILE.as_str()));
    if missing.is_empty() || is_link.is_ok_and(|found| found.is_symlink()) {
        return Ok(None);
    }
    let folder = Folder::at(root)?;
    let mut text = folder.read_text(&FILE.into())?.unwrap_or_default();
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(end);
    }
    for line in [WHY.to_owned()].iter().chain(&missing) {
        text.push_str(line);
        text.push_str(end);
    }
    folder.write(&FILE.into(), text.as_bytes())?;
    Ok(Some(folder.path().join(FILE.as_str())))
}
