//! One bare repository in the cache for each remote, with what was fetched from it.
//!
//! It guarantees that a commit that is there has all its files. Packs are written to a temporary place and
//! then moved, so this holds after a kill at any moment. Reading needs no lock; writing needs
//! [`Database::lock`], which other processes respect. Git itself can read this repository, but mu never
//! configures it, checks it out, or pushes to it.
//!
//! [`ReadObjects`] has the objects that the files of a package are made of, in one pack: what a machine without a network makes the
//! package of again. Which these are is found out by reading the package, so a pack has no more than that, submodules included.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashSet};
use std::fs::DirEntry;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::{ErrorCode, Indexer, ObjectType, Odb, Oid};
use mu_provider::fs::{self, Lock, Sharing};
use mu_provider::threads::{into_inner, lock};
use mu_provider::{ErrorKind, LoggedCommit, MOST_LOGGED, Progress, ProviderError};
use sha1::{Digest as _, Sha1};

use crate::listing;
use crate::pack::PackScan;
use crate::ref_name;
use crate::transport::ReceiveError;
use crate::wire::{Advertisement, Boundary};

/// Why an object could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    /// It is not there.
    #[error("the object {0} is not in the database")]
    Missing(Oid),
    /// It is there, but its content does not match its name.
    #[error("the object {0} is damaged")]
    Damaged(Oid, #[source] git2::Error),
    /// It has another kind than expected.
    #[error("the object {0} is not a {1}")]
    Kind(Oid, ObjectType),
    /// It is larger than is accepted.
    #[error("the object {0} has {1} bytes, over the limit of {2}")]
    TooLarge(Oid, u64, u64),
}

/// Limits on what a remote may send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Bytes of one pack.
    pub(crate) pack: u64,
    /// Bytes of one file.
    pub(crate) file: u64,
    /// How long building the objects of a pack may take, in addition to a second for every [`BUILT`] bytes.
    pub(crate) building: Duration,
}

/// How many pieces of a pack may wait to be looked through.
const AHEAD: usize = 8;

/// Bytes of a pack whose objects the slowest machine builds in a second. Usual machines are ten times as fast
/// or more.
const BUILT: u64 = 256 << 10;

/// The largest size in bytes of an object that is not a file. A folder with as many entries as a package may
/// have is not larger.
const LARGEST_FOLDER: u64 = 64 << 20;

/// The most commits that are looked at to list those between two.
const MOST_WALKED: usize = 20_000;

/// The bare repository of one remote.
pub(crate) struct Database {
    folder: PathBuf,
    bounds: Bounds,
    /// `None` until the folder is there and somebody reads.
    objects: RwLock<Option<Odb<'static>>>,
    /// Notes what is read.
    read: Option<Arc<ReadObjects>>,
}

mu_provider::debug_fields!(Database { folder });

impl Database {
    /// The database in `folder`, which need not be there yet.
    pub(crate) fn new(folder: PathBuf, bounds: Bounds) -> Self {
        Self { folder, bounds, objects: RwLock::new(None), read: None }
    }

    /// This database, which notes in `read` what is read of it, if somebody wants to know.
    pub(crate) fn with_read_objects(self, read: Option<Arc<ReadObjects>>) -> Self {
        Self { read, ..self }
    }

    /// Whether anything was ever fetched.
    pub(crate) fn has_fetched(&self) -> bool {
        self.packs().is_dir()
    }

    /// Whether a commit is there.
    pub(crate) fn has_commit(&self, commit: Oid) -> Result<bool, ObjectError> {
        self.with_objects(|objects| match objects.map(|objects| objects.read_header(commit)) {
            None => Ok(false),
            Some(Ok((_, kind))) => Ok(kind == ObjectType::Commit),
            Some(Err(error)) if error.code() == ErrorCode::NotFound => Ok(false),
            Some(Err(error)) => Err(ObjectError::Damaged(commit, error)),
        })
    }

