//! Opening a session: the workspace around the current folder or the global packs, for reading, or as the only process
//! that changes them.
//!
//! What that needs first is here, too. The short names of chart repositories (`repository: "@stable"`) in the
//! workspace's own manifests are as the user gave them to Helm, or else as Mu.lock has the chart, so that a machine
//! without Helm's settings installs what is locked. Of packages that a sparse checkout leaves out, Git has the
//! manifests; they count as unchanged, so that Mu.lock keeps what they need.
//!
//! The user is told which bases a workspace leads elsewhere than the user does: once for each checkout, and again if it
//! changes. It is no question: a workspace may do it. But ids then mean something else than elsewhere, which should not
//! go unseen.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use mu_formats::helm::HelmRepositoryAliases;
use mu_provider::threads;

use super::edits::View;
use super::{ChangeLock, Session, packs_of};
use crate::env::Environment;
use crate::formats;
use crate::fs::{self, FileError, Lock, Sharing};
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::{Code, CommandError, Events, OperationScope, Options, Warning, WorkspacePlaces};
use crate::packs::PacksFolder;
#[cfg(feature = "git")]
use crate::workspace::root::local_git;
use crate::workspace::{Key, MU_FOLDER, RedirectedBase, Workspace, find_root};

impl Session {
    /// Opens the workspace around the current folder, or the global packs; with the packages that are edited here, unless the
    /// options name another view.
    pub fn open(
        environment: Environment,
        options: Options,
        scope: OperationScope,
        events: Arc<dyn Events>,
    ) -> Result<Self, CommandError> {
        let root = root_of(scope, &environment);
        if scope == OperationScope::Workspace {
            check_root(&root, &environment)?;
        }
        let mut session = Self::open_at(&root, environment, options, scope, events)?;
        for warning in session.workspace.unread.warnings() {
            session.events.warning(&Warning::File(warning.clone()));
        }
        session.part_edits(session.options.view.clone().unwrap_or(View::Here));
        Ok(session)
    }

    /// Opens the workspace at a root that was checked.
    fn open_at(
        root: &Path,
        environment: Environment,
        options: Options,
        scope: OperationScope,
        events: Arc<dyn Events>,
    ) -> Result<Self, CommandError> {
        let workspace = match scope {
            OperationScope::Workspace => own(root, &environment, &*events)?,
            OperationScope::Global => global(&environment)?,
        };
        Ok(Self::new(environment, options, scope, events, workspace))
    }

    /// Opens the workspace around the current folder only for its settings, even if its packages are not valid; or the
    /// settings of the user alone, whatever is around.
    pub fn open_settings(
        environment: Environment,
        options: Options,
        scope: OperationScope,
        events: Arc<dyn Events>,
    ) -> Result<Self, CommandError> {
        let root = root_of(scope, &environment);
        if scope == OperationScope::Workspace {
            check_root(&root, &environment)?;
        }
        let workspace = Workspace::open_without_members(&root, &environment.mu_home)?;
        Ok(Self::new(environment, options, scope, events, workspace))
    }

    /// Opens like [`Session::open`], as the only process that changes these packs; waits for others. Without another view in
    /// the options, packages that are edited here are left out.
    ///
    /// The lock is taken before anything is read, so that what is read is what will be changed.
    pub fn open_to_change(
        environment: Environment,
        options: Options,
        scope: OperationScope,
        events: Arc<dyn Events>,
    ) -> Result<Self, CommandError> {
        let root = root_of(scope, &environment);
        let packs = packs_of(scope, &root, &environment);
        if scope == OperationScope::Workspace {
            let global = packs_of(OperationScope::Global, &root, &environment);
            let is_in_home = packs.path().starts_with(&environment.mu_home);
            if is_in_home || packs.path() == global.path() {
                let message = format!(
                    "`{}` contains the global packs, and cannot be the packs of a workspace too",
                    global.path().display()
                );
                return Err(CommandError::new(Code::Usage, message)
                    .hint("use `--global`, or work in another folder"));
            }
            // Before anything is created there.
            check_root(&root, &environment)?;
        }
        let lock = ChangeLock::of(packs, &*events)?;
        for folder in [&root, &root.join(MU_FOLDER), &environment.mu_home] {
            fs::remove_left_behind(folder);
        }
        // Reading a long lock takes as long as reading everything else.
        let (session, lockfile) = std::thread::scope(|running| {
            let read = || Lockfile::read(&root);
            let reading =
                Lockfile::is_long(&root).then(|| threads::start_in(running, read).ok()).flatten();
            let session = Self::open_at(&root, environment, options, scope, events);
            (session, reading.and_then(|reading| reading.join().ok()))
        });
        let mut session = session?;
        session.refuse_unread()?;
        session.lock = Some(lock);
        // The code that needs it reports why it cannot be read.
        if let Some(Ok(lockfile)) = lockfile {
            let lockfile = lockfile.map(|lock| session.up_to_date(lock));
            *threads::lock(&session.lockfile) = Some(lockfile);
        }
        let view = session.options.view.clone();
        session.part_edits(view.unwrap_or(View::Team));
        if session.options.view.as_ref().is_none_or(|view| *view != View::Here) {
            session.refuse_edits_in_integration()?;
        }
        Ok(session)
    }
}

