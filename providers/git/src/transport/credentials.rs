//! Credentials for repositories on web servers: stored tokens, and those that Git itself would use, from the user's settings, `.netrc`, and
//! helpers.
//!
//! They are looked up only after a server has asked for them, and belong to one scheme, host and port.
//!
//! `.netrc` has users and passwords by host, as `ftp` began it and curl, Git, pip and others read it. The entry `default` is not used: it would give a password to every host that somebody else names.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mu_provider::http::{
    AskedServer, Authorization, Credential, Http, Recipient, Released, Secret, ways_in,
};
use mu_provider::{ErrorKind, ProviderError, SafeUrl, fs};

use crate::programs::GitPrograms;
use crate::remote_url::{RemoteUrl, Scheme};
use crate::settings::Stated;
use mu_provider::threads::{lock, start};

/// The variable that names the program which asks the user.
const ASK_PASS: &str = "GIT_ASKPASS";
/// The variable that names the one of ssh, which Git takes if it has no own.
const ASK_PASS_OF_SSH: &str = "SSH_ASKPASS";

/// Finds credentials, and remembers which ones were accepted.
#[derive(Debug)]
pub(crate) struct GitCredentials {
    http: Arc<Http>,
    programs: GitPrograms,
    accepted: Mutex<HashMap<String, Authorization>>,
}

/// A user and a password that may be the right ones.
#[derive(Debug, Clone)]
pub(super) struct Offer {
    released: Released,
    /// The user for a token without one.
    user: String,
    from: Found,
    /// All that a helper has said, which it is told again when the server has judged: helpers keep when a token ends, and what renews it.
    said: Option<Secret>,
}

/// Where an offer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Stored,
    /// A header that the user's Git settings state, which has a token as it is.
    Header,
    Helper,
    /// A helper that has a token as it is (`authtype`).
    HelperToken,
}

impl Found {
    /// Whether it is what a header has, and no password.
    fn is_as_it_is(self) -> bool {
        matches!(self, Self::Header | Self::HelperToken)
    }

    /// Whether a helper has it, and is told how it was judged.
    fn is_of_helper(self) -> bool {
        matches!(self, Self::Helper | Self::HelperToken)
    }
}

/// What may be shown to the server of one remote.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// What the user's Git settings state for it.
    pub(super) stated: Vec<Stated>,
    /// Whether a program may ask the user (`core.askPass`).
    pub(super) asks: bool,
    /// What the server has asked for (`WWW-Authenticate`).
    pub(super) challenges: Vec<String>,
    pub(super) credentials: Arc<GitCredentials>,
}

/// A stored token, for a program that asks for a user and a password.
#[derive(Debug)]
pub(crate) struct StoredToken {
    /// The scheme, host and port that it is for.
    pub(crate) place: String,
    pub(crate) user: String,
    pub(crate) password: Secret,
}

impl Offer {
    pub(super) fn to_authorization(&self) -> Authorization {
        match self.from.is_as_it_is() {
            true => self.released.bearer(),
            false => self.released.basic(&self.user),
        }
    }
}

/// Looks up what one place has for a remote.
type Find = fn(&Access, &RemoteUrl) -> Offers;

/// What a place has: several of one, at most, if the user's Git settings state several.
type Offers = Vec<Result<Offer, ProviderError>>;

/// Where credentials may be, in the order in which they are tried: mu's own first, then Git's. Hints name the others by these words.
const PLACES: [(&str, Find); 4] = [
    ("", |access, remote| access.credentials.stored(remote).map(Ok).into_iter().collect()),
    ("Git's settings", |access, remote| {
        let stated = access.stated.iter();
        stated.filter_map(|stated| access.credentials.stated(remote, stated).map(Ok)).collect()
    }),
    ("`~/.netrc`", |access, remote| {
        access.credentials.listed(remote).transpose().into_iter().collect()
    }),
    ("a Git credential helper", |access, remote| {
        access.credentials.ask_helpers(remote, access).transpose().into_iter().collect()
    }),
];

/// What helps if a repository requires credentials: all the places where they are looked for.
pub(super) fn ways_to_log_in(remote: &RemoteUrl) -> String {
    let host = remote.url.host_and_port();
    if !remote.url.is_confidential() {
        return format!("passwords are not sent over plain http: reach `{host}` by https");
    }
    let others: Vec<&str> = PLACES.iter().map(|(words, _)| *words).skip(1).collect();
    ways_in(&host, &others)
}

