//! Which failures are temporary, and how long to wait before the next attempt.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use httpdate::HttpDate;
use rustls::CertificateError;
use url::Origin;

use super::exchange::ExchangeError;
use super::pace::Overload;
use super::{Http, RequestEvent, Response};
use crate::threads::lock;
use crate::{ErrorKind, ProviderError, SafeUrl, causes};

/// A failed attempt: the error, and whether another attempt may succeed.
#[derive(Debug)]
pub struct Failure {
    error: ProviderError,
    may_pass: bool,
    retry_after: Option<Duration>,
    /// How many requests the server had answered, if it refused this one because there were too many.
    overloaded: Option<u32>,
    /// The server that could not be reached, if that is it.
    unreachable: Option<Box<(Origin, Unreachable)>>,
}

/// Why a server cannot be reached.
#[derive(Debug, Clone)]
pub(super) enum Unreachable {
    /// It did not answer for this long.
    Silent(Duration),
    /// Nothing could be connected to it, perhaps through this proxy, for this reason.
    Unconnected { proxy: Option<String>, cause: String },
}

impl Unreachable {
    /// The error of a request to `url`, which is there.
    fn error(&self, url: &SafeUrl) -> ProviderError {
        let network = |text: String| ProviderError::new(ErrorKind::Network, text);
        match self {
            Self::Silent(patience) => {
                network(format!("`{url}` did not answer for {} s", patience.as_secs_f32())).late()
            }
            Self::Unconnected { proxy: None, cause } => {
                network(format!("cannot reach `{url}`")).because(cause.clone())
            }
            Self::Unconnected { proxy: Some(proxy), cause } => {
                let failed = network(format!("cannot reach `{url}` through the proxy {proxy}"));
                match by_proxy(cause) {
                    Some(Refusal::Password) => failed
                        .because("the proxy answered 407: it wants a user and a password, or others")
                        .hint("they are a part of its URL: `http://USER:PASSWORD@HOST:PORT`, with special characters as `%40`"),
                    Some(Refusal::Other) => {
                        failed.because("the proxy refused to connect, such as with 403").hint(
                            "ask who runs the proxy to let this host through, or name it in NO_PROXY",
                        )
                    }
                    None => failed.because(cause.clone()),
                }
            }
        }
    }
}

/// Why a proxy does not connect.
enum Refusal {
    Password,
    Other,
}

/// Whether it was the proxy that refused, by the words of the client's error, which has nothing else.
fn by_proxy(cause: &str) -> Option<Refusal> {
    match cause.strip_prefix("tunnel error: ")? {
        "proxy authorization required" => Some(Refusal::Password),
        "unsuccessful" => Some(Refusal::Other),
        _ => None,
    }
}

/// Whether nobody knows the name of the host, by the words of the system (glibc, musl, macOS, Windows), which are all that there is.
fn is_unknown_name(cause: &str) -> bool {
    const WORDS: [&str; 4] = [
        "Name or service not known",
        "Name does not resolve",
        "nodename nor servname provided",
        "No such host is known",
    ];
    WORDS.iter().any(|words| cause.contains(words))
}

/// Whether the answer was no HTTP, by the words of the client's error, which has nothing else.
fn is_no_http(cause: &str) -> bool {
    cause.contains("invalid HTTP version parsed")
}

/// Whether the answer was HTTP, but with something in its head that it cannot have.
fn is_bad_http(cause: &str) -> bool {
    cause.starts_with("invalid ") || cause == "message head is too large"
}

impl Failure {
    /// A failure that another attempt may not meet again.
    pub fn may_pass(error: ProviderError) -> Self {
        Self { error, may_pass: true, retry_after: None, overloaded: None, unreachable: None }
    }

    /// A failure that another attempt may not meet again after this pause.
    pub fn after_pause(error: ProviderError, pause: Duration) -> Self {
        Self { retry_after: Some(pause), ..Self::may_pass(error) }
    }

    /// This failure, with the reason that the server gave. Another token does not help against a policy.
    pub(super) fn with_server_reason(self, reason: String, is_policy: bool) -> Self {
        let error = self.error.because(reason);
        let next = "the registry has a rule against it: ask those who run the registry";
        let error = if is_policy { error.hint_instead(next) } else { error };
        Self { error, ..self }
    }

    /// The error alone.
    pub fn into_error(self) -> ProviderError {
        self.error
    }

