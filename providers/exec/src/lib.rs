//! Plugins: programs that serve kinds of places that mu itself does not know.
//!
//! A plugin is a program `mu-provider-X` that answers JSON-RPC over its standard input and output. `plugin.rs` finds it, starts
//! and initializes it, `process.rs` runs and ends it, and `message.rs` has its messages. It runs with the rights of the user, who
//! has installed it. Its answers are as hostile as those of any other place, and pass through the same checks.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]

pub mod message;
mod plugin;
mod process;

use std::collections::HashMap;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mu_archive::{ArchiveLayout, Archives, Place};
use mu_provider::catalog::{CatalogLine, Hits, Query};
use mu_provider::fs::AtPath as _;
use mu_provider::http::{Failure, Http};
use mu_provider::threads::lock;
use mu_provider::{
    ErrorKind, Facts, Found, Listing, Location, MANIFEST_NAMES, ManifestFile, Progress, Provider,
    ProviderError, Release, SafeUrl, TreeWriter, fs, json_lines,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use url::Url;

use crate::message::{Fetched, Introduction, Package, Packages};
pub use crate::message::{RecordError, Recorded, recorded};
use crate::plugin::{Batch, Plugin};
pub use crate::plugin::{INTRODUCTION, PLUGIN_PROGRAM_PREFIX, Places, Starting};

/// How long a plugin may be silent while it owes an answer; tests use less.
pub const SILENCE: Duration = Duration::from_secs(60);

/// The largest archive that is unpacked for a plugin, in bytes.
const LARGEST_ARCHIVE: u64 = 8 << 30;

/// Serves the places that a plugin knows.
#[derive(Debug)]
pub struct ExecProvider {
    plugin: Plugin,
    http: Arc<Http>,
    archives: Archives,
    batch: Batch,
    /// Its answers about manifests, by the questions.
    manifests: Mutex<HashMap<String, Option<ManifestFile>>>,
}

impl ExecProvider {
    /// A provider whose program has not been started yet.
    pub fn new(starting: Starting, http: Arc<Http>) -> Self {
        let downloads = starting.folder.join("downloads");
        Self {
            archives: Archives::new(Arc::clone(&http), downloads, LARGEST_ARCHIVE),
            http,
            plugin: Plugin::new(starting),
            batch: Batch::default(),
            manifests: Mutex::default(),
        }
    }

    /// Starts the plugin, and returns what it says about itself.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or does not introduce itself as the protocol requires.
    pub fn about(&self) -> Result<Introduction, ProviderError> {
        Ok(Introduction::clone(&*self.plugin.running()?.introduction))
    }

    /// The plugin's answer to any question; `None` if it does not know the method.
    ///
    /// # Errors
    ///
    /// When the plugin answers with an error, or does not answer.
    pub fn call(
        &self,
        method: &str,
        params: &Value,
        progress: &dyn Progress,
    ) -> Result<Option<Value>, ProviderError> {
        self.asked(method, params, message::Failure::is_unknown_method, progress)
    }

    /// Asks the question of a record again; gives the answer as the record has it. Files go into an empty folder, which is
    /// removed after that.
    ///
    /// # Errors
    ///
    /// When the plugin does not answer.
    pub fn replay(
        &self,
        question: &Recorded,
        progress: &dyn Progress,
    ) -> Result<Value, ProviderError> {
        let mut params = question.params.clone();
        let folder = self.plugin.running()?.folder;
        let into = fs::private_folder();
        let into = into.tempdir_in(folder.path()).at("make a folder in", folder.path())?;
        if let Some(place) = params.get_mut("into") {
            *place = json!(into.path());
        }
        let answer = self.plugin.answer(&question.method, &params, progress)?;
        Ok(message::answer(answer))
    }

    /// The answer to a question that a plugin need not support.
    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
        progress: &dyn Progress,
    ) -> Result<Option<T>, ProviderError> {
        self.asked(method, params, message::Failure::is_unsupported, progress)
    }

    /// The answer to a question without which a plugin is useless: to `what`.
    fn need<T: DeserializeOwned>(
        &self,
        method: &str,
        what: &str,
        params: &Value,
        progress: &dyn Progress,
    ) -> Result<T, ProviderError> {
        // What it does not support, it says in its own words.
        let answer = self.asked(method, params, message::Failure::is_unknown_method, progress)?;
        answer.ok_or_else(|| self.plugin.error(&format!("cannot {what}")))
    }

    /// The answer to a question, in the shape that it must have; `None` for a failure that is an answer. If the plugin asks for a
    /// pause, the question is repeated after it, except that files are fetched once.
    fn asked<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
        is_answer: impl Fn(&message::Failure) -> bool,
        progress: &dyn Progress,
    ) -> Result<Option<T>, ProviderError> {
        let answer = self.http.retry(|| match self.plugin.answer(method, params, progress)? {
            Ok(value) => Ok(Some(value)),
            Err(failure) if is_answer(&failure) => Ok(None),
            Err(failure) => {
                let pause = failure.retry_pause().filter(|_| method != "fetch");
                Err(self.failed(failure, pause))
            }
        })?;
        answer
            .map(serde_json::from_value)
            .transpose()
            .map_err(|error| self.unreadable(method, error))
    }

    /// The plugin's failure, after which there may be another attempt.
    fn failed(&self, failure: message::Failure, pause: Option<Duration>) -> Failure {
        let error = failure.into_provider_error(&self.plugin.called());
        match pause {
            Some(pause) => Failure::after_pause(error, pause),
            None => error.into(),
        }
    }

    fn unreadable(&self, method: &str, error: serde_json::Error) -> ProviderError {
        self.plugin
            .error(&format!("answered `{method}` in a way that mu cannot read"))
            .because(error)
    }

    /// What the plugin says about several packages, in their order.
    fn versions(
        &self,
        questions: &[Value],
        progress: &dyn Progress,
    ) -> Result<Vec<Value>, ProviderError> {
        let params = json!({"packages": questions});
        let packages: Packages = self.need("versions", "list versions", &params, progress)?;
        packages.of(questions.len()).map_err(|fault| self.plugin.error(&fault))
    }

    /// Converts a plugin's answer about a package, which is no error.
    fn listing(&self, location: &Location, package: Package) -> Result<Listing, ProviderError> {
        let Package { lines, validator, max_age, unchanged, absent, tried, error: _ } = package;
        if unchanged {
            return Ok(Listing::Unchanged { max_age, validator });
        }
        if absent {
            let tried: Vec<String> =
                tried.iter().take(8).map(|place| message::readable(place)).collect();
            let tried = if tried.is_empty() { vec![location.describe()] } else { tried };
            return Ok(Listing::absent(tried));
        }
        let Some(lines) = lines else {
            return Err(self.plugin.error("answered `versions` without `lines`"));
        };
        for line in &lines {
            message::check(line).map_err(|fault| self.plugin.error(&fault))?;
        }
        Ok(Listing::Found(Found::new(location, json_lines(lines), validator, max_age)))
    }

    /// Copies the files that a plugin has put into `into` to `tree`, or gets them from where it says.
    fn take(
        &self,
        location: &Location,
        release: &Release,
        into: &Path,
        fetched: Fetched,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        // mu made the folder. Through a link in its place, files of this machine would become a package.
        if !fs::symlink_metadata(into)?.is_dir() {
            return Err(self
                .plugin
                .error("put something else in the place of the folder that it was given"));
        }
        let (form, running) = (fetched.form(), self.plugin.running()?);
        if let Some(forms) = &running.introduction.capabilities.fetch
            && !forms.iter().any(|one| one == form)
        {
            let forms: Vec<String> =
                forms.iter().take(8).map(|one| message::readable(one)).collect();
            let forms = forms.join("`, `");
            let what =
                format!("answered `fetch` in the form `{form}`, and said that it uses `{forms}`");
            return Err(self.plugin.error(&what));
        }
        let layout = if fetched.folder { ArchiveLayout::InFolder } else { ArchiveLayout::Files };
        match fetched {
            Fetched { url: Some(url), archive, .. } => {
                let place = Archives::place(location, &url)?;
                let archive = release.archive.clone().or(archive);
                let release = Release { archive, size: None, ..release.clone() };
                self.archives.unpack(&place, &release, layout, tree, progress)
            }
            Fetched { archive: Some(archive), .. } => {
                let url = self.archive_in(into, &archive)?;
                let place = Place { url, insecure: location.insecure, guard: None };
                self.archives.unpack(&place, release, layout, tree, progress)
            }
            Fetched { archive: None, .. } => mu_provider_path::copy_folder(into, tree),
        }
    }

    /// The archive that a plugin has put into the given folder.
    fn archive_in(&self, into: &Path, archive: &str) -> Result<SafeUrl, ProviderError> {
        let name = Path::new(archive);
        let is_inside = name.components().all(|part| matches!(part, Component::Normal(_)));
        let file = into.join(name);
        let is_file = is_inside
            && fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file())
            && fs::canonicalize(&file)?.starts_with(fs::canonicalize(into)?);
        let url = is_file.then(|| Url::from_file_path(&file).ok()).flatten();
        url.map(SafeUrl::from).ok_or_else(|| {
            let archive = message::readable(archive);
            self.plugin.error(&format!(
                "names an archive `{archive}` that is not in the folder it was given"
            ))
        })
    }
}

