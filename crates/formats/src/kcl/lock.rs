//! `kcl.mod.lock`, in which KCL keeps what it downloaded for a module, and the sums of it.
//!
//! The keys, their order and their layout are those of kpm (`MarshalLockTOML` in `pkg/package`), which prints them with Go's TOML
//! encoder.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_manifest::reference::Reference;
use mu_provider::{InnerPath, TreeError};
use sha2::{Digest as _, Sha256};

use super::{Entry, MODULE, NAMESPACE, REGISTRY, VersionKey, parse};
use crate::format::{Reading, Texts};
use crate::node::FormatError;
use crate::shape::Shape::{self, Each, Map, Text, Unused};
use crate::shape::Unknown;

/// The file.
pub const LOCK: &str = "kcl.mod.lock";

/// The keys of a lock.
pub(super) static LOCKED: Shape = Map(&[(
    "dependencies",
    Each(&Map(&[
        ("name", Text),
        ("full_name", Unused),
        ("version", Text),
        ("sum", Unused),
        ("reg", Text),
        ("repo", Text),
        ("oci_tag", Text),
        ("url", Text),
        ("branch", Text),
        ("commit", Text),
        ("git_tag", Text),
        ("package", Unused),
        ("path", Text),
    ])),
)]);

/// The keys of an entry whose text is the second part of the name of its folder, in the order in which KCL looks for them.
const NAMED_BY: [&str; 5] = ["oci_tag", "git_tag", "commit", "branch", "version"];

/// A dependency in a `kcl.mod`.
#[derive(Debug, Clone)]
pub struct ModuleRequirement {
    /// The name by which the module imports it.
    pub name: String,
    /// What mu requires for it.
    pub reference: Reference,
    /// Its version or tag, as it is written; `None` without one.
    pub written: Option<String>,
    /// Git: its URL, as it is written.
    pub git: Option<String>,
    /// Git: the key of what is written: `tag`, `commit` or `branch`.
    pub revision: &'static str,
    /// Git: the module's name in a repository with several.
    pub package: Option<String>,
}

/// A module that is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locked {
    /// The name by which it is imported.
    pub name: String,
    /// Its own name.
    pub module: String,
    /// Its version, or its tag in an OCI registry.
    pub version: String,
    /// The sum of its files; `None` where KCL has none.
    pub sum: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a locked module comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An OCI registry.
    Oci {
        /// Its host.
        registry: String,
        /// The repository there.
        repository: String,
        /// The tag, which is also the version.
        tag: String,
    },
    /// A Git repository.
    Git {
        /// Its URL.
        url: String,
        /// `branch`, `commit` or `git_tag`.
        kind: &'static str,
        /// The branch, commit or tag.
        revision: String,
        /// The module's name in a repository with several.
        package: Option<String>,
    },
    /// A folder on this machine, which is never vendored.
    Folder,
}

impl Locked {
    /// The path of its folder in `vendor`; `None` for one that is not vendored.
    ///
    /// # Errors
    ///
    /// When its name and its tag or branch make no path that stays there.
    pub fn folder(&self) -> Result<Option<InnerPath>, TreeError> {
        let of = match &self.origin {
            Origin::Oci { tag, .. } => tag,
            Origin::Git { revision, .. } => revision,
            Origin::Folder => return Ok(None),
        };
        InnerPath::name(&self.name)?;
        // A branch may have slashes; KCL has folders in folders then.
        InnerPath::parse(&format!("{}_{of}", self.name)).map(Some)
    }
}

/// The dependencies of the module with these files; those that lie inside a fetched module are left out.
///
/// # Errors
///
/// As [`super::read`].
pub fn needs(files: &Texts, is_own: bool) -> Result<Vec<ModuleRequirement>, FormatError> {
    let around = Reading { is_own, ..Reading::default() };
    files.read(MODULE, |text| {
        let document = parse(text)?;
        let mut needs = Vec::new();
        for entry in super::all(&document)? {
            let (dependency, key) = entry.read(&around)?;
            let Some(dependency) = dependency else { continue };
            let Ok(reference) = Reference::parse(dependency.reference()) else { continue };
            needs.push(need(&entry, key, reference));
        }
        Ok(needs)
    })
}

