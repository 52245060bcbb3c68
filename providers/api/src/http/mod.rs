//! The HTTP client that the providers share, and the rules that hold for all of them.
//!
//! Plain http goes to this machine only, unless it was allowed for a registry. A token goes only to
//! the host and port that it was stored for. Redirects are followed here, one by one, so that each is
//! held against the same rules. What can pass by itself (a refused connection, a 503) is tried again.
//! No registry's protocol is known here, and nothing connects before the first request.

// What comes from others leads to no place that nobody looked at.
#![deny(clippy::indexing_slicing)]

mod credentials;
mod event;
mod exchange;
mod guard;
mod proxies;
mod request;
mod response;
mod retry;
mod rules;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use reqwest::Client;
use url::Origin;

pub use self::credentials::{
    Authorization, Credentials, NoCredentials, Secret, TOKEN_PREFIX, or_variable, token_variable,
};
pub use self::event::{Headers, RequestEvent, Watch};
use self::exchange::{Exchange, Pending};
pub use self::guard::Guard;
pub use self::proxies::Proxies;
pub use self::request::{Method, Request};
pub use self::response::Response;
pub use self::retry::Failure;
use self::retry::Waits;
pub use self::rules::check_lead;
use crate::threads::lock;
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
    /// The least that must come of an answer, in bytes a second over [`HttpOptions::read_timeout`].
    pub slowest: u64,
    /// How many requests are sent at most.
    pub most_requests: usize,
    /// How many requests that nobody waits for yet are on their way at once; see [`Request::ahead`].
    pub ahead: usize,
    /// How often a request is repeated after it failed for a reason that may pass.
    pub retries: usize,
    /// The pause before the first repetition; each one after it is about twice as long.
    pub first_delay: Duration,
    /// The longest pause, even if the server requests a longer one.
    pub longest_delay: Duration,
    /// How long servers that ask for pauses are waited for at most, all together. What is waited for at the same time counts
    /// once.
    pub longest_wait: Duration,
    /// How the client pauses. Tests give one that only takes notes.
    pub sleep: Arc<dyn Fn(Duration) + Send + Sync>,
    /// Where tokens come from.
    pub credentials: Arc<dyn Credentials>,
    /// The observer of requests.
    pub watch: Option<Watch>,
    /// The proxies that the environment names, as messages call them.
    pub proxies: Proxies,
}

impl Default for HttpOptions {
    #[expect(clippy::disallowed_methods, reason = "a server that asks for a pause gets one")]
    fn default() -> Self {
        Self {
            user_agent: concat!("mu/", env!("CARGO_PKG_VERSION")).to_owned(),
            offline: false,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            slowest: 10,
            most_requests: 1_000_000,
            ahead: 16,
            retries: 3,
            first_delay: Duration::from_millis(250),
            longest_delay: Duration::from_secs(60),
            longest_wait: Duration::from_secs(300),
            sleep: Arc::new(std::thread::sleep),
            credentials: Arc::new(NoCredentials),
            watch: None,
            proxies: Proxies::default(),
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
            .field("most_requests", &self.most_requests)
            .finish_non_exhaustive()
    }
}

/// The client. One for the whole process, shared by all providers and threads, so that they share
/// connections.
#[derive(Debug)]
pub struct Http {
    options: HttpOptions,
    /// Requests that were sent before anything waits for them.
    ahead: Mutex<HashMap<SafeUrl, Pending>>,
    /// How many requests were sent.
    sent: AtomicUsize,
    /// The servers that required a token: reads send it only to these.
    asked: Mutex<HashSet<Origin>>,
    /// How long servers were waited for.
    waits: Mutex<Waits>,
    exchange: OnceLock<io::Result<Exchange>>,
    /// For the network: trusts the system's roots, goes through its proxies.
    network: OnceLock<reqwest::Result<Client>>,
    /// For plain http to this machine: needs no roots, and no proxy may see what is sent.
    loopback: OnceLock<reqwest::Result<Client>>,
}

impl Http {
    /// A client that has not connected to anything, nor read any certificate.
    pub fn new(options: HttpOptions) -> Arc<Self> {
        Arc::new(Self {
            options,
            ahead: Mutex::default(),
            sent: AtomicUsize::new(0),
            asked: Mutex::default(),
            waits: Mutex::default(),
            exchange: OnceLock::new(),
            network: OnceLock::new(),
            loopback: OnceLock::new(),
        })
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

    fn ahead(&self) -> MutexGuard<'_, HashMap<SafeUrl, Pending>> {
        lock(&self.ahead)
    }

    /// The client for one URL, and what moves its bytes; made when they are first needed.
    fn client(&self, url: &SafeUrl) -> Result<(&Exchange, &Client), ProviderError> {
        let local = url.scheme() == "http" && url.is_loopback();
        let client = if local { &self.loopback } else { &self.network };
        let start = || Exchange::start(self.options.ahead);
        let exchange = self.exchange.get_or_init(start).as_ref().map_err(|error| {
            ProviderError::new(ErrorKind::Io, format!("cannot start a thread to reach `{url}`"))
                .because(error.to_string())
        })?;
        let client = client.get_or_init(|| self.build(local)).as_ref().map_err(|error| {
            ProviderError::new(ErrorKind::Network, format!("cannot set up TLS to reach `{url}`"))
                .because(retry::root_cause(error))
                .hint("install the package `ca-certificates`, or name a file of trusted certificates in SSL_CERT_FILE")
        })?;
        Ok((exchange, client))
    }

    fn build(&self, local: bool) -> reqwest::Result<Client> {
        // An error means that this process has a provider of cryptography already, which will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .user_agent(&self.options.user_agent)
            .connect_timeout(self.options.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false);
        if local { builder.no_proxy().tls_certs_only([]) } else { builder }.build()
    }
}
