//! The file of a server's own catalog: its layout, and how it is read, appended to and written again. `mod.rs` decides when.
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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mu_hub::archive::hex;
use mu_hub::files::Files;
use mu_hub::root::Root;
use mu_hub::{HubError, log};
use mu_provider::catalog::CatalogLine;
use mu_provider::fs::{self, AtPath as _, FileError, Lock, Sharing};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// The version of the layout; a file with another one is rebuilt.
const LAYOUT: u32 = 1;

/// How many packages have newer lines behind others, at least, before the file is written again.
pub(super) const FEWEST_SUPERSEDED: usize = 1_000;

/// How many bytes of lines are written at once.
const PIECE: usize = 1 << 20;

/// What stands behind the tab where a package is not there any more.
const GONE: &[u8] = b"-";

/// The place of the file, which no other process uses.
pub(super) struct FilePlace {
    pub(super) path: Arc<Path>,
    _lock: Lock,
}

/// What is in the file at a generation. Whoever reads it is not disturbed by what is appended meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct KnownPackages {
    file: Arc<File>,
    /// Up to where it counts.
    length: u64,
    /// Of packages with more than one line: where the last one is, and whether the package is there.
    pub(super) newest: Arc<HashMap<Box<str>, (u64, bool)>>,
    pub(super) mark: Mark,
    path: Arc<Path>,
    /// Whether somebody could not read it to its end.
    is_damaged: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) generation: u64,
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

/// A package as the file has it: its line with the line feed, or none if it is not there any more.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) line: Option<String>,
}

/// The first line of the file.
fn head(hub: &str) -> String {
    format!("#{}\n", json!({ "catalog": LAYOUT, "hub": hub }))
}

impl FilePlace {
    /// Takes a place that no other process uses.
    pub(super) fn lock_place(folder: &Path, hub: &str) -> Result<Self, FileError> {
        fs::create_folder(folder)?;
        let name = hex(&Sha256::digest(hub)[..8]);
        let mut number = 1;
        loop {
            let path = folder.join(format!("{name}-{number}.jsonl"));
            let lock = Lock::try_acquire(&path.with_extension("lock"), Sharing::Exclusive)?;
            match lock {
                Some(lock) => return Ok(Self { path: path.into(), _lock: lock }),
                None => number += 1,
            }
        }
    }
}

