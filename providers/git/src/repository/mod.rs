//! One remote repository: its refs, and which of its commits are in the database or must be fetched.
//!
//! Any number of threads may ask at once. Only one of them talks to the remote at a time; the commits that
//! the others need meanwhile go into one request. The remote is listed once per process.
//!
//! Objects that are damaged are fetched again.

mod fetching;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use git2::{ObjectType, Oid};
use mu_provider::fs::Lock;
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, Progress, ProviderError, Release};

use crate::database::{Database, ObjectError};
use crate::remote_url::{RemoteUrl, Scheme};
use crate::transport::{Session, Transports};
use crate::wire::Advertisement;

/// One remote repository.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) remote: RemoteUrl,
    transports: Arc<Transports>,
    /// Whether no request to the remote is allowed.
    pub(crate) offline: bool,
    pub(crate) database: Database,
    /// Commits without their files, for finding the one that begins so.
    history: Database,
    listed: OnceLock<Arc<Advertisement>>,
    /// Why the last listing failed. A thread that lists holds this, and takes `talk` only after it.
    listing: Mutex<Option<FailedListing>>,
    listings: AtomicU64,
    wanted: Mutex<BTreeSet<Oid>>,
    /// For each folder, how many commits are fetched together when the next one is missing.
    misses: Mutex<HashMap<String, usize>>,
    talk: Mutex<Talk>,
}

/// A listing that failed.
#[derive(Debug)]
struct FailedListing {
    /// How many listings there were before it.
    before: u64,
    failure: ProviderError,
}

/// State of the thread that talks to the remote.
#[derive(Debug, Default)]
struct Talk {
    session: Option<Box<dyn Session>>,
    history_is_here: bool,
    was_repaired: bool,
}

impl Repository {
    /// A repository that was not used yet.
    pub(crate) fn new(
        remote: RemoteUrl,
        transports: Arc<Transports>,
        offline: bool,
        database: Database,
        history: Database,
    ) -> Self {
        // Repositories on this machine can be read without a network.
        let offline = offline && remote.scheme != Scheme::File;
        Self {
            remote,
            transports,
            offline,
            database,
            history,
            listed: OnceLock::new(),
            listing: Mutex::default(),
            listings: AtomicU64::new(0),
            wanted: Mutex::default(),
            misses: Mutex::default(),
            talk: Mutex::default(),
        }
    }

    /// Whether a commit is in the database.
    pub(crate) fn has_commit(&self, commit: Oid) -> bool {
        // A damaged commit is fetched again, so it counts as missing.
        self.database.has_commit(commit).unwrap_or(false)
    }

    fn check_online(&self, what: impl FnOnce() -> String) -> Result<(), ProviderError> {
        if !self.offline {
            return Ok(());
        }
        let text =
            format!("{} of `{}` is not in the cache, and mu is offline", what(), self.remote);
        Err(ProviderError::new(ErrorKind::Offline, text))
    }

    fn lock(&self, database: &Database, progress: &dyn Progress) -> Result<Lock, ProviderError> {
        database.lock(&mut || {
            progress.waiting(&format!("another mu process is fetching `{}`", self.remote));
        })
    }

    /// Calls `call` with an open session. A broken connection is rebuilt once; a repository on this machine is as broken the second time.
    fn with_session<T>(
        &self,
        talk: &mut Talk,
        progress: &dyn Progress,
        mut call: impl FnMut(&mut dyn Session) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let mut again = self.remote.scheme != Scheme::File;
        loop {
            let session = match &mut talk.session {
                Some(session) if session.is_open() => session,
                slot => slot.insert(self.transports.open(&self.remote)?),
            };
            match call(session.as_mut()) {
                Err(error) if error.kind() == ErrorKind::Network && again => {
                    progress.waiting(&format!("{error}; trying once more"));
                    talk.session = None;
                    again = false;
                }
                result => return result,
            }
        }
    }

    /// The error for something that the remote has no such commit as. If it was just listed as the target of a ref, it is something
    /// else than a commit: a tag can be one of a file or a folder.
    pub(crate) fn no_commit(&self, target: Oid) -> ProviderError {
        let listed = self.listed.get().into_iter().flat_map(|listed| &listed.refs);
        let mut named = listed.filter(|one| one.commit == target);
        let Some(one) = named.next() else { return self.no_such_commit(&target.to_string()) };
        let text =
            format!("`{}` of `{}` leads to {target}, which is not a commit", one.name, self.remote);
        ProviderError::new(ErrorKind::Manifest, text)
    }

    /// The error for a commit that the remote does not have.
    pub(crate) fn no_such_commit(&self, digits: &str) -> ProviderError {
        ProviderError::new(ErrorKind::NotFound, format!("`{}` has no commit {digits}", self.remote))
            .hint("not every server lets you fetch commits that no branch or tag contains")
    }
}

