//! The limits of a version's metadata when it is published, and what a catalog keeps of longer metadata.
//!
//! All publishing code uses these limits: packing, the writers of folders and buckets, a hub's server. A
//! version that is older than a limit stays as it is. Readers have their own limits.

use serde_json::{Map, Value};

/// The longest description, in bytes.
pub const LONGEST_DESCRIPTION: usize = 4 << 10;

/// How many capabilities one version may provide and require together: a hub has a file for each.
pub const MOST_CAPABILITIES: usize = 1_000;

/// How many tags may be on one version.
pub const MOST_TAGS: usize = 100;

/// The longest index line, in bytes, without the parts that the hub adds.
pub const LONGEST_PUBLISHED_LINE: usize = 256 << 10;

/// Keys with one text, and its largest size in bytes.
const TEXTS: [(&str, usize); 7] = [
    ("description", LONGEST_DESCRIPTION),
    ("license", 1 << 10),
    ("website", 2 << 10),
    ("repository", 2 << 10),
    ("appVersion", 512),
    ("movedTo", 512),
    ("defaultChannel", 512),
];

/// Keys with a list: the largest number of entries, and the largest size of each in bytes.
const LISTS: [(&str, usize, usize); 10] = [
    ("keywords", 50, 64),
    ("maintainers", 100, 512),
    ("provides", MOST_CAPABILITIES, 512),
    ("requires", MOST_CAPABILITIES, 512),
    ("dependencies", 1_000, 2 << 10),
    ("replaces", 100, 512),
    ("conflicts", 100, 512),
    ("constraints", 100, 512),
    ("channels", 100, 512),
    ("tags", MOST_TAGS, 512),
];

/// Keys that a hub adds to those of a manifest.
const ADDED: [&str; 6] = ["digest", "archive", "size", "urls", "published", "publishedBy"];

/// Whether an app version, which is free text, can be part of an archive's name.
pub fn is_in_archive_name(app_version: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    (1..=64).contains(&app_version.len()) && app_version.chars().all(is_plain)
}

/// The media type of a body that is an index line, a line break, and the archive: of a copy of a package of another format,
/// whose archive does not say all that the line does.
pub const COPY_TYPE: &str = "application/vnd.mu.copy";

/// The longest signed statement about an archive that is kept beside it, in bytes.
pub const LONGEST_PROVENANCE: u64 = 1 << 20;

/// The header with which a publisher names the commit that an archive was made from, as 40 hex digits.
pub const COMMIT_HEADER: &str = "mu-commit";

/// A limit that an index line does not keep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {size} {unit}, and at most {most} are allowed")]
pub struct Exceeded {
    what: String,
    size: usize,
    unit: &'static str,
    most: usize,
}

impl Exceeded {
    fn long(what: String, size: usize, most: usize) -> Result<(), Self> {
        let what = format!("{what} is");
        if size > most { Err(Self { what, size, unit: "bytes long", most }) } else { Ok(()) }
    }

    fn many(what: &str, size: usize, most: usize) -> Result<(), Self> {
        let what = format!("{what} has");
        if size > most { Err(Self { what, size, unit: "entries", most }) } else { Ok(()) }
    }
}

