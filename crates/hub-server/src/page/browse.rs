//! Ways to find a package other than a search: its namespace, and its capabilities.

use std::collections::HashSet;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use mu_provider::catalog::CatalogLine;

use super::about::providers;
use super::found::{self, Found};
use super::frame::{CAPABILITIES, Frame, NAMESPACES, PageRequest};
use super::pages::Pages;
use crate::answers::{answer_file, decoded};
use crate::problem::Problem;
use crate::reading::ASK_AGAIN;
use mu_hub::names;
use mu_hub::root::Root;

/// How many packages a page lists.
const SHOWN: usize = 500;

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
    let catalog = pages.data.read_catalog().await?;
    let is_inside = move |name: &str| name.starts_with(&prefix);
    let (mut packages, total) = found::listed(catalog, is_inside, SHOWN).await;
    if packages.is_empty() {
        let detail = format!("this hub has no packages in {namespace}");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    }
    let root = Root::read(&pages.data.files).await?;
    found::date(&pages.relations, &pages.data.files, &root, &mut packages).await;
    asked.page(ASK_AGAIN, &NamespacePage { frame: asked.frame(), namespace, packages, total })
}

#[derive(Debug, Template)]
#[template(path = "capability.html")]
struct CapabilityPage<'asked> {
    frame: Frame<'asked>,
    capability: &'asked str,
    providers: Vec<Found>,
    total: usize,
    /// The packages that require it, and how many there are.
    required_by: (Vec<String>, usize),
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
    pages.relations.refresh(&pages.data.files, &root).await;
    let providers = providers(&pages.data.files, capability).await?;
    let (requiring, total_requiring) =
        pages.relations.look(|known| known.requiring(capability, SHOWN));
    if providers.is_empty() && requiring.is_empty() {
        let detail = format!("no package of this hub provides or requires {capability}");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    }
    let total = providers.len();
    let catalog = pages.data.read_catalog().await?;
    let names: HashSet<String> = providers.iter().take(SHOWN).cloned().collect();
    let is_one = move |name: &str| names.contains(name);
    let (mut described, _) = found::listed(catalog, is_one, SHOWN).await;
    // The catalog may be older than the capability.
    for name in providers.into_iter().take(SHOWN) {
        if !described.iter().any(|found| found.line.name == name) {
            described.push(Found::of(CatalogLine { name, ..CatalogLine::default() }));
        }
    }
    found::date(&pages.relations, &pages.data.files, &root, &mut described).await;
    let page = CapabilityPage {
        frame: asked.frame(),
        capability,
        providers: described,
        total,
        required_by: (requiring, total_requiring),
    };
    asked.page(ASK_AGAIN, &page)
}
