//! Where a hub is kept: a folder of this machine, or a bucket that speaks S3.
//!
//! Nothing is read or written here, and nothing is taken from the environment: whoever opens a place
//! passes in what the environment says.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore};

use crate::HubError;

/// After how long a write that left its marker in a bucket counts as broken off.
const BROKEN_OFF_AFTER: Duration = Duration::from_secs(600);

/// A place that can hold a hub.
#[derive(Clone)]
pub struct Place {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) broken_off_after: Duration,
}

/// What kind of place it is.
#[derive(Clone)]
pub(crate) enum Kind {
    /// A folder of this machine, where writers take turns.
    Folder(PathBuf),
    /// A store that refuses a write if what it replaces has changed.
    Store(Arc<dyn ObjectStore>),
}

impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Place").field(&self.name).finish()
    }
}

impl Place {
    /// The place that `text` names: `s3://BUCKET/PREFIX`, `file:///FOLDER`, or a folder, seen from `current`.
    ///
    /// `variables` are those of the environment; of them, only those that begin with `AWS_` are
    /// looked at, and only for a bucket: credentials, `AWS_REGION`, `AWS_ENDPOINT_URL`, and so on.
    ///
    /// # Errors
    ///
    /// When the text names no such place.
    pub fn parse<'variable>(
        text: &str,
        current: &Path,
        variables: impl IntoIterator<Item = (&'variable str, &'variable str)>,
    ) -> Result<Self, HubError> {
        if let Some(rest) = text.strip_prefix("s3://") {
            return Self::bucket(text, rest, variables);
        }
        let wrong =
            |reason: &str| HubError::Place { place: text.to_owned(), reason: reason.into() };
        match text.split_once("://") {
            Some(("file", _)) => {
                let url = url::Url::parse(text).map_err(|_| wrong("it is no URL"))?;
                let path = url.to_file_path().map_err(|()| wrong("it names no local folder"))?;
                Ok(Self::folder(path))
            }
            Some(_) => Err(wrong("expected a folder, or s3://BUCKET/PREFIX")),
            None if text.is_empty() => Err(wrong("it is empty")),
            None => Ok(Self::folder(current.join(text))),
        }
    }

    /// A folder of this machine, which need not be there yet.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            name: path.display().to_string(),
            kind: Kind::Folder(path),
            broken_off_after: Duration::ZERO,
        }
    }

    /// An object store that the caller has opened. It must know conditional writes.
    pub fn store(store: Arc<dyn ObjectStore>, name: impl Into<String>) -> Self {
        Self { kind: Kind::Store(store), name: name.into(), broken_off_after: BROKEN_OFF_AFTER }
    }

    /// Sets after how long a write that left its marker in an object store counts as broken off, and
    /// is completed by the next one. In a folder nobody else writes at the same time, so there a
    /// marker that is found always does.
    #[must_use]
    pub fn broken_off_after(mut self, age: Duration) -> Self {
        if matches!(self.kind, Kind::Store(_)) {
            self.broken_off_after = age;
        }
        self
    }

    fn bucket<'variable>(
        text: &str,
        rest: &str,
        variables: impl IntoIterator<Item = (&'variable str, &'variable str)>,
    ) -> Result<Self, HubError> {
        let wrong = |reason: String| HubError::Place { place: text.to_owned(), reason };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() || bucket.contains(['@', '?', '#']) {
            return Err(wrong("expected s3://BUCKET/PREFIX".to_owned()));
        }
        // The client's TLS has no other way to learn which cryptography it is to use. That another
        // part of the process has said so already is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = AmazonS3Builder::new();
        let mut options = ClientOptions::new();
        for (name, value) in variables {
            let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() else { continue };
            if name.starts_with("AWS_") && !value.is_empty() {
                builder = builder.with_config(key, value);
            }
            // A server on this machine, as tests and developers run one, has no certificate.
            if name.starts_with("AWS_ENDPOINT") && is_loopback(value) {
                options = options.with_allow_http(true);
            }
        }
        let store = builder
            .with_bucket_name(bucket)
            .with_client_options(options)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        let store: Arc<dyn ObjectStore> = match prefix.trim_matches('/') {
            "" => Arc::new(store),
            prefix => {
                let prefix = object_store::path::Path::parse(prefix)
                    .map_err(|error| wrong(error.to_string()))?;
                Arc::new(PrefixStore::new(store, prefix))
            }
        };
        Ok(Self::store(store, text.trim_end_matches('/')))
    }
}

/// Whether plain http to `url` leaves this machine nowhere.
fn is_loopback(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else { return false };
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
