//! Changes the required versions in the workspace's manifests, entry by entry.
//!
//! The caller decides on the new version; the layout of an entry is kept.

use std::collections::BTreeSet;

use crate::formats;
use crate::manifest::edit::Section;
use crate::ops::explain::unserved::required_here;
use crate::ops::requirements::editing::{Editing, MARK};
use crate::ops::requirements::names::id_in;
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::locked::{ambiguous, ends_in};
use crate::ops::session::named::PackageName;
use crate::ops::solve::planning::rewrites;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};

/// A dependency of a manifest.
pub(crate) struct ManifestDependency {
    /// The package.
    pub(crate) id: PackageId,
    /// Its number in the list of its manifest.
    pub(crate) number: usize,
    /// How it is written.
    pub(crate) reference: Reference,
    /// The text of the comment after it, without the mark.
    pub(crate) note: Option<String>,
    /// The place of the name that it was selected by, among the names of the command; `None` if all are.
    pub(crate) by: Option<usize>,
    /// Whether its manifest names versions exactly as they were published, because they are tags.
    pub(crate) is_tagged: bool,
}

/// What an entry should require.
pub(crate) struct NewVersion {
    /// The version, or none in particular.
    pub(crate) version: Option<VersionSpec>,
    /// The text of the new comment after it, without the mark.
    pub(crate) note: Option<String>,
}

/// An entry that was changed, and that has no place for the note about what it was before.
pub(crate) struct Unnoted {
    /// The package, as it is written.
    pub(crate) name: String,
    /// What the note would have said.
    pub(crate) before: String,
    /// The number of the member whose manifest it is in.
    pub(crate) member: usize,
}

/// Changes the entries with these `names` (local names, names or ids; none means every entry) as `decide` says; returns those
/// whose new note could not be written.
pub(crate) fn change(
    session: &Session,
    editing: &mut Editing,
    names: &[PackageName],
    decide: impl Fn(&ManifestDependency) -> Result<Option<NewVersion>, CommandError>,
) -> Result<Vec<Unnoted>, CommandError> {
    let mut unnoted = Vec::new();
    each(session, editing, names, |editing, (index, section), dependency| {
        let Some(new) = decide(&dependency)? else { return Ok(()) };
        let mut is_noted = true;
        let is_changed = editing.change(session, index, |editor| {
            let changed = editor.set_version_at(section, dependency.number, new.version)?;
            let note = new.note.as_deref();
            is_noted = editor.set_note_at(section, dependency.number, MARK, note)?;
            Ok(changed)
        })?;
        // JSON has no comments, and some places in YAML have none: the caller tells what could not be noted.
        if let Some(before) = new.note.filter(|_| is_changed && !is_noted) {
            let name = dependency.reference.with_version(None).to_string();
            unnoted.push(Unnoted { name, before, member: index });
        }
        Ok(())
    })?;
    Ok(unnoted)
}

/// Supposes that the entries with these `names` require what `decide` says. Nothing of it is written, so it need not be
/// anything that their format can say.
pub(crate) fn suppose(
    session: &Session,
    editing: &mut Editing,
    names: &[PackageName],
    decide: impl Fn(&ManifestDependency) -> Option<Option<VersionSpec>>,
) -> Result<(), CommandError> {
    each(session, editing, names, |editing, place, dependency| {
        if let Some(version) = decide(&dependency) {
            editing.suppose(session, place, dependency.number, version)?;
        }
        Ok(())
    })
}

