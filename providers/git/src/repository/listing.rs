//! Listing a remote's branches and tags, once per process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mu_provider::threads::lock;
use mu_provider::{ErrorKind, Progress, ProviderError, Release};

use super::{FailedListing, Repository, Talk};
use crate::wire::Advertisement;

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
