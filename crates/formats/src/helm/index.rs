//! `index.yaml`, YAML or JSON: read once, chart by chart, into the lines of an index.
//!
//! An entry that cannot be read is a version that cannot be used, with the reason. The rest of the index stays
//! valid.

use std::collections::BTreeMap;

use mu_provider::{ArchiveDigest, Release, Yanked};
use serde_yaml::granit_parser::Event;

use super::{chart, dependency};
use crate::aliases::Aliases;
use crate::error::{Fault, FormatError};
use crate::format::Reading;
use crate::node::{Kind, Node, Reader};

/// What a repository has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// The lines of each chart, each a [`Release`] as JSON, in the order of the index.
    pub charts: BTreeMap<String, Vec<u8>>,
}

/// Whether a text begins like an index of charts. The rest of the index need not be there.
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

/// Reads `text`, the index that came from `file`.
///
/// # Errors
///
/// When it is not YAML or JSON, or no index.
pub fn index(file: &str, text: &str, aliases: &Aliases) -> Result<Index, FormatError> {
    let around = Reading { is_own: false, aliases: Some(aliases) };
    Lines { around, index: Index::default() }
        .read(text)
        .map_err(|fault| FormatError::new(file, text, fault))
}

struct Lines<'a> {
    around: Reading<'a>,
    index: Index,
}

impl Lines<'_> {
    fn read(mut self, text: &str) -> Result<Index, Fault> {
        let mut reader = Reader::new(text);
        let no_index =
            |span| Fault::new(span, "this is not an index of charts: it has no `entries`");
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
        if has_entries { Ok(self.index) } else { Err(no_index(0..1)) }
    }

    /// Reads one entry after the other, so that no more than one is in memory as values.
    fn entries<'t>(&mut self, reader: &mut Reader<'t>) -> Result<(), Fault> {
        while let Some((name, _)) = reader.key()? {
            let is_name = chart::check_name(&name).is_ok();
            match reader.next()? {
                (Event::SequenceStart(..), _) => loop {
                    let (event, span) = reader.next()?;
                    if event == Event::SequenceEnd {
                        break;
                    }
                    let node = reader.node(event, span)?;
                    if is_name {
                        self.entry(&name, &node);
                    }
                },
                (event, span) => drop(reader.node(event, span)?),
            }
        }
        Ok(())
    }

    /// Adds the line of one version. An entry without a readable version is left out.
    fn entry(&mut self, name: &str, node: &Node<'_>) {
        let Ok(Some((version, _))) = node.text("version") else { return };
        let release = self.release(name, node).unwrap_or_else(|fault| Release {
            name: name.to_owned(),
            version: version.to_owned(),
            format: Some("helm".to_owned()),
            unusable: Some(fault.reason),
            ..Release::default()
        });
        let lines = self.index.charts.entry(name.to_owned()).or_default();
        serde_json::to_writer(&mut *lines, &release).expect("memory takes everything");
        lines.push(b'\n');
    }

    fn release(&self, name: &str, node: &Node<'_>) -> Result<Release, Fault> {
        let (mut release, is_first) = chart::head(node, Some(name))?;
        for dependency in node.list("dependencies")? {
            dependency::add(&mut release, dependency, &self.around)?;
        }
        if !is_first {
            release.dependencies.get_or_insert_default();
        }
        chart::details(&mut release, node)?;
        if node.flag("removed")? {
            release.yanked = Yanked::Flag(true);
        }
        release.published = node.text("created").ok().flatten().map(|(text, _)| text.to_owned());
        if let Some((digest, at)) = node.text("digest")? {
            let hex = digest.strip_prefix("sha256:").unwrap_or(digest).to_ascii_lowercase();
            let digest: Result<ArchiveDigest, _> = format!("sha256:{hex}").parse();
            let digest =
                digest.map_err(|_| at.fault("its digest is not SHA-256 in hexadecimal"))?;
            release.archive = Some(digest.to_string());
        }
        let urls = node.list("urls")?.iter().filter_map(Node::scalar);
        release.urls = urls.map(str::to_owned).collect();
        if release.urls.is_empty() {
            return Err(node.fault("the index does not say where its archive is"));
        }
        Ok(release)
    }
}
