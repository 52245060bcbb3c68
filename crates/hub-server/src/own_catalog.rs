//! The catalog of a hub that is too large for one: a file of the server's own, in its state folder. A search reads all of it, and so
//! does a page that says who depends on a package.
//!
//! It follows the hub's log: lines of what has changed are appended, and the last line of a package is the one that counts. When they
//! are many, the file is written again without the others.
//!
//! ```text
//! #{"catalog":1,"hub":"s3://acme/hub"}
//! {"name":"acme/web","latest":"1.0.0"}⇥{"dependencies":["acme/lib#^1"]}
//! {"name":"acme/gone","latest":"1.0.0"}⇥{}
//! #{"generation":20000000,"log":"9f…","packages":2,"sha256":"3c…"}         all above is as of that generation
//! {"name":"acme/web","latest":"1.1.0"}⇥{}                                   and this has changed since
//! {"name":"acme/gone"}⇥-
//! #{"generation":20000002,"log":"41…","packages":1,"sha256":"d0…"}
//! ```
//!
//! In front of the tab is what the hub's catalog would say of a package, behind it what its newest version says of others. A mark (`#`)
//! has the place in the hub's log, and the hash of the lines since the mark before it: what is behind the last mark that is right was
//! torn, and is written over. A file of another hub is rebuilt, and so is one of a hub that counts its changes from the start. Nothing is lost if
//! somebody deletes it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use mu_hub::archive::hex;
use mu_hub::files::{Files, in_its_own_thread};
use mu_hub::lines::{Lines, PublishedLine};
use mu_hub::root::Root;
use mu_hub::{HubError, derived, log};
use mu_provider::catalog::CatalogLine;
use mu_provider::fs::{self, AtPath as _, FileError, Lock, Sharing};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// The version of the layout; a file with another one is rebuilt.
const LAYOUT: u32 = 1;

/// How long a request waits for changes. After that, it gets what was known before.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many changes are read before a mark says that they are there.
const CHANGES_AT_ONCE: u64 = 10_000;

/// Index files that are read at once.
const AT_ONCE: usize = 32;

/// How many packages have newer lines behind others, at least, before the file is written again.
const FEWEST_SUPERSEDED: usize = 1_000;

/// How many bytes of lines are written at once.
const PIECE: usize = 1 << 20;

/// What stands behind the tab where a package is not there any more.
const GONE: &[u8] = b"-";

/// What the newest version of a package says about others.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Brief {
    /// References, as they were written.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) dependencies: Box<[Box<str>]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) replaces: Box<[Box<str>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moved_to: Option<Box<str>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) requires: Box<[Box<str>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<Timestamp>,
}

impl Brief {
    /// What a line says about other packages.
    pub(crate) fn of(line: &PublishedLine) -> Self {
        Self {
            dependencies: line.references().map(Into::into).collect(),
            replaces: line.texts("replaces").map(Into::into).collect(),
            moved_to: line.text("movedTo").map(Into::into),
            requires: line.texts("requires").map(Into::into).collect(),
            published: line.text("published").and_then(|moment| moment.parse().ok()),
        }
    }
}

/// Takes an error that no request is answered with.
pub(crate) type ReportError = Box<dyn Fn(&HubError) + Send + Sync>;

/// The catalog that a server keeps of one hub.
pub(crate) struct OwnCatalog {
    /// Where its file is.
    folder: PathBuf,
    /// What users call the hub.
    hub: Arc<str>,
    /// Is told why the file cannot be kept.
    report: ReportError,
    known: RwLock<Option<KnownPackages>>,
    /// Held while the file is written. It has its place once it was needed.
    writing: tokio::sync::Mutex<Option<FilePlace>>,
    /// How many packages were read of a file that is being made.
    made: AtomicU64,
}

/// The place of the file, which no other process uses.
struct FilePlace {
    path: PathBuf,
    _lock: Lock,
}

/// What is in the file at a generation. Whoever reads it is not disturbed by what is appended meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct KnownPackages {
    file: Arc<File>,
    /// Up to where it counts.
    length: u64,
    /// Of packages with more than one line: where the last one is, and whether the package is there.
    newest: Arc<HashMap<Box<str>, (u64, bool)>>,
    mark: Mark,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Mark {
    generation: u64,
    /// The digest of the log file up to the line of that generation.
    log: String,
    packages: u64,
    sha256: String,
}

