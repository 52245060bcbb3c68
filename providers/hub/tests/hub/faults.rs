//! Servers that interrupt answers, lie, redirect, or have other bytes than they promised.

use mu_provider::{ErrorKind, Listing, Location, Provider as _, Release, Silent, Soon};
use mu_testing::gzip;
use mu_testing::http::{Reply, Seen, TestServer};

use crate::client::{Client, chain, impatient, options};
use crate::place::{archive, at, locked, noise, sha256};

/// Announces to a hub that a hundred packages will be listed.
fn announce_a_hundred(client: &Client, place: &Location) {
    let names: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
    client.provider.soon(place, Soon::List { packages: &names, leads_on: false });
}

fn package() -> Vec<u8> {
    archive(&[("Mu.yaml", b"name: a\n", false)])
}

fn release(bytes: &[u8]) -> Release {
    Release {
        version: "1.0.0".to_owned(),
        archive: Some(sha256(bytes).to_string()),
        size: Some(bytes.len() as u64),
        ..Release::default()
    }
}

#[test]
fn a_cut_archive_is_fetched_again() {
    let server = TestServer::start(|_, before| match before {
        0 => Reply::body(package()).cut_after(50),
        1 => Reply::status(503),
        _ => Reply::body(package()),
    });
    let client = Client::new();
    client.fetch(&at(&server.url(""), "a"), &release(&package())).expect("comes at last");
    assert_eq!(server.requests(), ["GET /packs/a/a-1.0.0.tgz"; 3]);
    assert!(client.said().contains("ended early"), "{}", client.said());
}

#[test]
fn an_archive_that_is_expected_is_asked_for_once() {
    let server = TestServer::start(|_, _| Reply::body(package()));
    let client = Client::new();
    let location = at(&server.url(""), "a");
    client.provider.soon(&location, Soon::Fetch(&release(&package())));
    client.fetch(&location, &release(&package())).expect("comes");
    assert_eq!(server.requests(), ["GET /packs/a/a-1.0.0.tgz"]);
    client.fetch(&location, &release(&package())).expect("comes again");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_server_that_falls_silent_is_asked_again() {
    let server = TestServer::start(|_, before| match before {
        0 => Reply::body(package()).silent_after(50),
        _ => Reply::body(package()),
    });
    let client = Client::with(impatient());
    client.fetch(&at(&server.url(""), "a"), &release(&package())).expect("comes at last");
    assert!(server.requests().len() >= 2);
}

#[test]
fn wrong_bytes_are_not_unpacked() {
    let other = archive(&[("Mu.yaml", b"name: b\n", false)]);
    let wanted = release(&package());
    let served = other.clone();
    let server = TestServer::start(move |_, _| Reply::body(served.clone()));
    let client = Client::new();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for wanted in [locked(&wanted), Release { size: Some(other.len() as u64), ..wanted }] {
        let error = client.fetch_into(&at(&server.url(""), "a"), &wanted, folder.path());
        let error = error.expect_err("these are other bytes");
        assert_eq!(error.kind(), ErrorKind::Integrity);
        let text = error.to_string();
        for part in [sha256(&package()).to_string(), sha256(&other).to_string(), server.host()] {
            assert!(text.contains(&part), "{text}");
        }
        let written = std::fs::read_dir(folder.path()).expect("is there").count();
        assert_eq!((written, client.downloads()), (0, Vec::new()));
    }
}

#[test]
fn a_wrong_size_is_refused_before_it_is_read() {
    let server = TestServer::start(|_, _| Reply::body(vec![0; 1_000]));
    let error = Client::new().fetch(&at(&server.url(""), "a"), &release(&package()));
    let error = error.expect_err("is too long");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.to_string().contains("got 1000 bytes"), "{error}");
}

#[test]
fn the_next_place_is_tried() {
    let server = TestServer::start(|request, _| match request.path.as_str() {
        "/wrong" => Reply::body(vec![0; package().len()]),
        "/right" => Reply::body(package()),
        _ => Reply::status(404),
    });
    let urls = ["gone", "wrong", "right"].map(str::to_owned).to_vec();
    let release = Release { urls, ..release(&package()) };
    let client = Client::new();
    client.fetch(&at(&server.url(""), "a"), &release).expect("one of them is right");
    assert_eq!(server.requests(), ["GET /gone", "GET /wrong", "GET /right"]);
    assert!(
        client.said().contains("/wrong` is not the one that was expected"),
        "{}",
        client.said()
    );
}

