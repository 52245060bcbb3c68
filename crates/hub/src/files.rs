//! Reads and writes the files of a hub: as a whole, and only if nobody changed them meanwhile.
//!
//! A bucket refuses a write whose condition does not hold. A folder cannot, so writers take turns there, with
//! a lock that ends with its process. This file does not know the content of the files.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
#[cfg(feature = "buckets")]
use mu_provider::fs::changing;
use mu_provider::fs::{self, AtPath as _, DiskRoom, FileError};

use crate::HubError;
#[cfg(feature = "buckets")]
use crate::bucket::BucketFiles;
use crate::error::StoreError;
use crate::file::{FileAnswer, FileMeta, FileRequest, LINK, Read, Seen};
use crate::folder::{self, FolderFiles};
use crate::place::{Kind, Place};
use crate::private::{self, Staging};

/// The file that the writers of a folder lock.
const LOCK_FILE: &str = "hub.lock";

/// How often a write is tried if others change the file in between.
const ATTEMPTS: u32 = 1_000;

/// The longest wait before a write is tried again because others changed the file in between.
const LONGEST_WAIT: Duration = Duration::from_millis(200);

/// The files of one hub.
#[derive(Debug, Clone)]
pub struct Files {
    held: Held,
    /// What users call the hub.
    pub name: Arc<str>,
    /// Where its archives are unpacked.
    pub staging: Arc<Staging>,
    /// After how long a write counts as interrupted if its marker is still there.
    pub broken_off_after: Duration,
    /// How long its catalog may be, in bytes.
    pub(crate) longest_catalog: u64,
}

/// The content of a folder that no reader of a hub requests.
#[derive(Debug, Default)]
pub(crate) struct Odd {
    /// Files that a writer left half written when it died.
    pub(crate) half_written: Vec<PathBuf>,
    /// Links, relative to the hub.
    pub(crate) links: Vec<String>,
}

/// What holds the files.
#[derive(Debug, Clone)]
enum Held {
    Folder(PathBuf),
    #[cfg(feature = "buckets")]
    Bucket(BucketFiles),
}

impl Files {
    /// The files at `place`; with `make`, its folder is created.
    pub fn open(place: &Place, make: bool) -> Result<Self, HubError> {
        let held = match &place.kind {
            #[cfg(feature = "buckets")]
            Kind::Bucket(bucket) => Held::Bucket(BucketFiles::open(bucket, &place.name)?),
            Kind::Folder(path) => {
                if make {
                    fs::create_folder(path)?;
                } else if !path.is_dir() {
                    return Err(HubError::Missing { place: place.name.clone() });
                }
                Held::Folder(path.clone())
            }
        };
        Ok(Self {
            held,
            name: place.name.as_str().into(),
            staging: Arc::new(Staging::new(place.staging.clone())),
            broken_off_after: place.broken_off_after,
            longest_catalog: place.longest_catalog,
        })
    }

    /// The room on the disk of the hub; `None` in a bucket.
    pub async fn room(&self) -> Result<Option<DiskRoom>, HubError> {
        let Some(folder) = self.folder().cloned() else { return Ok(None) };
        Ok(in_its_own_thread(move || fs::disk_room(&folder)).await??)
    }

    /// Whether this is a folder of this machine.
    pub fn is_folder(&self) -> bool {
        self.folder().is_some()
    }

    fn folder(&self) -> Option<&PathBuf> {
        match &self.held {
            Held::Folder(path) => Some(path),
            #[cfg(feature = "buckets")]
            Held::Bucket(_) => None,
        }
    }

    /// Waits for this writer's turn, which ends when the locked file is dropped. In a bucket, all writers write
    /// at the same time.
    pub(crate) async fn turn(&self) -> Result<Option<File>, HubError> {
        let Some(folder) = self.folder().cloned() else { return Ok(None) };
        let path = folder.join(LOCK_FILE);
        let lock = move || -> Result<File, FileError> {
            let file = private::open_lock(&folder, &path)?;
            file.lock().at("lock", &path)?;
            Ok(file)
        };
        Ok(Some(in_its_own_thread(lock).await??))
    }

