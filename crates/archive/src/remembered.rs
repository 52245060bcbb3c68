//! Registries that are one index for all their packages: it is read once in a run, answers all questions about its packages, and
//! is remembered for the next run in a file of which no more is read than what is asked for.
//!
//! A provider says where its index is, what it means, and what to call it. What an index answers is the same for all of them. The
//! file only saves work: if it cannot be read or written, mu continues without it. What its first line means is known to the
//! providers. Nothing here connects to anything.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use memchr::{memchr, memrchr};
use mu_provider::catalog::{CatalogLine, Hits, Query};
use mu_provider::fs::{self, AtPath as _};
use mu_provider::threads::lock;
use mu_provider::{
    ErrorKind, FileDigest, Found, Listing, Location, Progress, ProviderError, Release, SafeUrl,
    Silent, json_lines, none_if, read_json_lines,
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
///
/// In its file, a line that says what it is of is followed by the table of its packages, a line for each in the order of their names, and
/// by the lines of all packages. Of what is remembered, only the first two are read, and then the lines of those packages that are asked
/// for.
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
    /// How long the table is, and the lines of all packages, in bytes.
    lengths: (usize, u64),
    #[serde(skip)]
    table: Vec<u8>,
    #[serde(skip)]
    lines: Lines,
}

/// The lines of all packages.
#[derive(Debug)]
enum Lines {
    /// They were just read from the index.
    InMemory(BTreeMap<String, Vec<u8>>),
    /// They are in a file, behind so many bytes.
    InFile(File, PathBuf, u64),
}

impl Default for Lines {
    fn default() -> Self {
        Self::InMemory(BTreeMap::new())
    }
}

/// A package, as a line of the table has it: its name, the digest of its lines, where they begin among those of all packages, and how
/// long they are.
#[derive(Debug, Serialize, Deserialize)]
struct Place<Text = String>(Text, Text, u64, usize);

/// The part of one package.
#[derive(Debug, Clone)]
pub struct Part<'index> {
    /// Its lines.
    pub lines: Cow<'index, [u8]>,
    /// The digest of the lines.
    pub digest: String,
}

impl Part<'_> {
    /// The releases in its lines, as far as they can be read.
    pub fn releases(&self) -> impl Iterator<Item = Release> {
        read_json_lines(&self.lines).flatten()
    }
}

