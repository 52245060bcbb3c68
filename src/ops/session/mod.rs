//! What every operation starts from: the workspace (or the global packs), its settings, the providers, the index and the
//! store.
//!
//! Opening a session reads settings and manifests, and nothing else; providers and the index are made when they are first
//! needed.

pub(crate) mod advisories;
pub(crate) mod age;
pub(crate) mod credentials;
pub(crate) mod disk;
pub(crate) mod edits;
pub mod error;
pub mod events;
pub(crate) mod folders;
pub mod installed;
pub mod locked;
pub(crate) mod opening;
pub(crate) mod places;
#[cfg(feature = "exec")]
pub(crate) mod plugins;
pub(crate) mod providers;
pub mod shown;
pub(crate) mod source;
pub mod warning;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};

use mu_formats::helm::HelmRepositoryAliases;
use mu_provider::http::{Credentials, Http, HttpOptions, Watch};
use mu_provider::threads;

use crate::env::Environment;
use crate::fs::Lock;
use crate::index::{Index, IndexOptions, MOST_PACKAGES, Providers};
use crate::lock::Lockfile;
use crate::ops::session::advisories::AdvisoriesInForce;
use crate::ops::session::credentials::RunTokens;
use crate::ops::session::edits::{EditedPackage, View};
use crate::ops::session::events::{Aside, Work};
use crate::ops::session::folders::AllowedFolders;
use crate::ops::session::installed::PacksHere;
use crate::ops::session::shown::PackageNaming;
use crate::ops::session::warning::Warning;
use crate::ops::{Events, Stage, WorkspacePlaces};
use crate::packs::PacksFolder;
use crate::reference::{Defaults, PackageId, Reference};
use crate::select::{Strategy, strategy_named};
use crate::store::Store;
use crate::trust::TrustInForce;
use crate::workspace::{
    CONFIG_FILE, ConfiguredRegistry, MU_FOLDER, Resolution, WORKSPACE_FILE, Workspace,
};

pub use self::opening::open_to_ask;
#[cfg(feature = "git")]
pub use self::opening::open_to_end;

/// How many requests a run may send for each package that it may look at.
const REQUESTS_OF_A_PACKAGE: usize = 10;

/// The options from the command line, for every operation.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Make no connection.
    pub offline: bool,
    /// Ask registries, however recent their last answers are.
    pub refresh: bool,
    /// Fail if the lock would change.
    pub locked: bool,
    /// Use the lock without checking it against the manifests.
    pub frozen: bool,
    /// Use a store that cannot be written: add nothing to it, and take no lock in it.
    pub store_readonly: bool,
    /// Do not install what only `devDependencies` need.
    pub no_dev: bool,
    /// The strategy, if one was requested.
    pub resolution: Option<Resolution>,
    /// The latest time of publication, in seconds since 1970; [`i64::MAX`] allows everything, whatever the settings say.
    pub published_before: Option<i64>,
    /// Whether to find out when versions were published, even if selection does not need it.
    pub dated: bool,
    /// Every range accepts prereleases.
    pub prereleases: bool,
    /// How many steps a search for versions may take, if requested.
    pub patience: Option<usize>,
    /// Whether to ignore packs of this machine, because the answer must be the same for everyone.
    pub without_packs: bool,
    /// Edits of this machine may be in use where nobody would notice: in continuous integration, and when publishing.
    pub allow_edits: bool,
    /// Which packages count as the workspace's, if not those that the way of opening a session implies.
    pub view: Option<View>,
    /// Every question is answered with yes.
    pub yes: bool,
    /// Plain http to other machines is allowed.
    pub allow_insecure: bool,
    /// The number of parallel jobs; 0 means a sensible default.
    pub jobs: usize,
    /// Registries of this run only, which take precedence over those of the settings.
    pub registries: Vec<ConfiguredRegistry>,
    /// The prefixes of ids that are looked up, if not all are.
    pub only: Vec<String>,
    /// How many packages may be requested, if not the default number.
    pub most: Option<usize>,
    /// Whether answers say where archives are.
    pub tells_archives: bool,
    /// Flags of any command that affect its result, with their values: suggested commands repeat them.
    pub repeated: Vec<(&'static str, Option<String>)>,
}

/// What an operation works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationScope {
    /// The workspace around the current folder.
    Workspace,
    /// The global packs.
    Global,
}