    /// What went wrong between here and `url`; `refused` is a hint if its certificate is not accepted, and `trusted` what names those that
    /// are.
    pub(super) fn transport(
        error: ExchangeError,
        url: &SafeUrl,
        proxy: Option<String>,
        refused: Option<String>,
        trusted: Option<&str>,
    ) -> Self {
        let network = |text: String| ProviderError::new(ErrorKind::Network, text);
        let unreachable = || network(format!("cannot reach `{url}`"));
        let unreachable_for = |why: Unreachable| Self {
            unreachable: Some(Box::new((url.as_url().origin(), why.clone()))),
            ..Self::may_pass(why.error(url))
        };
        Self::may_pass(match error {
            ExchangeError::Silence(patience) => {
                return unreachable_for(Unreachable::Silent(patience));
            }
            ExchangeError::Transport(error) if let Some(about) = certificate_error(&error) => {
                let host = url.host_and_port();
                let cause = root_cause(&error);
                let failed = network(format!("the identity of `{host}` cannot be verified"))
                    .because(in_words(&about, &cause));
                // Whom one trusts makes no other certificate of it.
                let is_unknown =
                    about == CertificateError::UnknownIssuer || cause.contains(AUTHORITYS_OWN);
                let failed = match (is_unknown, trusted) {
                    (false, _) => failed,
                    (true, None) => failed.hint("if it uses a certificate authority of your own, or a certificate that is signed by itself, name the file with that in SSL_CERT_FILE"),
                    (true, Some(trusted)) => failed.hint(format!(
                        "neither its certificate nor the authority that signed it is among those that are trusted: {trusted}"
                    )),
                };
                return refused.into_iter().fold(failed, ProviderError::hint).into();
            }
            ExchangeError::Transport(error) if is_without_tls(&error) => {
                let host = url.host_and_port();
                return network(format!("`{host}` does not speak TLS"))
                    .without_tls()
                    .hint(format!("if it is plain http, write `http://{host}/...`"))
                    .into();
            }
            ExchangeError::Transport(error) if error.is_connect() => {
                let cause = root_cause(&error.without_url());
                // A proxy that refuses will refuse again, and a name that is not known will not be.
                let may_pass = by_proxy(&cause).is_none() && !is_unknown_name(&cause);
                let failed = unreachable_for(Unreachable::Unconnected { proxy, cause });
                return Self { may_pass, ..failed };
            }
            ExchangeError::Transport(error)
                if url.scheme() == "http" && is_no_http(&root_cause(&error)) =>
            {
                let host = url.host_and_port();
                return network(format!("`{host}` does not speak plain http"))
                    .because("it answered with something else, as a port does that speaks TLS")
                    .hint(tls_instead(url))
                    .into();
            }
            ExchangeError::Transport(error) => {
                let is_refused = url.scheme() == "http";
                let cause = root_cause(&error.without_url());
                if is_bad_http(&cause) {
                    let failed = network(format!("the answer from `{url}` is not valid HTTP"));
                    return Self::may_pass(failed.because(cause));
                }
                let failed = unreachable().because(cause);
                match is_refused {
                    // It accepted the connection, and did not understand the request.
                    true => failed.hint(tls_instead(url)),
                    false => failed,
                }
            }
            ExchangeError::Ended => unreachable(),
        })
    }

    /// The failure that the answer from `url` ended early.
    pub fn broken_off(error: &io::Error, url: &SafeUrl) -> Self {
        let failed =
            ProviderError::new(ErrorKind::Network, format!("the answer from `{url}` ended early"));
        let is_late = error.kind() == io::ErrorKind::TimedOut;
        let failed = failed.because(root_cause(error));
        Self::may_pass(if is_late { failed.late() } else { failed })
    }

    /// The failure with a status that means that the server does not accept the request.
    pub(super) fn refused(response: &Response, text: String) -> Self {
        let url = response.url();
        let error = ProviderError::new(ErrorKind::Protocol, text);
        // It is the answer of most servers that expect TLS.
        let is_plain = response.status() == 400 && url.scheme() == "http";
        if is_plain { error.hint(tls_instead(url)).into() } else { error.into() }
    }

    /// A status that means that the server cannot answer now.
    pub(super) fn unavailable(response: &Response, overload: Option<Overload>) -> Self {
        let text = format!("`{}` answered {}", response.url(), response.status_text());
        let error = ProviderError::new(ErrorKind::Network, text);
        let retry_after = overload.map(|overload| overload.pause).or_else(|| retry_after(response));
        let overloaded = overload.map(|overload| overload.answered);
        Self { retry_after, overloaded, ..Self::may_pass(error) }
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        Self { may_pass: false, ..Self::may_pass(error) }
    }
}

