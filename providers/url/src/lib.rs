//! Archives by URL: one file on a web server, which is a package with one version.
//!
//! What is at a URL can change, so an archive is known by its digest: that of a pin, or the one that was seen first and is in the
//! lock. `mu-formats` interprets the manifests of other ecosystems; a `Mu.yaml` is handed over as it is. The hub's provider downloads
//! and unpacks archives.
//!
//! What vouches for an archive is the bundle beside it, at its URL with `.sigstore.json` behind.
//!
//! Where no manifest says a version, the one in the name of the archive counts.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")
)]
#![deny(clippy::indexing_slicing)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mu_archive::document::{Validator, evidence_beside};
use mu_archive::remembered::AskedOnce;
use mu_archive::{Archives, Held, Looked, Packing, Place, restore_anyones};
use mu_formats::{FORMATS, Format, Reading, Texts, helm};
use mu_provider::http::Http;
use mu_provider::threads::lock;
use mu_provider::{
    ErrorKind, Facts, Found, FoundEvidence, FoundPiece, KeptArchives, LARGEST_CONTENT, LineTrust,
    Listing, Location, MANIFEST_NAMES, ManifestFile, Progress, Provider, ProviderError, Release,
    SafeUrl, Silent, TreeWriter, json_lines,
};
use mu_trust::{Evidence, MOST_BYTES};

/// The largest archive that is accepted, in bytes.
const LARGEST_ARCHIVE: u64 = 4 << 30;

/// What the name of an archive is followed by in that of the bundle that vouches for it.
const BUNDLE_ENDING: &str = ".sigstore.json";

/// The explanation if another archive is at a URL.
const CHANGED: &str = "what is at the URL has changed; `mu update` takes what is there now, and a pinned digest has to be changed where it is written";

/// Serves archives by URL.
///
/// It downloads each archive once, so create a new one to look again.
#[derive(Debug)]
pub struct UrlProvider {
    archives: Archives,
    asked: AskedOnce<KnownArchive>,
    /// Archives that were read for a signature, until they are unpacked.
    read: Mutex<HashMap<SafeUrl, Held>>,
}

/// An archive that was downloaded in this run.
#[derive(Debug)]
struct KnownArchive {
    found: Found,
    release: Release,
    /// Its manifest of mu's own.
    manifest: Option<ManifestFile>,
    /// The archive, until it is unpacked.
    held: Mutex<Option<Held>>,
}

/// Why an archive was not downloaded.
enum NotDownloaded {
    /// It is the one of the last time.
    Unchanged(Option<u32>),
    Failed(ProviderError),
}

impl From<ProviderError> for NotDownloaded {
    fn from(error: ProviderError) -> Self {
        Self::Failed(error)
    }
}

impl UrlProvider {
    /// A provider that has not downloaded anything yet. Incomplete downloads go into the folder `downloads`, which is created when
    /// needed.
    pub fn new(http: Arc<Http>, downloads: impl Into<PathBuf>) -> Self {
        let archives = Archives::new(http, downloads, LARGEST_ARCHIVE).hinting(CHANGED);
        Self { archives, asked: AskedOnce::default(), read: Mutex::default() }
    }

    /// The URL of an archive, and how it is packed.
    fn place(location: &Location) -> Result<(Place, Packing), ProviderError> {
        let refused = |why: &str| {
            let text = format!("`{}` is not an archive: {why}", location.describe());
            ProviderError::new(ErrorKind::NotFound, text)
        };
        let packing = Packing::of(&location.path).ok_or_else(|| {
            refused("its name does not end in `.tgz`, `.tar.gz`, `.tar` or `.zip`, which mu reads")
        })?;
        let url = location.root.with_trailing_slash().join(&location.path);
        let url = url.map_err(|_| refused("it is not a URL"))?;
        Ok((Place { url, insecure: location.insecure, guard: None }, packing))
    }

    /// Downloads an archive, unless it is what is `known`, and looks through it.
    fn look(
        &self,
        location: &Location,
        wanted: &Release,
        known: Option<Validator>,
        progress: &dyn Progress,
    ) -> Result<Looked, ProviderError> {
        let (place, packing) = Self::place(location)?;
        let looked = self.archives.look(&place, packing, wanted, known, &is_wanted, progress)?;
        let Looked::Held(held) = &looked else { return Ok(looked) };
        // The digest of the content would speak of files that Helm does not see.
        if held.has_hard_links && held.files.contains_key(helm::CHART) {
            let text = format!("the chart `{}` is refused", place.url);
            return Err(ProviderError::new(ErrorKind::Integrity, text)
                .because("it has a hard link, which Helm reads as an empty file")
                .hint("`helm package` makes an archive of a chart without hard links"));
        }
        Ok(looked)
    }