impl Mark {
    fn line(&self) -> String {
        format!("#{}\n", serde_json::to_string(self).expect("texts and numbers can be printed"))
    }
}

impl OwnCatalog {
    /// The catalog of the hub that users call `hub`, below `folder`, of which nothing was read yet.
    pub(crate) fn new(folder: PathBuf, hub: Arc<str>, report: ReportError) -> Self {
        let (known, writing, made) = Default::default();
        Self { folder, hub, report, known, writing, made }
    }

    /// What is known without waiting.
    pub(crate) fn known_packages(&self) -> Option<KnownPackages> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many packages were read so far, while nothing is known.
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// What is known, after a moment of waiting for the changes since the last time; `None` while the file is being made.
    pub(crate) async fn follow_log(
        self: &Arc<Self>,
        files: &Files,
        root: &Root,
    ) -> Option<KnownPackages> {
        if self.known_packages().is_none() && self.writing.try_lock().is_err() {
            // Another request has begun to make it.
            let _ = tokio::time::timeout(PATIENCE, self.writing.lock()).await;
        } else if !self.is_current(root) {
            let (own, files, root) = (Arc::clone(self), files.clone(), root.clone());
            // Goes on even if the request stops waiting.
            let task = tokio::spawn(async move {
                if let Err(error) = own.update(&files, &root).await {
                    (own.report)(&error);
                }
            });
            let _ = tokio::time::timeout(PATIENCE, task).await;
        }
        self.known_packages()
    }

    fn is_current(&self, root: &Root) -> bool {
        let generation = self.known_packages().map(|known| known.mark.generation);
        generation.is_some_and(|known| known == root.generation())
    }

    fn put(&self, contents: KnownPackages) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(contents);
    }

    async fn update(&self, files: &Files, root: &Root) -> Result<(), HubError> {
        let mut writing = self.writing.lock().await;
        if self.is_current(root) {
            return Ok(());
        }
        let mut known = self.known_packages();
        if writing.is_none() {
            let (folder, hub) = (self.folder.clone(), Arc::clone(&self.hub));
            let (place, left) = in_its_own_thread(move || FilePlace::take(&folder, &hub)).await??;
            *writing = Some(place);
            known = left;
        }
        let path = writing.as_ref().map(|place| place.path.clone()).unwrap_or_default();
        let mut contents = match known {
            Some(known) if known.is_of(files, root).await? => known,
            _ => self.make(files, root, &path).await?,
        };
        while contents.mark.generation < root.generation() {
            let next = root.generation().min(contents.mark.generation + CHANGES_AT_ONCE);
            contents = match log::names(files, root, contents.mark.generation, next).await? {
                Some(changed) => contents.changed(files, root, changed, next, &path).await?,
                None => self.make(files, root, &path).await?,
            };
            if contents.is_worth_rewriting() {
                let (hub, path) = (Arc::clone(&self.hub), path.clone());
                contents = in_its_own_thread(move || contents.rewritten(&hub, &path)).await??;
            }
            self.put(contents.clone());
        }
        self.put(contents);
        Ok(())
    }

    /// Makes the file by the index files of all packages.
    async fn make(
        &self,
        files: &Files,
        root: &Root,
        path: &Path,
    ) -> Result<KnownPackages, HubError> {
        let (hub, begun) = (Arc::clone(&self.hub), path.to_owned());
        let mut new = in_its_own_thread(move || NewFile::begin(&hub, &begun)).await??;
        // The generation was read before, so all that is read now has at least its changes.
        let generation = root.generation();
        let log = log::digest_up_to(files, root, generation).await?.unwrap_or_default();
        self.made.store(0, Ordering::Relaxed);
        let mut reading = derived::package_names(files, root)?
            .map_ok(|name| async move { read_package(files, root, name).await })
            .try_buffered(AT_ONCE);
        while let Some(read) = reading.try_next().await? {
            let Some(Package { line: Some(line), .. }) = read else { continue };
            self.made.fetch_add(1, Ordering::Relaxed);
            new.push(line.as_bytes());
            if new.lines.len() >= PIECE {
                new = in_its_own_thread(move || new.written()).await??;
            }
        }
        let path = path.to_owned();
        Ok(in_its_own_thread(move || new.end(&path, generation, log)).await??)
    }
}

