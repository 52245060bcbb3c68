//! What there is besides the whole of a manifest: its head, its outline, and one that mu writes itself.

use std::path::Path;

use crate::reference::{Version, VersionSpec};
use crate::source::render::quoted;
use crate::source::{Document, SourceError};
use crate::types::API_VERSION;
use crate::{Head, Manifest, Warning, read};

impl Manifest {
    /// Reads `text`, the content of the manifest at `path`; `.json` is read as JSON, all else as YAML.
    ///
    /// # Errors
    ///
    /// When the text is not well formed or says something that no manifest may say.
    pub fn parse(path: &Path, text: &str) -> Result<(Self, Vec<Warning>), SourceError> {
        read::manifest(&Document::read(path, text)?, true)
    }

    /// Reads the manifest of a package that was published by somebody: its version may leave numbers out, whether or not it
    /// says `versions: lenient`, since a registry's settings may say that.
    ///
    /// # Errors
    ///
    /// As [`Manifest::parse`].
    pub fn parse_published(path: &Path, text: &str) -> Result<Self, SourceError> {
        Ok(read::manifest(&Document::read(path, text)?, false)?.0)
    }
}

impl Head {
    /// Reads name, version and exports of the manifest at `path`, and nothing else of it.
    ///
    /// # Errors
    ///
    /// When the text is not well formed, or wrong in what is read.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SourceError> {
        read::head(&Document::read(path, text)?)
    }
}

/// What a manifest of any format says of which package it is and who can use it, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The package's name, with or without a base.
    pub name: Option<String>,
    /// The version; of a composite one the revision alone.
    pub version: Option<String>,
    /// The version of what is inside.
    pub app_version: Option<String>,
    /// The kind of its versions.
    pub versioning: Option<String>,
    /// The path of its readme.
    pub readme: Option<String>,
    /// The manifest format.
    pub api_version: Option<String>,
    /// The range of mu versions.
    pub mu_version: Option<String>,
}

impl Outline {
    /// Reads no more than that of the manifest at `path`, which another mu may have to understand.
    ///
    /// # Errors
    ///
    /// When the text is not well formed.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SourceError> {
        Ok(read::outline(Document::read(path, text)?.root()))
    }

    /// Whether it speaks of a format that this program does not read, or of another version of this program.
    pub fn is_of_another_mu(&self) -> bool {
        let own = Version::parse(env!("CARGO_PKG_VERSION")).ok();
        let accepts = |wanted: &str| {
            let range = VersionSpec::parse(wanted).ok();
            range.zip(own.as_ref()).is_none_or(|(range, own)| range.accepts(own, true))
        };
        self.api_version.as_deref().is_some_and(|format| format != API_VERSION)
            || self.mu_version.as_deref().is_some_and(|wanted| !accepts(wanted))
    }
}

/// The manifest for a package that has none: name, version, and the mark that mu wrote it.
pub fn generated_manifest(name: &str, version: Option<&str>) -> String {
    let mut text = format!(
        "# Written by mu: this package has no manifest of its own.\nname: {}\n",
        quoted(name)
    );
    if let Some(version) = version {
        text.push_str(&format!("version: {}\n", quoted(version)));
    }
    text.push_str("x-generated: true\n");
    text
}
