//! All packages that are in use, those of the workspace and those of Mu.lock, with what each says of itself: for `images` (the
//! container images that they say they run, or that `helm template` has written), for `licenses` (their licences, and whether
//! the settings allow them), and for `sbom`.
//!
//! It is read from Mu.lock and from what is on this machine. Nothing is fetched, and a package that is missing is an error: an
//! answer without it would be wrong. A package that declares no image is named, because it may run some all the same. Licences
//! are compared as SPDX has them. What packages say of themselves is believed; no text of a licence is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use mu_formats::{DeclaredImage, Reading, crossplane, images_in_resources, rendered_charts};
use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::folder_here;
use crate::ops::graph::{Graph, Node};
use crate::ops::requirements::{Requirements, check_chosen, development_only};
use crate::ops::session::error::in_one_line;
use crate::ops::session::shown::lines;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{ArtifactDigest, PackageId};
use crate::workspace::LicenseRules;
use crate::{formats, fs};

/// The packages in use.
pub(super) struct Inventory {
    /// The packages, and what they need of each other.
    pub(super) graph: Graph,
    /// What is chosen.
    pub(super) lock: Arc<Lockfile>,
    /// The packages: the workspace's own, followed by those of the lock.
    pub(super) packages: Vec<PackageInUse>,
}

/// A package in use.
pub(super) struct PackageInUse {
    /// Which it is.
    pub(super) named: PackageVersion,
    /// Its node in the graph.
    pub(super) node: Node,
    /// Its entry in the lock; `None` for one of the workspace's own.
    pub(super) locked: Option<usize>,
    /// Whether only `devDependencies` need it.
    pub(super) is_for_development: bool,
    /// Its licence, as its manifest has it.
    pub(super) license: Option<String>,
    /// What it is, in a sentence.
    pub(super) description: Option<String>,
    /// The format of its manifest, if that is another ecosystem's.
    format: Option<String>,
    /// The folder with its files.
    folder: PathBuf,
}

/// A package and its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct PackageVersion {
    /// The package.
    pub id: PackageId,
    /// Its version, if it has one.
    pub version: Option<String>,
}

/// How many missing packages are named.
const MOST_NAMED: usize = 5;

impl Inventory {
    /// The packages that a workspace uses.
    pub(super) fn load(session: &Session) -> Result<Self, CommandError> {
        let (lock, requirements) = lock_in_use(session)?;
        let graph = Graph::new(session, &lock, &requirements);
        let for_development = development_only(&requirements, &lock);
        let members = session.workspace.members.iter().enumerate().map(|(node, member)| {
            let manifest = &member.manifest;
            let version = manifest.version.as_ref().map(ToString::to_string);
            PackageInUse {
                named: PackageVersion { id: member.id.clone(), version },
                node,
                locked: None,
                is_for_development: false,
                license: manifest.license.clone(),
                description: manifest.description.clone(),
                format: manifest.format.clone(),
                folder: member.folder.clone(),
            }
        });
        let mut packages: Vec<PackageInUse> = members.collect();
        // Nodes of locked packages follow the roots, in the order of the lock; the workspace's own are among the roots.
        let locked = lock.packages.iter().enumerate();
        let locked = locked.filter(|(_, package)| !package.source.is_workspace_folder());
        let mut missing = Vec::new();
        for ((index, package), node) in locked.zip(graph.roots().count()..) {
            let Some(folder) = folder_here(session, &lock, index, None) else {
                missing.push(format!("`{}` {}", package.id, package.version));
                continue;
            };
            // A lock in a checkout can name any folder of this machine.
            if package.source.is_outside_folder() {
                session.folders.check(&folder)?;
            }
            let manifest = formats::load(&folder, &Reading::default())?.map(|read| read.manifest);
            let of_manifest = manifest.map(|read| (read.license, read.description, read.format));
            let (license, description, format) = of_manifest.unwrap_or_default();
            packages.push(PackageInUse {
                named: PackageVersion {
                    id: package.id.clone(),
                    version: package.is_versioned().then(|| package.version.clone()),
                },
                node,
                locked: Some(index),
                is_for_development: for_development.contains(&index),
                license,
                description,
                format,
                folder,
            });
        }
        if !missing.is_empty() {
            let message = format!("not on this machine:\n{}", lines(&missing, MOST_NAMED));
            return Err(CommandError::new(Code::NotFound, message)
                .hint("`mu fetch` brings what Mu.lock names"));
        }
        Ok(Self { graph, lock, packages })
    }