impl OperationScope {
    /// The scope with or without `--global`.
    pub fn from_global_flag(is_global: bool) -> Self {
        if is_global { Self::Global } else { Self::Workspace }
    }
}

/// An opened workspace, or the global packs.
pub struct Session {
    /// The machine around.
    pub(crate) environment: Environment,
    /// The options. They are the same from the first question on: what is asked must not depend on who asked before.
    pub(in crate::ops) options: Options,
    /// What it works on.
    pub(crate) scope: OperationScope,
    /// The workspace; of the global packs one without members.
    pub(crate) workspace: Workspace,
    /// Where packages are found.
    pub(crate) places: WorkspacePlaces,
    /// The store.
    pub(crate) store: Store,
    /// Receives warnings and progress.
    pub(crate) events: Arc<dyn Events>,
    /// How packages are called in messages.
    pub(crate) shown: PackageNaming,
    /// Decides which folders packages may come from.
    pub(crate) folders: Arc<AllowedFolders>,
    /// The rules about who may vouch for packages.
    pub(crate) trust: TrustInForce,
    /// Where advisories come from, and which of them do not count.
    pub(crate) advisories: AdvisoriesInForce,
    http: OnceLock<Arc<Http>>,
    index: OnceLock<Index>,
    /// The lock as it was read, until it is written.
    lockfile: Mutex<Option<Option<Arc<Lockfile>>>>,
    /// The short names of chart repositories.
    short_names: OnceLock<HelmRepositoryAliases>,
    /// Whether the lock has other versions of the workspace's own packages than their manifests.
    lock_lags: AtomicBool,
    /// Packages that were looked up to learn what a name means, and whether they exist.
    known_names: Mutex<BTreeMap<PackageId, bool>>,
    /// The packages that only this machine uses instead of locked ones.
    pub(crate) edited: Vec<EditedPackage>,
    /// Whether packages that only this machine uses count among the workspace's.
    view: View,
    /// Held while the packs, the lock and the manifests may change.
    lock: Option<ChangeLock>,
}

/// Held while packs, lock, manifests and settings may change.
pub struct ChangeLock {
    packs: PacksFolder,
    /// Folders that are new.
    made: Vec<PathBuf>,
    _lock: Lock,
}

impl Drop for ChangeLock {
    fn drop(&mut self) {
        self.packs.remove_traces(&self.made);
    }
}

impl Session {
    fn new(
        environment: Environment,
        options: Options,
        scope: OperationScope,
        events: Arc<dyn Events>,
        mut workspace: Workspace,
    ) -> Self {
        for registry in &options.registries {
            workspace.settings.put_registry(registry.clone());
        }
        // What is printed calls packages as the lock does.
        let lock_folder = lock_folder(scope, &workspace, &environment);
        let shown = PackageNaming::in_workspace(&workspace, lock_folder);
        events.names(&shown);
        for warning in &workspace.warnings {
            events.warning(&Warning::File(warning.clone()));
        }
        let places = WorkspacePlaces::new(&workspace, &environment);
        let folders = Arc::new(AllowedFolders::new(&workspace, &environment, options.yes, &events));
        let settings = &workspace.settings.advisories;
        let advisories = AdvisoriesInForce::new(settings, &workspace.root, &environment, &events);
        let trust =
            TrustInForce::new(&workspace.settings.trust, &workspace.root, &environment.cache);
        Self {
            trust,
            store: Store::new(&environment.cache).read_only(options.store_readonly),
            environment,
            options,
            scope,
            workspace,
            places,
            shown,
            events,
            folders,
            advisories,
            http: OnceLock::new(),
            index: OnceLock::new(),
            lockfile: Mutex::default(),
            short_names: OnceLock::new(),
            lock_lags: AtomicBool::new(false),
            known_names: Mutex::default(),
            edited: Vec::new(),
            view: View::default(),
            lock: None,
        }
    }

    /// The session with settings that have changed since it was opened; nothing may have been asked before.
    #[cfg(any(feature = "exec", feature = "git"))]
    #[must_use]
    pub(in crate::ops) fn with_settings(
        mut self,
        change: impl FnOnce(&mut crate::workspace::Settings),
    ) -> Self {
        change(&mut self.workspace.settings);
        self
    }

    /// The folder that holds `Mu.lock`.
    pub fn lock_folder(&self) -> &Path {
        lock_folder(self.scope, &self.workspace, &self.environment)
    }

