//! Edits of the entries on packages in manifests, which are written only after everything else has succeeded.
//!
//! `Editing` collects them in memory. It writes, narrows and removes entries, by the name that a manifest has for a
//! package, or under an alias of its own. A command calls these functions for its references. So does who tries on the
//! text of the files what a command would do.
//!
//! Pins are such entries: here is what they pin to, and the comment after a pin that keeps what was written before. A
//! version that a manifest states in a Git repository, at a commit without a tag, is no release: no requirement on a
//! version leads there again, so nothing is written that names it.

use std::path::PathBuf;

use crate::formats;
use crate::index::{Candidate, Requirement as PackageRequirement, Revision, Universe as _};
use crate::lock::{LockedPackage, Lockfile};
use crate::manifest::edit::{EditError, Editor, Section};
use crate::manifest::{Manifest, Requirement};
use crate::ops::requirements::Requirements;
use crate::ops::requirements::names::id_in;
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Protocol, Reference, VersionSpec};

/// A file and its new content, to be written after everything else has succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The file.
    pub path: PathBuf,
    /// Its new text.
    pub text: String,
}

/// Changes of manifests that are not on disk yet. The session keeps its manifests as they were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Editing {
    /// The edits, to be written at the end.
    pub(crate) edits: Vec<FileEdit>,
    /// The manifests that were changed.
    pub(crate) changed: ChangedManifests,
    /// How often a manifest was changed: what was collected before the last change is outdated.
    pub(crate) changes: usize,
}

impl Editing {
    /// The edit of a member whose manifest is not on disk yet.
    pub(crate) fn of_new(session: &Session, index: usize, edit: FileEdit) -> Self {
        let mut editing = Self { edits: vec![edit], ..Self::default() };
        editing.set(index, session.workspace.members[index].manifest.clone());
        editing
    }

    /// Changes the text of a member's manifest; returns whether anything changed.
    pub(crate) fn change(
        &mut self,
        session: &Session,
        index: usize,
        change: impl FnOnce(&mut Editor) -> Result<bool, EditError>,
    ) -> Result<bool, CommandError> {
        let mut editor = self.member_editor(session, index)?;
        if !change(&mut editor)? {
            return Ok(false);
        }
        // The new text is read like any manifest: what cannot be read again is an error here, and is never written.
        let text = editor.into_text();
        let path = formats::dependencies_file(&session.workspace.members[index].manifest_path);
        let manifest = formats::parse_own(&path, &text, session.short_names())?;
        self.set(index, manifest);
        match self.edits.iter_mut().find(|edit| edit.path == path) {
            // Several changes of one file become one edit, each on the text that the one before left.
            Some(edit) => edit.text = text,
            None => self.edits.push(FileEdit { path, text }),
        }
        Ok(true)
    }

    /// An editor of a member's manifest as it is after the changes so far.
    pub(crate) fn member_editor(
        &self,
        session: &Session,
        index: usize,
    ) -> Result<Editor, CommandError> {
        let member = &session.workspace.members[index];
        let path = formats::dependencies_file(&member.manifest_path);
        let text = match self.edits.iter().find(|edit| edit.path == path) {
            Some(edit) => edit.text.clone(),
            None => formats::dependencies_text(&path)?,
        };
        Ok(formats::editor(&path, text, &member.defaults, session.short_names()))
    }

    /// Supposes another version for an entry of a member's manifest, whether or not its format can say that: nothing of it is
    /// written.
    pub(crate) fn suppose(
        &mut self,
        session: &Session,
        (index, section): (usize, Section),
        number: usize,
        version: Option<VersionSpec>,
    ) -> Result<(), CommandError> {
        let editor = self.member_editor(session, index)?;
        let mut manifest = self.changed.manifest(&session.workspace, index).clone();
        // The text is not touched. `number` is the place in the list, since several entries may name the same package.
        let entries = match section {
            Section::Dependencies => &mut manifest.dependencies,
            Section::DevDependencies => &mut manifest.dev_dependencies,
        };
        if let Some(entry) = entries.get_mut(number) {
            entry.reference = entry.reference.with_version(version);
            entry.prerelease = editor.takes_prereleases(entry);
        }
        self.set(index, manifest);
        Ok(())
    }

