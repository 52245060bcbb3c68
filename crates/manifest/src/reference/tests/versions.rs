//! Kinds of version specs, pins, and the order of versions.

use crate::reference::{Version, VersionSpec};

fn spec(text: &str) -> VersionSpec {
    VersionSpec::parse(text).unwrap_or_else(|error| panic!("{}", error.render()))
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap_or_else(|error| panic!("{}", error.render()))
}

/// A composite version, written as it prints.
fn composite(text: &str) -> Version {
    Version::parse_composite(text).unwrap_or_else(|error| panic!("{}", error.render()))
}

#[test]
fn tells_the_kinds_apart() {
    let check = |text: &str, expected: &str| {
        let spec = spec(text);
        let kind = match &spec {
            VersionSpec::Latest => "latest",
            VersionSpec::Tip => "tip",
            VersionSpec::Pin(_) => "pin",
            VersionSpec::Range(_) => "range",
            VersionSpec::Commit(_) => "commit",
            VersionSpec::Tag(_) => "tag",
            VersionSpec::Digest(_) => "digest",
        };
        assert_eq!(kind, expected, "{text}");
        assert_eq!(
            spec.is_pinned(),
            matches!(expected, "pin" | "commit" | "tag" | "digest"),
            "{text}"
        );
        if text != "*" {
            assert_eq!(spec.to_string(), text);
        }
    };
    for text in ["latest", "*"] {
        check(text, "latest");
    }
    check("tip", "tip");
    check(&format!("sha256:{}", "0a".repeat(32)), "digest");
    for text in ["1.0.6", "v1.0.6", "=1.0.6", "= v1.0.6", "==1.0.6", "1.0.6-rc.1+b5", "2.3.0-1.0.0"]
    {
        check(text, "pin");
    }
    for text in [
        "1",
        "v1",
        "1.2",
        "v1.2",
        "1.x",
        "1.2.*",
        "x",
        "^1.0.6",
        "~1.5",
        ">=1.2 <2",
        ">1, <=3",
        ">1,<=3",
        "1.2 - 1.4",
        "^1 || ^3",
        "^1||^3",
        ">= v1.0",
        "=1.x",
        "~>1.2",
        "123456",
        "1.2.3 ||2",
    ] {
        check(text, "range");
    }
    for text in ["1234567", "abcdef0", "ABCDEF0", "1895753f53a63c055e7cae81ebe4ea5d5805584f"] {
        check(text, "commit");
    }
    for text in [
        "beta1",
        "release/2024",
        "abcdef",
        "1.2.3.4",
        "2024.01.15",
        "1.28-rc1",
        "8.11-1.0.0",
        "Latest",
        "1895753f53a63c055e7cae81ebe4ea5d5805584f0",
        "a#b",
        "größe",
        "v",
        "vx1",
    ] {
        check(text, "tag");
    }
}

#[test]
fn knows_what_a_commit_may_be() {
    let VersionSpec::Commit(commit) = spec("1234567") else { panic!("is a commit") };
    let range = commit.as_range().expect("is decimal");
    assert!(range.matches(&version("1234567.2.0"), false));
    assert!(commit.matches("1234567aaaa"));
    assert!(!commit.matches("123456"));
    let VersionSpec::Commit(commit) = spec("ABCDEF0") else { panic!("is a commit") };
    assert!(commit.as_range().is_none());
    assert!(commit.matches("abcdef0123"));
}

#[test]
fn knows_which_tag_may_be_meant() {
    for (text, expected) in [
        ("beta1", Some("beta1")),
        ("v1", Some("v1")),
        ("1.28", Some("1.28")),
        ("abcdef0", Some("abcdef0")),
        ("1895753f53a63c055e7cae81ebe4ea5d5805584f", None),
        ("^1", None),
        ("1.*", None),
        ("1 2", None),
        ("1.2.3", None),
        ("latest", None),
    ] {
        assert_eq!(spec(text).as_tag(), expected, "{text}");
    }
}

