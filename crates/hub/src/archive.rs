//! What an archive really contains: unpacked with the same reader that every client uses.

use std::path::Path;

use bytes::Bytes;
use mu_archive::{ArchiveError, ArchiveLayout, EARLY, Scratch};
use mu_formats::{FORMATS, Format, Reading, Texts};
use mu_manifest::reference::{Reference, Version};
use mu_manifest::source::MAX_BYTES;
use mu_manifest::{JSON_NAME, Manifest, ManifestError, Outline, Versioning, YAML_NAME, agreement};
use mu_provider::fs::{self, FileError};
use mu_provider::{ArchiveDigest, Digest, Folder, Limits, Mode, Tree, TreeWriter};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::HubError;
use crate::lines::PublishedLine;
use crate::names::refused;
use crate::private::Staging;

/// The usual names of a readme, if the manifest names none.
const USUAL_READMES: [&str; 4] = ["README.md", "README.markdown", "README.txt", "README"];

/// The longest manifest of another ecosystem, in bytes: some hold more than a person writes.
const LONGEST_FOREIGN: u64 = 64 << 20;

/// An archive that was unpacked.
#[derive(Debug)]
pub struct Unpacked {
    /// The digest of the archive.
    pub archive: ArchiveDigest,
    /// The digest of what is in it.
    pub content: Digest,
    /// The size of the archive, in bytes.
    pub size: u64,
    /// What is in it.
    pub tree: Tree,
    /// Holds the files until it is dropped.
    pub folder: tempfile::TempDir,
}

