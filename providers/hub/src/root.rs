//! The root of a hub: its `hub.json`, read once for each hub, and the places that it names. The last one of each hub is stored
//! between runs, so that an unchanged one is not sent again.
//!
//! What is stored only saves bytes: if it cannot be read or written, mu continues without it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mu_archive::below;
use mu_archive::document::{Asking, Document, DocumentAnswer, Validator, statement_beside};
use mu_provider::http::{Http, because_of_web_page};
use mu_provider::{
    ErrorKind, EvidenceAbout, FileDigest, FoundEvidence, FoundPiece, LARGEST_EVIDENCE, Location,
    Progress, ProviderError, Release, SafeUrl, evidence_lines, evidence_path, fs, without_secrets,
};
use sha2::{Digest as _, Sha256};

use crate::index::not_json;
use crate::wire::{self, HUB_VERSION, HubFile};

/// The longest `hub.json`, in bytes.
pub(crate) const LONGEST_HUB_FILE: u64 = 1 << 20;

/// How many of the places for an archive in an index line are tried.
const MOST_PLACES: usize = 10;

/// The longest path of an archive that is not checked like any other, in bytes.
const LONGEST_USUAL: usize = 1_000;

/// A hub whose `hub.json` was looked for.
#[derive(Debug)]
pub(crate) struct Root {
    /// The folder with `hub.json`.
    pub(crate) url: SafeUrl,
    /// Its content, or the defaults if there is none.
    pub(crate) file: HubFile,
    /// The folder of its archives, once it was needed.
    packs: OnceLock<SafeUrl>,
    /// Whether there is one.
    pub(crate) has_file: bool,
    /// For how long it stays fresh.
    pub(crate) max_age: Option<u32>,
}

impl Root {
    /// A hub with everything in the usual places.
    pub(crate) fn usual(url: SafeUrl) -> Self {
        Self {
            url,
            file: HubFile::default(),
            packs: OnceLock::new(),
            has_file: false,
            max_age: None,
        }
    }

    /// A hub as it was when its `hub.json` was read last, if that was kept.
    pub(crate) fn remembered(url: SafeUrl, memory: &Memory) -> Self {
        let known = if url.scheme() == "file" { None } else { memory.read() };
        let known = known.filter(|(_, bytes)| version(bytes) == Some(u64::from(HUB_VERSION)));
        let file = known.and_then(|(_, bytes)| serde_json::from_slice(&bytes).ok());
        Self { file: file.unwrap_or_default(), ..Self::usual(url) }
    }

    /// The URL of `hub.json`.
    pub(crate) fn hub_file(url: &SafeUrl) -> Result<SafeUrl, ProviderError> {
        below(url, "hub.json")
    }

    /// Reads `hub.json`. A folder without one may still have an index in the usual place.
    pub(crate) fn read(
        url: SafeUrl,
        asking: &Asking<'_>,
        memory: &Memory,
    ) -> Result<Self, ProviderError> {
        let place = Self::hub_file(&url)?;
        let known = if url.scheme() == "file" { None } else { memory.read() };
        let known = known.filter(|(_, bytes)| version(bytes) == Some(u64::from(HUB_VERSION)));
        let validator = known.as_ref().map(|(validator, _)| validator);
        let document = match (asking.read(&place, validator)?, &known) {
            (DocumentAnswer::Read(document), _) => {
                if url.scheme() != "file" {
                    memory.write(&document);
                }
                document
            }
            (DocumentAnswer::Unchanged { max_age, is_aged }, Some((validator, bytes))) => {
                Document { bytes: bytes.clone(), validator: validator.clone(), max_age, is_aged }
            }
            (
                DocumentAnswer::Absent { .. }
                | DocumentAnswer::Hidden
                | DocumentAnswer::Unchanged { .. },
                _,
            ) => {
                return Ok(Self::usual(url));
            }
        };
        let Some(version) = version(&document.bytes) else {
            let text = format!("`{place}` is not a hub's description");
            let error = ProviderError::new(ErrorKind::Protocol, text);
            let start = document.bytes.trim_ascii_start();
            return Err(match start.starts_with(b"<") {
                true => because_of_web_page(error),
                false if start.is_empty() => error.because("the answer is empty"),
                false => match serde_json::from_slice::<serde_json::Value>(&document.bytes) {
                    Err(reason) => error.because(not_json(&reason)),
                    Ok(_) => error.because("it has no `hub` with the version of its format"),
                }
                .hint("a hub has a `hub.json` such as `{\"hub\": 1}`; `mu hub check PLACE` examines one"),
            });
        };
        if version != u64::from(HUB_VERSION) {
            let text = format!(
                "the hub at `{url}` has version {version}, and this mu supports version {HUB_VERSION}"
            );
            let error = ProviderError::new(ErrorKind::Protocol, text);
            return Err(error.hint(format!("use a mu that reads hubs of version {version}")));
        }
        let file = serde_json::from_slice(&document.bytes).map_err(|error| {
            ProviderError::new(ErrorKind::Protocol, format!("`{place}` cannot be read"))
                .because(error)
        })?;
        let max_age = document.max_age;
        Ok(Self { url, file, packs: OnceLock::new(), has_file: true, max_age })
    }

    /// Warns that the hub lists its own packages alone, if its server brings others from another hub; `does` is the verb of the sentence.
    pub(crate) fn tell_upstream(&self, does: &str, progress: &dyn Progress) {
        if let Some(upstream) = &self.file.upstream {
            // It is only shown, and nobody asks it.
            let upstream = without_secrets(upstream).escape_debug().to_string();
            progress.warning(&format!(
                "`{}` {does} only its own packages: it brings others from `{upstream}` when they are asked for by name",
                self.url
            ));
        }
    }

