//! Answers from what the server reads: the hub's files, and its catalog, which is kept in memory, or is the server's own. It serves the static files:
//! whole, in part, or only if they have changed; and it has the answers that other parts of the server share: JSON, and common
//! refusals.
//!
//! It serves only files of the hub, and no others in the same folder: no tokens, and no markers of writers. A reader of some packages
//! gets the files of these, without other names in them, and none that is about the whole hub. A file that a reader may not read
//! is answered exactly like one that is not there.

use std::io;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use mu_archive::document::PROV_ENDING;
use mu_hub::HubError;
use mu_hub::archive::hex;
use mu_hub::file::{CATALOG_FILE, FileAnswer, FileBytes, FileMeta, FileRequest, HUB_FILE};
use mu_hub::files::Files;
use mu_hub::folder::SMALL;
use mu_hub::root::Root;
use mu_hub::tokens::Scope;
use mu_provider::catalog::LONGEST_LINE;
use mu_provider::numbered_lines;
use mu_provider::threads::lock;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::own_catalog::{KnownPackages, OwnCatalog, name_in};
use super::problem::Problem;
use super::upstream::{Upstream, UpstreamContent};

/// What never changes, as an archive: nobody needs to request it twice.
pub(super) const FOREVER: &str = "public, max-age=31536000, immutable";

/// Changing content may be cached, but is revalidated.
pub(super) const ASK_AGAIN: &str = "no-cache";

/// What may not be cached at all.
pub(super) const NEVER: &str = "no-store";

/// The keys of `hub.json` for somebody who reads only some packages: those that lead to files of single packages.
const OF_PACKAGES: [&str; 5] = ["hub", "index", "packs", "generation", "closures"];
/// The keys of `hub.json` about what is derived from the hub's own index.
const OF_OWN_FILES: [&str; 8] = [
    "generation",
    "log",
    "snapshot",
    "snapshotBytes",
    "snapshotLines",
    "snapshotGeneration",
    "closures",
    "catalog",
];

/// The path for changes, as in `hub.json`.
pub(super) const API: &str = "api/v1/";

/// Answers with the file at `path`, which is slash-separated and relative to the hub.
pub(super) async fn file(
    data: &Data,
    scope: &Scope,
    method: &Method,
    headers: &HeaderMap,
    path: &str,
) -> Result<Response, Problem> {
    if path == HUB_FILE {
        return hub_file(data, scope, method, headers).await;
    }
    let Some((caching, about)) = known_file(data, path) else { return Err(Problem::not_found()) };
    // Whether it has names of packages, of which the reader may not read all.
    let is_limited = match about {
        _ if scope.is_whole() => false,
        FileAbout::Package(name) if scope.has(name) => false,
        FileAbout::Closure(name) if scope.has(name) => true,
        FileAbout::Providers => true,
        _ => return Err(Problem::not_found()),
    };
    if let Some(upstream) = &data.upstream {
        match upstream.bring(data, path).await? {
            UpstreamContent::Own => {}
            UpstreamContent::Text(text) if is_limited => {
                let map = json_of(data, path, &text)?;
                return names_file(data, scope, method, headers, path, map);
            }
            UpstreamContent::Text(text) => return Ok(answer_text(text, path, method, headers)),
            UpstreamContent::File(kept) => {
                return kept_file(data, method, headers, &kept, caching).await;
            }
        }
    }
    if is_limited {
        let map = json_file(data, path).await?.ok_or_else(Problem::not_found)?;
        return names_file(data, scope, method, headers, path, map);
    }
    kept_file(data, method, headers, path, caching).await
}