    /// Writes a dependency into a list of a manifest, by the name that the manifest has for its package, if it has one.
    pub(crate) fn write_dependency(
        &mut self,
        session: &Session,
        member: usize,
        section: Section,
        mut dependency: Requirement,
    ) -> Result<(), CommandError> {
        let own = &session.workspace.members[member];
        let id = |reference: &Reference| id_in(session, own, reference);
        let new = id(&dependency.reference);
        if dependency.alias.is_some() {
            return self.enter_named(session, (member, section), &new, dependency);
        }
        let manifest = self.changed.manifest(&session.workspace, member);
        let all = manifest.all_dependencies();
        // A person keeps the name by which the manifest knows the package: `web` stays `web`, and does not become
        // `acme/web`.
        let known = all.map(|known| &known.reference).find(|known| id(known) == new).cloned();
        let known = known.filter(|known| !dependency.reference.leads_elsewhere_than(known));
        if let Some(known) = known {
            dependency.reference = known.with_version(dependency.reference.version().cloned());
        } else if formats::format_of_manifest(&own.manifest_path).is_some() {
            dependency.reference = with_protocol(session, &new, dependency.reference);
        }
        // An indirect entry does not count: it becomes a direct one where the command wants it.
        let listed = |section: Section| {
            let mut entries = section.of(manifest).iter();
            entries.find(|known| id(&known.reference) == new && !known.indirect)
        };
        if let (None, Some(old)) = (listed(section), listed(section.other()).cloned()) {
            // It moves from one list to the other.
            dependency.channel = dependency.channel.or(old.channel);
            dependency.app_version = dependency.app_version.or(old.app_version);
            dependency.prerelease |= old.prerelease;
            self.change(session, member, |editor| editor.remove(section.other(), &old.reference))?;
        }
        let manifest = self.changed.manifest(&session.workspace, member);
        let mut entries = section.of(manifest).iter().map(|entry| entry.reference.clone());
        match entries
            .find(|known| id(known) == new && dependency.reference.leads_elsewhere_than(known))
        {
            Some(known) => self.change(session, member, |editor| {
                editor.lead_elsewhere(section, &known, &dependency)
            })?,
            None => self.change(session, member, |editor| editor.add(section, &dependency))?,
        };
        Ok(())
    }

