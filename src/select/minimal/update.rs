//! Moving versions by the minimal strategy: since requirements are all there is, a move is a change of requirements.

use std::collections::BTreeMap;

use pubgrub::VersionSet;

use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable, Universe};
use crate::reference::{PackageId, VersionSpec};
use crate::select::highest::{self, Answer};
use crate::select::minimal::build::{BuildList, Line, line, lowest};
use crate::select::minimal::requirements::{at_least, indirect};
use crate::select::minimal::{Minimal, check, downgrade, without_lock};
use crate::select::node::{Edge, Kind};
use crate::select::positions::PositionSet;
use crate::select::world::World;
use crate::select::{Failure, Majors, Request, Root, Selection, Strategy};

/// What a move makes of the requirements, and of the selection.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The selection afterwards.
    pub selection: Selection,
    /// What each root must ask for, in the order of the request.
    pub roots: Vec<Root>,
    /// The fewest requirements besides that give this selection.
    pub indirect: Vec<Requirement>,
    /// What a downgrade lowered or dropped besides what it was asked to lower.
    pub lowered: Vec<Lowered>,
}

/// A package that a downgrade lowered or dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lowered {
    /// The package.
    pub id: PackageId,
    /// The version it had.
    pub from: String,
    /// The version it has now; `None` if it was dropped.
    pub to: Option<String>,
    /// The package that the old version needs, and the version of it that it needs at least.
    pub because: Option<(PackageId, String)>,
}

impl Minimal {
    /// Moves every package to its newest version within what is asked for.
    ///
    /// # Errors
    ///
    /// When the requirements cannot be met as they are, or something could not be found out.
    pub fn update_everything(
        &self,
        universe: &dyn Universe,
        request: &Request,
    ) -> Result<Change, Failure> {
        let request = without_lock(request);
        let mut world = World::new(universe, &request).without_narrowing_upgrades();
        let mut list = checked(&mut world, &[])?;
        loop {
            let known = positions(&list);
            let newest = newest(&mut world, &known)?;
            let wanted: Vec<_> = newest.iter().map(|(line, &at)| (line.0, at)).collect();
            list = BuildList::build(&mut world, &wanted)?;
            // What the new versions brought along is to be its newest too.
            if list.chosen.len() == known.len() {
                return finish(universe, &mut world, &positions(&list), Vec::new());
            }
        }
    }

    /// Moves a package to the lowest version that `to` accepts, up or down; without it, to the newest within what is
    /// asked for.
    ///
    /// # Errors
    ///
    /// When there is no such version, when bounds forbid it, or when something could not be found out.
    pub fn update(
        &self,
        universe: &dyn Universe,
        request: &Request,
        id: &PackageId,
        to: Option<&VersionSpec>,
    ) -> Result<Change, Failure> {
        let request = without_lock(request);
        let mut world = World::new(universe, &request).without_narrowing_upgrades();
        let list = checked(&mut world, &[])?;
        let Some(to) = to else { return self.newest(universe, &mut world, &list, id) };
        let wish = Requirement::new(id.clone(), to.clone());
        let Some((place, position)) = lowest(&mut world, &wish)? else {
            return Err(Failure::Conflict(Box::new(check::nothing(&mut world, &wish)?)));
        };
        let line = line(world.package(place), &request.settings, place, position);
        let current = list.position(line);
        if current.is_none_or(|current| current <= position) {
            let list = checked(&mut world, &[(place, position)])?;
            return finish(universe, &mut world, &positions(&list), Vec::new());
        }
        let before = positions(&list);
        let downgraded = downgrade::downgrade(&mut world, &before, line, position)?;
        let label = |(line, at): (Line, Position)| world.package(line.0).label(at);
        let mut lowered = Vec::new();
        for (&other, &from) in &before {
            let to = downgraded.kept.get(&other);
            if other == line || to == Some(&from) {
                continue;
            }
            let because = downgraded
                .because
                .get(&(other, from))
                .map(|&needed| (world.package(needed.0.0).id().clone(), label(needed)));
            lowered.push(Lowered {
                id: world.package(other.0).id().clone(),
                from: label((other, from)),
                to: to.map(|&to| label((other, to))),
                because,
            });
        }
        finish(universe, &mut world, &downgraded.kept, lowered)
    }

    /// Moves a package to its newest version whose needs break no bound.
    fn newest(
        &self,
        universe: &dyn Universe,
        world: &mut World<'_>,
        list: &BuildList,
        id: &PackageId,
    ) -> Result<Change, Failure> {
        let before = positions(list);
        let own = before.iter().filter(|(line, _)| world.package(line.0).id() == id);
        let mut wanted = Vec::new();
        for (&line, &current) in own.collect::<Vec<_>>() {
            let releases = world.package(line.0).releases().len();
            let mut newer = bounds(world, list, line)?;
            newer = newer.intersection(&PositionSet::between(current + 1, releases));
            for position in newer.iter().rev() {
                let tried = BuildList::build(world, &[(line.0, position)])?;
                if check::conflict(world, &tried)?.is_none() {
                    wanted.push((line.0, position));
                    break;
                }
            }
        }
        let list = checked(world, &wanted)?;
        finish(universe, world, &positions(&list), Vec::new())
    }
}

