//! References to elements: the package is the longest prefix that names one and exports the rest.

use std::path::Path;

use crate::index::{Candidate, Universe as _};
use crate::lock::LockedPackage;
use crate::manifest::source::printable;
use crate::manifest::{Head, Manifest};
use crate::ops::apply::fetch::store_release;
use crate::ops::explain::unavailable_error;
use crate::ops::requirements::names::{Meant, as_here, as_in, meant, unambiguous_name, written_id};
use crate::ops::solve::names::is_published;
use crate::ops::{CommandError, Session, Warning};
use crate::reference::{PackageId, Protocol, Reference};
use crate::workspace::Member;

/// The reference of the package that `reference` names, which may name one of its elements. If `member` is
/// given, missing parts are filled in as in its manifest, and the result is written in full. Reports if the
/// reference names no element of an existing package.
pub(crate) fn find_element_package(
    session: &Session,
    member: Option<&Member>,
    reference: &Reference,
    notes: &mut Vec<String>,
) -> Result<Reference, CommandError> {
    // Who writes `git+file://` on the command line names this folder, so it may be read.
    if reference.protocol() == Some(&Protocol::GitFile) {
        session.folders.name(&Path::new("/").join(reference.path()));
    }
    let exists = |reference: &Reference| -> Result<bool, CommandError> {
        let id = reference.id(&session.reference_defaults());
        session.index().declare(&id, reference, &session.environment.current);
        is_published(session, &id)
    };
    // A manifest may mean something else by one word than the command line does: `k8s` in a `kcl.mod` is a module of
    // KCL's registry. Where the manifest knows no such place, the word counts as its own package if that is in use, and
    // else as what it means here.
    let here = match member {
        None => as_here(session, reference.clone()),
        Some(member) => match as_in(session, member, reference) {
            there if there.base().is_none() && !is_in_use(session, member, &there)? => {
                as_here(session, there)
            }
            there => there,
        },
    };
    let reference = &here;
    // In a manifest, `db` is first a package of its own namespace, and else one without: in this order, the first one
    // that exists counts.
    let mut candidates = vec![reference.clone()];
    if let Some(member) = member.filter(|_| reference.base().is_none()) {
        let Meant { first, otherwise } = meant(member, reference);
        let all = [Some(first), otherwise].into_iter().flatten();
        candidates = all
            .map(|id| Reference::parse(&written_in_full(session, member, reference, &id)))
            .collect::<Result<_, _>>()?;
    }
    for candidate in &candidates {
        if exists(candidate)? {
            return by_own_name(session, member, candidate);
        }
    }
    let reference = candidates.last().unwrap_or(reference);
    // What is before the name of a chart or an operator is its place, not another package.
    if reference.protocol().is_some_and(|protocol| protocol.is_of_index()) {
        return Ok(reference.clone());
    }
    // The longest prefix that is a package wins; the rest names one of its elements.
    let (mut place, version) = match reference.as_str().split_once('#') {
        Some((place, version)) => (place, format!("#{version}")),
        None => (reference.as_str(), String::new()),
    };
    // From `acme/net/vpc/subnet`, this looks for `acme/net/vpc`, `acme/net` and `acme`. At least one segment stays, so
    // it ends.
    for _ in 1..reference.name().segments().count() {
        let Some((shorter, last)) = place.rsplit_once('/') else { break };
        // What is before a repository is its place, too.
        if last.ends_with(".git") {
            break;
        }
        place = shorter;
        let Ok(package) = Reference::parse(&format!("{place}{version}")) else { break };
        let Some(element) = reference.name().strip_prefix(package.name()) else { break };
        if !exists(&package)? {
            continue;
        }
        let exports = exports(session, &package)?;
        if exports.iter().any(|export| export == element.as_str()) {
            return by_own_name(session, member, &package);
        }
        // Only of the longest package: that one was probably meant.
        if notes.is_empty() {
            notes.push(no_such_element(&package, element.as_str(), &exports));
        }
    }
    // Selection gives the best error about what is missing and which places were searched.
    Ok(reference.clone())
}

