//! The client of a hub's server for changes: `PUT` for versions, `PATCH` for their mutable properties.
//!
//! The client of `mu-provider` handles tokens, redirects and plain http, so the rules for reading apply to
//! writing too.

use std::sync::Arc;

use mu_formats::helm;
use mu_hub::Published;
use mu_provider::http::{AskedServer, Http, Method, Request, Response, TOO_LARGE, check_lead};
use mu_provider::publishable::{COMMIT_HEADER, COPY_TYPE};
use mu_provider::{EVIDENCE_TYPE, ErrorKind, ProviderError, SafeUrl, Silent, read_json_lines};
use mu_provider_hub::wire::{HubFile, index_path};
use serde_json::{Value, json};

use crate::ops::publication::lines::{IndexLine, Mark, existing_line};
use crate::ops::publication::target::Upload;
use crate::ops::{Code, CommandError, Session};

/// The longest answer that is read, in bytes.
const LONGEST_ANSWER: u64 = 1 << 20;

/// The longest index file that is read, in bytes.
const LONGEST_INDEX: u64 = 64 << 20;

/// Statuses with a reason about the request in their body.
const REASONED: [u16; 7] = [400, 409, CHANGED, 413, 415, 422, FULL];

/// The status for a change of something that has changed in the meantime.
const CHANGED: u16 = 412;

/// The status for a change for which the hub has no room.
const FULL: u16 = 507;

/// How often a change is tried if others interfere: each time, one of the changes succeeds.
const ATTEMPTS: usize = 100;

/// A server that accepts changes.
pub(super) struct Server {
    http: Arc<Http>,
    /// The hub's root.
    pub(super) root: SafeUrl,
    file: HubFile,
    api: SafeUrl,
    pub(super) insecure: bool,
}

/// The index file of a package.
#[derive(Default)]
struct Index {
    lines: Vec<IndexLine>,
    /// The server's validator of this content, if it sends one.
    e_tag: Option<String>,
}

impl Server {
    /// Asks the hub at `root` whether it accepts changes, and where.
    pub(super) fn open(
        session: &Session,
        root: &SafeUrl,
        insecure: bool,
    ) -> Result<Self, CommandError> {
        let root = root.as_folder();
        let insecure = insecure || session.options.allow_insecure;
        let http = session.http();
        let url = join(&root, "hub.json")?;
        let bytes = http.get(&url).insecure(insecure).fetch(LONGEST_ANSWER, &Silent)?;
        let file: HubFile = serde_json::from_slice(&bytes).map_err(|error| {
            let text = format!("`{url}` is not a hub's description");
            CommandError::from(ProviderError::new(ErrorKind::Protocol, text).because(error))
        })?;
        let Some(api) = &file.api else {
            let message =
                format!("the hub at `{root}` does not accept changes: it consists only of files");
            return Err(CommandError::new(Code::Usage, message)
                .hint("publish into the folder or bucket behind it with `--to PLACE`")
                .hint("`mu hub serve PLACE` runs a server that accepts changes"));
        };
        let api = join(&root, &format!("{}/", api.trim_end_matches('/')))?;
        Ok(Self { http, root, api, file, insecure })
    }

    /// The number of the hub's last change; `None` if it does not say it.
    pub(super) fn generation(&self) -> Option<u64> {
        let url = join(&self.root, "hub.json").ok()?;
        let request = self.http.get(&url).insecure(self.insecure);
        let bytes =
            request.header("cache-control", "no-cache").fetch(LONGEST_ANSWER, &Silent).ok()?;
        serde_json::from_slice::<HubFile>(&bytes).ok()?.generation
    }

