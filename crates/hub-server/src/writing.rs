//! Changes: `PUT` publishes a version, and `PATCH` changes its mutable properties. Each needs a token that
//! allows it.
//!
//! Before anything is written, the archive is unpacked and read as every client would. The index line is made
//! from the manifest in it, not from what the client says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use mu_archive::ArchiveLayout;
use mu_formats::{FORMATS, GIT, helm};
use mu_hub::archive::{self, Unpacked};
use mu_hub::lines::{Notice, PUBLISHED_BY, PublishedLine};
use mu_hub::tokens::{Can, Scope, Token, Tokens};
use mu_hub::writer::{Published, Writer};
use mu_hub::{Change, HubError, Tags, names};
use mu_manifest::agreement::Rename;
use mu_manifest::reference::Name;
use mu_provider::publishable::{COMMIT_HEADER, COPY_TYPE, LONGEST_PROVENANCE};
use mu_provider::{Commit, EVIDENCE_TYPE, LARGEST_EVIDENCE};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use super::forwarded::Client;
use super::problem::Problem;
use super::readers::known;
use super::reading::{Asker, decoded, e_tags, json, too_many};
use super::server::{Server, count, write_log};
use super::uploads::{body, check_room, larger_than, read_refused};

/// The longest index line that comes with an archive, in bytes.
const LONGEST_LINE: usize = 1 << 20;

/// The largest body of a `PATCH`, in bytes.
const LARGEST_CHANGE: u64 = 64 << 10;

/// Answers a request to `api/…`. Whatever refuses it, the rest of what the client sends is read, so that the client sees why.
pub(super) async fn answer(
    State(server): State<Arc<Server>>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Response {
    let (head, mut body) = request.into_parts();
    // Also of an archive that is too large.
    let most = server.serving.largest_archive.saturating_mul(2).max(16 << 20);
    let response = respond(server, client, &head, &mut body).await;
    let status = response.status();
    // Who was too slow once is not waited for again.
    if !status.is_success() && status != StatusCode::REQUEST_TIMEOUT {
        read_refused(&head.headers, body, most).await;
    }
    response
}

async fn respond(server: Arc<Server>, client: Client, head: &Parts, body: &mut Body) -> Response {
    if !head.uri.path().starts_with("/api/v1/packages/") {
        return unknown_path().into_response();
    }
    if !matches!(head.method, Method::PUT | Method::PATCH) {
        let detail = "expected PUT with an archive, or PATCH with what to change";
        return Problem::method("PUT, PATCH", detail).into_response();
    }
    if let Err(wait) = server.changes.take(client.0, Instant::now()) {
        count(&server.metrics.limited);
        return too_many(wait).into_response();
    }
    let token = match token(&server, &head.headers).await {
        Ok(token) => token,
        Err(problem) => {
            count(&server.metrics.unauthorized);
            return problem.into_response();
        }
    };
    let asker = Asker(token.name.clone());
    let changed = change(server, token, head, body).await;
    let mut response = changed.unwrap_or_else(Problem::into_response);
    response.extensions_mut().insert(asker);
    response
}

/// Answers whose token a request shows, and what it allows.
pub(crate) async fn whose(
    State(server): State<Arc<Server>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Err(wait) = server.changes.take(client.0, Instant::now()) {
        count(&server.metrics.limited);
        return Ok(too_many(wait).into_response());
    }
    let token =
        token(&server, &headers).await.inspect_err(|_| count(&server.metrics.unauthorized))?;
    let Token { name, namespaces, can, expires, .. } = &token;
    let mut answer = json!({ "name": name, "namespaces": namespaces, "can": can });
    if let Scope::Only(reads) = token.scope() {
        answer["reads"] = json!(*reads);
    }
    if let Some(expires) = expires {
        answer["expires"] = json!(expires);
    }
    let mut response = json(StatusCode::OK, &answer);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(Asker(name.clone()));
    Ok(response)
}

/// The token of a request, which is known and has not ended.
async fn token(server: &Server, headers: &HeaderMap) -> Result<Token, Problem> {
    let refuse = |detail| Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return refuse("this needs a token: `Authorization: Bearer TOKEN`");
    };
    let secret = value.to_str().ok().and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
    });
    let Some(secret) = secret else { return refuse("expected `Authorization: Bearer TOKEN`") };
    Ok(known(&Tokens::read(&server.data.files).await?, secret)?.clone())
}

