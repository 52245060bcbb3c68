//! `import`: takes over what another tool lists in a folder, at the versions in use.
//!
//! What the files say becomes entries of a manifest. Mu.lock is chosen from these as by `mu get`, which is told what is in use; where
//! it would choose something else, the entry becomes a pin. Nothing that was there is changed, except for the manifest that gets the
//! entries, and that is written last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mu_formats::elsewhere::{InUse, Meaning};
use mu_provider::{ErrorKind, PlaceKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::elsewhere::{ForeignList, KNOWN, read};
use crate::formats;
use crate::index::{Candidate, Cause, Revision, Unavailable, Universe as _, cause};
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::edit::Section;
use crate::manifest::{Requirement, YAML_NAME};
use crate::ops::apply::draft::ManifestDraft;
use crate::ops::apply::transaction::Transaction;
use crate::ops::requirements::editing::{Editing, FileEdit};
use crate::ops::requirements::names::id_in;
use crate::ops::session::disk::not_a_folder;
use crate::ops::session::locked;
use crate::ops::session::locked::version_of;
use crate::ops::solve::asking::refuse_frozen;
use crate::ops::solve::resolve;
use crate::ops::{Code, CommandError, Outcome, Session, Warning};
use crate::reference::{PackageId, Version, VersionSpec};
use crate::select::{CandidateOfLock, Update};

/// What to import, and into which manifest.
#[derive(Debug, Clone, Default)]
pub struct ImportRequest {
    /// A file or folder; `None` means the current folder.
    pub place: Option<String>,
    /// The package of the workspace that gets the dependencies; `None` means the one around the current folder, or a new one there.
    pub package: Option<String>,
    /// Whether they are dev dependencies.
    pub dev: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// What was imported.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// What became a dependency, in the order of the files.
    pub taken: Vec<TakenOver>,
    /// What did not, and why.
    pub left: Vec<LeftBehind>,
    /// How the selection and the manifests have changed.
    pub outcome: Outcome,
}

/// A line of another tool that became a dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TakenOver {
    /// The file that lists it.
    pub file: String,
    /// Its line there, counted from 1; 0 if it stands in the lock beside the file.
    pub line: usize,
    /// What that file calls it.
    pub called: String,
    /// What the manifest has for it.
    pub reference: String,
    /// The package.
    pub id: PackageId,
    /// The version in Mu.lock, with the commit where the version says little.
    pub version: String,
    /// Whether the file or its lock said that this is in use; otherwise it is the newest that fits.
    pub was_in_use: bool,
    /// Keys of the file that have no counterpart.
    pub left_out: Vec<String>,
}

/// A line of another tool that did not become a dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftBehind {
    /// The file that lists it.
    pub file: String,
    /// Its line there, counted from 1; 0 if it stands in the lock beside the file.
    pub line: usize,
    /// What that file calls it.
    pub called: String,
    /// Why it did not.
    pub reason: String,
}

/// A dependency that the manifest gets.
#[derive(Debug, Clone)]
struct Wanted {
    file: String,
    line: usize,
    called: String,
    id: PackageId,
    requirement: Requirement,
    meaning: Meaning,
}

