//! One file of a hub: the paths of those that several modules need, and how a file is asked for and answered, in a folder and in
//! a bucket alike.
//!
//! Nothing here reads or writes; `files.rs` does.

use std::ops::Range;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::stream::{BoxStream, TryStreamExt as _};
use mu_provider_hub::wire::closure_path;

use crate::error::StoreError;

/// What is known of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMeta {
    /// Its path in the hub.
    pub path: String,
    /// When it was written, by the clock of its place.
    pub modified: SystemTime,
    /// In bytes.
    pub size: u64,
    /// Which content it has.
    pub mark: FileMark,
}

/// What tells one content of a file from another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileMark {
    /// The ETag, with its quotes.
    pub e_tag: Option<String>,
    /// The number that some object stores have for it.
    pub version: Option<String>,
}

/// A file as it was read.
#[derive(Debug)]
pub struct Read {
    /// All of it.
    pub bytes: Bytes,
    /// Which content that is.
    pub mark: FileMark,
}

/// Which content of a file somebody has seen; `None` if there was no such file.
pub type Seen = Option<FileMark>;

/// What to read of a file.
#[derive(Debug, Clone, Default)]
pub struct FileRequest {
    /// The ETags that the reader knows: one of these files is not sent again. `*` is any.
    pub known: Vec<String>,
    /// Only this part of it, which is inside.
    pub range: Option<Range<u64>>,
    /// Nothing of its content.
    pub is_head: bool,
}

/// The result of a conditional read.
#[derive(Debug)]
pub enum FileAnswer {
    /// The file.
    Found(Box<FileContent>),
    /// The file has not changed for this reader.
    Unchanged,
    /// There is no such file.
    Absent,
}

/// A file, and what was asked for of its content.
pub struct FileContent {
    /// What is known of it.
    pub meta: FileMeta,
    /// Which bytes of it these are.
    pub range: Range<u64>,
    /// These bytes.
    pub content: FileBytes,
}

/// Bytes of a file.
pub enum FileBytes {
    /// All of them, which are in memory.
    Whole(Bytes),
    /// In pieces, which are read as they are taken.
    Pieces(BoxStream<'static, Result<Bytes, StoreError>>),
}

mu_provider::debug_fields!(FileContent { meta, range });

impl FileRequest {
    /// All of a file, unless it still has the ETag `known`.
    pub(crate) fn unless(known: Option<&str>) -> Self {
        Self { known: known.map(str::to_owned).into_iter().collect(), ..Self::default() }
    }

    /// Whether the reader has the content with this ETag.
    pub fn has(&self, e_tag: Option<&str>) -> bool {
        self.known.iter().any(|known| known == "*" || Some(known.as_str()) == e_tag)
    }
}

impl FileContent {
    /// All bytes that were asked for.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub async fn bytes(self) -> Result<Bytes, StoreError> {
        let pieces: Vec<Bytes> = match self.content {
            FileBytes::Whole(bytes) => return Ok(bytes),
            FileBytes::Pieces(pieces) => pieces.try_collect().await?,
        };
        Ok(match &pieces[..] {
            [whole] => whole.clone(),
            pieces => pieces.concat().into(),
        })
    }
}

/// The root file of a hub.
pub const HUB_FILE: &str = "hub.json";

/// The file with a line for each package.
pub const CATALOG_FILE: &str = "catalog.jsonl";

/// The problem with a link.
pub(crate) const LINK: &str = "it is a link, and links in a hub's folder are not followed, because they may lead to any file on the machine";

/// The path of a package's closure, in a hub that keeps closures in `folder`.
pub(crate) fn closure_file(folder: &str, name: &str) -> String {
    format!("{folder}{}", closure_path(name))
}
