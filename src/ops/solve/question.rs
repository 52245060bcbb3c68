//! What selection is asked: a command's [`Question`], and the request to selection that says it.
//!
//! A question is complete: what is required, which versions may move, what is supposed, and which move led to it. Two commands that
//! ask the same get the same, whatever was asked before. Nothing is asked here.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mu_formats::olm;

use crate::index::Requirement as IndexRequirement;
use crate::lock::{LockedPackage, Lockfile};
use crate::ops::Session;
use crate::ops::requirements::{Asked, Requirements};
use crate::reference::{PackageId, Version};
use crate::select::{
    CandidateOfLock, Change, Exclusion, Local, Override, SelectionRequest, Settings,
    StatedCapabilities, Update,
};

/// What a command wants versions for.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// What is required, and what is supposed.
    pub requirements: Rc<Requirements>,
    /// Which versions may move.
    pub update: Update,
    /// Packages that are removed completely, although others replaced them.
    pub discarded: BTreeSet<PackageId>,
    /// What another tool has in use: it is kept as if it were locked.
    pub adopted: Vec<CandidateOfLock>,
    /// The move that led to these requirements, if one did: what it selected need not be looked for again.
    pub change: Option<Rc<Change>>,
    /// What a command wants to move to, which is no requirement of anybody yet. An explanation mentions it.
    pub wish: Option<Asked>,
}

impl Question {
    /// The question for what these requirements need, with as few changes as `update` allows.
    pub fn new(requirements: impl Into<Rc<Requirements>>, update: Update) -> Self {
        Self { requirements: requirements.into(), update, ..Self::default() }
    }

    /// The question for what these requirements need, with nothing that fits moved.
    pub fn without_moves(requirements: impl Into<Rc<Requirements>>) -> Self {
        Self::new(requirements, Update::Nothing)
    }

    /// Whether it supposes something that a lock does not record: another runtime or another mu, or an installed version, whose
    /// requirements are not in the lock.
    pub(super) fn supposes_more_than_a_lock(&self) -> bool {
        let Requirements { question, mu_version, installed, .. } = &*self.requirements;
        let has_runtime = question.as_ref().is_some_and(|what_if| !what_if.runtime.is_empty());
        mu_version.is_some() || !installed.is_empty() || has_runtime
    }

    /// Whether it excludes something that is locked.
    pub(super) fn excludes_locked(&self, lock: &Lockfile) -> bool {
        self.requirements.exclude.iter().any(|exclusion| {
            lock.find(&exclusion.id).any(|package| {
                let version = package.parsed_version();
                exclusion.versions.as_ref().is_none_or(|spec| {
                    version.as_ref().is_some_and(|version| spec.accepts(version, true))
                })
            })
        })
    }
}

/// The packages of which the user wants prereleases. A bundle of operators has no such wish: all its ranges accept them.
fn wanted_prereleases(session: &Session, requirements: &Requirements) -> BTreeSet<PackageId> {
    let is_wish = |asked: &&Asked| {
        let member = asked.line.and_then(|(member, _)| session.workspace.members.get(member));
        let format = member.and_then(|member| member.manifest.format.as_deref());
        asked.requirement.prerelease && format != Some(olm::NAME)
    };
    let wishes = requirements.asked.iter().filter(is_wish);
    wishes.map(|asked| asked.requirement.id.clone()).collect()
}

/// The request to selection.
pub fn request(
    session: &Session,
    requirements: &Requirements,
    previous: &Lockfile,
    update: Update,
) -> SelectionRequest {
    let settings = &session.workspace.settings;
    let defaults = session.reference_defaults();
    let root = &session.workspace.root;
    let mut local: BTreeMap<PackageId, Local> = requirements.by_folder.clone();
    let asked = requirements.asked.iter().map(|asked| &asked.requirement.id);
    // A dependency of a locked package may have been added to the workspace later.
    for id in asked.chain(previous.packages.iter().map(|package| &package.id)) {
        if let Some(member) = session.places.member_of(id) {
            local.insert(id.clone(), Local { version: member.version.clone() });
        }
    }
    local.extend(requirements.replaced.values().cloned());
    let overrides = settings.overrides.iter().map(|(id, reference)| {
        let instead = session.places.id_of(reference, &defaults, root, &session.workspace);
        session.index().declare(&instead, reference, root);
        (id.clone(), Override { id: instead, spec: reference.spec() })
    });
    let overrides = overrides.collect();
    let locked = previous
        .packages
        .iter()
        .filter(|package| !package.source.is_workspace_folder())
        .map(|package| CandidateOfLock {
            id: package.id.clone(),
            version: package.parsed_version(),
            commit: package.revision().map(Cow::into_owned),
            reference: package.reference.clone(),
            // Selection knows a dependency by the package that is used, the lock by the name that is required: a
            // replacement has another one.
            dependencies: package
                .dependencies
                .iter()
                .map(|id| previous.used_for(id).clone())
                .collect(),
            requested: requested_of_major(previous, package),
        })
        .collect();
    let exclude = requirements.exclude.iter();
    let exclude = exclude.map(|one| Exclusion { id: one.id.clone(), spec: one.versions.clone() });
    let (roots, indirect) = requirements.selection_roots();
    // If everything may move, the lock's second version of a chart is no reason for two.
    let kept = (update != Update::Everything).then_some(previous);
    let side_by_side = requirements.side_by_side(session, kept);
    SelectionRequest {
        roots,
        indirect,
        locked,
        update,
        installed: requirements.installed.clone(),
        local,
        own: requirements.own.clone(),
        replaced: requirements.replaced.clone(),
        settings: Settings {
            exclude: exclude.collect(),
            overrides,
            bundled: settings.bundled.iter().cloned().collect(),
            replacements: settings.allow_replaces.clone(),
            stated_replaces: settings.stated_replaces.clone(),
            majors: settings.majors,
            side_by_side,
            published_before: session.age_rule().latest_publication(),
            prereleases: session.options.prereleases,
            wanted_prereleases: wanted_prereleases(session, requirements),
            runtime: requirements.runtime.clone(),
            capabilities: StatedCapabilities {
                packages: settings.provided.clone(),
                runtime: settings.runtime_provides.iter().cloned().collect(),
            },
            mu_version: requirements
                .mu_version
                .clone()
                .or_else(|| Version::parse(env!("CARGO_PKG_VERSION")).ok()),
            patience: session.options.patience,
            base: defaults.base.clone(),
        },
    }
}

/// What a package of the lock is required as, where the lock has it more than once.
fn requested_of_major(lock: &Lockfile, package: &LockedPackage) -> Vec<IndexRequirement> {
    if lock.find(&package.id).nth(1).is_none() {
        return Vec::new();
    }
    let requested = package.requested.iter().filter(|requested| requested.capability().is_none());
    requested.filter_map(|one| IndexRequirement::parse(package.id.clone(), &one.spec)).collect()
}
