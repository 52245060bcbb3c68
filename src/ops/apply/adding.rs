//! Writing dependencies into manifests: by the name that the manifest has for a package, or under an alias of its own.

use crate::formats;
use crate::manifest;
use crate::manifest::edit::Section;
use crate::ops::requirements::editing::Editing;
use crate::ops::requirements::names::id_in;
use crate::ops::session::error::quoted;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Protocol, Reference};

/// The reference to a package as manifests of other ecosystems write it: with the protocol, which the settings
/// know.
fn with_protocol(session: &Session, id: &PackageId, reference: Reference) -> Reference {
    let is_whole = reference.protocol().is_some() || reference.local().is_some();
    let Some(route) = session.index().known_route(id).filter(|_| !is_whole) else {
        return reference;
    };
    let (provider, scheme) = (route.provider.name(), route.location.root.scheme());
    let protocols = [format!("{provider}+{scheme}"), provider.to_owned()];
    let written = protocols.iter().filter_map(|protocol| {
        let written = Reference::parse(&format!("{protocol}://{id}")).ok()?;
        let is_known = !matches!(written.protocol(), Some(Protocol::Plugin(_)) | None);
        is_known.then(|| written.with_version(reference.version().cloned()))
    });
    written.into_iter().next().unwrap_or(reference)
}

/// Writes a dependency into a list of a manifest, by the name that the manifest has for its package, if it has one.
///
/// # Errors
///
/// When the manifest cannot be changed.
pub(crate) fn add(
    session: &Session,
    editing: &mut Editing,
    member: usize,
    section: Section,
    mut dependency: manifest::Requirement,
) -> Result<(), CommandError> {
    let own = &session.workspace.members[member];
    let id = |reference: &Reference| id_in(session, own, reference);
    let new = id(&dependency.reference);
    if dependency.alias.is_some() {
        return add_named(session, editing, (member, section), &new, dependency);
    }
    let manifest = editing.changed.manifest(&session.workspace, member);
    let all = manifest.dependencies.iter().chain(&manifest.dev_dependencies);
    if let Some(known) = all.map(|known| &known.reference).find(|known| id(known) == new) {
        dependency.reference = known.with_version(dependency.reference.version().cloned());
    } else if formats::format_of(&own.manifest_path).is_some() {
        dependency.reference = with_protocol(session, &new, dependency.reference);
    }
    let listed = |section: Section| {
        let mut entries = section.of(manifest).iter();
        entries.find(|known| id(&known.reference) == new && !known.indirect)
    };
    if let (None, Some(old)) = (listed(section), listed(section.other()).cloned()) {
        // It moves from one list to the other.
        dependency.channel = dependency.channel.or(old.channel);
        dependency.app_version = dependency.app_version.or(old.app_version);
        dependency.prerelease |= old.prerelease;
        editing.change(session, member, |editor| editor.remove(section.other(), &old.reference))?;
    }
    editing.change(session, member, |editor| editor.add(section, &dependency))?;
    Ok(())
}

/// Writes a dependency under its alias into a manifest that has a place for it.
fn add_named(
    session: &Session,
    editing: &mut Editing,
    (member, section): (usize, Section),
    id: &PackageId,
    mut dependency: manifest::Requirement,
) -> Result<(), CommandError> {
    let own = &session.workspace.members[member];
    let format = formats::format_of(&own.manifest_path);
    let manifest = editing.changed.manifest(&session.workspace, member);
    let listed = || manifest.dependencies.iter().chain(&manifest.dev_dependencies);
    match format {
        Some(format) if format.name == mu_formats::helm::FORMAT.name => {
            dependency.reference = with_protocol(session, id, dependency.reference);
        }
        Some(format) => {
            let message = format!("`{}` has no place for an alias", format.manifest);
            return Err(CommandError::new(Code::Usage, message));
        }
        None => {
            let mut same = listed().filter(|known| id_in(session, own, &known.reference) == *id);
            if let Some(known) = same.find(|known| known.alias != dependency.alias) {
                let message = format!(
                    "`{}` is listed already, as `{}`: a package is listed once",
                    id, known.reference
                );
                return Err(CommandError::new(Code::Conflict, message)
                    .hint(format!("`mu remove {}` takes that out first", quoted(id.as_str()))));
            }
            let mut entries = section.of(manifest).iter();
            if entries.all(|known| known.alias.is_none()) {
                let message = format!(
                    "`{}` lists its {} without names, so that there is no place for an alias",
                    own.manifest_path.display(),
                    section.key()
                );
                return Err(CommandError::new(Code::Usage, message)
                    .hint("write them as a map, `NAME: REF` for each"));
            }
        }
    }
    editing.change(session, member, |editor| editor.add_named(section, &dependency))?;
    Ok(())
}
