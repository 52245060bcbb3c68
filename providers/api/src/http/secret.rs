//! Secrets: a type that cannot be printed, and the variables that hold them.
//!
//! This file does not know where secrets are stored. `credentials.rs` decides whether one may be sent.

use std::fmt;

/// A text that never shows: neither in messages nor in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: to store it, or to hand it to the program that asked for it. What is sent comes from
    /// [`super::Credential::release`] instead; a test looks for other calls.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("****")
    }
}

/// The beginning of the names of variables that hold tokens.
pub const TOKEN_PREFIX: &str = "MU_TOKEN_";

/// The name of the variable for the token of a host: `MU_TOKEN_HUB_MU_COM`, and `MU_TOKEN_HUB_MU_COM___8080`
/// for `hub.mu.com:8080`. A `.` becomes `_`, a `-` becomes `__`, and `___` comes before a port.
///
/// No two hosts have the same variable: a dot between two letters or digits is one underscore, dashes are an
/// even number of them, and only a port has three before it. So a host whose name breaks the rules for host
/// names (with a `_`, a label that begins or ends with `-`, a dot at the end) has no variable, and neither
/// has an IPv6 address. `mu login` also works for them.
///
/// Other code reads the variable; hints name it.
pub fn token_variable(host_and_port: &str) -> Option<String> {
    let (host, port) = match host_and_port.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (host_and_port, None),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !host.split('.').all(is_label) || !port.is_none_or(is_number) {
        return None;
    }
    let host = host.to_ascii_uppercase().replace('-', "__").replace('.', "_");
    let port = port.map(|port| format!("___{port}")).unwrap_or_default();
    Some([TOKEN_PREFIX, &host, &port].concat())
}

/// Whether a text is a label of a host name: letters and digits, with dashes between them.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

/// The rest of the hint "`mu login HOST` stores a token", which names the variable of that host, if it has one.
pub fn or_variable(host_and_port: &str) -> String {
    let variable = token_variable(host_and_port);
    variable.map(|variable| format!(", or set one in `{variable}`")).unwrap_or_default()
}

/// The hint that names all ways to hand mu a password for a server: its own, and what `others` have, which mu reads, too.
pub fn ways_in(host_and_port: &str, others: &[&str]) -> String {
    let own =
        format!("`mu login {host_and_port}` stores a token for it{}", or_variable(host_and_port));
    match others {
        [] => own,
        [one] => format!("{own}; mu also finds what is in {one}"),
        [most @ .., last] => {
            format!("{own}; mu also finds what is in {} or {last}", most.join(", "))
        }
    }
}

/// The names of Docker's registry: the host that serves it, and last the one that people know.
const DOCKERS_NAMES: [&str; 3] = ["registry-1.docker.io", "index.docker.io", "docker.io"];

/// The names of a registry whose passwords are the same: its host, and the others that it has. The last is the one that passwords
/// are stored for.
pub fn names_of(host: &str) -> Vec<&str> {
    if DOCKERS_NAMES.contains(&host) { DOCKERS_NAMES.to_vec() } else { vec![host] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_never_show() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "****");
    }

    #[test]
    fn variables_name_hosts() {
        for (host, variable) in [
            ("hub.mu.com", Some("MU_TOKEN_HUB_MU_COM")),
            ("hub-mu.com", Some("MU_TOKEN_HUB__MU_COM")),
            ("xn--bcher-kva.example", Some("MU_TOKEN_XN____BCHER__KVA_EXAMPLE")),
            ("localhost:8080", Some("MU_TOKEN_LOCALHOST___8080")),
            ("127.0.0.1:80", Some("MU_TOKEN_127_0_0_1___80")),
            ("[::1]:80", None),
            ("hub_mu.com", None),
            ("hub.mu.com.", None),
            ("a-.b", None),
            ("a.-b", None),
            ("a:", None),
            ("", None),
        ] {
            assert_eq!(token_variable(host).as_deref(), variable, "{host}");
        }
    }

    /// All texts of up to seven relevant characters: every way in which two hosts could share a variable.
    #[test]
    fn no_two_hosts_share_a_variable() {
        let mut hosts = std::collections::HashMap::new();
        let mut texts = vec![String::new()];
        for _ in 0..7 {
            let longer = texts.iter().flat_map(|text| {
                ["a", "1", ".", "-", "_", ":"].map(|character| format!("{text}{character}"))
            });
            texts = longer.collect();
            for host in &texts {
                if let Some(variable) = token_variable(host)
                    && let Some(other) = hosts.insert(variable, host.clone())
                {
                    panic!("`{host}` and `{other}` have one variable");
                }
            }
        }
        assert!(hosts.len() > 1_000, "{}", hosts.len());
    }
}
