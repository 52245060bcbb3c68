//! `hub init`, `check`, `tidy`, `serve` and `token`: for the owners of hubs, in a folder or a bucket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use mu_hub::{Hub, HubError, Place, Report};
use mu_provider::http::HttpOptions;
use mu_provider::{Lead, Location, SafeUrl, place_without_secrets};

pub use mu_hub::{Can, Network, Serving, Token, UpstreamHub};

use crate::env::Environment;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Session};
use crate::workspace::Cutoff;

/// The folder in the cache where archives are unpacked for publishing, serving or checking.
const STAGING: &str = "hub-staging";

/// The folder in the cache for the catalogs that servers keep of large hubs.
const OWN_CATALOGS: &str = "hub-catalogs";

/// A token to create.
#[derive(Debug, Clone)]
pub struct TokenToCreate {
    /// Its name.
    pub name: String,
    /// The namespaces that it is for.
    pub namespaces: Vec<String>,
    /// The namespaces that it reads of a private hub besides; everything, if this is none.
    pub reads: Option<Vec<String>>,
    /// What it allows.
    pub can: Vec<Can>,
    /// When it expires: at a time, or in this many seconds.
    pub expires: Option<Cutoff>,
}

/// The place that a command line names: a folder, a `file:` URL, or a bucket (`s3://BUCKET/PREFIX`).
pub fn hub_place(environment: &Environment, text: &str) -> Result<Place, CommandError> {
    let variables = environment.variables.iter();
    let variables = variables.map(|(name, value)| (name.as_str(), value.as_str()));
    let place = Place::parse(text, &environment.current, variables)?;
    Ok(place.staged_in(staging(environment)))
}

/// The folder below which archives are unpacked to be examined.
pub(crate) fn staging(environment: &Environment) -> PathBuf {
    environment.cache.join(STAGING)
}

/// Creates a hub, unless there is one; returns whether it is new.
pub fn create_hub(environment: &Environment, text: &str) -> Result<bool, CommandError> {
    let (_, is_new) = Hub::init(&hub_place(environment, text)?)?;
    Ok(is_new)
}

