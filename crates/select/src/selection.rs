//! The output of selection, and how it is made of the choices of a search: what requires what, and what depends on what. It is
//! plain data: nothing here is worded, sorted for display, or shortened.

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_manifest::reference::{PackageId, Version, VersionSpec};
use rustc_hash::FxHashMap;

use crate::node::{Node, RequirementIndex};
use crate::releases::{ChosenFacts, Position};
use crate::universe::{Candidate, Requirement, Unavailable, Untagged};
use crate::world::{ChosenPackage, World};
use crate::{Conflict, Statistics, Unfinished};

/// The versions that were chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// The packages, by id, then by version.
    pub packages: Vec<Chosen>,
    /// The replaced packages, by id.
    pub replaced: Vec<Replaced>,
    /// Warnings for the user.
    pub warnings: Vec<SelectionWarning>,
    /// What the search cost.
    pub statistics: Statistics,
}

impl Selection {
    /// The version that was chosen of a package, the highest if there are several.
    pub fn find(&self, id: &PackageId) -> Option<&Chosen> {
        // Sorted by id and then version, so the last one with the id is the highest.
        let after = self.packages.partition_point(|chosen| chosen.id <= *id);
        self.packages[..after].last().filter(|chosen| chosen.id == *id)
    }

    /// What a chosen package depends on.
    pub fn dependencies<'a>(&'a self, chosen: &'a Chosen) -> impl Iterator<Item = &'a Chosen> {
        chosen.dependencies.iter().map(|&index| &self.packages[index])
    }
}

/// One package of a selection.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The package.
    pub id: PackageId,
    /// The package whose releases were used, if an override names another.
    pub instead: Option<PackageId>,
    /// Which of its candidates it is.
    pub origin: Origin,
    /// Its version; `None` for a revision that has none.
    pub version: Option<Version>,
    /// Its commit (Git).
    pub commit: Option<Arc<str>>,
    /// The channel to show: a requested one, or else the one that comes first, or else the first that it is
    /// in.
    pub channel: Option<String>,
    /// The name of the package that it is a copy of, if it is one.
    pub copy_of: Option<String>,
    /// The versions to install in between, if its versions say that they follow each other step by step.
    pub way: Vec<Version>,
    /// What it says of itself, as a lock keeps it; nothing for the workspace's own.
    pub facts: ChosenFacts,
    /// Whether a root requires it.
    pub direct: bool,
    /// What requires it, and how; roots first, then packages by id.
    pub requested: Vec<Demand>,
    /// What it depends on: places in [`Selection::packages`], ascending. Empty for the workspace's own.
    pub dependencies: Vec<usize>,
}

impl Chosen {
    /// A package without further details.
    pub(super) fn new(id: PackageId, origin: Origin) -> Self {
        Self {
            id,
            instead: None,
            origin,
            version: None,
            commit: None,
            channel: None,
            copy_of: None,
            way: Vec::new(),
            facts: ChosenFacts::default(),
            direct: false,
            requested: Vec::new(),
            dependencies: Vec::new(),
        }
    }

    /// Whether it is the workspace's own.
    pub fn is_local(&self) -> bool {
        self.origin == Origin::Local
    }

    /// What to ask the universe about it, under the id [`Self::source`]; `None` if it is the workspace's own.
    pub fn as_candidate(&self) -> Option<Candidate<'_>> {
        match &self.origin {
            Origin::Local => None,
            Origin::Release(position) => Some(Candidate::Release(*position)),
            Origin::Revision(revision) => Some(Candidate::Revision(revision)),
        }
    }

    /// The package whose releases were used.
    pub fn source(&self) -> &PackageId {
        self.instead.as_ref().unwrap_or(&self.id)
    }
}

/// A package that another one replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The package.
    pub id: PackageId,
    /// What is used for it.
    pub by: PackageId,
    /// Who requires it, and how.
    pub requested: Vec<Demand>,
}

/// Where a chosen package comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// The workspace itself.
    Local,
    /// A published version.
    Release(Position),
    /// A revision that has no version tag.
    Revision(Untagged),
}

/// A requirement on a chosen package, and what has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Who asks.
    pub by: RootOrPackage,
    /// The requirement.
    pub what: Demanded,
}

/// What is required of a chosen package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demanded {
    /// A version of it.
    Version {
        /// As it was written.
        spec: Arc<str>,
        /// The tag or branch that is required, if one is.
        reference: Option<String>,
    },
    /// A capability, from any provider.
    Capability(String),
}

