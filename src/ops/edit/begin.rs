//! Begins an edit: finds the repository, clones it aside, checks it, and moves it to where references find it.
//!
//! The clone is made in `.mu/edit/new`, which the next run removes. `.mu/edits.json` names the place before the clone is
//! there, so that a run that ends at any moment leaves an edit, or none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_formats::Reading;
use mu_provider::{Commit, Folder, InnerPath, OwnPath};
use mu_provider_git::{Beginning, BranchName, WorkingCopies};

use super::{Edited, Origin, seen};
use crate::formats;
use crate::lock::LockedPackage;
use crate::manifest::{YAML_NAME, generated_manifest};
use crate::ops::apply::fetch::{bring_locked, copy_writable};
use crate::ops::session::edits::git_around;
use crate::ops::session::events::{Aside, Work};
use crate::ops::session::locked::{PackageName, Purpose, find_used};
use crate::ops::session::providers;
use crate::ops::session::source::relative;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::{PackageId, Version};
use crate::workspace::edits::{EDIT_FOLDER, Edit, RecordedEdits, State};
use crate::workspace::root::local_git;

/// Where a clone is made.
const NEW: OwnPath = InnerPath::own(".mu/edit/new");

/// What to edit, and how.
#[derive(Debug, Clone, Default)]
pub struct BeginRequest {
    /// The package.
    pub reference: String,
    /// The name of the branch; `None` means `edit/LEAF-VERSION`.
    pub branch: Option<String>,
    /// The repository, if not the one that the package names.
    pub url: Option<String>,
    /// The folder for the clone, if not the one where references lead.
    pub at: Option<PathBuf>,
    /// Whether a new repository begins with the installed files.
    pub from_pack: bool,
}

/// Begins an edit.
pub fn begin(session: &Session, request: &BeginRequest) -> Result<Edited, CommandError> {
    let root = session.workspace.root.clone();
    let lock = session.lockfile()?.unwrap_or_default();
    let name = PackageName::without_version(&request.reference, Purpose::Edit)?;
    // Only a package that others publish can be edited, and that is in use here.
    let written = session.id_of_argument(name.reference());
    if own_place(session, &written).is_some() {
        return Err(own(session, &written));
    }
    let id = find_used(session, &lock, &name)?;
    let package = lock.find(&id).last().filter(|package| !package.source.is_workspace_folder());
    let Some(package) = package.filter(|_| session.places.member_of(&id).is_none()) else {
        return Err(own(session, &id));
    };
    // `mu edit` once more uses the edit that is there.
    let mut edits = RecordedEdits::read(&root)?;
    if let Some(known) = known(session, &mut edits, &id)? {
        return seen(session, &known);
    }
    refuse_placed(session, &id)?;
    let leaf = id.name_str().rsplit('/').next().unwrap_or_default();
    let branch = request.branch.clone().unwrap_or_else(|| branch_for(leaf, package));
    let branch = BranchName::new(&branch).ok_or_else(|| {
        let message = format!("Git does not accept `{branch}` as the name of a branch");
        CommandError::new(Code::Usage, message)
    })?;
    // Nothing has changed so far. From here on, a run that is killed leaves this:
    //
    //     .mu/edit/new      .mu/edits.json     the next run
    //     in parts, whole   as before          removes it, and begins anew
    //     whole             names the edit     forgets the edit, because its folder is missing
    //     moved away        names the edit     has an edit
    let opened = session.workspace.opened()?;
    let new = InnerPath::from(NEW);
    crate::workspace::refuse_links_of_edits(&root)
        .map_err(crate::workspace::edits::EditsError::from)?;
    session.ignore_edits(None)?;
    opened.remove(&new)?;
    let made = make(session, request, &edits, package, (&opened, branch));
    if made.is_err() {
        // The next run removes what is left now.
        let _ = opened.remove(&new);
    }
    let edit = made?;
    let clone = root.join(&edit.clone);
    // Before it is in its place: a clone that Git does not ignore would count as a package of the team.
    session.ignore_edits(Some(&clone))?;
    edits.edits.push(edit.clone());
    edits.write(&root)?;
    if opened.look_at(&new)?.is_none() {
        // It is in the clone of another edit.
        return seen(session, &edit);
    }
    opened.move_inside(&new, &edit.clone)?;
    seen(session, &edit)
}

