//! A package as it is in another hub: its new versions, and what has changed of the others, all at once.
//!
//! First everything about a version is written but its index line, so that no reader finds it; then one write of the index file
//! publishes all. `writer.rs` has the order of writes, and changes that people make themselves. Nothing here fetches anything.

use bytes::Bytes;
use mu_provider::{checked_evidence, evidence_path};
use serde_json::json;

use crate::HubError;
use crate::archive::Unpacked;
use crate::change::{set, texts};
use crate::derived;
use crate::lines::{Lines, PublishedLine};
use crate::names;
use crate::root::Root;
use crate::writer::{Writer, place_of_archive};

/// What vouches for a version.
#[derive(Debug, Clone, Default)]
pub struct Vouching {
    /// Lines of evidence; empty if there is none.
    pub evidence: Bytes,
    /// The signed statement about its archive.
    pub provenance: Option<Bytes>,
}

/// A version of which everything is in its place but the index line, so that no reader finds it.
#[derive(Debug, Clone)]
pub struct PlacedVersion(PublishedLine);

impl PlacedVersion {
    /// The version as users write it.
    pub fn version(&self) -> String {
        self.0.full_version()
    }
}

/// What [`crate::Hub::follow`] has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageUpdate {
    /// The versions that were published.
    pub published: Vec<String>,
    /// The versions that were there, and the keys of their lines that changed.
    pub changed: Vec<(String, Vec<&'static str>)>,
}

/// The keys of an index line that can change after it was published.
const CHANGING_KEYS: [&str; 4] = ["yanked", "deprecated", "tags", "movedTo"];

impl Lines {
    /// These lines with those that were placed, and with what can change of versions as `wanted` has it.
    ///
    /// A line that differs in nothing else becomes the wanted one, in its spelling. Lines keep their order, and new ones come last,
    /// as the snapshot needs it.
    fn follow(
        &self,
        placed: &[PlacedVersion],
        wanted: &[PublishedLine],
    ) -> Result<(Self, PackageUpdate), HubError> {
        let mut followed = PackageUpdate::default();
        let tags: Vec<&str> = wanted.iter().flat_map(|line| line.texts("tags")).collect();
        let mut lines = Self::default();
        for line in self.iter() {
            let is_same = |other: &&PublishedLine| {
                let key = if line.text("archive").is_some() { "archive" } else { "digest" };
                other.full_version() == line.full_version() && other.text(key) == line.text(key)
            };
            let mut map = line.map().clone();
            let mut keys = Vec::new();
            match wanted.iter().find(is_same) {
                Some(other) => {
                    for key in CHANGING_KEYS {
                        if set(&mut map, key, other.map().get(key).cloned()) {
                            keys.push(key);
                        }
                    }
                    let mut spelled = other.map().clone();
                    spelled.shift_remove("urls");
                    spelled.extend(map.get("urls").map(|urls| ("urls".to_owned(), urls.clone())));
                    if spelled == map {
                        map = spelled;
                    }
                }
                // A tag is at one version.
                None => {
                    let mut kept = texts(map.get("tags"));
                    kept.retain(|tag| !tags.contains(&tag.as_str()));
                    if set(&mut map, "tags", (!kept.is_empty()).then(|| json!(kept))) {
                        keys.push("tags");
                    }
                }
            }
            if !keys.is_empty() {
                followed.changed.push((line.full_version(), keys));
                let changed = PublishedLine::new(map);
                changed.check()?;
                lines.push(changed);
            } else {
                lines.push(line.clone());
            }
        }
        for PlacedVersion(line) in placed {
            match self.find(&line.full_version()) {
                None => {
                    followed.published.push(line.full_version());
                    lines.push(line.clone());
                }
                Some(present) if present.text("archive") == line.text("archive") => {}
                Some(present) => {
                    let digest = |line: &PublishedLine| {
                        line.text("archive").unwrap_or("no digest").to_owned()
                    };
                    return Err(HubError::Exists {
                        package: line.describe(),
                        present: digest(present),
                        offered: digest(line),
                    });
                }
            }
        }
        Ok((lines, followed))
    }
}

impl Writer {
    /// Writes everything about a version but its index line: nothing leads to it before [`Writer::follow`] publishes that.
    pub(crate) async fn place_version(
        &self,
        line: PublishedLine,
        bytes: Bytes,
        unpacked: &Unpacked,
        vouching: &Vouching,
    ) -> Result<PlacedVersion, HubError> {
        let what = format!("the evidence about {}", line.describe());
        let offered =
            checked_evidence(&vouching.evidence).map_err(|why| names::refused(&what, &why))?;
        let _turn = self.files.turn().await?;
        let root = Root::read_to_write(&self.files).await?;
        let (line, _) = self.upload(&root, line, bytes, unpacked).await?;
        if !offered.is_empty() {
            let path = evidence_path(line.name(), &line.full_version());
            self.join_evidence(&path, &what, &offered).await?;
        }
        if let Some(provenance) = &vouching.provenance {
            self.place_provenance(&root, &line, provenance.clone()).await?;
        }
        Ok(PlacedVersion(line))
    }

    /// Makes a package what it is in another hub, at once: publishes versions that were placed, and changes what can change of those
    /// that are there to what `lines` say.
    pub(crate) async fn follow(
        &self,
        name: &str,
        placed: &[PlacedVersion],
        lines: &[PublishedLine],
    ) -> Result<PackageUpdate, HubError> {
        names::check_name(name)?;
        lines.iter().try_for_each(PublishedLine::check)?;
        let _turn = self.files.turn().await?;
        let root = Root::read_to_write(&self.files).await?;
        for PlacedVersion(line) in placed {
            // A repair in between has removed it as a leftover.
            let path = place_of_archive(&root, line);
            if self.files.head(&path).await?.is_none() {
                return Err(self.files.broken(&path, "it was removed before it was published"));
            }
        }
        let seen = derived::index(&self.files, &root, name).await?;
        let (_, followed) = seen.follow(placed, lines)?;
        if followed == PackageUpdate::default() {
            self.complete_earlier(name).await?;
            return Ok(followed);
        }
        self.change(&root, name, |present, _| {
            let (now, followed) = present.follow(placed, lines)?;
            *present = now;
            Ok((followed != PackageUpdate::default(), followed))
        })
        .await
    }
}