impl Demand {
    /// The tag or branch that is required, if one is.
    pub fn reference(&self) -> Option<&str> {
        match &self.what {
            Demanded::Version { reference, .. } => reference.as_deref(),
            Demanded::Capability(_) => None,
        }
    }
}

/// Something that requires a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RootOrPackage {
    /// A root, by its display name.
    Root(String),
    /// A package.
    Package(PackageId),
}

/// A warning for the user.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectionWarning {
    /// The workspace's own package is used although its version does not meet the requirement.
    LocalDoesNotSatisfy {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Option<Version>,
        /// Who asks.
        by: RootOrPackage,
        /// The requirement.
        requirement: Requirement,
    },
    /// A version that was withdrawn is chosen nevertheless.
    Yanked {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Option<Version>,
        /// Whether it stays because it is locked.
        is_locked: bool,
        /// Why; empty if no reason was given.
        reason: String,
    },
    /// The authors no longer maintain a version, and nothing else fits, or something requires exactly it.
    Deprecated {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Option<Version>,
        /// What they say about it; may be empty.
        reason: String,
    },
}

/// Why there is no selection.
#[derive(Debug)]
pub enum Failure {
    /// Something could not be looked up.
    Unavailable(Unavailable),
    /// The requirements cannot hold together.
    Conflict(Box<Conflict>),
    /// Searching took too many steps.
    Unfinished(Box<Unfinished>),
}

impl From<Unavailable> for Failure {
    fn from(error: Unavailable) -> Self {
        Self::Unavailable(error)
    }
}

/// A chosen package before it is in the selection.
struct Draft {
    target: ChosenPackage,
    requested: Vec<Demand>,
    /// Places among the drafts.
    dependencies: Vec<usize>,
    facts: ChosenFacts,
}

/// A requirement, and what has it.
pub(super) struct Claim {
    pub(super) by: RootOrPackage,
    pub(super) need: RequirementIndex,
}

/// The selection in which `choices` gives each node's candidate, plus `besides`, the requirements of versions
/// that were not chosen.
pub(super) fn gather_selection(
    world: &mut World<'_>,
    choices: &dyn Fn(Node) -> Option<Position>,
    besides: &[Claim],
) -> Result<Selection, Unavailable> {
    let mut gathering = Gathering {
        world,
        choices,
        drafts: Vec::new(),
        places: FxHashMap::default(),
        open: Vec::new(),
        followed: FxHashMap::default(),
        replaced: BTreeMap::new(),
        warnings: Vec::new(),
    };
    gathering.walk(besides)?;
    Ok(gathering.finish())
}

struct Gathering<'g, 'w> {
    world: &'g mut World<'w>,
    choices: &'g dyn Fn(Node) -> Option<Position>,
    drafts: Vec<Draft>,
    /// The place of each target's draft.
    places: FxHashMap<ChosenPackage, usize>,
    /// The drafts whose requirements are still to be followed.
    open: Vec<usize>,
    /// The drafts that meet the requirements that were followed before, and how those are worded.
    followed: FxHashMap<RequirementIndex, (usize, Demanded)>,
    /// Replaced packages: what is used instead, and what requires them.
    replaced: BTreeMap<PackageId, (PackageId, Vec<Demand>)>,
    warnings: Vec<SelectionWarning>,
}

impl Gathering<'_, '_> {
    /// Follows requirements from the roots to everything that is needed.
    fn walk(&mut self, besides: &[Claim]) -> Result<(), Unavailable> {
        // First everything that is required from outside, then from draft to draft what those require. Ends, because a
        // chosen package has one draft, which is opened when it is made.
        for root in &self.world.roots.to_vec() {
            for requirement in &root.requirements {
                let need = self.world.packages.need_for(requirement);
                self.follow(RootOrPackage::Root(root.by.clone()), need)?;
            }
        }
        for (name, by) in &self.world.request().own.requires {
            for (root, own) in by {
                self.follow_capability(RootOrPackage::Root(root.clone()), own, name);
            }
        }
        // With the minimal strategy, versions that were visited and not chosen have requirements, too. They are told as
        // requirers, but nothing of theirs is a dependency.
        for Claim { by, need } in besides {
            self.follow(by.clone(), *need)?;
        }
        while let Some(draft) = self.open.pop() {
            let ChosenPackage::Candidate(place, position) = self.drafts[draft].target else {
                continue;
            };
            let by = self.world.package(place).id.clone();
            let mut dependencies = Vec::new();
            for &need in self.world.packages.needs_of(place, position)?.iter() {
                let dependency = self.follow(RootOrPackage::Package(by.clone()), need)?;
                // A package may require what it replaces.
                // `b` replaces `a` and requires `a`: that is met by `b` itself, which is no dependency of `b`.
                if *self.id(dependency) != by || self.world.requirement(need).id == by {
                    dependencies.push(dependency);
                }
            }
            for name in &self.world.packages.capabilities_of(place, position)?.1 {
                let asker = RootOrPackage::Package(by.clone());
                dependencies.extend(self.follow_capability(asker, &by, name));
            }
            let facts = self.world.packages.chosen_facts(place, position)?;
            let draft = &mut self.drafts[draft];
            (draft.facts, draft.dependencies) = (facts, dependencies);
        }
        Ok(())
    }

