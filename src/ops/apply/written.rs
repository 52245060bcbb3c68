//! How a command changed the requirements in manifests, for people and programs: what was written, and which
//! newer release was not taken.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::formats;
use crate::lock::Lockfile;
use crate::manifest::edit::Section;
use crate::manifest::{Manifest, Requirement};
use crate::ops::Session;
use crate::ops::requirements::names::id_in;
use crate::ops::requirements::requester::Requester;
use crate::ops::requirements::{Asked, Requirements, requirement};
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::shown;
use crate::ops::solve::asking::{newest, obstacle, requirers_of_locked};
use crate::ops::solve::question::request;
use crate::reference::{Base, PackageId, VersionSpec};
use crate::select::{Newer, Obstacle, Update};
use crate::workspace::Member;

/// A requirement that was added to a manifest, changed there, or removed; or that stays although there is a newer release.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    /// The package of the workspace that depends on it.
    pub package: String,
    /// The file.
    #[serde(serialize_with = "shown::path")]
    #[schemars(with = "String")]
    pub manifest: PathBuf,
    /// Whether it is needed only to develop the package.
    pub dev: bool,
    /// The package that it requires.
    pub id: PackageId,
    /// How the manifest names that package.
    pub name: String,
    /// How the manifest named it before, if it leads there by another way now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_name: Option<String>,
    /// What it required before; none if it is new.
    pub from: Option<String>,
    /// What it requires now; none if it was removed.
    pub to: Option<String>,
    /// The newest release of the package, if it is newer than the one in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer: Option<String>,
    /// Why that release is passed over, if it is: `2.0.0 is deprecated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<String>,
    /// The requirement that keeps the package from that release, if it was looked up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_back_by: Vec<String>,
}

impl Written {
    /// What is known of an entry whatever becomes of it.
    fn of(member: &Member, section: Section, entry: &Requirement, id: PackageId) -> Self {
        Self {
            package: member.manifest.name.to_string(),
            manifest: formats::dependencies_file(&member.manifest_path),
            dev: section == Section::DevDependencies,
            id,
            name: entry.reference.with_version(None).to_string(),
            former_name: None,
            from: None,
            to: None,
            newer: None,
            passed_over: None,
            held_back_by: Vec::new(),
        }
    }

    /// Whether the manifest requires something else than before.
    pub fn is_change(&self) -> bool {
        self.from != self.to || self.former_name.is_some()
    }
}

/// The entries on packages in `open` that are not among `written`, because they stay as they are.
pub(crate) fn unchanged_entries(
    session: &Session,
    changed: &ChangedManifests,
    open: &BTreeSet<PackageId>,
    written: &[Written],
) -> Vec<Written> {
    let mut unchanged = Vec::new();
    for (index, member) in session.workspace.members.iter().enumerate() {
        let manifest = changed.manifest(&session.workspace, index);
        let file = formats::dependencies_file(&member.manifest_path);
        for section in [Section::Dependencies, Section::DevDependencies] {
            for entry in section.of(manifest).iter().filter(|entry| !entry.indirect) {
                let id = id_in(session, member, &entry.reference);
                let is_it = |one: &Written| one.id == id && one.manifest == file;
                if open.contains(&id) && !written.iter().any(is_it) {
                    let (from, to) = (Some(spec(entry)), Some(spec(entry)));
                    let entry = Written::of(member, section, entry, id);
                    unchanged.push(Written { from, to, ..entry });
                }
            }
        }
    }
    unchanged
}

