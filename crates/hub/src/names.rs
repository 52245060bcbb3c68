//! Which names, versions, tags and capabilities a hub accepts: each of them becomes a path.
//!
//! `mu-manifest` defines each of them. This file adds what a hub refuses, so that no name blocks the files of
//! another one.

use mu_manifest::reference::{Name, Reference, Version, VersionSpec};
use mu_manifest::{Capability, unversioned};
use mu_provider::LONGEST_REASON;

use crate::HubError;

/// The longest name, version or tag, in characters.
const LONGEST: usize = 512;

/// The endings of the hub's own files. A folder with such a name could be in the place of another package's
/// file.
const RESERVED_ENDINGS: [&str; 4] = [".git", ".json", ".jsonl", ".tgz"];

/// Whether a package is in the namespace `around`, or has that name.
pub fn is_in_namespace(around: &str, name: &str) -> bool {
    name.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Checks the name of a package.
pub fn check_name(name: &str) -> Result<(), HubError> {
    let refuse = |reason: &str| refused(&format!("the name `{}`", printable(name)), reason);
    if name.is_empty() || name.len() > LONGEST {
        return Err(refuse("a name has 1 to 512 characters"));
    }
    if Name::parse(name).is_err() {
        return Err(refuse(
            "expected segments of letters, digits, `_`, `-` and `.` between slashes, each beginning with a \
             letter, a digit or `_`",
        ));
    }
    for segment in name.split('/') {
        let lower = segment.to_ascii_lowercase();
        if let Some(ending) = RESERVED_ENDINGS.iter().find(|ending| lower.ends_with(**ending)) {
            return Err(refuse(&format!("no part of it may end with `{ending}`")));
        }
    }
    Ok(())
}

/// Checks a version number for publishing; if the package has lenient versions, numbers may be missing.
pub fn check_version(version: &str, is_lenient: bool) -> Result<(), HubError> {
    let is_plain = version.starts_with(|first: char| first.is_ascii_digit());
    let is_version = match is_lenient {
        true => Version::parse_lenient(version).is_ok(),
        false => Version::parse(version).is_ok(),
    };
    if version.len() <= LONGEST && is_plain && is_version {
        return Ok(());
    }
    let what = format!("the version `{}`", printable(version));
    Err(refused(
        &what,
        "expected three numbers, such as 1.4.0, optionally with a prerelease after `-`; a package with `versions: lenient` \
         may leave numbers out",
    ))
}

/// Checks an app version, which becomes part of a file name for composite versions.
pub fn check_app_version(version: &str) -> Result<(), HubError> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "._+-".contains(character);
    if (1..=LONGEST).contains(&version.len())
        && version.chars().all(fits)
        && version.starts_with(|first: char| first.is_ascii_alphanumeric())
    {
        return Ok(());
    }
    let what = format!("the app version `{}`", printable(version));
    Err(refused(&what, "in a composite version, expected letters, digits, `.`, `_`, `+` and `-`"))
}

/// Checks a tag.
pub fn check_tag(tag: &str) -> Result<(), HubError> {
    // A tag becomes part of a path, like the segments of a name.
    let parsed = VersionSpec::parse(tag).ok().filter(|_| Name::parse(tag).is_ok());
    let reason = match parsed {
        None => "expected letters, digits, `_`, `-`, `.` and `/`, such as `stable`",
        Some(VersionSpec::Tag(_)) => return Ok(()),
        Some(VersionSpec::Commit(_)) => "it looks like a commit; use a word, such as `stable`",
        Some(VersionSpec::Digest(_)) => "it looks like a digest; use a word, such as `stable`",
        Some(VersionSpec::Latest | VersionSpec::Tip) => {
            "the word is reserved; use another, such as `stable`"
        }
        Some(VersionSpec::Pin(_) | VersionSpec::Range(_)) => {
            "it looks like a version; use a word, such as `stable`"
        }
    };
    Err(refused(&format!("the tag `{}`", printable(tag)), reason))
}

/// Checks a dependency: a folder exists only on its author's machine.
pub(crate) fn check_dependency(reference: &str) -> Result<(), HubError> {
    if Reference::parse(reference).is_ok_and(|reference| reference.local().is_some()) {
        let what = format!("the dependency `{}`", printable(reference));
        return Err(refused(&what, "it is a folder, which others do not have"));
    }
    Ok(())
}

