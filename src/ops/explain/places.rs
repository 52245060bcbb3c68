//! Packages on this machine that are not used as somebody may expect: what to say about them, and the way out.
//!
//! Packages of the workspace are found by their path, so that a folder can take the place of any package. If one is not
//! where references to it point, or is found under another name than its own, the user learns why.
//!
//! mu chooses from the versions that registries have, so that every machine gets the same. Packs of this machine count
//! only if no registry has a package. If a package at one of the eight places of the search path is not used from
//! there, the user reads why.
//!
//! Packages of one workspace may conflict with each other, such as two implementations of one thing: this is reported.
//! If one of its packages depends on both, nobody can install that one: [`check`] refuses this.

use std::collections::{BTreeMap, VecDeque};

use crate::formats;
use crate::index::conflicting;
use crate::lock::Lockfile;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::names::{id_in, meant, unambiguous_name, written_id};
use crate::ops::session::disk::folder_with_mark;
use crate::ops::session::edits::ChangedManifests;
use crate::ops::session::installed::{PacksHere, search_path};
use crate::ops::session::places::{Misplacement, folder_for_people};
use crate::ops::session::source::relative;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::{PackageId, VersionSpec};
use crate::search::{Candidate, Query, State};
use crate::workspace::Member;

/// Reports the workspace's packages that `requirements` or `lock` are about.
pub(crate) fn warnings(
    session: &Session,
    requirements: &Requirements,
    lock: &Lockfile,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for asked in &requirements.asked {
        let Some((member, _)) = asked.line.filter(|_| asked.reference.local().is_none()) else {
            continue;
        };
        let member = &session.workspace.members[member];
        let own = &asked.requirement.id;
        if let Some(found) = session.places.member_of(own)
            && *own != written_id(session, member, &asked.reference)
        {
            warnings.push(Warning::OtherName {
                by: member.manifest.name.to_string(),
                reference: asked.reference.clone(),
                place: found.place.clone(),
                id: own.clone(),
                exact: unambiguous_name(session, member, own),
            });
        }
    }
    let asked = || requirements.asked.iter().map(|asked| &asked.requirement.id);
    let locked = lock.packages.iter().map(|package| &package.id);
    let otherwise = asked().chain(locked).filter_map(|id| called_otherwise(session, id));
    let mut otherwise: Vec<Misplacement> = otherwise.collect();
    // Several may require the same package.
    otherwise.sort_by_cached_key(ToString::to_string);
    otherwise.dedup();
    warnings.extend(otherwise.into_iter().map(Warning::Misplaced));
    let overrides = &session.workspace.settings.overrides;
    for member in &session.workspace.members {
        let id = &member.id;
        let is_elsewhere =
            requirements.local_package(session, id).is_none() && !overrides.contains_key(id);
        // What only provides a capability is used wherever it is.
        let is_fetched = || lock.find(id).any(|package| !package.source.is_workspace_folder());
        if is_elsewhere && (is_fetched() || asked().any(|asked| asked == id)) {
            warnings.push(Warning::Misplaced(misplaced(session, member)));
        }
    }
    warnings
}

/// Reports one required package that the workspace has, too.
pub(crate) fn misplacement(session: &Session, id: &PackageId) -> Option<Misplacement> {
    let in_other_place = || {
        let member = session.workspace.member(id)?;
        session.places.member_of(id).is_none().then(|| misplaced(session, member))
    };
    called_otherwise(session, id).or_else(in_other_place)
}

/// Reports that a folder of the workspace is used although its package has another name.
fn called_otherwise(session: &Session, id: &PackageId) -> Option<Misplacement> {
    if session.is_edited(id) {
        // Whoever edits it has put it there.
        return None;
    }
    let found = session.places.member_of(id).filter(|found| found.id != *id)?;
    let member = session.workspace.member(&found.id)?;
    let name = &member.manifest.name;
    // Its base was left out, and follows from its place; or it is the whole id, as in a generated manifest.
    let is_same = |own: &str| own == id.name_str() || own == id.as_str();
    if name.base().is_none() && is_same(name.name().as_str()) {
        return None;
    }
    // Manifests of other ecosystems do not say where a package is published, only the last part of its name, if any.
    let format = formats::format_of_manifest(&member.manifest_path);
    if format.is_some_and(|format| !format.is_named || id.name().leaf() == name.name().as_str()) {
        return None;
    }
    if session.workspace.edit_around(&member.folder).is_some() {
        // mu has put it there: in Git, the name in a manifest is only a name.
        return None;
    }
    let place = found.place.clone();
    let called = session.short_name(id).into_owned();
    Some(Misplacement::OtherName { name: called, place, own: name.clone() })
}

