//! The URL of a repository: which ones are accepted, and how each transport reads them.
//!
//! This stops everything hostile that a URL can do to a program that gets it: options disguised as hosts,
//! helpers (`ext::`), passwords, and plain http to other machines.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use mu_provider::http::{Secret, or_variable};
use mu_provider::{ErrorKind, ProviderError, Reach, SafeUrl, without_secrets};
use percent_encoding::percent_decode_str;
use url::Url;

/// How a repository is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Https,
    Http,
    Ssh,
    Git,
    File,
}

/// The URL of one repository, checked.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RemoteUrl {
    pub(crate) scheme: Scheme,
    /// For connections over http, and for a settled location.
    pub(crate) url: SafeUrl,
    /// For ssh below the home folder of whoever connects, as in scp form: the path there, as it was written.
    relative: Option<String>,
    /// Whether plain http to other machines was allowed.
    pub(crate) insecure: bool,
}

/// The beginning of a URL's path below the home folder of whoever connects.
const HOME: &str = "/~/";

/// Hosts whose repositories are the first two segments, with or without `.git`.
pub(crate) const KNOWN_HOSTS: [&str; 4] =
    ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org"];

impl RemoteUrl {
    /// Checks a URL that the user or a registry wrote.
    ///
    /// `insecure` allows plain http to other machines.
    pub(crate) fn new(url: &SafeUrl, insecure: bool) -> Result<Self, ProviderError> {
        let remote = Self::read(url, insecure)?;
        remote.check_user()?;
        Ok(remote)
    }

