//! Why there is no selection, as data: the smallest conflict, from the user's own requirements down to the clash.
//!
//! Finds the facts and what belongs to each (versions, reasons, near misses); `explain` words them.

use std::collections::{BTreeMap, VecDeque};

use pubgrub::VersionSet;

use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable};
use crate::reference::PackageId;
use crate::select::Statistics;
use crate::select::candidates::Candidates;
use crate::select::core::{self, Fact, Group};
use crate::select::filters::{Filters, Rejection};
use crate::select::fold::Versions;
use crate::select::highest::Proof;
use crate::select::positions::PositionSet;
use crate::select::world::{Kind, Node, World};

/// Requirements that cannot hold together, such that without any one of them they could.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conflict {
    /// What is required, from the roots down to the clash.
    pub facts: Vec<Requires>,
    /// Packages for which no version is left, in the order of the facts.
    pub clashes: Vec<Clash>,
    /// What the user can do, each tried out.
    pub ways_out: Vec<WayOut>,
    /// What the search cost.
    pub statistics: Statistics,
}

/// One fact: someone requires something of a package.
#[derive(Debug, Clone, PartialEq)]
pub struct Requires {
    /// Who requires it.
    pub by: Requirer,
    /// The package that is required.
    pub id: PackageId,
    /// What is asked of it, as it was written; several if the versions of the requirer ask different things.
    pub asked: Vec<String>,
}

/// Who requires something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirer {
    /// Roots, by their names for people.
    Roots(Vec<String>),
    /// Versions of a package.
    Package(PackageId, Versions),
}

/// A package for which no version is left.
#[derive(Debug, Clone, PartialEq)]
pub struct Clash {
    /// The package.
    pub id: PackageId,
    /// The different things that are asked of it.
    pub asked: Vec<String>,
    /// Where it was looked for, if there is no such package.
    pub tried: Option<Vec<String>>,
    /// Packages with a similar name, if there is no such package.
    pub similar: Vec<PackageId>,
    /// All of its versions that are candidates.
    pub available: Versions,
    /// Versions that would have helped, and why they are no candidates.
    pub rejected: Vec<(Rejection, Versions)>,
}

/// Something that the user can do. Each was tried out before it is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum WayOut {
    /// Ask something else of a package.
    Relax {
        /// Who asks.
        by: String,
        /// The package.
        id: PackageId,
        /// What is asked now.
        from: String,
        /// What to ask instead.
        to: String,
    },
}

/// Finds the smallest conflict that `proof` rests on.
pub(super) fn find(world: &mut World<'_>, proof: &Proof) -> Result<Conflict, Unavailable> {
    let groups = in_order(core::smallest(proof));
    let mut conflict = Conflict { statistics: world.statistics(), ..Conflict::default() };
    let mut asked_of: BTreeMap<usize, Vec<&Group>> = BTreeMap::new();
    let mut order = Vec::new();
    for group in &groups {
        let (from, to) = (group[0].from, group[0].to);
        let Some(place) = world.place(to).filter(|_| !is_choice(world, from)) else { continue };
        if !asked_of.contains_key(&place) {
            order.push(place);
        }
        asked_of.entry(place).or_default().push(group);
        let by = requirer(world, group)?;
        let mut asked = Vec::new();
        for fact in group {
            for requirement in told(world, fact)? {
                let text = requirement.to_string();
                if !asked.contains(&text) {
                    asked.push(text);
                }
            }
        }
        conflict.facts.push(Requires { by, id: world.package(place).id().clone(), asked });
    }
    let all: Vec<Fact> = groups.iter().flatten().cloned().collect();
    for place in order {
        let asked_of = &asked_of[&place];
        let is_hopeless =
            asked_of.iter().flat_map(|group| group.iter()).all(|fact| fact.set.is_empty());
        if asked_of.len() > 1 || is_hopeless {
            conflict.clashes.push(clash(world, place, asked_of, &all)?);
        }
    }
    Ok(conflict)
}

fn is_choice(world: &World<'_>, node: Node) -> bool {
    matches!(world.kind(node), Kind::Majors(..))
}

