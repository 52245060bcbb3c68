//! Repositories of KUDO operators: what is different from those of charts.
//!
//! Their index does not say what an operator depends on. So the archives of the versions that are looked at are downloaded while
//! versions are chosen: the `operator.yaml` in each is stored by the digest of the archive, and the archive itself is kept until
//! its files are needed. Archives have no folder at their top.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::Mutex;

use mu_archive::remembered::digest;
use mu_archive::{Archives, Held, Looked, Packing};
use mu_formats::kudo::{self, OPERATOR};
use mu_provider::fs;
use mu_provider::threads::lock;
use mu_provider::{ErrorKind, Location, Progress, ProviderError, Release};

use crate::RepositoryProvider;

/// How many bytes of archives are kept until they are unpacked.
const MOST_KEPT: u64 = 64 << 20;

/// What is known about operators.
#[derive(Debug)]
pub(crate) struct Operators {
    /// A folder for their `operator.yaml`s.
    texts: PathBuf,
    kept: Mutex<Kept>,
}

impl Operators {
    pub(crate) fn new(texts: PathBuf) -> Self {
        Self { texts, kept: Mutex::default() }
    }

    /// Whether the archive of a release is kept.
    pub(crate) fn has(&self, release: &Release) -> bool {
        let archive = release.archive.as_ref();
        archive.is_some_and(|archive| lock(&self.kept).archives.contains_key(archive))
    }

    /// The archive of a release, if it is kept.
    pub(crate) fn take(&self, release: &Release) -> Option<Held> {
        lock(&self.kept).take(release.archive.as_deref())
    }
}

/// Archives that were looked into, by their digests.
#[derive(Debug, Default)]
struct Kept {
    archives: HashMap<String, Held>,
    bytes: u64,
}

impl Kept {
    fn keep(&mut self, held: Held) {
        let is_small = self.bytes.saturating_add(held.size) <= MOST_KEPT;
        // Two threads may look into the same archive at once.
        if is_small && let Entry::Vacant(entry) = self.archives.entry(held.digest.to_string()) {
            self.bytes += held.size;
            entry.insert(held);
        }
    }

    fn take(&mut self, digest: Option<&str>) -> Option<Held> {
        let held = self.archives.remove(digest?)?;
        self.bytes -= held.size;
        Some(held)
    }
}

impl RepositoryProvider {
    /// Downloads the archive from the first of its URLs that has it, or of those that the index has now.
    pub(crate) fn operator(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Held, ProviderError> {
        self.first(location, release, progress, |url| {
            let place = Archives::place(location, url)?;
            let wanted = |path: &str| path == OPERATOR;
            let looked =
                self.archives.look(&place, Packing::Tar, release, None, &wanted, progress)?;
            Ok(match looked {
                Looked::Held(held) => Some(*held),
                Looked::Absent | Looked::Unchanged { .. } => None,
            })
        })
    }

    /// The text of the `operator.yaml` in the archive of a release.
    pub(crate) fn text(
        &self,
        operators: &Operators,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<String, ProviderError> {
        let stored =
            |archive: &str| operators.texts.join(format!("{}.yaml", digest(archive.as_bytes())));
        let stored = release.archive.as_deref().map(stored);
        if let Some(stored) = &stored
            && let Ok(Some(text)) = fs::read_text_if_there(stored)
        {
            return Ok(text);
        }
        let mut held = self.operator(location, release, progress)?;
        let text = held.files.remove(OPERATOR).and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.filter(|text| kudo::is_operator(text)).ok_or_else(|| {
            let version = release.full_version();
            let what = format!("the archive of `{}` {version}", location.describe());
            let text = format!("{what} has no `{OPERATOR}` of an operator at its top");
            ProviderError::new(ErrorKind::Manifest, text)
        })?;
        if let Some(stored) = &stored {
            // It only saves a download: without it, mu goes on.
            let _ = fs::create_folder(&operators.texts)
                .and_then(|()| fs::write_atomic(stored, text.as_bytes()));
        }
        lock(&operators.kept).keep(held);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use mu_archive::Place;
    use mu_provider::http::{Http, HttpOptions};
    use mu_provider::{SafeUrl, Silent};
    use mu_testing::{KudoOperator, KudoRepository};

    use super::*;

    #[test]
    fn an_archive_that_two_threads_look_into_counts_once() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let operator = KudoOperator::new("kafka", "1.3.0");
        KudoRepository::new(folder.path(), "").add(&operator);
        let http = Http::new(HttpOptions::default());
        let archives = Archives::new(http, folder.path().join("downloads"), 1 << 20);
        let url = format!("file://{}/{}", folder.path().display(), operator.file());
        let url = SafeUrl::parse(&url).expect("is a URL");
        let place = Place { url, insecure: false, guard: None };
        let (release, wanted) = (Release::default(), |path: &str| path == OPERATOR);
        let look = || match archives.look(&place, Packing::Tar, &release, None, &wanted, &Silent) {
            Ok(Looked::Held(held)) => *held,
            other => panic!("it is there: {other:?}"),
        };
        let mut kept = Kept::default();
        let held = look();
        let (size, digest) = (held.size, held.digest.to_string());
        kept.keep(held);
        kept.keep(look());
        assert_eq!(kept.bytes, size);
        assert!(kept.take(Some(&digest)).is_some());
        assert_eq!(kept.bytes, 0);
    }
}
