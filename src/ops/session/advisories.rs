//! The feeds of advisories that the settings name: folders with files of OSV, and files on web servers, which are kept in the cache.
//!
//! Of a feed, only what it says of packages that mu may have is kept, under their names, so that a question about one package reads
//! little of it. Nothing says to a feed which packages are in use. What a finding means is not decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use flate2::read::GzDecoder;
use mu_archive::document::{Asking, DocumentAnswer, Validator};
use mu_archive::pick_zip;
use mu_archive::remembered::{IndexAnswer, Remembered};
use mu_formats::FormatError;
use mu_formats::osv::{AdvisedPackage, Advisory, Matched};
use mu_provider::http::Http;
use mu_provider::{
    ErrorKind, FileDigest, Folder, InnerPath, Kind, Limits, NamedBy, ProviderError, SafeUrl,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::env::Environment;
use crate::ops::session::events::Work;
use crate::ops::{Code, CommandError, Events};
use crate::workspace::settings::{AdvisorySettings, Feed, FeedPlace, Ignore};
use crate::workspace::trust::TrustFile;

/// The folder in the cache.
const FOLDER: &str = "advisories";

/// The version of what is kept.
const FORMAT: u32 = 1;

// Feeds come from others, so all of them are limited. Those of a company have a few hundred advisories of some kilobytes; the export of a
// public database for one ecosystem has tens of thousands, and fits, too.

/// The largest file that is fetched, in bytes.
const LARGEST: u64 = 64 << 20;

/// The most that its advisories have, or those of a folder, in bytes.
const MOST_TEXT: u64 = 512 << 20;

/// The largest file of an advisory in a folder, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// The feeds of the settings that could be read.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    /// They, in the order of the settings.
    pub(crate) feeds: Vec<ReadFeed>,
}

/// A feed that was read.
#[derive(Debug)]
pub(crate) struct ReadFeed {
    /// Its place, as it is shown.
    pub(crate) name: String,
    /// Whose settings name it.
    pub(crate) named_by: NamedBy,
    /// How many advisories it has that were not withdrawn.
    pub(crate) advisories: usize,
    /// Whether it is as it was kept, and was not asked for.
    pub(crate) is_kept: bool,
    index: Remembered<FeedFacts>,
}

/// What is known of a feed besides what it says of packages.
#[derive(Debug, Serialize, Deserialize)]
struct FeedFacts {
    advisories: usize,
}

/// An advisory about a version, and where it is from.
#[derive(Debug)]
pub(crate) struct FoundAdvisory<'f> {
    /// The advisory.
    pub(crate) advisory: Advisory,
    /// What it says of the version.
    pub(crate) matched: Matched,
    /// Where it is from.
    pub(crate) feed: &'f ReadFeed,
}

impl FoundAdvisory<'_> {
    /// What it says, in a sentence.
    pub(crate) fn as_sentence(&self) -> String {
        let Advisory { id, summary, .. } = &self.advisory;
        let about = summary.as_deref().unwrap_or("no summary");
        format!("{id} of `{}`: {about}", self.feed.name)
    }
}

impl Feeds {
    /// What all feeds say of a version; each advisory of the user's feeds once, and of the workspace's.
    pub(crate) fn advisories_about(
        &self,
        package: &AdvisedPackage,
    ) -> Result<Vec<FoundAdvisory<'_>>, CommandError> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        for feed in &self.feeds {
            // An advisory may name it in several ways, and several feeds may have the same advisory. What a checkout calls by the name of
            // another one does not stand in the way of that.
            for name in package.all_package_names() {
                let Some(part) = feed.index.package(name)? else { continue };
                for advisory in mu_provider::read_json_lines::<Advisory>(&part.lines).flatten() {
                    let Some(matched) = advisory.about(package) else { continue };
                    if seen.insert((advisory.id.clone(), feed.named_by == NamedBy::User)) {
                        found.push(FoundAdvisory { advisory, matched, feed });
                    }
                }
            }
        }
        Ok(found)
    }

    /// The first advisory by which a version is malicious.
    pub(crate) fn first_malicious(
        &self,
        package: &AdvisedPackage,
    ) -> Result<Option<FoundAdvisory<'_>>, CommandError> {
        let is_it = |found: &FoundAdvisory<'_>| {
            found.advisory.is_malicious() && matches!(found.matched, Matched::Affected { .. })
        };
        Ok(self.advisories_about(package)?.into_iter().find(is_it))
    }
}

