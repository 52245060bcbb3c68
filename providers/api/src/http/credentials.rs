//! Which of the user's secrets may be sent, and to whom, and where a request may go at all. Only this file decides it, and only
//! this file makes what a request sends as `Authorization`. Nothing here sends anything.
//!
//! A [`Secret`] is a type that cannot be printed. It belongs to the server that was asked when it was looked up
//! ([`AskedServer`]). Stores find secrets ([`Credentials`]), and return them as a [`Credential`], which shows nothing.
//! [`Credential::release`] is the only way out of it.
//!
//! A [`Guard`] can obtain credentials when a server requires more than a stored token. As for stored tokens, the client decides
//! which requests get them: never over plain http to another machine, and never after a redirect to another server.
//!
//! Hosts belong to the same people, as far as their names say, if they are below one registrable domain. The list of public
//! suffixes says where names are handed out to everybody: by a registrar (`co.uk`), or by a company to its customers
//! (`github.io`). It is compiled in, so nothing is asked.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::lead::trespass;
use crate::{ErrorKind, ProviderError, SafeUrl};

/// A server that mu was told to ask: by a reference, the settings, a command, or the lead of an index. Secrets are looked up for it.
///
/// The place for tokens or changes that a server names is never one: whoever names it would choose whose password is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AskedServer(SafeUrl);

impl AskedServer {
    /// The server at this URL, which mu was told to ask. A test lists the callers.
    pub fn new(url: &SafeUrl) -> Self {
        Self(url.clone())
    }

    /// Its URL.
    pub fn url(&self) -> &SafeUrl {
        &self.0
    }

    /// Its host, and its port if that is not the usual one.
    pub fn host_and_unusual_port(&self) -> String {
        self.0.host_and_port()
    }

    /// This server, under each name that passwords for it are stored for.
    fn under_all_names(&self) -> impl Iterator<Item = Self> {
        let (scheme, host) = (self.0.scheme().to_owned(), self.host_and_unusual_port());
        let others = names_of(&host).into_iter().filter(|name| *name != host);
        let others = others.filter_map(|name| SafeUrl::parse(&format!("{scheme}://{name}/")).ok());
        let others: Vec<Self> = others.map(Self).collect();
        std::iter::once(self.clone()).chain(others)
    }
}

/// Knows the secrets that the user has stored.
pub trait Credentials: Send + Sync {
    /// The stored secret for this server, if there is one; one for exactly this port takes precedence over one
    /// for the host.
    fn find(&self, asked: &AskedServer) -> Option<Credential>;
}

/// No credentials.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCredentials;

impl Credentials for NoCredentials {
    fn find(&self, _asked: &AskedServer) -> Option<Credential> {
        None
    }
}

/// A secret of the user's, and the server that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    owner: AskedServer,
    form: Form,
    /// Where it comes from, in words; empty if that is not known.
    origin: String,
    /// The variable that it comes from, if it comes from one.
    variable: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// A token, or `USER:PASSWORD`.
    Token(Secret),
    Password(String, Secret),
    /// A token that others are handed out for.
    Identity(Secret),
    /// A token that a registry accepts as it is, and that no server hands out others for.
    Final(Secret),
}

impl Credential {
    fn new(asked: &AskedServer, form: Form) -> Self {
        Self { owner: asked.clone(), form, origin: String::new(), variable: None }
    }

    /// What `mu login` stores, what a variable holds, or what a token server has handed out: a token, or `USER:PASSWORD`.
    pub fn token(asked: &AskedServer, token: Secret) -> Self {
        Self::new(asked, Form::Token(token))
    }

    /// A user and a password.
    pub fn password(asked: &AskedServer, user: impl Into<String>, password: Secret) -> Self {
        Self::new(asked, Form::Password(user.into(), password))
    }

    /// A token that others are handed out for.
    pub fn identity(asked: &AskedServer, token: Secret) -> Self {
        Self::new(asked, Form::Identity(token))
    }

