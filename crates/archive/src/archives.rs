//! Archives of other kinds of registries, at a URL like those of hubs; and where the file of a registry is, and where a registry
//! may lead.
//!
//! The registry's own provider finds the archive. This downloads it, compares it with its digest, and unpacks it. What a registry
//! names is hostile: it must not lead to this machine's files, or closer to this machine than the registry is.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use mu_provider::http::{Guard, Http, check_lead};
use mu_provider::{
    ArchiveDigest, ErrorKind, Folder, KeptArchives, Location, Progress, ProviderError, Release,
    SafeUrl, TreeWriter,
};
use sha2::{Digest as _, Sha256};

use crate::document::Validator;
use crate::download::{Archive, CHANGED, Download, ExpectedArchive, Unless};
use crate::pick::{Layers, pick_from};
use crate::survey::{self, Packing, Survey, survey, unpack_anyones};
use crate::unpack::{ArchiveError, ArchiveLayout, Scratch, is_gzip, unpack_with};

/// What is at the URL of an archive.
#[derive(Debug)]
pub enum Looked {
    /// What was there the last time.
    Unchanged {
        /// For how many seconds it need not be requested again.
        max_age: Option<u32>,
    },
    /// Nothing.
    Absent,
    /// An archive.
    Held(Box<Held>),
}

/// An archive that was downloaded and looked through, and can be unpacked.
pub struct Held {
    archive: Archive,
    url: SafeUrl,
    packing: Packing,
    top: Option<Vec<u8>>,
    is_plain: bool,
    /// Whether files in it are hard links to others.
    pub has_hard_links: bool,
    /// Its size in bytes.
    pub size: u64,
    /// Its digest.
    pub digest: ArchiveDigest,
    /// The wanted files, by their paths in the package.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What to hand back to find out whether it is still the same.
    pub validator: Validator,
    /// For how many seconds it need not be requested again.
    pub max_age: Option<u32>,
}

impl Held {
    /// Writes its files into `tree`; what is in a single folder at the top comes without that folder.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Integrity`] when it is hostile.
    pub fn unpack(mut self, tree: &mut TreeWriter) -> Result<(), ProviderError> {
        let Self { packing, top, size, .. } = &self;
        let (packing, top, size) = (*packing, top.clone(), *size);
        let unpacked =
            self.archive.read(|bytes| survey::unpack(bytes, size, packing, top.as_deref(), tree));
        unpacked.map_err(|error| error.at(&self.url.to_string()))
    }

    /// As [`Held::unpack`], and keeps the archive beside `tree` if that wants those of other tools and a hub can hand this one out
    /// as it is: a compressed tar with its files at its top.
    ///
    /// # Errors
    ///
    /// As [`Held::unpack`].
    pub fn unpack_and_keep(mut self, tree: &mut TreeWriter) -> Result<(), ProviderError> {
        let is_at_top = self.packing == Packing::Tar && self.is_plain;
        if tree.keeps_archive != KeptArchives::None && is_at_top {
            let reads = |bytes: &Vec<u8>| {
                is_gzip(bytes)
                    && pick_from(bytes, ArchiveLayout::Files, &|_| false, u64::MAX).is_ok()
            };
            tree.archive = Some(self.bytes()?).filter(reads);
        }
        self.unpack(tree)
    }

    /// All of its bytes.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn bytes(&mut self) -> Result<Vec<u8>, ProviderError> {
        let mut bytes = Vec::new();
        let read = self.archive.read(|archive| {
            archive.rewind().map_err(ArchiveError::Io)?;
            archive.read_to_end(&mut bytes).map_err(ArchiveError::Io)
        });
        read.map_err(|error| error.at(&self.url.to_string()))?;
        Ok(bytes)
    }
}

mu_provider::debug_fields!(Held { url });