    /// Creates the folder for private files. In a bucket, its owner decides who reads what.
    pub(crate) fn make_private(&self) -> Result<(), HubError> {
        let Some(folder) = self.folder() else { return Ok(()) };
        Ok(private::make(folder)?)
    }

    /// Makes private files readable for their owner only, if they are not yet.
    pub fn keep_private(&self) {
        if let Some(folder) = self.folder() {
            private::keep(folder);
        }
    }

    /// Reads a file, if it is there.
    pub async fn read(&self, path: &str) -> Result<Option<Read>, HubError> {
        Ok(self.read_if_changed(path, None).await?.flatten())
    }

    /// Reads a file, if it is there; `None` if it still has the ETag `known`.
    pub async fn read_if_changed(
        &self,
        path: &str,
        known: Option<&str>,
    ) -> Result<Option<Option<Read>>, HubError> {
        let found = match self.get(path, FileRequest::unless(known)).await? {
            FileAnswer::Absent => return Ok(Some(None)),
            FileAnswer::Unchanged => return Ok(None),
            FileAnswer::Found(found) => found,
        };
        let mark = found.meta.mark.clone();
        // A bucket that ignores conditions sends the whole file, which nobody has to wait for.
        if known.is_some() && mark.e_tag.as_deref() == known {
            return Ok(None);
        }
        let bytes = found.bytes().await.map_err(|error| self.failed("read", path, error))?;
        Ok(Some(Some(Read { bytes, mark })))
    }

    /// The metadata of a file, if it exists.
    pub async fn head(&self, path: &str) -> Result<Option<FileMeta>, HubError> {
        match self.get(path, FileRequest { is_head: true, ..FileRequest::default() }).await? {
            FileAnswer::Found(found) => Ok(Some(found.meta)),
            FileAnswer::Unchanged | FileAnswer::Absent => Ok(None),
        }
    }

    /// Reads a file, or a part of it, under conditions.
    pub async fn get(&self, path: &str, wanted: FileRequest) -> Result<FileAnswer, HubError> {
        match &self.held {
            Held::Folder(folder) => {
                folder::get(folder, path, &wanted).await.or_else(|error| {
                    self.check(path)?;
                    match error.kind() {
                        // A part of it is neither a folder nor a link.
                        ErrorKind::NotADirectory => Ok(FileAnswer::Absent),
                        _ => Err(FileError::new("read", folder.join(path), error).into()),
                    }
                })
            }
            #[cfg(feature = "buckets")]
            Held::Bucket(bucket) => {
                let got = bucket.get(path, wanted).await;
                got.map_err(|error| self.failed("read", path, error))
            }
        }
    }

    /// Writes a file, whether or not it exists.
    pub async fn write(&self, path: &str, bytes: Bytes) -> Result<(), HubError> {
        self.check(path)?;
        match &self.held {
            Held::Folder(folder) => {
                let target = folder.join(path);
                in_its_own_thread(move || fs::replace_durably(&target, &bytes)).await??;
                Ok(())
            }
            #[cfg(feature = "buckets")]
            Held::Bucket(bucket) => {
                changing();
                let written = bucket.write(path, bytes).await;
                written.map_err(|error| self.failed("write", path, error))
            }
        }
    }

    /// Writes a file if it has not changed since it was seen; otherwise writes nothing and returns `false`.
    pub(crate) async fn replace(
        &self,
        path: &str,
        seen: &Seen,
        bytes: Bytes,
    ) -> Result<bool, HubError> {
        Ok(self.replace_seen(path, seen, bytes).await?.is_some())
    }

