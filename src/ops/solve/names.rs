//! Looks up what names of one segment mean in the workspace's own manifests, if the workspace and the lock do
//! not know: the registry says whether the package's own namespace has such a package.
//!
//! A registry that cannot be reached is an error, because it proves nothing. So is a submodule without files that a name leads into.

use std::collections::HashMap;
#[cfg(feature = "git")]
use std::path::Path;

use mu_provider::ErrorKind;

#[cfg(feature = "git")]
use crate::env::{Environment, absolute};
use crate::formats;
use crate::index::{Cause, GraphLevel, Unavailable, Universe as _, cause};
use crate::manifest::edit::Section;
use crate::manifest::{ManifestError, error_at_dependency};
use crate::ops::explain::unavailable_error;
use crate::ops::requirements::names::{Meant, is_known_to_exist, meant};
#[cfg(feature = "git")]
use crate::ops::requirements::parse_extra;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::session::edits::ChangedManifests;
#[cfg(feature = "git")]
use crate::ops::session::edits::unreadable;
#[cfg(feature = "git")]
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Reference};
use crate::workspace::Member;
#[cfg(feature = "git")]
use crate::workspace::root::local_git;

/// The requirements of the session's manifests, and `extra`, with every name looked up.
pub(crate) fn collect_looked_up(
    session: &Session,
    extra: Vec<String>,
) -> Result<Requirements, CommandError> {
    collect_changed_looked_up(session, &ChangedManifests::default(), extra)
}

/// As [`collect`], with some manifests changed.
pub(crate) fn collect_changed_looked_up(
    session: &Session,
    changed: &ChangedManifests,
    extra: Vec<String>,
) -> Result<Requirements, CommandError> {
    #[cfg(feature = "git")]
    refuse_submodules_without_files(session, changed, &extra)?;
    find_out(session, changed)?;
    let requirements = Requirements::collect_changed(session, changed, extra)?;
    refuse_impossible(session, &requirements)?;
    Ok(requirements)
}

/// Refuses to go on if a submodule that is not checked out would have a package that the lock names as one of the workspace, or a folder
/// that a manifest, one of `extra` or an override requires.
#[cfg(feature = "git")]
fn refuse_submodules_without_files(
    session: &Session,
    changed: &ChangedManifests,
    extra: &[String],
) -> Result<(), CommandError> {
    let (workspace, root) = (&session.workspace, session.lock_folder());
    // The code that needs it reports why it cannot be read.
    let lock = session.lockfile().ok().flatten().unwrap_or_default();
    // A lock that is used as it is leads nowhere else.
    let missing = lock.packages.iter().filter(|package| {
        package.source.is_workspace_folder()
            && !session.options.frozen
            && workspace.member(&package.id).is_none()
    });
    for package in missing {
        let what = format!("the package `{}` of this workspace", session.short_name(&package.id));
        let folder = workspace.root.join(&package.source.place);
        refuse_in_submodule_without_files(&session.environment, &folder, &what)?;
    }
    let members = workspace.members.iter().enumerate();
    let manifests = members.map(|(at, member)| (&*member.folder, changed.manifest(workspace, at)));
    let required = manifests.flat_map(|(from, manifest)| {
        let all = manifest.all_dependencies();
        all.map(move |dependency| (from, dependency.reference.clone()))
    });
    let extra = extra.iter().filter_map(|text| parse_extra(text).ok());
    let overrides = workspace.settings.overrides.values().cloned();
    let at_root = extra.map(|dependency| dependency.reference).chain(overrides);
    for (from, reference) in required.chain(at_root.map(|reference| (root, reference))) {
        let Some(local) = reference.local() else { continue };
        let folder = absolute(from, Path::new(local));
        // What is there can be used.
        if mu_provider_git::is_missing_or_empty(&folder) {
            let what = format!("the folder `{reference}`");
            refuse_in_submodule_without_files(&session.environment, &folder, &what)?;
        }
    }
    Ok(())
}

/// Refuses to go on if `folder`, which is `what`, is in a submodule that is not checked out, as `git clone` leaves them: what lies in it is
/// no less the workspace's for that, and nothing from elsewhere may take its place.
#[cfg(feature = "git")]
fn refuse_in_submodule_without_files(
    environment: &Environment,
    folder: &Path,
    what: &str,
) -> Result<(), CommandError> {
    let found = local_git(environment).submodule_without_files(folder);
    let Some((root, path)) = found.map_err(unreadable)? else { return Ok(()) };
    let message = format!("`{path}` is a submodule that is not checked out, and {what} is in it");
    let command = checkout_command(environment, &root, &path);
    Err(CommandError::new(Code::Conflict, message)
        .hint(format!("`git {command}` checks it out"))
        .with_details(serde_json::json!({ "submodule": path })))
}

/// What `git` is given to check out the submodule at a path in a folder, for people.
#[cfg(feature = "git")]
pub(crate) fn checkout_command(environment: &Environment, within: &Path, path: &str) -> String {
    let real =
        |folder: &Path| crate::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let at = match real(within) == real(&environment.current) {
        true => String::new(),
        false => format!("-C {} ", quoted_for_shell(&within.display().to_string())),
    };
    format!("{at}submodule update --init {}", quoted_for_shell(path))
}

