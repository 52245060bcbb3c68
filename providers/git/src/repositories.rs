//! The repositories that this process uses, and how a location leads to one of them: where the repository ends in it, and the folder
//! inside it begins. The text often says so; else the places are asked.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use git2::Oid;
use mu_provider::{ErrorKind, FileDigest, Location, NamedBy, Progress, ProviderError, SafeUrl};
use sha2::{Digest as _, Sha256};

use crate::database::{Bounds, Database, ReadObjects};
use crate::programs::GitPrograms;
use crate::provider::{CheckFolder, GitOptions};
use crate::remote_url::{KNOWN_HOSTS, RemoteUrl, Scheme};
use crate::repository::Repository;

use crate::transport::Transports;
use mu_provider::threads::lock;
use percent_encoding::percent_decode_str;

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
    /// Whether there is one database for all of them.
    is_one: bool,
    /// Notes what is read of them.
    read: Option<Arc<ReadObjects>>,
}

impl Repositories {
    pub(crate) fn new(options: GitOptions) -> Self {
        let programs = GitPrograms::new(options.programs.clone(), &options.cache)
            .for_work_in(options.current.clone());
        Self {
            transports: Arc::new(Transports::new(&options.http, programs)),
            bounds: options.bounds(),
            check_folder: options.check_folder,
            cache: options.cache,
            offline: options.offline,
            opened: Mutex::default(),
            settled: Mutex::default(),
            is_one: false,
            read: None,
        }
    }

    /// The same repositories, which note in `read` what is read of them.
    pub(crate) fn noting_reads(&self, read: &Arc<ReadObjects>) -> Self {
        Self { read: Some(Arc::clone(read)), ..self.at_cache(self.cache.clone(), self.offline) }
    }

    /// Repositories of which all that there is lies in one database in `folder`. Nothing is fetched.
    pub(crate) fn alone_in(&self, folder: PathBuf) -> Self {
        Self { is_one: true, ..self.at_cache(folder, true) }
    }

    fn at_cache(&self, cache: PathBuf, offline: bool) -> Self {
        Self {
            check_folder: self.check_folder.clone(),
            cache,
            offline,
            bounds: self.bounds,
            transports: Arc::clone(&self.transports),
            opened: Mutex::default(),
            settled: Mutex::default(),
            is_one: false,
            read: None,
        }
    }

    /// The folder for bare repositories.
    pub(crate) fn cache_folder(&self) -> &Path {
        &self.cache
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
        let name = if self.is_one { "one".to_owned() } else { folder_name(remote) };
        let database = |ending: &str| {
            let folder = self.cache.join(format!("{name}{ending}"));
            Database::new(folder, self.bounds).with_read_objects(self.read.clone())
        };
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
        let candidates = candidates(location)?;
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
        let candidates = candidates(location).unwrap_or_default();
        let all = candidates.into_iter().map(|candidate| self.settled(candidate, progress));
        // Folders around a repository on this machine are no repositories, and nobody is asked about them.
        all.filter(|Settled { repository, .. }| {
            let is_here = repository.remote.folder().is_some();
            !is_here
                || repository.database.has_fetched() && self.check(location, repository).is_ok()
        })
    }