    /// A token that the server accepts as it is: no place that it names for its tokens or changes gets it.
    pub fn last_token(asked: &AskedServer, token: Secret) -> Self {
        Self::new(asked, Form::Final(token))
    }

    /// The stored one for a server, under any of its names.
    pub fn stored(credentials: &dyn Credentials, asked: &AskedServer) -> Option<Self> {
        let mut names = asked.under_all_names();
        let found = names.find_map(|name| credentials.find(&name))?;
        Some(Self { owner: asked.clone(), ..found })
    }

    /// The password in the URL of a server, if there is one.
    pub(super) fn in_url(asked: &AskedServer) -> Option<Self> {
        let url = asked.url().as_url();
        let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let password = Secret::new(decoded(url.password()?));
        Some(Self::password(asked, decoded(url.username()), password).known_from("the URL"))
    }

    /// What the value of an `Authorization` header is made of, if it is a token, or a user and a password.
    pub fn in_header(asked: &AskedServer, value: &Secret) -> Option<Self> {
        let (scheme, rest) = value.expose().split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self::token(asked, Secret::new(rest)));
        }
        let decoded = STANDARD.decode(rest).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"));
        let pair = String::from_utf8(decoded?).ok()?;
        let (user, password) = pair.split_once(':')?;
        Some(Self::password(asked, user, Secret::new(password)))
    }

    /// This secret, with where it comes from, in words.
    #[must_use]
    pub fn known_from(self, origin: impl Into<String>) -> Self {
        Self { origin: origin.into(), ..self }
    }

    /// This secret, which comes from a variable.
    #[must_use]
    pub fn in_variable(self, name: String) -> Self {
        Self { origin: format!("`{name}`"), variable: Some(name), ..self }
    }

    /// The variable that it comes from, if it comes from one.
    pub fn variable(&self) -> Option<&str> {
        self.variable.as_deref()
    }

    /// This secret for `recipient` alone.
    ///
    /// # Errors
    ///
    /// When it may not be sent there: see [`may_receive`].
    pub fn release(
        &self,
        recipient: Recipient<'_>,
        token_hosts: &TokenHosts,
    ) -> Result<Released, Withheld> {
        may_receive(&self.owner, recipient, token_hosts)?;
        if matches!((&self.form, recipient), (Form::Final(_), Recipient::Named(_))) {
            return Err(Withheld::Foreign);
        }
        let (to, form) = (recipient.url().clone(), self.form.clone());
        Ok(Released { to, form, origin: self.origin.clone() })
    }
}

/// Who is to get a secret.
#[derive(Debug, Clone, Copy)]
pub enum Recipient<'url> {
    /// The server at this URL, with a request to it.
    Server(&'url SafeUrl),
    /// The server at this URL, which the asked one names for its tokens, or for its changes.
    Named(&'url SafeUrl),
}

impl Recipient<'_> {
    fn url(&self) -> &SafeUrl {
        match self {
            Self::Server(url) | Self::Named(url) => url,
        }
    }
}

/// The hosts that the user allows servers to name for their tokens, by host: `tokensAt` in `~/.mu/config.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenHosts(BTreeMap<String, String>);

impl TokenHosts {
    /// Hosts with their ports, if these are not the usual ones, from the server that is asked to the one that it may name.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    fn allow(&self, asked: &AskedServer, named: &SafeUrl) -> bool {
        let host = asked.host_and_unusual_port();
        let mut allowed = names_of(&host).into_iter().filter_map(|name| self.0.get(name));
        allowed.any(|allowed| *allowed == named.host_and_port())
    }
}

/// Why a secret is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// Others could read it on its way.
    Readable,
    /// It belongs to another server.
    Foreign,
}

impl fmt::Display for Withheld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Readable => "others could read it on its way",
            Self::Foreign => "it belongs to another host",
        })
    }
}