/// Answers with the file at a path that may be read, which may be cached like that.
async fn kept_file(
    data: &Data,
    method: &Method,
    headers: &HeaderMap,
    path: &str,
    caching: &'static str,
) -> Result<Response, Problem> {
    let mut wanted = FileRequest { is_head: method == Method::HEAD, ..FileRequest::default() };
    let mut part = None;
    if let Some(range) = text(headers, header::RANGE).filter(|_| method == Method::GET) {
        let Some(meta) = data.files.head(path).await? else { return Err(Problem::not_found()) };
        if let Some((start, end)) = range_of(range, headers, &meta) {
            if start >= end {
                return Ok(nothing_of(meta.size));
            }
            wanted.range = Some(start..end);
            part = Some((start, end, meta.size));
        }
    }
    wanted.known = known(headers);
    let has = |meta: &FileMeta| wanted.has(meta.mark.e_tag.as_deref());
    let found = match data.files.get(path, wanted.clone()).await? {
        FileAnswer::Absent => return Err(Problem::not_found()),
        FileAnswer::Unchanged => return Ok(unchanged(headers, caching)),
        // Not every bucket supports conditional reads.
        FileAnswer::Found(found) if has(&found.meta) => {
            return Ok(unchanged(headers, caching));
        }
        FileAnswer::Found(found) => *found,
    };
    let length = found.range.end - found.range.start;
    let meta = found.meta.clone();
    let body = match found.content {
        _ if method == Method::HEAD => Body::empty(),
        FileBytes::Pieces(pieces) if length > SMALL => {
            Body::from_stream(pieces.map_err(io::Error::other))
        }
        _ => {
            let read = found.bytes().await;
            Body::from(read.map_err(|error| data.files.failed("read", path, error))?)
        }
    };
    let mut response = Response::new(body);
    let answer = response.headers_mut();
    if let Some((start, end, size)) = part {
        let range = format!("bytes {start}-{}/{size}", end - 1);
        answer.insert(header::CONTENT_RANGE, value(&range));
    }
    let length = if method == Method::HEAD && part.is_none() { meta.size } else { length };
    answer.insert(header::CONTENT_LENGTH, length.into());
    answer.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    answer.insert(header::LAST_MODIFIED, value(&httpdate::fmt_http_date(meta.modified)));
    if let Some(e_tag) = &meta.mark.e_tag {
        answer.insert(header::ETAG, value(e_tag));
    }
    if part.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// `hub.json` with the path for changes. The files alone do not know that a server serves them.
async fn hub_file(
    data: &Data,
    scope: &Scope,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let Some(mut map) = json_file(data, HUB_FILE).await? else { return Err(Problem::not_found()) };
    if !scope.is_whole() {
        map.retain(|key, _| OF_PACKAGES.contains(&key.as_str()));
    }
    map.insert("api".to_owned(), API.into());
    if let Some(upstream) = &data.upstream {
        // They speak of the hub's own files alone, and a reader takes them to speak of all.
        for key in OF_OWN_FILES {
            map.shift_remove(key);
        }
        map.insert("upstream".to_owned(), upstream.upstream_place().into());
    }
    Ok(made_file(map, method, headers))
}

/// A file with a list of packages, as far as somebody may read these. If nobody whom he sees provides a capability, there is no list.
fn names_file(
    data: &Data,
    scope: &Scope,
    method: &Method,
    headers: &HeaderMap,
    path: &str,
    mut map: Map<String, Value>,
) -> Result<Response, Problem> {
    map.retain(|key, _| key == PACKAGES);
    let names = map.get_mut(PACKAGES).and_then(Value::as_array_mut);
    let names = names.ok_or_else(|| data.files.broken(path, "it has no `packages`"))?;
    names.retain(|name| name.as_str().is_some_and(|name| scope.has(name)));
    if names.is_empty() && path.starts_with(CAPABILITIES) {
        return Err(Problem::not_found());
    }
    Ok(made_file(map, method, headers))
}

/// A file of the hub that is a JSON object, if it is there.
async fn json_file(data: &Data, path: &str) -> Result<Option<Map<String, Value>>, Problem> {
    let Some(read) = data.files.read(path).await? else { return Ok(None) };
    json_of(data, path, &read.bytes).map(Some)
}

/// The JSON object that the file at `path` is.
fn json_of(data: &Data, path: &str, bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    let map = serde_json::from_slice(bytes);
    Ok(map.map_err(|error| data.files.broken(path, error.to_string()))?)
}

/// A file that is not on the disk as it is sent.
fn made_file(map: Map<String, Value>, method: &Method, headers: &HeaderMap) -> Response {
    let text = format!("{}\n", Value::Object(map));
    answer_text(text.into(), HUB_FILE, method, headers)
}

/// Answers with the content of the file at `path`, which clients check with its `ETag`.
fn answer_text(text: Bytes, path: &str, method: &Method, headers: &HeaderMap) -> Response {
    let digest = Sha256::digest(&text);
    let e_tag = format!("\"{}\"", hex(&digest[..12]));
    if (FileRequest { known: known(headers), ..FileRequest::default() }).has(Some(&e_tag)) {
        return unchanged(headers, ASK_AGAIN);
    }
    let length = text.len();
    let body = if method == Method::HEAD { Body::empty() } else { Body::from(text) };
    let mut response = Response::new(body);
    let answer = response.headers_mut();
    answer.insert(header::CONTENT_LENGTH, length.into());
    answer.insert(header::ETAG, value(&e_tag));
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static(ASK_AGAIN));
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    response
}

