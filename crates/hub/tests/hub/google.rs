//! A server that speaks as much of Google Cloud Storage's XML API as a hub needs, as Google's reference describes it.
//!
//! No registry has an emulator that looks at the condition of a write (`x-goog-if-generation-match`) there. So this
//! shows what is asked of Google, and what becomes of its answers; it cannot show that Google answers so. It refuses
//! what it does not know, and some writes for coming too fast, as Google does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const TOKEN: &str = "tests";

/// How many objects a page of a listing has.
const PAGE: usize = 7;

/// Each so many writes, one is refused for coming too fast.
const REFUSED: u64 = 20;

/// A running server with one bucket, `packages`.
#[derive(Debug)]
pub(crate) struct GoogleServer {
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

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: &'static str,
    headers: String,
    body: Vec<u8>,
}

impl GoogleServer {
    /// Starts one with an empty bucket.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
        let address: SocketAddr = listener.local_addr().expect("is bound");
        let bucket = Arc::new(Mutex::new(Bucket::default()));
        let shared = Arc::clone(&bucket);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let bucket = Arc::clone(&shared);
                // A connection that breaks is the business of whoever opened it.
                thread::spawn(move || serve(&stream, &bucket));
            }
        });
        Self { endpoint: format!("http://{address}"), bucket }
    }

    /// The variables that lead to it.
    pub(crate) fn variables(&self) -> [(&str, &str); 2] {
        [("GOOGLE_BASE_URL", &self.endpoint), ("GOOGLE_BEARER_TOKEN", TOKEN)]
    }

    /// How many writes it refused because the object was another one by then.
    pub(crate) fn lost(&self) -> usize {
        self.bucket.lock().expect("is whole").lost
    }
}

fn serve(stream: &TcpStream, bucket: &Mutex<Bucket>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let request = Request::read(&mut reader)?;
        let answer = bucket.lock().expect("is whole").answer(&request);
        let mut bytes = format!(
            "HTTP/1.1 {}\r\n{}content-length: {}\r\n\r\n",
            answer.status,
            answer.headers,
            answer.body.len()
        )
        .into_bytes();
        if request.method != "HEAD" {
            bytes.extend(answer.body);
        }
        writer.write_all(&bytes).ok()?;
    }
}

impl Request {
    fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let (first, headers) = lines.split_first()?;
        let mut words = first.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers: BTreeMap<_, _> = headers
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let query = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = query.map(|(key, value)| (key.to_owned(), decoded(value))).collect();
        Some(Self { method, path: decoded(path), query, headers, body })
    }
}

impl Bucket {
    fn answer(&mut self, request: &Request) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        if request.headers.get("authorization") != Some(&bearer) {
            return Answer::error("401 Unauthorized", "AuthenticationRequired");
        }
        let key = match request.path.trim_start_matches('/').split_once('/') {
            Some(("packages", key)) => key,
            None if request.path == "/packages" => "",
            _ => return Answer::error("404 Not Found", "NoSuchBucket"),
        };
        match (request.method.as_str(), key) {
            ("GET", "") => self.list(request),
            ("GET" | "HEAD", _) => self.read(key, request),
            ("PUT", key) if !key.is_empty() => self.write(key, request),
            ("DELETE", key) if !key.is_empty() => match self.objects.remove(key) {
                Some(_) => Answer::new("204 No Content", String::new(), Vec::new()),
                None => Answer::error("404 Not Found", "NoSuchKey"),
            },
            _ => Answer::error("501 Not Implemented", "NotImplemented"),
        }
    }

    fn write(&mut self, key: &str, request: &Request) -> Answer {
        self.writes += 1;
        if self.writes.is_multiple_of(REFUSED) {
            return Answer::error("429 Too Many Requests", "SlowDown");
        }
        let present = self.objects.get(key).map_or(0, |object| object.generation);
        if let Some(expected) = request.headers.get("x-goog-if-generation-match")
            && *expected != present.to_string()
        {
            self.lost += 1;
            return Answer::error("412 Precondition Failed", "PreconditionFailed");
        }
        let generation = 1_700_000_000_000_000 + self.writes;
        let object = Object { generation, bytes: request.body.clone() };
        let headers = object.headers();
        self.objects.insert(key.to_owned(), object);
        Answer::new("200 OK", headers, Vec::new())
    }

    fn read(&self, key: &str, request: &Request) -> Answer {
        let Some(object) = self.objects.get(key) else {
            return Answer::error("404 Not Found", "NoSuchKey");
        };
        let headers = object.headers();
        if request.headers.get("if-none-match").is_some_and(|known| *known == object.e_tag()) {
            return Answer::new("304 Not Modified", headers, Vec::new());
        }
        let range = request.headers.get("range").and_then(|range| {
            let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
            let last = object.bytes.len().checked_sub(1)?;
            let to = if to.is_empty() { last } else { to.parse::<usize>().ok()?.min(last) };
            Some((from.parse::<usize>().ok()?, to))
        });
        match range {
            Some((from, to)) if from <= to => {
                let all = object.bytes.len();
                let headers = format!("{headers}content-range: bytes {from}-{to}/{all}\r\n");
                Answer::new("206 Partial Content", headers, object.bytes[from..=to].to_vec())
            }
            Some(_) => Answer::error("416 Range Not Satisfiable", "InvalidRange"),
            None => Answer::new("200 OK", headers, object.bytes.clone()),
        }
    }

    fn list(&self, request: &Request) -> Answer {
        let of = |name: &str| request.query.get(name).map_or("", String::as_str);
        if of("list-type") != "2" || request.query.contains_key("delimiter") {
            return Answer::error("501 Not Implemented", "NotImplemented");
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
        Answer::new("200 OK", "content-type: application/xml\r\n".to_owned(), text.into_bytes())
    }
}

impl Object {
    /// Another one than the generation, and no number: whoever mixes them up is told so.
    fn e_tag(&self) -> String {
        format!("\"e{:x}\"", self.generation)
    }

    fn headers(&self) -> String {
        format!(
            "etag: {}\r\nx-goog-generation: {}\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n",
            self.e_tag(),
            self.generation
        )
    }
}

impl Answer {
    fn new(status: &'static str, headers: String, body: Vec<u8>) -> Self {
        Self { status, headers, body }
    }

    fn error(status: &'static str, code: &str) -> Self {
        let message = format!("<Message>{status}</Message>");
        let body = format!("<Error><Code>{code}</Code>{message}</Error>").into_bytes();
        Self::new(status, "content-type: application/xml\r\n".to_owned(), body)
    }
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
