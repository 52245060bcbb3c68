//! Reads one small file of a hub, from a web server or a folder, unless it is unchanged.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use flate2::read::GzDecoder;
use mu_provider::fs::{self, AtPath as _};
use mu_provider::http::{Failure, Http, Method, Response, begins_web_page};
use mu_provider::publishable::LONGEST_PROVENANCE;
use mu_provider::{ErrorKind, Limits, Location, Progress, ProviderError, SafeUrl};
use serde::{Deserialize, Serialize};

/// A value for finding out whether a file is unchanged. The caller stores it as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Validator {
    /// The server's name for these bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// When the file changed: the server's words, or seconds and nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// The size of the file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// The hub's generation before the file was read, which is at least as new as that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

impl Validator {
    /// Reads the text of [`Validator::to_stored_text`]. Any other text means that nothing is known about the file.
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The text to store, if there is anything to compare.
    pub fn to_stored_text(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        Some(serde_json::to_string(self).expect("a few optional texts can be printed"))
    }

    /// This validator, for bytes that are at least as new as `generation`.
    pub fn at(self, generation: Option<u64>) -> Self {
        Self { generation, ..self }
    }

    /// Whether the file that this was read with is the one of `known`. A server that tells nothing but the size does not say so.
    fn is_of(&self, known: &Self) -> bool {
        let is_told = known.etag.is_some() || known.modified.is_some();
        let is_as_long = known.size.is_none() || known.size == self.size;
        is_told && is_as_long && (&self.etag, &self.modified) == (&known.etag, &known.modified)
    }

    /// The headers of a request for the file, unless it is still the same.
    pub(crate) fn conditional_headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let etag = self.etag.as_deref().map(|etag| ("if-none-match", etag));
        let modified = self.modified.as_deref().map(|modified| ("if-modified-since", modified));
        etag.into_iter().chain(modified)
    }

    pub(crate) fn of_response(response: &Response) -> Self {
        let header = |name| response.header(name).map(str::to_owned);
        Self { etag: header("etag"), modified: header("last-modified"), ..Self::default() }
    }
}

/// A file as it was read.
#[derive(Debug)]
pub struct Document {
    /// Its content.
    pub bytes: Vec<u8>,
    /// The validator for the next time.
    pub validator: Validator,
    /// For how many seconds it need not be requested again.
    pub max_age: Option<u32>,
    /// Whether it came from a cache on the way, and may be older than the hub's file.
    pub is_aged: bool,
}

impl Document {
    /// The validator to store, if the hub had this generation before.
    pub fn validator_at(&self, generation: Option<u64>) -> Option<String> {
        self.validator.clone().at(generation.filter(|_| !self.is_aged)).to_stored_text()
    }
}

/// The result of requesting a file.
#[derive(Debug)]
pub enum DocumentAnswer {
    /// It is unchanged.
    Unchanged {
        /// As in [`Document`].
        max_age: Option<u32>,
        /// As in [`Document`].
        is_aged: bool,
    },
    /// There is no such file.
    Absent {
        /// As in [`Document`].
        max_age: Option<u32>,
        /// As in [`Document`].
        is_aged: bool,
    },
    /// The server does not say whether it exists: it answered 403, and the request accepts that.
    Hidden,
    /// The file.
    Read(Document),
}

impl DocumentAnswer {
    /// Whether the file is the one of `known`, as far as the server tells.
    pub fn is_of(&self, known: &Validator) -> bool {
        match self {
            Self::Unchanged { .. } => true,
            Self::Read(document) => document.validator.is_of(known),
            Self::Absent { .. } | Self::Hidden => false,
        }
    }
}

/// Asks for a file.
pub struct Asking<'asked> {
    /// The client.
    pub http: &'asked Http,
    /// Whether plain http was allowed for the hub.
    pub insecure: bool,
    /// The longest that is read.
    pub limit: u64,
    /// Whether 403 is an answer: stores that do not list their files answer 403 for each missing file.
    pub hides: bool,
    /// Whether caches on the way are to ask the hub itself.
    pub past_caches: bool,
    /// Receives reports of waits.
    pub progress: &'asked dyn Progress,
}

impl<'asked> Asking<'asked> {
    /// Asks for a file of the place of a package.
    pub fn new(
        http: &'asked Http,
        location: &Location,
        limit: u64,
        progress: &'asked dyn Progress,
    ) -> Self {
        let insecure = location.insecure;
        Self { http, insecure, limit, hides: false, past_caches: false, progress }
    }

    /// Reads the file at `url`, unless `validator` shows that it is unchanged.
    ///
    /// # Errors
    ///
    /// When the place cannot be reached, or the file is too long.
    pub fn read(
        &self,
        url: &SafeUrl,
        validator: Option<&Validator>,
    ) -> Result<DocumentAnswer, ProviderError> {
        match url.scheme() {
            "file" => self.read_file(url, validator),
            _ => self.download(url, validator),
        }
    }

    /// Reads the file beside an archive; `None` if there is none, for which some servers show a page.
    fn beside(&self, archive: &SafeUrl, ending: &str) -> Result<Option<Vec<u8>>, ProviderError> {
        let mut url = archive.as_url().clone();
        url.set_path(&format!("{}{ending}", url.path()));
        Ok(match self.read(&url.into(), None)? {
            DocumentAnswer::Read(found) => Some(found.bytes).filter(|text| !begins_web_page(text)),
            _ => None,
        })
    }