#[test]
fn pins_accept_one_version() {
    let check = |pin: &str, text: &str, expected: bool| {
        assert_eq!(spec(pin).accepts(&version(text), false), expected, "{pin} {text}");
    };
    check("1.0.6", "1.0.6", true);
    check("v1.0.6", "1.0.6", true);
    check("1.0.6", "1.0.7", false);
    check("1.0.6", "1.0.6-rc.1", false);
    check("1.0.6-rc.1", "1.0.6-rc.1", true);
    check("1.0.6", "1.0.6+b5", true);
    check("1.0.6+b5", "1.0.6+b5", true);
    check("1.0.6+b5", "1.0.6+b6", false);
    check("1.0.6+b5", "1.0.6", false);
    check("latest", "2.0.0", true);
    check("latest", "2.0.0-rc.1", false);
    check("tip", "2.0.0-rc.1", true);
    check("beta1", "1.0.0", false);
    check("abcdef0", "1.0.0", false);
}

#[test]
fn specs_speak_of_the_app_in_composite_versions() {
    let check = |wanted: &str, found: &str, expected: bool| {
        assert_eq!(spec(wanted).accepts(&composite(found), false), expected, "{wanted} {found}");
    };
    check("2.3.0", "2.3.0-1.0.0", true);
    check("2.3.0", "2.3.0-1.0.1", true);
    check("2.3.0-1.0.0", "2.3.0-1.0.0", true);
    check("2.3.0-1.0.0", "2.3.0-1.0.1", false);
    check("2.3.0-rc.1", "2.3.0-rc.1-1.0.0", true);
    check("2.3.0-rc.1-1.0.0", "2.3.0-rc.1-1.0.0", true);
    check("2.3.0-rc.1-1.0.0", "2.3.0-rc.1-1.0.1", false);
    check("8.11.0", "8.11-1.0.0", true);
    check("8.11-1.0.0", "8.11-1.0.0", true);
    check("8.11-1.0.0", "8.11-1.0.1", false);
    check("2.3", "2.3.9-1.0.0", true);
    check("^2", "2.3.9-4.0.0", true);
    check("^4", "2.3.9-4.0.0", false);
    check("<2.3.0", "2.3.0-0.1.0", false);
    check("latest", "2.3.0-1.0.0", true);
    check("latest", "2.3.0-1.0.0-rc.1", false);
    check("^2", "2.3.0-1.0.0-rc.1", false);
    check("latest", "2.3.0-rc.1-1.0.0", false);
}

#[test]
fn the_text_of_a_version_means_it_where_it_is_no_semantic_version() {
    let check = |wanted: &str, found: &str, expected: bool| {
        let found = Version::parse_lenient(found).expect("is a version");
        assert_eq!(spec(wanted).accepts(&found, false), expected, "{wanted} {found}");
    };
    check("3.9.000", "3.9.000", true);
    check("v3.9.000", "3.9.000", true);
    check("2024.01.02", "v2024.01.02", true);
    check("2024.01", "2024.01", true);
    check("2024.01.02", "2024.1.2", false);
    check("2024.01.02", "2024.01.03", false);
}

#[test]
fn orders_versions() {
    let ascending = |versions: Vec<Version>| {
        for (at, one) in versions.iter().enumerate() {
            for (other_at, other) in versions.iter().enumerate() {
                assert_eq!(one.cmp(other), at.cmp(&other_at), "{one} {other}");
            }
        }
    };
    ascending(
        [
            "0.9.0",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-rc.2",
            "1.0.0-rc.10",
            "1.0.0",
            "1.9.0",
            "1.28.0",
        ]
        .map(version)
        .to_vec(),
    );
    ascending(
        [
            "2.3.0-1.0.0-rc.1",
            "2.3.0-1.0.0",
            "2.3.0-1.10.0",
            "2.10.0-rc.1-1.0.0",
            "2.10-1.0.0",
            "2.10.1-0.1.0",
            "10.0-0.1.0",
        ]
        .map(composite)
        .to_vec(),
    );
    ascending(vec![version("1.0.0"), composite("1.0.0-1.0.0"), version("1.0.1")]);
    // Other text than versions comes first, in its own order.
    let words = ["11 SR2-0.2.0", "Frodo-0.1.0", "Frodo-0.10.0", "Samwise-0.1.0", "0.1-0.1.0"];
    ascending(words.map(composite).to_vec());
    ascending(vec![composite("Frodo-9.0.0"), version("0.0.1")]);
}

