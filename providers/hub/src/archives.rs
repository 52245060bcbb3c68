//! Archives of other kinds of registries, at a URL like those of hubs.
//!
//! The registry's own provider finds the archive. This downloads it, compares it with its digest, and unpacks
//! it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use mu_provider::http::{Guard, Http};
use mu_provider::{
    ArchiveDigest, ErrorKind, Folder, Progress, ProviderError, Release, SafeUrl, TreeWriter,
};

use crate::archive::{ArchiveError, Layers, Layout, Scratch, unpack_with};
use crate::download::{Archive, Download, Wanted};
use crate::root::below;

/// The URL of an archive, and how to request it.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its URL.
    pub url: SafeUrl,
    /// Whether plain http to another machine was allowed.
    pub insecure: bool,
    /// Provides credentials, if not the stored token should be used.
    pub guard: Option<Arc<dyn Guard>>,
}

/// Downloads archives for providers that know their URLs.
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
    /// Creates this with a folder for incomplete downloads, and the largest accepted archive in bytes.
    pub fn new(http: Arc<Http>, downloads: impl Into<PathBuf>, largest: u64) -> Self {
        let (scratch, left) = (Scratch::default(), OnceLock::new());
        Self { http, downloads: downloads.into(), largest, scratch, left }
    }

    /// The URL of `place` relative to the registry at `root`, unless it must not lead there: to this
    /// machine's files, closer to this machine than the registry is, or with a secret.
    ///
    /// # Errors
    ///
    /// When it must not lead there, or is not a URL.
    pub fn place(root: &SafeUrl, place: &str) -> Result<SafeUrl, ProviderError> {
        below(root, place)
    }

    /// Unpacks the archive at `place` into `tree`, if it matches `release`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::Integrity`] when it differs or is hostile.
    pub fn unpack(
        &self,
        place: &Place,
        release: &Release,
        layout: Layout,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let archive = self.get(place, release, progress)?;
        let is_kept = layout == Layout::InFolder && tree.keeps_archive();
        let unpacked = match is_kept {
            false => archive.unpack(&self.scratch, layout, tree),
            true => {
                let mut bytes = Vec::new();
                let copied = archive.copy(&mut bytes).map_err(ArchiveError::Io);
                let unpacked =
                    copied.and_then(|()| unpack_with(&self.scratch, &bytes, layout, tree));
                tree.set_archive(bytes);
                unpacked
            }
        };
        unpacked.map_err(|error| error.at(&place.url.to_string()))
    }

    /// Unpacks what is wanted of a layer of an image, if it is what `layer` says in `archive` and `size`; the last layer comes
    /// first.
    ///
    /// # Errors
    ///
    /// As [`Archives::unpack`].
    pub fn unpack_layer(
        &self,
        place: &Place,
        layer: &Release,
        layers: &mut Layers,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let archive = self.get(place, layer, progress)?;
        archive.unpack_layer(layers, tree).map_err(|error| error.at(&place.url.to_string()))
    }

    fn get(
        &self,
        place: &Place,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Archive, ProviderError> {
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
        download.get(&place.url, wanted)
    }
}
