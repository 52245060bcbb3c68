//! Indexes of repositories: each is requested once in a run, parsed only if it has changed, and stored chart
//! by chart.
//!
//! Each repository has one such file: a line that identifies it, and the lines of its charts. The file only
//! saves work: if it cannot be read or written, mu continues without it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use mu_formats::helm::{Aliases, catalog_line, index};
use mu_provider::fs;
use mu_provider::http::Http;
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, Location, Progress, ProviderError, SafeUrl};
use mu_provider_hub::document::{Answer, Asking, Validator};
use mu_provider_hub::remembered::{Part, Remembered, digest};
use serde::{Deserialize, Serialize};

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
    remembered: Remembered<Head>,
    /// For how many seconds it need not be requested again.
    pub(crate) max_age: Option<u32>,
}

/// What a stored file is of.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: u32,
    url: String,
    validator: Option<String>,
    /// The digests of the index, and of the short names that it was read with.
    digests: [String; 2],
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
        let validator =
            remembered.as_ref().and_then(|known| known.remembered.of.validator.as_deref());
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
                    Some(known) if known.remembered.of.digests == digests => known,
                    _ => Repository::parse(url, &document.bytes, digests, aliases)?,
                };
                repository.remembered.of.validator = validator;
                repository.max_age = max_age;
                repository.remembered.write(&file);
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
    pub(crate) fn chart(&self, name: &str) -> Option<Part<'_>> {
        self.remembered.package(name)
    }

    /// What a search goes through: a line of JSON for each chart.
    pub(crate) fn catalog(&self) -> Vec<u8> {
        let mut catalog = Vec::new();
        for (_, chart) in self.remembered.packages() {
            if let Some(line) = catalog_line(chart.lines) {
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
        let head = Head { format: FORMAT, url: url.to_string(), validator: None, digests };
        Ok(Self { remembered: Remembered::new(head, read.charts), max_age: None })
    }

    fn remembered(file: &Path, url: &SafeUrl, named: &str) -> Option<Self> {
        let remembered = Remembered::<Head>::read(file)?;
        let Head { format, url: of, digests: [_, names], .. } = &remembered.of;
        let is_it = *format == FORMAT && *of == url.to_string() && names == named;
        is_it.then_some(Self { remembered, max_age: None })
    }
}
