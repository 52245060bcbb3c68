//! A bundle as a catalog lists it: its document there, and the resources that the catalog has of one which is in no image, with
//! the files that they become.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_manifest::reference::Version;
use mu_provider::{ArchiveDigest, Release};

use super::NAME;
use super::document::DOCUMENT;
use super::document::{self, RESOURCE, list, text};
use super::properties::Csv;
use super::properties::{self, identity};
use super::range::version_in;
use crate::format::unique;
use crate::node::Node;
use crate::shape::{Unknown, Values};
use crate::{reader, shape};

/// A bundle of a catalog.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// Its name, such as `etcdoperator.v0.9.4`.
    pub name: String,
    /// What it says itself.
    pub release: Release,
}

/// Reads a file that a catalog refers to, as seen from the folder of the file that does; `None` if it is not there.
pub type Beside<'a> = dyn FnMut(&str) -> Option<Vec<u8>> + 'a;

/// A bundle; `None` if nobody could name its version.
pub(super) fn listed_bundle(
    value: &Node<'_>,
    unknown: Unknown,
    package: &str,
    beside: &mut Beside<'_>,
) -> Option<Bundle> {
    let name = text(value, "name")?;
    let own = |property: &&Node<'_>| text(property, "type").as_deref() == Some("olm.package");
    let of = |property: &Node<'_>| identity(property.last("value"));
    let identity = list(value, "properties").iter().filter(own).find_map(of);
    let version = match &identity {
        Some(identity) => identity.version.clone(),
        None => version_in(&name)?,
    };
    let mut release = Release {
        name: package.to_owned(),
        version,
        format: Some(NAME.to_owned()),
        locator: Some(name.clone()),
        ..Release::default()
    };
    // The first of the reasons that apply is told.
    let read = match (unknown.check(false), identity) {
        (Err(fault), _) => Err(fault.reason),
        (_, None) => Err(format!("`{name}` has no property `olm.package`")),
        (_, Some(identity)) if identity.package != package => {
            Err(format!("`{name}` is of the package `{}`", identity.package))
        }
        (Ok(unknown), Some(identity)) => {
            release.unknown = unknown;
            fill(&mut release, identity.release, value, beside)
        }
    };
    if let Err(reason) = read {
        let known = Release {
            name: release.name,
            version: release.version,
            versioning: release.versioning,
            app_version: release.app_version,
            format: release.format,
            locator: release.locator,
            ..Release::default()
        };
        let dependencies = Some(Vec::new());
        release = Release { unusable: Some(reason), dependencies, ..known };
    }
    Some(Bundle { name, release })
}

fn fill(
    release: &mut Release,
    revision: Option<String>,
    value: &Node<'_>,
    beside: &mut Beside<'_>,
) -> Result<(), String> {
    if Version::parse(&release.version).is_err() || release.version.starts_with('v') {
        return Err(format!("`{}` is not a version", release.version));
    }
    properties::add_release(release, revision)?;
    release.dependencies = Some(Vec::new());
    // The resources themselves count where there is no excerpt of them.
    let mut excerpt = None;
    let mut objects = Vec::new();
    for property in list(value, "properties") {
        let (Some(kind), Some(value)) = (text(property, "type"), property.written("value")) else {
            continue;
        };
        match kind.as_str() {
            "olm.csv.metadata" => excerpt = Some(value),
            "olm.bundle.object" => objects.push(value),
            kind => properties::add(release, kind, value)?,
        }
    }
    match excerpt.map(Csv::from_metadata_property) {
        Some(csv) => csv.fill(release)?,
        None => whole(release, &objects, beside)?,
    }
    unique(release);
    if let Some(image) = text(value, "image") {
        if let Some((_, digest)) = image.split_once('@') {
            let digest: ArchiveDigest = digest
                .parse()
                .map_err(|_| format!("the image `{image}` has a digest that is not SHA-256"))?;
            release.archive = Some(digest.to_string());
        }
        release.urls = vec![format!("oci://{image}")];
    }
    Ok(())
}

/// Adds what the ClusterServiceVersion says that is among the resources which a catalog has of a bundle.
fn whole(
    release: &mut Release,
    objects: &[&Node<'_>],
    beside: &mut Beside<'_>,
) -> Result<(), String> {
    for value in objects {
        let bytes = match object(value) {
            Some(Resource::Whole(bytes)) => Some(bytes),
            Some(Resource::File(path)) => beside(&path),
            None => None,
        };
        let mut filled = None;
        let mut take = |value: Node<'_>, unknown: Unknown| {
            if let (None, Some(csv)) = (&filled, Csv::from_whole_resource(&value)) {
                let unknown = unknown.check(false).map_err(|fault| fault.reason);
                filled = Some(unknown.and_then(|unknown| {
                    release.unknown.extend(unknown);
                    shape::told_once(&mut release.unknown);
                    csv.fill(release)
                }));
            }
        };
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        // What cannot be read says nothing: the resource is for the cluster.
        let _ = document::read("", &text, &RESOURCE, &mut take);
        if let Some(filled) = filled {
            return filled;
        }
    }
    Ok(())
}

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
    let read = reader::read_json(&resource, &RESOURCE, &mut Values::default());
    let parts = match &read {
        Ok(reader::JsonValue { node, .. }) => {
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
