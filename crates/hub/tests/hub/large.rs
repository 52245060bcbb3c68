//! Large hubs: what a change of one reads and writes, what it leaves to be written beside it, and that it is written then.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use mu_hub::files::Files;
use mu_hub::writer::Writer;
use mu_hub::{Change, Hub, Notice, Place, Published};
use object_store::memory::InMemory;
use object_store::path::Path as StorePath;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use serde_json::json;

use crate::support::{hub_file, publication, with_keys};

/// Changes after which a catalog of 1.2 MiB is due.
const DUE: usize = 5;

/// A hub with a catalog of 1.2 MiB.
fn hub(folder: &Path) -> Hub {
    let (hub, _) = Hub::init(&Place::folder(folder)).expect("can be made");
    hub.publish(&publication("other", "1.0.0", "x")).expect("is fine");
    std::fs::create_dir_all(folder.join("index/large")).expect("is ours");
    for number in 0..1_200 {
        let name = format!("large/n{number}");
        let line = json!({ "name": name, "version": "1.0.0", "description": "x".repeat(1_000) });
        std::fs::write(folder.join(format!("index/{name}.jsonl")), format!("{line}\n"))
            .expect("is ours");
    }
    hub.check(true, &mut |_| {}).expect("can be repaired");
    hub
}

/// Says each time something else against a version.
fn change(folder: &Path, writer: &Writer, reason: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
    let notices = [(Notice::Deprecated, Some(format!("reason {reason}")))].into();
    let change = Change { notices, ..Change::default() };
    let before = hub_file(folder)["generation"].as_u64();
    let changed = runtime.block_on(writer.change_version("other", "1.0.0", &change));
    assert!(changed.expect("is there"));
    let after = hub_file(folder)["generation"].as_u64();
    assert_eq!(after, before.map(|before| before + 1), "readers see it at once");
}