/// A package as the file has it: its line with the line feed, or none if it is not there any more.
struct Package {
    name: String,
    line: Option<String>,
}

/// Reads a package; `None` if its index file is broken, which must not stop the others.
async fn read_package(
    files: &Files,
    root: &Root,
    name: String,
) -> Result<Option<Package>, HubError> {
    let lines = match derived::index(files, root, &name).await {
        Err(HubError::Broken { .. }) => return Ok(None),
        lines => lines?,
    };
    Ok(Some(Package { line: line_of(&lines), name }))
}

/// The line of a package; `None` if it has no versions.
fn line_of(lines: &Lines) -> Option<String> {
    let brief = Brief::of(lines.latest()?);
    let brief = serde_json::to_string(&brief).expect("texts can be printed");
    // JSON has no tab inside of a line.
    Some(format!("{}\t{brief}\n", derived::catalog_line_text(lines)?))
}

/// The first line of the file.
fn head(hub: &str) -> String {
    format!("#{}\n", json!({ "catalog": LAYOUT, "hub": hub }))
}

impl FilePlace {
    /// Takes a place that no other process uses, and reads what an earlier one left there.
    fn take(folder: &Path, hub: &str) -> Result<(Self, Option<KnownPackages>), FileError> {
        fs::create_folder(folder)?;
        let name = hex(&Sha256::digest(hub)[..8]);
        let mut number = 1;
        let (lock, path) = loop {
            let path = folder.join(format!("{name}-{number}.jsonl"));
            let lock = Lock::try_acquire(&path.with_extension("lock"), Sharing::Exclusive)?;
            match lock {
                Some(lock) => break (lock, path),
                None => number += 1,
            }
        };
        let left = match fs::open_with(&path, OpenOptions::new().read(true).write(true)) {
            Ok(file) => KnownPackages::read(file, hub).at("read", &path)?,
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        Ok((Self { path, _lock: lock }, left))
    }
}

impl KnownPackages {
    /// How many packages there are.
    pub(crate) fn package_count(&self) -> u64 {
        self.mark.packages
    }

    /// Reads a file that an earlier run left, as far as it is right.
    fn read(file: File, hub: &str) -> io::Result<Option<Self>> {
        let size = file.metadata()?.len();
        let (mut hash, mut last) = (Sha256::new(), None);
        let (mut newest, mut since) = (HashMap::new(), Vec::new());
        let head = head(hub);
        each_line(&file, size, |at, line| {
            if at == 0 {
                return line == head.as_bytes();
            }
            if let Some(text) = line.strip_prefix(b"#") {
                let mark = serde_json::from_slice::<Mark>(text).ok();
                let sha256 = hex(&hash.finalize_reset());
                let mark = mark.filter(|mark| mark.sha256 == sha256 && line.ends_with(b"\n"));
                let Some(mark) = mark else { return false };
                // The lines in front of the first mark are of one package each.
                if last.is_some() {
                    newest.extend(since.drain(..));
                }
                last = Some((at + line.len() as u64, mark));
                return true;
            }
            hash.update(line);
            if last.is_some() {
                let (catalog, brief) = parts(line);
                let Some(name) = name_in(catalog) else { return false };
                since.push((name.into(), (at, brief != GONE)));
            }
            true
        })?;
        let Some((length, mark)) = last else { return Ok(None) };
        file.set_len(length)?;
        Ok(Some(Self { file: Arc::new(file), length, newest: Arc::new(newest), mark }))
    }

    /// Whether the hub has counted on from where this is.
    async fn is_of(&self, files: &Files, root: &Root) -> Result<bool, HubError> {
        let Mark { generation, log, .. } = &self.mark;
        let counts = root.counts() && *generation <= root.generation();
        Ok(counts && log::digest_up_to(files, root, *generation).await?.unwrap_or_default() == *log)
    }

