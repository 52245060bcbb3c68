//! What publishing, yanking and tagging write and refuse.

use std::fs;

use mu_hub::{Hub, HubError, Notice, Place, Published, Tags};
use serde_json::json;

use crate::support::{archive, catalog, hub_file, lines, log, publication, with_keys};
use mu_testing::{GoogleServer, ReservedPort};

fn hub() -> (tempfile::TempDir, Hub) {
    let folder = tempfile::tempdir().expect("there is room");
    let (hub, is_new) = Hub::init(&Place::folder(folder.path())).expect("can be made");
    assert!(is_new);
    (folder, hub)
}

#[test]
fn a_version_is_published_once() {
    let (folder, hub) = hub();
    let first = with_keys(
        "aws/ec2",
        "1.0.0",
        "a",
        json!({"description": "VMs", "provides": ["c.mu.com/v1/VM"]}),
    );
    assert_eq!(hub.publish(&first).expect("is fine"), Published::New);
    let bytes = fs::read(folder.path().join("packs/aws/ec2/ec2-1.0.0.tgz")).expect("is there");
    assert_eq!(bytes, first.archive);
    let index = lines(folder.path(), "aws/ec2");
    assert_eq!(index.len(), 1);
    assert_eq!(index[0]["size"], bytes.len());
    assert!(index[0]["digest"].as_str().is_some_and(|digest| digest.starts_with("h1:")));
    assert_eq!(hub_file(folder.path())["generation"], 1);
    assert_eq!(log(folder.path()), ["aws/ec2"]);
    assert_eq!(catalog(folder.path())["aws/ec2"], "1.0.0");
    let capability = fs::read_to_string(folder.path().join("capabilities/c.mu.com/v1/VM.json"));
    assert_eq!(capability.expect("is there"), "{\"packages\":[\"aws/ec2\"]}\n");

    assert_eq!(hub.publish(&first).expect("is the same"), Published::Same);
    let other = publication("aws/ec2", "1.0.0", "b");
    let error = hub.publish(&other).expect_err("is other content");
    assert!(matches!(error, HubError::Exists { .. }), "{error}");
    assert_eq!(lines(folder.path(), "aws/ec2"), index);
    assert_eq!(
        fs::read(folder.path().join("packs/aws/ec2/ec2-1.0.0.tgz")).expect("is there"),
        bytes
    );
    assert_eq!(hub_file(folder.path())["generation"], 1);
}

#[test]
fn an_archive_that_was_left_behind_is_neither_taken_nor_replaced() {
    let (folder, hub) = hub();
    let left = folder.path().join("packs/a/a-1.0.0.tgz");
    fs::create_dir_all(left.parent().expect("has one")).expect("can be made");
    fs::write(&left, "left behind").expect("is ours");
    let package = publication("a", "1.0.0", "a");
    assert_eq!(hub.publish(&package).expect("is fine"), Published::New);
    let urls = lines(folder.path(), "a")[0]["urls"].clone();
    let place = urls[0].as_str().expect("is text");
    assert!(place.starts_with("packs/a/a-1.0.0~"), "{place}");
    assert_eq!(fs::read(folder.path().join(place)).expect("is there"), package.archive);
    assert_eq!(fs::read(&left).expect("is there"), b"left behind");
    let report = hub.check(true, &mut |_| {}).expect("can be read");
    assert!(report.is_sound() && !left.exists(), "{report:?}");
}

