//! Writes the requirements after a move into the manifests, entry by entry, and into what `mu get` was given. The caller decides
//! on the new versions; the layout of an entry is kept.
//!
//! A workspace has one selection, so its manifests are one list. A direct requirement stays on its line. An indirect one goes
//! into the manifest whose dependencies lead to its package: where it already is, else into the first one, ordinary dependencies
//! before dev ones. If only `mu get REF` leads to it, it goes into the lock. So does what no manifest can say: a line without a
//! mark would be what its author wants, for mu and for other tools.
//!
//! What `mu get` was given is in Mu.lock, and not in the manifests. So there are two results: that of the manifests alone, by
//! which they are written, and that of both together, which is in use. The next run has to find the same, or it would change
//! them again.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::Requirement;
use crate::manifest::edit::Section;
use crate::ops::explain::unserved::required_here;
use crate::ops::requirements::editing::{Editing, MARK};
use crate::ops::requirements::names::{id_in, unambiguous_name};
use crate::ops::requirements::{Asked, Requirements, print_extra};
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::locked::{PackageName, ambiguous, ends_in};
use crate::ops::solve::asking::rewrites;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Reference, Version, VersionSpec};
use crate::select::{Change, Demanded, Majors, RootOrPackage, Selection};
use crate::workspace::Member;
use crate::{formats, manifest};

/// A list of requirements: of a manifest, or (`None`) of what `mu get` was given.
pub(crate) type List = Option<(usize, Section)>;

/// Writes the `requirements` after `change` into the lists that `is_written` accepts; returns the new list of what `mu get` was
/// given, with what no manifest can say.
pub(crate) fn write_requirements(
    session: &Session,
    editing: &mut Editing,
    requirements: &Requirements,
    change: &Change,
    is_written: impl Fn(List) -> bool,
) -> Result<Vec<String>, CommandError> {
    let mut extra = Vec::new();
    // Selection was asked with these groups as its roots, in this order, and answers in the same order: `change.asked[i][j]` is
    // what the line `own[i][j]` has to say now.
    let own = requirements.by_requirer(false);
    // The indirect lines have no such pair. What must be listed comes as `change.indirect`, and goes to the line of that package
    // if there is one.
    let listed: Vec<&Asked> = requirements.by_requirer(true).into_iter().flatten().collect();
    // Packages whose new requirement went into the lock: their indirect lines stay as they are.
    let mut kept: BTreeSet<&PackageId> = BTreeSet::new();
    for (group, asked) in own.iter().zip(&change.asked) {
        for (old, new) in group.iter().zip(asked) {
            let is_said = match (is_written(old.line), new) {
                (true, Some(new)) => is_sayable(session, editing, old, new, &change.selection)?,
                (true, None) => true,
                // The lock may say what the manifest cannot.
                (false, Some(new)) => {
                    let is_it = |listed: &&Asked| {
                        let is_alike = listed.requirement.id == new.id;
                        is_alike && listed.line.is_none() && !is_of_other(change, listed, new)
                    };
                    old.line.is_none() || !listed.iter().any(is_it)
                }
                (false, None) => true,
            };
            if let (false, Some(new)) = (is_said, new) {
                if kept.insert(&new.id) {
                    extra.push(print_extra(&indirect(session, editing, None, new)?));
                }
            } else if is_written(old.line) {
                write(session, editing, &mut extra, old, new.as_ref())?;
            }
        }
    }
    // Now the indirect requirements. Each goes to a line that says it already, or else to a line of its package that no
    // other one needs. For what is left, `new` has the lists that could take it.
    let (mut new, mut taken) = (Vec::new(), BTreeSet::new());
    // Whether a list that is not written now has a requirement anyway, however it words it.
    let is_said = |requirement: &Requirement| {
        let chosen = change.selection.packages.iter().filter(|one| one.id == requirement.id);
        let versions: Vec<_> = chosen.filter_map(|one| one.version.as_ref()).collect();
        let mut others = listed.iter().map(|asked| (asked.line, &asked.requirement));
        others.any(|(line, other)| {
            let begins = |version: &&Version| {
                other.spec.has_lower_bound_at(version)
                    && requirement.spec.has_lower_bound_at(version)
            };
            let is_same = other.spec == requirement.spec || versions.iter().any(begins);
            other.id == requirement.id && is_same && !is_written(line)
        })
    };
    for requirement in change.indirect.iter().filter(|requirement| !is_said(requirement)) {
        let leading = leading(session, requirements, &change.selection, &requirement.id);
        let fits = |asked: &Asked| {
            let is_led_to = leading.is_empty() || leading.contains(&asked.line);
            asked.requirement.id == requirement.id && is_led_to && is_written(asked.line)
        };
        // Of a package in several majors, each has its own line.
        let is_free = |at: usize| {
            let is_of = |other: &&Requirement| *other == &listed[at].requirement;
            !taken.contains(&at) && !change.indirect.iter().any(|other| is_of(&other))
        };
        let mut all = (0..listed.len()).filter(|at| fits(listed[*at]));
        let same = all.clone().find(|at| listed[*at].requirement == *requirement);
        match same.or_else(|| all.find(|at| is_free(*at))) {
            Some(_) if kept.contains(&requirement.id) => {}
            Some(old) => {
                taken.insert(old);
                write(session, editing, &mut extra, listed[old], Some(requirement))?;
            }
            None => {
                let any = own.iter().flatten().map(|asked| asked.line);
                let lists = leading.iter().copied().chain(any).filter(|list| is_written(*list));
                new.push((lists.collect::<Vec<List>>(), requirement));
            }
        }
    }
    // :One: With one version of each package, a second list that names it as well asks for nothing else, and stays as
    // it is.
    if session.workspace.settings.majors == Majors::One {
        kept.extend(taken.iter().map(|at: &usize| &listed[*at].requirement.id));
    }
    // What no requirement took over is no longer needed.
    for (at, old) in listed.iter().enumerate().filter(|(_, old)| is_written(old.line)) {
        if !taken.contains(&at) && !kept.contains(&old.requirement.id) {
            write(session, editing, &mut extra, old, None)?;
        }
    }
    // After the removals: a manifest that still had an old line of the package would not take another one.
    for (lists, requirement) in new {
        add(session, editing, &mut extra, &lists, requirement)?;
    }
    extra.sort();
    extra.dedup();
    Ok(extra)
}

