//! Shared by the tests: a provider with its own cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use mu_provider::conformance::releases;
use mu_provider::http::{Http, HttpOptions};
use mu_provider::{
    Folder, Lead, Limits, Listing, Location, Programs, Progress, Provider as _, ProviderError,
    Release, SafeUrl, Silent, Tree, TreeWriter,
};
use mu_provider_git::{GitOptions, GitProvider};
use mu_testing::git::variables;
pub(crate) use mu_testing::git::{Daemon, HttpServer, Origin, fake_ssh, git, git_with_input};
use tempfile::TempDir;

/// Sets an environment variable of a provider.
pub(crate) fn set(options: &mut GitOptions, name: &str, value: impl Into<String>) {
    let mut variables = options.programs.variables().clone();
    variables.insert(name.to_owned(), value.into());
    options.programs = Programs::new(&Arc::new(variables), Vec::new);
}

/// A provider, its cache, and what it reported.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) options: GitOptions,
    pub(crate) provider: GitProvider,
    pub(crate) notes: Notes,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut GitOptions)) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let http = Http::new(HttpOptions { retries: 0, ..HttpOptions::default() });
        let mut options = GitOptions::new(folder.path().join("cache"), &http);
        options.programs = Programs::new(&Arc::new(variables(folder.path())), Vec::new);
        change(&mut options);
        let provider = GitProvider::new(options.clone());
        Self { folder, options, provider, notes: Notes::default() }
    }

    /// The same cache, seen by another process; `change` makes its options differ.
    pub(crate) fn again(&self, change: impl FnOnce(&mut GitOptions)) -> GitProvider {
        let mut options = self.options.clone();
        change(&mut options);
        GitProvider::new(options)
    }

    pub(crate) fn list(&self, location: &Location) -> Vec<Release> {
        match self.provider.list(location, None, &self.notes).expect("can be listed") {
            Listing::Found(found) => releases(&found.lines),
            other => panic!("the repository is there: {other:?}"),
        }
    }

    pub(crate) fn release(&self, location: &Location, version: &str) -> Release {
        let mut releases = self.list(location).into_iter();
        releases.find(|release| release.version == version).expect("the version is listed")
    }

    pub(crate) fn fetch(
        &self,
        location: &Location,
        release: &Release,
    ) -> Result<Tree, ProviderError> {
        fetch(&self.provider, location, release, &self.notes)
    }

    /// `PATH` of every file, `PATH -> …` of every link, of a release.
    pub(crate) fn paths(&self, location: &Location, release: &Release) -> Vec<String> {
        let tree = self.fetch(location, release).expect("can be fetched");
        tree.entries().iter().map(|entry| entry.path.clone()).collect()
    }

    /// The databases in the cache.
    pub(crate) fn databases(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.options.cache).map(|entries| {
            entries
                .map(|entry| entry.expect("can be read").path())
                .filter(|path| path.is_dir())
                .collect()
        });
        entries.unwrap_or_default()
    }

    /// The only database in the cache.
    pub(crate) fn database(&self) -> PathBuf {
        let mut databases = self.databases();
        assert_eq!(databases.len(), 1, "{databases:?}");
        databases.remove(0)
    }
}

pub(crate) fn fetch(
    provider: &GitProvider,
    location: &Location,
    release: &Release,
    progress: &dyn Progress,
) -> Result<Tree, ProviderError> {
    let folder = tempfile::tempdir().expect("there is room");
    let mut writer =
        TreeWriter::new(Folder::open(folder.path()).expect("opens"), Limits::default());
    mu_provider::Provider::fetch(provider, location, release, &mut writer, progress)?;
    let tree = writer.finish()?;
    assert_eq!(mu_provider::conformance::read_tree(folder.path()), tree);
    Ok(tree)
}

/// A location as it is written in a reference.
pub(crate) fn written(root: &str, path: &str) -> Location {
    Location::new(Lead::of_user(SafeUrl::parse(root).expect("is a URL")), path)
}

/// A folder of this machine as a location.
pub(crate) fn local(folder: &Path) -> Location {
    let path = folder.to_str().expect("temporary folders are UTF-8");
    written("git+file:///", path.trim_start_matches('/'))
}

/// A release as a lock has it.
pub(crate) fn locked(commit: &str) -> Release {
    Release { commit: Some(commit.parse().expect("is a commit")), ..Release::default() }
}

/// The manifest's text.
pub(crate) fn manifest(provider: &GitProvider, location: &Location, release: &Release) -> String {
    let file = provider.manifest(location, release, &Silent).expect("can be read");
    file.expect("has a manifest").text
}

/// An error with its causes and hints, as a user reads it.
pub(crate) fn told(error: &ProviderError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    format!("{text} ({})", error.hints().join("; "))
}

/// What a provider reported while it worked.
#[derive(Default, Clone)]
pub(crate) struct Notes(Arc<Noted>);

#[derive(Default)]
struct Noted {
    said: Mutex<Vec<String>>,
    spoke: Condvar,
    received: AtomicU64,
}

impl Notes {
    pub(crate) fn said(&self) -> String {
        self.0.said.lock().expect("no test panicked").join("\n")
    }

    pub(crate) fn received(&self) -> u64 {
        self.0.received.load(Ordering::SeqCst)
    }

    /// Waits until it has reported something.
    pub(crate) fn wait_for(&self, words: &str) {
        let said = self.0.said.lock().expect("no test panicked");
        let is_missing = |said: &mut Vec<String>| !said.join("\n").contains(words);
        drop(self.0.spoke.wait_while(said, is_missing).expect("no test panicked"));
    }

    fn note(&self, text: &str) {
        self.0.said.lock().expect("no test panicked").push(text.to_owned());
        self.0.spoke.notify_all();
    }
}

impl Progress for Notes {
    fn bytes(&self, done: u64, _total: Option<u64>) {
        self.0.received.store(done, Ordering::SeqCst);
    }

    fn waiting(&self, what: &str) {
        self.note(what);
    }

    fn warning(&self, text: &str) {
        self.note(text);
    }
}
