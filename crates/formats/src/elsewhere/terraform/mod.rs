//! The modules that Terraform's and OpenTofu's files use, and `.terraform/modules/modules.json`, which says where each was put.
//!
//! Only modules in Git repositories and archives are packages of mu. One of a registry is at an address that only the registry knows.

mod hcl;

use mu_manifest::reference::pasted;
use mu_manifest::source::line_at_offset;

use self::hcl::{Block, Value};
use super::{List, ListedDependency, Meaning, read, shortest};
use crate::error::{Fault, FormatError};
use crate::shape::Shape::{self, List as Items, Map, Text, Unused};

/// The ending of the files.
pub const ENDING: &str = ".tf";

/// Where Terraform says what it put where.
pub const MODULES: &str = ".terraform/modules/modules.json";

/// What is read of `modules.json`.
pub(crate) static MODULES_KEYS: Shape = Map(&[(
    "Modules",
    Items(&Map(&[
        ("Key", Text),
        ("Source", Text),
        ("Version", Text),
        ("Dir", Text),
        ("Root", Unused),
    ])),
)]);

/// A module that Terraform has put into a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModule {
    /// The name of its block.
    pub name: String,
    /// The folder, relative to that of the files; a module in a Git repository is a checkout of it.
    pub folder: String,
}

/// The modules in `text`, that of `modules.json`, which the files themselves use.
///
/// # Errors
///
/// When it is not JSON.
pub fn installed(text: &str) -> Result<(Vec<InstalledModule>, Vec<String>), FormatError> {
    read(MODULES, text, &MODULES_KEYS, |root| {
        let mut all = Vec::new();
        for module in root.list("Modules")? {
            let word = |key: &str| -> Result<String, Fault> {
                Ok(module.text(key)?.map_or_else(String::new, |(text, _)| text.to_owned()))
            };
            let (name, folder) = (word("Key")?, word("Dir")?);
            // A dot is between a module and one that it uses itself.
            if !name.is_empty() && !name.contains('.') && !folder.is_empty() {
                all.push(InstalledModule { name, folder });
            }
        }
        Ok(all)
    })
}

/// The modules that `text`, that of `file`, uses.
///
/// # Errors
///
/// When it is not HCL.
pub fn list(file: &str, text: &str) -> Result<List, FormatError> {
    let found = hcl::blocks(text).map_err(|fault| FormatError::new(file, text, fault))?;
    let modules = found.iter().filter(|block| block.kind == "module");
    let dependencies = modules.map(|block| ListedDependency {
        called: block.labels.join(" "),
        line: line_at_offset(text, block.start),
        meaning: meaning(block),
    });
    Ok(List { dependencies: dependencies.collect(), unknown: Vec::new() })
}

/// Beginnings of sources that mu has no provider for.
const UNSERVED: [&str; 4] = ["s3::", "gcs::", "hg::", "file::"];

/// The endings of archives that are packages.
const ARCHIVES: [&str; 4] = [".tgz", ".tar.gz", ".tar", ".zip"];

/// Hosts whose repositories Terraform knows without `git::`.
const REPOSITORY_HOSTS: [&str; 2] = ["github.com/", "bitbucket.org/"];

fn meaning(block: &Block) -> Result<Meaning, String> {
    let source = match block.attribute("source") {
        Some(Value::Text(source)) => source.trim(),
        Some(Value::Expression) => return Err("its `source` is an expression".to_owned()),
        None => return Err("it has no `source`".to_owned()),
    };
    if source.starts_with("./") || source.starts_with("../") {
        return Err("it is a folder of this repository, so there is nothing to fetch".to_owned());
    }
    if let Some(scheme) = UNSERVED.iter().find(|scheme| source.starts_with(**scheme)) {
        return Err(format!("mu has no provider for `{scheme}`"));
    }
    let plain = source.strip_prefix("git::").unwrap_or(source);
    let is_repository = plain.len() < source.len()
        || plain.starts_with("git@")
        || plain.starts_with("ssh://")
        || REPOSITORY_HOSTS.iter().any(|host| plain.starts_with(host));
    if is_repository {
        return of_repository(plain);
    }
    if let Some((scheme, _)) = plain.split_once("://") {
        let place = plain.split('?').next().unwrap_or_default();
        let is_archive = ARCHIVES.iter().any(|ending| place.ends_with(ending));
        return match is_archive && ["https", "http"].contains(&scheme) {
            true => Meaning::parse(place),
            false => {
                Err("an address that leads on to another one is only known to Terraform".to_owned())
            }
        };
    }
    Err(of_registry(plain))
}

/// A source in a Git repository, as a reference.
fn of_repository(source: &str) -> Result<Meaning, String> {
    let path = source.split_once("://").map_or(source, |(_, path)| path);
    let text = match path.contains("//") || path.contains('?') {
        true => pasted::meant(source)
            .ok_or_else(|| "mu has no reference for its `source`".to_owned())?,
        false => source.to_owned(),
    };
    // Without a version, it is the tip of the default branch, and not the newest version.
    let (place, version) = text.split_once('#').unwrap_or((&text, "tip"));
    Meaning::parse(&format!("{}#{version}", shortest(place)))
}

/// Why a module of a registry is no package, and where its repository probably is.
fn of_registry(source: &str) -> String {
    let place = source.split("//").next().unwrap_or_default();
    let segments: Vec<&str> = place.split('/').collect();
    let reason = "only its registry knows where it is";
    match segments[..] {
        // The public registry takes only repositories with such names.
        [namespace, name, provider] if !namespace.contains('.') => format!(
            "{reason}; its repository is probably `https://github.com/{namespace}/terraform-{provider}-{name}`"
        ),
        _ => reason.to_owned(),
    }
}
