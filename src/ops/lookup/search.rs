//! `search`: packages by words, in every registry that can be searched, all at once.

use std::collections::BTreeSet;

use mu_provider::catalog::{Hits, Query};
use mu_provider::threads::all_at_once;
use mu_provider::{Listing as Listed, ProviderError, read_json_lines, with_causes};
use schemars::JsonSchema;
use serde::Serialize;

use crate::index::releases::Position;
use crate::index::{Candidate, Route, RouteError, Searchable, Unavailable};
use crate::lock::Source;
use crate::manifest::Capability;
use crate::ops::explain::{at_default_base, unavailable_error};
use crate::ops::lookup::filter::{Sieve, VersionFilter};
use crate::ops::lookup::listing::{Here, Listing};
use crate::ops::session::events::Work;
use crate::ops::session::shown;
use crate::ops::session::source::source_of;
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::{PackageId, Protocol, Reference};

/// With a filter, packages are examined one by one; more than this many would take too long.
const MOST_LOOKED_AT: usize = 200;

/// A registry is asked for this many more packages than wanted, because another registry may serve some that
/// it lists.
const SPARE: usize = 20;

/// A search.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// The words.
    pub words: Vec<String>,
    /// The filter that some version of a package must pass.
    pub filter: VersionFilter,
    /// The largest number of packages.
    pub limit: usize,
    /// A capability that the packages provide; then words do not count.
    pub provides: Option<String>,
}

/// What `mu search` answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchResult {
    /// The packages, best first.
    pub packages: Vec<FoundPackage>,
    /// Their number; with a filter, only listed packages are counted.
    pub total: usize,
}

/// A package that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Package")]
pub struct FoundPackage {
    /// The package.
    pub id: PackageId,
    /// Its name in its registry.
    pub name: String,
    /// Its newest release that passes the filter.
    pub latest: String,
    /// The version of what that packages.
    pub app_version: Option<String>,
    /// What it is, in a sentence.
    pub description: Option<String>,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// The package that took its place.
    pub moved_to: Option<String>,
    /// Why its newest release was withdrawn, as all others were, empty without a reason; `false` if it was not.
    #[serde(serialize_with = "shown::yanked")]
    #[schemars(schema_with = "shown::yanked_schema")]
    pub yanked: Option<String>,
    /// Why the authors of its newest release no longer maintain it, empty without a reason; `false` if they do.
    #[serde(serialize_with = "shown::yanked")]
    #[schemars(schema_with = "shown::yanked_schema")]
    pub deprecated: Option<String>,
    /// Where it was found.
    pub source: Source,
    /// The version in `Mu.lock`, if it is there.
    pub locked: Option<String>,
    /// Whether its newest release can be used here; left out if this was not checked, as without a filter, without facts of
    /// the runtime, and without settings that exclude versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable: Option<bool>,
    /// Why it cannot be used here, if it cannot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The newest version that can be used here, if its newest release cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_usable: Option<String>,
}

/// A registry and its answer.
struct Answered {
    prefix: String,
    /// The part of ids before the names that it lists.
    before_names: String,
    route: Route,
    query: Query,
    hits: Hits,
}

/// Searches.
pub fn search(session: &Session, request: &SearchRequest) -> Result<SearchResult, CommandError> {
    if let Some(capability) = &request.provides {
        return providing(session, request, capability);
    }
    let sieve = request.filter.read()?;
    let here = Here::new(session, &request.filter)?;
    let is_filtered = !request.filter.is_empty();
    // A registry knows no filters, so with one, many candidates are asked for and sieved here.
    let limit = if is_filtered { MOST_LOOKED_AT } else { request.limit + SPARE };
    let answered = ask_all(session, &request.words, limit)?;
    let mut total: usize = answered.iter().map(|answered| answered.hits.total).sum();
    let listed: usize = answered.iter().map(|answered| answered.hits.packages.len()).sum();
    let mut packages = merged(session, answered)?;
    // Registries count what they list. Of what came, some is served by another registry, or is not within `--only`:
    // that is taken off. What did not come stays counted as it was.
    total -= listed - packages.len();
    if is_filtered {
        packages = filtered(session, &sieve, packages)?;
        total = packages.len();
    }
    packages.truncate(request.limit);
    // Whether the newest version can be used costs a look at its releases, so it is asked only where something may
    // refuse it.
    let is_judged = |package: &&mut FoundPackage| is_filtered || here.may_refuse(&package.id);
    judge(session, &here, packages.iter_mut().filter(is_judged).collect());
    session.save_index();
    Ok(SearchResult { packages, total })
}

