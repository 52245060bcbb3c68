//! Searches a hub: asks its server if it has one, or else reads its `catalog.jsonl`.
//!
//! A catalog from the network is stored in the cache folder, and downloaded again only if it has changed. One
//! in a folder is read in place. [`mu_provider::catalog`] decides how well a package matches.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use mu_archive::below;
use mu_archive::document::{Asking, DocumentAnswer, Validator, file_path};
use mu_provider::catalog::{Hits, Query, SearchAnswer, capabilities};
use mu_provider::fs::{self, AtPath as _};
use mu_provider::{ErrorKind, FileDigest, Location, Progress, ProviderError, SafeUrl};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::HubProvider;
use crate::root::Root;
use crate::wire::ProvidersFile;

/// The name of a catalog below a hub's root.
pub const CATALOG: &str = "catalog.jsonl";

/// The folder with the providers of capabilities, below a hub's root.
const CAPABILITIES: &str = "capabilities";

/// The longest catalog, in bytes.
pub(crate) const LONGEST_CATALOG: u64 = 512 << 20;

/// The longest catalog that is brought although a server answers, in bytes.
const SHORT_CATALOG: u64 = 1 << 20;

/// The longest answer of a server, in bytes.
const LONGEST_ANSWER: u64 = 16 << 20;

/// The data that is stored beside a catalog.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    validator: Option<String>,
    /// The size of the catalog, so that a catalog is never used with another one's validator.
    size: u64,
}