impl Http {
    /// Calls `attempt` until it succeeds, fails permanently, or has failed too often.
    ///
    /// # Errors
    ///
    /// The last attempt's.
    pub fn retry<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, ProviderError> {
        let delays = || {
            ExponentialBuilder::default()
                .with_min_delay(self.options.first_delay)
                .with_max_delay(self.options.longest_delay)
                .with_max_times(self.options.retries)
                .with_jitter()
                .build()
        };
        let mut left = delays();
        let begin = Instant::now();
        let mut attempts = 0;
        // How many requests the server had answered when it refused this one because there were too many.
        let mut answered = None;
        loop {
            let failure = match attempt() {
                Ok(value) => return Ok(value),
                Err(failure) if failure.may_pass => failure,
                Err(failure) => return Err(failure.error),
            };
            attempts += 1;
            if let Some(now) = failure.overloaded {
                // A server that answers others meanwhile will answer this one, too.
                if answered.replace(now).is_some_and(|before| before != now) {
                    left = delays();
                }
            }
            let Some(delay) = left.next() else {
                // A server that cannot be reached is not tried again in this run, by anyone.
                if let Some((server, why)) = failure.unreachable.map(|reason| *reason) {
                    lock(&self.given_up).entry(server).or_insert(why);
                }
                return Err(failure.error.after(attempts, begin.elapsed()));
            };
            // What the server asks for counts instead of mu's own pause. All such pauses of a run together have an end.
            let delay = match failure.retry_after.map(|asked| asked.min(self.options.longest_delay))
            {
                None => delay,
                Some(asked) if self.may_wait(asked) => asked,
                Some(_) => {
                    let longest = self.options.longest_wait.as_secs();
                    let hint = format!(
                        "servers asked for longer pauses than the {longest} s that a run waits in all"
                    );
                    return Err(failure.error.hint(hint));
                }
            };
            if let Some(watch) = &self.options.watch {
                watch(&RequestEvent::Repeated {
                    reason: &failure.error.to_string(),
                    attempt: attempts,
                    attempts: self.options.retries.max(attempts) + 1,
                    pause: delay,
                });
            }
            // After a refusal, all requests to the server wait for their turns.
            if failure.overloaded.is_none() {
                (self.options.sleep)(delay);
            }
        }
    }

    /// Waits for the turn of a request to `url`, if the server there has refused one because there were too many.
    pub(super) fn wait_for_turn(&self, url: &SafeUrl) {
        // Each round but the last has waited, and another thread was refused meanwhile: this one waits with it.
        while let Some(turn) = self.paces.turn(url, (self.options.now)()) {
            if !turn.pause.is_zero() {
                (self.options.sleep)(turn.pause);
            }
            if self.paces.still_has(url, &turn) {
                return;
            }
        }
    }

    /// Whether requests to `url` take turns, because the server there has refused one.
    pub fn takes_turns(&self, url: &SafeUrl) -> bool {
        self.paces.is_paced(url)
    }

    /// Notes whether a server answered a request, or refused it because there were too many.
    pub(super) fn note_status(&self, response: &Response) -> Option<Overload> {
        let (options, url) = (&self.options, response.url());
        let asked = retry_after(response).map(|asked| asked.min(options.longest_delay));
        if response.status() != 429 && (response.status() != 503 || asked.is_none()) {
            self.paces.answer(url);
            return None;
        }
        let times = (response.sent(), (options.now)());
        let overload = self.paces.refuse(url, times, asked, options.first_delay);
        Some(Overload { pause: overload.pause.min(options.longest_delay), ..overload })
    }

    /// The error of a request to `url`, if the server there was given up in this run.
    pub(super) fn check_given_up(&self, url: &SafeUrl) -> Result<(), ProviderError> {
        let given_up = lock(&self.given_up);
        given_up.get(&url.as_url().origin()).map_or(Ok(()), |why| Err(why.error(url)))
    }

    /// Whether to wait if a server requests it.
    fn may_wait(&self, delay: Duration) -> bool {
        let mut waits = lock(&self.waits);
        waits.add((self.options.now)(), delay) <= self.options.longest_wait
    }
}

