//! Requests for files in buckets of object stores: a [`Signer`] turns `s3://BUCKET/KEY` into a signed request to the store, and
//! this file understands the answers.
//!
//! It does not know how requests are signed, or where credentials come from.

use std::fmt::Debug;

use reqwest::Method;
use reqwest::header::HeaderMap;

use super::credentials;
use crate::{ErrorKind, ProviderError, SafeUrl, without_secrets};

/// The longest answer that is read to find out why a store refuses, in bytes.
pub(super) const LONGEST_REFUSAL: usize = 16 << 10;

/// How many characters of the store's own words are shown.
const LONGEST_MESSAGE: usize = 200;

/// A longer word in an answer may be a token that the store repeats.
const LONGEST_WORD: usize = 60;

/// Signs requests that read files in buckets.
pub trait Signer: Debug + Send + Sync {
    /// The request for the file at `url`, with those of `headers` that a signature covers (`if-none-match`, `range`).
    ///
    /// # Errors
    ///
    /// When the bucket is not valid, or there are no credentials for it.
    fn sign(
        &self,
        url: &SafeUrl,
        headers: &[(&'static str, String)],
    ) -> Result<Signed, ProviderError>;

    /// Where the credentials for the bucket of `url` come from, in words.
    fn hint(&self, url: &SafeUrl) -> Option<String>;
}

/// A request as it goes to an object store.
#[derive(Debug)]
pub struct Signed {
    /// The URL in the store, perhaps with a signature in its query.
    pub url: SafeUrl,
    /// The headers that it needs.
    pub headers: HeaderMap,
    /// Where the credentials come from, in words; `None` if it has none.
    pub origin: Option<String>,
}

/// Whether a file in a bucket may be requested.
pub(super) fn check(url: &SafeUrl, method: &Method, has_signer: bool) -> Result<(), ProviderError> {
    let why = match *method {
        Method::GET if has_signer => return Ok(()),
        Method::GET => "this mu was built without the feature `buckets`",
        _ => "files in buckets are only read in this way",
    };
    Err(ProviderError::new(ErrorKind::Refused, format!("`{url}` is refused: {why}")))
}

/// The request to the store. It has credentials only if nobody else can read them.
pub(super) fn sign(
    signer: &dyn Signer,
    url: &SafeUrl,
    headers: &[(&'static str, String)],
    insecure: bool,
) -> Result<Signed, ProviderError> {
    let signed = signer.sign(url, headers)?;
    let has_credentials = signed.origin.is_some();
    if has_credentials && !signed.url.is_confidential() {
        let text = format!(
            "`{url}` was not requested: credentials are not sent over plain http, to `{}`",
            signed.url.host_and_port()
        );
        return Err(ProviderError::new(ErrorKind::Refused, text).hint("use an endpoint with https"));
    }
    credentials::check_scheme(&signed.url, insecure)?;
    Ok(signed)
}

/// A store's answer that is neither a file nor a promise that the next attempt may succeed.
pub(super) struct Refusal<'answer> {
    /// What was asked for.
    pub(super) url: &'answer SafeUrl,
    pub(super) status: u16,
    /// The status with its name.
    pub(super) status_text: String,
    /// A header's value.
    pub(super) header: &'answer dyn Fn(&str) -> Option<&'answer str>,
    /// The beginning of the body.
    pub(super) body: &'answer [u8],
}

/// Whether an answer with this status is a [`Refusal`].
pub(super) fn is_refusal(status: u16) -> bool {
    !matches!(status, 200..=299 | 304 | 408 | 416 | 429 | 500..=599)
}

impl Refusal<'_> {
    /// The error that it means, unless its status is `allowed`.
    pub(super) fn judge(&self, allowed: &[u16], signer: &dyn Signer) -> Result<(), ProviderError> {
        let Self { url, status, .. } = self;
        let reason = Reason::of(self);
        let bucket = bucket_of(url);
        if let Some(region) = &reason.region {
            let text =
                format!("`{url}` was not read: the bucket `{bucket}` is in the region {region}");
            let error = ProviderError::new(ErrorKind::Network, text);
            return Err(error.hint(format!("set AWS_REGION={region}")));
        }
        if matches!(reason.code.as_str(), "NoSuchBucket" | "ContainerNotFound") {
            let text = format!("`{url}` was not read: there is no bucket `{bucket}`");
            let error = ProviderError::new(ErrorKind::NotFound, text);
            return Err(error
                .hint("check its name, and the account, region and endpoint in the environment"));
        }
        // A store that does not list its files says this of each missing one. Everything else is about the credentials.
        if allowed.contains(status) && (*status != 403 || reason.code == "AccessDenied") {
            return Ok(());
        }
        let text = format!("`{url}` answered {}{}", self.status_text, reason.shown());
        let is_about_token = matches!(reason.code.as_str(), "ExpiredToken" | "InvalidToken");
        Err(match status {
            404 | 410 => ProviderError::new(ErrorKind::NotFound, text),
            401 | 403 => credentials(ProviderError::new(ErrorKind::Auth, text), url, signer),
            400 if is_about_token => {
                credentials(ProviderError::new(ErrorKind::Auth, text), url, signer)
            }
            _ => ProviderError::new(ErrorKind::Protocol, text),
        })
    }
}

fn credentials(error: ProviderError, url: &SafeUrl, signer: &dyn Signer) -> ProviderError {
    signer.hint(url).into_iter().fold(error, ProviderError::hint)
}

/// The name of the bucket or container in a URL.
fn bucket_of(url: &SafeUrl) -> String {
    match url.as_url().username() {
        "" => url.host_and_port(),
        container => container.to_owned(),
    }
}

/// Why a store refuses a request, in its own words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reason {
    code: String,
    message: String,
    /// The region to which the bucket belongs, if that is why.
    region: Option<String>,
}

impl Reason {
    fn of(refusal: &Refusal<'_>) -> Self {
        let mut reason = Self::in_text(&String::from_utf8_lossy(refusal.body));
        if let Some(code) = (refusal.header)("x-ms-error-code") {
            reason.code = code.to_owned();
        }
        let moved = matches!(refusal.status, 301 | 307).then_some("x-amz-bucket-region");
        if let Some(region) = moved.and_then(refusal.header) {
            reason.region = Some(region.to_owned());
        }
        reason.region = reason.region.filter(|region| is_region(region));
        reason
    }