    /// The file of settings of the workspace, or of the user.
    pub(crate) fn settings_file(&self, global: bool) -> PathBuf {
        match global {
            true => self.environment.mu_home.join(CONFIG_FILE),
            false => self.workspace.root.join(MU_FOLDER).join(WORKSPACE_FILE),
        }
    }

    /// The packs that this session installs.
    pub fn packs(&self) -> PacksFolder {
        packs_of(self.scope, &self.workspace.root, &self.environment)
    }

    /// Packages that were looked up to learn what a name means, and whether they exist.
    pub(crate) fn known_names(&self) -> MutexGuard<'_, BTreeMap<PackageId, bool>> {
        threads::lock(&self.known_names)
    }

    /// What references outside of manifests mean without a base.
    pub fn reference_defaults(&self) -> Defaults {
        self.workspace.defaults_outside_manifests()
    }

    /// The id that a reference of the command line means.
    pub fn id_of_argument(&self, reference: &Reference) -> PackageId {
        self.places.id_of(
            reference,
            &self.reference_defaults(),
            &self.environment.current,
            &self.workspace,
        )
    }

    /// The name of a package in messages and commands here.
    pub fn short_name<'i>(&self, id: &'i PackageId) -> Cow<'i, str> {
        self.shown.reference(id)
    }

    /// The strategy in effect.
    pub fn strategy(&self) -> &'static dyn Strategy {
        strategy_named(self.resolution())
    }

    /// The name of the strategy in effect.
    pub fn resolution(&self) -> Resolution {
        self.options.resolution.unwrap_or(self.workspace.settings.resolution)
    }

    /// The number of parallel jobs while waiting for the network.
    pub fn network_jobs(&self) -> usize {
        if self.options.jobs > 0 { self.options.jobs } else { 16 }
    }

    /// The number of parallel jobs while packages are listed: these requests are small, so only latency counts.
    pub fn listing_jobs(&self) -> usize {
        if self.options.jobs > 0 { self.options.jobs } else { 50 }
    }

    /// The number of parallel jobs while computing or writing files for so many items.
    pub fn disk_jobs(&self, items: usize) -> usize {
        static CORES: LazyLock<usize> =
            LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
        match self.options.jobs {
            // The system reads several files to count its processors.
            _ if items <= 1 => 1,
            0 => *CORES,
            jobs => jobs,
        }
    }

    /// The index, created when it is first needed.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let index = self.make_index();
            self.declare_locked(&index);
            index
        })
    }

    /// Tells the index where the lock has packages from.
    fn declare_locked(&self, index: &Index) {
        // The code that needs the lock reports if it cannot be read.
        let lock = self.lockfile().ok().flatten().unwrap_or_default();
        let defaults = self.reference_defaults();
        for package in &lock.packages {
            // The lock is the workspace's own word.
            index.let_in(&package.id);
            if let Some(reference) = source::stated_reference(index.providers(), package, &defaults)
            {
                index.declare_locked(&package.id, &reference);
            }
        }
    }

    /// Writes what the index learned; a failure is only reported as a detail.
    pub fn save_index(&self) {
        if let Some(index) = self.index.get()
            && let Err(error) = index.save()
        {
            self.events.detail(&|| format!("cannot save the index: {error}"));
        }
    }

    fn make_index(&self) -> Index {
        // The code that writes into it reports if it cannot be created.
        let _ = crate::env::create_cache(&self.environment.cache);
        let (places, own) = (self.places.clone(), self.places.clone());
        let defaults = self.reference_defaults();
        let root = &self.workspace.root;
        let overrides = self.workspace.settings.overrides.iter();
        let instead_of = overrides
            .map(|(id, reference)| {
                (places.id_of(reference, &defaults, root, &self.workspace), id.clone())
            })
            .collect();
        let without_packs = self.options.without_packs;
        let packs = Arc::new(PacksHere::new(self));
        let (others, placed) = (Arc::clone(&packs), Arc::clone(&packs));
        let events = Arc::clone(&self.events);
        let answered = Arc::clone(&self.events);
        let environment = self.environment.clone();
        let folders = Arc::clone(&self.folders);
        Index::new(IndexOptions {
            providers: self.make_providers(),
            registries: self.workspace.settings.registries.clone(),
            only: self.options.only.clone(),
            defaults,
            instead_of,
            helms_aliases: Box::new(move || crate::formats::helms_aliases(&environment)),
            own_name: Box::new(move |id: PackageId| own.own_name(id)),
            check_folder: Box::new(move |folder| folders.check(folder)),
            is_local: Box::new(move |id: &PackageId| places.member_of(id).is_some()),
            installed: Box::new(move |id: &PackageId| packs.installed(id)),
            of_user_and_runtime: Box::new(move |id: &PackageId| {
                if without_packs { Vec::new() } else { others.of_user_and_runtime(id) }
            }),
            placed: Box::new(move |id: &PackageId| {
                placed.placed_pack(id).filter(|_| !without_packs)
            }),
            // With the minimal strategy, a version that is there would make the line that asks for it needless. Without the network,
            // there may be no other.
            keeps_placed: self.options.offline || self.resolution() == Resolution::Highest,
            cache: self.environment.cache.clone(),
            offline: self.options.offline,
            fresh_for: self.workspace.settings.fresh_for,
            refresh: self.options.refresh,
            allow_insecure: self.options.allow_insecure,
            dates: self.age_rule().needed_dates(self.options.dated),
            now: self.environment.now,
            jobs: self.listing_jobs(),
            most: self.most_packages(),
            progress: Arc::new(Aside(Arc::clone(&events))),
            begin: Box::new(move |what| Box::new(Work::begin(&events, what))),
            answered: Box::new(move |done, total| {
                answered.progress(Stage::Resolving, done, total);
            }),
        })
    }

    /// The client for all http requests, created when it is first needed.
    pub(crate) fn http(&self) -> Arc<Http> {
        Arc::clone(self.http.get_or_init(|| {
            let events = Arc::clone(&self.events);
            client(self, Arc::new(RunTokens::new(&self.environment, events)))
        }))
    }

    /// Whether there is a token for the host of a URL, and it may be sent there.
    pub(crate) fn has_token(&self, url: &mu_provider::SafeUrl) -> bool {
        self.http().has_credential(url)
    }

    /// How many packages may be requested.
    fn most_packages(&self) -> usize {
        self.options.most.unwrap_or(MOST_PACKAGES)
    }

    /// The plugins of this machine; none of them has been started.
    #[cfg(feature = "exec")]
    pub(crate) fn plugins(&self) -> plugins::OfThisMachine {
        let (environment, workspace) = (&self.environment, &self.workspace);
        plugins::OfThisMachine::new(environment, workspace, self.options.offline, self.http())
    }

    fn make_providers(&self) -> Providers {
        let http = self.http();
        let (offline, folders) = (self.options.offline, &self.folders);
        let providers = providers::all_providers(&self.environment, offline, &http, folders);
        #[cfg(feature = "exec")]
        let providers = providers.with_plugins(Arc::new(self.plugins()));
        providers
    }
}

