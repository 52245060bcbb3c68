//! Which tags are versions.
//!
//! This does not interpret ranges; it only distinguishes `v1.2.3` from `beta1`.

use semver::{BuildMetadata, Prerelease, Version};

/// The longest text that mu reads as a version. A longer name is an ordinary tag.
const LONGEST: usize = 256;

/// The version in a tag's name, and whether the name spells it in full; missing numbers must be allowed.
pub(crate) fn parse(tag: &str, lenient: bool) -> Option<(Version, bool)> {
    let text = tag.strip_prefix('v').unwrap_or(tag);
    match Version::parse(text) {
        _ if text.len() > LONGEST => None,
        Ok(version) => Some((version, true)),
        Err(_) if lenient => parse_lenient(text).map(|version| (version, false)),
        Err(_) => None,
    }
}

/// Reads `1`, `1.28` and `1.02.3`: missing numbers are 0, and leading zeros do not count.
fn parse_lenient(text: &str) -> Option<Version> {
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, BuildMetadata::new(build).ok()?),
        None => (text, BuildMetadata::EMPTY),
    };
    let (core, pre) = match text.split_once('-') {
        Some((core, pre)) => (core, Prerelease::new(pre).ok()?),
        None => (text, Prerelease::EMPTY),
    };
    let mut numbers = [0; 3];
    let mut parts = core.split('.');
    for (index, number) in numbers.iter_mut().enumerate() {
        match parts.next() {
            Some(part) if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => {
                *number = part.parse().ok()?;
            }
            None if index > 0 => {}
            _ => return None,
        }
    }
    let [major, minor, patch] = numbers;
    parts.next().is_none().then_some(Version { major, minor, patch, pre, build })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        for (tag, strict, lenient) in [
            ("1.2.3", Some("1.2.3"), Some("1.2.3")),
            ("v1.2.3-rc.1+5", Some("1.2.3-rc.1+5"), Some("1.2.3-rc.1+5")),
            ("v1", None, Some("1.0.0")),
            ("1.28", None, Some("1.28.0")),
            ("v1.28-beta", None, Some("1.28.0-beta")),
            ("2024.01.05", None, Some("2024.1.5")),
            ("vv1.2.3", None, None),
            ("beta1", None, None),
            ("1.2.3.4", None, None),
            ("1..2", None, None),
            ("", None, None),
            ("v", None, None),
            ("99999999999999999999", None, None),
        ] {
            let text = |lenient| {
                parse(tag, lenient).map(|(version, is_whole)| {
                    assert_eq!(is_whole, strict.is_some(), "{tag}");
                    version.to_string()
                })
            };
            assert_eq!(text(false).as_deref(), strict, "{tag}");
            assert_eq!(text(true).as_deref(), lenient, "{tag}");
        }
    }
}