/// Imports.
pub fn import(session: Session, request: &ImportRequest) -> Result<Imported, CommandError> {
    refuse_frozen(&session)?;
    let (folder, file) = place(&session, request)?;
    let lists = read(&session.environment, &session.workspace.root, &folder, file.as_deref())?;
    let (session, target, fresh) = target(session, request, &folder)?;
    let manifest = session.workspace.members[target].manifest_path.clone();
    let is_foreign = formats::format_of_manifest(&manifest).is_some();
    if lists.is_empty() && !is_foreign {
        let message = format!("there is nothing in `{}` that mu imports", folder.display());
        return Err(CommandError::new(Code::NotFound, message).hint(KNOWN));
    }
    for ForeignList { file, list, note } in &lists {
        if let Some(note) = note {
            session.events.note(&format!("{file}: {note}"));
        }
        if !list.unknown.is_empty() {
            let (file, keys) = (file.clone(), list.unknown.clone());
            session.events.warning(&Warning::KeysUnknown { file, keys });
        }
        for one in &list.dependencies {
            for (key, default) in one.meaning.iter().flat_map(|meaning| &meaning.defaults) {
                let (place, called) = (format!("{file}:{}", one.line), one.called.clone());
                let default = default.clone();
                session.events.warning(&Warning::DefaultTaken { place, called, key, default });
            }
        }
    }
    let section = if request.dev { Section::DevDependencies } else { Section::Dependencies };
    // From here on, nothing depends on which tool it was: there are entries, each with what is in use of it, and lines that cannot be any.
    let (mut wanted, mut left) = sort(&session, target, lists);
    // With a strategy that does not follow the lock, the manifest alone has to lead to what is in use.
    if !session.strategy().follows_lock() {
        wanted.iter_mut().for_each(Wanted::pin);
    }
    // A folder from which nothing comes does not become a package.
    let mut fresh = fresh.filter(|_| !wanted.is_empty());
    // Where the entry would lead to something else than what is in use, it becomes a pin. Say the manifest gets `x#^1.2`, and 1.2.0 is in
    // use: selection holds 1.2.0 as if it were locked, and nothing is to be done. But `x#v1.2.0` is another commit today if somebody has
    // moved the tag; then the entry becomes `x#COMMIT`. That changes nothing for the others, but they are looked at again, because what
    // the pinned one needs may be something else than before.
    //
    // Ends: each round but the last pins at least one entry, and a pinned one counts as kept; or leaves one, or takes its other reading,
    // which each has at most once.
    for _ in 0..wanted.len() * 2 {
        let mut draft = drafted(&session, target, section, fresh.as_ref(), &wanted)?;
        let resolved = match resolve(&session, &draft.question(&session, Update::Nothing)?) {
            Err(error) => {
                leave_missing(&session, &mut wanted, &mut left, error)?;
                fresh = fresh.filter(|_| !wanted.is_empty());
                continue;
            }
            Ok(resolved) => resolved,
        };
        if wanted.iter().all(|one| one.is_kept(&resolved.lock)) {
            break;
        }
        wanted.iter_mut().filter(|one| !one.is_kept(&resolved.lock)).for_each(Wanted::pin);
    }
    let draft = drafted(&session, target, section, fresh.as_ref(), &wanted)?;
    let outcome = Transaction::tidied(&session, draft)?.run(&session, request.dry_run)?;
    let taken = wanted.iter().map(|one| one.taken(&outcome.lock)).collect();
    Ok(Imported { taken, left, outcome })
}

/// The folder to look into, and the one file there, if the request names a file.
fn place(
    session: &Session,
    request: &ImportRequest,
) -> Result<(PathBuf, Option<String>), CommandError> {
    let current = &session.environment.current;
    let Some(place) = &request.place else { return Ok((current.clone(), None)) };
    let path = crate::env::absolute(current, Path::new(place));
    if path.is_dir() {
        return Ok((path, None));
    }
    let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    match (path.parent(), name) {
        // Terraform's own list is in a folder below that of its files.
        (Some(_), Some(name)) if name == "modules.json" && path.ancestors().count() > 3 => {
            let folder = path.ancestors().nth(3).unwrap_or(&path);
            Ok((folder.to_owned(), Some(name)))
        }
        (Some(folder), Some(name)) if path.is_file() => Ok((folder.to_owned(), Some(name))),
        _ => Err(not_a_folder(&path)),
    }
}

