//! A range, and versions on the lines after it: everything that is parsed prints back, versions have one
//! order, and allowing prereleases never excludes a version.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run range -- -max_total_time=60`.

#![no_main]

use std::cmp::Ordering;

use libfuzzer_sys::fuzz_target;
use mu::reference::{Range, Version, VersionSpec};

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let versions: Vec<Version> = lines.take(8).filter_map(version).collect();
    check_order(&versions);
    if let Ok(range) = Range::parse(first) {
        assert_eq!(range.to_string(), first);
        for version in &versions {
            let is_inside = range.matches(version, false);
            assert!(!is_inside || range.matches(version, true), "{range} {version}");
            assert!(!is_inside || !version.is_prerelease() || first.contains('-'));
            assert!(!range.begins_at(version) || range.matches(version, true));
        }
    }
    if let Ok(spec) = VersionSpec::parse(first) {
        for version in &versions {
            let is_accepted = spec.accepts(version, false);
            assert!(!is_accepted || spec.accepts(version, true), "{spec} {version}");
        }
    }
});

fn version(text: &str) -> Option<Version> {
    let read = Version::parse(text).ok();
    if let Some(version) = &read {
        assert_eq!(version.to_string(), text.strip_prefix('v').unwrap_or(text));
        assert_eq!(Version::parse_lenient(text).as_ref(), Ok(version));
    }
    let composite = Version::parse_composite(text).ok();
    if let Some(version) = &composite {
        assert_eq!(version.to_string(), text);
        let parts = (version.app().expect("has one"), version.revision().expect("has one"));
        assert_eq!(Version::composite(parts.0, parts.1).as_ref(), Ok(version));
    }
    composite.or(read).or_else(|| Version::parse_lenient(text).ok())
}

fn check_order(versions: &[Version]) {
    for one in versions {
        for other in versions {
            let order = one.cmp(other);
            assert_eq!(order, other.cmp(one).reverse(), "{one} {other}");
            assert_eq!(order == Ordering::Equal, one == other, "{one} {other}");
        }
    }
    for three in versions.windows(3) {
        let [one, two, last] = three else { continue };
        assert!(!(one <= two && two <= last) || one <= last, "{one} {two} {last}");
    }
}
