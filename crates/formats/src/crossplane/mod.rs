//! Packages of Crossplane: `crossplane.yaml`, as its author writes it, and the `package.yaml` of an xpkg in an OCI registry, which
//! holds the same and after it what the package installs.
//!
//! Neither says its version, and its name is not how it is known: the repository and the tag say both.

mod dependency;
mod edit;
mod image;
mod served;

use std::sync::Arc;

use mu_manifest::unversioned;
use mu_provider::{Maintainer, Release};

use crate::error::{Fault, FormatError};
use crate::files::Texts;
use crate::format::{Format, Package, Place, Reading, Seen, once};
use crate::node::{NOTHING, Node};
use crate::range::rewritten;
use crate::reader::Reader;
use crate::shape::Shape::{self, List, Map, Open, Shown, Text, Unused};
use crate::shape::TEXTS;
use crate::unknown::Unknown;

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
    dialect: |_| Arc::new(edit::Packages),
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
    artifact: Some(image::ARTIFACT),
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
        for (index, node) in dependency::list(&root)?.iter().enumerate() {
            let dependency = dependency::read(node)?;
            if seen.depend(&mut release, dependency) {
                release
                    .dependency_kinds
                    .push(dependency::kind(node).unwrap_or_default().to_owned());
                let line = mu_manifest::source::line_of(text, node.span.start);
                places.push(Place { line, index });
            }
        }
        let mut reader = Reader::new(text);
        let mut is_described = false;
        while let Some(document) = reader.document(&served::SHAPE)? {
            if kind(&document).is_none() {
                served::add(&mut release.provides, &document);
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
    [&SHAPE, &served::SHAPE]
}

#[cfg(test)]
mod tests;