/// Checks the reason for a withdrawal, which affected users see as one line.
pub fn check_reason(reason: &str) -> Result<(), HubError> {
    let refuse = |why: &str| Err(refused(&format!("the reason `{}`", printable(reason)), why));
    if reason.chars().any(char::is_control) {
        return refuse("it is more than one line of text");
    }
    if reason.chars().count() > LONGEST_REASON {
        return refuse(&format!("it is longer than {LONGEST_REASON} characters"));
    }
    Ok(())
}

/// Checks the package that `name` moved to: a package, with or without its base.
///
/// # Errors
///
/// When it is longer than 512 characters, not a package's name, or the package itself.
pub fn check_moved_to(name: &str, to: &str) -> Result<(), HubError> {
    let refuse = |reason: &str| {
        Err(refused(&format!("the move of `{}` to `{}`", printable(name), printable(to)), reason))
    };
    if to.len() > LONGEST {
        return refuse(&format!("it is longer than {LONGEST} characters"));
    }
    if to == name {
        return refuse("that is the package itself");
    }
    if unversioned(to).is_err() {
        return refuse(
            "expected a package, such as hub.mu.com/acme/new, without protocol and version",
        );
    }
    Ok(())
}

/// The path of a capability such as `compute.mu.com/v1/VM`; `None` if it is not a valid capability.
pub fn capability_path(capability: &str) -> Option<String> {
    let is_one = capability.len() <= LONGEST && Capability::parse(capability).is_ok();
    is_one.then(|| format!("capabilities/{capability}.json"))
}

/// The error for what breaks a rule.
pub fn refused(what: &str, reason: &str) -> HubError {
    HubError::Refused { what: what.to_owned(), reason: reason.to_owned() }
}

/// A foreign text that is safe to show: short, and without control characters.
pub fn printable(text: &str) -> String {
    let mut shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().count() > 80 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_that_stay_where_they_are() {
        for fine in ["a", "aws/ec2", "A_b/c-d.e/9"] {
            check_name(fine).expect(fine);
        }
        let long = "a".repeat(129);
        for wrong in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "a/.b",
            "-a",
            "a b",
            "a\\b",
            "a%2fb",
            "ä",
            "a\n",
            "a.jsonl/b",
            "a.TGZ",
            "x.git/y",
            "a.json",
            &long,
        ] {
            assert!(check_name(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn tags_are_no_versions() {
        for fine in ["beta1", "release/2024", "stable", "v-next", "abcdef"] {
            check_tag(fine).expect(fine);
        }
        for wrong in
            ["1.0.0", "v1.0.0", "v1", "1.2", "1.x", "latest", "tip", "abcdef0", "", "a b", "../x"]
        {
            assert!(check_tag(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn reasons_are_one_line() {
        for fine in ["", "loses data", "läuft nicht", &"ä".repeat(512)] {
            check_reason(fine).expect(fine);
        }
        for wrong in ["a\nb", "\u{1b}[31mred", "\u{7f}", &"a".repeat(513)] {
            assert!(check_reason(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_package_moves_to_another_package() {
        for fine in ["b", "acme/new", "hub.co/acme/new", "localhost:8080/new", "github.com/a/b.git"]
        {
            check_moved_to("acme/old", fine).expect(fine);
        }
        let long = format!("a/{}", "b/".repeat(300));
        for wrong in [
            "",
            "acme/old",
            "hub.co/",
            "hub.co:0/a",
            ":1/a",
            ".co/a",
            "hub.co:99999/a",
            "https://hub.co/a",
            "hub.co/a#1.0.0",
            "../a",
            "./a",
            "/etc/passwd",
            "a b",
            "a\nb",
            "<script>",
            "javascript:alert(1)",
            "user:word@hub.co/a",
            &long,
        ] {
            assert!(check_moved_to("acme/old", wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn capabilities_have_a_file_each() {
        let path = capability_path("compute.mu.com/v1/VM");
        assert_eq!(path.as_deref(), Some("capabilities/compute.mu.com/v1/VM.json"));
        for wrong in ["VM", "../v1/VM", "a/../b", "", "a//b"] {
            assert_eq!(capability_path(wrong), None, "{wrong:?}");
        }
    }
}
