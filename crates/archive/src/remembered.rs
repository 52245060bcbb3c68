//! Registries that are one index for all their packages: it is read once in a run, answers all questions about its packages, and
//! is remembered for the next run in a file whose first line says what it is of, and then has the lines of each package.
//!
//! A provider says where its index is, what it means, and what to call it. What an index answers is the same for all of them. The
//! file only saves work: if it cannot be read or written, mu continues without it. What its first line means is known to the
//! providers. Nothing here connects to anything.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use mu_provider::catalog::{CatalogLine, Hits, Query};
use mu_provider::threads::lock;
use mu_provider::{
    ErrorKind, FileDigest, Found, Listing, Location, Progress, ProviderError, Release, SafeUrl,
    Silent, fs, json_lines, none_if, read_json_lines,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What was asked of places in a run, by their URLs. Each is asked once: a second caller waits for the first. After a failure, it is
/// asked again.
#[derive(Debug)]
pub struct AskedOnce<Answer>(Mutex<HashMap<SafeUrl, Arc<Slot<Answer>>>>);

/// The answer for a URL, once it was asked.
type Slot<Answer> = Mutex<Option<Option<Arc<Answer>>>>;

impl<Answer> Default for AskedOnce<Answer> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Answer> AskedOnce<Answer> {
    /// What is at `url`, which `ask` asks; `None` if there is nothing.
    ///
    /// # Errors
    ///
    /// Those of `ask`.
    pub fn get<E>(
        &self,
        url: &SafeUrl,
        ask: impl FnOnce() -> Result<Option<Answer>, E>,
    ) -> Result<Option<Arc<Answer>>, E> {
        let slot = Arc::clone(lock(&self.0).entry(url.clone()).or_default());
        let mut slot = lock(&slot);
        if let Some(known) = &*slot {
            return Ok(known.clone());
        }
        let answer = ask()?.map(Arc::new);
        *slot = Some(answer.clone());
        Ok(answer)
    }

    /// What is at `url`, if that was asked.
    pub fn known(&self, url: &SafeUrl) -> Option<Arc<Answer>> {
        let slot = Arc::clone(lock(&self.0).get(url)?);
        let known = lock(&slot).clone();
        known.flatten()
    }
}

/// What a place says of its index, to one who may remember it.
#[derive(Debug)]
pub enum IndexAnswer<Of> {
    /// There is none.
    Absent,
    /// It is what is remembered.
    Unchanged {
        /// For how many seconds it need not be requested again.
        max_age: Option<u32>,
    },
    /// It was read.
    Read {
        /// The index; `None` if it has the same content as the one that is remembered.
        index: Option<Remembered<Of>>,
        /// What to hand back to ask whether it has changed.
        validator: Option<String>,
        /// For how many seconds it need not be requested again.
        max_age: Option<u32>,
    },
}

/// An index, split by package.
#[derive(Debug, Serialize, Deserialize)]
pub struct Remembered<Of> {
    /// The version of the file. What an older mu made of an index is made again.
    format: u32,
    url: String,
    /// What to hand back to ask whether it has changed.
    pub validator: Option<String>,
    /// For how many seconds it need not be requested again.
    #[serde(skip)]
    pub max_age: Option<u32>,
    /// What its provider knows of it besides.
    pub of: Of,
    packages: BTreeMap<String, Place>,
    #[serde(skip)]
    lines: Vec<u8>,
}

/// Where the lines of a package are, and their digest.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    lines: Range<usize>,
    digest: String,
}

/// The part of one package.
#[derive(Debug, Clone, Copy)]
pub struct Part<'index> {
    /// Its lines.
    pub lines: &'index [u8],
    /// The digest of the lines.
    pub digest: &'index str,
}

impl<'index> Part<'index> {
    /// The releases in its lines, as far as they can be read.
    pub fn releases(self) -> impl Iterator<Item = Release> + use<'index> {
        read_json_lines(self.lines).flatten()
    }
}

impl<Of: Serialize + DeserializeOwned> Remembered<Of> {
    /// Splits an index, which was just read from `url`: the name and the lines of each package.
    pub fn new(
        format: u32,
        url: impl Into<String>,
        of: Of,
        index: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Self {
        let mut lines = Vec::new();
        let mut packages = BTreeMap::new();
        for (name, package) in index {
            let begin = lines.len();
            let digest = digest(&package);
            lines.extend(package);
            packages.insert(name, Place { lines: begin..lines.len(), digest });
        }
        let (url, validator, max_age) = (url.into(), None, None);
        Self { format, url, validator, max_age, of, packages, lines }
    }

    /// The index at `url`, as it is now: `ask` says so, and gets what `file` remembers of it. What is new is remembered in turn.
    ///
    /// # Errors
    ///
    /// Those of `ask`.
    pub fn refreshed(
        file: &Path,
        format: u32,
        url: &str,
        ask: impl FnOnce(Option<&Self>) -> Result<IndexAnswer<Of>, ProviderError>,
    ) -> Result<Option<Self>, ProviderError> {
        let remembered = Self::read(file, format, url);
        Ok(match ask(remembered.as_ref())? {
            IndexAnswer::Absent => None,
            IndexAnswer::Unchanged { max_age } => remembered.map(|known| known.fresh_for(max_age)),
            IndexAnswer::Read { index, validator, max_age } => {
                let index = index.or(remembered);
                let index = index.map(|index| Self { validator, max_age, ..index });
                index.inspect(|index| index.write(file))
            }
        })
    }

    /// This index, which need not be requested again for so many seconds.
    fn fresh_for(self, max_age: Option<u32>) -> Self {
        Self { max_age, ..self }
    }

    /// Reads what `file` remembers of the index at `url`; `None` if there is nothing that can be read.
    fn read(file: &Path, format: u32, url: &str) -> Option<Self> {
        let bytes = fs::read(file).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (head, lines) = bytes.split_at_checked(end + 1)?;
        let head: Self = serde_json::from_slice(head).ok()?;
        let is_it = head.format == format && head.url == url;
        is_it.then(|| Self { lines: lines.to_vec(), ..head })
    }

    /// Writes it into `file`, whose folder is made if it is not there. If that fails, the next run reads the index again.
    fn write(&self, file: &Path) {
        let mut bytes = serde_json::to_vec(self).expect("texts and numbers can be printed");
        bytes.push(b'\n');
        bytes.extend(&self.lines);
        if let Some(folder) = file.parent()
            && fs::create_folder(folder).is_ok()
        {
            let _ = fs::write_atomic(file, &bytes);
        }
    }

    /// The part of a package.
    pub fn package(&self, name: &str) -> Option<Part<'_>> {
        self.part(self.packages.get(name)?)
    }

