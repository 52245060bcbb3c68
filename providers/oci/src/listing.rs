//! Turns tags and the index into index lines. Nothing here makes requests.
//!
//! A list of tags has no digests, and an index is only a hint. So an entry describes its tag until the
//! manifest says otherwise. A tag without an entry is a version of which nothing more is known; an entry
//! without a tag is not a version.

use std::collections::{BTreeMap, BTreeSet};

use mu_provider::{Release, Yanked};
use serde::{Deserialize, Serialize};

use crate::wire::{self, CREATED_KEY, Descriptor, EVENT_KEY, Event, Index, RELEASE_KEY};

/// The content of a package's index.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    /// Manifests by their digests, with their release, by version.
    releases: BTreeMap<String, BTreeMap<String, Release>>,
    /// The newest event about each.
    events: BTreeMap<(&'static str, String), Event>,
    /// The tags that all events have.
    event_tags: BTreeSet<String>,
}

/// The beginning of the tags of events.
const EVENT_TAG: &str = "mu-event-";

/// The tag of an event, by the digest of its manifest.
pub fn event_tag(digest: &str) -> String {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    format!("{EVENT_TAG}{}", hex.get(..32).unwrap_or(hex))
}

impl Entries {
    /// Adds the entries of an index, whoever has it.
    pub fn add(&mut self, index: &Index) {
        for entry in &index.manifests {
            if let Some(event) = event(entry) {
                self.event_tags.insert(event_tag(&entry.digest));
                self.note(event);
            } else if let Some(release) = release(entry) {
                let version = release.full_version();
                let known = self.releases.entry(version).or_default();
                known.insert(entry.digest.clone(), release);
            }
        }
    }

    fn note(&mut self, event: Event) {
        let Some((what, of)) = event.subject() else { return };
        let key = (what, of.to_owned());
        if self.events.get(&key).is_none_or(|known| known.at < event.at) {
            self.events.insert(key, event);
        }
    }

    /// Whether nothing is known about a version among these tags.
    pub fn lack(&self, tags: &[String]) -> bool {
        let mut versions = tags.iter().filter_map(|tag| wire::version_of(tag));
        versions.any(|version| !self.releases.contains_key(&version))
            || tags.iter().any(|tag| self.lacks_event(tag))
    }

    /// Whether nothing is known of any version.
    pub fn is_empty(&self) -> bool {
        self.releases.is_empty()
    }

    /// Whether something is known of a version.
    pub fn has_version(&self, version: &str) -> bool {
        self.releases.contains_key(version)
    }

    /// Whether a tag is that of an event that is not known.
    pub fn lacks_event(&self, tag: &str) -> bool {
        tag.starts_with(EVENT_TAG) && !self.event_tags.contains(tag)
    }

    /// When the newest event was.
    pub fn newest_event(&self) -> Option<jiff::Timestamp> {
        self.events.values().map(|event| event.at).max()
    }

    /// What is known about a version, if it is unambiguous.
    fn release(&self, version: &str) -> Option<&Release> {
        let mut known = self.releases.get(version)?.values();
        let first = known.next()?;
        known.all(|other| other == first).then_some(first)
    }