    /// Whether a commit was fetched before but cannot be read, because something here is damaged.
    pub(crate) fn lost(&self, commit: Oid) -> bool {
        self.oids(REFS).contains(&commit) && !matches!(self.has_commit(commit), Ok(true))
    }

    /// Reads an object, and compares its content with its name.
    pub(crate) fn read<T>(
        &self,
        oid: Oid,
        kind: ObjectType,
        with: &mut dyn FnMut(&[u8]) -> T,
    ) -> Result<T, ObjectError> {
        self.with_objects(|objects| {
            let objects = objects.ok_or(ObjectError::Missing(oid))?;
            let failed = |error: git2::Error| match error.code() {
                ErrorCode::NotFound => ObjectError::Missing(oid),
                _ => ObjectError::Damaged(oid, error),
            };
            let (size, found) = objects.read_header(oid).map_err(failed)?;
            if found != kind {
                return Err(ObjectError::Kind(oid, kind));
            }
            let limit = match kind {
                ObjectType::Blob => self.bounds.file,
                _ => self.bounds.file.min(LARGEST_FOLDER),
            };
            if size as u64 > limit {
                return Err(ObjectError::TooLarge(oid, size as u64, limit));
            }
            let object = objects.read(oid).map_err(failed)?;
            if !is_named(oid, kind, object.data()) {
                let error = git2::Error::from_str("its content does not match its name");
                return Err(ObjectError::Damaged(oid, error));
            }
            if let Some(read) = &self.read {
                read.add_object(oid, kind, object.data());
            }
            Ok(with(object.data()))
        })
    }

    /// The date of a tag or commit in the database, in seconds since 1970.
    pub(crate) fn date(&self, oid: Oid) -> Option<i64> {
        let read = |kind| self.read(oid, kind, &mut |data| listing::date_of(data)).ok().flatten();
        read(ObjectType::Commit).or_else(|| read(ObjectType::Tag))
    }

    /// The commits that `to` has and `from` has not, the newest first; `None` if some are not here, or there is no end of them.
    ///
    /// Goes back from both at once, always from the youngest commit that is known, until all that is left to look at is older than
    /// `from`. What `from` has may be met from `to` first, so it is taken out at the end.
    pub(crate) fn log(&self, from: Oid, to: Oid) -> Option<Vec<LoggedCommit>> {
        let mut left = BinaryHeap::from([(self.date(from)?, from), (self.date(to)?, to)]);
        let (mut seen, mut old) = (HashSet::from([from, to]), HashSet::from([from]));
        let mut found: Vec<(Oid, String)> = Vec::new();
        // Ends: each round takes a commit that was not there before, and no more than so many are looked at.
        while let Some((_, next)) = left.pop() {
            if seen.len() > MOST_WALKED {
                return None;
            }
            let (parents, title) =
                self.read(next, ObjectType::Commit, &mut listing::logged).ok()?;
            let is_old = old.contains(&next);
            if !is_old {
                found.push((next, title));
            }
            for parent in parents {
                if is_old {
                    old.insert(parent);
                }
                if seen.insert(parent) {
                    left.push((self.date(parent)?, parent));
                }
            }
            if is_old && left.iter().all(|(_, one)| old.contains(one)) {
                break;
            }
        }
        found.retain(|(commit, _)| !old.contains(commit));
        found.truncate(MOST_LOGGED);
        let named = |(commit, title)| LoggedCommit { commit: ref_name::name(commit), title };
        Some(found.into_iter().map(named).collect())
    }

    /// How many bytes an object has, 0 if it cannot be read; reading it reports the problem.
    pub(crate) fn size(&self, oid: Oid) -> u64 {
        self.with_objects(|objects| {
            let header = objects.and_then(|objects| objects.read_header(oid).ok());
            header.map_or(0, |(size, _)| size as u64)
        })
    }

