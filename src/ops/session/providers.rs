//! The providers that this program was built with.
//!
//! And what the HTTP client and the client of buckets are told of the environment: its proxies, and its certificates for messages. The
//! clients find certificates themselves.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use mu_formats::Certified;
#[cfg(feature = "path")]
use mu_provider::TreeWriter;
use mu_provider::http::{Connection, Http, NamedProxy, Proxies, Secret, Signer, Way};
use mu_provider::{Provider, SafeUrl};
use mu_provider_helm::{RepositoryOptions, RepositoryProvider};

use super::folders::AllowedFolders;
#[cfg(feature = "path")]
use crate::contents;
use crate::env::Environment;
use crate::formats;
use crate::fs;
use crate::index::Providers;
#[cfg(any(feature = "git", feature = "oci"))]
use crate::workspace::root::programs;

/// The options of everything that reaches Git repositories.
#[cfg(feature = "git")]
pub(crate) fn git_options(
    environment: &Environment,
    offline: bool,
    http: &Arc<Http>,
    folders: &Arc<AllowedFolders>,
) -> mu_provider_git::GitOptions {
    let folders = Arc::clone(folders);
    mu_provider_git::GitOptions {
        offline,
        check_folder: mu_provider_git::CheckFolder::new(move |folder| {
            folders.check_repository(folder)
        }),
        programs: programs(environment),
        current: Some(environment.current.clone()),
        ..mu_provider_git::GitOptions::new(environment.cache.join("git"), http)
    }
}

/// All providers, ready to use.
pub(crate) fn all_providers(
    environment: &Environment,
    offline: bool,
    http: &Arc<Http>,
    folders: &Arc<AllowedFolders>,
) -> Providers {
    let mut providers = Providers::default();
    #[cfg(feature = "hub")]
    {
        let downloads = environment.cache.join("downloads");
        let provider = mu_provider_hub::HubProvider::new(Arc::clone(http), downloads);
        providers.add(Arc::new(provider));
    }
    #[cfg(feature = "git")]
    {
        let options = git_options(environment, offline, http, folders);
        providers.add(Arc::new(mu_provider_git::GitProvider::new(options)));
    }
    // This one comes first, because others need it: the bundles of operators are images, and the index of a chart
    // repository may place charts in OCI registries.
    #[cfg(feature = "oci")]
    let registries = Arc::new(mu_provider_oci::OciProvider::new(oci(environment, http)));
    #[cfg(feature = "olm")]
    providers.add(Arc::new(mu_provider_olm::OlmProvider::new(
        Arc::clone(http),
        Arc::clone(&registries),
        environment.cache.join("operators"),
    )));
    #[cfg(feature = "oci")]
    let registries: Option<Arc<dyn Provider>> = Some(registries);
    #[cfg(not(feature = "oci"))]
    let registries: Option<Arc<dyn Provider>> = None;
    let options = RepositoryOptions {
        http: Arc::clone(http),
        indexes: environment.cache.join("charts"),
        downloads: environment.cache.join("downloads"),
    };
    // A chart may name a repository by an alias (`@stable`), which is in Helm's own list.
    let aliases = Some(formats::helms_repositories(environment));
    let charts = RepositoryProvider::charts(options.clone(), registries.clone(), aliases);
    providers.add(Arc::new(charts));
    providers.add(Arc::new(RepositoryProvider::operators(options)));
    registries.into_iter().for_each(|registries| providers.add(registries));
    #[cfg(feature = "url")]
    providers.add(Arc::new(mu_provider_url::UrlProvider::new(
        Arc::clone(http),
        environment.cache.join("downloads"),
    )));
    #[cfg(feature = "path")]
    {
        let environment = environment.clone();
        let contents =
            move |folder: &Path, tree: &mut TreeWriter| contents::write(folder, &environment, tree);
        providers.add(Arc::new(mu_provider_path::PathProvider::new(Arc::new(contents))));
    }
    // Which of them are used depends on the features.
    let _ = (offline, folders);
    providers
}

/// Who signs requests for files in buckets, with the credentials that publishing uses, too.
pub(crate) fn buckets(environment: &Environment) -> Option<Arc<dyn Signer>> {
    #[cfg(feature = "buckets")]
    {
        let variables = environment.variables.iter();
        let variables = variables.map(|(name, value)| (name.as_str(), value.as_str()));
        Some(Arc::new(mu_bucket::Buckets::new(variables)))
    }
    #[cfg(not(feature = "buckets"))]
    {
        let _ = environment;
        None
    }
}