impl KnownPackages {
    /// Whether somebody could not read it to its end.
    pub(super) fn has_damage(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// How many packages there are.
    pub(crate) fn package_count(&self) -> u64 {
        self.mark.packages
    }

    /// Reads the file that an earlier run left at `path`, or that this one could not read any more, as far as it is right.
    pub(super) fn read_left_file(path: Arc<Path>, hub: &str) -> Result<Option<Self>, FileError> {
        match fs::open_with(&path, OpenOptions::new().read(true).write(true)) {
            Ok(file) => Self::read_file(file, &path, hub).at("read", &path),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_file(file: File, path: &Arc<Path>, hub: &str) -> io::Result<Option<Self>> {
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
        Ok(Some(Self { newest: Arc::new(newest), ..Self::new(file, length, mark, path) }))
    }

    /// What is in a file with one line of each package.
    fn new(file: File, length: u64, mark: Mark, path: &Arc<Path>) -> Self {
        let (newest, is_damaged) = Default::default();
        Self { file: Arc::new(file), length, newest, mark, path: Arc::clone(path), is_damaged }
    }

    /// Whether the hub has counted on from where this is.
    pub(super) async fn fits_log(&self, files: &Files, root: &Root) -> Result<bool, HubError> {
        let Mark { generation, log, .. } = &self.mark;
        let counts = root.counts() && *generation <= root.generation();
        Ok(counts && log::digest_up_to(files, root, *generation).await?.unwrap_or_default() == *log)
    }

    /// Hands over what the hub's catalog would say of each package, and its brief, as JSON.
    ///
    /// # Errors
    ///
    /// When the file cannot be read to its end, or is not as it was written.
    pub(crate) fn each_package(&self, mut take: impl FnMut(&[u8], &[u8])) -> Result<(), FileError> {
        let mut is_whole = true;
        let read = each_line(&self.file, self.length, |at, line| {
            let (catalog, brief) = parts(line);
            is_whole = line.starts_with(b"#") || (line.starts_with(b"{") && !brief.is_empty());
            let is_newest = || {
                let name = name_in(catalog)?;
                Some(self.newest.get(&*name)?.0 == at)
            };
            let is_old = !self.newest.is_empty() && is_newest() == Some(false);
            if is_whole && !line.starts_with(b"#") && brief != GONE && !is_old {
                take(catalog, brief);
            }
            is_whole
        });
        match read {
            Ok(()) if is_whole => Ok(()),
            Ok(()) => {
                self.give_up_reading(io::Error::other("it has a line that is none of a package"))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.give_up_reading(io::Error::other("it is shorter than it was written"))
            }
            Err(error) => self.give_up_reading(error),
        }
    }

    /// The error for a file that is not as it was written; what is known of it is not used again.
    pub(crate) fn give_up_reading<T>(&self, reason: io::Error) -> Result<T, FileError> {
        self.is_damaged.store(true, Ordering::Relaxed);
        Err(reason).at("read", &self.path)
    }

    /// Appends packages as they are at a generation.
    pub(super) fn append_packages(
        mut self,
        read: Vec<Package>,
        generation: u64,
        log: String,
    ) -> Result<Self, FileError> {
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
        fs::write_at(&self.file, self.length, text.as_bytes()).at("write", &self.path)?;
        self.length += text.len() as u64;
        Ok(self)
    }

    /// Whether a fourth of the packages have more than one line.
    pub(super) fn is_worth_rewriting(&self) -> bool {
        let superseded = self.newest.len();
        superseded >= FEWEST_SUPERSEDED && superseded as u64 * 4 >= self.mark.packages
    }

    /// Writes the file again, with one line of each package.
    pub(super) fn rewrite_file(&self, hub: &str) -> Result<Self, FileError> {
        let mut new = NewFile::begin_file(hub, Arc::clone(&self.path))?;
        let mut failed = Ok(());
        self.each_package(|catalog, brief| {
            new.push_package(&[catalog, b"\t", brief, b"\n"].concat());
            if new.has_a_piece() && failed.is_ok() {
                failed = new.write();
            }
        })?;
        failed.at("write", &self.path)?;
        new.end_file(self.mark.generation, self.mark.log.clone())
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
pub(super) struct NewFile {
    path: Arc<Path>,
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
    pub(super) fn begin_file(hub: &str, path: Arc<Path>) -> Result<Self, FileError> {
        let staged = path.with_extension("new");
        let mut options = OpenOptions::new();
        let file =
            fs::open_with(&staged, options.read(true).write(true).create(true).truncate(true))?;
        let (hash, lines) = (Sha256::new(), head(hub).into_bytes());
        Ok(Self { path, staged, file, length: 0, hash, packages: 0, lines })
    }

    /// Adds a line.
    pub(super) fn push_package(&mut self, line: &[u8]) {
        self.hash.update(line);
        self.lines.extend_from_slice(line);
        self.packages += 1;
    }

    /// Whether enough is not written yet.
    pub(super) fn has_a_piece(&self) -> bool {
        self.lines.len() >= PIECE
    }

    fn write(&mut self) -> io::Result<()> {
        fs::write_at(&self.file, self.length, &self.lines)?;
        self.length += self.lines.len() as u64;
        self.lines.clear();
        Ok(())
    }

    pub(super) fn write_piece(mut self) -> Result<Self, FileError> {
        self.write().at("write", &self.staged)?;
        Ok(self)
    }

    /// Puts it in its place.
    pub(super) fn end_file(
        mut self,
        generation: u64,
        log: String,
    ) -> Result<KnownPackages, FileError> {
        let sha256 = hex(&std::mem::take(&mut self.hash).finalize());
        let mark = Mark { generation, log, packages: self.packages, sha256 };
        self.lines.extend_from_slice(mark.line().as_bytes());
        self.write().at("write", &self.staged)?;
        fs::rename(&self.staged, &self.path)?;
        Ok(KnownPackages::new(self.file, self.length, mark, &self.path))
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
