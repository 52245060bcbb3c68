//! What the workspace requires, by its manifests and by `mu get REF`, in the form that selection and the lock need.
//!
//! [`Requirements`] has all of it, each as an [`Asked`], and compares it with a lock. It also tells which locked
//! packages only `devDependencies` need: `mu get --no-dev` installs only the others; the lock has all of them. No
//! version is chosen here.

pub mod editing;
pub(crate) mod names;
pub(crate) mod overtaken;
pub mod requester;
pub mod supposition;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mu_formats::helm;

use crate::index::{Requirement, conflicting};
use crate::lock::{LockedPackage, Lockfile, Requested};
use crate::manifest::edit::Section;
use crate::ops::requirements::names::{check_place, id_in};
use crate::ops::requirements::overtaken::LockDifference;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::supposition::WhatIf;
use crate::ops::session::edits::ChangedManifests;
use crate::ops::{CommandError, LocalPackage, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{
    InstalledVersion, Local, OwnCapabilities, RootRequirer, Strategy, strategy_named,
};
use crate::workspace::{ExclusionSetting, Member, Resolution};
use crate::{formats, manifest};

pub(crate) use crate::ops::requirements::overtaken::check_chosen;
pub(crate) use crate::ops::requirements::requester::{narrowing, requirement};
pub use crate::ops::requirements::requester::{parse_extra, print_extra};

/// The requirer, in messages, of what `mu add REF` was given, if the manifest already requires that package.
pub const ADD_REQUIRER: &str = "mu add";

/// One requirement of a root.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What requires it.
    pub by: Requester,
    /// The reference, as it was written.
    pub reference: Reference,
    /// The folder that a local reference is relative to.
    pub from: PathBuf,
    /// The spec.
    pub requirement: Requirement,
    /// Where it is written: a member's place in the workspace, and the list there. `None` if on the command line.
    pub line: Option<(usize, Section)>,
    /// Whether it is an indirect dependency.
    pub indirect: bool,
}

impl Asked {
    /// What `by` requires of the package `id`, without a place in a manifest.
    pub(crate) fn new(
        by: &Requester,
        id: PackageId,
        dependency: &manifest::Requirement,
        from: &Path,
    ) -> Self {
        Self {
            by: by.clone(),
            reference: dependency.reference.clone(),
            from: from.to_owned(),
            requirement: requirement(id, dependency),
            line: None,
            indirect: dependency.indirect,
        }
    }

    /// An indirect requirement of the same requirer, which nobody has written: its reference is the id, and says nothing of the
    /// place, which is that of another package than this one's.
    pub(crate) fn with_indirect(&self, requirement: Requirement) -> Self {
        let reference = Reference::parse(requirement.id.as_str()).expect("an id is a reference");
        Self { reference, requirement, indirect: true, ..self.clone() }
    }

    /// Its form in the lock.
    pub fn requested(&self) -> Requested {
        Requested { spec: self.requirement.to_string().into(), by: self.by.as_str().into() }
    }
}

/// Everything that roots require.
#[derive(Debug, Clone, Default)]
pub struct Requirements {
    /// In the order of the manifests, command line last.
    pub asked: Vec<Asked>,
    /// The manifests among them that differ from the session's.
    pub changed: ChangedManifests,
    /// Packages of the workspace that are required by their folder.
    pub by_folder: BTreeMap<PackageId, Local>,
    /// The references that belong in the lock's `extra`.
    pub extra: Vec<String>,
    /// The what-if question that these come from, if any.
    pub question: Option<Box<WhatIf>>,
    /// What the workspace's packages provide and require.
    pub own: OwnCapabilities,
    /// What the workspace's packages replace, by the first package that does.
    pub replaced: BTreeMap<PackageId, (PackageId, Local)>,
    /// Versions never to choose.
    pub exclude: Vec<ExclusionSetting>,
    /// Facts of the runtime.
    pub runtime: BTreeMap<String, String>,
    /// The version of mu that is supposed; `None` is this one's.
    pub mu_version: Option<Version>,
    /// The installed versions, if they differ from the lock: upgrades start there.
    pub installed: BTreeMap<PackageId, InstalledVersion>,
    /// The strategy that chooses.
    pub resolution: Resolution,
}

impl Requirements {
    /// The requirements of the session's manifests, and `extra`.
    pub fn collect(session: &Session, extra: Vec<String>) -> Result<Self, CommandError> {
        Self::collect_changed(session, &ChangedManifests::default(), extra)
    }