    /// Writes a dependency under its alias into a manifest that has a place for it.
    fn enter_named(
        &mut self,
        session: &Session,
        (member, section): (usize, Section),
        id: &PackageId,
        mut dependency: Requirement,
    ) -> Result<(), CommandError> {
        let own = &session.workspace.members[member];
        let format = formats::format_of_manifest(&own.manifest_path);
        let manifest = self.changed.manifest(&session.workspace, member);
        let listed = || manifest.all_dependencies();
        // A chart lists a package under as many aliases as it wants; elsewhere, each package is listed once.
        match format {
            Some(format) if format.name == mu_formats::helm::FORMAT.name => {
                dependency.reference = with_protocol(session, id, dependency.reference);
            }
            Some(format) => {
                let message = format!("`{}` has no place for an alias", format.manifest);
                return Err(CommandError::new(Code::Usage, message));
            }
            None => {
                let mut same =
                    listed().filter(|known| id_in(session, own, &known.reference) == *id);
                if let Some(known) = same.find(|known| known.alias != dependency.alias) {
                    let message = format!(
                        "`{}` is listed already, as `{}`: a package is listed once",
                        id, known.reference
                    );
                    return Err(CommandError::new(Code::Conflict, message).hint(format!(
                        "`mu remove {}` takes that out first",
                        quoted_for_shell(id.as_str())
                    )));
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
        self.change(session, member, |editor| editor.add_named(section, &dependency))?;
        Ok(())
    }

    /// Changes the channel or app version of a listed dependency, or allows prereleases; an empty text removes a
    /// key. Returns whether the entry names a version, so that nothing is left to be written; `None` if it is not
    /// listed.
    pub(crate) fn narrow(
        &mut self,
        session: &Session,
        (member, section): (usize, Section),
        dependency: &Requirement,
        [channel, app_version]: [Option<&String>; 2],
    ) -> Result<Option<bool>, CommandError> {
        let own = &session.workspace.members[member];
        let id = |reference| id_in(session, own, reference);
        let new = id(&dependency.reference);
        let mut listed = section.of(self.changed.manifest(&session.workspace, member)).iter();
        let Some(listed) = listed.find(|listed| id(&listed.reference) == new) else {
            return Ok(None);
        };
        // Nothing given: it stays. An empty text: it goes.
        let set = |new: Option<&String>, old: &Option<String>| match new {
            Some(new) => Some(new.clone()).filter(|new| !new.is_empty()),
            None => old.clone(),
        };
        let wanted = Requirement {
            channel: set(channel, &listed.channel),
            app_version: set(app_version, &listed.app_version),
            prerelease: listed.prerelease || dependency.prerelease,
            ..listed.clone()
        };
        let has_version = wanted.reference.version().is_some();
        self.change(session, member, |editor| editor.set(section, &wanted))?;
        Ok(Some(has_version))
    }

    /// Removes the entries on a package from these manifests; returns whether there were any.
    pub(crate) fn leave(
        &mut self,
        session: &Session,
        targets: &[usize],
        text: &str,
        id: &PackageId,
    ) -> Result<bool, CommandError> {
        let mut was_there = false;
        let name = local_name(session, &self.changed, targets, text);
        for &index in targets {
            for section in [Section::Dependencies, Section::DevDependencies] {
                // A folder may have several names.
                while let Some(reference) = find(session, &self.changed, index, section, name, id)
                    && self.change(session, index, |editor| editor.remove(section, &reference))?
                {
                    was_there = true;
                }
            }
        }
        Ok(was_there)
    }

    fn set(&mut self, index: usize, manifest: Manifest) {
        self.changed.set(index, manifest);
        self.changes += 1;
    }
}

/// The reference to a package as manifests of other ecosystems write it: with the protocol, which the settings
/// know, or what was found at its URL.
pub(crate) fn with_protocol(session: &Session, id: &PackageId, reference: Reference) -> Reference {
    let is_url = reference.protocol().is_some();
    let is_whole = reference.protocol().is_some_and(|protocol| protocol.provider().is_some());
    let is_whole = is_whole || reference.local().is_some();
    let Some(route) = session.index().known_route(id).filter(|_| !is_whole) else {
        return reference;
    };
    let (provider, scheme) = (route.provider.name(), route.location.root.scheme());
    if is_url {
        // `https://…` can be of any kind, and says which with the name of a tool in front of it.
        let said = Reference::parse(&format!("{provider}+{reference}")).ok();
        let is_known =
            |said: &Reference| said.protocol().is_some_and(|one| one.provider().is_some());
        return said.filter(is_known).unwrap_or(reference);
    }
    // `helm+https://charts.acme.com/web` or `oci://…`: the first form that references have. In a `Chart.yaml` there are
    // no settings of mu to find the place by.
    let protocols = [format!("{provider}+{scheme}"), provider.to_owned()];
    let written = protocols.iter().filter_map(|protocol| {
        let written = Reference::parse(&format!("{protocol}://{id}")).ok()?;
        let is_known = !matches!(written.protocol(), Some(Protocol::Plugin(_)) | None);
        is_known.then(|| written.with_version(reference.version().cloned()))
    });
    written.into_iter().next().unwrap_or(reference)
}

/// Refuses to edit several manifests without a request.
pub(crate) fn refuse_several(
    session: &Session,
    changed: &ChangedManifests,
    targets: &[usize],
    text: &str,
    id: &PackageId,
) -> Result<(), CommandError> {
    let mut dependents = Vec::new();
    let name = local_name(session, changed, targets, text);
    for &index in targets {
        let sections = [Section::Dependencies, Section::DevDependencies];
        let is_listed =
            |&section: &Section| find(session, changed, index, section, name, id).is_some();
        if sections.iter().any(is_listed) {
            dependents.push(session.workspace.members[index].manifest.name.as_str());
        }
    }
    let [first, _, ..] = &dependents[..] else { return Ok(()) };
    let message =
        format!("`{text}` is a dependency of several packages: `{}`", dependents.join("`, `"));
    let text = quoted_for_shell(text);
    Err(CommandError::new(Code::Usage, message)
        .hint(format!(
            "`mu remove {text} -p {}` removes it from one of them",
            quoted_for_shell(first)
        ))
        .hint(format!("`mu remove {text} --all` removes it from all")))
}

/// The local name that `text` is in one of these manifests: it means the entries with this name alone, not others on that package.
fn local_name<'t>(
    session: &Session,
    changed: &ChangedManifests,
    targets: &[usize],
    text: &'t str,
) -> Option<&'t str> {
    let manifests = targets.iter().map(|&index| changed.manifest(&session.workspace, index));
    let mut all = manifests.flat_map(|found| found.all_dependencies());
    all.any(|dependency| dependency.alias.as_deref() == Some(text)).then_some(text)
}

/// The reference of the dependency with this local name; without one, of the one on this package.
fn find(
    session: &Session,
    changed: &ChangedManifests,
    index: usize,
    section: Section,
    local_name: Option<&str>,
    wanted: &PackageId,
) -> Option<Reference> {
    let member = &session.workspace.members[index];
    let mut listed = section.of(changed.manifest(&session.workspace, index)).iter();
    let is_meant = |dependency: &&Requirement| match local_name {
        Some(_) => dependency.alias.as_deref() == local_name,
        None => id_in(session, member, &dependency.reference) == *wanted,
    };
    listed.find(is_meant).map(|dependency| dependency.reference.clone())
}

/// The start of the comment after a pinned entry.
pub(crate) const MARK: &str = "pinned from";

/// The text of the comment if no version was written.
pub(crate) const NO_VERSION_TEXT: &str = "no version";

/// The locked package that a reference means. Of several majors, it is the highest that the reference accepts.
pub(crate) fn locked_for<'lock>(
    lock: &'lock Lockfile,
    id: &PackageId,
    reference: &Reference,
) -> Option<&'lock LockedPackage> {
    let spec = reference.spec();
    let is_accepted = |package: &&LockedPackage| {
        package.parsed_version().is_some_and(|version| spec.accepts(&version, true))
    };
    lock.find(id).filter(is_accepted).last().or_else(|| lock.find(id).last())
}

