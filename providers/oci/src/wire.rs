//! The format of mu's packages in OCI registries: media types, manifests, the index, and events.
//!
//! Manifests are those of the OCI image specification 1.1. Unknown members are ignored when reading, and kept
//! when writing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mu_provider::FileDigest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The most values of a manifest, or of a config.
pub(crate) const MOST_MANIFEST_VALUES: usize = 1_000_000;

/// An image manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// An image index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Docker's media types for an image manifest and an image index.
pub const DOCKER: [&str; 2] = [
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// A version of a package of mu.
pub const PACKAGE: &str = "application/vnd.mu.package.v1";
/// The archive of a package of mu, as hubs have it.
pub const ARCHIVE: &str = "application/vnd.mu.package.v1.tar+gzip";
/// Something that happened to a version after it was published.
pub const EVENT: &str = "application/vnd.mu.event.v1";
/// The configs of container images, in both formats.
pub const IMAGE_CONFIGS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];

/// The config, and the layer of what has none: two bytes, [`EMPTY_BYTES`].
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The two bytes that content of the type [`EMPTY`] consists of.
pub const EMPTY_BYTES: &[u8] = b"{}";

/// The annotation with the index line of a version, without the archive's digest.
pub const RELEASE_KEY: &str = "com.mu.release";
/// The annotation with an [`Event`].
pub const EVENT_KEY: &str = "com.mu.event";
/// When a version was published, for tools that read annotations of images.
pub const CREATED_KEY: &str = "org.opencontainers.image.created";

/// The subject of every version and event of a repository. The list of its referrers is the package's index.
pub const ROOT: &str = r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.mu.index.v1","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2}]}"#;
/// The digest of [`ROOT`].
pub const ROOT_DIGEST: &str =
    "sha256:eba1582f16a4f7dba39359c71460b353a642c47048b6532d6d37b704ddb3f5a3";
/// The tag of the list of referrers, in registries that do not maintain one.
pub const INDEX_TAG: &str =
    "sha256-eba1582f16a4f7dba39359c71460b353a642c47048b6532d6d37b704ddb3f5a3";