    /// As [`Self::collect`], with some manifests changed.
    pub(crate) fn collect_changed(
        session: &Session,
        changed: &ChangedManifests,
        extra: Vec<String>,
    ) -> Result<Self, CommandError> {
        let mut requirements = Self {
            extra,
            changed: changed.clone(),
            own: own_capabilities(session),
            replaced: replaced_by_own(session),
            ..Self::none(session)
        };
        // The order is that of messages, and of the groups in [`Self::grouped`], which moves answer in.
        for (index, member) in session.workspace.members.iter().enumerate() {
            let by = Requester::from_member(member);
            for section in [Section::Dependencies, Section::DevDependencies] {
                for dependency in section.of(changed.manifest(&session.workspace, index)) {
                    let id = id_in(session, member, &dependency.reference);
                    check_place(&session.workspace, member, &dependency.reference, &id)?;
                    let line = Some((index, section));
                    requirements.ask(session, id, &by, line, dependency, &member.folder);
                }
            }
        }
        // What earlier runs of `mu get REF` were given, from the lock. A folder in it is relative to the lock, wherever
        // the command runs.
        for text in requirements.extra.clone() {
            let dependency = parse_extra(&text)?;
            let root = session.lock_folder();
            let id = id_from(session, &dependency.reference, root);
            requirements.ask(session, id, &Requester::CommandLine, None, &dependency, root);
        }
        Ok(requirements)
    }

    /// No requirements, with the settings and the strategy of the session.
    pub fn none(session: &Session) -> Self {
        let settings = &session.workspace.settings;
        Self {
            exclude: settings.exclude.clone(),
            runtime: settings.runtime.clone(),
            resolution: session.resolution(),
            ..Self::default()
        }
    }

