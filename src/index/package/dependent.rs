//! What the dependencies of a version or revision mean: requirements of packages; or else a mistake, with their place in the manifest or the index line that contains them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_provider::{Dependency, Release, without_secrets};

use super::Package;
use crate::index::error::PackageError;
use crate::index::run::PackageSurroundings;
use crate::index::sibling::sibling;
use crate::index::wire;
use crate::manifest::error_at_dependency;
use crate::manifest::source::SourceError;
use crate::reference::{Defaults, PackageId, ReferenceError, VersionSpec};
use crate::select::Requirement;
use crate::select::releases::Position;

/// A version or revision of a package, whose dependencies become requirements.
pub(super) struct Dependent<'r> {
    pub(super) package: &'r Package,
    pub(super) around: &'r dyn PackageSurroundings,
    /// The version, or the commit, for messages.
    pub(super) version: &'r str,
    /// The data from its place.
    pub(super) release: &'r Release,
    /// Where its line is, if it has one.
    pub(super) line: Option<Position>,
}

impl Dependent<'_> {
    /// What its dependencies leave out: an override fills in what the original package would, and
    /// a package in a folder what the name in its manifest says, because nothing else could come from a
    /// folder.
    fn defaults(&self) -> Result<Defaults, PackageError> {
        let options = &self.around.run().options;
        let inherited = |id: &PackageId| {
            let aliases = options.defaults.aliases.clone();
            Defaults { aliases, ..wire::inherited(id) }
        };
        if let Some(other) = options.instead_of.get(self.package.id()) {
            return Ok(inherited(other));
        }
        if self.package.route.folder().is_none() {
            return Ok(inherited(self.package.id()));
        }
        let manifest = self.package.manifests(self.around).read(self.release)?;
        let own = manifest.map(|manifest| manifest.name.id(&options.defaults));
        Ok(own.map_or_else(|| options.defaults.clone(), |own| inherited(&own)))
    }

    /// Turns dependencies as they are written into requirements of packages.
    pub(super) fn settle(
        &self,
        dependencies: &[Dependency],
    ) -> Result<Arc<[Arc<Requirement>]>, PackageError> {
        let Self { package, around, .. } = *self;
        let mut requirements = Vec::with_capacity(dependencies.len());
        let defaults = self.defaults()?;
        for dependency in dependencies {
            let mut declared = wire::parse_dependency(&defaults, dependency)
                .map_err(|source| self.no_reference(dependency, source))?;
            let commit = self.release.revision();
            // In a repository, a folder means the package there, of the same commit.
            if let (Some(folder), Some(commit)) = (declared.reference.local(), commit) {
                let Some(beside) = self.beside(folder, commit) else {
                    return Err(self.no_folder(dependency, folder));
                };
                // A written version must also be that of the commit.
                if declared.reference.version().is_some() {
                    declared.requirement.id = beside.id.clone();
                    requirements.push(Arc::new(declared.requirement));
                }
                requirements.push(Arc::new(beside));
                continue;
            }
            let options = &around.run().options;
            if declared.reference.base().is_none() && declared.reference.local().is_none() {
                around.run().routes.hints.inherit(&declared.requirement.id, package.id());
                if let Some(fallback) = &declared.fallback {
                    around.run().routes.hints.inherit(fallback, package.id());
                }
            }
            // A name that may mean two packages means the first one that exists.
            if let Some(fallback) = declared.fallback
                && !(options.is_local)(&declared.requirement.id)
                && !around.is_there(&declared.requirement.id)?
            {
                declared.requirement.id = fallback;
            }
            if declared.reference.local().is_none() && (options.is_local)(&declared.requirement.id)
            {
                // A folder of the workspace is one package, whatever name a reference uses.
                declared.requirement.id = (options.own_name)(declared.requirement.id);
            }
            let from = match (declared.reference.local(), package.route.folder()) {
                (Some(folder), None) => return Err(self.no_folder(dependency, folder)),
                (Some(folder), Some(from)) => {
                    let folder = crate::env::absolute(&from, Path::new(folder));
                    declared.requirement.id = PackageId::local(&folder);
                    from
                }
                (None, _) => PathBuf::new(),
            };
            let id = &declared.requirement.id;
            let run = around.run();
            run.declare_dependency(&package.route, id, &declared.reference, &from)
                .map_err(|why| self.no_lead(dependency, why))?;
            requirements.push(Arc::new(declared.requirement));
        }
        Ok(Arc::from(requirements))
    }

    /// What a local folder in the manifest of a commit means: the package there, of the same commit; `None`
    /// if it is not in the repository.
    fn beside(&self, folder: &str, commit: &str) -> Option<Requirement> {
        let Self { package, around, .. } = *self;
        let own = package.route.location.folder.as_deref().unwrap_or_default();
        let spec = VersionSpec::parse(commit).ok()?;
        let id = sibling(package.id(), own, folder)?;
        around.run().routes.hints.inherit(&id, package.id());
        around.run().commits.note(&id, &spec);
        Some(Requirement::new(id, spec))
    }
}

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
        error_at_dependency(&route.manifest_path(&file), &file.text, reference, message)
    }
}