#[test]
fn yanks_tags_and_moves_change_their_line_alone() {
    let (folder, hub) = hub();
    for version in ["1.0.0", "1.1.0"] {
        let package = with_keys("a", version, version, json!({"provides": ["c/v1/K"], "x": 1}));
        hub.publish(&package).expect("is fine");
    }
    let before = lines(folder.path(), "a");
    assert!(hub.notice("a", "1.1.0", Notice::Yanked, Some("leaks")).expect("is there"));
    assert!(!hub.notice("a", "1.1.0", Notice::Yanked, Some("leaks")).expect("is there"));
    let index = lines(folder.path(), "a");
    assert_eq!(index[0], before[0]);
    assert_eq!(index[1]["yanked"], "leaks");
    assert_eq!(catalog(folder.path())["a"], "1.0.0");
    assert!(hub.notice("a", "1.1.0", Notice::Yanked, None).expect("is there"));
    assert_eq!(lines(folder.path(), "a"), before);

    hub.tag("a", "1.0.0", &Tags::Add(vec!["beta".to_owned(), "old".to_owned()])).expect("is there");
    hub.tag("a", "1.1.0", &Tags::Add(vec!["beta".to_owned()])).expect("is there");
    let index = lines(folder.path(), "a");
    assert_eq!((&index[0]["tags"], &index[1]["tags"]), (&json!(["old"]), &json!(["beta"])));
    hub.tag("a", "1.0.0", &Tags::Set(Vec::new())).expect("is there");
    assert!(!hub.tag("a", "1.1.0", &Tags::Remove(vec!["other".to_owned()])).expect("is there"));
    assert!(hub.tag("a", "1.1.0", &Tags::Remove(vec!["beta".to_owned()])).expect("is there"));
    assert_eq!(lines(folder.path(), "a"), before);

    hub.moved("a", Some("hub.mu.com/b")).expect("is there");
    assert!(lines(folder.path(), "a").iter().all(|line| line["movedTo"] == "hub.mu.com/b"));
    for version in ["1.0.0", "1.1.0"] {
        hub.notice("a", version, Notice::Yanked, Some("")).expect("is there");
    }
    let capability = fs::read_to_string(folder.path().join("capabilities/c/v1/K.json"));
    assert_eq!(capability.expect("is there"), "{\"packages\":[]}\n");

    for error in [
        hub.notice("a", "2.0.0", Notice::Yanked, Some("")),
        hub.notice("b", "1.0.0", Notice::Yanked, Some("")),
        hub.moved("b", None),
    ] {
        assert!(matches!(error, Err(HubError::NotFound { .. })), "{error:?}");
    }
    assert!(hub.tag("a", "1.0.0", &Tags::Add(vec!["v1.2.3".to_owned()])).is_err());
    assert!(hub.notice("../a", "1.0.0", Notice::Yanked, Some("")).is_err());
    assert!(hub.check(false, &mut |_| {}).expect("can be read").findings.is_empty());
}

#[test]
fn what_does_not_belong_together_is_refused_and_leaves_nothing() {
    let (folder, hub) = hub();
    let fine = publication("a/b", "1.0.0", "x");
    let with = |key: &str, value: serde_json::Value| {
        let mut wrong = fine.clone();
        wrong.line.insert(key.to_owned(), value);
        wrong
    };
    let mut cut = fine.clone();
    cut.archive = cut.archive.slice(..cut.archive.len() - 9);
    let mut hostile = fine.clone();
    hostile.archive = archive(&[("Mu.yaml", "name: a/b\nversion: 1.0.0\n"), (".git/config", "x")]);
    let mut without = fine.clone();
    without.archive = archive(&[("README.md", "x")]);
    let mut two = fine.clone();
    two.archive = archive(&[("Mu.yaml", "name: a/b\nversion: 1.0.0\n"), ("Mu.json", "{}")]);
    for (publication, expected) in [
        (with("name", json!("a/c")), "its name is a/b, not a/c"),
        (with("version", json!("1.0.1")), "its version is 1.0.0, not 1.0.1"),
        (with("version", json!("1.0")), "the version `1.0` is refused"),
        (with("name", json!("../b")), "the name `../b` is refused"),
        (with("name", json!(7)), "the name `` is refused"),
        (with("archive", json!("sha256:00")), "its digest is sha256:"),
        (with("digest", json!("h1:00")), "its content's digest is h1:"),
        (with("size", json!(1)), "its size is"),
        (with("tags", json!(["1.0"])), "the tag `1.0` is refused"),
        (with("provides", json!(["../../x"])), "the capability `../../x` is refused"),
        (with("description", json!("x".repeat(1 << 20))), "its index line is longer"),
        (cut, "is refused"),
        (hostile, "is refused"),
        (without, "it has no Mu.yaml"),
        (two, "contains both `Mu.yaml` and `Mu.json`"),
    ] {
        let error = hub.publish(&publication).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let left: Vec<_> = fs::read_dir(folder.path())
        .expect("is there")
        .map(|entry| entry.expect("can be read").file_name())
        .collect();
    assert!(left.iter().all(|name| name == "hub.json" || name == "hub.lock"), "{left:?}");
}

#[test]
fn a_place_without_a_hub_is_said_to_be_none() {
    let folder = tempfile::tempdir().expect("there is room");
    for place in [folder.path().to_owned(), folder.path().join("missing")] {
        let error = Hub::open(&Place::folder(&place)).expect_err("is none");
        assert!(matches!(error, HubError::Missing { .. }), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("mu hub init")));
    }
    fs::write(folder.path().join("hub.json"), "{\"hub\":2}").expect("is ours");
    let error = Hub::open(&Place::folder(folder.path())).expect_err("is newer").to_string();
    assert!(error.contains("version 2"), "{error}");
    fs::write(folder.path().join("hub.json"), "{\"hub\":1,\"index\":\"../\"}").expect("is ours");
    assert!(Hub::open(&Place::folder(folder.path())).is_err());
}