/// What points to a blob or a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it is.
    #[serde(default)]
    pub media_type: String,
    /// `sha256:…`
    pub digest: String,
    /// In bytes.
    pub size: u64,
    /// The artifact type of the manifest that it points to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The annotations of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Whatever else there is.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Descriptor {
    /// Points to these bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        let (digest, size) = (digest(bytes), bytes.len() as u64);
        Self { media_type: media_type.to_owned(), digest, size, ..Self::default() }
    }

    /// A descriptor of the empty object's two bytes.
    pub fn empty() -> Self {
        Self::of(EMPTY, EMPTY_BYTES)
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

/// What statements about images are called, which builders put beside them into their indexes.
const ATTESTATIONS: [&str; 4] = [
    "application/vnd.in-toto+json",
    "application/vnd.dsse.envelope.v1+json",
    "application/vnd.dev.sigstore.",
    "application/vnd.dev.cosign.",
];

impl Descriptor {
    /// The operating system and architecture that it is for, if it says so.
    fn platform(&self) -> Option<(&str, &str)> {
        let of = |key: &str| self.more.get("platform")?.get(key)?.as_str();
        of("os").zip(of("architecture"))
    }

    /// Whether it is a statement about another entry of its index.
    fn is_attestation(&self) -> bool {
        let kind = self.artifact_type.as_deref().unwrap_or_default();
        self.annotation("vnd.docker.reference.type").is_some()
            || self.platform() == Some(("unknown", "unknown"))
            || ATTESTATIONS.iter().any(|begin| kind.starts_with(begin))
    }
}

/// The entries of an index that can be what is meant: no statements about others, and of those for platforms only the ones for Linux
/// on amd64, or else for the platform of the first. These come before those that are for no platform.
pub(crate) fn candidates(entries: &[Descriptor]) -> Vec<&Descriptor> {
    let all = entries.iter().filter(|entry| is_digest(&entry.digest) && !entry.is_attestation());
    let (mut meant, plain): (Vec<&Descriptor>, Vec<&Descriptor>) =
        all.partition(|entry| entry.platform().is_some());
    let usual = Some(("linux", "amd64"));
    let has_usual = meant.iter().any(|entry| entry.platform() == usual);
    let platform = match meant.first() {
        Some(first) if !has_usual => first.platform(),
        _ => usual,
    };
    meant.retain(|entry| entry.platform() == platform);
    meant.extend(plain);
    let mut seen = BTreeSet::new();
    meant.retain(|entry| seen.insert(&entry.digest));
    meant
}

/// An image manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageManifest {
    /// 2.
    pub schema_version: u32,
    /// What it is itself.
    #[serde(default)]
    pub media_type: String,
    /// Its artifact type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Its config.
    #[serde(default)]
    pub config: Option<Descriptor>,
    /// Its content.
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    /// What it refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

impl ImageManifest {
    /// A manifest that refers to the root.
    pub fn new(
        artifact_type: &str,
        layer: Descriptor,
        annotations: BTreeMap<String, String>,
    ) -> Self {
        Self {
            schema_version: 2,
            media_type: MANIFEST.to_owned(),
            artifact_type: Some(artifact_type.to_owned()),
            config: Some(Descriptor::empty()),
            layers: vec![layer],
            subject: Some(Descriptor::of(MANIFEST, ROOT.as_bytes())),
            annotations: Some(annotations),
        }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers can be printed")
    }

    /// Its entry in the index; `bytes` are its own.
    pub fn index_entry(&self, bytes: &[u8]) -> Descriptor {
        Descriptor {
            artifact_type: self.artifact_type.clone(),
            annotations: self.annotations.clone(),
            ..Descriptor::of(MANIFEST, bytes)
        }
    }
}

/// An image index: the list of what refers to the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// 2.
    pub schema_version: u32,
    /// What it is itself.
    #[serde(default)]
    pub media_type: String,
    /// What refers to the root.
    pub manifests: Vec<Descriptor>,
    /// Whatever else there is.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Default for Index {
    fn default() -> Self {
        let (manifests, more) = (Vec::new(), Map::new());
        Self { schema_version: 2, media_type: INDEX.to_owned(), manifests, more }
    }
}

impl Index {
    /// Reads an index; `None` if it is not one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let index: Self = serde_json::from_slice(bytes).ok()?;
        let is_index = ["", INDEX, DOCKER[1]].contains(&&*index.media_type);
        (index.schema_version == 2 && is_index).then_some(index)
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers can be printed")
    }
}

/// The answer to the question for tags.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct TagList {
    /// `null` if there are none, and in it for one that is gone.
    pub tags: Option<Vec<Option<String>>>,
}

/// A later event about a version; exactly one of the first four keys is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The version that was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yank: Option<String>,
    /// The version that nobody looks after any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecate: Option<String>,
    /// The tag for `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The package that took the place of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// The version that gets the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why it was withdrawn or deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it is taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,
    /// The time of the event (RFC 3339). Of two events about the same thing, the newer one counts.
    #[serde(with = "moment")]
    pub at: Timestamp,
}

impl Event {
    /// An event with a reason, which may be empty; without one, it takes back what was said.
    pub(crate) fn because(reason: Option<&str>, at: Timestamp) -> Self {
        let said = reason.filter(|reason| !reason.is_empty()).map(str::to_owned);
        Self { undo: reason.is_none(), reason: said, at, ..Self::default() }
    }

    /// The subject of the event. Only the newest event about a subject counts.
    pub fn subject(&self) -> Option<(&'static str, &str)> {
        match (&self.yank, &self.deprecate, &self.tag, &self.moved_to) {
            (Some(version), None, None, None) => Some(("yank", version)),
            (None, Some(version), None, None) => Some(("deprecate", version)),
            (None, None, Some(tag), None) => Some(("tag", tag)),
            (None, None, None, Some(_)) => Some(("movedTo", "")),
            _ => None,
        }
    }
}

/// Moments as RFC 3339 has them.
mod moment {
    use jiff::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(at)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

/// The digest of these bytes, `sha256:…`.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", FileDigest::from_bytes(Sha256::digest(bytes).into()))
}

/// Whether a text is the digest of something.
pub fn is_digest(text: &str) -> bool {
    text.parse::<mu_provider::ArchiveDigest>().is_ok()
}