    /// The entry of a package in the lock, if it has one.
    pub(super) fn entry(&self, package: &PackageInUse) -> Option<&LockedPackage> {
        self.lock.packages.get(package.locked?)
    }

    /// The container images that a package says it runs; otherwise, why these are not known.
    pub(super) fn images(&self, package: &PackageInUse) -> Result<Vec<DeclaredImage>, String> {
        let declared = formats::declared_images(&package.folder);
        let mut images: Vec<DeclaredImage> =
            declared.map_err(|error| in_one_line(&error))?.into_iter().collect();
        // A package of Crossplane is an image itself: that of its controller.
        let is_image = package.format.as_deref() == Some(crossplane::FORMAT.name);
        if let Some(entry) = self.entry(package).filter(|_| is_image) {
            let digest = entry.manifest.ok_or("Mu.lock does not have the digest of its image")?;
            // What is pinned was asked for by its digest, which is no tag.
            let tag =
                entry.reference.iter().filter(|text| !ArtifactDigest::is_artifact_digest(text));
            let tag: String = tag.map(|tag| format!(":{tag}")).collect();
            let image = format!("{}{tag}@{digest}", entry.id);
            images.push(DeclaredImage { image, declared_by: None });
        }
        match images.is_empty() {
            true => Err("it declares none".to_owned()),
            false => Ok(images),
        }
    }
}

/// The lock, and what it is for. An answer about a lock that does not fit the manifests would be about something that nobody ships.
pub(super) fn lock_in_use(
    session: &Session,
) -> Result<(Arc<Lockfile>, Requirements), CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    check_chosen(session, &requirements)?;
    let differences = requirements.differences(session, &lock);
    if !differences.is_empty() {
        let message = format!("Mu.lock is out of date:\n{}", lines(&differences, MOST_NAMED));
        return Err(
            CommandError::new(Code::LockOutdated, message).hint("run `mu get`, and commit Mu.lock")
        );
    }
    Ok((lock, requirements))
}

/// A licence as an expression of SPDX: `Apache 2.0` and `Apache License 2.0` are `Apache-2.0`.
pub(super) fn license_expression(license: &str) -> Option<String> {
    // Manifests of charts often have the title of a licence, which is no expression.
    let mut all = spdx::identifiers::LICENSES.iter();
    if let Some(named) = all.find(|one| one.full_name.eq_ignore_ascii_case(license)) {
        return Some(named.name.to_owned());
    }
    let text = spdx::Expression::canonicalize(license).ok()?.unwrap_or_else(|| license.to_owned());
    spdx::Expression::parse(&text).ok()?;
    Some(text)
}

/// The licences of the packages in use.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Licenses {
    /// The packages: the workspace's own, followed by those of Mu.lock.
    pub packages: Vec<LicensedPackage>,
    /// How many of them the settings do not allow.
    pub refused: usize,
}

/// A package and its licence.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LicensedPackage {
    /// The package.
    #[serde(flatten)]
    pub package: PackageVersion,
    /// Its licence, as it says; `null` if it says none.
    pub license: Option<String>,
    /// The same as an expression of SPDX, if it is one, or nearly.
    pub spdx: Option<String>,
    /// Whether the settings allow it; `null` if they have no rule, and for the workspace's own packages.
    pub allowed: Option<bool>,
    /// Why the settings allow it although it is not among the allowed licences, or why they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The licences of the packages in use.
pub fn licenses(session: &Session) -> Result<Licenses, CommandError> {
    let rules = &session.workspace.settings.licenses;
    let inventory = Inventory::load(session)?;
    let packages = inventory.packages.iter().map(|package| {
        let spdx = package.license.as_deref().and_then(license_expression);
        let (allowed, reason) = match rules {
            // What the workspace itself publishes is for its authors to decide.
            Some(rules) if package.locked.is_some() => {
                judged(rules, &package.named, spdx.as_deref())
            }
            _ => (None, None),
        };
        let license = package.license.clone();
        LicensedPackage { package: package.named.clone(), license, spdx, allowed, reason }
    });
    let packages: Vec<LicensedPackage> = packages.collect();
    let refused = packages.iter().filter(|package| package.allowed == Some(false)).count();
    Ok(Licenses { packages, refused })
}

