//! Indexes of repositories: each is requested once in a run, parsed only if it has changed, and stored package
//! by package.
//!
//! Each repository has one such file: a line that identifies it, and the lines of its packages. The file only
//! saves work: if it cannot be read or written, mu continues without it.

use std::collections::BTreeMap;
use std::sync::Arc;

use mu_archive::Catalog;
use mu_archive::document::{Asking, Document, DocumentAnswer, Validator};
use mu_archive::remembered::{IndexAnswer, Part, Remembered, digest};
use mu_formats::helm::{self, HelmRepositoryAliases};
use mu_formats::{FormatError, Index, catalog_line, kudo};
use mu_provider::catalog::{CatalogLine, Query};
use mu_provider::fs;
use mu_provider::http::{because_of_web_page, begins_web_page};
use mu_provider::{ErrorKind, Location, Progress, ProviderError, Release, SafeUrl};
use serde::{Deserialize, Serialize};

use crate::RepositoryProvider;

/// How many places of an archive are tried.
const MOST_PLACES: usize = 8;

/// The longest index, in bytes.
const LONGEST_INDEX: u64 = 64 << 20;

/// The version of the stored files. An index that an older mu stored is parsed again.
const FORMAT: u32 = 4;

/// What repositories have.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The name of its provider.
    pub(crate) name: &'static str,
    /// What one package is called.
    pub(crate) one: &'static str,
    /// What a repository is called.
    pub(crate) repository: &'static str,
    /// What a repository is called, with an article.
    pub(crate) place: &'static str,
    /// What its index is called.
    index: &'static str,
    /// What the names of stored indexes end in.
    stored: &'static str,
    read: fn(&str, &str, &HelmRepositoryAliases) -> Result<Index, FormatError>,
}

/// Charts of Helm.
pub(crate) const CHARTS: Kind = Kind {
    name: "helm",
    one: "chart",
    repository: "chart repository",
    place: "a chart repository",
    index: "an index of charts",
    stored: "charts",
    read: helm::index,
};

/// Operators of KUDO.
pub(crate) const OPERATORS: Kind = Kind {
    name: "kudo",
    one: "operator",
    repository: "repository of KUDO operators",
    place: "a repository of KUDO operators",
    index: "an index of KUDO operators",
    stored: "kudo",
    read: |file, text, _| kudo::index(file, text),
};

/// What is known of a repository besides its packages.
#[derive(Debug, Serialize, Deserialize)]
pub struct KnownIndex {
    /// The digests of the index, and of the short names that it was read with.
    digests: [String; 2],
    /// The names in it that no package can have, with the reasons.
    pub(crate) misnamed: BTreeMap<String, String>,
}

/// A repository, as its index is now.
pub(crate) type Repository = Remembered<KnownIndex>;

impl Catalog for RepositoryProvider {
    type Of = KnownIndex;

    fn index(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<Repository>>, ProviderError> {
        let url = self.url(location)?;
        let asking = Asking::new(&self.http, location, LONGEST_INDEX, progress);
        self.asked.get(&url, || self.read(&url, &asking))
    }

    fn tried(
        &self,
        location: &Location,
        index: Option<&Repository>,
    ) -> Result<String, ProviderError> {
        let url = self.url(location)?;
        let Some(index) = index else { return Ok(self.http.missing_at(&url)) };
        let (one, name) = (self.kind.one, &location.path);
        let others = Index::also_has(&index.of.misnamed, name);
        Ok(format!("{url}, which lists no {one} `{name}`{others}"))
    }

    fn no_registry(&self, location: &Location) -> Result<String, ProviderError> {
        let what = self.kind.repository;
        Ok(format!("there is no {what}: `{}` does not exist", self.url(location)?))
    }

    fn is_line_of(&self, line: &Release, release: &Release) -> bool {
        match &release.archive {
            Some(archive) => line.archive.as_ref() == Some(archive),
            None => line.full_version().trim_start_matches('v') == release.full_version(),
        }
    }

    fn line(&self, _query: &Query, _name: &str, part: Part<'_>) -> Option<CatalogLine> {
        catalog_line(&part.lines)
    }
}

impl RepositoryProvider {
    /// What `get` has from the first place of an archive that has it: from those in the release, or else those in the index now.
    pub(crate) fn first<T>(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
        mut get: impl FnMut(&str) -> Result<Option<T>, ProviderError>,
    ) -> Result<T, ProviderError> {
        let mut tried = Vec::new();
        for is_known in [true, false] {
            let urls = match is_known {
                true => release.urls.clone(),
                // It may have moved since it was locked, or the lock does not have its URL.
                false => self.listed(location, release, progress)?.unwrap_or_default().urls,
            };
            for url in urls.into_iter().take(MOST_PLACES) {
                let shown = format!("`{url}`");
                if tried.contains(&shown) {
                    continue;
                }
                if let Some(found) = get(&url)? {
                    return Ok(found);
                }
                tried.push(shown);
            }
        }
        let version = release.full_version();
        let text = format!("there is no archive of `{}` {version}", location.describe());
        let error = ProviderError::new(ErrorKind::NotFound, text);
        Err(match tried.is_empty() {
            true => error,
            false => error.because(format!("mu looked for it at {}", tried.join(" and "))),
        })
    }