impl Access {
    /// The credentials to try. Each place is looked into when it is needed.
    pub(super) fn offers<'call>(
        &'call self,
        remote: &'call RemoteUrl,
    ) -> impl Iterator<Item = Result<Offer, ProviderError>> + 'call {
        // Nothing is sent over a connection that others can read, so nothing is looked up.
        let places = PLACES.iter().filter(|_| remote.url.is_confidential());
        let offers = places.flat_map(|(_, find)| find(self, remote));
        // A password is not sent as it is to whom has asked for something safer.
        offers.filter(|offer| {
            offer.as_ref().map_or(true, |offer| offer.from.is_as_it_is() || self.takes_basic())
        })
    }

    /// Whether the server takes a password as it is.
    pub(super) fn takes_basic(&self) -> bool {
        let is_basic = |challenge: &String| {
            let mut schemes = challenge.split(',').map(str::trim_start);
            schemes.any(|one| one.get(..5).is_some_and(|one| one.eq_ignore_ascii_case("basic")))
        };
        self.challenges.is_empty() || self.challenges.iter().any(is_basic)
    }

    /// What the user's Git settings have in a header for a remote for which mu has nothing: Git sends it unasked.
    pub(super) fn unasked(&self, remote: &RemoteUrl) -> Option<Offer> {
        if !remote.url.is_confidential() || self.credentials.stored(remote).is_some() {
            return None;
        }
        let headers = self.stated.iter().filter(|stated| matches!(stated, Stated::Header(_)));
        let mut offers = headers.filter_map(|stated| self.credentials.stated(remote, stated));
        offers.next_back()
    }
}

impl GitCredentials {
    pub(crate) fn new(http: &Arc<Http>, programs: &GitPrograms) -> Self {
        Self { http: Arc::clone(http), programs: programs.clone(), accepted: Mutex::default() }
    }

    /// The credentials that the server of `url` accepted earlier in this process.
    pub(super) fn known(&self, url: &SafeUrl) -> Authorization {
        let accepted = lock(&self.accepted);
        accepted.get(&origin(url)).cloned().unwrap_or(Authorization::Nothing)
    }

    fn stored(&self, remote: &RemoteUrl) -> Option<Offer> {
        let credentials = self.http.options().credentials.as_ref();
        let own = Credential::stored(credentials, &AskedServer::new(&remote.url))?;
        self.offer(remote, own, Found::Stored)
    }

    /// What the user's Git settings state for a remote.
    fn stated(&self, remote: &RemoteUrl, stated: &Stated) -> Option<Offer> {
        let asked = AskedServer::new(&remote.url);
        let (own, from) = match stated {
            Stated::Password(user, password) => {
                (Credential::password(&asked, user, password.clone()), Found::Stored)
            }
            Stated::Header(value) => (Credential::in_header(&asked, value)?, Found::Header),
        };
        self.offer(remote, own.known_from("Git's configuration"), from)
    }

    /// What `.netrc` in the user's home folder has for the host of a remote, as Git's own client reads it.
    fn listed(&self, remote: &RemoteUrl) -> Result<Option<Offer>, ProviderError> {
        let Some(home) = self.programs.variable("HOME") else { return Ok(None) };
        let name = if cfg!(windows) { "_netrc" } else { ".netrc" };
        let file = std::path::Path::new(home).join(name);
        let is_file = fs::metadata_if_there(&file)?.is_some_and(|found| found.is_file());
        let Some(bytes) = fs::read_if_there(&file)?.filter(|_| is_file) else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        let Some(entry) = find(&text, remote.host(), remote.user()) else { return Ok(None) };
        let asked = AskedServer::new(&remote.url);
        let own = Credential::password(&asked, entry.login, Secret::new(entry.password));
        Ok(self.offer(remote, own.known_from(format!("`~/{name}`")), Found::Stored))
    }

    /// What is stored for a remote, as the remote's server may see it.
    fn offer(&self, remote: &RemoteUrl, own: Credential, from: Found) -> Option<Offer> {
        let token_hosts = &self.http.options().token_hosts;
        let released = own.release(Recipient::Server(&remote.url), token_hosts).ok()?;
        Some(Offer { released, user: usual_user(remote), from, said: None })
    }

