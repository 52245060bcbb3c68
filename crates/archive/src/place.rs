//! Where the file of a registry is, and where a registry may lead.
//!
//! What a registry names is hostile: it must not lead to this machine's files, or closer to this machine than the registry is.
//! Nothing here connects to anything.

use std::sync::Arc;

use mu_provider::http::{Guard, check_lead};
use mu_provider::{ErrorKind, ProviderError, SafeUrl};

/// The longest place that a hub names, in bytes.
const LONGEST_PLACE: usize = 8 << 10;

/// The URL of an archive, and how to request it.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its URL.
    pub url: SafeUrl,
    /// Whether plain http to another machine was allowed.
    pub insecure: bool,
    /// Provides credentials, if not the stored token should be used.
    pub guard: Option<Arc<dyn Guard>>,
}

/// The URL of `place` relative to `folder`, unless it leads from a hub to this machine's files, closer to
/// this machine than the hub is, or contains a secret.
///
/// # Errors
///
/// When it leads there, or is not a URL.
pub fn below(folder: &SafeUrl, place: &str) -> Result<SafeUrl, ProviderError> {
    if place.len() > LONGEST_PLACE {
        let text = format!(
            "`{folder}` names a place in {} bytes, and a URL has at most {LONGEST_PLACE}",
            place.len()
        );
        return Err(ProviderError::new(ErrorKind::Refused, text));
    }
    let url = folder.join(place).map_err(|error| {
        let text = format!("`{folder}` names a place that is not a valid URL");
        ProviderError::new(ErrorKind::Protocol, text).because(error)
    })?;
    let escapes = match folder.scheme() {
        "file" => {
            url.scheme() == "file" && !url.as_url().path().starts_with(folder.as_url().path())
        }
        _ => !matches!(url.scheme(), "http" | "https") && !url.is_in_bucket_of(folder),
    };
    let brings_secret = url.may_hold_secret() && place.contains('@');
    if escapes || brings_secret {
        let text = format!("`{url}` is refused: the hub at `{folder}` may not lead there");
        return Err(ProviderError::new(ErrorKind::Refused, text));
    }
    if folder.scheme() != "file" {
        check_lead(folder, &url)?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> SafeUrl {
        SafeUrl::parse(text).expect("is a URL")
    }

    #[test]
    fn a_hub_leads_to_no_file_outside() {
        for (folder, place, expected) in [
            ("https://h/hub/", "packs/a.tgz", Some("https://h/hub/packs/a.tgz")),
            ("https://h/hub/", "https://cdn/a.tgz", Some("https://cdn/a.tgz")),
            ("https://h/hub/", "file:///etc/passwd", None),
            ("https://h/hub/", "data:text/plain,x", None),
            ("https://h/hub/", "http://h/hub/packs/a.tgz", None),
            ("https://h/hub/", "http://127.0.0.1:8080/a.tgz", None),
            ("https://h/hub/", "https://10.0.0.1/a.tgz", None),
            (
                "http://127.0.0.1:1/hub/",
                "http://127.0.0.1:2/a.tgz",
                Some("http://127.0.0.1:2/a.tgz"),
            ),
            ("file:///srv/hub/", "packs/a.tgz", Some("file:///srv/hub/packs/a.tgz")),
            ("file:///srv/hub/", "../a.tgz", None),
            ("file:///srv/hub/", "/etc/passwd", None),
            ("file:///srv/hub/", "https://cdn/a.tgz", Some("https://cdn/a.tgz")),
            ("s3://acme/hub/", "packs/a.tgz", Some("s3://acme/hub/packs/a.tgz")),
            ("s3://acme/hub/", "../packs/a.tgz", Some("s3://acme/packs/a.tgz")),
            ("s3://acme/hub/", "https://cdn/a.tgz", Some("https://cdn/a.tgz")),
            ("s3://acme/hub/", "s3://other/a.tgz", None),
            ("s3://acme/hub/", "//other/a.tgz", None),
            ("s3://localhost/hub/", "http://localhost/a.tgz", None),
            ("az://c@one.example.com/hub/", "az://d@one.example.com/a.tgz", None),
            ("https://h/hub/", "s3://acme/a.tgz", None),
        ] {
            let result = below(&url(folder), place).map(|url| url.to_string());
            assert_eq!(result.as_deref().ok(), expected, "{folder} {place}");
        }
    }
}
