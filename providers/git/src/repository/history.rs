//! Fetches the history of all branches and tags, to find a commit by its first digits, or one that the server
//! does not send alone.

use std::collections::{BTreeSet, HashMap};

use git2::Oid;
use mu_provider::fs::Lock;
use mu_provider::threads::lock;
use mu_provider::{Progress, ProviderError};

use super::{Repository, Talk};
use crate::database::Database;
use crate::wire::{Depth, FetchRequest};

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
    pub(super) fn fetch_history(
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

    pub(super) fn fetch_whole(
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
