//! Reads versions that the search had no reason to read.
//!
//! A package may help although nothing that was read leads to it: an old version of another package requires
//! it, and it provides or replaces what is required. Only a search that fails reads all of them before it
//! reports the failure.

use rustc_hash::FxHashSet;

use super::World;
use crate::index::Unavailable;
use crate::index::releases::Position;
use crate::select::node::{MajorLine, Node, NodeKind, PackageIndex};

/// The most versions that are read in vain.
const MOST: usize = 20_000;

/// Reads every version of every reachable package, once; returns whether that may change an answer. Does
/// nothing unless a capability is required, or a package among `nodes`, which a refutation reached, is
/// replaced or says that it should be.
pub(in crate::select) fn explore(
    world: &mut World<'_>,
    nodes: &FxHashSet<Node>,
) -> Result<bool, Unavailable> {
    if world.is_explored {
        return Ok(false);
    }
    let is_of_use = world.packages.capabilities.is_any_required()
        || nodes.iter().any(|&node| may_have_replacements(world, node));
    if !is_of_use {
        return Ok(false);
    }
    world.is_explored = true;
    world.notes_askers = true;
    world.edges.clear();
    let mut next = 0;
    while next < world.packages.known.len() && world.packages.statistics().versions_read < MOST {
        let place = PackageIndex(next);
        // The manifests of a repository would have to be fetched one by one.
        let package = world.package(place);
        let known = if package.releases.is_repository() { 0 } else { package.releases.len() };
        let allowed = package.allowed.iter();
        let versions: Vec<Position> = allowed.take_while(|at| *at < known).collect();
        for position in versions {
            let node = world.node(NodeKind::Versions(world.line(place, position)));
            world.edges(node, position)?;
        }
        next += 1;
    }
    Ok(true)
}

/// Whether a node is about a package that something replaces, or that says that it has moved.
fn may_have_replacements(world: &World<'_>, node: Node) -> bool {
    match world.kind(node) {
        NodeKind::ReplacementChoice(_) | NodeKind::Occupant(_) => true,
        NodeKind::Versions(MajorLine { place, .. }) | NodeKind::MajorChoice(place, _) => {
            let package = world.package(*place);
            world.packages.replacements.replacers(&package.id).is_some()
                || package.listing().has_moved()
        }
        _ => false,
    }
}