    /// Like [`Self::replace`]; returns what is there afterwards.
    pub(crate) async fn replace_seen(
        &self,
        path: &str,
        seen: &Seen,
        bytes: Bytes,
    ) -> Result<Seen, HubError> {
        self.check(path)?;
        match &self.held {
            // It is this writer's turn, so nobody else changes the file.
            Held::Folder(folder) => {
                let (target, is_there) = (folder.join(path), seen.is_some());
                let write = move || -> Result<Seen, FileError> {
                    let written = match is_there {
                        true => Some(fs::replace_durably(&target, &bytes)?),
                        false => fs::create_durably(&target, &bytes)?,
                    };
                    written.as_ref().map(folder::mark).transpose().at("look at", &target)
                };
                let written = in_its_own_thread(write).await??;
                // A folder in this place counts as no file when reading, and would block writing for ever.
                if written.is_none() && folder.join(path).is_dir() {
                    return Err(self.broken(path, "it is a folder, but must be a file"));
                }
                Ok(written)
            }
            #[cfg(feature = "buckets")]
            Held::Bucket(bucket) => {
                changing();
                let written = bucket.replace(path, seen, bytes).await;
                written.map_err(|error| self.failed("write", path, error))
            }
        }
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), HubError> {
        self.check(path)?;
        match &self.held {
            Held::Folder(folder) => {
                let target = folder.join(path);
                Ok(in_its_own_thread(move || fs::remove_file(&target)).await??)
            }
            #[cfg(feature = "buckets")]
            Held::Bucket(bucket) => {
                changing();
                bucket.remove(path).await.map_err(|error| self.failed("remove", path, error))
            }
        }
    }

    /// All files below a folder of the hub that has few, sorted by path.
    pub(crate) async fn list(&self, below: &str) -> Result<Vec<FileMeta>, HubError> {
        let mut found: Vec<FileMeta> = self.each_file(below)?.try_collect().await?;
        found.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        Ok(found)
    }

