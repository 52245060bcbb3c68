//! What the versions and revisions of a package require, and what their dependencies mean: requirements of packages; or else a mistake, with
//! their place in the manifest or the index line that contains them.
//!
//! A local folder in a manifest of a repository, such as `../b`, is a neighbouring package in the same repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_provider::threads::lock;
use mu_provider::{Dependency, Release, without_secrets};

use super::Package;
use crate::index::error::PackageError;
use crate::index::run::PackageSurroundings;
use crate::index::wire::{self, Declared};
use crate::manifest::error_at_dependency;
use crate::manifest::source::SourceError;
use crate::reference::{Defaults, PackageId, ReferenceError, Version, VersionSpec};
use crate::select::releases::{Details, Position};
use crate::select::{Candidate, Requirement};

/// A version or revision of a package, whose dependencies become requirements.
struct Dependent<'r> {
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
        let options = &around.run().options;
        let all = self.declared(dependencies)?;
        // What names of one segment mean is asked about for all of them at once.
        let first = |declared: &Declared| {
            let id = &declared.requirement.id;
            (declared.fallback.is_some() && !(options.is_local)(id)).then(|| id.clone())
        };
        around.ask_ahead(&all.iter().filter_map(first).collect::<Vec<_>>());
        for (dependency, mut declared) in dependencies.iter().zip(all) {
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

    /// The dependencies as they can be read, whose places are those of this package if they do not say so themselves.
    fn declared(&self, dependencies: &[Dependency]) -> Result<Vec<Declared>, PackageError> {
        let (defaults, hints) = (self.defaults()?, &self.around.run().routes.hints);
        let mut all = Vec::with_capacity(dependencies.len());
        for dependency in dependencies {
            let declared = wire::parse_dependency(&defaults, dependency)
                .map_err(|source| self.no_reference(dependency, source))?;
            if declared.reference.base().is_none() && declared.reference.local().is_none() {
                hints.inherit(&declared.requirement.id, self.package.id());
                if let Some(fallback) = &declared.fallback {
                    hints.inherit(fallback, self.package.id());
                }
            }
            all.push(declared);
        }
        Ok(all)
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
    fn no_folder(&self, dependency: &Dependency, folder: &str) -> PackageError {
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
    fn no_lead(&self, dependency: &Dependency, why: &'static str) -> PackageError {
        let (id, version) = (self.package.id().clone(), self.version.to_owned());
        let place = without_secrets(dependency.reference()).into_owned();
        let source = self.in_file(dependency, &format!("this is refused: {why}"));
        PackageError::Lead { id, version, place, why, source: source.map(Box::new) }
    }

    /// The error of a dependency that cannot be read.
    fn no_reference(&self, dependency: &Dependency, source: ReferenceError) -> PackageError {
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

/// How many versions of a package are looked into, the newest first, for who requires another one.
const LOOKED_INTO: usize = 64;

/// What a version requires, once that was looked up.
pub(super) type LookedUpRequirements = Result<Arc<[Arc<Requirement>]>, Arc<PackageError>>;

impl Package {
    /// What a candidate requires.
    pub(in crate::index) fn requirements(
        &self,
        around: &dyn PackageSurroundings,
        candidate: Candidate<'_>,
    ) -> LookedUpRequirements {
        match candidate {
            Candidate::Release(position) => match self.plain(around, position) {
                // Computing it is as fast as caching it.
                Some(plain) => Ok(plain),
                None => {
                    let of_line = || self.of_line(around, position).map_err(Arc::new);
                    // A second thread waits for the first.
                    let slot = Arc::clone(lock(&self.requirements).entry(position).or_default());
                    slot.get_or_init(of_line).clone()
                }
            },
            Candidate::Revision(untagged) => {
                let looked = lock(&self.untagged).get(&*untagged.commit).cloned();
                let Some(looked) = looked else {
                    return Ok(Arc::from([]));
                };
                looked
                    .requirements
                    .get_or_init(|| {
                        let (version, release) = (&*untagged.commit, &looked.release);
                        let dependent =
                            Dependent { package: self, around, version, release, line: None };
                        dependent.settle(&looked.dependencies).map_err(Arc::new)
                    })
                    .clone()
            }
        }
    }

    /// What a version requires, from its line or its manifest.
    fn of_line(
        &self,
        around: &dyn PackageSurroundings,
        position: Position,
    ) -> Result<Arc<[Arc<Requirement>]>, PackageError> {
        let release = self.line(position)?;
        let dependencies = match release.dependencies.clone() {
            Some(dependencies) => dependencies,
            None => {
                let seen = self.manifests(around).seen(&release)?.unwrap_or_default();
                let details = seen.details.filter(|details| **details != Details::default());
                lock(&self.declared).extend(details.map(|details| (position, details)));
                seen.dependencies
            }
        };
        let (version, line) = (self.releases.version(position).to_string(), Some(position));
        let (version, release) = (&*version, &release);
        Dependent { package: self, around, version, release, line }.settle(&dependencies)
    }

    /// The packages that its versions require, as far as known without a request. If only their lines tell,
    /// at most `left` versions are parsed, and subtracted from it.
    pub(in crate::index) fn known_requirements(
        &self,
        around: &dyn PackageSurroundings,
        left: &mut u32,
    ) -> Vec<PackageId> {
        let slots: Vec<_> = lock(&self.requirements).values().cloned().collect();
        let settled = slots.iter().filter_map(|slot| slot.get()?.as_ref().ok().cloned());
        let revisions: Vec<_> = lock(&self.untagged).values().cloned().collect();
        let of_revisions =
            revisions.iter().filter_map(|looked| looked.requirements.get()?.as_ref().ok().cloned());
        let settled = settled.chain(of_revisions);
        let looked_into = self.releases.len().min(*left);
        *left -= looked_into;
        let newest_first = (0..self.releases.len()).rev().take(looked_into as usize);
        let plain = newest_first.filter_map(|position| self.plain(around, position));
        let mut ids = Vec::new();
        for requirements in settled.chain(plain) {
            ids.extend(requirements.iter().map(|requirement| requirement.id.clone()));
        }
        ids
    }

    /// Its newest version that requires a package, as far as known without a request.
    pub(in crate::index) fn requiring(
        &self,
        around: &dyn PackageSurroundings,
        id: &PackageId,
    ) -> Option<Version> {
        let slots: Vec<_> =
            lock(&self.requirements).iter().map(|(at, slot)| (*at, Arc::clone(slot))).collect();
        let settled =
            slots.iter().filter_map(|(at, slot)| Some((*at, slot.get()?.as_ref().ok()?.clone())));
        let newest_first = (0..self.releases.len()).rev().take(LOOKED_INTO);
        let plain = newest_first.filter_map(|at| Some((at, self.plain(around, at)?)));
        let all = settled.chain(plain);
        let requiring = all.filter(|(_, needs)| needs.iter().any(|needed| needed.id == *id));
        Some(self.releases.version(requiring.map(|(at, _)| at).max()?))
    }

    /// What a version requires, if that is known without its line, and its references mean nothing but their
    /// ids.
    pub(super) fn plain(
        &self,
        around: &dyn PackageSurroundings,
        position: Position,
    ) -> Option<Arc<[Arc<Requirement>]>> {
        let lines = self.lines.as_ref()?;
        let references = self.table.needs(lines, position as usize)?;
        let has_aliases = !around.run().options.defaults.aliases.is_empty();
        if has_aliases
            || around.run().routes.hints.hint_for(self.id()).is_some()
            || self.route.folder().is_some()
        {
            return None;
        }
        let own = around.run().options.instead_of.get(self.id()).unwrap_or(self.id());
        // A folder of the workspace is one package, whatever name a reference uses.
        let options = &around.run().options;
        let has_other_name =
            |id: &PackageId| (options.is_local)(id) && (options.own_name)(id.clone()) != *id;
        let commits = &around.run().commits;
        around.run().plain.requirements(own, &references, commits, has_other_name)
    }
}

/// The package that the manifest of `id`, in `folder` of its repository, means by the relative path
/// `written`; `None` if that is not in the repository.
pub(crate) fn sibling(id: &PackageId, folder: &str, written: &str) -> Option<PackageId> {
    if written.starts_with('/') {
        return None;
    }
    let own = if folder.is_empty() { 0 } else { folder.split('/').count() };
    let segments: Vec<&str> = id.name_str().split('/').collect();
    let (repository, inside) = segments.split_at(segments.len().checked_sub(own)?);
    if inside.join("/") != folder {
        return None;
    }
    let mut inside = inside.to_vec();
    for segment in written.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(inside.pop()?),
            name => inside.push(name),
        }
    }
    let name = [repository, &inside].concat().join("/");
    PackageId::parse(&format!("{}{name}", id.base().as_str())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_inside_the_repository_is_a_package_of_it() {
        for (id, folder, written, expected) in [
            ("h.co/g/mono/libs/a", "libs/a", "../b", Some("h.co/g/mono/libs/b")),
            ("h.co/g/mono/libs/a", "libs/a", "./in/", Some("h.co/g/mono/libs/a/in")),
            ("h.co/g/mono/libs/a", "libs/a", "../..", Some("h.co/g/mono")),
            ("h.co/g/mono", "", "./libs/a", Some("h.co/g/mono/libs/a")),
            ("h.co/g/mono", "", "../other", None),
            ("h.co/g/mono/libs/a", "libs/a", "../../../other", None),
            ("h.co/g/mono/libs/a", "libs/a", "../../x/../../other", None),
            ("h.co/g/mono/libs/a", "libs/a", "/srv/b", None),
            // A registry may serve the repository as the whole base.
            ("h.co/libs/a", "libs/a", "../b", Some("h.co/libs/b")),
            ("h.co/libs/a", "libs/a", "../..", None),
            ("h.co/other", "libs/a", "../b", None),
        ] {
            let id = PackageId::parse(id).expect("is an id");
            let found = sibling(&id, folder, written).map(|id| id.to_string());
            assert_eq!(found.as_deref(), expected, "{id} {written}");
        }
    }
}