    /// The stored token for a remote, if that is on a web server and nobody else can read what is sent there.
    pub(super) fn token(&self, remote: &RemoteUrl) -> Option<StoredToken> {
        let is_web = matches!(remote.scheme, Scheme::Https | Scheme::Http);
        if !is_web || !remote.url.is_confidential() {
            return None;
        }
        let Offer { released, user, .. } = self.stored(remote)?;
        let (user, password) = released.user_and_password(&user)?;
        Some(StoredToken { place: origin(&remote.url), user, password })
    }

    /// Remembers whether an offer was accepted, and tells the helper that it came from.
    pub(super) fn judge(&self, remote: &RemoteUrl, offer: &Offer, accepted: bool) {
        if accepted {
            let mut known = lock(&self.accepted);
            known.insert(origin(&remote.url), offer.to_authorization());
        }
        let known = offer.released.user_and_password(&offer.user);
        if let Some((user, password)) = known.filter(|_| offer.from.is_of_helper()) {
            let verb = if accepted { "approve" } else { "reject" };
            let question = match &offer.said {
                Some(said) => format!("{}\n\n", said.expose().trim_end()),
                None => {
                    let question = question(remote, Some(&user));
                    format!("{question}password={}\n\n", password.expose())
                }
            };
            // If a helper cannot store or forget, this answer stays the same.
            let _ = self.run(verb, &question, false);
        }
    }

    /// Asks Git's helpers, and then the user, if a program for that is set up (`asks`, or the variable).
    fn ask_helpers(
        &self,
        remote: &RemoteUrl,
        access: &Access,
    ) -> Result<Option<Offer>, ProviderError> {
        let mut question = question(remote, remote.user());
        question.push_str("capability[]=authtype\n");
        for challenge in &access.challenges {
            question.push_str(&format!("wwwauth[]={challenge}\n"));
        }
        question.push('\n');
        let is_set = |name: &&str| self.programs.variable(name).is_some();
        let asks = access.asks || [ASK_PASS, ASK_PASS_OF_SSH].iter().any(is_set);
        let answer = self.run("fill", &question, asks).map_err(|reason| {
            let text = format!("Git's credential helper for `{remote}` failed");
            ProviderError::new(ErrorKind::Auth, text).because(reason)
        })?;
        let value = |key: &str| {
            let mut lines = answer.lines();
            lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned)
        };
        let asked = AskedServer::new(&remote.url);
        // Some helpers return the token as the user, and those that know of schemes say one.
        let own = match (value("authtype"), value("credential")) {
            (Some(scheme), Some(credential)) => {
                let header = Secret::new(format!("{scheme} {credential}"));
                Credential::in_header(&asked, &header).map(|own| (own, Found::HelperToken))
            }
            _ => value("username").zip(value("password")).map(|(user, password)| {
                let own = Credential::password(&asked, user, Secret::new(password));
                (own, Found::Helper)
            }),
        };
        let offer = own.and_then(|(own, from)| {
            self.offer(remote, own.known_from("Git's credential helper"), from)
        });
        Ok(offer.map(|offer| Offer { said: Some(Secret::new(answer)), ..offer }))
    }

    /// Runs `git credential VERB`; without Git, there are no helpers either.
    fn run(&self, verb: &str, question: &str, asks: bool) -> Result<String, String> {
        // Helpers that would open a window for the user are not waited for. A person needs longer.
        let patience = Duration::from_secs(if asks { 120 } else { 30 });
        let Ok(mut command) = self.programs.git() else { return Ok(String::new()) };
        if asks {
            // What the variable names, or else `core.askPass`, or else the program of ssh.
            match self.programs.variable(ASK_PASS) {
                Some(program) => command.env(ASK_PASS, program),
                None => command.env_remove(ASK_PASS),
            };
        } else {
            command.args(["-c", "credential.interactive=false"]);
            command.env_remove(ASK_PASS_OF_SSH);
        }
        command.args(["credential", verb]);
        command.env("GCM_INTERACTIVE", "never").stderr(std::process::Stdio::null());
        let Ok(mut child) = command.spawn() else { return Ok(String::new()) };
        let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Ok(String::new());
        };
        // A helper that reads nothing may still answer.
        let _ = input.write_all(question.as_bytes());
        drop(input);
        let (sender, receiver) = channel();
        let reading = start(move || {
            let mut answer = String::new();
            let read = output.read_to_string(&mut answer);
            // When the time is over, nobody listens.
            let _ = sender.send(read.map(|_| answer).unwrap_or_default());
        });
        let answer = receiver.recv_timeout(patience);
        let _ = child.kill();
        let _ = child.wait();
        reading.map_err(|error| error.to_string())?;
        answer.map_err(|_| format!("it did not answer for {} s", patience.as_secs()))
    }
}

