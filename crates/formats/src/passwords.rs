//! The keys of the files in which container tools keep passwords: Docker's `config.json`, and `auth.json` of others.
//!
//! The passwords are read where they are needed. A misspelt key there is a password that is never found, so here it is looked for.

use crate::error::FormatError;
use crate::json;
use crate::shape::Shape::{self, Each, Map, Text, Unused};
use crate::shape::Values;

/// What such a file has.
static SHAPE: Shape = Map(&[
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
    ("registrytoken", Unused),
    ("email", Unused),
    ("serveraddress", Unused),
]);

/// The keys in `text`, that of `file`, which such a file does not have.
///
/// # Errors
///
/// When it is not JSON, or one is probably a misspelt key that is needed.
pub fn check_passwords(file: &str, text: &str) -> Result<Vec<String>, FormatError> {
    let read = json::read(text, &SHAPE, &mut Values::default());
    let unknown = read.and_then(|read| read.unknown.check(false));
    unknown.map_err(|fault| FormatError::new(file, text, fault))
}

/// What is read of such a file.
#[cfg(test)]
pub(crate) fn shape() -> &'static Shape {
    &SHAPE
}
