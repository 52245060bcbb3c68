//! Filters for the versions that questions to registries show: `--app-version`, `--version` and so on.
//!
//! They only show and hide. Selection decides what may be installed.

use crate::index::releases::{Details, Position, Releases};
use crate::manifest::API_VERSION;
use crate::ops::requirements::supposition::supposed_mu;
use crate::ops::solve::question::RevisionPrefix;
use crate::ops::{Code, CommandError};
use crate::reference::{AppVersioning, Version, VersionSpec};

/// The conditions for showing a version. An empty filter shows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionFilter {
    /// An app version, or the first components of one.
    pub app_version: Option<String>,
    /// A revision, or the first components of one: of a composite version its second part, else the version itself.
    pub revision: Option<String>,
    /// A version, or the first components of one, or a range.
    pub version: Option<String>,
    /// A channel that they are in.
    pub channel: Option<String>,
    /// A version of mu that can use them.
    pub mu_version: Option<String>,
    /// The manifest format that they have.
    pub api_version: Option<String>,
    /// Facts of the runtime, `NAME=VALUE`, over those of the settings: they hide nothing, but versions that cannot be
    /// used there are marked.
    pub runtime: Vec<String>,
}

/// A parsed filter.
#[derive(Debug, Clone)]
pub(super) struct Sieve<'filter> {
    filter: &'filter VersionFilter,
    version: Option<VersionSpec>,
    revision: Option<RevisionPrefix>,
    mu_version: Option<Version>,
}

impl VersionFilter {
    /// Whether it shows everything.
    pub fn is_empty(&self) -> bool {
        Self { runtime: Vec::new(), ..self.clone() } == Self::default()
    }

    /// Parses the texts.
    pub(super) fn read(&self) -> Result<Sieve<'_>, CommandError> {
        // `1.` means all that begins so, as `1` does.
        let version = self.version.as_deref().map(|text| text.strip_suffix('.').unwrap_or(text));
        let version = version.map(VersionSpec::parse).transpose();
        let version = version
            .map_err(|error| CommandError::new(Code::Usage, format!("--version: {error}")))?;
        let mu_version = supposed_mu(self.mu_version.as_deref())?;
        let revision = self.revision.as_deref().map(RevisionPrefix::parse).transpose()?;
        Ok(Sieve { filter: self, version, revision, mu_version })
    }
}

impl Sieve<'_> {
    /// Whether the version itself passes.
    pub(super) fn passes(&self, version: &Version) -> bool {
        if self.revision.as_ref().is_some_and(|revision| !revision.accepts(version)) {
            return false;
        }
        let Some(spec) = &self.version else { return true };
        let begins_so = || {
            // `2.3.0-1` is the first part of a composite version, and a whole one otherwise.
            let text = version.to_string();
            let rest = text.strip_prefix(spec.as_str().trim_start_matches('v'));
            version.app().is_some() && rest.is_some_and(|rest| rest.starts_with(['.', '-']))
        };
        spec.accepts(version, true) || begins_so()
    }

    /// Whether anything but the version must be known.
    pub(super) fn asks_for_details(&self) -> bool {
        let filter = self.filter;
        filter.app_version.is_some()
            || filter.channel.is_some()
            || filter.mu_version.is_some()
            || filter.api_version.is_some()
    }

    /// Whether a version's own data passes.
    pub(super) fn passes_details(
        &self,
        details: Option<&Details>,
        app_version: Option<&str>,
        apps: AppVersioning,
    ) -> bool {
        let filter = self.filter;
        // Each condition holds if it is not asked for. A version that says nothing is in no channel and has no app
        // version; but it is of mu's own format, and any mu can use it.
        let of_app = filter.app_version.as_ref().is_none_or(|wanted| {
            app_version.is_some_and(|app_version| apps.accepts(wanted, app_version))
        });
        let in_channel = filter.channel.as_ref().is_none_or(|channel| {
            details.is_some_and(|details| details.channels.contains(channel))
        });
        let of_format = filter.api_version.as_ref().is_none_or(|wanted| {
            let stated = details.and_then(|details| details.api_version.as_deref());
            wanted == stated.unwrap_or(API_VERSION)
        });
        let for_mu = self.mu_version.as_ref().is_none_or(|own| {
            let wanted = details.and_then(|details| details.facts.mu_version.as_deref());
            let accepts = |spec: VersionSpec| spec.accepts(own, true);
            wanted.is_none_or(|wanted| VersionSpec::parse(wanted).is_ok_and(accepts))
        });
        of_app && in_channel && of_format && for_mu
    }

    /// The newest release in an index that passes and was not withdrawn, of those that selection prefers; a prerelease only if
    /// there is nothing else.
    pub(super) fn newest(&self, releases: &Releases) -> Option<Position> {
        let apps = releases.app_versioning();
        let passing = (0..releases.len()).filter(|&position| {
            let details = releases.details(position);
            self.passes(&releases.version(position))
                && details.is_none_or(|details| details.yanked.is_none())
                && self.passes_details(details, releases.app_version(position), apps)
        });
        // The same order as selection has, so that `mu search` shows what `mu add` would take.
        let first = releases.default_channel().filter(|_| self.filter.channel.is_none());
        passing.max_by_key(|&position| (releases.preference(position, first), position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_by_their_beginning() {
        let semver = |text| Version::parse(text).expect("is a version");
        let composite = |text| Version::parse_composite(text).expect("is a version");
        for (wanted, version, expected) in [
            ("2.3", semver("2.3.1"), true),
            ("2.3", semver("2.30.0"), false),
            ("v2", semver("2.3.1"), true),
            ("2", semver("2.0.0-beta.1"), true),
            ("2.3.1", semver("2.3.1"), true),
            ("2.3.1", semver("2.3.1-beta.1"), false),
            ("^2.1", semver("2.3.1"), true),
            ("2.3.0", composite("2.3.0-1.1.0"), true),
            ("2.3.0-1", composite("2.3.0-1.1.0"), true),
            ("2.3.0-1.1.0", composite("2.3.0-1.1.0"), true),
            ("2.3.0-1.1.0", composite("2.3.0-1.1.1"), false),
            ("2.3.0-1.1", composite("2.3.0-1.10.0"), false),
            ("2.3", composite("2.30.0-1.0.0"), false),
        ] {
            let filter =
                VersionFilter { version: Some(wanted.to_owned()), ..VersionFilter::default() };
            let sieve = filter.read().expect("is a version");
            assert_eq!(sieve.passes(&version), expected, "{wanted} {version}");
        }
    }
}
