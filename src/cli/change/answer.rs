//! The JSON answer of commands that choose versions.

use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::{LockedPackage, Requested, Source};
use crate::ops::diff::Difference;
use crate::ops::{AppMove, Change, EditInUse, Outcome, Written};
use crate::reference::PackageId;
use crate::select::{Because, Lowered};
use crate::workspace::Resolution;

/// The versions that were chosen, and how they differ from before.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer<'a> {
    /// The strategy: `highest` or `minimal`.
    resolution: &'a str,
    /// The packages, in the order of installing: each after those that it depends on, otherwise by id.
    packages: Vec<Package<'a>>,
    /// The requirements of the manifests and the command line, as `ID#SPEC`.
    requirements: &'a [String],
    /// The packages that were moved, added or removed, by id.
    changes: &'a [Change],
    /// Packages whose new version contains another minor version of their app; left out if there are none.
    #[serde(rename = "appMoves", skip_serializing_if = "<[AppMove]>::is_empty")]
    app_moves: &'a [AppMove],
    /// The replaced packages, by id.
    replaced: Vec<Replaced<'a>>,
    /// The changed requirements in manifests, and those that stay (`from` is `to`) although there is a newer release.
    #[serde(skip_serializing_if = "<[Written]>::is_empty")]
    written: &'a [Written],
    /// The references of this `mu get`: Mu.lock keeps these packages until `mu remove`.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    kept: &'a [String],
    /// The packages that only this machine uses instead of locked ones; left out if there are none.
    #[serde(skip_serializing_if = "<[EditInUse]>::is_empty")]
    edits: &'a [EditInUse],
    /// Packages that were fetched.
    fetched: usize,
    /// Packages that were already on this machine.
    reused: usize,
    /// With `--diff`, what changed in each of the packages.
    #[serde(skip_serializing_if = "<[Difference]>::is_empty")]
    pub(crate) diffs: &'a [Difference],
    /// With the minimal strategy, the other packages that a downgrade lowered or dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    lowered: Option<Vec<Lowering<'a>>>,
}

/// A package that was chosen.
#[derive(Serialize, JsonSchema)]
struct Package<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its version.
    version: &'a str,
    /// The channel that it was chosen from, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: &'a Option<String>,
    /// Where it comes from.
    source: &'a Source,
    /// Its commit (Git).
    commit: Option<&'a str>,
    /// The digest of its content, if that is known.
    digest: Option<String>,
    /// The digest of its content with the patch of the settings, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    patched: Option<String>,
    /// The digest of its archive, if it has one and that is known: `sha256:HEX`.
    archive: Option<String>,
    /// Where its archive is, if it has one and that is known without a request.
    url: Option<String>,
    /// What requires it.
    requested: Vec<Asker<'a>>,
    /// The packages that it depends on.
    dependencies: Vec<&'a PackageId>,
    /// Whether a manifest or the command line requires it.
    direct: bool,
    /// Its folder, if it is installed.
    path: Option<String>,
}

/// One that requires a package.
#[derive(Serialize, JsonSchema)]
struct Asker<'a> {
    /// Its name.
    by: &'a str,
    /// What it requires.
    spec: &'a str,
    /// The package that it requires, if another one is used instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'a PackageId>,
}

/// A replaced package.
#[derive(Serialize, JsonSchema)]
struct Replaced<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its replacement.
    by: &'a PackageId,
    /// Whether nobody has agreed to that yet, so that only a dry run or a question can show it; otherwise
    /// left out.
    #[serde(rename = "needsConsent", skip_serializing_if = "std::ops::Not::not")]
    needs_consent: bool,
}

/// A package that a downgrade lowered or dropped.
#[derive(Serialize, JsonSchema)]
struct Lowering<'a> {
    /// The package.
    id: &'a PackageId,
    /// Its version before.
    from: &'a str,
    /// Its version now; none if it was dropped.
    to: &'a Option<String>,
    /// Why it could not stay; none if nothing needs it any more.
    because: Option<Cause<'a>>,
}

