//! What pages show from a package's archive: its readme, its list of files, and each file.
//!
//! Archives are hostile, so they are unpacked with the same reader as everywhere, within narrow limits, and only a few at a time.
//! The result is cached in memory, up to a limit, because an archive never changes; the oldest is removed first. `markdown.rs`
//! converts Markdown to HTML, with links from `links.rs`; `highlight.rs` recognizes files by their names, and marks code.

mod highlight;
mod links;
mod markdown;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mu_provider::{InnerPath, Limits, Mode};
use tokio::sync::Semaphore;

pub(super) use self::highlight::picture;
pub(super) use self::links::{escaped, repository_files};

use self::links::Links;
use mu_hub::archive::{self, Unpacked};
use mu_hub::files::{Files, in_its_own_thread};
use mu_hub::lines::PublishedLine;
use mu_hub::root::Root;
use mu_hub::{HubError, Staging};
use mu_provider::fs::FileError;
use mu_provider::threads::lock;

/// The largest archive that is unpacked for a page, in bytes.
const LARGEST_ARCHIVE: u64 = 32 << 20;

/// The largest size of an unpacked archive, in bytes.
const LARGEST_TREE: u64 = 128 << 20;

/// The largest number of files in an archive.
const MOST_FILES: usize = 20_000;

/// The longest text that is shown, in bytes.
const LONGEST: u64 = 256 << 10;

/// The largest picture that is sent, in bytes.
const LARGEST_PICTURE: u64 = 4 << 20;

/// How many archives are unpacked at the same time.
const AT_ONCE: usize = 2;

/// How much of archives, and how much of single files, is cached, in bytes.
const KEPT: [usize; 2] = [16 << 20, 32 << 20];

/// What an archive is to a page.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) readme: Readme,
    /// Its files, sorted by path; none if it was not unpacked.
    pub(super) files: Vec<Listed>,
}

/// A file of a package.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) path: String,
    /// In bytes.
    pub(super) size: u64,
}

/// The readme as a page shows it.
#[derive(Debug, Default)]
pub(super) enum Readme {
    /// HTML that can do no harm.
    Html(String),
    /// Plain text.
    Text(String),
    /// The package has no readme, or none that can be read.
    #[default]
    None,
    /// The readme, or the archive, is too large to be shown.
    TooLarge,
}

/// How one file is shown.
#[derive(Debug)]
pub(super) enum Shown {
    /// A picture, and its type.
    Picture(&'static str, Vec<u8>),
    /// Markdown, as HTML that can do no harm.
    Html(String),
    /// Code or other text, as HTML with its parts marked.
    Code(String),
    /// Anything that is not text.
    Binary,
    TooLarge,
}

impl Content {
    const TOO_LARGE: Self = Self { readme: Readme::TooLarge, files: Vec::new() };
}

impl Weight for Content {
    fn weight(&self) -> usize {
        let text = match &self.readme {
            Readme::Html(text) | Readme::Text(text) => text.len(),
            Readme::None | Readme::TooLarge => 0,
        };
        text + self.files.iter().map(|file| file.path.len() + size_of::<Listed>()).sum::<usize>()
    }
}

impl Weight for Shown {
    fn weight(&self) -> usize {
        match self {
            Self::Picture(_, bytes) => bytes.len(),
            Self::Html(text) | Self::Code(text) => text.len(),
            Self::Binary | Self::TooLarge => 0,
        }
    }
}

/// The cached content of archives.
#[derive(Debug)]
pub(crate) struct Contents {
    contents: ValueCache<Content>,
    shown: Arc<ValueCache<Shown>>,
    turns: Semaphore,
}

impl Default for Contents {
    fn default() -> Self {
        let [contents, shown] = KEPT;
        Self {
            contents: ValueCache::new(contents),
            shown: Arc::new(ValueCache::new(shown)),
            turns: Semaphore::new(AT_ONCE),
        }
    }
}

impl Contents {
    /// The content of a version's archive; empty if it is missing or refused.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or unpacked on this machine's disk.
    pub(super) async fn of(
        &self,
        files: &Files,
        root: &Root,
        line: &PublishedLine,
    ) -> Result<Arc<Content>, HubError> {
        let key = key(root, line);
        if let Some(known) = self.contents.find(&key) {
            return Ok(known);
        }
        let Ok(_turn) = self.turns.acquire().await else { return Ok(Arc::default()) };
        // Another request may have loaded the same in the meantime.
        if let Some(known) = self.contents.find(&key) {
            return Ok(known);
        }
        let content = match fetch(files, root, line).await? {
            Fetched::Absent => Content::default(),
            Fetched::TooLarge => Content::TOO_LARGE,
            Fetched::Whole(bytes) => {
                let (staging, shown) = (Arc::clone(&files.staging), Arc::clone(&self.shown));
                let (line, key) = (line.clone(), key.clone());
                let reading = in_its_own_thread(move || match unpack(&staging, &bytes, &line)? {
                    Some(unpacked) => Ok(read(&unpacked, &line, &key, &shown)?),
                    None => Ok::<_, HubError>(Content::default()),
                });
                reading.await??
            }
        };
        let content = Arc::new(content);
        self.contents.keep(key, &content);
        Ok(content)
    }

