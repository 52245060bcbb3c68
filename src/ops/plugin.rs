//! `plugin`: lists provider plugins, checks whether one follows the protocol, and asks one a question.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mu_provider::fs::{AtPath as _, private_folder};
use mu_provider::{
    Digest, Folder, JsonLineError, Limits, Listing, Location, Provider as _, ProviderError,
    Release, Silent, TreeWriter, read_json_lines, with_causes,
};
use mu_provider_exec::{ExecProvider, PLUGIN_PROGRAM_PREFIX, RecordError, Recorded, recorded};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::env::absolute;
use crate::ops::session::shown::count;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{Reference, Version};

/// A plugin on this machine.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Plugin {
    /// Its name: the scheme of its references, and the value of `provider` in the settings.
    pub name: String,
    /// The program.
    pub path: String,
    /// Its version, according to itself.
    pub version: Option<String>,
    /// The schemes that it serves, according to itself.
    pub schemes: Vec<String>,
    /// Why it cannot be used, if it cannot.
    pub problem: Option<String>,
}

/// One thing that was tried with a plugin.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    /// What was tried.
    pub what: String,
    /// What was found.
    pub found: String,
    /// Whether it follows the protocol.
    pub ok: bool,
}

/// All plugins on this machine; each is started and asked for its name and version.
pub fn list(session: &Session) -> Vec<Plugin> {
    let plugins = session.plugins();
    let all: Vec<(String, PathBuf)> = plugins.all_plugins().into_iter().collect();
    let look = |(name, path): (String, PathBuf)| {
        let (version, schemes, problem) = match plugins.named(&name).map(|plugin| plugin.about()) {
            Some(Ok(about)) => (about.version, about.schemes, None),
            Some(Err(error)) => (String::new(), Vec::new(), Some(with_causes(&error))),
            None => {
                let problem = "is not a program that can be run".to_owned();
                (String::new(), Vec::new(), Some(problem))
            }
        };
        let version = Some(version).filter(|version| !version.is_empty());
        Plugin { name, path: path.display().to_string(), version, schemes, problem }
    };
    all.into_iter().map(look).collect()
}

/// The plugin with this name.
fn find(session: &Session, name: &str) -> Result<Arc<ExecProvider>, CommandError> {
    let plugins = session.plugins();
    plugins.named(name).ok_or_else(|| {
        let folder = session.environment.mu_home.join("plugins");
        let error = CommandError::new(
            Code::NotFound,
            format!("there is no plugin `{name}`: no program `mu-provider-{name}` is in `{}` or on `PATH`", folder.display()),
        );
        error.hint("`mu plugin list` shows the plugins that are there")
    })
}

/// Asks a plugin one question, and gives its answer as it is. `params` is JSON, or a package.
pub fn run(
    session: &Session,
    name: &str,
    method: &str,
    params: &str,
) -> Result<Value, CommandError> {
    let plugin = find(session, name)?;
    let params = if params.starts_with('{') {
        serde_json::from_str(params).map_err(|error| {
            CommandError::new(Code::Usage, format!("`{params}` is not JSON: {error}"))
        })?
    } else {
        let package = mu_provider_exec::asking(&location(session, name, params)?, []);
        if method == "versions" { json!({ "packages": [package] }) } else { package }
    };
    let answer = plugin.call(method, &params, &Silent)?;
    answer.ok_or_else(|| {
        CommandError::new(Code::Plugin, format!("the plugin `{name}` has no method `{method}`"))
    })
}

/// Where the plugin `name` has the package that `text` names: with or without the plugin's scheme, or by a name that the
/// settings lead to the plugin.
fn location(session: &Session, name: &str, text: &str) -> Result<Location, CommandError> {
    let with_scheme = (!text.contains("://")).then(|| format!("{name}://{text}"));
    for text in std::iter::once(text).chain(with_scheme.as_deref()) {
        let reference = Reference::parse(text)?;
        let id = session.id_of_argument(&reference);
        session.index().declare(&id, &reference, &session.environment.current);
        let route = session.index().known_route(&id);
        if let Some(route) = route.filter(|route| route.provider.name() == name) {
            return Ok(route.location);
        }
    }
    let text = format!("`{text}` does not lead to the plugin `{name}`");
    Err(CommandError::new(Code::Usage, text)
        .hint(format!("write `{name}://HOST/NAME`, or set `provider: {name}` for its base")))
}

/// What to check of a plugin.
#[derive(Debug, Default)]
pub struct CheckRequest {
    /// Its name, or the path of its program.
    pub plugin: String,
    /// A package to try it with.
    pub reference: Option<String>,
    /// A folder with records of it: what they say is asked again.
    pub records: Option<PathBuf>,
}

