//! A release: one line of a hub's index. All other providers list releases in the same form.
//!
//! These are wire types, which mu converts into its own types at its border. Unknown keys are ignored,
//! because newer hubs may have more.
//!
//! [`Yanked`] says whether a release was withdrawn, or is no longer maintained, and why: in index lines and in catalogs.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::digest::Commit;

/// One published version of a package.
///
/// A hub's index has one of these on each line. Git lists one for each tag and branch (without `version` if
/// it is not a version), and a folder lists one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Release {
    /// The package's name in this registry.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The name in its manifest, if the package was copied from there to this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Its version. With `versioning: composite`, only the revision. Empty for a Git tag or branch that is
    /// not a version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The version of the software that the package contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// `semver` (the default) or `composite`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versioning: Option<String>,
    /// `lenient`, if versions of the package may leave numbers out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
    /// The manifest format it needs, such as `mu/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// The range of mu versions that can use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mu_version: Option<String>,
    /// Content digest (`h1:…`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Archive digest (`sha256:…`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// OCI: the digest of the manifest, or index of manifests, that its tag led to (`sha256:…`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// Size of the archive in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Whether its digests are left out here, and have to be asked for before it is used.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub short: bool,
    /// Where the archive is, relative to the hub's root or absolute; if empty, it is in the usual place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Its dependencies; `None` means that only the manifest has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Vec<Dependency>>,
    /// Capabilities that it provides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Capabilities that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// Packages that it supersedes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<String>,
    /// Packages and capabilities that must not be used together with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// Ranges, or exact words, over facts of the runtime.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub constraints: BTreeMap<String, String>,
    /// Channels it was published to, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
    /// The channel to use if none is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<String>,
    /// Which versions can be upgraded to it. If there is one entry, it is not in a list.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "one_or_more")]
    pub upgrade: Vec<Upgrade>,
    /// Names that lead to it: hub tags; in Git, the tag or branch that it was listed for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether it was withdrawn, and why.
    #[serde(skip_serializing_if = "Yanked::is_no")]
    pub yanked: Yanked,
    /// Whether its authors no longer maintain it, and why. It is chosen only if nothing else fits.
    #[serde(skip_serializing_if = "Yanked::is_no")]
    pub deprecated: Yanked,
    /// Why it can never be used, if the provider has found that out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// The format of the package, if it is not mu's: `helm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Which of the kinds of packages of its format it is, where a manifest that depends on it has to say that; no index has it.
    #[serde(skip)]
    pub kind: Option<String>,
    /// Which of the kinds of packages of its format each of its dependencies is said to be, if they have kinds; no index has it.
    #[serde(skip)]
    pub dependency_kinds: Vec<String>,
    /// What it calls itself, where that is not the last part of its name here; no index has it.
    #[serde(skip)]
    pub called: Option<String>,
    /// Packages that it carries inside, so that nobody else has to provide them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bundled: Vec<String>,
    /// Keys in its manifest that its format does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// The package that took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// When it was published, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Who published it: the name of a hub's token.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "or_nothing")]
    pub published_by: Option<String>,
    /// What it is, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_nothing")]
    pub keywords: Vec<String>,
    /// The licence, usually an SPDX expression.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "or_nothing")]
    pub license: Option<String>,
    /// Its maintainers.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_nothing")]
    pub maintainers: Vec<Maintainer>,
    /// Where to read more.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "or_nothing")]
    pub website: Option<String>,
    /// Where its source is: the URL of a repository and, after a `#`, the folder in it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "or_nothing")]
    pub repository: Option<String>,
    /// The commit that it is in Git, or was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// What it is known by where there are no commits: the digest of its artifact, or of its archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// Git: the full name of the ref it was listed for, such as `refs/tags/v1.2.0`.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Text that its provider needs to find it again, so that a locked package needs no listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locator: Option<String>,
    /// Git: whether this is the tip of the default branch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tip: bool,
}

impl Release {
    /// The release that is known by a commit, or by the digest of its artifact.
    pub fn at(revision: &str) -> Self {
        match revision.parse() {
            Ok(commit) => Self { commit: Some(commit), ..Self::default() },
            Err(_) => Self { artifact: Some(revision.to_owned()), ..Self::default() },
        }
    }

    /// What it is known by where what is at its place can change: its commit, or the digest of its artifact.
    pub fn revision(&self) -> Option<&str> {
        self.commit.as_deref().or(self.artifact.as_deref())
    }

    /// Its version as references name it.
    pub fn full_version(&self) -> String {
        match (self.versioning.as_deref(), &self.app_version) {
            (Some("composite"), Some(app)) => format!("{app}-{}", self.version),
            _ => self.version.clone(),
        }
    }

    /// Whether its version may leave numbers out, whatever the registry's settings say.
    pub fn is_lenient(&self) -> bool {
        self.versions.as_deref() == Some("lenient")
    }
}

/// One dependency, as a manifest and an index line write it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Dependency {
    /// A reference alone.
    Reference(String),
    /// A reference and what narrows it. It is rare, and large.
    Detailed(Box<DetailedDependency>),
}

impl Dependency {
    /// A dependency that accepts prereleases or not.
    pub fn new(reference: String, prerelease: bool) -> Self {
        match prerelease {
            false => Self::Reference(reference),
            true => Self::Detailed(Box::new(DetailedDependency {
                reference,
                prerelease,
                ..DetailedDependency::default()
            })),
        }
    }

