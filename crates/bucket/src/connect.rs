//! How buckets are connected to and asked: with which keys, how long to wait for the metadata service of a cloud, how a request
//! of mu's own HTTP client is signed, and who learns what is sent.
//!
//! The tools of AWS store credentials in `~/.aws/credentials` and `~/.aws/config`. Of one profile, this reads keys, region and
//! endpoint, as variables of the environment that are not set. What a profile gets from elsewhere (single sign-on, a role, a
//! program) is not asked for.
//!
//! If no credentials are set, a machine in a cloud gets those of its role from a service with a local address. Elsewhere, nobody
//! answers there. A client that retries as often as for a bucket would make people wait for half a minute before it says that
//! credentials are missing.
//!
//! The client of the object stores knows how each store wants its requests signed. It is asked for a file, with a mark
//! ([`Unsent`]) on the request; the connection takes what would be sent, and sends nothing. So reading needs the same settings
//! and credentials as publishing, and every request is sent by mu's own client, under its rules. What the client itself needs
//! first, such as the credentials of a machine in a cloud, is sent by it.
//!
//! [`Sending`] says how much of a large file is on its way to a bucket. The client of the object stores sends a body piece by
//! piece, and drops each when the connection has taken it. That is what is counted. Files that are sent in a moment are not
//! worth a word.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use mu_provider::http::{HeaderMap, Signed, Signer};
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, ProviderError, SafeUrl, causes};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpService, ReqwestConnector,
};
use object_store::{ClientOptions, GetOptions, GetRange, ObjectStore, PutPayload};
use tokio::runtime::{Builder, Runtime};

use crate::{Bucket, credentials_hint};

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

mu_provider::debug_fields!(Sending {});

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

/// Variables that say where credentials come from, or that there are none.
const DECIDED: [&str; 5] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
];

/// The keys of a profile, the variables that they stand for, and other variables with the same meaning.
const KEYS: [(&str, &str, &[&str]); 5] = [
    ("aws_access_key_id", "AWS_ACCESS_KEY_ID", &[]),
    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", &[]),
    ("aws_session_token", "AWS_SESSION_TOKEN", &["AWS_TOKEN"]),
    ("region", "AWS_REGION", &["AWS_DEFAULT_REGION"]),
    ("endpoint_url", "AWS_ENDPOINT_URL", &["AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"]),
];