/// What the settings say of advisories, and where feeds are on this machine.
pub(crate) struct AdvisoriesInForce {
    settings: AdvisorySettings,
    /// The root of the workspace, below which its folders are.
    root: PathBuf,
    cache: PathBuf,
    /// The time, in seconds since 1970.
    now: i64,
    events: Arc<dyn Events>,
    /// The advisories that are on this machine, once they were read.
    here: OnceLock<Feeds>,
}

impl AdvisoriesInForce {
    /// What `settings` say, below the root of a workspace.
    pub(crate) fn new(
        settings: &AdvisorySettings,
        root: &Path,
        environment: &Environment,
        events: &Arc<dyn Events>,
    ) -> Self {
        Self {
            settings: settings.clone(),
            root: root.to_owned(),
            cache: environment.cache.clone(),
            now: environment.now,
            events: Arc::clone(events),
            here: OnceLock::new(),
        }
    }

    /// The feeds that the settings name.
    pub(crate) fn named_feeds(&self) -> &[Feed] {
        &self.settings.feeds
    }

    /// Whether one of them may have advisories.
    pub(crate) fn has_any_feed(&self) -> bool {
        self.settings.has_any()
    }

    /// The feeds as they are on this machine, without a request: folders, and what was fetched before.
    pub(crate) fn kept_feeds(&self) -> Result<&Feeds, CommandError> {
        // Reading folders takes time, so it is done once in a run, and only if something asks.
        if let Some(known) = self.here.get() {
            return Ok(known);
        }
        let mut read = Feeds::default();
        for feed in &self.settings.feeds {
            // A feed that was never fetched says nothing yet. One that is here and cannot be read is an error, because a malicious version
            // would otherwise pass.
            read.feeds.extend(read_feed(self, feed, None)?);
        }
        Ok(self.here.get_or_init(|| read))
    }
}

/// The name of a feed, as it is shown.
pub(crate) fn name_of_feed(feed: &Feed) -> String {
    match &feed.place {
        FeedPlace::Hub => "hub".to_owned(),
        FeedPlace::Folder(folder) => folder.to_string(),
        FeedPlace::Url(url) => url.to_string(),
    }
}

/// Reads a feed; one on a web server as it is now, if there is an `http` to ask it with, otherwise as it was kept. `None` if there is nothing to read: hubs
/// have no advisories, and what was never fetched is not kept.
pub(crate) fn read_feed(
    around: &AdvisoriesInForce,
    feed: &Feed,
    http: Option<&Http>,
) -> Result<Option<ReadFeed>, CommandError> {
    let name = name_of_feed(feed);
    let index = match &feed.place {
        FeedPlace::Hub => return Ok(None),
        FeedPlace::Folder(folder) => Some(read_folder(&around.root, folder, &name)?),
        FeedPlace::Url(url) => fetched(around, url, &name, http)?,
    };
    let is_kept = matches!(feed.place, FeedPlace::Url(_)) && http.is_none();
    let read = |index: Remembered<FeedFacts>| ReadFeed {
        name,
        named_by: feed.named_by,
        advisories: index.of.advisories,
        is_kept,
        index,
    };
    Ok(index.map(read))
}

/// The error of a feed that is needed and was never fetched.
pub(crate) fn never_fetched(name: &str) -> CommandError {
    let text = format!("the advisories at `{name}` are not on this machine");
    CommandError::new(Code::Offline, text)
        .hint("run `mu audit` once without `--offline`; what it reads is kept")
}

/// Advisories by the names of the packages that they are about, on their way into an index.
#[derive(Debug, Default)]
struct Sorted {
    packages: BTreeMap<String, Vec<u8>>,
    advisories: usize,
}

impl Sorted {
    fn add(&mut self, file: &str, text: &str) -> Result<(), FormatError> {
        let Some(advisory) = Advisory::read(file, text)? else { return Ok(()) };
        self.advisories += 1;
        let names: BTreeSet<&str> = advisory.names_of_packages().collect();
        // Of the hundred thousands in a public export, nearly all are about packages that mu cannot have.
        if names.is_empty() {
            return Ok(());
        }
        let mut line = serde_json::to_vec(&advisory).expect("texts and lists can be printed");
        line.push(b'\n');
        for name in names {
            self.packages.entry(name.to_owned()).or_default().extend_from_slice(&line);
        }
        Ok(())
    }