/// The packages that provide a capability, each with its newest version that does.
fn providing(
    session: &Session,
    request: &SearchRequest,
    capability: &str,
) -> Result<SearchResult, CommandError> {
    if Capability::parse(capability).is_err() {
        let message = format!("`{capability}` is not a capability");
        return Err(CommandError::new(Code::Usage, message)
            .hint("a capability is GROUP/VERSION/KIND, such as `compute.mu.com/v1/VM`")
            .hint("`mu search --provides` lists the capabilities there are"));
    }
    let sieve = request.filter.read()?;
    let here = Here::new(session, &request.filter)?;
    let mut answered = Vec::new();
    let mut failed = None;
    for place in session.index().registries() {
        // A registry that fails is left out with a warning, unless none answers.
        match providers(session, place, capability) {
            Ok(found) => answered.extend(found),
            Err(error) => {
                session.events.warning(&Warning::failure(&*error.error));
                failed = Some(error);
            }
        }
    }
    if let (Some(error), true) = (failed, answered.is_empty()) {
        return Err(at_default_base(session, error));
    }
    let mut packages = merged(session, answered)?;
    let ids: Vec<PackageId> = packages.iter().map(|package| package.id.clone()).collect();
    session.index().ask_for_releases(&ids);
    let mut found = Vec::new();
    for package in packages.drain(..) {
        found.extend(with_newest(session, &sieve, package, capability)?);
    }
    found.sort_by(|one, other| one.id.cmp(&other.id));
    let total = found.len();
    found.truncate(request.limit);
    judge(session, &here, found.iter_mut().collect());
    session.save_index();
    Ok(SearchResult { packages: found, total })
}

/// A package with its newest version that provides a capability and passes the filter; `None` if there is none.
fn with_newest(
    session: &Session,
    sieve: &Sieve<'_>,
    package: FoundPackage,
    capability: &str,
) -> Result<Option<FoundPackage>, CommandError> {
    let failed = |error| unavailable_error(session, error);
    let releases = session.index().published(&package.id).map_err(failed)?;
    let apps = releases.app_versioning();
    let provides = |position: &Position| {
        releases.details(*position).is_some_and(|details| {
            let app_version = releases.app_version(*position);
            details.yanked.is_none()
                && details.facts.provides.iter().any(|provided| provided == capability)
                && sieve.passes(&releases.version(*position))
                && sieve.passes_details(Some(details), app_version, apps)
        })
    };
    let positions = (0..releases.len()).filter(provides);
    let first = releases.default_channel();
    let newest = positions.max_by_key(|&at| (releases.preference(at, first), at));
    let Some(newest) = newest else { return Ok(None) };
    let candidate = Candidate::Release(newest);
    let (_, release) = session.index().release(&package.id, candidate).map_err(failed)?;
    Ok(Some(FoundPackage {
        latest: releases.version(newest).to_string(),
        app_version: releases.app_version(newest).map(str::to_owned),
        description: release.description.clone(),
        keywords: release.keywords.clone(),
        moved_to: release.moved_to.clone(),
        yanked: None,
        deprecated: release.deprecated.reason(),
        ..package
    }))
}

/// The providers of a capability that one registry lists; `None` if it has no such lists.
fn providers(
    session: &Session,
    place: Searchable,
    capability: &str,
) -> Result<Option<Answered>, CommandError> {
    let Searchable { prefix, before_names, route } = place;
    let Some(route) = usable(route)? else { return Ok(None) };
    let progress = Work::begin(&session.events, prefix.as_str());
    let listing = route.provider.providers(&route.location, capability, None, &progress)?;
    let Listed::Found(found) = listing else { return Ok(None) };
    let packages = read_json_lines(&found.lines).flatten().collect();
    let hits = Hits { packages, ..Hits::default() };
    let query = Query::new("", usize::MAX);
    Ok(Some(Answered { prefix, before_names, route, query, hits }))
}

/// The way to a registry; `None` if this mu has no provider for it.
fn usable(route: Result<Route, RouteError>) -> Result<Option<Route>, CommandError> {
    match route {
        Ok(route) => Ok(Some(route)),
        Err(RouteError::NoProvider { .. }) => Ok(None),
        Err(RouteError::Provider(error)) => Err(error.into()),
        Err(error) => Err(CommandError::from_error(Code::Reference, error)),
    }
}

/// The capabilities that packages of the registries provide.
pub fn registry_capabilities(session: &Session) -> Result<BTreeSet<String>, CommandError> {
    let mut found = BTreeSet::new();
    let (mut has_answer, mut failed) = (false, None);
    for place in session.index().registries() {
        let answer = usable(place.route).and_then(|route| {
            let Some(route) = route else { return Ok(None) };
            let progress = Work::begin(&session.events, place.prefix.as_str());
            Ok(route.provider.capabilities(&route.location, &progress)?)
        });
        match answer {
            Ok(capabilities) => {
                has_answer = true;
                found.extend(capabilities.into_iter().flatten());
            }
            Err(error) => {
                session.events.warning(&Warning::failure(&*error.error));
                failed = Some(error);
            }
        }
    }
    match failed {
        Some(error) if !has_answer => Err(at_default_base(session, error)),
        _ => Ok(found),
    }
}

