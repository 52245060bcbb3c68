//! `login` and `logout`: tokens for the hosts that packages come from, stored on this machine.
//!
//! The command line asks for a token; it never comes as an argument.

use mu_provider::SafeUrl;
use mu_provider::http::{Secret, names_of, token_variable};

use crate::ops::session::credentials;
use crate::ops::{Code, CommandError, Session};
use crate::reference::Base;

pub use crate::ops::session::credentials::Stored;

/// A host that a token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Host, and port if it is not the default one.
    pub host: String,
    /// The variable with a token for it, which takes precedence over the stored token, if it is set.
    pub variable: Option<String>,
}

/// The host behind a base: where its registry is, if the settings say so.
///
/// # Errors
///
/// When `base` is not a base, or its registry accepts no token.
pub fn host_of(session: &Session, base: &str) -> Result<Host, CommandError> {
    let place = base.split_once("://").map_or(base, |(_, rest)| rest);
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let prefix = format!("{}{}/", host.to_ascii_lowercase(), path.trim_end_matches('/'));
    let registries = &session.workspace.settings.registries;
    let registry = registries.iter().find(|registry| registry.prefix == prefix);
    let host = match registry.and_then(|registry| registry.url.as_ref()) {
        Some(url) => check(&prefix, url)?,
        None => {
            let authority = prefix.split('/').next().unwrap_or_default();
            Base::parse(authority)?.host_port().to_owned()
        }
    };
    let is_set = |variable: &String| session.environment.variable(variable).is_some();
    let names = names_of(&host);
    // It is stored for the last one.
    let variable = names.iter().find_map(|name| token_variable(name).filter(is_set));
    Ok(Host { host: names.last().map_or(host.clone(), |&name| name.to_owned()), variable })
}

fn check(prefix: &str, url: &SafeUrl) -> Result<String, CommandError> {
    if url.scheme() == "file" {
        let message = format!("`{prefix}` is served from a folder, `{url}`, which takes no token");
        return Err(CommandError::new(Code::Usage, message));
    }
    if url.is_bucket() {
        let message = format!("`{prefix}` is in a bucket, `{url}`, which takes no token");
        return Err(CommandError::new(Code::Usage, message)
            .hint("its credentials come from variables: `mu hub --help` lists them"));
    }
    if url.scheme() == "http" && !url.is_loopback() {
        let message = format!("`{prefix}` uses plain http, and mu never sends tokens over it");
        return Err(CommandError::new(Code::Usage, message)
            .hint("give the registry an https URL: `mu registry add`"));
    }
    Ok(url.host_and_port())
}

/// Stores a token for a host.
///
/// # Errors
///
/// When the text is not a token, or cannot be stored.
pub fn login(session: &Session, host: &Host, token: &Secret) -> Result<Stored, CommandError> {
    let text = token.expose();
    if text.is_empty() || text.contains(|character: char| !character.is_ascii_graphic()) {
        let message = "a token is one word of visible ASCII characters; this is not";
        return Err(CommandError::new(Code::Usage, message));
    }
    let home = &session.environment.mu_home;
    for name in names_of(&host.host).into_iter().filter(|name| *name != host.host) {
        credentials::remove(home, name)?;
    }
    credentials::store(home, &host.host, token)
}

/// Removes the stored token of a host; returns whether there was one.
///
/// # Errors
///
/// When it cannot be removed.
pub fn logout(session: &Session, host: &Host) -> Result<bool, CommandError> {
    let mut was_there = false;
    for name in names_of(&host.host) {
        was_there |= credentials::remove(&session.environment.mu_home, name)?;
    }
    Ok(was_there)
}