/// The key of the packages in a list of them.
const PACKAGES: &str = "packages";

/// The folder of the lists of providers.
const CAPABILITIES: &str = "capabilities/";

/// What a file of the hub tells about.
enum FileAbout<'path> {
    /// One package, in its own words.
    Package(&'path str),
    /// The packages that a package leads to.
    Closure(&'path str),
    /// The packages that provide a capability.
    Providers,
    /// All packages.
    Hub,
}

/// How long the file at `path` may be cached, and what it tells about; `None` if it does not belong to the hub.
fn known_file<'path>(data: &Data, path: &'path str) -> Option<(&'static str, FileAbout<'path>)> {
    let is_segment = |segment: &str| {
        let fits =
            |character: char| character.is_ascii_alphanumeric() || "._-+~".contains(character);
        segment.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            && segment.chars().all(fits)
    };
    if !path.split('/').all(is_segment) {
        return None;
    }
    let root = &data.root;
    // `packs/NAME/LEAF-VERSION.tgz`
    let folder = |inside: &'path str| inside.rsplit_once('/').map_or("", |(folder, _)| folder);
    if let Some(inside) = path.strip_prefix(&*root.packs_folder()) {
        let archive = inside.strip_suffix(PROV_ENDING).unwrap_or(inside);
        let about = FileAbout::Package(folder(inside));
        return archive.ends_with(".tgz").then_some((FOREVER, about));
    }
    let about = if let Some(inside) = path.strip_prefix(&*root.index_folder()) {
        FileAbout::Package(inside.strip_suffix(".jsonl").unwrap_or_default())
    } else if let Some(inside) = path.strip_prefix("signatures/") {
        FileAbout::Package(folder(inside))
    } else if let Some(inside) = path.strip_prefix("closures/") {
        FileAbout::Closure(inside.strip_suffix(".json").unwrap_or_default())
    } else if path.starts_with(CAPABILITIES) {
        FileAbout::Providers
    } else {
        let whole = ["catalog.jsonl", "snapshot.jsonl.gz", "snapshot.digests"];
        let is_whole = whole.contains(&path) || path.starts_with(&root.log_folder());
        return is_whole.then_some((ASK_AGAIN, FileAbout::Hub));
    };
    Some((ASK_AGAIN, about))
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("json") => "application/json",
        Some("jsonl") => "application/x-ndjson",
        Some("tgz" | "gz") => "application/gzip",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// What a `Range` header requests: from the first position to behind the last, which is nothing if that lies
/// behind the end. `None` means the whole file: the header is not a byte range, has several, or is for other
/// content.
fn range_of(range: &str, headers: &HeaderMap, meta: &FileMeta) -> Option<(u64, u64)> {
    if text(headers, header::IF_RANGE).is_some_and(|tag| Some(tag) != meta.mark.e_tag.as_deref()) {
        return None;
    }
    let (first, last) = range.strip_prefix("bytes=")?.trim().split_once('-')?;
    let size = meta.size;
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => Some((first, last.saturating_add(1).min(size))),
        (Ok(first), _) if last.is_empty() => Some((first, size)),
        (_, Ok(last)) if first.is_empty() => Some((size.saturating_sub(last), size)),
        _ => None,
    }
}

fn nothing_of(size: u64) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    response.headers_mut().insert(header::CONTENT_RANGE, value(&format!("bytes */{size}")));
    response
}