/// The member that gets the dependencies, and the text of its manifest if that is new: then the session counts it, too.
fn target(
    session: Session,
    request: &ImportRequest,
    folder: &Path,
) -> Result<(Session, usize, Option<FileEdit>), CommandError> {
    if request.package.is_some() {
        let target = locked::target(&session, request.package.as_deref(), "mu import -p PACKAGE")?;
        return Ok((session, target, None));
    }
    // The package around the current folder, as for `mu add`: not the one around the list, which may be far away.
    if let Some(target) = locked::around(&session)? {
        return Ok((session, target, None));
    }
    // A list outside of the workspace belongs to it all the same, because the user has named it; then the root gets a manifest.
    let root = &session.workspace.root;
    let at = if folder.starts_with(root) { folder.to_owned() } else { root.clone() };
    let name = super::new_name(&session.environment, &at)?;
    let path = at.join(YAML_NAME);
    let text = format!("name: {}\nversion: 0.1.0\n", super::plain(&name));
    let session = session.with_member(&path, &text)?;
    let target = session.workspace.members.iter().position(|member| member.manifest_path == path);
    let target = target.expect("the package was just added");
    Ok((session, target, Some(FileEdit { path, text })))
}

/// The dependencies that the manifest of `target` gets, and the lines that cannot be any.
fn sort(
    session: &Session,
    target: usize,
    lists: Vec<ForeignList>,
) -> (Vec<Wanted>, Vec<LeftBehind>) {
    let member = &session.workspace.members[target];
    let manifest = member.manifest_path.file_name().unwrap_or_default().to_string_lossy();
    let is_foreign = formats::format_of_manifest(&member.manifest_path).is_some();
    let (mut wanted, mut left): (Vec<Wanted>, Vec<LeftBehind>) = (Vec::new(), Vec::new());
    let own = member.manifest.all_dependencies();
    let own: BTreeMap<PackageId, &Requirement> =
        own.map(|one| (id_in(session, member, &one.reference), one)).collect();
    for ForeignList { file, list, .. } in lists {
        for one in list.dependencies {
            let (line, called) = (one.line, one.called);
            let mut leave = |called: String, reason: String| {
                left.push(LeftBehind { file: file.clone(), line, called, reason });
            };
            let meaning = match one.meaning {
                Err(reason) => {
                    leave(called, reason);
                    continue;
                }
                Ok(_) if is_foreign => {
                    leave(
                        called,
                        format!(
                            "`{manifest}` has no place for it; `mu init NAME` creates a Mu.yaml, which has"
                        ),
                    );
                    continue;
                }
                Ok(meaning) => meaning,
            };
            // A package is listed once, whether by the manifest before, or by two lines of these files. If two lines want the same of it,
            // the second one needs no word. Else it is said, because the tool that wrote it has both side by side, and mu has one.
            let id = id_in(session, member, &meaning.reference);
            if let Some(known) = own.get(&id) {
                leave(called, format!("`{manifest}` lists it already, as `{}`", known.reference));
                continue;
            }
            let same = wanted.iter().find(|one| one.id == id);
            if let Some(same) = same {
                let at = format!("{}:{}", same.file, same.line);
                if same.meaning.reference != meaning.reference {
                    let (first, this) = (&same.meaning.reference, &meaning.reference);
                    leave(
                        called,
                        format!(
                            "{at} has it as `{first}`, and not as `{this}`; a package is listed once"
                        ),
                    );
                } else if same.meaning.in_use != meaning.in_use {
                    leave(
                        called,
                        format!("it is not in use as {at} has it, and a package is there once"),
                    );
                }
                continue;
            }
            let mut requirement = Requirement::new(meaning.reference.clone());
            requirement.prerelease = meaning.prerelease;
            let mut new = Wanted { file: file.clone(), line, called, id, requirement, meaning };
            new.begin();
            wanted.push(new);
        }
    }
    (wanted, left)
}

