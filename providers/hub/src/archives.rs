//! Archives of other kinds of registries, which lie at a URL as those of hubs do.
//!
//! Where an archive is, the registry's own provider finds out. Here it is got, compared with its digest, and unpacked.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use mu_provider::http::{Guard, Http};
use mu_provider::{
    ArchiveDigest, ErrorKind, Folder, Progress, ProviderError, Release, SafeUrl, TreeWriter,
};

use crate::archive::{Layout, Scratch};
use crate::download::{Download, Wanted};
use crate::root::below;

/// Where an archive is, and how it may be asked for there.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its URL.
    pub url: SafeUrl,
    /// Whether plain http to another machine was allowed.
    pub insecure: bool,
    /// Whoever knows what to show there, if not the stored token is meant.
    pub guard: Option<Arc<dyn Guard>>,
}

/// Gets archives, for providers that find out where they are.
#[derive(Debug)]
pub struct Archives {
    http: Arc<Http>,
    downloads: PathBuf,
    largest: u64,
    scratch: Scratch,
    /// The folder of downloads, once it was there.
    left: OnceLock<Folder>,
}

impl Archives {
    /// With a folder for downloads that are not complete yet, and the largest archive that is accepted, in bytes.
    pub fn new(http: Arc<Http>, downloads: impl Into<PathBuf>, largest: u64) -> Self {
        let (scratch, left) = (Scratch::default(), OnceLock::new());
        Self { http, downloads: downloads.into(), largest, scratch, left }
    }

    /// The URL of `place` seen from the registry at `root`, unless it may not lead there: to this machine's files, nearer than
    /// the registry is, or with a secret.
    ///
    /// # Errors
    ///
    /// When it may not, or is no URL.
    pub fn place(root: &SafeUrl, place: &str) -> Result<SafeUrl, ProviderError> {
        below(root, place)
    }

    /// Unpacks the archive at `place` into `tree`, if it is what `release` says.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::Integrity`] when it is another one or hostile.
    pub fn unpack(
        &self,
        place: &Place,
        release: &Release,
        layout: Layout,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let digest = release.archive.as_deref().map(str::parse::<ArchiveDigest>).transpose();
        let digest = digest.map_err(|error| {
            let text = format!("the digest of the archive `{}` cannot be read", place.url);
            ProviderError::new(ErrorKind::Integrity, text).because(error)
        })?;
        let download = Download {
            http: &self.http,
            insecure: place.insecure,
            guard: place.guard.clone(),
            folder: &self.downloads,
            left: Folder::open_once(&self.left, || self.downloads.clone()),
            progress,
            hides: None,
        };
        let wanted = Wanted { digest, size: release.size, limit: self.largest };
        let archive = download.get(&place.url, wanted)?;
        archive
            .unpack(&self.scratch, layout, tree)
            .map_err(|error| error.at(&place.url.to_string()))
    }
}
