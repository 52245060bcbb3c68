//! Hubs from their owner's side: publishing into one, and checking one.
//!
//! A hub is a tree of files in a folder or a bucket. These files are its only state: any number of processes, on any number of
//! machines, may write to one at the same time. [`Hub`] is the entry point. `writer.rs` has the order of writes that makes this
//! safe, `files.rs` the conditional writes, and `folder.rs` how the files of a folder are read. `lines.rs` handles an index file;
//! `derived.rs`, `closures.rs`, `snapshot.rs` and `log.rs` handle the files that are derived from the index, and `log.rs` also
//! what is left of interrupted writes. `package_copy.rs` makes a package what it is in another hub. `check/` finds problems. `tokens.rs` knows who may change a hub, and `private.rs` has what
//! only its owner may open. `place.rs` says where a hub is, and how it is served, which the crate `mu-hub-server` does.
//! `mu_provider_hub::wire` defines what the files look like to readers.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]

pub mod archive;
#[cfg(feature = "buckets")]
mod bucket;
mod change;
mod check;
mod closures;
pub mod derived;
mod error;
pub mod file;
pub mod files;
pub mod folder;
pub mod lines;
pub mod log;
pub mod names;
pub mod package_copy;
mod place;
mod private;
pub mod root;
pub mod snapshot;
pub mod tokens;
pub mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use crate::archive::Unpacked;
pub use crate::change::{Change, Tags};
pub use crate::check::{Finding, Report};
pub use crate::error::{HubError, StoreError};
use crate::files::Files;
pub use crate::lines::Notice;
use crate::lines::{Lines, PUBLISHED_BY, PublishedLine};
pub use crate::names::{check_moved_to, check_reason, check_tag};
pub use crate::package_copy::{PackageUpdate, PlacedVersion, Vouching};
pub use crate::place::{Network, Place, Serving, UploadReporter, UpstreamHub, WriteLog};
pub use crate::private::Staging;
use crate::root::Root;
pub use crate::tokens::{Can, NewToken, Token};
pub use crate::writer::Published;
use crate::writer::Writer;

/// The folder of what only the owner of a hub reads.
const PRIVATE: &str = "private/";

/// A hub that is read and changed by the calling thread.
///
/// Not to be used inside an asynchronous runtime.
#[derive(Debug)]
pub struct Hub {
    runtime: Runtime,
    writer: Writer,
}

/// A version that is about to be published.
#[derive(Debug, Clone)]
pub struct Publication {
    /// Its index line: a JSON object with at least `name` and `version`. `digest`, `archive` and `size` are
    /// compared with the archive, or filled in. The hub itself sets `urls`.
    pub line: Map<String, Value>,
    /// Its archive.
    pub archive: Bytes,
}

/// Checks that an index line describes its archive truthfully and agrees with the manifest in it. The archive
/// is unpacked in a folder below `staging`.
///
/// # Errors
///
/// When they differ, or the archive cannot be read.
pub fn compare(publication: &Publication, staging: PathBuf) -> Result<(), HubError> {
    let line = PublishedLine::new(publication.line.clone());
    let staging = Staging::new(Some(staging));
    let unpacked = archive::unpack(&staging, &publication.archive, &line)?;
    unpacked.check(&line)?;
    unpacked.agrees(&line)
}

impl Hub {
    /// Opens the hub at `place`.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be read.
    pub fn open(place: &Place) -> Result<Self, HubError> {
        let hub = Self::at(place, false)?;
        hub.runtime.block_on(Root::read(&hub.writer.files))?;
        Ok(hub)
    }

