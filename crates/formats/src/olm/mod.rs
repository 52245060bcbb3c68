//! Operators of the Operator Lifecycle Manager: bundles, and file-based catalogs of them.
//!
//! A bundle is a folder: `metadata/annotations.yaml` says of which package it is, the ClusterServiceVersion in `manifests` which
//! version. The names of the files in `manifests` mean nothing: what they are, they say themselves. mu reads bundles and does
//! not edit them.
//!
//! A catalog is a stream of documents, in one file or many: packages, channels, bundles, deprecations. It is read as a whole,
//! because the channels say how the bundles follow each other, and by name. A bundle becomes the line of a version. One that
//! cannot be read is a version that cannot be used, with the reason; the rest of the catalog stays valid.

mod catalog;
mod document;
mod listed;
mod properties;
mod range;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use mu_manifest::reference::Version;
use mu_provider::Release;

use self::document::{RESOURCE, list, text};
use self::properties::{Csv, KIND};
use self::range::{BundleVersions, Entry, upgrades, version_in};
use crate::format::{
    Format, Package, Place, Reading, Texts, Unedited, check_name_segment, once, unique,
};
use crate::node::{Fault, FormatError, Kind, NOTHING, Node};
use crate::reader;
use crate::shape::Shape::{self, Map, Prefixed, Text, Unused};
use crate::shape::{self, Unknown, Values};

pub use self::catalog::{CatalogDocuments, Excess, Index, best_release};
pub use self::listed::{Beside, Bundle, Resource, annotations, file_name, resources};
pub use self::range::range;
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
    let [annotated, listed] = bundle_shapes();
    [&document::DOCUMENT, &document::RESOURCE, annotated, listed]
}

/// What the annotations of bundles start with.
const PREFIX: &str = "operators.operatorframework.io.bundle.";

/// What mu reads of the annotations.
static ANNOTATED: Shape = Map(&[(
    "annotations",
    Prefixed(
        PREFIX,
        &[
            ("operators.operatorframework.io.bundle.package.v1", Text),
            ("operators.operatorframework.io.bundle.channels.v1", Text),
            ("operators.operatorframework.io.bundle.channel.default.v1", Text),
            ("operators.operatorframework.io.bundle.manifests.v1", Unused),
            ("operators.operatorframework.io.bundle.mediatype.v1", Unused),
            ("operators.operatorframework.io.bundle.metadata.v1", Unused),
        ],
    ),
)]);

/// What mu reads of the files beside them.
static LISTED: Shape =
    Map(&[("properties", document::PROPERTIES), ("dependencies", document::PROPERTIES)]);

/// What is read of the annotations of a bundle, and of the files beside them.
#[cfg(test)]
fn bundle_shapes() -> [&'static Shape; 2] {
    [&ANNOTATED, &LISTED]
}

/// Whether `text`, that of a `metadata/annotations.yaml`, is of a bundle.
pub fn is_bundle(text: &str) -> bool {
    text.contains(PREFIX)
}

