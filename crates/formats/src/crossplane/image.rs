//! An xpkg: an image, one layer of which holds the package. The others are for its runtime. An annotation of the layer says
//! which it is, or a label of the image; where neither does, the last layer with a manifest is it.

use crate::artifact::{Artifact, Image};

/// The annotation of a layer that says what it is, and what it says of the package.
const LAYER: (&str, &str) = ("io.crossplane.xpkg", "base");

/// How the label of an image begins that says what a layer is, and what it says of the package.
const LABEL: (&str, &str) = ("io.crossplane.xpkg:", "base");

pub(super) const ARTIFACT: Artifact =
    Artifact { find, label: Some(LABEL), in_config: false, in_folder: false };

fn find(image: &Image<'_>) -> Option<Result<usize, String>> {
    let (key, value) = LAYER;
    let mut layers = image.layers.iter();
    layers.position(|layer| layer.annotations.get(key) == Some(&value)).map(Ok)
}