/// Whether what a name means in the manifest of `member` is in use.
fn is_in_use(
    session: &Session,
    member: &Member,
    reference: &Reference,
) -> Result<bool, CommandError> {
    if reference.local().is_some() || !reference.is_single_name() {
        return Ok(true);
    }
    let id = written_id(session, member, reference);
    let lock = session.lockfile()?.unwrap_or_default();
    Ok(session.places.member_of(&id).is_some() || lock.find(&id).next().is_some())
}

/// How the manifest of `member` names the package `id`, to which `reference` resolves, in the same version.
fn written_in_full(
    session: &Session,
    member: &Member,
    reference: &Reference,
    id: &PackageId,
) -> String {
    let marked = reference.path() != reference.name().as_str();
    let place = match id.base() {
        _ if !marked => unambiguous_name(session, member, id),
        base if base == session.reference_defaults().base => reference.path().to_owned(),
        base => format!("{base}{}", reference.path()),
    };
    let version = reference.version_text().map(|text| format!("#{text}")).unwrap_or_default();
    format!("{place}{version}")
}

/// The reference with the package's name in the workspace, if it is one of the workspace's and the reference
/// uses another name; written in full for `member`.
fn by_own_name(
    session: &Session,
    member: Option<&Member>,
    reference: &Reference,
) -> Result<Reference, CommandError> {
    let id = reference.id(&session.reference_defaults());
    let own = session.places.own_name(id.clone());
    let name = match member {
        Some(member) if own != id || is_short(session, member, reference, &id) => {
            unambiguous_name(session, member, &own)
        }
        None if own != id => session.short_name(&own).into_owned(),
        _ => return Ok(reference.clone()),
    };
    if own != id
        && let Some(found) = session.places.member_of(&own)
    {
        let written = match id.base() == session.reference_defaults().base {
            true => reference.path().to_owned(),
            false => reference.with_version(None).to_string(),
        };
        let (place, name) = (found.place.clone(), name.clone());
        session.events.warning(&Warning::OtherNameInFolder { written, place, name });
    }
    Ok(Reference::parse(&name)?.with_version(reference.version().cloned()))
}

/// Whether a reference in the manifest of `member` would mean another package first.
fn is_short(session: &Session, member: &Member, reference: &Reference, id: &PackageId) -> bool {
    reference.base().is_none() && written_id(session, member, reference) != *id
}

/// The exports of the release of a package that is in use, if a reference accepts it, or else of the newest that it accepts.
///
/// Only the manifest in the package lists them; the package that is fetched for this is installed right
/// after.
fn exports(session: &Session, package: &Reference) -> Result<Vec<String>, CommandError> {
    let exported = |head: Option<Head>| head.map(|head| head.exports).unwrap_or_default();
    let id = package.id(&session.reference_defaults());
    if let Some(member) = session.places.member_of(&id) {
        return Ok(exported(Manifest::load_head(&member.folder)?));
    }
    let index = session.index();
    let releases = index.releases(&id).map_err(|error| unavailable_error(session, error))?;
    let spec = package.spec();
    // The version in use comes first: what it does not export is not there after this command either.
    let lock = session.lockfile()?.unwrap_or_default();
    let locked = lock.find(&id).filter_map(LockedPackage::parsed_version);
    let locked = locked.filter(|version| spec.accepts(version, true));
    let locked = locked.filter_map(|version| releases.position_of_version(&version)).last();
    let newest = (0..releases.len()).rev().find(|position| {
        let is_yanked = releases.details(*position).is_some_and(|details| details.yanked.is_some());
        !is_yanked && spec.accepts(&releases.version(*position), false)
    });
    let Some(newest) = locked.or(newest) else { return Ok(Vec::new()) };
    let (route, release) = index
        .release(&id, Candidate::Release(newest))
        .map_err(|error| unavailable_error(session, error))?;
    // Nothing else holds the store yet, and `mu cache prune` must not take the tree away while it is read.
    let _store = session.use_store()?;
    let stored = store_release(session, &id, &route, &release)?;
    Ok(exported(Manifest::load_head(&stored.folder)?))
}

fn no_such_element(package: &Reference, element: &str, exports: &[String]) -> String {
    let package = package.with_version(None);
    let exports: Vec<String> =
        exports.iter().map(|export| format!("`{}`", printable(export))).collect();
    let exports = if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") };
    format!("`{package}` is a package, but exports no `{element}`: it exports {exports}")
}
