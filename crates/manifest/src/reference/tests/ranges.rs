//! Ranges as npm reads them, and where this tool is stricter.

use crate::reference::{Range, Version};

/// Checks which of the versions (split at blanks) are in a range, and that no other is.
fn check(range: &str, inside: &str, outside: &str) {
    check_with(range, inside, outside, false);
}

fn check_with(text: &str, inside: &str, outside: &str, prereleases: bool) {
    let range = Range::parse(text).unwrap_or_else(|error| panic!("{}", error.render()));
    for (versions, expected) in [(inside, true), (outside, false)] {
        for version in versions.split_whitespace() {
            let parsed = Version::parse(version).expect("is a version");
            assert_eq!(range.matches(&parsed, prereleases), expected, "{text}: {version}");
        }
    }
}

#[test]
fn partial_versions() {
    check("1", "1.0.0 1.9.9", "0.9.9 2.0.0 2.0.0-rc.1 1.0.0-rc.1");
    check("1.2", "1.2.0 1.2.9", "1.1.9 1.3.0");
    check("v1.2", "1.2.0", "1.3.0");
    check("1.x", "1.0.0 1.9.9", "2.0.0");
    check("1.2.*", "1.2.0", "1.3.0");
    check("1.X.3", "1.0.0 1.9.0", "2.0.0");
    check("x", "0.0.0 9.0.0", "9.0.0-rc.1");
    check("=1.2", "1.2.7", "1.3.0");
}

#[test]
fn carets() {
    check("^1.0.6", "1.0.6 1.9.0", "1.0.5 2.0.0 1.0.6-rc.1 2.0.0-0");
    check("^0.2.3", "0.2.3 0.2.9", "0.3.0 0.2.2");
    check("^0.0.3", "0.0.3", "0.0.4 0.0.2");
    check("^0.0", "0.0.0 0.0.9", "0.1.0");
    check("^0", "0.0.0 0.9.0", "1.0.0");
    check("^0.1.x", "0.1.0 0.1.9", "0.2.0");
    check("^1.2.x", "1.2.0 1.9.0", "1.1.0 2.0.0");
    check("^ 1.2", "1.2.0", "2.0.0");
    check("^x", "0.0.1 9.0.0", "");
}

#[test]
fn tildes() {
    check("~1.5", "1.5.0 1.5.9", "1.6.0 1.4.9");
    check("~1.2.3", "1.2.3 1.2.9", "1.2.2 1.3.0");
    check("~1", "1.0.0 1.9.0", "2.0.0");
    check("~> 1.2", "1.2.0", "1.3.0");
    check("~0.0.1", "0.0.1 0.0.2", "0.1.0");
    check("~v0.5.4-pre", "0.5.4-pre 0.5.5 0.5.4", "0.6.0 0.5.5-pre");
}

#[test]
fn comparators() {
    check(">1.2", "1.3.0", "1.2.0 1.2.9");
    check(">1", "2.0.0", "1.9.9");
    check(">=1.2", "1.2.0", "1.1.9");
    check("<1.2", "1.1.9", "1.2.0 1.2.0-rc.1");
    check("<=1.2", "1.2.9", "1.3.0");
    check("<=1", "1.9.9", "2.0.0");
    check(">1.2.3", "1.2.4", "1.2.3");
    check("<1.2.3", "1.2.2", "1.2.3");
    check(">= v1.0", "1.0.0", "0.9.0");
    check(">=*", "0.0.0 9.0.0", "");
    check("<=*", "0.0.0 9.0.0", "");
    check(">*", "", "0.0.0 9.0.0");
    check("<*", "", "0.0.0 9.0.0");
    check("<=1.2.3+b", "1.2.3 1.2.3+z", "1.2.4");
}

#[test]
fn and_or_and_hyphens() {
    check(">=1.2 <2", "1.2.0 1.9.0", "1.1.0 2.0.0");
    check(">1, <=3", "2.0.0 3.9.0", "1.9.0 4.0.0");
    check(">1,<=3", "2.0.0", "1.0.0");
    check("^1 || ^3", "1.0.0 3.9.0", "2.0.0 4.0.0");
    check("1.2.3||2", "1.2.3 2.1.0", "1.2.4");
    check("1.2 - 1.4", "1.2.0 1.4.9", "1.1.9 1.5.0");
    check("1.2.3 - 2", "1.2.3 2.9.9", "1.2.2 3.0.0");
    check("1.2.3 - 2.3.4", "2.3.4", "2.3.5");
    check("* - 2", "0.0.0 2.9.0", "3.0.0");
    check(">=2 <1", "", "0.5.0 1.5.0 2.5.0");
    check("^1 ^2", "", "1.0.0 2.0.0");
}

