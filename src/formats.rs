//! What makes a folder a package: a manifest of mu's own, or of another ecosystem.
//!
//! mu's own manifest takes precedence. The crate `mu-formats` reads foreign manifests; this module finds
//! their files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mu_formats::helm::{self, HelmRepositoryAliases, Needs};
use mu_formats::{
    DeclaredImage, FORMATS, Format, FormatError, Reading, Texts, crossplane, images_in_resources,
    images_of_chart, kcl, olm,
};
use mu_provider::Release;

use crate::env::Environment;
use crate::fs;
use crate::manifest::edit::{Change, EditError, Editor};
use crate::manifest::source::{MAX_BYTES, New, SourceError, layout};
use crate::manifest::{
    Head, JSON_NAME, Loaded, Manifest, ManifestError, YAML_NAME, read_bounded_text,
};
use crate::reference::{Defaults, Name, Reference};

/// The names of all manifests, in order of precedence.
pub fn manifest_names() -> impl Iterator<Item = &'static str> {
    [YAML_NAME, JSON_NAME].into_iter().chain(FORMATS.iter().map(|format| format.manifest))
}

/// The format whose manifest has this file name.
pub fn format_of_manifest(path: &Path) -> Option<&'static Format> {
    FORMATS.iter().find(|format| path.ends_with(format.manifest))
}

/// The folder of the package whose manifest this file is.
pub fn folder_of(path: &Path) -> Option<&Path> {
    let manifest = format_of_manifest(path).map_or("", |format| format.manifest);
    path.ancestors().nth(Path::new(manifest).components().count().max(1))
}

/// The manifest of a folder, mu's own or a foreign one.
pub fn locate_manifest(folder: &Path) -> Result<Option<PathBuf>, ManifestError> {
    Ok(Manifest::locate(folder)?.or_else(|| foreign(folder).map(|(_, path)| path)))
}

/// Reads the manifest of a folder, if there is one.
pub fn load(folder: &Path, around: &Reading<'_>) -> Result<Option<Loaded>, ManifestError> {
    match Manifest::load(folder)? {
        None => foreign(folder).map(|(_, path)| load_manifest(&path, around)).transpose(),
        own => Ok(own),
    }
}

/// Reads the manifest at `path`, mu's own or a foreign one.
pub fn load_manifest(path: &Path, around: &Reading<'_>) -> Result<Loaded, ManifestError> {
    let Some(format) = format_of_manifest(path) else { return Manifest::load_file(path) };
    let texts = texts(format, path)?;
    let text = texts.0.get(format.manifest).cloned().unwrap_or_default();
    // What was packed carries what its author had there; nobody else can add it.
    let carried = if around.is_own { carried(path)? } else { None };
    let around = Reading { carried: carried.as_ref(), ..*around };
    let manifest = read(format, path, &texts, &around)?;
    Ok(Loaded { manifest, path: path.to_owned(), text, warnings: Vec::new() })
}

/// The names of what lies where a chart carries others inside, if the manifest at `path` is a chart's.
fn carried(path: &Path) -> Result<Option<BTreeSet<String>>, ManifestError> {
    if !path.ends_with(helm::CHART) {
        return Ok(None);
    }
    let folder = path.with_file_name(helm::CHARTS_FOLDER);
    let entries = fs::entries_if_there(&folder)?.into_iter();
    Ok(Some(entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()))
}

/// Reads name, version and exports of the package in a folder, if it has a manifest.
pub fn load_package_head(folder: &Path) -> Result<Option<Head>, ManifestError> {
    if let Some(own) = Manifest::load_head(folder)? {
        return Ok(Some(own));
    }
    let Some((format, path)) = foreign(folder) else { return Ok(None) };
    let texts = texts(format, &path)?;
    let release = (format.head)(&texts).map_err(|error| pointed_at(&error, &path, &texts))?;
    Ok(Some(Head {
        name: Reference::parse(&release.name).ok(),
        version: mu_formats::version_of(&release),
        exports: Vec::new(),
        generated: false,
    }))
}

