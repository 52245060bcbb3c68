//! What a package of a format looks like in an OCI registry.
//!
//! Registries know nothing of formats: media types and annotations tell which one an artifact is of, and where its files and its
//! manifest are. Who asks the registry for them is the provider.

use std::collections::BTreeMap;

/// How packages of a format lie in OCI registries.
#[derive(Debug, Clone, Copy)]
pub struct Artifact {
    /// Finds the package in what a registry's manifest names; `None` if that is not of this format. Else says which layer holds
    /// its files, counted from 0, or why none does.
    pub find: fn(&Image<'_>) -> Option<Result<usize, String>>,
    /// Whether the config is the package's manifest, as JSON; else that is a file of the layer.
    pub in_config: bool,
    /// Whether the files are in one folder, whatever that is called.
    pub in_folder: bool,
}

/// A registry's manifest, as far as formats look at it.
#[derive(Debug, Clone, Default)]
pub struct Image<'a> {
    /// The media type of its config.
    pub config: &'a str,
    /// What is said of it.
    pub annotations: BTreeMap<&'a str, &'a str>,
    /// Its layers.
    pub layers: Vec<Layer<'a>>,
}

/// A layer of an image.
#[derive(Debug, Clone, Default)]
pub struct Layer<'a> {
    /// Its media type.
    pub media_type: &'a str,
    /// What is said of it.
    pub annotations: BTreeMap<&'a str, &'a str>,
}
