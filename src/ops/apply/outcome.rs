//! The answer of a command that chooses versions: the selection, and how it differs from before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::ops::apply::written::Written;
use crate::ops::requirements::Requirements;
use crate::ops::session::shown::count;
use crate::reference::{ArtifactDigest, PackageId, Version};
use crate::select::{InstalledVersion, Lowered};

/// How many packages were fetched, and how many were already there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchCounts {
    /// Packages that came from a registry, repository or folder.
    pub fetched: usize,
    /// Packages whose content was on this machine.
    pub reused: usize,
}

impl FetchCounts {
    /// The sum of two runs over the same packages.
    pub(crate) fn and(self, later: Self) -> Self {
        Self { fetched: self.fetched + later.fetched, reused: later.reused }
    }

    /// This, where so many of the packages that were on this machine had been fetched right before.
    pub(crate) fn with_fetched(self, before: usize) -> Self {
        Self { fetched: self.fetched + before, reused: self.reused.saturating_sub(before) }
    }
}

/// The answer of `get`, `add`, `update`, `remove` and `resolve`.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The lock after the operation.
    pub lock: Arc<Lockfile>,
    /// The packages that moved, were added or removed, by id.
    pub changes: Vec<Change>,
    /// The requirements of manifests and command line, as `ID#SPEC`.
    pub requirements: Vec<String>,
    /// Requirers that are not packages of the lock.
    pub roots: Vec<String>,
    /// The packages that roots name only because others need them.
    pub indirect: BTreeSet<PackageId>,
    /// Where the installed packages are, by their place in `lock.packages`.
    pub folders: BTreeMap<usize, PathBuf>,
    /// The URLs of their archives, without secrets, by their place in `lock.packages`, if the session's options request that, and as far as it is
    /// known.
    pub archives: BTreeMap<usize, String>,
    /// Packages that left the minor line of their app version.
    pub app_moves: Vec<AppMove>,
    /// What was fetched.
    pub counts: FetchCounts,
    /// Packs that were created or removed on disk.
    pub installed: usize,
    /// Manifests that were changed, or would be.
    pub edited: Vec<PathBuf>,
    /// What became of requirements in manifests.
    pub written: Vec<Written>,
    /// The references of this `mu get`, as they were given; the lock keeps them.
    pub kept: Vec<String>,
    /// What the manifests are called that could hold them, if there are any.
    pub members_manifest: Option<String>,
    /// Packs that were made.
    pub made: usize,
    /// Packages that are locked and not installed, because only `devDependencies` need them.
    pub left_out: usize,
    /// Whether the lock was used without checking it, so that nothing else was done.
    pub frozen: bool,
    /// Whether anything was written at all.
    pub dry_run: bool,
    /// Packages that were replaced by others, and their replacements.
    pub newly_replaced: Vec<(PackageId, PackageId)>,
    /// For a dry run, the packages that would be replaced although nobody has agreed to that.
    pub unagreed: BTreeSet<PackageId>,
    /// What a downgrade lowered or dropped, in addition to the requested packages.
    pub lowered: Vec<Lowered>,
    /// The packages that only this machine uses instead of locked ones.
    pub edits: Vec<EditInUse>,
}

/// A package that only this machine uses instead of a locked one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EditInUse {
    /// The package.
    pub id: PackageId,
    /// Its folder, relative to the workspace's root.
    pub folder: String,
    /// How many commits it has beyond those of its origin, if that is known.
    pub ahead: Option<usize>,
}

impl std::fmt::Display for EditInUse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, folder, ahead } = self;
        write!(formatter, "using the edit of {id} in {folder}")?;
        match ahead {
            None | Some(0) => Ok(()),
            Some(some) => write!(formatter, " ({} ahead)", count(*some, "commit")),
        }
    }
}

/// A package whose new version contains another minor version of its app.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct AppMove {
    /// The package.
    pub id: PackageId,
    /// The app version before.
    pub from: String,
    /// The app version now.
    pub to: String,
}

/// One package that moved, was added or was removed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Change {
    /// The package.
    pub id: PackageId,
    /// Its version before; `None` if it is new.
    pub from: Option<String>,
    /// Its version now; `None` if it is gone.
    pub to: Option<String>,
    /// The versions in between, if its versions follow each other step by step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// The branches, tags or commits, if versions alone say little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<Moved>,
}

/// The origin of a package in a Git repository, before and now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Moved {
    /// The branch or tag before; none for a version or a commit.
    pub from_ref: Option<String>,
    /// The commit before.
    pub from_commit: Option<String>,
    /// The branch or tag now; none for a version or a commit.
    pub to_ref: Option<String>,
    /// The commit now.
    pub to_commit: Option<String>,
}

impl Change {
    /// A package that goes from one version to another.
    pub fn new(id: PackageId, from: Option<String>, to: Option<String>) -> Self {
        Self { id, from, to, via: Vec::new(), git: None }
    }

