//! How a package of a format is stored in an OCI registry.
//!
//! Registries do not know formats: media types and annotations show which format an artifact has, and where
//! its files and its manifest are. The provider requests them from the registry.

use std::collections::BTreeMap;

/// How packages of a format lie in OCI registries.
#[derive(Debug, Clone, Copy)]
pub struct Artifact {
    /// Finds the package in a registry's manifest; `None` if it does not have this format. Otherwise returns
    /// which layer has the files, counted from 0, or why none has.
    pub find: fn(&Image<'_>) -> Option<Result<usize, String>>,
    /// The label in an image's config that marks its layer, by the part before the layer's digest, and its value: builders of
    /// images drop the annotations of layers, and keep labels. If there is no label either, the last layer with a manifest counts.
    pub label: Option<(&'static str, &'static str)>,
    /// Whether the config is the package's manifest, as JSON; otherwise it is a file in the layer.
    pub in_config: bool,
    /// Whether the files are in one folder with any name.
    pub in_folder: bool,
}

/// A registry's manifest, as far as formats look at it.
#[derive(Debug, Clone, Default)]
pub struct Image<'a> {
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