    fn into_index(self, place: &str) -> Remembered<FeedFacts> {
        let facts = FeedFacts { advisories: self.advisories };
        Remembered::new(FORMAT, place, facts, self.packages)
    }
}

/// The advisories in a folder, and in folders in it.
fn read_folder(
    root: &Path,
    place: &TrustFile,
    name: &str,
) -> Result<Remembered<FeedFacts>, CommandError> {
    let opened = match place {
        TrustFile::InWorkspace(path) => Folder::at(root).and_then(|root| root.inner(path)),
        TrustFile::OfUser(path) => Folder::at(path),
    };
    let folder = opened.map_err(CommandError::from);
    let mut sorted = Sorted::default();
    let read = folder.and_then(|folder| add_folder(&folder, &mut sorted, &mut MOST_TEXT.clone()));
    read.map_err(|error| {
        error
            .while_doing(format!("cannot read the advisories in `{name}`, which the settings name"))
    })?;
    Ok(sorted.into_index(name))
}

fn add_folder(folder: &Folder, sorted: &mut Sorted, left: &mut u64) -> Result<(), CommandError> {
    for (name, kind) in folder.entries()? {
        // What is hidden belongs to version control and editors.
        if name.starts_with('.') {
            continue;
        }
        let path = folder.path().join(&name);
        let inner = InnerPath::name(&name)
            .map_err(|error| CommandError::from_error(Code::Integrity, error))?;
        match kind {
            Kind::Folder => add_folder(&folder.inner(&inner)?, sorted, left)?,
            _ if !name.ends_with(".json") => {}
            Kind::File => {
                let size = folder.size_and_time(&name).map_or(0, |(size, _)| size);
                if size > LARGEST_FILE.min(*left) {
                    let text = format!("`{}` is too long for an advisory", path.display());
                    return Err(CommandError::new(Code::Integrity, text));
                }
                *left -= size;
                let text = folder.read_text(&inner)?.unwrap_or_default();
                let added = sorted.add(&name, &text);
                added.map_err(|error| CommandError::from(error.in_text(&path, &text)))?;
            }
            // One that were passed over would be missed by nobody.
            Kind::Symlink | Kind::Other => {
                let text = format!("`{}` is a link, or no file", path.display());
                return Err(CommandError::new(Code::Untrusted, text)
                    .hint("replace the link by what it leads to, or remove it"));
            }
        }
    }
    Ok(())
}

/// The advisories at a URL: as they are now, if there is an `http`, and otherwise as they were kept.
fn fetched(
    around: &AdvisoriesInForce,
    url: &SafeUrl,
    name: &str,
    http: Option<&Http>,
) -> Result<Option<Remembered<FeedFacts>>, CommandError> {
    // Who only looks leaves nothing behind, not even a folder.
    if http.is_some() {
        crate::env::create_cache(&around.cache)?;
    }
    let key = FileDigest::from_bytes(Sha256::digest(name).into()).to_string();
    let file = around.cache.join(FOLDER).join(key);
    let read =
        Remembered::refreshed(&file, FORMAT, name, |known: Option<&Remembered<FeedFacts>>| {
            match http {
                Some(http) => ask(http, url, known, &Work::begin(&around.events, name)),
                None => Ok(IndexAnswer::Unchanged { max_age: None }),
            }
        });
    read.map_err(|error| {
        let doing = format!("cannot read the advisories at `{name}`, which the settings name");
        CommandError::from(error).while_doing(doing)
    })
}

