//! The ways to a package: the first page, the results of a search, and the pages of its namespace and of its capabilities.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use mu_hub::names;
use mu_hub::root::Root;
use mu_manifest::reference::Base;
use mu_provider::catalog::CatalogLine;

use super::about::providers;
use super::found::Pages;
use super::found::{self, Found};
use super::frame::{CAPABILITIES, Frame, NAMESPACES, PageRequest};
use super::relations::{Interest, KnownInScope};
use crate::problem::Problem;
use crate::reading::{ASK_AGAIN, NEVER, answer_file, decoded};
use crate::search::search as search_catalog;

/// How many packages a search shows, and how many on the longer page.
const SHOWN: [usize; 2] = [50, 500];

/// How many results of a search can be sorted by something other than relevance.
const SORTED: usize = 10_000;

#[derive(Debug, Template)]
#[template(path = "home.html")]
struct Home<'asked> {
    frame: Frame<'asked>,
    /// How many packages there are, if that is known.
    packages: Option<usize>,
    guide: Guide,
    recent: Arc<Vec<Found>>,
}

/// Answers with the first page.
pub(super) async fn first(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = PageRequest::of(&pages.data, &request);
    let root = Root::read(&pages.data.files).await?;
    let relations = &pages.relations;
    let is_known = relations.refresh(&pages.data.files, &root).await?;
    let recent = pages.recent.read(&pages.data, &root, &asked.scope).await?;
    let packages = match is_known {
        true => {
            let count = |known: &KnownInScope<'_>| known.len();
            Some(relations.look(&root, &asked.scope, Interest::default(), count).await?)
        }
        false => None,
    };
    let guide = Guide::of(&asked, recent.first().map(|changed| changed.line.name.as_str()));
    asked.page(ASK_AGAIN, &Home { frame: asked.frame(), packages, guide, recent })
}

/// The commands that use this hub, and publish to it.
#[derive(Debug)]
struct Guide {
    /// Depends on one of its packages.
    add: Option<String>,
    /// Leads references without a host here.
    registry: Option<String>,
    login: Option<String>,
    publish: Option<String>,
    /// What whole names of its packages begin with.
    base: String,
    /// Whether a proxy shows this server below a path, so that whole names alone do not lead here.
    is_below_path: bool,
}

impl Guide {
    fn of(asked: &PageRequest, example: Option<&str>) -> Self {
        let address = &asked.address;
        let url = Some(&address.url).filter(|url| !url.is_empty());
        let base = Base::default();
        let is_there = address.url == format!("https://{}", base.as_str());
        let place = url.and_then(|url| url.split("://").nth(1)).unwrap_or_default();
        let (host, path) = place.split_once('/').unwrap_or((place, ""));
        let is_below_path = !path.is_empty();
        let led = if is_below_path { address.base.as_str() } else { base.as_str() };
        Self {
            add: address
                .reference(example.unwrap_or("acme/tool"))
                .map(|reference| format!("mu add {reference}")),
            registry: url.filter(|_| !is_there).map(|url| format!("mu registry add {led} {url}")),
            login: url.map(|_| format!("mu login {host}")),
            publish: url.map(|url| format!("mu publish --to {url}")),
            base: address.base.clone(),
            is_below_path,
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "search.html")]
struct Results<'asked> {
    frame: Frame<'asked>,
    packages: Vec<Found>,
    total: usize,
    sorts: Vec<SortLink>,
    /// The query of the page that shows more.
    more: Option<String>,
}

/// The order of a search's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Relevance,
    Newest,
    Name,
}

/// A sort order, with the link to its page unless it is the current one.
#[derive(Debug)]
struct SortLink {
    name: &'static str,
    query: Option<String>,
}

impl Sort {
    const ALL: [Self; 3] = [Self::Relevance, Self::Newest, Self::Name];

    fn name(self) -> &'static str {
        match self {
            Self::Relevance => "relevance",
            Self::Newest => "newest",
            Self::Name => "name",
        }
    }

    /// The search. Without words, sorting by relevance makes no sense.
    fn of(asked: &PageRequest) -> Self {
        let named = asked.query("sort");
        Self::ALL.into_iter().find(|sort| sort.name() == named).unwrap_or(Self::Relevance)
    }

    fn sort(self, packages: &mut [Found]) {
        match self {
            Self::Relevance => {}
            Self::Newest => packages.sort_by_key(|package| Reverse(package.published)),
            Self::Name => packages.sort_by_cached_key(|package| package.line.name.clone()),
        }
    }
}

