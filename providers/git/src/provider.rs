//! The provider itself: each method of the trait, as a few calls to other modules.
//!
//! It finds the commit that a revision names, with all its digits or some.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{ObjectType, Oid};
use mu_provider::fs::RunFolder;
use mu_provider::http::Http;
use mu_provider::{
    Commit, Dates, ErrorKind, Facts, Found, FoundEvidence, FoundPiece, Listing, Location,
    LoggedCommit, ManifestFile, PlaceKind, Programs, Progress, Provider, ProviderError, Release,
    TreeWriter, json_lines, none_if,
};
use mu_trust::{Evidence, GitKind};

use crate::database::{Bounds, ReadObjects};
use crate::export::RunningExport;
use crate::listing;
use crate::listing::{Listed, Package};
use crate::manifest;
use crate::ref_name::parse;
use crate::ref_name::{self, FULL};
use crate::repositories::{Repositories, Settled};
use crate::repository::Repository;
use crate::snapshot::CommitFiles;

/// The folder in the cache for repositories that packs of others are taken into.
const KEPT: &str = "kept";

/// Says whether packages may come from a repository in a folder of this machine; by default, from each.
#[derive(Clone)]
pub struct CheckFolder(Arc<Check>);

type Check = dyn Fn(&Path) -> Result<(), ProviderError> + Send + Sync;

impl CheckFolder {
    /// Allows those for which `check` does not fail.
    pub fn new(check: impl Fn(&Path) -> Result<(), ProviderError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Checks one.
    pub(crate) fn check(&self, folder: &Path) -> Result<(), ProviderError> {
        (self.0)(folder)
    }
}

impl Default for CheckFolder {
    fn default() -> Self {
        Self::new(|_| Ok(()))
    }
}

mu_provider::debug_fields!(CheckFolder {});

/// The settings of the provider.
#[derive(Clone)]
pub struct GitOptions {
    /// The folder for bare repositories, one for each remote. Several processes can share it.
    pub cache: PathBuf,
    /// Whether to use no network. Repositories on this machine can still be read.
    pub offline: bool,
    /// The environment for `git` and `ssh`, including `PATH` and `HOME`. `GIT_SSH_COMMAND` and `GIT_SSH` are
    /// respected; mu asks Git, which runs in `cache`, for `core.sshCommand` and `url.….insteadOf`.
    pub programs: Programs,
    /// Where the user works: what their configuration of Git includes for the repository there counts (`includeIf "gitdir:…"`).
    pub current: Option<PathBuf>,
    /// The client that all providers share.
    pub http: Arc<Http>,
    /// Is asked about each repository on this machine that the user has not named.
    pub check_folder: CheckFolder,
    /// How many bytes one fetch may bring.
    pub largest_pack: u64,
    /// How many bytes one file may have.
    pub largest_file: u64,
}

impl GitOptions {
    /// The usual options: with the given cache and client, no environment, and offline if the client is.
    pub fn new(cache: impl Into<PathBuf>, http: &Arc<Http>) -> Self {
        Self {
            cache: cache.into(),
            offline: http.options().offline,
            programs: Programs::default(),
            current: None,
            http: Arc::clone(http),
            check_folder: CheckFolder::default(),
            largest_pack: 4 << 30,
            largest_file: 1 << 30,
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            pack: self.largest_pack,
            file: self.largest_file,
            building: std::time::Duration::from_secs(30),
        }
    }
}

// The variables may contain tokens.
mu_provider::debug_fields!(GitOptions { cache, offline, largest_pack });

/// Serves packages from Git repositories.
#[derive(Debug)]
pub struct GitProvider {
    repositories: Repositories,
}

impl GitProvider {
    /// A provider that has not connected to anything.
    pub fn new(options: GitOptions) -> Self {
        Self { repositories: Repositories::new(options) }
    }

