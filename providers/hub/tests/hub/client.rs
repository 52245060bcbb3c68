//! A provider for the tests: it never sleeps, and keeps its downloads where tests can look at them.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mu_provider::http::{
    AskedServer, Credential, Credentials, Http, HttpOptions, RequestEvent, Secret, Watch,
};
use mu_provider::{
    Folder, Limits, Listing, Location, Progress, Provider as _, ProviderError, Release, Tree,
    TreeWriter,
};
use mu_provider_hub::HubProvider;
use tempfile::TempDir;

/// A provider, its downloads, and what it reported.
pub(crate) struct Client {
    pub(crate) provider: HubProvider,
    pub(crate) downloads: TempDir,
    said: Arc<Mutex<Vec<String>>>,
}

/// A token for one host.
struct One {
    host: String,
}

impl Credentials for One {
    fn find(&self, asked: &AskedServer) -> Option<Credential> {
        let is_it = asked.host_and_unusual_port() == self.host;
        is_it.then(|| Credential::token(asked, Secret::new("hunter2")))
    }
}

/// Records reports.
struct Listener<'client>(&'client Client);

impl Progress for Listener<'_> {
    fn bytes(&self, _done: u64, _total: Option<u64>) {}

    fn waiting(&self, what: &str) {
        self.0.said.lock().expect("no test panicked").push(what.to_owned());
    }

    fn warning(&self, text: &str) {
        self.0.said.lock().expect("no test panicked").push(text.to_owned());
    }
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    /// A client with a token for one host.
    pub(crate) fn with_token_for(host: String) -> Self {
        Self::with(HttpOptions { credentials: Arc::new(One { host }), ..options() })
    }

    pub(crate) fn with(options: HttpOptions) -> Self {
        let downloads = tempfile::tempdir().expect("a temporary folder can be made");
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&said);
        let watch: Watch = Arc::new(move |event| {
            if let RequestEvent::Repeated { reason, .. } = event {
                heard.lock().expect("no test panicked").push((*reason).to_owned());
            }
        });
        let options = HttpOptions { watch: Some(watch), ..options };
        Self { provider: HubProvider::new(Http::new(options), downloads.path()), downloads, said }
    }

    /// The same downloads, as another run of mu sees them.
    pub(crate) fn again(self) -> Self {
        let provider = HubProvider::new(Http::new(options()), self.downloads.path());
        Self { provider, ..self }
    }

    /// Fetches into a new folder.
    pub(crate) fn fetch(
        &self,
        location: &Location,
        release: &Release,
    ) -> Result<Tree, ProviderError> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        self.fetch_into(location, release, folder.path())
    }

    pub(crate) fn fetch_into(
        &self,
        location: &Location,
        release: &Release,
        folder: &Path,
    ) -> Result<Tree, ProviderError> {
        let mut tree = TreeWriter::new(Folder::open(folder).expect("opens"), Limits::default());
        self.provider.fetch(location, release, &mut tree, &Listener(self))?;
        Ok(tree.finish()?)
    }

    /// Lists a package.
    pub(crate) fn list(&self, location: &Location) -> Result<Listing, ProviderError> {
        self.provider.list(location, None, &Listener(self))
    }

    /// What it reported so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().expect("no test panicked").join("\n")
    }

    /// The sizes of the archives among its downloads.
    pub(crate) fn downloads(&self) -> Vec<u64> {
        let entries = std::fs::read_dir(self.downloads.path()).expect("is there");
        entries
            .map(|entry| entry.expect("can be read"))
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with("hub-"))
            .map(|entry| entry.metadata().expect("can be read").len())
            .collect()
    }
}

/// No sleep.
pub(crate) fn options() -> HttpOptions {
    HttpOptions { sleep: Arc::new(|_| {}), ..HttpOptions::default() }
}

/// As little patience as a busy machine allows, for servers that stay silent.
pub(crate) fn impatient() -> HttpOptions {
    HttpOptions { read_timeout: Duration::from_millis(300), ..options() }
}

/// The text of an error with its causes.
pub(crate) fn chain(error: &ProviderError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
