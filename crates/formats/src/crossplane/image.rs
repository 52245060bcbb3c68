//! An xpkg: an image, one layer of which holds the package. The others are for its runtime. An annotation of the layer says
//! which it is, or a label of the image; where neither does, the last layer with a manifest is it.

use std::collections::BTreeMap;

use serde_json::json;

use super::{PUBLISHED, kind_of};
use crate::artifact::{Archived, Artifact, Image, Pushed};
use crate::error::FormatError;

/// The annotation of a layer that says what it is, and what it says of the package.
const LAYER: (&str, &str) = ("io.crossplane.xpkg", "base");

/// How the label of an image begins that says what a layer is, and what it says of the package.
const LABEL: (&str, &str) = ("io.crossplane.xpkg:", "base");

/// The layer of a package, compressed or not.
const CONTENT: [&str; 2] =
    ["application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"];

/// The kinds of packages that an image runs, which other layers have.
const RUN: [&str; 2] = ["Function", "Provider"];

pub(super) const ARTIFACT: Artifact = Artifact {
    find,
    label: Some(LABEL),
    in_config: false,
    in_folder: false,
    provenance: None,
    looks_into: |path| path == PUBLISHED,
    pushed,
};

fn find(image: &Image<'_>) -> Option<Result<usize, String>> {
    let (key, value) = LAYER;
    let mut layers = image.layers.iter();
    layers.position(|layer| layer.annotations.get(key) == Some(&value)).map(Ok)
}

/// What `crossplane xpkg push` makes of a package that has nothing but its layer: an image of it alone. Its tag begins with a `v`, as
/// those of Crossplane's packages do.
fn pushed(archived: &Archived<'_>) -> Result<Pushed, FormatError> {
    let [digest, unpacked] = archived.digests;
    let text = archived.texts();
    let kind = kind_of(text.manifest(PUBLISHED)?);
    let [plain, compressed] = CONTENT;
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {"Labels": {format!("{}{digest}", LABEL.0): LABEL.1}},
        "rootfs": {"type": "layers", "diff_ids": [unpacked]},
    });
    let said = [(LAYER.0.to_owned(), LAYER.1.to_owned())].into();
    let needs_image = kind.is_some_and(|kind| RUN.contains(&&*kind));
    Ok(Pushed {
        version: format!("v{}", archived.version),
        artifact_type: None,
        config: ("application/vnd.oci.image.config.v1+json", config.to_string().into_bytes()),
        layer: (if archived.is_compressed { compressed } else { plain }, said),
        annotations: BTreeMap::new(),
        lacks: needs_image.then_some("the image that runs it"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_becomes_an_image_of_its_layer() {
        for (kind, lacks) in [("Configuration", None), ("Function", Some("the image that runs it"))]
        {
            let text = format!(
                "apiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nmetadata: {{name: a}}\n"
            );
            let files = [(PUBLISHED.to_owned(), text.into_bytes())].into();
            let archived = Archived {
                name: "a",
                version: "1.0.0",
                created: None,
                digests: ["sha256:1", "sha256:2"],
                is_compressed: true,
                files: &files,
            };
            let found = pushed(&archived).expect("is a package");
            assert_eq!((found.version.as_str(), found.lacks), ("v1.0.0", lacks));
            let config: serde_json::Value =
                serde_json::from_slice(&found.config.1).expect("is JSON");
            assert_eq!(config["config"]["Labels"]["io.crossplane.xpkg:sha256:1"], "base");
            assert_eq!(config["rootfs"]["diff_ids"][0], "sha256:2");
            assert_eq!(found.layer.1["io.crossplane.xpkg"], "base");
        }
    }
}