/// Downloads archives for providers that know their URLs.
#[derive(Debug)]
pub struct Archives {
    /// The client that downloads them.
    pub http: Arc<Http>,
    /// The folder for incomplete downloads.
    pub downloads: PathBuf,
    largest: u64,
    changed: &'static str,
    scratch: Scratch,
    /// The folder of downloads, once it was there.
    left: OnceLock<Folder>,
}

impl Archives {
    /// Creates this with a folder for incomplete downloads, and the largest accepted archive in bytes.
    pub fn new(http: Arc<Http>, downloads: impl Into<PathBuf>, largest: u64) -> Self {
        let (scratch, left) = (Scratch::default(), OnceLock::new());
        Self { http, downloads: downloads.into(), largest, changed: CHANGED, scratch, left }
    }

    /// These archives, with the hint for an archive that is not the expected one.
    #[must_use]
    pub fn hinting(self, changed: &'static str) -> Self {
        Self { changed, ..self }
    }

    /// The place at `url` relative to the registry of `location`, unless it must not lead there: to this
    /// machine's files, closer to this machine than the registry is, or with a secret.
    ///
    /// # Errors
    ///
    /// When it must not lead there, or is not a URL.
    pub fn place(location: &Location, url: &str) -> Result<Place, ProviderError> {
        let url = below(&location.root.with_trailing_slash(), url)?;
        Ok(Place { url, insecure: location.insecure, guard: None })
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
        layout: ArchiveLayout,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let archive = self.get(place, release, None, progress)?;
        let unpacked = self.unpack_archive(archive, layout, tree);
        unpacked.map_err(|error| error.at(&place.url.to_string()))?;
        tree.tell_pointers(&place.url, progress);
        Ok(())
    }

    /// Unpacks an archive that was downloaded, and keeps it beside `tree` if that wants it.
    ///
    /// # Errors
    ///
    /// When it is damaged or hostile, or cannot be written.
    pub fn unpack_archive(
        &self,
        archive: Archive,
        layout: ArchiveLayout,
        tree: &mut TreeWriter,
    ) -> Result<(), ArchiveError> {
        if !layout.is_kept(tree) {
            return archive.unpack(&self.scratch, layout, tree);
        }
        let mut bytes = Vec::new();
        archive.copy(&mut bytes).map_err(ArchiveError::Io)?;
        let unpacked = unpack_with(&self.scratch, &bytes, layout, tree);
        tree.archive = Some(bytes);
        unpacked
    }

    /// Unpacks an archive that was kept, if it is what `release` says.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Integrity`] when it differs or is hostile.
    pub fn restore_archive(
        &self,
        kept: &[u8],
        release: &Release,
        layout: ArchiveLayout,
        tree: &mut TreeWriter,
    ) -> Result<(), ProviderError> {
        let what = expect_kept(kept, release)?;
        unpack_with(&self.scratch, kept, layout, tree).map_err(|error| error.at(&what))
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
        let archive = self.get(place, layer, None, progress)?;
        archive.unpack_layer(layers, tree).map_err(|error| error.at(&place.url.to_string()))
    }

    /// The bytes of a layer of an image, as it is what `layer` says in `archive` and `size`.
    ///
    /// # Errors
    ///
    /// As [`Archives::unpack`].
    pub fn layer_bytes(
        &self,
        place: &Place,
        layer: &Release,
        progress: &dyn Progress,
    ) -> Result<Vec<u8>, ProviderError> {
        let mut bytes = Vec::new();
        let copied = self.get(place, layer, None, progress)?.copy(&mut bytes);
        copied.map_err(|error| ArchiveError::Io(error).at(&place.url.to_string()))?;
        Ok(bytes)
    }

