//! Checks that the published files are committed, so that others can find the source of a version.

use std::collections::BTreeSet;
use std::path::Path;

use mu_provider::Commit;

use crate::ops::publication::packing::Packed;
use crate::ops::session::error::quoted;
use crate::ops::{Code, CommandError, Session};

/// The most files that are named.
const SHOWN: usize = 5;

/// The commit that contains everything packed from `folder`, if the folder is in a checkout.
///
/// # Errors
///
/// When a packed file is not committed as it is, unless `allow_dirty` is set, or the repository cannot be
/// read.
pub(super) fn commit(
    session: &Session,
    folder: &Path,
    packed: &Packed,
    allow_dirty: bool,
) -> Result<Option<Commit>, CommandError> {
    let found = match around(session, folder) {
        Err(_) if allow_dirty => None,
        found => found?,
    };
    let Some((commit, changed)) = found else { return Ok(None) };
    let entries: BTreeSet<&str> =
        packed.archive.tree.entries().iter().map(|entry| entry.path.as_str()).collect();
    let dirty: Vec<String> =
        changed.into_iter().filter(|path| entries.contains(path.as_str())).collect();
    if dirty.is_empty() {
        return Ok(commit);
    }
    if allow_dirty {
        return Ok(None);
    }
    let mut names: Vec<String> =
        dirty.iter().take(SHOWN).map(|path| format!("`{}`", quoted(path))).collect();
    if dirty.len() > SHOWN {
        names.push(format!("{} more", dirty.len() - SHOWN));
    }
    let message = format!(
        "`{}` would be published with changes that are not committed: {}",
        packed.manifest.name,
        names.join(", ")
    );
    Err(CommandError::new(Code::Conflict, message)
        .hint("commit them first, or publish with `--allow-dirty`")
        .with_details(serde_json::json!({ "files": dirty })))
}

/// The commit of a checkout, if it has one, and the files of a folder that differ from it.
type Checkout = (Option<Commit>, Vec<String>);

/// The checkout around a folder.
#[cfg(feature = "git")]
fn around(session: &Session, folder: &Path) -> Result<Option<Checkout>, CommandError> {
    let own = session.environment.cache.join("git");
    let checkout = mu_provider_git::Checkout::around(folder, &own).map_err(|error| {
        let what = format!("cannot tell whether `{}` is committed", folder.display());
        CommandError::from_error(Code::Io, error)
            .while_doing(what)
            .hint("`--allow-dirty` publishes without this check")
    })?;
    Ok(checkout.map(|checkout| (checkout.commit, checkout.changed)))
}

/// Without the Git provider, nothing is known about checkouts.
#[cfg(not(feature = "git"))]
fn around(_session: &Session, _folder: &Path) -> Result<Option<Checkout>, CommandError> {
    Ok(None)
}