fn unchanged(headers: &HeaderMap, caching: &'static str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    let answer = response.headers_mut();
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    // If the client has only one version, that one has not changed.
    if let [known] = &known(headers)[..]
        && known != "*"
    {
        answer.insert(header::ETAG, value(known));
    }
    response
}

/// The ETags that the client has.
fn known(headers: &HeaderMap) -> Vec<String> {
    let known = e_tags(headers, header::IF_NONE_MATCH).unwrap_or_default();
    known.into_iter().map(str::to_owned).collect()
}

/// The ETags in a header. Proxies that compress an answer mark its ETag as weak, which makes no difference
/// here.
pub(super) fn e_tags(headers: &HeaderMap, name: header::HeaderName) -> Option<Vec<&str>> {
    let tags = text(headers, name)?.split(',').map(str::trim);
    Some(tags.map(|tag| tag.strip_prefix("W/").unwrap_or(tag)).collect())
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The client: the name of the token, for the log.
#[derive(Debug, Clone)]
pub(super) struct Asker(pub(super) String);

/// What a route shows of the packages of a private hub to somebody who may read only some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// No package, or only one that the request is allowed to change.
    None,
    /// Those that he may read: whoever answers asks the scope of the request.
    Readable,
    /// Something of all packages, so that it is not there for him.
    All,
}

/// A path of the server, with what it shows and who answers.
pub(crate) type ServedRoute<State> = (&'static str, Shows, MethodRouter<State>);

/// What the reader who sends a request may read; nothing, if nobody has found that out.
pub(crate) fn scope_of(request: &Request) -> Scope {
    request.extensions().get().cloned().unwrap_or_else(Scope::of_nothing)
}

/// Answers only readers of the whole hub; for others, it is as if nothing was there.
pub(super) async fn only_whole(request: Request, next: Next) -> Result<Response, Problem> {
    match scope_of(&request) {
        Scope::Everything => Ok(next.run(request).await),
        Scope::Only(_) => Err(Problem::not_found()),
    }
}

/// Answers with a file of the hub.
pub(super) async fn answer_file(
    State(data): State<Arc<Data>>,
    request: Request,
) -> Result<Response, Problem> {
    let (method, path, headers) = (request.method(), request.uri().path(), request.headers());
    serve_file(&data, &scope_of(&request), method, path, headers).await
}

/// The file of the hub at the path of a request, for somebody who may read what is in his scope.
pub(super) async fn serve_file(
    data: &Data,
    scope: &Scope,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    if method != Method::GET && method != Method::HEAD {
        return Err(only_read().await);
    }
    let path = decoded(path).ok_or_else(Problem::not_found)?;
    file(data, scope, method, headers, path.trim_start_matches('/')).await
}

/// The answer to attempts to change something here.
pub(super) async fn only_read() -> Problem {
    let detail = "this path is read-only; changes go to `api/v1/packages/NAME/VERSION`";
    Problem::method("GET, HEAD", detail)
}

/// An answer in JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], format!("{text}\n")).into_response()
}

/// A path with its `%XX` decoded; `None` if the result is not UTF-8, or if a `%` is not followed by two
/// digits.
pub(super) fn decoded(path: &str) -> Option<String> {
    let is_whole = |rest: &str| {
        rest.as_bytes()
            .first_chunk::<2>()
            .is_some_and(|both| both.iter().all(u8::is_ascii_hexdigit))
    };
    let text = percent_decode_str(path).decode_utf8().ok()?;
    path.split('%').skip(1).all(is_whole).then(|| text.into_owned())
}

/// The answer to a client with too many requests.
pub(super) fn too_many(wait: std::time::Duration) -> Problem {
    let detail = "this address sends too many requests";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait.as_secs() + 1)
}

/// What every request may read.
pub(crate) struct Data {
    pub(crate) files: Files,
    /// The hub's folders, which never change.
    pub(crate) root: Root,
    /// The catalog as it was last read, with its ETag.
    catalog: Mutex<Option<(String, Bytes)>>,
    /// The server's own, of a hub that is too large for one.
    pub(crate) own_catalog: Arc<OwnCatalog>,
    /// What references to the hub's packages begin with, if it is known.
    pub(crate) base: Option<String>,
    /// Whether this server itself uses TLS.
    pub(crate) is_https: bool,
    /// The hub that is asked for what this one has not.
    pub(super) upstream: Option<Upstream>,
}

