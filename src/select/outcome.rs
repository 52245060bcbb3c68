//! Turns the choices of a search into a selection: who asked for what, and what depends on what.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::index::releases::Position;
use crate::index::{Requirement, Unavailable};
use crate::reference::{PackageId, Version, VersionSpec};
use crate::select::node::Node;
use crate::select::selection::CAPABILITY;
use crate::select::world::{Ask, World};
use crate::select::{Asker, Chosen, Demand, Origin, Replaced, Selection, Warning};

/// A chosen package: the workspace's own, or its place and position in the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Target {
    Local(PackageId),
    Candidate(usize, Position),
}

/// A chosen package on its way into the selection.
#[derive(Default)]
struct Draft {
    requested: Vec<Demand>,
    dependencies: Vec<Target>,
    provides: Vec<String>,
    requires: Vec<String>,
    replaces: Vec<PackageId>,
}

/// Someone who asks for something.
pub(super) type Asked = (Asker, Requirement);

/// The selection in which each node's candidate is the one that `choices` says, with whatever `besides` is asked for by
/// versions that were not chosen.
pub(super) fn gather(
    world: &mut World<'_>,
    choices: &dyn Fn(Node) -> Option<Position>,
    besides: &[Asked],
) -> Result<Selection, Unavailable> {
    let (drafts, followed, replaced) =
        (FxHashMap::default(), FxHashMap::default(), BTreeMap::new());
    let mut gathering =
        Gathering { world, choices, drafts, followed, replaced, warnings: Vec::new() };
    gathering.walk(besides)?;
    Ok(gathering.finish())
}

struct Gathering<'g, 'w> {
    world: &'g mut World<'w>,
    choices: &'g dyn Fn(Node) -> Option<Position>,
    drafts: FxHashMap<Target, Draft>,
    /// Where requirements lead that were followed before.
    followed: FxHashMap<Ask, Followed>,
    /// Packages that something else is used for: what that is, and who asks for them.
    replaced: BTreeMap<PackageId, (PackageId, Vec<Demand>)>,
    warnings: Vec<Warning>,
}

/// Where a requirement leads, and how it is told.
#[derive(Clone)]
struct Followed {
    target: Target,
    asked: String,
    reference: Option<String>,
}

impl Gathering<'_, '_> {
    /// Follows requirements from the roots to everything that is needed.
    fn walk(&mut self, besides: &[Asked]) -> Result<(), Unavailable> {
        let mut open = Vec::new();
        for root in &self.world.request().roots {
            for requirement in &root.requirements {
                let ask = self.world.ask_for(requirement);
                self.follow(Asker::Root(root.by.clone()), ask, &mut open)?;
            }
        }
        for (name, by) in &self.world.request().own.requires {
            for (root, own) in by {
                self.follow_capability(Asker::Root(root.clone()), own, name, &mut open);
            }
        }
        for (by, requirement) in besides {
            let ask = self.world.ask_for(requirement);
            self.follow(by.clone(), ask, &mut open)?;
        }
        while let Some((place, position)) = open.pop() {
            let by = self.world.package(place).id().clone();
            let mut dependencies = Vec::new();
            for &ask in self.world.asks_of(place, position)?.iter() {
                let asker = Asker::Package(by.clone());
                let target = self.follow(asker, ask, &mut open)?;
                // It may ask for what it replaces.
                if *self.id(&target) != by || self.world.requirement(ask).id == by {
                    dependencies.push(target);
                }
            }
            let (provides, requires) = self.world.capabilities_of(place, position)?;
            for name in &requires {
                let asker = Asker::Package(by.clone());
                dependencies.extend(self.follow_capability(asker, &by, name, &mut open));
            }
            let replaces = self.world.declared_replaces(place, position)?;
            if let Some(draft) = self.drafts.get_mut(&Target::Candidate(place, position)) {
                draft.replaces = replaces;
                draft.dependencies = dependencies;
                draft.provides = provides;
                draft.requires = requires;
            }
        }
        Ok(())
    }

    /// Notes that `by` asks for something; gives what meets it, and adds that to `open` if it was not known yet.
    fn follow(
        &mut self,
        by: Asker,
        ask: Ask,
        open: &mut Vec<(usize, Position)>,
    ) -> Result<Target, Unavailable> {
        let Followed { target, asked, reference } = match self.followed.get(&ask) {
            Some(known) => known.clone(),
            None => {
                let found = self.find(ask)?;
                self.followed.insert(ask, found.clone());
                found
            }
        };
        if matches!(target, Target::Local(_)) {
            self.check_local(&by, ask);
        }
        let demand = Demand { by, asked, reference };
        let (by, id) = (self.id(&target), &self.world.requirement(ask).id);
        if by == id {
            self.draft(&target, open).requested.push(demand);
        } else {
            // Asked for under another name, it is there all the same.
            let (by, id) = (by.clone(), id.clone());
            let replaced = self.replaced.entry(id);
            replaced.or_insert_with(|| (by, Vec::new())).1.push(demand);
            self.draft(&target, open);
        }
        Ok(target)
    }

    fn find(&mut self, ask: Ask) -> Result<Followed, Unavailable> {
        let target = self.target(ask)?;
        let requirement = self.world.requirement(ask);
        let reference = match target {
            Target::Local(_) => None,
            Target::Candidate(place, _) => self.world.package(place).reference(requirement),
        };
        Ok(Followed { target, asked: requirement.to_string(), reference })
    }

    fn id<'t>(&'t self, target: &'t Target) -> &'t PackageId {
        match target {
            Target::Candidate(place, _) => self.world.package(*place).id(),
            Target::Local(id) => id,
        }
    }