/// The package in the foreign manifest `text`, which some place has at `path`; `beside` are other files that
/// belong to it.
pub fn parse(
    format: &Format,
    path: &Path,
    text: &str,
    beside: impl IntoIterator<Item = (String, String)>,
    around: &Reading<'_>,
) -> Result<Manifest, SourceError> {
    let mut texts = Texts(beside.into_iter().collect());
    texts.0.insert(format.manifest.to_owned(), text.to_owned());
    read(format, path, &texts, around)
}

/// The file that lists the dependencies of the package with the manifest at `path`: the manifest, or the `requirements.yaml` of a
/// chart that has one.
pub fn dependencies_file(path: &Path) -> PathBuf {
    let is_chart = path.ends_with(helm::CHART);
    let texts = is_chart.then(|| texts(&helm::FORMAT, path).ok()).flatten();
    texts.map_or_else(
        || path.to_owned(),
        |texts| path.with_file_name(helm::lists_dependencies(&texts)),
    )
}

/// The text of a file in which dependencies are written. A `requirements.yaml` need not be there yet.
pub fn dependencies_text(path: &Path) -> Result<String, ManifestError> {
    match path.ends_with(helm::REQUIREMENTS) {
        true => Ok(read_bounded_text(path)?.unwrap_or_else(|| "dependencies: []\n".to_owned())),
        false => Ok(fs::read_text(path)?),
    }
}

/// An editor for the workspace's own manifest at `path`, in mu's format or a foreign one; of a chart, also for its
/// `requirements.yaml`.
pub fn editor(
    path: &Path,
    text: impl Into<String>,
    defaults: &Defaults,
    aliases: &HelmRepositoryAliases,
) -> Editor {
    let editor = Editor::new(path, text, defaults);
    match format_of_file(path) {
        Some(format) => editor.in_dialect((format.dialect)(aliases)),
        None => editor,
    }
}

/// The format that a file belongs to.
fn format_of_file(path: &Path) -> Option<&'static Format> {
    match path.ends_with(helm::REQUIREMENTS) {
        true => Some(&helm::FORMAT),
        false => format_of_manifest(path),
    }
}

/// Whether mu edits the dependencies in the manifest at `path`.
pub fn has_editable_dependencies(path: &Path, aliases: &HelmRepositoryAliases) -> bool {
    format_of_manifest(path).is_none_or(|format| {
        let text = read_bounded_text(path).ok().flatten().unwrap_or_default();
        let dialect = (format.dialect)(aliases);
        dialect.check(path, &text, None).is_ok()
    })
}

/// The text of the manifest at `path`, mu's own or a foreign one, with this `version`.
pub fn manifest_with_version(
    path: &Path,
    text: &str,
    version: &str,
    aliases: &HelmRepositoryAliases,
) -> Result<String, EditError> {
    let dialect = format_of_manifest(path).map(|format| (format.dialect)(aliases));
    let changed = dialect.and_then(|dialect| dialect.change(text, &Change::Version(version)));
    match changed {
        None => layout::set(path, text, "version", New::Text(version.to_owned())),
        Some(changed) => changed.map_err(|problem| EditError::refused(path, problem)),
    }
}

/// The package in `text`, the workspace's own manifest at `path`, or its `requirements.yaml`.
pub fn parse_own(
    path: &Path,
    text: &str,
    aliases: &HelmRepositoryAliases,
) -> Result<Manifest, SourceError> {
    match format_of_file(path) {
        Some(format) => {
            let around = Reading { is_own: true, aliases: Some(aliases), ..Reading::default() };
            let manifest = path.with_file_name(format.manifest);
            if !path.ends_with(helm::REQUIREMENTS) {
                return parse(format, path, text, None, &around);
            }
            let chart = read_bounded_text(&manifest).ok().flatten().unwrap_or_default();
            let beside = (helm::REQUIREMENTS.to_owned(), text.to_owned());
            parse(format, &manifest, &chart, Some(beside), &around)
        }
        None => Manifest::parse(path, text).map(|(manifest, _)| manifest),
    }
}

