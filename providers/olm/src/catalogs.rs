//! Catalogs: each is requested once a run, read only if it has changed, and remembered package by package.
//!
//! A catalog in a folder is the files below it that may be parts of one, in the order of their paths. `.indexignore` files leave
//! files out, as `.gitignore` files do for Git. Nothing is reached through a link.
//!
//! What is remembered is a file for each catalog: one line that says what it is of, and the lines of its packages. It only saves
//! work: whatever cannot be read or written is as if it was not there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use mu_archive::document::{Asking, DocumentAnswer, Validator, file_path};
use mu_archive::remembered::{AskedOnce, IndexAnswer, Remembered, digest};
use mu_formats::olm::{self, Beside, Resource};
use mu_provider::fs::{self, RunFolder};
use mu_provider::http::Http;
use mu_provider::{
    ErrorKind, FileDigest, Folder, InnerPath, Kind, Limits, Location, Progress, ProviderError,
    SafeUrl, TreeWriter, none_if,
};
use mu_provider_oci::{ImageName, OciProvider};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The longest catalog, in bytes.
const LONGEST_CATALOG: u64 = 1 << 30;

/// The longest file that a catalog refers to, in bytes; a cluster takes no resource that is longer.
const LONGEST_RESOURCE: u64 = 4 << 20;

/// The version of what is remembered: what an older mu made of a catalog is rebuilt.
const FORMAT: u32 = 3;

/// What a server of catalogs serves a whole one as.
const ALL: &str = "api/v1/all";

/// The label of an image that says in which of its folders the catalog is, and the usual one.
const CONFIGS: (&str, &str) = ("operators.operatorframework.io.index.configs.v1", "configs");

/// The label of an image that has a catalog of the older format: where in it the database is.
const DATABASE: &str = "operators.operatorframework.io.index.database.v1";

/// What a database of SQLite begins with.
const SQLITE: &str = "SQLite format 3\0";

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
            if text.starts_with(SQLITE) {
                return Err(is_database(file));
            }
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
        if configs.is_none() && image.label(DATABASE)?.is_some() {
            return Err(is_database(&location.root.to_string()));
        }
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

/// The error of a catalog of the older format.
fn is_database(place: &str) -> ProviderError {
    let text = format!("the catalog `{place}` is a database, and mu reads those that are files");
    let place = ["oci://", "file://"]
        .into_iter()
        .find_map(|scheme| place.strip_prefix(scheme))
        .unwrap_or(place);
    let place = place.trim_end_matches('/');
    ProviderError::new(ErrorKind::Protocol, text).hint(format!(
        "`opm migrate {place} FOLDER` makes files of it, and a registry can lead to them: `{{provider: olm, url: FOLDER}}`"
    ))
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

/// The file that leaves others out.
const IGNORE: &str = ".indexignore";

/// The ends of names that files of catalogs have.
const ENDS: [&str; 3] = [".yaml", ".yml", ".json"];

/// How many files a catalog may have.
const MOST_FILES: usize = 200_000;

/// How deep its folders may be nested.
const MAX_DEPTH: usize = 32;

/// A file of a catalog.
#[derive(Debug)]
pub(crate) struct Part {
    /// Its path in the folder of the catalog.
    pub(crate) path: InnerPath,
    /// What tells whether it is still the same: its path below the folder, when it changed, and its size.
    stamp: String,
}

/// The files of the catalog in a folder.
fn parts(folder: &Folder) -> Result<Vec<Part>, ProviderError> {
    let mut walk = Walk { top: folder, parts: Vec::new(), ignored: Vec::new() };
    walk.folder(folder, None, 0)?;
    Ok(walk.parts)
}

struct Walk<'w> {
    top: &'w Folder,
    parts: Vec<Part>,
    /// What the folders above leave out.
    ignored: Vec<Gitignore>,
}

impl Walk<'_> {
    /// Finds the parts in `folder`, whose path in the catalog is `place`.
    fn folder(
        &mut self,
        folder: &Folder,
        place: Option<&InnerPath>,
        depth: usize,
    ) -> Result<(), ProviderError> {
        if depth > MAX_DEPTH {
            return Err(self.refused("its folders are nested too deep"));
        }
        let entries = folder.entries()?;
        let ignore = InnerPath::from(InnerPath::own(IGNORE));
        let has_ignore = entries.iter().any(|(name, _)| name == IGNORE);
        if has_ignore {
            let text = folder.read_text(&ignore)?.unwrap_or_default();
            let mut builder = GitignoreBuilder::new(folder.path());
            for line in text.lines() {
                // What it cannot read leaves nothing out.
                let _ = builder.add_line(None, line);
            }
            self.ignored.push(builder.build().unwrap_or_else(|_| Gitignore::empty()));
        }
        for (name, kind) in entries {
            let path = folder.path().join(&name);
            let is_folder = kind == Kind::Folder;
            let is_ignored = |ignored: &Gitignore| ignored.matched(&path, is_folder).is_ignore();
            let is_part =
                is_folder || kind == Kind::File && ENDS.iter().any(|end| name.ends_with(end));
            // Those of a checkout around the catalog.
            let is_own = matches!(&*name, ".git" | ".mu");
            if !is_part || is_own || self.ignored.iter().any(is_ignored) {
                continue;
            }
            let inside =
                InnerPath::name(&name).map_err(|error| self.refused(&error.to_string()))?;
            let place = place.map_or_else(|| inside.clone(), |place| place.join(&inside));
            if is_folder {
                self.folder(&folder.inner(&inside)?, Some(&place), depth + 1)?;
            } else {
                self.file(folder, &inside, place)?;
            }
        }
        if has_ignore {
            self.ignored.pop();
        }
        Ok(())
    }

    fn file(
        &mut self,
        folder: &Folder,
        name: &InnerPath,
        path: InnerPath,
    ) -> Result<(), ProviderError> {
        if self.parts.len() == MOST_FILES {
            return Err(self.refused(&format!("it has more than {MOST_FILES} files")));
        }
        // A file that is gone meanwhile is no part.
        let Some((size, changed)) = folder.size_and_time(name.as_str()) else { return Ok(()) };
        let age = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        let stamp = format!("{path} {} {size}", age.as_nanos());
        self.parts.push(Part { path, stamp });
        Ok(())
    }

    fn refused(&self, why: &str) -> ProviderError {
        let text = format!("the catalog `{}` is refused: {why}", self.top.path().display());
        ProviderError::new(ErrorKind::Refused, text)
    }
}
