//! The user's Git settings about reaching remotes.
//!
//! mu asks Git itself, which knows its files, their order and what they include, and which settings are for which URL. It runs in mu's
//! own folder, so no checkout's configuration counts; what the user's own includes for the checkout alone is asked for then. Credential helpers and `core.askPass` are asked by another module.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mu_provider::http::{Connection, Secret, is_authorization};
use mu_provider::{ErrorKind, ProviderError, brief, fs};

use crate::config_text::says_no;
use crate::programs::GitPrograms;
use crate::remote_url::{RemoteUrl, Scheme, Substitute};

/// The settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `core.sshCommand`.
    pub(crate) ssh_command: Option<String>,
    /// `ssh.variant`.
    pub(crate) ssh_variant: Option<String>,
    /// `protocol.….allow`: the protocol, or an empty text for all others, and the word.
    allowed: Vec<(String, String)>,
    /// Whether `core.askPass` is set.
    pub(crate) has_ask_pass: bool,
    /// Whether anything is set about the web.
    has_web: bool,
    /// `http.extraHeader`, which may be there several times: the URL that it is for, if it is for one, and its value.
    headers: Vec<(Option<String>, String)>,
    /// The beginning of a URL, and its replacement.
    instead_of: Vec<(String, String)>,
}

/// How the user has set up the way to one remote on the web.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebSettings {
    pub(crate) connection: Connection,
    /// Those in `http.extraHeader` that are no `Authorization`.
    pub(crate) headers: Vec<(String, Secret)>,
    /// The last one that is one.
    pub(crate) authorization: Option<Stated>,
    /// `http.followRedirects`: only the first request follows any, unless it says no.
    pub(crate) follows_redirects: bool,
}

/// What the user's settings state for a server that asks.
#[derive(Debug, Clone)]
pub(crate) enum Stated {
    Password(String, Secret),
    /// The value of an `Authorization` header.
    Header(Secret),
}

impl Settings {
    /// Asks Git; without Git, nothing is set.
    ///
    /// # Errors
    ///
    /// When Git cannot read its configuration: it would not reach the remote either, or elsewhere.
    pub(crate) fn read(programs: &GitPrograms) -> Result<Self, ProviderError> {
        let said = Self::ask(programs)?;
        let has_conditions = pairs(&said).any(|(key, _)| key.starts_with("includeif."));
        Ok(match has_conditions && programs.include_by_conditions() {
            true => Self::parse(&Self::ask(programs)?),
            false => Self::parse(&said),
        })
    }

    fn ask(programs: &GitPrograms) -> Result<String, ProviderError> {
        const KEYS: [&str; 6] = [
            r"core\.(sshcommand|askpass)",
            r"ssh\.variant",
            r"protocol\.(.*\.)?allow",
            r"http\..*",
            r"url\..*\.insteadof",
            r"includeif\..*\.path",
        ];
        let Ok(mut command) = programs.git() else { return Ok(String::new()) };
        command.args(["config", "--null", "--get-regexp", &format!("^({})$", KEYS.join("|"))]);
        answer(command)
    }

    /// Reads `KEY`, line feed, `VALUE`, zero byte, again and again.
    fn parse(text: &str) -> Self {
        let mut settings = Self::default();
        for (key, value) in pairs(text) {
            if key == "core.sshcommand" {
                settings.ssh_command = Some(value.to_owned());
            } else if key == "ssh.variant" {
                settings.ssh_variant = Some(value.to_owned());
            } else if let Some(protocol) = key.strip_prefix("protocol.") {
                let protocol = protocol.strip_suffix("allow").unwrap_or(protocol);
                let protocol = protocol.trim_end_matches('.').to_owned();
                settings.allowed.push((protocol, value.to_ascii_lowercase()));
            } else if key == "core.askpass" {
                settings.has_ask_pass = !value.is_empty();
            } else if let Some(key) = key.strip_prefix("http.") {
                settings.has_web = true;
                if let Some(url) = key.strip_suffix("extraheader") {
                    let url = url.strip_suffix('.').map(str::to_owned);
                    settings.headers.push((url, value.to_owned()));
                }
            } else if let Some(url) = key.strip_prefix("url.")
                && let Some(url) = url.strip_suffix(".insteadof")
            {
                settings.instead_of.push((value.to_owned(), url.to_owned()));
            }
        }
        settings
    }

    /// The URL to use for `remote`, if the user's Git settings have another one, and the password in that.
    pub(crate) fn instead_of(
        &self,
        remote: &RemoteUrl,
    ) -> Result<Option<Substitute>, ProviderError> {
        let text = remote.to_string();
        let fitting = self.instead_of.iter().filter(|(start, _)| text.starts_with(start));
        // Of several of one length, Git takes the first.
        let Some((start, other)) = fitting.rev().max_by_key(|(start, _)| start.len()) else {
            return Ok(None);
        };
        let other = format!("{other}{}", &text[start.len()..]);
        RemoteUrl::substitute(remote, &other).map(Some)
    }

