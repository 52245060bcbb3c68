//! Packages of the workspace that are not where references to them point, or that are found under another
//! name than their own: what to say about them, and the way out.
//!
//! Packages are found by their path, so that a folder can take the place of any package. If that gives an
//! unexpected result, the user learns why.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::lock::Lockfile;
use crate::ops::Session;
use crate::ops::requirements::Requirements;
use crate::ops::requirements::names::{in_full, written_id};
use crate::ops::session::source::relative;
use crate::reference::PackageId;
use crate::workspace::{MU_FOLDER, Member, WORKSPACE_FILE};

/// Reports the workspace's packages that `requirements` or `lock` are about.
pub(crate) fn warnings(
    session: &Session,
    requirements: &Requirements,
    lock: &Lockfile,
) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for asked in &requirements.asked {
        let Some((member, _)) = asked.line.filter(|_| asked.reference.local().is_none()) else {
            continue;
        };
        let member = &session.workspace.members[member];
        let own = &asked.requirement.id;
        if let Some(found) = session.places.member_of(own)
            && *own != written_id(session, member, &asked.reference)
        {
            warnings.push(format!(
                "`{}` requires `{}`, which points to the folder `{}` of the package `{own}`: write `{}`",
                member.manifest.name,
                asked.reference,
                shown(&found.place),
                in_full(session, member, own),
            ));
        }
    }
    // A set, because several may require the same package.
    let asked = || requirements.asked.iter().map(|asked| &asked.requirement.id);
    let locked = lock.packages.iter().map(|package| &package.id);
    let otherwise = asked().chain(locked).filter_map(|id| called_otherwise(session, id));
    warnings.extend(otherwise.collect::<BTreeSet<String>>());
    let overrides = &session.workspace.settings.overrides;
    for member in &session.workspace.members {
        let id = &member.id;
        let is_elsewhere = requirements.local(session, id).is_none() && !overrides.contains_key(id);
        // What only provides a capability is used wherever it is.
        let is_fetched = || lock.find(id).any(|package| !package.source.is_workspace());
        if is_elsewhere && (is_fetched() || asked().any(|asked| asked == id)) {
            warnings.push(misplaced(session, member));
        }
    }
    warnings
}

/// Reports one required package that the workspace has, too.
pub(crate) fn warning(session: &Session, id: &PackageId) -> Option<String> {
    let in_other_place = || {
        let member = session.workspace.member(id)?;
        session.places.member_of(id).is_none().then(|| misplaced(session, member))
    };
    called_otherwise(session, id).or_else(in_other_place)
}

/// Reports that a folder of the workspace is used although its package has another name.
fn called_otherwise(session: &Session, id: &PackageId) -> Option<String> {
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
    if session.workspace.edit_around(&member.folder).is_some() {
        // mu has put it there: in Git, the name in a manifest is only a name.
        return None;
    }
    Some(format!(
        "`{}` points to the folder `{}`, whose package is named `{name}`; if you did not mean that package, move it to where its name points",
        session.short_name(id),
        shown(&found.place),
    ))
}

/// What to do about a package of the workspace that is not where references to it point.
pub(crate) fn misplaced(session: &Session, member: &Member) -> String {
    let (workspace, id, place) = (&session.workspace, &member.id, &member.place);
    // The first two places are in the workspace. This is the one without a folder for the base, where a person would
    // put the package.
    let [_, right, ..] = session.places.search().places(id);
    let right = relative(&workspace.root, &right.folder);
    let parent = id.name_str().strip_suffix(&**place).and_then(|parent| parent.strip_suffix('/'));
    let name = session.short_name(id);
    // Which setting would have the references lead to where the package is: a namespace, if its folder is the end of
    // its name, or else an override for this one package.
    let key = match (parent, place.is_empty(), workspace.namespace.is_none()) {
        (Some(parent), false, true) => Some(format!("namespace: {parent}")),
        // A namespace means the root itself, too; a folder that contains the packs cannot be one of them.
        (_, true, true) => Some(format!("namespace: {name}")),
        (_, true, false) => None,
        _ => Some(format!("overrides: {{{name}: ./{place}}}")),
    };
    let otherwise = key.map(|key| format!(", or set `{key}` in `{MU_FOLDER}/{WORKSPACE_FILE}`"));
    format!(
        "the workspace has `{name}` in `{}`, but packages are found by their path, and references to it point to `{right}`: move it there{}",
        shown(place),
        otherwise.unwrap_or_default(),
    )
}

/// A folder of the workspace for people. If a folder is named like a host, it must not look like the name of
/// a package.
pub(crate) fn shown(place: &str) -> Cow<'_, str> {
    match place.split_once('/') {
        _ if place.is_empty() => Cow::Borrowed("."),
        Some((first, _)) if first.contains('.') => Cow::Owned(format!("./{place}")),
        _ => Cow::Borrowed(place),
    }
}
