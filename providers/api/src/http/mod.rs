//! The HTTP client that the providers share, and the rules that hold for all of them.
//!
//! Plain http goes to this machine only, unless it was allowed for a registry. A token goes only to
//! the host and port that it was stored for. Redirects are followed here, one by one, so that each is
//! held against the same rules. What can pass by itself (a refused connection, a 503) is tried again.
//! No registry's protocol is known here, and nothing connects before the first request.

mod credentials;
mod request;
mod response;
mod retry;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::blocking::Client;

pub use self::credentials::{
    Authorization, Credentials, NoCredentials, Secret, TOKEN_PREFIX, token_variable,
};
pub use self::request::{Method, Request};
pub use self::response::Response;
pub use self::retry::Failure;
use crate::{ErrorKind, ProviderError, SafeUrl};

/// How the client behaves.
#[derive(Clone)]
pub struct HttpOptions {
    /// What it calls itself.
    pub user_agent: String,
    /// Whether every request is refused before anything is connected to.
    pub offline: bool,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long an answer may keep silent: before its first byte, and between any two.
    pub read_timeout: Duration,
    /// How often a request is repeated after it failed for a reason that may pass.
    pub retries: usize,
    /// The pause before the first repetition; each one after it is about twice as long.
    pub first_delay: Duration,
    /// The longest pause, also where the server asks for a longer one.
    pub longest_delay: Duration,
    /// How the client pauses. Tests give one that only takes notes.
    pub sleep: Arc<dyn Fn(Duration) + Send + Sync>,
    /// Where tokens come from.
    pub credentials: Arc<dyn Credentials>,
}

impl Default for HttpOptions {
    #[expect(clippy::disallowed_methods, reason = "a server that asks for a pause gets one")]
    fn default() -> Self {
        Self {
            user_agent: concat!("mu/", env!("CARGO_PKG_VERSION")).to_owned(),
            offline: false,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            retries: 3,
            first_delay: Duration::from_millis(250),
            longest_delay: Duration::from_secs(60),
            sleep: Arc::new(std::thread::sleep),
            credentials: Arc::new(NoCredentials),
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpOptions")
            .field("user_agent", &self.user_agent)
            .field("offline", &self.offline)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// The client. One for the whole process, shared by all providers and threads, so that they share
/// connections.
#[derive(Debug)]
pub struct Http {
    options: HttpOptions,
    /// For the network: trusts the system's roots, goes through its proxies.
    network: OnceLock<Client>,
    /// For plain http to this machine: needs no roots, and no proxy may see what is sent.
    loopback: OnceLock<Client>,
}

impl Http {
    /// A client that has not connected to anything, nor read any certificate.
    pub fn new(options: HttpOptions) -> Arc<Self> {
        Arc::new(Self { options, network: OnceLock::new(), loopback: OnceLock::new() })
    }

    /// What it was made with.
    pub fn options(&self) -> &HttpOptions {
        &self.options
    }

    /// A request that reads `url`.
    pub fn get(&self, url: &SafeUrl) -> Request<'_> {
        self.request(Method::GET, url)
    }

    /// A request that posts to `url`.
    pub fn post(&self, url: &SafeUrl) -> Request<'_> {
        self.request(Method::POST, url)
    }

    /// A request of any kind.
    pub fn request(&self, method: Method, url: &SafeUrl) -> Request<'_> {
        Request::new(self, method, url.clone())
    }

    /// The client for one URL, made when it is first needed.
    fn client(&self, url: &SafeUrl) -> Result<&Client, ProviderError> {
        let local = url.scheme() == "http" && url.is_loopback();
        let slot = if local { &self.loopback } else { &self.network };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let client = self.build(local).map_err(|error| {
            ProviderError::new(ErrorKind::Network, format!("cannot set up TLS to reach `{url}`"))
                .because(retry::root_cause(&error))
                .hint("install the package `ca-certificates`, or name a file of trusted certificates in SSL_CERT_FILE")
        })?;
        // Two threads may both have made one; the first stays.
        Ok(slot.get_or_init(|| client))
    }

    fn build(&self, local: bool) -> Result<Client, reqwest::Error> {
        // An error means that this process has a provider of cryptography already, which will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .user_agent(&self.options.user_agent)
            .connect_timeout(self.options.connect_timeout)
            .timeout(self.options.read_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false);
        if local { builder.no_proxy().tls_certs_only([]) } else { builder }.build()
    }
}