impl Data {
    /// The data of the hub with these files, of which nothing was read yet but its root.
    pub(crate) fn new(files: Files, root: Root, own_catalog: Arc<OwnCatalog>) -> Self {
        let (catalog, base, is_https, upstream) = Default::default();
        Self { files, root, catalog, own_catalog, base, is_https, upstream }
    }

    /// The catalog as it is now, with the packages in `scope`; empty if there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or the server has not read a large hub yet.
    pub(crate) async fn read_catalog(&self, scope: &Scope) -> Result<CatalogInScope, Problem> {
        let scope = scope.clone();
        if let Some(catalog) = self.read_whole_catalog().await? {
            return Ok(CatalogInScope { lines: CatalogLines::Whole(catalog), scope });
        }
        let root = Root::read(&self.files).await?;
        if !root.is_too_large_for_a_catalog() {
            return Ok(CatalogInScope { lines: CatalogLines::Whole(Bytes::new()), scope });
        }
        match self.own_catalog.follow_log(&self.files, &root).await? {
            Some(own) => Ok(CatalogInScope { lines: CatalogLines::Own(own), scope }),
            None => {
                let made = self.own_catalog.made();
                let detail = format!(
                    "this hub is large, and its server has just begun to read it, {made} packages so far; it cannot be searched before the end"
                );
                let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
                Err(problem.retry_after(SOON))
            }
        }
    }

    /// The catalog; `None` if there is none. What is in memory is used if it has not changed.
    async fn read_whole_catalog(&self) -> Result<Option<Bytes>, HubError> {
        let known = lock(&self.catalog).clone();
        let e_tag = known.as_ref().map(|(e_tag, _)| e_tag.as_str());
        let Some(read) = self.files.read_if_changed(CATALOG_FILE, e_tag).await? else {
            return Ok(Some(known.map(|(_, bytes)| bytes).unwrap_or_default()));
        };
        let Some(read) = read else {
            *lock(&self.catalog) = None;
            return Ok(None);
        };
        *lock(&self.catalog) = read.mark.e_tag.map(|e_tag| (e_tag, read.bytes.clone()));
        Ok(Some(read.bytes))
    }
}

/// After how many seconds somebody asks again who has to wait until a large hub is read.
const SOON: u64 = 10;

/// The catalog as somebody sees it who may read what is in his scope.
pub(crate) struct CatalogInScope {
    lines: CatalogLines,
    scope: Scope,
}

enum CatalogLines {
    /// That of the hub.
    Whole(Bytes),
    /// The server's own.
    Own(KnownPackages),
}

impl CatalogInScope {
    /// Hands over each line; that takes some milliseconds, or a fraction of a second if the hub is large.
    ///
    /// # Errors
    ///
    /// When the server's own catalog cannot be read to its end.
    pub(crate) fn each_line(&self, mut take: impl FnMut(&[u8])) -> Result<(), HubError> {
        let scope = &self.scope;
        let is_in_scope =
            |line: &[u8]| scope.is_whole() || name_in(line).is_some_and(|name| scope.has(&name));
        match &self.lines {
            CatalogLines::Whole(catalog) => {
                let lines = numbered_lines(catalog).map(|(_, line)| line);
                let lines = lines.filter(|line| line.len() <= LONGEST_LINE && is_in_scope(line));
                lines.for_each(take);
                Ok(())
            }
            CatalogLines::Own(own) => Ok(own.each_package(|line, _| {
                if is_in_scope(line) {
                    take(line);
                }
            })?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn percent_signs_are_decoded_or_refused() {
        assert_eq!(decoded("/a/1.0.0%2Bx").as_deref(), Some("/a/1.0.0+x"));
        assert_eq!(decoded("/%2e%2E/x").as_deref(), Some("/../x"));
        for wrong in ["/%", "/%2", "/%zz", "/%+f", "/%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
