//! What is installed in a packs folder, what mu was about to install there, and what should be installed.
//!
//! [`State`] is a record, not a promise: the lock says what should be installed, and [`WantedPack`] is one pack of
//! that. The state is kept in the cache, so that no checkout can bring one, under the folder's path and its file system
//! identity: a folder that was moved, copied or made again is a different one, and its packs are verified again. Packs
//! may be inside others; their places tell which. Nothing is installed here.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use mu_provider::{Digest, Entry};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::fs::{self, FileError};
use crate::manifest::source::Choice as _;
use crate::packs::PacksFolder;
use crate::workspace::Link;

/// The newest format this program writes and reads.
const FORMAT: u32 = 2;

/// The folder of states in the cache.
const FOLDER: &str = "packs";

/// What is installed in a packs folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Installed packs by their place, such as `hub.mu.com/aws/ec2`.
    pub packs: BTreeMap<String, Pack>,
    /// Places that a run was changing when it died.
    pub pending: BTreeSet<String>,
    /// The `link` setting when they were installed; `None` if unknown.
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
    /// The parts of it that the folder lacks, because other packs are inside the folder.
    pub omitted: Vec<Entry>,
}

impl Pack {
    /// The pack that was wanted.
    pub(super) fn new(wanted: &WantedPack, omitted: Vec<Entry>) -> Self {
        let WantedPack { id, version, digest, .. } = wanted;
        Self { id: id.clone(), version: version.clone(), digest: *digest, omitted }
    }
}

#[derive(Serialize, Deserialize)]
struct StateFile<'text> {
    version: u32,
    /// The packs folder.
    #[serde(borrow)]
    folder: Cow<'text, str>,
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
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    omitted: Vec<String>,
}

impl State {
    /// Whether the packs were installed with this `link`. Where no record says it, they were recognized by their content, and are
    /// folders, not links to the store.
    pub fn is_linked_by(&self, link: Link) -> bool {
        self.link.map_or(link != Link::Symlink, |known| known == link)
    }

    /// Reads the text of a state file; nothing if it is damaged, or of an older or a newer format: then packs are hashed.
    pub fn parse(text: &str) -> Option<Self> {
        let file = serde_json::from_str::<StateFile>(text).ok()?;
        let places = file.packs.iter().map(|pack| &pack.place);
        if file.version != FORMAT || !places.chain(&file.pending).all(|place| is_place(place)) {
            return None;
        }
        let packs: Option<BTreeMap<String, Pack>> =
            file.packs.into_iter().map(PackLine::read).collect();
        let packs = packs?;
        let link = file.link.as_deref().and_then(Link::of_word);
        let pending = file.pending.into_iter().map(Cow::into_owned).collect();
        Some(Self { packs, pending, link })
    }

    /// The text of the state of the packs folder `folder`.
    pub fn print(&self, folder: &Path) -> String {
        let packs = self.packs.iter().map(|(place, pack)| PackLine {
            place: place.into(),
            id: (&pack.id).into(),
            version: (&pack.version).into(),
            digest: pack.digest.to_string().into(),
            omitted: lines(&pack.omitted),
        });
        let file = StateFile {
            version: FORMAT,
            folder: folder.to_string_lossy(),
            packs: packs.collect(),
            pending: self.pending.iter().map(Cow::from).collect(),
            link: self.link.map(|link| link.as_str().into()),
        };
        serde_json::to_string(&file).expect("strings and numbers always serialise")
    }
}

impl PackLine<'_> {
    fn read(self) -> Option<(String, Pack)> {
        let digest = self.digest.parse().ok()?;
        let (id, version) = (self.id.into_owned(), self.version.into_owned());
        let omitted = entries(&self.omitted)?;
        Some((self.place.into_owned(), Pack { id, version, digest, omitted }))
    }
}

/// Entries as the lines that a digest is over.
pub(super) fn lines(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(Entry::line).collect()
}

/// The entries of lines that a digest is over, without sizes.
pub(super) fn entries(lines: &[String]) -> Option<Vec<Entry>> {
    lines.iter().map(|line| Entry::from_line(line, 0)).collect()
}

/// Whether a text is a place of a pack: parts with slashes between them, none of which is empty or `..`, and
/// the first of which, a base, does not start with a dot. So it always points below a packs folder, and not
/// to mu's own data there.
pub(super) fn is_place(text: &str) -> bool {
    let leads_on = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    let is_foreign = |byte: &u8| *byte == 0 || cfg!(windows) && matches!(byte, b'\\' | b':');
    // By bytes, because each place of the record is checked in every run.
    let bytes = text.as_bytes();
    bytes.contains(&b'/')
        && !bytes.starts_with(b".")
        && bytes.split(|byte| *byte == b'/').all(leads_on)
        && !bytes.iter().any(is_foreign)
}

impl PacksFolder {
    /// What mu installed here; empty if unknown.
    pub fn state(&self) -> State {
        self.known_state().unwrap_or_default()
    }

    /// The record of it. One that cannot be read, such as another user's or a newer mu's, is as good as none.
    pub(super) fn known_state(&self) -> Option<State> {
        State::parse(&fs::read_text_if_there(&self.state_path()?).ok()??)
    }