    fn read(url: &SafeUrl, insecure: bool) -> Result<Self, ProviderError> {
        let text = url.as_url().as_str();
        let url = match text.strip_prefix("git+") {
            Some(plain) => {
                SafeUrl::parse(plain).map_err(|error| refused(url, "not a URL").because(error))?
            }
            None => url.clone(),
        };
        let scheme = match url.scheme() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            "ssh" => Scheme::Ssh,
            "git" => Scheme::Git,
            "file" => Scheme::File,
            _ => return Err(refused(&url, "Git is not reached that way")),
        };
        let home = url.as_url().path().strip_prefix(HOME).filter(|_| scheme == Scheme::Ssh);
        let relative = home.filter(|path| !path.is_empty()).map(str::to_owned);
        let remote = Self { scheme, url, relative, insecure };
        remote.check()?;
        Ok(remote)
    }

    /// Checks the URL of a submodule of the repository `parent`.
    ///
    /// Relative URLs count from the parent. Those on this machine or in a private network, and plain http, are allowed only for
    /// parents of the same kind.
    pub(crate) fn submodule(parent: &Self, text: &str) -> Result<Self, ProviderError> {
        let refuse = |why: &str| {
            let text = shown(text);
            let text = format!("the submodule URL `{text}` of `{parent}` is refused: {why}");
            ProviderError::new(ErrorKind::Refused, text)
        };
        if text.starts_with("./") || text.starts_with("../") {
            return parent.relative(text).ok_or_else(|| refuse("it leads out of its host"))?;
        }
        let insecure =
            |url: &SafeUrl| parent.insecure && url.host_and_port() == parent.url.host_and_port();
        let remote = Self::parse(text, insecure)?.ok_or_else(|| refuse("it is not a URL"))?;
        remote.check_user()?;
        if let Some(why) = Reach::of(&remote.url).objection(Reach::of(&parent.url)) {
            return Err(refuse(why));
        }
        match remote.scheme {
            Scheme::Http if !matches!(parent.scheme, Scheme::Http | Scheme::File) => {
                Err(refuse("plain http is less safe than how the repository itself came"))
            }
            _ => Ok(remote),
        }
    }

    /// The URL that the user's Git settings have instead of `remote`. A password in it is no part of the result's URL.
    pub(crate) fn substitute(remote: &Self, text: &str) -> Result<Substitute, ProviderError> {
        let (text, password) = split_password(text);
        let other = Self::parse(&text, |_| remote.insecure)?;
        let remote = other.ok_or_else(|| {
            let text = shown(&text);
            let text = format!(
                "Git's configuration uses `{text}` instead of `{remote}`, which is not a valid URL"
            );
            ProviderError::new(ErrorKind::Refused, text)
        })?;
        Ok(Substitute { remote, password })
    }

    /// Reads what Git accepts as a remote: a URL, `user@host:path`, or an absolute path.
    pub(crate) fn parse(
        text: &str,
        insecure: impl FnOnce(&SafeUrl) -> bool,
    ) -> Result<Option<Self>, ProviderError> {
        if let Some((user_and_host, path)) = scp_form(text) {
            let home = if path.starts_with('/') { "" } else { HOME };
            let path = path.trim_start_matches('/');
            let slash = if home.is_empty() { "/" } else { "" };
            let url = SafeUrl::parse(&format!("ssh://{user_and_host}{home}{slash}{path}"));
            let Ok(url) = url else { return Ok(None) };
            return Self::read(&url, false).map(Some);
        }
        let url = match Url::from_file_path(text) {
            Ok(url) => Ok(url.into()),
            Err(()) => SafeUrl::parse(text),
        };
        url.ok().map(|url| Self::read(&url, insecure(&url))).transpose()
    }

    /// Follows `./` and `../` as `git submodule` does: from the repository, not from its folder.
    fn relative(&self, text: &str) -> Option<Result<Self, ProviderError>> {
        let mut path = match &self.relative {
            Some(path) => path.as_str(),
            None => self.url.as_url().path(),
        }
        .trim_end_matches('/');
        let mut rest = text;
        loop {
            if let Some(after) = rest.strip_prefix("./") {
                rest = after;
            } else if let Some(after) = rest.strip_prefix("../") {
                // Below a home folder, a repository may lie in no other one.
                path = match path.rsplit_once('/') {
                    Some((above, _)) => above,
                    None if self.relative.is_some() && !path.is_empty() => "",
                    None => return None,
                };
                rest = after;
            } else {
                break;
            }
        }
        // `./` is the repository itself, on another branch.
        let path = if rest.is_empty() { path.to_owned() } else { format!("{path}/{rest}") };
        if path.is_empty() || rest.split('/').any(|segment| segment == "..") {
            return None;
        }
        let mut url = self.url.as_url().clone();
        let relative = self.relative.as_ref().map(|_| path.trim_start_matches('/').to_owned());
        match &relative {
            Some(relative) => url.set_path(&format!("{HOME}{relative}")),
            None => url.set_path(&path),
        }
        let remote = Self { url: url.into(), relative, ..self.clone() };
        Some(remote.check().map(|()| remote))
    }

    fn check(&self) -> Result<(), ProviderError> {
        let url = self.url.as_url();
        let host = url.host_str().unwrap_or_default();
        if url.password().is_some() {
            return Err(refused(&self.url, "it contains a password").hint(
                "leave the password out; credentials come from `MU_TOKEN_<HOST>` or Git's credential helpers",
            ));
        }
        if host.is_empty() != (self.scheme == Scheme::File) {
            return Err(refused(&self.url, "only local repositories have no host"));
        }
        let path = self.path();
        for (what, text) in [("host", host), ("user", url.username()), ("path", path.as_str())] {
            if text.starts_with('-') {
                return Err(refused(&self.url, &format!("its {what} looks like an option")));
            }
            if text.chars().any(char::is_control) {
                return Err(refused(&self.url, &format!("its {what} has control characters")));
            }
        }
        if matches!(self.scheme, Scheme::Ssh | Scheme::Git) {
            self.check_words()?;
        }
        if self.scheme == Scheme::Http && !self.insecure && !self.url.is_loopback() {
            return Err(refused(&self.url, "plain http can be read and changed in transit").hint(
                "use https, or allow it with `--allow-insecure` or `insecure: true` for the registry",
            ));
        }
        Ok(())
    }

    /// Checks that host and user have only the characters that references accept: programs that replace ssh
    /// may get them as words of a shell command.
    fn check_words(&self) -> Result<(), ProviderError> {
        let url = self.url.as_url();
        let is_host = |character: char| {
            character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_')
        };
        let is_user = |character: char| is_host(character) || matches!(character, '+' | '~');
        let is_address = matches!(url.host(), Some(url::Host::Ipv6(_)));
        if !is_address && !self.host().chars().all(is_host) {
            let why = "its host has characters other than letters, digits and `.-_`";
            return Err(refused(&self.url, why));
        }
        if !url.username().chars().all(is_user) {
            let why = "its user has characters other than letters, digits and `.-_+~`";
            return Err(refused(&self.url, why));
        }
        Ok(())
    }

    /// Refuses a user over http, who may be a token, because the URL is shown, and stored in lock files. The
    /// URL from the user's own Git configuration is neither.
    fn check_user(&self) -> Result<(), ProviderError> {
        if !self.url.may_hold_secret() {
            return Ok(());
        }
        let host = self.url.host_and_port();
        let variable = or_variable(&host);
        Err(refused(&self.url, "the user name in it may be a token").hint(format!(
            "leave it out; `mu login {host}` stores a token{variable}, and Git's credential helpers are asked"
        )))
    }

    /// Host without port, in lower case.
    pub(crate) fn host(&self) -> &str {
        self.url.as_url().host_str().unwrap_or_default()
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.url.as_url().port()
    }

    pub(crate) fn user(&self) -> Option<&str> {
        Some(self.url.as_url().username()).filter(|user| !user.is_empty())
    }

    /// The path as the program at the other end takes it.
    pub(crate) fn path(&self) -> String {
        if let Some(path) = &self.relative {
            return path.clone();
        }
        let path = self.url.as_url().path();
        let decoded = percent_decode_str(path).decode_utf8();
        let path = decoded.map_or_else(|_| path.to_owned(), Cow::into_owned);
        // As in Git, `ssh://host/~user/x` is below a home folder.
        match path.strip_prefix('/') {
            Some(home) if home.starts_with('~') && self.scheme != Scheme::File => home.to_owned(),
            _ => path,
        }
    }

    /// The repository's folder, if it is on this machine.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        (self.scheme == Scheme::File).then(|| self.url.as_url().to_file_path().ok()).flatten()
    }

    /// A key for this repository; spellings that certainly mean the same have the same key.
    pub(crate) fn key(&self) -> String {
        let mut url = self.url.as_url().clone();
        let path = url.path().trim_end_matches('/');
        let known = KNOWN_HOSTS.contains(&self.host());
        let path = if known { path.strip_suffix(".git").unwrap_or(path) } else { path }.to_owned();
        url.set_path(&path);
        match &self.relative {
            Some(_) => format!("{url} below home"),
            None => url.to_string(),
        }
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.relative, self.user()) {
            // As Git writes it: with a port, in brackets.
            (Some(path), user) => {
                let user = user.map(|user| format!("{user}@")).unwrap_or_default();
                match self.port() {
                    Some(port) => write!(formatter, "[{user}{}:{port}]:{path}", self.host()),
                    None => write!(formatter, "{user}{}:{path}", self.host()),
                }
            }
            (None, _) => self.url.fmt(formatter),
        }
    }
}

