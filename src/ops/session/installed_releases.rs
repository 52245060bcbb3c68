//! What is installed of a package, as releases to choose from where no registry can be asked: the packs of the
//! workspace, of the user, and of the runtime.

use std::collections::HashSet;
use std::path::Path;

use mu_formats::Reading;
use mu_provider::Release;

use crate::formats;
use crate::manifest::{Loaded, manifest_name};
use crate::ops::Places;
use crate::packs::hash_folder;
use crate::reference::PackageId;

/// The installed versions of a package from a hub, those that the search path finds first in front.
///
/// A pack that is not the package, or not it alone, is left out: its content would have another digest.
pub(crate) fn releases(places: &Places, id: &PackageId) -> Vec<Release> {
    let packs = &places.search().places(id)[2..];
    let packs = packs.iter().map(|place| &place.folder);
    let packs = packs.filter(|folder| places.search().link_on_the_way(folder).is_none());
    packs.filter_map(|folder| release(folder, id)).collect()
}

fn release(folder: &Path, id: &PackageId) -> Option<Release> {
    let Loaded { manifest, .. } = formats::load(folder, &Reading::default()).ok()??;
    let is_named_so = manifest.name.name().as_str() == id.name_str();
    if !is_named_so || manifest.generated || manifest.version.is_none() || holds_others(folder) {
        return None;
    }
    let digest = hash_folder(folder, &HashSet::new()).ok()?.digest().to_string();
    Some(Release { digest: Some(digest), ..manifest.to_release() })
}

/// Whether there are packages in folders below: packs of their own, as far as anybody can tell.
fn holds_others(folder: &Path) -> bool {
    let mut below = walkdir::WalkDir::new(folder).min_depth(2).into_iter().flatten();
    below.any(|entry| entry.file_name().to_str().and_then(manifest_name).is_some())
}
