//! One repository: the tags, manifests and referrers of a package.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use mu_archive::Place;
use mu_provider::http::{Guard, because_of_web_page, begins_web_page};
use mu_provider::threads::start_in;
use mu_provider::{ErrorKind, Location, Progress, ProviderError, SafeUrl};

use crate::listing::Entries;
use crate::listing::Known;
use crate::registry::{Call, Registry, RegistryAnswer, To, shown};
use crate::wire::{self, Descriptor, INDEX_TAG, ImageManifest, Index, ROOT_DIGEST, TagList};

/// The longest manifest or index, in bytes. Registries themselves take 4 MiB.
pub(crate) const LONGEST_MANIFEST: u64 = 8 << 20;

/// The longest page of tags, in bytes.
const LONGEST_PAGE: u64 = 8 << 20;

/// How many tags to request at a time.
const TAGS_AT_ONCE: usize = 1_000;

/// How registries answer a question that they do not know, if not with 404.
const NOT_KNOWN: [u16; 6] = [400, 405, 406, 415, 500, 501];

/// How many pages of a list are read.
const MOST_PAGES: usize = 1_000;

/// How many tags a repository may have.
const MOST_TAGS: usize = 200_000;

/// A repository, and who hears of its requests.
pub(crate) struct RegistryRepository<'call> {
    pub(crate) registry: Arc<Registry>,
    pub(crate) name: String,
    pub(crate) guard: Option<Arc<dyn Guard>>,
    pub(crate) progress: &'call dyn Progress,
}

