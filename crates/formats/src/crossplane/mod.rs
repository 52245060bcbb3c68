//! Packages of Crossplane: `crossplane.yaml`, as its author writes it, and the `package.yaml` of an xpkg in an OCI registry, which
//! holds the same and after it what the package installs.
//!
//! Neither says its version, and its name is not how it is known: the repository and the tag say both.
//!
//! An xpkg is an image, one layer of which holds the package. The others are for its runtime. An annotation of the layer says
//! which it is, or a label of the image; where neither does, the last layer with a manifest is it.
//!
//! `add_kinds` says which kinds a package brings with it: those of its custom resources, and of the composite ones that it defines.

mod dependency;

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_manifest::source::LineCounter;
use mu_manifest::{Capability, unversioned};
use mu_provider::{Dependency, Maintainer, Release};
use serde_json::json;

use crate::format::{
    Archived, Artifact, ArtifactManifest, Format, Package, Place, Pushed, Reading, Seen, Texts,
    once,
};
use crate::node::{Fault, FormatError, NOTHING, Node};
use crate::range::rewritten;
use crate::reader::Reader;
use crate::shape::Shape::{self, List, Map, Open, Shown, Text, Unused};
use crate::shape::{TEXTS, Unknown};

/// The format of packages as their authors write them.
pub const FORMAT: Format = Format {
    name: "crossplane",
    kind: "Crossplane package",
    manifest: AUTHORED,
    others: &[],
    lenient: false,
    folder: None,
    is_named: false,
    is_one: Some(is_authored),
    dialect: |_| Arc::new(dependency::Packages),
    place_of_word: None,
    packed_by: "`crossplane xpkg build` makes its package, and `crossplane xpkg push` publishes it",
    artifact: None,
    head: |files| head(files, AUTHORED),
    read: |files, around| read(files, AUTHORED, around),
};

/// The format of packages as they are in registries.
pub const PACKED: Format = Format {
    manifest: PUBLISHED,
    is_one: Some(is_published),
    artifact: Some(ARTIFACT),
    head: |files| head(files, PUBLISHED),
    read: |files, around| read(files, PUBLISHED, around),
    ..FORMAT
};

/// The manifest that an author writes.
pub const AUTHORED: &str = "crossplane.yaml";

/// The manifest of a package in a registry.
pub const PUBLISHED: &str = "package.yaml";

/// The group of the kinds that Crossplane's package manifests are of.
const GROUP: &str = "meta.pkg.crossplane.io/";

/// The kinds of packages.
const KINDS: [&str; 3] = ["Configuration", "Function", "Provider"];

/// The fact of the runtime that `spec.crossplane.version` is about.
const CROSSPLANE: &str = "crossplane";

/// What mu reads of the manifest of a package.
static SHAPE: Shape = Map(&[
    ("apiVersion", Text),
    ("kind", Text),
    (
        "metadata",
        Open(&[
            ("name", Text),
            (
                "annotations",
                Shown(&Open(&[
                    ("meta.crossplane.io/description", Text),
                    ("meta.crossplane.io/license", Text),
                    ("meta.crossplane.io/maintainer", Text),
                    ("meta.crossplane.io/source", Text),
                ])),
            ),
        ]),
    ),
    (
        "spec",
        Map(&[
            ("crossplane", Map(&[("version", Text)])),
            ("dependsOn", List(&dependency::SHAPE)),
            ("replaces", TEXTS),
            ("capabilities", Unused),
            // Of a provider.
            ("controller", Unused),
            // Of a function.
            ("image", Unused),
        ]),
    ),
    // Kubernetes has it on everything.
    ("status", Unused),
]);

/// Whether a text is a `crossplane.yaml`, and not a resource of another kind in a file of that name. What cannot be read is one with
/// a mistake; bytes that are not UTF-8 arrive here as replacement characters.
fn is_authored(text: &str) -> bool {
    text.contains(char::REPLACEMENT_CHARACTER)
        || described(text).map_or(true, |(root, _)| kind(&root).is_some())
}

/// Whether a text is a `package.yaml`. Many tools have files of that name, so what cannot be read is one only if it speaks of
/// Crossplane's packages.
fn is_published(text: &str) -> bool {
    described(text).map_or_else(|_| text.contains(GROUP), |(root, _)| kind(&root).is_some())
}

