//! Searches the names of a registry's repositories, if it lists them (`_catalog`). Most public registries do not.

use std::collections::BTreeSet;
use std::sync::Arc;

use mu_provider::{Location, Progress};
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
    /// The names of the repositories below a location. A registry that refuses is not worth a word: the packages in it are
    /// found by their names.
    pub(crate) fn names(
        &self,
        location: &Location,
        progress: &dyn Progress,
    ) -> Option<BTreeSet<String>> {
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
