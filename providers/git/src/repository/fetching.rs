//! Fetches commits without their history, several at once if several are needed; or the history of all branches and tags, to find
//! a commit by its first digits, or one that the server does not send alone.

use std::collections::{BTreeSet, HashMap};

use git2::{ObjectType, Oid};
use mu_provider::fs::Lock;
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, LoggedCommit, Progress, ProviderError};

use super::{Repository, Talk};
use crate::database::Database;
use crate::remote_url::Scheme;
use crate::transport::ReceiveError;
use crate::wire::{Boundary, Depth, FetchRequest};

/// How many commits of the database mu names to the remote: enough for it to send only differences.
const MOST_HAVES: usize = 64;

/// How many commits may be fetched along with one that is needed.
const MOST_GUESSES: usize = 63;

impl Repository {
    /// Makes sure that a commit is in the database, and guesses which commits will be needed next.
    ///
    /// A caller that reads one version of the package in `folder` after another needs many. Each time one is
    /// missing, twice as many of `next` are fetched with it as before. The first one is fetched alone.
    pub(crate) fn ensure_ahead(
        &self,
        commit: Oid,
        folder: &str,
        next: impl FnOnce() -> Vec<Oid>,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        if self.has_commit(commit) || self.offline {
            return self.ensure(commit, progress);
        }
        let guesses = {
            let mut misses = lock(&self.misses);
            let guesses = misses.entry(folder.to_owned()).or_insert(0);
            std::mem::replace(guesses, (*guesses * 2 + 1).min(MOST_GUESSES))
        };
        if guesses > 0 {
            let next = next().into_iter().filter(|next| !self.has_commit(*next)).take(guesses);
            lock(&self.wanted).extend(next);
        }
        self.ensure(commit, progress)
    }

    /// Makes sure that a commit is in the database, with all its files.
    pub(crate) fn ensure(&self, commit: Oid, progress: &dyn Progress) -> Result<(), ProviderError> {
        if self.has_commit(commit) {
            return Ok(());
        }
        self.check_online(|| format!("the commit {commit}"))?;
        lock(&self.wanted).insert(commit);
        let mut talk = lock(&self.talk);
        let batch = {
            let mut wanted = lock(&self.wanted);
            if self.has_commit(commit) {
                wanted.remove(&commit);
                return Ok(());
            }
            // An earlier batch that failed may have taken it already.
            wanted.insert(commit);
            std::mem::take(&mut *wanted)
        };
        let result = self.fetch(&mut talk, &batch, progress);
        match result {
            // One of the other commits may be the problem.
            Err(_) if batch.len() > 1 => self.fetch(&mut talk, &[commit].into(), progress),
            result => result,
        }
    }

    /// The object of an annotated tag of `commit`, which is fetched if it is not here.
    pub(crate) fn tag_object(
        &self,
        tag: Oid,
        commit: Oid,
        progress: &dyn Progress,
    ) -> Result<Vec<u8>, ProviderError> {
        let read = || self.database.read(tag, ObjectType::Tag, &mut <[u8]>::to_vec);
        if let Ok(object) = read() {
            return Ok(object);
        }
        self.check_online(|| format!("the tag {tag}"))?;
        let mut talk = lock(&self.talk);
        // Fetching the commit may have brought it meanwhile.
        if let Ok(object) = read() {
            return Ok(object);
        }
        let lock = self.lock(&self.database, progress)?;
        self.database.prepare(&lock, &self.remote.to_string())?;
        let request = FetchRequest { wants: vec![tag], ..self.request(&self.database) };
        self.receive(&mut talk, &self.database, &lock, &request, &[commit], progress)?;
        read().map_err(|error| {
            let text = format!("the tag {tag} of `{}` cannot be read", self.remote);
            ProviderError::new(ErrorKind::Integrity, text).because(error)
        })
    }

    /// Takes a pack that has a commit, and all that belongs to it.
    pub(crate) fn take_pack(
        &self,
        commit: Oid,
        pack: &mut dyn std::io::Read,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let lock = self.lock(&self.database, progress)?;
        self.database.prepare(&lock, &self.remote.to_string())?;
        let boundary = Boundary { shallow: vec![commit], unshallow: Vec::new() };
        let taken = self.database.receive(&lock, &[commit], &boundary, pack, progress);
        taken.map_err(|error| match error {
            ReceiveError::Refused(error) => error,
            ReceiveError::Source(error) => {
                let text = format!("the objects of `{}` cannot be read", self.remote);
                ProviderError::new(ErrorKind::Io, text).because(error)
            }
        })
    }

