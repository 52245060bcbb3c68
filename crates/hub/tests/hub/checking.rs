//! The problems that a check finds, and what a repair does about them.

use std::fs;
use std::path::Path;

use mu_hub::{Finding, Hub, Place};
use serde_json::json;

use crate::support::{catalog, hub_file, publication, with_keys};

fn hub(folder: &Path) -> Hub {
    let (hub, _) = Hub::init(&Place::folder(folder)).expect("can be made");
    for (name, version) in [("a", "1.0.0"), ("a", "1.1.0"), ("b/c", "1.0.0")] {
        let package = with_keys(name, version, version, json!({"provides": ["g/v1/K"]}));
        hub.publish(&package).expect("is fine");
    }
    hub
}

/// Breaks something; returns what a check then finds.
fn found(breaking: impl FnOnce(&Path)) -> Vec<(String, bool)> {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    assert!(hub.check(false, &mut |_| {}).expect("can be read").findings.is_empty());
    breaking(folder.path());
    let report = hub.check(false, &mut |_| {}).expect("can be read");
    assert_eq!(report.is_sound(), report.findings.iter().all(|finding| finding.is_leftover));
    let text =
        |finding: &Finding| (format!("{}: {}", finding.path, finding.what), finding.is_leftover);
    report.findings.iter().map(text).collect()
}

fn one(breaking: impl FnOnce(&Path)) -> (String, bool) {
    let mut found = found(breaking);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).expect("is there");
    fs::write(path, change(text)).expect("is ours");
}

#[test]
fn everything_that_is_wrong_is_found() {
    let archive = "packs/a/a-1.0.0.tgz";
    let (what, _) = one(|hub| fs::remove_file(hub.join(archive)).expect("is there"));
    assert_eq!(what, "index/a.jsonl: the archive of a 1.0.0 is missing");
    let (what, is_leftover) = one(|hub| {
        let other = fs::read(hub.join("packs/a/a-1.1.0.tgz")).expect("is there");
        fs::write(hub.join(archive), other).expect("is ours");
    });
    assert!(what.contains("its digest is sha256:") && !is_leftover, "{what}");
    let (what, _) = one(|hub| fs::write(hub.join(archive), "x").expect("is ours"));
    assert!(what.starts_with("packs/a/a-1.0.0.tgz: the archive of a 1.0.0 is refused: "), "{what}");
    let (what, _) = one(|hub| edit(&hub.join("index/a.jsonl"), |text| text + "<html>\n"));
    assert!(what.starts_with("index/a.jsonl: line 3: it is not an index line"), "{what}");
    let twice = one(|hub| {
        edit(&hub.join("index/a.jsonl"), |text| {
            let last = text.lines().last().expect("has lines").to_owned();
            text + &last
        });
    });
    assert_eq!(twice, ("index/a.jsonl: a 1.1.0 appears twice".to_owned(), false));
    let (what, is_leftover) =
        one(|hub| fs::write(hub.join("packs/a/other.tgz"), "x").expect("is ours"));
    assert_eq!((what.as_str(), is_leftover), ("packs/a/other.tgz: no version uses it", true));
    let (what, is_leftover) =
        one(|hub| fs::write(hub.join("index/a.jsonl#1"), "x").expect("is ours"));
    assert!(what.ends_with("index/a.jsonl#1: was not written completely") && is_leftover, "{what}");
    let (what, is_leftover) = one(|hub| {
        edit(&hub.join("catalog.jsonl"), |text| text.replace("1.1.0", "9.0.0"));
    });
    assert_eq!(
        (what.as_str(), is_leftover),
        ("catalog.jsonl: it disagrees with the index about a", false)
    );
    let (what, _) = one(|hub| {
        edit(&hub.join("capabilities/g/v1/K.json"), |text| text.replace("b/c", "x"));
    });
    assert_eq!(what, "capabilities/g/v1/K.json: it disagrees with the index about b/c and 1 more");
    let (what, _) = one(|hub| fs::remove_file(hub.join("log/000000.txt")).expect("is there"));
    assert_eq!(what, "hub.json: the log does not mention generation 3");
}

