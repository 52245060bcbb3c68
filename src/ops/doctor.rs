//! `doctor`: checks whether mu can work on this machine: its folders, the programs that it uses, proxy,
//! certificates, clock, and each registry in the settings.

use std::path::PathBuf;
use std::time::Instant;

#[cfg(feature = "oci")]
use mu_formats::check_passwords;
use mu_formats::{FormatError, check_repositories};
use mu_provider::{ErrorKind, PlaceKind, Programs, ProviderError, SafeUrl, Silent, with_causes};
use schemars::JsonSchema;
use serde::Serialize;

use crate::env::Environment;
use crate::formats;
use crate::fs::{self, AtPath as _};
use crate::index::Route;
use crate::ops::session::shown::count;
use crate::ops::{CommandError, Session};
use crate::reference::Alias;
use crate::workspace::ConfiguredRegistry;
use crate::workspace::root::programs;

/// The largest difference between this machine's clock and a registry's, in seconds. Tokens and certificates
/// are valid for a time.
const CLOCK: i64 = 300;

/// The longest `hub.json` that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// One thing that `doctor` checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// What was checked.
    pub subject: String,
    /// What was found.
    pub found: String,
    /// Whether mu can work with it.
    pub ok: bool,
    /// What to do about it.
    pub advice: Option<String>,
}

impl Finding {
    fn new(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self { subject: subject.into(), found: found.into(), ok: true, advice: None }
    }

    fn failed(
        subject: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { ok: false, ..Self::new(subject, found).advice(advice) }
    }