/// Whether the settings allow a licence, and why.
fn judged(
    rules: &LicenseRules,
    package: &PackageVersion,
    license: Option<&str>,
) -> (Option<bool>, Option<String>) {
    let is_allowed = |expression: &spdx::Expression| {
        expression.evaluate(|asked| rules.allow.iter().any(|allowed| allowed.satisfies(asked)))
    };
    let expression = license.and_then(|license| spdx::Expression::parse(license).ok());
    if expression.is_some_and(|expression| is_allowed(&expression)) {
        return (Some(true), None);
    }
    // An exception is told only where it is needed.
    if let Some(reason) = rules.except.get(&package.id) {
        return (Some(true), Some(reason.clone()));
    }
    let reason = match license {
        None => "it has no licence of SPDX",
        Some(_) => "its licence is not allowed",
    };
    (Some(false), Some(reason.to_owned()))
}

/// The container images of the packages in use.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Images {
    /// The images, sorted.
    pub images: Vec<UsedImage>,
    /// The packages whose images are not known.
    pub undeclared: Vec<Undeclared>,
}

/// An image, and what says that it is used.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsedImage {
    /// The image, as it is written.
    pub image: String,
    /// The packages that run it.
    pub packages: BTreeSet<PackageVersion>,
    /// What says so: an annotation, a file that was rendered, or `package` for what the package itself is or has.
    pub declared_by: BTreeSet<String>,
}

/// A package whose images are not known.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Undeclared {
    /// The package.
    #[serde(flatten)]
    pub package: PackageVersion,
    /// Why they are not known.
    pub reason: String,
}

/// The images of the packages in use; `rendered` are files that `helm template` wrote.
pub fn images(session: &Session, rendered: &[PathBuf]) -> Result<Images, CommandError> {
    let inventory = Inventory::load(session)?;
    let mut images: BTreeMap<String, UsedImage> = BTreeMap::new();
    let mut add = |image: String, package: Option<&PackageVersion>, declared_by: String| {
        let used = images.entry(image.clone()).or_insert_with(|| UsedImage {
            image,
            packages: BTreeSet::new(),
            declared_by: BTreeSet::new(),
        });
        used.packages.extend(package.cloned());
        used.declared_by.insert(declared_by);
    };
    // Charts are called by the last segment of their names.
    let mut rendered_of = BTreeSet::new();
    for path in rendered {
        let text = fs::read_text(path)?;
        let file = path.display().to_string();
        let found = images_in_resources(&file, &text)
            .map_err(|error| CommandError::from(error.in_text(path, &text)))?;
        for DeclaredImage { image, declared_by } in found {
            // Several packages may have that name: any of them may be the one.
            let chart = declared_by.as_deref();
            let mut named = inventory
                .packages
                .iter()
                .map(|package| &package.named)
                .filter(|one| Some(one.id.name().leaf()) == chart);
            let first = named.next();
            add(image.clone(), first, file.clone());
            named.for_each(|other| add(image.clone(), Some(other), file.clone()));
        }
        // Of these, everything is known, also if it is nothing.
        rendered_of.extend(rendered_charts(&text));
    }
    let mut undeclared = Vec::new();
    for package in &inventory.packages {
        match inventory.images(package) {
            Ok(declared) => {
                for DeclaredImage { image, declared_by } in declared {
                    let by = declared_by.unwrap_or_else(|| "package".to_owned());
                    add(image, Some(&package.named), by);
                }
            }
            Err(_) if rendered_of.contains(package.named.id.name().leaf()) => {}
            Err(reason) => undeclared.push(Undeclared { package: package.named.clone(), reason }),
        }
    }
    Ok(Images { images: images.into_values().collect(), undeclared })
}

#[cfg(test)]
mod tests {
    use super::license_expression;

    #[test]
    fn licences_are_read_as_people_write_them() {
        for (written, expected) in [
            ("MIT", Some("MIT")),
            ("Apache-2.0 OR MIT", Some("Apache-2.0 OR MIT")),
            ("Apache 2.0", Some("Apache-2.0")),
            ("apache license 2.0", Some("Apache-2.0")),
            ("GPL-2.0", Some("GPL-2.0-only")),
            ("MIT MIT", None),
            ("see LICENSE", None),
            ("", None),
        ] {
            assert_eq!(license_expression(written).as_deref(), expected, "{written}");
        }
    }
}
