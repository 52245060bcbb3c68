//! The snapshot: when it is written, what is in it, and how few requests a reader needs with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mu_hub::{Hub, Notice, Place};
use mu_provider::http::{Http, HttpOptions};
use mu_provider::{
    ArchiveDigest, Folder, Lead, Limits, Listing, Location, Provider as _, Release, SafeUrl,
    Silent, Soon, TreeWriter,
};
use mu_provider_hub::HubProvider;
use mu_testing::http::{Reply, TestServer};
use object_store::memory::InMemory;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::support::{hub_file, publication, with_keys};

/// The change after which there is a first snapshot.
const FIRST: usize = 32;

fn hub(folder: &Path, packages: usize) -> Hub {
    let (hub, _) = Hub::init(&Place::folder(folder)).expect("can be made");
    for number in 0..packages {
        let keys = json!({"description": "A package", "channels": ["stable"]});
        let package = with_keys(&format!("many/n{number}"), "1.0.0", "x", keys);
        hub.publish(&package).expect("is fine");
    }
    hub
}

fn serve(folder: &Path) -> TestServer {
    let folder = folder.to_owned();
    TestServer::start(move |request, _| {
        match std::fs::read(folder.join(request.path.trim_start_matches('/'))) {
            Ok(bytes) => Reply::body(bytes),
            Err(_) => Reply::status(404),
        }
    })
}

/// A reader without a cache that expects as many packages as it then requests.
struct Reader {
    provider: HubProvider,
    _downloads: tempfile::TempDir,
}

impl Reader {
    fn new() -> Self {
        let downloads = tempfile::tempdir().expect("there is room");
        let http = Http::new(HttpOptions::default());
        let provider = HubProvider::new(http, downloads.path());
        Self { provider, _downloads: downloads }
    }

    fn list(&self, server: &TestServer, name: &str, validator: Option<&str>) -> Listing {
        self.provider.list(&at(server, name), validator, &Silent).expect("answers")
    }

    /// Lists packages as a reader does that has chosen them.
    fn in_full(&self, server: &TestServer, packages: usize) -> BTreeMap<String, Release> {
        let names = (0..packages).map(|number| format!("many/n{number}"));
        let places: Vec<Location> = names.map(|name| at(server, &name)).collect();
        for place in &places {
            self.provider.soon(place, Soon::ListInFull);
        }
        let listed = places.into_iter().map(|place| {
            match self.provider.list_in_full(&place, &Silent).expect("answers") {
                Listing::Found(found) => {
                    (place.path, serde_json::from_slice(&found.lines).expect("is one line"))
                }
                other => panic!("{place:?}: {other:?}"),
            }
        });
        listed.collect()
    }

    /// Lists packages; returns their lines and what to ask with later.
    fn all(
        &self,
        server: &TestServer,
        packages: usize,
    ) -> BTreeMap<String, (Release, Option<String>)> {
        let names: Vec<String> = (0..packages).map(|number| format!("many/n{number}")).collect();
        self.provider.soon(&at(server, ""), Soon::List { packages: &names, leads_on: false });
        names
            .into_iter()
            .map(|name| match self.list(server, &name, None) {
                Listing::Found(found) => {
                    let release = serde_json::from_slice(&found.lines).expect("is one line");
                    (name, (release, found.validator))
                }
                other => panic!("{name}: {other:?}"),
            })
            .collect()
    }
}

fn at(server: &TestServer, name: &str) -> Location {
    Location::new(Lead::of_user(SafeUrl::parse(&server.url("")).expect("is a URL")), name)
}