    /// Whether the user lets Git reach remotes in this way.
    ///
    /// # Errors
    ///
    /// When they do not: with the setting that says so.
    pub(crate) fn check_allowed(
        &self,
        remote: &RemoteUrl,
        programs: &GitPrograms,
    ) -> Result<(), ProviderError> {
        let protocol = remote.url.scheme();
        let refused = |setting: &str| {
            let text = format!("`{remote}` is refused: {setting} does not allow `{protocol}`");
            Err(ProviderError::new(ErrorKind::Refused, text))
        };
        if let Some(allowed) = programs.variable("GIT_ALLOW_PROTOCOL") {
            let is_allowed = allowed.split(':').any(|one| one == protocol);
            return if is_allowed { Ok(()) } else { refused("`GIT_ALLOW_PROTOCOL`") };
        }
        let last = |wanted: &str| {
            let mut all = self.allowed.iter().rev();
            all.find(|(one, _)| one == wanted).map(|(_, word)| word.as_str())
        };
        let (key, word) = match (last(protocol), last("")) {
            (Some(word), _) => (format!("protocol.{protocol}.allow"), word),
            (None, Some(word)) => ("protocol.allow".to_owned(), word),
            (None, None) => return Ok(()),
        };
        match word {
            "never" => refused(&format!("`{key}` in Git's configuration")),
            _ => Ok(()),
        }
    }

    /// What is set for a remote on the web; variables take precedence, as in Git.
    ///
    /// # Errors
    ///
    /// When Git cannot say it.
    pub(crate) fn for_web(
        &self,
        remote: &RemoteUrl,
        programs: &GitPrograms,
    ) -> Result<WebSettings, ProviderError> {
        let mut found = WebSettings { follows_redirects: true, ..WebSettings::default() };
        if !matches!(remote.scheme, Scheme::Https | Scheme::Http) {
            return Ok(found);
        }
        let said = if self.has_web { self.asked_for(remote, programs)? } else { String::new() };
        let value = |key: &str| {
            let mut all = pairs(&said).filter(|(name, _)| *name == key);
            all.next_back().map(|(_, value)| value.to_owned()).filter(|value| !value.is_empty())
        };
        let set = |variable: &str, key: &str| {
            programs.variable(variable).map(str::to_owned).or_else(|| value(key))
        };
        let trusted =
            [set("GIT_SSL_CAINFO", "http.sslcainfo"), set("GIT_SSL_CAPATH", "http.sslcapath")];
        found.connection.trusted = trusted.into_iter().flatten().map(PathBuf::from).collect();
        found.connection.own = set("GIT_SSL_CERT", "http.sslcert").map(|certificate| {
            (certificate.into(), set("GIT_SSL_KEY", "http.sslkey").map(PathBuf::from))
        });
        let mut proxies = pairs(&said).filter(|(name, _)| *name == "http.proxy");
        found.connection.proxy = proxies.next_back().map(|(_, value)| value.to_owned());
        // Git's own word, `initial`, is what mu does: the first request alone follows redirects.
        let follows = value("http.followredirects").unwrap_or_default();
        found.follows_redirects = !says_no(&follows);
        if let Some(file) = value("http.cookiefile") {
            let text = fs::read_text_if_there(Path::new(&file))?.unwrap_or_default();
            let cookies = cookies(&text, remote.url.as_url());
            found.headers.extend(cookies.map(|value| ("cookie".to_owned(), Secret::new(value))));
        }
        for header in self.headers(&said) {
            let Some((name, value)) = header.split_once(':') else { continue };
            let (name, value) = (name.trim(), value.trim());
            match is_authorization(name) {
                true => found.authorization = Some(Stated::Header(Secret::new(value))),
                false => found.headers.push((name.to_owned(), Secret::new(value))),
            }
        }
        Ok(found)
    }

    /// Asks Git what is set for the URL of a remote, and which URLs with headers of their own are meant.
    fn asked_for(
        &self,
        remote: &RemoteUrl,
        programs: &GitPrograms,
    ) -> Result<String, ProviderError> {
        let Ok(mut command) = programs.git() else { return Ok(String::new()) };
        for (number, (url, _)) in self.headers.iter().enumerate() {
            // A key of a program's option ends at the first `=`.
            if let Some(url) = url.as_ref().filter(|url| !url.contains('=')) {
                command.arg("-c").arg(format!("http.{url}.{MARK}{number}=1"));
            }
        }
        command.args(["config", "--null", "--type=path", "--get-urlmatch", "http"]);
        command.arg(remote.url.as_url().as_str());
        answer(command)
    }

