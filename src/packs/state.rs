//! The state of a packs folder: what mu put there, and what it was about to.
//!
//! The state is a record, not a promise: the lock says what should be installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mu_provider::Digest;
use serde::{Deserialize, Serialize};

use crate::fs::{self, FileError};
use crate::packs::PacksError;
use crate::workspace::Link;

/// The newest format this program writes and reads.
const FORMAT: u32 = 1;

/// What is installed in a packs folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Installed packs by their place, such as `hub.mu.com/aws/ec2`.
    pub packs: BTreeMap<String, Pack>,
    /// Places that a run was changing when it ended without saying so.
    pub pending: BTreeSet<String>,
    /// What was asked for when they came out of the store; `None` if nobody knows.
    pub link: Option<Link>,
}

/// One installed pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    /// The package's id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// The digest of the package's content.
    pub digest: Digest,
    /// The digest of the files in the folder, where that differs because another pack is inside it.
    pub partial: Option<Digest>,
}

#[derive(Serialize, Deserialize)]
struct StateFile {
    version: u32,
    packs: Vec<PackLine>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pending: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct PackLine {
    place: String,
    id: String,
    version: String,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partial: Option<String>,
}

impl State {
    /// Whether the packs came out of the store as `link` asks for.
    pub fn is_linked_by(&self, link: Link) -> bool {
        self.link.is_none_or(|known| known == link)
    }

    pub(super) fn read(path: &Path) -> Result<Self, PacksError> {
        let Some(text) = fs::read_text_if_there(path)? else {
            return Ok(Self::default());
        };
        let Ok(file) = serde_json::from_str::<StateFile>(&text) else {
            #[derive(Deserialize)]
            struct Version {
                version: u32,
            }
            return match serde_json::from_str::<Version>(&text) {
                Ok(Version { version }) if version > FORMAT => {
                    Err(PacksError::NewerState { path: path.to_owned(), version, known: FORMAT })
                }
                _ => Ok(Self::default()),
            };
        };
        if file.version > FORMAT {
            return Err(PacksError::NewerState {
                path: path.to_owned(),
                version: file.version,
                known: FORMAT,
            });
        }
        let packs = file.packs.into_iter().filter_map(|line| {
            let digest = line.digest.parse().ok()?;
            let partial = line.partial.and_then(|text| text.parse().ok());
            Some((line.place, Pack { id: line.id, version: line.version, digest, partial }))
        });
        let link = Link::ALL.into_iter().find(|link| Some(link.as_str()) == file.link.as_deref());
        Ok(Self { packs: packs.collect(), pending: file.pending, link })
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), FileError> {
        let packs = self.packs.iter().map(|(place, pack)| PackLine {
            place: place.clone(),
            id: pack.id.clone(),
            version: pack.version.clone(),
            digest: pack.digest.to_string(),
            partial: pack.partial.map(|digest| digest.to_string()),
        });
        let file = StateFile {
            version: FORMAT,
            packs: packs.collect(),
            pending: self.pending.clone(),
            link: self.link.map(|link| link.as_str().to_owned()),
        };
        let text = serde_json::to_string(&file).expect("strings and numbers always serialise");
        fs::write_atomic(path, text.as_bytes())
    }
}
