//! Turns a refutation into a conflict: the smallest set of facts, and the details of each.
//!
//! Solves again with fewer requirements, so it may read what the search did not reach.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use mu_manifest::reference::VersionSpec;
use pubgrub::VersionSet;

use crate::clash;
use crate::clash::FoldedVersions;
use crate::conflict::{Clash, Conflict, Fact, Requirer};
use crate::core::{self, FactGroup, GraphLink};
use crate::node::{Edge, Node, NodeKind, PackageIndex};
use crate::positions::PositionSet;
use crate::releases::Position;
use crate::search::{self, Proof, STEPS_WITHOUT_PROGRESS, Verdict};
use crate::universe::{Requirement, Unavailable};
use crate::world::{World, stand_ins};

/// If a group has more wordings than this, they share one line.
const WORDINGS: usize = 4;
/// If a conflict has more roots than this, mu does not try whether fewer would do.
const ROOTS: usize = 8;

/// Facts beyond this number are only counted, and their targets are not described.
const FACTS: usize = 128;
/// If a search was harder than this, its conflict is reported as it was found: small, but not smallest.
const HARD: usize = 10 * STEPS_WITHOUT_PROGRESS;

/// Finds the smallest conflict that `proof` rests on.
pub(super) fn conflict(world: &mut World<'_>, proof: &Proof) -> Result<Conflict, Unavailable> {
    // First the facts, in the order of the chains; `nodes` are what they lead to, each once. Of these, the ones that
    // nothing is left of are then described as clashes. That is most often one, at the end of two chains.
    let groups = in_order(smallest(world, proof)?);
    let mut conflict = Conflict::within(world);
    let mut nodes: Vec<Node> = Vec::new();
    conflict.untold = groups.len().saturating_sub(FACTS);
    for group in groups.iter().take(FACTS) {
        if !nodes.contains(&group[0].to) {
            nodes.push(group[0].to);
        }
        conflict.add_facts(tell(world, group, &groups)?);
    }
    conflict.add_facts(overridden(world, &nodes));
    for node in nodes {
        conflict.replacements.extend(stand_ins::replacement_clash(world, node, &groups));
        conflict.capabilities.extend(clash::capability_clash(
            world,
            node,
            &left_over(node, &groups),
        ));
        conflict.clashes.extend(clash(world, node, &groups)?);
    }
    Ok(conflict)
}

/// Drops requirements from outside as long as the rest still cannot be met. The facts of one refutation are
/// minimal among themselves, but another refutation may need fewer roots. After a hard search this is not
/// tried for ever.
fn smallest(world: &mut World<'_>, proof: &Proof) -> Result<Vec<FactGroup>, Unavailable> {
    let effort = STEPS_WITHOUT_PROGRESS + world.budget.search_steps().min(HARD);
    let mut groups = core::smallest(proof, effort);
    // The first `needed` roots were tried and cannot be left out. Ends: a trial that is refuted leaves fewer roots, and
    // one that is not raises `needed`.
    let mut needed = 0;
    loop {
        let links = groups.iter().map(|group| &group[0]);
        let mut roots: Vec<Edge> = links
            .filter(|link| link.from == Node::GRAPH_ROOT)
            .map(|link| Edge { node: link.to, set: link.set.clone() })
            .collect();
        if needed >= roots.len() || roots.len() > ROOTS {
            return Ok(groups);
        }
        // The new refutation may need other roots than the old one, and lists them in another order. So all that are
        // left are tried again.
        roots.remove(needed);
        world.narrow_root(roots);
        match search::solve(world, effort / ROOTS)? {
            Verdict::Chosen(_) | Verdict::GivenUp => needed += 1,
            Verdict::Refuted(proof) => {
                groups = core::smallest(&proof, effort / ROOTS);
                needed = 0;
            }
        }
    }
}

/// The groups along the chains from the root to the clash.
fn in_order(groups: Vec<FactGroup>) -> Vec<FactGroup> {
    let mut by_node: BTreeMap<Node, VecDeque<FactGroup>> = BTreeMap::new();
    for group in groups {
        by_node.entry(group[0].from).or_default().push_back(group);
    }
    for groups in by_node.values_mut() {
        groups.make_contiguous().sort_by_key(|group| group[0].to);
    }
    // Depth first, so that each line goes on where the one before ended: the workspace requires `a`, `a` requires `b`.
    // A group leaves its node when it is told, so packages that require each other do not go round for ever.
    let mut ordered = Vec::new();
    let mut open = vec![Node::GRAPH_ROOT];
    while let Some(&node) = open.last() {
        match by_node.get_mut(&node).and_then(VecDeque::pop_front) {
            Some(group) => {
                open.push(group[0].to);
                ordered.push(group);
            }
            None => {
                open.pop();
            }
        }
    }
    ordered
}

