//! Archives of a package that are in its folder, whatever they are called: they are not packed again.
//!
//! An archive is known by the manifest in it.

use std::io::Read as _;
use std::path::Path;

use mu_provider::{Limits, MANIFEST_NAMES};

use crate::fs;
use crate::manifest::Manifest;

/// What every gzip'd file begins with.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whether the file at `path` in a package, which is at `place`, is an archive of the package, of any version. What cannot be read is
/// not.
pub(super) fn is_archive_of_package(manifest: &Manifest, path: &str, place: &Path) -> bool {
    let leaf = manifest.name.name().leaf();
    let is_usual =
        !path.contains('/') && path.starts_with(&format!("{leaf}-")) && path.ends_with(".tgz");
    is_usual || called(place).is_some_and(|name| name == manifest.name.as_str())
}

/// The name of the package in an archive.
fn called(place: &Path) -> Option<String> {
    let mut file = fs::open(place).ok()?;
    let mut bytes = vec![0; GZIP.len()];
    file.read_exact(&mut bytes).ok().filter(|()| bytes == GZIP)?;
    let most = Limits::default().bytes;
    file.take(most).read_to_end(&mut bytes).ok()?;
    let is_manifest = |path: &str| MANIFEST_NAMES.contains(&path);
    let files = mu_archive::pick(&bytes, &is_manifest, most).ok()?;
    let (name, content) = files.into_iter().next()?;
    let (manifest, _) =
        Manifest::parse(Path::new(&name), std::str::from_utf8(&content).ok()?).ok()?;
    Some(manifest.name.as_str().to_owned())
}