    /// Hands over what the hub's catalog would say of each package, and its brief, as JSON.
    pub(crate) fn each_package(&self, mut take: impl FnMut(&[u8], &[u8])) -> io::Result<()> {
        each_line(&self.file, self.length, |at, line| {
            let (catalog, brief) = parts(line);
            let is_newest = || {
                let name = name_in(catalog)?;
                Some(self.newest.get(&*name)?.0 == at)
            };
            let is_old = !self.newest.is_empty() && is_newest() == Some(false);
            if !line.starts_with(b"#") && brief != GONE && !is_old {
                take(catalog, brief);
            }
            true
        })
    }

    /// Appends what the index says now of some packages, as of a generation.
    async fn changed(
        self,
        files: &Files,
        root: &Root,
        names: Vec<String>,
        generation: u64,
        path: &Path,
    ) -> Result<Self, HubError> {
        let reading = futures_util::stream::iter(names)
            .map(|name| async move { read_package(files, root, name).await })
            .buffered(AT_ONCE);
        let read: Vec<Package> =
            reading.try_filter_map(|read| std::future::ready(Ok(read))).try_collect().await?;
        let log = log::digest_up_to(files, root, generation).await?.unwrap_or_default();
        let path = path.to_owned();
        let append = move || self.appended(read, generation, log).at("write", &path);
        Ok(in_its_own_thread(append).await??)
    }

    fn appended(mut self, read: Vec<Package>, generation: u64, log: String) -> io::Result<Self> {
        // Packages that are there as they were when the file was made.
        let is_first = |package: &&Package| !self.newest.contains_key(&*package.name);
        let asked: HashSet<&str> =
            read.iter().filter(is_first).map(|package| package.name.as_str()).collect();
        let mut known = HashSet::new();
        if !asked.is_empty() {
            self.each_package(|catalog, _| {
                let name = name_in(catalog);
                known.extend(name.and_then(|name| asked.get(&*name).copied()));
            })?;
        }
        let newest = Arc::make_mut(&mut self.newest);
        let mut text = String::new();
        for Package { name, line } in &read {
            let before = newest.get(name.as_str()).map(|(_, is_there)| *is_there);
            let was_there = before.unwrap_or(known.contains(name.as_str()));
            let at = self.length + text.len() as u64;
            match line {
                Some(line) => text.push_str(line),
                None if !was_there => continue,
                None => text.push_str(&format!("{}\t-\n", json!({ "name": name }))),
            }
            newest.insert(name.as_str().into(), (at, line.is_some()));
            self.mark.packages += u64::from(line.is_some());
            self.mark.packages -= u64::from(was_there);
        }
        let sha256 = hex(&Sha256::digest(&text));
        self.mark = Mark { generation, log, sha256, ..self.mark };
        text.push_str(&self.mark.line());
        fs::write_at(&self.file, self.length, text.as_bytes())?;
        self.length += text.len() as u64;
        Ok(self)
    }

    /// Whether a fourth of the packages have more than one line.
    fn is_worth_rewriting(&self) -> bool {
        let superseded = self.newest.len();
        superseded >= FEWEST_SUPERSEDED && superseded as u64 * 4 >= self.mark.packages
    }

    /// Writes the file again, with one line of each package.
    fn rewritten(&self, hub: &str, path: &Path) -> Result<Self, FileError> {
        let mut new = NewFile::begin(hub, path)?;
        let mut failed = Ok(());
        self.each_package(|catalog, brief| {
            new.push(&[catalog, b"\t", brief, b"\n"].concat());
            if new.lines.len() >= PIECE && failed.is_ok() {
                failed = new.write();
            }
        })
        .at("read", path)?;
        failed.at("write", path)?;
        new.end(path, self.mark.generation, self.mark.log.clone())
    }
}

/// What the hub's catalog would say of a package, and its brief.
fn parts(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let tab = line.iter().position(|byte| *byte == b'\t').unwrap_or(line.len());
    let (catalog, brief) = line.split_at(tab);
    (catalog, brief.strip_prefix(b"\t").unwrap_or_default())
}

/// Hands over the lines in the first `length` bytes of a file, with their places, until `take` wants no more.
fn each_line(file: &File, length: u64, mut take: impl FnMut(u64, &[u8]) -> bool) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(256 << 10, FilePart { file, at: 0, end: length });
    let (mut at, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let count = reader.read_until(b'\n', &mut line)?;
        if count == 0 || !take(at, &line) {
            return Ok(());
        }
        at += count as u64;
    }
}