async fn change(
    server: Arc<Server>,
    token: Token,
    head: &Parts,
    body: &mut Body,
) -> Result<Response, Problem> {
    let path = decoded(head.uri.path()).ok_or_else(Problem::not_found)?;
    let package = path.strip_prefix("/api/v1/packages/").and_then(|rest| rest.rsplit_once('/'));
    let Some((name, version)) = package else { return Err(unknown_path()) };
    names::check_name(name)?;
    match head.method {
        Method::PUT => {
            allow(&server, &token, name, Can::Publish)?;
            match head.headers.get(header::CONTENT_TYPE) {
                Some(kind) if kind == helm::PROVENANCE => {
                    add_provenance(&server, name, version, head, body).await
                }
                Some(kind) if kind == EVIDENCE_TYPE => {
                    add_evidence(&server, name, version, head, body).await
                }
                _ => publish(server, &token, name, version, (head, body)).await,
            }
        }
        _ => patch(server, token, name, version, (head, body)).await,
    }
}

fn unknown_path() -> Problem {
    let detail = "expected `api/v1/packages/NAME/VERSION` or `api/v1/search`";
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// Whether a token is for this package and this kind of change.
fn allow(server: &Server, token: &Token, name: &str, can: Can) -> Result<(), Problem> {
    if token.allows(name, can) {
        return Ok(());
    }
    count(&server.metrics.unauthorized);
    let namespace = name.rsplit_once('/').map_or(name, |(namespace, _)| namespace);
    let detail = if token.is_for(name) {
        let words: Vec<&str> = token.can.iter().map(|can| can.as_str()).collect();
        format!(
            "the token `{}` may {}, but not {can} `{name}`; request one: `mu hub token add PLACE NAME --namespace {namespace} --can {can}`",
            token.name,
            words.join(" and "),
            can = can.as_str()
        )
    } else {
        format!(
            "the token `{}` is for `{}`, not `{namespace}`; request one: `mu hub token add PLACE NAME --namespace {namespace}`",
            token.name,
            token.namespaces.join("`, `"),
        )
    };
    Err(Problem::new(StatusCode::FORBIDDEN, detail))
}

async fn publish(
    server: Arc<Server>,
    token: &Token,
    name: &str,
    version: &str,
    (head, sent): (&Parts, &mut Body),
) -> Result<Response, Problem> {
    let query = head.uri.query().map(str::to_owned);
    let largest = server.serving.largest_archive;
    let length = announced(&head.headers);
    too_large(length, largest)?;
    check_room(&server, name, version, length.unwrap_or(0)).await?;
    let commit = head.headers.get(COMMIT_HEADER).and_then(|value| value.to_str().ok());
    let commit = commit.and_then(|text| text.parse::<Commit>().ok());
    let is_copy = head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == COPY_TYPE);
    // Archives are in memory, so their number at the same time is limited by the room for them.
    let mut room = server.uploads.enter(&token.name, length.unwrap_or(largest)).await;
    let bytes = body(sent, largest, Some(&mut room)).await?;
    // Others may have published meanwhile, and not every client says how long its archive is.
    check_room(&server, name, version, bytes.len() as u64).await?;
    let (stated, bytes) = match is_copy {
        true => stated(&bytes).map(|(line, archive)| (Some(line), archive))?,
        false => (None, bytes),
    };
    let described = format!("{} {}", names::printable(name), names::printable(version));
    let copied = query.as_deref().map(|query| Copied::read(query, name)).transpose()?.flatten();
    let layout = laid_out(stated.as_ref(), query.as_deref());
    let (archive, what) = (bytes.clone(), described.clone());
    let publisher = token.name.clone();
    let staging = Arc::clone(&server.data.files.staging);
    let most_entries = server.serving.most_entries;
    let unpacking =
        tokio::task::spawn_blocking(move || -> Result<(PublishedLine, Unpacked), HubError> {
            let is_foreign = stated.as_ref().is_some_and(|line| line.contains_key("format"));
            // Others lay out their archives as they like.
            let is_own = !is_foreign && layout == ArchiveLayout::Files;
            let unpacked =
                archive::unpack_new(&staging, &archive, (&what, layout), most_entries, is_own)?;
            let mut map = match stated {
                Some(line) => line,
                None => unpacked.manifest(&what)?.index_line(),
            };
            if let Some(locator) = layout.as_locator() {
                map.insert("locator".to_owned(), locator.into());
            }
            let published = jiff::Timestamp::now().round(jiff::Unit::Second);
            if let Ok(published) = published {
                map.insert("published".to_owned(), published.to_string().into());
            }
            map.insert(PUBLISHED_BY.to_owned(), publisher.into());
            map.extend(commit.map(|commit| ("commit".to_owned(), commit.as_str().into())));
            if let Some(copied) = copied {
                copied.apply(&mut map);
            }
            let line = PublishedLine::new(map);
            line.check_new()?;
            unpacked.check(&line)?;
            unpacked.agrees(&line)?;
            Ok((line, unpacked))
        });
    let (line, unpacked) = match unpacking.await {
        Ok(result) => result?,
        Err(_) => {
            let detail = "the archive could not be read";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
    };
    let is_it = line.name() == name && line.full_version() == version;
    if !is_it {
        let reason = format!("its manifest is for {}", line.describe());
        return Err(names::refused(&described, &reason).into());
    }
    let answer = json!({
        "name": name,
        "version": version,
        "digest": unpacked.content.to_string(),
        "archive": unpacked.archive.to_string(),
        "size": unpacked.size,
    });
    let published =
        write(&server, async move |writer| writer.publish(line, bytes, &unpacked).await).await?;
    let status = match published {
        Published::New => {
            count(&server.metrics.published);
            StatusCode::CREATED
        }
        Published::Same => StatusCode::OK,
    };
    Ok(json(status, &answer))
}

/// Keeps the signed statement about the archive of a version that is there.
async fn add_provenance(
    server: &Server,
    name: &str,
    version: &str,
    head: &Parts,
    sent: &mut Body,
) -> Result<Response, Problem> {
    too_large(announced(&head.headers), LONGEST_PROVENANCE)?;
    let bytes = body(sent, LONGEST_PROVENANCE, None).await?;
    let answer = json!({ "name": name, "version": version, "size": bytes.len() });
    let (name, version) = (name.to_owned(), version.to_owned());
    let kept =
        write(server, async move |writer| writer.write_provenance(&name, &version, bytes).await);
    let status = match kept.await? {
        Published::New => StatusCode::CREATED,
        Published::Same => StatusCode::OK,
    };
    Ok(json(status, &answer))
}

/// Adds what vouches for a version that is there.
async fn add_evidence(
    server: &Server,
    name: &str,
    version: &str,
    head: &Parts,
    sent: &mut Body,
) -> Result<Response, Problem> {
    too_large(announced(&head.headers), LARGEST_EVIDENCE)?;
    let bytes = body(sent, LARGEST_EVIDENCE, None).await?;
    let answer = json!({ "name": name, "version": version, "size": bytes.len() });
    let (name, version) = (name.to_owned(), version.to_owned());
    let kept =
        write(server, async move |writer| writer.write_evidence(&name, &version, bytes).await);
    let status = match kept.await? {
        Published::New => StatusCode::CREATED,
        Published::Same => StatusCode::OK,
    };
    Ok(json(status, &answer))
}

/// How an archive is laid out: as the line in front of it says, or for a package of mu that its author has packed, as the query does
/// (`?locator=in-folder`).
fn laid_out(stated: Option<&Map<String, Value>>, query: Option<&str>) -> ArchiveLayout {
    let of_line = stated.and_then(|line| line.get("locator")?.as_str());
    let mut pairs = query.into_iter().flat_map(|query| query.split('&'));
    let of_query = pairs.find_map(|pair| pair.strip_prefix("locator="));
    ArchiveLayout::for_locator(of_line.or(of_query.filter(|_| stated.is_none())))
}

/// The index line and the archive of a package of another format. What can change of a version later is left out.
fn stated(bytes: &Bytes) -> Result<(Map<String, Value>, Bytes), Problem> {
    let refuse = |detail: &str| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
    let end = bytes.iter().take(LONGEST_LINE).position(|byte| *byte == b'\n');
    let (line, archive) = end
        .and_then(|end| Some((bytes.get(..end)?, bytes.slice(end + 1..))))
        .ok_or_else(|| refuse("expected an index line, a line break, and the archive"))?;
    let mut line: Map<String, Value> = serde_json::from_slice(line)
        .map_err(|error| refuse(&format!("the index line before the archive is wrong: {error}")))?;
    let format = line.get("format").and_then(Value::as_str);
    let is_known = |name: &str| name == GIT || FORMATS.iter().any(|format| format.name == name);
    if !format.is_some_and(is_known) {
        return Err(refuse("only the line of a package of another format is taken as it is sent"));
    }
    for key in ["urls", "tags", "yanked", "movedTo", "published", PUBLISHED_BY, "commit"] {
        line.shift_remove(key);
    }
    Ok((line, archive))
}

/// A package that is published under another name: `?origin=OLD/NAME&from=OLD`.
struct Copied {
    name: String,
    origin: Name,
    renamed: Rename,
}

impl Copied {
    /// Reads a query; `None` if it has no such keys.
    fn read(query: &str, name: &str) -> Result<Option<Self>, Problem> {
        let pairs = || query.split('&').filter_map(|pair| pair.split_once('='));
        let value = |key: &str| pairs().find(|(other, _)| *other == key).map(|(_, value)| value);
        let Some(origin) = value("origin") else { return Ok(None) };
        let parsed = |text: &str| {
            names::check_name(text)?;
            let wrong = |_| names::refused(&names::printable(text), "it is not a valid name");
            Name::parse(text).map_err(wrong)
        };
        let (origin, now) = (parsed(origin)?, parsed(name)?);
        let mut renamed = Rename::between(&origin, &now);
        // The rename may cover more than the shortest difference between the names.
        if let Some(from) = value("from").map(parsed).transpose()?
            && let Some(rest) = origin.strip_prefix(&from)
            && let Some(to) = name.strip_suffix(&format!("/{rest}"))
        {
            renamed = Rename { from: Some(from), to: Some(parsed(to)?) };
        }
        Ok(Some(Self { name: name.to_owned(), origin, renamed }))
    }

    fn apply(&self, line: &mut Map<String, Value>) {
        line.insert("name".to_owned(), self.name.as_str().into());
        line.insert("origin".to_owned(), self.origin.as_str().into());
        self.renamed.apply(line);
    }
}

/// What `PATCH` changes. A missing key changes nothing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Patch {
    yanked: Option<Value>,
    deprecated: Option<Value>,
    tags: Option<Vec<String>>,
    /// `null` takes back that the package moved.
    #[serde(default, deserialize_with = "present")]
    moved_to: Option<Option<String>>,
}

