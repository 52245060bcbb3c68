//! Reading a lock: the wire types and their conversion.
//!
//! The text that mu writes is read line by line. A YAML parser takes as long for a lock as everything else in
//! a `mu get` that has nothing to do, and it refuses a lock of some thousand packages as too large. Any other
//! layout of the same YAML, from people and merges, goes through the parser, because its errors point into
//! the file. Both take the keys from one declaration: of the lock here, of a package in `entry.rs`.

use std::path::Path;
use std::sync::Arc;

use mu_provider::SafeUrl;
use schemars::Schema;

use crate::env::absolute;
use crate::lock::entry::WirePackage;
use crate::lock::{
    FORMAT, LockError, LockedPackage, Lockfile, ReplacedPackage, Requested, Source, line,
};
use crate::manifest::source::{Document, SourceError, conflict};
use crate::manifest::{in_lines, keys};
use crate::reference::PackageId;

keys! {
    /// A lock as it is written.
    #[derive(Debug, Default)]
    #[schemars(title = "Mu.lock", transform = without_own_keys)]
    pub(super) struct WireLock {
        /// The format.
        "version" version: u32,
        /// The strategy that chose the versions.
        #[schemars(default)]
        "resolution" resolution: String,
        /// The chosen packages, sorted by id.
        #[schemars(default)]
        "packages" packages: Vec<WirePackage>,
        /// References that `mu get` was given without `--save`.
        #[schemars(default)]
        "extra" extra: Vec<String>,
    }
}

/// Nobody writes keys of their own into a lock.
fn without_own_keys(schema: &mut Schema) {
    schema.remove("patternProperties");
}

/// The JSON schema of `Mu.lock`.
pub fn schema() -> serde_json::Value {
    in_lines(schemars::schema_for!(WireLock).to_value())
}