/// The settings of the provider of OCI registries: it finds passwords where container tools store them.
#[cfg(feature = "oci")]
pub(crate) fn oci(environment: &Environment, http: &Arc<Http>) -> mu_provider_oci::OciOptions {
    let downloads = environment.cache.join("downloads");
    let stores = mu_provider_oci::Stores::of(&environment.home, &programs(environment));
    mu_provider_oci::OciOptions {
        stores,
        without_lists: mu_provider_oci::WithoutLists {
            folder: Some(environment.cache.join("registries")),
            now: environment.now,
        },
        kept: mu_provider_oci::Kept { folder: Some(environment.cache.join("registries")) },
        ..mu_provider_oci::OciOptions::new(Arc::clone(http), downloads)
    }
}

/// The proxies that the environment names.
pub(super) fn proxies(environment: &Environment) -> Proxies {
    let names = [
        ("https", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
        ("http", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]),
    ];
    let named = names.into_iter().filter_map(|(scheme, names)| {
        let name = names.into_iter().find(|name| environment.variable(name).is_some())?;
        let value = environment.variable(name)?;
        // A value without a protocol means http, as for curl.
        let url = SafeUrl::parse(value).or_else(|_| SafeUrl::parse(&format!("http://{value}")));
        let shown = url.map_or_else(
            |_| "whose address is not a URL".to_owned(),
            |url| format!("`{}://{}`", url.scheme(), url.host_and_port()),
        );
        let shown = format!("{shown} ({name})");
        Some((scheme, NamedProxy { shown, address: Secret::new(value) }))
    });
    let no_proxy = ["NO_PROXY", "no_proxy"].into_iter().find_map(|name| environment.variable(name));
    Proxies::new(named.collect(), no_proxy.unwrap_or_default())
}

/// The variables that name trusted certificates.
pub(super) fn certificates(environment: &Environment) -> Option<String> {
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
        .map(|name| environment.variable(name).map(|value| format!("{name} is `{value}`")));
    let named: Vec<String> = named.into_iter().flatten().collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// The ways to chart repositories that the user has set up for Helm (`helm repo add NAME URL --ca-file FILE`), which count there alone.
pub(super) fn ways(environment: &Environment) -> impl Fn(&SafeUrl) -> Way + Send + Sync + 'static {
    let file = formats::helms_repositories(environment);
    let known: OnceLock<Vec<(SafeUrl, Way)>> = OnceLock::new();
    move |url| {
        let known = known.get_or_init(|| ways_in(&file));
        let there = known.iter().find(|(own, _)| own.is_same_server(url));
        there.map(|(_, way)| way.clone()).unwrap_or_default()
    }
}

/// The ways in Helm's `repositories.yaml`; none if it cannot be read.
fn ways_in(file: &Path) -> Vec<(SafeUrl, Way)> {
    let text = fs::read_text_if_there(file).ok().flatten().unwrap_or_default();
    let ways = Certified::read(&text).into_iter().filter_map(|repository| {
        let trusted = repository.trusted.into_iter().map(PathBuf::from).collect();
        let own = repository.own.map(|(own, key)| (own.into(), key.map(PathBuf::from)));
        let connection = Connection { trusted, own, ..Connection::default() };
        let refused = repository.takes_any.then(|| {
            format!(
                "mu does not follow `insecure_skip_tls_verify` in `{}`: name a file with the certificate there as `caFile`",
                file.display()
            )
        });
        Some((SafeUrl::parse(&repository.url).ok()?, Way { connection, refused }))
    });
    ways.collect()
}

#[cfg(test)]
mod tests {
    use mu_provider::http::HttpOptions;
    use mu_provider::{Lead, Location, PlaceKind, Reach, SafeUrl};

    use super::*;
    use crate::index::{Route, objection};
    use crate::ops::{Events, NoEvents};
    use crate::reference::{Defaults, Protocol, Reference};
    use crate::workspace::Workspace;

