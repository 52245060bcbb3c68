//! Packages with names like a missing one: from the list of a registry, else from its cache.
//!
//! Only for messages; selection does not use them.

use mu_provider::catalog::Query;

use crate::index::routes::Searchable;
use crate::index::shared::SharedIndex;
use crate::reference::PackageId;
use mu_provider::threads::lock;

/// The most names that are compared with a missing one.
const MOST_LISTED: usize = 5000;

impl SharedIndex {
    pub(super) fn similar_packages(&self, id: &PackageId) -> Vec<PackageId> {
        if let Some(known) = lock(&self.similar).get(id) {
            return known.clone();
        }
        let mut known = self.cached(id).unwrap_or_default();
        let listed = self.listed(id);
        // A registry's list supersedes its cache.
        match listed.is_empty() {
            true => known.extend(self.in_lower_case(id)),
            false => known = listed,
        }
        let similar = nearest_ids(id, known);
        lock(&self.similar).insert(id.clone(), similar.clone());
        similar
    }

    /// The packages that the cache of the registry of `id` has.
    fn cached(&self, id: &PackageId) -> Option<Vec<PackageId>> {
        let package = self.package(id).ok()?;
        let route = &package.route;
        let before_names = id.as_str().strip_suffix(&*route.location.path)?;
        let cache =
            self.caches.cache_of_registry(route.provider.name(), &route.location.root).ok()?;
        // Missing packages are cached too.
        let is_there = |name: &&str| cache.lists(name);
        let ids = cache.names().filter(is_there).filter_map(|name| {
            let id = format!("{before_names}{name}");
            PackageId::parse(&id).ok()
        });
        Some(ids.collect())
    }

    /// The package with the same name in lower case, if there is one. If a registry has no list, only this
    /// name is requested.
    fn in_lower_case(&self, id: &PackageId) -> Option<PackageId> {
        let lower = PackageId::parse(&id.as_str().to_ascii_lowercase()).ok()?;
        let package = (lower != *id).then(|| self.package(&lower))?.ok()?;
        let is_there = package.releases.tried().is_none();
        is_there.then_some(lower)
    }

    /// The packages that the registry of `id` lists, if it lists any; for a registry that only answers
    /// searches, those with the same last part of the name.
    fn listed(&self, id: &PackageId) -> Vec<PackageId> {
        let serving = (self.run.searchable_registries().into_iter())
            .filter(|place| id.as_str().starts_with(&*place.prefix))
            .max_by_key(|place| place.prefix.len());
        let Some(Searchable { prefix, before_names, route: Ok(route) }) = serving else {
            return Vec::new();
        };
        let search = |words: &str| {
            let query = Query::new(words, MOST_LISTED);
            let found = route.provider.search(&route.location, &query, self.run.progress());
            found.ok().flatten().unwrap_or_default()
        };
        let mut hits = search("");
        if hits.packages.is_empty() || hits.packages.len() < hits.total {
            hits.packages.extend(search(id.name().leaf()).packages);
        }
        let names = hits.packages.into_iter().map(|package| package.name);
        let ids = names.filter_map(|name| PackageId::parse(&format!("{before_names}{name}")).ok());
        ids.filter(|id| id.as_str().starts_with(&prefix)).collect()
    }
}

/// The ids that look like `id`, best first, at most three.
pub fn nearest_ids(id: &PackageId, known: impl IntoIterator<Item = PackageId>) -> Vec<PackageId> {
    let mut near: Vec<(usize, PackageId)> = known
        .into_iter()
        .filter_map(|other| {
            let [name, like] = [id, &other].map(|id| id.name_str().to_ascii_lowercase());
            let distance = strsim::damerau_levenshtein(&name, &like);
            let close = distance <= 1 + id.name_str().len() / 5;
            let same_leaf = other.name().leaf().eq_ignore_ascii_case(id.name().leaf());
            (other != *id && (close || same_leaf)).then_some((distance, other))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(_, id)| id).take(3).collect()
}