    /// The commits whose names begin with `prefix`, in order.
    pub(crate) fn commits_beginning(&self, prefix: &str) -> BTreeSet<Oid> {
        let mut found = BTreeSet::new();
        self.with_objects(|objects| {
            let Some(objects) = objects else { return };
            // An object that cannot be read counts as missing, and is fetched again.
            let _ = objects.foreach(|oid| {
                if oid.to_string().starts_with(prefix) {
                    found.insert(*oid);
                }
                true
            });
            found.retain(|oid| {
                objects.read_header(*oid).is_ok_and(|(_, kind)| kind == ObjectType::Commit)
            });
        });
        found
    }

    /// What the remote listed at the last fetch, as the text that [`Advertisement::parse`] reads.
    pub(crate) fn listing(&self) -> Option<String> {
        fs::read_text(&self.folder.join(ADVERTISEMENT)).ok()
    }

    /// Waits until no other process writes here.
    pub(crate) fn lock(&self, waiting: &mut dyn FnMut()) -> Result<Lock, ProviderError> {
        let mut path = self.folder.clone().into_os_string();
        path.push(".lock");
        Ok(Lock::acquire(Path::new(&path), Sharing::Exclusive, waiting)?)
    }

    /// Creates the folders if necessary, and removes what a killed process left.
    pub(crate) fn prepare(&self, _lock: &Lock, remote: &str) -> Result<(), ProviderError> {
        let packs = self.packs();
        if !packs.is_dir() {
            for folder in [packs.clone(), self.folder.join("refs")] {
                fs::create_folder(&folder)?;
            }
            let config = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";
            self.write("config", config)?;
            self.write("description", &format!("what mu fetched of {remote}\n"))?;
            return self.write("HEAD", "ref: refs/heads/none\n");
        }
        for path in fs::entries(&packs)?.iter().map(DirEntry::path) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let orphan = name.ends_with(".idx") && !path.with_extension("pack").exists();
            if name.starts_with("pack_") || name.ends_with(".lock") || orphan {
                // A user who may not delete it can still use the database.
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// Adds a pack. `commits` are those that were requested; afterwards all of them are there.
    pub(crate) fn receive(
        &self,
        _lock: &Lock,
        commits: &[Oid],
        boundary: &Boundary,
        pack: &mut dyn Read,
        progress: &dyn Progress,
    ) -> Result<(), ReceiveError> {
        // This comes first, so that no commit ever seems to have parents that are missing.
        let mut shallow: BTreeSet<Oid> = self.shallow().into_iter().collect();
        shallow.retain(|commit| !boundary.unshallow.contains(commit));
        shallow.extend(&boundary.shallow);
        self.write(SHALLOW, &lines(&shallow, |commit| commit.to_string()))
            .map_err(ReceiveError::Refused)?;

        self.index(pack, progress)?;

        let mut fetched: BTreeSet<Oid> = self.fetched().into_iter().collect();
        fetched.extend(commits);
        let refs = lines(&fetched, |commit| format!("{commit} refs/mu/{commit}"));
        self.write(REFS, &format!("# pack-refs with: peeled fully-peeled sorted \n{refs}"))
            .map_err(ReceiveError::Refused)
    }

    /// Adds a pack to a repository whose refs are its owner's.
    pub(crate) fn add(
        &self,
        boundary: &Boundary,
        pack: &mut dyn Read,
        progress: &dyn Progress,
    ) -> Result<(), ReceiveError> {
        let shallow: BTreeSet<Oid> = boundary.shallow.iter().copied().collect();
        // Git takes an empty file as a sign, too.
        if !shallow.is_empty() {
            self.write(SHALLOW, &lines(&shallow, |commit| commit.to_string()))
                .map_err(ReceiveError::Refused)?;
        }
        self.index(pack, progress)
    }

    /// Stores what the remote listed, for callers that may not use the network.
    pub(crate) fn remember(
        &self,
        _lock: &Lock,
        listed: &Advertisement,
    ) -> Result<(), ProviderError> {
        self.write(ADVERTISEMENT, &listed.to_text())
    }

    /// Throws everything away, because it cannot be read.
    pub(crate) fn discard(&self, _lock: &Lock) -> Result<(), ProviderError> {
        // Waits for readers, and closes the packs, because libgit2 knows them by their paths.
        *self.objects.write().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(fs::remove_folder(&self.folder)?)
    }

    /// Commits that were requested and arrived with everything that belongs to them.
    pub(crate) fn fetched(&self) -> Vec<Oid> {
        self.oids(REFS).into_iter().filter(|oid| self.has_commit(*oid).unwrap_or(false)).collect()
    }

    /// Commits whose parents are not here.
    pub(crate) fn shallow(&self) -> Vec<Oid> {
        self.oids(SHALLOW)
    }

    fn oids(&self, name: &str) -> Vec<Oid> {
        let text = fs::read_text(&self.folder.join(name)).unwrap_or_default();
        text.lines().filter_map(|line| Oid::from_str(line.get(..40)?).ok()).collect()
    }

    fn index(&self, pack: &mut dyn Read, progress: &dyn Progress) -> Result<(), ReceiveError> {
        let refuse = |text: &str| {
            let place = self.folder.display();
            let text = format!("the pack for `{place}` is refused: {text}");
            ProviderError::new(ErrorKind::Integrity, text)
        };
        let broken = |error: git2::Error| match error.class() {
            git2::ErrorClass::Os => {
                ReceiveError::Refused(cannot_write(&self.folder, io::Error::other(error)))
            }
            _ => ReceiveError::Refused(refuse("it is damaged").because(error)),
        };
        self.open();
        let objects = self.guard();
        let objects = objects.as_ref();
        let mut indexer = Indexer::new(objects, &self.packs(), 0, false).map_err(broken)?;
        // Objects are built once the pack is complete; the sender decides how long that takes.
        let until = Arc::new(OnceLock::<Instant>::new());
        let deadline = Arc::clone(&until);
        indexer.progress(move |_| deadline.get().is_none_or(|until| Instant::now() < *until));
        let done = std::thread::scope(|scope| {
            let (sender, pieces) = sync_channel::<Vec<u8>>(AHEAD);
            let mut scan = PackScan::new(self.bounds.file);
            let look = move || pieces.into_iter().try_for_each(|piece| scan.scan_next(&piece));
            let scanner = thread::Builder::new().name("mu-git-scan".to_owned());
            let scanner = scanner.spawn_scoped(scope, look).map_err(|error| {
                let text = "cannot start a thread to look through a pack";
                ReceiveError::Refused(ProviderError::new(ErrorKind::Io, text).because(error))
            })?;
            let mut done = 0_u64;
            let mut buffer = vec![0; 256 << 10];
            let taken = loop {
                let count = match pack.read(&mut buffer) {
                    Ok(0) => break Ok(()),
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => break Err(ReceiveError::Source(error)),
                };
                done += count as u64;
                if done > self.bounds.pack {
                    let text = format!("it has more than {} bytes", self.bounds.pack);
                    break Err(ReceiveError::Refused(refuse(&text)));
                }
                progress.bytes(done, None);
                let piece = buffer.get(..count).unwrap_or_default();
                let written = indexer.write_all(piece).map_err(|error| {
                    match error.downcast::<git2::Error>() {
                        Ok(error) => broken(error),
                        Err(error) => ReceiveError::Refused(cannot_write(&self.folder, error)),
                    }
                });
                // If nobody takes the piece, the checking thread has given up.
                if written.is_err() || sender.send(piece.to_vec()).is_err() {
                    break written;
                }
            };
            drop(sender);
            let found = scanner.join().expect("no input makes it panic");
            found.map_err(|error| ReceiveError::Refused(refuse(&error.to_string())))?;
            taken.map(|()| done)
        })?;
        let patience = self.bounds.building + Duration::from_secs(done / BUILT);
        let until = until.get_or_init(|| Instant::now() + patience);
        indexer.commit().map_err(|error| match error.class() {
            git2::ErrorClass::Callback if Instant::now() >= *until => {
                ReceiveError::Refused(refuse("it takes too long to build its objects"))
            }
            _ => broken(error),
        })?;
        match objects {
            Some(objects) => objects.refresh().map_err(broken),
            None => Ok(()),
        }
    }

    fn packs(&self) -> PathBuf {
        self.folder.join("objects").join("pack")
    }

    fn with_objects<T>(&self, with: impl FnOnce(Option<&Odb<'static>>) -> T) -> T {
        self.open();
        with(self.guard().as_ref())
    }

    fn guard(&self) -> RwLockReadGuard<'_, Option<Odb<'static>>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the objects if they are there and not open yet.
    fn open(&self) {
        if self.guard().is_some() || !self.has_fetched() {
            return;
        }
        let opened = Odb::new().and_then(|objects| {
            let path = self.folder.join("objects");
            let path = path.to_str().ok_or_else(|| git2::Error::from_str("not UTF-8"))?;
            objects.add_disk_alternate(path)?;
            Ok(objects)
        });
        let mut slot = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            // If it cannot be opened, it counts as missing; writing will report the reason.
            *slot = opened.ok();
            VERIFYING.call_once(|| git2::opts::strict_hash_verification(false));
        }
    }

    /// Replaces a small file as a whole.
    fn write(&self, name: &str, text: &str) -> Result<(), ProviderError> {
        Ok(fs::write_atomic(&self.folder.join(name), text.as_bytes())?)
    }
}

/// Git's file with the commits at which history ends.
const SHALLOW: &str = "shallow";
/// Git's file with refs that seldom change.
const REFS: &str = "packed-refs";
/// What the remote listed. Git does not know this file.
const ADVERTISEMENT: &str = "mu-listing";

/// libgit2 compares every object with its name when it arrives, and detects crafted collisions. mu compares
/// it again whenever it reads it: then only the disk can have changed it, and plain SHA-1, which is three
/// times as fast, detects that. So libgit2 need not do it too.
static VERIFYING: Once = Once::new();

/// Whether `data` is what `oid` names.
fn is_named(oid: Oid, kind: ObjectType, data: &[u8]) -> bool {
    let mut hash = Sha1::new();
    hash.update(format!("{} {}\0", kind.str(), data.len()));
    hash.update(data);
    hash.finalize().as_slice() == oid.as_bytes()
}

fn lines(oids: &BTreeSet<Oid>, line: impl Fn(&Oid) -> String) -> String {
    oids.iter().map(|oid| line(oid) + "\n").collect()
}

fn cannot_write(path: &Path, error: io::Error) -> ProviderError {
    ProviderError::new(ErrorKind::Io, format!("cannot write `{}`", path.display())).because(error)
}

/// The objects that were read.
#[derive(Debug, Default)]
pub(crate) struct ReadObjects(Mutex<BTreeMap<Oid, (ObjectType, Vec<u8>)>>);

impl ReadObjects {
    /// Adds one.
    pub(crate) fn add_object(&self, oid: Oid, kind: ObjectType, content: &[u8]) {
        lock(&self.0).entry(oid).or_insert_with(|| (kind, content.to_vec()));
    }

    /// All of them as a pack, in the order of their names: the same objects are always the same bytes.
    pub(crate) fn into_pack(self) -> std::io::Result<Vec<u8>> {
        let objects = into_inner(self.0);
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend(u32::try_from(objects.len()).unwrap_or(u32::MAX).to_be_bytes());
        for (kind, content) in objects.into_values() {
            let kind = match kind {
                ObjectType::Commit => 1,
                ObjectType::Tree => 2,
                ObjectType::Tag => 4,
                _ => 3,
            };
            // Kind and size: four bits of the size in the first byte, seven in each that follows; the highest bit says that one does.
            let mut left = content.len() >> 4;
            let mut byte = (kind << 4) | u8::try_from(content.len() & 0x0f).unwrap_or_default();
            while left > 0 {
                pack.push(byte | 0x80);
                byte = u8::try_from(left & 0x7f).unwrap_or_default();
                left >>= 7;
            }
            pack.push(byte);
            let mut deflate = ZlibEncoder::new(pack, Compression::default());
            deflate.write_all(&content)?;
            pack = deflate.finish()?;
        }
        let sum = Sha1::digest(&pack);
        pack.extend(sum);
        Ok(pack)
    }
}

#[cfg(test)]
mod tests {
    use mu_provider::Silent;

    use super::*;

    /// Receives one object of four bytes, and a delta of it whose result claims to have `size` bytes.
    fn receive(size: &[u8], building: Duration) -> (Result<(), ReceiveError>, usize) {
        let folder = tempfile::tempdir().expect("there is room");
        let bounds = Bounds { pack: 1 << 20, file: 1 << 20, building };
        let database = Database::new(folder.path().join("x.git"), bounds);
        let lock = database.lock(&mut || ()).expect("is free");
        database.prepare(&lock, "x").expect("can be made");
        let compressed = |data: &[u8]| {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(data).expect("goes to memory");
            encoder.finish().expect("goes to memory")
        };
        let base = [&[0x34][..], &compressed(b"base")].concat();
        // The first three bytes of its base.
        let delta = [&[4], size, &[0x90, 3]].concat();
        let kind = 0x60 | u8::try_from(delta.len()).expect("is short");
        let distance = u8::try_from(base.len()).expect("is short");
        let mut pack =
            [b"PACK\0\0\0\x02\0\0\0\x02", &base[..], &[kind, distance], &compressed(&delta)]
                .concat();
        let sum = Sha1::digest(&pack);
        pack.extend_from_slice(&sum);
        let boundary = Boundary::default();
        let result = database.receive(&lock, &[], &boundary, &mut pack.as_slice(), &Silent);
        (result, fs::entries(&database.packs()).expect("can be read").len())
    }

    #[test]
    fn what_would_take_too_much_or_too_long_is_not_built() {
        const MINUTE: Duration = Duration::from_secs(60);
        let (honest, files) = receive(&[3], MINUTE);
        assert!(honest.is_ok() && files == 2, "{honest:?}");
        for (size, building, why) in [
            (&[0x80, 0x80, 0x80, 0x80, 1][..], MINUTE, "268435456 bytes"),
            (&[3], Duration::ZERO, "takes too long"),
        ] {
            let (result, left) = receive(size, building);
            let Err(ReceiveError::Refused(error)) = result else { panic!("{why}: {result:?}") };
            assert_eq!(error.kind(), ErrorKind::Integrity);
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(left, 0, "nothing half done stays");
        }
    }

    #[test]
    fn the_same_objects_are_the_same_pack_and_libgit2_reads_it() {
        let pack = |names: &[&str]| {
            let objects = ReadObjects::default();
            for name in names {
                let content = name.repeat(40).into_bytes();
                let oid = Oid::hash_object(ObjectType::Blob, &content).expect("is hashed");
                objects.add_object(oid, ObjectType::Blob, &content);
            }
            objects.into_pack().expect("is written")
        };
        let one = pack(&["a", "bb", ""]);
        assert_eq!(one, pack(&["", "bb", "a", "a"]));
        let folder = tempfile::tempdir().expect("can be made");
        let repository = git2::Repository::init_bare(folder.path()).expect("can be made");
        let odb = repository.odb().expect("is there");
        let mut writer = odb.packwriter().expect("can be written");
        writer.write_all(&one).expect("is taken");
        writer.commit().expect("is whole");
        odb.refresh().expect("is read");
        let oid =
            Oid::hash_object(ObjectType::Blob, "bb".repeat(40).as_bytes()).expect("is hashed");
        assert_eq!(odb.read(oid).expect("is there").data(), "bb".repeat(40).as_bytes());
    }
}