    /// Fetches exactly these commits. The caller holds the talk, so nobody else does the same.
    pub(super) fn fetch(
        &self,
        talk: &mut Talk,
        commits: &BTreeSet<Oid>,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let lock = self.lock(&self.database, progress)?;
        let mut missing: Vec<Oid> =
            commits.iter().copied().filter(|commit| !self.has_commit(*commit)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if missing.iter().any(|commit| self.database.lost(*commit)) {
            self.database.discard(&lock)?;
            missing = commits.iter().copied().collect();
        }
        self.database.prepare(&lock, &self.remote.to_string())?;
        let result = self.fetch_tips(talk, &lock, &missing, progress);
        let is_here = |commit: &&Oid| self.has_commit(**commit);
        match result {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) if missing.iter().all(|commit| is_here(&commit)) => {}
            // The server does not send single commits, or does not have them.
            _ => {
                let history = self.fetch_history(talk, &lock, progress)?;
                let lost =
                    missing.iter().find(|commit| !history.has_commit(**commit).unwrap_or(false));
                if let Some(commit) = lost {
                    return Err(self.no_commit(*commit));
                }
                if !missing.iter().all(|commit| is_here(&commit)) {
                    self.fetch_whole(talk, &self.database, &lock, false, progress)?;
                }
            }
        }
        match self.listed.get() {
            Some(listed) => self.database.remember(&lock, listed),
            None => Ok(()),
        }
    }

    /// Requests the commits themselves, without their parents.
    fn fetch_tips(
        &self,
        talk: &mut Talk,
        lock: &Lock,
        commits: &[Oid],
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let any = self.with_session(talk, progress, |session| Ok(session.gives_any_commit()))?;
        if !any {
            self.listed(talk, progress)?;
        }
        let mut wants = self.wants(commits, any);
        if wants.is_none() {
            return Err(self.no_such_commit("of that name at a branch or tag"));
        }
        loop {
            let request = FetchRequest {
                wants: wants.take().unwrap_or_default(),
                ..self.request(&self.database)
            };
            let result = self.receive(talk, &self.database, lock, &request, commits, progress);
            match result {
                // Some servers accept a request for a tag, but not for its commit.
                Err(error)
                    if error.kind() == ErrorKind::NotFound && self.listed.get().is_none() =>
                {
                    self.listed(talk, progress)?;
                    wants = self.wants(commits, false);
                    if wants.is_none() {
                        return Err(error);
                    }
                }
                result => return result,
            }
        }
    }

    /// What to request to get `commits`: the refs that lead to them, or else the commits themselves if that
    /// is allowed; `None` if one cannot be requested.
    fn wants(&self, commits: &[Oid], any: bool) -> Option<Vec<Oid>> {
        let refs = self.listed.get().map(|listed| &*listed.refs).unwrap_or_default();
        let wants: Option<BTreeSet<Oid>> = commits
            .iter()
            .map(|commit| {
                let mut leading = refs.iter().filter(|other| other.commit == *commit);
                let tip = leading.clone().find(|other| other.target == *commit).or(leading.next());
                tip.map(|tip| tip.target).or(any.then_some(*commit))
            })
            .collect();
        wants.map(|wants| wants.into_iter().collect())
    }

    pub(super) fn request(&self, database: &Database) -> FetchRequest {
        let mut haves = database.fetched();
        haves.truncate(MOST_HAVES);
        FetchRequest { haves, shallow: database.shallow(), ..FetchRequest::default() }
    }

    pub(super) fn receive(
        &self,
        talk: &mut Talk,
        database: &Database,
        lock: &Lock,
        request: &FetchRequest,
        commits: &[Oid],
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        progress.doing(&format!("cloning {}", self.remote));
        let mut attempt = |request: &FetchRequest| {
            self.with_session(talk, progress, |session| {
                let mut receive = |boundary: &_, pack: &mut dyn std::io::Read| {
                    database.receive(lock, commits, boundary, pack, progress)
                };
                session.fetch(request, &mut receive)
            })
        };
        match attempt(request) {
            // The local objects do not match what arrived. Without mentioning them, everything is sent.
            Err(error) if error.kind() == ErrorKind::Integrity && !request.haves.is_empty() => {
                database.discard(lock)?;
                database.prepare(lock, &self.remote.to_string())?;
                let (haves, shallow) = (Vec::new(), Vec::new());
                attempt(&FetchRequest { haves, shallow, ..request.clone() })
            }
            result => result,
        }
    }
}