/// Reads the bundle whose files these are.
///
/// # Errors
///
/// When it names no package or version, has no ClusterServiceVersion or several, or says something that OLM would not take.
pub fn read(files: &Texts, around: &Reading<'_>) -> Result<Package, FormatError> {
    let mut passed = Passed { is_own: around.is_own, all: Vec::new() };
    let mut release = named(files, &mut passed)?;
    let Resources { file, csv, kinds } = read_resources(files, &mut passed)?;
    let wrong = |file: &str, reason: String| FormatError::new(file, "", Fault::new(0..0, reason));
    let in_csv = |reason: String| wrong(&file, reason);
    release.version = version(&csv).map_err(in_csv)?;
    properties::add_release(&mut release, text(csv.last("spec"), "release")).map_err(in_csv)?;
    if let Some(seen) = Csv::from_whole_resource(&csv) {
        seen.fill(&mut release).map_err(in_csv)?;
    }
    release.provides.extend(kinds);
    if let Some(own) = annotation(&csv, "olm.properties") {
        let own = reader::read_json(&own, &document::PROPERTIES, &mut Values::default());
        if let Ok(reader::JsonValue { node: Node { kind: Kind::List(own), .. }, unknown, .. }) = own
        {
            passed.add(unknown).map_err(|fault| in_csv(fault.reason))?;
            add_all(&mut release, &own, |kind| kind.into()).map_err(in_csv)?;
        }
    }
    // Of several mistakes in a file, the first is told.
    for (file, key) in [(PROPERTIES_FILE, "properties"), (DEPENDENCIES, "dependencies")] {
        let Some(found) = files.text(file) else { continue };
        let mut result = Ok(());
        let mut unknown = Ok(());
        document::read(file, found, &LISTED, &mut |value, keys| {
            if unknown.is_ok() {
                unknown = passed.add(keys);
            }
            let all = add_all(&mut release, list(&value, key), |kind| match key {
                "dependencies" => properties::in_dependencies(kind),
                _ => kind.into(),
            });
            if result.is_ok() {
                result = all;
            }
        })?;
        unknown.map_err(|fault| FormatError::new(file, found, fault))?;
        result.map_err(|reason| wrong(file, reason))?;
    }
    unique(&mut release);
    release.unknown.extend(passed.all);
    shape::told_once(&mut release.unknown);
    let spec = csv.last("spec");
    let entry = Entry {
        name: String::new(),
        replaces: text(spec, "replaces"),
        skips: document::texts(spec, "skips"),
        skip_range: annotation(&csv, "olm.skipRange"),
    };
    release.upgrade = upgrades(&[("", &entry)], &BundleVersions::new());
    let places = release.dependencies.get_or_insert_default().iter().enumerate();
    let places = places.map(|(index, _)| Place { line: 1, index }).collect();
    Ok(Package { release, places, ..Package::default() })
}

/// Name and version of a bundle.
///
/// # Errors
///
/// When it has none.
pub fn head(files: &Texts) -> Result<Release, FormatError> {
    let mut passed = Passed::default();
    let mut release = named(files, &mut passed)?;
    let Resources { file, csv, .. } = read_resources(files, &mut passed)?;
    let version = version(&csv).and_then(|version| {
        release.version = version;
        properties::add_release(&mut release, text(csv.last("spec"), "release"))
    });
    version.map_err(|reason| FormatError::new(&file, "", Fault::new(0..0, reason)))?;
    Ok(release)
}

/// The keys that were passed over.
#[derive(Default)]
struct Passed {
    /// Whether the author works on the bundle, so that each is a mistake.
    is_own: bool,
    all: Vec<String>,
}

impl Passed {
    fn add(&mut self, unknown: Unknown) -> Result<(), Fault> {
        self.all.extend(unknown.check(self.is_own)?);
        shape::told_once(&mut self.all);
        Ok(())
    }
}

/// The package and its channels, from the annotations.
fn named(files: &Texts, passed: &mut Passed) -> Result<Release, FormatError> {
    let wrong = |reason: &str| FormatError::new(ANNOTATIONS, "", Fault::new(0..0, reason));
    let found = files.manifest(ANNOTATIONS)?;
    let mut annotations = NOTHING.clone();
    let mut unknown = Ok(());
    document::read(ANNOTATIONS, found, &ANNOTATED, &mut |value, keys| {
        if unknown.is_ok() {
            unknown = passed.add(keys);
        }
        if document::is_there(value.last("annotations")) {
            annotations = value.last("annotations").clone();
        }
    })?;
    unknown.map_err(|fault| FormatError::new(ANNOTATIONS, found, fault))?;
    let annotation = |key: &str| text(&annotations, &format!("{PREFIX}{key}"));
    let name = annotation("package.v1")
        .ok_or_else(|| wrong(&format!("it has no annotation `{PREFIX}package.v1`")))?;
    check_name_segment(&name, "an operator").map_err(|reason| wrong(&reason))?;
    let channels = annotation("channels.v1").unwrap_or_default();
    let mut release = Release {
        name,
        format: Some(NAME.to_owned()),
        default_channel: annotation("channel.default.v1"),
        ..Release::default()
    };
    let channels = channels.split(',').map(str::trim).filter(|channel| !channel.is_empty());
    release.channels = channels.map(str::to_owned).collect();
    once(&mut release.channels, String::as_str);
    let default = release.default_channel.clone();
    release.channels.sort_by_key(|channel| Some(channel) != default.as_ref());
    Ok(release)
}