/// Whether a secret that belongs to `asked` may be sent to `recipient`: to the server itself, and if it names another one for its tokens or
/// changes, to a host of the same registrable domain, or to the one that the user has allowed. Never where others could read it.
///
/// # Errors
///
/// When it may not.
pub fn may_receive(
    asked: &AskedServer,
    recipient: Recipient<'_>,
    token_hosts: &TokenHosts,
) -> Result<(), Withheld> {
    let is_safe = |url: &SafeUrl| matches!(url.scheme(), "https" | "http") && url.is_confidential();
    let url = recipient.url();
    if !is_safe(url) || !is_safe(&asked.0) {
        return Err(Withheld::Readable);
    }
    let is_allowed = match recipient {
        _ if asked.0.is_same_server(url) => true,
        Recipient::Server(_) => false,
        Recipient::Named(url) => is_same_site(&asked.0, url) || token_hosts.allow(asked, url),
    };
    if is_allowed { Ok(()) } else { Err(Withheld::Foreign) }
}

/// A secret that one server may get.
#[derive(Debug, Clone)]
pub struct Released {
    to: SafeUrl,
    form: Form,
    origin: String,
}

impl Released {
    /// `Bearer TOKEN`; a password can only be `Basic`.
    pub fn bearer(&self) -> Authorization {
        match &self.form {
            Form::Token(token) | Form::Identity(token) | Form::Final(token) => {
                self.header(format!("Bearer {}", token.expose()))
            }
            Form::Password(..) => self.basic(""),
        }
    }

    /// What answers a server that asks for this scheme: `Basic` only if there is a user.
    pub(super) fn answer(&self, scheme: AuthorizationScheme) -> Authorization {
        let has_user = self.user_and_password("").is_some_and(|(user, _)| !user.is_empty());
        match scheme {
            AuthorizationScheme::Basic if has_user => self.basic(""),
            AuthorizationScheme::Basic | AuthorizationScheme::Bearer => self.bearer(),
        }
    }

    /// `Basic` with a user and a password; `user` if there is only a token.
    pub fn basic(&self, user: &str) -> Authorization {
        let Some((user, password)) = self.user_and_password(user) else { return self.bearer() };
        let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
        self.header(format!("Basic {pair}"))
    }

    /// A user and a password, for a program that asks for them; `user` if there is only a token. `None` if it is only good to be handed
    /// out others for.
    pub fn user_and_password(&self, user: &str) -> Option<(String, Secret)> {
        match &self.form {
            Form::Token(token) => Some(match token.expose().split_once(':') {
                Some((user, password)) if !user.is_empty() => {
                    (user.to_owned(), Secret::new(password))
                }
                _ => (user.to_owned(), token.clone()),
            }),
            Form::Password(user, password) => Some((user.clone(), password.clone())),
            Form::Identity(_) | Form::Final(_) => None,
        }
    }

    /// The token that others are handed out for, if it is one.
    pub fn identity(&self) -> Option<&Secret> {
        match &self.form {
            Form::Identity(token) => Some(token),
            Form::Token(_) | Form::Password(..) | Form::Final(_) => None,
        }
    }

    /// Whether it is a token that the server accepts as it is.
    pub fn is_final(&self) -> bool {
        matches!(self.form, Form::Final(_))
    }

    fn header(&self, value: String) -> Authorization {
        let (to, origin) = (self.to.clone(), self.origin.clone());
        Authorization::Made(Header { to, value: Secret::new(value), origin })
    }
}

/// How a server wants to be shown what is stored for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum AuthorizationScheme {
    Bearer,
    /// For a user and a password; a token alone is a `Bearer` all the same. It is the usual one, because no `Bearer` holds a `:`.
    #[default]
    Basic,
}

impl AuthorizationScheme {
    /// The scheme that a server asks for (`WWW-Authenticate`): `Basic` only if there is no other.
    pub(super) fn of<'value>(challenges: impl Iterator<Item = &'value str>) -> Self {
        let mut words = challenges.map(|challenge| challenge.split([' ', ',']).next());
        let is_basic =
            |word: Option<&str>| word.is_some_and(|word| word.trim().eq_ignore_ascii_case("basic"));
        match words.all(is_basic) {
            true => Self::Basic,
            false => Self::Bearer,
        }
    }
}

