//! Where container tools store the passwords of registries: Docker's `config.json`, similar files of
//! others, and the variable that CI systems put such a file into.
//!
//! Some store them in programs, which are asked with `docker-credential-NAME get`. These are found as all programs are ([`Programs`]), and killed if they take too long. Their output is a secret.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mu_provider::http::{AskedServer, Credential, Secret, names_of};
use mu_provider::threads::start;
use mu_provider::{ErrorKind, Programs, ProviderError, fs};
use serde::Deserialize;

/// Where to look for passwords of registries, besides mu's own.
#[derive(Clone)]
pub struct Stores {
    /// Files as Docker's `config.json`, the most important first.
    pub files: Vec<PathBuf>,
    /// The text of such a file, in a variable; it counts after the first of the files, which `docker login` writes.
    pub variable: Option<String>,
    /// Where the programs are that these files name, and their environment.
    pub programs: Programs,
    /// How long such a program may take.
    pub patience: Duration,
}

impl Default for Stores {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            variable: None,
            programs: Programs::default(),
            patience: PATIENCE,
        }
    }
}

mu_provider::debug_fields!(Stores { files });

/// The folders and variables that say where programs store passwords.
struct Surroundings<'s> {
    home: &'s Path,
    programs: &'s Programs,
}

impl Surroundings<'_> {
    /// The absolute path in a variable.
    fn set(&self, name: &str) -> Option<PathBuf> {
        self.programs.variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    fn configuration(&self) -> PathBuf {
        self.set("XDG_CONFIG_HOME").unwrap_or_else(|| self.home.join(".config"))
    }
}