/// Distinguishes `null` from a missing key.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

async fn patch(
    server: Arc<Server>,
    token: Token,
    name: &str,
    version: &str,
    (head, sent): (&Parts, &mut Body),
) -> Result<Response, Problem> {
    too_large(announced(&head.headers), LARGEST_CHANGE)?;
    // The ETag of the index file in which a client that changes tags has seen the old ones.
    let expected = e_tags(&head.headers, header::IF_MATCH).unwrap_or_default();
    let expected = expected.into_iter().map(str::to_owned).collect();
    let bytes = body(sent, LARGEST_CHANGE, None).await?;
    let patch: Patch = serde_json::from_slice(&bytes).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the body is not a valid change: {error}"))
    })?;
    let said = [(Notice::Yanked, patch.yanked), (Notice::Deprecated, patch.deprecated)];
    let said = said.into_iter().filter_map(|(notice, value)| Some((notice, value?)));
    let mut notices = BTreeMap::new();
    for (notice, value) in said {
        let reason = match value {
            Value::Bool(false) => None,
            Value::Bool(true) => Some(String::new()),
            Value::String(reason) => Some(reason),
            _ => {
                let detail = format!("`{}` is false, true or a reason", notice.key());
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
            }
        };
        notices.insert(notice, reason);
    }
    let is_published = patch.tags.is_some() || patch.moved_to.is_some();
    if notices.is_empty() && !is_published {
        let detail =
            "the body changes nothing: expected `yanked`, `deprecated`, `tags` or `movedTo`";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    if notices.contains_key(&Notice::Yanked) {
        allow(&server, &token, name, Can::Yank)?;
    }
    if is_published || notices.contains_key(&Notice::Deprecated) {
        allow(&server, &token, name, Can::Publish)?;
    }
    let tags = patch.tags.map(Tags::Set);
    let change = Change { notices, tags, moved_to: patch.moved_to, expected };
    let (name, version) = (name.to_owned(), version.to_owned());
    let changed =
        write(&server, async move |writer| writer.change_version(&name, &version, &change).await)
            .await?;
    if changed {
        count(&server.metrics.changed);
    }
    Ok(json(StatusCode::OK, &json!({ "changed": changed })))
}