/// Answers with the results of a search.
pub(super) async fn search(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = PageRequest::of(&pages.data, &request);
    let words = asked.query("q");
    let sort = Sort::of(&asked);
    let [usual, most] = SHOWN;
    let limit = asked.query("limit").parse().unwrap_or(usual).clamp(1, most);
    let query = |limit: usize, sort: Sort| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("q", &words);
        if sort != Sort::Relevance {
            query.append_pair("sort", sort.name());
        }
        if limit != usual {
            query.append_pair("limit", &limit.to_string());
        }
        query.finish()
    };
    // To find the newest, or the first by name, the server has to look at all.
    let looked_at = if sort == Sort::Relevance { limit } else { SORTED };
    let answer = search_catalog(&pages.data, &asked.scope, &words, looked_at).await?;
    let total = answer.total.unwrap_or(answer.packages.len());
    let mut packages: Vec<Found> = answer.packages.into_iter().map(Found::of).collect();
    let root = Root::read(&pages.data.files).await?;
    found::date(&pages.relations, &pages.data.files, &root, &asked.scope, &mut packages).await?;
    sort.sort(&mut packages);
    packages.truncate(limit);
    let more = (limit < most && packages.len() < total).then(|| query(most, sort));
    let sorts = Sort::ALL
        .map(|one| SortLink { name: one.name(), query: (one != sort).then(|| query(limit, one)) });
    let frame = Frame { words: words.clone(), ..asked.frame() };
    asked.page(ASK_AGAIN, &Results { frame, packages, total, sorts: sorts.into(), more })
}

/// How many packages a page lists.
const LISTED: usize = 500;

#[derive(Debug, Template)]
#[template(path = "namespace.html")]
struct NamespacePage<'asked> {
    frame: Frame<'asked>,
    namespace: &'asked str,
    packages: Vec<Found>,
    total: usize,
}

/// Answers with the packages of a namespace, including those of the namespaces in it.
pub(super) async fn namespace(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = PageRequest::of(&pages.data, &request);
    let path = decoded(&asked.path).ok_or_else(Problem::not_found)?;
    let namespace = path.trim_start_matches('/').strip_prefix(NAMESPACES).unwrap_or_default();
    if names::check_name(namespace).is_err() {
        return answer_file(State(Arc::clone(&pages.data)), request).await;
    }
    let prefix = format!("{namespace}/");
    let catalog = pages.data.read_catalog(&asked.scope).await?;
    let is_inside = move |name: &str| name.starts_with(&prefix);
    let (mut packages, total) = found::listed(catalog, is_inside, LISTED).await?;
    if packages.is_empty() {
        let detail = format!("this hub has no packages in {namespace}");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    }
    let root = Root::read(&pages.data.files).await?;
    found::date(&pages.relations, &pages.data.files, &root, &asked.scope, &mut packages).await?;
    asked.page(ASK_AGAIN, &NamespacePage { frame: asked.frame(), namespace, packages, total })
}

#[derive(Debug, Template)]
#[template(path = "capability.html")]
struct CapabilityPage<'asked> {
    frame: Frame<'asked>,
    capability: &'asked str,
    providers: Vec<Found>,
    total: usize,
    /// The packages that require it, and how many there are; `None` while that is not known.
    required_by: Option<(Vec<String>, usize)>,
}

/// Answers with the packages that provide and require a capability.
pub(super) async fn capability(
    State(pages): State<Arc<Pages>>,
    request: Request,
) -> Result<Response, Problem> {
    let asked = PageRequest::of(&pages.data, &request);
    let path = decoded(&asked.path).ok_or_else(Problem::not_found)?;
    let capability = path.trim_start_matches('/').strip_prefix(CAPABILITIES).unwrap_or_default();
    // The files of the hub are beside the pages.
    if capability.ends_with(".json") || names::capability_path(capability).is_none() {
        return answer_file(State(Arc::clone(&pages.data)), request).await;
    }
    let root = Root::read(&pages.data.files).await?;
    let is_known = pages.relations.refresh(&pages.data.files, &root).await?;
    let providers = providers(&pages.data.files, &asked.scope, capability).await?;
    let requiring = |known: &KnownInScope<'_>| known.requiring(capability, LISTED);
    let interest = Interest::in_capability(capability);
    let (requiring, total_requiring) =
        pages.relations.look(&root, &asked.scope, interest, requiring).await?;
    if providers.is_empty() && requiring.is_empty() && is_known {
        let detail = format!("no package of this hub provides or requires {capability}");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    }
    let total = providers.len();
    let catalog = pages.data.read_catalog(&asked.scope).await?;
    let names: HashSet<String> = providers.iter().take(LISTED).cloned().collect();
    let is_one = move |name: &str| names.contains(name);
    let (mut described, _) = found::listed(catalog, is_one, LISTED).await?;
    // The catalog may be older than the capability.
    for name in providers.into_iter().take(LISTED) {
        if !described.iter().any(|found| found.line.name == name) {
            described.push(Found::of(CatalogLine { name, ..CatalogLine::default() }));
        }
    }
    found::date(&pages.relations, &pages.data.files, &root, &asked.scope, &mut described).await?;
    let page = CapabilityPage {
        frame: asked.frame(),
        capability,
        providers: described,
        total,
        required_by: is_known.then_some((requiring, total_requiring)),
    };
    // An incomplete page must not be cached.
    asked.page(if is_known { ASK_AGAIN } else { NEVER }, &page)
}
