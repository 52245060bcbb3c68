//! Registries that keep no lists of referrers, from one run to the next.
//!
//! Most registries have never heard of such lists, and every run would ask them again. A registry may learn it, so after a
//! day it is asked once more. What is remembered only saves a request: nothing is found that way or missed, because a version
//! without an entry in a list is read from its own manifest.

use std::path::{Path, PathBuf};

use mu_provider::fs;
use mu_provider_hub::remembered::digest;

/// For how many seconds a registry is not asked again.
const DAY: i64 = 24 * 60 * 60;

/// Where to remember registries that keep no lists of referrers, and what time it is.
#[derive(Debug, Clone, Default)]
pub struct WithoutLists {
    /// A folder with a file for each registry; created when needed. Without one, nothing is remembered.
    pub folder: Option<PathBuf>,
    /// The time, in seconds since 1970.
    pub now: i64,
}

impl WithoutLists {
    fn file(&self, host: &str) -> Option<PathBuf> {
        let folder = self.folder.as_deref()?;
        Some(folder.join(format!("{}.without-lists", digest(host.as_bytes()))))
    }

    /// Whether a registry was found to keep no lists less than a day ago.
    pub(crate) fn has(&self, host: &str) -> bool {
        let said = self.file(host).and_then(|file| fs::read_text_if_there(&file).ok().flatten());
        let since = said.and_then(|text| text.trim().parse::<i64>().ok());
        // A time to come is that of a clock that was wrong.
        since.is_some_and(|since| (0..DAY).contains(&self.now.saturating_sub(since)))
    }

    /// Remembers that a registry keeps no lists.
    pub(crate) fn add(&self, host: &str) {
        let Some(file) = self.file(host) else { return };
        if fs::create_folder(file.parent().unwrap_or(Path::new(""))).is_ok() {
            let _ = fs::write_atomic(&file, format!("{}\n", self.now).as_bytes());
        }
    }

    /// Forgets it, because the registry has shown that it keeps them.
    pub(crate) fn remove(&self, host: &str) {
        if let Some(file) = self.file(host) {
            let _ = fs::remove_file(&file);
        }
    }
}