#[test]
fn places_are_folders_and_buckets() {
    let here = std::path::Path::new("/here");
    let parse = |text: &str| {
        Place::parse(text, here, [("AWS_REGION", "eu-west-1")]).map(|place| format!("{place:?}"))
    };
    assert_eq!(parse("hub").expect("is one"), "Place { name: \"/here/hub\", .. }");
    assert_eq!(parse("file:///srv/hub").expect("is one"), "Place { name: \"/srv/hub\", .. }");
    assert_eq!(
        parse("s3://bucket/a/b/").expect("is one"),
        "Place { name: \"s3://bucket/a/b\", .. }"
    );
    for bucket in ["gs://bucket/a", "az://container/a", "abfss://c@account.dfs.core.windows.net/a"]
    {
        assert_eq!(parse(bucket).expect("is one"), format!("Place {{ name: {bucket:?}, .. }}"));
    }
    for wrong in
        ["", "s3://", "s3:///a", "gopher://x/y", "s3://b/../c", "gs://", "gs://a@b/c", "az://a:b/c"]
    {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

/// The error of opening a hub in a bucket that cannot be opened.
fn refusal(place: &str, variables: &[(&str, &str)]) -> String {
    let place = Place::parse(place, std::path::Path::new("/"), variables.iter().copied());
    let error = Hub::open(&place.expect("is one")).expect_err("leads nowhere");
    let causes =
        std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    causes.map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ")
}

#[test]
fn what_is_missing_to_open_a_bucket_is_said() {
    let account = refusal("az://container/a", &[]);
    assert!(account.contains("set AZURE_STORAGE_ACCOUNT_NAME"), "{account}");
    let elsewhere = refusal("az://container@account.example.com/a", &[]);
    assert!(elsewhere.contains("account.example.com"), "{elsewhere}");
    let file = refusal("gs://bucket/a", &[("GOOGLE_SERVICE_ACCOUNT", "/nowhere.json")]);
    assert!(file.contains("/nowhere.json"), "{file}");
    // A token is sent over plain http only to this machine.
    let plain = [("GOOGLE_BASE_URL", "http://storage.example.com"), ("GOOGLE_BEARER_TOKEN", "x")];
    let plain = refusal("gs://bucket/a", &plain);
    assert!(plain.contains("URL scheme is not allowed"), "{plain}");
}

#[test]
fn a_bucket_that_is_not_there_is_to_be_made_first() {
    let google = GoogleServer::start();
    let place = Place::parse("gs://nothing/hub", std::path::Path::new("/"), google.variables());
    let error = Hub::init(&place.expect("is one")).expect_err("is not there");
    assert!(error.hint().is_some_and(|hint| hint.contains("must exist")), "{error}");
}

#[test]
fn without_credentials_nobody_waits_for_a_cloud_that_is_not_there() {
    let nobody = ReservedPort::take();
    let said = refusal("s3://bucket/a", &[("AWS_METADATA_ENDPOINT", &nobody.url(""))]);
    assert!(
        said.contains("no credentials are set") && said.contains("no cloud metadata service"),
        "{said}"
    );
}