mu_provider::debug_fields!(RegistryRepository<'_> { name });

/// The most events to request one by one.
const MOST_LOST_EVENTS: usize = 100;

/// The result of requesting an index.
#[derive(Debug)]
pub(crate) enum Listed {
    /// There is none.
    Absent,
    /// It is unchanged.
    Unchanged,
    /// The index, the digest of its bytes, and the registry's ETag for them.
    Found(Index, String, Option<String>),
}

/// The name of a package's repository; `None` if registries cannot have one with that name.
pub(crate) fn name_of(location: &Location) -> Option<String> {
    let root = location.root.as_url().path().trim_matches('/');
    let name = match (root, location.path.as_str()) {
        ("", path) => path.to_owned(),
        (root, "") => root.to_owned(),
        (root, path) => format!("{root}/{path}"),
    };
    let host = crate::registry::api_host(&location.root.host_and_port()).to_owned();
    let is_official = host == "registry-1.docker.io" && !name.contains('/');
    let name = if is_official { format!("library/{name}") } else { name };
    wire::is_repository(&name).then_some(name)
}

impl RegistryRepository<'_> {
    fn call(&self, limit: u64) -> Call {
        Call::get(limit, self.guard.clone())
    }

    /// Below the registry's root.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("v2/{}/{rest}", self.name)
    }

    /// The URL of a part of it, for messages.
    pub(crate) fn place(&self, rest: &str) -> String {
        let scheme = self.registry.schemes();
        format!(
            "{}://{}/{}",
            scheme.first().unwrap_or(&"https"),
            self.registry.host,
            self.path(rest)
        )
    }

    /// Where a blob can be downloaded.
    pub(crate) fn blob_at(&self, scheme: &str, digest: &str) -> Result<Place, ProviderError> {
        let Self { registry, guard, .. } = self;
        let url = registry.url(scheme, &self.path(&format!("blobs/{digest}")))?;
        Ok(Place { url, insecure: registry.insecure, guard: guard.clone() })
    }

    /// All tags; `None` if there is no such repository.
    pub(crate) fn tags(&self) -> Result<Option<Vec<String>>, ProviderError> {
        let path = self.path(&format!("tags/list?n={TAGS_AT_ONCE}"));
        let call = self.call(LONGEST_PAGE);
        let mut answer = self.registry.ask(To::Path(&path), &call, self.progress)?;
        if answer.is_absent() {
            return Ok(None);
        }
        let mut tags = BTreeSet::new();
        for _ in 0..MOST_PAGES {
            let page: TagList = serde_json::from_slice(&answer.bytes)
                .map_err(|error| self.not_a_registry(&answer, &error))?;
            let before = tags.len();
            tags.extend(page.tags.into_iter().flatten().flatten());
            if tags.len() > MOST_TAGS {
                return Err(self.endless(&answer, &format!("more than {MOST_TAGS} tags")));
            }
            let Some(next) = answer.next()? else { return Ok(Some(tags.into_iter().collect())) };
            if tags.len() == before {
                return Err(self.endless(&answer, "a page without new tags, and one more after it"));
            }
            answer = self.registry.ask(To::Url(&next), &call, self.progress)?;
        }
        Err(self.endless(&answer, &format!("more than {MOST_PAGES} pages of tags")))
    }

    /// The tags, and the index at its own tag, whose earlier ETag is `etag`; `None` if there is no such repository. The index is asked for together
    /// with the tags, if it is likely that there is one; else only if they have its tag.
    pub(crate) fn tags_and_index(
        &self,
        etag: Option<&str>,
        is_likely: bool,
    ) -> Result<Option<(Vec<String>, Listed)>, ProviderError> {
        // A registry that has refused requests because there were too many gets none that may be in vain.
        if !is_likely || self.registry.is_overloaded() {
            let Some(tags) = self.tags()? else { return Ok(None) };
            let tagged = match tags.iter().any(|tag| tag == INDEX_TAG) {
                true => self.tagged_index(etag)?,
                false => Listed::Absent,
            };
            return Ok(Some((tags, tagged)));
        }
        // Both requests run together, so they take as long as one.
        let (tags, tagged) = std::thread::scope(|scope| {
            let read = || self.tagged_index(etag);
            let tagged = start_in(scope, read);
            let tags = self.tags();
            (tags, tagged.map_or_else(|_| Ok(read()), ScopedJoinHandle::join))
        });
        let Some(tags) = tags? else { return Ok(None) };
        let tagged = tagged.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Some((tags, tagged)))
    }

    fn endless(&self, answer: &RegistryAnswer, what: &str) -> ProviderError {
        let text =
            format!("the list of tags at `{}` is refused: it has {what}", shown(&answer.url));
        ProviderError::new(ErrorKind::Protocol, text)
    }

    fn not_a_registry(&self, answer: &RegistryAnswer, why: &serde_json::Error) -> ProviderError {
        let text = format!("`{}` did not answer as an OCI registry does", shown(&answer.url));
        let error = ProviderError::new(ErrorKind::Protocol, text);
        match begins_web_page(&answer.bytes) {
            true => because_of_web_page(error),
            false => error.because(why.to_string()),
        }
    }

    /// A manifest, by its tag or digest: its bytes, which match their digest.
    pub(crate) fn manifest(&self, reference: &str) -> Result<Option<Vec<u8>>, ProviderError> {
        let path = self.path(&format!("manifests/{reference}"));
        let call = self.call(LONGEST_MANIFEST).accepts_manifests();
        let answer = self.registry.ask(To::Path(&path), &call, self.progress)?;
        if answer.is_absent() {
            return Ok(None);
        }
        let found = wire::digest(&answer.bytes);
        let said = answer.digest.as_deref().filter(|digest| wire::is_digest(digest));
        for expected in [said, Some(reference).filter(|text| wire::is_digest(text))] {
            let Some(expected) = expected.filter(|expected| *expected != found) else { continue };
            let text = format!(
                "the manifest at `{}` is not the one that was expected: expected {expected}, got {found}",
                shown(&answer.url)
            );
            return Err(ProviderError::new(ErrorKind::Integrity, text));
        }
        Ok(Some(answer.bytes))
    }

    /// A blob of a manifest, of at most `limit` bytes, with the size and digest in the manifest.
    pub(crate) fn blob(&self, what: &Descriptor, limit: u64) -> Result<Vec<u8>, ProviderError> {
        let Descriptor { digest, size, .. } = what;
        let place = self.place(&format!("blobs/{digest}"));
        let wrong =
            |kind, why: String| ProviderError::new(kind, format!("the blob `{place}` {why}"));
        if !wire::is_digest(digest) {
            let text =
                format!("a manifest of `{}` names a blob without a SHA-256 digest", self.name);
            return Err(ProviderError::new(ErrorKind::Integrity, text));
        }
        if *size > limit {
            let why =
                format!("is refused: it has {size} bytes, and {limit} are the most that mu reads");
            return Err(wrong(ErrorKind::Refused, why));
        }
        let path = self.path(&format!("blobs/{digest}"));
        let answer = self.registry.ask(To::Path(&path), &self.call(limit), self.progress)?;
        if answer.is_absent() {
            return Err(wrong(
                ErrorKind::NotFound,
                "does not exist, though a manifest names it".to_owned(),
            ));
        }
        let found = wire::digest(&answer.bytes);
        if found != *digest {
            let why = format!("is not the one that was expected: expected {digest}, got {found}");
            return Err(wrong(ErrorKind::Integrity, why));
        }
        if answer.bytes.len() as u64 != *size {
            let why = format!("has {} bytes, but its manifest says {size}", answer.bytes.len());
            return Err(wrong(ErrorKind::Integrity, why));
        }
        Ok(answer.bytes)
    }

    /// The index at the tag that is for registries without referrers; `etag` is its earlier ETag.
    pub(crate) fn tagged_index(&self, etag: Option<&str>) -> Result<Listed, ProviderError> {
        let path = self.path(&format!("manifests/{INDEX_TAG}"));
        let call = self.call(LONGEST_MANIFEST).accepts_manifests();
        let call = match etag {
            Some(etag) => call.header("if-none-match", etag),
            None => call,
        };
        let answer = self.registry.ask(To::Path(&path), &call, self.progress)?;
        if answer.status == 304 && etag.is_some() {
            return Ok(Listed::Unchanged);
        }
        Ok(match Index::parse(&answer.bytes).filter(|_| answer.status == 200) {
            Some(index) => Listed::Found(index, wire::digest(&answer.bytes), answer.etag),
            None => Listed::Absent,
        })
    }

    /// Adds events that are missing in the index because somebody has overwritten their entries.
    pub(crate) fn add_events(
        &self,
        entries: &mut Entries,
        tags: &[String],
    ) -> Result<(), ProviderError> {
        let lost: Vec<&String> = tags.iter().filter(|tag| entries.lacks_event(tag)).collect();
        for tag in lost.into_iter().take(MOST_LOST_EVENTS) {
            let Some(bytes) = self.manifest(tag)? else { continue };
            let Ok(manifest) = serde_json::from_slice::<ImageManifest>(&bytes) else { continue };
            let manifests = vec![manifest.index_entry(&bytes)];
            entries.add(&Index { manifests, ..Index::default() });
        }
        Ok(())
    }

    /// What refers to the manifest with this digest: in the registry's own list, and in the one that clients maintain.
    pub(crate) fn referrers_of(&self, digest: &str) -> Result<Vec<Descriptor>, ProviderError> {
        let own = self.listed_referrers(digest)?;
        let tagged = self.manifest(&digest.replace(':', "-"))?;
        let tagged = tagged.and_then(|bytes| Index::parse(&bytes));
        let mut all: Vec<Descriptor> = Vec::new();
        for entry in own.into_iter().chain(tagged).flat_map(|index| index.manifests) {
            let is_new = !all.iter().any(|known| known.digest == entry.digest);
            if is_new && wire::is_digest(&entry.digest) {
                all.push(entry);
            }
        }
        Ok(all)
    }

    /// The registry's own list of the versions and events of a package; `None` if it has none, whatever it answers.
    pub(crate) fn referrers(&self) -> Result<Option<Index>, ProviderError> {
        self.listed_referrers(ROOT_DIGEST)
    }

    /// The registry's own list of referrers; `None` if it has none, whatever it answers.
    fn listed_referrers(&self, digest: &str) -> Result<Option<Index>, ProviderError> {
        if self.registry.keeps_no_referrers() {
            return Ok(None);
        }
        match self.pages_of_referrers(digest) {
            (_, Some(error)) if error.kind() == ErrorKind::Offline => Err(error),
            // The repository itself could be read, so a refusal is about the list alone. Anything else may pass.
            (None, Some(error)) => {
                let has_answered = !matches!(error.kind(), ErrorKind::Network | ErrorKind::Io);
                self.registry.note_no_referrers(has_answered);
                Ok(None)
            }
            (all, _) => Ok(all),
        }
    }

    /// What refers to the manifest with this digest by the registry's own list; nothing if it says that it keeps none, whatever it said
    /// to an earlier run. A list that could not be read to its end is an error.
    pub(crate) fn referrers_or_error(
        &self,
        digest: &str,
    ) -> Result<Vec<Descriptor>, ProviderError> {
        if self.registry.has_said_that_it_keeps_none() {
            return Ok(Vec::new());
        }
        match self.pages_of_referrers(digest) {
            (_, Some(error)) => Err(error),
            (Some(all), None) => {
                self.registry.note_referrers();
                Ok(all.manifests)
            }
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The registry's own list of referrers as far as it could be read, and what ended that.
    fn pages_of_referrers(&self, digest: &str) -> (Option<Index>, Option<ProviderError>) {
        let mut all: Option<Index> = None;
        let mut next: Option<SafeUrl> = None;
        let path = self.path(&format!("referrers/{digest}"));
        let call = self.call(LONGEST_PAGE).header("accept", wire::INDEX);
        let call = Call { allow: NOT_KNOWN.to_vec(), ..call };
        for _ in 0..MOST_PAGES {
            let to = next.as_ref().map_or(To::Path(&path), To::Url);
            let answer = match self.registry.ask(to, &call, self.progress) {
                Ok(answer) => answer,
                Err(error) => return (all, Some(error)),
            };
            let Some(page) = Index::parse(&answer.bytes).filter(|_| answer.status == 200) else {
                break;
            };
            let is_new = !page.manifests.is_empty();
            match &mut all {
                Some(all) => all.manifests.extend(page.manifests),
                None => all = Some(page),
            }
            let known = all.as_ref().map_or(0, |all| all.manifests.len());
            next = match answer.next() {
                Ok(next) => next.filter(|_| is_new && known <= MOST_TAGS),
                Err(error) => return (all, Some(error)),
            };
            if next.is_none() {
                return (all, None);
            }
        }
        if all.is_none() {
            self.registry.note_that_it_keeps_none();
        }
        (all, None)
    }

    /// The index of a package, from wherever the registry has it, with its validator; `None` if it is the same as that of
    /// `known`.
    pub(crate) fn entries(
        &self,
        tags: &[String],
        tagged: Listed,
        known: Option<&Known>,
    ) -> Result<Option<(Entries, Known)>, ProviderError> {
        let mut now = Known { tags: wire::digest(tags.join("\n").as_bytes()), ..Known::default() };
        let tagged = match tagged {
            Listed::Unchanged => {
                let known = known.filter(|known| known.tags == now.tags);
                if known.is_some_and(|known| known.referrers.is_none()) {
                    return Ok(None);
                }
                self.tagged_index(None)?
            }
            other => other,
        };
        let mut entries = Entries::default();
        let mut has_index = false;
        if let Listed::Found(index, digest, etag) = tagged {
            entries.add(&index);
            has_index = true;
            (now.index, now.etag) = (Some(digest), etag);
        }
        if (!has_index || entries.lack(tags))
            && let Some(index) = self.referrers()?
        {
            entries.add(&index);
            now.referrers = Some(wire::digest(&index.to_bytes()));
        }
        self.add_events(&mut entries, tags)?;
        let is_same = known.is_some_and(|known| {
            (&known.tags, &known.index, &known.referrers) == (&now.tags, &now.index, &now.referrers)
        });
        Ok((!is_same).then_some((entries, now)))
    }
}