    /// The URLs that were tried, or would be, to settle a location, and where the user's settings of Git lead them.
    pub(crate) fn tried(&self, location: &Location) -> Vec<String> {
        let shown = |candidate: &Candidate| {
            let remote = &candidate.remote;
            let other = self.transports.led_to(remote);
            other.map_or_else(
                || remote.to_string(),
                |other| format!("{remote}, which Git's `insteadOf` leads to {other}"),
            )
        };
        match candidates(location) {
            Ok(candidates) => candidates.iter().map(shown).collect(),
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
            None => settled.repository.offline && settled.repository.database.has_fetched(),
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

/// A repository that may be there, and the package's folder inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    pub(crate) remote: RemoteUrl,
    pub(crate) folder: String,
}

/// The repositories that a location can mean, in the order in which to try them.
///
/// There is one if the location says where the repository ends: it is settled, a segment ends in `.git`, or
/// the host is one whose repositories all have two segments. Otherwise the longest comes first. Forms that
/// few servers need (`.git` added, a path below the home folder) come last.
fn candidates(location: &Location) -> Result<Vec<Candidate>, ProviderError> {
    let candidate = |url: &SafeUrl, folder: &str| -> Result<Candidate, ProviderError> {
        Ok(Candidate { remote: RemoteUrl::new(url, location.insecure)?, folder: folder.to_owned() })
    };
    if let Some(folder) = &location.folder {
        check_folder(location, folder)?;
        return Ok(vec![candidate(&location.root, folder)?]);
    }
    check_folder(location, &location.path)?;
    let root = location.root.as_url().path().trim_matches('/');
    let segments: Vec<&str> =
        root.split('/').chain(location.path.split('/')).filter(|part| !part.is_empty()).collect();
    let split = |length: usize, ending: &str| {
        let (repository, folder) = segments.split_at(length);
        let mut url = location.root.as_url().clone();
        url.set_path(&format!("/{}{ending}", repository.join("/")));
        // Folders in a repository have names as they are.
        let folder = folder.join("/");
        let decoded = percent_decode_str(&folder).decode_utf8_lossy();
        candidate(&url.into(), &decoded)
    };
    let marked = segments.iter().position(|part| part.len() > 4 && part.ends_with(".git"));
    if let Some(last) = marked {
        return Ok(vec![split(last + 1, "")?]);
    }
    let shortest = root.split('/').filter(|part| !part.is_empty()).count().max(1);
    if segments.len() < shortest {
        return Err(not_a_repository(location, "it names no repository"));
    }
    if KNOWN_HOSTS.contains(&location.root.as_url().host_str().unwrap_or_default()) {
        if segments.len() < 2 {
            return Err(not_a_repository(location, "repositories there have two segments"));
        }
        return Ok(vec![split(2, "")?]);
    }
    let lengths = (shortest..=segments.len()).rev();
    let mut found: Vec<Candidate> =
        lengths.clone().map(|length| split(length, "")).collect::<Result<_, _>>()?;
    let is_below_home = segments.first() == Some(&"~");
    let is_ssh = found.first().is_some_and(|longest| longest.remote.scheme == Scheme::Ssh);
    if is_ssh && !is_below_home {
        for length in lengths.clone() {
            let (repository, folder) = segments.split_at(length);
            let mut url = location.root.as_url().clone();
            url.set_path(&format!("/~/{}", repository.join("/")));
            found.push(candidate(&url.into(), &folder.join("/"))?);
        }
    }
    for length in lengths {
        found.push(split(length, ".git")?);
    }
    Ok(found)
}

fn check_folder(location: &Location, folder: &str) -> Result<(), ProviderError> {
    let fine = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    if folder.is_empty() || folder.split('/').all(fine) {
        Ok(())
    } else {
        Err(not_a_repository(location, "its path has empty, `.` or `..` segments"))
    }
}

fn not_a_repository(location: &Location, why: &str) -> ProviderError {
    let place = location.describe();
    ProviderError::new(ErrorKind::NotFound, format!("`{place}` is not a Git repository: {why}"))
}

#[cfg(test)]
mod tests {
    use mu_provider::{Lead, SafeUrl};

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

    fn check(root: &str, path: &str, expected: &[(&str, &str)]) {
        let root = Lead::of_user(SafeUrl::parse(root).expect("is a URL"));
        let location = Location::new(root.clone(), path);
        let found = candidates(&location).expect("names repositories");
        let found: Vec<(String, &str)> =
            found.iter().map(|one| (one.remote.to_string(), one.folder.as_str())).collect();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(url, folder)| (&**url, *folder)).collect();
        assert_eq!(found, expected, "{root} {path}");
    }

    #[test]
    fn a_mark_or_a_known_host_leaves_one() {
        check("https://example.com/", "g/r.git/s/d", &[("https://example.com/g/r.git", "s/d")]);
        check("https://github.com/", "a/b/c/d", &[("https://github.com/a/b", "c/d")]);
        check("https://github.com/", "a/b.git", &[("https://github.com/a/b.git", "")]);
        check("https://gitlab.com/", "a/b/c.git/d", &[("https://gitlab.com/a/b/c.git", "d")]);
        check("git+https://me.org/mono.git", "x/y", &[("https://me.org/mono.git", "x/y")]);
        check("file:///", "srv/ec2.git/x", &[("file:///srv/ec2.git", "x")]);
    }

    #[test]
    fn elsewhere_the_longest_comes_first() {
        check(
            "https://example.com/",
            "a/b/c",
            &[
                ("https://example.com/a/b/c", ""),
                ("https://example.com/a/b", "c"),
                ("https://example.com/a", "b/c"),
                ("https://example.com/a/b/c.git", ""),
                ("https://example.com/a/b.git", "c"),
                ("https://example.com/a.git", "b/c"),
            ],
        );
        check(
            "ssh://git@example.com/",
            "a",
            &[
                ("ssh://git@example.com/a", ""),
                ("git@example.com:a", ""),
                ("ssh://git@example.com/a.git", ""),
            ],
        );
        check(
            "https://example.com/scm",
            "a",
            &[
                ("https://example.com/scm/a", ""),
                ("https://example.com/scm", "a"),
                ("https://example.com/scm/a.git", ""),
                ("https://example.com/scm.git", "a"),
            ],
        );
    }

    #[test]
    fn a_settled_location_is_taken_at_its_word() {
        let root = Lead::of_user(SafeUrl::parse("https://example.com/a").expect("is a URL"));
        let mut location = Location::new(root, "");
        location.folder = Some("b/c".to_owned());
        let found = candidates(&location).expect("names a repository");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].remote.to_string().as_str(), &*found[0].folder),
            ("https://example.com/a", "b/c")
        );
        location.folder = Some("../x".to_owned());
        assert_eq!(candidates(&location).expect_err("is refused").kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_known_host_needs_two_segments() {
        let root = Lead::of_user(SafeUrl::parse("https://github.com/").expect("is a URL"));
        let error = candidates(&Location::new(root, "a")).expect_err("names no repository");
        assert!(error.to_string().contains("two segments"), "{error}");
    }
}