/// The SHA-256 of an archive.
pub fn digest(bytes: &[u8]) -> ArchiveDigest {
    ArchiveDigest::from_bytes(Sha256::digest(bytes).into())
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Unpacks an archive into a folder. This takes a while, so run it on a separate thread.
pub(crate) fn unpack(
    staging: &Staging,
    bytes: &Bytes,
    line: &PublishedLine,
) -> Result<Unpacked, HubError> {
    unpack_within(staging, bytes, (&line.describe(), line.archive_layout()), Limits::default())
}

/// Like `unpack`, for archives of anyone who may publish: with no more than `entries` files and links, and with the manifest among
/// the first ones, if it `has_manifest`.
pub fn unpack_new(
    staging: &Staging,
    bytes: &Bytes,
    (package, layout): (&str, ArchiveLayout),
    entries: usize,
    has_manifest: bool,
) -> Result<Unpacked, HubError> {
    let fail = |source: ArchiveError| HubError::Archive { package: package.to_owned(), source };
    if has_manifest && mu_archive::lacks_early(bytes, &[YAML_NAME, JSON_NAME]).map_err(fail)? {
        let early = EARLY;
        let reason = format!(
            "none of the first {early} entries of its archive is its {YAML_NAME}: pack it with a newer mu"
        );
        return Err(refused(package, &reason));
    }
    let limits = Limits { entries, ..Limits::default() };
    unpack_within(staging, bytes, (package, layout), limits)
}

/// Like `unpack`, for archives that may hold no more than `limits`.
pub fn unpack_within(
    staging: &Staging,
    bytes: &Bytes,
    (package, layout): (&str, ArchiveLayout),
    limits: Limits,
) -> Result<Unpacked, HubError> {
    let io = |source| HubError::Io { action: "unpack into a temporary folder".to_owned(), source };
    let fail = |source: ArchiveError| match source.is_disk_error() {
        true => io(std::io::Error::other(source)),
        false => HubError::Archive { package: package.to_owned(), source },
    };
    let folder = staging.folder()?;
    let mut writer = TreeWriter::new(Folder::open(folder.path()).map_err(io)?, limits);
    mu_archive::unpack_with(&Scratch::default(), bytes, layout, &mut writer).map_err(fail)?;
    let tree = writer.finish().map_err(|error| fail(error.into()))?;
    Ok(Unpacked {
        archive: digest(bytes),
        content: tree.digest(),
        size: bytes.len() as u64,
        tree,
        folder,
    })
}

impl Unpacked {
    /// Checks that a line describes the archive truthfully.
    pub fn check(&self, line: &PublishedLine) -> Result<(), HubError> {
        let mismatch = |what, expected: &str, found| mismatch(line, what, expected, found);
        let size = line.map().get("size").and_then(Value::as_u64).map(|size| size.to_string());
        for (what, expected, found) in [
            ("digest", line.text("archive"), self.archive.to_string()),
            ("content's digest", line.text("digest"), self.content.to_string()),
            ("size", size.as_deref(), self.size.to_string()),
        ] {
            if let Some(expected) = expected.filter(|expected| *expected != found) {
                return mismatch(what, expected, found);
            }
        }
        if let Some(format) = line.text("format") {
            return self.check_foreign(line, format);
        }
        let outline = self.outline(line)?;
        let name = outline.name.unwrap_or_default();
        let origin = line.text("origin");
        if !is_name(&name, line.name()) && !origin.is_some_and(|origin| is_name(&name, origin)) {
            return mismatch("name", line.name(), name);
        }
        let version = outline.version.unwrap_or_default();
        if version != line.version() {
            return mismatch("version", line.version(), version);
        }
        let is_composite = outline.versioning.as_deref() == Some(Versioning::Composite.as_str());
        if is_composite || line.composite_app().is_some() {
            let app = outline.app_version.filter(|_| is_composite).unwrap_or_default();
            let expected = line.composite_app().unwrap_or_default();
            if app != expected {
                return mismatch("app version", expected, app);
            }
        }
        Ok(())
    }

    /// Checks name and version of a package of another format. For a Git commit, both come from Git. This
    /// version does not know the formats of newer hubs.
    fn check_foreign(&self, line: &PublishedLine, format: &str) -> Result<(), HubError> {
        let Some(format) = self.format_called(format) else { return Ok(()) };
        let found = (format.head)(&self.texts(format)?).map_err(|error| {
            refused(&format!("the archive of {}", line.describe()), &error.to_string())
        })?;
        if format.is_named && found.name != line.name() && line.text("origin") != Some(&found.name)
        {
            return mismatch(line, "name", line.name(), found.name);
        }
        let is_version = Version::parse_lenient(&found.version).is_ok_and(|found| {
            Version::parse_lenient(line.version()).is_ok_and(|one| one == found)
        });
        if !is_version && !found.version.is_empty() {
            return mismatch(line, "version", line.version(), found.version);
        }
        let app = found.app_version.filter(|_| found.versioning.is_some());
        if app.as_deref() != line.composite_app() {
            let expected = line.composite_app().unwrap_or_default();
            return mismatch(line, "app version", expected, app.unwrap_or_default());
        }
        Ok(())
    }

    /// The foreign format of this name that is known here, by the manifest that is in the archive.
    fn format_called(&self, name: &str) -> Option<&'static Format> {
        let is_there = |manifest: &str| self.tree.entries().iter().any(|one| one.path == manifest);
        let mut known = FORMATS.iter().filter(|format| format.name == name).peekable();
        let first = known.peek().copied();
        known.find(|format| is_there(format.manifest)).or(first)
    }

    /// The files that the reader of a format looks into.
    fn texts(&self, format: &Format) -> Result<Texts, FileError> {
        let in_folder = |path: &str| {
            let inside = format.folder.and_then(|folder| path.strip_prefix(folder));
            inside.is_some_and(|inside| !inside.contains('/'))
        };
        let is_read = |path: &str| {
            path == format.manifest || format.others.contains(&path) || in_folder(path)
        };
        let mut texts = Texts::default();
        for entry in self.tree.entries() {
            if entry.mode != Mode::Symlink
                && is_read(&entry.path)
                && let Some(text) = self.read(&entry.path, LONGEST_FOREIGN)?
            {
                texts.0.insert(entry.path.clone(), text);
            }
        }
        Ok(texts)
    }

    /// Checks that a line agrees with the manifest in everything that versions are chosen by.
    pub fn agrees(&self, line: &PublishedLine) -> Result<(), HubError> {
        match self.differences(line).into_iter().next() {
            None => Ok(()),
            Some(difference) => Err(HubError::Differs { package: line.describe(), difference }),
        }
    }

    /// The differences between a line and the manifest; none if the manifest needs another version of mu.
    pub(crate) fn differences(&self, line: &PublishedLine) -> Vec<String> {
        let manifest = match line.text("format").map(|format| self.format_called(format)) {
            None => self.manifest(&line.describe()).ok(),
            Some(None) => self.manifest(&line.describe()).ok().map(|mut manifest| {
                if let Ok(listed) = serde_json::from_value(Value::Object(line.map().clone())) {
                    mu_formats::as_listed(&mut manifest, &listed);
                }
                manifest
            }),
            Some(Some(format)) => self.foreign_manifest(format, line),
        };
        manifest.map_or(Vec::new(), |manifest| agreement::differences(&manifest, line.map()))
    }

    /// The manifest of a package of another format, adjusted to its line; `None` if it cannot be read here.
    fn foreign_manifest(&self, format: &Format, line: &PublishedLine) -> Option<Manifest> {
        let listed = serde_json::from_value(Value::Object(line.map().clone())).ok()?;
        let package = (format.read)(&self.texts(format).ok()?, &Reading::default()).ok()?;
        let mut manifest = mu_formats::manifest(&package)?;
        mu_formats::as_listed(&mut manifest, &listed);
        Some(manifest)
    }

    /// The path of the readme: the one that the manifest names, or else one with a usual name.
    pub fn readme(&self, line: &PublishedLine) -> Option<&str> {
        let named = self.outline(line).ok().and_then(|outline| outline.readme);
        let paths = || self.tree.entries().iter().map(|entry| entry.path.as_str());
        if let Some(named) = named {
            let named = named.strip_prefix("./").unwrap_or(&named);
            return paths().find(|path| *path == named);
        }
        let usual = |usual: &&str| paths().find(|path| path.eq_ignore_ascii_case(usual));
        USUAL_READMES.iter().find_map(usual)
    }

    /// The manifest of the package, which `what` names in errors.
    pub fn manifest(&self, what: &str) -> Result<Manifest, HubError> {
        let (name, text) = self.manifest_text(what)?;
        let read = Manifest::parse(Path::new(name), &text);
        read.map(|(manifest, _)| manifest).map_err(|error| refused(what, &error.to_string()))
    }

    fn outline(&self, line: &PublishedLine) -> Result<Outline, HubError> {
        let what = format!("the archive of {}", line.describe());
        let (name, text) = self.manifest_text(&what)?;
        Outline::parse(Path::new(name), &text)
            .map_err(|error| refused(&what, &format!("its {name} cannot be read: {error}")))
    }

    fn manifest_text(&self, what: &str) -> Result<(&'static str, String), HubError> {
        let name = manifest_name(&self.tree).map_err(|reason| refused(what, &reason))?;
        let text = self.read(name, MAX_BYTES as u64)?;
        let text =
            text.ok_or_else(|| refused(what, &format!("its {name} is too long, or no text")))?;
        Ok((name, text))
    }

    /// The text of a file in the archive; `None` if it is longer than `most` or is not text.
    fn read(&self, path: &str, most: u64) -> Result<Option<String>, FileError> {
        Ok(self.bytes(path, most)?.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    /// A file in the archive; `None` if it is longer than `most`.
    pub fn bytes(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, FileError> {
        let path = self.folder.path().join(path);
        if fs::metadata(&path)?.len() > most {
            return Ok(None);
        }
        fs::read(&path).map(Some)
    }
}

/// The error for an archive that is not what its line says.
fn mismatch(
    line: &PublishedLine,
    what: &'static str,
    expected: &str,
    found: String,
) -> Result<(), HubError> {
    let (package, expected) = (line.describe(), expected.to_owned());
    Err(HubError::Mismatch { package, what, expected, found })
}

/// Which file of a package is its manifest.
fn manifest_name(tree: &Tree) -> Result<&'static str, String> {
    let is_there = |name: &str| {
        tree.entries().iter().any(|entry| entry.path == name && entry.mode != Mode::Symlink)
    };
    match (is_there(YAML_NAME), is_there(JSON_NAME)) {
        (true, false) => Ok(YAML_NAME),
        (false, true) => Ok(JSON_NAME),
        (true, true) => Err(ManifestError::Both { folder: "the archive".into() }.to_string()),
        (false, false) => Err(format!("it has no {YAML_NAME}")),
    }
}

/// Whether a manifest's name, with or without its base, is the name in a line.
fn is_name(written: &str, name: &str) -> bool {
    Reference::parse(written).is_ok_and(|written| {
        written.local().is_none() && written.version().is_none() && written.name().as_str() == name
    })
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn a_manifest_may_name_its_base() {
        for (written, expected) in [
            ("aws/ec2", true),
            ("hub.mu.com/aws/ec2", true),
            ("https://hub.mu.com/aws/ec2", true),
            ("localhost:80/aws/ec2", true),
            ("other/aws/ec2", false),
            ("xaws/ec2", false),
            ("hub.mu.com/x/aws/ec2", false),
            ("ec2", false),
            ("", false),
        ] {
            assert_eq!(is_name(written, "aws/ec2"), expected, "{written}");
        }
    }
}
