//! Reading a lock: the wire types and their way into the domain.
//!
//! The text that mu writes is read line by line, which is several times as fast as a YAML parser;
//! any other layout of the same YAML goes through the parser.

use std::path::Path;
use std::sync::Arc;

use mu_provider::SafeUrl;
use schemars::JsonSchema;

use crate::env::absolute;
use crate::lock::{FORMAT, LockError, LockedPackage, Lockfile, ReplacedPackage, Requested, Source};
use crate::manifest::source::{Document, SourceError, Value, conflict};
use crate::reference::PackageId;

const LOCK_KEYS: &[&str] = &["version", "resolution", "packages", "extra"];

const PACKAGE_KEYS: &[&str] = &[
    "id",
    "version",
    "versioning",
    "appVersion",
    "source",
    "folder",
    "commit",
    "ref",
    "digest",
    "archive",
    "url",
    "requested",
    "dependencies",
    "provides",
    "requires",
    "replaces",
    "replacedBy",
];

/// A lock as it is written.
#[derive(Debug, Default, JsonSchema)]
#[schemars(title = "Mu.lock", rename_all = "camelCase", deny_unknown_fields)]
struct WireLock {
    /// The format.
    version: u32,
    /// The strategy that chose the versions.
    #[schemars(default)]
    resolution: String,
    /// The chosen packages, sorted by id.
    #[schemars(default)]
    packages: Vec<WirePackage>,
    /// References that `mu get` was given without `--save`.
    #[schemars(default)]
    extra: Vec<String>,
}

/// One chosen package as it is written.
#[derive(Debug, Default, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct WirePackage {
    /// Base and name.
    id: String,
    /// The chosen version.
    version: String,
    /// `composite`, where the version is app version and revision.
    #[schemars(default)]
    versioning: Option<String>,
    /// The version of what it packages.
    #[schemars(default)]
    app_version: Option<String>,
    /// `hub+URL`, `git+URL`, `path+REL` or `workspace+REL`.
    source: String,
    /// Git: the folder inside the repository.
    #[schemars(default)]
    folder: Option<String>,
    /// Git: the commit.
    #[schemars(default)]
    commit: Option<String>,
    /// The tag or branch that was asked for.
    #[schemars(rename = "ref", default)]
    reference: Option<String>,
    /// `h1:` and the digest of the content.
    #[schemars(default)]
    digest: Option<String>,
    /// `sha256:` and the digest of the archive.
    #[schemars(default)]
    archive: Option<String>,
    /// Where the archive is, where that is not the usual place.
    #[schemars(default)]
    url: Option<String>,
    /// `SPEC by WHOM`.
    #[schemars(default)]
    requested: Vec<String>,
    /// Ids.
    #[schemars(default)]
    dependencies: Vec<String>,
    /// Capabilities that it provides.
    #[schemars(default)]
    provides: Vec<String>,
    /// Capabilities that it requires.
    #[schemars(default)]
    requires: Vec<String>,
    /// Ids of the packages that it takes the place of, wherever they are asked for.
    #[schemars(default)]
    replaces: Vec<String>,
    /// The id of the package that took its place.
    #[schemars(default)]
    replaced_by: Option<String>,
}

/// The JSON schema of `Mu.lock`.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(WireLock).to_value()
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

/// The error of an entry that holds what no lock holds there.
fn damaged(path: &Path, text: &str, wrong: &str, id: &str) -> SourceError {
    let start = text.find(wrong).unwrap_or(0);
    let message = format!("`{wrong}` in the entry of `{id}` is not what a lock holds there");
    SourceError::new(path, text, start..start + wrong.len(), message).help(DAMAGED)
}

/// The entry of a package that `by` took the place of. It was there before if its content is known.
fn out_of_use(mut package: LockedPackage, by: PackageId) -> ReplacedPackage {
    let requested = std::mem::take(&mut package.requested);
    let id = package.id.clone();
    let kept = package.digest.is_some().then(|| Box::new(package));
    ReplacedPackage { id, by, requested, kept }
}

/// The id that a package is called by in the lock in `folder`: a folder is called by its source.
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
        let table = document.root().table(LOCK_KEYS)?;
        let version = table
            .word("version")?
            .ok_or_else(|| document.root().error("a lock says its format: `version: 1`"))?;
        let number = version.as_str().parse();
        Ok(WireLock {
            version: number.map_err(|_| version.error("the format is a number"))?,
            resolution: table.string("resolution")?.unwrap_or_default(),
            packages: table.list("packages", read_package)?,
            extra: table.strings("extra")?,
        })
    };
    read().map_err(|error: SourceError| match conflict(path, text) {
        Some(conflict) => conflict.help(IN_CONFLICT),
        None => error.help(DAMAGED),
    })
}

fn read_package(value: Value<'_>) -> Result<WirePackage, SourceError> {
    let table = value.table(PACKAGE_KEYS)?;
    let required = |key: &'static str| {
        let text = table.word(key)?;
        text.map(|text| text.as_str().to_owned())
            .ok_or_else(|| table.value().error(format!("a locked package has `{key}`")))
    };
    let optional =
        |key| Ok::<_, SourceError>(table.word(key)?.map(|text| text.as_str().to_owned()));
    Ok(WirePackage {
        id: required("id")?,
        version: required("version")?,
        versioning: optional("versioning")?,
        app_version: optional("appVersion")?,
        source: required("source")?,
        folder: optional("folder")?,
        commit: optional("commit")?,
        reference: optional("ref")?,
        digest: optional("digest")?,
        archive: optional("archive")?,
        url: optional("url")?,
        requested: table.strings("requested")?,
        dependencies: table.strings("dependencies")?,
        provides: table.strings("provides")?,
        requires: table.strings("requires")?,
        replaces: table.strings("replaces")?,
        replaced_by: optional("replacedBy")?,
    })
}