/// Tries whether a plugin does what the protocol says; with a reference, also with the package that it names, and with
/// records, whether it still answers as it did.
pub fn check(session: Session, request: &CheckRequest) -> Result<Vec<Check>, CommandError> {
    let (name, program) = named(&session, &request.plugin)?;
    let session = session.with_settings(|settings| {
        settings.plugins.extend(program.map(|program| (name.clone(), program)));
    });
    let (session, name) = (&session, &name);
    let plugin = find(session, name)?;
    let mut checks = Checks(Vec::new());
    let introduced = checks.note("starts and introduces itself", plugin.about(), |about| {
        let serves = about.schemes.iter().any(|scheme| scheme == name);
        let said =
            format!("`{}` {}, schemes: {}", about.name, about.version, about.schemes.join(", "));
        if serves { Ok(said) } else { Err(format!("{said}; `{name}` is not among them")) }
    });
    if introduced.is_none() {
        return Ok(checks.0);
    }
    if let Some(text) = &request.reference {
        checks.package(&plugin, &location(session, name, text)?);
    }
    if let Some(folder) = &request.records {
        let folder = absolute(&session.environment.current, folder);
        checks.replay(&plugin, &questions(&folder, name)?);
    }
    Ok(checks.0)
}

/// The name of a plugin that is named, or whose program is; with that program, which is used in this run.
fn named(session: &Session, text: &str) -> Result<(String, Option<PathBuf>), CommandError> {
    let path = Path::new(text);
    // A word is a name, and anything with a folder in it the path of a program.
    if path.components().count() < 2 {
        return Ok((text.strip_prefix(PLUGIN_PROGRAM_PREFIX).unwrap_or(text).to_owned(), None));
    }
    let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    let name =
        file.trim_end_matches(std::env::consts::EXE_SUFFIX).strip_prefix(PLUGIN_PROGRAM_PREFIX);
    let name = name.filter(|name| !name.is_empty()).ok_or_else(|| {
        let message = format!(
            "`{text}` is not the program of a plugin: its name has to start with `{PLUGIN_PROGRAM_PREFIX}`"
        );
        CommandError::new(Code::Usage, message)
            .hint(format!("rename it to `{PLUGIN_PROGRAM_PREFIX}NAME`; it then serves `NAME://`"))
    })?;
    let program = absolute(&session.environment.current, path);
    if !program.is_file() {
        let message = format!("there is no program `{}`", program.display());
        return Err(CommandError::new(Code::NotFound, message));
    }
    Ok((name.to_owned(), Some(program)))
}

/// The questions in the records of a plugin.
fn questions(folder: &Path, name: &str) -> Result<Vec<Recorded>, CommandError> {
    let questions = recorded(folder, name).map_err(|error| match error {
        RecordError::File(error) => CommandError::from(error),
        error => CommandError::new(Code::Usage, error.to_string()),
    })?;
    if questions.is_empty() {
        let message =
            format!("there is no record of the plugin `{name}` in `{}`", folder.display());
        return Err(CommandError::new(Code::NotFound, message).hint(format!(
            "set MU_PLUGIN_DEBUG={} and run a command that needs the plugin",
            folder.display()
        )));
    }
    Ok(questions)
}

struct Checks(Vec<Check>);

impl Checks {
    /// Records how a check went; returns its result if it succeeded.
    fn note<T>(
        &mut self,
        what: &str,
        result: Result<T, ProviderError>,
        look: impl FnOnce(&T) -> Result<String, String>,
    ) -> Option<T> {
        let (found, value) = match result {
            Ok(value) => (look(&value), Some(value)),
            Err(error) => {
                let cause = std::error::Error::source(&error);
                let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
                (Err(format!("{error}{cause}")), None)
            }
        };
        let ok = found.is_ok();
        let (Ok(found) | Err(found)) = found;
        self.0.push(Check { what: what.to_owned(), found, ok });
        value.filter(|_| ok)
    }

    /// Asks again what was asked before.
    fn replay(&mut self, plugin: &ExecProvider, questions: &[Recorded]) {
        for question in questions {
            let what = format!("answers `{}` as in {}", question.method, question.place);
            self.note(&what, plugin.replay(question, &Silent), |answer| {
                match difference(&question.answer, answer, "") {
                    None => Ok("the same".to_owned()),
                    Some(difference) => Err(difference),
                }
            });
        }
    }