#[test]
fn the_hubs_token_stays_with_the_hub() {
    let cdn = TestServer::start(|_, _| Reply::body(package()));
    let elsewhere = cdn.url("a.tgz");
    let hub = TestServer::start(move |request, _| match request.header("authorization") {
        Some("Bearer hunter2") => Reply::redirect(elsewhere.as_str()),
        _ => Reply::status(401),
    });
    let client = Client::with_token_for(hub.host());
    let location = at(&hub.url(""), "a");
    client.fetch(&location, &release(&package())).expect("the redirect is followed");
    let urls = vec![cdn.url("absolute.tgz")];
    client.fetch(&location, &Release { urls, ..release(&package()) }).expect("is there");
    // It is sent once the hub has asked for it.
    assert_eq!(hub.seen()[0].header("authorization"), None);
    assert_eq!(hub.seen()[1].header("authorization"), Some("Bearer hunter2"));
    let shown: Vec<Option<String>> =
        cdn.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert_eq!(shown, [None, None]);
}

#[test]
fn a_hub_that_wants_a_token_says_so() {
    let hub = TestServer::start(|_, _| Reply::status(401));
    let location = at(&hub.url(""), "a");
    let client = Client::new();
    for error in [
        client.provider.list(&location, None, &Silent).expect_err("wants a token"),
        client.fetch(&location, &release(&package())).expect_err("wants a token"),
    ] {
        assert_eq!(error.kind(), ErrorKind::Auth);
        assert!(
            error.hints()[0].contains(&mu_provider::http::or_variable(&hub.host())),
            "{error:?}"
        );
    }
}

#[test]
fn an_index_for_another_package_is_refused() {
    let server = TestServer::start(|request, _| match request.path.as_str() {
        "/hub.json" => Reply::body(r#"{"hub": 1}"#),
        _ => Reply::body("{\"name\":\"b\",\"version\":\"1.0.0\"}\n"),
    });
    let error = Client::new().provider.list(&at(&server.url(""), "a"), None, &Silent);
    let error = error.expect_err("is about something else");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(
        error.to_string().contains(&format!("line 1 of `{}`", server.url("index/a.jsonl"))),
        "{error}"
    );
}

#[test]
fn plain_http_to_another_machine_needs_permission() {
    let error = Client::new()
        .fetch(&at("http://hub.invalid/", "a"), &release(&package()))
        .expect_err("is not safe");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.hints()[0].contains("--allow-insecure"), "{error:?}");
}

#[test]
fn offline_asks_nobody() {
    let server = TestServer::start(|_, _| Reply::body(package()));
    let client = Client::with(mu_provider::http::HttpOptions { offline: true, ..options() });
    let location = at(&server.url(""), "a");
    let fetched = client.fetch(&location, &release(&package())).expect_err("is offline");
    let listed = client.provider.list(&location, None, &Silent).expect_err("is offline");
    assert_eq!((fetched.kind(), listed.kind()), (ErrorKind::Offline, ErrorKind::Offline));
    assert!(server.requests().is_empty());
}

#[test]
fn no_request_repeats_a_refusal() {
    let server = TestServer::start(|_, _| Reply::status(404));
    let client = Client::new();
    let location = at(&server.url(""), "a");
    let error = client.fetch(&location, &locked(&release(&package()))).expect_err("is nowhere");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(chain(&error).contains("/packs/a/a-1.0.0.tgz"), "{error}");
    let expected = ["GET /packs/a/a-1.0.0.tgz", "GET /hub.json", "GET /index/a.jsonl"];
    assert_eq!(server.requests(), expected);
}

