//! Packages at places of the search path that are not used from there: messages about them.
//!
//! mu chooses from the versions that registries have, so that every machine gets the same. Packs of this
//! machine count only if no registry has a package. If a package at one of the eight places is not used, the
//! user reads why.

use crate::lock::Lockfile;
use crate::ops::Session;
use crate::ops::session::installed_packs::search_path;
use crate::ops::session::installed_releases::PacksHere;
use crate::reference::{PackageId, VersionSpec};
use crate::search::{Candidate, Query, State};

/// Reports locked packages that are in folders of the workspace, but not used from there.
pub(crate) fn left_out(session: &Session, lock: &Lockfile) -> Vec<String> {
    let installed = lock.packages.iter().filter(|package| !package.source.is_workspace_folder());
    let warnings = installed.filter_map(|package| {
        let candidate = session.places.search().left_out(&package.id)?;
        Some(not_taken(&package.id, &candidate))
    });
    warnings.collect()
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
    if let Some(candidate) = session.places.search().left_out(id) {
        return vec![not_taken(id, &candidate)];
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

fn not_taken(id: &PackageId, candidate: &Candidate) -> String {
    let folder = candidate.place.folder.display();
    let why = match &candidate.state {
        State::PassedOver(why) => why.to_string(),
        State::Hit(_) | State::Miss => String::new(),
    };
    format!("`{id}` is not taken from `{folder}`: {why}")
}
