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
    let route = package.route();
    if !route.provider.carries_copies(&route.location) {
        return false;
    }
    let position = Version::parse_lenient(version).ok();
    let Some(position) = position.and_then(|version| package.releases().position(&version)) else {
        return true;
    };
    paths(package, Candidate::Release(position))
        .is_none_or(|paths| paths.iter().any(|path| is_copy(path, name)))
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

/// Whether a file of a chart is the manifest or the archive of a copy of another one.
fn is_copy(path: &str, name: &str) -> bool {
    let Some(copy) = path.strip_prefix("charts/").and_then(|path| path.strip_prefix(name)) else {
        return false;
    };
    copy == "/Chart.yaml"
        || (copy.starts_with('-') && copy.ends_with(".tgz") && !copy.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::is_copy;

    #[test]
    fn copies_are_folders_or_archives() {
        for (path, expected) in [
            ("charts/common/Chart.yaml", true),
            ("charts/common-2.0.0.tgz", true),
            ("charts/common/templates/Chart.yaml", false),
            ("charts/commons/Chart.yaml", false),
            ("charts/common-a/Chart.yaml", false),
            ("charts/web/charts/common/Chart.yaml", false),
            ("common/Chart.yaml", false),
        ] {
            assert_eq!(is_copy(path, "common"), expected, "{path}");
        }
    }
}
