//! The repositories that this process uses, and how a location leads to one of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use git2::Oid;
use mu_provider::{ErrorKind, FileDigest, Location, NamedBy, Progress, ProviderError};
use sha2::{Digest as _, Sha256};

use crate::database::{Bounds, Database};
use crate::programs::GitPrograms;
use crate::provider::{CheckFolder, GitOptions};
use crate::remote_url::{RemoteUrl, Scheme};
use crate::repository::Repository;
use crate::root::{self, Candidate};
use crate::transport::Transports;
use mu_provider::threads::lock;

/// A location whose repository is known.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) repository: Arc<Repository>,
    /// The package's folder inside it.
    pub(crate) folder: String,
}

impl Settled {
    /// The location as it is from now on.
    pub(crate) fn location(&self, location: &Location) -> Result<Location, ProviderError> {
        Ok(Location {
            root: location.root.within(self.repository.remote.url.clone())?,
            path: String::new(),
            folder: Some(self.folder.clone()),
            ..location.clone()
        })
    }
}

/// All repositories of this process.
#[derive(Debug)]
pub(crate) struct Repositories {
    check_folder: CheckFolder,
    cache: PathBuf,
    offline: bool,
    bounds: Bounds,
    transports: Arc<Transports>,
    opened: Mutex<HashMap<String, Arc<Repository>>>,
    settled: Mutex<HashMap<Location, Settled>>,
}

impl Repositories {
    pub(crate) fn new(options: GitOptions) -> Self {
        let programs = GitPrograms::new(options.programs.clone(), &options.cache);
        Self {
            transports: Arc::new(Transports::new(&options.http, programs)),
            bounds: options.bounds(),
            check_folder: options.check_folder,
            cache: options.cache,
            offline: options.offline,
            opened: Mutex::default(),
            settled: Mutex::default(),
        }
    }

    /// The repository at a URL.
    pub(crate) fn at(&self, remote: &RemoteUrl, progress: &dyn Progress) -> Arc<Repository> {
        let key = remote.key();
        let mut opened = lock(&self.opened);
        if let Some(repository) = opened.get(&key) {
            return Arc::clone(repository);
        }
        if remote.scheme == Scheme::Git && !remote.url.is_loopback() {
            progress.warning(&format!(
                "`{remote}` is neither encrypted nor authenticated: its content may have been changed in transit"
            ));
        }
        let name = folder_name(remote);
        let database =
            |ending: &str| Database::new(self.cache.join(format!("{name}{ending}")), self.bounds);
        let repository = Arc::new(Repository::new(
            remote.clone(),
            Arc::clone(&self.transports),
            self.offline,
            database(".git"),
            database(".history.git"),
        ));
        opened.insert(key, Arc::clone(&repository));
        repository
    }

    /// Finds out which repository a location means. If the text does not say, it asks for each candidate in
    /// turn.
    ///
    /// With a `commit`, a repository whose database has it is found without a request.
    pub(crate) fn settle(
        &self,
        location: &Location,
        commit: Option<Oid>,
        progress: &dyn Progress,
    ) -> Result<Settled, ProviderError> {
        let settled = lock(&self.settled).get(location).cloned();
        if let Some(settled) = settled {
            return Ok(settled);
        }
        let candidates = root::candidates(location)?;
        let settled = match <[Candidate; 1]>::try_from(candidates) {
            Ok([only]) => self.settled(only, progress),
            Err(candidates) => self.choose(candidates, location, commit, progress)?,
        };
        self.check(location, &settled.repository)?;
        let mut known = lock(&self.settled);
        Ok(known.entry(location.clone()).or_insert(settled).clone())
    }

    /// The repository that a location means, if the database of a candidate has all of `commits`.
    pub(crate) fn recall(
        &self,
        location: &Location,
        commits: &[Oid],
        progress: &dyn Progress,
    ) -> Option<Settled> {
        let has_all =
            |settled: &Settled| commits.iter().all(|commit| settled.repository.has_commit(*commit));
        self.candidates(location, progress).find(has_all)
    }

    /// Checks that packages may come from the repository of a location, if it is on this machine.
    fn check(&self, location: &Location, repository: &Repository) -> Result<(), ProviderError> {
        let is_of_user = location.root.named_by() == NamedBy::User;
        match repository.remote.folder().filter(|_| !is_of_user) {
            Some(folder) => self.check_folder.check(&folder),
            None => Ok(()),
        }
    }

    /// The repositories that a location can mean. No remote is asked.
    pub(crate) fn candidates(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> impl Iterator<Item = Settled> {
        let candidates = root::candidates(location).unwrap_or_default();
        let all = candidates.into_iter().map(|candidate| self.settled(candidate, progress));
        // Folders around a repository on this machine are no repositories, and nobody is asked about them.
        all.filter(|Settled { repository, .. }| {
            let is_here = repository.remote.folder().is_some();
            !is_here || repository.database.exists() && self.check(location, repository).is_ok()
        })
    }

    /// The URLs that were tried, or would be, to settle a location.
    pub(crate) fn tried(&self, location: &Location) -> Vec<String> {
        match root::candidates(location) {
            Ok(candidates) => {
                candidates.iter().map(|candidate| candidate.remote.to_string()).collect()
            }
            Err(_) => vec![location.describe()],
        }
    }

    fn settled(&self, candidate: Candidate, progress: &dyn Progress) -> Settled {
        let repository = self.at(&candidate.remote, progress);
        Settled { repository, folder: candidate.folder }
    }

    fn choose(
        &self,
        candidates: Vec<Candidate>,
        location: &Location,
        commit: Option<Oid>,
        progress: &dyn Progress,
    ) -> Result<Settled, ProviderError> {
        let all: Vec<Settled> =
            candidates.into_iter().map(|candidate| self.settled(candidate, progress)).collect();
        let here = all.iter().find(|settled| match commit {
            Some(commit) => settled.repository.has_commit(commit),
            None => settled.repository.offline && settled.repository.database.exists(),
        });
        if let Some(settled) = here {
            return Ok(settled.clone());
        }
        let mut unauthorized = None;
        for settled in &all {
            match settled.repository.advertisement(progress) {
                Ok(_) => return Ok(settled.clone()),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                // Some hosts ask for credentials even if there is no such repository.
                Err(error) if error.kind() == ErrorKind::Auth => {
                    unauthorized.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(unauthorized.unwrap_or_else(|| {
            let place = location.describe();
            let text = format!("there is no Git repository at `{place}`");
            ProviderError::new(ErrorKind::NotFound, text)
                .hint("end the repository's own part with `.git` if it has folders below")
        }))
    }
}

/// The name of a repository's folder in the cache: readable and unique.
fn folder_name(remote: &RemoteUrl) -> String {
    let hash = FileDigest::from_bytes(Sha256::digest(remote.key()).into()).to_string();
    let hash = &hash[..20];
    let path = remote.path();
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let last = last.strip_suffix(".git").unwrap_or(last);
    let readable: String = last
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_'))
        .take(40)
        .collect();
    format!("{readable}-{hash}")
}

#[cfg(test)]
mod tests {
    use mu_provider::SafeUrl;

    use super::*;

    #[test]
    fn folders_in_the_cache_are_readable_and_harmless() {
        let name = |text: &str| {
            let url = SafeUrl::parse(text).expect("is a URL");
            folder_name(&RemoteUrl::new(&url, false).expect("is accepted"))
        };
        assert!(name("https://example.com/a/infra.git").starts_with("infra-"));
        assert!(name("https://example.com/a/%2e%2e%2f..%21").len() < 70);
        assert_ne!(name("https://example.com/a"), name("https://example.org/a"));
    }
}
