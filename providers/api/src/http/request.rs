//! A request: building it, checking it against the rules, sending it, and following redirects. `response.rs` judges the status of the
//! answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue, IF_NONE_MATCH};

use super::event::{UnsentBody, Watched};
use super::exchange::{Exchange, Outgoing, Pending, SilenceLimits};
use super::{
    AskedServer, Authorization, AuthorizationScheme, Connection, Credential, Failure, Guard,
    Header, Http, Recipient, Response, Secret, Signer, bucket, credentials, may_receive,
};
use crate::lead::Reach;
use crate::threads::lock;
use crate::{ErrorKind, Progress, ProviderError, SafeUrl};

/// How many redirects are followed.
const REDIRECTS: usize = 10;

/// The conditions of requests for what has changed since it was there the last time.
const UNLESS_SAME: [&str; 2] = ["if-none-match", "if-modified-since"];

/// The slowest sending that still counts as progress, in bytes per second.
const SLOWEST_SENDING: u64 = 16 << 10;

/// A request in the making.
pub struct Request<'http> {
    pub(super) http: &'http Http,
    method: Method,
    pub(super) url: SafeUrl,
    headers: Vec<(&'static str, String)>,
    /// The server that named the URL, if that counts as the asked one.
    named_by: Option<AskedServer>,
    pub(super) authorization: Authorization,
    /// Obtains credentials instead of the stored token.
    pub(super) guard: Option<Arc<dyn Guard>>,
    insecure: bool,
    pub(super) allowed: Vec<u16>,
    /// The lowest speed of the answer, if it is not the client's usual one.
    slowest: Option<u64>,
    /// What it sends.
    body: Vec<u8>,
    /// The way to the server, if it is not the usual one.
    connection: Option<Connection>,
    /// Headers for the server alone, as the user has set them up.
    own_headers: Vec<(HeaderName, Secret)>,
    /// Whether the answer is compared with a digest.
    is_compared: bool,
    /// Whether it shows what is stored although the server has not asked for it.
    is_introduced: bool,
}

/// Whether a header states who somebody is: only a released secret makes one.
pub fn is_authorization(name: &str) -> bool {
    AUTHORIZATION.as_str().eq_ignore_ascii_case(name)
}

impl<'http> Request<'http> {
    pub(super) fn new(http: &'http Http, method: Method, url: SafeUrl) -> Self {
        Self {
            http,
            method,
            url,
            headers: Vec::new(),
            named_by: None,
            authorization: Authorization::default(),
            guard: None,
            insecure: false,
            allowed: Vec::new(),
            slowest: None,
            body: Vec::new(),
            connection: None,
            own_headers: Vec::new(),
            is_compared: false,
            is_introduced: false,
        }
    }

