//! `index.yaml` of a repository, YAML or JSON: read once, package by package, into the lines of an index.
//!
//! Helm and KUDO have such indexes; a format says what an entry of its own means. An entry that cannot be read is a version
//! that cannot be used, with the reason, and so is a package of which the index has no list of versions. The rest of the index stays
//! valid. Names that no package can have are kept apart, for whoever looks for them.
//!
//! And what a search goes through: a line for each chart, or operator of KUDO, of an index, about its newest release.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mu_manifest::reference::Version;
use mu_manifest::source::{LineCounter, nearest};
use mu_provider::catalog::CatalogLine;
use mu_provider::{ArchiveDigest, Release, Yanked, read_json_lines};
use serde_yaml::granit_parser::Event;

use crate::format::version_of;
use crate::node::{Fault, FormatError, Node};
use crate::reader::{Key, Reader, is_nothing};
use crate::shape::{Shape, Unknown, grouped};

/// The key of an index with what it lists.
const ENTRIES: &str = "entries";

/// The most versions that an index may have, in all of its packages.
const MOST_VERSIONS: usize = 500_000;

/// How many names are kept that no package can have.
const MOST_MISNAMED: usize = 1_000;

/// What a repository has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// The lines of each package, each a [`Release`] as JSON, in the order of the index.
    pub packages: BTreeMap<String, Vec<u8>>,
    /// The names under which it lists something, and that no package can have, with the reasons.
    pub misnamed: BTreeMap<String, String>,
}

/// How many names that no package can have are told.
const MOST_TOLD: usize = 3;

impl Index {
    /// What an index lists under names that no package can have (`misnamed`), for somebody who has looked for `wanted` in vain: the
    /// nearest alone, if one is near. Empty if there is nothing.
    pub fn also_has(misnamed: &BTreeMap<String, String>, wanted: &str) -> String {
        let near = nearest(wanted, misnamed.keys().map(String::as_str));
        let near = near.and_then(|near| misnamed.get(near));
        let told: Vec<&str> = match near {
            Some(reason) => vec![reason],
            None => misnamed.values().take(MOST_TOLD).map(String::as_str).collect(),
        };
        let more = match misnamed.len() - told.len() {
            more if near.is_none() && more > 0 => format!("; and {more} more"),
            _ => String::new(),
        };
        match told.is_empty() {
            true => String::new(),
            false => format!("; what it has besides cannot be used: {}{more}", told.join("; ")),
        }
    }
}

/// What the entries of an index are.
pub(crate) struct IndexEntries<'a> {
    /// The format of the entries.
    pub(crate) format: &'static str,
    /// What the entries are called.
    pub(crate) called: &'static str,
    /// What is read of the index.
    pub(crate) index: &'static Shape,
    /// What is read of an entry.
    pub(crate) shape: &'static Shape,
    /// The key that has the version of an entry.
    pub(crate) version: &'static str,
    /// The key of an app version, if that and the version together tell entries apart.
    pub(crate) app: Option<&'static str>,
    /// A key that entries of another format have in place of `version`, and why those are not read.
    pub(crate) other: (&'static str, &'static str),
    /// Why one cannot be called so.
    pub(crate) check_name: fn(&str) -> Result<(), String>,
    /// Reads an entry that is listed under a name.
    pub(crate) read: &'a dyn Fn(&str, &Node<'_>) -> Result<Release, Fault>,
}