/// The tag of a version: a tag cannot contain `+`.
pub fn tag_of(version: &str) -> String {
    version.replace('+', "_")
}

/// The tags that a version may have; before them the digest that it is pinned to, if it is.
pub fn tags_of(release: &mu_provider::Release) -> Vec<String> {
    let tag = tag_of(&release.full_version());
    let tags = match &release.reference {
        Some(digest) if is_digest(digest) => vec![digest.clone(), tag.clone(), format!("v{tag}")],
        Some(tag) => vec![tag.clone()],
        None => vec![tag.clone(), format!("v{tag}")],
    };
    tags.into_iter().filter(|tag| is_tag(tag) || is_digest(tag)).collect()
}

/// The version that a tag may name, without a leading `v`: it begins with a digit.
pub fn version_of(tag: &str) -> Option<String> {
    let plain = tag.strip_prefix('v').unwrap_or(tag);
    let is_version = plain.starts_with(|first: char| first.is_ascii_digit())
        && plain.contains('.')
        && is_tag(tag);
    // A tag with another `_` was made of no version, and is shown as it is.
    let is_build = |build: &str| !build.is_empty() && !build.contains('_');
    let parts = plain.split_once('_').filter(|(_, build)| is_build(build));
    is_version.then(|| parts.map_or(plain.to_owned(), |(core, build)| format!("{core}+{build}")))
}

/// A text of somebody else's, in one line that is not long.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}

/// Whether a text can be a tag.
pub fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&text.len())
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || b".-".contains(&byte))
}

/// Whether a text can be the name of a repository: lower case, with a single `.`, one or two `_`, or dashes
/// in between.
pub fn is_repository(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let between = part.split(|c: char| c.is_ascii() && is_letter(c as u8));
        let fine =
            |text: &str| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|b| b == b'-');
        part.bytes().next().is_some_and(is_letter)
            && part.bytes().next_back().is_some_and(is_letter)
            && between.into_iter().all(fine)
    };
    name.len() <= 255 && name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_the_digest_that_it_is_known_by() {
        assert_eq!((ROOT.len(), digest(ROOT.as_bytes()).as_str()), (425, ROOT_DIGEST));
        assert_eq!(INDEX_TAG, ROOT_DIGEST.replace(':', "-"));
        assert_eq!(
            Descriptor::empty().digest,
            "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }

    #[test]
    fn a_list_of_tags_may_have_holes() {
        for (text, expected) in [
            (r#"{"name": "a", "tags": null}"#, &[][..]),
            (r#"{"name": "a"}"#, &[]),
            (r#"{"tags": ["1.0.0", null, "v2"]}"#, &["1.0.0", "v2"]),
        ] {
            let list: TagList = serde_json::from_str(text).expect("is a list");
            let tags: Vec<String> = list.tags.into_iter().flatten().flatten().collect();
            assert_eq!(tags, expected, "{text}");
        }
    }

    #[test]
    fn names_and_tags_are_those_of_the_specification() {
        for (name, expected) in [
            ("acme/web", true),
            ("a", true),
            ("a.b/c_d/e__f/g---h/0", true),
            ("Acme/web", false),
            ("acme/_web", false),
            ("acme/web-", false),
            ("a..b", false),
            ("a___b", false),
            ("a._b", false),
            ("acme//web", false),
            ("", false),
            ("ä", false),
        ] {
            assert_eq!(is_repository(name), expected, "{name}");
        }
        for (tag, expected) in [
            ("1.2.0", Some("1.2.0")),
            ("v1.2.0-rc.1_b7", Some("1.2.0-rc.1+b7")),
            ("1.28", Some("1.28")),
            ("v1", None),
            ("latest", None),
            (INDEX_TAG, None),
            ("1.2/0", None),
            // Such tags are no versions, and shown as they are.
            ("1.0.0_", Some("1.0.0_")),
            ("1.0.0_a_b", Some("1.0.0_a_b")),
        ] {
            assert_eq!(version_of(tag).as_deref(), expected, "{tag}");
        }
        assert_eq!(tag_of("1.0.0+b7"), "1.0.0_b7");
    }
}