impl Repository {
    /// Reads an object that belongs to `commit`. If the database is damaged, the commit is fetched again
    /// once.
    pub(crate) fn read<T>(
        &self,
        commit: Oid,
        oid: Oid,
        kind: ObjectType,
        progress: &dyn Progress,
        with: &mut dyn FnMut(&[u8]) -> T,
    ) -> Result<T, ProviderError> {
        let error = match self.database.read(oid, kind, with) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if matches!(error, ObjectError::Missing(_) | ObjectError::Damaged(..)) {
            self.repair(commit, oid, kind, error, progress)?;
            return self
                .database
                .read(oid, kind, with)
                .map_err(|error| self.unreadable(commit, error));
        }
        Err(self.unreadable(commit, error))
    }

    fn unreadable(&self, commit: Oid, error: ObjectError) -> ProviderError {
        let text = format!("the commit {commit} of `{}` cannot be read", self.remote);
        ProviderError::new(ErrorKind::Integrity, text).because(error)
    }

    fn repair(
        &self,
        commit: Oid,
        oid: Oid,
        kind: ObjectType,
        error: ObjectError,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        if self.offline {
            return Err(self
                .unreadable(commit, error)
                .hint("without `--offline` it is fetched again"));
        }
        let mut talk = lock(&self.talk);
        if self.has_commit(commit) {
            if self.database.read(oid, kind, &mut |_| ()).is_ok() {
                return Ok(());
            }
            if std::mem::replace(&mut talk.was_repaired, true) {
                return Err(self.unreadable(commit, error));
            }
            let lock = self.lock(&self.database, progress)?;
            self.database.discard(&lock)?;
        }
        self.fetch(&mut talk, &[commit].into(), progress)
    }
}

/// A listing that is there without asking anybody.
pub(crate) enum KnownListing {
    Read(Arc<Advertisement>),
    /// The text that [`Advertisement::parse`] reads.
    Stored(String),
}

impl KnownListing {
    /// Whether it has a release's tag or branch at its commit. The other lines of a stored listing are not
    /// understood for this.
    pub(crate) fn has(&self, release: &Release) -> bool {
        let (Some(name), Some(commit)) = (&release.reference, &release.commit) else {
            return false;
        };
        match self {
            Self::Read(listed) => listed.has(name, commit),
            Self::Stored(text) => Advertisement::text_has(text, name, commit),
        }
    }

    /// The whole listing; `None` if the stored text is damaged.
    pub(crate) fn advertisement(self) -> Option<Arc<Advertisement>> {
        match self {
            Self::Read(listed) => Some(listed),
            Self::Stored(text) => Advertisement::parse(&text).ok().map(Arc::new),
        }
    }
}

impl Repository {
    /// Branches and tags, requested once per process.
    pub(crate) fn advertisement(
        &self,
        progress: &dyn Progress,
    ) -> Result<Arc<Advertisement>, ProviderError> {
        if let Some(listed) = self.listed.get() {
            return Ok(Arc::clone(listed));
        }
        let arrived = self.listings.load(Ordering::SeqCst);
        let mut failed = lock(&self.listing);
        // Another thread may have listed it meanwhile, and may be fetching now; there is no need to wait for
        // that.
        if let Some(listed) = self.listed.get() {
            return Ok(Arc::clone(listed));
        }
        match failed.as_ref() {
            // It failed while this caller waited, or it will fail in the same way each time.
            Some(FailedListing { before, failure })
                if *before >= arrived || failure.kind() == ErrorKind::NotFound =>
            {
                return Err(failure.clone());
            }
            _ => {}
        }
        self.listed(&mut lock(&self.talk), progress).inspect_err(|error| {
            let before = self.listings.fetch_add(1, Ordering::SeqCst);
            *failed = Some(FailedListing { before, failure: error.clone() });
        })
    }

    /// Whether the remote has a branch or tag with this full name at this commit (40 digits). The others are not requested for that.
    pub(crate) fn has_ref(
        &self,
        name: &str,
        digits: &str,
        progress: &dyn Progress,
    ) -> Result<bool, ProviderError> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed.has(name, digits));
        }
        self.check_online(|| format!("`{name}`"))?;
        progress.doing(&format!("asking {}", self.remote));
        let talk = &mut lock(&self.talk);
        let ask = |session: &mut dyn Session| session.advertisement(Some(name));
        Ok(self.with_session(talk, progress, ask)?.has(name, digits))
    }

    /// Branches and tags as far as they are known without asking anybody.
    pub(crate) fn known_advertisement(&self) -> Option<Arc<Advertisement>> {
        self.known_listing()?.advertisement()
    }

    /// The listing of this run, or else the last one on this machine.
    pub(crate) fn known_listing(&self) -> Option<KnownListing> {
        match self.listed.get() {
            Some(listed) => Some(KnownListing::Read(Arc::clone(listed))),
            None => self.database.listing().map(KnownListing::Stored),
        }
    }

    fn listed(
        &self,
        talk: &mut Talk,
        progress: &dyn Progress,
    ) -> Result<Arc<Advertisement>, ProviderError> {
        if let Some(listed) = self.listed.get() {
            return Ok(Arc::clone(listed));
        }
        self.check_online(|| "the list of versions".to_owned())?;
        progress.doing(&format!("asking {}", self.remote));
        let listed = self.with_session(talk, progress, |session| session.advertisement(None))?;
        Ok(Arc::clone(self.listed.get_or_init(|| Arc::new(listed))))
    }
}
