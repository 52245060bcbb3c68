//! `why`: what requires a package, and what prevents newer versions.
//!
//! The lock answers the first question. For the second, mu asks registries; without them, the first answer
//! still holds.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::index::{Requirement, Universe as _};
use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::ops::explain::carried::{Inside, carried};
use crate::ops::graph::{Graph, Node};
use crate::ops::requirements::Requirements;
use crate::ops::requirements::requester::Requester;
use crate::ops::session::error::in_one_line;
use crate::ops::session::locked::{PackageName, Purpose, find_used};
use crate::ops::solve::asking::{ask_ceiling, requirers_of_locked};
use crate::ops::solve::question::request;
use crate::ops::{CommandError, Session};
use crate::reference::PackageId;
use crate::select::{Newer, Obstacle, Update};

/// The most paths to one package that are searched.
const MOST_PATHS: usize = 10_000;

/// Why a package is in use.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The package.
    pub id: PackageId,
    /// Other ids that mean this package, because of `aliases` in the settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Its locked versions: several if several majors of it are in use.
    pub versions: Vec<Reasons>,
    /// The paths to it from the workspace's packages and the command line.
    #[schemars(with = "Vec<Vec<String>>")]
    pub paths: Paths,
    /// Whether these are all; if there are very many, the rest is not searched.
    pub are_all_paths: bool,
    /// Other versions of a chart that Helm uses, because other charts carry them inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<Inside>,
    /// The requirements on packages that it replaces: the package, the spec, and the requirer.
    #[serde(skip)]
    pub instead: Vec<(PackageId, String, String)>,
}

/// Paths through the graph, shortest first; in JSON lists of names.
#[derive(Debug, Clone)]
pub struct Paths {
    /// The graph.
    pub graph: Graph,
    /// Its nodes, from a root to the package.
    pub nodes: Vec<Vec<Node>>,
}

impl Serialize for Paths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = |node: &Node| self.graph.vertices[*node].name.as_str();
        let names = |path: &Vec<Node>| path.iter().map(name).collect::<Vec<_>>();
        serializer.collect_seq(self.nodes.iter().map(names))
    }
}

/// Why a package has its version.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reasons {
    /// The version.
    pub version: String,
    /// The channel that it was chosen from, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Its commit (Git).
    pub commit: Option<String>,
    /// Why it was withdrawn, if it was; empty if no reason was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yanked: Option<String>,
    /// What its authors say about it, if they no longer look after it; empty if they say nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// What requires it, in the order of the lock.
    pub requested: Vec<Asker>,
    /// What prevents newer versions, the newest first.
    pub newer: Vec<Obstructed>,
    /// The reason if nothing is known about newer versions.
    pub unknown: Option<String>,
    /// The package, as the lock has it.
    #[serde(skip)]
    pub package: LockedPackage,
}

/// One that requires a package.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Asker {
    /// Its name.
    pub by: String,
    /// What it requires.
    pub spec: String,
    /// The lowest version that it accepts, if there is one.
    pub least: Option<String>,
}

/// Newer versions, and what prevents them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Obstructed {
    /// The versions.
    pub versions: String,
    /// The newest of them.
    pub newest: String,
    /// The kind of obstacle.
    pub reason: Reason,
    /// The explanation in words, a line each.
    pub explanation: Vec<String>,
}

/// The kind of obstacle to newer versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A rule, such as that they are yanked.
    Rule,
    /// Others come before them: those of another channel, or those that are not deprecated.
    Passed,
    /// A requirement of other versions.
    Asked,
    /// The other packages that they would need.
    Conflict,
    /// Only the lock: `mu update` moves there.
    Lock,
    /// Nothing requires them (minimal strategy), so `mu update` moves there.
    NotAsked,
    /// It was not looked up.
    Unknown,
}

/// Finds why the package that `text` names is in use, and why in its version.
pub fn why(session: &Session, text: &str) -> Result<Why, CommandError> {
    let (graph, lock) = Graph::load(session)?;
    let id = find_used(session, &lock, &PackageName::without_version(text, Purpose::Why)?)?;
    // Several nodes, if several versions of it are in use.
    let (mut nodes, mut are_all_paths) = (Vec::new(), true);
    for node in graph.nodes_of(session, &id) {
        let (found, are_all) = graph.paths_to(node, MOST_PATHS);
        nodes.extend(found);
        are_all_paths &= are_all;
    }
    let versions = reasons(session, &lock, &id)?;
    // Who requires a package that this one replaces uses that package's name, so it is told apart.
    let replaced = lock.replaced.iter().filter(|replaced| replaced.by == id);
    let instead = replaced.flat_map(|replaced| {
        let text = |one: &Requested| (one.spec.to_string(), one.by.to_string());
        let asked = replaced.requested.iter().map(text);
        asked.map(|(spec, by)| (replaced.id.clone(), spec, by))
    });
    let instead = instead.collect();
    let aliases = session.workspace.settings.aliases.others(&id);
    let helm = carried(session, &lock).remove(&id).into_iter().flatten().collect();
    let paths = Paths { graph, nodes };
    Ok(Why { id, aliases, versions, paths, are_all_paths, helm, instead })
}

