//! Markers of writes in progress, so that the next write completes an interrupted one.
//!
//! A marker names the package whose index is about to change. It is written before the index changes, and
//! removed once all derived files are written.

use crate::HubError;
use crate::files::{self, Files};

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
