//! KCL modules: `kcl.mod`, in a folder, a Git tree, or an OCI artifact from `kcl mod push`.
//!
//! A version in `kcl.mod` is the lowest accepted one, within its major, as in minimal version selection. KCL
//! itself uses the version of a module that it reads last.
//!
//! In an OCI registry, annotations name a module, and its files are a layer. Its dependencies are only in the layer.

mod edit;
mod lock;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use mu_manifest::edit::is_indirect_comment;
use mu_manifest::reference::{Name, Reference, Version, VersionSpec};
use mu_manifest::source::LineCounter;
use mu_provider::{Dependency, InnerPath, Release};
use toml_edit::{Document, Item, TableLike};

use crate::format::{
    Archived, Artifact, ArtifactManifest, Format, Package, Place, Pushed, Reading, Texts,
};
use crate::node::{Fault, FormatError};
use crate::shape::Shape::{self, Each, Map, Text, Unused};
use crate::shape::{SHOWN, Unknown};

pub use self::lock::{
    LOCK, Locked, ModuleRequirement, Origin, folders, is_summed, lock, locked, needs, sum,
};

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
        for (index, entry) in all(&document)?.into_iter().enumerate() {
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
    ("dependencies", Each(&DEPENDENCY)),
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

/// The keys of an entry of `[dependencies]` that is a table.
static DEPENDENCY: Shape = Map(&[
    ("path", Text),
    ("git", Text),
    ("oci", Text),
    ("reg", Text),
    ("repo", Text),
    ("tag", Text),
    ("commit", Text),
    ("branch", Text),
    ("version", Text),
    ("package", Text),
]);

/// An entry of `[dependencies]`.
#[derive(Debug)]
struct Entry<'t> {
    /// Its local name.
    name: &'t str,
    item: &'t Item,
    /// Its bytes.
    span: Range<usize>,
}

/// Which key of an entry its version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VersionKey {
    /// The entry itself.
    Whole,
    /// One of the entry's keys.
    Named(&'static str),
    /// No key has it; this one would be added.
    Missing(&'static str),
}

/// The entries in the order of the file, those with their own section first, so that a new entry always comes
/// last.
fn all<'t>(document: &'t Document<&str>) -> Result<Vec<Entry<'t>>, Fault> {
    let Some(section) = document.get("dependencies") else { return Ok(Vec::new()) };
    let wrong = || Fault::new(section.span().unwrap_or(0..0), "`dependencies` must be a table");
    let table = section.as_table_like().ok_or_else(wrong)?;
    let entry = |(name, item): (&'t str, &'t Item)| {
        let span = item.span().or_else(|| table.key(name)?.span()).unwrap_or(0..0);
        // KCL calls a folder so.
        InnerPath::name(name).map_err(|error| {
            Fault::new(
                span.clone(),
                format!("a dependency has a name that no module can have: {error}"),
            )
        })?;
        Ok(Entry { name, item, span })
    };
    let mut entries = table.iter().map(entry).collect::<Result<Vec<_>, Fault>>()?;
    entries.sort_by_key(|entry| !entry.item.is_table());
    Ok(entries)
}

/// The name that an entry for a package has, unless its author gives it another one.
fn usual_name(reference: &Reference) -> String {
    match reference.local() {
        Some(folder) => {
            folder.trim_end_matches('/').rsplit('/').next().unwrap_or(folder).to_owned()
        }
        None => reference.name().leaf().to_owned(),
    }
}

