//! Catalogs: each is requested once a run, read only if it has changed, and remembered package by package.
//!
//! What is remembered is a file for each catalog: one line that says what it is of, and the lines of its packages. It only saves
//! work: whatever cannot be read or written is as if it was not there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_archive::document::{Asking, DocumentAnswer, Validator, file_path};
use mu_archive::remembered::{AskedOnce, IndexAnswer, Remembered, digest};
use mu_formats::olm::{self, Beside, Resource};
use mu_provider::fs::{self, RunFolder};
use mu_provider::http::Http;
use mu_provider::{
    ErrorKind, FileDigest, Folder, InnerPath, Limits, Location, Progress, ProviderError, SafeUrl,
    TreeWriter, none_if,
};
use mu_provider_oci::{ImageName, OciProvider};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::folder::parts;

/// The longest catalog, in bytes.
const LONGEST_CATALOG: u64 = 1 << 30;

/// The longest file that a catalog refers to, in bytes; a cluster takes no resource that is longer.
const LONGEST_RESOURCE: u64 = 4 << 20;

/// The version of what is remembered: what an older mu made of a catalog is rebuilt.
const FORMAT: u32 = 2;

/// What a server of catalogs serves a whole one as.
const ALL: &str = "api/v1/all";

/// The label of an image that says in which of its folders the catalog is, and the usual one.
const CONFIGS: (&str, &str) = ("operators.operatorframework.io.index.configs.v1", "configs");

/// The catalogs of a run.
#[derive(Debug)]
pub(crate) struct Catalogs {
    http: Arc<Http>,
    oci: Arc<OciProvider>,
    folder: PathBuf,
    asked: AskedOnce<OperatorCatalog>,
}

/// A catalog, as it is now.
pub(crate) type OperatorCatalog = Remembered<Head>;

/// What is known of a catalog besides its packages.
#[derive(Debug, Serialize, Deserialize)]
pub struct Head {
    /// The digest of all that the catalog was read from, where it has no validator.
    digest: String,
    /// The packages that provide each kind.
    pub(crate) kinds: BTreeMap<String, Vec<String>>,
    /// Which of its documents cannot be read.
    broken: Vec<String>,
}

/// A resource, with the name of its file if it has one.
pub(crate) type Named = (Option<String>, Vec<u8>);

/// Takes the text of a part of a catalog, where it is, and what reads the files that it refers to.
type Take<'t> = dyn FnMut(&str, &str, &mut Beside<'_>) -> Result<(), ProviderError> + 't;

/// What came of reading a catalog.
enum Read {
    Absent,
    Unchanged { max_age: Option<u32> },
    Whole { validator: Option<String>, max_age: Option<u32> },
}

impl Catalogs {
    pub(crate) fn new(http: Arc<Http>, oci: Arc<OciProvider>, folder: PathBuf) -> Self {
        Self { http, oci, folder, asked: AskedOnce::default() }
    }

