//! Signs the requests of mu's HTTP client for files in buckets.
//!
//! The client of the object stores knows how each store wants its requests signed. It is asked for a file, with a mark
//! ([`Unsent`]) on the request; `connect.rs` takes what would be sent, and sends nothing. So reading needs the same
//! settings and credentials as publishing, and every request is sent by mu's own client, under its rules. What the client
//! itself needs first, such as the credentials of a machine in a cloud, is sent by it.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use mu_provider::http::{HeaderMap, Signed, Signer};
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, ProviderError, SafeUrl, causes};
use object_store::client::{HttpError, HttpErrorKind, HttpRequest};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use tokio::runtime::{Builder, Runtime};

use crate::connect::CredentialsNotProvided;
use crate::{Bucket, credentials_hint};

/// The buckets of a run, each of which is opened when it is first needed.
pub struct Buckets {
    /// The variables of the environment.
    variables: Vec<(String, String)>,
    open: Mutex<HashMap<String, Arc<Mutex<Opened>>>>,
}

/// An open bucket.
struct Opened {
    bucket: Bucket,
    store: Arc<dyn ObjectStore>,
    /// Where the client of the store gets credentials.
    runtime: Runtime,
    /// Why there are no credentials, once that is known.
    without: Option<String>,
}

/// The mark of a request that is not sent, and the place for it.
#[derive(Clone, Default)]
pub(crate) struct Unsent(Arc<Mutex<Option<(String, HeaderMap)>>>);

/// The request was taken instead of being sent.
#[derive(Debug, thiserror::Error)]
#[error("the request was signed")]
struct Taken;

impl Unsent {
    /// Takes a request; the error ends the client's work.
    pub(crate) fn take(&self, request: &HttpRequest) -> HttpError {
        *lock(&self.0) = Some((request.uri().to_string(), request.headers().clone()));
        // An error of no known kind is not retried.
        HttpError::new(HttpErrorKind::Unknown, Taken)
    }
}

// The variables are left out, because some of them are secrets.
mu_provider::debug_fields!(Buckets {});

impl Buckets {
    /// Creates a signer with no open bucket. `variables` are those of the environment.
    pub fn new<'variable>(
        variables: impl IntoIterator<Item = (&'variable str, &'variable str)>,
    ) -> Self {
        let variables = variables.into_iter();
        let variables =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { variables, open: Mutex::default() }
    }

    /// The bucket of `url`, opened once.
    fn bucket(&self, url: &SafeUrl) -> Result<Arc<Mutex<Opened>>, ProviderError> {
        let mut root = url.as_url().clone();
        root.set_path("");
        let mut open = lock(&self.open);
        if let Some(opened) = open.get(root.as_str()) {
            return Ok(Arc::clone(opened));
        }
        let wrong = |reason: String| {
            let text = format!("`{url}` cannot be read");
            hinted(ProviderError::new(ErrorKind::Refused, text).because(reason), url)
        };
        let variables = self.variables.iter().map(|(name, value)| (&**name, &**value));
        let bucket = Bucket::parse(root.as_str(), variables).map_err(wrong)?;
        let bucket = bucket.ok_or_else(|| wrong("it is not in a bucket".to_owned()))?;
        let store = bucket.open().map_err(wrong)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| wrong(error.to_string()))?;
        let opened = Arc::new(Mutex::new(Opened { bucket, store, runtime, without: None }));
        open.insert(root.as_str().to_owned(), Arc::clone(&opened));
        Ok(opened)
    }
}

impl Signer for Buckets {
    fn sign(
        &self,
        url: &SafeUrl,
        headers: &[(&'static str, String)],
    ) -> Result<Signed, ProviderError> {
        let opened = self.bucket(url)?;
        // Others wait: they need the same credentials.
        let mut opened = lock(&opened);
        let public = opened.bucket.public_variable();
        let failed = |reason: String| {
            let text = format!("`{url}` was not requested");
            let error = hinted(ProviderError::new(ErrorKind::Auth, text).because(reason), url);
            error.hint(format!("if everyone may read the bucket, set {public}=true"))
        };
        if let Some(reason) = &opened.without {
            return Err(failed(reason.clone()));
        }
        let path = Path::from_url_path(url.as_url().path()).map_err(|error| {
            let text = format!("`{url}` is refused: it is not a name in a bucket");
            ProviderError::new(ErrorKind::Refused, text).because(error.to_string())
        })?;
        let unsent = Unsent::default();
        let of =
            |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let mut options = GetOptions {
            if_none_match: of("if-none-match").cloned(),
            range: of("range").and_then(|range| in_bytes(range)),
            ..GetOptions::default()
        };
        options.extensions.insert(unsent.clone());
        let answer = opened.runtime.block_on(opened.store.get_opts(&path, options));
        let taken = lock(&unsent.0).take();
        let Some((wire, headers)) = taken else {
            let reason = answer.err().map(|error| reason(&error)).unwrap_or_default();
            opened.without = Some(reason.clone());
            return Err(failed(reason));
        };
        let to = SafeUrl::parse(&wire).map_err(|error| failed(error.to_string()))?;
        let is_signed = headers.contains_key("authorization") || to.as_url().query().is_some();
        let origin = is_signed.then(|| match opened.bucket.variable() {
            Some(name) => format!("`{name}`"),
            None => "this machine's role".to_owned(),
        });
        Ok(Signed { url: to, headers, origin })
    }

    fn hint(&self, url: &SafeUrl) -> Option<String> {
        credentials_hint(url.as_url().as_str()).map(str::to_owned)
    }
}

fn hinted(error: ProviderError, url: &SafeUrl) -> ProviderError {
    credentials_hint(url.as_url().as_str()).into_iter().fold(error, ProviderError::hint)
}

/// Why the client of the store has not come to the request itself: mostly, it has no credentials.
fn reason(error: &(dyn Error + 'static)) -> String {
    let known = causes(error).find(|cause| cause.is::<CredentialsNotProvided>());
    known.or_else(|| causes(error).last()).unwrap_or(error).to_string()
}

/// The range of a header, such as `bytes=10-` or `bytes=10-19`.
fn in_bytes(header: &str) -> Option<GetRange> {
    let (from, to) = header.strip_prefix("bytes=")?.split_once('-')?;
    let from = from.parse().ok()?;
    Some(match to {
        "" => GetRange::Offset(from),
        to => GetRange::Bounded(from..to.parse::<u64>().ok()?.checked_add(1)?),
    })
}