#[test]
fn a_repair_writes_again_what_the_index_says_and_touches_nothing_else() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    let path = |name: &str| folder.path().join(name);
    let index = fs::read(path("index/a.jsonl")).expect("is there");
    fs::remove_file(path("catalog.jsonl")).expect("is there");
    fs::write(path("capabilities/g/v1/K.json"), "nonsense").expect("is ours");
    fs::create_dir_all(path("capabilities/g/v1/X")).expect("can be made");
    fs::write(path("capabilities/g/v1/X/Y.json"), r#"{"packages":["a"]}"#).expect("is ours");
    fs::remove_file(path("log/000000.txt")).expect("is there");
    fs::write(path("packs/a/other.tgz"), "x").expect("is ours");
    fs::write(path("index/a.jsonl#7"), "x").expect("is ours");
    fs::create_dir_all(path("pending")).expect("can be made");
    fs::write(path("pending/7.txt"), "b/c\n").expect("is ours");
    let before = hub_file(folder.path())["generation"].as_u64().expect("is a number");

    let report = hub.check(true, &mut |_| {}).expect("can be repaired");
    assert!(
        report.is_sound() && report.findings.iter().all(|finding| finding.is_repaired),
        "{report:?}"
    );
    assert!(report.findings.len() >= 7, "{report:?}");
    let report = hub.check(false, &mut |_| {}).expect("can be read");
    assert!(report.findings.is_empty(), "{report:?}");
    assert_eq!(fs::read(path("index/a.jsonl")).expect("is there"), index);
    assert_eq!(catalog(folder.path())["a"], "1.1.0");
    let after = hub_file(folder.path())["generation"].as_u64().expect("is a number");
    assert!(after > before + 900, "readers must not go by a log that lost lines: {before} {after}");
    hub.publish(&publication("d", "1.0.0", "x")).expect("is fine");
    assert!(hub.check(false, &mut |_| {}).expect("can be read").findings.is_empty());
}

#[test]
fn a_broken_index_is_left_to_people() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    let index = folder.path().join("index/a.jsonl");
    edit(&index, |text| text.replacen("{\"name\"", "{name\"", 1));
    let broken = fs::read(&index).expect("is there");
    let report = hub.check(true, &mut |_| {}).expect("can be read");
    assert!(!report.is_sound(), "{report:?}");
    assert_eq!(fs::read(&index).expect("is there"), broken);
    assert!(folder.path().join("packs/a/a-1.0.0.tgz").exists(), "its line may come back");
    let error = hub.publish(&publication("a", "2.0.0", "x")).expect_err("nothing is built on it");
    assert!(error.to_string().contains("line 1"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("mu hub check")));
    hub.publish(&publication("b/c", "2.0.0", "x")).expect("others go on");
}

#[test]
fn a_hub_that_was_made_by_hand_is_taken_as_it_is() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    for name in ["catalog.jsonl", "log/000000.txt"] {
        fs::remove_file(folder.path().join(name)).expect("is there");
    }
    fs::write(folder.path().join("hub.json"), "{\"hub\": 1, \"x\": 2}").expect("is ours");
    let report = hub.check(false, &mut |_| {}).expect("can be read");
    assert!(report.is_sound(), "{report:?}");
    hub.publish(&publication("d", "1.0.0", "x")).expect("is fine");
    let file = hub_file(folder.path());
    assert_eq!(
        (&file["x"], &file["generation"], &file["log"]),
        (&json!(2), &json!(1), &json!("log/"))
    );
    assert_eq!(catalog(folder.path()).len(), 3);
}

#[test]
fn a_generation_that_nobody_can_count_on_from_is_refused_and_repaired() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    let root = folder.path().join("hub.json");
    edit(&root, |text| text.replacen("\"generation\":3", "\"generation\":18446744073709551615", 1));
    let error = hub.publish(&publication("d", "1.0.0", "x")).expect_err("cannot be counted");
    assert!(error.to_string().contains("`mu hub check --repair` counts again"), "{error}");
    let report = hub.check(false, &mut |_| {}).expect("can be read");
    let finding = report.findings.iter().find(|finding| finding.path == "hub.json");
    let what = &finding.expect("is found").what;
    assert!(what.contains("18446744073709551615 is higher than any real one"), "{what}");
    let report = hub.check(true, &mut |_| {}).expect("can be repaired");
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(hub_file(folder.path())["generation"], 2_001);
    hub.publish(&publication("d", "1.0.0", "x")).expect("is fine again");
    assert_eq!(hub_file(folder.path())["generation"], 2_002);
    assert_eq!(catalog(folder.path()).len(), 3);
    assert!(hub.check(false, &mut |_| {}).expect("can be read").findings.is_empty());
}

