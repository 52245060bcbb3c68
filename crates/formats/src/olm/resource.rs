//! The resources that a catalog has of a bundle which is in no image, and the files that they become.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_provider::Release;

use super::document::{self, DOCUMENT, RESOURCE, list, text};
use crate::json;
use crate::node::Node;
use crate::shape::Values;

/// A resource that a catalog has of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// Its bytes.
    Whole(Vec<u8>),
    /// The path of its file, as seen from the folder of the file of the catalog.
    File(String),
}

/// The resources that `text`, a part of a catalog, has of a bundle of a package, as far as it can be read.
pub fn resources(text: &str, package: &str, bundle: &str) -> Vec<Resource> {
    let mut found = Vec::new();
    let mut take = |value: Node<'_>, _| {
        let is = |key: &str, wanted: &str| document::text(&value, key).as_deref() == Some(wanted);
        if is("schema", "olm.bundle") && is("package", package) && is("name", bundle) {
            let properties = list(&value, "properties").iter();
            let objects = properties.filter(|property| {
                document::text(property, "type").as_deref() == Some("olm.bundle.object")
            });
            found.extend(objects.filter_map(|property| object(property.last("value"))));
        }
    };
    document::each(text, &DOCUMENT, &mut Values::default(), &mut take, &mut |_, _| {});
    found
}

/// The resource that a property of the type `olm.bundle.object` holds or refers to.
pub(super) fn object(value: &Node<'_>) -> Option<Resource> {
    if let Some(path) = value.last("ref").scalar() {
        return Some(Resource::File(path.to_owned()));
    }
    STANDARD.decode(value.last("data").scalar()?).ok().map(Resource::Whole)
}

/// The name of the file for a resource, which none of `taken` has: its kind and its name.
pub fn file_name(resource: &[u8], taken: &mut BTreeSet<String>) -> String {
    let resource = String::from_utf8_lossy(resource);
    let read = json::read(&resource, &RESOURCE, &mut Values::default());
    let parts = match &read {
        Ok(json::JsonValue { node, .. }) => {
            [text(node.last("metadata"), "name"), text(node, "kind")]
        }
        Err(_) => [None, None],
    };
    let plain = |text: String| {
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '-';
        let letters = text.chars().map(|letter| if is_plain(letter) { letter } else { '_' });
        letters.collect::<String>().to_ascii_lowercase().trim_matches('.').to_owned()
    };
    let stem: Vec<String> = parts.into_iter().flatten().map(plain).collect();
    let stem: String = stem.join(".").chars().take(100).collect();
    let stem = if stem.is_empty() { "resource".to_owned() } else { stem };
    let names = (1..).map(|number| match number {
        1 => format!("{stem}.json"),
        number => format!("{stem}-{number}.json"),
    });
    let name = names.into_iter().find(|name| !taken.contains(name)).expect("numbers do not end");
    taken.insert(name.clone());
    name
}

/// The `metadata/annotations.yaml` of a bundle whose resources are in a catalog.
pub fn annotations(release: &Release) -> String {
    let mut text = "annotations:\n".to_owned();
    let prefix = "operators.operatorframework.io.bundle";
    let default = release.channels.first().cloned().unwrap_or_default();
    for (key, value) in [
        ("mediatype.v1", "registry+v1"),
        ("manifests.v1", "manifests/"),
        ("metadata.v1", "metadata/"),
        ("package.v1", &release.name),
        ("channels.v1", &release.channels.join(",")),
        ("channel.default.v1", &default),
    ] {
        text.push_str(&format!("  {prefix}.{key}: {value:?}\n"));
    }
    text
}
