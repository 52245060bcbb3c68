//! How a package of a format is stored in an OCI registry.
//!
//! Registries do not know formats: media types and annotations show which format an artifact has, and where
//! its files and its manifest are. The provider requests them from the registry.

use std::collections::BTreeMap;

use crate::error::FormatError;
use crate::files::Texts;

/// How packages of a format lie in OCI registries.
#[derive(Debug, Clone, Copy)]
pub struct Artifact {
    /// Finds the package in a registry's manifest; `None` if it does not have this format. Otherwise returns
    /// which layer has the files, counted from 0, or why none has.
    pub find: fn(&ArtifactManifest<'_>) -> Option<Result<usize, String>>,
    /// The label in an image's config that marks its layer, by the part before the layer's digest, and its value: builders of
    /// images drop the annotations of layers, and keep labels. If there is no label either, the last layer with a manifest counts.
    pub label: Option<(&'static str, &'static str)>,
    /// Whether the config is the package's manifest, as JSON; otherwise it is a file in the layer.
    pub in_config: bool,
    /// Whether the files are in one folder with any name.
    pub in_folder: bool,
    /// The media type of the layer with the signed statement of its author about the archive, if its tool keeps one there.
    pub provenance: Option<&'static str>,
    /// Which of its files `pushed` looks into.
    pub looks_into: fn(&str) -> bool,
    /// What its tool makes of an archive when it pushes that.
    pub pushed: fn(&Archived<'_>) -> Result<Pushed, FormatError>,
}

/// An archive that the tool of a format has made, and what is known of its package.
#[derive(Debug, Clone, Copy)]
pub struct Archived<'a> {
    /// The last segment of its name.
    pub name: &'a str,
    /// Its version, as it is listed.
    pub version: &'a str,
    /// When it was made, if that is known.
    pub created: Option<&'a str>,
    /// Its digest, and that of the tar in it.
    pub digests: [&'a str; 2],
    /// Whether it is compressed.
    pub is_compressed: bool,
    /// Those of its files that [`Artifact::looks_into`].
    pub files: &'a BTreeMap<String, Vec<u8>>,
}

impl Archived<'_> {
    /// Its files as texts.
    pub(crate) fn texts(&self) -> Texts {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        Texts(self.files.iter().map(|(name, bytes)| (name.clone(), text(bytes))).collect())
    }
}

/// An archive as an artifact in a registry: what there is beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The version that is its tag.
    pub version: String,
    /// The type of the artifact, if it is said.
    pub artifact_type: Option<&'static str>,
    /// The media type of its config, and the config.
    pub config: (&'static str, Vec<u8>),
    /// The media type of its archive, and what is said of that.
    pub layer: (&'static str, BTreeMap<String, String>),
    /// The annotations of its manifest.
    pub annotations: BTreeMap<String, String>,
    /// What the artifact of its author may have had that is not in the archive.
    pub lacks: Option<&'static str>,
}

/// A registry's manifest, as far as formats look at it.
#[derive(Debug, Clone, Default)]
pub struct ArtifactManifest<'a> {
    /// The media type of its config.
    pub config: &'a str,
    /// Its annotations.
    pub annotations: BTreeMap<&'a str, &'a str>,
    /// Its layers.
    pub layers: Vec<Layer<'a>>,
}

/// A layer of an image.
#[derive(Debug, Clone, Default)]
pub struct Layer<'a> {
    /// Its media type.
    pub media_type: &'a str,
    /// Its annotations.
    pub annotations: BTreeMap<&'a str, &'a str>,
}
