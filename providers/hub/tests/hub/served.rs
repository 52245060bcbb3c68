//! Honest hubs: on nginx, and in a folder.

use std::fs;

use mu_provider::conformance::{Fixture, releases};
use mu_provider::{ErrorKind, Found, Listing, Provider as _, Release, Silent};

use crate::client::Client;
use crate::place::{File, Hub, archive, at, digest_of, locked};
use mu_testing::Nginx;

const FILES: [File<'static>; 4] = [
    ("Mu.yaml", b"name: aws/ec2\n", false),
    ("deep/er/file.txt", b"deep", false),
    ("empty", b"", false),
    ("run.sh", b"#!/bin/sh\n", true),
];

/// A hub with two versions of `aws/ec2`.
fn hub() -> Hub {
    let hub = Hub::new(r#"{"hub": 1}"#);
    hub.publish("aws/ec2", "1.0.0", &archive(&FILES[..1]));
    hub.publish("aws/ec2", "1.2.0-rc.1+b", &archive(&FILES));
    hub
}

fn conforms(root: &str, other_kind: &str) {
    let client = Client::new();
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    Fixture {
        provider: &client.provider,
        location: at(root, "aws/ec2"),
        absent: at(root, "aws/ec3"),
        other_kind: Some(at(other_kind, "aws/ec2")),
        versions: vec!["1.0.0", "1.2.0-rc.1+b"],
        fetched: 1,
        digest: digest_of(&FILES),
        manifest: None,
        unknown: Some(Release { version: "9.9.9".to_owned(), ..Release::default() }),
        scratch: scratch.path().to_owned(),
    }
    .check();
    assert!(client.downloads().is_empty(), "something is left over");
}

fn found(client: &Client, root: &str, name: &str) -> Found {
    match client.provider.list(&at(root, name), None, &Silent).expect("the hub answers") {
        Listing::Found(found) => found,
        other => panic!("`{name}` is not listed: {other:?}"),
    }
}

#[test]
fn conforms_on_nginx() {
    let hub = hub();
    let nginx = Nginx::serve(hub.path(), "");
    conforms(&nginx.url(""), &nginx.url("index/"));
}

#[test]
fn conforms_in_a_folder() {
    let hub = hub();
    conforms(&hub.file_url(), &format!("{}index/", hub.file_url()));
}

#[test]
fn a_page_that_is_always_there_is_no_hub() {
    let page = Hub::new("<html>");
    let nginx = Nginx::serve(page.path(), "");
    let client = Client::new();
    let location = at(&nginx.url(""), "a");
    assert!(!client.provider.probe(&location).expect("answers"));
    let error = client.provider.list(&location, None, &Silent).expect_err("is not a hub");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains("hub.json"), "{error}");
}

#[test]
fn few_requests_are_made() {
    let hub = hub();
    let release = hub.publish("a", "1.0.0", &archive(&FILES));
    let nginx = Nginx::serve(hub.path(), "");
    let client = Client::new();
    // From a lock alone, only the archive is requested.
    client.fetch(&at(&nginx.url(""), "a"), &locked(&release)).expect("is there");
    assert_eq!(nginx.log(), ["GET /packs/a/a-1.0.0.tgz HTTP/1.1 200"]);
    // `hub.json` once, then each index once, then whether it has changed.
    let validator = found(&client, &nginx.url(""), "a").validator;
    found(&client, &nginx.url(""), "aws/ec2");
    let listing = client.provider.list(&at(&nginx.url(""), "a"), validator.as_deref(), &Silent);
    assert_eq!(listing.expect("answers"), Listing::Unchanged { max_age: None, validator: None });
    assert_eq!(
        nginx.log()[1..],
        [
            "GET /hub.json HTTP/1.1 200",
            "GET /index/a.jsonl HTTP/1.1 200",
            "GET /index/aws/ec2.jsonl HTTP/1.1 200",
            "GET /index/a.jsonl HTTP/1.1 304",
        ]
    );
}

#[test]
fn many_threads_ask_for_hub_json_once() {
    let hub = hub();
    let nginx = Nginx::serve(hub.path(), "");
    let client = Client::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| found(&client, &nginx.url(""), "aws/ec2"));
        }
    });
    let asked = nginx.log().iter().filter(|line| line.contains("/hub.json")).count();
    assert_eq!(asked, 1);
}

#[test]
fn a_changed_index_is_read_again() {
    let hub = hub();
    let nginx = Nginx::serve(hub.path(), "");
    for root in [nginx.url(""), hub.file_url()] {
        let client = Client::new();
        let before = found(&client, &root, "aws/ec2");
        hub.list(&Release {
            name: "aws/ec2".to_owned(),
            version: format!("{}.0.0", before.lines.len()),
            ..Release::default()
        });
        let again =
            client.provider.list(&at(&root, "aws/ec2"), before.validator.as_deref(), &Silent);
        let Listing::Found(after) = again.expect("answers") else { panic!("it has changed") };
        assert_eq!(releases(&after.lines).len(), releases(&before.lines).len() + 1);
    }
}