    /// The reference, as it was written.
    pub fn reference(&self) -> &str {
        match self {
            Self::Reference(reference) => reference,
            Self::Detailed(detailed) => &detailed.reference,
        }
    }
}

/// This reads in place, where `untagged` would make a copy first: index lines have hundreds of thousands of
/// dependencies.
impl<'de> Deserialize<'de> for Dependency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Dependency;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a reference, or a dependency with `ref`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Dependency, E> {
                Ok(Dependency::Reference(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Dependency, A::Error> {
                let detailed = DetailedDependency::deserialize(MapAccessDeserializer::new(map));
                detailed.map(|detailed| Dependency::Detailed(Box::new(detailed)))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// A dependency in its long form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DetailedDependency {
    /// The reference.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Only versions in this channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Only versions of this app version (a prefix of whole components).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// Whether prereleases are accepted too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prerelease: bool,
}

/// A maintainer of a package, as a manifest and an index line write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Maintainer {
    /// `Ada L <ada@acme.example>`.
    Text(String),
    /// The parts apart.
    Person {
        /// The name.
        name: String,
        /// The mail address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        email: Option<String>,
    },
}

/// If text that is only for people is malformed, the version must still be usable.
fn or_nothing<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// A list in which a single entry is written without the list.
mod one_or_more {
    use crate::release::Upgrade;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        One(Box<Upgrade>),
        More(Vec<Upgrade>),
    }

    pub(super) fn serialize<S: Serializer>(
        all: &[Upgrade],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match all {
            [one] => one.serialize(serializer),
            all => all.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Upgrade>, D::Error> {
        Ok(match Option::<Either>::deserialize(deserializer)? {
            None => Vec::new(),
            Some(Either::One(one)) => vec![*one],
            Some(Either::More(all)) => all,
        })
    }
}

/// From which versions a release can be upgraded to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Upgrade {
    /// The channel of this upgrade; without one, it is possible in every channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The version right before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Versions that it can also follow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// A range of versions that it can also follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

/// Whether a release was withdrawn: `false`, `true`, or the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Yanked {
    /// It was not.
    #[default]
    #[serde(skip)]
    No,
    /// `true` or `false`, without a reason.
    Flag(bool),
    /// It was, and this is why.
    Reason(String),
}

/// The longest reason that a version was withdrawn for, in characters.
pub const LONGEST_REASON: usize = 512;

/// The reason of a version that was withdrawn without one: an index has a text for every version that was.
pub const NO_REASON: &str = "no reason was given";

impl Yanked {
    /// The reason, in one line of at most [`LONGEST_REASON`] characters; empty without a reason, and `None`
    /// if it was not withdrawn.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::No | Self::Flag(false) => None,
            Self::Flag(true) => Some(String::new()),
            Self::Reason(reason) => {
                let words: Vec<&str> = reason.split_whitespace().collect();
                Some(words.join(" ").chars().take(LONGEST_REASON).collect())
            }
        }
    }

    /// Whether the release was not withdrawn.
    pub fn is_no(&self) -> bool {
        matches!(self, Self::No | Self::Flag(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line() {
        for (line, expected) in [
            (r#"{"yanked":false}"#, None),
            ("{}", None),
            (r#"{"yanked":true}"#, Some("")),
            (r#"{"yanked":""}"#, Some("")),
            (r#"{"yanked":"loses\r\n data\u001b[31m "}"#, Some("loses data\u{1b}[31m")),
        ] {
            let release: Release = serde_json::from_str(line).expect("is a line");
            assert_eq!(release.yanked.reason().as_deref(), expected, "{line}");
        }
        let long = Yanked::Reason("ä".repeat(1_000)).reason().expect("is one");
        assert_eq!(long.chars().count(), LONGEST_REASON);
    }

    #[test]
    fn reads_a_line_with_everything_and_ignores_what_it_does_not_know() {
        let line = r#"{"name":"aws/ec2","version":"1.2.0","yanked":"broken","dependencies":["a#^1",
            {"ref":"ops/kafka#3.x","channel":"stable","appVersion":"2.3"}],"tags":["beta"],"colour":"blue"}"#;
        let release: Release = serde_json::from_str(line).expect("is a line");
        assert_eq!(release.yanked, Yanked::Reason("broken".to_owned()));
        let dependencies = release.dependencies.expect("are written");
        assert_eq!(dependencies[1].reference(), "ops/kafka#3.x");
        let odd = r#"{"version":"1.0.0","keywords":"logs","license":7,"maintainers":[{"name":"Ada"},"Bob"]}"#;
        let odd: Release = serde_json::from_str(odd).expect("is a line");
        assert_eq!((odd.keywords.len(), odd.license, odd.maintainers.len()), (0, None, 2));
        for (line, expected) in [
            (r#"{"upgrade":{"replaces":"1.0.0"}}"#, 1),
            (r#"{"upgrade":[{"replaces":"1.0.0"},{"channel":"fast","skips":["0.9.0"]}]}"#, 2),
        ] {
            let release: Release = serde_json::from_str(line).expect("is a line");
            assert_eq!(release.upgrade.len(), expected);
            assert_eq!(serde_json::to_string(&release).expect("prints"), line);
        }
        let open: Release = serde_json::from_str(r#"{"yanked":false}"#).expect("is a line");
        assert!(open.yanked.is_no());
        assert_eq!(serde_json::to_string(&open).expect("prints"), "{}");
    }
}
