//! What the place of a package really has: under the name of a commit, tag, branch or digest, and as a version that its
//! listing only hints at.
//!
//! A name is looked up in the listing first; the provider is asked about what is not there. If the listing of a version
//! is only a hint, [`Package::confirm_release`] asks the place itself, and returns what the version is if selection
//! used other data. Which version is chosen is not decided here.

use std::sync::{Arc, OnceLock};

use mu_provider::threads::lock;
use mu_provider::{Dependency, ErrorKind, LineTrust, Release, Yanked, none_if};

use super::Package;
use super::requirements::LookedUpRequirements;
use crate::index::error::PackageError;
use crate::index::run::PackageSurroundings;
use crate::index::wire;
use crate::manifest::facts::read_by_selection;
use crate::reference::VersionSpec;
use crate::select::releases::Position;
use crate::select::{Revision, Untagged};

/// A revision without a version tag that was looked up.
#[derive(Debug)]
pub(super) struct LookedUpRevision {
    pub(super) untagged: Untagged,
    pub(super) dependencies: Vec<Dependency>,
    pub(super) release: Release,
    pub(super) requirements: OnceLock<LookedUpRequirements>,
}

/// The full name of a tag or branch, from one of the ways in which Git writes it: `refs/heads/x`, `heads/x`.
fn full_name(name: &str) -> Option<String> {
    let short = name.strip_prefix("refs/").unwrap_or(name);
    let is_full = ["heads/", "tags/"].iter().any(|kind| short.starts_with(kind));
    is_full.then(|| format!("refs/{short}"))
}

/// The version that was made from a commit, such as a mirror's copy of a package in Git, if all digits are given: whoever requires the
/// commit gets the same content behind the mirror.
fn made_from(package: &Package, name: &VersionSpec) -> Option<Position> {
    let VersionSpec::Commit(commit) = name else { return None };
    let is_copy = |release: &Release| {
        let made_from = release.commit.as_deref();
        made_from.is_some_and(|made_from| commit.is_full() && commit.matches(made_from))
    };
    let lines = (0..package.table.len() as Position).rev();
    let copy = lines.filter_map(|at| package.line(at).ok()).find(is_copy)?;
    let version = wire::version_of(&copy, package.route.location.lenient)?;
    package.releases.position_of_version(&version)
}

impl Package {
    /// What a commit, tag, branch, digest or `tip` names.
    pub(in crate::index) fn revision(
        &self,
        around: &dyn PackageSurroundings,
        name: &VersionSpec,
    ) -> Result<Option<Revision>, PackageError> {
        if self.lines.is_none() {
            return Ok(None);
        }
        if let VersionSpec::Digest(digest) = name {
            return self.of_digest(around, digest.as_str());
        }
        if self.route.provider.facts().has_revisions {
            return self.listed_or_asked(around, name);
        }
        if !self.releases.has_commits() {
            return match self.in_registry(name).or_else(|| made_from(self, name)) {
                None => self.tagged(around, name),
                known => Ok(known.map(Revision::Release)),
            };
        }
        let text = match name {
            VersionSpec::Tip => None,
            other => Some(other.to_string()),
        };
        let is_full_commit = matches!(name, VersionSpec::Commit(commit) if commit.is_full());
        if !is_full_commit && let Some(release) = self.named(text.as_deref())? {
            return self.revision_from_release(around, release).map(Some);
        }
        let VersionSpec::Commit(commit) = name else {
            return Ok(None);
        };
        if let Some(known) = self.known_revision(commit.as_str()) {
            return Ok(Some(known));
        }
        let release = self.resolve(around, commit.as_str())?;
        release.map(|release| self.revision_from_release(around, release)).transpose()
    }

    /// What is known to be at a commit, or to have a digest.
    fn known_revision(&self, commit: &str) -> Option<Revision> {
        let untagged = || Some(lock(&self.untagged).get(commit)?.untagged.clone());
        let release = self.releases.at_commit(commit).map(Revision::Release);
        release.or_else(|| untagged().map(Revision::Untagged))
    }

    /// What the place itself has under a name.
    fn resolve(
        &self,
        around: &dyn PackageSurroundings,
        name: &str,
    ) -> Result<Option<Release>, PackageError> {
        let progress = around.run().start_lookup(self.id());
        let found = self.route.provider.resolve(&self.route.location, name, &*progress);
        Ok(none_if(found, ErrorKind::NotFound)?)
    }