/// References to the charts and KUDO operators that Mu.lock has, or that manifests of the workspace name: their repositories are
/// searched, too.
fn listed_in_use(session: &Session) -> Result<Vec<Reference>, CommandError> {
    let formats = [mu_formats::helm::FORMAT.name, mu_formats::kudo::NAME];
    let lock = session.lockfile()?.unwrap_or_default();
    let locked = lock.packages.iter();
    let locked = locked.filter(|package| formats.contains(&&*package.source.provider));
    let locked = locked.filter_map(|package| {
        let (source, leaf) = (&package.source, package.id.name());
        let is_remote = source.place.contains("://");
        let place = source.place.trim_end_matches('/');
        let text = format!("{}+{place}/{}", source.provider, leaf.leaf());
        Reference::parse(&text).ok().filter(|_| is_remote)
    });
    let named = session.workspace.members.iter().flat_map(|member| &member.manifest.dependencies);
    let named = named.map(|requirement| requirement.reference.clone());
    let is_listed = |reference: &Reference| {
        let provider = reference.protocol().and_then(Protocol::provider);
        provider.is_some_and(|provider| formats.contains(&provider))
    };
    Ok(named.filter(is_listed).chain(locked).collect())
}

/// Asks every registry; warns about those that fail, if another answers.
fn ask_all(
    session: &Session,
    words: &[String],
    limit: usize,
) -> Result<Vec<Answered>, CommandError> {
    let mut places = session.index().registries();
    places.extend(session.index().repositories(&listed_in_use(session)?));
    // Each registry has words and ids of its own, so each is asked another text.
    let results = all_at_once(places, |place| {
        let query = Query::new(&text(words, &place.before_names), limit);
        let prefix = place.prefix.clone();
        (prefix, ask(session, place, query))
    });
    let mut answered = Vec::new();
    let mut failures = Vec::new();
    for (prefix, result) in results {
        match result {
            Ok(Some(answer)) => answered.push(answer),
            Ok(None) => {}
            Err(error) => failures.push((prefix, error)),
        }
    }
    if answered.is_empty() {
        let nothing =
            CommandError::new(Code::NotFound, "no registry is configured that can be searched")
                .hint("`mu registry add PREFIX URL` adds a hub");
        // One that refuses comes first: a token may be all that is missing.
        failures.sort_by_key(|(_, failure)| failure.code != Code::Auth);
        let mut failures = failures.into_iter().map(|(_, failure)| failure);
        let first = failures.next().map_or(nothing, |first| at_default_base(session, first));
        return Err(failures.fold(first, |first, other| {
            let text = with_causes(&*other.error);
            first.hint(format!("another registry failed too: {text}"))
        }));
    }
    for (prefix, failure) in failures {
        let why = with_causes(&*failure.error);
        session.events.warning(&Warning::RegistryLeftOut { prefix, why });
    }
    Ok(answered)
}

/// The words as one registry knows them: without the base, and without versions.
fn text(words: &[String], prefix: &str) -> String {
    let plain = |word: &String| {
        // `https://hub.mu.com/aws/ec2#^1`, pasted from somewhere, is a search for `aws/ec2` at that hub.
        let word = word.split('#').next().unwrap_or_default();
        let word = word.split_once("://").map_or(word, |(_, rest)| rest);
        word.strip_prefix(prefix).unwrap_or(word).to_owned()
    };
    words.iter().map(plain).collect::<Vec<_>>().join(" ")
}

/// Asks one registry; `None` if it cannot be searched.
fn ask(
    session: &Session,
    place: Searchable,
    query: Query,
) -> Result<Option<Answered>, CommandError> {
    let Searchable { prefix, before_names, route } = place;
    let Some(route) = usable(route)? else { return Ok(None) };
    let registry = prefix.clone();
    let progress = Work::begin(&session.events, registry.as_str());
    let hits: Result<_, ProviderError> = route.provider.search(&route.location, &query, &progress);
    let answered = hits?.map(|hits| Answered { prefix, before_names, route, query, hits });
    let lines = answered.as_ref().map_or(0, |answered| answered.hits.passed_over);
    if lines > 0 {
        session.events.warning(&Warning::CatalogLinesSkipped { registry, lines });
    }
    Ok(answered)
}