    fn advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

/// Checks whether mu can work on this machine, with the settings around the current folder, if they can be
/// read.
pub fn doctor(environment: &Environment, settings: &Result<Session, CommandError>) -> Vec<Finding> {
    let programs = programs(environment);
    let mut findings = vec![
        Finding::new("mu", env!("CARGO_PKG_VERSION")),
        writable("cache folder", environment.cache.clone()),
        writable("global packs", environment.mu_home.clone()),
        runtime(environment),
        links(environment),
        program(&programs, "git", "install git to fetch from file:// repositories quickly"),
        program(&programs, "ssh", "install an ssh client to fetch from ssh:// repositories"),
    ];
    findings.extend(proxies(environment));
    findings.extend(certificates(environment));
    findings.extend(passwords(environment));
    match settings {
        Ok(session) => {
            findings.extend(registries(session));
            findings.extend(aliases(session));
        }
        Err(error) => {
            let advice = "fix the file, and run `mu doctor` again";
            findings.push(Finding::failed("settings", error.to_string(), advice));
        }
    }
    findings
}

fn writable(subject: &str, folder: PathBuf) -> Finding {
    let result = fs::create_folder(&folder)
        .and_then(|()| tempfile::tempfile_in(&folder).at("write a file in", &folder));
    let shown = folder.display().to_string();
    match result {
        Ok(_) => Finding::new(subject, shown),
        Err(error) => {
            let advice = "make the folder writable, or set MU_CACHE_DIR and MU_HOME";
            Finding::failed(subject, format!("{shown}: {}", error.reason()), advice)
        }
    }
}

fn runtime(environment: &Environment) -> Finding {
    let folder = environment.mu_root.join("lib").join("packs");
    let is_there = if folder.is_dir() { "present" } else { "absent" };
    Finding::new("runtime packs", format!("{} ({is_there})", folder.display()))
}

/// Whether packs here can share files with the store.
fn links(environment: &Environment) -> Finding {
    let subject = "links from the store";
    let try_link = || -> std::io::Result<bool> {
        let from = tempfile::NamedTempFile::new_in(&environment.cache)?;
        let folder = tempfile::tempdir_in(&environment.current)?;
        Ok(fs::hard_link(from.path(), &folder.path().join("link")).is_ok())
    };
    match try_link() {
        Ok(true) => Finding::new(subject, "work in this folder"),
        Ok(false) => Finding::new(
            subject,
            "this folder is on another file system than the cache: packs are copied",
        )
        .advice("set MU_CACHE_DIR to a folder on this file system to save space"),
        Err(error) => Finding::new(subject, format!("cannot be tested: {error}"))
            .advice("run `mu doctor` in a folder that you can write to"),
    }
}

fn program(programs: &Programs, name: &str, advice: &str) -> Finding {
    // `ssh` knows no `--version`, and prints what it says as an error.
    let version = if name == "ssh" { "-V" } else { "--version" };
    let found = programs.find(name);
    match found.and_then(|found| found.command(programs.variables()).arg(version).output().ok()) {
        Some(output) => {
            let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
            let text = String::from_utf8_lossy(&text);
            let first = text.lines().next();
            match output.status.success() {
                true => Finding::new(name, first.unwrap_or("present")),
                false => {
                    let found = first.map_or_else(
                        || format!("`{name} {version}` failed"),
                        |first| format!("`{name} {version}` failed: {first}"),
                    );
                    let advice = "run that command yourself, and mend what it names";
                    Finding::failed(name, found, advice)
                }
            }
        }
        None => {
            let found = match programs.passed_over(name) {
                Some(path) => format!(
                    "`{}` is not run: the folder in PATH is relative, or in the workspace",
                    path.display()
                ),
                None => "not found".to_owned(),
            };
            Finding::new(name, found).advice(advice)
        }
    }
}

/// The proxies that are set. They may hold passwords, which are not shown.
fn proxies(environment: &Environment) -> Vec<Finding> {
    let names =
        ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    let set = names.iter().filter_map(|name| Some((*name, environment.variable(name)?)));
    let judged = set.map(|(name, value)| {
        // A host without a scheme is a proxy too.
        let whole =
            if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        let url = SafeUrl::parse(&whole);
        match url.ok().filter(|url| url.as_url().has_host()) {
            Some(url) => Finding::new(name, url.to_string()),
            None => {
                let advice = "set it to the proxy's URL, such as http://proxy.acme.example:3128";
                Finding::failed(name, "is not a URL", advice)
            }
        }
    });
    let mut findings: Vec<Finding> = judged.collect();
    let without = ["NO_PROXY", "no_proxy"].iter().find_map(|name| environment.variable(name));
    findings.extend(without.map(|hosts| Finding::new("NO_PROXY", hosts)));
    findings
}

/// The trusted certificates, if they were set.
fn certificates(environment: &Environment) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(file) = environment.variable("SSL_CERT_FILE") {
        let path = crate::env::absolute(&environment.current, file.as_ref());
        let judged = match fs::read_text_if_there(&path) {
            Ok(Some(text)) if text.contains("-----BEGIN ") => {
                Ok(text.matches("-----BEGIN ").count())
            }
            Ok(Some(_)) => Err("contains no PEM certificate".to_owned()),
            Ok(None) => Err("there is no such file".to_owned()),
            Err(error) => Err(error.reason().to_string()),
        };
        findings.push(match judged {
            Ok(found) => {
                let found = format!("{file} ({})", count(found, "certificate"));
                Finding::new("SSL_CERT_FILE", found)
            }
            Err(why) => Finding::failed(
                "SSL_CERT_FILE",
                format!("{file}: {why}"),
                "set it to a PEM file with the certificates of the authorities that you trust",
            ),
        });
    }
    if let Some(folder) = environment.variable("SSL_CERT_DIR") {
        let ok = crate::env::absolute(&environment.current, folder.as_ref()).is_dir();
        let found = if ok { "" } else { ": there is no such folder" };
        findings.push(Finding { ok, ..Finding::new("SSL_CERT_DIR", format!("{folder}{found}")) });
    }
    findings
}

