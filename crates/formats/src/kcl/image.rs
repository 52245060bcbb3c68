//! A module in an OCI registry: annotations name it, and its files are a layer. Its dependencies are only in
//! the layer.

use crate::artifact::{Artifact, Image};

/// The annotation with the name of a module.
const NAME: &str = "org.kcllang.package.name";

/// The layer of a module, compressed since KCL 0.12.
const CONTENT: [&str; 2] =
    ["application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"];

pub(super) const ARTIFACT: Artifact =
    Artifact { find, label: None, in_config: false, in_folder: false };

fn find(image: &Image<'_>) -> Option<Result<usize, String>> {
    image.annotations.get(NAME)?;
    let mut layers = image.layers.iter();
    let found = layers.position(|layer| CONTENT.contains(&layer.media_type));
    Some(found.ok_or_else(|| "it is a KCL module without files".to_owned()))
}
