//! The state of a whole run: what it was started with, where packages are, and what was required of them so far.
//!
//! [`IndexOptions`] are what the caller decides; [`Run`] takes them, and learns the rest. It loads no packages: whoever
//! needs to know about other ones asks [`PackageSurroundings`].

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mu_provider::threads::lock;
use mu_provider::{Dates, Progress, ProviderError, Release};

use crate::index::plain::{AskedCommits, PlainReferences};
use crate::index::routes::{Providers, Route, Routes, Searchable};
use crate::reference::{Defaults, PackageId, Reference};
use crate::select::Unavailable;
use crate::workspace::ConfiguredRegistry;

/// The state of a whole run.
pub(super) struct Run {
    pub(super) options: IndexOptions,
    pub(super) routes: Routes,
    pub(super) commits: AskedCommits,
    pub(super) plain: PlainReferences,
    /// Whether registries are asked, however recent their last answers are.
    pub(super) asks_all: AtomicBool,
    /// The packages about which they are asked.
    pub(super) asked_about: Mutex<HashSet<PackageId>>,
}

/// What a package must know about the others.
pub(super) trait PackageSurroundings {
    /// The state of the whole run.
    fn run(&self) -> &Run;

    /// Whether there is a package with this id in its registry.
    fn is_there(&self, id: &PackageId) -> Result<bool, Unavailable>;

    /// Requests packages that this will be asked about, without waiting for the answers.
    fn ask_ahead(&self, ids: &[PackageId]);
}

impl Run {
    /// A run without any request yet.
    pub(super) fn new(mut options: IndexOptions) -> Self {
        let routes = Routes::new(&mut options);
        let (commits, plain) = (AskedCommits::default(), PlainReferences::default());
        let asks_all = AtomicBool::new(options.refresh);
        Self { options, routes, commits, plain, asks_all, asked_about: Mutex::default() }
    }

    /// Whether a package may be looked up at all.
    pub(super) fn is_looked_for(&self, id: &PackageId) -> bool {
        let only = &self.options.only;
        let is_below = |prefix: &String| {
            id.as_str().starts_with(prefix.as_str()) || id.as_str() == prefix.trim_end_matches('/')
        };
        only.is_empty() || only.iter().any(is_below)
    }

    /// Where packages can be searched by words, without excluded places.
    pub(super) fn searchable_registries(&self) -> Vec<Searchable> {
        self.within(self.routes.registries_for_search(&self.options.defaults.base))
    }

    /// The repositories of these references where packages can be searched by words, without those that a registry of the
    /// settings serves, and without excluded places.
    pub(super) fn searchable_repositories(&self, references: &[Reference]) -> Vec<Searchable> {
        let known = self.routes.registries_for_search(&self.options.defaults.base);
        let mut places: Vec<Searchable> = Vec::new();
        for reference in references {
            let id = reference.id(&self.options.defaults);
            let leaf = id.name().leaf().to_owned();
            let prefix = id.as_str().strip_suffix(&*leaf).unwrap_or_default().to_owned();
            let is_known = |place: &Searchable| prefix.starts_with(&*place.prefix);
            if prefix.is_empty() || known.iter().chain(&places).any(is_known) {
                continue;
            }
            self.declare(&id, reference, Path::new(""));
            if let Some(mut route) = self.routes.known(&id, None) {
                route.location.path = String::new();
                places.push(Searchable { before_names: prefix.clone(), prefix, route: Ok(route) });
            }
        }
        self.within(places)
    }

    /// Leaves out places that the command excludes.
    fn within(&self, mut places: Vec<Searchable>) -> Vec<Searchable> {
        let only = &self.options.only;
        places.retain(|place| {
            let overlaps = |prefix: &String| {
                prefix.starts_with(&*place.prefix) || place.prefix.starts_with(&**prefix)
            };
            only.is_empty() || only.iter().any(overlaps)
        });
        places
    }

    pub(super) fn progress(&self) -> &dyn Progress {
        &*self.options.progress
    }

    /// Starts to look up a package.
    pub(super) fn start_lookup(&self, id: &PackageId) -> Box<dyn Progress> {
        (self.options.begin)(id.as_str())
    }

    /// Whether an answer from `checked`, in seconds since 1970, needs no new request, or none is allowed.
    pub(super) fn is_fresh(&self, (checked, max_age): (i64, Option<u32>)) -> bool {
        let age = self.options.now.saturating_sub(checked);
        let allowed = i64::from(max_age.unwrap_or(self.options.fresh_for));
        let is_recent = (0..allowed).contains(&age) && !self.asks_all.load(Ordering::Relaxed);
        self.options.offline || is_recent
    }