/// Leaves the lines whose package or version is not in the list that they name any more, and so is there for nobody, unless they can be
/// read otherwise; returns `error` if it is about something else.
fn leave_missing(
    session: &Session,
    wanted: &mut Vec<Wanted>,
    left: &mut Vec<LeftBehind>,
    error: CommandError,
) -> Result<(), CommandError> {
    let before = wanted.len();
    let mut is_read_otherwise = false;
    wanted.retain_mut(|one| {
        let Some(reason) = missing(session, one) else { return true };
        if let Some(other) = one.meaning.otherwise.take() {
            one.requirement.reference = other.clone();
            one.meaning.reference = other;
            is_read_otherwise = true;
            return true;
        }
        left.push(LeftBehind {
            file: one.file.clone(),
            line: one.line,
            called: one.called.clone(),
            reason,
        });
        false
    });
    if wanted.len() < before || is_read_otherwise { Ok(()) } else { Err(error) }
}

/// Why nobody has what a line asks for, if that is certain: a repository that is not there may be one that only shows itself to others,
/// and a registry need not list all tags.
fn missing(session: &Session, one: &Wanted) -> Option<String> {
    let kind = session.index().known_route(&one.id)?.provider.facts().kind;
    let releases = session.index().listed_releases(&one.id).ok()?;
    if let Some(tried) = releases.tried() {
        let is_list = !matches!(kind, PlaceKind::Repository | PlaceKind::OciRegistry);
        let tried = tried.join(", ");
        return is_list.then(|| format!("there is no package `{}` (looked at {tried})", one.id));
    }
    let spec = one.requirement.reference.spec();
    let accepted = (0..releases.len()).rev().find(|at| spec.accepts(&releases.version(*at), true));
    let revision = match accepted {
        Some(position) => Some(Revision::Release(position)),
        // What looks like a range can also be the name of a tag.
        None => match session.index().revision(&releases, &named(&spec)) {
            Ok(found) => found,
            Err(error) => return gone(&error),
        },
    };
    let candidate = match &revision {
        Some(Revision::Release(position)) => Candidate::Release(*position),
        Some(Revision::Untagged(untagged)) => Candidate::Revision(untagged),
        None => {
            let is_certain = match &spec {
                VersionSpec::Pin(_) | VersionSpec::Range(_) | VersionSpec::Tag(_) => {
                    spec.as_tag().is_none() || kind != PlaceKind::OciRegistry
                }
                VersionSpec::Latest | VersionSpec::Tip => false,
                // A server need not give every commit.
                VersionSpec::Commit(_) | VersionSpec::Digest(_) => false,
            };
            let newest = releases.versions().next_back();
            let newest = newest.map(|newest| format!(", and the newest one is {newest}"));
            let newest = newest.unwrap_or_default();
            let said = spec.to_string();
            let said = said.strip_prefix("refs/heads/").unwrap_or(&said);
            return is_certain.then(|| format!("`{}` has no version `{said}`{newest}", one.id));
        }
    };
    // Of a folder, a repository has the versions whether or not it is there.
    let error = session.index().manifest(&one.id, candidate).err()?;
    gone(&error).filter(|_| kind == PlaceKind::Repository)
}

/// What a place says that answered, and has not what it was asked for.
fn gone(error: &Unavailable) -> Option<String> {
    match cause(error) {
        Cause::Provider(found) if found.kind() == ErrorKind::NotFound => Some(found.to_string()),
        _ => None,
    }
}

/// A spec as the name of a tag, if it can be one.
fn named(spec: &VersionSpec) -> VersionSpec {
    let tag = spec.as_tag().map(|tag| VersionSpec::parse(&format!("refs/tags/{tag}")));
    match (spec, tag) {
        (VersionSpec::Range(_), Some(Ok(tag))) => tag,
        _ => spec.clone(),
    }
}

