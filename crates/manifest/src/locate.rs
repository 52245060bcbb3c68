//! Finding and loading a folder's manifest; and where a dependency is written in somebody else's file, for errors that mu notices
//! only later.
//!
//! The usual case looks at the disk twice: for `Mu.yaml` and for `Mu.json`. Folders are listed only for the warning about a wrong
//! spelling, and only if the caller wants it.

use std::borrow::Cow;
use std::fs::{DirEntry, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use mu_provider::fs::{self, AtPath as _, FileError};

use super::requirement::is_version_alone;
use super::schema::{self, LongDependency};
use super::source::{Document, MAX_BYTES, SourceError, Value, too_large};
use super::{FileWarning, Head, Manifest};
use crate::reference::Reference;

/// The name of a manifest in YAML.
pub const YAML_NAME: &str = "Mu.yaml";
/// The name of a manifest in JSON.
pub const JSON_NAME: &str = "Mu.json";

/// A manifest that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file is wrong.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Both forms are there, and they might differ.
    #[error("`{}` contains both `{YAML_NAME}` and `{JSON_NAME}`: remove one of them", .folder.display())]
    Both {
        /// The folder that has both.
        folder: PathBuf,
    },
    /// A folder has the name of a manifest.
    #[error("`{}` is a folder, but a manifest is a file", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A manifest with the file it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it says.
    pub manifest: Manifest,
    /// The file.
    pub path: PathBuf,
    /// The file's content.
    pub text: String,
    /// Mistakes that are allowed but probably not meant.
    pub warnings: Vec<FileWarning>,
}

impl Manifest {
    /// The manifest's file in `folder`, if there is one.
    ///
    /// # Errors
    ///
    /// When both forms are there.
    pub fn locate(folder: &Path) -> Result<Option<PathBuf>, ManifestError> {
        let yaml = folder.join(YAML_NAME);
        let json = folder.join(JSON_NAME);
        let is_file = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        match (is_file(&yaml), is_file(&json)) {
            (true, true) => Err(ManifestError::Both { folder: folder.to_owned() }),
            (true, false) => Ok(Some(yaml)),
            (false, true) => Ok(Some(json)),
            (false, false) => Ok(None),
        }
    }

    /// Reads the manifest of `folder`, if there is one.
    ///
    /// # Errors
    ///
    /// When both forms are there, the file cannot be read, or it is wrong.
    pub fn load(folder: &Path) -> Result<Option<Loaded>, ManifestError> {
        Self::locate(folder)?.map(|path| Self::load_file(&path)).transpose()
    }

    /// Reads the manifest at `path`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or it is wrong.
    pub fn load_file(path: &Path) -> Result<Loaded, ManifestError> {
        let text = read_text(path, fs::open(path)?)?;
        let (manifest, warnings) = Self::parse(path, &text)?;
        Ok(Loaded { manifest, path: path.to_owned(), text, warnings })
    }

    /// Reads the manifest of a published package in `folder`, as [`Manifest::parse_published`] does.
    ///
    /// # Errors
    ///
    /// When both forms are there, the file cannot be read, or it is wrong.
    pub fn load_published(folder: &Path) -> Result<Option<Self>, ManifestError> {
        let Some(path) = Self::locate(folder)? else { return Ok(None) };
        let text = read_text(&path, fs::open(&path)?)?;
        Ok(Some(Self::parse_published(&path, &text)?))
    }

    /// Reads name, version and exports of the package in `folder`, if it has a manifest.
    ///
    /// # Errors
    ///
    /// When both forms are there, the file cannot be read, or what is read of it is wrong.
    pub fn load_head(folder: &Path) -> Result<Option<Head>, ManifestError> {
        let Some(path) = Self::locate(folder)? else { return Ok(None) };
        let text = read_text(&path, fs::open(&path)?)?;
        Ok(Some(Head::parse(&path, &text)?))
    }
}

/// The warning for a file that was probably meant as `folder`'s manifest. This lists the folder.
pub fn misspelt(folder: &Path) -> Option<FileWarning> {
    let mut names: Vec<_> = fs::entries(folder).ok()?.iter().map(DirEntry::file_name).collect();
    names.sort();
    names.iter().find_map(|name| misspelt_name(folder, name.to_str()?))
}

/// The warning for a file called `name`, if that is a manifest's name in the wrong case or with `.yml`.
pub fn misspelt_name(folder: &Path, name: &str) -> Option<FileWarning> {
    let right = manifest_name(name).filter(|right| *right != name)?;
    let message = format!("`{name}` is not read as a manifest: its name must be `{right}`");
    Some(FileWarning::new(&folder.join(name), None, message))
}

