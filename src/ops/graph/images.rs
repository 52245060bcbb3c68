//! `images`: the container images that the packages in use say they run, or that `helm template` has written.
//!
//! A package that declares none is named, because it may run some all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mu_formats::{DeclaredImage, images_in_resources, rendered_charts};
use schemars::JsonSchema;
use serde::Serialize;

use crate::fs;
use crate::ops::graph::inventory::{Inventory, PackageVersion};
use crate::ops::{CommandError, Session};

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