/// Whether a line begins at a chosen version of its package that is not the one at which this requirement begins: another major.
fn is_of_other(change: &Change, listed: &Asked, new: &Requirement) -> bool {
    let chosen = change.selection.packages.iter().filter(|chosen| chosen.id == new.id);
    chosen.filter_map(|chosen| chosen.version.as_ref()).any(|version| {
        listed.requirement.spec.has_lower_bound_at(version) && !new.spec.has_lower_bound_at(version)
    })
}

/// Adds an indirect requirement to the first of `lists` that can say it, or else to the lock.
fn add(
    session: &Session,
    editing: &mut Editing,
    extra: &mut Vec<String>,
    lists: &[List],
    requirement: &Requirement,
) -> Result<(), CommandError> {
    for list in lists {
        let Some((member, section)) = *list else { break };
        let own = &session.workspace.members[member];
        let manifest = editing.changed.manifest(&session.workspace, member);
        let is_it =
            |entry: &manifest::Requirement| id_in(session, own, &entry.reference) == requirement.id;
        if manifest.all_dependencies().any(is_it) {
            // It lists another major.
            continue;
        }
        let entry = indirect(session, editing, Some(member), requirement)?;
        if editing.member_editor(session, member)?.takes(section, &entry) {
            editing.change(session, member, |editor| editor.add(section, &entry))?;
            return Ok(());
        }
    }
    extra.push(print_extra(&indirect(session, editing, None, requirement)?));
    Ok(())
}

/// An indirect requirement as the manifest of a member, or the lock, names it.
fn indirect(
    session: &Session,
    editing: &Editing,
    member: Option<usize>,
    requirement: &Requirement,
) -> Result<manifest::Requirement, CommandError> {
    let spec = match member {
        Some(member) => editing.member_editor(session, member)?.least(&requirement.spec),
        None => requirement.spec.clone(),
    };
    let member = member.map(|member| &session.workspace.members[member]);
    let reference = reference_to(session, member, &requirement.id).with_version(Some(spec));
    Ok(manifest::Requirement { indirect: true, ..manifest::Requirement::new(reference) })
}

/// Whether the line of a requirement can say the new one. What it cannot say, the lock can only if the line allows the chosen
/// version anyway; otherwise the format's own error is what there is to say.
fn is_sayable(
    session: &Session,
    editing: &Editing,
    old: &Asked,
    new: &Requirement,
    selection: &Selection,
) -> Result<bool, CommandError> {
    let Some((member, section)) = old.line.filter(|_| new.spec != old.requirement.spec) else {
        return Ok(true);
    };
    let chosen = selection.find(&new.id).and_then(|chosen| chosen.version.as_ref());
    if !chosen.is_some_and(|chosen| old.requirement.spec.accepts(chosen, true)) {
        return Ok(true);
    }
    let mut editor = editing.member_editor(session, member)?;
    let spec = editor.least(&new.spec);
    Ok(editor.set_start(section, &old.reference, Some(spec)).is_ok())
}

