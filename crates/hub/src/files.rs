//! Reads and writes the files of a hub: as a whole, and only if nobody changed them meanwhile.
//!
//! A bucket refuses a write whose condition does not hold. A folder cannot, so writers take turns there, with
//! a lock that ends with its process. This file does not know the content of the files.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use mu_provider::fs::{self, AtPath as _, FileError, changing};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode,
    PutOptions, UpdateVersion,
};

use crate::HubError;
use crate::error::StoreError;
use crate::folder;
use crate::place::{Kind, Place};
use crate::private;
use crate::staging::Staging;

/// The file that the writers of a folder lock.
const LOCK_FILE: &str = "hub.lock";

/// The problem with a link.
pub(crate) const LINK: &str = "it is a link, and links in a hub's folder are not followed, because they may lead to any file on the machine";

/// How often a write is tried if others change the file in between.
const ATTEMPTS: u32 = 1_000;

/// The longest wait before a write is tried again because others changed the file in between.
const LONGEST_WAIT: Duration = Duration::from_millis(200);

/// The files of one hub.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    store: Arc<dyn ObjectStore>,
    folder: Option<PathBuf>,
    /// What users call the hub.
    pub(crate) name: Arc<str>,
    /// Where its archives are unpacked.
    pub(crate) staging: Arc<Staging>,
    pub(crate) broken_off_after: Duration,
}

/// The content of a folder that no reader of a hub requests.
#[derive(Debug, Default)]
pub(crate) struct Odd {
    /// Files that a writer left half written when it died.
    pub(crate) half_written: Vec<PathBuf>,
    /// Links, relative to the hub.
    pub(crate) links: Vec<String>,
}

/// A file as it was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) bytes: Bytes,
    pub(crate) version: UpdateVersion,
}

/// Which content of a file somebody has seen; `None` if there was no such file.
pub(crate) type Seen = Option<UpdateVersion>;

/// The result of a conditional read.
#[derive(Debug)]
pub(crate) enum Got {
    /// The file.
    Found(Box<GetResult>),
    /// The file has not changed for this reader.
    Unchanged,
    /// There is no such file.
    Absent,
}

impl Files {
    /// The files at `place`; with `make`, its folder is created.
    pub(crate) fn open(place: &Place, make: bool) -> Result<Self, HubError> {
        let (store, folder): (Arc<dyn ObjectStore>, _) = match &place.kind {
            Kind::Store(store) => (Arc::clone(store), None),
            Kind::Bucket(bucket) => {
                let store = bucket
                    .open()
                    .map_err(|reason| HubError::Place { place: place.name.clone(), reason })?;
                (store, None)
            }
            Kind::Folder(path) => {
                if make {
                    fs::create_folder(path)?;
                } else if !path.is_dir() {
                    return Err(HubError::Missing { place: place.name.clone() });
                }
                let store = LocalFileSystem::new_with_prefix(path).map_err(|error| {
                    HubError::Place { place: place.name.clone(), reason: error.to_string() }
                })?;
                (Arc::new(store.with_fsync(true)), Some(path.clone()))
            }
        };
        Ok(Self {
            store,
            folder,
            name: place.name.as_str().into(),
            staging: Arc::new(Staging::new(place.staging.clone())),
            broken_off_after: place.broken_off_after,
        })
    }