/// The files in which other tools keep passwords and names of registries: what of them cannot be read, and their misspelt keys.
/// Whatever is in there would never be found.
fn passwords(environment: &Environment) -> Vec<Finding> {
    type Check = fn(&str, &str) -> Result<Vec<String>, FormatError>;
    #[cfg_attr(not(feature = "oci"), allow(unused_mut))]
    let mut files = vec![(formats::helms_repositories(environment), check_repositories as Check)];
    #[cfg(feature = "oci")]
    {
        let stores = mu_provider_oci::Stores::of(&environment.home, &programs(environment));
        files.extend(stores.files.into_iter().map(|file| (file, check_passwords as Check)));
    }
    let judged = files.into_iter().filter_map(|(path, check)| {
        let text = fs::read_text_if_there(&path).ok()??;
        let shown = path.display().to_string();
        let advice = "mu finds no password and no name of a repository there: correct the file, or let the tool write it that it belongs to";
        match check(&shown, &text) {
            Err(error) => Some(Finding::failed("passwords of other tools", error.to_string(), advice)),
            Ok(unknown) if unknown.is_empty() => None,
            Ok(unknown) => {
                let found = format!("{shown} has keys that mu does not know: {}", unknown.join(", "));
                Some(Finding::new("passwords of other tools", found))
            }
        }
    });
    judged.collect()
}

/// Which names mean others, and whether anything here comes from there.
fn aliases(session: &Session) -> Vec<Finding> {
    let lock = session.lockfile().ok().flatten().unwrap_or_default();
    let plain = |prefix: &str| prefix.trim_end_matches('/').to_owned();
    let finding = |alias: &Alias| {
        let to = plain(&alias.to);
        let locked = lock.packages.iter().map(|package| package.id.as_str());
        let locked = locked.filter(|id| *id == to || id.starts_with(&alias.to)).count();
        let found = format!("means {to}, of which {} locked here", count(locked, "package"));
        Finding::new(format!("alias {}", plain(&alias.from)), found)
    };
    session.workspace.settings.aliases.iter().map(finding).collect()
}

/// Contacts each registry in the settings. Their answers show whether the clock is right.
fn registries(session: &Session) -> Vec<Finding> {
    let registries = &session.workspace.settings.registries;
    if registries.is_empty() {
        let base = &session.workspace.settings.base;
        return vec![
            Finding::new(
                "registries",
                format!("none are configured: references without a host use {base}"),
            )
            .advice(format!("if your packages are elsewhere: `mu registry add -g {base} URL`")),
        ];
    }
    let mut behind = None;
    let asked = registries.iter().map(|registry| ask(session, registry, &mut behind));
    let mut findings: Vec<Finding> = asked.collect();
    findings.extend(behind.map(clock));
    findings
}

/// Contacts a registry; the first that answers tells by how many seconds this machine's clock is `behind`.
fn ask(session: &Session, registry: &ConfiguredRegistry, behind: &mut Option<i64>) -> Finding {
    let subject = format!("registry {}", registry.prefix);
    let mut places = session.index().registries().into_iter();
    let place = places.find(|place| place.prefix == registry.prefix);
    let route = match place.map(|place| place.route) {
        Some(Ok(route)) => route,
        Some(Err(error)) => {
            let advice = "`mu registry list` shows where it is set";
            return Finding::failed(subject, with_causes(&error), advice);
        }
        None => return Finding::new(subject, "is set twice: the last one counts"),
    };
    let root = route.location.root.clone();
    if session.options.offline && root.scheme() != "file" {
        return Finding::new(subject, format!("{root} (not contacted: mu is offline)"));
    }
    if route.provider.facts().kind != PlaceKind::Hub {
        return probed(session, subject, &route);
    }
    // A hub has this file in its root, in a folder as on a server.
    let Ok(url) = root.with_trailing_slash().join("hub.json") else {
        let found = format!("{root} is not a valid place for a registry");
        return Finding { ok: false, ..Finding::new(subject, found) };
    };
    if root.scheme() == "file" {
        if url.as_url().to_file_path().is_ok_and(|path| path.is_file()) {
            return Finding::new(subject, format!("{root} is a hub"));
        }
        let found = format!("{root} is not a hub: there is no hub.json");
        return Finding::failed(subject, found, "`mu hub init DIR` creates a hub");
    }
    // Asked without the index, which would remember the answer, and would not say when it came.
    let begin = Instant::now();
    let http = session.http();
    let insecure = registry.insecure || session.options.allow_insecure;
    let answer = http.get(&url).insecure(insecure).send();
    let judged = answer.and_then(|answer| {
        let date = answer.header("date").and_then(|text| jiff::fmt::rfc2822::parse(text).ok());
        let clock = date.map(|date| date.timestamp().as_second() - session.environment.now);
        let bytes = answer.bytes(LONGEST, &Silent).map_err(|failure| failure.into_error())?;
        *behind = behind.or(clock);
        Ok(serde_json::from_slice::<serde_json::Value>(&bytes).ok())
    });
    let token = if session.has_token(&root) { ", with a token" } else { "" };
    match judged {
        Ok(Some(file)) if file.get("hub").is_some() => {
            let time = begin.elapsed().as_millis();
            Finding::new(subject, format!("{root} answers in {time} ms{token}"))
        }
        Ok(_) => {
            let found = format!("{url} answers, but is not a hub's description");
            let advice = "check the URL: `mu registry list` shows where it is set";
            Finding::failed(subject, found, advice)
        }
        Err(error) => failed(subject, &error, token),
    }
}