#[test]
fn reads_lenient_versions() {
    let check = |text: &str, expected: &str| {
        let found = Version::parse_lenient(text).map(|version| version.to_string());
        assert_eq!(found.as_deref(), Ok(expected), "{text}");
    };
    check("v1", "1");
    check("1.28", "1.28");
    check("2024.01.15", "2024.01.15");
    check("1.28-rc1+b", "1.28-rc1+b");
    check("v1.2.3", "1.2.3");
    assert!(
        Version::parse_lenient("1.9").expect("is lenient")
            < Version::parse_lenient("1.28").expect("is lenient")
    );
    for text in ["", "v", "1.", "1.2.3.4", "beta", "1..2"] {
        assert!(Version::parse_lenient(text).is_err(), "{text}");
    }
}

#[test]
fn points_at_what_is_no_version() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Version::parse(text).expect_err(text).render(), expected);
    };
    check("1.2", "1.2\n   ^ expected `.`, because a version has three numbers, found the end");
    check("1.02.3", "1.02.3\n  ^ expected a number without leading zeros, found `0`");
    check(
        "1.2.3x",
        "1.2.3x\n     ^ expected the end, `-` and a prerelease, or `+` and build metadata, found `x`",
    );
    check("1.2.3-", "1.2.3-\n      ^ expected letters, digits or `-`, found the end");
    check("1.2.3-a.01", "1.2.3-a.01\n        ^ expected a number without leading zeros, found `0`");
    let error = Version::composite("8.11", "1.x").expect_err("is not a version");
    assert_eq!(error.render(), "8.11-1.x\n       ^ expected a number, found `x`");
}

#[test]
fn takes_composite_versions_apart() {
    let version = Version::composite("8.11", "1.0.0").expect("is a version");
    assert_eq!(version.to_string(), "8.11-1.0.0");
    assert_eq!((version.app(), version.revision()), (Some("8.11"), Some("1.0.0")));
    assert_eq!(version.as_semver(), None);
    assert_eq!(version.major(), 8);
    assert!(!version.is_prerelease());
    assert_eq!(composite("2.3.0-1.0.0-rc.1").revision(), Some("1.0.0-rc.1"));
    assert_eq!(composite("2.3.0-rc.1-1.0.0").app(), Some("2.3.0-rc.1"));
}

#[test]
fn an_app_version_can_be_other_text() {
    let version = Version::composite("bookworm-12", "1.0.0-rc.1").expect("is a version");
    assert_eq!((version.app(), version.revision()), (Some("bookworm-12"), Some("1.0.0-rc.1")));
    assert_eq!(Version::parse_composite(&version.to_string()).as_ref(), Ok(&version));
    assert!(version.is_of_text() && version.is_prerelease());
    assert_eq!((version.major(), version.as_semver()), (0, None));
    for (wanted, expected) in [
        ("latest", false),
        ("tip", true),
        ("bookworm-12-1.0.0-rc.1", true),
        ("bookworm-12", false),
        (">=0", false),
        ("*", false),
        ("^12", false),
    ] {
        assert_eq!(spec(wanted).accepts(&version, false), expected, "{wanted}");
    }
    assert!(spec("*").accepts(&Version::composite("Frodo", "1.0.0").expect("is one"), false));
    // Text that no file can be called by, and text that reads as another version once it is joined.
    for app in ["", " a", ".a", "../a", "a/b", "a\\b", "a\u{202e}b", "Frodo-1.0.0", "1.0-2.0.0"] {
        assert!(Version::composite(app, "3.0.0").is_err(), "{app}");
    }
}

#[test]
fn versions_are_small() {
    assert!(size_of::<Version>() <= 40, "{}", size_of::<Version>());
    assert!(size_of::<VersionSpec>() <= 72, "{}", size_of::<VersionSpec>());
}