/// A part of a file that others read, too.
struct FilePart<'file> {
    file: &'file File,
    at: u64,
    end: u64,
}

impl Read for FilePart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let length = left.min(buffer.len());
        fs::read_at(self.file, self.at, &mut buffer[..length])?;
        self.at += length as u64;
        Ok(length)
    }
}

/// A file on its way: nobody reads it before it is whole.
struct NewFile {
    staged: PathBuf,
    file: File,
    /// How much of it is written.
    length: u64,
    hash: Sha256,
    packages: u64,
    /// What is not written yet.
    lines: Vec<u8>,
}

impl NewFile {
    /// Begins one that will be at `path`.
    fn begin(hub: &str, path: &Path) -> Result<Self, FileError> {
        let staged = path.with_extension("new");
        let mut options = OpenOptions::new();
        let file =
            fs::open_with(&staged, options.read(true).write(true).create(true).truncate(true))?;
        let (hash, lines) = (Sha256::new(), head(hub).into_bytes());
        Ok(Self { staged, file, length: 0, hash, packages: 0, lines })
    }

    /// Adds a line.
    fn push(&mut self, line: &[u8]) {
        self.hash.update(line);
        self.lines.extend_from_slice(line);
        self.packages += 1;
    }

    fn write(&mut self) -> io::Result<()> {
        fs::write_at(&self.file, self.length, &self.lines)?;
        self.length += self.lines.len() as u64;
        self.lines.clear();
        Ok(())
    }

    fn written(mut self) -> Result<Self, FileError> {
        self.write().at("write", &self.staged)?;
        Ok(self)
    }

    /// Puts it in its place.
    fn end(
        mut self,
        path: &Path,
        generation: u64,
        log: String,
    ) -> Result<KnownPackages, FileError> {
        let sha256 = hex(&std::mem::take(&mut self.hash).finalize());
        let mark = Mark { generation, log, packages: self.packages, sha256 };
        self.lines.extend_from_slice(mark.line().as_bytes());
        self.write().at("write", &self.staged)?;
        fs::rename(&self.staged, path)?;
        let newest = Arc::default();
        Ok(KnownPackages { file: Arc::new(self.file), length: self.length, newest, mark })
    }
}