    /// The strategy that chooses.
    pub fn choosing_strategy(&self) -> &'static dyn Strategy {
        strategy_named(self.resolution)
    }

    /// Drops the requirements of a package, except those that name its folder; returns whether there were any.
    ///
    /// References in [`Self::extra`] that cannot be read stay.
    pub fn drop_package(&mut self, session: &Session, id: &PackageId) -> bool {
        let before = self.asked.len();
        self.asked.retain(|asked| {
            // A manifest that names a folder means that folder. A command that gives a version of the same package does
            // not take its place.
            let is_folder = asked.line.is_some() && asked.reference.local().is_some();
            asked.requirement.id != *id || is_folder
        });
        self.extra = references_without(session, &self.extra, id);
        let asked = &self.asked;
        self.by_folder.retain(|id, _| {
            let is_it = |asked: &Asked| asked.requirement.id == *id;
            asked.iter().any(|asked| is_it(asked) && asked.reference.local().is_some())
        });
        self.asked.len() < before
    }

    /// Adds a requirement that is in no file.
    pub fn suppose(
        &mut self,
        session: &Session,
        by: &Requester,
        dependency: &manifest::Requirement,
    ) {
        let current = &session.environment.current;
        let id = session.id_of_argument(&dependency.reference);
        self.ask(session, id, by, None, dependency, current);
    }

    fn ask(
        &mut self,
        session: &Session,
        id: PackageId,
        by: &Requester,
        line: Option<(usize, Section)>,
        dependency: &manifest::Requirement,
        from: &Path,
    ) {
        if dependency.reference.local().is_some()
            // Required by its folder, a member is used although its name may lead elsewhere.
            && let Some(member) = session.workspace.members.iter().find(|member| member.id == id)
        {
            let version = member.manifest.version.clone();
            self.by_folder.insert(id.clone(), Local { version });
        }
        self.asked.push(Asked { line, ..Asked::new(by, id, dependency, from) });
    }

    /// Tells the index about the places in references.
    pub fn declare(&self, session: &Session) {
        for asked in &self.asked {
            session.index().declare(&asked.requirement.id, &asked.reference, &asked.from);
        }
    }

    /// The form for selection: a root for each requirer, then one for each indirect list, and how many are indirect.
    pub fn selection_roots(&self) -> (Vec<RootRequirer>, usize) {
        let roots = |indirect: bool| {
            self.by_requirer(indirect).into_iter().map(|group| RootRequirer {
                by: group[0].by.to_string(),
                requirements: group.iter().map(|asked| asked.requirement.clone()).collect(),
            })
        };
        // The lists of indirect dependencies are the last roots, as `Request::indirect` counts them.
        let mut all: Vec<RootRequirer> = roots(false).collect();
        let own = all.len();
        all.extend(roots(true));
        let indirect = all.len() - own;
        (all, indirect)
    }

    /// The direct requirements, or the indirect ones, by requirer.
    pub fn by_requirer(&self, indirect: bool) -> Vec<Vec<&Asked>> {
        let mut groups: Vec<Vec<&Asked>> = Vec::new();
        for asked in self.asked.iter().filter(|asked| asked.indirect == indirect) {
            match groups.iter_mut().find(|group| group[0].by == asked.by) {
                Some(group) => group.push(asked),
                None => groups.push(vec![asked]),
            }
        }
        groups
    }

    /// The packages that a chart of the workspace lists more than once, each time as something else. Helm has each of them under its
    /// alias; mu has one version where one will do, and otherwise several beside each other.
    pub(crate) fn listed_apart(&self, session: &Session) -> BTreeSet<PackageId> {
        self.apart(session).into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// Those of them of which one version will not do: the lock has several, or they are pinned to different ones.
    pub(crate) fn side_by_side(
        &self,
        session: &Session,
        lock: Option<&Lockfile>,
    ) -> BTreeSet<PackageId> {
        let is_needed = |(id, specs): &(&PackageId, Vec<&VersionSpec>)| {
            // A chart with `redis =17.1.0` as `cache` and `redis =18.0.0` as `queue` needs both. With two ranges, one
            // version may do, and is tried first; the lock remembers when it did not.
            let pins = specs.iter().filter(|spec| matches!(spec, VersionSpec::Pin(_))).count();
            pins > 1 || lock.is_some_and(|lock| lock.find(id).nth(1).is_some())
        };
        self.apart(session).into_iter().filter(is_needed).map(|(id, _)| id.clone()).collect()
    }

    fn apart(&self, session: &Session) -> Vec<(&PackageId, Vec<&VersionSpec>)> {
        let is_chart = |member: &Member| {
            let format = formats::format_of_manifest(&member.manifest_path);
            format.is_some_and(|format| format.name == helm::FORMAT.name)
        };
        let charts: Vec<bool> = session.workspace.members.iter().map(is_chart).collect();
        let mut specs: BTreeMap<(usize, &PackageId), Vec<&VersionSpec>> = BTreeMap::new();
        for asked in &self.asked {
            let Some((member, _)) = asked.line.filter(|(member, _)| charts[*member]) else {
                continue;
            };
            let specs = specs.entry((member, &asked.requirement.id)).or_default();
            if !specs.contains(&&asked.requirement.spec) {
                specs.push(&asked.requirement.spec);
            }
        }
        let several = specs.into_iter().filter(|(_, specs)| specs.len() > 1);
        several.map(|((_, id), specs)| (id, specs)).collect()
    }

    /// The package of the workspace that `id` resolves to, if any.
    pub fn local_package<'session>(
        &self,
        session: &'session Session,
        id: &PackageId,
    ) -> Option<&'session LocalPackage> {
        session.places.member_of(id).or_else(|| {
            // A package that replaces another one is used under the other's name, wherever it is.
            let replaces = || self.replaced.values().any(|(by, _)| by == id);
            let is_asked = self.by_folder.contains_key(id) || replaces();
            is_asked.then(|| session.places.member_called(id, &session.workspace)).flatten()
        })
    }

    /// The differences between these requirements and those of `lock`.
    pub fn differences(&self, session: &Session, lock: &Lockfile) -> Vec<LockDifference> {
        // Two sets, of what is required now and of what the lock was made for: what is in only one of them is a
        // difference. Only requirements of roots are compared, since those of packages change with their versions
        // alone.
        let mut wanted: BTreeSet<(PackageId, Requested)> = self
            .asked
            .iter()
            .map(|asked| (asked.requirement.id.clone(), asked.requested()))
            .collect();
        let members = session.workspace.members.iter().map(Requester::from_member);
        let roots: BTreeSet<Requester> =
            members.chain([Requester::CommandLine, Requester::Override]).collect();
        let replaced = lock.replaced.iter().map(|replaced| &replaced.id);
        let packages: BTreeSet<&PackageId> =
            lock.packages.iter().map(|package| &package.id).chain(replaced).collect();
        let overrides = session.workspace.settings.overrides.iter();
        for (id, reference) in overrides.filter(|(id, _)| packages.contains(id)) {
            let (spec, by) = (reference.as_str().into(), Requester::Override.as_str().into());
            wanted.insert((id.clone(), Requested { spec, by }));
        }
        let mut known: BTreeSet<(PackageId, Requested)> = BTreeSet::new();
        let mut provided: BTreeSet<Requested> = BTreeSet::new();
        for (id, requested) in lock.all_requested() {
            let is_package = !roots.contains(&Requester::from_name(&requested.by))
                && PackageId::parse(&requested.by).is_ok_and(|by| packages.contains(&by));
            if !is_package && requested.capability().is_some() {
                provided.insert(requested.clone());
            } else if !is_package {
                known.insert((id.clone(), requested.clone()));
            }
        }
        let mut differences = Vec::new();
        let of_package = |(id, requested): &(PackageId, Requested), is_new| {
            let (id, requested) = (Some(id.clone()), requested.clone());
            LockDifference::Requirement { id, requested, is_new }
        };
        differences.extend(wanted.difference(&known).map(|one| of_package(one, true)));
        differences.extend(known.difference(&wanted).map(|one| of_package(one, false)));
        // The same for capabilities that the workspace requires of others.
        let required = self.required_of_others();
        let of_capability = |requested: &Requested, is_new| {
            let requested = requested.clone();
            LockDifference::Requirement { id: None, requested, is_new }
        };
        differences.extend(required.difference(&provided).map(|one| of_capability(one, true)));
        differences.extend(provided.difference(&required).map(|one| of_capability(one, false)));
        let resolution = self.resolution.as_str();
        if !lock.resolution.is_empty() && lock.resolution != resolution {
            let (locked, now) = (lock.resolution.clone(), resolution);
            differences.push(LockDifference::Strategy { locked, now });
        }
        // Then all that a lock cannot keep although every requirement is in it.
        differences.extend(overtaken::repeated(session, lock, &|| self.listed_apart(session)));
        for package in &lock.packages {
            let is_workspace = package.source.is_workspace_folder();
            // What provides a capability is used wherever it is in the workspace.
            let is_provider = || self.own.provides.values().any(|by| by.contains(&package.id));
            let is_local = self.local_package(session, &package.id).is_some()
                || (is_workspace && is_provider());
            if is_local != is_workspace {
                let is_there = match is_local {
                    true => LockDifference::InWorkspace,
                    false => LockDifference::NotInWorkspace,
                };
                differences.push(is_there(package.id.clone()));
            }
        }
        differences.extend(overtaken::unusable(&self.runtime, self.mu_version.as_ref(), lock));
        differences.extend(overtaken::bundled(session, lock));
        differences.extend(overtaken::otherwise_placed(session, &self.asked, lock));
        differences.extend(overtaken::aliased(session, lock));
        differences.extend(overtaken::replacements(session, &self.replaced, lock));
        differences.extend(overtaken::opposed(session, &self.own, lock));
        differences.extend(overtaken::unfit_stated_capabilities(session, &self.own, lock));
        differences
    }

    /// The capabilities that packages of the workspace require from others, as a lock records them.
    fn required_of_others(&self) -> BTreeSet<Requested> {
        let required = self.own.requires.iter().flat_map(|(capability, by)| {
            let providers = self.own.provides.get(capability);
            let is_others = move |id: &PackageId| providers.is_none_or(|own| !own.contains(id));
            let by = by.iter().filter(move |(_, id)| is_others(id));
            by.map(move |(name, _)| Requested::for_capability(capability, name.as_str().into()))
        });
        required.collect()
    }
}

