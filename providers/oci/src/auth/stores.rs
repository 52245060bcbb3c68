//! Where container tools store the passwords of registries: Docker's `config.json`, and similar files of
//! others.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_provider::http::Secret;
use mu_provider::{ProviderError, fs};
use serde::Deserialize;

use super::helper;

/// The user for a token without a user.
const TOKEN_USER: &str = "token";

/// Credentials for a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// A user and a password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token that others are handed out for.
    Identity(Secret),
}

impl Credential {
    /// Reads what `mu login` stores, or a variable holds: `USER:PASSWORD`, or only a token.
    pub(crate) fn written(text: &Secret) -> Self {
        match text.expose().split_once(':') {
            Some((user, password)) if !user.is_empty() => {
                Self::Password { user: user.to_owned(), password: Secret::new(password) }
            }
            _ => Self::Password { user: TOKEN_USER.to_owned(), password: text.clone() },
        }
    }
}

/// Where to look for passwords of registries, besides mu's own.
#[derive(Clone)]
pub struct Stores {
    /// Files as Docker's `config.json`, the most important first.
    pub files: Vec<PathBuf>,
    /// The environment of the programs that these files name; it also says where they are.
    pub variables: Arc<BTreeMap<String, String>>,
    /// How long such a program may take.
    pub patience: Duration,
}

impl Default for Stores {
    fn default() -> Self {
        Self { files: Vec::new(), variables: Arc::default(), patience: helper::PATIENCE }
    }
}