    /// Adds a header; its name is in lower case.
    ///
    /// # Panics
    ///
    /// When it is `authorization`: for secrets there is [`Request::authorization`].
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        assert!(name != AUTHORIZATION.as_str(), "secrets are sent as `Authorization` says");
        self.headers.push((name, value.into()));
        self
    }

    /// Sends what is stored for `asked`, which has named the URL as the place for its changes, as far as that may be
    /// sent there; and nothing that is stored for the URL's own host.
    #[must_use]
    pub fn named_by(mut self, asked: &AskedServer) -> Self {
        self.named_by = Some(asked.clone());
        self
    }

    /// Sends something other than the stored token. A redirect to another server does not get it.
    #[must_use]
    pub fn authorization(mut self, authorization: Authorization) -> Self {
        self.authorization = authorization;
        self
    }

    /// Says whether the answer is compared with a digest that is known, so that it may come from any server: the one server of
    /// [`HttpOptions::only`](super::HttpOptions::only) may redirect it.
    #[must_use]
    pub fn compared(mut self, is_compared: bool) -> Self {
        self.is_compared = is_compared;
        self
    }

    /// Lets `guard` provide credentials instead of the stored token, and more of them if the server asks.
    #[must_use]
    pub fn guarded(mut self, guard: Option<Arc<dyn Guard>>) -> Self {
        self.guard = guard;
        self
    }

    /// Whether plain http to another machine was allowed, see [`crate::Location::insecure`].
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Treats this status as an answer, not as an error, and not as a redirect that is followed.
    #[must_use]
    pub fn allow(mut self, status: u16) -> Self {
        self.allowed.push(status);
        self
    }

    /// Accepts an answer however slowly it arrives, as long as it is never silent for long. This is for a
    /// protocol in which a busy server sends signs of life, and which has its own limits.
    #[must_use]
    pub fn at_any_pace(mut self) -> Self {
        self.slowest = Some(0);
        self
    }

    /// Goes to its server by this way. A redirect to another server goes the usual one.
    #[must_use]
    pub fn by(mut self, connection: &Connection) -> Self {
        self.connection = Some(connection.clone()).filter(|connection| !connection.is_usual());
        self
    }

    /// Adds a header that the user has set up for the server, whose value may be a secret. No other server gets it, and nobody where
    /// others could read it. What is no header, or is `authorization`, is left out.
    #[must_use]
    pub fn own_header(mut self, name: &str, value: &Secret) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).ok();
        let name = name.filter(|name| *name != AUTHORIZATION);
        self.own_headers.extend(name.map(|name| (name, value.clone())));
        self
    }

    /// Sends these bytes.
    #[must_use]
    pub fn body(mut self, bytes: Vec<u8>) -> Self {
        self.body = bytes;
        self
    }

    /// Sends the request, again if need be, until its answer begins.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Auth`] for 401 and 403, [`ErrorKind::NotFound`] for 404 and 410,
    /// [`ErrorKind::Protocol`] for other statuses that are no success, unless they were allowed;
    /// [`ErrorKind::Network`] when there is no answer; [`ErrorKind::Refused`] and
    /// [`ErrorKind::Offline`] when nothing may be sent.
    pub fn send(mut self) -> Result<Response, ProviderError> {
        self.http.retry(|| self.attempt())
    }

    /// Sends the request, repeatedly if necessary, until the complete answer is there.
    ///
    /// # Errors
    ///
    /// As [`Request::send`], and when the answer is longer than `limit`.
    pub fn fetch(mut self, limit: u64, progress: &dyn Progress) -> Result<Vec<u8>, ProviderError> {
        self.http.retry(|| self.attempt()?.bytes(limit, progress))
    }

    /// Sends the request although nobody waits for its answer yet. The next identical request gets the
    /// answer.
    ///
    /// A request that cannot be sent is ignored here; the next identical request reports the error.
    pub fn ahead(self) {
        if self.is_plain()
            && self.check().is_ok()
            && self.check_only(&self.url).is_ok()
            && !self.http.takes_turns(&self.url)
            && let Ok(pending) = self.start(&self.url, Exchange::send_ahead)
        {
            lock(&self.http.ahead).insert(self.url, pending);
        }
    }

    /// Sends the request once, for a caller that repeats more than the request with [`Http::retry`].
    ///
    /// # Errors
    ///
    /// As [`Request::send`], with the word whether another attempt may succeed.
    pub fn attempt(&mut self) -> Result<Response, Failure> {
        self.check()?;
        let mut url = self.url.clone();
        self.ask_guard()?;
        for _ in 0..=REDIRECTS {
            let mut response = self.send_to(&url)?;
            if let Some(signer) = self.signer(&url) {
                if bucket::is_refusal(response.status()) {
                    let body = response.excerpt(bucket::LONGEST_REFUSAL);
                    let refusal = bucket::Refusal {
                        url: &url,
                        status: response.status(),
                        status_text: response.status_text(),
                        header: &|name| response.header(name),
                        body: &body,
                    };
                    refusal.judge(&self.allowed, signer)?;
                }
                return self.judge(response);
            }
            if self.is_answered(&url, &response)? || self.is_asked_for_token(&url, &response) {
                response = self.send_to(&url)?;
            } else if self.may_hide(&url, &response) {
                response = self.introduced(&url, response)?;
            }
            if response.status() == 412 && self.drop_conditions() {
                response = self.send_to(&url)?;
            }
            let Some(location) = self.redirect(&response)? else { return self.judge(response) };
            url = credentials::redirected(&url, location, self.insecure)?;
        }
        let text = format!("`{}` redirects more than {REDIRECTS} times, last to `{url}`", self.url);
        Err(ProviderError::new(ErrorKind::Protocol, text).into())
    }

    /// Whether it may be sent.
    fn check(&self) -> Result<(), ProviderError> {
        if self.http.options.offline {
            let text = format!("`{}` was not requested: mu is offline", self.url);
            return Err(ProviderError::new(ErrorKind::Offline, text));
        }
        if self.url.is_bucket() {
            let has_signer = self.http.options.buckets.is_some();
            return bucket::check(&self.url, &self.method, has_signer);
        }
        credentials::check_scheme(&self.url, self.insecure)
    }

    /// Refuses another server, if there is only one to ask, unless that redirects to what everyone can reach, and whose bytes the answer
    /// is made of makes no difference. Nothing secret is sent to another server than the one that was asked.
    fn check_only(&self, url: &SafeUrl) -> Result<(), ProviderError> {
        let Some(only) = &self.http.options.only else { return Ok(()) };
        let may_leave = self.is_compared && self.url.is_same_server(only);
        if url.is_same_server(only) || (may_leave && Reach::of(url) == Reach::Network) {
            return Ok(());
        }
        let why = match may_leave {
            true => "which redirects to an address that not everyone can reach",
            false => "and no other one",
        };
        let text = format!("`{url}` is refused: only the server of `{only}` is asked, {why}");
        Err(ProviderError::new(ErrorKind::Refused, text))
    }

    /// Who signs a request to `url`, if it is for a file in a bucket.
    fn signer(&self, url: &SafeUrl) -> Option<&dyn Signer> {
        self.http.options.buckets.as_deref().filter(|_| url.is_bucket())
    }

    /// Sends only the credentials that the guard knows.
    fn ask_guard(&mut self) -> Result<(), ProviderError> {
        let Some(guard) = &self.guard else { return Ok(()) };
        self.authorization = match self.url.is_confidential() {
            true => guard.known(&self.asked())?,
            false => Authorization::Nothing,
        };
        Ok(())
    }

    /// Whether the server asked for more credentials and the guard has them. From now on they are sent.
    fn is_answered(&mut self, url: &SafeUrl, response: &Response) -> Result<bool, ProviderError> {
        let Some(guard) = self.guard.as_ref().filter(|_| response.status() == 401) else {
            return Ok(false);
        };
        if !url.is_confidential() || !url.is_same_server(&self.url) {
            return Ok(false);
        }
        let challenges: Vec<&str> = response.headers("www-authenticate").collect();
        let Some(answer) = guard.answer(&self.asked(), &challenges, &self.authorization)? else {
            return Ok(false);
        };
        self.authorization = answer;
        Ok(true)
    }

    fn reads(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Whether its URL is the whole request.
    fn is_plain(&self) -> bool {
        self.method == Method::GET
            && self.guard.is_none()
            && self.headers.is_empty()
            && self.own_headers.is_empty()
            && self.connection.is_none()
            && self.body.is_empty()
            && self.authorization == Authorization::Stored
    }

    /// The target of a redirect, if the answer is one.
    fn redirect<'response>(
        &self,
        response: &'response Response,
    ) -> Result<Option<&'response str>, ProviderError> {
        if !response.is_redirect() || self.allowed.contains(&response.status()) {
            return Ok(None);
        }
        let url = response.url();
        let Some(location) = response.location() else {
            let text =
                format!("`{url}` answered {} without saying where to", response.status_text());
            return Err(ProviderError::new(ErrorKind::Protocol, text));
        };
        if self.reads() {
            return Ok(Some(location));
        }
        // A request with a body goes only to the given URL, and follows no redirect.
        let to = url.join(location).map_or_else(|_| "no URL".to_owned(), |to| format!("`{to}`"));
        let text =
            format!("`{url}` redirects the {} request to {to}, where it is not sent", self.method);
        Err(ProviderError::new(ErrorKind::Protocol, text))
    }

    fn send_to(&self, url: &SafeUrl) -> Result<Response, Failure> {
        self.check_only(url)?;
        self.http.check_given_up(url)?;
        let ahead =
            lock(&self.http.ahead).remove(url).filter(|_| self.is_plain() && *url == self.url);
        let pending = match ahead {
            Some(pending) => pending,
            None => {
                self.http.wait_for_turn(url);
                self.start(url, Exchange::send)?
            }
        };
        let to = pending.to.clone().unwrap_or_else(|| url.clone());
        let sent = pending.sent;
        match pending.wait() {
            Ok(answer) => Ok(Response::new(url.clone(), answer, sent)),
            Err(error) => {
                let options = &self.http.options;
                let refused = (options.ways)(&to).refused;
                let proxy = self.proxy_to(&to);
                Err(Failure::transport(error, &to, proxy, refused, options.certificates.as_deref()))
            }
        }
    }

    /// Begins to send it to `url`.
    fn start(
        &self,
        url: &SafeUrl,
        send: impl FnOnce(&Exchange, Outgoing) -> Pending,
    ) -> Result<Pending, ProviderError> {
        let options = &self.http.options;
        let number = self.http.sent.fetch_add(1, Ordering::Relaxed);
        if number >= options.most_requests {
            let most = options.most_requests;
            let text = format!(
                "`{url}` was not requested: this run has sent {most} requests, and may send no more"
            );
            return Err(ProviderError::new(ErrorKind::Refused, text));
        }
        let signed =
            self.signer(url).map(|signer| bucket::sign(signer, url, &self.headers, self.insecure));
        let mut signed = signed.transpose()?;
        let to = signed.as_ref().map_or(url, |signed| &signed.url).clone();
        let (exchange, usual) = self.http.client(&to)?;
        let client = match self.way_to(url) {
            Some(way) => self.http.client_by(&way)?,
            None => usual.clone(),
        };
        let mut wire = to.as_url().clone();
        // The userinfo is sent as a header, under the rules for tokens, or not sent.
        let _ = wire.set_username("");
        let _ = wire.set_password(None);
        let mut request = reqwest::Request::new(self.method.clone(), wire);
        let mut origin = String::new();
        if let Some(signed) = &mut signed {
            origin = signed.origin.take().unwrap_or_default();
            *request.headers_mut() = std::mem::take(&mut signed.headers);
            if let Some(value) = request.headers_mut().get_mut(AUTHORIZATION) {
                value.set_sensitive(true);
            }
        }
        for (name, value) in &self.headers {
            // A signature covers the conditions that it knows. One of them is enough.
            let has_condition = request.headers().contains_key(IF_NONE_MATCH);
            let is_signed = request.headers().contains_key(*name);
            if signed.is_some() && (is_signed || has_condition && *name == "if-modified-since") {
                continue;
            }
            request.headers_mut().insert(HeaderName::from_static(name), header_value(name, value)?);
        }
        let recipient = Recipient::Server(url);
        if may_receive(&self.asked(), recipient, &options.token_hosts).is_ok() {
            for (name, value) in &self.own_headers {
                let mut value = header_value(name.as_str(), value.expose())?;
                value.set_sensitive(true);
                request.headers_mut().append(name.clone(), value);
            }
        }
        if let Some(header) = self.token_for(url) {
            origin = header.origin().to_owned();
            let value = header.value_for(url).map(|value| HeaderValue::from_str(value.expose()));
            if let Some(value) = value {
                let mut value = value.map_err(|_| self.no_header(url))?;
                value.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, value);
            }
        }
        let mut patience = SilenceLimits {
            head: options.read_timeout,
            body: options.read_timeout,
            slowest: self.slowest.unwrap_or(options.slowest),
        };
        if !self.body.is_empty() {
            patience.head += Duration::from_secs(self.body.len() as u64 / SLOWEST_SENDING);
            *request.body_mut() = Some(match options.watch.clone() {
                Some(watch) => reqwest::Body::wrap(UnsentBody::new(
                    self.body.clone().into(),
                    number as u64,
                    watch,
                )),
                None => self.body.clone().into(),
            });
        }
        let watched = options.watch.clone().map(|watch| {
            let proxy = self.proxy_to(&to);
            let (number, url) = (number as u64, url.clone());
            Watched { watch, number, url, origin, proxy, is_sent: false }
        });
        let sent = (options.now)();
        let outgoing = Outgoing { client, request, patience, watched, sent };
        let mut pending = send(exchange, outgoing);
        pending.to = signed.map(|_| to);
        Ok(pending)
    }

    /// The name of the proxy on the way to `url`, if there is one.
    fn proxy_to(&self, url: &SafeUrl) -> Option<String> {
        let way = self.way_to(url).unwrap_or_default();
        way.proxy_for(url, &self.http.options.proxies)
    }

    /// The way to the server of `url`, if it is not the usual one: as the request says, or as the user has set it up for that server.
    fn way_to(&self, url: &SafeUrl) -> Option<Connection> {
        let own = self.connection.as_ref().filter(|_| url.is_same_server(&self.url));
        let set_up = || {
            let is_secure = url.scheme() == "https";
            is_secure.then(|| (self.http.options.ways)(url).connection)
        };
        own.cloned().or_else(set_up).filter(|connection| !connection.is_usual())
    }

    /// The server whose secrets it may send.
    pub(super) fn asked(&self) -> AskedServer {
        self.named_by.clone().unwrap_or_else(|| AskedServer::new(&self.url))
    }

    /// What is stored for the server that was asked, or is in its URL.
    pub(super) fn stored_credential(&self) -> Option<Credential> {
        let asked = self.asked();
        let credentials = self.http.options.credentials.as_ref();
        Credential::stored(credentials, &asked).or_else(|| Credential::in_url(&asked))
    }

    /// What to send to `url`: nothing over a connection that others can read, or after a redirect to
    /// another server. Reading requests send a stored token only if the server has asked for one, or may hide from strangers what is
    /// there.
    pub(super) fn token_for(&self, url: &SafeUrl) -> Option<Header> {
        let is_lazy =
            self.reads() && self.authorization == Authorization::Stored && !self.is_introduced;
        if is_lazy && !lock(&self.http.asked).contains_key(&url.as_url().origin()) {
            return None;
        }
        self.may_be_shown(url)
    }

    /// What may be shown at `url`, whether or not it is.
    fn may_be_shown(&self, url: &SafeUrl) -> Option<Header> {
        if !url.is_confidential() || !url.is_same_server(&self.url) {
            return None;
        }
        let authorization = match &self.authorization {
            Authorization::Stored => {
                let recipient = match self.named_by {
                    Some(_) => Recipient::Named(url),
                    None => Recipient::Server(url),
                };
                let released =
                    self.stored_credential()?.release(recipient, &self.http.options.token_hosts);
                let asked = lock(&self.http.asked).get(&url.as_url().origin()).copied();
                released.ok()?.answer(asked.unwrap_or_default())
            }
            other => other.clone(),
        };
        match authorization {
            Authorization::Made(header) => Some(header),
            Authorization::Nothing | Authorization::Stored => None,
        }
    }

    /// Whether a server that got no token asks for one, and there is one. From now on it gets the token.
    ///
    /// Some servers answer 403 instead of 401.
    fn is_asked_for_token(&self, url: &SafeUrl, response: &Response) -> bool {
        if !matches!(response.status(), 401 | 403) || self.token_for(url).is_some() {
            return false;
        }
        let has_token = self.may_be_shown(url).is_some();
        if has_token {
            let scheme = AuthorizationScheme::of(response.headers("www-authenticate"));
            lock(&self.http.asked).insert(url.as_url().origin(), scheme);
        }
        has_token
    }

    /// Whether a server that has got no token may have hidden what is there, and there is a token for it: many answer 404 to strangers, or
    /// lead them to a page for signing in. What it did not accept once is not shown again: servers close accounts after some wrong passwords.
    fn may_hide(&self, url: &SafeUrl, response: &Response) -> bool {
        (response.is_redirect() || matches!(response.status(), 404 | 410))
            && self.http.refused_unasked(url) != Some(401)
            && self.token_for(url).is_none()
            && self.may_be_shown(url).is_some()
    }

    /// The answer of such a server to one who shows the token, and shows it from now on. If the server does not accept that, its answer to
    /// strangers counts: an old token makes nothing worse that everybody may read.
    fn introduced(&mut self, url: &SafeUrl, stranger: Response) -> Result<Response, Failure> {
        self.is_introduced = true;
        let known = self.send_to(url);
        self.is_introduced = false;
        let known = known?;
        if matches!(known.status(), 401 | 403) {
            lock(&self.http.refused).insert(url.as_url().origin(), known.status());
            return Ok(stranger);
        }
        lock(&self.http.asked).insert(url.as_url().origin(), AuthorizationScheme::default());
        Ok(known)
    }

    /// Takes away the conditions under which what is there need not be sent again; whether there were some. Servers and proxies that do
    /// not know them answer 412.
    fn drop_conditions(&mut self) -> bool {
        if !self.reads() {
            return false;
        }
        let before = self.headers.len();
        self.headers.retain(|(name, _)| !UNLESS_SAME.contains(name));
        self.headers.len() < before
    }
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, ProviderError> {
    HeaderValue::from_str(value).map_err(|_| {
        let text =
            format!("the value of the `{name}` header has characters that no header can contain");
        ProviderError::new(ErrorKind::Protocol, text)
    })
}
