//! The plugins of this machine: where mu looks for them, and what they can see.
//!
//! `mu-provider-exec` knows how to talk to them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use mu_provider::http::Http;
use mu_provider::threads::lock;
use mu_provider::{Programs, Provider};
use mu_provider_exec::{ExecProvider, INTRODUCTION, Places, SILENCE, Starting};

use crate::env::Environment;
use crate::index::Plugins;
use crate::workspace::Workspace;
use crate::workspace::root::programs;

/// Variables that a plugin sees. No token is among them.
const VARIABLES: [&str; 16] = [
    "ALL_PROXY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LC_ALL",
    "NO_PROXY",
    "PATH",
    "SSL_CERT_FILE",
    "SystemRoot",
    "TMPDIR",
    "TZ",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// The beginning of the names of variables for plugins.
const FOR_PLUGINS: &str = "MU_PLUGIN_";

/// The variable that names a folder for records of what plugins and mu say to each other.
const RECORDS: &str = "MU_PLUGIN_DEBUG";

/// The plugins of this machine, each of which is started when it is first asked something.
#[derive(Debug)]
pub(crate) struct OfThisMachine {
    places: Places,
    offline: bool,
    /// The folder that they write into.
    folder: PathBuf,
    /// The folder for records of what they say, if there should be some.
    records: Option<PathBuf>,
    http: Arc<Http>,
    found: Mutex<HashMap<String, Arc<ExecProvider>>>,
}

impl OfThisMachine {
    pub(crate) fn new(
        environment: &Environment,
        workspace: &Workspace,
        offline: bool,
        http: Arc<Http>,
    ) -> Self {
        Self {
            places: places(environment, workspace),
            offline,
            folder: environment.cache.join("plugins"),
            records: records(environment),
            http,
            found: Mutex::default(),
        }
    }

    /// The names of all plugins, with their programs.
    pub(crate) fn all_plugins(&self) -> BTreeMap<String, PathBuf> {
        self.places.all()
    }

    /// The plugin with this name, if there is one.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<ExecProvider>> {
        // Held until it is there, so that two threads get one provider, and its program runs once.
        let mut found = lock(&self.found);
        if let Some(plugin) = found.get(name) {
            return Some(Arc::clone(plugin));
        }
        let starting = Starting {
            name: name.to_owned(),
            program: self.places.find(name)?,
            environment: variables(&self.places.programs),
            folder: self.folder.clone(),
            records: self.records.clone(),
            offline: self.offline,
            introduction: INTRODUCTION,
            silence: SILENCE,
            credentials: Arc::clone(&self.http.options().credentials),
        };
        let plugin = Arc::new(ExecProvider::new(starting, Arc::clone(&self.http)));
        Some(Arc::clone(found.entry(name.to_owned()).or_insert(plugin)))
    }
}

impl Plugins for OfThisMachine {
    fn find(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.named(name).map(|plugin| plugin as Arc<dyn Provider>)
    }
}

fn places(environment: &Environment, workspace: &Workspace) -> Places {
    Places {
        named: workspace.settings.plugins.clone(),
        folder: environment.mu_home.join("plugins"),
        programs: programs(environment),
    }
}

fn records(environment: &Environment) -> Option<PathBuf> {
    let folder = environment.variable(RECORDS).filter(|folder| !folder.is_empty())?;
    Some(crate::env::absolute(&environment.current, folder.as_ref()))
}

/// The environment of a plugin.
fn variables(programs: &Programs) -> BTreeMap<String, String> {
    let is_for_it = |name: &str| VARIABLES.contains(&name) || name.starts_with(FOR_PLUGINS);
    let all = programs.variables().iter().filter(|(name, _)| is_for_it(name));
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}
