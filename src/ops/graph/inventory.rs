//! All packages that are in use, those of the workspace and those of Mu.lock, with what each says of itself: for the questions of
//! `images`, `licenses` and `sbom`.
//!
//! It is read from Mu.lock and from what is on this machine. Nothing is fetched, and a package that is missing is an error: an answer
//! without it would be wrong.

use std::path::PathBuf;
use std::sync::Arc;

use mu_formats::{DeclaredImage, Reading, crossplane};
use schemars::JsonSchema;
use serde::Serialize;

use crate::formats;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::apply::fetch::folder_here;
use crate::ops::graph::{Graph, Node};
use crate::ops::requirements::{Requirements, check_chosen, development_only};
use crate::ops::session::error::in_one_line;
use crate::ops::session::shown::lines;
use crate::ops::{Code, CommandError, Session};
use crate::reference::PackageId;

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
            let tag = entry.reference.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
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
