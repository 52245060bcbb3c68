//! References to elements: the package is the longest prefix that is one and exports the rest.

use crate::index::{Candidate, Universe as _};
use crate::manifest::source::printable;
use crate::manifest::{Head, Manifest};
use crate::ops::apply::fetch::fetch_release;
use crate::ops::explain::failure::unavailable;
use crate::ops::{Code, CommandError, Session};
use crate::reference::Reference;

/// The reference of the package that `reference` names, which may name one of its elements. Notes that it names no
/// element of a package that is there.
pub(crate) fn find_package(
    session: &Session,
    reference: &Reference,
    notes: &mut Vec<String>,
) -> Result<Reference, CommandError> {
    let defaults = session.defaults();
    let exists = |reference: &Reference| -> Result<bool, CommandError> {
        let id = reference.id(&defaults);
        if session.places.member_of(&id).is_some() {
            return Ok(true);
        }
        session.index().declare(&id, reference, &session.environment.current);
        match session.index().releases(&id) {
            Ok(releases) => Ok(releases.tried().is_none()),
            Err(error) => {
                let error = unavailable(session, error);
                // Selection goes on to what is installed.
                if error.code == Code::Offline { Ok(true) } else { Err(error) }
            }
        }
    };
    if exists(reference)? {
        return Ok(reference.clone());
    }
    // The longest prefix that is a package wins; what is left names one of its elements.
    let (mut place, version) = match reference.as_str().split_once('#') {
        Some((place, version)) => (place, format!("#{version}")),
        None => (reference.as_str(), String::new()),
    };
    for _ in 1..reference.name().segments().count() {
        let Some((shorter, _)) = place.rsplit_once('/') else { break };
        place = shorter;
        let Ok(package) = Reference::parse(&format!("{place}{version}")) else { break };
        let Some(element) = reference.name().strip_prefix(package.name()) else { break };
        if !exists(&package)? {
            continue;
        }
        let exports = exports(session, &package)?;
        if exports.iter().any(|export| export == element.as_str()) {
            return Ok(package);
        }
        if notes.is_empty() {
            notes.push(no_such_element(&package, element.as_str(), &exports));
        }
    }
    // Selection says best what is missing, and where it was looked for.
    Ok(reference.clone())
}

/// What the newest release that a reference accepts exports.
///
/// Only the manifest in the package says so; what is fetched for that is installed right after.
fn exports(session: &Session, package: &Reference) -> Result<Vec<String>, CommandError> {
    let exported = |head: Option<Head>| head.map(|head| head.exports).unwrap_or_default();
    let id = package.id(&session.defaults());
    if let Some(member) = session.places.member_of(&id) {
        return Ok(exported(Manifest::load_head(&member.folder)?));
    }
    let index = session.index();
    let releases = index.releases(&id).map_err(|error| unavailable(session, error))?;
    let spec = package.spec();
    let newest = (0..releases.len()).rev().find(|position| {
        let is_yanked = releases.details(*position).is_some_and(|details| details.yanked.is_some());
        !is_yanked && spec.accepts(&releases.version(*position), false)
    });
    let Some(newest) = newest else { return Ok(Vec::new()) };
    let (route, release) = index
        .release(&id, Candidate::Release(newest))
        .map_err(|error| unavailable(session, error))?;
    let _store = session.use_store()?;
    let stored = fetch_release(session, &id, &route, &release)?;
    Ok(exported(Manifest::load_head(&stored.folder)?))
}

fn no_such_element(package: &Reference, element: &str, exports: &[String]) -> String {
    let package = package.with_version(None);
    let exports: Vec<String> =
        exports.iter().map(|export| format!("`{}`", printable(export))).collect();
    let exports = if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") };
    format!("`{package}` is a package, but exports no `{element}`: it exports {exports}")
}
