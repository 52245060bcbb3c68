//! What programs learn about a failed selection: the `details` of its error.
//!
//! And why versions are too new, in dates: when they were published, which rule excludes them, and until when.

use mu_provider::NamedBy;
use schemars::JsonSchema;
use serde::Serialize;

use crate::index::Universe as _;
use crate::ops::Session;
use crate::ops::explain::ways_out::{Remedy, place_in_settings};
use crate::ops::session::age::date_text;
use crate::reference::{PackageId, Version};
use crate::select::{Clash, Conflict, Fact, Rejection, Requirer};
use crate::workspace::{Cutoff, Key, ReleaseAge};

/// The most facts of each kind that are listed.
const MOST: usize = 128;

/// Why no versions fit together.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConflictDetails<'a> {
    /// The explanation in words, a line each.
    explanation: &'a [&'a str],
    /// What requires something without being a package of a registry.
    roots: Vec<&'a str>,
    /// What requires what.
    requirements: Vec<Required<'a>>,
    /// The packages of which no version is left.
    clashes: Vec<NoVersion<'a>>,
    /// The capabilities that nothing is left to provide.
    capabilities: Vec<NoProvider<'a>>,
    /// What helps.
    ways_out: &'a [Remedy],
}

/// What requires a package.
#[derive(Serialize, JsonSchema)]
struct Required<'a> {
    /// The names of roots, or the id of a package.
    by: Vec<&'a str>,
    /// The versions of the package that require it.
    versions: Option<String>,
    /// The required package.
    id: &'a PackageId,
    /// The requirements on it.
    asked: &'a [String],
}

/// A package of which no version is left.
#[derive(Serialize, JsonSchema)]
struct NoVersion<'a> {
    /// The package.
    id: &'a PackageId,
    /// The requirements on it: one entry of each of these lists.
    asked: &'a [Vec<String>],
    /// The lowest version that others need, if that alone decides.
    needed: &'a Option<String>,
    /// The existing versions.
    available: String,
    /// Versions next to the required ones.
    nearest: &'a [String],
    /// Where it comes from.
    source: &'a Option<String>,
    /// Where mu looked for it, if there is no such package.
    tried: &'a Option<Vec<String>>,
    /// Packages with similar names.
    similar: &'a [PackageId],
}

/// A capability that nothing is left to provide.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NoProvider<'a> {
    /// The capability.
    capability: &'a str,
    /// Whether some version of some package provides it.
    is_provided: bool,
    /// Versions that provide it, and cannot be used.
    rejected: Vec<Rejected<'a>>,
}

/// Versions that cannot be used.
#[derive(Serialize, JsonSchema)]
struct Rejected<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its versions.
    versions: String,
}

/// How far a stopped search came.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnfinishedDetails<'a> {
    /// The explanation in words, a line each.
    pub(super) explanation: &'a [&'a str],
    /// The steps that it took.
    pub(super) steps: usize,
    /// The packages that were in the most conflicts.
    pub(super) packages: &'a [PackageId],
    /// What helps.
    pub(super) ways_out: &'a [Remedy],
}

impl<'a> ConflictDetails<'a> {
    pub(super) fn new(
        conflict: &'a Conflict,
        explanation: &'a [&'a str],
        roots: Vec<&'a str>,
        ways_out: &'a [Remedy],
    ) -> Self {
        // Everything is cut at MOST: a conflict may list thousands of versions, and a program that reads this wants to
        // know what clashes.
        let requirements = conflict.facts.iter().take(MOST).filter_map(|fact| {
            let Fact::Requires { by, id, asked } = fact else { return None };
            let (by, versions) = match by {
                Requirer::Roots(names) => (names.iter().map(String::as_str).collect(), None),
                Requirer::Package(id, versions) => (vec![id.as_str()], Some(versions.to_string())),
            };
            Some(Required { by, versions, id, asked: &asked[..MOST.min(asked.len())] })
        });
        let clashes = conflict.clashes.iter().take(MOST).map(|clash| NoVersion {
            id: &clash.id,
            asked: &clash.asked,
            needed: &clash.needed,
            available: clash.available.to_string(),
            nearest: &clash.nearest,
            source: &clash.source,
            tried: &clash.tried,
            similar: &clash.similar,
        });
        // The reasons of rejected versions are left out here: they are words, and `explanation` has them.
        let capabilities = conflict.capabilities.iter().take(MOST).map(|clash| {
            let rejected = clash.rejected.iter().take(MOST);
            NoProvider {
                capability: &clash.capability,
                is_provided: clash.is_provided,
                rejected: rejected
                    .map(|(id, _, versions)| Rejected { id, versions: versions.to_string() })
                    .collect(),
            }
        });
        Self {
            explanation,
            roots,
            requirements: requirements.collect(),
            clashes: clashes.collect(),
            capabilities: capabilities.collect(),
            ways_out,
        }
    }
}

/// Describes the versions of a package that are too new: a line, if there are any.
pub(super) fn too_new_notes(session: &Session, clash: &Clash) -> Vec<String> {
    let young = clash.rejected.iter().filter(|(rejection, _)| *rejection == Rejection::TooNew);
    young.filter_map(|(_, versions)| note(session, clash, &versions.runs.first()?.first)).collect()
}

/// Describes `oldest`, the first too new version that the rule will allow.
fn note(session: &Session, clash: &Clash, oldest: &str) -> Option<String> {
    let releases = session.index().releases(&clash.id).ok()?;
    let published =
        releases.published(releases.position_of_version(&Version::parse(oldest).ok()?)?)?;
    let now = session.environment.now;
    let age = session.workspace.settings.release_age(now);
    let rule = match (session.options.published_before, age) {
        (Some(moment), _) => {
            format!("; `--exclude-newer` excludes versions newer than {}", date_text(moment))
        }
        (None, Some(ReleaseAge { cutoff, named_by })) => {
            let effect = match cutoff {
                Cutoff::Age(age) => format!("allows it from {} on", date_text(published + age)),
                Cutoff::Moment(_) => "excludes newer versions".to_owned(),
            };
            format!("; `minimumReleaseAge: {cutoff}` ({}) {effect}", file(session, named_by))
        }
        (None, None) => String::new(),
    };
    let mut text = format!("{oldest} was published {} ago{rule}", rounded(now - published));
    // Nobody who waits for a release takes a prerelease instead.
    let is_release =
        |text: &str| Version::parse_lenient(text).is_ok_and(|version| !version.is_prerelease());
    if let Some(newest) = clash.available.runs.last().filter(|run| is_release(&run.last)) {
        text.push_str(&format!("; the newest that is old enough is {}", newest.last));
    }
    Some(text)
}

/// The file of settings that has the rule, with the line.
fn file(session: &Session, named_by: NamedBy) -> String {
    let key = Key::minimum_release_age;
    let user = session.environment.mu_home.join("config.yaml");
    let is_own = named_by == NamedBy::Workspace;
    let file = if is_own { ".mu/workspace.yaml".to_owned() } else { user.display().to_string() };
    place_in_settings(&session.workspace.root, &file, key, key)
}

/// `12 minutes`: an age in the largest unit that fits.
fn rounded(seconds: i64) -> String {
    let seconds = seconds.max(1);
    let unit = [86_400, 3_600, 60].into_iter().find(|unit| seconds >= *unit).unwrap_or(1);
    Cutoff::Age(seconds / unit * unit).to_string()
}