fn need(entry: &Entry<'_>, key: VersionKey, reference: Reference) -> ModuleRequirement {
    let said = |key: &str| Some(entry.item.as_table_like()?.get(key)?.as_str()?.trim().to_owned());
    let (written, revision) = match key {
        VersionKey::Whole => (entry.item.as_str().map(|text| text.trim().to_owned()), "tag"),
        VersionKey::Named(key) => (said(key), if key == "version" { "tag" } else { key }),
        VersionKey::Missing(_) => (None, "commit"),
    };
    ModuleRequirement {
        name: entry.name.to_owned(),
        reference,
        written,
        git: said("git"),
        revision,
        package: said("package"),
    }
}

/// The text of the lock with these modules; empty without any, as KCL has it.
pub fn lock(modules: &[Locked]) -> String {
    let sorted: BTreeMap<&str, &Locked> =
        modules.iter().map(|module| (&*module.name, module)).collect();
    if sorted.is_empty() {
        return String::new();
    }
    let mut text = "[dependencies]\n".to_owned();
    for (name, module) in sorted {
        let _ = writeln!(text, "  [dependencies.{}]", key(name));
        let mut field = |key: &str, value: &str| {
            if !value.is_empty() {
                let _ = writeln!(text, "    {key} = {}", quoted(value));
            }
        };
        field("name", name);
        field("full_name", &format!("{}_{}", module.module, module.version));
        field("version", &module.version);
        field("sum", module.sum.as_deref().unwrap_or_default());
        match &module.origin {
            Origin::Oci { registry, repository, tag } => {
                field("reg", registry);
                field("repo", repository);
                field("oci_tag", tag);
            }
            Origin::Git { url, kind, revision, package } => {
                field("url", url);
                field(kind, revision);
                field("package", package.as_deref().unwrap_or_default());
            }
            Origin::Folder => {}
        }
    }
    text
}

/// The paths of the folders in `vendor` of the modules that a lock has. One that cannot be read has none.
pub fn folders(lock: &str) -> Vec<InnerPath> {
    let Ok(document) = parse(lock) else { return Vec::new() };
    let Some(modules) = document.get("dependencies").and_then(|all| all.as_table_like()) else {
        return Vec::new();
    };
    let folder = |(name, module): (&str, &toml_edit::Item)| {
        let table = module.as_table_like()?;
        let text = |key: &str| table.get(key)?.as_str();
        let of = NAMED_BY.into_iter().find_map(text)?;
        InnerPath::parse(&format!("{}_{of}", text("name").unwrap_or(name))).ok()
    };
    modules.iter().filter_map(folder).collect()
}

/// The modules of OCI registries in a lock: the reference of each, and its version. Where an older kpm has not kept the place, it is the
/// usual one. So it is for folders of a person's own, too, which some versions of kpm write in the same way; nobody requires them there.
///
/// # Errors
///
/// When it is not TOML, or has keys that no lock has.
pub fn locked(lock: &str) -> Result<Vec<(String, String)>, FormatError> {
    let read = parse(lock).and_then(|document| {
        Unknown::in_table(document.as_table(), &LOCKED).check(true)?;
        Ok(document)
    });
    let document = read.map_err(|fault| FormatError::new(LOCK, lock, fault))?;
    let modules = document.get("dependencies").and_then(|all| all.as_table_like());
    let found =
        modules.into_iter().flat_map(|modules| modules.iter()).filter_map(|(key, module)| {
            let table = module.as_table_like()?;
            let text = |key: &str| table.get(key)?.as_str().filter(|text| !text.is_empty());
            let registry = text("reg").unwrap_or(REGISTRY);
            let version = text("oci_tag").or_else(|| text("version"))?;
            let places = ["url", "path", "git_tag", "commit", "branch"];
            let is_elsewhere = places.iter().any(|key| text(key).is_some());
            // Locks of earlier versions of KCL name no place for what is in its own registry.
            let repository = match text("repo") {
                // In `oci://ghcr.io//kcl-lang/kind`, as some write it, Go's path begins with a slash.
                Some(repository) => repository.trim_matches('/').to_owned(),
                None if is_elsewhere => return None,
                None => format!("{NAMESPACE}/{}", text("name").unwrap_or(key)),
            };
            Some((format!("oci://{registry}/{repository}"), version.to_owned()))
        });
    Ok(found.collect())
}

/// What KCL leaves out of its sums: all files whose path has one of these texts in it.
const UNSUMMED: [&str; 2] = [".git", ".tar"];

/// Whether the file at a path of a module counts for its sum.
pub fn is_summed(path: &str) -> bool {
    !UNSUMMED.iter().any(|text| path.contains(text))
}