    /// Downloads an archive, unless that was done in this run, or it is still what `validator` says; `None` if there is none.
    fn ask(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<KnownArchive>>, NotDownloaded> {
        let (place, _) = Self::place(location)?;
        self.asked.get(&place.url, || {
            let last = validator.map(Validator::parse).filter(|last| *last != Validator::default());
            let any = Release::default();
            match self.look(location, &any, last, progress)? {
                Looked::Unchanged { max_age } => Err(NotDownloaded::Unchanged(max_age)),
                Looked::Absent => Ok(None),
                Looked::Held(held) => Ok(Some(KnownArchive::of(location, *held)?)),
            }
        })
    }

    /// As [`Self::ask`], whatever was there the last time.
    fn known(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<KnownArchive>>, ProviderError> {
        match self.ask(location, None, progress) {
            Ok(known) => Ok(known),
            Err(NotDownloaded::Failed(error)) => Err(error),
            // It was not asked whether it has changed.
            Err(NotDownloaded::Unchanged(_)) => Ok(None),
        }
    }

    /// The archive of a release, downloaded again if it was not kept.
    fn held(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Held, ProviderError> {
        let (place, _) = Self::place(location)?;
        let was_read = lock(&self.read).remove(&place.url);
        let is_wanted_one = |held: &Held| {
            release.archive.as_ref().is_none_or(|wanted| held.digest.to_string() == *wanted)
        };
        if let Some(held) = was_read.filter(is_wanted_one) {
            return Ok(held);
        }
        let is_it = |known: &Arc<KnownArchive>| {
            release.archive.is_none() || known.release.archive == release.archive
        };
        let known = self.asked.known(&place.url).filter(is_it);
        if let Some(held) = known.and_then(|known| lock(&known.held).take()) {
            return Ok(held);
        }
        let wanted = Release { archive: release.archive.clone(), ..Release::default() };
        match self.look(location, &wanted, None, progress)? {
            Looked::Held(held) => Ok(*held),
            Looked::Absent | Looked::Unchanged { .. } => {
                let text = format!("there is no archive at `{}`", place.url);
                Err(ProviderError::new(ErrorKind::NotFound, text))
            }
        }
    }
}

impl UrlProvider {
    /// The bytes of the archive of a release, which stays here until it is unpacked; `None` of one that is too large.
    fn bytes(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        let (place, _) = Self::place(location)?;
        let mut held = self.held(location, release, progress)?;
        let bytes = (held.size <= LARGEST_CONTENT).then(|| held.bytes()).transpose();
        lock(&self.read).insert(place.url, held);
        bytes
    }
}

impl KnownArchive {
    fn of(location: &Location, mut held: Held) -> Result<Self, ProviderError> {
        let files = std::mem::take(&mut held.files);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let texts = Texts(files.into_iter().map(|(path, bytes)| (path, text(bytes))).collect());
        let digest = held.digest.to_string();
        let guess = of_name(&location.path).unwrap_or_else(|| "0.0.0".to_owned());
        let manifest = own_manifest(location, &texts)?;
        let read = match &manifest {
            Some(_) => None,
            None => foreign(location, &texts)?,
        };
        let has_manifest = manifest.is_some();
        let read = read.unwrap_or_else(|| Release {
            dependencies: (!has_manifest).then(Vec::new),
            ..Release::default()
        });
        let release = Release {
            name: location.path.clone(),
            version: if read.version.is_empty() { guess } else { read.version.clone() },
            archive: Some(digest.clone()),
            // The digest says which archive it is, as a commit does in a repository.
            artifact: Some(digest),
            size: Some(held.size),
            ..read
        };
        let (lines, validator) = (json_lines([&release]), held.validator.to_stored_text());
        let found = Found::new(location, lines, validator, held.max_age);
        Ok(Self { found, release, manifest, held: Mutex::new(Some(held)) })
    }
}

/// Whether a file of a package may say what the package is.
fn is_wanted(path: &str) -> bool {
    MANIFEST_NAMES.contains(&path)
        || FORMATS.iter().any(|format| {
            format.manifest == path
                || format.others.contains(&path)
                || format.folder.is_some_and(|folder| path.starts_with(folder))
        })
}

/// The manifest of mu's own.
fn own_manifest(location: &Location, texts: &Texts) -> Result<Option<ManifestFile>, ProviderError> {
    let mut found = None;
    for name in MANIFEST_NAMES {
        let Some(text) = texts.0.get(name) else { continue };
        if found.is_some() {
            let text = format!("`{}` has both `Mu.yaml` and `Mu.json`", location.describe());
            return Err(ProviderError::new(ErrorKind::Manifest, text));
        }
        found =
            Some(ManifestFile { name: name.to_owned(), text: text.clone(), beside: Vec::new() });
    }
    Ok(found)
}

/// The package of another ecosystem that an archive contains, if it does.
fn foreign(location: &Location, texts: &Texts) -> Result<Option<Release>, ProviderError> {
    let is_there = |format: &&Format| {
        let text = texts.0.get(format.manifest);
        text.is_some_and(|text| format.is_one.is_none_or(|is_one| is_one(text)))
    };
    let Some(format) = FORMATS.iter().find(is_there) else { return Ok(None) };
    let package = (format.read)(texts, &Reading::default()).map_err(|error| {
        let text = format!("the `{}` in `{}` cannot be read", format.manifest, location.describe());
        let place = format!("line {}, column {}: {}", error.line, error.column, error.reason);
        ProviderError::new(ErrorKind::Manifest, text).because(place)
    })?;
    let dependencies = package.release.dependencies.clone().unwrap_or_default();
    Ok(Some(Release {
        dependencies: Some(dependencies),
        // Tools of other ecosystems accept `v1.2` as a version.
        versions: Some("lenient".to_owned()),
        ..package.release
    }))
}

impl Provider for UrlProvider {
    fn name(&self) -> &str {
        "url"
    }

    fn facts(&self) -> Facts {
        Facts {
            place: "an archive",
            places_are_flat: true,
            lines_are_binding: true,
            has_digests: true,
            lines: LineTrust::InArchive,
            archives_are_content: true,
            ..Facts::default()
        }
    }

    fn probe(&self, location: &Location) -> Result<bool, ProviderError> {
        match self.known(location, &Silent) {
            Ok(known) => Ok(known.is_some()),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::Integrity | ErrorKind::Manifest => Ok(false),
                _ => Err(error),
            },
        }
    }

    fn list(
        &self,
        location: &Location,
        validator: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Listing, ProviderError> {
        let found = match self.ask(location, validator, progress) {
            Ok(Some(known)) => known.found.clone(),
            Ok(None) => {
                let (place, _) = Self::place(location)?;
                return Ok(Listing::absent(vec![self.archives.http.missing_at(&place.url)]));
            }
            Err(NotDownloaded::Unchanged(max_age)) => {
                return Ok(Listing::Unchanged { max_age, validator: None });
            }
            Err(NotDownloaded::Failed(error)) if error.kind() == ErrorKind::NotFound => {
                return Ok(Listing::absent(vec![error.to_string()]));
            }
            Err(NotDownloaded::Failed(error)) => return Err(error),
        };
        if validator.is_some() && validator == found.validator.as_deref() {
            return Ok(Listing::Unchanged { max_age: found.max_age, validator: None });
        }
        Ok(Listing::Found(found))
    }

    fn resolve(
        &self,
        location: &Location,
        revision: &str,
        progress: &dyn Progress,
    ) -> Result<Release, ProviderError> {
        if !revision.starts_with("sha256:") {
            let text = format!(
                "there is no commit `{revision}` of `{}`: an archive has no commits",
                location.describe()
            );
            return Err(ProviderError::new(ErrorKind::NotFound, text));
        }
        let Some(known) = self.known(location, progress)? else {
            let text = format!("there is no archive at `{}`", location.describe());
            return Err(ProviderError::new(ErrorKind::NotFound, text));
        };
        let release = &known.release;
        let got = release.archive.as_deref().unwrap_or_default();
        if got == revision {
            return Ok(release.clone());
        }
        let text = format!(
            "the archive `{}` is not the one that was expected: expected {revision}, got {got}",
            location.describe()
        );
        Err(ProviderError::new(ErrorKind::Integrity, text).hint(CHANGED))
    }

    fn manifest(
        &self,
        location: &Location,
        _release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, ProviderError> {
        Ok(self.known(location, progress)?.and_then(|known| known.manifest.clone()))
    }

    fn archive(&self, location: &Location, _release: &Release) -> Option<String> {
        Self::place(location).ok().map(|(place, _)| place.url.to_string())
    }

    fn evidence(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<FoundEvidence, ProviderError> {
        let (place, _) = Self::place(location)?;
        let subject = release.archive.clone().unwrap_or_default();
        let mut found = FoundEvidence { subject, ..FoundEvidence::default() };
        let file = (BUNDLE_ENDING, MOST_BYTES as u64);
        let bundle = evidence_beside(&place.url, file, &self.archives.http, location, progress)?;
        let place = format!("{}{BUNDLE_ENDING}", place.url);
        found.looked_at.push(place.clone());
        let evidence = match bundle {
            Ok(None) => return Ok(found),
            Ok(Some(json)) => Ok(Evidence::Bundle(json)),
            Err(error) => Err(found.withheld.insert(error).to_string()),
        };
        found.pieces.push(FoundPiece { place, evidence, manifests: Vec::new(), archive: None });
        if found.needs_content() {
            found.content = self.bytes(location, release, progress)?;
        }
        Ok(found)
    }

    fn fetch(
        &self,
        location: &Location,
        release: &Release,
        tree: &mut TreeWriter,
        progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let mut held = self.held(location, release, progress)?;
        if tree.keeps_archive == KeptArchives::All {
            if held.size > LARGEST_CONTENT {
                let text = format!(
                    "the archive `{}` is not kept: it has {} bytes, and {LARGEST_CONTENT} are the most",
                    location.describe(),
                    held.size
                );
                return Err(ProviderError::new(ErrorKind::Refused, text));
            }
            tree.archive = Some(held.bytes()?);
        }
        held.unpack(tree)?;
        tree.tell_pointers(&location.describe(), progress);
        Ok(())
    }

    fn restore(
        &self,
        location: &Location,
        release: &Release,
        preserved: &[u8],
        tree: &mut TreeWriter,
        _progress: &dyn Progress,
    ) -> Result<(), ProviderError> {
        let (_, packing) = Self::place(location)?;
        restore_anyones(preserved, release, packing, tree)
    }
}

/// The version that an archive's name contains, in full: `1.2.0` of `tools-1.2.tgz` or `v1.2.0.zip`.
fn of_name(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let ends = [".tgz", ".tar.gz", ".tar", ".zip"];
    let end = ends.iter().find(|end| lower.ends_with(**end))?;
    let stem = name.get(..name.len() - end.len())?;
    let after = stem.match_indices(['-', '_']).map(|(at, mark)| at + mark.len());
    let mut begins = std::iter::once(0).chain(after);
    begins.find_map(|at| version(stem.get(at..)?))
}

/// A version of two or three numbers, in full.
fn version(text: &str) -> Option<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (numbers, rest) = match text.split_once('-') {
        Some((numbers, rest)) => (numbers, Some(rest)),
        None => (text, None),
    };
    let parts: Vec<&str> = numbers.split('.').collect();
    let is_number = |part: &&str| {
        let is_short = (1..=9).contains(&part.len());
        is_short
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part.len() == 1 || !part.starts_with('0'))
    };
    if !(2..=3).contains(&parts.len()) || !parts.iter().all(is_number) {
        return None;
    }
    let mut version = parts.join(".");
    if parts.len() == 2 {
        version.push_str(".0");
    }
    let Some(rest) = rest else { return Some(version) };
    // What follows is a prerelease only if it can be one.
    let is_word = |part: &str| {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        let fits = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        !part.is_empty() && fits && !(is_number && part.len() > 1 && part.starts_with('0'))
    };
    rest.split('.').all(is_word).then(|| format!("{version}-{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_a_version() {
        for (name, expected) in [
            ("x-1.2.tgz", Some("1.2.0")),
            ("x-1.2.3.tar.gz", Some("1.2.3")),
            ("v1.2.0.zip", Some("1.2.0")),
            ("terraform-aws-vpc-5.1.0-rc.1.tar", Some("5.1.0-rc.1")),
            ("x_v2.0.1.tgz", Some("2.0.1")),
            ("x2-utils-3.4.5.tgz", Some("3.4.5")),
            ("x-1.2.3-linux-amd64.tgz", Some("1.2.3-linux-amd64")),
            ("x.tgz", None),
            ("x-1.tgz", None),
            ("x-2024.01.tgz", None),
            ("main.zip", None),
            ("x-1.2.3.4.tgz", None),
        ] {
            assert_eq!(of_name(name).as_deref(), expected, "{name}");
        }
    }
}