    /// The files below a folder of the hub, one after another: there may be more than memory has room for.
    pub(crate) fn each_file(
        &self,
        below: &str,
    ) -> Result<BoxStream<'static, Result<FileMeta, HubError>>, HubError> {
        let below = below.trim_end_matches('/').to_owned();
        if !below.is_empty() {
            self.check(&below)?;
        }
        match &self.held {
            Held::Folder(folder) => {
                let left = FolderFiles::new(folder.clone(), &below);
                let next = |mut left: FolderFiles| async move {
                    let (part, left) = in_its_own_thread(move || (left.next_part(), left)).await?;
                    let part = part?;
                    let is_end = part.is_empty();
                    let part = stream::iter(part.into_iter().map(Ok::<_, HubError>));
                    Ok::<_, HubError>((!is_end).then_some((part, left)))
                };
                Ok(stream::try_unfold(left, next).try_flatten().boxed())
            }
            #[cfg(feature = "buckets")]
            Held::Bucket(bucket) => {
                let (files, path) = (self.clone(), below.clone());
                let listed =
                    bucket.list(&below).map_err(|error| self.failed("list", &below, error))?;
                Ok(listed.map_err(move |error| files.failed("list", &path, error)).boxed())
            }
        }
    }

    /// Entries of a folder that nobody reads: incomplete files, and links.
    pub(crate) fn odd(&self) -> Odd {
        let mut odd = Odd::default();
        let mut folders: Vec<PathBuf> = self.folder().cloned().into_iter().collect();
        while let Some(folder) = folders.pop() {
            for entry in fs::entries(&folder).unwrap_or_default() {
                let is_staged = entry.file_name().to_str().is_some_and(folder::is_staged_hub_file);
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind) if kind.is_file() && is_staged => odd.half_written.push(entry.path()),
                    Ok(kind) if kind.is_symlink() => odd.links.push(self.relative(&entry.path())),
                    _ => {}
                }
            }
        }
        odd.half_written.sort_unstable();
        odd.links.sort_unstable();
        odd
    }

    fn relative(&self, path: &std::path::Path) -> String {
        let inside = self.folder().and_then(|folder| path.strip_prefix(folder).ok());
        inside.unwrap_or(path).display().to_string()
    }

    /// Replaces a file by the result of `change`; repeats this until nobody interfered.
    ///
    /// `change` gets the current content and returns the new one; with `None`, the file stays as it is.
    pub(crate) async fn change<T>(
        &self,
        path: &str,
        mut change: impl AsyncFnMut(Option<&Bytes>) -> Result<(Option<Bytes>, T), HubError>,
    ) -> Result<T, HubError> {
        self.change_seen(path, async |read| change(read.map(|read| &read.bytes)).await).await
    }

    /// As [`Files::change`], for a change that depends on which content is there.
    pub(crate) async fn change_seen<T>(
        &self,
        path: &str,
        mut change: impl AsyncFnMut(Option<&Read>) -> Result<(Option<Bytes>, T), HubError>,
    ) -> Result<T, HubError> {
        for attempt in 0..ATTEMPTS {
            let read = self.read(path).await?;
            let (bytes, answer) = change(read.as_ref()).await?;
            let Some(bytes) = bytes else { return Ok(answer) };
            let seen = read.map(|read| read.mark);
            if self.replace(path, &seen, bytes).await? {
                return Ok(answer);
            }
            tokio::time::sleep(wait(attempt)).await;
        }
        Err(HubError::Busy { path: path.into(), place: self.name.to_string(), attempts: ATTEMPTS })
    }

    /// The error for an invalid file.
    pub fn broken(&self, path: &str, reason: impl Into<String>) -> HubError {
        HubError::Broken { place: self.name.to_string(), path: path.into(), reason: reason.into() }
    }

    /// Checks the path of a file that is written, removed or listed. Those of files that are read are checked as
    /// they are opened.
    fn check(&self, path: &str) -> Result<(), HubError> {
        if !is_inside(path) {
            return Err(self.broken(path, "it is not the path of a file in a hub"));
        }
        match self.folder().and_then(|folder| link_on(folder, path)) {
            Some(link) => Err(self.broken(link, LINK)),
            None => Ok(()),
        }
    }

    /// The error for a file that could not be read or changed.
    pub fn failed(&self, action: &'static str, path: &str, source: StoreError) -> HubError {
        HubError::Store { action, path: path.to_owned(), place: self.name.to_string(), source }
    }
}

/// Does in a thread of its own what waits for a disk, so that others are served meanwhile.
///
/// # Errors
///
/// When the thread panics, or the runtime ends.
pub async fn in_its_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HubError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| HubError::Io {
        action: "work in a thread".to_owned(),
        source: std::io::Error::other(error),
    })
}

/// Whether a path leads to a place inside a hub, on any system.
fn is_inside(path: &str) -> bool {
    let leads_on = |part: &str| !matches!(part, "" | "." | "..");
    path.split('/').all(leads_on) && !path.contains(['\0', '\\', ':'])
}

/// The link that a path in a hub's folder leads through, if any. The hub's folder itself may be a link.
fn link_on<'path>(folder: &std::path::Path, path: &'path str) -> Option<&'path str> {
    let mut place = folder.to_owned();
    let mut end = 0;
    for part in path.split('/') {
        end += part.len();
        place.push(part);
        match fs::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_symlink() => return Some(&path[..end]),
            Ok(_) => end += 1,
            Err(_) => return None,
        }
    }
    None
}

/// How long to wait before trying again: increasing, and random.
///
/// The HTTP client's `backon` adds something random to each step. Here the step is only the longest wait, so
/// that of many writers that lost to the same one, some try again at once.
fn wait(attempt: u32) -> Duration {
    let longest = LONGEST_WAIT.min(Duration::from_millis(1 << attempt.min(10)));
    let share = f64::from(u16::try_from(random() & 0xffff).expect("is 16 bits")) / 65_536.0;
    longest.mul_f64(share)
}

/// A random number that nobody can guess; 0 if the system provides none.
pub(crate) fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}