#[test]
fn a_change_of_a_large_hub_leaves_its_long_files_to_a_task_beside_it() {
    let folder = tempfile::tempdir().expect("there is room");
    let hub = hub(folder.path());
    let catalog =
        || std::fs::read_to_string(folder.path().join("catalog.jsonl")).expect("is there");
    let files = Files::open(&Place::folder(folder.path()), false).expect("is there");
    let writer = Writer { files, left: Arc::default() };
    let before = catalog();
    for reason in 0..2 * DUE {
        assert_eq!(writer.left.has_work(), reason >= DUE, "{reason}");
        change(folder.path(), &writer, reason);
    }
    assert!(catalog() == before, "is left alone");
    let findings = hub.check(false, &mut |_| {}).expect("can be read").findings;
    assert!(findings.iter().all(|finding| finding.path != "catalog.jsonl"), "{findings:?}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
    runtime.block_on(writer.tidy()).expect("can be written");
    let last = format!("reason {}", 2 * DUE - 1);
    assert!(catalog().contains(&last));
    assert_eq!(
        hub_file(folder.path())["catalog"]["generation"],
        hub_file(folder.path())["generation"]
    );
    // Where nothing is left, nothing is read or written.
    std::fs::write(folder.path().join("catalog.jsonl"), "").expect("is ours");
    runtime.block_on(writer.tidy()).expect("has nothing to do");
    assert_eq!(catalog(), "");
    std::fs::write(folder.path().join("catalog.jsonl"), before).expect("is ours");
    // Whoever writes into the folder leaves it, too, and tidies up when asked to.
    for reason in 0..DUE {
        let notice = Some(format!("reason {}", 100 + reason));
        hub.notice("other", "1.0.0", Notice::Deprecated, notice.as_deref()).expect("is there");
    }
    assert!(hub.has_left() && !catalog().contains("reason 10"));
    hub.tidy().expect("can be written");
    assert!(!hub.has_left() && catalog().contains(&format!("reason {}", 100 + DUE - 1)));
}

#[test]
fn a_hub_with_too_many_packages_for_a_catalog_has_none() {
    let folder = tempfile::tempdir().expect("there is room");
    let catalog = folder.path().join("catalog.jsonl");
    // Each has 31 bytes in the catalog.
    let place = || Place::folder(folder.path()).longest_catalog(160);
    let (hub, _) = Hub::init(&place()).expect("can be made");
    let publish = |number: usize| {
        let package = publication(&format!("n{number}"), "1.0.0", "x");
        hub.publish(&package).expect("is fine");
    };
    (0..5).for_each(publish);
    assert_eq!(std::fs::read_to_string(&catalog).expect("is there").lines().count(), 5);
    assert!(hub.tidy().expect("can be written"));
    publish(5);
    let said = || hub_file(folder.path())["catalog"].clone();
    assert_eq!(said(), json!({ "generation": 6, "tooLarge": true }));
    assert!(!catalog.exists());
    // That is so for ever, and nothing is left to do.
    publish(6);
    assert_eq!(said(), json!({ "generation": 6, "tooLarge": true }));
    assert!(!hub.has_left());
    assert!(!hub.tidy().expect("has nothing to do"));
    assert!(hub.check(false, &mut |_| {}).expect("can be read").findings.is_empty());
    // A catalog that somebody puts there misleads nobody who asks hub.json.
    std::fs::write(&catalog, "{\"name\":\"n0\"}\n").expect("is ours");
    let findings = hub.check(true, &mut |_| {}).expect("can be read").findings;
    assert!(findings[0].is_leftover && findings[0].is_repaired, "{findings:?}");
    assert!(!catalog.exists());
    // A repair looks whether there is room again.
    let larger = Hub::open(&Place::folder(folder.path())).expect("is there");
    larger.check(true, &mut |_| {}).expect("can be repaired");
    assert_eq!(std::fs::read_to_string(&catalog).expect("is there").lines().count(), 7);
    assert!(larger.tidy().expect("can be written"));
    assert_eq!(said()["tooLarge"], json!(null));
    // One from before there was a limit goes, too.
    publish(7);
    assert!(!hub.tidy().expect("can be written"));
    assert!(!catalog.exists());
}

#[test]
fn a_catalog_in_another_order_is_written_anew() {
    let folder = tempfile::tempdir().expect("there is room");
    let (hub, _) = Hub::init(&Place::folder(folder.path())).expect("can be made");
    // In the order of their files, `a/b` would be the last.
    for name in ["a", "a-b", "a/b", "b"] {
        hub.publish(&publication(name, "1.0.0", "x")).expect("is fine");
    }
    let path = folder.path().join("catalog.jsonl");
    let catalog = || std::fs::read_to_string(&path).expect("is there");
    let names = || {
        let name = |line: &str| line.split('"').nth(3).map(str::to_owned);
        catalog().lines().filter_map(name).collect::<Vec<String>>()
    };
    assert_eq!(names(), ["a", "a-b", "a/b", "b"]);
    let expected = catalog();
    let turned: String = expected.lines().rev().flat_map(|line| [line, "\n"]).collect();
    std::fs::write(&path, turned).expect("is ours");
    hub.notice("b", "1.0.0", Notice::Deprecated, Some("old")).expect("is there");
    assert_eq!(names(), ["a", "a-b", "a/b", "b"]);
    assert!(catalog().contains("old"));
    // A change in the middle leaves all others as they are.
    std::fs::write(&path, expected.replace("\"a\"", "\"a\" ")).expect("is ours");
    hub.notice("a-b", "1.0.0", Notice::Deprecated, Some("older")).expect("is there");
    assert_eq!(names(), ["a", "a-b", "a/b", "b"]);
    assert!(catalog().contains("\"a\" ") && catalog().contains("older"));
}

/// What a store was asked.
#[derive(Debug, Default)]
struct Asked {
    /// `METHOD PATH` of reads and listings.
    reads: Vec<String>,
    /// The same of writes, each with the length of what was written.
    writes: Vec<(String, u64)>,
}

/// A store that counts, and how many writes are waited for one after another: one that begins before another one ends is waited for
/// together with it.
#[derive(Debug, Default)]
struct Counting {
    store: InMemory,
    asked: Mutex<Asked>,
    waits: AtomicU64,
}

impl Counting {
    fn read(&self, method: &str, path: &impl fmt::Display) {
        let mut asked = self.asked.lock().expect("nobody panics");
        asked.reads.push(format!("{method} {path}"));
    }

    fn write(&self, method: &str, path: &StorePath, bytes: u64) {
        let mut asked = self.asked.lock().expect("nobody panics");
        asked.writes.push((format!("{method} {path}"), bytes));
    }

    /// Waits until all that was begun together has begun.
    async fn wait(&self) {
        let before = self.waits.load(Ordering::SeqCst);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.waits.fetch_max(before + 1, Ordering::SeqCst);
    }

    fn take(&self) -> (Asked, u64) {
        let asked = std::mem::take(&mut *self.asked.lock().expect("nobody panics"));
        (asked, self.waits.swap(0, Ordering::SeqCst))
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("counting")
    }
}

/// Shares a store with whoever looks at it.
#[derive(Debug, Clone)]
struct Shared(Arc<Counting>);

impl fmt::Display for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

fn unsupported() -> Error {
    Error::Generic { store: "counting", source: "is not used by hubs".into() }
}

#[async_trait::async_trait]
impl ObjectStore for Shared {
    async fn put_opts(
        &self,
        path: &StorePath,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.0.write("PUT", path, payload.content_length() as u64);
        self.0.wait().await;
        self.0.store.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        _: &StorePath,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(unsupported())
    }

    async fn get_opts(&self, path: &StorePath, options: GetOptions) -> Result<GetResult> {
        self.0.read(if options.head { "HEAD" } else { "GET" }, path);
        self.0.store.get_opts(path, options).await
    }

    async fn get_ranges(&self, _: &StorePath, _: &[Range<u64>]) -> Result<Vec<Bytes>> {
        Err(unsupported())
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<StorePath>>,
    ) -> BoxStream<'static, Result<StorePath>> {
        let shared = self.clone();
        let deleting = paths.and_then(move |path| {
            let shared = shared.clone();
            async move {
                shared.0.write("DELETE", &path, 0);
                shared.0.wait().await;
                shared.0.store.delete(&path).await.map(|()| path)
            }
        });
        deleting.boxed()
    }

    fn list(&self, prefix: Option<&StorePath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.read("LIST", prefix.unwrap_or(&StorePath::default()));
        self.0.store.list(prefix)
    }

    async fn list_with_delimiter(&self, _: Option<&StorePath>) -> Result<ListResult> {
        Err(unsupported())
    }

    async fn copy_opts(&self, _: &StorePath, _: &StorePath, _: CopyOptions) -> Result<()> {
        Err(unsupported())
    }
}

