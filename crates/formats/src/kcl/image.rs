//! A module in an OCI registry: annotations name it, and its files are a layer. Its dependencies are only in
//! the layer.

use std::collections::BTreeMap;

use crate::artifact::{Archived, Artifact, Image, Pushed};
use crate::error::FormatError;

/// How the annotations of a module begin.
const SAID: &str = "org.kcllang.package.";

/// The annotation with the name of a module.
const NAME: &str = "org.kcllang.package.name";

/// The layer of a module, compressed since KCL 0.12.
const CONTENT: [&str; 2] =
    ["application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"];

/// How modules lie in registries; `pushed` is [`module`], with what the module says.
pub(super) const fn artifact(pushed: fn(&Archived<'_>) -> Result<Pushed, FormatError>) -> Artifact {
    Artifact {
        find,
        label: None,
        in_config: false,
        in_folder: false,
        provenance: None,
        // All of them count for the sum.
        looks_into: |_| true,
        pushed,
    }
}

/// What a module says of itself, and the sum of its files.
pub(super) struct Said {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) sum: String,
}

fn find(image: &Image<'_>) -> Option<Result<usize, String>> {
    image.annotations.get(NAME)?;
    let mut layers = image.layers.iter();
    let found = layers.position(|layer| CONTENT.contains(&layer.media_type));
    Some(found.ok_or_else(|| "it is a KCL module without files".to_owned()))
}

/// What `kcl mod push` makes of the archive of a module. KCL finds the archive in what it has downloaded by the title of the layer.
pub(super) fn module(archived: &Archived<'_>, said: Said) -> Pushed {
    let Said { name, description, sum } = said;
    let [plain, compressed] = CONTENT;
    let (kind, end) = if archived.is_compressed { (compressed, "tgz") } else { (plain, "tar") };
    let title = format!("{name}_{}.{end}", archived.version);
    let version = archived.version.to_owned();
    let said = [("name", name), ("version", version), ("description", description), ("sum", sum)];
    let mut annotations: BTreeMap<String, String> =
        said.into_iter().map(|(key, value)| (format!("{SAID}{key}"), value)).collect();
    if let Some(created) = archived.created {
        annotations.insert("org.opencontainers.image.created".to_owned(), created.to_owned());
    }
    Pushed {
        version: archived.version.to_owned(),
        artifact_type: Some(kind),
        config: ("application/vnd.oci.empty.v1+json", b"{}".to_vec()),
        layer: (kind, [("org.opencontainers.image.title".to_owned(), title)].into()),
        annotations,
        lacks: None,
    }
}