/// How a request is authorized.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Authorization {
    /// With what is stored for the server that was asked, if there is something.
    #[default]
    Stored,
    /// With nothing, whatever is stored.
    Nothing,
    /// With this value.
    Made(Header),
}

/// The value of an `Authorization` header, for one server. Only [`Released`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    to: SafeUrl,
    value: Secret,
    origin: String,
}

impl Header {
    /// The value, if `url` is on the server that it is for.
    pub(super) fn value_for(&self, url: &SafeUrl) -> Option<&Secret> {
        self.to.is_same_server(url).then_some(&self.value)
    }

    /// Where it comes from, in words; empty if that is not known.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// What another program sends as `Authorization`, which mu lets in by handing it over.
    pub fn for_program(&self) -> &Secret {
        &self.value
    }
}

/// Answers the challenges of one server.
pub trait Guard: Send + Sync + Debug {
    /// The credentials for `asked`, as far as they are known before it refuses a request; otherwise
    /// [`Authorization::Nothing`].
    ///
    /// # Errors
    ///
    /// When the server that issues them cannot be reached, or refuses.
    fn known(&self, asked: &AskedServer) -> Result<Authorization, ProviderError>;

    /// The credentials for the same request after it was refused with these challenges (`WWW-Authenticate`);
    /// `None` if there are none but `shown`.
    ///
    /// # Errors
    ///
    /// As for [`Guard::known`], and when the challenge leads to a place that must not get credentials.
    fn answer(
        &self,
        asked: &AskedServer,
        challenges: &[&str],
        shown: &Authorization,
    ) -> Result<Option<Authorization>, ProviderError>;

    /// What helps if `asked` refuses all the same; empty if nothing special does.
    fn hints(&self, _asked: &AskedServer) -> Vec<String> {
        Vec::new()
    }
}

/// Where names are handed out to customers, although the list of public suffixes lacks it: registries of containers, and clouds.
const SHARED: [&str; 8] = [
    "amazonaws.com",
    "amazonaws.com.cn",
    "azurecr.cn",
    "azurecr.io",
    "azurecr.us",
    "container-registry.com",
    "jfrog.io",
    "tencentcloudcr.com",
];

/// Whether both are hosts of the same registrable domain, reached by https at its usual port: `auth.docker.io` and
/// `registry-1.docker.io`, but not `a.github.io` and `b.github.io`.
fn is_same_site(one: &SafeUrl, other: &SafeUrl) -> bool {
    let is_usual = |url: &SafeUrl| url.scheme() == "https" && url.as_url().port().is_none();
    let domain = |url: &SafeUrl| registrable(url.as_url().domain()?).map(str::to_owned);
    is_usual(one) && is_usual(other) && domain(one).is_some_and(|own| domain(other) == Some(own))
}

/// The part of a host's name that somebody has registered: `acme.co.uk` of `registry.acme.co.uk`; `None` for a host of this machine, and
/// for one whose name nobody can register, such as `co.uk`.
fn registrable(host: &str) -> Option<&str> {
    let host = host.trim_end_matches('.');
    if host == "localhost" || host.ends_with(".localhost") {
        return None;
    }
    let domain = psl::domain_str(host)?;
    if !SHARED.iter().any(|shared| *shared == domain || domain.ends_with(&format!(".{shared}"))) {
        return Some(domain);
    }
    // Somebody's whole name below it.
    (domain != host).then_some(host)
}

/// A text that never shows: neither in messages nor in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: to store it, or to hand it to the program that asked for it. What is sent comes from
    /// [`Credential::release`] instead; a test looks for other calls.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("****")
    }
}

/// The beginning of the names of variables that hold tokens.
pub const TOKEN_PREFIX: &str = "MU_TOKEN_";