/// Makes the clone in `new`, unless there is one of the same repository, and returns what the edit will be.
fn make(
    session: &Session,
    request: &BeginRequest,
    edits: &RecordedEdits,
    package: &LockedPackage,
    (root, branch): (&Folder, BranchName),
) -> Result<Edit, CommandError> {
    // The clone is made beside its place (`new`), and the caller moves it there once it is whole. An edit of the same repository
    // is shared instead: two packages of one repository have one clone.
    let id = &package.id;
    let new = &root.path().join(NEW.as_str());
    let (origin, commit, clone) = if request.from_pack {
        let clone = target(session, root, request, id, None)?;
        let commit = from_pack(session, package, root, &branch)?;
        (None, commit, clone)
    } else {
        let origin = Origin::find(session, package, request.url.as_deref())?;
        if let Some(edit) = beside(edits, root, &origin, package)? {
            if let Some(locked) = package.commit.as_ref().filter(|locked| **locked != edit.commit) {
                let (locked, begun) = (locked.clone(), edit.commit.clone());
                let (id, clone) = (id.clone(), edit.clone.to_string());
                session.events.warning(&Warning::EditedSince { id, locked, clone, begun });
            }
            return Ok(edit);
        }
        let clone = target(session, root, request, id, Some(&origin))?;
        let commit = cloned(session, &origin, new, &branch)?;
        (Some(origin), commit, clone)
    };
    let inside = origin.as_ref().and_then(|origin| origin.folder.as_ref());
    let said = check_package(session, package, origin.as_ref(), root)?;
    Ok(Edit {
        tagged: is_tagged(package, said.as_ref()),
        id: id.to_string(),
        folder: joined(&clone, inside),
        clone,
        version: package.version.clone(),
        branch: branch.short().to_owned(),
        commit,
        url: origin.map(|origin| origin.url),
        kept: false,
        trash: None,
        trashed: None,
    })
}

/// The error about a package of the workspace itself.
fn own(session: &Session, id: &PackageId) -> CommandError {
    let name = session.short_name(id);
    let place = own_place(session, id).unwrap_or_default();
    let place = if place.is_empty() { ".".to_owned() } else { place };
    CommandError::new(Code::Conflict, format!("`{name}` is a package of this workspace"))
        .hint(format!("it is in `{place}`: edit it there"))
}

/// Where a package of the workspace itself is, relative to the root.
fn own_place(session: &Session, id: &PackageId) -> Option<String> {
    if let Some(member) = session.places.member_of(id) {
        return Some(member.place.clone());
    }
    let workspace = &session.workspace;
    let is_edited = |folder: &Path| {
        session.edited.iter().any(|edited| edited.member.folder == folder)
            || workspace.edit_around(folder).is_some()
    };
    let mut members = workspace.members.iter();
    let own = members.find(|member| member.id == *id && !is_edited(&member.folder))?;
    Some(own.place.clone())
}

/// The edit of the package that there already is, which is used from now on. Forgets one whose folder is gone.
fn known(
    session: &Session,
    edits: &mut RecordedEdits,
    id: &PackageId,
) -> Result<Option<Edit>, CommandError> {
    let root = &session.workspace.root;
    let is_it = |edit: &Edit| edit.id == id.as_str();
    edits.edits.retain(|edit| !is_it(edit) || edit.state_on_disk(root) != State::Missing);
    let there = edits
        .edits
        .iter_mut()
        .find(|edit| is_it(edit) && matches!(edit.state_on_disk(root), State::InUse | State::Kept));
    let Some(edit) = there else { return Ok(None) };
    edit.kept = false;
    let edit = edit.clone();
    session.ignore_edits(Some(&root.join(&edit.clone)))?;
    edits.write(root)?;
    Ok(Some(edit))
}

/// Refuses a package for which a folder of this machine is already used.
fn refuse_placed(session: &Session, id: &PackageId) -> Result<(), CommandError> {
    let workspace = &session.workspace;
    let mut placed = session.edited.iter().filter(|edited| edited.is_used && edited.id == *id);
    let Some(placed) = placed.find(|edited| workspace.edit_around(&edited.member.folder).is_none())
    else {
        return Ok(());
    };
    let (name, place) = (session.short_name(id), &placed.member.place);
    let message = format!("`{place}` is already used instead of `{name}`");
    Err(CommandError::new(Code::Conflict, message)
        .hint(format!("edit it there, or move it out of the workspace before `mu edit {name}`")))
}