impl fmt::Debug for RemoteUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A URL from the user's Git settings.
#[derive(Debug, Clone)]
pub(crate) struct Substitute {
    pub(crate) remote: RemoteUrl,
    /// The user and the password that it has.
    pub(crate) password: Option<(String, Secret)>,
}

/// The URL of a remote as others use it: on the web, without the user and the password of one person.
pub(crate) fn without_login(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else { return text.to_owned() };
    let has_login = !url.username().is_empty() || url.password().is_some();
    if !has_login || !["https", "http"].contains(&url.scheme()) {
        return text.to_owned();
    }
    // This fails only for URLs that can have none.
    let _ = (url.set_username(""), url.set_password(None));
    url.into()
}

/// A web URL without its user and password, and these.
fn split_password(text: &str) -> (String, Option<(String, Secret)>) {
    let whole = || (text.to_owned(), None);
    let Ok(mut url) = Url::parse(text) else { return whole() };
    // A token with an empty password ends in a colon, which a parsed URL does not keep.
    let authority =
        text.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(rest));
    let is_empty = authority.rsplit_once('@').is_some_and(|(user, _)| user.ends_with(':'));
    let password = url.password().or(is_empty.then_some(""));
    let Some(password) = password.filter(|_| ["https", "http"].contains(&url.scheme())) else {
        return whole();
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pair = (decoded(url.username()), Secret::new(decoded(password)));
    // Both fail only for URLs that cannot have a password, and this one has.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    (url.to_string(), Some(pair))
}