/// The file of a program, if the surroundings lead to one.
type Find = fn(&Surroundings<'_>) -> Option<PathBuf>;

/// The commands that store passwords of registries, and the file of each, the most important first. What is read and what hints name
/// is this.
const LOGINS: [(&str, Find); 5] = [
    ("docker login", |around| {
        let folder = around.set("DOCKER_CONFIG").unwrap_or_else(|| around.home.join(".docker"));
        Some(folder.join("config.json"))
    }),
    (PODMAN, |around| {
        let set = around.set("REGISTRY_AUTH_FILE");
        set.or_else(|| Some(around.set("XDG_RUNTIME_DIR")?.join("containers/auth.json")))
    }),
    (PODMAN, |around| Some(around.configuration().join("containers/auth.json"))),
    ("helm registry login", |around| {
        let file = around.set("HELM_REGISTRY_CONFIG").unwrap_or_else(|| {
            let folder = around.set("HELM_CONFIG_HOME");
            let folder = folder.unwrap_or_else(|| around.configuration().join("helm"));
            folder.join("registry/config.json")
        });
        Some(file)
    }),
    ("kcl registry login", |around| {
        let folder = around.set("KCL_PKG_PATH").unwrap_or_else(|| around.home.join(".kcl/kpm"));
        Some(folder.join(".kpm/config/config.json"))
    }),
];

/// What Podman, Buildah and Skopeo share.
const PODMAN: &str = "podman login";

/// The sentence about the other programs whose passwords for a registry are found.
pub(crate) fn other_logins(host: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in LOGINS.iter().map(|(login, _)| format!("`{login}`")) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // One is written out, so that it can be pasted.
    let (first, last) = (LOGINS[0].0, names.pop().unwrap_or_default());
    let others = names.get(1..).unwrap_or_default().join(", ");
    format!("mu also finds what `{first} {host}`, {others} or {last} has stored")
}

impl Stores {
    /// The usual files for this home folder and the variables of these programs: Docker's, those of Podman and similar tools,
    /// Helm's and KCL's.
    pub fn of(home: &Path, programs: &Programs) -> Self {
        let around = Surroundings { home, programs };
        let files = LOGINS.iter().filter_map(|(_, find)| find(&around));
        let files = files.chain([home.join(OF_OLD)]).collect();
        let variable = programs.variable("DOCKER_AUTH_CONFIG").map(str::to_owned);
        Self { files, variable, programs: programs.clone(), ..Self::default() }
    }

    /// The credentials in these files for the innermost folder of a registry that a repository is in. They count before those for the whole
    /// registry, and are in the files themselves.
    /// Notes in `faults` which of them could not be read.
    pub(crate) fn in_folders(
        &self,
        asked: &AskedServer,
        repository: &str,
        faults: &mut Vec<String>,
    ) -> Option<Credential> {
        let files: Vec<File> = self.files(&mut Vec::new());
        folders(&asked.host_and_unusual_port(), repository)
            .find_map(|name| files.iter().find_map(|file| file.credential(&name, asked, faults)))
    }

    /// The credentials for a registry in these files. Notes in `faults` what could not be read or asked: a password may be there.
    ///
    /// # Errors
    ///
    /// When a program that one of them names takes too long, or answers nonsense.
    pub(crate) fn find(
        &self,
        asked: &AskedServer,
        faults: &mut Vec<String>,
    ) -> Result<Option<Credential>, ProviderError> {
        for file in self.files(faults) {
            if let Some(found) = self.find_in(&file, asked, faults)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Those of the files that can be read. What is wrong with the others goes into `faults`.
    fn files(&self, faults: &mut Vec<String>) -> Vec<File> {
        let mut texts = Vec::new();
        for (number, path) in self.files.iter().enumerate() {
            match fs::read_text_if_there(path) {
                Ok(text) => texts.extend(text.map(|text| (path.display().to_string(), text))),
                Err(error) => faults.push(error.to_string()),
            }
            if number == 0
                && let Some(text) = &self.variable
            {
                texts.push(("DOCKER_AUTH_CONFIG".to_owned(), text.clone()));
            }
        }
        let parsed = texts.into_iter().filter_map(|(name, text)| {
            let text = text.trim_start_matches('\u{feff}');
            let is_empty = text.trim_start().is_empty();
            let read = match Path::new(&name).ends_with(OF_OLD) {
                _ if is_empty => Ok(File::default()),
                true => serde_json::from_str(text)
                    .map(|OldFile(auths)| File { auths, ..File::default() }),
                false => serde_json::from_str(text),
            };
            // The error itself may show what is in the file.
            let place = |error: &serde_json::Error| {
                format!("line {}, column {}", error.line(), error.column())
            };
            let failed =
                |error| faults.push(format!("`{name}` cannot be read from {} on", place(&error)));
            let file = read.map_err(failed).ok()?;
            Some(File { name, ..file })
        });
        parsed.collect()
    }

    fn find_in(
        &self,
        file: &File,
        asked: &AskedServer,
        faults: &mut Vec<String>,
    ) -> Result<Option<Credential>, ProviderError> {
        let host = asked.host_and_unusual_port();
        let names = names(&host);
        let helper = names.iter().find_map(|name| {
            file.cred_helpers.get(name).map(|helper| (helper.as_str(), name.as_str()))
        });
        let store = file.creds_store.as_deref().filter(|store| !store.is_empty());
        let server = names.first().map_or(&*host, String::as_str);
        for (helper, server) in helper.into_iter().chain(store.map(|store| (store, server))) {
            match ask(helper, (asked, server), &self.programs, self.patience)? {
                Asked::Known(found) => return Ok(Some(found)),
                Asked::Unknown => {}
                Asked::Failed(why) => faults.push(why),
            }
        }
        Ok(names.iter().find_map(|name| file.credential(name, asked, faults)))
    }
}

/// The file of Docker before 1.7, which container tools still read last.
const OF_OLD: &str = ".dockercfg";

/// What it has: the entries alone.
#[derive(Deserialize)]
struct OldFile(#[serde(deserialize_with = "or_nothing")] HashMap<String, Option<Entry>>);

/// Docker's `config.json`, as far as it is about passwords.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct File {
    /// Its path, or the variable that has it.
    #[serde(skip)]
    name: String,
    #[serde(deserialize_with = "or_nothing")]
    auths: HashMap<String, Option<Entry>>,
    #[serde(deserialize_with = "or_nothing")]
    cred_helpers: HashMap<String, String>,
    creds_store: Option<String>,
}

impl File {
    /// The credentials in the entry that is called `name`. Notes in `faults` what is there and cannot be read.
    fn credential(
        &self,
        name: &str,
        asked: &AskedServer,
        faults: &mut Vec<String>,
    ) -> Option<Credential> {
        let found = self.auths.get(name)?.as_ref()?.credential(asked);
        if matches!(found, Err(Undecoded)) {
            faults.push(format!(
                "`auth` of `{name}` in `{}` is not `USER:PASSWORD` in Base64",
                self.name
            ));
        }
        found.ok().flatten()
    }
}

/// Reads `null` as nothing, as the tools do that write such files.
fn or_nothing<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The entry for one registry; empty if a program has the password.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

/// An `auth` that nobody can read.
struct Undecoded;

impl Entry {
    fn credential(&self, asked: &AskedServer) -> Result<Option<Credential>, Undecoded> {
        if let Some(token) = self.registrytoken.as_deref().filter(|token| !token.is_empty()) {
            return Ok(Some(Credential::last_token(asked, Secret::new(token))));
        }
        if let Some(token) = self.identitytoken.as_deref().filter(|token| !token.is_empty()) {
            return Ok(Some(Credential::identity(asked, Secret::new(token))));
        }
        if let (Some(user), Some(password)) = (&self.username, &self.password) {
            return Ok(Some(Credential::password(asked, user, Secret::new(password))));
        }
        let auth = self.auth.as_deref().map(str::trim).filter(|auth| !auth.is_empty());
        let Some(auth) = auth else { return Ok(None) };
        let pair = STANDARD.decode(auth).ok().and_then(|pair| String::from_utf8(pair).ok());
        let pair = pair.ok_or(Undecoded)?;
        let (user, password) = pair.split_once(':').ok_or(Undecoded)?;
        let password = Secret::new(password.trim_end_matches('\0'));
        Ok(Some(Credential::password(asked, user, password)))
    }
}

/// The names that files of credentials have for a repository and the folders around it, from the inside.
fn folders(host: &str, repository: &str) -> impl Iterator<Item = String> {
    let ends = repository.match_indices('/').map(|(end, _)| end).chain([repository.len()]);
    let mut ends: Vec<usize> = ends.filter(|end| *end > 0).collect();
    ends.reverse();
    ends.into_iter().flat_map(move |end| {
        let folder = repository.get(..end).unwrap_or_default();
        names_of(host).into_iter().map(move |name| format!("{name}/{folder}"))
    })
}

/// The names that files of credentials have for a registry.
fn names(host: &str) -> Vec<String> {
    if host == "registry-1.docker.io" {
        let names = ["https://index.docker.io/v1/", "index.docker.io", "docker.io", host];
        return names.map(str::to_owned).to_vec();
    }
    let schemes = ["", "https://", "http://"];
    let ends = ["", "/", "/v2/", "/v1/", "/v2", "/v1"];
    let forms = schemes.iter().flat_map(|scheme| ends.map(|end| format!("{scheme}{host}{end}")));
    forms.collect()
}

/// How long a program may take. Some of them ask the user.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much a program may print, in bytes.
const LONGEST_ANSWER: u64 = 64 << 10;

/// What a program prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    #[serde(default)]
    username: String,
    secret: String,
}

/// What came of asking a helper.
#[derive(Debug, PartialEq)]
enum Asked {
    Known(Credential),
    /// It has no password for the registry.
    Unknown,
    /// It could not look, for this reason.
    Failed(String),
}

/// How helpers say that they have no password, as `docker-credential-helpers` has it.
const UNKNOWN: [&str; 2] = ["credentials not found", "no credentials"];

/// Asks the helper with this name for the password of a registry, which it knows as `server`.
///
/// # Errors
///
/// When it takes too long, or answers nonsense.
fn ask(
    name: &str,
    (asked, server): (&AskedServer, &str),
    programs: &Programs,
    patience: Duration,
) -> Result<Asked, ProviderError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Ok(Asked::Unknown);
    }
    let program = format!("docker-credential-{name}");
    let Some(found) = programs.find(&program) else {
        return Ok(Asked::Failed(format!("`{program}`, which is to know it, is not in PATH")));
    };
    let failed = |why: String| {
        let text = format!("`{program}`, which is to know the password for `{server}`, failed");
        ProviderError::new(ErrorKind::Auth, text).because(why)
    };
    let mut process = found
        .command(programs.variables())
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = process.stdin.take() {
        // A helper that does not read will not answer either.
        let _ = stdin.write_all(server.as_bytes());
    }
    let (send, receive) = mpsc::channel();
    let stdout = process.stdout.take();
    let reading = start(move || {
        let mut text = String::new();
        let read = stdout.map(|stdout| stdout.take(LONGEST_ANSWER).read_to_string(&mut text));
        let _ = send.send(read.map(|read| read.map(|_| text)));
    });
    let reading = reading.inspect_err(|_| {
        let _ = process.kill();
        let _ = process.wait();
    });
    let reading = reading.map_err(|error| failed(error.to_string()))?;
    let answer = receive.recv_timeout(patience);
    if answer.is_err() {
        // If it has ended already, that is fine. Its child processes may keep its output open.
        let _ = process.kill();
        let _ = process.wait();
        return Err(failed(format!("it did not answer for {} s", patience.as_secs_f32())));
    }
    drop(reading);
    let status = process.wait().map_err(|error| failed(error.to_string()))?;
    let text = answer.ok().flatten().and_then(Result::ok).unwrap_or_default();
    if !status.success() {
        let said = text.trim();
        if said.is_empty() || UNKNOWN.iter().any(|none| said.contains(none)) {
            return Ok(Asked::Unknown);
        }
        let said = said.lines().next().unwrap_or_default().escape_debug().to_string();
        return Ok(Asked::Failed(format!("`{program}`, which is to know it, says: {said}")));
    }
    let answer: HelperAnswer =
        serde_json::from_str(&text).map_err(|_| failed("it answered something else".to_owned()))?;
    let secret = Secret::new(answer.secret);
    Ok(Asked::Known(match answer.username.as_str() {
        "<token>" => Credential::identity(asked, secret),
        user => Credential::password(asked, user, secret),
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use mu_provider::SafeUrl;

    use super::*;

    fn asked(host: &str) -> AskedServer {
        AskedServer::new(&SafeUrl::parse(&format!("https://{host}/")).expect("is a URL"))
    }

    fn find(text: &str, host: &str) -> Option<Credential> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("config.json");
        std::fs::write(&file, text).expect("can be written");
        let stores = Stores { files: vec![file], ..Stores::default() };
        let (host, repository) = host.split_once('/').unwrap_or((host, "any/thing"));
        let asked = asked(host);
        let own = stores.in_folders(&asked, repository, &mut Vec::new());
        own.or_else(|| stores.find(&asked, &mut Vec::new()).expect("no program is asked"))
    }

    #[test]
    fn the_password_for_the_innermost_folder_counts() {
        let entry = |user: &str| format!("{{\"username\": \"{user}\", \"password\": \"x\"}}");
        let text = format!(
            r#"{{"auths": {{"h.example": {}, "h.example/a": {}, "h.example/a/b": {}, "docker.io/c": {}}},
                "credsStore": "there-is-no-such-program"}}"#,
            entry("host"),
            entry("a"),
            entry("b"),
            entry("c")
        );
        for (place, user) in [
            ("h.example/a/b", Some("b")),
            ("h.example/a/b/c", Some("b")),
            ("h.example/a/bc", Some("a")),
            ("h.example/ab", Some("host")),
            ("h.example/", Some("host")),
            ("registry-1.docker.io/c/d", Some("c")),
            ("registry-1.docker.io/d", None),
        ] {
            let host = place.split('/').next().unwrap_or_default();
            let own = |user| Credential::password(&asked(host), user, Secret::new("x"));
            assert_eq!(find(&text, place), user.map(own), "{place}");
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
        let pair = |host: &str, user: &str, password: &str| {
            Some(Credential::password(&asked(host), user, Secret::new(password)))
        };
        let identity = Credential::identity(&asked("acr.example"), Secret::new("refresh"));
        for (host, expected) in [
            ("ghcr.io", pair("ghcr.io", "ada", "hunter:2")),
            ("registry-1.docker.io", pair("registry-1.docker.io", "ada", "hunter:2")),
            ("acr.example", Some(identity)),
            ("plain.example:5000", pair("plain.example:5000", "bob", "x")),
            ("plain.example", None),
            ("empty.example", None),
            ("broken.example", None),
        ] {
            assert_eq!(find(text, host), expected, "{host}");
        }
        assert_eq!(find("nonsense", "ghcr.io"), None);
    }

    #[test]
    fn the_file_of_old_counts_last() {
        let home = tempfile::tempdir().expect("a temporary folder can be made");
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().expect("is below")).expect("can be made");
            std::fs::write(path, text).expect("can be written");
        };
        let user = |host: &str| {
            let stores = Stores::of(home.path(), &Programs::default());
            let found = stores.find(&asked(host), &mut Vec::new()).expect("no program is asked");
            let is = |user: &str| {
                found == Some(Credential::password(&asked(host), user, Secret::new("x")))
            };
            ["old", "new"].into_iter().find(|user| is(user))
        };
        write(
            ".dockercfg",
            r#"{"https://index.docker.io/v1/": {"auth": "b2xkOng=", "email": "a@b.c"}, "r.example": {"auth": "b2xkOng="}}"#,
        );
        assert_eq!([user("registry-1.docker.io"), user("r.example")], [Some("old"); 2]);
        write(".docker/config.json", r#"{"auths": {"r.example": {"auth": "bmV3Ong="}}}"#);
        assert_eq!([user("registry-1.docker.io"), user("r.example")], [Some("old"), Some("new")]);
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
        program("locked", "echo gpg: no secret key; exit 1");
        let path = format!("relative:{}:/usr/bin:/bin", folder.path().display());
        let programs =
            Programs::new(&Arc::new(BTreeMap::from([("PATH".to_owned(), path)])), Vec::new);
        let ask = |name: &str| {
            let registry = asked("h.example");
            ask(name, (&registry, "h.example"), &programs, Duration::from_secs(2))
        };
        let expected =
            Credential::password(&asked("h.example"), "ada", Secret::new("for h.example"));
        assert_eq!(ask("good").expect("answers"), Asked::Known(expected));
        assert_eq!(ask("none").expect("answers"), Asked::Unknown);
        for (name, why) in [("absent", "is not in PATH"), ("locked", "says: gpg: no secret key")] {
            let Asked::Failed(text) = ask(name).expect("says why") else { panic!("{name}") };
            assert!(text.contains(why), "{text}");
        }
        let slow = ask("slow").expect_err("takes too long");
        assert!(format!("{slow:?}").contains("did not answer for 2 s"), "{slow:?}");
        assert!(ask("odd").is_err());
    }

    /// Keeps the keys that a structure is read from.
    #[derive(Default)]
    struct KeysOf(&'static [&'static str]);

    impl<'de> serde::Deserializer<'de> for &mut KeysOf {
        type Error = serde::de::value::Error;

        fn deserialize_any<V: serde::de::Visitor<'de>>(
            self,
            _: V,
        ) -> Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("a structure, and nothing else"))
        }

        fn deserialize_struct<V: serde::de::Visitor<'de>>(
            self,
            _: &'static str,
            keys: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            self.0 = keys;
            self.deserialize_any(visitor)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    fn keys<'de, Structure: Deserialize<'de>>(before: &str) -> Vec<String> {
        let mut keys = KeysOf::default();
        assert!(Structure::deserialize(&mut keys).is_err(), "it has no values");
        keys.0.iter().map(|key| format!("{before}{key}")).collect()
    }

    #[test]
    fn every_key_that_is_read_has_a_row() {
        let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/keys/config.json.tsv");
        let table = std::fs::read_to_string(table).expect("is there");
        let rows = table.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
        let mut used: Vec<String> = rows
            .filter(|row| matches!(&row[..], [_, "used", source] if !source.is_empty()))
            .map(|row| row[0].to_owned())
            .collect();
        used.sort_unstable();
        let mut read = [keys::<File>(""), keys::<Entry>("auths.NAME.")].concat();
        read.sort_unstable();
        assert_eq!(used, read);
    }
}
