//! The HTTP client that the providers share, and the rules for all of them.
//!
//! Plain http goes only to this machine, unless a registry allows it. `credentials.rs` decides where the user's secrets
//! may go. Files in buckets are requested with signatures. Redirects are followed here, one by one, so that each of them obeys the same
//! rules. Temporary failures (a refused connection, a 503) are retried. A server that cannot be reached is given up once, for the whole run, and one
//! that is asked too often is asked more slowly, by all threads. This client does not know any
//! registry's protocol, and does not connect before the first request.

// Data from others must not lead to an index out of bounds.
#![deny(clippy::indexing_slicing)]

mod bucket;
mod connection;
mod credentials;
mod event;
mod exchange;
mod pace;
mod request;
mod response;
mod retry;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use reqwest::Client;
use url::Origin;

pub use self::bucket::{Signed, Signer};
pub use self::connection::{Connection, NamedProxy, Proxies, Way};
use self::credentials::AuthorizationScheme;
pub use self::credentials::{
    AskedServer, Authorization, Credential, Credentials, Guard, Header, NoCredentials, Recipient,
    Released, Secret, TOKEN_PREFIX, TokenHosts, Withheld, may_receive, names_of, or_variable,
    token_variable, ways_in,
};
pub use self::event::{Headers, RequestEvent, Watch};
use self::exchange::{Exchange, Pending, PublicNames};
use self::pace::Paces;
pub use self::request::{Method, Request, is_authorization};
pub use self::response::{
    REDIRECTING, Response, TOO_LARGE, because_of_web_page, begins_web_page, elsewhere,
};
pub use self::retry::Failure;
use self::retry::{Unreachable, Waits};
pub use crate::check_lead;
use crate::threads::lock;
use crate::{ErrorKind, ProviderError, SafeUrl};
pub use reqwest::header::HeaderMap;

/// How the client behaves.
#[derive(Clone)]
pub struct HttpOptions {
    /// What it calls itself.
    pub user_agent: String,
    /// Whether every request is refused before anything is connected to.
    pub offline: bool,
    /// How long it may take to connect.
    pub connect_timeout: Duration,
    /// How long an answer may be silent: before its first byte, and between any two bytes.
    pub read_timeout: Duration,
    /// The lowest speed of an answer, in bytes per second over [`HttpOptions::read_timeout`].
    pub slowest: u64,
    /// How many requests are sent at most.
    pub most_requests: usize,
    /// How many requests that nobody waits for yet may be in progress at once; see [`Request::ahead`].
    pub ahead: usize,
    /// How often a request is repeated after a temporary failure.
    pub retries: usize,
    /// The pause before the first repetition. Each later one is about twice as long.
    pub first_delay: Duration,
    /// The longest pause, even if the server requests a longer one.
    pub longest_delay: Duration,
    /// The longest total time to wait for servers that ask for pauses. Waits at the same time count once.
    pub longest_wait: Duration,
    /// How the client pauses. Tests give one that only takes notes.
    pub sleep: Arc<dyn Fn(Duration) + Send + Sync>,
    /// The clock by which pauses are measured.
    pub now: Arc<dyn Fn() -> Instant + Send + Sync>,
    /// Where the user's secrets come from.
    pub credentials: Arc<dyn Credentials>,
    /// Which hosts may be named for tokens.
    pub token_hosts: TokenHosts,
    /// The only server that is asked, if it is only one: what it leads to elsewhere, by a redirect or a URL, is refused. A redirect to
    /// what everyone can reach is followed for [`Request::compared`] answers, without credentials.
    pub only: Option<SafeUrl>,
    /// Signs requests for files in buckets, which are refused without it.
    pub buckets: Option<Arc<dyn Signer>>,
    /// The observer of requests.
    pub watch: Option<Watch>,
    /// The proxies that the environment names.
    pub proxies: Proxies,
    /// How the user has set up the way to the server of a URL.
    pub ways: Arc<dyn Fn(&SafeUrl) -> Way + Send + Sync>,
    /// The variables that name trusted certificates, with what they name, as messages call them.
    pub certificates: Option<String>,
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
            now: Arc::new(Instant::now),
            credentials: Arc::new(NoCredentials),
            token_hosts: TokenHosts::default(),
            only: None,
            buckets: None,
            watch: None,
            proxies: Proxies::default(),
            ways: Arc::new(|_| Way::default()),
            certificates: None,
        }
    }
}

crate::debug_fields!(HttpOptions { user_agent, offline, retries, most_requests });

/// The client. There is one for the whole process, so that all providers and threads share connections.
#[derive(Debug)]
pub struct Http {
    options: HttpOptions,
    /// Requests that were sent before anything waits for them.
    ahead: Mutex<HashMap<SafeUrl, Pending>>,
    /// How many requests were sent.
    sent: AtomicUsize,
    /// The servers that have required a token, or may hide from strangers what they have; and how they want it. Reading requests send it
    /// only to these.
    asked: Mutex<HashMap<Origin, AuthorizationScheme>>,
    /// The servers that did not accept what was shown to them unasked, and with which status.
    refused: Mutex<HashMap<Origin, u16>>,
    /// How long servers were waited for.
    waits: Mutex<Waits>,
    /// How fast servers are asked that have refused requests because there were too many.
    paces: Paces,
    /// The servers that could not be reached, however often it was tried.
    given_up: Mutex<HashMap<Origin, Unreachable>>,
    exchange: OnceLock<io::Result<Exchange>>,
    /// For the network: it trusts the system's roots, and uses the proxies of the options.
    network: OnceLock<Result<Client, String>>,
    /// For plain http to this machine: it needs no roots, and no proxy may see the requests.
    loopback: OnceLock<Result<Client, String>>,
    /// For servers that the user has set up another way to.
    others: Mutex<HashMap<Connection, Client>>,
}