/// Whether a text begins like an index. The rest of the index need not be there.
pub fn is_index(text: &str) -> bool {
    let mut reader = Reader::new(text);
    let Ok(Some((Event::MappingStart(..), _))) = reader.first() else { return false };
    let level = reader.level();
    loop {
        match reader.key(level) {
            Ok(Some(key)) if key.text == ENTRIES => return true,
            Ok(Some(_)) => {
                let passed = reader.next().and_then(|(event, span)| reader.pass_over(event, span));
                if passed.is_err() {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

impl IndexEntries<'_> {
    /// Reads `text`, the index that came from `file`.
    pub(crate) fn index(&self, file: &str, text: &str) -> Result<Index, FormatError> {
        let lines = Lines {
            of: self,
            text,
            index: Index::default(),
            others: None,
            has_versions: false,
            count: 0,
            counter: LineCounter::new(text),
        };
        lines.read().map_err(|fault| FormatError::new(file, text, fault))
    }
}

/// Reads where the archive of an entry is, and what the index says of it besides.
pub(crate) fn add_archive(release: &mut Release, node: &Node<'_>) -> Result<(), Fault> {
    if node.flag("removed")? {
        release.yanked = Yanked::Flag(true);
    }
    release.published = node.text_for_people("created");
    if let Some((digest, at)) = node.text("digest")? {
        let hex = digest.strip_prefix("sha256:").unwrap_or(digest).to_ascii_lowercase();
        let digest: Result<ArchiveDigest, _> = format!("sha256:{hex}").parse();
        let digest = digest.map_err(|_| at.fault("its digest is not SHA-256 in hexadecimal"))?;
        release.archive = Some(digest.to_string());
    }
    let urls = node.list("urls")?.iter().filter_map(Node::scalar);
    release.urls = urls.map(str::to_owned).collect();
    match release.urls.is_empty() {
        true => Err(node.fault("the index does not say where its archive is")),
        false => Ok(()),
    }
}

struct Lines<'a> {
    of: &'a IndexEntries<'a>,
    text: &'a str,
    index: Index,
    /// The first entry of another format.
    others: Option<std::ops::Range<usize>>,
    /// Whether any entry says its version.
    has_versions: bool,
    /// How many lines there are.
    count: usize,
    /// Finds the lines of places in the text.
    counter: LineCounter<'a>,
}

/// The lines of a package, one after the other.
#[derive(Default)]
struct Package {
    lines: Vec<u8>,
    /// Where the line of each version is, and its archive.
    versions: HashMap<Version, (usize, Option<String>)>,
    /// Where the lines of versions with two different archives are, each of which could be meant.
    doubled: BTreeSet<usize>,
}

impl Lines<'_> {
    fn read(mut self) -> Result<Index, Fault> {
        let mut reader = Reader::new(self.text);
        let called = self.of.called;
        let no_index = |span| {
            Fault::new(span, format!("this is not an index of {called}: it has no `entries`"))
        };
        let Some((Event::MappingStart(..), _)) = reader.first()? else {
            return Err(no_index(0..1));
        };
        let mut has_entries = false;
        let mut misspelt = None;
        let level = reader.level();
        while let Some(Key { text: key, span, .. }) = reader.key(level)? {
            let (event, begin) = reader.value()?;
            let is_entries = key == ENTRIES;
            match event {
                Event::MappingStart(..) if is_entries && !has_entries => {
                    has_entries = true;
                    self.entries(&mut reader)?;
                }
                _ if is_entries && has_entries => {
                    return Err(Fault::new(span, "`entries` appears twice"));
                }
                event => {
                    // Servers have keys of their own.
                    if nearest(&key, [ENTRIES]).is_some() && !self.of.index.declares(&key) {
                        misspelt.get_or_insert((key.into_owned(), span));
                    }
                    // Helm writes `entries: null` if there are none.
                    has_entries |=
                        is_entries && matches!(&event, Event::Scalar(text, ..) if is_nothing(text));
                    reader.pass_over(event, begin)?;
                }
            }
        }
        match self.others {
            Some(span) if !self.has_versions => Err(Fault::new(span, self.of.other.1)),
            _ if has_entries => Ok(self.index),
            _ => Err(match misspelt {
                Some((key, span)) => {
                    let reason = format!("unknown key `{key}`; did you mean `{ENTRIES}`?");
                    Fault::new(span, reason)
                }
                None => no_index(0..1),
            }),
        }
    }

    /// Reads one entry after the other, so that no more than one is in memory as values.
    fn entries<'t>(&mut self, reader: &mut Reader<'t>) -> Result<(), Fault> {
        let level = reader.level();
        while let Some(Key { text: name, span: at, .. }) = reader.key(level)? {
            let misnamed = (self.of.check_name)(&name).err();
            let (event, span) = reader.value()?;
            let lines = match (&event, misnamed) {
                (Event::SequenceStart(..), None) => self.versions(reader, &name)?,
                (Event::Scalar(text, ..), _) if is_nothing(text) => continue,
                (_, Some(reason)) => {
                    let is_list = matches!(event, Event::SequenceStart(..));
                    if reader.pass_over(event, span)? > usize::from(is_list)
                        && self.index.misnamed.len() < MOST_MISNAMED
                    {
                        let reason = format!("{reason} (line {})", self.counter.line_at(at.start));
                        self.index.misnamed.insert(name.into_owned(), reason);
                    }
                    continue;
                }
                (_, None) => {
                    reader.pass_over(event, span)?;
                    let line = self.counter.line_at(at.start);
                    let reason = format!("line {line} of the index has no list of its versions");
                    let mut package = Package::default();
                    package.add(&self.unusable(&name, String::new(), reason));
                    package.finish()
                }
            };
            if !lines.is_empty() {
                self.index.packages.entry(name.into_owned()).or_default().extend(lines);
            }
        }
        Ok(())
    }

    /// The lines of the versions of a package.
    fn versions<'t>(&mut self, reader: &mut Reader<'t>, name: &str) -> Result<Vec<u8>, Fault> {
        let mut package = Package::default();
        loop {
            let (event, span) = reader.value()?;
            if event == Event::SequenceEnd {
                return Ok(package.finish());
            }
            reader.values.next_document();
            let node = reader.node(event, span, self.of.shape)?;
            let unknown = std::mem::take(&mut reader.unknown);
            let release = self.entry(name, &node, unknown);
            self.count += 1;
            if self.count > MOST_VERSIONS {
                let reason = format!("it has more than {} versions", grouped(MOST_VERSIONS));
                return Err(Fault::excess(node.span, reason));
            }
            package.add(&release);
        }
    }

    /// The line of something that is listed under a name, and cannot be used.
    fn unusable(&self, name: &str, version: String, reason: String) -> Release {
        Release {
            name: name.to_owned(),
            version,
            format: Some(self.of.format.to_owned()),
            unusable: Some(reason),
            ..Release::default()
        }
    }

    /// The line of one version. An entry without a readable version has a line that says so.
    fn entry(&mut self, name: &str, node: &Node<'_>, unknown: Unknown) -> Release {
        let mut version = String::new();
        let read = match node.text(self.of.version) {
            Ok(Some((text, _))) => {
                text.clone_into(&mut version);
                self.has_versions = true;
                unknown.check(false).and_then(|unknown| {
                    let release = (self.of.read)(name, node)?;
                    Ok(Release { unknown, ..release })
                })
            }
            Ok(None) => {
                // If all entries are so, the index is one of another format.
                if let Ok(Some((_, at))) = node.text(self.of.other.0) {
                    self.others.get_or_insert(at.span.clone());
                }
                let line = self.counter.line_at(node.span.start);
                let version = self.of.version;
                Err(node
                    .fault(format!("line {line} of the index has an entry without `{version}`")))
            }
            Err(fault) => Err(fault),
        };
        read.unwrap_or_else(|fault| {
            // What cannot be used is still no other version than it is.
            let app = self.of.app.and_then(|key| node.text(key).ok().flatten());
            let app = app.filter(|(app, _)| Version::composite(app, &version).is_ok());
            Release {
                app_version: app.map(|(app, _)| app.to_owned()),
                versioning: app.map(|_| "composite".to_owned()),
                ..self.unusable(name, version, fault.reason)
            }
        })
    }
}