/// A build list whose bounds are kept.
fn checked(world: &mut World<'_>, wanted: &[(usize, Position)]) -> Result<BuildList, Failure> {
    let list = BuildList::build(world, wanted)?;
    match check::conflict(world, &list)? {
        Some(conflict) => Err(Failure::Conflict(Box::new(conflict))),
        None => Ok(list),
    }
}

fn positions(list: &BuildList) -> BTreeMap<Line, Position> {
    list.chosen.iter().map(|(&line, &visit)| (line, list.visits[visit].position)).collect()
}

/// What the roots and the chosen versions accept of a line.
fn bounds(world: &mut World<'_>, list: &BuildList, line: Line) -> Result<PositionSet, Unavailable> {
    let roots = &world.request().roots;
    let mut all: Vec<Requirement> =
        roots.iter().flat_map(|root| root.requirements.iter().cloned()).collect();
    for &visit in list.chosen.values() {
        let visit = &list.visits[visit];
        all.extend(world.requirements(visit.place, visit.position)?.iter().cloned());
    }
    let mut bounds = world.package(line.0).allowed().clone();
    let id = world.package(line.0).id().clone();
    for requirement in all.iter().filter(|one| one.id == id) {
        let (_, set) = world.accepted(requirement)?;
        bounds = bounds.intersection(&set);
    }
    Ok(bounds)
}

/// The newest versions that fit together and are not below those of the list, with every package of the list among them.
fn newest(
    world: &mut World<'_>,
    list: &BTreeMap<Line, Position>,
) -> Result<BTreeMap<Line, Position>, Failure> {
    let mut edges = world.root_edges()?;
    for (&(place, major), &position) in list {
        let kind = match world.request().settings.majors {
            Majors::One => Kind::Package(place),
            Majors::Many => Kind::Line(place, major),
        };
        let package = world.package(place);
        let same = |at: &Position| kind == Kind::Package(place) || package.major(*at) == major;
        let above = package.allowed().iter().filter(|at| *at >= position).filter(same);
        let set = above.collect::<PositionSet>().union(&PositionSet::singleton(position));
        edges.push(Edge { node: world.node(kind), set });
    }
    world.narrow_root(edges);
    let answer = highest::solve(world, usize::MAX)?;
    let newest = list.iter().map(|(&line, &position)| {
        let kind = match world.request().settings.majors {
            Majors::One => Kind::Package(line.0),
            Majors::Many => Kind::Line(line.0, line.1),
        };
        let node = world.node(kind);
        let chosen = match &answer {
            Answer::Chosen(chosen) => chosen.get(&node).copied(),
            Answer::Refuted(_) | Answer::GivenUp => None,
        };
        (line, chosen.unwrap_or(position))
    });
    Ok(newest.collect())
}

/// Makes requirements of the versions that are to be chosen, and the selection of those.
fn finish(
    universe: &dyn Universe,
    world: &mut World<'_>,
    chosen: &BTreeMap<Line, Position>,
    lowered: Vec<Lowered>,
) -> Result<Change, Failure> {
    let mut roots = Vec::new();
    let mut direct = Vec::new();
    for root in &world.request().roots {
        let mut requirements = Vec::new();
        for requirement in &root.requirements {
            if world.request().local.contains_key(&requirement.id) {
                requirements.push(requirement.clone());
                continue;
            }
            let Some((place, least)) = lowest(world, requirement)? else { continue };
            let line = line(world.package(place), &world.request().settings, place, least);
            let Some(&position) = chosen.get(&line) else { continue };
            direct.push(line);
            let mut requirement = requirement.clone();
            if position != least {
                let package = world.package(place);
                requirement.spec = at_least(package, position, Some(&requirement.spec));
            }
            requirements.push(requirement);
        }
        roots.push(Root { by: root.by.clone(), requirements });
    }
    let indirect = indirect(world, chosen, &direct)?
        .into_iter()
        .map(|(line, position)| {
            let package = world.package(line.0);
            Requirement::new(package.id().clone(), at_least(package, position, None))
        })
        .collect::<Vec<_>>();
    let mut request = Request { roots: roots.clone(), ..world.request().clone() };
    request.roots.push(Root { by: "indirect".to_owned(), requirements: indirect.clone() });
    let selection = Minimal.select(universe, &request)?;
    Ok(Change { selection, roots, indirect, lowered })
}