/// What `manifests` says of a bundle.
struct Resources<'t> {
    /// The ClusterServiceVersion, and its file.
    file: String,
    csv: Node<'t>,
    /// Every version of the kinds that it brings.
    kinds: Vec<String>,
}

/// The kind of a resource that defines a kind.
const DEFINITION: &str = "CustomResourceDefinition";

/// Reads the resources of a bundle.
fn read_resources<'t>(files: &'t Texts, passed: &mut Passed) -> Result<Resources<'t>, FormatError> {
    let mut found: Vec<(String, Node<'_>)> = Vec::new();
    let mut kinds = Vec::new();
    let within = files.0.iter().filter(|(name, _)| name.starts_with(MANIFESTS));
    for (name, content) in within {
        // Most of a bundle's resources are long, and none of these kinds.
        if !content.contains(KIND) && !content.contains(DEFINITION) {
            continue;
        }
        let mut wrong = None;
        document::read(name, content, &RESOURCE, &mut |value, unknown| {
            let is_csv = Csv::from_whole_resource(&value).is_some();
            if !is_csv && text(&value, "kind").is_none_or(|kind| kind != DEFINITION) {
                return;
            }
            let read = passed.add(unknown).and_then(|()| {
                match is_csv {
                    true => found.push((name.clone(), value)),
                    false => {
                        kinds.extend(defined(&value).map_err(|reason| Fault::new(0..0, reason))?)
                    }
                }
                Ok(())
            });
            if let Err(fault) = read {
                wrong.get_or_insert(fault);
            }
        })?;
        if let Some(fault) = wrong {
            return Err(FormatError::new(name, content, fault));
        }
    }
    let wrong = |reason: &str| FormatError::new(ANNOTATIONS, "", Fault::new(0..0, reason));
    match found.len() {
        1 => {
            let (file, csv) = found.remove(0);
            Ok(Resources { file, csv, kinds })
        }
        0 => Err(wrong("the bundle has no ClusterServiceVersion in `manifests`")),
        _ => Err(wrong("the bundle has more than one ClusterServiceVersion in `manifests`")),
    }
}

/// The versions of the kind that a resource defines; those of the first format have only one.
fn defined(definition: &Node<'_>) -> Result<Vec<String>, String> {
    let spec = definition.last("spec");
    let kind = text(spec.last("names"), "kind");
    let (Some(group), Some(kind)) = (text(spec, "group"), kind) else { return Ok(Vec::new()) };
    let listed = list(spec, "versions").iter().filter_map(|version| text(version, "name"));
    let versions: BTreeSet<String> = listed.chain(text(spec, "version")).collect();
    let named = |version| properties::named(&group, version, &kind, "olm.gvk");
    versions.iter().map(|version| named(version)).collect()
}

fn version(csv: &Node<'_>) -> Result<String, String> {
    let said = text(csv.last("spec"), "version");
    let named = || version_in(&text(csv.last("metadata"), "name")?);
    let version = said.or_else(named).ok_or("the ClusterServiceVersion has no `spec.version`")?;
    match Version::parse(&version) {
        Ok(_) => Ok(version),
        Err(_) => Err(format!("`{version}` is not a version")),
    }
}

fn annotation(csv: &Node<'_>, key: &str) -> Option<String> {
    text(csv.last("metadata").last("annotations"), key)
}

fn add_all(
    release: &mut Release,
    all: &[Node<'_>],
    meant: impl for<'k> Fn(&'k str) -> Cow<'k, str>,
) -> Result<(), String> {
    for property in all {
        if let (Some(kind), Some(value)) = (text(property, "type"), property.written("value")) {
            properties::add(release, &meant(&kind), value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