/// Refuses manifests that list their own package, or one package twice, by two names for it.
fn refuse_impossible(session: &Session, requirements: &Requirements) -> Result<(), CommandError> {
    let mut seen = HashMap::with_capacity(requirements.asked.len());
    for asked in &requirements.asked {
        let (Some((member, section)), id) = (asked.line, &asked.requirement.id) else { continue };
        let by = &session.workspace.members[member];
        if *id == by.id {
            let message = format!("`{id}` depends on itself");
            return Err(at_dependency(by, asked, message).hint("remove this line"));
        }
        // In each list of its own: a package may be a dependency and a development dependency.
        let known = seen.insert((member, section == Section::Dependencies, id), asked);
        let is_named = |asked: &Asked| asked.reference.local().is_none();
        // A chart may need another one twice, with two aliases.
        let is_own = || formats::format_of_manifest(&by.manifest_path).is_none();
        if let Some(first) = known.filter(|first| is_named(asked) && is_named(first) && is_own()) {
            let message = format!("`{id}` is listed twice: here, and as `{}`", first.reference);
            return Err(at_dependency(by, asked, message).hint("remove one of them"));
        }
    }
    Ok(())
}

/// An error about a dependency in the manifest of `member`.
fn at_dependency(member: &Member, asked: &Asked, message: String) -> CommandError {
    let path = &member.manifest_path;
    let text = crate::fs::read_text(path).ok();
    let written = asked.reference.as_str();
    match text.and_then(|text| error_at_dependency(path, &text, written, &message)) {
        Some(error) => ManifestError::from(error).into(),
        None => CommandError::new(Code::Manifest, format!("{}: {message}", path.display())),
    }
}

/// Looks up what the names in the workspace's manifests mean. Sends no request if the lock is used unchecked.
fn find_out(session: &Session, changed: &ChangedManifests) -> Result<(), CommandError> {
    if session.options.frozen {
        return Ok(());
    }
    // `web` in the manifest of `acme/shop` means `acme/web` if there is such a package, and else `web`. Only the
    // registry knows, so all meanings of all open names are asked about at once.
    let mut unknown = Vec::new();
    for (index, member) in session.workspace.members.iter().enumerate() {
        let manifest = changed.manifest(&session.workspace, index);
        for dependency in manifest.all_dependencies() {
            let reference = &dependency.reference;
            let is_name = reference.is_single_name();
            if let Some(first) = is_name.then(|| unknown_in(session, member, reference)).flatten() {
                unknown.push((first, reference, member));
            }
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let mut ids = Vec::with_capacity(unknown.len() * 2);
    for (first, reference, member) in &unknown {
        session.index().declare(first, reference, &member.folder);
        ids.push(first.clone());
        // The other meaning is asked about at the same time, unless that tells another registry what this one has.
        let otherwise = meant(member, reference).otherwise;
        if let Some(otherwise) = otherwise.filter(|other| is_served_together(session, first, other))
        {
            session.index().declare(&otherwise, reference, &member.folder);
            ids.push(otherwise);
        }
    }
    session.index().expect(GraphLevel::Releases(&ids));
    let mut stale = Vec::new();
    for (first, reference, member) in unknown {
        let is_there = is_published(session, &first).map_err(|error| {
            error.hint(format!(
                "`{reference}` means `{first}` if there is such a package; write the full name to be exact"
            ))
        })?;
        // That it is not there was remembered from an earlier run. That counts as long as the other meaning exists.
        if !is_there && session.index().is_recalled_as_absent(&first) {
            stale.extend(meant(member, reference).otherwise.map(|otherwise| (first, otherwise)));
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    // If the other one does not exist either, the first may have been published a moment ago.
    let ids: Vec<PackageId> = stale.iter().map(|(_, otherwise)| otherwise.clone()).collect();
    session.index().expect(GraphLevel::Releases(&ids));
    for (first, otherwise) in stale {
        let releases = session.index().releases(&otherwise);
        if releases.is_ok_and(|releases| releases.tried().is_some()) {
            session.index().ask_about(&first);
            is_published(session, &first)?;
        }
    }
    Ok(())
}

/// Whether the same registry serves two packages of one base.
fn is_served_together(session: &Session, first: &PackageId, otherwise: &PackageId) -> bool {
    let registry = |id| session.index().registry(id).map(|(registry, _)| &registry.prefix);
    registry(first) == registry(otherwise)
}

/// The first meaning of `reference` in the manifest of `member`, if it is not yet known whether there is such
/// a package.
fn unknown_in(session: &Session, member: &Member, reference: &Reference) -> Option<PackageId> {
    let Meant { first, otherwise } = meant(member, reference);
    is_known_to_exist(session, member, &first, &otherwise?).is_none().then_some(first)
}

/// Whether a package exists, in the workspace or at its registry. Offline, an unknown package counts as
/// existing, because installed packages are checked later.
pub(crate) fn is_published(session: &Session, id: &PackageId) -> Result<bool, CommandError> {
    if session.places.member_of(id).is_some() {
        return Ok(true);
    }
    let is_there = match session.index().releases(id) {
        Ok(releases) => releases.tried().is_none(),
        Err(error) if is_offline(&error) => true,
        Err(error) => return Err(unavailable_error(session, error)),
    };
    session.known_names().insert(id.clone(), is_there);
    Ok(is_there)
}

fn is_offline(error: &Unavailable) -> bool {
    matches!(cause(error), Cause::Provider(error) if error.kind() == ErrorKind::Offline)
}
