//! Ranges of the library `blang/semver`, which OLM uses, as ranges of mu; and from which versions a bundle can be upgraded to:
//! what channels say by the names of bundles, by version.
//!
//! The library has neither `^` nor `~`, no comma, and no versions with missing numbers; `x` means any number. To it, a prerelease
//! is an ordinary version, so these ranges accept prereleases.

use std::collections::BTreeMap;

use mu_manifest::reference::{Range, Version};
use mu_provider::Upgrade;

use crate::range::spell_out;

/// Operators, longest first.
const OPERATORS: [&str; 8] = [">=", "<=", "==", "!=", ">", "<", "=", "!"];

/// Rewrites a range.
///
/// # Errors
///
/// Why it is not one, in words that go on from "the range `…`".
pub fn range(text: &str) -> Result<String, String> {
    let mut alternatives: Vec<String> = Vec::new();
    for alternative in text.split("||") {
        spell_out(&mut alternatives, comparators(alternative)?.into_iter().map(Ok))?;
    }
    let text = alternatives.join(" || ");
    match Range::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// The comparators of an alternative, each with its version; those with a wildcard are two.
fn comparators(alternative: &str) -> Result<Vec<(&'static str, String)>, String> {
    let mut rest = alternative.trim_matches(' ');
    if rest.is_empty() {
        return Err("is empty, or has an empty part at a `||`".to_owned());
    }
    let mut found = Vec::new();
    while !rest.is_empty() {
        let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
        let operator = operator.copied().unwrap_or_default();
        let after = rest.strip_prefix(operator).unwrap_or(rest).trim_start_matches(' ');
        let (version, after) = after.split_once(' ').unwrap_or((after, ""));
        if version == "-" && operator.is_empty() {
            return Err("has a hyphen, and matches no version in OLM".to_owned());
        }
        add(&mut found, operator, version)?;
        rest = after.trim_start_matches(' ');
    }
    Ok(found)
}

fn add(
    found: &mut Vec<(&'static str, String)>,
    operator: &'static str,
    version: &str,
) -> Result<(), String> {
    let wrong = || format!("is not a range: `{version}` is not a version");
    let is_plain = version.starts_with(|first: char| first.is_ascii_digit());
    let Some(whole) = version.strip_suffix(".x") else {
        if !is_plain || Version::parse(version).is_err() {
            return Err(wrong());
        }
        let operator = match operator {
            "==" | "=" | "" => "=",
            "!" | "!=" => "!=",
            other => other,
        };
        found.push((operator, version.to_owned()));
        return Ok(());
    };
    let numbers: Result<Vec<u64>, _> =
        whole.split('.').map(|part| if part == "x" { Ok(0) } else { part.parse() }).collect();
    let (first, next) = match numbers.ok().filter(|_| is_plain).as_deref() {
        Some(&[major]) => (format!("{major}.0.0"), format!("{}.0.0", major.saturating_add(1))),
        Some(&[major, minor]) => {
            (format!("{major}.{minor}.0"), format!("{major}.{}.0", minor.saturating_add(1)))
        }
        _ => return Err(wrong()),
    };
    match operator {
        "" | "=" | "==" => found.extend([(">=", first), ("<", next)]),
        ">" => found.push((">=", next)),
        ">=" => found.push((">=", first)),
        "<" => found.push(("<", first)),
        "<=" => found.push(("<", next)),
        _ => return Err(format!("has `{operator}{version}`, which matches no version in OLM")),
    }
    Ok(())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_olm_reads_becomes_what_mu_reads() {
        for (text, expected) in [
            (">=1.28.0 <1.29.0", ">=1.28.0 <1.29.0"),
            (">= 1.28.0  < 1.29.0", ">=1.28.0 <1.29.0"),
            ("1.2.3", "=1.2.3"),
            ("==1.2.3-rc.1", "=1.2.3-rc.1"),
            (">=1.0.0 !1.2.0", ">=1.0.0 <1.2.0 || >=1.0.0 >1.2.0"),
            ("!=1.2.0 <2.0.0", "<1.2.0 <2.0.0 || >1.2.0 <2.0.0"),
            ("1.x", ">=1.0.0 <2.0.0"),
            ("1.2.x || >2.x", ">=1.2.0 <1.3.0 || >=3.0.0"),
            ("<=1.x", "<2.0.0"),
            ("1.x.x", ">=1.0.0 <1.1.0"),
        ] {
            assert_eq!(range(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_olm_refuses_is_refused() {
        for text in [
            "",
            "^1.0.0",
            "~1.2.0",
            ">=1.0",
            "v1.2.0",
            ">=v1.0.0",
            ">=1.0.0, <2.0.0",
            "*",
            "x",
            "1.2.0 - 1.2.4",
            ">=1.0.0 ||",
            "latest",
            "1.20.1+",
            "!=1.x",
            "“1.0.0”",
        ] {
            assert!(range(text).is_err(), "{text}");
        }
        assert!(range(&"!=1.0.1 ".repeat(40)).is_err());
    }
}
