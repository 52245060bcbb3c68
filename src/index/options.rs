//! The options of an index.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_provider::{Dates, Progress, ProviderError, Release};

use crate::index::routes::Providers;
use crate::reference::{Defaults, PackageId};
use crate::workspace::ConfiguredRegistry;

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