/// Checks the index line of a version that is about to be published.
///
/// # Errors
///
/// The first key that exceeds its limit, with its size and the limit.
pub fn check_line(line: &Map<String, Value>) -> Result<(), Exceeded> {
    for (key, longest) in TEXTS {
        if let Some(value) = line.get(key) {
            Exceeded::long(format!("`{key}`"), length(value), longest)?;
        }
    }
    for (key, most, longest) in LISTS {
        let Some(value) = line.get(key) else { continue };
        Exceeded::many(&format!("`{key}`"), count(value), most)?;
        match value {
            Value::Array(entries) => {
                for entry in entries {
                    Exceeded::long(format!("an entry of `{key}`"), length(entry), longest)?;
                }
            }
            Value::Object(entries) => {
                for (name, entry) in entries {
                    let both = name.len() + length(entry);
                    Exceeded::long(format!("an entry of `{key}`"), both, longest)?;
                }
            }
            other => Exceeded::long(format!("`{key}`"), length(other), longest)?,
        }
    }
    let capabilities = ["provides", "requires"].map(|key| line.get(key).map_or(0, count));
    Exceeded::many("`provides` with `requires`", capabilities.iter().sum(), MOST_CAPABILITIES)?;
    let said: Map<String, Value> = line
        .iter()
        .filter(|(key, _)| !ADDED.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let length = length(&Value::Object(said));
    Exceeded::long("its index line".to_owned(), length, LONGEST_PUBLISHED_LINE)
}

/// What a catalog keeps of `value`, which an index line has for `key`; `None` if it keeps nothing.
///
/// A description that is too long is cut, and of a reason remains that there is one. Keywords and other texts that
/// are too long are left out.
pub fn in_catalog(key: &str, value: &Value) -> Option<Value> {
    if let Some((_, most, longest)) = LISTS.iter().find(|(list, ..)| *list == key) {
        let kept =
            value.as_array()?.iter().filter(|one| one.is_string() && length(one) <= *longest);
        let kept: Vec<Value> = kept.take(*most).cloned().collect();
        return (!kept.is_empty()).then_some(Value::Array(kept));
    }
    if *value == Value::Bool(true) {
        return Some(value.clone());
    }
    let text = value.as_str()?;
    let longest = TEXTS.iter().find(|(other, _)| *other == key).map_or(512, |(_, most)| *most);
    if text.len() <= longest {
        return Some(value.clone());
    }
    let cut = &text[..text.floor_char_boundary(longest.saturating_sub('…'.len_utf8()))];
    match key {
        "description" => Some(format!("{cut}…").into()),
        "yanked" | "deprecated" => Some(true.into()),
        _ => None,
    }
}

/// The size of a value in bytes: of a text as it is, of anything else as JSON.
fn length(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), str::len)
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(entries) => entries.len(),
        Value::Object(entries) => entries.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn exceeded(line: &Value) -> Option<String> {
        check_line(line.as_object().expect("is an object")).err().map(|error| error.to_string())
    }

    #[test]
    fn what_is_too_much_is_told_with_its_key_its_size_and_the_limit() {
        let many = |count: usize| -> Vec<String> {
            (0..count).map(|number| format!("a.co/v1/K{number}")).collect()
        };
        for (line, expected) in [
            (
                json!({ "description": "ä".repeat(2_049) }),
                "`description` is 4098 bytes long, and at most 4096 are allowed",
            ),
            (
                json!({ "keywords": many(51) }),
                "`keywords` has 51 entries, and at most 50 are allowed",
            ),
            (
                json!({ "keywords": ["a".repeat(65)] }),
                "an entry of `keywords` is 65 bytes long, and at most 64 are allowed",
            ),
            (
                json!({ "maintainers": [{ "name": "a".repeat(600) }] }),
                "an entry of `maintainers` is 611 bytes long, and at most 512 are allowed",
            ),
            (
                json!({ "license": "a".repeat(1_025) }),
                "`license` is 1025 bytes long, and at most 1024 are allowed",
            ),
            (
                json!({ "website": "a".repeat(2_049) }),
                "`website` is 2049 bytes long, and at most 2048 are allowed",
            ),
            (
                json!({ "provides": many(501), "requires": many(500) }),
                "`provides` with `requires` has 1001 entries, and at most 1000 are allowed",
            ),
            (
                json!({ "dependencies": many(1_001) }),
                "`dependencies` has 1001 entries, and at most 1000 are allowed",
            ),
            (
                json!({ "constraints": { "os": "a".repeat(511) } }),
                "an entry of `constraints` is 513 bytes long, and at most 512 are allowed",
            ),
            (
                json!({ "new": "a".repeat(LONGEST_PUBLISHED_LINE) }),
                "its index line is 262154 bytes long, and at most 262144 are allowed",
            ),
        ] {
            assert_eq!(exceeded(&line).as_deref(), Some(expected));
        }
        let fine = json!({
            "description": "a".repeat(LONGEST_DESCRIPTION),
            "keywords": many(50),
            "provides": many(600),
            "requires": many(400),
            "dependencies": many(1_000),
            "maintainers": [{ "name": "Ada", "email": "ada@acme.example" }],
            "urls": ["a".repeat(LONGEST_PUBLISHED_LINE)],
        });
        assert_eq!(exceeded(&fine), None);
    }

    #[test]
    fn a_catalog_keeps_the_beginning_of_a_description_and_the_keywords_that_fit() {
        let kept = |key: &str, value: Value| in_catalog(key, &value);
        let long = format!("{}ä", "a".repeat(LONGEST_DESCRIPTION - 4));
        let cut = kept("description", json!(format!("{long}äa"))).expect("is cut");
        assert_eq!(cut, json!(format!("{}…", "a".repeat(LONGEST_DESCRIPTION - 4))));
        assert_eq!(kept("description", json!(&long)), Some(json!(long)));
        assert_eq!(kept("description", json!(7)), None);
        let keywords = json!(["logs", "a".repeat(65), 7, "queue"]);
        assert_eq!(kept("keywords", keywords), Some(json!(["logs", "queue"])));
        assert_eq!(kept("keywords", json!(vec!["a"; 60])), Some(json!(vec!["a"; 50])));
        assert_eq!(kept("keywords", json!("logs")), None);
        assert_eq!(kept("appVersion", json!("a".repeat(513))), None);
        assert_eq!(kept("movedTo", json!("acme/new")), Some(json!("acme/new")));
    }
}