    /// The catalog that a package is in; `None` if there is none.
    pub(crate) fn get(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<OperatorCatalog>>, ProviderError> {
        self.asked.get(&location.root, || {
            let catalog = self.refreshed(location, progress)?;
            if let Some(broken) =
                catalog.as_ref().and_then(|catalog| catalog.of.unreadable_documents())
            {
                progress.detail(&|| format!("{}: {broken}", location.root));
            }
            Ok(catalog)
        })
    }

    /// The resources that a catalog has of a bundle, as they are in it; with the names of those that have files.
    pub(crate) fn bundle_resources(
        &self,
        location: &Location,
        bundle: &str,
        progress: &dyn Progress,
    ) -> Result<Vec<Named>, ProviderError> {
        let mut found = Vec::new();
        self.read(location, None, progress, &mut |file, text, beside| {
            for resource in olm::resources(text, &location.path, bundle) {
                found.push(match resource {
                    Resource::Whole(bytes) => (None, bytes),
                    Resource::File(path) => {
                        let bytes = beside(&path).ok_or_else(|| refers_to_nothing(file, &path))?;
                        (path.rsplit('/').next().map(str::to_owned), bytes)
                    }
                });
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn refreshed(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<OperatorCatalog>, ProviderError> {
        let url = location.root.to_string();
        let file = self.folder.join(format!("{}.catalog", digest(url.as_bytes())));
        OperatorCatalog::refreshed(&file, FORMAT, &url, |remembered| {
            self.ask(location, remembered, progress)
        })
    }

    /// Reads a catalog, unless it is the one that is remembered.
    fn ask(
        &self,
        location: &Location,
        remembered: Option<&OperatorCatalog>,
        progress: &dyn Progress,
    ) -> Result<IndexAnswer<Head>, ProviderError> {
        let url = location.root.to_string();
        let validator = remembered.and_then(|known| known.validator.as_deref());
        let mut documents = olm::CatalogDocuments::default();
        let mut hash = Sha256::new();
        let mut last = String::new();
        let read = self.read(location, validator, progress, &mut |file, text, beside| {
            hash.update(text);
            file.clone_into(&mut last);
            let mut read = |path: &str| {
                let bytes = beside(path);
                hash.update(bytes.as_deref().unwrap_or_default());
                bytes
            };
            documents.add(file, text, &mut read).map_err(|excess| {
                let text = format!("the catalog `{}` is not read", location.root);
                ProviderError::new(ErrorKind::Refused, text).because(format!("it has {excess}"))
            })
        })?;
        let (validator, max_age) = match read {
            Read::Absent => return Ok(IndexAnswer::Absent),
            Read::Unchanged { max_age } => return Ok(IndexAnswer::Unchanged { max_age }),
            Read::Whole { validator, max_age } => (validator, max_age),
        };
        let digest = FileDigest::from_bytes(hash.finalize().into()).to_string();
        // The same may be under another name of the server's.
        if remembered.is_some_and(|known| known.of.digest == digest) {
            return Ok(IndexAnswer::Read { index: None, validator, max_age });
        }
        if !documents.has_catalog_documents() {
            if let Some(error) = documents.first_broken() {
                return Err(not_a_catalog(error));
            }
            let place = if last.is_empty() { url } else { last };
            let text = format!("`{place}` is not a catalog of operators");
            return Err(ProviderError::new(ErrorKind::Protocol, text)
                .because("nothing in it has a `schema` such as `olm.package`"));
        }
        let index = documents.finish();
        for note in &index.notes {
            progress.detail(&|| format!("{url}: {note}"));
        }
        let olm::Index { packages, kinds, broken, .. } = index;
        let index = OperatorCatalog::new(FORMAT, url, Head { digest, kinds, broken }, packages);
        Ok(IndexAnswer::Read { index: Some(index), validator, max_age })
    }

    /// Reads a catalog, unless it is what `validator` says, and hands each part of it to `take`.
    fn read(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
        take: &mut Take<'_>,
    ) -> Result<Read, ProviderError> {
        match location.root.scheme() {
            "oci" => return self.read_image(location, validator, progress, take),
            "file" => {
                let path = path_of(&location.root)?;
                match fs::metadata_if_there(&path)? {
                    None => return Ok(Read::Absent),
                    Some(metadata) if metadata.is_dir() => {
                        return read_folder(&Folder::at(&path)?, &path, validator, take);
                    }
                    Some(_) => {}
                }
            }
            _ => {}
        }
        let url = url_of(&location.root)?;
        let asking = Asking::new(&self.http, location, LONGEST_CATALOG, progress);
        Ok(match asking.read(&url, validator.map(Validator::parse).as_ref())? {
            DocumentAnswer::Unchanged { max_age, .. } => Read::Unchanged { max_age },
            DocumentAnswer::Absent { .. } | DocumentAnswer::Hidden => Read::Absent,
            DocumentAnswer::Read(document) => {
                let place = url.to_string();
                take(&place, &text_of(&document.bytes), &mut |_| None)?;
                Read::Whole {
                    validator: document.validator.to_stored_text(),
                    max_age: document.max_age,
                }
            }
        })
    }

    /// Reads the catalog in an image, which its digest tells from others.
    fn read_image(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
        take: &mut Take<'_>,
    ) -> Result<Read, ProviderError> {
        let name = location.root.to_string();
        let name = name.trim_start_matches("oci://").trim_end_matches('/');
        let name = ImageName::parse(name, location)?;
        if validator.is_some() && name.digest() == validator {
            return Ok(Read::Unchanged { max_age: None });
        }
        let image = none_if(self.oci.image(&name, progress), ErrorKind::NotFound)?;
        let Some(image) = image else { return Ok(Read::Absent) };
        if validator == Some(&image.digest) {
            return Ok(Read::Unchanged { max_age: None });
        }
        let configs = image.label(CONFIGS.0)?;
        let configs = configs.as_deref().unwrap_or(CONFIGS.1);
        let configs = InnerPath::parse(configs.trim_matches('/')).map_err(|error| {
            let text = format!("the image of the catalog `{}` is refused", location.root);
            let why = format!("its label `{}` names no folder in it: {error}", CONFIGS.0);
            ProviderError::new(ErrorKind::Refused, text).because(why)
        })?;
        let scratch = RunFolder::new(&self.folder.join("images"))?;
        let into = Folder::at(scratch.path())?.make_inner(&InnerPath::own("image").into())?;
        let mut tree = TreeWriter::new(into, Limits::default());
        image.unpack([configs.as_str().to_owned()], &mut tree)?;
        tree.finish()?;
        let unpacked = Folder::at(&scratch.path().join("image"))?;
        if unpacked.look_at(&configs)?.is_some() {
            let folder = unpacked.inner(&configs)?;
            read_folder(&folder, Path::new(&location.root.to_string()), None, take)?;
        }
        Ok(Read::Whole { validator: Some(image.digest), max_age: None })
    }
}

/// Reads the catalog in a folder, which messages call `shown`.
fn read_folder(
    folder: &Folder,
    shown: &Path,
    validator: Option<&str>,
    take: &mut Take<'_>,
) -> Result<Read, ProviderError> {
    let parts = parts(folder)?;
    let stamps: Vec<&str> = parts.iter().map(|part| part.stamp.as_str()).collect();
    let now = digest(stamps.join("\n").as_bytes());
    if validator == Some(&now) {
        return Ok(Read::Unchanged { max_age: None });
    }
    let mut left = LONGEST_CATALOG;
    let mut refers = false;
    for part in &parts {
        // It was there a moment ago.
        let bytes = folder.read(&part.path)?.unwrap_or_default();
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            let text = format!("the catalog `{}` is refused", shown.display());
            let why = format!("it is longer than {LONGEST_CATALOG} bytes");
            ProviderError::new(ErrorKind::Refused, text).because(why)
        })?;
        let place = shown.join(&part.path).display().to_string();
        take(&place, &text_of(&bytes), &mut |path| {
            refers = true;
            referred(folder, &part.path, path)
        })?;
    }
    // The stamps are those of the files of the catalog, and not of the files that these refer to.
    Ok(Read::Whole { validator: Some(now).filter(|_| !refers), max_age: None })
}

/// The content of the file that the file `from` of a catalog refers to as `path`. Nothing outside of the catalog is read, and nothing
/// through a link.
fn referred(catalog: &Folder, from: &InnerPath, path: &str) -> Option<Vec<u8>> {
    let path = InnerPath::parse(path.strip_prefix("./").unwrap_or(path)).ok()?;
    let place = from.parent().map_or_else(|| path.clone(), |parent| parent.join(&path));
    let (_, metadata) = catalog.open_file(place.as_str()).ok()?;
    (metadata.len() <= LONGEST_RESOURCE).then(|| catalog.read(&place).ok())?.flatten()
}

fn refers_to_nothing(file: &str, path: &str) -> ProviderError {
    let text = format!("`{file}` refers to the file `{path}`, which cannot be read");
    ProviderError::new(ErrorKind::NotFound, text)
        .because("it has to be a file in the folder of the catalog, and mu follows no links")
}

/// The file that a catalog is, on a web server or on this machine.
fn url_of(root: &SafeUrl) -> Result<SafeUrl, ProviderError> {
    let text = root.to_string();
    let bare = text.trim_end_matches('/');
    let is_file =
        root.scheme() == "file" || [".json", ".yaml", ".yml"].iter().any(|end| bare.ends_with(end));
    let url = match is_file {
        true => SafeUrl::parse(bare),
        false => root.as_folder().join(ALL),
    };
    url.map_err(|error| {
        let text = format!("`{root}` is not the place of a catalog");
        ProviderError::new(ErrorKind::Refused, text).because(error)
    })
}

/// The path of a `file:` URL, whatever slash is behind it.
pub(crate) fn path_of(root: &SafeUrl) -> Result<PathBuf, ProviderError> {
    Ok(file_path(root)?.components().collect())
}

/// The text of a part of a catalog. As in the JSON that OLM reads, what is not UTF-8 spoils no more than its own value.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn not_a_catalog(error: &mu_formats::FormatError) -> ProviderError {
    let text = format!("`{}` is not a catalog of operators", error.file);
    let why = format!("line {}, column {}: {}", error.line, error.column, error.reason);
    ProviderError::new(ErrorKind::Protocol, text).because(why)
}

impl Head {
    /// Which of its documents cannot be read, in words; `None` if all can be.
    pub(crate) fn unreadable_documents(&self) -> Option<String> {
        let broken = &self.broken;
        (!broken.is_empty()).then(|| format!("mu cannot read {}", broken.join("; ")))
    }
}
