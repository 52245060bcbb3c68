//! Tokens for registries: from `MU_TOKEN_<HOST>`, else those that `mu login` has stored, else what the user has given to Helm.
//!
//! The HTTP client decides which requests may have a token.
//!
//! The passwords of chart repositories that Helm has are only read: `helm repo add` writes them.
//!
//! They are stored in the keyring of the operating system, or else in `~/.mu/credentials.json`, a file that only its owner can read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use mu_formats::Guarded;
use mu_provider::SafeUrl;
use mu_provider::http::{
    AskedServer, Credential, Credentials, Secret, TOKEN_PREFIX, token_variable,
};
use mu_provider::threads::lock;
use serde::{Deserialize, Serialize};

use crate::env::Environment;
use crate::fs;
use crate::fs::{Lock, Sharing};
use crate::ops::{Code, CommandError, Events, Warning};

/// Where a token was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenStorage {
    /// In the keyring of the operating system.
    Keyring,
    /// In this file, which only its owner can read.
    File(PathBuf),
}

/// The tokens of this run. Stored tokens are read when a token is first needed.
pub(super) struct RunTokens {
    /// Tokens by the names of their variables.
    variables: BTreeMap<String, Secret>,
    home: PathBuf,
    stored: OnceLock<BTreeMap<String, Secret>>,
    /// Helm's file of repositories, and what it says.
    helms_file: PathBuf,
    helms: OnceLock<Repositories>,
    /// Variables that a warning was already shown for.
    warned_of: Mutex<BTreeSet<String>>,
    events: Arc<dyn Events>,
}

mu_provider::debug_fields!(RunTokens { variables });

impl RunTokens {
    /// The tokens in the environment and in `~/.mu`.
    pub(super) fn new(environment: &Environment, events: Arc<dyn Events>) -> Self {
        let tokens = environment.variables.iter().filter_map(|(name, value)| {
            let host = name.strip_prefix(TOKEN_PREFIX)?;
            // CI systems set a variable whose secret is missing to an empty text.
            let is_usable = !host.is_empty() && !value.trim().is_empty();
            is_usable.then(|| (name.clone(), Secret::new(value.trim())))
        });
        Self {
            variables: tokens.collect(),
            home: environment.mu_home.clone(),
            stored: OnceLock::new(),
            helms_file: crate::formats::helms_repositories(environment),
            helms: OnceLock::new(),
            warned_of: Mutex::default(),
            events,
        }
    }

    /// Warns once a run that a variable is not sent to the host of `url`, although an earlier mu would have
    /// sent it.
    ///
    /// Earlier names replaced everything but letters and digits with `_`, so different hosts could share a
    /// variable, and a variable for a host applied to all its ports.
    fn warn_of_former(&self, url: &SafeUrl, host_and_port: &str) {
        let former = |host: &str| {
            let letters = host.chars().map(|character| match character {
                'a'..='z' | 'A'..='Z' | '0'..='9' => character.to_ascii_uppercase(),
                _ => '_',
            });
            TOKEN_PREFIX.chars().chain(letters).collect::<String>()
        };
        let host = url.as_url().host_str().unwrap_or_default();
        let mut names = [former(host_and_port), former(host)].into_iter();
        let Some(former) = names.find(|name| self.variables.contains_key(name)) else { return };
        if !lock(&self.warned_of).insert(former.clone()) {
            return;
        }
        let (host, variable) = (host_and_port.to_owned(), token_variable(host_and_port));
        self.events.warning(&Warning::FormerVariable { former, host, variable });
    }

    /// A stored token: only for exactly the host and port that it was stored for.
    fn stored(&self, asked: &AskedServer) -> Option<Credential> {
        let host_and_port = asked.host_and_unusual_port();
        let stored = self.stored.get_or_init(|| {
            if is_readable_by_others(&self.home) {
                self.events.warning(&Warning::TokensReadable { file: path(&self.home) });
            }
            read(&self.home).unwrap_or_else(|error| {
                self.events.warning(&Warning::TokensUnread { why: error.to_string() });
                BTreeMap::new()
            })
        });
        let of = |token: &Secret| Credential::token(asked, token.clone());
        let in_file = || format!("`{}`", path(&self.home).display());
        // The file comes first: `store` takes a token out of it as soon as the keyring has that, so one in the file is
        // newer.
        let found = stored.get(&host_and_port).map(|token| of(token).known_from(in_file()));
        #[cfg(feature = "keyring")]
        let found = found.or_else(|| {
            keyring::find(&host_and_port).map(|token| of(&token).known_from("the keyring"))
        });
        found
    }
}