impl<Of: Serialize + DeserializeOwned> Remembered<Of> {
    /// Splits an index, which was just read from `url`: the name and the lines of each package, in the order of the names.
    pub fn new(
        format: u32,
        url: impl Into<String>,
        of: Of,
        packages: BTreeMap<String, Vec<u8>>,
    ) -> Self {
        let (mut table, mut begin) = (Vec::new(), 0);
        for (name, lines) in &packages {
            let place = Place(name.as_str(), &*digest(lines), begin, lines.len());
            serde_json::to_writer(&mut table, &place).expect("memory takes everything");
            table.push(b'\n');
            begin += lines.len() as u64;
        }
        let (lengths, lines) = ((table.len(), begin), Lines::InMemory(packages));
        Self { format, url: url.into(), validator: None, max_age: None, of, lengths, table, lines }
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
                index.map(|index| index.written(file))
            }
        })
    }

    /// This index, which need not be requested again for so many seconds.
    fn fresh_for(self, max_age: Option<u32>) -> Self {
        Self { max_age, ..self }
    }

    /// Reads what `path` remembers of the index at `url`, up to the lines of its packages; `None` if there is nothing that can be read.
    fn read(path: &Path, format: u32, url: &str) -> Option<Self> {
        let file = fs::open(path).ok()?;
        let mut head = Vec::new();
        let mut reader = BufReader::new(&file);
        reader.read_until(b'\n', &mut head).ok()?;
        let known: Self = serde_json::from_slice(&head).ok()?;
        let (table_length, lines_length) = known.lengths;
        let begin = (head.len() + table_length) as u64;
        let is_whole = file.metadata().ok()?.len() == begin.checked_add(lines_length)?;
        if !is_whole || known.format != format || known.url != url {
            return None;
        }
        let mut table = vec![0; table_length];
        fs::read_at(&file, head.len() as u64, &mut table).ok()?;
        Some(Self { table, lines: Lines::InFile(file, path.to_owned(), begin), ..known })
    }

    /// This index, once it is in the file at `path`, whose folder is made if it is not there. If it cannot be written there, it stays in
    /// memory, and the next run reads the index again.
    fn written(self, path: &Path) -> Self {
        let write = || {
            let mut head = serde_json::to_vec(&self).expect("texts and numbers can be printed");
            head.push(b'\n');
            fs::create_folder(path.parent()?).ok()?;
            let before = head.chain(&*self.table);
            match &self.lines {
                Lines::InMemory(packages) => {
                    let lines = Pieces { left: packages.values(), piece: &[] };
                    fs::copy_atomic(path, &mut before.chain(lines))
                }
                Lines::InFile(file, _, begin) => {
                    let mut file = file.try_clone().ok()?;
                    file.seek(SeekFrom::Start(*begin)).ok()?;
                    fs::copy_atomic(path, &mut before.chain(file))
                }
            }
            .ok()
        };
        let (max_age, is_written) = (self.max_age, write().is_some());
        let read = || Self::read(path, self.format, &self.url);
        let known = is_written.then(read).flatten();
        known.map_or(self, |known| known.fresh_for(max_age))
    }

    /// The part of a package; `None` if it has no such package.
    ///
    /// # Errors
    ///
    /// When its lines cannot be read, or are not those that were written. Then the next run reads the index again.
    pub fn package(&self, name: &str) -> Result<Option<Part<'_>>, ProviderError> {
        self.place(name).map(|place| self.part(place)).transpose()
    }

    /// Where the lines of a package are.
    fn place(&self, name: &str) -> Option<Place> {
        let mut rest = &*self.table;
        // The line of the package is in `rest`, if there is one. Each round takes at least one line away.
        while !rest.is_empty() {
            let (before, behind) = rest.split_at(rest.len() / 2);
            let begin = memrchr(b'\n', before).map_or(0, |at| at + 1);
            let end = before.len() + memchr(b'\n', behind).map_or(behind.len(), |at| at + 1);
            let place: Place = serde_json::from_slice(rest.get(begin..end)?).ok()?;
            rest = match name.cmp(&place.0) {
                Ordering::Less => rest.get(..begin)?,
                Ordering::Greater => rest.get(end..)?,
                Ordering::Equal => return Some(place),
            };
        }
        None
    }

    /// All packages, by name.
    fn packages(&self) -> impl Iterator<Item = Result<(String, Part<'_>), ProviderError>> {
        let places = read_json_lines(&self.table).flatten();
        places.map(|place: Place| Ok((place.0.clone(), self.part(place)?)))
    }

    fn part(&self, Place(name, digest, begin, length): Place) -> Result<Part<'_>, ProviderError> {
        let (file, path, before) = match &self.lines {
            Lines::InMemory(packages) => {
                let lines = packages.get(&name).map(Vec::as_slice).unwrap_or_default();
                return Ok(Part { lines: lines.into(), digest });
            }
            Lines::InFile(file, path, before) => (file, path, before),
        };
        let is_inside = length as u64 <= self.lengths.1;
        let mut lines = vec![0; if is_inside { length } else { 0 }];
        fs::read_at(file, before.saturating_add(begin), &mut lines).at("read", path)?;
        if self::digest(&lines) == digest {
            return Ok(Part { lines: lines.into(), digest });
        }
        let hint = match fs::remove_file(path) {
            Ok(()) => "run the command again: mu has removed the file, and reads the index again",
            Err(_) => "remove the file, and run the command again",
        };
        let text =
            format!("`{}` is damaged, in which mu keeps what `{}` lists", path.display(), self.url);
        Err(ProviderError::new(ErrorKind::Io, text).hint(hint))
    }

    /// The answer to the question for the package at a location; `None` if there is none.
    ///
    /// # Errors
    ///
    /// As [`Self::package`].
    pub fn listing(
        &self,
        location: &Location,
        validator: Option<&str>,
    ) -> Result<Option<Listing>, ProviderError> {
        let max_age = self.max_age;
        if validator.is_some_and(|known| self.is_package_unchanged(&location.path, known)) {
            return Ok(Some(Listing::Unchanged { max_age, validator: None }));
        }
        Ok(self.package(&location.path)?.map(|Part { lines, digest }| {
            Listing::Found(Found::new(location, lines.into_owned(), Some(digest), max_age))
        }))
    }

    /// Whether the lines of a package have this digest. They are not read for that.
    fn is_package_unchanged(&self, name: &str, digest: &str) -> bool {
        self.place(name).is_some_and(|place| place.1 == digest)
    }

    /// Searches the packages, which `line` describes by their names and parts.
    ///
    /// # Errors
    ///
    /// As [`Self::package`].
    pub fn search(
        &self,
        query: &Query,
        line: impl Fn(&str, Part<'_>) -> Option<CatalogLine>,
    ) -> Result<Hits, ProviderError> {
        let lines = self
            .packages()
            .filter_map(|package| package.map(|(name, part)| line(&name, part)).transpose());
        let lines = json_lines(lines.collect::<Result<Vec<_>, _>>()?);
        Ok(query.search(&*lines).expect("it is in memory"))
    }
}

/// Reads pieces of memory, one behind the other.
struct Pieces<'memory, All> {
    left: All,
    /// What is left of the piece that is being read.
    piece: &'memory [u8],
}