impl ChangeLock {
    /// Locks packs; waits for others.
    fn of(packs: PacksFolder, events: &dyn Events) -> Result<Self, CommandError> {
        let made = packs.missing_folders();
        let _lock = packs.lock(&mut || {
            let folder = packs.path().display();
            events.waiting(&format!("another mu process is changing `{folder}`"));
        })?;
        warn_without_locks(&_lock, packs.path(), events);
        Ok(Self { packs, made, _lock })
    }

    /// Keeps other processes from changing the settings and manifests of the workspace around the current folder, or the settings of
    /// the user; to be taken before they are read.
    pub fn of_files(
        environment: &Environment,
        scope: OperationScope,
        events: &dyn Events,
    ) -> Result<Self, CommandError> {
        let root = root_of(scope, environment);
        if scope == OperationScope::Workspace {
            check_root(&root, environment)?;
        }
        Self::of(packs_of(scope, &root, environment), events)
    }
}

/// Opens the workspace around the current folder for a question about packages elsewhere: if one of its own packages cannot be
/// read, it is open without them, and a warning says so.
pub fn open_to_ask(
    environment: Environment,
    options: Options,
    events: Arc<dyn Events>,
) -> Result<Session, CommandError> {
    let (ours, theirs) = ((environment.clone(), options.clone()), Arc::clone(&events));
    Session::open(ours.0, ours.1, OperationScope::Workspace, theirs)
        .or_else(|error| without_members(environment, options, events, &error))
}

/// Opens the workspace around the current folder to end edits, as the only process that changes it: also if the manifest of one of
/// its packages cannot be read, which may be the one that is edited.
#[cfg(feature = "git")]
pub fn open_to_end(
    environment: Environment,
    options: Options,
    events: Arc<dyn Events>,
) -> Result<Session, CommandError> {
    let (ours, theirs) = ((environment.clone(), options.clone()), Arc::clone(&events));
    let scope = OperationScope::Workspace;
    Session::open_to_change(ours.0, ours.1, scope, theirs).or_else(|error| {
        let lock = ChangeLock::of_files(&environment, scope, &*events)?;
        let mut session = without_members(environment, options, events, &error)?;
        session.lock = Some(lock);
        Ok(session)
    })
}

/// The workspace without its own packages, because of which it could not be opened.
fn without_members(
    environment: Environment,
    options: Options,
    events: Arc<dyn Events>,
    error: &CommandError,
) -> Result<Session, CommandError> {
    let scope = OperationScope::Workspace;
    let session = Session::open_settings(environment, options, scope, Arc::clone(&events))?;
    let text = error.error.to_string();
    let why = text.lines().next().unwrap_or_default().to_owned();
    events.warning(&Warning::MembersUnread { why });
    Ok(session)
}

/// The workspace at a root, with the members that a sparse checkout leaves out.
fn own(
    root: &Path,
    environment: &Environment,
    events: &dyn Events,
) -> Result<Workspace, CommandError> {
    let names = LazyCell::new(|| short_names(root, environment));
    let aliases = || names.clone();
    let own = [&*environment.mu_home, &*environment.cache];
    #[cfg_attr(not(feature = "git"), expect(unused_mut, reason = "only Git adds to it"))]
    let mut workspace = Workspace::open(root, own, &aliases)?;
    #[cfg(feature = "git")]
    add_left_out(&mut workspace, environment, &aliases, events)?;
    #[cfg(not(feature = "git"))]
    let _ = events;
    Ok(workspace)
}

