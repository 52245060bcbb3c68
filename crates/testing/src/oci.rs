//! A small OCI registry in memory that does what Docker's does not: it has the referrers API and pages of
//! tags, asks for tokens, redirects blobs, and answers nonsense.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::files::hex;
use super::http::{Reply, Seen, TestServer};

/// How the registry behaves.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// Whether it keeps lists of referrers itself.
    pub referrers: bool,
    /// Whether it answers requests for referrers with a web page and status 200.
    pub false_referrers: bool,
    /// The status of its answers to requests for referrers; 0 for what it has.
    pub referrers_status: u16,
    /// How many tags, or referrers, a page has; 0 for all.
    pub page: usize,
    /// How it writes the link to the next page of tags, with `NEXT` in the place of its path and query, if not as usual.
    pub link: Option<String>,
    /// Whether every page of tags has one more after it.
    pub endless: bool,
    /// Whether it answers with `"tags": null`, and not with 404, where a repository has no tags.
    pub null_tags: bool,
    /// The server that blobs are on.
    pub blobs_at: Option<String>,
    /// Asks for this user and password.
    pub password: Option<(String, String)>,
    /// Where tokens are handed out; the registry itself does so at `/token`. Without it, clients send the
    /// password itself.
    pub realm: Option<String>,
    /// The folder that the names of its repositories have for the server of its tokens, such as `virtual/`.
    pub known_below: String,
    /// Whether its tokens need no password.
    pub open_tokens: bool,
    /// Whether it lists its repositories.
    pub catalog: bool,
    /// The token that it exchanges for others, as `docker login` stores it for some registries.
    pub identity: Option<String>,
    /// Where it redirects those who want a token.
    pub tokens_at: Option<String>,
    /// The digest that it claims on every answer to `manifests/…` instead of the real one.
    pub lying_digest: Option<String>,
    /// How many requests a second it answers; some more may come at once. It refuses others with 429, and asks for a pause of a second.
    pub a_second: Option<f64>,
}

/// How many requests may come at once to a registry that limits them.
const AT_ONCE: f64 = 20.0;

/// A running registry; it stops when it is dropped.
#[derive(Debug)]
pub struct OciServer {
    server: TestServer,
    content: Arc<Mutex<Content>>,
}

#[derive(Debug, Default)]
struct Content {
    behaviour: Behaviour,
    host: String,
    blobs: BTreeMap<String, Vec<u8>>,
    /// By repository and digest: media type and bytes.
    manifests: BTreeMap<(String, String), (String, Vec<u8>)>,
    tags: BTreeMap<(String, String), String>,
    /// How many more requests it answers, since when.
    allowed: Option<(f64, Instant)>,
    /// Of each request, when it came, and whether it was refused because there were too many.
    asked: Vec<(Instant, bool)>,
}

impl OciServer {
    /// Starts an empty registry.
    pub fn start(behaviour: Behaviour) -> Self {
        let content = Arc::new(Mutex::new(Content { behaviour, ..Content::default() }));
        let held = Arc::clone(&content);
        let server = TestServer::start(move |seen, _| lock(&held).answer(seen));
        lock(&content).host = server.host();
        Self { server, content }
    }

    /// Host and port.
    pub fn host(&self) -> String {
        self.server.host()
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.server.requests()
    }