    pub(super) fn write_state(&self, state: &State) -> Result<(), FileError> {
        // The state of an earlier mu, or a forged one from a checkout.
        fs::remove_file(&self.own_folder().join("state.json"))?;
        let Some(path) = self.state_path() else { return Ok(()) };
        let written = crate::env::create_cache(&self.cache)
            .and_then(|()| fs::write_atomic(&path, state.print(&self.folder).as_bytes()));
        match written {
            // Without a record, the next run hashes the packs, as it does in a fresh checkout.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied
                ) =>
            {
                Ok(())
            }
            written => written,
        }
    }

    /// The file of this folder's state; `None` if the folder does not exist.
    pub(super) fn state_path(&self) -> Option<PathBuf> {
        self.path_in_cache(FOLDER)
    }

    /// The file in a folder of the cache that is about this checkout; `None` if the checkout does not exist.
    pub(crate) fn path_in_cache(&self, folder: &str) -> Option<PathBuf> {
        let root = self.root.as_deref().unwrap_or(&self.folder);
        let name = mu_provider::FileDigest::from_bytes(identity(root)?);
        Some(self.cache.join(folder).join(format!("{name}.json")))
    }
}

/// The identity of a folder: its path, and its file system identity. File numbers are reused, so the creation
/// time counts as well, if the file system has it.
fn identity(folder: &Path) -> Option<[u8; 32]> {
    let folder = fs::canonicalize(folder).ok()?;
    let metadata = fs::metadata(&folder).ok()?;
    let mut hash = Sha256::new();
    hash.update(folder.as_os_str().as_encoded_bytes());
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        hash.update([0]);
        hash.update(metadata.dev().to_le_bytes());
        hash.update(metadata.ino().to_le_bytes());
    }
    let made = metadata.created().ok();
    let since = made.and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    hash.update(since.unwrap_or_default().as_nanos().to_le_bytes());
    Some(hash.finalize().into())
}

/// Removes the states of packs folders that no longer exist.
pub fn remove_orphans(cache: &Path) -> Result<(), FileError> {
    #[derive(Deserialize)]
    struct Folder {
        folder: PathBuf,
    }
    for entry in fs::entries_if_there(&cache.join(FOLDER))? {
        let text = fs::read_text(&entry.path()).unwrap_or_default();
        let is_there = serde_json::from_str(&text).is_ok_and(|Folder { folder }| folder.is_dir());
        if !is_there {
            fs::remove_file(&entry.path())?;
        }
    }
    Ok(())
}

/// A pack that should be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPack {
    /// Its place below the packs folder: `hub.mu.com/aws/ec2`.
    pub place: String,
    /// The package's id.
    pub id: String,
    /// Its version, as the lock writes it.
    pub version: String,
    /// The digest of its content.
    pub digest: Digest,
    /// The digest of its content together with what `mu build` made of it; that is as good.
    pub built: Option<Digest>,
}

impl WantedPack {
    /// Whether this is its content.
    pub fn accepts(&self, digest: &Digest) -> bool {
        self.digest == *digest || self.built.as_ref() == Some(digest)
    }

    /// Its possible contents.
    pub fn possible_digests(&self) -> impl Iterator<Item = Digest> {
        std::iter::once(self.digest).chain(self.built)
    }
}

// A place is a path with slashes, and places come sorted as texts. All below `a/b` begin with `a/b/`, so they stand together, and
// one look at the first that is not before `a/b/` tells whether there is any. `a/b` itself need not stand right before them:
//
//     a/b          <- first_from("a/b")
//     a/b-c           `-` and `.` sort before `/`
//     a/b/d        <- first_from("a/b/")
//     a/b/e
//     a/bc
//
// So it takes two looks: one for the place, and one for what is below it.

/// Whether a sorted set of places contains `place` or one below it; `first_from` returns the set's first that
/// is not before its argument.
pub(super) fn holds<'places>(
    first_from: impl Fn(&str) -> Option<&'places str>,
    place: &str,
) -> bool {
    let below = format!("{place}/");
    first_from(place) == Some(place)
        || first_from(&below).is_some_and(|first| first.starts_with(&below))
}

/// Everything that is not before `place`, as a range of a sorted set.
pub(super) fn from(place: &str) -> (Bound<&str>, Bound<&str>) {
    (Bound::Included(place), Bound::Unbounded)
}

/// The first of the places, which are sorted, that is not before `place`.
pub(super) fn first_from<'wanted>(
    wanted: &'wanted [WantedPack],
    place: &str,
) -> Option<&'wanted str> {
    let start = wanted.partition_point(|other| other.place.as_str() < place);
    wanted.get(start).map(|other| other.place.as_str())
}

/// The folders above a place, from the outside to the inside.
pub(super) fn folders_above(place: &str) -> impl Iterator<Item = &str> {
    place.match_indices('/').map(|(end, _)| &place[..end])
}

/// Whether folder `inner` is somewhere below `outer` (both slash-separated).
pub(super) fn is_below(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}