/// An edit in a clone of the same repository that is already here.
fn beside(
    edits: &RecordedEdits,
    root: &Folder,
    origin: &Origin,
    package: &LockedPackage,
) -> Result<Option<Edit>, CommandError> {
    let is_same = |edit: &&Edit| {
        edit.url.as_deref() == Some(&origin.url) && edit.state_on_disk(root.path()) == State::InUse
    };
    let Some(other) = edits.edits.iter().find(is_same) else { return Ok(None) };
    // Several packages of one repository are worked on in one clone, so that one commit can change them all.
    let folder = joined(&other.clone, origin.folder.as_ref());
    // The clone may have a link on the way to the package.
    let Ok(inside) = root.inner(&folder) else { return Ok(None) };
    let Some(loaded) = formats::load(inside.path(), &Reading::default())? else {
        return Ok(None);
    };
    let tagged = is_tagged(package, loaded.manifest.version.as_ref());
    let (id, version) = (package.id.to_string(), package.version.clone());
    Ok(Some(Edit { id, folder, version, tagged, ..other.clone() }))
}

/// Whether a tag is the version of a locked package: its manifest says another one.
fn is_tagged(package: &LockedPackage, said: Option<&Version>) -> bool {
    said.is_some_and(|said| package.parsed_version().as_ref() != Some(said))
}

