//! A package's readme, out of the archive of the version that stands for it.
//!
//! Archives are hostile: one is unpacked by the same reader as everybody's, within narrow limits, and a few at a
//! time. What came of it is kept, as an archive never changes. `render.rs` makes HTML of it.

mod render;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mu_provider::Limits;
use tokio::sync::Semaphore;

use crate::HubError;
use crate::archive;
use crate::files::Files;
use crate::lines::Line;
use crate::root::Root;
use crate::staging::Staging;
use mu_provider::threads::lock;

/// The largest archive that is unpacked for a readme, in bytes.
const LARGEST_ARCHIVE: u64 = 32 << 20;

/// The most that may come out of it, in bytes.
const LARGEST_TREE: u64 = 128 << 20;

/// How many files may come out of it.
const MOST_FILES: usize = 20_000;

/// The longest readme, in bytes.
const LONGEST: u64 = 256 << 10;

/// How many archives are unpacked at the same time.
const AT_ONCE: usize = 2;

/// How much is kept, in bytes of readmes.
const KEPT: usize = 16 << 20;

/// What a page shows as the readme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Readme {
    /// HTML that can do no harm.
    Html(String),
    /// Plain text.
    Text(String),
    /// The package has none, or none that can be read.
    None,
    /// It, or the archive, is too large to be shown.
    TooLarge,
}

/// The readmes that were shown.
#[derive(Debug)]
pub(in crate::serve) struct Readmes {
    kept: Mutex<Kept>,
    turns: Semaphore,
}

#[derive(Debug, Default)]
struct Kept {
    by_archive: HashMap<String, Arc<Readme>>,
    /// The oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl Default for Readmes {
    fn default() -> Self {
        Self { kept: Mutex::default(), turns: Semaphore::new(AT_ONCE) }
    }
}

impl Readmes {
    /// The readme of a version.
    pub(super) async fn of(
        &self,
        files: &Files,
        root: &Root,
        line: &Line,
    ) -> Result<Arc<Readme>, HubError> {
        let path = place(root, line);
        let key = format!("{path} {}", line.text("archive").unwrap_or_default());
        if let Some(known) = self.find(&key) {
            return Ok(known);
        }
        let Ok(_turn) = self.turns.acquire().await else { return Ok(Arc::new(Readme::None)) };
        // Somebody else may have asked for the same meanwhile.
        if let Some(known) = self.find(&key) {
            return Ok(known);
        }
        let readme = Arc::new(read(files, &path, line).await?);
        self.keep(key, &readme);
        Ok(readme)
    }

    fn find(&self, key: &str) -> Option<Arc<Readme>> {
        lock(&self.kept).by_archive.get(key).cloned()
    }

    fn keep(&self, key: String, readme: &Arc<Readme>) {
        let mut kept = lock(&self.kept);
        if kept.by_archive.contains_key(&key) {
            return;
        }
        kept.bytes += weight(&key, readme);
        kept.by_archive.insert(key.clone(), Arc::clone(readme));
        kept.order.push_back(key);
        while kept.bytes > KEPT {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(readme) = kept.by_archive.remove(&oldest) {
                kept.bytes -= weight(&oldest, &readme);
            }
        }
    }
}

/// What a readme takes in memory, in bytes.
fn weight(key: &str, readme: &Readme) -> usize {
    let text = match readme {
        Readme::Html(text) | Readme::Text(text) => text.len(),
        Readme::None | Readme::TooLarge => 0,
    };
    text + 2 * key.len() + 128
}

/// Where the archive of a version is, in this hub.
fn place(root: &Root, line: &Line) -> String {
    let told = line.texts("urls").find(|url| !url.contains("://")).map(str::to_owned);
    told.unwrap_or_else(|| format!("{}{}", root.packs_folder(), line.usual_archive()))
}

async fn read(files: &Files, path: &str, line: &Line) -> Result<Readme, HubError> {
    let Some(meta) = files.head(path).await? else { return Ok(Readme::None) };
    if meta.size > LARGEST_ARCHIVE {
        return Ok(Readme::TooLarge);
    }
    let Some(read) = files.read(path).await? else { return Ok(Readme::None) };
    let (staging, line) = (files.staging(), line.clone());
    let unpacked = tokio::task::spawn_blocking(move || unpack(&staging, &read.bytes, &line)).await;
    Ok(unpacked.unwrap_or(Readme::None))
}

/// The readme in an archive; none in one that is refused.
fn unpack(staging: &Staging, bytes: &Bytes, line: &Line) -> Readme {
    let expected = line.text("archive");
    if expected.is_some_and(|expected| expected != archive::digest(bytes).to_string()) {
        return Readme::None;
    }
    let limits = Limits { bytes: LARGEST_TREE, entries: MOST_FILES, ..Limits::default() };
    let Ok(unpacked) = archive::unpack_within(staging, bytes, &line.describe(), limits) else {
        return Readme::None;
    };
    let Some(path) = unpacked.readme(line) else { return Readme::None };
    let is_markdown =
        [".md", ".markdown"].iter().any(|end| path.to_ascii_lowercase().ends_with(end));
    let long =
        unpacked.tree.entries().iter().any(|entry| entry.path == path && entry.size > LONGEST);
    match unpacked.read(path, LONGEST) {
        _ if long => Readme::TooLarge,
        Ok(Some(text)) if text.trim().is_empty() => Readme::None,
        Ok(Some(text)) if is_markdown => {
            render::markdown(&text).map_or(Readme::Text(text), Readme::Html)
        }
        Ok(Some(text)) => Readme::Text(text),
        Ok(None) | Err(_) => Readme::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_an_end() {
        let readmes = Readmes::default();
        let large = Arc::new(Readme::Text("x".repeat(KEPT / 4)));
        for number in 0..10 {
            readmes.keep(format!("{number}"), &large);
            readmes.keep(format!("{number}"), &Arc::clone(&large));
        }
        let kept = readmes.kept.lock().expect("is whole");
        assert!(kept.bytes <= KEPT, "{}", kept.bytes);
        assert_eq!(kept.by_archive.len(), kept.order.len());
        assert!(kept.by_archive.contains_key("9") && !kept.by_archive.contains_key("0"));
    }
}