/// The settings of the user, and the registries of the enclosing workspace: where packages come from does not depend on
/// where they are installed.
fn global(environment: &Environment) -> Result<Workspace, CommandError> {
    let home = &environment.mu_home;
    let root = root_around(environment);
    check_root(&root, environment)?;
    let around = Workspace::open_without_members(&root, home)?.settings.registries;
    let mut workspace = Workspace::open_without_members(home, home)?;
    workspace.settings.registries = around;
    Ok(workspace)
}

/// Refuses a workspace that another user prepared.
fn check_root(root: &Path, environment: &Environment) -> Result<(), CommandError> {
    Ok(Workspace::check_root(root, &environment.mu_home, &environment.users)?)
}

/// The folder that holds `Mu.lock`.
fn root_of(scope: OperationScope, environment: &Environment) -> PathBuf {
    match scope {
        OperationScope::Workspace => root_around(environment),
        OperationScope::Global => environment.mu_home.clone(),
    }
}

fn root_around(environment: &Environment) -> PathBuf {
    find_root(&environment.current, &environment.home, &environment.mu_home)
}

impl Session {
    /// The session of a workspace that also has a package whose manifest, with this text, is not on disk yet; nothing may have been
    /// asked before.
    pub(crate) fn with_member(mut self, path: &Path, text: &str) -> Result<Self, CommandError> {
        self.workspace.add_new(path, text)?;
        self.places = WorkspacePlaces::new(&self.workspace, &self.environment);
        Ok(self)
    }

    /// Refuses to change anything while a manifest that is there cannot be read: what only its package requires would be removed. A folder
    /// that cannot be searched, such as one of a database, is refused only if Mu.lock has what a package requires that is nowhere else.
    pub(crate) fn refuse_unread(&self) -> Result<(), CommandError> {
        let unread = &self.workspace.unread;
        let (place, message, first) = if let Some((place, file)) = unread.manifests.first() {
            let (path, why) = (file.path().display(), file.message());
            let message = format!("what the package of `{path}` requires is not known: {why}");
            (place, message, "let it be a file in the workspace, or remove it")
        } else if let Some((place, folder)) = unread.folders.first()
            && let Some(by) = self.lost_requirer()?
        {
            let path = folder.path().display();
            let message = format!(
                "`{path}` cannot be searched for packages, and `{by}`, for which Mu.lock has packages, may be in it"
            );
            (place, message, "let your user read that folder")
        } else {
            return Ok(());
        };
        let error = CommandError::new(Code::Manifest, message).hint(first);
        Err(match &**place {
            "" => error,
            place => error.hint(format!(
                "to do without it, write `members: [\"**\", \"!{place}\"]` into `.mu/workspace.yaml`"
            )),
        })
    }

    /// A package that requires something in Mu.lock, and is neither in it nor in the workspace.
    fn lost_requirer(&self) -> Result<Option<String>, CommandError> {
        let Some(lock) = Lockfile::read(&self.workspace.root)? else { return Ok(None) };
        let mut known: BTreeSet<String> =
            lock.packages.iter().map(|package| package.id.to_string()).collect();
        for member in &self.workspace.members {
            known.extend([member.id.to_string(), member.manifest.name.to_string()]);
        }
        // Commands have spaces in their names, and packages have none.
        let is_package = |by: &str| by != Key::overrides && !by.contains(' ');
        let mut by = lock.packages.iter().flat_map(|package| &package.requested);
        let lost = by.find(|by| is_package(&by.by) && !known.contains(&*by.by));
        Ok(lost.map(|lost| lost.by.to_string()))
    }

    /// Keeps other processes from pruning the store while the returned lock lives; waits if one is pruning.
    ///
    /// A store that is only read is never pruned, and has no lock.
    pub(crate) fn use_store(&self) -> Result<Option<Lock>, FileError> {
        if self.store.is_read_only() {
            return Ok(None);
        }
        crate::env::create_cache(&self.environment.cache)?;
        let lock = self.store.lock(Sharing::Shared, &mut || {
            self.events.waiting("another mu process is pruning the store");
        })?;
        warn_without_locks(&lock, self.store.folder(), &*self.events);
        Ok(Some(lock))
    }
}

/// Warns if nothing keeps other processes away from a folder.
fn warn_without_locks(lock: &Lock, folder: &Path, events: &dyn Events) {
    if lock.is_missing() {
        events.warning(&Warning::NoFileLocks { folder: folder.to_owned() });
    }
}

