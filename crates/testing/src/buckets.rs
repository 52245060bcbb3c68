//! Object stores of two clouds, for tests: a server with the part of Google Cloud Storage's XML API that a hub needs, as in
//! Google's reference, and Azurite, Microsoft's own emulator of Azure Blob Storage, which `.ci/setup` installs (see
//! `crates/testing/azurite`).
//!
//! No packaged emulator of Google's store checks the condition of a write (`x-goog-if-generation-match`). So this shows what mu
//! sends to Google and how it handles the answers, but not that Google answers like this. It refuses requests that it does not
//! know, and writes that come too fast, as Google does. `mu-testing-s3` has an S3-compatible server.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::http::{Reply, Seen, TestServer};

const TOKEN: &str = "tests";

/// How many objects a page of a listing has.
const PAGE: usize = 7;

/// Each so many writes, one is refused for coming too fast.
const REFUSED: u64 = 20;

/// A running server with one bucket, `packages`.
#[derive(Debug)]
pub struct GoogleServer {
    /// Serves until this is dropped.
    _server: TestServer,
    endpoint: String,
    bucket: Arc<Mutex<Bucket>>,
}

#[derive(Debug, Default)]
struct Bucket {
    objects: BTreeMap<String, Object>,
    writes: u64,
    lost: usize,
}

#[derive(Debug, Clone)]
struct Object {
    generation: u64,
    bytes: Vec<u8>,
}

impl GoogleServer {
    /// Starts one with an empty bucket.
    pub fn start() -> Self {
        let bucket = Arc::new(Mutex::new(Bucket::default()));
        let shared = Arc::clone(&bucket);
        let server =
            TestServer::start(move |request, _| shared.lock().expect("is whole").answer(request));
        Self { endpoint: format!("http://{}", server.host()), _server: server, bucket }
    }

    /// The variables that lead to it.
    pub fn variables(&self) -> [(&str, &str); 2] {
        [("GOOGLE_BASE_URL", &self.endpoint), ("GOOGLE_BEARER_TOKEN", TOKEN)]
    }

    /// How many writes it refused because the object had changed.
    pub fn lost(&self) -> usize {
        self.bucket.lock().expect("is whole").lost
    }
}

impl Bucket {
    fn answer(&mut self, request: &Seen) -> Reply {
        let bearer = format!("Bearer {TOKEN}");
        if request.header("authorization") != Some(&bearer) {
            return refusal(401, "AuthenticationRequired");
        }
        let path = decoded(request.path.split('?').next().unwrap_or_default());
        let key = match path.trim_start_matches('/').split_once('/') {
            Some(("packages", key)) => key,
            None if path == "/packages" => "",
            _ => return refusal(404, "NoSuchBucket"),
        };
        match (request.method.as_str(), key) {
            ("GET", "") => self.list(request),
            ("GET" | "HEAD", _) => self.read(key, request),
            ("PUT", key) if !key.is_empty() => self.write(key, request),
            ("DELETE", key) if !key.is_empty() => match self.objects.remove(key) {
                Some(_) => Reply::status(204),
                None => refusal(404, "NoSuchKey"),
            },
            _ => refusal(501, "NotImplemented"),
        }
    }

    fn write(&mut self, key: &str, request: &Seen) -> Reply {
        self.writes += 1;
        if self.writes.is_multiple_of(REFUSED) {
            return refusal(429, "SlowDown");
        }
        let present = self.objects.get(key).map_or(0, |object| object.generation);
        if let Some(expected) = request.header("x-goog-if-generation-match")
            && expected != present.to_string()
        {
            self.lost += 1;
            return refusal(412, "PreconditionFailed");
        }
        let generation = 1_700_000_000_000_000 + self.writes;
        let object = Object { generation, bytes: request.body.clone() };
        let reply = object.described(Reply::status(200));
        self.objects.insert(key.to_owned(), object);
        reply
    }

