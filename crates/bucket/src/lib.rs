//! Buckets of object stores: S3 and compatible ones, Google Cloud Storage, Azure Blob Storage. [`Bucket`] is one of them: how it
//! is written, and how it is opened with what the environment says about its store; `mu-hub` writes hubs through it.
//!
//! Object stores use different marks for conditional writes: S3 and Azure use an object's ETag, Google its generation. A reader
//! of a file keeps both, and the store uses the right one.
//!
//! `connect.rs` is the way to a store: where credentials come from, how long to wait for those of a machine in a cloud, and how
//! much of a file is on its way. [`Buckets`] signs the requests of mu's own HTTP client, which reads hubs. Nothing here knows
//! what a hub is, or looks at the environment: the caller passes in the variables.

mod connect;

pub use crate::connect::{Buckets, CredentialsNotProvided, Sending};

use std::str::FromStr;
use std::sync::Arc;

use mu_provider::fs;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ClientConfigKey, ObjectStore};

use crate::connect::ImpatientConnector;

/// The variable from which a program in Azure learns its identity.
const AZURE_IDENTITY: &str = "IDENTITY_ENDPOINT";

/// The variable that names the user's folder.
const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// The kind of object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    S3,
    Google,
    Azure,
}

/// A bucket, and the place of the hub in it.
///
/// Each use creates a new client, because a client's connections belong to one asynchronous runtime.
#[derive(Clone)]
pub struct Bucket {
    store: Store,
    /// The bucket or container; in Azure perhaps with the account: `CONTAINER@ACCOUNT.HOST`.
    name: String,
    prefix: Path,
    /// The variables of the environment that concern the store, including secrets.
    variables: Vec<(String, String)>,
    /// What reports how much of a file is sent.
    sending: Option<Sending>,
}

impl Store {
    /// The kind of store that `place` names, if any, and the text after the scheme.
    fn of(place: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = place.split_once("://")?;
        let store = match scheme {
            "s3" | "s3a" => Self::S3,
            "gs" => Self::Google,
            "az" | "azure" | "adl" | "abfs" | "abfss" => Self::Azure,
            _ => return None,
        };
        Some((store, rest))
    }

    /// How the variables begin that are about it.
    fn variables(self) -> &'static str {
        match self {
            Self::S3 => "AWS_",
            Self::Google => "GOOGLE_",
            Self::Azure => "AZURE_",
        }
    }

    /// How its buckets are written.
    fn expected(self) -> &'static str {
        match self {
            Self::S3 => "expected s3://BUCKET/PREFIX",
            Self::Google => "expected gs://BUCKET/PREFIX",
            Self::Azure => {
                "expected az://CONTAINER/PREFIX, or az://CONTAINER@ACCOUNT.blob.core.windows.net/PREFIX"
            }
        }
    }
}

// The variables are left out, because some of them are secrets.
mu_provider::debug_fields!(Bucket { name, prefix });