/// What to do about a package of the workspace that is not where references to it point.
pub(crate) fn misplaced(session: &Session, member: &Member) -> Misplacement {
    let (workspace, id, place) = (&session.workspace, &member.id, &member.place);
    // The first two places are in the workspace. This is the one without a folder for the base, where a person would
    // put the package.
    let [_, right, ..] = session.places.search().package_places(id);
    let right = relative(&workspace.root, &right.folder);
    let parent = id.name_str().strip_suffix(&**place).and_then(|parent| parent.strip_suffix('/'));
    let name = session.short_name(id).into_owned();
    // Which setting would have the references lead to where the package is: a namespace, if its folder is the end of
    // its name, or else an override for this one package.
    let setting = match (parent, place.is_empty(), workspace.namespace.is_none()) {
        (Some(parent), false, true) => Some(format!("namespace: {parent}")),
        // A namespace means the root itself, too; a folder that contains the packs cannot be one of them.
        (_, true, true) => Some(format!("namespace: {name}")),
        (_, true, false) => None,
        // A reference cannot name such a folder: behind the mark is a version.
        _ if place.contains('#') => None,
        _ => Some(format!("overrides: {{{name}: ./{place}}}")),
    };
    Misplacement::OtherPlace { name, place: place.clone(), right, setting }
}

/// A package of the workspace that conflicts with another one; both by their places in its members.
struct Apart {
    by: usize,
    with: usize,
}

/// The warnings about each conflicting pair.
pub(crate) fn warnings_of_conflicts(session: &Session) -> Vec<Warning> {
    let members = &session.workspace.members;
    let warning = |Apart { by, with }: Apart| {
        let [by, with] = [by, with].map(|at| &members[at]);
        let manifest = by.manifest_path.clone();
        let [by, with] = [by, with].map(|member| member.manifest.name.to_string());
        Warning::Conflicting { by, with, manifest }
    };
    apart(session).into_iter().map(warning).collect()
}

/// Refuses a workspace in which a package needs two others that conflict with each other.
pub(crate) fn check(session: &Session, changed: &ChangedManifests) -> Result<(), CommandError> {
    let members = &session.workspace.members;
    for Apart { by, with } in apart(session) {
        for start in 0..members.len() {
            // A pair that nobody needs together is only a warning. A package that needs both cannot be installed by
            // anyone.
            let from = reached(session, changed, start);
            if !from.contains_key(&by) || !from.contains_key(&with) {
                continue;
            }
            let name = |at: usize| &members[at].manifest.name;
            let mut lines: Vec<String> = Vec::new();
            for end in [by, with] {
                let mut way = vec![end];
                // From the end back to the start. Ends, because each package was reached by one that was reached before
                // it, and the start by none.
                while let Some(before) = way.last().and_then(|at| from[at]) {
                    way.push(before);
                }
                for step in way.windows(2).rev() {
                    let line = format!("  {} requires {}", name(step[1]), name(step[0]));
                    if !lines.contains(&line) {
                        lines.push(line);
                    }
                }
            }
            lines.push(format!("  {} conflicts with {}", name(by), name(with)));
            let message = format!("no versions fit together\n{}", lines.join("\n"));
            let file = folder_for_people(&members[by].place);
            return Err(CommandError::new(Code::NoSolution, message).hint(format!(
                "remove one of the dependencies, or the entry under `conflicts` of the package in `{file}`"
            )));
        }
    }
    Ok(())
}

/// Every pair of the workspace's packages in which one conflicts with the other.
fn apart(session: &Session) -> Vec<Apart> {
    let members = &session.workspace.members;
    let mut all = Vec::new();
    for (by, member) in members.iter().enumerate() {
        for reference in &member.manifest.conflicts {
            let named = conflicting(&reference.to_string(), &reference.id(&member.defaults));
            let is_meant = |other: &crate::workspace::Member| {
                let mut provides = other.manifest.provides.iter().map(ToString::to_string);
                named.iter().any(|name| name == other.id.as_str())
                    || provides.any(|capability| named.contains(&capability))
            };
            let others = (0..members.len()).filter(|with| *with != by && is_meant(&members[*with]));
            all.extend(others.map(|with| Apart { by, with }));
        }
    }
    all
}

/// The packages of the workspace that one of them needs, including itself, each with the one that needs it.
fn reached(
    session: &Session,
    changed: &ChangedManifests,
    start: usize,
) -> BTreeMap<usize, Option<usize>> {
    let members = &session.workspace.members;
    let mut from = BTreeMap::from([(start, None)]);
    let mut open = VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        let (member, manifest) = (&members[at], changed.manifest(&session.workspace, at));
        // The development dependencies of others do not matter to their users.
        let dev = manifest.dev_dependencies.iter().filter(|_| at == start);
        for dependency in manifest.dependencies.iter().chain(dev) {
            let id = id_in(session, member, &dependency.reference);
            let Some(next) = members.iter().position(|other| other.id == id) else { continue };
            if let std::collections::btree_map::Entry::Vacant(entry) = from.entry(next) {
                entry.insert(Some(at));
                open.push_back(next);
            }
        }
    }
    from
}

/// Reports locked packages that are in folders of the workspace, but not used from there.
pub(crate) fn left_out(session: &Session, lock: &Lockfile) -> Vec<Warning> {
    let installed = lock.packages.iter().filter(|package| !package.source.is_workspace_folder());
    let misplaced = installed.filter_map(|package| passed_over(session, &package.id));
    misplaced.map(Warning::Misplaced).collect()
}

