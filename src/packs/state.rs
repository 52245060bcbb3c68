//! The state of a packs folder: what mu put there, and what it was about to.
//!
//! The state is a record, not a promise: the lock says what should be installed.

use std::borrow::Cow;
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
struct StateFile<'text> {
    version: u32,
    #[serde(borrow)]
    packs: Vec<PackLine<'text>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pending: Vec<Cow<'text, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<Cow<'text, str>>,
}

#[derive(Serialize, Deserialize)]
struct PackLine<'text> {
    #[serde(borrow)]
    place: Cow<'text, str>,
    #[serde(borrow)]
    id: Cow<'text, str>,
    #[serde(borrow)]
    version: Cow<'text, str>,
    #[serde(borrow)]
    digest: Cow<'text, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partial: Option<Cow<'text, str>>,
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
            let (id, version) = (line.id.into_owned(), line.version.into_owned());
            Some((line.place.into_owned(), Pack { id, version, digest, partial }))
        });
        let link = Link::ALL.into_iter().find(|link| Some(link.as_str()) == file.link.as_deref());
        let pending = file.pending.into_iter().map(Cow::into_owned).collect();
        Ok(Self { packs: packs.collect(), pending, link })
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), FileError> {
        let packs = self.packs.iter().map(|(place, pack)| PackLine {
            place: place.into(),
            id: (&pack.id).into(),
            version: (&pack.version).into(),
            digest: pack.digest.to_string().into(),
            partial: pack.partial.map(|digest| digest.to_string().into()),
        });
        let file = StateFile {
            version: FORMAT,
            packs: packs.collect(),
            pending: self.pending.iter().map(Cow::from).collect(),
            link: self.link.map(|link| link.as_str().into()),
        };
        let text = serde_json::to_string(&file).expect("strings and numbers always serialise");
        fs::write_atomic(path, text.as_bytes())
    }
}