/// Asks for a file of advisories, unless it is what is remembered.
fn ask(
    http: &Http,
    url: &SafeUrl,
    known: Option<&Remembered<FeedFacts>>,
    progress: &Work,
) -> Result<IndexAnswer<FeedFacts>, ProviderError> {
    let validator = known.and_then(|known| known.validator.as_deref()).map(Validator::parse);
    let asking = Asking {
        http,
        insecure: false,
        limit: LARGEST,
        hides: false,
        past_caches: false,
        progress,
    };
    let document = match asking.read(url, validator.as_ref())? {
        DocumentAnswer::Unchanged { max_age, .. } => return Ok(IndexAnswer::Unchanged { max_age }),
        DocumentAnswer::Absent { .. } | DocumentAnswer::Hidden => {
            let text = format!("there is nothing at `{url}`");
            return Err(ProviderError::new(ErrorKind::NotFound, text));
        }
        DocumentAnswer::Read(document) => document,
    };
    // All of it is read before anything is kept: a feed that is half there would hide what the other half says.
    let mut sorted = Sorted::default();
    add_bytes(&document.bytes, url, &mut sorted)?;
    Ok(IndexAnswer::Read {
        index: Some(sorted.into_index(&url.to_string())),
        validator: document.validator_at(None),
        max_age: document.max_age,
    })
}

/// Adds the advisories of a file, which is written as the ending of its URL says.
fn add_bytes(bytes: &[u8], url: &SafeUrl, sorted: &mut Sorted) -> Result<(), ProviderError> {
    let refused = |why: String| {
        let text = format!("the advisories at `{url}` cannot be read");
        ProviderError::new(ErrorKind::Protocol, text).because(why)
    };
    if url.as_url().path().ends_with(".zip") {
        let most = Limits::default().most_from(bytes.len() as u64).min(MOST_TEXT);
        let files = pick_zip(bytes, &|path| path.ends_with(".json"), most);
        for (file, bytes) in files.map_err(|error| refused(mu_provider::with_causes(&error)))? {
            let text =
                String::from_utf8(bytes).map_err(|_| refused(format!("`{file}` is not text")))?;
            sorted.add(&file, &text).map_err(|error| refused(error.to_string()))?;
        }
        return Ok(());
    }
    // What is compressed says so itself: a server that compresses on the way may have been understood already, whatever the ending of the
    // URL is.
    let lines = match bytes.starts_with(&[0x1f, 0x8b]) {
        true => {
            let most = Limits::default().most_from(bytes.len() as u64).min(MOST_TEXT);
            let mut inflated = Vec::new();
            let read = GzDecoder::new(bytes).take(most + 1).read_to_end(&mut inflated);
            read.map_err(|error| refused(error.to_string()))?;
            if inflated.len() as u64 > most {
                return Err(refused(format!("inflated, they have more than {most} bytes")));
            }
            inflated
        }
        false => bytes.to_vec(),
    };
    let text = String::from_utf8(lines).map_err(|_| refused("they are not text".to_owned()))?;
    for (number, line) in (1..).zip(text.lines()) {
        if !line.trim().is_empty() {
            let added = sorted.add(&format!("line {number}"), line);
            added.map_err(|error| refused(error.to_string()))?;
        }
    }
    Ok(())
}

/// Whether the settings ignore a finding.
#[derive(Debug)]
pub(crate) enum Ignored<'s> {
    /// They do not.
    No,
    /// They do, for this reason.
    Until(&'s Ignore),
    /// They did.
    Ended(&'s Ignore),
    /// The workspace's do, about what a feed of the user's calls malicious.
    NotByWorkspace(&'s Ignore),
}

/// Whether the settings ignore a finding that goes by some ids; `found` is the advisory, if it is one.
pub(crate) fn ignored<'s>(
    around: &'s AdvisoriesInForce,
    is_called: &dyn Fn(&str) -> bool,
    found: Option<&FoundAdvisory<'_>>,
) -> Ignored<'s> {
    let is_malicious_to_user = found
        .is_some_and(|found| found.advisory.is_malicious() && found.feed.named_by == NamedBy::User);
    // Whoever can change a checkout must not be able to silence what its user has to be warned of. What the workspace's own feed says, it
    // may take back itself.
    let mut answer = Ignored::No;
    // The user's ignores come first. One that is in force outweighs those that are over.
    let ignores = &around.settings.ignores;
    for ignore in ignores.iter().filter(|ignore| is_called(&ignore.id)) {
        if is_malicious_to_user && ignore.named_by != NamedBy::User {
            answer = Ignored::NotByWorkspace(ignore);
        } else if ignore.is_over(around.now) {
            answer = Ignored::Ended(ignore);
        } else {
            return Ignored::Until(ignore);
        }
    }
    answer
}