    /// Whether there is no catalog because the hub has too many packages for one.
    pub(crate) fn has_no_catalog(&self) -> bool {
        self.file.catalog.as_ref().is_some_and(|catalog| catalog.too_large)
    }

    /// The index file of a package.
    pub(crate) fn index(&self, name: &str) -> Result<SafeUrl, ProviderError> {
        let folder = below(&self.url, &self.file.index)?.as_folder();
        below(&folder, &wire::index_path(name))
    }

    /// The file that lists the providers of a capability.
    pub(crate) fn providers(&self, capability: &str) -> Result<SafeUrl, ProviderError> {
        below(&self.url, &wire::providers_path(capability))
    }

    /// What vouches for a version here: the lines of its file, and the statement that lies beside the archive of a chart.
    pub(crate) fn evidence_about(
        &self,
        location: &Location,
        release: &Release,
        asking: &Asking<'_>,
        http: &Http,
        progress: &dyn Progress,
    ) -> Result<FoundEvidence, ProviderError> {
        let name = &*location.path;
        let path = evidence_path(name, &release.full_version());
        let url = below(&self.url, &path.replace('+', "%2B"))?;
        let asking = Asking { limit: LARGEST_EVIDENCE, ..*asking };
        let text = match asking.read(&url, None)? {
            DocumentAnswer::Read(document) => String::from_utf8_lossy(&document.bytes).into_owned(),
            _ => String::new(),
        };
        let about = EvidenceAbout { name, release };
        let mut found = FoundEvidence::from_lines(&url, evidence_lines(&text), about);
        if release.locator.is_some() {
            let places = self.archives(name, release)?;
            let statement = statement_beside(&places, http, location, asking.hides, progress)?;
            found.add_statement(statement, about);
        }
        if let Some(commit) = &release.commit {
            let why = "signatures in Git do not speak of copies";
            let why = format!("it is a copy of the commit {commit}, and {why}");
            found.pieces.push(FoundPiece::unreadable_piece(url.to_string(), why));
        }
        Ok(found)
    }

    /// The possible places of a release's archive, in the order in which to try them.
    pub(crate) fn archives(
        &self,
        name: &str,
        release: &Release,
    ) -> Result<Vec<SafeUrl>, ProviderError> {
        if !release.urls.is_empty() {
            let (mut places, mut refused) = (Vec::new(), None);
            for place in release.urls.iter().take(MOST_PLACES) {
                match below(&self.url, place) {
                    Ok(place) => places.push(place),
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            return match refused {
                Some(error) if places.is_empty() => Err(error),
                _ => Ok(places),
            };
        }
        let folder = self.packs_folder()?;
        let place = |release: &Release| {
            // Object stores read a bare plus sign as a space.
            below(folder, &wire::archive_path(name, release).replace('+', "%2B"))
        };
        let named = place(release)?;
        let mut others = None;
        if release.app_version.is_some() && release.versioning.as_deref() != Some("composite") {
            // Some hubs include the app version in the name only if it is part of the version.
            let other = place(&Release { app_version: None, ..release.clone() })?;
            others = Some(other).filter(|other| *other != named);
        }
        Ok([named].into_iter().chain(others).collect())
    }

    /// The URL of a release's archive as it is shown, if that is in the usual place; `None` also where a URL would not have the path as it
    /// is. To make URLs of some thousand archives takes several times as long.
    pub(crate) fn usual_archive(&self, name: &str, release: &Release) -> Option<String> {
        let folder = self.packs_folder().ok().filter(|_| release.urls.is_empty())?;
        let path = wire::archive_path(name, release);
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
        let is_folder =
            |segment: &str| segment.is_empty() || segment.bytes().all(|byte| byte == b'.');
        let is_fine = folder.as_url().path().ends_with('/')
            && folder.as_url().query().or(folder.as_url().fragment()).is_none()
            && path.len() < LONGEST_USUAL
            && path.bytes().all(is_plain)
            && !path.split('/').any(is_folder);
        is_fine.then(|| format!("{folder}{path}"))
    }

    /// The folder of the hub's archives.
    fn packs_folder(&self) -> Result<&SafeUrl, ProviderError> {
        if let Some(folder) = self.packs.get() {
            return Ok(folder);
        }
        let folder = below(&self.url, &self.file.packs)?.as_folder();
        Ok(self.packs.get_or_init(|| folder))
    }
}

/// The version that a `hub.json` claims to have; `None` for every other file.
pub(crate) fn version(bytes: &[u8]) -> Option<u64> {
    let file: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    file.get("hub")?.as_u64()
}

/// The stored `hub.json` of one hub.
pub(crate) struct Memory(PathBuf);

impl Memory {
    /// The place for the hub at `url`, in `folder`.
    pub(crate) fn new(folder: &Path, url: &SafeUrl) -> Self {
        let name = FileDigest::from_bytes(Sha256::digest(url.to_string()).into());
        Self(folder.join(format!("hub-{name}.json")))
    }

    /// The stored file, with its validator.
    pub(crate) fn read(&self) -> Option<(Validator, Vec<u8>)> {
        let bytes = fs::read(&self.0).ok()?;
        let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
        let (validator, file) = (parts.next()?, parts.next()?);
        Some((Validator::parse(std::str::from_utf8(validator).ok()?), file.to_vec()))
    }

    /// Stores a file, if there is a way to ask whether it is unchanged.
    pub(crate) fn write(&self, document: &Document) {
        let Some(validator) = document.validator.to_stored_text() else { return };
        let content = [validator.as_bytes(), b"\n", &document.bytes].concat();
        // If it cannot be stored, the next run needs a few more bytes.
        let _ = fs::write_atomic(&self.0, &content);
    }
}
