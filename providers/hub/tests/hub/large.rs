//! Archives too large for memory: their downloads resume, in this run or the next.

use std::sync::LazyLock;

use mu_provider::{ErrorKind, Release};
use mu_testing::http::{Reply, Seen, TestServer};

use crate::client::Client;
use crate::place::{Hub, archive, at, digest_of, locked, noise, sha256};
use mu_testing::Nginx;

const LENGTH: usize = 2 << 20;

/// Created once, because that takes some time.
static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| archive(&[("noise", &noise(1, LENGTH), false)]));

fn large() -> (Vec<u8>, Release) {
    let bytes = LARGE.clone();
    let release = Release {
        version: "1.0.0".to_owned(),
        archive: Some(sha256(&bytes).to_string()),
        ..Release::default()
    };
    (bytes, release)
}

fn ranges(server: &TestServer) -> Vec<Option<String>> {
    let seen = server.seen();
    let archives = seen.iter().filter(|seen| seen.path.starts_with("/packs/"));
    archives.map(|seen| seen.header("range").map(str::to_owned)).collect()
}

/// Serves `bytes` in ranges, cutting the first `cut.len()` answers after so many bytes.
fn serving(bytes: Vec<u8>, cut: Vec<usize>) -> TestServer {
    TestServer::start(move |request: &Seen, before| {
        let reply = Reply::ranged(request, &bytes).header("etag", "\"it\"");
        match cut.get(before) {
            Some(length) => reply.cut_after(*length),
            None => reply,
        }
    })
}

#[test]
fn a_cut_download_goes_on() {
    let (bytes, release) = large();
    let server = serving(bytes, vec![1 << 20, 100]);
    let client = Client::new();
    let tree = client.fetch(&at(&server.url(""), "a"), &release).expect("comes at last");
    assert_eq!(tree.digest(), digest_of(&[("noise", &noise(1, LENGTH), false)]));
    let expected = [None, Some("bytes=1048576-".to_owned()), Some("bytes=1048676-".to_owned())];
    assert_eq!(ranges(&server), expected);
    assert_eq!(server.seen()[1].header("if-range"), Some("\"it\""));
    assert!(client.downloads().is_empty());
}

#[test]
fn the_next_run_goes_on() {
    let (bytes, release) = large();
    let server = serving(bytes, vec![1 << 20, 0, 0, 0]);
    let client = Client::new();
    let error = client.fetch(&at(&server.url(""), "a"), &release).expect_err("is cut four times");
    assert_eq!(error.kind(), ErrorKind::Network);
    assert_eq!(client.downloads(), [1 << 20]);
    let client = client.again();
    client.fetch(&at(&server.url(""), "a"), &release).expect("goes on");
    assert_eq!(ranges(&server)[4], Some("bytes=1048576-".to_owned()));
    assert!(client.downloads().is_empty());
}

#[test]
fn a_server_without_ranges_starts_over() {
    let (bytes, release) = large();
    let server = TestServer::start(move |_, before| match before {
        0 => Reply::body(bytes.clone()).cut_after(1 << 20),
        _ => Reply::body(bytes.clone()),
    });
    Client::new().fetch(&at(&server.url(""), "a"), &release).expect("comes whole");
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn a_damaged_left_over_is_not_the_last_word() {
    let (bytes, release) = large();
    let client = Client::new();
    let name = sha256(&bytes).to_string().replace("sha256:", "");
    for (left, requests) in [(vec![7; 1 << 20], 2), (vec![7; 20 << 20], 2), (bytes.clone(), 0)] {
        std::fs::write(client.downloads.path().join(format!("{name}.part")), left)
            .expect("can be written");
        let server = serving(bytes.clone(), Vec::new());
        client.fetch(&at(&server.url(""), "a"), &release).expect("comes whole");
        assert_eq!(server.seen().len(), requests);
        assert!(client.downloads().is_empty());
    }
}

#[test]
fn wrong_bytes_leave_nothing() {
    let (bytes, release) = large();
    let mut wrong = bytes.clone();
    wrong[3 << 19] ^= 1;
    let server = serving(wrong, vec![1 << 20]);
    let client = Client::new();
    let error = client.fetch(&at(&server.url(""), "a"), &release).expect_err("are wrong");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(error.to_string().contains(&sha256(&bytes).to_string()), "{error}");
    assert!(client.downloads().is_empty());
}

#[test]
fn more_than_was_promised_is_cut_off() {
    let (bytes, release) = large();
    let release = Release { size: Some((2 << 20) - 1), ..release };
    let client = Client::new();
    let server = serving(bytes, Vec::new());
    let error = client.fetch(&at(&server.url(""), "a"), &release).expect_err("is longer");
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert!(client.downloads().is_empty());
}

#[test]
fn two_at_once_download_once_each_or_share() {
    let (bytes, release) = large();
    let server = serving(bytes, Vec::new());
    let client = Client::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let tree = client.fetch(&at(&server.url(""), "a"), &release);
                assert_eq!(tree.expect("comes whole").size(), LENGTH as u64);
            });
        }
    });
    assert!(client.downloads().is_empty());
}

#[test]
fn from_nginx_and_from_a_folder() {
    let (bytes, _) = large();
    let hub = Hub::new(r#"{"hub": 1}"#);
    let release = hub.publish("a", "1.0.0", &bytes);
    let nginx = Nginx::serve(hub.path(), "");
    let client = Client::new();
    let name = sha256(&bytes).to_string().replace("sha256:", "");
    std::fs::write(client.downloads.path().join(format!("{name}.part")), &bytes[..3 << 19])
        .expect("can be written");
    for release in [&locked(&release), &release] {
        for root in [nginx.url(""), hub.file_url()] {
            let tree = client.fetch(&at(&root, "a"), release).expect("is there");
            assert_eq!(tree.size(), LENGTH as u64);
        }
    }
    let expected =
        ["206", "200"].map(|status| format!("GET /packs/a/a-1.0.0.tgz HTTP/1.1 {status}"));
    assert_eq!(nginx.log(), expected);
}
