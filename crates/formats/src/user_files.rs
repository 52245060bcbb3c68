//! Files in which a user's tools keep names and passwords: chart repositories as they are known to Helm (`helm repo add`), with
//! their short names and their passwords; and Docker's `config.json`, and `auth.json` of others.
//!
//! Of the latter two, the passwords are read where they are needed. A misspelt key there is a password that is never found, so
//! here it is looked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::node::{FormatError, Node};
use crate::reader;
use crate::shape::Shape::{self, Each, Folded, List, Map, Text, Unused};
use crate::shape::Values;

/// What mu reads of `repositories.yaml`.
static SHAPE: Shape =
    Folded(&[("apiVersion", Unused), ("generated", Unused), ("repositories", List(&REPOSITORY))]);

/// What mu reads of a repository there.
const REPOSITORY: Shape = Folded(&[
    ("name", Text),
    ("url", Text),
    ("username", Text),
    ("password", Text),
    ("caFile", Unused),
    ("certFile", Unused),
    ("keyFile", Unused),
    ("insecure_skip_tls_verify", Unused),
    ("pass_credentials_all", Unused),
    // Of Helm 2.
    ("cache", Unused),
]);

/// The keys in `text`, Helm's `repositories.yaml` at `file`, which such a file does not have.
///
/// # Errors
///
/// When it is not YAML, or one is probably a misspelt key that is needed.
pub fn check_repositories(file: &str, text: &str) -> Result<Vec<String>, FormatError> {
    let unknown = reader::read_all(text, &SHAPE).and_then(|(_, unknown)| unknown.check(false));
    unknown.map_err(|fault| FormatError::new(file, text, fault))
}

/// What is read of `repositories.yaml`.
#[cfg(test)]
pub(crate) fn shape() -> &'static Shape {
    &SHAPE
}

/// Repositories by the short names that the user gave them: `helm repo add NAME URL`.
#[derive(Clone, Default)]
pub struct HelmRepositoryAliases {
    named: BTreeMap<String, String>,
    /// Where else a chart is known to be, whose repository has a name that is not there.
    otherwise: Option<Arc<OfChart>>,
}

/// Finds the URL of the repository of a chart by the chart's name.
type OfChart = dyn Fn(&str) -> Option<String> + Send + Sync;

impl HelmRepositoryAliases {
    /// Reads Helm's `repositories.yaml`. What cannot be read names nothing.
    pub fn read(text: &str) -> Self {
        let Ok(root) = reader::read(text, &SHAPE) else { return Self::default() };
        let pair = |repository: &Node<'_>| {
            Some((repository.text_for_people("name")?, repository.text_for_people("url")?))
        };
        let repositories = root.list("repositories").unwrap_or_default();
        Self { named: repositories.iter().filter_map(pair).collect(), otherwise: None }
    }

    /// With a way to know the repository of a chart, by the chart's name, where the user has given no name to it.
    #[must_use]
    pub fn or_of_chart(
        self,
        known: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { otherwise: Some(Arc::new(known)), ..self }
    }

    /// The URL of the repository called `name`, which has a chart called `chart`.
    pub fn repository_url(&self, name: &str, chart: &str) -> Option<Cow<'_, str>> {
        let named = self.named.get(name).map(|url| Cow::Borrowed(url.as_str()));
        named.or_else(|| Some(self.otherwise.as_ref()?(chart)?.into()))
    }
}

impl fmt::Debug for HelmRepositoryAliases {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.named.fmt(formatter)
    }
}

/// A repository that needs a password: `helm repo add NAME URL --username USER --password PASSWORD`.
#[derive(Clone, PartialEq, Eq)]
pub struct Guarded {
    /// Where it is.
    pub url: String,
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl Guarded {
    /// Reads those in Helm's `repositories.yaml`. What cannot be read needs none.
    pub fn read(text: &str) -> Vec<Self> {
        let Ok(root) = reader::read(text, &SHAPE) else { return Vec::new() };
        let one = |repository: &Node<'_>| {
            let password =
                repository.text_for_people("password").filter(|password| !password.is_empty())?;
            let user = repository.text_for_people("username").unwrap_or_default();
            Some(Self { url: repository.text_for_people("url")?, user, password })
        };
        root.list("repositories").unwrap_or_default().iter().filter_map(one).collect()
    }
}

/// What such a file has.
static PASSWORD_FILE: Shape = Map(&[
    ("auths", Each(&ENTRY)),
    ("credHelpers", Each(&Text)),
    ("credsStore", Text),
    ("HttpHeaders", Unused),
    ("aliases", Unused),
    ("cliPluginsExtraDirs", Unused),
    ("configFormat", Unused),
    ("currentContext", Unused),
    ("detachKeys", Unused),
    ("experimental", Unused),
    ("features", Unused),
    ("imagesFormat", Unused),
    ("networksFormat", Unused),
    ("nodesFormat", Unused),
    ("plugins", Unused),
    ("pluginsFormat", Unused),
    ("proxies", Unused),
    ("pruneFilters", Unused),
    ("psFormat", Unused),
    ("secretFormat", Unused),
    ("serviceInspectFormat", Unused),
    ("servicesFormat", Unused),
    ("stackOrchestrator", Unused),
    ("statsFormat", Unused),
    ("tasksFormat", Unused),
    ("volumesFormat", Unused),
]);

/// What it has of a registry.
static ENTRY: Shape = Map(&[
    ("auth", Text),
    ("username", Text),
    ("password", Text),
    ("identitytoken", Text),
    ("registrytoken", Text),
    ("email", Unused),
    ("serveraddress", Unused),
]);

/// The keys in `text`, that of `file`, which such a file does not have.
///
/// # Errors
///
/// When it is not JSON, or one is probably a misspelt key that is needed.
pub fn check_passwords(file: &str, text: &str) -> Result<Vec<String>, FormatError> {
    let read = reader::read_json(text, &PASSWORD_FILE, &mut Values::default());
    let unknown = read.and_then(|read| read.unknown.check(false));
    unknown.map_err(|fault| FormatError::new(file, text, fault))
}

/// What is read of such a file.
#[cfg(test)]
pub(crate) fn password_file() -> &'static Shape {
    &PASSWORD_FILE
}