    /// Downloads the archive at `place`, unless it is still what `known` says, compares it with `release` as far as
    /// that has its digest, and looks for the files that are `wanted`.
    ///
    /// # Errors
    ///
    /// When it cannot be got, differs, or is damaged.
    pub fn look(
        &self,
        place: &Place,
        packing: Packing,
        release: &Release,
        known: Option<Validator>,
        wanted: &dyn Fn(&str) -> bool,
        progress: &dyn Progress,
    ) -> Result<Looked, ProviderError> {
        let unless = Unless { known, ..Unless::default() };
        let mut archive = match self.get(place, release, Some(&unless), progress) {
            Err(_) if unless.is_same.get() => {
                let (_, max_age) = unless.now.into_inner();
                return Ok(Looked::Unchanged { max_age });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Looked::Absent),
            got => got?,
        };
        let refused = |error: ArchiveError| error.at(&place.url.to_string());
        let size = archive.size();
        let digest = archive.digest().map_err(|error| refused(ArchiveError::Io(error)))?;
        let survey = archive.read(|bytes| survey(bytes, size, packing, wanted)).map_err(refused)?;
        let (validator, max_age) = unless.now.into_inner();
        let Survey { top, files, is_plain, has_hard_links, .. } = survey;
        let url = place.url.clone();
        Ok(Looked::Held(Box::new(Held {
            archive,
            url,
            packing,
            top,
            is_plain,
            has_hard_links,
            size,
            digest,
            files,
            validator,
            max_age,
        })))
    }

    fn get(
        &self,
        place: &Place,
        release: &Release,
        unless: Option<&Unless>,
        progress: &dyn Progress,
    ) -> Result<Archive, ProviderError> {
        let unreadable = || format!("the digest of the archive `{}` cannot be read", place.url);
        let wanted = self.expected(release, unreadable)?;
        Download { unless, ..self.at(place, progress) }.get(&place.url, wanted)
    }

    /// What is known about the archive of a release; `unreadable` is the error if its digest cannot be read.
    ///
    /// # Errors
    ///
    /// When its digest cannot be read.
    pub fn expected(
        &self,
        release: &Release,
        unreadable: impl FnOnce() -> String,
    ) -> Result<ExpectedArchive, ProviderError> {
        let digest = release.archive.as_deref().map(str::parse::<ArchiveDigest>).transpose();
        let digest = digest.map_err(|error| {
            ProviderError::new(ErrorKind::Integrity, unreadable()).because(error)
        })?;
        let (size, limit, changed) = (release.size, self.largest, self.changed);
        Ok(ExpectedArchive { digest, size, limit, changed })
    }

    /// Downloads the archive at `place`, if it is the `wanted` one. Some servers answer 403 for what is not there: with `hides`,
    /// that counts as absent, and is noted there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::Integrity`] when it is another one.
    pub fn download(
        &self,
        place: &Place,
        wanted: ExpectedArchive,
        hides: Option<&Cell<bool>>,
        progress: &dyn Progress,
    ) -> Result<Archive, ProviderError> {
        Download { hides, ..self.at(place, progress) }.get(&place.url, wanted)
    }

    /// How the archive at `place` is got, whatever was there the last time.
    fn at<'call>(&'call self, place: &Place, progress: &'call dyn Progress) -> Download<'call> {
        let left = Folder::open_once(&self.left, || self.downloads.clone());
        let (http, folder) = (&*self.http, &*self.downloads);
        let (insecure, guard) = (place.insecure, place.guard.clone());
        Download { http, insecure, guard, folder, left, progress, hides: None, unless: None }
    }
}

/// Unpacks an archive of anybody's that was kept, if it is what `release` says.
///
/// # Errors
///
/// [`ErrorKind::Integrity`] when it differs or is hostile.
pub fn restore_anyones(
    kept: &[u8],
    release: &Release,
    packing: Packing,
    tree: &mut TreeWriter,
) -> Result<(), ProviderError> {
    let what = expect_kept(kept, release)?;
    unpack_anyones(kept, packing, tree).map_err(|error| error.at(&what))
}

/// What an archive that was kept is called in messages, if it is what `release` says.
fn expect_kept(kept: &[u8], release: &Release) -> Result<String, ProviderError> {
    let wanted = release.archive.as_deref().unwrap_or_default();
    let what = format!("the archive that is kept of {}", release.version);
    let found = ArchiveDigest::from_bytes(Sha256::digest(kept).into()).to_string();
    if found != wanted {
        let text =
            format!("{what} is not the one that was expected: expected {wanted}, got {found}");
        return Err(ProviderError::new(ErrorKind::Integrity, text));
    }
    Ok(what)
}