impl Drop for Session {
    /// What was learned is also stored if a command fails, so that the next run need not ask again.
    fn drop(&mut self) {
        self.save_index();
    }
}

/// The folder that holds the lock of a scope.
fn lock_folder<'s>(
    scope: OperationScope,
    workspace: &'s Workspace,
    environment: &'s Environment,
) -> &'s Path {
    match scope {
        OperationScope::Workspace => &workspace.root,
        OperationScope::Global => &environment.mu_home,
    }
}

/// The packs that are installed in a scope.
fn packs_of(scope: OperationScope, root: &Path, environment: &Environment) -> PacksFolder {
    match scope {
        OperationScope::Workspace => PacksFolder::for_workspace(root, &environment.cache),
        OperationScope::Global => PacksFolder::for_user(&environment.mu_home, &environment.cache),
    }
}

/// A client for http requests that shows these passwords and tokens.
pub(super) fn client(session: &Session, credentials: Arc<dyn Credentials>) -> Arc<Http> {
    let events = Arc::clone(&session.events);
    let watch: Watch = Arc::new(move |event| events.request(event));
    Http::new(HttpOptions {
        offline: session.options.offline,
        ahead: session.network_jobs(),
        most_requests: REQUESTS_OF_A_PACKAGE * session.most_packages().max(MOST_PACKAGES),
        credentials,
        token_hosts: session.workspace.settings.token_hosts.clone(),
        watch: Some(watch),
        proxies: providers::proxies(&session.environment),
        ways: Arc::new(providers::ways(&session.environment)),
        buckets: providers::buckets(&session.environment),
        certificates: providers::certificates(&session.environment),
        ..HttpOptions::default()
    })
}
