//! How the user has set up the way to one server: certificates that it is trusted by, a certificate of the user's own, a proxy.
//!
//! Everything else reaches servers with what the system trusts, through the proxies that the environment names.

use std::path::{Path, PathBuf};

use reqwest::{Certificate, Client, ClientBuilder, Identity, NoProxy, Proxy};

use crate::fs;
use crate::{ErrorKind, ProviderError, SafeUrl};

/// The way to one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Connection {
    /// Files, and folders of files, with certificates that are trusted beside the system's.
    pub trusted: Vec<PathBuf>,
    /// The user's own certificate, and its key if that is in another file.
    pub own: Option<(PathBuf, Option<PathBuf>)>,
    /// The proxy; an empty text means none.
    pub proxy: Option<String>,
}

impl Connection {
    /// Whether it is the usual one.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// A client that goes this way.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or is no certificate.
    pub(super) fn client(&self, mut builder: ClientBuilder) -> Result<Client, ProviderError> {
        let failed = |path: &Path, error: &dyn std::fmt::Display| {
            let text = format!("`{}` is no certificate that can be used", path.display());
            ProviderError::new(ErrorKind::Io, text).because(error.to_string())
        };
        for place in &self.trusted {
            let files = match fs::metadata(place)?.is_dir() {
                true => fs::entries(place)?.iter().map(std::fs::DirEntry::path).collect(),
                false => vec![place.clone()],
            };
            for file in files.iter().filter(|file| file.is_file()) {
                let found = Certificate::from_pem_bundle(&fs::read(file)?);
                // A folder may have other files, too.
                let found = match found {
                    Err(_) if file != place => continue,
                    found => found.map_err(|error| failed(file, &error))?,
                };
                if found.is_empty() && file == place {
                    return Err(failed(file, &"there is no certificate in it"));
                }
                builder = builder.tls_certs_merge(found);
            }
        }
        if let Some((certificate, key)) = &self.own {
            let mut pem = fs::read(certificate)?;
            if let Some(key) = key {
                pem.push(b'\n');
                pem.extend(fs::read(key)?);
            }
            let own = Identity::from_pem(&pem).map_err(|error| failed(certificate, &error))?;
            builder = builder.identity(own);
        }
        match self.proxy.as_deref() {
            None => {}
            Some("") => builder = builder.no_proxy(),
            Some(proxy) => {
                let text = match proxy.contains("://") {
                    true => proxy.to_owned(),
                    false => format!("http://{proxy}"),
                };
                let proxy = Proxy::all(&text).map_err(|error| {
                    let shown = SafeUrl::parse(&text).map(|url| url.to_string());
                    let shown = shown.unwrap_or_else(|_| "a text that is no URL".to_owned());
                    ProviderError::new(ErrorKind::Network, format!("`{shown}` is no proxy"))
                        .because(error.without_url().to_string())
                })?;
                builder = builder.proxy(proxy.no_proxy(NoProxy::from_env()));
            }
        }
        builder.build().map_err(|error| {
            ProviderError::new(ErrorKind::Network, "cannot set up TLS").because(error.to_string())
        })
    }
}
