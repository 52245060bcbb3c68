//! `GET api/v1/search`: answers searches from the catalog. `mu_provider::catalog` decides how well a package matches.

use mu_hub::HubError;
use mu_hub::files::in_its_own_thread;
use mu_hub::tokens::Scope;
use mu_provider::catalog::{CatalogLine, Query, SearchAnswer};

use super::problem::Problem;
use super::reading::Data;

/// How many packages an answer has by default.
const USUAL: usize = 50;

/// How many packages are answered at most.
const MOST: usize = 500;

/// The longest question, in bytes.
const LONGEST: usize = 1_000;

/// The longest list of packages in an answer, in bytes. Packages that do not fit are only counted.
const LONGEST_ANSWER: usize = 4 << 20;

/// Answers a search among the packages in `scope`; `query` is that of the URL.
pub(super) async fn answer(
    data: &Data,
    scope: &Scope,
    query: &str,
) -> Result<SearchAnswer, Problem> {
    let (mut words, mut limit) = (String::new(), USUAL);
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "q" => words = value.into_owned(),
            "limit" => limit = value.parse().unwrap_or(USUAL).clamp(1, MOST),
            _ => {}
        }
    }
    let mut answer = search(data, scope, &words, limit).await?;
    answer.packages.truncate(fitting(&answer.packages));
    Ok(answer)
}

/// The best `limit` packages in `scope` for some words.
pub(super) async fn search(
    data: &Data,
    scope: &Scope,
    words: &str,
    limit: usize,
) -> Result<SearchAnswer, Problem> {
    if words.len() > LONGEST {
        let detail = format!("a search may be at most {LONGEST} bytes long");
        return Err(Problem::new(axum::http::StatusCode::BAD_REQUEST, detail));
    }
    let catalog = data.read_catalog(scope).await?;
    // A large catalog takes some milliseconds, during which other requests continue.
    let query = Query::new(words, limit);
    let searching = in_its_own_thread(move || {
        let mut search = query.begin_search();
        catalog.each_line(|line| search.look_at_line(line))?;
        Ok::<_, HubError>(search.into_hits())
    });
    let hits = searching.await??;
    Ok(SearchAnswer { total: Some(hits.total), packages: hits.packages })
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