/// Whether a place is a URL with what may be a secret, which no lock holds: it is shown, and shared.
fn holds_secret(place: &str) -> bool {
    place.contains('@') && SafeUrl::parse(place).is_ok_and(|url| url.may_hold_secret())
}

/// The format that the text claims, whatever else it holds.
fn format_version(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix("version:"))?.trim().parse().ok()
}

impl WirePackage {
    /// The domain's form; the error is the text that is wrong.
    fn into_domain(self, folder: &Path) -> Result<LockedPackage, String> {
        let id = |text: String| read_id(folder, &text).ok_or(text);
        Ok(LockedPackage {
            id: id(self.id)?,
            version: self.version,
            is_composite: self.versioning.as_deref() == Some("composite"),
            app_version: self.app_version,
            source: Source::parse(&self.source)
                .filter(|source| !holds_secret(&source.place))
                .ok_or(self.source)?,
            folder: self.folder,
            commit: self.commit,
            reference: self.reference,
            digest: self.digest.map(|text| text.parse().map_err(|_| text)).transpose()?,
            archive: self.archive.map(|text| text.parse().map_err(|_| text)).transpose()?,
            url: self.url,
            requested: self
                .requested
                .into_iter()
                .map(|text| read_requested(folder, &text).ok_or(text))
                .collect::<Result<_, _>>()?,
            dependencies: self.dependencies.into_iter().map(id).collect::<Result<_, _>>()?,
            provides: self.provides,
            requires: self.requires,
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
            read_field(lock.packages.last_mut()?, first)?;
        } else if let Some(field) = line.strip_prefix("  ") {
            read_field(lock.packages.last_mut()?, field)?;
        } else {
            match split_field(line)? {
                ("version", value) => lock.version = value.parse().ok()?,
                ("resolution", value) => lock.resolution = scalar(value)?,
                ("packages", "" | "[]") => {}
                ("extra", value) => lock.extra = list(value)?,
                _ => return None,
            }
        }
    }
    let complete = |package: &WirePackage| {
        !package.id.is_empty() && !package.version.is_empty() && !package.source.is_empty()
    };
    (lock.version == FORMAT && lock.packages.iter().all(complete)).then_some(lock)
}

fn read_field(package: &mut WirePackage, field: &str) -> Option<()> {
    let (key, value) = split_field(field)?;
    match key {
        "id" => package.id = scalar(value)?,
        "version" => package.version = scalar(value)?,
        "versioning" => package.versioning = Some(scalar(value)?),
        "appVersion" => package.app_version = Some(scalar(value)?),
        "source" => package.source = scalar(value)?,
        "folder" => package.folder = Some(scalar(value)?),
        "commit" => package.commit = Some(scalar(value)?),
        "ref" => package.reference = Some(scalar(value)?),
        "digest" => package.digest = Some(scalar(value)?),
        "archive" => package.archive = Some(scalar(value)?),
        "url" => package.url = Some(scalar(value)?),
        "requested" => package.requested = list(value)?,
        "dependencies" => package.dependencies = list(value)?,
        "provides" => package.provides = list(value)?,
        "requires" => package.requires = list(value)?,
        "replaces" => package.replaces = list(value)?,
        "replacedBy" => package.replaced_by = Some(scalar(value)?),
        _ => return None,
    }
    Some(())
}

fn split_field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let value = if value.is_empty() { value } else { value.strip_prefix(' ')? };
    let is_key = key.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_key && !value.starts_with(' ')).then_some((key, value))
}

/// The items of a list on one line, each in one of the two forms of [`scalar`].
fn list(text: &str) -> Option<Vec<String>> {
    let mut rest = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut items = Vec::new();
    while !rest.is_empty() {
        let end = match rest.strip_prefix('"') {
            Some(quoted) => quoted.find('"')? + 2,
            None => rest.find(", ").unwrap_or(rest.len()),
        };
        let (item, others) = rest.split_at_checked(end)?;
        items.push(scalar(item)?);
        rest = others;
        if !rest.is_empty() {
            rest = rest.strip_prefix(", ").filter(|rest| !rest.is_empty())?;
        }
    }
    Some(items)
}

/// The bytes that a value without quotes does not hold.
#[expect(clippy::indexing_slicing, reason = "a byte is a place among 256")]
const IS_SPECIAL: [bool; 256] = {
    let (mut special, mut rest) = ([false; 256], b" \"'[]{},&*!|>%`".as_slice());
    while let [byte, tail @ ..] = rest {
        special[*byte as usize] = true;
        rest = tail;
    }
    special
};

/// The value of a scalar in one of the two forms that mu writes without surprises.
fn scalar(text: &str) -> Option<String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let inner = quoted.strip_suffix('"')?;
        return (!inner.contains(['\\', '"'])).then(|| inner.to_owned());
    }
    let plain = text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '.')
        && !text
            .bytes()
            .any(|byte| IS_SPECIAL.get(usize::from(byte)).is_none_or(|is_special| *is_special));
    plain.then(|| text.to_owned())
}
