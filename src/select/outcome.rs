//! Turns the choices of a search into a selection: who asked for what, and what depends on what.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable};
use crate::reference::{PackageId, VersionSpec};
use crate::select::highest::Choices;
use crate::select::node::{Edge, Kind};
use crate::select::world::World;
use crate::select::{Asker, Chosen, Demand, Origin, Selection, Warning};

/// A chosen package: its place and position in the world, or the workspace's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Local,
    Candidate(usize, Position),
}

/// A chosen package on its way into the selection.
#[derive(Default)]
struct Draft {
    requested: BTreeSet<Demand>,
    dependencies: BTreeSet<(PackageId, Target)>,
}

/// The selection that `choices` are.
pub(super) fn gather(world: &mut World<'_>, choices: Choices) -> Result<Selection, Unavailable> {
    let mut gathering = Gathering { world, choices, drafts: BTreeMap::new(), warnings: Vec::new() };
    gathering.walk()?;
    Ok(gathering.finish())
}

struct Gathering<'g, 'w> {
    world: &'g mut World<'w>,
    choices: Choices,
    drafts: BTreeMap<(PackageId, Target), Draft>,
    warnings: Vec<Warning>,
}

impl Gathering<'_, '_> {
    /// Follows requirements from the roots to everything that is needed.
    fn walk(&mut self) -> Result<(), Unavailable> {
        let mut open = Vec::new();
        for root in &self.world.request().roots {
            for requirement in &root.requirements {
                let by = Asker::Root(root.by.clone());
                open.extend(self.follow(by, requirement)?);
            }
        }
        while let Some((id, target)) = open.pop() {
            let Target::Candidate(place, position) = target else { continue };
            let mut dependencies = BTreeSet::new();
            for requirement in self.world.requirements(place, position)?.iter() {
                let by = Asker::Package(id.clone());
                open.extend(self.follow(by, requirement)?);
                dependencies.insert((requirement.id.clone(), self.target(requirement)?));
            }
            if let Some(draft) = self.drafts.get_mut(&(id, target)) {
                draft.dependencies = dependencies;
            }
        }
        Ok(())
    }

    /// Notes that `by` asks for something; gives the package that meets it if it was not known yet.
    fn follow(
        &mut self,
        by: Asker,
        requirement: &Requirement,
    ) -> Result<Option<(PackageId, Target)>, Unavailable> {
        let target = self.target(requirement)?;
        if target == Target::Local {
            self.check_local(&by, requirement);
        }
        let key = (requirement.id.clone(), target);
        let is_new = !self.drafts.contains_key(&key);
        let reference = match &requirement.spec {
            VersionSpec::Tag(tag) => Some(tag.as_str().to_owned()),
            _ => None,
        };
        let demand = Demand { by, asked: requirement.to_string(), reference };
        self.drafts.entry(key.clone()).or_default().requested.insert(demand);
        Ok(is_new.then_some(key))
    }

    /// What meets a requirement.
    fn target(&mut self, requirement: &Requirement) -> Result<Target, Unavailable> {
        let Some(Edge { mut node, .. }) = self.world.edge(requirement)? else {
            return Ok(Target::Local);
        };
        if let Kind::Majors(place, set) = self.world.kind(node).clone() {
            let choice = self.chosen(node);
            node = self.world.choice_edge(place, &set, choice).node;
        }
        let place = self.world.place(node).expect("a requirement asks for a package");
        Ok(Target::Candidate(place, self.chosen(node)))
    }

    fn chosen(&self, node: crate::select::node::Node) -> Position {
        *self.choices.get(&node).expect("whatever is required was chosen")
    }

    fn check_local(&mut self, by: &Asker, requirement: &Requirement) {
        let Some(local) = self.world.request().local.get(&requirement.id) else { return };
        let satisfied = match (&requirement.spec, &local.version) {
            (VersionSpec::Latest | VersionSpec::Tip, _) => true,
            (spec, Some(version)) => spec.accepts(version, true),
            (_, None) => false,
        };
        if !satisfied {
            self.warnings.push(Warning::LocalDoesNotSatisfy {
                id: requirement.id.clone(),
                version: local.version.clone(),
                by: by.clone(),
                requirement: requirement.clone(),
            });
        }
    }

    fn finish(self) -> Selection {
        let Self { world, drafts, mut warnings, .. } = self;
        let order: BTreeMap<_, _> =
            drafts.keys().cloned().enumerate().map(|(index, key)| (key, index)).collect();
        let mut packages = Vec::with_capacity(drafts.len());
        for ((id, target), draft) in drafts {
            let dependencies: BTreeSet<usize> =
                draft.dependencies.iter().map(|dependency| order[dependency]).collect();
            let direct = draft.requested.iter().any(|demand| matches!(demand.by, Asker::Root(_)));
            let mut chosen = Chosen {
                id,
                instead: None,
                origin: Origin::Local,
                version: None,
                commit: None,
                way: Vec::new(),
                direct,
                requested: draft.requested.into_iter().collect(),
                dependencies: dependencies.into_iter().collect(),
            };
            match target {
                Target::Local => {
                    let local = world.request().local.get(&chosen.id);
                    chosen.version = local.and_then(|local| local.version.clone());
                }
                Target::Candidate(place, position) => {
                    let package = world.package(place);
                    warnings.extend(package.yanked(position).map(|reason| Warning::Yanked {
                        id: chosen.id.clone(),
                        version: package.version(position).cloned(),
                        reason: reason.to_owned(),
                    }));
                    chosen.instead = package.instead().map(|instead| instead.id.clone());
                    chosen.origin = match package.revision(position) {
                        Some(revision) => Origin::Revision(revision.clone()),
                        None => Origin::Release(position),
                    };
                    chosen.version = package.version(position).cloned();
                    chosen.commit = package.commit(position).cloned();
                    chosen.way = package.way(position);
                }
            }
            packages.push(chosen);
        }
        Selection { packages, warnings, statistics: world.statistics() }
    }
}