    /// Notes that `by` asks for a capability; gives what provides it, unless that is `by` itself.
    fn follow_capability(
        &mut self,
        by: Asker,
        own: &PackageId,
        name: &str,
        open: &mut Vec<(usize, Position)>,
    ) -> Option<Target> {
        let target = match self.provider(name)? {
            Ok((place, position)) => Target::Candidate(place, position),
            Err(local) => Target::Local(local),
        };
        if own == self.id(&target) {
            return None;
        }
        let demand = Demand { by, asked: format!("{CAPABILITY}{name}"), reference: None };
        self.draft(&target, open).requested.push(demand);
        Some(target)
    }

    fn provider(&self, name: &str) -> Option<Result<(usize, Position), PackageId>> {
        self.world.chosen_provider(name, &|place, versions| {
            let nodes = self.world.nodes_of(place);
            let mut chosen = nodes.filter_map(|node| (self.choices)(node));
            chosen.find(|position| versions.holds(*position))
        })
    }

    /// The draft of something chosen, which is added to `open` if it was not known yet.
    fn draft(&mut self, target: &Target, open: &mut Vec<(usize, Position)>) -> &mut Draft {
        self.drafts.entry(target.clone()).or_insert_with(|| {
            if let Target::Candidate(place, position) = *target {
                open.push((place, position));
            }
            Draft::default()
        })
    }

    /// What meets a requirement.
    fn target(&mut self, ask: Ask) -> Result<Target, Unavailable> {
        let Some(edge) = self.world.edge_for(ask)? else {
            let id = &self.world.requirement(ask).id;
            let own = self.world.request().own_package(id);
            return Ok(Target::Local(own.map_or(id, |(own, _)| own).clone()));
        };
        let (place, position) = self
            .world
            .reached(edge, self.choices)?
            .expect("whatever is required was chosen, and is a package");
        Ok(Target::Candidate(place, position))
    }

    fn check_local(&mut self, by: &Asker, ask: Ask) {
        let requirement = self.world.requirement(ask);
        let own = self.world.request().own_package(&requirement.id);
        let Some((id, local)) = own else { return };
        let satisfied = match (&requirement.spec, &local.version) {
            (VersionSpec::Latest | VersionSpec::Tip, _) => true,
            (spec, Some(version)) => spec.accepts(version, true),
            (_, None) => false,
        };
        if !satisfied {
            self.warnings.push(Warning::LocalDoesNotSatisfy {
                id: id.clone(),
                version: local.version.clone(),
                by: by.clone(),
                requirement: requirement.clone(),
            });
        }
    }

    fn finish(self) -> Selection {
        let Self { world, drafts, replaced, mut warnings, .. } = self;
        let replaced = replaced.into_iter().map(|(id, (by, mut requested))| {
            requested.sort();
            requested.dedup();
            Replaced { id, by, requested }
        });
        let replaced = replaced.collect();
        let mut drafts: Vec<(Target, Draft)> = drafts.into_iter().collect();
        drafts.sort_by(|one, two| key(world, &one.0).cmp(&key(world, &two.0)));
        let targets = drafts.iter().enumerate().map(|(index, (target, _))| (target.clone(), index));
        let order: FxHashMap<Target, usize> = targets.collect();
        let mut packages = Vec::with_capacity(drafts.len());
        for (target, mut draft) in drafts {
            draft.requested.sort();
            draft.requested.dedup();
            let mut dependencies: Vec<usize> =
                draft.dependencies.iter().map(|dependency| order[dependency]).collect();
            dependencies.sort_unstable();
            dependencies.dedup();
            let mut chosen = describe(world, target, &mut warnings);
            chosen.direct = draft.requested.iter().any(|one| matches!(one.by, Asker::Root(_)));
            chosen.requested = draft.requested;
            chosen.dependencies = dependencies;
            chosen.provides = draft.provides;
            chosen.requires = draft.requires;
            chosen.replaces = draft.replaces;
            packages.push(chosen);
        }
        Selection { packages, replaced, warnings, statistics: world.statistics() }
    }
}

/// What the packages of a selection are sorted by.
fn key<'k>(world: &'k World<'_>, target: &'k Target) -> (&'k PackageId, Position) {
    match target {
        Target::Local(id) => (id, 0),
        Target::Candidate(place, position) => (world.package(*place).id(), *position),
    }
}

/// The version of a package of the workspace, which may be there because it replaces another one.
fn own_version(world: &World<'_>, id: &PackageId) -> Option<Version> {
    let request = world.request();
    let replacing = request.replaced.values().find(|(by, _)| by == id).map(|(_, local)| local);
    request.local.get(id).or(replacing)?.version.clone()
}

/// A chosen package, without who asks for it and what it depends on.
fn describe(world: &World<'_>, target: Target, warnings: &mut Vec<Warning>) -> Chosen {
    match target {
        Target::Local(id) => {
            let version = own_version(world, &id);
            Chosen { version, ..Chosen::new(id, Origin::Local) }
        }
        Target::Candidate(place, position) => {
            let package = world.package(place);
            let id = package.id().clone();
            let version = package.version(position).cloned();
            warnings.extend(package.yanked(position).map(|reason| Warning::Yanked {
                id: id.clone(),
                version: version.clone(),
                reason: reason.to_owned(),
            }));
            let origin = match package.revision(position) {
                Some(revision) => Origin::Revision(revision.clone()),
                None => Origin::Release(position),
            };
            Chosen {
                instead: package.instead().map(|instead| instead.id.clone()),
                version,
                commit: package.commit(position).cloned(),
                way: package.way(position),
                ..Chosen::new(id, origin)
            }
        }
    }
}
