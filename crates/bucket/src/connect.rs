//! How buckets are connected to: how long to wait for the metadata service of a cloud, and who learns what is sent.
//!
//! If no credentials are set, a machine in a cloud gets those of its role from a service with a local
//! address. Elsewhere, nobody answers there. A client that retries as often as for a bucket would make people
//! wait for half a minute before it says that credentials are missing.
//!
//! [`Sending`] says how much of a large file is on its way to a bucket. The client of the object stores sends a body piece by piece, and drops each when the connection has taken it. That is what
//! is counted. Files that are sent in a moment are not worth a word.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use object_store::client::HttpRequestBody;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use object_store::{ClientOptions, PutPayload};

use crate::sign::Unsent;

/// The addresses of metadata services: one for Amazon and Azure, and Google's two names.
const SERVICES: [&str; 3] = ["169.254.169.254", "metadata.google.internal", "metadata"];

/// How often to try to connect; each attempt waits for a second at most. In some clusters, the service starts
/// a moment after the programs that need it.
const ATTEMPTS: u32 = 3;

/// Connects as usual, but gives up early if there is no metadata service.
#[derive(Debug)]
pub(crate) struct ImpatientConnector {
    connector: ReqwestConnector,
    /// The service that the user names.
    service: Option<String>,
    /// What reports how much of a file is sent.
    sending: Option<Sending>,
}

/// A client that counts how often it could not reach a metadata service.
#[derive(Debug)]
struct Client {
    client: HttpClient,
    service: Option<String>,
    sending: Option<Sending>,
    failed: AtomicU32,
}

/// There are no credentials, and no service that provides them.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsNotProvided {
    /// No metadata service answers.
    #[error("no credentials are set, and no cloud metadata service on this machine provides any")]
    Unreachable(#[source] HttpError),
    /// The metadata service gives none, with this status.
    #[error("no credentials are set, and the metadata service of this machine gives none ({0})")]
    Refused(String),
}

impl ImpatientConnector {
    /// Creates this with a metadata service at a URL of the user's, and what reports how much of a file is
    /// sent.
    pub(crate) fn new(service: Option<String>, sending: Option<Sending>) -> Self {
        let url = service.and_then(|url| url::Url::parse(&url).ok());
        let service = url.and_then(|url| url.host_str().map(str::to_owned));
        Self { connector: ReqwestConnector::default(), service, sending }
    }
}

impl HttpConnector for ImpatientConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.connector.connect(options)?;
        let (service, sending) = (self.service.clone(), self.sending.clone());
        Ok(HttpClient::new(Client { client, service, sending, failed: AtomicU32::new(0) }))
    }
}

impl Client {
    fn is_metadata(&self, request: &HttpRequest) -> bool {
        let host = request.uri().host();
        host.is_some_and(|host| SERVICES.contains(&host) || self.service.as_deref() == Some(host))
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let Some(unsent) = request.extensions().get::<Unsent>() {
            return Err(unsent.take(&request));
        }
        let is_metadata = self.is_metadata(&request);
        let request = match &self.sending {
            None => request,
            Some(sending) => {
                let (parts, body) = request.into_parts();
                HttpRequest::from_parts(parts, watched(body, sending).await?)
            }
        };
        let result = self.client.execute(request).await;
        match result {
            Err(error) if is_metadata && is_unreachable(&error) => {
                match self.failed.fetch_add(1, Ordering::Relaxed) + 1 {
                    // An error of no known kind is not retried.
                    ATTEMPTS.. => Err(HttpError::new(
                        HttpErrorKind::Unknown,
                        CredentialsNotProvided::Unreachable(error),
                    )),
                    _ => Err(error),
                }
            }
            Ok(response) if is_metadata && is_refusal(response.status().as_u16()) => {
                let refused = CredentialsNotProvided::Refused(response.status().to_string());
                Err(HttpError::new(HttpErrorKind::Unknown, refused))
            }
            result => result,
        }
    }
}

/// Whether this answer means that there are no credentials, however often they are requested. A missing page
/// may mean that the service uses an older protocol.
fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 403)
}

fn is_unreachable(error: &HttpError) -> bool {
    matches!(error.kind(), HttpErrorKind::Connect | HttpErrorKind::Timeout)
}

/// How much is handed to the connection at once, in bytes.
const PIECE: usize = 64 << 10;

/// Shorter bodies are not watched, in bytes.
const LARGE: usize = 512 << 10;

/// Takes how many bytes of how many are on their way. It is called by many threads, so it must be quick.
#[derive(Clone)]
pub struct Sending(pub Arc<dyn Fn(u64, u64) + Send + Sync>);

impl fmt::Debug for Sending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sending")
    }
}

/// A part of a body; it is on its way when it is dropped.
struct Piece {
    bytes: Bytes,
    done: Arc<AtomicU64>,
    total: u64,
    sending: Sending,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let length = self.bytes.len() as u64;
        let done = self.done.fetch_add(length, Ordering::Relaxed) + length;
        (self.sending.0)(done, self.total);
    }
}

/// The body, which then reports how much of it is sent.
async fn watched(body: HttpRequestBody, sending: &Sending) -> Result<HttpRequestBody, HttpError> {
    if body.content_length() < LARGE {
        return Ok(body);
    }
    let mut left = body.collect().await?.to_bytes();
    let (done, total) = (Arc::default(), left.len() as u64);
    let mut pieces = Vec::with_capacity(left.len() / PIECE + 1);
    while !left.is_empty() {
        let bytes = left.split_to(left.len().min(PIECE));
        let (done, sending) = (Arc::clone(&done), sending.clone());
        pieces.push(Bytes::from_owner(Piece { bytes, done, total, sending }));
    }
    Ok(pieces.into_iter().collect::<PutPayload>().into())
}
