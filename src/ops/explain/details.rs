//! What programs learn about a failed selection: the `details` of its error.

use schemars::JsonSchema;
use serde::Serialize;

use crate::ops::explain::ways_out::Remedy;
use crate::reference::PackageId;
use crate::select::{Conflict, Fact, Requirer};

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