    /// The requests so far, with their headers.
    pub fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }

    /// Of each request so far, when it came, and whether it was refused because there were too many.
    pub fn asked(&self) -> Vec<(Instant, bool)> {
        lock(&self.content).asked.clone()
    }

    /// Makes it behave otherwise.
    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut lock(&self.content).behaviour);
    }

    /// Puts a blob there; returns its digest.
    pub fn blob(&self, bytes: &[u8]) -> String {
        lock(&self.content).put_blob(bytes)
    }

    /// Changes the bytes of a blob, and not its name.
    pub fn spoil(&self, digest: &str, bytes: &[u8]) {
        lock(&self.content).blobs.insert(digest.to_owned(), bytes.to_vec());
    }

    /// Changes the bytes of a manifest, and not its digest.
    pub fn spoil_manifest(&self, repository: &str, digest: &str, bytes: &[u8]) {
        let key = (repository.to_owned(), digest.to_owned());
        if let Some((_, manifest)) = lock(&self.content).manifests.get_mut(&key) {
            *manifest = bytes.to_vec();
        }
    }

    /// Puts a manifest there, by a tag; returns its digest.
    pub fn manifest(&self, repository: &str, tag: &str, manifest: &Value) -> String {
        let bytes = manifest.to_string().into_bytes();
        let digest = digest(&bytes);
        let mut content = lock(&self.content);
        let media_type = manifest["mediaType"].as_str().unwrap_or_default().to_owned();
        content.manifests.insert((repository.to_owned(), digest.clone()), (media_type, bytes));
        content.tags.insert((repository.to_owned(), tag.to_owned()), digest.clone());
        digest
    }

    /// The manifest that a tag leads to.
    pub fn tagged(&self, repository: &str, tag: &str) -> Option<Value> {
        let content = lock(&self.content);
        let digest = content.tags.get(&(repository.to_owned(), tag.to_owned()))?;
        let (_, bytes) = content.manifests.get(&(repository.to_owned(), digest.clone()))?;
        serde_json::from_slice(bytes).ok()
    }

    /// Loses the blob, or the manifest, with this digest; tags still lead to it.
    pub fn lose(&self, digest: &str) {
        let mut content = lock(&self.content);
        content.blobs.remove(digest);
        content.manifests.retain(|(_, own), _| own != digest);
    }

    /// Takes a tag away.
    pub fn untag(&self, repository: &str, tag: &str) {
        lock(&self.content).tags.remove(&(repository.to_owned(), tag.to_owned()));
    }
}

fn lock(content: &Mutex<Content>) -> MutexGuard<'_, Content> {
    content.lock().unwrap_or_else(PoisonError::into_inner)
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(bytes))
}

impl Content {
    fn put_blob(&mut self, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        self.blobs.insert(digest.clone(), bytes.to_vec());
        digest
    }

    /// Whether a request is one too many.
    fn is_too_many(&mut self, now: Instant) -> bool {
        let Some(a_second) = self.behaviour.a_second else { return false };
        let (before, since) = self.allowed.unwrap_or((AT_ONCE, now));
        let allowed = AT_ONCE.min(before + (now - since).as_secs_f64() * a_second);
        let is_fine = allowed >= 1.0;
        self.allowed = Some((if is_fine { allowed - 1.0 } else { allowed }, now));
        !is_fine
    }

    fn answer(&mut self, seen: &Seen) -> Reply {
        let now = Instant::now();
        let is_too_many = self.is_too_many(now);
        self.asked.push((now, is_too_many));
        if is_too_many {
            return Reply::status(429).header("retry-after", "1");
        }
        let (path, query) = seen.path.split_once('?').unwrap_or((&seen.path, ""));
        if path == "/token" {
            return self.token(seen, query);
        }
        let Some(path) = path.strip_prefix("/v2/") else { return Reply::status(404) };
        if let Some(refusal) = self.refusal(seen, path) {
            return refusal;
        }
        if path == "_catalog" {
            return self.catalog(query);
        }
        if path.is_empty() {
            return Reply::body("{}").header("docker-distribution-api-version", "registry/2.0");
        }
        for (middle, answer) in [
            ("/tags/list", Self::tags as fn(&mut Self, &Seen, &str, &str, &str) -> Reply),
            ("/manifests/", Self::manifests),
            ("/referrers/", Self::referrers),
            ("/blobs/uploads/", Self::uploads),
            ("/blobs/", Self::blobs),
        ] {
            if let Some((repository, rest)) = path.split_once(middle) {
                return answer(self, seen, repository, rest, query);
            }
        }
        Reply::status(404)
    }

    /// The refusal of a request without credentials, or with wrong ones.
    fn refusal(&self, seen: &Seen, path: &str) -> Option<Reply> {
        let (user, password) = self.behaviour.password.as_ref()?;
        let shown = seen.header("authorization").unwrap_or_default();
        let repository = path.split("/manifests/").next().unwrap_or_default();
        let repository = repository.split("/tags/").next().unwrap_or_default();
        let repository = repository.split("/blobs/").next().unwrap_or_default();
        let repository = repository.split("/referrers/").next().unwrap_or_default();
        let writes = !matches!(seen.method.as_str(), "GET" | "HEAD");
        match &self.behaviour.realm {
            None if shown == basic(user, password) => None,
            None => Some(Reply::status(401).header("www-authenticate", "Basic realm=\"here\"")),
            Some(realm) => {
                let actions = if writes { "pull,push" } else { "pull" };
                let repository = format!("{}{repository}", self.behaviour.known_below);
                let scope = format!("repository:{repository}:{actions}");
                let token = shown.strip_prefix("Bearer ").unwrap_or_default();
                let allows = (path.is_empty() && token.starts_with("token-for-"))
                    || token == format!("token-for-{scope}")
                    || token == format!("token-for-repository:{repository}:pull,push");
                let challenge =
                    format!("Bearer realm=\"{realm}\",service=\"tests\",scope=\"{scope}\"");
                (!allows).then(|| Reply::status(401).header("www-authenticate", challenge))
            }
        }
    }