    /// The versions that have tags, as releases: with their entry if there is one, and otherwise with only
    /// their tag.
    pub fn releases(&self, name: &str, tags: &[String]) -> Vec<Release> {
        let mut versions: BTreeMap<String, &str> = BTreeMap::new();
        for tag in tags {
            let Some(version) = wire::version_of(tag) else { continue };
            // The plain tag, if there are both.
            let known = versions.entry(version).or_insert(tag);
            if !tag.starts_with('v') {
                *known = tag;
            }
        }
        let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for event in self.events.values().filter(|event| !event.undo) {
            if let (Some(tag), Some(version)) = (&event.tag, &event.version) {
                named.entry(version).or_default().insert(tag);
            }
        }
        let moved = self.events.get(&("movedTo", String::new())).filter(|event| !event.undo);
        // Of `1.4` and `1.4.0`, which may be one version, the first counts: a tag with fewer numbers often moves on to the newest.
        let is_whole = |version: &str| {
            let numbers = version.split(['-', '+']).next().unwrap_or(version);
            numbers.matches('.').count() > 1
        };
        let mut versions: Vec<(String, &str)> = versions.into_iter().collect();
        versions.sort_by_key(|(version, _)| !is_whole(version));
        let lines = versions.into_iter().map(|(version, tag)| {
            let known = self.release(&version).cloned();
            let mut line = known.unwrap_or_else(|| Release {
                name: name.to_owned(),
                version: version.clone(),
                ..Release::default()
            });
            line.reference = (tag != wire::tag_of(&version)).then(|| tag.to_owned());
            for (about, said) in [("yank", &mut line.yanked), ("deprecate", &mut line.deprecated)] {
                let Some(event) = self.events.get(&(about, version.clone())) else { continue };
                *said = match (event.undo, &event.reason) {
                    (true, _) => Yanked::No,
                    (false, Some(reason)) => Yanked::Reason(reason.clone()),
                    (false, None) => Yanked::Flag(true),
                };
            }
            let tags = named.get(version.as_str());
            line.tags = tags.into_iter().flatten().map(|&tag| tag.to_owned()).collect();
            if let Some(event) = moved {
                line.moved_to = event.moved_to.clone();
            }
            line
        });
        lines.collect()
    }
}

/// How many tags are named where none is a version.
const MOST_NAMED: usize = 5;

/// The reason that a repository has no version although it has tags: it names the tags, and how a reference can name one. `None` if there are
/// no tags.
pub fn without_versions(tags: &[String]) -> Option<String> {
    let is_own = |tag: &str| tag.starts_with("sha256-") || tag.starts_with(EVENT_TAG);
    let all: Vec<&str> = tags.iter().map(String::as_str).filter(|tag| !is_own(tag)).collect();
    let named: Vec<String> = all.iter().take(MOST_NAMED).map(|tag| format!("`{tag}`")).collect();
    let more = match all.len().checked_sub(MOST_NAMED) {
        Some(more) if more > 0 => format!(" and {more} more"),
        _ => String::new(),
    };
    // Other texts mean something else in a reference: numbers a range, and these two words the newest version.
    let is_name = |tag: &&&str| {
        tag.starts_with(|first: char| first.is_ascii_alphabetic())
            && tag.bytes().any(|byte| !byte.is_ascii_hexdigit() && byte != b'v')
            && !matches!(**tag, "latest" | "tip")
    };
    let how = match all.iter().find(is_name) {
        Some(tag) => format!("a reference can name one, as in `#{tag}`"),
        None => "a reference can name the digest of one, `#sha256:…`".to_owned(),
    };
    let named = named.join(", ");
    (!all.is_empty()).then(|| format!("none of its tags is a version: {named}{more}; {how}"))
}

/// The release in the annotations of a version's manifest, as a line of a listing. The place of its archive
/// is elsewhere.
pub fn release(entry: &Descriptor) -> Option<Release> {
    let mut line: Release = serde_json::from_str(entry.annotation(RELEASE_KEY)?).ok()?;
    // mu chooses an archive here, not a commit.
    line.commit = None;
    line.artifact = None;
    line.archive = None;
    line.reference = None;
    line.tip = false;
    line.urls.clear();
    line.tags.clear();
    line.dependencies.get_or_insert_default();
    if line.published.is_none() {
        line.published = entry.annotation(CREATED_KEY).map(str::to_owned);
    }
    wire::version_of(&wire::tag_of(&line.full_version())).is_some().then_some(line)
}

/// The event that an entry is.
pub fn event(entry: &Descriptor) -> Option<Event> {
    serde_json::from_str(entry.annotation(EVENT_KEY)?).ok()
}

