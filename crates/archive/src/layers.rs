//! The layers of a container image, as far as some folders of it are wanted.
//!
//! Layers are read from the last to the first. What a layer has hides what those before it have at the same place, and what it
//! says was removed (the `.wh.` files of the OCI image specification, section "Whiteouts") is removed from those. Everything
//! outside of the wanted folders is passed over, whatever it is.

use std::collections::HashSet;

use mu_provider::Limits;

/// How many bytes of other folders are passed over, in all layers together.
const MOST_PASSED_OVER: u64 = 8 << 30;

/// What the name of an entry begins with that says what was removed.
const WHITEOUT: &[u8] = b".wh.";

/// The entry that says that its whole folder was removed before this layer.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// What the layers that were read so far have, and have removed.
#[derive(Debug)]
pub struct Layers {
    folders: Vec<String>,
    /// Files of layers that were read, and what these have removed.
    hidden: HashSet<Vec<u8>>,
    /// Files of the layer that is being read, and what it has removed.
    now: HashSet<Vec<u8>>,
    left: u64,
    /// How many bytes of the layer that is being read may be passed over.
    left_of_layer: u64,
}

impl Layers {
    /// Takes what is in one of these folders of the image.
    pub fn new(folders: impl IntoIterator<Item = String>) -> Self {
        let folders = folders.into_iter().map(|folder| format!("{}/", folder.trim_matches('/')));
        let (hidden, now) = (HashSet::new(), HashSet::new());
        Self { folders: folders.collect(), hidden, now, left: MOST_PASSED_OVER, left_of_layer: 0 }
    }

    /// Begins a layer of `size` bytes.
    pub(crate) fn begin_layer(&mut self, size: u64) {
        self.left_of_layer = Limits::default().most_from(size);
    }

    /// Ends a layer: what it has hides what is in the next one, which comes before it in the image.
    pub(crate) fn end_layer(&mut self) {
        self.hidden.extend(self.now.drain());
    }

    /// The path of an entry inside of the image, if it is wanted; takes note of what it hides.
    pub(crate) fn wanted<'path>(&mut self, path: &'path [u8]) -> Option<&'path [u8]> {
        let path = path.strip_prefix(b"./").unwrap_or(path);
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let is_in = |folder: &String| path.starts_with(folder.as_bytes());
        if !self.folders.iter().any(is_in) || path.ends_with(b"/") {
            return None;
        }
        let slash = path.iter().rposition(|byte| *byte == b'/')?;
        let (folder, leaf) = path.split_at_checked(slash)?;
        let leaf = leaf.strip_prefix(b"/").unwrap_or(leaf);
        if leaf == OPAQUE {
            self.now.insert(folder.to_vec());
            return None;
        }
        if let Some(removed) = leaf.strip_prefix(WHITEOUT) {
            self.now.insert([folder, b"/", removed].concat());
            return None;
        }
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut above = ends.chain([path.len()]).filter_map(|end| path.get(..end));
        if above.any(|above| self.hidden.contains(above)) {
            return None;
        }
        self.now.insert(path.to_vec());
        Some(path)
    }

    /// Accounts for content that is passed over; `false` if it is too much.
    pub(crate) fn may_pass_over(&mut self, size: u64) -> bool {
        let left = self.left.min(self.left_of_layer).checked_sub(size);
        self.left = self.left.saturating_sub(size);
        self.left_of_layer = self.left_of_layer.saturating_sub(size);
        left.is_some()
    }
}