/// Adds what the files say to the variables. `home` is the user's folder, and `read` reads a file, if it is there.
///
/// # Errors
///
/// When a file cannot be read, or the profile that `AWS_PROFILE` names has no keys.
pub(crate) fn complete(
    variables: &mut Vec<(String, String)>,
    home: Option<&str>,
    read: &dyn Fn(&Path) -> Result<Option<String>, String>,
) -> Result<(), String> {
    let get = |name: &str| {
        let found = variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    if DECIDED.iter().any(|name| get(name).is_some()) {
        return Ok(());
    }
    let named = get("AWS_PROFILE");
    let profile = named.as_deref().unwrap_or("default");
    let file = |variable: &str, usual: &str| {
        let usual = || home.map(|home| PathBuf::from(home).join(".aws").join(usual));
        get(variable).map(PathBuf::from).or_else(usual)
    };
    let places = [
        (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile.to_owned()),
        (
            file("AWS_CONFIG_FILE", "config"),
            if profile == "default" { profile.to_owned() } else { format!("profile {profile}") },
        ),
    ];
    let mut said: Vec<(String, String)> = Vec::new();
    for (path, section) in &places {
        let Some(path) = path else { continue };
        said.extend(keys(&read(path)?.unwrap_or_default(), section));
    }
    let value = |key: &str| {
        let found = said.iter().find(|(known, value)| known == key && !value.is_empty());
        found.map(|(_, value)| value.clone())
    };
    if let Some(profile) = named
        && value("aws_access_key_id").is_none()
    {
        let shown = |(path, section): &(Option<PathBuf>, String)| {
            Some(format!("`[{section}]` in `{}`", path.as_ref()?.display()))
        };
        let looked: Vec<String> = places.iter().filter_map(shown).collect();
        return Err(format!(
            "AWS_PROFILE names the profile `{profile}`, and neither {} has an `aws_access_key_id`; mu does not sign in or take roles: \
             `aws configure export-credentials --profile {profile} --format env` prints variables that mu reads",
            looked.join(" nor ")
        ));
    }
    let is_missing = |names: &[&str]| names.iter().all(|name| get(name).is_none());
    let found = KEYS.iter().filter(|(_, name, others)| is_missing(&[name]) && is_missing(others));
    let found = found.filter_map(|(key, name, _)| Some(((*name).to_owned(), value(key)?)));
    let found: Vec<_> = found.collect();
    variables.extend(found);
    Ok(())
}

/// The keys of a section. What is indented belongs to the key before it, and counts for other tools.
fn keys(text: &str, section: &str) -> Vec<(String, String)> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.trim_end().strip_prefix('[') {
            is_inside = name
                .strip_suffix(']')
                .is_some_and(|name| name.split_whitespace().eq(section.split_whitespace()));
            continue;
        }
        let is_read = is_inside && !line.starts_with(['#', ';', ' ', '\t']);
        if let Some((key, value)) = line.split_once('=').filter(|_| is_read) {
            found.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    found
}

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
struct Unsent(Arc<Mutex<Option<(String, HeaderMap)>>>);

/// The request was taken instead of being sent.
#[derive(Debug, thiserror::Error)]
#[error("the request was signed")]
struct Taken;

impl Unsent {
    /// Takes a request; the error ends the client's work.
    fn take(&self, request: &HttpRequest) -> HttpError {
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
        let path =
            object_store::path::Path::from_url_path(url.as_url().path()).map_err(|error| {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(
        set: &[(&str, &str)],
        credentials: &str,
        config: &str,
    ) -> Result<Vec<String>, String> {
        let read = |path: &Path| {
            let files = [("credentials", credentials), ("config", config)];
            let is_it = |name: &str| path == Path::new("/home/ada/.aws").join(name);
            let found = files.into_iter().find(|(name, _)| is_it(name));
            Ok(found.map(|(_, text)| text.to_owned()))
        };
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut variables: Vec<_> = set.collect();
        let given = variables.len();
        complete(&mut variables, Some("/home/ada"), &read)?;
        let added = variables.split_off(given).into_iter();
        Ok(added.map(|(name, value)| format!("{name}={value}")).collect())
    }

    const CREDENTIALS: &str = "# ours\n[default]\naws_access_key_id = one\naws_secret_access_key=a=b\n[work]\naws_access_key_id = two\naws_secret_access_key = c\naws_session_token = d\n";
    const CONFIG: &str = "[default]\nregion = eu-west-1\ns3 =\n  region = none\n[profile work]\nregion = us-east-2\nendpoint_url = https://s3.acme.example\n[profile sso]\nsso_session = acme\n[work]\nregion = wrong\n";

    #[test]
    fn a_profile_says_what_no_variable_does() {
        let complete = |set: &[(&str, &str)]| completed(set, CREDENTIALS, CONFIG);
        let default =
            ["AWS_ACCESS_KEY_ID=one", "AWS_SECRET_ACCESS_KEY=a=b", "AWS_REGION=eu-west-1"];
        assert_eq!(complete(&[]).expect("is there"), default);
        assert_eq!(complete(&[("AWS_DEFAULT_REGION", "x")]).expect("is there"), default[..2]);
        assert_eq!(
            complete(&[("AWS_PROFILE", "work")]).expect("is there"),
            [
                "AWS_ACCESS_KEY_ID=two",
                "AWS_SECRET_ACCESS_KEY=c",
                "AWS_SESSION_TOKEN=d",
                "AWS_REGION=us-east-2",
                "AWS_ENDPOINT_URL=https://s3.acme.example"
            ]
        );
        for (name, value) in [("AWS_ACCESS_KEY_ID", "x"), ("AWS_SKIP_SIGNATURE", "true")] {
            let said = complete(&[(name, value), ("AWS_PROFILE", "work")]);
            assert_eq!(said.expect("is decided"), <[&str; 0]>::default());
        }
        // The machine may provide them.
        assert_eq!(completed(&[], "", "").expect("is empty"), <[&str; 0]>::default());
        for profile in ["sso", "absent"] {
            let error = complete(&[("AWS_PROFILE", profile)]).expect_err("has no keys");
            for part in [profile, "`[profile ", ".aws/credentials`", "export-credentials"] {
                assert!(error.contains(part), "{error}");
            }
        }
    }
}