    /// Publishes a version.
    pub(super) fn publish(&self, upload: Upload) -> Result<Published, CommandError> {
        let mut url = self.version(&upload.name, &upload.version)?;
        let is_foreign = upload.line.contains_key("format");
        let text = |key: &str| upload.line.get(key).and_then(Value::as_str);
        let mut said = Vec::new();
        if let Some(origin) = text("origin").filter(|_| !is_foreign) {
            let from = upload.renamed.and_then(|renamed| renamed.from);
            said.push(format!("origin={origin}"));
            said.extend(from.map(|from| format!("from={from}")));
        }
        // The archive of a package of mu that its author has packed.
        said.extend(text("locator").filter(|_| !is_foreign).map(|one| format!("locator={one}")));
        if !said.is_empty() {
            let path = url.as_url().path().to_owned();
            url = join(&url, &format!("{path}?{}", said.join("&")))?;
        }
        // What mu has packed says everything itself, and the server makes the line from it. Of another tool's archive,
        // the line goes in front:
        //
        //     application/gzip    ARCHIVE
        //     COPY_TYPE           LINE, as JSON, and a line break, then ARCHIVE
        let (kind, body) = match is_foreign {
            false => ("application/gzip", upload.archive),
            true => {
                let line = serde_json::to_vec(&upload.line).expect("a map of values is JSON");
                (COPY_TYPE, [&line[..], b"\n", &upload.archive].concat())
            }
        };
        let mut request = self.request(Method::PUT, &url).header("content-type", kind);
        if let Some(commit) = upload.line.get("commit").and_then(Value::as_str) {
            request = request.header(COMMIT_HEADER, commit);
        }
        let response = request.body(body).send()?;
        let what = format!("{} {}", upload.name, upload.version);
        match response.status() {
            201 => Ok(Published::New),
            409 => Err(self
                .refused(&what, response)?
                .hint("a published version never changes: raise `version` in the manifest")),
            status if (200..300).contains(&status) => Ok(Published::Same),
            _ => Err(self.refused(&what, response)?),
        }
    }

    /// Keeps the signed statement about the archive of a version beside it.
    pub(super) fn upload_provenance(
        &self,
        name: &str,
        version: &str,
        provenance: Vec<u8>,
    ) -> Result<(), CommandError> {
        let url = self.version(name, version)?;
        let request = self.request(Method::PUT, &url).header("content-type", helm::PROVENANCE);
        let response = request.body(provenance).send()?;
        match response.status() {
            200..300 => Ok(()),
            _ => Err(self.refused(&format!("the provenance of {name} {version}"), response)?),
        }
    }

    /// Adds what vouches for a version, as the lines of a file.
    pub(super) fn upload_evidence(
        &self,
        name: &str,
        version: &str,
        lines: &str,
    ) -> Result<(), CommandError> {
        let url = self.version(name, version)?;
        let request = self.request(Method::PUT, &url).header("content-type", EVIDENCE_TYPE);
        let response = request.body(lines.to_owned().into_bytes()).send()?;
        match response.status() {
            200..300 => Ok(()),
            _ => Err(self.refused(&format!("the evidence about {name} {version}"), response)?),
        }
    }

    /// All index lines of a package; none if it is not there.
    pub(super) fn lines(&self, name: &str) -> Result<Vec<IndexLine>, CommandError> {
        Ok(self.index(name)?.lines)
    }