#[test]
fn a_reader_that_wants_much_reads_all_at_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path(), FIRST - 1);
    assert!(!folder.path().join("snapshot.jsonl.gz").exists(), "is not worth it yet");
    hub.publish(&publication("other", "1.0.0", "x")).expect("is fine");
    assert_eq!(hub_file(folder.path())["snapshot"], "snapshot.jsonl.gz");
    assert!(hub.check(false, &mut |_| {}).expect("can be read").findings.is_empty());

    let server = serve(folder.path());
    let reader = Reader::new();
    let lines = reader.all(&server, FIRST - 1);
    // All digests are less work than the files of all packages, so each line is whole at once.
    let whole = ["GET /hub.json", "GET /snapshot.jsonl.gz", "GET /snapshot.digests"];
    assert_eq!(server.requests(), whole);
    for (release, _) in lines.values() {
        assert_eq!((&release.channels, &release.description), (&vec!["stable".to_owned()], &None));
    }
    let chosen = reader.in_full(&server, FIRST - 1);
    assert_eq!(server.requests(), whole);
    for (name, (release, _)) in &lines {
        assert_eq!(release, &chosen[name]);
    }
    for (name, release) in &chosen {
        let index = hub.line(name, "1.0.0").expect("can be read").expect("is there");
        assert_eq!(release.digest.as_deref(), index["digest"].as_str());
        assert_eq!(release.archive.as_deref(), index["archive"].as_str());
        assert_eq!((release.size, release.short), (index["size"].as_u64(), false));
    }
    // A package that the snapshot does not name does not exist.
    let reader = Reader::new();
    let names: Vec<String> = (0..100).map(|number| format!("absent/n{number}")).collect();
    reader.provider.soon(&at(&server, ""), Soon::List { packages: &names, leads_on: false });
    assert!(matches!(reader.list(&server, "nothing", None), Listing::Absent { .. }));

    // The next run sends one request, and after a change one more for the changed package.
    let before = server.requests().len();
    let reader = Reader::new();
    for (name, (_, validator)) in &lines {
        let listing = reader.list(&server, name, validator.as_deref());
        assert!(matches!(listing, Listing::Unchanged { .. }), "{name}");
    }
    assert_eq!(server.requests()[before..], ["GET /hub.json"]);
    hub.notice("many/n7", "1.0.0", Notice::Yanked, Some("leaks")).expect("is there");
    let before = server.requests().len();
    let reader = Reader::new();
    for (name, (_, validator)) in &lines {
        let listing = reader.list(&server, name, validator.as_deref());
        assert_eq!(matches!(listing, Listing::Found(_)), name == "many/n7", "{name}");
    }
    let expected = ["GET /hub.json", "GET /log/000000.txt", "GET /index/many/n7.jsonl"];
    assert_eq!(server.requests()[before..], expected);
    // A reader without a cache does not take the older line from the snapshot.
    let (yanked, _) = &Reader::new().all(&server, FIRST - 1)["many/n7"];
    assert!(!yanked.yanked.is_no());
}

#[test]
fn a_reader_that_chose_little_of_a_snapshot_asks_for_the_files_of_that() {
    let folder = tempfile::tempdir().expect("there is room");
    let packages = FIRST;
    let hub = hub(folder.path(), packages);
    // What nobody asks for, and what has more digests than the files of all others would be.
    let lines = (0..10_000)
        .map(|patch| format!("{}\n", json!({ "name": "else", "version": format!("1.0.{patch}") })));
    std::fs::write(folder.path().join("index/else.jsonl"), lines.collect::<String>())
        .expect("is ours");
    hub.check(true, &mut |_| {}).expect("can be read");
    let digests = folder.path().join("snapshot.digests").metadata().expect("is there").len();
    let server = serve(folder.path());
    let reader = Reader::new();
    for (release, _) in reader.all(&server, packages).values() {
        assert_eq!((release.short, &release.digest, &release.archive), (true, &None, &None));
    }
    let chosen = reader.in_full(&server, 2);
    let files = ["GET /index/many/n0.jsonl", "GET /index/many/n1.jsonl"];
    assert_eq!(server.requests()[2..], files);
    let read: u64 = (0..2)
        .map(|number| folder.path().join(format!("index/many/n{number}.jsonl")))
        .map(|path| path.metadata().expect("is there").len())
        .sum();
    assert!(read < digests, "{read} of {digests} bytes");
    for (name, release) in &chosen {
        let index = hub.line(name, "1.0.0").expect("can be read").expect("is there");
        assert_eq!(release.digest.as_deref(), index["digest"].as_str());
        assert!(release.description.is_some() && !release.short);
    }
}

#[test]
fn a_hub_that_becomes_too_large_has_no_snapshot_any_more() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path(), FIRST);
    assert_eq!(hub_file(folder.path())["snapshot"], "snapshot.jsonl.gz");
    // 9 MB of digits, which compress to the half.
    for package in 0..10 {
        let lines = (0..10).map(|patch| {
            let digits = (0..1_400).map(|part| {
                let bytes = Sha256::digest(format!("{package} {patch} {part}").as_bytes());
                ArchiveDigest::from_bytes(bytes.into()).to_string()
            });
            let digits = digits.collect::<String>();
            let (name, version) = (format!("large/n{package}"), format!("1.0.{patch}"));
            format!("{}\n", json!({ "name": name, "version": version, "notes": digits }))
        });
        let index = folder.path().join(format!("index/large/n{package}.jsonl"));
        std::fs::create_dir_all(index.parent().expect("is in a folder")).expect("is ours");
        std::fs::write(index, lines.collect::<String>()).expect("is ours");
    }
    hub.check(true, &mut |_| {}).expect("can be repaired");
    let has_none = || {
        let file = hub_file(folder.path());
        for key in ["snapshot", "snapshotBytes", "snapshotLines"] {
            assert_eq!(file[key], json!(null), "{key}");
        }
        for path in ["snapshot.jsonl.gz", "snapshot.digests"] {
            assert!(!folder.path().join(path).exists(), "{path}");
        }
    };
    has_none();
    // No later change makes one, and readers ask for what they want.
    for patch in 1..=FIRST {
        hub.publish(&publication("other", &format!("1.0.{patch}"), "x")).expect("is fine");
    }
    hub.check(true, &mut |_| {}).expect("can be repaired");
    has_none();
    let server = serve(folder.path());
    Reader::new().all(&server, FIRST);
    assert!(server.requests().iter().all(|request| !request.contains("snapshot")));
}