    /// The headers for a URL about which Git has said this. As for Git, one for a less specific URL than an earlier one does not count, and an
    /// empty one takes back those before.
    fn headers(&self, said: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let mut best = None;
        for (number, (url, value)) in self.headers.iter().enumerate() {
            let mark = format!("http.{MARK}{number}");
            let is_meant = url.is_none() || pairs(said).any(|(key, _)| key == mark);
            let closeness = url.as_deref().map(closeness);
            if !is_meant || closeness < best {
                continue;
            }
            best = closeness;
            match &**value {
                "" => found.clear(),
                value => found.push(value),
            }
        }
        found
    }
}

/// The cookies for a URL in a file as browsers and curl write it: seven columns, of which the first is a host. Whether one has ended, its
/// server says.
fn cookies(text: &str, url: &url::Url) -> Option<String> {
    let host = url.host_str().unwrap_or_default();
    let cookie = |line: &str| {
        let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
        let columns: Vec<&str> = line.split('\t').collect();
        let [domain, below, path, secure, _, name, value] = *columns.as_slice() else {
            return None;
        };
        let name_of_host = domain.trim_start_matches('.');
        let is_below = || {
            let start = host.strip_suffix(name_of_host);
            below == "TRUE" && start.is_some_and(|start| start.ends_with('.'))
        };
        let rest = url.path().strip_prefix(path.trim_end_matches('/'));
        let is_path = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_meant = !line.starts_with('#')
            && (host == name_of_host || is_below())
            && is_path
            && (secure != "TRUE" || url.scheme() == "https");
        is_meant.then(|| format!("{name}={value}"))
    };
    let found: Vec<String> = text.lines().filter_map(cookie).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// What Git says of its configuration.
///
/// # Errors
///
/// When it cannot read that: with its words.
fn answer(mut command: Command) -> Result<String, ProviderError> {
    let failed = |why: String| {
        let text = "Git cannot read its configuration, so it is not known how to reach remotes";
        ProviderError::new(ErrorKind::Io, text).because(why)
    };
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| failed(error.to_string()))?;
    match output.status.code() {
        // 1 means that nothing is set.
        Some(0 | 1) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => {
            let words = String::from_utf8_lossy(&output.stderr);
            Err(failed(format!("`git config` says: {}", brief(words.trim()))))
        }
    }
}

/// The beginning of the keys with which Git is asked which URLs are meant.
const MARK: &str = "mu-asks-";

/// How closely a URL of the settings, which is meant, names a remote: one without patterns, the longer path, then one with a user.
fn closeness(url: &str) -> (bool, usize, bool) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    (!host.contains('*'), path.trim_end_matches('/').len(), host.contains('@'))
}

/// The pairs in what Git prints with `--null`.
fn pairs(text: &str) -> impl DoubleEndedIterator<Item = (&str, &str)> {
    text.split('\0').filter_map(|entry| entry.split_once('\n'))
}

#[cfg(test)]
mod tests {
    use mu_provider::SafeUrl;

    use super::*;

    #[test]
    fn the_longest_start_is_replaced() {
        let settings = Settings::parse(
            "core.sshcommand\nssh -v\0url.git@example.com:.insteadof\nhttps://example.com/\0\
             url.https://mirror.org/a.b/.insteadof\nhttps://example.com/big/\0",
        );
        assert_eq!(settings.ssh_command.as_deref(), Some("ssh -v"));
        for (text, expected) in [
            ("https://example.com/a/b.git", Some("git@example.com:a/b.git")),
            ("https://example.com/big/b", Some("https://mirror.org/a.b/b")),
            ("https://example.org/a", None),
        ] {
            let url = SafeUrl::parse(text).expect("is a URL");
            let remote = RemoteUrl::new(&url, false).expect("is accepted");
            let other = settings.instead_of(&remote).expect("is accepted");
            let other = other.map(|other| other.remote.to_string());
            assert_eq!(other.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_password_in_a_replacement_is_kept_apart() {
        let settings =
            Settings::parse("url.https://ci:p%40ss@example.com/.insteadof\nhttps://example.com/\0");
        let url = SafeUrl::parse("https://example.com/a/b.git").expect("is a URL");
        let remote = RemoteUrl::new(&url, false).expect("is accepted");
        let other = settings.instead_of(&remote).expect("is accepted").expect("is replaced");
        assert_eq!(other.remote.to_string(), "https://example.com/a/b.git");
        let (user, password) = other.password.expect("has one");
        assert_eq!((user.as_str(), password.expose()), ("ci", "p@ss"));
    }
}