impl Repository {
    /// The commits of the whole history that begin so.
    pub(crate) fn search(
        &self,
        prefix: &str,
        progress: &dyn Progress,
    ) -> Result<BTreeSet<Oid>, ProviderError> {
        self.check_online(|| format!("a commit that begins with {prefix}"))?;
        let mut talk = lock(&self.talk);
        let lock = self.lock(&self.database, progress)?;
        self.database.prepare(&lock, &self.remote.to_string())?;
        Ok(self.fetch_history(&mut talk, &lock, progress)?.commits_beginning(prefix))
    }

    /// The commits that `to` has and `from` has not, as [`Provider::log`](mu_provider::Provider::log) says.
    pub(crate) fn log(
        &self,
        from: Oid,
        to: Oid,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<LoggedCommit>>, ProviderError> {
        // What lies between two commits never changes.
        if let Some(known) = self.history.log(from, to) {
            return Ok(Some(known));
        }
        if self.offline {
            return Ok(None);
        }
        let mut talk = lock(&self.talk);
        let gives =
            self.with_session(&mut talk, progress, |session| Ok(session.gives_commits_only()))?;
        // The files of all versions are too much for a list of commits, unless they are on this machine.
        if !gives && self.remote.scheme != Scheme::File {
            return Ok(None);
        }
        let lock = self.lock(&self.database, progress)?;
        self.database.prepare(&lock, &self.remote.to_string())?;
        Ok(self.fetch_history(&mut talk, &lock, progress)?.log(from, to))
    }

    /// When tags and commits were made, in seconds since 1970, as far as this is known without fetching
    /// files.
    pub(crate) fn dates(
        &self,
        targets: &[Oid],
        progress: &dyn Progress,
    ) -> Result<HashMap<Oid, i64>, ProviderError> {
        // This ignores commits that were fetched with files: the answer must not depend on what was fetched
        // before.
        let date = |target: Oid| self.history.date(target);
        let mut dates: HashMap<Oid, i64> = HashMap::new();
        let mut missing = Vec::new();
        for target in targets {
            match date(*target) {
                Some(date) => drop(dates.insert(*target, date)),
                None => missing.push(*target),
            }
        }
        if missing.is_empty() || self.offline {
            return Ok(dates);
        }
        let mut talk = lock(&self.talk);
        if !self.with_session(&mut talk, progress, |session| Ok(session.gives_commits_only()))? {
            return Ok(dates);
        }
        let lock = self.lock(&self.history, progress)?;
        self.history.prepare(&lock, &self.remote.to_string())?;
        let request = FetchRequest {
            wants: missing.clone(),
            commits_only: true,
            ..self.request(&self.history)
        };
        self.receive(&mut talk, &self.history, &lock, &request, &[], progress)?;
        dates.extend(missing.iter().filter_map(|target| Some((*target, date(*target)?))));
        Ok(dates)
    }

    /// Fetches the history of all branches and tags, without files if the server can leave them out; returns
    /// the database that has it.
    fn fetch_history(
        &self,
        talk: &mut Talk,
        lock: &Lock,
        progress: &dyn Progress,
    ) -> Result<&Database, ProviderError> {
        let bare = self.with_session(talk, progress, |session| Ok(session.gives_commits_only()))?;
        let database = if bare { &self.history } else { &self.database };
        if talk.history_is_here {
            return Ok(database);
        }
        if bare {
            let lock = self.lock(database, progress)?;
            database.prepare(&lock, &self.remote.to_string())?;
            self.fetch_whole(talk, database, &lock, true, progress)?;
        } else {
            self.fetch_whole(talk, database, lock, false, progress)?;
        }
        talk.history_is_here = true;
        Ok(database)
    }

    fn fetch_whole(
        &self,
        talk: &mut Talk,
        database: &Database,
        lock: &Lock,
        commits_only: bool,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let listed = self.listed(talk, progress)?;
        let targets: BTreeSet<Oid> = listed.refs.iter().map(|other| other.target).collect();
        let commits: BTreeSet<Oid> = listed.refs.iter().map(|other| other.commit).collect();
        if targets.is_empty() {
            return Ok(());
        }
        let request = FetchRequest {
            wants: targets.into_iter().collect(),
            depth: Depth::Whole,
            commits_only,
            ..self.request(database)
        };
        let commits: Vec<Oid> = commits.into_iter().collect();
        self.receive(talk, database, lock, &request, &commits, progress)
    }
}