impl std::fmt::Debug for Stores {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The variables may contain tokens.
        formatter.debug_struct("Stores").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Stores {
    /// The usual files for this home folder and these variables: Docker's, those of Podman and similar tools,
    /// and Helm's.
    pub fn of(home: &Path, variables: &Arc<BTreeMap<String, String>>) -> Self {
        let set = |name: &str| {
            let value = variables.get(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let docker = set("DOCKER_CONFIG").unwrap_or_else(|| home.join(".docker"));
        let configuration = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let helm = set("HELM_REGISTRY_CONFIG").unwrap_or_else(|| {
            let folder = set("HELM_CONFIG_HOME").unwrap_or_else(|| configuration.join("helm"));
            folder.join("registry/config.json")
        });
        let podman = set("REGISTRY_AUTH_FILE")
            .or_else(|| Some(set("XDG_RUNTIME_DIR")?.join("containers/auth.json")));
        let files = [Some(docker.join("config.json")), podman, Some(helm)];
        let files = files.into_iter().flatten().collect();
        Self { files, variables: Arc::clone(variables), ..Self::default() }
    }

    /// The credentials for a registry in these files.
    ///
    /// # Errors
    ///
    /// When a program that one of them names takes too long, or answers nonsense.
    pub(crate) fn find(&self, host: &str) -> Result<Option<Credential>, ProviderError> {
        for path in &self.files {
            let Ok(Some(text)) = fs::read_text_if_there(path) else { continue };
            let Ok(file) = serde_json::from_str::<File>(&text) else { continue };
            if let Some(found) = self.find_in(&file, host)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn find_in(&self, file: &File, host: &str) -> Result<Option<Credential>, ProviderError> {
        let names = names(host);
        let helper = names.iter().find_map(|name| {
            file.cred_helpers.get(name).map(|helper| (helper.as_str(), name.as_str()))
        });
        let store = file.creds_store.as_deref().filter(|store| !store.is_empty());
        let server = names.first().map_or(host, String::as_str);
        for (helper, server) in helper.into_iter().chain(store.map(|store| (store, server))) {
            let found = helper::ask(helper, server, &self.variables, self.patience)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(names.iter().find_map(|name| file.auths.get(name)?.credential()))
    }
}

/// Docker's `config.json`, as far as it is about passwords.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct File {
    auths: HashMap<String, Entry>,
    cred_helpers: HashMap<String, String>,
    creds_store: Option<String>,
}

/// The entry for one registry; empty if a program has the password.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

impl Entry {
    fn credential(&self) -> Option<Credential> {
        if let Some(token) = self.identitytoken.as_deref().filter(|token| !token.is_empty()) {
            return Some(Credential::Identity(Secret::new(token)));
        }
        if let (Some(user), Some(password)) = (&self.username, &self.password) {
            return Some(Credential::Password {
                user: user.clone(),
                password: Secret::new(password),
            });
        }
        let auth = self.auth.as_deref().filter(|auth| !auth.is_empty())?;
        let pair = String::from_utf8(STANDARD.decode(auth.trim()).ok()?).ok()?;
        let (user, password) = pair.split_once(':')?;
        let password = Secret::new(password.trim_end_matches('\0'));
        Some(Credential::Password { user: user.to_owned(), password })
    }
}

/// The names that files of credentials have for a registry.
fn names(host: &str) -> Vec<String> {
    if host == "registry-1.docker.io" {
        let names = ["https://index.docker.io/v1/", "index.docker.io", "docker.io", host];
        return names.map(str::to_owned).to_vec();
    }
    let forms = [
        "HOST",
        "https://HOST",
        "https://HOST/",
        "https://HOST/v2/",
        "https://HOST/v1/",
        "http://HOST",
    ];
    forms.map(|form| form.replace("HOST", host)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, host: &str) -> Option<(String, String)> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("config.json");
        std::fs::write(&file, text).expect("can be written");
        let stores = Stores { files: vec![file], ..Stores::default() };
        match stores.find(host).expect("no program is asked")? {
            Credential::Password { user, password } => Some((user, password.expose().to_owned())),
            Credential::Identity(token) => Some(("<token>".to_owned(), token.expose().to_owned())),
        }
    }

    #[test]
    fn passwords_are_found_as_tools_write_them() {
        // `ada:hunter:2`
        let text = r#"{"auths": {
            "ghcr.io": {"auth": "YWRhOmh1bnRlcjoy"},
            "https://index.docker.io/v1/": {"auth": "YWRhOmh1bnRlcjoy"},
            "acr.example": {"auth": "MDA6", "identitytoken": "refresh"},
            "plain.example:5000": {"username": "bob", "password": "x"},
            "empty.example": {}, "broken.example": {"auth": "%%"}
        }, "credsStore": "there-is-no-such-program", "credHelpers": {"ghcr.io": "../../evil"}}"#;
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        for (host, expected) in [
            ("ghcr.io", pair("ada", "hunter:2")),
            ("registry-1.docker.io", pair("ada", "hunter:2")),
            ("acr.example", pair("<token>", "refresh")),
            ("plain.example:5000", pair("bob", "x")),
            ("plain.example", None),
            ("empty.example", None),
            ("broken.example", None),
        ] {
            assert_eq!(find(text, host), expected, "{host}");
        }
        assert_eq!(find("nonsense", "ghcr.io"), None);
    }

    #[test]
    fn a_token_alone_has_a_user_too() {
        for (text, user, expected) in [("ada:x:y", "ada", "x:y"), ("ghp_1", TOKEN_USER, "ghp_1")] {
            let Credential::Password { user: found, password } =
                Credential::written(&Secret::new(text))
            else {
                panic!("is a password")
            };
            assert_eq!((found.as_str(), password.expose()), (user, expected));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_program_is_asked_and_ended_when_it_takes_too_long() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let program = |name: &str, script: &str| {
            let path = folder.path().join(format!("docker-credential-{name}"));
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("can be written");
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, mode).expect("is ours");
        };
        program("good", r#"read s; echo "{\"Username\":\"ada\",\"Secret\":\"for $s\"}""#);
        program("slow", "exec sleep 60");
        program("none", "echo credentials not found; exit 1");
        program("odd", "echo nonsense");
        let path = format!("relative:{}:/usr/bin:/bin", folder.path().display());
        let variables = BTreeMap::from([("PATH".to_owned(), path)]);
        let ask = |name: &str| helper::ask(name, "h.example", &variables, Duration::from_secs(2));
        let expected =
            Credential::Password { user: "ada".to_owned(), password: Secret::new("for h.example") };
        assert_eq!(ask("good").expect("answers"), Some(expected));
        assert_eq!(ask("none").expect("answers"), None);
        assert_eq!(ask("absent").expect("is not there"), None);
        let slow = ask("slow").expect_err("takes too long");
        assert!(format!("{slow:?}").contains("did not answer for 2 s"), "{slow:?}");
        assert!(ask("odd").is_err());
    }
}