/// Why a package could not stay.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Cause<'a> {
    /// It needs this version of another package.
    Needs {
        /// The other package.
        id: &'a PackageId,
        /// The version.
        version: &'a str,
    },
    /// It requires this of another package.
    Asks {
        /// The other package.
        id: &'a PackageId,
        /// What it requires.
        spec: String,
    },
    /// Something requires this of it.
    Asked {
        /// What requires it.
        by: &'a str,
        /// The required spec.
        spec: String,
    },
    /// It conflicts with another package.
    Conflicts {
        /// The other package.
        conflicts: &'a PackageId,
    },
    /// It does not fit with the new provider of a capability.
    Capability {
        /// The capability.
        capability: String,
    },
}

impl<'a> Answer<'a> {
    /// The JSON form of an outcome.
    pub(crate) fn new(outcome: &'a Outcome) -> Self {
        let lock = &outcome.lock;
        let order = lock.install_order().into_iter();
        let replaced = lock.replaced.iter();
        let is_minimal = lock.resolution == Resolution::Minimal.as_str();
        Self {
            resolution: &lock.resolution,
            packages: order.map(|at| Package::new(outcome, at, &lock.packages[at])).collect(),
            requirements: &outcome.requirements,
            changes: &outcome.changes,
            app_moves: &outcome.app_moves,
            replaced: replaced
                .map(|one| {
                    let needs_consent = outcome.unagreed.contains(&one.id);
                    Replaced { id: &one.id, by: &one.by, needs_consent }
                })
                .collect(),
            written: &outcome.written,
            kept: &outcome.kept,
            edits: &outcome.edits,
            fetched: outcome.counts.fetched,
            reused: outcome.counts.reused,
            diffs: &[],
            lowered: is_minimal.then(|| outcome.lowered.iter().map(Lowering::new).collect()),
        }
    }
}

impl<'a> Package<'a> {
    fn new(outcome: &'a Outcome, index: usize, package: &'a LockedPackage) -> Self {
        let lock = &outcome.lock;
        let own = package.requested.iter().map(|requested| Asker::new(requested, None));
        // Requirements on a package that it replaces apply to it.
        let replaced = lock.replaced.iter().filter(|replaced| replaced.by == package.id);
        let instead = replaced.flat_map(|replaced| {
            replaced.requested.iter().map(|requested| Asker::new(requested, Some(&replaced.id)))
        });
        let dependencies = package.dependencies.iter().map(|id| lock.used_for(id));
        let mut dependencies: Vec<&PackageId> =
            dependencies.filter(|id| **id != package.id).collect();
        dependencies.sort();
        dependencies.dedup();
        Self {
            id: &package.id,
            version: &package.version,
            channel: &package.channel,
            source: &package.source,
            commit: package.commit.as_deref(),
            digest: package.digest.map(|digest| digest.to_string()),
            patched: package.patched.map(|digest| digest.to_string()),
            archive: package.archive.map(|digest| digest.to_string()),
            url: outcome.archives.get(&index).map(ToString::to_string),
            requested: own.chain(instead).collect(),
            dependencies,
            direct: outcome.is_direct(package),
            path: outcome.folders.get(&index).map(|folder| folder.display().to_string()),
        }
    }
}

impl<'a> Asker<'a> {
    fn new(requested: &'a Requested, of: Option<&'a PackageId>) -> Self {
        Self { by: &requested.by, spec: &requested.spec, of }
    }
}

impl<'a> Lowering<'a> {
    fn new(lowered: &'a Lowered) -> Self {
        let because = lowered.because.as_ref().map(|because| match because {
            Because::Needs(id, version) => Cause::Needs { id, version },
            Because::Asks(asked) => Cause::Asks { id: &asked.id, spec: asked.to_string() },
            Because::Asked(by, asked) => Cause::Asked { by, spec: asked.to_string() },
            Because::Capability(capability) => {
                Cause::Capability { capability: capability.to_string() }
            }
            Because::Conflicts(conflicts) => Cause::Conflicts { conflicts },
        });
        Self { id: &lowered.id, from: &lowered.from, to: &lowered.to, because }
    }
}