/// Reads the text of the lock at `path`.
pub(super) fn parse(path: &Path, text: &str) -> Result<Lockfile, LockError> {
    let version = format_version(text);
    if let Some(version) = version.filter(|version| *version > FORMAT) {
        return Err(LockError::Newer { path: path.to_owned(), version });
    }
    let wire = match parse_lines(text) {
        Some(wire) => wire,
        None => read_document(path, text)?,
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut packages = Vec::with_capacity(wire.packages.len());
    let mut replaced = Vec::new();
    for mut package in wire.packages {
        let id = package.id.clone();
        let by = package.replaced_by.take();
        let package =
            package.into_domain(folder).map_err(|wrong| damaged(path, text, &wrong, &id))?;
        match by {
            None => packages.push(package),
            Some(by) => {
                let by = read_id(folder, &by).ok_or_else(|| damaged(path, text, &by, &id))?;
                replaced.push(out_of_use(package, by));
            }
        }
    }
    replaced.sort_by(|left, right| left.id.cmp(&right.id));
    replaced.dedup_by(|later, first| later.id == first.id);
    packages.sort_by(|left, right| (&left.id, &left.version).cmp(&(&right.id, &right.version)));
    Ok(Lockfile { resolution: wire.resolution, packages, replaced, extra: wire.extra })
}

/// The error of an entry with an invalid value.
fn damaged(path: &Path, text: &str, wrong: &str, id: &str) -> SourceError {
    let start = text.find(wrong).unwrap_or(0);
    let message = format!("`{wrong}` in the entry of `{id}` is not valid there");
    SourceError::new(path, text, start..start + wrong.len(), message).help(DAMAGED)
}

/// The entry of a package that `by` replaced. It was locked before if its content is known.
fn out_of_use(mut package: LockedPackage, by: PackageId) -> ReplacedPackage {
    let requested = std::mem::take(&mut package.requested);
    let id = package.id.clone();
    let kept = package.digest.is_some().then(|| Box::new(package));
    ReplacedPackage { id, by, requested, kept }
}

/// The id of a package in the lock in `folder`: a folder is named by its source.
fn read_id(folder: &Path, text: &str) -> Option<PackageId> {
    match Source::parse(text).filter(Source::is_folder) {
        Some(source) => Some(PackageId::local(&absolute(folder, Path::new(&source.place)))),
        None => PackageId::parse(text).ok(),
    }
}

fn read_requested(folder: &Path, text: &str) -> Option<Requested> {
    let mut requested = Requested::parse(text)?;
    if Source::parse(&requested.by).is_some_and(|source| source.is_folder()) {
        requested.by = Arc::from(&read_id(folder, &requested.by)?);
    }
    Some(requested)
}

const DAMAGED: &str =
    "the lock was damaged, perhaps by a merge: restore it, or delete it and run `mu get`";

const IN_CONFLICT: &str = "keep either side (`git checkout --ours Mu.lock`, or `--theirs`) and run `mu get`: it \
    adds what the other side's manifests need";

/// Reads any layout of the YAML.
fn read_document(path: &Path, text: &str) -> Result<WireLock, SourceError> {
    let read = || {
        let document = Document::read(path, text)?;
        let table = document.root().table(WireLock::KEYS)?;
        let version = table
            .word(WireLock::version)?
            .ok_or_else(|| document.root().error("a lock needs its format: `version: 1`"))?;
        let number = version.as_str().parse();
        Ok(WireLock {
            version: number.map_err(|_| version.error("the format is a number"))?,
            resolution: table.string(WireLock::resolution)?.unwrap_or_default(),
            packages: table.list(WireLock::packages, WirePackage::read)?,
            extra: table.strings(WireLock::extra)?,
        })
    };
    read().map_err(|error: SourceError| match conflict(path, text) {
        Some(conflict) => conflict.help(IN_CONFLICT),
        None => error.help(DAMAGED),
    })
}

/// Whether a place is a URL with a possible secret, which no lock may contain: a lock is shown and shared.
fn holds_secret(place: &str) -> bool {
    place.contains('@') && SafeUrl::parse(place).is_ok_and(|url| url.may_hold_secret())
}

/// The format that the text states, whatever else it contains.
fn format_version(text: &str) -> Option<u32> {
    let mut lines = text.lines();
    let version = lines.find_map(|line| line.strip_prefix(WireLock::version)?.strip_prefix(':'))?;
    version.trim().parse().ok()
}

impl WirePackage {
    /// The converted form; the error is the text that is wrong.
    fn into_domain(self, folder: &Path) -> Result<LockedPackage, String> {
        let id = |text: String| read_id(folder, &text).ok_or(text);
        Ok(LockedPackage {
            id: id(self.id)?,
            version: self.version,
            is_composite: self.versioning.as_deref() == Some("composite"),
            app_version: self.app_version,
            channel: self.channel,
            source: Source::parse(&self.source)
                .filter(|source| !holds_secret(&source.place))
                .ok_or(self.source)?,
            folder: self.folder,
            commit: self.commit,
            reference: self.reference,
            artifact: self.artifact.map(|text| text.parse().map_err(|_| text)).transpose()?,
            digest: self.digest.map(|text| text.parse().map_err(|_| text)).transpose()?,
            built: self.built.map(|text| text.parse().map_err(|_| text)).transpose()?,
            archive: self.archive.map(|text| text.parse().map_err(|_| text)).transpose()?,
            patch: self.patch.map(|text| text.parse().map_err(|_| text)).transpose()?,
            patched: self.patched.map(|text| text.parse().map_err(|_| text)).transpose()?,
            url: self.url,
            locator: self.locator,
            requested: self
                .requested
                .into_iter()
                .map(|text| read_requested(folder, &text).ok_or(text))
                .collect::<Result<_, _>>()?,
            dependencies: self.dependencies.into_iter().map(id).collect::<Result<_, _>>()?,
            provides: self.provides,
            requires: self.requires,
            constraints: (self.constraints.into_iter())
                .map(|text| match text.split_once(' ') {
                    Some((fact, wanted)) => Ok((fact.to_owned(), wanted.to_owned())),
                    None => Err(text),
                })
                .collect::<Result<_, _>>()?,
            mu_version: self.mu_version,
            replaces: self.replaces.into_iter().map(id).collect::<Result<_, _>>()?,
        })
    }
}

/// Reads the layout that mu writes; `None` for any other.
fn parse_lines(text: &str) -> Option<WireLock> {
    let mut lock = WireLock::default();
    for line in text.lines().skip_while(|line| line.starts_with('#')) {
        if let Some(first) = line.strip_prefix("- ") {
            lock.packages.push(WirePackage::default());
            lock.packages.last_mut()?.read_line(first)?;
        } else if let Some(field) = line.strip_prefix("  ") {
            lock.packages.last_mut()?.read_line(field)?;
        } else {
            match line::split(line)? {
                (WireLock::version, value) => lock.version = value.parse().ok()?,
                (WireLock::resolution, value) => lock.resolution = line::read_text(value)?,
                (WireLock::packages, "" | "[]") => {}
                (WireLock::extra, value) => lock.extra = line::read_list(value)?,
                _ => return None,
            }
        }
    }
    let is_whole = lock.version == FORMAT && lock.packages.iter().all(WirePackage::is_complete);
    is_whole.then_some(lock)
}
