//! From which versions a bundle can be upgraded to: what channels say by the names of bundles, by version.

use std::collections::BTreeMap;

use mu_manifest::reference::Version;
use mu_provider::Upgrade;

use super::range::range;

/// A channel of a package.
#[derive(Debug, Clone, Default)]
pub(super) struct Channel {
    pub(super) name: String,
    pub(super) entries: Vec<Entry>,
}

/// A bundle in a channel.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) replaces: Option<String>,
    pub(super) skips: Vec<String>,
    pub(super) skip_range: Option<String>,
}

/// The versions of the bundles of a package, by their names.
pub(super) type BundleVersions = BTreeMap<String, String>;

/// The upgrades to a bundle, of which each channel that has it has one entry: one for all channels, where these agree.
pub(super) fn upgrades(entries: &[(&str, &Entry)], versions: &BundleVersions) -> Vec<Upgrade> {
    let of_each = entries.iter().map(|(channel, entry)| Upgrade {
        channel: Some((*channel).to_owned()),
        replaces: entry.replaces.as_deref().and_then(|name| version_of(name, versions)),
        skips: entry.skips.iter().filter_map(|name| version_of(name, versions)).collect(),
        // OLM acts as if one that it cannot read was not there.
        skip_range: entry.skip_range.as_deref().and_then(|text| range(text).ok()),
    });
    let mut all: Vec<Upgrade> = of_each.collect();
    let everywhere = all.first().map(|first| Upgrade { channel: None, ..first.clone() });
    if let Some(everywhere) = everywhere {
        let is_same = |one: &Upgrade| {
            (&one.replaces, &one.skips, &one.skip_range)
                == (&everywhere.replaces, &everywhere.skips, &everywhere.skip_range)
        };
        if all.iter().all(is_same) {
            all = vec![everywhere];
        }
    }
    all.retain(|one| one.replaces.is_some() || !one.skips.is_empty() || one.skip_range.is_some());
    all
}

/// The version of a bundle: as the catalog says, or as its name does, if it is one that the catalog no longer has.
fn version_of(name: &str, versions: &BundleVersions) -> Option<String> {
    versions.get(name).cloned().or_else(|| version_in(name))
}

/// The version that the name of a bundle ends in: `etcdoperator.v0.9.4`.
pub(super) fn version_in(name: &str) -> Option<String> {
    let (_, rest) = name.split_once('.')?;
    let version = rest.strip_prefix('v').unwrap_or(rest);
    let is_version = version.starts_with(|first: char| first.is_ascii_digit());
    (is_version && Version::parse(version).is_ok()).then(|| version.to_owned())
}
