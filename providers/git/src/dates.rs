//! When versions were published: the date of an annotated tag, or else that of the commit.
//!
//! The author's machine set this date. Branches and plain tags do not need one.

use std::collections::HashMap;

use git2::Oid;
use mu_provider::{Progress, ProviderError};

use crate::listing::Listed;
use crate::repository::Repository;
use crate::wire::Advertisement;

/// Adds publication dates to the releases that are versions; returns whether all dates are known.
pub(crate) fn add(
    repository: &Repository,
    listed: &Advertisement,
    releases: &mut [Listed<'_>],
    progress: &dyn Progress,
) -> Result<bool, ProviderError> {
    let targets: HashMap<&str, Oid> =
        listed.refs.iter().map(|other| (&*other.name, other.target)).collect();
    let target = |release: &Listed<'_>| targets.get(release.reference).copied();
    let is_version = |release: &&mut Listed<'_>| !release.version.is_empty();
    let wanted: Vec<Oid> =
        releases.iter_mut().filter(is_version).filter_map(|release| target(release)).collect();
    let dates = repository.dates(&wanted, progress)?;
    let mut is_complete = true;
    for release in releases.iter_mut().filter(is_version) {
        let date = target(release).and_then(|target| dates.get(&target));
        let moment = date.and_then(|seconds| jiff::Timestamp::from_second(*seconds).ok());
        release.published = moment.map(|moment| moment.to_string());
        is_complete &= release.published.is_some();
    }
    if !is_complete {
        // If only some had dates, the others would look old.
        releases.iter_mut().for_each(|release| release.published = None);
    }
    Ok(is_complete)
}

/// The date in a tag or commit, in seconds since 1970.
pub(crate) fn parse(object: &[u8]) -> Option<i64> {
    let mut lines = object.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let line =
        lines.find(|line| line.starts_with(b"tagger ") || line.starts_with(b"committer "))?;
    let mut words = std::str::from_utf8(line.rsplit(|byte| *byte == b'>').next()?).ok()?.split(' ');
    words.find(|word| !word.is_empty())?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_date_of_a_tag_and_of_a_commit() {
        for (object, expected) in [
            (
                "object x\ntype commit\ntag v1\ntagger A B <a@b> 1700000000 +0100\n\ntext",
                Some(1_700_000_000),
            ),
            ("tree x\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 2 -0500\n\ntext", Some(2)),
            ("tree x\n\ncommitter A <a@b> 2 +0000\n", None),
            ("tree x\ncommitter A <a@b>\n\n", None),
            ("committer A <a@b> soon +0000\n\n", None),
            ("", None),
        ] {
            assert_eq!(parse(object.as_bytes()), expected, "{object}");
        }
        assert_eq!(parse(b"committer \xff <a> 5 +0000\n\n"), Some(5));
    }
}