#[test]
fn freshness_and_compression_are_understood() {
    let hub = hub();
    let more =
        "add_header Cache-Control 'public, max-age=60'; gzip on; gzip_min_length 1; gzip_types *;";
    let nginx = Nginx::serve(hub.path(), more);
    let client = Client::new();
    let found = found(&client, &nginx.url(""), "aws/ec2");
    assert_eq!(found.max_age, Some(60));
    assert_eq!(found.lines, fs::read(hub.path().join("index/aws/ec2.jsonl")).expect("is there"));
    let again =
        client.provider.list(&at(&nginx.url(""), "aws/ec2"), found.validator.as_deref(), &Silent);
    assert_eq!(again.expect("answers"), Listing::Unchanged { max_age: Some(60), validator: None });
}

#[test]
fn places_in_hub_json_are_followed() {
    let hub = Hub::new(r#"{"hub": 1, "index": "i", "packs": "p/q/"}"#);
    let bytes = archive(&FILES);
    let release = hub.publish("aws/ec2", "1.0.0", &bytes);
    fs::rename(hub.path().join("index"), hub.path().join("i")).expect("can be moved");
    fs::create_dir(hub.path().join("p")).expect("can be made");
    fs::rename(hub.path().join("packs"), hub.path().join("p/q")).expect("can be moved");
    let nginx = Nginx::serve(hub.path(), "");
    for root in [nginx.url(""), hub.file_url()] {
        let client = Client::new();
        let tree = client.fetch(&at(&root, "aws/ec2"), &locked(&release)).expect("is found");
        assert_eq!(tree.digest(), digest_of(&FILES));
        found(&client, &root, "aws/ec2");
    }
}

#[test]
fn a_newer_hub_is_refused() {
    let hub = Hub::new(r#"{"hub": 2}"#);
    let client = Client::new();
    let location = at(&hub.file_url(), "a");
    assert!(client.provider.probe(&location).expect("answers"), "it is a hub all the same");
    let error = client.provider.list(&location, None, &Silent).expect_err("is newer");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.hints()[0].contains("version 2"), "{:?}", error.hints());
}

#[test]
fn a_folder_without_hub_json_may_have_an_index() {
    let hub = hub();
    fs::remove_file(hub.path().join("hub.json")).expect("was there");
    let client = Client::new();
    found(&client, &hub.file_url(), "aws/ec2");
    let listing = client.provider.list(&at(&hub.file_url(), "b"), None, &Silent).expect("answers");
    let Listing::Absent { tried, .. } = listing else { panic!("{listing:?}") };
    assert!(tried[0].ends_with("/hub.json") && tried[1].ends_with("/index/b.jsonl"), "{tried:?}");
}

#[test]
fn archives_may_be_elsewhere() {
    let hub = Hub::new(r#"{"hub": 1}"#);
    let bytes = archive(&FILES);
    hub.write("elsewhere/some.tgz", &bytes);
    let nginx = Nginx::serve(hub.path(), "");
    let mut release = locked(&hub.publish("a", "1.0.0", &bytes));
    fs::remove_dir_all(hub.path().join("packs")).expect("was there");
    for place in ["elsewhere/some.tgz", &nginx.url("elsewhere/some.tgz")] {
        release.urls = vec!["gone.tgz".to_owned(), place.to_owned()];
        for root in [nginx.url(""), hub.file_url()] {
            let tree = Client::new().fetch(&at(&root, "a"), &release).expect("is found");
            assert_eq!(tree.digest(), digest_of(&FILES), "{place} of {root}");
        }
    }
}

#[test]
fn what_a_lock_does_not_say_is_looked_up() {
    let hub = Hub::new(r#"{"hub": 1}"#);
    let bytes = archive(&FILES);
    let mut release = hub.publish("a", "1.0.0", &bytes);
    fs::remove_dir_all(hub.path().join("packs")).expect("was there");
    hub.write("moved/a.tgz", &bytes);
    hub.write("index/a.jsonl", "");
    release.urls = vec!["moved/a.tgz".to_owned()];
    hub.list(&release);
    let tree = Client::new().fetch(&at(&hub.file_url(), "a"), &locked(&release));
    assert_eq!(tree.expect("the index knows").digest(), digest_of(&FILES));
}

#[test]
fn app_versions_are_in_the_names_of_archives() {
    let hub = Hub::new(r#"{"hub": 1}"#);
    hub.write("packs/elk/elk-8.11.1-1.4.0.tgz", archive(&FILES));
    let mut release = Release {
        version: "1.4.0".to_owned(),
        app_version: Some("8.11.1".to_owned()),
        ..Release::default()
    };
    for versioning in [None, Some("composite".to_owned())] {
        release.versioning = versioning;
        Client::new().fetch(&at(&hub.file_url(), "elk"), &release).expect("is found");
    }
    // In a lock, the version is complete.
    let locked = Release { version: "8.11.1-1.4.0".to_owned(), ..Release::default() };
    Client::new().fetch(&at(&hub.file_url(), "elk"), &locked).expect("is found");
}