    /// How a file of a version is shown; `None` if the version has no such file.
    ///
    /// # Errors
    ///
    /// When its archive cannot be read, or unpacked on this machine's disk.
    pub(super) async fn file(
        &self,
        files: &Files,
        root: &Root,
        line: &PublishedLine,
        path: &str,
    ) -> Result<Option<Arc<Shown>>, HubError> {
        let content = self.of(files, root, line).await?;
        if content.files.binary_search_by(|file| file.path.as_str().cmp(path)).is_err() {
            return Ok(None);
        }
        let key = format!("{} {path}", key(root, line));
        if let Some(known) = self.shown.find(&key) {
            return Ok(Some(known));
        }
        let Ok(_turn) = self.turns.acquire().await else { return Ok(None) };
        if let Some(known) = self.shown.find(&key) {
            return Ok(Some(known));
        }
        let Fetched::Whole(bytes) = fetch(files, root, line).await? else { return Ok(None) };
        let staging = Arc::clone(&files.staging);
        let (line, path) = (line.clone(), path.to_owned());
        let reading = in_its_own_thread(move || match unpack(&staging, &bytes, &line)? {
            Some(unpacked) => Ok(Some(Arc::new(show(&unpacked, &line, &path)?))),
            None => Ok::<_, HubError>(None),
        });
        let shown = reading.await??;
        if let Some(shown) = &shown {
            self.shown.keep(key, shown);
        }
        Ok(shown)
    }
}

/// A key for an archive and for the version whose links are in its texts.
fn key(root: &Root, line: &PublishedLine) -> String {
    let archive = line.text("archive").unwrap_or_default();
    format!("{} {} {archive}", line.describe(), place(root, line))
}

/// The path of a version's archive in this hub.
pub(super) fn place(root: &Root, line: &PublishedLine) -> String {
    let listed = line.texts("urls").find(|url| !url.contains("://")).map(str::to_owned);
    listed.unwrap_or_else(|| format!("{}{}", root.packs_folder(), line.usual_archive()))
}

/// An archive as it was requested.
enum Fetched {
    Whole(Bytes),
    Absent,
    TooLarge,
}

async fn fetch(files: &Files, root: &Root, line: &PublishedLine) -> Result<Fetched, HubError> {
    // Some hubs include the app version only if it is part of the version.
    let by_version = format!("{}{}", root.packs_folder(), line.archive_by_version());
    let mut path = place(root, line);
    // A line may name anything.
    if InnerPath::parse(&path).is_err() {
        return Ok(Fetched::Absent);
    }
    let mut meta = files.head(&path).await?;
    if meta.is_none() && path != by_version {
        meta = files.head(&by_version).await?;
        path = by_version;
    }
    let Some(meta) = meta else { return Ok(Fetched::Absent) };
    if meta.size > LARGEST_ARCHIVE {
        return Ok(Fetched::TooLarge);
    }
    let read = files.read(&path).await?;
    Ok(read.map_or(Fetched::Absent, |read| Fetched::Whole(read.bytes)))
}

/// Unpacks an archive; `None` for one that is refused.
fn unpack(
    staging: &Staging,
    bytes: &Bytes,
    line: &PublishedLine,
) -> Result<Option<Unpacked>, HubError> {
    let expected = line.text("archive");
    if expected.is_some_and(|expected| expected != archive::digest(bytes).to_string()) {
        return Ok(None);
    }
    let limits = Limits { bytes: LARGEST_TREE, entries: MOST_FILES, ..Limits::default() };
    match archive::unpack_within(staging, bytes, (&line.describe(), line.archive_layout()), limits)
    {
        Err(HubError::Archive { .. }) => Ok(None),
        unpacked => unpacked.map(Some),
    }
}

/// Reads what a page shows. The pictures in the readme are cached too, because browsers request them next.
fn read(
    unpacked: &Unpacked,
    line: &PublishedLine,
    key: &str,
    shown: &ValueCache<Shown>,
) -> Result<Content, FileError> {
    let files = files(unpacked);
    let Some(path) = unpacked.readme(line) else {
        return Ok(Content { readme: Readme::None, files });
    };
    let leaf = line.name().rsplit('/').next().unwrap_or_default();
    let before = format!("{leaf}@{}/", escaped(&line.full_version()));
    let readme = match show_text(unpacked, line, path, &before)? {
        Text::Markdown(html, pictures) => {
            for path in pictures {
                let picture = show(unpacked, line, &path)?;
                shown.keep(format!("{key} {path}"), &Arc::new(picture));
            }
            Readme::Html(html)
        }
        Text::Plain(text) if text.trim().is_empty() => Readme::None,
        Text::Plain(text) => Readme::Text(text),
        Text::Binary => Readme::None,
        Text::TooLarge => Readme::TooLarge,
    };
    Ok(Content { readme, files })
}

fn files(unpacked: &Unpacked) -> Vec<Listed> {
    // The target of a link is listed in its own place.
    let entries = unpacked.tree.entries().iter().filter(|entry| !is_link(entry));
    let listed = |entry: &mu_provider::Entry| Listed { path: entry.path.clone(), size: entry.size };
    let mut files: Vec<Listed> = entries.map(listed).collect();
    files.sort_by(|left, right| left.path.cmp(&right.path));
    files
}

fn is_link(entry: &mu_provider::Entry) -> bool {
    entry.mode == Mode::Symlink
}

/// How one of the files is shown.
fn show(unpacked: &Unpacked, line: &PublishedLine, path: &str) -> Result<Shown, FileError> {
    if let Some(kind) = picture(path) {
        let bytes = unpacked.bytes(path, LARGEST_PICTURE)?;
        return Ok(bytes.map_or(Shown::TooLarge, |bytes| Shown::Picture(kind, bytes)));
    }
    let text = show_text(unpacked, line, path, &"../".repeat(path.matches('/').count()))?;
    Ok(match text {
        Text::Markdown(html, _) => Shown::Html(html),
        Text::Plain(text) => {
            let mut html = String::with_capacity(text.len() * 2);
            highlight::write(&mut html, highlight::language(path), &text)
                .expect("a text takes what is written");
            Shown::Code(html)
        }
        Text::Binary => Shown::Binary,
        Text::TooLarge => Shown::TooLarge,
    })
}

/// A file as text.
enum Text {
    /// HTML, and the pictures of the package that are in it.
    Markdown(String, BTreeSet<String>),
    Plain(String),
    Binary,
    TooLarge,
}

/// Reads a text; `before` is the prefix of the package's files on its page.
fn show_text(
    unpacked: &Unpacked,
    line: &PublishedLine,
    path: &str,
    before: &str,
) -> Result<Text, FileError> {
    let is_path = |entry: &&mu_provider::Entry| entry.path == path;
    let is_link = unpacked.tree.entries().iter().find(is_path).is_some_and(is_link);
    let bytes = match unpacked.bytes(path, LONGEST) {
        // It may lead to a folder.
        Err(_) if is_link => return Ok(Text::Binary),
        bytes => bytes?,
    };
    let Some(bytes) = bytes else { return Ok(Text::TooLarge) };
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let Some(text) = text else { return Ok(Text::Binary) };
    if !highlight::is_markdown(path) || text.trim().is_empty() {
        return Ok(Text::Plain(text));
    }
    let folder = path.rfind('/').map_or("", |slash| &path[..=slash]);
    let repository = line.text("repository");
    let links = Links {
        files: before.to_owned(),
        folder: folder.to_owned(),
        paths: files(unpacked).into_iter().map(|file| file.path).collect(),
        repository: repository.and_then(|place| repository_files(place, line.text("commit"))),
    };
    Ok(match markdown::markdown(&text, links) {
        Some((html, pictures)) => Text::Markdown(html, pictures),
        None => Text::Plain(text),
    })
}

/// How much memory a cached value takes.
trait Weight {
    /// In bytes, without its key.
    fn weight(&self) -> usize;
}

/// Values by key.
#[derive(Debug)]
struct ValueCache<T> {
    most: usize,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    by_key: HashMap<String, Arc<T>>,
    /// The oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl<T: Weight> ValueCache<T> {
    /// Keeps at most so many bytes.
    fn new(most: usize) -> Self {
        let inner = Inner { by_key: HashMap::new(), order: VecDeque::new(), bytes: 0 };
        Self { most, inner: Mutex::new(inner) }
    }