/// Reads a whole hub again, compares each index line with its archive and the manifest in it, and with
/// `repair` fixes what can be fixed.
pub fn check(
    environment: &Environment,
    text: &str,
    repair: bool,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, CommandError> {
    let hub = Hub::open(&hub_place(environment, text)?)?;
    Ok(hub.check(repair, progress)?)
}

/// The folder in which a server keeps what it knows of a large hub.
pub fn state_folder(environment: &Environment) -> PathBuf {
    environment.cache.join(OWN_CATALOGS)
}

/// Writes the files about all packages of a hub, as far as that is due. Returns whether it has few enough for a catalog.
pub fn tidy_hub(environment: &Environment, text: &str) -> Result<bool, CommandError> {
    Ok(Hub::open(&hub_place(environment, text)?)?.tidy()?)
}

/// How often a request to an upstream hub is repeated: somebody waits for the answer.
const UPSTREAM_RETRIES: usize = 1;

/// How long an answer of an upstream hub is not asked for again.
const UPSTREAM_MAX_AGE: Duration = Duration::from_secs(60);

/// The hub at `url` as one that another hub asks for what it has not, with the tokens of this user; it may be silent for so long.
pub fn upstream_hub(
    session: &Session,
    url: &str,
    silence: Duration,
) -> Result<UpstreamHub, CommandError> {
    let wrong = |why: &str| {
        let message = format!("--upstream {}: {why}", place_without_secrets(url));
        CommandError::new(Code::Usage, message)
            .hint("write the URL of a hub, such as `--upstream https://hub.example/`")
    };
    let place = SafeUrl::parse(url).map_err(|error| wrong(&error.to_string()))?.as_folder();
    if !matches!(place.scheme(), "http" | "https") {
        return Err(wrong("expected an http or https URL"));
    }
    let insecure = session.options.allow_insecure;
    let http = HttpOptions {
        only: Some(place.clone()),
        most_requests: usize::MAX,
        retries: UPSTREAM_RETRIES,
        read_timeout: silence,
        watch: None,
        ..session.http().options().clone()
    };
    let location = Location { insecure, ..Location::new(Lead::of_user(place), "") };
    let downloads = session.environment.cache.join("downloads");
    let (own, max_age) = (Vec::new(), UPSTREAM_MAX_AGE);
    Ok(UpstreamHub { location, http, downloads, own, max_age })
}

/// A server of hubs: serves the one at a place until the process is asked to stop, and calls the last argument with the address.
pub type Serve = fn(&Place, Serving, &mut dyn FnMut(SocketAddr)) -> Result<(), HubError>;

/// Serves a hub until the process is asked to stop; calls `started` with the address.
pub fn serve_hub(
    environment: &Environment,
    text: &str,
    mut serving: Serving,
    serve: Serve,
    started: &mut dyn FnMut(SocketAddr),
) -> Result<(), CommandError> {
    let absolute = |path: PathBuf| environment.current.join(path);
    serving.tls = serving.tls.map(|(chain, key)| (absolute(chain), absolute(key)));
    serving.state = absolute(serving.state);
    Ok(serve(&hub_place(environment, text)?, serving, started)?)
}

/// Creates a token and returns it.
pub fn create_hub_token(
    environment: &Environment,
    text: &str,
    new: TokenToCreate,
) -> Result<String, CommandError> {
    let now = environment.now;
    let at = |moment: i64| {
        Timestamp::from_second(moment)
            .map_err(|error| CommandError::new(Code::Usage, error.to_string()))
    };
    let expires = match new.expires {
        None => None,
        Some(Cutoff::Age(seconds)) => Some(at(now.saturating_add(seconds))?),
        Some(Cutoff::Moment(moment)) => Some(at(moment)?),
    };
    if expires.is_some_and(|expires| expires.as_second() <= now) {
        return Err(CommandError::new(Code::Usage, "the token would already have expired"));
    }
    let new = mu_hub::NewToken {
        name: new.name,
        namespaces: new.namespaces,
        reads: new.reads,
        can: new.can,
        created: at(now)?,
        expires,
    };
    Ok(Hub::open(&hub_place(environment, text)?)?.add_token(&new)?)
}

/// The tokens of a hub.
pub fn hub_tokens(environment: &Environment, text: &str) -> Result<Vec<Token>, CommandError> {
    Ok(Hub::open(&hub_place(environment, text)?)?.tokens()?)
}

/// Revokes a token.
pub fn revoke_hub_token(
    environment: &Environment,
    text: &str,
    name: &str,
) -> Result<(), CommandError> {
    if Hub::open(&hub_place(environment, text)?)?.revoke_token(name)? {
        return Ok(());
    }
    let message = format!("the hub at `{text}` has no token `{name}`");
    Err(CommandError::new(Code::NotFound, message)
        .hint(format!("`mu hub token list {}` lists its tokens", quoted_for_shell(text))))
}

impl From<HubError> for CommandError {
    fn from(error: HubError) -> Self {
        let error = match error {
            HubError::File(error) => return error.into(),
            other => other,
        };
        let code = match &error {
            HubError::Place { .. } => Code::Usage,
            HubError::Missing { .. } | HubError::NotFound { .. } => Code::NotFound,
            HubError::Broken { .. }
            | HubError::Archive { .. }
            | HubError::Mismatch { .. }
            | HubError::Differs { .. } => Code::Integrity,
            HubError::OtherVersion { .. } => Code::Workspace,
            HubError::Refused { .. } => Code::Manifest,
            HubError::Exists { .. } | HubError::Busy { .. } | HubError::Changed { .. } => {
                Code::Conflict
            }
            HubError::Store { .. } | HubError::Io { .. } | HubError::File(_) => Code::Io,
        };
        let hint = error.hint();
        hint.into_iter().fold(Self::from_error(code, error), Self::hint)
    }
}