/// `user@host:path`, which is not a URL: the user and host, and the path.
fn scp_form(text: &str) -> Option<(&str, &str)> {
    let (host, path) = text.split_once(':')?;
    let is_scp = !host.contains('/') && !host.is_empty() && !path.starts_with("//");
    // `ext::sh -c …` names a program to run, and other texts with two colons are no better.
    (is_scp && !path.starts_with(':') && !path.is_empty()).then_some((host, path))
}

/// A text from a repository or a configuration, safe to show.
fn shown(text: &str) -> String {
    crate::words::printable(without_secrets(text).as_bytes())
}

fn refused(url: &SafeUrl, why: &str) -> ProviderError {
    ProviderError::new(ErrorKind::Refused, format!("`{url}` is refused: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(text: &str) -> Result<RemoteUrl, ProviderError> {
        RemoteUrl::new(&SafeUrl::parse(text).expect("is a URL"), false)
    }

    #[test]
    fn a_login_on_the_web_is_one_persons() {
        for (text, expected) in [
            ("https://ada@example.com/a", "https://example.com/a"),
            ("https://ada:hunter2@example.com:8443/a", "https://example.com:8443/a"),
            ("https://example.com", "https://example.com"),
            ("ssh://git@example.com/a", "ssh://git@example.com/a"),
            ("git@example.com:a/b", "git@example.com:a/b"),
            ("../b", "../b"),
        ] {
            assert_eq!(without_login(text), expected);
        }
    }

    #[test]
    fn accepts_what_git_is_reached_by() {
        for (text, path) in [
            ("https://example.com/a/b.git", "/a/b.git"),
            ("git+https://example.com/a", "/a"),
            ("http://127.0.0.1:8080/a", "/a"),
            ("ssh://git@example.com:2222/~ada/x%20y", "~ada/x y"),
            ("git://example.com/a", "/a"),
            ("ssh://org-1.a_b+c~@my_host.example.com/a", "/a"),
            ("ssh://git@[2001:db8::1]:22/a", "/a"),
            ("git+file:///srv/ec2.git", "/srv/ec2.git"),
        ] {
            assert_eq!(remote(text).expect("is accepted").path(), path, "{text}");
        }
    }

    #[test]
    fn refuses_what_could_do_harm() {
        for (text, why) in [
            ("http://example.com/a", "plain http"),
            ("https://ada:hunter2@example.com/a", "password"),
            ("https://hunter2@example.com/a", "may be a token"),
            ("git+https://hunter2@example.com/a", "may be a token"),
            ("ssh://-oProxyCommand=x/a", "option"),
            ("ssh://-oProxyCommand=x@example.com/a", "option"),
            ("ssh://example.com/%0a", "control"),
            ("ftp://example.com/a", "not reached that way"),
            ("ssh://git@$(id).example.com/a", "its host"),
            ("ssh://git@example.com;id/a", "its host"),
            ("ssh://a`id`b/a", "its host"),
            ("ssh://a&b/a", "its host"),
            ("ssh://a'b/a", "its host"),
            ("ssh://exämple.com/a", "its host"),
            ("ssh://$(id)@example.com/a", "its user"),
            ("ssh://a;b@example.com/a", "its user"),
            ("ssh://a%20b@example.com/a", "its user"),
            ("git://a$b/a", "its host"),
            ("ext::sh -c x", "not reached that way"),
            ("file://example.com/a", "no host"),
        ] {
            let error = remote(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.to_string().contains(why), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let url = SafeUrl::parse("http://example.com/a").expect("is a URL");
        assert!(RemoteUrl::new(&url, true).is_ok());
    }

    #[test]
    fn submodules_are_seen_from_their_parent() {
        for (parent, text, expected) in [
            ("https://example.com/a/b.git", "../c.git", Some("https://example.com/a/c.git")),
            ("https://example.com/a/b.git/", "../../d", Some("https://example.com/d")),
            ("https://example.com/a/b", "./c", Some("https://example.com/a/b/c")),
            ("https://example.com/a", "./", Some("https://example.com/a")),
            ("https://example.com/a", "../", None),
            ("https://example.com/a", "../../../d", None),
            ("https://example.com/a", "../x/../../d", None),
            ("https://example.com/a", "git@example.org:x/y", Some("git@example.org:x/y")),
            ("https://example.com/a", "ssh://example.org/x", Some("ssh://example.org/x")),
            ("https://example.com/a", "http://localhost/x", None),
            ("https://example.com/a", "https://127.0.0.1/x", None),
            ("https://example.com/a", "https://10.0.0.1/x", None),
            ("https://example.com/a", "ssh://127.0.0.1/x", None),
            ("https://example.com/a", "git@127.1:x", None),
            ("https://example.com/a", "git@localhost:x", None),
            ("https://10.0.0.5/a", "git@10.0.0.6:x", Some("git@10.0.0.6:x")),
            ("https://example.com/a", "/etc", None),
            ("https://example.com/a", "file:///etc", None),
            ("https://example.com/a", "ext::sh -c x", None),
            ("https://example.com/a", "--upload-pack=x:y", None),
            ("https://example.com/a", "https://hunter2@example.com/x", None),
            ("https://example.com/a", "https://ada:hunter2@example.com/x", None),
            (
                "https://example.com/a",
                "https://git@example.com/x",
                Some("https://git@example.com/x"),
            ),
            ("https://example.com/a", "-x:y", None),
            ("https://example.com/a", "host:-x", None),
            ("https://example.com/a", "git@$(id):x", None),
            ("https://example.com/a", "$(id)@example.org:x", None),
            ("https://example.com/a", "ssh://`id`/x", None),
            ("http://localhost/a", "http://localhost:1/x", Some("http://localhost:1/x")),
            ("file:///srv/a", "../b", Some("file:///srv/b")),
            ("file:///srv/a", "/srv/c", Some("file:///srv/c")),
        ] {
            let parent = remote(parent).expect("is accepted");
            let found = RemoteUrl::submodule(&parent, text);
            assert_eq!(
                found.as_ref().ok().map(ToString::to_string).as_deref(),
                expected,
                "{text} {found:?}"
            );
            assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
        }
        let parent = remote("https://example.com/a").expect("is accepted");
        let scp = RemoteUrl::submodule(&parent, "git@example.org:x/y").expect("is accepted");
        let beside = RemoteUrl::submodule(&scp, "../z").expect("is accepted");
        assert_eq!((scp.path(), beside.path()), ("x/y".to_owned(), "x/z".to_owned()));
        let scp = RemoteUrl::submodule(&parent, "git@example.org:x.git").expect("is accepted");
        let beside = RemoteUrl::submodule(&scp, "../z.git").expect("is accepted");
        assert_eq!(beside.to_string(), "git@example.org:z.git");
        assert!(RemoteUrl::submodule(&scp, "../../z.git").is_err());
    }

    #[test]
    fn one_repository_has_one_key() {
        let key = |text| remote(text).expect("is accepted").key();
        assert_eq!(key("https://github.com/a/b.git"), key("https://github.com/a/b/"));
        assert_ne!(key("https://example.com/a/b.git"), key("https://example.com/a/b"));
    }
}
