//! The files of a hub that is a folder: read in pieces, listed, and never through a symbolic link.
//!
//! What is read often is in the memory of the system, and handing a small file to another thread would take longer than reading it. So whoever
//! asks reads it himself, and a thread of its own does what might wait for a disk: nobody else waits for that.
//!
//! Files are written by `mu_provider::fs`, in the turns that `files.rs` hands out.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use mu_provider::Folder;
use mu_provider::fs::{self, AtPath as _, FileError};

use crate::error::StoreError;
use crate::file::{FileAnswer, FileBytes, FileContent, FileMark, FileMeta, FileRequest};

/// Up to this size, in bytes, a file is read at once.
pub const SMALL: u64 = 1 << 20;

/// Up to this size, in bytes, whoever asks for a file reads it himself. To read a larger one takes longer than handing it over.
const IN_PASSING: u64 = 128 << 10;

/// The bytes of a larger file that are read at once.
const PIECE: u64 = 256 << 10;

/// About how many files are looked at at once.
const PART: usize = 1_000;

/// Reads the file at `path` of the hub in `folder`, or a part of it, under conditions. `folder` itself may be a
/// link.
///
/// # Errors
///
/// When it cannot be read, or when a part of `path` is a link.
pub(crate) async fn get(folder: &Path, path: &str, wanted: &FileRequest) -> io::Result<FileAnswer> {
    let opened = match Folder::open_cached_file(folder, path) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let (folder, path) = (folder.to_owned(), path.to_owned());
            waiting(move || Folder::open(folder)?.open_file(&path)).await
        }
        opened => opened,
    };
    let (mut file, metadata) = match opened {
        Ok(opened) => opened,
        // A name that is too long for a file is the name of none.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename) => {
            return Ok(FileAnswer::Absent);
        }
        Err(error) => return Err(error),
    };
    let meta = meta(&metadata, path.to_owned())?;
    if wanted.has(meta.mark.e_tag.as_deref()) {
        return Ok(FileAnswer::Unchanged);
    }
    let range = wanted.range.clone().unwrap_or(0..meta.size);
    let length = range.end - range.start;
    let content = if wanted.is_head {
        FileBytes::Whole(Bytes::new())
    } else if length <= SMALL {
        FileBytes::Whole(read(file, range.start, length).await?)
    } else {
        file.seek(SeekFrom::Start(range.start))?;
        FileBytes::Pieces(pieces(file, length).boxed())
    };
    Ok(FileAnswer::Found(Box::new(FileContent { meta, range, content })))
}

/// The files below a folder of a hub, by path, part by part. Links are left out, and so are files on their way and names that no file of a
/// hub has.
pub(crate) struct FolderFiles {
    hub: PathBuf,
    /// The folders on the way, each with the names in it that are left; those of folders end with a slash.
    left: Vec<(String, std::vec::IntoIter<String>)>,
}

impl FolderFiles {
    /// The files below the folder `below` of the hub in `hub`.
    pub(crate) fn new(hub: PathBuf, below: &str) -> Self {
        let only = vec![format!("{}/", below.trim_end_matches('/'))];
        Self { hub, left: vec![(String::new(), only.into_iter())] }
    }

