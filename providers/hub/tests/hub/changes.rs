//! Hubs with a generation, and the requests that this saves.

use mu_provider::{Found, Listing, Location, Provider as _, Release, Silent};

use crate::client::Client;
use crate::place::{Hub, at};
use mu_testing::Nginx;

fn set_generation(hub: &Hub, generation: u64) {
    let text = format!(r#"{{"hub": 1, "generation": {generation}, "log": "log/"}}"#);
    hub.write("hub.json", text);
}

fn list(hub: &Hub, name: &str, version: &str) {
    let release =
        Release { name: name.to_owned(), version: version.to_owned(), ..Release::default() };
    hub.list(&release);
}

fn found(location: &Location) -> Found {
    match Client::new().provider.list(location, None, &Silent).expect("the hub answers") {
        Listing::Found(found) => found,
        other => panic!("is not listed: {other:?}"),
    }
}

/// Whether a new run considers each of these unchanged.
fn unchanged(locations: [&Location; 2], known: &[Found; 2]) -> [bool; 2] {
    let client = Client::new();
    [0, 1].map(|index| {
        let validator = known[index].validator.as_deref();
        let listing = client.provider.list(locations[index], validator, &Silent).expect("answers");
        matches!(listing, Listing::Unchanged { .. })
    })
}

/// Two packages at generation 2, and what a reader knows of them.
fn hub() -> (Hub, Nginx) {
    let hub = Hub::new("{}");
    list(&hub, "a", "1.0.0");
    list(&hub, "b", "1.0.0");
    hub.write("log/000000.txt", "a\nb\n");
    set_generation(&hub, 2);
    let nginx = Nginx::serve(hub.path(), "");
    (hub, nginx)
}

#[test]
fn the_same_generation_needs_no_other_request() {
    let (_hub, nginx) = hub();
    let (a, b) = (at(&nginx.url(""), "a"), at(&nginx.url(""), "b"));
    let known = [found(&a), found(&b)];
    let before = nginx.log().len();
    assert_eq!(unchanged([&a, &b], &known), [true, true]);
    assert_eq!(nginx.log()[before..], ["GET /hub.json HTTP/1.1 200"]);
}

#[test]
fn an_unchanged_hub_file_is_not_sent_again() {
    let (hub, nginx) = hub();
    let a = at(&nginx.url(""), "a");
    let client = Client::new();
    let Listing::Found(known) = client.provider.list(&a, None, &Silent).expect("answers") else {
        panic!("is listed");
    };
    let ask = |client: &Client| {
        let before = nginx.log().len();
        let listing = client.provider.list(&a, known.validator.as_deref(), &Silent);
        (listing.expect("answers"), nginx.log()[before..].to_vec())
    };
    let unchanged = Listing::Unchanged { max_age: None, validator: None };
    let client = client.again();
    assert_eq!(ask(&client), (unchanged, vec!["GET /hub.json HTTP/1.1 304".to_owned()]));
    hub.write("hub.json", r#"{"hub": 1, "generation": 2, "log": "log/", "index": "elsewhere/"}"#);
    let (listing, requests) = ask(&client.again());
    assert!(matches!(listing, Listing::Unchanged { .. }), "{listing:?}");
    assert_eq!(requests, ["GET /hub.json HTTP/1.1 200"]);
}

#[test]
fn what_a_newer_generation_left_alone_is_known_as_of_that_generation() {
    let (hub, nginx) = hub();
    let b = at(&nginx.url(""), "b");
    let known = found(&b);
    hub.write("log/000000.txt", "a\nb\na\n");
    set_generation(&hub, 3);
    let listing = Client::new().provider.list(&b, known.validator.as_deref(), &Silent);
    let Listing::Unchanged { validator: Some(renewed), .. } = listing.expect("answers") else {
        panic!("is unchanged, at a newer generation");
    };
    // From now on it cannot use the log.
    let before = nginx.log().len();
    let listing = Client::new().provider.list(&b, Some(&renewed), &Silent).expect("answers");
    assert_eq!(listing, Listing::Unchanged { max_age: None, validator: None });
    assert_eq!(nginx.log()[before..], ["GET /hub.json HTTP/1.1 200"]);
}

#[test]
fn the_log_says_what_to_ask_for_again() {
    let (hub, nginx) = hub();
    let (a, b) = (at(&nginx.url(""), "a"), at(&nginx.url(""), "b"));
    let known = [found(&a), found(&b)];
    list(&hub, "b", "2.0.0");
    hub.write("log/000000.txt", "a\nb\nb\n");
    set_generation(&hub, 3);
    let before = nginx.log().len();
    assert_eq!(unchanged([&a, &b], &known), [true, false]);
    assert_eq!(
        nginx.log()[before..],
        [
            "GET /hub.json HTTP/1.1 200",
            "GET /log/000000.txt HTTP/1.1 200",
            "GET /index/b.jsonl HTTP/1.1 200",
        ]
    );
}

#[test]
fn a_log_may_have_several_files() {
    let (hub, nginx) = hub();
    let (a, b) = (at(&nginx.url(""), "a"), at(&nginx.url(""), "b"));
    let known = [found(&a), found(&b)];
    let others = "c\n".repeat(997);
    hub.write("log/000000.txt", format!("a\nb\na\n{others}"));
    hub.write("log/000001.txt", "c\n".repeat(1_000));
    hub.write("log/000002.txt", "c\nc\n");
    list(&hub, "a", "2.0.0");
    set_generation(&hub, 2_002);
    assert_eq!(unchanged([&a, &b], &known), [false, true]);
    let log = nginx.log();
    let files: Vec<&String> = log.iter().filter(|line| line.contains("/log/")).collect();
    assert_eq!(files.len(), 3, "{files:?}");
}

#[test]
fn a_reader_that_was_away_for_long_reads_many_files_and_one_away_for_too_long_none() {
    let (hub, nginx) = hub();
    let (a, b) = (at(&nginx.url(""), "a"), at(&nginx.url(""), "b"));
    let mut known = [found(&a), found(&b)];
    let write_log = |files: u64| {
        for file in 0..files {
            let first = if file == 0 { "a\nb\n" } else { "c\nc\n" };
            hub.write(&format!("log/{file:06}.txt"), first.to_owned() + &"c\n".repeat(998));
        }
        set_generation(&hub, files * 1_000);
    };
    write_log(64);
    let count = |nginx: &Nginx, folder: &str| {
        nginx.log().iter().filter(|line| line.contains(folder)).count()
    };
    let indexes = count(&nginx, "/index/");
    assert_eq!(unchanged([&a, &b], &known), [true, true]);
    assert_eq!((count(&nginx, "/log/"), count(&nginx, "/index/")), (64, indexes));
    // One package is known as it was long ago, the other as it is since a file ago: only this one is told by the log.
    known[1] = found(&b);
    write_log(65);
    assert_eq!(unchanged([&a, &b], &known), [true, true]);
    assert_eq!((count(&nginx, "/log/"), count(&nginx, "/index/")), (65, indexes + 2));
}

#[test]
fn without_a_useful_log_every_index_is_asked_for() {
    for log in ["a\n", ""] {
        let (hub, nginx) = hub();
        let (a, b) = (at(&nginx.url(""), "a"), at(&nginx.url(""), "b"));
        let known = [found(&a), found(&b)];
        list(&hub, "b", "2.0.0");
        hub.write("log/000000.txt", log);
        set_generation(&hub, 3);
        assert_eq!(unchanged([&a, &b], &known), [true, false]);
        let asked = nginx.log().iter().filter(|line| line.contains("/index/a.jsonl")).count();
        assert_eq!(asked, 2, "with the log {log:?}");
    }
}

#[test]
fn a_hub_that_went_back_is_not_trusted() {
    let (hub, nginx) = hub();
    let (a, b) = (at(&nginx.url(""), "a"), at(&nginx.url(""), "b"));
    let known = [found(&a), found(&b)];
    list(&hub, "b", "2.0.0");
    set_generation(&hub, 1);
    assert_eq!(unchanged([&a, &b], &known), [true, false]);
}

#[test]
fn what_a_cache_on_the_way_kept_is_not_as_new_as_the_hub() {
    let hub = Hub::new(r#"{"hub": 1, "generation": 2}"#);
    list(&hub, "a", "1.0.0");
    let nginx = Nginx::serve(hub.path(), "add_header Age 30;");
    let location = at(&nginx.url(""), "a");
    let validator = found(&location).validator.expect("nginx gives one");
    assert!(!validator.contains("generation"), "{validator}");
}

#[test]
fn an_old_file_of_a_cache_that_does_not_say_so_is_not_kept_for_the_new_generation() {
    let (hub, nginx) = hub();
    let location = at(&nginx.url(""), "a");
    let known = found(&location).validator;
    let listing = || Client::new().provider.list(&location, known.as_deref(), &Silent);
    // The hub has another file, and something on the way still answers with this one.
    hub.write("log/000000.txt", "a\nb\na\n");
    set_generation(&hub, 3);
    let kept = listing().expect("answers");
    assert!(matches!(kept, Listing::Unchanged { validator: None, .. }), "{kept:?}");
    let log = nginx.log();
    let asked: Vec<&String> = log.iter().filter(|line| line.contains("/index/a.jsonl")).collect();
    let expected =
        ["200", "304", "200"].map(|status| format!("GET /index/a.jsonl HTTP/1.1 {status}"));
    assert_eq!(asked, expected.iter().collect::<Vec<_>>(), "the second question goes past caches");
    // The next run finds what is new.
    list(&hub, "a", "2.0.0");
    assert!(matches!(listing().expect("answers"), Listing::Found(_)));
}