#[test]
fn an_index_that_is_cut_is_read_again() {
    let line = "{\"name\":\"a\",\"version\":\"1.0.0\"}\n";
    let server =
        TestServer::start(move |request: &Seen, before| match (request.path.as_str(), before) {
            ("/hub.json", _) => Reply::body(r#"{"hub": 1}"#),
            (_, 1) => Reply::body(line).cut_after(10),
            _ => Reply::body(line).header("etag", "\"x\""),
        });
    let listing = Client::new().provider.list(&at(&server.url(""), "a"), None, &Silent);
    let Listing::Found(found) = listing.expect("comes at last") else { panic!("is there") };
    assert_eq!(found.lines, line.as_bytes());
}

#[test]
fn a_store_that_does_not_list_its_files_lacks_what_it_forbids() {
    let serve = |has_file: bool| {
        TestServer::start(move |request, _| match request.path.as_str() {
            "/hub.json" if has_file => Reply::body(r#"{"hub": 1}"#),
            "/hub.json" => Reply::status(404),
            _ => Reply::status(403),
        })
    };
    let server = serve(true);
    let list = |client: Client, server: &TestServer| {
        client.provider.list(&at(&server.url(""), "aws/ec2"), None, &Silent)
    };
    let listing = list(Client::new(), &server).expect("it is most likely not there");
    let Listing::Absent { tried, .. } = listing else { panic!("is not there: {listing:?}") };
    for part in ["index/aws/ec2.jsonl", "403", "token", "MU_TOKEN_"] {
        assert!(tried[1].contains(part), "{tried:?}");
    }
    // A client that has a token, or that cannot even read the hub's own file, is refused.
    let refused = list(Client::with_token_for(server.host()), &server);
    assert_eq!(refused.expect_err("the token will not do").kind(), ErrorKind::Auth);
    let closed = serve(false);
    assert_eq!(list(Client::new(), &closed).expect_err("wants one").kind(), ErrorKind::Auth);
}

#[test]
fn an_archive_that_an_open_hub_forbids_is_most_likely_not_there() {
    let release =
        Release { name: "aws/ec2".to_owned(), version: "1.0.0".to_owned(), ..Release::default() };
    let line = serde_json::to_vec(&release).expect("can be printed");
    let server = TestServer::start(move |request, _| match request.path.as_str() {
        "/hub.json" => Reply::body(r#"{"hub": 1}"#),
        "/index/aws/ec2.jsonl" => Reply::body(line.clone()),
        _ => Reply::status(403),
    });
    let fetch = |client: Client| {
        let fetched = client.fetch(&at(&server.url(""), "aws/ec2"), &release);
        fetched.expect_err("is not there")
    };
    let error = fetch(Client::new());
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(chain(&error).contains("there is no archive of"), "{error}");
    let hint = error.hints().join("\n");
    assert!(hint.contains("403") && hint.contains("MU_TOKEN_"), "{hint}");
    // A token that is not enough is a different case.
    let error = fetch(Client::with_token_for(server.host()));
    assert_eq!(error.kind(), ErrorKind::Auth);
}

/// A hub that claims that its snapshot is small, and has this one.
fn with_snapshot(snapshot: Vec<u8>, digests: Vec<u8>) -> TestServer {
    TestServer::start(move |request, _| match request.path.as_str() {
        "/hub.json" => Reply::body(
            r#"{"hub":1,"generation":1,"snapshot":"snapshot.jsonl.gz","snapshotBytes":1000}"#,
        ),
        "/snapshot.jsonl.gz" => Reply::body(snapshot.clone()),
        "/snapshot.digests" => Reply::body(digests.clone()),
        "/index/a.jsonl" => Reply::body("{\"name\":\"a\",\"version\":\"1.0.0\"}\n"),
        _ => Reply::status(404),
    })
}

#[test]
fn a_snapshot_that_is_more_than_was_told_is_not_taken() {
    let bomb = gzip(&vec![b'\n'; 40 << 20]);
    assert!(bomb.len() < 64 << 10);
    for (snapshot, why) in [
        (bomb, "bytes unpack to more than"),
        (noise(1, 100_000), ""),
        (gzip(&noise(1, 100_000)), "allows for"),
    ] {
        let server = with_snapshot(snapshot, Vec::new());
        let client = Client::new();
        let root = server.url("");
        announce_a_hundred(&client, &at(&root, "a"));
        let listing = client.list(&at(&root, "a")).expect("its own file says it");
        assert!(matches!(listing, Listing::Found(_)), "{listing:?}");
        let said = client.said();
        assert!(said.contains(why) && (why.is_empty() || said.contains("is not used")), "{said}");
        let expected = ["GET /hub.json", "GET /snapshot.jsonl.gz", "GET /index/a.jsonl"];
        assert_eq!(server.requests(), expected);
    }
}

#[test]
fn digests_that_do_not_belong_to_the_snapshot_are_not_taken() {
    let lines = "{\"name\":\"a\",\"version\":\"2.0.0\"}\n".repeat(3);
    let rows = |bytes: usize| vec![7; bytes];
    // Too few, too many, far too many, and others.
    for (sent, named) in [(2 * 72, 2 * 72), (4 * 72, 4 * 72), (1 << 20, 1 << 20), (3 * 72, 2 * 72)]
    {
        let hash = sha256(&rows(named)).to_string();
        let head = format!("{{\"generation\":1,\"digests\":\"{hash}\"}}\n{lines}");
        let server = with_snapshot(gzip(head.as_bytes()), rows(sent));
        let (client, place) = (Client::new(), at(&server.url(""), "a"));
        announce_a_hundred(&client, &place);
        let Listing::Found(found) = client.list(&place).expect("is there") else {
            panic!("is there")
        };
        let text = String::from_utf8_lossy(&found.lines).into_owned();
        assert!(text.contains("2.0.0") && text.contains("\"short\":true"), "{text}");
        client.provider.soon(&place, Soon::ListInFull);
        let listing = client.provider.list_in_full(&place, &Silent).expect("its own file says it");
        let Listing::Found(found) = listing else { panic!("is there") };
        assert!(String::from_utf8_lossy(&found.lines).contains("1.0.0"), "{sent} of {named}");
        let expected = ["hub.json", "snapshot.jsonl.gz", "snapshot.digests", "index/a.jsonl"];
        assert_eq!(server.requests(), expected.map(|path| format!("GET /{path}")));
    }
}