fn read(
    format: &Format,
    path: &Path,
    texts: &Texts,
    around: &Reading<'_>,
) -> Result<Manifest, SourceError> {
    let mut package =
        (format.read)(texts, around).map_err(|error| pointed_at(&error, path, texts))?;
    if package.release.name.is_empty() {
        package.release.name = name_of_folder(path);
    }
    let named = mu_formats::manifest(&package);
    Ok(named.expect("a reader takes no name that is not a reference's"))
}

/// Whether the manifest at `path` says no name, so that the package has that of its folder.
pub fn says_no_name(path: &Path) -> bool {
    let Some(format) = format_of_manifest(path) else { return false };
    let text = read_bounded_text(path).ok().flatten().unwrap_or_default();
    let texts = Texts([(format.manifest.to_owned(), text)].into());
    (format.head)(&texts).is_ok_and(|release| release.name.is_empty())
}

/// The name of a package that says none, by the folder of its manifest.
fn name_of_folder(path: &Path) -> String {
    let folder = folder_of(path).and_then(Path::file_name).and_then(|name| name.to_str());
    let is_name = |name: &&str| !name.ends_with(".git") && Name::parse(name).is_ok();
    folder.filter(is_name).unwrap_or("module").to_owned()
}

/// The first foreign manifest of a folder.
fn foreign(folder: &Path) -> Option<(&'static Format, PathBuf)> {
    FORMATS.iter().find_map(|format| {
        let path = folder.join(format.manifest);
        is_manifest(format, &path).then_some((format, path))
    })
}

/// The names of other manifests beside the one at `path`. They are not read, because that one is found first.
pub fn not_read(path: &Path) -> Vec<&'static str> {
    let here = format_of_manifest(path);
    let Some(folder) = folder_of(path) else { return Vec::new() };
    let others = FORMATS.iter().filter(|format| here.is_none_or(|here| here.name != format.name));
    let others = others.filter(|format| is_manifest(format, &folder.join(format.manifest)));
    others.map(|format| format.manifest).collect()
}

/// Whether a file is the manifest of a format, and not only called like one. A file that cannot be read may be one: loading it
/// says why.
pub fn is_manifest(format: &Format, path: &Path) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let is_one = |is_one: fn(&str) -> bool| {
        fs::read(path).map_or(true, |bytes| is_one(&String::from_utf8_lossy(&bytes)))
    };
    is_file && format.is_one.is_none_or(is_one)
}

/// The longest resource of a package that is looked into, in bytes.
const LONGEST_RESOURCE: u64 = 4 << 20;

/// Whether `text` is a manifest, as a file with this name.
pub fn is_manifest_text(name: &str, text: &str) -> bool {
    let is_one = format_of_manifest(Path::new(name)).and_then(|format| format.is_one);
    is_one.is_none_or(|is_one| is_one(text))
}

/// Whether the version and the name of a package are in its manifest with this name.
pub fn says_its_name(manifest: &str) -> bool {
    format_of_manifest(Path::new(manifest)).is_none_or(|format| format.is_named)
}

/// The longest manifest of a format whose manifests hold more than what a person writes, in bytes.
const LONGEST_STREAM: u64 = 64 << 20;

fn text_if_there(format: &Format, path: &Path) -> Result<Option<String>, ManifestError> {
    let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
    let is_stream = !format.is_named && (MAX_BYTES as u64..=LONGEST_STREAM).contains(&length);
    if is_stream { Ok(Some(fs::read_text(path)?)) } else { read_bounded_text(path) }
}

/// The files that a reader looks into.
fn texts(format: &Format, path: &Path) -> Result<Texts, ManifestError> {
    let mut texts = Texts::default();
    let folder = folder_of(path).unwrap_or(path);
    for name in [format.manifest].iter().chain(format.others) {
        if let Some(text) = text_if_there(format, &folder.join(name))? {
            texts.0.insert((*name).to_owned(), text);
        }
    }
    let Some(inner) = format.folder else { return Ok(texts) };
    for entry in fs::entries_if_there(&folder.join(inner))? {
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str() else { continue };
        let is_short = |metadata: std::fs::Metadata| metadata.len() <= LONGEST_RESOURCE;
        if entry.file_type().is_ok_and(|kind| kind.is_file())
            && entry.metadata().is_ok_and(is_short)
            && let Some(text) = read_bounded_text(&path)?
        {
            texts.0.insert(format!("{inner}{name}"), text);
        }
    }
    Ok(texts)
}