    fn settle_release(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<(Settled, Oid), ProviderError> {
        let commit = ref_name::parse(release.commit.as_deref()).ok_or_else(|| {
            let text = format!("a release of `{}` names no commit", location.describe());
            ProviderError::new(ErrorKind::NotFound, text)
        })?;
        Ok((self.repositories.settle(location, Some(commit), progress)?, commit))
    }
}

impl Provider for GitProvider {
    fn name(&self) -> &str {
        "git"
    }

    fn facts(&self) -> Facts {
        Facts { place: "a Git repository", kind: PlaceKind::Repository, ..Facts::default() }
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        let progress = &mu_provider::Silent;
        let settled = self.repositories.settle(location, None, progress);
        let listed = settled.and_then(|settled| settled.repository.advertisement(progress));
        Ok(none_if(listed, ErrorKind::NotFound)?.is_some())
    }

    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let settled = self.repositories.settle(location, None, progress);
        let listed = settled.and_then(|settled| {
            let listed = settled.repository.advertisement(progress)?;
            Ok((settled, listed))
        });
        let Some((settled, listed)) = none_if(listed, ErrorKind::NotFound)? else {
            return Ok(Listing::absent(self.repositories.tried(location)));
        };
        let package = Package::new(&settled.folder, location);
        let is_known = |package: Package<'_>| validator == Some(&*package.validator(&listed));
        // Dates that nobody needs do no harm.
        let dated = package.with_dates(true);
        if is_known(package) || is_known(dated) {
            return Ok(Listing::Unchanged { max_age: None, validator: None });
        }
        let mut releases = package.releases(&listed);
        let is_dated = location.dates != Dates::Ignored
            && listing::add_dates(&settled.repository, &listed, &mut releases, progress)?;
        if location.dates == Dates::Needed && !is_dated {
            let remote = &settled.repository.remote;
            progress.warning(&format!(
                "it is not known how old the versions of `{remote}` are: its server gives no commits without \
                 their files"
            ));
        }
        // If dates are missing, ask for them again next time.
        let validator = package.with_dates(is_dated).validator(&listed);
        Ok(Listing::Found(found(&settled, location, &releases, validator)?))
    }

    fn recall(
        &self,
        location: &Location,
        revisions: &[String],
        progress: &dyn Progress,
    ) -> Option<Found> {
        let commits: Option<Vec<Oid>> =
            revisions.iter().map(|revision| ref_name::parse(Some(revision))).collect();
        let settled = self.repositories.recall(location, &commits?, progress)?;
        let listed = settled.repository.known_advertisement()?;
        let package = Package::new(&settled.folder, location).with_dates(false);
        let validator = package.validator(&listed);
        found(&settled, location, &package.releases(&listed), validator).ok()
    }

    fn releases_of(
        &self,
        location: &Location,
        commit: &Commit,
        version: &str,
    ) -> Option<Vec<Release>> {
        let mut known = None;
        for settled in self.repositories.candidates(location, &mu_provider::Silent) {
            let Some(listed) = settled.repository.known_listing() else { continue };
            let package = Package::new(&settled.folder, location);
            // In most cases the answer stands in one line, and the others need not be understood.
            let plain = package.plain_release(version, commit);
            if let Some(plain) = plain.filter(|plain| listed.has(plain)) {
                return Some(vec![plain]);
            }
            let Some(listed) = listed.advertisement() else { continue };
            let commit = ref_name::parse(Some(commit))?;
            let all = package.releases(&listed);
            let here = all.iter().filter(|release| release.commit == commit);
            let here: Vec<Release> = here.map(Listed::to_listed_release).collect();
            if !here.is_empty() {
                return Some(here);
            }
            known = Some(here);
        }
        known
    }

    fn has_version_at(
        &self,
        location: &Location,
        commit: &Commit,
        version: &str,
        progress: &dyn Progress,
    ) -> bool {
        // Whoever lists the place then reports the error.
        let settled = self.repositories.settle(location, ref_name::parse(Some(commit)), progress);
        let Ok(Settled { repository, folder }) = settled else { return false };
        // The tag of a whole repository was that of its folders, too, until they got tags of their own.
        [folder.as_str(), ""].iter().any(|folder| {
            let plain = Package::new(folder, location).plain_release(version, commit);
            let tag = plain.and_then(|plain| plain.reference);
            tag.is_some_and(|tag| repository.has_ref(&tag, commit, progress).unwrap_or(false))
        })
    }