fn reasons(
    session: &Session,
    lock: &Lockfile,
    id: &PackageId,
) -> Result<Vec<Reasons>, CommandError> {
    let requirements = Requirements::collect(session, lock.extra.clone())?;
    requirements.declare(session);
    let request = request(session, &requirements, lock, Update::Nothing);
    let packages = lock.find(id).map(|package| {
        let asker = |one: &Requested| Asker {
            by: one.by.to_string(),
            spec: one.spec.to_string(),
            least: None,
        };
        let mut reasons = Reasons {
            version: package.version.clone(),
            channel: package.channel.clone(),
            commit: package.commit.as_ref().map(ToString::to_string),
            yanked: None,
            deprecated: None,
            requested: package.requested.iter().map(asker).collect(),
            newer: Vec::new(),
            unknown: None,
            package: package.clone(),
        };
        if package.source.is_authored_folder() {
            return reasons;
        }
        // Everything below needs a registry. What cannot be looked up leaves the rest of the answer as the lock has it, with the
        // reason beside it: `mu why` works offline, too.
        let asking = requirers_of_locked(package);
        let found = ask_ceiling(session, &request, requirements.choosing_strategy(), |ceiling| {
            let mut lowest = Vec::new();
            for requested in &package.requested {
                // Under an override, no requirement decides about the version.
                let requirement = Requirement::parse(id.clone(), &requested.spec);
                lowest.push(
                    match requirement.filter(|_| Requester::override_of(package).is_none()) {
                        Some(requirement) => ceiling.lowest_version(&requirement)?,
                        None => None,
                    },
                );
            }
            let newer = match package.parsed_version() {
                Some(version) => ceiling.newer(id, &version, &asking)?,
                None => Some(Vec::new()),
            };
            Ok((lowest, newer))
        });
        match found {
            Ok((lowest, Some(newer))) => {
                (reasons.yanked, reasons.deprecated) = withdrawn(session, package);
                for (asker, lowest) in reasons.requested.iter_mut().zip(lowest) {
                    asker.least = lowest;
                }
                reasons.newer = newer.iter().map(|newer| obstructed(session, id, newer)).collect();
            }
            Ok((_, None)) => {
                reasons.unknown = Some(format!("{} no longer lists `{id}`", package.source));
            }
            Err(error) => reasons.unknown = Some(in_one_line(&error)),
        }
        reasons
    });
    let packages = packages.collect();
    session.save_index();
    Ok(packages)
}

/// Why the locked version was withdrawn, and why it is deprecated, as far as its registry was asked.
fn withdrawn(session: &Session, package: &LockedPackage) -> (Option<String>, Option<String>) {
    let releases = session.index().releases(&package.id);
    let found = releases.ok().zip(package.parsed_version());
    let details = found.and_then(|(releases, version)| {
        releases.details(releases.position_of_version(&version)?).cloned()
    });
    details.map(|details| (details.yanked, details.deprecated)).unwrap_or_default()
}

/// What prevents newer versions, or what would move there if nothing does.
fn obstructed(session: &Session, id: &PackageId, newer: &Newer) -> Obstructed {
    let versions = &newer.versions;
    let moves = format!("`mu update {}` moves up", session.short_name(id));
    // If nothing prevents a version, the line says what would move there; otherwise the obstacle explains itself.
    let (reason, moves) = match &newer.obstacle {
        Obstacle::Rule(_) => (Reason::Rule, None),
        Obstacle::Passed(_) => (Reason::Passed, None),
        Obstacle::Asked(_) => (Reason::Asked, None),
        Obstacle::Conflict(_) => (Reason::Conflict, None),
        Obstacle::Nothing => (Reason::Lock, Some(format!("{versions} would fit: {moves}"))),
        Obstacle::Unknown => (Reason::Unknown, None),
        Obstacle::NotAsked => {
            (Reason::NotAsked, Some(format!("nothing requires {versions}: {moves}")))
        }
    };
    let explanation = match moves {
        Some(line) => vec![line],
        None => newer.explain(&session.reference_defaults().base),
    };
    let (versions, newest) = (versions.to_string(), newer.newest.clone());
    Obstructed { versions, newest, reason, explanation }
}
