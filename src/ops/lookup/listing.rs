//! The versions of a package that a question is about, what is known about each, and whether it can be used here.
//!
//! [`Listing`] reads and describes them. [`Here`] says which versions this mu and runtime could install, and why not
//! others. Selection makes the final decision; this predicts it for versions that nobody has chosen yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_provider::Release;
use schemars::JsonSchema;
use serde::Serialize;

use crate::index::releases::{ChosenFacts, Details, Position, Releases};
use crate::index::{Candidate, GraphLevel, Universe as _};
use crate::manifest::Manifest;
use crate::ops::explain::unavailable_error;
use crate::ops::lookup::filter::{Sieve, VersionFilter};
use crate::ops::requirements::supposition::{facts, supposed_mu};
use crate::ops::session::age::{Age, AgeRule};
use crate::ops::session::shown;
use crate::ops::{CommandError, Session, Warning};
use crate::reference::{AppVersioning, PackageId, Version, VersionSpec};
use crate::select::{Rejection, incompatibilities};
use crate::workspace::ExclusionSetting;

/// One version, as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedVersion {
    /// The version.
    pub version: String,
    /// The version of the software that it contains.
    pub app_version: Option<String>,
    /// Whether it is a prerelease.
    pub prerelease: bool,
    /// The channels that it is in.
    pub channels: Vec<String>,
    /// Names that point to it.
    pub tags: Vec<String>,
    /// Why it was withdrawn, empty if no reason was given; `false` if it was not.
    #[serde(serialize_with = "shown::yanked")]
    #[schemars(schema_with = "shown::yanked_schema")]
    pub yanked: Option<String>,
    /// Why its authors no longer maintain it, empty without a reason; `false` if they do.
    #[serde(serialize_with = "shown::yanked")]
    #[schemars(schema_with = "shown::yanked_schema")]
    pub deprecated: Option<String>,
    /// When it was published, RFC 3339; none if that is not known.
    pub published: Option<String>,
    /// Its commit (Git).
    pub commit: Option<String>,
    /// The manifest format that it has, if it says so.
    pub api_version: Option<String>,
    /// The range of mu versions that can use it.
    pub mu_version: Option<String>,
    /// Whether it can be used here: by this mu (or that of `--mu-version`), in the runtime, as far as that is known, and by the
    /// settings, which may exclude it or want it to be older.
    pub usable: bool,
    /// Why it cannot be used here, if it cannot: `needs kubernetes >=1.25, but it is 1.24`.
    pub reasons: Vec<String>,
    /// The package that took its place.
    pub moved_to: Option<PackageId>,
    /// Whether it is in `Mu.lock`.
    pub locked: bool,
}

impl ListedVersion {
    /// The beginning of its commit.
    pub fn short_commit(&self) -> Option<&str> {
        self.commit.as_deref().map(|commit| commit.get(..7).unwrap_or(commit))
    }
}

/// The day on which a version was published, in words where only its repository knows.
pub fn published_on<'v>(published: &'v Option<String>, commit: &Option<String>) -> &'v str {
    match (published, commit) {
        (Some(moment), _) => moment.get(..10).unwrap_or(moment),
        (None, Some(_)) => "unknown",
        (None, None) => "",
    }
}

/// A package whose versions are examined.
pub(super) struct Listing<'session> {
    pub(super) session: &'session Session,
    pub(super) id: &'session PackageId,
    pub(super) releases: &'session Arc<Releases>,
    pub(super) here: Here,
}

