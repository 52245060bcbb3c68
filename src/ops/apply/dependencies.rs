//! Changes the required versions in the workspace's manifests, entry by entry.
//!
//! The caller decides on the new version; the layout of an entry is kept.

use std::collections::BTreeSet;

use crate::formats;
use crate::manifest::edit::Section;
use crate::ops::explain::not_asked_for::required_here;
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::names::id_in;
use crate::ops::requirements::pins::MARK;
use crate::ops::session::changed_manifests::ChangedManifests;
use crate::ops::session::locked::ambiguous;
use crate::ops::solve::planning::rewrites;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Reference, VersionSpec};

/// A dependency of a manifest.
pub(crate) struct Dependency {
    /// The package.
    pub(crate) id: PackageId,
    /// Its number in the list of its manifest.
    pub(crate) number: usize,
    /// How it is written.
    pub(crate) reference: Reference,
    /// The text of the comment after it, without the mark.
    pub(crate) note: Option<String>,
    /// Whether it was named, rather than selected with all others.
    pub(crate) is_named: bool,
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
///
/// # Errors
///
/// When a name is not the name of a dependency, or a manifest cannot be changed.
pub(crate) fn change(
    session: &Session,
    editing: &mut Editing,
    names: &[String],
    decide: impl Fn(&Dependency) -> Result<Option<NewVersion>, CommandError>,
) -> Result<Vec<Unnoted>, CommandError> {
    let mut unnoted = Vec::new();
    let mut unseen: Vec<&str> = names.iter().map(String::as_str).collect();
    let named = named(session, names)?;
    for index in 0..session.workspace.members.len() {
        for section in [Section::Dependencies, Section::DevDependencies] {
            let changed = &editing.changed;
            for dependency in
                listed(session, changed, (index, section), names, &named, &mut unseen)?
            {
                let Some(new) = decide(&dependency)? else { continue };
                let mut is_noted = true;
                let is_changed = editing.change(session, index, |editor| {
                    let changed = editor.set_version_at(section, dependency.number, new.version)?;
                    let note = new.note.as_deref();
                    is_noted = editor.set_note_at(section, dependency.number, MARK, note)?;
                    Ok(changed)
                })?;
                if let Some(before) = new.note.filter(|_| is_changed && !is_noted) {
                    let name = dependency.reference.with_version(None).to_string();
                    unnoted.push(Unnoted { name, before, member: index });
                }
            }
        }
    }
    match unseen.first() {
        None => Ok(unnoted),
        Some(name) => Err(CommandError::new(
            Code::NotFound,
            format!("no manifest of this workspace requires `{name}`"),
        )
        .hint(required_here(session, name, &[]))),
    }
}

/// The packages that `names` mean: by id or name, or by the end of a name that only one dependency has.
fn named(session: &Session, names: &[String]) -> Result<Vec<PackageId>, CommandError> {
    let mut known: BTreeSet<PackageId> = BTreeSet::new();
    for member in session.workspace.members.iter().filter(|_| !names.is_empty()) {
        let manifest = &member.manifest;
        let entries = manifest.dependencies.iter().chain(&manifest.dev_dependencies);
        known.extend(entries.map(|entry| id_in(session, member, &entry.reference)));
    }
    let named = |name: &String| {
        let reference = Reference::parse(name)?;
        let id = session.id_of(&reference);
        if known.contains(&id) || reference.base().is_some() || reference.local().is_some() {
            return Ok(id);
        }
        let end = format!("/{}", reference.name());
        let alike: Vec<&PackageId> =
            known.iter().filter(|id| id.as_str().ends_with(&end)).collect();
        match alike[..] {
            [one] => Ok(one.clone()),
            [] => Ok(id),
            _ => Err(ambiguous(name, alike)),
        }
    };
    names.iter().map(named).collect()
}

/// The `written` spec with `version` as its minimum and with as many numbers as before; anything but a simple
/// range becomes `^VERSION`.
pub(crate) fn beginning_with(written: &str, version: &str) -> String {
    let written = written.trim();
    let operator_end = written.find(|character: char| !"^~>=v ".contains(character));
    let (operator, rest) = written.split_at(operator_end.unwrap_or(written.len()));
    let is_simple = !rest.is_empty() && !rest.contains([' ', ',', '|', '<', '>']);
    if !is_simple || version.contains(['-', '+']) {
        return format!("^{version}");
    }
    if operator.trim_end_matches(['v', ' ']) == ">" {
        // A version above `>2` is not in 2.
        return format!(">={version}");
    }
    let given: Vec<&str> = rest.split('.').collect();
    let numbers: Vec<&str> = version.split('.').collect();
    let raised: Vec<&str> = given
        .iter()
        .zip(&numbers)
        .map(|(given, number)| if matches!(*given, "x" | "X" | "*") { given } else { number })
        .copied()
        .collect();
    format!("{operator}{}", raised.join("."))
}

/// The selected entries of a section; removes their names from `unseen`.
fn listed(
    session: &Session,
    changed: &ChangedManifests,
    (index, section): (usize, Section),
    names: &[String],
    named: &[PackageId],
    unseen: &mut Vec<&str>,
) -> Result<Vec<Dependency>, CommandError> {
    let member = &session.workspace.members[index];
    let text = crate::fs::read_text(&member.manifest_path)?;
    let (path, environment) = (&member.manifest_path, &session.environment);
    let editor = formats::editor(path, text, &member.defaults, environment);
    let is_tagged = formats::format_of(path).is_some_and(|format| format.lenient);
    let mut dependencies = Vec::new();
    for (number, entry) in
        section.of(changed.manifest(&session.workspace, index)).iter().enumerate()
    {
        let reference = entry.reference.clone();
        let id = id_in(session, member, &reference);
        let mut is_named = false;
        for (name, wanted) in names.iter().zip(named) {
            let names_it = entry.alias.as_ref() == Some(name) || *wanted == id;
            if names_it {
                is_named = true;
                unseen.retain(|unseen| unseen != name);
            }
        }
        // Indirect dependencies are listed again if moves rewrite requirements, whatever is written.
        let is_free = !entry.indirect || !rewrites(session, session.strategy());
        if is_named || (names.is_empty() && is_free) {
            let note = editor.note_at(section, number, MARK)?;
            dependencies.push(Dependency { id, number, reference, note, is_named, is_tagged });
        }
    }
    Ok(dependencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_keeps_its_form() {
        for (written, version, expected) in [
            ("^1.0.6", "2.1.3", "^2.1.3"),
            ("~1.5", "2.1.3", "~2.1"),
            ("^1", "2.1.3", "^2"),
            ("1.x", "2.1.3", "2.x"),
            ("1.2.*", "2.1.3", "2.1.*"),
            (">=1.2", "2.1.3", ">=2.1"),
            ("1.2.3", "2.1.3", "2.1.3"),
            (">1", "2.1.3", ">=2.1.3"),
            ("> v1.2", "2.1.3", ">=2.1.3"),
            (">=1 <2", "2.1.3", "^2.1.3"),
            ("^1 || ^3", "4.0.0", "^4.0.0"),
            ("~1.5", "2.0.0-rc.1", "^2.0.0-rc.1"),
        ] {
            assert_eq!(beginning_with(written, version), expected, "{written}");
        }
    }
}