impl Http {
    /// A client that has not connected to anything, nor read any certificate.
    pub fn new(options: HttpOptions) -> Arc<Self> {
        Arc::new(Self {
            options,
            ahead: Mutex::default(),
            sent: AtomicUsize::new(0),
            asked: Mutex::default(),
            refused: Mutex::default(),
            waits: Mutex::default(),
            paces: Paces::default(),
            given_up: Mutex::default(),
            exchange: OnceLock::new(),
            network: OnceLock::new(),
            loopback: OnceLock::new(),
            others: Mutex::default(),
        })
    }

    /// The options that it was created with.
    pub fn options(&self) -> &HttpOptions {
        &self.options
    }

    /// Whether something is stored for the server at `url`.
    pub fn has_credential(&self, url: &SafeUrl) -> bool {
        Credential::stored(self.options.credentials.as_ref(), &AskedServer::new(url)).is_some()
    }

    /// The status with which the server of `url` has refused what is stored for it, which it had not asked for.
    fn refused_unasked(&self, url: &SafeUrl) -> Option<u16> {
        lock(&self.refused).get(&url.as_url().origin()).copied()
    }

    /// A URL at which nothing was found, with what may be the reason for that.
    pub fn missing_at(&self, url: &SafeUrl) -> String {
        match self.refused_unasked(url) {
            Some(_) => format!(
                "{url}; the server does not accept what is stored for `{}`",
                url.host_and_port()
            ),
            None => url.to_string(),
        }
    }

    /// The user of what is stored for the server at `url`, empty for a token without one; `None` if nothing is, or nothing may be sent
    /// there.
    pub fn stored_user(&self, url: &SafeUrl) -> Option<String> {
        let credentials = self.options.credentials.as_ref();
        let found = Credential::stored(credentials, &AskedServer::new(url))?;
        let released = found.release(Recipient::Server(url), &self.options.token_hosts).ok()?;
        Some(released.user_and_password("").map(|(user, _)| user).unwrap_or_default())
    }

    /// The user that a server lets in for a file which it does not show to everybody; `None` if it shows it.
    ///
    /// # Errors
    ///
    /// As [`Request::send`].
    pub fn user_let_in(
        &self,
        url: &SafeUrl,
        insecure: bool,
    ) -> Result<Option<String>, ProviderError> {
        let open = self.get(url).insecure(insecure).authorization(Authorization::Nothing);
        let open = [401, 403, 404].into_iter().fold(open, Request::allow);
        if open.send()?.status() < 400 {
            return Ok(None);
        }
        self.get(url).insecure(insecure).send()?;
        Ok(self.stored_user(url))
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

    /// The client that goes another way than usual.
    fn client_by(&self, connection: &Connection) -> Result<Client, ProviderError> {
        let mut others = lock(&self.others);
        if let Some(client) = others.get(connection) {
            return Ok(client.clone());
        }
        let client = connection.client(self.builder(), &self.options.proxies)?;
        others.insert(connection.clone(), client.clone());
        Ok(client)
    }

    /// The client for one URL, and the thread that moves its bytes; both are created when first needed.
    fn client(&self, url: &SafeUrl) -> Result<(&Exchange, &Client), ProviderError> {
        let local = url.scheme() == "http" && url.is_loopback();
        let client = if local { &self.loopback } else { &self.network };
        let start = || Exchange::start(self.options.ahead);
        let exchange = self.exchange.get_or_init(start).as_ref().map_err(|error| {
            ProviderError::new(ErrorKind::Io, format!("cannot start a thread to reach `{url}`"))
                .because(error.to_string())
        })?;
        let client = client.get_or_init(|| self.build(local)).as_ref().map_err(|error| {
            let failed = ProviderError::new(
                ErrorKind::Network,
                format!("cannot set up TLS to reach `{url}`"),
            )
            .because(error.clone());
            match &self.options.certificates {
                Some(named) => failed.hint(format!("no certificate can be read there: {named}")),
                None => failed.hint(
                    "install the package `ca-certificates`, or name a file of trusted certificates in SSL_CERT_FILE",
                ),
            }
        })?;
        Ok((exchange, client))
    }

    fn builder(&self) -> reqwest::ClientBuilder {
        // An error means that this process already has a cryptography provider, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder()
            .user_agent(&self.options.user_agent)
            .connect_timeout(self.options.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
    }

    fn build(&self, local: bool) -> Result<Client, String> {
        let builder = match &self.options.only {
            Some(only) => builder_of_one(self.builder(), only, &self.options.proxies),
            None => self.builder(),
        };
        let builder = match local {
            true => builder.no_proxy().tls_certs_only([]),
            false => {
                let tls =
                    connection::tls_config(Vec::new(), None).map_err(|error| error.to_string())?;
                self.options.proxies.set(builder).tls_backend_preconfigured(tls)
            }
        };
        builder.build().map_err(|error| retry::root_cause(&error))
    }
}

/// A builder for a client with one server, which may redirect to what everyone can reach. Its own name and those of proxies are looked
/// up wherever they lead: the user has set them up.
fn builder_of_one(
    builder: reqwest::ClientBuilder,
    only: &SafeUrl,
    proxies: &Proxies,
) -> reqwest::ClientBuilder {
    let own = only.as_url().host_str().map(str::to_owned);
    let known = own.into_iter().chain(proxies.hosts()).collect();
    builder.dns_resolver(Arc::new(PublicNames { known }))
}
