//! Finds the places of a release's archive, and uses the first good one.
//!
//! A release from a lock has little more than version and digest. Usually that is enough to guess the URL
//! without another request. Only if nothing is there, the hub's own files are read.

use std::cell::Cell;
use std::sync::Arc;

use mu_archive::{Archive, ArchiveError, Place};
use mu_provider::{ErrorKind, Listing, Location, Progress, ProviderError, Release, SafeUrl};

use crate::HubProvider;
use crate::hub::KnownHub;
use crate::root::{Memory, Root};

/// What to do with an archive that has the expected bytes.
type Take<'call> = dyn FnMut(Archive) -> Result<(), ArchiveError> + 'call;

/// Places that were tried in vain, and why.
#[derive(Default)]
struct Tried {
    urls: Vec<SafeUrl>,
    failure: Option<ProviderError>,
    /// Whether the index was read now, and lists the version.
    is_listed: bool,
    /// Whether reading the hub needs credentials. If not, 403 most likely means that a file is missing.
    is_closed: bool,
    /// Whether a server answered 403 while reading the hub seemed to need no credentials.
    is_hidden: Cell<bool>,
}

impl HubProvider {
    pub(crate) fn fetch_release(
        &self,
        location: &Location,
        release: &Release,
        take: &mut Take<'_>,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let mut tried = Tried::default();
        let guess = self.guess(location, release)?;
        if self.fetch_first(location, &guess, release, take, &mut tried, progress)? {
            return Ok(());
        }
        if !tried.may_be_elsewhere() {
            return Err(tried.error(location, release));
        }
        match self.fetch_elsewhere(location, release, take, &mut tried, progress) {
            Ok(true) => Ok(()),
            // The problem with the archive is more helpful than that with the index.
            Err(error) if tried.failure.is_none() => Err(error),
            _ => Err(tried.error(location, release)),
        }
    }

    /// The most likely place of the archive, from what is known already.
    pub(crate) fn guess(
        &self,
        location: &Location,
        release: &Release,
    ) -> Result<Vec<SafeUrl>, ProviderError> {
        let url = location.root.with_trailing_slash();
        if url.scheme() == "file" && self.hubs.known(&url).is_none() {
            return Ok(Vec::new());
        }
        self.known_or_remembered(&url).archives(&location.path, release)
    }

    /// A hub that has been read already; else what it was when it was read last.
    pub(crate) fn known_or_remembered(&self, url: &SafeUrl) -> Arc<KnownHub> {
        self.hubs.known_or_usual(url, || {
            Root::remembered(url.clone(), &Memory::new(&self.archives.downloads, url))
        })
    }

    /// Finds the place of the archive in the hub's own files.
    fn fetch_elsewhere(
        &self,
        location: &Location,
        release: &Release,
        take: &mut Take<'_>,
        tried: &mut Tried,
        progress: &dyn Progress,
    ) -> Result<bool, ProviderError> {
        let root =
            self.root(&location.root.with_trailing_slash(), &self.asking(location, progress))?;
        tried.is_closed = !self.is_open(&root);
        if tried.is_closed && tried.is_hidden.take() {
            // So it was a refusal after all.
            tried.urls.clear();
        }
        let places = root.archives(&location.path, release)?;
        if self.fetch_first(location, &places, release, take, tried, progress)? {
            return Ok(true);
        }
        if !tried.may_be_elsewhere() {
            return Ok(false);
        }
        let Some(listed) = self.listed(location, release, progress)? else { return Ok(false) };
        tried.is_listed = true;
        let listed =
            Release { archive: release.archive.clone().or(listed.archive.clone()), ..listed };
        let places = root.archives(&location.path, &listed)?;
        self.fetch_first(location, &places, &listed, take, tried, progress)
    }

    /// Takes the first archive of `places` that is there and whole.
    fn fetch_first(
        &self,
        location: &Location,
        places: &[SafeUrl],
        release: &Release,
        take: &mut Take<'_>,
        tried: &mut Tried,
        progress: &dyn Progress,
    ) -> Result<bool, ProviderError> {
        let wanted = self.archives.expected(release, || {
            let (place, version) = (location.describe(), &release.version);
            format!("the archive digest of `{place}` {version} cannot be read")
        })?;
        for url in places {
            if tried.urls.contains(url) {
                continue;
            }
            tried.urls.push(url.clone());
            let place = Place { url: url.clone(), insecure: location.insecure, guard: None };
            let hides = (!tried.is_closed).then_some(&tried.is_hidden);
            match self.archives.download(&place, wanted, hides, progress) {
                Ok(archive) => {
                    // The bytes are the expected ones, so another place would not help.
                    take(archive).map_err(|error| error.at(&url.to_string()))?;
                    if let Some(failure) = &tried.failure {
                        progress.warning(&format!("{failure}; took it from `{url}`"));
                    }
                    return Ok(true);
                }
                Err(error) => match error.kind() {
                    ErrorKind::NotFound => {}
                    // The problem is on this machine, so another place would not help.
                    ErrorKind::Io | ErrorKind::Offline => return Err(error),
                    _ => {
                        tried.failure.get_or_insert(error);
                    }
                },
            }
        }
        Ok(false)
    }

    /// The index entry of a release of which a lock has little.
    fn listed(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Release>, ProviderError> {
        let Listing::Found(found) = self.list_alone(location, None, progress)? else {
            return Ok(None);
        };
        let mut same_version = None;
        for listed in found.releases() {
            if release.archive.is_some() && listed.archive == release.archive {
                return Ok(Some(listed));
            }
            if release.archive.is_none() && listed.full_version() == release.full_version() {
                same_version = Some(listed);
            }
        }
        Ok(same_version)
    }
}

impl Tried {
    /// Whether the index may name another place: so far, nothing was found, or another archive.
    fn may_be_elsewhere(&self) -> bool {
        self.failure.as_ref().is_none_or(|failure| failure.kind() == ErrorKind::Integrity)
    }

    fn error(self, location: &Location, release: &Release) -> ProviderError {
        if let Some(failure) = self.failure {
            return failure;
        }
        let urls: Vec<String> = self.urls.iter().map(|url| format!("`{url}`")).collect();
        let text = format!(
            "there is no archive of `{}` {} at {}",
            location.describe(),
            release.version,
            urls.join(" or ")
        );
        let error = ProviderError::new(ErrorKind::NotFound, text);
        match self.urls.first().filter(|_| self.is_hidden.get()) {
            None if self.is_listed => error.hint(
                "its index lists that version, so the hub is incomplete: ask its operator to run `mu hub check`",
            ),
            None => error,
            Some(url) => error.hint(format!(
                "the server answered 403: the archive does not exist, or {}",
                crate::needs(url)
            )),
        }
    }
}