/// The name of a manifest that a file has, or was probably meant to have.
pub fn manifest_name(name: &str) -> Option<&'static str> {
    let is = |spelling: &str| name.eq_ignore_ascii_case(spelling);
    if is(YAML_NAME) || is("Mu.yml") {
        return Some(YAML_NAME);
    }
    is(JSON_NAME).then_some(JSON_NAME)
}

/// Reads a text file, up to the size that manifests may have; `None` if there is none.
///
/// # Errors
///
/// When it is there and cannot be read, is larger, or is not UTF-8.
pub fn read_bounded_text(path: &Path) -> Result<Option<String>, ManifestError> {
    fs::open_if_there(path)?.map(|file| read_text(path, file)).transpose()
}

fn read_text(path: &Path, file: File) -> Result<String, ManifestError> {
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the file is too large.
    file.take(u64::try_from(MAX_BYTES).expect("a megabyte fits") + 1)
        .read_to_end(&mut bytes)
        .at("read", path)?;
    if bytes.len() > MAX_BYTES {
        return Err(SourceError::new(path, "", 0..0, too_large()).into());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        SourceError::new(path, &text, valid..valid + 1, "this is not UTF-8 text")
            .help("save the file as UTF-8")
            .into()
    })
}

/// An error that points at the dependency `reference` in the manifest (or index line) `text`, if it is found
/// there. The extension of `path` gives the format.
pub fn error_at_dependency(
    path: &Path,
    text: &str,
    reference: &str,
    message: &str,
) -> Option<SourceError> {
    let document = Document::read(path, text).ok()?;
    let is_list =
        |key: &str| matches!(key, schema::File::dependencies | schema::File::dev_dependencies);
    let lists = document.root_value().entries().ok()?.filter(|(key, _)| is_list(key.as_str()));
    let mut dependencies = lists.flat_map(|(_, value)| values(value));
    let (_, found) = dependencies.find(|(name, value)| is_written(*name, *value, reference))?;
    Some(found.error(message))
}

/// An error about the readme that a manifest names; `None` if the text names none.
pub fn error_at_readme(path: &Path, text: &str, message: &str) -> Option<SourceError> {
    let document = Document::read(path, text).ok()?;
    let mut entries = document.root_value().entries().ok()?;
    let (_, value) = entries.find(|(name, _)| name.as_str() == schema::File::readme)?;
    Some(value.error(message))
}

/// The reference of each dependency, in either form; with its key, where that may be the name.
fn values(dependencies: Value<'_>) -> Vec<(Option<&str>, Value<'_>)> {
    let listed = || Some(dependencies.list().ok()?.map(|value| (None, value)).collect());
    let named = || {
        let entries = dependencies.entries().ok()?;
        Some(entries.map(|(key, value)| (Some(key.as_str()), value)).collect())
    };
    let all: Vec<(Option<&str>, Value<'_>)> = listed().or_else(named).unwrap_or_default();
    all.into_iter().map(|(key, value)| (key, long_form(value).unwrap_or(value))).collect()
}

fn long_form(value: Value<'_>) -> Option<Value<'_>> {
    let mut keys = value.entries().ok()?;
    keys.find(|(key, _)| key.as_str() == LongDependency::r#ref).map(|(_, value)| value)
}

fn is_written(name: Option<&str>, value: Value<'_>, reference: &str) -> bool {
    let Ok(text) = value.word() else { return false };
    let text = match name.filter(|_| is_version_alone(text.as_str())) {
        Some(name) => Cow::Owned(format!("{name}#{}", text.as_str())),
        None => Cow::Borrowed(text.as_str()),
    };
    text == reference || Reference::parse(&text).is_ok_and(|read| read.to_string() == reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_found_in_every_form() {
        for (path, text, line, column) in [
            ("Mu.yaml", "name: a\ndependencies:\n  - b\n  - ../c\n", 4, 5),
            ("Mu.yaml", "dependencies:\n  - {ref: ../c, channel: x}\n", 2, 11),
            ("Mu.yaml", "dependencies:\n  here: ../c\n", 2, 9),
            ("Mu.yaml", "devDependencies: [../c]\n", 1, 19),
            ("line.json", r#"{"name":"a","dependencies":["b","../c"]}"#, 1, 33),
            ("line.json", r#"{"dependencies":[{"ref":"../c","channel":"x"}]}"#, 1, 25),
        ] {
            let error = error_at_dependency(Path::new(path), text, "../c", "wrong");
            let error = error.expect("it is there");
            assert_eq!((error.line(), error.column()), (line, column), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_has_no_place() {
        for text in ["name: a\n", "dependencies: [b]\n", "- ../c\n", "dependencies: ../d\n", "{"] {
            assert_eq!(error_at_dependency(Path::new("Mu.yaml"), text, "../c", "wrong"), None);
        }
    }
}