/// Does something with each of the entries with these `names`.
fn each(
    session: &Session,
    editing: &mut Editing,
    names: &[PackageName],
    mut visit: impl FnMut(
        &mut Editing,
        (usize, Section),
        ManifestDependency,
    ) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    // Names that no entry has had yet. What is left at the end is misspelt, or required by no manifest.
    let mut unseen: Vec<&str> = names.iter().map(PackageName::text).collect();
    let named = named(session, names)?;
    for index in 0..session.workspace.members.len() {
        for section in [Section::Dependencies, Section::DevDependencies] {
            let changed = &editing.changed;
            let place = (index, section);
            // All entries of a list are read before one is visited. A visit changes an entry where it is, so the
            // numbers of the others stay.
            for dependency in listed(session, changed, place, names, &named, &mut unseen)? {
                visit(editing, place, dependency)?;
            }
        }
    }
    match unseen.first() {
        None => Ok(()),
        Some(name) => Err(CommandError::new(
            Code::NotFound,
            format!("no manifest of this workspace requires `{name}`"),
        )
        .hint(required_here(session, name, &[]))),
    }
}

/// The packages that `names` mean: by id or name, or by the end of a name that only one dependency has.
pub(crate) fn named(
    session: &Session,
    names: &[PackageName],
) -> Result<Vec<PackageId>, CommandError> {
    let mut known: BTreeSet<PackageId> = BTreeSet::new();
    for member in session.workspace.members.iter().filter(|_| !names.is_empty()) {
        let manifest = &member.manifest;
        let entries = manifest.dependencies.iter().chain(&manifest.dev_dependencies);
        known.extend(entries.map(|entry| id_in(session, member, &entry.reference)));
    }
    let named = |name: &PackageName| {
        let reference = name.reference();
        let id = session.id_of_argument(reference);
        // A whole name means what it says, even if no manifest has it: the error then names the right package.
        if known.contains(&id) || reference.base().is_some() || reference.local().is_some() {
            return Ok(id);
        }
        // `ec2` means `aws/ec2`, if only one dependency ends so.
        let end = reference.name().as_str();
        let alike: Vec<&PackageId> = known.iter().filter(|id| ends_in(id, end)).collect();
        match alike[..] {
            [one] => Ok(one.clone()),
            [] => Ok(id),
            _ => Err(ambiguous(name.text(), alike)),
        }
    };
    names.iter().map(named).collect()
}

impl ManifestDependency {
    /// What it requires with `version` in place of its own.
    pub(crate) fn moved_to(&self, version: &Version) -> VersionSpec {
        match self.reference.spec() {
            // With fewer numbers, it would be another tag.
            VersionSpec::Range(_) if self.is_tagged => VersionSpec::compatible_with(version),
            spec => spec.moved_to(version),
        }
    }
}

/// The selected entries of a section; removes their names from `unseen`.
fn listed(
    session: &Session,
    changed: &ChangedManifests,
    (index, section): (usize, Section),
    names: &[PackageName],
    named: &[PackageId],
    unseen: &mut Vec<&str>,
) -> Result<Vec<ManifestDependency>, CommandError> {
    let member = &session.workspace.members[index];
    let path = &formats::dependencies_file(&member.manifest_path);
    let text = formats::dependencies_text(path)?;
    let editor = formats::editor(path, text, &member.defaults, session.short_names());
    let is_tagged = formats::format_of_manifest(path).is_some_and(|format| format.lenient);
    let mut dependencies = Vec::new();
    for (number, entry) in
        section.of(changed.manifest(&session.workspace, index)).iter().enumerate()
    {
        let reference = entry.reference.clone();
        let id = id_in(session, member, &reference);
        let mut by = None;
        for (at, (name, wanted)) in names.iter().zip(named).enumerate() {
            if entry.alias.as_deref() == Some(name.text()) || *wanted == id {
                by = Some(at);
                unseen.retain(|unseen| *unseen != name.text());
            }
        }
        // Indirect dependencies are listed again if moves rewrite requirements, whatever is written.
        let is_free = !entry.indirect || !rewrites(session, session.strategy());
        if by.is_some() || (names.is_empty() && is_free) {
            let note = editor.note_at(section, number, MARK)?;
            dependencies.push(ManifestDependency { id, number, reference, note, by, is_tagged });
        }
    }
    Ok(dependencies)
}