/// Changes the hub on a separate thread. The change is completed even if the client disconnects.
async fn write<T: Send + 'static>(
    server: &Server,
    change: impl AsyncFnOnce(Writer) -> Result<T, HubError> + Send + 'static,
) -> Result<T, Problem> {
    let left = Arc::clone(&server.left);
    let (writer, runtime) = (Writer { files: server.data.files.clone(), left }, Handle::current());
    let tidier = writer.clone();
    let writing = tokio::task::spawn_blocking(move || runtime.block_on(change(writer)));
    let written = writing.await;
    if server.left.has_work() {
        tidy_beside(server, tidier);
    }
    match written {
        Ok(result) => Ok(result?),
        Err(_) => Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the change was interrupted; try again",
        )),
    }
}

/// Does what changes of a large hub have left to do, while requests continue.
fn tidy_beside(server: &Server, tidier: Writer) {
    let (runtime, log) = (Handle::current(), Arc::clone(&server.serving.log));
    tokio::task::spawn_blocking(move || {
        if let Err(error) = runtime.block_on(tidier.tidy()) {
            let error = format!("the files about all packages could not be written: {error}");
            let time = jiff::Timestamp::now().to_string();
            write_log(&log, &json!({ "time": time, "error": error }));
        }
    });
}

/// The length of the body, if the client gives it.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(length: Option<u64>, largest: u64) -> Result<(), Problem> {
    if length.is_some_and(|length| length > largest) { Err(larger_than(largest)) } else { Ok(()) }
}
