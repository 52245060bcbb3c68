//! Which versions can be candidates at all, and why the others cannot.
//!
//! The rules are the same for every strategy. Reasons are computed again when a message needs them, so the
//! common case costs nothing. What a single requirement narrows (ranges, channels) is not here but in
//! `candidates`.

use std::collections::BTreeMap;

use mu_formats::kudo;
use mu_manifest::reference::{PackageId, Version, VersionSpec};

use crate::Settings;
use crate::releases::Details;

/// Manifest formats that this program reads.
const API_VERSIONS: [&str; 1] = ["mu/v1"];

/// Why a version is not a candidate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// The settings exclude it.
    Excluded,
    /// It was withdrawn; the reason may be empty.
    Yanked(String),
    /// It was published after the time limit in the settings.
    TooNew,
    /// Its time of publication is unknown, so it may be too new.
    Undated,
    /// This program does not support its manifest format.
    ApiVersion(String),
    /// It needs another version of mu.
    MuVersion(String),
    /// A fact of the runtime does not meet its constraint.
    Runtime {
        /// The fact.
        fact: String,
        /// The constraint.
        wanted: String,
        /// The actual value of the fact.
        actual: String,
    },
    /// It can never be used, and this is why.
    Broken(String),
    /// No chain of upgrades leads to it from the installed version.
    NoUpgrade {
        /// What is installed.
        from: String,
        /// What it can follow, as a list; empty if it can follow nothing.
        follows: String,
        /// The version in between that is missing, and why it cannot be used.
        missing: Option<(String, Box<Rejection>)>,
    },
}

/// Why other versions are preferred to some.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passed {
    /// They are in this channel, which is the package's default, or that of the installed version.
    Channel(String),
    /// They are not deprecated.
    Deprecated,
    /// They are no prereleases.
    Prerelease,
}

/// A candidate, as the rules see it.
#[derive(Debug, Clone)]
pub(super) struct Looks<'a> {
    pub(super) version: Option<Version>,
    pub(super) published: Option<i64>,
    pub(super) details: Option<&'a Details>,
    pub(super) is_locked: bool,
    /// Whether someone outside the graph names exactly it.
    pub(super) is_pinned: bool,
    /// Whether its age does not matter.
    pub(super) is_ageless: bool,
}

/// Why a version of `id` is not a candidate by the rules about a version itself; `None` if it is one.
///
/// A locked version may be yanked or too new, because an existing build must not break. A version that
/// the user names exactly may be yanked.
pub(super) fn rejection_by_rules(
    settings: &Settings,
    id: &PackageId,
    looks: &Looks<'_>,
) -> Option<Rejection> {
    // What the user says comes first, then what the authors say, then what is a question of time: the first reason is
    // the one that is shown.
    if excludes(settings, id, looks.version.as_ref()) {
        return Some(Rejection::Excluded);
    }
    if let Some(details) = looks.details {
        if let (Some(reason), false) = (&details.yanked, looks.is_locked || looks.is_pinned) {
            return Some(Rejection::Yanked(reason.clone()));
        }
        let (runtime, own) = (&settings.runtime, settings.mu_version.as_ref());
        if let Some(rejection) = incompatibilities(details, runtime, own).next() {
            return Some(rejection);
        }
    }
    let limit = settings.published_before.filter(|_| !looks.is_locked && !looks.is_ageless)?;
    match looks.published {
        None => Some(Rejection::Undated),
        Some(published) => (published > limit).then_some(Rejection::TooNew),
    }
}

/// Whether no rule can reject a version of `id` that has no details.
pub(super) fn pass_plain_versions(settings: &Settings, id: &PackageId) -> bool {
    settings.published_before.is_none()
        && !settings.exclude.iter().any(|exclusion| exclusion.id == *id)
}

fn excludes(settings: &Settings, id: &PackageId, version: Option<&Version>) -> bool {
    let mut exclusions = settings.exclude.iter().filter(|exclusion| exclusion.id == *id);
    exclusions.any(|exclusion| match (&exclusion.spec, version) {
        (None, _) => true,
        (Some(spec), Some(version)) => spec.accepts(version, true),
        // A revision without a version is in no range.
        (Some(_), None) => false,
    })
}

/// Everything that prevents a version with these details from being used with a mu of version `own` in this
/// runtime.
///
/// Constraints on facts that nobody stated are ignored; without `own`, every `muVersion` is accepted.
pub fn incompatibilities<'a>(
    details: &'a Details,
    runtime: &'a BTreeMap<String, String>,
    own: Option<&'a Version>,
) -> impl Iterator<Item = Rejection> + 'a {
    // What can never be mended is said first.
    let broken = details.broken.iter().cloned().map(Rejection::Broken);
    let format = details.api_version.iter();
    let is_known = |text: &str| API_VERSIONS.contains(&text) || kudo::is_api_version(text);
    let format = format.filter(move |format| !is_known(format));
    let mu = details.facts.mu_version.iter().filter(move |wanted| {
        let accepts = |own| VersionSpec::parse(wanted).is_ok_and(|spec| spec.accepts(own, true));
        !own.is_none_or(accepts)
    });
    let unmet = details.facts.constraints.iter().filter_map(|(fact, wanted)| {
        let actual = runtime.get(fact)?;
        (!meets(fact, wanted, actual)).then(|| Rejection::Runtime {
            fact: fact.clone(),
            wanted: wanted.clone(),
            actual: actual.clone(),
        })
    });
    let mu = mu.cloned().map(Rejection::MuVersion);
    broken.chain(format.cloned().map(Rejection::ApiVersion)).chain(mu).chain(unmet)
}

/// The fact whose versions have suffixes of who sells them: `1.29.4-gke.1` is no prerelease of `1.29.4`.
const KUBERNETES: &str = "kubernetes";

/// Whether a fact meets a constraint: the same word, or a version within the range.
fn meets(fact: &str, wanted: &str, actual: &str) -> bool {
    // `>=1.25` holds for `1.29`, which is two numbers; `linux` is no version, and compared as a word.
    let version = Version::parse_lenient(actual).ok();
    let version = version.map(|version| match version.as_semver() {
        Some(full) if fact == KUBERNETES => {
            semver::Version::new(full.major, full.minor, full.patch).into()
        }
        _ => version,
    });
    wanted == actual
        || VersionSpec::parse(wanted)
            .ok()
            .zip(version)
            .is_some_and(|(spec, version)| spec.accepts(&version, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_compared_as_words_and_as_versions() {
        assert!(meets("go", ">=1.25", "1.29.2"));
        assert!(meets("go", ">=1.25", "1.29"));
        assert!(!meets("go", ">=1.25", "1.9"));
        assert!(meets("os", "linux", "linux"));
        assert!(!meets("os", "linux", "darwin"));
    }

    #[test]
    fn a_suffix_of_who_sells_it_makes_no_prerelease_of_kubernetes() {
        assert!(meets(KUBERNETES, ">=1.25.0", "1.25.0-gke.1"));
        assert!(!meets(KUBERNETES, "<1.30.0", "v1.30.0-eks-1"));
        assert!(!meets("go", ">=1.25.0", "1.25.0-rc.1"));
    }
}