/// What the workspace's packages replace, by the first package that does.
fn replaced_by_own(session: &Session) -> BTreeMap<PackageId, (PackageId, Local)> {
    let mut replaced = BTreeMap::new();
    let settings = &session.workspace.settings;
    for member in &session.workspace.members {
        for reference in &member.manifest.replaces {
            let id = reference.id(&member.defaults);
            // The same rule as for packages that are fetched: not itself, nothing that is in the workspace or
            // overridden, and nothing that the settings give to another one.
            let only = settings.allow_replaces.get(&id);
            let may = id != member.id
                && session.places.member_of(&id).is_none()
                && !settings.overrides.contains_key(&id)
                && only.is_none_or(|only| *only == member.id);
            if may {
                let local = Local { version: member.manifest.version.clone() };
                replaced.entry(id).or_insert((member.id.clone(), local));
            }
        }
    }
    replaced
}

/// What the workspace's packages provide and require.
fn own_capabilities(session: &Session) -> OwnCapabilities {
    let mut own = OwnCapabilities::default();
    for member in &session.workspace.members {
        // What only this machine has is there once something needs it.
        if !session.is_edited(&member.id) {
            own.packages.insert(member.id.clone());
        }
        for capability in &member.manifest.provides {
            own.provides.entry(capability.to_string()).or_default().insert(member.id.clone());
            own.versions
                .extend(member.manifest.version.clone().map(|own| (member.id.clone(), own)));
        }
        for reference in &member.manifest.conflicts {
            let text = reference.to_string();
            for with in conflicting(&text, &reference.id(&member.defaults)) {
                own.conflicts.entry(with).or_default().insert(member.id.clone());
            }
        }
        // What the runtime has, no package has to provide.
        let given = &session.workspace.settings.runtime_provides;
        let required = member.manifest.requires.iter().map(ToString::to_string);
        for capability in required.filter(|name| !given.contains(name)) {
            let required = own.requires.entry(capability).or_default();
            required.insert(Requester::from_member(member).to_string(), member.id.clone());
        }
    }
    own
}