/// The candidates of `node` that all groups together allow.
fn left_over(node: Node, groups: &[FactGroup]) -> PositionSet {
    let into = groups.iter().filter(|group| group[0].to == node);
    into.fold(PositionSet::full(), |left, group| {
        // Which candidate of the group is chosen is open, so the group allows what any of its links does.
        let one: PositionSet = group.iter().map(|link| &link.set).collect();
        left.intersection(&one)
    })
}

/// What a group requires, as it was written: each wording, and which candidates use it.
type Wordings = BTreeMap<String, BTreeSet<Position>>;

fn wordings(
    world: &mut World<'_>,
    group: &FactGroup,
    groups: &[FactGroup],
) -> Result<Wordings, Unavailable> {
    // If `app` requires `a ^2`, what `a 1.0` requires of `b` has no place in the explanation, although pubgrub's fact
    // may be about both. If nothing of `a` is left, that is the clash, and all of its versions are named.
    let left = left_over(group[0].from, groups);
    let mut wordings = Wordings::new();
    for link in group {
        let in_play = link.positions.intersection(&left);
        let positions = if in_play.is_empty() { &link.positions } else { &in_play };
        for position in positions.iter() {
            for requirement in requirements_of(world, link, position)? {
                let mut asked = requirement.to_string();
                if matches!(world.kind(link.from), NodeKind::ReplacementChoice(_)) && position > 0 {
                    asked = stand_ins::asked_of_replaced(world, &requirement.id, &asked);
                }
                wordings.entry(asked).or_default().insert(position);
            }
        }
    }
    Ok(wordings)
}

/// The requirements of the candidate at `position` that became the fact `link`.
fn requirements_of(
    world: &mut World<'_>,
    link: &GraphLink,
    position: Position,
) -> Result<Vec<Arc<Requirement>>, Unavailable> {
    let mut requirements = Vec::new();
    if let NodeKind::ReplacementChoice(need) = world.kind(link.from) {
        return Ok(vec![Arc::clone(world.requirement(*need))]);
    }
    // An edge does not say which requirement it came from. So all are turned into edges once more, and compared.
    for requirement in required_by(world, link.from, position)? {
        let edge = world.edge(&requirement)?;
        if edge.is_some_and(|edge| edge.node == link.to && edge.set == link.set) {
            requirements.push(requirement);
        }
    }
    Ok(requirements)
}