/// Where the clone goes, relative to the workspace's root: where references find it first, if that is free; else below
/// `.mu/edit`.
fn target(
    session: &Session,
    opened: &Folder,
    request: &BeginRequest,
    id: &PackageId,
    origin: Option<&Origin>,
) -> Result<InnerPath, CommandError> {
    let root = &session.workspace.root;
    let inside = origin.and_then(|origin| origin.folder.as_ref());
    let inside = inside.map(InnerPath::as_str).unwrap_or_default();
    // Nothing is there, and no file or link is on the way.
    let is_free = |place: &InnerPath| matches!(opened.look_at(place), Ok(None));
    if let Some(at) = &request.at {
        let folder = crate::env::absolute(&session.environment.current, at);
        let inside = Some(relative(root, &folder)).filter(|_| folder.starts_with(root));
        let clone = inside.and_then(|place| InnerPath::parse(&place).ok()).ok_or_else(|| {
            let message = format!("`{}` is not a folder in this workspace", folder.display());
            CommandError::new(Code::Usage, message)
        })?;
        if !is_free(&clone) {
            let message = format!("`{}` is already there", folder.display());
            return Err(
                CommandError::new(Code::Conflict, message).hint("name a folder that is new")
            );
        }
        return Ok(clone);
    }
    // Where the clone would have to be so that references find the package in it, without another entry anywhere:
    //
    //     the package is the whole repository    aws/ec2, or with its base hub.mu.com/aws/ec2
    //     a folder of a repository, in Git       github.com/acme/mono, so that its folder `db` is github.com/acme/mono/db
    let [in_base, by_name, ..] = session.places.search().package_places(id);
    let [in_base, by_name] = [in_base, by_name].map(|place| relative(root, &place.folder));
    let is_named = origin.is_none_or(|origin| origin.is_named);
    let wanted: Vec<String> = match inside {
        "" if is_named => vec![by_name, in_base],
        "" => vec![in_base],
        inside if !is_named => {
            in_base.strip_suffix(&format!("/{inside}")).map(str::to_owned).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let mut wanted = wanted.iter().filter_map(|place| InnerPath::parse(place).ok());
    if let Some(clone) = wanted.find(is_free) {
        return Ok(clone);
    }
    // No reference finds it anywhere else, so `.mu/edits.json` says where it is. A port's colon cannot be in a folder's
    // name everywhere.
    let path = origin.map_or_else(|| id.as_str().to_owned(), |origin| host_and_path(&origin.url));
    let path = InnerPath::parse(&path.replace(':', "+")).map_err(|error| {
        CommandError::from_error(Code::Reference, error)
            .hint("name a folder for the clone with `--at FOLDER`")
    })?;
    let clone = EDIT_FOLDER.join(&path);
    if !is_free(&clone) {
        let message = format!("`{clone}` already exists, and is not an edit");
        return Err(CommandError::new(Code::Conflict, message).hint(
            "look at what is in it, and move it away; or name another folder with `--at FOLDER`",
        ));
    }
    Ok(clone)
}

/// The host and the path of a repository, as a folder: `github.com/acme/mono`.
fn host_and_path(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let rest = rest.strip_suffix(".git").unwrap_or(rest);
    let is_plain = |part: &&str| !matches!(*part, "" | "." | ".." | "~");
    let parts: Vec<&str> = rest.split('/').filter(is_plain).collect();
    parts.join("/")
}

fn joined(clone: &InnerPath, inside: Option<&InnerPath>) -> InnerPath {
    inside.map_or_else(|| clone.clone(), |inside| clone.join(inside))
}

/// `edit/LEAF-VERSION`, with nothing in it that a branch may not have.
fn branch_for(leaf: &str, package: &LockedPackage) -> String {
    let commit = package.commit.as_ref().filter(|_| !package.is_versioned());
    let version = commit.map_or(&*package.version, Commit::short);
    let is_fine = |character: char| character.is_ascii_alphanumeric() || "._-+".contains(character);
    let text = format!("{leaf}-{version}");
    let text: String = text.chars().map(|one| if is_fine(one) { one } else { '-' }).collect();
    // Git allows no `..` in the name of a branch, and no `.lock` or `.` at its end.
    format!("edit/{}", text.replace("..", "-").trim_end_matches(".lock").trim_end_matches('.'))
}

/// Clones the repository, and returns the commit that the edit begins at.
fn cloned(
    session: &Session,
    origin: &Origin,
    into: &Path,
    branch: &BranchName,
) -> Result<Commit, CommandError> {
    let _work = Work::begin(&session.events, format!("cloning `{}`", origin.url));
    let beginning =
        Beginning { url: &origin.url, commit: origin.commit.as_ref(), tags: &origin.tags, branch };
    let hint =
        "`--url URL` clones another repository, and `--from-pack` begins with the installed files";
    let commit = copies(session)
        .clone_into(into, &beginning, &Aside(Arc::clone(&session.events)))
        .map_err(|error| CommandError::from(error).hint(hint))?;
    // While nobody has worked in it. Later, a remote that has moved on could not tell whose the commits are.
    local_git(&session.environment)
        .note_cloned(into)
        .map_err(|error| CommandError::from_error(Code::Io, error))?;
    Ok(commit)
}

/// What makes the clones of a session, and asks their remotes.
pub(super) fn copies(session: &Session) -> WorkingCopies {
    let (environment, offline) = (&session.environment, session.options.offline);
    let options = providers::git_options(environment, offline, &session.http(), &session.folders);
    WorkingCopies::new(&options)
}

/// Begins a repository with the files of the installed package, which can be written.
fn from_pack(
    session: &Session,
    package: &LockedPackage,
    root: &Folder,
    branch: &BranchName,
) -> Result<Commit, CommandError> {
    let _store = session.use_store()?;
    let stored = bring_locked(session, package)?;
    let into = root.make_inner(&NEW.into())?;
    copy_writable(&stored, into.path())?;
    let message = format!("{} {}, as it was published", package.id, package.version);
    mu_provider_git::begin_repository(into.path(), branch.short(), &message)
        .map_err(|error| CommandError::from_error(Code::Io, error))
}

/// Checks that the clone has the package, and returns the version that its manifest says. A repository without a manifest gets
/// one, which Git ignores.
fn check_package(
    session: &Session,
    package: &LockedPackage,
    origin: Option<&Origin>,
    root: &Folder,
) -> Result<Option<Version>, CommandError> {
    let id = &package.id;
    let name = session.short_name(id);
    let inside = origin.and_then(|origin| origin.folder.as_ref());
    let end = inside.map(|inside| format!("/{inside}")).unwrap_or_default();
    let place = origin.map(|origin| format!("{}{end}", origin.url)).unwrap_or_default();
    let hint = "`--url URL#FOLDER` names another repository, and the folder in it";
    let is_named = origin.is_some_and(|origin| origin.is_named);
    // The repository may have a link on the way to the package.
    let Ok(opened) = root.inner(&joined(&NEW.into(), inside)) else {
        let message = format!("`{place}` has no folder with `{name}`");
        return Err(CommandError::new(Code::NotFound, message).hint(hint));
    };
    let folder = opened.path();
    let loaded = formats::load(folder, &Reading::default())?;
    let Some(loaded) = loaded else {
        if is_named {
            let message = format!("`{place}` has no {YAML_NAME}");
            return Err(CommandError::new(Code::NotFound, message).hint(hint));
        }
        // A package in Git need not have a manifest, but a folder is a package only with one. Git ignores it, so no
        // commit gets it.
        let text = generated_manifest(id.as_str(), Some(&package.version));
        opened.write(&InnerPath::own(YAML_NAME).into(), text.as_bytes())?;
        if let Some(around) = git_around(session, folder)? {
            let ignored = around.ignore(&[(&folder.join(YAML_NAME), false)]);
            ignored.map_err(|error| CommandError::from_error(Code::Io, error))?;
        }
        return Ok(None);
    };
    // Another name in the manifest means another package: the repository was renamed, or the package has moved on.
    let called = &loaded.manifest.name;
    let is_it =
        called.name().as_str() == id.name_str() || called.id(&session.reference_defaults()) == *id;
    if is_named && loaded.path.ends_with(YAML_NAME) && !is_it {
        let message = format!("the package in `{place}` is called `{called}`, not `{name}`");
        return Err(CommandError::new(Code::NotFound, message).hint(hint));
    }
    Ok(loaded.manifest.version)
}