#[test]
fn a_catalog_that_claims_to_be_ahead_of_its_hub_is_written_anew() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    let root = folder.path().join("hub.json");
    let ahead = "{\"generation\":18446744073709551615,\"bytes\":1}";
    edit(&root, |text| {
        let mut file: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
        file["catalog"] = serde_json::from_str(ahead).expect("is JSON");
        file.to_string()
    });
    hub.publish(&publication("d", "1.0.0", "x")).expect("is fine");
    assert_eq!(catalog(folder.path()).len(), 3);
    assert_eq!(hub_file(folder.path())["catalog"]["generation"], 4);
}

#[test]
fn a_folder_where_an_index_file_belongs_is_named_at_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    fs::create_dir_all(folder.path().join("index/d.jsonl")).expect("can be made");
    let error = hub.publish(&publication("d", "1.0.0", "x")).expect_err("has no room");
    let text = error.to_string();
    assert!(text.contains("`index/d.jsonl`") && text.contains("it is a folder"), "{text}");
    hub.publish(&publication("e", "1.0.0", "x")).expect("others go on");
}

#[test]
fn tokens_that_cannot_be_read_are_found_and_left_to_people() {
    let broken = |hub: &Path| {
        fs::create_dir_all(hub.join("private")).expect("can be made");
        fs::write(hub.join("private/tokens.json"), "{\"tokens\": [").expect("is ours");
    };
    let (what, is_leftover) = one(broken);
    assert!(what.starts_with("private/tokens.json: EOF while parsing"), "{what}");
    assert!(what.ends_with("nobody can publish") && !is_leftover, "{what}");
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    broken(folder.path());
    let report = hub.check(true, &mut |_| {}).expect("can be repaired");
    assert!(!report.is_sound(), "{report:?}");
}

#[cfg(unix)]
#[test]
fn links_are_found_and_not_followed() {
    use std::os::unix::fs::symlink;

    let elsewhere = tempfile::tempdir().expect("there is room");
    let at = elsewhere.path().to_owned();
    let found = found(move |hub| {
        fs::rename(hub.join("packs/a"), at.join("a")).expect("is ours");
        symlink(at.join("a"), hub.join("packs/a")).expect("is ours");
        // Other files in the same folder do not belong to the hub.
        symlink(&at, hub.join("site")).expect("is ours");
    });
    assert!(!found.iter().any(|(what, _)| what.starts_with("site")), "{found:?}");
    let links: Vec<_> =
        found.iter().filter(|(what, _)| what.starts_with("packs/a: it is a link")).collect();
    assert_eq!(links.len(), 1, "{found:?}");
    assert!(found.iter().any(|(what, _)| what.contains("the archive of a 1.0.0 is missing")));

    let folder = tempfile::tempdir().expect("there is room");
    let real = hub(folder.path());
    symlink(elsewhere.path().join("a"), folder.path().join("index/d.jsonl")).expect("is ours");
    symlink(elsewhere.path(), folder.path().join("packs/e")).expect("is ours");
    for name in ["d", "e"] {
        let error = real.publish(&publication(name, "1.0.0", "x")).expect_err("leads elsewhere");
        assert!(error.to_string().contains("it is a link"), "{error}");
    }
    assert!(!elsewhere.path().join("e-1.0.0.tgz").exists());
    // The folder itself may be a link, because its owner named it.
    let link = elsewhere.path().join("hub");
    symlink(folder.path(), &link).expect("is ours");
    let hub = Hub::open(&Place::folder(&link)).expect("is a hub");
    hub.publish(&publication("f", "1.0.0", "x")).expect("is fine");
}