    /// The next files; none at the end.
    ///
    /// # Errors
    ///
    /// When a folder cannot be read.
    pub(crate) fn next_part(&mut self) -> Result<Vec<FileMeta>, FileError> {
        let mut found = Vec::new();
        while found.len() < PART
            && let Some((folder, names)) = self.left.last_mut()
        {
            let Some(name) = names.next() else {
                self.left.pop();
                continue;
            };
            let path = format!("{folder}{name}");
            if path.ends_with('/') {
                let path = path.trim_start_matches('/').to_owned();
                let names = names_in(&self.hub.join(&path))?.into_iter();
                self.left.push((path, names));
                continue;
            }
            let place = self.hub.join(&path);
            match fs::symlink_metadata(&place) {
                Ok(metadata) if metadata.is_file() && !is_staged_hub_file(&path) => {
                    found.push(meta(&metadata, path).at("look at", &place)?);
                }
                Ok(_) => {}
                // What another process removes meanwhile is not there.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// The names in a folder, in the order of the paths of the files that they lead to.
fn names_in(folder: &Path) -> Result<Vec<String>, FileError> {
    let mut names = Vec::new();
    for entry in fs::entries_if_there(folder)? {
        // Other names than texts are none of a hub's.
        let Ok(name) = entry.file_name().into_string() else { continue };
        match entry.file_type() {
            Ok(kind) => names.push(if kind.is_dir() { format!("{name}/") } else { name }),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(FileError::new("look at", entry.path(), error)),
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether a name is that of a file on its way, which a writer left half written if it died. Earlier writers gave it a number
/// after `#`.
pub(crate) fn is_staged_hub_file(path: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    fs::is_staged(path.rsplit('/').next().unwrap_or(path))
        || path.rsplit_once('#').is_some_and(|(_, number)| is_number(number))
}

/// The bytes of a file from `start`, exactly as many as `length`.
async fn read(mut file: File, start: u64, length: u64) -> io::Result<Bytes> {
    if length <= IN_PASSING {
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        match fs::read_cached_at(&file, start, &mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read.map(|()| bytes.into()),
        }
    }
    waiting(move || {
        file.seek(SeekFrom::Start(start))?;
        piece(&mut file, length)
    })
    .await
}

/// The next bytes of a file, exactly as many as `length`.
fn piece(file: &mut File, length: u64) -> io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length {
        Ok(bytes.into())
    } else {
        Err(ErrorKind::UnexpectedEof.into())
    }
}

/// The next bytes of a file in pieces. Each is read when the one before it was taken, and by another thread even if it is in memory:
/// meanwhile the one before it is sent.
fn pieces(file: File, length: u64) -> impl Stream<Item = Result<Bytes, StoreError>> {
    let next = |(mut file, left): (File, u64)| async move {
        if left == 0 {
            return Ok(None);
        }
        let read = waiting(move || {
            let length = left.min(PIECE);
            Ok((piece(&mut file, length)?, (file, left - length)))
        });
        read.await.map(Some).map_err(StoreError::new)
    };
    stream::try_unfold((file, length), next)
}

/// Does in a thread of its own what may wait for a disk.
async fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten()
}

/// What is known of a file.
fn meta(metadata: &Metadata, path: String) -> io::Result<FileMeta> {
    let mark = mark(metadata)?;
    Ok(FileMeta { path, modified: metadata.modified()?, size: metadata.len(), mark })
}

/// What tells one content of a file from another one: a file is never changed, but replaced by a new one.
pub(crate) fn mark(metadata: &Metadata) -> io::Result<FileMark> {
    let since = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (number, micros, size) = (number(metadata), since.as_micros(), metadata.len());
    Ok(FileMark { e_tag: Some(format!("\"{number:x}-{micros:x}-{size:x}\"")), version: None })
}

/// The number of a file in its file system.
#[cfg(unix)]
fn number(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

/// This system has none that can be asked for.
#[cfg(not(unix))]
fn number(_: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn found(hub: &Path, path: &str, wanted: &FileRequest) -> (FileMeta, Bytes) {
        let FileAnswer::Found(found) = get(hub, path, wanted).await.expect("can be read") else {
            panic!("{path} is there")
        };
        (found.meta.clone(), found.bytes().await.expect("can be read"))
    }

    fn listed(hub: &Path, below: &str) -> Vec<FileMeta> {
        let mut files = FolderFiles::new(hub.to_owned(), below);
        let parts = std::iter::from_fn(|| {
            let part = files.next_part().expect("can be listed");
            (!part.is_empty()).then_some(part)
        });
        parts.flatten().collect()
    }

    #[tokio::test]
    async fn a_file_is_known_as_its_writer_knows_it() {
        let hub = tempfile::tempdir().expect("there is room");
        let path = "packs/a/b.tgz";
        let mut marks = Vec::new();
        let (small, large) = (vec![7; 1_000], vec![7; 1_000_000 + (1 << 20)]);
        for content in [&small, &large, &small] {
            let put = fs::replace_durably(&hub.path().join(path), content).expect("can be written");
            let put = mark(&put).expect("has a time");
            let (meta, bytes) = found(hub.path(), path, &FileRequest::default()).await;
            assert_eq!(meta.mark, put);
            assert!(bytes == *content);
            assert_eq!(listed(hub.path(), "packs"), [meta]);

            let end = content.len() as u64;
            for range in [10..20, 900..end, end - 1..end] {
                let wanted = FileRequest { range: Some(range.clone()), ..FileRequest::default() };
                let (from, to) = (range.start as usize, range.end as usize);
                assert!(found(hub.path(), path, &wanted).await.1 == content[from..to]);
            }
            let wanted = FileRequest {
                known: put.e_tag.clone().into_iter().collect(),
                ..FileRequest::default()
            };
            assert!(matches!(get(hub.path(), path, &wanted).await, Ok(FileAnswer::Unchanged)));
            assert!(!marks.contains(&put), "each content has another mark");
            marks.push(put);
        }
    }

    #[test]
    fn files_on_their_way_and_links_are_not_listed() {
        let hub = tempfile::tempdir().expect("there is room");
        let odd = ["a/b.jsonl#1", "a/.mu-staged-abc123"];
        for path in ["a/b.jsonl", "a/b#x", "a/b/c.jsonl", "c.jsonl"].into_iter().chain(odd) {
            let path = hub.path().join(path);
            std::fs::create_dir_all(path.parent().expect("is below")).expect("is ours");
            std::fs::write(path, "x").expect("is ours");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("b.jsonl", hub.path().join("a/link")).expect("is ours");
            std::os::unix::fs::symlink("a", hub.path().join("all")).expect("is ours");
        }
        for (below, expected) in [
            ("", &["a/b#x", "a/b.jsonl", "a/b/c.jsonl", "c.jsonl"][..]),
            ("a", &["a/b#x", "a/b.jsonl", "a/b/c.jsonl"]),
            ("none", &[]),
        ] {
            let listed = listed(hub.path(), below);
            let paths: Vec<_> = listed.iter().map(|meta| meta.path.as_str()).collect();
            assert_eq!(paths, expected, "{below}");
        }
    }

    #[test]
    fn more_files_than_a_part_has_are_all_listed_in_the_order_of_their_paths() {
        let hub = tempfile::tempdir().expect("there is room");
        std::fs::create_dir(hub.path().join("a")).expect("is ours");
        let mut expected: Vec<String> =
            (0..2 * PART + 1).map(|number| format!("a/n{number}")).collect();
        for path in &expected {
            std::fs::write(hub.path().join(path), "").expect("is ours");
        }
        expected.sort_unstable();
        let listed = listed(hub.path(), "a").into_iter().map(|meta| meta.path);
        assert_eq!(listed.collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn only_files_are_found_and_no_link_is_followed() {
        let around = tempfile::tempdir().expect("there is room");
        let hub = around.path().join("hub");
        std::fs::create_dir_all(hub.join("index/a")).expect("is ours");
        std::fs::write(around.path().join("secret"), b"x").expect("is ours");
        let long = format!("index/{}", "x".repeat(300));
        for path in ["index", "index/a", "index/a/b", "b/c", &long] {
            let got = get(&hub, path, &FileRequest::default()).await;
            assert!(matches!(got, Ok(FileAnswer::Absent)), "{path}: {got:?}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink("../../secret", hub.join("index/b")).expect("is ours");
            symlink(around.path(), hub.join("index/all")).expect("is ours");
            symlink(&hub, around.path().join("link")).expect("is ours");
            for path in ["index/b", "index/all/secret", "index/all/hub/index/a"] {
                assert!(get(&hub, path, &FileRequest::default()).await.is_err(), "{path}");
            }
            let link = around.path().join("link");
            let got = get(&link, "none", &FileRequest::default()).await;
            assert!(matches!(got, Ok(FileAnswer::Absent)), "{got:?}");
        }
    }
}