    /// Creates a hub at `place`. Returns it, and whether it is new; an existing hub stays as it is.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn init(place: &Place) -> Result<(Self, bool), HubError> {
        let hub = Self::at(place, true)?;
        let is_new = hub.runtime.block_on(hub.writer.init())?;
        Ok((hub, is_new))
    }

    /// Publishes a version: completely, or without any effect for readers.
    ///
    /// # Errors
    ///
    /// When the line or the archive breaks a rule, the two do not belong together, the version exists with
    /// other content, or the place refuses.
    pub fn publish(&self, publication: &Publication) -> Result<Published, HubError> {
        let (line, unpacked) = self.unpack(publication)?;
        let archive = publication.archive.clone();
        self.runtime.block_on(self.writer.publish(line, archive, &unpacked))
    }

    /// Writes everything about a version but its index line, so that no reader finds it before [`Hub::follow`] publishes it.
    ///
    /// # Errors
    ///
    /// As [`Hub::publish`], and when what vouches for it cannot be taken.
    pub fn place(
        &self,
        publication: &Publication,
        vouching: &Vouching,
    ) -> Result<PlacedVersion, HubError> {
        let (line, unpacked) = self.unpack(publication)?;
        let archive = publication.archive.clone();
        self.runtime.block_on(self.writer.place_version(line, archive, &unpacked, vouching))
    }

    /// The line of a version that somebody writes into the place, and its archive, which it fits.
    fn unpack(&self, publication: &Publication) -> Result<(PublishedLine, Unpacked), HubError> {
        let mut line = publication.line.clone();
        // Whoever writes into a folder or a bucket shows no token. That of another hub says nothing about this one.
        line.shift_remove(PUBLISHED_BY);
        let line = PublishedLine::new(line);
        line.check_new()?;
        let staging = &self.writer.files.staging;
        let unpacked = archive::unpack(staging, &publication.archive, &line)?;
        unpacked.check(&line)?;
        unpacked.agrees(&line)?;
        Ok((line, unpacked))
    }

    /// Makes a package what it is in another hub, at once: publishes versions that were placed, and changes what can change of those
    /// that are there (notices, tags, where it has moved) to what `lines` say, which are all of the other hub.
    ///
    /// # Errors
    ///
    /// When a line breaks a rule, a version is there with another archive, or the place refuses. Nothing has changed then.
    pub fn follow(
        &self,
        name: &str,
        placed: &[PlacedVersion],
        lines: &[Map<String, Value>],
    ) -> Result<PackageUpdate, HubError> {
        let lines: Vec<_> = lines.iter().cloned().map(PublishedLine::new).collect();
        self.runtime.block_on(self.writer.follow(name, placed, &lines))
    }

    /// Reads a file of the hub that only its owner reads, below `private/`.
    ///
    /// # Errors
    ///
    /// When the place cannot be read.
    pub fn read_owner_file(&self, name: &str) -> Result<Option<Bytes>, HubError> {
        let path = format!("{PRIVATE}{name}");
        let read = self.runtime.block_on(self.writer.files.read(&path))?;
        Ok(read.map(|read| read.bytes))
    }

    /// Writes a file of the hub that only its owner reads, below `private/`.
    ///
    /// # Errors
    ///
    /// When the place refuses.
    pub fn write_owner_file(&self, name: &str, bytes: Bytes) -> Result<(), HubError> {
        let files = &self.writer.files;
        files.make_private()?;
        self.runtime.block_on(files.write(&format!("{PRIVATE}{name}"), bytes))?;
        files.keep_private();
        Ok(())
    }

    /// Keeps the signed statement about the archive of a version beside it (`.prov`), as Helm looks for it.
    ///
    /// # Errors
    ///
    /// When there is no such version, its archive is mu's own, another statement is there, or the place refuses.
    pub fn add_provenance(
        &self,
        name: &str,
        version: &str,
        provenance: Bytes,
    ) -> Result<Published, HubError> {
        self.runtime.block_on(self.writer.write_provenance(name, version, provenance))
    }

    /// Adds what vouches for a version, as the lines of a file of evidence; those that are there stay.
    ///
    /// # Errors
    ///
    /// When there is no such version, a line is none of evidence, there are too many, or the place refuses.
    pub fn add_evidence(
        &self,
        name: &str,
        version: &str,
        lines: Bytes,
    ) -> Result<Published, HubError> {
        self.runtime.block_on(self.writer.write_evidence(name, version, lines))
    }

    /// Says something against a version, with a reason or an empty text, which keeps an earlier reason; `None` takes it back. Returns whether
    /// that changed anything.
    ///
    /// # Errors
    ///
    /// When there is no such version, the reason is longer than a line, or the place refuses.
    pub fn notice(
        &self,
        name: &str,
        version: &str,
        notice: Notice,
        reason: Option<&str>,
    ) -> Result<bool, HubError> {
        let notices = [(notice, reason.map(str::to_owned))].into();
        let change = Change { notices, ..Change::default() };
        self.runtime.block_on(self.writer.change_version(name, version, &change))
    }

    /// Changes the tags of a version. Returns whether that changed anything. A tag moves if it was on another
    /// version of the package.
    ///
    /// # Errors
    ///
    /// When there is no such version, a tag is not valid, or the place refuses.
    pub fn tag(&self, name: &str, version: &str, tags: &Tags) -> Result<bool, HubError> {
        let change = Change { tags: Some(tags.clone()), ..Change::default() };
        self.runtime.block_on(self.writer.change_version(name, version, &change))
    }

    /// Records that the package with the id `to` replaced `name`, or removes that record. Returns whether
    /// that changed anything.
    ///
    /// # Errors
    ///
    /// When there is no such package, `to` is not valid, or the place refuses.
    pub fn moved(&self, name: &str, to: Option<&str>) -> Result<bool, HubError> {
        self.runtime.block_on(self.writer.moved(name, to))
    }

    /// The index line of a version, as it was published; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When the index cannot be read.
    pub fn line(&self, name: &str, version: &str) -> Result<Option<Map<String, Value>>, HubError> {
        Ok(self.index(name)?.find(version).map(|line| line.map().clone()))
    }

    /// All index lines of a package, as they were published; none if there is no such package.
    ///
    /// # Errors
    ///
    /// When the index cannot be read.
    pub fn lines(&self, name: &str) -> Result<Vec<Map<String, Value>>, HubError> {
        Ok(self.index(name)?.iter().map(|line| line.map().clone()).collect())
    }

    fn index(&self, name: &str) -> Result<Lines, HubError> {
        names::check_name(name)?;
        let files = &self.writer.files;
        self.runtime.block_on(async {
            let root = Root::read(files).await?;
            derived::index(files, &root, name).await
        })
    }

    /// Reads everything again and compares it. With `repair`, it repairs what can be derived from the index
    /// and the archives.
    ///
    /// `progress` is called with the name of each package before it is checked.
    ///
    /// # Errors
    ///
    /// When the place cannot be read. Problems of the hub are not errors; they are in the report.
    pub fn check(&self, repair: bool, progress: &mut dyn FnMut(&str)) -> Result<Report, HubError> {
        self.runtime.block_on(check::check(&self.writer, repair, progress))
    }

    /// Whether changes of this hub have left something to [`Hub::tidy`].
    pub fn has_left(&self) -> bool {
        self.writer.left.has_work()
    }

    /// Writes the files about all packages, as far as that is due: a change of a large hub leaves them alone. Returns whether the hub has
    /// room for a catalog: if not, only its server searches it.
    ///
    /// # Errors
    ///
    /// When the place cannot be read, or refuses.
    pub fn tidy(&self) -> Result<bool, HubError> {
        self.writer.left.add();
        self.runtime.block_on(async {
            self.writer.tidy().await?;
            Ok(!Root::read(&self.writer.files).await?.is_too_large_for_a_catalog())
        })
    }

    fn at(place: &Place, make: bool) -> Result<Self, HubError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| HubError::Io { action: "begin to work".to_owned(), source })?;
        Ok(Self {
            runtime,
            writer: Writer { files: Files::open(place, make)?, left: Arc::default() },
        })
    }
}
