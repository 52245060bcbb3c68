//! Closures: their content, how they become outdated, and how a repair makes them exact.

use std::fs;
use std::path::Path;

use mu_hub::{Hub, Notice, Place, Publication};
use serde_json::{Value, json};

use crate::support::{hub_file, publication, with_keys};

fn hub(folder: &Path) -> Hub {
    Hub::init(&Place::folder(folder)).expect("can be made").0
}

/// A version with dependencies.
fn needing(name: &str, version: &str, dependencies: Value) -> Publication {
    with_keys(name, version, "x", json!({ "dependencies": dependencies }))
}

/// The names in the closure of a package; `None` if there is no such file.
fn closure(folder: &Path, name: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(folder.join(format!("closures/{name}.json"))).ok()?;
    let file: Value = serde_json::from_str(&text).expect("is JSON");
    let names = file["packages"].as_array().expect("is a list");
    Some(names.iter().map(|name| name.as_str().expect("is text").to_owned()).collect())
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

fn findings(hub: &Hub) -> Vec<String> {
    let report = hub.check(false, &mut |_| {}).expect("can be read");
    report.findings.iter().map(|one| format!("{}: {}", one.path, one.what)).collect()
}

#[test]
fn a_closure_is_what_any_version_leads_to() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    assert_eq!(hub_file(folder.path())["closures"], "closures/");
    for package in [
        publication("base", "1.0.0", "x"),
        publication("acme/base", "1.0.0", "x"),
        // A dependency without a namespace is looked for beside its dependent first.
        needing("acme/lib", "1.0.0", json!(["base#^1", "hub.mu.com/away#^1"])),
        needing("acme/lib", "2.0.0", json!(["https://hub.mu.com/base#^1"])),
        needing("other/app", "1.0.0", json!([{"ref": "acme/lib#^1"}, "base", "nowhere"])),
    ] {
        hub.publish(&package).expect("is fine");
    }
    hub.publish(&needing("acme/lib", "3.0.0", json!(["./folder"]))).expect_err("is nobody else's");
    let of = |name: &str| closure(folder.path(), name);
    assert_eq!(of("base"), names(&[]));
    assert_eq!(of("acme/lib"), names(&["acme/base", "base"]));
    assert_eq!(of("other/app"), names(&["acme/base", "acme/lib", "base"]));
    hub.notice("acme/lib", "2.0.0", Notice::Yanked, Some("leaks")).expect("is there");
    assert_eq!(of("acme/lib"), names(&["acme/base", "base"]), "a lock may still name it");
    assert!(findings(&hub).is_empty());
}

#[test]
fn an_old_closure_is_no_fault_and_a_repair_makes_it_new() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    for package in [
        publication("c", "1.0.0", "x"),
        publication("b", "1.0.0", "x"),
        needing("a", "1.0.0", json!(["b"])),
        needing("b", "1.1.0", json!(["c", "a"])),
    ] {
        hub.publish(&package).expect("is fine");
    }
    let of = |name: &str| closure(folder.path(), name);
    assert_eq!((of("a"), of("b")), (names(&["b"]), names(&["a", "c"])));
    assert!(findings(&hub).is_empty(), "a closure may be older than what it is made of");
    hub.publish(&needing("a", "1.0.1", json!(["b"]))).expect("is fine");
    assert_eq!(of("a"), names(&["b", "c"]), "a new version knows what its dependencies know now");

    fs::write(folder.path().join("closures/a.json"), r#"{"packages":["gone","b"]}"#)
        .expect("is ours");
    fs::remove_file(folder.path().join("closures/c.json")).expect("is there");
    assert!(findings(&hub).is_empty(), "these are hints");
    assert!(hub.check(true, &mut |_| {}).expect("can be repaired").is_sound());
    assert_eq!((of("a"), of("c")), (names(&["b", "c"]), names(&[])));
}

#[test]
fn a_closure_that_is_none_is_found_and_mended() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    hub.publish(&publication("b", "1.0.0", "x")).expect("is fine");
    hub.publish(&needing("a", "1.0.0", json!(["b"]))).expect("is fine");
    let path = folder.path().join("closures/a.json");
    let many: Vec<String> = (0..5_000).map(|number| format!("n{number}")).collect();
    for nonsense in
        ["nonsense", "{}", r#"{"packages":["../x"]}"#, &json!({ "packages": many }).to_string()]
    {
        fs::write(&path, nonsense).expect("is ours");
        assert_eq!(findings(&hub), ["closures/a.json: it is not a list of packages"]);
        // The next change of the package does not use it.
        hub.tag("a", "1.0.0", &mu_hub::Tags::Set(vec!["lts".to_owned()])).expect("is there");
        hub.tag("a", "1.0.0", &mu_hub::Tags::Set(Vec::new())).expect("is there");
        assert_eq!(closure(folder.path(), "a"), names(&["b"]), "{nonsense:.40}");
    }
    fs::write(&path, "nonsense").expect("is ours");
    fs::write(folder.path().join("closures/gone.json"), r#"{"packages":[]}"#).expect("is ours");
    let report = hub.check(true, &mut |_| {}).expect("can be repaired");
    assert!(report.is_sound() && report.findings.len() == 2, "{report:?}");
    assert_eq!(closure(folder.path(), "a"), names(&["b"]));
    assert!(!folder.path().join("closures/gone.json").exists(), "no package has that name");
    assert!(findings(&hub).is_empty());
}

#[test]
fn a_hub_without_closures_gets_them_by_a_repair() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    hub.publish(&publication("b", "1.0.0", "x")).expect("is fine");
    hub.publish(&needing("a", "1.0.0", json!(["b"]))).expect("is fine");
    let mut file = hub_file(folder.path());
    file.as_object_mut().expect("is an object").remove("closures");
    fs::write(folder.path().join("hub.json"), file.to_string()).expect("is ours");
    fs::remove_dir_all(folder.path().join("closures")).expect("is there");
    hub.publish(&publication("c", "1.0.0", "x")).expect("is fine");
    assert_eq!(closure(folder.path(), "c"), None, "some would be as good as none");
    assert!(findings(&hub).is_empty());
    hub.check(true, &mut |_| {}).expect("can be repaired");
    assert_eq!(hub_file(folder.path())["closures"], "closures/");
    assert_eq!(closure(folder.path(), "a"), names(&["b"]));
    assert_eq!(closure(folder.path(), "c"), names(&[]));
}