/// Everything that a package or the root requires, as it was written; other nodes have no wording of their
/// own.
fn required_by(
    world: &mut World<'_>,
    node: Node,
    position: Position,
) -> Result<Vec<Arc<Requirement>>, Unavailable> {
    match *world.kind(node) {
        NodeKind::Versions(line) => world.packages.requirements(line.place, position),
        NodeKind::Root | NodeKind::EdgeChoice => {
            let requirements = world.roots.iter().flat_map(|root| &root.requirements);
            Ok(requirements.cloned().map(Arc::new).collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// The facts of a group as a person would state them: a line for each wording, or one for many.
fn tell(
    world: &mut World<'_>,
    group: &FactGroup,
    groups: &[FactGroup],
) -> Result<Vec<Fact>, Unavailable> {
    // Nodes that are no package have facts of their own kind. Whatever reaches the lines below is about a package that
    // something requires.
    if let Some(facts) = stand_ins::fact_of_replacement(world, group) {
        return Ok(facts);
    }
    if let Some(facts) = clash::fact_of_supply(world, group) {
        return Ok(facts);
    }
    let GraphLink { from, to, .. } = group[0];
    let Some(place) = world.place(to) else { return Ok(Vec::new()) };
    let id = world.package(place).id.clone();
    match (world.kind(from), world.kind(to)) {
        // Nobody writes which major is meant, or what names a revision.
        (NodeKind::MajorChoice(..) | NodeKind::RevisionNamer(..), _) => return Ok(Vec::new()),
        (_, NodeKind::RevisionNamer(_, revision)) => {
            let revision = PositionSet::singleton(*revision);
            let revision = FoldedVersions::fold_candidates(world.package(place), &revision);
            return Ok(vec![Fact::OnlyWhereNamed { id, revision }]);
        }
        _ => {}
    }
    // Nothing but the root has no package here.
    let Some(by) = world.place(from) else {
        let asked = wordings(world, group, groups)?.into_keys().collect();
        let by = Requirer::Roots(roots(world, &group[0])?);
        return Ok(vec![Fact::Requires { by, id, asked }]);
    };
    // Majors of one package with the same requirement share one line, at the first of them.
    let alike: Vec<&FactGroup> = groups
        .iter()
        .filter(|other| {
            let GraphLink { from: other, to, .. } = other[0];
            world.place(other) == Some(by)
                && world.place(to) == Some(place)
                && matches!(world.kind(other), NodeKind::Versions(_))
        })
        .collect();
    // The first of them tells for all.
    if !std::ptr::eq(alike[0], group) {
        return Ok(Vec::new());
    }
    let mut all = Wordings::new();
    for group in alike {
        for (asked, positions) in wordings(world, group, groups)? {
            all.entry(asked).or_default().extend(positions);
        }
    }
    let package = world.package(by);
    let requires = |asked: Vec<String>, positions: BTreeSet<Position>| {
        let by = Requirer::versions(package, &positions.into_iter().collect());
        Fact::Requires { by, id: id.clone(), asked }
    };
    // Fifty versions of `a` may each require another range of `b`. That is one line, not fifty.
    if all.len() > WORDINGS {
        let positions = all.values().flatten().copied().collect();
        return Ok(vec![requires(all.into_keys().collect(), positions)]);
    }
    Ok(all.into_iter().map(|(asked, positions)| requires(vec![asked], positions)).collect())
}

/// The packages at `nodes` that something else replaces.
fn overridden(world: &World<'_>, nodes: &[Node]) -> Vec<Fact> {
    let places: BTreeSet<PackageIndex> =
        nodes.iter().filter_map(|&node| world.place(node)).collect();
    let packages = places.into_iter().map(|place| world.package(place));
    packages
        .filter_map(|package| {
            let by = package.used_override()?.clone();
            Some(Fact::Overridden { id: package.id.clone(), by })
        })
        .collect()
}

/// The roots that say what `link` says.
fn roots(world: &mut World<'_>, link: &GraphLink) -> Result<Vec<String>, Unavailable> {
    let mut names = BTreeSet::new();
    for root in &world.roots.to_vec() {
        for requirement in &root.requirements {
            let edge = world.edge(requirement)?;
            if edge.is_some_and(|edge| edge.node == link.to && edge.set == link.set) {
                names.insert(root.by.clone());
            }
        }
    }
    Ok(names.into_iter().collect())
}

/// Describes `node`, if the groups leave no candidate of it.
fn clash(
    world: &mut World<'_>,
    node: Node,
    groups: &[FactGroup],
) -> Result<Option<Clash>, Unavailable> {
    // Choices and namers only pass on what clashes behind them.
    let Some(place) = world.place(node) else { return Ok(None) };
    let kind = world.kind(node);
    if matches!(
        kind,
        NodeKind::MajorChoice(..)
            | NodeKind::RevisionNamer(..)
            | NodeKind::PackageRequirer(_)
            | NodeKind::ReplacementChoice(_)
    ) {
        return Ok(None);
    }
    if !left_over(node, groups).is_empty() {
        return Ok(None);
    }
    // `asked` is what each requirer says, in its words, and `wanted` what all of them would take together if no rule
    // excluded anything.
    let mut asked: Vec<Vec<String>> = Vec::new();
    let mut wanted = PositionSet::full();
    for group in groups.iter().filter(|group| group[0].to == node) {
        let mut words: Vec<String> = wordings(world, group, groups)?.into_keys().collect();
        if group[0].from == Node::GRAPH_ROOT {
            // If several roots accept the same in different words, only one of them is shown.
            words.sort_by_key(|words| *words == VersionSpec::Latest.to_string());
            words.truncate(1);
        }
        if !words.is_empty() && !asked.contains(&words) {
            asked.push(words);
        }
        let mut matching = PositionSet::empty();
        for link in group {
            // All candidates of a link need the same set, so the first one speaks for them.
            for requirement in
                requirements_of(world, link, link.positions.lowest_position().unwrap_or(0))?
            {
                matching = matching.union(&world.packages.matching(place, &requirement)?);
            }
        }
        wanted = wanted.intersection(&matching);
    }
    let mut clash = clash::describe(world, place, asked, &wanted);
    // Excluded versions are named only if the facts could hold together with them. Otherwise the user would lift the
    // rule, and read the next conflict.
    let barred = wanted.without(&world.package(place).allowed);
    if !clash.available.is_empty() && !would_help(node, &barred, groups) {
        clash.rejected.clear();
    }
    Ok(Some(clash))
}

/// Whether the facts could hold together if the candidates of `node` in `barred` were allowed.
fn would_help(node: Node, barred: &PositionSet, groups: &[FactGroup]) -> bool {
    // The same facts, but each that leads to `node` also takes what the rules bar.
    let mut groups = groups.to_vec();
    for link in groups.iter_mut().flatten().filter(|link| link.to == node) {
        link.set = link.set.union(barred);
    }
    !barred.is_empty() && !core::contradict(&groups)
}
