//! `GET api/v1/search`: the catalog, kept in memory and asked for again only as a question whether it changed.
//!
//! How well a package answers is `mu_provider::catalog`'s.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mu_provider::catalog::{CatalogLine, Query, SearchAnswer};
use object_store::GetOptions;

use super::problem::Problem;
use super::server::Server;
use crate::derived::CATALOG_FILE;
use crate::files::Got;

/// How many packages are answered where nothing is said.
const USUAL: usize = 50;

/// How many packages are answered at most.
const MOST: usize = 500;

/// The longest question, in bytes.
const LONGEST: usize = 1_000;

/// The longest list of packages in an answer, in bytes. Those that have no room are counted.
const LONGEST_ANSWER: usize = 4 << 20;

/// The catalog as it was last read.
#[derive(Debug, Default)]
pub(super) struct Catalog(Mutex<Option<(String, Bytes)>>);

impl Catalog {
    /// The catalog as it is now; empty if there is none.
    pub(super) async fn read(&self, server: &Server) -> Result<Bytes, Problem> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let if_none_match = known.as_ref().map(|(e_tag, _)| e_tag.clone());
        let options = GetOptions { if_none_match, ..GetOptions::default() };
        let found = match server.files.get(CATALOG_FILE, options).await? {
            Got::Absent => return Ok(Bytes::new()),
            Got::Unchanged => return Ok(known.map(|(_, bytes)| bytes).unwrap_or_default()),
            Got::Found(found) => *found,
        };
        let e_tag = found.meta.e_tag.clone();
        // A bucket that looks at no condition sends it all, which need not be waited for.
        match known {
            Some((known, bytes)) if Some(&known) == e_tag.as_ref() => return Ok(bytes),
            _ => {}
        }
        let read = found.bytes().await;
        let bytes = read.map_err(|error| server.files.failed("read", CATALOG_FILE, error))?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = e_tag.map(|e_tag| (e_tag, bytes.clone()));
        Ok(bytes)
    }
}

/// Answers a search; `query` is that of the URL.
pub(super) async fn search(server: Arc<Server>, query: &str) -> Result<SearchAnswer, Problem> {
    let (mut words, mut limit) = (String::new(), USUAL);
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "q" => words = value.into_owned(),
            "limit" => limit = value.parse().unwrap_or(USUAL).clamp(1, MOST),
            _ => {}
        }
    }
    if words.len() > LONGEST {
        let detail = format!("a search may be {LONGEST} bytes long");
        return Err(Problem::new(axum::http::StatusCode::BAD_REQUEST, detail));
    }
    let catalog = server.catalog.read(&server).await?;
    // A large catalog takes some milliseconds, in which other requests go on.
    let hits = tokio::task::spawn_blocking(move || Query::new(&words, limit).search(&*catalog));
    let hits = hits.await.ok().and_then(Result::ok).unwrap_or_default();
    let mut packages = hits.packages;
    packages.truncate(fitting(&packages));
    Ok(SearchAnswer { total: Some(hits.total), packages })
}

/// How many of the packages an answer has room for.
fn fitting(packages: &[CatalogLine]) -> usize {
    let length = |line: &CatalogLine| serde_json::to_string(line).map_or(0, |text| text.len() + 1);
    let mut room = LONGEST_ANSWER;
    let fits = |line: &&CatalogLine| {
        let length = length(line);
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    packages.iter().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_no_longer_than_its_readers_take() {
        let line = |length| CatalogLine { name: "a".repeat(length), ..CatalogLine::default() };
        assert_eq!(fitting(&vec![line(100); 500]), 500);
        assert_eq!(fitting(&vec![line(60 << 10); 500]), 68);
        assert_eq!(fitting(&[line(100), line(LONGEST_ANSWER), line(100)]), 1);
    }
}
