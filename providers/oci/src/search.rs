//! Searches the names of a registry's repositories, if it lists them (`_catalog`). Most public registries do not.

use std::collections::BTreeSet;
use std::sync::Arc;

use mu_provider::catalog::{CatalogLine, Hits, Query};
use mu_provider::{Location, Progress, ProviderError, json_lines};
use serde::Deserialize;

use crate::OciProvider;
use crate::auth::RepositoryGuard;
use crate::registry::{Call, To};

/// The longest page of names, in bytes.
const LONGEST_PAGE: u64 = 8 << 20;

/// How many names to request at a time.
const NAMES_AT_ONCE: usize = 1_000;

/// How many pages are read.
const MOST_PAGES: usize = 100;

/// A page of names.
#[derive(Deserialize)]
struct Page {
    repositories: Vec<String>,
}

impl OciProvider {
    /// The packages below a location whose names contain the words; `None` if the registry does not list them.
    pub(crate) fn search_names(
        &self,
        location: &Location,
        query: &Query,
        progress: &dyn Progress,
    ) -> Result<Option<Hits>, ProviderError> {
        let Some(names) = self.names(location, progress) else { return Ok(None) };
        let line = |name| CatalogLine { name, ..CatalogLine::default() };
        let lines = json_lines(names.into_iter().map(line));
        Ok(Some(query.search(&*lines).expect("it is in memory")))
    }

    /// The names of the repositories below a location. A registry that refuses is not worth a word: the packages in it are
    /// found by their names.
    fn names(&self, location: &Location, progress: &dyn Progress) -> Option<BTreeSet<String>> {
        let registry = self.registry(location);
        let guard = RepositoryGuard {
            keys: Arc::clone(&self.keys),
            host: registry.host.clone(),
            repository: String::new(),
            writes: false,
        };
        let call = Call::get(LONGEST_PAGE, Some(Arc::new(guard)));
        let path = format!("v2/_catalog?n={NAMES_AT_ONCE}");
        let mut answer = registry.ask(To::Path(&path), &call, progress).ok()?;
        let before = location.root.as_url().path().trim_matches('/');
        let mut all = BTreeSet::new();
        for _ in 0..MOST_PAGES {
            let page: Page = serde_json::from_slice(&answer.bytes).ok()?;
            let known = all.len();
            all.extend(page.repositories);
            match answer.next().ok().flatten().filter(|_| all.len() > known) {
                Some(next) => answer = registry.ask(To::Url(&next), &call, progress).ok()?,
                None => break,
            }
        }
        let below = |name: &String| match before {
            "" => Some(name.clone()),
            before => name.strip_prefix(before)?.strip_prefix('/').map(str::to_owned),
        };
        Some(all.iter().filter_map(below).collect())
    }
}
