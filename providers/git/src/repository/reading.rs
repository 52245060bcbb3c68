//! Reads objects, and fetches them again if they are damaged.

use git2::{ObjectType, Oid};
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, Progress, ProviderError};

use super::Repository;
use crate::database::ObjectError;

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
