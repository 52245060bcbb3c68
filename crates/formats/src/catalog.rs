//! What a search goes through: a line for each chart, or operator of KUDO, of an index, about its newest release.

use mu_provider::Release;
use mu_provider::catalog::CatalogLine;

use crate::manifest::version_of;

/// A package as a catalog has it, by the `lines` of its versions; `None` if there is none.
///
/// The newest release counts that is neither removed nor unusable, prereleases last.
pub fn catalog_line(lines: &[u8]) -> Option<CatalogLine> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let releases = lines.filter_map(|line| serde_json::from_slice::<Release>(line).ok());
    let ranked = releases.map(|release| {
        let version = version_of(&release);
        let is_released = version.as_ref().is_some_and(|version| !version.is_prerelease());
        let is_usable = release.unusable.is_none() && release.yanked.is_no();
        ((is_usable, is_released, version), release)
    });
    let ((is_usable, ..), newest) = ranked.max_by(|(left, _), (right, _)| left.cmp(right))?;
    Some(CatalogLine {
        latest: if is_usable { newest.full_version() } else { String::new() },
        name: newest.name,
        description: newest.description,
        keywords: newest.keywords,
        app_version: newest.app_version,
        deprecated: newest.deprecated,
        ..CatalogLine::default()
    })
}
