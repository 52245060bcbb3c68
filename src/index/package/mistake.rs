//! Impossible dependencies, with their place in the manifest or the index line that contains them.

use std::path::Path;

use mu_provider::{Dependency, without_secrets};

use super::dependent::Dependent;
use crate::index::error::PackageError;
use crate::manifest::error_at_dependency;
use crate::manifest::source::SourceError;
use crate::reference::ReferenceError;

impl Dependent<'_> {
    /// The error of a dependency on a folder that only the author has.
    pub(super) fn no_folder(&self, dependency: &Dependency, folder: &str) -> PackageError {
        let (why, remedy) = match self.release.revision() {
            Some(_) => (
                "is not in its repository",
                "name the package in it instead, as in `https://github.com/acme/utils#^1.0`",
            ),
            None => (
                "is on its author's machine",
                "name the package in it instead, as in `acme/utils#^1.0`",
            ),
        };
        let message = format!("the folder `{folder}` {why}");
        let (id, version) = (self.package.id().clone(), self.version.to_owned());
        match self.in_file(dependency, &message) {
            Some(source) => {
                let source = source.help(format!("its author has to {remedy}"));
                PackageError::DependencyInFile { id, version, source }
            }
            None => PackageError::Folder { id, version, folder: folder.to_owned(), why, remedy },
        }
    }

    /// The error of a dependency on a place that what was fetched may not name.
    pub(super) fn no_lead(&self, dependency: &Dependency, why: &'static str) -> PackageError {
        let (id, version) = (self.package.id().clone(), self.version.to_owned());
        let place = without_secrets(dependency.reference()).into_owned();
        let source = self.in_file(dependency, &format!("this is refused: {why}"));
        PackageError::Lead { id, version, place, why, source: source.map(Box::new) }
    }

    /// The error of a dependency that cannot be read.
    pub(super) fn no_reference(
        &self,
        dependency: &Dependency,
        source: ReferenceError,
    ) -> PackageError {
        let (id, version) = (self.package.id().clone(), self.version.to_owned());
        match self.in_file(dependency, &source.to_string()) {
            Some(source) => PackageError::DependencyInFile { id, version, source },
            None => PackageError::Dependency { id, version, source },
        }
    }

    /// An error about a dependency, at its place in the index line or the manifest that it is from.
    fn in_file(&self, dependency: &Dependency, message: &str) -> Option<SourceError> {
        let Self { package, around, version, release, line } = *self;
        let reference = dependency.reference();
        if release.dependencies.is_some() {
            let lines = package.lines.as_ref()?;
            let line = lines.read(package.table.line(lines, line? as usize)?).ok()?;
            let text = std::str::from_utf8(&line).ok()?;
            let error = error_at_dependency(Path::new("line.json"), text, reference, message)?;
            return Some(error.with_path(format!("index line of {} {version}", package.id())));
        }
        let (progress, route) = (around.run().progress(), &package.route);
        let file = route.provider.manifest(&route.location, release, progress).ok()??;
        error_at_dependency(&route.shown(&file), &file.text, reference, message)
    }
}
