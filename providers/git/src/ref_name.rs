//! Names in Git: of branches and tags, as types that only Git's own rules make, and which tags are versions; and of commits, as
//! the rest of mu has them and as libgit2 does.
//!
//! A name from elsewhere may reach the arguments of `git`, where one that begins with `-` would be an option, and one with `^` or
//! `..` a range. Whether there is such a branch or tag is not known here. Ranges are not interpreted; this only distinguishes
//! `v1.2.3` from `beta1`.

use git2::{Oid, Reference};
use mu_provider::Commit;
use semver::{BuildMetadata, Prerelease, Version};

macro_rules! ref_name {
    ($(#[$about:meta])* $name:ident, $folder:literal) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// The name, if Git accepts it.
            pub fn new(short: &str) -> Option<Self> {
                let full = format!("{}{short}", $folder);
                let is_valid = !short.starts_with('-') && Reference::is_valid_name(&full);
                is_valid.then_some(Self(full))
            }

            /// With the folder that Git has it in.
            pub fn full(&self) -> &str {
                &self.0
            }

            /// As people write it.
            pub fn short(&self) -> &str {
                self.0.strip_prefix($folder).unwrap_or(&self.0)
            }
        }
    };
}

ref_name! {
    /// The name of a branch.
    BranchName, "refs/heads/"
}

ref_name! {
    /// The name of a tag.
    TagName, "refs/tags/"
}

/// The digits of SHA-1.
pub(crate) const FULL: usize = 40;

/// The commit of a release, as its listing or a lock has it; `None` for one of SHA-256, which libgit2 cannot read.
pub(crate) fn parse(digits: Option<&str>) -> Option<Oid> {
    digits.filter(|hex| hex.len() == FULL).and_then(|hex| Oid::from_str(hex).ok())
}

/// The name of a commit.
pub(crate) fn name(oid: Oid) -> Commit {
    oid.to_string().parse().expect("an object's name is printed with all its digits")
}

/// The longest text that mu reads as a version. A longer name is an ordinary tag.
const LONGEST: usize = 256;

/// The version in a tag's name, and whether the name spells it in full; missing numbers must be allowed.
pub(crate) fn parse_version(tag: &str, lenient: bool) -> Option<(Version, bool)> {
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
    fn no_option_and_no_range_is_a_name() {
        let name = BranchName::new("edit/a-1.0.0").expect("is one");
        assert_eq!((name.full(), name.short()), ("refs/heads/edit/a-1.0.0", "edit/a-1.0.0"));
        assert_eq!(TagName::new("v1.0.0").expect("is one").full(), "refs/tags/v1.0.0");
        for text in [
            "",
            "-",
            "--upload-pack=x",
            "-u",
            "a..b",
            "a^{commit}",
            "a:b",
            "a~1",
            "@{1}",
            "a b",
            "a\nb",
            "/a",
            "a.lock",
        ] {
            assert_eq!((BranchName::new(text), TagName::new(text)), (None, None), "{text}");
        }
    }

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
                parse_version(tag, lenient).map(|(version, is_whole)| {
                    assert_eq!(is_whole, strict.is_some(), "{tag}");
                    version.to_string()
                })
            };
            assert_eq!(text(false).as_deref(), strict, "{tag}");
            assert_eq!(text(true).as_deref(), lenient, "{tag}");
        }
    }
}
