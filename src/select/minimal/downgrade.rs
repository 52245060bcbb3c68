//! Downgrades: lowers or drops whatever needs more than is allowed, and nothing else.
//!
//! Go's algorithm: a version that needs a version above what is allowed is excluded, and so is whatever needs it; each
//! package of the build list goes to its next lower version that is not excluded, or is dropped. Unlike Go's it excludes
//! also what would bring a package that was not there.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::Unavailable;
use crate::index::releases::Position;
use crate::select::minimal::build::{Line, is_higher};
use crate::select::minimal::requirements::{Module, required};
use crate::select::world::World;

/// What came of a downgrade.
#[derive(Debug, Default)]
pub(super) struct Downgraded {
    /// The version that each package of the list goes to; those that are not in here are dropped.
    pub(super) kept: BTreeMap<Line, Position>,
    /// Of versions that cannot stay: what they need that is no longer there.
    pub(super) because: FxHashMap<Module, Module>,
}

/// Lowers what must be lowered so that `line` is at `position`.
pub(super) fn downgrade(
    world: &mut World<'_>,
    list: &BTreeMap<Line, Position>,
    line: Line,
    position: Position,
) -> Result<Downgraded, Unavailable> {
    let mut most = list.clone();
    most.insert(line, position);
    // What is moved to brings along what it needs; nothing else may bring anything.
    let mut open = vec![(line, position)];
    while let Some(module) = open.pop() {
        for (line, least) in required(world, module)? {
            let package = world.package(line.0);
            let is_new = !list.contains_key(&line)
                && most.get(&line).is_none_or(|&most| is_higher(package, least, most));
            if is_new {
                most.insert(line, least);
                open.push((line, least));
            }
        }
    }
    let mut search = Search { most, ..Search::default() };
    let mut downgraded = Downgraded::default();
    for (&line, &chosen) in list {
        let mut module = (line, chosen);
        search.add(world, module)?;
        while search.excluded.contains(&module) {
            let Some(lower) = search.lower(world, module) else { break };
            module = (line, lower);
            search.add(world, module)?;
        }
        if !search.excluded.contains(&module) {
            downgraded.kept.insert(line, module.1);
        }
    }
    downgraded.because = search.because;
    Ok(downgraded)
}

#[derive(Debug, Default)]
struct Search {
    most: BTreeMap<Line, Position>,
    added: FxHashSet<Module>,
    excluded: FxHashSet<Module>,
    dependents: FxHashMap<Module, Vec<Module>>,
    because: FxHashMap<Module, Module>,
}

impl Search {
    /// Looks at a version and at all that it needs, and excludes what cannot stay.
    fn add(&mut self, world: &mut World<'_>, module: Module) -> Result<(), Unavailable> {
        let mut open = vec![module];
        while let Some(module) = open.pop() {
            if !self.added.insert(module) {
                continue;
            }
            let (line, position) = module;
            let most = self.most.get(&line);
            if most.is_none_or(|&most| is_higher(world.package(line.0), position, most)) {
                self.exclude(module);
                continue;
            }
            for needed in required(world, module)? {
                self.dependents.entry(needed).or_default().push(module);
                if self.excluded.contains(&needed) {
                    self.because.entry(module).or_insert(needed);
                    self.exclude(module);
                }
                open.push(needed);
            }
        }
        Ok(())
    }

    fn exclude(&mut self, module: Module) {
        let mut open = vec![module];
        while let Some(module) = open.pop() {
            if !self.excluded.insert(module) {
                continue;
            }
            for &dependent in self.dependents.get(&module).into_iter().flatten() {
                self.because.entry(dependent).or_insert(module);
                open.push(dependent);
            }
        }
    }

    /// The next lower candidate that is a release; not above what is allowed.
    fn lower(&self, world: &World<'_>, module: Module) -> Option<Position> {
        let ((place, _), position) = module;
        let package = world.package(place);
        let limit = match self.most.get(&module.0) {
            Some(&most) if is_higher(package, position, most) => most + 1,
            _ => position.min(package.releases().len()),
        };
        let lower = package.allowed().last_below(limit)?;
        let is_same_line = module.0.1 == 0 || package.major(lower) == module.0.1;
        is_same_line.then_some(lower)
    }
}
