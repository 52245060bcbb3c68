//! Indexes of repositories: each is requested once in a run, parsed only if it has changed, and stored chart
//! by chart.
//!
//! Each repository has one such file: a line that identifies it, and the lines of its charts. The file only
//! saves work: if it cannot be read or written, mu continues without it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use mu_formats::helm::{Aliases, catalog_line, index};
use mu_provider::fs;
use mu_provider::http::Http;
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, FileDigest, Location, Progress, ProviderError, SafeUrl};
use mu_provider_hub::document::{Answer, Asking, Validator};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The longest index, in bytes.
const LONGEST_INDEX: u64 = 64 << 20;

/// The version of the stored files. An index that an older mu stored is parsed again.
const FORMAT: u32 = 1;

/// The repositories of a run.
#[derive(Debug)]
pub(crate) struct Repositories {
    http: Arc<Http>,
    folder: PathBuf,
    aliases: Option<PathBuf>,
    /// The short names of repositories, once they were read, and their digest.
    named: OnceLock<(Aliases, String)>,
    asked: Mutex<HashMap<SafeUrl, Arc<Slot>>>,
}

/// The result of requesting an index. A second caller waits for the first; after a failure, the index is
/// requested again.
type Slot = Mutex<Option<Option<Arc<Repository>>>>;

/// A repository, as its index is now.
#[derive(Debug)]
pub(crate) struct Repository {
    head: Head,
    lines: Vec<u8>,
    /// For how many seconds it need not be requested again.
    pub(crate) max_age: u32,
}

/// The first line of a stored file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: u32,
    url: String,
    validator: Option<String>,
    /// The digests of the index, and of the short names that it was read with.
    digests: [String; 2],
    charts: BTreeMap<String, Place>,
}

/// Where the lines of a chart are, and their digest.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    lines: Range<usize>,
    digest: String,
}

/// A repository's data about one chart.
pub(crate) struct Chart<'r> {
    pub(crate) lines: &'r [u8],
    /// Of the lines.
    pub(crate) digest: &'r str,
}

impl Repositories {
    pub(crate) fn new(http: Arc<Http>, folder: PathBuf, aliases: Option<PathBuf>) -> Self {
        Self { http, folder, aliases, named: OnceLock::new(), asked: Mutex::default() }
    }

    /// The repository of a chart; `None` if there is no index.
    pub(crate) fn get(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<Repository>>, ProviderError> {
        let url = Repository::url(location)?;
        let slot = Arc::clone(lock(&self.asked).entry(url.clone()).or_default());
        let mut slot = lock(&slot);
        if let Some(known) = &*slot {
            return Ok(known.clone());
        }
        let asking = Asking {
            http: &self.http,
            insecure: location.insecure,
            limit: LONGEST_INDEX,
            hides: false,
            progress,
        };
        let repository = self.read(&url, &asking)?.map(Arc::new);
        *slot = Some(repository.clone());
        Ok(repository)
    }

    fn read(
        &self,
        url: &SafeUrl,
        asking: &Asking<'_>,
    ) -> Result<Option<Repository>, ProviderError> {
        let file = self.folder.join(format!("{}.charts", digest(url.to_string().as_bytes())));
        let (aliases, named) = self.named();
        let remembered = Repository::remembered(&file, url, named);
        if self.http.options().offline && url.scheme() != "file" && remembered.is_some() {
            return Ok(remembered);
        }
        let validator = remembered.as_ref().and_then(|known| known.head.validator.as_deref());
        match asking.read(url, validator.map(Validator::parse).as_ref())? {
            Answer::Unchanged { max_age, .. } => {
                Ok(remembered.map(|known| Repository { max_age, ..known }))
            }
            Answer::Absent | Answer::Hidden => Ok(None),
            Answer::Read(document) => {
                let digests = [digest(&document.bytes), named.clone()];
                let (validator, max_age) = (document.validator.to_text(), document.max_age);
                let mut repository = match remembered {
                    // The same content at another URL of the server.
                    Some(known) if known.head.digests == digests => known,
                    _ => Repository::parse(url, &document.bytes, digests, aliases)?,
                };
                repository.head.validator = validator;
                repository.max_age = max_age;
                repository.remember(&file);
                Ok(Some(repository))
            }
        }
    }

    /// The short names of repositories, and a validator for them.
    fn named(&self) -> &(Aliases, String) {
        self.named.get_or_init(|| {
            let text = self.aliases.as_deref().and_then(|path| fs::read_text_if_there(path).ok());
            let text = text.flatten().unwrap_or_default();
            (Aliases::read(&text), digest(text.as_bytes()))
        })
    }
}

impl Repository {
    /// The URL of the index that lists a chart.
    pub(crate) fn url(location: &Location) -> Result<SafeUrl, ProviderError> {
        location.root.as_folder().join("index.yaml").map_err(|error| {
            let text = format!("`{}` is not the place of a chart repository", location.root);
            ProviderError::new(ErrorKind::Refused, text).because(error)
        })
    }