/// The kind of package that the text of a manifest describes: `Configuration`, `Function` or `Provider`; `None` if it is not such
/// a manifest.
pub fn kind_of(text: &str) -> Option<String> {
    kind(&described(text).ok()?.0).map(str::to_owned)
}

/// What is read of a dependency, the keys that can have its package, and what they mean where its author works on them.
pub(crate) use self::dependency::{KEYS, SHAPE as DEPENDENCY};

/// Reads a dependency that its author works on.
pub(crate) fn dependency(node: &Node<'_>) -> Result<Dependency, Fault> {
    dependency::read(node, true)
}

/// What to write for a package that the manifest of an author names without its registry.
pub fn hint_of_registry(name: &str) -> String {
    format!(
        "Crossplane has no registry of its own since 2.0; until then it was `xpkg.upbound.io`, and `xpkg.crossplane.io` in 1.20: write `xpkg.upbound.io/{name}`, or another registry"
    )
}

/// The document that describes the package, with the keys in it that the format does not have.
fn meta(text: &str) -> Result<(Node<'_>, Unknown), Fault> {
    let (root, unknown) = described(text)?;
    match root.is_map() {
        true => Ok((root, unknown)),
        false => Err(Fault::new(0..0, "the file is empty")),
    }
}

/// The document that describes the package, wherever it stands among those of a text; if none does, the first one that says anything.
fn described(text: &str) -> Result<(Node<'_>, Unknown), Fault> {
    let mut reader = Reader::new(text);
    let mut other = None;
    while let Some(document) = reader.document(&SHAPE)? {
        let unknown = std::mem::take(&mut reader.unknown);
        if kind(&document).is_some() {
            return Ok((document, unknown));
        }
        if document.is_map() {
            other.get_or_insert((document, unknown));
        }
    }
    Ok(other.unwrap_or_else(|| (NOTHING.clone(), Unknown::default())))
}

/// The kind of package that a document describes.
fn kind<'n>(root: &'n Node<'_>) -> Option<&'n str> {
    let (version, _) = root.text("apiVersion").ok()??;
    let (kind, _) = root.text("kind").ok()??;
    (version.starts_with(GROUP) && KINDS.contains(&kind)).then_some(kind)
}

fn read(files: &Texts, name: &str, around: &Reading<'_>) -> Result<Package, FormatError> {
    files.read(name, |text| {
        let (root, unknown) = meta(text)?;
        let mut release = release(&root)?;
        release.unknown = unknown.check(around.is_own)?;
        let mut places = Vec::new();
        release.dependencies.get_or_insert_default();
        let mut seen = Seen::default();
        let mut lines = LineCounter::new(text);
        for (index, node) in dependency::list(&root)?.iter().enumerate() {
            let dependency = dependency::read(node, around.is_own)?;
            if seen.depend(&mut release, dependency) {
                release
                    .dependency_kinds
                    .push(dependency::kind(node).unwrap_or_default().to_owned());
                let line = lines.line_at(node.span.start);
                places.push(Place { line, index });
            }
        }
        let mut reader = Reader::new(text);
        let mut is_described = false;
        while let Some(document) = reader.document(&DEFINITION)? {
            if kind(&document).is_none() {
                add_kinds(&mut release.provides, &document);
            } else if std::mem::replace(&mut is_described, true) {
                let reason = format!("a second document of `{GROUP}…`: a package has one");
                return Err(Fault::new(document.span, reason));
            }
        }
        once(&mut release.provides, String::as_str);
        Ok(Package { release, places, ..Package::default() })
    })
}

fn head(files: &Texts, name: &str) -> Result<Release, FormatError> {
    files.read(name, |text| release(&meta(text)?.0))
}

