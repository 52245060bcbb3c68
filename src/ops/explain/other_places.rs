//! Packages that are at places of the search path from which nothing is taken: what to say about them.
//!
//! Versions are chosen from what registries have, and from the workspace's own packages, so that every machine gets the
//! same. Whoever sees a package at one of the eight places and does not get it is told why.

use crate::lock::Lockfile;
use crate::ops::session::installed_packs::search_path;
use crate::ops::{Scope, Session};
use crate::reference::{PackageId, VersionSpec};
use crate::search::{Candidate, State, Wanted};
use crate::workspace::{CONFIG_FILE, MU_FOLDER, WORKSPACE_FILE};

/// What there is to say about locked packages that are in folders of the workspace, but not used from there.
pub(crate) fn left_out(session: &Session, lock: &Lockfile) -> Vec<String> {
    let installed = lock.packages.iter().filter(|package| !package.source.is_workspace());
    let warnings = installed.filter_map(|package| {
        let candidate = session.places.search().left_out(&package.id)?;
        Some(not_taken(&package.id, &candidate))
    });
    warnings.collect()
}

/// What there is to say about a package that no registry has, but that is at places of the search path. Of what the lock
/// has brought there, nothing.
pub(crate) fn installed(session: &Session, id: &PackageId) -> Vec<String> {
    let lock = session.lockfile().ok().flatten().unwrap_or_default();
    if lock.find(id).next().is_some() {
        return Vec::new();
    }
    if let Some(candidate) = session.places.search().left_out(id) {
        return vec![not_taken(id, &candidate)];
    }
    let wanted = Wanted { id: id.clone(), spec: VersionSpec::Latest, prereleases: true };
    let Ok(found) = search_path(session).and_then(|search| Ok(search.find_package(&wanted)?))
    else {
        return Vec::new();
    };
    if found.place.is_workspace() {
        return Vec::new();
    }
    let folder = found.place.folder.display();
    let version = found.hit.version.map(|version| format!(" {version}")).unwrap_or_default();
    let short = session.short_name(id);
    vec![
        format!(
            "`{id}`{version} is in `{folder}`, where `mu which` finds it; but versions are chosen from what \
             registries have, so that every machine gets the same"
        ),
        format!(
            "`overrides: {{{short}: {folder}}}` in `{}` takes it from there",
            settings(session)
        ),
    ]
}

/// Why a package that a registry has under its whole name was not found there, if that may be: the registry leaves out what
/// its prefix covers.
pub(crate) fn stripped(session: &Session, id: &PackageId) -> Option<String> {
    let (registry, rest) = session.index().registry(id)?;
    let left_out = registry.left_out();
    if left_out.is_empty() {
        return None;
    }
    let url = registry.url.as_ref().map(|url| format!(" {url}")).unwrap_or_default();
    let prefix = &registry.prefix;
    Some(format!(
        "the registry `{prefix}` leaves out `{left_out}`, so `{rest}` was looked for; if it has `{left_out}{rest}`, \
         set `strip: false`: `mu registry add {prefix}{url} --no-strip`"
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

/// The file with the settings that are in force.
fn settings(session: &Session) -> String {
    match session.scope {
        Scope::Workspace => format!("{MU_FOLDER}/{WORKSPACE_FILE}"),
        Scope::Global => session.environment.mu_home.join(CONFIG_FILE).display().to_string(),
    }
}
