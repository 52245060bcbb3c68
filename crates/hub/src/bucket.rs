//! The files of a hub in a bucket of an object store, in the terms of `files.rs`.
//!
//! A bucket refuses a write whose condition does not hold, so nobody waits for a turn here.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    UpdateVersion,
};

use crate::HubError;
use crate::error::StoreError;
use crate::file::{FileAnswer, FileBytes, FileContent, FileMark, FileMeta, FileRequest, Seen};
use crate::place::Opening;

/// A bucket that holds a hub.
#[derive(Debug, Clone)]
pub(crate) struct BucketFiles(Arc<dyn ObjectStore>);

impl BucketFiles {
    /// Opens the bucket of the hub that users call `name`. Sends no request yet.
    pub(crate) fn open(opening: &Opening, name: &str) -> Result<Self, HubError> {
        match opening {
            Opening::Named(bucket) => bucket
                .open()
                .map(Self)
                .map_err(|reason| HubError::Place { place: name.to_owned(), reason }),
            Opening::Opened(store) => Ok(Self(Arc::clone(store))),
        }
    }

    pub(crate) async fn get(
        &self,
        path: &str,
        wanted: FileRequest,
    ) -> Result<FileAnswer, StoreError> {
        let options = GetOptions {
            if_none_match: (!wanted.known.is_empty()).then(|| wanted.known.join(", ")),
            range: wanted.range.map(Into::into),
            head: wanted.is_head,
            ..GetOptions::default()
        };
        match self.0.get_opts(&parsed(path)?, options).await {
            Ok(found) => {
                let (meta, range) = (meta(found.meta.clone()), found.range.clone());
                let content =
                    FileBytes::Pieces(found.into_stream().map_err(StoreError::new).boxed());
                Ok(FileAnswer::Found(Box::new(FileContent { meta, range, content })))
            }
            Err(Error::NotFound { .. }) => Ok(FileAnswer::Absent),
            Err(Error::NotModified { .. }) => Ok(FileAnswer::Unchanged),
            Err(error) => Err(StoreError::new(error)),
        }
    }

    pub(crate) async fn write(&self, path: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.0.put(&parsed(path)?, bytes.into()).await.map(drop).map_err(StoreError::new)
    }

    /// Writes a file if it has not changed since it was seen; returns what is there then.
    pub(crate) async fn replace(
        &self,
        path: &str,
        seen: &Seen,
        bytes: Bytes,
    ) -> Result<Seen, StoreError> {
        let mode = match seen.clone() {
            None => PutMode::Create,
            Some(FileMark { e_tag, version }) => PutMode::Update(UpdateVersion { e_tag, version }),
        };
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.0.put_opts(&parsed(path)?, bytes.into(), options).await {
            Ok(put) => Ok(Some(FileMark { e_tag: put.e_tag, version: put.version })),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(None),
            Err(error) => Err(StoreError::new(error)),
        }
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), StoreError> {
        match self.0.delete(&parsed(path)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::new(error)),
        }
    }

    /// The files below a folder of the hub, in the order of the store, one page after another.
    pub(crate) fn list(
        &self,
        below: &str,
    ) -> Result<BoxStream<'static, Result<FileMeta, StoreError>>, StoreError> {
        let path = Path::parse(below).map_err(|error| StoreError::new(Error::from(error)))?;
        let prefix = (!below.is_empty()).then_some(&path);
        Ok(self.0.list(prefix).map_ok(meta).map_err(StoreError::new).boxed())
    }
}

fn parsed(path: &str) -> Result<Path, StoreError> {
    Path::parse(path).map_err(|error| StoreError::new(Error::from(error)))
}

fn meta(object: ObjectMeta) -> FileMeta {
    FileMeta {
        path: object.location.into(),
        modified: object.last_modified.into(),
        size: object.size,
        mark: FileMark { e_tag: object.e_tag, version: object.version },
    }
}