fn pointed_at(error: &FormatError, path: &Path, texts: &Texts) -> SourceError {
    let folder = folder_of(path).unwrap_or(path);
    error.in_text(&folder.join(&error.file), texts.text(&error.file).unwrap_or_default())
}

/// The dependencies of the chart whose `Chart.yaml` is at `path`, as Helm locks them; `is_own` says whether its author works on it
/// there.
pub fn helms_needs(
    path: &Path,
    aliases: &HelmRepositoryAliases,
    is_own: bool,
) -> Result<Needs, ManifestError> {
    let texts = texts(&helm::FORMAT, path)?;
    let needs = helm::needs(&texts, aliases, is_own);
    Ok(needs.map_err(|error| pointed_at(&error, path, &texts))?)
}

/// The dependencies of the KCL module whose `kcl.mod` is at `path`; `is_own` says whether its author works on it there.
pub fn kcls_needs(path: &Path, is_own: bool) -> Result<Vec<kcl::ModuleRequirement>, ManifestError> {
    let texts = texts(&kcl::FORMAT, path)?;
    Ok(kcl::needs(&texts, is_own).map_err(|error| pointed_at(&error, path, &texts))?)
}

/// The names of the charts that the chart in a folder needs.
pub fn helms_dependencies(folder: &Path) -> Result<Vec<String>, ManifestError> {
    let path = folder.join(helm::CHART);
    let texts = texts(&helm::FORMAT, &path)?;
    Ok(helm::dependencies(&texts).map_err(|error| pointed_at(&error, &path, &texts))?)
}

/// Name and version of the chart in a folder, as they are written; `None` if there is none.
pub fn helms_head(folder: &Path) -> Result<Option<Release>, ManifestError> {
    let path = folder.join(helm::CHART);
    let texts = texts(&helm::FORMAT, &path)?;
    if !texts.0.contains_key(helm::CHART) {
        return Ok(None);
    }
    let head = helm::head(&texts).map_err(|error| pointed_at(&error, &path, &texts))?;
    Ok(Some(head))
}

/// The container images that the package in a folder says it runs: in annotations of its chart, in the resources of its bundle, or
/// in what describes its provider.
pub fn declared_images(folder: &Path) -> Result<BTreeSet<DeclaredImage>, ManifestError> {
    let mut images = BTreeSet::new();
    for format in FORMATS {
        let path = folder.join(format.manifest);
        if !is_manifest(format, &path) {
            continue;
        }
        let texts = texts(format, &path)?;
        for (file, text) in &texts.0 {
            let declared = if file == helm::CHART {
                images_of_chart(file, text)
            } else if file.starts_with(olm::MANIFESTS)
                || [crossplane::AUTHORED, crossplane::PUBLISHED].contains(&file.as_str())
            {
                images_in_resources(file, text)
            } else {
                continue;
            };
            images.extend(declared.map_err(|error| pointed_at(&error, &path, &texts))?);
        }
    }
    Ok(images)
}

/// Where Helm stores the short names of repositories.
pub fn helms_repositories(environment: &Environment) -> PathBuf {
    let set = |name: &str| environment.variable(name);
    if let Some(file) = set("HELM_REPOSITORY_CONFIG") {
        return file.into();
    }
    let folder = match (set("HELM_CONFIG_HOME"), set("XDG_CONFIG_HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(folder)) => PathBuf::from(folder).join("helm"),
        (None, None) => environment.home.join(".config").join("helm"),
    };
    folder.join("repositories.yaml")
}

/// The short names that the user gave to chart repositories. A file that cannot be read has none.
pub fn helms_aliases(environment: &Environment) -> HelmRepositoryAliases {
    let text = read_bounded_text(&helms_repositories(environment)).ok().flatten();
    text.map(|text| HelmRepositoryAliases::read(&text)).unwrap_or_default()
}