impl RunTokens {
    /// The password that the user has given to Helm.
    fn helms(&self, asked: &AskedServer) -> Option<Credential> {
        self.helms.get_or_init(|| Repositories::read(&self.helms_file)).find(asked)
    }
}

impl Credentials for RunTokens {
    fn find(&self, asked: &AskedServer) -> Option<Credential> {
        // Most people have no such variable.
        if self.variables.is_empty() {
            return self.stored(asked).or_else(|| self.helms(asked));
        }
        let host = asked.host_and_unusual_port();
        let variable = token_variable(&host).and_then(|name| {
            let token = self.variables.get(&name)?.clone();
            Some(Credential::token(asked, token).in_variable(name))
        });
        let found = variable.or_else(|| self.stored(asked)).or_else(|| self.helms(asked));
        if found.is_none() {
            self.warn_of_former(asked.url(), &host);
        }
        found
    }
}

/// Stores a token for a host, in place of the one that was stored before.
pub(crate) fn store(home: &Path, host: &str, token: &Secret) -> Result<TokenStorage, CommandError> {
    // A token is in one of both, so that none that was replaced can come back.
    #[cfg(feature = "keyring")]
    if keyring::store(host, token).is_ok() {
        change(home, |tokens| tokens.remove(host).is_some())?;
        return Ok(TokenStorage::Keyring);
    }
    change(home, |tokens| {
        tokens.insert(host.to_owned(), token.clone());
        true
    })?;
    Ok(TokenStorage::File(path(home)))
}

/// Removes the stored token of a host; returns whether there was one.
pub(crate) fn remove(home: &Path, host: &str) -> Result<bool, CommandError> {
    let mut was_there = false;
    change(home, |tokens| {
        was_there = tokens.remove(host).is_some();
        was_there
    })?;
    #[cfg(feature = "keyring")]
    if keyring::remove(host) {
        was_there = true;
    }
    Ok(was_there)
}

/// Repositories with passwords.
struct Repositories(Vec<(SafeUrl, String, Secret)>);

impl Repositories {
    /// Those in Helm's `repositories.yaml`; none if it cannot be read.
    fn read(file: &Path) -> Self {
        let text = fs::read_text_if_there(file).ok().flatten().unwrap_or_default();
        let all = Guarded::read(&text).into_iter().filter_map(|repository| {
            let url = SafeUrl::parse(&repository.url).ok()?.as_folder();
            Some((url, repository.user, Secret::new(repository.password)))
        });
        Self(all.collect())
    }

    /// The password for a server: that of the repository which what is asked for is in, or else of another one there, because archives
    /// may be beside it.
    fn find(&self, asked: &AskedServer) -> Option<Credential> {
        let path = asked.url().as_url().path();
        let there = self.0.iter().filter(|(url, ..)| url.is_same_server(asked.url()));
        // The repository whose folder is nearest around the URL. One that is only on the same server comes last.
        let rank = |url: &SafeUrl| {
            let folder = url.as_url().path();
            if path.starts_with(folder) { folder.len() } else { 0 }
        };
        let (_, user, password) = there.max_by_key(|(url, ..)| rank(url))?;
        let own = Credential::password(asked, user, password.clone());
        Some(own.known_from("Helm's repositories.yaml"))
    }
}

/// The newest format this program writes and reads.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct CredentialsFile {
    version: u32,
    /// Tokens by host, with the port if it is not the default one.
    tokens: BTreeMap<String, String>,
}

/// Where the file is.
fn path(home: &Path) -> PathBuf {
    home.join("credentials.json")
}

/// The stored tokens by host.
fn read(home: &Path) -> Result<BTreeMap<String, Secret>, CommandError> {
    let path = path(home);
    let Some(text) = fs::read_text_if_there(&path)? else { return Ok(BTreeMap::new()) };
    // The parser's own message could quote a token.
    let file = serde_json::from_str::<CredentialsFile>(&text).ok();
    let Some(file) = file.filter(|file| file.version <= FORMAT) else {
        let message = format!("`{}` is damaged, or was written by a newer mu", path.display());
        return Err(
            CommandError::new(Code::Workspace, message).hint("remove it, and run `mu login` again")
        );
    };
    Ok(file.tokens.into_iter().map(|(host, token)| (host, Secret::new(token))).collect())
}