    fn resolve(
        &self,
        location: &Location,
        revision: &str,
        progress: &dyn Progress,
    ) -> Result<Release, ProviderError> {
        let full = ref_name::parse(Some(revision));
        let settled = self.repositories.settle(location, full, progress)?;
        let commit = find_commit(&settled.repository, revision, progress)?;
        let listed = settled.repository.known_advertisement();
        Ok(Package::new(&settled.folder, location).release_of(commit, listed.as_deref()))
    }

    fn manifest(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, ProviderError> {
        let (settled, commit) = self.settle_release(location, release, progress)?;
        let (repository, folder) = (&settled.repository, settled.folder.as_str());
        let near = || match repository.known_advertisement() {
            Some(listed) => Package::new(folder, location).neighbours(commit, &listed),
            None => Vec::new(),
        };
        repository.ensure_ahead(commit, folder, near, progress)?;
        let snapshot = CommitFiles::open(repository, commit, progress)?;
        manifest::read(&snapshot, &snapshot.package_folder(folder)?)
    }

    fn evidence(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<FoundEvidence, ProviderError> {
        let (settled, commit) = self.settle_release(location, release, progress)?;
        let repository = &settled.repository;
        // Offline, what was listed before counts; without it nobody knows whether there is a tag that is signed.
        let known = repository.known_advertisement().filter(|_| repository.offline);
        let listed = match known {
            Some(listed) => listed,
            None => repository.advertisement(progress)?,
        };
        let package = Package::new(&settled.folder, location);
        let tag = package.tag_of(release, commit, &listed);
        let (tag, place, kind, object) = match tag.filter(|tag| tag.target != commit) {
            Some(tag) => {
                let name = tag.tag().unwrap_or_default().to_owned();
                let place = format!("the tag `{name}`");
                let object = repository.tag_object(tag.target, commit, progress)?;
                (Some(name), place, GitKind::Tag, object)
            }
            // A tag that is only a name has no signature of its own.
            None => {
                repository.ensure(commit, progress)?;
                let mut copy = <[u8]>::to_vec;
                let object =
                    repository.read(commit, commit, ObjectType::Commit, progress, &mut copy)?;
                (None, format!("the commit {commit}"), GitKind::Commit, object)
            }
        };
        let evidence = Ok(Evidence::Git { kind, object });
        Ok(FoundEvidence {
            subject: commit.to_string(),
            tag,
            looked_at: vec![place.clone()],
            pieces: vec![FoundPiece { place, evidence, manifests: Vec::new(), archive: None }],
            ..FoundEvidence::default()
        })
    }

    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let (settled, commit) = self.settle_release(location, release, progress)?;
        let snapshot = CommitFiles::open(&settled.repository, commit, progress)?;
        let folder = snapshot.package_folder(&settled.folder)?;
        RunningExport::new(&self.repositories, tree, progress).run(snapshot, &folder)
    }

    fn preserve(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        let objects = Arc::new(ReadObjects::default());
        let reading = Self { repositories: self.repositories.noting_reads(&objects) };
        reading.fetch(location, release, tree, progress)?;
        drop(reading);
        let objects = Arc::into_inner(objects).unwrap_or_default();
        let pack = objects.into_pack().map_err(|error| {
            let text = format!("cannot pack the objects of `{}`", location.describe());
            ProviderError::new(ErrorKind::Io, text).because(error)
        });
        pack.map(Some)
    }

    fn restore(
        &self,
        location: &Location,
        release: &Release,
        preserved: &[u8],
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        // The folder goes when this ends, and with it what the pack has brought: nothing else reads that.
        let folder = RunFolder::new(&self.repositories.cache_folder().join(KEPT))?;
        let repositories = self.repositories.alone_in(folder.path().to_owned());
        let alone = Self { repositories };
        let (settled, commit) = alone.settle_release(location, release, progress)?;
        settled.repository.take_pack(commit, &mut { preserved }, progress)?;
        alone.fetch(location, release, tree, progress)
    }

    fn log(
        &self,
        location: &Location,
        from: &str,
        to: &str,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<LoggedCommit>>, ProviderError> {
        let (Some(from), Some(to)) = (ref_name::parse(Some(from)), ref_name::parse(Some(to)))
        else {
            return Ok(None);
        };
        let settled = self.repositories.settle(location, Some(to), progress)?;
        settled.repository.log(from, to, progress)
    }
}

/// The answer with these releases.
fn found(
    settled: &Settled,
    location: &Location,
    releases: &[Listed<'_>],
    validator: String,
) -> Result<Found, ProviderError> {
    let lines = json_lines(releases.iter().map(Listed::to_listed_release));
    Ok(Found::new(&settled.location(location)?, lines, Some(validator), None))
}

/// Fewer digits than Git itself would print are anything but certain.
const SHORTEST: usize = 7;

/// Finds the commit that `revision` names, and makes sure that it is in the database.
fn find_commit(
    repository: &Repository,
    revision: &str,
    progress: &dyn Progress,
) -> Result<Oid, ProviderError> {
    let prefix = revision.to_ascii_lowercase();
    let is_hex = prefix.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || !(SHORTEST..=FULL).contains(&prefix.len()) {
        let text = format!("`{revision}` is not a commit of `{}`", repository.remote);
        return Err(ProviderError::new(ErrorKind::NotFound, text)
            .hint(format!("a commit is written with {SHORTEST} to {FULL} hex digits")));
    }
    if let Some(named) = parse(Some(&prefix)) {
        if repository.has_commit(named) {
            return Ok(named);
        }
        // A ref to the commit also gives its version, and every server sends the commits of refs. It may be the object of a tag.
        let listed = match repository.offline {
            true => repository.known_advertisement(),
            false => Some(repository.advertisement(progress)?),
        };
        let tag = listed.iter().flat_map(|listed| &listed.refs).find(|other| other.target == named);
        let commit = tag.map_or(named, |tag| tag.commit);
        repository.ensure(commit, progress)?;
        return Ok(commit);
    }
    if let Some(commit) = only(repository, &prefix, repository.database.commits_beginning(&prefix))?
    {
        return Ok(commit);
    }
    let listed = if repository.offline { None } else { Some(repository.advertisement(progress)?) };
    let refs = listed.iter().flat_map(|listed| &listed.refs);
    let begins = |oid: &Oid| oid.to_string().starts_with(&prefix);
    let tips = refs.filter(|other| [other.commit, other.target].iter().any(begins));
    let tips = tips.map(|other| other.commit);
    let mut found = only(repository, &prefix, tips.collect())?;
    if found.is_none() {
        found = only(repository, &prefix, repository.search(&prefix, progress)?)?;
    }
    let commit = found.ok_or_else(|| repository.no_such_commit(&prefix))?;
    repository.ensure(commit, progress)?;
    Ok(commit)
}

/// The only element of `commits`, if any; several are an error that names them.
fn only(
    repository: &Repository,
    prefix: &str,
    commits: BTreeSet<Oid>,
) -> Result<Option<Oid>, ProviderError> {
    const NAMED: usize = 5;
    if commits.len() < 2 {
        return Ok(commits.into_iter().next());
    }
    let mut names: Vec<String> =
        commits.iter().take(NAMED).map(|commit| format!("`{commit}`")).collect();
    if commits.len() > NAMED {
        names.push(format!("{} more", commits.len() - NAMED));
    }
    let text = format!(
        "several commits of `{}` begin with {prefix}: {}",
        repository.remote,
        names.join(", ")
    );
    Err(ProviderError::new(ErrorKind::NotFound, text).hint("write more digits"))
}