/// The longest place that a hub names, in bytes.
const LONGEST_PLACE: usize = 8 << 10;

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

/// The URL of `place` relative to `folder`, unless it leads from a hub to this machine's files, closer to
/// this machine than the hub is, or contains a secret.
///
/// # Errors
///
/// When it leads there, or is not a URL.
pub fn below(folder: &SafeUrl, place: &str) -> Result<SafeUrl, ProviderError> {
    if place.len() > LONGEST_PLACE {
        let text = format!(
            "`{folder}` names a place in {} bytes, and a URL has at most {LONGEST_PLACE}",
            place.len()
        );
        return Err(ProviderError::new(ErrorKind::Refused, text));
    }
    let url = folder.join(place).map_err(|error| {
        let text = format!("`{folder}` names a place that is not a valid URL");
        ProviderError::new(ErrorKind::Protocol, text).because(error)
    })?;
    let escapes = match folder.scheme() {
        "file" => {
            url.scheme() == "file" && !url.as_url().path().starts_with(folder.as_url().path())
        }
        _ => !matches!(url.scheme(), "http" | "https") && !url.is_in_bucket_of(folder),
    };
    let brings_secret = url.may_hold_secret() && place.contains('@');
    if escapes || brings_secret {
        let text = format!("`{url}` is refused: the hub at `{folder}` may not lead there");
        return Err(ProviderError::new(ErrorKind::Refused, text));
    }
    if folder.scheme() != "file" {
        check_lead(folder, &url)?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> SafeUrl {
        SafeUrl::parse(text).expect("is a URL")
    }

    #[test]
    fn a_hub_leads_to_no_file_outside() {
        for (folder, place, expected) in [
            ("https://h/hub/", "packs/a.tgz", Some("https://h/hub/packs/a.tgz")),
            ("https://h/hub/", "https://cdn/a.tgz", Some("https://cdn/a.tgz")),
            ("https://h/hub/", "file:///etc/passwd", None),
            ("https://h/hub/", "data:text/plain,x", None),
            ("https://h/hub/", "http://h/hub/packs/a.tgz", None),
            ("https://h/hub/", "http://127.0.0.1:8080/a.tgz", None),
            ("https://h/hub/", "https://10.0.0.1/a.tgz", None),
            (
                "http://127.0.0.1:1/hub/",
                "http://127.0.0.1:2/a.tgz",
                Some("http://127.0.0.1:2/a.tgz"),
            ),
            ("file:///srv/hub/", "packs/a.tgz", Some("file:///srv/hub/packs/a.tgz")),
            ("file:///srv/hub/", "../a.tgz", None),
            ("file:///srv/hub/", "/etc/passwd", None),
            ("file:///srv/hub/", "https://cdn/a.tgz", Some("https://cdn/a.tgz")),
            ("s3://acme/hub/", "packs/a.tgz", Some("s3://acme/hub/packs/a.tgz")),
            ("s3://acme/hub/", "../packs/a.tgz", Some("s3://acme/packs/a.tgz")),
            ("s3://acme/hub/", "https://cdn/a.tgz", Some("https://cdn/a.tgz")),
            ("s3://acme/hub/", "s3://other/a.tgz", None),
            ("s3://acme/hub/", "//other/a.tgz", None),
            ("s3://localhost/hub/", "http://localhost/a.tgz", None),
            ("az://c@one.example.com/hub/", "az://d@one.example.com/a.tgz", None),
            ("https://h/hub/", "s3://acme/a.tgz", None),
        ] {
            let result = below(&url(folder), place).map(|url| url.to_string());
            assert_eq!(result.as_deref().ok(), expected, "{folder} {place}");
        }
    }
}