/// The pin for a locked package: its version, or its commit or digest if that is more exact.
pub(crate) fn pin_of(
    session: &Session,
    package: &LockedPackage,
    commits: bool,
) -> Result<VersionSpec, CommandError> {
    let is_archive = package.source.is_url_archive() || package.artifact.is_some();
    if let (true, Some(digest)) = (is_archive, package.revision()) {
        return Ok(VersionSpec::parse(&digest)?);
    }
    match (&package.commit, package.parsed_version()) {
        // A version that only the manifest of a commit states cannot be required again, so the commit is pinned.
        (Some(commit), _) if commits || !is_release(session, package) => {
            Ok(VersionSpec::parse(commit)?)
        }
        (_, Some(version)) => Ok(VersionSpec::exactly(&version)),
        (_, None) => Ok(VersionSpec::parse(&package.version)?),
    }
}

/// Whether a locked package can be found again by its version: not what was asked for by a tag or a branch, nor the content of
/// a URL, nor a commit whose version only its manifest knows. If its repository cannot be asked, a commit is none.
pub(crate) fn is_release(session: &Session, package: &LockedPackage) -> bool {
    // What is at the URL of an archive may be any version later.
    if package.reference.is_some() || package.source.is_url_archive() {
        return false;
    }
    let Some(commit) = &package.commit else { return true };
    let Some(version) = package.parsed_version().filter(|_| package.is_versioned()) else {
        return false;
    };
    // Only what names a commit leads to one that is no release.
    let is_by_version = |text: &str| {
        let requirement = PackageRequirement::parse(package.id.clone(), text);
        let spec = requirement.map(|requirement| requirement.spec);
        matches!(spec, Some(VersionSpec::Pin(_) | VersionSpec::Range(_)))
    };
    if package.requested.iter().all(|requested| is_by_version(&requested.spec)) {
        return true;
    }
    // Manifests say more about the way to a package than its id.
    let extra = session.lockfile().ok().flatten().map(|lock| lock.extra.clone());
    if let Ok(all) = Requirements::collect(session, extra.unwrap_or_default()) {
        all.declare(session);
    }
    let Ok(releases) = session.index().listed_releases(&package.id) else { return false };
    let listed = releases.position_of_version(&version);
    listed.is_some_and(|at| releases.commit(at).is_none_or(|known| **known == *commit.as_str()))
}

/// Whether a locked package is at a branch, which looks like a tag; `None` if that cannot be found out.
pub(crate) fn follows_branch(session: &Session, package: &LockedPackage) -> Option<bool> {
    let name = VersionSpec::parse(package.reference.as_deref()?).ok()?;
    let index = session.index();
    let releases = index.listed_releases(&package.id).ok()?;
    let Revision::Untagged(revision) = index.revision(&releases, &name).ok()?? else {
        return None;
    };
    let (_, release) = index.release(&package.id, Candidate::Revision(&revision)).ok()?;
    Some(release.reference.as_ref()?.starts_with("refs/heads/"))
}

/// Requires a locked package in its version and compatible ones; `None` if it is no release.
pub(crate) fn compatible_with_locked(
    session: &Session,
    package: &LockedPackage,
) -> Option<VersionSpec> {
    let version = package.parsed_version().filter(|_| is_release(session, package))?;
    Some(VersionSpec::compatible_with(&version))
}
