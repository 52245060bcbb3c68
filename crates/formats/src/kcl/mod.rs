//! KCL modules: `kcl.mod`, in a folder, a Git tree, or an OCI artifact from `kcl mod push`.
//!
//! A version in `kcl.mod` is the lowest accepted one, within its major, as in minimal version selection. KCL
//! itself uses the version of a module that it reads last.
//!
//! In an OCI registry, annotations name a module, and its files are a layer. Its dependencies are only in the layer.

mod dependency;
mod edit;
mod lock;

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_manifest::reference::{Name, Version};
use mu_manifest::source::LineCounter;
use mu_provider::Release;
use toml_edit::{Document, Item};

pub(crate) use self::dependency::git_reference;
pub use self::lock::{
    LOCK, Locked, ModuleRequirement, Origin, folders, is_summed, lock, locked, needs, sum,
};

use crate::error::{Fault, FormatError};
use crate::format::{
    Archived, Artifact, ArtifactManifest, Format, Package, Place, Pushed, Reading, Texts,
};
use crate::shape::Shape::{self, Each, Map, Text, Unused};
use crate::shape::{SHOWN, Unknown};

/// The format of KCL's modules.
pub const FORMAT: Format = Format {
    name: "kcl",
    kind: "KCL module",
    manifest: MODULE,
    others: &[],
    folder: None,
    is_named: true,
    is_one: None,
    lenient: true,
    artifact: Some(artifact(pushed)),
    dialect: |_| Arc::new(edit::Modules),
    place_of_word: Some(|name| format!("oci://{REGISTRY}/{NAMESPACE}/{name}")),
    packed_by: "`kcl mod push` puts it into an OCI registry",
    head,
    read,
};

/// The manifest of a module.
pub const MODULE: &str = "kcl.mod";

/// The registry of modules that are named by a version alone, or by a repository without a host.
pub const REGISTRY: &str = "ghcr.io";

/// The namespace of modules that are named by a version alone.
pub const NAMESPACE: &str = "kcl-lang";

/// Reads the module whose files these are.
///
/// # Errors
///
/// When there is no `kcl.mod`, it is not TOML, or its content makes no sense.
pub fn read(files: &Texts, around: &Reading<'_>) -> Result<Package, FormatError> {
    files.read(MODULE, |text| {
        let document = parse(text)?;
        let unknown = Unknown::in_table(document.as_table(), &SHAPE);
        let mut release = release(&document)?;
        release.unknown = unknown.check(around.is_own)?;
        let table = document.get("package");
        let for_people = |key: &str| Some(table?.get(key)?.as_str()?.trim().to_owned());
        release.description = for_people("description").filter(|text| !text.is_empty());
        let (mut places, mut names, mut indirect) = (Vec::new(), Vec::new(), Vec::new());
        let dependencies = release.dependencies.get_or_insert_default();
        let mut lines = LineCounter::new(text);
        for (index, entry) in dependency::all(&document)?.into_iter().enumerate() {
            let line = lines.line_at(entry.span.start);
            let (dependency, _) = entry.read(around)?;
            if let Some(dependency) = dependency.filter(|one| !dependencies.contains(one)) {
                names.push(entry.own_name(&dependency));
                if entry.is_indirect(text) {
                    indirect.push(dependencies.len());
                }
                dependencies.push(dependency);
                places.push(Place { line, index });
            } else if !around.is_own {
                release.bundled.push(entry.name.to_owned());
            }
        }
        Ok(Package { release, places, names, indirect })
    })
}

fn pushed(archived: &Archived<'_>) -> Result<Pushed, FormatError> {
    let texts = archived.texts();
    let own = head(&texts)?;
    let described = read(&texts, &Reading::default()).ok();
    let description = described.and_then(|package| package.release.description);
    let name = if own.name.is_empty() { archived.name.to_owned() } else { own.name };
    let description = description.unwrap_or_default();
    Ok(module(archived, Said { name, description, sum: sum(archived.files) }))
}

