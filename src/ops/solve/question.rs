//! What selection is asked: a command's [`Question`], and the request to selection that says it.
//!
//! A question is complete: what is required, which versions may move, what is supposed, and which move led to it. Two commands
//! that ask the same get the same, whatever was asked before. Nothing is asked here.
//!
//! A command line has conditions on versions: channel, app version, revision and prereleases. Channel and app version are
//! requirements like others. A revision is not, because no manifest can require one: mu requires the newest version that has it
//! instead.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mu_formats::olm;

use crate::index::releases::{Position, Releases};
use crate::index::{Requirement, Requirement as IndexRequirement, Universe as _};
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest;
use crate::ops::explain::unavailable_error;
use crate::ops::requirements::{Asked, Requirements};
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Version, VersionSpec};
use crate::select::{
    CandidateOfLock, Change, Exclusion, Local, Override, SelectionRequest, Settings,
    StatedCapabilities, Update, incompatibilities,
};

pub use crate::ops::requirements::supposition::Narrowing;

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

impl Narrowing {
    /// Whether it leaves everything as it is.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A dependency on the newest version with the revision, if one is given; otherwise the dependency as it
    /// is.
    pub(crate) fn at_revision(
        &self,
        session: &Session,
        dependency: manifest::Requirement,
    ) -> Result<manifest::Requirement, CommandError> {
        if self.revision.is_none() || dependency.reference.local().is_some() {
            return Ok(dependency);
        }
        let id = session.id_of_argument(&dependency.reference);
        session.index().declare(&id, &dependency.reference, &session.environment.current);
        let asked = Requirement::new(id.clone(), dependency.reference.spec());
        let newest = self.newest(session, &id, &[&asked])?;
        let reference = dependency.reference.with_version(Some(VersionSpec::exactly(&newest)));
        // The version already satisfies the conditions.
        Ok(manifest::Requirement { reference, app_version: None, ..dependency })
    }

    /// The newest version of a package that satisfies the conditions, and that all of `asked` accept.
    pub(crate) fn newest(
        &self,
        session: &Session,
        id: &PackageId,
        asked: &[&Requirement],
    ) -> Result<Version, CommandError> {
        let revision = self.revision.as_deref().map(RevisionPrefix::parse).transpose()?;
        let index = session.index();
        let releases = index.releases(id).map_err(|error| unavailable_error(session, error))?;
        let apps = releases.app_versioning();
        let runtime = &session.workspace.settings.runtime;
        let own = Version::parse(env!("CARGO_PKG_VERSION")).ok();
        // Who names a version exactly wants it, although it was withdrawn.
        let is_exact = asked.iter().any(|one| matches!(one.spec, VersionSpec::Pin(_)));
        // The same conditions that selection has, since what is found here is then required exactly: it must not be
        // refused afterwards.
        let fits = |position: &Position| {
            let version = releases.version(*position);
            let details = releases.details(*position);
            let is_asked = asked
                .iter()
                .all(|one| one.spec.accepts(&version, self.prereleases || one.prerelease));
            let of_app = self.app_version.as_ref().is_none_or(|wanted| {
                let app = releases.app_version(*position);
                app.is_some_and(|app| apps.accepts(wanted, app))
            });
            let in_channel = self.channel.as_ref().is_none_or(|channel| {
                details.is_some_and(|details| details.channels.contains(channel))
            });
            let can_be_used = details.is_none_or(|details| {
                (is_exact || details.yanked.is_none())
                    && incompatibilities(details, runtime, own.as_ref()).next().is_none()
            });
            let of_revision = revision.as_ref().is_none_or(|wanted| wanted.accepts(&version));
            is_asked && of_app && in_channel && can_be_used && of_revision
        };
        let mut fitting = (0..releases.len()).rev().filter(fits);
        // `1.28` is any version that begins so, unless one was published by just that name.
        let is_named = |version: &Version| {
            let name = version.to_string();
            asked.iter().any(|one| one.spec.as_str().trim_start_matches('v') == name)
        };
        let named = fitting.clone().find(|at| is_named(&releases.version(*at)));
        match named.or_else(|| fitting.next()) {
            Some(newest) => Ok(releases.version(newest)),
            None => Err(self.missing(session, &releases, asked)),
        }
    }

    fn missing(
        &self,
        session: &Session,
        releases: &Releases,
        asked: &[&Requirement],
    ) -> CommandError {
        let id = releases.id();
        let words = [
            self.app_version.as_ref().map(|app| format!("of app version {app}")),
            self.revision.as_ref().map(|revision| format!("of revision {revision}")),
            self.channel.as_ref().map(|channel| format!("in channel {channel}")),
        ];
        // The last one is what the command was given.
        let own = asked.last().map(|one| &one.spec).filter(|spec| **spec != VersionSpec::Latest);
        let own = own.map(ToString::to_string);
        let words: Vec<String> = own.into_iter().chain(words.into_iter().flatten()).collect();
        let message = format!(
            "`{id}` has no version {} that can be used and fits what is required of it",
            words.join(" and ")
        );
        let name = quoted_for_shell(&session.short_name(id));
        let error = CommandError::new(Code::NotFound, message);
        error.hint(format!("`mu versions {name}` shows which versions there are"))
    }
}

/// A revision, or its first numbers: the second part of a composite version, or the whole of any other
/// version.
#[derive(Debug, Clone)]
pub(crate) struct RevisionPrefix(VersionSpec);

impl RevisionPrefix {
    /// Reads a revision.
    pub(crate) fn parse(text: &str) -> Result<Self, CommandError> {
        match VersionSpec::parse(text) {
            Ok(spec @ (VersionSpec::Pin(_) | VersionSpec::Range(_))) => Ok(Self(spec)),
            Ok(_) => Err(CommandError::new(
                Code::Usage,
                format!(
                    "--revision takes a version such as 1.2.0, or the first numbers of one, not `{text}`"
                ),
            )),
            Err(error) => Err(CommandError::new(Code::Usage, format!("--revision: {error}"))),
        }
    }

    /// Whether a version is of this revision.
    pub(crate) fn accepts(&self, version: &Version) -> bool {
        match version.revision() {
            Some(revision) => Version::parse_lenient(revision)
                .is_ok_and(|revision| self.0.accepts(&revision, true)),
            None => self.0.accepts(version, true),
        }
    }
}

/// The error of conditions in a command that names no packages.
pub(crate) fn without_packages(example: &str) -> CommandError {
    let message =
        "--app-version, --revision, --channel and --pre need the packages that they are about";
    CommandError::new(Code::Usage, message).hint(format!("name them, such as `{example}`"))
}