    fn index(&self, name: &str) -> Result<Index, CommandError> {
        let url = join(&self.root, &format!("{}{}", self.file.index, index_path(name)))?;
        // A cache on the way may have old lines, and the change would be made from these.
        let mut request =
            self.http.get(&url).insecure(self.insecure).header("cache-control", "no-cache");
        let read = self.http.retry(|| {
            let response = request.attempt()?;
            let e_tag = response.header("etag").map(str::to_owned);
            Ok((response.bytes(LONGEST_INDEX, &Silent)?, e_tag))
        });
        let (bytes, e_tag) = match read {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Index::default()),
            result => result?,
        };
        let lines = read_json_lines(&bytes).flatten().collect();
        // A weak validator does not guarantee that every byte is the same, so no change can depend on it.
        let e_tag = e_tag.filter(|e_tag| !e_tag.starts_with("W/"));
        Ok(Index { lines, e_tag })
    }

    /// Changes a published version; returns whether that changed anything.
    pub(super) fn mark(
        &self,
        name: &str,
        version: &str,
        mark: Mark<'_>,
    ) -> Result<bool, CommandError> {
        let mut was_so = None;
        for _ in 0..ATTEMPTS {
            let Index { lines, e_tag } = self.index(name)?;
            let line = existing_line(lines, &self.root, name, version)?;
            // How it was before the first attempt. A second one may meet what the first one did, if its answer was
            // lost.
            let was_so = *was_so.get_or_insert_with(|| mark.is_on(&line));
            // All tags are sent, so tags that somebody else added in the meantime would be lost.
            let (change, seen) = match mark {
                Mark::Notice(notice, reason) => {
                    let said = match reason {
                        None => Value::Bool(false),
                        Some("") => Value::Bool(true),
                        Some(reason) => reason.into(),
                    };
                    (json!({ notice.key(): said }), None)
                }
                Mark::Tag(tag) | Mark::NoTag(tag) => {
                    let tags = line.get("tags").and_then(Value::as_array).into_iter().flatten();
                    let mut wanted: Vec<&str> = tags.filter_map(Value::as_str).collect();
                    wanted.retain(|other| *other != tag);
                    wanted.extend(matches!(mark, Mark::Tag(_)).then_some(tag));
                    (json!({ "tags": wanted }), e_tag)
                }
                Mark::Moved(to) => (json!({ "movedTo": to }), None),
            };
            if self.patch(name, version, &change, seen)? {
                return Ok(!was_so);
            }
        }
        let message = format!(
            "gave up tagging {name} {version}: others changed {name} {ATTEMPTS} times in the meantime"
        );
        Err(CommandError::new(Code::Conflict, message).hint("try again"))
    }

    /// Changes a version if its index file still has the ETag `seen`; `false` if it has another one.
    fn patch(
        &self,
        name: &str,
        version: &str,
        change: &Value,
        seen: Option<String>,
    ) -> Result<bool, CommandError> {
        let url = self.version(name, version)?;
        let is_conditional = seen.is_some();
        let request = self.request(Method::PATCH, &url).header("content-type", "application/json");
        let request =
            seen.into_iter().fold(request, |request, seen| request.header("if-match", seen));
        let response = request.body(change.to_string().into_bytes()).send()?;
        match response.status() {
            200..300 => Ok(true),
            CHANGED if is_conditional => Ok(false),
            _ => Err(self.refused(&format!("the change of {name} {version}"), response)?),
        }
    }

    fn request(&self, method: Method, url: &SafeUrl) -> Request<'_> {
        let request = self.http.request(method, url).insecure(self.insecure);
        // The hub says where its changes go, so the token is the hub's own.
        let request = request.named_by(&AskedServer::new(&self.root));
        REASONED.into_iter().fold(request, Request::allow)
    }

    fn version(&self, name: &str, version: &str) -> Result<SafeUrl, CommandError> {
        // Some servers would read the plus sign of build metadata as a space.
        join(&self.api, &format!("packages/{name}/{}", version.replace('+', "%2B")))
    }

    /// The error for an answer with a reason.
    fn refused(&self, what: &str, response: Response) -> Result<CommandError, CommandError> {
        let status = response.status_text();
        let is_too_large = response.status() == 413;
        let (code, hint) = match response.status() {
            409 => (Code::Conflict, None),
            FULL => (
                Code::Io,
                Some("run the command again when there is room: nothing has to be undone"),
            ),
            _ => (Code::Manifest, None),
        };
        let bytes =
            response.bytes(LONGEST_ANSWER, &Silent).map_err(|failure| failure.into_error())?;
        let problem: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let said = problem.get("detail").or_else(|| problem.get("title")).and_then(Value::as_str);
        // A hub says how large an archive may be; whoever only says that it is too large stands in front of one.
        let hint = hint.or_else(|| (is_too_large && said.is_none()).then_some(TOO_LARGE));
        let reason = said.unwrap_or(&status);
        let message = format!("`{}` refused {what}: {reason}", self.root);
        Ok(hint.into_iter().fold(CommandError::new(code, message), CommandError::hint))
    }
}

fn join(url: &SafeUrl, path: &str) -> Result<SafeUrl, CommandError> {
    let to = url.join(path).map_err(|error| {
        let text = format!("`{path}` of the hub at `{url}` is not a valid place");
        ProviderError::new(ErrorKind::Protocol, text).because(error)
    })?;
    check_lead(url, &to)?;
    Ok(to)
}