    /// Where packages of each provider are on the network, and for those that can be there, in a folder.
    const PLACES: [(&str, &str, Option<&str>); 8] = [
        ("git", "https://git.example/", Some("file:///srv/")),
        ("helm", "https://charts.example/", Some("file:///srv/charts/")),
        ("hub", "https://hub.example/", Some("file:///srv/hub/")),
        ("kudo", "https://kudo.example/", Some("file:///srv/kudo/")),
        ("oci", "https://oci.example/", None),
        ("olm", "https://olm.example/", Some("file:///srv/catalog/")),
        ("path", "file:///srv/package/", Some("file:///srv/package/")),
        ("url", "https://archives.example/", None),
    ];

    /// Hosts near to this machine, the nearest first.
    const HOSTS: [(&str, Reach); 7] = [
        ("localhost", Reach::Machine),
        ("127.0.0.1:5000", Reach::Machine),
        ("127.1", Reach::Machine),
        ("[::1]:80", Reach::Machine),
        ("10.0.0.5", Reach::Private),
        ("169.254.169.254", Reach::Private),
        ("192.168.1.1:8080", Reach::Private),
    ];

    /// References to what is near to this machine, by all protocols, and how near it is.
    fn near() -> Vec<(String, Reach)> {
        let mut all: Vec<(String, Reach)> = ["../x", "/srv/x", "file:///srv/x"]
            .map(|folder| (folder.to_owned(), Reach::Files))
            .to_vec();
        // Without a protocol, a word without a dot is a namespace.
        for (host, reach) in HOSTS.into_iter().filter(|(host, _)| *host != "localhost") {
            all.push((format!("{host}/acme/x"), reach));
        }
        for scheme in Protocol::built_in_schemes().chain(["plugin"]) {
            if scheme.ends_with("file") {
                all.push((format!("{scheme}:///srv/x"), Reach::Files));
                continue;
            }
            all.extend(HOSTS.map(|(host, reach)| (format!("{scheme}://{host}/acme/x"), reach)));
        }
        all
    }

    fn may(route: &Route, text: &str) -> bool {
        let reference = Reference::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        objection(route, &reference.id(&Defaults::default()), &reference).is_none()
    }

    #[test]
    fn what_any_provider_fetched_leads_no_nearer_to_this_machine_than_its_place() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = |name: &str| folder.path().join(name);
        let environment = Environment {
            home: path("home"),
            mu_home: path("home/.mu"),
            mu_root: path("runtime"),
            cache: path("cache"),
            current: path("work"),
            now: 0,
            users: Vec::new(),
            variables: Arc::default(),
        };
        let workspace = Workspace::open_without_members(&environment.current, &environment.mu_home);
        let workspace = workspace.expect("has no settings");
        let events: Arc<dyn Events> = Arc::new(NoEvents);
        let folders = Arc::new(AllowedFolders::new(&workspace, &environment, false, &events));
        let providers =
            all_providers(&environment, false, &Http::new(HttpOptions::default()), &folders);
        let known: Vec<&str> = PLACES.iter().map(|(name, ..)| *name).collect();
        assert_eq!(providers.names().collect::<Vec<_>>(), known, "each provider has a place here");
        for (name, network, in_folder) in PLACES {
            let provider = providers.get(name).expect("is there");
            let facts = provider.facts();
            let at = |root: &str| Route {
                provider: Arc::clone(&provider),
                location: Location::new(
                    Lead::of_user(SafeUrl::parse(root).expect("is a URL")),
                    "x",
                ),
                tried: Vec::new(),
            };
            for (text, reach) in near() {
                let near_too = |root: &str| may(&at(root), &text);
                if facts.kind != PlaceKind::Folder {
                    assert!(!near_too(network), "{name} on the network: {text}");
                    let private = near_too("https://10.0.0.9/");
                    assert_eq!(
                        private,
                        reach == Reach::Private,
                        "{name} in a private network: {text}"
                    );
                    let here = near_too("http://127.0.0.1:1/");
                    assert_eq!(here, reach != Reach::Files, "{name} on this machine: {text}");
                }
                if let Some(root) = in_folder {
                    // A registry in a folder has what others have published.
                    let has_own =
                        facts.kind == PlaceKind::Folder || facts.kind == PlaceKind::Repository;
                    let fine = reach != Reach::Files || has_own;
                    assert_eq!(near_too(root), fine, "{name} in a folder: {text}");
                }
            }
            assert!(may(&at(network), "https://other.example/acme/x"), "{name}");
        }
    }
}
