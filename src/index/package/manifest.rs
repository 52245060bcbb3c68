//! Reads a package's manifests, for the data that its lines lack.

use std::path::PathBuf;
use std::sync::Arc;

use mu_formats::{Reading, helm};
use mu_provider::threads::lock;
use mu_provider::{
    Dependency, DetailedDependency, ErrorKind, Location, ManifestFile, PlaceKind, Progress, Release,
};

use super::Package;
use crate::formats;
use crate::index::error::PackageError;
use crate::index::routes::Route;
use crate::index::run::PackageSurroundings;
use crate::index::wire;
use crate::manifest::{Manifest, Outline};
use crate::reference::{PackageId, Version};
use crate::select::Candidate;
use crate::select::releases::{ChosenFacts, Details};

/// The data of a release's manifest that selection needs.
#[derive(Debug, Default)]
pub(super) struct ReleaseManifestData {
    pub(super) version: Option<Version>,
    pub(super) details: Option<Arc<Details>>,
    pub(super) dependencies: Vec<Dependency>,
}

/// Reads the manifests of a package.
pub(in crate::index) struct Manifests<'p> {
    id: &'p PackageId,
    route: &'p Route,
    around: &'p dyn PackageSurroundings,
}

impl Manifests<'_> {
    /// The manifest of a release, if its place can show it without a fetch of the whole package.
    pub(in crate::index) fn read(
        &self,
        release: &Release,
    ) -> Result<Option<Manifest>, PackageError> {
        let progress = self.around.run().start_lookup(self.id);
        let file = self.file(release, &*progress)?;
        file.map(|file| self.parse(release, &file)).transpose()
    }

    /// The file of a release's manifest, if that is text.
    fn file(
        &self,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Option<ManifestFile>, PackageError> {
        let file = self.route.provider.manifest(&self.route.location, release, progress)?;
        Ok(file.filter(|file| formats::is_manifest_text(&file.name, &file.text)))
    }

    fn parse(&self, release: &Release, file: &ManifestFile) -> Result<Manifest, PackageError> {
        let version = match (&release.version, release.revision()) {
            (version, Some(revision)) if version.is_empty() => revision.to_owned(),
            (version, _) => version.clone(),
        };
        let path = self.route.manifest_path(file);
        let read = match formats::format_of_manifest(&path) {
            Some(format) => {
                let beside = file.beside.iter().cloned();
                // Only charts have short names for repositories.
                let is_chart = format.name == helm::FORMAT.name;
                let aliases = is_chart.then(|| (self.around.run().options.helms_aliases)());
                let is_folder = self.route.provider.facts().kind == PlaceKind::Folder;
                let reading =
                    Reading { is_folder, aliases: aliases.as_ref(), ..Reading::default() };
                formats::parse(format, &path, &file.text, beside, &reading)
            }
            None => Manifest::parse_published(&path, &file.text),
        };
        read.map_err(|source| match &*version {
            "" => PackageError::ManifestInFolder { id: self.id.clone(), source },
            _ => PackageError::Manifest { id: self.id.clone(), version, source },
        })
    }

    /// The data of a release's manifest that selection needs. If another mu is needed to read it, only that
    /// is returned.
    pub(super) fn seen(
        &self,
        release: &Release,
    ) -> Result<Option<ReleaseManifestData>, PackageError> {
        let progress = self.around.run().start_lookup(self.id);
        let Route { provider, location, .. } = self.route;
        let aliases = &self.around.run().options.defaults.aliases;
        let of_line = |details: Details, dependencies: Vec<Dependency>| {
            let details = Some(Arc::new(details.counted(aliases)));
            Ok(Some(ReleaseManifestData { version: None, details, dependencies }))
        };
        // The place itself knows more than a listing of hints.
        if let Some(own) = provider.confirm(location, release, &*progress)? {
            let details = wire::details(self.id, &own);
            return of_line(details, own.dependencies.unwrap_or_default());
        }
        if let (Some(dependencies), true) = (&release.dependencies, provider.facts().has_revisions)
        {
            return of_line(wire::details(self.id, release), dependencies.clone());
        }
        let broken = |reason: String| {
            let details = Details { broken: Some(reason), ..Details::default() };
            Ok(Some(ReleaseManifestData {
                details: Some(Arc::new(details)),
                ..ReleaseManifestData::default()
            }))
        };
        let file = match self.file(release, &*progress) {
            // A version that is none, such as a tag that leads to no commit, keeps no other one from being used.
            Err(PackageError::Provider(error)) if error.kind() == ErrorKind::Manifest => {
                return broken(error.to_string());
            }
            file => file?,
        };
        let Some(file) = file else { return Ok(None) };
        let manifest = match self.parse(release, &file) {
            Ok(manifest) => manifest,
            Err(error) => {
                let shown = self.route.manifest_path(&file);
                let is_own = formats::format_of_manifest(&shown).is_none();
                // A manifest that this mu cannot read may still say which mu can.
                let known = is_own.then(|| Outline::parse(&shown, &file.text).ok()).flatten();
                let details = match known.filter(Outline::is_of_another_mu) {
                    Some(Outline { api_version, mu_version, .. }) => {
                        let facts = ChosenFacts { mu_version, ..ChosenFacts::default() };
                        Details { api_version, facts, ..Details::default() }
                    }
                    None => match &error {
                        // What the tools of another ecosystem refuse is one version, not the package.
                        PackageError::Manifest { source, .. } if !is_own => {
                            let place = format!("{}:{}", source.path().display(), source.line());
                            let reason = format!("{place}: {}", source.message());
                            Details { broken: Some(reason), ..Details::default() }
                        }
                        _ => return Err(error),
                    },
                };
                return Ok(Some(ReleaseManifestData {
                    details: Some(Arc::new(details)),
                    ..ReleaseManifestData::default()
                }));
            }
        };
        Ok(Some(ReleaseManifestData {
            version: manifest.version.clone(),
            details: Some(Arc::new(self.details(&manifest).counted(aliases))),
            dependencies: dependencies(&manifest),
        }))
    }

    /// The data of a manifest that matters to users of the package.
    fn details(&self, manifest: &Manifest) -> Details {
        Details {
            app_version: manifest.app_version.clone(),
            api_version: manifest.api_version.clone(),
            facts: wire::chosen_facts(self.id, &manifest.to_release()),
            ..Details::default()
        }
    }
}