    fn token(&self, seen: &Seen, query: &str) -> Reply {
        if let Some(other) = &self.behaviour.tokens_at {
            return Reply::status(307).header("location", other);
        }
        if seen.method == "POST" {
            return self.exchanged(seen);
        }
        let (user, password) = self.behaviour.password.clone().unwrap_or_default();
        let shown = seen.header("authorization").unwrap_or_default();
        if !self.behaviour.open_tokens && shown != basic(&user, &password) {
            return Reply::status(401);
        }
        let scope = query.split('&').find_map(|pair| pair.strip_prefix("scope="));
        let scope = scope.unwrap_or_default().replace("%3A", ":").replace("%2F", "/");
        let scope = scope.replace("%2C", ",");
        // Without a scope, it lets in, as for `docker login`.
        let below = format!("repository:{}", self.behaviour.known_below);
        if !scope.is_empty() && !scope.starts_with(&below) {
            return Reply::status(403);
        }
        Reply::body(json!({"token": format!("token-for-{scope}"), "expires_in": 300}).to_string())
    }

    /// A token for another one: OAuth 2, as in Docker's description of its token servers.
    fn exchanged(&self, seen: &Seen) -> Reply {
        let body = String::from_utf8_lossy(&seen.body).replace("%3A", ":").replace("%2F", "/");
        let body = body.replace("%2C", ",");
        let of = |key: &str| {
            let mut pairs = body.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        let is_form = seen.header("content-type") == Some("application/x-www-form-urlencoded");
        let is_known = of("refresh_token")
            .is_some_and(|token| self.behaviour.identity.as_deref() == Some(token));
        if !is_form || !is_known || of("grant_type") != Some("refresh_token") {
            return Reply::status(401);
        }
        if of("service") != Some("tests") || of("client_id").is_none() {
            return Reply::status(400);
        }
        let token = format!("token-for-{}", of("scope").unwrap_or_default());
        Reply::body(json!({"access_token": token, "expires_in": 300}).to_string())
    }

    /// The names of all repositories, page by page.
    fn catalog(&self, query: &str) -> Reply {
        if !self.behaviour.catalog {
            return Reply::status(401).header("www-authenticate", "Basic realm=\"nobody\"");
        }
        let all: BTreeSet<&str> = self.tags.keys().map(|(of, _)| of.as_str()).collect();
        let last = query.split('&').find_map(|pair| pair.strip_prefix("last="));
        let size = if self.behaviour.page == 0 { usize::MAX } else { self.behaviour.page };
        let rest: Vec<&str> =
            all.into_iter().filter(|name| last.is_none_or(|last| *name > last)).collect();
        let page: Vec<&str> = rest.iter().take(size).copied().collect();
        let reply = Reply::body(json!({"repositories": page}).to_string());
        match page.last() {
            Some(last) if rest.len() > page.len() => {
                let next = format!("</v2/_catalog?last={last}>; rel=\"next\"");
                reply.header("link", next)
            }
            _ => reply,
        }
    }

    fn tags(&mut self, _: &Seen, repository: &str, _: &str, query: &str) -> Reply {
        let all: BTreeSet<&str> = self
            .tags
            .keys()
            .filter(|(of, _)| of == repository)
            .map(|(_, tag)| tag.as_str())
            .collect();
        if all.is_empty() && self.behaviour.null_tags {
            return Reply::body(json!({"name": repository, "tags": null}).to_string());
        }
        if all.is_empty() && !self.behaviour.endless {
            return Reply::status(404);
        }
        let last = query.split('&').find_map(|pair| pair.strip_prefix("last="));
        let size = if self.behaviour.page == 0 { usize::MAX } else { self.behaviour.page };
        let rest = all.into_iter().filter(|tag| last.is_none_or(|last| *tag > last));
        let rest: Vec<&str> = rest.collect();
        let page: Vec<&str> = rest.iter().take(size).copied().collect();
        let reply = Reply::body(json!({"name": repository, "tags": page}).to_string());
        if self.behaviour.endless {
            let next = format!("</v2/{repository}/tags/list?last=zzz>; rel=\"next\"");
            return reply.header("link", next);
        }
        match page.last() {
            Some(last) if rest.len() > page.len() => {
                let next = format!("/v2/{repository}/tags/list?last={last}");
                let link = self.behaviour.link.as_deref().unwrap_or("<NEXT>; rel=\"next\"");
                reply.header("link", link.replace("NEXT", &next))
            }
            _ => reply,
        }
    }

    fn manifests(&mut self, seen: &Seen, repository: &str, reference: &str, _: &str) -> Reply {
        let of = repository.to_owned();
        if seen.method == "PUT" {
            let found = digest(&seen.body);
            let kind = seen.header("content-type").unwrap_or_default().to_owned();
            self.manifests.insert((of.clone(), found.clone()), (kind, seen.body.clone()));
            if !reference.starts_with("sha256:") {
                self.tags.insert((of, reference.to_owned()), found.clone());
            }
            let reply = Reply::status(201).header("docker-content-digest", &found);
            let manifest: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
            return match manifest["subject"]["digest"].as_str() {
                Some(subject) if self.behaviour.referrers => reply.header("oci-subject", subject),
                _ => reply,
            };
        }
        let found = match reference.starts_with("sha256:") {
            true => Some(reference.to_owned()),
            false => self.tags.get(&(of.clone(), reference.to_owned())).cloned(),
        };
        let known = found.and_then(|found| {
            let (kind, bytes) = self.manifests.get(&(of, found.clone()))?;
            let said = self.behaviour.lying_digest.clone().unwrap_or(found.clone());
            let e_tag = format!("\"{found}\"");
            if seen.header("if-none-match") == Some(&e_tag) {
                return Some(Reply::status(304));
            }
            let reply = Reply::body(bytes.clone()).header("content-type", kind.as_str());
            Some(reply.header("docker-content-digest", said).header("etag", e_tag))
        });
        known.unwrap_or_else(|| Reply::status(404))
    }

    fn referrers(&mut self, _: &Seen, repository: &str, subject: &str, query: &str) -> Reply {
        if self.behaviour.false_referrers {
            return Reply::body("<!doctype html><p>Packages").header("content-type", "text/html");
        }
        if self.behaviour.referrers_status != 0 {
            let reply = Reply::status(self.behaviour.referrers_status);
            return reply.header("www-authenticate", "Basic realm=\"here\"");
        }
        if !self.behaviour.referrers {
            return Reply::status(404);
        }
        let of = self.manifests.iter().filter(|((of, _), _)| of == repository);
        let entries = of.filter_map(|((_, digest), (kind, bytes))| {
            let manifest: Value = serde_json::from_slice(bytes).ok()?;
            (manifest["subject"]["digest"] == *subject).then(|| {
                json!({
                    "mediaType": kind, "digest": digest, "size": bytes.len(),
                    "artifactType": manifest["artifactType"], "annotations": manifest["annotations"],
                })
            })
        });
        let entries: Vec<Value> = entries.collect();
        let size = if self.behaviour.page == 0 { usize::MAX } else { self.behaviour.page };
        let start = query.split('&').find_map(|pair| pair.strip_prefix("from="));
        let start: usize = start.and_then(|start| start.parse().ok()).unwrap_or(0);
        let page: Vec<Value> = entries.iter().skip(start).take(size).cloned().collect();
        let end = start + page.len();
        let media_type = "application/vnd.oci.image.index.v1+json";
        let body = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": page});
        let reply = Reply::body(body.to_string()).header("content-type", media_type);
        if end < entries.len() {
            let next = format!("</v2/{repository}/referrers/{subject}?from={end}>; rel=\"next\"");
            return reply.header("link", next);
        }
        reply
    }

    fn uploads(&mut self, seen: &Seen, repository: &str, _: &str, query: &str) -> Reply {
        if seen.method == "POST" {
            let place = format!("http://{}/v2/{repository}/blobs/uploads/1?state=a", self.host);
            return Reply::status(202).header("location", place);
        }
        let found = self.put_blob(&seen.body);
        let said = query.split('&').find_map(|pair| pair.strip_prefix("digest="));
        let said = said.unwrap_or_default().replace("%3A", ":");
        if said == found { Reply::status(201) } else { Reply::status(400) }
    }

    fn blobs(&mut self, seen: &Seen, _: &str, digest: &str, _: &str) -> Reply {
        let Some(bytes) = self.blobs.get(digest) else { return Reply::status(404) };
        match &self.behaviour.blobs_at {
            Some(other) if seen.method == "GET" => {
                Reply::status(307).header("location", format!("{other}{digest}"))
            }
            _ => Reply::ranged(seen, bytes),
        }
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}