#[test]
fn a_reader_that_wants_little_asks_for_it_alone() {
    let folder = tempfile::tempdir().expect("there is room");
    hub(folder.path(), FIRST);
    let text = std::fs::read_to_string(folder.path().join("hub.json")).expect("is there");
    let mut file: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
    file["snapshotLines"] = json!(100 << 20);
    std::fs::write(folder.path().join("hub.json"), file.to_string()).expect("is ours");
    let server = serve(folder.path());
    Reader::new().all(&server, 2);
    assert_eq!(
        server.requests(),
        ["GET /hub.json", "GET /index/many/n0.jsonl", "GET /index/many/n1.jsonl"]
    );
}

#[test]
fn a_snapshot_that_is_odd_is_not_believed() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path(), FIRST);
    let digests = folder.path().join("snapshot.digests");
    let mut bytes = std::fs::read(&digests).expect("is there");
    bytes[40] ^= 1;
    std::fs::write(&digests, bytes).expect("is ours");
    let server = serve(folder.path());
    let reader = Reader::new();
    reader.all(&server, FIRST);
    let lines = reader.in_full(&server, FIRST);
    assert!(lines.values().all(|line| line.digest.is_some()));
    assert_eq!(server.requests().len(), 3 + FIRST);
    let report = hub.check(true, &mut |_| {}).expect("can be repaired");
    assert_eq!(report.findings.len(), 1, "{report:?}");
    assert!(report.findings[0].path == "snapshot.jsonl.gz" && report.is_sound(), "{report:?}");
    assert!(hub.check(false, &mut |_| {}).expect("can be read").findings.is_empty());
    // After a repair it can be used again, although the log starts again.
    let before = server.requests().len();
    let reader = Reader::new();
    reader.all(&server, FIRST);
    reader.in_full(&server, FIRST);
    assert_eq!(server.requests().len() - before, 3);
}

#[test]
fn lines_keep_their_place_in_a_folder_and_in_a_store() {
    let store = Arc::new(InMemory::new());
    let folder = tempfile::tempdir().expect("there is room");
    for place in [Place::store(store, "memory"), Place::folder(folder.path())] {
        let (hub, _) = Hub::init(&place).expect("can be made");
        for number in 0..3 * FIRST {
            let package = publication(&format!("n{}", number % 40), &format!("1.{number}.0"), "x");
            hub.publish(&package).expect("is fine");
        }
        let report = hub.check(false, &mut |_| {}).expect("can be read");
        assert!(report.findings.is_empty(), "{report:?}");
    }
    let bytes = std::fs::read(folder.path().join("snapshot.digests")).expect("is there");
    assert_eq!(bytes.len(), 3 * FIRST * 72);
    let first = Hub::open(&Place::folder(folder.path())).expect("is there");
    let first = first.line("n0", "1.0.0").expect("can be read").expect("is there");
    let digest: mu_provider::Digest =
        first["digest"].as_str().expect("is text").parse().expect("is one");
    assert_eq!(bytes[..32], digest.as_bytes()[..]);
}

#[test]
fn a_lock_that_tells_only_digests_leads_to_an_archive_in_another_place() {
    let folder = tempfile::tempdir().expect("there is room");
    let (hub, _) = Hub::init(&Place::folder(folder.path())).expect("can be made");
    let left = folder.path().join("packs/a/a-1.0.0.tgz");
    std::fs::create_dir_all(left.parent().expect("has one")).expect("can be made");
    std::fs::write(&left, "left by a write that broke off").expect("is ours");
    hub.publish(&publication("a", "1.0.0", "x")).expect("is fine");
    let index = hub.line("a", "1.0.0").expect("can be read").expect("is there");
    let text = |key: &str| index[key].as_str().map(str::to_owned);
    let locked = Release {
        version: "1.0.0".to_owned(),
        archive: text("archive"),
        digest: text("digest"),
        ..Release::default()
    };
    let server = serve(folder.path());
    let into = tempfile::tempdir().expect("there is room");
    let mut tree = TreeWriter::new(Folder::open(into.path()).expect("opens"), Limits::default());
    let reader = Reader::new();
    reader.provider.fetch(&at(&server, "a"), &locked, &mut tree, &Silent).expect("is found");
    assert_eq!(Some(tree.finish().expect("is whole").digest().to_string()), locked.digest);
}