    /// What the XML of an answer says.
    fn in_text(text: &str) -> Self {
        let part = |begin: &str, end: &str| {
            let (_, rest) = text.split_once(begin)?;
            Some(rest.split_once(end)?.0.lines().next()?.trim().to_owned())
        };
        let code = part("<Code>", "</Code>").unwrap_or_default();
        let is_elsewhere = code == "AuthorizationHeaderMalformed";
        let region = part("<Region>", "</Region>").filter(|_| is_elsewhere);
        Self { message: part("<Message>", "</Message>").unwrap_or_default(), code, region }
    }

    /// The end of a message.
    fn shown(&self) -> String {
        let is_plain = |word: &str| word.len() <= LONGEST_WORD;
        let cut = |text: &str| text.chars().take(LONGEST_MESSAGE).collect::<String>();
        let texts = [&self.code, &self.message].map(|text| text.trim_end_matches('.'));
        let texts = texts.iter().filter(|text| !text.is_empty() && text.split(' ').all(is_plain));
        texts.map(|text| format!(": {}", without_secrets(&cut(text)))).collect()
    }
}

/// Whether a text looks like a region, so that it can be part of a command.
fn is_region(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.len() <= LONGEST_WORD && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_without_markup_and_tokens() {
        let token = "x".repeat(80);
        for (text, expected) in [
            (
                "<?xml?><Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>",
                ": AccessDenied: Access Denied",
            ),
            (
                "\u{feff}<Error><Code>AuthenticationFailed</Code><Message>No.\nRequestId:3</Message>",
                ": AuthenticationFailed: No",
            ),
            (&format!("<Code>Denied</Code><Message>not {token}</Message>"), ": Denied"),
            ("<html>", ""),
        ] {
            assert_eq!(Reason::in_text(text).shown(), expected);
        }
        let elsewhere = "<Code>AuthorizationHeaderMalformed</Code><Message>m</Message><Region>eu-west-1</Region>";
        assert_eq!(Reason::in_text(elsewhere).region.as_deref(), Some("eu-west-1"));
        assert!(!is_region("eu; rm -r") && is_region("eu-west-1"));
    }
}