impl HubProvider {
    pub(crate) fn search_hub(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Hits, ProviderError> {
        let url = location.root.with_trailing_slash();
        let kept = kept_catalog(&self.catalogs, &url);
        let asking = Asking { limit: LONGEST_CATALOG, ..self.asking(location, progress) };
        if url.scheme() != "file" && self.archives.http.options().offline {
            return search_file(&kept, query)?.ok_or_else(|| not_here(&url));
        }
        let root = self.root(&url, &asking)?;
        root.tell_upstream("finds", progress);
        if let Some(api) = &root.file.api
            && let Some(hits) = ask_server(&root, api, query, &asking)?
        {
            keep_short_catalog(&root, &kept, &asking);
            return Ok(hits);
        }
        let catalog = below(&root.url, CATALOG)?;
        let found = match url.scheme() {
            _ if root.has_no_catalog() => None,
            "file" => search_file(&file_path(&catalog)?, query)?,
            _ => {
                let is_there = bring(&root, &catalog, &kept, &asking)?;
                if is_there { search_file(&kept, query)? } else { None }
            }
        };
        found.ok_or_else(|| without_catalog(&root, &url, &catalog))
    }

    /// The capabilities of a hub: for a folder, those with a file; otherwise those in its catalog, if that
    /// has them.
    pub(crate) fn capabilities_of_hub(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<BTreeSet<String>>, ProviderError> {
        let url = location.root.with_trailing_slash();
        let asking = Asking { limit: LONGEST_CATALOG, ..self.asking(location, progress) };
        let is_folder = url.scheme() == "file";
        if is_folder {
            let root = self.root(&url, &asking)?;
            return Ok(Some(in_folder(&file_path(&below(&root.url, CAPABILITIES)?)?)?));
        }
        let kept = kept_catalog(&self.catalogs, &url);
        if !self.archives.http.options().offline {
            let root = self.root(&url, &asking)?;
            let catalog = below(&root.url, CATALOG)?;
            if !bring(&root, &catalog, &kept, &asking)? {
                return Ok(None);
            }
        }
        let Some(file) = fs::open_if_there(&kept)? else { return Err(not_here(&url)) };
        let found = capabilities(BufReader::with_capacity(256 << 10, file)).at("read", &kept)?;
        Ok(Some(found))
    }
}

/// The error about a hub that has no catalog, and no server here.
fn without_catalog(root: &Root, url: &SafeUrl, catalog: &SafeUrl) -> ProviderError {
    if root.has_no_catalog() {
        let text = format!("the hub at `{url}` cannot be searched by its files");
        return ProviderError::new(ErrorKind::NotFound, text)
            .because("it has too many packages for a catalog, and only its server searches them")
            .hint("search the address of its server, or ask its operator for one");
    }
    let text = format!("the hub at `{url}` cannot be searched: there is no `{catalog}`");
    let error = ProviderError::new(ErrorKind::NotFound, text);
    let folder = url.as_url().to_file_path().ok().filter(|_| url.scheme() == "file");
    match folder.filter(|folder| !folder.exists()) {
        Some(folder) => error.hint(format!("there is no folder `{}`", folder.display())),
        None => error,
    }
}

/// The error about a catalog that was never fetched, while mu is offline.
fn not_here(url: &SafeUrl) -> ProviderError {
    let text = format!("the catalog of `{url}` is not on this machine");
    ProviderError::new(ErrorKind::Offline, text).hint("search once without --offline")
}

/// Brings the catalog beside an answer of the server, unless it is long: names are completed from it, and searched offline.
fn keep_short_catalog(root: &Root, kept: &Path, asking: &Asking<'_>) {
    if root.has_no_catalog() {
        return;
    }
    let asking = Asking { limit: SHORT_CATALOG, ..*asking };
    // The question was answered.
    let _ = below(&root.url, CATALOG)
        .and_then(|catalog| bring(root, &catalog, kept, &asking).map(drop));
}

/// Where the catalog of a hub is stored.
fn kept_catalog(catalogs: &Path, url: &SafeUrl) -> PathBuf {
    let hash = FileDigest::from_bytes(Sha256::digest(url.to_string()).into()).to_string();
    let plain = |character: char| match character {
        '.' => character,
        other if other.is_ascii_alphanumeric() => other,
        _ => '-',
    };
    let host: String = url.host_and_port().chars().map(plain).collect();
    catalogs.join(format!("{host}-{}.jsonl", hash.split_at(16).0))
}

/// Asks a hub's server; `None` if it does not support searching, or answers far too much.
fn ask_server(
    root: &Root,
    api: &str,
    query: &Query,
    asking: &Asking<'_>,
) -> Result<Option<Hits>, ProviderError> {
    let folder = below(&root.url, api)?.as_folder();
    let mut url = below(&folder, "search")?.as_url().clone();
    url.query_pairs_mut()
        .append_pair("q", query.text())
        .append_pair("limit", &query.limit().to_string());
    let url = SafeUrl::from(url);
    let request = asking.http.get(&url).insecure(asking.insecure);
    let request =
        [404, 405, 410, 501].into_iter().fold(request, |request, status| request.allow(status));
    let mut request = request.header("accept", "application/json");
    let answer = asking.http.retry(|| {
        let response = request.attempt()?;
        if response.status() != 200 || response.content_length() > Some(LONGEST_ANSWER) {
            return Ok(None);
        }
        response.bytes(LONGEST_ANSWER, asking.progress).map(Some)
    })?;
    let Some(bytes) = answer else { return Ok(None) };
    let answer: SearchAnswer = serde_json::from_slice(&bytes).map_err(|error| {
        let text = format!("the answer from `{url}` is not a search result");
        ProviderError::new(ErrorKind::Protocol, text).because(error)
    })?;
    let total = answer.total.unwrap_or(0).max(answer.packages.len());
    Ok(Some(Hits { packages: answer.packages, total, passed_over: 0 }))
}

/// Updates the stored catalog; returns whether the hub has one.
fn bring(
    root: &Root,
    catalog: &SafeUrl,
    path: &Path,
    asking: &Asking<'_>,
) -> Result<bool, ProviderError> {
    let beside = path.with_extension("json");
    let known =
        fs::read(&beside).ok().and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
    let size = fs::metadata(path).map(|metadata| metadata.len()).ok();
    let known = known.filter(|known| size == Some(known.size));
    let validator = known.and_then(|known| known.validator).map(|text| Validator::parse(&text));
    let generation = validator.as_ref().and_then(|known| known.generation);
    if generation.is_some() && generation == root.file.generation {
        return Ok(true);
    }
    match asking.read(catalog, validator.as_ref())? {
        DocumentAnswer::Unchanged { .. } => Ok(true),
        DocumentAnswer::Absent { .. } | DocumentAnswer::Hidden => Ok(false),
        DocumentAnswer::Read(document) => {
            let validator = document.validator_at(root.file.generation);
            let kept = Kept { validator, size: document.bytes.len() as u64 };
            let kept = serde_json::to_vec(&kept).expect("a text and a number can be printed");
            fs::write_atomic(path, &document.bytes)?;
            fs::write_atomic(&beside, &kept)?;
            Ok(true)
        }
    }
}

/// The capabilities with a file below a folder, `GROUP/VERSION/KIND.json`, that names at least one package.
fn in_folder(folder: &Path) -> Result<BTreeSet<String>, ProviderError> {
    let mut found = BTreeSet::new();
    for group in fs::entries_if_there(folder)? {
        for version in fs::entries_if_there(&group.path()).unwrap_or_default() {
            for kind in fs::entries_if_there(&version.path()).unwrap_or_default() {
                let names = [group.file_name(), version.file_name(), kind.file_name()];
                let [Some(group), Some(version), Some(kind)] =
                    names.each_ref().map(|name| name.to_str())
                else {
                    continue;
                };
                let Some(kind_name) = kind.strip_suffix(".json") else { continue };
                let bytes = fs::read(&folder.join(group).join(version).join(kind))?;
                let file = serde_json::from_slice::<ProvidersFile>(&bytes).unwrap_or_default();
                if !file.packages.is_empty() {
                    found.insert(format!("{group}/{version}/{kind_name}"));
                }
            }
        }
    }
    Ok(found)
}

/// Searches a catalog on this machine; `None` if there is none.
fn search_file(path: &Path, query: &Query) -> Result<Option<Hits>, ProviderError> {
    let Some(file) = fs::open_if_there(path)? else { return Ok(None) };
    let reader = BufReader::with_capacity(256 << 10, file);
    Ok(Some(query.search(reader).at("read", path)?))
}
