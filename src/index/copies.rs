//! Whether a version carries a copy of a package that it depends on, as charts do in `charts/`.
//!
//! Only its archive says so. It is looked at where the answer is offered to a person, and nowhere else.

use mu_provider::fs::{AtPath as _, private_folder};
use mu_provider::{Folder, Limits, ProviderError, Silent, TreeWriter};

use crate::index::package::Package;
use crate::index::universe::Candidate;
use crate::reference::Version;

/// Whether a version of `package` carries a copy of the package called `name`. What cannot be looked at counts as carrying one.
pub(super) fn carries(package: &Package, version: &str, name: &str) -> bool {
    let route = &package.route;
    if !route.provider.carries_copies(&route.location) {
        return false;
    }
    let position = Version::parse_lenient(version).ok();
    let Some(position) = position.and_then(|version| package.releases.position(&version)) else {
        return true;
    };
    paths(package, Candidate::Release(position))
        .is_none_or(|paths| paths.iter().any(|path| mu_formats::helm::is_copy(path, name)))
}

/// The paths of the files of a version; `None` if it cannot be fetched.
fn paths(package: &Package, candidate: Candidate<'_>) -> Option<Vec<String>> {
    let (route, release) = package.release(candidate).ok()?;
    let fetched = || -> Result<Vec<String>, ProviderError> {
        let folder = private_folder();
        let folder = folder.tempdir().at("make a folder in", &std::env::temp_dir())?;
        let opened = Folder::open(folder.path()).at("open", folder.path())?;
        let mut tree = TreeWriter::new(opened, Limits::default());
        route.provider.fetch(&route.location, &release, &mut tree, &Silent)?;
        let tree = tree.finish()?;
        Ok(tree.entries().iter().map(|entry| entry.path.clone()).collect())
    };
    fetched().ok()
}