/// How long a run waits for servers that ask for pauses.
#[derive(Debug, Default)]
pub(super) struct Waits {
    whole: Duration,
    /// When the last pause ends.
    until: Option<Instant>,
}

impl Waits {
    /// Adds a wait that begins now; returns the total. Waits at the same time count once.
    fn add(&mut self, now: Instant, delay: Duration) -> Duration {
        let begin = self.until.map_or(now, |until| until.max(now));
        let end = now + delay;
        self.whole += end.saturating_duration_since(begin);
        self.until = Some(end.max(begin));
        self.whole
    }
}

/// How long the server asks to pause: in seconds, or until a date.
///
/// The date is compared with the answer's own `Date`, so this machine's clock does not matter.
fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.header("retry-after")?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| text.parse::<HttpDate>().ok().map(std::time::SystemTime::from);
    let until = date(text)?;
    let now = date(response.header("date")?)?;
    Some(until.duration_since(now).unwrap_or_default())
}

/// The message of the innermost cause: the outer ones only say that a request failed.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().unwrap_or(error).to_string()
}

/// What is wrong with a certificate. TLS says of some errors only what it calls them.
fn in_words(error: &CertificateError, cause: &str) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "it is not signed by a certificate authority that this machine trusts".to_owned()
        }
        _ if cause.contains(AUTHORITYS_OWN) => {
            "its certificate is that of a certificate authority, or signed by itself".to_owned()
        }
        CertificateError::NotValidForName => "its certificate is for another name".to_owned(),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let name = |shown: &String| shown.split('"').nth(1).unwrap_or(shown).to_owned();
            let names: Vec<String> = presented.iter().map(name).collect();
            format!("its certificate is for another name: {}", names.join(", "))
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired; is the clock of this machine right?".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; is the clock of this machine right?".to_owned()
        }
        CertificateError::Revoked => "its certificate is revoked".to_owned(),
        _ => cause.to_owned(),
    }
}

/// What the cause is called if a server shows the certificate of an authority as its own.
const AUTHORITYS_OWN: &str = "CaUsedAsEndEntity";

/// What is wrong with the other side's certificate, which another attempt cannot change, if TLS failed because of that.
fn certificate_error(error: &reqwest::Error) -> Option<CertificateError> {
    match tls_error(error) {
        Some(rustls::Error::InvalidCertificate(error)) => Some(error.clone()),
        _ => None,
    }
}

/// What to try if a server does not understand plain http.
fn tls_instead(url: &SafeUrl) -> String {
    format!("if it expects TLS, write `https://{}/...`", url.host_and_port())
}

/// Whether the other side did not answer with TLS, but for example with plain http.
fn is_without_tls(error: &reqwest::Error) -> bool {
    let invalid = rustls::InvalidMessage::InvalidContentType;
    matches!(tls_error(error), Some(rustls::Error::InvalidMessage(message)) if *message == invalid)
}

/// The TLS error, if it is one.
fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(mut error) = next {
        // An I/O error that wraps another error does not return it as its source.
        while let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            error = inner;
        }
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    #[test]
    fn what_is_wrong_with_a_certificate_is_told_in_words() {
        let time = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expected = ServerName::try_from("a.example").expect("is a name").to_owned();
        let presented = vec!["DnsName(\"b.example\")".to_owned(), "192.0.2.1".to_owned()];
        for (error, words) in [
            (
                CertificateError::ExpiredContext { time: time(2), not_after: time(1) },
                "its certificate has expired; is the clock of this machine right?",
            ),
            (
                CertificateError::NotValidYetContext { time: time(1), not_before: time(2) },
                "its certificate is not valid yet; is the clock of this machine right?",
            ),
            (
                CertificateError::NotValidForNameContext { expected, presented },
                "its certificate is for another name: b.example, 192.0.2.1",
            ),
        ] {
            let cause = rustls::Error::InvalidCertificate(error.clone()).to_string();
            assert_eq!(in_words(&error, &cause), words);
        }
    }

    #[test]
    fn what_is_waited_for_at_the_same_time_counts_once() {
        let begin = Instant::now();
        let mut waits = Waits::default();
        for (after, delay, whole) in
            [(0, 60, 60), (1, 60, 61), (2, 30, 61), (61, 60, 121), (200, 10, 131), (210, 0, 131)]
        {
            let now = begin + Duration::from_secs(after);
            let all = waits.add(now, Duration::from_secs(delay));
            assert_eq!(all, Duration::from_secs(whole), "{after} {delay}");
        }
    }
}