/// KCL's sum of the files of a module, each with its path: SHA-256 of their bytes, in the order in which Go walks a folder.
pub fn sum<'f>(files: impl IntoIterator<Item = (&'f String, &'f Vec<u8>)>) -> String {
    let counted = files.into_iter().filter(|(path, _)| is_summed(path));
    let mut counted: Vec<_> =
        counted.map(|(path, bytes)| (path.split('/').collect::<Vec<_>>(), bytes)).collect();
    counted.sort();
    let mut hasher = Sha256::new();
    for (_, bytes) in counted {
        hasher.update(bytes);
    }
    STANDARD.encode(hasher.finalize())
}

/// A name as a key: bare where TOML allows it.
fn key(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A text between quotes.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{InnerPath, Locked, Origin, folders, lock, locked};

    /// The text of kpm 0.12 for the same modules.
    const OF_KPM: &str = r#"[dependencies]
  [dependencies.flask_manifests]
    name = "flask_manifests"
    full_name = "flask_manifests_0.0.1"
    version = "0.0.1"
    url = "git://github.com/kcl-lang/flask-demo-kcl-manifests.git"
    git_tag = "v0.1.0"
  [dependencies.hello-world]
    name = "hello-world"
    full_name = "helloworld_0.1.4"
    version = "0.1.4"
    sum = "7OO4YK2QuRWPq9C7KTzcWcti5yUnueCjptT3OXiPVeQ="
    reg = "ghcr.io"
    repo = "kcl-lang/helloworld"
    oci_tag = "0.1.4"
  [dependencies.local]
    name = "local"
    full_name = "local_0.0.1"
    version = "0.0.1"
"#;

    #[test]
    fn a_lock_is_printed_as_kpm_prints_it() {
        let locked = |name: &str, module: &str, version: &str, origin: Origin| Locked {
            name: name.to_owned(),
            module: module.to_owned(),
            version: version.to_owned(),
            sum: matches!(origin, Origin::Oci { .. })
                .then(|| "7OO4YK2QuRWPq9C7KTzcWcti5yUnueCjptT3OXiPVeQ=".to_owned()),
            origin,
        };
        let url = "git://github.com/kcl-lang/flask-demo-kcl-manifests.git".to_owned();
        let revision = "v0.1.0".to_owned();
        let git = Origin::Git { url, kind: "git_tag", revision, package: None };
        let oci = Origin::Oci {
            registry: "ghcr.io".to_owned(),
            repository: "kcl-lang/helloworld".to_owned(),
            tag: "0.1.4".to_owned(),
        };
        let modules = [
            locked("local", "local", "0.0.1", Origin::Folder),
            locked("hello-world", "helloworld", "0.1.4", oci),
            locked("flask_manifests", "flask_manifests", "0.0.1", git),
        ];
        assert_eq!(lock(&modules), OF_KPM);
        assert_eq!(lock(&[]), "");
        let texts =
            |paths: Vec<InnerPath>| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
        let named = modules.iter().filter_map(|one| one.folder().expect("is a path")).collect();
        assert_eq!(texts(named), ["hello-world_0.1.4", "flask_manifests_v0.1.0"]);
        let read = texts(folders(OF_KPM));
        assert_eq!(read, ["flask_manifests_v0.1.0", "hello-world_0.1.4", "local_0.0.1"]);
        assert!(folders("[").is_empty());
    }

    /// As locks of several years have it: without a place, with a slash in front of it, and with the path of a folder.
    #[test]
    fn a_module_is_locked_in_whatever_form_kpm_wrote_it() {
        let lock = [
            "[dependencies]",
            "[dependencies.k8s]\nname = \"k8s\"\nfull_name = \"k8s_1.31.1\"\nversion = \"1.31.1\"\nsum = \"x\"",
            "[dependencies.kind]\nname = \"kind\"\nversion = \"0.0.2\"\nreg = \"ghcr.io\"\nrepo = \"/kcl-lang/kind\"\noci_tag = \"0.0.2\"",
            "[dependencies.own]\nname = \"own\"\npath = \"../own\"",
            "[dependencies.git]\nname = \"git\"\nversion = \"0.1.0\"\nurl = \"https://h.example/x.git\"\ngit_tag = \"v0.1.0\"",
        ];
        let found = locked(&lock.join("\n")).expect("is read");
        let found: Vec<_> = found.iter().map(|(place, version)| (&**place, &**version)).collect();
        assert_eq!(
            found,
            [("oci://ghcr.io/kcl-lang/k8s", "1.31.1"), ("oci://ghcr.io/kcl-lang/kind", "0.0.2")]
        );
    }
}
