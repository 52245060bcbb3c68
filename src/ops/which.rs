//! `which`: where a reference leads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::lock::Lockfile;
use crate::ops::sync::wanted;
use crate::ops::{CommandError, Session};
use crate::packs::PacksFolder;
use crate::reference::Reference;
use crate::search::{Candidate, Found, Installed, Note, SearchError, SearchPath, Wanted};

/// Finds the package (or the element) that a reference names.
///
/// # Errors
///
/// When the reference cannot be read, or nothing is found in any of the eight places.
pub fn which(session: &Session, text: &str) -> Result<Found, CommandError> {
    let wanted = wanted_by(session, text)?;
    let reference = Reference::parse(text)?;
    if let Some(found) = member_at(session, &reference, &wanted)? {
        return Ok(found);
    }
    if let Some(found) = replacing_member(session, &wanted)? {
        return Ok(found);
    }
    search(session)?.find(&wanted).map_err(|error| {
        let is_missing = matches!(error, SearchError::NotFound { .. });
        let error = CommandError::from(error);
        if is_missing {
            error.hint(format!("`mu get '{text}'` asks registries for it"))
        } else {
            error
        }
    })
}

/// The eight places that a reference may lead to, in order.
///
/// # Errors
///
/// When the reference cannot be read, or a manifest in the workspace is wrong.
pub fn which_all(session: &Session, text: &str) -> Result<Vec<Candidate>, CommandError> {
    let wanted = wanted_by(session, text)?;
    Ok(search(session)?.candidates(&wanted)?)
}

/// The workspace's package in the folder that a local reference names, wherever its name would lead.
fn member_at(
    session: &Session,
    reference: &Reference,
    wanted: &Wanted,
) -> Result<Option<Found>, CommandError> {
    let Some(folder) = reference.local() else { return Ok(None) };
    let folder = crate::env::absolute(&session.environment.current, folder.as_ref());
    let search = session.places.search();
    match session.workspace.members.iter().find(|member| member.folder == folder) {
        Some(_) => Ok(search.find_at(wanted, &folder)?),
        None => Ok(None),
    }
}

/// The workspace's package that replaces the wanted one, wherever its name would lead.
fn replacing_member(session: &Session, wanted: &Wanted) -> Result<Option<Found>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let Some(replaced) = lock.replacement(&wanted.id) else { return Ok(None) };
    let Some(member) = session.workspace.member(&replaced.by) else { return Ok(None) };
    let instead = Wanted { id: replaced.by.clone(), ..wanted.clone() };
    let found = session.places.search().find_at(&instead, &member.folder)?;
    Ok(found.map(|mut found| {
        let (id, by) = (replaced.id.clone(), replaced.by.clone());
        found.notes.insert(0, Note::Replaced { id, by });
        found
    }))
}

fn wanted_by(session: &Session, text: &str) -> Result<Wanted, CommandError> {
    let reference = Reference::parse(text)?;
    let mut wanted = Wanted::new(&reference, &session.defaults());
    wanted.id = crate::ops::get::id_of(session, &reference);
    Ok(wanted)
}

/// The search path, with what the locks know of installed packs.
fn search(session: &Session) -> Result<SearchPath, CommandError> {
    let mut installed = BTreeMap::new();
    let mut replaced = BTreeMap::new();
    let home = &session.environment.mu_home;
    let global = (Lockfile::read(home)?, PacksFolder::new(home.join("packs")));
    for (lock, packs) in [global, (session.lockfile()?, session.packs())] {
        let Some(lock) = lock else { continue };
        installed.extend(known(&lock, &packs));
        let pairs = lock.replaced.iter().map(|replaced| (replaced.id.clone(), replaced.by.clone()));
        replaced.extend(pairs);
    }
    let search = session.places.search().clone();
    Ok(search.with_installed(installed).with_replaced(replaced))
}

fn known(lock: &Lockfile, packs: &PacksFolder) -> Vec<(PathBuf, Installed)> {
    wanted(lock)
        .map(|(index, wanted)| {
            let package = &lock.packages[index];
            let installed = Installed {
                version: package.parsed_version(),
                commit: package.commit.clone(),
                reference: package.reference.clone(),
            };
            (packs.pack_path(&wanted.place), installed)
        })
        .collect()
}