    /// All packages, by name.
    fn packages(&self) -> impl Iterator<Item = (&str, Part<'_>)> {
        self.packages.iter().filter_map(|(name, place)| Some((&**name, self.part(place)?)))
    }

    /// The answer to the question for the package at a location; `None` if there is none.
    pub fn listing(&self, location: &Location, validator: Option<&str>) -> Option<Listing> {
        let Part { lines, digest } = self.package(&location.path)?;
        let max_age = self.max_age;
        if validator == Some(digest) {
            return Some(Listing::Unchanged { max_age, validator: None });
        }
        let (lines, validator) = (lines.to_vec(), Some(digest.to_owned()));
        Some(Listing::Found(Found::new(location, lines, validator, max_age)))
    }

    /// Searches the packages, which `line` describes by their names and parts.
    pub fn search(
        &self,
        query: &Query,
        line: impl Fn(&str, Part<'_>) -> Option<CatalogLine>,
    ) -> Hits {
        let lines = json_lines(self.packages().filter_map(|(name, part)| line(name, part)));
        query.search(&*lines).expect("it is in memory")
    }

    fn part<'index>(&'index self, place: &'index Place) -> Option<Part<'index>> {
        Some(Part { lines: self.lines.get(place.lines.clone())?, digest: &place.digest })
    }
}

/// The SHA-256 of bytes, as text.
pub fn digest(bytes: &[u8]) -> String {
    FileDigest::from_bytes(Sha256::digest(bytes).into()).to_string()
}

/// A provider whose registries each have one index for all their packages.
pub trait Catalog {
    /// What is known of an index besides its packages.
    type Of: Serialize + DeserializeOwned;

    /// The index at a location as it is in this run; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When the place cannot be reached or answers nonsense.
    fn index(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<Remembered<Self::Of>>>, ProviderError>;

    /// Where a package was looked for in vain: in this index, or where there is none.
    ///
    /// # Errors
    ///
    /// When the location is no place of such a registry.
    fn tried(
        &self,
        location: &Location,
        index: Option<&Remembered<Self::Of>>,
    ) -> Result<String, ProviderError>;

    /// That there is no such registry at a location.
    ///
    /// # Errors
    ///
    /// As [`Catalog::tried`].
    fn no_registry(&self, location: &Location) -> Result<String, ProviderError>;

    /// Whether a line of an index is that of a release of which a lock has only a little.
    fn is_line_of(&self, line: &Release, release: &Release) -> bool;

    /// A package as searches show it; `None` if they do not.
    fn line(&self, query: &Query, name: &str, part: Part<'_>) -> Option<CatalogLine>;

    /// As [`Provider::probe`](mu_provider::Provider::probe).
    ///
    /// # Errors
    ///
    /// As that.
    fn probe_index(&self, location: &Location) -> Result<bool, ProviderError> {
        Ok(none_if(self.index(location, &Silent), ErrorKind::Protocol)?.flatten().is_some())
    }

    /// As [`Provider::is_unchanged`](mu_provider::Provider::is_unchanged).
    fn is_part_unchanged(
        &self,
        location: &Location,
        validator: &str,
        progress: &dyn Progress,
    ) -> bool {
        // The code that really needs the index reports the error.
        let index = self.index(location, progress).ok().flatten();
        let part = index.as_ref().and_then(|index| index.package(&location.path));
        part.is_some_and(|part| part.digest == validator)
    }

    /// As [`Provider::list`](mu_provider::Provider::list).
    ///
    /// # Errors
    ///
    /// As that.
    fn list_part(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let index = self.index(location, progress)?;
        let listing = index.as_ref().and_then(|index| index.listing(location, validator));
        match listing {
            Some(listing) => Ok(listing),
            None => Ok(Listing::absent(vec![self.tried(location, index.as_deref())?])),
        }
    }

    /// The line that the index has now of a release.
    ///
    /// # Errors
    ///
    /// As [`Catalog::index`].
    fn listed(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Release>, ProviderError> {
        let Some(index) = self.index(location, progress)? else { return Ok(None) };
        let Some(part) = index.package(&location.path) else { return Ok(None) };
        Ok(part.releases().find(|line| self.is_line_of(line, release)))
    }

    /// As [`Provider::search`](mu_provider::Provider::search).
    ///
    /// # Errors
    ///
    /// As that.
    fn search_index(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        let Some(index) = self.index(location, progress)? else {
            let text = self.no_registry(location)?;
            return Err(ProviderError::new(ErrorKind::NotFound, text));
        };
        Ok(Some(index.search(query, |name, part| self.line(query, name, part))))
    }
}