impl Listing<'_> {
    pub(super) fn is_named(&self, position: Position, wanted: &VersionSpec) -> bool {
        // The same names as in requirements. What reads like a tag may also be a composite version that leaves numbers
        // out.
        let details = self.releases.details(position);
        match wanted {
            VersionSpec::Latest => true,
            VersionSpec::Commit(commit) => {
                self.releases.commit(position).is_some_and(|known| commit.matches(known))
            }
            VersionSpec::Digest(digest) => {
                self.releases.commit(position).is_some_and(|known| **known == *digest.as_str())
            }
            VersionSpec::Tag(tag) => {
                details.is_some_and(|details| details.tags.iter().any(|name| name == tag.as_str()))
                    || wanted.accepts(&self.releases.version(position), true)
            }
            _ => wanted.accepts(&self.releases.version(position), true),
        }
    }

    /// The versions at `positions` that pass the rest of a filter, after its conditions on versions.
    pub(super) fn through(
        &self,
        sieve: &Sieve<'_>,
        positions: &[Position],
    ) -> Result<Vec<ListedVersion>, CommandError> {
        let all: Vec<Position> = (0..self.releases.len()).collect();
        // Whether app versions are words or numbers depends on all of them.
        let asked = if sieve.asks_for_details() { &all } else { positions };
        // All at once, since each manifest may be a request of its own.
        if self.releases.has_commits() || self.asks(sieve) {
            let expected = asked.iter().map(|position| (Arc::clone(self.releases), *position));
            self.session.index().expect(GraphLevel::Requirements(&expected.collect::<Vec<_>>()));
        }
        let known: Vec<(Position, Option<Details>)> = asked
            .iter()
            .map(|&position| Ok((position, self.details(position, self.asks(sieve))?)))
            .collect::<Result<_, CommandError>>()?;
        let app_version = |position: Position, details: &Option<Details>| {
            let composite = self.releases.version(position).app().map(str::to_owned);
            composite.or_else(|| details.as_ref()?.app_version.clone())
        };
        let app_versions: Vec<String> = known
            .iter()
            .filter_map(|(position, details)| app_version(*position, details))
            .collect();
        let apps = AppVersioning::of(app_versions.iter().map(String::as_str));
        let mut shown = Vec::new();
        for (position, details) in &known {
            let app_version = app_version(*position, details);
            let passes = sieve.passes_details(details.as_ref(), app_version.as_deref(), apps);
            // `positions` ascends. More than these may have been read, for the app versions alone.
            if positions.binary_search(position).is_ok() && passes {
                shown.push(self.describe(*position, details.as_ref(), app_version)?);
            }
        }
        Ok(shown)
    }

    /// Whether the places of versions are asked for what their listing does not say: only where that decides about something.
    fn asks(&self, sieve: &Sieve<'_>) -> bool {
        !self.releases.is_complete
            && (sieve.asks_for_details() || self.here.may_refuse_by_details())
    }

    /// What is known about a version: from the index, or from its manifest if the index has nothing. Where no manifest can be
    /// shown, the place of the version is asked if `asks` is set.
    pub(super) fn details(
        &self,
        position: Position,
        asks: bool,
    ) -> Result<Option<Details>, CommandError> {
        if let Some(details) = self.releases.details(position) {
            return Ok(Some(details.clone()));
        }
        let (index, candidate) = (self.session.index(), Candidate::Release(position));
        let shown = index.manifest(self.id, candidate);
        // From what is most exact to what is least: the manifest, what its place says without one, and at last only the
        // manifest format that the line has.
        let known = shown.and_then(|manifest| match manifest {
            Some(manifest) => Ok(Some(details_from_manifest(&manifest))),
            None if asks => Ok(index.declared(self.id, candidate)?.map(Arc::unwrap_or_clone)),
            None => Ok(None),
        });
        let line = || index.release(self.id, candidate).map(|(_, line)| line.api_version.clone());
        let found = known.and_then(|known| match (known, line()?) {
            (Some(known), Some(line)) if known.api_version.is_none() => {
                Ok(Some(Details { api_version: Some(line), ..known }))
            }
            (None, Some(line)) => {
                Ok(Some(Details { api_version: Some(line), ..Details::default() }))
            }
            (known, _) => Ok(known),
        });
        found.or_else(|error| {
            let error = unavailable_error(self.session, error);
            if error.code != crate::ops::Code::Manifest {
                return Err(error);
            }
            let (id, version) = (self.id.clone(), Some(self.releases.version(position)));
            self.session.events.warning(&Warning::ManifestUnread { id, version });
            Ok(None)
        })
    }

    /// Whether a version is in `Mu.lock`.
    fn is_locked(&self, version: &Version) -> Result<bool, CommandError> {
        Ok(self.session.lockfile()?.is_some_and(|lock| {
            lock.find(self.id).any(|package| package.parsed_version().as_ref() == Some(version))
        }))
    }

    /// What is known of the age of a version, as rules about that see it.
    pub(super) fn version_age(&self, position: Position) -> Result<Age, CommandError> {
        let is_exempt =
            self.releases.is_ageless || self.is_locked(&self.releases.version(position))?;
        Ok(match self.releases.published(position) {
            // What is on this machine has no age. What is locked was old enough when it was locked, or somebody wanted
            // it all the same.
            _ if is_exempt => Age::Exempt,
            None => Age::Unknown,
            Some(published) => Age::Since(published),
        })
    }

    pub(super) fn describe(
        &self,
        position: Position,
        details: Option<&Details>,
        app_version: Option<String>,
    ) -> Result<ListedVersion, CommandError> {
        let version = self.releases.version(position);
        let (_, release) = self
            .session
            .index()
            .release(self.id, Candidate::Release(position))
            .map_err(|error| unavailable_error(self.session, error))?;
        let locked = self.is_locked(&version)?;
        let reasons = self.here.reasons(self.id, &version, details, self.version_age(position)?);
        let details = details.cloned().unwrap_or_default();
        Ok(ListedVersion {
            version: version.to_string(),
            usable: reasons.is_empty(),
            reasons,
            app_version,
            prerelease: version.is_prerelease(),
            channels: details.channels,
            tags: details.tags,
            yanked: details.yanked,
            deprecated: release.deprecated.reason(),
            published: release.published.clone(),
            commit: release.commit.as_ref().map(ToString::to_string),
            api_version: details.api_version.or_else(|| release.api_version.clone()),
            mu_version: details.facts.mu_version,
            moved_to: details.moved_to,
            locked,
        })
    }
}