/// The differences between the manifest of `member` and the one that it will have, without indirect dependencies.
pub(crate) fn differences(session: &Session, member: &Member, after: &Manifest) -> Vec<Written> {
    let mut written = Vec::new();
    for section in [Section::Dependencies, Section::DevDependencies] {
        let id = |entry: &Requirement| id_in(session, member, &entry.reference);
        let own = |manifest| -> Vec<Requirement> {
            let entries: &[Requirement] = section.of(manifest);
            entries.iter().filter(|entry| !entry.indirect).cloned().collect()
        };
        let (old, new) = (own(&member.manifest), own(after));
        let one = |entry: &Requirement, from, to| Written {
            from,
            to,
            ..Written::of(member, section, entry, id(entry))
        };
        // A chart may list a package several times, so entries are compared in their order.
        let mut old: Vec<Option<&Requirement>> = old.iter().map(Some).collect();
        for entry in &new {
            let is_it = |known: &&mut Option<&Requirement>| {
                known.is_some_and(|known| id(known) == id(entry))
            };
            // Each old entry is taken by one new entry of its package.
            let known = old.iter_mut().find(is_it).and_then(Option::take);
            let place = |entry: &Requirement| entry.reference.with_version(None);
            let former = known.map(place).filter(|former| *former != place(entry));
            let (from, to) = (known.map(spec), spec(entry));
            if from.as_ref() != Some(&to) || former.is_some() {
                let former_name = former.map(|former| former.to_string());
                written.push(Written { former_name, ..one(entry, from, Some(to)) });
            }
        }
        // What no new entry took was removed.
        for entry in old.into_iter().flatten() {
            written.push(one(entry, Some(spec(entry)), None));
        }
    }
    written
}

/// What an entry requires, without the package.
fn spec(entry: &Requirement) -> String {
    let id = PackageId::new(&Base::default(), entry.reference.name());
    requirement(id, entry).to_string()
}

/// Records the newer releases that were not taken. For packages in `open`, whose requirements the command
/// chose itself, also what holds them back.
pub(crate) fn note_newer(
    session: &Session,
    requirements: &Requirements,
    lock: &Lockfile,
    open: &BTreeSet<PackageId>,
    written: &mut [Written],
) {
    for one in written.iter_mut().filter(|one| one.to.is_some()) {
        let Some(package) = lock.find(&one.id).last() else { continue };
        // A branch, a commit or a folder has no newer release.
        let is_release = package.reference.is_none() && package.is_versioned();
        let is_published = is_release && !package.source.is_authored_folder();
        let Some(current) = package.parsed_version().filter(|_| is_published) else { continue };
        // If something cannot be looked up now, it was known a moment ago, or is not worth reporting.
        let Ok(releases) = session.index().listed_releases(&one.id) else { continue };
        let Some(newest) = newest(&releases, Some(&current)).filter(|newest| *newest > current)
        else {
            continue;
        };
        one.newer = Some(newest.to_string());
        if !open.contains(&one.id) {
            continue;
        }
        // What would hold it back if this entry did not: with the entry left open, what is left are other requirements
        // and the rules of the settings.
        let opened = opened(requirements, &one.id, &one.package);
        let request = request(session, &opened, lock, Update::Everything);
        let others = requirers_of_locked(package)
            .into_iter()
            .filter(|(by, _)| *by != one.package)
            .collect::<Vec<_>>();
        let obstacle = obstacle(session, &request, package, &others, &newest.to_string());
        match obstacle {
            Some(Newer { obstacle: Obstacle::Asked(asked), .. }) => {
                let asked = asked.into_iter();
                let asked = asked.map(|(by, asked)| format!("{} {asked}", short(session, &by)));
                one.held_back_by = asked.collect();
            }
            Some(newer) if matches!(newer.obstacle, Obstacle::Rule(_) | Obstacle::Passed(_)) => {
                one.passed_over = Some(newer.in_short(&session.reference_defaults().base));
            }
            _ => {}
        }
    }
}

/// The requirer, by its short name here.
fn short(session: &Session, by: &str) -> String {
    PackageId::parse(by).map_or_else(|_| by.to_owned(), |id| session.short_name(&id).into_owned())
}

/// The requirements, with the one of `by` on `id` left open.
fn opened(requirements: &Requirements, id: &PackageId, by: &str) -> Requirements {
    let mut opened = requirements.clone();
    let is_open = |asked: &&mut Asked| {
        let is_own = asked.by == Requester::from_name(by) || asked.by == Requester::CommandLine;
        asked.requirement.id == *id && is_own
    };
    for asked in opened.asked.iter_mut().filter(is_open) {
        asked.requirement.spec = VersionSpec::Latest;
    }
    opened
}
