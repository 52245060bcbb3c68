//! Anything that a client can send to a hub's server, with a token and without: the server answers or closes
//! the connection, but never has an internal error. A refused request changes nothing, and an accepted one
//! leaves a sound hub.
//!
//! The first byte says how the rest is read: as what goes over the wire, or as `NAME/VERSION`, lines of headers, an
//! empty line and a body. The body is then sent as it is, as a tar in gzip, or as more lines of a manifest that is
//! packed here, because no mutation would find those. `TOKEN` becomes one that is known.
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run publish -- -max_total_time=60`.

#![no_main]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use mu_hub::{Can, Hub, NewToken, Place, Serving};
use mu_hub_server::Unbound;
use object_store::memory::InMemory;

/// What a hub's files begin with.
const FILES: [&str; 10] = [
    "hub.json",
    "index/",
    "packs/",
    "capabilities/",
    "closures/",
    "catalog.jsonl",
    "log/",
    "pending/",
    "private/",
    "snapshot.",
];

/// A hub with a package, and the secret of a token for its namespace.
static MADE: LazyLock<(Arc<InMemory>, String)> = LazyLock::new(|| {
    let store = Arc::new(InMemory::new());
    let place = Place::store(Arc::clone(&store) as _, "memory");
    let (hub, _) = Hub::init(&place).expect("can be made");
    let new = NewToken {
        name: "fuzz".to_owned(),
        namespaces: vec!["acme".to_owned()],
        reads: None,
        can: vec![Can::Publish, Can::Yank],
        created: jiff::Timestamp::UNIX_EPOCH,
        expires: None,
    };
    let secret = hub.add_token(&new).expect("can be made");
    let sent = request(b"PUT", b"acme/web/1.0.0\nauthorization: Bearer TOKEN\n\n", 2, &secret);
    let answer = Unbound::new(&place, serving()).expect("is a hub").talk(&sent);
    assert!(answer.starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&answer));
    (store, secret)
});

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let (made, secret) = &*MADE;
    // Every input begins with the same hub.
    let store = Arc::new(made.fork());
    let place = Place::store(Arc::clone(&store) as _, "memory");
    let method: &[u8] = if kind & 4 == 0 { b"PUT" } else { b"PATCH" };
    let sent = match kind & 3 {
        3 => with_secret(rest, secret),
        body => request(method, rest, body, secret),
    };
    let before = content(&store);
    let served = Unbound::new(&place, serving()).expect("is a hub");
    let answer = served.talk(&sent);
    let text = String::from_utf8_lossy(&answer);
    assert!(!text.contains(secret.as_str()), "{text}");
    let statuses: Vec<&str> = text
        .match_indices("HTTP/1.1 ")
        .filter_map(|(at, word)| text.get(at + word.len()..)?.get(..3))
        .collect();
    // HTTP/2 has no text to compare.
    let is_told = !sent.starts_with(b"PRI ");
    assert!(!is_told || answer.is_empty() || text.starts_with("HTTP/"), "{text}");
    assert!(statuses.iter().all(|status| *status < "500"), "{text}");
    let after = content(&store);
    if is_told && !statuses.iter().any(|status| status.starts_with('2')) {
        assert_eq!(before, after, "{text}");
    } else if before != after {
        for path in after.keys() {
            assert!(FILES.iter().any(|known| path.starts_with(known)), "{path}");
        }
        let report = Hub::open(&place).and_then(|hub| hub.check(false, &mut |_| {}));
        let report = report.expect("can be read");
        assert!(report.findings.is_empty(), "{report:?}\n{text}");
    }
});

fn serving() -> Serving {
    Serving {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        tls: None,
        base: None,
        largest_archive: 1 << 20,
        most_entries: 10_000,
        changes_per_minute: u32::MAX,
        requests_per_second: 0,
        private: false,
        public_metrics: false,
        trusted_proxies: Vec::new(),
        keep_free: Some(0),
        upstream: None,
        state: std::env::temp_dir(),
        log: Arc::new(|line| {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
            assert!(!line.contains(char::is_control), "{line}");
        }),
    }
}

/// Path → content of every file.
fn content(store: &Arc<InMemory>) -> BTreeMap<String, bytes::Bytes> {
    use futures_util::{FutureExt as _, TryStreamExt as _};
    use object_store::{ObjectStore as _, ObjectStoreExt as _};

    let listed = store.list(None).try_collect::<Vec<_>>().now_or_never();
    let listed = listed.expect("memory does not wait").expect("can be listed");
    let read = |path: &object_store::path::Path| {
        let found = store.get(path).now_or_never().expect("memory does not wait").ok()?;
        found.bytes().now_or_never().expect("memory does not wait").ok()
    };
    let files = listed.into_iter().map(|file| file.location);
    files.filter_map(|path| Some((path.to_string(), read(&path)?))).collect()
}

fn with_secret(bytes: &[u8], secret: &str) -> Vec<u8> {
    const WORD: &[u8] = b"TOKEN";
    let mut replaced = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(WORD.len()).position(|window| window == WORD) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(secret.as_bytes());
        rest = &rest[at + WORD.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

/// A request, as it goes over the wire.
fn request(method: &[u8], text: &[u8], body: u8, secret: &str) -> Vec<u8> {
    let end = text.windows(2).position(|window| window == b"\n\n");
    let (head, sent) = end.map_or((text, &b""[..]), |end| (&text[..end], &text[end + 2..]));
    let mut lines = head.split(|byte| *byte == b'\n');
    let package = lines.next().unwrap_or_default();
    let body = match body {
        0 => sent.to_vec(),
        1 => zipped(&sealed(sent)),
        _ => packed(package, sent),
    };
    let mut request =
        [method, b" /api/v1/packages/", package, b" HTTP/1.1\r\nhost: h\r\n"].concat();
    for line in lines {
        request.extend_from_slice(line);
        request.extend_from_slice(b"\r\n");
    }
    if !head.windows(8).any(|window| window.eq_ignore_ascii_case(b"content-")) {
        request.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    request.extend_from_slice(b"connection: close\r\n\r\n");
    request.extend_from_slice(&body);
    with_secret(&request, secret)
}

/// An archive with only a manifest that matches the path, followed by `more`.
fn packed(package: &[u8], more: &[u8]) -> Vec<u8> {
    let package = String::from_utf8_lossy(package);
    let (name, version) = package.rsplit_once('/').unwrap_or((&package, ""));
    let mut manifest = format!("name: {name}\nversion: {version}\n").into_bytes();
    manifest.extend_from_slice(more);
    let mut tar = Vec::new();
    let mut header = [0; 512];
    header[..7].copy_from_slice(b"Mu.yaml");
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{:011o}", manifest.len()).as_bytes());
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    tar.extend_from_slice(&header);
    tar.extend_from_slice(&manifest);
    tar.resize(tar.len().next_multiple_of(512) + 1024, 0);
    zipped(&sealed(&tar))
}

/// The tar with the right checksum in every block that says it is a header: no mutation finds these.
fn sealed(tar: &[u8]) -> Vec<u8> {
    let mut tar = tar.to_vec();
    for block in tar.chunks_exact_mut(512).filter(|block| &block[257..262] == b"ustar") {
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    tar
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(bytes).expect("goes to memory");
    gzip.finish().expect("goes to memory")
}