/// A hub in a store, with one package of twenty versions, that says of itself that it has a million packages.
fn hub_of_a_million(counting: &Arc<Counting>) -> Hub {
    let place = Place::store(Arc::new(Shared(Arc::clone(counting))), "memory");
    let (hub, _) = Hub::init(&place).expect("can be made");
    for patch in 0..20 {
        let keys = json!({ "provides": ["example.com/v1/Gateway"] });
        let package = with_keys("acme/web", &format!("1.0.{patch}"), "x", keys);
        hub.publish(&package).expect("is fine");
    }
    hub.publish(&publication("acme/lib", "1.0.0", "x")).expect("is fine");
    let (generation, last) = (20_000_000_u64, "log/019999.txt");
    let file = json!({
        "hub": 1, "index": "index/", "packs": "packs/", "closures": "closures/", "log": "log/",
        "generation": generation,
        "snapshotGeneration": 250_000,
        "catalog": { "generation": generation - 10_000, "bytes": 169 << 20 },
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
    runtime.block_on(async {
        let log = "acme/web\n".repeat(1_000);
        for (path, text) in [("hub.json", file.to_string()), (last, log)] {
            let path = StorePath::parse(path).expect("is a path");
            counting.store.put(&path, text.into()).await.expect("is in memory");
        }
    });
    counting.take();
    hub
}

#[test]
fn publishing_into_a_hub_of_a_million_packages_reads_and_writes_what_is_of_the_package() {
    let counting = Arc::new(Counting::default());
    let hub = hub_of_a_million(&counting);
    let keys = json!({
        "dependencies": ["acme/lib#^1"],
        "provides": ["example.com/v1/Gateway", "example.com/v1/Route"],
    });
    let package = with_keys("acme/web", "1.1.0", "x", keys);
    assert_eq!(hub.publish(&package).expect("is fine"), Published::New);
    let (asked, waits) = counting.take();
    let written: Vec<&str> = asked.writes.iter().map(|(what, _)| what.as_str()).collect();
    let is_marker = |what: &&&str| what.contains(" pending/");
    let others: Vec<&str> = written.iter().filter(|what| !is_marker(what)).copied().collect();
    let mut expected = [
        "PUT packs/acme/web/web-1.1.0.tgz",
        "PUT index/acme/web.jsonl",
        "PUT capabilities/example.com/v1/Route.json",
        "PUT closures/acme/web.json",
        "PUT log/020000.txt",
        "PUT hub.json",
    ];
    let mut sorted = others.clone();
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(written.len() - others.len(), 2, "the marker is written and removed: {written:?}");
    // At 70 ms a write, half a second.
    assert_eq!(waits, 7, "{written:?}");
    let largest = asked.writes.iter().map(|(_, bytes)| *bytes).max();
    assert!(largest.is_some_and(|largest| largest < 64 << 10), "{:?}", asked.writes);
    // Nothing about all packages is read, and nothing is listed but what other writers are about to do, once.
    let about_all = |what: &&String| what.contains("catalog") || what.contains("snapshot");
    assert_eq!(asked.reads.iter().filter(about_all).count(), 0, "{:?}", asked.reads);
    let listed: Vec<&String> = asked.reads.iter().filter(|what| what.starts_with("LIST")).collect();
    assert_eq!(listed, ["LIST pending"]);
    assert!(asked.reads.len() <= 20, "{:?}", asked.reads);
    assert!(hub.has_left(), "the catalog is 10,000 changes behind");
}

#[test]
fn other_changes_of_a_large_hub_list_what_is_pending_once_and_nothing_else() {
    let counting = Arc::new(Counting::default());
    let hub = hub_of_a_million(&counting);
    let listed = || {
        let (asked, _) = counting.take();
        asked.reads.into_iter().filter(|what| what.starts_with("LIST")).collect::<Vec<_>>()
    };
    hub.notice("acme/web", "1.0.3", Notice::Yanked, Some("leaks")).expect("is there");
    assert_eq!(listed(), ["LIST pending"]);
    // The same version again.
    let keys = json!({ "provides": ["example.com/v1/Gateway"] });
    let package = with_keys("acme/web", "1.0.3", "x", keys);
    assert_eq!(hub.publish(&package).expect("is there"), Published::Same);
    assert_eq!(listed(), ["LIST pending"]);
    // Reading a package.
    assert_eq!(hub.lines("acme/web").expect("is there").len(), 20);
    assert_eq!(listed(), [""; 0]);
}
