//! Conflicts about packages that replace others, as facts: what `diagnose` makes of the nodes that represent
//! them. `explain` puts them into words.

use crate::reference::PackageId;
use crate::select::conflict::{Fact, ReplacementClash, Requirer};
use crate::select::core::{Group, Link};
use crate::select::node::{Node, NodeKind};
use crate::select::positions::PositionSet;
use crate::select::world::{World, is_taken};

/// The fact of a group that starts at a way to meet a requirement, or ends at a role; `None` if it does
/// neither.
pub(super) fn tell(world: &World<'_>, group: &Group) -> Option<Vec<Fact>> {
    let Link { from, to, .. } = group[0];
    match (world.kind(from), world.kind(to)) {
        (NodeKind::ReplacementChoice(_), NodeKind::PackageRequirer(place)) => {
            let id = world.package(*place).id.clone();
            Some(vec![Fact::ReplacesWhereAsked { id }])
        }
        // The requirement of its package states this already.
        (NodeKind::ReplacementChoice(_), _) => Some(Vec::new()),
        (_, NodeKind::Occupant(id)) => {
            let taking = group.iter().filter(|link| is_taken(&link.set));
            let versions: PositionSet = taking.map(|link| &link.positions).collect();
            let by = world.place(from).filter(|_| !versions.is_empty());
            let by = by.map(|by| Requirer::versions(world.package(by), &versions));
            Some(by.map(|by| Fact::Replaces { by, id: id.clone() }).into_iter().collect())
        }
        _ => None,
    }
}

/// What is required of a package that `by` replaces, in the words of a clash about `by`.
pub(super) fn asked_of(world: &World<'_>, id: &PackageId, asked: &str) -> String {
    format!("{asked} (required of {})", id.short(&world.request().settings.base))
}

/// Describes a role that several packages would have.
pub(super) fn clash(world: &World<'_>, node: Node, groups: &[Group]) -> Option<ReplacementClash> {
    let NodeKind::Occupant(id) = world.kind(node) else { return None };
    let links = groups.iter().flatten().filter(|link| link.to == node);
    let taking = links.filter(|link| is_taken(&link.set));
    let mut by: Vec<&PackageId> = taking
        .filter(|link| !matches!(world.kind(link.from), NodeKind::ReplacementChoice(_)))
        .filter_map(|link| Some(&world.package(world.place(link.from)?).id))
        .collect();
    by.sort_unstable();
    by.dedup();
    (by.len() > 1).then(|| ReplacementClash::Several { id: id.clone() })
}
