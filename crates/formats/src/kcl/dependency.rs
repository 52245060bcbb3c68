//! One dependency in `kcl.mod`, as a reference.

use std::ops::Range;

use mu_manifest::edit::is_indirect_comment;
use mu_manifest::reference::{Reference, Version, VersionSpec};
use mu_provider::{Dependency, InnerPath};
use toml_edit::{Document, Item, TableLike};

use super::{NAMESPACE, REGISTRY};
use crate::error::Fault;
use crate::format::Reading;
use crate::shape::Shape::{self, Map, Text};

/// The keys of an entry of `[dependencies]` that is a table.
pub(super) static SHAPE: Shape = Map(&[
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
pub(super) struct Entry<'t> {
    /// Its local name.
    pub(super) name: &'t str,
    pub(super) item: &'t Item,
    /// Its bytes.
    pub(super) span: Range<usize>,
}

/// Which key of an entry its version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionKey {
    /// The entry itself.
    Whole,
    /// One of the entry's keys.
    Named(&'static str),
    /// No key has it; this one would be added.
    Missing(&'static str),
}

/// The entries in the order of the file, those with their own section first, so that a new entry always comes
/// last.
pub(super) fn all<'t>(document: &'t Document<&str>) -> Result<Vec<Entry<'t>>, Fault> {
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
pub(super) fn usual_name(reference: &Reference) -> String {
    match reference.local() {
        Some(folder) => {
            folder.trim_end_matches('/').rsplit('/').next().unwrap_or(folder).to_owned()
        }
        None => reference.name().leaf().to_owned(),
    }
}

impl Entry<'_> {
    /// Its name, if that is not the usual one of its package.
    pub(super) fn own_name(&self, dependency: &Dependency) -> Option<String> {
        let usual = Reference::parse(dependency.reference()).ok().map(|one| usual_name(&one));
        (usual.as_deref() != Some(self.name)).then(|| self.name.to_owned())
    }

    /// The place behind the entry in its line, if nothing but a comment is there; `None` for entries with a section of their
    /// own, and for those of Git, whose comment could not keep which key their revision had.
    pub(super) fn comment(&self, text: &str) -> Option<usize> {
        let is_git = self.item.get("git").is_some();
        let end = self.item.span().filter(|_| !self.item.is_table() && !is_git)?.end;
        let rest = text.get(end..)?.lines().next().unwrap_or_default().trim_start();
        (rest.is_empty() || rest.starts_with('#')).then_some(end)
    }

    /// Whether a comment says that only other modules need it.
    pub(super) fn is_indirect(&self, text: &str) -> bool {
        let comment = self.comment(text).and_then(|at| text.get(at..)?.lines().next());
        comment.is_some_and(is_indirect_comment)
    }

    /// The dependency, and where its version is written; `None` for a folder that was packed into the
    /// module's archive.
    pub(super) fn read(
        &self,
        around: &Reading<'_>,
    ) -> Result<(Option<Dependency>, VersionKey), Fault> {
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
            debug_assert!(SHAPE.reads(key), "`{key}` is read, and not declared");
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
            let (revision, key) = version(&["tag", "commit", "branch", "version"])?;
            let revision = revision.map(|text| format!("#{text}")).unwrap_or_default();
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
pub(super) fn at_least(tag: &str) -> String {
    let tag = tag.trim();
    match Version::parse_lenient(tag) {
        Ok(version) => format!("#{}", VersionSpec::compatible_with(&version)),
        Err(_) if tag.is_empty() => String::new(),
        Err(_) => format!("#{tag}"),
    }
}

/// A URL of Git's as a reference.
pub(crate) fn git_reference(url: &str) -> String {
    match url.split_once("://") {
        Some(("https" | "http", _)) => format!("git+{url}"),
        Some(("file", path)) => format!("git+file://{path}"),
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
