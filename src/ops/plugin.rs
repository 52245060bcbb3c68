//! `plugin`: which provider plugins there are, whether one does what the protocol says, and single questions to one.

use std::path::PathBuf;
use std::sync::Arc;

use mu_provider::fs::{AtPath as _, private_folder};
use mu_provider::{
    Digest, Folder, Limits, Listing, Location, Provider as _, ProviderError, Release, Silent,
    TreeWriter,
};
use mu_provider_exec::ExecProvider;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::ops::{Code, CommandError, Session};
use crate::reference::Reference;

/// A plugin on this machine.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Plugin {
    /// Its name: the scheme of its references, and what `provider` says in the settings.
    pub name: String,
    /// The program.
    pub path: String,
    /// The version that it says it has.
    pub version: Option<String>,
    /// The schemes that it says it serves.
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
    /// Whether that is as the protocol says.
    pub ok: bool,
}

/// All plugins on this machine; each is started and asked what it is.
pub fn list(session: &Session) -> Vec<Plugin> {
    let plugins = session.plugins();
    let all: Vec<(String, PathBuf)> = plugins.all().into_iter().collect();
    let look = |(name, path): (String, PathBuf)| {
        let about = plugins.named(&name).map(|plugin| plugin.about());
        let path = path.display().to_string();
        match about {
            Some(Ok(about)) => Plugin {
                version: Some(about.version).filter(|version| !version.is_empty()),
                schemes: about.schemes,
                problem: None,
                name,
                path,
            },
            Some(Err(error)) => broken(name, path, error.to_string()),
            None => broken(name, path, "is not a program that can be run".to_owned()),
        }
    };
    all.into_iter().map(look).collect()
}

fn broken(name: String, path: String, problem: String) -> Plugin {
    Plugin { name, path, version: None, schemes: Vec::new(), problem: Some(problem) }
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

/// Asks a plugin one question, and gives its answer as it is.
///
/// # Errors
///
/// When there is no such plugin, it does not know the method, or cannot answer.
pub fn run(
    session: &Session,
    name: &str,
    method: &str,
    params: &Value,
) -> Result<Value, CommandError> {
    let answer = find(session, name)?.call(method, params, &Silent)?;
    answer.ok_or_else(|| {
        CommandError::new(Code::Plugin, format!("the plugin `{name}` has no method `{method}`"))
    })
}

/// Tries whether a plugin does what the protocol says; with a reference, also with the package that it names.
///
/// # Errors
///
/// When there is no such plugin, or the reference cannot be read. What the plugin does wrong is in the answer.
pub fn check(
    session: &Session,
    name: &str,
    reference: Option<&str>,
) -> Result<Vec<Check>, CommandError> {
    let plugin = find(session, name)?;
    let mut checks = Checks(Vec::new());
    let introduced = checks.note("starts and introduces itself", plugin.about(), |about| {
        let serves = about.schemes.iter().any(|scheme| scheme == name);
        let said =
            format!("`{}` {}, schemes: {}", about.name, about.version, about.schemes.join(", "));
        if serves { Ok(said) } else { Err(format!("{said}; `{name}` is not among them")) }
    });
    if let (Some(text), Some(_)) = (reference, introduced) {
        let reference = Reference::parse(text)?;
        let id = session.id_of(&reference);
        session.index().declare(&id, &reference, &session.environment.current);
        let route = session.index().known_route(&id);
        let Some(route) = route.filter(|route| route.provider.name() == name) else {
            let text = format!("`{text}` does not lead to the plugin `{name}`");
            return Err(CommandError::new(Code::Usage, text).hint(format!(
                "write `{name}://HOST/NAME`, or set `provider: {name}` for its base"
            )));
        };
        checks.package(&plugin, &route.location);
    }
    Ok(checks.0)
}

struct Checks(Vec<Check>);

impl Checks {
    /// Notes how something went; gives what came of it if that was right.
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

    /// Tries everything that a package takes part in.
    fn package(&mut self, plugin: &ExecProvider, location: &Location) {
        let listing =
            self.note("lists the package", plugin.list(location, None, &Silent), |listing| {
                match listing {
                    Listing::Found(found) => releases(&found.lines).map(|all| match all.len() {
                        0 => "no releases".to_owned(),
                        1 => "1 release".to_owned(),
                        many => format!("{many} releases"),
                    }),
                    Listing::Absent { tried } => {
                        Err(format!("it is not there: {}", tried.join(", ")))
                    }
                    Listing::Unchanged { .. } => Err("unchanged, and nobody has it yet".to_owned()),
                }
            });
        let Some(Listing::Found(found)) = listing else { return };
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
        let nowhere =
            Location { path: format!("{}-that-is-not-there", location.path), ..location.clone() };
        self.note("knows what is not there", plugin.list(&nowhere, None, &Silent), |listing| {
            match listing {
                Listing::Absent { tried } => Ok(format!("looked at {}", tried.join(", "))),
                _ => Err(format!("finds `{}`", nowhere.describe())),
            }
        });
        let all = releases(&found.lines).unwrap_or_default();
        let Some(release) = all.last() else { return };
        let version = &release.version;
        let manifest = plugin.manifest(location, release, &Silent);
        self.note(&format!("gives the manifest of {version}"), manifest, |manifest| {
            Ok(manifest.as_ref().map_or_else(|| "none".to_owned(), |file| file.name.clone()))
        });
        let first = fetched(plugin, location, release);
        let first = self.note(&format!("fetches {version}"), first, |(digest, files)| {
            Ok(format!("{files} files, {digest}"))
        });
        let Some((digest, _)) = first else { return };
        // What a lock keeps has to be enough.
        let locked = Release {
            version: version.clone(),
            archive: release.archive.clone(),
            urls: release.urls.first().cloned().into_iter().collect(),
            commit: release.commit.clone(),
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

fn releases(lines: &[u8]) -> Result<Vec<Release>, String> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read = lines.map(|line| {
        let release: Release = serde_json::from_slice(line).map_err(|error| {
            format!("a release cannot be read: {error}: `{}`", String::from_utf8_lossy(line))
        })?;
        match release.version.is_empty() && release.tags.is_empty() {
            true => Err("a release has neither a version nor a tag".to_owned()),
            false => Ok(release),
        }
    });
    read.collect()
}

/// The digest and the number of files that come for a release.
fn fetched(
    plugin: &ExecProvider,
    location: &Location,
    release: &Release,
) -> Result<(Digest, usize), ProviderError> {
    let around = std::env::temp_dir();
    let folder = private_folder().tempdir_in(&around).at("make a folder in", &around)?;
    let open = Folder::open(folder.path()).at("open", folder.path())?;
    let mut tree = TreeWriter::new(open, Limits::default());
    plugin.fetch(location, release, &mut tree, &Silent)?;
    let tree = tree.finish()?;
    Ok((tree.digest(), tree.entries().len()))
}
