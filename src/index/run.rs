//! The state of a whole run: what it was started with, where packages are, and what was required of them so far.
//!
//! [`IndexOptions`] are what the caller decides; [`Run`] takes them, and learns the rest. It loads no packages: whoever needs to
//! know about other ones asks [`PackageSurroundings`].
//!
//! References were often parsed before: most packages need the same few packages, in the same few ranges. Their requirements are
//! created once, and shared. Only plain references are cached: a name, with or without a base, that means its id. One of a
//! single segment does not if the package that has it stands in a namespace, which it means first. Any other reference, and any
//! invalid one, is parsed separately.
//!
//! [`AskedCommits`] has the requirements of packages, as far as they decide whether a registry must be asked. A commit never
//! changes: if a package is only required at full commits, and those are on this machine, no list of versions is needed. The
//! provider knows whether they are. The same holds for digests.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mu_provider::threads::lock;
use mu_provider::{Dates, Progress, ProviderError, Reach, Release};
use rustc_hash::FxHashMap;

use crate::index::routes::{Providers, Route, Routes, Searchable};
use crate::reference::{Defaults, PackageId, Reference, VersionSpec};
use crate::select::{Requirement, Unavailable};
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
    /// Whether the one that somebody has put into the workspace is the only version, though its registry has published the same.
    pub keeps_placed: bool,
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

/// Longer references are not cached.
const LONGEST: usize = 1_000;

/// The plain references of this run.
#[derive(Debug, Default)]
pub(super) struct PlainReferences(Mutex<Met>);

#[derive(Debug, Default)]
struct Met {
    /// By the base that they leave out, and the part before the version: places in `packages`; `None` if it
    /// is not plain.
    places: FxHashMap<Box<str>, FxHashMap<Box<str>, Option<usize>>>,
    packages: Vec<Package>,
    specs: Specs,
    /// The requirement of a package, by its place and that of a specification.
    requirements: FxHashMap<(usize, usize), Arc<Requirement>>,
}

#[derive(Debug)]
struct Package {
    id: PackageId,
    /// Whether it was recorded that versions of it are wanted.
    is_wanted: bool,
}

#[derive(Debug, Default)]
struct Specs {
    places: FxHashMap<Box<str>, usize>,
    all: Vec<VersionSpec>,
}

impl PlainReferences {
    /// The requirements of references, each split where its version starts, of the package `by`; `None` if one of them is not
    /// plain, or means a package that has another name here.
    pub(super) fn requirements(
        &self,
        by: &PackageId,
        references: &[(&str, Option<&str>)],
        commits: &AskedCommits,
        has_other_name: impl Fn(&PackageId) -> bool,
    ) -> Option<Arc<[Arc<Requirement>]>> {
        let mut met = lock(&self.0);
        let Met { places, packages, specs, requirements } = &mut *met;
        let has_namespace = by.name_str().contains('/');
        let places = match places.get_mut(by.base_str()) {
            Some(places) => places,
            None => places.entry(by.base_str().into()).or_default(),
        };
        let mut all = Vec::with_capacity(references.len());
        for &(place, version) in references {
            if has_namespace && !place.contains('/') {
                return None;
            }
            let spec = specs.place(version.unwrap_or(VersionSpec::Latest.as_str()))?;
            let package = match places.get(place) {
                Some(&known) => known?,
                None => {
                    let id = plain(by, place).filter(|id| !has_other_name(id));
                    places.insert(place.into(), id.as_ref().map(|_| packages.len()));
                    packages.push(Package { id: id?, is_wanted: false });
                    packages.len() - 1
                }
            };
            let requirement = match requirements.entry((package, spec)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let spec = specs.all.get(spec)?;
                    unknown.insert(packages.get_mut(package)?.requirement(spec, commits))
                }
            };
            all.push(Arc::clone(requirement));
        }
        Some(all.into())
    }
}

impl Package {
    /// The requirement of this form, after recording that it exists.
    fn requirement(&mut self, spec: &VersionSpec, commits: &AskedCommits) -> Arc<Requirement> {
        let is_commit = matches!(spec, VersionSpec::Commit(_) | VersionSpec::Digest(_));
        if !self.is_wanted || is_commit {
            commits.note(&self.id, spec);
            self.is_wanted |= !is_commit;
        }
        Arc::new(Requirement::new(self.id.clone(), spec.clone()))
    }
}

impl Specs {
    /// The place of this text; `None` if it is not valid.
    fn place(&mut self, text: &str) -> Option<usize> {
        if let Some(&known) = self.places.get(text) {
            return Some(known);
        }
        self.all.push(VersionSpec::parse(text).ok().filter(|_| text.len() < LONGEST)?);
        self.places.insert(text.into(), self.all.len() - 1);
        Some(self.all.len() - 1)
    }
}