/// A value for finding out whether a listing is unchanged. The caller stores it as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    /// The digest of the tags.
    pub(crate) tags: String,
    /// The digest of the index with a tag, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<String>,
    /// The registry's ETag for the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    /// The digest of the registry's list of referrers, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) referrers: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index(entries: &[(&str, &str, serde_json::Value)]) -> Entries {
        let manifests = entries.iter().map(|(digest, key, value)| {
            json!({"digest": digest, "size": 7, "annotations": {*key: value.to_string()}})
        });
        let text = json!({"schemaVersion": 2, "manifests": manifests.collect::<Vec<_>>()});
        let mut entries = Entries::default();
        entries.add(&Index::parse(text.to_string().as_bytes()).expect("is an index"));
        entries
    }

    fn tags(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn tags_and_entries_meet_by_version() {
        let line = |version: &str, needs: &[&str]| json!({"name": "acme/web", "version": version, "dependencies": needs});
        let entries = index(&[
            ("sha256:1", RELEASE_KEY, line("1.0.0", &["a#^1"])),
            ("sha256:2", RELEASE_KEY, line("1.1.0", &["a#^1"])),
            ("sha256:3", RELEASE_KEY, line("1.1.0", &["a#^2"])),
            ("sha256:4", RELEASE_KEY, line("1.2.0+b7", &[])),
            ("sha256:5", RELEASE_KEY, line("3.0.0", &[])),
            ("sha256:6", RELEASE_KEY, json!("nonsense")),
        ]);
        let tags = tags("latest v1.2.0_b7 1.1.0 v1.0.0 1.0.0 2.0.0");
        let lines = entries.releases("acme/web", &tags);
        let shown: Vec<_> = lines
            .iter()
            .map(|line| {
                let needs = line.dependencies.as_ref().map(Vec::len);
                (line.version.as_str(), needs, line.reference.as_deref())
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("1.0.0", Some(1), None),
                ("1.1.0", None, None),
                ("1.2.0+b7", Some(0), Some("v1.2.0_b7")),
                ("2.0.0", None, None),
            ]
        );
        assert!(entries.lack(&tags) && !entries.lack(&tags[3..5]));
    }

    #[test]
    fn the_newest_event_counts() {
        let line = json!({"name": "acme/web", "version": "1.0.0"});
        let entries = index(&[
            ("sha256:1", RELEASE_KEY, line),
            (
                "sha256:2",
                EVENT_KEY,
                json!({"yank": "1.0.0", "undo": true, "at": "2026-01-02T00:00:00.5Z"}),
            ),
            (
                "sha256:3",
                EVENT_KEY,
                json!({"yank": "1.0.0", "reason": "bad", "at": "2026-01-02T00:00:01Z"}),
            ),
            (
                "sha256:4",
                EVENT_KEY,
                json!({"yank": "1.0.0", "undo": true, "at": "2026-01-02T00:00:00Z"}),
            ),
            (
                "sha256:5",
                EVENT_KEY,
                json!({"tag": "beta", "version": "1.0.0", "at": "2026-01-01T00:00:00Z"}),
            ),
            (
                "sha256:6",
                EVENT_KEY,
                json!({"tag": "old", "version": "1.0.0", "at": "2026-01-01T00:00:00Z"}),
            ),
            (
                "sha256:7",
                EVENT_KEY,
                json!({"tag": "old", "version": "0.9.0", "at": "2026-01-01T00:00:01Z"}),
            ),
            ("sha256:8", EVENT_KEY, json!({"movedTo": "acme/site", "at": "2026-01-01T00:00:01Z"})),
            ("sha256:9", EVENT_KEY, json!({"yank": "1.0.0", "at": "yesterday"})),
        ]);
        let lines = entries.releases("acme/web", &tags("1.0.0"));
        assert_eq!(lines[0].yanked, Yanked::Reason("bad".to_owned()));
        assert_eq!(lines[0].tags, ["beta"]);
        assert_eq!(lines[0].moved_to.as_deref(), Some("acme/site"));
    }
}