impl<'memory, All: Iterator<Item = &'memory Vec<u8>>> Read for Pieces<'memory, All> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            let Some(next) = self.left.next() else { return Ok(0) };
            self.piece = next;
        }
        self.piece.read(buffer)
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
        index.is_some_and(|index| index.is_package_unchanged(&location.path, validator))
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
        let listing = index.as_ref().map(|index| index.listing(location, validator)).transpose()?;
        match listing.flatten() {
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
        let Some(part) = index.package(&location.path)? else { return Ok(None) };
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
        index.search(query, |name, part| self.line(query, name, part)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use mu_provider::Lead;

    use super::*;

    const URL: &str = "https://charts.example/index.yaml";

    /// An index of 1,000 packages of 20,000 bytes each, in `file`, as another run has left it.
    fn remember(file: &Path) {
        let package = |number: usize| {
            let line = format!("{{\"version\":\"{number}.0.0\"}}\n");
            (format!("p{number:03}"), line.repeat(20_000 / line.len()).into_bytes())
        };
        let index =
            Remembered::new(1, URL, "what is known".to_owned(), (0..1_000).map(package).collect());
        let validator = Some("v1".to_owned());
        let answer = IndexAnswer::Read { index: Some(index), validator, max_age: None };
        let index = Remembered::refreshed(file, 1, URL, |_| Ok(answer)).expect("can be written");
        let index = index.expect("is there");
        assert_eq!((&*index.of, index.packages().count()), ("what is known", 1_000));
    }

    /// What `file` remembers, which has not changed.
    fn unchanged(file: &Path) -> Option<Remembered<String>> {
        let answer = || Ok(IndexAnswer::Unchanged { max_age: Some(7) });
        Remembered::refreshed(file, 1, URL, |known| {
            let validator = known.and_then(|known| known.validator.as_deref());
            assert!(known.is_none() || validator == Some("v1"));
            answer()
        })
        .expect("nothing fails")
    }

    fn versions(index: &Remembered<String>, name: &str) -> Option<String> {
        let part = index.package(name).expect("can be read")?;
        part.releases().next().map(|release| release.version)
    }

    #[test]
    fn every_package_is_found_and_no_other() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("a/index");
        remember(&file);
        let index = unchanged(&file).expect("is remembered");
        assert_eq!(index.max_age, Some(7));
        for number in 0..1_000 {
            let version = versions(&index, &format!("p{number:03}"));
            assert_eq!(version, Some(format!("{number}.0.0")));
        }
        for name in ["", "a", "p", "p0", "p0000", "p500x", "p999\"", "q"] {
            assert_eq!(versions(&index, name), None, "{name}");
        }
        // Another format, and another place, are made anew.
        for (format, url) in [(2, URL), (1, "https://charts.example/other.yaml")] {
            assert!(Remembered::<String>::read(&file, format, url).is_none());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn of_a_large_index_only_what_is_asked_for_is_read() {
        /// How many bytes this thread has read from files.
        fn bytes_read() -> usize {
            let text = std::fs::read_to_string("/proc/thread-self/io").expect("Linux counts them");
            let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
            line.and_then(|count| count.parse().ok()).expect("is a number")
        }
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("index");
        remember(&file);
        let size = std::fs::metadata(&file).expect("is there").len();
        assert!(size > 19_000_000, "{size}");
        let before = bytes_read();
        let index = unchanged(&file).expect("is remembered");
        let place = Location::new(Lead::of_user(SafeUrl::parse(URL).expect("is a URL")), "p700");
        let digest = index.package("p700").expect("can be read").expect("is there").digest;
        let asked = bytes_read();
        // The table of a thousand packages, and the lines of one.
        assert!(asked - before < 200_000, "{} of {size} bytes were read", asked - before);
        let listing = index.listing(&place, Some(&digest)).expect("can be read");
        assert_eq!(listing, Some(Listing::Unchanged { max_age: Some(7), validator: None }));
        // Reading the counter itself counts, too.
        assert!(bytes_read() - asked < 1_000);
    }

    #[test]
    fn a_damaged_file_is_made_anew_and_never_believed() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("index");
        remember(&file);
        let whole = std::fs::read(&file).expect("is there");
        // Cut anywhere, or longer than it was.
        for length in [0, 1, 50, 5_000, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&file, &whole[..length]).expect("can be written");
            assert!(unchanged(&file).is_none(), "{length}");
        }
        std::fs::write(&file, [&whole[..], b"x"].concat()).expect("can be written");
        assert!(unchanged(&file).is_none());
        // Lines that are not those that were written are an error, once.
        let mut changed = whole.clone();
        let at = changed.len() - 3;
        changed[at] ^= 1;
        std::fs::write(&file, &changed).expect("can be written");
        let index = unchanged(&file).expect("nobody reads all of it");
        assert_eq!(versions(&index, "p998").as_deref(), Some("998.0.0"));
        let error = index.package("p999").expect_err("is not what was written");
        assert!(error.to_string().contains("is damaged") && !file.exists(), "{error}");
        assert!(unchanged(&file).is_none());
    }

    #[test]
    fn what_cannot_be_written_is_used_from_memory() {
        let folder = tempfile::tempdir().expect("there is room");
        // A folder is where the file would be.
        let packages = BTreeMap::from([("a".to_owned(), b"{\"version\":\"1.0.0\"}\n".to_vec())]);
        let index = Remembered::new(1, URL, String::new(), packages);
        let answer = IndexAnswer::Read { index: Some(index), validator: None, max_age: None };
        let index = Remembered::refreshed(folder.path(), 1, URL, |_| Ok(answer));
        let index = index.expect("is read").expect("is there");
        assert_eq!(versions(&index, "a").as_deref(), Some("1.0.0"));
        assert_eq!(versions(&index, "b"), None);
    }
}
