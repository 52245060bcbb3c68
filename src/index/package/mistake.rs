//! Impossible dependencies, with their place in the manifest or the index line that contains them.

use std::path::Path;

use mu_provider::{Dependency, Release};

use super::Package;
use crate::index::error::PackageError;
use crate::index::releases::Position;
use crate::index::run::Surroundings;
use crate::manifest::error_at_dependency;
use crate::manifest::source::SourceError;
use crate::reference::ReferenceError;

/// The version that has the dependency.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'r> {
    /// The version, or the commit, for messages.
    pub(super) version: &'r str,
    /// The data from its place.
    pub(super) release: &'r Release,
    /// Where its line is, if it has one.
    pub(super) line: Option<Position>,
}

impl Package {
    /// The error of a dependency on a folder that only the author has.
    pub(super) fn no_folder(
        &self,
        around: &dyn Surroundings,
        about: About<'_>,
        dependency: &Dependency,
        folder: &str,
    ) -> PackageError {
        let (why, remedy) = match about.release.commit {
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
        let (id, version) = (self.id().clone(), about.version.to_owned());
        match self.in_file(around, about, dependency, &message) {
            Some(source) => {
                let source = source.help(format!("its author has to {remedy}"));
                PackageError::DependencyInFile { id, version, source }
            }
            None => PackageError::Folder { id, version, folder: folder.to_owned(), why, remedy },
        }
    }

    /// The error of a dependency that cannot be read.
    pub(super) fn no_reference(
        &self,
        around: &dyn Surroundings,
        about: About<'_>,
        dependency: &Dependency,
        source: ReferenceError,
    ) -> PackageError {
        let (id, version) = (self.id().clone(), about.version.to_owned());
        match self.in_file(around, about, dependency, &source.to_string()) {
            Some(source) => PackageError::DependencyInFile { id, version, source },
            None => PackageError::Dependency { id, version, source },
        }
    }

    /// An error about a dependency, at its place in the index line or the manifest that it is from.
    fn in_file(
        &self,
        around: &dyn Surroundings,
        about: About<'_>,
        dependency: &Dependency,
        message: &str,
    ) -> Option<SourceError> {
        let reference = dependency.reference();
        if about.release.dependencies.is_some() {
            let lines = self.lines.as_ref()?;
            let line = lines.read(self.table.line(lines, about.line? as usize)?).ok()?;
            let text = std::str::from_utf8(&line).ok()?;
            let error = error_at_dependency(Path::new("line.json"), text, reference, message)?;
            return Some(error.with_path(format!("index line of {} {}", self.id(), about.version)));
        }
        let progress = around.run().progress();
        let location = &self.route.location;
        let file = self.route.provider.manifest(location, about.release, progress).ok()??;
        error_at_dependency(&self.shown(&file), &file.text, reference, message)
    }
}
