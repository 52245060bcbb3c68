//! How buckets are connected to: how long to wait for the metadata service of a cloud, and who learns what is sent.
//!
//! If no credentials are set, a machine in a cloud gets those of its role from a service with a local
//! address. Elsewhere, nobody answers there. A client that retries as often as for a bucket would make people
//! wait for half a minute before it says that credentials are missing.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

use crate::sending::{Sending, watched};
use crate::sign::Unsent;

/// The addresses of metadata services: one for Amazon and Azure, and Google's two names.
const SERVICES: [&str; 3] = ["169.254.169.254", "metadata.google.internal", "metadata"];

/// How often to try to connect; each attempt waits for a second at most. In some clusters, the service starts
/// a moment after the programs that need it.
const ATTEMPTS: u32 = 3;

/// Connects as usual, but gives up early if there is no metadata service.
#[derive(Debug)]
pub(crate) struct Patience {
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
pub enum NoCredentials {
    /// No metadata service answers.
    #[error("no credentials are set, and no cloud metadata service on this machine provides any")]
    Unreachable(#[source] HttpError),
    /// The metadata service gives none, with this status.
    #[error("no credentials are set, and the metadata service of this machine gives none ({0})")]
    Refused(String),
}

impl Patience {
    /// Creates this with a metadata service at a URL of the user's, and what reports how much of a file is
    /// sent.
    pub(crate) fn new(service: Option<String>, sending: Option<Sending>) -> Self {
        let url = service.and_then(|url| url::Url::parse(&url).ok());
        let service = url.and_then(|url| url.host_str().map(str::to_owned));
        Self { connector: ReqwestConnector::default(), service, sending }
    }
}

impl HttpConnector for Patience {
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
                        NoCredentials::Unreachable(error),
                    )),
                    _ => Err(error),
                }
            }
            Ok(response) if is_metadata && is_refusal(response.status().as_u16()) => {
                let refused = NoCredentials::Refused(response.status().to_string());
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