    /// Whether this is a folder of this machine.
    pub(crate) fn is_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Waits for this writer's turn, which ends when the locked file is dropped. In a bucket, all writers write
    /// at the same time.
    pub(crate) async fn turn(&self) -> Result<Option<File>, HubError> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let (folder, path) = (folder.clone(), folder.join(LOCK_FILE));
        let shown = path.clone();
        let lock = move || -> Result<File, FileError> {
            let file = private::open_lock(&folder, &path)?;
            file.lock().at("lock", &path)?;
            Ok(file)
        };
        match tokio::task::spawn_blocking(lock).await {
            Ok(result) => Ok(Some(result?)),
            Err(error) => Err(FileError::new("lock", shown, std::io::Error::other(error)).into()),
        }
    }

    /// Creates the folder for private files. In a bucket, its owner decides who reads what.
    pub(crate) fn make_private(&self) -> Result<(), HubError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        Ok(private::make(folder)?)
    }

    /// Makes private files readable for their owner only, if they are not yet.
    pub(crate) fn keep_private(&self) {
        if let Some(folder) = &self.folder {
            private::keep(folder);
        }
    }

    /// Reads a file, if it is there.
    pub(crate) async fn read(&self, path: &str) -> Result<Option<Read>, HubError> {
        let Got::Found(result) = self.get(path, GetOptions::default()).await? else {
            return Ok(None);
        };
        let version = UpdateVersion {
            e_tag: result.meta.e_tag.clone(),
            version: result.meta.version.clone(),
        };
        let bytes = result.bytes().await.map_err(|error| self.failed("read", path, error))?;
        Ok(Some(Read { bytes, version }))
    }

    /// The metadata of a file, if it exists.
    pub(crate) async fn head(&self, path: &str) -> Result<Option<ObjectMeta>, HubError> {
        match self.get(path, GetOptions { head: true, ..GetOptions::default() }).await? {
            Got::Found(found) => Ok(Some(found.meta)),
            Got::Unchanged | Got::Absent => Ok(None),
        }
    }

    /// Reads a file, or a part of it, under conditions.
    pub(crate) async fn get(&self, path: &str, options: GetOptions) -> Result<Got, HubError> {
        let parsed = self.parsed(path)?;
        if let Some(folder) = &self.folder {
            let place = folder.clone();
            let reading =
                tokio::task::spawn_blocking(move || folder::get(&place, parsed, &options));
            return reading.await.map_err(io::Error::other).flatten().or_else(|error| {
                self.path(path)?;
                Err(FileError::new("read", folder.join(path), error).into())
            });
        }
        match self.store.get_opts(&parsed, options).await {
            Ok(found) => Ok(Got::Found(Box::new(found))),
            Err(Error::NotFound { .. }) => Ok(Got::Absent),
            Err(Error::NotModified { .. }) => Ok(Got::Unchanged),
            Err(error) => Err(self.failed("read", path, error)),
        }
    }

    /// Writes a file, whether or not it exists.
    pub(crate) async fn write(&self, path: &str, bytes: Bytes) -> Result<(), HubError> {
        changing();
        let result = self.store.put(&self.path(path)?, bytes.into()).await;
        result.map(drop).map_err(|error| self.failed("write", path, error))
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
    ) -> Result<Option<UpdateVersion>, HubError> {
        let location = self.path(path)?;
        let mode = match seen {
            None => PutMode::Create,
            // It is this writer's turn, so nobody else changes the file.
            Some(_) if self.folder.is_some() => PutMode::Overwrite,
            Some(version) => PutMode::Update(version.clone()),
        };
        let options = PutOptions { mode, ..PutOptions::default() };
        changing();
        match self.store.put_opts(&location, bytes.into(), options).await {
            Ok(put) => Ok(Some(put.into())),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                // A folder in this place counts as no file when reading, and would block writing for ever.
                if self.folder.as_ref().is_some_and(|folder| folder.join(path).is_dir()) {
                    return Err(self.broken(path, "it is a folder, but must be a file"));
                }
                Ok(None)
            }
            Err(error) => Err(self.failed("write", path, error)),
        }
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), HubError> {
        changing();
        match self.store.delete(&self.path(path)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove", path, error)),
        }
    }

    /// All files below a folder of the hub, sorted by path.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>, HubError> {
        let path = self.path(folder.trim_end_matches('/'))?;
        let prefix = (!path.as_ref().is_empty()).then_some(&path);
        let found: Result<Vec<_>, _> = self.store.list(prefix).try_collect().await;
        let mut found = found.map_err(|error| self.failed("list", folder, error))?;
        if let Some(hub) = &self.folder {
            found.retain(|meta| link_on(hub, meta.location.as_ref()).is_none());
        }
        found.sort_unstable_by(|left, right| left.location.cmp(&right.location));
        Ok(found)
    }

    /// Entries of a folder that nobody reads: incomplete files, and links.
    pub(crate) fn odd(&self) -> Odd {
        let mut odd = Odd::default();
        let mut folders: Vec<PathBuf> = self.folder.clone().into_iter().collect();
        while let Some(folder) = folders.pop() {
            for entry in fs::entries(&folder).unwrap_or_default() {
                let is_staged = entry.file_name().to_str().is_some_and(|name| {
                    name.rsplit_once('#').is_some_and(|(_, number)| {
                        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                    })
                });
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
        let inside = self.folder.as_ref().and_then(|folder| path.strip_prefix(folder).ok());
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
            let seen = read.map(|read| read.version);
            if self.replace(path, &seen, bytes).await? {
                return Ok(answer);
            }
            tokio::time::sleep(wait(attempt)).await;
        }
        Err(HubError::Busy { path: path.into(), place: self.name.to_string(), attempts: ATTEMPTS })
    }

    /// The error for an invalid file.
    pub(crate) fn broken(&self, path: &str, reason: impl Into<String>) -> HubError {
        HubError::Broken { place: self.name.to_string(), path: path.into(), reason: reason.into() }
    }

    fn parsed(&self, path: &str) -> Result<Path, HubError> {
        Path::parse(path).map_err(|error| self.failed("name", path, error.into()))
    }

    /// The path of a file that is written or removed. Those of files that are read are checked as they are
    /// opened.
    fn path(&self, path: &str) -> Result<Path, HubError> {
        let parsed = self.parsed(path)?;
        match self.folder.as_ref().and_then(|folder| link_on(folder, path)) {
            Some(link) => Err(self.broken(link, LINK)),
            None => Ok(parsed),
        }
    }

    pub(crate) fn failed(&self, action: &'static str, path: &str, source: Error) -> HubError {
        let (path, place) = (path.to_owned(), self.name.to_string());
        HubError::Store { action, path, place, source: StoreError::new(source) }
    }
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
