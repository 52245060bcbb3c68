//! The providers that this program was built with.

use std::sync::Arc;

use mu_provider::Provider;
use mu_provider::http::{Http, Signer};
use mu_provider_helm::{RepositoryOptions, RepositoryProvider};

use crate::env::Environment;
use crate::formats;
use crate::index::Providers;

/// The options of everything that reaches Git repositories.
#[cfg(feature = "git")]
pub(crate) fn git(
    environment: &Environment,
    offline: bool,
    http: &Arc<Http>,
) -> mu_provider_git::GitOptions {
    mu_provider_git::GitOptions {
        offline,
        variables: Arc::clone(&environment.variables),
        ..mu_provider_git::GitOptions::new(environment.cache.join("git"), http)
    }
}

/// All providers, ready to use.
pub(crate) fn all(environment: &Environment, offline: bool, http: &Arc<Http>) -> Providers {
    let mut providers = Providers::default();
    #[cfg(feature = "hub")]
    {
        let downloads = environment.cache.join("downloads");
        let provider = mu_provider_hub::HubProvider::new(Arc::clone(http), downloads);
        providers.add(Arc::new(provider));
    }
    #[cfg(feature = "git")]
    {
        let options = git(environment, offline, http);
        providers.add(Arc::new(mu_provider_git::GitProvider::new(options)));
    }
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
    providers.add(Arc::new(mu_provider_path::PathProvider::new()));
    let _ = offline;
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
    let stores = mu_provider_oci::Stores::of(&environment.home, &environment.variables);
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