impl Entry<'_> {
    /// Its name, if that is not the usual one of its package.
    fn own_name(&self, dependency: &Dependency) -> Option<String> {
        let usual = Reference::parse(dependency.reference()).ok().map(|one| usual_name(&one));
        (usual.as_deref() != Some(self.name)).then(|| self.name.to_owned())
    }

    /// The place behind the entry in its line, if nothing but a comment is there; `None` for entries with a section of their
    /// own, and for those of Git, whose comment could not keep which key their revision had.
    fn comment(&self, text: &str) -> Option<usize> {
        let is_git = self.item.get("git").is_some();
        let end = self.item.span().filter(|_| !self.item.is_table() && !is_git)?.end;
        let rest = text.get(end..)?.lines().next().unwrap_or_default().trim_start();
        (rest.is_empty() || rest.starts_with('#')).then_some(end)
    }

    /// Whether a comment says that only other modules need it.
    fn is_indirect(&self, text: &str) -> bool {
        let comment = self.comment(text).and_then(|at| text.get(at..)?.lines().next());
        comment.is_some_and(is_indirect_comment)
    }

    /// The dependency, and where its version is written; `None` for a folder that was packed into the
    /// module's archive.
    fn read(&self, around: &Reading<'_>) -> Result<(Option<Dependency>, VersionKey), Fault> {
        let (text, key) = match (self.item.as_str(), self.item.as_table_like()) {
            (Some(version), _) => {
                let place = format!("{REGISTRY}/{NAMESPACE}/{}", self.name);
                (format!("oci://{place}{}", at_least(version)), VersionKey::Whole)
            }
            (None, Some(table)) => match self.of_table(table, around)? {
                Some(found) => found,
                None => return Ok((None, VersionKey::Whole)),
            },
            (None, None) => {
                return Err(self.fault("must be a version, or a table with `oci`, `git` or `path`"));
            }
        };
        if let Err(error) = Reference::parse(&text) {
            return Err(self.fault(&format!("has no valid reference: {error}")));
        }
        Ok((Some(Dependency::Reference(text)), key))
    }

    fn of_table(
        &self,
        table: &dyn TableLike,
        around: &Reading<'_>,
    ) -> Result<Option<(String, VersionKey)>, Fault> {
        let text = |key: &str| {
            debug_assert!(DEPENDENCY.reads(key), "`{key}` is read, and not declared");
            match table.get(key) {
                None => Ok(None),
                Some(item) => match item.as_str().map(str::trim) {
                    Some(text) => Ok(Some(text).filter(|text| !text.is_empty())),
                    None => Err(self.fault(&format!("has a `{key}` that is not text"))),
                },
            }
        };
        let version = |keys: &[&'static str]| -> Result<(Option<&str>, VersionKey), Fault> {
            for key in keys {
                if let Some(found) = text(key)? {
                    return Ok((Some(found), VersionKey::Named(key)));
                }
            }
            Ok((None, VersionKey::Missing(keys.first().copied().unwrap_or("tag"))))
        };
        if let Some(folder) = text("path")? {
            return Ok(
                folder_of(folder, around).map(|folder| (folder, VersionKey::Missing("version")))
            );
        }
        // One module of several in one place, by its own name.
        let module = text("package")?;
        if let Some(url) = text("git")? {
            let (revision, key) = version(&["tag", "commit", "branch"])?;
            // Without any, KCL takes the tip of the default branch, and not the newest version. A `version` names no tag: KCL compares
            // it with that of the module that it finds there.
            let revision = match (revision, key) {
                (Some(name), VersionKey::Named(key)) => format!("#{}", revision_of(key, name)),
                _ => "#tip".to_owned(),
            };
            let folder = module.map(|name| format!("/{name}")).unwrap_or_default();
            let url = git_reference(url);
            let place = format!("{}{folder}", url.trim_end_matches('/'));
            return Ok(Some((format!("{place}{revision}"), key)));
        }
        let place = match (text("oci")?, text("repo")?) {
            (Some(url), _) => {
                let place = url.strip_prefix("oci://");
                place
                    .ok_or_else(|| {
                        self.fault(&format!(
                            "has the `oci` `{url}`, which does not begin with `oci://`"
                        ))
                    })?
                    .to_owned()
            }
            (None, Some(repository)) => {
                format!("{}/{repository}", text("reg")?.unwrap_or(REGISTRY))
            }
            (None, None) => {
                // A version alone, written in full.
                match version(&["version"])? {
                    // Under another name than its own.
                    (Some(_), _) => {
                        format!("{REGISTRY}/{NAMESPACE}/{}", module.unwrap_or(self.name))
                    }
                    _ => return Err(self.fault("names no `oci`, `git` or `path`")),
                }
            }
        };
        let (tag, key) = version(&["tag", "version"])?;
        let tag = tag.map(at_least).unwrap_or_default();
        Ok(Some((format!("oci://{}{tag}", place.trim_end_matches('/')), key)))
    }

    fn fault(&self, reason: &str) -> Fault {
        Fault::new(self.span.clone(), format!("the dependency `{}` {reason}", self.name))
    }
}

/// The range for a tag: if it is a version, at least this version within its major.
fn at_least(tag: &str) -> String {
    let tag = tag.trim();
    match Version::parse_lenient(tag) {
        Ok(version) => format!("#{}", VersionSpec::compatible_with(&version)),
        Err(_) if tag.is_empty() => String::new(),
        Err(_) => format!("#{tag}"),
    }
}

/// What the revision under a key of a Git entry is in a reference. For KCL, it is the name of a tag or branch, also where it reads as a
/// range here, such as `0.3` and `1.x`, or as a word for a version.
fn revision_of(key: &str, name: &str) -> String {
    let is_another = match VersionSpec::parse(name) {
        Ok(VersionSpec::Pin(_)) => key == "branch",
        Ok(spec) => !spec.is_pinned(),
        Err(_) => false,
    };
    match (key, is_another) {
        ("tag", true) => format!("refs/tags/{name}"),
        ("branch", true) => format!("refs/heads/{name}"),
        _ => name.to_owned(),
    }
}

/// A URL of Git's as a reference.
pub(crate) fn git_reference(url: &str) -> String {
    match url.split_once("://") {
        Some(("https" | "http", _)) => format!("git+{url}"),
        Some(("file", path)) => format!("git+file://{path}"),
        // Git clones from a folder, too, which is a repository then, and not a package.
        None if url.starts_with('/') => format!("git+file://{url}"),
        _ => url.to_owned(),
    }
}

/// A folder as a reference; `None` if it was packed into the archive of a fetched module.
fn folder_of(folder: &str, around: &Reading<'_>) -> Option<String> {
    let inner = folder.trim_start_matches("./");
    let is_inside = !folder.starts_with('/') && !inner.split('/').any(|part| part == "..");
    match (is_inside, around.is_own) {
        (true, false) => None,
        (true, true) => Some(format!("./{inner}")),
        (false, _) => Some(folder.to_owned()),
    }
}

#[cfg(test)]
mod tests;