    /// Notes that `by` requires something; returns the draft that meets it.
    fn follow(&mut self, by: RootOrPackage, need: RequirementIndex) -> Result<usize, Unavailable> {
        // Many packages have the same requirement. What meets it, and how it is written, is found out once.
        let (draft, what) = match self.followed.get(&need) {
            Some(known) => known.clone(),
            None => {
                let found = self.find(need)?;
                self.followed.insert(need, found.clone());
                found
            }
        };
        // A package of the workspace is used whatever its version is. That it does not fit is said, and no failure.
        if matches!(self.drafts[draft].target, ChosenPackage::Local(_)) {
            self.check_local(&by, need);
        }
        let demand = Demand { by, what };
        let (by, id) = (self.id(draft), &self.world.requirement(need).id);
        if by == id {
            self.drafts[draft].requested.push(demand);
        } else {
            // It is required under another name, but chosen all the same.
            let (by, id) = (by.clone(), id.clone());
            let replaced = self.replaced.entry(id);
            replaced.or_insert_with(|| (by, Vec::new())).1.push(demand);
        }
        Ok(draft)
    }

    fn find(&mut self, need: RequirementIndex) -> Result<(usize, Demanded), Unavailable> {
        let target = self.target(need)?;
        let requirement = self.world.requirement(need);
        let reference = match target {
            ChosenPackage::Local(_) => None,
            ChosenPackage::Candidate(place, _) => self.world.package(place).reference(requirement),
        };
        let what = Demanded::Version { spec: requirement.to_string().into(), reference };
        Ok((self.draft(target), what))
    }

    fn id(&self, draft: usize) -> &PackageId {
        id_of(self.world, &self.drafts[draft].target)
    }

    /// Notes that `by` requires a capability; returns the draft of its provider, unless that is `by` itself.
    fn follow_capability(
        &mut self,
        by: RootOrPackage,
        own: &PackageId,
        name: &str,
    ) -> Option<usize> {
        let target = self.provider(name)?;
        if own == id_of(self.world, &target) {
            return None;
        }
        let demand = Demand { by, what: Demanded::Capability(name.to_owned()) };
        let draft = self.draft(target);
        self.drafts[draft].requested.push(demand);
        Some(draft)
    }

    fn provider(&self, name: &str) -> Option<ChosenPackage> {
        self.world.packages.capabilities.chosen(name, &|place, versions| {
            let nodes = self.world.nodes_of_package(place);
            let mut chosen = nodes.filter_map(|node| (self.choices)(node));
            chosen.find(|position| versions.holds(*position))
        })
    }

    /// The place of a chosen package's draft.
    fn draft(&mut self, target: ChosenPackage) -> usize {
        if let Some(&known) = self.places.get(&target) {
            return known;
        }
        let draft = self.drafts.len();
        // The number of a draft never changes: dependencies hold it until `finish` puts the drafts in order.
        self.places.insert(target.clone(), draft);
        self.open.push(draft);
        self.drafts.push(Draft {
            target,
            requested: Vec::new(),
            dependencies: Vec::new(),
            facts: ChosenFacts::default(),
        });
        draft
    }

    /// What meets a requirement.
    fn target(&mut self, need: RequirementIndex) -> Result<ChosenPackage, Unavailable> {
        let Some(edge) = self.world.edge_for(need)? else {
            let id = &self.world.requirement(need).id;
            let own = self.world.request().own_package(id);
            return Ok(ChosenPackage::Local(own.map_or(id, |(own, _)| own).clone()));
        };
        let (place, position) = self
            .world
            .reached(edge, self.choices)?
            .expect("whatever is required was chosen, and is a package");
        Ok(ChosenPackage::Candidate(place, position))
    }