    fn download(
        &self,
        url: &SafeUrl,
        validator: Option<&Validator>,
    ) -> Result<DocumentAnswer, ProviderError> {
        let request = self.http.get(url).insecure(self.insecure).allow(404).allow(410);
        let request = if self.hides { request.allow(403) } else { request };
        let mut request = request.header("accept-encoding", "gzip");
        if self.past_caches {
            request = request.header("cache-control", "no-cache").header("pragma", "no-cache");
        }
        for (name, value) in validator.into_iter().flat_map(Validator::conditional_headers) {
            request = request.header(name, value);
        }
        self.http.retry(|| {
            let response = request.attempt()?;
            let max_age = response.max_age();
            let is_aged = response.header("age").is_some_and(|age| age.trim() != "0");
            match response.status() {
                304 => return Ok(DocumentAnswer::Unchanged { max_age, is_aged }),
                404 | 410 => return Ok(DocumentAnswer::Absent { max_age, is_aged }),
                403 => return Ok(DocumentAnswer::Hidden),
                _ => {}
            }
            let mut validator = Validator::of_response(&response);
            let is_gzip = response.header("content-encoding").is_some_and(|name| name == "gzip");
            let mut bytes = response.bytes(self.limit, self.progress)?;
            if is_gzip {
                bytes = self.inflate(&bytes, url)?;
            }
            validator.size = Some(bytes.len() as u64);
            Ok(DocumentAnswer::Read(Document { bytes, validator, max_age, is_aged }))
        })
    }

    fn inflate(&self, bytes: &[u8], url: &SafeUrl) -> Result<Vec<u8>, Failure> {
        let mut inflated = Vec::new();
        let most = Limits::default().most_from(bytes.len() as u64);
        let limit = self.limit.min(most);
        GzDecoder::new(bytes).take(limit + 1).read_to_end(&mut inflated).map_err(|error| {
            let text = format!("the answer from `{url}` cannot be inflated");
            ProviderError::new(ErrorKind::Protocol, text).because(error)
        })?;
        if inflated.len() as u64 > most {
            let text = format!("the answer from `{url}` is refused");
            let ratio = Limits::default().ratio;
            let why = format!("inflated, it is more than {ratio} times as long as it was sent");
            return Err(ProviderError::new(ErrorKind::Integrity, text).because(why).into());
        }
        self.check_length(&inflated, url)?;
        Ok(inflated)
    }

    fn read_file(
        &self,
        url: &SafeUrl,
        validator: Option<&Validator>,
    ) -> Result<DocumentAnswer, ProviderError> {
        let path = file_path(url)?;
        let read = |mut file: File| -> io::Result<DocumentAnswer> {
            let metadata = file.metadata()?;
            let age = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            let found = Validator {
                modified: Some(format!("{}.{:09}", age.as_secs(), age.subsec_nanos())),
                size: Some(metadata.len()),
                ..Validator::default()
            };
            if validator
                .is_some_and(|known| (&known.modified, known.size) == (&found.modified, found.size))
            {
                return Ok(DocumentAnswer::Unchanged { max_age: None, is_aged: false });
            }
            let mut bytes = Vec::new();
            file.by_ref().take(self.limit + 1).read_to_end(&mut bytes)?;
            Ok(DocumentAnswer::Read(Document {
                bytes,
                validator: found,
                max_age: None,
                is_aged: false,
            }))
        };
        let Some(file) = fs::open_if_there(&path)? else {
            return Ok(DocumentAnswer::Absent { max_age: None, is_aged: false });
        };
        let answer = read(file).at("read", &path)?;
        if let DocumentAnswer::Read(document) = &answer {
            self.check_length(&document.bytes, url)?;
        }
        Ok(answer)
    }

    fn check_length(&self, bytes: &[u8], url: &SafeUrl) -> Result<(), ProviderError> {
        if bytes.len() as u64 <= self.limit {
            return Ok(());
        }
        let text = format!("`{url}` is refused: it is longer than {} bytes", self.limit);
        Err(ProviderError::new(ErrorKind::Protocol, text))
    }
}

/// What the name of an archive is followed by in that of the signed statement about it, where Helm looks for it.
pub const PROV_ENDING: &str = ".prov";

/// The signed statement beside the archive at the first of these URLs that has one. If a place `hides` what is not there, a refusal
/// means that there is none.
///
/// # Errors
///
/// When a place cannot be reached, or it is too long.
pub fn statement_beside(
    archives: &[SafeUrl],
    http: &Http,
    location: &Location,
    hides: bool,
    progress: &dyn Progress,
) -> Result<Option<Vec<u8>>, ProviderError> {
    // Stores that do not list their files answer 403 for one that is not there.
    let asking = Asking::new(http, location, LONGEST_PROVENANCE, progress);
    let asking = Asking { hides, ..asking };
    for archive in archives {
        if let Some(found) = asking.beside(archive, PROV_ENDING)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// What vouches for an archive in the file beside it whose name ends in `ending`, of at most `limit` bytes; the inner error is of a place
/// that refuses it, and hands out the archive.
///
/// # Errors
///
/// When the place cannot be reached or refuses both, or the file is too long.
pub fn evidence_beside(
    archive: &SafeUrl,
    (ending, limit): (&str, u64),
    http: &Http,
    location: &Location,
    progress: &dyn Progress,
) -> Result<Result<Option<Vec<u8>>, ProviderError>, ProviderError> {
    let asking = Asking::new(http, location, limit, progress);
    match asking.beside(archive, ending) {
        Err(error) if error.kind() == ErrorKind::Auth => {
            let asked = http.request(Method::HEAD, archive).insecure(location.insecure).send();
            if asked.is_ok() { Ok(Err(error)) } else { Err(error) }
        }
        found => found.map(Ok),
    }
}

/// The path of a `file:` URL.
///
/// # Errors
///
/// When it is none.
pub fn file_path(url: &SafeUrl) -> Result<PathBuf, ProviderError> {
    url.as_url().to_file_path().map_err(|()| {
        ProviderError::new(ErrorKind::Refused, format!("`{url}` is not a path on this machine"))
    })
}