    fn read(&self, key: &str, request: &Seen) -> Reply {
        let Some(object) = self.objects.get(key) else {
            return refusal(404, "NoSuchKey");
        };
        if request.header("if-none-match").is_some_and(|known| known == object.e_tag()) {
            return object.described(Reply::status(304));
        }
        let range = request.header("range").and_then(|range| {
            let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
            let last = object.bytes.len().checked_sub(1)?;
            let to = if to.is_empty() { last } else { to.parse::<usize>().ok()?.min(last) };
            Some((from.parse::<usize>().ok()?, to))
        });
        match range {
            Some((from, to)) if from <= to => {
                let all = object.bytes.len();
                let reply = Reply::status(206).saying(&object.bytes[from..=to]);
                object.described(reply.header("content-range", format!("bytes {from}-{to}/{all}")))
            }
            Some(_) => refusal(416, "InvalidRange"),
            None => object.described(Reply::body(&object.bytes[..])),
        }
    }

    fn list(&self, request: &Seen) -> Reply {
        let query = request.path.split_once('?').map_or("", |(_, query)| query);
        let query: BTreeMap<&str, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key, decoded(value)))
            .collect();
        let of = |name: &str| query.get(name).map_or("", String::as_str);
        if of("list-type") != "2" || query.contains_key("delimiter") {
            return refusal(501, "NotImplemented");
        }
        let (prefix, after) = (of("prefix"), of("continuation-token"));
        let objects = self.objects.iter();
        let mut found = objects.filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after);
        let page: Vec<_> = found.by_ref().take(PAGE).collect();
        let mut text = "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult>".to_owned();
        for (key, object) in &page {
            text.push_str(&format!(
                "<Contents><Key>{key}</Key><Size>{}</Size><ETag>{}</ETag>\
                 <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",
                object.bytes.len(),
                object.e_tag()
            ));
        }
        if let (Some(_), Some((last, _))) = (found.next(), page.last()) {
            text.push_str(&format!("<NextContinuationToken>{last}</NextContinuationToken>"));
        }
        text.push_str("</ListBucketResult>");
        Reply::body(text).header("content-type", "application/xml")
    }
}

impl Object {
    /// It differs from the generation and is not a number, so code that confuses the two fails.
    fn e_tag(&self) -> String {
        format!("\"e{:x}\"", self.generation)
    }

    fn described(&self, reply: Reply) -> Reply {
        reply
            .header("etag", self.e_tag())
            .header("x-goog-generation", self.generation.to_string())
            .header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
    }
}

fn refusal(status: u16, code: &str) -> Reply {
    let text = format!("<Error><Code>{code}</Code><Message>{status}</Message></Error>");
    Reply::status(status).saying(text).header("content-type", "application/xml")
}

/// A part of a URL without its escapes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).expect("names of objects are UTF-8")
}

/// A running emulator with one container, `packages`.
#[derive(Debug)]
pub struct Azurite {
    process: Child,
    endpoint: String,
}

impl Azurite {
    /// Starts one with an empty container.
    pub fn start() -> Self {
        let mut command = Command::new("node");
        command.arg(crate::file("azurite/serve.js"));
        command.arg(crate::file("../../target/azurite/node_modules"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| {
            panic!("`node` cannot be run, `.ci/setup` installs it and Azurite: {error}")
        });
        let mut endpoint = String::new();
        let mut said = BufReader::new(process.stdout.take().expect("is piped"));
        said.read_line(&mut endpoint).expect("is text");
        if endpoint.is_empty() {
            let mut why = String::new();
            let _ = process.stderr.take().expect("is piped").read_to_string(&mut why);
            panic!("Azurite does not start, `.ci/setup` installs it: {why}");
        }
        Self { process, endpoint: endpoint.trim().to_owned() }
    }

    /// The variables that lead to it. Every emulator has this account and key.
    pub fn variables(&self) -> [(&str, &str); 3] {
        [
            ("AZURE_STORAGE_ENDPOINT", &self.endpoint),
            ("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1"),
            (
                "AZURE_STORAGE_ACCOUNT_KEY",
                "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
            ),
        ]
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