    /// Where the archive of a release may be: as the release says, or else the index now.
    pub(crate) fn places(
        &self,
        location: &Location,
        release: &Release,
        progress: &dyn Progress,
    ) -> Result<Vec<String>, ProviderError> {
        let mut urls = release.urls.clone();
        if urls.is_empty() {
            urls = self.listed(location, release, progress)?.unwrap_or_default().urls;
        }
        urls.truncate(MOST_PLACES);
        Ok(urls)
    }

    /// The URL of the index that lists a package.
    pub(crate) fn url(&self, location: &Location) -> Result<SafeUrl, ProviderError> {
        location.root.with_trailing_slash().join("index.yaml").map_err(|error| {
            let what = self.kind.repository;
            let text = format!("`{}` is not the place of a {what}", location.root);
            ProviderError::new(ErrorKind::Refused, text).because(error)
        })
    }

    fn read(
        &self,
        url: &SafeUrl,
        asking: &Asking<'_>,
    ) -> Result<Option<Repository>, ProviderError> {
        let file = digest(url.to_string().as_bytes());
        let file = self.folder.join(format!("{file}.{}", self.kind.stored));
        let (aliases, named) = self.named();
        Repository::refreshed(&file, FORMAT, &url.to_string(), |remembered| {
            let remembered = remembered.filter(|known| known.of.digests.last() == Some(named));
            if self.http.options().offline && url.scheme() != "file" && remembered.is_some() {
                return Ok(IndexAnswer::Unchanged { max_age: None });
            }
            let validator = remembered.and_then(|known| known.validator.as_deref());
            Ok(match asking.read(url, validator.map(Validator::parse).as_ref())? {
                DocumentAnswer::Unchanged { max_age, .. } => IndexAnswer::Unchanged { max_age },
                DocumentAnswer::Absent { .. } | DocumentAnswer::Hidden => IndexAnswer::Absent,
                DocumentAnswer::Read(Document { bytes, validator, max_age, .. }) => {
                    let digests = [digest(&bytes), named.clone()];
                    // The same content may be at another URL of the server.
                    let is_same = remembered.is_some_and(|known| known.of.digests == digests);
                    let index = match is_same {
                        true => None,
                        false => Some(parse(self.kind, url, &bytes, digests, aliases)?),
                    };
                    let validator = validator.to_stored_text();
                    IndexAnswer::Read { index, validator, max_age }
                }
            })
        })
    }

    /// The short names of repositories, and a validator for them.
    fn named(&self) -> &(HelmRepositoryAliases, String) {
        self.named.get_or_init(|| {
            let text = self.aliases.as_deref().and_then(|path| fs::read_text_if_there(path).ok());
            let text = text.flatten().unwrap_or_default();
            (HelmRepositoryAliases::read(&text), digest(text.as_bytes()))
        })
    }
}

fn parse(
    kind: &Kind,
    url: &SafeUrl,
    bytes: &[u8],
    digests: [String; 2],
    aliases: &HelmRepositoryAliases,
) -> Result<Repository, ProviderError> {
    let broken = |error: ErrorKind, why: String| {
        let text = format!("`{url}` is not {}", kind.index);
        ProviderError::new(error, text).because(why)
    };
    if begins_web_page(bytes) {
        let text = format!("`{url}` is not {}", kind.index);
        return Err(because_of_web_page(ProviderError::new(ErrorKind::Protocol, text)));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| broken(ErrorKind::Protocol, "it is not UTF-8".to_owned()))?;
    let read = (kind.read)("index.yaml", text, aliases).map_err(|error| {
        if error.is_excess {
            let text = format!("the index `{url}` is not read");
            return ProviderError::new(ErrorKind::Refused, text).because(error.reason);
        }
        let why = format!("line {}, column {}: {}", error.line, error.column, error.reason);
        // What begins as an index does is a damaged one, unless it is of the other kind.
        let is_other = [CHARTS, OPERATORS]
            .iter()
            .any(|other| (other.read)("index.yaml", text, aliases).is_ok());
        match helm::is_index(text) && !is_other {
            true => broken(ErrorKind::Integrity, why)
                .hint("the index is damaged: whoever runs the repository has to make it again"),
            false => broken(ErrorKind::Protocol, why),
        }
    })?;
    let Index { packages, misnamed } = read;
    Ok(Repository::new(FORMAT, url.to_string(), KnownIndex { digests, misnamed }, packages))
}