/// The name in a line of a catalog. Hubs write it at the beginning, so most lines need not be parsed.
pub(crate) fn name_in(line: &[u8]) -> Option<Cow<'_, str>> {
    let plain = || {
        let rest = line.strip_prefix(b"{\"name\":\"")?;
        let name = &rest[..rest.iter().position(|byte| *byte == b'"')?];
        std::str::from_utf8(name).ok().filter(|name| !name.contains('\\'))
    };
    match plain() {
        Some(name) => Some(name.into()),
        None => Some(serde_json::from_slice::<CatalogLine>(line).ok()?.name.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs as files;

    use mu_hub::Place;
    use tempfile::TempDir;
    use tokio::runtime::Runtime;

    use super::*;

    /// A hub that is too large for a catalog, as it says, and a server of it.
    struct Case {
        hub: TempDir,
        state: TempDir,
        runtime: Runtime,
        /// The lines of its log.
        log: Vec<String>,
    }

    impl Case {
        /// A hub with so many packages, `n0` and so on, that are all described as old.
        fn new(packages: usize) -> Self {
            let folder = || tempfile::tempdir().expect("there is room");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("starts");
            let mut case = Self { hub: folder(), state: folder(), runtime, log: Vec::new() };
            let names: Vec<String> = (0..packages).map(|number| format!("n{number}")).collect();
            names.iter().for_each(|name| case.edit(name, "old"));
            case.note(names);
            case
        }

        fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            let path = self.hub.path().join(path);
            files::create_dir_all(path.parent().expect("is in a folder")).expect("is ours");
            files::write(path, text).expect("is ours");
        }

        /// Changes an index file by hand.
        fn edit(&self, name: &str, description: &str) {
            let line = json!({ "name": name, "version": "1.0.0", "description": description });
            self.write(&format!("index/{name}.jsonl"), format!("{line}\n"));
        }

        /// Adds changes to the log, and counts them.
        fn note(&mut self, names: impl IntoIterator<Item = String>) {
            self.log.extend(names);
            for (number, lines) in self.log.chunks(1_000).enumerate() {
                self.write(&format!("log/{number:06}.txt"), lines.join("\n") + "\n");
            }
            let file = json!({
                "hub": 1, "log": "log/", "generation": self.log.len(),
                "catalog": { "generation": 1, "tooLarge": true },
            });
            self.write("hub.json", file.to_string());
        }

        fn change(&mut self, name: &str, description: &str) {
            self.edit(name, description);
            self.note([name.to_owned()]);
        }

        fn server(&self) -> Arc<OwnCatalog> {
            let hub = self.hub.path().to_string_lossy().into();
            let report = Box::new(|error: &HubError| panic!("{error}"));
            Arc::new(OwnCatalog::new(self.state.path().to_owned(), hub, report))
        }

        /// What the server knows: name → description.
        fn known(&self, server: &Arc<OwnCatalog>) -> BTreeMap<String, String> {
            let contents = self.runtime.block_on(async {
                let files = Files::open(&Place::folder(self.hub.path()), false).expect("is there");
                let root = Root::read(&files).await.expect("is there");
                server.follow_log(&files, &root).await.expect("is known")
            });
            let mut known = BTreeMap::new();
            let take = |line: &[u8], _: &[u8]| {
                let line: CatalogLine = serde_json::from_slice(line).expect("is a line");
                known.insert(line.name, line.description.unwrap_or_default());
            };
            contents.each_package(take).expect("can be read");
            assert_eq!(contents.package_count(), known.len() as u64);
            known
        }

        fn expected(said: &[(&str, &str)]) -> BTreeMap<String, String> {
            said.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        }

        /// The file of the first server.
        fn file(&self) -> PathBuf {
            let entries = files::read_dir(self.state.path()).expect("is there");
            let mut paths = entries.map(|entry| entry.expect("is there").path());
            let is_it = |path: &PathBuf| path.to_string_lossy().ends_with("-1.jsonl");
            paths.find(is_it).expect("was made")
        }
    }

    #[test]
    fn what_has_changed_is_appended_and_nothing_else_is_read_again() {
        let mut case = Case::new(4);
        let server = case.server();
        let first = [("n0", "old"), ("n1", "old"), ("n2", "old"), ("n3", "old")];
        assert_eq!(case.known(&server), Case::expected(&first));
        // The log says nothing of this one.
        case.edit("n0", "edited");
        case.change("n1", "new");
        case.change("n4", "added");
        files::remove_file(case.hub.path().join("index/n2.jsonl")).expect("is there");
        case.note(["n2".to_owned(), "n9".to_owned(), "n3 1.0.0".to_owned()]);
        let now = [("n0", "old"), ("n1", "new"), ("n3", "old"), ("n4", "added")];
        assert_eq!(case.known(&server), Case::expected(&now));
        case.change("n1", "newer");
        case.change("n2", "back");
        let now = [("n0", "old"), ("n1", "newer"), ("n2", "back"), ("n3", "old"), ("n4", "added")];
        assert_eq!(case.known(&server), Case::expected(&now));
        // A restart changes nothing of that, and reads what has come since.
        drop(server);
        let size = case.file().metadata().expect("is there").len();
        let server = case.server();
        assert_eq!(case.known(&server), Case::expected(&now));
        assert_eq!(case.file().metadata().expect("is there").len(), size);
        case.change("n3", "new");
        assert_eq!(case.known(&server)["n3"], "new");
    }

    #[test]
    fn what_was_torn_is_written_again() {
        let mut case = Case::new(3);
        let server = case.server();
        case.known(&server);
        let base = files::read(case.file()).expect("is there").len();
        case.change("n1", "new");
        case.known(&server);
        case.change("n2", "new");
        let now = case.known(&server);
        drop(server);
        let whole = files::read(case.file()).expect("is there");
        let cut = (0..whole.len()).step_by(5).map(|length| whole[..length].to_vec());
        let flipped = (base..whole.len()).step_by(5).map(|at| {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            bytes
        });
        let longer = [whole.clone(), b"{\"name\":\"n0\"}\t{}\n#{\"gen".to_vec()].concat();
        for bytes in cut.chain(flipped).chain([longer]) {
            files::write(case.file(), &bytes).expect("is ours");
            assert_eq!(case.known(&case.server()), now, "{}", String::from_utf8_lossy(&bytes));
        }
        assert_eq!(files::read(case.file()).expect("is there").len(), whole.len());
    }

    #[test]
    fn a_file_that_does_not_fit_the_hub_is_rebuilt() {
        let mut case = Case::new(3);
        let server = case.server();
        case.known(&server);
        // As after a backup was restored: the same numbers, for other changes.
        case.edit("n0", "restored");
        case.log[2] = "n7".to_owned();
        case.note(["n8".to_owned()]);
        assert_eq!(case.known(&server)["n0"], "restored");
        // As after a repair: the log has a gap.
        case.edit("n0", "repaired");
        case.log.truncate(4);
        let file = json!({
            "hub": 1, "log": "log/", "generation": 1_001,
            "catalog": { "generation": 1, "tooLarge": true },
        });
        case.write("log/000001.txt", "-\n");
        case.write("hub.json", file.to_string());
        assert_eq!(case.known(&server)["n0"], "repaired");
        drop(server);
        // As of another hub.
        case.edit("n0", "other");
        let text = files::read_to_string(case.file()).expect("is there");
        let (head, rest) = text.split_once('\n').expect("has lines");
        files::write(case.file(), format!("{}\n{rest}", head.replace("hub", "HUB")))
            .expect("is ours");
        assert_eq!(case.known(&case.server())["n0"], "other");
    }

    #[test]
    fn two_servers_have_a_file_each() {
        let mut case = Case::new(2);
        let servers = [case.server(), case.server()];
        for (number, server) in servers.iter().enumerate() {
            assert_eq!(case.known(server).len(), 2);
            let made = files::read_dir(case.state.path()).expect("is there").flatten();
            let made = made.filter(|file| file.path().extension() == Some("jsonl".as_ref()));
            assert_eq!(made.count(), number + 1);
        }
        case.change("n1", "new");
        servers.iter().for_each(|server| assert_eq!(case.known(server)["n1"], "new"));
    }

    #[test]
    fn a_file_with_many_superseded_lines_is_written_again() {
        let mut case = Case::new(1_200);
        let server = case.server();
        case.known(&server);
        let size = |case: &Case| case.file().metadata().expect("is there").len();
        let first = size(&case);
        let names: Vec<String> = (0..FEWEST_SUPERSEDED).map(|n| format!("n{n}")).collect();
        for round in 0..3 {
            names.iter().for_each(|name| case.edit(name, &round.to_string()));
            case.note(names.clone());
            let known = case.known(&server);
            assert_eq!(
                (known.len(), &*known["n7"], &*known["n1100"]),
                (1_200, &*round.to_string(), "old")
            );
        }
        assert!(size(&case) <= first, "{} bytes, {first} at first", size(&case));
        assert!(server.known_packages().is_some_and(|known| known.newest.is_empty()));
    }

    #[test]
    fn the_name_of_a_line_is_found_wherever_it_stands() {
        for (line, expected) in [
            ("{\"name\":\"a/b\",\"latest\":\"1\"}", Some("a/b")),
            ("{\"name\":\"a\\/b\",\"latest\":\"1\"}", Some("a/b")),
            ("{ \"latest\": \"1\", \"name\": \"a\"}", Some("a")),
            ("{\"name\":\"a", None),
            ("", None),
        ] {
            assert_eq!(name_in(line.as_bytes()).as_deref(), expected, "{line}");
        }
    }
}
