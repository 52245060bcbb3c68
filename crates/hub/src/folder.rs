//! Reads the files of a hub that is a folder: in one task, and through no symbolic link.
//!
//! What object stores know of a file is known here in the same form, so readers need not tell them apart.
//! Writing is not done here.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use mu_provider::Folder;
use object_store::{
    Attributes, Error, Extensions, GetOptions, GetResult, GetResultPayload, ObjectMeta, path,
};

use crate::files::Got;

/// Up to this size, in bytes, a file is read at once: handing a small one to another thread takes longer than
/// reading it.
pub(crate) const SMALL: u64 = 1 << 20;

/// The bytes of a larger file that are read at once.
const PIECE: u64 = 256 << 10;

/// Reads the file at `path` of the hub in `folder`, or a part of it, under conditions. `folder` itself may be a
/// link.
///
/// # Errors
///
/// When it cannot be read, or when a part of `path` is a link.
pub(crate) fn get(folder: &Path, path: path::Path, options: &GetOptions) -> io::Result<Got> {
    let opened = Folder::open(folder).and_then(|folder| folder.open_file(path.as_ref()));
    let (mut file, metadata) = match opened {
        Ok(opened) => opened,
        // A name that is too long for a file is the name of none.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidFilename) => {
            return Ok(Got::Absent);
        }
        Err(error) => return Err(error),
    };
    let meta = meta(&metadata, path)?;
    match options.check_preconditions(&meta) {
        Err(Error::NotModified { .. }) => return Ok(Got::Unchanged),
        checked => checked?,
    }
    let range = match &options.range {
        Some(range) => range.as_range(meta.size).map_err(io::Error::other)?,
        None => 0..meta.size,
    };
    let length = range.end - range.start;
    if range.start > 0 {
        file.seek(SeekFrom::Start(range.start))?;
    }
    let payload = GetResultPayload::Stream(if options.head {
        stream::empty().boxed()
    } else if length <= SMALL {
        stream::iter([Ok(piece(&mut file, length)?)]).boxed()
    } else {
        pieces(file, length).boxed()
    });
    let (attributes, extensions) = (Attributes::default(), Extensions::default());
    Ok(Got::Found(Box::new(GetResult { payload, meta, range, attributes, extensions })))
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

/// The next bytes of a file in pieces. Each is read when the one before it was taken.
fn pieces(file: File, length: u64) -> impl Stream<Item = Result<Bytes, Error>> {
    let next = |(mut file, left): (File, u64)| async move {
        if left == 0 {
            return Ok(None);
        }
        let reading = tokio::task::spawn_blocking(move || {
            let length = left.min(PIECE);
            Ok((piece(&mut file, length)?, (file, left - length)))
        });
        let read = reading.await.map_err(io::Error::other).flatten();
        read.map(Some).map_err(|source| Error::Generic { store: "folder", source: source.into() })
    };
    stream::try_unfold((file, length), next)
}

/// What is known of a file, with the mark that `object_store` gives to the files it writes.
fn meta(metadata: &Metadata, location: path::Path) -> io::Result<ObjectMeta> {
    let modified = metadata.modified()?;
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
    let size = metadata.len();
    let e_tag = Some(format!("\"{:x}-{since:x}-{size:x}\"", number(metadata)));
    Ok(ObjectMeta { location, last_modified: modified.into(), size, e_tag, version: None })
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
    use object_store::local::LocalFileSystem;
    use object_store::{GetRange, ObjectStore as _, ObjectStoreExt as _};

    use super::*;

    fn got(hub: &Path, path: &str, options: &GetOptions) -> io::Result<Got> {
        get(hub, path::Path::parse(path).expect("is a path"), options)
    }

    async fn found(hub: &Path, path: &str, options: &GetOptions) -> (ObjectMeta, Vec<u8>) {
        let Got::Found(found) = got(hub, path, options).expect("can be read") else {
            panic!("{path} is there")
        };
        (found.meta.clone(), found.bytes().await.expect("can be read").to_vec())
    }

    #[tokio::test]
    async fn a_file_is_known_as_its_writer_knows_it() {
        let hub = tempfile::tempdir().expect("there is room");
        let store = LocalFileSystem::new_with_prefix(hub.path()).expect("is a folder");
        let (small, large) = (vec![7; 1_000], vec![7; 1_000_000 + (1 << 20)]);
        for content in [&small, &large] {
            let location = path::Path::from("packs/a/b.tgz");
            let put = store.put(&location, content.clone().into()).await.expect("can be written");
            let theirs = store.head(&location).await.expect("is there");
            let (meta, bytes) = found(hub.path(), "packs/a/b.tgz", &GetOptions::default()).await;
            assert_eq!((&meta, &meta.e_tag), (&theirs, &put.e_tag));
            assert!(bytes == *content);

            for range in [GetRange::Bounded(10..20), GetRange::Offset(900), GetRange::Suffix(1)] {
                let options = GetOptions { range: Some(range), ..GetOptions::default() };
                let theirs = store.get_opts(&location, options.clone()).await.expect("is there");
                let theirs = theirs.bytes().await.expect("can be read");
                assert!(found(hub.path(), "packs/a/b.tgz", &options).await.1 == theirs);
            }
            let options = GetOptions { if_none_match: put.e_tag, ..GetOptions::default() };
            assert!(matches!(got(hub.path(), "packs/a/b.tgz", &options), Ok(Got::Unchanged)));
        }
    }

    #[test]
    fn only_files_are_found_and_no_link_is_followed() {
        let around = tempfile::tempdir().expect("there is room");
        let hub = around.path().join("hub");
        std::fs::create_dir_all(hub.join("index/a")).expect("is ours");
        std::fs::write(around.path().join("secret"), b"x").expect("is ours");
        let long = format!("index/{}", "x".repeat(300));
        for path in ["index", "index/a", "index/a/b", "b/c", &long] {
            let got = got(&hub, path, &GetOptions::default());
            assert!(matches!(got, Ok(Got::Absent)), "{path}: {got:?}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink("../../secret", hub.join("index/b")).expect("is ours");
            symlink(around.path(), hub.join("index/all")).expect("is ours");
            symlink(&hub, around.path().join("link")).expect("is ours");
            for path in ["index/b", "index/all/secret", "index/all/hub/index/a"] {
                assert!(got(&hub, path, &GetOptions::default()).is_err(), "{path}");
            }
            let link = around.path().join("link");
            assert!(matches!(got(&link, "none", &GetOptions::default()), Ok(Got::Absent)));
        }
    }
}