impl Provider for ExecProvider {
    fn name(&self) -> &str {
        &self.plugin.starting.name
    }

    fn facts(&self) -> Facts {
        Facts {
            place: "what a plugin serves",
            has_revisions: true,
            lines_are_binding: true,
            answers_for_itself: true,
            ..Facts::default()
        }
    }

    fn probe(&self, _location: &Location) -> Result<bool, ProviderError> {
        // Only the scheme or the settings lead to a plugin.
        self.plugin.running().map(|_| true)
    }

    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let most = self.plugin.running()?.introduction.capabilities.versions.most.max(1);
        let question = asking(location, [("validator", json!(validator))]);
        let package = self.http.retry(|| {
            let answer = self
                .batch
                .ask(question.clone(), most, |questions| self.versions(questions, progress));
            let mut package: Package = serde_json::from_value(answer?)
                .map_err(|error| self.unreadable("versions", error))?;
            match package.error.take() {
                None => Ok(package),
                Some(failure) => {
                    let pause = failure.retry_pause();
                    Err(self.failed(failure, pause))
                }
            }
        })?;
        self.listing(location, package)
    }

    fn resolve(
        &self,
        location: &Location,
        revision: &str,
        progress: &dyn Progress,
    ) -> Result<Release, ProviderError> {
        let can = self.plugin.running()?.introduction.capabilities.resolve;
        let params = asking(location, [("revision", json!(revision))]);
        let found = if can {
            self.ask::<Option<Map<String, Value>>>("resolve", &params, progress)?
        } else {
            None
        };
        let Some(line) = found.flatten() else {
            let text = format!("there is no revision `{revision}` of `{}`", location.describe());
            return Err(ProviderError::new(ErrorKind::NotFound, text));
        };
        let line = Value::Object(line);
        message::check(&line).map_err(|fault| self.plugin.error(&fault))?;
        let release: Release =
            serde_json::from_value(line).map_err(|error| self.unreadable("resolve", error))?;
        message::answers(release.commit.as_ref(), revision)
            .map_err(|fault| self.plugin.error(&fault))?;
        Ok(release)
    }

    fn manifest(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, ProviderError> {
        if !self.plugin.running()?.introduction.capabilities.manifest {
            return Ok(None);
        }
        #[derive(serde::Deserialize)]
        struct Manifest {
            name: String,
            text: String,
        }
        let params = asking(location, [("line", json!(release))]);
        let question = params.to_string();
        // What versions were chosen by is what the files are held against.
        if let Some(known) = lock(&self.manifests).get(&question) {
            return Ok(known.clone());
        }
        let found: Option<Option<Manifest>> = self.ask("manifest", &params, progress)?;
        let found = match found.flatten() {
            Some(Manifest { name, .. }) if !MANIFEST_NAMES.contains(&name.as_str()) => {
                let name = message::readable(&name);
                return Err(self.plugin.error(&format!("gave a manifest called `{name}`")));
            }
            found => {
                found.map(|Manifest { name, text }| ManifestFile { name, text, beside: Vec::new() })
            }
        };
        lock(&self.manifests).insert(question, found.clone());
        Ok(found)
    }

    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let folder = self.plugin.running()?.folder;
        let into = fs::private_folder();
        let into = into.tempdir_in(folder.path()).at("make a folder in", folder.path())?;
        let params = asking(location, [("line", json!(release)), ("into", json!(into.path()))]);
        let fetched: Fetched = self.need("fetch", "fetch packages", &params, progress)?;
        self.take(location, release, into.path(), fetched, tree, progress)
    }

    fn search(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        if !self.plugin.running()?.introduction.capabilities.search {
            return Ok(None);
        }
        #[derive(serde::Deserialize)]
        struct Results {
            results: Vec<Hit>,
        }
        #[derive(serde::Deserialize)]
        struct Hit {
            name: String,
            #[serde(default)]
            version: String,
            #[serde(default)]
            description: Option<String>,
        }
        let words = [("words", json!(query.text())), ("limit", json!(query.limit()))];
        let params = asking(location, words);
        let Some(Results { results }) = self.ask("search", &params, progress)? else {
            return Ok(None);
        };
        let lines = results.into_iter().take(query.limit()).map(|hit| CatalogLine {
            name: hit.name,
            latest: hit.version,
            description: hit.description.map(|text| message::readable(&text)),
            ..CatalogLine::default()
        });
        let packages: Vec<CatalogLine> = lines.collect();
        Ok(Some(Hits { total: packages.len(), packages, passed_over: 0 }))
    }
}

/// A question about a package, or about its whole registry: the place, and further parameters.
pub fn asking<const COUNT: usize>(location: &Location, more: [(&str, Value); COUNT]) -> Value {
    let root = location.root.with_trailing_slash().to_string();
    // The part of a reference before the name.
    let base = root.split_once("://").map_or(root.as_str(), |(_, rest)| rest);
    let mut question = json!({ "base": base, "url": location.root.to_string() });
    if !location.path.is_empty() {
        question["name"] = json!(location.path);
    }
    for (key, value) in more {
        question[key] = value;
    }
    question
}