/// The groups along the chains that lead from the root to the clash.
fn in_order(groups: Vec<Group>) -> Vec<Group> {
    let mut by_node: BTreeMap<Node, VecDeque<Group>> = BTreeMap::new();
    for group in groups {
        by_node.entry(group[0].from).or_default().push_back(group);
    }
    for groups in by_node.values_mut() {
        groups.make_contiguous().sort_by_key(|group| group[0].to);
    }
    let mut ordered = Vec::new();
    let mut open = vec![World::ROOT];
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

/// Who requires what a group says.
fn requirer(world: &mut World<'_>, group: &Group) -> Result<Requirer, Unavailable> {
    if let Some(place) = world.place(group[0].from) {
        let package = world.package(place);
        let versions = Versions::fold(package, &all_of(group, |fact| &fact.positions));
        return Ok(Requirer::Package(package.id().clone(), versions));
    }
    let mut names = Vec::new();
    for root in &world.request().roots {
        for requirement in &root.requirements {
            if is_told_by(world, requirement, &group[0])? && !names.contains(&root.by) {
                names.push(root.by.clone());
            }
        }
    }
    Ok(Requirer::Roots(names))
}

/// The requirements that became `fact`: one for each candidate that it speaks of, or more.
fn told(world: &mut World<'_>, fact: &Fact) -> Result<Vec<Requirement>, Unavailable> {
    let mut told = Vec::new();
    for position in fact.positions.iter() {
        for requirement in world.required_by(fact.from, position)? {
            if !told.contains(&requirement) && is_told_by(world, &requirement, fact)? {
                told.push(requirement);
            }
        }
    }
    Ok(told)
}

fn is_told_by(
    world: &mut World<'_>,
    requirement: &Requirement,
    fact: &Fact,
) -> Result<bool, Unavailable> {
    let edge = world.edge(requirement)?;
    Ok(edge.is_some_and(|edge| edge.node == fact.to && edge.set == fact.set))
}

/// Everything that the facts of a group speak of, one way or the other.
fn all_of(group: &Group, set: impl Fn(&Fact) -> &PositionSet) -> PositionSet {
    group.iter().fold(PositionSet::empty(), |all, fact| all.union(set(fact)))
}

/// What there is to say of the package at `place`, of which `groups` leave no version.
fn clash(
    world: &mut World<'_>,
    place: usize,
    groups: &[&Group],
    facts: &[Fact],
) -> Result<Clash, Unavailable> {
    let mut asked = Vec::new();
    let mut wanted = PositionSet::full();
    for group in groups {
        let mut matching = PositionSet::empty();
        for fact in *group {
            for requirement in told(world, fact)? {
                matching = matching.union(&world.matching(place, &requirement)?);
                let text = requirement.to_string();
                if !asked.contains(&text) {
                    asked.push(text);
                }
            }
        }
        wanted = wanted.intersection(&matching);
    }
    let package = world.package(place);
    let releases = package.releases();
    let barred = wanted.without(package.allowed());
    let barred = barred.intersection(&PositionSet::between(0, releases.len()));
    let tried = releases.tried().map(<[String]>::to_vec);
    Ok(Clash {
        id: package.id().clone(),
        asked,
        similar: tried.iter().flat_map(|_| world.universe().similar(package.id())).collect(),
        tried,
        available: Versions::fold(package, package.allowed()),
        rejected: if would_help(world, place, &barred, facts) {
            reasons(world, package, &barred)
        } else {
            Vec::new()
        },
    })
}

/// Whether the facts could hold together if the candidates in `barred` were allowed.
fn would_help(world: &World<'_>, place: usize, barred: &PositionSet, facts: &[Fact]) -> bool {
    let mut relaxed = facts.to_vec();
    for fact in relaxed.iter_mut().filter(|fact| world.place(fact.to) == Some(place)) {
        fact.set = fact.set.union(barred);
    }
    !barred.is_empty() && !core::contradict(&relaxed)
}

/// Why versions are no candidates, those with the same reason together.
fn reasons(
    world: &World<'_>,
    package: &Candidates,
    barred: &PositionSet,
) -> Vec<(Rejection, Versions)> {
    let filters = Filters::new(&world.request().settings);
    let mut by_reason: BTreeMap<Rejection, Vec<Position>> = BTreeMap::new();
    for position in barred.iter() {
        if let Some(rejection) = package.rejection(&filters, position) {
            by_reason.entry(rejection).or_default().push(position);
        }
    }
    by_reason
        .into_iter()
        .map(|(rejection, positions)| {
            (rejection, Versions::fold(package, &positions.into_iter().collect()))
        })
        .collect()
}