/// The keys of `kcl.mod`.
static SHAPE: Shape = Map(&[
    (
        "package",
        Map(&[
            ("name", Text),
            ("version", Text),
            ("description", SHOWN),
            ("edition", Unused),
            ("include", Unused),
            ("exclude", Unused),
        ]),
    ),
    ("dependencies", Each(&dependency::SHAPE)),
    ("profile", Unused),
    // Of the first versions of KCL.
    ("build", Unused),
    ("expected", Unused),
    ("root", Unused),
]);

/// Name and version of a module. A module that nobody publishes needs neither: then both are empty.
///
/// # Errors
///
/// When it is not TOML, or one of them makes no sense.
pub fn head(files: &Texts) -> Result<Release, FormatError> {
    files.read(MODULE, |text| release(&parse(text)?))
}

/// The longest file of a module, in bytes: what TOML becomes takes a hundred times its memory, and people write these files.
const LONGEST: usize = 1 << 20;

fn parse(text: &str) -> Result<Document<&str>, Fault> {
    if text.len() > LONGEST {
        return Err(Fault::excess(0..0, format!("it is longer than {LONGEST} bytes")));
    }
    Document::parse(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        Fault::new(error.span().unwrap_or(0..0), message)
    })
}

fn release(document: &Document<&str>) -> Result<Release, Fault> {
    let package = document.get("package");
    let name = package.and_then(|package| package.get("name"));
    let wrong = |item: &Item, reason: String| Fault::new(item.span().unwrap_or(0..0), reason);
    if let Some(name) = name {
        let text = name.as_str().ok_or_else(|| wrong(name, "`name` must be text".to_owned()))?;
        if text.contains('/') || text.ends_with(".git") || Name::parse(text).is_err() {
            return Err(wrong(name, format!("`{text}` is not the name of a module")));
        }
    }
    let mut release = Release {
        name: name.and_then(Item::as_str).unwrap_or_default().to_owned(),
        format: Some(FORMAT.name.to_owned()),
        versions: Some("lenient".to_owned()),
        ..Release::default()
    };
    if let Some(version) = package.and_then(|package| package.get("version")) {
        let text = version.as_str().map(str::trim).ok_or_else(|| {
            let written = version.span().and_then(|span| document.raw().get(span));
            let written = written.unwrap_or_default();
            let is_number = version.is_integer() || version.is_float();
            wrong(
                version,
                match is_number {
                    true => format!("`version` must be text: write `version = \"{written}\"`"),
                    false => format!("`version` must be text, and is `{written}`"),
                },
            )
        })?;
        if Version::parse_lenient(text).is_err() {
            return Err(wrong(version, format!("`{text}` is not a version")));
        }
        text.clone_into(&mut release.version);
    }
    Ok(release)
}

/// What is read of `kcl.mod` and of its lock.
#[cfg(test)]
pub(crate) fn shapes() -> [&'static crate::shape::Shape; 2] {
    [&SHAPE, &lock::LOCKED]
}

#[cfg(test)]
mod tests;

/// How the annotations of a module begin.
const SAID: &str = "org.kcllang.package.";

/// The annotation with the name of a module.
const NAME: &str = "org.kcllang.package.name";

/// The layer of a module, compressed since KCL 0.12.
const CONTENT: [&str; 2] =
    ["application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"];

/// How modules lie in registries; `pushed` is [`module`], with what the module says.
const fn artifact(pushed: fn(&Archived<'_>) -> Result<Pushed, FormatError>) -> Artifact {
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
struct Said {
    name: String,
    description: String,
    sum: String,
}

fn find(image: &ArtifactManifest<'_>) -> Option<Result<usize, String>> {
    image.annotations.get(NAME)?;
    let mut layers = image.layers.iter();
    let found = layers.position(|layer| CONTENT.contains(&layer.media_type));
    Some(found.ok_or_else(|| "it is a KCL module without files".to_owned()))
}

/// What `kcl mod push` makes of the archive of a module. KCL finds the archive in what it has downloaded by the title of the layer.
fn module(archived: &Archived<'_>, said: Said) -> Pushed {
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
