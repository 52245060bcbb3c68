//! `index.yaml` of a repository, YAML or JSON: read once, package by package, into the lines of an index.
//!
//! Helm and KUDO have such indexes; a format says what an entry of its own means. An entry that cannot be read is a version
//! that cannot be used, with the reason. The rest of the index stays valid.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use mu_manifest::reference::Version;
use mu_provider::{ArchiveDigest, Release, Yanked};
use serde_yaml::granit_parser::Event;

use crate::error::{Fault, FormatError};
use crate::node::{Kind, Node, Reader};

/// What a repository has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// The lines of each package, each a [`Release`] as JSON, in the order of the index.
    pub packages: BTreeMap<String, Vec<u8>>,
}

/// What the entries of an index are.
pub(crate) struct Entries<'a> {
    /// The format of the entries.
    pub(crate) format: &'static str,
    /// What the entries are called.
    pub(crate) called: &'static str,
    /// The key that has the version of an entry.
    pub(crate) version: &'static str,
    /// A key that entries of another format have in place of `version`, and why those are not read.
    pub(crate) other: (&'static str, &'static str),
    /// Whether one can be called so.
    pub(crate) is_name: fn(&str) -> bool,
    /// Reads an entry that is listed under a name.
    pub(crate) read: &'a dyn Fn(&str, &Node<'_>) -> Result<Release, Fault>,
}

/// Whether a text begins like an index. The rest of the index need not be there.
pub fn is_index(text: &str) -> bool {
    let mut reader = Reader::new(text);
    let Ok(Some((Event::MappingStart(..), _))) = reader.first() else { return false };
    loop {
        match reader.key() {
            Ok(Some((key, _))) if key == "entries" => return true,
            // Everything else that can come before `entries` is small.
            Ok(Some(_)) => {
                let value = reader.next().and_then(|(event, span)| reader.node(event, span));
                if value.is_err() {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

impl Entries<'_> {
    /// Reads `text`, the index that came from `file`.
    pub(crate) fn index(&self, file: &str, text: &str) -> Result<Index, FormatError> {
        Lines { of: self, index: Index::default(), others: None, has_versions: false }
            .read(text)
            .map_err(|fault| FormatError::new(file, text, fault))
    }
}

/// Reads where the archive of an entry is, and what the index says of it besides.
pub(crate) fn add_archive(release: &mut Release, node: &Node<'_>) -> Result<(), Fault> {
    if node.flag("removed")? {
        release.yanked = Yanked::Flag(true);
    }
    release.published = node.said("created");
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
    of: &'a Entries<'a>,
    index: Index,
    /// The first entry of another format.
    others: Option<std::ops::Range<usize>>,
    /// Whether any entry says its version.
    has_versions: bool,
}

impl Lines<'_> {
    fn read(mut self, text: &str) -> Result<Index, Fault> {
        let mut reader = Reader::new(text);
        let called = self.of.called;
        let no_index = |span| {
            Fault::new(span, format!("this is not an index of {called}: it has no `entries`"))
        };
        let Some((Event::MappingStart(..), _)) = reader.first()? else {
            return Err(no_index(0..1));
        };
        let mut has_entries = false;
        while let Some((key, span)) = reader.key()? {
            let (event, begin) = reader.next()?;
            match event {
                Event::MappingStart(..) if key == "entries" && !has_entries => {
                    has_entries = true;
                    self.entries(&mut reader)?;
                }
                _ if key == "entries" && has_entries => {
                    return Err(Fault::new(span, "`entries` appears twice"));
                }
                event => {
                    let node = reader.node(event, begin)?;
                    // Helm writes `entries: null` if there are none.
                    has_entries |= key == "entries" && matches!(node.kind, Kind::Null);
                }
            }
        }
        match self.others {
            Some(span) if !self.has_versions => Err(Fault::new(span, self.of.other.1)),
            _ if has_entries => Ok(self.index),
            _ => Err(no_index(0..1)),
        }
    }

    /// Reads one entry after the other, so that no more than one is in memory as values.
    fn entries<'t>(&mut self, reader: &mut Reader<'t>) -> Result<(), Fault> {
        while let Some((name, _)) = reader.key()? {
            let is_name = (self.of.is_name)(&name);
            match reader.next()? {
                (Event::SequenceStart(..), _) => {
                    let mut releases = Vec::new();
                    loop {
                        let (event, span) = reader.next()?;
                        if event == Event::SequenceEnd {
                            break;
                        }
                        let node = reader.node(event, span)?;
                        if is_name {
                            releases.extend(self.entry(&name, &node));
                        }
                    }
                    self.add(&name, releases);
                }
                (event, span) => drop(reader.node(event, span)?),
            }
        }
        Ok(())
    }

    /// The line of one version. An entry without a readable version has a line that says so.
    fn entry(&mut self, name: &str, node: &Node<'_>) -> Option<Release> {
        let mut version = String::new();
        let read = match node.text(self.of.version) {
            Ok(Some((text, _))) => {
                text.clone_into(&mut version);
                self.has_versions = true;
                (self.of.read)(name, node)
            }
            Ok(None) => {
                if let Ok(Some((_, at))) = node.text(self.of.other.0) {
                    self.others.get_or_insert(at.span.clone());
                    return None;
                }
                Err(node.fault(format!("an entry of the index has no `{}`", self.of.version)))
            }
            Err(fault) => Err(fault),
        };
        Some(read.unwrap_or_else(|fault| Release {
            name: name.to_owned(),
            version,
            format: Some(self.of.format.to_owned()),
            unusable: Some(fault.reason),
            ..Release::default()
        }))
    }

    /// Adds the lines of a package. A version that has two different archives could be either, and is not used.
    fn add(&mut self, name: &str, releases: Vec<Release>) {
        if releases.is_empty() {
            return;
        }
        let versions: Vec<Option<Version>> =
            releases.iter().map(|release| Version::parse_lenient(&release.version).ok()).collect();
        let mut archives: HashMap<&Version, BTreeSet<Option<&str>>> = HashMap::new();
        for (version, release) in versions.iter().zip(&releases) {
            if let Some(version) = version {
                archives.entry(version).or_default().insert(release.archive.as_deref());
            }
        }
        let doubled = archives.into_iter().filter(|(_, archives)| archives.len() > 1);
        let doubled: HashSet<&Version> = doubled.map(|(version, _)| version).collect();
        let lines = self.index.packages.entry(name.to_owned()).or_default();
        let mut written = HashSet::new();
        for (version, release) in versions.iter().zip(releases) {
            let line = match version.as_ref().filter(|version| doubled.contains(version)) {
                Some(version) if !written.insert(version) => continue,
                Some(_) => {
                    let reason = "the index lists it twice, with different archives".to_owned();
                    Release { unusable: Some(reason), ..release }
                }
                None => release,
            };
            serde_json::to_writer(&mut *lines, &line).expect("memory takes everything");
            lines.push(b'\n');
        }
    }
}
