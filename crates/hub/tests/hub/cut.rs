//! Writers that are interrupted before, and after, every single write.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use mu_hub::{Hub, HubError, Place, Publication, Published};
use mu_provider::ArchiveDigest;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{archive, publication, with_keys};

/// A store whose writers die after some writes.
#[derive(Debug)]
struct Failing {
    store: Arc<InMemory>,
    /// How many writes still succeed.
    left: AtomicI64,
    /// Whether the failing write takes effect all the same.
    is_done: AtomicBool,
}

impl Failing {
    /// Counts a write; returns whether it takes effect, and whether it succeeds.
    fn write(&self) -> (bool, bool) {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        (left > 0 || (left == 0 && self.is_done.load(Ordering::SeqCst)), left > 0)
    }
}

fn cut() -> Error {
    Error::Generic { store: "failing", source: "was cut off".into() }
}

impl fmt::Display for Failing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("failing")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let (is_done, succeeds) = self.write();
        if !is_done {
            return Err(cut());
        }
        let result = self.store.put_opts(path, payload, options).await?;
        if succeeds { Ok(result) } else { Err(cut()) }
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(cut())
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.store.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.store.get_ranges(path, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (is_done, succeeds) = self.write();
        if !is_done {
            return futures_util::stream::once(async { Err(cut()) }).boxed();
        }
        let deleted = self.store.delete_stream(paths);
        if succeeds { deleted } else { deleted.and_then(|_| async { Err(cut()) }).boxed() }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(cut())
    }
}

/// A reader with a cache, like `mu`: it trusts the generation and the log.
#[derive(Debug, Default)]
struct Reader {
    generation: Option<u64>,
    index: Option<Bytes>,
}

fn get(store: &InMemory, path: &str) -> Option<Bytes> {
    let path = Path::parse(path).expect("is a path");
    let result = store.get(&path).now_or_never().expect("memory does not wait").ok()?;
    Some(result.bytes().now_or_never().expect("memory does not wait").expect("can be read"))
}

impl Reader {
    /// Reads the index of `a`, if it may have changed; checks that all archives are there.
    fn read(&mut self, store: &InMemory) -> usize {
        let hub: Value =
            serde_json::from_slice(&get(store, "hub.json").expect("is there")).expect("is whole");
        let generation = hub["generation"].as_u64().expect("is a number");
        let log = get(store, "log/000000.txt").unwrap_or_default();
        let log: Vec<&str> = std::str::from_utf8(&log).expect("is text").lines().collect();
        let known = self.generation.map(|known| usize::try_from(known).expect("is small"));
        if known.is_none_or(|known| log[known..].contains(&"a")) {
            self.index = get(store, "index/a.jsonl");
        }
        self.generation = Some(generation);
        let index = self.index.clone().unwrap_or_default();
        let lines = std::str::from_utf8(&index).expect("is text").lines();
        let lines: Vec<Value> =
            lines.map(|line| serde_json::from_str(line).expect("is whole")).collect();
        for line in &lines {
            let usual = format!("packs/a/a-{}.tgz", line["version"].as_str().expect("is text"));
            let path = line["urls"][0].as_str().map_or(usual, str::to_owned);
            let archive = get(store, &path).expect("is there before its line");
            let digest = ArchiveDigest::from_bytes(Sha256::digest(&archive).into());
            assert_eq!(line["archive"], digest.to_string());
        }
        lines.len()
    }
}

/// Publishes with a writer that dies after `writes` writes; returns whether it finished before that.
fn publish_cut(writes: i64, is_done: bool) -> bool {
    let store = Arc::new(InMemory::new());
    let place = Place::store(Arc::clone(&store) as Arc<dyn ObjectStore>, "memory")
        .broken_off_after(Duration::ZERO);
    let (hub, _) = Hub::init(&place).expect("can be made");
    hub.publish(&publication("a", "1.0.0", "first")).expect("is fine");
    let mut warm = Reader::default();
    assert_eq!(warm.read(&store), 1);

    let failing =
        Failing { store: Arc::clone(&store), left: writes.into(), is_done: is_done.into() };
    let dying = Place::store(Arc::new(failing), "failing").broken_off_after(Duration::ZERO);
    hub.publish(&publication("z", "1.0.0", "is needed")).expect("is fine");
    let keys = json!({"provides": ["c/v1/K"], "dependencies": ["z"]});
    let second = with_keys("a", "1.1.0", "second", keys);
    let result = Hub::open(&dying).expect("is there").publish(&second);
    let is_complete = match &result {
        Ok(published) => *published == Published::New,
        Err(error) => {
            assert!(matches!(error, HubError::Store { .. }), "{error}");
            false
        }
    };

    let context =
        format!("after {writes} writes, the next {}", if is_done { "done" } else { "not done" });
    let cold = Reader::default().read(&store);
    let seen = warm.read(&store);
    assert!(seen <= cold && cold <= 2, "{context}");
    let report = hub.check(false, &mut |_| {}).expect("can be read");
    assert!(report.is_sound(), "{context}: {report:?}");

    // The next write, of any package, completes the interrupted one.
    if writes % 2 == 0 {
        hub.publish(&publication("b", "1.0.0", "other")).expect("is fine");
        assert_eq!(warm.read(&store), cold, "{context}");
    }
    // The author tries again.
    hub.publish(&second).expect("is fine");
    assert_eq!(warm.read(&store), 2, "{context}");
    let capability = get(&store, "capabilities/c/v1/K.json").expect("is there");
    assert_eq!(capability, "{\"packages\":[\"a\"]}\n", "{context}");
    let closure = get(&store, "closures/a.json").expect("is there");
    assert_eq!(closure, "{\"packages\":[\"z\"]}\n", "{context}");
    let report = hub.check(false, &mut |_| {}).expect("can be read");
    assert!(report.findings.is_empty(), "{context}: {report:?}");
    is_complete
}

