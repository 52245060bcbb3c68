//! Finds a KCL module in a commit by its own name: `kcl.mod` names one of several in a repository so (`package = "NAME"`), wherever
//! its folder is. kpm looks for it in the same way.

use git2::Oid;
use mu_formats::{Texts, kcl};
use mu_provider::{ErrorKind, ProviderError};

use crate::snapshot::{Kind, Snapshot};

/// How many folders of a repository are looked into.
const MOST_FOLDERS: usize = 5_000;

/// How deep they are.
const MOST_DEEP: usize = 16;

/// A manifest longer than this was not written by a person.
const LONGEST: usize = 1 << 20;

/// The folder of the module called `name`, if there is one.
///
/// # Errors
///
/// When there are several, or the repository has too many folders to say so.
pub(crate) fn find(snapshot: &Snapshot<'_>, name: &str) -> Result<Option<String>, ProviderError> {
    // A path with folders in it names a folder.
    if name.contains('/') {
        return Ok(None);
    }
    let mut found: Vec<String> = Vec::new();
    let mut folders: Vec<(String, Oid)> = Vec::new();
    let mut seen = 0;
    let mut next = Some((String::new(), None::<Oid>));
    while let Some((path, tree)) = next {
        seen += 1;
        if seen > MOST_FOLDERS {
            let text = format!(
                "`{}` has more than {MOST_FOLDERS} folders, in which mu does not look for the module `{name}`",
                snapshot.repository.remote
            );
            return Err(ProviderError::new(ErrorKind::Manifest, text)
                .hint("name the module's folder in place of its name"));
        }
        let entries = match tree {
            None => snapshot.folder("")?.1,
            Some(tree) => snapshot.tree(tree)?,
        };
        for entry in entries {
            let is_manifest = entry.name == kcl::MODULE.as_bytes();
            if is_manifest && matches!(entry.kind, Kind::File | Kind::Executable) {
                let text = snapshot.blob(entry.oid, &mut |data| {
                    (data.len() <= LONGEST).then(|| String::from_utf8_lossy(data).into_owned())
                })?;
                let texts = text.map(|text| Texts([(kcl::MODULE.to_owned(), text)].into()));
                let own = texts.and_then(|texts| kcl::head(&texts).ok());
                found.extend(own.filter(|own| own.name == name).map(|_| path.clone()));
            } else if entry.kind == Kind::Folder
                && path.split('/').count() < MOST_DEEP
                && let Ok(inner) = String::from_utf8(entry.name)
            {
                let slash = if path.is_empty() { "" } else { "/" };
                folders.push((format!("{path}{slash}{inner}"), entry.oid));
            }
        }
        next = folders.pop().map(|(path, tree)| (path, Some(tree)));
    }
    found.sort();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        [first, second, ..] => {
            let text = format!(
                "`{}` has two modules called `{name}` at commit {}: in `{first}` and in `{second}`",
                snapshot.repository.remote, snapshot.commit
            );
            Err(ProviderError::new(ErrorKind::Manifest, text)
                .hint("name the module's folder in place of its name"))
        }
    }
}