/// The name of the variable for the token of a host: `MU_TOKEN_HUB_MU_COM`, and `MU_TOKEN_HUB_MU_COM___8080`
/// for `hub.mu.com:8080`. A `.` becomes `_`, a `-` becomes `__`, and `___` comes before a port.
///
/// No two hosts have the same variable: a dot between two letters or digits is one underscore, dashes are an
/// even number of them, and only a port has three before it. So a host whose name breaks the rules for host
/// names (with a `_`, a label that begins or ends with `-`, a dot at the end) has no variable, and neither
/// has an IPv6 address. `mu login` also works for them.
///
/// Other code reads the variable; hints name it.
pub fn token_variable(host_and_port: &str) -> Option<String> {
    let (host, port) = match host_and_port.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (host_and_port, None),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !host.split('.').all(is_label) || !port.is_none_or(is_number) {
        return None;
    }
    let host = host.to_ascii_uppercase().replace('-', "__").replace('.', "_");
    let port = port.map(|port| format!("___{port}")).unwrap_or_default();
    Some([TOKEN_PREFIX, &host, &port].concat())
}

/// Whether a text is a label of a host name: letters and digits, with dashes between them.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

/// The rest of the hint "`mu login HOST` stores a token", which names the variable of that host, if it has one.
pub fn or_variable(host_and_port: &str) -> String {
    let variable = token_variable(host_and_port);
    variable.map(|variable| format!(", or set one in `{variable}`")).unwrap_or_default()
}

/// The hint that names all ways to hand mu a password for a server: its own, and what `others` have, which mu reads, too.
pub fn ways_in(host_and_port: &str, others: &[&str]) -> String {
    let own =
        format!("`mu login {host_and_port}` stores a token for it{}", or_variable(host_and_port));
    match others {
        [] => own,
        [one] => format!("{own}; mu also finds what is in {one}"),
        [most @ .., last] => {
            format!("{own}; mu also finds what is in {} or {last}", most.join(", "))
        }
    }
}

/// The names of Docker's registry: the host that serves it, and last the one that people know.
const DOCKERS_NAMES: [&str; 3] = ["registry-1.docker.io", "index.docker.io", "docker.io"];

/// The names of a registry whose passwords are the same: its host, and the others that it has. The last is the one that passwords
/// are stored for.
pub fn names_of(host: &str) -> Vec<&str> {
    if DOCKERS_NAMES.contains(&host) { DOCKERS_NAMES.to_vec() } else { vec![host] }
}

/// Checks that mu may connect to `url`: https, or http if it is safe or was allowed.
pub(super) fn check_scheme(url: &SafeUrl, insecure: bool) -> Result<(), ProviderError> {
    check_user(url)?;
    match url.scheme() {
        "https" => Ok(()),
        "http" if insecure || url.is_loopback() => Ok(()),
        "http" => Err(ProviderError::new(
            ErrorKind::Refused,
            format!("`{url}` is refused: plain http can be read and changed in transit"),
        )
        .hint("use https, or accept the risk with `--allow-insecure` or `insecure: true` for that registry")),
        _ => Err(ProviderError::new(ErrorKind::Refused, format!("`{url}` is refused: it is not an http URL"))),
    }
}

/// Refuses a user without a password. A server can only use it as a name, so most likely it is a token.
fn check_user(url: &SafeUrl) -> Result<(), ProviderError> {
    if url.as_url().password().is_some() || !url.may_hold_secret() {
        return Ok(());
    }
    let text = format!(
        "`{url}` is refused: the user name in it may be a token, which does not belong in a URL"
    );
    let host = url.host_and_port();
    let variable = or_variable(&host);
    Err(ProviderError::new(ErrorKind::Refused, text)
        .hint(format!("leave it out; `mu login {host}` stores a token{variable}")))
}