    fn find(&self, key: &str) -> Option<Arc<T>> {
        lock(&self.inner).by_key.get(key).cloned()
    }

    fn keep(&self, key: String, value: &Arc<T>) {
        let mut inner = lock(&self.inner);
        if inner.by_key.contains_key(&key) {
            return;
        }
        inner.bytes += weight(&key, &**value);
        inner.by_key.insert(key.clone(), Arc::clone(value));
        inner.order.push_back(key);
        while inner.bytes > self.most {
            let Some(oldest) = inner.order.pop_front() else { break };
            if let Some(value) = inner.by_key.remove(&oldest) {
                inner.bytes -= weight(&oldest, &*value);
            }
        }
    }
}

fn weight(key: &str, value: &impl Weight) -> usize {
    value.weight() + 2 * key.len() + 128
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weight for String {
        fn weight(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn what_is_kept_has_an_end() {
        const MOST: usize = 4_000;
        let kept = ValueCache::new(MOST);
        let large = Arc::new("x".repeat(MOST / 4));
        for number in 0..10 {
            kept.keep(format!("{number}"), &large);
            kept.keep(format!("{number}"), &Arc::clone(&large));
        }
        assert!(kept.find("9").is_some() && kept.find("0").is_none());
        let inner = kept.inner.lock().expect("is whole");
        assert!(inner.bytes <= MOST, "{}", inner.bytes);
        assert_eq!(inner.by_key.len(), inner.order.len());
    }
}