    /// As [`Self::is_fresh`], for an answer about a package.
    pub(super) fn is_fresh_for(&self, id: &PackageId, times: (i64, Option<u32>)) -> bool {
        let is_asked = || !self.options.offline && lock(&self.asked_about).contains(id);
        self.is_fresh(times) && !is_asked()
    }

    /// Records the place of a package that `reference` gives, a dependency of a package at `place`, and its requirement; local
    /// folders are relative to `from`.
    pub(super) fn declare_dependency(
        &self,
        place: &Route,
        id: &PackageId,
        reference: &Reference,
        from: &Path,
    ) -> Result<(), &'static str> {
        // The settings have the place of what they replace, and of what they give another name.
        let is_settled = self.options.instead_of.values().any(|original| original == id)
            || self.stands_for(id, reference).is_some();
        if !is_settled && reference.local().is_none() {
            self.routes.let_in_dependency(place, id, reference)?;
        }
        self.declare(id, reference, from);
        Ok(())
    }

    /// Records the place of a package that `reference` gives, which was written by somebody who may name it, and its requirement;
    /// local folders are relative to `from`.
    pub(super) fn declare(&self, id: &PackageId, reference: &Reference, from: &Path) {
        match self.stands_for(id, reference) {
            None => self.routes.declare(id, reference, from),
            // The place in the reference does not count.
            Some(instead) => self.routes.declare(id, &instead, from),
        }
        self.commits.note(id, &reference.spec());
    }

    /// The reference to what `reference` means, if an alias makes it `id`.
    fn stands_for(&self, id: &PackageId, reference: &Reference) -> Option<Reference> {
        let aliases = &self.options.defaults.aliases;
        if aliases.is_empty() || reference.local().is_some() {
            return None;
        }
        let written = reference.id(&Defaults::default());
        aliases.reference(&written).filter(|_| written != *id)
    }
}

/// How the index behaves.
pub struct IndexOptions {
    /// The available providers.
    pub providers: Providers,
    /// The registries of the settings.
    pub registries: Vec<ConfiguredRegistry>,
    /// The prefixes of ids that are looked up; if there are none, all are.
    pub only: Vec<String>,
    /// What references in the manifests of folders leave out.
    pub defaults: Defaults,
    /// Overrides: packages that are used instead of others, and those others.
    pub instead_of: HashMap<PackageId, PackageId>,
    /// Refuses a folder that no package may come from.
    pub check_folder: RefuseFolder,
    /// Whether a package is found in the workspace, whatever registries say.
    pub is_local: Box<dyn Fn(&PackageId) -> bool + Send + Sync>,
    /// The own name of a package of the workspace that was requested by another name.
    pub own_name: Box<dyn Fn(PackageId) -> PackageId + Send + Sync>,
    /// The installed versions of a package, for [`crate::index::Index::use_installed`].
    pub installed: InstalledReleases,
    /// The packs of the user and the runtime for a package, which count if no registry has it.
    pub of_user_and_runtime: InstalledReleases,
    /// The pack that somebody has put into the workspace, with its folder: the only version that is used.
    pub placed: PlacedPack,
    /// The short names that the user gave to chart repositories.
    pub helms_aliases: Box<dyn Fn() -> mu_formats::HelmRepositoryAliases + Send + Sync>,
    /// The cache folder.
    pub cache: PathBuf,
    /// Whether only the cache may be used.
    pub offline: bool,
    /// For how many seconds the answer of a registry that does not say so itself is used without asking again.
    pub fresh_for: u32,
    /// Whether registries are asked, however recent their last answers are.
    pub refresh: bool,
    /// Whether plain http to other machines is allowed.
    pub allow_insecure: bool,
    /// Why publication times are needed.
    pub dates: Dates,
    /// Now, in seconds since 1970.
    pub now: i64,
    /// How many requests are sent at once.
    pub jobs: usize,
    /// How many packages may be requested, as [`crate::index::MOST_PACKAGES`].
    pub most: usize,
    /// Receives waits and warnings.
    pub progress: Arc<dyn Progress>,
    /// Starts a piece of work that may take long, with this name; it ends when the result is dropped.
    pub begin: Begin,
    /// Receives the number of packages that have answered, of how many were requested.
    pub answered: Box<dyn Fn(usize, usize) + Send + Sync>,
}

/// Refuses a folder of this machine that no package may come from.
pub type RefuseFolder = Box<dyn Fn(&Path) -> Result<(), ProviderError> + Send + Sync>;

/// Begins a piece of work.
pub type Begin = Box<dyn Fn(&str) -> Box<dyn Progress> + Send + Sync>;

/// The pack of a package that somebody has put into the workspace, with its folder.
pub type PlacedPack = Box<dyn Fn(&PackageId) -> Option<(PathBuf, Release)> + Send + Sync>;

/// Returns the installed releases of a package.
pub type InstalledReleases = Box<dyn Fn(&PackageId) -> Vec<Release> + Send + Sync>;