/// The target of a redirect from `from`, if it may be followed.
pub(super) fn redirected(
    from: &SafeUrl,
    location: &str,
    insecure: bool,
) -> Result<SafeUrl, ProviderError> {
    let mut to: Url = from.as_url().join(location).map_err(|error| {
        let text = format!("`{from}` redirects to something that is not a valid URL");
        ProviderError::new(ErrorKind::Protocol, text).because(error)
    })?;
    // Credentials that a server makes up are not the user's. Removing them fails only if the URL cannot have
    // any.
    let _ = to.set_username("");
    let _ = to.set_password(None);
    let to = SafeUrl::from(to);
    if let Some(why) = trespass(from, &to) {
        let text = format!("the redirect from `{from}` to `{to}` is refused: {why}");
        return Err(ProviderError::new(ErrorKind::Refused, text));
    }
    check_scheme(&to, insecure).map_err(|reason| {
        let text = format!("the redirect from `{from}` to `{to}` is refused");
        let refused = ProviderError::new(ErrorKind::Refused, text);
        reason.hints().iter().fold(refused, ProviderError::hint).because(reason.to_string())
    })?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> SafeUrl {
        SafeUrl::parse(text).expect("is a URL")
    }

    fn value(authorization: &Authorization, to: &SafeUrl) -> Option<String> {
        let Authorization::Made(header) = authorization else { panic!("{authorization:?}") };
        header.value_for(to).map(|value| value.expose().to_owned())
    }

    #[test]
    fn secrets_never_show() {
        let place = url("https://h/");
        let credential =
            Credential::password(&AskedServer::new(&place), "ada", Secret::new("hunter2"));
        let released = credential.release(Recipient::Server(&place), &TokenHosts::default());
        let released = released.expect("it is its own");
        let shown = format!("{credential:?} {released:?} {:?}", released.basic(""));
        assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
    }

    #[test]
    fn a_password_in_the_url_is_decoded() {
        let place = url("https://ada:p%40ss%25@h/");
        let found = Credential::in_url(&AskedServer::new(&place)).expect("there is a password");
        let released = found.release(Recipient::Server(&place), &TokenHosts::default());
        let sent = value(&released.expect("it is its own").bearer(), &place);
        assert_eq!(sent, Some(format!("Basic {}", STANDARD.encode("ada:p@ss%"))));
    }

    #[test]
    fn a_header_is_taken_apart_and_made_again() {
        let place = url("https://h/");
        let asked = AskedServer::new(&place);
        let read = |value: &str| Credential::in_header(&asked, &Secret::new(value));
        for (text, expected) in [
            ("basic Y2k6eDp5", "Basic Y2k6eDp5"),
            ("Bearer abc", "Bearer abc"),
            ("bearer  abc", "Bearer abc"),
        ] {
            let found = read(text).expect("is read");
            let released = found.release(Recipient::Server(&place), &TokenHosts::default());
            let sent = value(&released.expect("it is its own").bearer(), &place);
            assert_eq!(sent.as_deref(), Some(expected), "{text}");
        }
        for text in ["", "Basic", "Basic ???", "Basic eA==", "Negotiate abc"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_made_for_one_server_is_nothing_for_another() {
        let place = url("https://h/a");
        let credential = Credential::token(&AskedServer::new(&place), Secret::new("ada:x:y"));
        let released = credential.release(Recipient::Server(&place), &TokenHosts::default());
        let released = released.expect("it is its own");
        let expected = Some(format!("Basic {}", STANDARD.encode("ada:x:y")));
        assert_eq!(value(&released.basic("token"), &url("https://h/b")), expected);
        assert_eq!(value(&released.bearer(), &place).as_deref(), Some("Bearer ada:x:y"));
        for other in ["https://h:8443/", "https://i/", "http://h/"] {
            assert_eq!(value(&released.bearer(), &url(other)), None, "{other}");
        }
    }

    #[test]
    fn a_token_alone_gets_a_user() {
        let place = url("https://h/");
        for (text, expected) in [("ada:x", "ada:x"), ("ghp_1", "token:ghp_1"), (":x", "token::x")] {
            let credential = Credential::token(&AskedServer::new(&place), Secret::new(text));
            let released = credential.release(Recipient::Server(&place), &TokenHosts::default());
            let sent = value(&released.expect("it is its own").basic("token"), &place);
            assert_eq!(sent, Some(format!("Basic {}", STANDARD.encode(expected))));
        }
    }

    /// Has a token for one host.
    struct Only(&'static str);

    impl Credentials for Only {
        fn find(&self, asked: &AskedServer) -> Option<Credential> {
            let is_it = asked.host_and_unusual_port() == self.0;
            is_it.then(|| Credential::token(asked, Secret::new("hunter2")))
        }
    }

    #[test]
    fn dockers_registry_has_one_password_under_all_its_names() {
        for (stored, asked, expected) in [
            ("docker.io", "registry-1.docker.io", true),
            ("index.docker.io", "registry-1.docker.io", true),
            ("registry-1.docker.io", "registry-1.docker.io", true),
            ("docker.io", "auth.docker.io", false),
            ("docker.io", "docker.io.evil.example", false),
            ("ghcr.io", "registry-1.docker.io", false),
            ("ghcr.io:8443", "ghcr.io:8443", true),
        ] {
            let asked = AskedServer::new(&url(&format!("https://{asked}/v2/")));
            let found = Credential::stored(&Only(stored), &asked);
            let own = Credential::token(&asked, Secret::new("hunter2"));
            assert_eq!(found, expected.then_some(own), "{stored} {asked:?}");
        }
    }

    #[test]
    fn only_what_one_owner_has_registered_is_a_site() {
        for (one, other, expected) in [
            ("https://registry-1.docker.io/v2/", "https://auth.docker.io/token", true),
            ("https://registry.gitlab.com/v2/", "https://gitlab.com/jwt/auth", true),
            ("https://r.acme.co.uk/", "https://auth.acme.co.uk/", true),
            ("https://r.acme.co.uk/", "https://evil.co.uk/", false),
            ("https://r.acme.co.uk/", "https://co.uk/", false),
            ("https://a.github.io/", "https://b.github.io/", false),
            ("https://r.a.github.io/", "https://auth.a.github.io/", true),
            ("https://d1.cloudfront.net/", "https://d2.cloudfront.net/", false),
            ("https://a.s3.amazonaws.com/", "https://b.s3.amazonaws.com/", false),
            (
                "https://1.dkr.ecr.eu-west-1.amazonaws.com/",
                "https://2.dkr.ecr.eu-west-1.amazonaws.com/",
                false,
            ),
            ("https://a.azurecr.io/", "https://b.azurecr.io/", false),
            ("https://a.azurecr.io/", "https://azurecr.io/", false),
            ("https://a.jfrog.io/", "https://b.jfrog.io/", false),
            ("https://a.blob.core.windows.net/", "https://b.blob.core.windows.net/", false),
            ("https://registry.acme.example/", "https://auth.acme.example/", true),
            ("https://registry.lan/", "https://auth.lan/", false),
            ("https://r.xn--bcher-kva.example/", "https://a.bücher.example/", true),
            ("https://r.рф/", "https://a.рф/", false),
            ("https://r.acme.io/", "https://auth.acme.io./", true),
            ("https://acme.io/", "https://auth.acme.io:8443/", false),
            ("http://acme.io/", "http://auth.acme.io/", false),
            ("https://10.0.0.1/", "https://10.0.0.2/", false),
            ("https://localhost/", "https://a.localhost/", false),
            ("https://a.localhost/", "https://b.a.localhost/", false),
            ("https://registry/", "https://registry./", false),
        ] {
            let url = |text: &str| SafeUrl::parse(text).expect("is a URL");
            assert_eq!(is_same_site(&url(one), &url(other)), expected, "{one} {other}");
            assert_eq!(is_same_site(&url(other), &url(one)), expected, "{other} {one}");
        }
    }

    #[test]
    fn texts_of_secrets_never_show() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "****");
    }

    #[test]
    fn variables_name_hosts() {
        for (host, variable) in [
            ("hub.mu.com", Some("MU_TOKEN_HUB_MU_COM")),
            ("hub-mu.com", Some("MU_TOKEN_HUB__MU_COM")),
            ("xn--bcher-kva.example", Some("MU_TOKEN_XN____BCHER__KVA_EXAMPLE")),
            ("localhost:8080", Some("MU_TOKEN_LOCALHOST___8080")),
            ("127.0.0.1:80", Some("MU_TOKEN_127_0_0_1___80")),
            ("[::1]:80", None),
            ("hub_mu.com", None),
            ("hub.mu.com.", None),
            ("a-.b", None),
            ("a.-b", None),
            ("a:", None),
            ("", None),
        ] {
            assert_eq!(token_variable(host).as_deref(), variable, "{host}");
        }
    }

    /// All texts of up to seven relevant characters: every way in which two hosts could share a variable.
    #[test]
    fn no_two_hosts_share_a_variable() {
        let mut hosts = std::collections::HashMap::new();
        let mut texts = vec![String::new()];
        for _ in 0..7 {
            let longer = texts.iter().flat_map(|text| {
                ["a", "1", ".", "-", "_", ":"].map(|character| format!("{text}{character}"))
            });
            texts = longer.collect();
            for host in &texts {
                if let Some(variable) = token_variable(host)
                    && let Some(other) = hosts.insert(variable, host.clone())
                {
                    panic!("`{host}` and `{other}` have one variable");
                }
            }
        }
        assert!(hosts.len() > 1_000, "{}", hosts.len());
    }

    #[test]
    fn plain_http_needs_loopback_or_permission() {
        for (text, insecure, fine) in [
            ("https://h/", false, true),
            ("http://h/", false, false),
            ("http://h/", true, true),
            ("http://localhost:8080/", false, true),
            ("http://127.0.0.1.example.com/", false, false),
            ("https://git@h/", false, true),
            ("https://hunter2@h/", false, false),
            ("ftp://h/", true, false),
            ("file:///x", true, false),
        ] {
            let result = check_scheme(&url(text), insecure);
            assert_eq!(result.is_ok(), fine, "{text} {insecure}");
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::Refused);
                assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            }
        }
    }

    #[test]
    fn redirects_never_become_less_safe() {
        for (from, location, insecure, expected) in [
            ("https://h/a", "b", false, Some("https://h/b")),
            ("https://h/a", "https://other/b", false, Some("https://other/b")),
            ("https://h/a", "http://h/b", true, None),
            ("https://h/a", "http://localhost/b", false, None),
            ("http://localhost/a", "http://h/b", false, None),
            ("http://h/a", "http://other/b", true, Some("http://other/b")),
            ("http://localhost/a", "//localhost:81/b", false, Some("http://localhost:81/b")),
            ("https://h/a", "file:///etc/passwd", false, None),
            ("https://h/a", "https://eve:x@h/b", false, Some("https://h/b")),
            ("https://h/a", "https://localhost/b", false, None),
            ("https://h/a", "https://[::ffff:127.0.0.1]/b", false, None),
            ("http://h/a", "http://10.1.2.3/b", true, None),
            ("https://10.1.2.3/a", "https://10.1.2.4/b", false, Some("https://10.1.2.4/b")),
        ] {
            let result = redirected(&url(from), location, insecure).map(|to| to.to_string());
            assert_eq!(result.as_deref().ok(), expected, "{from} {location}: {result:?}");
        }
    }

    #[test]
    fn a_refused_redirect_names_both_ends() {
        let error = redirected(&url("https://h/a"), "http://h/b?token=x", false)
            .expect_err("leads to plain http");
        let text = error.to_string();
        assert!(text.contains("https://h/a") && text.contains("http://h/b?****"), "{text}");
    }
}
