//! Listing a remote's branches and tags, once per process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mu_provider::threads::lock;
use mu_provider::{ErrorKind, Progress, ProviderError, Release};

use super::{FailedListing, Repository, Talk};
use crate::wire::Advertisement;

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
        self.listed(&mut self.talk(), progress).inspect_err(|error| {
            let before = self.listings.fetch_add(1, Ordering::SeqCst);
            *failed = Some(FailedListing { before, failure: error.clone() });
        })
    }

    /// Branches and tags as far as they are known without asking anybody.
    pub(crate) fn known_advertisement(&self) -> Option<Arc<Advertisement>> {
        self.listed.get().cloned().or_else(|| self.database.advertisement().map(Arc::new))
    }

    /// Whether the last listing on this machine has a release's tag at its commit.
    pub(crate) fn is_known_to_list(&self, release: &Release) -> bool {
        let (Some(name), Some(commit)) = (&release.reference, &release.commit) else {
            return false;
        };
        self.database.lists(name, commit)
    }

    pub(super) fn listed(
        &self,
        talk: &mut Talk,
        progress: &dyn Progress,
    ) -> Result<Arc<Advertisement>, ProviderError> {
        if let Some(listed) = self.listed.get() {
            return Ok(Arc::clone(listed));
        }
        self.check_online(|| "the list of versions".to_owned())?;
        progress.doing(&format!("asking {}", self.remote));
        let listed = self.with_session(talk, progress, |session| session.advertisement())?;
        Ok(Arc::clone(self.listed.get_or_init(|| Arc::new(listed))))
    }
}