impl Package {
    /// What reads its manifests.
    pub(in crate::index) fn manifests<'p>(
        &'p self,
        around: &'p dyn PackageSurroundings,
    ) -> Manifests<'p> {
        Manifests { id: self.id(), route: &self.route, around }
    }

    /// This package, as its format wants it. In a repository only a manifest says what the format is, and it
    /// is read only if all versions are prereleases: those of another ecosystem are chosen as releases are.
    pub(in crate::index) fn by_format(mut self, around: &dyn PackageSurroundings) -> Self {
        let releases = &self.releases;
        if releases.has_commits() && !releases.is_empty() && releases.has_only_prereleases() {
            let newest = self.line(releases.len() - 1).ok();
            let (provider, location) = (&self.route.provider, &self.route.location);
            let progress = around.run().start_lookup(self.id());
            // What cannot be read now is reported once it is needed.
            let file =
                newest.and_then(|line| provider.manifest(location, &line, &*progress).ok()?);
            if file.is_some_and(|file| {
                formats::format_of_manifest(&self.route.manifest_path(&file)).is_some()
            }) {
                Arc::make_mut(&mut self.releases).counts_prereleases = true;
            }
        }
        self
    }

    /// The data of a version's manifest, if it was read and has more than the listing.
    pub(in crate::index) fn declared(
        &self,
        around: &dyn PackageSurroundings,
        candidate: Candidate<'_>,
    ) -> Result<Option<Arc<Details>>, Arc<PackageError>> {
        let Candidate::Release(position) = candidate else { return Ok(None) };
        if self.has_known_requirements() || self.releases.details(position).is_some() {
            return Ok(None);
        }
        self.requirements(around, candidate)?;
        Ok(lock(&self.declared).get(&position).cloned())
    }
}

/// A line with what the manifest in its archive says. If another mu is needed to read that, only this is known.
pub(in crate::index) fn with_manifest(
    id: &PackageId,
    line: Release,
    location: &Location,
    file: &ManifestFile,
) -> Result<Release, PackageError> {
    let path = PathBuf::from(format!("{}/{}", location.describe(), file.name));
    let said = match Manifest::parse_published(&path, &file.text) {
        Ok(manifest) => manifest.to_release(),
        Err(source) => {
            let known = Outline::parse(&path, &file.text).ok().filter(Outline::is_of_another_mu);
            let Some(Outline { api_version, mu_version, .. }) = known else {
                return Err(PackageError::ManifestInFolder { id: id.clone(), source });
            };
            return Ok(Release { api_version, mu_version, ..line });
        }
    };
    Ok(Release {
        name: line.name,
        version: if said.version.is_empty() { line.version } else { said.version.clone() },
        archive: line.archive,
        commit: line.commit,
        artifact: line.artifact,
        size: line.size,
        ..said
    })
}

/// A manifest's dependencies in the form of an index line.
fn dependencies(manifest: &Manifest) -> Vec<Dependency> {
    manifest
        .dependencies
        .iter()
        .map(|dependency| {
            Dependency::Detailed(Box::new(DetailedDependency {
                reference: dependency.reference.to_string(),
                channel: dependency.channel.clone(),
                app_version: dependency.app_version.clone(),
                prerelease: dependency.prerelease,
            }))
        })
        .collect()
}