/// A draft that adds these dependencies, and knows what is in use of them.
fn drafted(
    session: &Session,
    target: usize,
    section: Section,
    fresh: Option<&FileEdit>,
    wanted: &[Wanted],
) -> Result<ManifestDraft, CommandError> {
    let mut draft = ManifestDraft::new(session)?;
    draft.editing = match fresh {
        Some(edit) => Editing::of_new(session, target, edit.clone()),
        None => Editing::default(),
    };
    for one in wanted {
        draft.editing.write_dependency(session, target, section, one.requirement.clone())?;
    }
    draft.adopted = wanted.iter().filter_map(Wanted::candidate).collect();
    Ok(draft)
}

impl Wanted {
    /// Has the requirement say a version, where the file says none.
    fn begin(&mut self) {
        if self.requirement.reference.version().is_some() {
            return;
        }
        // As `mu add` writes it: compatible with a version, so that `mu update` moves it, and exactly at a commit, which nothing follows.
        let spec = match &self.meaning.in_use {
            Some(InUse::Version(version)) => Version::parse_lenient(version)
                .ok()
                .map(|version| VersionSpec::compatible_with(&version)),
            Some(InUse::Commit(commit)) => VersionSpec::parse(commit).ok(),
            None => None,
        };
        self.requirement.reference = self.requirement.reference.with_version(spec);
    }

    /// Has the requirement accept nothing else than what is in use.
    fn pin(&mut self) {
        let spec = match &self.meaning.in_use {
            Some(InUse::Version(version)) => {
                Version::parse_lenient(version).ok().map(|version| VersionSpec::exactly(&version))
            }
            Some(InUse::Commit(commit)) => VersionSpec::parse(commit).ok(),
            None => None,
        };
        if let Some(spec) = spec {
            self.requirement.reference = self.requirement.reference.with_version(Some(spec));
        }
    }

    /// What is in use, as selection knows a package of a lock.
    fn candidate(&self) -> Option<CandidateOfLock> {
        let (version, commit) = match self.meaning.in_use.as_ref()? {
            InUse::Version(version) => (Some(Version::parse_lenient(version).ok()?), None),
            InUse::Commit(commit) => (None, Some(commit.clone())),
        };
        let spec = self.requirement.reference.spec();
        let reference = spec.as_tag().filter(|_| commit.is_some()).map(str::to_owned);
        // What it needs, and who requires it, no other tool says. Selection finds both out, as for a package whose entry in the lock
        // somebody has just taken over from a colleague's.
        Some(CandidateOfLock {
            id: self.id.clone(),
            version,
            commit,
            reference,
            dependencies: Vec::new(),
            requested: Vec::new(),
        })
    }

    fn locked<'lock>(&self, lock: &'lock Lockfile) -> Option<&'lock LockedPackage> {
        lock.find(lock.used_for(&self.id)).last()
    }

    /// Whether a lock has what is in use, or the requirement cannot be made to.
    fn is_kept(&self, lock: &Lockfile) -> bool {
        let Some(locked) = self.locked(lock) else { return true };
        // A pin that is there already is all that can be done: a commit that no server gives any more, or a version that another
        // package forbids, is then said by selection, and not asked for once more.
        let mut pinned = self.clone();
        pinned.pin();
        let is_pinned = pinned.requirement.reference == self.requirement.reference;
        is_pinned
            || match &self.meaning.in_use {
                Some(InUse::Commit(commit)) => locked.commit.as_deref() == Some(commit.as_str()),
                Some(InUse::Version(version)) => {
                    Version::parse_lenient(version).ok() == locked.parsed_version()
                }
                None => true,
            }
    }

    fn taken(&self, lock: &Lockfile) -> TakenOver {
        let locked = self.locked(lock);
        TakenOver {
            file: self.file.clone(),
            line: self.line,
            called: self.called.clone(),
            reference: self.requirement.reference.to_string(),
            id: self.id.clone(),
            version: locked.map(version_of).unwrap_or_default(),
            was_in_use: self.meaning.in_use.is_some()
                || matches!(self.meaning.reference.spec(), VersionSpec::Commit(_)),
            left_out: self.meaning.left_out.clone(),
        }
    }
}