    fn check_local(&mut self, by: &RootOrPackage, need: RequirementIndex) {
        let requirement = self.world.requirement(need);
        let own = self.world.request().own_package(&requirement.id);
        let Some((id, local)) = own else { return };
        let satisfied = match (&requirement.spec, &local.version) {
            (VersionSpec::Latest | VersionSpec::Tip, _) => true,
            (spec, Some(version)) => spec.accepts(version, true),
            (_, None) => false,
        };
        if !satisfied {
            self.warnings.push(SelectionWarning::LocalDoesNotSatisfy {
                id: id.clone(),
                version: local.version.clone(),
                by: by.clone(),
                requirement: (**requirement).clone(),
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
        // This sorts places, because drafts are large.
        // Three steps: the order of the drafts by id, the new place of each, and the drafts in that order with
        // dependencies that are new places.
        let mut sorted: Vec<usize> = (0..drafts.len()).collect();
        sorted.sort_by_key(|&draft| key(world, &drafts[draft].target));
        let mut order = vec![0; drafts.len()];
        for (index, &draft) in sorted.iter().enumerate() {
            order[draft] = index;
        }
        let mut drafts: Vec<Option<Draft>> = drafts.into_iter().map(Some).collect();
        let mut packages = Vec::with_capacity(drafts.len());
        for mut draft in sorted.into_iter().filter_map(|draft| drafts[draft].take()) {
            draft.requested.sort_unstable();
            draft.requested.dedup();
            let mut dependencies: Vec<usize> =
                draft.dependencies.iter().map(|&dependency| order[dependency]).collect();
            dependencies.sort_unstable();
            dependencies.dedup();
            let mut chosen = describe(world, draft.target, &mut warnings);
            chosen.direct =
                draft.requested.iter().any(|one| matches!(one.by, RootOrPackage::Root(_)));
            chosen.requested = draft.requested;
            chosen.dependencies = dependencies;
            chosen.facts = draft.facts;
            packages.push(chosen);
        }
        Selection { packages, replaced, warnings, statistics: world.packages.statistics() }
    }
}

/// The sort key of a selection's packages.
fn key<'k>(world: &'k World<'_>, target: &'k ChosenPackage) -> (&'k PackageId, Position) {
    match target {
        ChosenPackage::Local(id) => (id, 0),
        ChosenPackage::Candidate(place, position) => (&world.package(*place).id, *position),
    }
}

fn id_of<'k>(world: &'k World<'_>, target: &'k ChosenPackage) -> &'k PackageId {
    key(world, target).0
}

/// The version of a package of the workspace, which may be there because it replaces another one, or provides a capability.
fn own_version(world: &World<'_>, id: &PackageId) -> Option<Version> {
    let request = world.request();
    let replacing = request.replaced.values().find(|(by, _)| by == id).map(|(_, local)| local);
    match request.local.get(id).or(replacing) {
        Some(local) => local.version.clone(),
        None => request.own.versions.get(id).cloned(),
    }
}

/// Whether the lock names this version.
fn is_locked(world: &World<'_>, id: &PackageId, version: Option<&Version>) -> bool {
    let mut locked = world.request().locked.iter();
    locked.any(|locked| locked.id == *id && locked.version.as_ref() == version)
}

/// A chosen package, without its requirers and dependencies.
fn describe(
    world: &World<'_>,
    target: ChosenPackage,
    warnings: &mut Vec<SelectionWarning>,
) -> Chosen {
    match target {
        ChosenPackage::Local(id) => {
            let version = own_version(world, &id);
            Chosen { version, ..Chosen::new(id, Origin::Local) }
        }
        ChosenPackage::Candidate(place, position) => {
            let package = world.package(place);
            let id = package.id.clone();
            let version = package.version(position);
            let details = package.details(position);
            let yanked = details.and_then(|details| details.yanked.clone());
            warnings.extend(yanked.map(|reason| SelectionWarning::Yanked {
                id: id.clone(),
                version: version.clone(),
                is_locked: is_locked(world, &id, version.as_ref()),
                reason,
            }));
            let deprecated = details.and_then(|details| details.deprecated.clone());
            warnings.extend(deprecated.map(|reason| SelectionWarning::Deprecated {
                id: id.clone(),
                version: version.clone(),
                reason,
            }));
            let origin = match package.revision(position) {
                Some(revision) => Origin::Revision(revision.clone()),
                None => Origin::Release(position),
            };
            Chosen {
                instead: package.used_override().map(|instead| instead.id.clone()),
                version,
                commit: package.candidate_commit(position).cloned(),
                channel: package.shown_channel(position),
                copy_of: details.and_then(|details| details.origin.clone()),
                way: package.upgrade_path(position),
                ..Chosen::new(id, origin)
            }
        }
    }
}