/// Whether a locked package was chosen under the current override of the settings, or under none if there is none now.
pub fn is_overridden_alike(session: &Session, package: &LockedPackage) -> bool {
    let now = session.workspace.settings.overrides.get(&package.id).map(ToString::to_string);
    // The lock has an override among the requirers, with what it says as the spec.
    let then = Requester::override_of(package);
    now.as_deref() == then.map(|requested| &*requested.spec)
}

/// The id of a reference outside of manifests, relative to the folder `from`.
fn id_from(session: &Session, reference: &Reference, from: &Path) -> PackageId {
    let (places, workspace) = (&session.places, &session.workspace);
    places.own_name(places.id_of(reference, &session.reference_defaults(), from, workspace))
}

/// The references of `extra` without those of `id`.
pub fn references_without(session: &Session, extra: &[String], id: &PackageId) -> Vec<String> {
    let from = session.lock_folder();
    extra
        .iter()
        .filter(|text| {
            parse_extra(text)
                .map_or(true, |dependency| id_from(session, &dependency.reference, from) != *id)
        })
        .cloned()
        .collect()
}

/// The packages that only `devDependencies` need, by their places in `lock.packages`. A package that replaced
/// another one counts as needed.
pub(crate) fn development_only(requirements: &Requirements, lock: &Lockfile) -> BTreeSet<usize> {
    let mut needed: BTreeSet<&PackageId> =
        lock.replaced.iter().map(|replaced| &replaced.by).collect();
    let is_dev = |asked: &Asked| matches!(asked.line, Some((_, Section::DevDependencies)));
    let roots: BTreeSet<&str> = requirements.asked.iter().map(|asked| asked.by.as_str()).collect();
    let is_by_need = |package: &LockedPackage, requested: &Requested, needed: &BTreeSet<_>| {
        if Requester::is_override(requested) {
            return false;
        }
        if let Ok(by) = PackageId::parse(&requested.by)
            && lock.find(&by).next().is_some_and(|by| !by.source.is_workspace_folder())
        {
            return needed.contains(&by);
        }
        // A requirement that is on no package in particular comes from a manifest as a whole.
        if requested.capability().is_some() || !roots.contains(&*requested.by) {
            return true;
        }
        let mut asked = requirements.asked.iter();
        asked.any(|asked| {
            !is_dev(asked) && asked.requirement.id == package.id && asked.requested() == *requested
        })
    };
    loop {
        let before = needed.len();
        for package in &lock.packages {
            let mut requested = package.requested.iter();
            if requested.any(|requested| is_by_need(package, requested, &needed)) {
                needed.insert(&package.id);
            }
        }
        if needed.len() == before {
            break;
        }
    }
    let packages = lock.packages.iter().enumerate();
    let others = packages.filter(|(_, package)| {
        !package.source.is_workspace_folder() && !needed.contains(&package.id)
    });
    others.map(|(index, _)| index).collect()
}