#[test]
fn prereleases_must_be_named() {
    check(
        "^1.2.3-beta.2",
        "1.2.3-beta.2 1.2.3-rc.1 1.2.3 1.9.0",
        "1.2.3-beta.1 1.2.4-beta.3 1.9.0-rc.1",
    );
    check(">=1.2.3-beta <1.2.3", "1.2.3-beta 1.2.3-rc", "1.2.3 1.2.2");
    check(">1.0.0 <=2.0.0-rc.1", "1.5.0 2.0.0-rc.1 2.0.0-alpha", "2.0.0 2.0.0-rc.2 1.5.0-rc.1");
    check(">=1.0.0-alpha >=1.0.0-beta", "1.0.0-beta 1.0.0-rc", "1.0.0-alpha");
    check("<1.4.0-rc <1.4.0", "1.4.0-alpha 1.3.0", "1.4.0-rc.1");
    check(">=1.2.0-rc >=1.2", "1.2.0", "1.2.0-rc.1");
    check("^1 || 2.0.0-rc.1", "1.0.0 2.0.0-rc.1", "2.0.0-rc.2 1.1.0-rc.1");
}

#[test]
fn the_rule_of_prereleases_can_be_lifted() {
    let check = |range: &str, inside: &str, outside: &str| check_with(range, inside, outside, true);
    check("^1.2.3", "1.2.4-rc.1 1.9.0-rc.1", "1.2.3-rc.1 2.0.0-rc.1");
    check("1.x", "1.0.0-rc.1 1.9.0-rc.1", "2.0.0-rc.1");
    check(">=1.2", "1.2.0-rc.1", "1.1.9");
    check(">1.2", "1.3.0-rc.1", "1.2.9");
    check("<2", "1.9.0-rc.1", "2.0.0-rc.1");
    check("<2.0.0", "2.0.0-rc.1", "2.0.0");
    check("1 - 2", "1.0.0-rc.1 2.9.0-rc.1", "3.0.0-rc.1");
    check("x", "0.0.0-rc.1", "");
}

#[test]
fn knows_where_a_range_begins() {
    for (range, version, expected) in [
        ("^1.2.3", "1.2.3", true),
        ("^1.2", "1.2.0", true),
        (">=1.2.3-rc.1", "1.2.3-rc.1", true),
        (">=1.2.3-rc.1", "1.2.3", false),
        (">1.2.3", "1.2.3", false),
        ("^1 || ^3.1", "3.1.0", true),
        ("<3", "2.9.9", false),
        (">=2 <1", "2.0.0", false),
    ] {
        let version = Version::parse(version).expect("is a version");
        let range = Range::parse(range).expect("is a range");
        assert_eq!(range.begins_at(&version), expected, "{range} {version}");
    }
}

#[test]
fn a_span_is_what_is_in_the_range() {
    let texts =
        ["0.9.0", "1.0.0", "1.2.3", "1.2.3+b1", "1.2.4", "1.4.0", "1.5.1", "2.0.0", "3.1.0"];
    let versions = texts.map(|text| Version::parse(text).expect("is a version"));
    for text in [
        "^1.2",
        ">=1.2.3 <2",
        "~1.2",
        "1.x",
        "*",
        ">1.2.3",
        "<=1.4",
        "=1.2.3",
        "1.2 - 1.4",
        "<1.4.0-rc.1",
        ">=1.4.0-rc.1",
        ">3 <2",
        "<0.1",
        ">9",
        "^0.9.0",
    ] {
        let range = Range::parse(text).expect("is a range");
        let span =
            range.span(versions.len(), |at| versions[at].clone()).expect("has one alternative");
        for prereleases in [true, false] {
            for (at, version) in versions.iter().enumerate() {
                let is_in = range.matches(version, prereleases);
                assert_eq!(span.contains(&at), is_in, "{text} {version} {prereleases}");
            }
        }
    }
    let several = Range::parse("^1 || ^3").expect("is a range");
    assert_eq!(several.span(versions.len(), |at| versions[at].clone()), None);
}
