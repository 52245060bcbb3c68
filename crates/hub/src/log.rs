//! What is written down of each change: before it, a marker, so that the next write completes an interrupted one, and after it a
//! line of the log, which says which package's index it concerned.
//!
//! A marker names the package whose index is about to change. It is written before the index changes, and removed once all
//! derived files are written.
//!
//! The line of a change is appended after its index file is written. Then `hub.json` gets the line's number as the generation. So
//! a reader that reads a generation, and index files after it, has seen every change up to that line of the log.

use mu_provider_hub::wire::LOG_LINES;
use sha2::{Digest as _, Sha256};

use crate::archive::hex;
use crate::files::Files;
use crate::root::Root;
use crate::{HubError, files, names};

/// Appends a line for each name; returns the number of the last.
pub(crate) async fn append_log_lines(
    files: &Files,
    root: &Root,
    names: &[String],
) -> Result<u64, HubError> {
    let mut file = root.generation() / LOG_LINES;
    let mut last = root.generation();
    for name in names {
        loop {
            let path = path(root, file);
            let number = files
                .change(&path, async |bytes| {
                    let bytes = bytes.map(|bytes| bytes.as_ref()).unwrap_or_default();
                    let mut text = String::from_utf8(bytes.to_vec())
                        .map_err(|_| files.broken(&path, "it is not UTF-8"))?;
                    if !text.is_empty() && !text.ends_with('\n') {
                        text.push('\n');
                    }
                    let count = text.lines().count() as u64;
                    let number = file * LOG_LINES + count + 1;
                    // A log that lost lines must not reuse their numbers for new changes. A gap in the log
                    // makes readers ask for every file again.
                    if count >= LOG_LINES || number <= root.generation() {
                        return Ok((None, None));
                    }
                    text.push_str(name);
                    text.push('\n');
                    Ok((Some(text.into()), Some(number)))
                })
                .await?;
            match number {
                Some(number) => {
                    last = number;
                    break;
                }
                None => file += 1,
            }
        }
    }
    Ok(last)
}

/// Starts a new file of the log; returns the number of its first line.
///
/// This leaves a gap, so that readers ask for every index file again, whichever generation they have.
pub(crate) async fn begin_anew(files: &Files, root: &Root) -> Result<u64, HubError> {
    let mut file = root.generation() / LOG_LINES + 1;
    while !files.replace(&path(root, file), &None, "-\n".into()).await? {
        file += 1;
    }
    Ok(file * LOG_LINES + 1)
}

/// A generation that is higher than that of every line in the log.
pub(crate) async fn behind(files: &Files, root: &Root) -> Result<u64, HubError> {
    let folder = root.log_folder();
    let number = |path: &str| -> Option<u64> {
        path.strip_prefix(&folder)?.strip_suffix(".txt")?.parse().ok()
    };
    let listed = files.list(&folder).await?;
    let files = listed.iter().filter_map(|file| number(&file.path));
    Ok(files.max().map_or(0, |last| last.saturating_add(1).saturating_mul(LOG_LINES)))
}

/// Whether a line of the log speaks of what vouches for a version, not of an index file.
pub(crate) fn is_about_evidence(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(name, version)| {
        names::check_name(name).is_ok() && !version.contains(char::is_whitespace)
    })
}

/// The names that changed after generation `after`, up to `last`; `None` if the log does not know.
pub async fn names(
    files: &Files,
    root: &Root,
    after: u64,
    last: u64,
) -> Result<Option<Vec<String>>, HubError> {
    let mut names = Vec::new();
    if after >= last {
        return Ok(Some(names));
    }
    let mut next = after + 1;
    while next <= last {
        let file = (next - 1) / LOG_LINES;
        let Some(read) = files.read(&path(root, file)).await? else { return Ok(None) };
        let Ok(text) = std::str::from_utf8(&read.bytes) else { return Ok(None) };
        for name in text.lines().skip(usize::try_from((next - 1) % LOG_LINES).unwrap_or(usize::MAX))
        {
            if next > last || (next - 1) / LOG_LINES != file {
                break;
            }
            names.push(name.to_owned());
            next += 1;
        }
        if next <= last && (next - 1) / LOG_LINES == file {
            return Ok(None);
        }
    }
    names.retain(|name| !is_about_evidence(name));
    names.sort_unstable();
    names.dedup();
    Ok(Some(names))
}

