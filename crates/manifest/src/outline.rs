//! Parts of a manifest that can be read alone (its head and its outline), and the manifest that mu generates.

use std::path::Path;

use crate::reference::{Version, VersionSpec};
use crate::schema::File;
use crate::source::render::quoted;
use crate::source::{Document, SourceError};
use crate::types::API_VERSION;
use crate::{Head, Manifest, Warning, read};

impl Manifest {
    /// Reads `text`, the content of the manifest at `path`. A `.json` file is read as JSON, any other as
    /// YAML.
    ///
    /// # Errors
    ///
    /// When the text is not well formed, or has something that a manifest cannot have.
    pub fn parse(path: &Path, text: &str) -> Result<(Self, Vec<Warning>), SourceError> {
        read::manifest(&Document::read(path, text)?, true)
    }

    /// Reads the manifest of a published package. Its version may leave numbers out, whether or not it has
    /// `versions: lenient`, because a registry's settings may allow that.
    ///
    /// # Errors
    ///
    /// As [`Manifest::parse`].
    pub fn parse_published(path: &Path, text: &str) -> Result<Self, SourceError> {
        Ok(read::manifest(&Document::read(path, text)?, false)?.0)
    }
}

impl Head {
    /// Reads only the name, version and exports of the manifest at `path`.
    ///
    /// # Errors
    ///
    /// When the text is not well formed, or one of these keys is wrong.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SourceError> {
        read::head(&Document::read(path, text)?)
    }
}

/// What a manifest of any format says about its identity and about who can use it, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The package's name, with or without a base.
    pub name: Option<String>,
    /// The version; for a composite one, only the revision.
    pub version: Option<String>,
    /// The version of the software inside.
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
    /// Reads only these keys of the manifest at `path`. Another version of mu may be needed to read the rest.
    ///
    /// # Errors
    ///
    /// When the text is not well formed.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SourceError> {
        let document = Document::read(path, text)?;
        // A number becomes the text that it is written as.
        let word = |key: &str| {
            let mut entries = document.root_value().entries().ok()?;
            let (_, value) = entries.find(|(known, _)| known.as_str() == key)?;
            value.word().ok().map(|text| text.as_str().to_owned())
        };
        Ok(Self {
            name: word(File::name),
            version: word(File::version),
            app_version: word(File::app_version),
            versioning: word(File::versioning),
            readme: word(File::readme),
            api_version: word(File::api_version),
            mu_version: word(File::mu_version),
        })
    }

    /// Whether it needs a manifest format or a version of mu that is not this one.
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

/// The manifest for a package that has none: name, version, and the mark that mu generated it.
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
