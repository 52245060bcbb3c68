//! The limits of a version's metadata, and what happens to versions that are older than the limits.

use std::fs;
use std::path::Path;

use mu_hub::{Hub, Place, Tags};
use serde_json::{Value, json};

use crate::support::{lines, publication, with_keys};

fn hub(folder: &Path) -> Hub {
    Hub::init(&Place::folder(folder)).expect("can be made").0
}

/// Adds a version to the hub's index as it was possible before there were limits.
fn publish_before(folder: &Path, hub: &Hub, name: &str, keys: Value) {
    hub.publish(&publication(name, "1.0.0", "x")).expect("is fine");
    let mut line = lines(folder, name).remove(0);
    line.extend(keys.as_object().expect("is an object").clone());
    let index = folder.join(format!("index/{name}.jsonl"));
    fs::write(index, format!("{}\n", Value::Object(line))).expect("is ours");
}

#[test]
fn a_version_that_says_too_much_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    let capabilities: Vec<String> = (0..1_001).map(|number| format!("g/v1/K{number}")).collect();
    for (keys, expected) in [
        (json!({ "provides": capabilities }), "`provides` has 1001 entries, and at most 1000"),
        (
            json!({ "description": "a".repeat(900 << 10) }),
            "`description` is 921600 bytes long, and at most 4096",
        ),
    ] {
        let error = hub.publish(&with_keys("a", "1.0.0", "x", keys)).expect_err("is too much");
        let text = error.to_string();
        assert!(text.starts_with("a 1.0.0 is refused: ") && text.contains(expected), "{text}");
    }
    assert!(!folder.path().join("packs").exists());
    let most = json!({ "provides": capabilities[..1_000] });
    hub.publish(&with_keys("a", "1.0.0", "x", most)).expect("is as much as there may be");
    assert!(hub.check(false, &mut |_| {}).expect("can be read").findings.is_empty());
}

#[test]
fn the_catalog_keeps_the_beginning_of_what_was_published_before_there_were_limits() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    let long =
        json!({ "description": "long ".repeat(180 << 10), "keywords": ["a".repeat(65), "b"] });
    publish_before(folder.path(), &hub, "old/long", long.clone());
    // As it was written then.
    let path = folder.path().join("catalog.jsonl");
    let before = json!({
        "name": "old/long", "latest": "1.0.0",
        "description": long["description"], "keywords": long["keywords"],
    });
    fs::write(&path, format!("{before}\n")).expect("is ours");
    let report = hub.check(false, &mut |_| {}).expect("can be read");
    assert!(report.is_sound(), "{report:?}");
    hub.publish(&publication("new", "1.0.0", "x")).expect("is fine");
    let catalog = fs::read_to_string(&path).expect("is there");
    let line: Value = catalog
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .find(|line: &Value| line["name"] == "old/long")
        .expect("is there still");
    let description = line["description"].as_str().expect("is text");
    assert!(description.len() <= 4_096 && description.ends_with('…'), "{}", description.len());
    assert_eq!(line["keywords"], json!(["b"]));
    assert!(hub.check(false, &mut |_| {}).expect("can be read").findings.is_empty());
}

#[test]
fn a_version_has_a_hundred_tags_at_most() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    hub.publish(&publication("a", "1.0.0", "x")).expect("is fine");
    let tags = |range: std::ops::Range<usize>| -> Vec<String> {
        range.map(|number| format!("tag{number}")).collect()
    };
    assert!(hub.tag("a", "1.0.0", &Tags::Set(tags(0..100))).expect("are as many as may be"));
    for more in [Tags::Add(tags(100..101)), Tags::Set(tags(0..5_000))] {
        let error = hub.tag("a", "1.0.0", &more).expect_err("are too many");
        let text = error.to_string();
        assert!(text.contains("tags, and at most 100 are allowed"), "{text}");
    }
    assert_eq!(lines(folder.path(), "a")[0]["tags"], json!(tags(0..100)));
    publish_before(folder.path(), &hub, "old", json!({ "tags": tags(0..5_000) }));
    assert!(hub.tag("old", "1.0.0", &Tags::Remove(tags(0..1))).expect("fewer are always fine"));
}