/// The SHA-256 of the lines of a log file up to that of a generation, as hexadecimal digits; `None` if the log does not have it. A hub that
/// was restored from a backup counts the same numbers again, for other changes.
pub async fn digest_up_to(
    files: &Files,
    root: &Root,
    generation: u64,
) -> Result<Option<String>, HubError> {
    let Some(before) = generation.checked_sub(1) else { return Ok(Some(String::new())) };
    let Some(read) = files.read(&path(root, before / LOG_LINES)).await? else { return Ok(None) };
    let last = usize::try_from(before % LOG_LINES).expect("a file has 1,000 lines");
    let mut lines = read.bytes.split_inclusive(|byte| *byte == b'\n');
    let mut hasher = Sha256::new();
    for _ in 0..=last {
        let Some(line) = lines.next() else { return Ok(None) };
        hasher.update(line);
    }
    Ok(Some(hex(&hasher.finalize())))
}

/// The wanted names that changed most recently, the newest first: at most `count`, from at most two files.
pub async fn newest(
    files: &Files,
    root: &Root,
    count: usize,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<String>, HubError> {
    let mut names: Vec<String> = Vec::new();
    let last = root.generation().saturating_sub(1);
    for file in [Some(last / LOG_LINES), (last / LOG_LINES).checked_sub(1)].into_iter().flatten() {
        let Some(read) = files.read(&path(root, file)).await? else { continue };
        let text = String::from_utf8_lossy(&read.bytes);
        let lines: Vec<&str> = text.lines().collect();
        for name in lines.into_iter().rev() {
            // A line without a name is only there for its number.
            let is_name = name != "-" && !is_about_evidence(name);
            let is_new = is_name && !names.iter().any(|known| known == name);
            if names.len() < count && is_new && is_wanted(name) {
                names.push(name.to_owned());
            }
        }
    }
    Ok(names)
}

fn path(root: &Root, file: u64) -> String {
    format!("{}{file:06}.txt", root.log_folder())
}

/// The folder of the markers.
pub(crate) const FOLDER: &str = "pending/";

/// The marker of one write.
#[derive(Debug)]
pub(crate) struct Marker {
    pub(crate) path: String,
}

/// The markers that other writers left.
#[derive(Debug, Default)]
pub(crate) struct BrokenOff {
    /// The packages whose changes were not completed.
    pub(crate) names: Vec<String>,
    markers: Vec<String>,
}

impl Marker {
    /// Records that the index of `name` is about to change.
    pub(crate) async fn set(files: &Files, name: &str) -> Result<Self, HubError> {
        let path = format!("{FOLDER}{:016x}{:016x}.txt", files::random(), files::random());
        files.write(&path, format!("{name}\n").into()).await?;
        Ok(Self { path })
    }

    /// Records that everything is written.
    pub(crate) async fn clear(self, files: &Files) -> Result<(), HubError> {
        files.remove(&self.path).await
    }

    /// Finds interrupted writes of others.
    pub(crate) async fn find_interrupted_writes(
        &self,
        files: &Files,
    ) -> Result<BrokenOff, HubError> {
        let found = files.list(FOLDER).await?;
        // Both times come from the store, so the clocks of writers need not agree.
        let own = found.iter().find(|file| file.path == self.path);
        let Some(now) = own.map(|file| file.modified) else { return Ok(BrokenOff::default()) };
        let mut broken_off = BrokenOff::default();
        for file in &found {
            let age = now.duration_since(file.modified).unwrap_or_default();
            if file.path != self.path && age >= files.broken_off_after {
                broken_off.add(files, &file.path).await?;
            }
        }
        Ok(broken_off)
    }
}

impl BrokenOff {
    /// All writes that are in progress or interrupted.
    pub(crate) async fn all(files: &Files) -> Result<Self, HubError> {
        let mut all = Self::default();
        for file in files.list(FOLDER).await? {
            all.add(files, &file.path).await?;
        }
        Ok(all)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.markers.is_empty()
    }

    /// Records that these changes are complete now.
    pub(crate) async fn clear(self, files: &Files) -> Result<(), HubError> {
        for path in self.markers {
            files.remove(&path).await?;
        }
        Ok(())
    }

    async fn add(&mut self, files: &Files, path: &str) -> Result<(), HubError> {
        // If the marker has gone meanwhile, somebody else completed the change.
        if let Some(read) = files.read(path).await? {
            let text = String::from_utf8_lossy(&read.bytes);
            self.names.extend(text.lines().map(str::to_owned));
            self.markers.push(path.to_owned());
        }
        Ok(())
    }
}