    /// Tries everything that a package takes part in.
    fn package(&mut self, plugin: &ExecProvider, location: &Location) {
        let listing =
            self.note("lists the package", plugin.list(location, None, &Silent), |listing| {
                match listing {
                    Listing::Found(found) => {
                        releases(&found.lines, location.lenient).map(|all| match all.len() {
                            0 => "no releases".to_owned(),
                            some => count(some, "release"),
                        })
                    }
                    Listing::Absent { tried, .. } => {
                        Err(format!("it is not there: {}", tried.join(", ")))
                    }
                    Listing::Unchanged { .. } => Err("unchanged, and nobody has it yet".to_owned()),
                }
            });
        let Some(Listing::Found(found)) = listing else { return };
        // With the validator of its first answer, it may say that nothing has changed. Without one, both answers have
        // to be the same.
        let validator = found.validator.as_deref();
        self.note(
            "lists it again",
            plugin.list(location, validator, &Silent),
            |again| match again {
                Listing::Unchanged { .. } if validator.is_some() => Ok("unchanged".to_owned()),
                Listing::Found(again) if again.lines == found.lines => Ok("the same".to_owned()),
                _ => Err("something else than before".to_owned()),
            },
        );
        // A plugin that finds everything would never let mu say that a name is misspelt.
        let nowhere =
            Location { path: format!("{}-that-is-not-there", location.path), ..location.clone() };
        self.note("knows what is not there", plugin.list(&nowhere, None, &Silent), |listing| {
            match listing {
                Listing::Absent { tried, .. } => Ok(format!("looked at {}", tried.join(", "))),
                _ => Err(format!("finds `{}`", nowhere.describe())),
            }
        });
        let all = releases(&found.lines, location.lenient).unwrap_or_default();
        // A plugin may have commits alone, which have no version.
        let newest = all.iter().rev().find(|release| !release.version.is_empty());
        let Some(release) = newest.or(all.last()) else { return };
        let version = Some(&release.version).filter(|version| !version.is_empty());
        let Some(version) = version.map(String::as_str).or(release.revision()) else { return };
        let manifest = plugin.manifest(location, release, &Silent);
        self.note(&format!("gives the manifest of {version}"), manifest, |manifest| {
            Ok(manifest.as_ref().map_or_else(|| "none".to_owned(), |file| file.name.clone()))
        });
        let first = fetched(plugin, location, release);
        let first = self.note(&format!("fetches {version}"), first, |(digest, files)| {
            Ok(format!("{}, {digest}", count(*files, "file")))
        });
        let Some((digest, _)) = first else { return };
        // The data in a lock must be enough.
        let locked = Release {
            version: release.version.clone(),
            archive: release.archive.clone(),
            urls: release.urls.first().cloned().into_iter().collect(),
            commit: release.commit.clone(),
            artifact: release.artifact.clone(),
            locator: release.locator.clone(),
            ..Release::default()
        };
        let again = fetched(plugin, location, &locked);
        self.note(&format!("fetches {version} from what a lock keeps"), again, |(again, _)| {
            if *again == digest {
                Ok("the same".to_owned())
            } else {
                Err(format!("other files: {again}"))
            }
        });
    }
}

/// The first difference between two JSON values, at `place` in both.
fn difference(before: &Value, now: &Value, place: &str) -> Option<String> {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
            keys.into_iter().find_map(|key| {
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or_default()
                };
                difference(&of(before), &of(now), &format!("{place}/{key}"))
            })
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            let pairs = before.iter().zip(now).enumerate();
            let mut differences = pairs.filter_map(|(index, (before, now))| {
                difference(before, now, &format!("{place}/{index}"))
            });
            differences.next()
        }
        _ if before == now => None,
        _ => Some(format!("{place} is `{}`, and was `{}`", short(now), short(before))),
    }
}

/// A value as a line shows it.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The releases in an answer. With `lenient`, versions can leave numbers out.
fn releases(lines: &[u8], lenient: bool) -> Result<Vec<Release>, String> {
    let read = read_json_lines::<Release>(lines).map(|line| {
        let release = line.map_err(|JsonLineError { line, reason, .. }| {
            format!("a release cannot be read: {reason}: `{}`", String::from_utf8_lossy(line))
        })?;
        match (release.version.is_empty(), &release.commit) {
            (true, None) => Err("a release has neither a version nor a commit".to_owned()),
            (false, _) if !is_version(&release, lenient) => {
                let version = release.full_version();
                Err(format!("a release has the version `{version}`, which is not one"))
            }
            _ => Ok(release),
        }
    });
    read.collect()
}

/// Whether the version of a release is one.
fn is_version(release: &Release, lenient: bool) -> bool {
    match lenient || release.versioning.is_some() || release.is_lenient() {
        true => mu_formats::version_of(release).is_some(),
        false => Version::parse(&release.version).is_ok(),
    }
}

/// The digest and the number of files of a fetched release.
fn fetched(
    plugin: &ExecProvider,
    location: &Location,
    release: &Release,
) -> Result<(Digest, usize), ProviderError> {
    // Not in the store: what a plugin is checked with is verified by nothing.
    let around = std::env::temp_dir();
    let folder = private_folder().tempdir_in(&around).at("make a folder in", &around)?;
    let open = Folder::open(folder.path()).at("open", folder.path())?;
    let mut tree = TreeWriter::new(open, Limits::default());
    plugin.fetch(location, release, &mut tree, &Silent)?;
    let tree = tree.finish()?;
    Ok((tree.digest(), tree.entries().len()))
}
