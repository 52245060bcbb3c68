//! Packages in a list: their catalog entries, and the publication time of their newest versions.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use mu_hub::files::Files;
use mu_hub::root::Root;
use mu_hub::tokens::Scope;
use mu_provider::catalog::CatalogLine;
use mu_provider::numbered_lines;

use super::relations::Relations;
use super::words::Moment;
use crate::reading::name_in;

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
pub(super) async fn listed(
    catalog: Bytes,
    is_wanted: impl Fn(&str) -> bool + Send + 'static,
    most: usize,
) -> (Vec<Found>, usize) {
    // A large catalog takes some milliseconds, during which other requests continue.
    let reading = tokio::task::spawn_blocking(move || {
        let lines = numbered_lines(&catalog).map(|(_, line)| line);
        let lines = lines.filter(|line| name_in(line).is_some_and(|name| is_wanted(&name)));
        let lines = lines.filter_map(|line| serde_json::from_slice::<CatalogLine>(line).ok());
        let mut found: Vec<CatalogLine> = lines.collect();
        found.sort_by(|left, right| left.name.cmp(&right.name));
        let total = found.len();
        (found.into_iter().take(most).map(Found::of).collect(), total)
    });
    reading.await.unwrap_or_default()
}

/// The names of packages that are similar to `name`, best first, at most three.
pub(super) async fn similar(catalog: Bytes, name: String) -> Vec<String> {
    let comparing = tokio::task::spawn_blocking(move || {
        let names = numbered_lines(&catalog).filter_map(|(_, line)| name_in(line));
        nearest(&name, names.map(Cow::into_owned))
    });
    comparing.await.unwrap_or_default()
}

fn nearest(name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let leaf = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let (asked, asked_leaf) = (name.to_lowercase(), leaf(&name.to_lowercase()));
    let most = 1 + name.len() / 5;
    let near = known.filter_map(|other| {
        let lower = other.to_lowercase();
        let has_same_leaf = leaf(&lower) == asked_leaf;
        if !has_same_leaf && lower.len().abs_diff(asked.len()) > most {
            return None;
        }
        let distance = strsim::damerau_levenshtein(&asked, &lower);
        (has_same_leaf || distance <= most).then_some((distance, other))
    });
    let mut near: Vec<(usize, String)> = near.collect();
    near.sort();
    near.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Adds the publication time of each package, as far as `relations` know it already.
pub(super) async fn date(
    relations: &Arc<Relations>,
    files: &Files,
    root: &Root,
    scope: &Scope,
    packages: &mut [Found],
) {
    relations.refresh(files, root).await;
    relations.look(scope, |known| {
        for package in packages {
            package.published = known.find(&package.line.name).and_then(|brief| brief.published);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn similar_names_are_those_that_may_have_been_meant() {
        let known = ["web/proxy", "web/tls", "ops/proxy", "acme/proxies", "x"];
        let near = |name: &str| nearest(name, known.iter().map(|name| (*name).to_owned()));
        assert_eq!(near("web/prxoy"), ["web/proxy"]);
        assert_eq!(near("Web/Proxy"), ["web/proxy", "ops/proxy"]);
        assert_eq!(near("proxy"), ["ops/proxy", "web/proxy"]);
        assert!(near("nothing/at-all").is_empty());
    }
}