impl Session {
    /// The short names that the workspace's own manifests may use.
    pub(crate) fn short_names(&self) -> &HelmRepositoryAliases {
        self.short_names.get_or_init(|| short_names(&self.workspace.root, &self.environment))
    }
}

/// Those of the user, and what the lock in `root` has, which is read when one is missing.
fn short_names(root: &Path, environment: &Environment) -> HelmRepositoryAliases {
    let root = root.to_owned();
    let locked = OnceLock::new();
    formats::helms_aliases(environment).or_of_chart(move |chart| {
        let locked: &BTreeMap<String, Option<String>> = locked.get_or_init(|| {
            let lock = Lockfile::read(&root).ok().flatten();
            lock.map(|lock| repositories(&lock.packages)).unwrap_or_default()
        });
        locked.get(chart).cloned().flatten()
    })
}

/// The repositories of the charts that the workspace's own packages require, by the name of the chart; nothing for one that comes
/// from two.
fn repositories(packages: &[LockedPackage]) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    for package in packages.iter().filter(|package| is_required_here(package, packages)) {
        let Some(url) = repository(package) else { continue };
        let entry = found.entry(package.id.name().leaf().to_owned());
        // A chart in several versions is there several times.
        let one = |known: &mut Option<String>| *known = known.take().filter(|other| *other == url);
        entry.and_modify(one).or_insert_with(|| Some(url.clone()));
    }
    found
}

/// Whether something else than a locked package requires one.
fn is_required_here(package: &LockedPackage, packages: &[LockedPackage]) -> bool {
    let is_other = |by: &str| {
        packages.iter().any(|other| !other.source.is_authored_folder() && other.id.as_str() == by)
    };
    package.requested.iter().any(|requested| !is_other(&requested.by))
}

/// The URL of the repository that a chart is in.
fn repository(package: &LockedPackage) -> Option<String> {
    let (id, source) = (package.id.as_str(), &package.source);
    let (place, _) = id.rsplit_once('/')?;
    let scheme = match &*source.provider {
        "oci" => "oci",
        "helm" if source.place.starts_with("http://") => "http",
        "helm" => "https",
        _ => return None,
    };
    Some(format!("{scheme}://{place}"))
}

/// Adds the packages that a sparse checkout leaves out.
#[cfg(feature = "git")]
fn add_left_out(
    workspace: &mut Workspace,
    environment: &Environment,
    aliases: &dyn Fn() -> HelmRepositoryAliases,
    events: &dyn Events,
) -> Result<(), CommandError> {
    let named = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        formats::manifest_names().any(|known| known == name)
    };
    let local = local_git(environment);
    let found = mu_provider_git::Surroundings::not_checked_out(
        &workspace.root,
        &|path| named(path),
        &local,
    );
    let found = found.map_err(super::edits::unreadable)?;
    let mut lacking = Vec::new();
    for (path, text) in found {
        match text {
            Some(text) => workspace.add_left_out(&path, &text, aliases)?,
            None => lacking.push(path),
        }
    }
    let others = lacking.len().saturating_sub(1);
    if let Some(first) = lacking.into_iter().next() {
        events.warning(&Warning::SparseCheckout { first, others });
    }
    Ok(())
}

/// The folder of the cache that has what was told about each checkout.
const FOLDER: &str = "told";

/// Warns of each base that the workspace leads elsewhere.
pub(crate) fn warn_of_redirected_bases(session: &Session) {
    for base in redirected_bases(session) {
        session.events.warning(&Warning::Redirected(base));
    }
}

fn redirected_bases(session: &Session) -> Vec<RedirectedBase> {
    match session.scope {
        OperationScope::Workspace => session.workspace.settings.redirected_bases(),
        OperationScope::Global => Vec::new(),
    }
}

/// Warns of them, unless this was said of this checkout before.
pub(crate) fn warn_of_redirects(session: &Session) {
    let bases = redirected_bases(session);
    if bases.is_empty() {
        return;
    }
    let lines = bases.iter().map(|RedirectedBase { prefix, place }| format!("{prefix} {place}"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let path = session.packs().path_in_cache(FOLDER);
    let known = path.as_ref().and_then(|path| fs::read_text_if_there(path).ok().flatten());
    if known.as_deref() == Some(&text) {
        return;
    }
    warn_of_redirected_bases(session);
    if let Some(path) = path {
        // Without it, it is said once more.
        let _ = crate::env::create_cache(&session.environment.cache)
            .and_then(|()| fs::write_atomic(&path, text.as_bytes()));
    }
}