    /// The repository's data about a chart.
    pub(crate) fn chart(&self, name: &str) -> Option<Chart<'_>> {
        let place = self.head.charts.get(name)?;
        Some(Chart { lines: self.lines.get(place.lines.clone())?, digest: &place.digest })
    }

    /// What a search goes through: a line of JSON for each chart.
    pub(crate) fn catalog(&self) -> Vec<u8> {
        let mut catalog = Vec::new();
        for place in self.head.charts.values() {
            let lines = self.lines.get(place.lines.clone()).unwrap_or_default();
            if let Some(line) = catalog_line(lines) {
                serde_json::to_writer(&mut catalog, &line).expect("memory takes everything");
                catalog.push(b'\n');
            }
        }
        catalog
    }

    fn parse(
        url: &SafeUrl,
        bytes: &[u8],
        digests: [String; 2],
        aliases: &Aliases,
    ) -> Result<Self, ProviderError> {
        let broken = |why: String| {
            let text = format!("`{url}` is not an index of charts");
            ProviderError::new(ErrorKind::Protocol, text).because(why)
        };
        let text = std::str::from_utf8(bytes).map_err(|_| broken("it is not UTF-8".to_owned()))?;
        let read = index("index.yaml", text, aliases).map_err(|error| {
            broken(format!("line {}, column {}: {}", error.line, error.column, error.reason))
        })?;
        let mut lines = Vec::new();
        let mut charts = BTreeMap::new();
        for (name, chart) in read.charts {
            let begin = lines.len();
            let digest = digest(&chart);
            lines.extend(chart);
            charts.insert(name, Place { lines: begin..lines.len(), digest });
        }
        let head = Head { format: FORMAT, url: url.to_string(), validator: None, digests, charts };
        Ok(Self { head, lines, max_age: 0 })
    }

    fn remembered(file: &Path, url: &SafeUrl, named: &str) -> Option<Self> {
        let bytes = fs::read(file).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (head, lines) = bytes.split_at_checked(end + 1)?;
        let head: Head = serde_json::from_slice(head).ok()?;
        let is_it = head.format == FORMAT && head.url == url.to_string();
        let [_, names] = &head.digests;
        (is_it && names == named).then(|| Self { lines: lines.to_vec(), head, max_age: 0 })
    }

    fn remember(&self, file: &Path) {
        let mut bytes = serde_json::to_vec(&self.head).expect("texts and numbers can be printed");
        bytes.push(b'\n');
        bytes.extend(&self.lines);
        // If it cannot be stored, the next run parses the whole index again.
        if let Some(folder) = file.parent()
            && fs::create_folder(folder).is_ok()
        {
            let _ = fs::write_atomic(file, &bytes);
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    FileDigest::from_bytes(Sha256::digest(bytes).into()).to_string()
}
