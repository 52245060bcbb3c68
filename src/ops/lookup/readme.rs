//! `info --readme`: the readme of a package, which must be fetched for it.

use crate::fs;
use crate::manifest::{JSON_NAME, Manifest, YAML_NAME};
use crate::ops::lookup::chosen::fetched;
use crate::ops::{Code, CommandError, Session};
use crate::reference::PackageId;
use crate::store::Stored;
use mu_provider::Mode;

/// The possible names of a readme, in lower case, if the manifest names none.
const NAMES: [&str; 5] = ["readme.md", "readme.markdown", "readme.txt", "readme.rst", "readme"];

/// The readme of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readme {
    /// The package.
    pub id: PackageId,
    /// Its version.
    pub version: String,
    /// The file, relative to the package.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// Fetches the newest version that `text` accepts into the store, and reads its readme.
///
/// # Errors
///
/// As [`super::info::info`], and when the package cannot be fetched or has no readme.
pub fn readme(session: &Session, text: &str) -> Result<Readme, CommandError> {
    let _store = session.use_store()?;
    let (id, release, stored) = fetched(session, text)?;
    session.save_index();
    let version = release.version.clone();
    let Some(file) = file(&stored)? else {
        let message = format!("`{id} {version}` has no readme");
        return Err(CommandError::new(Code::NotFound, message));
    };
    let text = fs::read_text(&stored.folder.join(&file))?;
    Ok(Readme { id, version, file, text })
}

/// The file of a tree that is its readme.
fn file(stored: &Stored) -> Result<Option<String>, CommandError> {
    let mut named = None;
    for name in [YAML_NAME, JSON_NAME] {
        let path = stored.folder.join(name);
        if let Some(text) = fs::read_text_if_there(&path)? {
            named = Manifest::parse(&path, &text).ok().and_then(|(manifest, _)| manifest.readme);
        }
    }
    let entries = || stored.tree.entries().iter().filter(|entry| entry.mode != Mode::Symlink);
    let paths = || entries().map(|entry| entry.path.clone());
    let named = named.and_then(|named| paths().find(|path| *path == named.as_str()));
    let usual = || NAMES.iter().find_map(|name| paths().find(|path| path.to_lowercase() == *name));
    Ok(named.or_else(usual))
}
