//! Operators of the Operator Lifecycle Manager: file-based catalogs, and what their bundles say.
//!
//! A catalog is a stream of documents, in one file or many: packages, channels, bundles, deprecations. It is read as a whole,
//! because the channels say how the bundles follow each other, and by name. A bundle becomes the line of a version. One that
//! cannot be read is a version that cannot be used, with the reason; the rest of the catalog stays valid.

mod bundle;
mod catalog;
mod document;
mod listed;
mod properties;
mod range;

pub use self::bundle::{head, is_bundle, read};
pub use self::catalog::{CatalogDocuments, Excess, Index, best_release};
pub use self::listed::{Beside, Bundle, Resource, annotations, file_name, resources};
pub use self::range::range;

use std::sync::Arc;

use crate::format::Format;
use crate::format::Unedited;

pub use crate::format::OLM as NAME;

/// The manifest of a bundle.
pub const ANNOTATIONS: &str = "metadata/annotations.yaml";

/// What a bundle says of itself besides.
pub const PROPERTIES_FILE: &str = "metadata/properties.yaml";

/// What a bundle depends on.
pub const DEPENDENCIES: &str = "metadata/dependencies.yaml";

/// The folder of a bundle's resources.
pub const MANIFESTS: &str = "manifests/";

/// The dependencies of bundles.
const REQUIRED: Unedited = Unedited {
    place: "the dependencies of bundles, in `metadata/dependencies.yaml`",
    add: |name| {
        format!(
            "write `- {{type: olm.package, value: {{packageName: {name}, version: RANGE}}}}` there"
        )
    },
};

/// The format of bundles.
pub const FORMAT: Format = Format {
    name: NAME,
    kind: "bundle of OLM",
    manifest: ANNOTATIONS,
    others: &[PROPERTIES_FILE, DEPENDENCIES],
    folder: Some(MANIFESTS),
    is_named: true,
    is_one: Some(is_bundle),
    lenient: false,
    dialect: |_| Arc::new(REQUIRED),
    place_of_word: None,
    packed_by: "`operator-sdk bundle` and `opm` make its image",
    artifact: None,
    head,
    read,
};

/// What is read of a catalog, of the resources of a bundle, and of its metadata.
#[cfg(test)]
pub(crate) fn shapes() -> [&'static crate::shape::Shape; 4] {
    let [annotated, listed] = bundle::shapes();
    [&document::DOCUMENT, &document::RESOURCE, annotated, listed]
}

#[cfg(test)]
mod tests;