/// Changes the stored tokens with `change`, which returns whether it changed anything.
fn change(
    home: &Path,
    change: impl FnOnce(&mut BTreeMap<String, Secret>) -> bool,
) -> Result<(), CommandError> {
    fs::create_private_folder(home, crate::env::IN_HOME)?;
    // Without it, of two `mu login` at once, the later one would write back the tokens that it has read before.
    let _lock = Lock::acquire(&home.join("credentials.lock"), Sharing::Exclusive, &mut || {})?;
    let mut tokens = read(home)?;
    if !change(&mut tokens) {
        return Ok(());
    }
    let path = path(home);
    if tokens.is_empty() {
        return Ok(fs::remove_file(&path)?);
    }
    let tokens =
        tokens.into_iter().map(|(host, token)| (host, token.expose().to_owned())).collect();
    let file = CredentialsFile { version: FORMAT, tokens };
    let mut text =
        serde_json::to_string_pretty(&file).expect("strings and numbers always serialise");
    text.push('\n');
    Ok(fs::write_private(&path, text.as_bytes())?)
}

/// Whether other users of this machine can read the file.
#[cfg(unix)]
fn is_readable_by_others(home: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(&path(home)).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

/// Whether other users of this machine can read the file.
#[cfg(not(unix))]
fn is_readable_by_others(_home: &Path) -> bool {
    false
}

/// Tokens in the keyring of the operating system: Keychain, Credential Manager, Secret Service.
///
/// A missing or locked keyring is not an error here: then the file is used. So it is where the system starts no more threads, for
/// which the client of the Secret Service would wait for ever.
#[cfg(feature = "keyring")]
mod keyring {
    use std::sync::{Arc, Mutex};

    use keyring::{Entry, Error, Result};
    use mu_provider::http::Secret;
    use mu_provider::threads::{lock, start};

    /// The purpose of the entries, as the keyring shows it.
    const SERVICE: &str = "mu";

    /// So many threads the client of the Secret Service may start; it waits or panics without them.
    const THREADS: usize = 4;

    /// The entry for a host.
    fn entry(host: &str) -> Result<Entry> {
        let gate = Arc::new(Mutex::new(()));
        let closed = lock(&gate);
        let threads = (0..THREADS).map(|_| {
            let gate = Arc::clone(&gate);
            start(move || drop(lock(&gate)))
        });
        let started: Vec<_> = threads.collect();
        drop(closed);
        for thread in started {
            let thread = thread.map_err(|error| Error::PlatformFailure(error.into()))?;
            // It has only waited.
            let _ = thread.join();
        }
        Entry::new(SERVICE, host)
    }

    /// The token for a host.
    pub(super) fn find(host: &str) -> Option<Secret> {
        entry(host).ok()?.get_password().ok().map(Secret::new)
    }

    /// Stores the token for a host.
    pub(super) fn store(host: &str, token: &Secret) -> Result<()> {
        entry(host)?.set_password(token.expose())
    }

    /// Removes the token for a host; returns whether there was one.
    pub(super) fn remove(host: &str) -> bool {
        entry(host).is_ok_and(|entry| entry.delete_credential().is_ok())
    }
}

#[cfg(test)]
mod tests {
    use mu_provider::http::{Recipient, TokenHosts};

    use super::*;
    use crate::ops::Stage;

    /// Notes warnings.
    #[derive(Default)]
    struct Notes(Mutex<Vec<Warning>>);

    impl Events for Notes {
        fn warning(&self, warning: &Warning) {
            lock(&self.0).push(warning.clone());
        }
        fn waiting(&self, _text: &str) {}
        fn progress(&self, _stage: Stage, _done: usize, _total: usize) {}
        fn bytes(&self, _what: &str, _done: u64, _total: Option<u64>) {}
        fn detail(&self, _text: &dyn Fn() -> String) {}
    }

    fn tokens(home: &Path, variables: &[&str]) -> (RunTokens, Arc<Notes>) {
        let notes = Arc::new(Notes::default());
        let variables = variables.iter().map(|name| ((*name).to_owned(), Secret::new(*name)));
        let tokens = RunTokens {
            variables: variables.collect(),
            home: home.to_owned(),
            stored: OnceLock::new(),
            helms_file: home.join("repositories.yaml"),
            helms: OnceLock::new(),
            warned_of: Mutex::default(),
            events: Arc::clone(&notes) as Arc<dyn Events>,
        };
        (tokens, notes)
    }

    fn find(tokens: &RunTokens, url: &str) -> Option<String> {
        let url = SafeUrl::parse(url).expect("is a URL");
        let released = tokens.find(&AskedServer::new(&url))?;
        let released = released.release(Recipient::Server(&url), &TokenHosts::default());
        let (_, token) = released.expect("it is its own").user_and_password("")?;
        Some(token.expose().to_owned())
    }

    #[test]
    fn a_variable_is_for_one_host_and_one_port() {
        let home = tempfile::tempdir().expect("a temporary folder");
        store(home.path(), "mu.com", &Secret::new("stored")).expect("can be written");
        store(home.path(), "hub.mu.com", &Secret::new("hidden")).expect("can be written");
        let (tokens, notes) =
            tokens(home.path(), &["MU_TOKEN_HUB_MU_COM", "MU_TOKEN_HUB_MU_COM___81"]);
        for (url, expected) in [
            ("https://hub.mu.com/", Some("MU_TOKEN_HUB_MU_COM")),
            ("https://hub.mu.com:443/", Some("MU_TOKEN_HUB_MU_COM")),
            ("https://hub.mu.com:81/", Some("MU_TOKEN_HUB_MU_COM___81")),
            ("https://mu.com/", Some("stored")),
            ("https://mu.com:81/", None),
            ("https://www.mu.com/", None),
        ] {
            assert_eq!(find(&tokens, url).as_deref(), expected, "{url}");
        }
        assert_eq!(*lock(&notes.0), []);
    }

    #[test]
    fn a_look_alike_does_not_get_the_token_of_another_host() {
        let home = tempfile::tempdir().expect("a temporary folder");
        for (url, former, told) in [
            (
                "https://hub-mu.com/",
                "MU_TOKEN_HUB_MU_COM",
                Some(("hub-mu.com", Some("MU_TOKEN_HUB__MU_COM"))),
            ),
            (
                "https://hub.mu-com/",
                "MU_TOKEN_HUB_MU_COM",
                Some(("hub.mu-com", Some("MU_TOKEN_HUB_MU__COM"))),
            ),
            ("https://hub_mu.com/", "MU_TOKEN_HUB_MU_COM", Some(("hub_mu.com", None))),
            (
                "https://hub.mu.com:8443/",
                "MU_TOKEN_HUB_MU_COM",
                Some(("hub.mu.com:8443", Some("MU_TOKEN_HUB_MU_COM___8443"))),
            ),
            (
                "https://a.b:8443/",
                "MU_TOKEN_A_B_8443",
                Some(("a.b:8443", Some("MU_TOKEN_A_B___8443"))),
            ),
            ("http://[::1]:80/", "MU_TOKEN____1_", Some(("[::1]", None))),
            ("https://mu.com/", "MU_TOKEN_HUB_MU_COM", None),
        ] {
            let (tokens, notes) = tokens(home.path(), &[former]);
            assert_eq!(find(&tokens, url), None, "{url}");
            assert_eq!(find(&tokens, url), None, "{url}");
            let expected = told.map(|(host, variable)| Warning::FormerVariable {
                former: former.to_owned(),
                host: host.to_owned(),
                variable: variable.map(str::to_owned),
            });
            assert_eq!(*lock(&notes.0), Vec::from_iter(expected), "once a run: {url}");
        }
    }

    #[test]
    fn a_repositorys_password_is_for_its_own_server_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("repositories.yaml");
        let entry = |url: &str, user: &str| {
            format!("- {{name: {user}, url: '{url}', username: {user}, password: x}}\n")
        };
        let text = [
            "repositories:\n".to_owned(),
            entry("https://h.example/charts", "one"),
            entry("https://h.example/charts/inner/", "two"),
            entry("https://h.example:8443/", "three"),
            "- {name: open, url: 'https://open.example/', username: '', password: ''}\n".to_owned(),
        ];
        std::fs::write(&file, text.concat()).expect("can be written");
        let repositories = Repositories::read(&file);
        for (text, user) in [
            ("https://h.example/charts/index.yaml", Some("one")),
            ("https://h.example/charts/inner/index.yaml", Some("two")),
            ("https://h.example:8443/x.tgz", Some("three")),
            ("http://h.example/charts/index.yaml", None),
            ("https://i.example/charts/index.yaml", None),
            ("https://open.example/index.yaml", None),
        ] {
            let url = SafeUrl::parse(text).expect("is a URL");
            let found = repositories.find(&AskedServer::new(&url));
            let released = found.map(|own| {
                own.release(Recipient::Server(&url), &TokenHosts::default()).expect("is its own")
            });
            let found = released.and_then(|released| released.user_and_password(""));
            assert_eq!(found.map(|(user, _)| user).as_deref(), user, "{text}");
        }
        let other = SafeUrl::parse("https://h.example/other.tgz").expect("is a URL");
        assert!(repositories.find(&AskedServer::new(&other)).is_some(), "it is the same server");
    }
}