/// What a document says of its package, except for its dependencies.
fn release(root: &Node<'_>) -> Result<Release, Fault> {
    if kind(root).is_none() {
        return Err(root.fault(format!(
            "this is not a package of Crossplane: a `kind` of `{GROUP}…` is {}",
            KINDS.join(", ")
        )));
    }
    let metadata = root.get("metadata")?;
    let named = metadata.map(|metadata| metadata.text("name")).transpose()?.flatten();
    let (name, at) = named.ok_or_else(|| root.fault("the package has no `name` in `metadata`"))?;
    if name.contains('/') || mu_manifest::reference::Name::parse(name).is_err() {
        return Err(at.fault(format!("`{name}` is not the name of a package")));
    }
    let annotations = metadata.map(|metadata| metadata.get("annotations")).transpose()?.flatten();
    let said = |key: &str| {
        let text = annotations?.text(&format!("meta.crossplane.io/{key}")).ok()??.0;
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(words.join(" "))
    };
    let mut release = Release {
        name: name.to_owned(),
        format: Some(FORMAT.name.to_owned()),
        kind: kind(root).map(str::to_owned),
        description: said("description"),
        license: said("license"),
        website: said("source"),
        maintainers: said("maintainer").map(Maintainer::Text).into_iter().collect(),
        ..Release::default()
    };
    let spec = root.get("spec")?;
    let runtime = spec.map(|spec| spec.get("crossplane")).transpose()?.flatten();
    if let Some((text, node)) = runtime.map(|node| node.text("version")).transpose()?.flatten() {
        let range = rewritten(text);
        let range = range.map_err(|reason| node.fault(format!("the range `{text}` {reason}")))?;
        release.constraints.insert(CROSSPLANE.to_owned(), range.text);
    }
    for node in spec.map(|spec| spec.list("replaces")).transpose()?.unwrap_or_default() {
        let old = node.scalar().unwrap_or_default();
        unversioned(old)
            .map_err(|_| node.fault(format!("`replaces` names no package by `{old}`")))?;
        release.replaces.push(old.to_owned());
    }
    Ok(release)
}

/// What is read of the manifest of a package, and of the definition of a kind.
#[cfg(test)]
pub(crate) fn shapes() -> [&'static Shape; 2] {
    [&SHAPE, &DEFINITION]
}

#[cfg(test)]
mod tests;

/// The annotation of a layer that says what it is, and what it says of the package.
const LAYER: (&str, &str) = ("io.crossplane.xpkg", "base");

/// How the label of an image begins that says what a layer is, and what it says of the package.
const LABEL: (&str, &str) = ("io.crossplane.xpkg:", "base");

/// The layer of a package, compressed or not.
const CONTENT: [&str; 2] =
    ["application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"];

/// The kinds of packages that an image runs, which other layers have.
const RUN: [&str; 2] = ["Function", "Provider"];

const ARTIFACT: Artifact = Artifact {
    find,
    label: Some(LABEL),
    in_config: false,
    in_folder: false,
    provenance: None,
    looks_into: |path| path == PUBLISHED,
    pushed,
};

fn find(image: &ArtifactManifest<'_>) -> Option<Result<usize, String>> {
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

/// What mu reads of the definition of a kind.
static DEFINITION: Shape = Open(&[
    ("apiVersion", Text),
    ("kind", Text),
    (
        "spec",
        Open(&[
            ("group", Text),
            ("names", Open(&[("kind", Text)])),
            ("claimNames", Open(&[("kind", Text)])),
            ("versions", List(&Open(&[("name", Text), ("served", Text)]))),
        ]),
    ),
]);

/// Adds the kinds that a document defines, in each version that is served.
fn add_kinds(provides: &mut Vec<String>, document: &Node<'_>) {
    for found in kinds(document).into_iter().flatten() {
        // Written as capabilities are; nobody can require one that is not valid.
        if let Ok(capability) = Capability::parse(&found) {
            provides.push(capability.to_string());
        }
    }
}

fn kinds(document: &Node<'_>) -> Option<Vec<String>> {
    let (version, _) = document.text("apiVersion").ok()??;
    let (kind, _) = document.text("kind").ok()??;
    let is_definition = match kind {
        "CustomResourceDefinition" => version.starts_with("apiextensions.k8s.io/"),
        "CompositeResourceDefinition" => version.starts_with("apiextensions.crossplane.io/"),
        _ => false,
    };
    let spec = document.get("spec").ok()?.filter(|_| is_definition)?;
    let (group, _) = spec.text("group").ok()??;
    let name = |key: &str| Some(spec.get(key).ok()??.text("kind").ok()??.0.to_owned());
    let names: Vec<String> = ["names", "claimNames"].into_iter().filter_map(name).collect();
    let served = |node: &&Node<'_>| node.flag("served").unwrap_or(false);
    let versions = spec.list("versions").ok()?.iter().filter(served);
    let versions = versions.filter_map(|node| Some(node.text("name").ok()??.0));
    let all = versions
        .flat_map(|version| names.iter().map(move |kind| format!("{group}/{version}/{kind}")));
    Some(all.collect())
}