    /// What has this digest, however it is called.
    fn of_digest(
        &self,
        around: &dyn PackageSurroundings,
        digest: &str,
    ) -> Result<Option<Revision>, PackageError> {
        if !self.route.provider.facts().has_digests {
            return Err(PackageError::NoDigests {
                id: self.id().clone(),
                digest: digest.to_owned(),
                place: self.route.location.describe(),
            });
        }
        if let Some(known) = self.known_revision(digest) {
            return Ok(Some(known));
        }
        let Some(found) = self.resolve(around, digest)? else { return Ok(None) };
        self.revision_from_release(
            around,
            Release { commit: None, artifact: Some(digest.to_owned()), ..found },
        )
        .map(Some)
    }

    /// What a name means where the listing has some revisions, and the provider can be asked about others.
    fn listed_or_asked(
        &self,
        around: &dyn PackageSurroundings,
        name: &VersionSpec,
    ) -> Result<Option<Revision>, PackageError> {
        let release = match self.listed(name)? {
            Some(release) => release,
            None if *name == VersionSpec::Tip => return Ok(None),
            None => match self.resolve(around, &name.to_string())? {
                Some(release) => release,
                None => return Ok(None),
            },
        };
        self.meant(around, release)
    }

    /// What a release of this place means here: a revision if it is one of a commit, or else a version.
    fn meant(
        &self,
        around: &dyn PackageSurroundings,
        release: Release,
    ) -> Result<Option<Revision>, PackageError> {
        if release.revision().is_some() {
            return self.revision_from_release(around, release).map(Some);
        }
        let version = wire::version_of(&release, self.route.location.lenient);
        let position = version.and_then(|version| self.releases.position_of_version(&version));
        Ok(position.map(Revision::Release))
    }

    /// The newest line that a name means: a tag, a branch, the tip, or a commit that no other line begins like.
    fn listed(&self, name: &VersionSpec) -> Result<Option<Release>, PackageError> {
        let text = name.as_tag();
        let commit = match name {
            VersionSpec::Commit(commit) => Some(commit),
            _ => None,
        };
        let mut at_commit: Vec<Release> = Vec::new();
        for position in (0..self.table.len() as Position).rev() {
            let release = self.line(position)?;
            let is_called = |text: &str| {
                let full = release.reference.as_deref().unwrap_or_default();
                let short =
                    ["refs/tags/", "refs/heads/"].iter().find_map(|at| full.strip_prefix(at));
                full == text || short == Some(text) || release.tags.iter().any(|tag| tag == text)
            };
            if text.is_some_and(is_called) || (*name == VersionSpec::Tip && release.tip) {
                return Ok(Some(release));
            }
            let known = release.revision();
            if commit.zip(known).is_some_and(|(commit, known)| commit.matches(known)) {
                at_commit.push(release);
            }
        }
        let is_one = at_commit
            .windows(2)
            .all(|pair| matches!(pair, [one, other] if one.revision() == other.revision()));
        Ok(at_commit.into_iter().next().filter(|_| is_one))
    }

    /// A hub's tag, or its highest version.
    fn in_registry(&self, name: &VersionSpec) -> Option<Position> {
        let mut newest_first = (0..self.releases.len()).rev();
        let details = |position: Position| self.releases.details(position);
        match name {
            VersionSpec::Tip => newest_first
                .find(|position| details(*position).is_none_or(|details| details.yanked.is_none())),
            other => {
                let text = other.to_string();
                newest_first.find(|position| {
                    details(*position).is_some_and(|details| details.tags.contains(&text))
                })
            }
        }
    }

    /// What a tag leads to that only the registry itself knows: a version, or another artifact.
    fn tagged(
        &self,
        around: &dyn PackageSurroundings,
        name: &VersionSpec,
    ) -> Result<Option<Revision>, PackageError> {
        // Tags can look like commits, and partial versions are ranges.
        let tag = name.as_tag().filter(|_| !matches!(name, VersionSpec::Range(_)));
        let tag = tag.filter(|_| self.route.provider.facts().lines == LineTrust::Hint);
        let Some(tag) = tag else { return Ok(None) };
        let release = self.resolve(around, tag)?;
        release.map_or(Ok(None), |release| self.meant(around, release))
    }