/// Gives a line its new requirement, or removes it.
fn write(
    session: &Session,
    editing: &mut Editing,
    extra: &mut Vec<String>,
    old: &Asked,
    new: Option<&Requirement>,
) -> Result<(), CommandError> {
    let version = match new {
        Some(new) if new.spec == old.requirement.spec => old.reference.version().cloned(),
        Some(new) => Some(new.spec.clone()),
        None => None,
    };
    let Some((member, section)) = old.line else {
        if new.is_some() {
            extra.push(print_extra(&manifest::Requirement {
                channel: old.requirement.channel.clone(),
                app_version: old.requirement.app_version.clone(),
                prerelease: old.requirement.prerelease,
                indirect: old.indirect,
                ..manifest::Requirement::new(old.reference.with_version(version))
            }));
        }
        return Ok(());
    };
    if new.is_none() {
        editing.change(session, member, |editor| editor.remove(section, &old.reference))?;
    } else if version.as_ref() != old.reference.version() {
        editing.change(session, member, |editor| {
            let version = version.map(|version| editor.least(&version));
            editor.set_start(section, &old.reference, version)
        })?;
    }
    Ok(())
}

/// The lists whose own requirements lead to a package, or whose manifests require a capability that it
/// provides; dev dependencies last.
fn leading(
    session: &Session,
    requirements: &Requirements,
    selection: &Selection,
    id: &PackageId,
) -> Vec<List> {
    // From the package upwards, along whoever requires it, to what manifests name: the lists on these lines lead to it. A capability
    // has no line, so of what a manifest requires by one, the name of that manifest is kept.
    let mut askers: BTreeMap<&PackageId, Vec<&PackageId>> = BTreeMap::new();
    let mut requiring: BTreeMap<&PackageId, Vec<&str>> = BTreeMap::new();
    for chosen in &selection.packages {
        for demand in &chosen.requested {
            match &demand.by {
                RootOrPackage::Package(by) => askers.entry(&chosen.id).or_default().push(by),
                RootOrPackage::Root(by) if matches!(demand.what, Demanded::Capability(_)) => {
                    requiring.entry(&chosen.id).or_default().push(by);
                }
                RootOrPackage::Root(_) => {}
            }
        }
    }
    // Ends because `above` only grows, and no package is opened twice.
    let mut above: BTreeSet<&PackageId> = BTreeSet::from([id]);
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        for &by in askers.get(id).into_iter().flatten() {
            if above.insert(by) {
                open.push(by);
            }
        }
    }
    let own = requirements.asked.iter().filter(|asked| !asked.indirect);
    let mut lists: Vec<List> =
        own.filter(|asked| above.contains(&asked.requirement.id)).map(|asked| asked.line).collect();
    let requiring: BTreeSet<&str> =
        above.iter().filter_map(|id| requiring.get(id)).flatten().copied().collect();
    let members = session.workspace.members.iter().enumerate();
    let members = members.filter(|(_, member)| requiring.contains(member.manifest.name.as_str()));
    lists.extend(members.map(|(index, _)| Some((index, Section::Dependencies))));
    // The first one gets the line: what ships rather than what only develops, and what `mu get` was given last of all.
    lists.sort_by_key(|list| match list {
        Some((member, Section::Dependencies)) => (0, *member),
        Some((member, Section::DevDependencies)) => (1, *member),
        None => (2, 0),
    });
    lists.dedup();
    lists
}

/// How the manifest of `member`, or the lock, can name a package that nothing there names yet.
fn reference_to(session: &Session, member: Option<&Member>, id: &PackageId) -> Reference {
    let defaults = session.reference_defaults();
    let leads = |text: &str| {
        let reference = Reference::parse(text).ok()?;
        let from = &session.workspace.root;
        let leads = session.places.id_of(&reference, &defaults, from, &session.workspace) == *id;
        leads.then_some(reference)
    };
    let written = session.index().written(id);
    let short = match member {
        Some(member) => unambiguous_name(session, member, id),
        None => session.short_name(id).into_owned(),
    };
    let texts = written.into_iter().chain([short, id.to_string()]);
    let mut references = texts.filter_map(|text| leads(&text));
    references.next().unwrap_or_else(|| {
        let name = Reference::parse(id.as_str());
        name.expect("an id is a reference")
    })
}

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
    let (mut known, mut local_names) = (BTreeSet::new(), BTreeSet::new());
    for member in session.workspace.members.iter().filter(|_| !names.is_empty()) {
        let manifest = &member.manifest;
        for entry in manifest.all_dependencies() {
            known.insert(id_in(session, member, &entry.reference));
            local_names.extend(entry.alias.as_deref());
        }
    }
    let named = |name: &PackageName| {
        let reference = name.reference();
        let id = session.id_of_argument(reference);
        // A whole name means what it says, even if no manifest has it: the error then names the right package. A local name means
        // its entries, whatever else ends so.
        let is_whole = reference.base().is_some() || reference.local().is_some();
        if known.contains(&id) || is_whole || local_names.contains(name.text()) {
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