/// Contacts a registry that is not a hub, in the way of its provider.
fn probed(session: &Session, subject: String, route: &Route) -> Finding {
    let (provider, location) = (&route.provider, &route.location);
    let (root, kind) = (&location.root, provider.name());
    let token = if session.has_token(root) { ", with a token" } else { "" };
    let begin = Instant::now();
    let is_there = if provider.facts().kind == PlaceKind::Folder
        || provider.facts().kind == PlaceKind::Repository
    {
        match root.scheme() {
            "file" => Ok(root.as_url().to_file_path().is_ok_and(|path| {
                // Git reads a file, too: a bundle. The URL of a registry ends with a slash, which no file has.
                let path: PathBuf = path.components().collect();
                path.is_dir() || provider.facts().kind == PlaceKind::Repository && path.is_file()
            })),
            "http" | "https" => {
                let insecure = location.insecure;
                match session.http().get(root).insecure(insecure).send() {
                    // What repositories there are, the server need not say.
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
                    answer => answer.map(|_| true),
                }
            }
            scheme => {
                let text = format!("{root} ({kind}; not contacted: {scheme} needs a repository)");
                return Finding::new(subject, text);
            }
        }
    } else {
        provider.probe(location)
    };
    match is_there {
        Ok(true) if root.scheme() == "file" => {
            Finding::new(subject, format!("{root} is there ({kind})"))
        }
        Ok(true) => {
            let time = begin.elapsed().as_millis();
            Finding::new(subject, format!("{root} answers in {time} ms ({kind}){token}"))
        }
        Ok(false) if root.scheme() == "file" => {
            let found = format!("there is nothing for `{kind}` at {root}");
            let advice = "check the path: `mu registry list` shows where it is set";
            Finding::failed(subject, found, advice)
        }
        Ok(false) => {
            let found = format!("{root} answers, but not as `{kind}` does{token}");
            let advice =
                "check the URL and the provider: `mu registry list` shows where they are set";
            Finding::failed(subject, found, advice)
        }
        Err(error) => failed(subject, &error, token),
    }
}

/// A registry that could not be asked.
fn failed(subject: String, error: &ProviderError, token: &str) -> Finding {
    let advice = error.hints().first().map_or("`mu -v doctor` shows each request", String::as_str);
    Finding::failed(subject, format!("{}{token}", with_causes(error)), advice)
}

fn clock(behind: i64) -> Finding {
    let seconds = behind.abs();
    if seconds <= CLOCK {
        return Finding::new("clock", "agrees with a registry's clock");
    }
    let way = if behind > 0 { "behind" } else { "ahead of" };
    let found = format!("is {} min {way} a registry's clock", seconds / 60);
    let advice = "set this machine's clock: certificates and `minimumReleaseAge` depend on it";
    Finding::failed("clock", found, advice)
}
