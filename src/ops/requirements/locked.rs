//! How packages are reached that the lock names and no manifest does.

use crate::lock::LockedPackage;
use crate::ops::Session;
use crate::reference::Reference;

/// Tells the index how to reach a locked package that no manifest names: as it was reached when it was locked.
pub fn declare_locked(session: &Session, package: &LockedPackage) {
    let LockedPackage { id, source, folder, .. } = package;
    let provider = session.index().providers().get(&source.provider);
    let place = source.place.split_once("://").map_or("", |(_, place)| place);
    let (is_flat, is_oci) =
        provider.map_or((false, false), |one| (one.places_are_flat(), one.is_oci()));
    let inside = match folder {
        Some(folder) => folder,
        None if is_flat => id.name_str().rsplit('/').next().unwrap_or_default(),
        None => "",
    };
    let below = source.place.trim_end_matches('/');
    let text = match is_oci && place.starts_with(id.base().as_str()) {
        // Its id says where it is.
        true => format!("oci://{id}"),
        false if source.is_archive() => format!("{below}/{inside}"),
        false => format!("{}+{below}/{inside}", source.provider),
    };
    let reference = Reference::parse(text.trim_end_matches('/')).ok();
    if let Some(reference) = reference.filter(|one| one.id(&session.defaults()) == *id) {
        session.index().declare(id, &reference, &session.workspace.root);
    }
}