#[test]
fn at_every_write_readers_see_no_half_version_and_the_next_write_completes_it() {
    for is_done in [false, true] {
        let complete = (0..100).take_while(|writes| !publish_cut(*writes, is_done)).count();
        assert!((6..20).contains(&complete), "{complete} writes");
    }
}

#[test]
fn a_repair_completes_what_was_cut() {
    for writes in 0.. {
        let store = Arc::new(InMemory::new());
        let place = Place::store(Arc::clone(&store) as Arc<dyn ObjectStore>, "memory");
        let (hub, _) = Hub::init(&place).expect("can be made");
        let package =
            with_keys("a", "1.0.0", "x", json!({"provides": ["c/v1/K"], "description": "An a"}));
        let mut warm = Reader::default();
        warm.read(&store);
        let failing =
            Failing { store: Arc::clone(&store), left: writes.into(), is_done: false.into() };
        let dying = Hub::open(&Place::store(Arc::new(failing), "failing")).expect("is there");
        let is_complete = dying.publish(&package).is_ok();
        let report = hub.check(true, &mut |_| {}).expect("can be repaired");
        assert!(report.is_sound(), "{writes}: {report:?}");
        let report = hub.check(false, &mut |_| {}).expect("can be read");
        // An archive in a bucket may be about to be published, so it stays for a day.
        let left: Vec<_> =
            report.findings.iter().filter(|one| !one.path.starts_with("packs/")).collect();
        assert!(left.is_empty(), "{writes}: {left:?}");
        let cold = Reader::default().read(&store);
        assert_eq!(hub.line("a", "1.0.0").expect("can be read").is_some(), cold == 1);
        assert_eq!(
            get(&store, "catalog.jsonl").unwrap_or_default().is_empty(),
            cold == 0,
            "{writes}"
        );
        if is_complete {
            assert!(writes > 5);
            break;
        }
    }
}

/// Adds what vouches for a version with a writer that dies after `writes` writes; returns whether it finished before that.
fn vouch_cut(writes: i64, vouch: &dyn Fn(&Hub) -> Result<Published, HubError>, path: &str) -> bool {
    let store = Arc::new(InMemory::new());
    let place = Place::store(Arc::clone(&store) as Arc<dyn ObjectStore>, "memory")
        .broken_off_after(Duration::ZERO);
    let (hub, _) = Hub::init(&place).expect("can be made");
    let line = json!({"name": "a", "version": "1.0.0", "locator": "in-folder"});
    let line = line.as_object().expect("is an object").clone();
    let archive = archive(&[("a/Mu.yaml", "name: a\nversion: 1.0.0\n")]);
    hub.publish(&Publication { line, archive }).expect("is fine");
    let failing = Failing { store: Arc::clone(&store), left: writes.into(), is_done: false.into() };
    let dying = Place::store(Arc::new(failing), "failing").broken_off_after(Duration::ZERO);
    let is_complete = vouch(&Hub::open(&dying).expect("is there")).is_ok();
    // The next write, of any package, completes it: whoever reads the log learns of all that is there.
    hub.publish(&publication("b", "1.0.0", "other")).expect("is fine");
    let log = get(&store, "log/000000.txt").expect("is there");
    let log = std::str::from_utf8(&log).expect("is text");
    let is_there = get(&store, path).is_some();
    assert!(!is_there || log.lines().any(|line| line == "a 1.0.0"), "after {writes} writes: {log}");
    is_complete
}

#[test]
fn at_every_write_the_log_says_what_vouches_for_a_version() {
    let provenance = |hub: &Hub| hub.add_provenance("a", "1.0.0", "signed".into());
    let line = r#"{"cosign":{"payload":"e30=","signature":"AAAA"}}"#;
    let evidence = |hub: &Hub| hub.add_evidence("a", "1.0.0", format!("{line}\n").into());
    type Vouch<'v> = &'v dyn Fn(&Hub) -> Result<Published, HubError>;
    let ways: [(Vouch<'_>, &str); 2] =
        [(&provenance, "packs/a/a-1.0.0.tgz.prov"), (&evidence, "signatures/a/a-1.0.0.jsonl")];
    for (vouch, path) in ways {
        let complete = (0..100).take_while(|writes| !vouch_cut(*writes, vouch, path)).count();
        assert!((3..20).contains(&complete), "{path}: {complete} writes");
    }
}