impl Package {
    /// Adds the line of a version. Only what tells it from others is kept besides.
    fn add(&mut self, release: &Release) {
        let place = self.lines.len();
        if let Some(version) = version_of(release) {
            let known = self.versions.entry(version);
            let (first, archive) = known.or_insert_with(|| (place, release.archive.clone()));
            if *archive != release.archive {
                self.doubled.insert(*first);
            }
        }
        serde_json::to_writer(&mut self.lines, release).expect("memory takes everything");
        self.lines.push(b'\n');
    }

    /// The lines. A version that has two different archives could be either, and is not used.
    fn finish(self) -> Vec<u8> {
        if self.doubled.is_empty() {
            return self.lines;
        }
        let mut lines = Vec::new();
        let mut place = 0;
        for line in self.lines.split_inclusive(|byte| *byte == b'\n') {
            let release = serde_json::from_slice::<Release>(line).unwrap_or_default();
            let first =
                version_of(&release).and_then(|version| Some(self.versions.get(&version)?.0));
            match first.filter(|first| self.doubled.contains(first)) {
                Some(first) if first == place => {
                    let reason = "the index lists it twice, with different archives".to_owned();
                    let release = Release { unusable: Some(reason), ..release };
                    serde_json::to_writer(&mut lines, &release).expect("memory takes everything");
                    lines.push(b'\n');
                }
                Some(_) => {}
                None => lines.extend_from_slice(line),
            }
            place += line.len();
        }
        lines
    }
}

/// A package as a catalog has it, by the `lines` of its versions; `None` if there is none.
///
/// The newest release counts that is neither removed nor unusable, prereleases last.
pub fn catalog_line(lines: &[u8]) -> Option<CatalogLine> {
    let ranked = read_json_lines(lines).flatten().map(|release: Release| {
        let version = version_of(&release);
        let is_released = version.as_ref().is_some_and(|version| !version.is_prerelease());
        let is_usable = release.unusable.is_none() && release.yanked.is_no();
        ((is_usable, is_released, version), release)
    });
    let ((is_usable, ..), newest) = ranked.max_by(|(left, _), (right, _)| left.cmp(right))?;
    Some(CatalogLine {
        latest: if is_usable { newest.full_version() } else { String::new() },
        name: newest.name,
        description: newest.description,
        keywords: newest.keywords,
        app_version: newest.app_version,
        deprecated: newest.deprecated,
        ..CatalogLine::default()
    })
}