/// The part of a manifest that an index line would have and that is shown.
pub(super) fn details_from_manifest(manifest: &Manifest) -> Details {
    let Release { app_version, api_version, mu_version, channels, constraints, .. } =
        manifest.to_release();
    let facts = ChosenFacts { mu_version, constraints, ..ChosenFacts::default() };
    Details { app_version, api_version, channels, facts, ..Details::default() }
}

/// A mu, and the runtime that it installs for.
#[derive(Debug, Clone, Default)]
pub(super) struct Here {
    runtime: BTreeMap<String, String>,
    mu_version: Option<Version>,
    exclude: Vec<ExclusionSetting>,
    ages: AgeRule,
}

impl Here {
    /// The settings, and the assumptions of `filter`, which take precedence.
    pub(super) fn new(session: &Session, filter: &VersionFilter) -> Result<Self, CommandError> {
        let settings = &session.workspace.settings;
        let mut runtime = settings.runtime.clone();
        runtime.extend(facts(&filter.runtime)?);
        let own = || Version::parse(env!("CARGO_PKG_VERSION")).ok();
        let mu_version = supposed_mu(filter.mu_version.as_deref())?.or_else(own);
        Ok(Self {
            runtime,
            mu_version,
            exclude: settings.exclude.clone(),
            ages: session.age_rule(),
        })
    }

    /// Whether anything is known that may keep versions of `id` from being used here.
    pub(super) fn may_refuse(&self, id: &PackageId) -> bool {
        !self.runtime.is_empty()
            || self.ages.latest_publication().is_some()
            || self.exclude.iter().any(|exclusion| exclusion.id == *id)
    }

    /// Whether what a version says of itself can keep it from being used here.
    fn may_refuse_by_details(&self) -> bool {
        !self.runtime.is_empty()
    }

    /// Why a version with these properties cannot be used here; empty if it can.
    pub(super) fn reasons(
        &self,
        id: &PackageId,
        version: &Version,
        details: Option<&Details>,
        age: Age,
    ) -> Vec<String> {
        let is_excluded = self.exclude.iter().any(|exclusion| {
            exclusion.id == *id
                && exclusion.versions.as_ref().is_none_or(|spec| spec.accepts(version, true))
        });
        let excluded = is_excluded.then(|| "excluded in the settings".to_owned());
        let own = self.mu_version.as_ref();
        let incompatible = details.map(|details| incompatibilities(details, &self.runtime, own));
        let incompatible = incompatible.into_iter().flatten().map(|rejection| match rejection {
            Rejection::Broken(reason) => reason,
            rejection => rejection.of_one(),
        });
        excluded.into_iter().chain(incompatible).chain(self.ages.passed_over_reason(age)).collect()
    }

    /// The newest version that can be used here: one that is chosen without asking for prereleases, not yanked, and not the one at `except`.
    pub(super) fn newest(
        &self,
        listing: &Listing<'_>,
        except: Option<Position>,
    ) -> Result<Option<Position>, CommandError> {
        let releases = listing.releases;
        // From the newest on, because each look may read a manifest.
        for position in (0..releases.len()).rev() {
            let version = releases.version(position);
            if !releases.is_offered(position) || except == Some(position) {
                continue;
            }
            let details = listing.details(position, true)?;
            let is_yanked = details.as_ref().is_some_and(|details| details.yanked.is_some());
            let age = listing.version_age(position)?;
            if !is_yanked && self.reasons(listing.id, &version, details.as_ref(), age).is_empty() {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }
}