    /// The line of a tag or branch called `name`, or of the default branch. With its full name, as Git has it, a branch is found
    /// although a tag is called alike.
    fn named(&self, name: Option<&str>) -> Result<Option<Release>, PackageError> {
        let full = name.and_then(full_name);
        let mut found = None;
        for position in 0..self.table.len() as Position {
            let release = self.line(position)?;
            let matches = match name {
                None => release.tip,
                Some(name) => release.tags.iter().any(|tag| tag == name),
            };
            if matches {
                return Ok(Some(release));
            }
            if full.is_some() && release.reference == full {
                found = Some(release);
            }
        }
        Ok(found)
    }

    /// The whole names of tags and branches, and that of the default branch without `refs/heads/`.
    pub(in crate::index) fn names(&self) -> Result<(Vec<String>, Option<String>), PackageError> {
        let (mut names, mut default) = (Vec::new(), None);
        if self.lines.is_none() {
            return Ok((names, default));
        }
        for position in 0..self.table.len() as Position {
            let release = self.line(position)?;
            let full = release.reference.as_deref().unwrap_or_default();
            let short = ["refs/tags/", "refs/heads/"].iter().find_map(|at| full.strip_prefix(at));
            let Some(short) = short else { continue };
            if release.tip {
                default = Some(short.to_owned());
            }
            names.push(full.to_owned());
        }
        Ok((names, default))
    }

    /// Turns a release that was found by name into a form for selection.
    fn revision_from_release(
        &self,
        around: &dyn PackageSurroundings,
        release: Release,
    ) -> Result<Revision, PackageError> {
        let commit = release.revision().unwrap_or_default().to_owned();
        if let Some(known) = self.known_revision(&commit) {
            return Ok(known);
        }
        let seen = self.manifests(around).seen(&release)?.unwrap_or_default();
        let is_repository = self.releases.has_commits();
        // In a repository, only the manifest of a commit says which version it is.
        let listed = || wire::version_of(&release, self.route.location.lenient);
        let version = seen.version.or_else(|| listed().filter(|_| !is_repository));
        let (details, dependencies) = (seen.details, seen.dependencies);
        let untagged = Untagged { commit: Arc::from(commit.as_str()), version, details };
        let looked = LookedUpRevision {
            untagged: untagged.clone(),
            dependencies,
            release,
            requirements: OnceLock::new(),
        };
        lock(&self.untagged).insert(commit, Arc::new(looked));
        Ok(Revision::Untagged(untagged))
    }
}

impl Package {
    /// Asks the place itself about a version, if its listing is only a hint. Data about its archive is kept. Returns what the
    /// version is instead, if selection did not use the same data.
    pub(in crate::index) fn confirm_release(
        &self,
        around: &dyn PackageSurroundings,
        position: Position,
    ) -> Result<Option<Release>, PackageError> {
        let Self { route, .. } = self;
        if route.provider.facts().lines != LineTrust::Hint {
            return Ok(None);
        }
        let line = self.line(position)?;
        let progress = around.run().start_lookup(self.id());
        let Some(own) = route.provider.confirm(&route.location, &line, &*progress)? else {
            return Ok(None);
        };
        // If no listing had the data, selection asked the place itself.
        if line.dependencies.is_some() && comparable(&line) != comparable(&own) {
            return Ok(Some(own));
        }
        lock(&self.read).insert(position, Arc::new(own));
        Ok(None)
    }

    /// Whether the version at a position of `other` is at this position here, and the same for selection.
    pub(in crate::index) fn has_alike(&self, other: &Self, position: Position) -> bool {
        let lines = [self, other].map(|package| package.line(position));
        let [Ok(here), Ok(there)] = lines else { return false };
        let versions = (here.full_version(), there.full_version());
        versions.0 == versions.1 && comparable(&here) == comparable(&there)
    }

    /// The lines of the package, with the line of the version at `position` replaced.
    pub(in crate::index) fn releases_with(
        &self,
        position: Position,
        own: &Release,
    ) -> Result<Vec<Release>, PackageError> {
        let line = |at| if at == position { Ok(own.clone()) } else { self.line(at) };
        (0..self.table.len() as Position).map(line).collect()
    }
}

/// What selection reads of a line, with one form for what is not withdrawn.
fn comparable(line: &Release) -> Release {
    let read = read_by_selection(line);
    let yanked = if read.yanked.is_no() { Yanked::No } else { read.yanked };
    Release { yanked, ..read }
}