/// Reports a package that no registry has, but that is at places of the search path, except those that the
/// lock installed there.
pub(crate) fn report_installed(session: &Session, id: &PackageId) -> Vec<String> {
    let lock = session.lockfile().ok().flatten().unwrap_or_default();
    if let Some(package) = lock.find(id).next() {
        let place = &package.source.place;
        let text = format!(
            "Mu.lock has it from `{place}` in the packs of this machine, and it is not there"
        );
        return package.source.is_pack().then_some(text).into_iter().collect();
    }
    if let Some(passed_over) = passed_over(session, id) {
        return vec![passed_over.to_string()];
    }
    let wanted = Query { id: id.clone(), spec: VersionSpec::Latest, prereleases: true };
    let Ok(found) = search_path(session).and_then(|search| Ok(search.find_package(&wanted)?))
    else {
        return Vec::new();
    };
    if found.place.is_workspace() {
        return Vec::new();
    }
    let folder = found.place.folder.display();
    let version = found.hit.version.map(|version| format!(" {version}")).unwrap_or_default();
    vec![format!("`{id}`{version} is in `{folder}`: `--offline` uses it without asking")]
}

/// The message about a package of which there is only an unsuitable pack on this machine.
pub(crate) fn only_pack(session: &Session, id: &PackageId) -> Option<String> {
    let here = PacksHere::new(session);
    let name = session.short_name(id);
    if let Some((folder, release)) = here.placed_pack(id) {
        return Some(format!(
            "`{}` holds `{name}` {}, where somebody has put it, and while it is there no other version is used: \
             remove it, or require that version",
            folder.display(),
            release.version
        ));
    }
    let [first, ..] = &here.of_user_and_runtime(id)[..] else { return None };
    let place = here.pack_source(id, &first.version)?.place;
    session.index().has_pack_versions(id).then(|| {
        format!(
            "no registry has `{name}`; the packs of this machine have {} in `{place}`",
            first.version
        )
    })
}

/// Why a reference to a package that is not found may mean another one than its author thinks.
pub(crate) fn read_otherwise(
    session: &Session,
    requirements: &Requirements,
    id: &PackageId,
) -> impl Iterator<Item = String> {
    let stripped = stripped(session, id).into_iter();
    stripped.chain(of_namespace(session, requirements, id)).chain(behind_mark(
        session,
        requirements,
        id,
    ))
}

/// Why a package that a registry may have under its whole name was not found there: the registry strips the
/// part of the name in its prefix.
pub(crate) fn stripped(session: &Session, id: &PackageId) -> Option<String> {
    let (registry, rest) = session.index().registry(id)?;
    let left_out = registry.left_out();
    if left_out.is_empty() {
        return None;
    }
    let url = registry.url.as_ref().map(|url| format!(" {url}")).unwrap_or_default();
    let prefix = &registry.prefix;
    Some(format!(
        "the registry `{prefix}` strips `{left_out}`, so mu looked for `{rest}`; if the registry has `{left_out}{rest}`, set `strip: false`: `mu registry add {prefix}{url} --no-strip`"
    ))
}

/// That a name of one segment in a manifest of the workspace means a package of the manifest's namespace first, and why that is not it.
fn of_namespace(session: &Session, requirements: &Requirements, id: &PackageId) -> Option<String> {
    let asked = requirements.asked.iter().filter(|asked| asked.requirement.id == *id);
    let (member, reference, first) = asked.into_iter().find_map(|asked| {
        let member = &session.workspace.members[asked.line?.0];
        let is_name = asked.reference.local().is_none();
        let meant = is_name.then(|| meant(member, &asked.reference))?;
        let is_otherwise = meant.otherwise.as_ref() == Some(id);
        is_otherwise.then(|| (member, asked.reference.with_version(None), meant.first))
    })?;
    let own = session.workspace.member(&first).map(|own| misplaced(session, own).to_string());
    let first = session.short_name(&first);
    let by = &member.manifest.name;
    Some(match own {
        Some(why) => format!("`{reference}` in `{by}` means `{first}` first, and {why}"),
        None => format!(
            "`{reference}` in `{by}` means `{first}` first, which is not there either: write the whole name of the package that is meant"
        ),
    })
}

/// That a folder is there that a reference seems to name, with a `#` in its name, where the version begins.
fn behind_mark(session: &Session, requirements: &Requirements, id: &PackageId) -> Option<String> {
    let asked = requirements.asked.iter().filter(|asked| asked.requirement.id == *id);
    asked.into_iter().find_map(|asked| {
        let from = match asked.line {
            Some((member, _)) => &*session.workspace.members[member].folder,
            None => &*session.environment.current,
        };
        folder_with_mark(from, &asked.reference)
    })
}

/// A package in a folder of the workspace that does not belong to the workspace.
fn passed_over(session: &Session, id: &PackageId) -> Option<Misplacement> {
    let Candidate { place, state } = session.places.search().left_out(id)?;
    let State::PassedOver(why) = state else { return None };
    Some(Misplacement::PassedOver { id: id.clone(), folder: place.folder, why })
}