/// The user for a token without one. Hosts check only the password, but some require a certain user.
fn usual_user(remote: &RemoteUrl) -> String {
    let user = match remote.host() {
        "bitbucket.org" => "x-token-auth",
        "gitlab.com" => "oauth2",
        _ => remote.user().unwrap_or("x-access-token"),
    };
    user.to_owned()
}

/// The question for Git's helpers, without the empty line at the end.
fn question(remote: &RemoteUrl, user: Option<&str>) -> String {
    let url = &remote.url;
    let path = remote.path();
    let mut text = format!(
        "protocol={}\nhost={}\npath={}\n",
        url.scheme(),
        url.host_and_port(),
        path.trim_start_matches('/')
    );
    if let Some(user) = user {
        text.push_str(&format!("username={user}\n"));
    }
    text
}

fn origin(url: &SafeUrl) -> String {
    url.as_url().origin().ascii_serialization()
}

/// A user and a password.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    pub(super) login: String,
    pub(super) password: String,
}

/// The first entry for a host, and for `user` if there is one.
fn find(text: &str, host: &str, user: Option<&str>) -> Option<Entry> {
    let words = words(text);
    let mut words = words.iter().map(String::as_str).peekable();
    let mut is_host = false;
    let (mut login, mut password) = (None, None);
    let done = |is_host: bool, login: &mut Option<String>, password: &mut Option<String>| {
        let entry = Entry {
            login: login.take().unwrap_or_default(),
            password: password.take().unwrap_or_default(),
        };
        let fits = user.is_none_or(|user| user == entry.login);
        (is_host && fits && !entry.password.is_empty()).then_some(entry)
    };
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" => {
                if let Some(entry) = done(is_host, &mut login, &mut password) {
                    return Some(entry);
                }
                is_host = word == "machine"
                    && words.next().is_some_and(|name| name.eq_ignore_ascii_case(host));
            }
            "login" => login = words.next().map(str::to_owned),
            "password" => password = words.next().map(str::to_owned),
            "account" => drop(words.next()),
            _ => {}
        }
    }
    done(is_host, &mut login, &mut password)
}

/// The words of the file, without comments and macros. A word in quotes may have spaces.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_macro = false;
    for line in text.lines() {
        if is_macro && !line.trim().is_empty() {
            continue;
        }
        is_macro = false;
        let mut characters = line.chars().peekable();
        while let Some(first) = characters.next() {
            let mut word = String::new();
            match first {
                '#' => break,
                '"' => {
                    while let Some(character) = characters.next() {
                        match character {
                            '"' => break,
                            '\\' => word.extend(characters.next()),
                            other => word.push(other),
                        }
                    }
                }
                space if space.is_whitespace() => continue,
                other => {
                    word.push(other);
                    while let Some(next) = characters.next_if(|next| !next.is_whitespace()) {
                        word.push(next);
                    }
                }
            }
            if word == "macdef" {
                is_macro = true;
                break;
            }
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_and_programs_write() {
        let text = "# machines\nmachine a.example login ada password one\n\
            machine b.example\n  password \"two words\\\"\"\n  login bob\n\
            macdef init\nmachine c.example login x password y\n\n\
            machine a.example login eve password three\n\
            machine d.example login dan account x\n\
            default login anonymous password mail\n";
        let found = |host: &str, user: Option<&str>| {
            find(text, host, user).map(|entry| format!("{}:{}", entry.login, entry.password))
        };
        for (host, user, expected) in [
            ("a.example", None, Some("ada:one")),
            ("A.example", Some("eve"), Some("eve:three")),
            ("a.example", Some("bob"), None),
            ("b.example", None, Some("bob:two words\"")),
            ("c.example", None, None),
            ("d.example", None, None),
            ("other.example", None, None),
        ] {
            assert_eq!(found(host, user).as_deref(), expected, "{host} {user:?}");
        }
    }
}