impl Bucket {
    /// The bucket that `text` names; `None` if its scheme is not that of an object store.
    ///
    /// # Errors
    ///
    /// When the text is not valid.
    pub fn parse<'variable>(
        text: &str,
        variables: impl IntoIterator<Item = (&'variable str, &'variable str)>,
    ) -> Result<Option<Self>, String> {
        let Some((store, rest)) = Store::of(text) else { return Ok(None) };
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = !name.is_empty()
            && !name.contains(['?', '#', ':'])
            && (store == Store::Azure || !name.contains('@'));
        if !is_name {
            return Err(store.expected().to_owned());
        }
        let prefix = Path::parse(prefix.trim_matches('/')).map_err(|error| error.to_string())?;
        let is_ours = |name: &str| name.starts_with(store.variables()) || name == AZURE_IDENTITY;
        let mut home = None;
        let mut set = Vec::new();
        for (name, value) in variables.into_iter().filter(|(_, value)| !value.is_empty()) {
            if name == HOME {
                home = Some(value);
            }
            if is_ours(name) {
                set.push((name.to_owned(), value.to_owned()));
            }
        }
        if store == Store::S3 {
            let read = |path: &std::path::Path| {
                fs::read_text_if_there(path).map_err(|error| error.to_string())
            };
            connect::complete(&mut set, home, &read)?;
        }
        let variables = set;
        Ok(Some(Self { store, name: name.to_owned(), prefix, variables, sending: None }))
    }

    /// This bucket, which says how much of a file is sent.
    #[must_use]
    pub fn telling(self, sending: Sending) -> Self {
        Self { sending: Some(sending), ..self }
    }

    /// The variable that the bucket's credentials come from; `None` if there is none, so that the machine provides them, or
    /// if requests are not signed.
    pub fn variable(&self) -> Option<&str> {
        let names: &[&str] = match self.store {
            Store::S3 => &["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"],
            Store::Google => &[
                "GOOGLE_BEARER_TOKEN",
                "GOOGLE_SERVICE_ACCOUNT",
                "GOOGLE_SERVICE_ACCOUNT_KEY",
                "GOOGLE_APPLICATION_CREDENTIALS",
            ],
            Store::Azure => &[
                "AZURE_STORAGE_ACCOUNT_KEY",
                "AZURE_STORAGE_SAS_TOKEN",
                "AZURE_CLIENT_SECRET",
                "AZURE_FEDERATED_TOKEN_FILE",
            ],
        };
        let mut set = self.variables.iter().map(|(name, _)| name.as_str());
        set.find(|name| names.contains(name))
    }

    /// The variable that says that a bucket is public, so that requests are not signed.
    pub fn public_variable(&self) -> String {
        format!("{}SKIP_SIGNATURE", self.store.variables())
    }

    /// A client of the bucket. Sends no request yet.
    ///
    /// # Errors
    ///
    /// When something in the environment is missing or wrong.
    pub fn open(&self) -> Result<Arc<dyn ObjectStore>, String> {
        // The client's TLS has no other way to find its cryptography library. An error means that another
        // part of the process has set it already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match self.store {
            Store::S3 => self.in_s3(),
            Store::Google => self.in_google(),
            Store::Azure => self.in_azure(),
        }
    }

    fn in_s3(&self) -> Result<Arc<dyn ObjectStore>, String> {
        use AmazonS3ConfigKey::{Client, Endpoint, MetadataEndpoint, S3Endpoint};
        let builder = self.configured(AmazonS3Builder::new(), AmazonS3Builder::with_config);
        let of = |key| builder.get_config_value(key);
        let http = may_be_plain(of(&S3Endpoint).or_else(|| of(&Endpoint)));
        let patience = ImpatientConnector::new(of(&MetadataEndpoint), self.sending.clone());
        let store = builder
            .with_config(Client(ClientConfigKey::AllowHttp), http)
            .with_bucket_name(&self.name)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_http_connector(patience)
            .build();
        store.map(|store| self.below_prefix(store)).map_err(|error| error.to_string())
    }

    fn in_google(&self) -> Result<Arc<dyn ObjectStore>, String> {
        use GoogleConfigKey::{BaseUrl, Client};
        let set = GoogleCloudStorageBuilder::with_config;
        let builder = self.configured(GoogleCloudStorageBuilder::new(), set);
        let http = may_be_plain(builder.get_config_value(&BaseUrl));
        let store = builder
            .with_config(Client(ClientConfigKey::AllowHttp), http)
            .with_bucket_name(&self.name)
            .with_http_connector(ImpatientConnector::new(None, self.sending.clone()))
            .build();
        store.map(|store| self.below_prefix(store)).map_err(|error| error.to_string())
    }

    fn in_azure(&self) -> Result<Arc<dyn ObjectStore>, String> {
        use AzureConfigKey::{AccountName, Client, Endpoint, MsiEndpoint, UseEmulator};
        let set = MicrosoftAzureBuilder::with_config;
        let builder = self.configured(MicrosoftAzureBuilder::new(), set);
        let http = may_be_plain(builder.get_config_value(&Endpoint));
        let mut builder = builder
            .with_config(Client(ClientConfigKey::AllowHttp), http)
            .with_http_connector(ImpatientConnector::new(None, self.sending.clone()));
        // If Azure runs the program as a service, this URL provides its identity.
        if let Some((_, url)) = self.variables.iter().find(|(name, _)| name == AZURE_IDENTITY) {
            builder = builder.with_config(MsiEndpoint, url);
        }
        builder = match self.name.contains('@') {
            true => builder.with_url(format!("abfss://{}/", self.name)),
            false => builder.with_container_name(&self.name),
        };
        let has_account = self.name.contains('@')
            || builder.get_config_value(&AccountName).is_some()
            || builder.get_config_value(&UseEmulator).as_deref() == Some("true");
        if !has_account {
            let known = "its account is not known: set AZURE_STORAGE_ACCOUNT_NAME, or write ";
            return Err(format!("{known}az://{}@ACCOUNT.blob.core.windows.net/PREFIX", self.name));
        }
        builder.build().map(|store| self.below_prefix(store)).map_err(|error| error.to_string())
    }

    /// The builder with all variables that mean something to it.
    fn configured<Builder, Key: FromStr>(
        &self,
        builder: Builder,
        set: impl Fn(Builder, Key, String) -> Builder,
    ) -> Builder {
        self.variables.iter().fold(builder, |builder, (name, value)| {
            match name.to_ascii_lowercase().parse() {
                Ok(key) => set(builder, key, value.clone()),
                Err(_) => builder,
            }
        })
    }

    fn below_prefix(&self, store: impl ObjectStore) -> Arc<dyn ObjectStore> {
        match self.prefix.as_ref() {
            "" => Arc::new(store),
            _ => Arc::new(PrefixStore::new(store, self.prefix.clone())),
        }
    }
}

/// Where the credentials for the bucket in `place` come from; `None` if it is not a bucket.
pub fn credentials_hint(place: &str) -> Option<&'static str> {
    let (store, _) = Store::of(place)?;
    Some(match store {
        Store::S3 => {
            "the credentials, region and endpoint of a bucket come from AWS_ACCESS_KEY_ID, \
             AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL, or from the profile in `~/.aws` that AWS_PROFILE names"
        }
        Store::Google => {
            "the credentials of a bucket come from the file that GOOGLE_APPLICATION_CREDENTIALS names, or from `gcloud auth application-default login`"
        }
        Store::Azure => {
            "the account of a container comes from AZURE_STORAGE_ACCOUNT_NAME, its credentials from AZURE_STORAGE_ACCOUNT_KEY, or AZURE_STORAGE_SAS_TOKEN, or AZURE_CLIENT_ID with \
             AZURE_CLIENT_SECRET and AZURE_TENANT_ID"
        }
    })
}

/// Whether an endpoint may be used without TLS, as the option is written. It may if it is on this machine,
/// where tests and developers run a server without a certificate.
fn may_be_plain(endpoint: Option<String>) -> &'static str {
    let url = endpoint.and_then(|endpoint| url::Url::parse(&endpoint).ok());
    let is_loopback = match url.as_ref().and_then(url::Url::host) {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if is_loopback { "true" } else { "false" }
}
