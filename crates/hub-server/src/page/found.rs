//! Packages in a list: their catalog entries, and the publication time of their newest versions. And what the pages know of the hub, with
//! the packages that changed most recently, for the first page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use mu_hub::files::{Files, in_its_own_thread};
use mu_hub::lines::Lines;
use mu_hub::root::Root;
use mu_hub::tokens::Scope;
use mu_hub::{HubError, derived, log};
use mu_provider::catalog::CatalogLine;
use mu_provider::threads::lock;

use super::content::Contents;
use super::relations::{Interest, KnownInScope, Relations};
use super::words::{Moment, published};
use crate::own_catalog::name_in;
use crate::reading::{CatalogInScope, Data};

/// A package in a list.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) line: CatalogLine,
    pub(super) published: Option<Timestamp>,
}

impl Found {
    pub(super) fn of(line: CatalogLine) -> Self {
        Self { line, published: None }
    }

    /// When the newest version of the package was published, as seen from now.
    pub(super) fn moment(&self) -> Option<Moment> {
        self.published.map(Moment::new)
    }
}

/// The packages of a catalog for which `is_wanted` holds, by name, at most `most`; and how many there are.
///
/// # Errors
///
/// When the catalog cannot be read.
pub(super) async fn listed(
    catalog: CatalogInScope,
    is_wanted: impl Fn(&str) -> bool + Send + 'static,
    most: usize,
) -> Result<(Vec<Found>, usize), HubError> {
    // A large catalog takes some milliseconds, during which other requests continue.
    let reading = in_its_own_thread(move || {
        let (mut first, mut total) = (BTreeMap::new(), 0);
        let read = catalog.each_line(|line| {
            if !name_in(line).is_some_and(|name| is_wanted(&name)) {
                return;
            }
            let Ok(line) = serde_json::from_slice::<CatalogLine>(line) else { return };
            total += 1;
            first.insert(line.name.clone(), line);
            if first.len() > most {
                first.pop_last();
            }
        });
        read.map(|()| (first.into_values().map(Found::of).collect(), total))
    });
    reading.await?
}

/// How many similar names are suggested.
const SIMILAR: usize = 3;

/// The names of packages that are similar to `name`, best first.
///
/// # Errors
///
/// When the catalog cannot be read.
pub(super) async fn similar(
    catalog: CatalogInScope,
    name: String,
) -> Result<Vec<String>, HubError> {
    let comparing = in_its_own_thread(move || {
        let mut nearest = Nearest::new(&name);
        let read = catalog.each_line(|line| nearest.extend(name_in(line).as_deref()));
        read.map(|()| nearest.names())
    });
    comparing.await?
}

/// The names nearest to one, so far.
struct Nearest {
    asked: String,
    /// With their distances, the nearest first.
    near: Vec<(usize, String)>,
}

fn leaf(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

impl Nearest {
    fn new(name: &str) -> Self {
        Self { asked: name.to_lowercase(), near: Vec::new() }
    }

    fn extend<'name>(&mut self, names: impl IntoIterator<Item = &'name str>) {
        let asked = &self.asked;
        let most = 1 + asked.len() / 5;
        for name in names {
            let lower = name.to_lowercase();
            let has_same_leaf = leaf(&lower) == leaf(asked);
            if !has_same_leaf && lower.len().abs_diff(asked.len()) > most {
                continue;
            }
            let distance = strsim::damerau_levenshtein(asked, &lower);
            if has_same_leaf || distance <= most {
                self.near.push((distance, name.to_owned()));
                self.near.sort();
                self.near.truncate(SIMILAR);
            }
        }
    }

    fn names(self) -> Vec<String> {
        self.near.into_iter().map(|(_, name)| name).collect()
    }
}

/// Adds the publication time of each package, as far as `relations` know it already.
///
/// # Errors
///
/// When they cannot be read.
pub(super) async fn date(
    relations: &Arc<Relations>,
    files: &Files,
    root: &Root,
    scope: &Scope,
    packages: &mut [Found],
) -> Result<(), HubError> {
    relations.refresh(files, root).await?;
    let interest = Interest::in_packages(packages.iter().map(|package| &*package.line.name));
    let date = |known: &KnownInScope<'_>| {
        for package in packages {
            package.published = known.find(&package.line.name).and_then(|brief| brief.published);
        }
    };
    relations.look(root, scope, interest, date).await
}

/// What the pages know, which is all that they see of the server.
pub(crate) struct Pages {
    pub(super) data: Arc<Data>,
    pub(super) relations: Arc<Relations>,
    pub(super) contents: Contents,
    pub(super) recent: Recent,
}

impl Pages {
    /// The pages of a hub, which remember nothing yet.
    pub(crate) fn new(data: Arc<Data>) -> Self {
        let (contents, recent) = Default::default();
        let relations = Arc::new(Relations::new(Arc::clone(&data.own_catalog)));
        Self { data, relations, contents, recent }
    }
}

/// How many packages the first page names.
const NEWEST: usize = 12;

/// The packages that changed last, as of a generation.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Option<(u64, Arc<Vec<Found>>)>>);

impl Recent {
    /// Those in `scope`, read again if anything has changed.
    pub(super) async fn read(
        &self,
        data: &Data,
        root: &Root,
        scope: &Scope,
    ) -> Result<Arc<Vec<Found>>, HubError> {
        let known = lock(&self.0).clone().filter(|_| scope.is_whole());
        if let Some((generation, changed)) = known
            && generation == root.generation()
        {
            return Ok(changed);
        }
        let names = log::newest(&data.files, root, NEWEST, |name| scope.has(name)).await?;
        let reading = futures_util::stream::iter(names).map(|name| async move {
            let lines = data.own_catalog.index_unless_broken(&data.files, root, &name).await?;
            let found = |lines: &Lines| {
                let line = serde_json::from_str(&derived::catalog_line_text(lines)?).ok()?;
                Some(Found { line, published: published(lines.latest()?) })
            };
            Ok::<_, HubError>(lines.as_ref().and_then(found))
        });
        let changed: Vec<Option<Found>> = reading.buffered(NEWEST).try_collect().await?;
        let changed = Arc::new(changed.into_iter().flatten().collect::<Vec<_>>());
        // What is remembered is for readers of the whole hub.
        if scope.is_whole() {
            *lock(&self.0) = Some((root.generation(), Arc::clone(&changed)));
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::Nearest;

    #[test]
    fn similar_names_are_those_that_may_have_been_meant() {
        let known = ["web/proxy", "web/tls", "ops/proxy", "acme/proxies", "x"];
        let near = |name: &str| {
            let mut nearest = Nearest::new(name);
            nearest.extend(known);
            nearest.names()
        };
        assert_eq!(near("web/prxoy"), ["web/proxy"]);
        assert_eq!(near("Web/Proxy"), ["web/proxy", "ops/proxy"]);
        assert_eq!(near("proxy"), ["ops/proxy", "web/proxy"]);
        assert!(near("nothing/at-all").is_empty());
    }
}
