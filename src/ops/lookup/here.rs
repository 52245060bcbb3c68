//! What can be used here: which versions this mu and runtime could install, and why not others.
//!
//! Selection makes the final decision; this predicts it for versions that nobody has chosen yet.

use std::collections::BTreeMap;

use crate::index::releases::{Details, Position};
use crate::ops::lookup::filter::VersionFilter;
use crate::ops::lookup::listing::Listing;
use crate::ops::requirements::supposition::{facts, supposed_mu};
use crate::ops::session::age::{Age, AgeRule};
use crate::ops::{CommandError, Session};
use crate::reference::{PackageId, Version};
use crate::select::{Rejection, incompatibilities};
use crate::workspace::ExclusionSetting;

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
    ///
    /// # Errors
    ///
    /// When a supposition cannot be read.
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
    pub(super) fn may_refuse_by_details(&self) -> bool {
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

    /// The newest version that can be used here: no prerelease, not yanked, and not the one at `except`.
    ///
    /// # Errors
    ///
    /// When the properties of a version cannot be looked up.
    pub(super) fn newest(
        &self,
        listing: &Listing<'_>,
        except: Option<Position>,
    ) -> Result<Option<Position>, CommandError> {
        let releases = listing.releases;
        // From the newest on, because each look may read a manifest.
        for position in (0..releases.len()).rev() {
            let version = releases.version(position);
            if version.is_prerelease() || except == Some(position) {
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