    /// The state before and after, for people: `main 4446f1b` and `06c436d` for a branch that moved, else
    /// versions.
    pub fn before_and_after(&self) -> (Option<String>, Option<String>) {
        let Some(git) = &self.git else { return (self.from.clone(), self.to.clone()) };
        let label = |version: &Option<String>, name: &Option<String>, commit: &Option<String>| {
            let version = version.as_ref()?;
            let short = commit.as_ref().map(|commit| commit.get(..7).unwrap_or(commit));
            // `main 4446f1b` for a branch or a tag, `4446f1b` for a commit without a version, else the version.
            Some(match (name, short) {
                (Some(name), Some(short)) => format!("{name} {short}"),
                (None, Some(short)) if version.starts_with(LockedPackage::NO_VERSION) => {
                    short.to_owned()
                }
                _ => version.clone(),
            })
        };
        let from = label(&self.from, &git.from_ref, &git.from_commit);
        // A branch that moved is named once: from `main 4446f1b` to `06c436d`.
        let is_same = git.from_ref == git.to_ref;
        let to_ref = if is_same && from.is_some() { &None } else { &git.to_ref };
        let to = match (&git.to_commit, to_ref) {
            (Some(commit), None) if is_same && git.to_ref.is_some() && from.is_some() => {
                Some(commit.get(..7).unwrap_or(commit).to_owned())
            }
            _ => label(&self.to, to_ref, &git.to_commit),
        };
        (from, to)
    }
}

impl Outcome {
    /// The answer for `lock`, compared with `previous`.
    pub fn new(lock: Arc<Lockfile>, previous: &Lockfile, requirements: &Requirements) -> Self {
        let mut asked: Vec<String> = requirements
            .asked
            .iter()
            // `mu update 'db#2.0.0'` asks for it in this run only: nobody requires it afterwards.
            .filter(|asked| !asked.by.is_move())
            .map(|asked| format!("{}#{}", asked.requirement.id, asked.requirement.spec))
            .collect();
        asked.sort();
        asked.dedup();
        let roots: BTreeSet<&str> =
            requirements.asked.iter().map(|asked| asked.by.as_str()).collect();
        let ids = |indirect: bool| -> BTreeSet<&PackageId> {
            let asked = requirements.asked.iter().filter(|asked| asked.indirect == indirect);
            asked.map(|asked| &asked.requirement.id).collect()
        };
        let indirect = ids(true).difference(&ids(false)).map(|id| (*id).clone()).collect();
        // Also a package that is replaced by another one than before.
        let new = lock.replaced.iter().filter(|replaced| {
            previous.replacement(&replaced.id).is_none_or(|before| before.by != replaced.by)
        });
        Self {
            newly_replaced: new.map(|new| (new.id.clone(), new.by.clone())).collect(),
            changes: lock_changes(previous, &lock),
            app_moves: app_moves(previous, &lock),
            lock,
            requirements: asked,
            roots: roots.into_iter().map(str::to_owned).collect(),
            indirect,
            ..Self::default()
        }
    }

    /// The answer for `lock`, compared with `previous`, with the versions that packages move through step by
    /// step.
    #[must_use]
    pub fn by_way_of(mut self, ways: &BTreeMap<PackageId, Vec<String>>) -> Self {
        for change in &mut self.changes {
            if let (Some(way), Some(_), Some(_)) = (ways.get(&change.id), &change.from, &change.to)
            {
                change.via.clone_from(way);
            }
        }
        self
    }

    /// Reports changes relative to the supposed installation, instead of the lock.
    pub(crate) fn suppose_installed(&mut self, installed: &BTreeMap<PackageId, InstalledVersion>) {
        for (id, installed) in installed {
            let Some(now) = self.lock.find(id).last() else { continue };
            let (from, to) = (installed.version.to_string(), now.version.clone());
            let change = self.changes.iter_mut().find(|change| change.id == *id);
            match change {
                Some(change) => change.from = Some(from),
                None if from != to => {
                    self.changes.push(Change::new(id.clone(), Some(from), Some(to)));
                }
                None => {}
            }
        }
        // A package that the lock moves, and that was installed like this already, has not changed.
        self.changes.retain(|change| change.from != change.to || change.git.is_some());
        self.changes.sort();
    }

    /// Whether a root requires a package.
    pub fn is_direct(&self, package: &LockedPackage) -> bool {
        let is_asked = |id: &PackageId, requested: &[Requested]| {
            !self.indirect.contains(id)
                && requested
                    .iter()
                    .any(|requested| self.roots.iter().any(|root| **root == *requested.by))
        };
        let mut replaced = self.lock.replaced.iter().filter(|replaced| replaced.by == package.id);
        is_asked(&package.id, &package.requested)
            || replaced.any(|replaced| is_asked(&replaced.id, &replaced.requested))
    }
}

