//! How packages are reached that the lock names: as they were reached when they were locked. That counts if neither a
//! reference nor the settings say anything else.

use mu_provider::SafeUrl;

use crate::index::Providers;
use crate::lock::LockedPackage;
use crate::reference::{Defaults, Reference};

/// The reference that leads to a locked package again, if the lock says more about its place than its id.
pub(super) fn stated(
    providers: &Providers,
    package: &LockedPackage,
    defaults: &Defaults,
) -> Option<Reference> {
    let LockedPackage { id, source, folder, .. } = package;
    if source.is_own() || source.is_pack() {
        return None;
    }
    let provider = providers.get(&source.provider);
    let (scheme, place) = source.place.split_once("://")?;
    let says_where = place.starts_with(id.base().as_str());
    let is_hub = provider.as_ref().is_ok_and(|one| one.facts().is_hub);
    // Its id says where a hub is, and the settings may. Only on this machine, plain http is what was meant.
    let is_here = || SafeUrl::parse(&source.place).is_ok_and(|url| url.is_loopback());
    if is_hub && !(scheme == "http" && says_where && is_here()) {
        return None;
    }
    let (is_flat, is_oci) =
        provider.map_or((false, false), |one| (one.facts().places_are_flat, one.facts().is_oci));
    let inside = match folder {
        Some(folder) => folder,
        None if is_flat => id.name_str().rsplit('/').next().unwrap_or_default(),
        None => "",
    };
    let below = source.place.trim_end_matches('/');
    let text = match is_oci && says_where {
        // Its id says where it is.
        true => format!("oci://{id}"),
        false if is_hub => format!("{scheme}://{id}"),
        // A plugin serves the scheme that it is called by.
        false if says_where && scheme == source.provider => format!("{scheme}://{id}"),
        false if source.is_archive() => format!("{below}/{inside}"),
        false => format!("{}+{below}/{inside}", source.provider),
    };
    let reference = Reference::parse(text.trim_end_matches('/')).ok();
    reference.filter(|one| one.id(defaults) == *id)
}