/// The packages of all registries, best first.
fn merged(session: &Session, answered: Vec<Answered>) -> Result<Vec<FoundPackage>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let mut ranked = Vec::new();
    for (number, answered) in answered.into_iter().enumerate() {
        let source = source_of(session, &answered.route);
        for line in answered.hits.packages {
            let Ok(id) = PackageId::parse(&format!("{}{}", answered.before_names, line.name))
            else {
                continue;
            };
            // Packages that another registry of the settings serves are not listed from this one.
            let is_meant = |only: &String| id.as_str().starts_with(&**only);
            if !session.options.only.is_empty() && !session.options.only.iter().any(is_meant) {
                continue;
            }
            let serving = session.index().registry(&id).map(|(registry, _)| &*registry.prefix);
            let is_other = serving.is_some_and(|serving| serving != answered.prefix);
            if is_other || !id.as_str().starts_with(&*answered.prefix) {
                continue;
            }
            // A server may search more than the line of a package, so the words may not be in it.
            let rank = answered.query.rank(&line);
            let locked = lock.find(&id).last().map(|package| package.version.clone());
            // A package whose words are not in its line comes last; among equals, the order of registries decides, and
            // then the id.
            let package = FoundPackage {
                id,
                name: line.name,
                latest: line.latest,
                app_version: line.app_version,
                description: line.description,
                keywords: line.keywords,
                moved_to: line.moved_to,
                yanked: line.yanked.reason(),
                deprecated: line.deprecated.reason(),
                source: source.clone(),
                locked,
                usable: None,
                reasons: Vec::new(),
                newest_usable: None,
            };
            ranked.push(((rank.is_none(), rank, number), package));
        }
    }
    ranked.sort_by(|(left, one), (right, two)| (left, &one.id).cmp(&(right, &two.id)));
    Ok(ranked.into_iter().map(|(_, package)| package).collect())
}

/// The packages with a version that passes the filter, with the newest such version.
fn filtered(
    session: &Session,
    sieve: &Sieve<'_>,
    packages: Vec<FoundPackage>,
) -> Result<Vec<FoundPackage>, CommandError> {
    let ids: Vec<PackageId> = packages.iter().map(|package| package.id.clone()).collect();
    session.index().ask_for_releases(&ids);
    let mut failures: Vec<Unavailable> = Vec::new();
    let newest = |package: FoundPackage| {
        let releases = session.index().published(&package.id);
        let releases = releases.map_err(|error| failures.push(error)).ok()?;
        let position = sieve.newest(&releases)?;
        let details = releases.details(position);
        Some(FoundPackage {
            latest: releases.version(position).to_string(),
            app_version: releases.app_version(position).map(str::to_owned),
            yanked: details.and_then(|details| details.yanked.clone()),
            deprecated: details.and_then(|details| details.deprecated.clone()),
            ..package
        })
    };
    let found = packages.into_iter().filter_map(newest).collect();
    if failures.len() == ids.len() && !ids.is_empty() {
        return Err(unavailable_error(session, failures.swap_remove(0)));
    }
    for failure in failures {
        session.events.warning(&Warning::failure(&failure));
    }
    Ok(found)
}

/// Finds out whether the found releases can be used here. If that cannot be looked up, it stays open, with a
/// warning.
fn judge(session: &Session, here: &Here, packages: Vec<&mut FoundPackage>) {
    let ids: Vec<PackageId> = packages.iter().map(|package| package.id.clone()).collect();
    session.index().ask_for_releases(&ids);
    for package in packages {
        if let Err(error) = judge_one(session, here, package) {
            session.events.warning(&Warning::failure(&*error.error));
        }
    }
}

/// Finds out whether a release can be used here; that stays open if the index does not have it.
fn judge_one(
    session: &Session,
    here: &Here,
    package: &mut FoundPackage,
) -> Result<(), CommandError> {
    let id = &package.id;
    let releases =
        session.index().published(id).map_err(|error| unavailable_error(session, error))?;
    let mut positions = (0..releases.len()).rev();
    let is_it = |position: &Position| releases.version(*position).to_string() == package.latest;
    let Some(position) = positions.find(is_it) else { return Ok(()) };
    let listing = Listing { session, id, releases: &releases, here: here.clone() };
    let details = listing.details(position, false)?;
    let reasons = here.reasons(
        id,
        &releases.version(position),
        details.as_ref(),
        listing.version_age(position)?,
    );
    let newest = if reasons.is_empty() { None } else { here.newest(&listing, Some(position))? };
    package.newest_usable = newest.map(|position| releases.version(position).to_string());
    package.usable = Some(reasons.is_empty());
    package.reasons = reasons;
    Ok(())
}