/// The packages that moved to another minor version of their app. App versions that are not numbers have no
/// minor version.
fn app_moves(before: &Lockfile, after: &Lockfile) -> Vec<AppMove> {
    // A composite version has the app's in itself. For others, a manifest or a listing says it.
    let app = |package: &LockedPackage| {
        let composite =
            package.parsed_version().and_then(|version| version.app().map(str::to_owned));
        composite.or_else(|| package.app_version.clone())
    };
    // The minor line of an app: 8.4.3 and 8.4.9 are in the same one.
    let line = |app: &str| {
        let version = Version::parse_lenient(app).ok()?;
        let version = version.as_semver()?;
        Some((version.major, version.minor))
    };
    let moved = after.packages.iter().filter_map(|package| {
        let before = before.find(&package.id).last()?;
        if before.version == package.version && before.app_version == package.app_version {
            return None;
        }
        let (from, to) = (app(before)?, app(package)?);
        let is_left = line(&from)? != line(&to)?;
        is_left.then(|| AppMove { id: package.id.clone(), from, to })
    });
    moved.collect()
}

/// The differences between two locks, by id.
pub(crate) fn lock_changes(before: &Lockfile, after: &Lockfile) -> Vec<Change> {
    let mut changes = Vec::new();
    // Both locks are sorted by id. They are walked together, as two sorted lists are merged: the smaller id of both
    // fronts is next. Each round takes away at least one package, so this ends.
    let (mut before, mut after) = (before.packages.as_slice(), after.packages.as_slice());
    while let Some(id) = before.first().into_iter().chain(after.first()).map(|one| &one.id).min() {
        let (old, new) = (take(&mut before, id), take(&mut after, id));
        let gone: Vec<&LockedPackage> =
            old.iter().filter(|old| !new.iter().any(|new| is_same(old, new))).collect();
        let come: Vec<&LockedPackage> =
            new.iter().filter(|new| !old.iter().any(|old| is_same(old, new))).collect();
        // Of a package in several majors, those that went are paired with those that came, in the order of versions.
        // Without a partner, one was removed or added: 1.4 and 2.0 become 1.5 and 2.0, told as one change from 1.4 to
        // 1.5.
        for index in 0..gone.len().max(come.len()) {
            let (from, to) = (gone.get(index), come.get(index));
            // Same version, other content: a branch that moved without a release, told as `1.2.0 (4446f1b)`.
            let same_version = from.zip(to).is_some_and(|(from, to)| from.version == to.version);
            // And one that comes from another folder with the same content, by these.
            let same_content = from.zip(to).is_some_and(|(from, to)| content(from) == content(to));
            let text = |package: &&LockedPackage| match same_version {
                true if same_content => format!("{} ({})", package.version, package.source.place),
                true => version_with_content(package),
                false => package.version.clone(),
            };
            let (from, to) = (from.map(text), to.map(text));
            let git = moved(gone.get(index).copied(), come.get(index).copied());
            changes.push(Change { git, ..Change::new(id.clone(), from, to) });
        }
    }
    changes
}

/// The version of a package, with what distinguishes it from others of this version.
pub(crate) fn version_with_content(package: &LockedPackage) -> String {
    match content(package) {
        Some(content) => format!("{} ({content})", package.version),
        None => package.version.clone(),
    }
}

/// What distinguishes a package from others of its version: the start of its commit or digest.
fn content(package: &LockedPackage) -> Option<String> {
    // The digest of an archive or artifact is known before its content is.
    Some(match (&package.commit, package.revision()) {
        (Some(commit), _) => commit.get(..7).unwrap_or(commit).to_owned(),
        (None, Some(digest)) => ArtifactDigest::shortened(&digest).to_owned(),
        (None, None) => package.digest?.to_string().chars().take(10).collect(),
    })
}

/// The branches, tags or commits of a package in a Git repository, if its versions do not show them.
fn moved(from: Option<&LockedPackage>, to: Option<&LockedPackage>) -> Option<Moved> {
    let is_untold = |package: &LockedPackage| {
        package.commit.is_some() && (package.reference.is_some() || !package.is_versioned())
    };
    from.into_iter().chain(to).any(is_untold).then(|| Moved {
        from_ref: from.and_then(|from| from.reference.clone()),
        from_commit: from.and_then(|from| Some(from.commit.as_ref()?.to_string())),
        to_ref: to.and_then(|to| to.reference.clone()),
        to_commit: to.and_then(|to| Some(to.commit.as_ref()?.to_string())),
    })
}

/// Takes the packages with this id, if it is the first.
fn take<'lock>(packages: &mut &'lock [LockedPackage], id: &PackageId) -> &'lock [LockedPackage] {
    let end = packages.iter().take_while(|package| package.id == *id).count();
    let (taken, rest) = packages.split_at(end);
    *packages = rest;
    taken
}

fn is_same(left: &LockedPackage, right: &LockedPackage) -> bool {
    left.version == right.version
        && left.commit == right.commit
        && left.artifact == right.artifact
        && (left.archive == right.archive || !left.source.is_url_archive())
        // Which registry or repository it comes from does not matter, because the content is the locked one.
        && (left.source == right.source || !left.source.is_authored_folder() && !right.source.is_authored_folder())
        // A digest that is missing on one side was only not known yet: filling it in is no change.
        && (left.digest == right.digest || left.digest.is_none() || right.digest.is_none())
}