/// The package that a plain reference of the package `by` names.
fn plain(by: &PackageId, place: &str) -> Option<PackageId> {
    let reference = Reference::parse(place).ok().filter(|_| place.len() < LONGEST)?;
    let says_more = reference.protocol().is_some()
        || reference.user().is_some()
        || reference.local().is_some()
        || reference.path() != reference.name().as_str();
    // A place near to this machine is checked before it counts.
    let is_near =
        || reference.base().is_some_and(|base| Reach::of_host(base.host_port()) != Reach::Network);
    let base = reference.base().cloned().unwrap_or_else(|| by.base());
    (!says_more && !is_near()).then(|| PackageId::new(&base, reference.name()))
}

/// The commits that are required of each package; `None` if something is that only a list of versions can answer.
#[derive(Debug, Default)]
pub(super) struct AskedCommits(Mutex<FxHashMap<PackageId, Option<BTreeSet<String>>>>);

impl AskedCommits {
    /// Records that `spec` is required of `id`.
    pub(super) fn note(&self, id: &PackageId, spec: &VersionSpec) {
        let mut wanted = lock(&self.0);
        let asked = wanted.entry(id.clone()).or_insert_with(|| Some(BTreeSet::new()));
        let commit = match spec {
            VersionSpec::Commit(commit) if commit.is_full() => commit.as_str().to_ascii_lowercase(),
            VersionSpec::Digest(digest) => digest.as_str().to_owned(),
            _ => return *asked = None,
        };
        if let Some(commits) = asked {
            commits.insert(commit);
        }
    }

    /// The commits that are required of `id`, if nothing else is.
    pub(super) fn only_commits(&self, id: &PackageId) -> Option<Vec<String>> {
        let wanted = lock(&self.0);
        wanted.get(id)?.as_ref().map(|commits| commits.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_references_are_what_they_are_read_as() {
        let [alone, by] =
            ["acme.co/b", "acme.co/a/b"].map(|id| PackageId::parse(id).expect("is an id"));
        let known = PlainReferences::default();
        for (place, expected, in_namespace) in [
            ("aws/ec2", Some("acme.co/aws/ec2"), Some("acme.co/aws/ec2")),
            ("hub.mu.com/ec2", Some("hub.mu.com/ec2"), Some("hub.mu.com/ec2")),
            ("ec2", Some("acme.co/ec2"), None),
            ("./ec2", None, None),
            ("https://acme.co/aws/ec2", None, None),
            ("git@acme.co:aws/ec2", None, None),
            ("git@acme.co:ec2", None, None),
            ("ec2.git", None, None),
            ("aws/ec2.git", None, None),
            ("aws//ec2", None, None),
        ] {
            for (version, has_namespace) in
                [(Some("^1.2"), false), (None, false), (Some("^1.2"), true), (None, true)]
            {
                let (wanted, place) = (AskedCommits::default(), (place, version));
                let by = if has_namespace { &by } else { &alone };
                let found = known.requirements(by, &[place], &wanted, |_| false);
                let id = |found: Arc<[Arc<Requirement>]>| found[0].id.to_string();
                let expected = if has_namespace { in_namespace } else { expected };
                assert_eq!(found.map(id).as_deref(), expected, "{place:?} {has_namespace}");
            }
        }
        assert_eq!(
            known.requirements(&by, &[("aws/ec2", Some("^"))], &AskedCommits::default(), |_| false),
            None
        );
    }

    #[test]
    fn what_is_wanted_of_a_package_is_noted() {
        let (known, wanted) = (PlainReferences::default(), AskedCommits::default());
        let commit = "a".repeat(40);
        let id = PackageId::parse("hub.mu.com/aws/ec2").expect("is an id");
        known
            .requirements(&id, &[("aws/ec2", Some(&commit))], &wanted, |_| false)
            .expect("is plain");
        assert_eq!(wanted.only_commits(&id), Some(vec![commit]));
        known.requirements(&id, &[("aws/ec2", Some("^1"))], &wanted, |_| false).expect("is plain");
        assert_eq!(wanted.only_commits(&id), None);
    }

    #[test]
    fn commits_are_alone_until_anything_else_is_asked() {
        let wanted = AskedCommits::default();
        let id = PackageId::parse("example.com/a").expect("is an id");
        let note = |text: &str| wanted.note(&id, &VersionSpec::parse(text).expect("is a version"));
        assert_eq!(wanted.only_commits(&id), None);
        let (one, two) = ("a".repeat(40), "b".repeat(40));
        note(&one);
        note(&two.to_ascii_uppercase());
        assert_eq!(wanted.only_commits(&id), Some(vec![one.clone(), two]));
        note("aaaaaaa");
        assert_eq!(wanted.only_commits(&id), None);
        note(&one);
        assert_eq!(wanted.only_commits(&id), None);
    }
}
